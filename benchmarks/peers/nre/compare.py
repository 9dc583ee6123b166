"""Learning log r(x; θ) for all θ of a prior from simulations: neyman, and sbi's neural ratio
estimation with its default settings. Time of the training, and the error of log r."""

from concurrent.futures import ThreadPoolExecutor

from harness import HERE, Contender

PROBLEMS = ("linear-gaussian", "slcp")
METHODS = ("separable", "classifier")
PEERS = ("NRE-A", "NRE")


def centred(rows):
    """What does not depend on θ is no part of the ratio of two θ."""
    return [[value - sum(row) / len(row) for value in row] for row in rows]


def rms_error(values, exact):
    squares = [(a - b) ** 2 for row, known in zip(centred(values), centred(exact))
               for a, b in zip(row, known)]
    return (sum(squares) / len(squares)) ** 0.5


def learn(command, test, problem, samples, method):
    with Contender(*command) as side:
        answer = side.ask("train", problem=problem, samples=samples, method=method, seed=1)
        found = side.ask("evaluate", theta=test["theta"], x=test["x"])
        return answer | {"error": rms_error(found["values"], test["exact"]), "evaluate": found["cpu"],
                         "memory": side.ask("memory")["peak"]}


def compare(table, python, programs, args):
    sizes = (10_000, 100_000) if not args.quick else (2_000,)
    script = (python, HERE / "nre" / "sbi_nre.py")
    with Contender(*script) as side:
        tests = {problem: side.ask("test_set", problem=problem) for problem in PROBLEMS}
    work = [(problem, size) for size in reversed(sizes) for problem in PROBLEMS]
    ours = {(*one, method): learn((programs / "peers_nre",), tests[one[0]], *one, method)
            for one in work for method in METHODS}
    # Minutes each, on one core each: two at a time. At the larger size NRE-A alone, which takes more
    # than six minutes of CPU there.
    jobs = [(*one, method) for one in work for method in PEERS
            if method == "NRE-A" or one[1] == sizes[0]]
    with ThreadPoolExecutor(2) as pool:
        theirs = dict(zip(jobs, pool.map(
            lambda job: learn(script, tests[job[0]], *job), jobs)))
    for job in sorted(jobs, key=lambda job: (job[0], job[1], job[2])):
        problem, size, peer = job
        other = theirs[job]
        for method in METHODS:
            mine = ours[problem, size, method]
            table.add(f"{problem}, {size} simulations, {method}", f"sbi {peer}", mine, other,
                      error=[mine["error"], other["error"]], memory=[mine["memory"], other["memory"]])
            table.note(f"{problem}, {size} simulations: RMS error of log r {mine['error']:.3f} of "
                       f"{method}, {other['error']:.3f} of sbi's {peer} ({other['epochs']} epochs)")
    for problem in PROBLEMS:
        for size in sizes:
            mine = min((ours[problem, size, method] for method in METHODS), key=lambda a: a["error"])
            other = min((theirs[job] for job in jobs if job[:2] == (problem, size)),
                        key=lambda a: a["error"])
            table.aim(f"{problem}, {size} simulations: error of log r beside sbi's best",
                      other["error"] / mine["error"], 1.0)
            table.aim(f"{problem}, {size} simulations: time of training beside sbi's best",
                      other["cpu"] / mine["cpu"], 1.0,
                      why="at 10⁴ simulations most of neyman's time are second derivatives and Cholesky factors "
                          "of 2800 coefficients, which do not become fewer with the simulations")
