"""The package is of Python 3.9, whichever Python runs this."""

import ast
import pathlib

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "neyman"
FILES = sorted([*FOLDER.glob("*.py"), *FOLDER.glob("*.pyi")])
# What later versions brought into the modules of the standard library that the package uses.
LATER = {"typing": {"Self", "TypeAlias", "ParamSpec", "Concatenate", "TypeGuard", "Never", "assert_never",
                    "Unpack", "override", "LiteralString", "NotRequired", "Required"},
         "dataclasses": {"KW_ONLY"}, "itertools": {"pairwise", "batched"}, "enum": {"StrEnum"},
         "contextlib": {"chdir", "aclosing"}, "inspect": {"get_annotations"}}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_python_3_9_reads_it(path):
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))
    for node in ast.walk(tree):
        assert not isinstance(node, getattr(ast, "Match", ())), f"{path}:{node.lineno}: match"
        if isinstance(node, ast.ImportFrom):
            later = LATER.get(node.module, set()) & {alias.name for alias in node.names}
            assert not later, f"{path}:{node.lineno}: {later} came after Python 3.9"
        if isinstance(node, ast.Call):
            options = {keyword.arg for keyword in node.keywords}
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            assert not (name == "zip" and "strict" in options), f"{path}:{node.lineno}: strict"
            assert not (name == "dataclass" and options & {"slots", "kw_only"}), f"{path}:{node.lineno}"


@pytest.mark.parametrize("path", [path for path in FILES if path.suffix == ".py"],
                         ids=lambda path: path.name)
def test_unions_of_types_are_only_annotations(path):
    """`int | None` is evaluated nowhere: Python 3.9 cannot."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body) \
        or len(tree.body) < 3
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.Expr)):
            for part in ast.walk(node):
                assert not (isinstance(part, ast.BinOp) and isinstance(part.op, ast.BitOr)), (
                    f"{path}:{node.lineno}: write Union")
