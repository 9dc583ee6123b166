#include "neyman/ratios/separable_ratio.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "ratios/two_means.hpp"

namespace neyman {
namespace {

using test::data_at;
using test::draw;
using test::exact_log_density;
using test::plane;
using test::simulate_plane;

SeparableRatio::Config quick(std::uint64_t seed = 1) {
  SeparableRatio::Config config;
  config.hidden = {16};
  config.epochs = 3;
  config.seed = seed;
  return config;
}

/// Trained once for the tests that only look at it.
const SeparableRatio& trained_separable() {
  static const Design design(plane);
  static const SeparableRatio ratio(simulate_plane(design, 40000, 1), design, quick());
  return ratio;
}

double rms_error(const SeparableRatio& ratio) {
  const std::vector<double> theta0{0.5, -0.5}, theta1{-0.5, 1.0};
  const Matrix x = data_at(theta0, 2000, 3);
  const auto learned = ratio.log_ratios(x, theta0, theta1);
  double squares = 0.0;
  for (std::size_t i = 0; i < x.rows(); ++i)
    squares += std::pow(
        learned[i] - exact_log_density(x.row(i), theta0) + exact_log_density(x.row(i), theta1), 2);
  return std::sqrt(squares / 2000.0);
}

// 40 θ with 500 events each, as a simulator gives that is slow to start. The θ that there are, not
// those that could be, are what the events come from.
TEST(SeparableRatio, LearnsFromFewThetaWithManyEventsEach) {
  const Matrix points = Design(plane).draw(40, 8, "theta");
  std::vector<double> rows;
  for (std::size_t i = 0; i < 20000; ++i)
    rows.insert(rows.end(), {points(i / 500, 0), points(i / 500, 1)});
  const Design nominal(plane);
  auto events = simulate_plane(nominal, 20000, 1);
  events.theta = Matrix(20000, 2, std::move(rows));
  RandomStream random(1, "runs");
  for (std::size_t i = 0; i < 20000; ++i) draw(events.theta.row(i), random, events.x.row(i));
  const auto design = empirical_design(events, plane);
  EXPECT_EQ(design.rows().rows(), 40u);
  const double error = rms_error(SeparableRatio(events, design, quick()));
  EXPECT_LT(error, 0.12);
  EXPECT_LT(error, 0.5 * rms_error(SeparableRatio(events, nominal, quick())));
}

TEST(SeparableRatio, ComesCloseToTheExactRatio) {
  const std::vector<double> theta0{0.5, -0.5}, theta1{-0.5, 1.0};
  const Matrix x = data_at(theta0, 2000, 3);
  const auto learned = trained_separable().log_ratios(x, theta0, theta1);
  double squares = 0.0;
  for (std::size_t i = 0; i < x.rows(); ++i) {
    const double exact = exact_log_density(x.row(i), theta0) - exact_log_density(x.row(i), theta1);
    squares += std::pow(learned[i] - exact, 2);
  }
  // 88 degrees of freedom in 40 000 events; log r itself has a spread of 1.2.
  EXPECT_LT(std::sqrt(squares / 2000.0), 0.06);
}

TEST(SeparableRatio, SumsAreThoseOfTheEvents) {
  const Matrix x = data_at({0.3, 0.7}, 333, 4);
  std::vector<double> weights(333);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = 0.5 + static_cast<double>(i % 3);
  const auto sum = trained_separable().over(x, weights);
  const std::vector<double> theta0{0.5, -0.5}, theta1{1.9, 2.0};
  const auto ratios = trained_separable().log_ratios(x, theta0, theta1);
  double expected = 0.0;
  for (std::size_t i = 0; i < x.rows(); ++i) expected += weights[i] * ratios[i];
  EXPECT_NEAR((*sum)(theta0, {}) - (*sum)(theta1, {}), expected, 1e-4 * std::abs(expected));
}

TEST(SeparableRatio, GradientAgreesWithDifferences) {
  const auto sum = trained_separable().over(data_at({0.3, 0.7}, 200, 5));
  const std::vector<double> point{0.2, -1.1};
  std::vector<double> gradient(2);
  (*sum)(point, gradient);
  for (std::size_t p = 0; p < 2; ++p) {
    auto up = point, down = point;
    up[p] += 1e-4;
    down[p] -= 1e-4;
    EXPECT_NEAR(gradient[p], ((*sum)(up, {}) - (*sum)(down, {})) / 2e-4,
                1e-5 * std::abs(gradient[p]) + 1e-4);
  }
}

TEST(SeparableRatio, IsNormalisedAtEveryPoint) {
  // The mean of r(x; θ0, θ1) over p(x|θ1) is one. With 40 000 events the mean has a standard
  // error below 0.01 here, and the calibration one of about 0.01: 5 σ.
  const std::vector<double> theta1{0.0, 0.0};
  const Matrix x = data_at(theta1, 40000, 6);
  for (const auto& theta0 :
       {std::vector{0.8, 0.0}, std::vector{0.0, -1.0}, std::vector{-0.5, 1.0}}) {
    double mean = 0.0;
    for (const double value : trained_separable().log_ratios(x, theta0, theta1))
      mean += std::exp(value);
    EXPECT_NEAR(mean / 40000.0, 1.0, 0.07);
  }
}

TEST(SeparableRatio, PredictsItsOwnUncertainty) {
  // ∂ℓ/∂θ of one dataset over 16 trainings on different events: its variance agrees with the
  // prediction within a factor of 3 either way. For the χ² of 15 degrees of freedom that alone
  // fails with probability 2·10⁻⁴; the features' own scatter makes it larger.
  const Design design(plane);
  const Matrix x = data_at({0.3, 0.7}, 1000, 7);
  const std::vector<double> point{0.3, 0.7};
  std::vector<std::vector<double>> gradients;
  std::vector<double> predicted(2, 0.0);
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    const SeparableRatio ratio(simulate_plane(design, 4000, 100 + seed), design, quick(seed));
    const auto sum = ratio.over(x);
    std::vector<double> gradient(2);
    (*sum)(point, gradient);
    gradients.push_back(gradient);
    const Matrix covariance = sum->simulation_gradient_covariance(point);
    for (std::size_t p = 0; p < 2; ++p) predicted[p] += covariance(p, p) / 16.0;
  }
  for (std::size_t p = 0; p < 2; ++p) {
    double mean = 0.0, squares = 0.0;
    for (const auto& gradient : gradients) mean += gradient[p] / 16.0;
    for (const auto& gradient : gradients) squares += std::pow(gradient[p] - mean, 2) / 15.0;
    EXPECT_LT(squares, 3.0 * predicted[p]);
    EXPECT_GT(squares, predicted[p] / 3.0);
  }
}

TEST(SeparableRatio, ReplicasAgreeWithTheCovariance) {
  // Between two close points: their difference has the variance of the gradient times the way. From
  // 2000 replicas a variance is known to 3 %: five of these.
  auto config = quick();
  config.recentre = false;
  const Design design(plane);
  const SeparableRatio ratio(simulate_plane(design, 4000, 1), design, config);
  const auto sum = ratio.over(data_at({0.3, 0.7}, 500, 7));
  const std::vector<double> middle{0.3, 0.7};
  const Matrix covariance = sum->simulation_gradient_covariance(middle);
  const Matrix replicas =
      sum->simulation_replicas(Matrix(2, 2, {0.299, 0.702, 0.301, 0.698}), 2000, 5);
  double mean = 0.0, squares = 0.0;
  for (std::size_t b = 0; b < replicas.rows(); ++b)
    mean += (replicas(b, 0) - replicas(b, 1)) / 2000.0;
  for (std::size_t b = 0; b < replicas.rows(); ++b)
    squares += std::pow(replicas(b, 0) - replicas(b, 1) - mean, 2) / 1999.0;
  const double expected =
      1e-6 * (4.0 * covariance(0, 0) - 16.0 * covariance(0, 1) + 16.0 * covariance(1, 1));
  EXPECT_NEAR(squares, expected, 0.15 * expected);
  EXPECT_NEAR(mean, (*sum)(std::vector{0.299, 0.702}, {}) - (*sum)(std::vector{0.301, 0.698}, {}),
              5.0 * std::sqrt(expected / 2000.0));
}

// x ~ N(0, e^2b), whose log r is no polynomial in b. Of 100 000 events at each of seven b, the mean
// score, which should be zero, in units of its own spread: a dataset of n events is √n times that
// many standard errors off.
TEST(SeparableRatio, RecentringTakesAwayWhatAddsUp) {
  const ParameterSpace scale({{"b", -1.5, 1.5, 0.0}});
  const Design design(scale);
  const auto simulate = [](std::span<const double> b, std::uint64_t seed) {
    RandomStream random(seed, "scales");
    Matrix x(b.size(), 1);
    for (std::size_t i = 0; i < b.size(); ++i) x(i, 0) = std::exp(b[i]) * random.normal();
    return x;
  };
  const auto off = [&](bool recentre) {
    double squares = 0.0;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      const Matrix theta = design.draw(40000, seed, "theta");
      Samples events;
      events.feature_names = {"x"};
      events.parameter_names = {"b"};
      events.theta = theta;
      events.x = simulate(theta.values(), 10 + seed);
      auto config = quick(seed);
      config.degree = 2;
      config.recentre = recentre;
      const SeparableRatio ratio(events, design, config);
      for (const double b : {-1.2, -0.8, -0.4, 0.0, 0.4, 0.8, 1.2}) {
        const Matrix x = simulate(std::vector<double>(100000, b), 20 + seed);
        double gradient = 0.0;
        (*ratio.over(x))({&b, 1}, {&gradient, 1});
        squares += std::pow(gradient / 100000.0 / std::sqrt(2.0), 2) / 28.0;
      }
    }
    return std::sqrt(squares);
  };
  const double without = off(false), with = off(true);
  EXPECT_GT(without, 0.04);
  // 40 000 events in some twelve independent regions of b tell a mean to 0.017.
  EXPECT_LT(with, 0.025);
}

