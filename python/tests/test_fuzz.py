"""Ten thousand calls with arguments that do not fit: each ends with an exception that names the
argument, or does its work; the interpreter never crashes. `PRESET=debug make test` runs the same
under the address sanitizer."""

import os
import random
import warnings

import numpy as np
import pytest

import neyman

CALLS = 10_000

warnings.simplefilter("ignore")
P = neyman.Normal("mu", "sigma", parameters={"mu": (-3, 3), "sigma": (0.2, 5)})
MIXTURE = neyman.Mixture([neyman.Normal(0, 1), neyman.Normal(2, 1)], ["1 - gamma"],
                         parameters={"gamma": (0, 1)})
X = P.sample(40, [0, 1], seed=1)
Y = np.repeat([0, 1], 20)
EXACT = neyman.ExactRatio(P)
LIKELIHOOD = neyman.Likelihood(EXACT, X)
BEST = LIKELIHOOD.fit()
LOGISTIC = neyman.Logistic().fit(X, Y)
CALIBRATOR = neyman.SigmoidCalibrator().fit(X[:20, 0], X[20:, 0])
EVENTS = neyman.simulate(P, 200, seed=1)
RATIO_EVENTS = neyman.RatioEvents(X, X + 1, 0.5 - X[:, 0], -0.5 - X[:, 0])
FUNCTION = neyman.PythonSimulator(lambda theta, n, rng: rng.normal(size=n), {"mu": (0, 1)})
MODEL = neyman.measurements.example()
MODEL_FIT = neyman.measurements.fit_model(MODEL)
RATIOS = neyman.UnbinnedEvents({"a": np.ones(3)})
STUDY = {"parameters": {"mu": {"range": [-1, 1], "truth": 0}}, "training": {"samples": 1000},
         "simulator": {"kind": "normal", "mean": "mu", "sigma": 1}}


def read_only():
    array = np.zeros((3, 1))
    array.flags.writeable = False
    return array


def wrong_values():
    """Wrong shapes, types, NaN, empty, huge, read-only, texts; and some that fit."""
    return [
        None, True, False, 0, 1, -1, 2.5, -0.5, 1e308, 2**40, 2**62, 2**70, -2**63, 10**400,
        float("nan"), float("inf"), -float("inf"), 1j, "", "text", "normal", "mu", "\0", "é" * 100,
        b"bytes", bytearray(b"x"), object(), object, len, lambda *a: None, Ellipsis, range(3), {1},
        frozenset(), {}, {"mu": 1}, {"mu": 0, "sigma": 1}, {"kind": "normal"}, {1: 2}, iter([1]),
        [], [[]], [[], []], (), [1], [0, 1], [1, 2, 3], [[1, 2], [3]], ["a"], [None], [[[1]]],
        [float("nan"), 1.0], [1e308, -1e308], [0.0, 1.0], {"kind": object()}, [object()],
        np.zeros(0), np.zeros((0, 1)), np.zeros((3, 0)), np.zeros((2, 2, 2)), np.zeros((40, 1)),
        np.zeros((40, 1), np.float32), np.zeros((40, 2)), np.zeros(40), np.zeros(40, bool),
        np.arange(40), np.arange(40)[::-1], np.asfortranarray(np.zeros((40, 3))), np.array(1.0),
        np.array("text"), np.array(["a", "b"]), np.array([1j]), np.array([object()]),
        np.array([None, 1.0]), np.full((40, 1), np.nan), np.full((40, 1), np.inf),
        np.full((40, 1), 1e308), np.full((40, 1), -1e-308), np.zeros((40, 1), ">f8"),
        np.zeros((40, 1), np.float16), np.zeros((40, 1), np.longdouble), np.zeros(40, np.uint64),
        np.array(["2020-01-01"], "datetime64[D]"), np.zeros(3, [("x", "f8"), ("y", "i4")]),
        np.zeros(3, [("x", "f8", (2,))]), np.ma.MaskedArray([1.0, 2.0], [True, False]),
        np.broadcast_to(1.0, (40, 1)), np.lib.stride_tricks.as_strided(np.zeros(4), (40, 1), (0, 8)),
        np.random.default_rng(1).normal(size=(40, 1)), read_only(), np.float32(1), np.int8(-1),
        np.bool_(True), np.float64("nan"), memoryview(b"abc"), EVENTS, P, LOGISTIC, BEST, slice(3),
    ]


