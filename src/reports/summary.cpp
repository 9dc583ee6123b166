#include "neyman/reports/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "neyman/reports/figure.hpp"
#include "neyman/reports/symbol.hpp"
#include "neyman/reports/terminal.hpp"
#include "reports/words.hpp"

namespace neyman::reports {

namespace {

enum class Ink { bold, dim, green, yellow, red };

/// Text with or without colours.
class Pen {
 public:
  explicit Pen(bool colour) : colour_(colour) {}

  std::string operator()(Ink ink, const std::string& text) const {
    if (!colour_) return text;
    const auto code = [&] {
      switch (ink) {
        case Ink::bold:
          return "1";
        case Ink::dim:
          return "2";
        case Ink::green:
          return "32";
        case Ink::yellow:
          return "33";
        case Ink::red:
          return "31";
      }
      return "0";
    }();
    return fmt::format("\033[{}m{}\033[0m", code, text);
  }

 private:
  bool colour_;
};

constexpr std::size_t page_width = 80;
constexpr std::size_t label_width = 8;
constexpr std::size_t margin = 2 + label_width + 1;

std::string padded(const std::string& text, std::size_t width) {
  const std::size_t have = display_width(text);
  return text + std::string(width > have ? width - have : 0, ' ');
}

/// "  label     text", with as many lines as the width of the page takes.
class Lines {
 public:
  explicit Lines(const Pen& pen) : pen_(pen) {}

  void add(const std::string& label, const std::string& text, std::optional<Ink> ink = {},
           Ink label_ink = Ink::dim) {
    begin(label, label_ink);
    for (const auto& line : wrap(text, page_width - margin)) put(ink ? pen_(*ink, line) : line);
  }
  /// Parts that are not broken where that can be avoided, as many in a line as there is room for.
  void add_parts(const std::string& label, const std::vector<std::string>& parts,
                 const std::string& between, std::optional<Ink> ink = {}) {
    std::string line;
    std::string shown = label;
    const auto end = [&] {
      const bool fits = display_width(line) <= page_width - margin;
      if (!line.empty() && fits) add_line(shown, ink ? pen_(*ink, line) : line);
      if (!fits) add(shown, line, ink);
      shown.clear();
      line.clear();
    };
    for (const auto& part : parts) {
      if (!line.empty() && display_width(line + between + part) > page_width - margin) end();
      line += (line.empty() ? "" : between) + part;
    }
    end();
  }
  /// A line with colours of its own.
  void add_line(const std::string& label, const std::string& line, Ink label_ink = Ink::dim) {
    begin(label, label_ink);
    put(line);
  }
  void blank() { out_ += '\n'; }
  void raw(const std::string& line) { out_ += line + '\n'; }
  void wrapped(const std::string& text, Ink ink) {
    for (const auto& line : wrap(text, page_width)) raw(pen_(ink, line));
  }
  /// "  ! text"
  void mark(const std::string& sign, const std::string& text, Ink ink) {
    std::string before = "  " + sign + ' ';
    for (const auto& line : wrap(text, page_width - 4)) {
      raw(pen_(ink, before + line));
      before = "    ";
    }
  }
  const std::string& text() const { return out_; }

 private:
  /// A label that is too long has a line of its own.
  void begin(const std::string& label, Ink ink) {
    label_ = label;
    label_ink_ = ink;
    if (display_width(label) <= label_width) return;
    for (const auto& line : wrap(label, page_width - 2)) raw("  " + pen_(ink, line));
    label_.clear();
  }
  void put(const std::string& line) {
    out_ += "  " + pen_(label_ink_, padded(label_, label_width)) + " " + line + '\n';
    label_.clear();
  }

