"""The code blocks of a Markdown page, and how each of them is tried out.

Blocks are fenced, with their language, or indented, when it is guessed from the first line:

| language | what is done with it |
| --- | --- |
| `sh` | run, in the page's folder; every command must succeed |
| `console` | lines after `$ ` are run, and what they print must hold the other lines; … stands for anything |
| `toml` | `neyman check`: a whole study by itself, a part of one in the place of that part of a study of the page, or of an example |
| `cpp` | compiled and linked with the library, and run where `main` takes no arguments |
| `c` | compiled, after `neyman/plugin.h` |
| `rust` | compiled where there is a compiler |
| `python` | run, in the page's folder, where `import neyman` finds the one that was built |
| `text`, `json`, `csv`, `cmake` | nothing |

A page begins in an empty folder. Comments in the Markdown, which readers do not see, change that:

    <!-- continues: other.md -->            (at the top) begins where that page ends
    <!-- continues: other.md in a/folder -->
    <!-- file: name -->                     the next block is written into that file first
    <!-- printed by: command -->            the next block, a text, is printed by this command, which
                                            may use $BROKEN, the folder of wrong studies
    <!-- shorter: 1 20 → 1 2; a → b -->     the next block is run with these texts in the place of those,
                                            because it takes minutes as it is
    <!-- this very test: command -->        the next block is run without this command, which is what
                                            runs these tests
    <!-- needs: module -->                  the next block is run where Python has this module
    <!-- in the project's folder -->        the next block is run there; build/release in it is the
                                            build that is tested
"""

import pathlib
import re
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
IDLE = ("text", "json", "csv", "cmake")
LANGUAGES = ("sh", "console", "toml", "cpp", "c", "rust", "python") + IDLE
COMMENT = re.compile(r"<!-- (continues|file|needs|printed by|shorter|this very test|in the project's folder)"
                     r"(?:: (.*))? -->$")
GUESSES = (
    ("console", r"\$ "),
    ("sh", r"(neyman|mpirun|sbatch|learn=|make|cmake|cc|python3|mkdir|cp|cd|ls|sed|head|export|git|build/\S+|[A-Z]+=\S+ \w+|\w+_accuracy) ?"),
    ("toml", r"\[+[a-z]\w*"),
    ("cpp", r"#include <neyman/"),
    ("python", r"import \w"),
    ("c", r"int neyman_plugin_"),
)


class Failure(Exception):
    pass


class Block:
    def __init__(self, page, line, language, text, comments):
        self.page, self.line, self.language, self.text = page, line, language, text
        self.file = comments.get("file")
        self.needs = comments.get("needs")
        self.printed_by = comments.get("printed by")
        self.in_project = "in the project's folder" in comments
        self.shortened = text
        changes = comments["shorter"].split(";") if "shorter" in comments else []
        if "this very test" in comments:
            changes.append(comments["this very test"] + " → true")
        for change in changes:
            before, arrow, after = (part.strip() for part in change.partition("→"))
            if not arrow or before not in self.shortened:
                self.fail(f"there is no '{before}' in it to shorten")
            self.shortened = self.shortened.replace(before, after)

    def fail(self, message):
        raise Failure(f"{self.page.name}:{self.line}: {message}")


def guess(text):
    for language, pattern in GUESSES:
        if re.match(pattern, text):
            return language
    return "text"


def read_blocks(page):
    """All blocks of a page in their order; Failure where a fence names no known language."""
    lines = page.read_text(encoding="utf-8").splitlines()
    out, comments, i, in_list = [], {}, 0, False
    while i < len(lines):
        line, start = lines[i], i + 1
        comment = COMMENT.match(line)
        fence = re.match(r"( *)```(\w*)", line)
        if comment:
            comments[comment.group(1)] = comment.group(2)
        elif fence:
            indent, body = len(fence.group(1)), []
            i += 1
            while not lines[i].lstrip().startswith("```"):
                body.append(lines[i][indent:])
                i += 1
            block = Block(page, start, fence.group(2), "\n".join(body), comments)
            if block.language not in LANGUAGES:
                block.fail(f"the language of this block is '{block.language}', but must be one of "
                           + ", ".join(LANGUAGES))
            out.append(block)
            comments = {}
        elif line.startswith("    ") and not in_list and (i == 0 or not lines[i - 1].strip()):
            body = []
            while i < len(lines) and (lines[i].startswith("    ") or not lines[i].strip()):
                body.append(lines[i][4:])
                i += 1
            text = "\n".join(body).rstrip()
            out.append(Block(page, start, guess(text), text, comments))
            comments = {}
            continue
        elif line.strip():
            in_list = bool(re.match(r"([-*]|\d+\.) ", line)) or in_list and line.startswith("  ")
            comments = {}
        i += 1
    return out


