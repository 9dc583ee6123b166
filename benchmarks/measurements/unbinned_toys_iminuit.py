"""Toys a second of t with iminuit on NumPy, on one core; the model of unbinned_toys.cpp.

    OMP_NUM_THREADS=1 python3 unbinned_toys_iminuit.py [plain|lean] [toys]

plain: the likelihood as one writes it down, vectorised; Minuit finds derivatives by itself.
lean: its gradient in closed form, from the same densities as the value.
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


def fit(x, measured, lean):
    likelihood = Likelihood(x, measured)
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


lean = "lean" in sys.argv[1:]
numbers = [int(argument) for argument in sys.argv[1:] if argument.isdigit()]
toys = numbers[0] if numbers else 40
rng = np.random.default_rng(1)
begin = time.process_time()
found = [fit(simulate(rng), rng.standard_normal(4), lean) for _ in range(toys)]
seconds = time.process_time() - begin
mu, t = np.array([toy[:2] for toy in found if toy[2]]).T
print(f"mu {mu.mean():.4g} ± {mu.std(ddof=1):.4g}, t {t.mean():.3g}, {toys - len(mu)} failed, "
      f"{toys / seconds:.4g} toys/s of CPU")
