"""Events: in memory, in files, and cut into parts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from neyman import _core
from neyman._arrays import column_names
from neyman._files import as_path
from neyman.core import (check_count, check_flag, check_numbers, check_text, check_texts, given,
                         optional)

__all__ = ["Samples", "file_columns", "k_fold", "read_samples", "split", "write_samples"]

Path = Union[str, "os.PathLike[str]"]
Floats = npt.NDArray[np.float64]


class Samples:
    """Events: features x and, where they are known, the θ that each was simulated at, a weight
    and a group.

    Columns of a pandas DataFrame or a structured array keep their names, and `feature_names` and
    `parameter_names` choose among them.

    >>> import neyman
    >>> events = neyman.Samples([[1, 2], [3, 4]], weights=[1, 1], feature_names=["a", "b"])
    >>> events
    Samples(2 events, features: a, b, weighted)
    >>> events.effective_size   # (Σw)² / Σw²
    2.0
    """

    def __init__(self, x: npt.ArrayLike, *, theta: npt.ArrayLike | None = None,
                 weights: npt.ArrayLike | None = None, groups: npt.ArrayLike | None = None,
                 feature_names: Sequence[str] | None = None,
                 parameter_names: Sequence[str] | None = None) -> None:
        if feature_names is None:
            feature_names = column_names(x)
        if theta is not None and parameter_names is None:
            parameter_names = column_names(theta)
        self._core = _core.Samples(x, theta, weights, groups, _texts("feature_names", feature_names),
                                   _texts("parameter_names", parameter_names))

    @classmethod
    def _of(cls, core: _core.Samples) -> Samples:
        made = cls.__new__(cls)
        made._core = core
        return made

    @property
    def x(self) -> Floats:
        """Events × features; read-only, and no copy."""
        return self._core.x

    @property
    def theta(self) -> Floats:
        """Events × parameters; empty where θ is not known."""
        return self._core.theta

    @property
    def weights(self) -> Floats:
        """One an event; empty where all are 1."""
        return self._core.weights

    @property
    def groups(self) -> npt.NDArray[np.int64]:
        return self._core.groups

    @property
    def feature_names(self) -> list[str]:
        return self._core.feature_names

    @property
    def parameter_names(self) -> list[str]:
        return self._core.parameter_names

    @property
    def total_weight(self) -> float:
        return self._core.total_weight

    @property
    def effective_size(self) -> float:
        """(Σw)² / Σw²: how many unweighted events the weighted ones are worth."""
        return self._core.effective_size

    def take(self, indices: npt.ArrayLike) -> Samples:
        """The events with these indices, in this order."""
        return Samples._of(self._core.take(indices))

    def append(self, other: Samples) -> Samples:
        """These events and those of `other`, which has the same columns."""
        return Samples._of(self._core.append(other._core))

    def to_pandas(self) -> Any:
        """A DataFrame with a column for each feature and parameter, and the weight and the group
        where there are any."""
        import pandas  # type: ignore[import]

        frame = pandas.DataFrame(np.array(self.x), columns=self.feature_names)
        for i, name in enumerate(self.parameter_names):
            frame[name] = self.theta[:, i]
        if len(self.weights):
            frame["weight"] = self.weights
        if len(self.groups):
            frame["group"] = self.groups
        return frame

    def __len__(self) -> int:
        return len(self._core)

    def __array__(self, dtype: Any = None, copy: Any = None) -> npt.NDArray[Any]:
        return np.array(self.x, dtype=dtype) if copy or dtype is not None else self.x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Samples) and self._core == other._core

    def __getstate__(self) -> bytes:
        return self._core._dump()

    def __setstate__(self, state: bytes) -> None:
        self._core = _core.Samples._load(state)

    def __repr__(self) -> str:
        parts = [f"{len(self)} events", "features: " + ", ".join(self.feature_names)]
        if self.parameter_names:
            parts.append("parameters: " + ", ".join(self.parameter_names))
        if len(self.weights):
            parts.append("weighted")
        return f"Samples({', '.join(parts)})"


def _texts(name: str, value: Sequence[str] | None) -> list[str] | None:
    return None if value is None else check_texts("samples", name, value)


def _read_options(function: str, format: Any, header: Any, separator: Any,
                  dataset: Any) -> dict[str, Any]:
    return given(format=optional(check_text, function, "format", format),
                 header=optional(check_flag, function, "header", header),
                 separator=optional(check_text, function, "separator", separator),
                 dataset=optional(check_text, function, "dataset", dataset))


def read_samples(path: Path, *, features: Sequence[str] | None = None,
                 parameters: Sequence[str] | None = None, weight: str | None = None,
                 group: str | None = None, columns: Sequence[str] | None = None,
                 drop_invalid: bool | None = None, header: bool | None = None,
                 separator: str | None = None, format: str | None = None,
                 dataset: str | None = None) -> Samples:
    """Reads events from a CSV, NPY or HDF5 file.

    `features`: the columns of x (default: all that are nothing else); `parameters`: those of θ;
    `weight`, `group`: one each; `columns`: the names of all columns in order, where the file has
    none; `drop_invalid`: leave rows with missing values out instead of refusing the file; `header`:
    whether the first line of a CSV file has names (default: seen); `dataset`: its path in an HDF5
    file.

    >>> import neyman, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "events.csv")
    >>> neyman.write_samples(path, neyman.Samples([[1.5, 2]], feature_names=["a", "b"]))
    >>> neyman.read_samples(path, features=["b"]).x
    array([[2.]])
    """
    options = given(features=_texts("features", features),
                    parameters=_texts("parameters", parameters),
                    weight=optional(check_text, "read_samples", "weight", weight),
                    group=optional(check_text, "read_samples", "group", group),
                    columns=_texts("columns", columns),
                    drop_invalid=optional(check_flag, "read_samples", "drop_invalid", drop_invalid),
                    **_read_options("read_samples", format, header, separator, dataset))
    return Samples._of(_core.read_samples(as_path("read_samples", path), options)[0])


def write_samples(path: Path, samples: Samples | npt.ArrayLike, *, format: str | None = None,
                  weight: str | None = None, group: str | None = None,
                  compression: int | None = None) -> None:
    """Writes events to a CSV, NPY or HDF5 file, whole or not at all; the same bits come back.
    `weight` and `group` name the columns."""
    events = samples if isinstance(samples, Samples) else Samples(samples)
    _core.write_samples(as_path("write_samples", path), events._core,
                        given(format=optional(check_text, "write_samples", "format", format),
                              weight=optional(check_text, "write_samples", "weight", weight),
                              group=optional(check_text, "write_samples", "group", group),
                              compression=optional(check_count, "write_samples", "compression",
                                                   compression)))


def file_columns(path: Path, *, format: str | None = None, header: bool | None = None,
                 separator: str | None = None, dataset: str | None = None) -> list[str]:
    """The names of a file's columns, without reading its rows."""
    return _core.file_columns(as_path("file_columns", path), _read_options(
        "file_columns", format, header, separator, dataset))


def split(n: int, fractions: Sequence[float], *, seed: int = 0,
          labels: npt.ArrayLike | None = None,
          groups: npt.ArrayLike | None = None) -> list[npt.NDArray[np.int64]]:
    """Cuts n events into parts at random: the indices of each part, rising.

    With `labels` each label is spread over the parts in proportion; with `groups` the events of a
    group stay together.

    >>> import neyman
    >>> [len(part) for part in neyman.split(100, [0.7, 0.3], seed=1)]
    [70, 30]
    """
    return _core.split(check_count("split", "n", n), check_numbers("split", "fractions", fractions),
                       check_count("split", "seed", seed), labels, groups)


def k_fold(n: int, folds: int, *, seed: int = 0, labels: npt.ArrayLike | None = None,
           groups: npt.ArrayLike | None = None) -> list[npt.NDArray[np.int64]]:
    """Cuts n events into folds whose sizes differ by at most one; labels and groups as in `split`.

    >>> import neyman
    >>> sorted(len(fold) for fold in neyman.k_fold(10, 3))
    [3, 3, 4]
    """
    return _core.folds(check_count("k_fold", "n", n), check_count("k_fold", "folds", folds),
                       check_count("k_fold", "seed", seed), labels, groups)
