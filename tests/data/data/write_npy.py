"""Writes the NPY files that npy_test.cpp reads: python3 write_npy.py, in this folder."""

import numpy as np
from numpy.lib import format as npy_format

table = 10 * np.arange(6)[:, None] + np.arange(3) + 1

for name, dtype, order in [
    ("f8_c", "<f8", "C"),
    ("f8_fortran", "<f8", "F"),
    ("f8_big_fortran", ">f8", "F"),
    ("f4_c", "<f4", "C"),
    ("f4_big_fortran", ">f4", "F"),
    ("i1_c", "i1", "C"),
    ("i2_big_c", ">i2", "C"),
    ("i4_fortran", "<i4", "F"),
    ("i8_c", "<i8", "C"),
    ("u1_c", "u1", "C"),
    ("u2_fortran", "<u2", "F"),
    ("u4_big_c", ">u4", "C"),
    ("u8_c", "<u8", "C"),
    ("f2", "<f2", "C"),
]:
    np.save(name + ".npy", np.asarray(table, dtype=dtype, order=order))

for version in (2, 3):
    with open(f"f8_version{version}.npy", "wb") as file:
        npy_format.write_array(file, table.astype("<f8"), version=(version, 0))

np.save("f4_vector.npy", np.array([0.5, -1.5, 2.5, 0.25], dtype="<f4"))
np.save("structured.npy", np.zeros(2, dtype=[("a", "<f8"), ("b", "<i4")]))
np.save("text.npy", np.array(["abc", "de"]))
np.save("cube.npy", np.zeros((2, 2, 2)))
np.save("scalar.npy", np.float64(1.0))
np.save("no_rows.npy", np.zeros((0, 3)))
np.save("no_columns.npy", np.zeros((3, 0)))
