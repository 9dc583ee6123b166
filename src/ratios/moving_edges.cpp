#include "neyman/ratios/moving_edges.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

namespace neyman {

namespace {

constexpr std::size_t window = 200, deep = 10, least_windows = 50, most_windows = 500;
/// Scatter of the extremes per depth of ten more: 0.1 of a jump, 0.19 where the edge moves by as
/// much within a window, 0.27 where the density falls to zero like a square, 0.4 of normal tails.
constexpr double sharp = 0.21;
/// The edge moves by so many times that depth.
constexpr double moves = 3.0;
constexpr std::size_t chunks = 10;

/// Whether `highest` (of each window, and the one `deep` below it) follow an edge that moves.
bool follows_an_edge(const std::vector<double>& highest, const std::vector<double>& below) {
  const std::size_t count = highest.size();
  double depth = 0.0, square = 0.0;
  std::size_t ties = 0;
  for (std::size_t w = 0; w < count; ++w) depth += highest[w] - below[w];
  depth /= static_cast<double>(count);
  // Of second differences, in which a steady movement cancels.
  for (std::size_t w = 1; w + 1 < count; ++w) {
    ties += highest[w] == highest[w - 1] ? 1 : 0;
    square += std::pow(highest[w + 1] - 2.0 * highest[w] + highest[w - 1], 2) / 6.0 /
              static_cast<double>(count - 2);
  }
  if (!(depth > 0.0) || 10 * ties > count || std::sqrt(square) > sharp * depth) return false;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (std::size_t c = 0; c < chunks; ++c) {
    const std::size_t begin = c * count / chunks, end = (c + 1) * count / chunks;
    double mean = 0.0;
    for (std::size_t w = begin; w < end; ++w) mean += highest[w] / static_cast<double>(end - begin);
    low = std::min(low, mean);
    high = std::max(high, mean);
  }
  return high - low > moves * depth;
}

}  // namespace

std::vector<MovingEdge> moving_edges(const Samples& events) {
  std::vector<MovingEdge> out;
  const std::size_t n = events.size(), windows = std::min(n / window, most_windows);
  if (windows < least_windows) return out;
  std::vector<std::size_t> order(n);
  std::vector<double> values(window);
  for (std::size_t p = 0; p < events.theta.cols(); ++p) {
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return events.theta(a, p) != events.theta(b, p) ? events.theta(a, p) < events.theta(b, p)
                                                      : a < b;
    });
    for (std::size_t f = 0; f < events.features(); ++f)
      for (const double sign : {1.0, -1.0}) {
        std::vector<double> highest, below;
        for (std::size_t w = 0; w < windows; ++w) {
          const std::size_t begin = w * (n - window) / (windows - 1);
          for (std::size_t i = 0; i < window; ++i) values[i] = sign * events.x(order[begin + i], f);
          std::nth_element(values.begin(), values.begin() + deep, values.end(), std::greater<>());
          below.push_back(values[deep]);
          highest.push_back(*std::max_element(values.begin(), values.begin() + deep));
        }
        if (follows_an_edge(highest, below)) out.push_back({f, p, sign > 0.0});
      }
  }
  return out;
}

}  // namespace neyman
