"""Likelihoods of data, and what follows from them: estimates, intervals, contours, tests, toys."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from neyman import _core
from neyman.core import (Parameters, Theta, check_count, check_flag, check_number, check_numbers,
                         check_parameter, check_texts, given, optional, shown)
from neyman.errors import ArgumentError
from neyman.ratios import Ratio, _core_of
from neyman.results import Shown
from neyman.simulators import Distribution, Events, core_simulator

__all__ = ["CompositeTest", "Contour", "CoveragePoint", "Fit", "Interval", "Likelihood", "Scan",
           "SimpleTest", "Surface", "Toys", "coverage", "simple_test", "toys"]

Floats = npt.NDArray[np.float64]
Constraints = Mapping[str, Mapping[str, Any]]
ManyTheta = Union[Theta, npt.ArrayLike, Mapping[str, npt.ArrayLike]]


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Fit(Shown):
    """The maximum-likelihood estimate θ̂ and how it was found."""

    status: str  #: "converged", "at bound", "failed"
    theta: dict[str, float]  #: θ̂
    error: dict[str, float]  #: standard deviations, statistical and from finite simulation together
    statistical_error: dict[str, float]
    simulation_error: dict[str, float]  #: NaN where it was not computed
    log_likelihood: float  #: ℓ(θ̂), relative to the reference
    covariance: Floats  #: statistical
    simulation_covariance: Floats  #: what finite simulation adds; NaN where it was not computed
    evaluations: int
    message: str  #: why it failed, or at which edge it ended
    _core: Any = dataclasses.field(repr=False)
    #: the maxima that were met, θ̂ first, each with −2 log Λ at it
    maxima: list[tuple[dict[str, float], float]] = dataclasses.field(default_factory=list)

    @property
    def ok(self) -> bool:
        return bool(self._core.ok)

    @property
    def point(self) -> Floats:
        """θ̂ as an array."""
        return np.array(self._core.point)

    @classmethod
    def _of(cls, core: _core.Fit, names: Sequence[str]) -> Fit:
        total, statistical, simulation = core.errors()

        def by_name(values: Floats) -> dict[str, float]:
            return dict(zip(names, map(float, values)))

        points, values, _ = core.maxima
        maxima = [(by_name(point), max(0.0, 2 * (core.log_likelihood - value)))
                  for point, value in zip(points, values)]
        added = np.array(core.simulation_covariance)
        return cls(core.status, by_name(core.point), by_name(total), by_name(statistical),
                   by_name(simulation), core.log_likelihood, np.array(core.covariance),
                   added if core.simulation_known else np.full_like(added, np.nan),
                   core.evaluations, core.message, core, maxima)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Interval(Shown):
    """A confidence interval of one parameter, the others profiled: a set, of one piece or several.

    Of a periodic parameter, the pieces are told as they surround the estimate: one that goes over
    the seam begins below the range or ends above it. Where no value is excluded, the one piece is
    the range."""

    parameter: str
    level: float
    low: float  #: of the first piece
    high: float  #: of the last piece
    low_at_bound: bool  #: ends at the parameter's range
    high_at_bound: bool
    low_at_edge: bool  #: ends where θ are not allowed, as where the design has no events
    high_at_edge: bool
    ok: bool  #: False where an end is not to be trusted; the message says why
    message: str
    pieces: list[tuple[float, float]]  #: in rising order, with gaps between them

    def __iter__(self) -> Any:
        return iter((self.low, self.high))


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Scan(Shown):
    """−2 log Λ along one parameter, the others profiled."""

    parameter: str
    values: Floats
    statistic: Floats
    failed: int  #: profile fits that did not converge: their statistic is an upper bound
    message: str = ""  #: where ℓ is higher than at the fit; −2 log Λ is then that of the higher maximum


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Surface(Shown):
    """−2 log Λ over two parameters, the others profiled."""

    first: str
    second: str
    x: Floats  #: values of the first
    y: Floats  #: values of the second
    statistic: Floats  #: a row for each y, a column for each x
    failed: int
    message: str = ""  #: as of a scan


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Contour(Shown):
    """The lines on which −2 log Λ of two parameters has one value."""

    first: str
    second: str
    level: float
    threshold: float
    lines: list[Floats]  #: vertices × 2 each; closed lines end where they begin
    touches_bound: bool
    touches_edge: bool  #: ends where θ are not allowed, as where the design has no events
    failed: int
    message: str = ""  #: as of a scan


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class CompositeTest(Shown):
    """The generalised likelihood ratio test of a composite hypothesis."""

    statistic: float  #: −2 log Λ
    degrees: float
    p_value: float  #: asymptotic
    simulated_p_value: float | None  #: (1 + k) / (1 + n) from simulated data
    ok: bool
    failed: int  #: datasets whose fit failed
    best: Fit
    null_fit: Fit
    null_statistics: Floats = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class SimpleTest(Shown):
    """Neyman and Pearson's test of one point against another."""

    statistic: float  #: Σ log r(x; null, alternative); small speaks against the null
    p_value: float
    power: float
    null_statistics: Floats
    alternative_statistics: Floats


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Toys(Shown):
    """Many datasets simulated at one θ, each fitted."""

    theta: dict[str, float]
    means: dict[str, float]  #: of the estimates
    spreads: dict[str, float]
    levels: list[float]
    coverage: Floats  #: share of datasets with θ inside, by level
    profile_coverage: dict[str, Floats]  #: the same of each parameter of interest by itself
    wilks_p_value: float  #: of −2 log Λ against χ²
    failed: int
    estimates: Floats  #: datasets × parameters
    statistic: Floats  #: −2 log Λ(θ) of each


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class CoveragePoint(Shown):
    """How often regions hold the θ that the data come from."""

    theta: dict[str, float]
    levels: list[float]
    coverage: Floats  #: with χ² thresholds
    error: Floats  #: binomial
    critical: list[tuple[float, float, float]]  #: (level, χ² threshold, simulated threshold)
    coverage_critical: Floats  #: with simulated thresholds
    failed: int


