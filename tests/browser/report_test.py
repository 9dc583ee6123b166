"""The reports of all examples, and of a measurement, opened in a real browser.

    report_test.py --neyman <program> [--shots <folder>] [<example> ...]

Runs all studies of examples/ with --quick, opens their reports in headless Chromium on a
desktop and on a phone, in light and in dark, prints them, and checks what a reader would meet:
every section, figures with a size and a description, nothing wider than the screen, nothing
loaded from elsewhere, no message in the console, headings in order and enough contrast. Screenshots
and prints go to the folder. Skipped (status 77) where there is no Chromium that can be used.
"""

import argparse
import base64
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from chromium import BrowserError, Chromium  # noqa: E402  (the path comes first)

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
MEASUREMENTS = pathlib.Path(__file__).resolve().parents[1] / "measurements" / "data"
SKIPPED = 77
ALWAYS = ["Result", "What was asked", "What it took", "To repeat"]


class Example:
    """A study in examples/, and what its report must have."""

    def __init__(self, study, sections, figures, texts):
        self.study, self.sections, self.figures, self.texts = study, sections + ALWAYS, figures, texts


class Workspace:
    """A workspace for neyman limit, and what its report must have."""

    def __init__(self, path, options, sections, figures, texts):
        self.path, self.options = path, options
        self.sections, self.figures, self.texts = sections, figures, texts


SITUATION = (["Checks", "Data"],
             ["likelihood", "data", "diagnostic-reweighting_wide", "diagnostic-reference"])
STUDIES = {
    "mixture": Example(
        "01_mixture/study.toml",
        ["Test", "Ensemble", "Checks", "Data and learned ratio"],
        ["likelihood", "test", "ensemble", "data", "scores", "ratio", "log-ratio",
         "diagnostic-closure", "diagnostic-reliability"],
        ["Testing γ", "mixture of c0 (normal), c1 (normal) and c2 (normal)", "5000 events",
         "With the exact likelihood"]),
    "notebook": Example(
        "01_mixture/notebook.toml",
        ["Ensemble", "Checks", "Data and learned ratio"], ["likelihood", "ensemble", "ratio"],
        ["5000 events", "With the exact likelihood"]),
    "multidimensional": Example(
        "02_multidimensional/study.toml",
        ["Likelihood surface", "Checks", "Data"],
        ["likelihood", "surface-alpha-beta", "contours-alpha-beta", "data",
         "diagnostic-closure"],
        ["68.27 %", "95.45 %", "99.73 %", "With the exact likelihood", "linear-transform (join"]),
    "well-trained": Example("02_multidimensional/well_trained.toml", *SITUATION, ["Well trained"]),
    "poorly-trained": Example("02_multidimensional/poorly_trained.toml", *SITUATION,
                              # A quick run has too few events for more than a suspicion.
                              ["Poorly trained", " of 11 checks pass"]),
    "poorly-calibrated": Example("02_multidimensional/poorly_calibrated.toml", *SITUATION,
                                 ["Poorly calibrated", "warn"]),
    "nuisance": Example(
        "03_nuisance/study.toml",
        ["Coverage", "Checks", "Data"],
        ["likelihood", "correlation", "coverage", "data"],
        ["g (nuisance)", "g-and-k"]),
    "search": Example(
        "04_search/study.toml", [], ["likelihood", "correlation"],
        ["With the exact likelihood", "standard deviations", "by CLs (asymptotic formulae)",
         "resolution (nuisance)"]),
    "command": Example(
        "05_command/study.toml",
        ["Checks", "Data"], ["likelihood", "data", "diagnostic-closure"],
        ["python3 simulate.py {tau} {sigma} {n} {seed} {output}", "1000 events"]),
    "compiled": Example(
        "05_command/compiled.toml",
        ["Checks", "Data"], ["likelihood", "data", "diagnostic-closure"],
        ["./simulate {tau} {sigma} {n} {seed} {output}", "1000 events"]),
    "plugin": Example(
        "06_plugin/study.toml",
        ["Checks", "Data"], ["likelihood", "data", "diagnostic-closure"],
        ["libsimulate.so", "300 events"]),
    "files": Example(
        "07_files/study.toml",
        ["Tests", "Checks", "Data"], ["likelihood", "data"],
        ["simulated.csv", "Testing μ", "200 events"]),
    "components": Example(
        "07_files/components.toml",
        ["Data and learned ratio"], ["likelihood", "data", "scores"],
        ["background (files: background.csv) and signal (files: signal.csv)"]),
}

MEASUREMENT = (["Measurement", "Upper limit", "Nuisance parameters", "Before and after the fit",
                "What was asked", "To repeat"],
               ["measurement-strength", "measurement-profile", "measurement-limit",
                "measurement-impacts", "measurement-correlations"])
