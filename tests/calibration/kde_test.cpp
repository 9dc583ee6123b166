#include "neyman/calibration/kde.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "calibration/problems.hpp"
#include "neyman/core/error.hpp"

namespace neyman {
namespace {

using namespace testing;

// The ratio event by event, in t = asinh((z − c)/s) with the calibrator's own bandwidth, each event
// with its images beyond both ends.
double sum_over_events(const Scores& scores, const KdeCalibrator& calibrator, double z) {
  const double n = static_cast<double>(scores.numerator.size());
  double mean = 0.0, square = 0.0;
  const auto for_all = [&](const auto& action) {
    for (const double event : scores.numerator) action(event);
    for (const double event : scores.denominator) action(event);
  };
  for_all([&](double event) { mean += event / (2.0 * n); });
  for_all([&](double event) { square += (event - mean) * (event - mean) / (2.0 * n); });
  const auto t = [&](double x) { return std::asinh((x - mean) / std::sqrt(square)); };
  const double low = t(calibrator.low()), high = t(calibrator.high());
  const auto density = [&](const std::vector<double>& side) {
    double sum = 0.0;
    for (const double event : side) {
      for (const double image : {t(event), 2.0 * low - t(event), 2.0 * high - t(event)}) {
        const double d = (t(z) - image) / calibrator.bandwidth();
        sum += std::exp(-0.5 * d * d);
      }
    }
    return sum;
  };
  return std::log(density(scores.numerator)) - std::log(density(scores.denominator));
}

TEST(Kde, EqualsTheSumOverAllEvents) {
  // Uniform scores with a tilt, dense up to the ends, so that the images count there.
  // More than 65 536 are counted before they are put on the grid.
  RandomStream random(1, "kde");
  for (const int size : {20000, 100000}) {
    Scores scores;
    for (int i = 0; i < size; ++i) {
      scores.numerator.push_back(2.0 * std::sqrt(random.uniform()) - 1.0);
      scores.denominator.push_back(2.0 * random.uniform() - 1.0);
    }
    KdeCalibrator calibrator;
    calibrator.fit(scores.set());
    for (const double z : {calibrator.low() + 0.02, -0.5, 0.0, 0.4, calibrator.high()}) {
      // Binning, and two events of prior among some hundred.
      EXPECT_NEAR(calibrator.log_ratios(Logits{z})[0], sum_over_events(scores, calibrator, z),
                  400.0 / size)
          << z;
    }
  }
}

TEST(Kde, FindsTheExactRatio) {
  const Scores scores = draw_scores(2, 100000, 1.0);
  KdeCalibrator by_likelihood({KdeCalibrator::Bandwidth::likelihood, 1.0}), by_rule;
  by_likelihood.fit(scores.set());
  by_rule.fit(scores.set());
  EXPECT_LT(deviation(by_likelihood, logit_grid(0.8)).mean, 0.04);
  EXPECT_LT(deviation(by_rule, logit_grid(0.8)).mean, 0.06);
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
