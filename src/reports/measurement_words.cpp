#include "reports/measurement_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "neyman/reports/symbol.hpp"
#include "neyman/reports/terminal.hpp"
#include "reports/utf8.hpp"
#include "reports/words.hpp"

namespace neyman::reports {

std::string interest_symbol(const MeasurementSummary& summary) {
  return symbol(summary.model.parameters()[summary.model.interest()].name);
}

std::string elided(std::string_view text, std::size_t most) {
  std::vector<std::string_view> characters;
  for (auto rest = text; !rest.empty();) {
    const std::size_t bytes = decode_utf8(rest).bytes;
    characters.push_back(rest.substr(0, bytes));
    rest.remove_prefix(bytes);
  }
  if (characters.size() <= most) return std::string(text);
  const std::size_t head = most / 2, tail = most - 1 - head;
  std::string out;
  for (std::size_t i = 0; i < head; ++i) out += characters[i];
  out += "…";
  for (std::size_t i = characters.size() - tail; i < characters.size(); ++i) out += characters[i];
  return out;
}

std::string short_name(const MeasurementSummary& summary, std::size_t parameter) {
  return elided(symbol(summary.model.parameters()[parameter].name), 30);
}

std::vector<std::string> short_names(const MeasurementSummary& summary,
                                     const std::vector<std::size_t>& parameters) {
  constexpr std::size_t longest = 80;
  std::vector<std::string> out;
  for (const std::size_t p : parameters) out.push_back(short_name(summary, p));
  const auto taken = out;
  for (std::size_t i = 0; i < out.size(); ++i)
    if (std::count(taken.begin(), taken.end(), taken[i]) > 1)
      out[i] = elided(symbol(summary.model.parameters()[parameters[i]].name), longest);
  return out;
}

std::string signed_number(double value, double scale) {
  if (!std::isfinite(value)) return number(value);
  const double digits = scale > 0.0 ? 2.0 - std::floor(std::log10(scale)) : 2.0;
  if (!(digits >= 0.0 && digits < 7.0))
    return (value < 0.0 ? "−" : "+") + number(std::abs(value), 3);
  return fmt::format("{}{:.{}f}", value < 0.0 ? "−" : "+", std::abs(value),
                     static_cast<int>(digits));
}

double impact_scale(const MeasurementSummary& summary) {
  double largest = 0.0;
  for (const auto& impact : summary.impacts)
    if (impact.ok) largest = std::max({largest, std::abs(impact.up), std::abs(impact.down)});
  return largest;
}

std::optional<double> statistical_part(const MeasurementSummary& summary) {
  for (const auto& part : summary.error_parts)
    if (part.group == "statistical") return part.error;
  return std::nullopt;
}

std::vector<NuisanceRow> nuisance_rows(const MeasurementSummary& summary) {
  std::vector<NuisanceRow> out;
  const auto pull_of = [&](std::size_t parameter) -> const Pull* {
    for (const auto& pull : summary.pulls)
      if (pull.parameter == parameter) return &pull;
    return nullptr;
  };
  for (const auto& impact : summary.impacts)
    if (const auto* pull = pull_of(impact.parameter))
      out.push_back({impact.parameter, pull, &impact});
  for (const auto& pull : summary.pulls)
    if (std::none_of(summary.impacts.begin(), summary.impacts.end(),
                     [&](const Impact& impact) { return impact.parameter == pull.parameter; }))
      out.push_back({pull.parameter, &pull, nullptr});
  return out;
}

std::string estimate_words(const MeasurementSummary& summary) {
  const std::size_t interest = summary.model.interest();
  const auto& interval = summary.intervals[interest];
  const double estimate = summary.fit.point[interest];
  if (!summary.fit.ok()) return "The fit did not converge.";
  if (!interval.ok) return fmt::format("{} = {}.", interest_symbol(summary), number(estimate, 4));
  std::vector<std::string> parts;
  for (const auto& part : summary.error_parts)
    if (part.error > 0.0) parts.push_back(fmt::format("{} {}", part.group, number(part.error, 2)));
  std::string text =
      fmt::format("{} = {}", interest_symbol(summary),
                  format_measurement(estimate, std::max(estimate - interval.low, 0.0),
                                     std::max(interval.high - estimate, 0.0)));
  if (summary.fit.at_bound[interest]) text += ", at the end of its range";
  if (parts.size() > 1) text += fmt::format(" (error: {})", join_words(parts));
  return text + ".";
}

std::string discovery_words(const MeasurementSummary& summary) {
  if (!summary.discovery) return {};
  const auto& found = *summary.discovery;
  return fmt::format(
      "The background alone is disfavoured by {}σ ({}); {}σ would be expected for {} = 1.",
      number(found.significance, 3), p_equals(found.p_value),
      number(found.expected_significance, 3), interest_symbol(summary));
}

std::string limit_words(const MeasurementSummary& summary) {
  if (!summary.limit) return {};
  const auto& limit = *summary.limit;
  std::string text = fmt::format(
      "{} < {} at {} by CL_s with {}; expected without signal {} (±1σ: {} to {}).",
      interest_symbol(summary), rounded_limit(limit.observed, limit), level_words(limit.level),
      to_string(summary.options.statistic), rounded_limit(limit.expected[2], limit),
      rounded_limit(limit.expected[1], limit), rounded_limit(limit.expected[3], limit));
  if (summary.toy_limit)
    text += fmt::format(" By {} of each hypothesis: {} < {}, expected {}.",
                        count_words(summary.options.toys, "toy"), interest_symbol(summary),
                        rounded_limit(summary.toy_limit->observed, limit),
                        rounded_limit(summary.toy_limit->expected[2], limit));
  return text;
}

std::string significance_words(const LearnedVariation::Part& part) {
  if (!std::isfinite(part.significance)) return "unknown";
  return fmt::format("{}{:.1f}σ", part.significance < -0.05 ? "−" : "",
                     std::abs(part.significance));
}

std::string result_words(const MeasurementSummary& summary) {
  std::string text;
  for (const auto& words :
       {estimate_words(summary), discovery_words(summary), limit_words(summary)})
    if (!words.empty()) text += (text.empty() ? "" : " ") + words;
  return text;
}

}  // namespace neyman::reports
