#include "neyman/inference/contour.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/distributed/tasks.hpp"
#include "neyman/inference/statistics.hpp"
#include "profile.hpp"
#include "profile_curve.hpp"

namespace neyman {

namespace {

constexpr std::size_t coarse_cells = 16;
constexpr double margin = 0.04;         // of the window, beyond the largest region
constexpr double wide = 3.5;            // cells across a region, for the grid to resolve it
constexpr std::size_t most_finer = 16;  // times as many cells, for regions that are not

/// A node of the grid, and an edge from it to the right or upwards.
using Node = std::pair<std::size_t, std::size_t>;
struct Edge {
  Node from;
  bool upwards = false;
  Node to() const {
    return upwards ? Node{from.first, from.second + 1} : Node{from.first + 1, from.second};
  }
  bool operator==(const Edge&) const = default;
  bool operator<(const Edge& other) const {
    return std::tie(from, upwards) < std::tie(other.from, other.upwards);
  }
};
using Nodes = std::map<Node, Profile::Value>;

struct Grid {
  std::vector<double> x, y;
};

/// Even steps over a window; for each of the maxima, which are ordered by height, the nearest inner
/// node is moved to it.
std::vector<double> coarse_line(const FitRange& window, const std::vector<Maximum>& maxima,
                                std::size_t parameter, const Parameter& range) {
  std::vector<double> out(coarse_cells + 1);
  const double step = (window.high - window.low) / static_cast<double>(coarse_cells);
  for (std::size_t i = 0; i < coarse_cells; ++i)
    out[i] = window.low + step * static_cast<double>(i);
  out.back() = window.high;
  std::vector<bool> moved(out.size(), false);
  for (const auto& maximum : maxima) {
    const double middle = 0.5 * (window.low + window.high);
    const double at = range.periodic ? middle + range.difference(maximum.point[parameter], middle)
                                     : maximum.point[parameter];
    if (!(at > window.low && at < window.high)) continue;
    const auto nearest = std::clamp<std::size_t>(
        static_cast<std::size_t>(std::lround((at - window.low) / step)), 1, coarse_cells - 1);
    if (moved[nearest]) continue;
    moved[nearest] = true;
    out[nearest] = at;
  }
  return out;
}

/// Each coarse step cut into so many parts.
std::vector<double> fine_line(const std::vector<double>& coarse, std::size_t parts) {
  std::vector<double> out;
  for (std::size_t i = 0; i + 1 < coarse.size(); ++i)
    for (std::size_t k = 0; k < parts; ++k)
      out.push_back(coarse[i] + (coarse[i + 1] - coarse[i]) * static_cast<double>(k) /
                                    static_cast<double>(parts));
  out.push_back(coarse.back());
  return out;
}

/// The width of the thinnest region, in cells: twice its area over its perimeter, which is the
/// radius of a circle and the width of a strip.
double thinnest(const std::vector<Polyline>& lines, const Grid& grid) {
  const double dx = (grid.x.back() - grid.x.front()) / static_cast<double>(grid.x.size() - 1);
  const double dy = (grid.y.back() - grid.y.front()) / static_cast<double>(grid.y.size() - 1);
  double out = std::numeric_limits<double>::infinity();
  for (const auto& line : lines) {
    double area = 0.0, perimeter = 0.0;
    for (std::size_t i = 0; i < line.x.size(); ++i) {
      const std::size_t j = (i + 1) % line.x.size();
      area += 0.5 * (line.x[i] * line.y[j] - line.x[j] * line.y[i]) / (dx * dy);
      perimeter += std::hypot((line.x[i] - line.x[j]) / dx, (line.y[i] - line.y[j]) / dy);
    }
    if (line.closed && perimeter > 0.0) out = std::min(out, 2.0 * std::abs(area) / perimeter);
  }
  return out;
}

/// Traces the lines of one threshold.
class Tracer {
 public:
  /// The grid has `parts` steps between coarse nodes, whose values are known by row and column.
  Tracer(const Profile& profile, const Grid& grid, std::size_t parts,
         const std::vector<std::vector<Profile::Value>>& coarse, double threshold)
      : profile_(profile), grid_(grid), parts_(parts), threshold_(threshold) {
    for (std::size_t j = 0; j < coarse.size(); ++j)
      for (std::size_t i = 0; i < coarse[j].size(); ++i)
        nodes_.emplace(Node{i * parts, j * parts}, coarse[j][i]);
  }

