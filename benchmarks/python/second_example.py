"""The second example of the paper from Python and from the command line, in turn: time and accuracy.

    PYTHONPATH=build/release/python python3 benchmarks/python/second_example.py build/release/cli/neyman

The contenders: `neyman run` on examples/02_multidimensional/study.toml; neyman.run on the same file,
which must give the same numbers; and examples/python/02_multidimensional.py, step by step, with its
figures. Each is a process of its own, from its start to its end. Accuracy is that of the learned
likelihood of the study's data: the root mean square of its error of −2 log Λ inside the exact 3 σ
contour, and how far the estimate is from the exact one in standard errors.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

import neyman

ROOT = pathlib.Path(__file__).resolve().parents[2]
STUDY = ROOT / "examples" / "02_multidimensional" / "study.toml"
SCRIPT = ROOT / "examples" / "python" / "02_multidimensional.py"
PACKAGE = str(pathlib.Path(neyman.__file__).absolute().parents[1])
THREE_SIGMA = 11.829  # of χ² with two degrees of freedom

RUN = "import neyman, sys; neyman.run(sys.argv[1], out=sys.argv[2])"
STEPS = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
import notebooks
space = notebooks.run(pathlib.Path(sys.argv[2]), {})
space["ratio"].save(sys.argv[3])
"""


def seconds(command, folder):
    """On the wall, and of the processors: what can be compared on a machine that is busy."""
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, check=True, env={**os.environ, "PYTHONPATH": PACKAGE},
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (time.monotonic() - start,
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def accuracy(likelihood, exact):
    """RMS error of −2 log Λ inside the exact 3 σ contour; distance of the estimates in errors."""
    best, truth = likelihood.fit(), exact.fit()
    grid = [np.linspace(-4, 4, 41) * truth.error[name] + truth.theta[name]
            for name in ("alpha", "beta")]
    surfaces = [one.surface("alpha", "beta", *grid) for one in (likelihood, exact)]
    inside = surfaces[1].statistic < THREE_SIGMA
    difference = (surfaces[0].statistic - surfaces[1].statistic)[inside]
    away = max(abs(best.theta[name] - truth.theta[name]) / truth.error[name] for name in best.theta)
    return float(np.sqrt(np.mean(difference**2))), away


def main(program, repetitions=3):
    times = {"neyman run": [], "neyman.run": [], "step by step": []}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(repetitions):
            out = [pathlib.Path(folder) / f"{kind}{number}" for kind in ("cli", "python", "steps")]
            out[2].mkdir()
            times["neyman run"].append(seconds(
                [program, "run", str(STUDY), "--out", str(out[0])], folder))
            times["neyman.run"].append(seconds(
                [sys.executable, "-c", RUN, str(STUDY), str(out[1])], folder))
            times["step by step"].append(seconds(
                [sys.executable, "-c", STEPS, str(ROOT / "tools"), str(SCRIPT), "ratio.h5"], out[2]))
        same = [json.loads((one / "results.json").read_text())["fit"]["parameters"]
                for one in out[:2]]
        assert same[0] == same[1], "the command line and neyman.run give the same numbers"
        study = neyman.Study(STUDY)
        p = neyman.distribution(study.to_dict()["simulator"], parameters=study.parameters)
        data = neyman.read_samples(STUDY.parent / "observed.csv").x
        exact = neyman.Likelihood(neyman.ExactRatio(p), data)
        found = [neyman.load_model(one / "model.h5").ratio for one in out[:2]]
        found.append(neyman.load_ratio(out[2] / "ratio.h5"))
        base = [min(column) for column in zip(*times["neyman run"])]
        print(f"{'':<14}{'wall/s':>8}{'CPU/s':>8}{'of the command line':>21}{'RMS of −2 log Λ':>17}"
              f"{'estimate off by':>17}")
        for (name, taken), ratio in zip(times.items(), found):
            error, away = accuracy(neyman.Likelihood(ratio, data), exact)
            wall, cpu = (min(column) for column in zip(*taken))
            print(f"{name:<14}{wall:>8.2f}{cpu:>8.2f}{wall / base[0]:>13.2f}{cpu / base[1]:>8.2f}"
                  f"{error:>17.3f}{away:>15.3f} σ")


if __name__ == "__main__":
    main(str(pathlib.Path(sys.argv[1]).resolve()), *map(int, sys.argv[2:]))
