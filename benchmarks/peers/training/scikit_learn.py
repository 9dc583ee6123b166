"""Training and scoring with scikit-learn's MLPClassifier, in float32, which is its faster half."""

import pathlib
import sys
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from worker import serve, timed

warnings.simplefilter("ignore", ConvergenceWarning)  # a fixed number of epochs is asked for


class Contender:
    def answer(self, request):
        return getattr(self, request.pop("task"))(**request)

    def load(self, folder, features, rows):
        x = np.fromfile(pathlib.Path(folder) / "x.f64", "<f8").reshape(-1, features)
        x = ((x - x[:rows].mean(0)) / x[:rows].std(0)).astype(np.float32)  # not timed
        y = np.fromfile(pathlib.Path(folder) / "y.u8", "u1").astype(np.int64)
        self.x, self.y = x[:rows], y[:rows]
        self.held_out_x, self.held_out_y = x[rows:], y[rows:]
        return {}

    def train(self, hidden, activation, batch, rate, epochs, seed, target=None):
        """`epochs`; with a target, until the held-out loss is there, which is not timed."""
        self.model = MLPClassifier(
            tuple(hidden), activation=activation, solver="adam", alpha=0.0, batch_size=batch,
            learning_rate_init=rate, max_iter=epochs, tol=0.0, n_iter_no_change=epochs + 1,
            random_state=seed)
        if target is None:
            _, times = timed(lambda: self.model.fit(self.x, self.y))
            return times | {"cross_entropy": self.cross_entropy(), "epochs": epochs}
        total, loss, done = {"cpu": 0.0, "wall": 0.0}, np.inf, 0
        while loss > target and done < epochs:
            _, times = timed(lambda: self.model.partial_fit(self.x, self.y, classes=[0, 1]))
            total = {clock: total[clock] + times[clock] for clock in total}
            loss, done = self.cross_entropy(), done + 1
        return total | {"cross_entropy": loss, "epochs": done}

    def cross_entropy(self):
        p = self.model.predict_proba(self.held_out_x)[np.arange(len(self.held_out_y)), self.held_out_y]
        return float(-np.log(np.maximum(p, 1e-30)).mean(dtype=np.float64))

    def score(self, chunk):
        def work():
            return [self.model.predict_proba(self.x[i:i + chunk])
                    for i in range(0, len(self.x), chunk)]
        return timed(work)[1]


if __name__ == "__main__":
    serve(Contender().answer)
