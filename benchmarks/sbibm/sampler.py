"""Samples of a posterior from any log r(θ) and the prior: sequential Monte Carlo.

    theta, info = sample(log_ratio, prior, 10_000, rng)

Particles go from the prior to prior × r^λ with λ rising to 1. Each step of λ leaves half of the
particles effective; they are resampled and then moved, all at once, by three kinds of moves in turn: a
random walk with the particles' covariance; differences between other particles, which now and then are
taken whole and so lead from one mode to another; and points of a mixture fitted to other particles. The
coordinates are the prior's standardised ones. 10 000 samples take 0.2 to 0.4 million values of log r.

`python3 benchmarks/sbibm/sampler.py [TASK ...]` samples exact posteriors and prints the accuracy of a
classifier between them and the benchmark's reference samples, which should be near 0.5.
"""

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp


class Target:
    """log r and the log prior in standardised coordinates, and how often r was asked."""

    def __init__(self, log_ratio, prior):
        self.log_ratio, self.prior, self.evaluations = log_ratio, prior, 0

    def __call__(self, z):
        self.evaluations += len(z)
        values = np.asarray(self.log_ratio(self.prior.restore(z)), float).reshape(len(z))
        return np.where(np.isnan(values), -np.inf, values)


def effective(log_weights):
    """How many particles of equal weight these are worth."""
    w = np.exp(log_weights - log_weights.max())
    return w.sum() ** 2 / (w**2).sum()


def next_power(values, power, wanted):
    """The λ at which `wanted` particles are still effective."""
    if effective((1 - power) * values) >= wanted:
        return 1.0
    low, high = 0.0, 1 - power
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if effective(middle * values) >= wanted else (low, middle)
    return power + low


def resampled(log_weights, n, rng):
    """Systematic: each particle as often as its weight says, rounded up or down."""
    w = np.exp(log_weights - log_weights.max())
    ends = np.cumsum(w) / w.sum()
    return np.minimum(np.searchsorted(ends, (rng.random() + np.arange(n)) / n), len(w) - 1)


def walk(z, others, scale, rng):
    """A step with the covariance of the others, of a size that varies from particle to particle."""
    covariance = np.cov(others.T).reshape(z.shape[1], -1) + 1e-14 * np.eye(z.shape[1])
    size = scale * 2.38 / np.sqrt(z.shape[1]) * np.exp(rng.normal(0, 0.7, (len(z), 1)))
    return z + size * (rng.standard_normal(z.shape) @ np.linalg.cholesky(covariance).T), 0.0


def differences(z, others, scale, rng):
    """A multiple of the difference of two others; every fifth is taken whole."""
    i, j = rng.integers(0, len(others), (2, len(z)))
    size = scale * 2.38 / np.sqrt(2 * z.shape[1]) * np.exp(rng.normal(0, 0.3, (len(z), 1)))
    size = np.where(rng.random((len(z), 1)) < 0.2, 1.0, size)
    tremor = 1e-3 * others.std(0) * scale
    return z + size * (others[i] - others[j]) + tremor * rng.standard_normal(z.shape), 0.0


def mixture(z, others, scale, rng):
    """Points that do not know where the particle was, of normal distributions fitted to the others
    around some of them. The second result is the log of the density of the way back over that of the
    way there."""
    d = z.shape[1]
    count = int(rng.choice([1, 4, 16, 48]))
    spread = others.std(0) + 1e-300
    centres = others[rng.choice(len(others), count, replace=False)] / spread
    for _ in range(2):
        square = (centres**2).sum(1) - 2 * (others / spread) @ centres.T
        nearest = square.argmin(1)
        centres = np.stack([others[nearest == k].mean(0) / spread if (nearest == k).any()
                            else centres[k] for k in range(count)])
    parts = []
    for k in range(count):
        near = others[nearest == k]
        if len(near) > 4 * d:
            covariance = 1.2 * np.cov(near.T).reshape(d, d) + 1e-12 * np.diag(spread**2)
            parts.append((len(near), near.mean(0), np.linalg.cholesky(covariance)))
    if not parts:
        return walk(z, others, scale, rng)
    weights = np.array([part[0] for part in parts]) / sum(part[0] for part in parts)
    chosen = rng.choice(len(parts), len(z), p=weights)
    noise, proposed = rng.standard_normal(z.shape), np.empty_like(z)
    for k, (_, mean, factor) in enumerate(parts):
        proposed[chosen == k] = mean + noise[chosen == k] @ factor.T

    def log_density(at):
        terms = [np.log(weight) - np.log(np.diag(factor)).sum()
                 - 0.5 * (solve_triangular(factor, (at - mean).T, lower=True) ** 2).sum(0)
                 for weight, (_, mean, factor) in zip(weights, parts)]
        return logsumexp(terms, axis=0)

    return proposed, log_density(z) - log_density(proposed)


