"""Distributions of x given θ, and events simulated from them."""

from __future__ import annotations

import copy
import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Union

import numpy as np
import numpy.typing as npt

from neyman import _core
from neyman._arrays import as_table, as_vector
from neyman.core import (Parameters, ParametersLike, Theta, as_parameters, check_count, check_list,
                         check_number, check_numbers, check_text, check_texts, given, optional, shown)
from neyman.data import Samples
from neyman.errors import ArgumentError

__all__ = ["Design", "Distribution", "DistributionFit", "Empirical", "Exponential", "GAndK",
           "Histogram", "Join", "Kde", "LinearTransform", "Mixture", "MultivariateNormal", "Normal",
           "Ricker", "Uniform", "distribution", "distribution_kinds", "simulate"]

Floats = npt.NDArray[np.float64]
Events = Union[npt.ArrayLike, Samples]
#: A number, or a formula of the parameters such as "0.5 - gamma/2".
Expression = Union[float, str]


class DistributionFit(NamedTuple):
    """A maximum-likelihood fit of a distribution to events."""

    theta: dict[str, float]  #: θ̂
    log_likelihood: float  #: Σ wᵢ log p(xᵢ|θ̂)
    converged: bool
    evaluations: int
    at_limit: list[str]  #: parameters that stand at an end of their range


