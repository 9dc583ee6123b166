"""What users write in Python: functions that simulate, and classifiers of other libraries."""

from __future__ import annotations

import copy
import hashlib
import inspect
import os
import signal
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_all_start_methods, get_context
from typing import Any

import numpy as np
import numpy.typing as npt

from neyman import _core
from neyman._arrays import column_names
from neyman.classifiers import Classifier
from neyman.core import (Parameters, ParametersLike, as_parameters, check_count, check_flag,
                         check_number, check_texts)
from neyman.errors import ArgumentError
from neyman.simulators import Distribution, fingerprint_of

__all__ = ["PythonClassifier", "PythonSimulator"]

Floats = npt.NDArray[np.float64]
# What goes to a worker, and is kept, together: calls, a tenth of a second where one takes a
# millisecond, and events of one call.
_CALLS = 100
_ROWS = 1000


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _point(names: Sequence[str], theta: Floats) -> str:
    """θ in words."""
    return ", ".join(f"{name} = {value:.6g}" for name, value in zip(names, theta.tolist()))


def _rows(function: Any, found: Any, n: int, dimension: int | None, theta: Floats | None = None,
          names: Sequence[str] = (), features: Sequence[str] = ()) -> Floats:
    """What a simulator returned, at θ, as rows × features; a clear error where it is something
    else."""
    at = f" at {_point(names, theta)}" if theta is not None and theta.ndim == 1 else ""
    name = _name(function)
    columns = column_names(found)
    if columns is not None:
        if features and sorted(columns) != sorted(features):
            raise ArgumentError(f"{name}: what it returns{at} has the columns {', '.join(columns)}, but "
                                f"must have {', '.join(features)}")
        keys = dict(zip(columns, _keys(found)))
        found = np.column_stack([np.asarray(found[keys[key]]) for key in features or columns])
    x = _real(found, f"{name}: what it returns{at}")
    if x.ndim == 1 and dimension in (None, 1):
        x = x.reshape(-1, 1)
    shape = f"({n}, {'features' if dimension is None else dimension})"
    if x.ndim != 2 or x.shape[0] != n or dimension not in (None, x.shape[1]):
        raise ArgumentError(f"{name}: what it returns{at} has shape {np.shape(found)}, but must have "
                            f"{shape}: a row for each of n = {n} events")
    if x.shape[1] == 0:
        raise ArgumentError(f"{name}: what it returns{at} has no features, but must have {shape}")
    if not np.all(np.isfinite(x)):
        row, column = np.argwhere(~np.isfinite(x))[0]
        if theta is not None and theta.ndim == 2:
            at = f" at {_point(names, theta[row])}"
        raise ArgumentError(f"{name}: what it returns{at} has {x[row, column]} in row {row}, column "
                            f"{column}, but must be finite")
    return x


def _real(found: Any, what: str) -> Floats:
    """Real numbers as doubles: of a complex one NumPy would drop the imaginary part."""
    try:
        array = np.asarray(found)
        if array.dtype == object:
            array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"{what} is a {type(found).__name__}, but must be an array of "
                            "numbers") from None
    if array.dtype.kind not in "fiub":
        raise ArgumentError(f"{what} is an array of {array.dtype}, but must be an array of numbers "
                            "that are real")
    return np.asarray(array, dtype=np.float64)


def _keys(found: Any) -> list[Any]:
    return list(found.columns) if hasattr(found, "columns") else list(found.dtype.names)


def _simulate(function: Any, per_row: bool, dimension: int | None, names: Sequence[str],
              features: Sequence[str], theta: Floats, events: int, seed: int) -> Floats:
    """One request of the core: `events` at one θ, or one event for each row of θ."""
    rng = np.random.default_rng(seed)
    if events:
        return _checked(function, theta[0], events, rng, dimension, names, features)
    if per_row:
        return _checked(function, theta, len(theta), rng, dimension, names, features)
    # One call for each run of equal θ.
    out, begin = [], 0
    changes = np.flatnonzero(np.any(theta[1:] != theta[:-1], axis=1)) + 1
    for end in (*changes, len(theta)):
        out.append(_checked(function, theta[begin], int(end) - begin, rng, dimension, names,
                            features))
        begin = int(end)
    return np.concatenate(out)


