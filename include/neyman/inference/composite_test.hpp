#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "neyman/inference/experiment.hpp"
#include "neyman/inference/fit.hpp"

namespace neyman {

class Tasks;

/// A hypothesis about some of the parameters: each fixed, confined to a part of its range, or
/// free. What is free is profiled.
struct CompositeHypothesis {
  std::vector<std::optional<double>> fixed;     ///< one a parameter, or empty: none
  std::vector<std::optional<FitRange>> ranges;  ///< one a parameter, or empty: none
};

struct CompositeTestConfig {
  CompositeHypothesis null;
  std::size_t datasets = 0;  ///< simulated under the null; 0: the asymptotic p-value alone
  std::uint64_t seed = 0;
  /// Start points of each fit, beside those that are known: see FitOptions. More than 0 where ℓ
  /// has several maxima.
  std::size_t starts = 0;
};

/// The generalised likelihood ratio test of a composite hypothesis against its opposite.
struct CompositeTest {
  CompositeTestConfig config;
  Fit best;                ///< over the whole ranges
  Fit null_fit;            ///< within the null
  double statistic = 0.0;  ///< −2 log Λ = 2 (ℓ(θ̂) − ℓ(θ̂_null)), never negative
  double degrees = 0.0;  ///< of the χ² that the p-value comes from, the larger where it is mixed
  /// The p-value is that of half χ² with `degrees` and half χ² with one less (0: all at zero).
  bool mixed = false;
  double p_value = 1.0;  ///< asymptotic
  /// P(statistic at least the observed | θ̂_null) from simulated data, (1 + k) / (1 + n); empty
  /// without datasets. A dataset whose fit fails counts towards k, which keeps the test valid.
  std::optional<double> simulated_p_value;
  std::vector<double> null_statistics;  ///< of the datasets, sorted, without failed ones
  std::size_t failed = 0;               ///< datasets whose fit failed

  bool ok() const { return best.ok() && null_fit.ok(); }
};

/// Tests the null with the data of a likelihood.
///
/// The asymptotic p-value (Wilks 1938) is that of χ² with as many degrees of freedom as the null
/// fixes parameters. One case at a boundary is exact too (Chernoff 1954): where the null fixes one
/// parameter at an end of its range, or confines one to a part of the range that is open on one
/// side, the statistic is half χ² with the degrees of the others and half χ² with one more; a test
/// of "none" against "some", or of "at most" against "more". Elsewhere each confined parameter
/// counts a full degree, which makes the p-value conservative. The asymptotics need regularity:
/// few events, parameters that the null makes meaningless (the place of a peak without height) or
/// nuisance parameters at their bounds break them, and simulated data are then the test to trust.
///
/// Simulated datasets are drawn at θ̂_null: a parametric bootstrap, exact where the statistic's
/// distribution does not depend on the free parameters. They are `tasks` where others share them.
///
/// @throw ArgumentError where the null fixes and confines nothing, or both for one parameter, its
///   sizes are not those of the parameters, or a value is outside its range; or where there are
///   datasets to simulate and no experiment.
CompositeTest composite_test(const CompositeTestConfig& config, const Likelihood& likelihood,
                             const Experiment& experiment = {}, Tasks* tasks = nullptr);

}  // namespace neyman
