"""Simulators that are not neyman's own, as a user brings them: docs/simulators.md taken literally, with
answers beside the exact ones, and programs that crash, hang or are not there.

    python3 simulators_test.py --neyman build/cli/neyman [group ...]
"""

import array
import itertools
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import program
from program import neyman

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "docs"))

from blocks import Runner  # noqa: E402  the folder is only now on the path



def read_results(folder):
    return json.loads((folder / "results.json").read_text())


def column(path, names):
    lines = path.read_text().split()
    header = lines[0].split(",")
    rows = [list(map(float, line.split(","))) for line in lines[1:]]
    return [[row[header.index(name)] for name in names] for row in rows]


def maximum(function, ranges):
    """Where a function of one or two variables is largest, by grids that shrink."""
    centre = [0.5 * (low + high) for low, high in ranges]
    width = [0.5 * (high - low) for low, high in ranges]
    for _ in range(9):
        grids = [[min(max(c + w * k / 3, low), high) for k in range(-3, 4)]
                 for c, w, (low, high) in zip(centre, width, ranges)]
        centre = list(max(itertools.product(*grids), key=lambda point: function(*point)))
        width = [0.4 * w for w in width]
    return centre


class Folder(program.Folder):
    prefix = "neyman own simulator "  # with blanks: no command may be split at them

    def close(self, results, exact):
        """The estimate is within half an error of the exact maximum-likelihood estimate."""
        self.assertEqual(results["fit"]["status"], "converged")
        for name, value in exact.items():
            found = results["fit"]["parameters"][name]
            self.assertLess(abs(found["estimate"] - value), 0.5 * found["error"],
                            f"{name} is {found['estimate']} ± {found['error']}, exact {value}")

    def no_failed_check(self, results):
        self.assertGreaterEqual(len(results["diagnostics"]), 3)
        for check in results["diagnostics"]:
            self.assertNotEqual(check["verdict"], "fail", check)


class Docs(Folder):
    """Every block of docs/simulators.md, in its order, as it stands there."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.runner = Runner(program.path, folder=cls.folder)

    def run_section(self, heading):
        before = dict(self.runner.count)
        folder = self.runner.run_page(ROOT / "docs" / "simulators.md", heading)
        self.assertGreater(self.runner.count.get("sh", 0), before.get("sh", 0))
        return folder

    def test_a_script_and_a_program(self):
        page = self.run_section("A script or a program")
        folder = page / "my-command"
        times = [row[0] for row in column(folder / "observed.csv", ["time"])]

        def log_likelihood(tau, sigma):
            return sum(-math.log(2 * tau) + sigma**2 / (2 * tau**2) - t / tau
                       + math.log(math.erfc((sigma / tau - t / sigma) / math.sqrt(2)))
                       for t in times)

        tau, sigma = maximum(log_likelihood, [(0.7, 1.7), (0.2, 0.6)])
        for out in ("out", "out-compiled"):
            results = read_results(folder / out)
            self.close(results, {"tau": tau, "sigma": sigma})
            self.no_failed_check(results)
            self.assertTrue((folder / out / "report.html").exists())
        # Runs of 500 events: 200 train; the checks' 5000 events are at the estimate, at two points
        # beside it and in the middle of the ranges, and 5000 more recover the estimate.
        self.assertEqual(len(list((folder / "out" / "cache").iterdir())), 200 + 50)
        script = (folder / "simulate.py").read_text().splitlines()
        self.assertLessEqual(len(script), 20)

    def test_a_shared_library(self):
        page = self.run_section("A shared library")
        folder = page / "my-plugin"
        series = column(folder / "observed.csv", ["x0", "x1", "x2", "x3"])
        pairs = [pair for x in series for pair in zip([0.0] + x[:-1], x)]
        phi = sum(a * b for a, b in pairs) / sum(a * a for a, _ in pairs)
        s = math.sqrt(sum((b - phi * a) ** 2 for a, b in pairs) / len(pairs))
        results = read_results(folder / "out")
        self.close(results, {"phi": phi, "s": s})
        self.no_failed_check(results)

    def test_files(self):
        page = self.run_section("Files with events")
        folder = page / "my-files"
        events = column(folder / "observed.csv", ["x", "y"])
        (mu,) = maximum(lambda mu: sum(-0.5 * (x - mu) ** 2 - mu / 2 - y * math.exp(-mu / 2)
                                       for x, y in events), [(-1, 1)])
        results = read_results(folder / "out")
        self.close(results, {"mu": mu})
        self.no_failed_check(results)
        masses = [row[0] for row in column(folder / "observed_shares.csv", ["mass"])]

        def densities(mass):
            return (math.exp(-mass) if mass > 0 else 0.0,
                    math.exp(-0.5 * ((mass - 1.5) / 0.2) ** 2) / (0.2 * math.sqrt(2 * math.pi)))

        both = [densities(mass) for mass in masses]
        (share,) = maximum(lambda share: sum(math.log((1 - share) * b + share * s)
                                             for b, s in both), [(1e-3, 0.999)])
        results = read_results(folder / "out-components")
        self.close(results, {"share": share})
        self.assertIn("the ratio was not checked", " ".join(results["warnings"]))


class Languages(Folder):
    """The plugin in C, C++ and, where there is a compiler, Fortran: all pass the check."""

    def test_compile_and_check(self):
        self.assertEqual(neyman("example", "plugin", "mine", cwd=self.folder).returncode, 0)
        mine = self.folder / "mine"
        targets = ["libsimulate.so", "cpp"]
        if shutil.which("gfortran"):
            targets.append("fortran")
        else:
            print("no gfortran: the Fortran plugin is not tested", file=sys.stderr)
        for target in targets:
            with self.subTest(target=target):
                subprocess.run(["make", "-B", "-C", mine, target], check=True, capture_output=True,
                               timeout=200)
                done = neyman("check", "mine/study.toml", cwd=self.folder)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn("4 features", done.stdout)

    def test_the_header_is_plain_c(self):
        source = ROOT / "examples" / "06_plugin" / "simulate.c"
        subprocess.run(["cc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror",
                        f"-I{ROOT / 'include'}", "-fsyntax-only", source], check=True, timeout=60)


# A mean, with a simulator whose behaviour is in its first argument. Every call leaves a line.
SCRIPT = """
import os, random, sys, time
mode, mu, n, seed, output = sys.argv[1], *map(float, sys.argv[2:3]), *map(int, sys.argv[3:5]), sys.argv[5]
with open("calls", "a") as file:
    file.write(f"{os.getpid()} {seed}\\n")
