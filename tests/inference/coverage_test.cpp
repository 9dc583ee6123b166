#include "neyman/inference/coverage.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "known_likelihoods.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman {
namespace {

using testing::FunctionLikelihood;
using testing::Parabola;

TEST(CriticalValues, AreOrderStatistics) {
  // 99 statistics 1, …, 99: k = ⌈0.95 · 100⌉ = 95.
  std::vector<double> statistics;
  for (int i = 99; i >= 1; --i) statistics.push_back(i);
  const std::vector<double> levels = {0.5, 0.95, 0.999};
  const auto values = critical_values(statistics, levels, 1.0);
  EXPECT_EQ(values[0].toys, 50.0);
  EXPECT_EQ(values[1].toys, 95.0);
  EXPECT_TRUE(values[1].enough);
  EXPECT_NEAR(values[1].asymptotic, 3.841458820694124, 1e-9);
  // Binomial(99, ½) has a standard deviation of 4.97: the 68.3 % interval is about ± 5.
  EXPECT_NEAR(values[0].low, 45.0, 1.0);
  EXPECT_NEAR(values[0].high, 55.0, 1.0);
  EXPECT_FALSE(values[2].enough);
  EXPECT_EQ(values[2].toys, 99.0);
  EXPECT_THROW(critical_values({}, levels, 1.0), ArgumentError);
}

TEST(CriticalValues, IntervalsHoldTheQuantile) {
  // 400 samples of 200 exponentials: the interval holds the true quantile with at least 68.3 % by
  // construction, at most about 6 % more; ± 5 standard errors of 0.023.
  const std::vector<double> levels = {0.9};
  int inside = 0;
  double below = 0.0;
  for (std::uint64_t repetition = 0; repetition < 400; ++repetition) {
    RandomStream random(repetition, "critical");
    std::vector<double> statistics(200);
    for (double& value : statistics) value = random.exponential();
    const auto value = critical_values(statistics, levels, 2.0)[0];
    const double truth = -std::log(0.1);
    inside += value.low <= truth && truth < value.high ? 1 : 0;
    below += (1.0 - std::exp(-value.toys)) / 400.0;
  }
  EXPECT_GT(inside, 400 * 0.683 - 5 * 9.3);
  EXPECT_LT(inside, 400 * 0.745 + 5 * 9.3);
  // The expected coverage of the critical value is k / (n + 1) = 181 / 201; its spread over
  // samples is 0.021, so that of the mean 0.00105; 5 of these.
  EXPECT_NEAR(below, 181.0 / 201.0, 5 * 0.00105);
}

/// The mean of n normal events of unknown width, with σ as a nuisance parameter: −2 log Λ is
/// known, and for small n far from χ².
Experiment normal_sample(std::size_t n, const ParameterSpace& space) {
  return [=](std::span<const double> point, RandomStream& random) -> std::unique_ptr<Likelihood> {
    std::vector<double> x(n);
    double mean = 0.0, variance = 0.0;
    for (double& value : x) {
      value = point[0] + point[1] * random.normal();
      mean += value / static_cast<double>(n);
    }
    for (const double value : x) variance += std::pow(value - mean, 2) / static_cast<double>(n);
    return std::make_unique<FunctionLikelihood>(
        testing::normal_likelihood(static_cast<double>(n), mean, variance, space));
  };
}

TEST(Coverage, OfAFewNormalEventsNeedsSimulatedCriticalValues) {
  const ParameterSpace space({{"mu", -20, 20, {}}, {"sigma", 0.02, 20, {}}});
  CoverageConfig config;
  config.points = Matrix(2, 2, {0.0, 1.0, 2.0, 0.5});
  config.datasets = 600;
  config.critical_datasets = 999;
  config.seed = 11;
  config.interest = {0};
  const auto points = run_coverage(config, space, normal_sample(5, space));
  ASSERT_EQ(points.size(), 2U);
  for (const auto& found : points) {
    EXPECT_EQ(found.ensemble.failed, 0U);
    // The profile over σ is n log(1 + t²/(n − 1)), t Student with 4 degrees of freedom. Below
    // χ²₁'s quantile at 0.683, 1.0012: P(|t| < √(4 (e^(1.0012/5) − 1))) = P(|t| < 0.9413) = 0.600;
    // at 0.95, 3.8415: P(|t| < 2.1499) = 0.902. Binomial errors of 600: 0.020 and 0.0122; 5 of
    // these, false alarm 6e-7 each.
    const auto& profile = found.ensemble.profiles[0];
    EXPECT_NEAR(profile.coverage[0], 0.600, 5 * 0.020);
    EXPECT_NEAR(profile.coverage[1], 0.902, 5 * 0.0122);
    EXPECT_LT(profile.coverage[1], 0.95);
    EXPECT_LT(found.ensemble.coverage[1], 0.94);
    // With critical values from 999 datasets: nominal, with both binomial errors.
    for (const auto* coverage : {&found.coverage_critical, &found.profile_coverage_critical[0]}) {
      EXPECT_NEAR((*coverage)[0], 0.683, 5 * std::hypot(0.019, 0.0147));
      EXPECT_NEAR((*coverage)[1], 0.95, 5 * std::hypot(0.0089, 0.0069));
    }
    // The exact 95 % critical value is 5 log(1 + 2.776²/4) = 5.371.
    const auto& critical = found.profile_critical[0][1];
    EXPECT_NEAR(critical.asymptotic, 3.8415, 1e-3);
    EXPECT_NEAR(critical.toys, 5.371, 5 * (critical.high - critical.low) / 2.0);
    EXPECT_LE(critical.low, critical.toys);
    EXPECT_GE(critical.high, critical.toys);
  }
}

TEST(Coverage, OfANormalMeanIsExact) {
  // The parabola is exact, so Wilks is: 800 datasets at each of three points, ± 5 binomial errors.
  const ParameterSpace space({{"a", -10, 10, {}}, {"b", -10, 10, {}}});
  const Experiment experiment = [&](std::span<const double> point,
                                    RandomStream& random) -> std::unique_ptr<Likelihood> {
    // A = [[4, 1], [1, 2]] = L Lᵀ; θ̂ − θ = L⁻ᵀ z has the covariance A⁻¹.
    const double l00 = 2.0, l10 = 0.5, l11 = std::sqrt(1.75);
    const double z0 = random.normal(), z1 = random.normal();
    const double d1 = z1 / l11, d0 = (z0 - l10 * d1) / l00;
    return std::make_unique<Parabola>(space, std::vector{point[0] + d0, point[1] + d1},
                                      Matrix(2, 2, {4, 1, 1, 2}));
  };
  CoverageConfig config;
  config.points = Matrix(3, 2, {0, 0, 1, -2, 5, 5});
  config.datasets = 800;
  config.critical_datasets = 0;
  config.interest = {0, 1};
  std::vector<std::vector<CoveragePoint>> results;
  for (const std::size_t count : {1, 2}) {
    set_threads(count);
    results.push_back(run_coverage(config, space, experiment));
  }
  set_threads(0);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& found = results[0][i];
    EXPECT_EQ(found.ensemble.estimates, results[1][i].ensemble.estimates);
    EXPECT_EQ(found.ensemble.failed, 0U);
    EXPECT_NEAR(found.ensemble.coverage[0], 0.683, 5 * 0.0165);
    EXPECT_NEAR(found.ensemble.coverage[1], 0.95, 5 * 0.0077);
    EXPECT_NEAR(found.coverage_error[1], 0.0077, 0.004);
    EXPECT_GT(found.ensemble.wilks.p_value, 1e-6);
    for (const auto& profile : found.ensemble.profiles) {
      EXPECT_NEAR(profile.coverage[0], 0.683, 5 * 0.0165);
      EXPECT_NEAR(profile.coverage[1], 0.95, 5 * 0.0077);
      EXPECT_GT(profile.wilks.p_value, 1e-6);
    }
    EXPECT_TRUE(found.critical.empty());
  }
}

TEST(Coverage, SaysWhatIsWrong) {
  const ParameterSpace space({{"mu", -20, 20, {}}, {"sigma", 0.02, 20, {}}});
  CoverageConfig config;
  config.points = Matrix(1, 2, {0.0, 30.0});
  EXPECT_THROW(run_coverage(config, space, normal_sample(5, space)), ArgumentError);
  config.points = Matrix(1, 1, {0.0});
  EXPECT_THROW(run_coverage(config, space, normal_sample(5, space)), ArgumentError);
  config.points = Matrix(1, 2, {0.0, 1.0});
  config.interest = {2};
  EXPECT_THROW(run_coverage(config, space, normal_sample(5, space)), ArgumentError);
}

}  // namespace
}  // namespace neyman
