#include "neyman/reports/study_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "neyman/core/version.hpp"
#include "neyman/reports/html.hpp"
#include "neyman/reports/measurement_report.hpp"
#include "neyman/reports/symbol.hpp"
#include "neyman/reports/terminal.hpp"
#include "reports/words.hpp"

namespace neyman::reports {

namespace {

Verdict verdict_of(Diagnostic::Verdict verdict) {
  switch (verdict) {
    case Diagnostic::Verdict::pass:
      return Verdict::pass;
    case Diagnostic::Verdict::no_power:
      return Verdict::info;
    case Diagnostic::Verdict::warn:
      return Verdict::warn;
    case Diagnostic::Verdict::fail:
      return Verdict::fail;
  }
  return Verdict::fail;
}

/// Puts each figure at its place, and what is left at the end.
class Figures {
 public:
  Figures(Page& page, const std::vector<DrawnFigure>& drawn) : page_(page), drawn_(drawn) {}

  bool has(const std::string& name) const {
    return std::any_of(drawn_.begin(), drawn_.end(),
                       [&](const DrawnFigure& f) { return f.name == name; });
  }
  void place(const std::string& name) {
    for (const auto& figure : drawn_)
      if (figure.name == name && used_.insert(name).second) page_.figure(figure);
  }
  /// All whose name begins so, in their order.
  bool has_any(const std::string& start) const {
    return std::any_of(drawn_.begin(), drawn_.end(),
                       [&](const DrawnFigure& f) { return f.name.starts_with(start); });
  }
  void place_all(const std::string& start) {
    for (const auto& figure : drawn_)
      if (figure.name.starts_with(start)) place(figure.name);
  }
  /// The same, side by side where there is room.
  void place_together(const std::string& start) {
    std::vector<DrawnFigure> together;
    for (const auto& figure : drawn_)
      if (figure.name.starts_with(start) && used_.insert(figure.name).second)
        together.push_back(figure);
    if (!together.empty()) page_.figures(together);
  }
  /// Those whose name begins so are placed elsewhere.
  void leave_out(const std::string& start) {
    for (const auto& figure : drawn_)
      if (figure.name.starts_with(start)) used_.insert(figure.name);
  }
  bool any_left() const { return used_.size() < drawn_.size(); }
  void place_rest() {
    for (const auto& figure : drawn_) place(figure.name);
  }

