"""Figures: what they show, where, and that they are drawn where they should."""

import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.stats

import neyman
from neyman import _drawing, plot

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEVELS = [0.6827, 0.9545, 0.9973]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def mixture():
    """A study with one parameter that asks for everything."""
    return neyman.run({
        "study": {"name": "small", "seed": 3},
        "parameters": {"gamma": {"range": [0, 1], "truth": 0.3}},
        "simulator": {"kind": "mixture", "weights": ["1 - gamma"],
                      "components": [{"name": "a", "kind": "normal", "mean": 0, "sigma": 1},
                                     {"name": "b", "kind": "normal", "mean": 2, "sigma": 1}]},
        "reference": {"gamma": 0.5},
        "training": {"samples": 6000, "folds": 2},
        "classifier": {"kind": "logistic"},
        "data": {"events": 1000},
        "inference": {"test": {"null": {"gamma": 0.1}, "alternative": {"gamma": 0.3},
                               "datasets": 60}},
        "ensemble": {"datasets": 40, "events": 200, "at": {"gamma": 0.3}},
        "compare": {"at": {"gamma": 0.3}, "classifiers": [{"kind": "logistic"}]},
        "diagnostics": {"which": "all"},
    })


@pytest.fixture(scope="module")
def plane():
    """A study with two parameters and their contours."""
    return neyman.run({
        "study": {"name": "plane", "seed": 1},
        "parameters": {"alpha": {"range": [-1, 1], "truth": 0.2},
                       "beta": {"range": [-1, 1], "truth": -0.1}},
        "simulator": {"kind": "join", "parts": [{"kind": "normal", "mean": "alpha", "sigma": 1},
                                                {"kind": "normal", "mean": "beta", "sigma": 1}]},
        "training": {"samples": 10000, "folds": 2},
        "classifier": {"kind": "separable", "hidden": [], "degree": 2},
        "data": {"events": 500},
        "inference": {"levels": LEVELS, "contours": [["alpha", "beta"]]},
    })


@pytest.fixture(scope="module")
def likelihood():
    p = neyman.Join([neyman.Normal("alpha", 1), neyman.Normal("beta", 1)],
                    parameters={"alpha": (-1, 1), "beta": (-1, 1)})
    return neyman.Likelihood(neyman.ExactRatio(p), p.sample(500, [0.2, -0.3], seed=1))


@pytest.fixture(scope="module")
def toys():
    p = neyman.Normal("mu", 1, parameters={"mu": (-3, 3)})
    return neyman.toys(p, neyman.ExactRatio(p), 0.5, datasets=60, events=50, seed=1)


@pytest.fixture(scope="module")
def measured():
    return neyman.measurements.summarise(neyman.measurements.example())


def test_figures_of_a_measurement(measured):
    names = list(plot.measurement(measured))
    assert names == [entry["name"] for entry in measured.figures()]
    assert names[-1] == "measurement-channel-region"
    ax = plot.limit(measured)
    assert ax.get_yscale() == "log" and "observed" in labels(ax)
    own = plt.figure().add_subplot()
    assert plot.strength(measured, ax=own) is own
    assert plot.profile(measured).get_ylabel() == "−2 log Λ(μ)"
    assert plot.correlation(measured).get_xticklabels()[0].get_text() == "μ"


def test_pulls_and_impacts_stand_beside_each_other(measured):
    pulls, impacts = plot.impacts(measured)[0]
    assert [label.get_text() for label in pulls.get_yticklabels()] == ["size"]
    # Two bars a parameter, as wide as the impact.
    impact, = neyman.measurements.impacts(neyman.measurements.example())
    widths = sorted(abs(patch.get_width()) for patch in impacts.patches)
    assert np.allclose(widths[-2:], sorted([abs(impact.up), abs(impact.down)]))
    _, axes = plt.subplots(1, 2)
    assert plot.impacts(measured, axes=axes)[0, 0] is axes[0]
    with pytest.raises(neyman.ArgumentError, match="axes has the shape"):
        plot.impacts(measured, axes=plt.subplots(1, 3)[1])


