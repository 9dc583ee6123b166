"""Measurements with signal, background and systematic uncertainties: fits, limits, discovery.

A `Workspace` is what pyhf writes and reads. A `StatisticalModel` of it, with `UnbinnedChannel`s
where wanted, is the probability of data given parameters; the functions here fit and test it. They
take the data that were observed unless others are given (`model.asimov`, `model.sampled`,
`model.data`).
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from neyman import _core
from neyman._files import as_path, write_bytes
from neyman.core import (Parameters, Theta, check_count, check_flag, check_list, check_number,
                         check_numbers, check_parameter, check_text, check_texts, given, optional,
                         shown)
from neyman.errors import ArgumentError, FileError
from neyman.inference import Fit, Interval
from neyman.results import Shown

__all__ = ["ChannelHistogram", "Discovery", "ExpectedCounts", "Impact", "MeasurementData",
           "MeasurementSummary", "ModelLikelihood", "ProfileScan", "Pull", "SignalTest",
           "StatisticalModel", "TestStatistic", "ToyLimit", "ToySample", "ToyTest",
           "UnbinnedChannel", "UnbinnedEvents", "UnifiedInterval", "UpperLimit", "Workspace",
           "asymptotic_scan", "asymptotic_test", "channel_histograms", "discovery", "error_breakdown",
           "example", "feature_histogram", "feldman_cousins", "fit_model", "impacts", "profile_interval",
           "profile_scan", "pulls", "summarise", "test_statistic", "toy_statistics", "toy_test",
           "toy_upper_limit", "upper_limit"]

Floats = npt.NDArray[np.float64]
PathLike = Union[str, "os.PathLike[str]"]

#: The test statistics by their names in the literature (arXiv:1007.1727).
_STATISTICS = ("t", "t-tilde", "q0", "q", "q-tilde")


# ------------------------------------------------------------------------------------- the model

class Workspace:
    """A binned measurement as pyhf's JSON workspaces hold it: channels with samples and modifiers,
    observations, measurements.

    It is made of such a dict (or JSON text: `from_json`, or file: `from_file`), and becomes one
    again. Keys and kinds of modifiers are checked here, numbers where a model is made.

    >>> import neyman
    >>> workspace = neyman.Workspace({
    ...     "channels": [{"name": "region", "samples": [
    ...         {"name": "signal", "data": [8.0, 14.0],
    ...          "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]},
    ...         {"name": "background", "data": [60.0, 48.0],
    ...          "modifiers": [{"name": "size", "type": "normsys", "data": {"lo": 0.85, "hi": 1.2}}]}
    ...     ]}],
    ...     "observations": [{"name": "region", "data": [74, 77]}],
    ...     "measurements": [{"name": "search", "config": {"poi": "mu", "parameters": []}}],
    ...     "version": "1.0.0"})
    >>> workspace.channels, workspace.measurements
    (['region'], ['search'])
    >>> neyman.Workspace.from_json(workspace.to_json()) == workspace
    True
    """

    def __init__(self, spec: Mapping[str, Any]) -> None:
        if not isinstance(spec, Mapping):
            raise ArgumentError(f"Workspace: spec is {shown(spec)}, but must be a mapping as in a "
                                "workspace of pyhf")
        try:
            text = json.dumps(spec, default=_as_list)
        except (TypeError, ValueError, RecursionError) as problem:
            raise ArgumentError(f"Workspace: spec holds what JSON cannot ({problem}), but must be a "
                                "workspace of pyhf") from None
        self._core = _parsed("Workspace", text, "spec")

    @classmethod
    def _of(cls, core: _core.Workspace) -> Workspace:
        made = cls.__new__(cls)
        made._core = core
        return made

    @classmethod
    def from_file(cls, path: PathLike) -> Workspace:
        """Reads a JSON file. Errors name the place: "path: channels[0].samples[1].data …"."""
        return cls._of(_core.Workspace.read(as_path("from_file", path)))

    @classmethod
    def from_json(cls, text: str) -> Workspace:
        """The same from a text."""
        return cls._of(_parsed("from_json", check_text("from_json", "text", text), "text"))

    @classmethod
    def empty(cls, interest: str, *, measurement: str = "measurement",
              parameters: Sequence[Mapping[str, Any]] = ()) -> Workspace:
        """Without channels, for a model of channels without bins alone: the parameter of interest
        and settings of parameters as in pyhf (name, inits, bounds, auxdata, sigmas, fixed)."""
        return cls({"channels": [], "observations": [], "version": "1.0.0", "measurements": [
            {"name": check_text("empty", "measurement", measurement),
             "config": {"poi": check_text("empty", "interest", interest),
                        "parameters": check_list("empty", "parameters", parameters)}}]})

    def to_json(self) -> str:
        """As JSON that pyhf reads."""
        return self._core.json()

    def to_dict(self) -> dict[str, Any]:
        out: dict[str, Any] = json.loads(self._core.json())
        return out

    def save(self, path: PathLike) -> None:
        """Writes the JSON."""
        write_bytes("save", path, self._core.json().encode())

    @property
    def channels(self) -> list[str]:
        return [entry["name"] for entry in self.to_dict()["channels"]]

    @property
    def measurements(self) -> list[str]:
        return [entry["name"] for entry in self.to_dict()["measurements"]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Workspace) and self._core == other._core

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __reduce__(self) -> Any:
        return Workspace.from_json, (self.to_json(),)

    def __repr__(self) -> str:
        return (f"Workspace(channels: {', '.join(self.channels) or 'none'}; measurements: "
                f"{', '.join(self.measurements)})")


def _parsed(function: str, text: str, name: str) -> _core.Workspace:
    try:
        return _core.Workspace.parse(text, name)
    except FileError as problem:  # there is no file
        # The message is lost where it quotes a part of a character.
        words = str(problem) or f"{name} is no JSON, but must be a workspace of pyhf"
        raise ArgumentError(f"{function}: {words}") from None


def _as_list(value: Any) -> Any:
    """Arrays and NumPy's numbers in a workspace."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__}")


def _vector(function: str, name: str, value: Any) -> Floats:
    try:
        if np.iscomplexobj(value):
            raise TypeError
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{function}: {name} is {shown(value)}, but must be an array of "
                            "numbers") from None
    if array.ndim != 1:
        raise ArgumentError(f"{function}: {name} has the shape {array.shape}, but must have one "
                            "dimension")
    return array


