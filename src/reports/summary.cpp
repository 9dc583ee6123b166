#include "neyman/reports/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

void add_fit(const Results& r, const Pen& pen, Lines& lines) {
  for (std::size_t p = 0; p < r.parameters.size(); ++p) {
    const std::string learned = estimate(r, r.fit, p);
    const std::string exact = r.exact_fit ? estimate(r, *r.exact_fit, p) : "";
    const std::size_t width = std::max(display_width(learned), display_width(exact));
    const bool ok = r.fit.fit.ok();
    lines.raw("  " + pen(Ink::bold, padded(symbol(r.parameters[p].name), label_width)) + " " +
              pen(ok ? Ink::bold : Ink::red, padded(learned, width)) + intervals_of(r.fit, p));
    if (r.exact_fit) lines.add("exact", padded(exact, width) + intervals_of(*r.exact_fit, p));
    std::vector<std::string> notes;
    if (const double simulation = r.fit.fit.simulation_error(p); simulation > 0.0)
      notes.push_back(fmt::format("{} statistical, {} simulation",
                                  number(r.fit.fit.statistical_error(p), 2),
                                  number(simulation, 2)));
    if (const auto distance = distance_to_exact(r, p))
      notes.push_back(fmt::format("{:.2f} σ from exact", std::abs(*distance)));
    if (const auto& truth = r.parameters[p].truth) notes.push_back("truth " + number(*truth, 6));
    std::string text;
    for (const auto& note : notes) text += (text.empty() ? "" : " · ") + note;
    if (!text.empty()) lines.add("", pen(Ink::dim, text));
  }
}

void add_test(const Results& r, Lines& lines) {
  if (!r.test) return;
  lines.add("test", fmt::format("{} against {}: p = {}, power {} at size {}",
                                point_words(r.parameters, r.test->config.null),
                                point_words(r.parameters, r.test->config.alternative),
                                p_value(r.test->p_value), percent(r.test->power),
                                percent(r.test->config.size, 0)));
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
  std::string text;
  for (const auto& part : biases) text += (text.empty() ? "" : " · ") + part;
  for (const auto& part : coverages) text += " · " + part;
  lines.add("", text);
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

void add_checks(const Results& r, const Pen& pen, Lines& lines) {
  bool first = true;
  for (const auto& check : r.diagnostics) {
    const auto [sign, ink] = check.verdict == Diagnostic::Verdict::pass ? std::pair{"✓", Ink::green}
                             : check.verdict == Diagnostic::Verdict::warn
                                 ? std::pair{"!", Ink::yellow}
                                 : std::pair{"✗", Ink::red};
    std::string text = pen(ink, fmt::format("{} {}", sign, to_string(check.verdict))) + "  " +
                       padded(check.name, 14);
    text += check.p_value ? "p = " + p_value(*check.p_value)
                          : "statistic " + number(check.statistic, 3);
    lines.add(first ? "checks" : "", text);
    first = false;
  }
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
  add_comparison(results, lines);
  add_checks(results, pen, lines);
  if (!results.fit.fit.ok())
    lines.raw("  " + pen(Ink::red, "✗ the fit did not converge; this is the best point found"));
  for (const auto& warning : results.warnings) lines.raw("  " + pen(Ink::yellow, "! " + warning));
  return lines.text();
}

}  // namespace neyman::reports
