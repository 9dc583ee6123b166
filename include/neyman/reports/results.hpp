#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "neyman/core/matrix.hpp"
#include "neyman/core/parameters.hpp"
#include "neyman/diagnostics/diagnostic.hpp"
#include "neyman/inference/composite_test.hpp"
#include "neyman/inference/contour.hpp"
#include "neyman/inference/coverage.hpp"
#include "neyman/inference/ensemble.hpp"
#include "neyman/inference/fit.hpp"
#include "neyman/inference/hypothesis_test.hpp"
#include "neyman/inference/regions.hpp"
#include "neyman/ratios/learned_ratio.hpp"

namespace neyman {

struct MeasurementSummary;

/// A fit with its intervals and its curves, as reported.
using FitReport = Regions;

/// Scores of one pair of components, on events that the classifier has not seen.
struct PairScores {
  std::string numerator, denominator;  ///< names of the components
  std::vector<double> edges;           ///< of bins in the score s, from 0 to 1
  std::vector<double> numerator_density, denominator_density;
  std::vector<double> scores, calibrated;  ///< a curve: (1 + r̂)⁻¹ against s
};

/// How close learned ratios come to the exact one, for one kind of classifier.
struct RatioComparison {
  std::string classifier;  ///< "mlp", "random-forest", …
  /// Mean |log r̂ − log r| over events simulated at the numerator; absent where no exact ratio
  /// is known or that form was not trained.
  std::optional<double> uncalibrated_error, calibrated_error, decomposed_error;
  /// With one feature: log r over a grid of x. Empty where not known.
  std::vector<double> x, exact, uncalibrated, calibrated, decomposed;
};

/// −2 log Λ over two parameters, the others profiled, as one way of finding it gives it.
struct SurfaceReport {
  std::string label;              ///< "learned", "exact", "on-demand", "Gaussian process", …
  Surface surface;                ///< on a regular grid
  std::vector<Contour> contours;  ///< lowest level first
  std::vector<double> minimum;    ///< its θ̂, a value for each parameter; empty: not known
  Matrix evaluated;  ///< where an optimiser evaluated the likelihood: points × parameters, or empty
  Matrix deviation;  ///< standard deviation of the statistic, on the same grid, or empty
};

/// How often regions hold the θ that the data come from, at several θ.
struct CoverageReport {
  CoverageConfig config;
  std::vector<CoveragePoint> points;
};

/// What would make a result better, from evidence.
struct NextStep {
  std::string what;                 ///< in words: "Simulate more events"
  std::vector<std::string> keys;    ///< of the study to set: "training.samples"
  std::vector<std::string> values;  ///< of these, as JSON and TOML write them; empty: not known
  std::string reason;               ///< with its figures
};

/// Everything a run found, as plain values: results.json, the figures, the report and the
/// terminal summary are all made from this.
struct Results {
  // What was asked.
  std::string name, title, version, command;
  std::uint64_t seed = 0;
  ParameterSpace parameters;
  std::vector<double> reference;  ///< θ1; empty: the denominator is not one of the θ
  std::vector<std::string> feature_names;
  std::vector<std::string> component_names;  ///< of a mixture; else empty
  std::string simulator;                     ///< "command: python3 simulate.py {alpha} …", …
  std::string ratio;                         ///< "decomposed", "separable", "classifier", …
  std::string classifier, calibration;       ///< kinds
  std::string data_source;                   ///< file name, or "simulated at the truth"
  std::string data_note;   ///< how its columns were taken, where that is to be known
  std::size_t events = 0;  ///< of the data
  std::vector<double> levels;
  bool quick = false;  ///< made small, to be tried out: not to be used as a result

  // What came out.
  FitReport fit;
  std::optional<FitReport> exact_fit;
  std::vector<LearnedRatio::Candidate> models;  ///< that were compared, where there was a choice
  std::vector<std::string> unused_features;     ///< that tell nothing, and are left out
  std::optional<SimpleTest> test;
  std::optional<EnsembleResult> ensemble;
  std::vector<SurfaceReport> surfaces;
  std::vector<CompositeTest> composite_tests;
  std::optional<CoverageReport> coverage;
  std::vector<Diagnostic> diagnostics;
  std::size_t outside = 0;  ///< data events outside the calibrated range
  /// Of a measurement, else empty: its `summary_json`, and discovery and limit in words.
  std::string measurement;
  std::vector<std::string> measurement_words;
  /// The same for figures and the report: not in archives, so null where results come from one.
  std::shared_ptr<const MeasurementSummary> measurement_summary;

  // For the figures.
  std::vector<double> compared_point;  ///< θ0 of the curves below; θ1 is the reference
  Matrix data;                         ///< events × features
  std::vector<PairScores> pair_scores;
  std::vector<RatioComparison> comparisons;
  std::vector<double> density_x;                               ///< one feature: a grid of x …
  std::vector<double> numerator_density, denominator_density;  ///< … p(x|θ0), p(x|θ1), exact
  std::vector<double> log_ratios, exact_log_ratios;            ///< of events simulated at θ0

  // What it took.
  std::map<std::string, std::size_t> budget;           ///< simulated events, by purpose
  std::vector<std::pair<std::string, double>> timing;  ///< seconds, by stage
  std::size_t threads = 1;
  std::vector<std::string> warnings;
  std::vector<NextStep> next_steps;        ///< best first; none where all is well
  std::vector<std::string> simulator_log;  ///< what failed runs of the simulator wrote
};

}  // namespace neyman
