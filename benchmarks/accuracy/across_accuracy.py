"""How near learned likelihoods come to exact ones, across problems with known densities.

    PYTHONPATH=build/release/python python3 benchmarks/accuracy/across_accuracy.py --out across.jsonl
    …/across_accuracy.py --problems peak wave --methods separable "density components=4" --seeds 1
    …/across_accuracy.py --events 1e5 1e6 --out across.jsonl
    …/across_accuracy.py --check-problems          # are the densities right?
    …/across_accuracy.py --out across.jsonl --write-docs

Of each problem of problems.py, events are simulated with θ uniform in the ranges, a ratio is learned
from them, and data that are drawn at the truth are fitted with the learned likelihood and with the
exact one. Each result is a line of the --out file; a line that is there already is not measured again,
so that a run that was stopped goes on where it was. A line tells the method by its name alone: after a
change of the library, take another file.

A method is a function `learn(problem, events, seed, **options)`; events are neyman.Samples with θ. It
returns a neyman.Ratio, or a function f(x, θ) → log r of each row of x, which is then fitted as the
exact density is; or one of them and the verdicts of checks. Options may follow a method's name:
"separable degree=6 hidden=[64,64]" calls separable's function with them, and "default kind=mlp" runs
whole studies with this [classifier]. Parameters and features that are periodic are told as such,
but with the option periods=False. --methods-from takes further methods from a file with a
dictionary METHODS.

The yardstick is δ = √(observed events / simulated events near the truth), near being within two exact
standard errors: an ideal use of the simulation leaves about that shift, in standard errors, of one
parameter. Of several it can be far less, as events further away tell of a smooth density too; where
fewer than 25 events are near, δ tells nothing and is left out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import multiprocessing
import pathlib
import runpy
import sys
import time
import warnings

import numpy as np
from scipy import optimize, stats

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import further_problems  # noqa: E402,F401
import problems  # noqa: E402
from methods import learners, with_options  # noqa: E402
from problems import PROBLEMS  # noqa: E402

LEVEL = 0.6827
FAR = 0.9973  # −2 log Λ is compared inside the exact region of this level
FLOOR = 0.15  # a shift of so many standard errors is small, whatever δ is
NEAR = 25  # with fewer events near the truth there is no δ
MANY = 5  # of so many parameters the mean shift is told


# The exact likelihood: its maximum, its intervals, and the points where −2 log Λ is compared.


class Surface:
    """A log-likelihood ℓ(θ) within ranges: its maximum near a start, and what follows from it."""

    def __init__(self, log_likelihood, low, high):
        self.of, self.low, self.high = log_likelihood, low, high

    def negative(self, theta):
        value = -self.of(theta)
        return value if np.isfinite(value) else 1e300

    def climb(self, start, scale, free=None):
        """(θ, ℓ) of a maximum over the free parameters, the others as they are at the start."""
        free = np.arange(len(start)) if free is None else free
        if not len(free):
            return start, self.of(start)

        def at(u):
            theta = start.copy()
            theta[free] = np.clip(start[free] + u * scale[free], self.low[free], self.high[free])
            return theta

        bounds = list(zip((self.low[free] - start[free]) / scale[free],
                          (self.high[free] - start[free]) / scale[free]))
        found = optimize.minimize(lambda u: self.negative(at(u)), np.zeros(len(free)),
                                  method="L-BFGS-B", bounds=bounds,
                                  options={"eps": 1e-5, "ftol": 1e-13, "gtol": 1e-4})
        return at(found.x), -found.fun

    def maximum(self, starts, rng, tries):
        """The highest maximum that is found from the starts and from the best of random points."""
        if len(self.low) == 1:
            grid = np.linspace(self.low[0], self.high[0], 4001)
            values = np.array([self.of(np.array([v])) for v in grid])
            for _ in range(8):  # zooms in: the maximum may be at a kink, or at an edge of the support
                best = int(np.argmax(values))
                best_theta, best_value = grid[best], values[best]
                grid = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)], 41)
                values = np.array([self.of(np.array([v])) for v in grid])
                if values.max() < best_value:
                    break
            return np.array([best_theta]), best_value
        scale = (self.high - self.low) / 50
        tried = rng.uniform(self.low, self.high, (tries, len(self.low)))
        order = np.argsort([self.negative(theta) for theta in tried])[:3]
        found = [self.climb(start, scale) for start in (*starts, *tried[order])]
        theta, value = max(found, key=lambda pair: pair[1])
        return self.climb(theta, np.maximum(self.errors(theta), 1e-9))  # again, better scaled

    def errors(self, theta):
        """A first guess of the standard errors, from second differences of each parameter."""
        out = (self.high - self.low) / 100
        middle = self.of(theta)
        for i in range(len(theta)):
            for _ in range(6):
                step = np.zeros(len(theta))
                step[i] = min(0.3 * out[i], self.high[i] - theta[i], theta[i] - self.low[i])
                if step[i] <= 0:
                    break
                drop = 2 * middle - self.of(theta + step) - self.of(theta - step)
                out[i] = min(step[i] / math.sqrt(drop) if drop > 0 and np.isfinite(drop)
                             else 3 * out[i] if np.isfinite(drop) else out[i] / 10,
                             (self.high[i] - self.low[i]) / 4)
        return out

    def covariance(self, theta, errors):
        """The inverse of −∂²ℓ/∂θ², or the squared errors alone where it is not positive."""
        d = len(theta)
        step = np.minimum(0.2 * errors, 0.5 * np.minimum(self.high - theta, theta - self.low))
        hessian = np.zeros((d, d))
        if np.all(step > 0):
            for i in range(d):
                for j in range(i + 1):
                    a, b = np.eye(d)[i] * step, np.eye(d)[j] * step
                    hessian[i, j] = hessian[j, i] = -(
                        self.of(theta + a + b) - self.of(theta + a - b) - self.of(theta - a + b)
                        + self.of(theta - a - b)) / (4 * step[i] * step[j])
        try:
            np.linalg.cholesky(hessian)
            return np.linalg.inv(hessian)
        except np.linalg.LinAlgError:
            return np.diag(errors**2)

    def end(self, theta, value, covariance, i, side, threshold):
        """Where −2 log Λ of parameter i, the others profiled, first reaches the threshold on one side,
        and the highest (θ, ℓ) that was met on the way."""
        d = len(theta)
        limit = self.high[i] if side > 0 else self.low[i]
        others = np.delete(np.arange(d), i)
        slope = covariance[:, i] / covariance[i, i]
        scale = np.sqrt(np.diag(covariance))
        highest = (theta, value)

        def statistic(at):
            nonlocal highest
            start = np.clip(theta + slope * (at - theta[i]), self.low, self.high)
            start[i] = at
            found = self.climb(start, scale, others)
            if found[1] > highest[1]:
                highest = found
            return 2 * (value - found[1])

        inside, step = theta[i], 1e-6 * (self.high[i] - self.low[i]) if d == 1 else scale[i]
        while True:
            outside = theta[i] + side * step
            if side * (outside - limit) >= 0:
                if statistic(limit) <= threshold:
                    return limit, highest
                outside = limit
                break
            if statistic(outside) > threshold:
                break
            inside, step = outside, 1.4 * step
        if d > 1:
            return optimize.brentq(lambda at: statistic(at) - threshold, inside, outside,
                                   xtol=1e-3 * scale[i]), highest
        for _ in range(40):
            middle = 0.5 * (inside + outside)
            inside, outside = ((middle, outside) if statistic(middle) <= threshold
                               else (inside, middle))
        return 0.5 * (inside + outside), highest

    def summary(self, starts, rng, tries=300):
        """θ̂, ℓ(θ̂), the ends of the 68.3 % intervals around θ̂, and a covariance whose diagonal is the
        square of half their widths."""
        theta, value = self.maximum(starts, rng, tries)
        for _ in range(4):
            covariance = (self.covariance(theta, self.errors(theta)) if len(theta) > 1
                          else np.array([[1.0]]))  # nothing is profiled
            ends = [[self.end(theta, value, covariance, i, side, stats.chi2.ppf(LEVEL, 1))
                     for side in (-1, 1)] for i in range(len(theta))]
            best = max((found for pair in ends for _, found in pair), key=lambda pair: pair[1])
            if len(theta) == 1 or best[1] < value + 1e-3:
                break
            theta, value = best  # a profile came upon a higher maximum
        intervals = np.array([[end for end, _ in pair] for pair in ends])
        half = np.maximum(0.5 * np.diff(intervals)[:, 0], 1e-12)
        rescale = half / np.sqrt(np.diag(covariance))
        return theta, value, intervals, covariance * np.outer(rescale, rescale)


def nearest(problem, theta, target, covariance):
    """Of θ and the points with the same likelihood, the one nearest to the target; periods count."""
    inverse = np.linalg.inv(covariance)
    found = []
    for candidate in (theta, *(problem.twins(theta) if problem.twins else [])):
        candidate = candidate.copy()
        for name in problem.periodic:
            i = problem.names.index(name)
            period = problem.high[i] - problem.low[i]
            candidate[i] -= period * np.round((candidate[i] - target[i]) / period)
        found.append(((candidate - target) @ inverse @ (candidate - target), candidate))
    return min(found, key=lambda pair: pair[0])[1]


def exact(problem, seed):
    """What the exact likelihood of a seed's data says, as entries of a line of the results."""
    x = problem.observe(seed)
    surface = Surface(lambda theta: problem.log_likelihood(x, theta), problem.low, problem.high)
    rng = np.random.default_rng([30_000 + seed, *problem.name.encode()])
    d = len(problem.truth)
    tries = 100 if problem.name == "ricker" else 300 * (1 + (d > 2))
    theta, value, intervals, covariance = surface.summary([problem.truth], rng, tries)
    mapped = nearest(problem, theta, problem.truth, covariance)
    if not np.array_equal(mapped, theta) and problem.twins:
        theta, value, intervals, covariance = surface.summary([mapped], rng, 0) \
            if d > 1 else around(surface, mapped)
    far = stats.chi2.ppf(FAR, d)
    if d == 1:
        ends = [surface.end(theta, value, covariance, 0, side, far)[0] for side in (-1, 1)]
        points = np.linspace(*ends, 121)[:, None]
    elif d == 2:
        u = np.stack(np.meshgrid(*[np.linspace(-4, 4, 21)] * 2), axis=-1).reshape(-1, 2)
        points = theta + u @ np.linalg.cholesky(covariance).T
    else:
        points = theta + rng.standard_normal((300, d)) @ np.linalg.cholesky(covariance).T
    points = points[np.all((points >= problem.low) & (points <= problem.high), axis=1)]
    statistic = np.array([2 * (value - surface.of(point)) for point in points])
    inside = statistic <= far * (1 + 1e-9)
    return {"theta": theta.tolist(), "intervals": intervals.tolist(),
            "covariance": covariance.tolist(), "points": points[inside].tolist(),
            "statistic": statistic[inside].tolist()}


