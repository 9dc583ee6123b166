#pragma once

#include <span>

#include "neyman/measurements/unbinned_channel.hpp"

namespace neyman::detail {

/// The value of a yield function at a point of its parameters, ∂/∂θ_p and ∂²/∂θ_p∂θ_q
/// (row-major): differences of fourth order over a hundredth of the ranges, which are exact but for
/// rounding for polynomials up to the third degree. They stay inside of the ranges.
double yield_jet(const YieldFunction& yield, std::span<const double> point, std::span<double> first,
                 std::span<double> second);

}  // namespace neyman::detail
