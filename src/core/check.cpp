#include "neyman/core/check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "neyman/core/error.hpp"

namespace neyman {

void fail_argument(std::string_view function, std::string_view name, std::string_view value,
                   std::string_view condition) {
  throw ArgumentError(
      fmt::format("{}: {} is {}, but must be {}", function, name, value, condition));
}

namespace {

[[noreturn]] void fail_element(std::string_view function, std::string_view name, std::size_t i,
                               double value, std::string_view condition) {
  fail_argument(function, fmt::format("{}[{}]", name, i), fmt::format("{}", value), condition);
}

}  // namespace

void check_finite(std::string_view function, std::string_view name, double value) {
  if (!std::isfinite(value)) fail_argument(function, name, fmt::format("{}", value), "finite");
}

void check_finite(std::string_view function, std::string_view name,
                  std::span<const double> values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i])) fail_element(function, name, i, values[i], "finite");
}

void check_positive(std::string_view function, std::string_view name, double value) {
  if (!(value > 0.0) || !std::isfinite(value))
    fail_argument(function, name, fmt::format("{}", value), "positive and finite");
}

void check_non_negative(std::string_view function, std::string_view name,
                        std::span<const double> values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!(values[i] >= 0.0) || !std::isfinite(values[i]))
      fail_element(function, name, i, values[i], "finite and not negative");
}

void check_in_range(std::string_view function, std::string_view name, double value, double low,
                    double high) {
  if (!(value >= low && value <= high))
    fail_argument(function, name, fmt::format("{}", value),
                  fmt::format("between {} and {}", low, high));
}

void check_at_least(std::string_view function, std::string_view name, std::size_t value,
                    std::size_t least) {
  if (value < least)
    fail_argument(function, name, fmt::format("{}", value), fmt::format("at least {}", least));
}

void check_same_size(std::string_view function, std::string_view name, std::size_t size,
                     std::size_t expected, std::string_view meaning) {
  if (size != expected)
    throw ArgumentError(fmt::format("{}: {} has {} values, but must have {} ({})", function, name,
                                    size, expected, meaning));
}

namespace {

/// Levenshtein distance, for "did you mean".
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string candidates_for(std::string_view name, const std::vector<std::string>& candidates) {
  std::string text = fmt::format("{}", fmt::join(candidates, ", "));
  if (candidates.empty()) return text;
  const auto nearest = std::min_element(
      candidates.begin(), candidates.end(),
      [&](const auto& a, const auto& b) { return distance(name, a) < distance(name, b); });
  // A word of which no letter would stay is no slip of the pen.
  const std::size_t slips = distance(name, *nearest);
  if (slips <= std::max<std::size_t>(2, name.size() / 3) && slips < name.size())
    text += fmt::format(" (did you mean '{}'?)", *nearest);
  return text;
}

std::string unknown_name(std::string_view name, std::string_view what,
                         const std::vector<std::string>& candidates) {
  const auto text = fmt::format("'{}' is not {}", name, what);
  if (candidates.empty()) return text;
  return text + "; candidates are " + candidates_for(name, candidates);
}

}  // namespace neyman
