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

    def log_density(self, x, theta):
        s1, s2, rho = theta[:, 2:3] ** 2, theta[:, 3:4] ** 2, np.tanh(theta[:, 4:5])
        u, v = (x[..., 0::2] - theta[:, :1]) / s1, (x[..., 1::2] - theta[:, 1:2]) / s2
        square = (u * u - 2 * rho * u * v + v * v) / (1 - rho ** 2)
        return (-0.5 * square - np.log(s1) - np.log(s2) - 0.5 * np.log(1 - rho ** 2)).sum(-1)


TASKS = {"linear-gaussian": LinearGaussian(), "slcp": Slcp()}


def test_set(problem, events=200, points=50, seed=99):
    """Events with θ that each of them makes likely (drawn from the exact posterior, out of 2 · 10⁵
    draws of the prior), and log p there."""
    task, rng = TASKS[problem], np.random.default_rng(seed)
    truth = task.draw(events, rng)
    x, out = task.simulate(truth, rng), {"x": [], "theta": [], "exact": []}
    for row in x:
        theta = task.draw(200_000, rng)
        log_p = task.log_density(row, theta)
        weights = np.exp(log_p - log_p.max())
        chosen = rng.choice(len(theta), points, p=weights / weights.sum())
        out["x"].append(row.tolist())
        out["theta"].append(theta[chosen].tolist())
        out["exact"].append(log_p[chosen].tolist())
    return out
