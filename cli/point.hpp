#pragma once

#include <string>
#include <vector>

#include "neyman/core/parameters.hpp"

namespace neyman::cli {

/// "alpha=1,beta=-1", the value of an option, as a θ; all parameters must be named.
std::vector<double> parse_point(const char* option, const std::string& text,
                                const ParameterSpace& parameters);

}  // namespace neyman::cli
