#include "inference/profile.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "known_likelihoods.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/inference/fit.hpp"
#include "neyman/inference/statistics.hpp"

namespace neyman {
namespace {

using testing::FunctionLikelihood;
using testing::Parabola;

TEST(Interval, OfAParabolaProfilesTheOthers) {
  const Parabola likelihood(ParameterSpace({{"a", -10, 10, {}}, {"b", -10, 10, {}}}), {1.5, 2.0},
                            Matrix(2, 2, {4.0, 1.0, 1.0, 9.0}));
  const auto best = fit(likelihood);
  const auto interval = likelihood_interval(likelihood, best, 0, level_of_sigmas(2.0), false);
  const double sigma = std::sqrt(9.0 / 35.0);
  EXPECT_NEAR(interval.low, 1.5 - 2 * sigma, 1e-5);
  EXPECT_NEAR(interval.high, 1.5 + 2 * sigma, 1e-5);
  EXPECT_FALSE(interval.low_at_bound);
}

TEST(Interval, WidensByFiniteSimulation) {
  const Parabola likelihood(ParameterSpace({{"a", -10, 10, {}}}), {1.0}, Matrix(1, 1, {4.0}));
  auto best = fit(likelihood);
  best.simulation_covariance(0, 0) = 0.25 * 0.75;  // statistical variance 0.25
  const auto interval = likelihood_interval(likelihood, best, 0, level_of_sigmas(1.0), true);
  const double sigma = std::sqrt(0.25 * 1.75);
  EXPECT_NEAR(interval.low, 1.0 - sigma, 1e-6);
  EXPECT_NEAR(interval.high, 1.0 + sigma, 1e-6);
  EXPECT_NEAR(best.error(0), sigma, 1e-6);
}

TEST(Interval, EndsAtTheRangeAndSaysSo) {
  const Parabola likelihood(ParameterSpace({{"a", 0.9, 10, {}}}), {1.0}, Matrix(1, 1, {4.0}));
  const auto best = fit(likelihood);
  const auto interval = likelihood_interval(likelihood, best, 0, 0.683, false);
  EXPECT_EQ(interval.low, 0.9);
  EXPECT_TRUE(interval.low_at_bound);
  EXPECT_FALSE(interval.high_at_bound);
}

TEST(Scan, IsZeroAtTheEstimateAndNeverNegative) {
  const Parabola likelihood(ParameterSpace({{"a", -10, 10, {}}}), {1.0}, Matrix(1, 1, {4.0}));
  const auto best = fit(likelihood);
  const auto curve = scan(likelihood, best, 0, 0.0, 2.0, 21);
  EXPECT_NEAR(curve.statistic[10], 0.0, 1e-9);
  EXPECT_NEAR(curve.statistic[0], 4.0, 1e-6);
  for (const double value : curve.statistic) EXPECT_GE(value, 0.0);
  EXPECT_THROW(scan(likelihood, best, 0, 0, 1, 1), ArgumentError);
}

TEST(Interval, OfAnExponentialRateIsAsymmetric) {
  // −2 log Λ = 2 n (r − 1 − log r), r = λ / λ̂. The crossings by bisection.
  const double n = 6.0, rate = 2.0, threshold = chi2_quantile(0.95);
  const auto solve = [&](double low, double high) {
    const auto excess = [&](double r) { return 2.0 * n * (r - 1.0 - std::log(r)) - threshold; };
    const bool rising = excess(high) > 0.0;
    for (int i = 0; i < 200; ++i) {
      const double middle = 0.5 * (low + high);
      ((excess(middle) > 0.0) == rising ? high : low) = middle;
    }
    return rate * low;
  };
  for (const bool gradients : {true, false}) {
    const FunctionLikelihood likelihood(
        ParameterSpace({{"rate", 0.0, 50.0, {}}}),
        [=](std::span<const double> t) {
          return t[0] <= 0.0 ? Likelihood::forbidden : n * std::log(t[0]) - t[0] * n / rate;
        },
        gradients);
    const auto best = fit(likelihood);
    const auto interval = likelihood_interval(likelihood, best, 0, 0.95, false);
    EXPECT_TRUE(interval.ok) << interval.message;
    EXPECT_NEAR(interval.low, solve(1e-6, 1.0), 1e-4);
    EXPECT_NEAR(interval.high, solve(1.0, 10.0), 1e-4);
    EXPECT_GT(interval.high - rate, 1.4 * (rate - interval.low));
  }
}

TEST(Interval, OfANormalMeanWithUnknownWidth) {
  // The profile over σ is known: −2 log Λ(μ) = n log(1 + (m − μ)² / s²), which is far from a
  // parabola for five events, and −2 log Λ(σ) = n (2 log(σ/s) + s²/σ² − 1).
  const double n = 5.0, m = 1.0, s = 0.5;
  const auto likelihood = testing::normal_likelihood(
      n, m, s * s, ParameterSpace({{"mu", -20, 20, {}}, {"sigma", 0.01, 20, {}}}));
  const auto best = fit(likelihood);
  EXPECT_NEAR(best.point[1], s, 1e-5);
  for (const double level : {0.683, 0.95, 0.999}) {
    const auto interval = likelihood_interval(likelihood, best, 0, level, false);
    const double half = s * std::sqrt(std::exp(chi2_quantile(level) / n) - 1.0);
    EXPECT_TRUE(interval.ok) << interval.message;
    EXPECT_NEAR(interval.low, m - half, 1e-4 * half);
    EXPECT_NEAR(interval.high, m + half, 1e-4 * half);
  }
  const auto curve = scan(likelihood, best, 1, 0.1, 3.0, 30);
  EXPECT_EQ(curve.failed, 0U);
  for (std::size_t i = 0; i < curve.values.size(); ++i) {
    const double ratio = s / curve.values[i];
    EXPECT_NEAR(curve.statistic[i], n * (-2.0 * std::log(ratio) + ratio * ratio - 1.0), 1e-4);
  }
  EXPECT_NEAR(profile_statistic(likelihood, best, {2.0, std::nullopt}), n * std::log(5.0), 1e-5);
}

TEST(Interval, AProfileThatEndsAtABound) {
  // b wants to be below 0 for a > 0: along a the profile is a parabola with b = −a/2 for a < 0,
  // and one with b = 0 for a > 0.
  const Parabola likelihood(ParameterSpace({{"a", -10, 10, {}}, {"b", 0, 10, {}}}), {0.0, 0.0},
                            Matrix(2, 2, {2.0, 1.0, 1.0, 2.0}));
  const auto best = fit(likelihood);
  const auto interval = likelihood_interval(likelihood, best, 0, level_of_sigmas(1.0), false);
  EXPECT_NEAR(interval.low, -1.0 / std::sqrt(1.5), 1e-3);
  EXPECT_NEAR(interval.high, 1.0 / std::sqrt(2.0), 1e-3);
}

TEST(Interval, LeavesASaddle) {
  // b = a² to ± 0.3: from θ̂ = (0, 0) the profile over a has no slope, and a = 0 is the lowest
  // point between two hills. −2 log Λ(b) = b − 0.3²/4 for b above 0.045.
  const FunctionLikelihood likelihood(
      ParameterSpace({{"a", -6, 6, {}}, {"b", -10, 40, {}}}), [](std::span<const double> t) {
        return -0.5 * t[0] * t[0] - 0.5 * std::pow((t[1] - t[0] * t[0]) / 0.3, 2);
      });
  const auto interval = likelihood_interval(likelihood, fit(likelihood), 1, 0.95, 6.0);
  EXPECT_NEAR(interval.low, -0.3 * std::sqrt(6.0), 1e-4);
  EXPECT_NEAR(interval.high, 6.0225, 1e-4);
}

TEST(Interval, SaysWhenTheLikelihoodIsHigherElsewhere) {
  // The fit is on the lower of two hills that are not far apart.
  const FunctionLikelihood likelihood(
      ParameterSpace({{"a", -5, 5, {}}}), [](std::span<const double> t) {
        return std::log(std::exp(-2.0 * std::pow(t[0] + 1.0, 2)) +
                        2.0 * std::exp(-2.0 * std::pow(t[0] - 1.0, 2)));
      });
  FitOptions options;
  options.start = {-1.0};
  const auto best = fit(likelihood, options);
  ASSERT_LT(best.point[0], 0.0);
  const auto interval = likelihood_interval(likelihood, best, 0, 0.9999, false);
  EXPECT_FALSE(interval.ok);
  EXPECT_NE(interval.message.find("higher"), std::string::npos) << interval.message;
}

TEST(Interval, ForbiddenRegionsEndIt) {
  const FunctionLikelihood likelihood(
      ParameterSpace({{"a", -5, 5, {}}}), [](std::span<const double> t) {
        return t[0] > 1.25 ? Likelihood::forbidden : -0.5 * std::pow(t[0] - 1.0, 2);
      });
  const auto interval = likelihood_interval(likelihood, fit(likelihood), 0, 0.683, false);
  EXPECT_NEAR(interval.high, 1.25, 1e-6);
  EXPECT_FALSE(interval.high_at_bound);
  EXPECT_NEAR(interval.low, 1.0 - std::sqrt(chi2_quantile(0.683)), 1e-5);
}

TEST(Interval, ThresholdsOfOnesOwn) {
  const Parabola likelihood(ParameterSpace({{"a", -10, 10, {}}}), {1.0}, Matrix(1, 1, {4.0}));
  const auto best = fit(likelihood);
  const auto interval = likelihood_interval(likelihood, best, 0, 0.9, 9.0);
  EXPECT_NEAR(interval.high, 2.5, 1e-6);
  EXPECT_EQ(interval.level, 0.9);
  EXPECT_THROW(likelihood_interval(likelihood, best, 1, 0.9, 9.0), ArgumentError);
  EXPECT_THROW(likelihood_interval(likelihood, best, 0, 0.9, -1.0), ArgumentError);
}

TEST(Surface, IsTheProfiledParabola) {
  // Of three correlated parameters, the last is profiled: −2 log Λ = dᵀ C₂⁻¹ d with the 2 × 2
  // block of the covariance A⁻¹. A⁻¹ for A = [[4,1,1],[1,3,1],[1,1,2]] is
  // [[5,−1,−2],[−1,7,−3],[−2,−3,11]] / 17.
  const Parabola likelihood(
      ParameterSpace({{"a", -10, 10, {}}, {"b", -10, 10, {}}, {"c", -10, 10, {}}}), {1.0, 2.0, 0.5},
      Matrix(3, 3, {4, 1, 1, 1, 3, 1, 1, 1, 2}));
  const auto best = fit(likelihood);
  std::vector<Surface> surfaces;
  for (const std::size_t count : {1, 2}) {
    set_threads(count);
    surfaces.push_back(
        scan_surface(likelihood, best, 1, 0, {1.0, 1.5, 2.0, 3.5}, {-1.0, 0.0, 1.0, 1.7}));
  }
  set_threads(0);
  EXPECT_EQ(surfaces[0].statistic, surfaces[1].statistic);
  EXPECT_EQ(surfaces[0].failed, 0U);
  const double det = (7.0 * 5.0 - 1.0) / (17.0 * 17.0);
  for (std::size_t j = 0; j < 4; ++j)
    for (std::size_t i = 0; i < 4; ++i) {
      const double u = surfaces[0].x[i] - 2.0, v = surfaces[0].y[j] - 1.0;
      const double expected = (5.0 * u * u + 2.0 * u * v + 7.0 * v * v) / (17.0 * det);
      EXPECT_NEAR(surfaces[0].statistic(j, i), expected, 1e-5);
    }
  EXPECT_THROW(scan_surface(likelihood, best, 1, 1, {1.0}, {1.0}), ArgumentError);
  EXPECT_THROW(scan_surface(likelihood, best, 0, 1, {11.0}, {1.0}), ArgumentError);
}

TEST(Profile, OneFreeParameterTakesFewValues) {
  // ℓ = −½ x² − ½ (y − x²/4)² e^(y/8): the profile of x is −½ x² at y = x²/4, far from a parabola's
  // prediction.
  int values = 0;
  const FunctionLikelihood likelihood(
      ParameterSpace({{"x", -3, 3, {}}, {"y", -3, 3, {}}}), [&](std::span<const double> t) {
        ++values;
        const double off = t[1] - 0.25 * t[0] * t[0];
        return -0.5 * t[0] * t[0] - 0.5 * off * off * std::exp(t[1] / 8.0);
      });
  const auto best = fit(likelihood);
  const Profile profile(likelihood, best, {0});
  for (const double x : {-1.5, 0.4, 2.0}) {
    values = 0;
    const double held[] = {x};
    const auto found = profile(held, nullptr);
    EXPECT_TRUE(found.ok);
    EXPECT_NEAR(found.statistic, x * x, 1e-7);
    EXPECT_NEAR(found.point[1], 0.25 * x * x, 1e-4);
    EXPECT_LE(values, 13);
  }
  // Where the top is at a bound, a fit finds it.
  const FunctionLikelihood rising(
      ParameterSpace({{"x", -3, 3, {}}, {"y", -3, 3, {}}}),
      [](std::span<const double> t) { return -0.5 * t[0] * t[0] + t[1] - 0.1 * t[1] * t[1]; });
  const double held[] = {1.0};
  const auto top = fit(rising);
  const auto found = Profile(rising, top, {0})(held, nullptr);
  EXPECT_NEAR(found.point[1], 3.0, 1e-6);
  EXPECT_NEAR(found.statistic, 1.0, 1e-6);
}

}  // namespace
}  // namespace neyman
