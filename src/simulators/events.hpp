#pragma once

#include <span>
#include <string_view>

#include "neyman/core/matrix.hpp"

namespace neyman::detail {

/// Events with weights that a distribution is made of: at least one, all finite, and weights that
/// are one for each (or none), finite, not negative and not all zero.
void check_events(std::string_view function, MatrixView events, std::span<const double> weights);

}  // namespace neyman::detail