def around(surface, theta):
    """The summary of one parameter's maximum that is known already."""
    value = surface.of(theta)
    covariance = np.array([[1.0]])
    ends = np.array([[surface.end(theta, value, covariance, 0, side, stats.chi2.ppf(LEVEL, 1))[0]
                      for side in (-1, 1)]])
    return theta, value, ends, 0.25 * np.diff(ends) ** 2


# Methods.


def ratio_of(learner):
    def learn(problem, events, seed, periods=True, **options):
        if periods and problem.angles:
            options["periodic"] = {events.feature_names[column]: period
                                   for column, period in problem.angles.items()}
        return learner(events, "uniform", problem.described if periods else problem.parameters,
                       seed=seed, **options)

    return learn


def whole_study(problem, events, seed, periods=True, **classifier):
    """The ratio of a study with its defaults, and the verdicts of its checks. It simulates as many
    events of its own."""
    import neyman

    if periods and problem.angles:
        classifier["periodic"] = {events.feature_names[column]: list(period)
                                  for column, period in problem.angles.items()}
    described = problem.described if periods else {name: {"range": ends} for name, ends in
                                                   problem.parameters.items()}

    def simulate(theta, n, rng):
        return problem.draw(np.broadcast_to(theta, (n, len(problem.truth))), rng)

    result = neyman.run({
        "study": {"name": problem.name, "seed": seed},
        "parameters": {name: {**told, "range": list(told["range"]), "truth": float(value)}
                       for (name, told), value in zip(described.items(), problem.truth)},
        "simulator": neyman.PythonSimulator(simulate, problem.parameters, per_row=True),
        "training": {"samples": len(events)},
        **({"classifier": classifier} if classifier else {})}, data=problem.observe(seed))
    return result.model.ratio, {check["name"]: check["verdict"]
                                for check in result.to_dict()["diagnostics"]}


