#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "neyman/reports/symbol.hpp"
#include "reports/figure_parts.hpp"
#include "reports/words.hpp"

namespace neyman::reports {

namespace {

// ------------------------------------------------------------------------------ diagnostics

/// What a series is compared with, by the names that diagnostics give it.
bool is_expectation(const Diagnostic::Series& series) {
  static constexpr std::array names = {"expected", "nominal", "no separation"};
  return std::find(names.begin(), names.end(), series.name) != names.end();
}

/// A series without the points that are not finite, and with few enough of them to draw.
Diagnostic::Series drawable(const Diagnostic::Series& series) {
  constexpr std::size_t most = 1500;
  const bool bars = series.low.size() == series.y.size() && series.high.size() == series.y.size();
  const std::size_t count = std::min(series.x.size(), series.y.size());
  std::vector<std::size_t> good;
  for (std::size_t i = 0; i < count; ++i)
    if (std::isfinite(series.x[i]) && std::isfinite(series.y[i])) good.push_back(i);
  Diagnostic::Series out{series.name, series.style, {}, {}, {}, {}};
  for (const std::size_t k : thinned(good.size(), most)) {
    const std::size_t i = good[k];
    out.x.push_back(series.x[i]);
    out.y.push_back(series.y[i]);
    if (!bars) continue;
    const auto end = [&](double value) { return std::isfinite(value) ? value : series.y[i]; };
    out.low.push_back(std::min(end(series.low[i]), series.y[i]));
    out.high.push_back(std::max(end(series.high[i]), series.y[i]));
  }
  return out;
}

/// Edges that increase, and a finite value between each two of them.
bool has_bins(const Diagnostic::Series& series) {
  const auto increases = [&](std::size_t i) { return series.x[i + 1] > series.x[i]; };
  if (series.y.empty() || series.x.size() != series.y.size() + 1) return false;
  for (std::size_t i = 0; i < series.y.size(); ++i)
    if (!increases(i) || !std::isfinite(series.y[i])) return false;
  return std::isfinite(series.x.front()) && std::isfinite(series.x.back());
}

void add_series(Panel& panel, const Diagnostic::Series& given, Role role) {
  using Style = Diagnostic::Series::Style;
  if (given.style == Style::steps && has_bins(given)) {
    panel.series.emplace_back(Histogram{given.x, given.y, given.name, Role::denominator, true, {}});
    return;
  }
  const auto series = drawable(given);
  if (series.x.empty()) return;
  if (is_expectation(given)) {
    panel.series.emplace_back(
        Line{series.x, series.y, series.name, Role::reference, Dash::dotted, 1.6});
  } else if (series.name == "exact") {
    panel.series.emplace_back(
        Line{series.x, series.y, series.name, Role::exact, Dash::dashed, 1.6});
  } else if (series.style == Style::points) {
    if (!series.low.empty()) {
      Contour bars;
      bars.role = role;
      bars.width = 1.3;
      for (std::size_t i = 0; i < series.x.size(); ++i)
        bars.lines.push_back({{series.x[i], series.low[i]}, {series.x[i], series.high[i]}});
      panel.series.emplace_back(std::move(bars));
    }
    const double size = series.x.size() > 100 ? 1.6 : 2.8;
    panel.series.emplace_back(Points{series.x, series.y, series.name, role, {}, {}, size});
  } else {
    if (!series.low.empty())
      panel.series.emplace_back(Band{series.x, series.low, series.high, "", role});
    panel.series.emplace_back(Line{series.x, series.y, series.name, role, Dash::solid, 1.8});
  }
}

/// Errors of densities may reach below zero; the axis does not.
void stand_on_zero(Panel& panel) {
  const auto stands = [](const Series& series) {
    const auto* histogram = std::get_if<Histogram>(&series);
    return histogram != nullptr &&
           *std::min_element(histogram->values.begin(), histogram->values.end()) >= 0.0;
  };
  if (std::none_of(panel.series.begin(), panel.series.end(), stands)) return;
  const Range range = frame_of(panel).y;
  if (range.high > 0.0) panel.y_range = Range{0.0, range.high};
}

std::optional<Panel> diagnostic_panel(const Diagnostic::Panel& given) {
  static constexpr std::array cycle = {Role::approximate, Role::calibrated, Role::decomposed,
                                       Role::third,       Role::second,     Role::numerator};
  Panel panel;
  panel.title = given.title;
  panel.x_label = given.x_label;
  panel.y_label = given.y_label;
  std::size_t next = 0;
  for (const auto& series : given.series) {
    const bool fixed = is_expectation(series) || series.style == Diagnostic::Series::Style::steps;
    add_series(panel, series, cycle[next % cycle.size()]);
    next += fixed ? 0 : 1;
  }
  if (panel.series.empty()) return std::nullopt;
  // No band over a line.
  std::stable_partition(panel.series.begin(), panel.series.end(),
                        [](const Series& series) { return std::holds_alternative<Band>(series); });
  stand_on_zero(panel);
  return panel;
}

std::optional<Figure> diagnostic_figure(const Diagnostic& diagnostic, const std::string& name) {
  constexpr std::size_t most = 12;
  Figure figure;
  figure.name = name;
  figure.title = "Diagnostic: " + diagnostic.name;
  for (const auto& panel : diagnostic.panels)
    if (auto drawn = diagnostic_panel(panel); drawn && figure.panels.size() < most)
      figure.panels.push_back(std::move(*drawn));
  if (figure.panels.empty()) return std::nullopt;
  set_grid(figure, 340.0, 320.0, 260.0);
  figure.caption = diagnostic.explanation;
  if (diagnostic.panels.size() > most)
    figure.caption += fmt::format(" The first {} panels are shown.", most);
  return figure;
}

// --------------------------------------------------------------------------------- coverage

/// Shares of datasets at the points of a coverage study, for one level.
struct Shares {
  std::vector<double> asymptotic, simulated;  ///< one a point; NaN: not known
};

double share_at(const std::vector<double>& values, std::size_t level) {
  return level < values.size() ? values[level] : std::nan("");
}

/// Where the points stand on the axis: at the parameter's value where there is but one, else
/// numbered.
std::vector<double> places(const Results& r) {
  std::vector<double> out;
  const auto& points = r.coverage->points;
  for (std::size_t i = 0; i < points.size(); ++i)
    out.push_back(r.parameters.size() == 1 && points[i].point.size() == 1
                      ? points[i].point[0]
                      : static_cast<double>(i + 1));
  return out;
}

void add_shares(Panel& panel, const Results& r, const std::vector<double>& shares, double shift,
                const char* label, Role role) {
  const auto at = places(r);
  Points points;
  points.label = label;
  points.role = role;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (!std::isfinite(shares[i]) || !std::isfinite(at[i])) continue;
    points.x.push_back(at[i] + shift);
    points.y.push_back(shares[i]);
    points.y_errors.push_back(
        binomial_error(shares[i], r.coverage->points[i].ensemble.statistic.size()));
  }
  if (!points.x.empty()) panel.series.emplace_back(std::move(points));
}

/// What the bars reach, the nominal level and a little more, but hardly beyond what a share can be.
Range share_range(const Panel& panel, double level) {
  Range out{level, level};
  for (const auto& series : panel.series)
    if (const auto* points = std::get_if<Points>(&series))
      for (std::size_t i = 0; i < points->y.size(); ++i) {
        out.low = std::min(out.low, points->y[i] - points->y_errors[i]);
        out.high = std::max(out.high, points->y[i] + points->y_errors[i]);
      }
  const double margin = std::max(0.01, 0.1 * (out.high - out.low));
  const double beyond = 0.25 * margin;
  return {std::max(-beyond, out.low - margin), std::min(1.0 + beyond, out.high + margin)};
}

std::optional<Panel> coverage_panel(const Results& r, double level, const Shares& shares,
                                    const std::string& what) {
  Panel panel;
  panel.title = fmt::format("{}{}", level_words(level), what.empty() ? "" : ", " + what);
  panel.y_label = "coverage";
  const auto at = places(r);
  const auto [low, high] = std::minmax_element(at.begin(), at.end());
  double gap = at.size() > 1 ? (*high - *low) / static_cast<double>(at.size() - 1) : 1.0;
  if (!(gap > 0.0)) gap = 1.0;
  panel.x_range = Range{*low - 0.6 * gap, *high + 0.6 * gap};
  if (r.parameters.size() == 1) {
    panel.x_label = symbol(r.parameters[0].name);
  } else {
    panel.x_label = "point";
    panel.x_ticks.emplace();
    for (std::size_t i = 0; i < at.size(); ++i)
      panel.x_ticks->push_back({at[i], std::to_string(i + 1)});
  }
  panel.series.emplace_back(Line{{panel.x_range->low, panel.x_range->high},
                                 {level, level},
                                 "nominal",
                                 Role::reference,
                                 Dash::dashed,
                                 1.3});
  add_shares(panel, r, shares.asymptotic, -0.08 * gap, "χ² thresholds", Role::approximate);
  add_shares(panel, r, shares.simulated, 0.08 * gap, "simulated thresholds", Role::calibrated);
  if (panel.series.size() < 2) return std::nullopt;
  panel.y_range = share_range(panel, level);
  return panel;
}

Shares joint_shares(const Results& r, std::size_t level) {
  Shares out;
  for (const auto& point : r.coverage->points) {
    out.asymptotic.push_back(share_at(point.ensemble.coverage, level));
    out.simulated.push_back(share_at(point.coverage_critical, level));
  }
  return out;
}

Shares profile_shares(const Results& r, std::size_t interest, std::size_t level) {
  Shares out;
  for (const auto& point : r.coverage->points) {
    const auto& profiles = point.ensemble.profiles;
    const auto& critical = point.profile_coverage_critical;
    out.asymptotic.push_back(
        interest < profiles.size() ? share_at(profiles[interest].coverage, level) : std::nan(""));
    out.simulated.push_back(interest < critical.size() ? share_at(critical[interest], level)
                                                       : std::nan(""));
  }
  return out;
}

/// With one point alone: the regions of all parameters and of each one, beside each other.
std::optional<Panel> one_point_panel(const Results& r, std::size_t l) {
  const auto& interest = r.coverage->config.interest;
  const double level = r.coverage->config.levels[l];
  Panel panel;
  panel.title = level_words(level);
  panel.y_label = "coverage";
  panel.x_ticks.emplace();
  Shares shares;
  const auto add = [&](const Shares& more, const std::string& name) {
    shares.asymptotic.push_back(more.asymptotic.front());
    shares.simulated.push_back(more.simulated.front());
    panel.x_ticks->push_back({static_cast<double>(shares.asymptotic.size()), name});
  };
  add(joint_shares(r, l), "all parameters");
  for (std::size_t i = 0; i < interest.size(); ++i)
    if (interest[i] < r.parameters.size())
      add(profile_shares(r, i, l), symbol(r.parameters[interest[i]].name) + " alone");
  const auto count = static_cast<double>(shares.asymptotic.size());
  panel.x_range = Range{0.5, count + 0.5};
  panel.series.emplace_back(
      Line{{0.5, count + 0.5}, {level, level}, "nominal", Role::reference, Dash::dashed, 1.3});
  const std::size_t datasets = r.coverage->points.front().ensemble.statistic.size();
  const auto side = [&](const std::vector<double>& values, const char* label, Role role,
                        double shift) {
    Points points;
    points.label = label;
    points.role = role;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i])) continue;
      points.x.push_back(static_cast<double>(i + 1) + shift);
      points.y.push_back(values[i]);
      points.y_errors.push_back(binomial_error(values[i], datasets));
    }
    if (!points.x.empty()) panel.series.emplace_back(std::move(points));
  };
  const bool both = std::any_of(shares.simulated.begin(), shares.simulated.end(),
                                [](double share) { return std::isfinite(share); });
  side(shares.asymptotic, "χ² thresholds", Role::approximate, both ? -0.06 : 0.0);
  side(shares.simulated, "simulated thresholds", Role::calibrated, 0.06);
  if (panel.series.size() < 2) return std::nullopt;
  panel.y_range = share_range(panel, level);
  return panel;
}

}  // namespace

