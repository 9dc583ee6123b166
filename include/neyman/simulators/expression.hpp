#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/matrix.hpp"
#include "neyman/core/parameters.hpp"

namespace neyman {

/// A number, or a formula of the study's parameters such as "0.5 - gamma/2" (muParser's
/// syntax: + - * / ^, comparisons, && || ?:, abs, sqrt, exp, ln, log2, log10, sin, cos, tan and
/// their inverses and hyperbolic forms, min, max, sum, avg, sign, rint; constants _pi and _e;
/// log is the natural logarithm). Cheap to copy; safe to evaluate from several threads.
///
/// A formula without parameters is evaluated once, when it is made.
class Expression {
 public:
  /// @throw ArgumentError unless the number is finite.
  Expression(double constant = 0.0);  // NOLINT: a number is an expression
  /// @throw ArgumentError with the position and the unknown name or the syntax error, and where
  ///   a parameter's name cannot stand in a formula (letters, digits and _ can, not a digit
  ///   first, nor the name of a function).
  Expression(const std::string& formula, const ParameterSpace& parameters);

  /// The value at θ.
  /// @throw ArgumentError where the value is not finite (as of 1/gamma at 0), or where the point
  ///   has not one value for each parameter.
  double operator()(std::span<const double> point) const {
    return formula_ == nullptr ? value_ : evaluate(point);
  }
  /// The values at many θ, one a row; faster than one at a time.
  /// @throw ArgumentError as above, and where `out` has another size than rows.
  void each(MatrixView points, std::span<double> out) const;
  bool constant() const { return formula_ == nullptr; }
  const std::string& text() const { return text_; }
  /// The indices of the parameters that occur, in rising order.
  const std::vector<std::size_t>& uses() const { return uses_; }

 private:
  struct Formula;
  double evaluate(std::span<const double> point) const;
  [[noreturn]] void fail_value(std::span<const double> point, double value) const;

  std::string text_;
  double value_ = 0.0;
  std::vector<std::size_t> uses_;
  std::shared_ptr<const Formula> formula_;
};

}  // namespace neyman
