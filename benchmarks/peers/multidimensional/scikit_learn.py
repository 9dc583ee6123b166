"""The second example as one writes it with NumPy, SciPy and scikit-learn.

The network is the published one (MLPRegressor with two layers of 40 on standardised inputs, scikit-
learn's Adam until the loss no longer falls by 1e-6), trained in float32, which is its faster half.
The calibration at a θ is the published one too: histograms of the score with 50 equal bins for 250 000
new events and for 250 000 of the denominator, which are simulated once. It comes in two forms:
`plain` calls the estimator; `lean` simulates and scores in float32 with NumPy alone, in parts
that stay in the cache. Bayesian optimisation: Gaussian process, expected improvement, and contours
of the surrogate, as published.
"""

import pathlib
import sys
import warnings

import contourpy
import numpy as np
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.neural_network import MLPRegressor

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from worker import peak_memory, serve, timed

warnings.simplefilter("ignore", ConvergenceWarning)

R = np.array([[1.31229955, 0.10499961, 0.48310515, -0.3249938, -0.26387927],
              [0.10499961, 1.15833058, -0.55865473, 0.25275522, -0.39790775],
              [0.48310515, -0.55865473, 2.25874579, -0.52087938, -0.39271231],
              [-0.3249938, 0.25275522, -0.52087938, 1.4034925, -0.63521059],
              [-0.26387927, -0.39790775, -0.39271231, -0.63521059, 1.0]])
RANGE = (-3.0, 3.0)
BINS = 50
CHUNK = 4096  # rows that stay in the cache
CANDIDATES = 1000
INITIAL = 10


def simulate(rng, count, theta):
    """Events at one θ, or each at its own, in the precision of θ."""
    kind = theta.dtype
    z = np.empty((5, count), kind)
    rng.standard_normal(dtype=kind, out=z[0])
    z[0] += theta[..., 0]
    rng.standard_normal(dtype=kind, out=z[1])
    z[1] *= 3
    z[1] += theta[..., 1]
    rng.standard_normal(dtype=kind, out=z[2])
    second = rng.random(count, dtype=kind) < 0.5
    z[2] *= np.where(second, kind.type(0.5), kind.type(1.0))
    z[2] += np.where(second, kind.type(2.0), kind.type(-2.0))
    rng.standard_exponential(dtype=kind, out=z[3])
    z[3] /= 3
    rng.standard_exponential(dtype=kind, out=z[4])
    z[4] *= 2
    return z.T @ R.T.astype(kind)


