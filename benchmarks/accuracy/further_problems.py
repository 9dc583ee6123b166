"""Further problems with known densities, on which no default was chosen: what stays good on them is
good for strangers' simulators too. They are added to those of problems.py."""

from __future__ import annotations

import math

import numpy as np
from scipy import special, stats

from problems import _add, _log_poisson, _normal

# One feature.

_add("cauchy", "tails without a variance", {"location": (-3, 3), "log_scale": (-1.5, 1.5)}, [0.7, -0.4],
     200, lambda theta, rng: theta[:, 0] + np.exp(theta[:, 1]) * rng.standard_cauchy(len(theta)),
     lambda x, theta: -math.log(math.pi) - theta[1]
     - np.log1p(((x - theta[0]) * math.exp(-theta[1])) ** 2),
     breaks=lambda theta: (-np.inf, theta[0] - 5 * math.exp(theta[1]), theta[0],
                           theta[0] + 5 * math.exp(theta[1]), np.inf))

_add("beta", "the density may be infinite at its lower end", {"a": (0.4, 5), "b": (1, 5)}, [0.8, 2.5],
     300, lambda theta, rng: np.clip(rng.beta(theta[:, 0], theta[:, 1]), 1e-12, 1 - 1e-12),
     lambda x, theta: (theta[0] - 1) * np.log(x) + (theta[1] - 1) * np.log1p(-x)
     - special.betaln(*theta), breaks=lambda theta: (0, *np.logspace(-15, -1, 15), 0.5, 0.9, 1))

_add("weibull", "shape and scale of a lifetime", {"shape": (0.5, 4), "scale": (0.3, 5)}, [1.5, 2],
     200, lambda theta, rng: theta[:, 1] * rng.weibull(theta[:, 0]),
     lambda x, theta: np.where(x > 0, math.log(theta[0] / theta[1]) + (theta[0] - 1) * np.log(
         np.maximum(x, 1e-300) / theta[1]) - (np.maximum(x, 1e-300) / theta[1]) ** theta[0], -np.inf),
     breaks=lambda theta: (0, 0.1 * theta[1], theta[1], 3 * theta[1], np.inf))

_add("freedom", "only the tails tell of the degrees of freedom",
     {"log_freedom": (0.3, 3), "scale": (0.5, 2)}, [1.4, 1], 500,
     lambda theta, rng: theta[:, 1] * rng.standard_t(np.exp(theta[:, 0])),
     lambda x, theta: stats.t.logpdf(x, math.exp(theta[0]), scale=theta[1]),
     breaks=lambda theta: (-np.inf, -5, 0, 5, np.inf))

_add("large", "values of the order of 10^9 over several decades", {"mu": (-2, 2), "sigma": (0.2, 1.5)},
     [0.5, 0.6], 200,
     lambda theta, rng: 1e9 * np.exp(theta[:, 0] + theta[:, 1] * rng.standard_normal(len(theta))),
     lambda x, theta: np.where(x > 0, _normal(np.log(np.maximum(x, 1e-300) / 1e9), theta[0], theta[1])
                               - np.log(np.maximum(x, 1e-300)), -np.inf),
     breaks=lambda theta: (0, *(1e9 * np.exp(theta[0] + np.arange(-8, 9) * theta[1]))))

_add("negative-binomial", "counts that are more spread than Poisson's",
     {"mean": (0.5, 30), "size": (0.5, 10)}, [6, 2], 300,
     lambda theta, rng: rng.negative_binomial(theta[:, 1], theta[:, 1] / theta.sum(axis=1)),
     lambda x, theta: stats.nbinom.logpmf(x, theta[1], theta[1] / (theta[0] + theta[1])), discrete=True)

_add("zeros", "a share of the events is exactly zero, the others are exponential",
     {"share": (0.05, 0.95), "rate": (0.3, 3)}, [0.3, 1.2], 200,
     lambda theta, rng: np.where(rng.random(len(theta)) < theta[:, 0], 0,
                                 rng.exponential(size=len(theta)) / theta[:, 1]),
     lambda x, theta: np.where(x == 0, math.log(theta[0]), np.where(
         x > 0, math.log1p(-theta[0]) + math.log(theta[1]) - theta[1] * x, -np.inf)),
     atoms=(0.0,), breaks=lambda theta: (0, 3 / theta[1], np.inf))