def _checked(function: Any, theta: Floats, n: int, rng: np.random.Generator,
             dimension: int | None, names: Sequence[str], features: Sequence[str]) -> Floats:
    return _rows(function, _called(function, theta, n, rng, names), n, dimension, theta, names,
                 features)


def _called(function: Any, theta: Floats, n: int, rng: np.random.Generator,
            names: Sequence[str]) -> Any:
    """What a simulator returns; θ is noted in what it raises."""
    try:
        return function(theta, n, rng)
    except Exception as error:
        failing = theta if theta.ndim == 1 else _failing_row(function, theta)
        at = ("called with many theta at once" if failing is None
              else f"at {_point(names, failing)}, n = {n if theta.ndim == 1 else 1}")
        _add_note(error, f"in the simulator {_name(function)}, {at}")
        raise


def _failing_row(function: Any, theta: Floats) -> Floats | None:
    """The first θ at which a function that was given many fails alone."""
    for row in theta:
        try:
            function(row.reshape(1, -1), 1, np.random.default_rng(0))
        except Exception:
            failing: Floats = row
            return failing
    return None


def _add_note(error: Exception, note: str) -> None:
    if hasattr(error, "add_note"):
        error.add_note(note)
    elif len(error.args) == 1 and isinstance(error.args[0], str):  # before Python 3.11
        error.args = (f"{error.args[0]}\n{note}",)


def _told(error: BaseException) -> str:
    """An exception in words, with what was noted of it."""
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", []))
    return f"{type(error).__name__}: {error}{notes}"


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asked decides


_worker_job: Any = None  # of a worker process: the arguments of `_simulate`


def _begin_work(job: Any) -> None:
    global _worker_job
    _ignore_interrupts()
    _worker_job = job


def _work(theta: Floats, events: int, seed: int) -> Floats:
    arguments = (*_worker_job, theta, events, seed)
    return _simulate(*arguments)


