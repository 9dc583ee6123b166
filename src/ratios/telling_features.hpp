#pragma once

#include <cstddef>
#include <vector>

#include "neyman/core/parameters.hpp"
#include "neyman/data/samples.hpp"

namespace neyman::across {

/// The features that may tell of θ, in ascending order: those of which a moment depends on θ, alone
/// or as a product of two, and those that depend on one that tells.
///
/// On normal scores z, the functions z_i, z_i² − 1 and z_i z_j are held against polynomials of θ up
/// to the second degree. A feature tells where any of its tests is significant after the number of
/// all tests (at 1 % for all together). What depends on θ in higher moments alone is missed: the
/// caller compares models with and without the features that are left out.
std::vector<std::size_t> telling_features(const Samples& events, const ParameterSpace& parameters);

}  // namespace neyman::across
