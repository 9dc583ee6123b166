#include "neyman/calibration/kde.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "calibration/problems.hpp"
#include "neyman/core/error.hpp"

namespace neyman {
namespace {

using namespace testing;

TEST(Kde, EqualsTheSumOverAllEvents) {
  // In t = asinh((z − c)/s) with the calibrator's own bandwidth, event by event.
  const Scores scores = draw_scores(1, 4000, 1.0);
  KdeCalibrator calibrator;
  calibrator.fit(scores.set());
  double mean = 0.0, square = 0.0;
  for (const auto* side : {&scores.numerator, &scores.denominator}) {
    for (const double z : *side) mean += z / 8000.0;
  }
  for (const auto* side : {&scores.numerator, &scores.denominator}) {
    for (const double z : *side) square += (z - mean) * (z - mean) / 8000.0;
  }
  const double scale = std::sqrt(square), h = calibrator.bandwidth();
  const auto t = [&](double z) { return std::asinh((z - mean) / scale); };
  const auto density = [&](const std::vector<double>& side, double z) {
    double sum = 0.0;
    for (const double event : side) {
      const double d = (t(z) - t(event)) / h;
      sum += std::exp(-0.5 * d * d);
    }
    return sum;
  };
  for (const double z : {-1.0, -0.3, 0.0, 0.4, 1.1}) {
    const double expected =
        std::log(density(scores.numerator, z)) - std::log(density(scores.denominator, z));
    // Binning, and two events of prior among a thousand.
    EXPECT_NEAR(calibrator.log_ratios(Logits{z})[0], expected, 5e-3) << z;
  }
}

TEST(Kde, FindsTheExactRatio) {
  const Scores scores = draw_scores(2, 100000, 1.0);
  KdeCalibrator by_likelihood, by_rule({KdeCalibrator::Bandwidth::silverman, 1.0});
  by_likelihood.fit(scores.set());
  by_rule.fit(scores.set());
  EXPECT_LT(deviation(by_likelihood, logit_grid(0.8)).mean, 0.04);
  EXPECT_LT(deviation(by_rule, logit_grid(0.8)).mean, 0.06);
}

TEST(Kde, NoProbabilityLeaksAtAnEdge) {
  // Scores clipped at ±1, with events piled up there: the ratio at the edge is that of the pile.
  const auto clip = [](double t) { return std::clamp(t, -1.0, 1.0); };
  const Scores scores = draw_scores(3, 50000, 1.0, clip);
  KdeCalibrator calibrator;
  calibrator.fit(scores.set());
  double n0 = 0.0, n1 = 0.0;
  for (const double z : scores.numerator) n0 += z == 1.0 ? 1.0 : 0.0;
  for (const double z : scores.denominator) n1 += z == 1.0 ? 1.0 : 0.0;
  EXPECT_NEAR(calibrator.log_ratios(Logits{1.0})[0], std::log(n0 / n1), 0.1);
}

TEST(Kde, AFarEventCostsNoResolution) {
  Scores scores = draw_scores(4, 20000, 1.0);
  KdeCalibrator without, with;
  without.fit(scores.set());
  scores.numerator[0] = 300.0;
  scores.denominator[0] = -300.0;
  with.fit(scores.set());
  const auto grid = logit_grid(0.8);
  EXPECT_LT(deviation(with, grid).mean, 1.5 * deviation(without, grid).mean + 0.01);
}

TEST(Kde, ErrorsMatchTheSpread) {
  // 200 samples with a small bandwidth, so that bias is small: the sd of the sd is 5 %.
  const KdeCalibrator prototype({KdeCalibrator::Bandwidth::silverman, 0.7});
  const Pulls pulls = measure_pulls(prototype, 200, 2000, 1.0, {-1.0, -0.5, 0.0, 0.5, 1.0});
  EXPECT_NEAR(pulls.sd, 1.0, 0.2);
  EXPECT_NEAR(pulls.within_one, 0.683, 0.08);
}

TEST(Kde, RefusesBadConfiguration) {
  EXPECT_THROW(KdeCalibrator({KdeCalibrator::Bandwidth::silverman, 0.0}), ArgumentError);
}

}  // namespace
}  // namespace neyman
