"""The first example's ensemble as one writes it with NumPy, SciPy and scikit-learn.

The same ratios as neyman's: for each pair of components K networks of the same shape, each
trained on all folds but one and calibrated on that one (here by histograms of the logit with
equal probability, interpolated). Everything is vectorised, networks run in float32, sub-ratios
are evaluated once for each event, and each dataset is fitted by SciPy's bounded minimiser.
"""

import pathlib
import sys
import warnings

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from worker import serve, timed

warnings.simplefilter("ignore", ConvergenceWarning)

MEANS = np.array([-2.0, 0.0, 1.0])
SIGMAS = np.array([0.25, 2.0, 0.5])
PAIRS = [(0, 1), (0, 2), (1, 2)]
FOLDS = 5


def weights(gamma):
    return np.array([0.5 * (1 - gamma), 0.5 * (1 - gamma), gamma])


class Member:
    """One network with its calibration."""

    def __init__(self, train, held_out, epochs, seed):
        x = np.concatenate(train)[:, None].astype(np.float32)
        y = np.repeat([0, 1], [len(train[0]), len(train[1])])
        self.mean, self.scale = x.mean(), x.std()
        self.network = MLPClassifier((40, 40), batch_size=256, max_iter=epochs, alpha=0.0, tol=0.0,
                                     n_iter_no_change=epochs + 1, random_state=seed)
        self.network.fit((x - self.mean) / self.scale, y)
        logits = [self.logits(side) for side in held_out]
        self.edges = np.unique(np.quantile(np.concatenate(logits), np.linspace(0, 1, 101)))
        counts = [np.histogram(z, self.edges)[0] + 0.5 for z in logits]
        self.centres = 0.5 * (self.edges[1:] + self.edges[:-1])
        self.values = (np.log(counts[0] / counts[0].sum()) - np.log(counts[1] / counts[1].sum()))

    def logits(self, x):
        """The network's own arithmetic, without scikit-learn's checks and its sigmoid."""
        network = self.network
        h = ((x - self.mean) / self.scale).astype(np.float32)[:, None]
        for coefficients, intercepts in zip(network.coefs_[:-1], network.intercepts_[:-1]):
            h = h @ coefficients
            h += intercepts
            np.maximum(h, 0, out=h)
        return (h @ network.coefs_[-1] + network.intercepts_[-1])[:, 0]

    def log_ratio(self, x):
        return np.interp(self.logits(x), self.centres, self.values)


class Contender:
    def answer(self, request):
        return getattr(self, request.pop("task"))(**request)

    def prepare(self, samples, epochs, seed):
        def work():
            rng = np.random.default_rng(seed)
            x = [rng.normal(m, s, samples // 3) for m, s in zip(MEANS, SIGMAS)]
            fold = np.arange(samples // 3) % FOLDS
            self.pairs = [[Member([x[c][fold != k] for c in pair], [x[c][fold == k] for c in pair],
                                  epochs, seed + k) for k in range(FOLDS)] for pair in PAIRS]
        return timed(work)[1]

    def simulate(self, rng, events, gamma):
        component = np.searchsorted(np.cumsum(weights(gamma))[:-1], rng.random(events))
        return MEANS[component] + SIGMAS[component] * rng.standard_normal(events)

    def component_ratios(self, x):
        """q_c = p_c / p(x|0), a row a component."""
        reference = weights(0.0)
        inverse = np.repeat(reference[:, None], len(x), axis=1)
        for (c, d), members in zip(PAIRS, self.pairs):
            ratio = np.exp(np.mean([member.log_ratio(x) for member in members], axis=0))
            inverse[c] += reference[d] / ratio
            inverse[d] += reference[c] * ratio
        return 1.0 / inverse

    def fit(self, q):
        # (1 − γ) (q_0 + q_1)/2 + γ q_2, with what does not depend on γ outside the loop
        background = 0.5 * (q[0] + q[1])
        difference = q[2] - background

        def negative_log_likelihood(gamma):
            return -np.log(background + gamma * difference).sum()
        return minimize_scalar(negative_log_likelihood, bounds=(0.0, 1.0), method="bounded",
                               options={"xatol": 1e-6}).x

    def ensemble(self, datasets, events, gamma, seed):
        def work():
            rng = np.random.default_rng(seed)
            return [self.fit(self.component_ratios(self.simulate(rng, events, gamma)))
                    for _ in range(datasets)]
        estimates, times = timed(work)
        return times | {"mean": np.mean(estimates), "sd": np.std(estimates, ddof=1)}

    def stages(self, datasets, events, gamma, seed):
        rng = np.random.default_rng(seed)
        x, simulate = timed(lambda: [self.simulate(rng, events, gamma) for _ in range(datasets)])
        q, score = timed(lambda: [self.component_ratios(dataset) for dataset in x])
        estimates, fit = timed(lambda: [self.fit(ratios) for ratios in q])
        return {"simulate": simulate, "score": score, "fit": fit, "mean": np.mean(estimates),
                "sd": np.std(estimates, ddof=1)}


if __name__ == "__main__":
    serve(Contender().answer)
