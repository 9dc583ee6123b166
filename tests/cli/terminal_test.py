"""The command line on a terminal, in scripts and in shells: progress, --json, completion, advice.

    python3 terminal_test.py --neyman build/cli/neyman              all groups
    python3 terminal_test.py --neyman build/cli/neyman Completion   one group
"""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
import unicodedata
from pathlib import Path

import program
from cli_test import NORMAL_STUDY, SMALL_STUDY, stage_lines

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"


def columns(line):
    """The columns that a line takes on a terminal."""
    return sum(0 if unicodedata.combining(c) else 1 for c in line)


class Folder(program.Folder):
    def neyman(self, *arguments, **named):
        return program.neyman(*arguments, cwd=self.folder, **named)

    def on_terminal(self, *arguments, environment=None, width=80, until=None):
        """Runs on a terminal of its own; what it drew, and the exit status.

        Where the pattern `until` is found in what it drew, Ctrl-C is pressed."""
        try:
            controller, terminal = pty.openpty()
        except OSError as error:
            self.skipTest(f"this machine has no terminals: {error}")
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
        process = subprocess.Popen(
            [program.path, *map(str, arguments)], cwd=self.folder, stdin=terminal, stdout=terminal,
            stderr=terminal, start_new_session=True,
            env={**os.environ, "TERM": "xterm", **(environment or {})})
        os.close(terminal)
        drawn, deadline = b"", time.monotonic() + 250
        while time.monotonic() < deadline:
            if not select.select([controller], [], [], 1.0)[0]:
                continue
            try:
                more = os.read(controller, 1 << 16)
            except OSError:  # Linux: nobody has the other end any more
                break
            if not more:
                break
            drawn += more
            if until and re.search(until, drawn.decode(errors="replace")):
                process.send_signal(signal.SIGINT)
                until = None
        os.close(controller)
        return drawn.decode(), process.wait(timeout=60)


# -------------------------------------------------------------------------------- terminal

# Long enough for a line of progress, however fast the machine is: it is stopped once that is seen.
LONG = SMALL_STUDY.replace("samples = 2000", "samples = 1000000").replace(
    '"logistic"\n', '"mlp"\nepochs = 1000\n')


class Progress(Folder):
    def test_time_left_and_loss_while_training(self):
        self.write("study.toml", LONG)
        drawn, status = self.on_terminal("run", "study.toml", "--out", "out", until=r" left +loss 0\.")
        self.assertEqual(status, 130, drawn)
        line = [part for part in re.split(r"\r\x1b\[K", drawn) if " left " in part and "loss 0." in part][0]
        self.assertRegex(line, r"^train +[━╸─]+ +\d+ %  .* left +loss 0\.\d{4}")
        self.assertIn("To go on:\r\n  neyman run study.toml --out out", drawn)
        for part in re.split(r"\r\x1b\[K|\r\n", drawn):
            self.assertLess(columns(part), 100)

    def test_events_a_second_while_simulating(self):
        self.write("simulate.py", "import sys, time, random\n"
                   "time.sleep(0.1)\nn = int(sys.argv[2])\n"
                   "print('x')\nfor i in range(n): print(random.gauss(float(sys.argv[1]), 1))\n")
        self.write("command.toml", NORMAL_STUDY.replace(
            'kind = "normal"\nmean = "alpha"\nsigma = "beta"',
            'kind = "command"\ncommand = ["python3", "simulate.py", "{alpha}", "{n}", "{beta}", '
            '"{seed}"]\nevents_per_run = 10\njobs = 2').replace(
            "samples = 5000", "samples = 50000"))
        drawn, status = self.on_terminal("run", "command.toml", "--out", "slow",
                                         until=r" left .* events/s")
        self.assertEqual(status, 130, drawn)
        self.assertRegex(drawn, r"simulate +[━╸─]+ +\d+ %  .* left +[\d.]+ k? ?events/s")

    def test_a_line_for_each_stage_remains(self):
        self.write("small.toml", SMALL_STUDY)
        drawn, status = self.on_terminal("run", "small.toml", "--no-figures", "--out", "small")
        self.assertEqual(status, 0, drawn)
        # What was drawn and taken away again does not remain.
        text = re.sub(r"[^\n]*\r\x1b\[K", "", drawn.replace("\r\n", "\n"))
        text = re.sub(r"\x1b\[\d*m", "", text)
        self.assertNotIn("\r", text)
        lines = stage_lines(text)
        self.assertRegex(lines["train"], r"^[\d.]+ m?s +loss 0\.\d{4}$")
        self.assertRegex(lines["simulate"], r"^[\d.]+ m?s +[\d.]+ [kMG]? ?events/s$")
        self.assertRegex(lines["calibrate"], r"events/s$")
        self.assertRegex(lines["fit"], r"evaluations \d+$")
        self.assertRegex(lines["toys: test"], r"datasets/s$")
        self.assertRegex(lines["toys: ensemble"], r"fits/s$")
        self.assertRegex(lines["diagnose"], r"(points|checks|events)/s$")
        for line in text.splitlines():
            self.assertLessEqual(columns(line), 80, line)

    def test_plain_without_a_terminal(self):
        self.write("small.toml", SMALL_STUDY)
        done = self.neyman("run", "small.toml", "--no-figures", "--out", "plain")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotRegex(done.stdout, r"[\x00-\x09\x0b-\x1f\x7f]")
        self.assertRegex(stage_lines(done.stdout)["train"], r"loss 0\.\d{4}$")
        for line in done.stdout.splitlines():
            self.assertLessEqual(columns(line), 80, line)

    def test_quiet_no_color_and_dumb_terminals(self):
        self.write("small.toml", SMALL_STUDY)
        run = ("run", "small.toml", "--no-figures", "--fresh", "--out", "quiet")
        self.assertEqual(self.on_terminal(*run, "--quiet"), ("", 0))
        drawn, status = self.on_terminal(*run, environment={"NO_COLOR": "1"})
        self.assertEqual(status, 0)
        self.assertNotIn("m", re.sub(r"[^m]", "", "".join(re.findall(r"\x1b\[\d*(.)", drawn))))
        drawn, status = self.on_terminal(*run, environment={"TERM": "dumb"})
        self.assertEqual(status, 0)
        self.assertNotIn("\x1b", drawn)
        drawn, _ = self.on_terminal("run", "small.toml", "--no-figures", "--out", "quiet",
                                    environment={"NO_COLOR": ""})
        self.assertIn("\x1b[1m", drawn)


