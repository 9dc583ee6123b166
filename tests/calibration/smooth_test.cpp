#include "neyman/calibration/smooth.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "calibration/problems.hpp"
#include "neyman/calibration/sigmoid.hpp"
#include "neyman/core/error.hpp"

namespace neyman {
namespace {

using namespace testing;

double kinked(double t) { return t < 0.0 ? 0.4 * t : 3.0 * t; }
double bent(double t) { return t + 0.1 * t * t * t; }

TEST(Smooth, PerfectScoreCostsAboutTwoParameters) {
  // 20 samples; the noise of the sigmoid, which has two parameters, is the yardstick.
  double smooth_error = 0.0, sigmoid_error = 0.0, complexity = 0.0;
  const auto grid = logit_grid(1.0);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Scores scores = draw_scores(seed, 10000, 1.0);
    SmoothCalibrator smooth;
    SigmoidCalibrator sigmoid;
    smooth.fit(scores.set());
    sigmoid.fit(scores.set());
    smooth_error += deviation(smooth, grid).mean;
    sigmoid_error += deviation(sigmoid, grid).mean;
    complexity += smooth.complexity() / 20.0;
  }
  EXPECT_LT(smooth_error, 1.3 * sigmoid_error);
  EXPECT_LT(complexity, 2.6);
  EXPECT_GT(complexity, 1.9);
}

TEST(Smooth, UndoesAMonotoneDistortion) {
  const Scores scores = draw_scores(1, 100000, 1.5, bent);
  SmoothCalibrator calibrator;
  calibrator.fit(scores.set());
  EXPECT_LT(deviation(calibrator, logit_grid(1.0), bent).mean, 0.03);
  EXPECT_LT(deviation(calibrator, logit_grid(1.0), bent).largest, 0.1);
}

TEST(Smooth, UndoesASharpKinkGivenEnoughEvents) {
  double previous = 1.0;
  for (const std::size_t n : {1000u, 10000u, 100000u}) {
    const Scores scores = draw_scores(2, n, 1.5, kinked);
    SmoothCalibrator calibrator;
    calibrator.fit(scores.set());
    const double error = deviation(calibrator, logit_grid(1.0), kinked).mean;
    EXPECT_LT(error, 0.75 * previous) << n;
    previous = error;
  }
  EXPECT_LT(previous, 0.03);
}

TEST(Smooth, IsMonotoneEvenForRandomLabels) {
  // Both sides alike: the free curve turns somewhere, the monotone one never.
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Scores scores = draw_scores(seed, 300, 1.0);
    scores.denominator = draw_scores(seed + 100, 300, 1.0).numerator;
    SmoothCalibrator calibrator;
    calibrator.fit(scores.set());
    std::vector<double> z;
    for (int i = 0; i <= 2000; ++i) {
      z.push_back(calibrator.low() - 1.0 +
                  (calibrator.high() - calibrator.low() + 2.0) * i / 2000.0);
    }
    const auto log_r = calibrator.log_ratios(Logits(z));
    for (std::size_t i = 1; i < z.size(); ++i) ASSERT_LE(log_r[i], log_r[i - 1] + 1e-12);
  }
}

TEST(Smooth, ReversedScoresGiveNoRatioRatherThanAWrongOne) {
  Scores scores = draw_scores(3, 5000, 1.0);
  std::swap(scores.numerator, scores.denominator);
  SmoothCalibrator monotone;
  monotone.fit(scores.set());
  for (const double value : monotone.log_ratios(Logits{-1.0, 0.0, 1.0})) {
    EXPECT_NEAR(value, 0.0, 0.1);
  }
  SmoothCalibrator::Config config;
  config.monotone = false;
  SmoothCalibrator free(config);
  free.fit(scores.set());
  EXPECT_NEAR(free.log_ratios(Logits{1.0})[0], 1.0, 0.2);
}

