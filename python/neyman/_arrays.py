"""Arrays of any kind as the plain doubles that the core reads: what it cannot see in place.

Called by the compiled part, with the function and the argument's name for its errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from neyman.errors import ArgumentError

_NUMBERS = "biuf"


def _fail(function: str, name: str, what: str, condition: str) -> ArgumentError:
    return ArgumentError(f"{function}: {name} is {what}, but must be {condition}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"


def _plain(value: Any, function: str, name: str) -> np.ndarray:
    """An array of numbers, whatever its type and order; never an object or a text."""
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.getmaskarray(value).any():  # type: ignore[no-untyped-call]
            raise _fail(function, name, "a masked array", "without masked values")
        value = value.data
    if hasattr(value, "toarray") and hasattr(value, "tocsr"):
        raise _fail(function, name, "sparse", "an array; call toarray() where it fits into memory")
    if hasattr(value, "detach") and hasattr(value, "cpu"):  # a torch tensor
        value = value.detach().cpu()
    try:
        array = np.asarray(value)
        if array.dtype == object:
            array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise _fail(function, name, _shown(value), "an array of numbers") from None
    if array.dtype.kind not in _NUMBERS:
        raise _fail(function, name, f"an array of {array.dtype}", "an array of real numbers")
    return array


def _doubles(array: np.ndarray) -> np.ndarray:
    return np.require(array, np.float64, ["C", "A"])


def column_names(value: Any) -> list[str] | None:
    """The names of the columns of a DataFrame or a structured array; None of other arrays."""
    if hasattr(value, "columns") and hasattr(value, "loc"):
        return [str(column) for column in value.columns]
    dtype = getattr(value, "dtype", None)
    names = getattr(dtype, "names", None)
    return list(names) if names else None


def _named(value: Any, function: str, name: str, columns: Sequence[str]) -> list[Any]:
    """The columns of a DataFrame or structured array, one array each."""
    found = column_names(value)
    assert found is not None
    for column in columns:
        if column not in found:
            raise ArgumentError(f"{function}: {name} has the columns {', '.join(found)}, but must "
                                f"have '{column}'")
    if hasattr(value, "columns"):
        by_name = dict(zip(found, range(len(found))))
        return [value.iloc[:, by_name[column]].to_numpy() for column in columns or found]
    return [value[column] for column in columns or found]


def as_points(value: Any, names: Sequence[str]) -> Any:
    """Many θ as a table: of two dimensions, with columns, or of a mapping whose values are arrays;
    None of anything else, which is one θ or a mistake."""
    if isinstance(value, Mapping):
        parts = [value[name] for name in names if name in value]
        if not any(getattr(part, "ndim", 0) or isinstance(part, (list, tuple)) for part in parts):
            return None
        if sorted(value) != sorted(names):
            raise _fail("Likelihood", "theta", f"a mapping with the keys {sorted(map(str, value))}",
                        f"one with the parameters {', '.join(names)}")
        columns = [_plain(value[name], "Likelihood", f"theta['{name}']") for name in names]
        try:
            return np.column_stack(np.broadcast_arrays(*columns))
        except ValueError:
            raise _fail("Likelihood", "theta", "of arrays with different lengths",
                        "of arrays of one length") from None
    if column_names(value) is not None or getattr(value, "ndim", 0) == 2:
        return value
    rows = isinstance(value, (list, tuple)) and len(value) > 0
    if rows and all(isinstance(row, (list, tuple)) or getattr(row, "ndim", 0) == 1 for row in value):
        return value
    return None


def as_table(value: Any, function: str, name: str, columns: Sequence[str]) -> np.ndarray:
    """Rows × columns of doubles in C order."""
    if column_names(value) is not None:
        parts = [_plain(part, function, name) for part in _named(value, function, name, columns)]
        if any(part.ndim != 1 for part in parts):
            raise _fail(function, name, "an array with columns of several values",
                        "one with a number in each")
        return _doubles(np.column_stack(parts)) if parts else np.empty((len(value), 0))
    array = _plain(value, function, name)
    if array.ndim == 1:
        return _doubles(array.reshape(-1, 1))
    if array.ndim != 2:
        raise _fail(function, name, f"an array of shape {array.shape}",
                    "rows × columns, or one column")
    return _doubles(array)


def as_vector(value: Any, function: str, name: str, _: None = None) -> np.ndarray:
    array = _plain(value, function, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise _fail(function, name, f"an array of shape {array.shape}", "of one dimension")
    return _doubles(array)


def as_integers(value: Any, function: str, name: str, _: None = None) -> np.ndarray:
    array = _plain(value, function, name)
    if array.ndim != 1:
        raise _fail(function, name, f"an array of shape {array.shape}", "of one dimension")
    if array.dtype.kind == "f":
        whole = np.isfinite(array) & (np.abs(array) < 2.0**53)
        if not np.all(whole) or not np.array_equal(array, np.floor(array)):
            raise _fail(function, name, "an array of fractions", "of whole numbers")
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise _fail(function, name, "an array with numbers beyond 2^63", "smaller")
    return np.ascontiguousarray(array, dtype=np.int64)


def as_point(value: Any, function: str, name: str, parameters: Sequence[str]) -> np.ndarray:
    """θ, a value for each parameter."""
    if value is None:
        value = ()
    if isinstance(value, Mapping):
        for key in value:
            if key not in parameters:
                raise ArgumentError(f"{function}: {name} names '{key}', but must name parameters: "
                                    + (", ".join(parameters) or "there are none"))
        for parameter in parameters:
            if parameter not in value:
                raise ArgumentError(f"{function}: {name} lacks '{parameter}', but must have a "
                                    "value for each parameter")
        value = [value[parameter] for parameter in parameters]
    array = _plain(value, function, name)
    if array.ndim == 0:
        array = array.reshape(1)
    if array.ndim != 1 or array.size != len(parameters):
        wanted = f"{len(parameters)} values ({', '.join(parameters)})" if parameters else "empty"
        raise _fail(function, name, _shown(value), wanted)
    array = _doubles(array)
    if not np.all(np.isfinite(array)):
        raise _fail(function, name, _shown(value), "finite")
    return array
