#include "neyman/simulators/mixture_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"

namespace neyman {

namespace {
constexpr double sum_tolerance = 1e-9;
// Of a parameter's range: the steps of differences.
constexpr double first_step = 1e-5, second_step = 1e-4;
}  // namespace

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

namespace {

/// ∂f/∂θ_p of a formula, by differences of second order that stay in the parameter's range. Where
/// the formula is not finite on one side (√a at 0), from the other.
double slope_of(const Expression& formula, std::span<const double> point, std::size_t p,
                const Parameter& range) {
  std::vector<double> moved(point.begin(), point.end());
  const auto at = [&](double value) -> std::optional<double> {
    if (value < range.low || value > range.high) return std::nullopt;
    moved[p] = value;
    try {
      return formula(moved);
    } catch (const ArgumentError&) {
      return std::nullopt;
    }
  };
  const double step = first_step * (range.high - range.low);
  const auto above = at(point[p] + step), below = at(point[p] - step);
  if (above && below) return (*above - *below) / (2.0 * step);
  const double inwards = above ? step : -step;
  const auto near = above ? above : below, far = at(point[p] + 2.0 * inwards);
  if (!near) return 0.0;
  const double here = formula(point);
  return far ? (-3.0 * here + 4.0 * *near - *far) / (2.0 * inwards) : (*near - here) / inwards;
}

}  // namespace

// The formulas are differentiated as they are, and the sum of weights after them: a difference of
// weights themselves would leave the region where they are allowed when θ is at its edge.
Matrix MixtureWeights::derivatives(std::span<const double> point,
                                   const ParameterSpace& parameters) const {
  const std::size_t given = expressions_.size();
  const auto weights = (*this)(point);
  Matrix out(components_, parameters.size());
  std::vector<double> total(parameters.size(), 0.0);  // slope of the sum of what is given
  for (std::size_t c = 0; c < given; ++c)
    for (const std::size_t p : expressions_[c].uses()) {
      out(c, p) = slope_of(expressions_[c], point, p, parameters[p]);
      total[p] += out(c, p);
    }
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (given < components_) {
      out(components_ - 1, p) = -total[p];
      continue;
    }
    // The sum is one; what rounding makes of it is divided out.
    for (std::size_t c = 0; c < components_; ++c) out(c, p) -= weights[c] * total[p];
  }
  return out;
}

std::vector<MixtureWeights::SecondDerivative> MixtureWeights::second_derivatives(
    std::span<const double> point, const ParameterSpace& parameters) const {
  std::vector<SecondDerivative> out;
  std::vector<double> moved(point.begin(), point.end());
  std::vector<double> low(point.size()), step(point.size());
  for (std::size_t p = 0; p < point.size(); ++p) {
    step[p] = second_step * (parameters[p].high - parameters[p].low);
    low[p] = std::clamp(point[p] - step[p], parameters[p].low, parameters[p].high - 2.0 * step[p]);
  }
  const auto add = [&](std::size_t c, std::size_t p, std::size_t q, double value) {
    out.push_back({c, p, q, value});
    if (expressions_.size() < components_) out.push_back({components_ - 1, p, q, -value});
  };
  for (std::size_t c = 0; c < expressions_.size(); ++c) {
    // Differences of 0, 1 or 2 steps from the low end of each.
    const auto at = [&](std::size_t p, double i, std::size_t q, double j) {
      moved[p] = low[p] + i * step[p];
      if (q != p) moved[q] = low[q] + j * step[q];
      const double value = expressions_[c](moved);
      moved[p] = point[p];
      moved[q] = point[q];
      return value;
    };
    const auto& used = expressions_[c].uses();
    for (std::size_t i = 0; i < used.size(); ++i) {
      const std::size_t p = used[i];
      add(c, p, p, (at(p, 2, p, 0) - 2.0 * at(p, 1, p, 0) + at(p, 0, p, 0)) / (step[p] * step[p]));
      for (std::size_t j = i + 1; j < used.size(); ++j) {
        const std::size_t q = used[j];
        add(c, p, q,
            (at(p, 2, q, 2) - at(p, 2, q, 0) - at(p, 0, q, 2) + at(p, 0, q, 0)) /
                (4.0 * step[p] * step[q]));
      }
    }
  }
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
