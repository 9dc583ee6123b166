"""The style of the figures, and the parts they are made of.

Colours, lines and marks are those of the report. Whatever two colours tell, dashes, widths or
shapes tell too, so that a figure can be read in grey.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

Axes = Any  # matplotlib has no types in all the versions that there are
Floats = npt.NDArray[np.float64]

#: What a colour stands for, in every figure.
COLOURS = {
    "exact": "#24292f", "approximate": "#cf4a00", "uncalibrated": "#c77c02",
    "calibrated": "#0072b2", "decomposed": "#008a64", "data": "#30363d", "numerator": "#8250c4",
    "denominator": "#5a7184", "band68": "#2a7fb8", "band95": "#2b80b9", "reference": "#6a737d",
    "first": "#3596d4", "second": "#c9920e", "third": "#b8578f", "truth": "#d3222d",
    "exact_estimate": "#1d8a3c", "learned_estimate": "#1666d6", "light": "#fefefe",
    "dark": "#12161a", "ink": "#1f2328", "muted": "#57606a", "axis": "#8c959f", "grid": "#e6e9ed",
}
DASHES: dict[str, Any] = {"solid": "-", "dashed": (0, (5, 2.5)), "dotted": (0, (1, 2)),
                          "mixed": (0, (7, 2, 1.5, 2))}
#: Shapes of the points of a parameter space.
MARKERS = {"truth": "*", "exact_estimate": "D", "learned_estimate": "o"}
_ALPHAS = {"band68": 0.16, "band95": 0.08}
_SIGMAS = {0.6827: "1σ", 0.683: "1σ", 0.9545: "2σ", 0.954: "2σ", 0.9973: "3σ", 0.997: "3σ"}
_PIXEL = 0.72  # points


def pyplot() -> Any:
    """matplotlib, when it is first needed."""
    try:
        from matplotlib import pyplot as module  # type: ignore[import]
    except ImportError as error:
        raise ImportError("neyman.plot needs matplotlib, which is not installed: "
                          "pip install matplotlib, or python3-matplotlib of Debian") from error
    return module


def new_axes(ax: Axes | None, width: float = 5.6, height: float = 3.9) -> Axes:
    """The axes that were given, or those of a new figure, in our dress."""
    if ax is None:
        _, ax = pyplot().subplots(figsize=(width, height), constrained_layout=True)
    dress(ax)
    return ax


def grid_of_axes(rows: int, columns: int, width: float, height: float,
                 shares: Sequence[float] = ()) -> npt.NDArray[Any]:
    """The axes of a new figure, rows × columns; sizes of each in inches. `shares` are heights of the
    rows relative to the first, which then stand close to each other."""
    heights = [share / shares[0] for share in shares] or [1.0] * rows
    close = {"hspace": 0.0, "wspace": 0.01, "h_pad": 0.03, "w_pad": 0.03}
    _, axes = pyplot().subplots(rows, columns, squeeze=False,
                                constrained_layout=close if len(shares) else True,
                                figsize=(width * columns, height * sum(heights)),
                                gridspec_kw={"height_ratios": heights})
    for ax in axes.flat:
        dress(ax)
    return np.asarray(axes)


def dress(ax: Axes) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(COLOURS["axis"])
        ax.spines[side].set_linewidth(0.8)
    ax.tick_params(colors=COLOURS["axis"], labelcolor=COLOURS["muted"], labelsize=9, length=3,
                   width=0.8, which="major")
    ax.tick_params(which="minor", length=0)
    ax.grid(True, color=COLOURS["grid"], linewidth=0.8)
    ax.set_axisbelow(True)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_color(COLOURS["ink"])
        axis.label.set_fontsize(10)


def name_axes(ax: Axes, x: str, y: str) -> None:
    """Labels where the caller's axes have none yet."""
    if not ax.get_xlabel():
        ax.set_xlabel(x)
    if not ax.get_ylabel():
        ax.set_ylabel(y)


def _columns(ax: Axes, labels: Sequence[str]) -> int:
    """As many as fit above the axes: about 4.4 points a letter, 38 for the sample of the line."""
    width = ax.get_position().width * ax.figure.get_figwidth() * 72
    fitting = [n for n in (1, 2, 3, 4) if n * (38 + 4.4 * max(map(len, labels))) <= width]
    rows = math.ceil(len(labels) / max(fitting, default=1))
    return math.ceil(len(labels) / rows)


