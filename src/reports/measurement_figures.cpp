#include "neyman/reports/measurement_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>

#include "neyman/inference/statistics.hpp"
#include "neyman/reports/symbol.hpp"
#include "reports/figure_parts.hpp"
#include "reports/measurement_words.hpp"
#include "reports/words.hpp"

namespace neyman::reports {

namespace {

constexpr std::size_t most_rows = 30;  // of parameters in one figure

/// A panel of rows, each with its name at the left, the first on top.
void set_rows(Panel& panel, const std::vector<std::string>& names) {
  panel.y_ticks.emplace();
  const auto count = static_cast<double>(names.size());
  for (std::size_t i = 0; i < names.size(); ++i)
    panel.y_ticks->push_back({count - static_cast<double>(i), names[i]});
  panel.y_range = Range{0.4, count + 0.6};
}

std::vector<double> row_places(std::size_t count) {
  std::vector<double> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(static_cast<double>(count - i));
  return out;
}

// ---------------------------------------------------------------------------- signal strength

/// A short upright line in a row.
Line upright(double x, double row, Role role, const std::string& label = {}) {
  return {{x, x}, {row - 0.3, row + 0.3}, label, role, Dash::solid, 2.2};
}

template <class Limit>
void add_limit_rows(Panel& panel, const Limit& limit, double expected_row, double observed_row,
                    double least) {
  const auto band = [&](std::size_t low, std::size_t high, Role role, const char* label) {
    panel.series.emplace_back(Bars{
        Axis::x, {expected_row}, {limit.expected[low]}, {limit.expected[high]}, 0.56, label, role});
  };
  band(0, 4, Role::band95, "±2σ");
  band(1, 3, Role::band68, "±1σ");
  panel.series.emplace_back(upright(limit.expected[2], expected_row, Role::calibrated));
  const double start = std::min(least, limit.observed);
  panel.series.emplace_back(
      Line{{start, limit.observed}, {observed_row, observed_row}, "", Role::exact});
  panel.series.emplace_back(upright(limit.observed, observed_row, Role::exact));
}

std::optional<Figure> strength_figure(const MeasurementSummary& s) {
  const std::size_t interest = s.model.interest();
  const auto& interval = s.intervals[interest];
  if (!s.fit.ok() || !interval.ok) return std::nullopt;
  const std::string name = interest_symbol(s);
  const double estimate = s.fit.point[interest];
  const std::string level = level_words(s.options.level);
  std::vector<std::string> rows = {"estimate"};
  if (s.limit) {
    rows.push_back(level + " limit, expected");
    rows.push_back(level + " limit, observed");
  }
  if (s.toy_limit) {
    rows.push_back("the same by toys, expected");
    rows.push_back("by toys, observed");
  }
  Panel panel;
  panel.x_label = name;
  set_rows(panel, rows);
  const auto places = row_places(rows.size());
  panel.series.emplace_back(ReferenceLine{Axis::x, 0.0, "", Role::reference, Dash::dotted});
  if (const auto part = statistical_part(s))
    panel.series.emplace_back(Bars{Axis::x,
                                   {places[0]},
                                   {estimate - *part},
                                   {estimate + *part},
                                   0.34,
                                   "statistical part",
                                   Role::approximate});
  panel.series.emplace_back(Line{{interval.low, interval.high},
                                 {places[0], places[0]},
                                 "68.3 % interval",
                                 Role::approximate,
                                 Dash::solid,
                                 2.0});
  panel.series.emplace_back(Points{{estimate}, {places[0]}, "", Role::approximate, {}, {}, 4.2});
  const double least = std::max(s.model.parameters()[interest].low, 0.0);
  if (s.limit) add_limit_rows(panel, *s.limit, places[1], places[2], least);
  if (s.toy_limit) add_limit_rows(panel, *s.toy_limit, places[3], places[4], least);
  Figure figure;
  figure.name = "measurement-strength";
  figure.title = "The result at a glance";
  figure.panel_width = wide;
  figure.panel_height = 110.0 + 38.0 * static_cast<double>(rows.size());
  figure.caption = result_words(s);
  figure.panels = {std::move(panel)};
  return figure;
}

// ------------------------------------------------------------------------------------ profile

std::optional<Figure> profile_figure(const MeasurementSummary& s) {
  if (!s.profile || s.profile->values.size() < 2) return std::nullopt;
  constexpr double top = 9.9;
  const std::string name = interest_symbol(s);
  const auto& interval = s.intervals[s.model.interest()];
  const auto& scan = *s.profile;
  Panel panel;
  panel.x_label = name;
  panel.y_label = "−2 log Λ(" + name + ")";
  panel.y_range = Range{0.0, top};
  panel.x_range = Range{scan.values.front(), scan.values.back()};
  panel.series.emplace_back(Span{Axis::x, interval.low, interval.high, "", Role::band68});
  for (const auto& [level, words] : {std::pair(0.6827, 0.683), std::pair(0.95, 0.95)})
    panel.series.emplace_back(ReferenceLine{Axis::y, chi2_quantile(level), level_words(words),
                                            Role::reference, Dash::dotted});
  const bool nuisance = s.model.size() > 1;
  if (nuisance)
    panel.series.emplace_back(Line{scan.values, scan.held_statistic,
                                   "the others held at their best fit", Role::calibrated,
                                   Dash::dashed, 1.8});
  panel.series.emplace_back(Line{scan.values, scan.statistic,
                                 nuisance ? "the others profiled" : "−2 log Λ", Role::approximate,
                                 Dash::solid, 2.2});
  Figure figure;
  figure.name = "measurement-profile";
  figure.title = "The profile likelihood";
  figure.panel_width = wide;
  figure.panel_height = 350.0;
  figure.caption = fmt::format(
      "−2 log Λ of {} with the thresholds of the confidence levels (dotted); shaded, the 68.3 % "
      "interval {}.{}{}",
      name, interval_words(interval, s.fit.error(s.model.interest())),
      nuisance ? " The curve of nuisance parameters that are held is narrower: what is between "
                 "them is the systematic part of the error."
               : "",
      scan.failed > 0 ? " " + count_words(scan.failed, "profile fit") + " did not converge." : "");
  figure.panels = {std::move(panel)};
  return figure;
}

// -------------------------------------------------------------------------------------- limit

/// Curves of CL_s over the same values. They are straight on a logarithmic axis between two values,
/// which has a lowest one: where a curve crosses it, all have another value.
struct Curves {
  std::vector<double> x;
  std::array<std::vector<double>, 6> y;  ///< expected from −2 to 2σ, observed
};

Curves with_crossings(const Curves& in, double bottom) {
  Curves out;
  for (std::size_t i = 0; i < in.x.size(); ++i) {
    std::vector<double> shares;  // of the way from the value before
    for (const auto& y : in.y)
      if (i > 0 && y[i] > 0.0 && (y[i - 1] > bottom) != (y[i] > bottom) && y[i] != y[i - 1])
        shares.push_back(std::log(bottom / y[i - 1]) / std::log(y[i] / y[i - 1]));
    std::sort(shares.begin(), shares.end());
    for (const double share : shares) {
      out.x.push_back(in.x[i - 1] + share * (in.x[i] - in.x[i - 1]));
      for (std::size_t c = 0; c < in.y.size(); ++c)
        out.y[c].push_back(
            in.y[c][i] > 0.0 ? in.y[c][i - 1] * std::pow(in.y[c][i] / in.y[c][i - 1], share) : 0.0);
    }
    out.x.push_back(in.x[i]);
    for (std::size_t c = 0; c < in.y.size(); ++c) out.y[c].push_back(in.y[c][i]);
  }
  return out;
}

/// A curve as far as it is inside.
Line inside_line(const Curves& curves, std::size_t which, double bottom, const char* label,
                 Role role, Dash dash, double width) {
  Line out{{}, {}, label, role, dash, width};
  for (std::size_t i = 0; i < curves.x.size(); ++i)
    if (curves.y[which][i] >= (1.0 - 1e-9) * bottom) {
      out.x.push_back(curves.x[i]);
      out.y.push_back(curves.y[which][i]);
    }
  return out;
}

std::optional<Figure> limit_figure(const MeasurementSummary& s) {
  if (s.cl_s.size() < 2) return std::nullopt;
  const std::string name = interest_symbol(s);
  const double size = 1.0 - s.options.level;
  const double bottom = 0.1 * size;
  Curves tested;
  for (const auto& test : s.cl_s) {
    tested.x.push_back(test.tested);
    for (std::size_t i = 0; i < 5; ++i) tested.y[i].push_back(test.expected_cl_s[i]);
    tested.y[5].push_back(test.cl_s);
  }
  const auto curves = with_crossings(tested, bottom);
  Panel panel;
  panel.x_label = name;
  panel.y_label = "CL_s";
  panel.y_log = true;
  panel.x_range = Range{curves.x.front(), curves.x.back()};
  panel.y_range = Range{bottom, 1.4};
  panel.series.emplace_back(Band{curves.x, curves.y[0], curves.y[4], "±2σ", Role::band95});
  panel.series.emplace_back(Band{curves.x, curves.y[1], curves.y[3], "±1σ", Role::band68});
  panel.series.emplace_back(
      inside_line(curves, 2, bottom, "expected", Role::calibrated, Dash::dashed, 1.8));
  panel.series.emplace_back(
      inside_line(curves, 5, bottom, "observed", Role::exact, Dash::solid, 2.2));
  panel.series.emplace_back(
      ReferenceLine{Axis::y, size, percent(size, 0), Role::truth, Dash::solid});
  if (s.limit) {
    panel.series.emplace_back(
        ReferenceLine{Axis::x, s.limit->observed, "", Role::exact, Dash::dotted});
    panel.series.emplace_back(
        ReferenceLine{Axis::x, s.limit->expected[2], "", Role::calibrated, Dash::dotted});
  }
  if (s.toy_limit) {
    Points toys;
    toys.label = "by toys";
    toys.role = Role::approximate;
    for (const auto& test : s.toy_limit->tests) {
      if (!(test.cl_s.value > 0.0)) continue;
      toys.x.push_back(test.tested);
      toys.y.push_back(test.cl_s.value);
      toys.y_errors.push_back(std::min(test.cl_s.error, 0.999 * test.cl_s.value));
    }
    if (!toys.x.empty()) panel.series.emplace_back(std::move(toys));
  }
  Figure figure;
  figure.name = "measurement-limit";
  figure.title = "The upper limit";
  figure.panel_width = wide;
  figure.panel_height = 380.0;
  figure.caption =
      limit_words(s) + fmt::format(" Values of {} with CL_s below {} are excluded at {}.", name,
                                   percent(size, 0), level_words(s.options.level));
  figure.panels = {std::move(panel)};
  return figure;
}

// ------------------------------------------------------------------------- pulls and impacts

Panel pull_panel(const std::vector<NuisanceRow>& rows, const std::vector<std::string>& names) {
  Panel panel;
  panel.title = "Pulls";
  panel.x_label = "(θ̂ − θ_a) / σ";
  set_rows(panel, names);
  Points points;
  points.role = Role::data;
  points.size = 3.4;
  points.y = row_places(rows.size());
  double reach = 1.6;
  for (const auto& row : rows) {
    points.x.push_back(row.pull->pull);
    points.x_errors.push_back(row.pull->constraint);
    reach = std::max(reach, std::abs(row.pull->pull) + row.pull->constraint + 0.1);
  }
  panel.x_range = Range{-reach, reach};
  panel.series.emplace_back(Span{Axis::x, -1.0, 1.0, "", Role::band95});
  panel.series.emplace_back(ReferenceLine{Axis::x, 0.0, "", Role::reference, Dash::dotted});
  panel.series.emplace_back(std::move(points));
  return panel;
}

Panel impact_panel(const std::vector<NuisanceRow>& rows, const std::vector<std::string>& names,
                   const std::string& interest) {
  Panel panel;
  panel.title = "Impacts";
  panel.x_label = "change of the estimate of " + interest;
  set_rows(panel, names);
  Bars up{Axis::x, {}, {}, {}, 0.62, "+1σ", Role::approximate};
  Bars down{Axis::x, {}, {}, {}, 0.62, "−1σ", Role::calibrated};
  const auto places = row_places(rows.size());
  double reach = 0.0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].impact == nullptr || !rows[i].impact->ok) continue;
    for (const auto& [bars, change] :
         {std::pair(&up, rows[i].impact->up), std::pair(&down, rows[i].impact->down)}) {
      bars->at.push_back(places[i]);
      bars->low.push_back(std::min(change, 0.0));
      bars->high.push_back(std::max(change, 0.0));
      reach = std::max(reach, std::abs(change));
    }
  }
  reach = reach > 0.0 ? 1.15 * reach : 1.0;
  panel.x_range = Range{-reach, reach};
  panel.series.emplace_back(ReferenceLine{Axis::x, 0.0, "", Role::reference, Dash::dotted});
  if (!up.at.empty()) {
    panel.series.emplace_back(std::move(up));
    panel.series.emplace_back(std::move(down));
  }
  return panel;
}

