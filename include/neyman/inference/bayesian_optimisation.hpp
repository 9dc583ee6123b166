#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "neyman/core/matrix.hpp"
#include "neyman/core/parameters.hpp"
#include "neyman/inference/fit.hpp"
#include "neyman/inference/gaussian_process.hpp"
#include "neyman/inference/likelihood.hpp"

namespace neyman {

struct BayesianConfig {
  std::size_t evaluations = 50;  ///< of the function, in all
  /// Of those, how many spread over the box (a Latin hypercube) before the search. 0: enough for
  /// the surrogate's mean, at most half of all.
  std::size_t initial = 0;
  Matrix first;  ///< points to evaluate before all others, or empty
  GaussianProcess::Kernel kernel = GaussianProcess::Kernel::matern52;
  /// A log-likelihood is nearly quadratic at its top.
  GaussianProcess::Mean mean = GaussianProcess::Mean::quadratic;
  /// Standard deviation of the function's noise. Absent: estimated. 0: there is none.
  std::optional<double> noise;
  /// Only values less than this below the largest one matter, as those of a log-likelihood whose
  /// other values are thousands of units below. The search then compresses the depths beyond, and
  /// the surrogate follows deep values only within a part of their depth (1 to 30 %, by marginal
  /// likelihood). Absent: all values are modelled as closely.
  std::optional<double> top;
  /// Converged where the improvement that one more evaluation promises is at most this. Absent: a
  /// thousandth of the distance from the median to the largest value.
  std::optional<double> tolerance;
  std::size_t candidates = 512;  ///< at which the expected improvement is compared at each step
  std::uint64_t seed = 0;
};

/// Where the function is largest, and everything that was seen of it.
struct BayesianFit {
  /// converged: one more evaluation promises at most the tolerance. at_bound: so too, at an end
  /// of a range. failed: it promises more, or no evaluation was finite.
  FitStatus status = FitStatus::failed;
  std::vector<double> point;  ///< maximum of the posterior mean
  double value = 0.0;         ///< posterior mean there …
  double deviation = 0.0;     ///< … and its standard deviation
  /// The inverse of minus the second derivatives of the posterior mean at `point`: where the
  /// function is a log-likelihood, the covariance of θ̂. Zeros where they do not give one.
  Matrix covariance;
  std::vector<double> best_point;  ///< the point evaluated with the largest value
  double best_value = 0.0;
  Matrix points;               ///< evaluations × parameters, in order
  std::vector<double> values;  ///< as the function returned them
  std::size_t refused = 0;     ///< values that were not finite (or forbidden)
  /// Largest expected improvement over the box after the last evaluation.
  double expected_improvement = 0.0;
  GaussianProcess surrogate;  ///< not fitted where no evaluation was finite
};

/// Maximises a function over a box with few evaluations: a Gaussian process is fitted to what was
/// seen, and the next point is where the expected improvement over its largest posterior mean at
/// an evaluated point is largest (for noisy functions diminished by 1 − σ/√(σ² + s²), so that the
/// same point is not asked for again and again; Huang et al. 2006). Deterministic for a seed, and
/// for a function that is.
///
/// A value that is NaN, infinite or Likelihood::forbidden is counted and taken as bad as the
/// worst one seen. Meant for 1 to 6 parameters. An exception of the function is passed on.
/// @throw ArgumentError where a setting is out of its range.
BayesianFit maximise_bayesian(const std::function<double(std::span<const double>)>& function,
                              const ParameterSpace& box, const BayesianConfig& config = {});

/// A Gaussian process in the place of the likelihood that it was fitted to, for its profiles and
/// contours. The process must outlive it.
class SurrogateLikelihood final : public Likelihood {
 public:
  SurrogateLikelihood(const GaussianProcess& surrogate, std::size_t events)
      : surrogate_(surrogate), events_(events) {}

  const ParameterSpace& parameters() const override { return surrogate_.box(); }
  std::size_t events() const override { return events_; }
  double operator()(std::span<const double> point, std::span<double> gradient = {}) const override {
    return surrogate_.predict(point, gradient).mean;
  }

 private:
  const GaussianProcess& surrogate_;
  std::size_t events_;
};

/// The same for a log-likelihood: where absent, `top` is 15 and `tolerance` 0.05 units of ℓ.
BayesianFit bayesian_fit(const Likelihood& likelihood, BayesianConfig config = {});

}  // namespace neyman
