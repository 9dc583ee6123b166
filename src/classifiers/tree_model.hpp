#pragma once

#include <cstddef>
#include <vector>

#include "booster.hpp"
#include "feature_bins.hpp"
#include "neyman/core/archive.hpp"

namespace neyman::detail {

/// What the kinds made of trees have in common once they are fitted. Immutable.
class TreeModel {
 public:
  TreeModel(FeatureBins bins, std::vector<Booster> boosters);
  explicit TreeModel(const Archive& archive);

  std::size_t features() const { return bins_.features(); }
  std::size_t trees() const;
  /// Σ of the trees of all boosters for each row.
  std::vector<double> margins(MatrixView x) const;
  void save(Archive& archive) const;

  const FeatureBins& bins() const { return bins_; }
  /// The trees of all boosters, which split the bins of the features.
  std::vector<std::vector<Booster::Node>> nodes() const;

 private:
  FeatureBins bins_;
  std::vector<Booster> boosters_;
};

}  // namespace neyman::detail
