#include "neyman/calibration/interpolated.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "neyman/calibration/histogram.hpp"
#include "neyman/calibration/none.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"

namespace neyman {
namespace {

using Morphing = InterpolatedCalibration::Morphing;
using Order = InterpolatedCalibration::Order;
using InterpolatedConfig = InterpolatedCalibration::Config;
using NodeScores = InterpolatedCalibration::Scores;

// Events x ~ N(θ, 1) in as many dimensions as θ has, against N(0, 1), and the exact logit
// t = |θ|²/2 − θ·x, distorted as a classifier might that is wrong differently at each θ.
struct DriftingScore {
  double drift = 0.3;

  double distort(double t, std::span<const double> theta) const {
    return (1.0 + drift * theta[0]) * t + drift * theta[0] * theta[0];
  }
  double restore(double z, std::span<const double> theta) const {
    return (z - drift * theta[0] * theta[0]) / (1.0 + drift * theta[0]);
  }
  NodeScores draw(std::span<const double> theta, std::size_t n, std::uint64_t seed) const {
    RandomStream random(seed, "interpolated-test");
    NodeScores scores;
    double square = 0.0;
    for (const double a : theta) square += a * a;
    for (std::size_t i = 0; i < n; ++i) {
      // Only θ·x matters, which is normal.
      const double a = std::sqrt(square) * random.normal(), b = std::sqrt(square) * random.normal();
      scores.numerator.push_back(distort(-0.5 * square + a, theta));
      scores.denominator.push_back(distort(0.5 * square + b, theta));
    }
    return scores;
  }
};

Matrix line_nodes(std::size_t count, double low, double high) {
  Matrix nodes(count, 1);
  for (std::size_t k = 0; k < count; ++k) {
    nodes(k, 0) = low + (high - low) * static_cast<double>(k) / static_cast<double>(count - 1);
  }
  return nodes;
}

InterpolatedCalibration fitted(const InterpolatedConfig& config, const Matrix& nodes,
                               const DriftingScore& problem, std::size_t n) {
  InterpolatedCalibration calibration(config);
  calibration.fit(nodes, [&](std::size_t k) { return problem.draw(nodes.row(k), n, k); });
  return calibration;
}

// Root mean square of log r̂ + t over the central range of both sides.
double rms_error(const InterpolatedCalibration& calibration, const DriftingScore& problem,
                 const std::vector<double>& theta) {
  double square = 0.0;
  for (const double a : theta) square += a * a;
  const double reach = 2.0 * std::sqrt(square);
  Logits z(81);
  std::vector<double> t;
  for (std::size_t i = 0; i < z.size(); ++i) {
    t.push_back(reach * (static_cast<double>(i) / 40.0 - 1.0));
    z[i] = problem.distort(t[i], theta);
  }
  const LogRatios log_r = calibration.log_ratios(z, theta);
  double sum = 0.0;
  for (std::size_t i = 0; i < z.size(); ++i) sum += (log_r[i] + t[i]) * (log_r[i] + t[i]);
  return std::sqrt(sum / static_cast<double>(z.size()));
}

struct Interpolation {
  std::string name;
  InterpolatedConfig config;
};

void PrintTo(const Interpolation& variant, std::ostream* out) { *out << variant.name; }

std::vector<Interpolation> interpolations() {
  return {{"vertical_linear", {Morphing::vertical, Order::linear, 1.0}},
          {"vertical_cubic", {Morphing::vertical, Order::cubic, 1.0}},
          {"horizontal_linear", {Morphing::horizontal, Order::linear, 1.0}},
          {"horizontal_cubic", {Morphing::horizontal, Order::cubic, 1.0}},
          {"moment_linear", {Morphing::moment, Order::linear, 1.0}},
          {"moment_cubic", {Morphing::moment, Order::cubic, 1.0}}};
}

class Interpolated : public ::testing::TestWithParam<Interpolation> {
 protected:
  InterpolatedConfig config() const { return GetParam().config; }
};

Logits probe(const InterpolatedCalibration& calibration, std::span<const double> point) {
  const auto [low, high] = calibration.range(point);
  std::vector<double> z{-1e300, -1e6, -700.0, -40.0, 0.0, 40.0, 700.0, 1e6, 1e300};
  for (int i = -10; i <= 30; ++i) z.push_back(low + (high - low) * i / 20.0);
  return Logits(z);
}

void expect_same(const InterpolatedCalibration& a, const InterpolatedCalibration& b,
                 const std::vector<std::vector<double>>& points, double tolerance) {
  for (const auto& point : points) {
    const Logits z = probe(a, point);
    const auto ra = a.log_ratios(z, point), rb = b.log_ratios(z, point);
    for (std::size_t i = 0; i < z.size(); ++i) {
      EXPECT_NEAR(ra[i], rb[i], tolerance * (1.0 + std::abs(ra[i]))) << "at " << z[i];
    }
    EXPECT_EQ(a.count_outside(z, point), b.count_outside(z, point));
  }
}

void expect_finite(const InterpolatedCalibration& calibration,
                   const std::vector<std::vector<double>>& points) {
  for (const auto& point : points) {
    const Logits z = probe(calibration, point);
    const auto found = calibration.derivatives(z, point);
    const auto log_r = calibration.log_ratios(z, point);
    for (std::size_t i = 0; i < z.size(); ++i) {
      ASSERT_TRUE(std::isfinite(log_r[i])) << "at " << z[i];
      ASSERT_LE(std::abs(log_r[i]), 4e6);
      ASSERT_EQ(found.value[i], log_r[i]);
      ASSERT_TRUE(std::isfinite(found.by_logit[i])) << "at " << z[i];
      for (const double slope : found.by_point.row(i)) ASSERT_TRUE(std::isfinite(slope));
    }
  }
}

TEST_P(Interpolated, IsTheNodesCalibrationAtANode) {
  const DriftingScore problem;
  const Matrix nodes = line_nodes(4, 0.5, 2.0);
  const auto calibration = fitted(config(), nodes, problem, 5000);
  for (std::size_t k = 0; k < nodes.rows(); ++k) {
    const Calibrator& own = calibration.calibrator(k);
    const auto [low, high] = calibration.range(nodes.row(k));
    EXPECT_EQ(low, own.low());
    EXPECT_EQ(high, own.high());
    Logits z(101);
    for (std::size_t i = 0; i < z.size(); ++i) {
      z[i] = low - 1.0 + (high - low + 2.0) * static_cast<double>(i) / 100.0;
    }
    const LogRatios expected = own.log_ratios(z), found = calibration.log_ratios(z, nodes.row(k));
    for (std::size_t i = 0; i < z.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], 0.01) << "node " << k << " at " << z[i];
    }
    EXPECT_EQ(calibration.count_outside(z, nodes.row(k)), own.count_outside(z));
  }
}

