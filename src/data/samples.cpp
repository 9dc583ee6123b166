#include "neyman/data/samples.hpp"

#include <fmt/format.h>

#include <cmath>

#include "neyman/core/check.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/text.hpp"

namespace neyman {

namespace {

template <class T>
std::vector<T> take_rows(const std::vector<T>& values, std::span<const std::size_t> indices) {
  std::vector<T> taken;
  if (values.empty()) return taken;
  taken.reserve(indices.size());
  for (const std::size_t i : indices) taken.push_back(values[i]);
  return taken;
}

void check_table(const char* function, const Matrix& table, const char* table_name,
                 const std::vector<std::string>& names, const char* names_name) {
  check_same_size(function, names_name, names.size(), table.cols(), "one for each column");
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (std::size_t col = 0; col < table.cols(); ++col) {
      if (!std::isfinite(table(row, col))) {
        fail_argument(function, fmt::format("{}[{}, '{}']", table_name, row, names[col]),
                      fmt::format("{}", table(row, col)), "finite");
      }
    }
  }
}

bool without_columns(const Samples& samples) {
  return samples.size() == 0 && samples.feature_names.empty() && samples.parameter_names.empty();
}

}  // namespace

double Samples::total_weight() const {
  if (!weighted()) return static_cast<double>(size());
  return sum_blocks(weights.size(), [&](Block block) {
    double sum = 0.0;
    for (std::size_t i = block.begin; i < block.end; ++i) sum += weights[i];
    return sum;
  });
}

double Samples::effective_size() const {
  if (!weighted()) return static_cast<double>(size());
  // Scaled by the largest weight, so that squares neither overflow nor vanish.
  double largest = 0.0;
  for (const double w : weights) largest = std::max(largest, std::abs(w));
  if (largest == 0.0) return 0.0;
  double sum = 0.0, squares = 0.0;
  for (const double w : weights) {
    sum += w / largest;
    squares += (w / largest) * (w / largest);
  }
  return sum * sum / squares;
}

Samples Samples::take(std::span<const std::size_t> indices) const {
  for (const std::size_t i : indices) {
    if (i >= size()) {
      fail_argument("Samples::take", "index", fmt::format("{}", i),
                    fmt::format("below the number of events, {}", size()));
    }
  }
  Samples taken;
  taken.feature_names = feature_names;
  taken.x = x.take(indices);
  taken.parameter_names = parameter_names;
  if (!parameter_names.empty()) taken.theta = theta.take(indices);
  taken.weights = take_rows(weights, indices);
  taken.groups = take_rows(groups, indices);
  return taken;
}

void Samples::append(const Samples& other) {
  if (without_columns(*this)) {
    *this = other;
    return;
  }
  if (feature_names != other.feature_names) {
    fail_argument("Samples::append", "feature_names",
                  fmt::format("[{}]", list_names(other.feature_names)),
                  fmt::format("[{}]", list_names(feature_names)));
  }
  if (parameter_names != other.parameter_names) {
    fail_argument("Samples::append", "parameter_names",
                  fmt::format("[{}]", list_names(other.parameter_names)),
                  fmt::format("[{}]", list_names(parameter_names)));
  }
  // Without groups each event is its own, and no ids are known to be free for them.
  if (size() > 0 && other.size() > 0) {
    check_same_size("Samples::append", "groups", other.groups.size(),
                    groups.empty() ? 0 : other.size(), "as the events before have them or not");
  }
  const std::size_t before = size(), added = other.size();
  if (weighted() || other.weighted()) {
    weights.resize(before, 1.0);
    if (other.weighted()) {
      weights.insert(weights.end(), other.weights.begin(), other.weights.end());
    } else {
      weights.resize(before + added, 1.0);
    }
  }
  groups.insert(groups.end(), other.groups.begin(), other.groups.end());
  x.append(other.x);
  if (!parameter_names.empty()) theta.append(other.theta);
}

void Samples::check(const char* function) const {
  check_table(function, x, "x", feature_names, "feature_names");
  check_table(function, theta, "theta", parameter_names, "parameter_names");
  if (!parameter_names.empty()) {
    check_same_size(function, "theta", theta.rows(), size(), "one row for each event");
  }
  if (!weights.empty()) {
    check_same_size(function, "weights", weights.size(), size(), "one for each event");
  }
  if (!groups.empty()) {
    check_same_size(function, "groups", groups.size(), size(), "one for each event");
  }
  check_finite(function, "weights", weights);
}

std::vector<std::string> default_feature_names(std::size_t count) {
  if (count == 1) return {"x"};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(fmt::format("x{}", i));
  return names;
}

}  // namespace neyman
