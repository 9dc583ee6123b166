#include "neyman/calibration/on_demand.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "neyman/calibration/sigmoid.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"

namespace neyman {
namespace {

/// x ~ N(θ, 1) against N(0, 1), scored by z = −x: the calibrated log r is θ x − θ²/2. The same
/// random numbers at each θ.
OnDemandCalibration::Scores simulate(std::span<const double> point, std::size_t n) {
  OnDemandCalibration::Scores out;
  RandomStream top(1, "numerator"), bottom(1, "denominator");
  for (std::size_t i = 0; i < n; ++i) {
    out.numerator.push_back(-(point[0] + top.normal()));
    out.denominator.push_back(-bottom.normal());
  }
  return out;
}

OnDemandCalibration make(std::size_t cache = 1000, std::size_t n = 20000) {
  return {1,
          [n](std::span<const double> point) { return simulate(point, n); },
          {std::make_shared<SigmoidCalibrator>(), cache}};
}

TEST(OnDemandCalibration, FindsTheRatioAtAnyTheta) {
  const auto calibration = make();
  for (const double theta : {-1.0, 0.3, 1.7}) {
    const auto found = calibration.log_ratios(Logits{-1.0, 0.5}, std::vector<double>{theta});
    // Slope and offset of 20 000 events a side: about 0.02 each.
    EXPECT_NEAR(found[0], theta - 0.5 * theta * theta, 0.1);
    EXPECT_NEAR(found[1], -0.5 * theta - 0.5 * theta * theta, 0.1);
  }
}

TEST(OnDemandCalibration, IsSmoothInThetaByCommonRandomNumbers) {
  // Second differences over steps of 0.01, whose truth is 1e-4: with random numbers of its own at
  // each θ they are as large as the error of 2000 events a side.
  const auto roughness = [](const OnDemandCalibration& calibration) {
    double sum = 0.0;
    for (double theta = 0.2; theta < 1.5; theta += 0.1) {
      double d = 0.0;
      for (const auto& [step, factor] : {std::pair{-0.01, 1.0}, {0.0, -2.0}, {0.01, 1.0}})
        d += factor * calibration.log_ratios(Logits{-1.0}, std::vector<double>{theta + step})[0];
      sum += d * d / 13.0;
    }
    return std::sqrt(sum);
  };
  const OnDemandCalibration independent(
      1,
      [](std::span<const double> point) {
        OnDemandCalibration::Scores out;
        const auto block = static_cast<std::uint64_t>(std::llround(1e6 * point[0]));
        RandomStream top(1, "numerator", block), bottom(1, "denominator", block);
        for (std::size_t i = 0; i < 2000; ++i) {
          out.numerator.push_back(-(point[0] + top.normal()));
          out.denominator.push_back(-bottom.normal());
        }
        return out;
      },
      {std::make_shared<SigmoidCalibrator>(), 1000});
  EXPECT_LT(roughness(make(1000, 2000)), 1e-3);
  EXPECT_GT(roughness(independent), 3e-2);
}

TEST(OnDemandCalibration, ReplicasSpreadAsOtherSimulationsWould) {
  // log r at three scores from 200 simulations with random numbers of their own, and from 200
  // replicas of one of them: standard deviations known to 5 % each, so 7 % for their quotient; that
  // of the one simulation differs from the average by a few percent more. A quotient off by 35 %
  // is 4 standard deviations: one false alarm in 5000 for the three.
  constexpr std::size_t events = 2000, times = 200;
  const std::vector<double> point{0.8};
  const Logits logits{-2.0, -0.5, 1.0};
  std::vector<double> sums(logits.size(), 0.0), squares(logits.size(), 0.0);
  for (std::size_t t = 0; t < times; ++t) {
    OnDemandCalibration::Scores scores;
    RandomStream top(2, "numerator", t), bottom(2, "denominator", t);
    for (std::size_t i = 0; i < events; ++i) {
      scores.numerator.push_back(-(point[0] + top.normal()));
      scores.denominator.push_back(-bottom.normal());
    }
    SigmoidCalibrator calibrator;
    calibrator.fit({scores.numerator, scores.denominator, {}, {}});
    const auto found = calibrator.log_ratios(logits);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      sums[i] += found[i] / times;
      squares[i] += found[i] * found[i] / times;
    }
  }
  const auto calibration = make(1000, events);
  const auto replicas = calibration.replicas(point, times, 7);
  ASSERT_EQ(replicas.size(), times);
  EXPECT_EQ(calibration.fits(), 1U);
  const auto fitted = calibration.log_ratios(logits, point);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    double mean = 0.0, square = 0.0;
    for (const auto& replica : replicas) {
      const double found = replica->log_ratios(Logits{logits[i]})[0];
      mean += found / times;
      square += found * found / times;
    }
    const double expected = std::sqrt(squares[i] - sums[i] * sums[i]);
    const double spread = std::sqrt(square - mean * mean);
    EXPECT_NEAR(spread / expected, 1.0, 0.35) << i;
    // Around what was fitted: the mean of 200 is known to 7 % of the spread.
    EXPECT_NEAR(mean, fitted[i], 0.35 * spread) << i;
  }
}

