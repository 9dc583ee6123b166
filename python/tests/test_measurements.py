"""Measurements: against what pyhf and iminuit answer, closed forms, and what is refused."""

import json
import math
import pathlib
import pickle

import numpy as np
import pytest

import neyman
from neyman import measurements
from neyman.measurements import UnbinnedChannel, UnbinnedEvents, Workspace

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests" / "measurements" / "data"
NAMES = ["counting", "correlated", "control", "finite_simulation", "nothing_seen"]


def model_of(name):
    return neyman.StatisticalModel(Workspace.from_file(DATA / f"{name}.json"))


def answers_of(name):
    return json.loads((DATA / f"{name}.answers.json").read_text())


def counting(signal=5.0, background=10.0, observed=20, bounds=(0.0, 10.0)):
    """n ~ Poisson(μ s + b), with b known."""
    return {
        "channels": [{"name": "bin", "samples": [
            {"name": "signal", "data": [signal],
             "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]},
            {"name": "background", "data": [background], "modifiers": []}]}],
        "observations": [{"name": "bin", "data": [observed]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": [
            {"name": "mu", "inits": [1.0], "bounds": [list(bounds)]}]}}],
        "version": "1.0.0"}


@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_pyhf(name):
    model, answers = model_of(name), answers_of(name)
    fit = measurements.fit_model(model)
    assert fit.ok
    for parameter, value in answers["fit"]["values"].items():
        if parameter not in fit.theta:  # of a bin without uncertainty, which is no parameter here
            continue
        error = max(answers["fit"]["errors"].get(parameter, 0.0), 1e-3)
        assert abs(fit.theta[parameter] - value) < 1e-3 * error + 1e-6, parameter
    limit = measurements.upper_limit(model)
    assert math.isclose(limit.observed, answers["limit"]["observed"], rel_tol=1e-3)
    assert np.allclose(limit.expected, answers["limit"]["expected"], rtol=1e-3)
    for test in answers["tests"]:
        found = measurements.asymptotic_test(model, test["mu"])
        assert math.isclose(found.cl_s, test["cls"], rel_tol=1e-3, abs_tol=1e-6)
        assert np.allclose(found.expected_cl_s, test["expected_cls"], rtol=1e-3, atol=1e-6)
    found = measurements.discovery(model)
    assert math.isclose(found.p_value, answers["discovery"]["p_value"], rel_tol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_iminuit_finds_the_same_minimum(name):
    iminuit = pytest.importorskip("iminuit")
    model = model_of(name)
    likelihood = model.likelihood()
    fit = measurements.fit_model(model)
    minuit = iminuit.Minuit(likelihood.negative, list(model.start.values()),
                            grad=likelihood.negative.grad, name=model.parameters.names)
    minuit.limits = list(model.parameters.ranges.values())
    for parameter in model.fixed:
        minuit.fixed[parameter] = True
    minuit.strategy = 2
    minuit.tol = 1e-4
    minuit.migrad(ncall=20000)
    assert math.isclose(minuit.fval, -fit.log_likelihood, abs_tol=1e-5)
    for parameter, error in fit.error.items():
        if error > 0:
            assert abs(minuit.values[parameter] - fit.theta[parameter]) < 5e-3 * error, parameter


def test_closed_forms():
    model = neyman.StatisticalModel(counting())
    fit = measurements.fit_model(model)
    assert math.isclose(fit.theta["mu"], 2.0, rel_tol=1e-7)
    assert math.isclose(fit.error["mu"], math.sqrt(20) / 5, rel_tol=1e-6)
    # q_0 = 2 (n log(n / b) − (n − b))
    q0 = 2 * (20 * math.log(2) - 10)
    assert math.isclose(measurements.test_statistic(model, "q0", 0.0).value, q0, rel_tol=1e-7)
    assert math.isclose(measurements.discovery(model).significance, math.sqrt(q0), rel_tol=1e-7)
    likelihood = model.likelihood()
    theta = [1.3]
    rate = 5 * theta[0] + 10
    assert math.isclose(likelihood(theta), 20 * math.log(rate / 20) - (rate - 20), rel_tol=1e-12)
    assert math.isclose(likelihood.gradient(theta)[0], 5 * (20 / rate - 1), rel_tol=1e-12)
    assert math.isclose(likelihood.information(theta)[0, 0], 25 * 20 / rate**2, rel_tol=1e-12)
    assert likelihood([11.0]) == -math.inf
    # The post-fit expectation is the count with its Poisson error.
    histogram, = measurements.channel_histograms(model)
    assert np.allclose(histogram.after.total, [20.0]) and np.allclose(histogram.after.error,
                                                                      [math.sqrt(20)])


def test_errors_at_a_bound():
    """As if the range went on; unknown where nothing is expected."""
    fit = measurements.fit_model(neyman.StatisticalModel(counting(observed=6)))
    assert fit.status == "at bound" and fit.theta["mu"] == 0.0
    assert math.isclose(fit.error["mu"], math.sqrt(10) / 5, rel_tol=1e-9)
    fit = measurements.fit_model(neyman.StatisticalModel(counting(background=0.0, observed=0)))
    assert fit.status == "at bound" and math.isnan(fit.error["mu"])


def test_events_where_none_are_expected():
    """The second bin has no background: without signal its event is impossible."""
    spec = {"channels": [{"name": "bins", "samples": [
                {"name": "signal", "data": [3.0, 2.0],
                 "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]},
                {"name": "background", "data": [10.0, 0.0], "modifiers": []}]}],
            "observations": [{"name": "bins", "data": [11, 1]}],
            "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
            "version": "1.0.0"}
    model = neyman.StatisticalModel(spec)
    found = measurements.discovery(model)
    assert found.impossible and found.significance == np.inf and found.p_value == 0
    assert not measurements.discovery(model, model.data([11, 0])).impossible


def test_gradients_are_differences():
    model = model_of("correlated")
    likelihood = model.likelihood()
    theta = np.array(list(measurements.fit_model(model).theta.values())) + 0.1
    step = 1e-6
    for p, slope in enumerate(likelihood.gradient(theta)):
        up, down = theta.copy(), theta.copy()
        up[p] += step
        down[p] -= step
        assert math.isclose(slope, (likelihood(up) - likelihood(down)) / (2 * step), rel_tol=1e-4,
                            abs_tol=1e-4)


def test_intervals_scans_pulls_and_impacts():
    model = model_of("correlated")
    fit = measurements.fit_model(model)
    low, high = measurements.profile_interval(model, best=fit)
    scan = measurements.profile_scan(model, [low, fit.theta[model.interest], high], best=fit)
    assert np.allclose(scan.statistic, [1.0, 0.0, 1.0], atol=1e-4)
    assert np.all(scan.held_statistic >= scan.statistic - 1e-9)
    pulls = {entry.parameter: entry for entry in measurements.pulls(model, best=fit)}
    constraint = model.constraints[0]
    name = constraint["parameter"]
    assert math.isclose(pulls[name].pull, (fit.theta[name] - constraint["observed"])
                        / constraint["width"], rel_tol=1e-9)
    impacts = measurements.impacts(model, best=fit)
    sizes = [max(abs(entry.up), abs(entry.down)) for entry in impacts]
    assert sizes == sorted(sizes, reverse=True)
    parts = measurements.error_breakdown(model, {"mine": [name]}, best=fit)
    assert list(parts) == ["mine", "other", "statistical"]
    assert math.isclose(sum(part**2 for part in parts.values()), fit.error[model.interest]**2,
                        rel_tol=1e-9)


def test_asimov_data_fit_their_own_point():
    model = model_of("control")
    theta = {**model.start, model.interest: 0.7}
    fit = measurements.fit_model(model, model.asimov(theta))
    assert math.isclose(fit.theta[model.interest], 0.7, rel_tol=1e-5)
    assert np.allclose(model.asimov(theta).counts, model.expected(theta))
    parts = model.expected_by_sample(theta)
    assert np.allclose(sum(parts.values()), model.expected(theta))


def test_toys():
    model = neyman.StatisticalModel(counting())
    test = measurements.toy_test(model, 2.5, toys=3000, seed=1)
    # CL_sb = P(n ≤ 20 | 22.5), CL_b = P(n ≤ 20 | 10); false alarm below 1e-6.
    def below(rate):
        return sum(math.exp(-rate + n * math.log(rate) - math.lgamma(n + 1)) for n in range(21))

    for (value, error), exact in ((test.cl_sb, below(22.5)), (test.cl_b, below(10.0))):
        assert abs(value - exact) < 5 * max(error, 1e-3)
    assert test.failed == 0
    limit = measurements.toy_upper_limit(model, np.linspace(0.5, 6, 12), toys=1000, seed=2)
    assert abs(limit.observed - measurements.upper_limit(model).observed) < 0.6
    low, high = measurements.feldman_cousins(model, np.linspace(0, 10, 21), toys=500, seed=3)
    assert low < 2.0 < high
    # Parts made apart are those made together.
    whole = measurements.toy_statistics(model, [1.0], "q0", 0.0, toys=600, seed=4)
    parts = [measurements.toy_statistics(model, [1.0], "q0", 0.0, toys=300, seed=4, first=first)
             for first in (0, 300)]
    assert np.array_equal(whole.statistics, np.concatenate([part.statistics for part in parts]))


def normal(x, mean, sigma):
    return np.exp(-0.5 * ((x - mean) / sigma)**2) / sigma


def described(x):
    reference, background = normal(x, 0, 2), normal(x, 0, 1.5)
    return UnbinnedEvents(
        {"signal": normal(x, 1, 0.4) / reference, "background": background / reference},
        variations={"background": {"shift": (np.log(normal(x, -0.5, 1.5) / background),
                                             np.log(normal(x, 0.5, 1.5) / background))}})


COMPONENTS = {"signal": {"yield": 40, "modifiers": [{"name": "mu", "type": "normfactor"}]},
              "background": {"yield": 300, "shapes": ["shift"], "modifiers": [
                  {"name": "size", "type": "normsys", "data": {"lo": 0.9, "hi": 1.1}}]}}


@pytest.fixture(scope="module")
def events():
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.normal(1, 0.4, 40), rng.normal(0, 1.5, 300)])
    return x, rng.normal(0, 2, 4000)


