"""Likelihoods and what follows from them: against closed forms, SciPy, iminuit and emcee."""

import copy
import pickle
import timeit

import numpy as np
import pytest
import scipy.optimize
import scipy.stats

import neyman

NORMAL = neyman.Normal("mu", "sigma", parameters={"mu": (-3, 3), "sigma": (0.2, 5)})
MIXTURE = neyman.Mixture([neyman.Normal(0, 1), neyman.Normal(2, 0.5)], ["1 - gamma"],
                         parameters={"gamma": (0, 1)})


@pytest.fixture(scope="module")
def normal():
    x = NORMAL.sample(400, [0.5, 2], seed=1)
    return x, neyman.Likelihood(neyman.ExactRatio(NORMAL), x)


@pytest.fixture(scope="module")
def separable():
    p = neyman.Join([neyman.Normal("alpha", 1), neyman.Normal("beta/2", 1)],
                    parameters={"alpha": (-1, 1), "beta": (-1, 1)})
    events = neyman.simulate(p, 20000, design="sobol", seed=1)
    ratio = neyman.SeparableRatio(events, "sobol", p.parameters, hidden=[], degree=2, seed=1)
    return neyman.Likelihood(ratio, p.sample(500, [0.2, -0.3], seed=5))


def test_the_likelihood_is_the_sum(normal):
    x, likelihood = normal
    for theta in ([0.5, 2.0], [0, 1]):
        wanted = scipy.stats.norm(*theta).logpdf(x).sum()
        assert likelihood(theta) == pytest.approx(wanted)
    assert likelihood([10, 1]) == -np.inf
    assert likelihood.events == 400 and likelihood.parameters.names == ["mu", "sigma"]
    numeric = scipy.optimize.approx_fprime(np.array([0.3, 1.5]), likelihood, 1e-6)
    np.testing.assert_allclose(likelihood.gradient([0.3, 1.5]), numeric, rtol=1e-3)


def test_many_theta_in_one_call(normal, separable):
    pandas = pytest.importorskip("pandas")
    for likelihood in (normal[1], separable):
        names = likelihood.parameters.names
        rng = np.random.default_rng(1)
        points = rng.uniform(0.3, 0.9, (40, 2))
        points[7] = 50.0
        one_by_one = [likelihood(point) for point in points]
        for many in (points, points.tolist(), np.asfortranarray(points), points.astype(object),
                     dict(zip(names, points.T)), pandas.DataFrame(points[:, ::-1], columns=names[::-1])):
            np.testing.assert_allclose(likelihood(many), one_by_one, rtol=1e-12)
        assert likelihood(points)[7] == -np.inf
        np.testing.assert_array_equal(likelihood({names[0]: points[:3, 0], names[1]: 0.5}),
                                      [likelihood([a, 0.5]) for a in points[:3, 0]])
        np.testing.assert_array_equal(likelihood.negative(points), -likelihood(points))
        assert likelihood(points[:1]).shape == (1,) and likelihood(points[:0]).shape == (0,)
        with pytest.raises(neyman.ArgumentError, match="a row of theta has 3"):
            likelihood(np.zeros((5, 3)))
        with pytest.raises(neyman.ArgumentError, match="parameters"):
            likelihood({"other": [1.0], names[0]: [2.0]})


def test_what_ends_where_the_design_does_says_so():
    p = neyman.Normal("mu", 1, parameters={"mu": (-20, 20)})
    design = {"kind": "normal", "mean": [0], "sigma": [1]}
    events = neyman.simulate(p, 10000, design=design, seed=1)
    ratio = neyman.SeparableRatio(events, design, p.parameters, hidden=[], degree=2, seed=1)
    likelihood = neyman.Likelihood(ratio, p.sample(25, 6.0, seed=2))
    best = likelihood.fit()
    assert best.status == "at bound"
    assert best.message == "mu ends at the edge of where the design has events"
    interval = likelihood.interval("mu", level=0.95)
    assert interval.high_at_edge and not interval.low_at_edge and not interval.high_at_bound
    inside = neyman.Likelihood(ratio, p.sample(25, 0.3, seed=2))
    assert inside.fit().status == "converged" and not inside.interval("mu").high_at_edge