  const Pen& pen_;
  std::string out_, label_;
  Ink label_ink_ = Ink::dim;
};

std::vector<std::string> intervals_of(const FitReport& report, std::size_t p) {
  std::vector<std::string> out;
  if (p >= report.intervals.size()) return out;
  for (const auto& interval : report.intervals[p])
    out.push_back(fmt::format("{} {}", level_words(interval.level),
                              interval_words(interval, report.fit.error(p))));
  return out;
}

std::string estimate(const Results& r, const FitReport& report, std::size_t p) {
  return at_bound(r, report, p) ? number(report.fit.point[p], 6) + " at bound"
                                : measurement(report.fit, p);
}

/// An estimate and its intervals, in one line where there is room.
void add_estimate(const std::string& label, const std::string& value, std::size_t width,
                  const std::vector<std::string>& intervals, Ink label_ink, std::optional<Ink> ink,
                  const Pen& pen, Lines& lines) {
  std::string rest;
  for (const auto& interval : intervals) rest += "   " + interval;
  const auto inked = [&](const std::string& text) { return ink ? pen(*ink, text) : text; };
  if (margin + width + display_width(rest) <= page_width) {
    lines.add_line(label, inked(padded(value, width)) + rest, label_ink);
    return;
  }
  lines.add_line(label, inked(value), label_ink);
  lines.add_parts("", intervals, "   ");
}

void add_one_parameter(const Results& r, const Pen& pen, Lines& lines) {
  const std::string learned = estimate(r, r.fit, 0);
  const std::string exact = r.exact_fit ? estimate(r, *r.exact_fit, 0) : "";
  const std::size_t width = std::max(display_width(learned), display_width(exact));
  add_estimate(symbol(r.parameters[0].name), learned, width, intervals_of(r.fit, 0), Ink::bold,
               r.fit.fit.ok() ? Ink::bold : Ink::red, pen, lines);
  if (r.exact_fit)
    add_estimate("exact", exact, width, intervals_of(*r.exact_fit, 0), Ink::dim, {}, pen, lines);
  std::vector<std::string> notes;
  if (const double simulation = r.fit.fit.simulation_error(0); simulation > 0.0)
    notes.push_back(fmt::format("{} statistical, {} simulation",
                                rounded(r.fit.fit.statistical_error(0), r.fit.fit.error(0)),
                                rounded(simulation, r.fit.fit.error(0))));
  else if (!r.fit.fit.simulation_error_known(0))
    notes.push_back("simulation error not computed");
  if (const auto distance = distance_to_exact(r, 0))
    notes.push_back(fmt::format("{:.2f}σ from exact", std::abs(*distance)));
  if (const auto& truth = r.parameters[0].truth) notes.push_back("truth " + number(*truth, 6));
  lines.add_parts("", notes, " · ", Ink::dim);
}

/// An estimate with the ends of its 68.3 % interval as errors, or whichever level comes first.
std::string asymmetric(const Results& r, const FitReport& report, std::size_t p) {
  if (at_bound(r, report, p) || p >= report.intervals.size() || report.intervals[p].empty())
    return estimate(r, report, p);
  const auto piece = piece_at(report.intervals[p].front(), report.fit.point[p]);
  const double low = report.fit.point[p] - piece.low, high = piece.high - report.fit.point[p];
  if (!(low >= 0.0 && high >= 0.0) || !std::isfinite(low + high)) return estimate(r, report, p);
  return format_measurement(report.fit.point[p], low, high);
}

/// A few lines for each parameter, where a table would be too wide.
void add_parameters_one_by_one(const Results& r, const Pen& pen, Lines& lines) {
  for (std::size_t p = 0; p < r.parameters.size(); ++p) {
    const Ink ink = !r.fit.fit.ok() ? Ink::red : r.parameters[p].nuisance ? Ink::dim : Ink::bold;
    lines.add_line(symbol(r.parameters[p].name), pen(ink, asymmetric(r, r.fit, p)), ink);
    lines.add_parts("", intervals_of(r.fit, p), "   ");
    std::vector<std::string> notes;
    if (r.exact_fit)
      notes.push_back("exact " + rounded(r.exact_fit->fit.point[p], r.exact_fit->fit.error(p)));
    if (r.parameters[p].truth) notes.push_back("truth " + number(*r.parameters[p].truth, 6));
    lines.add_parts("", notes, " · ", Ink::dim);
  }
}

/// A line for each parameter, in columns.
void add_parameters(const Results& r, const Pen& pen, Lines& lines) {
  std::vector<std::vector<std::string>> rows = {{"", "estimate"}};
  for (const double level : r.levels) rows[0].push_back(level_words(level));
  if (r.exact_fit) rows[0].push_back("exact");
  const bool truth = std::any_of(r.parameters.begin(), r.parameters.end(),
                                 [](const Parameter& p) { return p.truth.has_value(); });
  if (truth) rows[0].push_back("truth");
  for (std::size_t p = 0; p < r.parameters.size(); ++p) {
    auto& row = rows.emplace_back();
    row = {symbol(r.parameters[p].name), asymmetric(r, r.fit, p)};
    for (std::size_t l = 0; l < r.levels.size(); ++l)
      row.push_back(p < r.fit.intervals.size() && l < r.fit.intervals[p].size()
                        ? interval_words(r.fit.intervals[p][l], r.fit.fit.error(p))
                        : "");
    if (r.exact_fit) row.push_back(rounded(r.exact_fit->fit.point[p], r.exact_fit->fit.error(p)));
    if (truth) row.push_back(r.parameters[p].truth ? number(*r.parameters[p].truth, 6) : "");
  }
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c)
      widths[c] = std::max(widths[c], display_width(row[c]));
  widths[0] = std::max(widths[0], label_width - 2);
  std::size_t whole = 2;
  for (const std::size_t width : widths) whole += width;
  // Three blanks between the columns, or two where that makes it fit.
  const std::size_t gaps = widths.size() - 1;
  if (whole + 2 * gaps > page_width) return add_parameters_one_by_one(r, pen, lines);
  const std::string between(whole + 3 * gaps > page_width ? 2 : 3, ' ');
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::string line = " ";
    for (std::size_t c = 0; c < rows[i].size(); ++c) {
      const bool nuisance = i > 0 && r.parameters[i - 1].nuisance;
      const bool strong = i > 0 && c < 2 && !nuisance;
      const std::string cell = c + 1 < rows[i].size() ? padded(rows[i][c], widths[c]) : rows[i][c];
      line +=
          (c < 1 ? " " : between) + (strong ? pen(r.fit.fit.ok() ? Ink::bold : Ink::red, cell)
                                            : (i == 0 || nuisance ? pen(Ink::dim, cell) : cell));
    }
    lines.raw(line);
  }
}

