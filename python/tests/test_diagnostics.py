"""Checks on arrays and ratios: those of the C++ room, and what they refuse."""

import copy
import math
import pickle

import numpy as np
import pytest
import scipy.stats
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import neyman
from neyman import diagnostics

X0 = neyman.Normal(0, 1).sample(5000, seed=1)
X1 = neyman.Normal(1, 1).sample(5000, seed=2)


def events(slope=-1.0, shift=0.5, **more):
    """log r = ½ − x is exact."""
    return neyman.RatioEvents(X0, X1, shift + slope * X0[:, 0], shift + slope * X1[:, 0], **more)


CHECKS = {
    "closure": diagnostics.closure, "normalisation": diagnostics.normalisation,
    "reliability": diagnostics.reliability,
    "reweighting": lambda found: diagnostics.reweighting(found, classifier="logistic", seed=1),
}


@pytest.mark.parametrize("name", CHECKS)
def test_exact_ratios_pass_and_wrong_ones_fail(name):
    right, wrong = CHECKS[name](events()), CHECKS[name](events(slope=-0.5))
    # Each warns with a probability of about 1 % (a fixed seed).
    assert right.name == wrong.name == name and right.verdict == "pass" and right.p_value > 0.01
    assert wrong.verdict == "fail" and wrong.p_value < 1e-3
    assert right.description and isinstance(right.numbers, dict)


def test_all_of_a_ratio():
    p = neyman.Normal("mu", 1, parameters={"mu": (-1, 1)})
    exact = neyman.ExactRatio(p)
    x0, x1 = p.sample(4000, 0.5, seed=3), p.sample(4000, -0.5, seed=4)
    found = neyman.diagnose(exact, x0, x1, 0.5, -0.5, seed=1, exact=exact)
    assert [one.name for one in found] == diagnostics.ratio_diagnostics()
    assert {one.verdict for one in found} == {"pass"}
    # The same as with the log-ratios as arrays, and of Samples with weights of one.
    same = diagnostics.closure(neyman.RatioEvents(
        neyman.Samples(x0, weights=np.ones(4000)), neyman.Samples(x1, weights=np.ones(4000)),
        x0[:, 0], x1[:, 0]))
    assert math.isclose(same.statistic, found[diagnostics.ratio_diagnostics().index("closure")].statistic,
                        rel_tol=1e-9)


def test_between_two_samples():
    ratio = neyman.ClassifierRatio(X0, X1, classifier=LogisticRegression(), folds=2, replicas=0)
    x0, x1 = neyman.Normal(0, 1).sample(3000, seed=5), neyman.Normal(1, 1).sample(3000, seed=6)
    found = neyman.diagnose(ratio, x0, x1, which=["closure", "normalisation"])
    assert {one.verdict for one in found} == {"pass"}


def test_weights_count_as_repetition():
    twice = np.concatenate([X0, X0])
    with_weights = diagnostics.closure(neyman.RatioEvents(
        X0, X1, 0.5 - X0[:, 0], 0.5 - X1[:, 0], numerator_weights=np.full(5000, 2.0)))
    assert math.isclose(with_weights.statistic, diagnostics.closure(events()).statistic, rel_tol=1e-9)
    repeated = neyman.RatioEvents(twice, X1, 0.5 - twice[:, 0], 0.5 - X1[:, 0])
    # Events that are repeated look like more than they are.
    assert diagnostics.closure(repeated).statistic > diagnostics.closure(events()).statistic


def test_area_under_the_curve():
    found = diagnostics.area_under_curve(X0[:, 0], X1[:, 0])
    labels = np.repeat([0, 1], 5000)
    assert math.isclose(found.area, roc_auc_score(labels, np.concatenate([X0, X1])), rel_tol=1e-12)
    # Φ(1/√2), within five standard errors.
    assert abs(found.area - scipy.stats.norm.cdf(1 / math.sqrt(2))) < 5 * found.error
    assert found.p_value < 1e-6 and found.to_dict()["area"] == found.area
    weights = np.random.default_rng(1).uniform(0.5, 2, 5000)
    weighted = diagnostics.area_under_curve(X0[:, 0], X1[:, 0], denominator_weights=weights)
    assert math.isclose(weighted.area, roc_auc_score(
        labels, np.concatenate([X0, X1]), sample_weight=np.concatenate([np.ones(5000), weights])),
        rel_tol=1e-9)
    x, y = diagnostics.roc_curve(X0[:, 0], X1[:, 0], points=100)
    assert len(x) == len(y) <= 102 and np.all(np.diff(x) >= 0) and np.all(np.diff(y) >= 0)
    assert math.isclose(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2), found.area, abs_tol=2e-3)


