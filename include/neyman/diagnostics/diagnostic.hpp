#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace neyman {

/// A check that needs no truth: what was tested, how it came out, and what to draw.
struct Diagnostic {
  /// `no_power`: it could not have seen what it looks for; that is no warning about the ratio.
  enum class Verdict { pass, no_power, warn, fail };

  /// One curve or one set of points of a figure. `low` and `high`, where not empty, are the ends
  /// of error bars or of a band.
  struct Series {
    enum class Style { line, points, steps };
    std::string name;
    Style style = Style::line;
    std::vector<double> x, y, low, high;
  };
  struct Panel {
    std::string title, x_label, y_label;
    std::vector<Series> series;
  };

  std::string name;         ///< "reweighting", "closure", …
  std::string explanation;  ///< what is tested and what it means, in a sentence or two
  double statistic = 0.0;
  std::optional<double> p_value;
  std::optional<double> tolerance;  ///< deviations up to this do no harm and are not counted
  Verdict verdict = Verdict::pass;
  /// The most that a small p-value makes of it: what is sure, but small, is no failure.
  Verdict worst = Verdict::fail;
  std::string note;  ///< what limits the result ("has no power here"); empty: nothing does
  std::vector<std::pair<std::string, double>> numbers;  ///< further results, by name
  std::vector<Panel> panels;

  /// The value of a further result; nullopt where there is none of that name.
  std::optional<double> number(const std::string& key) const;
};
std::string to_string(Diagnostic::Verdict verdict);

/// The p-values below which a diagnostic warns and fails.
struct VerdictLevels {
  double warn = 1e-2;
  double fail = 1e-3;
};
Diagnostic::Verdict verdict_of(double p_value, const VerdictLevels& levels = {});

/// What a set of diagnostics says together.
struct Judgement {
  /// The worst one of those that have power; `no_power` where none has.
  Diagnostic::Verdict verdict = Diagnostic::Verdict::pass;
  double p_value = 1.0;  ///< the smallest, corrected for the number of tests
  std::size_t warned = 0, failed = 0;
};

/// The worst verdict of those that have power; `no_power` where there are some and none has.
Diagnostic::Verdict worst_of(std::span<const Diagnostic> diagnostics);

/// Sets the verdicts of a set of diagnostics, with Holm's correction for how many p-values it has:
/// the probability that a set of true hypotheses warns (or fails) anywhere is at most
/// `levels.warn` (`levels.fail`), however the tests depend on each other. A verdict without a
/// p-value is kept, and so is `no_power`, whose p-value does not count; a warning that a diagnostic
/// made for a reason of its own (see `note`) is not taken back, and none gets worse than its
/// `worst`.
Judgement judge(std::span<Diagnostic> diagnostics, const VerdictLevels& levels = {});

}  // namespace neyman