def test_weights_are_repetitions(normal):
    x, _ = normal
    w = np.arange(len(x)) % 3
    one = neyman.Likelihood(neyman.ExactRatio(NORMAL), x, weights=w)
    other = neyman.Likelihood(neyman.ExactRatio(NORMAL), np.repeat(x, w, axis=0))
    assert one([0.3, 1.5]) == pytest.approx(other([0.3, 1.5]))


def test_fit_against_closed_forms(normal):
    x, likelihood = normal
    best = likelihood.fit()
    assert best.ok and best.status == "converged"
    sigma = x.std()
    assert best.theta["mu"] == pytest.approx(x.mean(), abs=1e-3 * sigma / 20)
    assert best.theta["sigma"] == pytest.approx(sigma, rel=1e-3)
    assert best.error["mu"] == pytest.approx(sigma / 20, rel=0.01)
    assert best.error["sigma"] == pytest.approx(sigma / np.sqrt(800), rel=0.01)
    assert best.simulation_error == {"mu": 0, "sigma": 0}
    # −2 log Λ(μ), σ profiled: n log(1 + (x̄ − μ)²/s²)
    mu = 0.9
    wanted = 400 * np.log(1 + (x.mean() - mu) ** 2 / x.var())
    assert likelihood.profile_statistic({"mu": mu}) == pytest.approx(wanted, rel=1e-3)
    threshold = scipy.stats.chi2.ppf(0.683, 1)
    half = x.std() * np.sqrt(np.exp(threshold / 400) - 1)
    low, high = likelihood.interval("mu")
    assert low == pytest.approx(x.mean() - half, abs=1e-3 * half)
    assert high == pytest.approx(x.mean() + half, abs=1e-3 * half)
    fixed = likelihood.fit(fixed={"sigma": 1.0})
    assert fixed.theta["sigma"] == 1 and fixed.error["mu"] == pytest.approx(1 / 20, rel=1e-3)
    free = likelihood.fit(gradient=False)
    assert free.theta["mu"] == pytest.approx(best.theta["mu"], abs=1e-3 * best.error["mu"])


def test_scans_surfaces_and_contours(normal):
    x, likelihood = normal
    best = likelihood.fit()
    scan = likelihood.scan("mu", low=0, high=1, points=11, best=best)
    np.testing.assert_allclose(scan.values, np.linspace(0, 1, 11))
    np.testing.assert_allclose(
        scan.statistic, 400 * np.log(1 + (x.mean() - scan.values) ** 2 / x.var()), rtol=1e-3,
        atol=1e-4)
    surface = likelihood.surface("mu", "sigma", [0.2, 0.5, 0.8], [1.8, 2.2], best=best)
    assert surface.statistic.shape == (2, 3)
    assert surface.statistic[1, 2] == pytest.approx(likelihood.test_statistic([0.8, 2.2]), rel=1e-6)
    for contour, level in zip(likelihood.contours("mu", "sigma", levels=[0.5, 0.9]), (0.5, 0.9)):
        assert contour.threshold == pytest.approx(scipy.stats.chi2.ppf(level, 2))
        for point in contour.lines[0][::7]:
            assert likelihood.test_statistic(point) == pytest.approx(contour.threshold, rel=0.01)
        np.testing.assert_array_equal(contour.lines[0][0], contour.lines[0][-1])


def test_two_maxima():
    """x ~ N(θ², 1): both signs explain the data, and the interval has a piece for each."""
    square = neyman.Normal("t^2", 1, parameters={"t": (-2, 2)})
    x = square.sample(200, 1.2, seed=3)
    likelihood = neyman.Likelihood(neyman.ExactRatio(square), x)
    best = likelihood.fit()
    assert len(best.maxima) == 2
    (first, at_first), (second, at_second) = best.maxima
    assert first == best.theta and at_first == 0
    assert second["t"] == pytest.approx(-first["t"], abs=1e-3) and at_second < 1e-3
    interval = likelihood.interval("t", level=0.95)
    inner, outer = (np.sqrt(np.mean(x) + sign * 1.959964 / np.sqrt(200)) for sign in (-1, 1))
    assert interval.ok and len(interval.pieces) == 2
    np.testing.assert_allclose(interval.pieces, [(-outer, -inner), (inner, outer)], atol=1e-4)
    assert (interval.low, interval.high) == (interval.pieces[0][0], interval.pieces[1][1])
    # Of a fit that began beside one, the other belongs to the interval, too.
    one = likelihood.fit(start=[1.0])
    assert len(one.maxima) == 1
    assert len(likelihood.interval("t", best=one).pieces) == 2
    assert pickle.loads(pickle.dumps(best)).maxima == best.maxima


