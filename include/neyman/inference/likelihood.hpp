#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "neyman/core/matrix.hpp"
#include "neyman/core/parameters.hpp"
#include "neyman/ratios/mixture_ratio.hpp"
#include "neyman/simulators/design_region.hpp"

namespace neyman {

/// The log-likelihood of a dataset relative to a fixed reference,
/// ℓ(θ) = Σ_i log r(x_i; θ, θ1): differences between two θ do not depend on θ1.
class Likelihood {
 public:
  virtual ~Likelihood() = default;
  virtual const ParameterSpace& parameters() const = 0;
  virtual std::size_t events() const = 0;
  /// ℓ(θ), and ∂ℓ/∂θ where `gradient` is not empty. Where θ is not allowed (a negative mixture
  /// weight, or a θ beyond those that a ratio was trained at): `forbidden`, with a gradient of
  /// zero.
  virtual double operator()(std::span<const double> point,
                            std::span<double> gradient = {}) const = 0;
  /// ℓ(θ), ∂ℓ/∂θ and ∂²ℓ/∂θ∂θ' (a row and a column a parameter; its size is set) from one pass
  /// over the events. Nothing where second derivatives are not known without differences of ℓ, or
  /// θ is not allowed.
  virtual std::optional<double> second_derivatives(std::span<const double> point,
                                                   std::span<double> gradient,
                                                   Matrix& hessian) const;
  /// ℓ at many θ, one per row, in parallel. θ outside of the ranges are not allowed either.
  std::vector<double> at(MatrixView points) const;
  /// Where the design of a learned ratio has events, outside of which θ are not allowed; null where
  /// that is no matter.
  virtual const DesignRegion* region() const { return nullptr; }
  /// Whether gradients are given, and those of a function smooth enough to follow. Without them
  /// `gradient` is never asked for.
  virtual bool differentiable() const { return true; }

  static constexpr double forbidden = -1e300;

 protected:
  /// ℓ at many θ that lie inside of the ranges.
  virtual std::vector<double> at_allowed(MatrixView points) const;
};

/// The likelihood of mixture weights: component ratios are evaluated once for each event, and
/// ℓ(θ) = Σ_i u_i log Σ_c w_c(θ) q_c(x_i) − (Σ_i u_i) log Σ_c w_c(θ) Z_c.
class MixtureLikelihood final : public Likelihood {
 public:
  /// `event_weights`: one an event, or empty: all 1.
  MixtureLikelihood(ParameterSpace parameters, const MixtureRatio& ratio, MatrixView x,
                    std::vector<double> event_weights = {});
  /// From component ratios that are known already (events × components).
  MixtureLikelihood(ParameterSpace parameters, MixtureWeights weights, const Matrix& ratios,
                    std::vector<double> normalisation, std::vector<double> event_weights = {});

  const ParameterSpace& parameters() const override { return parameters_; }
  std::size_t events() const override { return ratios_.cols(); }
  double operator()(std::span<const double> point, std::span<double> gradient = {}) const override;
  std::optional<double> second_derivatives(std::span<const double> point,
                                           std::span<double> gradient,
                                           Matrix& hessian) const override;

 private:
  struct Sums;
  enum class Want { value, gradient, hessian };
  Sums sum_events(std::span<const double> weights, Want want) const;

  ParameterSpace parameters_;
  MixtureWeights weights_;
  Matrix ratios_;  // components × events: a row a component, so that loops run along events
  std::vector<double> normalisation_;
  std::vector<double> event_weights_;
  double total_weight_ = 0.0;
};

/// The covariance of the gradient ∂ℓ/∂θ over the replicas of the ratio, at θ: what finite
/// simulation contributes. C · this · C is the covariance of θ̂, where C is its statistical
/// covariance. From at most 50 000 of the events, scaled up; a zero matrix without replicas.
Matrix simulation_gradient_covariance(const ParameterSpace& parameters, const MixtureRatio& ratio,
                                      MatrixView x, std::span<const double> event_weights,
                                      std::span<const double> point);

}  // namespace neyman