class Distribution:
    """A distribution of x given θ: `sample`, and where its density is known `log_density` and `fit`,
    in one dimension `cdf` and `quantile`.

    Made by name with the keys of a study, or by the class of its kind. Wherever a number is asked
    for, a text is a formula of the parameters.

    >>> import neyman
    >>> p = neyman.distribution("normal", mean="mu", sigma=2, parameters={"mu": (-5, 5)})
    >>> x = p.sample(1000, {"mu": 1}, seed=7)
    >>> x.shape
    (1000, 1)
    >>> p.log_density([1.0], 1.0)    # −log(σ √2π)
    array([-1.61208571])
    >>> "normal" in neyman.distribution_kinds()
    True
    """

    _kind = ""
    _names: tuple[str, ...] = ()  # of positional arguments

    def __init__(self, *arguments: Any, parameters: ParametersLike = None, folder: str = ".",
                 **settings: Any) -> None:
        if len(arguments) > len(self._names):
            raise TypeError(f"{type(self).__name__} takes at most {len(self._names)} positional "
                            f"arguments ({len(arguments)} given)")
        self._given: dict[str, Any] = {"kind": self._kind, **dict(zip(self._names, arguments)), **settings}
        self._folder = check_text(type(self).__name__, "folder", folder)
        self._made: _core.Simulator | None = None
        self._parameters: Parameters | None = None
        if parameters is not None:
            self._parameters = as_parameters(parameters)
        if parameters is not None or not _has_formula(self._given):
            self._simulator()

    def _settings(self) -> Mapping[str, Any]:
        """As a part of a larger dict."""
        return self._given

    def _simulator(self) -> _core.Simulator:
        """Made when it is first needed: a part of a mixture need not know the parameters."""
        if self._made is None:
            parameters = self._parameters or Parameters()
            self._made = _core.Simulator(self._given, parameters._core, self._folder)
        return self._made

    @property
    def kind(self) -> str:
        return str(self._given["kind"])

    @property
    def parameters(self) -> Parameters:
        return self._parameters or Parameters()

    @property
    def dimension(self) -> int:
        return self._simulator().dimension

    @property
    def feature_names(self) -> list[str]:
        """Where the simulator names its features; else empty."""
        return self._simulator().feature_names

    @property
    def has_density(self) -> bool:
        return self._simulator().has_density

    @property
    def has_cdf(self) -> bool:
        return self._simulator().has_cdf

    def with_parameters(self, parameters: ParametersLike) -> Distribution:
        """The same with other parameters, which its formulas name."""
        made = Distribution.__new__(type(self))
        Distribution.__init__(made, parameters=as_parameters(parameters), folder=self._folder,
                              **self._given)
        return made

    def sample(self, n: int, theta: Theta = None, *, seed: int = 0,
               purpose: str = "sample") -> Floats:
        """n independent events at θ, n × dimension: the same bits for the same seed and purpose,
        whatever the number of threads."""
        return self._simulator().sample(check_count("sample", "n", n), theta,
                                        check_count("sample", "seed", seed), purpose)

    def log_density(self, x: npt.ArrayLike, theta: Theta = None) -> Floats:
        """log p(x|θ) of each row; −infinity outside the support."""
        return self._simulator().log_density(x, theta)

    def cdf(self, x: npt.ArrayLike, theta: Theta = None) -> Floats:
        """P(X ≤ x), of distributions in one dimension."""
        return self._simulator().cdf([x] if isinstance(x, (int, float)) else x, theta)

    def quantile(self, probability: npt.ArrayLike, theta: Theta = None) -> Floats:
        """The smallest x with cdf(x) ≥ probability, of distributions in one dimension."""
        return self._simulator().quantile(
            [probability] if isinstance(probability, (int, float)) else probability, theta)

    def fit(self, x: npt.ArrayLike, *, weights: npt.ArrayLike | None = None, start: Theta = None,
            fixed: Sequence[str] = ()) -> DistributionFit:
        """θ̂ = argmax Σ wᵢ log p(xᵢ|θ) within the ranges; those that are `fixed` stay at `start`.

        >>> import neyman
        >>> p = neyman.Normal("mu", "sigma", parameters={"mu": (-5, 5), "sigma": (0.1, 5)})
        >>> found = p.fit([0.0, 2.0])
        >>> {name: round(value, 3) for name, value in found.theta.items()}
        {'mu': 1.0, 'sigma': 1.0}
        """
        names = self.parameters.names
        found = self._simulator().fit(x, weights, start, check_texts("fit", "fixed", fixed))
        return DistributionFit(
            dict(zip(names, map(float, found["point"]))), found["log_likelihood"],
            found["converged"], found["evaluations"],
            [name for name, at_limit in zip(names, found["at_limit"]) if at_limit])

    def to_dict(self) -> dict[str, Any]:
        """As in a study file."""
        return _core._roundtrip(self._given)

    def __reduce__(self) -> Any:
        return _restore, (self._given, self._parameters, self._folder)

    def __repr__(self) -> str:
        inside = ", ".join(f"{key}={value!r}" for key, value in self._given.items()
                           if key != "kind" and value is not None)
        return f"{type(self).__name__}({inside})"


def _has_formula(value: Any) -> bool:
    """Whether a text stands somewhere that may name a parameter."""
    if isinstance(value, Distribution):
        value = value._given
    if isinstance(value, Mapping):
        written_in_python = isinstance(value.get("object"), Distribution)
        if written_in_python:
            return len(value["object"].parameters) > 0
        return any(_has_formula(entry) for key, entry in value.items()
                   if key not in ("kind", "name", "names"))
    if isinstance(value, (list, tuple)):
        return any(_has_formula(entry) for entry in value)
    return isinstance(value, str)


def _restore(settings: Mapping[str, Any], parameters: Parameters | None,
             folder: str) -> Distribution:
    return _make(settings, parameters, folder)


def _make(settings: Mapping[str, Any], parameters: ParametersLike, folder: str) -> Distribution:
    kind = settings.get("kind")
    made = Distribution.__new__(_classes.get(str(kind), Distribution))
    Distribution.__init__(made, parameters=parameters, folder=folder, **settings)
    return made