std::optional<Figure> impacts_figure(const MeasurementSummary& s) {
  auto rows = nuisance_rows(s);
  if (rows.empty()) return std::nullopt;
  const std::size_t all = rows.size();
  rows.resize(std::min(all, most_rows));
  std::vector<std::size_t> shown;
  for (const auto& row : rows) shown.push_back(row.parameter);
  const auto names = short_names(s, shown);
  Figure figure;
  figure.name = "measurement-impacts";
  figure.title = "Pulls and impacts of nuisance parameters";
  figure.columns = 2;
  figure.joined = figure.apart = true;
  figure.panel_width = 300.0;
  figure.panel_height = std::max(120.0, 30.0 + 20.0 * static_cast<double>(rows.size()));
  figure.panels = {pull_panel(rows, names), impact_panel(rows, names, interest_symbol(s))};
  const auto* first = rows.front().impact;
  figure.caption =
      (all > rows.size() ? fmt::format("The {} of {} nuisance parameters with the largest impact. ",
                                       rows.size(), all)
                         : std::string()) +
      "Left, how far the fit has moved each from its auxiliary observation (points) and its error "
      "after the fit (bars), in units of the error before: the shaded region. Right, how the "
      "estimate moves when the auxiliary observation is moved by a standard deviation up or down "
      "and everything is fitted again." +
      (first != nullptr && first->ok
           ? fmt::format(" The largest impact is that of {}: {} and {}.",
                         short_name(s, first->parameter), signed_number(first->up, impact_scale(s)),
                         signed_number(first->down, impact_scale(s)))
           : std::string());
  return figure;
}