def legend(ax: Axes, *, inside: str | None = None) -> None:
    """In rows above the axes, where it hides nothing, or inside where the caller knows of room; the
    things that have the same name are there once."""
    found = dict(zip(*reversed(ax.get_legend_handles_labels())))
    if not found:
        return
    place: dict[str, Any] = {"loc": inside} if inside else {
        "loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncol": _columns(ax, list(found))}
    ax.legend(list(found.values()), list(found), frameon=False, borderaxespad=0.3,
              handlelength=1.8, columnspacing=1.6, labelspacing=0.35, fontsize=9,
              labelcolor=COLOURS["ink"], **place)


def heading(ax: Axes, text: str) -> None:
    """A title above the rows of the legend."""
    if not text:
        return
    shown = ax.get_legend()
    labels = [text.get_text() for text in shown.get_texts()] if shown is not None else []
    rows = math.ceil(len(labels) / _columns(ax, labels)) if labels else 0
    ax.set_title(text, loc="left", fontsize=10.5, fontweight="semibold", color=COLOURS["ink"],
                 pad=7 + 14.5 * rows)


def halo(colour: str = "white", width: float = 2.6) -> list[Any]:
    """Makes words and lines readable on anything."""
    from matplotlib import patheffects

    return [patheffects.withStroke(linewidth=width, foreground=colour, alpha=0.85)]


# ----------------------------------------------------------------------------------- words

def symbol(name: str) -> str:
    """A parameter's name as a figure shows it.

    >>> symbol("alpha"), symbol("beta_1"), symbol("lambda"), symbol("mass")
    ('α', 'β₁', 'λ', 'mass')
    """
    word = name.rstrip("0123456789")
    digits = name[len(word):]
    word = word[:-1] if digits and word.endswith("_") else word
    case = "SMALL" if word.islower() else "CAPITAL"
    try:
        if not word.isascii() or len(word) < 2:
            return name
        spelt = word.upper().replace("LAMBDA", "LAMDA")  # as Unicode has it
        letter = unicodedata.lookup(f"GREEK {case} LETTER {spelt}")
    except KeyError:
        return name
    return letter + digits.translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def level_words(level: float) -> str:
    """A confidence level as a text.

    >>> level_words(0.6827), level_words(0.95)
    ('68.3 %', '95 %')
    """
    return f"{100 * level:.4g} %" if level > 0.99 else f"{100 * level:.3g} %"


def sigma_words(level: float) -> str:
    """A level of a contour as a text.

    >>> sigma_words(0.6827), sigma_words(0.95)
    ('1σ', '95 %')
    """
    return _SIGMAS.get(round(level, 4), level_words(level))


# -------------------------------------------------------------------------------- statistics

def chi2_cdf(x: npt.ArrayLike, degrees: int) -> Floats:
    """P(χ² ≤ x), by the recurrence from one or two degrees of freedom.

    >>> chi2_cdf([1.0], 1), chi2_cdf([2.0], 4)     # P(|z| < 1);  1 − 2/e
    (array([0.68268949]), array([0.26424112]))
    """
    half = np.maximum(np.asarray(x, dtype=np.float64), 0.0) / 2
    first = 1 if degrees % 2 else 2
    out = np.vectorize(math.erf, otypes=[float])(np.sqrt(half)) if first == 1 else 1 - np.exp(-half)
    for k in range(first, degrees, 2):
        out = out - half ** (k / 2) * np.exp(-half) / math.gamma(k / 2 + 1)
    return np.asarray(out, dtype=np.float64)


def chi2_density(x: npt.ArrayLike, degrees: int) -> Floats:
    """The density of χ² at positive x.

    >>> chi2_density([2.0], 2)                     # exp(−1) / 2
    array([0.18393972])
    """
    half = np.asarray(x, dtype=np.float64) / 2
    return np.asarray(half ** (degrees / 2 - 1) * np.exp(-half) / (2 * math.gamma(degrees / 2)),
                      dtype=np.float64)