 private:
  Page& page_;
  const std::vector<DrawnFigure>& drawn_;
  std::set<std::string> used_;
};

// --------------------------------------------------------------------------------- the lead

/// Those that can be drawn, the lowest level first.
std::vector<LevelRange> drawable(const std::vector<Interval>& intervals) {
  std::vector<LevelRange> out;
  for (const auto& interval : intervals)
    if (std::isfinite(interval.low) && std::isfinite(interval.high) &&
        interval.low <= interval.high && interval.level > 0.0 && interval.level < 1.0) {
      out.push_back({interval.level, {interval.low, interval.high}});
      for (const auto& piece : pieces_of(interval))
        out.back().pieces.push_back({piece.low, piece.high});
    }
  std::sort(out.begin(), out.end(),
            [](const LevelRange& a, const LevelRange& b) { return a.level < b.level; });
  return out;
}

Headline headline(const Results& r, const FitReport& report, std::size_t p, bool exact) {
  Headline out;
  out.parameter = symbol(r.parameters[p].name);
  out.label = exact ? "With the exact likelihood" : "With the learned likelihood";
  out.role = exact ? Role::exact : Role::approximate;
  out.estimate = report.fit.point[p];
  out.error_low = out.error_high = report.fit.error(p);
  if (p < report.intervals.size()) out.intervals = drawable(report.intervals[p]);
  if (at_bound(r, report, p) && !out.intervals.empty()) {
    // The curvature says nothing of one side; the interval shows the reach.
    const auto piece = piece_at(report.intervals[p].front(), out.estimate);
    out.error_low = std::max(0.0, out.estimate - piece.low);
    out.error_high = std::max(0.0, piece.high - out.estimate);
  }
  out.truth = r.parameters[p].truth;
  const auto distance = distance_to_exact(r, p);
  if (!exact && report.fit.simulation_error(p) > 0.0)
    out.note = fmt::format("statistical error {}, finite simulation {}",
                           rounded(report.fit.statistical_error(p), report.fit.error(p)),
                           rounded(report.fit.simulation_error(p), report.fit.error(p)));
  if (exact && distance)
    out.note = fmt::format("the learned estimate is {} statistical errors {}",
                           number(std::abs(*distance), 2), *distance >= 0.0 ? "higher" : "lower");
  return out;
}

bool finite(const Headline& h) {
  return std::isfinite(h.estimate) && std::isfinite(h.error_low) && std::isfinite(h.error_high);
}

/// Of many parameters a row each, all numbers of a row to the digits of the error.
Table headline_table(const Results& r) {
  Table table;
  const bool truth = std::any_of(r.parameters.begin(), r.parameters.end(),
                                 [](const Parameter& p) { return p.truth.has_value(); });
  table.columns = {"Parameter", "Estimate"};
  for (const double level : r.levels) table.columns.push_back(level_words(level));
  if (r.exact_fit) table.columns.push_back("Exact");
  if (truth) table.columns.push_back("Truth");
  table.numeric.assign(table.columns.size(), true);
  table.numeric[0] = false;
  for (const std::size_t p : r.parameters.of_interest()) {
    const double error = r.fit.fit.error(p);
    const bool bound = at_bound(r, r.fit, p).has_value();
    std::vector<std::string> row = {
        symbol(r.parameters[p].name),
        bound ? number(r.fit.fit.point[p], 6) + ", at a bound" : measurement(r.fit.fit, p)};
    for (std::size_t l = 0; l < r.levels.size(); ++l) {
      const bool known = p < r.fit.intervals.size() && l < r.fit.intervals[p].size();
      row.push_back(known ? interval_words(r.fit.intervals[p][l], error) : "");
    }
    if (r.exact_fit) row.push_back(measurement(r.exact_fit->fit, p));
    if (truth)
      row.push_back(r.parameters[p].truth ? number(*r.parameters[p].truth, 6) : std::string());
    table.rows.push_back(std::move(row));
  }
  return table;
}

void add_headlines(const Results& r, Page& page) {
  if (r.parameters.of_interest().size() > most_in_a_sentence) {
    page.table(headline_table(r));
    return;
  }
  std::vector<Headline> cards;
  for (const std::size_t p : r.parameters.of_interest()) {
    if (auto learned = headline(r, r.fit, p, false); finite(learned)) cards.push_back(learned);
    if (r.exact_fit)
      if (auto exact = headline(r, *r.exact_fit, p, true); finite(exact)) cards.push_back(exact);
  }
  page.headlines(cards);
}

std::vector<CheckLine> check_lines(const Results& r, const Figures& figures) {
  std::vector<CheckLine> lines;
  for (const auto& check : r.diagnostics) {
    std::string meaning = check.explanation;
    if (check.tolerance && *check.tolerance > 0.0)
      meaning += fmt::format(" Deviations up to {} are not counted.", number(*check.tolerance, 2));
    if (!check.note.empty()) meaning += " " + check.note;
    const std::string figure = file_stem("diagnostic-" + check.name);
    lines.push_back({check_words(r, check.name), verdict_of(check.verdict), meaning,
                     number(check.statistic, 3), check.p_value ? p_value(*check.p_value) : "",
                     figures.has(figure) ? figure : ""});
  }
  return lines;
}

/// All verdicts at a glance, and why one does not pass: nobody must scroll to learn of it.
void add_verdicts(const Results& r, Page& page, const Figures& figures) {
  if (r.diagnostics.empty()) return;
  std::string words = together(r).words;
  words.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(words.front())));
  std::string rest = unchecked_words(r);
  if (!rest.empty()) rest.front() = 'N';
  page.verdicts(words + "." + (rest.empty() ? "" : " " + rest + "."), check_lines(r, figures));
  for (const auto& check : r.diagnostics) {
    if (check.verdict == Diagnostic::Verdict::pass) continue;
    page.note(verdict_of(check.verdict),
              fmt::format("Check {}{}: {}{}", check_words(r, check.name),
                          check.p_value ? fmt::format(" ({})", p_equals(*check.p_value)) : "",
                          check.explanation, check.note.empty() ? "" : " " + check.note));
  }
}

/// A sentence begins with a capital and ends with a mark; names of files and of parameters stay.
std::string sentence(std::string text) {
  const std::size_t word = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz");
  if (word != std::string::npos && word > 2 && text[word] == ' ')
    text.front() = static_cast<char>(text.front() - 'a' + 'A');
  if (!text.empty() && std::string_view(".!?:").find(text.back()) == std::string_view::npos)
    text += '.';
  return text;
}