// ------------------------------------------------------------------------------- correlations

/// The parameters that the figure shows: all with an error, or of many those with the largest
/// correlation with another, in the order of the model.
std::vector<std::size_t> correlated(const MeasurementSummary& s, const Matrix& rho,
                                    std::size_t& all) {
  std::vector<std::size_t> out;
  for (std::size_t p = 0; p < s.model.size(); ++p)
    if (s.fit.statistical_error(p) > 0.0) out.push_back(p);
  all = out.size();
  if (all <= most_rows) return out;
  const auto largest = [&](std::size_t p) {
    double most = p == s.model.interest() ? 2.0 : 0.0;
    for (const std::size_t q : out)
      if (q != p) most = std::max(most, std::abs(rho(p, q)));
    return most;
  };
  std::vector<std::pair<double, std::size_t>> ranked;
  for (const std::size_t p : out) ranked.emplace_back(-largest(p), p);
  std::sort(ranked.begin(), ranked.end());
  out.clear();
  for (std::size_t i = 0; i < most_rows; ++i) out.push_back(ranked[i].second);
  std::sort(out.begin(), out.end());
  return out;
}

/// With two decimals, so that it fits into its cell.
std::optional<Figure> correlations_figure(const MeasurementSummary& s) {
  if (!s.fit.ok()) return std::nullopt;
  const Matrix rho = correlations(s.fit);
  std::size_t all = 0;
  const auto shown = correlated(s, rho, all);
  const std::size_t n = shown.size();
  if (n < 2) return std::nullopt;
  constexpr std::size_t most_numbers = 12;  // more do not fit into their cells
  Panel panel;
  panel.x_upright = true;
  panel.x_ticks.emplace();
  panel.y_ticks.emplace();
  Heatmap map;
  map.range = Range{-1.0, 1.0};
  map.colours = Colours::diverging;
  map.label = "correlation";
  map.values.resize(n * n);
  const auto names = short_names(s, shown);
  std::vector<Annotation> words;
  std::pair<std::size_t, std::size_t> most{shown[0], shown[1]};
  std::size_t longest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto row = static_cast<double>(n - 1 - i);  // the first on top
    map.x.push_back(static_cast<double>(i));
    map.y.push_back(static_cast<double>(i));
    longest = std::max(longest, names[i].size());
    panel.x_ticks->push_back({static_cast<double>(i), names[i]});
    panel.y_ticks->push_back({row, names[i]});
    for (std::size_t j = 0; j < n; ++j) {
      const double value = rho(shown[i], shown[j]);
      map.values[(n - 1 - i) * n + j] = value;
      if (n <= most_numbers)
        words.push_back({static_cast<double>(j), row, correlation_words(value), false,
                         Align::centre, std::abs(value) > 0.75 ? Role::light : Role::dark});
      if (j > i && std::abs(value) > std::abs(rho(most.first, most.second)))
        most = {shown[i], shown[j]};
    }
  }
  panel.series.emplace_back(std::move(map));
  for (auto& word : words) panel.series.emplace_back(std::move(word));
  Figure figure;
  figure.name = "measurement-correlations";
  figure.title = "Correlations";
  const double cell = n <= most_numbers ? 52.0 : 21.0;
  const double cells = static_cast<double>(n) * cell, labels = 7.3 * static_cast<double>(longest);
  figure.panel_width = cells + labels + 110.0;
  figure.panel_height = std::max(cells * 0.85 + labels + 30.0, 160.0);
  figure.caption =
      (all > n ? fmt::format("The {} of {} parameters that are correlated most. ", n, all)
               : std::string()) +
      fmt::format(
          "From the covariance at the fit. The largest correlation is that of {} and {}, "
          "{}.",
          short_name(s, most.first), short_name(s, most.second),
          correlation_words(rho(most.first, most.second)));
  figure.panels = {std::move(panel)};
  return figure;
}

