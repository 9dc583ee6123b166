#include "neyman/inference/regions.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "known_likelihoods.hpp"
#include "neyman/core/random.hpp"
#include "neyman/inference/contour.hpp"
#include "neyman/inference/statistics.hpp"

namespace neyman {
namespace {

using testing::FunctionLikelihood;

/// ℓ = −½ (θ² − m)² / s²: maxima of equal height at ± √m.
FunctionLikelihood of_a_square(double m, double s) {
  return {ParameterSpace({{"theta", -2, 2, {}}}),
          [=](std::span<const double> t) { return -0.5 * std::pow((t[0] * t[0] - m) / s, 2); }};
}

TEST(Regions, TwoEqualMaximaAreTwoPieces) {
  // −2 log Λ ≤ c where θ² lies in m ± s √c.
  const double m = 1.44, s = 0.07, c = chi2_quantile(0.95);
  const auto likelihood = of_a_square(m, s);
  const auto best = fit(likelihood);
  ASSERT_EQ(best.maxima.size(), 2U);
  EXPECT_NEAR(best.maxima[0].point[0], -best.maxima[1].point[0], 1e-5);
  EXPECT_NEAR(std::abs(best.maxima[0].point[0]), 1.2, 1e-5);
  const auto interval = likelihood_interval(likelihood, best, 0, 0.95, false);
  ASSERT_EQ(interval.pieces.size(), 2U);
  const double inner = std::sqrt(m - s * std::sqrt(c)), outer = std::sqrt(m + s * std::sqrt(c));
  EXPECT_NEAR(interval.pieces[0].low, -outer, 1e-5);
  EXPECT_NEAR(interval.pieces[0].high, -inner, 1e-5);
  EXPECT_NEAR(interval.pieces[1].low, inner, 1e-5);
  EXPECT_NEAR(interval.pieces[1].high, outer, 1e-5);
  EXPECT_EQ(interval.low, interval.pieces[0].low);
  EXPECT_EQ(interval.high, interval.pieces[1].high);
  EXPECT_TRUE(interval.ok) << interval.message;
}

TEST(Regions, APieceIsFoundThatNoMaximumOfTheFitLeadsTo) {
  // The fit begins beside one maximum and knows that one alone.
  const auto likelihood = of_a_square(1.44, 0.07);
  FitOptions options;
  options.start = {1.0};
  const auto best = fit(likelihood, options);
  ASSERT_EQ(best.maxima.size(), 1U);
  EXPECT_EQ(likelihood_interval(likelihood, best, 0, 0.683, false).pieces.size(), 2U);
  const auto found = find_regions(likelihood, best, {});
  EXPECT_EQ(found.intervals[0][1].pieces.size(), 2U);
  ASSERT_EQ(found.fit.maxima.size(), 2U);
  EXPECT_NEAR(found.fit.maxima[1].point[0], -1.2, 1e-4);
  // The scan shows both.
  EXPECT_LT(found.scans[0].values.front(), -1.2);
  EXPECT_GT(found.scans[0].values.back(), 1.2);
}

/// A double well: heights 0 at `at` and −`drop` / 2 at −`at`, both with a curvature of 1 / w².
FunctionLikelihood two_wells(double at, double w, double drop) {
  return {ParameterSpace({{"theta", -5, 5, {}}}), [=](std::span<const double> t) {
            return std::max(-0.5 * std::pow((t[0] - at) / w, 2),
                            -0.5 * drop - 0.5 * std::pow((t[0] + at) / w, 2));
          }};
}

TEST(Regions, ALowerMaximumBelongsToTheLevelsThatReachIt) {
  const double w = 0.05, drop = 2.0;
  const auto likelihood = two_wells(2.0, w, drop);
  const auto best = fit(likelihood);
  EXPECT_NEAR(best.point[0], 2.0, 1e-6);
  EXPECT_EQ(likelihood_interval(likelihood, best, 0, 0.683, false).pieces.size(), 1U);
  const auto wide = likelihood_interval(likelihood, best, 0, 0.95, false);
  ASSERT_EQ(wide.pieces.size(), 2U);
  const double half = w * std::sqrt(chi2_quantile(0.95) - drop);
  EXPECT_NEAR(wide.pieces[0].low, -2.0 - half, 1e-5);
  EXPECT_NEAR(wide.pieces[0].high, -2.0 + half, 1e-5);
}

TEST(Regions, AMaximumWhoseHeightIsUncertainIsRaised) {
  // By 2 √t standard deviations of −2 log Λ / 2 there, and at most to the height of the first.
  const double w = 0.05, drop = 2.0, t = chi2_quantile(0.683);
  const auto likelihood = two_wells(2.0, w, drop);
  auto best = fit(likelihood);
  ASSERT_EQ(best.maxima.size(), 2U);
  for (const double error : {0.2, 0.8, 10.0}) {
    best.maxima[1].simulation_error = error;
    EXPECT_EQ(likelihood_interval(likelihood, best, 0, 0.683, false).pieces.size(), 1U);
    const auto interval = likelihood_interval(likelihood, best, 0, 0.683, true);
    const double left = t - drop + std::min(drop, 2.0 * std::sqrt(t) * error);
    ASSERT_EQ(interval.pieces.size(), left > 0.0 ? 2U : 1U) << error;
    EXPECT_NEAR(interval.pieces.back().high, 2.0 + w * std::sqrt(t), 1e-5);
    if (left <= 0.0) continue;
    EXPECT_NEAR(interval.pieces[0].low, -2.0 - w * std::sqrt(left), 1e-5);
    EXPECT_NEAR(interval.pieces[0].high, -2.0 + w * std::sqrt(left), 1e-5);
  }
}

TEST(Regions, AHigherMaximumTakesTheFitsPlace) {
  const auto likelihood = two_wells(2.0, 0.05, 6.0);
  FitOptions options;
  options.start = {-1.9};
  const auto lower = fit(likelihood, options);
  ASSERT_NEAR(lower.point[0], -2.0, 1e-4);
  ASSERT_EQ(lower.status, FitStatus::converged);
  std::size_t added = 0;
  RegionsPlan plan;
  plan.add_simulation = [&](Fit& best) {
    ++added;
    best.simulation_known = true;
  };
  const auto found = find_regions(likelihood, lower, plan);
  EXPECT_NEAR(found.fit.point[0], 2.0, 1e-5);
  EXPECT_EQ(added, 1U);
  EXPECT_TRUE(found.fit.simulation_known);
  ASSERT_EQ(found.fit.maxima.size(), 2U);
  EXPECT_NEAR(found.fit.maxima[1].log_likelihood, -3.0, 1e-6);
  // A scan of the lower one is that of the higher, and says so; nothing is cut at zero.
  const auto curve = scan(likelihood, lower, 0, -5.0, 5.0, 101);
  EXPECT_NE(curve.message.find("higher than that of the fit by 3"), std::string::npos)
      << curve.message;
  ASSERT_EQ(curve.higher.size(), 1U);
  EXPECT_NEAR(curve.higher[0], 2.0, 1e-5);
  EXPECT_NEAR(curve.statistic[30], 6.0, 1e-3);  // at −2
  EXPECT_NEAR(curve.statistic[70], 0.0, 1e-3);  // at 2
}

/// ℓ of x with y on one of two branches: y = 1 for ℓ = −½ x², y = −1 for −½ (x − 3)² − 1, both
/// narrow in y and far apart.
FunctionLikelihood two_branches() {
  return {ParameterSpace({{"x", -6, 8, {}}, {"y", -2, 2, {}}}), [](std::span<const double> t) {
            const double upper = -0.5 * t[0] * t[0] - 0.5 * std::pow((t[1] - 1.0) / 0.05, 2);
            const double lower =
                -0.5 * std::pow(t[0] - 3.0, 2) - 1.0 - 0.5 * std::pow((t[1] + 1.0) / 0.05, 2);
            return std::max(upper, lower);
          }};
}

TEST(Regions, AProfileTakesTheLowerBranch) {
  const auto likelihood = two_branches();
  const auto expected = [](double x) { return std::min(x * x, std::pow(x - 3.0, 2) + 2.0); };
  // With the second maximum known, and from the first alone.
  FitOptions alone;
  alone.start = {0.1, 0.9};
  for (const auto& best : {fit(likelihood), fit(likelihood, alone)}) {
    ASSERT_NEAR(best.point[0], 0.0, 1e-4);
    const auto found = find_regions(likelihood, best, {{0.683, 0.95}, 60, {}, {}});
    const auto& curve = found.scans[0];
    if (found.fit.maxima.size() < 2) continue;  // checked below
    for (std::size_t i = 0; i < curve.values.size(); ++i)
      EXPECT_NEAR(curve.statistic[i], expected(curve.values[i]), 1e-3) << curve.values[i];
    // −2 log Λ ≤ 3.84 up to 3 + √1.84, where both branches are below 3.84 in between.
    const auto& interval = found.intervals[0][1];
    ASSERT_EQ(interval.pieces.size(), 1U);
    EXPECT_NEAR(interval.low, -std::sqrt(chi2_quantile(0.95)), 1e-4);
    EXPECT_NEAR(interval.high, 3.0 + std::sqrt(chi2_quantile(0.95) - 2.0), 1e-4);
    // The other parameter has both.
    EXPECT_EQ(found.intervals[1][1].pieces.size(), 2U);
  }
  EXPECT_EQ(fit(likelihood).maxima.size(), 2U);
}

TEST(Regions, ContoursHoldAllMaxima) {
  // (x² − 2.25)² and y: two islands at x = ± 1.5.
  const FunctionLikelihood likelihood(
      ParameterSpace({{"x", -5, 5, {}}, {"y", -5, 5, {}}}), [](std::span<const double> t) {
        return -0.5 * std::pow((t[0] * t[0] - 2.25) / 0.3, 2) - 0.5 * std::pow(t[1] / 0.2, 2);
      });
  const auto found = contours(likelihood, fit(likelihood), 0, 1);
  for (const auto& contour : found) {
    ASSERT_EQ(contour.lines.size(), 2U);
    EXPECT_TRUE(contour.lines[0].closed && contour.lines[1].closed);
  }
}

TEST(Regions, WhatIsFlatHasItsWholeRange) {
  // Nothing is known of b: all of its range, to the last digit, and a is not touched.
  for (const bool gradients : {true, false}) {
    const FunctionLikelihood likelihood(
        ParameterSpace({{"a", -5, 5, {}}, {"b", 0, 20, {}}}),
        [](std::span<const double> t) { return -0.5 * std::pow(t[0] / 0.1, 2); }, gradients);
    const auto best = fit(likelihood);
    EXPECT_EQ(best.status, FitStatus::failed);
    EXPECT_EQ(best.message, "the likelihood is flat along b");
    const auto found = find_regions(likelihood, best, {{0.683, 0.95}, 21, {}, {}});
    for (const auto& interval : found.intervals[1]) {
      EXPECT_EQ(interval.low, 0.0);
      EXPECT_EQ(interval.high, 20.0);
      EXPECT_TRUE(interval.low_at_bound && interval.high_at_bound);
      EXPECT_EQ(interval.pieces.size(), 1U);
    }
    EXPECT_NEAR(found.intervals[0][0].high, 0.1 * std::sqrt(chi2_quantile(0.683)), 1e-4);
    EXPECT_EQ(found.fit.maxima.size(), 1U);
  }
}

TEST(Regions, AtABoundFiniteSimulationWidens) {
  // ℓ of a normal mean with a range that begins at 0 and a maximum at −d: its curvature at 0 is
  // n, and a gradient that simulation moves by √g widens the interval by 1 + g / n.
  const double n = 400.0, d = 0.03, g = 1200.0;
  const FunctionLikelihood likelihood(
      ParameterSpace({{"mu", 0, 2, {}}}),
      [=](std::span<const double> t) { return -0.5 * n * std::pow(t[0] + d, 2); });
  auto best = fit(likelihood);
  ASSERT_EQ(best.status, FitStatus::at_bound);
  EXPECT_FALSE(best.simulation_error_known(0));
  add_simulation_covariance(best, Matrix(1, 1, {g}));
  ASSERT_TRUE(best.simulation_error_known(0));
  EXPECT_NEAR(best.statistical_error(0), 1.0 / std::sqrt(n), 1e-6);
  EXPECT_NEAR(best.simulation_error(0), std::sqrt(g) / n, 1e-6);
  for (const double level : {0.683, 0.95}) {
    const auto narrow = likelihood_interval(likelihood, best, 0, level, false);
    const auto wide = likelihood_interval(likelihood, best, 0, level, true);
    const auto end = [&](double threshold) { return std::sqrt(d * d + threshold / n) - d; };
    EXPECT_EQ(wide.low, 0.0);
    EXPECT_NEAR(narrow.high, end(chi2_quantile(level)), 1e-6);
    EXPECT_NEAR(wide.high, end(chi2_quantile(level) * (1.0 + g / n)), 1e-6);
  }
}

TEST(Regions, ASlopeThatMayBeTheSimulationsIsNoLimit) {
  // ℓ rises towards the end of the range, and bends upwards on the way: nothing inside tells an
  // error. With a slope s and a simulation that moves it by √g, −2 log Λ = 2 s w is within
  // t + 2 √(t g) w up to w = t / (2 (s − √(t g))), and everywhere where √(t g) is above s.
  const double s = 50.0;
  const FunctionLikelihood likelihood(
      ParameterSpace({{"b", 0, 1, {}}}),
      [=](std::span<const double> t) { return -s * (1.0 - t[0]) + std::pow(1.0 - t[0], 2); });
  const double t = chi2_quantile(0.95);
  for (const double root : {0.0, 15.0, 40.0}) {
    auto best = fit(likelihood);
    ASSERT_EQ(best.status, FitStatus::at_bound);
    EXPECT_FALSE(best.statistical_error_known(0));
    add_simulation_covariance(best, Matrix(1, 1, {root * root}));
    EXPECT_FALSE(best.simulation_error_known(0));
    const auto interval = likelihood_interval(likelihood, best, 0, 0.95, true);
    const double slope = s - std::sqrt(t) * root;
    // 2 (slope w − w²) = t
    const double reach = slope > 0.0 ? 0.5 * (slope - std::sqrt(slope * slope - 2.0 * t)) : 1.0;
    EXPECT_NEAR(interval.low, 1.0 - reach, 1e-6);
    EXPECT_EQ(interval.low_at_bound, slope <= 0.0);
    EXPECT_EQ(interval.high, 1.0);
  }
}

TEST(Regions, AtABoundTheWidenedIntervalCovers) {
  // An estimate x ~ N(μ, σ² + τ²) of a mean that is not negative, whose likelihood knows σ alone:
  // with finite simulation, τ = 2 σ, the interval holds the truth as often as it says. 400 times
  // at μ = τ / 2, where a third ends at the bound. A coverage of 0.95 would be found below 0.92 in
  // one of 300 such tests, one of 0.683 below 0.61 in one of 1000.
  const double sigma = 0.01, tau = 0.02, mu = 0.01;
  RandomStream random(11, "at a bound");
  int inside = 0, inside_most = 0, narrow = 0, bound = 0;
  constexpr int times = 400;
  for (int i = 0; i < times; ++i) {
    const double x = mu + std::hypot(sigma, tau) * random.normal();
    const FunctionLikelihood likelihood(
        ParameterSpace({{"mu", 0, 2, {}}}),
        [=](std::span<const double> t) { return -0.5 * std::pow((t[0] - x) / sigma, 2); });
    auto best = fit(likelihood);
    add_simulation_covariance(best, Matrix(1, 1, {std::pow(tau / (sigma * sigma), 2)}));
    bound += best.status == FitStatus::at_bound ? 1 : 0;
    const auto holds = [&](double level, bool simulation) {
      const auto interval = likelihood_interval(likelihood, best, 0, level, simulation);
      return interval.low <= mu && mu <= interval.high ? 1 : 0;
    };
    inside += holds(0.683, true);
    inside_most += holds(0.95, true);
    narrow += holds(0.95, false);
  }
  EXPECT_GT(bound, times / 5);
  EXPECT_GT(inside, 0.61 * times);
  EXPECT_GT(inside_most, 0.92 * times);
  EXPECT_LT(narrow, 0.75 * times);
}

TEST(Regions, AMixtureAtACorner) {
  // Three shares, the third absent from the data: the maximum lies on a + b = 1, where the third
  // weight is nothing, or inside; against all points of a grid. At the edge the errors are known
  // and the intervals hold the truth's neighbourhood.
  const ParameterSpace space({{"a", 0.0, 1.0, {}}, {"b", 0.0, 1.0, {}}});
  const MixtureWeights weights({Expression("a", space), Expression("b", space)}, 3);
  int at_edge = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    RandomStream random(seed, "corner");
    Matrix ratios(1000, 3);
    for (std::size_t i = 0; i < ratios.rows(); ++i) {
      const double x = (random.uniform() < 0.6 ? 0.0 : 1.5) + random.normal();
      for (std::size_t c = 0; c < 3; ++c)
        ratios(i, c) = std::exp(-0.5 * std::pow(x - 1.5 * static_cast<double>(c), 2));
    }
    const MixtureLikelihood likelihood(space, weights, ratios, {1.0, 1.0, 1.0});
    double highest = Likelihood::forbidden;
    for (int i = 0; i <= 100; ++i)
      for (int j = 0; i + j <= 100; ++j)
        highest = std::max(highest,
                           likelihood(std::vector{0.01 * i, std::min(0.01 * j, 1.0 - 0.01 * i)}));
    auto best = fit(likelihood);
    ASSERT_TRUE(best.ok()) << seed << ": " << best.message;
    EXPECT_GT(best.log_likelihood, highest - 1e-6) << seed;
    const double left = 1.0 - best.point[0] - best.point[1];
    EXPECT_GE(left, -1e-9);
    EXPECT_EQ(best.status == FitStatus::at_bound, left < 1e-6) << seed << ' ' << left;
    at_edge += best.status == FitStatus::at_bound ? 1 : 0;
    for (std::size_t p = 0; p < 2; ++p) {
      EXPECT_GT(best.statistical_error(p), 0.01) << seed;
      EXPECT_LT(best.statistical_error(p), 0.2) << seed;
      const auto interval = likelihood_interval(likelihood, best, p, 0.95, false);
      EXPECT_TRUE(interval.ok) << seed << ": " << interval.message;
      EXPECT_LE(interval.low, best.point[p]);
      EXPECT_GE(interval.high, best.point[p]);
      EXPECT_GT(interval.high - interval.low, 0.05);
      EXPECT_LT(interval.high - interval.low, 0.3);
      // The ends are where the profile is: against a grid of the other parameter.
      for (const double end : {interval.low, interval.high}) {
        double top = Likelihood::forbidden;
        const double most = 1.0 - end;
        for (int k = 0; k <= 4000; ++k) {
          const double other = most * k / 4000.0;
          top =
              std::max(top, likelihood(p == 0 ? std::vector{end, other} : std::vector{other, end}));
        }
        EXPECT_NEAR(2.0 * (best.log_likelihood - top), chi2_quantile(0.95), 5e-3) << seed;
      }
    }
  }
  EXPECT_GT(at_edge, 2);
  EXPECT_LT(at_edge, 11);
}

}  // namespace
}  // namespace neyman
