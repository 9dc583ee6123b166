#include "calibration/scores.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "calibration/problems.hpp"

namespace neyman::calibration {
namespace {

TEST(Scores, RadixSortEqualsStandardSort) {
  RandomStream random(1, "sort");
  for (const std::size_t n : {1u, 2u, 100u, 2047u, 2048u, 50000u}) {
    std::vector<double> values(n), weights(n);
    for (std::size_t i = 0; i < n; ++i) {
      const double exponent = 600.0 * (random.uniform() - 0.5);
      values[i] = random.uniform() < 0.1 ? 0.0 : random.normal() * std::exp(exponent);
      weights[i] = 2.0 * values[i] + 1.0;  // a function of the value, to see that it moves along
    }
    std::vector<double> sorted = values, none;
    std::sort(sorted.begin(), sorted.end());
    std::vector<double> with = values;
    sort_with_weights(values, none);
    EXPECT_EQ(values, sorted);
    sort_with_weights(with, weights);
    EXPECT_EQ(with, sorted);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(weights[i], 2.0 * with[i] + 1.0);
  }
}

TEST(Scores, FloatsSortAsDoublesDo) {
  RandomStream random(2, "sort");
  std::vector<double> values(5000), none;
  for (double& value : values) value = static_cast<float>(random.normal() * 1e-30);
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  sort_with_weights(values, none);
  EXPECT_EQ(values, sorted);
}

TEST(Scores, ScoresThatDifferInTheirLastBitsAreSorted) {
  // Most bits are shared, all but the last, or in two groups far apart.
  RandomStream random(4, "sort");
  for (const double spread : {1e-14, 1e-10, 1e-6})
    for (const double apart : {0.0, 1e3}) {
      std::vector<double> values(20000), weights(20000);
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = 1.0 + spread * random.normal() + (random.uniform() < 0.5 ? apart : 0.0);
        weights[i] = 3.0 * values[i];
      }
      std::vector<double> sorted = values, none;
      std::sort(sorted.begin(), sorted.end());
      auto with = values;
      sort_with_weights(values, none);
      EXPECT_EQ(values, sorted) << spread;
      sort_with_weights(with, weights);
      EXPECT_EQ(with, sorted) << spread;
      for (std::size_t i = 0; i < with.size(); ++i) ASSERT_EQ(weights[i], 3.0 * with[i]);
    }
}

TEST(Scores, NegativeZeroIsZero) {
  std::vector<double> values{0.0, -0.0, -1.0}, none;
  sort_with_weights(values, none);
  EXPECT_EQ(values, (std::vector<double>{-1.0, 0.0, 0.0}));
}

TEST(Scores, WeightsAreScaledAsTheyMean) {
  const std::vector<double> z{0.0, 1.0, 2.0}, whole{1.0, 2.0, 3.0}, real{0.5, 1.0, 1.5};
  const auto counts = scale_weights("side", z, whole, WeightMeaning::automatic);
  EXPECT_EQ(counts.total, 6.0);
  EXPECT_EQ(counts.values, whole);
  const auto relative = scale_weights("side", z, real, WeightMeaning::automatic);
  EXPECT_NEAR(relative.total, 9.0 / 3.5, 1e-12);  // (Σw)²/Σw²
  EXPECT_NEAR(relative.values[2] / relative.values[0], 3.0, 1e-12);
  EXPECT_EQ(scale_weights("side", z, real, WeightMeaning::counts).total, 3.0);
  EXPECT_NEAR(scale_weights("side", z, whole, WeightMeaning::relative).total, 36.0 / 14.0, 1e-12);
}

TEST(Scores, CellsKeepCountsMeansAndTies) {
  const testing::Scores scores = testing::draw_scores(2, 30000, 1.0);
  const Cells cells = make_cells(sort_scores(scores.set()));
  EXPECT_LT(cells.size(), 900u);
  EXPECT_GT(cells.size(), 512u);
  const auto sum = [](const std::vector<double>& v) {
    return std::accumulate(v.begin(), v.end(), 0.0);
  };
  EXPECT_EQ(sum(cells.numerator), 30000.0);
  EXPECT_EQ(sum(cells.denominator), 30000.0);
  EXPECT_EQ(cells.score.front(), cells.low);  // single events at the ends
  EXPECT_EQ(cells.score.back(), cells.high);
  double mean = 0.0;
  for (std::size_t i = 0; i < cells.size(); ++i) mean += cells.share(i) * cells.score[i];
  EXPECT_NEAR(mean, (sum(scores.numerator) + sum(scores.denominator)) / 60000.0, 1e-9);
  // Counting events by `find` gives the same cells.
  std::vector<double> counted(cells.size(), 0.0);
  for (const double z : scores.numerator) counted[cells.find(z)] += 1.0;
  EXPECT_EQ(counted, cells.numerator);

  std::vector<double> a(1000, 1.0), b(1000, 1.0);
  a[0] = 2.0;
  const Cells ties = make_cells(sort_scores({a, b}));
  ASSERT_EQ(ties.size(), 2u);
  EXPECT_EQ(ties.numerator, (std::vector<double>{999.0, 1.0}));
  EXPECT_EQ(ties.denominator, (std::vector<double>{1000.0, 0.0}));
}

}  // namespace
}  // namespace neyman::calibration