TEST(OnDemandCalibration, ReplicasFluctuateTogetherAtNeighbouringTheta) {
  // The same multiplicities at every θ: log r of one replica less that of another hardly changes
  // over a step of 0.01, where independent ones would differ by their spread, about 0.05.
  const auto calibration = make(1000, 2000);
  const auto here = calibration.replicas(std::vector<double>{0.8}, 20, 7);
  const auto beside = calibration.replicas(std::vector<double>{0.81}, 20, 7);
  const auto at = [](const Calibrator& calibrator) {
    return calibrator.log_ratios(Logits{-1.0})[0];
  };
  double together = 0.0, spread = 0.0;
  for (std::size_t b = 1; b < here.size(); ++b) {
    const double difference = at(*here[b]) - at(*here[0]);
    together += std::pow(at(*beside[b]) - at(*beside[0]) - difference, 2);
    spread += difference * difference;
  }
  EXPECT_LT(together, 0.01 * spread);
}

TEST(OnDemandCalibration, KeepsWhatItHasFittedWithinBounds) {
  const auto calibration = make(2, 100);
  const auto ask = [&](double theta) { calibration.at(std::vector<double>{theta}); };
  ask(0.1);
  ask(0.1);
  EXPECT_EQ(calibration.fits(), 1U);
  ask(0.2);
  ask(0.1);
  EXPECT_EQ(calibration.fits(), 2U);
  ask(0.3);  // drops 0.1
  ask(0.2);
  EXPECT_EQ(calibration.fits(), 3U);
  ask(0.1);
  EXPECT_EQ(calibration.fits(), 4U);
}

TEST(OnDemandCalibration, GivesTheSameOnSeveralThreads) {
  const auto one = make(3, 500), several = make(3, 500);
  std::vector<double> found(64);
  const auto theta = [](std::size_t i) { return 0.1 * static_cast<double>(i % 8); };
  set_threads(4);
  parallel_tasks(found.size(), [&](std::size_t i) {
    found[i] = several.log_ratios(Logits{0.4}, std::vector<double>{theta(i)})[0];
  });
  set_threads(0);
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_EQ(found[i], one.log_ratios(Logits{0.4}, std::vector<double>{theta(i)})[0]);
}

TEST(OnDemandCalibration, RefusesWhatItCannotDo) {
  const auto message = [](const std::function<void()>& action) -> std::string {
    try {
      action();
    } catch (const Error& failure) {
      return failure.what();
    }
    return {};
  };
  auto calibration = make(10, 100);
  EXPECT_FALSE(calibration.differentiable());
  EXPECT_EQ(calibration.count_outside(Logits{-100.0, 0.0}, std::vector<double>{0.5}), 1U);
  EXPECT_NE(message([&] {
              calibration.at(std::vector<double>{1.0, 2.0});
            }).find("point has 2"),
            std::string::npos);
  EXPECT_NE(message([&] { calibration.at(std::vector<double>{NAN}); }).find("finite"),
            std::string::npos);
  EXPECT_NE(message([&] {
              Archive archive;
              calibration.save(archive);
            }).find("needs the simulator"),
            std::string::npos);
  EXPECT_NE(message([&] { calibration.load(Archive()); }).find("needs the simulator"),
            std::string::npos);
  EXPECT_THROW(OnDemandCalibration(1, nullptr, {}), ArgumentError);
  EXPECT_THROW(make(0), ArgumentError);
}

}  // namespace
}  // namespace neyman
