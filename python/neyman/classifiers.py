"""Classifiers that tell numerator from denominator, with scikit-learn's interface.

Labels: the first of `classes_` (0) is the numerator, the second (1) the denominator. The score is
s = P(denominator | x) with both sides given the same total weight; `decision_function` is its logit
z = log s − log(1 − s), and −z is log r of a classifier that is right.
"""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from neyman import _core
from neyman._arrays import as_vector
from neyman._files import read_bytes, write_bytes
from neyman.core import check_count, shown
from neyman.errors import ArgumentError

__all__ = ["BoostedTrees", "Classifier", "Ensemble", "Logistic", "Mlp", "RandomForest",
           "classifier", "classifier_kinds", "load_classifier"]

Floats = npt.NDArray[np.float64]
Self = TypeVar("Self", bound="Classifier")


class Classifier:
    """What all classifiers have. Options that are None are as the core has them."""

    _estimator_type = "classifier"
    _kind = ""

    def __init__(self, *, seed: int | None = None) -> None:
        self.seed = seed

    # -- scikit-learn's interface

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What it was made with, by name."""
        out = {}
        for name in self._parameter_names():
            value = getattr(self, name)
            out[name] = value
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                out.update({f"{name}__{key}": inner for key, inner in value.get_params().items()})
        return out

    def set_params(self: Self, **parameters: Any) -> Self:
        """Changes options; a name with __ is one of a part of it."""
        known = self._parameter_names()
        for name, value in parameters.items():
            first, _, rest = name.partition("__")
            if first not in known:
                raise ArgumentError(f"set_params: '{first}' is no option of {type(self).__name__}; "
                                    f"candidates are {', '.join(known)}")
            if rest:
                getattr(self, first).set_params(**{rest: value})
            else:
                setattr(self, first, value)
        return self

    def _settings(self) -> Mapping[str, Any]:
        out = {name: value for name, value in self.get_params(deep=False).items()
               if name != "seed" and value is not None}
        return {"kind": self._kind, **out}

    def _make(self) -> _core.Classifier:
        """Unfitted. @raise ArgumentError that names the option which does not fit."""
        return _core.Classifier(self._settings())

    def fit(self: Self, X: npt.ArrayLike, y: npt.ArrayLike,
            sample_weight: npt.ArrayLike | None = None) -> Self:
        """Learns to tell the two classes of y. Both are given the same total weight, whatever their
        numbers."""
        features = _as_features(X)
        labels, self.classes_ = _as_labels(y)
        made = self._make()
        seed = None if self.seed is None else check_count("fit", "seed", self.seed)
        if len(labels) != len(features):
            raise ArgumentError(f"fit: y has {len(labels)} values, but must have {len(features)} "
                                "(one for each row of X)")
        if sample_weight is not None:
            if not hasattr(sample_weight, "dtype"):
                sample_weight = as_vector(_at_least_one(sample_weight, len(labels)), "fit",
                                          "sample_weight")
        try:
            made.fit(features, labels, sample_weight, seed)
        except ArgumentError as error:
            raise ArgumentError(_as_scikit_learn_says(str(error))) from None
        self._core = made
        self.n_features_in_ = made.features
        return self

    def decision_function(self, X: npt.ArrayLike) -> Floats:
        """The logit z of each row; large z speaks for the second class."""
        fitted = self._fitted("decision_function")
        features = _as_features(X)
        if len(getattr(features, "shape", ())) == 2 and features.shape[1] != fitted.features:
            raise ArgumentError(f"decision_function: a row of X has {features.shape[1]} values, but must "
                                f"have {fitted.features}: X has {features.shape[1]} features, but "
                                f"{type(self).__name__} is expecting {fitted.features} features as "
                                "input")
        try:
            return fitted.logits(features)
        except ArgumentError as error:
            raise ArgumentError(_as_scikit_learn_says(str(error))) from None

    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """P(class | x) for classes of equal weight: rows × 2."""
        z = self.decision_function(X)
        s = np.where(z >= 0, 1.0 / (1.0 + np.exp(-np.abs(z))), 0.0)
        s = np.where(z < 0, np.exp(-np.abs(z)) / (1.0 + np.exp(-np.abs(z))), s)
        return np.column_stack([1.0 - s, s])

    def predict_log_proba(self, X: npt.ArrayLike) -> Floats:
        z = self.decision_function(X)
        return np.column_stack([-np.logaddexp(0.0, z), -np.logaddexp(0.0, -z)])

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        z = self.decision_function(X)
        return self.classes_[(z > 0).astype(np.intp)]

    def score(self, X: npt.ArrayLike, y: npt.ArrayLike,
              sample_weight: npt.ArrayLike | None = None) -> float:
        """The share of rows that are told right."""
        right = np.asarray(self.predict(X) == np.asarray(y), dtype=np.float64)
        return float(np.average(right, weights=sample_weight))

    # -- ours

    def log_ratios(self, X: npt.ArrayLike) -> Floats:
        """−z, what the classifier says about log r, not calibrated."""
        return -self.decision_function(X)

    def gradient(self, X: npt.ArrayLike) -> Floats:
        """∂z/∂x, rows × features, of kinds that are differentiable."""
        return self._fitted("gradient").gradient(_as_features(X))

    def _fitted(self, function: str) -> _core.Classifier:
        core: _core.Classifier | None = getattr(self, "_core", None)
        if core is None:
            message = (f"{function}: the {type(self).__name__} is not fitted, but must be fitted "
                       "before")
            raise _not_fitted()(message)
        return core

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted classifier to a file, which `neyman.load_classifier` reads."""
        write_bytes("save", path, self._fitted("save")._dump())

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if state.pop("_core", None) is not None:
            state["_core_file"] = self._core._dump()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        content = state.pop("_core_file", None)
        self.__dict__.update(state)
        if content is not None:
            self._core = _core.Classifier._load(content)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_core")

    def _more_tags(self) -> dict[str, Any]:
        return {"binary_only": True, "requires_fit": True, "requires_y": True,
                "non_deterministic": False, "_xfail_checks": EXCEPTIONS}

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import (ClassifierTags, InputTags, Tags,  # type: ignore[import]
                                   TargetTags)

        return Tags(estimator_type="classifier", target_tags=TargetTags(required=True),
                    classifier_tags=ClassifierTags(multi_class=False), input_tags=InputTags())

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in
                           self.get_params(deep=False).items() if value is not None)
        return f"{type(self).__name__}({inside})"