// --------------------------------------------------------------------------------- histograms

constexpr std::array sample_roles{Role::approximate, Role::first,       Role::second,
                                  Role::third,       Role::decomposed,  Role::numerator,
                                  Role::denominator, Role::uncalibrated};

/// Samples that are drawn as one.
struct Layer {
  std::string name;
  std::vector<std::size_t> samples;
  Role role = Role::first;
};

std::vector<Layer> layers_of(const ChannelHistogram& h) {
  std::vector<std::pair<double, std::size_t>> ranked;
  for (std::size_t s = 0; s < h.samples.size(); ++s) {
    double sum = 0.0;
    for (const double value : h.after.parts.row(s)) sum += std::abs(value);
    ranked.emplace_back(-sum, s);
  }
  std::sort(ranked.begin(), ranked.end());
  const bool many = ranked.size() > sample_roles.size();
  std::vector<std::size_t> own, rest;
  for (std::size_t i = 0; i < ranked.size(); ++i)
    (many && i + 1 >= sample_roles.size() ? rest : own).push_back(ranked[i].second);
  std::sort(own.begin(), own.end());
  std::vector<Layer> out;
  for (const std::size_t s : own)
    out.push_back({elided(h.samples[s], 24), {s}, sample_roles[out.size()]});
  if (!rest.empty())
    out.push_back({fmt::format("{} other samples", rest.size()), rest, sample_roles.back()});
  // The first samples of a workspace are usually the signal, which stands on top.
  std::reverse(out.begin(), out.end());
  return out;
}

