"""The notebooks of examples/python, made from the scripts beside them.

    tools/notebooks.py make                        writes each notebook
    tools/notebooks.py check                       says which are not as their script
    tools/notebooks.py run file [name=value …]     runs a script or a notebook, cell by cell

In a script, "# %%" begins a cell of code and "# %% [markdown]" one of text. What the cell
"# %% parameters" sets, `run` replaces by its arguments.
"""

import ast
import json
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "examples" / "python"
CELL = re.compile(r"^# %%[ \t]*(.*)$", re.MULTILINE)


def cells_of(script):
    """(kind, text) of each cell of a script: "markdown", "parameters" or ""."""
    parts = CELL.split(script)
    if parts[0].strip():
        raise ValueError("a script must begin with a cell")
    for kind, text in zip(parts[1::2], parts[2::2]):
        text = text.strip("\n")
        if kind == "[markdown]":
            text = "\n".join(line[2:] if line.startswith("# ") else line[1:]
                             for line in text.splitlines())
        yield kind.strip("[]"), text


def notebook_of(script):
    """The notebook of a script, as the text of its file."""
    cells = []
    for number, (kind, text) in enumerate(cells_of(script)):
        cell = {"cell_type": "markdown" if kind == "markdown" else "code", "id": f"cell-{number}",
                "metadata": {"tags": ["parameters"]} if kind == "parameters" else {},
                "source": text.splitlines(keepends=True)}
        if kind != "markdown":
            cell.update(execution_count=None, outputs=[])
        cells.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps({"cells": cells,
                       "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
                       "nbformat": 4, "nbformat_minor": 5}, indent=1, ensure_ascii=False) + "\n"


def code_of(path):
    """(whether it gives the parameters, source) of each cell of code in a script or a notebook."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        return [("parameters" in cell["metadata"].get("tags", ()), "".join(cell["source"]))
                for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    return [(kind == "parameters", source) for kind, source in cells_of(text) if kind != "markdown"]


def run(path, values):
    """Runs the cells in one namespace, as Jupyter does, and returns it."""
    space = {"__name__": "__main__"}
    for number, (parameters, source) in enumerate(code_of(path)):
        exec(compile(source, f"{path.name}, cell {number}", "exec"), space)
        if parameters:
            unknown = sorted(set(values) - set(space))
            if unknown:
                raise ValueError(f"{path.name} has no parameter {', '.join(unknown)}")
            space.update(values)
    return space


def main(arguments):
    command, *rest = arguments or ["help"]
    if command == "run" and rest:
        pairs = (entry.split("=", 1) for entry in rest[1:])
        run(pathlib.Path(rest[0]), {name: ast.literal_eval(value) for name, value in pairs})
        return 0
    if command not in ("make", "check"):
        print(__doc__)
        return 2
    wrong = 0
    for script in sorted(FOLDER.glob("*.py")):
        path, text = script.with_suffix(".ipynb"), notebook_of(script.read_text(encoding="utf-8"))
        if command == "make":
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{path}: is not as {script.name}: run tools/notebooks.py make")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
