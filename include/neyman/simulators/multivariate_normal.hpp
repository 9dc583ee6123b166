#pragma once

#include "neyman/simulators/distribution.hpp"

namespace neyman {

/// p(x) = exp(−½ (x − μ)ᵀ Σ⁻¹ (x − μ)) / √((2π)^d det Σ), with Σ symmetric and positive definite.
///
/// In a study: kind = "multivariate-normal", mean = […], covariance = [[…], …].
class MultivariateNormal final : public Distribution {
 public:
  /// @throw ArgumentError where the sizes disagree, or the covariance is made of numbers and is
  ///   not symmetric and positive definite.
  MultivariateNormal(std::vector<Expression> mean, std::vector<std::vector<Expression>> covariance);
  static DistributionPtr make(Settings settings, const ParameterSpace& parameters,
                              const std::string& folder);

  std::string kind() const override { return "multivariate-normal"; }
  std::size_t dimension() const override { return mean_.size(); }
  void sample(std::span<const double> point, RandomStream& random, Matrix& out) const override;
  void sample_each(MatrixView points, RandomStream& random, Matrix& out) const override;
  bool has_density() const override { return true; }
  void log_density(std::span<const double> point, MatrixView x,
                   std::span<double> out) const override;

 private:
  std::vector<double> mean(std::span<const double> point) const;
  /// Lower triangle L with Σ = L Lᵀ.
  Matrix cholesky(std::span<const double> point) const;

  bool constant_covariance() const;

  std::vector<Expression> mean_, covariance_;  // covariance_: row-major
};

}  // namespace neyman
