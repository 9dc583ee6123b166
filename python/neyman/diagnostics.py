"""Checks of a ratio, and of what a method does in repetition: each has a statistic, a p-value where
there is one, and a verdict ("pass", "warn", "fail", or "no power", which says nothing about the ratio).

The checks of a ratio look at events of p(x|θ0) and p(x|θ1) that neither training nor calibration has
seen; otherwise every p-value is too large.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from neyman import _core
from neyman._arrays import column_names
from neyman.classifiers import ClassifierLike
from neyman.classifiers import as_core as as_core_classifier
from neyman.core import (Theta, check_count, check_list, check_number, check_text, check_texts, given,
                         optional, shown)
from neyman.data import Samples
from neyman.errors import ArgumentError
from neyman.inference import Fit, Likelihood
from neyman.ratios import Ratio
from neyman.results import Shown
from neyman.simulators import Distribution, Events, events_of

__all__ = ["AreaUnderCurve", "Diagnostic", "RatioEvents", "area_under_curve", "closure", "coverage",
           "diagnose", "judge", "normalisation", "ratio_diagnostics", "recovery", "reference",
           "reliability", "reweighting", "roc_curve", "wilks"]

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Diagnostic(Shown):
    """What one check found; the names are those of results.json. `neyman.plot.diagnostic` draws it."""

    name: str
    verdict: str  #: "pass", "warn", "fail", or "no power": it could not have seen what it looks for
    statistic: float
    p_value: float | None
    tolerance: float | None  #: deviations up to this do no harm and are not counted
    numbers: dict[str, float]  #: further results
    note: str  #: what limits the result; empty: nothing does
    description: str  #: what is tested and what it means
    figure: dict[str, Any] | None = dataclasses.field(repr=False, default=None)


class RatioEvents:
    """Events of both sides of a ratio with log r̂(x; θ0, θ1) of them: what the checks of a ratio look
    at. `RatioEvents.of` asks a ratio for the values.

    `exact_log_ratios`: of the denominator's events, where they are known, for the figures.

    >>> import neyman
    >>> x0, x1 = neyman.Normal(0, 1).sample(5000, seed=1), neyman.Normal(1, 1).sample(5000, seed=2)
    >>> events = neyman.RatioEvents(x0, x1, 0.5 - x0[:, 0], 0.5 - x1[:, 0])      # exact
    >>> neyman.diagnostics.closure(events).verdict
    'pass'
    """

    def __init__(self, numerator: Events, denominator: Events, numerator_log_ratios: npt.ArrayLike,
                 denominator_log_ratios: npt.ArrayLike, *,
                 numerator_weights: npt.ArrayLike | None = None,
                 denominator_weights: npt.ArrayLike | None = None,
                 exact_log_ratios: npt.ArrayLike | None = None,
                 feature_names: Sequence[str] | None = None) -> None:
        if feature_names is None:
            feature_names = (numerator.feature_names if isinstance(numerator, Samples)
                             else column_names(numerator))
        names = (None if feature_names is None
                 else check_texts("RatioEvents", "feature_names", feature_names))
        x0, w0 = events_of(numerator, numerator_weights)
        x1, w1 = events_of(denominator, denominator_weights)
        self._core = _core.RatioEvents(x0, x1, numerator_log_ratios, denominator_log_ratios, w0, w1,
                                       exact_log_ratios, names or [])

    @classmethod
    def of(cls, ratio: Ratio, numerator: Events, denominator: Events, theta0: Theta = None,
           theta1: Theta = None, *, exact: Ratio | None = None) -> RatioEvents:
        """With log r̂(x; θ0, θ1) of a ratio; a ratio between two samples has no θ."""
        for name, value in (("ratio", ratio), ("exact", exact)):
            if not isinstance(value, Ratio) and (value is not None or name == "ratio"):
                raise ArgumentError(f"RatioEvents.of: {name} is {shown(value)}, but must be a ratio")
        return cls(numerator, denominator, ratio.log_ratios(numerator, theta0, theta1),
                   ratio.log_ratios(denominator, theta0, theta1),
                   exact_log_ratios=(None if exact is None
                                     else exact.log_ratios(denominator, theta0, theta1)))


def _checked(function: str, events: Any) -> _core.RatioEvents:
    if not isinstance(events, RatioEvents):
        raise ArgumentError(f"{function}: events is {shown(events)}, but must be RatioEvents")
    return events._core


def _share(function: str, name: str, value: Any) -> float:
    number = check_number(function, name, value)
    if not 0 <= number < 1:
        raise ArgumentError(f"{function}: {name} is {number}, but must be at least 0 and below 1")
    return number


def _some(function: str, name: str, value: Any) -> int:
    return check_count(function, name, value, 1)


def closure(events: RatioEvents, *, bins: int | None = None,
            tolerance: float | None = None) -> Diagnostic:
    """For each feature, χ² between the histogram of the numerator and that of the denominator weighted
    by r̂; the smallest p-value, corrected for their number.

    >>> import neyman
    >>> x0, x1 = neyman.Normal(0, 1).sample(5000, seed=1), neyman.Normal(1, 1).sample(5000, seed=2)
    >>> wrong = neyman.RatioEvents(x0, x1, 0.3 - x0[:, 0] / 2, 0.3 - x1[:, 0] / 2)
    >>> neyman.diagnostics.closure(wrong).verdict
    'fail'
    """
    return Diagnostic(**_core.diagnose_closure(
        _checked("closure", events), given(bins=optional(_some, "closure", "bins", bins),
                                           tolerance=optional(_share, "closure", "tolerance",
                                                              tolerance))))


def normalisation(events: RatioEvents, *, tolerance: float | None = None,
                  least_effective: float | None = None) -> Diagnostic:
    """The mean of r̂ over the denominator, which is one, in standard errors; and the effective size
    (Σr̂)² / Σr̂², below which it warns.

    >>> import neyman
    >>> x0, x1 = neyman.Normal(0, 1).sample(5000, seed=1), neyman.Normal(1, 1).sample(5000, seed=2)
    >>> events = neyman.RatioEvents(x0, x1, 0.5 - x0[:, 0], 0.5 - x1[:, 0])
    >>> neyman.diagnostics.normalisation(events).p_value > 0.01
    True
    """
    return Diagnostic(**_core.diagnose_normalisation(
        _checked("normalisation", events),
        given(tolerance=optional(_share, "normalisation", "tolerance", tolerance),
              least_effective=optional(check_number, "normalisation", "least_effective",
                                       least_effective))))


def reliability(events: RatioEvents, *, bins: int | None = None,
                tolerance: float | None = None) -> Diagnostic:
    """Among events with ŝ = 1/(1 + r̂) near s, both sides with equal weight, the share of denominators
    is s: χ² over bins.

    >>> import neyman
    >>> x0, x1 = neyman.Normal(0, 1).sample(5000, seed=1), neyman.Normal(1, 1).sample(5000, seed=2)
    >>> events = neyman.RatioEvents(x0, x1, 0.5 - x0[:, 0], 0.5 - x1[:, 0])
    >>> neyman.diagnostics.reliability(events, bins=10).verdict
    'pass'
    """
    return Diagnostic(**_core.diagnose_reliability(
        _checked("reliability", events),
        given(bins=optional(_some, "reliability", "bins", bins),
              tolerance=optional(_share, "reliability", "tolerance", tolerance))))


def reweighting(events: RatioEvents, *, classifier: ClassifierLike = None,
                training_share: float | None = None, tolerance: float | None = None,
                seed: int | None = None) -> Diagnostic:
    """Is p(x|θ1) weighted by r̂ the same as p(x|θ0)? A classifier is trained to tell them apart; its
    area under the ROC curve on events that it has not seen must not exceed one half.

    >>> import neyman
    >>> x0, x1 = neyman.Normal(0, 1).sample(2000, seed=1), neyman.Normal(1, 1).sample(2000, seed=2)
    >>> events = neyman.RatioEvents(x0, x1, 0.5 - x0[:, 0], 0.5 - x1[:, 0])
    >>> neyman.diagnostics.reweighting(events, classifier="logistic").verdict
    'pass'
    """
    return Diagnostic(**_core.diagnose_reweighting(
        _checked("reweighting", events), as_core_classifier(classifier),
        given(training_share=optional(_share, "reweighting", "training_share", training_share),
              tolerance=optional(_share, "reweighting", "tolerance", tolerance),
              seed=optional(check_count, "reweighting", "seed", seed))))


def ratio_diagnostics() -> list[str]:
    """The names of the checks of a ratio."""
    return _core.ratio_diagnostics()


def diagnose(ratio: Ratio, numerator: Events, denominator: Events, theta0: Theta = None,
             theta1: Theta = None, *, which: Sequence[str] | None = None, seed: int = 0,
             exact: Ratio | None = None) -> list[Diagnostic]:
    """All checks of a ratio, or those that are named (see `ratio_diagnostics`), with verdicts that are
    corrected for their number.

    >>> import neyman
    >>> p = neyman.Normal("mu", 1, parameters={"mu": (-1, 1)})
    >>> found = neyman.diagnose(neyman.ExactRatio(p), p.sample(2000, 0.5, seed=1),
    ...                         p.sample(2000, 0, seed=2), 0.5, 0, which=["closure", "reliability"])
    >>> [(one.name, one.verdict) for one in found]
    [('closure', 'pass'), ('reliability', 'pass')]
    """
    start = check_count("diagnose", "seed", seed)
    names = ratio_diagnostics() if which is None else check_texts("diagnose", "which", which)
    events = RatioEvents.of(ratio, numerator, denominator, theta0, theta1, exact=exact)
    return judge([Diagnostic(**_core.diagnose(name, events._core, start)) for name in names])


def recovery(likelihood: Likelihood, simulator: Distribution, *, best: Fit | None = None,
             times: int = 100, events: int | None = None, tolerance: float | None = None,
             seed: int | None = None) -> Diagnostic:
    """Simulates events at the estimate (`times` as many as the data, or `events`), fits them with the
    ratio that the data were fitted with, and asks whether the estimate is found again: the bias of the
    whole estimate there. `numbers` has the shift of each parameter in statistical errors of the data.

    `best`: a fit that is there already. More than a tenth of an error (`tolerance`), if it is sure,
    warns, and more than one fails. A study makes this check by itself.

    >>> import neyman
    >>> p = neyman.Normal("mu", 1, parameters={"mu": (-1, 1)})
    >>> data = p.sample(300, 0.2, seed=1)
    >>> neyman.diagnostics.recovery(neyman.Likelihood(neyman.ExactRatio(p), data), p).verdict
    'pass'
    >>> shifted = neyman.Normal("mu + 0.2", 1, parameters={"mu": (-1, 1)})
    >>> neyman.diagnostics.recovery(neyman.Likelihood(neyman.ExactRatio(p), data), shifted).verdict
    'fail'
    """
    if not isinstance(likelihood, Likelihood):
        raise ArgumentError(f"recovery: likelihood is {shown(likelihood)}, but must be a Likelihood")
    if not isinstance(simulator, Distribution):
        raise ArgumentError(f"recovery: simulator is {shown(simulator)}, but must be a Distribution")
    if best is not None and not isinstance(best, Fit):
        raise ArgumentError(f"recovery: best is {shown(best)}, but must be a Fit")
    return Diagnostic(**_core.recover(
        likelihood._core, likelihood._fitted(best), simulator._simulator(),
        _some("recovery", "times", times),
        given(events=optional(_some, "recovery", "events", events),
              tolerance=optional(_share, "recovery", "tolerance", tolerance),
              seed=optional(check_count, "recovery", "seed", seed))))


def judge(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The same with verdicts that hold for the set: with Holm's correction, the probability that true
    hypotheses warn anywhere is at most 1 %, and that they fail 0.1 %.

    >>> import neyman
    >>> one = neyman.diagnostics.wilks([0.1, 0.5, 1.2, 2.9], degrees=1)
    >>> neyman.diagnostics.judge([one])[0].verdict
    'pass'
    """
    entries = check_list("judge", "diagnostics", diagnostics)
    for i, one in enumerate(entries):
        if not isinstance(one, Diagnostic):
            raise ArgumentError(f"judge: diagnostics[{i}] is {shown(one)}, but must be a Diagnostic")
    verdicts, _, _ = _core.judge([(one.verdict, one.p_value, one.note) for one in entries])
    return [dataclasses.replace(one, verdict=verdict) for one, verdict in zip(entries, verdicts)]