class Caller:
    """Calls a simulator for the core: here, or in worker processes, or from what is kept."""

    def __init__(self, function: Any, per_row: bool, dimension: int, names: Sequence[str],
                 features: Sequence[str], workers: int, fingerprint: str, tolerant: bool) -> None:
        self._job = (function, per_row, dimension, names, features)
        self._tolerant = tolerant
        self._workers = workers
        self._fingerprint = fingerprint
        self._folder = ""
        self._pool: ProcessPoolExecutor | None = None

    def again(self) -> Caller:
        """The same with a folder and with worker processes of its own."""
        made = Caller(*self._job, self._workers, self._fingerprint, self._tolerant)
        made._folder = self._folder
        return made

    def __call__(self, theta: Floats, events: int, seed: int) -> Floats:
        path = self._path(theta, events, seed)
        kept = self._kept(path)
        if kept is not None:
            return kept
        return self._keep(path, _simulate(*self._job, theta, events, seed))

    def submit(self, theta: Floats, events: int, seed: int) -> Future[Floats]:
        path = self._path(theta, events, seed)
        kept = self._kept(path)
        if kept is not None:
            done: Future[Floats] = Future()
            done.set_result(kept)
            return done
        if self._pool is None:
            # Processes that are forked know functions that cannot be pickled, as of a notebook.
            method = "fork" if "fork" in get_all_start_methods() else None
            self._pool = ProcessPoolExecutor(self._workers, get_context(method), _begin_work,
                                             (self._job,))
        future = self._pool.submit(_work, theta, events, seed)
        future._neyman_path = path  # type: ignore[attr-defined]
        return future

    def finish(self, future: Future[Floats]) -> Floats:
        try:
            found = future.result()
        except Exception:
            if not self._tolerant:
                self.close()
            raise
        path = getattr(future, "_neyman_path", "")
        return self._keep(path, found) if path else found

    def close(self) -> None:
        """Ends the worker processes; others are started where they are needed again."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def keep_in(self, folder: str) -> None:
        self._folder = folder
        if folder:
            os.makedirs(folder, exist_ok=True)

    def _path(self, theta: Floats, events: int, seed: int) -> str:
        if not self._folder:
            return ""
        name = hashlib.sha256(self._fingerprint.encode() + theta.tobytes()
                              + f"{theta.shape} {events} {seed}".encode()).hexdigest()[:32]
        return os.path.join(self._folder, f"python-{name}.npy")

    def _kept(self, path: str) -> Floats | None:
        try:
            return np.load(path, allow_pickle=False) if path else None  # type: ignore[no-any-return]
        except (OSError, ValueError, EOFError):
            return None  # absent, or damaged

    def _keep(self, path: str, found: Floats) -> Floats:
        if path:
            handle, temporary = tempfile.mkstemp(dir=self._folder)
            with os.fdopen(handle, "wb") as file:
                np.save(file, found)
            os.replace(temporary, path)
        return found


class PythonSimulator(Distribution):
    """A Python function as a simulator: `simulate(theta, n, rng)` returns n events at θ, n × features
    (or n numbers). Everything that takes a distribution takes it.

    With `per_row` the function can also be given a θ for each event: theta is then n × parameters,
    and one call simulates thousands of training events. Without, it is called for each θ; where
    starting costs more than an event, `events_per_run` events are asked for at each.

    A function that raises, or returns what cannot be used, ends the work, with θ in the error. With
    `tolerate`, as of a command, that share of the training events may fail: they are left out, and the
    report says how many, and at which θ.

    With `workers`, calls run in that many other processes, which the function must not notice; without,
    in the thread that called neyman. Events are the same for any number of workers. What the
    function raises is raised again, with its traceback. `keep_in(folder)` keeps what was simulated:
    asked again after an interrupt, it is taken from there. A change of the function's source is
    noticed; of what it calls, tell by another `version`.

    >>> import neyman
    >>> def simulate(theta, n, rng):
    ...     return rng.normal(theta[..., 0], 1.0, n)
    >>> simulator = neyman.PythonSimulator(simulate, {"mu": (-1, 1)}, per_row=True)
    >>> simulator.sample(3, 0.5).shape
    (3, 1)
    >>> neyman.simulate(simulator, 1000)
    Samples(1000 events, features: x, parameters: mu)
    """

    _kind = "python"

    def __init__(self, function: Callable[..., Any], parameters: ParametersLike, *,
                 features: Sequence[str] | None = None, per_row: bool = False, workers: int = 0,
                 events_per_run: int = 1, tolerate: float = 0.0, version: str = "") -> None:
        if not callable(function):
            raise ArgumentError(f"PythonSimulator: function is {function!r}, but must be callable")
        self._parameters = as_parameters(parameters)
        self._options = {"features": features, "per_row": per_row, "workers": workers,
                         "events_per_run": events_per_run, "tolerate": tolerate,
                         "version": version}
        self.function = function
        workers = check_count("PythonSimulator", "workers", workers)
        per_row = check_flag("PythonSimulator", "per_row", per_row)
        events_per_run = check_count("PythonSimulator", "events_per_run", events_per_run, 1)
        share = check_number("PythonSimulator", "tolerate", tolerate)
        if not 0.0 <= share <= 1.0:
            raise ArgumentError(f"PythonSimulator: tolerate is {share:g}, but must be between 0 and 1")
        middle, known = self._parameters.middle(), self._parameters.names
        start = time.perf_counter()
        trial = _called(function, middle, 2, np.random.default_rng(0), known)
        seconds = time.perf_counter() - start
        own = column_names(trial)
        names = own if features is None else check_texts("PythonSimulator", "features", features)
        # The columns of a DataFrame, in this order whatever the order of a call is.
        columns = names if own and names and sorted(own) == sorted(names) else own or []
        rows = _rows(function, trial, 2, None, middle, known, columns)
        dimension = rows.shape[1]
        if per_row:
            _checked(function, np.tile(middle, (2, 1)), 2, np.random.default_rng(0), dimension, known,
                     columns)
        if names and len(names) != dimension:
            raise ArgumentError(f"PythonSimulator: features has {len(names)} values, but must have "
                                f"{dimension} (one for each column that it returns)")
        fingerprint = fingerprint_of(function, f"{version} {per_row}")
        self._caller = Caller(function, per_row, dimension, known, columns, workers, fingerprint,
                              share > 0.0)
        self._made = _core.function_simulator(self._caller, self._parameters._core, dimension,
                                              names or [], events_per_run,
                                              _ROWS if per_row else _CALLS, workers, share,
                                              seconds)
        self._given = {"kind": "python", "object": self, "fingerprint": fingerprint}
        self._folder = "."

    def keep_in(self, folder: str | os.PathLike[str]) -> None:
        """Keeps what is simulated from now on in a folder, and takes it from there."""
        self._caller.keep_in(os.fspath(folder))

    @property
    def _core_object(self) -> _core.Simulator:
        """What stands for it in a study."""
        return self._simulator()

    def close(self) -> None:
        """Ends the worker processes; they are started again where they are needed."""
        self._caller.close()

    def with_parameters(self, parameters: ParametersLike) -> Distribution:
        return PythonSimulator(self.function, parameters, **self._options)  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Any]:
        raise ArgumentError("to_dict: the simulator is a Python function, which no file can hold")

    def __reduce__(self) -> Any:
        return _restore, (self.function, self._parameters, self._options)

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", repr(self.function))
        return f"PythonSimulator({name}, {self.parameters!r})"


def _restore(function: Any, parameters: Parameters, options: Mapping[str, Any]) -> PythonSimulator:
    return PythonSimulator(function, parameters, **options)


class Adapter:
    """A classifier of another library as the core asks for it."""

    def __init__(self, model: Any, train: Any) -> None:
        self._model = model
        self._train = train
        self._most = 40.0  # of |z|
        self._shift = 0.0

    def fresh(self) -> Adapter:
        if self._train is None and not hasattr(self._model, "fit"):
            return Adapter(self._model, None)
        if self._train is None and "sklearn" in type(self._model).__module__:
            from sklearn.base import clone  # type: ignore[import]

            return Adapter(clone(self._model), None)
        return Adapter(copy.deepcopy(self._model), self._train)

    def fit(self, x: Floats, y: npt.NDArray[np.int64], weights: Floats, seed: int) -> None:
        # Probabilities of 0 and 1 are what n events cannot tell from 1/n.
        self._most = float(np.log(2.0 * len(y)))
        if self._train is not None:
            trained = self._train(self._model, x, y, weights, seed)
            self._model = self._model if trained is None else trained
            return
        if not hasattr(self._model, "fit"):
            return  # it was trained elsewhere
        if hasattr(self._model, "random_state") and hasattr(self._model, "set_params"):
            if self._model.random_state is None:
                self._model.set_params(random_state=seed % 2**32)
        if np.ptp(weights) <= 1e-12 * np.max(weights):
            self._model.fit(x, y)
        elif self._takes_weights():
            self._model.fit(x, y, sample_weight=weights)
        elif all(np.ptp(weights[y == side]) <= 1e-12 * np.max(weights) for side in (0, 1)):
            self._model.fit(x, y)
            self._shift = -float(np.log(np.sum(y == 1) / np.sum(y == 0)))
        else:
            raise ArgumentError(f"fit: the events have weights, but {type(self._model).__name__} "
                                "takes none (its fit has no sample_weight)")

    def _takes_weights(self) -> bool:
        return "sample_weight" in inspect.signature(self._model.fit).parameters

    def logits(self, x: Floats) -> Floats:
        return self._scores(x) + self._shift

    def _scores(self, x: Floats) -> Floats:
        model = self._model
        if hasattr(model, "decision_function"):
            return self._vector(model.decision_function(x))
        if hasattr(model, "predict_proba"):
            p = _real(model.predict_proba(x), "logits: the scores of predict_proba")
            if p.ndim != 2 or p.shape[1] != 2:
                raise ArgumentError(f"logits: predict_proba gives shape {p.shape}, but must give "
                                    "rows × 2 (numerator, denominator)")
            rounding = 1e-6  # of float32
            wrong = np.argwhere(~((p >= -rounding) & (p <= 1 + rounding)))
            if len(wrong) > 0:
                row, column = wrong[0]
                raise ArgumentError(f"logits: predict_proba gives {p[row, column]} in row {row}, "
                                    f"column {column}, but must give probabilities, between 0 and 1")
            tiny = np.exp(-self._most)
            z: Floats = np.log(np.clip(p[:, 1], tiny, None)) - np.log(np.clip(p[:, 0], tiny, None))
            return z
        if hasattr(model, "parameters") and hasattr(model, "eval"):
            return self._torch(x)
        return self._vector(model(x))

    def _torch(self, x: Floats) -> Floats:
        import torch  # type: ignore[import]

        self._model.eval()
        like = next(iter(self._model.parameters()), None)
        with torch.no_grad():
            tensor = torch.as_tensor(x, dtype=None if like is None else like.dtype,
                                     device=None if like is None else like.device)
            found: Floats = self._model(tensor).double().cpu().numpy()
        # Two outputs are the logits of the two sides, as for the cross-entropy.
        return found[:, 1] - found[:, 0] if found.ndim == 2 and found.shape[1] == 2 else (
            self._vector(found))

    @staticmethod
    def _vector(found: Any) -> Floats:
        z = _real(found, "logits: the scores that it gives")
        return z.reshape(-1) if z.ndim == 2 and z.shape[1] == 1 else z


class PythonClassifier(Classifier):
    """Any classifier as one of ours: a scikit-learn estimator (its `decision_function`, else
    `predict_proba`, of the second class, the denominator), a PyTorch module (one output, or the two
    of a cross-entropy), or a function of x that returns one score for each row. Calibration makes the
    ratio of whatever score it is.

    Estimators are cloned and fitted, with weights that make both sides count the same. A module or a
    function is taken as trained, unless `train(model, x, y, weights, seed)` is given, which trains it
    (y is 1 for the denominator). Ratios with it cannot be saved in files, which hold no Python code.

    >>> import neyman
    >>> x0, x1 = neyman.Normal(0, 1).sample(2000, seed=1), neyman.Normal(1, 1).sample(2000, seed=2)
    >>> score = neyman.PythonClassifier(lambda x: x[:, 0])
    >>> ratio = neyman.ClassifierRatio(x0, x1, classifier=score, folds=2)
    >>> bool(abs(ratio.log_ratios([1.0])[0] + 0.5) < 0.2)            # ½ − x
    True
    """

    _kind = "python"

    def __init__(self, model: Any, *, train: Callable[..., Any] | None = None,
                 seed: int | None = None) -> None:
        self.model, self.train, self.seed = model, train, seed

    def _make(self) -> _core.Classifier:
        usable = ("decision_function", "predict_proba")
        if not callable(self.model) and not any(hasattr(self.model, name) for name in usable):
            raise ArgumentError(f"PythonClassifier: model is {self.model!r}, but must have "
                                "decision_function or predict_proba, or be callable")
        return _core.function_classifier(Adapter(self.model, self.train).fresh())

    def _settings(self) -> Mapping[str, Any]:
        # Nothing of it is kept in files, so that no text has to tell it from others.
        return {"kind": "python", "object": self._make()}

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if state.pop("_core", None) is not None:
            raise ArgumentError("pickle: the classifier is fitted and written in Python; pickle the "
                                "model itself")
        return state
