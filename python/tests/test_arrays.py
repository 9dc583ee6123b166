"""Arrays in and out: what is seen in place, what is copied, and what is refused by name."""

import numpy as np
import pytest

import neyman
from neyman import _core

GRID = np.arange(12.0).reshape(4, 3)


def seen(value, columns=()):
    """The numbers as the core sees them, and whether it sees them in place."""
    numbers, address = _core._table(value, list(columns))
    data = getattr(value, "__array_interface__", {"data": (None,)})["data"][0]
    return numbers, address == data


@pytest.mark.parametrize("name, array", {
    "C order": GRID,
    "every other row": GRID[::2],
    "some columns": GRID[:, 1:],
    "rows and columns": GRID[1::2, :2],
    "one dimension": GRID[:, 0].copy(),
    "a column of a table": GRID[:, 1],
    "one row in Fortran order": np.asfortranarray(GRID[:1]),
    "one column in Fortran order": np.asfortranarray(GRID[:, :1]),
    "memory map": np.asarray(GRID).view(np.ndarray),
}.items())
def test_doubles_with_contiguous_rows_are_seen_in_place(name, array):
    numbers, in_place = seen(array)
    assert in_place
    np.testing.assert_array_equal(numbers, array.reshape(len(array), -1))


def test_read_only_arrays_are_seen_in_place():
    array = GRID.copy()
    array.flags.writeable = False
    assert seen(array)[1]


@pytest.mark.parametrize("array", [
    np.asfortranarray(GRID), GRID[::-1], GRID[:, ::2], GRID[:, ::-1], GRID.T,
    GRID.astype(np.float32), GRID.astype(np.float16), GRID.astype(np.int64), GRID.astype(np.uint8),
    GRID.astype(">f8"), GRID > 3, GRID.tolist(), np.broadcast_to(GRID[0], (4, 3)),
    GRID.astype(object), np.ma.MaskedArray(GRID), np.asmatrix(GRID),
    np.frombuffer(b"\0" + GRID.tobytes(), np.uint8)[1:].view(np.float64).reshape(4, 3),
], ids=str)
def test_other_numbers_are_copied(array):
    numbers, _ = seen(array)
    np.testing.assert_array_equal(numbers, np.asarray(array, dtype=np.float64))


def test_float32_keeps_its_values():
    array = np.array([[0.1, 1e30]], dtype=np.float32)
    np.testing.assert_array_equal(seen(array)[0], array.astype(np.float64))


def test_structured_arrays_by_name():
    array = np.array([(1, 2.5, 3), (4, 5.5, 6)], dtype=[("b", "i4"), ("a", "f4"), ("c", "f8")])
    np.testing.assert_array_equal(seen(array)[0], [[1, 2.5, 3], [4, 5.5, 6]])
    np.testing.assert_array_equal(seen(array, ["c", "a"])[0], [[3, 2.5], [6, 5.5]])
    with pytest.raises(neyman.ArgumentError, match="x has the columns b, a, c, but must have 'd'"):
        seen(array, ["d"])


def test_pandas_by_name():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"b": [1, 2], "a": np.array([3.5, 4.5], dtype=np.float32)})
    np.testing.assert_array_equal(seen(frame)[0], [[1, 3.5], [2, 4.5]])
    np.testing.assert_array_equal(seen(frame, ["a"])[0], [[3.5], [4.5]])
    with pytest.raises(neyman.ArgumentError, match="must have 'z'"):
        seen(frame, ["a", "z"])
    with pytest.raises(neyman.ArgumentError, match="x is array.*but must be an array of numbers"):
        seen(pandas.DataFrame({"a": ["one", "two"]}))
    np.testing.assert_array_equal(seen(frame["a"])[0], [[3.5], [4.5]])


@pytest.mark.parametrize("value, words", [
    ("text", "an array of <U4"),
    (np.array(["a", "b"]), "an array of <U1"),
    (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\)"),
    (1.0, r"shape \(\)"),
    ([[1, 2], [3]], "must be an array of numbers"),
    (object(), "must be an array of numbers"),
    (np.array([1 + 2j]), "an array of complex128"),
    (np.array(["2020-01-01"], dtype="datetime64[D]"), "an array of datetime64"),
    (np.ma.MaskedArray([1.0, 2.0], mask=[True, False]), "masked"),
    ([10**400], "must be an array of numbers"),
], ids=str)
def test_what_holds_no_numbers_is_refused_by_name(value, words):
    with pytest.raises(neyman.ArgumentError, match="table: x is .*" + words):
        seen(value)


def test_results_are_handed_over_and_belong_to_python():
    x = neyman.Normal(0, 1).sample(10, seed=1)
    assert x.flags.writeable and x.flags.c_contiguous and not x.flags.owndata
    kept = x.copy()
    del_me = x[2:]
    del x
    np.testing.assert_array_equal(del_me, kept[2:])


def test_attributes_are_views_that_keep_their_owner():
    events = neyman.Samples(GRID)
    x = events.x
    assert np.shares_memory(x, events.x) and not x.flags.writeable
    del events
    np.testing.assert_array_equal(x, GRID)


@pytest.mark.parametrize("theta", [[1, 2], (1, 2), np.array([1, 2]), np.array([1.0, 2.0]),
                                   {"b": 2, "a": 1}, np.array([1, 0, 2])[::2],
                                   np.float32([1, 2])], ids=str)
def test_points(theta):
    parameters = neyman.Parameters(a=(0, 3), b=(0, 3))
    np.testing.assert_array_equal(parameters.point(theta), [1.0, 2.0])


@pytest.mark.parametrize("theta, words", [
    ([1], r"\[1\], but must be 2 values \(a, b\)"), (None, "2 values"), ({"a": 1}, "lacks 'b'"),
    ({"a": 1, "c": 2}, "names 'c'"), ("ab", "theta is"), ([1, float("nan")], "finite"),
    ([[1, 2]], "2 values"), (object(), "theta is"), ({"a": 1, "b": "x"}, "theta is"),
], ids=str)
def test_points_that_do_not_fit(theta, words):
    with pytest.raises(neyman.ArgumentError, match=words):
        neyman.Parameters(a=(0, 3), b=(0, 3)).point(theta)


def test_one_parameter_may_be_a_number():
    for theta in (2, 2.0, np.float32(2), np.array(2.0), [2]):
        np.testing.assert_array_equal(neyman.Parameters(a=(0, 3)).point(theta), [2.0])