def chi2_quantile(share: npt.ArrayLike, degrees: int) -> Floats:
    """The x with P(χ² ≤ x) = share.

    >>> chi2_quantile([0.5], 2)                    # 2 log 2
    array([1.38629436])
    """
    wanted = np.atleast_1d(np.asarray(share, dtype=np.float64))
    if degrees == 1:
        return np.array([NormalDist().inv_cdf((1 + p) / 2) ** 2 for p in wanted])
    if degrees == 2:
        return np.asarray(-2 * np.log1p(-wanted), dtype=np.float64)
    low, high = np.zeros_like(wanted), np.full_like(wanted, degrees + 1.0)
    while np.any(chi2_cdf(high, degrees) < wanted):
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        below = chi2_cdf(middle, degrees) < wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2, dtype=np.float64)


def edges_of(*samples: npt.ArrayLike, most: int = 60) -> Floats:
    """Bins that suit samples together: the least width of Freedman and Diaconis, without far
    tails."""
    finite = [np.ravel(np.asarray(sample, dtype=np.float64)) for sample in samples]
    finite = [values[np.isfinite(values)] for values in finite]
    finite = [values for values in finite if values.size]
    if not finite:
        return np.linspace(0.0, 1.0, 11)
    low, high, widths = math.inf, -math.inf, []
    for values in finite:
        quarter, three = np.quantile(values, [0.25, 0.75])
        reach = 5 * (three - quarter) if three > quarter else math.inf
        low = min(low, max(float(values.min()), quarter - reach))
        high = max(high, min(float(values.max()), three + reach))
        widths.append(2 * (three - quarter) * values.size ** (-1 / 3))
    if not low < high:
        return np.linspace(low - 0.5, low + 0.5, 11)
    width = min(widths)
    bins = int(np.clip(math.ceil((high - low) / width) if width > 0 else most, 8, most))
    return np.linspace(low, high, bins + 1)


def density(values: npt.ArrayLike, edges: Floats,
            weights: npt.ArrayLike | None = None) -> Floats:
    """Of all values, also of those outside of the edges."""
    x = np.ravel(np.asarray(values, dtype=np.float64))
    w = np.ones_like(x) if weights is None else np.ravel(np.asarray(weights, dtype=np.float64))
    counts, _ = np.histogram(x, edges, weights=w)
    total = w.sum()
    return np.asarray(counts / (np.diff(edges) * (total if total > 0 else 1.0)), dtype=np.float64)


# ------------------------------------------------------------------------------------ series

def line(ax: Axes, x: npt.ArrayLike, y: npt.ArrayLike, role: str, *, label: str = "",
         dash: str = "solid", width: float = 1.8, **more: Any) -> Any:
    """A line in the colour of its role; widths are in pixels, as in the report."""
    drawn, = ax.plot(x, y, color=COLOURS[role], linestyle=DASHES[dash], label=label or None,
                     linewidth=width * _PIXEL * 1.15, solid_capstyle="round", **more)
    return drawn


def band(ax: Axes, x: npt.ArrayLike, low: npt.ArrayLike, high: npt.ArrayLike, role: str, *,
         label: str = "") -> Any:
    return ax.fill_between(x, low, high, color=COLOURS[role], alpha=_ALPHAS.get(role, 0.16),
                           linewidth=0, label=label or None)


def histogram(ax: Axes, edges: Floats, values: Floats, role: str, *, label: str = "",
              filled: bool = True, errors: Floats | None = None) -> Any:
    """Bins that stand on the axis: filled lightly, or the outline alone. On a logarithmic axis they
    stand on the power of ten below the lowest."""
    base = 0.0
    if ax.get_yscale() == "log":
        positive = np.asarray(values)[np.asarray(values) > 0]
        base = 10.0 ** math.floor(math.log10(positive.min())) if positive.size else 1e-3
        values = np.maximum(values, base)
    drawn = ax.stairs(values, edges, color=COLOURS[role], linewidth=1.5, label=label or None,
                      fill=False, baseline=base)
    if filled:
        ax.stairs(values, edges, color=COLOURS[role], alpha=0.18, fill=True, linewidth=0,
                  baseline=base)
    if errors is not None and len(errors):
        ax.errorbar((edges[:-1] + edges[1:]) / 2, values, errors, fmt="none",
                    ecolor=COLOURS[role], elinewidth=1)
    return drawn


