"""Headless Chromium, driven through its own debugging pipe: Python's standard library alone.

    with Chromium.start() as browser:
        page = browser.open(path, width=390, height=844, dark=True)
        page.evaluate("document.title")
"""

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

CANDIDATES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class BrowserError(Exception):
    """The browser cannot be started, or has ended."""


def find_chromium():
    """The path of a browser, or None. A snap is none: it sees neither /tmp nor the pipe."""
    named = os.environ.get("NEYMAN_CHROMIUM")
    for name in (named,) if named else CANDIDATES:
        path = shutil.which(name)
        if path and "/snap/" not in os.path.realpath(path):
            text = pathlib.Path(path).read_bytes()[:4096]
            if not (text.startswith(b"#!") and b"/snap/" in text):
                return path
    return None


class Page:
    """One tab. `messages` are the errors and warnings of its console and of its requests."""

    def __init__(self, browser, session):
        self._browser, self._session = browser, session
        self.messages = []

    def call(self, method, **parameters):
        return self._browser.call(method, self._session, **parameters)

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def resize(self, width, height, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=2 if phone else 1, mobile=phone)

    def media(self, dark=False, kind=""):
        self.call("Emulation.setEmulatedMedia", media=kind, features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def screenshot(self, path, whole=True):
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        pathlib.Path(path).write_bytes(base64.b64decode(picture["data"]))

    def pdf(self, path):
        """Prints on A4, and returns the number of bytes."""
        printed = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True,
                            paperWidth=8.27, paperHeight=11.69)
        content = base64.b64decode(printed["data"])
        pathlib.Path(path).write_bytes(content)
        return content

    def close(self):
        self.call("Page.close")


class Chromium:
    """A browser of its own, with a profile of its own, without a network."""

    @classmethod
    def start(cls, time_limit=60.0):
        path = find_chromium()
        if path is None:
            raise BrowserError("no Chromium was found (Debian: apt-get install chromium); a snap "
                               "cannot be used, another one can be named in NEYMAN_CHROMIUM")
        return cls(path, time_limit)

    def __init__(self, program, time_limit):
        self._time_limit = time_limit
        self._number, self._buffer = 0, b""
        self._pages, self._loaded = {}, set()
        self._profile = tempfile.TemporaryDirectory(prefix="neyman-browser-",
                                                    ignore_cleanup_errors=True)
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        def give_pipes():  # Chromium reads from 3 and writes to 4
            first, second = os.dup(to_browser), os.dup(from_browser)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self._log = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [program, "--headless=new", "--remote-debugging-pipe", "--no-sandbox",
             "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
             "--force-color-profile=srgb", "--disable-background-networking",
             "--disable-component-update", "--disable-extensions", "--disable-sync",
             "--proxy-server=127.0.0.1:9", f"--user-data-dir={self._profile.name}"],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, pass_fds=(3, 4),
            preexec_fn=give_pipes, start_new_session=True,
            env={**os.environ, "HOME": self._profile.name})
        os.close(to_browser)
        os.close(from_browser)
        try:
            self.version = self.call("Browser.getVersion")["product"]
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self._process.poll() is None:
            try:
                self.call("Browser.close")
                self._process.wait(10)
            except (BrowserError, OSError, subprocess.TimeoutExpired):
                self._process.kill()
                self._process.wait()
        for end in (self._read, self._write):
            os.close(end)
        self._log.close()
        self._profile.cleanup()

    def call(self, method, session=None, **parameters):
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        text = json.dumps(message).encode() + b"\0"
        try:
            while text:
                text = text[os.write(self._write, text):]
        except OSError as error:
            raise BrowserError(f"{method}: the browser has ended: {self.log()}") from error
        return self._until(method, lambda answer: answer.get("id") == number)

    def _until(self, what, wanted):
        """Reads messages until one is wanted; notes what the pages complain about."""
        end = time.monotonic() + self._time_limit
        while True:
            message = self._next(what, end)
            self._note(message)
            if wanted(message):
                if "error" in message:
                    raise BrowserError(f"{what}: {message['error']}")
                return message.get("result", message.get("params"))

    def _next(self, what, end):
        while b"\0" not in self._buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                raise BrowserError(f"{what}: no answer in {self._time_limit:g} s: {self.log()}")
            more = os.read(self._read, 1 << 20)
            if not more:
                raise BrowserError(f"{what}: the browser has ended: {self.log()}")
            self._buffer += more
        text, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(text)

    def _note(self, message):
        session, method = message.get("sessionId"), message.get("method")
        page, about = self._pages.get(session), message.get("params", {})
        if page is None:
            return
        if method == "Page.loadEventFired":
            self._loaded.add(session)
        elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            page.messages.append(about["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            page.messages.append(about["exceptionDetails"]["text"])
        elif method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning"):
            page.messages.append(str(about["args"]))
        elif method == "Network.requestWillBeSent":
            address = about["request"]["url"]
            if not (address.startswith("data:") or about.get("type") == "Document"):
                page.messages.append(f"asks for {address[:200]}")

    def open(self, path, width=1280, height=900, dark=False):
        """A new tab with a local file, once it is loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(self, session)
        page.resize(width, height)
        page.media(dark)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        self._loaded.discard(session)
        page.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        if session not in self._loaded:
            self._until("load", lambda _: session in self._loaded)
        return page

    def log(self):
        self._log.seek(0)
        return self._log.read()[-2000:].decode(errors="replace")
