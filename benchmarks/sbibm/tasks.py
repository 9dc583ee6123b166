"""The ten tasks of the public benchmark sbibm 1.1 (Lueckmann et al. 2021): priors, simulators, data.

    task = load_task("slcp")
    theta = task.draw_prior(10_000, rng)         # (n, d)
    x = task.simulate(theta, rng)                # (n, f)
    task.observation(1), task.true_parameters(1) # (1, f), (1, d); observations are 1 to 10
    task.reference(1)                            # (10 000, d) samples of the posterior
    task.log_likelihood(x[:1], theta)            # (n,): log p(x|θ) up to a term without θ
    task.prior.standardise(theta)                # (n, d): uniform on the unit cube, or standard normal

The simulators are our own, in NumPy, and run all θ at once. Observations and reference posteriors are
read from the files of the package, which comes from PyPI without its dependencies into build/sbibm;
nothing of the package is imported. `python3 benchmarks/sbibm/test_tasks.py` checks the simulators.
"""

import pathlib
import subprocess
import sys

import numpy as np
from scipy.special import gammaln, logsumexp, ndtr, ndtri

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "build" / "sbibm"
VERSION = "1.1.0"

LOG_2PI = np.log(2 * np.pi)
# No coordinate of the unit cube is nearer to its faces: 8 standard deviations.
EDGE = 6.2e-16


def download():
    """The files of the package, on first use; its dependencies are not installed."""
    if not (PACKAGE / "sbibm" / "metrics" / "c2st.py").exists():
        print(f"sbibm {VERSION} comes from PyPI into {PACKAGE.relative_to(ROOT)}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile",
                        "--disable-pip-version-check", "--root-user-action", "ignore", "--upgrade",
                        "--target", str(PACKAGE), f"sbibm=={VERSION}"], check=True)
    return PACKAGE / "sbibm"


# --- priors ---------------------------------------------------------------------------------------


class Uniform:
    """Independent and uniform between `low` and `high`. Standardised, the cube is (0, 1)^d."""

    bounded = True

    def __init__(self, low, high, d):
        self.low, self.high, self.dimension = np.full(d, float(low)), np.full(d, float(high)), d

    def draw(self, n, rng):
        return self.restore(rng.random((n, self.dimension)))

    def log_density(self, theta):
        inside = ((theta >= self.low) & (theta <= self.high)).all(1)
        return np.where(inside, -np.log(self.high - self.low).sum(), -np.inf)

    def standardise(self, theta):
        return (theta - self.low) / (self.high - self.low)

    def restore(self, z):
        return self.low + z * (self.high - self.low)

    def log_standard(self, z):
        """The prior's log density in the standardised coordinates."""
        return np.where(((z >= 0) & (z <= 1)).all(1), 0.0, -np.inf)

    def to_unit(self, theta):
        return np.clip(self.standardise(theta), EDGE, 1 - EDGE)

    def from_unit(self, u):
        return self.restore(u)


class Normal:
    """θ = μ + A z with standard normal z, or, with `log`, log θ = μ + A z."""

    bounded = False

    def __init__(self, mean, factor, log=False):
        self.mean, self.factor, self.log = np.asarray(mean, float), np.asarray(factor, float), log
        self.dimension = len(self.mean)
        self._inverse = np.linalg.inv(self.factor)
        self._log_norm = -0.5 * self.dimension * LOG_2PI - np.linalg.slogdet(self.factor)[1]

    def draw(self, n, rng):
        return self.restore(rng.standard_normal((n, self.dimension)))

    def log_density(self, theta):
        theta = np.asarray(theta, float)
        inside = (theta > 0).all(1) if self.log else np.ones(len(theta), bool)
        theta = np.where(inside[:, None], theta, 1.0)
        jacobian = np.log(theta).sum(1) if self.log else 0.0
        density = self._log_norm - 0.5 * (self.standardise(theta) ** 2).sum(1) - jacobian
        return np.where(inside, density, -np.inf)

    def standardise(self, theta):
        return ((np.log(theta) if self.log else theta) - self.mean) @ self._inverse.T

    def restore(self, z):
        theta = self.mean + z @ self.factor.T
        return np.exp(theta) if self.log else theta

    def log_standard(self, z):
        """The prior's log density in the standardised coordinates."""
        return -0.5 * (z**2).sum(1) - 0.5 * self.dimension * LOG_2PI

    def to_unit(self, theta):
        return np.clip(ndtr(self.standardise(theta)), EDGE, 1 - EDGE)

    def from_unit(self, u):
        return self.restore(ndtri(np.clip(u, EDGE, 1 - EDGE)))