@pytest.fixture(scope="module")
def unbinned(events):
    x, simulated = events
    channel = UnbinnedChannel("events", COMPONENTS, described(x), simulated=described(simulated))
    return neyman.StatisticalModel(Workspace.empty("mu"), [channel])


def test_channels_without_bins_are_the_formula(events, unbinned):
    x, simulated = events
    assert unbinned.parameters.names[0] == "mu"
    fit = measurements.fit_model(unbinned)
    assert fit.ok and abs(fit.theta["mu"] - 1) < 4 * fit.error["mu"]
    # At α = 0, by NumPy: Σ log λ − ν, up to a constant; ratios divided by their simulated means.
    means = {name: values.mean() for name, values in described(simulated).ratios.items()}
    ratios = {name: values / means[name] for name, values in described(x).ratios.items()}

    def value(mu):
        density = 40 * mu * ratios["signal"] + 300 * ratios["background"]
        return np.log(density).sum() - (40 * mu + 300)

    likelihood = unbinned.likelihood()
    point = {name: 0.0 for name in unbinned.parameters.names}
    difference = likelihood({**point, "mu": 1.5}) - likelihood({**point, "mu": 0.5})
    assert math.isclose(difference, value(1.5) - value(0.5), rel_tol=1e-9)
    assert np.allclose(unbinned.expected_events({**point, "mu": 2.0}), [380.0])


