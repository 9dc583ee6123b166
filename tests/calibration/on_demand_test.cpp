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
