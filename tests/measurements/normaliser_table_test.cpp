#include "measurements/normaliser_table.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "neyman/core/random.hpp"

namespace neyman::detail {
namespace {

using Axis = NormaliserTable::Axis;

NormaliserTable::Function each(double (*of)(std::span<const double>)) {
  return [of](const Matrix& points) {
    std::vector<double> out;
    for (std::size_t i = 0; i < points.rows(); ++i) out.push_back(of(points.row(i)));
    return out;
  };
}

/// Values at random points of the box, and derivatives against differences.
void expect_good(const NormaliserTable& table, const std::vector<Axis>& axes,
                 double (*of)(std::span<const double>), double tolerance) {
  const std::size_t n = axes.size();
  LogNormaliser at, up, down;
  for (std::uint64_t i = 0; i < 50; ++i) {
    RandomStream random(3, "points", i);
    std::vector<double> point;
    for (const auto& axis : axes)
      point.push_back(axis.low + (axis.high - axis.low) * (0.001 + 0.998 * random.uniform()));
    ASSERT_TRUE(table.evaluate(point, at));
    EXPECT_NEAR(at.value, of(point), tolerance);
    for (std::size_t p = 0; p < n; ++p) {
      const double step = 1e-5;
      auto above = point, below = point;
      above[p] += step;
      below[p] -= step;
      ASSERT_TRUE(table.evaluate(above, up) && table.evaluate(below, down));
      EXPECT_NEAR(at.first[p], (up.value - down.value) / (2.0 * step), 1e-6);
      for (std::size_t q = 0; q < n; ++q)
        EXPECT_NEAR(at.second[p * n + q], (up.first[q] - down.first[q]) / (2.0 * step), 1e-4);
    }
  }
}

TEST(NormaliserTable, OneParameterWithBreaks) {
  // |α|³ has a third derivative that jumps at 0.
  const auto of = [](std::span<const double> x) {
    return std::pow(std::abs(x[0]), 3) + std::exp(0.3 * x[0]);
  };
  const std::vector<Axis> axes{{-3.0, 2.0, 0.5, {-7.0, 0.0}}};
  const auto table = NormaliserTable::make(axes, each(of), {});
  ASSERT_TRUE(table);
  expect_good(*table, axes, of, 1e-9);
  LogNormaliser at;
  EXPECT_TRUE(table->evaluate(std::vector<double>{-3.0}, at));
  EXPECT_TRUE(table->evaluate(std::vector<double>{2.0}, at));
  EXPECT_FALSE(table->evaluate(std::vector<double>{2.1}, at));
}

TEST(NormaliserTable, CellsThatAreNotGoodGiveNoAnswer) {
  // |x|, with a jump of its slope that it is not told of: at a third, never an edge of a cell.
  const auto of = [](std::span<const double> x) { return std::abs(x[0] - 1.0 / 3.0); };
  const auto table = NormaliserTable::make({{0.0, 1.0, 0.9, {}}}, each(of), {});
  ASSERT_TRUE(table);
  LogNormaliser at;
  EXPECT_FALSE(table->evaluate(std::vector<double>{1.0 / 3.0}, at));
  ASSERT_TRUE(table->evaluate(std::vector<double>{0.6}, at));
  EXPECT_NEAR(at.value, 0.6 - 1.0 / 3.0, 1e-12);
  EXPECT_NEAR(at.first[0], 1.0, 1e-9);
  // Not at all where the anchor is there.
  EXPECT_FALSE(NormaliserTable::make({{0.0, 1.0, 1.0 / 3.0, {}}}, each(of), {}));
}

TEST(NormaliserTable, SomeParametersTogether) {
  const auto of = [](std::span<const double> x) {
    return std::log(1.0 + std::exp(0.4 * x[0] * x[1] + 0.3 * x[2]) + x[1] * x[1]);
  };
  const std::vector<Axis> axes{{-1.0, 1.0, 0.0, {}}, {-2.0, 1.0, 0.2, {}}, {0.0, 3.0, 1.0, {}}};
  const auto table = NormaliserTable::make(axes, each(of), {});
  ASSERT_TRUE(table);
  expect_good(*table, axes, of, 1e-7);
  const auto four = [](std::span<const double> x) {
    return std::exp(0.3 * x[0] * x[3]) + x[0] * x[1] * x[2] * x[3];
  };
  const std::vector<Axis> more(4, {-1.0, 1.0, 0.1, {}});
  const auto of_four = NormaliserTable::make(more, each(four), {});
  ASSERT_TRUE(of_four);
  expect_good(*of_four, more, four, 1e-6);
}

TEST(NormaliserTable, MoreParametersByPairsOrNotAtAll) {
  std::vector<Axis> axes(5, {-1.0, 1.0, 0.0, {}});
  axes[2].breaks = {0.0};
  const auto pairs = [](std::span<const double> x) {
    double sum = 2.0 + std::pow(std::abs(x[2]), 3);
    for (std::size_t p = 0; p < 5; ++p)
      for (std::size_t q = 0; q < p; ++q)
        sum += std::sin(x[p] + 0.3 * static_cast<double>(p + q) * x[q]);
    return sum;
  };
  const auto table = NormaliserTable::make(axes, each(pairs), {});
  ASSERT_TRUE(table);
  expect_good(*table, axes, pairs, 1e-6);
  const auto all = [](std::span<const double> x) { return x[0] * x[1] * x[2] + x[3] * x[4]; };
  EXPECT_FALSE(NormaliserTable::make(axes, each(all), {}));
}

}  // namespace
}  // namespace neyman::detail
