#include "neyman/diagnostics/reweighting.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "diagnostics/problems.hpp"
#include "neyman/classifiers/mlp.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman {
namespace {

using testing::ShiftedNormals;

using testing::quick_reweighting;

double compare(double a, double b) { return a < b ? 1.0 : (a == b ? 0.5 : 0.0); }

TEST(AreaUnderCurve, IsTheSumOverAllPairs) {
  RandomStream random(1, "auc-test");
  std::vector<double> z0, z1, u, w;
  for (int i = 0; i < 40; ++i) {
    z0.push_back(std::round(3.0 * random.normal()));  // with ties
    u.push_back(random.exponential());
  }
  for (int j = 0; j < 30; ++j) {
    z1.push_back(std::round(3.0 * random.normal() + 1.0));
    w.push_back(j == 3 ? 0.0 : random.exponential());
  }
  double area = 0.0, total0 = 0.0, total1 = 0.0;
  std::vector<double> v0(z0.size(), 0.0), v1(z1.size(), 0.0);
  for (const double x : u) total0 += x;
  for (const double x : w) total1 += x;
  for (std::size_t i = 0; i < z0.size(); ++i)
    for (std::size_t j = 0; j < z1.size(); ++j) {
      v0[i] += w[j] / total1 * compare(z0[i], z1[j]);
      v1[j] += u[i] / total0 * compare(z0[i], z1[j]);
      area += u[i] / total0 * w[j] / total1 * compare(z0[i], z1[j]);
    }
  const auto found = area_under_curve(z0, z1, u, w);
  EXPECT_NEAR(found.area, area, 1e-13);
  double variance0 = 0.0, variance1 = 0.0;
  for (std::size_t i = 0; i < z0.size(); ++i)
    variance0 += std::pow(u[i] / total0 * (v0[i] - area), 2);
  for (std::size_t j = 0; j < z1.size(); ++j)
    variance1 += std::pow(w[j] / total1 * (v1[j] - area), 2);
  // The event of weight zero is as if absent.
  EXPECT_NEAR(found.error, std::sqrt(variance0 * 40.0 / 39.0 + variance1 * 29.0 / 28.0), 1e-13);
}

TEST(AreaUnderCurve, WithoutWeightsIsDeLongs) {
  // Four against three events, by hand: pairs won 3 + 3 + 2 + 0.5.
  const std::vector<double> z0 = {0.0, 1.0, 2.5, 5.0}, z1 = {2.0, 3.0, 5.0};
  const auto found = area_under_curve(z0, z1);
  EXPECT_NEAR(found.area, 8.5 / 12.0, 1e-15);
  EXPECT_NEAR(area_under_curve(z1, z0).area, 1.0 - found.area, 1e-15);
  EXPECT_NEAR(area_under_curve(z0, z1, {}, std::vector<double>{7.0, 7.0, 7.0}).error, found.error,
              1e-15);
  // Extremes.
  const std::vector<double> low = {0.0, 0.0}, high = {1.0, 1.0};
  EXPECT_EQ(area_under_curve(low, high).area, 1.0);
  EXPECT_EQ(area_under_curve(low, high).p_value(), 0.0);
  EXPECT_EQ(area_under_curve(low, low).area, 0.5);
  EXPECT_EQ(area_under_curve(low, low).p_value(), 1.0);
  EXPECT_EQ(area_under_curve(std::vector<double>{1.0}, std::vector<double>{2.0}).area, 1.0);
}

TEST(AreaUnderCurve, FalseAlarmsWithExactRatiosAreAsStated) {
  // 1000 repetitions: at a level of 5 % the count is 50 ± 7; 3 % to 7.5 % is ± 2.9 or more
  // standard deviations. At 1 % it is 10 ± 3.1; more than 22 has a probability below 10⁻³. The
  // weights are log-normal of width 0.5, 1 and 1.5 (effective sizes of 390, 190 and 75 of 500).
  for (const double distance : {0.5, 1.0, 1.5}) {
    std::size_t five = 0, one = 0;
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
      const ShiftedNormals problem(seed, 500, distance);
      std::vector<double> w;
      for (const double value : problem.denominator_exact) w.push_back(std::exp(value));
      const double p =
          area_under_curve(problem.numerator.column(0), problem.denominator.column(0), {}, w)
              .p_value();
      five += p < 0.05;
      one += p < 0.01;
    }
    EXPECT_GT(five, 29u) << distance;
    EXPECT_LT(five, 76u) << distance;
    EXPECT_LE(one, 22u) << distance;
  }
}

