"""Training and scoring of small networks: neyman, scikit-learn and PyTorch."""

import json
import statistics
import subprocess
from contextlib import ExitStack

from harness import HERE, OUT, Contender, best, faster, in_turns, must_agree, scale, subtract

SKLEARN, TORCH = "scikit-learn", "PyTorch"
BATCHES = (128, 512, 4096)
# Inputs, hidden layers, rows, and how many times faster an epoch is to be by batch.
SMALL = {128: 8, 512: 8, 4096: 3}
NETWORKS = ((7, (40, 40), 300_000, ("relu", "tanh"), SMALL),
            (30, (100, 100, 100), 60_000, ("relu",), SMALL),
            (28, (256, 256, 256), 20_000, ("relu",), {batch: 1.3 for batch in BATCHES}))
HELD_OUT = 100_000
# Two trainings from different random starts, of which neither is at its end yet.
CROSS_ENTROPY_TOLERANCE = {7: 0.01, 30: 0.03, 28: 0.03}
LEAST_STEPS = 60  # before which random starts are all that losses tell
CEILING = ("a multiply-add unit that is never idle would do {:.1f} times the faster peer here; neyman is at "
           "{:.0%} of that")


def folder_of(python, features, rows):
    """The rows that all sides train on."""
    folder = OUT / f"rows-{features}-{rows}"
    if not (folder / "meta.json").exists():
        subprocess.run([python, HERE / "training" / "data.py", folder, str(features), str(rows),
                        str(HELD_OUT)], check=True)
    return folder


def forward_multiply_adds(inputs, hidden):
    widths = (inputs, *hidden, 1)
    return sum(a * b for a, b in zip(widths, widths[1:]))


def multiply_adds(inputs, hidden):
    """Of a row in training: forward, and the gradients of weights and of activations."""
    return 3 * forward_multiply_adds(inputs, hidden) - inputs * hidden[0]


def start(stack, python, programs):
    sides = {"neyman": Contender(programs / "peers_training"),
             SKLEARN: Contender(python, HERE / "training" / "scikit_learn.py"),
             TORCH: Contender(python, HERE / "training" / "pytorch.py")}
    for side in sides.values():
        stack.enter_context(side)
    return sides


def epochs_of(side, name, rows, repeats, request):
    """What an epoch costs, and the held-out cross-entropy after some: from the difference between
    trainings of one epoch and of more, so without what a training does once."""
    more = 5 if name == "neyman" else 2
    one, many = in_turns(repeats, *(lambda count=count: side.ask("train", epochs=count, **request)
                                    for count in (1, more)))
    return scale(subtract(best(many), best(one)), 1 / (more - 1)), scale(best(one), 1.0), many[0]


def epochs(table, sides, inputs, hidden, rows, activation, aims, peak, repeats, tolerance):
    network = "-".join(map(str, (inputs, *hidden, 1)))
    for batch in BATCHES:
        request = {"hidden": hidden, "activation": activation, "batch": batch, "seed": 1,
                   "rate": 1e-3 * (batch / 128) ** 0.5}  # so that few large steps arrive too
        name = f"{network} {activation}, batch {batch}"
        measured = {who: epochs_of(side, who, rows, repeats, request) for who, side in sides.items()}
        # After two epochs each; neyman's is after five, so asked again.
        losses = {who: side.ask("train", epochs=2, **request)["cross_entropy"] if who == "neyman"
                  else measured[who][2]["cross_entropy"] for who, side in sides.items()}
        for peer in (SKLEARN, TORCH) if 2 * rows >= LEAST_STEPS * batch else ():
            must_agree(f"held-out cross-entropy beside {peer}, {name}", losses["neyman"], losses[peer],
                       tolerance)
        epoch = {who: found[0] for who, found in measured.items()}
        for peer in (SKLEARN, TORCH):
            table.add(f"epoch, {name}", peer, epoch["neyman"], epoch[peer], work=rows,
                      cross_entropy=[losses["neyman"], losses[peer]])
        ratio = faster(epoch[SKLEARN], epoch[TORCH])["cpu"] / epoch["neyman"]["cpu"]
        used = multiply_adds(inputs, hidden) * rows / epoch["neyman"]["cpu"] / peak
        table.aim(f"epoch of {name}, beside the faster peer", ratio, aims[batch],
                  why=CEILING.format(ratio / used, used))


