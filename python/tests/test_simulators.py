"""Distributions: against SciPy, by every way of making them, and what they refuse."""

import copy
import pickle

import numpy as np
import pytest
import scipy.stats

import neyman

X = np.linspace(-3, 5, 41)
PAPER = {"kind": "mixture", "weights": ["(1 - gamma)/2", "(1 - gamma)/2", "gamma"],
         "components": [{"kind": "normal", "mean": -2, "sigma": 0.75},
                        {"kind": "normal", "mean": 0, "sigma": 2},
                        {"kind": "normal", "mean": 1, "sigma": 0.5}]}


@pytest.mark.parametrize("ours, theirs", [
    (neyman.Normal(1, 2), scipy.stats.norm(1, 2)),
    (neyman.Exponential(0.5, -1), scipy.stats.expon(-1, 2)),
    (neyman.Uniform(-1, 3), scipy.stats.uniform(-1, 4)),
])
def test_against_scipy(ours, theirs):
    np.testing.assert_allclose(ours.log_density(X), theirs.logpdf(X), rtol=1e-12)
    np.testing.assert_allclose(ours.cdf(X), theirs.cdf(X), rtol=1e-12, atol=1e-15)
    p = np.linspace(0.01, 0.99, 9)
    np.testing.assert_allclose(ours.quantile(p), theirs.ppf(p), rtol=1e-10, atol=1e-12)
    # A false alarm in 10^4 seeds.
    assert scipy.stats.kstest(ours.sample(20000, seed=5)[:, 0], theirs.cdf).pvalue > 1e-4


def test_multivariate_against_scipy():
    covariance = [[2, 0.5], [0.5, 1]]
    ours = neyman.MultivariateNormal([1, -1], covariance)
    x = ours.sample(100, seed=1)
    np.testing.assert_allclose(ours.log_density(x),
                               scipy.stats.multivariate_normal([1, -1], covariance).logpdf(x))


def test_formulas_and_points():
    p = neyman.distribution(PAPER, parameters={"gamma": (0, 1)})
    assert isinstance(p, neyman.Mixture) and p.dimension == 1 and p.has_density and p.has_cdf
    parts = [scipy.stats.norm(-2, 0.75), scipy.stats.norm(0, 2), scipy.stats.norm(1, 0.5)]
    wanted = np.log(sum(w * part.pdf(X) for w, part in zip([0.475, 0.475, 0.05], parts)))
    for theta in (0.05, [0.05], {"gamma": 0.05}, np.array([0.05])):
        np.testing.assert_allclose(p.log_density(X, theta), wanted, rtol=1e-12)
    with pytest.raises(neyman.ArgumentError, match="theta is"):
        p.log_density(X)
    with pytest.raises(neyman.ArgumentError, match="gamma"):
        p.sample(10, {"delta": 1})


def test_parts_take_the_parameters_of_the_whole():
    part = neyman.Normal("mu", 1)
    with pytest.raises(neyman.ArgumentError, match="mu"):
        part.sample(1)
    whole = neyman.Join([part, neyman.Exponential("exp(mu)")], parameters={"mu": (-1, 1)})
    assert whole.sample(5, 0.5).shape == (5, 2)
    np.testing.assert_allclose(part.with_parameters({"mu": (0, 9)}).log_density([4.0], 4),
                               scipy.stats.norm.logpdf(0))
    moved = neyman.LinearTransform(whole, [[1, 0], [1, 1]], [0, 5], parameters={"mu": (-1, 1)})
    np.testing.assert_allclose(moved.log_density([[1.0, 7.0]], 0.5),
                               whole.log_density([[1.0, 1.0]], 0.5))


def test_a_kind_without_a_class_of_its_own():
    bins = neyman.distribution("histogram", edges=[0, 1, 3], counts=[1, 3])
    np.testing.assert_allclose(np.exp(bins.log_density([0.5, 2.0])), [0.25, 0.375])
    assert type(bins) is neyman.Distribution and "histogram" in repr(bins) or bins.kind == "histogram"


