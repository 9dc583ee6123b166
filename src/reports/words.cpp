#include "reports/words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "neyman/inference/statistics.hpp"
#include "neyman/reports/symbol.hpp"
#include "neyman/reports/terminal.hpp"

namespace neyman::reports {

namespace {

constexpr const char* unknown = "—";

}  // namespace

std::string number(double value, int digits) {
  return std::isfinite(value) ? format_number(value, digits) : unknown;
}

std::string percent(double fraction, int decimals) {
  return std::isfinite(fraction) ? format_percent(fraction, decimals) : unknown;
}

std::string p_value(double p) { return p >= 0.0 && p <= 1.0 ? format_p_value(p) : unknown; }

std::string p_equals(double p) {
  const std::string text = p_value(p);
  return (text.starts_with('<') ? "p " : "p = ") + text;
}

std::string measurement(double value, double error) {
  if (!std::isfinite(value)) return unknown;
  if (!std::isfinite(error) || error < 0.0) return format_number(value, 6) + " ± " + unknown;
  return format_measurement(value, error);
}

std::string measurement(const Fit& fit, std::size_t parameter) {
  const double value = fit.point[parameter];
  return fit.statistical_error_known(parameter) ? measurement(value, fit.error(parameter))
                                                : number(value, 6);
}

std::string rounded(double value, double error) {
  if (!(error > 0.0) || !std::isfinite(error) || !std::isfinite(value)) return number(value);
  const std::string text = format_measurement(value, error);
  return text.starts_with('(') ? number(value) : text.substr(0, text.find(" ±"));
}

std::string correlation_words(double rho) {
  return fmt::format("{}{:.2f}", rho <= -0.005 ? "−" : "", std::abs(rho));
}

std::vector<FitRange> pieces_of(const Interval& interval) {
  if (!interval.pieces.empty()) return interval.pieces;
  return {{std::min(interval.low, interval.high), std::max(interval.low, interval.high)}};
}

FitRange piece_at(const Interval& interval, double value) {
  const auto away = [&](const FitRange& piece) {
    return std::max({piece.low - value, value - piece.high, 0.0});
  };
  const auto pieces = pieces_of(interval);
  return *std::min_element(pieces.begin(), pieces.end(),
                           [&](const FitRange& a, const FitRange& b) { return away(a) < away(b); });
}

bool over_seam(const Interval& interval, const Parameter& parameter) {
  if (!parameter.periodic) return false;
  const auto pieces = pieces_of(interval);
  return std::any_of(pieces.begin(), pieces.end(), [&](const FitRange& piece) {
    return piece.low < parameter.low || piece.high > parameter.high;
  });
}

std::string interval_words(const Interval& interval, double error) {
  if (!std::isfinite(interval.low) || !std::isfinite(interval.high)) return unknown;
  std::string out;
  for (const auto& [low, high] : pieces_of(interval)) {
    const std::string plain = format_interval(low, high);
    // Where a power of ten is taken out, it is the same for both ends only there.
    const bool as_it_is = !(error > 0.0) || plain.find("×") != plain.npos;
    out += (out.empty() ? "" : " ∪ ") +
           (as_it_is ? plain : fmt::format("[{}, {}]", rounded(low, error), rounded(high, error)));
  }
  return out;
}

std::string level_words(double level) {
  return std::isfinite(level) ? format_number(100.0 * level, 6) + "\u00a0%" : unknown;
}

std::string sigma_words(double level) {
  for (int sigmas = 1; sigmas <= 5; ++sigmas)
    // 68.3 % and 95.4 % are how people write these levels.
    if (std::abs(level - level_of_sigmas(sigmas)) < 0.04 * (1.0 - level_of_sigmas(sigmas)) &&
        std::abs(level - level_of_sigmas(sigmas)) < 6e-4)
      return fmt::format("{}σ\u00a0({}\u00a0%)", sigmas, format_number(100.0 * level, 4));
  return level_words(level);
}

double binomial_error(double share, std::size_t n) {
  if (n == 0) return 0.0;
  // Agresti and Coull (1998): two successes and two failures more, so that all or none of the
  // datasets do not look certain.
  const double more = static_cast<double>(n) + 4.0;
  const double moved = (share * static_cast<double>(n) + 2.0) / more;
  return std::sqrt(moved * (1.0 - moved) / more);
}

std::string share_words(double share, std::size_t n) {
  if (!(share >= 0.0 && share <= 1.0) || n == 0) return unknown;
  return fmt::format("{:.1f}\u00a0±\u00a0{:.1f}\u00a0%", 100.0 * share,
                     100.0 * binomial_error(share, n));
}

std::string join_words(const std::vector<std::string>& words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i)
    out += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  return out;
}

