#pragma once

#include "neyman/simulators/distribution.hpp"

namespace neyman {

/// The g-and-k distribution, defined by its quantile at a standard normal z,
///   Q(z) = A + B (1 + c tanh(g z / 2)) (1 + z²)^k z,
/// so that x = Q(z) with z ~ N(0, 1). The density φ(z) / Q'(z) needs the z of an x, found
/// numerically to double precision, in the far tails too.
///
/// Rayner and MacGillivray (2002). B > 0 and k > −1/2 are needed; for k < 0 or c above 0.83 not
/// every g gives a rising Q, and a θ where it is not is refused.
///
/// In a study: kind = "g-and-k", A, B, g, k, c (0.8 by default).
class GAndK final : public Distribution {
 public:
  /// @throw ArgumentError where B or k are numbers out of range.
  GAndK(Expression a, Expression b, Expression g, Expression k, Expression c = 0.8);
  static DistributionPtr make(Settings settings, const ParameterSpace& parameters,
                              const std::string& folder);

  std::string kind() const override { return "g-and-k"; }
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
  Expression a_, b_, g_, k_, c_;
};

}  // namespace neyman
