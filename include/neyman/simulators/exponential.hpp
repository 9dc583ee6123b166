#pragma once

#include "neyman/simulators/distribution.hpp"

namespace neyman {

/// p(x) = λ exp(−λ (x − x₀)) for x >= x₀, and 0 below: the log density there is −∞.
///
/// In a study: kind = "exponential", rate (λ), location (x₀, 0 by default).
class Exponential final : public Distribution {
 public:
  /// @throw ArgumentError where the rate is a number that is not positive.
  explicit Exponential(Expression rate, Expression location = 0.0);
  static DistributionPtr make(Settings settings, const ParameterSpace& parameters,
                              const std::string& folder);

  std::string kind() const override { return "exponential"; }
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
  double rate(std::span<const double> point) const;

  Expression rate_, location_;
};

}  // namespace neyman