def test_channels_before_and_after_the_fit(measured):
    axes = plot.channel(measured)
    assert axes.shape == (2, 2)
    assert {"signal", "background", "uncertainty", "data"} <= set(labels(axes[0, 0]))
    assert axes[0, 0].get_ylim() == axes[0, 1].get_ylim()
    heights = [ax.get_position().height for ax in axes[:, 0]]
    axes[0, 0].figure.canvas.draw()
    assert heights[0] > 2 * heights[1]
    with pytest.raises(neyman.ArgumentError, match="name is 'other', but must be one of region"):
        plot.channel(measured, "other")


def test_scans_and_tests_of_a_measurement():
    model = neyman.measurements.example()
    ax = plot.profile(neyman.measurements.profile_scan(model, np.linspace(0, 4, 21)))
    assert {"the others profiled", "the others held at their best fit"} <= set(labels(ax))
    ax = plot.limit(neyman.measurements.asymptotic_scan(model, np.linspace(0, 5, 20)), level=0.9)
    assert [text.get_text() for text in ax.texts] == ["10 %"]
    for draw in (plot.limit, plot.strength, plot.impacts, plot.channel, plot.measurement):
        with pytest.raises(neyman.ArgumentError, match="what is of type int"):
            draw(3)


def labels(ax):
    return ax.get_legend_handles_labels()[1]


def texts(ax):
    return [text.get_text() for text in ax.texts]


def lines(ax, label):
    return [line for line in ax.get_lines() if line.get_label() == label]


def solid_lines(ax, role):
    """Lines (not dots) in the colour of a role."""
    return [line for line in ax.get_lines()
            if line.get_color() == _drawing.COLOURS[role] and line.get_linestyle() != "None"]


# ---- the likelihood