def test_binned_and_unbinned_together(events):
    x, simulated = events
    channel = UnbinnedChannel("events", COMPONENTS, described(x), simulated=described(simulated))
    both = neyman.StatisticalModel(counting(), [channel])
    alone = neyman.StatisticalModel(counting())
    assert measurements.fit_model(both).error["mu"] < measurements.fit_model(alone).error["mu"]


def test_coefficients(events):
    x, simulated = events
    components = {"signal": {"yield": 40, "coefficient": [(1, {"kappa": 2})]},
                  "background": {"yield": 300, "shapes": ["shift"]}}
    channel = UnbinnedChannel("events", components, described(x), simulated=described(simulated))
    squared = neyman.StatisticalModel(Workspace.empty("kappa"), [channel])
    found = squared.expected_events({name: 3.0 if name == "kappa" else 0.0
                                     for name in squared.parameters.names})
    assert np.allclose(found, [40 * 9 + 300])


def test_features_before_and_after_the_fit(events, unbinned):
    x, simulated = events
    edges = np.linspace(-4, 4, 9)
    given = {"edges": edges, "observed": x, "simulated": simulated}
    whole = measurements.feature_histogram(unbinned, "events", "x", **given)
    assert np.array_equal(whole.observed, np.histogram(x, edges)[0])
    ratios = described(simulated).ratios
    weights = {name: values / values.mean() / len(simulated) for name, values in ratios.items()}
    yields = {"signal": 40.0, "background": 300.0}

    def expected(theta):
        size = {"signal": theta["mu"], "background": 1.0}
        return {name: yields[name] * size[name] * weights[name] for name in yields}

    parts = measurements.feature_histogram(unbinned, "events", "x", expected=expected, **given)
    assert parts.samples == ["signal", "background"]
    wanted = sum(np.histogram(simulated, edges, weights=yields[name] * weights[name])[0]
                 for name in yields)
    assert np.allclose(parts.before.total, wanted)
    assert np.allclose(whole.before.total, wanted)
    # The shift moves the shape, and the components here do not know of it.
    assert np.all(whole.before.error >= parts.before.error - 1e-9)