def points(ax: Axes, x: npt.ArrayLike, y: npt.ArrayLike, role: str, *, label: str = "",
           size: float = 3.0, x_errors: Any = None, y_errors: Any = None, marker: str = "o",
           **more: Any) -> Any:
    drawn, = ax.plot(x, y, linestyle="none", marker=marker, markersize=2 * size * _PIXEL,
                     color=COLOURS[role], markeredgewidth=0, label=label or None, **more)
    if x_errors is not None or y_errors is not None:
        ax.errorbar(x, y, yerr=y_errors, xerr=x_errors, fmt="none", ecolor=COLOURS[role],
                    elinewidth=1.1)
    return drawn


def mark(ax: Axes, x: float, y: float, role: str, label: str) -> Any:
    """A point of a parameter space, with a light rim that shows on any colour."""
    drawn, = ax.plot([x], [y], linestyle="none", marker=MARKERS.get(role, "o"),
                     markersize=13 if role == "truth" else 7 if role == "exact_estimate" else 8,
                     color=COLOURS[role], markeredgecolor="white", markeredgewidth=1.1, label=label,
                     zorder=6)
    return drawn


def bars(ax: Axes, axis: str, at: npt.ArrayLike, low: npt.ArrayLike, high: npt.ArrayLike,
         role: str, *, label: str = "", thickness: float = 0.7) -> Any:
    """Boxes along an axis, each between two values."""
    start, length = np.asarray(low), np.asarray(high) - np.asarray(low)
    style: dict[str, Any] = {"facecolor": COLOURS[role] + "4d", "edgecolor": COLOURS[role],
                             "linewidth": 0.9, "label": label or None}
    if axis == "x":
        return ax.barh(at, length, left=start, height=thickness, **style)
    return ax.bar(at, length, bottom=start, width=thickness, **style)


def reference(ax: Axes, axis: str, value: float, *, label: str = "", role: str = "reference",
              dash: str = "dashed") -> Any:
    """A thin line across the panel, with its words beside it, or at its right end."""
    draw = ax.axvline if axis == "x" else ax.axhline
    drawn = draw(value, color=COLOURS[role], linestyle=DASHES[dash], linewidth=1.1, zorder=1.5)
    if label and axis == "x":
        ax.annotate(label, (value, 1.0), xycoords=("data", "axes fraction"), xytext=(4, -3),
                    textcoords="offset points", va="top", fontsize=8.5, color=COLOURS[role],
                    path_effects=halo())
    elif label:
        ax.annotate(label, (1.0, value), xycoords=("axes fraction", "data"), xytext=(3, 0),
                    textcoords="offset points", va="center", fontsize=8.5, color=COLOURS[role],
                    annotation_clip=True)
    return drawn


def span(ax: Axes, axis: str, low: float, high: float, role: str, *, label: str = "") -> Any:
    draw = ax.axvspan if axis == "x" else ax.axhspan
    return draw(low, high, color=COLOURS[role], alpha=_ALPHAS.get(role, 0.16), linewidth=0,
                label=label or None, zorder=0.5)


def heatmap(ax: Axes, x: Floats, y: Floats, values: Floats, *, label: str = "",
            limits: tuple[float, float] | None = None, diverging: bool = False) -> Any:
    """Values as colours with their scale: of a perceptually uniform map, smooth between the points
    of the grid, or, diverging, as cells."""
    low, high = limits if limits is not None else (None, None)
    drawn = ax.pcolormesh(x, y, values, vmin=low, vmax=high,
                          shading="nearest" if diverging else "gouraud",
                          cmap="RdBu_r" if diverging else "viridis", rasterized=True)
    ax.grid(False)
    ends = "max" if limits is not None and np.nanmax(values) > limits[1] else "neither"
    bar = ax.figure.colorbar(drawn, ax=ax, pad=0.02, aspect=28, extend=ends)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=9, labelcolor=COLOURS["muted"])
    bar.set_label(label, color=COLOURS["ink"], fontsize=10)
    return drawn


