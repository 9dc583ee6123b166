"""Ratios, against the exact ones."""

import pickle

import numpy as np
import pytest

import neyman

NORMAL = neyman.Normal("mu", 1, parameters={"mu": (-1, 1)})
MIXTURE = neyman.Mixture([neyman.Normal(0, 1), neyman.Normal(2, 1)], ["1 - gamma"],
                         parameters={"gamma": (0, 1)})
X = np.linspace(-2, 3, 11)


def test_exact():
    ratio = neyman.ExactRatio(NORMAL)
    np.testing.assert_allclose(ratio.log_ratios(X, 1, -1), 2 * X)
    same = pickle.loads(pickle.dumps(ratio))
    np.testing.assert_array_equal(same.log_ratios(X, 1, -1), ratio.log_ratios(X, 1, -1))
    with pytest.raises(neyman.ArgumentError, match="denominator"):
        ratio.log_ratios(X, 1)
    with pytest.raises(neyman.ArgumentError, match="density"):
        neyman.ExactRatio(neyman.Ricker(3, 10, 0.3, observations=3))


def learned():
    x0, x1 = neyman.Normal(0, 1).sample(4000, seed=1), neyman.Normal(1, 1).sample(4000, seed=2)
    events = neyman.simulate(NORMAL, 8000, design="sobol", seed=3)
    yield (neyman.ClassifierRatio(x0, x1, classifier=neyman.Logistic(), folds=2, seed=1), (),
           0.5 - X)
    yield (neyman.DecomposedRatio(MIXTURE, 0.5, samples=8000, classifier="logistic", folds=2,
                                  replicas=2, seed=1), (0.1, 0.5),
           neyman.ExactRatio(MIXTURE).log_ratios(X, 0.1, 0.5))
    yield (neyman.SeparableRatio(events, "sobol", NORMAL.parameters, hidden=[], degree=2, seed=1),
           (0.8, 0.0), 0.8 * X - 0.32)
    yield (neyman.ParameterizedRatio(NORMAL, classifier=neyman.Mlp(hidden=[16], epochs=10),
                                     samples=20000, seed=1), (0.8, 0.0), 0.8 * X - 0.32)


def test_learned_ratios_come_close_and_are_kept(tmp_path):
    for ratio, points, exact in learned():
        found = ratio.log_ratios(X, *points)
        # The errors of some thousand events; a wrong sign or side is off by more than one.
        assert np.abs(found - exact).max() < 0.5, ratio
        assert ratio.count_outside(X) <= len(X)
        ratio.save(tmp_path / "ratio.h5")
        for same in (pickle.loads(pickle.dumps(ratio)), neyman.load_ratio(tmp_path / "ratio.h5")):
            assert type(same) is type(ratio)
            np.testing.assert_array_equal(same.log_ratios(X, *points), found)
            assert same.parameters == ratio.parameters
        ratio.export_onnx(tmp_path / "ratio.onnx", *points)
        assert b"log_r" in (tmp_path / "ratio.onnx").read_bytes()


def test_exported_graphs_have_the_same_values(tmp_path):
    onnx = pytest.importorskip("onnx")
    evaluator = pytest.importorskip("onnx.reference").ReferenceEvaluator
    for ratio, points, _ in learned():
        ratio.export_onnx(tmp_path / "ratio.onnx", *points)
        graph = evaluator(onnx.load(str(tmp_path / "ratio.onnx")))
        values = graph.run(None, {"x": X.reshape(-1, 1)})[0]
        np.testing.assert_allclose(values, ratio.log_ratios(X, *points), atol=2e-5)
    with pytest.raises(neyman.ArgumentError, match="must be a learned one"):
        neyman.ExactRatio(NORMAL).export_onnx(tmp_path / "no.onnx")