class Likelihood:
    """The log-likelihood of data relative to a reference, ℓ(θ) = Σ_i w_i log r(x_i; θ, θ1), with
    constraints of auxiliary measurements where there are any.

    A plain function of θ: −infinity outside of the ranges, and where the design of a learned ratio
    has no events, so that emcee can sample it; `negative` is what SciPy and iminuit minimise. Of many
    θ, a row each or a mapping of arrays, it is an array, computed in one call.

    >>> import neyman
    >>> p = neyman.Normal("mu", 1, parameters={"mu": (-3, 3)})
    >>> x = p.sample(1000, 0.5, seed=1)
    >>> likelihood = neyman.Likelihood(neyman.ExactRatio(p), x)
    >>> best = likelihood.fit()
    >>> bool(abs(best.theta["mu"] - x.mean()) < 1e-3), round(best.error["mu"], 4)
    (True, 0.0316)
    >>> low, high = likelihood.interval("mu", level=0.683)
    >>> likelihood(10.0)
    -inf
    >>> many = likelihood([[0.4], [0.5], [10.0]])
    >>> bool(many[1] == likelihood(0.5)), many[2]
    (True, -inf)
    """

    def __init__(self, ratio: Ratio, x: Events, *, weights: npt.ArrayLike | None = None,
                 constraints: Constraints | None = None) -> None:
        core = _core_ratio("Likelihood", ratio)
        if constraints is not None:
            if not isinstance(constraints, Mapping):
                raise ArgumentError(f"Likelihood: constraints is {shown(constraints)}, but must be "
                                    "a mapping of parameters to tables")
            for name in constraints:
                check_parameter("Likelihood", "constraints", name, ratio.parameters)
        self.ratio = ratio
        self._made_from = (x, weights, constraints)
        self._core = _core.Likelihood(core, _core_of(x), weights, constraints)
        self._best: Fit | None = None

    @property
    def parameters(self) -> Parameters:
        return Parameters._of(self._core.parameters)

    @property
    def events(self) -> int:
        return self._core.events

    @property
    def differentiable(self) -> bool:
        return self._core.differentiable

    @property
    def negative(self) -> NegativeLikelihood:
        """−ℓ, to be minimised by other programs."""
        return NegativeLikelihood(self._core)

    def __call__(self, theta: ManyTheta) -> Any:
        """ℓ(θ), a number; of many θ (rows of an array or a DataFrame, a mapping of arrays) an
        array."""
        return self._core(theta)

    def gradient(self, theta: Theta) -> Floats:
        """∂ℓ/∂θ."""
        return self._core.value_and_gradient(theta)[1]

    def fit(self, *, start: Theta = None, fixed: Mapping[str, float] | None = None,
            starts: int | None = None, tolerance: float | None = None,
            gradient: bool | None = None) -> Fit:
        """Maximises ℓ within the ranges. A fit that fails says so in `status` and `message`."""
        options = given(tolerance=optional(check_number, "fit", "tolerance", tolerance),
                        gradient=optional(check_flag, "fit", "gradient", gradient))
        if starts is not None:
            options["starts"] = check_count("fit", "starts", starts)
        core = self._core.fit(start, self._fixed("fit", fixed), options)
        return Fit._of(core, self.parameters.names)

    def _fixed(self, function: str, values: Any) -> dict[str, float]:
        if values is not None and not isinstance(values, Mapping):
            raise ArgumentError(f"{function}: fixed is {shown(values)}, but must be a mapping of "
                                "parameters to numbers")
        return {check_parameter(function, "fixed", name, self.parameters):
                check_number(function, f"fixed['{name}']", value)
                for name, value in (values or {}).items()}

    def _ranges(self, values: Any) -> dict[str, tuple[float, float]]:
        if values is not None and not isinstance(values, Mapping):
            raise ArgumentError(f"test: ranges is {shown(values)}, but must be a mapping of "
                                "parameters to pairs")
        out = {}
        for name, value in (values or {}).items():
            ends = check_numbers("test", f"ranges['{name}']", value)
            if len(ends) != 2:
                raise ArgumentError(f"test: ranges['{name}'] is {shown(value)}, but must be a pair")
            out[check_parameter("test", "ranges", name, self.parameters)] = (ends[0], ends[1])
        return out

    def _fitted(self, best: Fit | None) -> _core.Fit:
        if best is not None and not isinstance(best, Fit):
            raise ArgumentError(f"best is {shown(best)}, but must be a Fit")
        if best is not None:
            core: _core.Fit = best._core
            return core
        if self._best is None:
            self._best = self.fit()
        found: _core.Fit = self._best._core
        return found

    def _from_highest(self, best: Fit | None,
                      ask: Callable[[_core.Fit], dict[str, Any]]) -> dict[str, Any]:
        """What is asked of a fit. Where that comes upon a higher ℓ than at this likelihood's own
        fit, the fit begins again from there."""
        found = ask(self._fitted(best))
        if best is None and found["higher"]:
            self._best = self.fit(start=found["higher"])
            found = ask(self._best._core)
        del found["higher"]
        return found

    def interval(self, parameter: str, *, level: float | None = None, best: Fit | None = None,
                 include_simulation: bool = True, threshold: float | None = None) -> Interval:
        """The values of a parameter with −2 log Λ at most the χ²₁ quantile of the level (or a
        threshold of one's own), the others profiled. `include_simulation` widens it by what finite
        simulation adds. `best`: a fit that is there already."""
        name = check_parameter("interval", "parameter", parameter, self.parameters)
        at = optional(check_number, "interval", "level", level)
        own = optional(check_number, "interval", "threshold", threshold)
        include = check_flag("interval", "include_simulation", include_simulation)
        return Interval(name, **self._from_highest(
            best, lambda core: self._core.interval(core, name, at, include, own)))

    def scan(self, parameter: str, *, low: float | None = None, high: float | None = None,
             points: int | None = None, best: Fit | None = None) -> Scan:
        """−2 log Λ along a parameter, by default over its range."""
        count = None if points is None else check_count("scan", "points", points, 1)
        name = check_parameter("scan", "parameter", parameter, self.parameters)
        start = optional(check_number, "scan", "low", low)
        end = optional(check_number, "scan", "high", high)
        return Scan(name, **self._from_highest(
            best, lambda core: self._core.scan(core, name, start, end, count)))

    def surface(self, first: str, second: str, x: npt.ArrayLike, y: npt.ArrayLike, *,
                best: Fit | None = None) -> Surface:
        """−2 log Λ on the grid x × y of two parameters."""
        for name, value in (("first", first), ("second", second)):
            check_parameter("surface", name, value, self.parameters)
        return Surface(first, second, **self._from_highest(
            best, lambda core: self._core.surface(core, first, second, x, y)))

    def contours(self, first: str, second: str, *, levels: Sequence[float] | None = None,
                 thresholds: Sequence[float] | None = None, cells: int | None = None,
                 best: Fit | None = None) -> list[Contour]:
        """The contours of two parameters, one for each level."""
        for name, value in (("first", first), ("second", second)):
            check_parameter("contours", name, value, self.parameters)
        options = given(levels=optional(check_numbers, "contours", "levels", levels),
                        thresholds=optional(check_numbers, "contours", "thresholds", thresholds),
                        cells=optional(check_count, "contours", "cells", cells))

        def ask(core: _core.Fit) -> dict[str, Any]:
            found = self._core.contours(core, first, second, options)
            higher = [entry.pop("higher") for entry in found]
            return {"all": found, "higher": higher[0] if higher else []}

        found = self._from_highest(best, ask)["all"]
        return [Contour(first, second, **entry) for entry in found]

    def test_statistic(self, theta: Theta, *, best: Fit | None = None) -> float:
        """−2 log Λ(θ) = 2 (ℓ(θ̂) − ℓ(θ)), never negative."""
        return self._core.test_statistic(self._fitted(best), theta)

    def profile_statistic(self, fixed: Mapping[str, float], *, best: Fit | None = None) -> float:
        """−2 log Λ with some parameters fixed and the others profiled."""
        return self._core.profile_statistic(self._fitted(best),
                                            self._fixed("profile_statistic", fixed))

    def test(self, *, fixed: Mapping[str, float] | None = None,
             ranges: Mapping[str, tuple[float, float]] | None = None, datasets: int | None = None,
             simulator: Distribution | None = None, seed: int | None = None,
             starts: int | None = None) -> CompositeTest:
        """Tests the hypothesis that parameters have these values, or lie in these ranges. With a
        simulator and `datasets`, the p-value is found from simulated data too."""
        options = {name: check_count("test", name, value) for name, value in
                   given(datasets=datasets, seed=seed, starts=starts).items()}
        found = self._core.composite_test(self._fixed("test", fixed), self._ranges(ranges),
                                          options,
                                          None if simulator is None
                                          else core_simulator("test", simulator))
        names = self.parameters.names
        for name in ("best", "null_fit"):
            found[name] = Fit._of(found[name], names)
        return CompositeTest(**found)

    def __getstate__(self) -> Any:
        return (self.ratio, *self._made_from)

    def __setstate__(self, state: Any) -> None:
        ratio, x, weights, constraints = state
        Likelihood.__init__(self, ratio, x, weights=weights, constraints=constraints)

    def __repr__(self) -> str:
        return f"Likelihood({self.events} events, {', '.join(self.parameters.names)})"


