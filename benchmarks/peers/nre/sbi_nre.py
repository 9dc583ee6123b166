"""sbi's neural ratio estimation, as its documentation has it."""

import contextlib
import os
import pathlib
import sys
import tempfile
import warnings

import numpy as np
import torch
from sbi.inference import NRE, NRE_A
from sbi.utils import BoxUniform

sys.path.append(str(pathlib.Path(__file__).parents[1]))
sys.path.append(str(pathlib.Path(__file__).parent))
from tasks import TASKS, test_set  # noqa: E402
from worker import peak_memory, serve, timed  # noqa: E402

warnings.simplefilter("ignore")
METHODS = {"NRE-A": NRE_A, "NRE": NRE}  # the first paper's, and the library's default (NRE-B)
PRIORS = {"linear-gaussian": lambda: torch.distributions.MultivariateNormal(
              torch.zeros(10), 0.1 * torch.eye(10)),
          "slcp": lambda: BoxUniform(-3 * torch.ones(5), 3 * torch.ones(5))}


class Contender:
    def answer(self, request):
        return getattr(self, request.pop("task"))(**request)

    def test_set(self, problem):
        return test_set(problem)

    def train(self, problem, samples, method, seed):
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        rng, task = np.random.default_rng(seed), TASKS[problem]
        theta = task.draw(samples, rng)
        x = task.simulate(theta, rng)
        theta, x = (torch.as_tensor(a, dtype=torch.float32) for a in (theta, x))

        def work():
            with contextlib.redirect_stdout(sys.stderr):  # the answer has standard output
                inference = METHODS[method](
                    prior=PRIORS[problem](), show_progress_bars=False)
                estimator = inference.append_simulations(theta, x).train()
            return estimator, inference
        (self.estimator, inference), times = timed(work)
        return times | {"epochs": int(inference.summary["epochs_trained"][-1])}

    def evaluate(self, theta, x):
        def work():
            with torch.no_grad():
                return [self.estimator(torch.tensor(points), torch.tensor([row] * len(points)))
                        .flatten().tolist() for points, row in zip(theta, x)]
        values, times = timed(work)
        return times | {"values": values}

    def memory(self):
        return {"peak": peak_memory()}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:  # sbi writes its logs where it is
        os.chdir(folder)
        serve(Contender().answer)
