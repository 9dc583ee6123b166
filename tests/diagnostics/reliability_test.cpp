#include "neyman/diagnostics/reliability.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "diagnostics/problems.hpp"
#include "neyman/core/error.hpp"

namespace neyman {
namespace {

using testing::ShiftedNormals;

TEST(Reliability, FalseAlarmsWithExactRatiosAreAsStated) {
  // 1000 repetitions: 50 ± 7 at 5 %, 10 ± 3.2 at 1 %, here ± 4 standard deviations and some room
  // for the approximation by χ².
  for (const double distance : {0.3, 1.0, 3.0}) {
    std::size_t five = 0, one = 0;
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
      const ShiftedNormals problem(seed, 500, distance);
      const double p = *diagnose_reliability(problem.events(), {.tolerance = 0.0}).p_value;
      five += p < 0.05;
      one += p < 0.01;
    }
    EXPECT_GT(five, 22u) << distance;
    EXPECT_LT(five, 85u) << distance;
    EXPECT_LT(one, 27u) << distance;
  }
}

TEST(Reliability, WrongScoresFail) {
  ShiftedNormals problem(1, 50000, 1.5);
  EXPECT_EQ(diagnose_reliability(problem.events()).verdict, Diagnostic::Verdict::pass);
  problem.learn_slope(0.9);
  EXPECT_EQ(diagnose_reliability(problem.events()).verdict, Diagnostic::Verdict::fail);
  problem.learn([](std::span<const double>, double log_ratio) { return log_ratio + 0.1; });
  EXPECT_EQ(diagnose_reliability(problem.events()).verdict, Diagnostic::Verdict::fail);
  problem.learn([](std::span<const double>, double log_ratio) { return std::tanh(log_ratio); });
  EXPECT_EQ(diagnose_reliability(problem.events()).verdict, Diagnostic::Verdict::fail);
}

TEST(Reliability, SidesOfDifferentSizesAndWeights) {
  // Ten times as many denominators, each of weight 3: the shares are those of equal sides.
  const ShiftedNormals many(2, 40000, 1.0), few(3, 4000, 1.0);
  const std::vector<double> weights(40000, 3.0);
  RatioEvents events;
  events.numerator_log_ratios = few.numerator_learned;
  events.denominator_log_ratios = many.denominator_learned;
  events.denominator_weights = weights;
  const auto found = diagnose_reliability(events);
  EXPECT_GT(*found.p_value, 1e-3);  // false with a probability of 10⁻³
  const auto& points = found.panels[0].series[1];
  ASSERT_GT(points.x.size(), 5u);
  for (std::size_t b = 0; b < points.x.size(); ++b) {
    EXPECT_LT(std::abs(points.y[b] - points.x[b]), 5.0 * (points.high[b] - points.y[b]));
    if (b > 0) {
      EXPECT_GT(points.x[b], points.x[b - 1]);
    }
  }
}

TEST(Reliability, HardCases) {
  // Sides that are apart entirely, one event a side, constant scores.
  ShiftedNormals apart(4, 500, 30.0);
  EXPECT_EQ(diagnose_reliability(apart.events()).verdict, Diagnostic::Verdict::pass);
  const std::vector<double> one = {0.3}, constant(200, 0.0), bad = {INFINITY};
  RatioEvents events;
  events.numerator_log_ratios = events.denominator_log_ratios = one;
  EXPECT_TRUE(std::isfinite(*diagnose_reliability(events).p_value));
  events.numerator_log_ratios = events.denominator_log_ratios = constant;
  EXPECT_EQ(diagnose_reliability(events).verdict, Diagnostic::Verdict::pass);
  events.numerator_log_ratios = bad;
  EXPECT_THROW(diagnose_reliability(events), ArgumentError);
  events.numerator_log_ratios = {};
  EXPECT_THROW(diagnose_reliability(events), ArgumentError);
}

}  // namespace
}  // namespace neyman
