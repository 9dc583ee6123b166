"""Toys a second of q-tilde with pyhf (NumPy, SciPy) on one core, by workspace; as toys.cpp.

    OMP_NUM_THREADS=1 python3 toys_pyhf.py ../../tests/measurements/data/control.json ...

pyhf 0.7.6 from PyPI, or any other.
"""

import json
import pathlib
import sys
import time

import numpy as np
import pyhf

TOYS = 40

for path in map(pathlib.Path, sys.argv[1:]):
    space = pyhf.Workspace(json.loads(path.read_text()))
    model = space.model()
    start, fixed = model.config.suggested_init(), model.config.suggested_fixed()
    bounds = model.config.suggested_bounds()
    bounds[model.config.poi_index] = (0.0, bounds[model.config.poi_index][1])

    def statistic(data):
        return pyhf.infer.test_statistics.qmu_tilde(1.0, data, model, start, bounds, fixed)

    observed = statistic(space.data(model))
    np.random.seed(1)
    toys = model.make_pdf(pyhf.tensorlib.astensor(start)).sample((TOYS,))
    failed = 0
    begin = time.process_time()
    for toy in toys:
        try:
            statistic(toy)
        except pyhf.exceptions.FailedMinimization:
            failed += 1
    seconds = time.process_time() - begin
    print(f"{path.stem}: q-tilde {observed:.6g}, {TOYS / seconds:.4g} toys/s of CPU, {failed} failed",
          flush=True)