/// The area between two step functions.
Band step_band(const std::vector<double>& edges, const std::vector<double>& low,
               const std::vector<double>& high, std::string label, Role role) {
  Band out;
  out.label = std::move(label);
  out.role = role;
  for (std::size_t b = 0; b < low.size(); ++b)
    for (const double edge : {edges[b], edges[b + 1]}) {
      out.x.push_back(edge);
      out.low.push_back(std::min(low[b], high[b]));
      out.high.push_back(std::max(low[b], high[b]));
    }
  return out;
}

std::vector<double> bin_centres(const std::vector<double>& edges) {
  std::vector<double> out;
  for (std::size_t b = 0; b + 1 < edges.size(); ++b) out.push_back(0.5 * (edges[b] + edges[b + 1]));
  return out;
}

double poisson_error(double count) { return std::sqrt(std::max(count, 0.0)); }

/// What both main panels and both ratio panels share.
struct ChannelRange {
  Range counts{0.0, 1.0}, ratio{0.5, 1.5};
  bool log = false;
};

ChannelRange range_of(const ChannelHistogram& h) {
  double most = 0.0, least = 0.0, smallest = 1e300, reach = 0.05;
  for (const auto* expected : {&h.before, &h.after})
    for (std::size_t b = 0; b < h.observed.size(); ++b) {
      const double total = expected->total[b], error = expected->error[b];
      const double above = h.observed[b] + poisson_error(h.observed[b]);
      most = std::max({most, total + error, above});
      least = std::min(least, total);
      double stacked = 0.0;
      for (std::size_t s = 0; s < h.samples.size(); ++s)
        stacked += std::min(expected->parts(s, b), 0.0);
      least = std::min(least, stacked);
      if (total > 0.0) smallest = std::min(smallest, total);
      if (!(total > 0.0)) continue;
      reach = std::max({reach, error / total, std::abs(above / total - 1.0),
                        std::abs((h.observed[b] - poisson_error(h.observed[b])) / total - 1.0)});
    }
  ChannelRange out;
  // A steeply falling spectrum cannot be seen on a linear axis.
  out.log = most > 300.0 * smallest && least >= 0.0;
  if (out.log)
    out.counts = {std::max(0.3 * smallest, 1e-6 * most), 2.5 * most};
  else
    out.counts = {1.1 * std::min(least, 0.0), most > 0.0 ? 1.12 * most : 1.0};
  reach = std::min(1.1 * reach, 1.0);
  out.ratio = {1.0 - reach, 1.0 + reach};
  return out;
}