def test_an_interval_goes_over_the_seam():
    """x ~ N((cos φ, sin φ), 1): ℓ = n R cos(φ − μ), with R and μ of the mean of x."""
    ring = {"range": (-np.pi, np.pi), "periodic": True}
    parts = [neyman.Normal("cos(phi)", 1), neyman.Normal("sin(phi)", 1)]
    p = neyman.Join(parts, parameters={"phi": ring})
    for truth in (3.1, -3.1):
        x = p.sample(100, truth, seed=4)
        mean = x.mean(axis=0)
        mu, pull = np.arctan2(mean[1], mean[0]), 100 * np.hypot(*mean)
        likelihood = neyman.Likelihood(neyman.ExactRatio(p), x)
        best = likelihood.fit()
        assert best.status == "converged" and len(best.maxima) == 1
        assert best.theta["phi"] == pytest.approx(mu, abs=1e-5)
        half = np.arccos(1 - scipy.stats.chi2.ppf(0.95, 1) / (2 * pull))
        interval = likelihood.interval("phi", level=0.95)
        assert interval.ok and interval.pieces == [(interval.low, interval.high)]
        np.testing.assert_allclose(tuple(interval), (mu - half, mu + half), atol=1e-4)
        assert interval.low < -np.pi or interval.high > np.pi
        assert not interval.low_at_bound and not interval.high_at_bound
        assert likelihood([truth + 2 * np.pi]) == pytest.approx(likelihood([truth]))
        scan = likelihood.scan("phi", low=interval.low, high=interval.high, points=5, best=best)
        np.testing.assert_allclose(scan.statistic, 2 * pull * (1 - np.cos(scan.values - mu)), atol=1e-6)
    # Without its period the same has two ends.
    plain = neyman.Join(parts, parameters={"phi": (-np.pi, np.pi)})
    ends = neyman.Likelihood(neyman.ExactRatio(plain), x).interval("phi", level=0.95)
    assert len(ends.pieces) == 2 and ends.low_at_bound and ends.high_at_bound


def test_a_lower_maximum_does_not_stay():
    """Two hills of different heights: what is asked of the lower says that there is a higher one."""
    p = neyman.Join([neyman.Normal("t^2", 1), neyman.Normal("0.1 * t", 1)],
                    parameters={"t": (-2, 2)})
    likelihood = neyman.Likelihood(neyman.ExactRatio(p), p.sample(200, 1.2, seed=1))
    best = likelihood.fit()
    grid = np.linspace(-2, 2, 801)
    assert best.theta["t"] > 0
    assert best.log_likelihood >= max(likelihood([t]) for t in grid) - 1e-9
    assert len(best.maxima) == 2 and best.maxima[1][1] > 5
    lower = likelihood.fit(start=[-1.0])
    assert lower.theta["t"] < 0 and lower.status == "converged"
    assert "higher" in likelihood.scan("t", best=lower).message
    assert "higher" in likelihood.interval("t", best=lower).message
    # Asked without a fit, the likelihood begins again by itself.
    likelihood._best = lower
    scan = likelihood.scan("t", points=801)
    assert scan.message == "" and likelihood._best.theta["t"] > 0
    np.testing.assert_allclose(scan.statistic,
                               [2 * (best.log_likelihood - likelihood([t])) for t in grid],
                               atol=1e-6)