TEST(SeparableRatio, EventsMayBeSorted) {
  // Variances from 50 groups of events have an error of a fifth each, so that their ratio is
  // beyond a factor of 3 with probability 10⁻⁴. If groups were parts of the sorted events, whose θ
  // differ, it would be 11.
  const Design design(plane);
  const auto events = simulate_plane(design, 20000, 23);
  std::vector<std::size_t> order(events.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return events.theta(a, 0) < events.theta(b, 0); });
  auto linear = quick();
  linear.hidden = {};
  linear.degree = 2;
  const Matrix x = data_at({0.3, 0.7}, 1000, 7);
  const std::vector<double> point{0.3, 0.7};
  const auto predicted = [&](const Samples& sample) {
    return SeparableRatio(sample, design, linear).over(x)->simulation_gradient_covariance(point);
  };
  const Matrix as_drawn = predicted(events), sorted = predicted(events.take(order));
  for (std::size_t p = 0; p < 2; ++p)
    EXPECT_LT(std::abs(std::log(sorted(p, p) / as_drawn(p, p))), std::log(3.0));
}

TEST(SeparableRatio, SameBitsOnAnyNumberOfThreads) {
  const Design design(plane);
  const auto events = simulate_plane(design, 3000, 8);
  const Matrix x = data_at({0.0, 0.0}, 50, 9);
  const std::vector<double> theta0{0.5, 0.5}, theta1{-0.5, -0.5};
  set_threads(1);
  const auto one = SeparableRatio(events, design, quick()).log_ratios(x, theta0, theta1);
  set_threads(4);
  const auto four = SeparableRatio(events, design, quick()).log_ratios(x, theta0, theta1);
  set_threads(0);
  EXPECT_EQ(one, four);
}

