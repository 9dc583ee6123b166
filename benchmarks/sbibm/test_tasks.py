"""Checks our simulators and densities against the files of the benchmark and against SciPy.

    python3 benchmarks/sbibm/test_tasks.py [TASK ...]     # a minute

Each check is a function that raises where something is wrong, and prints its largest deviation:
- the observations are what the simulator gives at their true θ: no rank among simulations is extreme;
- the reference posteriors have our density: Stein's identity, Σ over the samples of ∂(w p)/p = 0 with
  a w that vanishes where the prior ends, holds within the noise of 10 000 samples;
- the integrator agrees with SciPy's; constants that are made here are those in the package's files.
"""

import sys

import numpy as np
from scipy.integrate import solve_ivp
from scipy.stats import kstest

import tasks
from tasks import TASKS, load_task


def ranks_of_observations(task, rng, n=4000):
    """Extreme ranks, as normal deviates, of every feature and of the log likelihood."""
    from scipy.special import ndtri

    found = []
    for i in task.observations:
        x, truth = task.observation(i), task.true_parameters(i)
        simulated = task.simulate(np.repeat(truth, n, axis=0), rng)
        columns = [(simulated[:, j], x[0, j]) for j in range(task.features)]
        if task.name in ("two_moons", "gaussian_mixture", "gaussian_linear",
                         "gaussian_linear_uniform", "slcp"):  # with all terms of x, and quick
            density = [task.log_likelihood(one, truth)[0] for one in simulated[:500]]
            columns.append((np.array(density), task.log_likelihood(x, truth)[0]))
        for values, at in columns:
            at += 1e-5 * (np.abs(at) + 1) * np.array([-1, 1])  # the files have single precision
            below, above = np.mean(values < at[0]), np.mean(values > at[1])
            ties = 1 - below - above
            found.append(ndtri(np.clip(below + rng.random() * ties, 0.2 / n, 1 - 0.2 / n)))
    return np.array(found)


def stein(task, i):
    """Σ ∂(w p)/p of each coordinate over its standard error."""
    prior, x = task.prior, task.observation(i)
    z = prior.standardise(task.reference(i))

    def log_wp(at):
        w = np.log(at * (1 - at)).sum(1) if prior.bounded else 0.0
        return task.log_likelihood(x, prior.restore(at)) + prior.log_standard(at) + w

    if prior.bounded:
        z = z[((z > 1e-4) & (z < 1 - 1e-4)).all(1)]
    weight = np.exp(np.log(z * (1 - z)).sum(1)) if prior.bounded else 1.0
    deviates = []
    for j in range(task.dimension):
        step = np.zeros(task.dimension)
        step[j] = 2e-5 if prior.bounded else 1e-3
        terms = weight * (log_wp(z + step) - log_wp(z - step)) / (2 * step[j])
        deviates.append(terms.mean() / terms.std() * np.sqrt(len(terms)))
    return np.array(deviates)


def crescents(task):
    """Two moons' density ends abruptly, so its reference is compared with the shape itself: the
    smallest p value of radius, angle and sign over the observations."""
    least = 1.0
    for i in task.observations:
        theta = task.reference(i)
        if np.abs(theta).max() > 0.99:  # the prior cuts the crescents
            continue
        p = task.observation(i) - task._shift(theta) - [task.offset, 0]
        radius, angle = np.hypot(*p.T), np.arctan2(p[:, 1], p[:, 0])
        sign = (theta.sum(1) > 0).mean()
        assert abs(sign - 0.5) < 0.025, (i, sign)
        least = min(least, kstest((radius - task.radius) / task.width, "norm").pvalue,
                    kstest(angle / np.pi + 0.5, "uniform").pvalue)
    assert least > 1e-4, least
    return least


def integrators(rng, n=40):
    """The largest difference from SciPy's solution in log u."""
    lotka, sir = load_task("lotka_volterra"), load_task("sir")
    theta = lotka.draw_prior(n, rng)
    worst = [0.0, 0.0]
    for row, ours in zip(theta, lotka.log_means(theta)):
        a, b, c, d = row
        right = solve_ivp(lambda _, y: [a - b * np.exp(y[1]), -c + d * np.exp(y[0])],
                          (0, lotka.times[-1] + 1e-3), np.log(lotka.start), t_eval=lotka.times,
                          rtol=1e-10, atol=1e-10, method="DOP853").y.ravel()
        right = np.clip(right, np.log(lotka.least), np.log(lotka.most))
        worst[0] = max(worst[0], np.abs(right - ours).max())
    theta = sir.draw_prior(n, rng)
    for (beta, gamma), ours in zip(theta, sir.log_infected(theta)):
        right = solve_ivp(lambda _, y: [-beta * y[0] * y[1], beta * y[0] * y[1] - gamma * y[1]],
                          (0, sir.times[-1] + 1e-3), [1 - 1e-6, 1e-6], t_eval=sir.times,
                          rtol=1e-11, atol=1e-16, method="DOP853").y[1]
        worst[1] = max(worst[1], np.abs(np.log(right) - ours).max())
    assert worst[0] < 1e-3 and worst[1] < 1e-4, worst
    return worst


def constants():
    """Our random constants against the package's files, read as plain numbers."""
    files = tasks.download() / "tasks"

    def within(path, wanted, kind):
        stored, wanted = path.read_bytes(), np.asarray(wanted).astype(kind)
        start = stored.find(wanted.ravel()[:2].tobytes())
        assert start >= 0, path
        found = np.frombuffer(stored[start:start + wanted.nbytes], kind).reshape(wanted.shape)
        assert np.allclose(found, wanted, rtol=1e-12, atol=1e-12), path

    noisy, glm = load_task("slcp_distractors"), load_task("bernoulli_glm")
    within(files / "slcp" / "files" / "gmm.torch", noisy.centres, np.float64)
    within(files / "slcp" / "files" / "gmm.torch", noisy.factors, np.float64)
    within(files / "slcp" / "files" / "permutation_idx.torch", noisy.order, np.int64)
    within(files / "bernoulli_glm" / "files" / "design_matrix.pt", glm.design, np.float32)
    for i in noisy.observations:
        assert np.allclose(noisy.observation(i)[0, noisy.places], load_task("slcp").observation(i))
        assert np.allclose(load_task("bernoulli_glm_raw").observation(i) @ glm.design,
                           glm.observation(i), atol=1e-4)


def main(names):
    rng = np.random.default_rng(20)
    constants()
    print("largest difference of log u from SciPy: Lotka-Volterra {:.1e}, SIR {:.1e}".format(
        *integrators(rng)))
    print(f"{'':<26}{'ranks of observations':>32}{'Stein deviates':>32}")
    for name in names or TASKS:
        task = load_task(name)
        ranks = ranks_of_observations(task, rng)
        line = f"{name:<26}{f'rms {np.sqrt(np.mean(ranks**2)):.2f}':>20}{np.abs(ranks).max():>12.1f}"
        assert np.abs(ranks).max() < 4.9, ranks
        if name == "two_moons":
            line += f"{f'p > {crescents(task):.3f}':>32}"
        else:
            deviates = np.concatenate([stein(task, i) for i in task.observations])
            line += f"{f'rms {np.sqrt(np.mean(deviates**2)):.2f}':>20}{np.abs(deviates).max():>12.1f}"
        print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