class Moves:
    """Moves of both halves of the particles, each by what the other half knows, so that each is
    reversible. The scales follow the acceptance from sweep to sweep."""

    kinds = (walk, differences, mixture)
    aim = 0.25

    def __init__(self):
        self.scales = [1.0] * len(self.kinds)

    def sweep(self, target, z, values, power, rng):
        """The share of particles that moved."""
        order = rng.permutation(len(z))
        halves, moved = (order[:len(z) // 2], order[len(z) // 2:]), 0
        for k, kind in enumerate(self.kinds):
            share = 0.0
            for mine, theirs in (halves, halves[::-1]):
                proposed, back = kind(z[mine], z[theirs], self.scales[k], rng)
                back = np.broadcast_to(back, len(mine))
                prior = target.prior.log_standard(proposed)
                inside = np.isfinite(prior)
                mine, proposed, back = mine[inside], proposed[inside], back[inside]
                at = target(proposed)
                gain = (prior[inside] - target.prior.log_standard(z[mine])
                        + power * (at - values[mine]) + back)
                accepted = np.log(rng.random(len(mine))) < gain
                z[mine[accepted]], values[mine[accepted]] = proposed[accepted], at[accepted]
                share += accepted.sum() / len(z)
            self.scales[k] = float(np.clip(self.scales[k] * np.exp(share - self.aim), 1e-4, 2.0))
            moved += share
        return moved


def sample(log_ratio, prior, n=10_000, rng=None, particles=2500, first=12, moves=3.0, last=6.0,
           between=2.5, most=40, keep=0.5):
    """n samples of prior × exp(log_ratio), and what it took.

    `particles`: how many move; at λ = 1 they are taken again and again until there are n samples.
    `first`: how many times as many are drawn of the prior; `moves`, `last`, `between`: accepted moves
    of a particle at each λ, at λ = 1, and before they are taken again, in the mean; `most`: no more
    sweeps than this."""
    rng = np.random.default_rng() if rng is None else rng
    target = Target(log_ratio, prior)
    z = prior.standardise(prior.draw(first * particles, rng))
    values = target(z)
    if not np.isfinite(values.max()):
        raise ValueError("log r is finite at no draw of the prior")
    power, powers, machine = 0.0, [], Moves()

    def move(wanted):
        moved, sweeps = 0.0, 0
        while moved < wanted and sweeps < most:
            moved += machine.sweep(target, z, values, power, rng)
            sweeps += 1

    while power < 1:
        following = next_power(values, power, keep * particles)
        chosen = resampled((following - power) * values, particles, rng)
        # A particle where r = 0 has no weight and is gone: all values are finite from here on.
        z, values, power = z[chosen], values[chosen], following
        powers.append(power)
        move(last if power == 1 else moves)
    taken = [z.copy()]
    while len(taken) * particles < n:
        move(between)
        taken.append(z.copy())
    found = np.vstack(taken)[:n]
    return prior.restore(found), {"powers": powers, "evaluations": target.evaluations,
                                  "scales": machine.scales,
                                  "distinct": len(np.unique(found[:, 0])) / n}


def main(names):
    import time

    from c2st import c2st
    from tasks import TASKS, load_task

    print(f"{'':<26}{'obs':>4}{'λ steps':>9}{'calls/10⁶':>11}{'seconds':>9}{'C2ST':>8}{'quick':>8}")
    for name in names or [name for name, task in TASKS.items() if task.log_likelihood]:
        task = load_task(name)
        for i in (1, 2):
            x, start = task.observation(i), time.process_time()
            theta, info = sample(lambda at: task.log_likelihood(x, at), task.prior, 10_000,
                                 np.random.default_rng(i))
            took = time.process_time() - start
            reference = task.reference(i)
            print(f"{name:<26}{i:>4}{len(info['powers']):>9}{info['evaluations'] / 1e6:>11.2f}"
                  f"{took:>9.1f}{c2st(reference, theta):>8.3f}"
                  f"{c2st(reference, theta, quick=True):>8.3f}", flush=True)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
