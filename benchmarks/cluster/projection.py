#!/usr/bin/env python3
"""How long a study would take on many ranks: a model, from what is measured on this machine.

    benchmarks/cluster/projection.py build [--toys 1000000] [--ranks 2]

Measures the stages of the example `mixture` on one core, in seconds of its time (so that what else the
machine does matters little), and what it costs two ranks to talk; then prints, as Markdown, what was
measured and the projection of docs/cluster.md:

    T(N) = S + T_learn · ⌈K / N⌉ / K + max(W / N, c · t, takes · t_take) + latency · ⌈log2 N⌉ + bytes / bandwidth

S is what every rank does alike, T_learn the training and calibration of K networks, W the time of all toys,
t that of one and c how many are taken at once. Latency and bandwidth of a network are not measured here:
they are assumed, and the table says so. With --ranks the study is run so, too, by the clock: only on a
machine that does nothing else, and has as many cores.
"""

import argparse
import json
import math
import pathlib
import re
import resource
import subprocess
import tempfile
import time

LAUNCH = ["mpirun", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none"]
# (name, seconds to take a task from another machine, seconds of a small message, bytes a second)
NETWORKS = (("InfiniBand", 4e-6, 3e-6, 5e9), ("Ethernet, 10 Gbit/s", 60e-6, 30e-6, 1e9))
RANKS = (1, 2, 10, 100, 1000)
# Results of a dataset of the ensemble (two fits) and of two of the test, with task and length of each.
TOY_BYTES = 150
MOST_TAKEN, TURNS = 64, 16  # see src/distributed/tasks.cpp


def run(command, **named):
    return subprocess.run(command, check=True, text=True, capture_output=True, **named).stdout


STAGES = ("simulate", "train", "calibrate", "fit", "toys", "diagnose")


def core_seconds(command, **named):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(command, **named)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def clock_seconds(command, **named):
    start = time.monotonic()
    run(command, **named)
    return time.monotonic() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path, help="a build with the target benchmarks")
    parser.add_argument("--toys", type=int, default=1_000_000, help="datasets of the projected study")
    parser.add_argument("--ranks", type=int, help="run the study with so many, too")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    talk = json.loads(run([*LAUNCH, "-n", "2", build / "benchmarks" / "cluster" / "communication"]))
    with tempfile.TemporaryDirectory() as folder:
        neyman = str(build / "cli" / "neyman")
        run([neyman, "example", "mixture", f"{folder}/study"])
        study = pathlib.Path(folder) / "study"
        # The toys alone, and as many as there are of them.
        toml = (study / "study.toml").read_text()
        toml = re.sub(r"(?ms)^\[compare\].*?(?=^\[|\Z)", "", toml)
        datasets = int(re.search(r"\[ensemble\][^\[]*?datasets = (\d+)", toml)[1])
        (study / "study.toml").write_text(toml)
        one = [neyman, "run", "study.toml", "--threads", "1", "--no-figures"]
        core = {stage: core_seconds([*one, "--until", stage], cwd=study) for stage in STAGES}
        clock = {}
        if arguments.ranks:
            launch = [*LAUNCH, "-n", str(arguments.ranks)]
            clock = {"alone": clock_seconds([*one, "--fresh", "--out", "alone"], cwd=study),
                     "together": clock_seconds([*launch, *one, "--fresh", "--out", "both"], cwd=study)}

    print("On one core, in seconds: " +
          ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in core.items()) + ".")
    if clock:
        print(f"By the clock: alone {clock['alone']:.1f} s, {arguments.ranks} ranks of one thread "
              f"{clock['together']:.1f} s, {clock['alone'] / clock['together']:.2f} times as fast.")
    print(f"Two ranks through memory: a task is taken in {1e6 * talk['take']:.2f} µs, a small gather takes "
          f"{1e6 * talk['gather_8']:.1f} µs, one of 16 MB from each {1e3 * talk['gather_16M']:.0f} ms.")

    toy = core["toys"] / datasets
    networks = 15  # three pairs of components, five folds
    alike = core["simulate"] + core["fit"] + core["diagnose"]
    learn = core["train"] + core["calibrate"]
    print(f"\nProjection for {arguments.toys} datasets of {1e3 * toy:.2f} ms, {TOY_BYTES} bytes each to "
          f"gather, after {alike:.2f} s that every rank does alike and {learn:.1f} s of learning in "
          f"{networks} tasks:\n")
    print("| ranks | learning | " + " | ".join(f"toys, {name}" for name, *_ in NETWORKS) + " | all |")
    print("| ---: | ---: |" + " ---: |" * (len(NETWORKS) + 1))
    for ranks in RANKS:
        learning = alike + learn * math.ceil(networks / ranks) / networks
        times = []
        for _, take, latency, speed in NETWORKS:
            share = min(MOST_TAKEN, max(1, arguments.toys // (TURNS * ranks)))
            busy = max(arguments.toys * toy / ranks, share * toy,
                       arguments.toys / share * take if ranks > 1 else 0.0)
            gather = latency * math.ceil(math.log2(ranks)) + arguments.toys * TOY_BYTES / speed
            times.append(busy + (gather if ranks > 1 else 0.0))
        print(f"| {ranks} | {learning:.1f} s | " + " | ".join(f"{t:.1f} s" for t in times) +
              f" | {learning + times[0]:.1f} s |")


if __name__ == "__main__":
    main()