void add_fit(const Results& r, const Pen& pen, Lines& lines) {
  if (r.parameters.size() == 1)
    add_one_parameter(r, pen, lines);
  else
    add_parameters(r, pen, lines);
}

void add_test(const Results& r, Lines& lines) {
  for (const auto& test : r.composite_tests)
    lines.add("test", fmt::format("{}: −2 log Λ = {}, {}{}", hypothesis_words(r, test.config.null),
                                  number(test.statistic, 3), p_equals(test.p_value),
                                  test.simulated_p_value
                                      ? ", simulated " + p_equals(*test.simulated_p_value)
                                      : std::string()));
  if (!r.test) return;
  lines.add(
      "test",
      fmt::format("{} against {}: {}, power {} at size {}", theta_words(r, r.test->config.null),
                  theta_words(r, r.test->config.alternative), p_equals(r.test->p_value),
                  percent(r.test->power), percent(r.test->config.size, 0)));
}

void add_ensemble(const Results& r, Lines& lines) {
  if (!r.ensemble) return;
  const auto& ensemble = *r.ensemble;
  std::vector<std::string> biases, coverages;
  for (std::size_t p = 0; p < ensemble.bias.size(); ++p)
    biases.push_back(fmt::format(
        "bias{} {}σ", ensemble.bias.size() > 1 ? " of " + symbol(r.parameters[p].name) : "",
        number(ensemble.bias[p], 2)));
  for (std::size_t l = 0; l < ensemble.coverage_with_simulation.size(); ++l)
    coverages.push_back(fmt::format(
        "{} covers {}", level_words(ensemble.config.levels[l]),
        share_words(ensemble.coverage_with_simulation[l], ensemble.approximate.statistic.size())));
  lines.add("ensemble", ensemble_words(r));
  if (biases.size() == 1) {
    biases.insert(biases.end(), coverages.begin(), coverages.end());
    lines.add_parts("", biases, " · ");
  } else {
    lines.add_parts("", biases, " · ");
    lines.add_parts("", coverages, " · ");
  }
  if (ensemble.approximate.failed > 0)
    lines.add("", count_words(ensemble.approximate.failed, "fit") + " failed", Ink::yellow);
}

