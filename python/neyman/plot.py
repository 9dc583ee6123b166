"""Figures of results with matplotlib, in the style of the report.

Each function draws one thing into `ax` (new axes where none are given) and returns the axes; none
calls `show`. Most take what a run gave (`neyman.Result`, or the dict of a results.json), or the
plain object or arrays that the figure is about. `figure` and `figures` draw what the report shows,
panel by panel.

Matplotlib is imported when the first figure is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from neyman import _drawing as draw
from neyman._arrays import column_names
from neyman._drawing import Axes, Floats, symbol
from neyman.calibration import Calibrator
from neyman.data import Samples
from neyman.diagnostics import Diagnostic
from neyman.errors import ArgumentError
from neyman.inference import (Contour, CoveragePoint, Fit, Interval, Likelihood, Scan, SimpleTest,
                              Surface, Toys)
from neyman.measurements import ChannelHistogram, MeasurementSummary, ProfileScan, SignalTest
from neyman.pipeline import Record, Result

__all__ = ["calibration", "channel", "closure", "contours", "correlation", "coverage", "diagnostic", "ensemble",
           "figure", "figure_names", "figures", "impacts", "limit", "log_ratios", "measurement",
           "profile", "quantiles", "reliability",
           "roc", "scatter_matrix", "scores",
           "strength", "surface", "test", "wilks"]

#: What a run gave: the object, or the dict of a results.json.
Results = Union[Record, Mapping[str, Any]]


# --------------------------------------------------------------------- what functions are given

def _plain(what: Any) -> dict[str, Any]:
    return what.to_dict() if isinstance(what, Record) else dict(what)


def _part(function: str, what: Results, key: str) -> Any:
    """A part of the results that not every study asks for."""
    entries = _plain(what)
    if not entries.get(key):
        raise ArgumentError(f"{function}: the results have no {key}, but must have it; they have "
                            + ", ".join(entries))
    return entries[key]


def _refuse(function: str, what: Any, wanted: str) -> ArgumentError:
    return ArgumentError(f"{function}: what is of type {type(what).__name__}, but must be {wanted}")


def _one_of(function: str, name: str, value: str | None, known: Sequence[str]) -> str:
    """A name among those that are known; it need not be given where there is but one."""
    if value is None and len(known) == 1:
        return known[0]
    if value is None or value not in known:
        raise ArgumentError(f"{function}: {name} is {value!r}, but must be one of "
                            + ", ".join(known))
    return value


def _two_samples(function: str, what: Any) -> tuple[Floats, Floats]:
    try:
        numerator, denominator = (np.ravel(np.asarray(side, dtype=np.float64)) for side in what)
    except (TypeError, ValueError):
        raise _refuse(function, what, "results, or a pair of arrays (numerator, denominator)"
                      ) from None
    for name, side in (("numerator", numerator), ("denominator", denominator)):
        if side.size == 0 or not np.all(np.isfinite(side)):
            raise ArgumentError(f"{function}: {name} has {side.size} values, but must have some, "
                                "all finite")
    return numerator, denominator


def _drawn(function: str, what: Any) -> list[dict[str, Any]]:
    """The panels of the report, which hold what results.json leaves out."""
    if not isinstance(what, Result):
        raise _refuse(function, what, "a Result of neyman.run or Model.fit")
    return what._run.figures()


def _report_figure(function: str, what: Any, name: str) -> dict[str, Any]:
    found = {entry["name"]: entry for entry in _drawn(function, what)}
    if name not in found:
        raise ArgumentError(f"{function}: the results have no figure {name!r}, but must have it; "
                            "they have " + ", ".join(found))
    return found[name]


def _diagnostic(function: str, what: Any, name: str) -> dict[str, Any]:
    if not isinstance(what, Diagnostic):
        return _report_figure(function, what, "diagnostic-" + name)
    if what.name != name or what.figure is None:
        raise ArgumentError(f"{function}: what is the diagnostic {what.name!r}, but must be {name!r}")
    return what.figure




# ------------------------------------------------------------------------------- the likelihood

def _close(entry: Mapping[str, Any]) -> Floats:
    """A line of results.json as vertices × 2, closed ones ending where they begin."""
    vertices = np.column_stack([entry["x"], entry["y"]])
    return np.vstack([vertices, vertices[:1]]) if entry["closed"] else vertices


def _surfaces(function: str, what: Results, first: str | None,
              second: str | None) -> list[dict[str, Any]]:
    """The surfaces of one pair of parameters."""
    found = _part(function, what, "surfaces")
    pairs = list(dict.fromkeys(tuple(entry["parameters"]) for entry in found))
    pair = pairs[0] if first is None and second is None else (first, second)
    if pair not in pairs:
        raise ArgumentError(f"{function}: (first, second) is ({first}, {second}), but must be one "
                            "of " + ", ".join(f"({a}, {b})" for a, b in pairs))
    return [entry for entry in found if tuple(entry["parameters"]) == pair]


def _truth(what: Results) -> dict[str, float]:
    parameters = _plain(what).get("study", {}).get("parameters", {})
    return {name: entry["truth"] for name, entry in parameters.items() if "truth" in entry}


def _estimates(what: Results, key: str) -> dict[str, float]:
    parameters = _plain(what).get(key, {}).get("parameters", {})
    return {name: entry["estimate"] for name, entry in parameters.items()}


def _marks(ax: Axes, what: Results, first: str, second: str) -> None:
    exact = _estimates(what, "exact_fit")
    for role, label, values in (
            ("truth", "truth", _truth(what)), ("exact_estimate", "exact estimate", exact),
            ("learned_estimate", "learned estimate" if exact else "estimate",
             _estimates(what, "fit"))):
        if first in values and second in values:
            draw.mark(ax, values[first], values[second], role, label)


def _label_contour(ax: Axes, lines: Sequence[Floats], text: str, colour: str,
                   ground: str = "white") -> None:
    """Words on the line, once for each level, where it is highest in the panel."""
    if any(old.get_text() == text for old in ax.texts) or not len(lines):
        return
    longest = max(lines, key=len)
    low, extent = longest.min(axis=0), np.ptp(longest, axis=0)
    place = (longest - low) / np.where(extent > 0, extent, 1.0)
    x, y = longest[np.argmax(place @ np.array([0.35, 1.0]))]
    ax.text(x, y, text, ha="center", va="center", fontsize=9, fontweight="semibold", color=colour,
            path_effects=draw.halo(ground, 3.2), zorder=5, clip_on=True)


_OTHERS = ("calibrated", "third", "decomposed", "second", "numerator")


def _roles(labels: Sequence[str]) -> list[str]:
    known = {"learned": "approximate", "the others profiled": "approximate", "exact": "exact"}
    others = [label for label in labels if label not in known]
    return [known.get(label) or _OTHERS[others.index(label) % len(_OTHERS)] for label in labels]


_CONTOUR_DASHES = {"approximate": "solid", "exact": "dashed"}


def _draw_contours(ax: Axes, found: Sequence[tuple[float, Sequence[Floats]]], label: str,
                   role: str, filled: bool) -> None:
    """Lowest level first: thinner lines and lighter areas for higher levels."""
    for i, (level, lines) in enumerate(found):
        draw.polylines(ax, lines, role, label=label if i == 0 else "",
                       dash=_CONTOUR_DASHES.get(role, "mixed"), width=2.4 - 0.45 * min(i, 3),
                       alpha=0.11 if filled else 0.0)
    for level, lines in found:
        _label_contour(ax, lines, draw.sigma_words(level), draw.COLOURS["ink"])


def contours(what: Results | Likelihood | Contour | Sequence[Contour], first: str | None = None,
             second: str | None = None, *, label: str = "learned",
             truth: Mapping[str, float] | None = None, ax: Axes | None = None,
             **options: Any) -> Axes:
    """The regions of two parameters at 1, 2, 3 σ or the levels they were found for, with truth and
    estimates where they are known; of results, all ways of finding them together. Of a likelihood,
    `options` are those of `Likelihood.contours`. The label "exact" gives dashed lines without
    areas, to be drawn over others. Results know the truth; else `truth` may give it by name.

    >>> import neyman, neyman.plot
    >>> p = neyman.Join([neyman.Normal("alpha", 1), neyman.Normal("beta", 1)],
    ...                 parameters={"alpha": (-1, 1), "beta": (-1, 1)})
    >>> likelihood = neyman.Likelihood(neyman.ExactRatio(p), p.sample(500, [0.2, -0.3], seed=1))
    >>> ax = neyman.plot.contours(likelihood, "alpha", "beta", label="exact")
    >>> ax.get_xlabel(), [text.get_text() for text in ax.texts]
    ('α', ['1σ', '2σ', '3σ'])
    """
    best: Mapping[str, float] = {}
    if isinstance(what, Likelihood):
        if first is None or second is None:
            raise ArgumentError("contours: first and second are not both given, but must be names "
                                "of parameters")
        options.setdefault("levels", [0.6827, 0.9545, 0.9973])
        fitted = what.fit()
        best = fitted.theta
        what = what.contours(first, second, best=fitted, **options)
    if isinstance(what, Contour):
        what = [what]
    if isinstance(what, Mapping):
        ax = draw.new_axes(ax, 5.6, 4.8)
        surfaces = _surfaces("contours", what, first, second)
        x_name, y_name = surfaces[0]["parameters"]
        roles = _roles([entry["label"] for entry in surfaces])
        for i, (entry, role) in enumerate(zip(surfaces, roles)):
            lines = [(c["level"], [_close(one) for one in c["lines"]]) for c in entry["contours"]]
            _draw_contours(ax, lines, entry["label"], role, i == 0)
        _marks(ax, what, x_name, y_name)
    else:
        if (isinstance(what, (str, bytes)) or not isinstance(what, Sequence) or not what
                or not all(isinstance(entry, Contour) for entry in what)):
            raise _refuse("contours", what, "results, a Likelihood, or contours")
        ax = draw.new_axes(ax, 5.6, 4.8)
        x_name, y_name = what[0].first, what[0].second
        role = _roles([label])[0]
        _draw_contours(ax, [(entry.level, entry.lines) for entry in what], label, role,
                       role != "exact")
        if truth is not None and {x_name, y_name} <= set(truth):
            draw.mark(ax, truth[x_name], truth[y_name], "truth", "truth")
        if best:
            draw.mark(ax, best[x_name], best[y_name],
                      "exact_estimate" if role == "exact" else "learned_estimate",
                      "exact estimate" if role == "exact" else "estimate")
    draw.name_axes(ax, symbol(x_name), symbol(y_name))
    draw.legend(ax)
    return ax


def surface(what: Results | Surface, first: str | None = None, second: str | None = None, *,
            label: str | None = None, cap: float | None = None, ax: Axes | None = None) -> Axes:
    """−2 log Λ over two parameters as colours, up to `cap`, with the contours of 1, 2, 3 σ, truth
    and estimates. Results may have several surfaces: `label` names one ("learned", "exact", …), by
    default the first.

    >>> import neyman, neyman.plot, numpy
    >>> grid = numpy.linspace(-1, 1, 41)
    >>> values = 30 * (grid**2 + grid[:, None]**2)
    >>> ax = neyman.plot.surface(neyman.Surface("alpha", "beta", grid, grid, values, 0))
    >>> ax.get_ylabel()
    'β'
    """
    entry: dict[str, Any] = {}
    labels: list[str] = []
    if isinstance(what, Surface):
        x_name, y_name = what.first, what.second
        x, y, values = what.x, what.y, np.asarray(what.statistic, dtype=np.float64)
        thresholds = [(level, float(draw.chi2_quantile(level, 2)[0]))
                      for level in (0.6827, 0.9545, 0.9973)]
    elif isinstance(what, Mapping):
        found = _surfaces("surface", what, first, second)
        labels = [one["label"] for one in found]
        entry = found[labels.index(_one_of("surface", "label", label or labels[0], labels))]
        x_name, y_name = entry["parameters"]
        x, y, values = (np.array(entry[key], dtype=np.float64) for key in ("x", "y", "statistic"))
        thresholds = [(c["level"], c["threshold"]) for c in entry["contours"]]
    else:
        raise _refuse("surface", what, "results or a Surface")
    ax = draw.new_axes(ax, 6.0, 4.7)
    largest = float(np.max(values[np.isfinite(values)]))
    if cap is None:
        cap = math.ceil(2.5 * max([threshold for _, threshold in thresholds] or [12.0]))
    draw.heatmap(ax, x, y, np.where(np.isfinite(values), values, largest), label="−2 log Λ",
                 limits=(0.0, min(cap, largest)))
    if isinstance(what, Mapping):
        lines = [(c["level"], [_close(one) for one in c["lines"]]) for c in entry["contours"]]
        for i, (_, level_lines) in enumerate(lines):
            draw.polylines(ax, level_lines, "light", width=2.2 - 0.4 * min(i, 3))
        if "evaluated" in entry:
            draw.points(ax, entry["evaluated"][x_name], entry["evaluated"][y_name], "light",
                        size=2.6, label="evaluated").set(markeredgecolor=draw.COLOURS["muted"],
                                                         markeredgewidth=0.7)
        _marks(ax, what, x_name, y_name)
    else:
        lines_found = ax.contour(x, y, values, [t for _, t in thresholds], colors="#fefefe",
                                 linewidths=[1.8, 1.5, 1.2])
        lines = [(level, [segment for segment in segments if len(segment)])
                 for (level, _), segments in zip(thresholds, lines_found.allsegs)]
        row, column = np.unravel_index(np.nanargmin(values), values.shape)
        draw.mark(ax, float(x[column]), float(y[row]), "learned_estimate", "lowest")
    for level, level_lines in lines:
        _label_contour(ax, level_lines, draw.sigma_words(level), "white", "#2d1160")
    ax.set_xlim(x[0], x[-1])
    ax.set_ylim(y[0], y[-1])
    draw.name_axes(ax, symbol(x_name), symbol(y_name))
    draw.legend(ax)
    draw.heading(ax, entry["label"] if len(labels) > 1 else "")
    return ax


def _shown(values: Floats, statistic: Floats, top: float) -> tuple[float, float]:
    """The stretch of a curve below `top`, with a point more at each end."""
    inside = np.flatnonzero(statistic <= top)
    if inside.size == 0:
        return float(values[0]), float(values[-1])
    return (float(values[max(inside[0] - 1, 0)]),
            float(values[min(inside[-1] + 1, len(values) - 1)]))


def _draw_profile(ax: Axes, curves: Sequence[tuple[str, Floats, Floats]], levels: Sequence[float],
                  intervals: Sequence[tuple[float, float, float]], truth: float | None) -> None:
    thresholds = [float(draw.chi2_quantile(level, 1)[0]) for level in levels]
    top = 1.6 * max(thresholds or [3.84])
    ends = [_shown(values, statistic, top) for _, values, statistic in curves]
    if ax.get_lines():  # a curve was drawn here before
        ends.append(ax.get_xlim())
        top = max(top, ax.get_ylim()[1])
    for level, low, high in sorted(intervals, reverse=True):
        draw.span(ax, "x", low, high, "band95" if level > 0.8 else "band68")
    for label, values, statistic in curves:
        exact = label == "exact"
        draw.line(ax, values, statistic, _roles([label])[0], label=label, width=2.2,
                  dash="dashed" if exact else "solid", zorder=4 if exact else 3)
    known = [text.get_text() for text in ax.texts]
    for level, threshold in zip(levels, thresholds):
        if draw.level_words(level) not in known:
            draw.reference(ax, "y", threshold, label=draw.level_words(level), dash="dotted")
    if truth is not None and "truth" not in known:
        draw.reference(ax, "x", truth, label="truth", role="truth")
    ax.set_xlim(min(low for low, _ in ends), max(high for _, high in ends))
    ax.set_ylim(0, top)


def profile(what: Results | Likelihood | Scan | ProfileScan | MeasurementSummary,
            parameter: str | None = None, *,
            intervals: Sequence[Interval] = (), levels: Sequence[float] = (0.683, 0.95),
            truth: float | None = None, label: str = "learned", ax: Axes | None = None) -> Axes:
    """−2 log Λ along one parameter, the others profiled, with the thresholds of the levels and,
    shaded, the intervals. Results have both, the exact curve where it is known, and the truth.
    `parameter` may be left out where there is one only. The label "exact" gives a dashed curve
    without intervals, to be drawn over another. Of a measurement: its parameter of interest, with
    the nuisance parameters profiled and held.

    >>> import neyman, neyman.plot
    >>> p = neyman.Normal("mu", 1, parameters={"mu": (-3, 3)})
    >>> likelihood = neyman.Likelihood(neyman.ExactRatio(p), p.sample(100, 0.5, seed=1))
    >>> ax = neyman.plot.profile(likelihood, truth=0.5)
    >>> ax.get_ylabel(), [text.get_text() for text in ax.texts]
    ('−2 log Λ(μ)', ['68.3 %', '95 %', 'truth'])
    """
    if isinstance(what, MeasurementSummary):
        return _measured_panel("profile", what, "measurement-profile", ax)
    shaded = [(entry.level, entry.low, entry.high) for entry in intervals]
    held = what if isinstance(what, ProfileScan) else None
    if isinstance(what, ProfileScan):
        what = Scan(what.parameter, what.values, what.statistic, what.failed)
        label = "the others profiled" if label == "learned" else label
    if isinstance(what, Likelihood):
        parameter = _one_of("profile", "parameter", parameter, what.parameters.names)
        best = what.fit()
        found = [what.interval(parameter, level=level, best=best) for level in levels]
        if not shaded and label != "exact":
            shaded = [(entry.level, entry.low, entry.high) for entry in found]
        low, high = what.parameters.ranges[parameter]
        if found:
            start, end = min(entry.low for entry in found), max(entry.high for entry in found)
            low, high = max(low, 1.5 * start - end / 2), min(high, 1.5 * end - start / 2)
        what = what.scan(parameter, low=low, high=high, points=81, best=best)
    if isinstance(what, Scan):
        curves = [(label, what.values, what.statistic)]
        parameter = what.parameter
    elif isinstance(what, Mapping):
        entries = _plain(what)
        known = list(_part("profile", what, "fit")["scan"])
        parameter = _one_of("profile", "parameter", parameter, known)
        curves = []
        for name, key in ((label, "fit"), ("exact", "exact_fit")):
            scan = entries.get(key, {}).get("scan", {}).get(parameter)
            if scan is not None:
                curves.append((name, np.array(scan["values"], dtype=np.float64),
                               np.array(scan["statistic"], dtype=np.float64)))
        limits = entries["fit"]["parameters"][parameter]["interval"]
        levels = [float(level) for level in limits]
        shaded = shaded or [(float(level), ends[0], ends[1]) for level, ends in limits.items()]
        truth = _truth(what).get(parameter) if truth is None else truth
    else:
        raise _refuse("profile", what, "results, a Likelihood, a scan or a measurement")
    ax = draw.new_axes(ax)
    _draw_profile(ax, curves, levels, shaded, truth)
    if held is not None:
        draw.line(ax, held.values, held.held_statistic, "calibrated", dash="dashed",
                  label="the others held at their best fit")
    name = symbol(parameter)
    draw.name_axes(ax, name, f"−2 log Λ({name})")
    draw.legend(ax)
    return ax


def correlation(what: Results | Fit | MeasurementSummary, *, ax: Axes | None = None) -> Axes:
    """The correlations of the estimates, finite simulation included; of a measurement with many
    parameters, of those that are correlated most.

    >>> import neyman, neyman.plot
    >>> p = neyman.Normal("mu", "sigma", parameters={"mu": (-3, 3), "sigma": (0.2, 5)})
    >>> fit = neyman.Likelihood(neyman.ExactRatio(p), p.sample(200, [0, 1], seed=1)).fit()
    >>> [tick.get_text() for tick in neyman.plot.correlation(fit).get_xticklabels()]
    ['μ', 'σ']
    """
    if isinstance(what, MeasurementSummary):
        return _measured_panel("correlation", what, "measurement-correlations", ax)
    if isinstance(what, Fit):
        names = list(what.theta)
        covariance = np.array(what.covariance, dtype=np.float64)
        if what.simulation_covariance.shape == covariance.shape:
            covariance = covariance + what.simulation_covariance
        errors = np.sqrt(np.diag(covariance))
        scale = np.where(errors > 0, errors, 1.0)
        rho = covariance / np.outer(scale, scale)
    elif isinstance(what, Mapping):
        fit = _part("correlation", what, "fit")
        names = list(fit["parameters"])
        rho = np.array(fit["correlation"], dtype=np.float64)
    else:
        raise _refuse("correlation", what, "results, a Fit or a measurement")
    n = len(names)
    ax = draw.new_axes(ax, 2.2 + 0.75 * n, 1.3 + 0.65 * n)
    places = np.arange(n, dtype=np.float64)
    draw.heatmap(ax, places, places, rho, label="correlation", limits=(-1.0, 1.0), diverging=True)
    for row in range(n):
        for column in range(n):
            value = rho[row, column]
            draw.words(ax, column, row, f"{value:.2f}".replace("-", "−"), align="center",
                       role="light" if abs(value) > 0.6 else "dark")
    ax.set_xticks(places, [symbol(name) for name in names])
    ax.set_yticks(places, [symbol(name) for name in names])
    ax.invert_yaxis()
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    ax.tick_params(length=0, labelsize=10)
    return ax


# ------------------------------------------------------------------- scores and calibration

def _pair_panels(function: str, what: Any, pair: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Densities and curve of a pair of components, as the report has them: rows of densities and of
    curves in turn."""
    entry = _report_figure(function, what, "scores")
    panels, columns = entry["panels"], entry["columns"]
    count = len(panels) // 2
    if not 0 <= pair < count:
        raise ArgumentError(f"{function}: pair is {pair}, but must be at least 0 and below {count}")
    block = pair // columns * columns
    wide = min(columns, count - block)
    at = 2 * block + pair - block
    return panels[at], panels[at + wide]


