"""Likelihood ratios r(x; θ0, θ1) = p(x|θ0) / p(x|θ1), numerator over denominator, exact or learned."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from neyman import _core
from neyman._files import read_bytes, write_bytes
from neyman.calibration import CalibratorLike
from neyman.calibration import as_core as as_core_calibrator
from neyman.classifiers import ClassifierLike
from neyman.classifiers import as_core as as_core_classifier
from neyman.core import (Parameters, Theta, check_count, check_flag, check_list, check_text, given,
                         optional, shown)
from neyman.data import Samples
from neyman.errors import ArgumentError
from neyman.simulators import Design, DesignLike, Distribution, Events, as_design, core_simulator

__all__ = ["ClassifierRatio", "DecomposedRatio", "DensityRatio", "ExactRatio", "LearnedRatio",
           "ParameterizedRatio", "Ratio", "SeparableRatio", "load_ratio"]

Floats = npt.NDArray[np.float64]


class Ratio:
    """A likelihood ratio of one event: `log_ratios(x, numerator, denominator)` is log r of each row,
    always finite."""

    _core: _core.Ratio

    @property
    def kind(self) -> str:
        return self._core.kind

    @property
    def parameters(self) -> Parameters:
        return Parameters._of(self._core.parameters)

    @property
    def feature_names(self) -> list[str]:
        return self._core.feature_names

    def log_ratios(self, x: Events, numerator: Theta = None, denominator: Theta = None) -> Floats:
        """log r(x; θ0, θ1) of each row of x."""
        return self._core.log_ratios(_core_of(x), numerator, denominator)

    def table(self, x: Events, points: npt.ArrayLike) -> Floats:
        """log r of each row of x (rows) at each θ of `points` (columns), up to a function of x alone,
        of a ratio across θ. `points` has a column for each parameter."""
        return self._core.table(_core_of(x), points)

    def count_outside(self, x: Events) -> int:
        """How many rows lie where the calibration has seen no event."""
        return self._core.count_outside(_core_of(x))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a learned ratio to a file, which `neyman.load_ratio` reads."""
        write_bytes("save", path, self._core._dump())

    def export_onnx(self, path: str | os.PathLike[str], numerator: Theta = None,
                    denominator: Theta = None) -> None:
        """Writes a learned ratio as one graph of ONNX from the features to log r. Its inputs are x
        and, unless they are given here, θ0 and θ1 (of a mixture, the weights there)."""
        write_bytes("export_onnx", path, self._core.onnx(numerator, denominator))

    def __getstate__(self) -> Any:
        return self._core._dump()

    def __setstate__(self, state: Any) -> None:
        self._core = _core.Ratio._load(state)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.parameters.names)})"


class ExactRatio(Ratio):
    """The exact ratio of a distribution that knows its density.

    >>> import neyman
    >>> ratio = neyman.ExactRatio(neyman.Normal("mu", 1, parameters={"mu": (-3, 3)}))
    >>> ratio.log_ratios([0.0, 1.0], numerator=1, denominator=0)    # x − ½
    array([-0.5,  0.5])
    """

    def __init__(self, simulator: Distribution) -> None:
        self._core = _core.exact_ratio(core_simulator("ExactRatio", simulator))
        self._simulator = simulator

    def __getstate__(self) -> Any:
        return self._simulator

    def __setstate__(self, state: Any) -> None:
        ExactRatio.__init__(self, state)


class ClassifierRatio(Ratio):
    """A learned ratio between two samples: K classifiers, each trained on all folds but its own and
    calibrated on its own, log r̂(x) = 1/K Σ_k log r̂_k(z_k(x)).

    >>> import neyman
    >>> x0, x1 = neyman.Normal(0, 1).sample(5000, seed=1), neyman.Normal(1, 1).sample(5000, seed=2)
    >>> ratio = neyman.ClassifierRatio(x0, x1, classifier="logistic", folds=2, seed=3)
    >>> bool(abs(ratio.log_ratios([1.0])[0] + 0.5) < 0.1)            # ½ − x
    True
    """

    def __init__(self, numerator: Events, denominator: Events, *,
                 classifier: ClassifierLike = None, calibrator: CalibratorLike = None,
                 numerator_weights: npt.ArrayLike | None = None,
                 denominator_weights: npt.ArrayLike | None = None, folds: int | None = None,
                 replicas: int | None = None, normalise: bool | None = None,
                 seed: int | None = None) -> None:
        options = _options("ClassifierRatio", folds=folds, replicas=replicas, seed=seed)
        self._core = _core.two_sample_ratio(
            _core_of(numerator), _core_of(denominator), numerator_weights, denominator_weights,
            as_core_classifier(classifier), as_core_calibrator(calibrator),
            {**options, **_flags("Ratio", normalise=normalise)})

    def log_ratios(self, x: Events, numerator: Theta = None, denominator: Theta = None) -> Floats:
        """log r(x) of each row of x: numerator over denominator as they were given."""
        return self._core.log_ratios(_core_of(x))