def distribution(kind: str | Mapping[str, Any], *, parameters: ParametersLike = None,
                 folder: str = ".", **settings: Any) -> Distribution:
    """A distribution of a kind (see `distribution_kinds`), or from a dict as a study has it.

    >>> import neyman
    >>> neyman.distribution({"kind": "exponential", "rate": 2}).quantile(0.5)   # log 2 / λ
    array([0.34657359])
    """
    table = dict(kind) if isinstance(kind, Mapping) else {
        "kind": check_text("distribution", "kind", kind)}
    for key in table:
        check_text("distribution", "a key of kind", key)
    return _make({**table, **settings}, parameters, folder)


def distribution_kinds() -> list[str]:
    """Every kind that a distribution may have."""
    return _core.distribution_kinds()


class Normal(Distribution):
    """p(x) = exp(−(x − μ)² / 2σ²) / (σ √2π).

    >>> import neyman
    >>> neyman.Normal(0, 1).cdf([0.0, 1.0])
    array([0.5       , 0.84134475])
    """

    _kind = "normal"
    _names = ("mean", "sigma")


class MultivariateNormal(Distribution):
    """p(x) = exp(−½ (x − μ)ᵀ Σ⁻¹ (x − μ)) / √((2π)^d det Σ).

    >>> import neyman
    >>> p = neyman.MultivariateNormal([0, 0], [[1, 0.5], [0.5, 1]])
    >>> p.log_density([[0, 0]])
    array([-1.69403603])
    """

    _kind = "multivariate-normal"
    _names = ("mean", "covariance")


class Exponential(Distribution):
    """p(x) = λ exp(−λ (x − x₀)) for x ≥ x₀, with rate λ and location x₀.

    >>> import neyman
    >>> neyman.Exponential(2).log_density([0.0, 1.0])
    array([ 0.69314718, -1.30685282])
    """

    _kind = "exponential"
    _names = ("rate", "location")


class Uniform(Distribution):
    """p(x) = 1 / (b − a) for a ≤ x ≤ b.

    >>> import neyman
    >>> neyman.Uniform(0, 4).quantile([0.25])
    array([1.])
    """

    _kind = "uniform"
    _names = ("low", "high")


class Mixture(Distribution):
    """p(x|θ) = Σ wᵢ(θ) pᵢ(x|θ), with wᵢ ≥ 0 and Σ wᵢ = 1; with one weight fewer than components the
    last is what the others leave.

    >>> import neyman
    >>> p = neyman.Mixture([neyman.Normal(0, 1), neyman.Normal(3, 1)], ["1 - gamma"],
    ...                    parameters={"gamma": (0, 1)})
    >>> p.cdf([0.0], {"gamma": 0})
    array([0.5])
    """

    _kind = "mixture"
    _names = ("components", "weights")

    def __init__(self, components: Sequence[Distribution | Mapping[str, Any]] = (),
                 weights: Sequence[Expression] = (), *, names: Sequence[str] | None = None,
                 parameters: ParametersLike = None, folder: str = ".") -> None:
        parts = []
        for i, part in enumerate(check_list("Mixture", "components", components)):
            if not isinstance(part, (Distribution, Mapping)):
                raise ArgumentError(f"Mixture: components[{i}] is {shown(part)}, but must be a "
                                    "distribution")
            parts.append(dict(part._settings() if isinstance(part, Distribution) else part))
        if names is not None:
            if len(names) != len(parts):
                raise ArgumentError(f"Mixture: names has {len(names)} values, but must have "
                                    f"{len(parts)} (one for each component)")
            for part, name in zip(parts, names):
                part["name"] = name
        super().__init__(parameters=parameters, folder=folder, components=parts,
                         weights=check_list("Mixture", "weights", weights))


class Join(Distribution):
    """Independent distributions side by side: p(x) = Π pᵢ(xᵢ).

    >>> import neyman
    >>> neyman.Join([neyman.Normal(0, 1), neyman.Uniform(0, 1)]).dimension
    2
    """

    _kind = "join"
    _names = ("parts",)


