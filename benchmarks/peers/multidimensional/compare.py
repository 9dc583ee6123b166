"""The second example complete, from the simulation to the contours: neyman, and scikit-learn with
SciPy."""

import math

from harness import CLOCKS, HERE, ROOT, Contender, must_agree

STAGES = ("simulate", "train", "grid", "optimise", "contours")
# χ² quantiles with two degrees of freedom: 1, 2, 3 σ.
LEVELS = (0.683, 0.9545, 0.9973)
THRESHOLDS = [-2 * math.log(1 - level) for level in LEVELS]
EXACT_ESTIMATE = (1.01185, -0.92213)  # of the second example's observed events
WINDOW = [[EXACT_ESTIMATE[0] - 0.16, EXACT_ESTIMATE[0] + 0.16],
          [EXACT_ESTIMATE[1] - 0.5, EXACT_ESTIMATE[1] + 0.5]]


def rms_error(exact, values, maximum):
    """Of −2 log Λ inside the exact 3σ contour."""
    squares = [4 * ((exact["maximum"] - e) - (maximum - v)) ** 2
               for e, v in zip(exact["values"], values)
               if 2 * (exact["maximum"] - e) <= THRESHOLDS[-1]]
    return (sum(squares) / len(squares)) ** 0.5


def study(contender, sizes, observed, points, method=None, forms=(None,)):
    """All stages of the second example, one after the other."""
    samples, events, evaluations = sizes
    contender.ask("load", observed=str(observed), seed=1, method=method)
    answers = {"simulate": contender.ask("simulate", samples=samples),
               "train": contender.ask("train", events=events)}
    for form in forms:
        suffix = "" if form is None else f" {form}"
        answers["grid" + suffix] = contender.ask("grid", points=points, events=events, form=form)
        answers["optimise" + suffix] = contender.ask("optimise", points=points, events=events,
                                                     evaluations=evaluations, form=form)
    answers["contours"] = contender.ask("contours", window=WINDOW, levels=LEVELS,
                                        thresholds=THRESHOLDS)
    answers["memory"] = contender.ask("memory")["peak"]
    return answers


def accuracy(exact, answers, suffix=""):
    """Errors of −2 log Λ on the grid and of its surrogate, and of the estimate."""
    grid, best = answers["grid" + suffix], answers["optimise" + suffix]
    return {"grid": rms_error(exact, grid["values"], max(grid["values"])),
            "surface": rms_error(exact, best["values"], best["maximum"]),
            "estimate": best["point"],
            "pull": [(a - b) / e for a, b, e in zip(best["point"], exact["point"], exact["errors"])]}


def compare(table, python, programs, args):
    side, *sizes = (15, 1_000_000, 250_000, 50) if not args.quick else (7, 100_000, 25_000, 30)
    observed = args.observed or ROOT / "examples" / "02_multidimensional" / "observed.csv"
    axes = [[low + (high - low) * i / (side - 1) for i in range(side)] for low, high in WINDOW]
    points = [[a, b] for a in axes[0] for b in axes[1]]
    program = programs / "peers_multidimensional"
    script = HERE / "multidimensional" / "scikit_learn.py"
    with Contender(program) as contender:
        contender.ask("load", observed=str(observed), seed=1, method="smooth")
        exact = contender.ask("exact", points=points)
    for found, known, tolerance in zip(exact["point"], EXACT_ESTIMATE, (2e-4, 2e-4)):
        must_agree("exact estimate", found, known, tolerance)
    ours = {}
    for method in ("on-demand", "smooth"):  # a process each, for its own memory
        with Contender(program) as contender:
            ours[method] = study(contender, sizes, observed, points, method=method)
    with Contender(python, script) as contender:
        theirs = study(contender, sizes, observed, points, forms=("plain", "lean"))

    quality = {method: accuracy(exact, answers) for method, answers in ours.items()}
    quality |= {form: accuracy(exact, theirs, " " + form) for form in ("plain", "lean")}
    for name, found in quality.items():
        # An estimate of a rough surface is off by some standard errors; not by ten.
        must_agree(f"estimate of {name} in standard errors", max(map(abs, found["pull"])), 0.0,
                   10 if not args.quick else 30)

    for method, form, aim in (("on-demand", "plain", 10), ("on-demand", "lean", 10),
                              ("smooth", "plain", 40), ("smooth", "lean", 40)):
        stages = [(ours[method][stage], theirs.get(stage) or theirs[f"{stage} {form}"])
                  for stage in STAGES]
        totals = [{clock: sum(stage[side][clock] for stage in stages) for clock in CLOCKS}
                  for side in (0, 1)]
        ratio = table.add(f"second example, {method}", f"scikit-learn, {form}", *totals,
                          accuracy=[quality[method], quality[form]],
                          memory=[ours[method]["memory"], theirs["memory"]])
        table.aim(f"second example complete, {method}, beside scikit-learn and SciPy, {form}", ratio, aim,
                  why="nearly all of neyman's time is the training; this peer's varies by a tenth between runs")
        for name, (mine, other) in zip(STAGES, stages):
            table.add(f"- {name}", f"scikit-learn, {form}", *({clock: one[clock] for clock in CLOCKS}
                                                              for one in (mine, other)))
    memory = {name: answers["memory"] for name, answers in (ours | {"peer": theirs}).items()}
    for name, found in quality.items():
        table.note(f"{name}: RMS error of −2 log Λ inside 3σ {found['grid']:.2f} on the grid, "
                   f"{found['surface']:.2f} of the surface with the contours; estimate "
                   f"({found['estimate'][0]:.4f}, {found['estimate'][1]:.4f}), off by "
                   f"({found['pull'][0]:+.2f}, {found['pull'][1]:+.2f}) standard errors; at most "
                   f"{memory.get(name, memory['peer']) / 2**20:.0f} MiB")
    table.note(f"the peer's network: {theirs['train']['epochs']} epochs")