// Few values of the score, as a small tree gives: densities of spikes, at different places.
TEST_P(Interpolated, IsTheNodesCalibrationAtANodeOfDiscreteScores) {
  const Matrix nodes = line_nodes(4, 0.0, 3.0);
  InterpolatedCalibration calibration(config(), HistogramCalibrator());
  calibration.fit(nodes, [](std::size_t k) {
    NodeScores ties;
    for (int i = 0; i < 1000; ++i) {
      ties.numerator.push_back(i % 4 - 1.5 - 0.1 * static_cast<double>(k));
      ties.denominator.push_back(std::min(i % 8, 3) - 1.5 - 0.1 * static_cast<double>(k));
    }
    return ties;
  });
  for (std::size_t k = 0; k < nodes.rows(); ++k) {
    Logits z(4);
    for (std::size_t i = 0; i < 4; ++i) {
      z[i] = static_cast<double>(i) - 1.5 - 0.1 * static_cast<double>(k);
    }
    const LogRatios expected = calibration.calibrator(k).log_ratios(z);
    const LogRatios found = calibration.log_ratios(z, nodes.row(k));
    EXPECT_NEAR(expected[0], std::log(2.0), 0.05);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(found[i], expected[i], 0.01) << k << ", " << i;
  }
}

TEST_P(Interpolated, FindsTheRatioBetweenNodes) {
  // Over 60 seeds of each variant, the largest error was 0.054.
  const DriftingScore problem;
  const auto calibration = fitted(config(), line_nodes(7, 0.5, 2.0), problem, 20000);
  for (const double theta : {0.6, 0.9, 1.11, 1.375, 1.9}) {
    EXPECT_LT(rms_error(calibration, problem, {theta}), 0.07) << theta;
  }
}