def test_errors_that_are_not_known_are_not_zero():
    """Without replicas what finite simulation adds is not known."""
    ratio = neyman.DecomposedRatio(MIXTURE, reference=0.5, samples=4000, classifier="logistic",
                                   folds=2, replicas=0, seed=1)
    best = neyman.Likelihood(ratio, MIXTURE.sample(100, 0.5, seed=3)).fit()
    assert np.isnan(best.simulation_error["gamma"])
    assert np.isnan(best.simulation_covariance).all()
    assert best.error == best.statistical_error


def test_against_iminuit(normal, separable):
    """The same minimum, and HESSE and MINOS errors within 1 %."""
    iminuit = pytest.importorskip("iminuit")
    for likelihood in (normal[1], separable):
        names = likelihood.parameters.names
        best = likelihood.fit()
        minuit = iminuit.Minuit(likelihood.negative, best.point + 0.5 * np.sqrt(
            np.diag(best.covariance)), name=names, grad=likelihood.negative.grad)
        minuit.limits = list(likelihood.parameters.ranges.values())
        minuit.migrad()
        minuit.hesse()
        minuit.minos()
        assert minuit.valid
        for i, name in enumerate(names):
            error = best.statistical_error[name]
            assert best.theta[name] == pytest.approx(minuit.values[name], abs=0.005 * error)
            assert error == pytest.approx(minuit.errors[name], rel=0.01)
            low, high = likelihood.interval(name, level=0.6826894921370859, best=best,
                                            include_simulation=False)
            assert best.theta[name] - low == pytest.approx(-minuit.merrors[name].lower, rel=0.01)
            assert high - best.theta[name] == pytest.approx(minuit.merrors[name].upper, rel=0.01)


def test_against_scipy(separable):
    found = scipy.optimize.minimize(separable.negative, [0.0, 0.0], jac=separable.negative.grad,
                                    bounds=list(separable.parameters.ranges.values()))
    best = separable.fit()
    for name, value in zip(separable.parameters.names, found.x):
        assert value == pytest.approx(best.theta[name], abs=0.01 * best.error[name])


def test_with_emcee(normal):
    emcee = pytest.importorskip("emcee")
    _, likelihood = normal
    best = likelihood.fit()
    np.random.seed(3)
    start = best.point + 0.05 * np.random.standard_normal((8, 2))
    sampler = emcee.EnsembleSampler(8, 2, likelihood)
    sampler.run_mcmc(start, 600)
    chain = sampler.get_chain(discard=100, flat=True)
    # 4000 correlated draws tell the spread to a few percent.
    assert chain[:, 0].std() == pytest.approx(best.error["mu"], rel=0.3)


def test_constraints():
    x = NORMAL.sample(100, [0.5, 2], seed=2)
    plain = neyman.Likelihood(neyman.ExactRatio(NORMAL), x)
    held = neyman.Likelihood(neyman.ExactRatio(NORMAL), x, constraints={
        "mu": {"kind": "gaussian", "mean": 0.0, "sigma": 0.1}})
    assert held([0.2, 2]) == pytest.approx(plain([0.2, 2]) - 0.5 * 0.2**2 / 0.1**2)
    assert held.fit().error["mu"] < 0.1
    with pytest.raises(neyman.ArgumentError, match="nu"):
        neyman.Likelihood(neyman.ExactRatio(NORMAL), x, constraints={"nu": {}})
    with pytest.raises(neyman.ArgumentError, match="sigma"):
        neyman.Likelihood(neyman.ExactRatio(NORMAL), x,
                          constraints={"mu": {"kind": "gaussian", "mean": 0, "sigma": -1}})


def test_tests(normal):
    x, likelihood = normal
    test = likelihood.test(fixed={"mu": 0.9})
    assert test.degrees == 1 and test.ok and test.simulated_p_value is None
    assert test.p_value == pytest.approx(scipy.stats.chi2.sf(test.statistic, 1))
    assert test.null_fit.theta["mu"] == 0.9
    confined = likelihood.test(ranges={"mu": (-3, 0)})
    assert confined.statistic > 0 and confined.null_fit.theta["mu"] == pytest.approx(0, abs=1e-6)
    simulated = likelihood.test(fixed={"mu": 0.9}, datasets=60, simulator=NORMAL, seed=4)
    # 60 datasets tell a p-value to ±0.05 around it.
    assert abs(simulated.simulated_p_value - test.p_value) < 0.25


