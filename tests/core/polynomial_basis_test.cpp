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

const ParameterSpace with_phase({{"a", -1, 2, {}},
                                 {"p", -2, 3, {}, false, true},
                                 {"c", -5, 5, {}}});

TEST(PolynomialBasis, APeriodicParameterHasHarmonics) {
  const ParameterSpace one({{"p", -2, 3, {}, false, true}});
  const PolynomialBasis basis(one, 3);
  ASSERT_EQ(basis.size(), 6u);
  EXPECT_EQ(PolynomialBasis::count(one, 3), 6u);
  std::vector<double> values(6);
  for (const double turns : {0.0, 0.3, 0.99}) {
    basis.values(std::vector{-2.0 + 5.0 * turns}, values);
    for (std::size_t k = 1; k <= 3; ++k) {
      const double phase = 2.0 * 3.141592653589793 * static_cast<double>(k) * turns;
      EXPECT_NEAR(values[2 * k - 2], std::sqrt(2.0) * std::cos(phase), 1e-13);
      EXPECT_NEAR(values[2 * k - 1], std::sqrt(2.0) * std::sin(phase), 1e-13);
      EXPECT_EQ(basis.degree(2 * k - 1), k);
    }
  }
}

TEST(PolynomialBasis, WithAPeriodicParameterItIsOrthonormalAndGoesRound) {
  const PolynomialBasis basis(with_phase, 3);
  const std::size_t terms = basis.size(), steps = 40;
  EXPECT_EQ(terms, PolynomialBasis::count(with_phase, 3));
  EXPECT_EQ(PolynomialBasis::count(plane, 4), PolynomialBasis::count(2, 4));
  std::vector<double> values(terms), round(terms), products(terms * terms, 0.0);
  for (std::size_t i = 0; i < steps; ++i)
    for (std::size_t j = 0; j < steps; ++j)
      for (std::size_t l = 0; l < steps; ++l) {
        const auto at = [](std::size_t k) { return (static_cast<double>(k) + 0.5) / steps; };
        const double phase = -2.0 + 5.0 * at(j);
        basis.values(std::vector{-1.0 + 3.0 * at(i), phase, -5.0 + 10.0 * at(l)}, values);
        basis.values(std::vector{-1.0 + 3.0 * at(i), phase + 15.0, -5.0 + 10.0 * at(l)}, round);
        for (std::size_t k = 0; k < terms; ++k) {
          ASSERT_NEAR(values[k], round[k], 1e-11);
          for (std::size_t m = 0; m < terms; ++m)
            products[k * terms + m] += values[k] * values[m] / std::pow(steps, 3);
        }
      }
  // The midpoint rule is off by 0.01 for the squares of the highest polynomials.
  for (std::size_t k = 0; k < terms; ++k)
    for (std::size_t m = 0; m < terms; ++m)
      EXPECT_NEAR(products[k * terms + m], k == m ? 1.0 : 0.0, 0.03) << k << " " << m;
}

/// All derivatives at a point beside differences.
void check_derivatives(const ParameterSpace& space, const std::vector<double>& point);

TEST(PolynomialBasis, HarmonicsHaveTheirDerivatives) {
  for (const double phase : {-2.0, 0.3, 3.0, 4.1})
    check_derivatives(with_phase, {0.3, phase, -4.2});
}

TEST(PolynomialBasis, DerivativesAgreeWithDifferences) {
  check_derivatives(ParameterSpace({{"a", -1, 2, {}}, {"b", 3, 4, {}}, {"c", -5, 5, {}}}),
                    {0.3, 3.9, -4.2});
}

void check_derivatives(const ParameterSpace& space, const std::vector<double>& point) {
  const PolynomialBasis basis(space, 5);
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
