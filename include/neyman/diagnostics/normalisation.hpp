#pragma once

#include "neyman/diagnostics/diagnostic.hpp"
#include "neyman/diagnostics/ratio_events.hpp"

namespace neyman {

struct NormalisationConfig {
  double tolerance = 0.005;       ///< of the mean
  double least_effective = 50.0;  ///< with an effective size below this, it has no power
};

/// The mean of r̂ over the denominator, which is one for a ratio of densities, with its standard
/// error; and the effective size (Σr̂)²/Σr̂² of the weights. The statistic is the deviation in
/// standard errors after Hall's transformation, which removes skewness (ratios have a long upper
/// tail, and a mean that misses it is too small together with its error); the p-value is two-sided.
/// Where the effective size is small the mean rests on a few events: neither it nor its error can
/// be trusted, and the diagnostic has no power. False-alarm rate with exact ratios and
/// tolerance 0, by simulation at a level of 1 %: 0.9 to 1.6 %; up to 3 % for ratios as heavy-tailed
/// as a log-normal of width 2.
Diagnostic diagnose_normalisation(const RatioEvents& events,
                                  const NormalisationConfig& config = {});

}  // namespace neyman
