"""What all comparisons share: environments, contenders, measuring in turns, and the tables."""

import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VENV = ROOT / "build" / "peers-venv"
OUT = ROOT / "build" / "peers"

# One core for every library that has threads of its own.
ONE_CORE = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


class Failure(Exception):
    """What the user must know; no traceback helps."""


def requirements(group):
    return HERE / "requirements" / f"{group}.txt"


def make_environment(groups):
    """Python with the peers of these groups in their pinned versions; each installed once."""
    python = VENV / "bin" / "python"
    if not python.exists():
        base = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
        print(f"making {VENV.relative_to(ROOT)}", flush=True)
        try:
            subprocess.run([base, "-m", "venv", VENV], check=True, stdout=subprocess.DEVNULL)
        except subprocess.CalledProcessError:
            raise Failure(f"{base} cannot make a virtual environment; on Debian and Ubuntu install "
                          "python3-venv") from None
    # A group must not change what another pinned.
    pins = [part for file in sorted(requirements("*").parent.glob("*.txt")) for part in ("-c", file)]
    for group in groups:
        wanted = hashlib.sha256(requirements(group).read_bytes()).hexdigest()
        stamp = VENV / f"{group}.sha256"
        if stamp.exists() and stamp.read_text() == wanted:
            continue
        print(f"installing requirements/{group}.txt", flush=True)
        try:
            subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                            "-r", requirements(group), *pins], check=True)
        except subprocess.CalledProcessError:
            raise Failure(f"pip could not install benchmarks/peers/requirements/{group}.txt; is the "
                          "package index reachable?") from None
        stamp.write_text(wanted)
    return python


def make_programs(build, tasks):
    """neyman's contenders; built here unless a build folder is given."""
    names = [f"peers_{task}" for task in tasks]
    if build is None:
        cmake = "/usr/bin/cmake" if os.access("/usr/bin/cmake", os.X_OK) else "cmake"
        build = ROOT / "build" / "release"
        for command in ([cmake, "--preset", "release", "--log-level=WARNING"],
                        [cmake, "--build", build, "--target", *names]):
            try:
                subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
            except subprocess.CalledProcessError:
                raise Failure("neyman could not be built; `tools/setup` installs "
                              "what is missing") from None
    programs = pathlib.Path(build) / "benchmarks" / "peers"
    for name in names:
        if not (programs / name).exists():
            raise Failure(f"{programs / name} is missing; build the target benchmarks")
    return programs.resolve()


