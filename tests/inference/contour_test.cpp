#include "neyman/inference/contour.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "known_likelihoods.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/inference/statistics.hpp"

namespace neyman {
namespace {

using testing::FunctionLikelihood;
using testing::Parabola;

/// The area inside a closed polyline.
double area(const Polyline& line) {
  double sum = 0.0;
  for (std::size_t i = 0; i < line.x.size(); ++i) {
    const std::size_t j = (i + 1) % line.x.size();
    sum += line.x[i] * line.y[j] - line.x[j] * line.y[i];
  }
  return 0.5 * std::abs(sum);
}

double longest_step(const Polyline& line) {
  double longest = 0.0;
  for (std::size_t i = 0; i + (line.closed ? 0 : 1) < line.x.size(); ++i) {
    const std::size_t j = (i + 1) % line.x.size();
    longest = std::max(longest, std::hypot(line.x[i] - line.x[j], line.y[i] - line.y[j]));
  }
  return longest;
}

TEST(Contours, OfCorrelatedNormalsAreEllipses) {
  for (const double correlation : {0.0, 0.6, -0.95, 0.995}) {
    const double a = 0.7, b = 0.2, det = 1.0 - correlation * correlation;
    const Parabola likelihood(ParameterSpace({{"a", -10, 10, {}}, {"b", -5, 5, {}}}), {1.0, -0.5},
                              Matrix(2, 2,
                                     {1.0 / (a * a * det), -correlation / (a * b * det),
                                      -correlation / (a * b * det), 1.0 / (b * b * det)}));
    const auto best = fit(likelihood);
    ContourConfig config;
    config.levels = {0.1, 0.683, 0.95, 0.997};
    const auto found = contours(likelihood, best, 0, 1, config);
    ASSERT_EQ(found.size(), 4U);
    for (const auto& contour : found) {
      EXPECT_NEAR(contour.threshold, -2.0 * std::log(1.0 - contour.level), 1e-9);
      EXPECT_FALSE(contour.touches_bound);
      EXPECT_EQ(contour.failed, 0U);
      ASSERT_EQ(contour.lines.size(), 1U) << correlation << " at " << contour.level;
      const auto& line = contour.lines[0];
      EXPECT_TRUE(line.closed);
      for (std::size_t i = 0; i < line.x.size(); ++i) {
        const double point[] = {line.x[i], line.y[i]};
        EXPECT_NEAR(test_statistic(likelihood, best, point), contour.threshold,
                    3e-4 * contour.threshold);
      }
      // Extents ±√t σ and the area π t σ_a σ_b √(1 − ρ²); the small region has few cells.
      const double reach = std::sqrt(contour.threshold), rough = contour.level > 0.5 ? 1.0 : 10.0;
      const auto [low, high] = std::minmax_element(line.x.begin(), line.x.end());
      EXPECT_NEAR(*high, 1.0 + reach * a, 4e-3 * rough * reach * a);
      EXPECT_NEAR(*low, 1.0 - reach * a, 4e-3 * rough * reach * a);
      EXPECT_NEAR(area(line) / (std::numbers::pi * contour.threshold * a * b * std::sqrt(det)), 1.0,
                  4e-3 * rough);
    }
  }
}

TEST(Contours, OfANormalMeanAndWidthAreKnown) {
  // −2 log Λ = n (2 log(σ/s) + (s² + (m − μ)²) / σ² − 1), not symmetric in σ.
  const double n = 20.0, m = 0.3, s = 1.2;
  const auto likelihood = testing::normal_likelihood(
      n, m, s * s, ParameterSpace({{"mu", -20, 20, {}}, {"sigma", 0.05, 20, {}}}));
  const auto found = contours(likelihood, fit(likelihood), 0, 1, {.levels = {0.95}});
  ASSERT_EQ(found[0].lines.size(), 1U);
  EXPECT_GT(found[0].lines[0].x.size(), 60U);
  for (std::size_t i = 0; i < found[0].lines[0].x.size(); ++i) {
    const double mu = found[0].lines[0].x[i], sigma = found[0].lines[0].y[i];
    const double statistic =
        n * (2.0 * std::log(sigma / s) + (s * s + (m - mu) * (m - mu)) / (sigma * sigma) - 1.0);
    EXPECT_NEAR(statistic, chi2_quantile(0.95, 2.0), 1e-3);
  }
}

TEST(Contours, ProfileTheOtherParameters) {
  // The contour of (a, c) of three correlated parameters is that of the block of A⁻¹.
  const Parabola likelihood(
      ParameterSpace({{"a", -10, 10, {}}, {"b", -10, 10, {}}, {"c", -10, 10, {}}}), {1.0, 2.0, 0.5},
      Matrix(3, 3, {4, 1, 1, 1, 3, 1, 1, 1, 2}));
  const auto best = fit(likelihood);
  std::vector<std::vector<Contour>> found;
  for (const std::size_t count : {1, 2}) {
    set_threads(count);
    found.push_back(contours(likelihood, best, 0, 2));
  }
  set_threads(0);
  EXPECT_EQ(found[0][1].lines[0].x, found[1][1].lines[0].x);
  const auto& line = found[0][1].lines[0];
  // Block [[5, −2], [−2, 11]] / 17 and its inverse [[11, 2], [2, 5]] · 17 / 51.
  for (std::size_t i = 0; i < line.x.size(); ++i) {
    const double u = line.x[i] - 1.0, v = line.y[i] - 0.5;
    EXPECT_NEAR((11.0 * u * u + 4.0 * u * v + 5.0 * v * v) / 3.0, found[0][1].threshold, 1e-3);
  }
}

TEST(Contours, EndAtTheBounds) {
  // A circle of radius 2 around (0, 0) of which a ≥ −1 and b ≥ 0 remain.
  const Parabola likelihood(ParameterSpace({{"a", -1, 10, {}}, {"b", 0, 10, {}}}), {0.0, 0.0},
                            Matrix(2, 2, {1, 0, 0, 1}));
  ContourConfig config;
  config.levels = {0.9};
  config.thresholds = {4.0};
  const auto contour = contours(likelihood, fit(likelihood), 0, 1, config)[0];
  EXPECT_TRUE(contour.touches_bound);
  ASSERT_EQ(contour.lines.size(), 1U);
  const auto& line = contour.lines[0];
  EXPECT_FALSE(line.closed);
  for (std::size_t i = 0; i < line.x.size(); ++i)
    EXPECT_NEAR(std::hypot(line.x[i], line.y[i]), 2.0, 1e-4);
  // From (2, 0) to (−1, √3), in either direction.
  const bool forwards = line.x.front() > line.x.back();
  EXPECT_NEAR(forwards ? line.x.front() : line.x.back(), 2.0, 1e-4);
  EXPECT_EQ(forwards ? line.y.front() : line.y.back(), 0.0);
  EXPECT_EQ(forwards ? line.x.back() : line.x.front(), -1.0);
  EXPECT_LT(longest_step(line), 0.2);
}

TEST(Contours, ARegionWithoutALine) {
  const Parabola likelihood(ParameterSpace({{"a", -1, 1, {}}, {"b", -1, 1, {}}}), {0.0, 0.0},
                            Matrix(2, 2, {0.1, 0, 0, 0.1}));
  const auto contour = contours(likelihood, fit(likelihood), 0, 1)[0];
  EXPECT_TRUE(contour.lines.empty());
  EXPECT_TRUE(contour.touches_bound);
}

TEST(Contours, OfTwoHillsAreTwoLines) {
  // Equal hills at (±2, 0): apart at the lower threshold, joined at the higher one.
  const FunctionLikelihood likelihood(
      ParameterSpace({{"a", -8, 8, {}}, {"b", -8, 8, {}}}), [](std::span<const double> t) {
        return std::log(std::exp(-0.5 * (std::pow(t[0] - 2.0, 2) + t[1] * t[1])) +
                        std::exp(-0.5 * (std::pow(t[0] + 2.0, 2) + t[1] * t[1])));
      });
  const auto best = fit(likelihood);
  ContourConfig config;
  config.levels = {0.4, 0.9};
  config.thresholds = {1.0, 6.0};  // the pass is at 4 − 2 log 2 = 2.6
  config.x = config.y = FitRange{-7.0, 7.0};
  const auto found = contours(likelihood, best, 0, 1, config);
  EXPECT_EQ(found[0].lines.size(), 2U);
  EXPECT_EQ(found[1].lines.size(), 1U);
  for (const auto& contour : found)
    for (const auto& line : contour.lines) {
      EXPECT_TRUE(line.closed);
      for (std::size_t i = 0; i < line.x.size(); ++i) {
        const double point[] = {line.x[i], line.y[i]};
        EXPECT_NEAR(test_statistic(likelihood, best, point), contour.threshold, 1e-3);
      }
    }
}

TEST(Contours, OfARingAreTwoLines) {
  // ℓ depends on the radius alone: the region is a ring, which is nowhere star-shaped.
  const FunctionLikelihood likelihood(
      ParameterSpace({{"a", -3, 3, {}}, {"b", -3, 3, {}}}), [](std::span<const double> t) {
        return -0.5 * std::pow((std::hypot(t[0], t[1]) - 1.5) / 0.2, 2) + 1e-3 * t[0];
      });
  FitOptions options;
  options.start = {1.5, 0.0};
  const auto best = fit(likelihood, options);
  ContourConfig config;
  config.levels = {0.683};
  config.thresholds = {4.0};
  config.x = config.y = FitRange{-2.5, 2.5};
  const auto contour = contours(likelihood, best, 0, 1, config)[0];
  ASSERT_EQ(contour.lines.size(), 2U);
  std::vector<double> radii;
  for (const auto& line : contour.lines) radii.push_back(std::sqrt(area(line) / std::numbers::pi));
  std::sort(radii.begin(), radii.end());
  EXPECT_NEAR(radii[0], 1.1, 0.01);
  EXPECT_NEAR(radii[1], 1.9, 0.01);
}

TEST(Contours, ABananaIsFollowedToItsTips) {
  // Rosenbrock's valley b = a²: bent, and thin across.
  const FunctionLikelihood likelihood(
      ParameterSpace({{"a", -6, 6, {}}, {"b", -10, 40, {}}}), [](std::span<const double> t) {
        return -0.5 * t[0] * t[0] - 0.5 * std::pow((t[1] - t[0] * t[0]) / 0.3, 2);
      });
  const auto best = fit(likelihood);
  ContourConfig config;
  config.levels = {0.99};
  const auto contour = contours(likelihood, best, 0, 1, config)[0];
  ASSERT_EQ(contour.lines.size(), 1U);
  const auto& line = contour.lines[0];
  EXPECT_TRUE(line.closed);
  const auto [low, high] = std::minmax_element(line.x.begin(), line.x.end());
  EXPECT_NEAR(*high, std::sqrt(contour.threshold), 0.02);
  EXPECT_NEAR(*low, -std::sqrt(contour.threshold), 0.02);
  EXPECT_NEAR(area(line), std::numbers::pi * contour.threshold * 0.3, 0.2);
}

TEST(Contours, SayWhatIsWrong) {
  const Parabola likelihood(ParameterSpace({{"a", -1, 1, {}}, {"b", -1, 1, {}}}), {0.0, 0.0},
                            Matrix(2, 2, {9, 0, 0, 9}));
  const auto best = fit(likelihood);
  EXPECT_THROW(contours(likelihood, best, 0, 0), ArgumentError);
  EXPECT_THROW(contours(likelihood, best, 0, 2), ArgumentError);
  EXPECT_THROW(contours(likelihood, best, 0, 1, {.levels = {1.5}}), ArgumentError);
  EXPECT_THROW(contours(likelihood, best, 0, 1, {.levels = {0.5}, .thresholds = {1.0, 2.0}}),
               ArgumentError);
  EXPECT_THROW(contours(likelihood, best, 0, 1, {.x = FitRange{0.5, 0.2}}), ArgumentError);
  EXPECT_TRUE(contours(likelihood, best, 0, 1, {.levels = {}}).empty());
}

}  // namespace
}  // namespace neyman
