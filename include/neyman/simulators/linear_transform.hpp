#pragma once

#include "neyman/simulators/distribution.hpp"

namespace neyman {

/// x = A z + b with z from another distribution. Where A is square and invertible,
/// log p(x) = log p_z(A⁻¹ (x − b)) − log |det A|.
///
/// In a study: kind = "linear-transform", of = {kind = …}, matrix = [[…], …] (one row for each
/// output), offset = […] (0 by default).
class LinearTransform final : public Distribution {
 public:
  /// `matrix` has a row for each output and a column for each column of z; `offset` has one
  /// value for each output, or is empty.
  /// @throw ArgumentError where the sizes disagree.
  LinearTransform(DistributionPtr of, std::vector<std::vector<Expression>> matrix,
                  std::vector<Expression> offset = {});
  static DistributionPtr make(Settings settings, const ParameterSpace& parameters,
                              const std::string& folder);

  const DistributionPtr& of() const { return of_; }

  std::string kind() const override { return "linear-transform"; }
  std::size_t dimension() const override { return rows_; }
  std::vector<DistributionPtr> parts() const override { return {of_}; }
  void sample(std::span<const double> point, RandomStream& random, Matrix& out) const override;
  void sample_each(MatrixView points, RandomStream& random, Matrix& out) const override;
  /// Where z has one and A is square and, if it does not depend on θ, invertible.
  bool has_density() const override { return has_density_; }
  /// @throw ArgumentError where A is singular at this θ.
  void log_density(std::span<const double> point, MatrixView x,
                   std::span<double> out) const override;
  /// In one dimension, where z has them.
  bool has_cdf() const override;
  double cdf(std::span<const double> point, double x) const override;
  double quantile(std::span<const double> point, double probability) const override;

 private:
  struct Inverse {
    Matrix matrix;
    double log_determinant = 0.0;  // log |det A|
  };
  static void apply(const Matrix& z, const Matrix& matrix, std::span<const double> offset,
                    Matrix& out);
  Matrix matrix(std::span<const double> point) const;
  std::vector<double> offset(std::span<const double> point) const;
  static Inverse invert(const Matrix& matrix);

  DistributionPtr of_;
  std::vector<Expression> matrix_, offset_;  // matrix_: row-major
  std::size_t rows_ = 0, cols_ = 0;
  bool has_density_ = false;
  std::shared_ptr<const Inverse> constant_inverse_;  // where A does not depend on θ
};

}  // namespace neyman
