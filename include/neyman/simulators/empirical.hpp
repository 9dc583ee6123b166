#pragma once

#include "neyman/simulators/distribution.hpp"

namespace neyman {

namespace detail {
class AliasTable;
}

/// Draws rows of given events, with replacement, each with a probability in proportion to its
/// weight. It has no density; in one dimension its cdf is the weighted step function.
///
/// In a study: kind = "empirical", file, columns (all by default), weights (a column, optional).
class Empirical final : public Distribution {
 public:
  /// Weights: one an event, or empty.
  /// @throw ArgumentError where there is no event, an event or a weight is not finite, or the
  ///   weights are negative or all zero.
  explicit Empirical(Matrix events, std::vector<double> weights = {});
  static DistributionPtr make(Settings settings, const ParameterSpace& parameters,
                              const std::string& folder);

  const Matrix& events() const { return events_; }

  std::string kind() const override { return "empirical"; }
  std::size_t dimension() const override { return events_.cols(); }
  /// Those of the file that it was made of in a study; else empty.
  std::vector<std::string> feature_names() const override { return names_; }
  void sample(std::span<const double> point, RandomStream& random, Matrix& out) const override;
  void sample_each(MatrixView points, RandomStream& random, Matrix& out) const override;
  bool has_cdf() const override { return dimension() == 1; }
  double cdf(std::span<const double> point, double x) const override;
  double quantile(std::span<const double> point, double probability) const override;

 private:
  Matrix events_;
  std::shared_ptr<const detail::AliasTable> table_;  // null where all weights are equal
  std::vector<double> sorted_, cumulative_;          // one dimension: values and P(X <= value)
  std::vector<std::string> names_;
};

}  // namespace neyman