def test_angles_and_phases():
    rng = np.random.default_rng(1)
    theta = rng.uniform(-np.pi, np.pi, (4000, 1))
    x = np.column_stack([(theta[:, 0] + 0.5 * rng.standard_normal(4000) + np.pi) % (2 * np.pi) - np.pi])
    events = neyman.Samples(x, theta=theta, parameter_names=["phi"], feature_names=["angle"])
    told = {"phi": {"range": (-np.pi, np.pi), "periodic": True}}
    angles = {"angle": (-np.pi, np.pi)}
    for kind, options in ((neyman.SeparableRatio, {"hidden": []}),
                          (neyman.DensityRatio, {"hidden": [16], "members": 2, "epochs": 10}),
                          (neyman.LearnedRatio, {"effort": "quick"})):
        ratio = kind(events, "uniform", told, periodic=angles, seed=1, **options)
        at_the_seam = ratio.log_ratios([[3.0], [3.0 - 2 * np.pi]], np.pi, 0.5)
        assert at_the_seam[0] == pytest.approx(at_the_seam[1], abs=1e-3)
        other_end = ratio.log_ratios([[3.0], [3.0]], -np.pi, 0.5)
        assert other_end[0] == pytest.approx(at_the_seam[0], abs=1e-3)
        assert at_the_seam[0] > 3
        for wrong, words in (({"angel": (0, 1)}, "did you mean 'angle'"), ({"angle": (1, 0)}, "angle"),
                             ({"angle": 3}, "period"), ([1], "mapping")):
            with pytest.raises(neyman.ArgumentError, match=words):
                kind(events, "uniform", told, periodic=wrong, **options)


def test_pandas_by_name():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": X, "other": np.zeros_like(X)})
    events = neyman.simulate(NORMAL, 2000, design="sobol", seed=3)
    ratio = neyman.SeparableRatio(events, "sobol", NORMAL.parameters, hidden=[], degree=2)
    np.testing.assert_array_equal(ratio.log_ratios(frame, 0.5, 0), ratio.log_ratios(X, 0.5, 0))


def test_arrays_of_theta_and_x_train_every_model():
    """θ of a prior that leaves most of the ranges empty."""
    rng = np.random.default_rng(1)
    theta = rng.normal(size=(6000, 1))
    x = theta + rng.normal(size=theta.shape)
    events = neyman.Samples(x, theta=theta, parameter_names=["mu"])
    wide = {"mu": (-20, 20)}
    ratios = [neyman.SeparableRatio(events, None, wide, hidden=[], degree=2, seed=1),
              neyman.DensityRatio(events, None, wide, hidden=[16], members=2, seed=1),
              neyman.DensityRatio(events, None, wide, of="parameters", hidden=[16], members=2,
                                  seed=1),
              neyman.LearnedRatio(events, None, wide, effort="quick", seed=1),
              neyman.ParameterizedRatio(events, None, wide,
                                        classifier=neyman.Mlp(hidden=[16], epochs=10), seed=1)]
    for ratio in ratios:
        log_r = ratio.log_ratios(X, 0.8, 0.0)
        assert np.sqrt(np.mean((log_r - (0.8 * X - 0.32)) ** 2)) < 0.25, ratio
        for kept in (ratio, pickle.loads(pickle.dumps(ratio))):
            likelihood = neyman.Likelihood(kept, [0.5])
            assert likelihood(12.0) == likelihood(-12.0) == -np.inf
            assert likelihood(2.0) > -100
    with pytest.raises(neyman.ArgumentError, match="far from uniform in mu"):
        neyman.SeparableRatio(events, "sobol", wide)
    narrow = neyman.SeparableRatio(events, hidden=[], degree=2)
    assert abs(narrow.parameters.ranges["mu"][1] - theta.max()) < 0.5
    with pytest.raises(neyman.ArgumentError, match="samples, across asks for events"):
        neyman.ParameterizedRatio(events, across="on-demand", samples=5)


