"""Whole studies, from files and from dicts."""

import json
import pathlib
import pickle

import numpy as np
import pytest

import neyman

STUDY = {
    "study": {"name": "small", "seed": 3},
    "parameters": {"gamma": {"range": [0, 1], "truth": 0.3}},
    "simulator": {"kind": "mixture", "weights": ["1 - gamma"],
                  "components": [{"kind": "normal", "mean": 0, "sigma": 1},
                                 {"kind": "normal", "mean": 2, "sigma": 1}]},
    "reference": {"gamma": 0.5},
    "training": {"samples": 6000, "folds": 2},
    "classifier": {"kind": "logistic"},
    "data": {"events": 1000},
    "report": {"figures": False},
}
TOML = """
[study]
name = "small"
seed = 3
[parameters]
gamma = { range = [0, 1], truth = 0.3 }
[simulator]
kind = "mixture"
weights = ["1 - gamma"]
components = [{ kind = "normal", mean = 0, sigma = 1 }, { kind = "normal", mean = 2, sigma = 1 }]
[reference]
gamma = 0.5
[training]
samples = 6000
folds = 2
[classifier]
kind = "logistic"
[data]
events = 1000
[report]
figures = false
"""
CHANGING = ("timing", "threads", "command")


def same_parts(result):
    return {key: value for key, value in result.to_dict().items() if key not in CHANGING}


@pytest.fixture(scope="module")
def result():
    return neyman.run(STUDY)


def test_a_dict_is_a_study(result, tmp_path):
    (tmp_path / "study.toml").write_text(TOML)
    from_file = neyman.run(tmp_path / "study.toml")
    assert same_parts(from_file) == same_parts(result)
    made = {**STUDY, "simulator": neyman.distribution(STUDY["simulator"]),
            "classifier": neyman.Logistic()}
    assert same_parts(neyman.run(made)) == same_parts(result)


def test_results_have_attributes(result):
    assert result.fit.status == "converged" and result.finished
    gamma = result.fit.parameters.gamma
    assert abs(gamma.estimate - 0.3) < 5 * gamma.error
    assert gamma.estimate == result["fit"]["parameters"]["gamma"]["estimate"]
    low, high = gamma.interval["0.683"]
    assert low < gamma.estimate < high
    assert json.loads(json.dumps(result.to_dict())) == result.to_dict()
    assert "γ" in repr(result) and "gamma" in result._repr_html_()
    assert "fit" in dir(result) and "status" in result.fit._repr_html_()
    with pytest.raises(AttributeError, match="there is no 'fot'.*fit"):
        result.fot


def test_the_model_is_used_on(result, tmp_path):
    x = neyman.distribution(STUDY["simulator"], parameters={"gamma": (0, 1)}).sample(
        2000, 0.6, seed=9)
    model = result.model
    likelihood = model.likelihood(x)
    best = likelihood.fit()
    assert abs(best.theta["gamma"] - 0.6) < 5 * best.error["gamma"]
    fitted = model.fit(x)
    assert fitted.fit.parameters.gamma.estimate == pytest.approx(best.theta["gamma"])
    model.save(tmp_path / "model.h5")
    loaded = neyman.load_model(tmp_path / "model.h5")
    assert loaded.likelihood(x)(0.4) == likelihood(0.4)
    same = pickle.loads(pickle.dumps(model))
    assert same.likelihood(x)(0.4) == likelihood(0.4)
    for points in ({}, {"numerator": 0.3}):
        model.export_onnx(tmp_path / "model.onnx", **points)
        model.ratio.export_onnx(tmp_path / "ratio.onnx", **points)
        assert (tmp_path / "model.onnx").read_bytes() == (tmp_path / "ratio.onnx").read_bytes()
    (tmp_path / "model.h5").write_bytes(b"nothing")
    with pytest.raises(neyman.FileError, match="model.h5"):
        neyman.load_model(tmp_path / "model.h5")


def test_runs_in_a_folder_go_on(result, tmp_path):
    first = neyman.run(STUDY, out=tmp_path, until="train")
    assert not first.finished
    assert (tmp_path / "stages").is_dir() and not (tmp_path / "results.json").exists()
    whole = neyman.run(STUDY, out=tmp_path)
    assert whole.finished and same_parts(whole)["fit"] == same_parts(result)["fit"]
    assert (tmp_path / "report.html").exists()
    assert json.loads((tmp_path / "results.json").read_text())["fit"] == whole.to_dict()["fit"]
    assert neyman.load_model(tmp_path / "model.h5").parameters.names == ["gamma"]
    assert whole.model is not None
    with pytest.raises(neyman.ArgumentError, match="stage"):
        neyman.run(STUDY, out=tmp_path, until="trian")
    with pytest.raises(neyman.ArgumentError, match="until"):
        neyman.run(STUDY, until="train")


def test_results_are_written_where_wanted(result, tmp_path):
    written = result.write(tmp_path, figures=False)
    assert {"results.json", "report.html", "model.h5"} <= {pathlib.Path(p).name for p in written}


def test_seeds(result):
    other = neyman.run(STUDY, seed=4)
    assert other.study.seed == 4
    assert other.fit.parameters.gamma.estimate != result.fit.parameters.gamma.estimate
    assert neyman.Study(STUDY).seed == 3


