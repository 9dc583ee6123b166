#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/matrix.hpp"
#include "neyman/inference/likelihood.hpp"

namespace neyman {

enum class FitStatus {
  converged,
  at_bound,  ///< converged, with a parameter at an end of its range
  failed,    ///< the best point found is reported; it is not known to be the maximum
};
std::string to_string(FitStatus status);

/// The maximum-likelihood estimate and how it was found.
struct Fit {
  FitStatus status = FitStatus::failed;
  std::vector<double> point;    ///< θ̂
  double log_likelihood = 0.0;  ///< ℓ(θ̂), relative to the likelihood's reference
  /// Statistical covariance: the inverse of −∂²ℓ/∂θ∂θ'. Rows and columns of parameters that
  /// are fixed or at a bound are zero.
  Matrix covariance;
  /// What finite simulation adds to the covariance (zero where it is not known).
  Matrix simulation_covariance;
  /// Expected distance of ℓ to its maximum, ½ gᵀ C g, with the gradient g inside the bounds.
  double distance = 0.0;
  int evaluations = 0;

  bool ok() const { return status != FitStatus::failed; }
  /// Standard deviation of a parameter: statistical, and from finite simulation.
  double statistical_error(std::size_t parameter) const;
  double simulation_error(std::size_t parameter) const;
  /// Both, added in quadrature.
  double error(std::size_t parameter) const;
};

struct FitOptions {
  std::vector<double> start;                 ///< empty: the best of a few points over the ranges
  std::vector<std::optional<double>> fixed;  ///< one a parameter, or empty: none is fixed
  double tolerance = 1e-6;                   ///< of `distance`, for status converged
};

/// Maximises ℓ within the parameters' ranges (SLSQP with gradients; a derivative-free search
/// where that does not arrive). Never throws for a fit that fails: the status says so.
Fit fit(const Likelihood& likelihood, const FitOptions& options = {});

/// Sets the fit's `simulation_covariance` from the replicas of the ratio that it was made with.
void add_simulation_covariance(Fit& fit, const ParameterSpace& parameters,
                               const MixtureRatio& ratio, MatrixView x,
                               std::span<const double> event_weights);

/// −2 log Λ at θ: twice the drop of ℓ from its maximum; never negative.
double test_statistic(const Likelihood& likelihood, const Fit& fit, std::span<const double> point);

/// A confidence interval for one parameter.
struct Interval {
  double level = 0.683;
  double low = 0.0, high = 0.0;
  bool low_at_bound = false, high_at_bound = false;  ///< ends at the parameter's range
};

/// The values of a parameter with −2 log Λ at most the χ²₁ quantile of the level, the other
/// parameters profiled. With `include_simulation`, the threshold is multiplied by
/// 1 + σ²_simulation / σ²_statistical: the likelihood widened by what finite simulation adds.
Interval likelihood_interval(const Likelihood& likelihood, const Fit& best, std::size_t parameter,
                             double level, bool include_simulation);

/// −2 log Λ along one parameter, the others profiled.
struct Scan {
  std::size_t parameter = 0;
  std::vector<double> values;
  std::vector<double> statistic;
};
Scan scan(const Likelihood& likelihood, const Fit& best, std::size_t parameter, double low,
          double high, std::size_t points);

}  // namespace neyman
