#include "neyman/reports/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

constexpr std::size_t label_width = 10;

std::string padded(const std::string& text, std::size_t width) {
  const std::size_t have = display_width(text);
  return text + std::string(width > have ? width - have : 0, ' ');
}

/// "  label     text"
class Lines {
 public:
  explicit Lines(const Pen& pen) : pen_(pen) {}

  void add(const std::string& label, const std::string& text) {
    out_ += "  " + pen_(Ink::dim, padded(label, label_width)) + " " + text + '\n';
  }
  void blank() { out_ += '\n'; }
  void raw(const std::string& line) { out_ += line + '\n'; }
  const std::string& text() const { return out_; }

 private:
  const Pen& pen_;
  std::string out_;
};

std::string intervals_of(const FitReport& report, std::size_t p) {
  std::string out;
  if (p >= report.intervals.size()) return out;
  for (const auto& interval : report.intervals[p])
    out += fmt::format("   {} {}", level_words(interval.level),
                       interval_words(interval, report.fit.error(p)));
  return out;
}

std::string estimate(const Results& r, const FitReport& report, std::size_t p) {
  return at_bound(r, report, p) ? number(report.fit.point[p], 6) + " at bound"
                                : measurement(report.fit.point[p], report.fit.error(p));
}

void add_one_parameter(const Results& r, const Pen& pen, Lines& lines) {
  const std::string learned = estimate(r, r.fit, 0);
  const std::string exact = r.exact_fit ? estimate(r, *r.exact_fit, 0) : "";
  const std::size_t width = std::max(display_width(learned), display_width(exact));
  lines.raw("  " + pen(Ink::bold, padded(symbol(r.parameters[0].name), label_width)) + " " +
            pen(r.fit.fit.ok() ? Ink::bold : Ink::red, padded(learned, width)) +
            intervals_of(r.fit, 0));
  if (r.exact_fit) lines.add("exact", padded(exact, width) + intervals_of(*r.exact_fit, 0));
  std::vector<std::string> notes;
  if (const double simulation = r.fit.fit.simulation_error(0); simulation > 0.0)
    notes.push_back(fmt::format("{} statistical, {} simulation",
                                number(r.fit.fit.statistical_error(0), 2), number(simulation, 2)));
  if (const auto distance = distance_to_exact(r, 0))
    notes.push_back(fmt::format("{:.2f} σ from exact", std::abs(*distance)));
  if (const auto& truth = r.parameters[0].truth) notes.push_back("truth " + number(*truth, 6));
  std::string text;
  for (const auto& note : notes) text += (text.empty() ? "" : " · ") + note;
  if (!text.empty()) lines.add("", pen(Ink::dim, text));
}

