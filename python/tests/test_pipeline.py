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


def test_a_study_of_a_phase(tmp_path):
    """x ~ N((cos φ, sin φ), 1) at φ = 3.1: the interval goes over the seam, and the model keeps it."""
    phase = {"range": [-np.pi, np.pi], "truth": 3.1, "periodic": True}
    result = neyman.run({
        "study": {"name": "phase", "seed": 1}, "parameters": {"phi": phase},
        "simulator": {"kind": "join", "parts": [{"kind": "normal", "mean": "cos(phi)", "sigma": 1},
                                                {"kind": "normal", "mean": "sin(phi)", "sigma": 1}]},
        "training": {"samples": 10000}, "classifier": {"kind": "separable", "hidden": []},
        "data": {"events": 200}, "diagnostics": {"which": []}, "report": {"figures": False}})
    out = result.to_dict()
    assert out["study"]["parameters"]["phi"]["periodic"] is True
    for fit in (out["fit"], out["exact_fit"]):
        found = fit["parameters"]["phi"]
        (low, high), = found["interval_pieces"]["0.95"]
        assert fit["status"] == "converged" and low <= found["estimate"] <= high
        assert "0.95" in found["interval_over_seam"] and 0.2 < high - low < 0.4
        assert "at_bound" not in found and "interval_at_bound" not in found
    assert not any("range" in warning or "maximum" in warning for warning in out["warnings"])
    result.model.save(tmp_path / "model.h5")
    model = neyman.load_model(tmp_path / "model.h5")
    assert model.parameters.periodic == ["phi"]
    assert model.fit(np.array(result._run.data)).fit.to_dict() == result.fit.to_dict()


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


TWO = {
    "study": {"seed": 5},
    "parameters": {"mu": {"range": [-3, 3]}},
    "simulator": {"kind": "multivariate-normal", "mean": ["mu", 0], "covariance": [[1, 0], [0, 0.01]]},
    "training": {"samples": 4000},
    "classifier": {"hidden": [], "degree": 2},
    "diagnostics": {"which": []},
    "report": {"figures": False},
}


def two_features(n=400, mean=1.0):
    rng = np.random.default_rng(3)
    return np.column_stack([rng.normal(mean, 1.0, n), rng.normal(0.0, 0.1, n)])


def test_observed_events_may_be_an_array(tmp_path):
    x = two_features()
    result = neyman.run(TWO, data=x)
    assert result.study.events == 400 and result.study.data == "an array"
    assert abs(result.fit.parameters.mu.estimate - 1.0) < 5 * result.fit.parameters.mu.error
    # Names decide where there are some.
    named = np.zeros(len(x), dtype=[("x1", float), ("x0", float)])
    named["x0"], named["x1"] = x.T
    for data in (named, neyman.Samples(x[:, ::-1], feature_names=["x1", "x0"])):
        assert neyman.run(TWO, data=data).fit.parameters.mu.estimate == (
            result.fit.parameters.mu.estimate)
    with pytest.raises(neyman.StudyError, match="has the columns a, b, but must have x0, x1"):
        neyman.Study(TWO, data=neyman.Samples(x, feature_names=["a", "b"]))
    # In a folder the fit is done again where the data are others, and the training is kept.
    out = tmp_path / "out"
    study = neyman.Study(TWO, data=x)
    first = neyman.run(study, out=out)
    assert first.fit.to_dict() == result.fit.to_dict()
    other = neyman.run(TWO, data=x + [0.5, 0.0], out=out)
    assert other.fit.parameters.mu.estimate > result.fit.parameters.mu.estimate + 0.3
    assert other.timing.train == first.timing.train


def test_weights_of_observed_events_count():
    x = two_features()
    weights = np.where(x[:, 0] > 1.0, 2.0, 1.0)
    weighted = neyman.run(TWO, data=neyman.Samples(x, weights=weights))
    assert weighted.fit.parameters.mu.estimate > 1.1


