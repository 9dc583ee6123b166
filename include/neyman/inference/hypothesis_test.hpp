#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "neyman/core/matrix.hpp"
#include "neyman/ratios/ratio.hpp"
#include "neyman/simulators/distribution.hpp"

namespace neyman {

class Tasks;

/// Neyman and Pearson's test of one simple hypothesis against another.
struct SimpleTestConfig {
  std::vector<double> null;         ///< θ0, the hypothesis that is tested
  std::vector<double> alternative;  ///< θ1
  std::size_t datasets = 1000;      ///< simulated under each hypothesis
  double size = 0.05;               ///< α, at which the power is quoted
  std::uint64_t seed = 0;
};

struct SimpleTest {
  SimpleTestConfig config;
  double statistic = 0.0;  ///< Σ log r(x; θ0, θ1) of the data; small speaks against the null
  /// P(statistic at most the observed | null), from the simulated datasets: (1 + k) / (1 + n),
  /// which is never zero and never below the true size.
  double p_value = 1.0;
  double power = 0.0;  ///< share of datasets of the alternative with p-value at most α
  std::vector<double> null_statistics, alternative_statistics;  ///< sorted
  /// Datasets that could not be simulated. Those of the null count as at most the observed, those
  /// of the alternative as not rejected: p-value and power err on the safe side.
  std::size_t failed = 0;
};

/// Tests with datasets of the same size as the data, simulated in parallel. The p-value is
/// valid whatever the quality of the ratio; a poor ratio costs power alone. A dataset that fails is
/// counted, not fatal; where not one of a hypothesis works, the reason is thrown. The datasets are
/// `tasks` where others share them.
SimpleTest simple_test(const SimpleTestConfig& config, const Distribution& simulator,
                       const Ratio& ratio, MatrixView data, Tasks* tasks = nullptr);

}  // namespace neyman
