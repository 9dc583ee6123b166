"""The examples in Python run, as notebooks, and find what they should."""

import importlib.util
import json
import pathlib
import re

import pytest

pytest.importorskip("matplotlib").use("Agg")

import neyman  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "python"
SCRIPTS = sorted(FOLDER.glob("*.py"))

spec = importlib.util.spec_from_file_location("notebooks", ROOT / "tools" / "notebooks.py")
notebooks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(notebooks)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Examples write their figures where they run."""
    from matplotlib import pyplot

    monkeypatch.chdir(tmp_path)
    yield tmp_path
    pyplot.close("all")


def near(found, truth, name, deviations):
    """Whether the estimate is so many of its own standard deviations from another at most."""
    return abs(found.theta[name] - truth.theta[name]) < deviations * truth.error[name]


def exact_fit(space):
    return neyman.Likelihood(neyman.ExactRatio(space["p"]), space["observed"]).fit()


def test_mixture(folder):
    space = notebooks.run(FOLDER / "01_mixture.ipynb", {"samples": 40000, "datasets": 40})
    assert near(space["fit"], exact_fit(space), "gamma", 1.5)
    assert space["toys"].failed == 0
    assert {path.name for path in folder.iterdir()} == {"log_ratio.png", "likelihood.png",
                                                        "ensemble.png", "wilks.png"}


def test_multidimensional(folder):
    space = notebooks.run(FOLDER / "02_multidimensional.ipynb", {"samples": 60000})
    truth = exact_fit(space)
    assert near(space["fit"], truth, "alpha", 0.5) and near(space["fit"], truth, "beta", 0.5)
    assert {path.name for path in folder.iterdir()} == {"data.png", "contours.png"}


def test_scikit_learn(folder):
    pytest.importorskip("sklearn")
    space = notebooks.run(FOLDER / "03_scikit_learn.ipynb", {"samples": 16000})
    assert near(space["fit"], exact_fit(space), "mu", 1.5)
    assert {path.name for path in folder.iterdir()} == {"calibration.png", "roc.png",
                                                        "profile.png", "closure.png"}


@pytest.mark.parametrize("name, values, words", [
    ("01_mixture", {"samples": 8000, "datasets": 10}, "γ = "),
    ("02_multidimensional", {"samples": 20000}, "alpha = "),
    ("03_scikit_learn", {"samples": 8000}, "μ = "),
])
def test_notebooks_run_in_jupyter(name, values, words, folder):
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    nbformat = pytest.importorskip("nbformat")
    book = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    place = next(i for i, cell in enumerate(book.cells)
                 if "parameters" in cell.metadata.get("tags", ()))
    book.cells.insert(place + 1, nbformat.v4.new_code_cell(
        "\n".join(f"{key} = {value!r}" for key, value in values.items())))
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3",
                            resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    assert words in "".join(output.get("text", "") for output in outputs)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_notebooks_are_as_their_scripts(script):
    made = notebooks.notebook_of(script.read_text(encoding="utf-8"))
    assert script.with_suffix(".ipynb").read_text(encoding="utf-8") == made, (
        "run tools/notebooks.py make")
    assert notebooks.code_of(script) == notebooks.code_of(script.with_suffix(".ipynb"))
    content = json.loads(made)
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in content["cells"]]
    assert len(set(ids)) == len(ids)


def test_the_second_example_has_less_than_40_lines():
    code = notebooks.code_of(FOLDER / "02_multidimensional.py")
    lines = [line for _, source in code for line in source.splitlines() if line.strip()]
    assert 20 < len(lines) < 40


def test_parameters_that_are_not_there_are_refused():
    with pytest.raises(ValueError, match="02_multidimensional.py has no parameter sample"):
        notebooks.run(FOLDER / "02_multidimensional.py", {"sample": 10})


def test_cells_of_a_script():
    script = "# %% [markdown]\n# # Title\n#\n# text\n\n# %% parameters\nn = 3\n\n# %%\nm = n + 1\n"
    assert list(notebooks.cells_of(script)) == [
        ("markdown", "# Title\n\ntext"), ("parameters", "n = 3"), ("", "m = n + 1")]
    with pytest.raises(ValueError, match="must begin with a cell"):
        list(notebooks.cells_of("x = 1\n# %%\n"))


def test_examples_are_all_tested():
    tested = re.findall(r'FOLDER / "(\w+)\.ipynb"', pathlib.Path(__file__).read_text())
    assert sorted(tested) == [script.stem for script in SCRIPTS]
