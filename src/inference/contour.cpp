#include "neyman/inference/contour.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/inference/statistics.hpp"
#include "profile.hpp"

namespace neyman {

namespace {

constexpr std::size_t coarse_cells = 16;
constexpr double margin = 0.04;  // of the window, beyond the largest region

/// A node of the grid, and an edge from it to the right or upwards.
using Node = std::pair<std::size_t, std::size_t>;
struct Edge {
  Node from;
  bool upwards = false;
  Node to() const {
    return upwards ? Node{from.first, from.second + 1} : Node{from.first + 1, from.second};
  }
  auto operator<=>(const Edge&) const = default;
};
using Nodes = std::map<Node, Profile::Value>;

struct Grid {
  std::vector<double> x, y;
};

/// Even steps over a window, the nearest inner node moved to the estimate.
std::vector<double> grid_line(const FitRange& window, std::size_t cells, double estimate,
                              std::vector<std::size_t>& coarse) {
  std::vector<double> out(cells + 1);
  std::set<std::size_t> chosen;
  for (std::size_t i = 0; i <= cells; ++i)
    out[i] = i == cells ? window.high
                        : window.low + (window.high - window.low) * static_cast<double>(i) /
                                           static_cast<double>(cells);
  for (std::size_t i = 0; i <= coarse_cells; ++i)
    chosen.insert((i * cells + coarse_cells / 2) / coarse_cells);
  if (estimate > window.low && estimate < window.high) {
    const double place =
        (estimate - window.low) / (window.high - window.low) * static_cast<double>(cells);
    const auto nearest =
        std::clamp<std::size_t>(static_cast<std::size_t>(std::lround(place)), 1, cells - 1);
    out[nearest] = estimate;
    chosen.insert(nearest);
  }
  coarse.assign(chosen.begin(), chosen.end());
  return out;
}

/// Traces the lines of one threshold.
class Tracer {
 public:
  Tracer(const Profile& profile, const Grid& grid, Nodes nodes, double threshold)
      : profile_(profile), grid_(grid), nodes_(std::move(nodes)), threshold_(threshold) {}

  void trace(const std::vector<std::size_t>& coarse_x, const std::vector<std::size_t>& coarse_y,
             Contour& out) {
    for (std::size_t j = 0; j < coarse_y.size(); ++j)
      for (std::size_t i = 0; i < coarse_x.size(); ++i) {
        const Node here{coarse_x[i], coarse_y[j]};
        if (i + 1 < coarse_x.size()) seed(here, {coarse_x[i + 1], coarse_y[j]}, out);
        if (j + 1 < coarse_y.size()) seed(here, {coarse_x[i], coarse_y[j + 1]}, out);
        const bool border =
            i == 0 || j == 0 || i + 1 == coarse_x.size() || j + 1 == coarse_y.size();
        if (border && inside(here, nullptr)) out.touches_bound = true;
      }
    out.failed = failed_;
  }

 private:
  struct Vertex {
    double x, y;
    const Profile::Value* near;  // a node beside it, to start profiles from
  };

  const Profile::Value& node(Node at, const Profile::Value* neighbour) {
    const auto found = nodes_.find(at);
    if (found != nodes_.end()) return found->second;
    const double values[] = {grid_.x[at.first], grid_.y[at.second]};
    auto value = profile_(values, neighbour);
    failed_ += value.ok ? 0 : 1;
    return nodes_.emplace(at, std::move(value)).first->second;
  }
  bool inside(Node at, const Profile::Value* neighbour) {
    return node(at, neighbour).statistic <= threshold_;
  }

  /// Traces the line that crosses between two coarse nodes of one grid line, if there is one.
  void seed(Node low, Node high, Contour& out) {
    const bool upwards = low.first == high.first;
    const auto length = [&] { return upwards ? high.second - low.second : high.first - low.first; };
    const bool low_inside = inside(low, nullptr);
    if (low_inside == inside(high, nullptr)) return;
    while (length() > 1) {
      const Node middle = upwards ? Node{low.first, low.second + length() / 2}
                                  : Node{low.first + length() / 2, low.second};
      (inside(middle, &node(low, nullptr)) == low_inside ? low : high) = middle;
    }
    const Edge start{low, upwards};
    if (visited_.contains(start)) return;
    follow(start, out);
  }

