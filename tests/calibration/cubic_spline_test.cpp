#include "calibration/cubic_spline.hpp"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <vector>

#include "calibration/banded.hpp"
#include "neyman/core/random.hpp"

namespace neyman::calibration {
namespace {

const std::vector<double> breaks{-2.0, -1.3, -1.0, 0.2, 0.9, 2.5};

std::vector<double> random_coefficients(std::size_t size) {
  std::vector<double> c(size);
  RandomStream(1, "spline").fill_normal(c);
  return c;
}

TEST(CubicSplines, SumToOneAndReproduceLines) {
  const CubicSplines splines(breaks);
  const auto xi = splines.greville();
  for (double u = -2.0; u <= 2.5; u += 0.05) {
    const std::size_t piece = find_piece(breaks, u);
    const auto b = splines.values(piece, u);
    const auto d = splines.slopes(piece, u);
    double one = 0.0, line = 0.0, zero = 0.0, slope = 0.0;
    for (std::size_t r = 0; r < 4; ++r) {
      one += b[r];
      line += b[r] * xi[piece + r];
      zero += d[r];
      slope += d[r] * xi[piece + r];
    }
    EXPECT_NEAR(one, 1.0, 1e-12);
    EXPECT_NEAR(line, u, 1e-12);
    EXPECT_NEAR(zero, 0.0, 1e-12);
    EXPECT_NEAR(slope, 1.0, 1e-12);
  }
}

TEST(CubicSplines, PolynomialsEqualTheBasisAndAreSmooth) {
  const CubicSplines splines(breaks);
  const auto c = random_coefficients(splines.size());
  const auto pieces = splines.polynomials(c);
  for (double u = -2.0; u < 2.5; u += 0.01) {
    const std::size_t piece = find_piece(breaks, u);
    const auto b = splines.values(piece, u);
    double expected = 0.0;
    for (std::size_t r = 0; r < 4; ++r) expected += b[r] * c[piece + r];
    const double v = u - breaks[piece];
    const auto& p = pieces[piece];
    EXPECT_NEAR(p[0] + v * (p[1] + v * (p[2] + v * p[3])), expected, 1e-11);
  }
  for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
    const double h = breaks[i + 1] - breaks[i];
    const auto& p = pieces[i];
    EXPECT_NEAR(p[1] + h * (2 * p[2] + 3 * h * p[3]), pieces[i + 1][1], 1e-10);
    EXPECT_NEAR(p[2] + 3 * h * p[3], pieces[i + 1][2], 1e-10);
  }
}

TEST(CubicSplines, PenaltyIsTheIntegralOfTheSquaredBend) {
  const CubicSplines splines(breaks);
  const auto c = random_coefficients(splines.size());
  const auto pieces = splines.polynomials(c);
  double integral = 0.0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const double h = breaks[i + 1] - breaks[i];
    const double a = 2.0 * pieces[i][2], b = a + 6.0 * pieces[i][3] * h;
    integral += h / 3.0 * (a * a + a * b + b * b);
  }
  const Banded s = splines.curvature_penalty();
  double quadratic = 0.0;
  for (std::size_t i = 0; i < s.size(); ++i) {
    for (std::size_t j = 0; j < s.size(); ++j) quadratic += c[i] * s.element(i, j) * c[j];
  }
  EXPECT_NEAR(quadratic / integral, 1.0, 1e-11);
}

TEST(BandedCholesky, AgreesWithDenseAlgebra) {
  constexpr std::size_t n = 9;
  RandomStream random(2, "banded");
  Banded banded(n);
  Eigen::MatrixXd dense = Eigen::MatrixXd::Zero(n, n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i >= 3 ? i - 3 : 0; j <= i; ++j) {
      banded.at(i, j) = i == j ? 6.0 + random.uniform() : random.normal();
      dense(i, j) = dense(j, i) = banded.at(i, j);
    }
  }
  const BandedCholesky cholesky(banded);
  ASSERT_TRUE(cholesky.exact());
  Eigen::VectorXd x = Eigen::VectorXd::LinSpaced(n, -1.0, 2.0);
  const Eigen::VectorXd expected = dense.llt().solve(x);
  cholesky.solve({x.data(), n});
  EXPECT_LT((x - expected).norm(), 1e-12);
  EXPECT_NEAR(cholesky.log_determinant(), std::log(dense.determinant()), 1e-10);
  const Eigen::MatrixXd inverse = dense.inverse();
  const Banded band = cholesky.inverse_band();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i >= 3 ? i - 3 : 0; j <= i; ++j) {
      EXPECT_NEAR(band.at(i, j), inverse(i, j), 1e-12);
    }
  }
}

TEST(BandedCholesky, SaysWhereAMatrixIsNotPositive) {
  Banded banded(2);
  banded.at(0, 0) = 1.0;
  banded.at(1, 1) = -1.0;
  EXPECT_FALSE(BandedCholesky(banded).exact());
}

}  // namespace
}  // namespace neyman::calibration