def wilks(statistics: npt.ArrayLike, degrees: float) -> Diagnostic:
    """−2 log Λ(θ) of datasets simulated at θ against χ², by Kolmogorov and Smirnov.

    >>> import neyman
    >>> p = neyman.Normal("mu", 1, parameters={"mu": (-1, 1)})
    >>> found = neyman.toys(p, neyman.ExactRatio(p), 0.1, datasets=50, events=100, seed=1)
    >>> neyman.diagnostics.wilks(found.statistic, degrees=1).verdict
    'pass'
    """
    number = check_number("wilks", "degrees", degrees)
    if not 0 < number <= 1e6:
        raise ArgumentError(f"wilks: degrees is {number}, but must be positive and at most 10⁶")
    return Diagnostic(**_core.diagnose_wilks(statistics, number))


def coverage(levels: Sequence[float], inside: Sequence[int], datasets: int, *,
             tolerance: float | None = None) -> Diagnostic:
    """How many of the datasets have θ inside the region of each level, against the level: exact
    binomial p-values, the smallest corrected for the number of levels.

    >>> import neyman
    >>> neyman.diagnostics.coverage([0.683, 0.95], [690, 700], datasets=1000).verdict
    'fail'
    """
    counts = [check_count("coverage", f"inside[{i}]", value)
              for i, value in enumerate(check_list("coverage", "inside", inside))]
    shares = [check_number("coverage", f"levels[{i}]", value)
              for i, value in enumerate(check_list("coverage", "levels", levels))]
    if len(counts) != len(shares):
        raise ArgumentError(f"coverage: inside has {len(counts)} values, but must have {len(shares)} "
                            "(one for each level)")
    if not shares:
        raise ArgumentError("coverage: levels is empty, but must have one level or more")
    number = check_count("coverage", "datasets", datasets)
    return Diagnostic(**_core.diagnose_coverage(
        [(level, count, number) for level, count in zip(shares, counts)],
        given(tolerance=optional(_share, "coverage", "tolerance", tolerance))))


