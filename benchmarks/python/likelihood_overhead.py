"""What Python adds to one evaluation of a likelihood of 500 events, beyond the core's own time.

    PYTHONPATH=build/release/python python3 benchmarks/python/likelihood_overhead.py

Prints, for two kinds of ratio and for ways to give θ, the core's time, the time from Python, and the
difference, in microseconds: the best of many repetitions.
"""

import timeit

import numpy as np

import neyman

EVENTS, REPETITIONS, CALLS = 500, 21, 200


def microseconds(call):
    return min(timeit.repeat(call, number=CALLS, repeat=REPETITIONS)) / CALLS * 1e6


def likelihoods():
    normal = neyman.Join([neyman.Normal("alpha", 1), neyman.Normal("beta", 1)],
                         parameters={"alpha": (-1, 1), "beta": (-1, 1)})
    events = neyman.simulate(normal, 20000, design="sobol", seed=1)
    separable = neyman.SeparableRatio(events, "sobol", normal.parameters, hidden=[], degree=2)
    yield "separable", neyman.Likelihood(separable, normal.sample(EVENTS, [0.1, 0.2], seed=2)), [
        0.1, 0.2]
    mixture = neyman.Mixture([neyman.Normal(0, 1), neyman.Normal(2, 1)], ["1 - gamma"],
                             parameters={"gamma": (0, 1)})
    decomposed = neyman.DecomposedRatio(mixture, 0.5, samples=10000, classifier="logistic")
    yield "decomposed", neyman.Likelihood(decomposed, mixture.sample(EVENTS, 0.3, seed=2)), [0.3]


def main():
    # Python functions that exist beside it must not cost anything.
    beside = neyman.PythonSimulator(lambda theta, n, rng: rng.normal(size=n), {"mu": (0, 1)})
    assert beside.dimension == 1
    print(f"{'ratio':<12}{'θ as':<10}{'core':>8}{'Python':>8}{'overhead':>10}  µs")
    for name, likelihood, theta in likelihoods():
        core = min(likelihood._core._seconds(theta, 2000) for _ in range(5)) * 1e6
        forms = {"array": np.array(theta), "list": theta,
                 "dict": dict(zip(likelihood.parameters.names, theta))}
        for form, value in forms.items():
            found = microseconds(lambda: likelihood(value))
            print(f"{name:<12}{form:<10}{core:>8.1f}{found:>8.1f}{found - core:>10.1f}")
        found = microseconds(lambda: likelihood.gradient(forms["array"]))
        print(f"{name:<12}{'gradient':<10}{'':>8}{found:>8.1f}")


if __name__ == "__main__":
    main()
