"""The first example's datasets, each simulated and fitted: neyman, and NumPy with SciPy."""

from harness import HERE, ROOT, Contender, best, in_turns, must_agree


def compare(table, python, programs, args):
    datasets, samples, epochs = (1000, 200_000, 10) if not args.quick else (100, 60_000, 4)
    request = {"datasets": datasets, "events": 5000, "gamma": 0.05}
    study = str(ROOT / "examples" / "01_mixture" / "study.toml")
    with Contender(programs / "peers_ensemble") as ours, \
            Contender(python, HERE / "ensemble" / "numpy_scipy.py") as theirs:
        print("training the ratios of both sides", flush=True)
        prepared = [ours.ask("prepare", study=study, samples=samples, seed=1),
                    theirs.ask("prepare", epochs=epochs, samples=samples, seed=1)]
        sides = (ours, theirs)
        whole = in_turns(args.repeats, *(lambda side=side: side.ask("ensemble", seed=7, **request)
                                         for side in sides))
        mine, other = (answers[0] for answers in whole)
        # Each side has its own finite simulation, worth 0.16 sd or more of bias: a difference of
        # 0.23 sd at least is expected, beside 1/√datasets of chance. The sd has 1/√(2 datasets).
        chance = 1 / datasets ** 0.5
        must_agree("mean of the estimates in sd", mine["mean"] / mine["sd"],
                   other["mean"] / mine["sd"], 0.8 + 4 * chance)
        must_agree("sd of the estimates, relative", 1.0, other["sd"] / mine["sd"], 0.05 + 4 * chance)
        name = f"{datasets} datasets of 5000 events"
        ratio = table.add(f"ensemble of {name}", "NumPy, SciPy", *map(best, whole), work=datasets,
                          unit="fits", means=[mine["mean"], other["mean"]], sds=[mine["sd"], other["sd"]],
                          preparation=prepared)
        table.aim("first example's ensemble, beside NumPy and SciPy", ratio, 20)
        table.aim("fits of the first example a second, 5000 events each, simulated too",
                  datasets / best(whole[0])["cpu"], 1000, "fits/s")
        stages = in_turns(args.repeats, *(lambda side=side: side.ask("stages", seed=7, **request)
                                          for side in sides))
        for stage, words in (("simulate", "simulate"), ("score", "networks on every event"),
                             ("fit", "fit, ratios known")):
            table.add(f"- {words}", "NumPy, SciPy", *(best(side, stage) for side in stages))
