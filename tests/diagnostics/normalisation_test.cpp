#include "neyman/diagnostics/normalisation.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "diagnostics/problems.hpp"
#include "neyman/core/error.hpp"

namespace neyman {
namespace {

using testing::ShiftedNormals;

TEST(Normalisation, MeanErrorAndEffectiveSizeByHand) {
  // r = 1, 2, 3: mean 2, standard error of the mean √(2/3)/√3, effective size 36/14.
  const std::vector<double> log_ratios = {0.0, std::log(2.0), std::log(3.0)};
  RatioEvents events;
  events.denominator_log_ratios = log_ratios;
  const auto found = diagnose_normalisation(events);
  EXPECT_NEAR(*found.number("mean"), 2.0, 1e-12);
  EXPECT_NEAR(*found.number("error"), std::sqrt(2.0 / 9.0), 1e-12);
  EXPECT_NEAR(*found.number("effective_size"), 36.0 / 14.0, 1e-12);
  EXPECT_EQ(found.verdict, Diagnostic::Verdict::no_power);
  EXPECT_NE(found.note.find("2.6 events"), std::string::npos);
  // Event weights that are repetitions, but for the error's small-sample part.
  const std::vector<double> twice = {0.0, std::log(2.0)}, weights = {1.0, 2.0};
  events.denominator_log_ratios = twice;
  events.denominator_weights = weights;
  EXPECT_NEAR(*diagnose_normalisation(events).number("mean"), 5.0 / 3.0, 1e-12);
}

TEST(Normalisation, FalseAlarmsWithExactRatiosAreAsStated) {
  // 2000 repetitions: at 5 % the count is 100 ± 10, and at 1 % 20 ± 4.5; the bounds are four
  // standard deviations, with room for the skewness of heavy weights (width 1.5: up to 7 %).
  for (const double distance : {0.5, 1.0, 1.5}) {
    std::size_t five = 0, one = 0;
    for (std::uint64_t seed = 0; seed < 2000; ++seed) {
      const ShiftedNormals problem(seed, 400, distance);
      const double p = *diagnose_normalisation(problem.events(), {.tolerance = 0.0}).p_value;
      five += p < 0.05;
      one += p < 0.01;
    }
    EXPECT_GT(five, 60u) << distance;
    EXPECT_LT(five, distance > 1.0 ? 180u : 140u) << distance;
    EXPECT_LT(one, distance > 1.0 ? 55u : 38u) << distance;
  }
}

TEST(Normalisation, AnOffsetFails) {
  ShiftedNormals problem(1, 50000, 1.0);
  EXPECT_EQ(diagnose_normalisation(problem.events()).verdict, Diagnostic::Verdict::pass);
  for (const double offset : {-0.06, 0.06, 5.0, -300.0}) {
    problem.learn([&](std::span<const double>, double log_ratio) { return log_ratio + offset; });
    const auto found = diagnose_normalisation(problem.events());
    EXPECT_EQ(found.verdict, Diagnostic::Verdict::fail) << offset;
    EXPECT_EQ(found.statistic > 0.0, offset > 0.0);
  }
  // Within the tolerance it passes.
  problem.learn([&](std::span<const double>, double log_ratio) { return log_ratio + 0.05; });
  EXPECT_EQ(diagnose_normalisation(problem.events(), {.tolerance = 0.06}).verdict,
            Diagnostic::Verdict::pass);
}

TEST(Normalisation, FarApartHypothesesWarn) {
  const ShiftedNormals problem(2, 1000, 6.0);
  const auto found = diagnose_normalisation(problem.events());
  EXPECT_NE(found.verdict, Diagnostic::Verdict::pass);
  EXPECT_FALSE(found.note.empty());
}

TEST(Normalisation, ExtremeAndWrongValues) {
  const std::vector<double> huge = {700.0, 701.0, -1e5}, none, bad = {NAN};
  RatioEvents events;
  events.denominator_log_ratios = huge;
  EXPECT_TRUE(std::isfinite(*diagnose_normalisation(events).p_value));
  const std::vector<double> ones(100, 0.0);
  events.denominator_log_ratios = ones;
  EXPECT_EQ(diagnose_normalisation(events).verdict, Diagnostic::Verdict::pass);
  events.denominator_log_ratios = none;
  EXPECT_THROW(diagnose_normalisation(events), ArgumentError);
  events.denominator_log_ratios = bad;
  EXPECT_THROW(diagnose_normalisation(events), ArgumentError);
}

}  // namespace
}  // namespace neyman
