#include "calibration/banded.hpp"

#include <algorithm>
#include <cmath>

namespace neyman::calibration {

double Banded::element(std::size_t i, std::size_t j) const {
  if (i < j) std::swap(i, j);
  return i - j < width ? at(i, j) : 0.0;
}

double Banded::trace() const {
  double sum = 0.0;
  for (std::size_t i = 0; i < size(); ++i) sum += at(i, i);
  return sum;
}

void Banded::add_scaled(const Banded& other, double factor) {
  for (std::size_t i = 0; i < values_.size(); ++i) values_[i] += factor * other.values_[i];
}

BandedCholesky::BandedCholesky(const Banded& matrix) : factor_(matrix) {
  for (std::size_t i = 0; i < factor_.size(); ++i) {
    const std::size_t first = i >= 3 ? i - 3 : 0;
    for (std::size_t j = first; j <= i; ++j) {
      double sum = factor_.at(i, j);
      for (std::size_t k = first; k < j; ++k) {
        if (j - k < Banded::width) sum -= factor_.at(i, k) * factor_.at(j, k);
      }
      if (j < i) {
        factor_.at(i, j) = sum / factor_.at(j, j);
      } else {
        const double tiny = 1e-14 * std::max(matrix.at(i, i), 1e-280);
        if (!(sum > tiny)) exact_ = false;
        factor_.at(i, i) = std::sqrt(sum > tiny ? sum : tiny);
      }
    }
  }
}

void BandedCholesky::solve(std::span<double> x) const {
  const std::size_t n = factor_.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i >= 3 ? i - 3 : 0; j < i; ++j) x[i] -= factor_.at(i, j) * x[j];
    x[i] /= factor_.at(i, i);
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = i + 1; j < std::min(n, i + 4); ++j) x[i] -= factor_.at(j, i) * x[j];
    x[i] /= factor_.at(i, i);
  }
}

double BandedCholesky::log_determinant() const {
  double sum = 0.0;
  for (std::size_t i = 0; i < factor_.size(); ++i) sum += std::log(factor_.at(i, i));
  return 2.0 * sum;
}

Banded BandedCholesky::inverse_band() const {
  // Takahashi's recursion: from the last row up, each element needs only those of the band
  // that are already there.
  const std::size_t n = factor_.size();
  Banded inverse(n);
  for (std::size_t i = n; i-- > 0;) {
    const double pivot = factor_.at(i, i);
    const std::size_t end = std::min(n, i + 4);
    for (std::size_t j = end; j-- > i;) {
      double sum = j == i ? 1.0 / pivot : 0.0;
      for (std::size_t k = i + 1; k < end; ++k) sum -= factor_.at(k, i) * inverse.element(k, j);
      inverse.at(j, i) = sum / pivot;
    }
  }
  return inverse;
}

}  // namespace neyman::calibration
