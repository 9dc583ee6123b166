"""The histogram fit of search_accuracy.cpp by pyhf (NumPy, Minuit), on the workspace that it writes.

    python3 search_pyhf.py workspace.json

pyhf 0.7.6 and iminuit 2.33 from PyPI, or any other. The data are the expected ones (Asimov).
"""

import json
import pathlib
import sys

import pyhf

pyhf.set_backend("numpy", pyhf.optimize.minuit_optimizer())
space = pyhf.Workspace(json.loads(pathlib.Path(sys.argv[1]).read_text()))
model = space.model()
fit = pyhf.infer.mle.fit(space.data(model), model, return_uncertainties=True)
value, error = fit[model.config.poi_index]
print(f"mu = {value:.5f} ± {error:.5f}")