void set_bins(Panel& panel, const ChannelHistogram& h, bool labels) {
  panel.x_range = Range{h.edges.front(), h.edges.back()};
  const std::size_t bins = h.observed.size();
  panel.x_ticks.emplace();
  if (h.feature.empty()) {
    const std::size_t step = (bins + 11) / 12;
    for (std::size_t b = 0; b < bins; b += step)
      panel.x_ticks->push_back({static_cast<double>(b) + 0.5, labels ? std::to_string(b + 1) : ""});
  } else {
    *panel.x_ticks = ticks(*panel.x_range, false, 5);
    if (!labels)
      for (auto& tick : *panel.x_ticks) tick.label.clear();
  }
  if (labels) panel.x_label = h.feature.empty() ? "bin" : h.feature;
}

Panel counts_panel(const ChannelHistogram& h, const ExpectedCounts& expected,
                   const std::vector<Layer>& layers, const ChannelRange& range) {
  Panel panel;
  panel.y_range = range.counts;
  panel.y_log = range.log;
  set_bins(panel, h, false);
  const std::size_t bins = h.observed.size();
  const double floor = range.log ? 0.0 : -1e300;
  const auto clamped = [&](std::vector<double> values) {
    for (auto& value : values) value = std::max(value, floor);
    return values;
  };
  std::vector<double> low(bins, 0.0), high(bins, 0.0);
  std::vector<Steps> outlines;
  for (const auto& layer : layers) {
    for (std::size_t b = 0; b < bins; ++b)
      for (const std::size_t s : layer.samples) high[b] += expected.parts(s, b);
    panel.series.emplace_back(
        step_band(h.edges, clamped(low), clamped(high), layer.name, layer.role));
    outlines.push_back({h.edges, clamped(high), "", layer.role, Dash::solid, 1.4});
    low = high;
  }
  for (auto& outline : outlines) panel.series.emplace_back(std::move(outline));
  std::vector<double> below, above;
  for (std::size_t b = 0; b < bins; ++b) {
    below.push_back(expected.total[b] - expected.error[b]);
    above.push_back(expected.total[b] + expected.error[b]);
  }
  panel.series.emplace_back(
      step_band(h.edges, clamped(below), clamped(above), "uncertainty", Role::exact));
  Points data;
  data.label = "data";
  data.role = Role::data;
  data.x = bin_centres(h.edges);
  data.y = h.observed;
  for (const double count : h.observed) data.y_errors.push_back(poisson_error(count));
  panel.series.emplace_back(std::move(data));
  return panel;
}

