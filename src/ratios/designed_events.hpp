#pragma once

#include <cstddef>
#include <vector>

#include "neyman/core/archive.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/data/samples.hpp"
#include "neyman/simulators/design.hpp"

// What all ratios that learn from events over a design ask of them.
namespace neyman::across {

/// @throw ArgumentError where the events lack θ, the design is one point, or it fills the ranges
/// and
///   θ are certainly not from it.
void check_designed_events(const char* function, const Samples& events, const Design& design);

/// The range of each feature over the training events.
class FeatureRanges {
 public:
  FeatureRanges() = default;
  explicit FeatureRanges(MatrixView x);
  std::size_t size() const { return low_.size(); }
  /// Of an angle no value is outside.
  void go_round(std::size_t feature);
  /// Events with a feature outside of its range.
  std::size_t count_outside(MatrixView x) const;

  /// As the values "low" and "high".
  void save(Archive& archive) const;
  /// @throw FileError where they have different lengths, or none.
  static FeatureRanges load(const Archive& archive);

 private:
  std::vector<double> low_, high_;
};

}  // namespace neyman::across