#: The checks of scikit-learn (check_estimator) that do not apply, with the reason.
EXCEPTIONS: dict[str, str] = {
    "check_dtype_object": "what is no number is refused with ArgumentError, a ValueError and not a "
                          "TypeError",
    "check_sample_weights_invariance": "networks compute in float32, and forests draw by the number "
                                       "of the row: weight zero and a missing row agree up to that",
    "check_sample_weight_equivalence_on_dense_data": "as check_sample_weights_invariance, which it "
                                                     "replaces",
    "check_sample_weight_equivalence_on_sparse_data": "sparse arrays are refused",
}


def _not_fitted() -> type[Exception]:
    """scikit-learn's NotFittedError where it is in use, which our own is then a kind of."""
    base = getattr(sys.modules.get("sklearn.exceptions"), "NotFittedError", None)
    if base is None:
        return ArgumentError
    return type("NotFittedError", (ArgumentError, base), {"__module__": "neyman"})


def _as_features(X: Any) -> Any:
    if hasattr(X, "tocsr"):
        raise ArgumentError("X is sparse, but must be an array: sparse data is not supported; call "
                            "X.toarray() where it fits into memory")
    if not hasattr(X, "shape") and not hasattr(X, "columns"):
        try:
            X = np.asarray(X)
        except (TypeError, ValueError):
            raise ArgumentError(f"X is {shown(X)}, but must be rows × columns of numbers") from None
    dtype = getattr(X, "dtype", None)
    if getattr(dtype, "kind", "") == "c":
        raise ArgumentError("X is complex, but must be real: Complex data not supported")
    if getattr(dtype, "names", None) is None:
        if len(X.shape) != 2:
            raise ArgumentError(f"X has shape {X.shape}, but must be rows × columns: Expected 2D "
                                "array. Reshape your data with X.reshape(-1, 1) where it has one "
                                "feature")
        if X.shape[1] == 0:
            raise ArgumentError(f"X has 0 feature(s) (shape={X.shape}) while a minimum of 1 is "
                                "required.")
    return X


def _at_least_one(weights: Any, count: int) -> Any:
    """A number is the weight of every row."""
    return np.full(count, weights) if isinstance(weights, (int, float)) else weights


def _as_scikit_learn_says(message: str) -> str:
    """With the words by which scikit-learn's tools know an error."""
    if "must be finite" in message:
        return message + ": X contains NaN or infinity (inf)"
    if "both sides need events" in message:
        return message + " of a weight that is not zero, or y has one class alone"
    return message