class UnbinnedEvents:
    """What a model knows about the events x_i of a channel without bins.

    - `ratios`: by component, r_c(x_i) = p_c(x_i) / p_ref(x_i) at nominal parameters;
    - `variations`: by component and shape parameter, (log p_c(x|−1)/p_c(x|0), log p_c(x|+1)/p_c(x|0));
    - `weights`: one an event, by default 1.

    >>> import neyman
    >>> neyman.measurements.UnbinnedEvents({"signal": [1.2, 0.1], "background": [0.9, 1.1]})
    UnbinnedEvents(2 events of signal, background)
    """

    def __init__(self, ratios: Mapping[str, npt.ArrayLike], *,
                 variations: Mapping[str, Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]]]
                 | None = None, weights: npt.ArrayLike | None = None) -> None:
        function = "UnbinnedEvents"
        if not isinstance(ratios, Mapping) or not ratios:
            raise ArgumentError(f"{function}: ratios is {shown(ratios)}, but must be a mapping of "
                                "components to arrays")
        self.ratios = {check_text(function, "ratios", name):
                       _vector(function, f"ratios['{name}']", values)
                       for name, values in ratios.items()}
        self.variations: dict[str, dict[str, tuple[Floats, Floats]]] = {}
        if variations is not None and not isinstance(variations, Mapping):
            raise ArgumentError(f"{function}: variations is {shown(variations)}, but must be a "
                                "mapping of components to mappings")
        for component, shapes in (variations or {}).items():
            if component not in self.ratios or not isinstance(shapes, Mapping):
                raise ArgumentError(f"{function}: variations['{component}'] is {shown(shapes)}, but "
                                    "must be a mapping of shapes to (low, high), of a component")
            self.variations[component] = {}
            for shape, ends in shapes.items():
                place = f"variations['{component}']['{shape}']"
                if not isinstance(ends, (tuple, list, np.ndarray)) or len(ends) != 2:
                    raise ArgumentError(f"{function}: {place} is {shown(ends)}, but must be a pair "
                                        "(low, high)")
                self.variations[component][shape] = (_vector(function, place + "[0]", ends[0]),
                                                     _vector(function, place + "[1]", ends[1]))
        self.weights = None if weights is None else _vector(function, "weights", weights)
        size = len(self)
        for name, values in self._arrays():
            if len(values) != size:
                raise ArgumentError(f"{function}: {name} has {len(values)} values, but must have "
                                    f"{size}, one an event")

    def _arrays(self) -> Iterator[tuple[str, Floats]]:
        for name, values in self.ratios.items():
            yield f"ratios['{name}']", values
        for component, shapes in self.variations.items():
            for shape, ends in shapes.items():
                for values in ends:
                    yield f"variations['{component}']['{shape}']", values
        if self.weights is not None:
            yield "weights", self.weights

    def __len__(self) -> int:
        return len(next(iter(self.ratios.values())))

    def __repr__(self) -> str:
        return f"UnbinnedEvents({len(self)} events of {', '.join(self.ratios)})"


def _modifier(function: str, name: str, value: Any) -> dict[str, Any]:
    """One as in a workspace of pyhf, of the kinds that act on yields."""
    if not isinstance(value, Mapping) or value.get("type") not in ("normfactor", "normsys", "lumi"):
        raise ArgumentError(f"{function}: {name} is {shown(value)}, but must be a mapping with the "
                            "type normfactor, normsys or lumi")
    out: dict[str, Any] = {"type": value["type"],
                           "name": check_text(function, f"{name}['name']", value.get("name"))}
    if value["type"] == "normsys":
        data = value.get("data")
        if not isinstance(data, Mapping):
            raise ArgumentError(f"{function}: {name}['data'] is {shown(data)}, but must be a mapping "
                                "with lo and hi")
        for end in ("lo", "hi"):
            out[end] = check_number(function, f"{name}['data']['{end}']", data.get(end))
    return out