# (call, its arguments, and what an argument is called in errors where not by its own name). The
# arguments of "together" must fit to each other: where one does not, another may be named.
CALLED = [
    (P.sample, {"n": 5, "theta": [0, 1], "seed": 1}, {"theta": ["sigma"]}),
    (FUNCTION.sample, {"n": 5, "theta": 0.5, "seed": 1}, {}),
    (P.log_density, {"x": X, "theta": [0, 1]}, {"theta": ["sigma"]}),
    (P.cdf, {"x": X[:, 0], "theta": [0, 1]}, {"theta": ["sigma"]}),
    (P.quantile, {"probability": [0.5], "theta": [0, 1]},
     {"probability": ["p"], "theta": ["sigma"]}),
    (neyman.Normal, {"mean": 0, "sigma": 1, "parameters": None, "folder": "."},
     {"parameters": ["Parameters"]}),
    (neyman.MultivariateNormal, {"mean": [0, 0], "covariance": [[1, 0], [0, 1]]}, {}),
    (neyman.Mixture, {"components": [neyman.Normal(0, 1)], "weights": [1]}, {}),
    (neyman.distribution, {"kind": "uniform", "low": 0, "high": 1}, {}),
    (neyman.Parameters, {"ranges": {"a": (0, 1)}}, {"ranges": ["a"]}),
    (neyman.Samples, {"x": X, "theta": X, "weights": np.ones(40), "groups": np.arange(40),
                      "feature_names": ["x"], "parameter_names": ["mu"]},
     {"together": ["x", "theta", "weights", "groups", "feature_names", "parameter_names"]}),
    (EVENTS.take, {"indices": [0, 1]}, {}),
    (neyman.split, {"n": 10, "fractions": [0.5, 0.5], "seed": 1, "labels": None, "groups": None},
     {"fractions": ["fraction", "part"], "labels": ["number of events"]}),
    (neyman.k_fold, {"n": 10, "folds": 2, "seed": 1}, {"together": ["n", "folds"]}),
    (neyman.read_samples, {"path": "absent.csv", "features": None, "separator": ","}, {}),
    (neyman.Design, {"design": "sobol", "parameters": {"a": (0, 1)}}, {"parameters": [
        "Parameters"]}),
    (neyman.simulate, {"simulator": P, "n": 10, "design": "uniform", "seed": 1}, {}),
    (lambda **options: neyman.Logistic(**options).fit(X, Y), {"l2": 1e-3, "max_iterations": 5}, {}),
    (lambda **options: neyman.Mlp(epochs=1, **options).fit(X, Y), {"batch_size": 8, "seed": 1}, {}),
    (neyman.Logistic().fit, {"X": X, "y": Y, "sample_weight": np.ones(40)},
     {"X": ["x[", "x is"], "sample_weight": ["weight"]}),
    (LOGISTIC.predict, {"X": X}, {"X": ["x[", "row of x", "x is"]}),
    (neyman.Logistic().set_params, {"l2": 1.0}, {}),
    (neyman.classifier, {"kind": "mlp"}, {"kind": ["model"]}),
    (neyman.SmoothCalibrator().fit, {"numerator": X[:20, 0], "denominator": X[20:, 0],
                                     "numerator_weights": None, "weight_meaning": None},
     {"numerator_weights": ["weights", "numerator"], "weight_meaning": ["meaning"]}),
    (CALIBRATOR.log_ratios, {"logits": [0.0]}, {}),
    (CALIBRATOR.errors, {"logits": [0.0]}, {}),
    (neyman.HistogramCalibrator, {"bins": 5, "edges": "uniform"}, {}),
    (EXACT.log_ratios, {"x": X, "numerator": [0, 1], "denominator": [1, 1]},
     {"numerator": ["sigma"], "denominator": ["sigma"]}),
    (lambda **options: neyman.ClassifierRatio(X[:20], X[20:], classifier="logistic", folds=2,
                                              replicas=0, **options),
     {"seed": 1, "numerator_weights": np.ones(20), "normalise": True}, {"numerator_weights": [
         "weights"]}),
    (lambda **options: neyman.Likelihood(EXACT, **options), {"x": X, "weights": np.ones(40),
                                                             "constraints": None},
     {"constraints": ["mu"], "together": ["x", "weights"]}),
    (LIKELIHOOD, {"theta": [0, 1]}, {}),
    (LIKELIHOOD.gradient, {"theta": [0, 1]}, {"theta": ["mu", "sigma"]}),
    (LIKELIHOOD.negative, {"theta": [0, 1]}, {}),
    (lambda **options: LIKELIHOOD.interval(best=BEST, **options),
     {"parameter": "mu", "level": 0.9, "threshold": None}, {}),
    (lambda **options: LIKELIHOOD.scan(best=BEST, points=2, **options),
     {"parameter": "mu", "low": 0, "high": 1}, {}),
    (lambda **options: LIKELIHOOD.test_statistic(best=BEST, **options), {"theta": [0, 1]},
     {"theta": ["mu", "sigma"]}),
    (lambda **options: LIKELIHOOD.profile_statistic(best=BEST, **options), {"fixed": {"mu": 0.1}},
     {}),
    (LIKELIHOOD.fit, {"fixed": {"mu": 0.1}, "start": [0, 1], "tolerance": 1e-6}, {}),
    (neyman.Study, {"study": STUDY, "folder": ".", "seed": 1}, {"study": ["parameters"]}),
    (lambda simulator: neyman.Study({**STUDY, "simulator": simulator}),
     {"simulator": STUDY["simulator"]}, {}),
    (lambda classifier: neyman.Study({**STUDY, "classifier": classifier}),
     {"classifier": {"kind": "mlp"}}, {"classifier": ["model"]}),
    (neyman.PythonSimulator, {"function": lambda theta, n, rng: np.zeros(n),
                              "parameters": {"a": (0, 1)}, "features": None, "workers": 0},
     {"parameters": ["Parameters"]}),
    (neyman.Kde, {"events": X, "weights": np.ones(40), "bandwidth": 0.5},
     {"events": ["event ", "column"], "together": ["events", "weights", "bandwidth"]}),
    (neyman.Empirical, {"events": X, "weights": np.ones(40)},
     {"events": ["event "], "together": ["events", "weights"]}),
    (neyman.Histogram, {"edges": [0, 1, 2], "counts": [1, 2]},
     {"counts": ["contents"], "together": ["edges", "counts"]}),
    (neyman.Histogram.fill, {"events": X, "weights": np.ones(40), "edges": None, "bins": 5,
                             "binning": "uniform"},
     {"events": ["event "], "weights": ["contents"],
      "together": ["events", "weights", "edges", "bins", "binning"]}),
    (neyman.RatioEvents, {"numerator": X, "denominator": X, "numerator_log_ratios": X[:, 0],
                          "denominator_log_ratios": X[:, 0], "numerator_weights": np.ones(40),
                          "feature_names": ["x"]},
     {"together": ["numerator", "denominator", "numerator_log_ratios", "denominator_log_ratios",
                   "numerator_weights", "feature_names"]}),
    (neyman.diagnostics.closure, {"events": RATIO_EVENTS, "bins": 5, "tolerance": 0.01}, {}),
    (neyman.diagnostics.reliability, {"events": RATIO_EVENTS, "bins": 5, "tolerance": 0.01}, {}),
    (neyman.diagnostics.normalisation, {"events": RATIO_EVENTS, "tolerance": 0.01}, {}),
    (neyman.diagnostics.wilks, {"statistics": [1.0, 2.0], "degrees": 1}, {}),
    (neyman.diagnostics.coverage, {"levels": [0.5], "inside": [3], "datasets": 6},
     {"levels": ["level"], "together": ["levels", "inside", "datasets"]}),
    (neyman.diagnostics.reference, {"grid": [0.0, 1.0, 2.0],
                                    "log_likelihoods": {"a": [0, 1, 0], "b": [0, 2, 0]}},
     {"together": ["grid", "log_likelihoods"]}),
    (neyman.diagnostics.area_under_curve,
     {"numerator": X, "denominator": X, "denominator_weights": np.ones(40)},
     {"together": ["denominator", "denominator_weights"]}),
    (neyman.Workspace, {"spec": MODEL.workspace.to_dict()}, {}),
    (neyman.Workspace.from_json, {"text": MODEL.workspace.to_json()}, {}),
    (neyman.Workspace.from_file, {"path": "absent.json"}, {}),
    (neyman.StatisticalModel, {"workspace": MODEL.workspace, "unbinned": [], "measurement": ""},
     {"workspace": ["spec"]}),
    (neyman.UnbinnedEvents, {"ratios": {"a": [1.0]}, "variations": None, "weights": [1.0]},
     {"together": ["ratios", "weights"]}),
    (neyman.UnbinnedChannel, {"name": "c", "components": {"a": {"yield": 3}}, "observed": RATIOS,
                              "simulated": RATIOS, "normalise": True},
     {"together": ["components", "observed", "simulated"]}),
    (MODEL.expected, {"theta": [1, 0]}, {"theta": ["mu", "size"]}),
    (MODEL.data, {"counts": [74, 77], "auxiliary": [0.0]}, {}),
    (MODEL.sampled, {"theta": [1, 0], "seed": 1}, {"theta": ["mu", "size"]}),
    (MODEL.likelihood(), {"theta": [1, 0]}, {}),
    (neyman.measurements.fit_model, {"model": MODEL, "data": None, "start": [1, 0],
                                     "fixed": {"mu": 1}, "tolerance": 1e-9}, {}),
    (lambda **options: neyman.measurements.profile_interval(MODEL, best=MODEL_FIT, **options),
     {"parameter": "mu", "level": 0.9}, {}),
    (lambda **options: neyman.measurements.profile_scan(MODEL, best=MODEL_FIT, **options),
     {"values": [1.0], "parameter": "mu"}, {}),
    (neyman.measurements.pulls, {"model": MODEL, "best": MODEL_FIT}, {"best": ["fit"]}),
    (neyman.measurements.error_breakdown, {"model": MODEL, "groups": {"a": ["size"]}}, {}),
    (neyman.measurements.test_statistic, {"model": MODEL, "statistic": "q0", "tested": 0.0},
     {"tested": ["mu"], "statistic": ["mu", "tested"]}),
    (neyman.measurements.asymptotic_test, {"model": MODEL, "tested": 1.0, "statistic": "q-tilde"},
     {"tested": ["mu"]}),
    (neyman.measurements.asymptotic_scan, {"model": MODEL, "values": [1.0]}, {"values": ["mu"]}),
    (neyman.measurements.upper_limit, {"model": MODEL, "level": 0.9, "highest": 8.0},
     {"level": ["CL_s"], "highest": ["mu", "CL_s"]}),
    (neyman.measurements.discovery, {"model": MODEL, "expected": 1.0}, {}),
    (neyman.measurements.toy_test, {"model": MODEL, "tested": 1.0, "seed": 1},
     {"tested": ["mu"]}),
    (lambda **options: neyman.measurements.summarise(MODEL, **options),
     {"level": 0.9, "statistic": "q-tilde", "curve_points": 5, "groups": {}}, {}),
    (neyman.load_model, {"path": "absent.h5"}, {}),
    (neyman.load_ratio, {"path": "absent.h5"}, {}),
    (neyman.load_classifier, {"path": "absent.h5"}, {}),
]