def test_contours_of_results_show_all_ways_and_points(plane):
    ax = plot.contours(plane)
    found = plane.to_dict()
    by_label = {entry["label"]: entry for entry in found["surfaces"]}
    assert set(by_label) == {"learned", "exact"}
    for role, label in (("approximate", "learned"), ("exact", "exact")):
        drawn = solid_lines(ax, role)
        expected = [line for c in by_label[label]["contours"] for line in c["lines"]]
        assert len(drawn) == len(expected) == 3
        for line, entry in zip(drawn, expected):
            x, y = line.get_data()
            np.testing.assert_array_equal(x, entry["x"] + entry["x"][:1])  # closed
            np.testing.assert_array_equal(y, entry["y"] + entry["y"][:1])
    assert len(ax.patches) == 3  # the learned regions are filled
    assert texts(ax) == ["1σ", "2σ", "3σ"]
    assert labels(ax) == ["learned", "exact", "truth", "exact estimate", "learned estimate"]
    truth, = lines(ax, "truth")
    assert (truth.get_xdata()[0], truth.get_ydata()[0]) == (0.2, -0.1)
    estimate, = lines(ax, "learned estimate")
    assert estimate.get_xdata()[0] == found["fit"]["parameters"]["alpha"]["estimate"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("α", "β")


def test_contours_of_a_likelihood_and_of_contours_are_the_same(likelihood):
    ax = plot.contours(likelihood, "alpha", "beta")
    found = likelihood.contours("alpha", "beta", levels=LEVELS)
    again = plot.contours(found)
    for line, other, contour in zip(solid_lines(ax, "approximate"),
                                    solid_lines(again, "approximate"), found):
        np.testing.assert_array_equal(line.get_xydata(), contour.lines[0])
        np.testing.assert_array_equal(other.get_xydata(), contour.lines[0])
    # −2 log Λ on the outermost line is the threshold of two degrees of freedom.
    vertex = solid_lines(ax, "approximate")[2].get_xydata()[7]
    assert likelihood.test_statistic(vertex) == pytest.approx(
        scipy.stats.chi2.ppf(0.9973, 2), rel=0.01)
    assert labels(ax) == ["learned", "estimate"] and labels(again) == ["learned"]


def test_contours_over_others_have_their_labels_once(likelihood):
    ax = plot.contours(likelihood, "alpha", "beta")
    plot.contours(likelihood, "alpha", "beta", label="exact", ax=ax)
    assert texts(ax) == ["1σ", "2σ", "3σ"]
    assert len(solid_lines(ax, "exact")) == 3 and len(ax.patches) == 3
    assert all(line.is_dashed() for line in solid_lines(ax, "exact"))
    single = plot.contours(likelihood.contours("alpha", "beta", levels=[0.95])[0])
    assert texts(single) == ["95 %"]
    ax = plot.contours(likelihood, "alpha", "beta", truth={"alpha": 0.2, "beta": -0.3})
    assert lines(ax, "truth")[0].get_xydata().tolist() == [[0.2, -0.3]]


def test_surface_has_the_values_and_the_thresholds(plane):
    ax = plot.surface(plane)
    entry = plane.to_dict()["surfaces"][0]
    mesh = ax.collections[0]
    np.testing.assert_array_equal(mesh.get_array().reshape(len(entry["y"]), len(entry["x"])),
                                  entry["statistic"])
    largest = max(c["threshold"] for c in entry["contours"])
    assert mesh.get_clim() == (0.0, min(np.ceil(2.5 * largest), np.max(entry["statistic"])))
    assert mesh.get_cmap().name == "viridis"
    assert ax.get_title(loc="left") == "learned"
    assert texts(ax) == ["1σ", "2σ", "3σ"]
    assert len(ax.figure.axes) == 2 and ax.figure.axes[1].get_ylabel() == "−2 log Λ"
    assert plot.surface(plane, label="exact").get_title(loc="left") == "exact"
    assert plot.surface(plane, cap=5).collections[0].get_clim()[1] == 5


def test_surface_of_its_own_has_contours_at_two_degrees():
    grid = np.linspace(-4, 4, 161)
    values = grid**2 + grid[:, None]**2
    values[0, 0] = np.inf
    ax = plot.surface(neyman.Surface("mass", "beta_2", grid, grid, values, 0))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("mass", "β₂")
    radii = [np.hypot(*path.vertices.T).mean()
             for collection in ax.collections[1:] for path in collection.get_paths()
             if len(path.vertices)]
    expected = [np.sqrt(scipy.stats.chi2.ppf(level, 2)) for level in LEVELS]
    np.testing.assert_allclose(radii, expected, rtol=1e-3)
    lowest, = lines(ax, "lowest")
    assert abs(lowest.get_xdata()[0]) < 1e-12


def test_profile_of_results(plane):
    ax = plot.profile(plane, "alpha")
    found = plane.to_dict()
    for label, key in (("learned", "fit"), ("exact", "exact_fit")):
        line, = lines(ax, label)
        np.testing.assert_array_equal(line.get_ydata(), found[key]["scan"]["alpha"]["statistic"])
    assert texts(ax) == ["68.3 %", "95.5 %", "99.73 %", "truth"]
    shapes = [patch.get_patch_transform().transform_path(patch.get_path()) for patch in ax.patches]
    spans = sorted(np.ptp(shape.vertices[:, 0]) for shape in shapes)
    interval = found["fit"]["parameters"]["alpha"]["interval"]
    np.testing.assert_allclose(spans, [interval[key][1] - interval[key][0] for key in interval])
    assert ax.get_ylim()[1] == pytest.approx(1.6 * 9, rel=0.01)
    assert ax.get_ylabel() == "−2 log Λ(α)"


def test_profile_of_a_likelihood_and_a_scan(likelihood):
    scan = likelihood.scan("beta", low=-0.6, high=0.1, points=41)
    interval = likelihood.interval("beta", level=0.95)
    ax = plot.profile(scan, intervals=[interval], levels=[0.95], truth=-0.3)
    np.testing.assert_array_equal(lines(ax, "learned")[0].get_ydata(), scan.statistic)
    assert len(ax.patches) == 1 and texts(ax) == ["95 %", "truth"]
    ax = plot.profile(likelihood, "beta")
    assert len(ax.patches) == 2
    x, y = lines(ax, "learned")[0].get_data()
    low, high = likelihood.interval("beta", level=0.683)
    np.testing.assert_allclose(np.interp([low, high], x, y), 1.0, atol=0.02)
    left, right = ax.get_xlim()
    plot.profile(likelihood, "beta", label="exact", ax=ax)
    assert len(ax.patches) == 2 and lines(ax, "exact")[0].is_dashed()  # no intervals of its own
    assert ax.get_xlim() == (left, right) and texts(ax) == ["68.3 %", "95 %"]


def test_profile_of_one_parameter_needs_no_name(mixture, plane):
    assert plot.profile(mixture).get_xlabel() == "γ"
    with pytest.raises(neyman.ArgumentError, match="is None, but must be one of alpha, beta"):
        plot.profile(plane)
    with pytest.raises(neyman.ArgumentError, match="parameter is 'delta'"):
        plot.profile(plane, "delta")


def test_correlation(plane):
    fit = neyman.inference.Fit("converged", {"alpha": 1.0, "beta": 2.0}, {}, {}, {}, 0.0,
                               np.array([[4.0, -1.0], [-1.0, 1.0]]), np.zeros((0, 0)), 1, "", None)
    ax = plot.correlation(fit)
    assert texts(ax) == ["1.00", "−0.50", "−0.50", "1.00"]
    assert ax.collections[0].get_clim() == (-1, 1)
    assert [tick.get_text() for tick in plot.correlation(plane).get_yticklabels()] == ["α", "β"]


# ---- scores and diagnostics


def test_scores_and_calibration_of_results(mixture):
    ax = plot.scores(mixture)
    assert labels(ax) == ["a", "b"] and ax.get_yscale() == "log"
    ax = plot.calibration(mixture)
    assert labels(ax) == ["−z: not calibrated", "calibrated", "observed"]
    z, log_r = lines(ax, "calibrated")[0].get_data()
    middle = np.abs(z) < 1.5
    # Logistic regression of two normals needs no calibration: log r = −z.
    np.testing.assert_allclose(log_r[middle], -z[middle], atol=0.25)
    with pytest.raises(neyman.ArgumentError, match="pair is 1, but must be at least 0 and below 1"):
        plot.scores(mixture, pair=1)


def test_calibration_of_logits():
    rng = np.random.default_rng(1)
    z0, z1 = rng.normal(-1, 1, 20000), rng.normal(1, 1, 20000)  # log r = −2z
    ax = plot.calibration((z0, z1), neyman.SigmoidCalibrator().fit(z0, z1))
    z, log_r = lines(ax, "calibrated")[0].get_data()
    np.testing.assert_allclose(log_r, -2 * z, atol=0.3)
    x, y = lines(ax, "observed")[0].get_data()
    inside = np.abs(x) < 1.5
    np.testing.assert_allclose(y[inside], -2 * x[inside], atol=0.35)
    assert np.array_equal(*(np.abs(v) for v in lines(ax, "−z: not calibrated")[0].get_data()))
    assert labels(plot.calibration((z0, z1))) == ["−z: not calibrated", "observed"]
    ax = plot.scores((z0, z1), names=("signal", "background"))
    heights, edges, _ = ax.patches[0].get_data()
    assert labels(ax) == ["signal", "background"]
    assert np.sum(heights * np.diff(edges)) == pytest.approx(1, abs=1e-3)


def test_roc_of_results_has_the_areas(mixture):
    numbers = next(entry for entry in mixture.to_dict()["diagnostics"]
                   if entry["name"] == "reweighting")["numbers"]
    ax = plot.roc(mixture)
    assert f"weighted by r̂: AUC {numbers['area']:.3f}" in labels(ax)
    assert f"without weights: AUC {numbers['control_area']:.3f}" in labels(ax)


def test_roc_area_is_the_share_of_ordered_pairs():
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 20, 300), rng.integers(5, 25, 200)  # with ties
    area = np.mean((b[:, None] > a) + 0.5 * (b[:, None] == a))
    ax = plot.roc((a, b))
    assert labels(ax) == ["no separation", f"AUC {area:.3f}"]
    w = rng.uniform(0, 2, 200)
    area = np.average(np.mean((b[:, None] > a) + 0.5 * (b[:, None] == a), axis=1), weights=w)
    plot.roc((a, b), weights=w, label="weighted", ax=ax)
    assert labels(ax)[2] == f"weighted: AUC {area:.3f}" and len(ax.get_lines()) == 3
    x, y = ax.get_lines()[2].get_data()
    assert (x[0], y[0], x[-1], y[-1]) == (0, 0, 1, 1) and np.all(np.diff(y) >= 0)