std::string count_words(std::size_t count, const std::string& one) {
  return format_count(count) + ' ' + one + (count == 1 ? "" : "s");
}

std::string theta_words(const Results& results, const std::vector<double>& point) {
  const bool known =
      point.size() == results.parameters.size() &&
      std::all_of(point.begin(), point.end(), [](double v) { return std::isfinite(v); });
  return known && !point.empty() ? point_words(results.parameters, point) : "the reference";
}

Matrix correlation_of(const Fit& fit) {
  const std::size_t n = fit.covariance.rows();
  const bool both = fit.simulation_covariance.rows() == n;
  const auto covariance = [&](std::size_t i, std::size_t j) {
    return fit.covariance(i, j) + (both ? fit.simulation_covariance(i, j) : 0.0);
  };
  Matrix out(n, n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      const double scale = std::sqrt(covariance(i, i) * covariance(j, j));
      out(i, j) = scale > 0.0 ? (i == j ? 1.0 : covariance(i, j) / scale) : 0.0;
    }
  return out;
}

std::optional<End> at_bound(const Results& results, const FitReport& report,
                            std::size_t parameter) {
  const auto& range = results.parameters[parameter];
  if (range.periodic) return std::nullopt;
  // The fit itself calls a point at the bound when it is closer than this.
  const double near = 1e-9 * (range.high - range.low);
  const double value = report.fit.point[parameter];
  if (value - range.low < near) return End::low;
  if (range.high - value < near) return End::high;
  return std::nullopt;
}

std::string estimate_words(const Results& results, const FitReport& report, std::size_t parameter) {
  const std::string head = symbol(results.parameters[parameter].name) + " = ";
  const double value = report.fit.point[parameter];
  if (const auto end = at_bound(results, report, parameter))
    return fmt::format("{}{} (the {} end of its range)", head, number(value, 6),
                       *end == End::low ? "lower" : "upper");
  return head + measurement(report.fit, parameter);
}

std::string answer(const Results& results) {
  const auto interest = results.parameters.of_interest();
  const std::string from = count_words(results.events, "event");
  if (interest.size() > most_in_a_sentence)
    return results.fit.fit.ok()
               ? fmt::format("{} from {}.", count_words(interest.size(), "parameter"), from)
               : fmt::format("The fit of {} to {} did not converge.",
                             count_words(interest.size(), "parameter"), from);
  std::vector<std::string> parts;
  for (const std::size_t p : interest) {
    std::string part = estimate_words(results, results.fit, p);
    if (p < results.fit.intervals.size() && !results.fit.intervals[p].empty()) {
      const auto& interval = results.fit.intervals[p].front();
      part += fmt::format(", {} interval {}{}", level_words(interval.level),
                          interval_words(interval, results.fit.fit.error(p)),
                          over_seam(interval, results.parameters[p]) ? " (over the seam)" : "");
    }
    parts.push_back(std::move(part));
  }
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? "" : "; ") + parts[i];
  text += ", from " + from + ".";
  return results.fit.fit.ok() ? text : "The fit did not converge. The best point found is " + text;
}

std::string data_words(const Results& results, bool code) {
  const std::string events = count_words(results.events, "event");
  if (results.data_source.starts_with("simulated")) return events + ' ' + results.data_source;
  const std::string file = std::filesystem::path(results.data_source).filename().string();
  return events + " from " + (code ? '`' + file + '`' : file);
}

