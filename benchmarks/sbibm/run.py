"""Learned ratios on the public benchmark sbibm: how far their posteriors are from the reference.

    PYTHONPATH=build/release/python python3 benchmarks/sbibm/run.py --out sbibm.jsonl
    …/run.py --tasks slcp two_moons --budgets 1e3 1e4 --methods separable "density of=parameters" \\
             --observations 1 2 3 --out sbibm.jsonl
    …/run.py --methods-from mine.py --methods mine --tasks slcp --quick
    …/run.py --out sbibm.jsonl --show          # or --write-docs

For each task and budget, so many θ are drawn from the task's prior and simulated, a ratio is learned
once, and for each observation 10 000 samples of prior × r are compared with as many of the reference
posterior (C2ST: 0.5 is perfect, 1 is useless). Methods see θ in standardised coordinates, uniform in
(0, 1) or standard normal, cut off at ±6, which is a design that the package knows; the features are as
the simulator gives them. Each result is a line of the --out file; a line that is there already is not
measured again, so that a run that was stopped goes on where it was. A line tells the method by its
name alone: after a change of the library, take another file.

A method is a function `learn(events, design, seed, **options)` of neyman.Samples with θ and a
neyman.Design. It returns a neyman.Ratio, or a function f(x, z) → log r of one row x at each row of z.
Options may follow a method's name: "separable degree=3 hidden=[64,64]". --methods-from takes further
methods from a file with a dictionary METHODS.

Each line has the package's C2ST (`c2st`) unless --quick is given, and a sharper one that takes a
twentieth of the time (`quick`; see c2st.py).
"""

import argparse
import json
import pathlib
import runpy
import sys
import time
from statistics import mean

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from c2st import c2st  # noqa: E402
from methods import learners, with_options  # noqa: E402
from published import BUDGETS, METHODS, published  # noqa: E402
from sampler import sample  # noqa: E402
from tasks import TASKS, load_task  # noqa: E402

EDGE = 6.0  # of normal coordinates: 10⁵ θ in ten dimensions have a coordinate beyond it once in 500


# Methods.


def learner(kind):
    return lambda events, design, seed, **options: kind(events, design, seed=seed, **options)


def methods():
    return {name: learner(kind) for name, kind in learners().items()}


def log_ratio_at(learned, x):
    """log r of the row x at many z in one call."""
    import neyman

    if not isinstance(learned, neyman.Ratio):
        return lambda z: learned(x, z)
    if hasattr(learned, "table"):
        return lambda z: learned.table(x, z)[0]
    likelihood = neyman.Likelihood(learned, x)
    return lambda z: np.array([likelihood(point) for point in z])


# One task and budget.


def design_of(prior):
    import neyman

    d = prior.dimension
    ends = (0.0, 1.0) if prior.bounded else (-EDGE, EDGE)
    kind = "uniform" if prior.bounded else {"kind": "normal", "mean": [0.0] * d, "sigma": [1.0] * d}
    return neyman.Design(kind, {f"z{i + 1}": ends for i in range(d)})


def inside(prior, z):
    return ((z >= 0) & (z <= 1)).all(1) if prior.bounded else (np.abs(z) <= EDGE).all(1)


def simulated(task, budget, seed):
    import neyman

    rng = np.random.default_rng([seed, budget, *task.name.encode()])
    z = task.prior.standardise(task.draw_prior(budget, rng))
    while not (good := inside(task.prior, z)).all():
        z[~good] = task.prior.standardise(task.draw_prior(int((~good).sum()), rng))
    x = task.simulate(task.prior.restore(z), rng)
    return neyman.Samples(x, theta=z, parameter_names=[f"z{i + 1}" for i in range(task.dimension)])


def posterior(task, learned, i):
    """10 000 samples of θ given observation i, and what they took."""
    log_ratio = log_ratio_at(learned, task.observation(i))

    def log_r(theta):
        z = task.prior.standardise(theta)
        out, good = np.full(len(z), -np.inf), inside(task.prior, z)
        if good.any():
            out[good] = log_ratio(np.ascontiguousarray(z[good]))
        return out

    return sample(log_r, task.prior, rng=np.random.default_rng([i, 77]))