def test_summaries_show_themselves(tmp_path):
    summary = measurements.summarise(measurements.example(), groups={"mine": ["size"]})
    assert "Upper limit on mu" in repr(summary) and "<pre>" in summary._repr_html_()
    found = summary.to_dict()
    assert found["schema"] == "neyman.measurement/1" and "mine" in found["error_parts"]
    assert summary.fit.theta["mu"] == found["fit"]["parameters"]["mu"]["estimate"]
    report = pathlib.Path(summary.report(tmp_path / "out", title="Mine & yours"))
    assert "Mine &amp; yours" in report.read_text()
    assert json.loads((report.parent / "measurement.json").read_text()) == found
    assert (report.parent / "figures" / "measurement-limit.pdf").is_file()
    limit = measurements.upper_limit(measurements.example())
    assert limit.to_dict()["observed"] == limit.observed and "expected" in repr(limit)
    assert "<table>" in limit._repr_html_()


def test_workspaces_go_round(tmp_path):
    workspace = Workspace.from_file(DATA / "control.json")
    workspace.save(tmp_path / "mine.json")
    assert Workspace.from_file(tmp_path / "mine.json") == workspace
    assert Workspace(workspace.to_dict()) == workspace
    assert pickle.loads(pickle.dumps(workspace)) == workspace
    arrays = counting()
    arrays["channels"][0]["samples"][0]["data"] = np.array([5.0])
    assert Workspace(arrays) == Workspace(counting())


def test_models_can_be_pickled(unbinned):
    again = pickle.loads(pickle.dumps(unbinned))
    assert measurements.fit_model(again).theta == measurements.fit_model(unbinned).theta


@pytest.mark.parametrize("make, words", [
    (lambda: Workspace(3), "spec is 3"),
    (lambda: Workspace({"channels": 1}), "spec"),
    (lambda: Workspace.from_json("{"), "from_json"),
    (lambda: neyman.StatisticalModel(counting(signal=-50.0)), "yield of channel 'bin'"),
    (lambda: neyman.StatisticalModel(counting(), measurement="other"), "'other'"),
    (lambda: neyman.StatisticalModel(3), "workspace is 3"),
    (lambda: neyman.StatisticalModel(counting(), [3]), r"unbinned\[0\] is 3"),
    (lambda: measurements.fit_model(measurements.example(), fixed={"nu": 1}), "fixed is 'nu'"),
    (lambda: measurements.fit_model(3), "model is 3"),
    (lambda: measurements.fit_model(measurements.example(), [1, 2]), "data is"),
    (lambda: measurements.example().data([1.0]), "counts"),
    (lambda: measurements.example().data([1.0, -2.0]), "counts"),
    (lambda: measurements.upper_limit(measurements.example(), statistic="t"), "statistic is 't'"),
    (lambda: measurements.upper_limit(measurements.example(), highest=0.5), "CL_s"),
    (lambda: measurements.asymptotic_test(measurements.example(), -3), "mu is -3"),
    (lambda: measurements.error_breakdown(measurements.example(), {"a": ["b"]}), "'b'"),
    (lambda: measurements.toy_test(measurements.example(), 1.0, toys=0), "toys is 0"),
    (lambda: UnbinnedEvents({"a": [1.0], "b": [1.0, 2.0]}), r"ratios\['b'\] has 2 values"),
    (lambda: UnbinnedEvents({"a": [1j]}), r"ratios\['a'\] is .* array of numbers"),
    (lambda: UnbinnedEvents({"a": [1.0]}, variations={"b": {}}), r"variations\['b'\]"),
    (lambda: measurements.toy_test(measurements.example(), 1.0, toys=True), "toys is True"),
    (lambda: measurements.toy_test(measurements.example(), 1.0, toys=2**40), r"below 2\^36"),
    (lambda: UnbinnedChannel("c", COMPONENTS, UnbinnedEvents({"signal": [1.0]})),
     "no ratios of 'background'"),
    (lambda: UnbinnedChannel("c", {"a": {"yield": 1, "size": 2}}, UnbinnedEvents({"a": [1.0]})),
     r"components\['a'\]"),
    (lambda: UnbinnedChannel("c", {"a": {"yield": 1, "modifiers": [{"type": "histosys"}]}},
                             UnbinnedEvents({"a": [1.0]})), "normfactor, normsys or lumi"),
])
def test_errors_name_the_argument(make, words):
    with pytest.raises(neyman.ArgumentError, match=words):
        make()


def test_a_file_that_is_not_there():
    with pytest.raises(neyman.FileError, match="nowhere.json"):
        Workspace.from_file("nowhere.json")