random.seed(seed)
luck = random.random()
if mode == "toys" and mu == 0.1 and luck < 0.3:
    sys.exit("this dataset cannot be made")
if mode == "unreliable" and luck < 0.1:
    sys.exit(f"cannot read the tables for seed {seed}")
if mode == "hangs" or mode == "unreliable" and luck < 0.11:
    time.sleep(1000)
with open(output, "w") as file:
    file.write("x\\n")
    for _ in range(n):
        file.write(f"{random.gauss(mu, 1)}\\n")
"""

STUDY = """
[study]
name = "mean"
seed = 3

[parameters]
mu = { range = [-1, 1], truth = 0.2 }

[simulator]
kind = "command"
command = ["%s", "simulate.py", "MODE", "{mu}", "{n}", "{seed}", "{output}"]
events_per_run = 40
timeout = 2
retries = 3
trial = 0
columns = ["x"]

[training]
samples = 8000

[classifier]
kind = "separable"
hidden = []
degree = 2
epochs = 2

[data]
events = 400

[diagnostics]
events = 400
which = ["normalisation", "closure"]

[report]
figures = false
""" % (shutil.which("python3", path="/usr/bin") or sys.executable)


class Commands(Folder):
    def setUp(self):
        self.mine = Path(tempfile.mkdtemp(dir=self.folder))
        (self.mine / "simulate.py").write_text(SCRIPT)

    def study(self, mode, *changes):
        text = STUDY.replace("MODE", mode)
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        (self.mine / "study.toml").write_text(text)

    def calls(self):
        path = self.mine / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def results(self, folder="out"):
        """The results without what differs between equal runs."""
        out = read_results(self.mine / folder)
        for key in ("timing", "command", "threads"):
            out.pop(key, None)
            out.get("study", {}).pop(key, None)
        return out

    def test_unreliable_simulator_ends_in_a_report_that_says_so(self):
        self.study("unreliable")
        done = neyman("run", "study.toml", cwd=self.mine)
        self.assertEqual(done.returncode, 0, done.stderr)
        results = self.results()
        found = results["fit"]["parameters"]["mu"]
        self.assertLess(abs(found["estimate"] - 0.2), 5 * found["error"])  # false alarm 6e-7
        warnings = " ".join(results["warnings"])
        counts = re.search(r"training: the simulator failed in (\d+) of (\d+) runs \([\d.]+ %\): "
                           r"(\d+) crashed, (\d+) took longer than 2 s and were killed", warnings)
        self.assertTrue(counts, warnings)
        failed, runs, crashed, hung = map(int, counts.groups())
        self.assertEqual(failed, crashed + hung)
        # Of 200 runs and more a tenth and a hundredth fail: bounds at 5 sigma, and one at least.
        self.assertTrue(5 <= crashed <= 60 and 1 <= hung <= 15, warnings)
        report = (self.mine / "out" / "report.html").read_text()
        self.assertIn(f"the simulator failed in {failed} of {runs} runs", report)
        self.assertIn("cannot read the tables for seed", (self.mine / "out" / "run.log").read_text())

        # Again: nothing is simulated, and the answer and its warnings are the same.
        made = len(self.calls())
        self.assertGreaterEqual(made, 200 + 10 + 20 + crashed)
        again = neyman("run", "study.toml", "--threads", "1", cwd=self.mine)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(len(self.calls()), made)
        self.assertEqual(self.results(), results)

    def test_a_dataset_that_fails_for_good_ends_no_run(self):
        self.study("toys", ("retries = 3", "retries = 0"), ("samples = 8000", "samples = 4000"),
                   ("[data]", "[inference.test]\nnull = { mu = 0.1 }\nalternative = { mu = 0.6 }\n"
                    "datasets = 20\n\n[ensemble]\ndatasets = 20\nevents = 40\nat = { mu = 0.1 }\n\n"
                    "[data]"), ("events = 400\n\n[diag", "events = 40\n\n[diag"))
        done = neyman("run", "study.toml", cwd=self.mine)
        self.assertEqual(done.returncode, 0, done.stderr)
        results = self.results()
        # Of 20 datasets 6 ± 2 fail; that none or all do has a probability of 8e-4, with a fixed seed.
        failed = results["test"]["failed"]
        self.assertTrue(0 < failed < 20, failed)
        self.assertEqual(len(results["test"]["null_statistics"]), 20 - failed)
        self.assertEqual(len(results["test"]["alternative_statistics"]), 20)
        self.assertGreaterEqual(results["test"]["p_value"], (1 + failed) / 21)
        self.assertIn(f"{failed} of 40 datasets of the test could not be simulated",
                      " ".join(results["warnings"]))
        self.assertGreater(results["ensemble"]["approximate"]["failed"], 0)
        self.assertIn("could not be simulated", (self.mine / "out" / "report.html").read_text())

    def test_interrupt_kills_the_children_and_the_next_run_goes_on(self):
        self.study("hangs", ("timeout = 2", "timeout = 1000"))
        process = subprocess.Popen([program.path, "run", "study.toml"], cwd=self.mine, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while not self.calls() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        for line in self.calls():
            self.assertFalse(Path("/proc", line.split()[0]).exists(), "a child is left")
        self.study("works")
        self.assertEqual(neyman("run", "study.toml", cwd=self.mine).returncode, 0)
        self.assertFalse(list((self.mine / "out" / "cache").glob("neyman-run-*")))

    def test_a_second_run_at_once_does_no_harm(self):
        self.study("works")
        runs = [subprocess.Popen([program.path, "run", "study.toml", "--quiet"], cwd=self.mine,
                                 stderr=subprocess.PIPE, text=True) for _ in range(2)]
        told = [run.communicate(timeout=120)[1] for run in runs]
        # One of them finds the folder taken, unless the other was done before it began.
        self.assertIn(0, [run.returncode for run in runs], told)
        for run, text in zip(runs, told):
            if run.returncode != 0:
                self.assertIn("another run is at work", text)
        results = self.results()
        shutil.rmtree(self.mine / "out")
        self.assertEqual(neyman("run", "study.toml", cwd=self.mine).returncode, 0)
        self.assertEqual(self.results(), results)

    def problem(self, *words, **_):
        done = neyman("check", "study.toml", cwd=self.mine)
        self.assertEqual(done.returncode, 2, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_check_runs_the_command_once_and_names_what_is_wrong(self):
        self.study("works", ("trial = 0\n", ""), ('columns = ["x"]\n', ""))
        self.assertEqual(neyman("check", "study.toml", cwd=self.mine).returncode, 0)
        self.assertEqual(len(self.calls()), 1)
        self.study("works", ("trial = 0\n", ""), ('["x"]', '["y"]'))
        self.problem("simulator.command fails in a trial run", "has no column 'y'; columns are x",
                     "simulate.py works 0.2 10")
        (self.mine / "simulate.py").write_text("import no_such_module\n")
        self.problem("exit status 1 at mu = 0.2, n = 10, seed = ",
                     "ModuleNotFoundError: No module named 'no_such_module'")
        self.study("works", ('"{mu}"', '"0"'))
        self.problem("does not depend on parameter 'mu'", "write {mu} into the command")

    def test_what_a_killed_trial_run_left_is_removed(self):
        temporary = self.mine / "temporary"
        temporary.mkdir()
        named = dict(cwd=self.mine, env={**os.environ, "TMPDIR": str(temporary)})
        self.study("hangs", ("trial = 0\n", ""), ("timeout = 2", "timeout = 5e9"))
        process = subprocess.Popen([program.path, "check", "study.toml"], **named,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not self.calls() and time.monotonic() < deadline:
            time.sleep(0.05)
        live = list(temporary.iterdir())
        self.assertEqual(len(live), 1)
        # Another check, of however long or short a run, leaves the folder of one that lives.
        self.study("works", ("trial = 0\n", ""))
        os.utime(live[0], (0, 0))
        self.assertEqual(neyman("check", "study.toml", **named).returncode, 0)
        self.assertEqual(list(temporary.iterdir()), live)
        process.kill()
        process.wait()
        child = Path("/proc", self.calls()[0].split()[0])
        while child.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.study("works", ("trial = 0\n", ""), ("timeout = 2", "timeout = 5e9"))
        self.assertEqual(neyman("check", "study.toml", **named).returncode, 0)
        self.assertEqual(list(temporary.iterdir()), [])

    def test_another_user_chooses_no_file_that_is_written(self):
        if os.geteuid() != 0:
            self.skipTest("only root can act as two users")
        attacker, victim = 65533, 65534
        mine = Path(tempfile.mkdtemp(dir="/tmp"))
        self.addCleanup(shutil.rmtree, mine)
        os.chmod(mine, 0o777)
        if subprocess.run([program.path, "--version"], user=victim, group=victim, cwd=mine,
                          capture_output=True).returncode != 0:
            self.skipTest("the program cannot be run by another user where it was built")
        temporary, own = mine / "temporary", mine / "own.txt"
        temporary.mkdir()
        os.chmod(temporary, 0o1777)
        own.write_text("mine")
        os.chown(own, victim, victim)
        (mine / "simulate.py").write_text(SCRIPT)
        (mine / "study.toml").write_text(
            STUDY.replace("MODE", "works").replace("trial = 0\n", ""))

        def lay_traps():
            # The process keeps its number when it becomes the victim's neyman.
            os.seteuid(attacker)
            os.umask(0o022)  # nobody else removes a link from them
            for name in (f"run-{os.uname().nodename}-{os.getpid()}-{k}" for k in range(3)):
                for folder in (temporary / f"neyman-{name}", temporary / name):
                    folder.mkdir()
                    for form in ("csv", "npy", "h5"):
                        (folder / f"events.{form}").symlink_to(own)
            os.seteuid(0)
            os.setgroups([])
            os.setgid(victim)
            os.setuid(victim)

        done = subprocess.run([program.path, "check", "study.toml"], cwd=mine, text=True,
                              preexec_fn=lay_traps, capture_output=True,
                              env={**os.environ, "TMPDIR": str(temporary)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len((mine / "calls").read_text().splitlines()), 1)
        self.assertEqual(own.read_text(), "mine")

    def test_too_many_failures_stop_the_run_and_say_what_to_do(self):
        self.study("unreliable", ("retries = 3", "retries = 0\ntolerate = 0.01"),
                   ("events = 400\n\n[diag", "file = \"data.csv\"\n\n[diag"))
        (self.mine / "data.csv").write_text("x\n0.1\n")
        done = neyman("run", "study.toml", cwd=self.mine)
        self.assertEqual(done.returncode, 1)
        self.assertIn("raise simulator.tolerate", done.stderr)

    def test_left_out_parameter_points_are_told(self):
        self.study("unreliable", ("retries = 3", "retries = 0\ntolerate = 0.3"),
                   ("events = 400\n\n[diag", "file = \"data.csv\"\n\n[diag"),
                   ('which = ["normalisation", "closure"]', "which = []"))
        (self.mine / "data.csv").write_text("x\n" + "0.1\n-0.4\n0.9\n0.3\n" * 50)
        done = neyman("run", "study.toml", cwd=self.mine)
        self.assertEqual(done.returncode, 0, done.stderr)
        results = self.results()
        warnings = " ".join(results["warnings"])
        left_out = re.search(r"(\d+) of 200 runs of the simulator failed with every seed and are left "
                             r"out, at \(mu = ", warnings)
        self.assertTrue(left_out, warnings)
        self.assertEqual(results["budget"]["simulated"], 8000 - 40 * int(left_out.group(1)))
        found = results["fit"]["parameters"]["mu"]
        self.assertLess(abs(found["estimate"] - 0.225), 0.3 * found["error"])


class Files(Folder):
    def test_what_needs_the_simulator_is_refused_with_its_key(self):
        self.assertEqual(neyman("example", "files", "mine", cwd=self.folder).returncode, 0)
        study = self.folder / "mine" / "study.toml"
        text = study.read_text()
        extra = {
            "ensemble": "[ensemble]\ndatasets = 10\n",
            "coverage": "[coverage]\ndatasets = 10\n",
            "inference.test": "[inference.test]\nnull = { mu = 0 }\nalternative = { mu = 0.5 }\n",
            "training.samples": "[training]\nsamples = 1000\n",
            "calibration.across": "[classifier]\nkind = \"logistic\"\n[calibration]\nacross = "
                                  "\"on-demand\"\n",
        }
        for key, table in extra.items():
            with self.subTest(key=key):
                study.write_text(text + "\n" + table)
                done = neyman("check", study, cwd=self.folder)
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertRegex(done.stderr, rf"{re.escape(key)} needs .*only files of events; remove "
                                              "this key")
        study.write_text(text.replace('[data]\nfile = "observed.csv"\n', ""))
        done = neyman("check", study, cwd=self.folder)
        self.assertIn("data.file is missing, but must name the observed events", done.stderr)

    def test_other_classifiers_and_tables(self):
        self.assertEqual(neyman("example", "files", "more", cwd=self.folder).returncode, 0)
        more = self.folder / "more"
        lines = (more / "simulated.csv").read_text().splitlines()[1:]
        tables = []
        for value in sorted({line.split(",")[2] for line in lines}, key=float):
            name = f"at {value}.csv"
            rows = [line.rsplit(",", 1)[0] for line in lines if line.split(",")[2] == value]
            (more / name).write_text("x,y\n" + "\n".join(rows) + "\n")
            tables.append(f'  {{ file = "{name}", point = {{ mu = {value} }} }},')
        study = (more / "study.toml").read_text()
        together = neyman("run", "more/study.toml", "--no-figures", cwd=self.folder)
        self.assertEqual(together.returncode, 0, together.stderr)
        first = read_results(more / "out")["fit"]["parameters"]["mu"]
        apart = study.replace('file = "simulated.csv"', "tables = [\n" + "\n".join(tables) + "\n]")
        (more / "study.toml").write_text(apart)
        done = neyman("run", "more/study.toml", "--no-figures", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        # The same events in the same order: the same bits.
        self.assertEqual(read_results(more / "out")["fit"]["parameters"]["mu"], first)
        (more / "study.toml").write_text(apart + '\n[classifier]\nkind = "logistic"\n')
        done = neyman("run", "more/study.toml", "--no-figures", cwd=self.folder)
        self.assertIn(done.returncode, (0, 3), done.stderr)


class Stream(Folder):
    """Files that stay on the disk."""

    ROWS, FEATURES = 3_000_000, 10
    STUDY = """
