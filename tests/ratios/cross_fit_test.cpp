#include "neyman/ratios/cross_fit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "ratios/two_components.hpp"

namespace neyman {
namespace {

TEST(FoldedSample, EveryEventIsHeldOutOnce) {
  const auto mixture = testing::normals({0.0, 1.0});
  const auto config = testing::logistic_config();
  const auto sample = testing::draw(*mixture, 0, 1000, config);
  std::multiset<std::size_t> seen;
  for (std::size_t k = 0; k < config.folds; ++k)
    for (const std::size_t event : sample.fold_events(k)) {
      EXPECT_EQ(sample.fold(event), k);
      seen.insert(event);
    }
  EXPECT_EQ(seen.size(), 1000U);
  EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 1000U);
}

TEST(FoldedSample, RowsOfOneGroupShareAFold) {
  Samples samples;
  samples.feature_names = {"x"};
  samples.x = Matrix(300, 1);
  for (std::size_t i = 0; i < 300; ++i) {
    samples.x(i, 0) = static_cast<double>(i);
    samples.groups.push_back(static_cast<std::int64_t>(i / 7));
  }
  const FoldedSample sample(samples, testing::logistic_config(), 0);
  for (std::size_t i = 1; i < 300; ++i)
    if (samples.groups[i] == samples.groups[i - 1]) {
      EXPECT_EQ(sample.fold(i), sample.fold(i - 1));
    }
}

TEST(FoldedSample, ReplicaCountsArePoissonAndFollowTheEvent) {
  const auto mixture = testing::normals({0.0, 1.0});
  const auto config = testing::logistic_config();
  const auto sample = testing::draw(*mixture, 0, 30000, config);
  const auto weights = sample.replica_weights(3);
  double sum = 0.0, squares = 0.0;
  for (const double weight : weights) {
    sum += weight;
    squares += weight * weight;
  }
  // Mean 1 ± 0.0058, mean square 2 ± 0.024 for Poisson(1); 5.5 standard errors, false alarm 4e-8.
  EXPECT_NEAR(sum / 30000, 1.0, 5.5 / std::sqrt(30000.0));
  EXPECT_NEAR(squares / 30000, 2.0, 5.5 * std::sqrt(11.0 / 30000.0));
  EXPECT_EQ(weights, sample.replica_weights(3));
  EXPECT_NE(weights, sample.replica_weights(4));
}

TEST(CrossFit, NoClassifierHasSeenTheEventsItScores) {
  // Labels without any information in x: a classifier that had seen an event would lean to its
  // side. With held-out scores the two sides look alike.
  const auto mixture = testing::normals({0.0, 0.0});
  auto config = testing::logistic_config();
  config.classifier = make_classifier("random-forest");
  config.calibrator = make_calibrator("none");
  config.replicas = 0;
  const auto samples = testing::draw_all(*mixture, 2000, config);
  CrossFit pair;
  pair.fit(samples[0], samples[1], config, 0);
  const auto mean_of = [&](const FoldedSample& sample) {
    double sum = 0.0;
    for (const double z : pair.held_out_scores(sample)) sum += std::tanh(z / 2);
    return sum / static_cast<double>(sample.size());
  };
  // 2s − 1 has a spread below 0.5, so the difference of means has one below 0.016; five of
  // these. Scores of training events differ by 0.3 and more.
  EXPECT_NEAR(mean_of(samples[0]), mean_of(samples[1]), 0.08);
}

TEST(CrossFit, SameBitsForAnyNumberOfThreads) {
  const auto mixture = testing::normals({0.0, 1.0});
  const auto config = testing::logistic_config();
  const auto samples = testing::draw_all(*mixture, 1000, config);
  const auto x = testing::grid(-3, 3, 13);
  std::vector<LogRatios> found;
  for (const std::size_t count : {1, 2}) {
    set_threads(count);
    CrossFit pair;
    pair.fit(samples[0], samples[1], config, 0);
    found.push_back(pair.log_ratios(pair.scores(x)));
    found.push_back(pair.log_ratios(pair.scores(x), 5));
  }
  set_threads(0);
  EXPECT_EQ(found[0], found[2]);
  EXPECT_EQ(found[1], found[3]);
  EXPECT_NE(found[0], found[1]);
}

TEST(CrossFit, ReplicasSpreadAsTheEstimateDoes) {
  // The bootstrap spread of the calibrated log-ratio against the spread over independent
  // simulations, at x = 1/2 where log r = 0.
  const auto mixture = testing::normals({0.0, 1.0});
  const Matrix x(1, 1, {0.5});
  std::vector<double> estimates;
  double bootstrap = 0.0;
  constexpr int repetitions = 60;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    auto config = testing::logistic_config(static_cast<std::uint64_t>(100 + repetition));
    config.replicas = 30;
    const auto samples = testing::draw_all(*mixture, 1500, config);
    CrossFit pair;
    pair.fit(samples[0], samples[1], config, 0);
    const auto scores = pair.scores(x);
    estimates.push_back(pair.log_ratios(scores)[0]);
    std::vector<double> replicas;
    for (std::size_t b = 0; b < pair.replicas(); ++b)
      replicas.push_back(pair.log_ratios(scores, b)[0]);
    double mean = 0.0, square = 0.0;
    for (const double value : replicas) mean += value / 30;
    for (const double value : replicas) square += (value - mean) * (value - mean) / 29;
    bootstrap += square / repetitions;
  }
  double square = 0.0;
  for (const double value : estimates) square += value * value / repetitions;
  // The sample variance over 60 has a relative spread of 0.18; bounds of a factor 2 on the
  // ratio of standard deviations are a false alarm in below 1e-6 of seeds.
  const double ratio = std::sqrt(bootstrap / square);
  EXPECT_GT(ratio, 0.6);
  EXPECT_LT(ratio, 2.0);
}

TEST(CrossFit, RefusesWhatDoesNotFit) {
  const auto mixture = testing::normals({0.0, 1.0});
  auto config = testing::logistic_config();
  EXPECT_THROW(testing::draw(*mixture, 0, 2, config), ArgumentError);  // fewer than folds
  Samples wide;
  wide.feature_names = {"a", "b"};
  wide.x = Matrix(50, 2);
  const FoldedSample other(wide, config, 1);
  CrossFit pair;
  EXPECT_THROW(pair.fit(testing::draw(*mixture, 0, 50, config), other, config, 0), ArgumentError);
}

}  // namespace
}  // namespace neyman