Panel ratio_panel(const ChannelHistogram& h, const ExpectedCounts& expected,
                  const ChannelRange& range) {
  Panel panel;
  panel.y_range = range.ratio;
  panel.legend = Legend::none;
  set_bins(panel, h, true);
  Points data;
  data.label = "data / expected";
  data.role = Role::data;
  std::vector<double> below, above;
  const auto middle = bin_centres(h.edges);
  for (std::size_t b = 0; b < h.observed.size(); ++b) {
    const double total = expected.total[b];
    const double error = total > 0.0 ? expected.error[b] / total : 0.0;
    below.push_back(1.0 - error);
    above.push_back(1.0 + error);
    if (!(total > 0.0)) continue;
    data.x.push_back(middle[b]);
    data.y.push_back(h.observed[b] / total);
    data.y_errors.push_back(poisson_error(h.observed[b]) / total);
  }
  panel.series.emplace_back(ReferenceLine{Axis::y, 1.0, "", Role::reference, Dash::dotted});
  panel.series.emplace_back(step_band(h.edges, below, above, "uncertainty", Role::exact));
  if (!data.x.empty()) panel.series.emplace_back(std::move(data));
  return panel;
}

}  // namespace

Figure channel_figure(const ChannelHistogram& h) {
  const auto layers = layers_of(h);
  const auto range = range_of(h);
  Figure figure;
  figure.name = "measurement-channel-" + h.channel + (h.feature.empty() ? "" : "-" + h.feature);
  figure.title = "Channel " + h.channel + (h.feature.empty() ? "" : ": " + h.feature);
  figure.columns = 2;
  figure.joined = figure.apart = true;
  figure.panel_width = 390.0;
  figure.panel_height = 290.0;
  figure.row_heights = {290.0, 96.0};
  auto before = counts_panel(h, h.before, layers, range);
  auto after = counts_panel(h, h.after, layers, range);
  auto before_ratio = ratio_panel(h, h.before, range);
  auto after_ratio = ratio_panel(h, h.after, range);
  before.title = "Before the fit";
  after.title = "After the fit";
  for (auto* panel : {&before, &after}) {
    panel->y_label = "events";
    panel->y_ticks = ticks(range.counts, range.log, 5);
  }
  for (auto* panel : {&before_ratio, &after_ratio}) {
    panel->y_label = "ratio";
    panel->y_ticks = ticks(range.ratio, false, 3);
  }
  figure.panels = {std::move(before), std::move(after), std::move(before_ratio),
                   std::move(after_ratio)};
  const auto sum = [](const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
  };
  figure.caption = fmt::format(
      "{} in channel {} beside what the model expects, before the fit ({}) and after it ({}). "
      "Shaded in grey, the uncertainty of the expectation; below, the ratio of both.",
      count_words(static_cast<std::size_t>(std::llround(sum(h.observed))), "event"), h.channel,
      number(sum(h.before.total), 4), number(sum(h.after.total), 4));
  return figure;
}

std::vector<Figure> measurement_figures(const MeasurementSummary& summary) {
  std::vector<Figure> out;
  for (auto& figure : {strength_figure(summary), profile_figure(summary), limit_figure(summary),
                       impacts_figure(summary), correlations_figure(summary)})
    if (figure) out.push_back(*figure);
  for (const auto& histogram : summary.histograms) out.push_back(channel_figure(histogram));
  return out;
}

}  // namespace neyman::reports