/// An estimate with the ends of its 68.3 % interval as errors, or whichever level comes first.
std::string asymmetric(const Results& r, const FitReport& report, std::size_t p) {
  if (at_bound(r, report, p) || p >= report.intervals.size() || report.intervals[p].empty())
    return estimate(r, report, p);
  const auto& interval = report.intervals[p].front();
  const double low = report.fit.point[p] - interval.low, high = interval.high - report.fit.point[p];
  if (!(low >= 0.0 && high >= 0.0) || !std::isfinite(low + high)) return estimate(r, report, p);
  return format_measurement(report.fit.point[p], low, high);
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
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::string line = " ";
    for (std::size_t c = 0; c < rows[i].size(); ++c) {
      const bool nuisance = i > 0 && r.parameters[i - 1].nuisance;
      const bool strong = i > 0 && c < 2 && !nuisance;
      const std::string cell = c + 1 < rows[i].size() ? padded(rows[i][c], widths[c]) : rows[i][c];
      line += (c < 1 ? " " : "   ") + (strong ? pen(r.fit.fit.ok() ? Ink::bold : Ink::red, cell)
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

void add_ensemble(const Results& r, const Pen& pen, Lines& lines) {
  if (!r.ensemble) return;
  const auto& ensemble = *r.ensemble;
  std::vector<std::string> biases, coverages;
  for (std::size_t p = 0; p < ensemble.bias.size(); ++p)
    biases.push_back(
        fmt::format("bias of {} {} σ", symbol(r.parameters[p].name), number(ensemble.bias[p], 2)));
  for (std::size_t l = 0; l < ensemble.coverage_with_simulation.size(); ++l)
    coverages.push_back(fmt::format(
        "{} covers {}", level_words(ensemble.config.levels[l]),
        share_words(ensemble.coverage_with_simulation[l], ensemble.approximate.statistic.size())));
  lines.add("ensemble", ensemble_words(r));
  const auto add = [&](const std::vector<std::string>& parts) {
    std::string text;
    for (const auto& part : parts) text += (text.empty() ? "" : " · ") + part;
    if (!text.empty()) lines.add("", text);
  };
  if (biases.size() == 1) {
    biases.insert(biases.end(), coverages.begin(), coverages.end());
    add(biases);
  } else {
    add(biases);
    add(coverages);
  }
  if (ensemble.approximate.failed > 0)
    lines.add("", pen(Ink::yellow, count_words(ensemble.approximate.failed, "fit") + " failed"));
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
    lines.add("", padded(entry.classifier, 14) + text);
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
      return out ? fmt::format("{} to {}", percent(out->low), percent(out->high)) : std::string();
    };
    const std::string asymptotic =
        range([](const CoveragePoint& p) { return p.ensemble.coverage; });
    const std::string simulated = range([](const CoveragePoint& p) { return p.coverage_critical; });
    lines.add(l == 0 ? "coverage" : "",
              fmt::format("{} covers {}{}", level_words(coverage.config.levels[l]), asymptotic,
                          simulated.empty() ? "" : ", with simulated thresholds " + simulated));
  }
  lines.add("", fmt::format("{} at each of {}", count_words(coverage.config.datasets, "dataset"),
                            count_words(coverage.points.size(), "point")));
}

std::pair<const char*, Ink> mark_of(Diagnostic::Verdict verdict) {
  switch (verdict) {
    case Diagnostic::Verdict::pass:
      return {"✓", Ink::green};
    case Diagnostic::Verdict::warn:
      return {"!", Ink::yellow};
    case Diagnostic::Verdict::fail:
      return {"✗", Ink::red};
  }
  return {"✗", Ink::red};
}

void add_checks(const Results& r, const Pen& pen, Lines& lines) {
  bool first = true;
  std::size_t widest = 13;
  for (const auto& check : r.diagnostics) widest = std::max(widest, display_width(check.name));
  for (const auto& check : r.diagnostics) {
    const auto [sign, ink] = mark_of(check.verdict);
    std::string text = pen(ink, fmt::format("{} {}", sign, to_string(check.verdict))) + "  " +
                       padded(check.name, widest + 1);
    text += check.p_value ? p_equals(*check.p_value) : "statistic " + number(check.statistic, 3);
    lines.add(first ? "checks" : "", text);
    first = false;
  }
  if (r.diagnostics.empty()) return;
  const auto all = together(r.diagnostics);
  const auto [sign, ink] = mark_of(all.verdict);
  lines.add("verdict",
            pen(ink, fmt::format("{} {}", sign, to_string(all.verdict))) + "  " + all.words);
}

}  // namespace

std::string summary(const Results& results, bool colour) {
  const Pen pen(colour);
  Lines lines(pen);
  lines.raw(pen(Ink::bold, title_of(results)));
  lines.raw(pen(Ink::dim, fmt::format("{} · {} · seed {}", data_words(results, false),
                                      results.classifier, results.seed)));
  lines.blank();
  add_fit(results, pen, lines);
  add_test(results, lines);
  add_ensemble(results, pen, lines);
  add_coverage(results, lines);
  add_comparison(results, lines);
  add_checks(results, pen, lines);
  if (!results.fit.fit.ok())
    lines.raw("  " + pen(Ink::red, "✗ the fit did not converge; this is the best point found"));
  for (const auto& warning : results.warnings) lines.raw("  " + pen(Ink::yellow, "! " + warning));
  return lines.text();
}

}  // namespace neyman::reports
