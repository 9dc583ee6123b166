"""Toys a second: an unbinned fit with one parameter of interest and five nuisance parameters, by
neyman, and by iminuit on NumPy."""

from harness import HERE, Contender, best, in_turns, must_agree, scale

EVENTS = 5000
WHY = {"plain": "half of a toy's time are its two fits, five passes over the events each, the other half its simulation "
                "and the densities of its events under seven components",
       "lean": "this peer needs {peer:.1f} ms for a toy, with the gradient in closed form and the densities once; 50 "
               "times as fast would be {bound:.0f} µs, less than the simulation and the 35 000 exponentials of a toy "
               "take"}


def compare(table, python, programs, args):
    count = 2000 if not args.quick else 100
    with Contender(programs / "peers_toys") as ours, \
            Contender(python, HERE / "toys" / "iminuit_numpy.py") as theirs:
        for seed in range(5):  # the same data: the same fit
            data = theirs.ask("example", events=EVENTS, seed=seed)
            mine = ours.ask("one", **data)
            for form in ("lean", "plain"):
                other = theirs.ask("one", form=form, **data)
                must_agree("estimate of mu, in errors", mine["point"][0] / mine["sigma"],
                           other["point"][0] / mine["sigma"], 0.02)
                must_agree("error of mu, relative", 1.0, other["sigma"] / mine["sigma"], 0.03)
                must_agree("-2 log Lambda", mine["statistic"], other["statistic"], 0.02)
        for form, fewer in (("plain", 50), ("lean", 400)):
            fewer = fewer if not args.quick else 20
            answers = in_turns(
                args.repeats, lambda: ours.ask("toys", toys=count, events=EVENTS, seed=1),
                lambda: theirs.ask("toys", toys=fewer, events=EVENTS, seed=1, form=form))
            mine, other = (side[0] for side in answers)
            must_agree("mean of mu over toys, in sd", mine["mean"] / mine["sd"],
                       other["mean"] / mine["sd"], 4.5 / fewer ** 0.5)
            must_agree("sd of mu over toys, relative", 1.0, other["sd"] / mine["sd"],
                       4.5 / (2 * fewer) ** 0.5)
            ratio = table.add(f"toys of {EVENTS} events, 1 + 5 parameters", f"iminuit, {form}",
                              best(answers[0]), scale(best(answers[1]), count / fewer), work=count,
                              unit="toys", failed=[mine["failed"], other["failed"]],
                              statistic=[mine["statistic"], other["statistic"]])
            toy = best(answers[1])["cpu"] / fewer
            table.aim(f"toys of the six-parameter model, beside iminuit on NumPy, {form}", ratio, 50,
                      why=WHY[form].format(peer=1e3 * toy, bound=1e6 * toy / 50))
