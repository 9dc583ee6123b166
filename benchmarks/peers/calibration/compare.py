"""Calibration of 10⁶ scores and the second example's events: neyman, and scikit-learn, SciPy, NumPy
and boost-histogram."""

from harness import (HERE, OUT, Contender, Failure, add, best, faster, in_turns, must_agree, scale,
                     seconds_text)

# Logits at which the sides are compared with the exact ratio: where both have many events.
AT = [-2.5 + 5 * i / 100 for i in range(101)]
# Of log r, RMS. Each side has the same 5 · 10⁵ events a side; steps of 50 bins cost more.
ERRORS = {"isotonic": 0.08, "kde": 0.04, "histogram": 0.12}
# SciPy sums over all pairs: at 10⁴ scores, and 10⁶ at 10⁶ take 10⁴ times as long.
PAIRS = 10_000


WHY = {
    "isotonic": "the radix sort of both sides takes half, the merge of the sides a quarter, the rest are the pooling and "
                "the counts for the sigmoid that keeps the ends finite",
    "histogram": "two passes over the scores, one for their range and the check that they are finite, one that counts "
                 "them in 16 384 cells, take most of it, and 0.25 ms of that are 8 MB that other work has pushed out of "
                 "the cache; the rest are the sigmoid that fills empty bins and the bins",
    "kde": "counting takes a millisecond, as for histograms, and the rest looks each score up on a grid of 1024 points",
    "events": "half of it are the random numbers themselves (six of 64 bits an event, three made normal, two "
              "exponential), the rest the product with the matrix, the choice of components, scaling, and moving 40 MB to "
              "memory",
}


def rms(values, exact):
    return (sum((a - b) ** 2 for a, b in zip(values, exact)) / len(exact)) ** 0.5


def calibrate(side, kind, repeats, **request):
    """Best times of fit and evaluation, and values."""
    def once():
        return {"fit": side.ask("fit", kind=kind, **request), "evaluate": side.ask(
            "evaluate", at=AT, **{k: v for k, v in request.items() if k == "events"})}
    answers = in_turns(repeats, once)[0]
    return best(answers, "fit"), best(answers, "evaluate"), answers[0]["evaluate"]["values"]


def both(table, sides, exact, name, precision, peers, scores, repeats, factor=1.0, **request):
    """A kind beside its peers; returns neyman's times."""
    ours, theirs = sides
    calibrate(ours, name, 1)  # what a first call does once: pages, tables
    mine = calibrate(ours, name, 2 * repeats)
    error = rms(mine[2], exact)
    if error > ERRORS[name]:
        raise Failure(f"{name}: RMS error of log r is {error:.3f}, but must be at most {ERRORS[name]}")
    found = {}
    for label, kind in peers:
        times = calibrate(theirs, kind, repeats, **request)
        must_agree(f"RMS error of log r, {name} beside {label}", error, rms(times[2], exact),
                   ERRORS[name])
        found[label] = [scale(times[0], factor), scale(times[1], factor)]
        for stage, i in (("fit", 0), ("evaluate", 1)):
            table.add(f"{name}, {stage}, {precision} scores", label, mine[i], found[label][i],
                      work=scores, unit="scores", errors=[error, rms(times[2], exact)])
    return mine, found


def compare(table, python, programs, args):
    scores = 1_000_000 if not args.quick else 100_000
    per_million = 1e6 / scores
    with Contender(programs / "peers_calibration") as ours, \
            Contender(python, HERE / "calibration" / "numpy_scipy.py") as theirs:
        sides = (ours, theirs)
        exact = theirs.ask("exact", at=AT)["values"]
        # Networks give numbers of single precision; formulas and other libraries double.
        for precision in ("float64", "float32"):
            folder = OUT / f"scores-{precision}-{scores}"
            theirs.ask("make", folder=str(folder), scores=scores, precision=precision)
            for side in sides:
                side.ask("load", folder=str(folder))
            isotonic, sklearn = both(table, sides, exact, "isotonic", precision,
                                     [("scikit-learn", "isotonic")], scores, args.repeats)
        table.aim("isotonic fit of 10⁶ scores, sort included", 1e3 * per_million * isotonic[0]["cpu"], 13,
                  "ms", at_most=True, why=WHY["isotonic"])
        table.aim("isotonic fit, beside scikit-learn",
                  sklearn["scikit-learn"][0]["cpu"] / isotonic[0]["cpu"], 193 / 13, why=WHY["isotonic"])
        histogram, counted = both(table, sides, exact, "histogram", precision,
                                  [("NumPy", "numpy_histogram"), ("boost-histogram", "boost_histogram")],
                                  scores, args.repeats)
        table.aim("histogram fit of 10⁶ scores", 1e3 * per_million * histogram[0]["cpu"], 1, "ms",
                  at_most=True, why=WHY["histogram"])
        table.aim("histogram fit, beside the faster of NumPy and boost-histogram",
                  faster(*(times[0] for times in counted.values()))["cpu"] / histogram[0]["cpu"], 1.0,
                  why=WHY["histogram"])
        kde, scipy = both(table, sides, exact, "kde", precision, [("SciPy, scaled", "kde")], scores, 1,
                          factor=(scores / PAIRS) ** 2, events=PAIRS // 2)
        table.note(f"SciPy's kernel densities: {PAIRS} scores at {PAIRS // 2} ("
                   f"{seconds_text(scipy['SciPy, scaled'][1]['cpu'] / (scores / PAIRS) ** 2)}), scaled with "
                   "the number of pairs")
        table.aim("kernel densities of 10⁶ scores at 10⁶",
                  1e3 * per_million * add(kde[0], kde[1])["cpu"], 10, "ms", at_most=True,
                  why=WHY["kde"])
        draws = in_turns(2 * args.repeats, *(lambda side=side: side.ask("sample", rows=scores, seed=3)
                                             for side in sides))
        for a, b in zip(draws[0][0]["means"], draws[1][0]["means"]):
            must_agree("mean of a feature", a, b, 0.05)
        ratio = table.add("events of the second example", "NumPy", *map(best, draws), work=scores)
        table.aim("10⁶ events of the second example", 1e3 * per_million * best(draws[0])["cpu"], 15, "ms",
                  at_most=True, why=WHY["events"])
        table.aim("events of the second example, beside NumPy", ratio, 58 / 15, why=WHY["events"])
