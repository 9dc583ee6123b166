#pragma once

#include <cmath>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "neyman/inference/likelihood.hpp"

// Likelihoods whose maximum, profile and regions are known.
namespace neyman::testing {

/// Any function as a likelihood, with differences as its gradient unless told that it has none.
class FunctionLikelihood final : public Likelihood {
 public:
  using Function = std::function<double(std::span<const double>)>;
  FunctionLikelihood(ParameterSpace space, Function function, bool differentiable = true)
      : space_(std::move(space)), function_(std::move(function)), differentiable_(differentiable) {}
  const ParameterSpace& parameters() const override { return space_; }
  std::size_t events() const override { return 1; }
  bool differentiable() const override { return differentiable_; }
  double operator()(std::span<const double> point, std::span<double> gradient = {}) const override {
    if (!gradient.empty() && !differentiable_) ++gradients_asked;
    std::vector<double> moved(point.begin(), point.end());
    const double value = function_(moved);
    for (std::size_t p = 0; p < gradient.size(); ++p) {
      const double h = 1e-5 * (space_[p].high - space_[p].low);
      moved[p] = point[p] + h;
      const double above = function_(moved);
      moved[p] = point[p] - h;
      const double below = function_(moved);
      moved[p] = point[p];
      gradient[p] = value <= forbidden ? 0.0 : (above - below) / (2.0 * h);
    }
    return value;
  }
  mutable int gradients_asked = 0;  // of one that has none

 private:
  ParameterSpace space_;
  Function function_;
  bool differentiable_;
};

/// ℓ = −½ (θ − c)ᵀ A (θ − c), with its exact gradient.
class Parabola final : public Likelihood {
 public:
  Parabola(ParameterSpace space, std::vector<double> centre, Matrix a)
      : space_(std::move(space)), centre_(std::move(centre)), a_(std::move(a)) {}
  const ParameterSpace& parameters() const override { return space_; }
  std::size_t events() const override { return 1; }
  double operator()(std::span<const double> point, std::span<double> gradient = {}) const override {
    double value = 0.0;
    for (std::size_t i = 0; i < centre_.size(); ++i) {
      double product = 0.0;
      for (std::size_t j = 0; j < centre_.size(); ++j)
        product += a_(i, j) * (point[j] - centre_[j]);
      value -= 0.5 * (point[i] - centre_[i]) * product;
      if (!gradient.empty()) gradient[i] = -product;
    }
    return value;
  }

 private:
  ParameterSpace space_;
  std::vector<double> centre_;
  Matrix a_;
};

/// n events of a normal with mean `mean` and variance `variance` (of the sample, with 1/n):
/// ℓ(μ, σ) = −n log σ − n (variance + (mean − μ)²) / (2σ²).
inline FunctionLikelihood normal_likelihood(double n, double mean, double variance,
                                            ParameterSpace space) {
  return {std::move(space), [=](std::span<const double> t) {
            if (t[1] <= 0.0) return Likelihood::forbidden;
            return -n * std::log(t[1]) -
                   n * (variance + (mean - t[0]) * (mean - t[0])) / (2.0 * t[1] * t[1]);
          }};
}

/// n events of an exponential with sum n / rate: ℓ(λ) = n log λ − λ n / rate.
inline FunctionLikelihood exponential_likelihood(double n, double rate, ParameterSpace space) {
  return {std::move(space), [=](std::span<const double> t) {
            return t[0] <= 0.0 ? Likelihood::forbidden : n * std::log(t[0]) - t[0] * n / rate;
          }};
}

/// A reproducible number in [−1, 1] that changes wildly with its arguments.
inline double rough(std::span<const double> t, int realisation = 0) {
  double sum = realisation;
  for (std::size_t p = 0; p < t.size(); ++p)
    sum += (12.9898 + 65.1 * static_cast<double>(p)) * t[p];
  const double value = std::sin(1e4 * sum) * 43758.5453;
  return 2.0 * (value - std::floor(value)) - 1.0;
}

}  // namespace neyman::testing