def scores(what: Result | Sequence[npt.ArrayLike], *, pair: int = 0,
           names: Sequence[str] = ("numerator", "denominator"), ax: Axes | None = None) -> Axes:
    """The densities of the score s = P(denominator | x) on both sides. `what` is a pair of arrays
    of logits (numerator, denominator), or a Result, of whose pairs of components `pair` is shown.

    >>> import neyman, neyman.plot
    >>> z0, z1 = neyman.Normal(-1, 2).sample(500, seed=1), neyman.Normal(1, 2).sample(500, seed=2)
    >>> neyman.plot.scores((z0, z1)).get_xlabel()
    'score s'
    """
    if isinstance(what, Result):
        densities, _ = _pair_panels("scores", what, pair)
        return draw.panel(draw.new_axes(ax), densities)
    numerator, denominator = (1 / (1 + np.exp(-z)) for z in _two_samples("scores", what))
    ax = draw.new_axes(ax)
    edges = np.linspace(0, 1, 51)
    ax.set_yscale("log")
    for sample, role, name in zip((numerator, denominator), ("first", "second"), names):
        draw.histogram(ax, edges, draw.density(sample, edges), role, label=name)
    ax.set_xlim(0, 1)
    draw.name_axes(ax, "score s", "density")
    draw.legend(ax)
    return ax


