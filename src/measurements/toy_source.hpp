#pragma once

#include <span>
#include <vector>

#include "measurements/compiled_model.hpp"
#include "simulators/alias_table.hpp"

namespace neyman::detail {

/// Counts and auxiliary observations at their expectations.
MeasurementData expected_counts(const StatisticalModel& model, std::span<const double> point);

/// Draws data at one point, many times. The model must outlive it.
class ToySource {
 public:
  ToySource(const StatisticalModel& model, std::span<const double> point);
  void draw(RandomStream& random, MeasurementData& out) const;

 private:
  const CompiledModel& model_;
  MeasurementData expected_;
  std::vector<double> events_;      // ν of the unbinned channels
  std::vector<double> values_;      // of the parameters of the constraints
  std::vector<AliasTable> tables_;  // of the simulated events
  /// The simulated events of each channel, one a row: ratios, then functions. An event is drawn
  /// from one place of memory so.
  std::vector<Matrix> simulated_;
};

}  // namespace neyman::detail
