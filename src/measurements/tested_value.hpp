#pragma once

#include <span>
#include <string_view>

#include "measurements/minimiser.hpp"
#include "neyman/measurements/test_statistics.hpp"

namespace neyman::detail {

/// Test statistics of many datasets or values with the memory of one minimiser.
class TestedValue {
 public:
  struct Value {
    double statistic = 0.0, estimate = 0.0;
    bool ok = false;
  };

  /// `tables`: see UnbinnedTerms.
  TestedValue(const StatisticalModel& model, TestStatistic statistic, double tolerance = 1e-9,
              bool tables = false);

  /// Both fits. `free_start` is where the first begins; the one with μ held at what the first
  /// found, or at `held_start` where that cannot be told.
  Value operator()(const MeasurementData& data, double tested, std::span<const double> free_start,
                   std::span<const double> held_start);
  /// The fit of all, once for many tested values; its outcome and point are kept.
  const Minimiser::Outcome& fit_free(const MeasurementData& data, std::span<const double> start);
  /// The statistic of a value after `fit_free`.
  Value compare(const MeasurementData& data, double tested, std::span<const double> start);

  /// The fit with μ held.
  Minimiser::Outcome fit_held(const MeasurementData& data, double tested,
                              std::span<const double> start);
  /// Whether the last fit of all converged.
  bool free_ok() const { return free_.ok; }
  const std::vector<double>& free_point() const { return free_point_; }
  std::span<const double> point() const { return minimise_.point(); }

 private:
  TestStatistic statistic_;
  std::size_t interest_;
  double low_, high_;  // of μ̂
  bool single_;        // ℓ has one maximum
  Minimiser minimise_;
  Minimiser::Outcome free_;
  std::vector<double> free_point_;
};

/// @throw ArgumentError as test_statistic says.
void check_tested(std::string_view function, const StatisticalModel& model, TestStatistic statistic,
                  double tested);

}  // namespace neyman::detail
