#include "neyman/simulators/bin_edges.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "neyman/core/check.hpp"
#include "neyman/core/matrix.hpp"
#include "simulators/events.hpp"

namespace neyman {

namespace {

constexpr std::size_t largest_cells = 2000;  // of Bayesian blocks, whose search is quadratic

void check(std::string_view function, std::span<const double> values,
           std::span<const double> weights) {
  detail::check_events(function, MatrixView(values.data(), values.size(), 1), weights);
}

/// A bin around a constant.
std::vector<double> around(double value) {
  const double reach =
      std::max(0.5, 4.0 * std::numeric_limits<double>::epsilon() * std::abs(value));
  return {value - reach, value + reach};
}

/// Different values in rising order with the weight of each; values of weight 0 do not count.
struct Distinct {
  std::vector<double> values, weights;
  double total = 0.0;
};

Distinct distinct(std::span<const double> values, std::span<const double> weights) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  Distinct out;
  for (const std::size_t i : order) {
    const double weight = weights.empty() ? 1.0 : weights[i];
    if (weight == 0.0) continue;
    out.total += weight;
    if (!out.values.empty() && out.values.back() == values[i]) {
      out.weights.back() += weight;
    } else {
      out.values.push_back(values[i]);
      out.weights.push_back(weight);
    }
  }
  return out;
}

/// Cells with rising edges and the weight in each.
struct Cells {
  std::vector<double> edges, weights;
};

/// At most `most` cells of about equal probability, each with at least one of the values.
Cells cells_of(const Distinct& data, std::size_t most) {
  Cells out;
  out.edges.push_back(data.values.front());
  double sum = 0.0, in_cell = 0.0;
  std::size_t made = 0;
  for (std::size_t i = 0; i < data.values.size(); ++i) {
    sum += data.weights[i];
    in_cell += data.weights[i];
    const bool last = i + 1 == data.values.size();
    // Rounding must not push a cut that falls on a value behind the next one.
    const double share = sum / data.total * static_cast<double>(most) + 1e-9;
    if (!last && share < static_cast<double>(made + 1)) continue;
    const double edge = last ? data.values[i] : 0.5 * data.values[i] + 0.5 * data.values[i + 1];
    if (!last && (!(edge > out.edges.back()) || !(edge < data.values.back()))) continue;
    out.edges.push_back(edge);
    out.weights.push_back(in_cell);
    in_cell = 0.0;
    made = std::max(made + 1, static_cast<std::size_t>(share));
  }
  return out;
}

}  // namespace

std::vector<double> uniform_edges(std::span<const double> values, std::size_t bins) {
  check("uniform_edges", values, {});
  check_at_least("uniform_edges", "bins", bins, 1);
  const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
  double low = *lowest, high = *highest;
  if (low == high) {
    const auto bin = around(low);
    low = bin[0];
    high = bin[1];
  }
  std::vector<double> edges{low};
  for (std::size_t i = 1; i < bins; ++i) {
    const double t = static_cast<double>(i) / static_cast<double>(bins);
    const double edge = low * (1.0 - t) + high * t;
    if (edge > edges.back() && edge < high) edges.push_back(edge);
  }
  edges.push_back(high);
  return edges;
}

std::vector<double> equal_probability_edges(std::span<const double> values,
                                            std::span<const double> weights, std::size_t bins) {
  check("equal_probability_edges", values, weights);
  check_at_least("equal_probability_edges", "bins", bins, 1);
  const auto data = distinct(values, weights);
  if (data.values.size() == 1) return around(data.values.front());
  return cells_of(data, bins).edges;
}

std::vector<double> bayesian_blocks_edges(std::span<const double> values,
                                          std::span<const double> weights, double false_alarm) {
  check("bayesian_blocks_edges", values, weights);
  if (!(false_alarm > 0.0 && false_alarm < 1.0))
    fail_argument("bayesian_blocks_edges", "false_alarm", std::to_string(false_alarm),
                  "strictly between 0 and 1");
  const auto data = distinct(values, weights);
  if (data.values.size() == 1) return around(data.values.front());
  auto [edges, counts] = cells_of(
      data, data.values.size() > largest_cells ? largest_cells : std::numeric_limits<int>::max());
  double effective = static_cast<double>(values.size());
  if (!weights.empty()) {
    double squares = 0.0;
    for (const double w : weights) squares += w * w;
    effective = data.total * data.total / squares;
  }
  for (double& count : counts) count *= effective / data.total;
  const double prior = 4.0 - std::log(73.53 * false_alarm * std::pow(effective, -0.478));

  // best[r] is the fitness of the best partition of the first r cells, and begins[r] where its
  // last block begins.
  const std::size_t n = counts.size();
  std::vector<double> best(n + 1, 0.0);
  std::vector<std::size_t> begins(n + 1, 0);
  for (std::size_t r = 1; r <= n; ++r) {
    best[r] = -std::numeric_limits<double>::infinity();
    double inside = 0.0;
    for (std::size_t i = r; i-- > 0;) {
      inside += counts[i];
      const double fitness = best[i] + inside * std::log(inside / (edges[r] - edges[i])) - prior;
      if (fitness > best[r]) {
        best[r] = fitness;
        begins[r] = i;
      }
    }
  }
  std::vector<double> blocks{edges[n]};
  for (std::size_t r = n; r > 0; r = begins[r]) blocks.push_back(edges[begins[r]]);
  std::reverse(blocks.begin(), blocks.end());
  return blocks;
}

}  // namespace neyman