# ------------------------------------------------------------------------------------ JSON

class Json(Folder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.folder / "study.toml").write_text(SMALL_STUDY)
        (cls.folder / "events.csv").write_text("x\n" + "0.5\n1.5\n-0.5\n2.5\n" * 20)
        cls.run_done = subprocess.run([program.path, "run", "study.toml", "--no-figures", "--json"],
                                      cwd=cls.folder, text=True, capture_output=True, timeout=250)

    def answer(self, done, command, status=0):
        """The object that was printed, and nothing else anywhere."""
        self.assertEqual((done.returncode, done.stderr), (status, ""), done.stdout)

        def refuse(name):
            raise ValueError(f"{name} is not JSON")

        answer = json.loads(done.stdout, parse_constant=refuse)
        self.assertEqual(answer["schema"], "neyman.command/1")
        self.assertEqual(answer["command"], command)
        self.assertEqual(answer["exit_status"], status)
        self.assertEqual("error" in answer, status in (1, 2, 130))
        return answer

    def error(self, *arguments, status=1, **named):
        answer = self.answer(self.neyman(*arguments, "--json", **named), arguments[0], status)
        self.assertEqual(set(answer), {"schema", "command", "exit_status", "error"})
        return answer["error"]

    def test_run(self):
        answer = self.answer(self.run_done, "run")
        self.assertEqual((answer["folder"], answer["finished"]), ("out", True))
        self.assertEqual([s["stage"] for s in answer["stages"]],
                         ["simulate", "train", "calibrate", "fit", "fit", "toys", "toys", "toys",
                          "diagnose", "report"])
        self.assertTrue(all(s["state"] == "done" and s["seconds"] >= 0 for s in answer["stages"]))
        written = json.loads((self.folder / "out" / "results.json").read_text())
        self.assertEqual(answer["results"], written)
        again = self.answer(self.neyman("run", "study.toml", "--no-figures", "--json"), "run")
        self.assertEqual({s["state"] for s in again["stages"]}, {"kept"})
        part = self.answer(self.neyman("run", "study.toml", "--until", "fit", "--out", "part",
                                       "--json"), "run")
        self.assertFalse(part["finished"])
        self.assertNotIn("results", part)

    def test_damage_is_part_of_the_answer(self):
        self.neyman("run", "study.toml", "--no-figures", "--quiet", "--out", "damaged")
        train = next((self.folder / "damaged" / "stages").glob("train-*.h5"))
        train.write_bytes(train.read_bytes()[:-1])
        answer = self.answer(self.neyman("run", "study.toml", "--no-figures", "--out", "damaged",
                                         "--json"), "run")
        damaged = [s for s in answer["stages"] if s["state"] == "damaged"]
        self.assertEqual([s["stage"] for s in damaged], ["train"])
        self.assertIn("truncated", damaged[0]["message"])

    def test_fit_and_diagnose(self):
        fit = self.answer(self.neyman("fit", "out/model.h5", "--data", "events.csv", "--json"),
                          "fit")
        self.assertIn("gamma", fit["results"]["fit"]["parameters"])
        self.assertNotIn("folder", fit)
        fit = self.answer(self.neyman("fit", "out/model.h5", "--data", "events.csv", "--json",
                                      "--out", "fitted", "--no-figures"), "fit")
        self.assertEqual(fit["folder"], "fitted")
        done = self.neyman("diagnose", "study.toml", "--json")
        self.assertIn(done.returncode, (0, 4))
        checks = self.answer(done, "diagnose", done.returncode)["results"]["diagnostics"]
        self.assertIn("closure", [check["name"] for check in checks])

    def test_check(self):
        study = self.answer(self.neyman("check", "study.toml", "--json"), "check")["study"]
        self.assertEqual(study["name"], "small")
        self.assertEqual(study["parameters"], ["gamma"])
        self.assertEqual(study["simulated_events"], 2000)
        self.assertEqual(study["classifier"], "logistic")
        self.assertEqual(study["components"], ["background", "signal"])
        self.assertEqual(self.neyman("check", "study.toml", "--quiet").stdout, "")

    def test_examples(self):
        answer = self.answer(self.neyman("example", "--json"), "example")
        folders = sorted(p.parent.name for p in EXAMPLES.glob("*/study.toml"))
        self.assertEqual([e["name"] for e in answer["examples"]],
                         [f.split("_", 1)[1] for f in folders])
        made = self.answer(self.neyman("example", "plugin", "lib", "--json"), "example")
        self.assertEqual(made["folder"], "lib")
        self.assertEqual(made["next"], ["make -C lib", "neyman run lib/study.toml"])

    def test_errors(self):
        self.write("wrong.toml", SMALL_STUDY.replace("samples = 2000", "sampels = 2000\nfolds = x"))
        self.write("two.toml", SMALL_STUDY.replace("samples = 2000", "sampels = 2000").replace(
            "truth = 0.3", "truth = 3"))
        error = self.error("check", "two.toml", status=2)
        self.assertEqual(error["kind"], "study")
        self.assertEqual([(p["file"], p["key"]) for p in error["problems"]],
                         [("two.toml", "parameters.gamma.truth"), ("two.toml", "training.sampels")])
        self.assertTrue(all(p["line"] > 0 and p["message"] for p in error["problems"]))
        self.assertEqual(self.error("run", "two.toml", status=2), error)
        self.assertEqual(self.error("check", "nowhere.toml")["kind"], "file")
        self.assertEqual(self.error("example", "mixtur")["kind"], "argument")
        self.assertIn("model.h5", self.error("fit", "study.toml", "--data", "events.csv")["advice"])
        error = self.error("run", "study.toml", "--sede", "3", status=2)
        self.assertEqual(error["kind"], "command line")
        self.assertIn("--seed", error["message"])
        self.assertIn("is required", self.error("run", status=2)["message"])
        done = self.neyman("rnu", "--json")
        self.assertIn("'run'", self.answer(done, "", 2)["error"]["message"])

    def test_interrupted_says_how_to_go_on(self):
        self.write("long.toml", LONG)
        process = subprocess.Popen([program.path, "run", "long.toml", "--out", "long", "--json"],
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        deadline = time.monotonic() + 120
        while not list((self.folder / "long").glob("stages/simulate-*.h5")):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        done = subprocess.CompletedProcess([], process.returncode, out, err)
        error = self.answer(done, "run", 130)["error"]
        self.assertEqual(error["kind"], "interrupted")
        self.assertEqual(error["resume"], "neyman run long.toml --out long --json")


# ---------------------------------------------------------------------------------- advice

class Advice(Folder):
    """Errors say what to do next."""

    def advised(self, done, *words, status=1):
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.folder / "mine").mkdir()
        (cls.folder / "mine" / "study.toml").write_text(SMALL_STUDY)
        (cls.folder / "events.csv").write_text("x\n1\n2\n")

    def test_study_that_is_not_there(self):
        self.advised(self.neyman("run", "nowhere/study.toml"), "does not exist",
                     "neyman example mixture my-study")
        self.advised(self.neyman("run", "mine/studdy.toml"), "does not exist",
                     "Studies in mine: study.toml (did you mean 'study.toml'?)")
        self.advised(self.neyman("check", "mine"), "folder", "Studies in mine: study.toml")

    def test_models(self):
        self.advised(self.neyman("fit", "mine/study.toml", "--data", "events.csv"),
                     "is not an HDF5 file", "That is a study", "neyman run mine/study.toml")
        self.advised(self.neyman("fit", "nowhere.h5", "--data", "events.csv"), "does not exist",
                     "model.h5")
        self.write("bare/study.toml", SMALL_STUDY)
        self.advised(self.neyman("diagnose", "bare/study.toml"), "bare/out/model.h5",
                     "neyman run bare/study.toml", "--model")

    def test_columns_and_folders(self):
        self.neyman("run", "mine/study.toml", "--until", "report", "--quiet", "--no-figures")
        self.write("other.csv", "y\n1\n2\n")
        self.advised(self.neyman("fit", "mine/out/model.h5", "--data", "other.csv"),
                     "has the columns y, but must have x", "trained with the columns x")
        for command in (("run", "mine/study.toml"),
                        ("fit", "mine/out/model.h5", "--data", "events.csv"),
                        ("diagnose", "mine/study.toml")):
            self.advised(self.neyman(*command, "--out", "events.csv/out"), "events.csv/out",
                         "Choose another folder with --out.")
        self.advised(self.neyman("example", "mixture", "events.csv/new"), "events.csv/new",
                     "neyman example mixture FOLDER")

    def test_command_lines(self):
        self.advised(self.neyman(), "a subcommand is missing", "run, check", "neyman --help",
                     status=2)
        self.advised(self.neyman("run"), "study is required", "neyman run --help", status=2)
        self.advised(self.neyman("run", "a.toml", "--form", "fit"), "'--form' is not an option",
                     "did you mean '--from'?", "neyman run --help", status=2)
        self.advised(self.neyman("--sede"), "--sede", "neyman --help", status=2)
        self.advised(self.neyman("completion", "fish"), "fish", "bash", status=2)


