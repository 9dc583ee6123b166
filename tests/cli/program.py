"""What the tests of the command line share: the program, a folder, and how a test file is started."""

import argparse
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

path = ""  # of the built program, once `start` has been called


def neyman(*arguments, cwd=None, **named):
    """A finished run of the program: returncode, stdout, stderr."""
    return subprocess.run([path, *map(str, arguments)], cwd=cwd, text=True, timeout=280,
                          stdin=subprocess.DEVNULL, capture_output=True, **named)


class Folder(unittest.TestCase):
    """A test with a temporary folder that ends with its class."""

    prefix = "neyman-cli-"

    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix=cls.prefix))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)

    def write(self, name, text):
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file


def parser():
    out = argparse.ArgumentParser()
    out.add_argument("--neyman", required=True, help="the built program")
    out.add_argument("groups", nargs="*", help="test classes; all by default")
    return out


def start(options):
    """The arguments of the test file, by a parser; from now on the program is known."""
    global path
    arguments = options.parse_args()
    path = str(Path(arguments.neyman).resolve())
    return arguments


def run(arguments):
    unittest.main(module="__main__", argv=[sys.argv[0], *arguments.groups])


def main():
    run(start(parser()))
