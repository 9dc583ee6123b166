"""Writes the workspaces of these tests and what pyhf and iminuit answer to them.

    python3 -m venv somewhere && somewhere/bin/pip install pyhf==0.7.6 iminuit==2.33.0 \
        numpy==2.4.6 scipy==1.17.1
    somewhere/bin/python make_references.py [name ...]

Each <name>.json is a workspace, and <name>.answers.json holds:

- "fit": the best fit of all parameters by iminuit (strategy 2, repeated until it does not move), with
  errors of "hesse" and "minos" of the parameter of interest. Parameters are without limits there, so
  that Minuit's transformations cost no precision; one that ends at its bound is fixed to it, and its
  error is 0. The steps of Hesse cost up to 0.4 % of an error, so "errors" and "correlation" (with the
  parameter of interest) are from second differences of pyhf's likelihood, extrapolated to steps of 0.
- "twice_nll": twice the negative log-likelihood there, and "twice_nll_at": at a point off the minimum.
- "tests": q-tilde of pyhf at some values of μ, with observed and expected CLs.
- "discovery": q0, p-value and expected p-value of pyhf.
- "limit": observed and expected upper limits at 95 % by CLs.
"""

import json
import pathlib
import sys

import iminuit
import numpy as np
import pyhf
from scipy.optimize import toms748

HERE = pathlib.Path(__file__).parent


def normfactor(name):
    return {"name": name, "type": "normfactor", "data": None}


def normsys(name, lo, hi):
    return {"name": name, "type": "normsys", "data": {"lo": lo, "hi": hi}}


def histosys(name, lo, hi):
    return {"name": name, "type": "histosys", "data": {"lo_data": lo, "hi_data": hi}}


def shapesys(name, data):
    return {"name": name, "type": "shapesys", "data": data}


def staterror(name, data):
    return {"name": name, "type": "staterror", "data": data}


def shapefactor(name):
    return {"name": name, "type": "shapefactor", "data": None}


LUMI = {"name": "lumi", "type": "lumi", "data": None}


def workspace(channels, observations, parameters=()):
    return {
        "channels": [{"name": name, "samples": [
            {"name": sample, "data": data, "modifiers": modifiers}
            for sample, (data, modifiers) in samples.items()]}
            for name, samples in channels.items()],
        "observations": [{"name": name, "data": data} for name, data in observations.items()],
        "measurements": [{"name": "measurement",
                          "config": {"poi": "mu", "parameters": list(parameters)}}],
        "version": "1.0.0",
    }


