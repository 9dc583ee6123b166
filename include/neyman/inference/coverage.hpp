#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "neyman/core/matrix.hpp"
#include "neyman/inference/ensemble.hpp"

namespace neyman {

/// The value of −2 log Λ(θ) below which θ belongs to the confidence region.
struct CriticalValue {
  double level = 0.683;
  double asymptotic = 0.0;  ///< the χ² quantile
  /// The k-th smallest of n simulated statistics, k = ⌈level (n + 1)⌉: a new dataset lies below it
  /// with probability k / (n + 1), at least the level, whatever the distribution.
  double toys = 0.0;
  /// Order statistics between which the true quantile lies with a probability of at least 68.3 %.
  double low = 0.0, high = 0.0;
  /// False where the datasets are too few for the level: `toys` or `high` is then the largest
  /// statistic, and too small.
  bool enough = true;
};

/// Neyman's construction at one θ: quantiles of statistics simulated there.
/// @throw ArgumentError where there are no statistics, or a level is not inside (0, 1).
std::vector<CriticalValue> critical_values(std::span<const double> statistics,
                                           std::span<const double> levels, double degrees);

/// Coverage over a set of θ.
struct CoverageConfig {
  Matrix points;               ///< one row a θ
  std::size_t datasets = 500;  ///< at each θ, whose regions are asked for θ
  /// At each θ, from which the critical values come; independent of the others. 0: none.
  std::size_t critical_datasets = 500;
  std::vector<double> levels = {0.683, 0.95};
  std::uint64_t seed = 0;
  std::vector<std::size_t> interest = {};  ///< see EnsembleConfig
  std::size_t starts = 0;                  ///< see EnsembleConfig
};

/// What was found at one θ.
struct CoveragePoint {
  std::vector<double> point;
  EnsembleSide ensemble;                  ///< with asymptotic thresholds
  std::vector<double> coverage_error;     ///< binomial standard error, by level
  std::size_t critical_failed = 0;        ///< datasets for critical values whose fit failed
  std::vector<CriticalValue> critical;    ///< of θ; empty without datasets for them
  std::vector<double> coverage_critical;  ///< with `critical`, by level
  /// The same of each parameter of interest, the others profiled.
  std::vector<std::vector<CriticalValue>> profile_critical;
  std::vector<std::vector<double>> profile_coverage_critical;
};

/// Simulates, fits and counts at each θ: how often the regions of a level hold the θ that the
/// data come from, with Wilks' thresholds and with those of simulated data. In parallel over
/// datasets of all θ, which are `tasks` where others share them; the same numbers for any number of
/// threads and ranks. Failed fits are counted and left out.
/// @throw ArgumentError where a row of `points` is not inside the parameters' ranges, or as
///   `run_ensemble`.
std::vector<CoveragePoint> run_coverage(const CoverageConfig& config,
                                        const ParameterSpace& parameters,
                                        const Experiment& experiment, Tasks* tasks = nullptr);

}  // namespace neyman
