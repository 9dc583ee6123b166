#include "ratios/network_ratio.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "ratios/two_means.hpp"

namespace neyman {
namespace {

using test::data_at;
using test::exact_log_density;
using test::plane;
using test::plane_design;
using test::simulate_plane;

NetworkRatio::Config quick_network() {
  NetworkRatio::Config config;
  config.width = 16;
  config.contrasts = 16;
  config.members = 2;
  config.parts = 5;
  config.epochs = 12;
  config.decay = 0.1;
  config.seed = 1;
  return config;
}

/// Trained once for the tests that only look at it.
const NetworkRatio& trained_network() {
  static const NetworkRatio ratio(simulate_plane(plane_design(), 20000, 1), plane_design(),
                                  quick_network());
  return ratio;
}

double rms_error(const NetworkRatio& ratio, std::span<const double> theta0,
                 std::span<const double> theta1) {
  const Matrix x = data_at({theta0.begin(), theta0.end()}, 2000, 3);
  const auto learned = ratio.log_ratios(x, theta0, theta1);
  double squares = 0.0;
  for (std::size_t i = 0; i < x.rows(); ++i)
    squares += std::pow(
        learned[i] - exact_log_density(x.row(i), theta0) + exact_log_density(x.row(i), theta1), 2);
  return std::sqrt(squares / 2000.0);
}

// log r has a spread of 1.2 here; with 20 000 events it is off by some 0.06 in five trainings.
TEST(NetworkRatio, ComesCloseToTheExactRatio) {
  EXPECT_LT(rms_error(trained_network(), std::vector{0.5, -0.5}, std::vector{-0.5, 1.0}), 0.15);
}

// What it is off by at one θ for all events alike would move estimates: 2000 events tell each mean
// within 0.024 and 0.045, and the estimate is to be within four such errors, with as much from
// training.
TEST(NetworkRatio, TheMaximumOfManyEventsIsWhereItBelongs) {
  const Matrix x = data_at({0.5, -0.5}, 2000, 5);
  const auto sum = trained_network().over(x);
  std::vector<double> gradient(2), best{0.0, 0.0};
  for (int step = 0; step < 60; ++step) {
    (*sum)(best, gradient);
    best[0] += gradient[0] / 2500.0;
    best[1] += gradient[1] / 800.0;
  }
  double a = 0.0, b = 0.0;
  for (std::size_t i = 0; i < 2000; ++i) {
    a += (0.8660254 * x(i, 0) + 0.5 * x(i, 1)) / 2000.0;
    b += (-0.5 * x(i, 0) + 0.8660254 * x(i, 1)) / 2000.0;
  }
  EXPECT_NEAR(best[0], a, 0.1);
  EXPECT_NEAR(best[1], b, 0.18);
}

TEST(NetworkRatio, AllWaysLeadToTheSame) {
  const Matrix x = data_at({0.3, 0.7}, 70, 4);
  const Matrix points(3, 2, {0.5, -0.5, 1.9, 2.0, -2.0, 0.1});
  std::vector<double> weights(70);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = 0.5 + static_cast<double>(i % 3);
  const auto& ratio = trained_network();
  const Matrix table = ratio.table(x, points);
  const auto ratios = ratio.log_ratios(x, points.row(0), points.row(1));
  for (std::size_t i = 0; i < x.rows(); ++i)
    EXPECT_NEAR(ratios[i], table(i, 0) - table(i, 1), 1e-9);
  const auto sum = ratio.over(x, weights);
  const auto at = sum->at(points);
  for (std::size_t j = 0; j < 3; ++j) {
    double expected = 0.0;
    for (std::size_t i = 0; i < x.rows(); ++i) expected += weights[i] * table(i, j);
    EXPECT_NEAR(at[j], expected, 1e-5 * std::abs(expected) + 1e-4);
    EXPECT_NEAR((*sum)(points.row(j), {}), expected, 1e-5 * std::abs(expected) + 1e-4);
  }
  const auto one = ratio.over(x.rows(0, 1))->at(points);
  for (std::size_t j = 0; j < 3; ++j) EXPECT_NEAR(one[j], table(0, j), 1e-5);
}

TEST(NetworkRatio, GradientAgreesWithDifferences) {
  const std::vector<double> point{0.2, -1.1};
  const auto sum = trained_network().over(data_at({0.3, 0.7}, 200, 5));
  std::vector<double> gradient(2);
  (*sum)(point, gradient);
  for (std::size_t p = 0; p < 2; ++p) {
    auto up = point, down = point;
    up[p] += 5e-3;
    down[p] -= 5e-3;
    const double difference = ((*sum)(up, {}) - (*sum)(down, {})) / 1e-2;
    EXPECT_NEAR(gradient[p], difference, 0.005 * std::abs(difference) + 0.1);
  }
}

TEST(NetworkRatio, KnowsItsOwnUncertainty) {
  const auto sum = trained_network().over(data_at({0.3, 0.7}, 500, 7));
  const Matrix covariance = sum->simulation_gradient_covariance(std::vector{0.3, 0.7});
  EXPECT_NEAR(covariance(0, 1), covariance(1, 0), 1e-9 * covariance(0, 0));
  EXPECT_GT(covariance(0, 0), 0.0);
  EXPECT_GT(covariance(1, 1), 0.0);
  EXPECT_LE(covariance(0, 1) * covariance(0, 1),
            covariance(0, 0) * covariance(1, 1) * (1.0 + 1e-9));
  const Matrix replicas =
      sum->simulation_replicas(Matrix(3, 2, {0.3, 0.7, -0.9, -1.0, 0.3, 0.7}), 100, 3);
  ASSERT_EQ(replicas.rows(), 100u);
  const double between = (*sum)(std::vector{0.3, 0.7}, {}) - (*sum)(std::vector{-0.9, -1.0}, {});
  double mean = 0.0, squares = 0.0;
  for (std::size_t b = 0; b < 100; ++b) {
    EXPECT_NEAR(replicas(b, 0), replicas(b, 2), 1e-9);
    const double off = replicas(b, 0) - replicas(b, 1) - between;
    mean += off / 100.0;
    squares += off * off / 100.0;
  }
  EXPECT_GT(squares, 0.0);
  EXPECT_LT(std::abs(mean), 0.5 * std::sqrt(squares));  // five standard errors
}

TEST(NetworkRatio, SameBitsOnAnyNumberOfThreads) {
  const auto events = simulate_plane(plane_design(), 2000, 8);
  const Matrix x = data_at({0.0, 0.0}, 50, 9);
  const std::vector<double> theta0{0.5, 0.5}, theta1{-0.5, -0.5};
  auto short_one = quick_network();
  short_one.epochs = 2;
  short_one.decay = -1.0;
  const auto learned = [&](std::size_t count) {
    set_threads(count);
    return NetworkRatio(events, plane_design(), short_one).log_ratios(x, theta0, theta1);
  };
  const auto one = learned(1), four = learned(4);
  set_threads(0);
  EXPECT_EQ(one, four);
}

TEST(NetworkRatio, SavesAndLoads) {
  const std::vector<double> theta0{0.5, 0.5}, theta1{-0.5, -0.5};
  const Matrix x = data_at({0.0, 0.0}, 50, 10);
  Archive archive;
  trained_network().save(archive);
  const NetworkRatio loaded(archive, plane);
  EXPECT_EQ(loaded.log_ratios(x, theta0, theta1), trained_network().log_ratios(x, theta0, theta1));
  EXPECT_EQ(loaded.over(x)->simulation_gradient_covariance(theta0),
            trained_network().over(x)->simulation_gradient_covariance(theta0));
  EXPECT_EQ(loaded.count_outside(x), trained_network().count_outside(x));
  EXPECT_EQ(loaded.decay(), 0.1);
  const auto damaged = [&](auto&& change) {
    Archive broken = archive;
    change(broken);
    EXPECT_THROW(NetworkRatio(broken, plane), FileError);
  };
  damaged([](Archive& a) { a.set("members", std::int64_t{3}); });
  damaged([](Archive& a) { a.set("members", std::int64_t{-1}); });
  damaged([](Archive& a) { a.set("parts", std::int64_t{1}); });
  damaged([](Archive& a) { a.set("low", std::vector<double>{0.0}); });
  damaged([](Archive& a) { a.child("member0").set("last", std::vector<float>(8, 0.0f)); });
  damaged([](Archive& a) { a.child("member1").child("x").set("last", std::vector<float>(40)); });
  // A network of other parameters.
  const ParameterSpace line({{"a", -2, 2, {}}});
  EXPECT_THROW(NetworkRatio(archive, line), FileError);
}

// Events of weight nothing are as if they were not there for what is learned; equal weights are as
// none.
TEST(NetworkRatio, OnlyRatiosOfWeightsMatter) {
  const auto events = simulate_plane(plane_design(), 2000, 13);
  auto quarter = events, spoilt = events;
  quarter.weights.assign(2000, 0.25);
  spoilt.weights.assign(2000, 1.0);
  auto config = quick_network();
  config.epochs = 3;
  const Matrix x = data_at({0.0, 0.0}, 200, 14);
  const std::vector<double> theta0{0.5, 0.5}, theta1{-0.5, -0.5};
  const auto plain = NetworkRatio(events, plane_design(), config).log_ratios(x, theta0, theta1);
  EXPECT_EQ(plain, NetworkRatio(quarter, plane_design(), config).log_ratios(x, theta0, theta1));
  for (std::size_t i = 0; i < 2000; i += 4) spoilt.weights[i] = 0.0;
  auto other = spoilt;
  for (std::size_t i = 0; i < 2000; i += 4) {
    std::swap(other.theta(i, 0), other.theta(i, 1));
    other.theta(i, 0) = -other.theta(i, 0);
  }
  const auto first = NetworkRatio(spoilt, plane_design(), config).log_ratios(x, theta0, theta1);
  const auto second = NetworkRatio(other, plane_design(), config).log_ratios(x, theta0, theta1);
  for (std::size_t i = 0; i < x.rows(); ++i) EXPECT_NEAR(first[i], second[i], 1e-6);
  EXPECT_NE(first, plain);
}

// Simulated as often as their weights say, the events are those of another spread: with weights
// that undo this, log r is that of the plane. Unweighted it is off by 0.5 in this place.
TEST(NetworkRatio, WeightsUndoAnotherSimulation) {
  const std::size_t n = 30000;
  auto events = simulate_plane(plane_design(), n, 17);
  // u = a + e with e of spread 2 instead of 1, in the place of what is simulated.
  RandomStream random(18, "wide");
  events.weights.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double e = 1.5 * random.normal();
    const double v = events.theta(i, 1) + 2.0 * random.normal(), u = events.theta(i, 0) + e;
    events.x(i, 0) = 0.8660254 * u - 0.5 * v;
    events.x(i, 1) = 0.5 * u + 0.8660254 * v;
    events.weights[i] = std::exp(-0.5 * e * e * (1.0 - 1.0 / 2.25));
  }
  const std::vector<double> theta0{0.5, -0.5}, theta1{-0.5, 1.0};
  EXPECT_LT(rms_error(NetworkRatio(events, plane_design(), quick_network()), theta0, theta1), 0.2);
  events.weights.clear();
  EXPECT_GT(rms_error(NetworkRatio(events, plane_design(), quick_network()), theta0, theta1), 0.4);
}

// One of three kinds whose chances depend on θ, beside a value that many events share: log r is a
// sum of logarithms of chances. 12 000 events tell each within some 0.05.
TEST(NetworkRatio, LearnsCategoriesAndSharedValues) {
  const ParameterSpace line({{"t", -1, 1, {}}});
  const std::size_t n = 12000;
  Samples events;
  events.feature_names = {"kind", "value"};
  events.parameter_names = {"t"};
  events.theta = Design(line).draw(n, 1, "theta");
  events.x = Matrix(n, 2);
  RandomStream random(2, "events");
  // 7 in the middle: the order of the values tells nothing.
  const auto chance = [](double t, double kind) {
    const double first = 0.2 + 0.15 * t, second = 0.3 - 0.2 * t;
    return kind == 1.0 ? first : kind == 7.0 ? second : 1.0 - first - second;
  };
  for (std::size_t i = 0; i < n; ++i) {
    const double t = events.theta(i, 0), u = random.uniform();
    events.x(i, 0) = u < chance(t, 1.0) ? 1.0 : u < chance(t, 1.0) + chance(t, 7.0) ? 7.0 : 9.0;
    events.x(i, 1) = random.uniform() < 0.5 + 0.3 * t ? 0.0 : random.normal();
  }
  const NetworkRatio ratio(events, Design(line), quick_network());
  for (const double kind : {1.0, 7.0, 9.0})
    for (const double value : {0.0, 0.7}) {
      const Matrix x(1, 2, {kind, value});
      const double exact = std::log(chance(0.8, kind) / chance(-0.8, kind)) +
                           std::log(value == 0.0 ? 0.74 / 0.26 : 0.26 / 0.74);
      EXPECT_NEAR(ratio.log_ratios(x, std::vector{0.8}, std::vector{-0.8})[0], exact, 0.3)
          << kind << ' ' << value;
    }
}

TEST(NetworkRatio, ConstantAndHeavyTailedFeaturesStayFinite) {
  auto events = simulate_plane(plane_design(), 1000, 15);
  RandomStream random(16, "tail");
  for (std::size_t i = 0; i < events.size(); ++i) {
    events.x(i, 2) = i % 2 == 0 ? 3.0 : 1e9 * std::exp(5.0 * random.normal());
    events.x(i, 1) = 3.0;
  }
  auto config = quick_network();
  config.epochs = 2;
  const NetworkRatio ratio(events, plane_design(), config);
  Matrix x = data_at({0.0, 0.0}, 20, 17);
  x(0, 2) = 1e300;
  x(1, 0) = -1e12;
  for (const double value : ratio.log_ratios(x, std::vector{1.0, 1.0}, std::vector{0.0, 0.0}))
    EXPECT_TRUE(std::isfinite(value));
  EXPECT_GE(ratio.count_outside(x), 2u);
  for (std::size_t i = 0; i < events.size(); ++i) events.x(i, 0) = events.x(i, 2) = 3.0;
  const NetworkRatio nothing(events, plane_design(), config);
  for (const double value : nothing.log_ratios(x, std::vector{1.0, 1.0}, std::vector{0.0, 0.0}))
    EXPECT_TRUE(std::isfinite(value));
}

TEST(NetworkRatio, RefusesWhatItCannotLearnFrom) {
  auto events = simulate_plane(plane_design(), 100, 22);
  auto config = quick_network();
  config.members = 6;
  EXPECT_THROW(NetworkRatio(events, plane_design(), config), ArgumentError);  // 20 events a member
  config.members = 2;
  EXPECT_NO_THROW(NetworkRatio(events, plane_design(), config));
  auto negative = events;
  negative.weights.assign(100, 1.0);
  negative.weights[7] = -1.0;
  EXPECT_THROW(NetworkRatio(negative, plane_design(), config), ArgumentError);
  auto without = events;
  without.theta = Matrix();
  EXPECT_THROW(NetworkRatio(without, plane_design(), config), ArgumentError);
}

}  // namespace
}  // namespace neyman
