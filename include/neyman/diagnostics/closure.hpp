#pragma once

#include <cstddef>

#include "neyman/diagnostics/diagnostic.hpp"
#include "neyman/diagnostics/ratio_events.hpp"

namespace neyman {

struct ClosureConfig {
  std::size_t bins = 20;          ///< of equal probability under the numerator, at most
  double tolerance = 0.01;        ///< of each bin's share, as a part of it
  double least_effective = 50.0;  ///< with an effective size below this, it has no power
};

/// For each feature, the histogram of the numerator against that of the denominator weighted by
/// r̂, both normalised: χ² with the covariance of weighted shares (the weights are random too). The
/// p-value is the smallest over the features, corrected for their number (Šidák); `numbers` has
/// that of each. One feature at a time: what is wrong in correlations alone is left to
/// `diagnose_reweighting`. False-alarm rate with exact ratios and tolerance 0, by simulation at a
/// level of 1 %: 0.8 to 1.5 %; 2 % where the effective size is a tenth of the events or less.
/// @throw ArgumentError where sizes disagree or a side is empty.
Diagnostic diagnose_closure(const RatioEvents& events, const ClosureConfig& config = {});

}  // namespace neyman
