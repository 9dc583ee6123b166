"""What mkdocs does beyond Markdown for the site of `make docs` (mkdocs.yml names this file).

Pages read the same on GitHub and on the site: anchors are GitHub's, links to files outside of docs/
lead to copies of them, and the C++ reference, which is written from the headers, is added.
"""

import pathlib
import re
import shutil
import sys
import tempfile

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import api_reference  # noqa: E402  the folder is only now on the path
from check_docs import anchor_of  # noqa: E402

OUTSIDE = re.compile(r"\]\(\.\./([^)#\s]+)(#[^)]*)?\)")
made = None  # a folder with the files that are not in docs/


def on_config(config):
    config["mdx_configs"].setdefault("toc", {})["slugify"] = lambda text, _: anchor_of(text)
    cpp = [{"Overview": "api.md"}] + [{room: f"api/{room}.md"}
                                      for room, _ in api_reference.rooms(ROOT)]
    for entry in config["nav"]:
        for pages in entry.values():
            if isinstance(pages, list):
                pages[:] = [{"C++": cpp} if page == {"C++": "api.md"} else page for page in pages]
    return config


def on_files(files, config):
    global made
    made = pathlib.Path(tempfile.mkdtemp(prefix="neyman-site-"))

    def add(name):
        files.append(File(name, str(made), config["site_dir"], config["use_directory_urls"]))

    (made / "api").mkdir()
    for name, text in api_reference.pages(ROOT):
        (made / "api" / name).write_text(text, encoding="utf-8")
        add(f"api/{name}")
    linked = set()
    for page in pathlib.Path(config["docs_dir"]).glob("*.md"):
        linked.update(target for target, _ in OUTSIDE.findall(page.read_text(encoding="utf-8")))
    for target in sorted(linked):
        copy = made / source_name(target)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / target, copy)
        add(source_name(target))
    return files


def source_name(target):
    """Where the site has the copy of a file of the project; text whatever its kind."""
    return f"source/{target}.txt"


def on_page_markdown(markdown, **_):
    return OUTSIDE.sub(lambda link: f"]({source_name(link.group(1))})", markdown)


def on_page_content(html, **_):
    return html.replace("<table>", '<table class="docutils">')  # the theme's own style of tables


def on_post_build(**_):
    shutil.rmtree(made)