# ------------------------------------------------------------------------------ completion

class Completion(Folder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name in ("study.toml", "other.toml", "model.h5", "events.csv", "notes.txt",
                     "with space.toml", "inner/deep.toml", "workspace.json", "part.toys"):
            path = cls.folder / name
            path.parent.mkdir(exist_ok=True)
            path.touch()
        (cls.folder / "bin").mkdir()
        (cls.folder / "bin" / "neyman").symlink_to(program.path)

    def bash(self, line):
        """What bash offers for the end of a line, with the printed script loaded."""
        script = """
            eval "$(neyman completion bash)"
            COMP_LINE=$1; COMP_POINT=${#1}
            # As readline cuts a line into words.
            read -r -a COMP_WORDS <<< "${1//=/ = }"
            [[ $1 == *' ' ]] && COMP_WORDS+=('')
            COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
            handler=$(complete -p neyman | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
            $handler neyman
            printf '%s\\n' "${COMPREPLY[@]}"
        """
        done = subprocess.run(["bash", "--norc", "--noprofile", "-c", script, "bash", line],
                              cwd=self.folder, text=True, capture_output=True, timeout=60,
                              env={**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 0, done.stderr)
        return sorted(word for word in done.stdout.splitlines() if word)

    def commands(self):
        text = self.neyman("--help").stdout
        return re.findall(r"(?m)^  ([a-z]+) {2,}[A-Z]", text.split("Subcommands:")[1])

    def test_bash_commands_and_options(self):
        self.assertEqual(self.bash("neyman "), sorted(self.commands()))
        self.assertEqual(self.bash("neyman ru"), ["run"])
        self.assertEqual(self.bash("neyman --ver"), ["--version"])
        for command in self.commands():
            options = set(re.findall(r"--[a-z][a-z-]*",
                                     re.sub(r"(?s)\n\n.*", "", self.neyman(command, "--help").stdout
                                            .split("Options:")[1])))
            offered = set(self.bash(f"neyman {command} --"))
            self.assertLessEqual(offered, options, command)
            self.assertIn("--help", offered)
        offered = self.bash("neyman run study.toml --")
        for option in ("--out", "--from", "--until", "--fresh", "--quick", "--json", "--quiet"):
            self.assertIn(option, offered)
        # What is there already is not offered again.
        self.assertNotIn("--fresh", self.bash("neyman run study.toml --fresh --"))
        self.assertEqual(self.bash("neyman nonsense "), [])

    def test_bash_values(self):
        stages = ["calibrate", "diagnose", "fit", "report", "simulate", "toys", "train"]
        self.assertEqual(self.bash("neyman run study.toml --from "), stages)
        self.assertEqual(self.bash("neyman run study.toml --until t"), ["toys", "train"])
        self.assertEqual(self.bash("neyman run study.toml --until=t"), ["toys", "train"])
        self.assertEqual(self.bash("neyman run study.toml --until="), stages)
        self.assertEqual(self.bash("neyman completion "), ["bash", "zsh"])
        names = sorted(p.parent.name.split("_", 1)[1] for p in EXAMPLES.glob("*/study.toml"))
        self.assertEqual(self.bash("neyman example "), names)
        self.assertEqual(self.bash("neyman example mul"), ["multidimensional"])
        self.assertIn("training", self.bash("neyman help tr"))

    def test_bash_files(self):
        studies = ["bin", "inner", "other.toml", "study.toml", "with space.toml"]
        self.assertEqual(self.bash("neyman run "), studies)
        self.assertEqual(self.bash("neyman check --json "), studies)
        self.assertEqual(self.bash("neyman check st"), ["study.toml"])
        self.assertEqual(self.bash("neyman check inner/"), ["inner/deep.toml"])
        self.assertEqual(self.bash("neyman fit "), ["bin", "inner", "model.h5"])
        parts = ["bin", "inner", "model.h5", "part.toys"]
        self.assertEqual(self.bash("neyman merge "), sorted([*studies, "workspace.json"]))
        self.assertEqual(self.bash("neyman merge study.toml "), parts)
        self.assertEqual(self.bash("neyman merge study.toml model.h5 "), parts)
        self.assertEqual(self.bash("neyman limit "), ["bin", "inner", "workspace.json"])
        self.assertEqual(self.bash("neyman diagnose study.toml --model m"), ["model.h5"])
        self.assertEqual(self.bash("neyman fit model.h5 --data "),
                         ["bin", "events.csv", "inner", "model.h5"])
        self.assertEqual(self.bash("neyman run study.toml --out "), ["bin", "inner"])
        self.assertEqual(self.bash("neyman run study.toml --seed "), [])

    def test_zsh(self):
        if shutil.which("zsh") is None:
            self.skipTest("zsh is not installed")
        (self.folder / "functions").mkdir(exist_ok=True)
        script = self.neyman("completion", "zsh").stdout
        (self.folder / "functions" / "_neyman").write_text(script)
        offered = self.zsh("neyman ")
        for command in self.commands():
            self.assertIn(command, offered)
        self.assertIn("run", self.zsh("neyman ru"))
        self.assertIn("calibrate", self.zsh("neyman run study.toml --from "))
        self.assertIn("--quick", self.zsh("neyman run study.toml --q"))
        files = self.zsh("neyman run ")
        for name in ("study.toml", "other.toml", "inner"):
            self.assertIn(name, files)
        self.assertNotIn("notes.txt", files)
        self.assertIn("multidimensional", self.zsh("neyman example mul"))

    def zsh(self, line):
        """What a zsh on a terminal shows after two tabs at the end of a line."""
        try:
            pid, controller = pty.fork()
        except OSError as error:
            self.skipTest(f"this machine has no terminals: {error}")
        if pid == 0:
            os.chdir(self.folder)
            os.environ.update(PATH=f"{self.folder}/bin:{os.environ['PATH']}", TERM="xterm",
                              PS1="ready>", ZDOTDIR=str(self.folder), LC_ALL="C.UTF-8")
            os.execlp("zsh", "zsh", "-f", "-i")
        fcntl.ioctl(controller, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
        seen = ""

        def wait_for(mark):
            nonlocal seen
            text, deadline = "", time.monotonic() + 60
            while mark not in text:
                self.assertLess(time.monotonic(), deadline, f"no {mark!r} in {seen + text!r}")
                if select.select([controller], [], [], 0.5)[0]:
                    text += os.read(controller, 1 << 16).decode(errors="replace")
            seen += text
            return text

        try:
            os.write(controller, b"PS1='ready>'; fpath=($PWD/functions $fpath); "
                                 b"autoload -Uz compinit && compinit -u -D; "
                                 b"zstyle ':completion:*' list-prompt ''; "
                                 b"LISTMAX=1000; unsetopt automenu; setopt autolist; "
                                 b"bindkey '^O' list-choices; "
                                 b"bindkey '^T' complete-word; "
                                 b"show() { print -r -- \"<<$BUFFER>>\" }; zle -N show; "
                                 b"bindkey '^Y' show; print set-up-''done\n")
            wait_for("set-up-done")
            os.write(controller, line.encode() + b"\x0f")  # list, without changing the line
            os.write(controller, b"\x14\x19")              # complete, and show what became of it
            return wait_for("<<neyman")
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(controller)


if __name__ == "__main__":
    program.main()
