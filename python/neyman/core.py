"""Parameters, threads and versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from neyman import _core
from neyman.errors import ArgumentError

__all__ = ["Parameters", "built_with", "set_threads", "threads"]

Theta = Union[None, float, Sequence[float], Mapping[str, float], npt.NDArray[Any]]


class Parameters:
    """The parameters θ of a study, in order, each with the range in which it may lie.

    A range is a pair, or a mapping as in a study file with `range` and, where wanted, `truth`,
    `role`, and `periodic` for a phase or an angle, whose range is its period. Wherever a θ is asked for, it may be a sequence in the order of the parameters, a mapping
    by name, or, of one parameter, a number.

    >>> import neyman
    >>> parameters = neyman.Parameters(alpha=(-3, 3), beta={"range": (0, 2), "role": "nuisance"})
    >>> parameters
    Parameters(alpha=(-3.0, 3.0), beta=(0.0, 2.0))
    >>> parameters.point({"beta": 1, "alpha": 0})
    array([0., 1.])
    """

    def __init__(self, ranges: Mapping[str, Any] | None = None, **more: Any) -> None:
        entries = []
        if ranges is not None and not isinstance(ranges, Mapping):
            raise ArgumentError(f"Parameters: ranges is {shown(ranges)}, but must be a mapping of "
                                "names to ranges")
        for name, value in {**(ranges or {}), **more}.items():
            entries.append(self._entry(name, value))
        self._core = _core.ParameterSpace(entries)

    @staticmethod
    def _entry(name: str, value: Any, *, open_ends: bool = False) -> dict[str, Any]:
        """`open_ends`: an end may be infinite, and a range None: both are."""
        if value is None and open_ends:
            value = (-np.inf, np.inf)
        known = {"range", "truth", "role", "periodic", "constraint"}
        table = dict(value) if isinstance(value, Mapping) else {"range": value}
        unknown = set(table) - known
        if unknown or "range" not in table:
            raise ArgumentError(f"Parameters: {name} has the keys {sorted(table)}, but must have "
                                "'range' and at most 'truth', 'role', 'periodic' and 'constraint'")
        periodic = table.get("periodic", False)
        if not isinstance(periodic, (bool, np.bool_)):
            raise ArgumentError(f"Parameters: {name}: periodic is {shown(periodic)}, but must be "
                                "True or False")
        try:
            ends = (-np.inf, np.inf) if table["range"] is None and open_ends else table["range"]
            low, high = (float(end) for end in ends)
            truth = None if table.get("truth") is None else float(table["truth"])
        except (TypeError, ValueError):
            raise ArgumentError(f"Parameters: {name} is {shown(value)}, but must be a range "
                                "(lowest, highest)") from None
        finite = np.isfinite(low) and np.isfinite(high)
        if not ((finite or open_ends) and low < high):
            raise ArgumentError(f"Parameters: {name} is ({low:g}, {high:g}), but must be "
                                "(lowest, highest)"
                                + ("; neyman.Design gives ends to ranges that have none"
                                   if low < high else ""))
        return {"name": str(name), "low": low, "high": high, "truth": truth,
                "nuisance": table.get("role") == "nuisance", "periodic": bool(periodic)}

    @classmethod
    def _of(cls, core: _core.ParameterSpace) -> Parameters:
        made = cls.__new__(cls)
        made._core = core
        return made

    @property
    def names(self) -> list[str]:
        return self._core.names()

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        return {name: (low, high) for name, low, high, *_ in self._core.entries()}

    @property
    def truth(self) -> dict[str, float]:
        """Of those parameters whose true value is known."""
        return {name: truth for name, _, _, truth, *_ in self._core.entries() if truth is not None}

    @property
    def nuisance(self) -> list[str]:
        """Those that are profiled and not of interest."""
        return [name for name, _, _, _, nuisance, _ in self._core.entries() if nuisance]

    @property
    def periodic(self) -> list[str]:
        """Phases and angles: the two ends of their ranges are one."""
        return [name for name, *_, periodic in self._core.entries() if periodic]

    def point(self, theta: Theta) -> npt.NDArray[np.float64]:
        """θ as an array, in the order of the parameters."""
        return self._core.point(theta)

    def middle(self) -> npt.NDArray[np.float64]:
        """The middle of every range."""
        return self._core.middle()

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """As in a study file."""
        out: dict[str, dict[str, Any]] = {}
        for name, low, high, truth, nuisance, periodic in self._core.entries():
            out[name] = {"range": [low, high]}
            if truth is not None:
                out[name]["truth"] = truth
            if nuisance:
                out[name]["role"] = "nuisance"
            if periodic:
                out[name]["periodic"] = True
        return out

    def __len__(self) -> int:
        return len(self._core)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parameters) and self._core == other._core

    def __reduce__(self) -> Any:
        return Parameters, (self.to_dict(),)

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}=({low}, {high})" for name, (low, high) in self.ranges.items())
        return f"Parameters({inside})"


ParametersLike = Union[None, Parameters, Mapping[str, Any]]


def as_parameters(value: ParametersLike) -> Parameters:
    if isinstance(value, Parameters):
        return value
    if value is not None and not isinstance(value, Mapping):
        raise ArgumentError(f"parameters is {shown(value)}, but must be Parameters or a mapping such "
                            "as {'alpha': (-3, 3)}")
    return Parameters(value or {})


def set_threads(count: int) -> None:
    """How many threads the library uses; 0: all of the machine's. Results are the same bits for
    any number.

    >>> import neyman
    >>> neyman.set_threads(1)
    >>> neyman.threads()
    1
    >>> neyman.set_threads(0)
    """
    _core.set_threads(count)


def threads() -> int:
    """How many threads the library uses."""
    return _core.threads()


def built_with() -> str:
    """The compiler and the versions of the libraries that numbers depend on."""
    return _core.built_with()


def given(**arguments: Any) -> dict[str, Any]:
    """What the caller gave: the rest is as the core has it, which alone knows the defaults."""
    return {name: value for name, value in arguments.items() if value is not None}


def shown(value: Any) -> str:
    """A value for an error message: short."""
    text = repr(value)
    return text if len(text) <= 60 and "\n" not in text else f"a {type(value).__name__}"


def check_number(function: str, name: str, value: Any) -> float:
    """A number, and no text that looks like one."""
    try:
        kind = getattr(getattr(value, "dtype", None), "kind", "f")
        if isinstance(value, (str, bytes, bytearray)) or kind not in "biuf":
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{function}: {name} is {shown(value)}, but must be a number") from None


def check_flag(function: str, name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentError(f"{function}: {name} is {shown(value)}, but must be True or False")
    return bool(value)


def check_text(function: str, name: str, value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ArgumentError(f"{function}: {name} is {shown(value)}, but must be a text")
    return value


def check_list(function: str, name: str, value: Any) -> list[Any]:
    """Any sequence but a text."""
    try:
        if isinstance(value, (str, bytes, bytearray, Mapping)):
            raise TypeError
        return list(value)
    except TypeError:
        raise ArgumentError(f"{function}: {name} is {shown(value)}, but must be a list") from None


def check_texts(function: str, name: str, value: Any) -> list[str]:
    return [check_text(function, f"{name}[{i}]", entry)
            for i, entry in enumerate(check_list(function, name, value))]


def check_numbers(function: str, name: str, value: Any) -> list[float]:
    return [check_number(function, f"{name}[{i}]", entry)
            for i, entry in enumerate(check_list(function, name, value))]


def check_parameter(function: str, name: str, value: Any, parameters: Parameters) -> str:
    if not isinstance(value, str) or value not in parameters.names:
        raise ArgumentError(f"{function}: {name} is {shown(value)}, but must be a parameter: "
                            + ", ".join(parameters.names))
    return value


def optional(check: Callable[[str, str, Any], Any], function: str, name: str, value: Any) -> Any:
    """None as it is, everything else checked."""
    return None if value is None else check(function, name, value)


def check_count(function: str, name: str, value: Any, least: int = 0) -> int:
    """A whole number that is at least something."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = value.__index__()
    except (AttributeError, TypeError):
        raise ArgumentError(f"{function}: {name} is {shown(value)}, but must be a whole "
                            "number") from None
    if not least <= number < 2**36 and not (name == "seed" and 0 <= number < 2**63):
        raise ArgumentError(f"{function}: {name} is {number}, but must be at least {least} and "
                            "below 2^36")
    return int(number)