# Several features.

BINS = np.arange(6) + 0.5


def _bump(theta):
    return 5 + theta[..., :1] * np.exp(-0.5 * ((BINS - theta[..., 1:]) / 0.8) ** 2)


_add("bins", "six counts of a bump on a background", {"size": (0, 30), "position": (0, 6)}, [12, 3.4],
     20, lambda theta, rng: rng.poisson(_bump(theta)),
     lambda x, theta: _log_poisson(x, _bump(theta)).sum(axis=1), features=6, discrete=True,
     check_ratios=True)


def _series_draw(theta, rng):
    phi, sigma = theta.T
    x = np.empty((len(theta), 12))
    x[:, 0] = sigma / np.sqrt(1 - phi**2) * rng.standard_normal(len(theta))
    for t in range(1, 12):
        x[:, t] = phi * x[:, t - 1] + sigma * rng.standard_normal(len(theta))
    return x


_add("series", "twelve values of an autoregressive process", {"phi": (-0.9, 0.95), "sigma": (0.3, 2)},
     [0.6, 0.8], 20, _series_draw,
     lambda x, theta: _normal(x[:, 0], 0, theta[1] / math.sqrt(1 - theta[0] ** 2))
     + _normal(x[:, 1:], theta[0] * x[:, :-1], theta[1]).sum(axis=1), features=12)


def _ring_draw(theta, rng):
    u = rng.uniform(0, 2 * np.pi, len(theta))
    return np.column_stack([theta[:, 1] + theta[:, 0] * np.cos(u), theta[:, 0] * np.sin(u)]) \
        + 0.15 * rng.standard_normal((len(theta), 2))


def _ring_log_density(x, theta):
    rho = np.hypot(x[:, 0] - theta[1], x[:, 1])
    z = rho * theta[0] / 0.15**2
    return -0.5 * ((rho - theta[0]) / 0.15) ** 2 + np.log(special.i0e(z)) - math.log(
        2 * math.pi * 0.15**2)


_add("ring", "events on a thin circle of free radius and position",
     {"radius": (1, 3), "position": (-1, 1)}, [1.8, 0.3], 50, _ring_draw, _ring_log_density, features=2,
     check_ratios=True)


_mix = np.linalg.qr(np.cos(1.3 * np.add.outer(np.arange(16), 2.1 * np.arange(16)) ** 1.5))[0]


def _hidden_draw(theta, rng):
    z = rng.standard_normal((len(theta), 16))
    z[:, 0] += theta[:, 0]
    z[:, 1] = np.exp(theta[:, 1]) * z[:, 1]
    return z @ _mix.T


def _hidden_log_density(x, theta):
    z = x @ _mix
    return _normal(z[:, 0], theta[0], 1) + _normal(z[:, 1], 0, math.exp(theta[1])) + _normal(
        z[:, 2:], 0, 1).sum(axis=1)


_add("hidden", "two of sixteen directions tell", {"a": (-2, 2), "b": (-1, 1)}, [0.4, 0.3], 200,
     _hidden_draw, _hidden_log_density, features=16)


def _equicorrelated_draw(theta, rng):
    rho, sigma = theta.T
    z = rng.standard_normal((len(theta), 9))
    return sigma[:, None] * (np.sqrt(rho)[:, None] * z[:, :1] + np.sqrt(1 - rho)[:, None] * z[:, 1:])


def _equicorrelated_log_density(x, theta):
    rho, sigma = theta
    k = 8
    total = (x**2).sum(axis=1)
    common = x.sum(axis=1) ** 2
    quadratic = (total - rho * common / (1 + (k - 1) * rho)) / (1 - rho) / sigma**2
    return -0.5 * (quadratic + (k - 1) * math.log(1 - rho) + math.log(1 + (k - 1) * rho)
                   + k * math.log(2 * math.pi * sigma**2))


