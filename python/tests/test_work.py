"""What Python does while the core works: other threads, Ctrl-C, progress."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import neyman
from neyman import _core


def test_other_threads_run_meanwhile():
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    _core._wait(0.5)
    stop.set()
    thread.join()
    # With the lock held there would be one or two.
    assert len(ticks) > 5


def test_work_of_several_threads_at_once():
    results = []
    threads = [threading.Thread(target=lambda i=i: results.append(
        (i, neyman.Normal(0, 1).sample(1000, seed=i).sum()))) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, total in results:
        assert total == neyman.Normal(0, 1).sample(1000, seed=i).sum()


INTERRUPTED = """
import neyman, signal, sys, threading, time, os
{setup}
def interrupt():
    time.sleep(1.0)
    global sent
    sent = time.process_time()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
try:
    {work}
except KeyboardInterrupt:
    print("interrupted after", (time.process_time() - sent) / neyman.threads())
# Work after it is not stopped.
assert neyman.Normal(0, 1).sample(10000).shape == (10000, 1)
"""


NORMAL = """p = neyman.Normal("mu", "sigma", parameters={"mu": (-3, 3), "sigma": (0.2, 5)})
exact = neyman.ExactRatio(p)
likelihood = neyman.Likelihood(exact, p.sample(20000, [0, 1]))
"""


@pytest.mark.parametrize("setup, work", [
    ("from neyman import _core", "_core._wait(60)"),
    ("p = neyman.Normal(0, 1)\nx = p.sample(200000)\ny = [0, 1] * 100000",
     "neyman.Mlp(epochs=10000).fit(x, y)"),
    ("p = neyman.Normal(0, 1)\nx = p.sample(200000)\ny = [0, 1] * 100000",
     "neyman.BoostedTrees(rounds=100000, patience=0).fit(x, y)"),
    ("p = neyman.Ricker(3.8, 10, 0.3, observations=2)", "p.sample(2 * 10**7)"),
    (NORMAL + "events = neyman.simulate(p, 100000, seed=1)",
     "neyman.SeparableRatio(events, 'uniform', p.parameters, epochs=10000)"),
    (NORMAL, "neyman.toys(p, exact, [0, 1], datasets=10**6, events=1000)"),
    (NORMAL, "likelihood.scan('mu', points=10**6)"),
    (NORMAL, "likelihood.contours('mu', 'sigma', cells=3000)"),
    ("model = neyman.measurements.example()",
     "neyman.measurements.toy_test(model, 2.0, toys=10**7)"),
], ids=["wait", "mlp", "boosted-trees", "sample", "separable", "toys", "scan", "contours",
        "toys of a measurement"])
def test_interrupts(setup, work):
    done = subprocess.run([sys.executable, "-c", INTERRUPTED.format(setup=setup, work=work)],
                          capture_output=True, text=True, timeout=120, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("interrupted after"), done.stdout
    # A second of each thread's work, however long that takes on a loaded machine.
    assert float(done.stdout.split()[-1]) < 1


def test_a_handler_of_ones_own_decides():
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    try:
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
        _core._wait(1.0)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == [signal.SIGUSR1]


@pytest.fixture
def states():
    told = []
    neyman.set_progress(told.append)
    yield told
    neyman.set_progress(None)


def test_progress_is_told(states):
    caller = threading.current_thread()
    where = []
    neyman.set_progress(lambda state: (states.append(state),
                                       where.append(threading.current_thread())))
    _core._wait(0.6)
    assert set(where) == {caller}
    assert states[-1].finished and states[-1].done == states[-1].total == 100
    assert [state.done for state in states] == sorted(state.done for state in states)
    assert {state.task for state in states} == {"wait"} and len(states) >= 2


def test_an_error_of_the_progress_function_ends_the_work():
    def fail(state):
        raise ZeroDivisionError("in progress")

    neyman.set_progress(fail)
    try:
        with pytest.raises(ZeroDivisionError, match="in progress"):
            _core._wait(30)
    finally:
        neyman.set_progress(None)
    _core._wait(0.01)


def test_a_bar_where_somebody_looks(capsys):
    neyman.set_progress(True)
    try:
        _core._wait(1.0)
    finally:
        neyman.set_progress(None)
    drawn = capsys.readouterr().err
    assert "\r" in drawn and "wait: 100%|" in drawn and drawn.endswith("\n")
    _core._wait(0.7)
    assert capsys.readouterr().err == ""


# Python ends while a daemon thread is at work: the process must end as if the thread were not there.
@pytest.mark.parametrize("setup, work", [
    (NORMAL, "likelihood.fit()"),
    (NORMAL, "neyman.toys(p, exact, [0, 1], datasets=10**6, events=1000)"),
    ("from neyman import _core", "_core._wait(60)"),
    ("p = neyman.PythonSimulator(lambda theta, n, rng: rng.normal(size=(n, 1)), {'mu': (-3, 3)})",
     "neyman.simulate(p, 10**5, seed=1)"),
    ("p = neyman.PythonSimulator(lambda theta, n, rng: time.sleep(0.1) or rng.normal(size=(n, 1)),"
     " {'mu': (-3, 3)})", "neyman.simulate(p, 10**5, seed=1)"),
    ("p = neyman.Normal(0, 1)", "p.sample(10)"),
], ids=["fit", "toys", "wait", "simulator", "sleeping simulator", "short"])
def test_python_ends_during_work(setup, work):
    code = f"""
import neyman, os, threading, time
{setup}
def work():
    while True:
        {work}
        working.set()
working = threading.Event()
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
working.wait(1.0)
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_forked_process_does_not_await_the_threads_of_the_other():
    code = """
import os, sys, threading, time
from neyman import _core
threading.Thread(target=_core._wait, args=(60,), daemon=True).start()
time.sleep(0.3)
if (child := os.fork()) == 0:
    sys.exit(7)
begin = time.monotonic()
status = os.waitpid(child, 0)[1]
print(os.waitstatus_to_exitcode(status), time.monotonic() - begin < 4)   # grace is 5 s
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "7 True\n")