def test_reliability(mixture):
    ax = plot.reliability(mixture)
    assert labels(ax) == ["expected", "observed"] and ax.get_xlim() == (0, 1)
    x0, x1 = np.random.default_rng(3).normal([[0], [1]], 1, (2, 50000))
    s, share = lines(plot.reliability((0.5 - x0, 0.5 - x1)), "observed")[0].get_data()
    np.testing.assert_allclose(share, s, atol=0.04)
    _, share = lines(plot.reliability((x0 - 0.5, x1 - 0.5)), "observed")[0].get_data()
    np.testing.assert_allclose(share, 1 - s, atol=0.04)  # wrong on purpose


def test_closure(mixture):
    assert labels(plot.closure(mixture)) == ["numerator", "reweighted denominator"]
    with pytest.raises(neyman.ArgumentError, match="feature is 3, but must be at least 0 and"):
        plot.closure(mixture, feature=3)
    x0, x1 = np.random.default_rng(4).normal([[0], [0.5]], 1, (2, 50000))
    ax = plot.closure((x0, x1), weights=np.exp(0.125 - 0.5 * x1), name="mass")
    centres, values = lines(ax, "reweighted denominator")[0].get_data()
    np.testing.assert_allclose(values, scipy.stats.norm.pdf(centres), atol=0.02)
    assert ax.get_xlabel() == "mass"
    with pytest.raises(neyman.ArgumentError, match="weights has 2 values, but must have 50000"):
        plot.closure((x0, x1), weights=[1, 2])


