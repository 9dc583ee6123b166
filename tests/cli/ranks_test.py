"""Runs that several processes share: under mpirun, and as parts that `neyman merge` puts together.

    python3 ranks_test.py --neyman build/cli/neyman [Ranks | Lost | Parts]

Without mpirun, or where neyman was built without MPI, the groups that need it are skipped (77).
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import program
from cli_test import MEASUREMENT_STUDY, NORMAL_STUDY, SMALL_STUDY
from program import neyman

MPIRUN = shutil.which("mpirun")
# As many processes as are asked for, on however few cores, by whoever runs the test.
LAUNCH = [MPIRUN, "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "--quiet"]

PARAMETERIZED = NORMAL_STUDY + """
[inference]
contours = [["alpha", "beta"]]
surface = 15
hypotheses = [{ fixed = { alpha = 0 }, datasets = 40 }, { fixed = { beta = 1 }, datasets = 40 }]

[coverage]
datasets = 30
critical_datasets = 40
"""

# Half a normal distribution, in another program; in one of twelve runs it crashes.
SIMULATOR = """
import random, sys
mean, n, seed = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
random.seed(seed)
if seed % 12 == 0:
    sys.exit(f"seed {seed} is none of mine")
print("x")
for _ in range(n):
    print(random.gauss(mean, 1))
"""
COMMAND = f"""
[study]
name = "command"
seed = 4

[parameters]
mu = {{ range = [-1, 1], truth = 0.2 }}

[simulator]
kind = "command"
command = ["{sys.executable}", "simulate.py", "{{mu}}", "{{n}}", "{{seed}}"]
events_per_run = 100

[training]
samples = 3000

[classifier]
kind = "separable"
hidden = []
degree = 2

[data]
events = 200

[diagnostics]
events = 500

