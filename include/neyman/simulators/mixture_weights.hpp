#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "neyman/core/matrix.hpp"
#include "neyman/simulators/expression.hpp"

namespace neyman {

/// The weights w_c(θ) of a mixture: one expression for each component, or one fewer, when the
/// last weight is what the others leave.
class MixtureWeights {
 public:
  MixtureWeights() = default;
  /// @throw ArgumentError unless there are `components` or `components` − 1 expressions.
  MixtureWeights(std::vector<Expression> expressions, std::size_t components);

  std::size_t size() const { return components_; }
  const std::vector<Expression>& expressions() const { return expressions_; }
  /// The indices of the parameters that the weights depend on, sorted.
  std::vector<std::size_t> uses() const;

  /// w(θ). @throw ArgumentError where one is negative or not finite, or their sum is not 1
  /// (within 1e-9; what rounding leaves is set right).
  std::vector<double> operator()(std::span<const double> point) const;
  /// w(θ) at many θ, one a row; faster than one at a time.
  Matrix each(MatrixView points) const;

  /// ∂w_c/∂θ_p (a row a component). The formulas are differentiated, by differences within the
  /// ranges, and may leave the region of allowed weights on the way: at its edge, too, the
  /// derivatives are known. 0 where a formula is finite on neither side of θ.
  /// @throw ArgumentError as for w(θ).
  Matrix derivatives(std::span<const double> point, const ParameterSpace& parameters) const;
  /// A second derivative ∂²w_c/∂θ_p∂θ_q, with p <= q.
  struct SecondDerivative {
    std::size_t component, first, second;
    double value;
  };
  /// Those that are not zero because a formula does not name both parameters.
  /// @throw ArgumentError where a formula is not defined beside θ.
  std::vector<SecondDerivative> second_derivatives(std::span<const double> point,
                                                   const ParameterSpace& parameters) const;

 private:
  void complete(std::span<double> weights) const;

  std::vector<Expression> expressions_;
  std::size_t components_ = 0;
};

}  // namespace neyman