class DecomposedRatio(Ratio):
    """The ratio of two mixtures from calibrated ratios between pairs of their components,
    r(x; θ0, θ1) = Σ_c [ Σ_c' w_c'(θ1)/w_c(θ0) · p_c'(x)/p_c(x) ]⁻¹, where θ enters through the weights
    alone. `samples` events are simulated in all. Without a `reference` θ1 is in the middle of where all
    components have a share.

    >>> import neyman
    >>> p = neyman.Mixture([neyman.Normal(0, 1), neyman.Normal(2, 1)], ["1 - gamma"],
    ...                    parameters={"gamma": (0, 1)})
    >>> ratio = neyman.DecomposedRatio(p, reference=0.5, samples=4000, classifier="logistic",
    ...                                folds=2, replicas=0, seed=1)
    >>> exact = neyman.ExactRatio(p).log_ratios([0.0, 2.0], 0.1, 0.5)
    >>> bool(abs(ratio.log_ratios([0.0, 2.0], 0.1, 0.5) - exact).max() < 0.1)
    True
    """

    def __init__(self, simulator: Distribution, reference: Theta = None, *, samples: int,
                 classifier: ClassifierLike = None, calibrator: CalibratorLike = None,
                 folds: int | None = None, replicas: int | None = None,
                 normalise: bool | None = None, seed: int | None = None) -> None:
        options = _options("DecomposedRatio", folds=folds, replicas=replicas, seed=seed)
        self._core = _core.decomposed_ratio(
            core_simulator("DecomposedRatio", simulator), reference, check_count("DecomposedRatio", "samples", samples, 1),
            as_core_classifier(classifier), as_core_calibrator(calibrator),
            {**options, **_flags("Ratio", normalise=normalise)})


class ParameterizedRatio(Ratio):
    """One model for all θ from any classifier with θ among its inputs: z(x; θ) tells events of
    p(x|θ), θ from the design, from those of the denominator: events whose θ is not told, or, with a
    `reference`, those of p(x|θ1). log r = −z, calibrated across θ ("smooth", "interpolate",
    "on-demand", "none").

    In the place of a simulator, `Samples` with theta may be given, with the parameters: then their
    θ are the design, and what would be simulated besides (a reference, other calibrations than
    "smooth" and "none") is not there.

    >>> import neyman
    >>> p = neyman.Normal("mu", 1, parameters={"mu": (-1, 1)})
    >>> ratio = neyman.ParameterizedRatio(p, "uniform", samples=20000, seed=1,
    ...                                   classifier=neyman.Mlp(hidden=[16], epochs=5))
    >>> bool(abs(ratio.log_ratios([1.0], 0.5, 0.0)[0] - 0.375) < 0.15)     # μ x − μ²/2
    True
    """

    def __init__(self, simulator: Distribution | Samples, design: DesignLike | None = None,
                 parameters: Any = None, *,
                 classifier: ClassifierLike = None, reference: Theta = None,
                 samples: int | None = None, folds: int | None = None, fresh: bool | None = None,
                 across: str | None = None, calibrator: CalibratorLike = None,
                 calibration_events: int | None = None, nodes: Sequence[int] | None = None,
                 seed: int | None = None) -> None:
        options = _options("ParameterizedRatio", samples=samples, folds=folds, seed=seed,
                           calibration_events=calibration_events)
        options.update(_flags("ParameterizedRatio", fresh=fresh))
        options.update(given(across=optional(check_text, "ParameterizedRatio", "across", across),
                             nodes=optional(_counts, "ParameterizedRatio", "nodes", nodes)))
        if isinstance(simulator, Samples):
            self._of_events(simulator, design, parameters, as_core_classifier(classifier), options,
                            given(reference=reference, calibrator=calibrator))
            return
        if parameters is not None:
            raise ArgumentError("ParameterizedRatio: parameters are given beside a simulator, which "
                                "has its own, but must be left out")
        core = core_simulator("ParameterizedRatio", simulator)
        where = as_design("uniform" if design is None else design, simulator.parameters)
        self._core = _core.parameterized_ratio(
            core, where._core,
            as_core_classifier(classifier), reference, as_core_calibrator(calibrator), options)

    def _of_events(self, events: Samples, design: Any, parameters: Any, classifier: Any,
                   options: dict[str, Any], others: dict[str, Any]) -> None:
        simulated = [*others, *(name for name in ("samples", "fresh", "calibration_events", "nodes")
                                if name in options)]
        if options.get("across", "smooth") not in ("smooth", "none"):
            simulated.append("across")
        if simulated:
            raise ArgumentError(f"ParameterizedRatio: {', '.join(simulated)} asks for events to be "
                                "simulated, but must be left out where events are given")
        where = _design_of("ParameterizedRatio", events, design, parameters)
        self._core = _core.parameterized_ratio_of_events(events._core, where._core, classifier,
                                                         options)


