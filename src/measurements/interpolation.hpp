#pragma once

#include <array>

namespace neyman {

/// A function of one parameter with its first two derivatives.
struct Jet {
  double value = 0.0, first = 0.0, second = 0.0;
};

/// A positive factor between `low` at α = −1, 1 at 0 and `high` at 1: exponential outside of [−1,
/// 1] and a polynomial of sixth degree inside, continuous with two derivatives. (HistFactory's and
/// pyhf's code 4.)
class FactorInterpolation {
 public:
  FactorInterpolation(double low, double high);
  Jet operator()(double alpha) const;

 private:
  double log_low_, log_high_;
  std::array<double, 6> coefficients_;
};

/// The shift of a histogram, up_b · `up`(α) + down_b · `down`(α), where up_b = high_b − nominal_b
/// and down_b = nominal_b − low_b: linear outside of [−1, 1], a polynomial of sixth degree inside,
/// continuous with two derivatives. (pyhf's code 4p.) The same for all bins.
struct ShiftInterpolation {
  Jet up, down;
  explicit ShiftInterpolation(double alpha);
};

}  // namespace neyman
