"""Writes the C++ reference from the comments of the public headers: a Markdown page for each room.

    tools/api_reference.py <folder to write into>

Every class, function and constant of a header gets its `///` comment as text and its declaration, with
the comments of the members, as code. Namespace `detail`, which promises nothing, is left out.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAMED = re.compile(r"^\s*(?:class|struct|enum class|enum|union)\s+(\w+)(?!\s*;)")
ALIAS = re.compile(r"^\s*using\s+(\w+)\s*=")
CALLED = re.compile(r"(operator[^\s(]+|[A-Za-z_]\w*)\s*\(")
VALUE = re.compile(r"(\w+)\s*(?:=|\{|;)")


def rooms(root):
    """Names of the rooms in flow order, with what src/README.md says of each."""
    text = (root / "src" / "README.md").read_text(encoding="utf-8")
    parts = re.split(r"^## ([a-z]+)$", text, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], (re.sub(r"\[([^\]]*)\]\([^)]*\)\.?", r"\1", part).strip()
                                 for part in parts[1::2])))


def depth_change(line):
    """Of braces, outside texts and comments."""
    code = re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'|//.*', "", line)
    return code.count("{") - code.count("}")


def entities(text):
    """(comment lines, declaration lines) of each declaration in the header's namespaces."""
    comment, code, depth, spaces = [], [], 0, []
    for line in text.splitlines():
        bare = line.strip()
        if not code:
            space = re.match(r"(?:inline )?namespace\s+([\w:]*)\s*\{$", bare)
            if space:
                spaces.append(space.group(1))
                comment = []
                continue
            if bare.startswith("}") and spaces:
                spaces.pop()
                continue
            if bare.startswith("///"):
                comment.append(bare[3:])
                continue
            if not bare or bare.startswith(("//", "#")) or not spaces:
                comment = []
                continue
        code.append(line)
        depth += depth_change(line)
        ends = re.sub(r"\s*//.*", "", bare)
        if depth == 0 and ends.endswith((";", "}")):
            if "detail" not in spaces and not re.match(r"(class|struct) \w+;$", bare):
                yield comment, code
            comment, code = [], []


def name_of(code):
    joined = " ".join(line.strip() for line in code if not line.strip().startswith("//"))
    joined = re.sub(r"^template\s*<[^>]*>\s*", "", joined)
    for pattern in (NAMED, ALIAS):
        found = pattern.match(joined)
        if found:
            return found.group(1)
    before = joined.split("=")[0].split("{")[0]
    found = CALLED.search(before) if "(" in before else VALUE.search(joined)
    return found.group(1) if found else joined


def prose(comment):
    """The comment as Markdown."""
    lines, fenced = [], False
    for line in comment:
        line = line[1:] if line.startswith(" ") else line
        formula = line.startswith("    ")
        if formula != fenced and line.strip():
            lines += ["", "```text"] if formula else ["```", ""]
            fenced = formula
        if fenced:
            lines.append(line[4:])
            continue
        line = line.strip()
        thrown = re.match(r"@throw\s+(\w+)\s*(.*)", line)
        named = re.match(r"@param\s+(\w+)\s*(.*)", line)
        if thrown:
            lines += ["", f"*Throws* `{thrown.group(1)}` {thrown.group(2)}"]
        elif named:
            lines += ["", f"`{named.group(1)}`: {named.group(2)}"]
        else:
            lines.append("".join(part if i % 2 else re.sub(r"([*<_\[\]])", r"\\\1", part)
                                 for i, part in enumerate(re.split(r"(`[^`]*`)", line))))
    if fenced:
        lines.append("```")
    return "\n".join(lines).strip()


def header_page(path, include):
    """The part of a room's page that describes one header."""
    lines = [f"## {include}", ""]
    last = None
    for comment, code in entities(path.read_text(encoding="utf-8")):
        name = name_of(code)
        if name != last:
            lines += [f"### {name}", ""]
        last = name
        if comment:
            lines += [prose(comment), ""]
        lines += ["```cpp", *code, "```", ""]
    return lines


def room_page(root, room, description):
    lines = [f"# {room}", "", description, ""]
    for path in sorted((root / "include" / "neyman" / room).glob("*.hpp")):
        lines += header_page(path, f"neyman/{room}/{path.name}")
    return "\n".join(lines)


def pages(root=ROOT):
    """(name, text) of every page, in flow order."""
    return [(f"{room}.md", room_page(root, room, description))
            for room, description in rooms(root)]


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