WORKSPACES = {
    # A counting experiment in three bins, each with a background known to an uncertainty of its own.
    "counting": workspace(
        {"bins": {
            "signal": ([12.0, 11.0, 4.0], [normfactor("mu")]),
            "background": ([50.0, 52.0, 30.0], [shapesys("uncorrelated", [3.0, 7.0, 5.0])])}},
        {"bins": [57, 63, 33]}),
    # Two bins whose backgrounds move together, in size and in shape; one name for both kinds.
    "correlated": workspace(
        {"region": {
            "signal": ([8.0, 14.0], [normfactor("mu"), normsys("efficiency", 0.92, 1.07),
                                     histosys("scale", [8.5, 12.9], [7.4, 15.3])]),
            "background": ([60.0, 48.0], [normsys("scale", 0.85, 1.2), normsys("theory", 0.95, 1.08),
                                          histosys("scale", [56.0, 50.0], [63.0, 44.5])])}},
        {"region": [74, 77]}),
    # A control region measures the background of the signal region.
    "control": workspace(
        {"signal_region": {
            "signal": ([5.0, 9.0, 3.0], [normfactor("mu"), normsys("efficiency", 0.9, 1.1)]),
            "top": ([20.0, 15.0, 6.0], [normfactor("top_norm"), normsys("transfer", 0.88, 1.15),
                                       shapesys("top_shape", [2.0, 1.8, 1.1])]),
            "other": ([4.0, 2.5, 1.0], [normsys("other_size", 0.7, 1.3)])},
         "control_region": {
             "signal": ([0.5, 0.4], [normfactor("mu"), normsys("efficiency", 0.9, 1.1)]),
             "top": ([180.0, 120.0], [normfactor("top_norm"), shapesys("top_control", [9.0, 0.0])]),
             "other": ([25.0, 14.0], [normsys("other_size", 0.7, 1.3)])}},
        {"signal_region": [27, 29, 8], "control_region": [221, 147]},
        [{"name": "mu", "inits": [1.0], "bounds": [[-5.0, 20.0]]}]),
    # Finite simulation, luminosity, and a background whose shape only the data know.
    "finite_simulation": workspace(
        {"tagged": {
            "signal": ([3.0, 10.0, 6.0], [normfactor("mu"), LUMI, staterror("mc_tagged", [0.5, 0.9, 0.7])]),
            "electroweak": ([30.0, 25.0, 9.0], [LUMI, normsys("electroweak_size", 0.9, 1.1),
                                               staterror("mc_tagged", [2.5, 2.2, 1.2]),
                                               histosys("scale", [28.0, 25.5, 10.0], [32.5, 24.0, 8.3])]),
            "multijet": ([10.0, 10.0, 10.0], [shapefactor("multijet_shape")])},
         "loose": {
             "electroweak": ([90.0, 80.0, 40.0], [LUMI, normsys("electroweak_size", 0.9, 1.1),
                                                 staterror("mc_loose", [4.0, 3.5, 2.0])]),
             "multijet": ([100.0, 100.0, 100.0], [shapefactor("multijet_shape")])}},
        {"tagged": [47, 55, 22], "loose": [251, 172, 118]},
        [{"name": "lumi", "auxdata": [1.0], "sigmas": [0.02], "bounds": [[0.5, 1.5]], "inits": [1.0]}]),
    # Nothing observed where signal is expected: the best fit is at the bound. One bin of the
    # background has no uncertainty, and a nuisance parameter is fixed.
    "nothing_seen": workspace(
        {"search": {
            "signal": ([2.0, 4.0, 1.5], [normfactor("mu"), normsys("efficiency", 0.9, 1.12)]),
            "background": ([3.0, 0.8, 0.2], [shapesys("background_size", [0.9, 0.3, 0.0]),
                                            normsys("theory", 0.9, 1.1)])}},
        {"search": [2, 0, 0]},
        [{"name": "theory", "fixed": True}]),
}

TESTED = [0.5, 1.0, 2.0]
OFFSET = 0.07


def covariance_of(nll, point, scale, free):
    """The inverse of the second derivatives of the free parameters, by Richardson's extrapolation."""
    def second_derivatives(step):
        steps = step * scale
        out = np.zeros((len(free), len(free)))
        for a, i in enumerate(free):
            for b, j in enumerate(free[:a + 1]):
                total = 0.0
                for sign_i, sign_j in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
                    moved = point.copy()
                    moved[i] += sign_i * steps[i]
                    moved[j] += sign_j * steps[j]
                    total += sign_i * sign_j * nll(moved)
                out[a, b] = out[b, a] = total / (4 * steps[i] * steps[j])
        return out
    return np.linalg.inv((4 * second_derivatives(0.01) - second_derivatives(0.02)) / 3)


