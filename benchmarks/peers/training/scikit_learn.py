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

    def train(self, activation, batch, rate, epochs, seed):
        self.model = MLPClassifier(
            (40, 40), activation=activation, solver="adam", alpha=0.0, batch_size=batch,
            learning_rate_init=rate, max_iter=epochs, tol=0.0, n_iter_no_change=epochs + 1,
            random_state=seed)
        _, times = timed(lambda: self.model.fit(self.x, self.y))
        p = self.model.predict_proba(self.held_out_x)[np.arange(len(self.held_out_y)), self.held_out_y]
        return times | {"cross_entropy": float(-np.log(np.maximum(p, 1e-30)).mean(dtype=np.float64))}

    def score(self, chunk):
        def work():
            return [self.model.predict_proba(self.x[i:i + chunk])
                    for i in range(0, len(self.x), chunk)]
        return timed(work)[1]


if __name__ == "__main__":
    serve(Contender().answer)