_add("common", "a common correlation of eight features, and their scale",
     {"rho": (0.01, 0.95), "sigma": (0.5, 2)}, [0.4, 1], 50, _equicorrelated_draw,
     _equicorrelated_log_density, features=8)


def _kinds_draw(theta, rng):
    kind = rng.random(len(theta)) < special.expit(theta[:, 0])
    value = np.where(kind, theta[:, 1], -0.5 * theta[:, 1]) + np.where(kind, 0.4, 1) \
        * rng.standard_normal(len(theta))
    return np.column_stack([kind, value])


_add("kinds", "a yes or no beside a number that depends on it", {"odds": (-2, 2), "shift": (-2, 2)},
     [0.5, 0.8], 150, _kinds_draw,
     lambda x, theta: np.where(x[:, 0] > 0.5, math.log(special.expit(theta[0]))
                               + _normal(x[:, 1], theta[1], 0.4),
                               math.log(special.expit(-theta[0]))
                               + _normal(x[:, 1], -0.5 * theta[1], 1)), features=2,
     check_ratios=True)


def _logistic_draw(theta, rng):
    x = rng.standard_normal((len(theta), 2))
    yes = rng.random(len(theta)) < special.expit(theta[:, 0] + theta[:, 1] * x[:, 0]
                                                 + theta[:, 2] * x[:, 1])
    return np.column_stack([x, yes])


_add("logistic", "a yes or no that depends on two numbers beside it",
     {"a": (-2, 2), "b": (-2, 2), "c": (-2, 2)}, [-0.3, 0.9, 0.2], 300, _logistic_draw,
     lambda x, theta: _normal(x[:, :2], 0, 1).sum(axis=1) + np.log(special.expit(
         np.where(x[:, 2] > 0.5, 1, -1) * (theta[0] + theta[1] * x[:, 0] + theta[2] * x[:, 1]))),
     features=3, check_ratios=True)


def _line_draw(theta, rng):
    x = rng.uniform(0, 1, len(theta))
    return np.column_stack([x, theta[:, 0] + theta[:, 1] * x + np.exp(theta[:, 2])
                            * rng.standard_normal(len(theta))])


_add("line", "a straight line with a scale of its noise over a decade",
     {"offset": (-2, 2), "slope": (-3, 3), "log_noise": (-2, 0.5)}, [0.4, 1, -1], 100, _line_draw,
     lambda x, theta: np.where((x[:, 0] >= 0) & (x[:, 0] <= 1), _normal(
         x[:, 1], theta[0] + theta[1] * x[:, 0], math.exp(theta[2])), -np.inf), features=2)

TIMES = np.arange(10)


def _tone_draw(theta, rng):
    return np.sin(theta[:, :1] * TIMES + theta[:, 1:]) + 0.5 * rng.standard_normal((len(theta), 10))


_add("tone", "the frequency and the phase of a noisy tone",
     {"frequency": (0.3, 1.5), "phase": (-np.pi, np.pi)}, [0.8, 1], 5, _tone_draw,
     lambda x, theta: _normal(x, np.sin(theta[0] * TIMES + theta[1]), 0.5).sum(axis=1), features=10,
     periodic=("phase",))


def _search_log_density(x, theta):
    mass, share = theta
    signal = _normal(x[:, 0], mass, 0.25) + _normal(x[:, 1], 1.2, 0.5)
    background = np.where(x[:, 0] >= 0, -x[:, 0] / 2 - math.log(2), -np.inf) + _normal(x[:, 1], 0, 1)
    return np.logaddexp(math.log(share) + signal if share > 0 else np.full(len(x), -np.inf),
                        math.log1p(-share) + background)


def _search_draw(theta, rng):
    mass, share = theta.T
    signal = rng.random(len(theta)) < share
    z = rng.standard_normal((2, len(theta)))
    return np.column_stack([np.where(signal, mass + 0.25 * z[0], rng.exponential(2, len(theta))),
                            np.where(signal, 1.2 + 0.5 * z[1], z[1])])


_add("search", "a small signal of free mass in two features", {"mass": (1, 5), "share": (0, 0.2)},
     [2.7, 0.05], 1000, _search_draw, _search_log_density, features=2, check_ratios=True)
