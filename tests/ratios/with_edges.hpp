#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "neyman/core/random.hpp"
#include "neyman/data/samples.hpp"

namespace neyman::test {

/// Events of one feature x(t, random), with t uniform in [0.5, 1.5].
inline Samples with_edges(const std::function<double(double, RandomStream&)>& x,
                          std::size_t n = 20000, std::uint64_t seed = 1) {
  Samples out;
  out.theta = Matrix(n, 1);
  out.x = Matrix(n, 1);
  RandomStream random(seed, "edges");
  for (std::size_t i = 0; i < n; ++i) {
    out.theta(i, 0) = 0.5 + random.uniform();
    out.x(i, 0) = x(out.theta(i, 0), random);
  }
  return out;
}

}  // namespace neyman::test
