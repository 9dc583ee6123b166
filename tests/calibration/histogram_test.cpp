#include "neyman/calibration/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "calibration/problems.hpp"
#include "neyman/core/error.hpp"

namespace neyman {
namespace {

using namespace testing;
using HistogramConfig = HistogramCalibrator::Config;
using Edges = HistogramCalibrator::Edges;

TEST(Histogram, CountsInUniformBins) {
  // Range [0, 4], four bins (0,1] (1,2] (2,3] (3,4] with 0 in the first.
  std::vector<double> a, b;
  const auto add = [](std::vector<double>& side, double z, int count) {
    side.insert(side.end(), static_cast<std::size_t>(count), z);
  };
  add(a, 0.0, 600), add(a, 1.0, 300), add(a, 1.5, 800), add(a, 2.5, 200), add(a, 4.0, 100);
  add(b, 0.5, 100), add(b, 2.0, 400), add(b, 2.5, 700), add(b, 3.5, 800);
  HistogramCalibrator calibrator(HistogramConfig{Edges::uniform, 4, false});
  calibrator.fit({a, b});
  EXPECT_EQ(calibrator.edges(), (std::vector<double>{0.0, 1.0, 2.0, 3.0, 4.0}));
  const double n0[] = {900, 800, 200, 100}, n1[] = {100, 400, 700, 800};
  const auto errors = calibrator.errors(Logits{0.5, 1.5, 2.5, 3.5});
  for (int i = 0; i < 4; ++i) {
    // Two events of prior move log r by less than 2/n of either side.
    EXPECT_NEAR(calibrator.values()[i], std::log(n0[i] / n1[i]), 0.03);
    EXPECT_NEAR(errors[i], std::sqrt(1 / (n0[i] + 0.5) + 1 / (n1[i] + 0.5) - 2 / 2000.0), 1e-12);
  }
  // Steps: constant inside a bin, right-closed, held outside.
  const auto log_r = calibrator.log_ratios(Logits{0.0, 1.0, 1.0001, 2.0, -50.0, 50.0});
  EXPECT_EQ(log_r[0], calibrator.values()[0]);
  EXPECT_EQ(log_r[1], calibrator.values()[0]);
  EXPECT_EQ(log_r[2], calibrator.values()[1]);
  EXPECT_EQ(log_r[3], calibrator.values()[1]);
  EXPECT_EQ(log_r[4], calibrator.values()[0]);
  EXPECT_EQ(log_r[5], calibrator.values()[3]);
}

TEST(Histogram, EqualProbabilityBinsHoldEqualShares) {
  const Scores scores = draw_scores(1, 20000, 2.0);
  HistogramCalibrator calibrator(HistogramConfig{Edges::equal_probability, 10, true});
  calibrator.fit(scores.set());
  ASSERT_EQ(calibrator.edges().size(), 11u);
  for (std::size_t bin = 0; bin < 10; ++bin) {
    const auto inside = [&](double z) {
      return z > calibrator.edges()[bin] && z <= calibrator.edges()[bin + 1];
    };
    const auto count = std::count_if(scores.numerator.begin(), scores.numerator.end(), inside) +
                       std::count_if(scores.denominator.begin(), scores.denominator.end(), inside);
    EXPECT_NEAR(static_cast<double>(count), 4000.0, 45.0);  // a cell is 1/1024 of the sample
  }
}

TEST(Histogram, ManyEventsAreCountedAsTheEdgesSay) {
  const Scores scores = draw_scores(6, 100000, 2.0);
  const double n = 100000.0;
  for (const auto kind : {Edges::uniform, Edges::equal_probability})
    for (const std::size_t bins : {0, 37}) {
      HistogramCalibrator calibrator(HistogramConfig{kind, bins, false});
      calibrator.fit(scores.set());
      const auto& edges = calibrator.edges();
      ASSERT_TRUE(bins == 0 || edges.size() == bins + 1);
      EXPECT_EQ(edges.front(), calibrator.low());
      EXPECT_EQ(edges.back(), calibrator.high());
      const double width = (edges.back() - edges.front()) / static_cast<double>(edges.size() - 1);
      for (std::size_t bin = 0; bin + 1 < edges.size(); ++bin) {
        const auto inside = [&](double z) {
          return (z > edges[bin] || bin == 0) && z <= edges[bin + 1];
        };
        const auto count = [&](const std::vector<double>& side) {
          return static_cast<double>(std::count_if(side.begin(), side.end(), inside));
        };
        const double n0 = count(scores.numerator), n1 = count(scores.denominator);
        const double error = std::sqrt(1 / (n0 + 0.5) + 1 / (n1 + 0.5) - 2 / n);
        EXPECT_NEAR(calibrator.errors(Logits{edges[bin + 1]})[0], error, 1e-12) << bin;
        if (n0 > 1000.0 && n1 > 1000.0) {
          EXPECT_NEAR(calibrator.values()[bin], std::log(n0 / n1), 0.004) << bin;
        }
        if (kind == Edges::uniform) {
          EXPECT_NEAR(edges[bin + 1] - edges[bin], width, 1e-12);
        } else {
          EXPECT_NEAR((n0 + n1) / (2.0 * n), 1.0 / static_cast<double>(edges.size() - 1), 0.0011);
        }
      }
    }
}

// Best segmentation by trying all of them, for a few distinct scores.
double best_fitness(const std::vector<double>& n0, const std::vector<double>& n1, double price,
                    std::size_t& blocks) {
  const std::size_t m = n0.size();
  double best = -1e300;
  for (unsigned cuts = 0; cuts < (1u << (m - 1)); ++cuts) {
    double value = 0.0, a = 0.0, b = 0.0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < m; ++i) {
      a += n0[i];
      b += n1[i];
      if (i + 1 < m && !(cuts >> i & 1u)) continue;
      value += (a > 0 ? a * std::log(a / (a + b)) : 0) + (b > 0 ? b * std::log(b / (a + b)) : 0);
      value -= price;
      ++count;
      a = b = 0.0;
    }
    if (value > best) {
      best = value;
      blocks = count;
    }
  }
  return best;
}

TEST(Histogram, BayesianBlocksAreTheBestSegmentation) {
  RandomStream random(3, "blocks");
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::vector<double> n0(10), n1(10), a, b;
    for (std::size_t i = 0; i < 10; ++i) {
      n0[i] = static_cast<double>(1 + random.poisson(i < 4 ? 30.0 : 10.0));
      n1[i] = static_cast<double>(1 + random.poisson(i < 7 ? 10.0 : 30.0));
      a.insert(a.end(), static_cast<std::size_t>(n0[i]), static_cast<double>(i));
      b.insert(b.end(), static_cast<std::size_t>(n1[i]), static_cast<double>(i));
    }
    HistogramCalibrator calibrator(HistogramConfig{Edges::bayesian_blocks, 0, false});
    calibrator.fit({a, b});
    const double n = static_cast<double>(a.size() + b.size());
    const double price = 4.0 - std::log(73.53 * 0.05 * std::pow(n, -0.478));
    std::size_t blocks = 0;
    const double best = best_fitness(n0, n1, price, blocks);
    EXPECT_EQ(calibrator.edges().size(), blocks + 1);
    double value = 0.0;
    for (std::size_t bin = 0; bin + 1 < calibrator.edges().size(); ++bin) {
      double c0 = 0.0, c1 = 0.0;
      for (std::size_t i = 0; i < 10; ++i) {
        const double z = static_cast<double>(i);
        const bool in =
            z <= calibrator.edges()[bin + 1] && (bin == 0 || z > calibrator.edges()[bin]);
        if (in) c0 += n0[i], c1 += n1[i];
      }
      value += c0 * std::log(c0 / (c0 + c1)) + c1 * std::log(c1 / (c0 + c1)) - price;
    }
    EXPECT_NEAR(value, best, 1e-8);
  }
}

