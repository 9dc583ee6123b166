#include "local_shape.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace neyman {

EigenMatrix hessian(FreeProblem& problem, const std::vector<double>& unit) {
  if (const auto* known = problem.derivatives(unit)) return known->hessian;
  const auto n = index(problem.size());
  EigenMatrix out(n, n);
  std::vector<double> above(problem.size()), below(problem.size());
  // Two passes: the second with a step of a tenth of the error that the first one gave, small
  // against the curvature's change and large against rounding.
  std::vector<double> step(problem.size(), 1e-4);
  for (int pass = 0; pass < 2; ++pass) {
    for (Eigen::Index i = 0; i < n; ++i) {
      const auto k = static_cast<std::size_t>(i);
      auto moved = unit;
      moved[k] = std::min(1.0, unit[k] + step[k]);
      double high = moved[k];
      if (problem(moved, above) >= forbidden_value) {
        high = unit[k];
        problem(unit, above);
      }
      moved[k] = std::max(0.0, unit[k] - step[k]);
      double low = moved[k];
      if (problem(moved, below) >= forbidden_value) {
        low = unit[k];
        problem(unit, below);
      }
      for (std::size_t j = 0; j < problem.size(); ++j)
        out(i, index(j)) = high > low ? (above[j] - below[j]) / (high - low) : 0.0;
    }
    for (std::size_t k = 0; k < problem.size(); ++k) {
      const double curvature = out(index(k), index(k));
      step[k] = curvature > 0.0 ? std::clamp(0.1 / std::sqrt(curvature), 1e-8, 1e-2) : 1e-2;
    }
  }
  return 0.5 * (out + out.transpose());
}

namespace {

/// The distance along axis k at which the function has risen by a half, one standard error; at
/// most the box.
double rise_length(const Objective& function, const std::vector<double>& unit, std::size_t k,
                   double value) {
  double length = 0.05;
  for (int round = 0; round < 12; ++round) {
    double rise = 0.0;
    int sides = 0;
    for (const double direction : {-1.0, 1.0}) {
      auto moved = unit;
      moved[k] = std::clamp(unit[k] + direction * length, 0.0, 1.0);
      if (std::abs(moved[k] - unit[k]) < 0.5 * length) continue;
      const double there = function(moved);
      // A forbidden neighbour: the length is too long.
      rise += there >= forbidden_value ? 1e3 : std::max(0.0, there - value);
      ++sides;
    }
    if (sides == 0) return std::min(1.0, length);
    rise /= sides;
    if (rise > 0.25 && rise < 1.0) return length;
    const double factor = rise > 0.0 ? std::sqrt(0.5 / rise) : 8.0;
    const double next = std::clamp(length * std::clamp(factor, 0.05, 8.0), 1e-9, 1.0);
    if (next == length) return length;
    length = next;
  }
  return length;
}

/// Value, slope and curvature at t = 0 of a polynomial fitted to (t, f), with t of order one, and
/// the RMS of what it leaves.
struct PolynomialFit {
  double slope = 0.0, curvature = 0.0, residual = 0.0;
};
PolynomialFit fit_polynomial(const Eigen::VectorXd& t, const Eigen::VectorXd& f, int degree) {
  EigenMatrix design(t.size(), degree + 1);
  for (Eigen::Index i = 0; i < t.size(); ++i) {
    double power = 1.0;
    for (int d = 0; d <= degree; ++d, power *= t(i)) design(i, d) = power;
  }
  const Eigen::VectorXd c = design.colPivHouseholderQr().solve(f);
  const auto spare = static_cast<double>(std::max<Eigen::Index>(1, t.size() - degree - 1));
  return {c(1), 2.0 * c(2), (f - design * c).norm() / std::sqrt(spare)};
}

/// Slope and curvature along axis k over ± length, shifted to stay in the box. A quartic where
/// the function is smooth, a parabola, which averages more, where it is rough.
PolynomialFit axis_shape(const Objective& function, const std::vector<double>& unit, std::size_t k,
                         double value, double length) {
  constexpr Eigen::Index points = 9;
  const double low = std::max(0.0, unit[k] - length), high = std::min(1.0, unit[k] + length);
  std::vector<double> ts, fs;
  for (Eigen::Index i = 0; i < points; ++i) {
    auto moved = unit;
    moved[k] = low + (high - low) * static_cast<double>(i) / static_cast<double>(points - 1);
    const double there = function(moved);
    if (there >= forbidden_value) continue;
    ts.push_back((moved[k] - unit[k]) / length);
    fs.push_back(there - value);
  }
  if (ts.size() < 7) return {};
  const auto t = Eigen::Map<Eigen::VectorXd>(ts.data(), index(ts.size()));
  const auto f = Eigen::Map<Eigen::VectorXd>(fs.data(), index(fs.size()));
  const auto parabola = fit_polynomial(t, f, 2), quartic = fit_polynomial(t, f, 4);
  auto out = quartic.residual < 0.1 * parabola.residual ? quartic : parabola;
  out.slope /= length;
  out.curvature /= length * length;
  return out;
}

/// Whether the function falls, then rises along axis k over ± length: noise would rise and fall.
bool one_valley(const Objective& function, const std::vector<double>& unit, std::size_t k,
                double length) {
  constexpr int points = 40;
  std::vector<double> values;
  for (int i = 0; i < points; ++i) {
    auto moved = unit;
    moved[k] = std::clamp(unit[k] + length * (2.0 * i / (points - 1.0) - 1.0), 0.0, 1.0);
    values.push_back(function(moved));
  }
  const auto lowest = std::min_element(values.begin(), values.end());
  return std::is_sorted(values.begin(), lowest, std::greater<>()) &&
         std::is_sorted(lowest, values.end());
}

/// `axis_shape` over a length at which the fitted curve stands out from the roughness. The best
/// point of a rough function lies on one of its peaks, whose width says nothing: a curve fitted to
/// it rises by two or three times the roughness at most.
PolynomialFit axis_shape_beyond_peaks(const Objective& function, const std::vector<double>& unit,
                                      std::size_t k, double value, double& length) {
  auto axis = axis_shape(function, unit, k, value, length);
  double roughness = axis.residual;
  const auto hidden = [&] {
    const double change =
        std::max(std::abs(axis.slope) * length, 0.5 * std::abs(axis.curvature) * length * length);
    return change < 6.0 * roughness;
  };
  while (length < 0.5 && hidden()) {
    length *= 2.0;
    axis = axis_shape(function, unit, k, value, length);
    roughness = std::max(roughness, axis.residual);
  }
  return axis;
}

/// ∂²f/∂a∂b from the corners of a rectangle inside the box, small enough that none is forbidden.
double mixed_derivative(const Objective& function, const std::vector<double>& unit, std::size_t a,
                        std::size_t b, const std::vector<double>& lengths) {
  for (double part = 0.7; part > 0.01; part *= 0.5) {
    const auto ends = [&](std::size_t k) {
      return std::pair(std::max(0.0, unit[k] - part * lengths[k]),
                       std::min(1.0, unit[k] + part * lengths[k]));
    };
    const auto [a_low, a_high] = ends(a);
    const auto [b_low, b_high] = ends(b);
    double sum = 0.0;
    bool allowed = true;
    for (const bool up_a : {false, true})
      for (const bool up_b : {false, true}) {
        auto moved = unit;
        moved[a] = up_a ? a_high : a_low;
        moved[b] = up_b ? b_high : b_low;
        const double there = function(moved);
        allowed = allowed && there < forbidden_value;
        sum += (up_a == up_b ? 1.0 : -1.0) * there;
      }
    if (allowed) return sum / ((a_high - a_low) * (b_high - b_low));
  }
  return 0.0;
}

}  // namespace