def calibration(what: Result | Sequence[npt.ArrayLike], calibrator: Calibrator | None = None, *,
                pair: int = 0, bins: int = 25, ax: Axes | None = None) -> Axes:
    """log r against the logit z = log s − log(1 − s): what the events of both sides show in bins of
    z, with errors; what the calibrator makes of it; and −z, where a score that needs no calibration
    lies. `what` is a pair of arrays of logits (numerator, denominator), or a Result, of whose pairs
    of components `pair` is shown.

    >>> import neyman, neyman.plot
    >>> z0, z1 = neyman.Normal(-1, 2).sample(5000, seed=1), neyman.Normal(1, 2).sample(5000, seed=2)
    >>> smooth = neyman.SmoothCalibrator().fit(z0, z1)
    >>> ax = neyman.plot.calibration((z0, z1), smooth)
    >>> ax.get_legend_handles_labels()[1]
    ['−z: not calibrated', 'calibrated', 'observed']
    """
    title = ""
    if isinstance(what, Result):
        densities, curve = _pair_panels("calibration", what, pair)
        title = str(curve["title"])
        sides = [entry for entry in densities["series"] if entry["type"] == "histogram"]
        numerator, denominator = (entry["values"] for entry in sides)
        s = (sides[0]["edges"][:-1] + sides[0]["edges"][1:]) / 2
        shown = np.minimum(numerator, denominator) >= 0.02
        x, y, errors = _logit(s[shown]), np.log(numerator[shown] / denominator[shown]), None
        found = next(entry for entry in curve["series"] if entry["label"] == "calibrated")
        inside = (found["x"] > 0) & (found["x"] < 1) & (found["y"] > 0) & (found["y"] < 1)
        z, log_r = _logit(found["x"][inside]), -_logit(found["y"][inside])
        curve_found: tuple[Floats, Floats | None] | None = (log_r, None)
    else:
        z0, z1 = _two_samples("calibration", what)
        edges = np.unique(np.quantile(np.concatenate([z0, z1]), np.linspace(0, 1, bins + 1)))
        n0, n1 = (np.histogram(side, edges)[0] for side in (z0, z1))
        shown = (n0 > 0) & (n1 > 0)
        x = ((edges[:-1] + edges[1:]) / 2)[shown]
        y = np.log(n0[shown] / z0.size) - np.log(n1[shown] / z1.size)
        errors = np.sqrt(1 / n0[shown] + 1 / n1[shown])
        z = np.linspace(edges[0], edges[-1], 201)
        curve_found = (None if calibrator is None
                       else (calibrator.log_ratios(z), calibrator.errors(z)))
    ax = draw.new_axes(ax)
    ends = np.array([z.min(), z.max()])
    draw.line(ax, ends, -ends, "reference", label="−z: not calibrated", dash="dotted", width=1.6)
    if curve_found is not None:
        log_r, deviation = curve_found
        if deviation is not None:
            draw.band(ax, z, log_r - deviation, log_r + deviation, "calibrated")
        draw.line(ax, z, log_r, "calibrated", label="calibrated", width=2.2)
    draw.points(ax, x, y, "data", label="observed", size=2.4, y_errors=errors)
    draw.name_axes(ax, "logit z", "log r")
    draw.legend(ax)
    draw.heading(ax, title)
    return ax