def polylines(ax: Axes, lines: Sequence[Floats], role: str, *, label: str = "",
              dash: str = "solid", width: float = 1.8, alpha: float = 0.0) -> list[Any]:
    """Lines of one contour, filled where alpha is not 0; one of them is in the legend."""
    drawn = []
    for i, vertices in enumerate(lines):
        if alpha > 0 and len(vertices) > 2:
            ax.fill(vertices[:, 0], vertices[:, 1], color=COLOURS[role], alpha=alpha, linewidth=0)
        drawn.append(line(ax, vertices[:, 0], vertices[:, 1], role, dash=dash, width=width,
                          label=label if i == 0 else ""))
    return drawn


def words(ax: Axes, x: float, y: float, text: str, *, role: str = "reference",
          fraction: bool = False, align: str = "left") -> Any:
    return ax.text(x, y, text, ha=align, va="center", fontsize=9, color=COLOURS[role],
                   transform=ax.transAxes if fraction else ax.transData)


# ------------------------------------------------------------------------------------ panels

def _series(ax: Axes, s: Mapping[str, Any]) -> None:
    kind, label, role = s["type"], s["label"], s.get("role", "")
    if kind == "line":
        line(ax, s["x"], s["y"], role, label=label, dash=s["dash"], width=s["width"])
    elif kind == "band":
        band(ax, s["x"], s["low"], s["high"], role, label=label)
    elif kind == "histogram":
        histogram(ax, s["edges"], s["values"], role, label=label, filled=s["filled"],
                  errors=s["errors"])
    elif kind == "steps":
        ax.stairs(s["values"], s["edges"], baseline=None, color=COLOURS[role],
                  linestyle=DASHES[s["dash"]], linewidth=s["width"] * _PIXEL, label=label or None)
    elif kind == "points" and role in MARKERS:
        mark(ax, s["x"][0], s["y"][0], role, label)
    elif kind == "points":
        x_errors, y_errors = (e if len(e) else None for e in (s["x_errors"], s["y_errors"]))
        points(ax, s["x"], s["y"], role, label=label, size=s["size"], x_errors=x_errors,
               y_errors=y_errors)
    elif kind == "bars":
        bars(ax, s["axis"], s["at"], s["low"], s["high"], role, label=label,
             thickness=s["thickness"])
    elif kind == "reference":
        reference(ax, s["axis"], s["value"], label=label, role=role, dash=s["dash"])
    elif kind == "span":
        span(ax, s["axis"], s["low"], s["high"], role, label=label)
    elif kind == "heatmap":
        heatmap(ax, s["x"], s["y"], s["values"], label=label, limits=s["range"],
                diverging=s["diverging"])
    elif kind == "contour":
        polylines(ax, s["lines"], role, label=label, dash=s["dash"], width=s["width"])
    else:
        words(ax, s["x"], s["y"], label, role=role, fraction=s["fraction"], align=s["align"])


def _is_rim(series: Sequence[Mapping[str, Any]], i: int) -> bool:
    """A light dot under a coloured one: marks have their own rims."""
    return (series[i]["type"] == "points" and series[i]["role"] == "light"
            and i + 1 < len(series) and series[i + 1]["type"] == "points"
            and series[i + 1]["role"] in MARKERS)


def panel(ax: Axes, given: Mapping[str, Any]) -> Axes:
    """Draws a panel of the report."""
    if given["x_log"]:
        ax.set_xscale("log")
    if given["y_log"]:
        ax.set_yscale("log")
    series = given["series"]
    for i, entry in enumerate(series):
        if not _is_rim(series, i):
            _series(ax, entry)
    for limits, set_limits in ((given["x_range"], ax.set_xlim), (given["y_range"], ax.set_ylim)):
        if limits is not None:
            set_limits(limits)
    for ticks, set_ticks in ((given["x_ticks"], ax.set_xticks), (given["y_ticks"], ax.set_yticks)):
        if ticks is not None:
            set_ticks([value for value, _ in ticks], [text for _, text in ticks])
    if given["x_upright"]:
        ax.tick_params(axis="x", rotation=90)
    ax.set_xlabel(given["x_label"])
    ax.set_ylabel(given["y_label"])
    if not given["axes"]:
        ax.set_axis_off()
    if given["legend"]:
        legend(ax)
    heading(ax, given["title"])
    return ax