def _as_labels(y: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
    if y is None:
        raise ArgumentError("fit: a classifier requires y to be passed, but the target y is None")
    try:
        y = np.asarray(y)
    except (TypeError, ValueError):
        raise ArgumentError(f"fit: y is {shown(y)}, but must hold labels") from None
    if y.ndim == 2 and y.shape[1] == 1:
        warnings.warn("A column-vector y was passed when a 1d array was expected",
                      category=_conversion_warning(), stacklevel=3)
        y = y[:, 0]
    if y.ndim != 1:
        raise ArgumentError(f"fit: y has shape {y.shape}, but must have one dimension")
    if y.dtype.kind in "fc" and not np.all(np.isfinite(y)):
        raise ArgumentError("fit: y contains NaN or infinity, but must hold two labels")
    if y.dtype.kind == "f" and not np.array_equal(y, np.floor(y)):
        raise ArgumentError("fit: y holds fractions, but must hold labels: Unknown label type: "
                            "continuous")
    try:
        classes, indices = np.unique(y, return_inverse=True)
    except TypeError:
        raise ArgumentError("fit: y holds objects of several types, but must hold labels") from None
    if len(classes) != 2:
        raise ArgumentError(f"fit: y has {len(classes)} class{'es' * (len(classes) != 1)}, but "
                            "must have two: Only binary classification is supported. The type of "
                            "the target is multiclass.")
    return indices.astype(np.int64).reshape(-1), classes


def _conversion_warning() -> type[Warning]:
    found: type[Warning] = getattr(sys.modules.get("sklearn.exceptions"), "DataConversionWarning",
                                   UserWarning)
    return found


class Mlp(Classifier):
    """A small fully connected network: a₀ = (x − mean)/sd, aₗ = φ(Wₗ aₗ₋₁ + bₗ), z = w·a_L + b,
    trained with Adam on the cross-entropy.

    >>> import neyman, numpy
    >>> X = numpy.concatenate([neyman.Normal(-1, 1).sample(5000), neyman.Normal(1, 1).sample(5000)])
    >>> y = numpy.repeat([0, 1], 5000)
    >>> mlp = neyman.Mlp(hidden=[8], epochs=5, seed=1).fit(X, y)
    >>> mlp.predict([[-2.0], [2.0]])
    array([0, 1])
    >>> mlp.score(X, y) > 0.8
    True
    """

    _kind = "mlp"

    def __init__(self, *, hidden: Sequence[int] | None = None, activation: str | None = None,
                 loss: str | None = None, batch_size: int | None = None,
                 epochs: int | None = None, learning_rate: float | None = None,
                 schedule: str | None = None, warm_up: float | None = None,
                 final_rate: float | None = None, decay: float | None = None,
                 decay_epochs: int | None = None, beta1: float | None = None,
                 beta2: float | None = None, weight_decay: float | None = None,
                 l2: float | None = None, held_out: float | None = None,
                 patience: int | None = None, seed: int | None = None) -> None:
        self.hidden, self.activation, self.loss = hidden, activation, loss
        self.batch_size, self.epochs, self.learning_rate = batch_size, epochs, learning_rate
        self.schedule, self.warm_up, self.final_rate = schedule, warm_up, final_rate
        self.decay, self.decay_epochs = decay, decay_epochs
        self.beta1, self.beta2, self.weight_decay, self.l2 = beta1, beta2, weight_decay, l2
        self.held_out, self.patience, self.seed = held_out, patience, seed


class Logistic(Classifier):
    """z = α + β·x by maximum likelihood with a penalty l2 on β.

    >>> import neyman
    >>> neyman.Logistic(l2=1e-3).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).predict([[0.5]])
    array([0])
    """

    _kind = "logistic"

    def __init__(self, *, l2: float | None = None, max_iterations: int | None = None,
                 seed: int | None = None) -> None:
        self.l2, self.max_iterations, self.seed = l2, max_iterations, seed


class BoostedTrees(Classifier):
    """z = Σ_t f_t(x), trees grown one after the other on the gradient of the cross-entropy
    (XGBoost), until rows that are held out say stop.

    >>> import neyman
    >>> trees = neyman.BoostedTrees(rounds=10, min_leaf=1, patience=0)
    >>> trees.fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]).predict([[0.0], [3.0]])
    array(['a', 'b'], dtype='<U1')
    """

    _kind = "boosted-trees"

    def __init__(self, *, rounds: int | None = None, learning_rate: float | None = None,
                 depth: int | None = None, min_leaf: float | None = None, l2: float | None = None,
                 subsample: float | None = None, features: float | None = None,
                 bins: int | None = None, patience: int | None = None,
                 held_out: float | None = None, seed: int | None = None) -> None:
        self.rounds, self.learning_rate, self.depth = rounds, learning_rate, depth
        self.min_leaf, self.l2, self.subsample, self.features = min_leaf, l2, subsample, features
        self.bins, self.patience, self.held_out, self.seed = bins, patience, held_out, seed


class RandomForest(Classifier):
    """The mean over trees that are each grown on other rows and features (XGBoost).

    >>> import neyman
    >>> forest = neyman.RandomForest(trees=20, min_leaf=1, seed=3)
    >>> forest.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).predict([[0.0], [3.0]])
    array([0, 1])
    """

    _kind = "random-forest"

    def __init__(self, *, trees: int | None = None, depth: int | None = None,
                 min_leaf: float | None = None, shrink: float | None = None,
                 features: float | None = None, bootstrap: bool | None = None,
                 bins: int | None = None, seed: int | None = None) -> None:
        self.trees, self.depth, self.min_leaf, self.shrink = trees, depth, min_leaf, shrink
        self.features, self.bootstrap, self.bins, self.seed = features, bootstrap, bins, seed


class Ensemble(Classifier):
    """z(x) = (1/K) Σ_k z_k(x): K classifiers, each with a seed of its own.

    `of`: what the members are: a classifier, ours or of another library, a kind, or a list of them.

    >>> import neyman
    >>> neyman.Ensemble(members=2, of=neyman.Logistic()).fit([[0.0], [1.0]], [0, 1]).predict([[0.0]])
    array([0])
    """

    _kind = "ensemble"

    def __init__(self, *, members: int | None = None, bootstrap: bool | None = None,
                 of: Any = None, seed: int | None = None) -> None:
        self.members, self.bootstrap, self.of, self.seed = members, bootstrap, of, seed

    def _settings(self) -> Mapping[str, Any]:
        def member(value: Any) -> Any:
            return value if isinstance(value, (str, Mapping)) else classifier(value)

        out = dict(super()._settings())
        if isinstance(self.of, (list, tuple)):
            out["of"] = [member(value) for value in self.of]
        elif self.of is not None:
            out["of"] = member(self.of)
        return out


_all: tuple[type[Classifier], ...] = (BoostedTrees, Ensemble, Logistic, Mlp, RandomForest)
_classes = {kind._kind: kind for kind in _all}


class _Other(Classifier):
    """A kind that has no class of its own here: its options are those of a study."""

    def __init__(self, kind: str, seed: int | None = None, **options: Any) -> None:
        self.kind, self.seed, self._options = kind, seed, options

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"kind": self.kind, "seed": self.seed, **self._options}

    def _settings(self) -> Mapping[str, Any]:
        return {"kind": self.kind, **self._options}