def _logit(s: Floats) -> Floats:
    return np.asarray(np.log(s) - np.log1p(-s), dtype=np.float64)


def log_ratios(learned: Result | npt.ArrayLike, exact: npt.ArrayLike | None = None, *,
               ax: Axes | None = None) -> Axes:
    """The distribution of log r̂, beside the exact one where it is given or the Result has it.

    >>> import neyman, neyman.plot
    >>> x = neyman.Normal(0, 1).sample(1000, seed=1)[:, 0]
    >>> ax = neyman.plot.log_ratios(0.5 - x, 0.5 - 1.01 * x)
    >>> ax.get_legend_handles_labels()[1]
    ['exact', 'learned']
    """
    if isinstance(learned, Result):
        entry = _report_figure("log_ratios", learned, "log-ratio")
        return draw.panel(draw.new_axes(ax), entry["panels"][0])
    values = np.ravel(np.asarray(learned, dtype=np.float64))
    others = None if exact is None else np.ravel(np.asarray(exact, dtype=np.float64))
    ax = draw.new_axes(ax)
    ax.set_yscale("log")
    edges = draw.edges_of(values, *([] if others is None else [others]))
    if others is not None:
        draw.histogram(ax, edges, draw.density(others, edges), "exact", label="exact")
    draw.histogram(ax, edges, draw.density(values, edges), "approximate", label="learned",
                   filled=others is None)
    draw.name_axes(ax, "log r", "density")
    draw.legend(ax)
    return ax


# ------------------------------------------------------------------------------- diagnostics

def reliability(what: Result | Diagnostic | Sequence[npt.ArrayLike], *, bins: int = 20,
                ax: Axes | None = None) -> Axes:
    """The share of the denominator in bins of the calibrated score, with binomial errors: on the
    diagonal where the score is right. `what` is a Result with this diagnostic, the Diagnostic, or a
    pair of arrays of log r̂ (of events of the numerator, and of the denominator).

    >>> import neyman, neyman.plot
    >>> x0, x1 = neyman.Normal(0, 1).sample(2000, seed=1), neyman.Normal(1, 1).sample(2000, seed=2)
    >>> neyman.plot.reliability((0.5 - x0, 0.5 - x1)).get_xlabel()
    'calibrated score'
    """
    if isinstance(what, (Result, Diagnostic)):
        entry = _diagnostic("reliability", what, "reliability")["panels"][0]
        return _square(draw.panel(draw.new_axes(ax, 4.6, 4.4), {**entry, "title": ""}))
    numerator, denominator = (1 / (1 + np.exp(side)) for side in _two_samples("reliability", what))
    edges = np.linspace(0, 1, bins + 1)
    n0, n1 = (np.histogram(side, edges)[0] / side.size for side in (numerator, denominator))
    m0, m1 = (np.histogram(side, edges)[0] for side in (numerator, denominator))
    shown = m0 + m1 > 0
    share = n1[shown] / (n0[shown] + n1[shown])
    errors = np.sqrt(np.maximum(share * (1 - share), 0) / (m0 + m1)[shown])
    ax = draw.new_axes(ax, 4.6, 4.4)
    draw.line(ax, [0, 1], [0, 1], "reference", label="expected", dash="dotted", width=1.6)
    draw.points(ax, ((edges[:-1] + edges[1:]) / 2)[shown], share, "approximate", label="observed",
                y_errors=errors)
    draw.name_axes(ax, "calibrated score", "share of the denominator")
    return _square(ax)


def _square(ax: Axes) -> Axes:
    """Shares against shares, with the names in the corner that such curves leave free."""
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_aspect("equal")
    draw.legend(ax, inside="lower right")
    return ax