def test_every_kind_can_be_asked_for():
    for kind in neyman.distribution_kinds():
        with pytest.raises(neyman.ArgumentError) as caught:
            neyman.distribution(kind, parameters={}, no_such_key=1)
        assert kind in str(caught.value)
    with pytest.raises(neyman.ArgumentError, match="did you mean"):
        neyman.distribution("normall", mean=0, sigma=1)


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy,
                                 lambda held: pickle.loads(pickle.dumps(held))])
def test_copies_are_the_same(how):
    p = neyman.Mixture([neyman.Normal(0, 1), neyman.Uniform(0, 1)], ["gamma"],
                       parameters={"gamma": (0, 1)})
    same = how(p)
    assert type(same) is neyman.Mixture and same.parameters == p.parameters
    np.testing.assert_array_equal(same.sample(20, 0.5, seed=9), p.sample(20, 0.5, seed=9))
    assert neyman.distribution(p.to_dict(), parameters=p.parameters).to_dict() == p.to_dict()


def test_streams_are_named_by_seed_and_purpose():
    p = neyman.Normal(0, 1)
    assert np.array_equal(p.sample(10, seed=1), p.sample(10, seed=1))
    assert not np.array_equal(p.sample(10, seed=1), p.sample(10, seed=2))
    assert not np.array_equal(p.sample(10, seed=1), p.sample(10, seed=1, purpose="another"))
    assert p.sample(0).shape == (0, 1)


def test_fit():
    p = neyman.Normal("mu", "sigma", parameters={"mu": (-9, 9), "sigma": (0.1, 9)})
    x = p.sample(1000, [1, 2], seed=3)
    found = p.fit(x)
    assert found.converged and found.at_limit == []
    assert found.theta["mu"] == pytest.approx(x.mean(), abs=1e-4)
    assert found.theta["sigma"] == pytest.approx(x.std(), abs=1e-4)
    fixed = p.fit(x, start=[0.5, 1], fixed=["mu"])
    assert fixed.theta["mu"] == 0.5
    assert fixed.theta["sigma"] == pytest.approx(np.sqrt(np.mean((x - 0.5) ** 2)), abs=1e-4)
    weights = np.where(x[:, 0] > 1, 2.0, 0.0)
    assert p.fit(x, weights=weights).theta["mu"] == pytest.approx(x[x > 1].mean(), abs=1e-4)
    with pytest.raises(neyman.ArgumentError, match="nu"):
        p.fit(x, fixed=["nu"])


@pytest.mark.parametrize("call, words", [
    (lambda p: p.sample(-1, 0), "n is -1"), (lambda p: p.sample(1.5, 0), "n is 1.5"),
    (lambda p: p.sample("a", 0), "n is 'a'"), (lambda p: p.sample(1, 0, seed=-1), "seed is -1"),
    (lambda p: p.log_density([[1, 2]], 0), "x"), (lambda p: p.log_density([np.nan], 0), "x"),
    (lambda p: p.cdf([np.nan], 0), "x"), (lambda p: p.quantile([1.5], 0), "1.5"),
    (lambda p: p.sample(1, np.inf), "finite"), (lambda p: p.fit([[1, 2]]), "x"),
    (lambda p: p.fit([]), "x|event"), (lambda p: p.fit([1.0], weights=[1, 2]), "weights"),
])
def test_what_does_not_fit(call, words):
    p = neyman.Normal("mu", 1, parameters={"mu": (-9, 9)})
    with pytest.raises(neyman.ArgumentError, match=words):
        call(p)


def test_classes_take_what_they_name():
    with pytest.raises(TypeError, match="at most 2"):
        neyman.Normal(1, 2, 3)
    with pytest.raises(neyman.ArgumentError, match="sigma"):
        neyman.Normal(1)
    with pytest.raises(neyman.ArgumentError, match="scale"):
        neyman.Normal(1, scale=2)
    with pytest.raises(neyman.ArgumentError, match="names"):
        neyman.Mixture([neyman.Normal(0, 1)], [1], names=["a", "b"])