def methods():
    """The methods that this version of the package has."""
    import neyman

    return {"default": whole_study,
            **{name: ratio_of(kind) for name, kind in learners().items()}}


# One measurement.


def pieces_near(problem, name, pieces, target):
    """The piece of an interval nearest to a value; of a period, the two ends are joined."""
    low, high = problem.parameters[name]
    pieces = [tuple(piece) for piece in pieces]
    if name in problem.periodic and len(pieces) > 1:
        slack = 1e-6 * (high - low)
        if pieces[0][0] <= low + slack and pieces[-1][1] >= high - slack:
            joined = (pieces[-1][0], pieces[0][1] + high - low)
            pieces = [*pieces[1:-1], joined]
            target = target + (high - low if target < joined[0] - (high - low) / 2 else 0)
    if name in problem.periodic:
        middle = [round((target - sum(piece) / 2) / (high - low)) * (high - low) for piece in pieces]
        pieces = [(piece[0] + shift, piece[1] + shift) for piece, shift in zip(pieces, middle)]
    return min(pieces, key=lambda piece: max(piece[0] - target, target - piece[1], 0))


def learned_by_neyman(problem, ratio, x, points):
    import neyman

    likelihood = neyman.Likelihood(ratio, x)
    best = likelihood.fit()
    total, statistical = ([likelihood.interval(name, level=LEVEL, include_simulation=include).pieces
                           for name in problem.names] for include in (True, False))
    # An interval may have come upon a higher maximum than the fit.
    best = likelihood._best or best
    return {"theta": best.point.tolist(), "status": best.status,
            "simulation_error": [best.simulation_error[name] for name in problem.names],
            "maxima": [[[point[name] for name in problem.names], value]
                       for point, value in best.maxima],
            "pieces": total, "pieces_statistical": statistical,
            "statistic": [2 * (best.log_likelihood - likelihood(point)) for point in points]}


