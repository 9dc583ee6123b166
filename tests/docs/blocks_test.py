"""Tests of the runner: what it takes for a block, and that it notices what is wrong."""

import pathlib
import tempfile
import unittest

import blocks
from blocks import Failure, Runner

PAGE = """<!-- continues: other.md in a -->

# Page

    neyman run study.toml

- a list

    with a paragraph, no code

Text.

<!-- shorter: test → -n test -->
<!-- in the project's folder -->

    make test

<!-- file: a.csv -->
```csv
x
1
```

```console
$ echo 1 2 3
1 … 3
$ false
```

    x = y
"""


class BlocksTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.page = pathlib.Path(folder.name) / "page.md"
        self.runner = Runner("/bin/true")
        self.addCleanup(self.runner.close)

    def write(self, text):
        self.page.write_text(text, encoding="utf-8")
        return self.page

    def test_blocks_of_a_page(self):
        found = blocks.read_blocks(self.write(PAGE))
        self.assertEqual([(block.language, block.line) for block in found],
                         [("sh", 5), ("sh", 16), ("csv", 19), ("console", 24), ("text", 30)])
        self.assertEqual([block.in_project for block in found], [False, True, False, False, False])
        self.assertEqual((found[1].text, found[1].shortened), ("make test", "make -n test"))
        self.assertEqual(found[2].file, "a.csv")
        self.assertEqual(blocks.continues(self.page), (self.page.parent / "other.md", "a"))
        self.assertEqual(blocks.commands(found[3].text), [("echo 1 2 3", ["1 … 3"]), ("false", [])])

    def test_a_fence_needs_a_known_language(self):
        with self.assertRaisesRegex(Failure, "page.md:1: the language of this block is ''"):
            blocks.read_blocks(self.write("```\nx\n```\n"))

    def test_lines_are_looked_for_in_their_order(self):
        self.assertIsNone(blocks.missing_line(["a …", "c"], "a b\nx\nc\n"))
        self.assertEqual(blocks.missing_line(["c", "a …"], "a b\nx\nc\n"), "a …")
        self.assertEqual(blocks.missing_line(["a.b"], "axb\n"), "a.b")

    def test_a_part_replaces_the_tables_of_its_names(self):
        study = '[study]\nname = "a"\n[classifier]\nkind = "b"\n[inference]\nscan = 3\n[inference.test]\nsize = 1\n'
        changed = blocks.with_part(study, "[inference]\nscan = 5\n")
        self.assertEqual(changed.split(), '[study] name = "a" [classifier] kind = "b" [inference] '
                                          "scan = 5".split())

    def run_page(self, text):
        return self.runner.run_page(self.write(text))

    def test_commands_that_fail_or_print_something_else_are_noticed(self):
        self.run_page("```sh\ntrue\n```\n")
        self.runner.ends.clear()
        with self.assertRaisesRegex(Failure, "page.md:1: exit status 1"):
            self.run_page("```sh\nfalse\ntrue\n```\n")
        with self.assertRaisesRegex(Failure, "does not print\nb"):
            self.run_page("```console\n$ echo a\nb\n```\n")
        with self.assertRaisesRegex(Failure, "exit status 1"):
            self.run_page("```console\n$ false\n```\n")
        with self.assertRaisesRegex(Failure, "does not print\nb"):
            self.run_page("<!-- printed by: echo a -->\n\n```text\nb\n```\n")

    def test_a_block_is_shortened_where_it_can_be(self):
        self.run_page("<!-- shorter: false → true; 20 → 1 -->\n\n```sh\nfalse\ntest 20 = 1\n```\n")
        with self.assertRaisesRegex(Failure, "page.md:3: there is no '30' in it to shorten"):
            blocks.read_blocks(self.write("<!-- shorter: 30 → 1 -->\n\n```sh\nsleep 20\n```\n"))

    def test_the_command_that_runs_the_tests_is_not_run_again(self):
        with self.assertRaisesRegex(Failure, "exit status 1"):
            self.run_page("<!-- this very test: false -->\n\n```sh\nfalse\ntest 1 = 2\n```\n")
        self.run_page("<!-- this very test: false -->\n\n```sh\nfalse  # and so on\ntest 1 = 1\n```\n")

    def test_a_block_in_the_projects_folder_finds_the_build(self):
        self.run_page("<!-- in the project's folder -->\n\n```sh\ntest -f CMakeLists.txt\n"
                      f"test build/release = {self.runner.build}\n```\n")

    def test_what_a_machine_lacks_is_said(self):
        self.run_page("<!-- needs: no_such_module -->\n\n```python\nimport no_such_module\n```\n")
        self.assertEqual([lack for _, lack in self.runner.left_alone],
                         ["Python has no module no_such_module"])
        self.runner.ends.clear()
        with self.assertRaisesRegex(Failure, "exit status 1"):
            self.run_page("<!-- needs: json -->\n\n```python\nimport no_such_module\n```\n")

    def test_files_are_written_and_pages_go_on(self):
        other = self.page.parent / "other.md"
        other.write_text("<!-- file: a/x.csv -->\n```csv\nx\n```\n", encoding="utf-8")
        folder = self.run_page("<!-- continues: other.md in a -->\n\n```sh\ntest -f x.csv\n```\n")
        self.assertEqual((folder / "x.csv").read_text(), "x\n")

    def test_code_that_does_not_compile_is_noticed(self):
        with self.assertRaises(Failure):
            self.run_page("```c\nint neyman_plugin_abi(void) { return nothing; }\n```\n")
        self.run_page("```c\nint neyman_plugin_abi(void) { return NEYMAN_PLUGIN_ABI; }\n```\n")


if __name__ == "__main__":
    unittest.main()