TEST(SeparableRatio, SavesAndLoads) {
  Archive archive;
  trained_separable().save(archive);
  const SeparableRatio loaded(archive, plane);
  const Matrix x = data_at({0.0, 0.0}, 50, 10);
  const std::vector<double> theta0{0.5, 0.5}, theta1{-0.5, -0.5};
  EXPECT_EQ(loaded.log_ratios(x, theta0, theta1),
            trained_separable().log_ratios(x, theta0, theta1));
  EXPECT_EQ(loaded.over(x)->simulation_gradient_covariance(theta0),
            trained_separable().over(x)->simulation_gradient_covariance(theta0));
  EXPECT_TRUE(trained_separable().converged());
  EXPECT_TRUE(loaded.converged());
  Archive doubtful = archive;
  doubtful.child("fold1").set("converged", false);
  EXPECT_FALSE(SeparableRatio(doubtful, plane).converged());
  Archive broken = archive;
  broken.set("low", std::vector<double>{0.0});
  EXPECT_THROW(SeparableRatio(broken, plane), FileError);
}

TEST(SeparableRatio, AGridOfPointsServesAsDesign) {
  Design::Config config;
  config.kind = Design::Kind::grid;
  config.points = {5, 5};
  const Design design(plane, config);
  const SeparableRatio ratio(simulate_plane(design, 20000, 11), design, quick());
  const std::vector<double> theta0{0.5, -0.5}, theta1{-0.5, 1.0};  // between the points
  const Matrix x = data_at(theta0, 1000, 12);
  const auto learned = ratio.log_ratios(x, theta0, theta1);
  double squares = 0.0;
  for (std::size_t i = 0; i < x.rows(); ++i)
    squares += std::pow(
        learned[i] - exact_log_density(x.row(i), theta0) + exact_log_density(x.row(i), theta1), 2);
  EXPECT_LT(std::sqrt(squares / 1000.0), 0.12);
}

