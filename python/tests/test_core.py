"""Versions, errors, parameters, settings."""

import copy
import pathlib
import pickle
import re

import numpy as np
import pytest

import neyman
from neyman import _core


def test_the_version_is_that_of_the_project():
    root = pathlib.Path(__file__).resolve().parents[2]
    wanted = re.search(r"project\(neyman VERSION ([\d.]+)", (root / "CMakeLists.txt").read_text())
    assert neyman.__version__ == wanted.group(1)
    assert "Eigen" in neyman.built_with()


def test_errors_are_those_of_python_too(tmp_path):
    with pytest.raises(ValueError) as caught:
        neyman.Normal(0, -1)
    assert isinstance(caught.value, neyman.ArgumentError) and isinstance(caught.value, neyman.Error)
    assert "sigma" in str(caught.value) and "-1" in str(caught.value)
    with pytest.raises(OSError) as caught:
        neyman.read_samples(tmp_path / "absent.csv")
    assert isinstance(caught.value, neyman.FileError) and isinstance(caught.value, neyman.Error)
    assert "absent.csv" in str(caught.value)
    assert issubclass(neyman.SimulatorError, RuntimeError)
    assert issubclass(neyman.StudyError, ValueError)
    for error in (neyman.ArgumentError, neyman.FileError, neyman.SimulatorError, neyman.StudyError):
        assert str(pickle.loads(pickle.dumps(error("the message")))) == "the message"


def test_parameters():
    parameters = neyman.Parameters({"b": (0, 2)}, a={"range": [-1, 1], "truth": 0.5})
    assert parameters.names == ["b", "a"] == list(parameters)
    assert parameters.truth == {"a": 0.5} and parameters.nuisance == []
    np.testing.assert_array_equal(parameters.middle(), [1, 0])
    for same in (pickle.loads(pickle.dumps(parameters)), copy.deepcopy(parameters),
                 neyman.Parameters(parameters.to_dict())):
        assert same == parameters and same.truth == parameters.truth
    assert parameters != neyman.Parameters(b=(0, 2))
    assert neyman.Parameters(a={"range": (0, 1), "role": "nuisance"}).nuisance == ["a"]


def test_periodic_parameters():
    parameters = neyman.Parameters(a=(0, 1), phi={"range": (-np.pi, np.pi), "periodic": True})
    assert parameters.periodic == ["phi"]
    assert parameters.to_dict()["phi"] == {"range": [-np.pi, np.pi], "periodic": True}
    for same in (pickle.loads(pickle.dumps(parameters)), neyman.Parameters(parameters.to_dict())):
        assert same == parameters and same.periodic == ["phi"]
    assert parameters != neyman.Parameters(a=(0, 1), phi=(-np.pi, np.pi))
    with pytest.raises(neyman.ArgumentError, match="phi: periodic is 'yes', but must be True"):
        neyman.Parameters(phi={"range": (0, 1), "periodic": "yes"})


@pytest.mark.parametrize("ranges", [(1, 0), (0, 0), 3, "ab", (0, float("nan")), (0, float("inf")),
                                    (1, 2, 3), None, {"truth": 1}, {"range": (0, 1), "x": 1}],
                         ids=str)
def test_parameters_that_do_not_fit(ranges):
    with pytest.raises(neyman.ArgumentError, match="a"):
        neyman.Parameters(a=ranges)


def test_settings_are_those_of_a_dict():
    given = {"flag": True, "whole": 3, "number": 0.5, "text": "t", "list": [1, [2.5, "x"]],
             "table": {"inner": {}}, "absent": None, "tuple": (1, 2), "path": pathlib.Path("a/b"),
             "array": np.array([[1.5, 2], [3, 4]]), "float32": np.float32(0.5),
             "int32": np.int32(7), "bool": np.bool_(True)}
    assert _core._roundtrip(given) == {
        "flag": True, "whole": 3, "number": 0.5, "text": "t", "list": [1, [2.5, "x"]],
        "table": {"inner": {}}, "tuple": [1, 2], "path": "a/b", "array": [[1.5, 2.0], [3.0, 4.0]],
        "float32": 0.5, "int32": 7, "bool": True}
    assert list(_core._roundtrip({"z": 1, "a": 2})) == ["z", "a"]


@pytest.mark.parametrize("given, words", [
    ({"a": {"b": [1, object()]}}, r"a\.b\[1\] is a object"), ({1: 2}, "key is a int"),
    ({"a": 2**64}, "must fit into 64 bits"), ([1], "the settings is a list"),
    ({"a": {1, 2}}, "a is a set"), ({"a": lambda: 1}, "a is a function"),
], ids=str)
def test_settings_that_are_none(given, words):
    with pytest.raises(neyman.ArgumentError, match=words):
        _core._roundtrip(given)


def test_settings_that_hold_themselves():
    endless = {}
    endless["a"] = endless
    with pytest.raises(neyman.ArgumentError, match="too deep"):
        _core._roundtrip(endless)


def test_threads():
    try:
        neyman.set_threads(1)
        one = neyman.Normal(0, 1).sample(50000, seed=3)
        neyman.set_threads(2)
        assert neyman.threads() == 2
        np.testing.assert_array_equal(one, neyman.Normal(0, 1).sample(50000, seed=3))
    finally:
        neyman.set_threads(0)
