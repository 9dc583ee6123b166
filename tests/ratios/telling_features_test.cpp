#include "ratios/telling_features.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "neyman/core/random.hpp"
#include "neyman/simulators/design.hpp"

namespace neyman::across {
namespace {

const ParameterSpace two({{"a", -1, 1, {}}, {"b", -1, 1, {}}});

/// Events of `features` numbers, which `fill` makes of θ and a random stream.
Samples events_of(
    std::size_t n, std::size_t features, std::uint64_t seed,
    const std::function<void(std::span<const double>, RandomStream&, std::span<double>)>& fill) {
  Samples out;
  out.feature_names = default_feature_names(features);
  out.parameter_names = {"a", "b"};
  out.theta = Design(two).draw(n, seed, "theta");
  out.x = Matrix(n, features);
  for (std::size_t i = 0; i < n; ++i) {
    RandomStream random(seed, "events", i);
    fill(out.theta.row(i), random, out.x.row(i));
  }
  return out;
}

void noise(RandomStream& random, std::span<double> x) {
  for (double& value : x) value = random.normal();
}

using Features = std::vector<std::size_t>;

TEST(TellingFeatures, AMeanASpreadAndACorrelationTell) {
  const auto events = events_of(10000, 30, 1, [](auto theta, auto& random, auto x) {
    noise(random, x);
    x[3] += 0.3 * theta[0];
    x[7] *= std::exp(0.3 * theta[1]);
    const double rho = 0.5 * theta[0];
    x[12] = rho * x[11] + std::sqrt(1.0 - rho * rho) * x[12];
    x[20] = 5.0;                      // a constant
    x[21] = x[21] > 0.0 ? 1.0 : 0.0;  // a category that tells nothing
    x[22] = std::tan(1.5 * std::erf(x[22]));
  });
  EXPECT_EQ(telling_features(events, two), (Features{3, 7, 11, 12}));
}

// The noise of one feature is in the other: the second one alone tells nothing.
TEST(TellingFeatures, WhatDependsOnATellingOneIsKept) {
  const auto events = events_of(10000, 6, 2, [](auto theta, auto& random, auto x) {
    noise(random, x);
    x[0] = theta[0] + x[4];
  });
  EXPECT_EQ(telling_features(events, two), (Features{0, 4}));
}

// 1 % for each call: more than three of 60 have a probability of 0.3 %.
TEST(TellingFeatures, NoiseIsSeldomCalledTelling) {
  std::size_t alarms = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto events = events_of(2000, 20, 100 + seed, [](auto, auto& random, auto x) {
      noise(random, x);
      x[1] = std::exp(2.0 * x[1]);
    });
    alarms += telling_features(events, two).empty() ? 0 : 1;
  }
  EXPECT_LE(alarms, 3U);
}

TEST(TellingFeatures, EventsWithoutWeightSayNothing) {
  auto events = events_of(8000, 5, 3, [](auto theta, auto& random, auto x) {
    noise(random, x);
    x[2] += theta[1];
  });
  events.weights.assign(events.size(), 1.0);
  for (std::size_t i = 0; i < events.size(); i += 2) {
    events.weights[i] = 0.0;
    events.x(i, 4) = 10.0 * events.theta(i, 0);
  }
  // On normal scores of all events the second half is compressed, and still tells.
  EXPECT_EQ(telling_features(events, two), (Features{2}));
}

TEST(TellingFeatures, OneFeatureAndFewEvents) {
  const auto events = events_of(
      200, 1, 4, [](auto theta, auto& random, auto x) { x[0] = theta[0] + 0.1 * random.normal(); });
  EXPECT_EQ(telling_features(events, two), (Features{0}));
}

}  // namespace
}  // namespace neyman::across