TEST(SeparableRatio, OnlyRatiosOfWeightsMatter) {
  const Design design(plane);
  auto events = simulate_plane(design, 2000, 13);
  auto weighted = events;
  weighted.weights.assign(2000, 0.25);
  const Matrix x = data_at({0.0, 0.0}, 200, 14);
  const std::vector<double> theta0{0.5, 0.5}, theta1{-0.5, -0.5};
  const auto plain = SeparableRatio(events, design, quick()).log_ratios(x, theta0, theta1);
  const auto quarter = SeparableRatio(weighted, design, quick()).log_ratios(x, theta0, theta1);
  for (std::size_t i = 0; i < x.rows(); ++i) EXPECT_NEAR(plain[i], quarter[i], 1e-6);
}

TEST(SeparableRatio, WeightsCorrectADesign) {
  // Drawn unevenly in θ and weighted back to the even design, the ratio is that of the even one;
  // without the weights the density of θ would be taken for a part of p(x|θ). Weights between 0.5
  // and 1.5; the scatter of log r is about 0.1.
  const Design design(plane);
  auto events = simulate_plane(design, 20000, 19);
  RandomStream random(20, "kept");
  std::vector<std::size_t> kept;
  std::vector<double> weights;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const double share = 1.0 / (1.0 + 0.25 * events.theta(i, 0));  // 2 … 0.67
    if (random.uniform() < 0.5 * share) {
      kept.push_back(i);
      weights.push_back(1.0 / share);
    }
  }
  auto uneven = events.take(kept);
  uneven.weights = weights;
  const SeparableRatio ratio(uneven, design, quick());
  const std::vector<double> theta0{1.0, 0.0}, theta1{-1.0, 0.0};
  const Matrix x = data_at({0.0, 0.0}, 500, 21);
  double mean = 0.0;
  const auto learned = ratio.log_ratios(x, theta0, theta1);
  for (std::size_t i = 0; i < x.rows(); ++i)
    mean +=
        (learned[i] - exact_log_density(x.row(i), theta0) + exact_log_density(x.row(i), theta1)) /
        500.0;
  EXPECT_NEAR(mean, 0.0, 0.1);
}

TEST(SeparableRatio, ConstantAndHeavyTailedFeaturesStayFinite) {
  const Design design(plane);
  auto events = simulate_plane(design, 2000, 15);
  RandomStream random(16, "tail");
  for (std::size_t i = 0; i < events.size(); ++i)
    events.x(i, 2) = i % 2 == 0 ? 3.0 : 1e9 * std::exp(5.0 * random.normal());
  const SeparableRatio ratio(events, design, quick());
  Matrix x = data_at({0.0, 0.0}, 20, 17);
  x(0, 2) = 1e300;
  x(1, 0) = -1e12;
  for (const double value : ratio.log_ratios(x, std::vector{1.0, 1.0}, std::vector{0.0, 0.0}))
    EXPECT_TRUE(std::isfinite(value));
  EXPECT_GE(ratio.count_outside(x), 2u);
  for (std::size_t i = 0; i < events.size(); ++i) events.x(i, 2) = 3.0;
  const SeparableRatio constant(events, design, quick());
  for (const double value : constant.log_ratios(x, std::vector{1.0, 1.0}, std::vector{0.0, 0.0}))
    EXPECT_TRUE(std::isfinite(value));
}

