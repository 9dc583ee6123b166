#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "neyman/core/archive.hpp"
#include "neyman/core/scales.hpp"
#include "neyman/data/samples.hpp"
#include "neyman/ratios/cross_fit.hpp"

// Events with weights of both signs: their density is that of the weights |w| times the mean sign
// of an event, (N₊ p₊ − N₋ p₋) / (N₊ p₊ + N₋ p₋), which a classifier learns.
namespace neyman::detail {

/// Of |log r|, so that sums of ratios and their inverses stay doubles.
inline constexpr double log_limit = 300.0;
/// Where the mean sign of a sample is learned as zero or less, its logarithm is that of this part
/// of the sample's mean.
inline constexpr double least_sign = 1e-3;

bool has_negative(const Samples& samples);
/// The same events with weights |w|.
Samples magnitudes(const Samples& samples);
/// The same events with θ as further features.
Samples with_parameters(const Samples& samples);

/// What tells the events of negative weight from the others, p₊ / p₋: the mean sign at x over that
/// of the sample is (a r − 1) / (a r + 1) / mean, with a = N₊ / N₋.
struct SignRatio {
  CrossFit fit;
  double odds = 1.0, mean = 1.0;

  std::vector<double> values(const LogRatios& logs) const;
  void save(Archive& archive) const;
  static SignRatio load(const Archive& archive);
};

/// The positive and the negative events of a sample apart, where the latter are many, with the
/// folds and counts of the sample itself.
struct SignParts {
  std::optional<FoldedSample> positive = {}, negative = {};
  double positive_sum = 0.0, negative_sum = 0.0;

  /// `all`: the same events with weights |w|.
  SignParts(const Samples& samples, const FoldedSample& all, std::size_t folds);

  bool known() const { return negative.has_value(); }
  /// Its `fit` is to be trained, `positive` against `negative`.
  SignRatio untrained() const;
};

}  // namespace neyman::detail