def test_log_ratios(mixture):
    assert labels(plot.log_ratios(mixture)) == ["exact", "learned"]
    values = np.random.default_rng(5).normal(0, 1, 1000)
    ax = plot.log_ratios(values)
    heights, edges, _ = ax.patches[0].get_data()
    counts, _ = np.histogram(values, edges)
    shown = counts > 0
    np.testing.assert_allclose((heights * np.diff(edges) * 1000)[shown], counts[shown])


# ---- repetition


def test_ensemble(mixture, toys):
    ax = plot.ensemble(mixture)
    found = mixture.to_dict()["ensemble"]
    estimates = np.array(found["approximate"]["estimates"]["gamma"])
    assert labels(ax)[1] == f"learned: {estimates.mean():.4g} ± {estimates.std(ddof=1):.2g}"
    assert len(labels(ax)) == 2 and texts(ax) == ["γ = 0.3"]
    ax = plot.ensemble(toys, "mu")
    heights, edges, _ = ax.patches[0].get_data()
    np.testing.assert_allclose(heights * np.diff(edges) * 60,
                               np.histogram(toys.estimates[:, 0], edges)[0])


def test_wilks_and_quantiles(mixture, toys):
    ax = plot.wilks(mixture)
    assert labels(ax) == ["exact", "learned", "χ²₁"]
    x, y = lines(ax, "χ²₁")[0].get_data()
    np.testing.assert_allclose(y, scipy.stats.chi2.pdf(x, 1), rtol=1e-9)
    ax = plot.quantiles(toys)
    x, y = lines(ax, "datasets")[0].get_data()
    np.testing.assert_array_equal(y, np.sort(toys.statistic))
    np.testing.assert_allclose(x, scipy.stats.chi2.ppf((np.arange(60) + 0.5) / 60, 1), rtol=1e-9)
    assert plot.quantiles(np.ones(5), degrees=3).get_xlabel() == "quantile of χ²₃"
    assert labels(plot.quantiles(mixture)) == ["expected", "exact", "learned"]


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 7])
def test_chi2_as_scipy_has_it(degrees):
    x = np.linspace(0.01, 40, 60)
    np.testing.assert_allclose(_drawing.chi2_cdf(x, degrees), scipy.stats.chi2.cdf(x, degrees),
                               atol=1e-12)
    np.testing.assert_allclose(_drawing.chi2_density(x, degrees),
                               scipy.stats.chi2.pdf(x, degrees), rtol=1e-9)
    shares = [0.001, 0.5, 0.9973]
    np.testing.assert_allclose(_drawing.chi2_quantile(shares, degrees),
                               scipy.stats.chi2.ppf(shares, degrees), rtol=1e-8)