# --- what the tasks have in common -----------------------------------------------------------------


def _table(path):
    """A CSV file with one line of names, also packed by bzip2."""
    return np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)


class Task:
    """A prior, a simulator, and the benchmark's observations 1 to 10."""

    name = ""  # also the folder of its files, unless `folder` says otherwise
    features = 0
    folder = None
    observed = "observation.csv"
    observations = range(1, 11)
    prior: Uniform | Normal
    log_likelihood = None  # (x, thetas) → (m,) where it is tractable

    @property
    def dimension(self):
        return self.prior.dimension

    def draw_prior(self, n, rng):
        return self.prior.draw(n, rng)

    def log_prior(self, theta):
        return self.prior.log_density(theta)

    def simulate(self, theta, rng):
        """One x for each row of θ."""
        raise NotImplementedError

    def _file(self, i, name):
        if i not in self.observations:
            raise ValueError(f"{self.name}: observation is {i}, but must be from 1 to 10")
        return download() / "tasks" / (self.folder or self.name) / "files" / f"num_observation_{i}" / name

    def observation(self, i):
        return _table(self._file(i, self.observed))

    def true_parameters(self, i):
        return _table(self._file(i, "true_parameters.csv"))

    def reference(self, i):
        return _table(self._file(i, "reference_posterior_samples.csv.bz2"))


# --- the tasks ------------------------------------------------------------------------------------


class TwoMoons(Task):
    """A crescent of radius 0.1 whose place does not tell the sign of θ1 + θ2: two modes."""

    name, features = "two_moons", 2
    radius, width, offset = 0.1, 0.01, 0.25

    def __init__(self):
        self.prior = Uniform(-1, 1, 2)

    @staticmethod
    def _shift(theta):
        return np.column_stack([-np.abs(theta[:, 0] + theta[:, 1]),
                                theta[:, 1] - theta[:, 0]]) / np.sqrt(2)

    def simulate(self, theta, rng):
        angle = rng.uniform(-np.pi / 2, np.pi / 2, len(theta))
        r = self.radius + self.width * rng.standard_normal(len(theta))
        return self._shift(theta) + np.column_stack([r * np.cos(angle) + self.offset,
                                                     r * np.sin(angle)])

    def log_likelihood(self, x, thetas):
        p = np.reshape(x, (1, 2)) - self._shift(thetas) - [self.offset, 0]
        r = np.hypot(*p.T)
        with np.errstate(divide="ignore"):
            density = -0.5 * ((r - self.radius) / self.width) ** 2 - np.log(r)
        return np.where(p[:, 0] > 0, density - np.log(np.pi * self.width) - 0.5 * LOG_2PI, -np.inf)


class GaussianMixture(Task):
    """The common mean of a wide and a narrow normal distribution. As of sbibm 1.1, each x is of one
    of the two in both of its components."""

    name, features = "gaussian_mixture", 2
    scales = np.array([1.0, 0.1])

    def __init__(self):
        self.prior = Uniform(-10, 10, 2)

    def simulate(self, theta, rng):
        scale = self.scales[rng.integers(0, 2, len(theta))]
        return theta + scale[:, None] * rng.standard_normal(theta.shape)

    def log_likelihood(self, x, thetas):
        square = ((np.reshape(x, (1, 2)) - thetas) ** 2).sum(1)
        parts = -0.5 * square[:, None] / self.scales**2 - 2 * np.log(self.scales)
        return logsumexp(parts, axis=1) - np.log(2) - LOG_2PI


