#include "neyman/inference/parameterized_likelihood.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "neyman/core/error.hpp"
#include "neyman/inference/fit.hpp"
#include "neyman/ratios/separable_ratio.hpp"
#include "neyman/simulators/empirical.hpp"
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

}  // namespace
}  // namespace neyman