void add_comparison(const Results& r, Lines& lines) {
  bool first = true;
  for (const auto& entry : r.comparisons) {
    std::string text;
    const auto add = [&](const std::optional<double>& error, const char* form) {
      if (error) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", form, number(*error, 2));
    };
    add(entry.uncalibrated_error, "uncalibrated");
    add(entry.calibrated_error, "calibrated");
    add(entry.decomposed_error, "decomposed");
    if (text.empty()) continue;
    if (first) lines.add("ratio", "mean |log r̂ − log r|");
    first = false;
    lines.add_parts("", {padded(entry.classifier, 14) + text}, "");
  }
}

void add_coverage(const Results& r, Lines& lines) {
  if (!r.coverage || r.coverage->points.empty()) return;
  const auto& coverage = *r.coverage;
  for (std::size_t l = 0; l < coverage.config.levels.size(); ++l) {
    const auto range = [&](std::vector<double> (*of)(const CoveragePoint&)) -> std::string {
      std::optional<Range> out;
      for (const auto& point : coverage.points) {
        const auto shares = of(point);
        if (l >= shares.size()) continue;
        out = out ? Range{std::min(out->low, shares[l]), std::max(out->high, shares[l])}
                  : Range{shares[l], shares[l]};
      }
      if (!out) return {};
      return out->low < out->high
                 ? fmt::format("{} to {}", number(100.0 * out->low, 3), percent(out->high))
                 : percent(out->high);
    };
    const std::string asymptotic =
        range([](const CoveragePoint& p) { return p.ensemble.coverage; });
    const std::string simulated = range([](const CoveragePoint& p) { return p.coverage_critical; });
    lines.add(l == 0 ? "coverage" : "",
              fmt::format("{} covers {}{}", level_words(coverage.config.levels[l]), asymptotic,
                          simulated.empty() ? "" : ", simulated thresholds " + simulated));
  }
  lines.add("", fmt::format("{} at {}", count_words(coverage.config.datasets, "dataset"),
                            coverage.points.size() == 1
                                ? theta_words(r, coverage.points.front().point)
                                : fmt::format("each of {} points", coverage.points.size())));
}

void add_next_steps(const Results& r, const Pen& pen, Lines& lines) {
  if (r.next_steps.empty()) return;
  lines.raw(pen(Ink::bold, "To do better, first things first:"));
  for (std::size_t i = 0; i < r.next_steps.size(); ++i)
    lines.mark(fmt::format("{}", i + 1), step_words(r.next_steps[i]), Ink::yellow);
}

std::pair<const char*, Ink> mark_of(Diagnostic::Verdict verdict) {
  switch (verdict) {
    case Diagnostic::Verdict::pass:
      return {"✓", Ink::green};
    case Diagnostic::Verdict::no_power:
      return {"–", Ink::dim};
    case Diagnostic::Verdict::warn:
      return {"!", Ink::yellow};
    case Diagnostic::Verdict::fail:
      return {"✗", Ink::red};
  }
  return {"✗", Ink::red};
}

std::string name_of(const Results& r, const Diagnostic& check) {
  return check_words(r, check.name);
}

