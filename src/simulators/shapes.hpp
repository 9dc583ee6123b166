#pragma once

#include <span>

#include "neyman/core/check.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/simulators/distribution.hpp"

// Checks that every distribution makes of what it is called with.
namespace neyman::detail {

inline void check_shape(const Distribution& distribution, const Matrix& out) {
  check_same_size(distribution.kind(), "a row of out", out.cols(), distribution.dimension(),
                  "the dimension");
}

inline void check_shape(const Distribution& distribution, MatrixView points, const Matrix& out) {
  check_shape(distribution, out);
  check_same_size(distribution.kind(), "points", points.rows(), out.rows(), "one for each row");
}

inline void check_shape(const Distribution& distribution, MatrixView x, std::span<double> out) {
  check_same_size(distribution.kind(), "a row of x", x.cols(), distribution.dimension(),
                  "the dimension");
  check_same_size(distribution.kind(), "out", out.size(), x.rows(), "one for each row of x");
}

inline void check_probability(const Distribution& distribution, double probability) {
  check_in_range(distribution.kind(), "probability", probability, 0.0, 1.0);
}

}  // namespace neyman::detail