std::string test_words(const Results& results) {
  const auto& test = *results.test;
  const auto& config = test.config;
  const auto null = point_words(results.parameters, config.null);
  const auto alternative = point_words(results.parameters, config.alternative);
  // (1 + k) / (1 + n) with k = 0: more datasets could make it smaller.
  const bool least = test.p_value * (1.0 + static_cast<double>(config.datasets)) < 1.5;
  const std::string failed =
      test.failed > 0
          ? fmt::format(" {} could not be simulated and count{} against the result.",
                        count_words(test.failed, "dataset"), test.failed == 1 ? "s" : "")
          : std::string();
  return fmt::format(
      "Testing {} against {}: {}{}, so at a size of {} the data {} {}. Where {} is true, the "
      "test rejects with probability {}.{}",
      null, alternative, p_equals(test.p_value),
      least ? fmt::format(" (the least that {} can give)", count_words(config.datasets, "dataset"))
            : std::string(),
      percent(config.size, 0), test.p_value <= config.size ? "reject" : "do not reject", null,
      alternative, percent(test.power), failed);
}

std::optional<double> distance_to_exact(const Results& results, std::size_t parameter) {
  if (!results.exact_fit) return std::nullopt;
  const auto& exact = results.exact_fit->fit;
  const double error = exact.statistical_error(parameter);
  if (!(error > 0.0)) return std::nullopt;
  const double distance = results.parameters[parameter].difference(results.fit.fit.point[parameter],
                                                                   exact.point[parameter]) /
                          error;
  return std::isfinite(distance) ? std::optional(distance) : std::nullopt;
}

std::string ensemble_words(const Results& results) {
  const auto& config = results.ensemble->config;
  return fmt::format("{} of {} at {}", count_words(config.datasets, "dataset"),
                     count_words(config.events, "event"), theta_words(results, config.point));
}

std::string coverage_words(const Results& results) {
  const auto& coverage = *results.coverage;
  std::string text = fmt::format(
      "Share of {} simulated at {} whose region of a level holds that point, with its binomial "
      "error.",
      count_words(coverage.config.datasets, "dataset"),
      coverage.points.size() == 1 ? theta_words(results, coverage.points.front().point)
                                  : fmt::format("each of {} points", coverage.points.size()));
  if (coverage.config.critical_datasets > 0)
    text += fmt::format(" Simulated thresholds of −2 log Λ come from {} more{}.",
                        count_words(coverage.config.critical_datasets, "dataset"),
                        coverage.points.size() == 1 ? "" : " at each point");
  std::size_t failed = 0;
  for (const auto& point : coverage.points) failed += point.ensemble.failed + point.critical_failed;
  if (failed > 0) text += fmt::format(" {} failed and are left out.", count_words(failed, "fit"));
  return text;
}

std::string hypothesis_words(const Results& results, const CompositeHypothesis& hypothesis) {
  std::vector<std::string> parts;
  for (std::size_t p = 0; p < results.parameters.size(); ++p) {
    const auto& parameter = results.parameters[p];
    const std::string name = symbol(parameter.name);
    if (p < hypothesis.fixed.size() && hypothesis.fixed[p])
      parts.push_back(fmt::format("{}\u00a0=\u00a0{}", name, number(*hypothesis.fixed[p], 6)));
    if (p >= hypothesis.ranges.size() || !hypothesis.ranges[p]) continue;
    const auto& range = *hypothesis.ranges[p];
    const bool below = range.low <= parameter.low, above = range.high >= parameter.high;
    parts.push_back(
        below   ? fmt::format("{} at most {}", name, number(range.high, 6))
        : above ? fmt::format("{} at least {}", name, number(range.low, 6))
                : fmt::format("{} in [{}, {}]", name, number(range.low, 6), number(range.high, 6)));
  }
  return parts.empty() ? "nothing" : join_words(parts);
}

std::string composite_words(const Results& results, const CompositeTest& test) {
  std::string text =
      fmt::format("Testing {}: −2 log Λ = {}, {} from {}χ² with {}",
                  hypothesis_words(results, test.config.null), number(test.statistic, 4),
                  p_equals(test.p_value), test.mixed ? "half " : "",
                  count_words(static_cast<std::size_t>(test.degrees), "degree") + " of freedom");
  if (test.simulated_p_value)
    text += fmt::format(", {} from {}", p_equals(*test.simulated_p_value),
                        count_words(test.config.datasets, "simulated dataset"));
  text += ".";
  if (test.failed > 0)
    text += fmt::format(" {} of simulated data failed and count against rejection.",
                        count_words(test.failed, "fit"));
  if (!test.ok()) text += " A fit of the data did not converge: the test cannot be trusted.";
  return text;
}

