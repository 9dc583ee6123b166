#pragma once

#include <string_view>

#include "neyman/simulators/distribution.hpp"

namespace neyman {

namespace detail {
class AliasTable;
}

/// Kernel density estimate: p(x) = Σᵢ wᵢ Πⱼ φ((xⱼ − xᵢⱼ) / hⱼ) / hⱼ over given events, with
/// Gaussian kernels and weights that sum to 1.
///
/// The rules give hⱼ = f σⱼ with the weighted standard deviation σⱼ of column j and, for d
/// columns and n_eff = (Σw)² / Σw² events, Scott's f = n_eff^(−1/(d+4)) or Silverman's
/// f = (n_eff (d + 2) / 4)^(−1/(d+4)). They suit one smooth peak and smear several.
///
/// A density costs O(events within some bandwidths in the first column), O(events) in far tails.
///
/// In a study: kind = "kde", file, columns, weights (a column), bandwidth = "scott",
/// "silverman", a number, or one number for each column.
class Kde final : public Distribution {
 public:
  enum class Rule { scott, silverman };
  struct Config {
    Rule rule = Rule::scott;
    std::vector<double> bandwidth;  ///< one for each column, or one for all; empty: by the rule
  };

  /// Weights: one an event, or empty.
  /// @throw ArgumentError where there is no event, an event or weight is not finite, weights are
  ///   negative or all zero, a bandwidth is not positive, or a column is constant and the
  ///   bandwidth is left to a rule.
  Kde(const Matrix& events, std::vector<double> weights, Config config);
  explicit Kde(const Matrix& events, std::vector<double> weights = {});
  static DistributionPtr make(Settings settings, const ParameterSpace& parameters,
                              const std::string& folder);

  const std::vector<double>& bandwidth() const { return bandwidth_; }

  std::string kind() const override { return "kde"; }
  std::size_t dimension() const override { return events_.cols(); }
  /// Those of the file that it was made of in a study; else empty.
  std::vector<std::string> feature_names() const override { return names_; }
  void sample(std::span<const double> point, RandomStream& random, Matrix& out) const override;
  void sample_each(MatrixView points, RandomStream& random, Matrix& out) const override;
  bool has_density() const override { return true; }
  void log_density(std::span<const double> point, MatrixView x,
                   std::span<double> out) const override;
  bool has_cdf() const override { return dimension() == 1; }
  double cdf(std::span<const double> point, double x) const override;
  double quantile(std::span<const double> point, double probability) const override;

 private:
  double log_density(std::span<const double> x) const;

  Matrix events_;  // sorted by the first column
  std::vector<double> weights_, log_weights_, bandwidth_;
  double log_norm_ = 0.0;  // −Σ log(hⱼ √2π)
  std::shared_ptr<const detail::AliasTable> table_;
  std::vector<std::string> names_;
};

}  // namespace neyman