def continues(page):
    """(page, folder in it) that this page begins with, or None."""
    found = re.search(r"^<!-- continues: (\S+?)(?: in (\S+))? -->$",
                      page.read_text(encoding="utf-8"), re.MULTILINE)
    return (page.parent / found.group(1), found.group(2) or ".") if found else None


def commands(text):
    """(command, lines that it is said to print) of a console block."""
    out = []
    for line in text.splitlines():
        if line.startswith("$ "):
            out.append((line[2:], []))
        elif out and line.strip():
            out[-1][1].append(line)
    return out


def missing_line(expected, printed):
    """The first line that is not printed, in the order of the lines; None where all are."""
    rest = iter(printed.splitlines())
    for line in expected:
        pattern = ".*".join(re.escape(part) for part in line.strip().split("…"))
        if not any(re.fullmatch(pattern, found.strip()) for found in rest):
            return line
    return None


def with_part(study, part):
    """The text of a study with its tables replaced by those of the same names in a part."""
    names = set(re.findall(r"^\[+([\w-]+)", part, re.MULTILINE))
    kept, keep = [], True
    for line in study.splitlines():
        table = re.match(r"\[+([\w-]+)", line)
        if table:
            keep = table.group(1) not in names
        if keep:
            kept.append(line)
    return "\n".join(kept) + "\n\n" + part + "\n"