def test_coverage(toys):
    p = neyman.Normal("mu", 1, parameters={"mu": (-3, 3)})
    found = neyman.coverage(p, neyman.ExactRatio(p), [[-1.0], [0.0], [2.0]], events=20,
                            datasets=30, levels=[0.683, 0.95], seed=1)
    ax = plot.coverage(found)
    points = lines(ax, "of the 95 % regions")[0]
    np.testing.assert_array_equal(points.get_xdata(), [-1, 0, 2])
    np.testing.assert_array_equal(points.get_ydata(), [point.coverage[1] for point in found])
    assert texts(ax) == ["68.3 %", "95 %"] and ax.get_xlabel() == "μ"
    ax = plot.coverage(toys)
    assert lines(ax, "of the 68.3 % regions")[0].get_ydata()[0] == toys.coverage[0]
    results = {"coverage": {"points": [
        {"at": {"alpha": 0.0, "beta": 1.0}, "coverage": {"0.95": share},
         "coverage_error": {"0.95": 0.02}} for share in (0.9, 0.96)]}}
    ax = plot.coverage(results)
    assert ax.get_xlabel() == "point" and len(ax.get_xticks()) == 2


def test_test(mixture):
    ax = plot.test(mixture)
    found = mixture.to_dict()["test"]
    assert labels(ax) == ["alternative: γ = 0.3", "null: γ = 0.1"]
    assert texts(ax) == [f"observed, p = {found['p_value']:.2g}"]
    assert ax.get_lines()[0].get_xdata()[0] == found["statistic"]


# ---- data


def test_scatter_matrix(mixture):
    x = np.random.default_rng(6).normal(size=(3000, 3))
    x[:, 1] += x[:, 0]
    x[:, 2] = 1.0  # does not vary
    axes = plot.scatter_matrix(x, names=["a", "b", "c"], most=500)
    assert axes.shape == (3, 3)
    assert len(axes[1, 0].get_lines()[0].get_xdata()) == 500
    rho = np.corrcoef(x[:, 0], x[:, 1])[0, 1]
    assert texts(axes[0, 1]) == [f"ρ = {rho:.2f}"] and texts(axes[0, 2]) == ["—"]
    assert [axes[2, i].get_xlabel() for i in range(3)] == ["a", "b", "c"]
    assert [axes[i, 0].get_ylabel() for i in range(3)] == ["a", "b", "c"]
    again = plt.subplots(3, 3)[1]
    assert plot.scatter_matrix(x, ax=again)[2, 1] is again[2, 1]
    assert plot.scatter_matrix(mixture)[0, 0].get_xlabel() == "x"
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"mass": x[:, 0], "width": x[:, 1]})
    assert plot.scatter_matrix(frame)[1, 1].get_xlabel() == "width"
    assert plot.scatter_matrix(neyman.Samples(frame))[1, 0].get_xlabel() == "mass"


# ---- the figures of the report


