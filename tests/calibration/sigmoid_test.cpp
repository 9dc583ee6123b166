#include "neyman/calibration/sigmoid.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "calibration/problems.hpp"

namespace neyman {
namespace {

using namespace testing;

// Plain gradient ascent of Platt's likelihood over all events, as slow as it is simple.
std::pair<double, double> reference(const Scores& scores) {
  const double n0 = static_cast<double>(scores.numerator.size());
  const double n1 = static_cast<double>(scores.denominator.size());
  const double odds = std::log(n1 / n0);
  double a = 0.0, b = 0.0;
  for (int step = 0; step < 20000; ++step) {
    double ga = 0.0, gb = 0.0;
    const auto add = [&](double z, double target) {
      const double p = 1.0 / (1.0 + std::exp(-(a + b * z + odds)));
      ga += target - p;
      gb += (target - p) * z;
    };
    for (const double z : scores.numerator) add(z, 1.0 / (n0 + 2.0));
    for (const double z : scores.denominator) add(z, (n1 + 1.0) / (n1 + 2.0));
    a += ga / (n0 + n1);
    b += gb / (n0 + n1);
  }
  return {-a, -b};
}

TEST(Sigmoid, MatchesAPlainMaximisation) {
  Scores scores = draw_scores(1, 150, 1.0);
  scores.denominator.resize(90);
  SigmoidCalibrator calibrator;
  calibrator.fit(scores.set());
  const auto [a, b] = reference(scores);
  // Cells hold single events here except in the middle, where they join close ones.
  EXPECT_NEAR(calibrator.intercept(), a, 1e-3);
  EXPECT_NEAR(calibrator.slope(), b, 1e-3);
}

TEST(Sigmoid, UndoesScaleAndShift) {
  const auto distort = [](double t) { return 2.5 * t + 0.3; };
  const Scores scores = draw_scores(2, 200000, 1.5, distort);
  SigmoidCalibrator calibrator;
  calibrator.fit(scores.set());
  EXPECT_NEAR(calibrator.slope(), -1.0 / 2.5, 0.005);    // sd 0.0013
  EXPECT_NEAR(calibrator.intercept(), 0.3 / 2.5, 0.02);  // sd 0.004
}

TEST(Sigmoid, ErrorsMatchTheSpread) {
  // 300 samples: the sd of the sd is 4 %, false alarm far below 1 %.
  const Pulls pulls =
      measure_pulls(SigmoidCalibrator(), 300, 1000, 1.0, {-1.5, -0.5, 0.0, 0.5, 1.5});
  EXPECT_NEAR(pulls.sd, 1.0, 0.15);
  EXPECT_NEAR(pulls.within_one, 0.683, 0.08);
}

TEST(Sigmoid, SeparatedSidesStayModest) {
  const std::vector<double> a{-1.0, -2.0, -3.0}, b{1.0, 2.0, 3.0};
  SigmoidCalibrator calibrator;
  calibrator.fit({a, b});
  // Platt's targets are 0.2 and 0.8: the fit cannot be surer than that on average.
  const auto log_r = calibrator.log_ratios(Logits{-2.0, 2.0});
  EXPECT_GT(log_r[0], 0.5);
  EXPECT_LT(log_r[0], 3.0);
  EXPECT_NEAR(log_r[0], -log_r[1], 1e-9);
}

}  // namespace
}  // namespace neyman
