#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "neyman/reports/symbol.hpp"
#include "reports/figure_parts.hpp"
#include "reports/words.hpp"

namespace neyman::reports {

namespace {

/// The surfaces over one pair of parameters.
struct Pair {
  std::size_t first, second;
  std::vector<const SurfaceReport*> surfaces = {};
};

std::vector<Pair> pairs_of(const Results& r) {
  std::vector<Pair> out;
  for (const auto& report : r.surfaces) {
    const auto& s = report.surface;
    if (s.first >= r.parameters.size() || s.second >= r.parameters.size()) continue;
    const auto same = [&](const Pair& p) { return p.first == s.first && p.second == s.second; };
    auto found = std::find_if(out.begin(), out.end(), same);
    if (found == out.end()) found = out.insert(out.end(), {s.first, s.second});
    found->surfaces.push_back(&report);
  }
  return out;
}

bool is_exact(const SurfaceReport& report) { return report.label == "exact"; }

double largest_threshold(const Pair& pair) {
  double out = 0.0;
  for (const auto* report : pair.surfaces)
    for (const auto& contour : report->contours) out = std::max(out, contour.threshold);
  return out;
}

/// Where the colours end: beyond the contours by as much as shows how the surface goes on.
double cap_of(const Pair& pair) {
  const double top = largest_threshold(pair);
  return top > 0.0 ? std::ceil(2.5 * top) : 30.0;
}

bool regular(const std::vector<double>& grid) {
  if (grid.size() < 2) return false;
  const double step = (grid.back() - grid.front()) / static_cast<double>(grid.size() - 1);
  if (!(step > 0.0) || !std::isfinite(step)) return false;
  for (std::size_t i = 1; i < grid.size(); ++i)
    if (!(std::abs(grid[i] - grid[i - 1] - step) <= 1e-7 * step)) return false;
  return true;
}

/// The values as colours up to `cap`; what is not finite is as bad as can be.
std::optional<Heatmap> heatmap_of(const Surface& s, const Matrix& values, double cap,
                                  const char* label) {
  if (!regular(s.x) || !regular(s.y) || values.rows() != s.y.size() || values.cols() != s.x.size())
    return std::nullopt;
  Heatmap map;
  map.x = s.x;
  map.y = s.y;
  map.label = label;
  double largest = 0.0;
  for (const double value : values.values()) {
    map.values.push_back(std::isfinite(value) ? std::min(value, cap) : cap);
    largest = std::max(largest, map.values.back());
  }
  if (largest > 0.0) map.range = Range{0.0, largest};
  return map;
}

Contour contour_of(const neyman::Contour& contour, Role role, Dash dash, double width) {
  Contour out;
  out.role = role;
  out.dash = dash;
  out.width = width;
  for (const auto& line : contour.lines) {
    auto& points = out.lines.emplace_back();
    for (std::size_t i = 0; i < line.x.size(); ++i) points.emplace_back(line.x[i], line.y[i]);
    if (line.closed && !points.empty()) points.push_back(points.front());
  }
  return out;
}

/// A dot with a light rim, which shows on any colour.
void add_dot(Panel& panel, const Pair& pair, const std::vector<double>& point, const char* label,
             Role role) {
  if (std::max(pair.first, pair.second) >= point.size()) return;
  const double x = point[pair.first], y = point[pair.second];
  if (!std::isfinite(x) || !std::isfinite(y)) return;
  panel.series.emplace_back(Points{{x}, {y}, "", Role::light, {}, {}, 6.0});
  panel.series.emplace_back(Points{{x}, {y}, label, role, {}, {}, 4.4});
}

std::vector<double> truth_of(const Results& r) {
  std::vector<double> out;
  for (const auto& parameter : r.parameters) out.push_back(parameter.truth.value_or(std::nan("")));
  return out;
}

/// Truth, exact and learned estimate. A surface of its own has an estimate of its own.
void add_dots(Panel& panel, const Results& r, const Pair& pair, const SurfaceReport* report) {
  add_dot(panel, pair, truth_of(r), "truth", Role::truth);
  if (r.exact_fit)
    add_dot(panel, pair, r.exact_fit->fit.point, "exact estimate", Role::exact_estimate);
  const bool own = report != nullptr && !is_exact(*report) && !report->minimum.empty();
  add_dot(panel, pair, own ? report->minimum : r.fit.fit.point, "learned estimate",
          Role::learned_estimate);
}

void add_evaluated(Panel& panel, const Pair& pair, const SurfaceReport& report) {
  if (std::max(pair.first, pair.second) >= report.evaluated.cols()) return;
  Points points;
  points.role = Role::light;
  points.size = 2.0;
  for (std::size_t i = 0; i < report.evaluated.rows(); ++i) {
    const double x = report.evaluated(i, pair.first), y = report.evaluated(i, pair.second);
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    points.x.push_back(x);
    points.y.push_back(y);
  }
  if (!points.x.empty()) panel.series.emplace_back(std::move(points));
}

Panel empty_panel(const Results& r, const Pair& pair) {
  Panel panel;
  panel.x_label = symbol(r.parameters[pair.first].name);
  panel.y_label = symbol(r.parameters[pair.second].name);
  return panel;
}

/// All grids of a pair, with half a cell around them.
void set_window(Panel& panel, const Pair& pair) {
  const auto window = [&](std::vector<double> Surface::*grid) -> std::optional<Range> {
    std::optional<Range> out;
    for (const auto* report : pair.surfaces) {
      const auto& values = report->surface.*grid;
      if (values.size() < 2) continue;
      const double rim =
          0.5 * (values.back() - values.front()) / static_cast<double>(values.size() - 1);
      const Range own{values.front() - rim, values.back() + rim};
      out = out ? Range{std::min(out->low, own.low), std::max(out->high, own.high)} : own;
    }
    return out && out->low < out->high ? out : std::nullopt;
  };
  panel.x_range = window(&Surface::x);
  panel.y_range = window(&Surface::y);
}

std::optional<Panel> surface_panel(const Results& r, const Pair& pair, const SurfaceReport& report,
                                   const Matrix& values, double cap, const char* label) {
  auto map = heatmap_of(report.surface, values, cap, label);
  if (!map) return std::nullopt;
  Panel panel = empty_panel(r, pair);
  panel.title = report.label;
  set_window(panel, pair);
  panel.series.emplace_back(std::move(*map));
  for (const auto& contour : report.contours)
    if (!contour.lines.empty())
      panel.series.emplace_back(contour_of(contour, Role::light, Dash::solid, 1.7));
  add_evaluated(panel, pair, report);
  return panel;
}

// -------------------------------------------------------------------------------- in words

std::string levels_words(const Pair& pair) {
  std::vector<std::string> levels;
  for (const auto* report : pair.surfaces)
    for (const auto& contour : report->contours) {
      auto words = sigma_words(contour.level);
      if (std::find(levels.begin(), levels.end(), words) == levels.end())
        levels.push_back(std::move(words));
    }
  return join_words(levels);
}

std::string over_words(const Results& r, const Pair& pair) {
  std::vector<std::string> others;
  for (std::size_t p = 0; p < r.parameters.size(); ++p)
    if (p != pair.first && p != pair.second) others.push_back(symbol(r.parameters[p].name));
  return fmt::format("{} and {}{}", symbol(r.parameters[pair.first].name),
                     symbol(r.parameters[pair.second].name),
                     others.empty() ? "" : " (" + join_words(others) + " profiled)");
}

std::string reach_words(const Pair& pair) {
  for (const auto* report : pair.surfaces)
    for (const auto& contour : report->contours)
      if (contour.touches_bound) return " A region reaches the edge of the window or of a range.";
  for (const auto* report : pair.surfaces)
    for (const auto& contour : report->contours)
      if (contour.touches_edge) return " A region ends where parameters are no longer allowed.";
  return {};
}

/// The differences from the exact surface where that is below the largest threshold.
std::string difference_words(const Pair& pair) {
  const auto exact = std::find_if(pair.surfaces.begin(), pair.surfaces.end(),
                                  [](const auto* report) { return is_exact(*report); });
  const double top = largest_threshold(pair);
  if (exact == pair.surfaces.end() || !(top > 0.0)) return {};
  const auto& truth = (*exact)->surface;
  std::vector<std::string> parts;
  for (const auto* report : pair.surfaces) {
    const auto& s = report->surface;
    if (report == *exact || s.x != truth.x || s.y != truth.y ||
        s.statistic.values().size() != truth.statistic.values().size())
      continue;
    double sum = 0.0, count = 0.0;
    for (std::size_t i = 0; i < s.statistic.values().size(); ++i) {
      const double expected = truth.statistic.values()[i];
      if (!(expected <= top)) continue;
      sum += std::pow(s.statistic.values()[i] - expected, 2);
      count += 1.0;
    }
    if (count > 0.0)
      parts.push_back(fmt::format("{} ({})", number(std::sqrt(sum / count), 2), report->label));
  }
  if (parts.empty()) return {};
  return fmt::format(
      " Inside the largest contour of the exact surface, the RMS difference from it is {}.",
      join_words(parts));
}

std::string pair_stem(const Results& r, const Pair& pair, const char* kind) {
  return fmt::format("{}-{}-{}", kind, r.parameters[pair.first].name,
                     r.parameters[pair.second].name);
}

// ------------------------------------------------------------------------------ the figures

std::optional<Figure> surface_figure(const Results& r, const Pair& pair) {
  const double cap = cap_of(pair);
  Figure figure;
  figure.name = pair_stem(r, pair, "surface");
  figure.title = "The likelihood surface";
  std::size_t evaluated = 0;
  for (const auto* report : pair.surfaces) {
    auto panel = surface_panel(r, pair, *report, report->surface.statistic, cap, "−2 log Λ");
    if (!panel) continue;
    add_dots(*panel, r, pair, report);
    figure.panels.push_back(std::move(*panel));
    evaluated = std::max(evaluated, report->evaluated.rows());
    if (auto band = surface_panel(r, pair, *report, report->deviation,
                                  std::numeric_limits<double>::max(), "standard deviation")) {
      band->title += ", standard deviation";
      figure.panels.push_back(std::move(*band));
    }
  }
  if (figure.panels.empty()) return std::nullopt;
  figure.columns = std::min<std::size_t>(figure.panels.size(), 2);
  figure.panel_width = figure.columns == 1 ? wide : half;
  figure.panel_height = figure.columns == 1 ? 450.0 : 390.0;
  const std::string levels = levels_words(pair);
  figure.caption =
      fmt::format("−2 log Λ over {}, in colours up to {}", over_words(r, pair), number(cap, 3));
  if (!levels.empty()) figure.caption += "; white, the contours of " + levels;
  if (evaluated > 0)
    figure.caption +=
        fmt::format("; small white dots, the {} at which the likelihood was evaluated",
                    count_words(evaluated, "point"));
  figure.caption += "." + difference_words(pair) + reach_words(pair);
  return figure;
}

std::optional<Figure> contours_figure(const Results& r, const Pair& pair) {
  static constexpr std::array others = {Role::calibrated, Role::third, Role::decomposed,
                                        Role::second, Role::numerator};
  Panel panel = empty_panel(r, pair);
  std::size_t drawn = 0, other = 0;
  for (const auto* report : pair.surfaces) {
    const bool exact = is_exact(*report);
    const Role role = exact                        ? Role::exact
                      : report->label == "learned" ? Role::approximate
                                                   : others[other++ % others.size()];
    double width = 2.2;
    std::string label = report->label;
    for (const auto& contour : report->contours) {
      if (contour.lines.empty()) continue;
      auto lines = contour_of(contour, role, exact ? Dash::dashed : Dash::solid, width);
      lines.label = label;
      panel.series.emplace_back(std::move(lines));
      width = std::max(1.1, width - 0.5);
    }
    if (width < 2.2) ++drawn;
  }
  if (drawn < 2) return std::nullopt;
  add_dots(panel, r, pair, nullptr);
  Figure figure;
  figure.name = pair_stem(r, pair, "contours");
  figure.title = "Contours";
  figure.panels = {std::move(panel)};
  figure.panel_width = wide;
  figure.panel_height = 460.0;
  figure.caption = fmt::format("Contours of {} of {}, thinner for higher levels{}.",
                               levels_words(pair), over_words(r, pair),
                               std::any_of(pair.surfaces.begin(), pair.surfaces.end(),
                                           [](const auto* s) { return is_exact(*s); })
                                   ? "; dashed, those of the exact likelihood"
                                   : "");
  return figure;
}

}  // namespace

std::vector<Figure> surface_figures(const Results& r) {
  std::vector<Figure> out;
  for (const auto& pair : pairs_of(r)) {
    if (auto figure = surface_figure(r, pair)) out.push_back(std::move(*figure));
    if (auto figure = contours_figure(r, pair)) out.push_back(std::move(*figure));
  }
  return out;
}

std::optional<Figure> correlation_figure(const Results& r) {
  const std::size_t n = r.parameters.size();
  const Matrix rho = correlation_of(r.fit.fit);
  if (n < 3 || rho.rows() != n) return std::nullopt;
  Panel panel;
  Heatmap map;
  map.range = Range{-1.0, 1.0};
  map.colours = Colours::diverging;
  map.label = "correlation";
  map.values.resize(n * n);
  panel.x_ticks.emplace();
  panel.y_ticks.emplace();
  std::vector<Annotation> words;
  std::size_t a = 0, b = 1;
  bool bound = false;
  for (std::size_t p = 0; p < n; ++p) {
    const double row = static_cast<double>(n - 1 - p);  // the first parameter on top
    map.x.push_back(static_cast<double>(p));
    map.y.push_back(static_cast<double>(p));
    const std::string name = symbol(r.parameters[p].name);
    panel.x_ticks->push_back({static_cast<double>(p), name});
    panel.y_ticks->push_back({row, name});
    bound = bound || rho(p, p) == 0.0;
    for (std::size_t q = 0; q < n; ++q) {
      const double value = std::isfinite(rho(p, q)) ? rho(p, q) : 0.0;
      map.values[(n - 1 - p) * n + q] = value;
      const bool none = rho(p, p) == 0.0 || rho(q, q) == 0.0;
      words.push_back({static_cast<double>(q), row, none ? "—" : correlation_words(rho(p, q)),
                       false, Align::centre, std::abs(value) > 0.75 ? Role::light : Role::dark});
      if (q > p && std::abs(value) > std::abs(rho(a, b))) a = p, b = q;
    }
  }
  panel.series.emplace_back(std::move(map));
  for (auto& word : words) panel.series.emplace_back(std::move(word));
  Figure figure;
  figure.name = "correlation";
  figure.title = "Correlation of the estimates";
  figure.panel_width = std::min(wide, 190.0 + 70.0 * static_cast<double>(n));
  figure.panel_height = std::min(460.0, 90.0 + 62.0 * static_cast<double>(n));
  figure.caption =
      fmt::format("From the covariance at the fit{}. The largest is that of {} and {}, {}.{}",
                  r.fit.fit.simulation_covariance.empty() ? "" : ", finite simulation included",
                  symbol(r.parameters[a].name), symbol(r.parameters[b].name),
                  correlation_words(rho(a, b)), bound ? " A parameter at a bound has none." : "");
  figure.panels = {std::move(panel)};
  return figure;
}

}  // namespace neyman::reports
