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
/// orthonormal for θ uniform in the ranges. The constant is left out; the order is by degree.
class PolynomialBasis {
 public:
  PolynomialBasis() = default;
  /// @throw ArgumentError where there are no parameters, or the degree is 0 or above 30.
  PolynomialBasis(const ParameterSpace& parameters, std::size_t degree);

  std::size_t size() const { return degrees_.size(); }
  std::size_t degree() const { return degree_; }
  /// The total degree of P_k.
  std::size_t degree(std::size_t k) const { return degrees_[k]; }

  /// The degree of P_k in each parameter, by k.
  const std::vector<std::vector<std::size_t>>& powers() const { return powers_; }
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

 private:
  void legendre(std::span<const double> point, std::span<double> tables, std::size_t order) const;

  struct Recurrence {
    double norm, first, second;  // of u · the last, and of the one before
  };
  std::size_t degree_ = 0;
  std::vector<double> low_, scale_;  // u = (θ − low) scale − 1
  std::vector<Recurrence> recurrence_;
  std::vector<std::vector<std::size_t>> powers_;  // [k][parameter]
  std::vector<std::uint32_t> places_;             // of the factors of each polynomial in the tables
  std::vector<std::size_t> degrees_;
};

}  // namespace neyman