/// The beginning of a long text, up to the end of a sentence or a clause where there is one.
std::string beginning(const std::string& text) {
  constexpr std::size_t most = 180, least = 60;
  if (text.size() <= most) return text;
  std::size_t end = std::string::npos;
  for (const char* mark : {". ", "; ", ": ", ", ", " "}) {
    end = text.rfind(mark, most);
    if (end != std::string::npos && end >= least) break;
  }
  // Inside a character of several bytes there is no mark: a text without any is kept whole.
  return end == std::string::npos || end < least ? text : text.substr(0, end) + " …";
}

constexpr std::size_t most_warnings = 6;  // at the top

void add_next_steps(const Results& r, Page& page) {
  std::vector<std::string> steps;
  for (const auto& step : r.next_steps) steps.push_back(sentence(step_words(step)));
  if (!steps.empty()) page.notes(Verdict::info, "To do better, first things first:", steps);
}

/// The warnings in short; a section below has those in full that are long.
void add_warnings(const Results& r, Page& page) {
  std::vector<std::string> shown;
  bool shortened = false;
  for (std::size_t i = 0; i < r.warnings.size() && i < most_warnings; ++i) {
    const std::string whole = sentence(r.warnings[i]);
    shown.push_back(beginning(whole));
    shortened = shortened || shown.back() != whole;
  }
  if (r.warnings.size() > most_warnings)
    shown.push_back(fmt::format("… and {} more", r.warnings.size() - most_warnings));
  if (shown.size() == 1 && !shortened)
    page.note(Verdict::warn, shown.front());
  else
    page.notes(
        Verdict::warn,
        fmt::format("{}{}", count_words(r.warnings.size(), "warning"),
                    shortened || r.warnings.size() > most_warnings ? ", in full below:" : ":"),
        shown);
}

bool all_shown_in_short(const Results& r) {
  return r.warnings.size() <= most_warnings &&
         std::all_of(r.warnings.begin(), r.warnings.end(), [](const std::string& text) {
           return beginning(sentence(text)) == sentence(text);
         });
}

void add_lead(const Results& r, Page& page, const Figures& figures) {
  if (!r.fit.fit.ok())
    page.note(Verdict::fail,
              "The fit did not converge: the best point found is shown, and its errors and "
              "intervals cannot be trusted.");
  if (r.quick) page.note(Verdict::warn, sentence(quick_words()));
  add_next_steps(r, page);
  add_verdicts(r, page, figures);
  add_warnings(r, page);
  add_headlines(r, page);
}

// ------------------------------------------------------------------------------ the sections

/// The parameters of interest, then the others.
std::vector<std::size_t> by_interest(const ParameterSpace& parameters) {
  std::vector<std::size_t> out;
  for (const bool nuisance : {false, true})
    for (std::size_t p = 0; p < parameters.size(); ++p)
      if (parameters[p].nuisance == nuisance) out.push_back(p);
  return out;
}

constexpr const char* not_computed = "not computed";

Table result_table(const Results& r) {
  Table table;
  table.columns = {"Parameter", "Likelihood", "Estimate", "Statistical error", "Simulation error"};
  for (const double level : r.levels) table.columns.push_back(level_words(level) + " interval");
  table.numeric.assign(table.columns.size(), true);
  table.numeric[0] = table.numeric[1] = false;
  const auto add = [&](const FitReport& report, std::size_t p, const char* which) {
    std::vector<std::string> row = {
        symbol(r.parameters[p].name) + (r.parameters[p].nuisance ? " (nuisance)" : ""), which,
        rounded(report.fit.point[p], report.fit.error(p)),
        report.fit.statistical_error_known(p)
            ? rounded(report.fit.statistical_error(p), report.fit.error(p))
            : not_computed,
        !report.fit.simulation_error_known(p) ? not_computed
        : report.fit.simulation_error(p) > 0.0
            ? rounded(report.fit.simulation_error(p), report.fit.error(p))
            : "—"};
    for (std::size_t l = 0; l < r.levels.size(); ++l) {
      const bool known = p < report.intervals.size() && l < report.intervals[p].size();
      row.push_back(known ? interval_words(report.intervals[p][l], report.fit.error(p)) : "");
      if (known && !report.intervals[p][l].ok) row.back() += " (not to be trusted)";
    }
    table.rows.push_back(std::move(row));
  };
  for (const std::size_t p : by_interest(r.parameters)) {
    add(r.fit, p, "learned");
    if (r.exact_fit) add(*r.exact_fit, p, "exact");
  }
  return table;
}

