"""Likelihood ratios, estimates, intervals and tests from a simulator.

    r(x; θ0, θ1) = p(x|θ0) / p(x|θ1)

A simulator can be run forwards, but its likelihood cannot be evaluated. A classifier that tells
events of θ0 from events of θ1, calibrated, gives their likelihood ratio; the ratio gives estimates,
intervals and tests.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

# The errors first: the compiled part raises them.
from neyman.errors import ArgumentError, Error, FileError, SimulatorError, StudyError

from neyman import _core, diagnostics, measurements
from neyman.calibration import (Calibrator, HistogramCalibrator, IsotonicCalibrator, KdeCalibrator,
                                NoneCalibrator, SigmoidCalibrator, SmoothCalibrator, calibrator,
                                calibrator_kinds, load_calibrator)
from neyman.classifiers import (BoostedTrees, Classifier, Ensemble, Logistic, Mlp, RandomForest,
                                classifier, classifier_kinds, load_classifier)
from neyman.core import Parameters, built_with, set_threads, threads
from neyman.data import Samples, file_columns, k_fold, read_samples, split, write_samples
from neyman.diagnostics import Diagnostic, RatioEvents, diagnose
from neyman.functions import PythonClassifier, PythonSimulator
from neyman.inference import (CompositeTest, Contour, CoveragePoint, Fit, Interval, Likelihood, Scan,
                              SimpleTest, Surface, Toys, coverage, simple_test, toys)
from neyman.measurements import (MeasurementSummary, StatisticalModel, UnbinnedChannel,
                                 UnbinnedEvents, Workspace)
from neyman.pipeline import Model, Record, Result, Study, load_model, run, stage_names
from neyman.progress import ProgressState, set_progress
from neyman.ratios import (ClassifierRatio, DecomposedRatio, DensityRatio, ExactRatio,
                           LearnedRatio, ParameterizedRatio, Ratio, SeparableRatio, load_ratio)
from neyman.simulators import (Design, Distribution, DistributionFit, Empirical, Exponential, GAndK,
                               Histogram, Join, Kde, LinearTransform, Mixture, MultivariateNormal,
                               Normal, Ricker, Uniform, distribution, distribution_kinds, simulate)

__version__: str = _core.version()


def __getattr__(name: str) -> ModuleType:
    """`neyman.plot` without an import of its own; it costs nothing until it is used."""
    if name == "plot":
        return import_module("neyman.plot")
    raise AttributeError(f"module 'neyman' has no attribute '{name}'")


__all__ = [
    "ArgumentError", "BoostedTrees", "Calibrator", "Classifier", "ClassifierRatio",
    "CompositeTest", "Contour", "CoveragePoint", "DecomposedRatio", "DensityRatio", "Design",
    "Diagnostic", "Distribution", "DistributionFit", "Empirical", "Ensemble", "Error",
    "ExactRatio", "Exponential", "FileError", "Fit", "GAndK", "Histogram", "HistogramCalibrator",
    "Interval", "IsotonicCalibrator", "Join", "Kde", "KdeCalibrator", "LearnedRatio", "Likelihood",
    "LinearTransform", "Logistic", "MeasurementSummary", "Mixture", "Mlp", "Model",
    "MultivariateNormal", "NoneCalibrator", "Normal", "ParameterizedRatio", "Parameters",
    "ProgressState", "PythonClassifier", "PythonSimulator", "RandomForest", "Ratio", "RatioEvents",
    "Record", "Result", "Ricker", "Samples", "Scan", "SeparableRatio", "SigmoidCalibrator",
    "SimpleTest", "SimulatorError", "SmoothCalibrator", "StatisticalModel", "Study", "StudyError",
    "Surface", "Toys", "UnbinnedChannel", "UnbinnedEvents", "Uniform", "Workspace", "built_with",
    "calibrator", "calibrator_kinds", "classifier", "classifier_kinds", "coverage", "diagnose",
    "diagnostics", "distribution", "distribution_kinds", "file_columns", "k_fold",
    "load_calibrator", "load_classifier", "load_model", "load_ratio", "measurements",
    "read_samples", "run", "set_progress", "set_threads", "simple_test", "simulate", "split",
    "stage_names", "threads", "toys", "write_samples",
]