  void follow(const Edge& start, Contour& out) {
    visited_.insert(start);
    std::vector<Vertex> forwards{vertex(start)}, backwards;
    bool closed = false;
    const auto cells = cells_of(start);
    for (std::size_t way = 0; way < cells.size() && !closed; ++way) {
      auto& line = way == 0 ? forwards : backwards;
      Edge edge = start;
      std::optional<Node> cell = cells[way];
      while (cell) {
        edge = partner(edge, *cell);
        if (edge == start) {
          closed = true;
          break;
        }
        visited_.insert(edge);
        line.push_back(vertex(edge));
        const Node from = *cell;
        cell.reset();
        for (const auto& other : cells_of(edge))
          if (other != from) cell = other;
      }
    }
    std::reverse(backwards.begin(), backwards.end());
    backwards.insert(backwards.end(), forwards.begin(), forwards.end());
    if (closed) backwards.push_back(backwards.front());
    Polyline polyline;
    polyline.closed = closed;
    const auto add = [&](const Vertex& v) {
      // A node that lies on the line is the end of several edges.
      if (!polyline.x.empty() && polyline.x.back() == v.x && polyline.y.back() == v.y) return;
      polyline.x.push_back(v.x);
      polyline.y.push_back(v.y);
    };
    for (std::size_t i = 0; i < backwards.size(); ++i) {
      if (i > 0) bend(backwards[i - 1], backwards[i], 0, add);
      add(backwards[i]);
    }
    if (closed && polyline.x.size() > 1) {
      polyline.x.pop_back();
      polyline.y.pop_back();
    }
    if (!closed) out.touches_bound = true;
    out.lines.push_back(std::move(polyline));
  }

  /// The cells, named by their lower left node, on both sides of an edge.
  std::vector<Node> cells_of(const Edge& edge) const {
    std::vector<Node> out;
    const auto [i, j] = edge.from;
    if (edge.upwards) {
      if (i + 1 < grid_.x.size()) out.push_back({i, j});
      if (i > 0) out.push_back({i - 1, j});
    } else {
      if (j + 1 < grid_.y.size()) out.push_back({i, j});
      if (j > 0) out.push_back({i, j - 1});
    }
    return out;
  }

  /// The edge by which the line that came in over `edge` leaves the cell.
  Edge partner(const Edge& edge, Node cell) {
    const auto [i, j] = cell;
    // Corners and edges counter-clockwise from the lower left: edge k joins corners k and k + 1.
    const std::array<Node, 4> corners{{{i, j}, {i + 1, j}, {i + 1, j + 1}, {i, j + 1}}};
    const std::array<Edge, 4> edges{
        {{{i, j}, false}, {{i + 1, j}, true}, {{i, j + 1}, false}, {{i, j}, true}}};
    const Profile::Value& near = node(edge.from, nullptr);
    std::array<bool, 4> in{};
    for (std::size_t k = 0; k < 4; ++k) in[k] = inside(corners[k], &near);
    std::size_t from = 0;
    while (edges[from] != edge) ++from;
    std::vector<std::size_t> others;
    for (std::size_t k = 0; k < 4; ++k)
      if (k != from && in[k] != in[(k + 1) % 4]) others.push_back(k);
    if (others.size() == 1) return edges[others[0]];
    // A saddle: the centre says which of two opposite corners are joined. The line cuts off the
    // corner of `edge` that is unlike the centre.
    const bool centre = centre_inside(cell, near);
    const std::size_t cut = in[from] == centre ? (from + 1) % 4 : from;
    return edges[cut == from ? (from + 3) % 4 : (from + 1) % 4];
  }

  bool centre_inside(Node cell, const Profile::Value& near) {
    const auto [i, j] = cell;
    const double values[] = {0.5 * (grid_.x[i] + grid_.x[i + 1]),
                             0.5 * (grid_.y[j] + grid_.y[j + 1])};
    const auto value = profile_(values, &near);
    failed_ += value.ok ? 0 : 1;
    return value.statistic <= threshold_;
  }

