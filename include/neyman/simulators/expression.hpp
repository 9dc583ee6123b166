#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/parameters.hpp"

namespace neyman {

/// A number, or a formula of the study's parameters such as "0.5 - gamma/2" (muParser's
/// syntax). Cheap to copy; safe to evaluate from several threads.
class Expression {
 public:
  Expression(double constant = 0.0);  // NOLINT: a number is an expression
  /// @throw ArgumentError with the position and the unknown name or the syntax error.
  Expression(const std::string& formula, const ParameterSpace& parameters);

  double operator()(std::span<const double> point) const;
  bool constant() const;
  const std::string& text() const { return text_; }
  /// The indices of the parameters that occur.
  const std::vector<std::size_t>& uses() const { return uses_; }

 private:
  struct Formula;
  std::string text_;
  double value_ = 0.0;
  std::vector<std::size_t> uses_;
  std::shared_ptr<const Formula> formula_;
};

}  // namespace neyman