def learned_by_function(problem, log_ratio, x, points, start):
    surface = Surface(lambda theta: float(np.sum(log_ratio(x, theta))), problem.low, problem.high)
    rng = np.random.default_rng(1)
    theta, value, intervals, covariance = surface.summary([start], rng)
    maxima = [[theta.tolist(), 0.0]]
    for twin in problem.twins(theta) if problem.twins else []:
        found, height = surface.climb(twin, np.sqrt(np.diag(covariance)))
        maxima.append([found.tolist(), 2 * (value - height)])
    pieces = [[pair] for pair in intervals.tolist()]
    return {"theta": theta.tolist(), "status": "converged", "maxima": maxima,
            "simulation_error": [math.nan] * len(theta), "pieces": pieces,
            "pieces_statistical": pieces,
            "statistic": [2 * (value - surface.of(np.asarray(point))) for point in points]}


def twins_found(problem, found, truth, errors):
    """Of the other exact maxima, the share that the fit has met with −2 log Λ of at most 4, or that
    the intervals of all parameters hold; both within two exact errors."""
    met = 0
    maxima = [np.array(point) for point, value in found["maxima"] if value <= 4]
    exact_maxima = [np.array(truth), *problem.twins(np.array(truth))]
    for one in exact_maxima:
        met += any(np.all(np.abs(point - one) <= 2 * errors) for point in maxima) or all(
            any(low - 2 * error <= value <= high + 2 * error for low, high in pieces)
            for value, error, pieces in zip(one, errors, found["pieces"]))
    return max(met - 1, 0) / (len(exact_maxima) - 1)


