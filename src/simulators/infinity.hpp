#pragma once

#include <limits>

namespace neyman {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace neyman
