#include "reports/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

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

std::string measurement(double value, double error) {
  if (!std::isfinite(value)) return unknown;
  if (!std::isfinite(error) || error < 0.0) return format_number(value, 6) + " ± " + unknown;
  return format_measurement(value, error);
}

std::string rounded(double value, double error) {
  if (!(error > 0.0) || !std::isfinite(error) || !std::isfinite(value)) return number(value);
  const std::string text = format_measurement(value, error);
  return text.starts_with('(') ? number(value) : text.substr(0, text.find(" ±"));
}

std::string interval_words(const Interval& interval, double error) {
  if (!std::isfinite(interval.low) || !std::isfinite(interval.high)) return unknown;
  const double low = std::min(interval.low, interval.high);
  const double high = std::max(interval.low, interval.high);
  const std::string plain = format_interval(low, high);
  // Where a power of ten is taken out, it is the same for both ends only there.
  if (!(error > 0.0) || plain.find("×") != plain.npos) return plain;
  return fmt::format("[{}, {}]", rounded(low, error), rounded(high, error));
}

std::string level_words(double level) {
  return std::isfinite(level) ? format_number(100.0 * level, 6) + "\u00a0%" : unknown;
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

std::optional<End> at_bound(const Results& results, const FitReport& report,
                            std::size_t parameter) {
  const auto& range = results.parameters[parameter];
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
  return head + measurement(value, report.fit.error(parameter));
}

std::string answer(const Results& results) {
  std::vector<std::string> parts;
  for (std::size_t p = 0; p < results.parameters.size(); ++p) {
    std::string part = estimate_words(results, results.fit, p);
    if (p < results.fit.intervals.size() && !results.fit.intervals[p].empty()) {
      const auto& interval = results.fit.intervals[p].front();
      part += fmt::format(", {} interval {}", level_words(interval.level),
                          interval_words(interval, results.fit.fit.error(p)));
    }
    parts.push_back(std::move(part));
  }
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? "" : "; ") + parts[i];
  text += ", from " + count_words(results.events, "event") + ".";
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
  return fmt::format(
      "Testing {} against {}: p = {}{}, so at a size of {} the data {} {}. Where {} is true, the "
      "test rejects with probability {}.",
      null, alternative, p_value(test.p_value),
      least ? fmt::format(" (the least that {} can give)", count_words(config.datasets, "dataset"))
            : std::string(),
      percent(config.size, 0), test.p_value <= config.size ? "reject" : "do not reject", null,
      alternative, percent(test.power));
}

std::optional<double> distance_to_exact(const Results& results, std::size_t parameter) {
  if (!results.exact_fit) return std::nullopt;
  const auto& exact = results.exact_fit->fit;
  const double error = exact.statistical_error(parameter);
  if (!(error > 0.0)) return std::nullopt;
  const double distance = (results.fit.fit.point[parameter] - exact.point[parameter]) / error;
  return std::isfinite(distance) ? std::optional(distance) : std::nullopt;
}

std::string ensemble_words(const Results& results) {
  const auto& config = results.ensemble->config;
  return fmt::format("{} of {} at {}", count_words(config.datasets, "dataset"),
                     count_words(config.events, "event"),
                     point_words(results.parameters, config.point));
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
