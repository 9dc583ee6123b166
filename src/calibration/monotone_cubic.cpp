#include "calibration/monotone_cubic.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace neyman::calibration {

namespace {

// The segment [x_i, x_{i+1}] that holds `at`, or the nearest.
std::size_t find_segment(const std::vector<double>& x, double at) {
  const auto next = std::upper_bound(x.begin() + 1, x.end() - 1, at);
  return static_cast<std::size_t>(next - x.begin()) - 1;
}

double secant(const std::vector<double>& x, const std::vector<double>& y, std::size_t i) {
  const double h = x[i + 1] - x[i];
  return h > 0.0 ? (y[i + 1] - y[i]) / h : 0.0;
}

}  // namespace

std::vector<double> monotone_slopes(const std::vector<double>& x, const std::vector<double>& y) {
  const std::size_t n = x.size();
  std::vector<double> slopes(n, 0.0);
  if (n < 2) return slopes;
  slopes.front() = secant(x, y, 0);
  slopes.back() = secant(x, y, n - 2);
  for (std::size_t i = 1; i + 1 < n; ++i) {
    const double a = secant(x, y, i - 1), b = secant(x, y, i);
    if (!(a * b > 0.0)) continue;
    const double ha = x[i] - x[i - 1], hb = x[i + 1] - x[i];
    const double wa = ha + 2.0 * hb, wb = 2.0 * ha + hb;
    slopes[i] = (wa + wb) / (wa / a + wb / b);
  }
  return slopes;
}

double evaluate_monotone_cubic(const std::vector<double>& x, const std::vector<double>& y,
                               const std::vector<double>& slopes, const Lookup& lookup, double at) {
  if (x.size() < 2) return y.front();
  if (at <= x.front()) return y.front() + slopes.front() * (at - x.front());
  if (at >= x.back()) return y.back() + slopes.back() * (at - x.back());
  const std::size_t i = lookup.count_up_to(at) - 1;
  const double h = x[i + 1] - x[i];
  if (!(h > 0.0)) return y[i];
  const double t = (at - x[i]) / h, s = 1.0 - t;
  return y[i] * s * s * (1.0 + 2.0 * t) + y[i + 1] * t * t * (1.0 + 2.0 * s) +
         h * t * s * (slopes[i] * s - slopes[i + 1] * t);
}

double interpolate_errors(const std::vector<double>& x, const std::vector<double>& errors,
                          double at) {
  if (at <= x.front()) return errors.front();
  if (at >= x.back()) return errors.back();
  const std::size_t i = find_segment(x, at);
  const double h = x[i + 1] - x[i];
  const double t = h > 0.0 ? std::clamp((at - x[i]) / h, 0.0, 1.0) : 0.0;
  return std::hypot((1.0 - t) * errors[i], t * errors[i + 1]);
}

}  // namespace neyman::calibration