def test_wilks_and_coverage():
    right = np.random.default_rng(1).chisquare(2, 500)
    assert diagnostics.wilks(right, degrees=2).verdict == "pass"
    found = diagnostics.wilks(right, degrees=1)
    assert found.verdict == "fail"
    assert found.p_value < 1e-3 and scipy.stats.kstest(right, "chi2", (1,)).pvalue < 1e-3
    assert diagnostics.coverage([0.683], [683], 1000).verdict == "pass"
    few = diagnostics.coverage([0.683], [600], 1000, tolerance=0)
    assert math.isclose(few.p_value, scipy.stats.binomtest(600, 1000, 0.683).pvalue, rel_tol=0.3)


def test_reference():
    grid = np.linspace(-1, 1, 41)
    noise = np.random.default_rng(2).normal(0, 0.05, (3, 50, 1))
    curves = {str(i): -10 * (grid - 0.1) ** 2 for i in range(3)}
    replicas = {str(i): curves[str(i)] + noise[i] * grid for i in range(3)}
    assert diagnostics.reference(grid, curves, replicas=replicas, seed=1).verdict == "pass"
    curves["2"] = -10 * (grid + 0.3) ** 2
    assert diagnostics.reference(grid, curves, replicas=replicas, seed=1).verdict == "fail"


def test_verdicts_of_a_set():
    # 0.004 warns alone, and not as one of four (Holm).
    one = diagnostics.wilks(np.random.default_rng(1).chisquare(1, 50), degrees=1)
    import dataclasses

    alone = dataclasses.replace(one, p_value=0.004)
    others = [dataclasses.replace(one, p_value=0.5)] * 3
    assert diagnostics.judge([alone])[0].verdict == "warn"
    assert [found.verdict for found in diagnostics.judge([alone, *others])] == ["pass"] * 4
    assert diagnostics.judge([]) == []


def test_shown_copied_and_drawn():
    found = diagnostics.reweighting(events(exact_log_ratios=0.5 - X1[:, 0]), classifier="logistic")
    assert "verdict" in repr(found) and "<table>" in found._repr_html_()
    for same in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert same == found
    pytest.importorskip("matplotlib").use("Agg")
    import neyman.plot
    from matplotlib import pyplot

    labels = neyman.plot.roc(found).get_legend_handles_labels()[1]
    assert any("weighted by r̂: AUC" in label for label in labels)
    assert neyman.plot.diagnostic(found).size >= 1
    neyman.plot.closure(diagnostics.closure(events()))
    neyman.plot.reliability(diagnostics.reliability(events()))
    with pytest.raises(neyman.ArgumentError, match="closure"):
        neyman.plot.closure(found)
    pyplot.close("all")


@pytest.mark.parametrize("call, words", [
    (lambda: neyman.RatioEvents(X0, X1[:, [0, 0]], X0, X1), "row of denominator"),
    (lambda: neyman.RatioEvents(X0, X1, X0[:3], X1), "numerator_log_ratios has 3"),
    (lambda: neyman.RatioEvents(X0, X1, X0, X1, denominator_weights=[1.0]), "denominator_weights"),
    (lambda: neyman.RatioEvents([[np.nan]], X1, [0.0], X1), "numerator"),
    (lambda: neyman.RatioEvents(X0, X1, X0, X1, feature_names=["a", "b"]), "feature_names"),
    (lambda: neyman.RatioEvents.of("ratio", X0, X1), "ratio is"),
    (lambda: diagnostics.closure(3), "events is 3"),
    (lambda: diagnostics.closure(events(), bins=0), "bins is 0"),
    (lambda: diagnostics.closure(events(), tolerance="a"), "tolerance"),
    (lambda: neyman.diagnose(neyman.ExactRatio(neyman.Normal(0, 1)), X0, X1, which=["clausure"]),
     "closure"),
    (lambda: diagnostics.wilks([-1.0], 1), "statistic"),
    (lambda: diagnostics.wilks([1.0], 0), "degrees"),
    (lambda: diagnostics.coverage([0.683], [2], 1), "inside|datasets"),
    (lambda: diagnostics.coverage([0.683], [1, 2], 3), "inside has 2"),
    (lambda: diagnostics.coverage([], [], 3), "levels is empty"),
    (lambda: diagnostics.reference([0, 1], {"a": [0, 1], "b": [0, 1]}), "grid"),
    (lambda: diagnostics.reference([0, 1, 2], {"a": [0, 1]}), "log_likelihoods has 1 curves"),
    (lambda: diagnostics.reference([0, 1, 2], {"a": [0, 1], "b": [0, 1]}), "log_likelihoods"),
    (lambda: diagnostics.judge([1]), r"diagnostics\[0\]"),
    (lambda: diagnostics.area_under_curve([], [1.0]), "numerator"),
])
def test_what_does_not_fit_is_named(call, words):
    with pytest.raises(neyman.ArgumentError, match=words):
        call()
