#pragma once

#include <functional>

#include "neyman/simulators/distribution.hpp"

namespace neyman {

/// Independent distributions side by side: p(x) = Π pᵢ(xᵢ), the columns of the parts in order.
///
/// In a study: kind = "join", parts = [{kind = …}, …].
class Join final : public Distribution {
 public:
  /// @throw ArgumentError where there is no part.
  explicit Join(std::vector<DistributionPtr> parts);
  static DistributionPtr make(Settings settings, const ParameterSpace& parameters,
                              const std::string& folder);

  std::vector<DistributionPtr> parts() const override { return parts_; }

  std::string kind() const override { return "join"; }
  std::size_t dimension() const override { return dimension_; }
  void sample(std::span<const double> point, RandomStream& random, Matrix& out) const override;
  void sample_each(MatrixView points, RandomStream& random, Matrix& out) const override;
  /// What `sample` draws into `rows` rows, as one matrix for each part.
  std::vector<Matrix> sample_parts(std::span<const double> point, RandomStream& random,
                                   std::size_t rows) const;
  bool has_density() const override;
  void log_density(std::span<const double> point, MatrixView x,
                   std::span<double> out) const override;
  /// Of a single part; a join of several has no quantile.
  bool has_cdf() const override;
  double cdf(std::span<const double> point, double x) const override;
  double quantile(std::span<const double> point, double probability) const override;

 private:
  using DrawPart = std::function<void(const Distribution&, Matrix&)>;
  std::vector<Matrix> draw(std::size_t rows, const DrawPart& draw_part) const;

  std::vector<DistributionPtr> parts_;
  std::size_t dimension_ = 0;
};

}  // namespace neyman