class UnbinnedChannel:
    """A channel of events, each with its likelihood: Σ_i log Σ_c ν_c(θ) r_c(x_i; θ) − Σ_c ν_c(θ).

    `components` is a mapping of names to tables with
    - `yield`: expected events at nominal parameters;
    - `modifiers`: as in pyhf, of the types normfactor, normsys and lumi;
    - `shapes`: names of parameters that move the shape, each with its variations in the events;
    - `coefficient`: a polynomial in parameters, [(1, {"mu": 1}), (−1, {"mu": 0.5})] for μ − √μ.

    `simulated` are events of the reference: they normalise ratios and shapes, make the Asimov data
    set, and toys are drawn from them.

    >>> import neyman, numpy
    >>> rng = numpy.random.default_rng(1)
    >>> def normal(x, mean, sigma):
    ...     return numpy.exp(-0.5 * ((x - mean) / sigma)**2) / sigma
    >>> def describe(x):
    ...     reference = normal(x, 0, 2)
    ...     return neyman.measurements.UnbinnedEvents({"signal": normal(x, 1, 0.4) / reference,
    ...                                                "background": normal(x, 0, 1.5) / reference})
    >>> x = numpy.concatenate([rng.normal(1, 0.4, 40), rng.normal(0, 1.5, 300)])
    >>> channel = neyman.UnbinnedChannel("events", {
    ...     "signal": {"yield": 40, "modifiers": [{"name": "mu", "type": "normfactor"}]},
    ...     "background": {"yield": 300, "modifiers": [
    ...         {"name": "size", "type": "normsys", "data": {"lo": 0.9, "hi": 1.1}}]},
    ... }, describe(x), simulated=describe(rng.normal(0, 2, 5000)))
    >>> model = neyman.StatisticalModel(neyman.Workspace.empty("mu"), [channel])
    >>> fit = neyman.measurements.fit_model(model)
    >>> bool(abs(fit.theta["mu"] - 1) < 3 * fit.error["mu"])
    True
    """

    def __init__(self, name: str, components: Mapping[str, Mapping[str, Any]],
                 observed: UnbinnedEvents, *, simulated: UnbinnedEvents | None = None,
                 normalise: bool = True) -> None:
        function = "UnbinnedChannel"
        self.name = check_text(function, "name", name)
        if not isinstance(components, Mapping) or not components:
            raise ArgumentError(f"{function}: components is {shown(components)}, but must be a "
                                "mapping of names to tables")
        self.components = [self._component(own, table) for own, table in components.items()]
        for which, events in (("observed", observed), ("simulated", simulated)):
            absent = events is None and which == "simulated"
            if not isinstance(events, UnbinnedEvents) and not absent:
                raise ArgumentError(f"{function}: {which} is {shown(events)}, but must be "
                                    "UnbinnedEvents")
        self.observed, self.simulated = observed, simulated
        self.normalise = check_flag(function, "normalise", normalise)
        self._rows("observed", observed)  # so that what is missing is told here
        if simulated is not None:
            self._rows("simulated", simulated)

    @staticmethod
    def _component(name: Any, table: Any) -> dict[str, Any]:
        function, place = "UnbinnedChannel", f"components['{name}']"
        check_text(function, "components", name)
        known = {"yield", "modifiers", "shapes", "coefficient"}
        if not isinstance(table, Mapping) or set(table) - known or "yield" not in table:
            raise ArgumentError(f"{function}: {place} is {shown(table)}, but must be a mapping with "
                                "yield and at most modifiers, shapes and coefficient")
        coefficient = []
        for i, term in enumerate(check_list(function, place + "['coefficient']",
                                            table.get("coefficient", ()))):
            where = f"{place}['coefficient'][{i}]"
            if not isinstance(term, (tuple, list)) or len(term) != 2 or not isinstance(
                    term[1], Mapping):
                raise ArgumentError(f"{function}: {where} is {shown(term)}, but must be a pair of a "
                                    "number and a mapping of parameters to powers")
            coefficient.append((check_number(function, where, term[0]),
                                [(check_text(function, where, parameter),
                                  check_number(function, where, power))
                                 for parameter, power in term[1].items()]))
        return {"name": name, "yield": check_number(function, place + "['yield']", table["yield"]),
                "modifiers": [_modifier(function, f"{place}['modifiers'][{i}]", entry)
                              for i, entry in enumerate(check_list(
                                  function, place + "['modifiers']", table.get("modifiers", ())))],
                "shapes": check_texts(function, place + "['shapes']", table.get("shapes", ())),
                "coefficient": coefficient}

    def _rows(self, which: str, events: UnbinnedEvents) -> dict[str, Any]:
        """The events as rows in the order of the components and their shapes."""
        ratios: list[Floats] = []
        functions: list[Floats] = []
        for component in self.components:
            name = component["name"]
            if name not in events.ratios:
                raise ArgumentError(f"UnbinnedChannel: {which} has no ratios of '{name}', but must "
                                    "have those of each component")
            ratios.append(events.ratios[name])
            for shape in component["shapes"]:
                if shape not in events.variations.get(name, {}):
                    raise ArgumentError(f"UnbinnedChannel: {which} has no variations of '{name}' "
                                        f"with '{shape}', but must have those of each shape")
                functions += events.variations[name][shape]
        return {"ratios": np.stack(ratios), "functions": np.stack(functions) if functions else None,
                "weights": events.weights}

    def _plain(self) -> dict[str, Any]:
        return {"name": self.name, "components": self.components, "normalise": self.normalise,
                "observed": self._rows("observed", self.observed),
                "simulated": None if self.simulated is None
                else self._rows("simulated", self.simulated)}

    def __repr__(self) -> str:
        names = ", ".join(component["name"] for component in self.components)
        return f"UnbinnedChannel({self.name}: {len(self.observed)} events of {names})"


class MeasurementData:
    """Data of a model: what was observed, or could have been. Made by a `StatisticalModel`."""

    def __init__(self, core: _core.MeasurementData) -> None:
        if not isinstance(core, _core.MeasurementData):
            raise ArgumentError(f"MeasurementData: core is {shown(core)}, but must come from a "
                                "model: its observed, asimov, sampled or data")
        self._core = core

    @property
    def counts(self) -> Floats:
        """Of every bin of every channel, in their order."""
        return self._core.counts

    @property
    def auxiliary(self) -> Floats:
        """The auxiliary observation of every constraint."""
        return self._core.auxiliary

    @property
    def events(self) -> list[int]:
        """How many each channel without bins has."""
        return self._core.events

    def __repr__(self) -> str:
        return (f"MeasurementData({len(self.counts)} counts, {len(self.auxiliary)} auxiliary "
                f"observations, {sum(self.events)} events)")