def classifier(kind: Any, **options: Any) -> Classifier:
    """A classifier of a kind (see `classifier_kinds`), from a dict as a study has it, or one of
    another library (see `PythonClassifier`).

    >>> import neyman
    >>> neyman.classifier("mlp", hidden=[10])
    Mlp(hidden=[10])
    """
    if isinstance(kind, Classifier):
        return kind
    if not isinstance(kind, (str, Mapping)):
        from neyman.functions import PythonClassifier

        return PythonClassifier(kind)
    table = {**dict(kind), **options} if isinstance(kind, Mapping) else {"kind": kind, **options}
    name = str(table.pop("kind", ""))
    if name not in classifier_kinds():
        raise ArgumentError(f"classifier: kind is {name!r}, but must be one of "
                            + ", ".join(classifier_kinds()))
    if name not in _classes:
        return _Other(name, **table)
    try:
        return _classes[name](**table)
    except TypeError as error:
        raise ArgumentError(f"classifier: {error}") from None


def classifier_kinds() -> list[str]:
    """Every kind that a classifier may have."""
    return _core.classifier_kinds()


def load_classifier(path: str | os.PathLike[str]) -> Classifier:
    """Reads what `Classifier.save` wrote. Nothing in the file is executed. Labels are 0 and 1."""
    core = _core.Classifier._load(read_bytes("load_classifier", path))
    made = _classes[core.kind]() if core.kind in _classes else _Other(core.kind)
    made._core = core
    made.classes_ = np.array([0, 1])
    made.n_features_in_ = core.features
    return made


#: A kind, a dict as in a study, one of ours, or one of another library; None: the core's default.
ClassifierLike = Any


def as_core(value: ClassifierLike) -> _core.Classifier | None:
    return None if value is None else classifier(value)._make()