class LinearTransform(Distribution):
    """x = A z + b with z from another distribution; log p(x) = log p_z(A⁻¹ (x − b)) − log |det A|.

    >>> import neyman
    >>> p = neyman.LinearTransform(neyman.Normal(0, 1), [[2.0]], [1.0])
    >>> p.log_density([1.0])
    array([-1.61208571])
    """

    _kind = "linear-transform"
    _names = ("of", "matrix", "offset")


class GAndK(Distribution):
    """The g-and-k distribution: x = A + B (1 + c tanh(g z / 2)) (1 + z²)^k z with z ~ N(0, 1).

    >>> import neyman
    >>> neyman.GAndK(3, 1, 2, 0.5).quantile(0.5)
    array([3.])
    """

    _kind = "g-and-k"
    _names = ("A", "B", "g", "k", "c")


class Ricker(Distribution):
    """The Ricker model of a population, N_{t+1} = r N_t exp(−N_t + e_t), seen through counts
    y_t ~ Poisson(φ N_t); e_t ~ N(0, σ_e²). Its density is not known.

    >>> import neyman
    >>> neyman.Ricker(3.8, 10, 0.3, observations=50).sample(2).shape
    (2, 50)
    """

    _kind = "ricker"
    _names = ("log_r", "phi", "sigma_e")


class _OfEvents(Distribution):
    """A distribution that is made of events in memory; those of a file are made by `distribution`."""

    def _keep(self, made: _core.Simulator, events: Any, options: dict[str, Any]) -> None:
        self._made = made
        self._parameters = None
        self._folder = "."
        table = as_table(events, type(self).__name__, "events", ())
        self._arguments = (np.array(table), {
            name: value if value is None or isinstance(value, str) else np.array(value)
            for name, value in options.items()})
        self._given = {"kind": self._kind, "object": self, "fingerprint": _digest(self._arguments)}

    @property
    def _core_object(self) -> _core.Simulator:
        """What stands for it in a study, or in a mixture."""
        return self._simulator()

    def with_parameters(self, parameters: ParametersLike) -> Distribution:
        made = copy.copy(self)
        made._parameters = as_parameters(parameters)
        made._made = _core.Simulator(self._given, made._parameters._core, self._folder)
        return made

    def to_dict(self) -> dict[str, Any]:
        raise ArgumentError(f"to_dict: the {self._kind} is made of events in memory, but must be made "
                            "of those of a file")

    def __reduce__(self) -> Any:
        return _restore_of_events, (type(self), *self._arguments)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._arguments[0])} events)"


def _digest(arguments: tuple[Any, Mapping[str, Any]]) -> str:
    """Another text where the events or the options are others."""
    events, options = arguments
    out = hashlib.sha256(repr((events.dtype, events.shape)).encode() + events.tobytes())
    for name, value in options.items():
        out.update(name.encode() + (value.encode() if isinstance(value, str)
                                    else b"" if value is None else np.array(value).tobytes()))
    return out.hexdigest()[:16]


def _restore_of_events(kind: Any, events: Any, options: Mapping[str, Any]) -> Distribution:
    made: Distribution = kind(events, **options)
    return made


class Empirical(_OfEvents):
    """Draws rows of given events, with replacement, each with a probability in proportion to its
    weight. It has no density; in one dimension its cdf is the weighted step function.

    >>> import neyman
    >>> p = neyman.Empirical([1.0, 2.0, 4.0], weights=[1, 1, 2])
    >>> p.cdf([2.0])
    array([0.5])
    """

    _kind = "empirical"

    def __init__(self, events: Events, *, weights: npt.ArrayLike | None = None) -> None:
        x, w = events_of(events, weights)
        self._keep(_core.empirical(x, w), x, {"weights": w})


