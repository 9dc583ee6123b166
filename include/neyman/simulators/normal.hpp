#pragma once

#include "neyman/simulators/distribution.hpp"

namespace neyman {

/// p(x) = exp(−(x − μ)² / 2σ²) / (σ √2π).
///
/// In a study: kind = "normal", mean, sigma.
class Normal final : public Distribution {
 public:
  /// @throw ArgumentError where sigma is a number that is not positive.
  Normal(Expression mean, Expression sigma);
  static DistributionPtr make(Settings settings, const ParameterSpace& parameters,
                              const std::string& folder);

  std::string kind() const override { return "normal"; }
  std::size_t dimension() const override { return 1; }
  void sample(std::span<const double> point, RandomStream& random, Matrix& out) const override;
  void sample_each(MatrixView points, RandomStream& random, Matrix& out) const override;
  bool has_density() const override { return true; }
  void log_density(std::span<const double> point, MatrixView x,
                   std::span<double> out) const override;
  bool has_cdf() const override { return true; }
  double cdf(std::span<const double> point, double x) const override;
  double quantile(std::span<const double> point, double probability) const override;

 private:
  double sigma(std::span<const double> point) const;

  Expression mean_, sigma_;
};

}  // namespace neyman