TEST_P(Interpolated, FindsTheRatioInTwoDimensions) {
  const DriftingScore problem;
  Matrix nodes;
  for (int i = 0; i < 16; ++i) {
    const std::vector<double> row{0.6 + 0.4 * (i / 4), -0.6 + 0.4 * (i % 4)};
    nodes.append(MatrixView(row.data(), 1, 2));
  }
  // Over 60 seeds of each variant, the largest error was 0.076.
  const auto calibration = fitted(config(), nodes, problem, 10000);
  for (const auto& theta : {std::vector<double>{0.8, -0.4}, {1.2, 0.1}, {1.5, 0.55}}) {
    EXPECT_LT(rms_error(calibration, problem, theta), 0.1) << theta[0] << ", " << theta[1];
  }
}

TEST_P(Interpolated, TakesScatteredNodes) {
  const DriftingScore problem;
  RandomStream random(3, "scattered");
  Matrix nodes(14, 2);
  for (std::size_t k = 0; k < nodes.rows(); ++k) {
    nodes(k, 0) = 0.6 + 1.2 * random.uniform();
    nodes(k, 1) = -0.6 + 1.2 * random.uniform();
  }
  // Over 60 seeds of each variant, the largest error was 0.098.
  const auto calibration = fitted(config(), nodes, problem, 10000);
  for (const auto& theta : {std::vector<double>{1.0, -0.2}, {1.3, 0.1}}) {
    EXPECT_LT(rms_error(calibration, problem, theta), 0.13) << theta[0] << ", " << theta[1];
  }
}

TEST_P(Interpolated, DensitiesAreNormalised) {
  const DriftingScore problem;
  const auto calibration = fitted(config(), line_nodes(4, 0.5, 2.0), problem, 5000);
  for (const double theta : {0.7, 1.2, 1.9}) {
    const std::vector<double> point{theta};
    const auto [low, high] = calibration.range(point);
    const std::size_t n = 20000;
    Logits z(n);
    const double h = 1.4 * (high - low) / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) {
      z[i] = low - 0.2 * (high - low) + h * (static_cast<double>(i) + 0.5);
    }
    for (const bool numerator : {true, false}) {
      double sum = 0.0;
      for (const double value : calibration.log_densities(z, point, numerator)) {
        sum += h * std::exp(value);
      }
      // Cubic sums of templates that are raised where they are small have a little more.
      EXPECT_NEAR(sum, 1.0, 5e-3) << theta;
    }
  }
}

TEST_P(Interpolated, WholeWeightsEqualRepetition) {
  const DriftingScore problem;
  const Matrix nodes = line_nodes(3, 0.5, 1.5);
  const auto draw = [&](std::size_t k, bool repeat) {
    const NodeScores plain = problem.draw(nodes.row(k), 2000, k);
    RandomStream random(k, "multiplicities");
    NodeScores result;
    const auto take = [&](const std::vector<double>& from, auto& scores, auto& weights) {
      for (const double z : from) {
        const auto count = random.poisson(1.5);
        scores.insert(scores.end(), repeat ? count : 1, z);
        if (!repeat) weights.push_back(static_cast<double>(count));
      }
    };
    take(plain.numerator, result.numerator, result.numerator_weights);
    take(plain.denominator, result.denominator, result.denominator_weights);
    return result;
  };
  InterpolatedCalibration weighted(config()), repeated(config());
  weighted.fit(nodes, [&](std::size_t k) { return draw(k, false); });
  repeated.fit(nodes, [&](std::size_t k) { return draw(k, true); });
  expect_same(weighted, repeated, {{0.5}, {0.8}, {1.3}}, 1e-6);
}

TEST_P(Interpolated, ThreadsAndWayOfFittingAreIrrelevant) {
  const DriftingScore problem;
  const Matrix nodes = line_nodes(3, 0.5, 1.5);
  std::vector<NodeScores> scores;
  for (std::size_t k = 0; k < 3; ++k) scores.push_back(problem.draw(nodes.row(k), 3000, k));
  std::vector<CalibrationSet> sets;
  for (const NodeScores& s : scores) sets.push_back({s.numerator, s.denominator});
  InterpolatedCalibration all(config());
  all.fit(nodes, sets);
  set_threads(1);
  const auto one_by_one = fitted(config(), nodes, problem, 3000);
  set_threads(0);
  expect_same(all, one_by_one, {{0.5}, {0.8}, {1.3}}, 0.0);
}