  void trace(Contour& out) {
    const std::size_t right = grid_.x.size() - 1, top = grid_.y.size() - 1;
    for (std::size_t j = 0; j <= top; j += parts_)
      for (std::size_t i = 0; i <= right; i += parts_) {
        if (i < right) seed({i, j}, {i + parts_, j}, out);
        if (j < top) seed({i, j}, {i, j + parts_}, out);
        const bool border = i == 0 || j == 0 || i == right || j == top;
        if (border && inside({i, j}, nullptr)) out.touches_bound = true;
      }
    out.failed += failed_;
    out.touches_edge = edge_;
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
        at, 0.0, 1.0, low, high, [](double l, double h) { return h - l <= 1e-4; }, most);
    const bool wall = std::max(at_a.statistic, at_b.statistic) >= Profile::most;
    if (wall && !edge_) edge_ = at(low < 0.0 ? p : q) < -0.1 * threshold_;
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
    constexpr double tolerance = 4e-3;  // of the threshold: two thousandths of the radius
    constexpr double straight = 0.02;   // of the chord: less is no bend but noise
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
      const double across = 0.5 * (low + high);
      if (std::abs(across) < straight) return;
      const auto found = place(across);
      bend(a, found, depth + 1, add);
      add(found);
      bend(found, b, depth + 1, add);
      return;
    }
  }

  const Profile& profile_;
  const Grid& grid_;
  std::size_t parts_;
  Nodes nodes_;  // of a std::map, whose references stay valid
  double threshold_;
  std::set<Edge> visited_;
  std::size_t failed_ = 0;
  bool edge_ = false;
};

FitRange choose_window(const Likelihood& likelihood, const Fit& best, std::size_t parameter,
                       double threshold, const std::optional<FitRange>& given, const char* name) {
  const auto& range = likelihood.parameters()[parameter];
  if (given && !range.periodic) {
    check_in_range("contours", fmt::format("{}.low", name), given->low, range.low, range.high);
    check_in_range("contours", fmt::format("{}.high", name), given->high, range.low, range.high);
  }
  if (given) {
    check_finite("contours", fmt::format("{}.low", name), given->low);
    check_finite("contours", fmt::format("{}.high", name), given->high);
    if (!(given->low < given->high))
      fail_argument("contours", fmt::format("{}.high", name), fmt::format("{}", given->high),
                    fmt::format("above {}", given->low));
    return *given;
  }
  const auto region = likelihood_interval(likelihood, best, parameter, 0.0, threshold);
  const double more = margin * (region.high - region.low);
  if (range.periodic) {
    // Over the seam, but not further than once round.
    const double middle = 0.5 * (region.low + region.high), half = 0.5 * range.range();
    return {std::max(middle - half, region.low - more),
            std::min(middle + half, region.high + more)};
  }
  return {region.low_at_bound ? range.low : std::max(range.low, region.low - more),
          region.high_at_bound ? range.high : std::min(range.high, region.high + more)};
}

/// For packing.hpp.
constexpr auto contour_fields = [](auto& bytes, auto& contour) {
  bytes(contour.level, contour.threshold, contour.touches_bound, contour.touches_edge,
        contour.failed, contour.message, contour.higher);
  bytes.list(contour.lines, [](auto& to, auto& line) { to(line.x, line.y, line.closed); });
};

constexpr int most_rounds_of_contours = 3;  // of beginning again from a higher maximum