def measure(problem, events, seed, learn, truth):
    import neyman

    rng = np.random.default_rng([10_000 + seed, *problem.name.encode()])
    x, theta = problem.simulate(events, rng)
    samples = neyman.Samples(x, theta=theta, parameter_names=problem.names)
    estimate, covariance = np.array(truth["theta"]), np.array(truth["covariance"])
    errors = np.sqrt(np.diag(covariance))
    inverse = np.linalg.inv(covariance)
    near = np.full(len(theta), np.inf)
    for target in (problem.truth, *(problem.twins(problem.truth) if problem.twins else [])):
        away = theta - target
        for name in problem.periodic:
            i = problem.names.index(name)
            period = problem.high[i] - problem.low[i]
            away[:, i] -= period * np.round(away[:, i] / period)
        near = np.minimum(near, np.einsum("ij,jk,ik->i", away, inverse, away))
    count = int(np.sum(near < 4))
    out = {"near": count}

    start = time.process_time(), time.monotonic()
    ratio = learn(problem, samples, seed)
    out["cpu"], out["wall"] = time.process_time() - start[0], time.monotonic() - start[1]
    if isinstance(ratio, tuple):
        ratio, out["checks"] = ratio
    start = time.process_time()
    observed = problem.observe(seed)
    if isinstance(ratio, neyman.Ratio):
        found = learned_by_neyman(problem, ratio, observed, truth["points"])
    else:
        found = learned_by_function(problem, ratio, observed, truth["points"], estimate)
    out["fit_cpu"] = time.process_time() - start
    out["chosen"] = next((one["name"] for one in getattr(ratio, "candidates", [])
                          if one["chosen"]), None)

    mapped = nearest(problem, np.array(found["theta"]), estimate, covariance)
    out["status"], out["estimate"] = found["status"], found["theta"]
    out["shift"] = ((mapped - estimate) / errors).tolist()
    simulation = np.array(found["simulation_error"], dtype=float)
    out["simulation_error"] = (simulation / errors).tolist()
    with np.errstate(divide="ignore", invalid="ignore"):
        out["pull"] = ((mapped - estimate) / simulation).tolist()
    exact_widths = np.diff(np.array(truth["intervals"]))[:, 0]
    for key in ("pieces", "pieces_statistical"):
        widths = []
        for name, pieces, target, width in zip(problem.names, found[key], estimate, exact_widths):
            low, high = pieces_near(problem, name, pieces, target) if pieces else (math.nan,) * 2
            widths.append((high - low) / width)
        out["width" if key == "pieces" else "width_statistical"] = widths
    difference = np.array(found["statistic"]) - np.array(truth["statistic"])
    out["rms"] = math.sqrt(np.mean(difference**2)) if len(difference) else math.nan
    if problem.equal_maxima:
        out["twins"] = twins_found(problem, found, truth["theta"], errors)
    return out


# The file of results.


def version(problem):
    """Another text where the problem is another."""
    told = [problem.name, problem.parameters, problem.truth.tolist(), problem.n]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:8]


