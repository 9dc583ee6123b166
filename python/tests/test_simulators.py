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


def test_simulated_events_know_their_theta():
    p = neyman.Normal("mu", 0.001, parameters={"mu": (-1, 1)})
    events = neyman.simulate(p, 2000, design="sobol", seed=2)
    assert events.parameter_names == ["mu"]
    assert np.abs(events.x - events.theta).max() < 0.006
