#include "calibration/scores.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "calibration/line.hpp"
#include "calibration/problems.hpp"
#include "calibration/score_kernels.hpp"
#include "core/instruction_set.hpp"
#include "not_finite.hpp"

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
    EXPECT_EQ(sort_with_weights(values, none), sorted);
    with = sort_with_weights(with, weights);
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
  EXPECT_EQ(sort_with_weights(values, none), sorted);
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
      EXPECT_EQ(sort_with_weights(values, none), sorted) << spread;
      with = sort_with_weights(with, weights);
      EXPECT_EQ(with, sorted) << spread;
      for (std::size_t i = 0; i < with.size(); ++i) ASSERT_EQ(weights[i], 3.0 * with[i]);
    }
}

TEST(Scores, NegativeZeroIsZero) {
  std::vector<double> none;
  const auto sorted = sort_with_weights(std::vector<double>{0.0, -0.0, -1.0, 0.1}, none);
  EXPECT_EQ(sorted, (std::vector<double>{-1.0, 0.0, 0.0, 0.1}));
  const auto floats = sort_with_weights(std::vector<double>{0.0, -0.0, -1.0}, none);
  EXPECT_EQ(floats, (std::vector<double>{-1.0, 0.0, 0.0}));
  EXPECT_FALSE(std::signbit(floats[1]));
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
  const Cells ties = make_cells(sort_scores(CalibrationSet{a, b}));
  ASSERT_EQ(ties.size(), 2u);
  EXPECT_EQ(ties.numerator, (std::vector<double>{999.0, 1.0}));
  EXPECT_EQ(ties.denominator, (std::vector<double>{1000.0, 0.0}));
}

TEST(Scores, EveryInstructionSetFindsTheSameCellsAndKeys) {
  RandomStream random(5, "scores");
  for (const std::size_t size : {1u, 7u, 16u, 1000u, 4099u}) {
    std::vector<double> z(size);
    for (double& value : z) value = 3.0 * random.normal();
    const double low = *std::min_element(z.begin(), z.end());
    const double high = *std::max_element(z.begin(), z.end());
    const double scale = 500.0 / std::max(high - low, 1e-3);
    for (const auto* kernels : detail::supported(score_kernels::all_kernels)) {
      const auto extent = kernels->find_extent(z.data(), size);
      EXPECT_EQ(extent.low, low) << kernels->name;
      EXPECT_EQ(extent.high, high) << kernels->name;
      EXPECT_TRUE(extent.finite) << kernels->name;
      std::vector<std::uint16_t> cells(size);
      kernels->find_cells(z.data(), size, high, scale, 499, cells.data());
      for (std::size_t i = 0; i < size; ++i)
        ASSERT_EQ(cells[i], std::min(499, static_cast<int>((high - z[i]) * scale)))
            << kernels->name;
      std::vector<std::uint32_t> keys(size);
      std::vector<double> floats = z, back(size);
      for (double& value : floats) value = static_cast<float>(value);
      EXPECT_FALSE(kernels->to_float_keys(z.data(), size, keys.data())) << kernels->name;
      ASSERT_TRUE(kernels->to_float_keys(floats.data(), size, keys.data())) << kernels->name;
      kernels->from_float_keys(keys.data(), size, back.data());
      EXPECT_EQ(back, floats) << kernels->name;
      for (std::size_t i = 1; i < size; ++i)
        ASSERT_EQ(keys[i] < keys[i - 1], floats[i] < floats[i - 1]) << kernels->name;
      for (const double bad : {nan, HUGE_VAL, -HUGE_VAL}) {
        auto with = z;
        with[size / 2] = bad;
        EXPECT_FALSE(kernels->find_extent(with.data(), size).finite) << kernels->name;
      }
    }
  }
}

TEST(Scores, FineCountsAreThoseOfEachEvent) {
  const testing::Scores scores = testing::draw_scores(6, 50000, 1.0);
  const auto counts = count_finely(check_scores(scores.set()), usual_cell_share, 50);
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->size() % 50, 0u);
  std::vector<double> upper, numerator(counts->size(), 0.0), denominator = numerator;
  for (std::size_t i = 0; i < counts->size(); ++i) upper.push_back(counts->upper(i));
  EXPECT_EQ(upper.back(), counts->high);
  const auto count = [&](const std::vector<double>& side, std::vector<double>& out) {
    for (const double z : side)
      ++out[static_cast<std::size_t>(std::lower_bound(upper.begin(), upper.end(), z) -
                                     upper.begin())];
  };
  count(scores.numerator, numerator);
  count(scores.denominator, denominator);
  EXPECT_EQ(counts->numerator, numerator);
  EXPECT_EQ(counts->denominator, denominator);
}

TEST(Scores, CellsOfFineCountsAreThoseOfSortedScores) {
  const testing::Scores scores = testing::draw_scores(7, 100000, 1.0);
  const CheckedScores checked = check_scores(scores.set());
  const auto counts = count_finely(checked);
  ASSERT_TRUE(counts);
  const Cells fine = make_cells(*counts), plain = make_cells(sort_scores(checked));
  EXPECT_EQ(fine.low, plain.low);
  EXPECT_EQ(fine.high, plain.high);
  EXPECT_NEAR(static_cast<double>(fine.size()), static_cast<double>(plain.size()), 60.0);
  const auto sum = [](const std::vector<double>& v) {
    return std::accumulate(v.begin(), v.end(), 0.0);
  };
  EXPECT_EQ(sum(fine.numerator), 100000.0);
  EXPECT_EQ(sum(fine.denominator), 100000.0);
  for (std::size_t i = 0; i < fine.size(); ++i) {
    EXPECT_LE(fine.score[i], fine.upper[i]);
    EXPECT_LT(fine.share(i), 1.5 * usual_cell_share);
  }
  const Line a = fit_line(fine), b = fit_line(plain);
  for (const double z : {-5.0, -1.0, 0.0, 1.0, 5.0}) {
    EXPECT_NEAR(a.log_ratio(z), b.log_ratio(z), 3e-4);  // its error is 0.004 and more
    EXPECT_NEAR(a.error(z), b.error(z), 1e-4);
  }
}

TEST(Scores, FewTiedOrCompressedScoresAreNotCounted) {
  testing::Scores scores = testing::draw_scores(8, 40000, 1.0);
  EXPECT_TRUE(count_finely(check_scores(scores.set())));
  const testing::Scores few = testing::draw_scores(8, 10000, 1.0);
  EXPECT_FALSE(count_finely(check_scores(few.set())));
  // As many events by their weights.
  const std::vector<double> four(10000, 4.0);
  EXPECT_TRUE(count_finely(check_scores({few.numerator, few.denominator, four, four})));
  auto tied = scores;
  for (std::size_t i = 0; i < 1000; ++i) tied.numerator[i] = 0.25;
  EXPECT_FALSE(count_finely(check_scores(tied.set())));
  scores.numerator[0] = 1e5;
  EXPECT_FALSE(count_finely(check_scores(scores.set())));
  const std::vector<double> constant(40000, 2.0);
  EXPECT_FALSE(count_finely(check_scores({constant, constant})));
}

}  // namespace
}  // namespace neyman::calibration