def test_designs():
    design = neyman.Design({"kind": "grid", "points": [3, 2]}, {"a": (0, 1), "b": (0, 1)})
    assert len(np.unique(design.draw(60, seed=1), axis=0)) == 6
    same = pickle.loads(pickle.dumps(design))
    np.testing.assert_array_equal(same.draw(7), design.draw(7))
    with pytest.raises(neyman.ArgumentError, match="sobol"):
        neyman.Design("sobl", {"a": (0, 1)})
    with pytest.raises(neyman.ArgumentError, match="points"):
        neyman.Design({"kind": "grid", "points": [0]}, {"a": (0, 1)})


def test_designs_for_priors():
    covariance = np.array([[4.0, 1.0], [1.0, 1.0]])
    prior = {"kind": "normal", "mean": [0, 1], "covariance": covariance}
    design = neyman.Design(prior, {"a": None, "b": {"range": (-np.inf, 9), "truth": 1}})
    assert design.parameters.ranges == {"a": (-8.0, 8.0), "b": (-3.0, 9.0)}
    assert design.parameters.truth == {"b": 1.0}
    theta = design.draw(50000, seed=1)  # five standard errors of variances, four times 6e-7
    np.testing.assert_allclose(np.cov(theta.T), covariance, atol=5 * 4 * np.sqrt(2 / 50000))
    same = pickle.loads(pickle.dumps(design))
    np.testing.assert_array_equal(same.draw(7), design.draw(7))
    p = neyman.Join([neyman.Normal("a", 1), neyman.Normal("b", 1)], parameters=design.parameters)
    assert neyman.simulate(p, 100, design=design).theta.shape == (100, 2)

    log = neyman.Design({"kind": "normal", "mean": [0], "sigma": [0.5], "log": ["tau"]},
                        {"tau": (0, np.inf)})
    np.testing.assert_allclose(log.parameters.ranges["tau"], np.exp([-2.0, 2.0]))
    assert scipy.stats.kstest(np.log(log.draw(5000, seed=2)[:, 0]) / 0.5, "norm").pvalue > 1e-6

    rows = theta[:50]
    table = neyman.Design(rows, design.parameters)
    assert {tuple(row) for row in table.draw(50)} == {tuple(row) for row in rows}
    some = neyman.Design({"kind": "table", "rows": rows, "resample": True}, design.parameters)
    assert len({tuple(row) for row in some.draw(50)}) < 45  # of 50 without repetition: 10^-21
    with pytest.raises(neyman.ArgumentError, match="symmetric"):
        neyman.Design({**prior, "covariance": [[1, 2], [0, 1]]}, {"a": None, "b": None})
    with pytest.raises(neyman.ArgumentError, match="range of a has an end that is not finite"):
        neyman.Design("sobol", {"a": (0, np.inf)})
    with pytest.raises(neyman.ArgumentError, match="neyman.Design gives ends"):
        neyman.Parameters(a=(0, np.inf))


def draw_theta(n, rng):
    tau = rng.exponential(size=n)
    return np.column_stack([tau, rng.normal(tau, 0.1)])


def test_functions_draw_theta():
    design = neyman.Design(draw_theta, {"tau": (0, np.inf), "mu": None})
    low, high = design.parameters.ranges["tau"]
    assert low == 0 and 8 < high < 30
    theta = design.draw(20000, seed=3)
    assert np.abs(theta[:, 1] - theta[:, 0]).max() < 0.6
    np.testing.assert_array_equal(theta, design.draw(20000, seed=3))
    assert scipy.stats.kstest(theta[:, 0], "expon").pvalue > 1e-6
    same = pickle.loads(pickle.dumps(design))
    np.testing.assert_array_equal(same.draw(7), design.draw(7))
    # In a study, as a function or as a design; what is outside of the ranges is drawn again.
    study = {"parameters": {"tau": {"range": [0, np.inf], "truth": 1}, "mu": {"range": [-1, 3], "truth": 1}},
             "simulator": neyman.Join([neyman.Normal("tau", 1), neyman.Normal("mu", 1)]),
             "classifier": {"kind": "separable", "hidden": [], "degree": 2, "epochs": 1},
             "diagnostics": {"which": []}, "data": {"events": 20},
             "inference": {"contours": [], "scan": 5}, "report": {"figures": False}}
    for given in (draw_theta, neyman.Design(draw_theta, {"tau": (0, 99), "mu": (-1, 3)})):
        result = neyman.run({**study, "training": {"samples": 4000, "design": given}})
        assert abs(result.fit.parameters.tau.estimate - 1) < 1.5
    with pytest.raises(ValueError, match="mine"):
        neyman.Design(raises, {"a": (0, 1)})
    for wrong in (len, dict, lambda n: n):
        with pytest.raises(neyman.ArgumentError, match="a function of n and a random generator"):
            neyman.Design(wrong, {"a": (0, 1)})
    with pytest.raises(neyman.ArgumentError, match="what the function draws has .* values"):
        neyman.Design(lambda n, rng: np.zeros((3, 1)), {"a": (0, 1)})
    with pytest.raises(neyman.ArgumentError, match="lie inside of the ranges"):
        neyman.Design(lambda n, rng: np.full((n, 1), 7.0), {"a": (0, 1)})