def _roc_curve(numerator: Floats, denominator: Floats,
               weights: Floats | None) -> tuple[Floats, Floats, float]:
    """Shares of both sides above each threshold of the score, and the area below."""
    w = np.concatenate([np.ones_like(numerator),
                        np.ones_like(denominator) if weights is None else weights])
    score = np.concatenate([numerator, denominator])
    is_denominator = np.arange(score.size) >= numerator.size
    order = np.argsort(-score, kind="stable")
    last = np.append(np.diff(score[order]) != 0, True)  # equal scores are one step

    def share(side: npt.NDArray[np.bool_]) -> Floats:
        cumulated = np.cumsum(np.where(side[order], w[order], 0.0))
        return np.concatenate([[0.0], cumulated[last] / cumulated[-1]])

    x, y = share(~is_denominator), share(is_denominator)
    return x, y, float(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2))


def roc(what: Result | Diagnostic | Sequence[npt.ArrayLike], *, weights: npt.ArrayLike | None = None,
        label: str = "", ax: Axes | None = None) -> Axes:
    """ROC curves with the areas below them (AUC). Of a Result or a Diagnostic, those of reweighting:
    a new classifier cannot tell the numerator from the denominator weighted by r̂ where r̂ is
    right, so that its curve lies on the diagonal. Or of a pair of arrays of scores (numerator,
    denominator), with `weights` of the second.

    >>> import neyman, neyman.plot
    >>> ax = neyman.plot.roc(([0.1, 0.2, 0.6], [0.4, 0.8, 0.9]), label="mine")
    >>> ax.get_legend_handles_labels()[1]
    ['no separation', 'mine: AUC 0.889']
    """
    if isinstance(what, (Result, Diagnostic)):
        entry = _diagnostic("roc", what, "reweighting")["panels"][0]
        numbers: dict[str, float] = (what.numbers if isinstance(what, Diagnostic) else next(
            (found.get("numbers") or {} for found in what.to_dict()["diagnostics"]
             if found["name"] == "reweighting"), {}))
        areas = {"weighted by r̂": "area", "without weights": "control_area",
                 "weighted by the exact r": "exact_area"}
        series = []
        for one in entry["series"]:
            area = numbers.get(areas.get(one["label"], ""))
            series.append(one if area is None else
                          {**one, "label": f"{one['label']}: AUC {area:.3f}",
                           "dash": "dashed" if "exact" in one["label"] else "solid"})
        ax = draw.new_axes(ax, 4.6, 4.4)
        draw.panel(ax, {**entry, "title": "", "series": series})
        return _square(ax)
    numerator, denominator = _two_samples("roc", what)
    w = None if weights is None else np.ravel(np.asarray(weights, dtype=np.float64))
    if w is not None and (w.size != denominator.size or np.any(w < 0) or not w.sum() > 0):
        raise ArgumentError(f"roc: weights has {w.size} values, but must have {denominator.size} "
                            "(one for each of the denominator), none negative and some positive")
    x, y, area = _roc_curve(numerator, denominator, w)
    ax = draw.new_axes(ax, 4.6, 4.4)
    drawn = sum(1 for one in ax.get_lines() if "AUC" in str(one.get_label()))
    if drawn == 0:
        draw.line(ax, [0, 1], [0, 1], "reference", label="no separation", dash="dotted", width=1.6)
    draw.line(ax, x, y, ("approximate", *_OTHERS)[drawn % 6], width=2.0,
              label=f"{label}: AUC {area:.3f}" if label else f"AUC {area:.3f}")
    draw.name_axes(ax, "share of the numerator", "share of the denominator")
    return _square(ax)


def closure(what: Result | Diagnostic | Sequence[npt.ArrayLike], weights: npt.ArrayLike | None = None, *,
            feature: int = 0, name: str = "x", ax: Axes | None = None) -> Axes:
    """One feature of the numerator's events, and of the denominator's weighted by r̂ with errors:
    the same where r̂ is right. `what` is a Result with this diagnostic, the Diagnostic, or a pair of
    arrays (numerator, denominator), with `weights` r̂ of the second.

    >>> import neyman, neyman.plot, numpy
    >>> x0, x1 = neyman.Normal(0, 1).sample(2000, seed=1), neyman.Normal(1, 1).sample(2000, seed=2)
    >>> ax = neyman.plot.closure((x0, x1), weights=numpy.exp(0.5 - x1))
    >>> ax.get_legend_handles_labels()[1]
    ['numerator', 'denominator', 'reweighted denominator']
    """
    if isinstance(what, (Result, Diagnostic)):
        panels = _diagnostic("closure", what, "closure")["panels"]
        if not 0 <= feature < len(panels):
            raise ArgumentError(f"closure: feature is {feature}, but must be at least 0 and below "
                                f"{len(panels)}")
        return draw.panel(draw.new_axes(ax), {**panels[feature], "title": ""})
    numerator, denominator = _two_samples("closure", what)
    w = (np.ones_like(denominator) if weights is None
         else np.ravel(np.asarray(weights, dtype=np.float64)))
    if w.size != denominator.size:
        raise ArgumentError(f"closure: weights has {w.size} values, but must have "
                            f"{denominator.size} (one for each of the denominator)")
    edges = draw.edges_of(numerator, denominator, most=40)
    ax = draw.new_axes(ax)
    draw.histogram(ax, edges, draw.density(numerator, edges), "denominator", label="numerator")
    if weights is not None:
        draw.histogram(ax, edges, draw.density(denominator, edges), "calibrated",
                       label="denominator", filled=False)
    values = draw.density(denominator, edges, w)
    squares, _ = np.histogram(denominator, edges, weights=w**2)
    draw.points(ax, (edges[:-1] + edges[1:]) / 2, values, "approximate",
                label="denominator" if weights is None else "reweighted denominator", size=2.6,
                y_errors=np.sqrt(squares) / (np.diff(edges) * w.sum()))
    ax.set_ylim(bottom=0)
    draw.name_axes(ax, name, "density")
    draw.legend(ax)
    return ax


# -------------------------------------------------------------------------------- repetition

def _statistics(function: str, what: Any) -> tuple[list[tuple[str, Floats]], int]:
    """−2 log Λ of the datasets of an ensemble by label, and the degrees of freedom."""
    if isinstance(what, Toys):
        return [("datasets", what.statistic)], len(what.theta)
    found = _part(function, what, "ensemble")
    sides = [(label, np.array(found[key]["statistics"], dtype=np.float64))
             for label, key in (("exact", "exact"), ("learned", "approximate")) if key in found]
    return sides, len(found["at"])


def _given_statistics(function: str, what: Any,
                      degrees: int | None) -> tuple[list[tuple[str, Floats]], int]:
    if isinstance(what, (Toys, Mapping)):
        sides, count = _statistics(function, what)
        return sides, count if degrees is None else degrees
    try:
        values = np.ravel(np.asarray(what, dtype=np.float64))
    except (TypeError, ValueError):
        raise _refuse(function, what, "results, Toys, or an array of −2 log Λ") from None
    if values.size == 0 or not np.all(np.isfinite(values)):
        raise ArgumentError(f"{function}: what has {values.size} values, but must have some, all "
                            "finite")
    return [("datasets", values)], 1 if degrees is None else degrees