class NegativeLikelihood:
    """−ℓ(θ) with its gradient `grad`, as minimisers take it; `errordef` tells iminuit that a rise by
    ½ is one standard deviation."""

    errordef = 0.5

    def __init__(self, core: _core.Likelihood) -> None:
        self._core = core

    def __call__(self, theta: ManyTheta) -> Any:
        return -self._core(theta)

    def grad(self, theta: Theta) -> Floats:
        return -self._core.value_and_gradient(theta)[1]


def _core_ratio(function: str, ratio: Any) -> _core.Ratio:
    if not isinstance(ratio, Ratio):
        raise ArgumentError(f"{function}: ratio is {shown(ratio)}, but must be a Ratio")
    return ratio._core


def _by_name(names: Sequence[str], values: Floats) -> dict[str, float]:
    return dict(zip(names, map(float, values)))


def toys(simulator: Distribution, ratio: Ratio, theta: Theta, *, datasets: int | None = None,
         events: int | None = None, levels: Sequence[float] | None = None,
         interest: Sequence[str] | None = None, constraints: Constraints | None = None,
         seed: int | None = None, starts: int | None = None) -> Toys:
    """Simulates datasets at θ, fits each, and counts how often θ is inside: what the method does in
    repetition.

    >>> import neyman
    >>> p = neyman.Normal("mu", 1, parameters={"mu": (-3, 3)})
    >>> found = neyman.toys(p, neyman.ExactRatio(p), 0.5, datasets=50, events=100, seed=1)
    >>> found.failed, bool(abs(found.spreads["mu"] - 0.1) < 0.05)
    (0, True)
    """
    counts = {name: check_count("toys", name, value) for name, value in
              given(datasets=datasets, events=events, seed=seed, starts=starts).items()}
    options = {**counts, **given(levels=optional(check_numbers, "toys", "levels", levels),
                                 interest=optional(check_texts, "toys", "interest", interest))}
    found = _core.toys(core_simulator("toys", simulator), _core_ratio("toys", ratio), theta, options, constraints)
    names = ratio.parameters.names
    for name in ("theta", "means", "spreads"):
        found[name] = _by_name(names, found[name])
    return Toys(**found)