@pytest.mark.parametrize("call, words", [
    (lambda: neyman.ClassifierRatio([0.0, 1.0], [[0.0, 1.0]]), "denominator"),
    (lambda: neyman.ClassifierRatio([0.0], [1.0], folds=5), "event|fold"),
    (lambda: neyman.ClassifierRatio([0.0] * 9, [1.0] * 9, folds=-1), "folds is -1"),
    (lambda: neyman.ClassifierRatio([0.0] * 9, [1.0] * 9, classifier="mpl"), "mpl"),
    (lambda: neyman.ClassifierRatio([0.0] * 9, [1.0] * 9, numerator_weights=[1]), "weights"),
    (lambda: neyman.DecomposedRatio(NORMAL, 0, samples=100), "mixture"),
    (lambda: neyman.DecomposedRatio(MIXTURE, [1, 2], samples=100), "reference"),
    (lambda: neyman.ParameterizedRatio(NORMAL, "sobl"), "sobl"),
    (lambda: neyman.ParameterizedRatio(NORMAL, across="sideways"), "sideways"),
    (lambda: neyman.SeparableRatio(neyman.Samples([[1.0]]), "sobol", NORMAL.parameters), "θ|theta"),
])
def test_what_does_not_fit(call, words):
    with pytest.raises(neyman.ArgumentError, match=words):
        call()


@pytest.mark.parametrize("call, words", [
    (lambda: neyman.ParameterizedRatio(np.zeros((5, 1)), np.zeros((5, 1))),
     "ParameterizedRatio: simulator is .*must be a distribution.*SeparableRatio"),
    (lambda: neyman.DecomposedRatio("mixture", 0.5, samples=10), "simulator is 'mixture'"),
    (lambda: neyman.ExactRatio(lambda theta, n, rng: rng.normal(theta, 1, n)),
     "PythonSimulator.function, parameters."),
    (lambda: neyman.SeparableRatio(X, "sobol"), "events is .*must be Samples with theta"),
    (lambda: neyman.toys(None, neyman.ExactRatio(NORMAL), 0.0), "toys: simulator is None"),
    (lambda: neyman.toys(NORMAL, NORMAL, 0.0), "toys: ratio is .*must be a Ratio"),
    (lambda: neyman.coverage(NORMAL, None, [[0.0]], events=5), "coverage: ratio is None"),
    (lambda: neyman.simple_test(NORMAL, None, X, null=0, alternative=1), "ratio is None"),
])
def test_what_is_no_simulator_or_ratio_is_named(call, words):
    with pytest.raises(neyman.ArgumentError, match=words):
        call()


def test_columns_are_taken_by_name():
    two = neyman.MultivariateNormal(["mu", 0], [[1, 0], [0, 4]], parameters={"mu": (-3, 3)})
    ratio = neyman.ExactRatio(two)
    x = two.sample(50, 1.0, seed=2)
    swapped = neyman.Samples(x[:, ::-1], feature_names=["x1", "x0"])
    np.testing.assert_array_equal(ratio.log_ratios(swapped, 1, 0), ratio.log_ratios(x, 1, 0))
    assert neyman.Likelihood(ratio, swapped)([0.5]) == neyman.Likelihood(ratio, x)([0.5])
    with pytest.raises(neyman.ArgumentError, match="has the columns y, z, but must have x0, x1"):
        ratio.log_ratios(neyman.Samples(x, feature_names=["y", "z"]), 1, 0)
    # Of two samples with names, the second is read by the names of the first.
    top = neyman.Samples(x, feature_names=["a", "b"])
    bottom = neyman.Samples(two.sample(50, 0.0, seed=3), feature_names=["a", "b"])
    turned = neyman.Samples(bottom.x[:, ::-1], feature_names=["b", "a"])
    options = {"classifier": "logistic", "folds": 2, "replicas": 0, "seed": 1}
    np.testing.assert_array_equal(neyman.ClassifierRatio(top, bottom, **options).log_ratios(x),
                                  neyman.ClassifierRatio(top, turned, **options).log_ratios(x))
