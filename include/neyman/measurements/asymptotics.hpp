#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "neyman/measurements/statistical_model.hpp"
#include "neyman/measurements/test_statistics.hpp"

// Hypothesis tests of the parameter of interest by asymptotic formulae (arXiv:1007.1727), which
// need no simulated data: the spread of μ̂ comes from the Asimov data set. They are good from about
// ten events on.
namespace neyman {

/// p-values of a tested μ against the background alone (μ = 0).
struct SignalTest {
  double tested = 0.0;
  double statistic = 0.0;         ///< q_μ or q̃_μ of the data
  double asimov_statistic = 0.0;  ///< of the Asimov data set without signal: (μ / σ)²
  double estimate = 0.0;          ///< μ̂
  double cl_sb = 1.0;             ///< p-value of signal with background
  double cl_b = 1.0;              ///< 1 − p-value of background alone
  double cl_s = 1.0;              ///< CL_sb / CL_b
  /// CL_s expected without signal: for data that lie −2, −1, 0, 1, 2 standard deviations from their
  /// median, from the strongest exclusion to the weakest.
  std::array<double, 5> expected_cl_s{};
  bool ok = false;  ///< whether the fits converged
};

/// The test of μ with q or q̃. The Asimov data set has the nuisance parameters that fit the data
/// best at μ = 0.
/// @throw ArgumentError where the statistic is another, or test_statistic throws.
SignalTest asymptotic_test(const StatisticalModel& model, const MeasurementData& data,
                           double tested, TestStatistic statistic = TestStatistic::q_tilde);

/// The same of many values, whose common fits are done once.
std::vector<SignalTest> asymptotic_scan(const StatisticalModel& model, const MeasurementData& data,
                                        const std::vector<double>& values,
                                        TestStatistic statistic = TestStatistic::q_tilde);

/// Upper limits on the parameter of interest by CL_s.
struct UpperLimit {
  double level = 0.95;
  double estimate = 0.0;  ///< μ̂
  double observed = 0.0;
  /// Expected without signal: at −2, −1, 0, 1 and 2 standard deviations.
  std::array<double, 5> expected{};
};

struct UpperLimitOptions {
  double level = 0.95;
  TestStatistic statistic = TestStatistic::q_tilde;
  /// Limits are sought up to here; default: the end of the parameter's range.
  std::optional<double> highest = {};
};

/// The values of μ above which CL_s is below 1 − level, to a relative 1e-6.
/// @throw ArgumentError where a limit lies beyond the highest value: it is named with CL_s there,
///   and none is invented. The same where a fit fails, or asymptotic_test throws.
UpperLimit upper_limit(const StatisticalModel& model, const MeasurementData& data,
                       const UpperLimitOptions& options = {});

/// The test of the background alone.
struct Discovery {
  double statistic = 0.0;     ///< q_0
  double p_value = 0.5;       ///< of μ = 0
  double significance = 0.0;  ///< Z = √q_0, in standard deviations
  double estimate = 0.0;      ///< μ̂
  /// The median where μ has the expected value, by the Asimov data set with the nuisance parameters
  /// that fit the data best there.
  double expected_significance = 0.0;
  /// The data cannot be without signal: events were seen where none is expected then. The statistic
  /// and the significance are infinite, the p-value is 0. The expected significance may be infinite
  /// too.
  bool impossible = false;
  bool ok = false;
};
/// @throw ArgumentError where 0 or `expected` is outside of the range of the parameter.
Discovery discovery(const StatisticalModel& model, const MeasurementData& data,
                    double expected = 1.0);

}  // namespace neyman