/// How a fit ended, in a sentence.
std::string fit_words(const FitReport& report, const char* which) {
  const Fit& fit = report.fit;
  std::string text = fmt::format("The {} fit ", which);
  switch (fit.status) {
    case FitStatus::converged:
      text += "converged";
      break;
    case FitStatus::at_bound:
      text += fit.message.empty() ? "converged at the end of a parameter's range" : "converged";
      break;
    default:
      text += "did not converge";
  }
  text += fmt::format(" after {} of the likelihood", count_words(fit.evaluations, "evaluation"));
  if (std::isfinite(fit.distance))
    text += fmt::format("; its log-likelihood is estimated to be {} below the maximum",
                        fit.distance < 1e-6 ? "less than 10⁻⁶" : number(fit.distance, 2));
  if (!fit.message.empty()) text += fmt::format(" ({})", fit.message);
  return text + ".";
}

void add_result(const Results& r, Page& page, Figures& figures) {
  page.section("Result");
  page.table(result_table(r));
  page.paragraph(fit_words(r.fit, "learned") +
                 (r.exact_fit ? " " + fit_words(*r.exact_fit, "exact") : std::string()));
  for (const auto& words : r.measurement_words) page.paragraph(words + ".");
  figures.place("likelihood");
  figures.place("correlation");
}

void add_surfaces(const Results& r, Page& page, Figures& figures) {
  if (r.surfaces.empty() || !(figures.has_any("surface-") || figures.has_any("contours-"))) return;
  page.section("Likelihood surface");
  figures.place_all("surface-");
  figures.place_all("contours-");
}

Table composite_table(const Results& r) {
  Table table;
  table.columns = {"Hypothesis", "−2 log Λ", "Degrees of freedom", "p-value (χ²)",
                   "p-value (simulated)"};
  table.numeric = {false, true, true, true, true};
  for (const auto& test : r.composite_tests)
    table.rows.push_back({hypothesis_words(r, test.config.null), number(test.statistic, 4),
                          fmt::format("{}{}", test.mixed ? "½ of " : "", number(test.degrees)),
                          p_value(test.p_value),
                          test.simulated_p_value ? p_value(*test.simulated_p_value) : "—"});
  return table;
}

void add_test(const Results& r, Page& page, Figures& figures) {
  if (!r.test && r.composite_tests.empty()) return;
  page.section(r.composite_tests.empty() ? "Test" : "Tests");
  if (!r.composite_tests.empty()) page.table(composite_table(r));
  if (!r.test) return;
  if (!figures.has("test")) page.paragraph(test_words(r));
  figures.place("test");
}

std::vector<std::string> coverage_row(const Results& r, const std::string& name, double level,
                                      std::optional<double> learned, std::optional<double> exact) {
  const auto& ensemble = *r.ensemble;
  const auto cell = [](std::optional<double> share, std::size_t n) {
    return share ? share_words(*share, n) : std::string();
  };
  return {name, level_words(level), cell(learned, ensemble.approximate.statistic.size()),
          cell(exact, ensemble.exact ? ensemble.exact->statistic.size() : 0)};
}

