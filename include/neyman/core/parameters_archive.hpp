#pragma once

#include "neyman/core/archive.hpp"
#include "neyman/core/parameters.hpp"

namespace neyman {

/// Puts names, ranges, and which are nuisance parameters or periodic, into a tree; the truth is not
/// kept.
void save_parameters(const ParameterSpace& parameters, Archive& archive);
/// @throw FileError where an entry is absent or they do not belong together.
ParameterSpace load_parameters(const Archive& archive);

}  // namespace neyman