/// Six means, each known to a third of its range: an event leaves 1/100 of the ranges' volume.
struct SixMeans {
  static constexpr std::size_t size = 6;
  static constexpr double sigma = 0.3;
  Design design{[] {
    std::vector<Parameter> means;
    for (std::size_t p = 0; p < size; ++p)
      means.push_back({std::string("m").append(std::to_string(p)), -1, 1, {}});
    return ParameterSpace(means);
  }()};

  Samples events(std::size_t n, std::uint64_t seed) const {
    Samples out;
    out.feature_names = default_feature_names(size);
    out.parameter_names = design.parameters().names();
    out.x = out.theta = design.draw(n, seed, "theta");
    RandomStream random(seed, "events");
    for (double& value : out.x.values()) value += sigma * random.normal();
    return out;
  }
};

// The error of log r between two θ near the truth, beside how much that log r varies.
// Features in units in which their squares are beyond the range of doubles.
TEST(SeparableRatio, UnitsOfFeaturesDoNotMatter) {
  const std::vector<double> units{1e200, 1e-200, 1e160}, theta0{0.5, -0.5}, theta1{-0.5, 1.0};
  const auto in_units = [&](Matrix x) {
    for (std::size_t i = 0; i < x.rows(); ++i)
      for (std::size_t j = 0; j < 3; ++j) x(i, j) *= units[j];
    return x;
  };
  const Design design(plane);
  auto events = simulate_plane(design, 10000, 1);
  const SeparableRatio plain(events, design, quick());
  events.x = in_units(std::move(events.x));
  const SeparableRatio scaled(events, design, quick());
  const Matrix x = data_at(theta0, 500, 3);
  const auto expected = plain.log_ratios(x, theta0, theta1);
  const auto found = scaled.log_ratios(in_units(x), theta0, theta1);
  double difference = 0.0, size = 0.0;
  for (std::size_t i = 0; i < x.rows(); ++i) {
    difference += std::pow(found[i] - expected[i], 2);
    size += std::pow(expected[i], 2);
  }
  // The same network but for rounding in the whitening.
  EXPECT_LT(difference, 1e-3 * size);
}

TEST(SeparableRatio, ManyParametersAreLearnedByContrast) {
  const SixMeans problem;
  SeparableRatio::Config config;
  config.hidden = {};
  config.seed = 1;
  const SeparableRatio ratio(problem.events(20000, 1), problem.design, config);
  EXPECT_TRUE(ratio.by_contrast());
  EXPECT_TRUE(ratio.converged());
  EXPECT_FALSE(trained_separable().by_contrast());
  const Samples fresh = problem.events(300, 2);
  RandomStream random(3, "points");
  double squares = 0.0, exact_squares = 0.0;
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    std::vector<double> one(SixMeans::size), other(SixMeans::size);
    double exact = 0.0;
    for (std::size_t p = 0; p < SixMeans::size; ++p) {
      const double x = fresh.x(i, p);
      one[p] = std::clamp(x + SixMeans::sigma * random.normal(), -1.0, 1.0);
      other[p] = std::clamp(x + SixMeans::sigma * random.normal(), -1.0, 1.0);
      exact += (std::pow(x - other[p], 2) - std::pow(x - one[p], 2)) /
               (2.0 * SixMeans::sigma * SixMeans::sigma);
    }
    const double learned = ratio.log_ratios(fresh.x.rows(i, i + 1), one, other)[0];
    ASSERT_TRUE(std::isfinite(learned));
    squares += std::pow(learned - exact, 2);
    exact_squares += exact * exact;
  }
  EXPECT_LT(std::sqrt(squares / exact_squares), 0.12);
}

/// One mean that each of many features tells a little of, among noise of size 1.
struct ManyFeatures {
  std::size_t count;
  Design design{ParameterSpace({{"t", -2, 2, {}}})};

