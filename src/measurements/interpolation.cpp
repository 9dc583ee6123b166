#include "measurements/interpolation.hpp"

#include <cmath>

namespace neyman {

FactorInterpolation::FactorInterpolation(double low, double high)
    : log_low_(std::log(low)), log_high_(std::log(high)) {
  // Values, slopes and curvatures at both ends, as their even and odd parts.
  const double slope_high = log_high_ * high, slope_low = -log_low_ * low;
  const double curve_high = log_high_ * slope_high, curve_low = log_low_ * log_low_ * low;
  const double even = 0.5 * (high + low) - 1.0, odd = 0.5 * (high - low);
  const double slope_even = 0.5 * (slope_high - slope_low);
  const double slope_odd = 0.5 * (slope_high + slope_low);
  const double curve_even = 0.5 * (curve_high + curve_low);
  const double curve_odd = 0.5 * (curve_high - curve_low);
  coefficients_ = {(15.0 * odd - 7.0 * slope_odd + curve_odd) / 8.0,
                   3.0 * even - 9.0 / 8.0 * slope_even + curve_even / 8.0,
                   (-5.0 * odd + 5.0 * slope_odd - curve_odd) / 4.0,
                   -3.0 * even + 7.0 / 4.0 * slope_even - curve_even / 4.0,
                   (3.0 * odd - 3.0 * slope_odd + curve_odd) / 8.0,
                   even - 5.0 / 8.0 * slope_even + curve_even / 8.0};
}

Jet FactorInterpolation::operator()(double alpha) const {
  if (std::abs(alpha) >= 1.0) {
    const double rate = alpha > 0.0 ? log_high_ : -log_low_;
    const double value = std::exp(rate * alpha);
    return {value, rate * value, rate * rate * value};
  }
  Jet out;
  for (int i = 6; i >= 1; --i) {  // Horner, for the derivatives too
    out.second = out.second * alpha + 2.0 * out.first;
    out.first = out.first * alpha + out.value;
    out.value = out.value * alpha + coefficients_[static_cast<std::size_t>(i - 1)];
  }
  out.second = out.second * alpha + 2.0 * out.first;
  out.first = out.first * alpha + out.value;
  out.value = out.value * alpha + 1.0;
  return out;
}

ShiftInterpolation::ShiftInterpolation(double alpha) {
  if (alpha > 1.0) {
    up = {alpha, 1.0, 0.0};
  } else if (alpha < -1.0) {
    down = {alpha, 1.0, 0.0};
  } else {
    const double square = alpha * alpha;
    const double even = square * (square * (3.0 * square - 10.0) + 15.0) / 16.0;
    const double even_slope = alpha * (square * (18.0 * square - 40.0) + 30.0) / 16.0;
    const double even_curve = (square * (90.0 * square - 120.0) + 30.0) / 16.0;
    up = {0.5 * alpha + even, 0.5 + even_slope, even_curve};
    down = {0.5 * alpha - even, 0.5 - even_slope, -even_curve};
  }
}

}  // namespace neyman