def test_all_figures_of_the_report_are_drawn(mixture, plane):
    for result in (mixture, plane):
        drawn = plot.figures(result)
        assert list(drawn) == plot.figure_names(result)
        for name, axes in drawn.items():
            given = next(entry for entry in result._run.figures() if entry["name"] == name)
            shown = [ax for ax in axes.flat if ax.axison]
            assert len(shown) == sum(panel["axes"] for panel in given["panels"])
            for ax, panel in zip(axes.flat, given["panels"]):
                assert ax.get_xlabel() == panel["x_label"]
                wanted = {series["label"] for series in panel["series"] if series["label"]
                          and series["type"] not in ("reference", "heatmap", "annotation")}
                assert set(labels(ax)) == wanted
        plt.close("all")
    assert {"data", "scores", "ratio", "log-ratio", "likelihood", "ensemble", "test",
            "diagnostic-reweighting", "diagnostic-closure", "diagnostic-wilks"} <= set(
                plot.figure_names(mixture))
    assert {"surface-alpha-beta", "contours-alpha-beta"} <= set(plot.figure_names(plane))


def test_lines_of_the_report_have_its_data(mixture):
    panel = next(entry for entry in mixture._run.figures()
                 if entry["name"] == "likelihood")["panels"][0]
    ax = plot.figure(mixture, "likelihood")[0, 0]
    series = next(entry for entry in panel["series"] if entry["label"] == "learned")
    np.testing.assert_array_equal(lines(ax, "learned")[0].get_ydata(), series["y"])
    assert ax.get_xlim() == panel["x_range"]
    with pytest.raises(neyman.ArgumentError,
                       match="no figure 'surface', but must have it; they have data, scores"):
        plot.figure(mixture, "surface")