def best_fit(model, data):
    """iminuit's minimum without transformations of the parameters."""
    names = model.config.par_names
    bounds = model.config.suggested_bounds()
    fixed = list(model.config.suggested_fixed())
    values = np.array(model.config.suggested_init(), dtype=float)

    def twice_nll(parameters):
        return float(-2 * model.logpdf(parameters, data)[0])

    def run(start, limited):
        minuit = iminuit.Minuit(twice_nll, start, name=names)
        minuit.errordef = 1.0
        minuit.strategy = 2
        minuit.tol = 1e-5
        for i, _ in enumerate(names):
            minuit.fixed[i] = fixed[i]
            if limited:
                minuit.limits[i] = bounds[i]
        for _ in range(10):
            before = np.array(minuit.values)
            minuit.migrad()
            minuit.hesse()
            if np.all(np.abs(np.array(minuit.values) - before) <= 1e-7 * np.array(minuit.errors)):
                break
        return minuit

    minuit = run(values, True)
    values = np.array(minuit.values)
    at_bound = []
    for i, (low, high) in enumerate(bounds):
        if not fixed[i] and min(values[i] - low, high - values[i]) < 1e-3:
            values[i] = low if values[i] - low < high - values[i] else high
            fixed[i] = True
            at_bound.append(names[i])
    minuit = run(values, False)
    assert minuit.valid, minuit
    estimate = np.array(minuit.values)
    errors = [0.0 if fixed[i] else minuit.errors[i] for i in range(len(names))]
    free = [i for i in range(len(names)) if not fixed[i]]
    covariance = covariance_of(lambda p: twice_nll(p) / 2, estimate, np.array(errors), free)
    exact = {names[i]: 0.0 if fixed[i] else float(np.sqrt(covariance[free.index(i), free.index(i)]))
             for i in range(len(names))}
    out = {"values": dict(zip(names, estimate.tolist())), "errors": exact,
           "hesse": dict(zip(names, errors)), "at_bound": at_bound}
    if "mu" not in at_bound:
        minuit.minos("mu")
        out["minos"] = [minuit.merrors["mu"].lower, minuit.merrors["mu"].upper]
        mu = free.index(names.index("mu"))
        out["correlation"] = {
            names[i]: float(covariance[mu, a] / (exact["mu"] * exact[names[i]]))
            for a, i in enumerate(free) if a != mu}
    shifted = estimate + np.array([0.0 if fixed[i] else OFFSET for i in range(len(names))])
    return {"fit": out, "twice_nll": twice_nll(estimate), "twice_nll_at": {
        "point": dict(zip(names, shifted.tolist())), "value": twice_nll(shifted)}}


def answers(spec):
    pyhf.set_backend("numpy", pyhf.optimize.minuit_optimizer(tolerance=1e-6, strategy=2))
    space = pyhf.Workspace(spec)
    model = space.model()
    data = space.data(model)
    bounds = model.config.suggested_bounds()
    bounds[model.config.poi_index] = (0.0, 20.0)
    out = best_fit(model, data)

    def hypotest(mu):
        observed, expected = pyhf.infer.hypotest(mu, data, model, par_bounds=bounds,
                                                 return_expected_set=True)
        return float(observed), [float(value) for value in expected]

    out["tests"] = []
    init, fixed = model.config.suggested_init(), model.config.suggested_fixed()
    for mu in TESTED:
        observed, expected = hypotest(mu)
        statistic = pyhf.infer.test_statistics.qmu_tilde(mu, data, model, init, bounds, fixed)
        out["tests"].append({"mu": mu, "statistic": float(statistic), "cls": observed,
                             "expected_cls": expected})
    q0 = pyhf.infer.test_statistics.q0(0.0, data, model, init, bounds, fixed)
    p0, p0_expected = pyhf.infer.hypotest(0.0, data, model, par_bounds=bounds, test_stat="q0",
                                          return_expected=True)
    out["discovery"] = {"statistic": float(q0), "p_value": float(p0),
                        "expected_p_value": float(p0_expected)}

    cache = {}

    def cls(mu, which):
        if mu not in cache:
            observed, expected = hypotest(mu)
            cache[mu] = [observed, *expected]
        return cache[mu][which] - 0.05

    limits = [toms748(cls, 0.05, 15.0, args=(which,), rtol=1e-5) for which in range(6)]
    out["limit"] = {"observed": limits[0], "expected": limits[1:]}
    return out


def main():
    for name in sys.argv[1:] or WORKSPACES:
        spec = WORKSPACES[name]
        (HERE / f"{name}.json").write_text(json.dumps(spec, indent=1) + "\n")
        found = {"pyhf": pyhf.__version__, "iminuit": iminuit.__version__, **answers(spec)}
        (HERE / f"{name}.answers.json").write_text(json.dumps(found, indent=1) + "\n")
        print(name, found["fit"]["values"]["mu"], found["limit"], flush=True)


if __name__ == "__main__":
    main()