/// Traces the lines of all contours; where ℓ is higher than at the fit, its highest point instead.
std::optional<Maximum> trace_all(const Likelihood& likelihood, const Fit& best, std::size_t first,
                                 std::size_t second, const ContourConfig& config,
                                 std::vector<Contour>& out, Tasks* tasks) {
  double largest = 0.0;
  for (const auto& contour : out) largest = std::max(largest, contour.threshold);
  const auto x_window = choose_window(likelihood, best, first, largest, config.x, "x");
  const auto y_window = choose_window(likelihood, best, second, largest, config.y, "y");
  if (!(x_window.low < x_window.high) || !(y_window.low < y_window.high)) return std::nullopt;
  std::vector<Maximum> maxima = {{best.point, best.log_likelihood}};
  for (std::size_t m = 1; m < best.maxima.size(); ++m)
    if (2.0 * (best.log_likelihood - best.maxima[m].log_likelihood) <= largest)
      maxima.push_back(best.maxima[m]);
  const auto x = coarse_line(x_window, maxima, first, likelihood.parameters()[first]);
  const auto y = coarse_line(y_window, maxima, second, likelihood.parameters()[second]);
  const Profile profile(likelihood, best, {first, second});
  using Row = std::vector<Profile::Value>;
  const auto one_row = [&](std::size_t j) {
    Row row;
    const auto at = [&](std::size_t i) { return std::array{x[i], y[j]}; };
    for (std::size_t i = 0; i < x.size(); ++i)
      row.push_back(profile(at(i), row.empty() ? nullptr : &row.back()));
    for (std::size_t i = x.size() - 1; i-- > 0;)
      row[i] = profile.improve(at(i), std::move(row[i]), row[i + 1]);
    return row;
  };
  const auto row_fields = [](auto& bytes, auto& row) {
    bytes.list(row,
               [](auto& to, auto& at) { to(at.statistic, at.log_likelihood, at.point, at.ok); });
  };
  const auto coarse = spread<Row>(tasks, y.size(), one_row, row_fields);
  std::size_t failed = 0;
  std::optional<Maximum> higher;
  double highest = best.log_likelihood + Profile::allowance(likelihood, best);
  for (const auto& row : coarse)
    for (const auto& value : row) {
      failed += value.ok ? 0 : 1;
      if (value.log_likelihood <= highest) continue;
      highest = value.log_likelihood;
      higher = Maximum{value.point, value.log_likelihood};
    }

  const std::size_t parts =
      std::max<std::size_t>(1, (config.cells + coarse_cells / 2) / coarse_cells);
  const auto trace = [&](std::size_t k) {
    Contour contour;
    contour.level = out[k].level;
    contour.threshold = out[k].threshold;
    for (std::size_t finer = 1; finer <= most_finer; finer *= 2) {
      const Grid grid{fine_line(x, parts * finer), fine_line(y, parts * finer)};
      contour.lines.clear();
      Tracer(profile, grid, parts * finer, coarse, contour.threshold).trace(contour);
      if (thinnest(contour.lines, grid) >= wide) break;
    }
    contour.failed += failed;
    return contour;
  };
  out = spread<Contour>(tasks, out.size(), trace, contour_fields);
  return higher;
}

}  // namespace

std::vector<Contour> contours(const Likelihood& likelihood, const Fit& best, std::size_t first,
                              std::size_t second, const ContourConfig& config, Tasks* tasks) {
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
    out.push_back(contour);
  }
  if (out.empty()) return out;

  Fit better = best;
  std::string message;
  for (int round = 0;; ++round) {
    if (const auto higher = trace_all(likelihood, better, first, second, config, out, tasks);
        higher && round < most_rounds_of_contours) {
      message = higher_words(likelihood, best, *higher);
      better = refit(likelihood, better, *higher);
      continue;
    }
    if (!message.empty())
      for (auto& contour : out) {
        contour.message = message;
        contour.higher = better.point;
      }
    return out;
  }
}

}  // namespace neyman