TEST(Smooth, ExtendsStraightAndBoundedly) {
  const Scores scores = draw_scores(4, 50000, 1.0);
  SmoothCalibrator::Config config;
  config.extrapolation = 3.0;
  SmoothCalibrator calibrator(config);
  calibrator.fit(scores.set());
  const double high = calibrator.high();
  const auto log_r = calibrator.log_ratios(Logits{high, high + 1.0, high + 2.0, high + 100.0});
  EXPECT_NEAR(log_r[1] - log_r[0], -1.0, 0.1);
  EXPECT_NEAR(log_r[2] - log_r[1], log_r[1] - log_r[0], 1e-9);
  EXPECT_NEAR(log_r[3], log_r[0] - 3.0, 1e-9);
  const auto errors = calibrator.errors(Logits{high, high + 2.0});
  EXPECT_GT(errors[1], errors[0]);
}

TEST(Smooth, ErrorsMatchTheSpread) {
  // Pulls at 9 points of 200 samples. The points of one sample are correlated: with 200
  // independent ones the sd of the sd is 5 % and the share within one error is known to 3 %, so
  // the limits are beyond 3 sd: false alarm below 1 %.
  const std::vector<double> t{-1.5, -1.0, -0.6, -0.3, 0.0, 0.3, 0.6, 1.0, 1.5};
  const Pulls straight = measure_pulls(SmoothCalibrator(), 200, 2000, 1.0, t);
  EXPECT_NEAR(straight.sd, 1.0, 0.2);
  EXPECT_NEAR(straight.within_one, 0.683, 0.1);
  const Pulls curved = measure_pulls(SmoothCalibrator(), 200, 2000, 1.5, t, bent);
  EXPECT_NEAR(curved.sd, 1.0, 0.25);
  EXPECT_NEAR(curved.within_one, 0.683, 0.12);
}

TEST(Smooth, TinySamplesHaveLargeErrors) {
  const std::vector<double> a{-0.5, 0.1, -1.0}, b{0.4, 1.2, -0.2};
  SmoothCalibrator calibrator;
  calibrator.fit({a, b});
  for (const double error : calibrator.errors(Logits{-1.0, 0.0, 1.0})) EXPECT_GT(error, 0.3);
  // One score for all says that the ratio is one; a plain regression would report 0.45.
  const std::vector<double> same(10, 0.2);
  calibrator.fit({same, same});
  EXPECT_LT(calibrator.errors(Logits{0.2})[0], 0.1);
}

TEST(Smooth, RelativeWeightsCountAsTheirEffectiveSize) {
  // Weights 0.1 and 1.9 by turns have an effective size of n / 1.81.
  const Scores scores = draw_scores(5, 20000, 1.0);
  std::vector<double> weights(20000);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = i % 2 == 0 ? 0.1 : 1.9;
  SmoothCalibrator weighted, plain;
  weighted.fit({scores.numerator, scores.denominator, weights, weights});
  plain.fit(scores.set());
  const Logits z{0.7};
  EXPECT_NEAR(weighted.errors(z)[0] / plain.errors(z)[0], std::sqrt(1.81), 0.1);
}

TEST(Smooth, ReplicasSpreadAsTheErrorsSay) {
  const Scores scores = draw_scores(6, 20000, 1.0);
  SmoothCalibrator calibrator;
  calibrator.fit(scores.set());
  const auto replicas = calibrator.fit_replicas(
      scores.set(), 300, [](std::size_t replica, std::span<double> a, std::span<double> b) {
        RandomStream random(6, "bootstrap", replica);
        for (double& m : a) m = static_cast<double>(random.poisson(1.0));
        for (double& m : b) m = static_cast<double>(random.poisson(1.0));
      });
  for (const double z : {-1.0, 0.0, 1.0}) {
    double sum = 0.0, squares = 0.0;
    for (const auto& replica : replicas) {
      const double value = replica->log_ratios(Logits{z})[0];
      sum += value / 300.0;
      squares += value * value / 300.0;
    }
    const double spread = std::sqrt(squares - sum * sum);
    EXPECT_NEAR(spread / calibrator.errors(Logits{z})[0], 1.0, 0.2) << z;  // sd 4 %
    EXPECT_NEAR(sum, calibrator.log_ratios(Logits{z})[0], 0.3 * spread);
  }
}

TEST(Smooth, RefusesBadConfiguration) {
  SmoothCalibrator::Config config;
  config.extrapolation = -1.0;
  EXPECT_THROW(SmoothCalibrator{config}, ArgumentError);
  config = {};
  config.knots = 1001;
  EXPECT_THROW(SmoothCalibrator{config}, ArgumentError);
}

}  // namespace
}  // namespace neyman
