#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "neyman/core/archive.hpp"
#include "neyman/core/matrix.hpp"

namespace neyman::detail {

/// Cuts each feature into at most `bins` bins of equal weight; where it has no more distinct
/// values than that, each value gets a bin of its own. Trees split between bins.
///
/// Binning here and not in XGBoost keeps doubles exact (XGBoost computes in float), does not
/// depend on the order of the rows, and treats a weight of two as a row repeated.
class FeatureBins {
 public:
  FeatureBins() = default;
  FeatureBins(MatrixView x, std::span<const double> weights, std::size_t bins);

  std::size_t features() const { return cuts_.size(); }
  /// How many columns `codes` has: features with one bin are left out (a split that tries a
  /// random feature would waste its try on them), but one column always remains.
  std::size_t columns() const { return used_.size(); }
  /// The bin of every value of the used features, row-major, as the floats that XGBoost takes.
  /// A value outside the range of the training set falls into the first or the last bin.
  std::vector<float> codes(MatrixView x) const;

  /// The feature of a column of `codes`.
  std::size_t feature(std::size_t column) const { return used_[column]; }
  /// Its cuts: the code is how many of them are not above the value.
  const std::vector<double>& cuts(std::size_t column) const { return cuts_[used_[column]]; }

  void save(Archive& archive) const;
  void load(const Archive& archive);

 private:
  void find_used();

  std::vector<std::vector<double>> cuts_;  // rising; a value on a cut belongs to the right
  std::vector<std::size_t> used_;
};

}  // namespace neyman::detail