class Contender:
    def answer(self, request):
        return getattr(self, request.pop("task"))(**request)

    def load(self, observed, seed, **_):
        self.observed = np.loadtxt(observed, delimiter=",", skiprows=1)
        self.seed, self.rng = seed, np.random.default_rng(seed)
        return {}

    def simulate(self, samples):
        def work():
            half = samples // 2
            theta = self.rng.uniform(*RANGE, (samples, 2))
            self.x = np.empty((samples, 7))
            self.x[:, 5:] = theta
            self.x[:half, :5] = simulate(self.rng, half, theta[:half])
            self.x[half:, :5] = simulate(self.rng, samples - half, np.zeros(2))
            self.y = np.repeat(np.float32([0, 1]), [half, samples - half])
        return timed(work)[1]

    def train(self, **_):
        def work():
            self.mean, self.scale = self.x.mean(0), self.x.std(0)
            rows = ((self.x - self.mean) / self.scale).astype(np.float32)
            self.network = MLPRegressor(hidden_layer_sizes=(40, 40), tol=1e-6, random_state=self.seed)
            self.network.fit(rows, self.y)
        _, times = timed(work)
        del self.x, self.y
        return times | {"epochs": self.network.n_iter_}

    def scores_plain(self, x, theta):
        rows = np.hstack((x, np.tile(theta, (len(x), 1))))
        return self.network.predict(((rows - self.mean) / self.scale).astype(np.float32))

    def scores_lean(self, x, theta):
        """θ and the standardisation go into the first layer's weights."""
        w = self.network.coefs_[0] / self.scale[:, None]
        b = self.network.intercepts_[0] - (self.mean / self.scale) @ self.network.coefs_[0]
        b = (b + theta @ w[5:]).astype(np.float32)
        w = w[:5].astype(np.float32)
        (_, w1, w2), (_, b1, b2) = self.network.coefs_, self.network.intercepts_
        out = np.empty(len(x), np.float32)
        first, second = np.empty((CHUNK, 40), np.float32), np.empty((CHUNK, 40), np.float32)
        for i in range(0, len(x), CHUNK):
            rows = x[i:i + CHUNK]
            h, g = first[:len(rows)], second[:len(rows)]
            np.matmul(rows, w, out=h)
            h += b
            np.maximum(h, 0, out=h)
            np.matmul(h, w1, out=g)
            g += b1
            np.maximum(g, 0, out=g)
            out[i:i + CHUNK] = (g @ w2)[:, 0]
        return out + b2

    def prepare(self, events, form):
        kind = np.float32 if form == "lean" else np.float64
        self.events, self.kind = events, np.dtype(kind)
        self.scores = self.scores_lean if form == "lean" else self.scores_plain
        self.denominator = simulate(np.random.default_rng(self.seed), events,
                                    np.zeros(2, self.kind))
        self.data = self.observed.astype(self.kind)

    def log_likelihood(self, theta):
        """Simulates, calibrates and sums over the observed events."""
        numerator = simulate(self.rng, self.events, theta.astype(self.kind))
        top, bottom = self.scores(numerator, theta), self.scores(self.denominator, theta)
        low, high = min(top.min(), bottom.min()), max(top.max(), bottom.max())
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(np.histogram(top, BINS, (low, high))[0]
                           / np.histogram(bottom, BINS, (low, high))[0])
        at = ((self.scores(self.data, theta) - low) * (BINS / (high - low))).astype(int)
        terms = ratio[np.clip(at, 0, BINS - 1)]
        return float(terms[np.isfinite(terms)].mean() * len(terms))

    def grid(self, points, events, form):
        def work():
            self.prepare(events, form)
            return [self.log_likelihood(np.array(point)) for point in points]
        values, times = timed(work)
        return times | {"values": values}

    def optimise(self, points, events, evaluations, form):
        bounds = [RANGE, RANGE]

        def improvement(x, best):
            mean, deviation = self.process.predict(np.atleast_2d(x), return_std=True)
            deviation = np.maximum(deviation, 1e-12)
            u = (mean - best) / deviation
            return deviation * (u * norm.cdf(u) + norm.pdf(u))

        def work():
            self.prepare(events, form)
            x = list(self.rng.uniform(*RANGE, (INITIAL, 2)))
            y = [self.log_likelihood(point) for point in x]
            kernel = (ConstantKernel(1.0, (1e-3, 1e4)) * Matern([1.0, 1.0], (0.05, 100), nu=2.5)
                      + WhiteKernel(1e-4, (1e-8, 1e-1)))
            for _ in range(evaluations - INITIAL):
                self.process = GaussianProcessRegressor(kernel, normalize_y=True).fit(x, y)
                kernel = self.process.kernel_  # a warm start
                candidates = self.rng.uniform(*RANGE, (CANDIDATES, 2))
                best = self.process.predict(x).max()
                start = candidates[np.argmax(improvement(candidates, best))]
                found = minimize(lambda p: -improvement(p, best)[0], start, bounds=bounds,
                                 method="L-BFGS-B")
                x.append(found.x)
                y.append(self.log_likelihood(found.x))
            self.process = GaussianProcessRegressor(kernel, normalize_y=True).fit(x, y)
            start = x[int(np.argmax(self.process.predict(x)))]
            self.best = minimize(lambda p: -self.process.predict(p[None])[0], start,
                                 bounds=bounds, method="L-BFGS-B")
            return self.best.x
        point, times = timed(work)
        return times | {"point": list(point), "maximum": -float(self.best.fun),
                        "values": list(self.process.predict(np.array(points)))}

    def contours(self, window, thresholds, **_):
        def work():
            a, b = (np.linspace(*side, 100) for side in window)
            points = np.stack(np.meshgrid(a, b), -1).reshape(-1, 2)
            surface = 2 * (-self.best.fun - self.process.predict(points)).reshape(100, 100)
            generator = contourpy.contour_generator(a, b, surface)
            return [generator.lines(threshold) for threshold in thresholds]
        lines, times = timed(work)
        return times | {"lines": [len(level) for level in lines]}

    def memory(self):
        return {"peak": peak_memory()}


if __name__ == "__main__":
    serve(Contender().answer)
