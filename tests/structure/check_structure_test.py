"""Tests of the checks themselves: each finds what it is for and passes a clean tree."""

import contextlib
import io
import pathlib
import tempfile
import unittest

import check_structure


class StructureTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        self.write("include/neyman/core/error.hpp", "#pragma once\n#include <string>\n")
        self.write("include/neyman/data/samples.hpp",
                   '#pragma once\n#include "neyman/core/error.hpp"\n')
        self.write("src/CMakeLists.txt", "add_subdirectory(core)\nadd_subdirectory(data)\n")
        self.write("src/core/CMakeLists.txt", "neyman_room(core SOURCES error.cpp)\n")
        self.write("src/core/error.cpp", '#include "neyman/core/error.hpp"\n')
        self.write("src/data/CMakeLists.txt", "neyman_room(data SOURCES samples.cpp)\n")
        self.write("src/data/samples.cpp", '#include "core/error.hpp"\n')
        self.write("src/README.md", "## core\n\n## data\n")

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def violations(self, check):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            status = check_structure.main([str(self.root), check])
        found = output.getvalue().splitlines()
        self.assertEqual(status, 1 if found else 0)
        return found

    def test_a_clean_tree_passes(self):
        for check in check_structure.CHECKS:
            self.assertEqual(self.violations(check), [], check)

    def test_a_room_may_not_include_a_later_one(self):
        self.write("src/core/error.cpp", '// one\n#include "neyman/data/samples.hpp"\n')
        self.assertEqual(self.violations("layers"),
                         ["src/core/error.cpp:2: core includes data, which comes after it"])

    def test_public_headers_need_the_standard_library_alone(self):
        self.write("include/neyman/core/bad.hpp",
                   '#include <fmt/format.h>\n#include "core/private.hpp"\n')
        self.assertEqual(len(self.violations("headers")), 3)

    def test_unlisted_sources_are_found(self):
        self.write("src/core/forgotten.cpp", "")
        self.write("src/ratios/CMakeLists.txt", "")
        self.assertEqual(self.violations("listed"), [
            "src/core/forgotten.cpp:1: not listed in src/core/CMakeLists.txt",
            "src/ratios/CMakeLists.txt:1: the folder is not added in src/CMakeLists.txt"])

    def test_the_readme_walks_the_rooms_in_order(self):
        self.write("src/README.md", "## data\n\n## core\n")
        self.write("src/utils/everything.cpp", "")
        self.assertEqual(len(self.violations("rooms")), 2)

    def test_forbidden_words_are_found(self):
        self.write("src/core/error.cpp", "std::cout << 1;\n// TO" + "DO later\nstd::exit(1);\n")
        self.write("docs/a.md", "see /ho" + "me/someone/file\n")
        self.assertEqual(len(self.violations("words")), 4)

    def test_unknown_checks_are_refused(self):
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(check_structure.main([str(self.root), "nothing"]), 2)


if __name__ == "__main__":
    unittest.main()
