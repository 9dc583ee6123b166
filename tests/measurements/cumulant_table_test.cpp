#include "measurements/cumulant_table.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "neyman/core/random.hpp"

namespace neyman::detail {
namespace {

using Plain = double (*)(std::span<const double>);

std::vector<double> at_each(Plain of, const Matrix& points) {
  std::vector<double> out;
  for (std::size_t i = 0; i < points.rows(); ++i) out.push_back(of(points.row(i)));
  return out;
}

CumulantTable table_of(Plain of, const Matrix& coordinates, const std::vector<double>& low,
                       const std::vector<double>& high, Plain rough = nullptr) {
  const auto lattice = [of, rough](std::span<const double> centre, const Matrix& steps,
                                   std::span<const double> nodes, bool roughly) {
    const std::size_t n = centre.size(), size = nodes.size();
    std::size_t count = 1;
    for (std::size_t i = 0; i < n; ++i) count *= size;
    Matrix points(count, n);
    for (std::size_t row = 0; row < count; ++row) {
      for (std::size_t k = 0; k < n; ++k) points(row, k) = centre[k];
      for (std::size_t i = n, rest = row; i-- > 0; rest /= size)
        for (std::size_t k = 0; k < n; ++k) points(row, k) += nodes[rest % size] * steps(i, k);
    }
    return at_each(roughly ? rough : of, points);
  };
  CumulantTable::Config config;
  config.rough = rough != nullptr;
  return CumulantTable(
      coordinates, low, high, lattice,
      [of, rough](const Matrix& points, bool roughly) {
        return at_each(roughly ? rough : of, points);
      },
      config);
}

/// log of the mean of exp(b·f) over some f: what the table is for.
template <std::size_t n>
double log_mean(std::span<const double> b) {
  double sum = 0.0;
  for (int j = 0; j < 40; ++j) {
    double exponent = 0.0;
    for (std::size_t k = 0; k < n; ++k)
      exponent += b[k] * std::sin(1.7 * j + 0.9 * static_cast<double>(k * j * j));
    sum += std::exp(exponent);
  }
  return std::log(sum / 40.0);
}

/// Values and derivatives at random points of the box, the latter against differences.
template <std::size_t n>
void expect_good(const CumulantTable& table, Plain of, const Matrix& inverse, double low,
                 double high) {
  CumulantTable::Jet at, up, down;
  for (std::uint64_t i = 0; i < 50; ++i) {
    RandomStream random(3, "points", i);
    std::vector<double> b(n, 0.0);
    for (std::size_t c = 0; c < n; ++c) {
      const double beta = low + (high - low) * (0.001 + 0.998 * random.uniform());
      for (std::size_t k = 0; k < n; ++k) b[k] += inverse(k, c) * beta;
    }
    ASSERT_TRUE(table.evaluate(b, at));
    EXPECT_NEAR(at.value, of(b), 2e-8);
    for (std::size_t k = 0; k < n; ++k) {
      const double step = 1e-5;
      auto above = b, below = b;
      above[k] += step;
      below[k] -= step;
      EXPECT_NEAR(at.first[k], (of(above) - of(below)) / (2.0 * step), 1e-6);
      ASSERT_TRUE(table.evaluate(above, up) && table.evaluate(below, down));
      for (std::size_t l = 0; l < n; ++l)
        EXPECT_NEAR(at.second[k][l], (up.first[l] - down.first[l]) / (2.0 * step), 1e-3);
    }
  }
}

TEST(CumulantTable, IsTheFunctionInUpToThreeDimensions) {
  // The cells are halved: over the whole box a polynomial of this degree is off by far more.
  const auto one = table_of(log_mean<1>, Matrix(1, 1, {2.0}), {-40.0}, {40.0});
  expect_good<1>(one, log_mean<1>, Matrix(1, 1, {0.5}), -40.0, 40.0);
  const auto two =
      table_of(log_mean<2>, Matrix(2, 2, {1.0, 1.0, 0.0, 2.0}), {-5.0, -5.0}, {5.0, 5.0});
  expect_good<2>(two, log_mean<2>, Matrix(2, 2, {1.0, -0.5, 0.0, 0.5}), -5.0, 5.0);
  const auto three =
      table_of(log_mean<3>, Matrix(3, 3, {1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0}),
               {-2.0, -2.0, -2.0}, {2.0, 2.0, 2.0});
  expect_good<3>(three, log_mean<3>, Matrix(3, 3, {1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0}),
                 -2.0, 2.0);
  CumulantTable::Jet jet;
  EXPECT_TRUE(one.evaluate(std::vector<double>{20.0}, jet));
  EXPECT_FALSE(one.evaluate(std::vector<double>{20.1}, jet));
}

TEST(CumulantTable, ARoughFunctionMakesNoDifferenceToWhatItIs) {
  static int asked = 0;
  const Plain of = [](std::span<const double> b) {
    ++asked;
    return log_mean<1>(b);
  };
  const Plain rough = [](std::span<const double> b) { return 1.0 + log_mean<1>(b); };
  const auto count = [](const CumulantTable& table) {
    asked = 0;
    CumulantTable::Jet jet;
    EXPECT_TRUE(table.evaluate(std::vector<double>{3.3}, jet));
    EXPECT_NEAR(jet.value, log_mean<1>(std::vector<double>{3.3}), 2e-8);
    return asked;
  };
  const Matrix unit(1, 1, {1.0});
  const int without = count(table_of(of, unit, {-40.0}, {40.0})),
            with = count(table_of(of, unit, {-40.0}, {40.0}, rough));
  EXPECT_LT(2 * with, without);
}

TEST(CumulantTable, GivesNoAnswerWhereNoCellIsGood) {
  // A slope that jumps at a third, never an edge of a cell.
  const auto of = [](std::span<const double> b) { return std::abs(b[0] - 1.0 / 3.0); };
  const auto table = table_of(of, Matrix(1, 1, {1.0}), {0.0}, {1.0});
  CumulantTable::Jet jet;
  EXPECT_FALSE(table.evaluate(std::vector<double>{1.0 / 3.0}, jet));
  ASSERT_TRUE(table.evaluate(std::vector<double>{0.6}, jet));
  EXPECT_NEAR(jet.value, 0.6 - 1.0 / 3.0, 1e-12);
  EXPECT_NEAR(jet.first[0], 1.0, 1e-9);
  EXPECT_FALSE(table.evaluate(std::vector<double>{std::nan("")}, jet));
}

}  // namespace
}  // namespace neyman::detail
