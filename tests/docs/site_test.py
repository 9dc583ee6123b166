"""Tests of what `make docs` adds to the pages: the C++ reference, and the site where mkdocs is there."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import api_reference  # noqa: E402  the folder is only now on the path

HEADER = """#pragma once
#include <vector>

namespace neyman {
class Later;

namespace detail {
struct Hidden {};
}  // namespace detail

/// A ratio, r = p*(x) / q*(x).
///
///     log r = a + b
///
/// @throw ArgumentError where `x_i` is
///   not finite.
struct Ratio {
  int a = 0;  ///< with }
};

/// Twice.
template <class T>
T twice(T x);
double twice(double x) { return 2 * x; }

inline constexpr int limit = 700;
}  // namespace neyman
"""


class ReferenceTest(unittest.TestCase):
    def test_declarations_of_a_header(self):
        found = list(api_reference.entities(HEADER))
        self.assertEqual([api_reference.name_of(code) for _, code in found],
                         ["Ratio", "twice", "twice", "limit"])
        self.assertEqual(api_reference.prose(found[0][0]).splitlines(),
                         [r"A ratio, r = p\*(x) / q\*(x).", "", "", "```text", "log r = a + b", "",
                          "```", "", "", "*Throws* `ArgumentError` where `x_i` is", "not finite."])
        self.assertEqual(found[0][1][-1], "};")

    def test_every_public_class_is_there(self):
        pages = dict(api_reference.pages())
        for path in sorted((ROOT / "include" / "neyman").glob("*/*.hpp")):
            text = re.sub(r"namespace detail \{.*?\}  // namespace detail", "",
                          path.read_text(encoding="utf-8"), flags=re.DOTALL)
            for name in re.findall(r"^(?:class|struct|enum class) (\w+)(?= |\n)(?!.*;$)", text,
                                   re.MULTILINE):
                self.assertIn(f"### {name}\n", pages[f"{path.parent.name}.md"], path)


@unittest.skipUnless(shutil.which("mkdocs", path="/usr/bin"), "there is no mkdocs: tools/setup docs")
class SiteTest(unittest.TestCase):
    def test_builds_and_loads_nothing_from_elsewhere(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["/usr/bin/mkdocs", "build", "--quiet", "--site-dir", folder],
                                  cwd=ROOT, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            pages = sorted(pathlib.Path(folder).rglob("*.html"))
            self.assertGreater(len(pages), 25)
            for page in pages:
                text = page.read_text(encoding="utf-8")
                self.assertNotRegex(text, r'<(script|img|link)[^>]*(src|href)="(https?:)?//', page)
                self.check_anchors(page, text)

    def check_anchors(self, page, text):
        """Every link within the site leads to a page and a heading that are there."""
        for target in re.findall(r'<a [^>]*href="([^"]+)"', text):
            name, _, anchor = target.partition("#")
            if re.match(r"[a-z]+:", target) or name.startswith("/"):
                continue
            other = (page.parent / name).resolve() if name else page
            if other.is_dir():
                other = other / "index.html"
            self.assertTrue(other.exists(), f"{page.name}: {target}")
            if anchor and other.suffix == ".html":
                self.assertIn(f'id="{anchor}"', other.read_text(encoding="utf-8"),
                              f"{page.name}: {target}")


if __name__ == "__main__":
    unittest.main()