class StatisticalModel:
    """The probability of data given parameters: Π_b Poisson(n_b | ν_b(θ)) Π_k p(a_k | θ), times the
    extended likelihood of every channel without bins.

    Everything is checked here, before any fit. Parameters of one bin are called "name[bin]".

    >>> import neyman
    >>> workspace = neyman.Workspace({
    ...     "channels": [{"name": "bin", "samples": [
    ...         {"name": "signal", "data": [5.0],
    ...          "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]},
    ...         {"name": "background", "data": [10.0], "modifiers": []}]}],
    ...     "observations": [{"name": "bin", "data": [20]}],
    ...     "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
    ...     "version": "1.0.0"})
    >>> model = neyman.StatisticalModel(workspace)
    >>> model.interest, model.expected({"mu": 2.0})
    ('mu', array([20.]))
    >>> fit = neyman.measurements.fit_model(model)           # μ̂ = (20 − 10) / 5 ± √20 / 5
    >>> round(fit.theta["mu"], 6), round(fit.error["mu"], 6)
    (2.0, 0.894427)
    """

    def __init__(self, workspace: Workspace | Mapping[str, Any],
                 unbinned: Sequence[UnbinnedChannel] = (), *, measurement: str = "") -> None:
        if not isinstance(workspace, Workspace):
            if not isinstance(workspace, Mapping):
                raise ArgumentError(f"StatisticalModel: workspace is {shown(workspace)}, but must "
                                    "be a Workspace")
            workspace = Workspace(workspace)
        channels = check_list("StatisticalModel", "unbinned", unbinned)
        for i, channel in enumerate(channels):
            if not isinstance(channel, UnbinnedChannel):
                raise ArgumentError(f"StatisticalModel: unbinned[{i}] is {shown(channel)}, but must "
                                    "be an UnbinnedChannel")
        self.workspace: Workspace | None = workspace
        self._made_from: Any = (_remade, (workspace, channels, check_text(
            "StatisticalModel", "measurement", measurement)))
        self._core = _core.StatisticalModel(workspace._core,
                                            [channel._plain() for channel in channels], measurement)

    @classmethod
    def _of(cls, core: _core.StatisticalModel, made_from: Any = None) -> StatisticalModel:
        """One that was learned: it has no workspace. `made_from` is what makes it again."""
        model = cls.__new__(cls)
        model.workspace, model._made_from, model._core = None, made_from, core
        return model

    @property
    def parameters(self) -> Parameters:
        """Names and ranges; all but the parameter of interest are nuisance parameters."""
        return Parameters._of(self._core.parameters)

    @property
    def interest(self) -> str:
        """The parameter of interest."""
        return self._core.interest

    @property
    def start(self) -> dict[str, float]:
        return _by_name(self.parameters.names, self._core.start)

    @property
    def fixed(self) -> list[str]:
        """The parameters that the measurement holds at their start."""
        return [name for name, held in zip(self.parameters.names, self._core.fixed) if held]

    @property
    def constraints(self) -> list[dict[str, Any]]:
        """Of each: parameter, kind, observed (the auxiliary observation), width (σ, log κ or τ)."""
        return self._core.constraints

    @property
    def bins(self) -> list[tuple[str, int]]:
        """The channel and the number of each bin of the data."""
        return self._core.bins

    @property
    def samples(self) -> list[str]:
        return self._core.samples

    @property
    def observed(self) -> MeasurementData:
        return MeasurementData(self._core.observed)

    def data(self, counts: npt.ArrayLike | None = None,
             auxiliary: npt.ArrayLike | None = None) -> MeasurementData:
        """Those observed with other counts or auxiliary observations."""
        return MeasurementData(self._core.data(counts, auxiliary))

    def asimov(self, theta: Theta) -> MeasurementData:
        """The data expected at θ, so that the best fit is θ."""
        return MeasurementData(self._core.asimov(theta))

    def sampled(self, theta: Theta, *, seed: int = 0) -> MeasurementData:
        """Data drawn at θ: counts, auxiliary observations and events."""
        return MeasurementData(self._core.sampled(theta, check_count("sampled", "seed", seed)))

    def expected(self, theta: Theta) -> Floats:
        """ν_b(θ), by bin."""
        return self._core.expected(theta)

    def expected_by_sample(self, theta: Theta) -> dict[str, Floats]:
        """The part of each sample in it."""
        return dict(zip(self.samples, self._core.expected_by_sample(theta)))

    def expected_events(self, theta: Theta) -> Floats:
        """ν(θ) of each channel without bins."""
        return self._core.expected_events(theta)

    def likelihood(self, data: MeasurementData | None = None) -> ModelLikelihood:
        """ℓ(θ) of the data, with exact derivatives."""
        return ModelLikelihood(self, data)

    def __reduce__(self) -> Any:
        if self._made_from is None:
            raise TypeError("a StatisticalModel of a result cannot be pickled; pickle the model of "
                            "the run, whose statistical_model makes it again")
        return self._made_from

    def __repr__(self) -> str:
        return (f"StatisticalModel({len(self.bins)} bins, {self._core.unbinned} channels without "
                f"bins, {len(self.parameters)} parameters, {self.interest} of interest)")


def _remade(workspace: Workspace, channels: list[UnbinnedChannel],
            measurement: str) -> StatisticalModel:
    return StatisticalModel(workspace, channels, measurement=measurement)


class ModelLikelihood:
    """ℓ(θ) = log p(n, a | θ), relative to the largest it could be: −2 ℓ(θ̂) is the χ² of the saturated
    model. −infinity outside of the ranges and where a yield is negative.

    `negative` is what SciPy and iminuit minimise, with its gradient:

        minuit = iminuit.Minuit(likelihood.negative, start, grad=likelihood.negative.grad)

    >>> import neyman
    >>> likelihood = neyman.measurements.example().likelihood()
    >>> round(likelihood([1.0, 0.0]), 6), likelihood.gradient([1.0, 0.0]).round(6)
    (-1.940917, array([4.092979, 2.925919]))
    >>> likelihood.information([1.0, 0.0]).round(6)
    array([[4.95034 , 3.658932],
           [3.658932, 2.973791]])
    """

    def __init__(self, model: StatisticalModel, data: MeasurementData | None = None) -> None:
        self.model = _checked("ModelLikelihood", model)
        self._core = _core.ModelLikelihood(model._core, _data("ModelLikelihood", model, data))

    @property
    def parameters(self) -> Parameters:
        return self.model.parameters

    @property
    def negative(self) -> NegativeModelLikelihood:
        """−ℓ, to be minimised by other programs."""
        return NegativeModelLikelihood(self._core)

    def __call__(self, theta: Theta) -> float:
        return self._core(theta)

    def gradient(self, theta: Theta) -> Floats:
        """∂ℓ/∂θ."""
        return self._core.value_and_gradient(theta)[1]

    def information(self, theta: Theta) -> Floats:
        """−∂²ℓ/∂θ∂θ'."""
        return self._core.information(theta)

    def __repr__(self) -> str:
        return f"ModelLikelihood({', '.join(self.parameters.names)})"


