#include "neyman/ratios/decomposed_ratio.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "neyman/core/error.hpp"
#include "ratios/two_components.hpp"

namespace neyman {
namespace {

using testing::grid;

DecomposedRatio learn(const Mixture& mixture, std::size_t events, const RatioConfig& config,
                      double reference = 0.3) {
  return DecomposedRatio(testing::draw_all(mixture, events, config),
                         MixtureWeights(mixture.weight_expressions(), mixture.components().size()),
                         {reference}, config);
}

TEST(DecomposedRatio, ComesCloseToTheExactRatio) {
  const auto mixture = testing::normals({0.0, 1.0, 2.0});
  const auto ratio = learn(*mixture, 20000, testing::logistic_config());
  const ExactMixtureRatio exact(mixture, {0.3});
  const auto x = grid(-2.5, 4.5, 29);
  for (const double top : {0.0, 0.1, 0.5, 1.0}) {
    const auto found = ratio.log_ratios(x, std::vector{top}, std::vector{0.3});
    const auto truth = exact.log_ratios(x, std::vector{top}, std::vector{0.3});
    // Each pair's line has errors of about 0.01 in offset and slope; five times that at the ends
    // of the grid: false alarm below 1e-6.
    for (std::size_t i = 0; i < x.rows(); ++i) EXPECT_NEAR(found[i], truth[i], 0.15) << x(i, 0);
  }
}

TEST(DecomposedRatio, IsOneAtTheReference) {
  // With two components the sub-ratios are consistent by themselves.
  const auto mixture = testing::normals({0.0, 1.0});
  const auto ratio = learn(*mixture, 500, testing::logistic_config());
  const auto x = grid(-4, 4, 9);
  for (const double value : ratio.log_ratios(x, std::vector{0.3}, std::vector{0.3}))
    EXPECT_NEAR(value, 0.0, 1e-12);
}

TEST(DecomposedRatio, HasMeanOneOverTheDenominatorForEveryNumerator) {
  const auto mixture = testing::normals({0.0, 1.0, 2.0});
  auto config = testing::logistic_config();
  const auto samples = testing::draw_all(*mixture, 3000, config);
  const MixtureWeights weights(mixture->weight_expressions(), 3);
  const DecomposedRatio ratio(samples, weights, {0.3}, config);
  config.normalise = false;
  const DecomposedRatio plain(samples, weights, {0.3}, config);
  EXPECT_EQ(plain.normalisation(), (std::vector<double>{1.0, 1.0, 1.0}));
  // Held-out means of q_c over the denominator, computed here from the pairs alone: all events,
  // each weighted from the pooled sample to the denominator.
  const auto reference = weights(std::vector{0.3});
  std::vector<double> means(3, 0.0);
  for (const auto& sample : samples) {
    Matrix q(sample.size(), 3);
    for (std::size_t c = 0; c < 3; ++c) {
      std::vector<double> inverse(sample.size(), reference[c]);
      for (std::size_t d = 0; d < 3; ++d) {
        if (d == c) continue;
        const auto& pair = ratio.pair(std::min(c, d), std::max(c, d));
        const auto logs = pair.held_out(sample, pair.held_out_scores(sample));
        for (std::size_t i = 0; i < inverse.size(); ++i)
          inverse[i] += reference[d] * std::exp(c < d ? -logs[i] : logs[i]);
      }
      for (std::size_t i = 0; i < inverse.size(); ++i) q(i, c) = 1.0 / inverse[i];
    }
    for (std::size_t i = 0; i < sample.size(); ++i)
      for (std::size_t c = 0; c < 3; ++c)
        means[c] += q(i, c) / (q(i, 0) + q(i, 1) + q(i, 2)) / static_cast<double>(sample.size());
  }
  for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(ratio.normalisation()[c], means[c], 1e-10);
}

TEST(DecomposedRatio, IdentitiesAndInversesAreFree) {
  const auto mixture = testing::normals({0.0, 1.0, 2.0});
  const auto ratio = learn(*mixture, 500, testing::logistic_config());
  const auto x = grid(-3, 5, 9);
  EXPECT_EQ(ratio.pair_log_ratios(x, 1, 1), LogRatios(9));
  const auto there = ratio.pair_log_ratios(x, 0, 2), back = ratio.pair_log_ratios(x, 2, 0);
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(there[i], -back[i]);
  EXPECT_THROW(ratio.pair(2, 1), ArgumentError);
}

TEST(DecomposedRatio, StaysFiniteFarOutside) {
  const auto mixture = testing::normals({0.0, 1.0, 2.0});
  const auto ratio = learn(*mixture, 200, testing::logistic_config(), 0.0);
  const Matrix x(4, 1, {-1e6, 1e6, -40.0, 40.0});
  const auto ratios = ratio.component_ratios(x);
  for (const double value : ratios.values()) {
    EXPECT_TRUE(std::isfinite(value));
    EXPECT_GT(value, 0.0);
  }
  EXPECT_EQ(ratio.count_outside(x), 4U);
  EXPECT_EQ(ratio.count_outside(grid(-1, 2, 5)), 0U);
}

TEST(DecomposedRatio, SavesAndLoadsExactly) {
  const auto mixture = testing::normals({0.0, 1.0, 2.0});
  const auto ratio = learn(*mixture, 500, testing::logistic_config());
  Archive archive;
  ratio.save(archive);
  const DecomposedRatio loaded(archive, testing::gamma_space());
  const auto x = grid(-3, 5, 9);
  EXPECT_EQ(ratio.component_ratios(x), loaded.component_ratios(x));
  EXPECT_EQ(ratio.normalisation(), loaded.normalisation());
  ASSERT_EQ(ratio.replicas(), loaded.replicas());
  EXPECT_EQ(ratio.replica_ratios(ratio.score(x), 4), loaded.replica_ratios(loaded.score(x), 4));
  EXPECT_EQ(ratio.replica_normalisation(4), loaded.replica_normalisation(4));
}

}  // namespace
}  // namespace neyman
