#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "neyman/measurements/statistical_model.hpp"
#include "neyman/measurements/test_statistics.hpp"

// Hypothesis tests by simulated data, which hold where there are too few events for the asymptotic
// formulae. In every toy the auxiliary observations fluctuate with the counts.
namespace neyman {

class Tasks;

struct ToyOptions {
  std::size_t toys = 1000;  ///< of each hypothesis
  std::uint64_t seed = 0;
  /// The number of the first: toys [first, first + toys) are the same whoever makes them, so that
  /// parts can be made apart and put together.
  std::uint64_t first = 0;
  /// Who makes them: RankTasks, or KeptTasks (kept_tasks.hpp), which writes them to a file as they
  /// are done. Null: this process alone. The numbers are the same.
  Tasks* tasks = nullptr;
};

/// A test statistic over simulated datasets.
struct ToySample {
  std::vector<double> statistics, estimates;  ///< of the toys whose fits converged, in their order
  std::size_t failed = 0;                     ///< the others: left out and counted
};
/// The statistic of the tested value in toys drawn at a point, in parallel over fixed blocks: the
/// same numbers for any number of threads.
/// @throw ArgumentError where there are no toys, the point is outside of the ranges, or
///   test_statistic throws.
ToySample toy_statistics(const StatisticalModel& model, std::span<const double> point,
                         TestStatistic statistic, double tested, const ToyOptions& options = {});

/// A probability from toys with its binomial standard error.
struct ToyProbability {
  double value = 1.0, error = 0.0;
};
/// P(statistic ≥ observed), where ties count as at least. Failed toys count as at least too.
ToyProbability toy_p_value(const ToySample& sample, double observed);

/// The test of a value of μ against the background alone, by toys.
struct ToyTest {
  double tested = 0.0;
  double statistic = 0.0;  ///< of the data
  double estimate = 0.0;   ///< μ̂
  ToyProbability cl_sb, cl_b, cl_s;
  /// CL_s of toys without signal, at −2, −1, 0, 1, 2 standard deviations of them.
  std::array<double, 5> expected_cl_s{};
  std::size_t failed = 0;  ///< of both hypotheses
};
/// With q or q̃. The toys have the nuisance parameters that fit the data best at μ and at 0.
/// @throw ArgumentError where the fits to the data fail or every toy does, or as toy_statistics.
ToyTest toy_test(const StatisticalModel& model, const MeasurementData& data, double tested,
                 TestStatistic statistic = TestStatistic::q_tilde, const ToyOptions& options = {});

/// An upper limit by CL_s from toys at given values of μ.
struct ToyLimit {
  double level = 0.95;
  double observed = 0.0;
  std::array<double, 5> expected{};  ///< at −2, −1, 0, 1, 2 standard deviations
  std::vector<ToyTest> tests;        ///< one a value
};
/// Between the values log CL_s is taken as a straight line.
/// @throw ArgumentError unless the values rise, or where a limit is not between two of them; or as
///   toy_test.
ToyLimit toy_upper_limit(const StatisticalModel& model, const MeasurementData& data,
                         const std::vector<double>& values, double level = 0.95,
                         TestStatistic statistic = TestStatistic::q_tilde,
                         const ToyOptions& options = {});

/// Makes the toys of toy_upper_limit and no more: for a part of the `tasks`, of which the limit
/// needs all.
/// @throw ArgumentError as toy_upper_limit, but for what becomes of the toys.
void simulate_limit_toys(const StatisticalModel& model, const MeasurementData& data,
                         const std::vector<double>& values,
                         TestStatistic statistic = TestStatistic::q_tilde,
                         const ToyOptions& options = {});

/// The values of μ that data as unlikely as those observed, or more, have with a probability of at
/// least 1 − level, by the likelihood ratio: Feldman and Cousins' construction, with nuisance
/// parameters at their best fit for each μ.
struct UnifiedInterval {
  double level = 0.68;
  double low = 0.0, high = 0.0;
  /// The interval ends with the parameter's range: there is no value to exclude beyond.
  bool low_at_bound = false, high_at_bound = false;
  std::vector<double> values, p_values;  ///< of the scan
  std::size_t failed = 0;                ///< toys
};
/// With t, or with t̃ where the range of μ does not go below 0. Between the values the p-value is
/// taken as a straight line.
/// @throw ArgumentError unless the values rise, or where an end is not between two of them and the
///   values end before the parameter's range does; or no value is inside; or as toy_statistics.
UnifiedInterval feldman_cousins(const StatisticalModel& model, const MeasurementData& data,
                                const std::vector<double>& values, double level = 0.68,
                                const ToyOptions& options = {});

}  // namespace neyman