class NegativeModelLikelihood:
    """−ℓ(θ) with its gradient `grad`; `errordef` tells iminuit that a rise by ½ is one standard
    deviation."""

    errordef = 0.5

    def __init__(self, core: _core.ModelLikelihood) -> None:
        self._core = core

    def __call__(self, theta: Theta) -> float:
        return -self._core(theta)

    def grad(self, theta: Theta) -> Floats:
        return -self._core.value_and_gradient(theta)[1]


# --------------------------------------------------------------------------------------- results

@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class ProfileScan(Shown):
    """−2 log Λ along a parameter."""

    parameter: str
    values: Floats
    statistic: Floats  #: the others profiled
    held_statistic: Floats  #: the others held at their best fit: what the counts alone say
    failed: int  #: profile fits that did not converge: their statistic is an upper bound


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Pull(Shown):
    """What the data say about a constrained parameter, in units of its constraint."""

    parameter: str
    pull: float  #: (θ̂ − θ_a) / σ
    constraint: float  #: error of θ̂ over σ


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Impact(Shown):
    """How the estimate of interest moves with one auxiliary observation."""

    parameter: str
    up: float  #: change for + one standard deviation
    down: float
    ok: bool


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class TestStatistic(Shown):
    """A test statistic of a value of the parameter of interest."""

    __test__ = False  # not a test of pytest

    value: float
    estimate: float  #: μ̂, as far as the statistic lets it go
    ok: bool  #: whether both fits converged
    best: dict[str, float]  #: (μ̂, θ̂)
    at_tested: dict[str, float]  #: (μ, θ̂̂)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class SignalTest(Shown):
    """p-values of a tested μ against the background alone, by asymptotic formulae."""

    tested: float
    statistic: float
    asimov_statistic: float  #: of the Asimov data set without signal: (μ / σ)²
    estimate: float
    cl_sb: float  #: p-value of signal with background
    cl_b: float  #: 1 − p-value of background alone
    cl_s: float  #: CL_sb / CL_b
    expected_cl_s: list[float]  #: without signal, at −2, −1, 0, 1, 2 standard deviations
    ok: bool


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class UpperLimit(Shown):
    """An upper limit on the parameter of interest by CL_s."""

    level: float
    estimate: float
    observed: float
    expected: list[float]  #: without signal, at −2, −1, 0, 1, 2 standard deviations


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Discovery(Shown):
    """The test of the background alone."""

    statistic: float  #: q_0
    p_value: float
    significance: float  #: Z = √q_0, in standard deviations
    estimate: float
    expected_significance: float  #: the median where μ has the expected value
    #: events were seen where none is expected without signal: statistic and significance are infinite
    impossible: bool
    ok: bool


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class ToySample(Shown):
    """A test statistic over simulated datasets."""

    statistics: Floats
    estimates: Floats
    failed: int  #: fits that did not converge: left out and counted


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class ToyTest(Shown):
    """The test of a value of μ against the background alone, by toys. Probabilities stand with
    their binomial standard errors."""

    tested: float
    statistic: float
    estimate: float
    cl_sb: tuple[float, float]
    cl_b: tuple[float, float]
    cl_s: tuple[float, float]
    expected_cl_s: list[float]
    failed: int


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class ToyLimit(Shown):
    """An upper limit by CL_s from toys."""

    level: float
    observed: float
    expected: list[float]
    tests: list[ToyTest]  #: one a value


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class UnifiedInterval(Shown):
    """Feldman and Cousins' interval."""

    level: float
    low: float
    high: float
    low_at_bound: bool
    high_at_bound: bool
    values: Floats
    p_values: Floats
    failed: int

    def __iter__(self) -> Any:
        return iter((self.low, self.high))


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class ExpectedCounts(Shown):
    """What a model expects in each bin."""

    parts: Floats  #: samples × bins
    total: Floats
    error: Floats  #: of the total, from the parameters


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class ChannelHistogram(Shown):
    """What was counted in a channel beside what is expected, before and after the fit."""

    channel: str
    feature: str  #: empty: the edges are numbers of bins
    edges: Floats
    samples: list[str]
    observed: Floats
    before: ExpectedCounts
    after: ExpectedCounts
    _figure: dict[str, Any] = dataclasses.field(repr=False)

    @classmethod
    def _of(cls, found: dict[str, Any]) -> ChannelHistogram:
        for side in ("before", "after"):
            found[side] = ExpectedCounts(**found[side])
        return cls(_figure=found.pop("figure"), **found)


# ------------------------------------------------------------------------------------- functions

def _by_name(names: Sequence[str], values: Floats) -> dict[str, float]:
    return dict(zip(names, map(float, values)))


def _checked(function: str, model: Any) -> StatisticalModel:
    if not isinstance(model, StatisticalModel):
        raise ArgumentError(f"{function}: model is {shown(model)}, but must be a StatisticalModel")
    return model


def _data(function: str, model: Any, data: Any) -> _core.MeasurementData:
    _checked(function, model)
    if data is None:
        observed: _core.MeasurementData = model._core.observed
        return observed
    if not isinstance(data, MeasurementData):
        raise ArgumentError(f"{function}: data is {shown(data)}, but must be MeasurementData of "
                            "the model")
    return data._core


def _best(function: str, model: StatisticalModel, data: _core.MeasurementData,
          best: Any) -> _core.Fit:
    if best is None:
        return _core.fit_model(model._core, data, None, {}, None)
    if not isinstance(best, Fit):
        raise ArgumentError(f"{function}: best is {shown(best)}, but must be a Fit of the model")
    core: _core.Fit = best._core
    return core


def _statistic(function: str, value: Any, known: Sequence[str] = _STATISTICS) -> str:
    if not isinstance(value, str) or value not in known:
        raise ArgumentError(f"{function}: statistic is {shown(value)}, but must be one of "
                            + ", ".join(known))
    return value


def _toys(function: str, toys: Any, seed: Any, first: Any = None) -> dict[str, int]:
    out = {name: check_count(function, name, value)
           for name, value in given(seed=seed, first=first).items()}
    if toys is not None:
        out["toys"] = check_count(function, "toys", toys, 1)
    return out