def measure(task, learned, i, quick):
    start = time.process_time()
    theta, info = posterior(task, learned, i)
    sampled = time.process_time()
    reference = task.reference(i)
    out = {"quick": c2st(reference, theta, quick=True)}
    if not quick:
        out["c2st"] = c2st(reference, theta)
    return {**out, "evaluations": info["evaluations"], "distinct": info["distinct"],
            "sample_cpu": sampled - start, "c2st_cpu": time.process_time() - sampled}


# The file of results.


class Results:
    """Lines by (task, method, budget, seed, observation), in memory and in a file."""

    def __init__(self, path):
        self.path, self.lines = path, {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue  # a line that a stopped run did not end
                self.lines[tuple(entry["key"])] = entry

    def has(self, key, quick):
        return key in self.lines and (quick or "c2st" in self.lines[key])

    def add(self, key, entry):
        self.lines[key] = {"key": list(key), **entry}
        if self.path is not None:
            old = self.path.read_bytes() if self.path.exists() else b""
            with self.path.open("a", encoding="utf-8") as file:
                file.write("\n" if old and not old.endswith(b"\n") else "")
                file.write(json.dumps(self.lines[key]) + "\n")


def run(results, names, chosen, budgets, seeds, observations, quick):
    begun = time.monotonic()
    for budget in budgets:
        for name in names:
            task = load_task(name)
            for seed in seeds:
                events = None
                for method, learn in chosen.items():
                    keys = [(name, method, budget, seed, i) for i in observations]
                    keys = [key for key in keys if not results.has(key, quick)]
                    if not keys:
                        continue
                    if events is None:
                        events = simulated(task, budget, seed)
                    told = f"{name}, {method}, {power(budget)}, seed {seed}"
                    start = time.process_time()
                    try:
                        learned = learn(events, design_of(task.prior), seed)
                    except Exception as error:  # the other methods and tasks go on
                        print(f"{told}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                        continue
                    trained = time.process_time() - start
                    for key in keys:
                        entry = {"train_cpu": trained, **measure(task, learned, key[-1], quick)}
                        results.add(key, entry)
                        figures = ", ".join(f"{kind} {entry[kind]:.3f}" for kind in ("c2st", "quick")
                                            if kind in entry)
                        print(f"{told}, observation {key[-1]}: {figures}; CPU seconds: training "
                              f"{trained:.1f}, samples {entry['sample_cpu']:.1f}, C2ST "
                              f"{entry['c2st_cpu']:.1f}; {time.monotonic() - begun:.0f} s so far",
                              file=sys.stderr, flush=True)


# What the results say together.


def power(budget):
    digits = str("⁰¹²³⁴⁵⁶⁷⁸⁹")
    exponent = round(np.log10(budget))
    return f"10{digits[exponent]}" if 10**exponent == budget else str(budget)


def of_task(results, kind):
    """{(budget, method, task): the mean over observations and seeds}, and how many observations."""
    values, observations = {}, {}
    for (name, method, budget, _, i), entry in results.lines.items():
        if entry.get(kind) is not None:
            values.setdefault((budget, method, name), []).append(entry[kind])
            observations.setdefault(budget, set()).add(i)
    return {key: mean(found) for key, found in values.items()}, observations


def rows_of(results, budget, kind):
    """The head, a row for each task, and the mean row. Texts."""
    found, observations = of_task(results, kind)
    seconds, _ = of_task(results, "train_cpu")
    here = [key[1] for key in found if key[0] == budget]
    ours = list(dict.fromkeys(here))
    rivals = [method for method in METHODS if budget in BUDGETS] if kind == "c2st" else []
    names = [name for name in TASKS if any((budget, method, name) in found for method in ours)]
    head = ["task", *(text for method in ours for text in (f"*{method}*", "CPU/s")), *rivals]
    table = []
    for name in names:
        row = [name]
        for method in ours:
            row += [shown(found.get((budget, method, name))),
                    shown(seconds.get((budget, method, name)), 1)]
        table.append(row + [shown(published(method, name, budget)) for method in rivals])

    def mean_of(value):
        values = [value(name) for name in names]
        return None if not values or None in values else mean(values)

    last = ["mean"]
    for method in ours:
        last += [shown(mean_of(lambda name: found.get((budget, method, name)))), ""]
    table.append(last + [shown(mean_of(lambda name: published(method, name, budget)))
                         for method in rivals])
    return head, table, len(observations.get(budget, ()))


def shown(value, digits=3):
    return "—" if value is None else f"{value:.{digits}f}"


def tables(results):
    for budget in sorted({key[2] for key in results.lines}):
        for kind in ("c2st", "quick"):
            head, table, observations = rows_of(results, budget, kind)
            if len(table) > 1:
                yield budget, kind, head, table, observations


def told_observations(n):
    return "the ten observations" if n == 10 else f"observations 1 to {n}" if n > 1 else "one observation"


def print_tables(results):
    for budget, kind, head, table, observations in tables(results):
        told = "C2ST" if kind == "c2st" else "the sharper C2ST"
        print(f"\n{power(budget)} simulations, {told}, mean over {told_observations(observations)}")
        lines = [[text.strip("*") for text in head], *table]
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        for line in lines:
            print("  ".join(text.rjust(width) if i else text.ljust(width)
                            for i, (text, width) in enumerate(zip(line, widths))))


def write_docs(results):
    import documents

    parts = []
    for budget, kind, head, table, observations in tables(results):
        if kind == "c2st":
            lines = [head, ["---", *["---:"] * (len(head) - 1)], *table]
            parts.append(f"{power(budget)} simulations; of neyman the mean over "
                         f"{told_observations(observations)}:\n\n"
                         + "\n".join("| " + " | ".join(line) + " |" for line in lines))
    if not parts:
        raise SystemExit("--write-docs: there are no results yet; --out names their file")
    documents.replace_section("sbibm", "\n\n".join(parts))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", metavar="NAME", default=list(TASKS), choices=list(TASKS),
                        help="all by default: " + ", ".join(TASKS))
    parser.add_argument("--budgets", nargs="+", default=["1e4"], metavar="N",
                        help="simulations, such as 1e3 1e4 1e5")
    parser.add_argument("--methods", nargs="+", default=["separable"], metavar="NAME",
                        help="separable, density, …, each as one text with its options")
    parser.add_argument("--methods-from", type=pathlib.Path, metavar="FILE",
                        help="a Python file with further METHODS")
    parser.add_argument("--observations", nargs="+", type=int, default=list(range(1, 11)), metavar="I")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1], metavar="SEED")
    parser.add_argument("--threads", type=int, default=1, help="of the library; 0: all there are")
    parser.add_argument("--quick", action="store_true", help="only the sharper, quicker C2ST")
    parser.add_argument("--out", type=pathlib.Path, help="JSON lines, kept and used again")
    parser.add_argument("--show", action="store_true", help="only prints what --out has")
    parser.add_argument("--write-docs", action="store_true",
                        help="also writes what --out has into docs/performance.md")
    given = parser.parse_args()
    results = Results(given.out)
    if not given.show:
        import neyman

        neyman.set_threads(given.threads)
        known = {**methods(), **(runpy.run_path(str(given.methods_from))["METHODS"]
                                 if given.methods_from else {})}
        try:
            chosen = {text: with_options(text, known) for text in given.methods}
        except ValueError as problem:
            parser.error(str(problem))
        budgets = [int(float(text)) for text in given.budgets]
        run(results, given.tasks, chosen, budgets, given.seeds, given.observations, given.quick)
    print_tables(results)
    if given.write_docs:
        write_docs(results)


if __name__ == "__main__":
    main()