def plain(value):
    """Numbers that are not finite are null in JSON."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Results:
    """Lines by their keys, in memory and in a file."""

    def __init__(self, path):
        self.path, self.lines = path, {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue  # a line that a stopped run did not end
                if "error" not in entry:  # it is tried again
                    self.lines[tuple(entry["key"])] = entry

    def get(self, key, make):
        if key not in self.lines:
            self.lines[key] = plain({"key": list(key), **make()})
            if self.path is not None:
                begin = "\n" if self.path.exists() and not self.path.read_bytes()[-1:] in (
                    b"\n", b"") else ""
                with self.path.open("a", encoding="utf-8") as file:
                    file.write(begin + json.dumps(self.lines[key]) + "\n")
        return self.lines[key]


def result_key(problem, method, events, seed):
    return ("learned", problem.name, version(problem), method, events, seed)


# What the results say together.


def numbers(rows, key):
    """All numbers of a key, of all parameters and seeds; what was not found is left out."""
    values = [value for row in rows for value in
              (row[key] if isinstance(row[key], list) else [row[key]])]
    return np.array([value for value in values if value is not None], dtype=float)


def rms(values):
    return float(np.sqrt(np.mean(values**2))) if len(values) else math.nan


def regular(name):
    return not PROBLEMS[name].moving_support


def aggregate(problem, rows):
    """A row of the table, over the seeds. `targets` has what must hold, and whether it does."""
    good = [row for row in rows if "error" not in row]
    out = {"problem": problem.name, "seeds": len(rows), "failed": len(rows) - len(good),
           "targets": {}}
    targets = out["targets"]
    if out["failed"]:
        targets["learned"] = False
    if not good:
        return out
    near = float(np.mean([row["near"] for row in good]))
    shift, width = numbers(good, "shift"), numbers(good, "width")
    out.update(delta=math.sqrt(problem.n / near) if near >= NEAR else None, shift=rms(shift),
               absolute=float(np.mean(np.abs(shift))), rms=rms(numbers(good, "rms")),
               pulls=numbers(good, "pull"),
               width=float(np.mean(width)) if len(width) else math.nan,
               cpu=float(np.mean([row["cpu"] for row in good])),
               twins=float(np.mean([row["twins"] for row in good])) if problem.equal_maxima
               else None,
               checks=sorted({f"{name}: {verdict}" for row in good for name, verdict in
                              row.get("checks", {}).items() if verdict in ("warn", "fail")}))
    if problem.moving_support:
        # In half widths of the exact interval.
        targets["shift"] = bool(np.max(np.abs(shift)) <= 2)
    elif out["delta"] is not None:
        floor = max(out["delta"], FLOOR)
        targets["shift"] = out["shift"] <= floor
        targets["−2 log Λ"] = out["rms"] <= 4 * floor
        targets["width"] = abs(out["width"] - 1) <= 0.1 + out["delta"]
    if problem.equal_maxima:
        targets["maxima"] = out["twins"] == 1
    return out


def shown(value, digits=2):
    return "—" if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


HEAD = ("problem", "δ", "shift", "−2 log Λ", "width", "pull", "other maxima", "CPU/s", "not met")


def cells(row):
    missed = ", ".join(name for name, holds in row["targets"].items() if not holds) or (
        "" if row["targets"] else "—")
    if "shift" not in row:
        return [row["problem"], *["—"] * 7, missed]
    twins = "" if row["twins"] is None else f"{100 * row['twins']:.0f} %"
    return [row["problem"], shown(row["delta"]), shown(row["shift"]), shown(row["rms"]),
            shown(row["width"]), shown(rms(row["pulls"])), twins, shown(row["cpu"], 1), missed]


def summed_up(rows):
    """What the rows say together. A problem that could not be learned meets no target."""
    parts = []
    learned = [row for row in rows if "shift" in row]
    with_delta = [row for row in learned if regular(row["problem"]) and row["delta"] is not None]
    if with_delta:
        ratio = np.median([row["shift"] / row["delta"] for row in with_delta])
        parts.append(f"the median problem's shift is {ratio:.2f} δ")
    for target, told in (("shift", f"shifts of at most max(δ, {FLOOR})"),
                         ("−2 log Λ", f"−2 log Λ off by at most 4 max(δ, {FLOOR})"),
                         ("width", "widths within 0.1 + δ of exact ones")):
        of = [row["targets"].get(target, False) for row in rows if regular(row["problem"])
              and ("shift" not in row or row["delta"] is not None)]
        if of:
            parts.append(f"{told}: {sum(of)} of {len(of)}")
    for target, told, of in (
            ("maxima", "all maxima found", [row for row in rows
                                            if PROBLEMS[row["problem"]].equal_maxima]),
            ("shift", "within one exact interval where the support moves",
             [row for row in rows if not regular(row["problem"])])):
        if of:
            held = sum(row["targets"].get(target, False) for row in of)
            parts.append(f"{told}: {held} of {len(of)}")
    pulls = np.concatenate([np.zeros(0), *(row["pulls"] for row in learned
                                           if regular(row["problem"]))])
    if len(pulls) > 1:
        parts.append(f"standard deviation of {len(pulls)} pulls: {np.std(pulls):.2f}, and "
                     f"{100 * np.mean(np.abs(pulls) < 1):.0f} % of them are within ± 1")
    without = [f"{row['problem']} {row['absolute']:.2f}" for row in learned if row["delta"] is None]
    if without:
        parts.append("mean absolute shift where there is no δ: " + ", ".join(without))
    parts.append(f"{sum(row['cpu'] for row in learned):.0f} s of CPU a seed")
    return "; ".join(parts)


def tables(results, names=None, chosen=None, sizes=None):
    """(method, events, rows) for all that was measured, in the order of the problems."""
    found = {}
    for key, entry in results.lines.items():
        if key[0] != "learned" or key[1] not in PROBLEMS or key[2] != version(PROBLEMS[key[1]]):
            continue
        _, name, _, method, events, _ = key
        if (names is None or name in names) and (chosen is None or method in chosen) and (
                sizes is None or events in sizes):
            found.setdefault((method, events), {}).setdefault(name, []).append(entry)
    for (method, events), by_name in sorted(found.items(), key=lambda pair: pair[0][1]):
        yield method, events, [aggregate(PROBLEMS[name], by_name[name])
                               for name in PROBLEMS if name in by_name]


def power(events):
    exponent = math.log10(events)
    return f"10^{exponent:.0f}" if exponent == round(exponent) else str(events)


def of_seeds(rows):
    seeds = max(row["seeds"] for row in rows)
    return f"{seeds} seed{'s' * (seeds > 1)}"


def print_tables(results, checks, **chosen):
    for method, events, rows in tables(results, **chosen):
        print(f"\n{method}, {power(events)} simulated events, {of_seeds(rows)}")
        lines = [list(HEAD), *(cells(row) for row in rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
        for line in lines:
            print("  ".join(text.ljust(width) if i in (0, len(HEAD) - 1) else text.rjust(width)
                            for i, (text, width) in enumerate(zip(line, widths))).rstrip())
        print("\n".join("  " + part for part in summed_up(rows).split("; ")))
        for row in rows:
            if checks and row.get("checks"):
                print(f"  checks of {row['problem']}: {', '.join(row['checks'])}")


def write_docs(results):
    import documents

    parts = []
    for method, events, rows in tables(results):
        lines = ["| " + " | ".join(HEAD) + " |",
                 "| --- |" + " ---: |" * (len(HEAD) - 2) + " --- |",
                 *("| " + " | ".join(cells(row)) + " |" for row in rows)]
        parts.append(f"*{method}*, {power(events)} simulated events, {of_seeds(rows)}:\n\n"
                     + "\n".join(lines) + "\n\n"
                     + "\n".join("- " + part for part in summed_up(rows).split("; ")))
    if not parts:
        raise SystemExit("--write-docs: there are no results yet; --out names their file")
    documents.replace_section("across", "\n\n".join(parts),
                              documents.PAGE.with_name("accuracy.md"))


def by_itself(work):
    """What the work returns, from a process of its own: whatever it does must not end the others."""
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)

    def answer():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                sending.send(work())
        except Exception as error:
            sending.send({"error": f"{type(error).__name__}: {error}"})

    process = context.Process(target=answer, daemon=True)
    process.start()
    sending.close()
    try:
        return receiving.recv()
    except EOFError:
        return {"error": "the process ended without a result"}
    finally:
        process.join()


def told_of(problem, found):
    """A result in a line."""
    if "error" in found:
        return found["error"]
    shifts = ", ".join(f"{name} {value:+.2f}" for name, value in zip(problem.names, found["shift"]))
    return (f"shift {shifts}; −2 log Λ off by {shown(found['rms'] or math.nan)}; "
            f"{found['cpu']:.1f} s of CPU")


def run(results, names, chosen, sizes, seeds):
    total = len(names) * len(chosen) * len(sizes) * len(seeds)
    done, begun = 0, time.monotonic()
    for seed in seeds:
        for name in names:
            problem = PROBLEMS[name]
            truth = None
            for events in sizes:
                for method, learn in chosen.items():
                    done += 1
                    key = result_key(problem, method, events, seed)
                    told = f"[{done}/{total}] {name}, {method}, {power(events)}, seed {seed}"
                    if key in results.lines:
                        print(f"{told}: is there", file=sys.stderr, flush=True)
                        continue
                    if truth is None:
                        truth = results.get(("exact", name, version(problem), seed),
                                            lambda: exact(problem, seed))

                    found = results.get(key, lambda: by_itself(
                        lambda: measure(problem, events, seed, learn, truth)))
                    said = told_of(problem, found)
                    print(f"{told}: {said}; {time.monotonic() - begun:.0f} s so far",
                          file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", metavar="NAME", help="all by default")
    parser.add_argument("--methods", nargs="+", default=["default"], metavar="NAME",
                        help="default, separable, density, …, each as one text with its options")
    parser.add_argument("--methods-from", type=pathlib.Path, metavar="FILE",
                        help="a Python file with further METHODS")
    parser.add_argument("--events", nargs="+", default=["1e5"], metavar="N",
                        help="simulated events, such as 1e4 1e5 1e6")
    parser.add_argument("--seeds", type=int, default=5, help="how many: 1, 2, …")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="of the library; 0: all there are")
    parser.add_argument("--out", type=pathlib.Path, help="JSON lines, kept and used again")
    parser.add_argument("--checks", action="store_true",
                        help="also tells which checks of whole studies, as the default is, warned")
    parser.add_argument("--check-problems", action="store_true",
                        help="tests the densities of the problems, and nothing else")
    parser.add_argument("--show", action="store_true", help="only prints what --out has")
    parser.add_argument("--write-docs", action="store_true",
                        help="only writes what --out has into docs/accuracy.md")
    parser.add_argument("--list", action="store_true", help="only prints the problems")
    given = parser.parse_args()
    names = given.problems or list(PROBLEMS)
    for name in names:
        if name not in PROBLEMS:
            parser.error(f"the problem '{name}' is not among {', '.join(PROBLEMS)}")
    if given.check_problems:
        raise SystemExit(0 if problems.check(names) else 1)
    if given.list:
        for problem in PROBLEMS.values():
            print(f"{problem.name:<22}{len(problem.truth):>3} parameters, {problem.n:>4} events: "
                  f"{problem.hard}")
        return
    results = Results(given.out)
    if given.write_docs:
        write_docs(results)
        return
    if given.show:
        print_tables(results, given.checks, names=names)
        return
    import neyman

    neyman.set_threads(given.threads)
    known = {**methods(), **(runpy.run_path(str(given.methods_from))["METHODS"]
                             if given.methods_from else {})}
    try:
        chosen = {text: with_options(text, known) for text in given.methods}
    except ValueError as problem:
        parser.error(str(problem))
    sizes = [int(float(text)) for text in given.events]
    run(results, names, chosen, sizes, range(given.first_seed, given.first_seed + given.seeds))
    print_tables(results, given.checks, names=names, chosen=chosen, sizes=sizes)


if __name__ == "__main__":
    main()