  double slope(std::size_t f) const {
    return std::sqrt(2.0 / static_cast<double>(count)) * std::sin(1.0 + static_cast<double>(f));
  }
  Samples events(std::size_t n, std::uint64_t seed) const {
    Samples out;
    out.feature_names = default_feature_names(count);
    out.parameter_names = {"t"};
    out.theta = design.draw(n, seed, "theta");
    out.x = Matrix(n, count);
    RandomStream random(seed, "events");
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t f = 0; f < count; ++f)
        out.x(i, f) = slope(f) * out.theta(i, 0) + random.normal();
    return out;
  }
  /// Of log r between 0.5 and −0.5, which has a spread of 1.
  double error(const SeparableRatio& ratio) const {
    const Matrix x = events(1000, 99).x;
    const auto learned = ratio.log_ratios(x, std::vector{0.5}, std::vector{-0.5});
    double squares = 0.0;
    for (std::size_t i = 0; i < x.rows(); ++i) {
      double exact = 0.0;
      for (std::size_t f = 0; f < count; ++f) exact += slope(f) * x(i, f);
      squares += std::pow(learned[i] - exact, 2);
    }
    return std::sqrt(squares / static_cast<double>(x.rows()));
  }
};

// What takes the time of calibration are pairs of functions.
TEST(SeparableRatio, FunctionsOfManyFeaturesAreBounded) {
  for (const std::size_t features : {65u, 200u, 400u}) {
    const ManyFeatures problem{features};
    const SeparableRatio ratio(problem.events(400, 1), problem.design, quick());
    // Two folds, each with the network, directions and 1, times four powers of θ.
    EXPECT_LE(ratio.coefficients(), 2 * (16 + 64 + 1) * 4u) << features;
    EXPECT_EQ(ratio.features(), features);
  }
  // Up to that many features each has a function of its own.
  const ManyFeatures few{64};
  EXPECT_EQ(SeparableRatio(few.events(400, 1), few.design, quick()).coefficients(),
            2 * (16 + 64 + 1) * 4u);
}

TEST(SeparableRatio, ManyFeaturesTellAsMuchAsTheyCan) {
  // A tenth of an event is known of each direction: the best linear estimate has an error of 0.4.
  const ManyFeatures problem{300};
  const SeparableRatio ratio(problem.events(3000, 2), problem.design, quick());
  EXPECT_LT(problem.error(ratio), 0.55);
  EXPECT_TRUE(ratio.converged());
}

// Training learns 500 events of 400 features by heart: what it says of others is overdone.
TEST(SeparableRatio, MoreFeaturesThanEventsTellAreHeldBack) {
  const ManyFeatures problem{400};
  const SeparableRatio ratio(problem.events(1000, 4), problem.design, quick());
  // That of log r = 0 is 1.
  EXPECT_LT(problem.error(ratio), 0.8);
}

TEST(SeparableRatio, ManyFeaturesMayBeConstantOrHeavyTailedAndAreSaved) {
  const ManyFeatures problem{80};
  auto events = problem.events(1000, 3);
  RandomStream random(3, "tails");
  for (std::size_t i = 0; i < events.size(); ++i) {
    events.x(i, 0) = 1e6;
    events.x(i, 1) = random.normal() / random.normal();
  }
  events.x(0, 1) = 1e12;
  const SeparableRatio ratio(events, problem.design, quick());
  const std::vector<double> theta0{0.5}, theta1{-0.5};
  const auto learned = ratio.log_ratios(events.x, theta0, theta1);
  for (const double value : learned) EXPECT_TRUE(std::isfinite(value));
  Archive archive;
  ratio.save(archive);
  EXPECT_EQ(
      SeparableRatio(archive, problem.design.parameters()).log_ratios(events.x, theta0, theta1),
      learned);
  set_threads(4);
  EXPECT_EQ(SeparableRatio(events, problem.design, quick()).log_ratios(events.x, theta0, theta1),
            learned);
  set_threads(0);
  auto& features = archive.child("fold0").child("features");
  features.set("directions", Matrix(3, 2));
  EXPECT_THROW(SeparableRatio(archive, problem.design.parameters()), FileError);
}