def raises(n, rng):
    raise ValueError("mine")


def test_designs_of_events():
    rng = np.random.default_rng(1)
    theta = rng.normal([0, 5], [1, 0.1], (3000, 2))
    events = neyman.Samples(theta, theta=theta, parameter_names=["a", "b"])
    design = neyman.Design.of_events(events)
    np.testing.assert_allclose(design.parameters.ranges["a"],
                               [theta[:, 0].min() - 0.05 * np.ptp(theta[:, 0]),
                                theta[:, 0].max() + 0.05 * np.ptp(theta[:, 0])])
    assert {tuple(row) for row in design.draw(3000)} == {tuple(row) for row in theta}
    given = neyman.Design.of_events(events, {"a": (-9, 9), "b": None})
    assert given.parameters.ranges["a"] == (-9.0, 9.0)
    with pytest.raises(neyman.ArgumentError, match="Samples with theta"):
        neyman.Design.of_events(theta)
    with pytest.raises(neyman.ArgumentError, match="must have 1"):
        neyman.Design.of_events(events, {"a": None})


def test_simulated_events_know_their_theta():
    p = neyman.Normal("mu", 0.001, parameters={"mu": (-1, 1)})
    events = neyman.simulate(p, 2000, design="sobol", seed=2)
    assert events.parameter_names == ["mu"]
    assert np.abs(events.x - events.theta).max() < 0.006


# ---- of events in memory


def test_empirical():
    events = np.random.default_rng(1).normal(size=(50, 2))
    weights = np.arange(50.0)
    p = neyman.Empirical(events, weights=weights)
    x = p.sample(20000, seed=1)
    rows = {tuple(row): i for i, row in enumerate(events)}
    counts = np.bincount([rows[tuple(row)] for row in x], minlength=50)
    # A false alarm in 10^4 seeds.
    assert counts[0] == 0
    assert scipy.stats.chisquare(counts[1:], 20000 * weights[1:] / weights.sum()).pvalue > 1e-4
    one = neyman.Empirical([1.0, 2.0, 4.0])
    np.testing.assert_allclose(one.cdf([0.5, 1, 3, 4]), [0, 1 / 3, 2 / 3, 1])
    with pytest.raises(neyman.ArgumentError, match="density"):
        p.log_density(events)


@pytest.mark.parametrize("rule", ["scott", "silverman"])
def test_kde_against_scipy(rule):
    # One feature, where SciPy's covariance and our bandwidths for each column are the same.
    events = np.random.default_rng(2).normal(size=300)
    weights = np.random.default_rng(3).uniform(0.5, 2, 300)
    ours = neyman.Kde(events, weights=weights, bandwidth=rule)
    theirs = scipy.stats.gaussian_kde(events, bw_method=rule, weights=weights)
    np.testing.assert_allclose(ours.log_density(X), theirs.logpdf(X), rtol=1e-9)
    two = neyman.Kde(np.zeros((1, 2)), bandwidth=[1, 2])
    np.testing.assert_allclose(two.log_density([[0, 0]]), -np.log(2 * np.pi * 2))
    assert neyman.Kde([0.0, 1.0], bandwidth=3).sample(5).shape == (5, 1)
    views = neyman.Kde(memoryview(events), weights=memoryview(weights), bandwidth=rule)
    np.testing.assert_array_equal(views.log_density(X), ours.log_density(X))


