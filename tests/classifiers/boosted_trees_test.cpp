#include "neyman/classifiers/boosted_trees.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "classifiers/booster.hpp"
#include "classifiers/feature_bins.hpp"
#include "classifiers/problems.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman {
namespace {

using problems::Labelled;
using problems::mean_difference;
using problems::two_normals;

// One step of full length on a table with two values is the Newton step by hand: from z = 0 each
// event has the derivatives ±w/2 and w/4, so a leaf has the value 2 (D − N) / (N + D + 4 λ).
TEST(BoostedTrees, FirstTreeIsTheNewtonStep) {
  Labelled data{Matrix(4, 1, std::vector<double>{0, 1, 0, 1}), {0, 0, 1, 1}, {70, 30, 40, 60}};
  const double l2 = 0.01;
  BoostedTrees trees(BoostedTrees::Config{
      .rounds = 1, .learning_rate = 1.0, .depth = 1, .min_leaf = 0.0, .l2 = l2, .patience = 0});
  trees.fit(data.set());
  EXPECT_EQ(trees.trees(), 1U);
  const Logits z = trees.logits(Matrix(2, 1, std::vector<double>{0, 1}));
  // Balanced weights sum to two on each side: 1.4, 0.6 and 0.8, 1.2.
  EXPECT_NEAR(z[0], 2.0 * (0.8 - 1.4) / (2.2 + 4.0 * l2), 1e-6);
  EXPECT_NEAR(z[1], 2.0 * (1.2 - 0.6) / (1.8 + 4.0 * l2), 1e-6);
}

// Many steps reach the log odds of the table.
TEST(BoostedTrees, ConvergesToTheLogOdds) {
  Labelled data{Matrix(4, 1, std::vector<double>{0, 1, 0, 1}), {0, 0, 1, 1}, {70, 30, 40, 60}};
  BoostedTrees trees(
      BoostedTrees::Config{.rounds = 200, .min_leaf = 0.0, .l2 = 1e-3, .patience = 0});
  trees.fit(data.set());
  const Logits z = trees.logits(Matrix(2, 1, std::vector<double>{0, 1}));
  EXPECT_NEAR(z[0], std::log(0.4 / 0.7), 3e-3);
  EXPECT_NEAR(z[1], std::log(0.6 / 0.3), 3e-3);
}

// The exclusive or of two features: nothing for one feature, everything for two splits.
TEST(BoostedTrees, LearnsAnInteraction) {
  Labelled data{Matrix(4000, 2), std::vector<std::uint8_t>(4000)};
  RandomStream random(1, "xor");
  for (std::size_t i = 0; i < 4000; ++i) {
    data.x(i, 0) = random.normal();
    data.x(i, 1) = random.normal();
    data.denominator[i] = (data.x(i, 0) > 0) != (data.x(i, 1) > 0) ? 1 : 0;
  }
  BoostedTrees trees;
  trees.fit(data.set());
  const Logits z = trees.logits(Matrix(2, 2, std::vector<double>{1, -1, 1, 1}));
  EXPECT_GT(z[0], 3.0);
  EXPECT_LT(z[1], -3.0);
}

// Without a random part (no held-out rows) and with penalties that do not count events, a weight
// is a repetition and the order of rows is nothing, up to the rounding of float leaves.
TEST(BoostedTrees, WeightsEqualRepetitionInAnyOrder) {
  const BoostedTrees::Config config{.rounds = 50, .min_leaf = 0.0, .l2 = 1e-9, .patience = 0};
  Labelled weighted = two_normals(1500, 1500, 2);
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < 3000; ++i) {
    weighted.weights.push_back(static_cast<double>(i % 4));
    rows.insert(rows.begin(), i % 4, i);
  }
  Labelled repeated = problems::take(weighted, rows);
  repeated.weights.clear();
  BoostedTrees a(config), b(config);
  a.fit(weighted.set());
  b.fit(repeated.set());
  const Labelled fresh = two_normals(500, 500, 2, 99);
  EXPECT_LT(mean_difference(a.logits(fresh.x), b.logits(fresh.x)), 1e-4);
}

// Only the order of a feature's values counts, even where float cannot tell them apart.
TEST(BoostedTrees, MonotoneTransformsChangeNothing) {
  const Labelled data = two_normals(1000, 1000);
  Labelled other = data;
  for (double& value : other.x.values()) value = 1e8 + value;
  Labelled cubed = data;
  for (double& value : cubed.x.values()) value = std::pow(value, 3) * 1e80;
  BoostedTrees a, b, c;
  a.fit(data.set());
  b.fit(other.set());
  c.fit(cubed.set());
  EXPECT_LT(mean_difference(a.logits(data.x), b.logits(other.x)), 1e-3);
  EXPECT_LT(mean_difference(a.logits(data.x), c.logits(cubed.x)), 1e-12);
}

// Enough rows that XGBoost uses both threads.
TEST(BoostedTrees, SameBitsWhereXgboostSharesTheWork) {
  const Labelled data = two_normals(60000, 60000, 2);
  const BoostedTrees::Config config{.rounds = 5, .patience = 0};
  BoostedTrees one(config), two(config);
  set_threads(1);
  one.fit(data.set());
  set_threads(2);
  two.fit(data.set());
  set_threads(0);
  EXPECT_EQ(one.logits(data.x), two.logits(data.x));
}