[study]
seed = 3

[parameters]
gamma = { range = [0, 1] }

[simulator]
kind = "mixture"
weights = ["1 - gamma", "gamma"]
components = [
  { name = "background", kind = "files", file = "background.npy", stream = true, in_memory = 20000 },
  { name = "signal", kind = "files", file = "signal.npy", stream = true, in_memory = 20000 },
]

[reference]
gamma = 0.5

[training]
folds = 2

[classifier]
kind = "mlp"
hidden = [8]
epochs = 1
batch_size = 1024

[data]
file = "observed.csv"
"""

    def header(self, kind, rows, columns):
        text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({rows}, {columns})}}"
        text += " " * (-(len(text) + 11) % 64) + "\n"
        return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()

    def npy(self, name, mean, count=ROWS, distinct=30_000):
        """float32; the same rows again and again: only their number matters here."""
        rng = random.Random(name)
        rows = array.array("f", (rng.gauss(mean if i % self.FEATURES == 0 else 0.0, 1.0)
                                 for i in range(distinct * self.FEATURES)))
        with open(self.folder / name, "wb") as file:
            file.write(self.header("=f4", count, self.FEATURES))
            for _ in range(count // distinct):
                rows.tofile(file)

    def run_measured(self, *arguments):
        """Exit status and the largest memory that was resident, in bytes."""
        process = subprocess.Popen([program.path, "run", "study.toml", "--quiet", "--no-figures",
                                    *arguments], cwd=self.folder)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return process.returncode, usage.ru_maxrss * 1024

    def test_memory_does_not_grow_with_the_files(self):
        self.npy("background.npy", 0.0)
        self.npy("signal.npy", 1.5)
        rng = random.Random(1)
        events = [[rng.gauss(1.5 if i % 10 < 3 and j == 0 else 0.0, 1.0)
                   for j in range(self.FEATURES)] for i in range(2000)]
        names = [f"x{j}" for j in range(self.FEATURES)]
        self.write("observed.csv", "\n".join(",".join(map(str, row)) for row in [names, *events]))
        self.write("study.toml", self.STUDY)
        status, memory = self.run_measured("--threads", "2", "--out", "two")
        self.assertEqual(status, 0)
        in_memory = 2 * self.ROWS * self.FEATURES * 8  # what the numbers alone would take
        self.assertLess(memory, 0.5 * in_memory)
        density = [[math.exp(-0.5 * (row[0] - mean) ** 2) for mean in (0.0, 1.5)] for row in events]
        results = read_results(self.folder / "two")
        self.close(results, {"gamma": maximum(
            lambda g: sum(math.log((1 - g) * b + g * s) for b, s in density), [(0, 1)])[0]})
        self.assertEqual(results["budget"]["simulated"], 2 * self.ROWS)
        # The same bits with one thread.
        self.assertEqual(self.run_measured("--threads", "1", "--out", "one")[0], 0)
        self.assertEqual(read_results(self.folder / "one")["fit"], results["fit"])

    def test_a_column_of_theta(self):
        self.assertEqual(neyman("example", "files", "mine", cwd=self.folder).returncode, 0)
        mine = self.folder / "mine"
        rows = column(mine / "simulated.csv", ["x", "y", "mu"])
        with open(mine / "simulated.npy", "wb") as file:
            file.write(self.header("=f8", len(rows), 3))
            array.array("d", itertools.chain(*rows)).tofile(file)
        study = (mine / "study.toml").read_text() + '\n[classifier]\nkind = "mlp"\n'
        (mine / "study.toml").write_text(study)
        (mine / "stream.toml").write_text(study.replace(
            'file = "simulated.csv"',
            'file = "simulated.npy"\nnames = ["x", "y", "mu"]\nstream = true\nin_memory = 14000'))
        for name in ("study", "stream"):
            done = neyman("run", f"mine/{name}.toml", "--no-figures", cwd=self.folder)
            self.assertIn(done.returncode, (0, 3), done.stderr)
        in_memory, streamed = read_results(mine / "out"), read_results(mine / "out-stream")
        self.assertEqual(streamed["budget"]["simulated"], len(rows))
        self.assertEqual(len(streamed["diagnostics"]), len(in_memory["diagnostics"]))
        one, other = (results["fit"]["parameters"]["mu"] for results in (in_memory, streamed))
        # Two networks, trained on the same events in another order.
        self.assertLess(abs(one["estimate"] - other["estimate"]), one["error"])
        self.assertLess(abs(one["error"] - other["error"]), 0.2 * one["error"])

    def test_what_does_not_stream_is_told(self):
        (self.folder / "few.csv").write_text("x\n" + "\n".join(map(str, range(5000))) + "\n")
        study = self.STUDY.replace("background.npy", "few.csv").replace("signal.npy", "few.csv")
        self.write("csv.toml", study)
        done = neyman("check", "csv.toml", cwd=self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("few.csv: is a CSV file, which is read from the top to the end", done.stderr)
        for name in ("background.npy", "signal.npy"):
            self.npy(name, 0.0, 2000, 2000)
        self.write("observed.csv", ",".join(f"x{j}" for j in range(self.FEATURES)) + "\n" +
                   ",".join(["0.5"] * self.FEATURES) + "\n")
        for kind in ("logistic", "boosted-trees"):
            self.write("kind.toml", self.STUDY.replace('kind = "mlp"', f'kind = "{kind}"').replace(
                "hidden = [8]\nepochs = 1\nbatch_size = 1024\n", ""))
            done = neyman("check", "kind.toml", cwd=self.folder)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn("classifier learns from events in memory, but the files stream", done.stderr)


if __name__ == "__main__":
    program.main()