def _groups(function: str, groups: Any) -> list[tuple[str, list[str]]]:
    if not isinstance(groups, Mapping):
        raise ArgumentError(f"{function}: groups is {shown(groups)}, but must be a mapping of names "
                            "to lists of parameters")
    return [(check_text(function, "groups", name),
             check_texts(function, f"groups['{name}']", names)) for name, names in groups.items()]


def fit_model(model: StatisticalModel, data: MeasurementData | None = None, *,
              start: Theta = None, fixed: Mapping[str, float] | None = None,
              tolerance: float | None = None) -> Fit:
    """The maximum of the likelihood inside the parameters' ranges, by Newton's method with exact
    second derivatives. The covariance is the inverse of the exact information; with
    parameters at a bound, of the information expected there, as if the ranges went on. A fit that
    fails says so in `status` and `message`.

    >>> import neyman
    >>> model = neyman.measurements.example()
    >>> fit = neyman.measurements.fit_model(model)
    >>> fit.status, round(fit.theta["mu"], 3)
    ('converged', 2.072)
    """
    function = "fit_model"
    own = _data(function, model, data)
    if fixed is not None and not isinstance(fixed, Mapping):
        raise ArgumentError(f"{function}: fixed is {shown(fixed)}, but must be a mapping of "
                            "parameters to numbers")
    held = {check_parameter(function, "fixed", name, model.parameters):
            check_number(function, f"fixed['{name}']", value)
            for name, value in (fixed or {}).items()}
    found = _core.fit_model(model._core, own, start, held,
                            optional(check_number, function, "tolerance", tolerance))
    return Fit._of(found, model.parameters.names)


def profile_interval(model: StatisticalModel, parameter: str | None = None,
                     data: MeasurementData | None = None, *, level: float | None = None,
                     best: Fit | None = None) -> Interval:
    """The values of a parameter with −2 log Λ at most the χ²₁ quantile of the level, the others
    profiled: the asymmetric errors of MINOS. By default of the parameter of interest, at 68.3 %.

    >>> import neyman
    >>> low, high = neyman.measurements.profile_interval(neyman.measurements.example())
    >>> round(low, 3), round(high, 3)
    (1.203, 2.885)
    """
    function = "profile_interval"
    own = _data(function, model, data)
    name = model.interest if parameter is None else check_parameter(
        function, "parameter", parameter, model.parameters)
    return Interval(name, **_core.profile_interval(
        model._core, own, _best(function, model, own, best), name,
        optional(check_number, function, "level", level)))


def profile_scan(model: StatisticalModel, values: npt.ArrayLike, parameter: str | None = None,
                 data: MeasurementData | None = None, *, best: Fit | None = None) -> ProfileScan:
    """−2 log Λ of a parameter at given values, with the others profiled and held.

    >>> import neyman
    >>> scan = neyman.measurements.profile_scan(neyman.measurements.example(), [0.5, 1.0, 1.5])
    >>> bool((scan.statistic <= scan.held_statistic).all())
    True
    """
    function = "profile_scan"
    own = _data(function, model, data)
    name = model.interest if parameter is None else check_parameter(
        function, "parameter", parameter, model.parameters)
    return ProfileScan(name, **_core.profile_scan(
        model._core, own, _best(function, model, own, best), name, values))


def pulls(model: StatisticalModel, data: MeasurementData | None = None, *,
          best: Fit | None = None) -> list[Pull]:
    """Of every constrained parameter that is not held: how far the fit has moved it from its
    auxiliary observation, and its error, both in units of the constraint's standard deviation."""
    own = _data("pulls", model, data)
    return [Pull(**entry) for entry in
            _core.pulls(model._core, own, _best("pulls", model, own, best))]


def impacts(model: StatisticalModel, data: MeasurementData | None = None, *,
            best: Fit | None = None) -> list[Impact]:
    """How the estimate of interest moves when each auxiliary observation is moved by ± a standard
    deviation and everything is fitted again; the largest first. The squares add up to the systematic
    part of the error.

    >>> import neyman
    >>> model = neyman.measurements.example()
    >>> [impact.parameter for impact in neyman.measurements.impacts(model)]
    ['size']
    """
    own = _data("impacts", model, data)
    return [Impact(**entry) for entry in
            _core.impacts(model._core, own, _best("impacts", model, own, best))]


def error_breakdown(model: StatisticalModel, groups: Mapping[str, Sequence[str]] | None = None,
                    data: MeasurementData | None = None, *, best: Fit | None = None
                    ) -> dict[str, float]:
    """The error of the parameter of interest by groups of constraints, given as names of parameters
    or of modifiers; then "other" (constraints in no group) and "statistical". The squares add up to
    the variance.

    >>> import neyman
    >>> model = neyman.measurements.example()
    >>> parts = neyman.measurements.error_breakdown(model, {"background": ["size"]})
    >>> total = neyman.measurements.fit_model(model).error["mu"]
    >>> bool(abs(sum(part**2 for part in parts.values()) - total**2) < 1e-9)
    True
    """
    own = _data("error_breakdown", model, data)
    return _core.error_breakdown(model._core, own, _best("error_breakdown", model, own, best),
                                 _groups("error_breakdown", {} if groups is None else groups))


def test_statistic(model: StatisticalModel, statistic: str, tested: float,
                   data: MeasurementData | None = None) -> TestStatistic:
    """A test statistic of a value of the parameter of interest, by its name in the literature
    (arXiv:1007.1727): "t" (two-sided), "t-tilde" (the same with μ ≥ 0), "q0" (discovery), "q" (upper
    limits), "q-tilde" (the same with μ ≥ 0). All are −2 log λ(μ), or 0.

    >>> import neyman
    >>> found = neyman.measurements.test_statistic(neyman.measurements.example(), "q0", 0.0)
    >>> round(found.value, 3)
    5.363
    """
    function = "test_statistic"
    own = _data(function, model, data)
    found = _core.test_statistic(model._core, own, _statistic(function, statistic),
                                 check_number(function, "tested", tested))
    names = model.parameters.names
    for key in ("best", "at_tested"):
        found[key] = _by_name(names, found[key])
    return TestStatistic(**found)


