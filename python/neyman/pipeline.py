"""Whole studies: from a TOML file or a dict to results."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, Union

import numpy as np

from neyman import _core
from neyman._files import as_path, write_bytes
from neyman.classifiers import Classifier, classifier
from neyman.core import Parameters, Theta, check_count, check_flag, check_text, given, optional
from neyman.data import Samples
from neyman.errors import ArgumentError
from neyman.functions import PythonSimulator
from neyman.inference import Likelihood
from neyman.measurements import MeasurementSummary, StatisticalModel
from neyman.ratios import Ratio, _of_core

__all__ = ["Model", "Record", "Result", "Study", "load_model", "run", "stage_names"]

Path = Union[str, "os.PathLike[str]"]


#: What only some checks of a list have, and what stands for it in the others.
_OF_CHECKS: dict[str, Any] = {"note": "", "p_value": None, "tolerance": None}


class Record(Mapping[str, Any]):
    """A part of results.json: its entries are attributes too; lists of numbers are arrays. Of a check,
    `note` is empty, and `p_value` and `tolerance` are None, where it has none."""

    def __init__(self, entries: dict[str, Any]) -> None:
        self._entries = entries

    def to_dict(self) -> dict[str, Any]:
        """As in results.json."""
        return self._entries

    def __getitem__(self, key: str) -> Any:
        return _wrapped(self._entries[key])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            if name in _OF_CHECKS and "verdict" in self._entries:
                return _OF_CHECKS[name]
            raise AttributeError(f"there is no '{name}' among the results; there are "
                                 + ", ".join(self._entries)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._entries]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._entries)})"

    def _repr_html_(self) -> str:
        return _table(self._entries)


def _wrapped(value: Any) -> Any:
    if isinstance(value, dict):
        return Record(value)
    if isinstance(value, list):
        if value and all(isinstance(entry, (int, float)) for entry in value):
            return np.array(value, dtype=np.float64)
        return [_wrapped(entry) for entry in value]
    return value


def _table(entries: Mapping[str, Any]) -> str:
    rows = []
    for key, value in entries.items():
        text = (_table(value) if isinstance(value, dict)
                else f"{len(value)} entries" if isinstance(value, list) and len(value) > 6
                else html.escape(f"{value:.6g}" if isinstance(value, float) else str(value)))
        rows.append(f"<tr><th style='text-align:left'>{html.escape(str(key))}</th>"
                    f"<td style='text-align:left'>{text}</td></tr>")
    return f"<table>{''.join(rows)}</table>"


class Model:
    """A trained and calibrated ratio, or a measurement (a study with yields), with what is needed to
    use it on new data."""

    def __init__(self, core: _core.Model) -> None:
        self._core = core

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def parameters(self) -> Parameters:
        return Parameters._of(self._core.parameters)

    @property
    def feature_names(self) -> list[str]:
        return self._core.feature_names

    @property
    def is_measurement(self) -> bool:
        """Whether it is of a study with yields: `statistical_model` is then in the place of `ratio`
        and `likelihood`."""
        return self._core.is_measurement

    @property
    def ratio(self) -> Ratio:
        return _of_core(self._core.ratio)

    def likelihood(self, x: Any, **options: Any) -> Likelihood:
        """The likelihood of data; options as of `neyman.Likelihood`."""
        return Likelihood(self.ratio, x, **options)

    def statistical_model(self, data: Any) -> StatisticalModel:
        """Of a measurement, the probability of these events, with the model's yields and
        constraints: what everything in `neyman.measurements` takes."""
        events = self._events(data)
        return StatisticalModel._of(self._core.statistical_model(events._core),
                                    (_statistical_model, (self, events)))

    def fit(self, data: Any, *, source: str = "an array") -> Result:
        """Fits new data; nothing is simulated or trained."""
        return Result(self._core.fit(self._events(data)._core, source))

    def _events(self, data: Any) -> Samples:
        return data if isinstance(data, Samples) else Samples(
            data, feature_names=None if _named(data) else self.feature_names)

    def save(self, path: Path) -> None:
        """Writes model.h5, which `neyman.load_model` and `neyman fit` read."""
        self._core.save(as_path("save", path))

    def export_onnx(self, path: Path, numerator: Theta = None, denominator: Theta = None) -> None:
        """Writes one graph of ONNX for other programs: that of `ratio`, as its `export_onnx` does.
        Of a measurement the graph leads from x and the parameters of the shapes, by their names, to
        log_r and sign: log p(x) of each component over that of the reference, a column each."""
        write_bytes("export_onnx", path, self._core.onnx(numerator, denominator))

    def __getstate__(self) -> Any:
        return self._core._dump()

    def __setstate__(self, state: Any) -> None:
        self._core = _core.Model._load(state)

    def __repr__(self) -> str:
        return (f"Model({self.name}: {self._core.classifier}, "
                f"{', '.join(self.parameters.names)})")


def _statistical_model(model: Model, data: Samples) -> StatisticalModel:
    return model.statistical_model(data)


def _named(data: Any) -> bool:
    from neyman._arrays import column_names

    return column_names(data) is not None


def load_model(path: Path) -> Model:
    """Reads a model.h5. Nothing in the file is executed."""
    return Model(_core.Model.load(as_path("load_model", path)))


class Result(Record):
    """What a run found. Everything that results.json holds is an attribute:
    `result.fit.parameters.gamma.estimate`; `to_dict()` is all of it."""

    def __init__(self, core: _core.Run, keeps_model: bool = True) -> None:
        # A run that stopped before the fit has nothing to tell yet.
        super().__init__(json.loads(core.json()) if core.fitted
                         else {"study": {"name": core.name, "seed": core.seed}})
        self._run = core
        self._keeps_model = keeps_model

    @property
    def finished(self) -> bool:
        """False where the run stopped after the stage that was asked for."""
        return self._run.finished

    @property
    def model(self) -> Model | None:
        """What was trained; None where it cannot be used without its simulator."""
        model = self._run.model
        return None if model is None else Model(model)

    @property
    def next_steps(self) -> list[Any]:
        """What would make the result better, best first: each has `what` in words, `set`, the keys of
        the study with their values, and the `reason`. Empty where all is well."""
        return [Record(step) for step in self._entries.get("next_steps", [])]

    @property
    def measurement_summary(self) -> MeasurementSummary | None:
        """Of a study with yields: discovery, limits, pulls and impacts, which `neyman.plot` draws;
        `measurement` has the numbers. None for other studies, and where a folder held the finished
        run already: `model.fit(data)` gives it then."""
        core = self._run.measurement_summary
        return None if core is None else MeasurementSummary(core, StatisticalModel._of(core.model))

    def write(self, folder: Path, *, figures: bool = True) -> list[str]:
        """Writes results.json, report.html, figures/ and, where the classifier is one of neyman's,
        model.h5; returns the paths."""
        if not self._run.fitted:
            raise ArgumentError("write: the run stopped before the fit, but must have gone further")
        return self._run.write(as_path("write", folder, "folder"), figures, self._keeps_model)

    def __repr__(self) -> str:
        return self._run.summary() if self._run.fitted else f"Result({self._run.name}, not fitted)"

    def _repr_html_(self) -> str:
        fit = self.to_dict().get("fit", {})
        rows = []
        for name, entry in fit.get("parameters", {}).items():
            intervals = "; ".join(
                f"{float(level):.1%}: [{ends[0]:.4g}, {ends[1]:.4g}]"
                for level, ends in entry.get("interval", {}).items() if ends[0] is not None)
            error = f" ± {entry['error']:.2g}" if entry["error"] else ""
            rows.append(f"<tr><th>{html.escape(name)}</th><td>{entry['estimate']:.5g}{error}</td>"
                        f"<td>{intervals}</td></tr>")
        study = self.to_dict()["study"]
        return (f"<table><caption>{html.escape(str(study.get('name', 'study')))}: "
                f"{html.escape(str(fit.get('status', '')))}</caption><tr><th></th><th>estimate</th>"
                f"<th>intervals</th></tr>{''.join(rows)}</table>")


class Study:
    """A study, read and checked as a whole: from a TOML file, or from a dict of the same shape.

    In a dict the simulator, or a component of a mixture, may be a distribution or a Python function
    `simulate(theta, n, rng)` (see `PythonSimulator`), and the classifier one of ours or of another
    library (see `PythonClassifier`). Problems are told all at once.

    With `data`, these events are the observed ones, in the place of files: an array, events × features,
    whose columns are in the simulator's order; or a DataFrame, a structured array or `Samples` (with
    weights), whose names decide.

    >>> import neyman
    >>> neyman.Study({"parameters": {"mu": {"range": [0]}}, "simulator": {"kind": "normall"}})
    Traceback (most recent call last):
    ...
    neyman.errors.StudyError: ...
    """

    def __init__(self, study: Path | Mapping[str, Any], *, data: Any = None, folder: Path = ".",
                 seed: int | None = None) -> None:
        self._keeps_model = True
        observed = None if data is None else _events(data)._core
        if isinstance(study, Mapping):
            table = dict(study)
            if _holds_events(table.get("data")):
                raise ArgumentError("Study: data in the dict holds events, but must hold keys such as "
                                    "file; give the events as neyman.Study(study, data=x), or as "
                                    "neyman.run(study, data=x)")
            if "simulator" in table:
                table["simulator"] = _with_functions(table["simulator"], table.get("parameters"))
            if "classifier" in table:
                table["classifier"] = _with_classifiers(table["classifier"])
                self._keeps_model = not _in_python(table["classifier"])
            self._core = _core.Study.make(table, as_path("Study", folder, "folder"), observed)
        else:
            self._core = _core.Study.read(as_path("Study", study, "study"), observed)
        if seed is not None:
            self._core.reseed(check_count("Study", "seed", seed))

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def seed(self) -> int:
        return self._core.seed

    @property
    def parameters(self) -> Parameters:
        return Parameters._of(self._core.parameters)

    def to_dict(self) -> dict[str, Any]:
        return self._core.settings

    def __repr__(self) -> str:
        return f"Study({self.name}: {', '.join(self.parameters.names)})"


def _events(data: Any) -> Samples:
    return data if isinstance(data, Samples) else Samples(data)


def _holds_events(value: Any) -> bool:
    """Whether [data] is an array, or holds one where only names and numbers belong."""
    if isinstance(value, Mapping):
        return any(_holds_events(entry) for entry in value.values())
    return isinstance(value, Samples) or (hasattr(value, "__array__") and np.ndim(value) > 0)


def _with_functions(simulator: Any, parameters: Any) -> Any:
    """With functions, of the parameters of the study, as simulators."""
    if isinstance(simulator, Mapping):
        return {key: _with_functions(value, parameters) for key, value in simulator.items()}
    if isinstance(simulator, (list, tuple)):
        return [_with_functions(value, parameters) for value in simulator]
    return PythonSimulator(simulator, parameters) if callable(simulator) else simulator


def _with_classifiers(learned: Any) -> Any:
    """With classifiers of other libraries, also as members of an ensemble, as ours."""
    if isinstance(learned, Mapping):
        return {key: _with_classifiers(value) if key == "of" else value
                for key, value in learned.items()}
    if isinstance(learned, (list, tuple)):
        return [_with_classifiers(value) for value in learned]
    return learned if learned is None or isinstance(learned, str) else classifier(learned)


def _in_python(learned: Any) -> bool:
    """Whether a classifier of a study, or a member of it, is of another library."""
    if isinstance(learned, Mapping):
        return "object" in learned or _in_python(learned.get("of"))
    if isinstance(learned, (list, tuple)):
        return any(_in_python(value) for value in learned)
    return isinstance(learned, Classifier) and _in_python(learned._settings())


def stage_names() -> list[str]:
    """The stages of a run in their order."""
    return _core.stage_names()


def run(study: Study | Path | Mapping[str, Any], *, data: Any = None, out: Path | None = None,
        seed: int | None = None, start: str | None = None, until: str | None = None,
        fresh: bool | None = None, figures: bool | None = None) -> Result:
    """Runs a study: simulate, train, calibrate, fit, test, check. `data` are the observed events, as
    of `Study`.

    With `out`, everything is kept in that folder as the command line does: a run that was stopped
    goes on where it was, and what has not changed is not done again; `start` and `until` name stages
    (see `stage_names`), `fresh` forgets all. Without, nothing is written. Of a classifier of another
    library no stage can be kept, and no model.h5: such a study is run as a whole, and only what a
    Python simulator gave is kept in the folder's `cache`.

    >>> import neyman
    >>> result = neyman.run({
    ...     "study": {"name": "normal", "seed": 1},
    ...     "parameters": {"mu": {"range": [-1, 1], "truth": 0.2}},
    ...     "simulator": {"kind": "normal", "mean": "mu", "sigma": 1},
    ...     "training": {"samples": 5000},
    ...     "classifier": {"kind": "separable", "hidden": [], "degree": 2},
    ...     "data": {"events": 500},
    ... })
    >>> result.fit.status
    'converged'
    >>> result.fit.parameters.mu.error < 0.1
    True
    """
    if not isinstance(study, Study):
        study = Study(study, data=data, seed=seed)
    elif data is not None:
        raise ArgumentError("run: data is given beside a Study that is made, but must be given to "
                            "neyman.Study(…, data=…)")
    elif seed is not None:
        study._core.reseed(check_count("run", "seed", seed))
    options = given(start=optional(check_text, "run", "start", start),
                    until=optional(check_text, "run", "until", until),
                    fresh=optional(check_flag, "run", "fresh", fresh),
                    figures=optional(check_flag, "run", "figures", figures))
    if out is None and options:
        raise ArgumentError(f"run: {', '.join(options)} is given, but needs out, a folder")
    folder = "" if out is None else as_path("run", out, "out")
    if folder:
        os.makedirs(folder, exist_ok=True)
    if study._keeps_model or not folder:
        return Result(_core.run(study._core, folder, options), study._keeps_model)
    drawn = options.pop("figures", True)
    if options:
        raise ArgumentError(f"run: {', '.join(options)} is given, but needs a classifier of neyman's: "
                            "no stage of another is kept")
    study._core.keep_in(os.path.join(folder, "cache"))
    result = Result(_core.run(study._core, "", {}), keeps_model=False)
    result.write(folder, figures=drawn)
    return result
