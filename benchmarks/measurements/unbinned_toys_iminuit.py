"""Toys a second of t with iminuit on NumPy, on one core; the model of unbinned_toys.cpp.

    OMP_NUM_THREADS=1 python3 unbinned_toys_iminuit.py [plain|lean|same] [toys]

plain: the likelihood as one writes it down, vectorised; Minuit finds derivatives by itself.
lean: its gradient in closed form, from the same densities as the value.
same: the model of unbinned_toys.cpp to the letter. It does not know that its densities are normal
ones: they move by exp(sum_k b_k f_k) / Z, where Z is a mean over 150 000 simulated events, and toys
are drawn from these events. Derivatives as in plain.
"""

import sys
import time

import numpy as np
from iminuit import Minuit

TRUTH = np.array([1.0, 5.0, 0.0, 0.0, 0.0, 0.0])  # mu, mass, scale, width, size1, size2
LIMITS = [(-3, 10), (4, 6)] + [(-5, 5)] * 4
LOG = np.log(1.1)


def moments(theta):
    return ((theta[1] + 0.1 * theta[2], 0.3 * (1 + 0.1 * theta[3])), (3 + 0.1 * theta[2], 1.5), (7, 3))


def yields(theta):
    # Up to 1e-5 the factor of the model, whose logarithm is a polynomial inside of [-1, 1].
    return 250 * theta[0], 3000 * np.exp(LOG * theta[4]), 1750 * np.exp(LOG * theta[5])


class Likelihood:
    errordef = Minuit.LIKELIHOOD

    def __init__(self, x, measured):
        self.x, self.measured, self.at = x, measured, None

    def densities(self, theta):
        if self.at is None or not np.array_equal(theta, self.at):
            self.at = np.array(theta)
            self.parts = [y / s * np.exp(-0.5 * ((self.x - m) / s) ** 2)
                          for y, (m, s) in zip(yields(theta), moments(theta))]
            self.total = self.parts[0] + self.parts[1] + self.parts[2]
        return self.parts, self.total

    def __call__(self, theta):
        total = self.densities(theta)[1]
        if not (total > 0).all():
            return np.inf
        pull = theta[2:] - self.measured
        return 0.5 * pull @ pull + sum(yields(theta)) - np.log(total).sum()

    def gradient(self, theta):
        parts, total = self.densities(theta)
        (mean, sigma), (mean1, sigma1), _ = moments(theta)
        y = yields(theta)
        share = [part / total for part in parts]
        unit = self.x - mean
        slope = share[0] * unit / sigma ** 2
        out = np.empty(6)
        out[0] = 250 - share[0].sum() / theta[0]
        out[1] = -slope.sum()
        out[2] = -0.1 * (slope.sum() + (share[1] * (self.x - mean1)).sum() / sigma1 ** 2)
        out[3] = -0.03 / sigma * (share[0] * (unit ** 2 / sigma ** 2 - 1)).sum()
        out[4] = LOG * (y[1] - share[1].sum())
        out[5] = LOG * (y[2] - share[2].sum())
        out[2:] += theta[2:] - self.measured
        return out


def normal(x, mean, sigma):
    return np.exp(-0.5 * ((x - mean) / sigma) ** 2) / sigma


class Simulated:
    """Events of the reference, and what the model knows about any events x."""

    def __init__(self, rng, each=50000):
        self.x = np.concatenate([m + s * rng.standard_normal(each)
                                 for m, s in ((5, 0.8), (3, 1.5), (7, 3))])
        self.square = self.x ** 2
        ratios = self.ratios(self.x)
        self.weights = [ratio / ratio.sum() for ratio in ratios]
        total = sum(y * w for y, w in zip(yields(TRUTH), self.weights))
        self.steps = np.cumsum(total) / total.sum()

    @staticmethod
    def ratios(x):
        parts = [normal(x, *at) for at in moments(TRUTH)]
        reference = (normal(x, 5, 0.8) + parts[1] + parts[2]) / 3
        return [part / reference for part in parts]

    @staticmethod
    def coefficients(theta):
        p, p0 = (0.3 * (1 + 0.1 * theta[3])) ** -2, 0.3 ** -2
        return -0.5 * (p - p0), (theta[1] + 0.1 * theta[2]) * p - 5 * p0, 0.1 * theta[2] / 1.5 ** 2

    def draw(self, rng):
        uniform = rng.random(rng.poisson(sum(yields(TRUTH))))
        return self.x[np.searchsorted(self.steps, uniform)]


class SimulatedLikelihood(Likelihood):
    def __init__(self, x, measured, simulated):
        super().__init__(x, measured)
        self.simulated, self.square, self.ratios = simulated, x ** 2, simulated.ratios(x)

    def densities(self, theta):
        s, y = self.simulated, yields(theta)
        a, b, c = s.coefficients(theta)
        z = s.weights[0] @ np.exp(a * s.square + b * s.x)
        z1 = s.weights[1] @ np.exp(c * s.x)
        self.parts = [y[0] / z * self.ratios[0] * np.exp(a * self.square + b * self.x),
                      y[1] / z1 * self.ratios[1] * np.exp(c * self.x), y[2] * self.ratios[2]]
        return self.parts, self.parts[0] + self.parts[1] + self.parts[2]


def fit(likelihood, lean):
    minuit = Minuit(likelihood, TRUTH, grad=likelihood.gradient if lean else None)
    minuit.limits = LIMITS
    minuit.migrad()
    estimate, least, ok = minuit.values[0], minuit.fval, minuit.valid
    minuit.values[0] = TRUTH[0]
    minuit.fixed[0] = True
    minuit.migrad()
    return estimate, 2 * (minuit.fval - least), ok and minuit.valid


def simulate(rng):
    return np.concatenate([m + s * rng.standard_normal(rng.poisson(y))
                           for y, (m, s) in zip(yields(TRUTH), moments(TRUTH))])


lean, same = ("lean" in sys.argv[1:]), ("same" in sys.argv[1:])
numbers = [int(argument) for argument in sys.argv[1:] if argument.isdigit()]
toys = numbers[0] if numbers else 40
rng = np.random.default_rng(1)
simulated = Simulated(rng) if same else None


def toy():
    x = simulated.draw(rng) if same else simulate(rng)
    measured = rng.standard_normal(4)
    return SimulatedLikelihood(x, measured, simulated) if same else Likelihood(x, measured)


begin = time.process_time()
found = [fit(toy(), lean) for _ in range(toys)]
seconds = time.process_time() - begin
mu, t = np.array([one[:2] for one in found if one[2]]).T
print(f"mu {mu.mean():.4g} ± {mu.std(ddof=1):.4g}, t {t.mean():.3g}, {toys - len(mu)} failed, "
      f"{toys / seconds:.4g} toys/s of CPU")