def coverage(simulator: Distribution, ratio: Ratio, points: npt.ArrayLike, *, events: int,
             datasets: int | None = None, critical_datasets: int | None = None,
             levels: Sequence[float] | None = None, constraints: Constraints | None = None,
             seed: int | None = None) -> list[CoveragePoint]:
    """How often the regions of a level hold the θ that the data come from, at each row of `points`.

    >>> import neyman
    >>> p = neyman.Normal("mu", 1, parameters={"mu": (-3, 3)})
    >>> found = neyman.coverage(p, neyman.ExactRatio(p), [[0.0], [1.0]], events=50, datasets=40)
    >>> [point.theta for point in found]
    [{'mu': 0.0}, {'mu': 1.0}]
    """
    counts = {name: check_count("coverage", name, value) for name, value in
              given(datasets=datasets, critical_datasets=critical_datasets, seed=seed).items()}
    options = {**counts, **given(levels=optional(check_numbers, "coverage", "levels",
                                                   levels))}
    found = _core.coverage(core_simulator("coverage", simulator), _core_ratio("coverage", ratio), points,
                           check_count("coverage", "events", events, 1), options, constraints)
    names = ratio.parameters.names
    for entry in found:
        entry["theta"] = _by_name(names, entry["theta"])
    return [CoveragePoint(**entry) for entry in found]


def simple_test(simulator: Distribution, ratio: Ratio, x: Events, *, null: Theta,
                alternative: Theta, datasets: int | None = None, size: float | None = None,
                seed: int | None = None) -> SimpleTest:
    """Neyman and Pearson's test of θ = null against θ = alternative, with datasets of the same size
    as the data simulated under both.

    >>> import neyman
    >>> p = neyman.Normal("mu", 1, parameters={"mu": (-3, 3)})
    >>> found = neyman.simple_test(p, neyman.ExactRatio(p), p.sample(50, 1, seed=1), null=0,
    ...                            alternative=1, datasets=200)
    >>> found.p_value < 0.01
    True
    """
    counts = {name: check_count("simple_test", name, value)
              for name, value in given(datasets=datasets, seed=seed).items()}
    options = {**counts, **given(size=optional(check_number, "simple_test", "size", size))}
    return SimpleTest(**_core.simple_test(core_simulator("simple_test", simulator),
                                          _core_ratio("simple_test", ratio), _core_of(x), null,
                                          alternative, options))