Table ensemble_table(const Results& r) {
  const auto& ensemble = *r.ensemble;
  const auto* exact = ensemble.exact ? &*ensemble.exact : nullptr;
  Table table;
  table.columns = {"Over the ensemble", "Expected", "Learned", "Exact"};
  table.numeric = {false, true, true, true};
  for (std::size_t p = 0; p < r.parameters.size(); ++p) {
    const std::string name = symbol(r.parameters[p].name);
    const auto n = static_cast<double>(ensemble.approximate.statistic.size());
    const auto mean_cell = [&](const EnsembleSide& side) {
      return measurement(side.means[p], n > 0.0 ? side.spreads[p] / std::sqrt(n) : 0.0);
    };
    const std::string expected =
        p < ensemble.config.point.size() ? number(ensemble.config.point[p]) : "";
    table.rows.push_back({"Mean estimate of " + name, expected, mean_cell(ensemble.approximate),
                          exact ? mean_cell(*exact) : ""});
    table.rows.push_back({"Standard deviation of " + name, "",
                          number(ensemble.approximate.spreads[p], 3),
                          exact ? number(exact->spreads[p], 3) : ""});
    table.rows.push_back(
        {"Bias of " + name + ", in standard deviations", "0", number(ensemble.bias[p], 2), ""});
    if (p < ensemble.simulation_share.size() && ensemble.simulation_share[p] > 0.0)
      table.rows.push_back({"Simulation error of " + name + " / statistical error", "",
                            number(ensemble.simulation_share[p], 2), ""});
  }
  const auto at = [](const std::vector<double>& values, std::size_t l) {
    return l < values.size() ? std::optional(values[l]) : std::nullopt;
  };
  for (std::size_t l = 0; l < ensemble.config.levels.size(); ++l) {
    const double level = ensemble.config.levels[l];
    table.rows.push_back(coverage_row(r, "Coverage of the intervals", level,
                                      at(ensemble.coverage_with_simulation, l),
                                      exact ? at(exact->coverage, l) : std::nullopt));
    table.rows.push_back(coverage_row(r, "… without the simulation error", level,
                                      at(ensemble.approximate.coverage, l), std::nullopt));
  }
  for (std::size_t i = 0; i < ensemble.approximate.profiles.size(); ++i) {
    const auto& profile = ensemble.approximate.profiles[i];
    if (profile.parameter >= r.parameters.size()) continue;
    const auto* other =
        exact != nullptr && i < exact->profiles.size() ? &exact->profiles[i] : nullptr;
    for (std::size_t l = 0; l < ensemble.config.levels.size(); ++l)
      table.rows.push_back(
          coverage_row(r, "Coverage for " + symbol(r.parameters[profile.parameter].name) + " alone",
                       ensemble.config.levels[l], at(profile.coverage, l),
                       other != nullptr ? at(other->coverage, l) : std::nullopt));
  }
  table.rows.push_back({"χ² test of −2 log Λ, p-value", "",
                        p_value(ensemble.approximate.wilks.p_value),
                        exact ? p_value(exact->wilks.p_value) : ""});
  table.rows.push_back({"Fits that failed", "0", format_count(ensemble.approximate.failed),
                        exact ? format_count(exact->failed) : ""});
  if (exact == nullptr) {
    table.columns.pop_back();
    table.numeric.pop_back();
    for (auto& row : table.rows) row.pop_back();
  }
  return table;
}

/// What the ensemble says about the result above, in one or two sentences.
std::string ensemble_finding(const Results& r) {
  const auto& ensemble = *r.ensemble;
  std::string text = fmt::format(
      "What the method does in repetition: {} were simulated and fitted.", ensemble_words(r));
  std::vector<std::string> biases;
  for (std::size_t p = 0; p < r.parameters.size(); ++p)
    biases.push_back(fmt::format("{} is biased by {} standard deviations",
                                 symbol(r.parameters[p].name), number(ensemble.bias[p], 2)));
  text += fmt::format(" The estimate of {}{}.", join_words(biases),
                      ensemble.exact ? " against the exact fit" : "");
  const auto n = ensemble.approximate.statistic.size();
  std::vector<std::string> coverages;
  for (std::size_t l = 0; l < ensemble.coverage_with_simulation.size(); ++l)
    coverages.push_back(fmt::format("the {} intervals contain the simulated value in {}",
                                    level_words(ensemble.config.levels[l]),
                                    share_words(ensemble.coverage_with_simulation[l], n)));
  if (!coverages.empty()) {
    coverages.front().front() = 'T';
    text += " " + join_words(coverages) + " of the datasets.";
  }
  return text;
}

void add_ensemble(const Results& r, Page& page, Figures& figures) {
  if (!r.ensemble) return;
  page.section("Ensemble");
  page.paragraph(ensemble_finding(r));
  figures.place("ensemble");
  page.table(ensemble_table(r));
}

