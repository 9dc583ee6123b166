"""Puts measured tables into docs/performance.md, between the marks that name them."""

import pathlib

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs" / "performance.md"


def replace_section(name, text):
    """What stands between <!-- name --> and <!-- end of name --> becomes the text."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    page = PAGE.read_text(encoding="utf-8")
    if page.count(begin) != 1 or page.count(end) != 1:
        raise SystemExit(f"{PAGE}: the marks of {name} are missing")
    before, rest = page.split(begin)
    PAGE.write_text(before + begin + "\n" + text.strip() + "\n\n" + end + rest.split(end)[1],
                    encoding="utf-8")