  /// Where −2 log Λ has the threshold on an edge.
  Vertex vertex(const Edge& edge) {
    const Node a = edge.from, b = edge.to();
    const auto& at_a = node(a, nullptr);
    const auto& at_b = node(b, &at_a);
    const double ends[2][2] = {{grid_.x[a.first], grid_.y[a.second]},
                               {grid_.x[b.first], grid_.y[b.second]}};
    const auto place = [&](double t) {
      return Vertex{ends[0][0] + t * (ends[1][0] - ends[0][0]),
                    ends[0][1] + t * (ends[1][1] - ends[0][1]), t < 0.5 ? &at_a : &at_b};
    };
    const auto at = [&](double t) { return excess(place(t)); };
    const double low = cut(at_a.statistic), high = cut(at_b.statistic);
    if (low == 0.0) return place(0.0);
    if (high == 0.0) return place(1.0);
    std::uintmax_t most = 40;
    const auto [p, q] = boost::math::tools::toms748_solve(
        at, 0.0, 1.0, low, high, [](double l, double h) { return h - l <= 1e-6; }, most);
    return place(0.5 * (p + q));
  }

  /// −2 log Λ above the threshold, with walls cut.
  double cut(double statistic) const {
    return std::min(statistic, 100.0 * (1.0 + threshold_)) - threshold_;
  }
  double excess(const Vertex& v) {
    const double values[] = {v.x, v.y};
    const auto value = profile_(values, v.near);
    failed_ += value.ok ? 0 : 1;
    return cut(value.statistic);
  }

  /// Adds vertices between two where the line bends more than a chord may: at the tips of thin
  /// regions. The new one is looked for across the middle of the chord.
  void bend(const Vertex& a, const Vertex& b, int depth,
            const std::function<void(const Vertex&)>& add) {
    constexpr int deepest = 8;
    constexpr double tolerance = 2e-3;  // of the threshold: a thousandth of the radius
    const double dx = (grid_.x.back() - grid_.x.front()) / static_cast<double>(grid_.x.size() - 1);
    const double dy = (grid_.y.back() - grid_.y.front()) / static_cast<double>(grid_.y.size() - 1);
    // Across the chord, in units of cells, as long as the chord.
    const double across_x = -(b.y - a.y) / dy * dx, across_y = (b.x - a.x) / dx * dy;
    const auto place = [&](double t) {
      return Vertex{std::clamp(0.5 * (a.x + b.x) + t * across_x, grid_.x.front(), grid_.x.back()),
                    std::clamp(0.5 * (a.y + b.y) + t * across_y, grid_.y.front(), grid_.y.back()),
                    a.near};
    };
    const double middle = excess(place(0.0));
    if (depth == deepest || std::abs(middle) <= tolerance * threshold_) return;
    // The side on which −2 log Λ changes towards the threshold, away from the region's far side.
    const double before = excess(place(-0.25)), after = excess(place(0.25));
    const double side = (middle < 0.0) == (before > after) ? -1.0 : 1.0;
    double inner = 0.0, inner_excess = middle;
    for (const double reach : {0.25, 1.0, 3.0, 8.0}) {
      const double outer = side * reach;
      const double outer_excess =
          reach > 0.25 ? excess(place(outer)) : (side < 0.0 ? before : after);
      if ((outer_excess > 0.0) == (middle > 0.0)) {
        inner = outer;
        inner_excess = outer_excess;
        continue;
      }
      std::uintmax_t most = 20;
      const bool swap = outer < inner;
      const auto [low, high] = boost::math::tools::toms748_solve(
          [&](double t) { return excess(place(t)); }, swap ? outer : inner, swap ? inner : outer,
          swap ? outer_excess : inner_excess, swap ? inner_excess : outer_excess,
          [](double l, double h) { return h - l <= 1e-4; }, most);
      const auto found = place(0.5 * (low + high));
      bend(a, found, depth + 1, add);
      add(found);
      bend(found, b, depth + 1, add);
      return;
    }
  }

