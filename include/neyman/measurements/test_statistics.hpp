#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "neyman/measurements/statistical_model.hpp"

namespace neyman {

/// Test statistics of the parameter of interest μ by their names in the literature (Cowan, Cranmer,
/// Gross and Vitells, arXiv:1007.1727). All are −2 log λ(μ) = 2 (ℓ(μ̂, θ̂) − ℓ(μ, θ̂̂)), or 0.
enum class TestStatistic {
  t,        ///< t_μ: two-sided; μ̂ anywhere in the range
  t_tilde,  ///< t̃_μ: two-sided; μ̂ not below 0
  q0,       ///< q_0: discovery; μ = 0 is tested, and 0 where μ̂ < 0
  q,        ///< q_μ: upper limit; 0 where μ̂ > μ
  q_tilde,  ///< q̃_μ: upper limit; μ̂ not below 0, and 0 where μ̂ > μ
};
/// "t", "t-tilde", "q0", "q", "q-tilde".
std::string to_string(TestStatistic statistic);
/// @throw ArgumentError with the candidates.
TestStatistic test_statistic_named(std::string_view name);

struct TestStatisticValue {
  double value = 0.0;
  double estimate = 0.0;  ///< μ̂, as far as the statistic lets it go
  /// Whether both fits converged; the value is not to be used otherwise.
  bool ok = false;
  std::vector<double> best;       ///< (μ̂, θ̂)
  std::vector<double> at_tested;  ///< (μ, θ̂̂)
};

/// The statistic of a value of the parameter of interest.
/// @throw ArgumentError where the value is outside of the parameter's range, is not 0 for q0, or
///   the range does not go below 0 for t and q, which without negative values are t̃ and q̃.
TestStatisticValue test_statistic(const StatisticalModel& model, const MeasurementData& data,
                                  TestStatistic statistic, double tested);

}  // namespace neyman
