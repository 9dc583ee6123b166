"""Puts measured tables into pages of docs/, between the marks that name them."""

import pathlib

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs" / "performance.md"


def replace_section(name, text, page=PAGE):
    """What stands between <!-- name --> and <!-- end of name --> becomes the text."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    content = page.read_text(encoding="utf-8")
    if content.count(begin) != 1 or content.count(end) != 1:
        raise SystemExit(f"{page}: the marks of {name} are missing")
    before, rest = content.split(begin)
    page.write_text(before + begin + "\n" + text.strip() + "\n\n" + end + rest.split(end)[1],
                    encoding="utf-8")