void add_checks(const Results& r, const Pen& pen, Lines& lines) {
  constexpr std::size_t most = 40;
  bool first = true;
  std::size_t widest = 13;
  for (const auto& check : r.diagnostics)
    widest = std::max(widest, std::min(most, display_width(name_of(r, check))));
  for (const auto& check : r.diagnostics) {
    const auto [sign, ink] = mark_of(check.verdict);
    const std::string name = name_of(r, check);
    const std::string value =
        check.p_value ? p_equals(*check.p_value) : "statistic " + number(check.statistic, 3);
    const std::string verdict = pen(ink, fmt::format("{} {}", sign, to_string(check.verdict)));
    const std::string label = first ? "checks" : "";
    first = false;
    if (display_width(name) <= most) {
      lines.add_line(label, verdict + "  " + padded(name, widest + 1) + value);
    } else {
      lines.add_line(label, verdict + "  " + value);
      lines.add("", name);
    }
    // Why it is no pass.
    if (check.verdict != Diagnostic::Verdict::pass && !check.note.empty())
      for (const auto& line : wrap(check.note, page_width - margin - 8))
        lines.add_line("", std::string(8, ' ') + line);
  }
  if (r.diagnostics.empty()) return;
  const auto all = together(r);
  const auto [sign, ink] = mark_of(all.verdict);
  const auto words = wrap(all.words, page_width - margin - 8);
  for (std::size_t i = 0; i < words.size(); ++i)
    lines.add_line(i == 0 ? "verdict" : "",
                   (i == 0 ? pen(ink, fmt::format("{} {}", sign, to_string(all.verdict))) + "  "
                           : std::string(8, ' ')) +
                       words[i]);
}

}  // namespace

std::string summary(const Results& results, bool colour) {
  const Pen pen(colour);
  Lines lines(pen);
  lines.wrapped(title_of(results), Ink::bold);
  lines.wrapped(fmt::format("{} · {} · seed {}", data_words(results, false), results.classifier,
                            results.seed),
                Ink::dim);
  if (!results.data_note.empty()) lines.wrapped(results.data_note, Ink::dim);
  lines.blank();
  if (!results.next_steps.empty()) {
    add_next_steps(results, pen, lines);
    lines.blank();
  }
  add_fit(results, pen, lines);
  for (const auto& words : results.measurement_words) lines.add("measured", words);
  add_test(results, lines);
  add_ensemble(results, lines);
  add_coverage(results, lines);
  add_comparison(results, lines);
  add_checks(results, pen, lines);
  if (!results.fit.fit.ok())
    lines.mark("✗", "the fit did not converge; this is the best point found", Ink::red);
  if (results.quick) lines.mark("!", quick_words(), Ink::yellow);
  for (const auto& warning : results.warnings) lines.mark("!", warning, Ink::yellow);
  return lines.text();
}

std::string checks_table(const Results& results) {
  const Pen pen(false);
  Lines lines(pen);
  std::size_t widest = 16;
  for (const auto& check : results.diagnostics)
    widest = std::max(widest, std::min<std::size_t>(50, display_width(check.name)));
  lines.raw(fmt::format("{} {:<8} {:>9}", padded("check", widest), "verdict", "p-value"));
  for (const auto& check : results.diagnostics) {
    std::string name = check.name;
    if (display_width(name) > widest) {
      lines.wrapped(name, Ink::bold);
      name.clear();
    }
    lines.raw(fmt::format("{} {}{}", padded(name, widest), to_string(check.verdict),
                          check.p_value ? fmt::format("{:>{}}", format_p_value(*check.p_value),
                                                      18 - to_string(check.verdict).size())
                                        : ""));
    if (!check.note.empty())
      for (const auto& line : wrap(check.note, page_width - 4)) lines.raw("    " + line);
  }
  for (const auto& warning : results.warnings) lines.mark("!", warning, Ink::yellow);
  if (!results.next_steps.empty()) {
    lines.blank();
    add_next_steps(results, pen, lines);
  }
  return lines.text();
}

}  // namespace neyman::reports