Shape shape_of_values(const Objective& function, const std::vector<double>& unit) {
  constexpr double smooth = 1e-5;  // roughness below which a shorter length is more exact
  const std::size_t n = unit.size();
  const double value = function(unit);
  Shape out{Eigen::VectorXd::Zero(index(n)), EigenMatrix::Zero(index(n), index(n)), 0.0, 0.0};
  std::vector<double> lengths(n);
  for (std::size_t k = 0; k < n; ++k) {
    lengths[k] = rise_length(function, unit, k, value);
    auto axis = axis_shape_beyond_peaks(function, unit, k, value, lengths[k]);
    // What a smooth function leaves shrinks fast with the length, and the shorter is more exact;
    // roughness stays, and needs the longer.
    for (int round = 0; round < 4 && lengths[k] > 1e-7; ++round) {
      const double shorter = (axis.residual < smooth ? 0.2 : 0.4) * lengths[k];
      const auto next = axis_shape(function, unit, k, value, shorter);
      if (axis.residual >= smooth && next.residual > 0.1 * axis.residual) break;
      const bool enough = axis.residual < smooth;
      axis = next;
      lengths[k] = shorter;
      if (enough) break;
    }
    out.gradient(index(k)) = axis.slope;
    out.hessian(index(k), index(k)) = axis.curvature;
    out.roughness = std::max(out.roughness, axis.residual);
    // At an edge of the support no polynomial fits, but nothing fluctuates.
    const bool edge = axis.residual >= 0.1 && one_valley(function, unit, k, lengths[k]);
    if (!edge) out.fluctuation = std::max(out.fluctuation, axis.residual);
  }
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = 0; b < a; ++b)
      out.hessian(index(a), index(b)) = out.hessian(index(b), index(a)) =
          mixed_derivative(function, unit, a, b, lengths);
  return out;
}

}  // namespace neyman