class Kde(_OfEvents):
    """p(x) = Σᵢ wᵢ Πⱼ φ((xⱼ − xᵢⱼ) / hⱼ) / hⱼ over given events, with Gaussian kernels.

    `bandwidth`: "scott" or "silverman", a number, or one for each column.

    >>> import neyman
    >>> p = neyman.Kde([0.0], bandwidth=1.0)
    >>> p.log_density([0.0])        # −log √2π
    array([-0.91893853])
    """

    _kind = "kde"

    def __init__(self, events: Events, *, weights: npt.ArrayLike | None = None,
                 bandwidth: str | npt.ArrayLike | None = None) -> None:
        widths = (bandwidth if bandwidth is None or isinstance(bandwidth, str)
                  else _flat("Kde", "bandwidth", bandwidth))
        x, w = events_of(events, weights)
        self._keep(_core.kde(x, w, widths), x, {"weights": w, "bandwidth": widths})


class Histogram(Distribution):
    """A piecewise constant density: counts / (total · volume of the bin) between the edges, a list, or
    a list for each axis; counts are in the order of the last axis first, or an array of all axes.
    `Histogram.fill` counts events.

    >>> import neyman
    >>> neyman.Histogram([0, 1, 3], [1, 1]).log_density([0.5, 2.0])      # log ½, log ¼
    array([-0.69314718, -1.38629436])
    >>> neyman.Histogram.fill([0.1, 0.2, 0.7, 5.0], edges=[0, 0.5, 1]).counts
    array([2., 1.])
    """

    _kind = "histogram"
    _names = ("edges", "counts")
    outside = 0.0  #: the weight of events that `fill` found outside of the edges

    def __init__(self, edges: Any, counts: npt.ArrayLike) -> None:
        axes = _axes("Histogram", edges)
        values = as_vector(_flat("Histogram", "counts", counts), "Histogram", "counts")
        super().__init__(axes if len(axes) > 1 else axes[0], values.tolist())

    @classmethod
    def fill(cls, events: Events, *, weights: npt.ArrayLike | None = None, edges: Any = None,
             bins: int | None = None, binning: str | None = None,
             false_alarm: float | None = None) -> Histogram:
        """Filled from events, with given edges or with those that `binning` finds: "uniform",
        "equal-probability", "bayesian-blocks"."""
        options = given(bins=optional(check_count, "Histogram.fill", "bins", bins),
                        binning=optional(check_text, "Histogram.fill", "binning", binning),
                        false_alarm=optional(check_number, "Histogram.fill", "false_alarm",
                                             false_alarm))
        if edges is not None and options:
            raise ArgumentError(f"Histogram.fill: {', '.join(options)} is given together with edges, "
                                "but must be without")
        found, counts, outside = _core.fill_histogram(
            *events_of(events, weights),
            None if edges is None else _axes("Histogram.fill", edges), options)
        made = cls(found, counts)
        made.outside = outside
        return made

    @property
    def edges(self) -> list[Floats]:
        """Of each axis."""
        return [np.array(axis) for axis in _axes("edges", self._given["edges"])]

    @property
    def counts(self) -> Floats:
        """Of all axes."""
        return np.reshape(np.array(self._given["counts"], dtype=np.float64),
                          [len(axis) - 1 for axis in self.edges])


    def __reduce__(self) -> Any:
        return _restore_histogram, (self.edges, self.counts, self.outside, self._parameters)


def _restore_histogram(edges: Any, counts: Any, outside: float,
                       parameters: Parameters | None) -> Distribution:
    made = Histogram(edges, counts)
    made.outside = outside
    return made if parameters is None else made.with_parameters(parameters)


def events_of(events: Events, weights: Any) -> tuple[Any, Any]:
    """x and weights; given ones before those of Samples."""
    if not isinstance(events, Samples):
        return events, weights
    return events.x, events.weights if weights is None else weights


def _flat(function: str, name: str, value: Any) -> npt.NDArray[Any]:
    """A number or an array of any shape in one dimension."""
    try:
        return np.ravel(np.asarray(value))
    except (TypeError, ValueError):
        raise ArgumentError(f"{function}: {name} is {shown(value)}, but must be numbers") from None