[ensemble]
datasets = 8
events = 100
at = {{ mu = 0.2 }}
"""


def ranks(count, *arguments, **named):
    return subprocess.run([*LAUNCH, "-n", str(count), program.path, *map(str, arguments)], text=True,
                          timeout=250, stdin=subprocess.DEVNULL, capture_output=True, **named)


class Folder(program.Folder):
    maxDiff = None

    def setUp(self):
        self.write("simulate.py", SIMULATOR)
        for name, text in {"decomposed": SMALL_STUDY, "parameterized": PARAMETERIZED,
                           "command": COMMAND, "measurement": MEASUREMENT_STUDY}.items():
            self.write(f"{name}.toml", text)

    def results(self, out):
        results = json.loads((self.folder / out / "results.json").read_text())
        for volatile in ("timing", "threads", "command"):
            del results[volatile]
        return results

    def alone(self, study):
        """The results of one process, which all others must equal."""
        out = f"alone-{study}"
        if not (self.folder / out / "results.json").exists():
            done = neyman("run", f"{study}.toml", "--out", out, "--no-figures", cwd=self.folder)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        return self.results(out)


class Ranks(Folder):
    def same(self, study, counts):
        expected = self.alone(study)
        for count in counts:
            with self.subTest(study=study, ranks=count):
                out = f"{study}-{count}"
                done = ranks(count, "run", f"{study}.toml", "--out", out, "--no-figures",
                             cwd=self.folder)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(done.stdout.count("Report "), 1, done.stdout)
                self.assertEqual(self.results(out), expected)
                model = self.folder / out / "model.h5"
                self.assertEqual(model.read_bytes(),
                                 (self.folder / f"alone-{study}" / "model.h5").read_bytes())

    def test_decomposed(self):
        self.same("decomposed", (2, 3, 4, 7))

    def test_parameterized(self):
        self.same("parameterized", (2, 3, 4, 7))

    def test_measurement(self):
        self.same("measurement", (2, 3))
        self.assertEqual(self.alone("measurement")["measurement"]["toy_limit"]["toys"], 130)

    def test_one_network_by_all_ranks(self):
        """More ranks than networks, and large batches: all train each network together."""
        mlp = 'kind = "mlp"\nepochs = 3\nhidden = [16]\nbatch_size = 16384'
        self.write("batches.toml", SMALL_STUDY.replace('kind = "logistic"', mlp, 1).replace(
            "samples = 2000", "samples = 40000"))
        text = (self.folder / "parameterized.toml").read_text()
        own = text[text.index("[classifier]"):text.index("[data]")]
        self.write("across.toml", text.replace(own, f"[classifier]\n{mlp}\n\n"))
        self.same("batches", (2, 3, 4, 7))
        self.same("across", (3,))

    def test_command(self):
        """Runs of a program that fail are counted once, whoever did them."""
        self.same("command", (3,))
        results = self.alone("command")
        self.assertTrue([w for w in results["warnings"] if "failed in" in w], results["warnings"])

    def test_other_classifiers(self):
        """A classifier with θ as input, calibrated smoothly and at nodes."""
        text = (self.folder / "parameterized.toml").read_text()
        before = text[text.index("[classifier]"):text.index("[data]")]
        mlp = '[classifier]\nkind = "mlp"\nepochs = 2\nhidden = [16]\n\n'
        self.write("smooth.toml", text.replace(before, mlp))
        self.write("nodes.toml", text.replace(
            before, mlp + '[calibration]\nacross = "interpolate"\nevents = 5000\n\n'))
        for study in ("smooth", "nodes"):
            self.same(study, (3,))

    def test_kept_stages(self):
        """A run goes on with what another number of ranks has left, and every stage is told once."""
        self.alone("decomposed")
        shutil.copytree(self.folder / "alone-decomposed", self.folder / "again")
        done = ranks(3, "run", "decomposed.toml", "--out", "again", "--no-figures", "--from", "toys",
                     cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        states = [line.split()[-1] for line in done.stdout.split("\n\n")[0].splitlines()]
        self.assertEqual(states[:4], ["kept"] * 4, done.stdout)
        self.assertEqual(self.results("again"), self.alone("decomposed"))

    def test_errors_are_told_once(self):
        self.write("broken.toml", SMALL_STUDY.replace("samples = 2000", "samples = -1"))
        done = ranks(3, "run", "broken.toml", cwd=self.folder)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("training.samples"), 1, done.stderr)
        (self.folder / "file").write_text("")
        done = ranks(3, "run", "decomposed.toml", "--out", "file", cwd=self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count("Choose another folder"), 1, done.stderr)
        done = ranks(2, "run", "decomposed.toml", "--part", "1/2", cwd=self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("not under mpirun", done.stderr)
        done = ranks(2, "run", "decomposed.toml", "--json", "--out", "json", "--no-figures",
                     cwd=self.folder)
        self.assertEqual(json.loads(done.stdout)["exit_status"], 0)


    def test_toys_of_a_limit(self):
        workspace = Path(__file__).resolve().parent.parent / "measurements" / "data" / "counting.json"
        arguments = ("limit", workspace, "--toys", "200", "--json")
        alone = neyman(*arguments, cwd=self.folder)
        together = ranks(3, *arguments, cwd=self.folder)
        self.assertEqual((together.returncode, together.stderr), (0, ""))
        self.assertEqual(together.stdout, alone.stdout)
        done = ranks(2, *arguments[:-1], "--part", "1/2", cwd=self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count("not under mpirun"), 1, done.stderr)

    def test_a_rank_with_another_study_ends_the_run(self):
        """What only one rank comes to, it says itself, and ends the others."""
        self.write("other.toml", SMALL_STUDY.replace("seed = 1", "seed = 2"))
        one = ["-n", "1", program.path, "run", "--out", "mixed", "--no-figures"]
        done = subprocess.run([*LAUNCH, *one, "decomposed.toml", ":", *one, "other.toml"],
                              cwd=self.folder, text=True, timeout=60, stdin=subprocess.DEVNULL,
                              capture_output=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("rank 1: its study, files or neyman are not those of rank 0", done.stderr)
        self.assertFalse((self.folder / "mixed" / "results.json").exists())


class Lost(Folder):
    def children(self, process):
        """The processes of neyman that mpirun has started."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if parent == process.pid and (folder / "comm").read_text().strip() == "neyman":
                    environment = (folder / "environ").read_bytes().split(b"\0")
                    rank = [e.split(b"=")[1] for e in environment
                            if e.startswith(b"OMPI_COMM_WORLD_RANK=")]
                    found.append((int(rank[0]), int(folder.name)))
            except (OSError, IndexError):
                continue  # it has ended
        return dict(found)

    def test_a_rank_that_dies_ends_the_run(self):
        study = SMALL_STUDY.replace("[ensemble]\ndatasets = 20", "[ensemble]\ndatasets = 200000")
        self.write("long.toml", study)
        arguments = ["run", "long.toml", "--out", "out", "--no-figures"]
        process = subprocess.Popen([*LAUNCH[:-1], "-n", "3", program.path, *arguments],
                                   cwd=self.folder, text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        stages = self.folder / "out" / "stages"
        while process.poll() is None and not list(stages.glob("toys.test-*.h5")):
            time.sleep(0.01)
        time.sleep(0.3)  # into the ensemble
        os.kill(self.children(process)[1], signal.SIGKILL)
        output, errors = process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("rank 1", errors)
        self.assertIn("Killed", errors)
        self.assertNotIn("Report", output)
        self.assertEqual(len(list(stages.glob("toys.ensemble-*.h5"))), 0)
        # What was written is kept; the ensemble is not waited for again.
        self.write("long.toml", SMALL_STUDY)
        done = ranks(2, *arguments, cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        states = [line.split()[-1] for line in done.stdout.split("\n\n")[0].splitlines()]
        self.assertEqual(states[:5], ["kept"] * 5, done.stdout)
        self.assertEqual(self.results("out"), self.alone("decomposed"))


class Parts(Folder):
    def part(self, study, number, of, *arguments, out=None):
        return neyman("run", f"{study}.toml", "--out", out or f"parts-{study}", "--part",
                      f"{number}/{of}", *arguments, cwd=self.folder)

    def merge(self, study, *arguments, out=None):
        return neyman("merge", f"{study}.toml", "--out", out or f"parts-{study}", "--no-figures",
                      *arguments, cwd=self.folder)

    def refused(self, done, *words):
        self.assertEqual(done.returncode, 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertNotIn("train", done.stdout.replace("train           kept", ""))

    def test_the_same_as_one_job(self):
        """Whatever was learned before the parts, and wherever they were done."""
        for study, of, first in (("decomposed", 3, "fit"), ("parameterized", 2, "train"),
                                 ("measurement", 3, "train"), ("command", 2, None)):
            with self.subTest(study=study):
                out = f"parts-{study}"
                if first:
                    done = neyman("run", f"{study}.toml", "--out", out, "--until", first,
                                  cwd=self.folder)
                    self.assertEqual(done.returncode, 0, done.stderr)
                before = sorted(self.folder.glob(f"{out}/stages/*"))
                for number in range(of, 0, -1):
                    done = self.part(study, number, of)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    self.assertIn(f"part-{number}-of-{of}.h5", done.stdout)
                    self.assertIn(f"neyman merge {study}.toml --out {out}", done.stdout)
                # Jobs are guests in the folder.
                self.assertEqual(sorted(self.folder.glob(f"{out}/stages/*")), before)
                done = self.merge(study)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(self.results(out), self.alone(study))

    def test_more_parts_than_tasks(self):
        text = SMALL_STUDY.replace("datasets = 20", "datasets = 2")
        self.write("few.toml", text)
        for number in range(1, 6):
            self.assertEqual(self.part("few", number, 5).returncode, 0)
        done = self.merge("few", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(json.loads(done.stdout)["finished"])
        self.assertEqual(self.results("parts-few"), self.alone("few"))

    def test_wrong_combinations_are_refused(self):
        out = self.folder / "wrong"
        for number, of in ((1, 2), (2, 2), (1, 3)):
            self.assertEqual(self.part("decomposed", number, of, out="wrong").returncode, 0)
        one, two, third = (out / "parts" / f"part-{n}.h5" for n in ("1-of-2", "2-of-2", "1-of-3"))
        merge = lambda *files, **named: self.merge("decomposed", *files, out="wrong", **named)
        self.refused(merge(one), "of 2 parts one is missing: 2")
        self.refused(merge(one, two, one), "is part 1, and so is")
        self.refused(merge(one, third), "is part 1 of 3, but", "is one of 2")
        self.refused(merge(one, two, "--seed", 9), "another study, seed, data or neyman")
        self.refused(merge(one, two, "--quick"), "another study, seed, data or neyman")
        self.refused(merge(one, out / "nothing.h5"), "nothing.h5")
        whole = two.read_bytes()
        two.write_bytes(whole[:-7])
        self.refused(merge(one, two), "part-2-of-2.h5", "truncated")
        damaged = bytearray(whole)
        damaged[-200] ^= 1
        two.write_bytes(damaged)
        self.refused(merge(one, two), "part-2-of-2.h5")
        two.write_bytes(whole)
        # What the parts depend on has changed since.
        self.assertEqual(neyman("run", "decomposed.toml", "--out", "wrong", "--until", "fit",
                                cwd=self.folder).returncode, 0)
        changed = SMALL_STUDY.replace("[ensemble]\ndatasets = 20", "[ensemble]\ndatasets = 21")
        self.write("decomposed.toml", changed)
        self.refused(merge(one, two), "'toys.ensemble' was made with another study")
        self.write("decomposed.toml", SMALL_STUDY)
        self.refused(self.merge("decomposed", out="empty"), "there are no parts",
                     "neyman run STUDY --part")
        self.assertEqual(merge(one, two).returncode, 0)

    def test_what_cannot_be_done_in_parts(self):
        self.write("plain.toml", SMALL_STUDY[:SMALL_STUDY.index("[inference.test]")])
        done = self.part("plain", 1, 2)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no pseudo-experiments and no contours", done.stderr)
        for text in ("0/2", "3/2", "1", "a/b", "1/2/3"):
            done = self.part_text(text)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("is no part; the third of ten is 3/10", done.stderr)
        done = self.part("decomposed", 1, 2, "--from", "toys")
        self.assertEqual(done.returncode, 2)

    def part_text(self, text):
        return neyman("run", "decomposed.toml", "--part", text, cwd=self.folder)


def main():
    arguments = program.start(program.parser())
    needs_mpi = set(arguments.groups or ("Ranks", "Lost")) & {"Ranks", "Lost"}
    if needs_mpi and (MPIRUN is None or
                      not (Path(program.path).parent.parent / "src" / "libneyman_mpi.so").exists()):
        print("skipped: there is no mpirun, or neyman was built without MPI")
        return 77
    return program.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