def test_toys_and_coverage():
    ratio = neyman.ExactRatio(MIXTURE)
    found = neyman.toys(MIXTURE, ratio, 0.4, datasets=100, events=300, seed=1)
    assert found.failed == 0 and found.estimates.shape == (100, 1)
    # The mean of 100 estimates, within five of its standard deviations.
    assert abs(found.means["gamma"] - 0.4) < 5 * found.spreads["gamma"] / 10
    # Binomial with p = 0.683, n = 100: five standard deviations are 0.23.
    assert abs(found.coverage[0] - 0.683) < 0.24
    points = neyman.coverage(MIXTURE, ratio, [[0.3], [0.6]], events=100, datasets=60,
                             critical_datasets=40, seed=2)
    assert [point.theta["gamma"] for point in points] == [0.3, 0.6]
    assert all(len(point.critical) == 2 for point in points)


def test_copies(normal, separable):
    for likelihood in (normal[1], separable):
        theta = likelihood.fit().point
        for same in (pickle.loads(pickle.dumps(likelihood)), copy.deepcopy(likelihood)):
            assert same(theta) == likelihood(theta)
    best = normal[1].fit()
    same = pickle.loads(pickle.dumps(best))
    assert same == best and same != normal[1].fit(fixed={"mu": 0})
    assert normal[1].interval("mu", best=same).to_dict() == normal[1].interval("mu").to_dict()


def test_results_show_themselves(normal):
    best = normal[1].fit()
    assert "converged" in repr(best) and "mu = " in repr(best)
    assert best._repr_html_().startswith("<table>") and "converged" in best._repr_html_()
    assert best.to_dict()["theta"]["mu"] == best.theta["mu"]
    assert isinstance(best.to_dict()["covariance"][0][0], float)


@pytest.mark.parametrize("call, words", [
    (lambda l: l([1]), "theta"), (lambda l: l("a"), "theta"), (lambda l: l([np.nan, 1]), "theta"),
    (lambda l: l.interval("nu"), "nu"), (lambda l: l.interval("mu", level=2), "level"),
    (lambda l: l.scan("mu", points=0), "points"), (lambda l: l.scan("mu", low=-9), "low|range|-9"),
    (lambda l: l.contours("mu", "mu"), "mu|same|parameters"),
    (lambda l: l.contours("mu", "sigma", levels=[2]), "level"),
    (lambda l: l.fit(fixed={"nu": 1}), "nu"), (lambda l: l.fit(fixed=3), "fixed"),
    (lambda l: l.fit(start=[9]), "start"), (lambda l: l.gradient([9, 9]), "mu"),
    (lambda l: l.test(), "null|hypothesis"), (lambda l: l.profile_statistic({"mu": "a"}), "fixed"),
])
def test_what_does_not_fit(normal, call, words):
    with pytest.raises(neyman.ArgumentError, match=words):
        call(normal[1])


@pytest.mark.parametrize("x", [[], [np.nan], [[1, 2]], "a", None])
def test_events_that_do_not_fit(x):
    with pytest.raises(neyman.ArgumentError, match="x|event"):
        neyman.Likelihood(neyman.ExactRatio(NORMAL), x)


@pytest.mark.parametrize("form", [np.array, list, tuple, lambda theta: dict(zip(["mu", "sigma"], theta))],
                         ids=["array", "list", "tuple", "dict"])
def test_what_python_adds_to_an_evaluation(form):
    """Less than 100 µs for 500 events: the best of some, as the machine may be busy."""
    p = neyman.Normal("mu", "sigma", parameters={"mu": (-3, 3), "sigma": (0.2, 5)})
    likelihood = neyman.Likelihood(neyman.ExactRatio(p), p.sample(500, [0.5, 2], seed=1))
    theta = form([0.25, 1.5])
    assert likelihood(theta) == likelihood(np.array([0.25, 1.5]))
    alone = min(likelihood._core._seconds(theta, 100) for _ in range(20))
    called = min(timeit.repeat(lambda: likelihood(theta), number=100, repeat=20)) / 100
    assert called - alone < 100e-6