def test_every_kind_of_series_is_drawn():
    base = {"label": "it", "role": "first"}
    at = np.array([0.0, 1.0, 2.0])
    series = [
        {**base, "type": "band", "x": at, "low": at - 1, "high": at + 1},
        {**base, "type": "steps", "edges": at, "values": at[:2], "dash": "dotted", "width": 2.0},
        {**base, "type": "points", "x": at, "y": at, "x_errors": at, "y_errors": at, "size": 3.0},
        {**base, "type": "histogram", "edges": at, "values": at[:2], "errors": at[:2],
         "filled": True},
        {**base, "type": "annotation", "x": 0.5, "y": 0.5, "fraction": True, "align": "center"}]
    ax = _drawing.panel(plt.subplots()[1], {
        "title": "words", "x_label": "x", "y_label": "y", "x_range": (0, 2), "y_range": None,
        "x_log": False, "y_log": False, "x_ticks": [(0.0, "none"), (2.0, "two")], "y_ticks": None,
        "x_upright": False, "legend": True, "axes": True, "series": series})
    assert ax.get_title(loc="left") == "words" and texts(ax) == ["it"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["none", "two"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["it"]  # once


# ---- all of them


def calls(mixture, plane):
    z = np.random.default_rng(7).normal(size=(2, 50))
    measured = neyman.measurements.summarise(neyman.measurements.example())
    return {"contours": lambda ax: plot.contours(plane, ax=ax),
            "surface": lambda ax: plot.surface(plane, ax=ax),
            "profile": lambda ax: plot.profile(mixture, ax=ax),
            "correlation": lambda ax: plot.correlation(plane, ax=ax),
            "scores": lambda ax: plot.scores(mixture, ax=ax),
            "calibration": lambda ax: plot.calibration(z, ax=ax),
            "log_ratios": lambda ax: plot.log_ratios(z, ax=ax),
            "reliability": lambda ax: plot.reliability(mixture, ax=ax),
            "roc": lambda ax: plot.roc(z, ax=ax),
            "closure": lambda ax: plot.closure(z, ax=ax),
            "ensemble": lambda ax: plot.ensemble(mixture, ax=ax),
            "wilks": lambda ax: plot.wilks(mixture, ax=ax),
            "quantiles": lambda ax: plot.quantiles(mixture, ax=ax),
            "coverage": lambda ax: plot.coverage({"coverage": {"points": [
                {"at": {"mu": 0.0}, "coverage": {"0.95": 0.9},
                 "coverage_error": {"0.95": 0.01}}]}}, ax=ax),
            "strength": lambda ax: plot.strength(measured, ax=ax),
            "limit": lambda ax: plot.limit(measured, ax=ax),
            "test": lambda ax: plot.test(mixture, ax=ax)}


def test_axes_that_are_given_are_drawn_into_and_returned(mixture, plane, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda *a, **k: pytest.fail("show was called"))
    found = calls(mixture, plane)
    assert set(found) | {"channel", "diagnostic", "figure", "figure_names", "figures", "impacts",
                         "measurement", "scatter_matrix"} == set(plot.__all__)
    for name, call in found.items():
        figure, ax = plt.subplots()
        other = plt.figure()  # the current one, which must stay empty
        assert call(ax) is ax, name
        assert ax.get_xlabel() or name == "correlation", name
        assert not other.axes and len(plt.get_fignums()) == 2, name
        plt.close("all")
        assert call(None).figure.number in plt.get_fignums(), name
        plt.close("all")


def test_labels_of_the_caller_stay(plane):
    _, ax = plt.subplots()
    ax.set_xlabel("my own")
    assert plot.contours(plane, ax=ax).get_xlabel() == "my own"


def test_results_of_a_file_are_results(plane):
    again = json.loads(json.dumps(plane.to_dict()))
    assert len(solid_lines(plot.contours(again), "approximate")) == 3
    assert plot.profile(again, "beta").get_xlabel() == "β"
    with pytest.raises(neyman.ArgumentError, match="what is of type dict, but must be a Result"):
        plot.figure(again, "data")


def test_what_is_missing_is_named(mixture, plane):
    with pytest.raises(neyman.ArgumentError, match="contours: the results have no surfaces"):
        plot.contours(mixture)
    with pytest.raises(neyman.ArgumentError, match="ensemble: the results have no ensemble"):
        plot.ensemble(plane)
    with pytest.raises(neyman.ArgumentError, match="must be one of \\(alpha, beta\\)"):
        plot.surface(plane, "beta", "alpha")
    with pytest.raises(neyman.ArgumentError, match="label is 'other', but must be one of learned"):
        plot.surface(plane, label="other")
    with pytest.raises(neyman.ArgumentError, match="scores: the results have no figure 'scores'"):
        plot.scores(plane)
    for function in (plot.contours, plot.surface, plot.profile, plot.correlation, plot.ensemble,
                     plot.coverage, plot.test, plot.wilks, plot.quantiles, plot.scores, plot.roc,
                     plot.reliability, plot.closure, plot.calibration, plot.scatter_matrix):
        with pytest.raises(neyman.ArgumentError, match=f"{function.__name__}: what is of type str"):
            function("nonsense")
    with pytest.raises(neyman.ArgumentError, match="roc: denominator has 0 values"):
        plot.roc(([1.0], []))


def test_colours_are_those_of_the_report():
    header = (ROOT / "src/reports/chrome.hpp").read_text(encoding="utf-8")
    light = dict(re.findall(r'\{"(\w+)", "(#\w{6})", "#\w{6}"\}', header))
    assert light == _drawing.COLOURS


def printed_by(script):
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          check=True).stdout


def test_without_matplotlib_the_error_says_so():
    script = ("import sys; sys.modules['matplotlib'] = None\n"
              "import neyman.plot\n"
              "try:\n    neyman.plot.roc(([1.0], [2.0]))\n"
              "except ImportError as error:\n    print(error)")
    assert printed_by(script).startswith("neyman.plot needs matplotlib, which is not installed")


def test_importing_the_package_does_not_import_matplotlib():
    script = "import sys, neyman, neyman.plot; print('matplotlib' in sys.modules)"
    assert printed_by(script).strip() == "False"
