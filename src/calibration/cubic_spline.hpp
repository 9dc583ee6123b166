#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "calibration/banded.hpp"

// Cubic B-splines on given breaks: the ends are knots of multiplicity four, the breaks between
// them simple knots. K pieces have K + 3 basis functions.
namespace neyman::calibration {

/// The piece [breaks[i], breaks[i+1]) that holds u; outside, the first or the last.
std::size_t find_piece(std::span<const double> breaks, double u);

class CubicSplines {
 public:
  /// Strictly increasing, at least two.
  explicit CubicSplines(std::span<const double> breaks);

  std::size_t size() const { return pieces_ + 3; }
  std::size_t pieces() const { return pieces_; }
  /// The four functions piece, …, piece + 3 that are not zero in a piece, at u inside of it.
  std::array<double, 4> values(std::size_t piece, double u) const;
  /// Their derivatives.
  std::array<double, 4> slopes(std::size_t piece, double u) const;
  /// The mean knots ξ with Σ (α + β ξ_j) B_j(u) = α + β u.
  std::vector<double> greville() const;
  /// f'' at a break, from 0 to pieces(), as a combination of coefficients break to break + 2. In
  /// between it is linear.
  std::array<double, 3> second_derivative(std::size_t at) const;
  /// S with cᵀSc = ∫ f''² for f = Σ c_j B_j.
  Banded curvature_penalty() const;
  /// f on each piece as the coefficients of 1, v, v², v³ with v = u − breaks[i].
  std::vector<std::array<double, 4>> polynomials(std::span<const double> coefficients) const;

 private:
  double knot(std::size_t i) const { return knots_[i]; }

  std::size_t pieces_;
  std::vector<double> knots_;
};

}  // namespace neyman::calibration
