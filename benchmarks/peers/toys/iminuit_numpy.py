"""Toys of the search with iminuit on NumPy, in two forms.

plain: the likelihood as one writes it down, vectorised; Minuit finds derivatives by itself.
lean: the components' densities once for each toy, the likelihood as one product of a matrix and a
vector and one logarithm an event, and its gradient in closed form from the same product.
"""

import pathlib
import sys

import numpy as np
from iminuit import Minuit

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from worker import serve, timed  # noqa: E402

TRUTH = np.array([0.05, 0, 0, 0, 0, 0])
MEANS = np.array([5.0, 0.0, 2.0, 4.0, 6.0, 8.0, 5.0])
SIGMAS = np.array([0.3, 1.0, 1.0, 1.5, 1.5, 1.0, 4.0])
SHARES = np.array([0.10, 0.15, 0.20, 0.15, 0.10])
LIMITS = [(0, 0.5)] + [(-4.5, 4.5)] * 5


def weights(theta):
    out = np.empty(7)
    out[0] = theta[0]
    out[1:6] = (1 - theta[0]) * SHARES * (1 + 0.2 * theta[1:])
    out[6] = 1 - out[:6].sum()
    return out


def weight_derivatives(theta):
    """A row a component, a column a parameter."""
    out = np.zeros((7, 6))
    out[0, 0] = 1
    out[1:6, 0] = -SHARES * (1 + 0.2 * theta[1:])
    out[np.arange(1, 6), np.arange(1, 6)] = (1 - theta[0]) * SHARES * 0.2
    out[6] = -out[:6].sum(0)
    return out


def densities(x):
    """A row a component. The factor 1/√2π is the same for all."""
    t = (x - MEANS[:, None]) / SIGMAS[:, None]
    t *= t
    t *= -0.5
    np.exp(t, out=t)
    t /= SIGMAS[:, None]
    return t


class Likelihood:
    errordef = Minuit.LIKELIHOOD

    def __init__(self, x, measured):
        self.q, self.measured, self.at = densities(x), measured, None

    def mixture(self, theta):
        """Minuit asks for the gradient where it asked for the value."""
        if self.at is None or not np.array_equal(theta, self.at):
            self.at, self.mixed = np.array(theta), weights(theta) @ self.q
        return self.mixed

    def __call__(self, theta):
        pull = theta[1:] - self.measured
        return 0.5 * pull @ pull - np.log(self.mixture(theta)).sum()

    def gradient(self, theta):
        out = -(self.q @ (1 / self.mixture(theta))) @ weight_derivatives(theta)
        out[1:] += theta[1:] - self.measured
        return out


class PlainLikelihood:
    errordef = Minuit.LIKELIHOOD

    def __init__(self, x, measured):
        self.x, self.measured = x, measured

    def __call__(self, theta):
        pull = theta[1:] - self.measured
        return 0.5 * pull @ pull - np.log(weights(theta) @ densities(self.x)).sum()


def fit(x, measured, form):
    """θ̂, the error of μ, and −2 log Λ at the true μ with the others profiled."""
    if form == "lean":
        likelihood = Likelihood(x, measured)
        minuit = Minuit(likelihood, TRUTH, grad=likelihood.gradient)
    else:
        minuit = Minuit(PlainLikelihood(x, measured), TRUTH)
    minuit.limits = LIMITS
    minuit.migrad()
    point, error, least = np.array(minuit.values), minuit.errors[0], minuit.fval
    ok = minuit.valid
    minuit.values[0] = TRUTH[0]
    minuit.fixed[0] = True
    minuit.migrad()
    return point, error, 2 * (minuit.fval - least), ok and minuit.valid


def simulate(rng, events):
    counts = rng.multinomial(events, weights(TRUTH))
    return np.repeat(MEANS, counts) + np.repeat(SIGMAS, counts) * rng.standard_normal(events)


class Contender:
    def answer(self, request):
        return getattr(self, request.pop("task"))(**request)

    def example(self, events, seed):
        rng = np.random.default_rng(seed)
        return {"x": simulate(rng, events).tolist(), "measured": rng.standard_normal(5).tolist()}

    def one(self, x, measured, form):
        point, error, statistic, _ = fit(np.array(x), np.array(measured), form)
        return {"point": point.tolist(), "sigma": error, "statistic": statistic}

    def toys(self, toys, events, seed, form):
        rng = np.random.default_rng(seed)

        def work():
            return [fit(simulate(rng, events), rng.standard_normal(5), form) for _ in range(toys)]
        found, times = timed(work)
        mu = [point[0] for point, _, _, ok in found if ok]
        return times | {"mean": np.mean(mu), "sd": np.std(mu, ddof=1), "failed": toys - len(mu),
                        "statistic": np.mean([statistic for _, _, statistic, ok in found if ok])}


if __name__ == "__main__":
    serve(Contender().answer)