def scoring(table, sides, name, rows, row_cost, peak, repeats):
    # Whole or in parts that stay in the cache: each side's better one counts.
    found = {who: best([answer for answers in in_turns(
        repeats, *(lambda chunk=chunk: side.ask("score", chunk=chunk) for chunk in (rows, 5000, 500)))
        for answer in answers]) for who, side in sides.items()}
    for peer in (SKLEARN, TORCH):
        table.add(f"scoring, {name}", peer, found["neyman"], found[peer], work=rows)
    ratio = faster(found[SKLEARN], found[TORCH])["cpu"] / found["neyman"]["cpu"]
    used = row_cost * rows / found["neyman"]["cpu"] / peak
    table.aim(f"scoring of {name}, beside the faster peer", ratio, 1.3,
              why=CEILING.format(ratio / used, used))


def speed_alone(table, side, python, rows, repeats):
    """neyman by itself: seconds of an epoch of 10⁶ rows, scoring, and two cores."""
    side.ask("load", folder=str(folder_of(python, 7, rows)), features=7, rows=rows)
    request = {"hidden": (40, 40), "seed": 1, "rate": 1e-3}
    per_million = 1e6 / rows
    epoch = {}
    for activation, bound, scored in (("relu", 0.13, 20), ("tanh", 0.15, 15), ("silu", 0.15, 15)):
        for batch in (512, 128) if activation == "relu" else (512,):
            epoch[activation, batch] = epochs_of(side, "neyman", rows, repeats,
                                                 request | {"activation": activation, "batch": batch})[0]
        table.aim(f"epoch of 10⁶ rows, 7-40-40-1 {activation}, batch 512",
                  epoch[activation, 512]["cpu"] * per_million, bound, "s", at_most=True)
        answers = in_turns(repeats, lambda: side.ask("score", chunk=rows),
                           lambda: side.ask("score", chunk=5000))
        table.aim(f"scoring, 7-40-40-1 {activation}",
                  rows / best(answers[0] + answers[1])["cpu"] / 1e6, scored, "M rows/s")
    table.aim("epoch at batch 128 beside batch 512, 7-40-40-1 relu",
              epoch["relu", 128]["cpu"] / epoch["relu", 512]["cpu"], 1.08, at_most=True,
              why="a step of Adam reads and writes 46 kB (parameters in two orders, two moments, two gradients), more "
              "than is in the cache of the first level beside the rows at work; the faster the products, the more of "
              "an epoch these steps are")
    two_cores(table, side, request | {"activation": "relu"}, rows, max(repeats, 9))
    members = 5
    alone, together = in_turns(repeats, *(lambda count=count: side.ask(
        "train", epochs=3, activation="relu", batch=512, members=count, **request)
        for count in (1, members)))
    table.aim(f"ensemble of {members} networks, time a network beside one alone",
              best(together)["cpu"] / members / best(alone)["cpu"], 1.0, at_most=True)


def two_cores(table, side, request, rows, repeats):
    """By the clock. Virtual machines move their cores, closer together and apart: so the middle of many
    repeats counts, and each is noted with what handing over the gradients of a batch takes at that time."""
    gradient = 4 * (8 * 40 + 41 * 40 + 41)
    for batch in BATCHES:
        # Each core has half of the groups of rows whose gradients are summed by themselves.
        handed = gradient * (1 if batch == 128 else 2)
        exchanges, ones, twos = [], [], []
        for _ in range(repeats):
            for threads, times in ((1, ones), (2, twos)):
                times.append(epochs_of(side, "neyman", rows, 1, request | {"batch": batch, "threads": threads})[0]["wall"])
            exchanges.append(side.ask("exchange", bytes=handed)["wall"])
        one = statistics.median(ones)
        name = f"two cores beside one (time on the wall), 7-40-40-1 relu, batch {batch}"
        table.note(f"{name}, each time with what handing over the gradients took just after: " + ", ".join(
            f"{one / two:.2f} ({1e6 * exchange:.1f} µs)" for exchange, two in sorted(zip(exchanges, twos))))
        table.aim(name, one / statistics.median(twos), 1.5 if batch == 128 else 1.7,
                  why=f"by the clock, so only an idle machine shows it; half of a batch takes "
                  f"{0.5e6 * one * batch / rows:.1f} µs, and handing each other the {handed / 1e3:.0f} kB of its gradients "
                  f"takes two cores of this machine {1e6 * statistics.median(exchanges):.1f} µs by itself")


