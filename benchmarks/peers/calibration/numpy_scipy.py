"""Calibration of scores with scikit-learn, SciPy, NumPy and boost-histogram, and the second
example's events with NumPy."""

import pathlib
import sys

import boost_histogram as bh
import numpy as np
from scipy.stats import gaussian_kde
from sklearn.isotonic import IsotonicRegression

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE.parent))
sys.path.append(str(HERE.parent / "multidimensional"))
from scikit_learn import simulate  # noqa: E402
from worker import serve, timed  # noqa: E402

SHIFT, WIDTH = 1.0, 1.5  # log r = −2 SHIFT z / WIDTH²


class Contender:
    def answer(self, request):
        return getattr(self, request.pop("task"))(**request)

    def make(self, folder, scores, precision):
        """Scores of a classifier that exaggerates: normals left and right of zero."""
        rng = np.random.default_rng(1)
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name, shift in (("numerator", -SHIFT), ("denominator", SHIFT)):
            z = rng.normal(shift, WIDTH, scores // 2).astype(precision)
            z.astype("<f8").tofile(folder / f"{name}.f64")
        return {}

    def load(self, folder):
        self.sides = [np.fromfile(pathlib.Path(folder) / f"{name}.f64", "<f8")
                      for name in ("numerator", "denominator")]
        self.scores = np.concatenate(self.sides)
        self.labels = np.repeat([0.0, 1.0], [len(side) for side in self.sides])
        return {}

    def exact(self, at):
        return {"values": (-2 * SHIFT / WIDTH ** 2 * np.asarray(at)).tolist()}

    def fit(self, kind, bins=50, events=None):
        return timed(lambda: getattr(self, f"fit_{kind}")(bins, events))[1]

    def fit_isotonic(self, bins, events):
        # y in [0, 1] and increasing: the probability of the denominator
        self.model = IsotonicRegression(out_of_bounds="clip").fit(self.scores, self.labels)

        def log_ratio(z):
            p = np.clip(self.model.predict(z), 1e-9, 1 - 1e-9)
            return np.log((1 - p) / p)
        self.log_ratio = log_ratio

    def use_counts(self, low, width, counts):
        values = np.log((counts[0] + 0.5) / (counts[1] + 0.5) * len(self.sides[1]) / len(self.sides[0]))
        last = len(values) - 1
        self.log_ratio = lambda z: values[np.clip((z - low) / width, 0, last).astype(np.intp)]

    def fit_numpy_histogram(self, bins, events):
        low, high = self.scores.min(), self.scores.max()
        counts = [np.histogram(side, bins, (low, high))[0] for side in self.sides]
        self.use_counts(low, (high - low) / bins, counts)

    def fit_boost_histogram(self, bins, events):
        low, high = self.scores.min(), self.scores.max()
        axis = bh.axis.Regular(bins, low, np.nextafter(high, np.inf))
        counts = [bh.Histogram(axis).fill(side).values() for side in self.sides]
        self.use_counts(low, (high - low) / bins, counts)

    def fit_kde(self, bins, events):
        densities = [gaussian_kde(side[:events], "silverman") for side in self.sides]
        self.log_ratio = lambda z: densities[0].logpdf(z) - densities[1].logpdf(z)

    def evaluate(self, at, events=None):
        found, times = timed(lambda: self.log_ratio(self.scores[:events]))
        return times | {"values": self.log_ratio(np.asarray(at)).tolist()}

    def sample(self, rows, seed):
        rng = np.random.default_rng(seed)
        x, times = timed(lambda: simulate(rng, rows, np.array([1.0, -1.0])))
        return times | {"means": x.mean(0).tolist()}


if __name__ == "__main__":
    serve(Contender().answer)
