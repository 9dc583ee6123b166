#include "neyman/measurements/toys.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "known_models.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/inference/statistics.hpp"
#include "neyman/measurements/asymptotics.hpp"

namespace neyman {
namespace {

using testing::counting_workspace;
using testing::on_off_workspace;
using testing::reference_model;
using testing::reference_names;

double poisson(int n, double mean) {
  return std::exp(n * std::log(mean) - mean - std::lgamma(n + 1.0));
}
/// P(n ≤ most).
double at_most(int most, double mean) {
  double sum = 0.0;
  for (int n = 0; n <= most; ++n) sum += poisson(n, mean);
  return sum;
}

TEST(Toys, PValuesOfACountAreItsProbabilities) {
  // q̃ falls with n, so that CL_sb = P(n ≤ observed | μ s + b), and CL_b the same at b. 20 000 toys:
  // 5 standard errors, false alarm 6e-7 for each of 4 numbers.
  const StatisticalModel model(counting_workspace(3.0, 4.0, 3.0));
  ToyOptions options;
  options.toys = 20000;
  options.seed = 2;
  for (const double tested : {1.0, 2.0}) {
    const auto test = toy_test(model, model.observed(), tested, TestStatistic::q_tilde, options);
    const double with = at_most(3, 3.0 * tested + 4.0), without = at_most(3, 4.0);
    EXPECT_NEAR(test.cl_sb.value, with, 5.0 * test.cl_sb.error);
    EXPECT_NEAR(test.cl_b.value, without, 5.0 * test.cl_b.error);
    EXPECT_NEAR(test.cl_s.value, with / without, 5.0 * test.cl_s.error);
    EXPECT_NEAR(test.cl_sb.error, std::sqrt(with * (1.0 - with) / 20000.0), 1e-3);
    EXPECT_EQ(test.failed, 0u);
    // The median without signal is n = 4.
    EXPECT_NEAR(test.expected_cl_s[2], at_most(4, 3.0 * tested + 4.0) / at_most(4, 4.0), 0.02);
  }
}

TEST(Toys, AreTheSameForAnyThreadsAndInParts) {
  const auto model = reference_model("control");
  ToyOptions options;
  options.toys = 150;
  options.seed = 4;
  const auto draw = [&] {
    return toy_statistics(model, model.start(), TestStatistic::q_tilde, 1.0, options);
  };
  set_threads(1);
  const auto one = draw();
  set_threads(2);
  const auto two = draw();
  set_threads(0);
  EXPECT_EQ(one.statistics, two.statistics);
  EXPECT_EQ(one.estimates, two.estimates);
  options.toys = 70;
  auto parts = draw().statistics;
  options.first = 70;
  options.toys = 80;
  const auto second = draw().statistics;
  parts.insert(parts.end(), second.begin(), second.end());
  EXPECT_EQ(parts, one.statistics);
}

TEST(Toys, FollowTheAsymptoticDistribution) {
  // t_μ of the true value is χ²₁ where there are many events; KS p-value below 1e-4 is the false
  // alarm rate. With auxiliary observations that did not fluctuate it would be narrower.
  const StatisticalModel model(on_off_workspace(100.0, 2000.0, 60.0, 2100.0, -20.0));
  ToyOptions options;
  options.toys = 3000;
  options.seed = 7;
  const auto sample =
      toy_statistics(model, std::vector<double>{1.0, 1.0}, TestStatistic::t, 1.0, options);
  EXPECT_EQ(sample.failed, 0u);
  EXPECT_GT(ks_test_chi2(sample.statistics).p_value, 1e-4);
  // σ = √(2100 + 60²) / 100; the standard deviation over 3000 toys to 5 standard errors (6e-7).
  const double sigma = std::sqrt(2100.0 + 3600.0) / 100.0;
  EXPECT_NEAR(standard_deviation(sample.estimates), sigma, 5.0 * sigma / std::sqrt(6000.0));
  EXPECT_NEAR(mean(sample.estimates), 1.0, 5.0 * sigma / std::sqrt(3000.0));
}

TEST(Toys, AllReferenceModelsAreFittedWithoutFailures) {
  for (const auto* name : reference_names) {
    const auto model = reference_model(name);
    ToyOptions options;
    options.toys = 500;
    for (const double truth : {0.0, 1.0}) {
      auto point = model.start();
      point[0] = truth;
      const auto sample = toy_statistics(model, point, TestStatistic::q_tilde, 1.0, options);
      EXPECT_EQ(sample.failed, 0u) << name;
      EXPECT_EQ(sample.statistics.size(), 500u);
    }
  }
}

TEST(Toys, LimitIsBetweenTheValuesAndNearTheAsymptoticOne) {
  const auto model = reference_model("counting");
  ToyOptions options;
  options.toys = 2000;
  options.seed = 1;
  const std::vector<double> values{0.5, 1.0, 1.5, 2.0, 2.5, 3.0};
  const auto toys =
      toy_upper_limit(model, model.observed(), values, 0.95, TestStatistic::q_tilde, options);
  const auto formula = upper_limit(model, model.observed());
  // CL_s of 0.05 ± 0.006 is about 3 % of the limit; 6 of those, false alarm 2e-9.
  EXPECT_NEAR(toys.observed, formula.observed, 0.18 * formula.observed);
  EXPECT_NEAR(toys.expected[2], formula.expected[2], 0.18 * formula.expected[2]);
  EXPECT_LT(toys.expected[1], toys.expected[2]);
  EXPECT_EQ(toys.tests.size(), values.size());
  options.toys = 200;
  EXPECT_THROW(
      toy_upper_limit(model, model.observed(), {0.2, 0.5}, 0.95, TestStatistic::q_tilde, options),
      ArgumentError);
  EXPECT_THROW(
      toy_upper_limit(model, model.observed(), {8.0, 9.0}, 0.95, TestStatistic::q_tilde, options),
      ArgumentError);
  EXPECT_THROW(toy_upper_limit(model, model.observed(), {2.0, 1.0}), ArgumentError);
}

/// P(data at least as unlikely as n by the likelihood ratio | μ), with the background b.
double unified_p_value(int observed, double mu, double background) {
  const auto order = [&](int n) {
    const double best = std::max(0.0, n - background);
    return poisson(n, mu + background) / poisson(n, best + background);
  };
  double sum = 0.0;
  for (int n = 0; n < 60; ++n)
    if (order(n) <= order(observed) * (1.0 + 1e-9)) sum += poisson(n, mu + background);
  return std::min(sum, 1.0);
}

TEST(Toys, UnifiedIntervalsAreThoseOfFeldmanAndCousins) {
  // The p-values are exact sums; 5 standard errors, false alarm 6e-7 for each of 24.
  ToyOptions options;
  options.toys = 4000;
  options.seed = 9;
  std::vector<double> values;
  for (int i = 0; i <= 11; ++i) values.push_back(i == 0 ? 0.0 : 0.8 * i);
  for (const int observed : {2, 7}) {
    const StatisticalModel model(counting_workspace(1.0, 3.0, observed, 0.0, 30.0));
    auto scan = values;
    scan.push_back(12.0);
    const auto found = feldman_cousins(model, model.observed(), scan, 0.9, options);
    for (std::size_t i = 0; i < scan.size(); ++i) {
      const double exact = unified_p_value(observed, scan[i], 3.0);
      EXPECT_NEAR(found.p_values[i], exact, 5.0 * std::sqrt(exact * (1.0 - exact) / 4000.0) + 1e-9)
          << observed << " " << scan[i];
    }
    // Table IV of their paper: [0, 3.04] for 2 events and [0.89, 9.53] for 7, to a step of the
    // scan.
    EXPECT_EQ(found.low_at_bound, observed == 2);
    EXPECT_NEAR(found.low, observed == 2 ? 0.0 : 0.89, 0.8);
    EXPECT_NEAR(found.high, observed == 2 ? 3.04 : 9.53, 0.9);
    EXPECT_FALSE(found.high_at_bound);
  }
  const StatisticalModel model(counting_workspace(1.0, 3.0, 7.0, 0.0, 30.0));
  EXPECT_THROW(feldman_cousins(model, model.observed(), {0.0, 2.0, 4.0}, 0.9, options),
               ArgumentError);
  EXPECT_THROW(feldman_cousins(model, model.observed(), {15.0, 20.0}, 0.9, options), ArgumentError);
}

TEST(Toys, FailedToysCountAgainstAnExclusion) {
  const ToySample sample{{1.0, 2.0, 3.0}, {0.0, 0.0, 0.0}, 1};
  EXPECT_EQ(toy_p_value(sample, 2.5).value, 0.5);
  EXPECT_EQ(toy_p_value(sample, 3.0).value, 0.5);  // a tie
  EXPECT_EQ(toy_p_value(sample, 4.0).value, 0.25);
  EXPECT_EQ(toy_p_value({}, 4.0).value, 1.0);
}

TEST(Toys, RefusesWrongArguments) {
  const auto model = reference_model("counting");
  ToyOptions none;
  none.toys = 0;
  EXPECT_THROW(toy_statistics(model, model.start(), TestStatistic::q_tilde, 1.0, none),
               ArgumentError);
  EXPECT_THROW(
      toy_statistics(model, std::vector<double>(model.size(), -7.0), TestStatistic::q_tilde, 1.0),
      ArgumentError);
  EXPECT_THROW(toy_test(model, model.observed(), 1.0, TestStatistic::t_tilde), ArgumentError);
}

}  // namespace
}  // namespace neyman
