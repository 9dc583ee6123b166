#include "neyman/core/polynomial_basis.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "neyman/core/error.hpp"

namespace neyman {
namespace {

const ParameterSpace plane({{"a", -3, 3, {}}, {"b", 0, 10, {}}});

TEST(PolynomialBasis, CountsTheTerms) {
  EXPECT_EQ(PolynomialBasis(plane, 2).size(), 5u);
  EXPECT_EQ(PolynomialBasis(plane, 4).size(), 14u);
  EXPECT_EQ(PolynomialBasis::count(2, 4), 14u);
  EXPECT_EQ(PolynomialBasis::count(6, 3), 83u);
}

TEST(PolynomialBasis, HasTheKnownPolynomials) {
  const PolynomialBasis basis(plane, 2);
  std::vector<double> values(5);
  basis.values(std::vector{1.5, 2.5}, values);  // u = 0.5, −0.5
  EXPECT_NEAR(values[0], std::sqrt(3.0) * 0.5, 1e-14);
  EXPECT_NEAR(values[1], std::sqrt(3.0) * -0.5, 1e-14);
  EXPECT_NEAR(values[2], std::sqrt(5.0) * (1.5 * 0.25 - 0.5), 1e-14);
  EXPECT_NEAR(values[3], 3.0 * 0.5 * -0.5, 1e-14);
  EXPECT_NEAR(values[4], std::sqrt(5.0) * (1.5 * 0.25 - 0.5), 1e-14);
}

TEST(PolynomialBasis, IsOrthonormalOverTheRanges) {
  const PolynomialBasis basis(plane, 3);
  const std::size_t terms = basis.size(), steps = 200;
  std::vector<double> values(terms), products(terms * terms, 0.0);
  for (std::size_t i = 0; i < steps; ++i)
    for (std::size_t j = 0; j < steps; ++j) {
      const double u = (static_cast<double>(i) + 0.5) / steps;
      const double v = (static_cast<double>(j) + 0.5) / steps;
      basis.values(std::vector{-3 + 6 * u, 10 * v}, values);
      for (std::size_t k = 0; k < terms; ++k)
        for (std::size_t l = 0; l < terms; ++l)
          products[k * terms + l] += values[k] * values[l] / (steps * steps);
    }
  for (std::size_t k = 0; k < terms; ++k)
    for (std::size_t l = 0; l < terms; ++l)
      EXPECT_NEAR(products[k * terms + l], k == l ? 1.0 : 0.0, 2e-3) << k << " " << l;
}

TEST(PolynomialBasis, DerivativesAgreeWithDifferences) {
  const ParameterSpace space({{"a", -1, 2, {}}, {"b", 3, 4, {}}, {"c", -5, 5, {}}});
  const PolynomialBasis basis(space, 5);
  const std::vector<double> point{0.3, 3.9, -4.2};
  std::vector<double> values(basis.size()), slopes(basis.size() * 3), curves(basis.size() * 9);
  basis.values(point, values, slopes, curves);
  for (std::size_t p = 0; p < 3; ++p) {
    const double h = 1e-5;
    auto up = point, down = point;
    up[p] += h;
    down[p] -= h;
    std::vector<double> high(basis.size()), low(basis.size()), rises(slopes), falls(slopes);
    basis.values(up, high, rises);
    basis.values(down, low, falls);
    for (std::size_t k = 0; k < basis.size(); ++k) {
      EXPECT_NEAR(slopes[k * 3 + p], (high[k] - low[k]) / (2 * h),
                  1e-6 * (1 + std::abs(slopes[k * 3 + p])));
      for (std::size_t q = 0; q < 3; ++q)
        EXPECT_NEAR(curves[(k * 3 + p) * 3 + q], (rises[k * 3 + q] - falls[k * 3 + q]) / (2 * h),
                    1e-6 * (1 + std::abs(curves[(k * 3 + p) * 3 + q])));
    }
  }
}

TEST(PolynomialBasis, RefusesWhatDoesNotFit) {
  EXPECT_THROW(PolynomialBasis(plane, 0), ArgumentError);
  EXPECT_THROW(PolynomialBasis(ParameterSpace(), 2), ArgumentError);
  std::vector<double> values(4);
  EXPECT_THROW(PolynomialBasis(plane, 2).values(std::vector{0.0, 1.0}, values), ArgumentError);
}

}  // namespace
}  // namespace neyman
