#include "neyman/simulators/mixture_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "neyman/core/check.hpp"

namespace neyman {

namespace {
constexpr double sum_tolerance = 1e-9;
}

MixtureWeights::MixtureWeights(std::vector<Expression> expressions, std::size_t components)
    : expressions_(std::move(expressions)), components_(components) {
  check_at_least("MixtureWeights", "components", components, 1);
  if (expressions_.size() != components && expressions_.size() + 1 != components)
    fail_argument("MixtureWeights", "number of weights", fmt::format("{}", expressions_.size()),
                  fmt::format("{} (one for each component) or one fewer", components));
}

std::vector<std::size_t> MixtureWeights::uses() const {
  std::vector<std::size_t> out;
  for (const auto& expression : expressions_)
    out.insert(out.end(), expression.uses().begin(), expression.uses().end());
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<double> MixtureWeights::operator()(std::span<const double> point) const {
  std::vector<double> weights(components_);
  for (std::size_t c = 0; c < expressions_.size(); ++c) weights[c] = expressions_[c](point);
  complete(weights);
  return weights;
}

Matrix MixtureWeights::each(MatrixView points) const {
  Matrix out(points.rows(), components_);
  std::vector<double> column(points.rows());
  for (std::size_t c = 0; c < expressions_.size(); ++c) {
    expressions_[c].each(points, column);
    for (std::size_t i = 0; i < column.size(); ++i) out(i, c) = column[i];
  }
  for (std::size_t i = 0; i < out.rows(); ++i) complete(out.row(i));
  return out;
}

/// Adds the implied weight, checks and normalises.
void MixtureWeights::complete(std::span<double> weights) const {
  double sum = 0.0;
  for (std::size_t c = 0; c < expressions_.size(); ++c) sum += weights[c];
  if (expressions_.size() < components_) {
    weights.back() = 1.0 - sum;
    sum = 1.0;
  }
  for (std::size_t c = 0; c < weights.size(); ++c) {
    // A weight that rounding put a hair below zero is zero.
    if (weights[c] < 0.0 && weights[c] > -sum_tolerance) weights[c] = 0.0;
    if (!(weights[c] >= 0.0) || !std::isfinite(weights[c]))
      fail_argument("mixture", fmt::format("weights[{}]", c), fmt::format("{}", weights[c]),
                    "finite and not negative");
  }
  if (!(std::abs(sum - 1.0) <= sum_tolerance))
    fail_argument("mixture", "the sum of weights", fmt::format("{}", sum), "1");
  for (double& weight : weights) weight /= sum;
}

}  // namespace neyman