/// A row for each point and level.
Table coverage_table(const Results& r) {
  const auto& coverage = *r.coverage;
  Table table;
  table.columns = {"Point", "Simulated at", "Level", "With χ² thresholds"};
  table.numeric = {true, false, true, true};
  const bool simulated = coverage.config.critical_datasets > 0;
  if (simulated) {
    for (const char* column : {"With simulated thresholds", "Threshold", "χ² threshold"})
      table.columns.push_back(column);
    table.numeric.resize(table.columns.size(), true);
  }
  for (std::size_t i = 0; i < coverage.points.size(); ++i) {
    const auto& point = coverage.points[i];
    const std::size_t n = point.ensemble.statistic.size();
    for (std::size_t l = 0; l < coverage.config.levels.size(); ++l) {
      const auto share = [&](const std::vector<double>& values) {
        return l < values.size() ? share_words(values[l], n) : std::string();
      };
      std::vector<std::string> row = {std::to_string(i + 1), theta_words(r, point.point),
                                      level_words(coverage.config.levels[l]),
                                      share(point.ensemble.coverage)};
      if (simulated) {
        const auto* critical = l < point.critical.size() ? &point.critical[l] : nullptr;
        row.push_back(share(point.coverage_critical));
        row.push_back(critical ? number(critical->toys, 3) + (critical->enough ? "" : " (too few)")
                               : "");
        row.push_back(critical ? number(critical->asymptotic, 3) : "");
      }
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

void add_coverage(const Results& r, Page& page, Figures& figures) {
  if (!r.coverage || r.coverage->points.empty()) return;
  page.section("Coverage");
  if (!figures.has("coverage")) page.paragraph(coverage_words(r));
  figures.place("coverage");
  page.table(coverage_table(r));
}

void add_ratio(const Results& r, Page& page, Figures& figures) {
  const bool any = figures.has("data") || figures.has("scores") || !r.comparisons.empty();
  if (!any) return;
  page.section(figures.has("scores") || !r.comparisons.empty() ? "Data and learned ratio" : "Data");
  figures.place("data");
  figures.place("scores");
  figures.place("ratio");
  Table table;
  table.caption = "Mean |log r̂ − log r| over events at " + (r.compared_point.empty()
                                                                ? std::string("the compared point")
                                                                : theta_words(r, r.compared_point));
  table.columns = {"Classifier", "Uncalibrated", "Calibrated", "Decomposed"};
  table.numeric = {false, true, true, true};
  for (const auto& entry : r.comparisons) {
    const auto cell = [](const std::optional<double>& error) {
      return error ? number(*error, 2) : std::string("—");
    };
    if (entry.uncalibrated_error || entry.calibrated_error || entry.decomposed_error)
      table.rows.push_back({entry.classifier, cell(entry.uncalibrated_error),
                            cell(entry.calibrated_error), cell(entry.decomposed_error)});
  }
  if (!table.rows.empty()) page.table(table);
  figures.place("log-ratio");
}

void add_checks(const Results& r, Page& page, Figures& figures) {
  if (r.diagnostics.empty()) return;
  page.section("Checks");
  page.checks(check_lines(r, figures));
  figures.place_together("diagnostic-");
}

/// "command: a b c" with the words after the kind as code.
std::string simulator_words(const Results& r) {
  const std::size_t colon = r.simulator.find(": ");
  const bool outside = colon != std::string::npos && colon < r.simulator.find_first_of(" (");
  return outside
             ? fmt::format("{} `{}`", r.simulator.substr(0, colon), r.simulator.substr(colon + 2))
             : r.simulator;
}

void add_asked(const Results& r, Page& page) {
  page.section("What was asked");
  std::vector<Fact> facts;
  for (const auto& parameter : r.parameters) {
    std::string value =
        fmt::format("{} to {}", number(parameter.low, 6), number(parameter.high, 6));
    if (parameter.truth) value += ", truth " + number(*parameter.truth, 6);
    if (parameter.nuisance) value += ", nuisance";
    facts.push_back({"Parameter " + symbol(parameter.name), value});
  }
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) facts.push_back({name, value});
  };
  if (r.reference.size() == r.parameters.size())
    add("Reference", point_words(r.parameters, r.reference));
  add("Components", join_words(r.component_names));
  add(r.feature_names.size() == 1 ? "Feature" : "Features", join_words(r.feature_names));
  add("Simulator", simulator_words(r));
  if (const auto training = r.budget.find("simulated"); training != r.budget.end())
    add("Budget for training", count_words(training->second, "event"));
  if (r.quick) add("Size", "quick: a tenth of what the study asks for");
  add("Data", data_words(r));
  add("Columns of the data", r.data_note);
  if (r.outside > 0) add("Outside the calibrated range", count_words(r.outside, "event"));
  add("Ratio", r.ratio);
  add("Classifier", r.classifier);
  add("Calibration", r.calibration);
  std::vector<std::string> levels;
  for (const double level : r.levels) levels.push_back(level_words(level));
  add("Confidence levels", join_words(levels));
  add("Seed", std::to_string(r.seed));
  page.facts(facts);
}

std::string model_words(const std::string& name) {
  if (name == "features") return "density of the features";
  if (name == "parameters") return "density of the parameters";
  if (name == "network") return "network of features and parameters";
  return "separable network";
}

/// The models that held-out events chose from.
void add_models(const Results& r, Page& page) {
  if (r.models.empty()) return;
  page.section("Which model of the ratio");
  Table table;
  table.caption =
      "What each model knows of the parameters from one held-out event, and how far it is behind "
      "the best";
  table.columns = {"Model", "Score / nats", "Behind", "Time", "Used"};
  table.numeric = {false, true, true, true, false};
  for (const auto& model : r.models) {
    const bool tried = model.seconds > 0.0;
    std::string used = model.note;
    if (r.events == 1 ? model.share > 0.0 : model.chosen)
      used = r.events == 1 ? fmt::format("{:.0f} % of the mean", 100.0 * model.share) : "yes";
    table.rows.push_back({model_words(model.name), tried ? fmt::format("{:.4f}", model.score) : "—",
                          !tried ? "—"
                          : model.behind == 0.0
                              ? "best"
                              : fmt::format("{:.4f} ± {:.4f}", model.behind, model.behind_error),
                          tried ? format_duration(model.seconds) : "—", used});
  }
  page.table(table);
  if (!r.unused_features.empty())
    page.paragraph(fmt::format(
        "The models do not see {} of the {} features, which show no dependence on the parameters, "
        "and without which held-out events are described as well: {}.",
        r.unused_features.size(), r.feature_names.size(), fmt::join(r.unused_features, ", ")));
}

void add_cost(const Results& r, Page& page) {
  if (r.timing.empty() && r.budget.empty()) return;
  page.section("What it took");
  if (!r.budget.empty()) {
    Table table;
    table.columns = {"Simulated for", "Events"};
    table.numeric = {false, true};
    const auto add = [&](const std::string& key, std::size_t events) {
      table.rows.push_back(
          {key == "simulated" ? "training and calibration" : key, format_count(events)});
    };
    if (const auto training = r.budget.find("simulated"); training != r.budget.end())
      add(training->first, training->second);
    for (const auto& [purpose, events] : r.budget)
      if (purpose != "simulated") add(purpose, events);
    page.table(table);
  }
  if (!r.timing.empty()) {
    Table table;
    table.caption = "On " + count_words(r.threads, "thread");
    table.columns = {"Stage", "Time"};
    table.numeric = {false, true};
    for (const auto& [stage, seconds] : r.timing)
      table.rows.push_back(
          {stage, std::isfinite(seconds) && seconds >= 0.0 ? format_duration(seconds) : "—"});
    table.rows.push_back({"all", format_duration(total_seconds(r))});
    page.table(table);
  }
}

}  // namespace