class GaussianLinear(Task):
    """The mean of a normal distribution in ten dimensions, with a normal prior."""

    name, features, d = "gaussian_linear", 10, 10
    variance = 0.1  # of the noise, and of the prior where it is normal

    def __init__(self):
        self.prior = Normal(np.zeros(self.d), np.sqrt(self.variance) * np.eye(self.d))

    def simulate(self, theta, rng):
        return theta + np.sqrt(self.variance) * rng.standard_normal(theta.shape)

    def log_likelihood(self, x, thetas):
        square = ((np.reshape(x, (1, self.d)) - thetas) ** 2).sum(1)
        return -0.5 * square / self.variance - 0.5 * self.d * (LOG_2PI + np.log(self.variance))


class GaussianLinearUniform(GaussianLinear):
    """The same with a uniform prior."""

    name = "gaussian_linear_uniform"

    def __init__(self):
        self.prior = Uniform(-1, 1, self.d)


class Slcp(Task):
    """Simple likelihood, complex posterior: four points of a normal distribution in the plane, whose
    mean and covariance are functions of five parameters."""

    name, features = "slcp", 8
    points = 4
    jitter = 1e-6  # on the diagonal of the covariance

    def __init__(self):
        self.prior = Uniform(-3, 3, 5)

    def _cholesky(self, theta):
        """l11, l21, l22 of the covariance."""
        s1, s2, rho = theta[:, 2] ** 2, theta[:, 3] ** 2, np.tanh(theta[:, 4])
        l11 = np.sqrt(s1**2 + self.jitter)
        l21 = rho * s1 * s2 / l11
        # s2² + jitter − l21², without the difference of large numbers.
        l22 = np.sqrt(s2**2 * (s1**2 * (1 - rho**2) + self.jitter) / l11**2 + self.jitter)
        return l11, l21, l22

    def simulate(self, theta, rng):
        l11, l21, l22 = (part[:, None] for part in self._cholesky(theta))
        z1, z2 = rng.standard_normal((2, len(theta), self.points))
        x = np.stack([theta[:, :1] + l11 * z1, theta[:, 1:2] + l21 * z1 + l22 * z2], axis=2)
        return x.reshape(len(theta), 2 * self.points)

    def log_likelihood(self, x, thetas):
        l11, l21, l22 = (part[:, None] for part in self._cholesky(thetas))
        x = np.reshape(x, (self.points, 2))
        z1 = (x[:, 0] - thetas[:, :1]) / l11
        z2 = (x[:, 1] - thetas[:, 1:2] - l21 * z1) / l22
        return (-0.5 * (z1**2 + z2**2).sum(1) - self.points * np.log(l11 * l22)[:, 0]
                - self.points * LOG_2PI)


class SlcpDistractors(Slcp):
    """SLCP whose eight features stand, in a fixed order, among 92 that know nothing of θ: they are of
    a mixture of 20 Student distributions with two degrees of freedom."""

    name, features, folder = "slcp_distractors", 100, "slcp"
    observed = "observation_distractors.csv"
    noise, components, freedom = 92, 20, 2

    def __init__(self):
        super().__init__()
        # The package keeps these numbers in a file that only its libraries read; its source says of
        # which stream of random numbers they are, in this order.
        stream = np.random.RandomState(42)
        self.centres = np.array([15 * stream.normal(size=self.noise) for _ in range(self.components)])
        self.factors = np.array([3 * (np.tril(stream.normal(size=(self.noise, self.noise)))
                                      + np.diag(np.exp(stream.normal(size=self.noise))))
                                 for _ in range(self.components)])
        self.order = stream.permutation(self.noise + 8)
        self.places = np.argsort(self.order)[:8]  # of the features that SLCP has

    def distractors(self, n, rng):
        component = rng.integers(0, self.components, n)
        z = rng.standard_normal((n, self.noise))
        z /= np.sqrt(rng.chisquare(self.freedom, (n, 1)) / self.freedom)
        noise = np.empty_like(z)
        for k in range(self.components):
            mine = component == k
            noise[mine] = self.centres[k] + z[mine] @ self.factors[k].T
        return noise

    def simulate(self, theta, rng):
        informative = super().simulate(theta, rng)
        return np.hstack([informative, self.distractors(len(theta), rng)])[:, self.order]

    def log_likelihood(self, x, thetas):
        return super().log_likelihood(np.ravel(x)[self.places], thetas)


