"""Every command and code block of the documentation is tried out; blocks.py says how.

    python3 docs_test.py --neyman build/cli/neyman [page ...]

Prints "page:line: what is wrong" and exits with 1 where a block does not do what its page says.
"""

import argparse
import pathlib
import sys
import time

from blocks import ROOT, Failure, Runner

# tests/cli/simulators_test.py takes this page literally too, and compares its answers with exact ones.
ELSEWHERE = ("simulators.md",)


def pages():
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [page for page in found if page.name not in ELSEWHERE]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--neyman", required=True, help="the built program")
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("pages", nargs="*", type=pathlib.Path, help="default: all")
    arguments = parser.parse_args()
    runner = Runner(arguments.neyman, arguments.compiler)
    problems = 0
    try:
        for page in arguments.pages or pages():
            start = time.monotonic()
            try:
                runner.run_page(page)
            except Failure as failure:
                print(failure)
                problems += 1
            print(f"{page.name}: {time.monotonic() - start:.1f} s", flush=True)
    finally:
        runner.close()
    print("tried out: " + ", ".join(f"{count} {language}"
                                    for language, count in sorted(runner.count.items())))
    for block, lack in runner.left_alone:
        print(f"not run on this machine: {block.page.name}:{block.line}: {lack}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