def reference(grid: npt.ArrayLike, log_likelihoods: Mapping[str, npt.ArrayLike], *,
              replicas: Mapping[str, npt.ArrayLike] | None = None, tolerance: float | None = None,
              draws: int | None = None, seed: int | None = None) -> Diagnostic:
    """Does the result depend on the reference θ1, which it must not? ℓ of one parameter on a grid, for
    each of several references by name; `replicas` of them (rows) tell how far finite simulation
    moves each curve.

    >>> import neyman, numpy
    >>> grid = numpy.linspace(-1, 1, 21)
    >>> neyman.diagnostics.reference(grid, {"0": -grid**2, "1": -grid**2 + 3}).verdict
    'pass'
    """
    if not isinstance(log_likelihoods, Mapping):
        raise ArgumentError(f"reference: log_likelihoods is {shown(log_likelihoods)}, but must be a "
                            "mapping from names of references")
    if len(log_likelihoods) < 2:
        raise ArgumentError(f"reference: log_likelihoods has {len(log_likelihoods)} curves, but must "
                            "have at least 2")
    if replicas is not None and not isinstance(replicas, Mapping):
        raise ArgumentError(f"reference: replicas is {shown(replicas)}, but must be a mapping from "
                            "names of references")
    curves = [(check_text("reference", "a key of log_likelihoods", name), curve,
               (replicas or {}).get(name)) for name, curve in log_likelihoods.items()]
    return Diagnostic(**_core.diagnose_reference(
        grid, curves, given(tolerance=optional(check_number, "reference", "tolerance", tolerance),
                            draws=optional(_some, "reference", "draws", draws),
                            seed=optional(check_count, "reference", "seed", seed))))


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class AreaUnderCurve(Shown):
    """P(z of a numerator < z of a denominator), ties by half."""

    area: float
    error: float  #: standard error (DeLong), weights included
    degrees: float  #: of freedom of that error: how many events it rests on
    p_value: float  #: of an area as large or larger where it is one half


