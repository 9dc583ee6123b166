"""Runs the built `neyman` program as a user does and looks at what comes out.

    python3 cli_test.py --neyman build/cli/neyman              all groups
    python3 cli_test.py --neyman build/cli/neyman Broken       one group
    python3 cli_test.py --neyman build/cli/neyman --regenerate

The last writes what `neyman check` says about broken/*.toml into the .expected files beside
them; read the difference before committing it.
"""

import json
import math
import os
import pty
import random
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import program
from program import neyman

HERE = Path(__file__).resolve().parent
BROKEN = HERE / "broken"
EXAMPLES = HERE.parent.parent / "examples"

# Small enough for a second, with every section that a run can have.
SMALL_STUDY = """
[study]
name = "small"
seed = 1

[parameters]
gamma = { range = [0, 1], truth = 0.3 }

[simulator]
kind = "mixture"
weights = ["1 - gamma", "gamma"]
components = [
  { name = "background", kind = "normal", mean = 0, sigma = 1 },
  { name = "signal", kind = "normal", mean = 2, sigma = 1 },
]

[reference]
gamma = 0.2

[training]
samples = 2000
folds = 2

[classifier]
kind = "logistic"

[calibration]
kind = "sigmoid"
replicas = 10

[data]
events = 300

[diagnostics]
events = 500

[inference.test]
null = { gamma = 0.1 }
alternative = { gamma = 0.3 }
datasets = 20

[ensemble]
datasets = 20
events = 200
at = { gamma = 0.3 }

[compare]
at = { gamma = 0.3 }
classifiers = [{ kind = "logistic" }]
events = 1000
"""

# A signal and two backgrounds, one of which a nuisance parameter moves.
MEASUREMENT_STUDY = """
[study]
name = "measurement"
seed = 2

[parameters]
mu = { range = [0, 4], truth = 1 }
shift = { range = [-3, 3], truth = 0, role = "nuisance", constraint = { kind = "gaussian", mean = 0, sigma = 1 } }

[simulator]
kind = "mixture"
yields = ["30*mu", 200, 150]
components = [
  { name = "signal", kind = "multivariate-normal", mean = [2, 0], covariance = [[1, 0], [0, 1]] },
  { name = "first", kind = "multivariate-normal", mean = ["0.2*shift", 0], covariance = [[1, 0], [0, 1]] },
  { name = "second", kind = "multivariate-normal", mean = [0, 2], covariance = [[1, 0], [0, 1]] },
]

[training]
samples = 6000
folds = 2

[classifier]
kind = "logistic"

[calibration]
kind = "sigmoid"
replicas = 3

[shapes]
hidden = []
degree = 2

[measurement]
simulated = 3000
toys = 130
scan = 8

[inference]
scan = 5
"""


def refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def read_json(path):
    return json.loads(path.read_text(), parse_constant=refuse_constant)


def files_in(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


class Folder(program.Folder):
    def fails(self, done, *words, status=1):
        """The program ended with this status and one plain sentence that holds all words."""
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "")
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertNotRegex(done.stderr, INTERNAL)


# --------------------------------------------------------------------------- broken studies

# A name of the program's inside has no business in a message to the person who wrote a study.
INTERNAL = re.compile(r"(?<![\w/.-])(Expression|SampleReader|ParameterSpace|Settings|Matrix|std|neyman::|"
                      r"\w*_\w+|mixture|normal): [a-z]")


def check_output(study):
    """What `neyman check` says about a broken study, with what depends on libraries masked."""
    done = neyman("check", study.name, cwd=BROKEN)
    text = f"exit status {done.returncode}\n{done.stdout}{done.stderr}"
    return re.sub(r"(is not valid TOML: ).*", r"\1<what the parser found>", text)


class Broken(unittest.TestCase):
    maxDiff = None

    def studies(self):
        studies = sorted(BROKEN.glob("*.toml"))
        self.assertGreaterEqual(len(studies), 25)
        return studies

    def test_messages(self):
        for study in self.studies():
            with self.subTest(study=study.name):
                expected = study.with_suffix(".expected")
                self.assertTrue(expected.exists(), "run with --regenerate, then read it")
                self.assertEqual(check_output(study), expected.read_text())

    def test_form(self):
        """file:line: key …, in the order of the lines; only what is missing has no line."""
        for study in self.studies():
            with self.subTest(study=study.name):
                lines = check_output(study).splitlines()
                self.assertEqual(lines[0], "exit status 2")
                problems = lines[1:-1]
                count = len(problems)
                self.assertEqual(lines[-1], f"{count} problem{'s' if count > 1 else ''} found; "
                                            "nothing was run")
                numbers = []
                for problem in problems:
                    match = re.match(rf"{re.escape(study.name)}(:(\d+))?: (\S+) (.*)", problem)
                    self.assertTrue(match, problem)
                    if match[2] is None:
                        self.assertIn("is missing", problem)
                    numbers.append(int(match[2] or 0))
                    self.assertNotRegex(problem, INTERNAL)
                self.assertEqual(numbers, sorted(numbers))

    def test_run_and_check_say_the_same(self):
        study = BROKEN / "several_problems.toml"
        with tempfile.TemporaryDirectory() as out:
            target = Path(out) / "never"
            run = neyman("run", study, "--out", target)
            self.assertEqual(run.returncode, 2)
            self.assertEqual(run.stderr, neyman("check", study).stderr)
            self.assertFalse(target.exists())


def regenerate():
    for study in sorted(BROKEN.glob("*.toml")):
        study.with_suffix(".expected").write_text(check_output(study))


# ------------------------------------------------------------------------------- commands