class BernoulliGlm(Task):
    """A neuron that fires in each of 100 bins with a probability given by a filter of its stimulus.
    The ten features are sufficient: the number of spikes and the sums of the stimulus before them."""

    name, features = "bernoulli_glm", 10
    bins, d = 100, 10

    def __init__(self):
        stimulus = np.random.RandomState(42).randn(self.bins).astype(np.float32).astype(float)
        self.design = np.zeros((self.bins, self.d))
        self.design[:, 0] = 1
        for lag in range(self.d - 1):
            self.design[lag:, 1 + lag] = stimulus[:self.bins - lag]
        # The filter is smooth: the prior's precision is that of its second differences.
        m = self.d - 1
        difference = np.eye(m) - np.eye(m, k=-1)
        root = difference @ difference + np.diag(np.sqrt(np.arange(m) / m))
        precision = np.zeros((self.d, self.d))
        precision[0, 0], precision[1:, 1:] = 0.5, root.T @ root
        self.prior = Normal(np.zeros(self.d), np.linalg.inv(np.linalg.cholesky(precision)).T)

    def spikes(self, theta, rng):
        u = rng.random((len(theta), self.bins))
        return (u * (1 + np.exp(-theta @ self.design.T)) < 1).astype(float)

    def simulate(self, theta, rng):
        return self.spikes(theta, rng) @ self.design

    def _sufficient(self, x):
        return np.ravel(x)

    def log_likelihood(self, x, thetas):
        return thetas @ self._sufficient(x) - np.logaddexp(0, thetas @ self.design.T).sum(1)


class BernoulliGlmRaw(BernoulliGlm):
    """The same, seen as 100 bins with a spike or none."""

    name, features, folder = "bernoulli_glm_raw", 100, "bernoulli_glm"
    observed = "observation_raw.csv"

    def simulate(self, theta, rng):
        return self.spikes(theta, rng)

    def _sufficient(self, x):
        return np.ravel(x) @ self.design


class LotkaVolterra(Task):
    """Prey and predators at ten times, each with log-normal noise."""

    name, features = "lotka_volterra", 20
    start = np.array([30.0, 1.0])
    times = 2.1 * np.arange(10)
    noise, least, most = 0.1, 1e-10, 1e4

    def __init__(self):
        self.prior = Normal([-0.125, -3.0, -0.125, -3.0], 0.5 * np.eye(4), log=True)

    def log_means(self, theta):
        """Prey at the ten times, then predators."""
        a, b, c, d = np.asarray(theta, float).T
        found = integrate(np.column_stack([a, -b, -c, d]), np.log(self.start), self.times)
        found = np.clip(found, np.log(self.least), np.log(self.most))
        return found.transpose(0, 2, 1).reshape(len(theta), self.features)

    def simulate(self, theta, rng):
        means = self.log_means(theta)
        return np.exp(means + self.noise * rng.standard_normal(means.shape))

    def log_likelihood(self, x, thetas):
        z = (np.log(np.ravel(x)) - self.log_means(thetas)) / self.noise
        return -0.5 * (z**2).sum(1)