std::vector<Figure> diagnostic_figures(const Results& r) {
  std::vector<Figure> out;
  std::map<std::string, int> seen;
  for (const auto& diagnostic : r.diagnostics) {
    std::string name = file_stem("diagnostic-" + diagnostic.name);
    if (const int times = ++seen[name]; times > 1) name += fmt::format("-{}", times);
    if (auto figure = diagnostic_figure(diagnostic, name)) out.push_back(std::move(*figure));
  }
  return out;
}

std::optional<Figure> coverage_figure(const Results& r) {
  if (!r.coverage || r.coverage->points.empty()) return std::nullopt;
  const auto& levels = r.coverage->config.levels;
  const auto& interest = r.coverage->config.interest;
  Figure figure;
  figure.name = "coverage";
  figure.title = "Coverage";
  const auto add = [&](std::size_t level, const Shares& shares, const std::string& what) {
    if (auto panel = coverage_panel(r, levels[level], shares, what))
      figure.panels.push_back(std::move(*panel));
  };
  if (r.coverage->points.size() == 1 && r.parameters.size() > 1) {
    for (std::size_t l = 0; l < levels.size(); ++l)
      if (auto panel = one_point_panel(r, l)) figure.panels.push_back(std::move(*panel));
  } else {
    for (std::size_t l = 0; l < levels.size(); ++l)
      add(l, joint_shares(r, l), r.parameters.size() > 1 ? "all parameters" : "");
    for (std::size_t i = 0; i < interest.size(); ++i)
      for (std::size_t l = 0; l < levels.size(); ++l)
        if (interest[i] < r.parameters.size())
          add(l, profile_shares(r, i, l), symbol(r.parameters[interest[i]].name) + " alone");
  }
  if (figure.panels.empty()) return std::nullopt;
  figure.columns = std::min<std::size_t>(levels.size(), 3);
  figure.panel_width = figure.columns == 1 ? wide : figure.columns == 2 ? half : third;
  figure.panel_height = figure.columns == 3 ? 260.0 : 300.0;
  figure.caption = coverage_words(r);
  return figure;
}

}  // namespace neyman::reports
