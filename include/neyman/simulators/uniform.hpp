#pragma once

#include "neyman/simulators/distribution.hpp"

namespace neyman {

/// p(x) = 1 / (b − a) for a <= x <= b.
///
/// In a study: kind = "uniform", low (a), high (b).
class Uniform final : public Distribution {
 public:
  /// @throw ArgumentError where both are numbers and high is not above low.
  Uniform(Expression low, Expression high);
  static DistributionPtr make(Settings settings, const ParameterSpace& parameters,
                              const std::string& folder);

  std::string kind() const override { return "uniform"; }
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
  struct Range {
    double low, high;
  };
  Range range(std::span<const double> point) const;
  static Range checked(Range range);

  Expression low_, high_;
};

}  // namespace neyman
