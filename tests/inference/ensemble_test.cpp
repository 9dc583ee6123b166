#include "neyman/inference/ensemble.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "known_likelihoods.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/inference/likelihood.hpp"
#include "neyman/ratios/decomposed_ratio.hpp"
#include "neyman/simulators/normal.hpp"
#include "ratios/two_components.hpp"

namespace neyman {
namespace {

EnsembleConfig config_at(double gamma, std::size_t datasets, std::size_t events) {
  EnsembleConfig config;
  config.point = {gamma};
  config.datasets = datasets;
  config.events = events;
  config.seed = 5;
  return config;
}

TEST(Ensemble, TheExactRatioCoversAndFollowsWilks) {
  const auto mixture = testing::normals({0.0, 2.0});
  const ExactMixtureRatio exact(mixture, {0.3});
  const auto result =
      run_ensemble(config_at(0.3, 1000, 500), testing::gamma_space(), *mixture, exact, &exact);
  EXPECT_EQ(result.exact->failed, 0U);
  EXPECT_EQ(result.bias[0], 0.0);  // the same ratio on both sides
  // Coverage of 1000 datasets is binomial: 0.683 ± 0.0147; 5 of these, false alarm 6e-7.
  EXPECT_NEAR(result.exact->coverage[0], 0.683, 5 * 0.0147);
  EXPECT_NEAR(result.exact->coverage[1], 0.95, 5 * 0.0069);
  EXPECT_GT(result.exact->wilks.p_value, 1e-6);
  // The mean estimate: the MLE is unbiased here to a small part of its standard error.
  EXPECT_NEAR(result.exact->means[0], 0.3, 5.5 * result.exact->spreads[0] / std::sqrt(1000.0));
}

TEST(Ensemble, SameNumbersForAnyNumberOfThreads) {
  const auto mixture = testing::normals({0.0, 2.0});
  const auto config = testing::logistic_config();
  const DecomposedRatio ratio(testing::draw_all(*mixture, 2000, config),
                              MixtureWeights(mixture->weight_expressions(), 2), {0.3}, config);
  std::vector<EnsembleResult> results;
  for (const std::size_t count : {1, 2}) {
    set_threads(count);
    results.push_back(
        run_ensemble(config_at(0.3, 20, 300), testing::gamma_space(), *mixture, ratio, nullptr));
  }
  set_threads(0);
  EXPECT_EQ(results[0].approximate.estimates, results[1].approximate.estimates);
  EXPECT_EQ(results[0].simulation_share, results[1].simulation_share);
  EXPECT_FALSE(results[0].exact.has_value());
}

TEST(Ensemble, TheTableChangesNothingThatMatters) {
  // Enough events of one feature for a table; each dataset once more without it.
  const auto mixture = testing::normals({0.0, 2.0});
  const auto learning = testing::logistic_config();
  const DecomposedRatio ratio(testing::draw_all(*mixture, 2000, learning),
                              MixtureWeights(mixture->weight_expressions(), 2), {0.3}, learning);
  const auto config = config_at(0.3, 60, 5000);
  const auto result =
      run_ensemble(config, testing::gamma_space(), *mixture, ratio, nullptr).approximate;
  ASSERT_EQ(result.estimates.rows(), 60U);
  for (std::size_t d = 0; d < 60; ++d) {
    Matrix x(5000, 1);
    RandomStream random(config.seed, "ensemble", d);
    mixture->sample(config.point, random, x);
    const MixtureLikelihood likelihood(testing::gamma_space(), ratio, x);
    const auto best = fit(likelihood);
    EXPECT_NEAR(result.estimates(d, 0), best.point[0], 1e-3 * best.statistical_error(0));
    EXPECT_NEAR(result.statistic[d], test_statistic(likelihood, best, config.point), 1e-3);
  }
}

TEST(Ensemble, AnyLikelihoodGivesWhatMixturesGive) {
  const auto mixture = testing::normals({0.0, 2.0});
  const ExactMixtureRatio exact(mixture, {0.3});
  const auto config = config_at(0.3, 30, 200);
  const auto space = testing::gamma_space();
  const LikelihoodFactory factory = [&](Matrix x) {
    return std::make_unique<MixtureLikelihood>(space, exact, x);
  };
  const auto expected = run_ensemble(config, space, *mixture, exact, &exact);
  const auto found = run_ensemble(config, space, *mixture, EnsembleModel{factory, {}}, factory);
  EXPECT_EQ(found.exact->estimates, expected.exact->estimates);
  EXPECT_EQ(found.approximate.coverage, expected.exact->coverage);
  EXPECT_EQ(found.simulation_share, std::vector{0.0});
  const auto side = run_ensemble(config, space, make_experiment(*mixture, 200, factory));
  EXPECT_EQ(side.estimates, expected.exact->estimates);
}

TEST(Ensemble, ConstraintsAreMeasuredAnewInEachDataset) {
  // The mean of N(a + b, 1) with b known to ± 0.2 by a measurement of its own: a is unbiased and
  // spreads by √(1/n + 0.04), and its profile covers.
  const ParameterSpace space({{"a", -5, 5, {}}, {"b", -5, 5, {}}});
  const Normal simulator(Expression("a + b", space), Expression(1.0));
  const LikelihoodFactory factory = [&](Matrix x) {
    const auto n = static_cast<double>(x.rows());
    const double centre = mean(x.values());
    return std::make_unique<testing::FunctionLikelihood>(space, [=](std::span<const double> t) {
      return -0.5 * n * std::pow(t[0] + t[1] - centre, 2);
    });
  };
  auto config = config_at(0.0, 500, 100);
  config.point = {1.0, 0.5};
  config.interest = {0};
  const std::vector<Constraint> constraints = {Constraint::gaussian(1, 0.7, 0.2)};
  const auto result =
      run_ensemble(config, space, simulator, EnsembleModel{factory, {}}, {}, constraints);
  const auto& side = result.approximate;
  const double spread = std::sqrt(0.01 + 0.04);
  EXPECT_EQ(side.failed, 0U);
  // 500 datasets; 5.5 standard errors, false alarm 4e-8 each.
  EXPECT_NEAR(side.means[0], 1.0, 5.5 * spread / std::sqrt(500.0));
  EXPECT_NEAR(side.spreads[0] / spread, 1.0, 5.5 / std::sqrt(1000.0));
  EXPECT_NEAR(side.profiles[0].coverage[0], 0.683, 5.5 * 0.0208);
  EXPECT_NEAR(side.profiles[0].coverage[1], 0.95, 5.5 * 0.0097);
  EXPECT_NEAR(side.coverage[1], 0.95, 5.5 * 0.0097);
  // The same stream gives the same experiments.
  const auto again =
      run_ensemble(config, space, make_experiment(simulator, config.events, factory, constraints));
  EXPECT_EQ(again.estimates, side.estimates);
}

TEST(Ensemble, FailedDatasetsAreCounted) {
  const ParameterSpace space({{"a", -5, 5, {}}});
  std::size_t flat = 0;
  const Experiment experiment = [&](std::span<const double> point,
                                    RandomStream& random) -> std::unique_ptr<Likelihood> {
    const double u = random.uniform(), at = point[0] + random.normal();
    if (u < 0.2) throw ArgumentError("simulator: crashed");
    const double height = u < 0.5 ? 0.0 : 1.0;
    return std::make_unique<testing::FunctionLikelihood>(
        space, [=](std::span<const double> t) { return -0.5 * height * std::pow(t[0] - at, 2); });
  };
  auto config = config_at(1.0, 200, 1);
  for (std::size_t d = 0; d < 200; ++d)
    flat += RandomStream(config.seed, "ensemble", d).uniform() < 0.5 ? 1 : 0;
  const auto side = run_ensemble(config, space, experiment);
  EXPECT_EQ(side.failed, flat);
  EXPECT_EQ(side.statistic.size(), 200U - flat);
  config.interest = {1};
  EXPECT_THROW(run_ensemble(config, space, experiment), ArgumentError);
}

TEST(Ensemble, FiniteSimulationIsPartOfTheUncertainty) {
  // Few simulated events and large datasets: over independent simulations the estimate
  // scatters by more than its statistical error, and the reported share says by how much.
  const auto mixture = testing::normals({0.0, 2.0});
  double predicted = 0.0, found = 0.0;
  constexpr int repetitions = 40;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    auto config = testing::logistic_config(static_cast<std::uint64_t>(repetition));
    config.replicas = 30;
    const DecomposedRatio ratio(testing::draw_all(*mixture, 600, config),
                                MixtureWeights(mixture->weight_expressions(), 2), {0.3}, config);
    const ExactMixtureRatio exact(mixture, {0.3});
    const auto result =
        run_ensemble(config_at(0.3, 20, 1000), testing::gamma_space(), *mixture, ratio, &exact);
    predicted += std::pow(result.simulation_share[0], 2) / repetitions;
    found += std::pow(result.bias[0], 2) / repetitions;
  }
  // The sample variance over 40 has a relative spread of 0.22; a factor of 2 either way in the
  // standard deviation is a false alarm in below 1e-5 of seeds.
  EXPECT_GT(std::sqrt(predicted / found), 0.5);
  EXPECT_LT(std::sqrt(predicted / found), 2.0);
}

}  // namespace
}  // namespace neyman
