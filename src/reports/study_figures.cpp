#include "neyman/reports/study_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "neyman/inference/statistics.hpp"
#include "neyman/reports/symbol.hpp"
#include "neyman/reports/terminal.hpp"
#include "reports/words.hpp"

namespace neyman::reports {

namespace {

// Panels beside each other: one wide, two of half the width of a page, or three small ones.
constexpr double wide = 560.0, half = 480.0, third = 330.0;

// ------------------------------------------------------------------------------ histograms

std::vector<double> sorted_finite(std::span<const double> values) {
  std::vector<double> out;
  std::copy_if(values.begin(), values.end(), std::back_inserter(out),
               [](double v) { return std::isfinite(v); });
  std::sort(out.begin(), out.end());
  return out;
}

double quantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

/// The extent of sorted values, without far tails that would flatten all the rest.
Range extent(const std::vector<double>& sorted) {
  const Range all{sorted.front(), sorted.back()};
  const double low = quantile(sorted, 0.001), high = quantile(sorted, 0.999);
  const double reach = 0.35 * (high - low);
  if (!(reach > 0.0)) return all;
  return {std::max(all.low, low - reach), std::min(all.high, high + reach)};
}

std::vector<double> equal_edges(Range range, std::size_t bins) {
  if (!(range.high > range.low)) {
    const double pad = range.low == 0.0 ? 0.5 : 0.05 * std::abs(range.low);
    range = {range.low - pad, range.low + pad};
  }
  std::vector<double> edges;
  for (std::size_t b = 0; b <= bins; ++b)
    edges.push_back(range.low +
                    (range.high - range.low) * static_cast<double>(b) / static_cast<double>(bins));
  return edges;
}

/// Freedman and Diaconis' bin width, made finer: distributions with several peaks are wider than
/// any of their peaks. 0 where half of the values are equal.
double bin_width(const std::vector<double>& sorted) {
  const double spread = quantile(sorted, 0.75) - quantile(sorted, 0.25);
  return 1.2 * spread / std::cbrt(static_cast<double>(sorted.size()));
}

std::size_t bins_for(Range range, double width) {
  if (!(width > 0.0)) return 40;
  return static_cast<std::size_t>(std::clamp((range.high - range.low) / width, 15.0, 80.0));
}

/// Density over bins: of all values, also of those outside.
std::vector<double> density(std::span<const double> values, const std::vector<double>& edges) {
  const double bins = static_cast<double>(edges.size() - 1), size = edges.back() - edges.front();
  std::vector<double> out(edges.size() - 1, 0.0);
  for (const double value : values) {
    if (!(value >= edges.front() && value <= edges.back())) continue;
    const auto bin = static_cast<std::size_t>((value - edges.front()) / size * bins);
    out[std::min(bin, out.size() - 1)] += bins / (size * static_cast<double>(values.size()));
  }
  return out;
}

Range with_margin(Range range, double share) {
  const double pad = share * (range.high - range.low);
  return {range.low - pad, range.high + pad};
}

/// Edges that suit two samples together; the second may be empty.
std::vector<double> common_edges(std::span<const double> a, std::span<const double> b,
                                 double coarser = 1.0) {
  auto all = sorted_finite(a);
  const auto more = sorted_finite(b);
  double width = bin_width(all);
  if (!more.empty()) width = std::min(width, bin_width(more));
  all.insert(all.end(), more.begin(), more.end());
  std::sort(all.begin(), all.end());
  const Range range = with_margin(extent(all), 0.02);
  return equal_edges(range, bins_for(range, coarser * width));
}

Histogram histogram_of(std::span<const double> values, const std::vector<double>& edges,
                       std::string label, Role role, bool filled = true) {
  return {edges, density(values, edges), std::move(label), role, filled, {}};
}

/// Room above the highest bar for words beside a line.
void leave_room(Panel& panel) {
  double top = 0.0;
  for (const auto& series : panel.series)
    if (const auto* histogram = std::get_if<Histogram>(&series))
      for (const double value : histogram->values) top = std::max(top, value);
  if (top > 0.0) panel.y_range = Range{0.0, 1.16 * top};
}

bool any_finite(std::span<const double> values) {
  return std::any_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

// ------------------------------------------------------------------------------------ data

std::string at_point(const Results& r, const std::vector<double>& point) {
  return point_words(r.parameters, point);
}

/// Where a share of the data tells most about which of the two densities is the true one.
std::string largest_difference(const Results& r) {
  std::size_t best = 0;
  const auto relative = [&](std::size_t i) {
    return r.denominator_density[i] > 0.0 ? r.numerator_density[i] / r.denominator_density[i] - 1.0
                                          : 0.0;
  };
  const auto information = [&](std::size_t i) {
    return r.denominator_density[i] * relative(i) * relative(i);
  };
  for (std::size_t i = 1; i < r.density_x.size(); ++i)
    if (information(i) > information(best)) best = i;
  return fmt::format("They differ most significantly at {} = {}, where the first is {} {}.",
                     r.feature_names.front(), number(r.density_x[best], 2),
                     percent(std::abs(relative(best)), 0),
                     relative(best) >= 0.0 ? "higher" : "lower");
}

std::optional<Figure> data_figure(const Results& r) {
  constexpr std::size_t most = 12;
  if (r.data.empty()) return std::nullopt;
  const std::size_t features = r.data.cols(), shown = std::min(features, most);
  Figure figure;
  figure.name = "data";
  figure.title = "The data";
  figure.columns = std::min<std::size_t>(features, 3);
  figure.panel_width = features == 1 ? wide : third;
  figure.panel_height = features == 1 ? 360.0 : 250.0;
  std::size_t outside = 0;
  for (std::size_t f = 0; f < shown; ++f) {
    const auto values = r.data.column(f);
    const auto sorted = sorted_finite(values);
    if (sorted.empty()) return std::nullopt;
    const Range range = extent(sorted);
    const auto edges = equal_edges(range, bins_for(range, bin_width(sorted)));
    outside += static_cast<std::size_t>(std::count_if(values.begin(), values.end(), [&](double v) {
      return v < edges.front() || v > edges.back();
    }));
    Panel panel;
    panel.x_label = f < r.feature_names.size() ? r.feature_names[f] : fmt::format("x{}", f);
    panel.y_label = "density";
    panel.x_range = Range{edges.front(), edges.back()};
    panel.series.emplace_back(histogram_of(values, edges, features == 1 ? "data" : "", Role::data));
    figure.panels.push_back(std::move(panel));
  }
  figure.caption = data_words(r);
  if (features == 1 && !r.density_x.empty() && !r.numerator_density.empty()) {
    const std::string x = figure.panels[0].x_label;
    const auto name = [&](const std::vector<double>& point) {
      return fmt::format("p({} | {})", x, at_point(r, point));
    };
    auto& series = figure.panels[0].series;
    series.emplace_back(Line{r.density_x, r.denominator_density, name(r.reference),
                             Role::denominator, Dash::dashed, 2.0});
    series.emplace_back(Line{r.density_x, r.numerator_density, name(r.compared_point),
                             Role::numerator, Dash::solid, 2.0});
    figure.caption +=
        fmt::format(", with the densities at {} and at {}. {}", at_point(r, r.compared_point),
                    at_point(r, r.reference), largest_difference(r));
  } else {
    figure.caption += features == 1 ? "." : fmt::format(": {}.", count_words(features, "feature"));
  }
  if (outside > 0)
    figure.caption += fmt::format(" {} beyond the edges of the frame {} not drawn.",
                                  count_words(outside, "value"), outside == 1 ? "is" : "are");
  if (shown < features) figure.caption += fmt::format(" The first {} features are shown.", shown);
  return figure;
}

// ---------------------------------------------------------------------------------- scores

double interpolate(const std::vector<double>& x, const std::vector<double>& y, double at) {
  const auto above = std::lower_bound(x.begin(), x.end(), at);
  if (above == x.begin()) return y.front();
  if (above == x.end()) return y.back();
  const auto i = static_cast<std::size_t>(above - x.begin());
  const double t = (at - x[i - 1]) / (x[i] - x[i - 1]);
  return y[i - 1] + t * (y[i] - y[i - 1]);
}

/// Mean of |(1 + r̂)⁻¹ − s| over the events of both classes.
double mean_correction(const PairScores& pair) {
  double sum = 0.0, total = 0.0;
  for (std::size_t b = 0; b + 1 < pair.edges.size(); ++b) {
    const double s = 0.5 * (pair.edges[b] + pair.edges[b + 1]);
    const double weight = (pair.numerator_density[b] + pair.denominator_density[b]) *
                          (pair.edges[b + 1] - pair.edges[b]);
    sum += weight * std::abs(interpolate(pair.scores, pair.calibrated, s) - s);
    total += weight;
  }
  return total > 0.0 ? sum / total : 0.0;
}

Panel score_densities(const PairScores& pair) {
  Panel panel;
  panel.title = pair.numerator + " and " + pair.denominator;
  panel.x_label = "score s";
  panel.y_label = "density";
  panel.y_log = true;
  panel.x_range = Range{0.0, 1.0};
  panel.series.emplace_back(
      Histogram{pair.edges, pair.numerator_density, pair.numerator, Role::first, true, {}});
  panel.series.emplace_back(
      Histogram{pair.edges, pair.denominator_density, pair.denominator, Role::second, true, {}});
  return panel;
}

/// The curve of (1 + r̂)⁻¹, and in bins of s what it should be: the share of the denominator
/// where both have the same number of events.
Panel score_curve(const PairScores& pair) {
  constexpr double enough = 0.02;  // below this density a bin has too few events to show
  Panel panel;
  panel.title = pair.numerator + " and " + pair.denominator;
  panel.x_label = "score s";
  panel.y_label = "(1 + r̂)⁻¹";
  panel.x_range = Range{0.0, 1.0};
  panel.y_range = Range{0.0, 1.0};
  panel.series.emplace_back(Line{{0.0, 1.0}, {0.0, 1.0}, "", Role::reference, Dash::dotted, 1.2});
  Points observed;
  observed.label = "observed";
  observed.role = Role::data;
  observed.size = 2.2;
  for (std::size_t b = 0; b + 1 < pair.edges.size(); ++b) {
    const double numerator = pair.numerator_density[b], denominator = pair.denominator_density[b];
    if (std::min(numerator, denominator) < enough) continue;
    observed.x.push_back(0.5 * (pair.edges[b] + pair.edges[b + 1]));
    observed.y.push_back(denominator / (numerator + denominator));
  }
  panel.series.emplace_back(
      Line{pair.scores, pair.calibrated, "calibrated", Role::calibrated, Dash::solid, 2.0});
  if (!observed.x.empty()) panel.series.emplace_back(std::move(observed));
  return panel;
}

std::optional<Figure> scores_figure(const Results& r) {
  if (r.pair_scores.empty()) return std::nullopt;
  Figure figure;
  figure.name = "scores";
  figure.title = "Scores and their calibration";
  // Six pairs of four components still fit; of more, the first are shown.
  const std::size_t shown = std::min<std::size_t>(r.pair_scores.size(), 6);
  figure.columns = std::min<std::size_t>(shown, 3);
  figure.panel_width = figure.columns == 3 ? third : half;
  figure.panel_height = 250.0;
  const PairScores* most = &r.pair_scores.front();
  for (const auto& pair : r.pair_scores) {
    if (pair.edges.size() < 2 || pair.scores.empty()) return std::nullopt;
    if (mean_correction(pair) > mean_correction(*most)) most = &pair;
  }
  for (std::size_t row = 0; row < shown; row += figure.columns) {
    const std::size_t end = std::min(row + figure.columns, shown);
    for (std::size_t i = row; i < end; ++i)
      figure.panels.push_back(score_densities(r.pair_scores[i]));
    for (std::size_t i = row; i < end; ++i) figure.panels.push_back(score_curve(r.pair_scores[i]));
  }
  figure.caption = fmt::format(
      "Above, for each pair of components, the score s on events that the classifier has not seen; "
      "below, what calibration makes of it, (1 + r̂)⁻¹, with the share of the second component "
      "observed in bins of s. A score that needs no calibration lies on the dotted diagonal. "
      "Averaged over events, calibration moves the score by {}{}.",
      number(mean_correction(*most), 2),
      r.pair_scores.size() == 1 ? std::string()
                                : fmt::format(" for {} and {}, and by less for the other pairs",
                                              most->numerator, most->denominator));
  return figure;
}

// ----------------------------------------------------------------------------------- ratio

/// The range of the exact curves, or of the best ones there are, with room around them: a bad
/// classifier must not flatten what it is compared with.
std::optional<Range> ratio_range(const Results& r) {
  std::vector<double> values;
  for (const auto& entry : r.comparisons) {
    const auto& best = !entry.exact.empty()        ? entry.exact
                       : !entry.decomposed.empty() ? entry.decomposed
                                                   : entry.calibrated;
    values.insert(values.end(), best.begin(), best.end());
  }
  const auto sorted = sorted_finite(values);
  if (sorted.empty() || sorted.front() == sorted.back()) return std::nullopt;
  const double pad = 0.3 * (sorted.back() - sorted.front());
  return Range{sorted.front() - pad, sorted.back() + pad};
}

std::string error_words(const Results& r) {
  std::vector<std::string> parts;
  for (const auto& entry : r.comparisons) {
    std::vector<std::string> errors;
    const auto add = [&](const std::optional<double>& error, const char* form) {
      if (error) errors.push_back(number(*error, 2) + " " + form);
    };
    add(entry.uncalibrated_error, "uncalibrated");
    add(entry.calibrated_error, "calibrated");
    add(entry.decomposed_error, "decomposed");
    if (!errors.empty()) parts.push_back(entry.classifier + ": " + join_words(errors));
  }
  if (parts.empty()) return {};
  std::string text = fmt::format("Mean |log r̂ − log r| over events simulated at {}: ",
                                 at_point(r, r.compared_point));
  for (std::size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? "" : "; ") + parts[i];
  return text + ".";
}

std::optional<Figure> ratio_figure(const Results& r) {
  Figure figure;
  figure.name = "ratio";
  figure.title = "The learned log-ratio";
  for (const auto& entry : r.comparisons) {
    if (entry.x.empty()) continue;
    Panel panel;
    panel.title = entry.classifier;
    panel.x_label = r.feature_names.empty() ? "x" : r.feature_names.front();
    panel.y_label = "log r̂(" + panel.x_label + ")";
    panel.y_range = ratio_range(r);
    const auto add = [&](const std::vector<double>& y, const char* label, Role role, Dash dash,
                         double width) {
      if (!y.empty()) panel.series.emplace_back(Line{entry.x, y, label, role, dash, width});
    };
    add(entry.uncalibrated, "uncalibrated", Role::uncalibrated, Dash::solid, 2.4);
    add(entry.calibrated, "calibrated", Role::calibrated, Dash::solid, 1.3);
    add(entry.exact, "exact", Role::exact, Dash::solid, 2.2);
    add(entry.decomposed, "decomposed", Role::decomposed, Dash::dashed, 2.2);
    if (!panel.series.empty()) figure.panels.push_back(std::move(panel));
  }
  if (figure.panels.empty()) return std::nullopt;
  figure.columns = std::min<std::size_t>(figure.panels.size(), 2);
  figure.panel_width = figure.columns == 1 ? wide : half;
  figure.panel_height = 350.0;
  figure.caption =
      fmt::format("log r̂ between {} and {}, learned in three ways by each classifier. ",
                  at_point(r, r.compared_point), at_point(r, r.reference)) +
      error_words(r);
  return figure;
}

std::optional<Figure> log_ratio_figure(const Results& r) {
  if (!any_finite(r.log_ratios)) return std::nullopt;
  const auto edges = common_edges(r.log_ratios, r.exact_log_ratios);
  Panel panel;
  panel.x_label = "log r";
  panel.y_label = "density";
  panel.y_log = true;
  panel.x_range = Range{edges.front(), edges.back()};
  Figure figure;
  figure.name = "log-ratio";
  figure.title = "Distribution of the log-ratio";
  figure.panel_width = wide;
  figure.panel_height = 330.0;
  figure.caption =
      fmt::format("log r between {} and {} of {} simulated at {}.", at_point(r, r.compared_point),
                  at_point(r, r.reference), count_words(r.log_ratios.size(), "event"),
                  at_point(r, r.compared_point));
  const bool paired = r.exact_log_ratios.size() == r.log_ratios.size();
  if (paired)
    panel.series.emplace_back(histogram_of(r.exact_log_ratios, edges, "exact", Role::exact));
  panel.series.emplace_back(
      histogram_of(r.log_ratios, edges, "learned", Role::approximate, !paired));
  if (paired) {
    std::vector<double> differences;
    for (std::size_t i = 0; i < r.log_ratios.size(); ++i)
      differences.push_back(std::abs(r.log_ratios[i] - r.exact_log_ratios[i]));
    const auto sorted = sorted_finite(differences);
    if (!sorted.empty())
      figure.caption += fmt::format(
          " Event by event, the learned one is off by {} on average, by less than {} for 99 % of "
          "the events, and by {} at most.",
          number(mean(sorted), 2), number(quantile(sorted, 0.99), 2), number(sorted.back(), 2));
  }
  figure.panels.push_back(std::move(panel));
  return figure;
}

// ------------------------------------------------------------------------------ likelihood

const Scan* scan_of(const FitReport& report, std::size_t parameter) {
  for (const auto& scan : report.scans)
    if (scan.parameter == parameter && scan.values.size() > 1) return &scan;
  return nullptr;
}

/// The stretch of a scan where the statistic is at most `top`.
Range shown_range(const Scan& scan, double top) {
  Range range{scan.values.back(), scan.values.front()};
  for (std::size_t i = 0; i < scan.values.size(); ++i)
    if (scan.statistic[i] <= top) {
      range.low = std::min(range.low, scan.values[i > 0 ? i - 1 : 0]);
      range.high = std::max(range.high, scan.values[std::min(i + 1, scan.values.size() - 1)]);
    }
  return range.low < range.high ? range : Range{scan.values.front(), scan.values.back()};
}

std::string curve_words(const Results& r, std::size_t p, double threshold, double level) {
  const Scan *learned = scan_of(r.fit, p), *exact = scan_of(*r.exact_fit, p);
  double worst = 0.0;
  std::size_t compared = 0;
  for (std::size_t i = 0; i < learned->values.size(); ++i) {
    const double value = learned->values[i];
    if (value < exact->values.front() || value > exact->values.back()) continue;
    const double other = interpolate(exact->values, exact->statistic, value);
    if (std::min(other, learned->statistic[i]) > threshold) continue;
    worst = std::max(worst, std::abs(other - learned->statistic[i]));
    ++compared;
  }
  std::string text;
  if (compared > 0)
    text = fmt::format(" Inside the {} region the learned and the exact curve differ by at most {}",
                       level_words(level), number(worst, 2));
  if (const auto distance = distance_to_exact(r, p))
    text += fmt::format("{} minima are {} apart, {} of the statistical error",
                        text.empty() ? " Their" : "; their",
                        number(std::abs(r.fit.fit.point[p] - r.exact_fit->fit.point[p]), 2),
                        number(std::abs(*distance), 2));
  return text.empty() ? text : text + ".";
}

/// What finite simulation does to the intervals.
std::string simulation_words(const Results& r) {
  double most = 0.0;
  for (std::size_t p = 0; p < r.parameters.size(); ++p) {
    const double statistical = r.fit.fit.statistical_error(p);
    if (statistical > 0.0) most = std::max(most, r.fit.fit.error(p) / statistical - 1.0);
  }
  return most > 0.0 ? fmt::format("widened by {}{} for finite simulation.",
                                  r.parameters.size() > 1 ? "at most " : "", percent(most))
                    : "which finite simulation does not widen.";
}

Panel likelihood_panel(const Results& r, std::size_t p, double top) {
  Panel panel;
  const auto& parameter = r.parameters[p];
  panel.x_label = symbol(parameter.name);
  panel.y_label = "−2 log Λ(" + panel.x_label + ")";
  panel.y_range = Range{0.0, top};
  const Scan& learned = *scan_of(r.fit, p);
  Range range = shown_range(learned, top);
  const Scan* exact = r.exact_fit ? scan_of(*r.exact_fit, p) : nullptr;
  if (exact != nullptr) {
    const Range other = shown_range(*exact, top);
    range = {std::min(range.low, other.low), std::max(range.high, other.high)};
  }
  panel.x_range = range;
  const auto& intervals = r.fit.intervals;
  if (p < intervals.size()) {
    auto widest_first = intervals[p];
    std::sort(widest_first.begin(), widest_first.end(),
              [](const Interval& a, const Interval& b) { return a.level > b.level; });
    for (const auto& interval : widest_first)
      panel.series.emplace_back(Span{Axis::x, interval.low, interval.high, "",
                                     interval.level > 0.8 ? Role::band95 : Role::band68});
  }
  for (const double level : r.levels)
    panel.series.emplace_back(ReferenceLine{Axis::y, chi2_quantile(level), level_words(level),
                                            Role::reference, Dash::dotted});
  if (parameter.truth)
    panel.series.emplace_back(
        ReferenceLine{Axis::x, *parameter.truth, "truth", Role::reference, Dash::dashed});
  if (exact != nullptr)
    panel.series.emplace_back(
        Line{exact->values, exact->statistic, "exact", Role::exact, Dash::solid, 2.0});
  panel.series.emplace_back(Line{learned.values, learned.statistic, "learned", Role::approximate,
                                 exact != nullptr ? Dash::dashed : Dash::solid, 2.2});
  return panel;
}

std::optional<Figure> likelihood_figure(const Results& r) {
  Figure figure;
  figure.name = "likelihood";
  figure.title = "The likelihood";
  const double level =
      r.levels.empty() ? 0.95 : *std::max_element(r.levels.begin(), r.levels.end());
  const double threshold = chi2_quantile(level);
  figure.caption =
      "−2 log Λ with the thresholds of the confidence levels (dotted); shaded, the intervals of "
      "the learned likelihood, " +
      simulation_words(r);
  for (std::size_t p = 0; p < r.parameters.size(); ++p) {
    if (scan_of(r.fit, p) == nullptr) continue;
    figure.panels.push_back(likelihood_panel(r, p, 1.6 * threshold));
    if (r.exact_fit && scan_of(*r.exact_fit, p) != nullptr) {
      if (r.parameters.size() > 1) figure.caption += " " + symbol(r.parameters[p].name) + ":";
      figure.caption += curve_words(r, p, threshold, level);
    }
  }
  if (figure.panels.empty()) return std::nullopt;
  figure.columns = std::min<std::size_t>(figure.panels.size(), 2);
  figure.panel_width = figure.columns == 1 ? wide : half;
  figure.panel_height = 360.0;
  return figure;
}

// -------------------------------------------------------------------------------- ensemble

void add_sides(Panel& panel, const std::vector<double>& learned, const std::vector<double>* exact,
               const std::vector<double>& edges) {
  if (exact != nullptr)
    panel.series.emplace_back(histogram_of(*exact, edges, "exact", Role::exact));
  panel.series.emplace_back(
      histogram_of(learned, edges, "learned", Role::approximate, exact == nullptr));
}

Panel estimates_panel(const Results& r, std::size_t p) {
  const auto& ensemble = *r.ensemble;
  const auto learned = ensemble.approximate.estimates.column(p);
  std::vector<double> exact;
  if (ensemble.exact) exact = ensemble.exact->estimates.column(p);
  Panel panel;
  panel.x_label = "estimate of " + symbol(r.parameters[p].name);
  panel.y_label = "density";
  add_sides(panel, learned, ensemble.exact ? &exact : nullptr, common_edges(learned, exact, 1.5));
  leave_room(panel);
  panel.series.emplace_back(
      ReferenceLine{Axis::x, ensemble.config.point[p],
                    symbol(r.parameters[p].name) + " = " + number(ensemble.config.point[p]),
                    Role::reference, Dash::dashed});
  return panel;
}

/// The χ² density, from the tail: P(a < χ² < b) / (b − a) around each x.
double chi2_density(double x, double degrees) {
  const double step = std::min(0.01, 0.5 * x);
  return (chi2_tail(x - step, degrees) - chi2_tail(x + step, degrees)) / (2.0 * step);
}

Panel wilks_panel(const Results& r) {
  const auto& ensemble = *r.ensemble;
  const auto degrees = static_cast<double>(r.parameters.size());
  const double high = std::max(chi2_quantile(0.999, degrees), 1.0);
  Panel panel;
  panel.x_label = fmt::format("−2 log Λ({})", at_point(r, ensemble.config.point));
  panel.y_label = "density";
  panel.y_log = true;
  panel.x_range = Range{0.0, high};
  add_sides(panel, ensemble.approximate.statistic,
            ensemble.exact ? &ensemble.exact->statistic : nullptr, equal_edges({0.0, high}, 22));
  Line expected;
  expected.label = r.parameters.size() == 1 ? "χ²₁" : fmt::format("χ², {} degrees", degrees);
  expected.role = Role::calibrated;
  expected.width = 2.0;
  for (std::size_t i = 1; i <= 300; ++i) {
    expected.x.push_back(high * static_cast<double>(i) / 300.0);
    expected.y.push_back(chi2_density(expected.x.back(), degrees));
  }
  panel.series.emplace_back(std::move(expected));
  return panel;
}

std::string ensemble_caption(const Results& r) {
  const auto& ensemble = *r.ensemble;
  std::string text = ensemble_words(r) + ", each fitted.";
  for (std::size_t p = 0; p < r.parameters.size(); ++p) {
    const std::string name = symbol(r.parameters[p].name);
    const double spread = (ensemble.exact ? *ensemble.exact : ensemble.approximate).spreads[p];
    const auto with_spread = [&](double value) { return measurement(value, spread); };
    if (ensemble.exact)
      text += fmt::format(
          " Estimates of {} (mean ± standard deviation): learned {}, exact {}; their means differ "
          "by {} standard deviations.",
          name, measurement(ensemble.approximate.means[p], ensemble.approximate.spreads[p]),
          with_spread(ensemble.exact->means[p]), number(std::abs(ensemble.bias[p]), 2));
    else
      text += fmt::format(
          " Estimates of {} (mean ± standard deviation): {}, {} standard deviations from the "
          "simulated value.",
          name, with_spread(ensemble.approximate.means[p]), number(std::abs(ensemble.bias[p]), 2));
  }
  text += fmt::format(
      " −2 log Λ should follow χ²: the Kolmogorov–Smirnov test gives p = {} for the learned "
      "likelihood",
      p_value(ensemble.approximate.wilks.p_value));
  if (ensemble.exact)
    text += fmt::format(" and p = {} for the exact one", p_value(ensemble.exact->wilks.p_value));
  return text + ".";
}

std::optional<Figure> ensemble_figure(const Results& r) {
  if (!r.ensemble || r.ensemble->approximate.statistic.empty()) return std::nullopt;
  Figure figure;
  figure.name = "ensemble";
  figure.title = "The ensemble";
  for (std::size_t p = 0; p < r.parameters.size(); ++p)
    figure.panels.push_back(estimates_panel(r, p));
  figure.panels.push_back(wilks_panel(r));
  figure.columns = figure.panels.size() == 3 ? 3 : 2;
  figure.panel_width = figure.columns == 3 ? third : half;
  figure.panel_height = figure.columns == 3 ? 290.0 : 340.0;
  figure.caption = ensemble_caption(r);
  return figure;
}

// ------------------------------------------------------------------------------------ test

std::optional<Figure> test_figure(const Results& r) {
  if (!r.test || !any_finite(r.test->null_statistics) ||
      !any_finite(r.test->alternative_statistics))
    return std::nullopt;
  const auto& test = *r.test;
  const auto edges = common_edges(test.null_statistics, test.alternative_statistics, 1.5);
  Panel panel;
  const auto null = at_point(r, test.config.null);
  const auto alternative = at_point(r, test.config.alternative);
  panel.x_label = fmt::format("Σ log r̂(x; {}, {})", null, alternative);
  panel.y_label = "density";
  panel.series.emplace_back(histogram_of(test.alternative_statistics, edges,
                                         alternative + " (alternative)", Role::denominator));
  panel.series.emplace_back(
      histogram_of(test.null_statistics, edges, null + " (null)", Role::numerator));
  leave_room(panel);
  panel.series.emplace_back(
      ReferenceLine{Axis::x, test.statistic, "observed", Role::approximate, Dash::solid});
  Figure figure;
  figure.name = "test";
  figure.title = "The test statistic";
  figure.panel_width = wide;
  figure.panel_height = 330.0;
  figure.caption = fmt::format(
      "{} simulated under each hypothesis. The observed {} gives p = {} for {}; at the size of {} "
      "the power against {} is {}.",
      count_words(test.config.datasets, "dataset"), number(test.statistic, 3),
      p_value(test.p_value), null, percent(test.config.size, 0), alternative, percent(test.power));
  figure.panels.push_back(std::move(panel));
  return figure;
}

}  // namespace

std::vector<Figure> study_figures(const Results& results) {
  std::vector<Figure> out;
  for (const auto& make : {data_figure, scores_figure, ratio_figure, log_ratio_figure,
                           likelihood_figure, ensemble_figure, test_figure})
    if (auto figure = make(results)) out.push_back(std::move(*figure));
  return out;
}

}  // namespace neyman::reports
