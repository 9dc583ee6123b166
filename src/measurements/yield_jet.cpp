#include "measurements/yield_jet.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace neyman::detail {

namespace {

// Central differences of fourth order: Σ_k w_k f(x + k h) with k from −2 to 2.
constexpr std::array<double, 5> slope = {1.0 / 12, -8.0 / 12, 0.0, 8.0 / 12, -1.0 / 12};
constexpr std::array<double, 5> curve = {-1.0 / 12, 16.0 / 12, -30.0 / 12, 16.0 / 12, -1.0 / 12};

}  // namespace

double yield_jet(const YieldFunction& yield, std::span<const double> point, std::span<double> first,
                 std::span<double> second) {
  const std::size_t n = yield.parameters.size();
  std::vector<double> centre(point.begin(), point.end()), step(n), away(n);
  for (std::size_t p = 0; p < n; ++p) {
    const auto& parameter = yield.parameters[p];
    step[p] = 0.01 * (parameter.high - parameter.low);
    centre[p] =
        std::clamp(centre[p], parameter.low + 2.0 * step[p], parameter.high - 2.0 * step[p]);
    away[p] = point[p] - centre[p];
  }
  const auto value_at = [&](std::size_t p, int k, std::size_t q, int l) {
    auto at = centre;
    at[p] += k * step[p];
    if (q != p) at[q] += l * step[q];
    return yield.value(at);
  };
  for (std::size_t p = 0; p < n; ++p) {
    double d1 = 0.0, d2 = 0.0;
    for (int k = -2; k <= 2; ++k) {
      const double value = value_at(p, k, p, 0);
      const auto i = static_cast<std::size_t>(k + 2);
      d1 += slope[i] * value;
      d2 += curve[i] * value;
    }
    first[p] = d1 / step[p];
    second[p * n + p] = d2 / (step[p] * step[p]);
    for (std::size_t q = 0; q < p; ++q) {
      double mixed = 0.0;
      for (int k = -2; k <= 2; ++k)
        for (int l = -2; l <= 2; ++l)
          if (k != 0 && l != 0)
            mixed += slope[static_cast<std::size_t>(k + 2)] *
                     slope[static_cast<std::size_t>(l + 2)] * value_at(p, k, q, l);
      second[p * n + q] = second[q * n + p] = mixed / (step[p] * step[q]);
    }
  }
  // Near an end of a range the differences were taken inside of it.
  for (std::size_t p = 0; p < n; ++p)
    for (std::size_t q = 0; q < n; ++q) first[p] += second[p * n + q] * away[q];
  return yield.value(point);
}

}  // namespace neyman::detail