# Learning rates and batches that suit each; PyTorch also gets neyman's own schedule.
SETTINGS = {"neyman": [{"batch": batch, "rate": rate, "schedule": "cosine"}
                       for batch, rate in ((256, 1e-2), (512, 2e-2))],
            SKLEARN: [{"batch": 200, "rate": 1e-3}, {"batch": 512, "rate": 2e-3}],
            TORCH: [{"batch": 512, "rate": 2e-3, "schedule": "constant"},
                    {"batch": 512, "rate": 1e-2, "schedule": "cosine"},
                    {"batch": 1024, "rate": 2e-2, "schedule": "cosine"},
                    {"batch": 2048, "rate": 2e-2, "schedule": "cosine"}]}
SEEDS = range(1, 6)  # the loss of one training is a matter of luck


def time_to(side, target, setting, most):
    """The shortest training that reaches the loss, on average over seeds: with a falling rate, its
    length is part of the schedule and is tried; else it is watched after each epoch (which is not
    timed)."""
    request = {"hidden": (40, 40), "activation": "relu"} | setting
    falling = setting.get("schedule") == "cosine"
    for count in (1, 2, 3, 4, 6, 8, 12, 16, 24) if falling else (most,):
        watch = {} if falling else {"target": target}
        answers = [side.ask("train", epochs=count, seed=seed, **watch, **request) for seed in SEEDS]
        mean = {key: sum(answer[key] for answer in answers) / len(answers)
                for key in ("cpu", "wall", "cross_entropy")}
        if mean["cross_entropy"] <= target:
            return mean | {"epochs": count if falling else
                           sum(answer["epochs"] for answer in answers) / len(answers)}
    return None


def to_equal_loss(table, sides, exact, excess, rows, most):
    target, found = exact + excess, {}
    for who, side in sides.items():
        for setting in SETTINGS[who]:
            answer = time_to(side, target, setting, most)
            if answer and (who not in found or answer["cpu"] < found[who]["cpu"]):
                found[who] = answer | {"setting": setting}
    table.note(f"to a held-out cross-entropy of {target:.4f} ({excess:g} above the exact), {rows} rows, "
               f"mean of {len(SEEDS)} seeds: " + "; ".join(f"{who}: {a['epochs']:g} epochs, batch {a['setting']['batch']}, "
                           f"{a['setting'].get('schedule', 'constant')} rate {a['setting']['rate']:g}, "
                           f"{a['cross_entropy']:.4f}" for who, a in found.items()))
    if "neyman" not in found:
        return table.note("neyman did not arrive")
    peers = [peer for peer in (SKLEARN, TORCH) if peer in found]
    for peer in peers:
        table.add("training to equal held-out loss, 7-40-40-1 relu", peer, found["neyman"], found[peer])
    if peers:
        table.aim("training to equal held-out loss, beside the better peer",
                  min(found[peer]["cpu"] for peer in peers) / found["neyman"]["cpu"], 5,
                  why="a seventh of neyman's time are checks of the rows, their standardisation and packing, "
                      "which PyTorch's side has done before its clock starts")


def compare(table, python, programs, args):
    divide = 5 if args.quick else 1
    with ExitStack() as stack:
        sides = start(stack, python, programs)
        peak = sides["neyman"].ask("peak")["multiply_adds"]
        for inputs, hidden, size, activations, aims in NETWORKS:
            rows = size // divide
            folder = folder_of(python, inputs, rows)
            for side in sides.values():
                side.ask("load", folder=str(folder), features=inputs, rows=rows)
            for activation in activations:
                epochs(table, sides, inputs, hidden, rows, activation, aims, peak, args.repeats,
                       CROSS_ENTROPY_TOLERANCE[inputs] * (3 if args.quick else 1))
                name = "-".join(map(str, (inputs, *hidden, 1))) + f" {activation}"
                scoring(table, sides, name, rows, forward_multiply_adds(inputs, hidden), peak, args.repeats)
            if inputs == 7:
                exact = json.loads((folder / "meta.json").read_text())["exact_cross_entropy"]
                to_equal_loss(table, sides, exact, 0.002 if divide == 1 else 0.012, rows, 20)
        speed_alone(table, sides["neyman"], python, 1_000_000 // divide, args.repeats)
