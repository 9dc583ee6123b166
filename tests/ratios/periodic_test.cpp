// Ratios of what goes round: a phase among the parameters, an angle among the features.

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "neyman/core/error.hpp"
#include "neyman/core/random.hpp"
#include "neyman/ratios/density_ratio.hpp"
#include "neyman/ratios/learned_ratio.hpp"
#include "neyman/ratios/separable_ratio.hpp"
#include "ratios/periodic_columns.hpp"
#include "ratios/recentring.hpp"

namespace neyman {
namespace {

constexpr double pi = 3.141592653589793;

const ParameterSpace phase({{"phase", -pi, pi, {}, false, true}});
const std::vector<PeriodicFeature> an_angle{{"angle", -pi, pi}};
constexpr double spread = 0.5, noise = 0.7;

double wrapped(double value) { return value - 2.0 * pi * std::floor((value + pi) / (2.0 * pi)); }

/// An angle that is normal around the phase and goes round, and a number around its cosine.
Samples simulate(std::size_t n, std::uint64_t seed, const double* at = nullptr) {
  Samples events;
  events.feature_names = {"angle", "y"};
  events.parameter_names = {"phase"};
  events.theta = Matrix(n, 1);
  events.x = Matrix(n, 2);
  RandomStream random(seed, "round");
  for (std::size_t i = 0; i < n; ++i) {
    const double theta = events.theta(i, 0) = at ? *at : pi * (2.0 * random.uniform() - 1.0);
    events.x(i, 0) = wrapped(theta + spread * random.normal());
    events.x(i, 1) = std::cos(theta) + noise * random.normal();
  }
  return events;
}

double log_density(std::span<const double> x, double theta) {
  double sum = 0.0;
  for (int turn = -3; turn <= 3; ++turn)
    sum += std::exp(-0.5 * std::pow((wrapped(x[0] - theta) + 2.0 * pi * turn) / spread, 2));
  return std::log(sum) - 0.5 * std::pow((x[1] - std::cos(theta)) / noise, 2);
}

DensityRatio::Config quick(DensityRatio::Of of) {
  DensityRatio::Config config;
  config.of = of;
  config.hidden = {32};
  config.components = 4;
  config.members = 2;
  config.parts = 5;
  config.seed = 1;
  config.periodic = an_angle;
  return config;
}

constexpr DensityRatio::Of both_kinds[] = {DensityRatio::Of::features,
                                           DensityRatio::Of::parameters};

const DensityRatio& density(DensityRatio::Of of) {
  static const Design design(phase);
  static const auto events = simulate(20000, 1);
  static const DensityRatio features(events, design, quick(DensityRatio::Of::features));
  static const DensityRatio parameters(events, design, quick(DensityRatio::Of::parameters));
  return of == DensityRatio::Of::features ? features : parameters;
}

const SeparableRatio& separable() {
  static const SeparableRatio made = [] {
    SeparableRatio::Config config;
    config.periodic = an_angle;
    config.seed = 1;
    return SeparableRatio(simulate(20000, 1), Design(phase), config);
  }();
  return made;
}

std::vector<const ParameterizedRatio*> all() {
  return {&density(DensityRatio::Of::features), &density(DensityRatio::Of::parameters),
          &separable()};
}

// log r has a spread of 3 here; with 20 000 events it is off by some 0.1.
TEST(PeriodicRatio, ComesCloseToTheExactRatioOnBothSidesOfTheSeam) {
  for (const double at : {0.5, 3.1}) {
    const auto data = simulate(2000, 3, &at);
    const std::vector<double> theta0{at}, theta1{wrapped(at + 0.6)};
    for (const auto* ratio : all()) {
      const auto learned = ratio->log_ratios(data.x, theta0, theta1);
      double squares = 0.0;
      for (std::size_t i = 0; i < data.size(); ++i)
        squares += std::pow(learned[i] - log_density(data.x.row(i), theta0[0]) +
                                log_density(data.x.row(i), theta1[0]),
                            2);
      EXPECT_LT(std::sqrt(squares / 2000.0), 0.2) << ratio->kind() << " at " << at;
    }
  }
}

TEST(PeriodicRatio, GoesOnOverTheSeam) {
  const double at = 3.0;
  const auto data = simulate(200, 4, &at);
  auto turned = data.x;  // whole turns of the angle do not matter
  for (std::size_t i = 0; i < turned.rows(); ++i)
    turned(i, 0) += 2.0 * pi * (static_cast<double>(i % 5) - 2.0);
  for (const auto* ratio : all()) {
    const auto sum = ratio->over(data.x), same = ratio->over(turned);
    std::vector<double> left(1), right(1), further(1);
    const double value = (*sum)(std::vector{-pi}, left);
    EXPECT_NEAR((*sum)(std::vector{pi}, right), value, 1e-3);
    EXPECT_NEAR((*sum)(std::vector{5.0 * pi}, further), value, 5e-3);
    EXPECT_NEAR((*same)(std::vector{pi}, {}), value, 5e-3);
    EXPECT_NEAR(left[0], right[0], 1e-3 * (1.0 + std::abs(left[0]))) << ratio->kind();
    EXPECT_NEAR(left[0], further[0], 1e-3 * (1.0 + std::abs(left[0]))) << ratio->kind();
    EXPECT_EQ(ratio->count_outside(turned), ratio->count_outside(data.x));
  }
}

TEST(PeriodicRatio, GradientAgreesWithDifferences) {
  const double at = 3.0;
  const auto data = simulate(200, 5, &at);
  for (const auto* ratio : all()) {
    const auto sum = ratio->over(data.x);
    for (const double theta : {-pi, -3.0, 0.4, 2.6, pi}) {
      std::vector<double> gradient(1);
      (*sum)(std::vector{theta}, gradient);
      const double h = 2e-3;  // over the seam, too
      const double difference =
          ((*sum)(std::vector{theta + h}, {}) - (*sum)(std::vector{theta - h}, {})) / (2.0 * h);
      EXPECT_NEAR(gradient[0], difference, 0.01 * std::abs(difference) + 0.3)
          << ratio->kind() << " at " << theta;
    }
  }
}

// Of von Mises densities the integral over the circle is one to 2·10⁻⁷, and single precision leaves
// 10⁻⁶.
TEST(PeriodicRatio, DensitiesAreNormalisedOverTheCircle) {
  constexpr std::size_t steps = 2000;
  Matrix round(steps, 1);
  for (std::size_t k = 0; k < steps; ++k)
    round(k, 0) = -pi + 2.0 * pi * static_cast<double>(k) / steps;
  // Of the parameter given some events: in units of the range.
  const auto few = simulate(5, 6);
  const Matrix of_parameter = density(DensityRatio::Of::parameters).table(few.x, round);
  for (std::size_t i = 0; i < few.size(); ++i) {
    double mean = 0.0;
    for (std::size_t k = 0; k < steps; ++k) mean += std::exp(of_parameter(i, k)) / steps;
    EXPECT_NEAR(mean, 1.0, 3e-6);
  }
  // Of the angle given some phases: alone, because another feature has a density of its own.
  Samples alone = simulate(5000, 7);
  Matrix angles(alone.size(), 1);
  for (std::size_t i = 0; i < alone.size(); ++i) angles(i, 0) = alone.x(i, 0);
  alone.x = angles;
  alone.feature_names = {"angle"};
  const DensityRatio of_angle(alone, Design(phase), quick(DensityRatio::Of::features));
  const Matrix points(4, 1, {-pi, -3.0, 0.7, 3.1});
  const Matrix table = of_angle.table(round, points);
  for (std::size_t j = 0; j < points.rows(); ++j) {
    double mean = 0.0;
    for (std::size_t k = 0; k < steps; ++k) mean += std::exp(table(k, j)) / steps;
    EXPECT_NEAR(mean, 1.0, 3e-6) << points(j, 0);
  }
}

// Draws of a density of the parameters have its moments: 4000 draws leave an error of 0.011 a
// cosine; 4.5 of them are met by chance once in 10⁵.
TEST(PeriodicRatio, DrawsFollowTheDensity) {
  const auto& ratio = density(DensityRatio::Of::parameters);
  const std::vector<double> x{3.0, -1.1};
  constexpr std::size_t count = 4000, steps = 1000;
  const Matrix drawn = ratio.draw(x, count, 3);
  Matrix round(steps, 1);
  for (std::size_t k = 0; k < steps; ++k)
    round(k, 0) = -pi + 2.0 * pi * static_cast<double>(k) / steps;
  const auto logs = ratio.log_weights(x, round);
  for (const double turns : {1.0, 2.0}) {
    double cosine = 0.0, sine = 0.0, exact_cosine = 0.0, exact_sine = 0.0;
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(drawn(i, 0) >= -pi && drawn(i, 0) <= pi);
      cosine += std::cos(turns * drawn(i, 0)) / count;
      sine += std::sin(turns * drawn(i, 0)) / count;
    }
    for (std::size_t k = 0; k < steps; ++k) {
      exact_cosine += std::cos(turns * round(k, 0)) * std::exp(logs[k]) / steps;
      exact_sine += std::sin(turns * round(k, 0)) * std::exp(logs[k]) / steps;
    }
    EXPECT_NEAR(cosine, exact_cosine, 0.05);
    EXPECT_NEAR(sine, exact_sine, 0.05);
  }
}

TEST(PeriodicRatio, SavesAndLoads) {
  const double at = 3.0;
  const auto data = simulate(50, 8, &at);
  const Matrix points(3, 1, {-3.1, 0.2, 3.1});
  for (const auto of : both_kinds) {
    Archive archive;
    density(of).save(archive);
    const DensityRatio loaded(archive, phase);
    EXPECT_EQ(loaded.table(data.x, points), density(of).table(data.x, points));
  }
  Archive archive;
  separable().save(archive);
  const SeparableRatio loaded(archive, phase);
  EXPECT_EQ(loaded.over(data.x)->at(points), separable().over(data.x)->at(points));
  archive.set("angles", Matrix(1, 3, {2.0, -pi, pi}));  // there are two features
  EXPECT_THROW(SeparableRatio(archive, phase), FileError);
  archive.set("angles", Matrix(1, 3, {0.0, pi, -pi}));
  EXPECT_THROW(SeparableRatio(archive, phase), FileError);
}

TEST(PeriodicRatio, TheChosenOneIsToldOfAngles) {
  LearnedRatio::Config config;
  config.effort = LearnedRatio::Effort::quick;
  config.separable.periodic = an_angle;
  config.separable.hidden = {};
  const LearnedRatio ratio(simulate(4000, 9), Design(phase), config);
  const double at = 3.0;
  const auto data = simulate(100, 10, &at);
  auto turned = data.x;
  for (std::size_t i = 0; i < turned.rows(); ++i) turned(i, 0) += 2.0 * pi;
  const std::vector<double> theta{3.1};
  for (const std::size_t rows : {1u, 100u})
    EXPECT_NEAR((*ratio.over(turned.rows(0, rows)))(theta, {}),
                (*ratio.over(data.x.rows(0, rows)))(theta, {}), 5e-3);
}

TEST(PeriodicRatio, HardCases) {
  // A constant angle, an angle of four values, weights, and phases in one half alone.
  auto events = simulate(400, 11);
  events.weights.assign(400, 0.0);
  for (std::size_t i = 0; i < 400; ++i) {
    events.x(i, 0) = 1.0;
    events.x(i, 1) = 0.5 * pi * static_cast<double>(i % 4);
    events.theta(i, 0) = std::abs(events.theta(i, 0));
    events.weights[i] = 1.0 + static_cast<double>(i % 3);
  }
  for (const auto of : both_kinds) {
    auto config = quick(of);
    config.periodic = {{"angle", -pi, pi}, {"y", 0.0, 2.0 * pi}};
    config.epochs = 2;
    const DensityRatio ratio(events, Design(phase), config);
    const Matrix points(2, 1, {-pi, 1.0});
    const Matrix table = ratio.table(events.x, points);
    for (const double value : table.values()) EXPECT_TRUE(std::isfinite(value));
    // The same angle, after a turn: it is among the four values.
    const Matrix turned(1, 2, {1.0 - 2.0 * pi, 3.5 * pi}), same(1, 2, {1.0, 1.5 * pi});
    const Matrix one = ratio.table(turned, points), other = ratio.table(same, points);
    EXPECT_NEAR(one(0, 1), other(0, 1), 1e-5);
  }
}

TEST(PeriodicRatio, RefusesWhatIsNoPeriod) {
  const auto events = simulate(400, 12);
  const auto refused = [&](std::vector<PeriodicFeature> periodic, const char* words) {
    auto of_density = quick(DensityRatio::Of::features);
    of_density.periodic = periodic;
    SeparableRatio::Config of_sums;
    of_sums.periodic = periodic;
    for (const bool sums : {false, true}) try {
        if (sums)
          SeparableRatio(events, Design(phase), of_sums);
        else
          DensityRatio(events, Design(phase), of_density);
        FAIL() << words;
      } catch (const ArgumentError& error) {
        EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
      }
  };
  refused({{"angel", 0, 1}}, "'angel' is not a feature");
  refused({{"angle", 1, 1}}, "periodic[angle] is [1, 1], but must be a period");
  refused({{"angle", 0, std::nan("")}}, "but must be a period");
  refused({{"angle", 0, 1}, {"angle", 0, 1}}, "'angle' twice");
}

// ε = −shift on the circle, up to the noise of some 10 numbers from 20 000 events of information
// one: √(10 / 20 000) = 0.022; and it goes on over the seam.
TEST(PeriodicRecentring, FindsAShiftThatGoesRound) {
  const auto shift = [](double t) { return 0.2 * std::sin(t + 1.0); };
  constexpr std::size_t n = 20000;
  Matrix theta(n, 1), scores(n, 1);
  RandomStream random(1, "scored");
  for (std::size_t i = 0; i < n; ++i) {
    theta(i, 0) = pi * (2.0 * random.uniform() - 1.0);
    scores(i, 0) = random.normal() - shift(theta(i, 0));
  }
  const across::Recentring by(phase, theta, scores, {});
  double square = 0.0;
  for (int k = 0; k <= 40; ++k) {
    const double t = pi * (0.05 * k - 1.0);
    square += std::pow(by(std::vector{t})[0] - t + shift(t), 2) / 41.0;
  }
  EXPECT_LT(std::sqrt(square), 0.04);
  Matrix left, right;
  EXPECT_NEAR(by(std::vector{-pi}, &left)[0] + 2.0 * pi, by(std::vector{pi}, &right)[0], 1e-12);
  EXPECT_NEAR(left(0, 0), right(0, 0), 1e-10);
  EXPECT_NEAR(by.covariance(std::vector{-pi})(0, 0), by.covariance(std::vector{pi})(0, 0), 1e-12);
}

}  // namespace
}  // namespace neyman
