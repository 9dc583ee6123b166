#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "neyman/core/parameters.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/inference/experiment.hpp"
#include "neyman/inference/fit.hpp"
#include "neyman/inference/statistics.hpp"
#include "neyman/ratios/mixture_ratio.hpp"
#include "neyman/simulators/distribution.hpp"

namespace neyman {

class Tasks;

/// Many datasets simulated at one θ, each fitted: what the method does in repetition.
struct EnsembleConfig {
  std::size_t datasets = 1000;
  std::size_t events = 5000;  ///< in each dataset; an Experiment has its own number
  std::vector<double> point;  ///< θ at which they are simulated
  std::vector<double> levels = {0.683, 0.95};
  std::uint64_t seed = 0;
  /// Parameters for each of which the coverage with all others profiled is found too.
  std::vector<std::size_t> interest = {};
  /// Start points of each fit beside θ: see FitOptions. More than 0 where ℓ has several maxima.
  std::size_t starts = 0;
};

/// −2 log Λ of one parameter at its simulated value, the others profiled.
struct ProfileSide {
  std::size_t parameter = 0;
  std::vector<double> statistic;  ///< the rows of `EnsembleSide::estimates`
  std::vector<double> coverage;  ///< share with the value inside, by level, from χ² with 1 degree
  KolmogorovSmirnov wilks;       ///< against χ² with one degree
};

/// What one ratio gave over the datasets.
struct EnsembleSide {
  /// Datasets × parameters: θ̂; failed fits are left out. Of a periodic parameter they are told
  /// within half a period of the simulated θ, so that means and spreads are those on the circle.
  Matrix estimates;
  std::vector<double> statistic;       ///< −2 log Λ(θ) at the simulated θ, the same rows
  std::size_t failed = 0;              ///< fits that did not converge
  std::vector<double> means, spreads;  ///< of the estimates, by parameter
  std::vector<double> coverage;        ///< share of datasets with θ inside, by level
  KolmogorovSmirnov wilks;             ///< −2 log Λ against χ² with one degree a parameter
  std::vector<ProfileSide> profiles;   ///< one for each parameter of interest
};

struct EnsembleResult {
  EnsembleConfig config;
  EnsembleSide approximate;
  std::optional<EnsembleSide> exact;  ///< where the density is known; the same datasets
  /// (mean of θ̂ − mean of exact θ̂) in units of the exact spread, by parameter; without an
  /// exact ratio, (mean of θ̂ − θ) in units of the approximate spread.
  std::vector<double> bias;
  /// σ_simulation / σ_statistical by parameter: how much of the uncertainty is finite simulation.
  std::vector<double> simulation_share;
  /// Coverage of the approximate intervals with the threshold widened by finite simulation:
  /// multiplied by 1 + the mean over parameters of σ²_simulation / σ²_statistical.
  std::vector<double> coverage_with_simulation;
};

/// A likelihood whose ensemble is asked for.
struct EnsembleModel {
  LikelihoodFactory likelihood;
  /// The covariance of ∂ℓ/∂θ at the fit over simulations, from a dataset; empty: not known. Asked
  /// for the first datasets alone.
  std::function<Matrix(MatrixView x, const Fit& fit)> simulation_gradient_covariance = {};
};

/// Simulates and fits with any likelihood, in parallel over datasets; the same numbers for any
/// number of threads. A dataset that cannot be simulated or whose fit fails is counted, not
/// fatal; where not one can be simulated, the reason is thrown. Constraints are part of both
/// likelihoods, with auxiliary measurements drawn for each dataset. An empty `exact`: none. The
/// datasets are `tasks` where others share them (distributed/tasks.hpp).
/// @throw ArgumentError where there are no datasets or events, or θ or a parameter of interest is
///   out of range.
EnsembleResult run_ensemble(const EnsembleConfig& config, const ParameterSpace& parameters,
                            const Distribution& simulator, const EnsembleModel& approximate,
                            const LikelihoodFactory& exact = {},
                            const std::vector<Constraint>& constraints = {},
                            Tasks* tasks = nullptr);

/// The same of one likelihood with experiments of one's own. `progress` advances by one a dataset;
/// without it, the ensemble is a task of its own.
EnsembleSide run_ensemble(const EnsembleConfig& config, const ParameterSpace& parameters,
                          const Experiment& experiment, Progress* progress = nullptr,
                          Tasks* tasks = nullptr);

/// The same for mixtures. Where the datasets have one feature and many events in all, the learned
/// ratio is looked up in a TabulatedRatio, which moves estimates by less than a thousandth of
/// their error.
EnsembleResult run_ensemble(const EnsembleConfig& config, const ParameterSpace& parameters,
                            const Distribution& simulator, const MixtureRatio& approximate,
                            const MixtureRatio* exact, Tasks* tasks = nullptr);

}  // namespace neyman
