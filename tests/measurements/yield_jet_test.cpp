#include "measurements/yield_jet.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace neyman::detail {
namespace {

YieldFunction function_of(double (*value)(double, double)) {
  YieldFunction out;
  out.parameters = ParameterSpace({{"a", 0.0, 4.0, {}}, {"b", -1.0, 1.0, {}}});
  out.nominal = {1.0, 0.0};
  out.value = [value](std::span<const double> p) { return value(p[0], p[1]); };
  return out;
}

TEST(YieldJet, PolynomialsAreExactInsideAndAtTheEnds) {
  const auto yield =
      function_of([](double a, double b) { return 3.0 * a * a * b + 2.0 * a + 5.0; });
  for (const auto& point : {std::vector{1.3, 0.2}, std::vector{2.0, -0.5}}) {
    const double a = point[0], b = point[1];
    std::vector<double> first(2), second(4);
    EXPECT_DOUBLE_EQ(yield_jet(yield, point, first, second), yield.value(point));
    EXPECT_NEAR(first[0], 6.0 * a * b + 2.0, 1e-10);
    EXPECT_NEAR(first[1], 3.0 * a * a, 1e-10);
    EXPECT_NEAR(second[0], 6.0 * b, 1e-8);
    EXPECT_NEAR(second[1], 6.0 * a, 1e-8);
    EXPECT_NEAR(second[2], 6.0 * a, 1e-8);
    EXPECT_NEAR(second[3], 0.0, 1e-8);
  }
  // A line has its slope at the ends of its range, too.
  const auto line = function_of([](double a, double) { return 200.0 * a; });
  for (const double end : {0.0, 4.0}) {
    std::vector<double> first(2), second(4);
    EXPECT_DOUBLE_EQ(yield_jet(line, std::vector{end, 1.0}, first, second), 200.0 * end);
    EXPECT_NEAR(first[0], 200.0, 1e-9);
    EXPECT_NEAR(second[0], 0.0, 1e-7);
  }
}

TEST(YieldJet, SmoothFunctionsToAMillionth) {
  const auto yield =
      function_of([](double a, double b) { return std::sqrt(1.0 + a) * std::exp(0.5 * b); });
  const std::vector<double> point = {1.5, 0.3};
  std::vector<double> first(2), second(4);
  yield_jet(yield, point, first, second);
  const double value = std::sqrt(2.5) * std::exp(0.15);
  EXPECT_NEAR(first[0], value / 5.0, 1e-6);
  EXPECT_NEAR(first[1], 0.5 * value, 1e-6);
  EXPECT_NEAR(second[0], -value / 25.0, 1e-6);
  EXPECT_NEAR(second[1], 0.1 * value, 1e-6);
  EXPECT_NEAR(second[3], 0.25 * value, 1e-6);
}

}  // namespace
}  // namespace neyman::detail