class SeparableRatio(Ratio):
    """log r(x; θ, θ1) = h(x, θ) − c(θ) − h(x, θ1) + c(θ1), h = Σ_k f_k(x) P_k(θ), with polynomials P_k
    in θ: once f is summed over the data, the likelihood at any θ costs no pass over the events.

    Trained on events with θ (see `neyman.simulate`) from the design; None: their own θ are it. Where
    the design has no events, a likelihood does not allow θ. `periodic` names features that are angles,
    with their periods: {"angle": (-π, π)}.

    >>> import neyman
    >>> p = neyman.Normal("mu", 1, parameters={"mu": (-1, 1)})
    >>> events = neyman.simulate(p, 5000, design="sobol", seed=1)
    >>> ratio = neyman.SeparableRatio(events, "sobol", p.parameters, hidden=[], degree=2, seed=1)
    >>> bool(abs(ratio.log_ratios([1.0], 0.5, 0.0)[0] - 0.375) < 0.1)      # μ x − μ²/2
    True
    """

    def __init__(self, events: Samples, design: DesignLike | None = None,
                 parameters: Any = None, *,
                 hidden: Sequence[int] | None = None, degree: int | None = None,
                 nodes: int | None = None, folds: int | None = None, epochs: int | None = None,
                 batch_size: int | None = None, learning_rate: float | None = None,
                 normalise: bool | None = None,
                 periodic: Mapping[str, Sequence[float]] | None = None,
                 seed: int | None = None) -> None:
        where = _design_of("SeparableRatio", events, design, parameters)
        self._core = _core.separable_ratio(
            events._core, where._core,
            given(hidden=hidden, degree=degree, nodes=nodes, folds=folds, epochs=epochs,
                  batch_size=batch_size, learning_rate=learning_rate, normalise=normalise,
                  periodic=_periods("SeparableRatio", periodic), seed=seed))


class DensityRatio(Ratio):
    """log r from a learned density: of the features given θ (log q(x|θ)), or, for datasets of one
    event, of the parameters given x (log q(θ|x) − log π(θ), with π the design).

    It follows peaks that move, correlations, scales and values in steps. Trained on events with θ
    (see `neyman.simulate`) from the design. `periodic` names features that are angles, with their
    periods: {"angle": (-π, π)}.

    >>> import neyman
    >>> p = neyman.Normal("mu", 1, parameters={"mu": (-1, 1)})
    >>> events = neyman.simulate(p, 5000, design="sobol", seed=1)
    >>> ratio = neyman.DensityRatio(events, "sobol", p.parameters, hidden=[16], members=2, epochs=10,
    ...                             seed=1)
    >>> bool(abs(ratio.log_ratios([1.0], 0.5, 0.0)[0] - 0.375) < 0.15)     # μ x − μ²/2
    True
    """

    def __init__(self, events: Samples, design: DesignLike | None = None,
                 parameters: Any = None, *,
                 of: str | None = None, components: int | None = None,
                 hidden: Sequence[int] | None = None, members: int | None = None,
                 epochs: int | None = None, batch_size: int | None = None,
                 learning_rate: float | None = None,
                 periodic: Mapping[str, Sequence[float]] | None = None,
                 seed: int | None = None) -> None:
        where = _design_of("DensityRatio", events, design, parameters)
        self._core = _core.density_ratio(
            events._core, where._core,
            given(of=of, components=components, hidden=hidden, members=members, epochs=epochs,
                  batch_size=batch_size, learning_rate=learning_rate,
                  periodic=_periods("DensityRatio", periodic), seed=seed))


