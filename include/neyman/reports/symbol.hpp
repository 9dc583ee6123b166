#pragma once

#include <span>
#include <string>
#include <string_view>

#include "neyman/core/parameters.hpp"

namespace neyman::reports {

/// A parameter's name as people write it: "gamma" gives "γ", "Gamma" "Γ", "mu_1" and "mu1" "μ₁",
/// "mu_signal" "μ_signal". Names that do not begin with the name of a Greek letter stay.
std::string symbol(std::string_view name);

/// A point in words: "γ = 0.05", "α = 1, β = −1", with no-break spaces around the signs.
/// @throw ArgumentError unless there is one finite value for each parameter.
std::string point_words(const ParameterSpace& parameters, std::span<const double> point,
                        int digits = 6);

}  // namespace neyman::reports