def test_all_problems_are_told_at_once():
    wrong = {**STUDY, "parameters": {"gamma": {"range": [1, 0]}}, "classifier": {"kind": "mpl"},
             "traning": {}}
    with pytest.raises(neyman.StudyError) as caught:
        neyman.Study(wrong)
    keys = [key for key, _ in caught.value.problems]
    assert "parameters.gamma.range" in keys and "traning" in keys and "classifier.kind" in keys
    assert "traning" in str(caught.value)
    with pytest.raises(neyman.FileError, match="absent"):
        neyman.Study("absent.toml")
    with pytest.raises(neyman.ArgumentError, match="settings|study"):
        neyman.run({"study": {"name": object()}})


def test_studies_of_arrays():
    study = neyman.Study({**STUDY, "simulator": {
        "kind": "multivariate-normal", "mean": ["gamma", 0],
        "covariance": np.array([[1, 0.5], [0.5, 1]])}, "reference": None,
        "classifier": {"kind": "separable"}})
    assert study.name == "small" and study.parameters.names == ["gamma"]


MEASUREMENT = {
    "study": {"name": "search", "seed": 2},
    "parameters": {"mu": {"range": [0, 3], "truth": 1},
                   "size": {"range": [0.5, 1.5], "truth": 1, "role": "nuisance",
                            "constraint": {"kind": "gaussian", "mean": 1, "sigma": 0.1}}},
    "simulator": {"kind": "mixture", "yields": ["100*mu", "300*size"],
                  "components": [{"name": "signal", "kind": "normal", "mean": 2, "sigma": 1},
                                 {"name": "background", "kind": "normal", "mean": 0, "sigma": 1}]},
    "training": {"samples": 5000, "folds": 2},
    "classifier": {"kind": "logistic"},
    "measurement": {"simulated": 2000},
    "report": {"figures": False},
}


def test_the_model_of_a_measurement(tmp_path):
    result = neyman.run(MEASUREMENT)
    summary = result.measurement_summary
    assert summary.to_dict() == result.measurement.to_dict()
    assert summary.model.interest == "mu" and summary.model.workspace is None
    with pytest.raises(TypeError, match="statistical_model"):
        pickle.dumps(summary.model)
    assert "standard deviations" in repr(result)
    result.model.save(tmp_path / "model.h5")
    model = neyman.load_model(tmp_path / "model.h5")
    assert model.is_measurement and not neyman.run(STUDY).model.is_measurement
    # The run's own data give the run's own numbers.
    x = np.array(result._run.data)
    again = model.fit(x)
    assert again.measurement.to_dict() == result.measurement.to_dict()
    assert again.fit.to_dict() == result.fit.to_dict()
    assert again.write(tmp_path / "out", figures=False)
    # Everything of neyman.measurements takes its statistical model, also from a pickle.
    statistical = model.statistical_model(x)
    fit = neyman.measurements.fit_model(statistical)
    assert fit.theta["mu"] == result.measurement.fit.parameters.mu.estimate
    same = pickle.loads(pickle.dumps(statistical))
    assert neyman.measurements.fit_model(same).theta == fit.theta
    found = neyman.measurements.discovery(statistical)
    assert not found.impossible
    assert found.significance == result.measurement.discovery.significance
    # There is no ratio between two θ.
    for ask in (lambda: model.ratio, lambda: model.likelihood(x)):
        with pytest.raises(neyman.ArgumentError, match="statistical_model"):
            ask()
    with pytest.raises(neyman.ArgumentError, match="must be of a measurement"):
        neyman.run(STUDY).model.statistical_model(x)
    with pytest.raises(neyman.ArgumentError, match="feature_names"):
        model.fit(np.zeros((4, 2)))


def test_the_graph_of_a_measurement(tmp_path):
    onnx = pytest.importorskip("onnx")
    model = neyman.run(MEASUREMENT).model
    model.export_onnx(tmp_path / "events.onnx")
    graph = onnx.load(str(tmp_path / "events.onnx"))
    # Shapes that move with a parameter have it as an input; here there are none.
    assert [value.name for value in graph.graph.input] == ["x"]
    assert [value.name for value in graph.graph.output] == ["log_r", "sign"]
    metadata = {entry.key: entry.value for entry in graph.metadata_props}
    assert metadata["components"] == "signal, background"
    assert metadata["yields"] == "100*mu; 300*size"
    with pytest.raises(neyman.ArgumentError, match="numerator and denominator are given"):
        model.export_onnx(tmp_path / "no.onnx", numerator={"mu": 1, "size": 1})
    assert not (tmp_path / "no.onnx").exists()
    evaluator = pytest.importorskip("onnx.reference").ReferenceEvaluator
    x = np.array([[0.1], [2.2], [-0.7], [1.8]])
    logs, signs = evaluator(graph).run(None, {"x": x})
    assert (signs == 1).all()

    def likelihood(mu, size):
        yields = np.array([100 * mu, 300 * size])
        return np.log(np.exp(logs) @ yields).sum() - yields.sum() - 0.5 * ((size - 1) / 0.1) ** 2
    mine = model.statistical_model(x).likelihood()
    assert mine([0.5, 1.1]) - mine([1, 1]) == pytest.approx(
        likelihood(0.5, 1.1) - likelihood(1, 1), abs=1e-9)
