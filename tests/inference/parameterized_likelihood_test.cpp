#include "neyman/inference/parameterized_likelihood.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "neyman/core/error.hpp"
#include "neyman/inference/constraint.hpp"
#include "neyman/inference/contour.hpp"
#include "neyman/inference/fit.hpp"
#include "neyman/ratios/separable_ratio.hpp"
#include "neyman/simulators/empirical.hpp"
#include "neyman/simulators/join.hpp"
#include "neyman/simulators/normal.hpp"

namespace neyman {
namespace {

const ParameterSpace line({{"mu", -2, 2, {}}, {"sigma", 0.8, 1.6, {}}});

DistributionPtr normal() {
  return std::make_shared<Normal>(Expression("mu", line), Expression("sigma", line));
}

Matrix data() { return sample(*normal(), std::vector{0.4, 1.2}, 2000, 1, "data"); }

TEST(DensityLikelihood, HasTheKnownMaximumOfTheNormal) {
  const Matrix x = data();
  double mean = 0.0, squares = 0.0;
  for (const double value : x.values()) mean += value / 2000.0;
  for (const double value : x.values()) squares += std::pow(value - mean, 2) / 2000.0;
  const auto best = fit(DensityLikelihood(line, normal(), x));
  ASSERT_EQ(best.status, FitStatus::converged);
  EXPECT_NEAR(best.point[0], mean, 1e-5);
  EXPECT_NEAR(best.point[1], std::sqrt(squares), 1e-5);
  EXPECT_NEAR(best.statistical_error(0), best.point[1] / std::sqrt(2000.0), 1e-4);
}

TEST(DensityLikelihood, WeightsAreRepetitions) {
  const Matrix x = data();
  Matrix twice = x;
  twice.append(x);
  const DensityLikelihood repeated(line, normal(), twice);
  const DensityLikelihood weighted(line, normal(), x, std::vector<double>(2000, 2.0));
  EXPECT_NEAR(repeated(std::vector{0.1, 0.9}), weighted(std::vector{0.1, 0.9}), 1e-8);
}

TEST(DensityLikelihood, NeedsADensity) {
  const auto events = std::make_shared<Empirical>(data());
  EXPECT_THROW(DensityLikelihood(line, events, data()), ArgumentError);
}

TEST(ParameterizedLikelihood, ALearnedRatioFitsLikeTheExactOne) {
  const ParameterSpace space({{"mu", -2, 2, {}}});
  const auto simulator = std::make_shared<Normal>(Expression("mu", space), Expression("1", space));
  const Design design(space);
  const auto events = simulate(*simulator, space, design, 40000, 2, "training");
  SeparableRatio::Config config;
  config.seed = 3;
  const SeparableRatio ratio(events, design, config);
  const Matrix x = sample(*simulator, std::vector{0.4}, 2000, 4, "data");
  const ParameterizedLikelihood learned(ratio, x);
  auto best = fit(learned);
  const auto exact = fit(DensityLikelihood(space, simulator, x));
  ASSERT_TRUE(best.ok());
  // Finite simulation alone limits θ̂ to about √(2000/40000) = 0.22 of its error: 3 of those.
  EXPECT_NEAR(best.point[0], exact.point[0], 0.67 * exact.statistical_error(0));
  EXPECT_NEAR(best.statistical_error(0), exact.statistical_error(0),
              0.1 * exact.statistical_error(0));
  add_simulation_covariance(best, learned.simulation_gradient_covariance(best.point));
  EXPECT_GT(best.simulation_error(0), 0.05 * exact.statistical_error(0));
  EXPECT_LT(best.simulation_error(0), 0.5 * exact.statistical_error(0));
}

/// A mean within a wide range, simulated at θ ~ N(0, 1) alone.
struct NarrowDesign {
  const ParameterSpace space{{{"mu", -20, 20, {}}}};
  const DistributionPtr simulator =
      std::make_shared<Normal>(Expression("mu", space), Expression("1", space));
  const Design design{space, {.kind = Design::Kind::normal, .mean = {0.0}, .sigma = {1.0}}};
  const SeparableRatio ratio{simulate(*simulator, space, design, 20000, 2, "training"), design, [] {
                               SeparableRatio::Config config;
                               config.hidden = {};
                               config.degree = 2;
                               config.seed = 3;
                               return config;
                             }()};
  Matrix data(double mu, std::size_t n = 25) const {
    return sample(*simulator, std::vector{mu}, n, 4, "data");
  }
};

const NarrowDesign& narrow() {
  static const NarrowDesign made;
  return made;
}

TEST(ParameterizedLikelihood, AllowsNoThetaWhereTheDesignHasNoEvents) {
  const ParameterizedLikelihood likelihood(narrow().ratio, narrow().data(0.5));
  ASSERT_NE(likelihood.region(), nullptr);
  std::vector<double> gradient = {7.0};
  for (const double mu : {-19.0, -8.0, 8.0, 19.0}) {
    EXPECT_EQ(likelihood(std::vector{mu}, gradient), Likelihood::forbidden) << mu;
    EXPECT_EQ(gradient[0], 0.0);
  }
  for (const double mu : {-3.0, 0.0, 3.0})
    EXPECT_GT(likelihood(std::vector{mu}, gradient), -1e4) << mu;
  // Many θ in one call, outside of the ranges too.
  const Matrix points(5, 1, {-30.0, -8.0, -1.0, 2.5, 8.0});
  const auto values = likelihood.at(points);
  ASSERT_EQ(values.size(), 5U);
  EXPECT_EQ(values[0], Likelihood::forbidden);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_EQ(values[i], likelihood(points.row(i))) << i;
  EXPECT_TRUE(likelihood.at(Matrix(0, 1)).empty());
  EXPECT_THROW(likelihood.at(Matrix(2, 2)), ArgumentError);
  // With a constraint too.
  const ConstrainedLikelihood constrained(
      std::make_shared<ParameterizedLikelihood>(narrow().ratio, narrow().data(0.5)),
      {Constraint::gaussian(0, 0.0, 2.0)});
  EXPECT_EQ(constrained.region(), likelihood.region());
  const auto more = constrained.at(points);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_EQ(more[i], constrained(points.row(i))) << i;
}

TEST(ParameterizedLikelihood, DesignsThatFillTheRangesForbidNothing) {
  const ParameterSpace space({{"mu", -2, 2, {}}});
  const auto simulator = std::make_shared<Normal>(Expression("mu", space), Expression("1", space));
  SeparableRatio::Config config;
  config.hidden = {};
  config.degree = 2;
  for (const auto kind : {Design::Kind::uniform, Design::Kind::sobol, Design::Kind::grid}) {
    const Design design(space, {.kind = kind, .points = {9}});
    const SeparableRatio ratio(simulate(*simulator, space, design, 200, 2, "training"), design,
                               config);
    const ParameterizedLikelihood likelihood(ratio,
                                             sample(*simulator, std::vector{0.4}, 5, 4, "data"));
    EXPECT_EQ(likelihood.region(), nullptr);
    for (int i = 0; i <= 4000; ++i)
      ASSERT_GT(likelihood(std::vector{-2.0 + 0.001 * i}), Likelihood::forbidden);
  }
}

TEST(ParameterizedLikelihood, FitsInsideOfTheDesignAreNotDisturbed) {
  const auto x = narrow().data(0.5);
  const ParameterizedLikelihood likelihood(narrow().ratio, x);
  double mean = 0.0;
  for (const double value : x.values()) mean += value / 25.0;
  const auto best = fit(likelihood);
  ASSERT_EQ(best.status, FitStatus::converged) << best.message;
  EXPECT_NEAR(best.point[0], mean, 0.03);
  const auto interval = likelihood_interval(likelihood, best, 0, 0.95, false);
  EXPECT_NEAR(interval.high - interval.low, 2.0 * 1.96 / 5.0, 0.03);
  EXPECT_FALSE(interval.low_at_edge || interval.high_at_edge);
  EXPECT_FALSE(interval.low_at_bound || interval.high_at_bound);
}

TEST(ParameterizedLikelihood, WhatEndsWhereTheDesignDoesSaysSo) {
  // The data are at six: the design ends at about five.
  const ParameterizedLikelihood likelihood(narrow().ratio, narrow().data(6.0));
  const auto best = fit(likelihood);
  EXPECT_EQ(best.status, FitStatus::at_bound);
  EXPECT_EQ(best.message, "mu ends at the edge of where the design has events");
  EXPECT_GT(best.point[0], 3.5);
  EXPECT_LT(best.point[0], 5.8);
  const auto interval = likelihood_interval(likelihood, best, 0, 0.95, false);
  EXPECT_TRUE(interval.high_at_edge);
  EXPECT_FALSE(interval.low_at_edge);
  EXPECT_FALSE(interval.high_at_bound);
  EXPECT_NEAR(interval.high, best.point[0], 1e-3);
  const auto found = scan(likelihood, best, 0, -20.0, 20.0, 41);
  EXPECT_EQ(found.failed, 0U);
  EXPECT_GT(found.statistic.front(), 1e11);
  EXPECT_GT(found.statistic.back(), 1e11);
}

TEST(ParameterizedLikelihood, RegionsOfTwoParametersEndWhereTheDesignDoes) {
  const ParameterSpace space({{"a", -15, 15, {}}, {"b", -15, 15, {}}});
  const auto simulator = std::make_shared<Join>(std::vector<DistributionPtr>{
      std::make_shared<Normal>(Expression("a", space), Expression("1", space)),
      std::make_shared<Normal>(Expression("b", space), Expression("1", space))});
  const Design design(space, {.kind = Design::Kind::normal,
                              .mean = {0.0, 0.0},
                              .sigma = {1.0, 1.0},
                              .correlation = Matrix(2, 2, {1.0, 0.9, 0.9, 1.0})});
  SeparableRatio::Config config;
  config.hidden = {};
  config.degree = 2;
  const SeparableRatio ratio(simulate(*simulator, space, design, 20000, 2, "training"), design,
                             config);
  const auto at = [&](double a, double b) {
    return ParameterizedLikelihood(ratio, sample(*simulator, std::vector{a, b}, 100, 4, "data"));
  };
  const auto inside = at(0.5, 0.4);
  const auto best = fit(inside);
  ASSERT_EQ(best.status, FitStatus::converged) << best.message;
  EXPECT_NEAR(best.point[0], 0.5, 0.5);
  for (const auto& contour : contours(inside, best, 0, 1, {})) {
    EXPECT_FALSE(contour.touches_edge);
    EXPECT_FALSE(contour.touches_bound);
    EXPECT_EQ(contour.lines.size(), 1U);
  }
  // Off the ridge: the nearest θ of the design is not far from where the fit ends.
  const auto outside = at(2.5, -2.5);
  const auto edge = fit(outside);
  EXPECT_EQ(edge.status, FitStatus::at_bound) << edge.message;
  EXPECT_NE(edge.message.find("ends at the edge of where the design has events"),
            std::string::npos);
  EXPECT_TRUE(ratio.region().holds(edge.point));
  const auto interval = likelihood_interval(outside, edge, 0, 0.683, false);
  EXPECT_TRUE(interval.low_at_edge || interval.high_at_edge);
  for (const auto& contour : contours(outside, edge, 0, 1, {})) EXPECT_TRUE(contour.touches_edge);
}

}  // namespace
}  // namespace neyman
