#pragma once

#include <cstddef>

#include "neyman/core/matrix.hpp"
#include "neyman/core/polynomial_basis.hpp"
#include "ratios/separable_fit.hpp"

namespace neyman::separable {

/// Directions in the space of features along which events tell most of the terms P_k of their θ:
/// partial least squares with several responses (de Jong, SIMPLS, 1993). Projections on them have
/// variance 1 and are uncorrelated. Where they are as many as the features, they span these; few of
/// them hold what a linear regression of the terms finds. A fifth of the events chooses how many
/// there are, between 1 and `most`. Time is linear in events, features and directions.
/// Returns features × directions.
Matrix linear_directions(const EventRows& events, std::size_t features,
                         const PolynomialBasis& basis, std::size_t most);

}  // namespace neyman::separable
