"""Events in memory and in files."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import neyman


def events():
    return neyman.Samples([[1.5, 2], [3, 1 / 3]], theta=[[0.1], [0.2]], weights=[1, 0.5],
                          groups=[7, 8], feature_names=["a", "b"], parameter_names=["gamma"])


def test_samples_hold_what_they_were_given():
    held = events()
    assert len(held) == 2 and held.feature_names == ["a", "b"]
    np.testing.assert_array_equal(held.x, [[1.5, 2], [3, 1 / 3]])
    np.testing.assert_array_equal(held.theta, [[0.1], [0.2]])
    np.testing.assert_array_equal(held.groups, [7, 8])
    assert held.total_weight == 1.5 and held.effective_size == 1.5**2 / 1.25
    np.testing.assert_array_equal(held.take([1, 0]).x, held.x[::-1])
    assert len(held.append(held)) == 4 and len(held) == 2
    np.testing.assert_array_equal(np.asarray(held), held.x)
    assert neyman.Samples([1, 2, 3]).feature_names == ["x"]
    assert neyman.Samples([[1, 2]]).feature_names == ["x0", "x1"]


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy,
                                 lambda held: pickle.loads(pickle.dumps(held))])
def test_samples_are_copied_whole(how):
    assert how(events()) == events()


@pytest.mark.parametrize("arguments, words", [
    ({"x": [[1, float("nan")]]}, "nan"), ({"x": [[1]], "weights": [1, 2]}, "weights"),
    ({"x": [[1]], "weights": [float("inf")]}, "weight"), ({"x": [[1]], "groups": [0.5]}, "groups"),
    ({"x": [[1]], "theta": [[1]]}, "parameter_names"),
    ({"x": [[1]], "theta": [[1], [2]], "parameter_names": ["a"]}, "theta"),
    ({"x": [[1]], "feature_names": ["a", "b"]}, "feature_names"),
    ({"x": [[1]], "feature_names": "a"}, "feature_names"), ({"x": "a"}, "x is"),
    ({"x": [[1]], "groups": ["a"]}, "groups"),
], ids=str)
def test_samples_that_do_not_fit(arguments, words):
    with pytest.raises(neyman.ArgumentError, match=words):
        neyman.Samples(**arguments)


@pytest.mark.parametrize("index", [-1, 2, 2**62])
def test_indices_outside(index):
    with pytest.raises(neyman.ArgumentError, match="indices"):
        events().take([index])


def test_pandas_keeps_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"mass": [1.0, 2.0], "charge": [3, 4]})
    assert neyman.Samples(frame).feature_names == ["mass", "charge"]
    np.testing.assert_array_equal(neyman.Samples(frame, feature_names=["charge"]).x, [[3], [4]])
    back = events().to_pandas()
    assert list(back) == ["a", "b", "gamma", "weight", "group"]
    np.testing.assert_array_equal(back["b"], [2, 1 / 3])


@pytest.mark.parametrize("extension", ["csv", "h5"])
def test_files_bring_the_same_bits_back(tmp_path, extension):
    path = tmp_path / f"events.{extension}"
    neyman.write_samples(path, events())
    assert neyman.file_columns(path) == ["a", "b", "gamma", "weight", "group"]
    assert neyman.read_samples(path, parameters=["gamma"], weight="weight",
                               group="group") == events()


def test_npy_is_numpys(tmp_path):
    x = np.array([[1.5, 2], [3, 1 / 3]])
    neyman.write_samples(tmp_path / "ours.npy", x)
    np.testing.assert_array_equal(np.load(tmp_path / "ours.npy"), x)
    np.save(tmp_path / "theirs.npy", np.asfortranarray(x.astype(np.float32)))
    np.testing.assert_array_equal(neyman.read_samples(tmp_path / "theirs.npy").x,
                                  x.astype(np.float32))


def test_missing_values_are_refused_or_dropped(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("a;b\n1;2\n3;\n")
    with pytest.raises(neyman.FileError, match="events.csv:3"):
        neyman.read_samples(path, separator=";")
    np.testing.assert_array_equal(neyman.read_samples(path, separator=";", drop_invalid=True).x,
                                  [[1, 2]])
    with pytest.raises(neyman.ArgumentError, match="separator"):
        neyman.read_samples(path, separator=";;")
    with pytest.raises(neyman.ArgumentError, match="xls"):
        neyman.read_samples(path, format="xls")


def test_parts_hold_every_event_once():
    parts = neyman.split(101, [0.5, 0.3, 0.2], seed=4)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(101))
    labels = np.repeat([0, 1], [90, 10])
    assert [labels[fold].sum() for fold in neyman.k_fold(100, 5, labels=labels)] == [2] * 5
    groups = np.repeat(np.arange(20), 5)
    for fold in neyman.k_fold(100, 4, groups=groups):
        assert all(np.isin(np.flatnonzero(groups == group), fold).all()
                   for group in np.unique(groups[fold]))
    with pytest.raises(neyman.ArgumentError, match="fraction"):
        neyman.split(10, [0.5, 0.6])
    for n in (-1, 1.5, "a", None):
        with pytest.raises(neyman.ArgumentError, match="n is"):
            neyman.split(n, [0.5, 0.5])


def test_damaged_hdf5_files_leave_no_trace(tmp_path):
    # HDF5 1.10 does not let go of some damaged files, and says so when the process ends.
    whole = tmp_path / "whole.h5"
    neyman.write_samples(whole, neyman.Samples(np.ones((100, 2))))
    code = """
import sys, numpy as np, neyman
whole = np.frombuffer(open(sys.argv[1], "rb").read(), np.uint8)
rng, refused = np.random.default_rng(1), 0
for _ in range(60):
    damaged = whole.copy()
    damaged[rng.integers(0, len(whole), 4)] = rng.integers(0, 256, 4)
    open(sys.argv[2], "wb").write(damaged.tobytes())
    try:
        neyman.read_samples(sys.argv[2])
    except neyman.FileError:
        refused += 1
assert refused > 20, refused
"""
    done = subprocess.run([sys.executable, "-c", code, whole, tmp_path / "damaged.h5"],
                          capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
