"""A contender in Python: requests and answers are lines of JSON, as in worker.hpp."""

import json
import sys
import time
import traceback

from threadpoolctl import threadpool_limits


def timed(work):
    """The work's result, and the CPU seconds of all threads and seconds on the wall it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}


def peak_memory():
    """Bytes that the process held at most."""
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def serve(answer):
    """Answers requests on one core until the input ends."""
    with threadpool_limits(1):
        for line in sys.stdin:
            try:
                reply = answer(json.loads(line))
            except Exception:
                reply = {"error": traceback.format_exc()}
            print(json.dumps(reply), flush=True)
