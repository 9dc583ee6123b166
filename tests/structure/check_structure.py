"""Checks how the source tree is built: run by ctest, from Python's standard library alone.

    check_structure.py <root of the project> <check> ...

Prints every violation as "file:line: what is wrong" and exits with 1 where there is one.
"""

import pathlib
import re
import sys

# In flow order: a room includes only itself and rooms before it.
ROOMS = ["core", "distributed", "data", "simulators", "classifiers", "calibration", "ratios",
         "inference", "measurements", "diagnostics", "reports", "pipeline"]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def numbered_lines(path):
    return enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)


def sources(root, *folders):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".hpp", ".cpp") and path.is_file():
                yield path


def room_of(include):
    """The room that an include names, from neyman/<room>/… or, in src and tests, <room>/…"""
    parts = include.split("/")
    if parts[0] == "neyman":
        parts = parts[1:]
    return parts[0] if len(parts) > 1 and parts[0] in ROOMS else None


def check_layers(root):
    """A room includes only rooms above it in the list."""
    for base in (root / "include" / "neyman", root / "src", root / "tests"):
        for position, room in enumerate(ROOMS):
            for path in sources(base, room):
                for number, line in numbered_lines(path):
                    found = INCLUDE.match(line)
                    target = room_of(found.group(2)) if found else None
                    if target and ROOMS.index(target) > position:
                        yield path, number, f"{room} includes {target}, which comes after it"


def check_headers(root):
    """Public headers: guarded, only the standard library and other public headers."""
    for path in sources(root, "include"):
        if "#pragma once" not in path.read_text(encoding="utf-8"):
            yield path, 1, "no #pragma once"
        for number, line in numbered_lines(path):
            found = INCLUDE.match(line)
            if not found:
                continue
            kind, name = found.groups()
            if kind == "<" and not re.fullmatch(r"[a-z_]+", name):
                yield path, number, f"<{name}> is not of the standard library"
            if kind == '"' and not (root / "include" / name).is_file():
                yield path, number, f'"{name}" is not a public header'


def check_listed(root):
    """Every source and test is named in the CMakeLists.txt of its folder, every folder in its
    parent's."""
    for base in ("src", "tests", "cli"):
        for path in sources(root, base):
            listing = path.parent / "CMakeLists.txt"
            if path.suffix != ".cpp" or "data" in path.parts or not listing.is_file():
                continue
            text = listing.read_text(encoding="utf-8")
            # A family of sources may be listed by a pattern such as mlp_kernels_${isa}.cpp.
            if not re.search(rf"(^|[\s(]){re.escape(path.name)}($|[\s)])", text, re.MULTILINE):
                yield path, 1, f"not listed in {listing.relative_to(root)}"
        for listing in sorted((root / base).glob("*/CMakeLists.txt")):
            parent = (root / base / "CMakeLists.txt").read_text(encoding="utf-8")
            if f"add_subdirectory({listing.parent.name})" not in parent:
                yield listing, 1, f"the folder is not added in {base}/CMakeLists.txt"


def check_rooms(root):
    """The rooms of the tree are those of the list, and src/README.md walks them in that order."""
    for base in ("include/neyman", "src"):
        for folder in sorted((root / base).iterdir()):
            if folder.is_dir() and any(folder.iterdir()) and folder.name not in ROOMS:
                yield folder, 1, "not a room; the list is in tests/structure/check_structure.py"
    readme = root / "src" / "README.md"
    named = re.findall(r"^## ([a-z]+)$", readme.read_text(encoding="utf-8"), re.MULTILINE)
    present = [room for room in ROOMS if (root / "src" / room / "CMakeLists.txt").is_file()]
    if named != present:
        yield readme, 1, f"has the rooms {', '.join(named)}, but must have {', '.join(present)}"


# What no source may hold, and why.
FORBIDDEN = [
    (re.compile(r"\b(TODO|FIXME|XXX|HACK)\b"), "unfinished work is not committed"),
    (re.compile(r"(?<![\w.~$}])/(home|root|mnt|work|srv|Users)/\w"), "a path of one machine"),
    (re.compile(r"^\s*using namespace std;"), "names of std are written out"),
    (re.compile(r"\t"), "a tab"),
    (re.compile(r"[ \t]+$"), "blanks at the end of the line"),
]
# What the library may not do: it throws and never prints, exits or draws hidden numbers.
FORBIDDEN_IN_LIBRARY = [
    (re.compile(r"\bstd::(cout|cerr|clog)\b|\bf?printf\s*\(|\bputs\s*\(|\bfmt::print\b"),
     "the library never prints"),
    (re.compile(r"\b(std::)?(exit|abort|terminate|quick_exit)\s*\("), "the library never exits"),
    (re.compile(r"\bstd::(random_device|mt19937|rand)\b"), "random numbers come from RandomStream"),
]


def check_words(root):
    """No forbidden words, paths or calls."""
    this = pathlib.Path(__file__).resolve()
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if relative.parts[0] in ("build", "out", ".git") or relative.parts[0].startswith("build"):
            continue
        if path.suffix not in (".hpp", ".cpp", ".cmake", ".md", ".py", ".toml", ".cff", ".json",
                               ".txt") or not path.is_file() or path.resolve() == this:
            continue
        if "data" in relative.parts:
            continue
        rules = list(FORBIDDEN)
        if relative.parts[0] in ("include", "src") and path.suffix in (".hpp", ".cpp"):
            rules += FORBIDDEN_IN_LIBRARY
        for number, line in numbered_lines(path):
            for pattern, reason in rules:
                if pattern.search(line):
                    yield path, number, f"{reason}: {line.strip()[:80]}"


CHECKS = {name[len("check_"):]: function for name, function in list(globals().items())
          if name.startswith("check_")}


def main(arguments):
    if len(arguments) < 2 or any(name not in CHECKS for name in arguments[1:]):
        print(__doc__, "\nchecks:", ", ".join(CHECKS), file=sys.stderr)
        return 2
    root = pathlib.Path(arguments[0]).resolve()
    violations = 0
    for name in arguments[1:]:
        for path, number, message in CHECKS[name](root):
            print(f"{path.relative_to(root)}:{number}: {message}")
            violations += 1
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
