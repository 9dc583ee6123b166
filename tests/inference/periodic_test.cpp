// Fits, intervals and scans of what goes round.

#include <gtest/gtest.h>

#include <cmath>

#include "known_likelihoods.hpp"
#include "neyman/core/error.hpp"
#include "neyman/inference/constraint.hpp"
#include "neyman/inference/contour.hpp"
#include "neyman/inference/fit.hpp"
#include "neyman/inference/regions.hpp"
#include "neyman/inference/statistics.hpp"

namespace neyman {
namespace {

using testing::FunctionLikelihood;

constexpr double pi = 3.141592653589793;

Parameter phase() { return {"phase", -pi, pi, {}, false, true}; }

/// ℓ = k cos(φ − top): its interval is φ − top = ± arccos(1 − t / 2k).
FunctionLikelihood around(double top, double k = 50.0, bool gradients = true) {
  return {ParameterSpace({phase()}),
          [=](std::span<const double> t) { return k * std::cos(t[0] - top); }, gradients};
}

double half_width(double level, double k = 50.0) {
  return std::acos(1.0 - 0.5 * chi2_quantile(level) / k);
}

TEST(PeriodicFit, FindsATopAtTheSeamOnce) {
  for (const bool gradients : {true, false})
    for (const double top : {pi, -pi, pi - 1e-7, 3.1, -3.1, 0.0, 0.5 * pi}) {
      const auto likelihood = around(top, 50.0, gradients);
      const auto found = fit(likelihood);
      EXPECT_EQ(found.status, FitStatus::converged) << top << ": " << found.message;
      EXPECT_NEAR(phase().difference(found.point[0], top), 0.0, gradients ? 1e-5 : 1e-3);
      EXPECT_TRUE(found.point[0] >= -pi && found.point[0] <= pi);
      EXPECT_FALSE(found.at_bound[0]);
      EXPECT_EQ(found.maxima.size(), 1u);
      EXPECT_NEAR(found.statistical_error(0), 1.0 / std::sqrt(50.0), 2e-3);
    }
}

TEST(PeriodicFit, TellsTwoTopsApart) {
  // cos 2φ: 3.0 and 3.0 − π.
  const FunctionLikelihood likelihood(ParameterSpace({phase()}), [](std::span<const double> t) {
    return 30.0 * std::cos(2.0 * (t[0] - 3.0)) + std::cos(t[0] - 3.0);
  });
  const auto found = fit(likelihood);
  ASSERT_EQ(found.maxima.size(), 2u);
  EXPECT_NEAR(found.point[0], 3.0, 1e-5);
  EXPECT_NEAR(found.maxima[1].point[0], 3.0 - pi, 1e-2);
}

TEST(PeriodicFit, StepsOverTheSeamFromAStart) {
  const auto likelihood = around(-3.0);
  FitOptions options;
  options.start = {3.0};
  const auto found = fit(likelihood, options);
  EXPECT_EQ(found.status, FitStatus::converged);
  EXPECT_NEAR(found.point[0], -3.0, 1e-5);
  // A narrower range has ends again.
  options.ranges = {FitRange{2.0, 3.1}};
  const auto held = fit(likelihood, options);
  EXPECT_EQ(held.status, FitStatus::at_bound);
  EXPECT_EQ(held.point[0], 3.1);
}

TEST(PeriodicInterval, GoesOverTheSeam) {
  for (const double top : {pi, 3.05, -3.05, 0.3}) {
    const auto likelihood = around(top);
    const auto best = fit(likelihood);
    for (const double level : {0.683, 0.95}) {
      const auto interval = likelihood_interval(likelihood, best, 0, level, false);
      const double half = half_width(level);
      EXPECT_TRUE(interval.ok) << interval.message;
      ASSERT_EQ(interval.pieces.size(), 1u);
      // Around the estimate, wherever the seam is.
      EXPECT_NEAR(interval.low, best.point[0] - half, 1e-5);
      EXPECT_NEAR(interval.high, best.point[0] + half, 1e-5);
      EXPECT_FALSE(interval.low_at_bound || interval.high_at_bound);
      EXPECT_TRUE(interval.holds(phase().wrapped(top + 0.9 * half), phase()));
      EXPECT_TRUE(interval.holds(phase().wrapped(top - 0.9 * half), phase()));
      EXPECT_FALSE(interval.holds(phase().wrapped(top + 1.1 * half), phase()));
      EXPECT_FALSE(interval.holds(phase().wrapped(top - 1.1 * half), phase()));
    }
  }
}

TEST(PeriodicInterval, HasPiecesOnTheCircle) {
  // Three tops of equal height, 2π/3 apart: one of them over the seam, whichever is the estimate.
  const FunctionLikelihood likelihood(ParameterSpace({phase()}), [](std::span<const double> t) {
    return 20.0 * std::cos(3.0 * (t[0] - pi));
  });
  const double half = std::acos(1.0 - 0.5 * chi2_quantile(0.683) / 20.0) / 3.0;
  const auto best = fit(likelihood);
  EXPECT_EQ(best.maxima.size(), 3u);
  const auto interval = likelihood_interval(likelihood, best, 0, 0.683, false);
  ASSERT_EQ(interval.pieces.size(), 3u);
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(interval.pieces[k].high - interval.pieces[k].low, 2.0 * half, 1e-5);
    if (k > 0) {
      EXPECT_GT(interval.pieces[k].low, interval.pieces[k - 1].high);
    }
  }
  for (const double top : {-pi, -pi / 3.0, pi / 3.0, pi}) {
    EXPECT_TRUE(interval.holds(top, phase()));
    EXPECT_FALSE(interval.holds(phase().wrapped(top + pi / 3.0), phase()));
  }
}

TEST(PeriodicInterval, MayHoldOppositeValuesOrAll) {
  // A piece of more than half a turn, that ends on both sides of the point opposite of the
  // estimate.
  const auto wide = around(2.0, 1.2);
  const auto best = fit(wide);
  const auto some = likelihood_interval(wide, best, 0, 0.95, false);
  const double half = half_width(0.95, 1.2);
  ASSERT_EQ(some.pieces.size(), 1u);
  EXPECT_NEAR(some.high - some.low, 2.0 * half, 1e-5);
  EXPECT_FALSE(some.holds(phase().wrapped(2.0 + pi), phase()));
  // Two tops opposite of each other: the second piece lies where the circle is cut.
  const FunctionLikelihood two(ParameterSpace({phase()}), [](std::span<const double> t) {
    return 20.0 * std::cos(2.0 * (t[0] - 1.0)) + 1e-3 * std::cos(t[0] - 1.0);
  });
  const auto both = likelihood_interval(two, fit(two), 0, 0.683, false);
  ASSERT_EQ(both.pieces.size(), 2u);
  EXPECT_NEAR(0.5 * (both.pieces[0].low + both.pieces[0].high), 1.0 - pi, 1e-3);
  EXPECT_NEAR(0.5 * (both.pieces[1].low + both.pieces[1].high), 1.0, 1e-3);
  // Nothing is excluded.
  const auto flat = around(2.0, 0.5);
  const auto all = likelihood_interval(flat, fit(flat), 0, 0.95, false);
  ASSERT_EQ(all.pieces.size(), 1u);
  EXPECT_EQ(all.low, -pi);
  EXPECT_EQ(all.high, pi);
  EXPECT_FALSE(all.low_at_bound || all.high_at_bound);
  EXPECT_TRUE(all.holds(1.234, phase()));
}

/// A phase whose best value turns with the frequency beside it, once round over the range:
/// ℓ = 60 cos(φ − a) − 8 (f − 1)², with a = 3 + 2 (f − 1).
FunctionLikelihood turning(bool gradients = true) {
  return {ParameterSpace({{"f", 0.0, 2.0, {}}, phase()}),
          [](std::span<const double> t) {
            const double f = t[0] - 1.0;
            return 60.0 * std::cos(t[1] - 3.0 - 2.0 * f) - 8.0 * f * f;
          },
          gradients};
}

TEST(PeriodicProfile, FollowsABestValueOverTheSeam) {
  for (const bool gradients : {true, false}) {
    const auto likelihood = turning(gradients);
    const auto best = fit(likelihood);
    ASSERT_TRUE(best.ok()) << best.message;
    EXPECT_NEAR(best.point[0], 1.0, 1e-3);
    EXPECT_NEAR(best.point[1], 3.0, 1e-3);
    EXPECT_EQ(best.maxima.size(), 1u);
    // With φ at its best everywhere, 16 (f − 1)² = t.
    const auto of_f = likelihood_interval(likelihood, best, 0, 0.95, false);
    const double half = 0.25 * std::sqrt(chi2_quantile(0.95));
    EXPECT_NEAR(of_f.low, 1.0 - half, 1e-3);
    EXPECT_NEAR(of_f.high, 1.0 + half, 1e-3);
    // With f at its best, φ goes beyond π.
    const auto of_phase = likelihood_interval(likelihood, best, 1, 0.95, false);
    ASSERT_EQ(of_phase.pieces.size(), 1u) << of_phase.message;
    EXPECT_GT(of_phase.high, pi);
    // From the covariance: 1/60 + 2²/16, and ℓ is nearly a parabola.
    EXPECT_NEAR(of_phase.high - 3.0, std::sqrt(chi2_quantile(0.95) * (1.0 / 60.0 + 0.25)), 0.02);
    EXPECT_NEAR(3.0 - of_phase.low, std::sqrt(chi2_quantile(0.95) * (1.0 / 60.0 + 0.25)), 0.02);
  }
}

TEST(PeriodicScan, GoesOverTheSeam) {
  const auto likelihood = around(3.0);
  RegionsPlan plan;
  plan.levels = {0.683};
  plan.scan_points = 41;
  const auto regions = find_regions(likelihood, fit(likelihood), plan);
  ASSERT_EQ(regions.scans.size(), 1u);
  const auto& scan = regions.scans[0];
  EXPECT_GT(scan.values.back(), pi);
  EXPECT_LE(scan.values.back() - scan.values.front(), 2.0 * pi);
  for (std::size_t i = 0; i < scan.values.size(); ++i)
    EXPECT_NEAR(scan.statistic[i], 100.0 * (1.0 - std::cos(scan.values[i] - 3.0)), 1e-6);
  // Where all is allowed, once round.
  const auto flat = around(3.0, 0.3);
  const auto round = find_regions(flat, fit(flat), plan).scans[0];
  EXPECT_NEAR(round.values.back() - round.values.front(), 2.0 * pi, 1e-9);
}

TEST(PeriodicContour, IsClosedOverTheSeam) {
  const auto likelihood = turning();
  ContourConfig config;
  config.levels = {0.683};
  const auto found = contours(likelihood, fit(likelihood), 0, 1, config);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].touches_bound);
  ASSERT_EQ(found[0].lines.size(), 1u);
  EXPECT_TRUE(found[0].lines[0].closed);
  bool over = false;
  for (std::size_t i = 0; i < found[0].lines[0].x.size(); ++i) {
    const double x = found[0].lines[0].x[i], y = found[0].lines[0].y[i];
    over = over || y > pi;
    EXPECT_NEAR(2.0 * (60.0 - likelihood(std::vector{x, y})), chi2_quantile(0.683, 2.0), 0.02);
  }
  EXPECT_TRUE(over);
}

// A gaussian measurement at −3.1 pulls a phase of 3.1 over the seam, not through zero.
TEST(PeriodicConstraint, TakesTheShorterWay) {
  const auto likelihood = std::make_shared<FunctionLikelihood>(around(3.1, 100.0));
  const ConstrainedLikelihood constrained(likelihood, {Constraint::gaussian(0, -3.1, 0.1)});
  const auto found = fit(constrained);
  EXPECT_EQ(found.status, FitStatus::converged);
  // Half-way: 100 (φ − 3.1) and (φ + 3.1 − 2π) / 0.1² are equally strong.
  EXPECT_NEAR(phase().difference(found.point[0], pi), 0.0, 1e-4);
}

}  // namespace
}  // namespace neyman