@pytest.mark.parametrize("call, error, words", [
    (lambda: neyman.Study({**TWO, "data": two_features()}), neyman.ArgumentError, "data=x"),
    (lambda: neyman.Study({**TWO, "data": {"x": two_features()}}), neyman.ArgumentError, "data=x"),
    (lambda: neyman.Study({**TWO, "data": "observed.csv"}), neyman.StudyError, "must be a table"),
    (lambda: neyman.run(neyman.Study(TWO, data=two_features()), data=two_features()),
     neyman.ArgumentError, "data is given beside"),
    (lambda: neyman.Study(TWO, data=two_features()[:, :1]), neyman.StudyError, "1 columns without"),
    (lambda: neyman.Study(TWO, data="observed.csv"), neyman.ArgumentError, "x is an array of <U"),
    (lambda: neyman.Study({**TWO, "data": {"weights": "w"}}, data=two_features()), neyman.StudyError,
     "data.weights"),
])
def test_observed_events_that_do_not_fit(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_models_take_columns_by_name():
    model = neyman.run(TWO, data=two_features()).model
    x = two_features(200)
    straight = model.fit(x).fit.parameters.mu.estimate
    swapped = neyman.Samples(x[:, ::-1], feature_names=["x1", "x0"])
    assert model.fit(swapped).fit.parameters.mu.estimate == straight
    assert neyman.Likelihood(model.ratio, swapped)([0.5]) == neyman.Likelihood(model.ratio, x)([0.5])
    np.testing.assert_array_equal(model.ratio.log_ratios(swapped, 0.5, 0.0),
                                  model.ratio.log_ratios(x, 0.5, 0.0))
    with pytest.raises(neyman.ArgumentError, match="has the columns a, b, but must have x0, x1"):
        model.fit(neyman.Samples(x, feature_names=["a", "b"]))


def test_a_mixture_has_a_default_reference():
    study = {key: value for key, value in STUDY.items() if key != "reference"}
    assert neyman.run(study).study.reference.gamma == 0.5
    three = neyman.Mixture([neyman.Normal(0, 1), neyman.Normal(2, 1), neyman.Normal(4, 1)],
                           ["1 - a - b", "a", "b"], parameters={"a": (0, 1), "b": (0, 1)})
    ratio = neyman.DecomposedRatio(three, samples=3000, classifier="logistic", folds=2, replicas=0)
    # The mean of the triangle of allowed points is a third of each.
    assert np.all(np.isfinite(ratio.log_ratios([0.0, 5.0], [0.1, 0.2], [1 / 3, 1 / 3])))


def test_checks_have_the_same_attributes(result):
    for check in result.diagnostics:
        assert isinstance(check.note, str)
        assert check.p_value is None or 0 <= check.p_value <= 1
        with pytest.raises(AttributeError):
            check.nothing


def _counted(function):
    """A simulator of the study's and how many events it was asked for."""
    calls = []

    def simulate(theta, n, rng):
        calls.append(n)
        return function(theta, n, rng)

    return simulate, calls


def test_a_function_is_called_as_often_as_the_training_and_a_share_for_checks():
    """Tried for its columns and in the ranges, trained on, and 15 % for checks: no more."""
    simulate, calls = _counted(lambda theta, n, rng: rng.normal(theta[0], 1, (n, 6)))
    result = neyman.run({"parameters": {"a": {"range": [-1, 1], "truth": 0.3}}, "simulator": simulate,
                         "training": {"samples": 3000}, "data": {"events": 1},
                         "report": {"figures": False}})
    assert sum(calls) <= 1.2 * 3000
    assert result.budget["simulated"] == 3000
    assert 300 <= result.budget["diagnostics"] <= 450
    assert "recovery" in [check.name for check in result.diagnostics]
    # What is asked for by a key is what is simulated.
    more = neyman.run({"parameters": {"a": {"range": [-1, 1], "truth": 0.3}}, "simulator": simulate,
                       "training": {"samples": 3000}, "data": {"events": 1},
                       "diagnostics": {"budget": 2000}, "report": {"figures": False}})
    assert 1500 <= more.budget["diagnostics"] <= 2000


@pytest.mark.parametrize("most", [0.3, 0.02, 0.005])
def test_a_parameter_that_moves_few_events_is_not_refused(most):
    """64 events of a signal of half a percent are the same whatever its place is: no proof."""
    def simulate(theta, n, rng):
        f, m = np.broadcast_to(theta, (n, 2)).T
        return np.where(rng.random(n) < f, m + 0.3 * rng.standard_normal(n), 10 * rng.random(n))

    parameters = {"f": (0, most), "m": (0, 10)}
    neyman.Study({"parameters": {"f": {"range": [0, most], "truth": most / 2},
                                 "m": {"range": [0, 10], "truth": 4}},
                  "simulator": neyman.PythonSimulator(simulate, parameters, per_row=True),
                  "training": {"samples": 2000}, "data": {"events": 500}})


@pytest.mark.parametrize("truth", [0.0, 0.003, 0.3, 0.8])
def test_a_good_result_does_not_fail_far_from_the_middle(truth):
    """A narrow normal, several of its widths away from the middle of the range: near the estimate all
    is well, and far from it nothing can be said. (One study in a thousand fails by chance.)"""
    result = neyman.run({"study": {"seed": 1}, "parameters": {"m": {"range": [-1, 1], "truth": truth}},
                         "simulator": {"kind": "normal", "mean": "m", "sigma": 0.1},
                         "training": {"samples": 50000}, "data": {"events": 300},
                         "report": {"figures": False}})
    assert {check.verdict for check in result.diagnostics} <= {"pass", "no power"}
    # Where finite simulation adds little too, there is nothing to do.
    short = result.fit.parameters.m.simulation_error > 0.25 * result.fit.parameters.m.statistical_error
    assert ("next_steps" in result.to_dict()) == bool(result.next_steps) == short
    assert [w for w in result.warnings if "finite simulation adds" in w] == [] or short


def test_an_interval_that_is_far_too_wide_is_found():
    """x = m + an exponential has a sharp edge at m, which a sum of polynomials washes out: the middle
    of the range, where the estimate is, would see nothing."""
    def simulate(theta, n, rng):
        return theta[..., 0] + rng.exponential(size=n)

    result = neyman.run({"study": {"seed": 3}, "parameters": {"m": {"range": [0, 2], "truth": 1.0}},
                         "simulator": neyman.PythonSimulator(simulate, {"m": (0, 2)}, per_row=True),
                         "training": {"samples": 100000}, "data": {"events": 300},
                         "classifier": {"kind": "separable"}, "report": {"figures": False}})
    assert result.fit.parameters.m.error > 3 / 300  # one over the events would be right
    assert "fail" in [check.verdict for check in result.diagnostics if ":" not in check.name]
    assert [w for w in result.warnings if "smallest values of x end at a sharp edge" in w]
    # What to do: a density follows the edge.
    steps = {step["what"]: step["set"].to_dict() for step in result.next_steps}
    assert steps["Let a density follow the moving edge"] == {"classifier.kind": "density"}, steps


def test_new_data_are_checked_without_the_simulator():
    model = neyman.run(TWO, data=two_features()).model
    x = two_features(300)
    assert [check.verdict for check in model.fit(x).diagnostics] == ["pass"]
    x[:100, 1] += 50.0
    check = model.fit(x).diagnostics[0]
    assert (check.name, check.verdict, check.statistic) == ("range", "fail", 1 / 3)
    assert "unlike all simulated events" in check.note
