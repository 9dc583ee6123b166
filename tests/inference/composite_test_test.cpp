#include "neyman/inference/composite_test.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "known_likelihoods.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/inference/statistics.hpp"

namespace neyman {
namespace {

using testing::FunctionLikelihood;
using testing::Parabola;

/// Counts in a region with signal and background, n ~ Poisson(s + b).
std::shared_ptr<const Likelihood> counting(double n) {
  return std::make_shared<FunctionLikelihood>(
      ParameterSpace({{"s", 0.0, 100.0, {}}, {"b", 0.0, 200.0, {}}}),
      [=](std::span<const double> t) {
        const double expected = t[0] + t[1];
        if (expected < 0.0 || (expected == 0.0 && n > 0.0)) return Likelihood::forbidden;
        return n == 0.0 ? -expected : n * std::log(expected) - expected;
      });
}

/// The on/off problem: the background is counted in a region τ times as large.
ConstrainedLikelihood on_off(double on, double off, double tau) {
  return {counting(on), {Constraint::poisson(1, off, tau)}};
}

/// −2 log Λ(s) with b profiled, in closed form: b̂(s) solves a quadratic equation.
double profiled_statistic(double on, double off, double tau, double s) {
  const auto value = [&](double signal, double b) {
    return on * std::log(signal + b) - (signal + b) + off * std::log(tau * b) - tau * b;
  };
  const double p = on + off - (1.0 + tau) * s;
  const double b = (p + std::sqrt(p * p + 4.0 * (1.0 + tau) * s * off)) / (2.0 * (1.0 + tau));
  return 2.0 * (value(on - off / tau, off / tau) - value(s, b));
}

TEST(CompositeTest, OnOffIsTheFormulaOfLiAndMa) {
  const double on = 25.0, off = 36.0, tau = 3.0, alpha = 1.0 / tau;
  CompositeTestConfig config;
  config.null.fixed = {0.0, std::nullopt};
  const auto test = composite_test(config, on_off(on, off, tau));
  const double expected = 2.0 * (on * std::log((1.0 + alpha) / alpha * on / (on + off)) +
                                 off * std::log((1.0 + alpha) * off / (on + off)));
  EXPECT_TRUE(test.ok());
  EXPECT_NEAR(test.statistic, expected, 1e-5);
  EXPECT_NEAR(test.null_fit.point[1], (on + off) / (1.0 + tau), 1e-3);
  // s = 0 is the end of its range: half of χ² with one degree.
  EXPECT_TRUE(test.mixed);
  EXPECT_NEAR(test.p_value, 0.5 * chi2_tail(expected), 1e-6);
  config.null.fixed = {5.0, std::nullopt};
  const auto inner = composite_test(config, on_off(on, off, tau));
  EXPECT_FALSE(inner.mixed);
  EXPECT_NEAR(inner.statistic, profiled_statistic(on, off, tau, 5.0), 1e-5);
  EXPECT_NEAR(inner.p_value, chi2_tail(inner.statistic), 1e-12);
}

TEST(CompositeTest, OnOffIntervalsAreTheProfile) {
  const double on = 12.0, off = 10.0, tau = 2.0;
  const auto likelihood = on_off(on, off, tau);
  const auto best = fit(likelihood);
  EXPECT_EQ(best.status, FitStatus::converged);
  EXPECT_NEAR(best.point[0], on - off / tau, 1e-3);
  const auto interval = likelihood_interval(likelihood, best, 0, 0.683, false);
  EXPECT_TRUE(interval.ok) << interval.message;
  for (const double end : {interval.low, interval.high})
    EXPECT_NEAR(profiled_statistic(on, off, tau, end), chi2_quantile(0.683), 1e-4);
}

TEST(CompositeTest, DegreesOfFreedom) {
  const Parabola likelihood(
      ParameterSpace({{"a", -10, 10, {}}, {"b", -10, 10, {}}, {"c", -10, 10, {}}}), {1.0, 2.0, 0.5},
      Matrix(3, 3, {4, 0, 0, 0, 1, 0, 0, 0, 2}));
  CompositeTestConfig config;
  config.null.fixed = {0.0, std::nullopt, 0.0};
  auto test = composite_test(config, likelihood);
  EXPECT_NEAR(test.statistic, 4.0 + 0.5, 1e-6);
  EXPECT_EQ(test.degrees, 2.0);
  EXPECT_NEAR(test.p_value, chi2_tail(4.5, 2.0), 1e-6);
  // b ≤ 0.5, against more: half and half of one more degree.
  config.null.ranges = {std::nullopt, FitRange{-10.0, 0.5}, std::nullopt};
  test = composite_test(config, likelihood);
  EXPECT_NEAR(test.statistic, 4.5 + 2.25, 1e-6);
  EXPECT_TRUE(test.mixed);
  EXPECT_EQ(test.degrees, 3.0);
  EXPECT_NEAR(test.p_value, 0.5 * chi2_tail(6.75, 2.0) + 0.5 * chi2_tail(6.75, 3.0), 1e-6);
  // An interval on both sides: a full degree.
  config.null.fixed = {};
  config.null.ranges = {FitRange{-0.5, 0.5}, std::nullopt, std::nullopt};
  test = composite_test(config, likelihood);
  EXPECT_NEAR(test.statistic, 4.0 * 0.25, 1e-6);
  EXPECT_FALSE(test.mixed);
  EXPECT_NEAR(test.p_value, chi2_tail(1.0), 1e-6);
  // Inside the null: nothing speaks against it.
  config.null.ranges = {FitRange{-10.0, 1.5}, std::nullopt, std::nullopt};
  test = composite_test(config, likelihood);
  EXPECT_NEAR(test.statistic, 0.0, 1e-9);
  EXPECT_GT(test.p_value, 0.49);
}

/// n events of N(a, 1), of which the likelihood of a ∈ [0, 5] is known by their mean.
Experiment normal_means(std::size_t n, double low) {
  return [=](std::span<const double> point, RandomStream& random) -> std::unique_ptr<Likelihood> {
    double mean = 0.0;
    for (std::size_t i = 0; i < n; ++i)
      mean += (point[0] + random.normal()) / static_cast<double>(n);
    return std::make_unique<Parabola>(ParameterSpace({{"a", low, 5.0, {}}}), std::vector{mean},
                                      Matrix(1, 1, {static_cast<double>(n)}));
  };
}

TEST(CompositeTest, SimulatedAndAsymptoticPValuesAgreeWhereBothAreExact) {
  // a = 0 against a > 0, with a mean 1.5 standard errors above: the p-value is that of one tail.
  const Parabola data(ParameterSpace({{"a", 0.0, 5.0, {}}}), {0.5}, Matrix(1, 1, {9.0}));
  CompositeTestConfig config;
  config.null.fixed = {0.0};
  config.datasets = 2000;
  config.seed = 2;
  std::vector<CompositeTest> tests;
  for (const std::size_t count : {1, 2}) {
    set_threads(count);
    tests.push_back(composite_test(config, data, normal_means(9, 0.0)));
  }
  set_threads(0);
  const double expected = 0.5 * std::erfc(1.5 / std::sqrt(2.0));
  EXPECT_NEAR(tests[0].p_value, expected, 1e-6);
  // 2000 datasets: a binomial error of 0.0056; 5 of them, false alarm 6e-7.
  EXPECT_NEAR(*tests[0].simulated_p_value, expected, 5.0 * 0.0056);
  EXPECT_EQ(tests[0].failed, 0U);
  EXPECT_EQ(tests[0].null_statistics, tests[1].null_statistics);
}

TEST(CompositeTest, FailedDatasetsCountAgainstTheData) {
  const Parabola data(ParameterSpace({{"a", -5.0, 5.0, {}}}), {2.0}, Matrix(1, 1, {9.0}));
  CompositeTestConfig config;
  config.null.fixed = {0.0};
  config.datasets = 40;
  const auto sometimes = [](std::span<const double> point,
                            RandomStream& random) -> std::unique_ptr<Likelihood> {
    if (random.uniform() < 0.5) throw ArgumentError("simulator: crashed");
    return normal_means(9, -5.0)(point, random);
  };
  const auto test = composite_test(config, data, sometimes);
  EXPECT_GT(test.failed, 5U);
  EXPECT_EQ(test.failed + test.null_statistics.size(), 40U);
  EXPECT_NEAR(*test.simulated_p_value, (1.0 + static_cast<double>(test.failed)) / 41.0, 1e-12);
  const auto never = [](std::span<const double>, RandomStream&) -> std::unique_ptr<Likelihood> {
    throw ArgumentError("simulator: crashed");
  };
  EXPECT_THROW(composite_test(config, data, never), ArgumentError);
}

TEST(CompositeTest, SaysWhatIsWrong) {
  const Parabola data(ParameterSpace({{"a", -5.0, 5.0, {}}}), {2.0}, Matrix(1, 1, {9.0}));
  CompositeTestConfig config;
  EXPECT_THROW(composite_test(config, data), ArgumentError);
  config.null.fixed = {7.0};
  EXPECT_THROW(composite_test(config, data), ArgumentError);
  config.null.fixed = {1.0};
  config.null.ranges = {FitRange{0.0, 1.0}};
  EXPECT_THROW(composite_test(config, data), ArgumentError);
  config.null.ranges = {};
  config.datasets = 10;
  EXPECT_THROW(composite_test(config, data), ArgumentError);
}

}  // namespace
}  // namespace neyman
