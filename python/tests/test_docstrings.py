"""The examples in the docstrings give what they say."""

import doctest
import importlib
import pkgutil

import matplotlib
import neyman
import pytest

matplotlib.use("Agg")

MODULES = ["neyman"] + [f"neyman.{module.name}" for module in pkgutil.iter_modules(neyman.__path__)
                        if module.name not in ("_core", "libneyman")]  # the compiled ones


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    examples = [example for name in MODULES for found in finder.find(importlib.import_module(name))
                for example in found.examples]
    assert len(examples) > 100