TEST(SeparableRatio, MeanSignsTakeThePlaceOfSigns) {
  // Pairs of equal events, of weights 3 and −1 or 1 and 1, have the mean sign 1/2 or 1 and weigh 2.
  const Design design(plane);
  const auto events = simulate_plane(design, 20000, 22);
  auto pairs = events;
  pairs.append(events);
  auto weighted = pairs;
  std::vector<double> signs(40000);
  weighted.weights.assign(40000, 1.0);
  for (std::size_t i = 0; i < 20000; ++i) {
    const bool both = events.x(i, 0) * events.theta(i, 0) > 0.0;
    if (both) weighted.weights[i] = 3.0, weighted.weights[20000 + i] = -1.0;
    signs[i] = signs[20000 + i] = both ? 0.5 : 1.0;
  }
  for (auto* sample : {&pairs, &weighted})
    for (std::size_t i = 0; i < 40000; ++i)
      sample->groups.push_back(static_cast<std::int64_t>(i % 20000));
  auto linear = quick();  // whose fit has one solution, in whatever order events come
  linear.hidden = {};
  linear.degree = 2;
  const SeparableRatio plain(pairs, design, linear),
      with_signs(weighted, design, linear, nullptr, nullptr, signs);
  const Matrix x = data_at({0.0, 0.0}, 200, 14);
  const std::vector<double> theta0{0.5, 0.5}, theta1{-0.5, -0.5};
  const auto expected = plain.log_ratios(x, theta0, theta1),
             learned = with_signs.log_ratios(x, theta0, theta1);
  double squares = 0.0;
  for (std::size_t i = 0; i < x.rows(); ++i) squares += std::pow(learned[i] - expected[i], 2);
  // The priors are those of fewer effective events; with weights |w| it is 0.19.
  EXPECT_LT(std::sqrt(squares / 200.0), 0.04);
}

TEST(SeparableRatio, RefusesWhatItCannotLearnFrom) {
  const Design design(plane);
  auto events = simulate_plane(design, 100, 18);
  EXPECT_THROW(SeparableRatio(events, Design::fixed(plane, {0.0, 0.0}), quick()), ArgumentError);
  auto few = simulate_plane(design, 10, 18);
  EXPECT_THROW(SeparableRatio(few, design, quick()), ArgumentError);
  auto unknown = events;
  unknown.theta = Matrix();
  EXPECT_THROW(SeparableRatio(unknown, design, quick()), ArgumentError);
  // θ of a normal are not from a uniform design; those of a run of few θ cannot be told from it.
  const Design normal(plane, {.kind = Design::Kind::normal, .sigma = {0.2, 0.2}});
  const auto other = simulate_plane(normal, 400, 18);
  try {
    SeparableRatio(other, design, quick());
    FAIL();
  } catch (const ArgumentError& error) {
    EXPECT_STREQ(
        error.what(),
        "SeparableRatio: events.theta is far from uniform in a, of a design that is uniform, "
        "but must be drawn from the design; a table of the θ themselves is one, too");
  }
  EXPECT_NO_THROW(SeparableRatio(other, empirical_design(other, plane), quick()));
  auto run = events;
  for (std::size_t i = 0; i < run.size(); ++i)
    for (std::size_t p = 0; p < 2; ++p) run.theta(i, p) = i < 50 ? -1.9 : -1.8;
  EXPECT_NO_THROW(SeparableRatio(run, design, quick()));
  auto negative = events;
  negative.weights.assign(100, 1.0);
  negative.weights[7] = -1.0;
  EXPECT_THROW(SeparableRatio(negative, design, quick()), ArgumentError);
  const auto with_signs = [&](const std::vector<double>& signs) {
    SeparableRatio(negative, design, quick(), nullptr, nullptr, signs);
  };
  EXPECT_NO_THROW(with_signs(std::vector<double>(100, 0.9)));
  EXPECT_THROW(with_signs(std::vector<double>(99, 0.9)), ArgumentError);
  EXPECT_THROW(with_signs(std::vector<double>(100, 0.0)), ArgumentError);
  negative.weights.assign(100, -1.0);
  EXPECT_THROW(with_signs(std::vector<double>(100, 0.9)), ArgumentError);
  EXPECT_THROW(
      trained_separable().log_ratios(Matrix(1, 2), std::vector{0.0, 0.0}, std::vector{1.0, 0.0}),
      ArgumentError);
  EXPECT_THROW(
      trained_separable().log_ratios(Matrix(1, 3), std::vector{9.0, 0.0}, std::vector{1.0, 0.0}),
      ArgumentError);
}

}  // namespace
}  // namespace neyman
