"""Checks format and names.

    tools/lint.py --build build/lint [--all] [FILE …]

clang-format looks at every source; clang-tidy, which is slow, at those that differ from the
branch `main` of the origin (or, without one, from the last commit but one), with --all at every
one, or at those that are named. Needs a configured build for its compile commands.
"""

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def git(*arguments):
    result = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return result.stdout.split() if result.returncode == 0 else None


def tracked(*patterns):
    return [name for name in git("ls-files", "--", *patterns) if (ROOT / name).is_file()]


def changed():
    base = git("merge-base", "HEAD", "origin/main") or git("rev-parse", "HEAD~1")
    since = git("diff", "--name-only", base[0] if base else "HEAD", "--") or []
    return set(since) | set(git("ls-files", "--others", "--exclude-standard") or [])


def run(command):
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    # clang-tidy counts the warnings that it left out; they say nothing.
    notes = [line for line in result.stderr.splitlines()
             if not line.endswith(("warnings generated.", "warning generated."))
             and not line.startswith(("Suppressed ", "Use -header-filter"))]
    return result.returncode, result.stdout + "\n".join(notes)


def main():
    parser = argparse.ArgumentParser(description="Checks format and names.")
    parser.add_argument("--build", default="build/lint", help="a configured build")
    parser.add_argument("--all", action="store_true", help="clang-tidy on every source")
    parser.add_argument("files", nargs="*", metavar="FILE", help="clang-tidy on these alone")
    options = parser.parse_args()

    failed = False
    status, output = run(["clang-format", "--dry-run", "-Werror", *tracked("*.cpp", "*.hpp")])
    if status != 0:
        print(output)
        failed = True

    sources = tracked("src/*.cpp", "cli/*.cpp", "tests/*.cpp")
    if options.files:
        unknown = [name for name in options.files if name not in sources]
        if unknown:
            parser.error(f"'{unknown[0]}' is no source of the project; give its path from the root")
        sources = options.files
    elif not options.all:
        sources = [name for name in sources if name in changed()]
    command = ["clang-tidy", "--quiet", "--warnings-as-errors=*", "-p", options.build]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for status, output in pool.map(lambda name: run([*command, name]), sources):
            if status != 0:
                print(output)
                failed = True
    print(f"clang-tidy looked at {len(sources)} sources")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