test_statistic.__test__ = False  # type: ignore[attr-defined]  # not a test of pytest

_UPPER = ("q", "q-tilde")


def asymptotic_test(model: StatisticalModel, tested: float, data: MeasurementData | None = None, *,
                    statistic: str = "q-tilde") -> SignalTest:
    """The test of μ against the background alone by asymptotic formulae.

    >>> import neyman
    >>> test = neyman.measurements.asymptotic_test(neyman.measurements.example(), 2.0)
    >>> round(test.cl_s, 3), [round(value, 3) for value in test.expected_cl_s]
    (0.508, [0.001, 0.005, 0.032, 0.151, 0.454])
    """
    function = "asymptotic_test"
    own = _data(function, model, data)
    value = check_number(function, "tested", tested)
    return SignalTest(**_core.asymptotic_tests(model._core, own, [value],
                                               _statistic(function, statistic, _UPPER))[0])


def asymptotic_scan(model: StatisticalModel, values: npt.ArrayLike,
                    data: MeasurementData | None = None, *, statistic: str = "q-tilde"
                    ) -> list[SignalTest]:
    """The same of many values of μ, whose common fits are done once.

    >>> import neyman
    >>> tests = neyman.measurements.asymptotic_scan(neyman.measurements.example(), [1.0, 2.0, 4.0])
    >>> [test.tested for test in tests if test.cl_s < 0.05]
    [4.0]
    """
    function = "asymptotic_scan"
    own = _data(function, model, data)
    return [SignalTest(**entry) for entry in _core.asymptotic_tests(
        model._core, own, values, _statistic(function, statistic, _UPPER))]


def upper_limit(model: StatisticalModel, data: MeasurementData | None = None, *,
                level: float | None = None, statistic: str = "q-tilde",
                highest: float | None = None) -> UpperLimit:
    """The value of μ above which CL_s is below 1 − level, observed and expected, by asymptotic
    formulae. A limit beyond the range of μ (or `highest`) is an error: none is invented.

    >>> import neyman
    >>> limit = neyman.measurements.upper_limit(neyman.measurements.example())
    >>> round(limit.observed, 3), round(limit.expected[2], 3)
    (3.413, 1.835)
    """
    function = "upper_limit"
    return UpperLimit(**_core.upper_limit(
        _checked(function, model)._core, _data(function, model, data),
        optional(check_number, function, "level", level), _statistic(function, statistic, _UPPER),
        optional(check_number, function, "highest", highest)))


def discovery(model: StatisticalModel, data: MeasurementData | None = None, *,
              expected: float = 1.0) -> Discovery:
    """The test of the background alone: q_0 and its significance, with that expected where μ has
    the value `expected`.

    >>> import neyman
    >>> round(neyman.measurements.discovery(neyman.measurements.example()).significance, 3)
    2.316
    """
    return Discovery(**_core.discovery(_checked("discovery", model)._core,
                                       _data("discovery", model, data),
                                       check_number("discovery", "expected", expected)))


def toy_statistics(model: StatisticalModel, theta: Theta, statistic: str, tested: float, *,
                   toys: int | None = None, seed: int | None = None, first: int | None = None
                   ) -> ToySample:
    """A test statistic of data drawn at θ, in parallel. Toys [first, first + toys) of a seed are the
    same whoever makes them, so that parts can be made apart and put together.

    >>> import neyman
    >>> model = neyman.measurements.example()
    >>> sample = neyman.measurements.toy_statistics(model, model.start, "q0", 0.0, toys=200)
    >>> len(sample.statistics) + sample.failed
    200
    """
    function = "toy_statistics"
    return ToySample(**_core.toy_statistics(
        _checked(function, model)._core, theta, _statistic(function, statistic),
        check_number(function, "tested", tested), _toys(function, toys, seed, first)))


def toy_test(model: StatisticalModel, tested: float, data: MeasurementData | None = None, *,
             statistic: str = "q-tilde", toys: int | None = None, seed: int | None = None
             ) -> ToyTest:
    """The test of μ against the background alone by so many toys of each hypothesis.

    >>> import neyman
    >>> test = neyman.measurements.toy_test(neyman.measurements.example(), 3.4, toys=1000)
    >>> cl_s, error = test.cl_s                              # about 0.05
    >>> bool(cl_s < 0.05 + 6 * error)
    True
    """
    function = "toy_test"
    return ToyTest(**_core.toy_test(
        _checked(function, model)._core, _data(function, model, data),
        check_number(function, "tested", tested), _statistic(function, statistic, _UPPER),
        _toys(function, toys, seed)))


def toy_upper_limit(model: StatisticalModel, values: npt.ArrayLike,
                    data: MeasurementData | None = None, *, level: float | None = None,
                    statistic: str = "q-tilde", toys: int | None = None, seed: int | None = None
                    ) -> ToyLimit:
    """An upper limit by CL_s from toys at rising values of μ, which must bracket it."""
    function = "toy_upper_limit"
    found = _core.toy_upper_limit(
        _checked(function, model)._core, _data(function, model, data), values,
        optional(check_number, function, "level", level), _statistic(function, statistic, _UPPER),
        _toys(function, toys, seed))
    found["tests"] = [ToyTest(**entry) for entry in found["tests"]]
    return ToyLimit(**found)


def feldman_cousins(model: StatisticalModel, values: npt.ArrayLike,
                    data: MeasurementData | None = None, *, level: float | None = None,
                    toys: int | None = None, seed: int | None = None) -> UnifiedInterval:
    """Feldman and Cousins' interval at rising values of μ, with nuisance parameters at their best
    fit for each. It goes over from one-sided to two-sided by itself."""
    function = "feldman_cousins"
    return UnifiedInterval(**_core.feldman_cousins(
        _checked(function, model)._core, _data(function, model, data), values,
        optional(check_number, function, "level", level), _toys(function, toys, seed)))


