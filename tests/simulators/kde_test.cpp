#include "neyman/simulators/kde.hpp"

#include <numbers>

#include "neyman/simulators/join.hpp"
#include "neyman/simulators/normal.hpp"
#include "simulators/reference.hpp"

namespace neyman {
namespace {

/// The sum over all events, in logarithms.
double brute_force(const Matrix& events, const std::vector<double>& weights,
                   const std::vector<double>& h, const std::vector<double>& x) {
  double total = 0.0, largest = -1e308, sum = 0.0;
  std::vector<double> terms;
  for (std::size_t i = 0; i < events.rows(); ++i) {
    const double w = weights.empty() ? 1.0 : weights[i];
    total += w;
    if (w == 0.0) continue;
    double term = std::log(w);
    for (std::size_t j = 0; j < x.size(); ++j) {
      const double z = (x[j] - events(i, j)) / h[j];
      term += -0.5 * z * z - std::log(h[j] * std::sqrt(2 * std::numbers::pi));
    }
    terms.push_back(term);
    largest = std::max(largest, term);
  }
  for (const double term : terms) sum += std::exp(term - largest);
  return largest + std::log(sum / total);
}

TEST(Kde, MatchesTheSumOverAllEvents) {
  const Join pair({std::make_shared<Normal>(0.0, 1.0), std::make_shared<Normal>(5.0, 3.0)});
  for (const std::size_t d : {1u, 2u}) {
    const auto drawn = sample(pair, {}, 700, 1, "test");
    Matrix events(700, d);
    std::vector<double> weights;
    for (std::size_t i = 0; i < 700; ++i) {
      for (std::size_t j = 0; j < d; ++j) events(i, j) = drawn(i, j);
      weights.push_back(static_cast<double>(i % 5));
    }
    const Kde kde(events, weights);
    // In the middle, between, and far outside where every kernel underflows.
    for (const double x : {0.0, 1.7, -4.0, 12.0, 500.0, -1e5}) {
      const std::vector<double> at(d, x);
      const double exact = brute_force(events, weights, kde.bandwidth(), at);
      EXPECT_NEAR(reference::log_density_at(kde, {}, at), exact, 1e-12 * (1 + std::abs(exact)));
    }
  }
}

TEST(Kde, BandwidthsFollowTheRules) {
  const auto events = sample(Normal(3.0, 2.0), {}, 400, 2, "test");
  const double sigma = std::sqrt(reference::moments(events.column(0)).variance);
  Kde::Config silverman;
  silverman.rule = Kde::Rule::silverman;
  EXPECT_NEAR(Kde(events).bandwidth()[0], sigma * std::pow(400.0, -0.2), 1e-12);
  EXPECT_NEAR(Kde(events, {}, silverman).bandwidth()[0], sigma * std::pow(300.0, -0.2), 1e-12);
  // Half of the events switched off count as half of the events.
  std::vector<double> weights(400, 0.0);
  for (std::size_t i = 0; i < 200; ++i) weights[i] = 3.0;
  EXPECT_NEAR(Kde(events, weights).bandwidth()[0],
              Kde(events.take(std::vector<std::size_t>([] {
                std::vector<std::size_t> first(200);
                for (std::size_t i = 0; i < 200; ++i) first[i] = i;
                return first;
              }())))
                  .bandwidth()[0],
              1e-12);
}

TEST(Kde, WeightsEqualRepetitionAtAGivenBandwidth) {
  Kde::Config config;
  config.bandwidth = {0.7};
  const Kde weighted(Matrix(2, 1, {0.0, 3.0}), {1.0, 2.0}, config);
  const Kde repeated(Matrix(3, 1, {3.0, 0.0, 3.0}), {}, config);
  for (const double x : {-1.0, 1.5, 3.0})
    EXPECT_NEAR(reference::log_density_at(weighted, {}, {x}),
                reference::log_density_at(repeated, {}, {x}), 1e-14);
}

TEST(Kde, IsNormalisedAndItsCdfIsTheIntegral) {
  const auto events = sample(Normal(0.0, 1.0), {}, 50, 3, "test");
  const Kde kde(events);
  EXPECT_NEAR(reference::integral(kde, {}, -10, 10, 4000), 1.0, 1e-10);
  EXPECT_NEAR(reference::integral(kde, {}, -10, 0.4, 4000), kde.cdf({}, 0.4), 1e-10);
  for (const double p : {1e-6, 0.2, 0.5, 0.999})
    EXPECT_NEAR(kde.cdf({}, kde.quantile({}, p)), p, 1e-12);
}

// False alarm 1e-6 (Kolmogorov–Smirnov).
TEST(Kde, SamplesFollowTheCdf) {
  Kde::Config config;
  config.bandwidth = {0.5};
  const Kde kde(Matrix(3, 1, {-2.0, 0.0, 4.0}), {1.0, 0.0, 3.0}, config);
  const auto x = sample(kde, {}, 50000, 4, "test");
  EXPECT_GT(reference::ks_p_value(x.column(0), [&](double v) { return kde.cdf({}, v); }),
            reference::false_alarm);
}

TEST(Kde, RefusesWhatHasNoSpread) {
  EXPECT_EQ(reference::error_of([] {
              Kde(Matrix(3, 2, {1, 5, 2, 5, 3, 5}));
            }),
            "kde: column 1 is constant, but must be spread, or the bandwidth given");
  EXPECT_THROW(Kde(Matrix(1, 1, {2.0})), ArgumentError);
  EXPECT_THROW(Kde(Matrix(0, 1)), ArgumentError);
  EXPECT_THROW(Kde(Matrix(2, 1, {1.0, 2.0}), {0.0, 0.0}), ArgumentError);
  EXPECT_THROW(Kde(Matrix(2, 1, {1.0, std::nan("")})), ArgumentError);
  Kde::Config config;
  config.bandwidth = {-1.0};
  EXPECT_THROW(Kde(Matrix(1, 1, {2.0}), {}, config), ArgumentError);
  config.bandwidth = {1.0};
  EXPECT_NO_THROW(Kde(Matrix(1, 1, {2.0}), {}, config));
}

}  // namespace
}  // namespace neyman