TEST(RocCurve, GoesFromCornerToCornerAboveItsArea) {
  const ShiftedNormals problem(3, 2000, 1.0);
  const auto z0 = problem.numerator.column(0), z1 = problem.denominator.column(0);
  const auto curve = roc_curve(z0, z1, {}, {}, 200);
  EXPECT_LE(curve.x.size(), 202u);
  EXPECT_EQ(curve.x.front(), 0.0);
  EXPECT_EQ(curve.y.front(), 0.0);
  EXPECT_NEAR(curve.x.back(), 1.0, 1e-12);
  EXPECT_NEAR(curve.y.back(), 1.0, 1e-12);
  double area = 0.0;
  for (std::size_t i = 1; i < curve.x.size(); ++i) {
    EXPECT_GE(curve.x[i], curve.x[i - 1]);
    EXPECT_GE(curve.y[i], curve.y[i - 1]);
    area += 0.5 * (curve.x[i] - curve.x[i - 1]) * (curve.y[i] + curve.y[i - 1]);
  }
  EXPECT_NEAR(area, area_under_curve(z0, z1).area, 1e-3);
}

TEST(Reweighting, ExactRatiosPass) {
  // 60 runs with trained classifiers and tolerance 0: p < 0.05 in 3 ± 1.7 of them, and in more
  // than 10 with a probability of 2e-4; p < 0.001 in any with one of 6 %, in two with 0.2 %.
  std::size_t five = 0, thousandth = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const ShiftedNormals problem(seed, 1000, 1.0);
    auto config = quick_reweighting(seed);
    config.tolerance = 0.0;
    const auto found = diagnose_reweighting(problem.events(), config);
    five += *found.p_value < 0.05;
    thousandth += *found.p_value < 1e-3;
    EXPECT_TRUE(found.note.empty());
    EXPECT_GT(*found.number("control_area"), 0.7);  // Φ(1/√2) = 0.76
  }
  EXPECT_LE(five, 10u);
  EXPECT_LE(thousandth, 1u);
}

TEST(Reweighting, WrongRatiosFail) {
  ShiftedNormals problem(5, 60000, 1.0);
  problem.learn_slope(0.9);
  auto found = diagnose_reweighting(problem.events(), quick_reweighting(1));
  EXPECT_EQ(found.verdict, Diagnostic::Verdict::fail);
  EXPECT_NEAR(found.statistic, 0.528, 0.02);  // Φ(0.1/√2)

  // A wrong shape in the feature that says nothing, and no reweighting at all.
  problem.learn(
      [](std::span<const double> x, double log_ratio) { return log_ratio + 0.2 * x[1] * x[1]; });
  EXPECT_EQ(diagnose_reweighting(problem.events(), quick_reweighting(2)).verdict,
            Diagnostic::Verdict::fail);
  problem.learn([](std::span<const double>, double) { return 0.0; });
  EXPECT_EQ(diagnose_reweighting(problem.events(), quick_reweighting(3)).verdict,
            Diagnostic::Verdict::fail);
  // A factor is left to the normalisation.
  problem.learn([](std::span<const double>, double log_ratio) { return log_ratio + 500.0; });
  EXPECT_EQ(diagnose_reweighting(problem.events(), quick_reweighting(4)).verdict,
            Diagnostic::Verdict::pass);
}

TEST(Reweighting, SaysWhereItHasNoPower) {
  const ShiftedNormals problem(6, 2000, 0.0);
  const auto found = diagnose_reweighting(problem.events());
  EXPECT_EQ(found.verdict, Diagnostic::Verdict::no_power);
  EXPECT_NE(found.note.find("no power"), std::string::npos);
}

TEST(Reweighting, FigureHasTheControlAndTheExactCurve) {
  ShiftedNormals problem(7, 2000, 1.0);
  problem.learn_slope(0.5);
  auto events = problem.events();
  events.exact_log_ratios = problem.denominator_exact;
  auto config = quick_reweighting(1);
  const auto found = diagnose_reweighting(events, config);
  ASSERT_EQ(found.panels.size(), 1u);
  ASSERT_EQ(found.panels[0].series.size(), 4u);
  EXPECT_EQ(found.panels[0].series[3].name, "weighted by the exact r");
  EXPECT_LT(std::abs(*found.number("exact_area") - 0.5), 5.0 * *found.number("exact_error"));
  EXPECT_GT(found.statistic, *found.number("exact_area"));
  // The same on any number of threads.
  set_threads(1);
  EXPECT_EQ(diagnose_reweighting(events, config).statistic, found.statistic);
  set_threads(0);
}

TEST(Reweighting, SaysWhatIsWrong) {
  const ShiftedNormals problem(8, 30, 1.0);
  auto events = problem.events();
  events.denominator_log_ratios = events.denominator_log_ratios.first(5);
  EXPECT_THROW(diagnose_reweighting(events), ArgumentError);
  const ShiftedNormals few(8, 10, 1.0);
  EXPECT_THROW(diagnose_reweighting(few.events()), ArgumentError);
  EXPECT_THROW(area_under_curve({}, std::vector<double>{1.0}), ArgumentError);
  EXPECT_THROW(area_under_curve(std::vector<double>{NAN}, std::vector<double>{1.0}), ArgumentError);
  EXPECT_THROW(area_under_curve(std::vector<double>{1.0}, std::vector<double>{1.0},
                                std::vector<double>{0.0}),
               ArgumentError);
}

}  // namespace
}  // namespace neyman
