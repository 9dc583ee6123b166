"""Checks the Markdown files: links, anchors, and paths that the text names.

    tools/check_docs.py [root of the project]

Prints "file:line: what is wrong" for each link to a file that is not there, each anchor without
its heading, and each `path/in/the/tree` that does not exist.
"""

import pathlib
import re
import sys

LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)")
HTML = re.compile(r'(?:src|href)="([^"]+)"')
CODE = re.compile(r"`([^`]+)`")
TREE = ("benchmarks", "cli", "cmake", "docs", "examples", "include", "src", "tests", "tools")
PATH = re.compile(rf"(?:{'|'.join(TREE)})/[\w./-]*\w")


def lines_outside_code(text):
    """Lines with their numbers, without fenced blocks."""
    fenced = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def anchor_of(heading):
    """The anchor that GitHub makes of the text of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(path):
    """The anchors of the headings of a file."""
    found, seen = set(), {}
    for _, line in lines_outside_code(path.read_text(encoding="utf-8")):
        heading = re.match(r"#+\s+(.*)", line)
        if not heading:
            continue
        anchor = anchor_of(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1)))
        count = seen.get(anchor, 0)
        seen[anchor] = count + 1
        found.add(f"{anchor}-{count}" if count else anchor)
    return found


def check_link(root, path, target):
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return None
    name, _, anchor = target.partition("#")
    file = path if not name else (root / name[1:] if name[0] == "/" else path.parent / name)
    if not file.exists():
        return f"the link {target} leads nowhere"
    if anchor and file.suffix == ".md" and anchor not in anchors(file):
        return f"{target}: there is no such heading"
    return None


def check_file(root, path):
    for number, line in lines_outside_code(path.read_text(encoding="utf-8")):
        without_code = CODE.sub("", line)
        for target in LINK.findall(without_code) + HTML.findall(without_code):
            message = check_link(root, path, target)
            if message:
                yield number, message
        for code in CODE.findall(line):
            if PATH.fullmatch(code) and not (root / code).exists():
                yield number, f"{code} does not exist"


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent)
    root = root.resolve()
    problems = 0
    for path in sorted(root.rglob("*.md")):
        relative = path.relative_to(root)
        if relative.parts[0].startswith(("build", "out", ".")):
            continue
        for number, message in check_file(root, path):
            print(f"{relative}:{number}: {message}")
            problems += 1
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
