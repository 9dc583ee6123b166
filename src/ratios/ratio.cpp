#include "neyman/ratios/ratio.hpp"

#include <algorithm>
#include <cmath>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"

namespace neyman {

std::size_t Ratio::count_outside(MatrixView) const { return 0; }

InverseRatio::InverseRatio(RatioPtr of) : of_(std::move(of)) {
  if (!of_) fail_argument("InverseRatio", "of", "empty", "a ratio");
}

LogRatios InverseRatio::log_ratios(MatrixView x, std::span<const double> numerator,
                                   std::span<const double> denominator) const {
  auto out = of_->log_ratios(x, denominator, numerator);
  for (double& value : out.values()) value = -value;
  return out;
}

ExactRatio::ExactRatio(DistributionPtr distribution) : distribution_(std::move(distribution)) {
  if (!distribution_ || !distribution_->has_density())
    fail_argument("ExactRatio", "distribution", distribution_ ? distribution_->kind() : "empty",
                  "one that knows its density");
}

LogRatios ExactRatio::log_ratios(MatrixView x, std::span<const double> numerator,
                                 std::span<const double> denominator) const {
  const auto top = log_density(*distribution_, numerator, x);
  const auto bottom = log_density(*distribution_, denominator, x);
  LogRatios out(x.rows());
  for (std::size_t i = 0; i < out.size(); ++i) {
    // Both −∞: the event is impossible under either, and says nothing.
    const double value = top[i] == bottom[i] ? 0.0 : top[i] - bottom[i];
    out[i] = std::clamp(value, -log_ratio_limit, log_ratio_limit);
  }
  return out;
}

}  // namespace neyman