def channel_histograms(model: StatisticalModel, data: MeasurementData | None = None, *,
                       best: Fit | None = None) -> list[ChannelHistogram]:
    """What was counted in each channel with bins beside what is expected, before the fit (with the
    uncertainty of the constraints) and after it (with its covariance).

    >>> import neyman
    >>> histogram, = neyman.measurements.channel_histograms(neyman.measurements.example())
    >>> histogram.samples, histogram.before.total
    (['signal', 'background'], array([68., 62.]))
    """
    own = _data("channel_histograms", model, data)
    return [ChannelHistogram._of(entry) for entry in _core.channel_histograms(
        model._core, own, _best("channel_histograms", model, own, best))]


def feature_histogram(model: StatisticalModel, channel: str, feature: str, *,
                      edges: npt.ArrayLike, observed: npt.ArrayLike, simulated: npt.ArrayLike,
                      weights: npt.ArrayLike | None = None,
                      expected: Callable[[dict[str, float]], Mapping[str, npt.ArrayLike]]
                      | None = None, data: MeasurementData | None = None,
                      best: Fit | None = None) -> ChannelHistogram:
    """The distribution of any feature of the events of a channel without bins: those observed, and
    the simulated ones weighted by the model before and after the fit, with bands.

    `observed` and `simulated` are the values of the feature for the channel's events, in their
    order. `expected` may give, at a θ, how often each simulated event is expected from each
    component; without it the sum is shown."""
    function = "feature_histogram"
    own = _data(function, model, data)
    names: list[str] = []
    if expected is not None:
        if not callable(expected):
            raise ArgumentError(f"{function}: expected is {shown(expected)}, but must be a function "
                                "of θ")
        first = expected(model.start)
        if not isinstance(first, Mapping) or not first:
            raise ArgumentError(f"{function}: expected gave {shown(first)}, but must give a mapping "
                                "of components to arrays")
        names = [check_text(function, "expected", name) for name in first]
    rows = None if expected is None else (
        lambda theta: np.stack([np.asarray(expected(theta)[name], dtype=np.float64)
                                for name in names]))
    return ChannelHistogram._of(_core.feature_histogram(
        model._core, own, _best(function, model, own, best),
        {"channel": check_text(function, "channel", channel),
         "feature": check_text(function, "feature", feature), "edges": edges, "observed": observed,
         "simulated": simulated, "weights": weights, "components": names, "expected": rows}))


class MeasurementSummary:
    """Everything that one asks of a measurement, as `neyman limit` gives it; see `summarise`."""

    def __init__(self, core: _core.MeasurementSummary, model: StatisticalModel) -> None:
        if not isinstance(core, _core.MeasurementSummary):
            raise ArgumentError(f"MeasurementSummary: core is {shown(core)}, but must come from "
                                "summarise")
        self._core = core
        self.model = model

    @property
    def fit(self) -> Fit:
        return Fit._of(self._core.fit, self.model.parameters.names)

    @property
    def problems(self) -> list[str]:
        """What could not be had, and why."""
        found: list[str] = self.to_dict()["problems"]
        return found

    def to_dict(self) -> dict[str, Any]:
        """As in JSON, schema "neyman.measurement/1"."""
        out: dict[str, Any] = json.loads(self._core.json())
        return out

    def to_json(self) -> str:
        return self._core.json()

    def figures(self) -> list[dict[str, Any]]:
        """The figures of the report as plain data; `neyman.plot.measurement` draws them."""
        return self._core.figures()

    def report(self, folder: PathLike, *, title: str = "Measurement") -> str:
        """Writes report.html, measurement.json and figures/ into a folder, and returns the path of
        the report."""
        place = as_path("report", folder, "folder")
        try:
            os.makedirs(place, exist_ok=True)
        except OSError as problem:
            raise FileError(f"{place}: {problem.strerror}") from None
        page = self._core.report(check_text("report", "title", title),
                                 os.path.join(place, "figures"))
        for name, text in (("measurement.json", self._core.json()), ("report.html", page)):
            write_bytes("report", os.path.join(place, name), text.encode())
        return os.path.join(place, "report.html")

    def __repr__(self) -> str:
        return self._core.text()

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(self._core.text())}</pre>"


def summarise(model: StatisticalModel, data: MeasurementData | None = None, *,
              level: float | None = None, statistic: str | None = None, toys: int | None = None,
              scan_points: int | None = None, curve_points: int | None = None,
              seed: int | None = None, groups: Mapping[str, Sequence[str]] | None = None
              ) -> MeasurementSummary:
    """Fits, then tests: intervals, pulls, impacts, discovery, upper limits (with `toys`, by toys
    too), curves and histograms for figures. What fails is told in `problems`, and the rest is there
    nevertheless.

    >>> import neyman
    >>> summary = neyman.measurements.summarise(neyman.measurements.example())
    >>> round(summary.to_dict()["limit"]["observed"], 3), summary.problems
    (3.413, [])
    """
    function = "summarise"
    counts = {name: check_count(function, name, value) for name, value in given(
        toys=toys, scan_points=scan_points, curve_points=curve_points, seed=seed).items()}
    options: dict[str, Any] = {**counts, **given(
        level=optional(check_number, function, "level", level))}
    if statistic is not None:
        options["statistic"] = _statistic(function, statistic, _UPPER)
    if groups is not None:
        options["groups"] = _groups(function, groups)
    own = _data(function, model, data)
    return MeasurementSummary(_core.MeasurementSummary(model._core, own, options), model)


def example() -> StatisticalModel:
    """A small model to try things with: two bins with a signal over a background that is known to 15
    to 20 %.

    >>> import neyman
    >>> neyman.measurements.example().parameters.names
    ['mu', 'size']
    """
    return StatisticalModel({
        "channels": [{"name": "region", "samples": [
            {"name": "signal", "data": [8.0, 14.0],
             "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]},
            {"name": "background", "data": [60.0, 48.0],
             "modifiers": [{"name": "size", "type": "normsys",
                            "data": {"lo": 0.85, "hi": 1.2}}]}]}],
        "observations": [{"name": "region", "data": [74, 77]}],
        "measurements": [{"name": "search", "config": {"poi": "mu", "parameters": []}}],
        "version": "1.0.0"})
