#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/matrix.hpp"
#include "neyman/core/parameters.hpp"

// How the density of a component moves with parameters.
namespace neyman {

class Ratio;
class SeparableRatio;

/// The shape of a component as a function of parameters φ,
///
///   log p(x; φ) / p(x; nominal) = Σ_k b_k(φ) f_k(x) − log Z(φ),
///
/// where the b_k are known with two derivatives and f_k(x) is a number of each event, which
/// UnbinnedEvents holds. The model finds Z.
class Shape {
 public:
  virtual ~Shape() = default;
  /// φ, with the ranges in which the shape is known. Parameters that are `nuisance` have an
  /// auxiliary measurement, N(nominal, 1) unless the measurement says otherwise; others are free.
  virtual const ParameterSpace& parameters() const = 0;
  /// Where b_k = 0.
  virtual const std::vector<double>& nominal() const = 0;
  /// How many functions there are.
  virtual std::size_t functions() const = 0;
  /// b_k(φ); ∂b_k/∂φ_p (functions × parameters) and ∂²b_k/∂φ_p∂φ_q (functions × parameters ×
  /// parameters) where these spans are not empty.
  virtual void evaluate(std::span<const double> point, std::span<double> values,
                        std::span<double> first, std::span<double> second) const = 0;
  /// Inner values of a parameter where higher derivatives of the b_k jump, ascending.
  virtual std::vector<double> breaks(std::size_t parameter) const;
};

using ShapePtr = std::shared_ptr<const Shape>;

/// Up and down variations: f = (log p(x | −1) / p(x | 0), log p(x | +1) / p(x | 0)) of a parameter
/// α, with coefficients such that the shape goes through them: linear outside of [−1, 1], a
/// polynomial inside, continuous with two derivatives.
ShapePtr variation(std::string parameter);

/// A learned separable ratio: f = (f_1(x), …) of its log r = Σ_k f_k(x) P_k(θ) − c(θ), without c,
/// which Z contains.
/// @throw ArgumentError where the nominal point is outside of the ranges.
ShapePtr separable_shape(const SeparableRatio& ratio, std::vector<double> nominal);

/// Any ratio that is known at all θ, exact or learned: f_k(x) = log r(x; θ_k, nominal) at the nodes
/// θ_k of a Chebyshev lattice over the ranges, and the polynomial through them, of `degrees` (one a
/// parameter). As good as log r of an event is near such a polynomial.
class LatticeShape final : public Shape {
 public:
  /// @throw ArgumentError where the nominal point is outside of the ranges, a degree is not in
  ///   [1, 64], or there are more than 100 000 nodes.
  LatticeShape(ParameterSpace parameters, std::vector<double> nominal,
               std::vector<std::size_t> degrees);

  const ParameterSpace& parameters() const override { return parameters_; }
  const std::vector<double>& nominal() const override { return nominal_; }
  std::size_t functions() const override { return nodes_.rows(); }
  void evaluate(std::span<const double> point, std::span<double> values, std::span<double> first,
                std::span<double> second) const override;

  /// θ_k, one a row.
  const Matrix& nodes() const { return nodes_; }
  /// f_k(x): one row a node, one column an event.
  /// @throw ArgumentError where the ratio is not known at a node.
  Matrix describe(const Ratio& ratio, MatrixView x) const;

 private:
  void set_products(std::span<const double> point, std::span<double> values,
                    std::span<double> first, std::span<double> second) const;

  ParameterSpace parameters_;
  std::vector<double> nominal_;
  std::vector<std::size_t> degrees_;
  Matrix nodes_;
  std::vector<double> offset_;  // Lagrange polynomials at the nominal point
};

}  // namespace neyman