def _axes(function: str, edges: Any) -> list[list[float]]:
    """One list of edges for each axis."""
    entries = check_list(function, "edges", edges)
    nested = bool(entries) and isinstance(entries[0], (list, tuple, np.ndarray))
    axes = [check_list(function, f"edges[{i}]", axis) for i, axis in enumerate(entries)] if nested else [
        entries]
    return [check_numbers(function, "edges", axis) for axis in axes]


_all: tuple[type[Distribution], ...] = (Normal, MultivariateNormal, Exponential, Uniform, Mixture,
                                        Join, LinearTransform, GAndK, Ricker)
_classes = {kind._kind: kind for kind in _all}


class Design:
    """Where the θ of training events come from: "uniform", "sobol", "latin-hypercube", a dict with a
    kind and its keys, as in a study, rows of θ, or a function `draw(n, rng)` that returns n of them.

    Ranges may be open: (0, inf), or None for (-inf, inf). They end where the design has θ: four
    sigma from the mean of a normal, a little beyond the smallest and the largest of a table or of
    what a function draws. `parameters` has the ends.

    >>> import neyman
    >>> design = neyman.Design({"kind": "grid", "points": [3]}, {"alpha": (0, 1)})
    >>> sorted(set(design.draw(30)[:, 0].tolist()))
    [0.0, 0.5, 1.0]
    >>> prior = {"kind": "normal", "mean": [0, 1], "covariance": [[4, 1], [1, 1]]}
    >>> neyman.Design(prior, {"a": None, "b": (0, float("inf"))}).parameters
    Parameters(a=(-8.0, 8.0), b=(0.0, 5.0))
    >>> draws = neyman.Design(lambda n, rng: rng.exponential(size=(n, 1)), {"tau": (0, 10)})
    >>> bool(abs(draws.draw(1000).mean() - 1) < 0.2)
    True
    """

    def __init__(self, design: DesignSettings, parameters: ParametersLike, *,
                 folder: str = ".") -> None:
        self._given = design
        self._folder = check_text("Design", "folder", folder)
        settings = settings_of_design(design)
        if isinstance(parameters, Parameters):
            self.parameters = parameters
        else:
            entries = _open_entries(parameters)
            if _is_open(entries):
                self.parameters = Parameters._of(
                    _core.bounded_parameters(entries, settings, folder))
            else:
                self.parameters = as_parameters(parameters)
        self._core = _core.Design(settings, self.parameters._core, folder)

    @classmethod
    def of_events(cls, events: Samples, parameters: ParametersLike = None) -> Design:
        """The θ that events were simulated at. Without parameters, or with open ranges, these end a
        little beyond the smallest and the largest θ.

        >>> import neyman
        >>> events = neyman.Samples([[0.1], [2.3]], theta=[[0.0], [2.0]], parameter_names=["mu"])
        >>> neyman.Design.of_events(events).parameters
        Parameters(mu=(0.0, 2.1))
        """
        if not isinstance(events, Samples) or events.theta is None:
            raise ArgumentError(f"Design.of_events: events is {shown(events)}, but must be Samples "
                                "with theta")
        given = ({name: None for name in events.parameter_names} if parameters is None
                 else parameters)
        entries = _open_entries(given.to_dict() if isinstance(given, Parameters) else given)
        made = cls.__new__(cls)
        made._core = _core.design_of_events(events._core, entries)
        made.parameters = Parameters._of(made._core.parameters)
        made._given, made._folder = np.array(events.theta), "."
        return made

    def _settings(self) -> Any:
        """As a part of a study."""
        return settings_of_design(self._given)

    @property
    def kind(self) -> str:
        return self._core.kind

    def draw(self, n: int, *, seed: int = 0, purpose: str = "design") -> Floats:
        """n θ, one a row."""
        return self._core.draw(check_count("draw", "n", n), check_count("draw", "seed", seed),
                               purpose)

    def __reduce__(self) -> Any:
        return _restore_design, (self._given, self.parameters, self._folder)

    def __repr__(self) -> str:
        return f"Design({self._given!r}, {self.parameters!r})"


