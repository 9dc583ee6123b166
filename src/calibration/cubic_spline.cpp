#include "calibration/cubic_spline.hpp"

#include <algorithm>

namespace neyman::calibration {

namespace {

constexpr std::size_t degree = 3;

}  // namespace

std::size_t find_piece(std::span<const double> breaks, double u) {
  const auto at = std::upper_bound(breaks.begin() + 1, breaks.end() - 1, u);
  return static_cast<std::size_t>(at - breaks.begin()) - 1;
}

CubicSplines::CubicSplines(std::span<const double> breaks)
    : pieces_(breaks.size() - 1), knots_(degree, breaks.front()) {
  knots_.insert(knots_.end(), breaks.begin(), breaks.end());
  knots_.insert(knots_.end(), degree, breaks.back());
}

std::array<double, 4> CubicSplines::values(std::size_t piece, double u) const {
  // Cox and de Boor's triangle.
  const std::size_t span = piece + degree;
  std::array<double, 4> n{1.0, 0.0, 0.0, 0.0};
  std::array<double, 4> left{}, right{};
  for (std::size_t j = 1; j <= degree; ++j) {
    left[j] = u - knot(span + 1 - j);
    right[j] = knot(span + j) - u;
    double saved = 0.0;
    for (std::size_t r = 0; r < j; ++r) {
      const double term = n[r] / (right[r + 1] + left[j - r]);
      n[r] = saved + right[r + 1] * term;
      saved = left[j - r] * term;
    }
    n[j] = saved;
  }
  return n;
}

std::array<double, 4> CubicSplines::slopes(std::size_t piece, double u) const {
  // B'_j = 3 (Q_j / (t_{j+3} − t_j) − Q_{j+1} / (t_{j+4} − t_{j+1})) with quadratic Q.
  const std::size_t span = piece + degree;
  std::array<double, 4> q{1.0, 0.0, 0.0, 0.0};
  std::array<double, 4> left{}, right{};
  for (std::size_t j = 1; j <= 2; ++j) {
    left[j] = u - knot(span + 1 - j);
    right[j] = knot(span + j) - u;
    double saved = 0.0;
    for (std::size_t r = 0; r < j; ++r) {
      const double term = q[r] / (right[r + 1] + left[j - r]);
      q[r] = saved + right[r + 1] * term;
      saved = left[j - r] * term;
    }
    q[j] = saved;
  }
  std::array<double, 4> d{};
  for (std::size_t r = 0; r < 3; ++r) {
    const std::size_t j = piece + 1 + r;  // Q_j starts at knot j
    const double term = 3.0 * q[r] / (knot(j + 3) - knot(j));
    d[r] -= term;
    d[r + 1] += term;
  }
  return d;
}

std::vector<double> CubicSplines::greville() const {
  std::vector<double> means(size());
  for (std::size_t j = 0; j < size(); ++j) {
    means[j] = (knot(j + 1) + knot(j + 2) + knot(j + 3)) / 3.0;
  }
  return means;
}

std::array<double, 3> CubicSplines::second_derivative(std::size_t at) const {
  // Differences of differences of coefficients are the coefficients of f'', which is a broken
  // line with its corners at the breaks.
  const std::size_t j = at;
  const double first = 3.0 / (knot(j + 4) - knot(j + 1));
  const double second = 3.0 / (knot(j + 5) - knot(j + 2));
  const double outer = 2.0 / (knot(j + 4) - knot(j + 2));
  return {outer * first, -outer * (first + second), outer * second};
}

Banded CubicSplines::curvature_penalty() const {
  Banded penalty(size());
  const auto add = [&](std::size_t a, std::size_t b, double factor) {
    const auto da = second_derivative(a), db = second_derivative(b);
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 3; ++j) {
        if (a + i >= b + j) penalty.at(a + i, b + j) += factor * da[i] * db[j];
      }
    }
  };
  for (std::size_t piece = 0; piece < pieces_; ++piece) {
    const double third = (knot(piece + 4) - knot(piece + 3)) / 3.0;
    add(piece, piece, third);
    add(piece + 1, piece + 1, third);
    add(piece, piece + 1, 0.5 * third);
    add(piece + 1, piece, 0.5 * third);
  }
  return penalty;
}

std::vector<std::array<double, 4>> CubicSplines::polynomials(
    std::span<const double> coefficients) const {
  const auto value = [&](std::size_t piece, double u) {
    const auto b = values(piece, u);
    double sum = 0.0;
    for (std::size_t r = 0; r < 4; ++r) sum += b[r] * coefficients[piece + r];
    return sum;
  };
  const auto bend = [&](std::size_t at) {
    const auto d = second_derivative(at);
    return d[0] * coefficients[at] + d[1] * coefficients[at + 1] + d[2] * coefficients[at + 2];
  };
  std::vector<std::array<double, 4>> result(pieces_);
  for (std::size_t piece = 0; piece < pieces_; ++piece) {
    const double a = knot(piece + 3), b = knot(piece + 4), h = b - a;
    const double f = value(piece, a), g = value(piece, b);
    const double bend_a = bend(piece), bend_b = bend(piece + 1);
    result[piece] = {f, (g - f) / h - h / 6.0 * (2.0 * bend_a + bend_b), 0.5 * bend_a,
                     (bend_b - bend_a) / (6.0 * h)};
  }
  return result;
}

}  // namespace neyman::calibration