def _chi2_name(degrees: int) -> str:
    return "χ²" + str(degrees).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def ensemble(what: Results | Toys, parameter: str | None = None, *, ax: Axes | None = None) -> Axes:
    """The estimates of one parameter over many simulated datasets, with the θ they were simulated
    at, and beside the exact likelihood's where it is known.

    >>> import neyman, neyman.plot
    >>> p = neyman.Normal("mu", 1, parameters={"mu": (-3, 3)})
    >>> toys = neyman.toys(p, neyman.ExactRatio(p), 0.5, datasets=100, events=100, seed=1)
    >>> ax = neyman.plot.ensemble(toys)
    >>> ax.get_xlabel(), ax.texts[0].get_text()
    ('estimate of μ', 'μ = 0.5')
    """
    if isinstance(what, Toys):
        names = list(what.theta)
        parameter = _one_of("ensemble", "parameter", parameter, names)
        at = what.theta[parameter]
        sides = [("datasets", what.estimates[:, names.index(parameter)])]
    elif isinstance(what, Mapping):
        found = _part("ensemble", what, "ensemble")
        parameter = _one_of("ensemble", "parameter", parameter, list(found["at"]))
        at = found["at"][parameter]
        sides = [(label, np.array(found[key]["estimates"][parameter], dtype=np.float64))
                 for label, key in (("exact", "exact"), ("learned", "approximate"))
                 if key in found]
    else:
        raise _refuse("ensemble", what, "results or Toys")
    ax = draw.new_axes(ax)
    edges = draw.edges_of(*(values for _, values in sides), most=40)
    for i, (label, values) in enumerate(sides):
        words = f"{label}: {values.mean():.4g} ± {values.std(ddof=1):.2g}"
        draw.histogram(ax, edges, draw.density(values, edges), "exact" if label == "exact"
                       else "approximate", label=words, filled=i == 0)
    ax.set_ylim(0, 1.12 * ax.dataLim.y1)
    draw.reference(ax, "x", at, label=f"{symbol(parameter)} = {at:.4g}")
    draw.name_axes(ax, f"estimate of {symbol(parameter)}", "density")
    draw.legend(ax)
    return ax


def wilks(what: Results | Toys | npt.ArrayLike, degrees: int | None = None, *,
          ax: Axes | None = None) -> Axes:
    """−2 log Λ at the true θ over many simulated datasets, against the density of χ² that it has by
    Wilks' theorem, with one degree of freedom a parameter.

    >>> import neyman, neyman.plot
    >>> z = neyman.Normal(0, 1).sample(500, seed=1)
    >>> neyman.plot.wilks(z**2).get_legend_handles_labels()[1]
    ['datasets', 'χ²₁']
    """
    sides, count = _given_statistics("wilks", what, degrees)
    high = float(draw.chi2_quantile(0.999, count)[0])
    edges = np.linspace(0, high, 23)
    ax = draw.new_axes(ax)
    ax.set_yscale("log")
    for i, (label, values) in enumerate(sides):
        draw.histogram(ax, edges, draw.density(values, edges),
                       "exact" if label == "exact" else "approximate", label=label, filled=i == 0)
    x = np.linspace(high / 300, high, 300)
    draw.line(ax, x, draw.chi2_density(x, count), "calibrated", label=_chi2_name(count), width=2.2)
    ax.set_xlim(0, high)
    ax.set_ylim(bottom=0.5 / (max(values.size for _, values in sides) * edges[1]))
    draw.name_axes(ax, "−2 log Λ", "density")
    draw.legend(ax)
    return ax


def quantiles(what: Results | Toys | npt.ArrayLike, degrees: int | None = None, *,
              ax: Axes | None = None) -> Axes:
    """The quantiles of −2 log Λ over many simulated datasets against those of χ²: on the diagonal
    where Wilks' theorem holds. The band holds 95 % of each quantile.

    >>> import neyman, neyman.plot
    >>> z = neyman.Normal(0, 1).sample(500, seed=1)
    >>> neyman.plot.quantiles(z**2).get_xlabel()
    'quantile of χ²₁'
    """
    sides, count = _given_statistics("quantiles", what, degrees)
    ax = draw.new_axes(ax, 4.6, 4.4)
    most = max(values.size for _, values in sides)
    shares = (np.arange(most) + 0.5) / most
    expected = draw.chi2_quantile(shares, count)
    error = 1.96 / np.sqrt(most * shares * (1 - shares))  # of the logit of a share
    low, high = (draw.chi2_quantile(1 / (1 + np.exp(-_logit(shares) - sign * error)), count)
                 for sign in (-1, 1))
    draw.band(ax, expected, low, high, "reference")
    draw.line(ax, expected[[0, -1]], expected[[0, -1]], "reference", label="expected",
              dash="dotted", width=1.6)
    for label, values in sides:
        own = draw.chi2_quantile((np.arange(values.size) + 0.5) / values.size, count)
        draw.points(ax, own, np.sort(values), "exact" if label == "exact" else "approximate",
                    label=label, size=2.0, marker="D" if label == "exact" else "o")
    top = 1.05 * max(float(expected[-1]), *(float(values.max()) for _, values in sides))
    ax.set_xlim(0, 1.05 * expected[-1])
    ax.set_ylim(0, top)
    draw.name_axes(ax, f"quantile of {_chi2_name(count)}", "quantile of −2 log Λ")
    draw.legend(ax, inside="lower right")
    return ax


#: (θ, by level (level, coverage, its error)) of one point.
_Shares = tuple[Mapping[str, float], Sequence[tuple[float, float, float]]]


def _coverage_points(what: Any) -> list[_Shares]:
    if isinstance(what, CoveragePoint):
        what = [what]
    if isinstance(what, Toys):
        n = len(what.statistic)
        return [(what.theta, [(level, share, math.sqrt(share * (1 - share) / n))
                              for level, share in zip(what.levels, what.coverage)])]
    if isinstance(what, Mapping):
        return [(point["at"], [(float(level), share, point["coverage_error"][level])
                               for level, share in point["coverage"].items()])
                for point in _part("coverage", what, "coverage")["points"]]
    if (isinstance(what, Sequence) and what
            and all(isinstance(point, CoveragePoint) for point in what)):
        return [(point.theta, list(zip(point.levels, point.coverage, point.error)))
                for point in what]
    raise _refuse("coverage", what, "results, Toys, or the points of neyman.coverage")


def coverage(what: Results | Toys | CoveragePoint | Sequence[CoveragePoint], *,
             ax: Axes | None = None) -> Axes:
    """How often regions hold the θ of the data, by level, with binomial errors; dashed, how often
    they should. With one parameter against its value, with several against the number of the point.

    >>> import neyman, neyman.plot
    >>> p = neyman.Normal("mu", 1, parameters={"mu": (-3, 3)})
    >>> points = neyman.coverage(p, neyman.ExactRatio(p), [[0.0], [1.0]], events=50, datasets=40)
    >>> ax = neyman.plot.coverage(points)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('μ', 'coverage')
    """
    found = _coverage_points(what)
    names = list(found[0][0])
    alone = len(names) == 1
    at = np.array([point[names[0]] if alone else i + 1.0 for i, (point, _) in enumerate(found)])
    gap = float(np.ptp(at)) / (len(at) - 1) if len(at) > 1 and np.ptp(at) > 0 else 1.0
    ax = draw.new_axes(ax)
    levels = [level for level, _, _ in found[0][1]]
    roles = ("approximate", "calibrated", "decomposed", "third")
    for i, level in enumerate(levels):
        shares = np.array([entries[i][1] for _, entries in found], dtype=np.float64)
        errors = np.array([entries[i][2] for _, entries in found], dtype=np.float64)
        role = roles[i % len(roles)]
        draw.reference(ax, "y", level, label=draw.level_words(level), role=role)
        draw.points(ax, at, shares, role, y_errors=errors, marker="osD^"[i % 4], size=3.6,
                    label=f"of the {draw.level_words(level)} regions")
    ax.set_xlim(at.min() - 0.6 * gap, at.max() + 0.6 * gap)
    if not alone:
        ax.set_xticks(at, [str(i + 1) for i in range(len(at))])
    draw.name_axes(ax, symbol(names[0]) if alone else "point", "coverage")
    draw.legend(ax)
    return ax