  const Profile& profile_;
  const Grid& grid_;
  Nodes nodes_;  // of a std::map, whose references stay valid
  double threshold_;
  std::set<Edge> visited_;
  std::size_t failed_ = 0;
};

FitRange choose_window(const Likelihood& likelihood, const Fit& best, std::size_t parameter,
                       double threshold, const std::optional<FitRange>& given, const char* name) {
  const auto& range = likelihood.parameters()[parameter];
  if (given) {
    check_in_range("contours", fmt::format("{}.low", name), given->low, range.low, range.high);
    check_in_range("contours", fmt::format("{}.high", name), given->high, range.low, range.high);
    if (!(given->low < given->high))
      fail_argument("contours", fmt::format("{}.high", name), fmt::format("{}", given->high),
                    fmt::format("above {}", given->low));
    return *given;
  }
  const auto region = likelihood_interval(likelihood, best, parameter, 0.0, threshold);
  const double more = margin * (region.high - region.low);
  return {region.low_at_bound ? range.low : std::max(range.low, region.low - more),
          region.high_at_bound ? range.high : std::min(range.high, region.high + more)};
}

/// How many times as many cells a thin ellipse needs.
double thinness(const Fit& best, std::size_t first, std::size_t second) {
  const double a = best.statistical_error(first), b = best.statistical_error(second);
  if (!(a > 0.0) || !(b > 0.0)) return 1.0;
  const double correlation = best.covariance(first, second) / (a * b);
  return std::clamp(1.0 / std::sqrt(std::max(1e-6, 1.0 - correlation * correlation)), 1.0, 8.0);
}

}  // namespace

std::vector<Contour> contours(const Likelihood& likelihood, const Fit& best, std::size_t first,
                              std::size_t second, const ContourConfig& config) {
  const std::size_t dimension = likelihood.parameters().size();
  for (const std::size_t parameter : {first, second})
    if (parameter >= dimension)
      fail_argument("contours", "parameter", std::to_string(parameter),
                    fmt::format("below {}", dimension));
  if (first == second)
    fail_argument("contours", "second", std::to_string(second), "another parameter than the first");
  check_at_least("contours", "cells", config.cells, 4);
  if (!config.thresholds.empty())
    check_same_size("contours", "thresholds", config.thresholds.size(), config.levels.size(),
                    "one a level");
  std::vector<Contour> out;
  double largest = 0.0;
  for (std::size_t k = 0; k < config.levels.size(); ++k) {
    Contour contour;
    contour.level = config.levels[k];
    check_in_range("contours", fmt::format("levels[{}]", k), contour.level, 1e-6, 1.0 - 1e-12);
    if (config.thresholds.empty()) {
      contour.threshold = chi2_quantile(contour.level, 2.0);
    } else {
      contour.threshold = config.thresholds[k];
      check_positive("contours", fmt::format("thresholds[{}]", k), contour.threshold);
    }
    largest = std::max(largest, contour.threshold);
    out.push_back(contour);
  }
  if (out.empty()) return out;

  const auto x_window = choose_window(likelihood, best, first, largest, config.x, "x");
  const auto y_window = choose_window(likelihood, best, second, largest, config.y, "y");
  if (!(x_window.low < x_window.high) || !(y_window.low < y_window.high)) return out;
  const auto cells = static_cast<std::size_t>(
      std::lround(static_cast<double>(config.cells) * thinness(best, first, second)));
  Grid grid;
  std::vector<std::size_t> coarse_x, coarse_y;
  grid.x = grid_line(x_window, cells, best.point[first], coarse_x);
  grid.y = grid_line(y_window, cells, best.point[second], coarse_y);

  const Profile profile(likelihood, best, {first, second});
  std::vector<std::vector<Profile::Value>> rows(coarse_y.size());
  parallel_tasks(coarse_y.size(), [&](std::size_t j) {
    for (std::size_t i = 0; i < coarse_x.size(); ++i) {
      const double values[] = {grid.x[coarse_x[i]], grid.y[coarse_y[j]]};
      rows[j].push_back(profile(values, i == 0 ? nullptr : &rows[j].back()));
    }
  });
  Nodes nodes;
  std::size_t failed = 0;
  for (std::size_t j = 0; j < coarse_y.size(); ++j)
    for (std::size_t i = 0; i < coarse_x.size(); ++i) {
      failed += rows[j][i].ok ? 0 : 1;
      nodes.emplace(Node{coarse_x[i], coarse_y[j]}, std::move(rows[j][i]));
    }
  parallel_tasks(out.size(), [&](std::size_t k) {
    Tracer(profile, grid, nodes, out[k].threshold).trace(coarse_x, coarse_y, out[k]);
    out[k].failed += failed;
  });
  return out;
}

}  // namespace neyman