Together together(const Results& results) {
  const auto& diagnostics = results.diagnostics;
  Together out;
  out.verdict = worst_of(diagnostics);
  std::vector<std::string> warned, failed, blind;
  for (const auto& diagnostic : diagnostics) {
    if (diagnostic.verdict == Diagnostic::Verdict::no_power)
      blind.push_back(check_words(results, diagnostic.name));
    if (diagnostic.verdict == Diagnostic::Verdict::warn)
      warned.push_back(check_words(results, diagnostic.name));
    if (diagnostic.verdict == Diagnostic::Verdict::fail)
      failed.push_back(check_words(results, diagnostic.name));
  }
  const std::size_t all = diagnostics.size(),
                    passed = all - warned.size() - failed.size() - blind.size();
  if (passed == all) {
    out.words = all == 1 ? "the only check passes: " + check_words(results, diagnostics[0].name)
                         : fmt::format("all {} checks pass", all);
    return out;
  }
  std::vector<std::string> parts;
  if (all > 1) parts.push_back(fmt::format("{} of {} checks pass", passed, all));
  if (!failed.empty())
    parts.push_back(join_words(failed) + (failed.size() == 1 ? " fails" : " fail"));
  if (!warned.empty())
    parts.push_back(join_words(warned) + (warned.size() == 1 ? " warns" : " warn"));
  if (!blind.empty())
    parts.push_back(join_words(blind) + (blind.size() == 1 ? " has no power" : " have no power"));
  out.words = fmt::format("{}", fmt::join(parts, "; "));
  return out;
}

std::string unchecked_words(const Results& results) {
  // Those that compare the learned ratio with simulated events.
  static constexpr std::array of_ratio = {"recovery", "reweighting", "normalisation", "reliability",
                                          "closure"};
  const auto looks_at_ratio = [](const Diagnostic& check) {
    return check.verdict != Diagnostic::Verdict::no_power &&
           std::any_of(of_ratio.begin(), of_ratio.end(),
                       [&](const char* name) { return check.name.starts_with(name); });
  };
  const bool ratio =
      std::any_of(results.diagnostics.begin(), results.diagnostics.end(), looks_at_ratio);
  std::vector<std::string> parts;
  if (!ratio) parts.push_back("whether the learned ratio agrees with simulated events");
  if (!results.ensemble && !results.coverage)
    parts.push_back(results.parameters.size() == 1
                        ? "how often the interval contains the true value"
                        : fmt::format("how often the intervals of {} contain the true values",
                                      count_words(results.parameters.size(), "parameter")));
  return parts.empty() ? std::string() : "not checked: " + join_words(parts);
}

std::string check_words(const Results& results, const std::string& name) {
  const auto colon = name.rfind(':');
  if (colon == std::string::npos || !results.parameters.find(name.substr(colon + 1))) return name;
  return name.substr(0, colon) + ": " + symbol(name.substr(colon + 1));
}

std::string step_words(const NextStep& step) {
  std::vector<std::string> set;
  for (std::size_t i = 0; i < step.keys.size(); ++i)
    set.push_back(step.values[i].empty() ? step.keys[i]
                                         : fmt::format("{} = {}", step.keys[i], step.values[i]));
  std::string out = step.what;
  if (!set.empty()) out += fmt::format(", {}", fmt::join(set, ", "));
  if (!step.reason.empty()) out += ": " + step.reason;
  return out;
}

std::string quick_words() {
  return "a quick run, to try the study out: with a tenth of the simulation and of the datasets. "
         "Run it without --quick for a result";
}

const std::string& title_of(const Results& results) {
  return results.title.empty() ? results.name : results.title;
}

double total_seconds(const Results& results) {
  double total = 0.0;
  for (const auto& [stage, seconds] : results.timing)
    if (std::isfinite(seconds) && seconds > 0.0) total += seconds;
  return total;
}

}  // namespace neyman::reports