def test(what: Results | SimpleTest, *, ax: Axes | None = None) -> Axes:
    """The statistic of the test of two simple hypotheses under both, and the observed one.

    >>> import neyman, neyman.plot
    >>> p = neyman.Normal("mu", 1, parameters={"mu": (-3, 3)})
    >>> found = neyman.simple_test(p, neyman.ExactRatio(p), p.sample(50, 1, seed=1), null=0,
    ...                            alternative=1, datasets=200)
    >>> ax = neyman.plot.test(found)
    >>> ax.get_legend_handles_labels()[1]
    ['alternative', 'null']
    """
    if isinstance(what, SimpleTest):
        null, alternative = what.null_statistics, what.alternative_statistics
        observed, p_value, names = what.statistic, what.p_value, ["null", "alternative"]
    elif isinstance(what, Mapping):
        found = _part("test", what, "test")
        null, alternative = (np.array(found[key], dtype=np.float64)
                             for key in ("null_statistics", "alternative_statistics"))
        observed, p_value = found["statistic"], found["p_value"]
        names = [f"{side}: " + ", ".join(f"{symbol(name)} = {value:.4g}"
                                         for name, value in found[side].items())
                 for side in ("null", "alternative")]
    else:
        raise _refuse("test", what, "results or a SimpleTest")
    ax = draw.new_axes(ax)
    edges = draw.edges_of(null, alternative)
    draw.histogram(ax, edges, draw.density(alternative, edges), "denominator", label=names[1])
    draw.histogram(ax, edges, draw.density(null, edges), "numerator", label=names[0], filled=False)
    ax.set_ylim(0, 1.14 * ax.dataLim.y1)
    draw.reference(ax, "x", observed, label=f"observed, p = {p_value:.2g}", role="approximate",
                   dash="solid")
    draw.name_axes(ax, "Σ log r̂", "density")
    draw.legend(ax)
    return ax


test.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for one of its own


# -------------------------------------------------------------------------------------- data

def _events(what: Any, names: Sequence[str] | None) -> tuple[Floats, list[str]]:
    if isinstance(what, Result):
        x = np.array(what._run.data, dtype=np.float64)
        known: Sequence[str] = what.to_dict()["study"]["features"]
    elif isinstance(what, Samples):
        x, known = np.asarray(what.x, dtype=np.float64), what.feature_names
    else:
        known = column_names(what) or []
        try:
            x = np.asarray(what, dtype=np.float64)
        except (TypeError, ValueError):
            raise _refuse("scatter_matrix", what, "a Result, Samples, or an array") from None
    x = x[:, None] if x.ndim == 1 else x
    if x.ndim != 2 or 0 in x.shape:
        raise ArgumentError(f"scatter_matrix: what has the shape {x.shape}, but must have events "
                            "in rows and features in columns")
    found = list(names or known or [f"x{i}" for i in range(x.shape[1])])
    if len(found) != x.shape[1]:
        raise ArgumentError(f"scatter_matrix: names has {len(found)} values, but must have "
                            f"{x.shape[1]} (one for each feature)")
    return x, found