def test_histogram():
    events = np.random.default_rng(4).normal(size=(1000, 2))
    edges = [np.linspace(-2, 2, 5), [-3, 0, 3]]
    p = neyman.Histogram.fill(events, edges=edges)
    counts, _, _ = np.histogram2d(*events.T, bins=edges)
    np.testing.assert_array_equal(p.counts, counts)
    assert p.outside == 1000 - counts.sum() and p.dimension == 2
    np.testing.assert_allclose(p.log_density([[0.5, 1]]),
                               np.log(counts[2, 1] / counts.sum() / 3))
    same = neyman.Histogram(p.edges, p.counts)
    np.testing.assert_array_equal(same.sample(10, seed=1), p.sample(10, seed=1))
    for binning, bins in (("uniform", 7), ("equal-probability", 7)):
        assert len(neyman.Histogram.fill(events[:, 0], binning=binning, bins=7).counts) == bins
    assert len(neyman.Histogram.fill(events[:, 0], binning="bayesian-blocks").counts) > 1
    theirs = scipy.stats.rv_histogram((np.array([1, 2, 1]), np.array([0, 1, 3, 4])), density=False)
    np.testing.assert_allclose(neyman.Histogram([0, 1, 3, 4], [1, 2, 1]).cdf([0.5, 2, 3.5]),
                               theirs.cdf([0.5, 2, 3.5]))


@pytest.mark.parametrize("make", [
    lambda: neyman.Empirical(X, weights=np.arange(41.0)), lambda: neyman.Kde(X, bandwidth=0.3),
    lambda: neyman.Kde(neyman.Samples(X[:, None], weights=np.ones(41))),
    lambda: neyman.Histogram.fill(X, bins=4),
], ids=["empirical", "kde", "samples", "histogram"])
def test_distributions_of_events_are_distributions(make):
    p = make()
    for same in (copy.deepcopy(p), pickle.loads(pickle.dumps(p)),
                 p.with_parameters({"gamma": (0, 1)})):
        assert type(same) is type(p)
        theta = 0.5 if len(same.parameters) else None
        np.testing.assert_array_equal(same.sample(20, theta, seed=3), p.sample(20, seed=3))
    whole = neyman.Mixture([p, neyman.Normal(100, 1)], ["1 - gamma"], parameters={"gamma": (0, 1)})
    # Five standard deviations of a share of 0.3 of 2000 events.
    assert abs((whole.sample(2000, 0.3, seed=1) > 50).mean() - 0.3) < 0.052
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(whole)).sample(5, 0.3),
                                  whole.sample(5, 0.3))
    assert neyman.Mixture([p, neyman.Normal(0, 1)], [0.5]).sample(3).shape == (3, 1)
    ratio = neyman.DecomposedRatio(whole, 0.5, samples=2000, classifier="logistic", replicas=0)
    assert ratio.parameters.names == ["gamma"]


@pytest.mark.parametrize("call, words", [
    (lambda: neyman.Kde([]), "events"), (lambda: neyman.Kde([1.0, np.nan]), "finite"),
    (lambda: neyman.Kde([1.0, 1.0]), "constant"), (lambda: neyman.Kde([1, 2], bandwidth=-1), "bandwidth"),
    (lambda: neyman.Kde([1, 2], bandwidth="wide"), "bandwidth.*scott"),
    (lambda: neyman.Kde([1, 2], bandwidth=[[1], [2, 3]]), "bandwidth"),
    (lambda: neyman.Empirical([1, 2], weights=[1]), "weights has 1"),
    (lambda: neyman.Empirical([1, 2], weights=[-1, 1]), "weight"),
    (lambda: neyman.Empirical([1, 2]).to_dict(), "events in memory"),
    (lambda: neyman.Histogram([0, 1], [1, 2]), "counts|contents"),
    (lambda: neyman.Histogram([1, 0], [1]), "edges"),
    (lambda: neyman.Histogram.fill([1, 2], edges=[0, 3], bins=3), "bins is given"),
    (lambda: neyman.Histogram.fill([1, 2], binning="odd"), "binning"),
])
def test_what_distributions_of_events_refuse(call, words):
    with pytest.raises(neyman.ArgumentError, match=words):
        call()