std::string study_report(const Results& results, const std::vector<DrawnFigure>& drawn) {
  std::string lead = answer(results);
  if (results.test) lead += " " + test_words(results);
  for (const auto& test : results.composite_tests) lead += " " + composite_words(results, test);
  Page page(title_of(results), lead);
  Figures figures(page, drawn);
  add_lead(results, page, figures);
  add_result(results, page, figures);
  if (results.measurement_summary) {
    add_measurement(page, *results.measurement_summary, drawn);
    figures.leave_out("measurement-");
  }
  add_surfaces(results, page, figures);
  add_test(results, page, figures);
  add_ensemble(results, page, figures);
  add_coverage(results, page, figures);
  add_checks(results, page, figures);
  add_ratio(results, page, figures);
  if (figures.any_left()) {
    page.section("Further figures");
    figures.place_rest();
  }
  add_asked(results, page);
  add_models(results, page);
  add_cost(results, page);
  if (!results.warnings.empty() && !all_shown_in_short(results)) {
    page.section("Warnings");
    std::vector<std::string> whole;
    for (const auto& warning : results.warnings) whole.push_back(sentence(warning));
    page.list(whole);
  }
  if (!results.command.empty()) {
    page.section("To repeat");
    page.code(results.command);
  }
  page.footer({{"Made with", "neyman " + results.version},
               {"Built with", built_with()},
               {"Study", results.name},
               {"Seed", std::to_string(results.seed)},
               {"Beside this page",
                "`results.json`, and in `figures/` each figure as PDF, SVG, "
                "data and gnuplot script"}});
  return page.html();
}

}  // namespace neyman::reports
