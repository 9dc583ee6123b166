#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

// How the networks of this room take their steps.
namespace neyman::separable {

/// Adam on one block of memory. `memory` of squares: what a step keeps of them.
struct Moments {
  std::vector<float> first, second;
  double memory;
  explicit Moments(std::size_t size, double memory_of_squares = 0.999)
      : first(size, 0.0f), second(size, 0.0f), memory(memory_of_squares) {}

  /// Step t, counted from 1; the gradient is zero afterwards.
  void step(float* values, std::vector<float>& gradient, double rate, std::size_t t) {
    const auto a = static_cast<float>(rate / (1.0 - std::pow(0.9, static_cast<double>(t))));
    const auto b = static_cast<float>(1.0 / (1.0 - std::pow(memory, static_cast<double>(t))));
    const auto keep = static_cast<float>(memory), fresh = static_cast<float>(1.0 - memory);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const float g = gradient[i];
      first[i] = 0.9f * first[i] + 0.1f * g;
      second[i] = keep * second[i] + fresh * g * g;
      values[i] -= a * first[i] / (std::sqrt(second[i] * b) + 1e-8f);
      gradient[i] = 0.0f;
    }
  }
};

/// A rise over a tenth of the steps, then half a cosine down to nothing.
inline double scheduled(double part) {
  const double pi = 3.14159265358979323846;
  return std::min(1.0, part / 0.1) * 0.5 * (1.0 + std::cos(pi * part));
}

}  // namespace neyman::separable