def area_under_curve(numerator: npt.ArrayLike, denominator: npt.ArrayLike, *,
                     numerator_weights: npt.ArrayLike | None = None,
                     denominator_weights: npt.ArrayLike | None = None) -> AreaUnderCurve:
    """The area under the ROC curve of a score with its error, which holds for weights that are
    themselves random, as ratios are.

    >>> import neyman
    >>> found = neyman.diagnostics.area_under_curve([0.1, 0.2, 0.6], [0.4, 0.8, 0.9])
    >>> round(found.area, 3)
    0.889
    """
    return AreaUnderCurve(**_core.area_under_curve(numerator, denominator, numerator_weights,
                                                   denominator_weights))


def roc_curve(numerator: npt.ArrayLike, denominator: npt.ArrayLike, *,
              numerator_weights: npt.ArrayLike | None = None,
              denominator_weights: npt.ArrayLike | None = None,
              points: int | None = None) -> tuple[Floats, Floats]:
    """The share of numerators above a threshold, and the share of denominators above it.

    >>> import neyman
    >>> x, y = neyman.diagnostics.roc_curve([0.1, 0.2, 0.6], [0.4, 0.8, 0.9])
    >>> float(x[0]), float(y[-1])
    (0.0, 1.0)
    """
    return _core.roc_curve(numerator, denominator, numerator_weights, denominator_weights,
                           given(points=optional(_some, "roc_curve", "points", points)))
