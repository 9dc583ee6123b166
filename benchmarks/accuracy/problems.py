"""Problems with known densities: what a learned likelihood ratio is measured against.

Each problem simulates one event for each row of θ and knows log p(x|θ) exactly. The module needs
NumPy and SciPy alone:

    import problems
    problem = problems.PROBLEMS["peak"]
    theta = problem.uniform(100_000, rng)          # (N, parameters)
    x = problem.draw(theta, rng)                   # (N, features)
    problem.log_density(x, problem.truth)          # (N,)

`check` tests each density against the draws. It says of every problem whether the density is
normalised, whether the draws follow it, and whether the mean score is zero.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import integrate, special, stats

LOG_2PI = math.log(2 * math.pi)


@dataclass(frozen=True)
class Problem:
    """A simulator with its density, and data that are to be observed."""

    name: str
    hard: str  #: what is hard about it
    parameters: dict[str, tuple[float, float]]  #: the ranges
    truth: np.ndarray  #: θ*, where the data are drawn
    n: int  #: observed events
    features: int
    draw: Callable[[np.ndarray, np.random.Generator], np.ndarray]  #: θ (N, d), rng → x (N, features)
    log_density: Callable[[np.ndarray, np.ndarray], np.ndarray]  #: x (n, features), θ (d,) → (n,)
    moving_support: bool = False  #: where the density is not zero depends on θ
    periodic: tuple[str, ...] = ()  #: parameters whose two ends are the same
    #: features whose two ends are the same, by number, with their periods
    angles: dict[int, tuple[float, float]] = field(default_factory=dict)
    discrete: bool = False  #: all features are counts
    #: where the density is an integral: x, θ, rng → Monte Carlo estimates of p(x|θ) and their errors
    brute_force: Callable[..., tuple[np.ndarray, np.ndarray]] | None = None
    check_ratios: bool = False  #: no other check of the norm serves: only that it does not depend on θ
    atoms: tuple[float, ...] = ()  #: values of the only feature with a probability of their own
    #: θ → all other points with the same likelihood, of whatever data
    twins: Callable[[np.ndarray], list[np.ndarray]] | None = None
    #: of one continuous feature: θ → where the support ends and where the density has kinks or peaks
    breaks: Callable[[np.ndarray], Sequence[float]] = field(default=lambda theta: (-np.inf, np.inf))

    @property
    def names(self) -> list[str]:
        return list(self.parameters)

    @property
    def low(self) -> np.ndarray:
        return np.array([low for low, _ in self.parameters.values()])

    @property
    def high(self) -> np.ndarray:
        return np.array([high for _, high in self.parameters.values()])

    @property
    def equal_maxima(self) -> bool:
        return self.twins is not None

    @property
    def described(self) -> dict[str, dict[str, Any]]:
        """The parameters as one who knows of the periods tells neyman of them."""
        return {name: {"range": ends, "periodic": name in self.periodic}
                for name, ends in self.parameters.items()}

    def uniform(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Points in the ranges, (size, d)."""
        return rng.uniform(self.low, self.high, (size, len(self.parameters)))

    def simulate(self, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """x and θ of events at points that are uniform in the ranges."""
        theta = self.uniform(size, rng)
        return self.draw(theta, rng), theta

    def observe(self, seed: int, n: int | None = None) -> np.ndarray:
        """Events at the truth, from a stream of its own."""
        rng = np.random.default_rng([20_000 + seed, *self.name.encode()])
        return self.draw(np.tile(self.truth, (self.n if n is None else n, 1)), rng)

    def log_likelihood(self, x: np.ndarray, theta: np.ndarray) -> float:
        """Σ log p(x|θ); −infinity where an event is impossible."""
        return float(np.sum(self.log_density(x, np.asarray(theta, dtype=float))))


PROBLEMS: dict[str, Problem] = {}


def _add(name: str, hard: str, parameters: dict[str, tuple[float, float]], truth: Sequence[float],
         n: int, draw: Callable, log_density: Callable, features: int = 1, **flags: Any) -> None:
    def drawn(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        theta = np.asarray(theta, dtype=float)
        x = np.asarray(draw(theta, rng), dtype=float)
        return x.reshape(len(theta), features)

    def density(x: np.ndarray, theta: np.ndarray) -> np.ndarray:
        x = np.asarray(x, dtype=float).reshape(-1, features)
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            return log_density(x[:, 0] if features == 1 else x, np.asarray(theta, dtype=float))

    PROBLEMS[name] = Problem(name, hard, parameters, np.array(truth, dtype=float), n, features,
                             drawn, density, **flags)


def _normal(x: np.ndarray, mean: Any, sigma: Any) -> np.ndarray:
    return -0.5 * ((x - mean) / sigma) ** 2 - np.log(sigma) - 0.5 * LOG_2PI


# One peak on a uniform background over [0, 10]. The peak ends where the background does.

WIDTH = 0.3


def _peak_draw(position: np.ndarray, share: Any, rng: np.random.Generator) -> np.ndarray:
    size = len(position)
    low, high = special.ndtr(-position / WIDTH), special.ndtr((10 - position) / WIDTH)
    peak = position + WIDTH * special.ndtri(low + (high - low) * rng.random(size))
    return np.where(rng.random(size) < share, np.clip(peak, 0, 10), 10 * rng.random(size))


def _peak_log_density(x: np.ndarray, position: float, share: float) -> np.ndarray:
    inside = special.ndtr((10 - position) / WIDTH) - special.ndtr(-position / WIDTH)
    peak = np.exp(_normal(x, position, WIDTH)) / inside
    return np.where((x >= 0) & (x <= 10), np.log(share * peak + (1 - share) / 10), -np.inf)


def _peak_breaks(theta: np.ndarray) -> list[float]:
    return [0, *(theta[0] + WIDTH * step for step in (-3, -1, 0, 1, 3)
                 if 0 < theta[0] + WIDTH * step < 10), 10]


_add("peak", "a narrow peak that moves over a wide range", {"position": (1, 9)}, [6.3], 500,
     lambda theta, rng: _peak_draw(theta[:, 0], 0.2, rng),
     lambda x, theta: _peak_log_density(x, theta[0], 0.2), breaks=_peak_breaks)

_add("peak-size", "the position means nothing where the size is zero",
     {"position": (1, 9), "share": (0, 0.5)}, [6.3, 0.15], 500,
     lambda theta, rng: _peak_draw(theta[:, 0], theta[:, 1], rng),
     lambda x, theta: _peak_log_density(x, *theta), breaks=_peak_breaks)


# The correlation of two standard normals.

def _correlated(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    z = rng.standard_normal((len(theta), 2))
    rho = theta[:, 0]
    return np.column_stack([z[:, 0], rho * z[:, 0] + np.sqrt(1 - rho**2) * z[:, 1]])


_add("correlation", "the information grows without limit towards the ends",
     {"rho": (-0.95, 0.95)}, [0.9], 300, _correlated,
     lambda x, theta: _normal(x[:, 0], 0, 1) + _normal(x[:, 1], theta[0] * x[:, 0],
                                                        math.sqrt(1 - theta[0] ** 2)), features=2)


_add("laplace", "log p has a kink at θ", {"location": (-2, 2)}, [0.3], 500,
     lambda theta, rng: theta[:, 0] + rng.laplace(size=len(theta)),
     lambda x, theta: -np.abs(x - theta[0]) - math.log(2),
     breaks=lambda theta: (-np.inf, theta[0], np.inf))


_add("exponential", "a scale over two decades", {"rate": (0.1, 10)}, [1], 300,
     lambda theta, rng: rng.exponential(size=len(theta)) / theta[:, 0],
     lambda x, theta: np.where(x >= 0, math.log(theta[0]) - theta[0] * x, -np.inf),
     breaks=lambda theta: (0, 3 / theta[0], np.inf))


_add("absolute", "two equal maxima", {"theta": (-2, 2)}, [0.8], 100,
     lambda theta, rng: np.abs(theta[:, 0]) + 0.5 * rng.standard_normal(len(theta)),
     lambda x, theta: _normal(x, abs(theta[0]), 0.5), twins=lambda theta: [-theta],
     breaks=lambda theta: (-np.inf, abs(theta[0]), np.inf))


def _pair_draw(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    first = rng.random(len(theta)) < 0.5
    return np.where(first, theta[:, 0], theta[:, 1]) + rng.standard_normal(len(theta))


_add("exchangeable", "two components that can be swapped", {"a": (-3, 3), "b": (-3, 3)}, [-1, 1.5],
     500, _pair_draw,
     lambda x, theta: np.logaddexp(_normal(x, theta[0], 1), _normal(x, theta[1], 1)) - math.log(2),
     twins=lambda theta: [theta[::-1].copy()],
     breaks=lambda theta: (-np.inf, *sorted(theta), np.inf))


# A wave with a free wave number, on [−π, π].

def _wave_draw(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    x = np.empty(len(theta))
    todo = np.arange(len(theta))
    while len(todo):
        tried = rng.uniform(-np.pi, np.pi, len(todo))
        kept = 1.8 * rng.random(len(todo)) < 1 + 0.8 * np.cos(theta[todo, 0] * tried)
        x[todo[kept]] = tried[kept]
        todo = todo[~kept]
    return x


def _wave_log_density(x: np.ndarray, theta: np.ndarray) -> np.ndarray:
    k = theta[0]
    norm = 2 * np.pi + 1.6 * math.sin(k * np.pi) / k
    return np.where(np.abs(x) <= np.pi, np.log1p(0.8 * np.cos(k * x)) - math.log(norm), -np.inf)


_add("wave", "log p oscillates with θ, the more the further x is from zero", {"k": (0.5, 8)}, [4.3],
     500, _wave_draw, _wave_log_density, breaks=lambda theta: (-np.pi, 0, np.pi))


def _von_mises_draw(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    turned = theta[:, 0] + rng.vonmises(0, 2, len(theta))
    return (turned + np.pi) % (2 * np.pi) - np.pi


_add("phase", "the two ends of the range are the same", {"phase": (-np.pi, np.pi)}, [2.8], 300,
     _von_mises_draw,
     lambda x, theta: np.where(np.abs(x) <= np.pi, 2 * np.cos(x - theta[0]), -np.inf)
     - math.log(2 * np.pi * special.i0(2)), periodic=("phase",), angles={0: (-np.pi, np.pi)},
     breaks=lambda theta: (-np.pi, 0, np.pi))


_add("uniform", "the support ends at θ", {"theta": (0.5, 3)}, [1.7], 100,
     lambda theta, rng: theta[:, 0] * rng.random(len(theta)),
     lambda x, theta: np.where((x >= 0) & (x <= theta[0]), -math.log(theta[0]), -np.inf),
     moving_support=True, breaks=lambda theta: (0, theta[0]))


_add("shifted-exponential", "the support begins at θ", {"shift": (-2, 2)}, [0.4], 100,
     lambda theta, rng: theta[:, 0] + rng.exponential(size=len(theta)),
     lambda x, theta: np.where(x >= theta[0], theta[0] - x, -np.inf),
     moving_support=True, breaks=lambda theta: (theta[0], np.inf))


# g-and-k: x = a + b (1 + 0.8 tanh(g z/2)) (1 + z²)^k z with a standard normal z.

def _gk(z: np.ndarray, g: Any, k: Any) -> tuple[np.ndarray, np.ndarray]:
    """x of a = 0 and b = 1, and dx/dz."""
    tanh = np.tanh(g * z / 2)
    grown, skewed = (1 + z * z) ** k, 1 + 0.8 * tanh
    slope = grown * (skewed * (1 + (2 * k + 1) * z * z) / (1 + z * z)
                     + 0.4 * g * z * (1 - tanh * tanh))
    return skewed * grown * z, slope


def _gk_inverse(y: np.ndarray, g: float, k: float) -> np.ndarray:
    """z of y, by Newton's steps that stay between bounds, and halves of them where they do not."""
    # 1 + 0.8 tanh ≥ 0.2 and (1 + z²)^k ≥ 1 bound |z|; z and y have the same sign.
    low, high = np.where(y < 0, 5.0 * y, 0.0), np.where(y < 0, 0.0, 5.0 * y)
    z = np.clip(y, low, high)
    for _ in range(200):
        value, slope = _gk(z, g, k)
        above = value > y
        low, high = np.where(above, low, z), np.where(above, z, high)
        new = z - (value - y) / slope
        new = np.where((new > low) & (new < high), new, 0.5 * (low + high))
        done = np.abs(new - z) <= 1e-13 * (1 + np.abs(z))
        z = new
        if done.all():
            break
    return z


def _gk_draw(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    a, b, g, k = theta.T
    return a + b * _gk(rng.standard_normal(len(theta)), g, k)[0]


def _gk_log_density(x: np.ndarray, theta: np.ndarray) -> np.ndarray:
    a, b, g, k = theta
    z = _gk_inverse((x - a) / b, g, k)
    return _normal(z, 0, 1) - np.log(_gk(z, g, k)[1]) - math.log(b)


_add("g-and-k", "four parameters of one feature with heavy tails",
     {"a": (0, 6), "b": (0.3, 3), "g": (0, 4), "k": (0, 1)}, [3, 1, 2, 0.5], 500, _gk_draw,
     _gk_log_density,
     breaks=lambda theta: (-np.inf, *(theta[0] + theta[1] * _gk(np.array([-2.0, -0.5, 0, 0.5, 2]),
                                                                *theta[2:])[0]), np.inf))


# Ricker's model of a population, from N = 1: N ← r N exp(−N + σ e) with a standard normal e, three
# times, and each time a count from Poisson(10 N). What the three counts say of log r and σ needs an
# integral over the three N: a sum over values of log N from step to step.

OBSERVED_SHARE = 10.0


def _ricker_draw(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    log_r, sigma = theta.T
    log_n = np.zeros(len(theta))
    counts = np.empty((len(theta), 3))
    for step in range(3):
        log_n = (log_r + log_n - np.exp(log_n) + sigma * rng.standard_normal(len(theta)))
        counts[:, step] = rng.poisson(OBSERVED_SHARE * np.exp(log_n))
    return counts


def _log_poisson(counts: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return special.xlogy(counts, mean) - mean - special.gammaln(counts + 1)


def _populations(top: float, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Values of log N from −14 to the top with the weight of each. They are denser where N is large:
    the next N then changes fast."""
    u = np.arange(-6.5, top + step, step)
    values = u - 1.4 * np.log1p(np.exp(-(u + 1) / 0.7))
    weights = step * (1 + 2 / (1 + np.exp((u + 1) / 0.7)))
    return values, weights


def _ricker_log_density(x: np.ndarray, theta: np.ndarray, fine: float = 1) -> np.ndarray:
    log_r, sigma = theta
    top = log_r - 1 + 7 * sigma
    first = log_r - 1 + sigma * np.linspace(-7, 7, int(fine * (300 + 700 * sigma)))
    values, weights = _populations(top, min(0.025, sigma / 5) / fine)

    def kernel(before: np.ndarray) -> np.ndarray:
        """The probabilities of the values after one step; what falls below them is at the lowest."""
        mean = log_r + before - np.exp(before)
        moved = np.exp(_normal(values, mean[:, None], sigma)) * weights
        moved[:, 0] += special.ndtr((values[0] - mean) / sigma)
        return moved

    def counted(column: np.ndarray, log_n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The probability of each count that occurs, and where the events have it."""
        counts, where = np.unique(column, return_inverse=True)
        return np.exp(_log_poisson(counts, OBSERVED_SHARE * np.exp(log_n)[:, None])), where.ravel()

    start = np.exp(_normal(first, log_r - 1, sigma)) * (first[1] - first[0])
    third, at3 = counted(x[:, 2], values)
    later = kernel(values) @ third  # p(y3|N2)
    second, at2 = counted(x[:, 1], values)
    pairs, at = np.unique(np.column_stack([at2, at3]), axis=0, return_inverse=True)
    moved = kernel(first)
    one, at1 = counted(x[:, 0], first)
    one = one * start[:, None]
    at = at.ravel()
    total = np.empty(len(x))
    for begin in range(0, len(pairs), 2000):
        part = pairs[begin:begin + 2000]
        of_pairs = moved @ (second[:, part[:, 0]] * later[:, part[:, 1]])  # p(y2, y3|N1)
        rows = np.flatnonzero((at >= begin) & (at < begin + len(part)))
        total[rows] = np.einsum("ij,ij->j", one[:, at1[rows]], of_pairs[:, at[rows] - begin])
    return np.log(np.maximum(total, 1e-300))


def _ricker_brute_force(x: np.ndarray, theta: np.ndarray, rng: np.random.Generator,
                        paths: int = 400_000) -> tuple[np.ndarray, np.ndarray]:
    log_n, total = np.zeros(paths), np.zeros((len(x), paths))
    for step in range(3):
        log_n = theta[0] + log_n - np.exp(log_n) + theta[1] * rng.standard_normal(paths)
        total += _log_poisson(x[:, step:step + 1], OBSERVED_SHARE * np.exp(log_n))
    probability = np.exp(total)
    return probability.mean(axis=1), probability.std(axis=1) / math.sqrt(paths)


_add("ricker", "three counts of a hidden population", {"log_r": (1, 3), "sigma": (0.1, 0.8)},
     [2, 0.3], 200, _ricker_draw, _ricker_log_density, features=3, discrete=True,
     brute_force=_ricker_brute_force)


# Two gamma distributed features whose normal scores are correlated. The correlation is tanh.

def _copula_draw(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    shape, rho = theta[:, 0], np.tanh(theta[:, 1])
    z = rng.standard_normal((len(theta), 2))
    z[:, 1] = rho * z[:, 0] + np.sqrt(1 - rho**2) * z[:, 1]
    shapes = np.column_stack([shape, 1 + 0.5 * shape])
    return np.where(z > 0, special.gammainccinv(shapes, special.ndtr(-np.abs(z))),
                    special.gammaincinv(shapes, special.ndtr(-np.abs(z))))


def _copula_log_density(x: np.ndarray, theta: np.ndarray) -> np.ndarray:
    rho = math.tanh(theta[1])
    total = np.full(len(x), -0.5 * math.log(1 - rho**2))
    scores = []
    for feature, shape in zip(x.T, (theta[0], 1 + 0.5 * theta[0])):
        feature = np.maximum(feature, 1e-300)
        lower, upper = special.gammainc(shape, feature), special.gammaincc(shape, feature)
        scores.append(np.where(lower < 0.5, special.ndtri(np.maximum(lower, 1e-300)),
                               -special.ndtri(np.maximum(upper, 1e-300))))
        total += (shape - 1) * np.log(feature) - feature - special.gammaln(shape)
    u, v = scores
    total -= 0.5 * (rho**2 * (u**2 + v**2) - 2 * rho * u * v) / (1 - rho**2)
    return np.where((x >= 0).all(axis=1), total, -np.inf)


_add("copula", "the shapes of two features and how they hang together",
     {"shape": (0.5, 4), "association": (-1.2, 1.2)}, [1.5, 0.6], 300, _copula_draw,
     _copula_log_density, features=2)


# The second example of the paper: x = R z, of which two of the five z move with α and β.

MIXED = np.array([[1.31229955, 0.10499961, 0.48310515, -0.3249938, -0.26387927],
                  [0.10499961, 1.15833058, -0.55865473, 0.25275522, -0.39790775],
                  [0.48310515, -0.55865473, 2.25874579, -0.52087938, -0.39271231],
                  [-0.3249938, 0.25275522, -0.52087938, 1.4034925, -0.63521059],
                  [-0.26387927, -0.39790775, -0.39271231, -0.63521059, 1.0]])
UNMIXED = np.linalg.inv(MIXED)
LOG_MIXED = float(np.linalg.slogdet(MIXED)[1])


def _second_draw(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    size = len(theta)
    z = rng.standard_normal((size, 5))
    z[:, 0] += theta[:, 0]
    z[:, 1] = theta[:, 1] + 3 * z[:, 1]
    z[:, 2] = np.where(rng.random(size) < 0.5, -2 + z[:, 2], 2 + 0.5 * z[:, 2])
    z[:, 3] = rng.exponential(1 / 3, size)
    z[:, 4] = rng.exponential(2, size)
    return z @ MIXED.T


def _second_log_density(x: np.ndarray, theta: np.ndarray) -> np.ndarray:
    z = (x @ UNMIXED.T).T
    total = _normal(z[0], theta[0], 1) + _normal(z[1], theta[1], 3)
    total += np.logaddexp(_normal(z[2], -2, 1), _normal(z[2], 2, 0.5)) - math.log(2)
    total += math.log(3) - 3 * z[3] + math.log(0.5) - 0.5 * z[4] - LOG_MIXED
    # An event at the edge may come back from the transformation a rounding below it.
    return np.where((z[3] >= -1e-9) & (z[4] >= -1e-9), total, -np.inf)


_add("second-example", "five features, of which the parameters move two that are mixed with others",
     {"alpha": (-3, 3), "beta": (-3, 3)}, [1, -1], 500, _second_draw, _second_log_density,
     features=5)


# Ten parameters: x = A θ + noise.

_rows, _columns = np.indices((10, 10))
LINEAR = np.eye(10) + 0.3 * np.cos(1.7 * _rows + 2.3 * _columns + 0.9 * _rows * _columns)

_add("linear-ten", "ten parameters",
     {f"theta{i}": (-2, 2) for i in range(10)}, [0.5, -0.5, 1, -1, 0, 0.3, -0.8, 0.8, -0.2, 0.6],
     100, lambda theta, rng: theta @ LINEAR.T + rng.standard_normal(theta.shape),
     lambda x, theta: _normal(x, LINEAR @ theta, 1).sum(axis=1), features=10)


# Five parameters of a normal distribution in two features: its mean goes round a bend, and its
# scales and its correlation are free.

def _pair_log_density(x: np.ndarray, y: np.ndarray, mean: Sequence[Any], scale: Sequence[Any],
                      rho: Any) -> np.ndarray:
    u, v = (x - mean[0]) / scale[0], (y - mean[1]) / scale[1]
    rest = 1 - rho * rho
    return (-0.5 * (u * u - 2 * rho * u * v + v * v) / rest - np.log(scale[0]) - np.log(scale[1])
            - 0.5 * np.log(rest) - LOG_2PI)


def _bent(theta: np.ndarray) -> tuple[list[Any], list[Any], Any]:
    a, b, s, t, r = theta.T
    return [a + 0.3 * b * b, b + 0.5 * np.sin(a)], [np.exp(s), np.exp(t)], np.tanh(r)


def _bent_draw(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    mean, scale, rho = _bent(theta)
    z = rng.standard_normal((2, len(theta)))
    return np.column_stack([mean[0] + scale[0] * z[0], mean[1] + scale[1] * (
        rho * z[0] + np.sqrt(1 - rho**2) * z[1])])


_add("bent-five", "five parameters: a bent mean, two scales and a correlation",
     {"a": (-2, 2), "b": (-2, 2), "log_s": (-1, 1), "log_t": (-1, 1), "r": (-1.2, 1.2)},
     [0.5, -0.7, 0.2, -0.4, 0.5], 200, _bent_draw,
     lambda x, theta: _pair_log_density(x[:, 0], x[:, 1], *_bent(theta)), features=2)


# SLCP, "simple likelihood, complex posterior": an event is four points of a normal distribution.

def _slcp(theta: np.ndarray) -> tuple[list[Any], list[Any], Any]:
    # Only scales that no event of a simulation comes near are kept from zero.
    return ([theta.T[0], theta.T[1]], [np.maximum(theta.T[i] ** 2, 1e-12) for i in (2, 3)],
            np.tanh(theta.T[4]))


def _slcp_draw(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    mean, scale, rho = _slcp(theta)
    z = rng.standard_normal((4, 2, len(theta)))
    points = [(mean[0] + scale[0] * u, mean[1] + scale[1] * (rho * u + np.sqrt(1 - rho**2) * v))
              for u, v in z]
    return np.column_stack([value for point in points for value in point])


def _slcp_twins(theta: np.ndarray) -> list[np.ndarray]:
    return [theta * np.array([1, 1, i, j, 1]) for i, j in ((-1, 1), (1, -1), (-1, -1))]


_add("slcp", "five parameters with four equal maxima, and scales down to zero",
     {"m1": (-3, 3), "m2": (-3, 3), "s1": (-3, 3), "s2": (-3, 3), "r": (-3, 3)},
     [0.7, -2.0, -1.0, -0.9, 0.6], 50, _slcp_draw,
     lambda x, theta: sum(_pair_log_density(x[:, 2 * i], x[:, 2 * i + 1], *_slcp(theta))
                          for i in range(4)), features=8, twins=_slcp_twins)


_add("normal", "a scale over two decades beside the mean",
     {"mean": (-5, 5), "log_sigma": (math.log(0.1), math.log(10))}, [1, math.log(0.3)], 200,
     lambda theta, rng: theta[:, 0] + np.exp(theta[:, 1]) * rng.standard_normal(len(theta)),
     lambda x, theta: _normal(x, theta[0], math.exp(theta[1])),
     breaks=lambda theta: (-np.inf, theta[0] - 2 * math.exp(theta[1]), theta[0],
                           theta[0] + 2 * math.exp(theta[1]), np.inf))


_add("student", "heavy tails", {"location": (-3, 3), "scale": (0.2, 3)}, [0.5, 0.8], 300,
     lambda theta, rng: theta[:, 0] + theta[:, 1] * rng.standard_t(3, len(theta)),
     lambda x, theta: math.log(2 / (math.pi * math.sqrt(3))) - math.log(theta[1])
     - 2 * np.log1p(((x - theta[0]) / theta[1]) ** 2 / 3),
     breaks=lambda theta: (-np.inf, theta[0] - 5 * theta[1], theta[0], theta[0] + 5 * theta[1],
                           np.inf))


_add("poisson", "counts, and a rate over two decades", {"rate": (0.5, 50)}, [3], 100,
     lambda theta, rng: rng.poisson(theta[:, 0]),
     lambda x, theta: _log_poisson(x, theta[0]), discrete=True)


_add("censored", "a share of the events that moves is at one value", {"theta": (-2, 2)}, [-0.3],
     300, lambda theta, rng: np.maximum(0, theta[:, 0] + rng.standard_normal(len(theta))),
     lambda x, theta: np.where(x > 0, _normal(x, theta[0], 1),
                               np.where(x == 0, special.log_ndtr(-theta[0]), -np.inf)),
     atoms=(0.0,), breaks=lambda theta: (0, max(1.0, theta[0]), np.inf))


# The checks.

FALSE_ALARMS = 1e-3  #: the probability that any of all tests fails although all problems are right
TESTS = 1000  #: at most so many tests share it
SURPRISE = FALSE_ALARMS / TESTS


@dataclass
class Checked:
    """What a check found of one problem."""

    name: str
    tests: int = 0
    normalisation: float = 0  #: the largest |∫ p dx − 1| by quadrature
    smallest: float = 1  #: the smallest p-value
    problems: list[str] = field(default_factory=list)

    def p_value(self, value: float, what: str) -> None:
        self.tests += 1
        self.smallest = min(self.smallest, value)
        if not value > SURPRISE:
            self.problems.append(f"{what}: p = {value:.1e}")


def _scores(problem: Problem, x: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """∂ log p/∂θ of each event, by central differences, (n, d)."""
    steps = 1e-4 * (problem.high - problem.low)
    shifted = np.diag(steps)
    return np.column_stack([(problem.log_density(x, theta + shift) - problem.log_density(
        x, theta - shift)) / (2 * step) for shift, step in zip(shifted, steps)])


def _check_one_feature(problem: Problem, x: np.ndarray, theta: np.ndarray, found: Checked) -> None:
    """The probability integral against the draws, and its end against one."""
    def density(value: float) -> float:
        return float(np.exp(problem.log_density(np.array([value]), theta)[0]))

    at_atoms = {atom: density(atom) for atom in problem.atoms}
    for atom, probability in at_atoms.items():
        seen = int(np.sum(x == atom))
        found.p_value(stats.binomtest(seen, len(x), probability).pvalue, f"share at {atom}")
    edges = list(problem.breaks(theta))
    between = np.setdiff1d(np.quantile(x, np.linspace(0.001, 0.999, 300)), list(at_atoms))
    points = np.unique([*edges, *between[(between > edges[0]) & (between < edges[-1])]])
    nodes, weights = np.polynomial.legendre.leggauss(20)
    inner = points[np.isfinite(points)]
    middles, halves = 0.5 * (inner[1:] + inner[:-1]), 0.5 * np.diff(inner)
    values = np.exp(problem.log_density((middles[:, None] + halves[:, None] * nodes).ravel(), theta))
    panels = (values.reshape(len(middles), -1) * weights).sum(axis=1) * halves
    tails = [0.0 if np.isfinite(edge) else integrate.quad(density, *pair, limit=200, epsabs=1e-10)[0]
             for edge, pair in ((edges[0], (-np.inf, inner[0])), (edges[-1], (inner[-1], np.inf)))]
    below = tails[0] + np.concatenate([[0.0], np.cumsum(panels)])
    wrong = abs(below[-1] + tails[1] + sum(at_atoms.values()) - 1)
    found.normalisation = max(found.normalisation, wrong)
    if not wrong < 1e-6:
        found.problems.append(f"the density at {theta} is normalised to 1 {wrong:+.1e}")
    for atom, probability in at_atoms.items():
        below = below + probability * (inner >= atom)
    away = np.max(np.abs(np.searchsorted(np.sort(x), inner, side="right") / len(x) - below))
    found.p_value(stats.kstwo.sf(away, len(x)), f"probability integral at {theta}")


def _check_counts(problem: Problem, x: np.ndarray, theta: np.ndarray, found: Checked) -> None:
    """The most frequent counts and all others together against their probabilities, by χ²; where there
    is one feature, the sum of the probabilities against one."""
    if problem.features == 1:
        counts = np.arange(20 * x.max() + 100)
        wrong = abs(np.exp(problem.log_density(counts, theta)).sum() - 1)
        found.normalisation = max(found.normalisation, wrong)
        if not wrong < 1e-6:
            found.problems.append(f"the density at {theta} is normalised to 1 {wrong:+.1e}")
    half = len(x) // 2
    cells, seen = np.unique(x[:half], axis=0, return_counts=True)  # chosen by other events
    cells = cells[np.argsort(-seen)[:300]]
    expected = (len(x) - half) * np.exp(problem.log_density(cells, theta))
    cells, expected = cells[expected > 10], expected[expected > 10]
    where = {tuple(cell): i for i, cell in enumerate(cells)}
    seen = np.zeros(len(cells) + 1)
    np.add.at(seen, [where.get(tuple(row), len(cells)) for row in x[half:]], 1)
    expected = np.append(expected, len(x) - half - expected.sum())
    if expected[-1] < 10:
        seen, expected = np.append(seen[:-2], seen[-2:].sum()), np.append(expected[:-2],
                                                                         expected[-2:].sum())
    statistic = np.sum((seen - expected) ** 2 / expected)
    found.p_value(stats.chi2.sf(statistic, len(seen) - 1), f"counts at {theta}")


def _check_inverse(problem: Problem, x: np.ndarray, theta: np.ndarray, found: Checked,
                   rng: np.random.Generator) -> None:
    """E[q(x)/p(x|θ)] over the draws is what q has inside the support, for a normal q that is narrower
    than p: this tells the norm of p too."""
    half = len(x) // 2
    mean, covariance = x[:half].mean(axis=0), 0.5 * np.cov(x[:half].T)
    root = np.linalg.cholesky(covariance)
    z = np.linalg.solve(root, (x[half:] - mean).T)
    log_q = -0.5 * np.sum(z**2, axis=0) - np.log(np.diag(root)).sum() - 0.5 * len(mean) * LOG_2PI
    ratio = np.exp(log_q - problem.log_density(x[half:], theta))
    tried = mean + rng.standard_normal((len(x), len(mean))) @ root.T
    inside = np.isfinite(problem.log_density(tried, theta))
    error = math.sqrt(ratio.var() / len(ratio) + inside.var() / len(inside))
    found.p_value(2 * stats.norm.sf(abs(ratio.mean() - inside.mean()) / error),
                  f"norm and draws at {theta}")


def _check_ratios(problem: Problem, x: np.ndarray, theta: np.ndarray, found: Checked) -> None:
    """E[p(x|t)/p(x|θ)] over the draws at θ is one, with t about one event's error away on each side
    of each parameter. This tells the norm but for a factor that is the same at every θ."""
    here = problem.log_density(x, theta)
    errors = 1 / np.sqrt(np.mean(_scores(problem, x, theta) ** 2, axis=0))
    for i, name in enumerate(problem.names):
        for side in (-0.5, 0.5):
            t = theta.copy()
            t[i] = np.clip(t[i] + side * errors[i], problem.low[i], problem.high[i])
            if t[i] == theta[i]:
                continue
            ratio = np.exp(problem.log_density(x, t) - here)
            error = ratio.std() / math.sqrt(len(x))
            found.p_value(2 * stats.norm.sf(abs(ratio.mean() - 1) / error),
                          f"norm towards {name} = {t[i]:.3g} at {theta}")


def check_problem(problem: Problem, seed: int = 1) -> Checked:
    """Tests one problem at its truth and at three points of its ranges."""
    events = 40_000 if problem.features == 1 or problem.discrete else 150_000
    rng = np.random.default_rng([seed, *problem.name.encode()])
    found = Checked(problem.name)
    inside = problem.low + (problem.high - problem.low) * rng.uniform(0.03, 0.97, (3,
                                                                     len(problem.parameters)))
    points = np.vstack([problem.truth, inside])
    # The points are shuffled among the rows: each row must have its own θ.
    where = rng.permutation(np.repeat(np.arange(len(points)), events))
    x = problem.draw(points[where], rng)
    if x.shape != (len(where), problem.features) or not np.isfinite(x).all():
        found.problems.append(f"the events have the shape {x.shape}, or are not finite")
        return found
    for i, theta in enumerate(points):
        mine = x[where == i]
        if not np.isfinite(problem.log_density(mine, theta)).all():
            found.problems.append(f"an event drawn at {theta} is impossible there")
            continue
        if problem.brute_force is not None:
            estimates, errors = problem.brute_force(mine[:20], theta, rng)
            away = (estimates - np.exp(problem.log_density(mine[:20], theta))) / errors
            found.p_value(stats.chi2.sf(np.sum(away**2), len(away)), f"brute force at {theta}")
        elif problem.check_ratios:
            _check_ratios(problem, mine, theta, found)
        elif problem.discrete:
            _check_counts(problem, mine, theta, found)
        elif problem.features == 1:
            _check_one_feature(problem, mine[:, 0], theta, found)
        else:
            _check_inverse(problem, mine, theta, found, rng)
        if not problem.moving_support:
            scores = _scores(problem, mine, theta)
            z = scores.mean(axis=0) / (scores.std(axis=0) / math.sqrt(len(mine)))
            for name, value in zip(problem.names, z):
                found.p_value(2 * stats.norm.sf(abs(value)), f"mean score of {name} at {theta}")
        for twin in problem.twins(theta) if problem.twins else []:
            if not np.allclose(problem.log_density(mine, twin), problem.log_density(mine, theta)):
                found.problems.append(f"{twin} is not equal to {theta}")
    if problem.periodic:
        ends = [problem.truth.copy() for _ in range(2)]
        for name in problem.periodic:
            at = problem.names.index(name)
            ends[0][at], ends[1][at] = problem.parameters[name]
        if not np.allclose(*(problem.log_density(x, end) for end in ends)):
            found.problems.append("the ends of the period are not equal")
    return found


def check(names: Iterable[str] = (), seed: int = 1) -> bool:
    """Tests problems, all by default, and prints what it found. Where all are right, it says so
    with a probability of 99.9 %."""
    right, tests = True, 0
    print(f"{'problem':<22}{'tests':>6}{'smallest p':>12}{'norm off by':>13}", flush=True)
    for problem in [PROBLEMS[name] for name in names] or PROBLEMS.values():
        found = check_problem(problem, seed=seed)
        tests += found.tests
        off = f"{found.normalisation:.0e}" if found.normalisation else "—"
        print(f"{found.name:<22}{found.tests:>6}{found.smallest:>12.2g}{off:>13}", flush=True)
        for text in found.problems:
            right = False
            print(f"    {text}", flush=True)
    assert tests <= TESTS, "more tests than share the rate of false alarms"
    print(f"{tests} tests, each at p = {SURPRISE:.0e}: together a false alarm in fewer than "
          f"{tests * SURPRISE:.1e} of runs. " + ("All problems passed." if right else "Some FAILED."))
    return right


if __name__ == "__main__":
    sys.exit(0 if check(sys.argv[1:]) else 1)
