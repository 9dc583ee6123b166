"""The two tasks: simulators, priors, exact densities, and events to measure the errors with."""

import math

import numpy as np


class LinearGaussian:
    """x ~ N(θ, 0.1 · 1) in ten dimensions, θ ~ N(0, 0.1 · 1)."""

    sigma = math.sqrt(0.1)

    def draw(self, n, rng):
        return rng.normal(0, self.sigma, (n, 10))

    def simulate(self, theta, rng):
        return theta + rng.normal(0, self.sigma, theta.shape)

    def log_density(self, x, theta):
        return -0.5 * ((x - theta) ** 2).sum(-1) / self.sigma ** 2

    def posterior(self, x, points, rng):
        return x / 2 + rng.normal(0, self.sigma / math.sqrt(2), (points, 10))


class Slcp:
    """Four points of a normal in the plane, whose parameters enter by squares and tanh."""

    def draw(self, n, rng):
        return rng.uniform(-3, 3, (n, 5))

    def simulate(self, theta, rng):
        s1, s2, rho = theta[:, 2] ** 2, theta[:, 3] ** 2, np.tanh(theta[:, 4])
        a, b = rng.normal(size=(2, len(theta), 4))
        x = np.empty((len(theta), 8))
        x[:, 0::2] = theta[:, :1] + s1[:, None] * a
        x[:, 1::2] = theta[:, 1:2] + s2[:, None] * (rho[:, None] * a
                                                    + np.sqrt(1 - rho[:, None] ** 2) * b)
        return x

    def posterior(self, x, points, rng, draws=50_000):
        """Out of many draws of the prior, by their weights."""
        theta = self.draw(draws, rng)
        log_p = self.log_density(x, theta)
        weights = np.exp(log_p - log_p.max())
        return theta[rng.choice(draws, points, p=weights / weights.sum())]

    def log_density(self, x, theta):
        s1, s2, rho = theta[:, 2:3] ** 2, theta[:, 3:4] ** 2, np.tanh(theta[:, 4:5])
        u, v = (x[..., 0::2] - theta[:, :1]) / s1, (x[..., 1::2] - theta[:, 1:2]) / s2
        square = (u * u - 2 * rho * u * v + v * v) / (1 - rho ** 2)
        return (-0.5 * square - np.log(s1) - np.log(s2) - 0.5 * np.log(1 - rho ** 2)).sum(-1)


TASKS = {"linear-gaussian": LinearGaussian(), "slcp": Slcp()}


def test_set(problem, events=100, points=50, seed=99):
    """Events with θ of the exact posterior of each, and log p there."""
    task, rng = TASKS[problem], np.random.default_rng(seed)
    out = {"x": [], "theta": [], "exact": []}
    for row in task.simulate(task.draw(events, rng), rng):
        theta = task.posterior(row, points, rng)
        out["x"].append(row.tolist())
        out["theta"].append(theta.tolist())
        out["exact"].append(task.log_density(row, theta).tolist())
    return out