def scatter_matrix(what: Result | Samples | npt.ArrayLike, *, names: Sequence[str] | None = None,
                   most: int = 1000, ax: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
    """The features of events: histograms on the diagonal, a cloud for each pair below it (of at
    most `most` events), correlations ρ above. Returns the axes, features × features; so must `ax`
    be.

    >>> import neyman, neyman.plot
    >>> x = neyman.MultivariateNormal([0, 0], [[1, 0.5], [0.5, 1]]).sample(2000, seed=1)
    >>> axes = neyman.plot.scatter_matrix(x, names=["mass", "width"])
    >>> axes.shape, axes[1, 0].get_xlabel(), axes[0, 1].texts[0].get_text()[:7]
    ((2, 2), 'mass', 'ρ = 0.5')
    """
    x, found = _events(what, names)
    n = x.shape[1]
    if ax is None:
        size = min(max(8.8 / n, 1.5), 2.6)
        axes = draw.grid_of_axes(n, n, size, size)
    else:
        axes = np.asarray(ax)
        if axes.shape != (n, n):
            raise ArgumentError(f"scatter_matrix: ax has the shape {axes.shape}, but must have "
                                f"{(n, n)}")
        for one in axes.flat:
            draw.dress(one)
    shown = x[np.unique(np.linspace(0, len(x) - 1, min(most, len(x))).astype(int))]
    edges = [draw.edges_of(x[:, i], most=40) for i in range(n)]
    deviations = x.std(axis=0)
    for i in range(n):
        for j in range(n):
            one = axes[i, j]
            if j > i:
                varies = deviations[i] > 0 and deviations[j] > 0
                rho = float(np.corrcoef(x[:, i], x[:, j])[0, 1]) if varies else 0.0
                draw.words(one, 0.5, 0.5, f"ρ = {rho:.2f}".replace("-", "−") if varies else "—",
                           fraction=True, align="center", role="muted")
                one.set_axis_off()
                continue
            if i == j:
                draw.histogram(one, edges[i], draw.density(x[:, i], edges[i]), "data")
                one.set_ylim(bottom=0)
                one.set_yticks([])
                one.spines["left"].set_visible(False)
            else:
                draw.points(one, shown[:, j], shown[:, i], "first", size=1.3, alpha=0.7,
                            rasterized=True)
                one.set_ylim(edges[i][0], edges[i][-1])
            one.set_xlim(edges[j][0], edges[j][-1])
            one.locator_params(axis="x", nbins=3)
            if i != j:
                one.locator_params(axis="y", nbins=3)
            one.tick_params(labelbottom=i == n - 1, labelleft=j == 0 and i != j)
            one.set_xlabel(found[j] if i == n - 1 else "")
            one.set_ylabel(found[i] if j == 0 else "")
    return axes


# ------------------------------------------------------------------------- the report's own

# ------------------------------------------------------------------------------- measurements

def _measured(function: str, what: Any, name: str) -> dict[str, Any]:
    """A figure of a measurement's report."""
    if not isinstance(what, MeasurementSummary):
        raise _refuse(function, what, "a MeasurementSummary of neyman.measurements.summarise")
    found = {entry["name"]: entry for entry in what.figures()}
    if name not in found:
        raise ArgumentError(f"{function}: what has no figure {name!r}, but must have it; it has "
                            + (", ".join(found) or "none"))
    return found[name]


def _measured_panel(function: str, what: Any, name: str, ax: Axes | None) -> Axes:
    entry = _measured(function, what, name)
    return draw.panel(draw.new_axes(ax, entry["width"] / 95, entry["height"] / 88),
                      entry["panels"][0])


def _in_axes(function: str, entry: Mapping[str, Any], axes: Any) -> npt.NDArray[Any]:
    """A figure of several panels, in axes of the caller's where there are any."""
    if axes is None:
        return _draw_figure(entry)
    rows = math.ceil(len(entry["panels"]) / entry["columns"])
    grid = np.asarray(axes, dtype=object)
    if grid.size != len(entry["panels"]):
        raise ArgumentError(f"{function}: axes has the shape {grid.shape}, but must have "
                            f"{rows} × {entry['columns']} axes")
    for ax, given in zip(grid.flat, entry["panels"]):
        draw.dress(ax)
        draw.panel(ax, given)
    return grid.reshape(rows, entry["columns"])


def strength(what: MeasurementSummary, *, ax: Axes | None = None) -> Axes:
    """The estimate of the parameter of interest with its statistical and total error beside the
    observed and expected upper limits.

    >>> import neyman, neyman.plot
    >>> summary = neyman.measurements.summarise(neyman.measurements.example())
    >>> ax = neyman.plot.strength(summary)
    >>> ax.get_xlabel(), ax.get_yticklabels()[0].get_text()
    ('μ', 'estimate')
    """
    return _measured_panel("strength", what, "measurement-strength", ax)


def limit(what: MeasurementSummary | Sequence[SignalTest], *, level: float = 0.95,
          ax: Axes | None = None) -> Axes:
    """CL_s against the parameter of interest, observed and expected with the bands of ±1 and ±2σ
    (the "Brazil plot"), and the line of 1 − level. Of a summary, or of the tests of
    `asymptotic_scan`.

    >>> import neyman, neyman.plot, numpy
    >>> model = neyman.measurements.example()
    >>> tests = neyman.measurements.asymptotic_scan(model, numpy.linspace(0, 5, 30))
    >>> neyman.plot.limit(tests).get_ylabel()
    'CL_s'
    """
    if isinstance(what, MeasurementSummary):
        return _measured_panel("limit", what, "measurement-limit", ax)
    if (isinstance(what, (str, bytes)) or not isinstance(what, Sequence) or not what
            or not all(isinstance(test, SignalTest) for test in what)):
        raise _refuse("limit", what, "a MeasurementSummary or a list of SignalTest")
    ax = draw.new_axes(ax)
    ax.set_yscale("log")
    values = [test.tested for test in what]
    expected = np.array([test.expected_cl_s for test in what])
    draw.band(ax, values, expected[:, 0], expected[:, 4], "band95", label="±2σ")
    draw.band(ax, values, expected[:, 1], expected[:, 3], "band68", label="±1σ")
    draw.line(ax, values, expected[:, 2], "calibrated", label="expected", dash="dashed")
    draw.line(ax, values, [test.cl_s for test in what], "exact", label="observed", width=2.2)
    draw.reference(ax, "y", 1 - level, label=f"{100 * (1 - level):.3g} %", role="truth",
                   dash="solid")
    ax.set_xlim(min(values), max(values))
    ax.set_ylim(0.1 * (1 - level), 1.4)
    draw.name_axes(ax, "tested value", "CL_s")
    draw.legend(ax)
    return ax


def impacts(what: MeasurementSummary, *, axes: Any = None) -> npt.NDArray[Any]:
    """Pulls and constraints of nuisance parameters (left) beside their impacts on the estimate
    (right), ranked: the 30 largest. Returns both axes, 1 × 2; `axes` may be two of one's own.

    >>> import neyman, neyman.plot
    >>> summary = neyman.measurements.summarise(neyman.measurements.example())
    >>> neyman.plot.impacts(summary).shape
    (1, 2)
    """
    return _in_axes("impacts", _measured("impacts", what, "measurement-impacts"), axes)


def channel(what: MeasurementSummary | ChannelHistogram, name: str | None = None, *,
            axes: Any = None) -> npt.NDArray[Any]:
    """What was counted in a channel and what is expected there, sample by sample, before the fit
    (left) and after it (right), with the ratio of both below. Returns the axes, 2 × 2. A
    `ChannelHistogram` may be that of a feature of a channel without bins.

    >>> import neyman, neyman.plot
    >>> histogram, = neyman.measurements.channel_histograms(neyman.measurements.example())
    >>> neyman.plot.channel(histogram).shape
    (2, 2)
    """
    if isinstance(what, ChannelHistogram):
        return _in_axes("channel", what._figure, axes)
    known: list[str] = []
    if isinstance(what, MeasurementSummary):
        start = "measurement-channel-"
        known = [entry["name"][len(start):] for entry in what.figures()
                 if entry["name"].startswith(start)]
        name = _one_of("channel", "name", name, known)
    return _in_axes("channel", _measured("channel", what, f"measurement-channel-{name}"), axes)


def measurement(what: MeasurementSummary) -> dict[str, npt.NDArray[Any]]:
    """Draws all figures of a measurement's report; the axes of each by name.

    >>> import neyman, neyman.plot
    >>> summary = neyman.measurements.summarise(neyman.measurements.example())
    >>> list(neyman.plot.measurement(summary))[:3]
    ['measurement-strength', 'measurement-profile', 'measurement-limit']
    """
    if not isinstance(what, MeasurementSummary):
        raise _refuse("measurement", what,
                      "a MeasurementSummary of neyman.measurements.summarise")
    return {entry["name"]: _draw_figure(entry) for entry in what.figures()}


def figure_names(result: Result) -> list[str]:
    """The names of the report's figures that the results have, in their order.

    >>> import neyman, neyman.plot
    >>> result = neyman.run({
    ...     "study": {"name": "normal", "seed": 1},
    ...     "parameters": {"mu": {"range": [-1, 1], "truth": 0.2}},
    ...     "simulator": {"kind": "normal", "mean": "mu", "sigma": 1},
    ...     "training": {"samples": 5000},
    ...     "classifier": {"kind": "separable", "hidden": [], "degree": 2},
    ...     "data": {"events": 500},
    ... })
    >>> "likelihood" in neyman.plot.figure_names(result)
    True
    """
    return [entry["name"] for entry in _drawn("figure_names", result)]


def _draw_figure(entry: Mapping[str, Any]) -> npt.NDArray[Any]:
    columns, panels = entry["columns"], entry["panels"]
    rows = math.ceil(len(panels) / columns)
    axes = draw.grid_of_axes(rows, columns, entry["width"] / 95, entry["height"] / 88,
                             entry["row_heights"])
    for ax, given in zip(axes.flat, panels):
        draw.panel(ax, given)
    for ax in axes.flat[len(panels):]:
        ax.set_axis_off()
    return axes


def figure(result: Result, name: str) -> npt.NDArray[Any]:
    """Draws a figure of the report (see `figure_names`) and returns its axes, rows × columns.

    >>> import neyman, neyman.plot
    >>> result = neyman.run({
    ...     "study": {"name": "normal", "seed": 1},
    ...     "parameters": {"mu": {"range": [-1, 1], "truth": 0.2}},
    ...     "simulator": {"kind": "normal", "mean": "mu", "sigma": 1},
    ...     "training": {"samples": 5000},
    ...     "classifier": {"kind": "separable", "hidden": [], "degree": 2},
    ...     "data": {"events": 500},
    ... })
    >>> neyman.plot.figure(result, "likelihood").shape
    (1, 1)
    """
    return _draw_figure(_report_figure("figure", result, name))


def diagnostic(what: Diagnostic) -> npt.NDArray[Any]:
    """Draws what a check found (see `neyman.diagnostics`) as the report does, and returns its axes,
    rows × columns.

    >>> import neyman, neyman.plot
    >>> x0, x1 = neyman.Normal(0, 1).sample(2000, seed=1), neyman.Normal(1, 1).sample(2000, seed=2)
    >>> events = neyman.RatioEvents(x0, x1, 0.5 - x0[:, 0], 0.5 - x1[:, 0])
    >>> neyman.plot.diagnostic(neyman.diagnostics.reliability(events)).shape
    (1, 1)
    """
    if not isinstance(what, Diagnostic):
        raise _refuse("diagnostic", what, "a Diagnostic")
    if what.figure is None:
        raise ArgumentError(f"diagnostic: what is {what.name!r}, but must be a check with a figure")
    return _draw_figure(what.figure)


def figures(result: Result) -> dict[str, npt.NDArray[Any]]:
    """Draws all figures of the report; the axes of each by name. `axes[0, 0].figure` is a figure of
    matplotlib, with `savefig`.

    >>> import neyman, neyman.plot
    >>> p = {"kind": "normal", "mean": "mu", "sigma": 1}
    >>> result = neyman.run({
    ...     "study": {"name": "normal", "seed": 1}, "simulator": p,
    ...     "parameters": {"mu": {"range": [-1, 1], "truth": 0.2}},
    ...     "training": {"samples": 5000}, "data": {"events": 500},
    ...     "classifier": {"kind": "separable", "hidden": [], "degree": 2},
    ... })
    >>> list(neyman.plot.figures(result))[:2]
    ['data', 'likelihood']
    """
    return {entry["name"]: _draw_figure(entry) for entry in _drawn("figures", result)}
