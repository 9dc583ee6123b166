"""Writes the rows that both sides train on: data.py FOLDER FEATURES ROWS HELD_OUT

Two normal samples, half of the rows each, in random order: x.f64 and y.u8 (1: denominator), the
training rows first, then the held-out ones; meta.json with the exact cross-entropy of the latter.
"""

import json
import pathlib
import sys

import numpy as np


def samples(features, rows, rng):
    """Rows, labels and the exact log-odds of the denominator."""
    y = rng.permutation(rows) % 2
    if features == 1:  # components c1 and c2 of the first example
        mean, sd = np.array([[0.0], [1.0]]), np.array([[2.0], [0.5]])
    else:  # shifted, wider and narrower by turns
        mean, sd = np.zeros((2, features)), np.ones((2, features))
        mean[1] = 0.4 * (np.arange(features) % 3 == 0)
        sd[1] = np.array([1.0, 1.3, 0.8])[np.arange(features) % 3]
    x = mean[y] + sd[y] * rng.standard_normal((rows, features))
    log_density = [-0.5 * (((x - mean[k]) / sd[k]) ** 2).sum(1) - np.log(sd[k]).sum() for k in (0, 1)]
    return x, y, log_density[1] - log_density[0]


def main(folder, features, rows, held_out):
    x, y, log_odds = samples(features, rows + held_out, np.random.default_rng(features))
    signed = np.where(y == 1, log_odds, -log_odds)[rows:]
    folder.mkdir(parents=True, exist_ok=True)
    x.astype("<f8").tofile(folder / "x.f64")
    y.astype("u1").tofile(folder / "y.u8")
    meta = {"features": features, "rows": rows, "held_out": held_out,
            "exact_cross_entropy": float(np.logaddexp(0, -signed).mean())}
    (folder / "meta.json").write_text(json.dumps(meta))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:]))