class Sir(Task):
    """An epidemic: how many of 1000 people tested at ten times are infected."""

    name, features = "sir", 10
    population = 1e6
    times = 17.0 * np.arange(10)
    tested = 1000

    def __init__(self):
        self.prior = Normal(np.log([0.4, 0.125]), np.diag([0.5, 0.2]), log=True)

    def log_infected(self, theta):
        """The logarithm of the infected share. With shares S and I, (log S)' = −β I and
        (log I)' = β S − γ."""
        beta, gamma = np.asarray(theta, float).T
        start = np.log([1 - 1 / self.population, 1 / self.population])
        rates = np.column_stack([np.zeros_like(beta), -beta, -gamma, beta])
        return np.minimum(integrate(rates, start, self.times)[:, :, 1], 0)

    def simulate(self, theta, rng):
        return rng.binomial(self.tested, np.exp(self.log_infected(theta))).astype(float)

    def log_likelihood(self, x, thetas):
        x, log_p = np.ravel(x), self.log_infected(thetas)
        choices = gammaln(self.tested + 1) - gammaln(x + 1) - gammaln(self.tested - x + 1)
        rest = np.log1p(-np.exp(np.minimum(log_p, -1e-12)))
        return (choices + x * log_p + (self.tested - x) * rest).sum(1)


# --- differential equations -----------------------------------------------------------------------

# The method of Dormand and Prince, order 5 with an error estimate of order 4.
_STAGES = ((1 / 5,), (3 / 40, 9 / 40), (44 / 45, -56 / 15, 32 / 9),
           (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
           (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
           (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84))
_ERROR = (71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


def integrate(rates, start, times, tolerance=1e-6, chunk=4096):
    """Solves u' = a + b exp(v), v' = c + d exp(u) for each row (a, b, c, d) of the rates, from
    `start` = (u, v) at times[0]: N × times × 2. Each row takes steps of its own, whose error in u and
    v stays below the tolerance."""
    rates = np.asarray(rates, float)
    out = np.empty((len(rates), len(times), 2))
    for first in range(0, len(rates), chunk):
        part = rates[first:first + chunk]
        y = np.repeat(np.asarray(start, float)[:, None], len(part), axis=1)
        out[first:first + chunk, 0] = start
        step = np.full(len(part), 0.01)
        for k in range(1, len(times)):
            y, step = _advance(part.T, y, step, times[k] - times[k - 1], tolerance)
            out[first:first + chunk, k] = y.T
    return out


def _slope(rates, y):
    e = np.exp(y)
    return np.stack([rates[0] + rates[1] * e[1], rates[2] + rates[3] * e[0]])


def _advance(rates, y, step, length, tolerance):
    """The state (2 × N) after `length`, and the steps to go on with."""
    end, steps = y.copy(), step.copy()
    index, left = np.arange(y.shape[1]), np.full(y.shape[1], float(length))
    slope = None
    with np.errstate(over="ignore", invalid="ignore"):
        while len(index):
            if slope is None:
                slope = _slope(rates, y)
            last = step >= left
            h = np.where(last, left, step)
            k = [slope]
            for weights in _STAGES:
                trial = y + h * sum(w * s for w, s in zip(weights, k) if w)
                k.append(_slope(rates, trial))
            error = np.abs(h * sum(w * s for w, s in zip(_ERROR, k) if w)).max(0) / tolerance
            error = np.where(np.isfinite(error), np.maximum(error, 1e-10), 1e10)
            taken = error <= 1
            step = np.where(last & taken, np.maximum(step, h), h) * np.clip(
                0.9 * error**-0.2, 0.2, np.where(last & taken, 1.0, 5.0))
            y = np.where(taken, trial, y)
            slope = np.where(taken, k[-1], slope)
            left = left - np.where(taken, h, 0)
            done = taken & last
            if done.any():
                end[:, index[done]], steps[index[done]] = y[:, done], step[done]
                keep = ~done
                index, left, step = index[keep], left[keep], step[keep]
                y, slope, rates = y[:, keep], slope[:, keep], rates[:, keep]
    return end, steps


TASKS = {task.name: task for task in (
    TwoMoons, GaussianMixture, GaussianLinear, GaussianLinearUniform, Slcp, SlcpDistractors,
    BernoulliGlm, BernoulliGlmRaw, LotkaVolterra, Sir)}


def load_task(name):
    if name not in TASKS:
        raise ValueError(f"task is '{name}', but must be one of: {', '.join(TASKS)}")
    return TASKS[name]()
