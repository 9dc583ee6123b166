#include "neyman/reports/measurement_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "neyman/core/version.hpp"
#include "neyman/reports/symbol.hpp"
#include "neyman/reports/terminal.hpp"
#include "reports/measurement_words.hpp"
#include "reports/words.hpp"

namespace neyman::reports {

namespace {

void place_figures(Page& page, const std::vector<DrawnFigure>& figures, std::string_view start) {
  for (const auto& figure : figures)
    if (figure.name.starts_with(start)) page.figure(figure);
}

void add_measured_headline(Page& page, const MeasurementSummary& s) {
  const std::size_t interest = s.model.interest();
  const auto& interval = s.intervals[interest];
  if (!s.fit.ok() || !interval.ok) return;
  Headline card;
  card.parameter = interest_symbol(s);
  card.label = "Estimate";
  card.estimate = s.fit.point[interest];
  card.error_low = std::max(card.estimate - interval.low, 0.0);
  card.error_high = std::max(interval.high - card.estimate, 0.0);
  const double level = std::round(1000.0 * interval.level) / 1000.0;  // "68.3 %"
  card.intervals = {{level, {interval.low, interval.high}}};
  std::vector<std::string> parts;
  for (const auto& part : s.error_parts)
    parts.push_back(fmt::format("{} {}", part.group, number(part.error, 2)));
  if (!parts.empty()) card.note = "error: " + join_words(parts);
  page.headlines({card});
}

Table parameter_table(const MeasurementSummary& s) {
  Table table;
  table.columns = {"Parameter", "Estimate", "Error", "68.3 % interval"};
  table.numeric = {false, true, true, true};
  for (std::size_t p = 0; p < s.model.size(); ++p) {
    if (s.model.constraint_of(p)) continue;
    const double error = s.fit.error(p);
    table.rows.push_back({symbol(s.model.parameters()[p].name), rounded(s.fit.point[p], error),
                          s.model.fixed()[p]  ? "held"
                          : s.fit.at_bound[p] ? "at the end of its range"
                                              : rounded(error, error),
                          s.intervals[p].ok ? interval_words(s.intervals[p], error) : "—"});
  }
  return table;
}

std::string measured_fit_words(const MeasurementSummary& s) {
  const auto& fit = s.fit;
  std::string text = fmt::format("The fit of {} ", count_words(s.model.size(), "parameter"));
  text += fit.status == FitStatus::converged  ? "converged"
          : fit.status == FitStatus::at_bound ? "converged with a parameter at the end of its range"
                                              : "did not converge";
  text += fmt::format(
      " after {} of the likelihood",
      count_words(static_cast<std::size_t>(std::max(fit.evaluations, 0)), "evaluation"));
  if (!fit.message.empty()) text += fmt::format(" ({})", fit.message);
  text += ".";
  if (fit.ok() && s.model.bins() > 0)
    text += fmt::format(" χ² of the saturated model is {} for {}.",
                        number(-2.0 * fit.log_likelihood, 4), count_words(s.model.bins(), "bin"));
  return text;
}

Table limit_table(const MeasurementSummary& s) {
  Table table;
  table.columns = {"Limit on " + interest_symbol(s), "Observed", "Expected", "±1σ", "±2σ"};
  table.numeric = {false, true, true, true, true};
  const auto add = [&](const auto& limit, const std::string& how) {
    const auto between = [&](std::size_t low, std::size_t high) {
      return fmt::format("{} to {}", rounded_limit(limit.expected[low], limit),
                         rounded_limit(limit.expected[high], limit));
    };
    table.rows.push_back({how, rounded_limit(limit.observed, limit),
                          rounded_limit(limit.expected[2], limit), between(1, 3), between(0, 4)});
  };
  if (s.limit) add(*s.limit, "asymptotic formulae");
  if (s.toy_limit) add(*s.toy_limit, count_words(s.options.toys, "toy") + " a value");
  return table;
}

Table nuisance_table(const MeasurementSummary& s) {
  Table table;
  table.caption = "By their impact on the estimate of " + interest_symbol(s);
  table.columns = {"Parameter", "Pull", "Constraint", "Impact of +1σ", "Impact of −1σ"};
  table.numeric = {false, true, true, true, true};
  const double scale = impact_scale(s);
  for (const auto& row : nuisance_rows(s)) {
    const bool known = row.impact != nullptr && row.impact->ok;
    const double pull = row.pull->pull;
    table.rows.push_back({symbol(s.model.parameters()[row.parameter].name),
                          fmt::format("{}{:.2f}", pull <= -0.005 ? "−" : "+", std::abs(pull)),
                          fmt::format("{:.2f}", row.pull->constraint),
                          known ? signed_number(row.impact->up, scale) : "—",
                          known ? signed_number(row.impact->down, scale) : "—"});
  }
  return table;
}

Table variation_table(const MeasurementSummary& s) {
  Table table;
  table.caption = "Shapes of variations, tested on events that they were not learned from";
  table.columns = {"Parameter", "Component", "Events", "Part", "Significance", "Kept"};
  table.numeric = {false, false, false, false, true, true};
  for (const auto& variation : s.variations) {
    const auto add = [&](const std::string& part, const std::string& significance,
                         const std::string& kept) {
      table.rows.push_back(
          {symbol(variation.parameter), variation.component,
           variation.events == LearnedVariation::Events::nominal    ? "those of the nominal sample"
           : variation.events == LearnedVariation::Events::weighted ? "nominal, other weights"
                                                                    : "their own",
           part, significance, kept});
    };
    if (variation.parts.empty()) add("—", "—", "none");
    for (const auto& part : variation.parts)
      add(part.name, significance_words(part),
          part.strength > 0.0 ? fmt::format("{:.0f} %", 100.0 * part.strength) : "none");
  }
  return table;
}

void add_upper_limit(Page& page, const MeasurementSummary& s,
                     const std::vector<DrawnFigure>& figures) {
  if (!s.limit && s.cl_s.empty()) return;
  page.section("Upper limit");
  place_figures(page, figures, "measurement-limit");
  if (s.limit || s.toy_limit) page.table(limit_table(s));
  std::size_t failed = 0;
  if (s.toy_limit)
    for (const auto& test : s.toy_limit->tests) failed += test.failed;
  if (failed > 0)
    page.paragraph(fmt::format("{} of toys failed, and count against an exclusion.",
                               count_words(failed, "fit")));
}

void add_nuisance(Page& page, const MeasurementSummary& s,
                  const std::vector<DrawnFigure>& figures) {
  if (s.pulls.empty()) return;
  page.section("Nuisance parameters");
  place_figures(page, figures, "measurement-impacts");
  place_figures(page, figures, "measurement-correlations");
  page.table(nuisance_table(s));
  if (s.variations.empty()) return;
  page.table(variation_table(s));
  page.paragraph(
      "A shape below 3.3σ is pruned: as far as the simulation can tell there is none, and its "
      "noise "
      "would constrain the parameter. The difference is that between +1 and −1 of the parameter, "
      "the "
      "mean that of both from the nominal events. What is kept is multiplied by as much as "
      "held-out "
      "events ask for.");
}

std::vector<Fact> origin_facts(const MeasurementSummary& s, const MeasurementOrigin& origin) {
  std::vector<Fact> facts;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) facts.push_back({name, value});
  };
  add("Model", origin.source.empty() ? "" : "`" + origin.source + "`");
  std::vector<std::string> channels;
  for (const auto& histogram : s.histograms)
    if (histogram.feature.empty())
      channels.push_back(
          fmt::format("{} ({})", histogram.channel, count_words(histogram.observed.size(), "bin")));
  add("Channels", join_words(channels));
  if (s.model.unbinned_channels() > 0)
    add("Without bins", count_words(s.model.unbinned_channels(), "channel"));
  add("Data", origin.data.empty() ? "those observed" : origin.data);
  const auto& interest = s.model.parameters()[s.model.interest()];
  add("Parameter of interest", fmt::format("{}, from {} to {}", symbol(interest.name),
                                           number(interest.low, 6), number(interest.high, 6)));
  add("Constraints", std::to_string(s.model.constraints().size()));
  add("Test statistic", to_string(s.options.statistic));
  add("Level of the limit", level_words(s.options.level));
  if (s.options.toys > 0)
    add("Toys", fmt::format("{} of each hypothesis at {} values, seed {}",
                            format_count(s.options.toys), s.options.scan_points, s.options.seed));
  return facts;
}

}  // namespace

