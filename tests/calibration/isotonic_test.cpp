#include "neyman/calibration/isotonic.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "calibration/problems.hpp"

namespace neyman {
namespace {

using namespace testing;

// The share of the denominator at each event by the max-min formula of isotonic regression,
// g_i = max_{a<=i} min_{b>=i} mean(a..b): slow and plainly right.
std::vector<double> max_min(const std::vector<double>& labels) {
  const std::size_t n = labels.size();
  std::vector<double> sums(n + 1, 0.0), result(n);
  for (std::size_t i = 0; i < n; ++i) sums[i + 1] = sums[i] + labels[i];
  for (std::size_t i = 0; i < n; ++i) {
    double best = -1.0;
    for (std::size_t a = 0; a <= i; ++a) {
      double lowest = 2.0;
      for (std::size_t b = i; b < n; ++b) {
        lowest = std::min(lowest, (sums[b + 1] - sums[a]) / static_cast<double>(b + 1 - a));
      }
      best = std::max(best, lowest);
    }
    result[i] = best;
  }
  return result;
}

TEST(Isotonic, StepsAreTheIsotonicRegression) {
  const Scores scores = draw_scores(1, 150, 1.0);
  std::vector<std::pair<double, double>> events;
  for (const double z : scores.numerator) events.emplace_back(z, 0.0);
  for (const double z : scores.denominator) events.emplace_back(z, 1.0);
  std::sort(events.begin(), events.end());
  std::vector<double> labels, z;
  for (const auto& [score, label] : events) {
    z.push_back(score);
    labels.push_back(label);
  }
  const auto share = max_min(labels);
  IsotonicCalibrator::Config config;
  config.interpolate = false;
  IsotonicCalibrator calibrator(config);
  calibrator.fit(scores.set());
  const auto log_r = calibrator.log_ratios(Logits(z));
  for (std::size_t i = 0; i < z.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      // The same blocks: equal where the reference is, and never rising.
      ASSERT_EQ(share[i] == share[j], log_r[i] == log_r[j]);
      ASSERT_LE(log_r[i], log_r[j]);
    }
    // Two events of prior move a block of n events by less than 2/min(n0, n1).
    const auto block = static_cast<double>(std::count(share.begin(), share.end(), share[i]));
    const double least = block * std::min(share[i], 1.0 - share[i]);
    if (least > 0.0) {
      ASSERT_NEAR(log_r[i], std::log(1.0 / share[i] - 1.0), 2.0 / least);
    }
  }
}

// Mean scores of the blocks, pooled one distinct score after the other.
std::vector<double> plain_centres(const CalibrationSet& data) {
  struct Counts {
    double n0 = 0.0, n1 = 0.0, moment0 = 0.0, moment1 = 0.0;
  };
  std::map<double, Counts> at;
  Counts total;
  for (std::size_t i = 0; i < data.numerator.size(); ++i) {
    const double w = data.numerator_weights.empty() ? 1.0 : data.numerator_weights[i];
    at[data.numerator[i]].n0 += w;
    total.n0 += w;
  }
  for (std::size_t i = 0; i < data.denominator.size(); ++i) {
    const double w = data.denominator_weights.empty() ? 1.0 : data.denominator_weights[i];
    at[data.denominator[i]].n1 += w;
    total.n1 += w;
  }
  std::vector<Counts> blocks;
  for (const auto& [z, counts] : at) {
    if (counts.n0 + counts.n1 == 0.0) continue;
    Counts next{counts.n0, counts.n1, counts.n0 * z, counts.n1 * z};
    while (!blocks.empty() && blocks.back().n1 * next.n0 >= next.n1 * blocks.back().n0) {
      const Counts& back = blocks.back();
      next = {next.n0 + back.n0, next.n1 + back.n1, next.moment0 + back.moment0,
              next.moment1 + back.moment1};
      blocks.pop_back();
    }
    blocks.push_back(next);
  }
  std::vector<double> centres;
  for (const Counts& block : blocks)
    centres.push_back((block.moment0 / total.n0 + block.moment1 / total.n1) /
                      (block.n0 / total.n0 + block.n1 / total.n1));
  return centres;
}

TEST(Isotonic, PoolsAsOneScoreAfterTheOtherDoes) {
  RandomStream random(6, "pool");
  for (const std::size_t size : {1u, 2u, 3u, 5u, 40u, 3000u, 50000u})
    for (const int shape : {0, 1, 2, 3}) {
      Scores scores = draw_scores(size, size, 1.0);
      if (shape == 1 && size > 1) scores.numerator.resize(size / 2);
      std::vector<double> w0(scores.numerator.size()), w1(scores.denominator.size());
      for (auto* side : {&scores.numerator, &scores.denominator})
        for (double& z : *side) {
          if (shape == 1) z = 0.1 * std::round(10.0 * z);  // ties
          if (shape == 2) z = static_cast<float>(z);
          if (shape == 3 && side == &scores.denominator) z += 100.0;  // apart
        }
      for (auto* weights : {&w0, &w1})
        for (double& w : *weights) w = static_cast<double>(1 + random.below(3));
      for (const bool weighted : {false, true}) {
        CalibrationSet data = scores.set();
        if (weighted) data.numerator_weights = w0, data.denominator_weights = w1;
        IsotonicCalibrator calibrator;
        calibrator.fit(data);
        const auto expected = plain_centres(data);
        ASSERT_EQ(calibrator.centres().size(), expected.size()) << size << " " << shape;
        for (std::size_t i = 0; i < expected.size(); ++i)
          ASSERT_NEAR(calibrator.centres()[i], expected[i], 1e-9) << size << " " << shape;
      }
    }
}

TEST(Isotonic, PoolsViolatorsInTheOrderOfScoresNotOfInput) {
  // Unsorted input; by score the labels are 0 1 0 1, of which the middle two are pooled.
  const std::vector<double> a{2.0, 0.0}, b{3.0, 1.0};
  IsotonicCalibrator calibrator;
  calibrator.fit({a, b});
  EXPECT_EQ(calibrator.values().size(), 3u);
  EXPECT_EQ(calibrator.centres(), (std::vector<double>{0.0, 1.5, 3.0}));
  EXPECT_NEAR(calibrator.log_ratios(Logits{1.5})[0], 0.0, 1e-6);
}

TEST(Isotonic, InterpolatedHasNoSteps) {
  const Scores scores = draw_scores(2, 2000, 1.5);
  IsotonicCalibrator calibrator;
  calibrator.fit(scores.set());
  std::vector<double> z;
  for (int i = 0; i <= 20000; ++i) z.push_back(-3.0 + 6.0 * i / 20000.0);
  const auto log_r = calibrator.log_ratios(Logits(z));
  for (std::size_t i = 1; i < z.size(); ++i) {
    ASSERT_LE(log_r[i], log_r[i - 1] + 1e-12);
    ASSERT_GT(log_r[i], log_r[i - 1] - 0.05);  // steps of this sample are up to 0.6
  }
}

TEST(Isotonic, UndoesAnyMonotoneDistortionAlike) {
  // The blocks depend on the order of the scores alone.
  const auto wild = [](double t) { return std::sinh(2.0 * t) + (t > 0.3 ? 5.0 : 0.0); };
  const Scores plain = draw_scores(3, 20000, 1.0), bent = draw_scores(3, 20000, 1.0, wild);
  IsotonicCalibrator::Config config;
  config.interpolate = false;
  IsotonicCalibrator a(config), b(config);
  a.fit(plain.set());
  b.fit(bent.set());
  EXPECT_EQ(a.values().size(), b.values().size());
  EXPECT_LT(deviation(b, logit_grid(0.8), wild).mean, 0.1);
  EXPECT_LT(deviation(a, logit_grid(0.8)).mean, 0.1);
}

TEST(Isotonic, ErrorsAreAGuideToTheSpread) {
  // 150 samples at scores well inside: see the contract for what these errors are.
  const std::vector<double> t{-0.8, -0.4, 0.0, 0.4, 0.8};
  const Pulls smooth = measure_pulls(IsotonicCalibrator(), 150, 2000, 1.0, t);
  EXPECT_GT(smooth.sd, 0.5);
  EXPECT_LT(smooth.sd, 0.9);
  IsotonicCalibrator::Config config;
  config.interpolate = false;
  const Pulls steps = measure_pulls(IsotonicCalibrator(config), 150, 2000, 1.0, t);
  EXPECT_GT(steps.sd, 0.7);
  EXPECT_LT(steps.sd, 1.3);
}

/// Pooling as it is defined: one block a score, and neighbours joined while any pair violates.
std::vector<double> plain_pooled_shares(const Scores& scores) {
  std::map<double, std::pair<double, double>> counts;
  for (const double z : scores.numerator) counts[z].first += 1.0;
  for (const double z : scores.denominator) counts[z].second += 1.0;
  std::vector<std::pair<double, double>> blocks;
  for (const auto& [z, count] : counts) blocks.push_back(count);
  const auto share = [](const auto& block) { return block.second / (block.first + block.second); };
  for (std::size_t i = 0; i + 1 < blocks.size();) {
    if (share(blocks[i]) < share(blocks[i + 1]) - 1e-14) {
      ++i;
      continue;
    }
    blocks[i].first += blocks[i + 1].first;
    blocks[i].second += blocks[i + 1].second;
    blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    i = i > 0 ? i - 1 : 0;
  }
  std::vector<double> out;
  for (const auto& block : blocks) out.push_back(share(block));
  return out;
}

TEST(Isotonic, BlocksAreThoseOfPlainPooling) {
  for (const double rounding : {0.0, 0.05, 1.0})  // ties
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Scores scores = draw_scores(seed, seed % 4 == 0 ? 3 : 400, 1.0);
      if (rounding > 0.0)
        for (auto* side : {&scores.numerator, &scores.denominator})
          for (double& z : *side) z = rounding * std::round(z / rounding);
      IsotonicCalibrator calibrator;
      calibrator.fit({scores.numerator, scores.denominator});
      const auto shares = plain_pooled_shares(scores);
      ASSERT_EQ(calibrator.values().size(), shares.size()) << rounding << ", " << seed;
      const auto n = static_cast<double>(scores.numerator.size() + scores.denominator.size());
      // Two events of prior move a block by less than 2/min(n0, n1), and large blocks by little.
      for (std::size_t k = 0; k < shares.size(); ++k)
        if (shares[k] > 100.0 / n && shares[k] < 1.0 - 100.0 / n) {
          EXPECT_NEAR(calibrator.values()[k],
                      std::log(1.0 / shares[k] - 1.0) +
                          std::log(static_cast<double>(scores.denominator.size()) /
                                   static_cast<double>(scores.numerator.size())),
                      2.0)
              << k;
        }
      // Weights of one are no weights.
      const std::vector<double> n0(scores.numerator.size(), 1.0);
      const std::vector<double> n1(scores.denominator.size(), 1.0);
      IsotonicCalibrator weighted;
      weighted.fit({scores.numerator, scores.denominator, n0, n1});
      ASSERT_EQ(calibrator.values(), weighted.values());
      ASSERT_EQ(calibrator.centres(), weighted.centres());
    }
}

}  // namespace
}  // namespace neyman