TEST_P(Interpolated, LoadsWhatItSaved) {
  const DriftingScore problem;
  const auto calibration = fitted(config(), line_nodes(4, 0.5, 2.0), problem, 2000);
  Archive archive;
  calibration.save(archive);
  InterpolatedCalibration loaded;
  loaded.load(archive);
  EXPECT_EQ(loaded.config().morphing, config().morphing);
  EXPECT_EQ(loaded.config().order, config().order);
  EXPECT_EQ(loaded.nodes(), calibration.nodes());
  expect_same(calibration, loaded, {{0.5}, {0.8}, {1.3}, {7.0}}, 0.0);
  Archive again;
  loaded.save(again);
  EXPECT_EQ(again, archive);
}

TEST_P(Interpolated, DerivativesAreThose) {
  const DriftingScore problem;
  Matrix nodes;
  for (int i = 0; i < 12; ++i) {
    const std::vector<double> row{0.6 + 0.4 * (i / 3), -0.6 + 0.6 * (i % 3)};
    nodes.append(MatrixView(row.data(), 1, 2));
  }
  const auto calibration = fitted(config(), nodes, problem, 5000);
  EXPECT_EQ(calibration.differentiable(), config().order == Order::cubic);
  const std::vector<double> point{1.137, 0.213};
  const auto [low, high] = calibration.range(point);
  const Logits z{low - 30.0, low - 0.3, low + 0.2, -0.913, 0.1234, 1.377, high - 0.2, high + 0.4};
  const auto found = calibration.derivatives(z, point);
  const double h = 1e-6;
  for (std::size_t i = 0; i < z.size(); ++i) {
    const auto around = calibration.log_ratios(Logits{z[i] - h, z[i] + h}, point);
    const double slope = (around[1] - around[0]) / (2.0 * h);
    EXPECT_NEAR(found.by_logit[i], slope, 1e-4 * (1.0 + std::abs(slope))) << z[i];
    for (std::size_t p = 0; p < 2; ++p) {
      auto up = point, down = point;
      up[p] += h;
      down[p] -= h;
      const double difference = calibration.log_ratios(Logits{z[i]}, up)[0] -
                                calibration.log_ratios(Logits{z[i]}, down)[0];
      const double by_point = difference / (2.0 * h);
      EXPECT_NEAR(found.by_point(i, p), by_point, 1e-4 * (1.0 + std::abs(by_point))) << z[i];
    }
  }
}

