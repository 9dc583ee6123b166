#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "neyman/core/random.hpp"
#include "neyman/data/samples.hpp"
#include "neyman/simulators/design.hpp"

// A problem with a known answer: two means over a square.
namespace neyman::test {

inline const ParameterSpace plane({{"a", -2, 2, {}}, {"b", -2, 2, {}}});
inline const Design& plane_design() {
  static const Design made(plane);
  return made;
}

/// Two features with means a and b and spreads 1 and 2, turned by 30°, and one of noise.
inline void draw(std::span<const double> theta, RandomStream& random, std::span<double> x) {
  const double u = theta[0] + random.normal(), v = theta[1] + 2.0 * random.normal();
  x[0] = 0.8660254 * u - 0.5 * v;
  x[1] = 0.5 * u + 0.8660254 * v;
  x[2] = random.exponential();
}

inline double exact_log_density(std::span<const double> x, std::span<const double> theta) {
  const double u = 0.8660254 * x[0] + 0.5 * x[1], v = -0.5 * x[0] + 0.8660254 * x[1];
  return -0.5 * std::pow(u - theta[0], 2) - 0.125 * std::pow(v - theta[1], 2);
}

inline Samples simulate_plane(const Design& design, std::size_t n, std::uint64_t seed) {
  Samples events;
  events.feature_names = default_feature_names(3);
  events.parameter_names = {"a", "b"};
  events.theta = design.draw(n, seed, "theta");
  events.x = Matrix(n, 3);
  RandomStream random(seed, "events");
  for (std::size_t i = 0; i < n; ++i) draw(events.theta.row(i), random, events.x.row(i));
  return events;
}

inline Matrix data_at(std::vector<double> theta, std::size_t n, std::uint64_t seed) {
  Matrix x(n, 3);
  RandomStream random(seed, "data");
  for (std::size_t i = 0; i < n; ++i) draw(theta, random, x.row(i));
  return x;
}

}  // namespace neyman::test
