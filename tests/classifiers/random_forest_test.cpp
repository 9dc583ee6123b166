#include "neyman/classifiers/random_forest.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "classifiers/problems.hpp"
#include "neyman/core/error.hpp"

namespace neyman {
namespace {

using problems::Labelled;
using problems::two_normals;

// Without bootstrap every tree is the table itself: the share of each leaf with its pseudo-count.
TEST(RandomForest, LeavesAreShrunkShares) {
  Labelled data{Matrix(4, 1, std::vector<double>{0, 1, 0, 1}), {0, 0, 1, 1}, {70, 30, 40, 60}};
  const double shrink = 0.2;
  RandomForest forest(
      RandomForest::Config{.trees = 7, .min_leaf = 0.0, .shrink = shrink, .bootstrap = false});
  forest.fit(data.set());
  const Logits z = forest.logits(Matrix(2, 1, std::vector<double>{0, 1}));
  // Balanced weights sum to two on each side: 1.4, 0.6 and 0.8, 1.2.
  EXPECT_NEAR(z[0], std::log((0.8 + shrink / 2) / (1.4 + shrink / 2)), 1e-5);
  EXPECT_NEAR(z[1], std::log((1.2 + shrink / 2) / (0.6 + shrink / 2)), 1e-5);
}

// A leaf of one side alone: log((n + λ/2) / (λ/2)), finite and growing with the leaf.
TEST(RandomForest, PureLeavesAreBoundedByTheirSize) {
  for (const std::size_t events : {10UL, 1000UL, 100000UL}) {
    Labelled data{Matrix(2, 1, std::vector<double>{0, 1}), {0, 1}};
    std::vector<std::size_t> rows;
    for (std::size_t i = 0; i < 2 * events; ++i) rows.push_back(i % 2);
    const Labelled pure = problems::take(data, rows);
    RandomForest forest(RandomForest::Config{.trees = 10, .min_leaf = 1.0, .bootstrap = false});
    forest.fit(pure.set());
    const Logits z = forest.logits(data.x);
    const double expected = std::log((static_cast<double>(events) + 0.5) / 0.5);
    EXPECT_NEAR(z[1], expected, 0.05);
    EXPECT_NEAR(z[0], -expected, 0.05);
  }
}

// Without bootstrap nothing is random for one feature: a weight is a repetition, whatever the
// order.
TEST(RandomForest, WeightsEqualRepetitionInAnyOrder) {
  const RandomForest::Config config{
      .trees = 3, .min_leaf = 0.0, .shrink = 1e-9, .bootstrap = false};
  Labelled weighted = two_normals(1500, 1500);
  // Rounded, so that leaves hold both sides.
  for (double& value : weighted.x.values()) value = std::round(4.0 * value) / 4.0;
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < 3000; ++i) {
    weighted.weights.push_back(static_cast<double>(1 + i % 3));
    rows.insert(rows.begin(), 1 + i % 3, i);
  }
  Labelled repeated = problems::take(weighted, rows);
  repeated.weights.clear();
  RandomForest a(config), b(config);
  a.fit(weighted.set());
  b.fit(repeated.set());
  const Matrix points(5, 1, std::vector<double>{-1, 0, 0.5, 1, 2});
  EXPECT_LT(problems::mean_difference(a.logits(points), b.logits(points)), 1e-4);
}

// The steps that the paper describes: piecewise constant, far fewer values than points.
TEST(RandomForest, HasSteps) {
  RandomForest forest(RandomForest::Config{.trees = 5});
  forest.fit(two_normals(500, 500).set());
  Matrix x(10000, 1);
  for (std::size_t i = 0; i < 10000; ++i) x(i, 0) = -3.0 + 7.0 * static_cast<double>(i) / 1e4;
  std::set<double> values;
  for (const double z : forest.logits(x)) values.insert(z);
  EXPECT_GT(values.size(), 5U);
  EXPECT_LT(values.size(), 300U);
}

// Calibration of the raw share: among events with s near a value, that part is denominator.
TEST(RandomForest, SharesAreHonestInTheMiddle) {
  RandomForest forest;
  forest.fit(two_normals(50000, 50000).set());
  const Labelled fresh = two_normals(50000, 50000, 1, 99);
  const Logits z = forest.logits(fresh.x);
  for (const double edge : {-1.5, -0.5, 0.5}) {
    double events = 0.0, denominator = 0.0, share = 0.0;
    for (std::size_t i = 0; i < z.size(); ++i)
      if (z[i] >= edge && z[i] < edge + 1.0) {
        events += 1.0;
        denominator += fresh.denominator[i];
        share += 1.0 / (1.0 + std::exp(-z[i]));
      }
    ASSERT_GT(events, 5000.0);
    // √(¼/events) < 0.007: five standard deviations (false alarms below 1e-6) leave some room.
    EXPECT_NEAR(denominator / events, share / events, 0.035);
  }
}

TEST(RandomForest, TreesDifferBySeedAlone) {
  const Labelled data = two_normals(500, 500, 4);
  RandomForest one, same, other;
  one.fit(data.set(1));
  same.fit(data.set(1));
  other.fit(data.set(2));
  EXPECT_EQ(one.logits(data.x), same.logits(data.x));
  EXPECT_GT(problems::mean_difference(one.logits(data.x), other.logits(data.x)), 1e-3);
}

TEST(RandomForest, RefusesBadConfiguration) {
  EXPECT_THROW(RandomForest({.trees = 0}), ArgumentError);
  EXPECT_THROW(RandomForest({.depth = 31}), ArgumentError);
  EXPECT_THROW(RandomForest({.min_leaf = -1.0}), ArgumentError);
  EXPECT_THROW(RandomForest({.shrink = 0.0}), ArgumentError);
  EXPECT_THROW(RandomForest({.features = 1.1}), ArgumentError);
}

}  // namespace
}  // namespace neyman