// Scores that leave nothing to estimate a density from, at some nodes or at all.
TEST_P(Interpolated, StaysFiniteWhateverTheScores) {
  const Matrix nodes = line_nodes(4, 0.0, 3.0);
  const std::vector<std::function<NodeScores(std::size_t)>> cases = {
      [](std::size_t) {
        return NodeScores{{0.0}, {0.0}, {}, {}};
      },
      [](std::size_t k) {
        return NodeScores{{0.1 * k}, {3.0}, {}, {}};
      },
      [](std::size_t k) {
        return NodeScores{{-1e6, 2.0}, {1e6 * k}, {}, {}};
      },
      [](std::size_t) {
        NodeScores ties;
        for (int i = 0; i < 100; ++i) {
          ties.numerator.push_back(i % 3 - 1.0);
          ties.denominator.push_back(i % 2);
        }
        return ties;
      },
      [](std::size_t k) {
        // Separated, and elsewhere at each node.
        NodeScores apart;
        for (int i = 0; i < 50; ++i) {
          apart.numerator.push_back(-100.0 * k - 0.01 * i);
          apart.denominator.push_back(100.0 * k * k + 0.5 * i);
        }
        return apart;
      },
      [](std::size_t k) {
        // A constant score at one node, as at the reference itself.
        const std::vector<double> theta{static_cast<double>(k)};
        return DriftingScore{0.0}.draw(theta, 200, k);
      },
      [](std::size_t k) {
        const std::vector<double> theta{1.0 + k};
        NodeScores weighted = DriftingScore().draw(theta, 100, k);
        weighted.numerator_weights.assign(100, 1e-200);
        weighted.numerator_weights[7] = 1e200;
        weighted.denominator_weights.assign(100, 0.0);
        weighted.denominator_weights[3] = 0.37;
        return weighted;
      }};
  const NoneCalibrator none;
  const HistogramCalibrator histogram;
  for (const auto& scores : cases) {
    InterpolatedCalibration smooth(config());
    smooth.fit(nodes, scores);
    expect_finite(smooth, {{0.0}, {0.3}, {1.5}, {2.0}, {2.99}, {-5.0}});
    for (const Calibrator* calibrator :
         {static_cast<const Calibrator*>(&none), static_cast<const Calibrator*>(&histogram)}) {
      InterpolatedCalibration other(config(), *calibrator);
      other.fit(nodes, scores);
      expect_finite(other, {{0.0}, {0.3}, {1.5}});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, Interpolated, ::testing::ValuesIn(interpolations()),
                         [](const auto& variant) { return variant.param.name; });

// What the methods are for: a score that is moved and stretched as θ changes, by coarse nodes.
TEST(InterpolatedCalibration, MovedScoresNeedHorizontalOrMomentMorphing) {
  const DriftingScore strong{0.8};
  const Matrix nodes = line_nodes(4, 0.5, 2.0);
  std::vector<double> errors;
  for (const Morphing morphing : {Morphing::vertical, Morphing::horizontal, Morphing::moment}) {
    errors.push_back(
        rms_error(fitted({morphing, Order::cubic, 1.0}, nodes, strong, 50000), strong, {1.75}));
  }
  // Over 20 seeds about 0.100 ± 0.005, and 0.015 and 0.017 with 0.039 at most.
  EXPECT_GT(errors[0], 0.08);
  EXPECT_LT(errors[1], 0.05);
  EXPECT_LT(errors[2], 0.05);
}

TEST(InterpolatedCalibration, CountsAndBoundsWhatIsOutside) {
  const DriftingScore problem;
  const auto calibration = fitted({}, line_nodes(4, 0.5, 2.0), problem, 5000);
  const std::vector<double> point{1.3};
  const auto [low, high] = calibration.range(point);
  EXPECT_EQ(calibration.count_outside(Logits{low - 1.0, low, 0.0, high, high + 0.1, 1e300}, point),
            3u);
  const auto log_r = calibration.log_ratios(Logits{low, low - 1e5, high, high + 1e5}, point);
  // The nodes' smooth calibrators go on for at most 10; weights beyond 1 add a quarter at most.
  EXPECT_GT(log_r[1], log_r[0]);
  EXPECT_LT(log_r[1], log_r[0] + 12.5);
  EXPECT_LT(log_r[3], log_r[2]);
  EXPECT_GT(log_r[3], log_r[2] - 12.5);
}

TEST(InterpolatedCalibration, OutsideOfTheNodesIsTheNearestPoint) {
  const DriftingScore problem;
  const auto calibration = fitted({}, line_nodes(3, 0.5, 1.5), problem, 2000);
  const Logits z{-1.0, 0.0, 1.0};
  EXPECT_EQ(calibration.log_ratios(z, std::vector<double>{9.0}),
            calibration.log_ratios(z, std::vector<double>{1.5}));
}

TEST(InterpolatedCalibration, UsesTheCalibratorGiven) {
  const DriftingScore problem;
  const Matrix nodes = line_nodes(3, 0.5, 1.5);
  InterpolatedCalibration calibration({Morphing::vertical, Order::linear, 1.0}, NoneCalibrator());
  calibration.fit(nodes, [&](std::size_t k) { return problem.draw(nodes.row(k), 2000, k); });
  EXPECT_EQ(calibration.calibrator(1).kind(), "none");
  // The same −z at all nodes, so between them too, wherever the densities follow.
  const auto log_r = calibration.log_ratios(Logits{-2.0, 0.0, 1.0}, std::vector<double>{0.8});
  EXPECT_NEAR(log_r[0], 2.0, 1e-3);
  EXPECT_NEAR(log_r[1], 0.0, 1e-3);
  EXPECT_NEAR(log_r[2], -1.0, 1e-3);
}

TEST(InterpolatedCalibration, ReadsSettings) {
  Settings settings({{"morphing", {std::string("moment"), 1}},
                     {"order", {std::string("linear"), 2}},
                     {"smoothing", {0.5, 3}}});
  const InterpolatedConfig config = InterpolatedConfig::from(settings);
  settings.refuse_unread();
  settings.throw_if_problems();
  EXPECT_EQ(config.morphing, Morphing::moment);
  EXPECT_EQ(config.order, Order::linear);
  EXPECT_EQ(config.smoothing, 0.5);
  Settings wrong({{"morphing", {std::string("diagonal"), 1}}, {"smoothing", {-1.0, 2}}});
  const InterpolatedConfig kept = InterpolatedConfig::from(wrong);
  EXPECT_EQ(kept.morphing, InterpolatedConfig{}.morphing);
  EXPECT_EQ(wrong.problems().size(), 2u);
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(InterpolatedCalibration, RefusesMisuse) {
  EXPECT_THROW(InterpolatedCalibration({Morphing::vertical, Order::cubic, 0.0}), ArgumentError);
  InterpolatedCalibration calibration;
  const std::vector<double> point{0.5};
  EXPECT_EQ(message_of([&] { calibration.log_ratios(Logits{0.0}, point); }),
            "InterpolatedCalibration::log_ratios: interpolated calibration is not fitted, but must "
            "be fitted before it is used");
  EXPECT_THROW(calibration.nodes(), ArgumentError);

  const Matrix nodes = line_nodes(3, 0.0, 1.0);
  const std::vector<double> good{0.0, 1.0}, none, nan{0.0, NAN};
  const CalibrationSet plain{good, good}, empty{good, none}, broken{nan, good};
  EXPECT_THROW(calibration.fit(nodes, std::vector{plain, plain}), ArgumentError);
  const auto at_node = message_of([&] {
    calibration.fit(nodes, std::vector{plain, plain, empty});
  });
  EXPECT_NE(at_node.find("node 2: "), std::string::npos) << at_node;
  EXPECT_NE(at_node.find("denominator"), std::string::npos) << at_node;
  EXPECT_THROW(calibration.fit(nodes, std::vector{plain, broken, plain}), ArgumentError);
  EXPECT_THROW(calibration.fit(Matrix(2, 1, {1.0, 1.0}), std::vector{plain, plain}), ArgumentError);
  EXPECT_FALSE(calibration.fitted());

  calibration.fit(nodes, std::vector{plain, plain, plain});
  EXPECT_THROW(calibration.log_ratios(Logits{NAN}, point), ArgumentError);
  EXPECT_THROW(calibration.derivatives(Logits{INFINITY}, point), ArgumentError);
  EXPECT_THROW(calibration.log_ratios(Logits{0.0}, std::vector<double>{0.1, 0.2}), ArgumentError);
  EXPECT_THROW(calibration.log_ratios(Logits{0.0}, std::vector<double>{NAN}), ArgumentError);
  EXPECT_THROW(calibration.calibrator(3), ArgumentError);
}

TEST(InterpolatedCalibration, RefusesArchivesThatAreBroken) {
  const DriftingScore problem;
  const auto calibration = fitted({}, line_nodes(2, 0.5, 1.5), problem, 100);
  Archive archive;
  calibration.save(archive);
  Archive short_table = archive, unknown = archive, without = archive;
  short_table.child("node1").set("log_density", std::vector<double>{1.0});
  unknown.set("morphing", "diagonal");
  without.set("nodes", Matrix(3, 1, {0.0, 1.0, 2.0}));
  InterpolatedCalibration loaded;
  EXPECT_NE(message_of([&] { loaded.load(short_table); }).find("node1"), std::string::npos);
  EXPECT_NE(message_of([&] { loaded.load(unknown); }).find("candidates are vertical"),
            std::string::npos);
  EXPECT_THROW(loaded.load(without), FileError);
  // An unfitted one is saved and loaded too.
  Archive bare;
  InterpolatedCalibration({Morphing::moment, Order::linear, 2.0}).save(bare);
  loaded.load(bare);
  EXPECT_FALSE(loaded.fitted());
  EXPECT_EQ(loaded.config().smoothing, 2.0);
}

// The interface's default, seen by a kind that has no derivatives.
TEST(CalibrationAcross, HasNoDerivativesUnlessTold) {
  class Plain : public CalibrationAcross {
   public:
    std::string kind() const override { return "plain"; }
    LogRatios log_ratios(const Logits& z, std::span<const double>) const override {
      return LogRatios(z.size());
    }
    std::size_t count_outside(const Logits&, std::span<const double>) const override { return 0; }
    void save(Archive&) const override {}
    void load(const Archive&) override {}
  };
  const Plain plain;
  EXPECT_FALSE(plain.differentiable());
  EXPECT_EQ(message_of([&] { plain.derivatives(Logits{0.0}, {}); }),
            "CalibrationAcross::derivatives: calibration is plain, but must be differentiable");
}

}  // namespace
}  // namespace neyman