TEST(BoostedTrees, StopsEarlyOnNoise) {
  Labelled noise = two_normals(2000, 2000, 3);
  for (std::size_t i = 0; i < 4000; ++i) noise.denominator[i] = i % 2;
  for (std::size_t i = 0; i < 4000; ++i) noise.x(i, 0) = noise.x(i, 1);
  BoostedTrees stopped, all(BoostedTrees::Config{.rounds = 300, .patience = 0});
  stopped.fit(noise.set());
  all.fit(noise.set());
  EXPECT_LT(stopped.trees(), 100U);
  EXPECT_EQ(all.trees(), 300U);
  double stopped_size = 0.0, all_size = 0.0;
  for (const double z : stopped.logits(noise.x)) stopped_size += std::abs(z) / 4000.0;
  for (const double z : all.logits(noise.x)) all_size += std::abs(z) / 4000.0;
  EXPECT_LT(stopped_size, 0.1);
  EXPECT_GT(all_size, 3.0 * stopped_size);
}

TEST(BoostedTrees, SubsampleAndSeedMatter) {
  const Labelled data = two_normals(1000, 1000, 4);
  const BoostedTrees::Config config{.rounds = 20, .subsample = 0.5, .features = 0.5, .patience = 0};
  BoostedTrees one(config), same(config), other(config);
  one.fit(data.set(1));
  same.fit(data.set(1));
  other.fit(data.set(2));
  EXPECT_EQ(one.logits(data.x), same.logits(data.x));
  EXPECT_GT(mean_difference(one.logits(data.x), other.logits(data.x)), 1e-3);
}

TEST(BoostedTrees, RefusesBadConfiguration) {
  EXPECT_THROW(BoostedTrees({.rounds = 0}), ArgumentError);
  EXPECT_THROW(BoostedTrees({.learning_rate = 0.0}), ArgumentError);
  EXPECT_THROW(BoostedTrees({.depth = 0}), ArgumentError);
  EXPECT_THROW(BoostedTrees({.subsample = 1.5}), ArgumentError);
  EXPECT_THROW(BoostedTrees({.bins = 1}), ArgumentError);
  EXPECT_THROW(BoostedTrees({.held_out = 1.0}), ArgumentError);
}

TEST(BoostedTrees, RefusesBytesThatAreNoTrees) {
  BoostedTrees trees;
  trees.fit(two_normals(100, 100).set());
  Archive archive;
  trees.save(archive);
  archive.child("model").set("booster_0000", std::vector<std::uint8_t>(100, 7));
  EXPECT_THROW(BoostedTrees().load(archive), FileError);
}

TEST(FeatureBins, EqualWeightsAndDistinctValues) {
  const Matrix x(8, 1, std::vector<double>{3, 1, 2, 2, 8, 5, 6, 7});
  const std::vector<double> weights(8, 1.0);
  // Four bins of two events: {1, 2, 2} cannot be split at two events without splitting a tie.
  const detail::FeatureBins four(x, weights, 4);
  EXPECT_EQ(four.codes(x), (std::vector<float>{1, 0, 0, 0, 3, 2, 2, 3}));
  // Enough bins: one for each of the seven values.
  const detail::FeatureBins each(x, weights, 256);
  EXPECT_EQ(each.codes(x), (std::vector<float>{2, 0, 1, 1, 6, 3, 4, 5}));
  // Outside the range: the first and the last.
  const Matrix far(2, 1, std::vector<double>{-1e300, 1e300});
  EXPECT_EQ(each.codes(far), (std::vector<float>{0, 6}));
}

TEST(FeatureBins, NeighbouringDoublesAreTold) {
  const double one = 1.0, next = std::nextafter(1.0, 2.0);
  const Matrix x(2, 1, std::vector<double>{one, next});
  const detail::FeatureBins bins(x, std::vector<double>{1.0, 1.0}, 16);
  EXPECT_EQ(bins.codes(x), (std::vector<float>{0, 1}));
}

TEST(DerivativeGrid, SumsAreExactInAnyOrder) {
  const detail::DerivativeGrid grid(3.7);
  RandomStream random(1, "grid");
  std::vector<double> values(10000);
  for (double& value : values) value = grid(3.7 * (2.0 * random.uniform() - 1.0));
  double forwards = 0.0, backwards = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) forwards += values[i];
  for (std::size_t i = values.size(); i-- > 0;) backwards += values[i];
  EXPECT_EQ(forwards, backwards);
  EXPECT_NEAR(grid(1.234567), 1.234567, 4.0 * std::pow(2.0, -24));
}

TEST(Booster, ErrorsCarryTheMessage) {
  try {
    const std::vector<float> codes{0.0F, 1.0F};
    detail::BoosterData data(codes, 1, 1);
    detail::BoosterData* const cached[] = {&data};
    detail::Booster booster({{"max_depth", "deep"}}, cached);
    detail::Derivatives derivatives(2);
    booster.grow(data, derivatives, 1);
    FAIL() << "no error";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.rfind("xgboost: ", 0), 0U) << message;
    EXPECT_NE(message.find("max_depth"), std::string::npos) << message;
    EXPECT_EQ(message.find("Stack trace"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace neyman
