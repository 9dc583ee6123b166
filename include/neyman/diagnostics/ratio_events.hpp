#pragma once

#include <span>
#include <string>
#include <vector>

#include "neyman/core/matrix.hpp"
#include "neyman/data/samples.hpp"

namespace neyman {

/// Events of p(x|θ0) and of p(x|θ1), and log r̂(x; θ0, θ1) of them: what the diagnostics of a ratio
/// look at. They must be events that neither training nor calibration has seen, or held-out
/// values of r̂; otherwise every p-value is too large.
struct RatioEvents {
  MatrixView numerator, denominator;  ///< x of both sides; not all diagnostics need them
  std::span<const double> numerator_log_ratios, denominator_log_ratios;
  std::span<const double> numerator_weights = {}, denominator_weights = {};  ///< empty: all 1
  std::span<const double> exact_log_ratios = {};  ///< of the denominator, where they are known
  std::vector<std::string> feature_names = {};    ///< empty: x0, x1, …
};

/// The samples must outlive what is returned.
RatioEvents ratio_events(const Samples& numerator, const Samples& denominator,
                         std::span<const double> numerator_log_ratios,
                         std::span<const double> denominator_log_ratios);

}  // namespace neyman
