#include "neyman/reports/study_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "neyman/inference/statistics.hpp"
#include "neyman/reports/measurement_figures.hpp"
#include "neyman/reports/symbol.hpp"
#include "neyman/reports/terminal.hpp"
#include "reports/figure_parts.hpp"
#include "reports/words.hpp"

namespace neyman::reports {

namespace {

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
                                 theta_words(r, r.compared_point));
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
                  theta_words(r, r.compared_point), theta_words(r, r.reference)) +
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
      fmt::format("log r between {} and {} of {} simulated at {}.",
                  theta_words(r, r.compared_point), theta_words(r, r.reference),
                  count_words(r.log_ratios.size(), "event"), theta_words(r, r.compared_point));
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

/// The largest difference of the two curves inside the region; negative where they are not
/// comparable.
double curve_difference(const Results& r, std::size_t p, double threshold) {
  const Scan *learned = scan_of(r.fit, p), *exact = scan_of(*r.exact_fit, p);
  double worst = -1.0;
  for (std::size_t i = 0; i < learned->values.size(); ++i) {
    const double value = learned->values[i];
    if (value < exact->values.front() || value > exact->values.back()) continue;
    const double other = interpolate(exact->values, exact->statistic, value);
    if (std::min(other, learned->statistic[i]) > threshold) continue;
    worst = std::max(worst, std::abs(other - learned->statistic[i]));
  }
  return worst;
}

std::string curve_words(const Results& r, std::size_t p, double threshold, double level) {
  const double worst = curve_difference(r, p, threshold);
  std::string text;
  if (worst >= 0.0)
    text = fmt::format(" Inside the {} region the learned and the exact curve differ by at most {}",
                       level_words(level), number(worst, 2));
  if (const auto distance = distance_to_exact(r, p))
    text += fmt::format(
        "{} minima are {} apart, {} of the statistical error", text.empty() ? " Their" : "; their",
        number(std::abs(r.parameters[p].difference(r.fit.fit.point[p], r.exact_fit->fit.point[p])),
               2),
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
      for (const auto& piece : pieces_of(interval))
        panel.series.emplace_back(Span{Axis::x, piece.low, piece.high, "",
                                       interval.level > 0.8 ? Role::band95 : Role::band68});
  }
  for (const double level : r.levels)
    panel.series.emplace_back(ReferenceLine{Axis::y, chi2_quantile(level), level_words(level),
                                            Role::reference, Dash::dotted});
  if (parameter.truth)
    panel.series.emplace_back(
        ReferenceLine{Axis::x, *parameter.truth, "truth", Role::truth, Dash::dashed});
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
  std::vector<std::size_t> compared;
  for (std::size_t p = 0; p < r.parameters.size(); ++p) {
    if (scan_of(r.fit, p) == nullptr) continue;
    figure.panels.push_back(likelihood_panel(r, p, 1.6 * threshold));
    if (r.exact_fit && scan_of(*r.exact_fit, p) != nullptr) compared.push_back(p);
  }
  // Of many parameters, the one whose curves differ most.
  const auto worst = std::max_element(compared.begin(), compared.end(), [&](auto a, auto b) {
    return curve_difference(r, a, threshold) < curve_difference(r, b, threshold);
  });
  const bool many = compared.size() > most_in_a_sentence;
  if (many) compared = {*worst};
  for (const std::size_t p : compared) {
    if (r.parameters.size() > 1)
      figure.caption += fmt::format(" {}{}:", symbol(r.parameters[p].name),
                                    many ? ", where they differ most" : "");
    figure.caption += curve_words(r, p, threshold, level);
  }
  if (figure.panels.empty()) return std::nullopt;
  set_grid(figure, 360.0, 360.0, 290.0);
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
  panel.x_label = fmt::format("−2 log Λ({})", theta_words(r, ensemble.config.point));
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
      " −2 log Λ should follow χ²: the Kolmogorov–Smirnov test gives {} for the learned "
      "likelihood",
      p_equals(ensemble.approximate.wilks.p_value));
  if (ensemble.exact)
    text += fmt::format(" and {} for the exact one", p_equals(ensemble.exact->wilks.p_value));
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
  set_grid(figure, 340.0, 340.0, 290.0);
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
  const auto null = theta_words(r, test.config.null);
  const auto alternative = theta_words(r, test.config.alternative);
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
      "{} simulated under each hypothesis. The observed {} gives {} for {}; at the size of {} "
      "the power against {} is {}.",
      count_words(test.config.datasets, "dataset"), number(test.statistic, 3),
      p_equals(test.p_value), null, percent(test.config.size, 0), alternative, percent(test.power));
  figure.panels.push_back(std::move(panel));
  return figure;
}

}  // namespace

std::vector<Figure> study_figures(const Results& results) {
  std::vector<Figure> out;
  const auto add = [&](std::optional<Figure> figure) {
    if (figure) out.push_back(std::move(*figure));
  };
  const auto add_all = [&](std::vector<Figure> figures) {
    for (auto& figure : figures) out.push_back(std::move(figure));
  };
  add(data_figure(results));
  add(scores_figure(results));
  add(ratio_figure(results));
  add(log_ratio_figure(results));
  add(likelihood_figure(results));
  add_all(surface_figures(results));
  add(correlation_figure(results));
  add(ensemble_figure(results));
  add(coverage_figure(results));
  add(test_figure(results));
  add_all(diagnostic_figures(results));
  if (results.measurement_summary)
    for (auto& figure : measurement_figures(*results.measurement_summary))
      if (figure.name != "measurement-correlations") out.push_back(std::move(figure));
  return out;
}

}  // namespace neyman::reports