class Contender:
    """A process that answers requests; see worker.hpp."""

    def __init__(self, *command):
        self.process = subprocess.Popen([str(part) for part in command], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=os.environ | ONE_CORE)

    def ask(self, task, **request):
        self.process.stdin.write(json.dumps({"task": task} | request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        answer = (json.loads(line) if line else
                  {"error": f"the process ended with status {self.process.wait()}"})
        if "error" in answer:
            raise Failure(f"{' '.join(self.process.args)}, {task}: {answer['error']}")
        return answer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


def in_turns(repeats, *measurements):
    """Answers of each measurement, run one after the other `repeats` times."""
    answers = [[] for _ in measurements]
    for _ in range(repeats):
        for one, measure in zip(answers, measurements):
            one.append(measure())
    return answers


CLOCKS = ("cpu", "wall")


def best(answers, *path):
    """The least CPU time among answers, and the least time on the wall."""
    for key in path:
        answers = [answer[key] for answer in answers]
    return {clock: min(answer[clock] for answer in answers) for clock in CLOCKS}


def subtract(whole, part):
    return {clock: whole[clock] - part[clock] for clock in CLOCKS}


def add(*parts):
    return {clock: sum(part[clock] for part in parts) for clock in CLOCKS}


def scale(times, factor):
    return {clock: times[clock] * factor for clock in CLOCKS}


def faster(*sides):
    """The side of least CPU time."""
    return min(sides, key=lambda side: side["cpu"])


def must_agree(what, ours, theirs, tolerance):
    if not abs(ours - theirs) <= tolerance:
        raise Failure(f"{what}: neyman has {ours:.5g}, the peer {theirs:.5g}, but they must agree "
                      f"within {tolerance:g}; not timed")


def seconds_text(seconds):
    return (f"{seconds:.3g} s" if seconds >= 0.1 else
            f"{1e3 * seconds:.3g} ms" if seconds >= 1e-4 else f"{1e6 * seconds:.3g} µs")


def rate_text(rate):
    return f"{rate / 1e6:.3g} M" if rate >= 1e5 else f"{rate:.0f}"


class Table:
    """The rows of one task: what was timed, notes, and the aims that the project set itself."""

    def __init__(self):
        self.rows, self.notes, self.aims = [], [], []

    def note(self, text):
        self.notes.append(text)
        print(text, flush=True)

    def add(self, task, peer_name, ours, theirs, work=None, unit="rows", **more):
        """`work` makes it units of work a second; without it, seconds. Returns the ratio."""
        ratio = theirs["cpu"] / ours["cpu"]
        self.rows.append({"task": task, "peer": peer_name, "neyman_seconds": ours,
                          "peer_seconds": theirs, "work": work, "unit": unit, "ratio": ratio,
                          "cores": 1} | more)
        print(" ".join(f"{cell:>{width}}" if i > 1 else f"{cell:<{width}}" for i, (cell, width) in
                       enumerate(zip(self.cells(self.rows[-1]), (52, 20, 14, 14, 8)))), flush=True)
        return ratio

    def aim(self, what, value, bound, unit="times", at_most=False, why=""):
        """A figure beside its aim; `why` explains one that is not met."""
        met = value <= bound if at_most else value >= bound
        self.aims.append({"what": what, "value": value, "bound": bound, "unit": unit,
                          "at_most": at_most, "met": met, "why": why})

    @staticmethod
    def cells(row):
        def figure(side):
            seconds = row[side]["cpu"]
            return (seconds_text(seconds) if row["work"] is None else
                    f"{rate_text(row['work'] / seconds)} {row['unit']}/s")
        return [row["task"], row["peer"], figure("neyman_seconds"), figure("peer_seconds"),
                f"{row['ratio']:.1f}" if row["ratio"] < 100 else f"{row['ratio']:.0f}"]


def aim_cells(aim):
    def figure(value):
        number = f"{value:.3g}" if value < 1000 else f"{value:.0f}"
        return f"{number} {aim['unit']}"
    return [aim["what"], figure(aim["value"]),
            f"{'at most' if aim['at_most'] else 'at least'} {figure(aim['bound'])}",
            "met" if aim["met"] else "not met"]


def markdown_rows(header, alignment, rows):
    return "\n".join(["| " + " | ".join(cells) + " |" for cells in (header, alignment, *rows)]) + "\n"


def aims_markdown(results):
    """The aims, and why some are not met."""
    aims = [aim for result in results.values() for aim in result["aims"]]
    reasons = [f"- *{aim['what']}*: {aim['why']}" for aim in aims if not aim["met"] and aim["why"]]
    return (markdown_rows(["", "measured", "aim", ""], ["---", "---:", "---:", "---"],
                          map(aim_cells, aims))
            + ("\nNot met:\n\n" + "\n".join(reasons) + "\n" if reasons else ""))


def tasks_markdown(results):
    """What was timed, task by task."""
    parts = []
    for name, result in results.items():
        parts.append(f"### {name[0].upper()}{name[1:]}: figures\n\n{result['when']}, "
                     f"load {result['load'][0]:.1f} before it began\n\n"
                     + markdown_rows(["work", "peer", "neyman", "peer's", "ratio"],
                                     ["---", "---", "---:", "---:", "---:"],
                                     map(Table.cells, result["rows"]))
                     + ("\n" + "".join(f"- {note}\n" for note in result["notes"])
                        if result["notes"] else ""))
    return "\n".join(parts)


def draw(results, figure):
    """The aims as points: how many times better than asked for."""
    aims = [aim for result in results.values() for aim in result["aims"]]
    if not aims or shutil.which("gnuplot") is None:
        return
    lines = []
    for i, aim in enumerate(reversed(aims)):
        share = aim["bound"] / aim["value"] if aim["at_most"] else aim["value"] / aim["bound"]
        lines.append(f'{share:.4g} {i} "{aim["what"]}" {int(aim["met"])}')
    script = "\n".join([
        "$aims << END", *lines, "END",
        f'set terminal svg size 960,{90 + 19 * len(aims)} font "sans-serif,11" background "white"',
        f'set output "{figure}"', "set encoding utf8", "set logscale x", "unset key",
        f"set yrange [-1:{len(aims)}]", "set lmargin at screen 0.54", "set rmargin 2",
        'set xlabel "measured over aimed at (right of 1: met)"', "set grid x lc rgb '#dddddd'",
        "set ytics scale 0 noenhanced",
        "set arrow from 1, graph 0 to 1, graph 1 nohead lw 2 lc rgb '#888888'",
        "plot $aims using ($4 == 1 ? $1 : NaN):2:ytic(3) with points pt 7 lc rgb '#1f77b4', "
        "$aims using ($4 == 0 ? $1 : NaN):2:ytic(3) with points pt 7 lc rgb '#d62728'"])
    subprocess.run(["gnuplot"], input=script, text=True, check=True)
