#include "neyman/simulators/ricker.hpp"

#include "simulators/reference.hpp"

namespace neyman {
namespace {

// Without noise the population is known: log N goes to its fixed point N = log r for r < e².
// False alarm below 1e-6: the mean of Poisson counts within five standard errors.
TEST(Ricker, CountsArePoissonAroundThePopulation) {
  Ricker::Config config;
  config.observations = 20;
  const Ricker ricker(1.5, 40.0, 0.0, config);
  const auto y = sample(ricker, {}, 5000, 1, "test");
  std::vector<double> all(y.values().begin(), y.values().end());
  const auto [mean, variance] = reference::moments(all);
  const double expected = 40.0 * 1.5, n = static_cast<double>(all.size());
  EXPECT_NEAR(mean, expected, 5.0 * std::sqrt(expected / n));
  EXPECT_NEAR(variance, expected, 5.0 * expected * std::sqrt(2.0 / n) * 1.1);
  for (const double count : all) ASSERT_EQ(count, std::floor(count));
}

// Without a burn-in the first observation has mean φ r e^−1, the second follows the map.
// False alarm below 1e-6 (five standard errors).
TEST(Ricker, StepsFollowTheMap) {
  Ricker::Config config;
  config.observations = 2;
  config.burn_in = 0;
  const double first = std::exp(3.8 - 1.0), second = first * std::exp(3.8 - first);
  const std::size_t n = 20000;
  const auto y = sample(Ricker(3.8, 10.0, 0.0, config), {}, n, 2, "test");
  EXPECT_NEAR(reference::moments(y.column(0)).mean, 10.0 * first,
              5.0 * std::sqrt(10.0 * first / n));
  EXPECT_NEAR(reference::moments(y.column(1)).mean, 10.0 * second,
              5.0 * std::sqrt(10.0 * second / n) + 1e-3);
  // With noise the mean of the first grows by exp(σ²/2).
  const auto noisy = sample(Ricker(3.8, 10.0, 0.3, config), {}, n, 3, "test");
  const double mean = 10.0 * first * std::exp(0.045);
  const double spread = std::sqrt(mean + mean * mean * std::expm1(0.09));
  EXPECT_NEAR(reference::moments(noisy.column(0)).mean, mean, 5.0 * spread / std::sqrt(n));
}

TEST(Ricker, SurvivesWildPopulationsAndSaysWhenItCannot) {
  const auto y = sample(Ricker(8.0, 1.0, 2.0), {}, 200, 4, "test");
  for (const double count : y.values()) ASSERT_TRUE(std::isfinite(count) && count >= 0.0);
  EXPECT_TRUE(reference::contains(reference::error_of([] {
                                    sample(Ricker(60.0, 1.0, 0.0, {1, 0}), {}, 1, 1, "test");
                                  }),
                                  "must be at most 1000000"));
}

TEST(Ricker, HasNoDensityAndRefusesNegativeParameters) {
  EXPECT_FALSE(Ricker(3.8, 10.0, 0.3).has_density());
  EXPECT_EQ(Ricker(3.8, 10.0, 0.3).dimension(), 50u);
  EXPECT_EQ(reference::error_of([] { Ricker(3.8, -1.0, 0.3); }),
            "ricker: phi is -1, but must be not negative");
  EXPECT_THROW(Ricker(3.8, 10.0, -0.3), ArgumentError);
  EXPECT_THROW(Ricker(3.8, 10.0, 0.3, {0, 50}), ArgumentError);
}

}  // namespace
}  // namespace neyman
