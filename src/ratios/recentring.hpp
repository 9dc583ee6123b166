#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "neyman/core/archive.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/core/parameters.hpp"
#include "neyman/core/polynomial_basis.hpp"

namespace neyman::across {

/// Where a learned density q(x|θ) is to be taken for p(x|θ): at θ + ε(θ), with ε such that its
/// score has a mean of zero at every θ. What q is off by in the mean at a θ adds up over the events
/// of a dataset, and moves all estimates there; ε takes it away, and q stays normalised.
///
/// ε is a sum of polynomials in θ, of harmonics in a periodic parameter, so that it goes on over
/// the seam. To second order, events that q has not learned from say
///
///   Σ_i log q(x_i|θ_i + ε(θ_i)) = const + b·β − ½ β·G β,   b = Σ s_i P(θ_i),  G = Σ (s_i P)(s_i
///   P)ᵀ,
///
/// with s_i the scores. In coordinates in which G is one, degree by degree, b is normal of spread
/// one around what is to be found. Each degree is shrunk by what its own size says of noise (James
/// and Stein; Cai 1999), so that ε is what the events show and no more.
class Recentring {
 public:
  Recentring() = default;
  /// Of events with a θ and a score per row; `weights`: one per event, or empty.
  Recentring(const ParameterSpace& parameters, MatrixView theta, MatrixView scores,
             std::span<const double> weights);

  bool empty() const { return coefficients_.rows() == 0; }
  /// θ + ε(θ), which may lie a little outside of the ranges, and the Jacobian (rows: of θ + ε;
  /// columns: by θ) unless that is null.
  std::vector<double> operator()(std::span<const double> point, Matrix* jacobian = nullptr) const;
  /// Of ε(θ), from the noise of the events that it was found with.
  Matrix covariance(std::span<const double> point) const;
  /// Of a likelihood: from its derivatives by θ + ε(θ) to those by θ.
  void differentiate(std::span<const double> point, std::span<double> gradient) const;
  /// What that noise adds to the covariance of its gradient, where it has this information.
  void add_gradient_covariance(std::span<const double> point, const Matrix& information,
                               Matrix& to) const;

  void save(Archive& archive) const;
  /// @throw FileError where its parts do not belong together.
  static Recentring load(const Archive& archive, const ParameterSpace& parameters);

 private:
  std::vector<double> polynomials(std::span<const double> point, Matrix* slopes) const;
  bool turns_back(const Matrix& places) const;

  std::vector<double> low_, high_;
  PolynomialBasis basis_;
  Matrix coefficients_;  // polynomial (the constant first) × parameter, in units of the ranges
  Matrix factor_;        // of their covariance: F Fᵀ, rows by polynomial, then parameter
};

}  // namespace neyman::across