class Commands(Folder):
    def test_version(self):
        done = neyman("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"^neyman \d+\.\d+\.\d+\n$")

    def test_help_has_examples(self):
        top = neyman("--help")
        self.assertEqual(top.returncode, 0)
        self.assertIn("Examples:", top.stdout)
        for command in ("run", "check", "example", "fit", "limit", "diagnose", "export"):
            self.assertIn(f"neyman {command} ", top.stdout)
            done = neyman(command, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stdout, rf"Examples?:\n  neyman {command}")

    def test_unknown_command(self):
        self.fails(neyman("rnu", "study.toml"), "'rnu' is not a command", "did you mean 'run'?",
                   "neyman --help", status=2)
        self.fails(neyman("optimise"), "'optimise' is not a command", "check", status=2)

    def test_wrong_command_line(self):
        for arguments, word in (
                ((), "subcommand"),
                (("run",), "study"),
                (("run", "a.toml", "--sede", "3"), "--sede"),
                (("run", "a.toml", "--seed", "three"), "three"),
                (("run", "a.toml", "--seed", "-3"), "-3"),
                (("run", "a.toml", "--threads", "0"), "threads"),
                (("fit", "model.h5"), "--data"),
                (("diagnose",), "study"),
                (("diagnose", "a.toml", "--events", "3"), "--events")):
            with self.subTest(arguments=arguments):
                done = neyman(*arguments, cwd=self.folder)
                self.assertEqual(done.returncode, 2)
                self.assertIn(word, done.stderr)

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([program.path, "example"], stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=250)
        self.assertEqual(done.returncode, 1)
        self.assertIn("could not be written", done.stderr)

    def test_messages_that_cannot_be_written_end_nothing(self):
        study = self.write("told.toml", SMALL_STUDY)
        out = self.folder / "told"
        command = [program.path, "run", study, "--out", out, "--no-figures"]
        with open("/dev/full", "w") as full:
            self.assertEqual(neyman("check", study).returncode, 0)
            done = subprocess.run([program.path, "check", "nowhere.toml"], stdout=subprocess.PIPE,
                                  stderr=full, timeout=250)
            self.assertEqual(done.returncode, 1)
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True, timeout=250)
            train = next((out / "stages").glob("train-*.h5"))
            train.write_bytes(train.read_bytes()[:-1])  # which is told of
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=full, timeout=250)
            self.assertEqual(done.returncode, 0)
            # Without room for what it says, a run still goes to its end.
            shutil.rmtree(out)
            done = subprocess.run(command, stdout=full, stderr=full, timeout=250)
            self.assertEqual(done.returncode, 1)
            self.assertTrue((out / "results.json").exists())
        shutil.rmtree(out)
        study.unlink()

    def test_no_control_character_of_a_name_reaches_the_terminal(self):
        evil = "\x1b]0;gone\x07\x1b[2J\x9b2J"
        data = self.write("evil.csv", f'"{evil}",y\n1,2\n')
        study = self.write("evil.toml", SMALL_STUDY.replace(
            "events = 300", f'file = "{data.name}"', 1).replace(
            'name = "', 'name = "\\u001b[2J', 1))
        for arguments in (("check", study), ("check", study, "--json"),
                          ("run", study, "--out", self.folder / "evil", "--no-figures"),
                          ("fit", data, "--data", data), (evil,), ("check", evil)):
            done = neyman(*arguments)
            shown = done.stdout + done.stderr
            self.assertNotEqual(shown, "")
            bad = [c for c in shown if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160]
            self.assertEqual(bad, [], arguments)
        self.assertIn("\\x1b]0;gone\\x07", neyman("check", study).stderr
                      + neyman("check", evil).stderr)
        data.unlink()
        study.unlink()

    def test_more_events_than_memory(self):
        study = self.write("huge.toml", SMALL_STUDY.replace("samples = 2000", "samples = 1e15"))
        # The address sanitizer would end the program instead of refusing the memory.
        environment = {**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1"}
        self.fails(neyman("run", study, "--out", self.folder / "huge", env=environment),
                   "memory")
        self.assertEqual(files_in(self.folder / "huge"), [])
        study.unlink()

    def test_unknown_stage(self):
        study = self.write("stages.toml", SMALL_STUDY)
        for option in ("--from", "--until"):
            done = neyman("run", study, option, "trian")
            self.assertEqual(done.returncode, 2)
            self.assertIn("trian", done.stderr)
            self.assertIn("calibrate", done.stderr)
        self.assertEqual(neyman("run", study, "--fresh", "--from", "fit").returncode, 2)
        study.unlink()

    def test_study_that_is_not_there(self):
        for command in ("check", "run"):
            self.fails(neyman(command, "nowhere/study.toml"), "nowhere/study.toml",
                       "does not exist")
            self.fails(neyman(command, self.folder), str(self.folder), "folder")

    def test_check_accepts_a_study(self):
        study = self.write("study.toml", SMALL_STUDY)
        done = neyman("check", study)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("no problems", done.stdout)
        self.assertIn("events in all stages: 2000 to learn from, ", done.stdout)
        self.assertEqual(files_in(self.folder), ["study.toml"])

    def test_check_tells_what_all_stages_simulate(self):
        study = self.write("study.toml", SMALL_STUDY)
        planned = json.loads(neyman("check", study, "--json").stdout)["study"]
        self.assertEqual(planned["planned_total"], sum(planned["planned_events"].values()))
        neyman("run", study, "--no-figures", "--quiet")
        budget = read_json(self.folder / "out" / "results.json")["budget"]
        for purpose, events in budget.items():
            self.assertLessEqual(events, planned["planned_events"][purpose], purpose)

    def test_study_in_another_folder_finds_its_data(self):
        inner = self.folder / "inner"
        inner.mkdir()
        (inner / "events.csv").write_text("x\n1\n2\n")
        (inner / "study.toml").write_text(
            SMALL_STUDY.replace("events = 300", 'file = "events.csv"'))
        self.assertEqual(neyman("check", inner / "study.toml").returncode, 0)
        self.assertEqual(neyman("check", "study.toml", cwd=inner).returncode, 0)
        shutil.rmtree(inner)

    def test_shares_of_several_components(self):
        """Shares that cannot all be at the middle of their ranges are a study all the same."""
        study = self.write("shares.toml", SMALL_STUDY.replace(
            "gamma = { range = [0, 1], truth = 0.3 }",
            "\n".join(f"{p} = {{ range = [0, 1], truth = 0.2 }}" for p in "abc")).replace(
            '["1 - gamma", "gamma"]', '["1 - a - b - c", "a", "b", "c"]').replace(
            "]\n\n[reference]\ngamma = 0.2",
            "".join(f'  {{ name = "{n}", kind = "normal", mean = {m}, sigma = 1 }},\n'
                    for n, m in (("third", 3), ("fourth", 4))) +
            "]\n\n[reference]\na = 0\nb = 0\nc = 0").replace(
            "{ gamma = 0.1 }", "{ a = 0.1 }").replace("{ gamma = 0.3 }", "{ a = 0.3 }"))
        done = neyman("check", study)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        study.unlink()


# ------------------------------------------------------------------------------- examples

class Examples(Folder):
    def test_every_example_study_passes(self):
        # Those that are compiled first are in simulators_test.py.
        studies = [study for study in sorted(EXAMPLES.glob("*/*.toml"))
                   if study.parent.name != "06_plugin" and study.name != "compiled.toml"]
        self.assertGreaterEqual(len(studies), 2)
        for study in studies:
            done = neyman("check", study)
            self.assertEqual((done.returncode, done.stderr), (0, ""), study)

    def test_copy(self):
        listed = neyman("example")
        self.assertEqual((listed.returncode, listed.stderr), (0, ""))
        self.assertEqual(re.findall(r"(?m)^(\w+)  ", listed.stdout.split("─\n")[1]),
                         ["mixture", "multidimensional", "nuisance", "search", "command", "plugin",
                          "files"])
        done = neyman("example", "mixture", "mine", cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("neyman run mine/study.toml", done.stdout)
        self.assertEqual(neyman("check", "mine/study.toml", cwd=self.folder).returncode, 0)

        (self.folder / "mine" / "study.toml").write_text("# my own work\n")
        again = neyman("example", "mixture", "mine", cwd=self.folder)
        self.fails(again, "mine", "exists already")
        self.assertEqual((self.folder / "mine" / "study.toml").read_text(), "# my own work\n")

    def test_every_study_is_listed_with_what_it_shows_and_takes(self):
        listed = neyman("example").stdout
        for study in sorted(EXAMPLES.glob("*/*.toml")):
            with self.subTest(study=study):
                name = (f"  {study.name}" if study.name != "study.toml"
                        else study.parent.name.split("_", 1)[1])
                title = re.search(r'(?m)^title = "(.*)"$', study.read_text())[1]
                takes = re.search(r"(?m)^# Takes about (.*) on two cores", study.read_text())
                self.assertTrue(takes, "the study does not say how long it takes")
                self.assertRegex(listed, rf"(?m)^{re.escape(name)} +{re.escape(title)} +"
                                         rf"{re.escape(takes[1].split(',')[0])}$")
                # Two minutes at most, in full or with --quick.
                time_of = re.search(r"(\d+) (s|min)(?:, (\d+) s with --quick)?$", takes[1])
                self.assertTrue(time_of, takes[1])
                seconds = int(time_of[1]) * (60 if time_of[2] == "min" else 1)
                self.assertLess(int(time_of[3] or seconds), 120)
        for line in listed.splitlines():
            self.assertLessEqual(len(line), 80)

    def test_copy_to_its_own_name_and_into_new_folders(self):
        self.assertEqual(neyman("example", "mixture", cwd=self.folder).returncode, 0)
        self.assertTrue((self.folder / "mixture" / "study.toml").exists())
        done = neyman("example", "mixture", "deep/er/", cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue((self.folder / "deep" / "er" / "study.toml").exists())
        self.assertEqual([p.name for p in self.folder.rglob("*.partial")], [])

    def test_unknown_example(self):
        self.fails(neyman("example", "mixtur", cwd=self.folder), "'mixtur' is not an example",
                   "did you mean 'mixture'?")

    def test_place_that_cannot_be_written(self):
        self.write("file", "")
        self.fails(neyman("example", "mixture", "file/mine", cwd=self.folder), "file/mine")


# ------------------------------------------------------------------------------------ run

class RunFiles(Folder):
    """One run with everything on, and what it leaves behind."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.folder / "study.toml").write_text(SMALL_STUDY)
        cls.done = neyman("run", "study.toml", cwd=cls.folder)
        cls.out = cls.folder / "out"

    def test_status(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        self.assertEqual(self.done.stderr, "")

    def test_files(self):
        files = files_in(self.out)
        for name in ("results.json", "report.html", "model.h5"):
            self.assertIn(name, files)
        self.assertEqual([f for f in files if ".tmp" in f or ".partial" in f], [])
        if shutil.which("gnuplot"):
            figures = [f for f in files if f.startswith("figures/")]
            for ending in (".svg", ".pdf"):
                self.assertTrue([f for f in figures if f.endswith(ending)], ending)

    def test_stable_keys(self):
        results = read_json(self.out / "results.json")
        self.assertEqual(results["schema"], "neyman.results/1")
        self.assertEqual(results["study"]["name"], "small")
        self.assertEqual(results["study"]["seed"], 1)
        for fit in ("fit", "exact_fit"):
            self.assertEqual(results[fit]["status"], "converged")
            gamma = results[fit]["parameters"]["gamma"]
            self.assertGreater(gamma["error"], 0)
            inner, outer = gamma["interval"]["0.683"], gamma["interval"]["0.95"]
            self.assertTrue(outer[0] < inner[0] < gamma["estimate"] < inner[1] < outer[1])
        # Two shifted normals of one width: the logistic classifier is of the right form.
        learned, exact = (results[f]["parameters"]["gamma"] for f in ("fit", "exact_fit"))
        self.assertLess(abs(learned["estimate"] - exact["estimate"]), exact["error"])
        self.assertEqual(results["ensemble"]["datasets"], 20)
        self.assertEqual(len(results["ensemble"]["approximate"]["estimates"]["gamma"]), 20)
        self.assertTrue(0 <= results["test"]["p_value"] <= 1)
        for check in results["diagnostics"]:
            self.assertIn(check["verdict"], ("pass", "no power", "warn", "fail"))
            self.assertTrue(math.isfinite(check["statistic"]))
            self.assertTrue(0 <= check["p_value"] <= 1)
        self.assertEqual({c["name"] for c in results["diagnostics"]}, {"recovery", "range", "wilks"} | {
            check + where for check in ("reweighting", "normalisation", "reliability", "closure")
            for where in ("", ":wide")})
        self.assertEqual(results["budget"]["simulated"], 2000)
        self.assertEqual(results["budget"]["ensemble"], 20 * 200)
        self.assertTrue(all(seconds >= 0 for seconds in results["timing"].values()))
        self.assertLessEqual({"simulate", "train", "fit"}, set(results["timing"]))
        self.assertIsInstance(results["warnings"], list)

    def test_report(self):
        html = (self.out / "report.html").read_text()
        self.assertIn("small", html)
        self.assertNotRegex(html, r"(src|href)=[\"']https?:")  # self-contained

    def test_summary(self):
        results = read_json(self.out / "results.json")
        gamma = results["fit"]["parameters"]["gamma"]
        self.assertIn(f"{gamma['estimate']:.3f} ± {gamma['error']:.3f}", self.done.stdout)
        for name in ("report.html", "results.json", "model.h5"):
            self.assertIn(name, self.done.stdout)

    def test_no_escape_sequences_without_a_terminal(self):
        self.assertNotIn("\x1b", self.done.stdout + self.done.stderr)
        self.assertNotIn("\r", self.done.stdout + self.done.stderr)


class RunAgain(Folder):
    """Runs beside each other: seeds, threads, folders."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.folder / "study.toml").write_text(SMALL_STUDY)

    def run_study(self, out, *arguments, study="study.toml"):
        return neyman("run", study, "--no-figures", "--quiet", "--out", out, *arguments,
                      cwd=self.folder)

    def results(self, out, *arguments, **named):
        done = self.run_study(out, *arguments, **named)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        results = read_json(self.folder / out / "results.json")
        for volatile in ("timing", "threads"):
            del results[volatile]
        return results

    def test_one_seed_gives_the_same_results_on_any_number_of_threads(self):
        one = self.results("one", "--threads", 1)
        self.assertEqual(one, self.results("two", "--threads", 2))
        self.assertEqual(one, self.results("one", "--threads", 1))  # over the old files
        self.assertEqual(one["study"]["seed"], 1)
        other = self.results("other", "--seed", 2)
        self.assertEqual(other["study"]["seed"], 2)
        self.assertNotEqual(one["fit"]["parameters"], other["fit"]["parameters"])
        self.assertNotEqual(one["ensemble"], other["ensemble"])
        self.write("seed2.toml", SMALL_STUDY.replace("seed = 1", "seed = 2"))
        written = self.results("written", study="seed2.toml")
        self.assertEqual(written["fit"], other["fit"])
        self.assertEqual(written["ensemble"], other["ensemble"])

    def test_no_figures(self):
        self.results("plain")
        self.assertFalse((self.folder / "plain" / "figures").exists())

    def test_minimal_study(self):
        """Without test, ensemble and comparison, their parts are absent, not empty."""
        self.write("minimal.toml", SMALL_STUDY[:SMALL_STUDY.index("[inference.test]")])
        results = self.results("minimal", study="minimal.toml")
        for part in ("test", "ensemble", "comparison"):
            self.assertNotIn(part, results)

    def test_studies_in_one_folder_have_results_of_their_own(self):
        minimal = SMALL_STUDY[:SMALL_STUDY.index("[inference.test]")]
        for study, arguments, out in (("a/study.toml", (), "a/out"),
                                      ("a/study.toml", ("--quick",), "a/out-quick"),
                                      ("a/wide.v2.toml", (), "a/out-wide.v2"),
                                      ("a/wide.v2.toml", ("--quick",), "a/out-wide.v2-quick")):
            self.write(study, minimal)
            done = neyman("run", study, "--no-figures", *arguments, cwd=self.folder)
            self.assertIn(f"Results  {out}/results.json\n", done.stdout)
            self.assertTrue((self.folder / out / "results.json").is_file())
        self.assertEqual(neyman("diagnose", "a/wide.v2.toml", cwd=self.folder).returncode, 0)
        shutil.rmtree(self.folder / "a" / "out-wide.v2")
        self.fails(neyman("diagnose", "a/wide.v2.toml", cwd=self.folder),
                   "a/out-wide.v2/model.h5", "neyman run a/wide.v2.toml")

    def test_folder_that_cannot_be_written(self):
        """Told before the work, not after it."""
        self.write("file", "")
        start = time.monotonic()
        self.fails(self.run_study("file/out"), "file/out")
        self.fails(self.run_study("file"), "file")
        (self.folder / "taken" / "results.json").mkdir(parents=True)
        self.fails(self.run_study("taken"), "taken/results.json", "folder")
        self.assertEqual(files_in(self.folder / "taken"), [])
        self.assertLess(time.monotonic() - start, 60)

    def test_data_that_change_after_the_check(self):
        """Data with a row that cannot be used are refused by the check already."""
        self.write("events.csv", "x\n0.5\nnan\n")
        self.write("bad.toml", SMALL_STUDY.replace("events = 300", 'file = "events.csv"'))
        done = self.run_study("bad", study="bad.toml")
        self.fails(done, "data.file", "events.csv:3", status=2)
        self.assertFalse((self.folder / "bad").exists())
        self.write("drop.toml", SMALL_STUDY.replace(
            "events = 300", 'file = "events.csv"\ninvalid = "drop"'))
        self.write("events.csv", "x\n" + "0.5\n1.5\n-0.5\n2.5\n" * 20 + "nan\n")
        results = self.results("drop", study="drop.toml")
        self.assertEqual(results["study"]["events"], 80)
        self.assertIn("1 of 81 rows of the data were dropped", " ".join(results["warnings"]))


# ------------------------------------------------------------------------------------ fit

class Fit(Folder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        values = [((37 * i) % 101) / 101 * 6 - 2.5 for i in range(300)]
        (cls.folder / "events.csv").write_text("x\n" + "".join(f"{v!r}\n" for v in values))
        study = SMALL_STUDY[:SMALL_STUDY.index("[inference.test]")].replace(
            "events = 300", 'file = "events.csv"')
        (cls.folder / "study.toml").write_text(study)
        done = neyman("run", "study.toml", "--no-figures", "--quiet", cwd=cls.folder)
        assert done.returncode == 0, done.stderr
        cls.model = cls.folder / "out" / "model.h5"

    def fit(self, data, *arguments, model=None):
        return neyman("fit", model or self.model, "--data", data, *arguments, cwd=self.folder)

    def refused(self, done, *words):
        self.fails(done, *words)
        self.assertFalse((self.folder / "refused").exists())

    def test_same_data_give_the_same_fit(self):
        done = self.fit("events.csv", "--out", "again", "--no-figures")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn("\x1b", done.stdout)
        run = read_json(self.folder / "out" / "results.json")["fit"]
        again = read_json(self.folder / "again" / "results.json")["fit"]
        for key in ("estimate", "error", "statistical_error", "simulation_error"):
            first, second = (f["parameters"]["gamma"][key] for f in (run, again))
            self.assertLessEqual(abs(first - second), 1e-12 * abs(first), key)
        for level in ("0.683", "0.95"):
            for end in (0, 1):
                first, second = (f["parameters"]["gamma"]["interval"][level][end]
                                 for f in (run, again))
                self.assertLessEqual(abs(first - second), 1e-12)
        self.assertEqual(files_in(self.folder / "again"), ["report.html", "results.json", "run.log"])

    def test_columns_are_found_by_their_names(self):
        rows = (self.folder / "events.csv").read_text().splitlines()[1:]
        estimate = read_json(self.folder / "out" / "results.json")["fit"]["parameters"]["gamma"]
        for name, header in (("named", "id,x"), ("other", "id,mass"), ("bare", None)):
            lines = rows if header is None else [header, *(f"{i},{v}" for i, v in enumerate(rows))]
            self.write(f"{name}.csv", "\n".join(lines) + "\n")
        done = self.fit("named.csv", "--json")
        found = json.loads(done.stdout)["results"]
        self.assertEqual(found["fit"]["parameters"]["gamma"]["estimate"], estimate["estimate"])
        self.assertIn("id is no feature of the model", found["study"]["data_note"])
        self.refused(self.fit("other.csv"), "has the columns id, mass, but must have x", "--columns")
        done = self.fit("other.csv", "--columns", "mass", "--json")
        self.assertEqual(json.loads(done.stdout)["results"]["fit"]["parameters"]["gamma"]["estimate"],
                         estimate["estimate"])
        self.refused(self.fit("other.csv", "--columns", "id,mass"), "--columns: names 2 columns")
        done = self.fit("bare.csv")
        self.assertIn("the columns of bare.csv have no names", done.stdout)
        # A study says it as well.
        self.write("bare.toml", (self.folder / "study.toml").read_text().replace("events.csv", "bare.csv"))
        self.assertIn("have no names", neyman("check", "bare.toml", cwd=self.folder).stdout)

    def test_rows_that_cannot_be_used(self):
        self.write("nan.csv", "x\n0.5\nnan\n")
        self.refused(self.fit("nan.csv"), "nan.csv:3", "--drop-invalid")
        self.write("events.dat", "x\n0.5\n1.5\n")
        self.refused(self.fit("events.dat"), "say which of csv, npy and hdf5 it is", "--format csv")
        self.assertEqual(self.fit("events.dat", "--format", "csv").returncode, 0)

    def test_a_measurement(self):
        """Its model gives for the data of the run what the run gives, discovery and limits too."""
        import random
        random.seed(8)
        place = [(2, 0)] * 15 + [(0, 0)] * 205 + [(0, 2)] * 145
        rows = "".join(f"{random.gauss(x, 1)!r},{random.gauss(y, 1)!r}\n" for x, y in place)
        self.write("seen.csv", "x0,x1\n" + rows)
        self.write("search.toml", MEASUREMENT_STUDY + '[data]\nfile = "seen.csv"\n')
        done = neyman("run", "search.toml", cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("out-search/model.h5", done.stdout)
        model = self.folder / "out-search" / "model.h5"
        done = self.fit("seen.csv", "--out", "found", model=model)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for words in ("standard deviations", "by CLs (toys)", "sub-ratios"):
            self.assertIn(words, done.stdout)
        run = read_json(self.folder / "out-search" / "results.json")
        found = read_json(self.folder / "found" / "results.json")
        for key in ("measurement", "diagnostics", "warnings", "ratio"):
            self.assertEqual(found.get(key), run.get(key), key)
        run["fit"].pop("seconds", None), found["fit"].pop("seconds", None)
        self.assertEqual(found["fit"], run["fit"])
        self.assertEqual(found["measurement"]["toy_limit"]["toys"], 130)
        figures = files_in(self.folder / "found" / "figures")
        for name in ("measurement-limit", "measurement-impacts", "measurement-channel-events-x1"):
            self.assertIn(f"{name}.svg", figures)
        page = (self.folder / "found" / "report.html").read_text()
        for words in ("Upper limit", "130 toys a value", "Before and after the fit", "Nuisance"):
            self.assertIn(words, page)
        # A graph of its components, with the parameters of shapes as inputs.
        done = neyman("export", model, "--out", "events.onnx", cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("events.onnx", done.stdout)
        graph = (self.folder / "events.onnx").read_bytes()
        for word in (b"log_r", b"sign", b"shift", b"signal, first, second", b"30*mu; 200; 150"):
            self.assertIn(word, graph)
        # What a model of a measurement is not for.
        self.fails(neyman("export", model, "--out", "no.onnx", "--numerator", "mu=1,shift=0",
                          cwd=self.folder), "--numerator and --denominator are given", "a measurement")
        self.assertFalse((self.folder / "no.onnx").exists())
        self.fails(neyman("diagnose", "search.toml", cwd=self.folder), "a measurement has no ratio")

    def test_exports_a_graph(self):
        def export(*arguments, model=self.model):
            return neyman("export", model, *arguments, cwd=self.folder)
        done = export("--out", "ratio.onnx")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("ratio.onnx", done.stdout)
        graph = (self.folder / "ratio.onnx").read_bytes()
        for word in (b"neyman", b"numerator_weights", b"denominator_weights", b"log_r"):
            self.assertIn(word, graph)
        answer = json.loads(export("--out", "at.onnx", "--numerator", "gamma=0.3",
                                   "--denominator", "gamma=0.1", "--json").stdout)
        self.assertEqual((answer["command"], answer["file"]), ("export", "at.onnx"))
        self.assertNotIn(b"_weights", (self.folder / "at.onnx").read_bytes())
        self.fails(export("--out", "no.onnx", "--numerator", "gama=0.3"), "'gama' is not a parameter",
                   "--numerator", status=2)
        self.fails(export("--out", "nowhere/ratio.onnx"), "nowhere")
        self.fails(export("--out", "no.onnx", model="events.csv"), "events.csv", "model.h5")
        self.assertFalse((self.folder / "no.onnx").exists())

    def test_without_out_nothing_is_written(self):
        before = files_in(self.folder)
        done = self.fit("events.csv")
        self.assertEqual(done.returncode, 0)
        self.assertIn("gamma", done.stdout.replace("γ", "gamma"))
        self.assertEqual(files_in(self.folder), before)
        self.assertEqual(self.fit("events.csv", "--quiet").stdout, "")

    def test_colours_only_where_they_are_wanted(self):
        for no_colour, coloured in ((None, True), ("1", False)):
            environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
            if no_colour:
                environment["NO_COLOR"] = no_colour
            try:
                controller, terminal = pty.openpty()
            except OSError as error:
                self.skipTest(f"this machine has no terminals: {error}")
            done = subprocess.run([program.path, "fit", self.model, "--data", "events.csv"],
                                  cwd=self.folder, stdout=terminal, env=environment, timeout=250)
            os.close(terminal)
            text = os.read(controller, 1 << 16).decode()
            os.close(controller)
            self.assertEqual(done.returncode, 0)
            self.assertEqual("\x1b[" in text, coloured)

    def test_columns_in_another_order_and_besides(self):
        text = (self.folder / "events.csv").read_text().splitlines()[1:]
        self.write("wide.csv", "w,x\n" + "".join(f"1,{v}\n" for v in text))
        for arguments in (("wide.csv",), ("wide.csv", "--weights", "w")):
            self.assertEqual(self.fit(*arguments, "--out", "wide", "--no-figures").returncode, 0)
            first, second = (read_json(self.folder / o / "results.json")["fit"]["parameters"]
                             ["gamma"]["estimate"] for o in ("out", "wide"))
            self.assertLess(abs(first - second), 1e-6)  # the fit's own tolerance

    def test_drop_invalid_counts(self):
        self.write("gaps.csv", (self.folder / "events.csv").read_text() + "nan\nNA\ninf\n")
        self.refused(self.fit("gaps.csv", "--out", "refused"), "gaps.csv:302", "'x'", "finite")
        done = self.fit("gaps.csv", "--drop-invalid", "--out", "gaps", "--no-figures")
        self.assertEqual(done.returncode, 0)
        results = read_json(self.folder / "gaps" / "results.json")
        self.assertEqual(results["study"]["events"], 300)
        self.assertIn("3 of 303 rows of the data were dropped", " ".join(results["warnings"]))
        self.assertIn("3 of 303", done.stdout)

    def test_data_that_cannot_be_used(self):
        self.write("other.csv", "y\n1\n2\n")
        self.write("empty.csv", "")
        self.write("header.csv", "x\n")
        self.write("words.csv", "x\n1\ntwo\n")
        self.write("all_gaps.csv", "x\nnan\n")
        for arguments, words in (
                (("other.csv",), ("other.csv", "has the columns y, but must have x")),
                (("empty.csv",), ("empty.csv", "is empty")),
                (("header.csv",), ("header.csv", "no rows")),
                (("words.csv",), ("words.csv:3", "'two'", "number")),
                (("all_gaps.csv", "--drop-invalid"), ("all_gaps.csv", "no valid row")),
                (("nowhere.csv",), ("nowhere.csv", "does not exist")),
                (("events.csv", "--weights", "w"), ("events.csv", "'w'"))):
            with self.subTest(data=arguments[0]):
                self.refused(self.fit(*arguments, "--out", "refused"), *words)

    def test_models_that_cannot_be_used(self):
        whole = self.model.read_bytes()
        cases = {"text.h5": (b"not a model\n", ""), "empty.h5": (b"", ""),
                 "truncated.h5": (whole[:len(whole) // 2], ""),
                 "short.h5": (whole[:-1], "")}
        for name, (content, word) in cases.items():
            with self.subTest(model=name):
                (self.folder / name).write_bytes(content)
                self.refused(self.fit("events.csv", "--out", "refused",
                                      model=self.folder / name), name, word)
        for model in ("nowhere.h5", "events.csv", "out"):
            with self.subTest(model=model):
                self.refused(self.fit("events.csv", "--out", "refused", model=model), model)

    def test_damaged_model(self):
        """Any changed byte is either noticed or of no consequence; it never goes wrong."""
        whole = self.model.read_bytes()
        estimate = read_json(self.folder / "out" / "results.json")["fit"]["parameters"]["gamma"]
        damaged = self.folder / "damaged.h5"
        for part in range(1, 8):
            at = len(whole) * part // 8
            damaged.write_bytes(whole[:at] + bytes([whole[at] ^ 0x5a]) + whole[at + 1:])
            done = self.fit("events.csv", "--out", "damaged", "--no-figures", model=damaged)
            with self.subTest(at=at):
                self.assertIn(done.returncode, (0, 1), done.stderr)
                if done.returncode == 1:
                    self.assertIn("damaged.h5", done.stderr)
                else:
                    found = read_json(self.folder / "damaged" / "results.json")
                    self.assertEqual(found["fit"]["parameters"]["gamma"], estimate)

    def test_folder_that_cannot_be_written(self):
        self.fails(self.fit("events.csv", "--out", "study.toml"), "study.toml")


# ------------------------------------------------------------------- one model for all θ

# A normal with both parameters fitted, small enough for a second.
NORMAL_STUDY = """
[study]
name = "normal"
seed = 1

[parameters]
alpha = { range = [-1, 1], truth = 0.3 }
beta = { range = [0.8, 1.25], truth = 1, role = "nuisance" }

[simulator]
kind = "normal"
mean = "alpha"
sigma = "beta"

[training]
samples = 20000

[classifier]
kind = "separable"
hidden = [16]
epochs = 10

[data]
events = 300

[diagnostics]
events = 1000
which = ["normalisation", "reliability", "closure"]
"""


class Limit(Folder):
    """`neyman limit` with a workspace for which pyhf has answered."""

    WORKSPACE = HERE.parent / "measurements" / "data" / "counting.json"

    def limit(self, *arguments, workspace=None):
        return neyman("limit", workspace or self.WORKSPACE, *arguments, cwd=self.folder)

    def test_numbers_are_those_of_pyhf(self):
        done = self.limit("--out", "limit.json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn("\x1b", done.stdout)
        self.assertRegex(done.stdout, r"asymptotic +observed +[\d.]+ +expected +[\d.]+")
        self.assertTrue(all(len(line) <= 80 for line in done.stdout.splitlines()))
        written = read_json(self.folder / "limit.json")
        answers = read_json(self.WORKSPACE.with_name("counting.answers.json"))
        for found, expected in ((written["limit"]["observed"], answers["limit"]["observed"]),
                                (written["limit"]["expected"]["0"], answers["limit"]["expected"][2])):
            self.assertLess(abs(found - expected), 1e-3 * expected)
        printed = json.loads(self.limit("--json").stdout)
        self.assertEqual((printed["command"], printed["exit_status"]), ("limit", 0))
        self.assertEqual(printed["measurement"], written)

    def test_a_study_is_no_workspace(self):
        self.write("study.toml", SMALL_STUDY)
        done = self.limit(workspace="study.toml")
        self.fails(done, "study.toml: is a study", "neyman run study.toml")
        self.write("text.json", "mu = 1\n")
        done = self.limit(workspace="text.json")
        self.fails(done, "text.json: is not JSON: it cannot be read beyond line 1")
        self.assertNotIn("exception", done.stderr)

    def test_blind_and_with_toys(self):
        blind = json.loads(self.limit("--asimov", "0", "--json").stdout)["measurement"]
        self.assertLess(abs(blind["fit"]["parameters"]["mu"]["estimate"]), 1e-6)
        self.assertLess(abs(blind["limit"]["observed"] - blind["limit"]["expected"]["0"]), 1e-4)
        toys = [json.loads(self.limit("--toys", "200", "--seed", "5", "--threads", threads, "--json")
                           .stdout)["measurement"]["toy_limit"] for threads in ("1", "2")]
        self.assertEqual(*toys)

    def toys(self, *arguments):
        return self.limit("--toys", "300", "--seed", "5", *arguments, workspace="toys.json")

    def test_toys_in_parts_and_after_a_kill(self):
        (self.folder / "toys.json").write_bytes(self.WORKSPACE.read_bytes())
        alone = json.loads(self.toys("--json").stdout)["measurement"]
        for number in (2, 1, 3):
            done = self.toys("--part", f"{number}/3")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(f"toys-toys/part-{number}-of-3.toys", done.stdout)
            self.assertIn("neyman merge toys.json", done.stdout)
        done = neyman("merge", "toys.json", "--out", "merged.json", cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(read_json(self.folder / "merged.json"), alone)
        # Killed at some point; the second time it goes on, and the third there is nothing to do.
        many = ("limit", "toys.json", "--toys", "20000", "--threads", "1", "--keep", "kept")
        job = subprocess.Popen([program.path, *many], cwd=self.folder, stdout=subprocess.DEVNULL)
        kept = self.folder / "kept" / "part-1-of-1.toys"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (kept.exists() and kept.stat().st_size > 20000):
            time.sleep(0.005)
        job.kill()
        job.wait()
        size = kept.stat().st_size
        again = [neyman(*many, "--json", cwd=self.folder).stdout for _ in range(2)]
        self.assertGreater(kept.stat().st_size, size)
        self.assertEqual(*again)
        fresh = neyman(*many[:-2], "--json", cwd=self.folder).stdout
        self.assertEqual(again[0], fresh)
        # What does not belong together.
        self.fails(self.toys("--keep", "kept"), "kept/part-1-of-1.toys", "other options")
        self.fails(self.limit("--part", "1/3"), "--toys")
        self.fails(self.toys("--part", "4/3"), "'4/3' is no part", status=2)
        (self.folder / "toys-toys" / "part-2-of-3.toys").unlink()
        self.fails(neyman("merge", "toys.json", cwd=self.folder), "missing: 2")
        self.fails(neyman("merge", "nothing.json", cwd=self.folder), "there are no parts", "--part")

    def test_what_is_refused(self):
        self.fails(self.limit(workspace="nowhere.json"), "nowhere.json", "workspace of pyhf")
        (self.folder / "broken.json").write_text("{}")
        self.fails(self.limit(workspace="broken.json"), "broken.json", "'version'")
        self.fails(self.limit("--measurement", "other"), "'other' is not a measurement")
        self.fails(self.limit("--statistic", "t"), "--statistic", status=2)
        self.fails(self.limit("--asimov", "-3"), "mu is -3")

    def test_a_report_with_figures(self):
        done = self.limit("--report", "out", "--group", "mine=uncorrelated")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("out/report.html", done.stdout)
        page = (self.folder / "out" / "report.html").read_text()
        self.assertIn("--group mine=uncorrelated --report out", page)
        found = read_json(self.folder / "out" / "measurement.json")
        parts = found["error_parts"]
        self.assertEqual(sorted(parts), ["mine", "other", "statistical"])
        mu = found["fit"]["parameters"]["mu"]
        self.assertAlmostEqual(sum(part ** 2 for part in parts.values()), mu["error"] ** 2)
        for figure in ("measurement-limit", "measurement-impacts"):
            for kind in ("svg", "pdf", "dat", "gp"):
                self.assertTrue((self.folder / "out" / "figures" / f"{figure}.{kind}").is_file())
        self.fails(self.limit("--group", "mine"), "NAME=PARAMETER")
        wrong = self.limit("--group", "mine=nobody")
        self.assertEqual(wrong.returncode, 3)
        self.assertIn("'nobody' is not a parameter", wrong.stdout)

    def test_a_limit_out_of_range_is_told(self):
        workspace = read_json(self.WORKSPACE)
        workspace["measurements"][0]["config"]["parameters"] = [{"name": "mu", "bounds": [[0, 1.2]]}]
        (self.folder / "narrow.json").write_text(json.dumps(workspace))
        done = self.limit(workspace="narrow.json")
        self.assertEqual(done.returncode, 3)
        self.assertIn("Problem: CL_s of the", done.stdout)


class Diagnose(Folder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.folder / "study.toml").write_text(NORMAL_STUDY)
        cls.done = neyman("run", "study.toml", "--no-figures", cwd=cls.folder)

    def diagnose(self, *arguments, study="study.toml"):
        return neyman("diagnose", study, *arguments, cwd=self.folder)

    def test_the_run(self):
        self.assertEqual((self.done.returncode, self.done.stderr), (0, ""))
        results = read_json(self.folder / "out" / "results.json")
        self.assertLess(abs(results["fit"]["parameters"]["alpha"]["estimate"] - 0.3), 0.5)
        self.assertIn("verdict", self.done.stdout)
        checks = ["normalisation", "reliability", "closure"]
        self.assertEqual([d["name"] for d in results["diagnostics"]],
                         checks + [f"{name}:wide" for name in checks])

    def test_the_model_gives_the_runs_checks(self):
        done = self.diagnose("--model", "out/model.h5", "--out", "checks", "--no-figures")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        first, second = (read_json(self.folder / o / "results.json")["diagnostics"]
                         for o in ("out", "checks"))
        self.assertEqual(first, second)
        for check in first:
            self.assertRegex(done.stdout, rf"(?m)^{check['name']} +{check['verdict']}\b")
        self.assertEqual(self.diagnose("--quiet").stdout, "")

    def test_a_wrong_ratio_fails(self):
        """A model that was trained with another mean is told from the right one."""
        self.write("other.toml", NORMAL_STUDY.replace('mean = "alpha"', 'mean = "2 * alpha"'))
        done = self.diagnose("--model", "out/model.h5", "--at", "alpha=0.9,beta=1",
                             "--events", "5000", study="other.toml")
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        self.assertIn("fail", done.stdout)

    def test_points_that_cannot_be_used(self):
        for text, word in (("alpha=0.9", "beta is missing"), ("alpha=9,beta=1", "between -1 and 1"),
                           ("alpha=x,beta=1", "'x'"), ("alpah=1,beta=1", "did you mean 'alpha'"),
                           ("alpha", "must be a number")):
            done = self.diagnose("--at", text)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("--at", done.stderr)
            self.assertIn(word, done.stderr)

    def test_models_that_cannot_be_used(self):
        self.fails(self.diagnose("--model", "nowhere.h5"), "nowhere.h5")
        self.write("wide.toml", NORMAL_STUDY.replace("[-1, 1]", "[-2, 1]"))
        self.fails(self.diagnose("--model", "out/model.h5", study="wide.toml"),
                   "alpha in [-2, 1]", "another study")


# ------------------------------------------------------------------------------ interrupt

class Interrupt(Folder):
    """Ctrl-C. A busy machine makes any wait long, so processor seconds count, on one thread."""

    # Each study is long in another stage.
    LONG = {
        "train": SMALL_STUDY.replace("samples = 2000", "samples = 3000000").replace(
            '"logistic"\n', '"mlp"\nepochs = 1000\n'),
        "forest": SMALL_STUDY.replace("samples = 2000", "samples = 1000000").replace(
            '"logistic"\n', '"random-forest"\n'),
        "ensemble": SMALL_STUDY.replace(
            "[ensemble]\ndatasets = 20\nevents = 200",
            "[ensemble]\ndatasets = 100000\nevents = 20000"),
        "test": SMALL_STUDY.replace(
            "alternative = { gamma = 0.3 }\ndatasets = 20",
            "alternative = { gamma = 0.3 }\ndatasets = 100000").replace(
            "events = 300", "events = 20000"),
    }

    def cpu_seconds(self, process):
        fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def test_stops_within_a_second(self):
        for stage, study in self.LONG.items():
            with self.subTest(stage=stage):
                self.write("study.toml", study)
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                process = subprocess.Popen(
                    [program.path, "run", "study.toml", "--threads", "1", "--out", "out"],
                    cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                deadline = time.monotonic() + 60
                while self.cpu_seconds(process) < 0.7 and time.monotonic() < deadline:
                    self.assertIsNone(process.poll(), "it ended before it could be interrupted")
                    time.sleep(0.02)
                spent = self.cpu_seconds(process)
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=60)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                total = (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
                self.assertEqual(process.returncode, 130)
                self.assertIn("interrupted", err)
                self.assertIn("\n  neyman run study.toml --out out --threads 1\n", err)
                self.assertLess(total - spent, 1.0)
                kept = files_in(self.folder / "out")
                self.assertEqual([f for f in kept if not re.fullmatch(HELD, f)], [])
                # Whatever was finished is kept, and goes on from there.
                finished = re.findall(r"(?m)^([a-z]+)(?:: ([a-z]+))? ", out)
                self.assertEqual(len(finished), len(kept))
                if finished:
                    again = neyman("run", "study.toml", "--threads", 1, "--out", "out", "--until",
                                   finished[-1][0] if stage == "train" else "simulate",
                                   cwd=self.folder)
                    self.assertIn("kept", again.stdout)
                shutil.rmtree(self.folder / "out")


# --------------------------------------------------------------------------------- stages

HELD = r"stages/[a-z.]+-[0-9a-f]{16}\.h5"

# Each with a few figures, and with stages that take about as long as these.
RESUMED = {
    "decomposed": SMALL_STUDY[:SMALL_STUDY.index("[compare]")].replace(
        "samples = 2000", "samples = 20000").replace(
        'kind = "logistic"', 'kind = "mlp"\nepochs = 2').replace(
        '"sigmoid"\nreplicas = 10', '"histogram"\nreplicas = 20').replace(
        "events = 300", "events = 3000").replace(
        "[diagnostics]\nevents = 500", '[diagnostics]\nevents = 50000\nwhich = ["closure"]').replace(
        "datasets = 20\n", "datasets = 200\n"),
    "parameterized": NORMAL_STUDY.replace(
        'which = ["normalisation", "reliability", "closure"]', 'which = ["closure"]').replace(
        "events = 1000", "events = 50000") + """
[inference]
contours = [["alpha", "beta"]]
surface = 41
hypotheses = [{ fixed = { alpha = 0 }, datasets = 1000 }]

[coverage]
datasets = 500
critical_datasets = 500
""",
}


def stage_lines(text):
    """What became of each stage, by name: "kept", a time, or why it was skipped."""
    lines = {}
    for line in text.split("\n\n")[0].splitlines():
        match = re.fullmatch(r"([a-z]+(?:: [a-z]+)?) +(.*)", line)
        if match:
            lines[match[1]] = match[2]
    return lines


class Stages(Folder):
    def run_study(self, *arguments, out="out"):
        return neyman("run", "study.toml", "--no-figures", "--out", out, *arguments,
                      cwd=self.folder)

    def done(self, *arguments, **named):
        """The stages that a run does, not those that it keeps or skips."""
        done = self.run_study(*arguments, **named)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stderr)
        return [name for name, state in stage_lines(done.stdout).items()
                if state != "kept" and not state.startswith("skipped")]

    def test_a_second_run_does_only_what_changed(self):
        self.write("study.toml", SMALL_STUDY)
        steps = ["simulate", "train", "calibrate", "fit", "fit: recovery", "toys: test",
                 "toys: ensemble", "toys: compare", "diagnose", "report"]
        first = self.run_study(out="again")
        self.assertEqual(list(stage_lines(first.stdout)), steps)
        self.assertNotIn("kept", first.stdout)
        timing = read_json(self.folder / "again" / "results.json")["timing"]
        self.assertEqual(self.done(out="again"), [])
        self.write("study.toml", SMALL_STUDY + '[report]\ntitle = "Mine"\n')
        self.assertEqual(self.done(out="again"), ["report"])
        results = read_json(self.folder / "again" / "results.json")
        self.assertIn("Mine", (self.folder / "again" / "report.html").read_text())
        # A stage that is kept took what it took.
        self.assertEqual(results["timing"]["train"], timing["train"])
        self.assertEqual(self.done("--from", "toys", out="again"), steps[5:])
        self.assertEqual(self.done("--from", "toys", "--until", "toys", out="again"), steps[5:8])
        self.assertEqual(self.done("--fresh", "--until", "train", out="again"), steps[:2])
        self.assertEqual(self.done(out="again"), steps[2:])

    def test_until_says_how_to_go_on(self):
        self.write("study.toml", SMALL_STUDY)
        done = self.run_study("--until", "fit", "--seed", 5, out="my results")
        self.assertEqual(done.returncode, 0)
        self.assertEqual([f for f in files_in(self.folder / "my results")
                          if not re.fullmatch(HELD, f)], [])
        command = done.stdout.split("To go on:\n")[1].splitlines()[0].strip()
        self.assertEqual(command,
                         "neyman run study.toml --out 'my results' --seed 5 --no-figures")

    def test_damage_is_told_and_mended(self):
        self.write("study.toml", SMALL_STUDY)
        self.done(out="damaged")
        before = read_json(self.folder / "damaged" / "results.json")
        train = next((self.folder / "damaged" / "stages").glob("train-*.h5"))
        whole = train.read_bytes()
        train.write_bytes(whole[:-1])
        for quiet in ((), ("--quiet",)):
            train.write_bytes(whole[:-1])
            done = self.run_study(*quiet, out="damaged")
            self.assertEqual(done.returncode, 0)
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertIn(f"{train.relative_to(self.folder)}: is truncated", done.stderr)
            self.assertIn("train is done again", done.stderr)
            self.assertEqual(train.read_bytes()[512:520], whole[512:520])
        after = read_json(self.folder / "damaged" / "results.json")
        self.assertEqual(before, after)

    def test_two_at_once(self):
        self.write("study.toml", Interrupt.LONG["ensemble"])
        first = subprocess.Popen([program.path, "run", "study.toml", "--out", "shared"],
                                 cwd=self.folder, stdout=subprocess.PIPE, text=True)
        self.assertIn("simulate", first.stdout.readline())
        second = self.run_study(out="shared")
        first.kill()
        first.communicate()
        self.fails(second, "shared", "another run is at work")
        # The lock ends with the process, however that ends.
        self.assertEqual(self.run_study("--until", "simulate", out="shared").returncode, 0)

    def unharmed(self, out):
        """Nothing is half written."""
        names = files_in(self.folder / out)
        self.assertEqual([n for n in names if not re.fullmatch(
            HELD + r"|results\.json|report\.html|run\.log|model\.h5", n)], [])

    def limited(self, limit, out):
        """A run in which no file can become larger than so many bytes."""
        def lower():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        return subprocess.run([program.path, "run", "study.toml", "--no-figures", "--out", out],
                              cwd=self.folder, capture_output=True, text=True, timeout=250,
                              preexec_fn=lower, restore_signals=False)

    def test_file_that_cannot_be_written(self):
        self.write("study.toml", SMALL_STUDY)
        self.done(out="whole")
        expected = read_json(self.folder / "whole" / "results.json")
        sizes = sorted(p.stat().st_size for p in (self.folder / "whole").rglob("*.h5"))
        for limit in (100, sizes[0] + 1, sizes[len(sizes) // 2], sizes[-1] - 1):
            with self.subTest(limit=limit):
                done = self.limited(limit, "limited")
                self.assertEqual(done.returncode, 1)
                self.assertIn("cannot be written: File too large", done.stderr)
                self.assertIn("\n  neyman run study.toml --out limited --no-figures\n", done.stderr)
                self.unharmed("limited")
        kept = len(files_in(self.folder / "limited"))
        self.assertGreater(kept, 0)
        self.done(out="limited")
        found = read_json(self.folder / "limited" / "results.json")
        for results in (expected, found):
            del results["timing"]
        self.assertEqual(found, expected)

    def test_full_disk(self):
        self.write("study.toml", SMALL_STUDY)
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", disk],
                                 capture_output=True, text=True) if os.geteuid() == 0 else None
        if mounted is None or mounted.returncode != 0:
            self.skipTest("this machine lets nobody mount a small disk: "
                          + (mounted.stderr.strip() if mounted else "not root"))
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        done = self.run_study(out="disk/out")
        self.assertEqual(done.returncode, 1)
        self.assertIn("No space left on device", done.stderr)
        self.unharmed("disk/out")
        kept = len(files_in(disk))
        self.assertGreater(kept, 0)
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        again = self.run_study(out="disk/out")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(again.stdout.count("kept\n"), kept)


class Killed(Folder):
    """A run that is killed at any moment goes on, and ends with the same results to the bit."""

    KILLS = 25  # of each kind of study

    def start(self, out):
        return subprocess.Popen([program.path, "run", "study.toml", "--out", out], cwd=self.folder,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def outputs(self, out):
        """All that must be the same; a PDF holds the time when it was made."""
        folder = self.folder / out
        files = {n: (folder / n).read_bytes() for n in files_in(folder)
                 if n.startswith("figures/") and not n.endswith(".pdf") or n == "model.h5"}
        results = read_json(folder / "results.json")
        for volatile in ("timing", "command"):
            del results[volatile]
        return files, results

    def kept(self, out):
        return len([n for n in files_in(self.folder / out) if re.fullmatch(HELD, n)])

    def kill_at(self, kept, delay):
        """Starts the run and kills it once so many steps are kept, and a moment later.

        Returns how many steps are kept then, or nothing where the run ended before.
        """
        process = self.start("out")
        while process.poll() is None and self.kept("out") < kept:
            time.sleep(0.002)
        try:
            _, errors = process.communicate(timeout=delay)
            self.assertEqual((process.returncode, errors), (0, ""))
            return None
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            # Between the time limit and the kill it may have ended by itself.
            return self.kept("out") if process.returncode == -signal.SIGKILL else None

    def check_ends_the_same(self, study):
        self.write("study.toml", RESUMED[study])
        begin = time.monotonic()
        process = self.start(f"whole-{study}")
        self.assertEqual((process.communicate(timeout=250), process.returncode), ((None, ""), 0))
        steps = self.kept(f"whole-{study}")
        # Long against starting the program, and enough to get beyond the step that was waited for.
        longest = 2 * (time.monotonic() - begin) / steps
        expected = self.outputs(f"whole-{study}")
        names = [re.sub("[0-9a-f]{16}", "", n) for n in files_in(self.folder / f"whole-{study}")]
        moments = random.Random(f"kill {study}")
        kills, reached = 0, set()
        while kills < self.KILLS:
            # One run, killed several times on its way; each step is waited for in one of them.
            shutil.rmtree(self.folder / "out", ignore_errors=True)
            waited = sorted([*range(steps), *moments.choices(range(steps), k=3)])
            for step in waited[:self.KILLS - kills]:
                # Half of the kills come while the step's file has just been put in its place.
                delay = longest * moments.random() if moments.random() < 0.5 else 0.0
                held = self.kill_at(step, delay)
                if held is None:
                    break
                kills += 1
                reached.add(held)
            process = self.start("out")
            _, errors = process.communicate(timeout=250)
            self.assertEqual((process.returncode, errors), (0, ""))
            files, results = self.outputs("out")
            self.assertEqual(results, expected[1])
            self.assertEqual([n for n in files if files[n] != expected[0][n]], [])
            self.assertEqual([re.sub("[0-9a-f]{16}", "", n) for n in files_in(self.folder / "out")],
                             names)
        self.assertGreaterEqual(len(reached), 4, "the kills were not spread over the stages")

    def test_decomposed(self):
        self.check_ends_the_same("decomposed")

    def test_parameterized(self):
        self.check_ends_the_same("parameterized")


def main():
    parser = program.parser()
    parser.add_argument("--regenerate", action="store_true", help="write broken/*.expected anew")
    arguments = program.start(parser)
    if arguments.regenerate:
        return regenerate()
    program.run(arguments)


if __name__ == "__main__":
    main()