class LearnedRatio(Ratio):
    """log r from the model that held-out events choose: a `SeparableRatio`, a `DensityRatio` of the
    features, of more than 24 features a network of these and the parameters, or, for datasets of one
    event, a mean of these and of a density of the parameters.

    `effort` is "quick", "normal" or "thorough". `one_event=False` says that datasets have several
    events, which saves the training of what serves one alone. `periodic` names features that are
    angles, with their periods: {"angle": (-π, π)}. What was tried is in `candidates`.
    Trained on events with θ (see `neyman.simulate`) from the design; None: their own θ are it. Where
    the design has no events, a likelihood does not allow θ.

    >>> import neyman
    >>> p = neyman.Normal("mu", 1, parameters={"mu": (-1, 1)})
    >>> events = neyman.simulate(p, 4000, design="sobol", seed=1)
    >>> ratio = neyman.LearnedRatio(events, "sobol", p.parameters, effort="quick", seed=1)
    >>> bool(abs(ratio.log_ratios([[1.0], [0.0]], 0.5, 0.0)[0] - 0.375) < 0.15)     # μ x − μ²/2
    True
    >>> [one["name"] for one in ratio.candidates]
    ['separable', 'features', 'parameters', 'network']
    """

    def __init__(self, events: Samples, design: DesignLike | None = None,
                 parameters: Any = None, *,
                 effort: str | None = None, one_event: bool | None = None,
                 periodic: Mapping[str, Sequence[float]] | None = None,
                 seed: int | None = None) -> None:
        where = _design_of("LearnedRatio", events, design, parameters)
        self._core = _core.learned_ratio(
            events._core, where._core,
            given(effort=effort, one_event=one_event, periodic=_periods("LearnedRatio", periodic),
                  seed=seed))

    @property
    def candidates(self) -> list[dict[str, Any]]:
        """The models that were tried: `name`, `score` (nats per held-out event), how far it is
        `behind` the highest with the error of the difference, `seconds` of training, its `share` in
        the mean for datasets of one event, and whether it is `chosen` for those of several."""
        return self._core.candidates

    @property
    def untold(self) -> list[str]:
        """The parameters that the features do not tell of, as far as the held-out events show: what
        a likelihood says of them is noise."""
        return list(self._core.untold)

    @property
    def unused(self) -> list[str]:
        """The features that the models do not see: they show no dependence on the parameters, and
        held-out events are described as well without them."""
        return list(self._core.unused)


_classes: dict[str, type[Ratio]] = {"learned": LearnedRatio, "density": DensityRatio,
                                    "separable": SeparableRatio, "two-samples": ClassifierRatio,
                                    "decomposed": DecomposedRatio, "exact": Ratio,
                                    "classifier": ParameterizedRatio}


def _periods(function: str, periodic: Any) -> dict[str, list[float]] | None:
    if periodic is None:
        return None
    if not isinstance(periodic, Mapping):
        raise ArgumentError(f"{function}: periodic is {shown(periodic)}, but must be a mapping of "
                            "names of features to their periods (low, high)")
    try:
        return {str(name): [float(low), float(high)] for name, (low, high) in periodic.items()}
    except (TypeError, ValueError):
        raise ArgumentError(f"{function}: periodic is {shown(periodic)}, but must have a period "
                            "(low, high) for each feature") from None


def _design_of(function: str, events: Samples, design: DesignLike | None, parameters: Any) -> Any:
    if not isinstance(events, Samples):
        raise ArgumentError(f"{function}: events is {shown(events)}, but must be Samples with theta, "
                            "such as neyman.simulate gives")
    if design is None:
        return Design.of_events(events, parameters)
    return as_design(design, Parameters() if parameters is None else parameters)


def _options(function: str, **counts: int | None) -> dict[str, Any]:
    return {name: check_count(function, name, value) for name, value in given(**counts).items()}


def _flags(function: str, **flags: bool | None) -> dict[str, Any]:
    return {name: check_flag(function, name, value) for name, value in given(**flags).items()}


def _counts(function: str, name: str, value: Any) -> list[int]:
    return [check_count(function, f"{name}[{i}]", entry)
            for i, entry in enumerate(check_list(function, name, value))]


def _core_of(events: Events) -> Any:
    return events._core if isinstance(events, Samples) else events


def load_ratio(path: str | os.PathLike[str]) -> Ratio:
    """Reads what `Ratio.save` wrote. Nothing in the file is executed."""
    return _of_core(_core.Ratio._load(read_bytes("load_ratio", path)))


def _of_core(core: _core.Ratio) -> Ratio:
    kind = core.kind if core.kind != "classifier" or len(core.parameters) else "two-samples"
    made: Ratio = Ratio.__new__(_classes[kind])
    made._core = core
    return made
