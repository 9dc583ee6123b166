"""Tests of tools/setup with stand-ins for dpkg-query, apt-get, id and sudo on the path."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SETUP = pathlib.Path(__file__).resolve().parents[2] / "tools" / "setup"
SYSTEM = ("sh", "env", "sed", "tr")


class SetupTest(unittest.TestCase):
    system = "debian"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bin = pathlib.Path(folder.name)
        self.log = self.bin / "log"
        for name in SYSTEM:
            found = [path for path in ("/usr/bin", "/bin") if os.path.exists(f"{path}/{name}")]
            (self.bin / name).symlink_to(f"{found[0]}/{name}")
        self.program("sleep", "")
        self.program("apt-get", f'echo "$*" >> {self.log}')
        self.program("id", "echo 0")

    def program(self, name, body):
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        path.chmod(0o755)

    def installed(self, absent=()):
        """A dpkg-query that knows every package it is asked for but those that are absent."""
        cases = "".join(f"{name}) ;; " for name in absent)
        self.program("dpkg-query",
                     'shift 3; for p in "$@"; do case $p in ' + cases +
                     '*) echo "installed $p" ;; esac; done')

    def setup(self, *groups):
        release = self.bin / "os-release"
        release.write_text(f"ID={self.system}\n", encoding="utf-8")
        result = subprocess.run([str(SETUP), *groups],
                                env={"PATH": str(self.bin), "NEYMAN_OS_RELEASE": str(release)},
                                capture_output=True, text=True, check=False)
        calls = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        return result, calls

    def test_does_nothing_where_nothing_is_missing(self):
        self.installed()
        result, calls = self.setup()
        self.assertEqual((result.returncode, result.stdout, calls), (0, "", []))

    def test_installs_what_is_missing_alone(self):
        self.installed(absent=["libcli11-dev", "libgtest-dev"])
        result, calls = self.setup()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(calls), 2)
        self.assertTrue(calls[0].endswith(" update"), calls[0])
        self.assertTrue(calls[1].endswith(
            "install -y --no-install-recommends libcli11-dev libgtest-dev"), calls[1])

    def test_any_alternative_will_do(self):
        self.installed(absent=["gnuplot-nox", "gnuplot-x11"])
        self.assertEqual(self.setup()[1], [])
        self.installed(absent=["gnuplot-nox", "gnuplot-x11", "gnuplot-qt"])
        self.assertTrue(self.setup()[1][1].endswith(" gnuplot-nox"))

    def test_groups_are_asked_for_by_name(self):
        self.installed(absent=["python3-venv"])
        self.assertEqual(self.setup("build", "test")[1], [])
        self.assertTrue(self.setup("peers")[1][1].endswith(" python3-venv"))
        self.assertEqual(self.setup("everything")[0].returncode, 2)

    def test_installs_chromium_where_it_is_no_snap(self):
        self.installed(absent=["chromium", "google-chrome-stable"])
        self.assertTrue(self.setup("test")[1][1].endswith(" chromium"))
        self.log.unlink()
        self.system = "ubuntu"
        self.assertEqual(self.setup("test")[1], [])
        self.installed(absent=["python3"])
        self.assertTrue(self.setup("test")[1][1].endswith(" python3"))

    def test_tries_three_times(self):
        self.installed(absent=["cmake"])
        self.program("apt-get", f'echo "$*" >> {self.log}; exit 100')
        result, calls = self.setup()
        self.assertEqual((result.returncode, len(calls)), (1, 3))
        self.assertIn("cmake", result.stderr)

    def test_uses_sudo_where_it_is_not_root(self):
        self.installed(absent=["cmake"])
        self.program("id", "echo 1000")
        self.program("sudo", f'echo sudo >> {self.log}; exec "$@"')
        result, calls = self.setup()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(calls.count("sudo"), 2)

    def test_says_what_to_ask_for_without_root_and_sudo(self):
        self.installed(absent=["cmake"])
        self.program("id", "echo 1000")
        result, calls = self.setup()
        self.assertEqual((result.returncode, calls), (1, []))
        self.assertIn("apt-get install --no-install-recommends cmake", result.stderr)

    def test_names_the_packages_on_other_systems(self):
        (self.bin / "apt-get").unlink()
        self.installed()
        result, _ = self.setup()
        self.assertEqual(result.returncode, 1)
        self.assertIn("libeigen3-dev", result.stderr)


if __name__ == "__main__":
    unittest.main()
