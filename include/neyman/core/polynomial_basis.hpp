#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "neyman/core/parameters.hpp"

namespace neyman {

/// Products of Legendre polynomials over the ranges of the parameters, up to a total degree,
///
///   P_k(θ) = Π_p √(2 k_p + 1) L_{k_p}(u_p),   u_p = 2 (θ_p − low) / (high − low) − 1,
///
/// orthonormal for θ uniform in the ranges. A periodic parameter has harmonics in the place of
/// polynomials, two of each degree: √2 cos kφ and √2 sin kφ with φ = 2π (θ_p − low) / (high − low).
/// The constant is left out; the order is by degree.
class PolynomialBasis {
 public:
  PolynomialBasis() = default;
  /// @throw ArgumentError where there are no parameters, or the degree is 0 or above 30.
  PolynomialBasis(const ParameterSpace& parameters, std::size_t degree);

  std::size_t size() const { return degrees_.size(); }
  std::size_t degree() const { return degree_; }
  /// The total degree of P_k.
  std::size_t degree(std::size_t k) const { return degrees_[k]; }

  /// By k, the function of each parameter in P_k: its degree, but 2 k − 1 of the cosine and 2 k of
  /// the sine of degree k where the parameter is periodic.
  const std::vector<std::vector<std::size_t>>& powers() const { return powers_; }
  bool periodic(std::size_t parameter) const { return periodic_[parameter]; }
  // u = (θ − low) scale − 1
  const std::vector<double>& low() const { return low_; }
  const std::vector<double>& scale() const { return scale_; }

  /// P_k(θ) for every k. @throw ArgumentError where a size does not fit.
  void values(std::span<const double> point, std::span<double> out) const;
  /// The same with ∂P_k/∂θ_p, by rows k.
  void values(std::span<const double> point, std::span<double> out,
              std::span<double> derivatives) const;
  /// The same with ∂²P_k/∂θ_p∂θ_q too, by rows k, then p. Spans of derivatives may be empty.
  void values(std::span<const double> point, std::span<double> out, std::span<double> derivatives,
              std::span<double> second) const;

  /// How many there are: (degree + parameters choose degree) − 1.
  static std::size_t count(std::size_t parameters, std::size_t degree);
  /// The same where some may be periodic.
  static std::size_t count(const ParameterSpace& parameters, std::size_t degree);

 private:
  void fill(std::span<const double> point, std::span<double> tables, std::size_t order) const;

  struct Recurrence {
    double norm, first, second;  // of u · the last, and of the one before
  };
  static void harmonics(double phase, double turn, double* value, std::size_t terms,
                        std::size_t order);

  std::size_t degree_ = 0, terms_ = 0;  // and functions of a parameter, the constant among them
  std::vector<bool> periodic_;
  std::vector<double> low_, scale_;  // u = (θ − low) scale − 1
  std::vector<Recurrence> recurrence_;
  std::vector<std::vector<std::size_t>> powers_;  // [k][parameter]: which function
  std::vector<std::uint32_t> places_;             // of the factors of each polynomial in the tables
  std::vector<std::size_t> degrees_;
};

}  // namespace neyman
