#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "neyman/core/parameters.hpp"
#include "neyman/inference/fit.hpp"
#include "neyman/inference/statistics.hpp"
#include "neyman/ratios/mixture_ratio.hpp"
#include "neyman/simulators/distribution.hpp"

namespace neyman {

/// Many datasets simulated at one θ, each fitted: what the method does in repetition.
struct EnsembleConfig {
  std::size_t datasets = 1000;
  std::size_t events = 5000;  ///< in each dataset
  std::vector<double> point;  ///< θ at which they are simulated
  std::vector<double> levels = {0.683, 0.95};
  std::uint64_t seed = 0;
};

/// What one ratio gave over the datasets.
struct EnsembleSide {
  Matrix estimates;                    ///< datasets × parameters: θ̂; failed fits are left out
  std::vector<double> statistic;       ///< −2 log Λ(θ) at the simulated θ, the same rows
  std::size_t failed = 0;              ///< fits that did not converge
  std::vector<double> means, spreads;  ///< of the estimates, by parameter
  std::vector<double> coverage;        ///< share of datasets with θ inside, by level
  KolmogorovSmirnov wilks;             ///< −2 log Λ against χ² with one degree a parameter
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
  /// Coverage of the approximate intervals with the threshold widened by finite simulation.
  std::vector<double> coverage_with_simulation;
};

/// Simulates and fits, in parallel over datasets; the same numbers for any number of threads.
/// A dataset whose fit fails is counted, not fatal. Where the datasets have one feature and many
/// events in all, the learned ratio is looked up in a TabulatedRatio, which moves estimates by
/// less than a thousandth of their error.
EnsembleResult run_ensemble(const EnsembleConfig& config, const ParameterSpace& parameters,
                            const Distribution& simulator, const MixtureRatio& approximate,
                            const MixtureRatio* exact);

}  // namespace neyman
