#pragma once

#include <memory>
#include <span>
#include <vector>

#include "neyman/core/matrix.hpp"
#include "neyman/inference/fit.hpp"
#include "neyman/inference/likelihood.hpp"
#include "neyman/ratios/parameterized_ratio.hpp"
#include "neyman/simulators/distribution.hpp"

namespace neyman {

/// The likelihood of a dataset by a parameterised ratio. Where the ratio's design has no events it
/// is `forbidden`.
class ParameterizedLikelihood final : public Likelihood {
 public:
  /// The ratio must outlive the likelihood; the events need not.
  ParameterizedLikelihood(const ParameterizedRatio& ratio, MatrixView x,
                          std::span<const double> event_weights = {});

  const ParameterSpace& parameters() const override { return ratio_.parameters(); }
  std::size_t events() const override { return events_; }
  bool differentiable() const override { return sum_->differentiable(); }
  const DesignRegion* region() const override {
    return ratio_.region().everywhere() ? nullptr : &ratio_.region();
  }
  double operator()(std::span<const double> point, std::span<double> gradient = {}) const override;
  /// The covariance of ∂ℓ/∂θ at θ from finite simulation.
  Matrix simulation_gradient_covariance(std::span<const double> point) const;
  /// SummedRatio::simulation_replicas.
  Matrix simulation_replicas(MatrixView points, std::size_t count, std::uint64_t seed) const;

 protected:
  std::vector<double> at_allowed(MatrixView points) const override;

 private:
  const ParameterizedRatio& ratio_;
  std::size_t events_;
  std::unique_ptr<SummedRatio> sum_;
};

/// Adds to a fit of the likelihood, with or without constraints, what finite simulation does: to
/// its covariance, and to the heights of its maxima. Nothing where the fit failed, or the
/// likelihood has no gradient.
void add_simulation(Fit& fit, const ParameterizedLikelihood& likelihood);

/// The exact likelihood of a dataset, Σ_i u_i log p(x_i|θ), where the density is known. The
/// gradient is by differences, and ℓ is `forbidden` where an event is impossible or the
/// distribution is not defined.
class DensityLikelihood final : public Likelihood {
 public:
  /// @throw ArgumentError where the distribution does not know its density.
  DensityLikelihood(ParameterSpace parameters, DistributionPtr distribution, Matrix x,
                    std::vector<double> event_weights = {});

  const ParameterSpace& parameters() const override { return parameters_; }
  std::size_t events() const override { return x_.rows(); }
  double operator()(std::span<const double> point, std::span<double> gradient = {}) const override;

 private:
  double value(std::span<const double> point) const;

  ParameterSpace parameters_;
  DistributionPtr distribution_;
  Matrix x_;
  std::vector<double> weights_;
};

}  // namespace neyman
