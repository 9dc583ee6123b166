#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/random.hpp"
#include "neyman/core/settings.hpp"
#include "neyman/inference/likelihood.hpp"

namespace neyman {

/// What an auxiliary measurement says about one parameter θ_p: a term that is added to the
/// log-likelihood. Each is relative to its largest value, so that it is 0 at best:
///
/// - gaussian: a ~ N(θ, σ²), log c = −½ ((a − θ) / σ)².
/// - log-normal: log a ~ N(log θ, log² κ), log c = −½ (log(a / θ) / log κ)²; a is the median at θ,
///   and κ the factor of one standard deviation up or down. Forbidden for θ ≤ 0.
/// - poisson: n ~ Poisson(τ θ), log c = n log(τ θ / n) − (τ θ − n), and −τ θ for n = 0. Forbidden
///   for θ < 0, and for θ = 0 with n > 0. n need not be whole.
class Constraint {
 public:
  enum class Kind { gaussian, log_normal, poisson };

  /// @throw ArgumentError unless the observed value is finite and sigma positive.
  static Constraint gaussian(std::size_t parameter, double observed, double sigma);
  /// @throw ArgumentError unless the observed value is positive and kappa above 1.
  static Constraint log_normal(std::size_t parameter, double observed, double kappa);
  /// The same from the standard deviation of a over its mean, s: log κ = √log(1 + s²).
  static Constraint log_normal_relative(std::size_t parameter, double observed, double spread);
  /// @throw ArgumentError unless the count is not negative and tau positive.
  static Constraint poisson(std::size_t parameter, double count, double tau = 1.0);

  Kind kind() const { return kind_; }
  std::size_t parameter() const { return parameter_; }
  double observed() const { return observed_; }  ///< a, or n
  double width() const { return width_; }        ///< σ, log κ, or τ

  /// log c at a value of the parameter; Likelihood::forbidden where that is not allowed.
  double log_density(double value) const;
  /// ∂ log c / ∂θ; 0 where θ is forbidden.
  double derivative(double value) const;
  /// ∂² log c / ∂θ²; 0 where θ is forbidden.
  double second_derivative(double value) const;
  /// The auxiliary measurement with which log c is largest at this value: θ, or τ θ.
  double expected(double value) const;
  /// The same constraint with another auxiliary measurement, which is not checked.
  Constraint with_observed(double observed) const { return {kind_, parameter_, observed, width_}; }
  /// The same constraint with an auxiliary measurement drawn at this value of the parameter:
  /// simulated datasets need simulated auxiliary measurements too. Where the value is not
  /// allowed, the observation stays.
  Constraint sampled(double value, RandomStream& random) const;

 private:
  Constraint(Kind kind, std::size_t parameter, double observed, double width)
      : kind_(kind), parameter_(parameter), observed_(observed), width_(width) {}

  Kind kind_;
  std::size_t parameter_;
  double observed_, width_;
};

std::string to_string(Constraint::Kind kind);

/// Reads one from a parameter's table: `constraint = { kind = "gaussian", mean = 2, sigma = 0.1 }`,
/// `{ kind = "log-normal", mean = 1, kappa = 1.1 }` (or `relative = 0.1`), or
/// `{ kind = "poisson", count = 12, tau = 3 }`. Problems are noted in the settings, and the result
/// is then empty.
std::optional<Constraint> make_constraint(Settings settings, std::size_t parameter);

/// A likelihood times constraints: ℓ(θ) + Σ log c_k(θ). Where θ_p is periodic, a gaussian one takes
/// the shorter way round from a.
class ConstrainedLikelihood final : public Likelihood {
 public:
  /// @throw ArgumentError where the likelihood is null, or a constraint names a parameter that the
  ///   likelihood does not have.
  ConstrainedLikelihood(std::shared_ptr<const Likelihood> of, std::vector<Constraint> constraints);

  const ParameterSpace& parameters() const override { return of_->parameters(); }
  std::size_t events() const override { return of_->events(); }
  bool differentiable() const override { return of_->differentiable(); }
  const DesignRegion* region() const override { return of_->region(); }
  double operator()(std::span<const double> point, std::span<double> gradient = {}) const override;
  std::optional<double> second_derivatives(std::span<const double> point,
                                           std::span<double> gradient,
                                           Matrix& hessian) const override;
  const std::vector<Constraint>& constraints() const { return constraints_; }

 protected:
  std::vector<double> at_allowed(MatrixView points) const override;

 private:
  double value_of(const Constraint& constraint, std::span<const double> point) const;

  std::shared_ptr<const Likelihood> of_;
  std::vector<Constraint> constraints_;
};

}  // namespace neyman
