#include "neyman/diagnostics/closure.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "diagnostics/problems.hpp"
#include "neyman/core/error.hpp"

namespace neyman {
namespace {

using testing::ShiftedNormals;

TEST(Closure, FalseAlarmsWithExactRatiosAreAsStated) {
  // 1000 repetitions: 50 ± 7 at 5 %, 10 ± 3.2 at 1 %. With heavy weights (width 1.5, effective
  // size 190 of 1500) the rate is up to twice the stated one, which the last bounds allow.
  for (const double distance : {0.5, 1.0, 1.5}) {
    std::size_t five = 0, one = 0;
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
      const ShiftedNormals problem(seed, 1500, distance);
      const auto found = diagnose_closure(problem.events(), {.tolerance = 0.0});
      five += *found.p_value < 0.05;
      one += *found.p_value < 0.01;
    }
    EXPECT_GT(five, 25u) << distance;
    EXPECT_LT(five, distance > 1.0 ? 110u : 85u) << distance;
    EXPECT_LT(one, distance > 1.0 ? 35u : 25u) << distance;
  }
}

TEST(Closure, WrongRatiosFailInTheRightFeature) {
  ShiftedNormals problem(1, 30000, 1.0);
  EXPECT_EQ(diagnose_closure(problem.events()).verdict, Diagnostic::Verdict::pass);
  problem.learn_slope(0.9);
  auto events = problem.events();
  events.feature_names = {"mass", "angle"};
  auto found = diagnose_closure(events);
  EXPECT_EQ(found.verdict, Diagnostic::Verdict::fail);
  EXPECT_LT(*found.number("p_value:mass"), 1e-3);
  EXPECT_GT(*found.number("p_value:angle"), 1e-3);
  EXPECT_EQ(found.panels[1].title, "angle");

  problem.learn([](std::span<const double> x, double log_ratio) { return log_ratio + 0.2 * x[1]; });
  found = diagnose_closure(problem.events());
  EXPECT_EQ(found.verdict, Diagnostic::Verdict::fail);
  EXPECT_GT(*found.number("p_value:x0"), 1e-3);
  EXPECT_LT(*found.number("p_value:x1"), 1e-3);
}

TEST(Closure, AnOffsetIsLeftToTheNormalisation) {
  ShiftedNormals problem(2, 5000, 1.0);
  const auto before = diagnose_closure(problem.events());
  problem.learn([](std::span<const double>, double log_ratio) { return log_ratio + 400.0; });
  EXPECT_NEAR(*diagnose_closure(problem.events()).p_value, *before.p_value, 1e-6);
}

TEST(Closure, HistogramIsThatOfTheNumerator) {
  const ShiftedNormals problem(3, 20000, 0.5);
  const auto found = diagnose_closure(problem.events());
  const auto& steps = found.panels[0].series[0];
  ASSERT_EQ(steps.x.size(), steps.y.size() + 1);
  double sum = 0.0;
  for (std::size_t b = 0; b < steps.y.size(); ++b) {
    const double share = steps.y[b] * (steps.x[b + 1] - steps.x[b]);
    EXPECT_NEAR(share, 1.0 / static_cast<double>(steps.y.size()), 1e-3);
    sum += share;
  }
  EXPECT_NEAR(sum, 1.0, 1e-9);
}

TEST(Closure, HardCases) {
  // A constant feature, one of few values, and samples too small for any bin.
  Matrix x0(200, 2), x1(200, 2);
  RandomStream random(4, "closure-test");
  for (std::size_t i = 0; i < 200; ++i) {
    x0(i, 0) = x1(i, 0) = 5.0;
    x0(i, 1) = static_cast<double>(random.below(3));
    x1(i, 1) = static_cast<double>(random.below(3));
  }
  const std::vector<double> log_ratios(200, 0.0);
  RatioEvents events;
  events.numerator = x0;
  events.denominator = x1;
  events.denominator_log_ratios = log_ratios;
  const auto found = diagnose_closure(events);
  EXPECT_EQ(*found.number("p_value:x0"), 1.0);
  EXPECT_GT(*found.p_value, 1e-3);
  events.numerator = x0.rows(0, 3);
  events.denominator = x1.rows(0, 3);
  events.denominator_log_ratios = events.denominator_log_ratios.first(3);
  const auto tiny = diagnose_closure(events);
  EXPECT_FALSE(tiny.p_value.has_value());
  EXPECT_EQ(tiny.verdict, Diagnostic::Verdict::no_power);
  events.denominator = x1;
  EXPECT_THROW(diagnose_closure(events), ArgumentError);
}

}  // namespace
}  // namespace neyman
