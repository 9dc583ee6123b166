"""Calibration: from the score of a classifier to the likelihood ratio of the score."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeVar, Union

import numpy as np
import numpy.typing as npt

from neyman import _core
from neyman._files import read_bytes, write_bytes
from neyman.core import check_text, given, optional
from neyman.errors import ArgumentError

__all__ = ["Calibrator", "HistogramCalibrator", "IsotonicCalibrator", "KdeCalibrator",
           "NoneCalibrator", "SigmoidCalibrator", "SmoothCalibrator", "calibrator",
           "calibrator_kinds", "load_calibrator"]

Floats = npt.NDArray[np.float64]
Self = TypeVar("Self", bound="Calibrator")


def _at_least_one(values: Any) -> Any:
    """A number is a list of one."""
    return [values] if isinstance(values, (int, float)) else values


class Calibrator:
    """log p(z|θ0)/p(z|θ1) as a function of the logit z, from the logits of simulated events of both
    sides. Whatever the scores, the log-ratio is finite.

    >>> import neyman
    >>> z0 = neyman.Normal(-1, 1.4142135623730951).sample(20000, seed=1)[:, 0]
    >>> z1 = neyman.Normal(1, 1.4142135623730951).sample(20000, seed=2)[:, 0]
    >>> calibrated = neyman.SigmoidCalibrator().fit(z0, z1)
    >>> bool(abs(calibrated.log_ratios([2.0])[0] + 2) < 0.1)     # log r = −z for these
    True
    """

    _kind = ""

    def __init__(self, **options: Any) -> None:
        self._options = given(**options)
        self._core = _core.Calibrator(self._settings())

    def _settings(self) -> Mapping[str, Any]:
        return {"kind": self._kind, **self._options}

    @property
    def kind(self) -> str:
        return self._core.kind

    @property
    def fitted(self) -> bool:
        return self._core.fitted

    @property
    def range(self) -> tuple[float, float]:
        """The logits between which the calibration has seen events."""
        return self._core.low, self._core.high

    def fit(self: Self, numerator: npt.ArrayLike, denominator: npt.ArrayLike, *,
            numerator_weights: npt.ArrayLike | None = None,
            denominator_weights: npt.ArrayLike | None = None,
            weight_meaning: str | None = None) -> Self:
        """Fits to the logits of events of the two sides. Weights count as repetitions where they
        are whole numbers ("counts"), else in proportion ("relative")."""
        self._core.fit(numerator, denominator, numerator_weights, denominator_weights,
                       optional(check_text, "fit", "weight_meaning", weight_meaning))
        return self

    def log_ratios(self, logits: npt.ArrayLike) -> Floats:
        """The calibrated log-ratio of each logit; finite."""
        return self._core.log_ratios(_at_least_one(logits))

    def errors(self, logits: npt.ArrayLike) -> Floats:
        """Standard deviation of each log-ratio from the finite calibration sample."""
        return self._core.errors(_at_least_one(logits))

    def count_outside(self, logits: npt.ArrayLike) -> int:
        """How many logits lie outside the calibrated range."""
        return self._core.count_outside(_at_least_one(logits))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted calibrator to a file, which `neyman.load_calibrator` reads."""
        write_bytes("save", path, self._core._dump())

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_kind": self._kind,
                "file": self._core._dump() if self.fitted else None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._options, self._kind = state["_options"], state["_kind"]
        content = state["file"]
        self._core = (_core.Calibrator(self._settings()) if content is None
                      else _core.Calibrator._load(content))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self._options.items())
        return f"{type(self).__name__}({inside})"


class SmoothCalibrator(Calibrator):
    """A smooth monotone curve of log r against z, a cubic spline whose complexity the events
    choose.

    >>> import neyman
    >>> neyman.SmoothCalibrator(knots=20)
    SmoothCalibrator(knots=20)
    """

    _kind = "smooth"

    def __init__(self, *, knots: int | None = None, monotone: bool | None = None,
                 extrapolation: float | None = None) -> None:
        super().__init__(knots=knots, monotone=monotone, extrapolation=extrapolation)


