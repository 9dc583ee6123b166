#include "neyman/core/check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "neyman/core/error.hpp"
#include "neyman/core/text.hpp"

namespace neyman {

namespace {

/// The number that a text is as a whole.
std::optional<double> as_number(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<double> numbers_in(std::string_view text) {
  std::vector<double> out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.size(), text.find_first_of(" ,()[]", begin));
    if (const auto number = as_number(text.substr(begin, end - begin))) out.push_back(*number);
    begin = end + 1;
  }
  return out;
}

/// A number with no more digits than are needed: six, or as many as tell it from the numbers of the
/// condition that it breaks. Other texts as they are.
std::string shortened(std::string_view value, std::string_view condition) {
  constexpr int few = 6, all = 17;
  const auto number = as_number(value);
  const bool whole = value.find_first_of(".e") == value.npos;
  if (!number || !std::isfinite(*number) || whole || value.size() <= few) return std::string(value);
  const auto bounds = numbers_in(condition);
  for (int digits = few; digits < all; ++digits) {
    auto text = fmt::format("{:.{}g}", *number, digits);
    if (text.size() >= value.size()) break;
    const double shown = as_number(text).value_or(*number);
    if (std::all_of(bounds.begin(), bounds.end(), [&](double bound) {
          return (shown < bound) == (*number < bound) && (shown > bound) == (*number > bound);
        }))
      return text;
  }
  return std::string(value);
}

}  // namespace

void fail_argument(std::string_view function, std::string_view name, std::string_view value,
                   std::string_view condition) {
  throw ArgumentError(fmt::format("{}: {} is {}, but must be {}", function, name,
                                  shortened(value, condition), condition));
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

namespace {

/// What people call things elsewhere.
constexpr std::pair<std::string_view, std::string_view> other_names[] = {
    {"gaussian", "normal"},
    {"gauss", "normal"},
    {"norm", "normal"},
    {"multivariate-gaussian", "multivariate-normal"},
    {"multinormal", "multivariate-normal"},
    {"mvn", "multivariate-normal"},
    {"expon", "exponential"},
    {"flat", "uniform"},
    {"gk", "g-and-k"},
    {"kernel-density", "kde"},
    {"binned", "histogram"},
    {"hist", "histogram"},
    {"samples", "files"},
    {"csv", "files"},
    {"table", "files"},
    {"program", "command"},
    {"script", "command"},
    {"executable", "command"},
    {"external", "command"},
    {"library", "plugin"},
    {"shared-library", "plugin"},
    {"affine", "linear-transform"},
    {"xgboost", "boosted-trees"},
    {"xgb", "boosted-trees"},
    {"bdt", "boosted-trees"},
    {"gbdt", "boosted-trees"},
    {"gbm", "boosted-trees"},
    {"lightgbm", "boosted-trees"},
    {"catboost", "boosted-trees"},
    {"gradient-boosting", "boosted-trees"},
    {"forest", "random-forest"},
    {"rf", "random-forest"},
    {"nn", "mlp"},
    {"dnn", "mlp"},
    {"network", "mlp"},
    {"neural-network", "mlp"},
    {"neural-net", "mlp"},
    {"logistic-regression", "logistic"},
    {"logit", "logistic"},
    {"platt", "sigmoid"},
    {"pava", "isotonic"},
    {"random", "uniform"},
    {"quasi-random", "sobol"},
    {"std", "sigma"},
    {"sd", "sigma"},
    {"stddev", "sigma"},
    {"width", "sigma"},
    {"loc", "mean"},
    {"mu", "mean"},
    {"lambda", "rate"},
    {"cov", "covariance"},
    {"lr", "learning_rate"},
    {"layers", "hidden"},
    {"hidden-layers", "hidden"},
    {"n-estimators", "trees"},
    {"max-depth", "depth"},
    {"n", "samples"},
    {"n-samples", "samples"},
    {"n-events", "samples"},
    {"name", "names"},
    {"path", "file"},
    {"filename", "file"},
    {"files", "file"},
    {"weight", "weights"},
};

std::string plain_name(std::string_view name) {
  std::string out(name);
  for (char& c : out)
    c = c == '_' || c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// The candidate that a name means elsewhere, or that it is but for case and hyphens.
std::string_view known_elsewhere(std::string_view name,
                                 const std::vector<std::string>& candidates) {
  const auto plain = plain_name(name);
  for (const auto& candidate : candidates)
    if (plain_name(candidate) == plain) return candidate;
  for (const auto& [other, ours] : other_names)
    if (other == plain && std::find(candidates.begin(), candidates.end(), ours) != candidates.end())
      return ours;
  return {};
}

}  // namespace

std::string candidates_for(std::string_view name, const std::vector<std::string>& candidates) {
  // What the program itself knows is listed whole; columns of a file may be any number.
  constexpr std::size_t most_listed = 40, most_compared = 1000;
  std::string text = candidates.size() <= most_listed
                         ? fmt::format("{}", fmt::join(candidates, ", "))
                         : list_names(candidates);
  name = name.substr(0, most_compared);
  if (const auto known = known_elsewhere(name, candidates); !known.empty())
    return text + fmt::format(" (did you mean '{}'?)", known);
  std::size_t slips = std::numeric_limits<std::size_t>::max();
  auto nearest = candidates.end();
  for (auto one = candidates.begin(); one != candidates.end(); ++one) {
    // Lengths that differ by more than the best so far cannot be nearer.
    const std::size_t least =
        std::max(one->size(), name.size()) - std::min(one->size(), name.size());
    if (least >= slips) continue;
    const std::size_t found = distance(name, *one);
    if (found < slips) slips = found, nearest = one;
  }
  if (nearest == candidates.end()) return text;
  // A word of which no letter would stay is no slip of the pen.
  if (slips <= std::max<std::size_t>(2, name.size() / 3) && slips < name.size())
    text += fmt::format(" (did you mean '{}'?)", *nearest);
  return text;
}

std::string unknown_name(std::string_view name, std::string_view what,
                         const std::vector<std::string>& candidates) {
  const auto text = fmt::format("'{}' is not {}", shortened(name), what);
  if (candidates.empty()) return text;
  return text + "; candidates are " + candidates_for(name, candidates);
}

}  // namespace neyman
