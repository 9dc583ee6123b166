#include "neyman/core/polynomial_basis.hpp"

#include <array>
#include <cmath>

#include "neyman/core/check.hpp"

namespace neyman {

namespace {

constexpr std::size_t highest_degree = 30;

constexpr double two_pi = 6.283185307179586, root_two = 1.4142135623730951;

/// All ways to share out a degree among the parameters from `at` on, the first taking most first.
void share_out(std::size_t at, std::size_t left, const std::vector<bool>& periodic,
               std::vector<std::size_t>& powers, std::vector<std::vector<std::size_t>>& out) {
  const auto take = [&](std::size_t taken, auto&& then) {
    const bool two = periodic[at] && taken > 0;  // the cosine and the sine
    powers[at] = two ? 2 * taken - 1 : taken;
    then();
    if (!two) return;
    powers[at] = 2 * taken;
    then();
  };
  if (at + 1 == powers.size()) {
    take(left, [&] { out.push_back(powers); });
    return;
  }
  for (std::size_t taken = left + 1; taken-- > 0;)
    take(taken, [&] { share_out(at + 1, left - taken, periodic, powers, out); });
}

}  // namespace

PolynomialBasis::PolynomialBasis(const ParameterSpace& parameters, std::size_t degree)
    : degree_(degree) {
  check_at_least("PolynomialBasis", "parameters.size()", parameters.size(), 1);
  check_in_range("PolynomialBasis", "degree", static_cast<double>(degree), 1.0, highest_degree);
  for (const auto& parameter : parameters) {
    periodic_.push_back(parameter.periodic);
    low_.push_back(parameter.low);
    scale_.push_back(2.0 / (parameter.high - parameter.low));
  }
  terms_ = (parameters.periodic() ? 2 * degree : degree) + 1;
  // n L_n = (2n − 1) u L_{n−1} − (n − 1) L_{n−2}, with the norms √(2n + 1) inside.
  for (std::size_t k = 0; k <= degree; ++k) {
    const auto n = static_cast<double>(k);
    const double norm = std::sqrt(2.0 * n + 1.0);
    recurrence_.push_back({norm, k < 1 ? 0.0 : (2 * n - 1) / n * norm / std::sqrt(2 * n - 1),
                           k < 2 ? 0.0 : (n - 1) / n * norm / std::sqrt(2 * n - 3)});
  }
  std::vector<std::size_t> powers(parameters.size(), 0);
  for (std::size_t total = 1; total <= degree; ++total) {
    share_out(0, total, periodic_, powers, powers_);
    degrees_.resize(powers_.size(), total);
  }
  for (const auto& entry : powers_)
    for (std::size_t p = 0; p < entry.size(); ++p)
      places_.push_back(static_cast<std::uint32_t>(3 * p * terms_ + entry[p]));
}

std::size_t PolynomialBasis::count(std::size_t parameters, std::size_t degree) {
  double product = 1.0;
  for (std::size_t i = 1; i <= degree; ++i)
    product *= static_cast<double>(parameters + i) / static_cast<double>(i);
  return static_cast<std::size_t>(std::llround(product)) - 1;
}

std::size_t PolynomialBasis::count(const ParameterSpace& parameters, std::size_t degree) {
  // The products of each degree: coefficients of Π_p (1 + m t + m t² + …), m = 2 for periodic ones.
  std::vector<double> products(degree + 1, 0.0);
  products[0] = 1.0;
  for (const auto& parameter : parameters)
    for (std::size_t k = degree; k > 0; --k)
      for (std::size_t taken = 1; taken <= k; ++taken)
        products[k] += (parameter.periodic ? 2.0 : 1.0) * products[k - taken];
  double sum = -1.0;
  for (const double value : products) sum += value;
  return static_cast<std::size_t>(std::llround(sum));
}

void PolynomialBasis::harmonics(double phase, double turn, double* value, std::size_t terms,
                                std::size_t order) {
  double* slope = value + terms;
  double* curve = slope + terms;
  value[0] = 1.0;
  if (order > 0) slope[0] = 0.0;
  if (order > 1) curve[0] = 0.0;
  const double cosine = std::cos(phase), sine = std::sin(phase);
  double c = root_two, s = 0.0;
  for (std::size_t k = 1; 2 * k < terms; ++k) {
    const double next = c * cosine - s * sine;
    s = s * cosine + c * sine;
    c = next;
    const double rate = static_cast<double>(k) * turn;
    value[2 * k - 1] = c;
    value[2 * k] = s;
    if (order > 0) {
      slope[2 * k - 1] = -rate * s;
      slope[2 * k] = rate * c;
    }
    if (order > 1) {
      curve[2 * k - 1] = -rate * rate * c;
      curve[2 * k] = -rate * rate * s;
    }
  }
}

// tables: for each parameter √(2k+1) L_k, k = 0 … degree, or its harmonics, then the same of the
// first and of the second derivatives.
void PolynomialBasis::fill(std::span<const double> point, std::span<double> tables,
                           std::size_t order) const {
  for (std::size_t p = 0; p < low_.size(); ++p) {
    const double u = (point[p] - low_[p]) * scale_[p] - 1.0;
    double* value = tables.data() + 3 * p * terms_;
    double* slope = value + terms_;
    double* curve = slope + terms_;
    if (periodic_[p]) {
      harmonics(0.5 * two_pi * (u + 1.0), 0.5 * two_pi * scale_[p], value, terms_, order);
      continue;
    }
    const std::size_t terms = degree_ + 1;
    value[0] = 1.0;
    value[1] = recurrence_[1].norm * u;
    for (std::size_t k = 2; k < terms; ++k)
      value[k] = recurrence_[k].first * u * value[k - 1] - recurrence_[k].second * value[k - 2];
    if (order < 1) continue;
    slope[0] = 0.0;
    slope[1] = recurrence_[1].norm * scale_[p];
    for (std::size_t k = 2; k < terms; ++k)
      slope[k] = recurrence_[k].first * (u * slope[k - 1] + scale_[p] * value[k - 1]) -
                 recurrence_[k].second * slope[k - 2];
    if (order < 2) continue;
    curve[0] = curve[1] = 0.0;
    for (std::size_t k = 2; k < terms; ++k)
      curve[k] = recurrence_[k].first * (u * curve[k - 1] + 2.0 * scale_[p] * slope[k - 1]) -
                 recurrence_[k].second * curve[k - 2];
  }
}

void PolynomialBasis::values(std::span<const double> point, std::span<double> out) const {
  values(point, out, {}, {});
}

void PolynomialBasis::values(std::span<const double> point, std::span<double> out,
                             std::span<double> derivatives) const {
  values(point, out, derivatives, {});
}

void PolynomialBasis::values(std::span<const double> point, std::span<double> out,
                             std::span<double> derivatives, std::span<double> second) const {
  const std::size_t parameters = low_.size(), terms = terms_;
  check_same_size("PolynomialBasis::values", "point", point.size(), parameters,
                  "one for each parameter");
  check_same_size("PolynomialBasis::values", "out", out.size(), size(), "one for each polynomial");
  if (!derivatives.empty())
    check_same_size("PolynomialBasis::values", "derivatives", derivatives.size(),
                    size() * parameters, "one for each polynomial and parameter");
  if (!second.empty())
    check_same_size("PolynomialBasis::values", "second", second.size(),
                    size() * parameters * parameters, "one for each polynomial and two parameters");
  std::array<double, 3 * 6 * (highest_degree + 1)> few;
  std::vector<double> many;
  std::span<double> tables(few);
  if (3 * parameters * terms > few.size()) {
    many.resize(3 * parameters * terms);
    tables = many;
  }
  const std::size_t order = !second.empty() ? 2 : (derivatives.empty() ? 0 : 1);
  fill(point, tables, order);
  if (order == 0) {
    const std::uint32_t* place = places_.data();
    for (std::size_t k = 0; k < size(); ++k, place += parameters) {
      double made = tables[place[0]];
      for (std::size_t p = 1; p < parameters; ++p) made *= tables[place[p]];
      out[k] = made;
    }
    return;
  }
  for (std::size_t k = 0; k < size(); ++k) {
    const auto& powers = powers_[k];
    // The product with the factors of a and b differentiated once each, twice where they are one.
    const auto product = [&](std::size_t a, std::size_t b) {
      double made = 1.0;
      for (std::size_t p = 0; p < parameters && made != 0.0; ++p) {
        const std::size_t times = (p == a ? 1u : 0u) + (p == b ? 1u : 0u);
        if (powers[p] > 0)
          made *= tables[(3 * p + times) * terms + powers[p]];
        else if (times > 0)
          made = 0.0;
      }
      return made;
    };
    out[k] = product(parameters, parameters);
    if (!derivatives.empty())
      for (std::size_t p = 0; p < parameters; ++p)
        derivatives[k * parameters + p] = product(p, parameters);
    if (order < 2) continue;
    for (std::size_t p = 0; p < parameters; ++p)
      for (std::size_t q = 0; q <= p; ++q)
        second[(k * parameters + p) * parameters + q] =
            second[(k * parameters + q) * parameters + p] = product(p, q);
  }
}

}  // namespace neyman
