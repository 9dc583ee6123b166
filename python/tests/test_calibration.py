"""Calibrators: against the exact ratio of normal scores."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import neyman
from neyman import _core
from neyman.calibration import _classes

KINDS = neyman.calibrator_kinds()
ROOT2 = 2**0.5
Z = np.linspace(-2, 2, 9)


def scores(n=20000):
    """log r = −z exactly."""
    return (neyman.Normal(-1, ROOT2).sample(n, seed=1)[:, 0],
            neyman.Normal(1, ROOT2).sample(n, seed=2)[:, 0])


def test_every_kind_has_a_class():
    assert sorted(_classes) == sorted(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_options_are_those_of_the_core(kind):
    for name, option in inspect.signature(_classes[kind].__init__).parameters.items():
        if name == "self":
            continue
        assert option.default is None
        with pytest.raises(neyman.ArgumentError, match=name) as caught:
            _core.Calibrator({"kind": kind, name: {"not": "an option"}})
        assert "unknown" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_the_ratio_of_normal_scores(kind, tmp_path):
    made = neyman.calibrator(kind)
    assert not made.fitted
    assert made.fit(*scores()) is made and made.fitted
    # 20 000 events a side: 0.02 to 0.1 for the curves, more at the ends for the counting ones.
    assert np.abs(made.log_ratios(Z) + Z).max() < 0.25
    errors = made.errors(Z)
    assert np.all(errors >= 0) and np.all(errors < 0.3)
    low, high = made.range
    assert low < -4 and high > 4
    assert made.count_outside([low - 1, 0, high + 1]) == 2
    assert np.all(np.isfinite(made.log_ratios([-1e5, 1e5])))
    for same in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        np.testing.assert_array_equal(same.log_ratios(Z), made.log_ratios(Z))
        assert type(same) is type(made)
    made.save(tmp_path / "calibrator.h5")
    loaded = neyman.load_calibrator(tmp_path / "calibrator.h5")
    np.testing.assert_array_equal(loaded.log_ratios(Z), made.log_ratios(Z))
    assert type(loaded) is type(made)


def test_whole_weights_are_repetitions():
    z0, z1 = scores(300)
    w = np.arange(300) % 4
    one = neyman.SmoothCalibrator().fit(z0, z1, numerator_weights=w, denominator_weights=w)
    other = neyman.SmoothCalibrator().fit(np.repeat(z0, w), np.repeat(z1, w))
    np.testing.assert_allclose(one.log_ratios(Z), other.log_ratios(Z), atol=1e-9)
    np.testing.assert_allclose(one.errors(Z), other.errors(Z), atol=1e-9)
    relative = neyman.SmoothCalibrator().fit(z0, z1, numerator_weights=w, denominator_weights=w,
                                             weight_meaning="relative")
    assert np.all(relative.errors(Z) > one.errors(Z))


@pytest.mark.parametrize("call, words", [
    (lambda: neyman.HistogramCalibrator(bins=-1), "bins"),
    (lambda: neyman.HistogramCalibrator(edges="odd"), "edges"),
    (lambda: neyman.calibrator("smoth"), "smoth"),
    (lambda: neyman.calibrator("smooth", knot=1), "knot"),
    (lambda: neyman.SmoothCalibrator().fit([np.nan], [1.0]), "numerator"),
    (lambda: neyman.SmoothCalibrator().fit([], [1.0]), "numerator"),
    (lambda: neyman.SmoothCalibrator().fit([0.0], "ab"), "denominator is"),
    (lambda: neyman.SmoothCalibrator().fit([0.0], [1.0], numerator_weights=[1, 2]), "weights"),
    (lambda: neyman.SmoothCalibrator().fit([0.0], [1.0], weight_meaning="x"), "meaning"),
    (lambda: neyman.SmoothCalibrator().log_ratios([0.0]), "fit"),
    (lambda: neyman.SmoothCalibrator().fit([0.0], [1.0]).log_ratios([np.inf]), "logit"),
])
def test_what_does_not_fit(call, words):
    with pytest.raises(neyman.ArgumentError, match=words):
        call()