TEST(Histogram, EmptyBinsTakeTheSigmoid) {
  // Nothing between −1 and 1: bins there follow the line through both ends.
  Scores scores = draw_scores(4, 5000, 1.0);
  const auto outside = [](double& z) { z += z < 0.0 ? -1.0 : 1.0; };
  std::for_each(scores.numerator.begin(), scores.numerator.end(), outside);
  std::for_each(scores.denominator.begin(), scores.denominator.end(), outside);
  HistogramCalibrator calibrator(HistogramConfig{Edges::uniform, 200, false});
  calibrator.fit(scores.set());
  const auto log_r = calibrator.log_ratios(Logits{-0.8, 0.0, 0.8});
  EXPECT_GT(log_r[0], log_r[1]);
  EXPECT_GT(log_r[1], log_r[2]);
  EXPECT_NEAR(log_r[1], 0.0, 0.1);
}

TEST(Histogram, FindsTheExactRatio) {
  const Scores scores = draw_scores(5, 100000, 1.0);
  const auto grid = logit_grid(0.8);
  HistogramCalibrator interpolated(HistogramConfig{Edges::equal_probability, 0, true});
  interpolated.fit(scores.set());
  EXPECT_LT(deviation(interpolated, grid).mean, 0.03);
  HistogramCalibrator steps(HistogramConfig{Edges::equal_probability, 0, false});
  steps.fit(scores.set());
  EXPECT_LT(deviation(steps, grid).mean, 0.08);
  EXPECT_GT(steps.edges().size(), interpolated.edges().size());  // steps need more bins
}

TEST(Histogram, ErrorsMatchTheSpread) {
  // At fixed scores, 200 samples, 12 bins: the sd of the sd is 5 %; interpolation between
  // bins of different values adds little.
  const Pulls pulls =
      measure_pulls(HistogramCalibrator(HistogramConfig{Edges::equal_probability, 12, true}), 200,
                    2000, 1.0, {-1.0, -0.5, 0.0, 0.5, 1.0});
  EXPECT_NEAR(pulls.sd, 1.0, 0.2);
  EXPECT_NEAR(pulls.within_one, 0.683, 0.08);
}

TEST(Histogram, RefusesBadConfiguration) {
  EXPECT_THROW(HistogramCalibrator(HistogramConfig{Edges::uniform, 10001, false}), ArgumentError);
}

}  // namespace
}  // namespace neyman
