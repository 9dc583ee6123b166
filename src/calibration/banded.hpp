#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace neyman::calibration {

/// A symmetric matrix with three diagonals on each side of the main one, as cubic B-splines
/// give. Row i holds the elements (i, i), (i, i−1), (i, i−2), (i, i−3).
class Banded {
 public:
  static constexpr std::size_t width = 4;

  Banded() = default;
  explicit Banded(std::size_t size) : values_(size * width) {}

  std::size_t size() const { return values_.size() / width; }
  /// Element (i, j) with j <= i <= j + 3.
  double& at(std::size_t i, std::size_t j) { return values_[i * width + (i - j)]; }
  double at(std::size_t i, std::size_t j) const { return values_[i * width + (i - j)]; }
  /// Any element, zero outside the band.
  double element(std::size_t i, std::size_t j) const;
  double trace() const;
  void add_scaled(const Banded& other, double factor);

 private:
  std::vector<double> values_;
};

/// The Cholesky factor of a positive definite banded matrix.
class BandedCholesky {
 public:
  /// Pivots that are not positive are replaced by a tiny one; `exact()` then says false.
  explicit BandedCholesky(const Banded& matrix);
  bool exact() const { return exact_; }
  void solve(std::span<double> x) const;  ///< x becomes A⁻¹ x
  double log_determinant() const;
  Banded inverse_band() const;  ///< the elements of A⁻¹ within the band

 private:
  Banded factor_;
  bool exact_ = true;
};

}  // namespace neyman::calibration