void add_measurement(Page& page, const MeasurementSummary& summary,
                     const std::vector<DrawnFigure>& figures) {
  page.section("Measurement");
  page.paragraph(measured_fit_words(summary));
  if (summary.fit.ok()) page.table(parameter_table(summary));
  place_figures(page, figures, "measurement-strength");
  place_figures(page, figures, "measurement-profile");
  add_upper_limit(page, summary, figures);
  add_nuisance(page, summary, figures);
  if (summary.pulls.empty()) place_figures(page, figures, "measurement-correlations");
  const bool any = std::any_of(figures.begin(), figures.end(), [](const DrawnFigure& figure) {
    return figure.name.starts_with("measurement-channel-");
  });
  if (!any) return;
  page.section("Before and after the fit");
  const auto shown = static_cast<std::size_t>(
      std::count_if(summary.histograms.begin(), summary.histograms.end(),
                    [](const ChannelHistogram& histogram) { return !histogram.feature.empty(); }));
  if (shown < summary.features)
    page.paragraph(
        fmt::format("Shown are {} of {} features: those whose distributions differ most between "
                    "two components.",
                    shown, summary.features));
  place_figures(page, figures, "measurement-channel-");
}

std::string measurement_report(const MeasurementSummary& summary, const MeasurementOrigin& origin,
                               const std::vector<DrawnFigure>& figures) {
  Page page(origin.title, result_words(summary));
  if (!summary.problems.empty())
    page.notes(Verdict::fail, "What could not be had:", summary.problems);
  for (const auto& warning : origin.warnings) page.note(Verdict::warn, warning);
  add_measured_headline(page, summary);
  add_measurement(page, summary, figures);
  page.section("What was asked");
  page.facts(origin_facts(summary, origin));
  if (!origin.command.empty()) {
    page.section("To repeat");
    page.code(origin.command);
  }
  page.footer({{"Made with", "neyman " + std::string(version())},
               {"Built with", built_with()},
               {"Beside this page",
                "`measurement.json`, and in `figures/` each figure as PDF, SVG, data and gnuplot "
                "script"}});
  return page.html();
}

}  // namespace neyman::reports