def _restore_design(design: Any, parameters: Parameters, folder: str) -> Design:
    return Design(design, parameters, folder=folder)


def settings_of_design(design: Any) -> Any:
    """As a study has it: rows and functions become tables."""
    if callable(design):
        _check_draws(design)
        return {"kind": "function", "object": _core.DesignFunction(_Draw(design)),
                "fingerprint": fingerprint_of(design)}
    if isinstance(design, (str, Mapping)):
        return design
    rows = as_table(design, "Design", "design", ())
    return {"kind": "table", "rows": rows.tolist()}


def _check_draws(function: Any) -> None:
    try:
        if isinstance(function, type):
            raise TypeError
        inspect.signature(function).bind(1, None)
    except TypeError:
        raise ArgumentError(f"Design: design is {shown(function)}, but must be a name, a mapping, rows "
                            "of θ, or a function of n and a random generator") from None
    except ValueError:
        pass  # what is compiled may not say


class _Draw:
    """A function that draws θ, as the core calls it."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, n: int, seed: int) -> Any:
        return self._function(n, np.random.default_rng(seed))


def fingerprint_of(function: Any, more: str = "") -> str:
    """Another one where the function is."""
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        code = getattr(function, "__code__", None)
        text = repr((code.co_code, code.co_consts, code.co_names)) if code else repr(type(function))
    name = getattr(function, "__qualname__", type(function).__name__)
    return hashlib.sha256(f"{name}\n{text}\n{more}".encode()).hexdigest()[:16]


def _open_entries(parameters: Any) -> list[dict[str, Any]]:
    if not isinstance(parameters, Mapping):
        as_parameters(parameters)
        return []
    return [Parameters._entry(name, value, open_ends=True) for name, value in parameters.items()]


def _is_open(entries: Sequence[Mapping[str, Any]]) -> bool:
    return not all(np.isfinite(entry[end]) for entry in entries for end in ("low", "high"))


#: A name or a table as in a study, rows of θ, or a function that draws them.
DesignSettings = Union[str, Mapping[str, Any], npt.ArrayLike, Callable[..., Any]]
DesignLike = Union[DesignSettings, Design]


def as_design(value: DesignLike, parameters: Any) -> Design:
    return value if isinstance(value, Design) else Design(value, parameters)


def core_simulator(function: str, value: Any) -> _core.Simulator:
    """What stands for a distribution in the core."""
    if isinstance(value, Distribution):
        return value._simulator()
    hint = ("; a function is one as neyman.PythonSimulator(function, parameters)" if callable(value) else
            "; of events with their θ, neyman.Samples(x, theta=…), neyman.SeparableRatio learns"
            if hasattr(value, "__array__") or isinstance(value, (Samples, list, tuple)) else "")
    raise ArgumentError(f"{function}: simulator is {shown(value)}, but must be a distribution{hint}")


def simulate(simulator: Distribution, n: int, *, design: DesignLike = "uniform", seed: int = 0,
             purpose: str = "simulate") -> Samples:
    """n events, each at its own θ from the design, with θ filled in.

    >>> import neyman
    >>> p = neyman.Normal("mu", 1, parameters={"mu": (-5, 5)})
    >>> neyman.simulate(p, 1000, design="sobol")
    Samples(1000 events, features: x, parameters: mu)
    """
    core = core_simulator("simulate", simulator)
    where = as_design(design, simulator.parameters)
    count, start = check_count("simulate", "n", n), check_count("simulate", "seed", seed)
    return Samples._of(_core.simulate(core, where._core, count, start,
                                      check_text("simulate", "purpose", purpose)))