def huge(value):
    """Whether it can ask for more memory than there is."""
    return isinstance(value, (int, np.integer)) and value > 2**30


def names_what_is_wrong(error, changed, chosen, names):
    """Whether the error names an argument that was changed, or one that must fit to it."""
    if isinstance(error, MemoryError):
        return any(huge(changed[name]) for name in chosen)
    if isinstance(error, neyman.FileError):
        paths = [os.fsdecode(changed[name]) for name in changed
                 if isinstance(changed[name], (str, bytes))]
        return any(word in str(error) for word in (*paths, *chosen))
    together = names.get("together", [])
    blamed = {*chosen, *(together if set(chosen) & set(together) else ())}
    known = [alias for name in blamed for alias in (name, *names.get(name, ()))]
    return isinstance(error, neyman.Error) and any(name in str(error) for name in known)


def test_no_call_crashes_and_every_error_names_the_argument():
    choose = random.Random(20240607)
    values = wrong_values()
    wrong, refused = [], 0
    for _ in range(CALLS):
        call, arguments, names = choose.choice(CALLED)
        changed = dict(arguments)
        chosen = [name for name in changed if choose.random() < 0.3] or [
            choose.choice(list(changed))]
        for name in chosen:
            value = choose.choice(values)
            # What a function raises that was given as a simulator is the user's own.
            changed[name] = 3 if callable(value) and name in ("function", "simulator") else value
        try:
            call(**changed)
        except Exception as error:
            refused += 1
            if not names_what_is_wrong(error, changed, chosen, names):
                wrong.append((getattr(call, "__qualname__", call), chosen, repr(error)))
    assert refused > CALLS / 3
    assert not wrong, (len(wrong), wrong[:5])


@pytest.mark.parametrize("value", wrong_values(), ids=lambda value: type(value).__name__)
def test_settings_of_any_kind(value):
    for key in ("mean", "sigma"):
        try:
            neyman.distribution("normal", **{"mean": 0, "sigma": 1, key: value}, parameters={})
        except neyman.ArgumentError as error:
            assert key in str(error)