class Runner:
    """Tries the blocks of pages out, each page once."""

    def __init__(self, neyman, compiler="c++", folder=None):
        self.neyman = pathlib.Path(neyman).resolve()
        self.build = self.neyman.parent.parent
        self.compiler = compiler
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="neyman-docs-"))
        self.ends = {}  # page -> the folder that it leaves
        self.left_alone = []  # (block, what this machine lacks for it)
        self.count = {}  # language -> blocks that were tried out

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def execute(self, command, folder, **options):
        # Debian's programs first: others on the path may be shims that start slowly.
        stand_ins = pathlib.Path(__file__).resolve().parent / "stand_ins"
        environment = {"PATH": f"{self.neyman.parent}:/usr/bin:/bin:/usr/local/bin:{stand_ins}",
                       "HOME": str(self.folder), "LANG": "C.UTF-8", "NO_COLOR": "1",
                       "PYTHONPATH": str(self.build / "python"),
                       # Targets of the Makefile, which may be what runs this test, with this build.
                       "PRESET": self.build.name,
                       "BROKEN": str(ROOT / "tests" / "cli" / "broken"),
                       # Ranks on however few cores, by whoever runs the test.
                       "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
                       "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        # Some blocks build benchmarks first, on few cores.
        try:
            return subprocess.run(command, cwd=folder, env=environment, text=True, timeout=900,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, **options)
        except subprocess.TimeoutExpired as late:
            raise Failure(f"in {folder}: {late}") from None

    def run_page(self, page, section=None):
        """Returns the folder that the page leaves. With a section: the blocks under that heading."""
        page = page.resolve()
        if page in self.ends and section is None:
            return self.ends[page]
        before = continues(page)
        folder = pathlib.Path(tempfile.mkdtemp(prefix=page.stem + "-", dir=self.folder))
        if before:
            shutil.copytree(self.run_page(before[0]) / before[1], folder, dirs_exist_ok=True)
        first, last = section_lines(page, section)
        for block in read_blocks(page):
            if first <= block.line < last:
                self.run_block(block, folder)
        if section is None:
            self.ends[page] = folder
        return folder

    def run_block(self, block, folder):
        if block.file:
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text + "\n", encoding="utf-8")
        if block.in_project:
            folder = ROOT
            block.shortened = block.shortened.replace("build/release", str(self.build))
        if block.needs and self.execute(["python3", "-c", f"import {block.needs}"], folder).returncode:
            self.left_alone.append((block, f"Python has no module {block.needs}"))
        elif block.printed_by:
            self.compare(block, block.printed_by, block.text.splitlines(), folder)
            self.count["text"] = self.count.get("text", 0) + 1
        elif block.language not in IDLE:
            getattr(self, "try_" + block.language)(block, folder)
            self.count[block.language] = self.count.get(block.language, 0) + 1

    def try_sh(self, block, folder):
        done = self.execute(["bash", "-e", "-o", "pipefail", "-x", "-c", block.shortened], folder)
        if done.returncode != 0:
            block.fail(f"exit status {done.returncode}\n{done.stdout}")

    def try_console(self, block, folder):
        for command, expected in commands(block.shortened):
            self.compare(block, command, expected, folder)

    def compare(self, block, command, expected, folder):
        done = self.execute(["bash", "-c", command], folder)
        missing = missing_line(expected, done.stdout)
        if missing is not None or not expected and done.returncode != 0:
            block.fail(f"{command}\nexit status {done.returncode}, and does not print\n"
                       f"{missing}\nbut\n{done.stdout}")

    def try_python(self, block, folder):
        done = self.execute(["python3", "-c", block.shortened], folder)
        if done.returncode != 0:
            block.fail(f"exit status {done.returncode}\n{done.stdout}")

    def try_toml(self, block, folder):
        if re.search(r"^\[parameters\]", block.text, re.MULTILINE):
            study = folder / (block.file or "study-of-this-block.toml")
            study.write_text(block.text + "\n", encoding="utf-8")
            done = self.execute([self.neyman, "check", study], folder)
            if done.returncode == 0:
                return
            said = done.stdout
        else:
            said = ""
        for place in [*self.studies(folder), *self.copies_of_examples()]:
            changed = with_part((place / "study.toml").read_text(encoding="utf-8"), block.text)
            (place / "changed.toml").write_text(changed, encoding="utf-8")
            done = self.execute([self.neyman, "check", "changed.toml"], place)
            (place / "changed.toml").unlink()
            if done.returncode == 0:
                return
            said += f"\nin {place.name}:\n{done.stdout}"
        block.fail(f"is neither a study nor a part of one of the page or the examples\n{said}")

    @staticmethod
    def studies(folder):
        """Folders with a study that needs no building."""
        return [place for place in sorted(folder.iterdir())
                if (place / "study.toml").exists() and not (place / "Makefile").exists()]

    def copies_of_examples(self):
        for example in self.studies(ROOT / "examples"):
            copy = self.folder / "examples" / example.name
            if not copy.exists():
                shutil.copytree(example, copy)
            yield copy

    def try_cpp(self, block, folder):
        libraries = [path for path in (self.build / "src", self.build / "lib",
                                       self.neyman.parent) if (path / "libneyman.so").exists()]
        if not libraries:
            block.fail(f"there is no libneyman.so near {self.neyman} to link with")
        library = libraries[0].resolve()
        (folder / "block.cpp").write_text(block.text + "\n", encoding="utf-8")
        done = self.execute([self.compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror",
                             f"-I{ROOT / 'include'}", "block.cpp", "-o", "block",
                             f"-L{library}", "-lneyman", f"-Wl,-rpath,{library}"], folder)
        if done.returncode == 0 and "int main()" in block.text:
            done = self.execute(["./block"], folder)
        if done.returncode != 0:
            block.fail(f"exit status {done.returncode}\n{done.stdout}")

    def try_c(self, block, folder):
        (folder / "block.c").write_text(f'#include "neyman/plugin.h"\n{block.text}\n',
                                        encoding="utf-8")
        done = self.execute(["cc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror",
                             f"-I{ROOT / 'include'}", "-fsyntax-only", "block.c"], folder)
        if done.returncode != 0:
            block.fail(done.stdout)

    def try_rust(self, block, folder):
        if self.execute(["bash", "-c", "rustc --version"], folder).returncode != 0:
            self.left_alone.append((block, "there is no Rust compiler"))
            return
        (folder / "block.rs").write_text(block.text + "\n", encoding="utf-8")
        done = self.execute(["rustc", "--crate-type", "cdylib", "block.rs"], folder)
        if done.returncode != 0:
            block.fail(done.stdout)


def section_lines(page, heading):
    """The lines [first, last) of the section with a heading; of the whole page without one."""
    lines = page.read_text(encoding="utf-8").splitlines()
    if heading is None:
        return 0, len(lines) + 1
    first = lines.index(f"## {heading}") + 1
    later = [number for number, line in enumerate(lines, start=1)
             if line.startswith("## ") and number > first]
    return first, later[0] if later else len(lines) + 1