class HistogramCalibrator(Calibrator):
    """log r = log(n0/N0) − log(n1/N1) in bins of z: edges "equal-probability", "uniform" or
    "bayesian-blocks".

    >>> import neyman
    >>> neyman.HistogramCalibrator(bins=10).fit([0.0, 1.0, 2.0], [1.0, 2.0, 3.0]).range
    (0.0, 3.0)
    """

    _kind = "histogram"

    def __init__(self, *, edges: str | None = None, bins: int | None = None,
                 interpolate: bool | None = None) -> None:
        super().__init__(edges=edges, bins=bins, interpolate=interpolate)


class KdeCalibrator(Calibrator):
    """The ratio of two Gaussian kernel density estimates; bandwidth "silverman" or "likelihood".

    >>> import neyman
    >>> neyman.KdeCalibrator(adjust=2.0).kind
    'kde'
    """

    _kind = "kde"

    def __init__(self, *, bandwidth: str | None = None, adjust: float | None = None) -> None:
        super().__init__(bandwidth=bandwidth, adjust=adjust)


class IsotonicCalibrator(Calibrator):
    """The best non-increasing log r against z, by pooling adjacent violators.

    >>> import neyman
    >>> neyman.IsotonicCalibrator(interpolate=False).kind
    'isotonic'
    """

    _kind = "isotonic"

    def __init__(self, *, interpolate: bool | None = None) -> None:
        super().__init__(interpolate=interpolate)


class SigmoidCalibrator(Calibrator):
    """Platt's calibration: log r = a + b z by maximum likelihood.

    >>> import neyman
    >>> neyman.SigmoidCalibrator().kind
    'sigmoid'
    """

    _kind = "sigmoid"

    def __init__(self) -> None:
        super().__init__()


class NoneCalibrator(Calibrator):
    """log r = −z: the classifier is believed.

    >>> import neyman
    >>> neyman.NoneCalibrator().fit([0.0], [1.0]).log_ratios([0.25])
    array([-0.25])
    """

    _kind = "none"

    def __init__(self) -> None:
        super().__init__()


_all: tuple[type[Calibrator], ...] = (SmoothCalibrator, HistogramCalibrator, KdeCalibrator,
                                      IsotonicCalibrator, SigmoidCalibrator, NoneCalibrator)
_classes = {kind._kind: kind for kind in _all}


def _of_kind(kind: str, options: Mapping[str, Any]) -> Calibrator:
    if kind not in calibrator_kinds():
        raise ArgumentError(f"calibrator: kind is {kind!r}, but must be one of "
                            + ", ".join(calibrator_kinds()))
    made = Calibrator.__new__(_classes.get(kind, Calibrator))
    made._kind = kind
    Calibrator.__init__(made, **options)
    return made


def calibrator(kind: str | Mapping[str, Any] | Calibrator, **options: Any) -> Calibrator:
    """A calibrator of a kind (see `calibrator_kinds`), or from a dict as a study has it.

    >>> import neyman
    >>> neyman.calibrator("histogram", bins=20)
    HistogramCalibrator(bins=20)
    """
    if isinstance(kind, Calibrator):
        return kind
    table = {**dict(kind), **options} if isinstance(kind, Mapping) else {"kind": kind, **options}
    return _of_kind(str(table.pop("kind", "")), table)


def calibrator_kinds() -> list[str]:
    """Every kind that a calibrator may have."""
    return _core.calibrator_kinds()


def load_calibrator(path: str | os.PathLike[str]) -> Calibrator:
    """Reads what `Calibrator.save` wrote. Nothing in the file is executed."""
    core = _core.Calibrator._load(read_bytes("load_calibrator", path))
    made = _of_kind(core.kind, {})
    made._core = core
    return made


CalibratorLike = Union[None, str, Mapping[str, Any], Calibrator]


def as_core(value: CalibratorLike) -> _core.Calibrator | None:
    return None if value is None else calibrator(value)._core