WORKSPACES = {
    "measurement": Workspace(
        "control.json", ["--toys", "200", "--seed", "1"], *MEASUREMENT,
        ["The background alone is disfavoured by", "by CLs with q-tilde", "200 toys"]),
    "many-parameters": Workspace(
        None, [], *MEASUREMENT, ["of 64 nuisance parameters", "65 parameters"]),
}


def many_parameters():
    """64 nuisance parameters with long names, and a channel of one bin beside one of forty."""
    def channel(name, bins, signal):
        names = [f"jet_energy_scale_of_{name}_in_a_region_{i}" for i in range(32)]
        background = [90.0 - b for b in range(bins)]
        return {"name": name, "samples": [
            {"name": "signal", "data": [signal * (b + 1) / bins for b in range(bins)],
             "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]},
            {"name": "a_background_with_a_rather_long_name", "data": background, "modifiers": [
                {"name": one, "type": "normsys",
                 "data": {"lo": 1 - 0.03 / (i + 1), "hi": 1 + 0.03 / (i + 1)}}
                for i, one in enumerate(names)]}]}

    channels = [channel("one_bin", 1, 30.0), channel("forty", 40, 9.0)]
    return {"channels": channels, "version": "1.0.0",
            "observations": [{"name": one["name"],
                              "data": [round(sum(parts)) + i % 5 - 2 for i, parts in enumerate(zip(
                                  *(sample["data"] for sample in one["samples"])))]}
                             for one in channels],
            "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}]}


# What a page says of itself, as the browser has laid it out.
LOOK = r"""(() => {
  const visible = e => { const b = e.getBoundingClientRect(); return b.width > 0 && b.height > 0; };
  const width = document.documentElement.clientWidth;
  const inside_scroll = e => e.closest('.scroll, pre');
  return {
    title: document.title,
    width,
    text: document.body.innerText,
    headings: [...document.querySelectorAll('h1,h2,h3,h4')].map(
      h => [Number(h.tagName[1]), h.textContent]),
    figures: [...document.querySelectorAll('figure')].map(f => ({
      name: f.id.replace('figure:', ''),
      caption: f.querySelector('figcaption').innerText,
      panels: [...f.querySelectorAll('.panels svg')].map(s => {
        const b = s.getBoundingClientRect(), g = s.getBBox();
        const name = (s.getAttribute('aria-labelledby') || '').split(' ')
          .map(i => (document.getElementById(i) || {}).textContent || '').join(' ');
        const scale = b.width / s.viewBox.baseVal.width;
        const texts = [...s.querySelectorAll('text')].filter(t => t.textContent.trim());
        const boxes = texts.map(t => t.getBoundingClientRect());
        const touch = [];
        for (let i = 0; i < boxes.length; ++i) for (let j = 0; j < i; ++j) {
          const p = boxes[i], q = boxes[j], by = 1.5;  // pixels that boxes are larger than letters
          if (p.left + by < q.right && q.left + by < p.right && p.top + 2 * by < q.bottom &&
              q.top + 2 * by < p.bottom) touch.push(texts[j].textContent + ' | ' + texts[i].textContent);
        }
        return {width: b.width, height: b.height, drawn: g.width * g.height, touch,
                text: Math.min(...texts.map(
                  t => scale * parseFloat(getComputedStyle(t).fontSize))),
                left: b.left, right: b.right, role: s.getAttribute('role'),
                name: (s.getAttribute('aria-label') || name).trim(),
                shapes: s.querySelectorAll('path,circle,rect,image,polyline,text').length};
      }),
      links: [...f.querySelectorAll('.files a')].map(a => [a.download, a.href]),
    })),
    bars: [...document.querySelectorAll('.headline svg')].map(s => [
      visible(s), s.getAttribute('aria-label')]),
    wide: [...document.querySelectorAll('body *')].filter(e => visible(e) && !inside_scroll(e) &&
      !e.closest('svg') && e.getBoundingClientRect().right > width + 1).map(
      e => e.tagName + '.' + e.className + ' ' + e.textContent.slice(0, 40)),
    scroll: document.documentElement.scrollWidth - width,
    used: Math.max(...[...document.querySelectorAll('main figure')].map(
      e => e.getBoundingClientRect().right)) -
      Math.min(...[...document.querySelectorAll('main figure')].map(
      e => e.getBoundingClientRect().left)),
    filled: [...document.querySelectorAll('main figure')].map(f => {
      const right = Math.max(...[...f.querySelectorAll('.panels svg, figcaption')].map(
        e => Math.min(e.getBoundingClientRect().right, f.getBoundingClientRect().right)));
      return (right - f.getBoundingClientRect().left) / f.getBoundingClientRect().width; }),
    tables: [...document.querySelectorAll('.scroll')].filter(
      e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.slice(0, 80)),
    broken: [...document.querySelectorAll('a[href^="#"]')].filter(
      a => !document.getElementById(decodeURIComponent(a.getAttribute('href').slice(1)))).map(
      a => a.getAttribute('href')),
    ids: [...document.querySelectorAll('[id]')].map(e => e.id),
  };
})()"""

# The lowest contrast of the texts of a page with what is behind them (WCAG 2.1).
CONTRAST = r"""(() => {
  const colour = c => { const v = c.match(/[\d.]+/g).map(Number);
                        return v.length < 4 ? [...v, 1] : v; };
  const over = (a, b) => a.slice(0, 3).map((v, i) => v * a[3] + b[i] * (1 - a[3])).concat(1);
  const light = c => { const [r, g, b] = c.slice(0, 3).map(v => { v /= 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = e => { const layers = [];
    for (; e; e = e.parentElement) layers.push(colour(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((below, c) => over(c, below), [255, 255, 255, 1]); };
  const texts = new Set();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) if (walk.currentNode.data.trim()) texts.add(walk.currentNode.parentElement);
  let worst = [99, ''];
  for (const e of texts) {
    if (e.closest('title, desc, style, .nf-light, .nf-dark')) continue;  // words on a heatmap
    const b = e.getBoundingClientRect();
    if (!b.width || !b.height) continue;
    const s = getComputedStyle(e), svg = e.closest('svg');
    const behind = ground(svg ? svg.parentElement : e);
    const front = over(colour(svg ? s.fill : s.color), behind);
    const [low, high] = [light(front), light(behind)].sort((x, y) => x - y);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < worst[0]) worst = [ratio, e.tagName + ' ' + e.textContent.slice(0, 50)];
  }
  return worst;
})()"""


class ReportTest(unittest.TestCase):
    """One test for each example is added below."""

    neyman = shots = browser = None

    def test_all_examples_are_here(self):
        self.assertEqual(sorted(example.study for example in STUDIES.values()),
                         sorted(str(path.relative_to(EXAMPLES)) for path in EXAMPLES.glob("*/*.toml")))

    def check_example(self, name):
        example = {**STUDIES, **WORKSPACES}[name]
        with tempfile.TemporaryDirectory(prefix="neyman-report-") as folder:
            make = self.run_limit if name in WORKSPACES else self.run_study
            report = make(example, pathlib.Path(folder))
            # The page alone: what it needs must be inside it.
            alone = pathlib.Path(folder) / "alone" / "report.html"
            alone.parent.mkdir()
            shutil.move(report, alone)
            page = self.browser.open(alone)
            try:
                self.check_page(name, example, page)
            finally:
                page.close()

    def run_study(self, example, folder):
        source = EXAMPLES / example.study
        study = folder / "study"
        shutil.copytree(source.parent, study, ignore=shutil.ignore_patterns("out*", "simulate"))
        headers = EXAMPLES.parent / "include"
        build = {"05_command": ["-o", "simulate"],
                 "06_plugin": ["-shared", "-fPIC", f"-I{headers}", "-o", "libsimulate.so"]}
        if source.parent.name in build:
            subprocess.run(["cc", "-O2", *build[source.parent.name], "simulate.c", "-lm"],
                           cwd=study, check=True)
        done = subprocess.run([self.neyman, "run", str(study / source.name), "--quick", "--out",
                               str(folder / "out"), "--quiet"], capture_output=True, text=True,
                              check=False)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        return folder / "out" / "report.html"

    def run_limit(self, example, folder):
        path = MEASUREMENTS / str(example.path)
        if example.path is None:
            path = folder / "workspace.json"
            path.write_text(json.dumps(many_parameters()))
        done = subprocess.run([self.neyman, "limit", str(path), *example.options, "--report",
                               str(folder / "out"), "--quiet"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return folder / "out" / "report.html"

    def check_page(self, name, example, page):
        self.check_look(page, f"{name} on a desktop", example)
        for dark in (False, True):
            page.media(dark=dark)
            ratio, where = page.evaluate(CONTRAST)
            self.assertGreaterEqual(ratio, 4.5, f"contrast of {where!r}, dark: {dark}")
            self.take(page, f"{name}-desktop-{'dark' if dark else 'light'}")
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        self.assertLess(sum(map(float, re.findall(r"\d+", ground)[:3])), 150, "dark ground")
        page.resize(390, 844, phone=True)
        self.check_look(page, f"{name} on a phone", example)
        self.take(page, f"{name}-phone-dark")
        page.media()
        self.take(page, f"{name}-phone-light")
        with tempfile.TemporaryDirectory() as folder:
            printed = page.pdf(pathlib.Path(self.shots or folder) / f"{name}.pdf")
        self.assertTrue(printed.startswith(b"%PDF"))
        self.assertGreaterEqual(len(re.findall(rb"/Type\s*/Page\b", printed)), 2, "printed pages")
        self.assertEqual(page.messages, [], "console and requests")

    def take(self, page, name):
        if self.shots:
            page.screenshot(pathlib.Path(self.shots) / f"{name}.png")

    def check_look(self, page, where, example):
        look = page.evaluate(LOOK)
        self.assertEqual(look["wide"], [], f"{where}: wider than the screen")
        self.assertLessEqual(look["scroll"], 0, f"{where}: scrolls sideways")
        self.assertGreater(look["used"], 0.88 * look["width"], f"{where}: an empty side")
        self.assertGreater(min(look["filled"]), 0.65, f"{where}: an empty side beside a figure")
        self.assertEqual(look["tables"], [], f"{where}: tables that scroll sideways")
        self.assertEqual(look["broken"], [], f"{where}: links to nowhere")
        self.assertEqual(len(look["ids"]), len(set(look["ids"])), f"{where}: ids")
        self.assertTrue(look["title"])
        self.check_headings(look["headings"], where, example)
        for text in example.texts:
            self.assertIn(text, look["text"].replace("\u00a0", " "), where)
        self.assertTrue(look["bars"], f"{where}: the answer as a figure")
        for visible, words in look["bars"]:
            self.assertTrue(visible and words, f"{where}: the answer as a figure")
        found = [figure["name"] for figure in look["figures"]]
        for name in example.figures:
            self.assertIn(name, found, f"{where}: a figure is missing")
        for figure in look["figures"]:
            self.check_figure(figure, f"{where}, figure {figure['name']}")

    def check_headings(self, headings, where, example):
        levels = [level for level, _ in headings]
        self.assertEqual(levels[0], 1, where)
        self.assertEqual(levels.count(1), 1, where)
        for before, after in zip(levels, levels[1:]):
            self.assertLessEqual(after, before + 1, f"{where}: {headings}")
        words = [text for _, text in headings]
        for section in example.sections:
            self.assertIn(section, words, f"{where}: a section is missing")

    def check_figure(self, figure, where):
        self.assertGreater(len(figure["caption"]), 30, where)
        self.assertTrue(figure["panels"], where)
        for panel in figure["panels"]:
            self.assertGreater(panel["width"], 120, where)
            self.assertGreater(panel["height"], 80, where)
            self.assertGreater(panel["drawn"], 1000, where)
            self.assertGreater(panel["shapes"], 5, where)
            self.assertEqual(panel["role"], "img", where)
            self.assertTrue(panel["name"], f"{where}: has no description")
            self.assertGreaterEqual(panel["text"], 8.6, f"{where}: text too small to read")
            self.assertEqual(panel["touch"], [], f"{where}: texts that touch")
        content = {}
        for name, address in figure["links"]:
            self.assertTrue(address.startswith("data:"), f"{where}: {address[:80]}")
            content[name.rsplit(".", 1)[1]] = base64.b64decode(address.split(",", 1)[1])
        self.assertEqual(sorted(content), ["csv", "pdf"], where)
        self.assertTrue(content["pdf"].startswith(b"%PDF"), where)
        rows = content["csv"].decode("utf-8").splitlines()
        self.assertTrue(rows[0].startswith("panel,series,"), where)
        self.assertGreater(len(rows), 2, where)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--neyman", required=True)
    parser.add_argument("--shots", help="folder for screenshots and prints")
    parser.add_argument("examples", nargs="*",
                        help=f"of {', '.join([*STUDIES, *WORKSPACES])}; all of them where none "
                        "is named")
    arguments = parser.parse_args()
    ReportTest.neyman = str(pathlib.Path(arguments.neyman).resolve())
    if arguments.shots:
        pathlib.Path(arguments.shots).mkdir(parents=True, exist_ok=True)
        ReportTest.shots = arguments.shots
    for name in arguments.examples or [*STUDIES, *WORKSPACES]:
        setattr(ReportTest, f"test_{name}", lambda self, name=name: self.check_example(name))
    try:
        browser = Chromium.start()
    except BrowserError as problem:
        print(f"skipped: {problem}", file=sys.stderr)
        return SKIPPED
    with browser:
        ReportTest.browser = browser
        print(f"{browser.version}", file=sys.stderr)
        suite = unittest.defaultTestLoader.loadTestsFromTestCase(ReportTest)
        return 0 if unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
