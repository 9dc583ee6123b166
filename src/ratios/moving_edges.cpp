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

/// The largest value of each of some windows of events that lie side by side in one parameter, and
/// the one `deep` below it. Small values are told by their negatives.
struct Extremes {
  std::vector<double> highest, below;
};

std::vector<std::size_t> in_order(const Samples& events, std::size_t parameter) {
  std::vector<std::size_t> order(events.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const double at_a = events.theta(a, parameter), at_b = events.theta(b, parameter);
    return at_a != at_b ? at_a < at_b : a < b;
  });
  return order;
}

/// None where there are too few events.
Extremes extremes(const Samples& events, const std::vector<std::size_t>& order, std::size_t feature,
                  bool upper) {
  Extremes out;
  const std::size_t n = events.size(), windows = std::min(n / window, most_windows);
  if (windows < least_windows) return out;
  const double sign = upper ? 1.0 : -1.0;
  std::vector<double> values(window);
  for (std::size_t w = 0; w < windows; ++w) {
    const std::size_t begin = w * (n - window) / (windows - 1);
    for (std::size_t i = 0; i < window; ++i) values[i] = sign * events.x(order[begin + i], feature);
    std::nth_element(values.begin(), values.begin() + deep, values.end(), std::greater<>());
    out.below.push_back(values[deep]);
    out.highest.push_back(*std::max_element(values.begin(), values.begin() + deep));
  }
  return out;
}

double mean_depth(const Extremes& of) {
  double sum = 0.0;
  for (std::size_t w = 0; w < of.highest.size(); ++w) sum += of.highest[w] - of.below[w];
  return sum / static_cast<double>(std::max<std::size_t>(of.highest.size(), 1));
}

/// Whether the extremes scatter as near an edge where the density jumps.
bool sharp_edge(const Extremes& of) {
  const auto& highest = of.highest;
  const std::size_t count = highest.size();
  const double depth = mean_depth(of);
  double square = 0.0;
  std::size_t ties = 0;
  // Of second differences, in which a steady movement cancels.
  for (std::size_t w = 1; w + 1 < count; ++w) {
    ties += highest[w] == highest[w - 1] ? 1 : 0;
    square += std::pow(highest[w + 1] - 2.0 * highest[w] + highest[w - 1], 2) / 6.0 /
              static_cast<double>(count - 2);
  }
  return depth > 0.0 && 10 * ties <= count && std::sqrt(square) <= sharp * depth;
}

bool edge_moves(const Extremes& of) {
  const auto& highest = of.highest;
  const std::size_t count = highest.size();
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (std::size_t c = 0; c < chunks; ++c) {
    const std::size_t begin = c * count / chunks, end = (c + 1) * count / chunks;
    double mean = 0.0;
    for (std::size_t w = begin; w < end; ++w) mean += highest[w] / static_cast<double>(end - begin);
    low = std::min(low, mean);
    high = std::max(high, mean);
  }
  return high - low > moves * mean_depth(of);
}

}  // namespace

std::vector<MovingEdge> moving_edges(const Samples& events) {
  std::vector<MovingEdge> out;
  for (std::size_t p = 0; p < events.theta.cols(); ++p) {
    const auto order = in_order(events, p);
    for (std::size_t f = 0; f < events.features(); ++f)
      for (const bool upper : {true, false}) {
        const auto found = extremes(events, order, f, upper);
        if (sharp_edge(found) && edge_moves(found)) out.push_back({f, p, upper});
      }
  }
  return out;
}

bool ends_sharply(const Samples& events, std::size_t feature, bool upper) {
  for (std::size_t p = 0; p < events.theta.cols(); ++p)
    if (sharp_edge(extremes(events, in_order(events, p), feature, upper))) return true;
  return false;
}

}  // namespace neyman
