#include "neyman/ratios/density_ratio.hpp"

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

DensityRatio::Config quick_density(DensityRatio::Of of = DensityRatio::Of::features) {
  DensityRatio::Config config;
  config.of = of;
  config.hidden = {32};
  config.components = 4;
  config.members = 2;
  config.parts = 5;
  config.seed = 1;
  return config;
}

/// Trained once for the tests that only look at it.
const DensityRatio& trained_density(DensityRatio::Of of) {
  static const auto events = simulate_plane(plane_design(), 20000, 1);
  static const DensityRatio features(events, plane_design(),
                                     quick_density(DensityRatio::Of::features));
  static const DensityRatio parameters(events, plane_design(),
                                       quick_density(DensityRatio::Of::parameters));
  return of == DensityRatio::Of::features ? features : parameters;
}

constexpr DensityRatio::Of both_kinds[] = {DensityRatio::Of::features,
                                           DensityRatio::Of::parameters};

// log r has a spread of 1.2 here; with 20 000 events its mean over two members is off by some 0.1.
TEST(DensityRatio, ComesCloseToTheExactRatio) {
  const std::vector<double> theta0{0.5, -0.5}, theta1{-0.5, 1.0};
  const Matrix x = data_at(theta0, 2000, 3);
  for (const auto of : both_kinds) {
    const auto learned = trained_density(of).log_ratios(x, theta0, theta1);
    double squares = 0.0;
    for (std::size_t i = 0; i < x.rows(); ++i)
      squares += std::pow(
          learned[i] - exact_log_density(x.row(i), theta0) + exact_log_density(x.row(i), theta1),
          2);
    EXPECT_LT(std::sqrt(squares / 2000.0), 0.2);
  }
}

TEST(DensityRatio, AllWaysLeadToTheSame) {
  const Matrix x = data_at({0.3, 0.7}, 70, 4);
  const Matrix points(3, 2, {0.5, -0.5, 1.9, 2.0, -2.0, 0.1});
  std::vector<double> weights(70);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = 0.5 + static_cast<double>(i % 3);
  for (const auto of : both_kinds) {
    const auto& ratio = trained_density(of);
    const Matrix table = ratio.table(x, points);
    const auto ratios = ratio.log_ratios(x, points.row(0), points.row(1));
    for (std::size_t i = 0; i < x.rows(); ++i)
      EXPECT_NEAR(ratios[i], table(i, 0) - table(i, 1), 1e-9);
    const auto sum = ratio.over(x, weights);
    const auto at = sum->at(points);
    for (std::size_t j = 0; j < 3; ++j) {
      double expected = 0.0;
      for (std::size_t i = 0; i < x.rows(); ++i) expected += weights[i] * table(i, j);
      EXPECT_NEAR(at[j], expected, 1e-4 * std::abs(expected) + 1e-3);
      EXPECT_NEAR((*sum)(points.row(j), {}), expected, 1e-4 * std::abs(expected) + 1e-3);
    }
    const auto one = ratio.over(x.rows(0, 1));
    const auto many = one->at(points);
    for (std::size_t j = 0; j < 3; ++j) EXPECT_NEAR(many[j], table(0, j), 1e-4);
  }
}

TEST(DensityRatio, GradientAgreesWithDifferences) {
  const std::vector<double> point{0.2, -1.1};
  for (const auto of : both_kinds) {
    const auto sum = trained_density(of).over(data_at({0.3, 0.7}, 200, 5));
    std::vector<double> gradient(2);
    (*sum)(point, gradient);
    for (std::size_t p = 0; p < 2; ++p) {
      auto up = point, down = point;
      up[p] += 2e-3;
      down[p] -= 2e-3;
      const double difference = ((*sum)(up, {}) - (*sum)(down, {})) / 4e-3;
      EXPECT_NEAR(gradient[p], difference, 0.01 * std::abs(difference) + 0.3);
    }
  }
}

/// What log r of a density of the parameters is off by in the mean, from θ1 to θ0.
double off_by(const DensityRatio& ratio) {
  const std::vector<double> theta0{0.5, -0.5}, theta1{-0.2, 0.5};
  const Matrix x = data_at(theta0, 2000, 3);
  const auto learned = ratio.log_ratios(x, theta0, theta1);
  double difference = 0.0;
  for (std::size_t i = 0; i < x.rows(); ++i)
    difference +=
        (learned[i] - exact_log_density(x.row(i), theta0) + exact_log_density(x.row(i), theta1)) /
        2000.0;
  return difference;
}

// A density of the parameters divides by that of the design: the log of this changes by 0.4 between
// both points, with the correlation by 1.7.
TEST(DensityRatio, TheDesignIsDividedOut) {
  const Design::Config independent{
      .kind = Design::Kind::normal, .mean = {0.5, 0.0}, .sigma = {0.7, 1.0}};
  auto correlated = independent;
  correlated.correlation = Matrix(2, 2, {1.0, 0.7, 0.7, 1.0});
  for (const auto& normal : {independent, correlated}) {
    const Design narrow(plane, normal);
    const auto events = simulate_plane(narrow, 20000, 1);
    const DensityRatio known(events, narrow, quick_density(DensityRatio::Of::parameters));
    EXPECT_NEAR(off_by(known), 0.0, normal.correlation.empty() ? 0.12 : 0.15);
    if (normal.correlation.empty()) continue;
    // The same θ as a table, whose density is learned.
    const DensityRatio learned(events, empirical_design(events, plane),
                               quick_density(DensityRatio::Of::parameters));
    EXPECT_NEAR(off_by(learned), 0.0, 0.2);
    Archive archive;
    learned.save(archive);
    EXPECT_EQ(off_by(DensityRatio(archive, plane)), off_by(learned));
    // All ways lead to the same, and so does the gradient.
    const Matrix x = data_at({0.3, 0.2}, 1, 5);
    const Matrix points(2, 2, {0.4, 0.1, -0.3, 0.6});
    const auto sum = learned.over(x);
    const auto at = sum->at(points);
    for (std::size_t j = 0; j < 2; ++j) EXPECT_NEAR(at[j], (*sum)(points.row(j), {}), 1e-4);
    std::vector<double> gradient(2), up = {0.402, 0.1}, down = {0.398, 0.1};
    (*sum)(points.row(0), gradient);
    EXPECT_NEAR(gradient[0], ((*sum)(up, {}) - (*sum)(down, {})) / 4e-3,
                0.02 * std::abs(gradient[0]) + 0.05);
  }
}

// q(θ|x) = N(x′, 1) here, cut off at the ranges: 5 σ of 4000 draws, and what learning leaves.
TEST(DensityRatio, ProposesParameters) {
  const auto& ratio = trained_density(DensityRatio::Of::parameters);
  const std::vector<double> x{0.0, 0.0, 1.0};
  const Matrix drawn = ratio.draw(x, 4000, 1);
  double mean = 0.0, square = 0.0;
  for (std::size_t i = 0; i < 4000; ++i) {
    EXPECT_NO_THROW(plane.check_inside("drawn", drawn.row(i)));
    mean += drawn(i, 0) / 4000.0;
    square += drawn(i, 0) * drawn(i, 0) / 4000.0;
  }
  EXPECT_NEAR(mean, 0.0, 0.15);
  EXPECT_NEAR(square, 0.774, 0.12);  // of a normal cut off at ±2
  EXPECT_EQ(ratio.draw(x, 10, 1), ratio.draw(x, 10, 1));
  EXPECT_THROW(trained_density(DensityRatio::Of::features).draw(x, 10, 1), ArgumentError);
}

TEST(DensityRatio, SameBitsOnAnyNumberOfThreads) {
  const auto events = simulate_plane(plane_design(), 2000, 8);
  const Matrix x = data_at({0.0, 0.0}, 50, 9);
  const std::vector<double> theta0{0.5, 0.5}, theta1{-0.5, -0.5};
  auto short_one = quick_density();
  short_one.epochs = 2;
  const auto learned = [&](std::size_t count) {
    set_threads(count);
    return DensityRatio(events, plane_design(), short_one).log_ratios(x, theta0, theta1);
  };
  const auto one = learned(1), four = learned(4);
  set_threads(0);
  EXPECT_EQ(one, four);
}

// x ~ U(0, t), and y ~ N(x, 1) to see that factors after the edge know where x is. Of 100 events
// the log likelihood is −100 log t where t is above the largest x.
TEST(DensityRatio, FollowsAnEdgeThatMoves) {
  const ParameterSpace line({{"t", 0.5, 1.5, {}}});
  const auto simulate = [&](std::size_t n, const Matrix& theta, const char* purpose) {
    Samples out;
    out.feature_names = {"x", "y"};
    out.parameter_names = {"t"};
    out.theta = theta;
    out.x = Matrix(n, 2);
    RandomStream random(1, purpose);
    for (std::size_t i = 0; i < n; ++i) {
      out.x(i, 0) = theta(i, 0) * random.uniform();
      out.x(i, 1) = out.x(i, 0) + random.normal();
    }
    return out;
  };
  const auto events = simulate(20000, Design(line).draw(20000, 1, "theta"), "training");
  auto config = quick_density();
  config.members = 2;
  const DensityRatio ratio(events, Design(line), config);
  const auto data = simulate(100, Matrix(100, 1, std::vector<double>(100, 1.0)), "data");
  const auto sum = ratio.over(data.x);
  EXPECT_FALSE(sum->differentiable());
  const auto value = [&](double t) { return (*sum)(std::vector{t}, {}); };
  for (const double t : {1.05, 1.2, 1.45})
    EXPECT_NEAR(value(t) - value(1.001), -100.0 * std::log(t / 1.001), 1.0) << t;
  EXPECT_LT(value(0.9), value(1.001) - 100.0);
  const Matrix table = ratio.table(data.x, Matrix(2, 1, {1.1, 1.3}));
  double first = 0.0, second = 0.0;
  for (std::size_t i = 0; i < 100; ++i) {
    first += table(i, 0);
    second += table(i, 1);
  }
  EXPECT_NEAR(second - first, value(1.3) - value(1.1), 1e-3);
  const auto of_one = ratio.over(data.x.rows(0, 1))->at(Matrix(2, 1, {1.1, 1.3}));
  EXPECT_NEAR(of_one[0], table(0, 0), 1e-5);
  EXPECT_NEAR(of_one[1], table(0, 1), 1e-5);
  EXPECT_GE(sum->simulation_gradient_covariance(std::vector{1.1})(0, 0), 0.0);
  Archive archive;
  ratio.save(archive);
  const DensityRatio loaded(archive, line);
  EXPECT_EQ(loaded.table(data.x, Matrix(1, 1, {1.1})), ratio.table(data.x, Matrix(1, 1, {1.1})));
}

TEST(DensityRatio, SavesAndLoads) {
  const std::vector<double> theta0{0.5, 0.5}, theta1{-0.5, -0.5};
  const Matrix x = data_at({0.0, 0.0}, 50, 10);
  for (const auto of : both_kinds) {
    Archive archive;
    trained_density(of).save(archive);
    const DensityRatio loaded(archive, plane);
    EXPECT_EQ(loaded.of(), of);
    EXPECT_EQ(loaded.log_ratios(x, theta0, theta1),
              trained_density(of).log_ratios(x, theta0, theta1));
    EXPECT_EQ(loaded.over(x)->simulation_gradient_covariance(theta0),
              trained_density(of).over(x)->simulation_gradient_covariance(theta0));
    Archive broken = archive;
    broken.set("of", "nothing");
    EXPECT_THROW(DensityRatio(broken, plane), FileError);
    broken = archive;
    broken.set("members", std::int64_t{3});
    EXPECT_THROW(DensityRatio(broken, plane), FileError);
    broken = archive;
    broken.set("low", std::vector<double>{0.0});
    EXPECT_THROW(DensityRatio(broken, plane), FileError);
  }
}

// Both kinds have a covariance that is one: symmetric, with a positive trace.
TEST(DensityRatio, KnowsItsOwnUncertainty) {
  const Matrix x = data_at({0.3, 0.7}, 500, 7);
  for (const auto of : both_kinds) {
    const Matrix covariance =
        trained_density(of).over(x)->simulation_gradient_covariance(std::vector{0.3, 0.7});
    EXPECT_NEAR(covariance(0, 1), covariance(1, 0), 1e-9 * covariance(0, 0));
    EXPECT_GT(covariance(0, 0), 0.0);
    EXPECT_GT(covariance(1, 1), 0.0);
    EXPECT_LE(covariance(0, 1) * covariance(0, 1),
              covariance(0, 0) * covariance(1, 1) * (1.0 + 1e-9));  // two members: of rank one
    // Replicas far from each other: the members' difference, and nothing between a point and
    // itself.
    const auto sum = trained_density(of).over(x);
    const Matrix replicas =
        sum->simulation_replicas(Matrix(3, 2, {0.3, 0.7, -0.9, -1.0, 0.3, 0.7}), 100, 3);
    ASSERT_EQ(replicas.rows(), 100u);
    const double between = (*sum)(std::vector{0.3, 0.7}, {}) - (*sum)(std::vector{-0.9, -1.0}, {});
    double mean = 0.0, squares = 0.0;
    for (std::size_t b = 0; b < 100; ++b) {
      EXPECT_EQ(replicas(b, 0), replicas(b, 2));
      const double off = replicas(b, 0) - replicas(b, 1) - between;
      mean += off / 100.0;
      squares += off * off / 100.0;
    }
    EXPECT_GT(squares, 0.0);
    EXPECT_LT(std::abs(mean), 0.5 * std::sqrt(squares));  // five standard errors
  }
}

TEST(DensityRatio, ConstantAndHeavyTailedFeaturesStayFinite) {
  auto events = simulate_plane(plane_design(), 1000, 15);
  RandomStream random(16, "tail");
  for (std::size_t i = 0; i < events.size(); ++i) {
    events.x(i, 2) = i % 2 == 0 ? 3.0 : 1e9 * std::exp(5.0 * random.normal());
    events.x(i, 1) = 3.0;
  }
  auto config = quick_density();
  config.epochs = 2;
  for (const auto of : both_kinds) {
    config.of = of;
    const DensityRatio ratio(events, plane_design(), config);
    Matrix x = data_at({0.0, 0.0}, 20, 17);
    x(0, 2) = 1e300;
    x(1, 0) = -1e12;
    for (const double value : ratio.log_ratios(x, std::vector{1.0, 1.0}, std::vector{0.0, 0.0}))
      EXPECT_TRUE(std::isfinite(value));
    EXPECT_GE(ratio.count_outside(x), 2u);
  }
}

// An event of weight two is two events, up to what other batches change.
TEST(DensityRatio, OnlyRatiosOfWeightsMatter) {
  auto events = simulate_plane(plane_design(), 2000, 13);
  auto weighted = events;
  weighted.weights.assign(2000, 0.25);
  auto config = quick_density();
  config.epochs = 3;
  const Matrix x = data_at({0.0, 0.0}, 200, 14);
  const std::vector<double> theta0{0.5, 0.5}, theta1{-0.5, -0.5};
  const auto plain = DensityRatio(events, plane_design(), config).log_ratios(x, theta0, theta1);
  const auto quarter = DensityRatio(weighted, plane_design(), config).log_ratios(x, theta0, theta1);
  for (std::size_t i = 0; i < x.rows(); ++i) EXPECT_NEAR(plain[i], quarter[i], 1e-5);
}

TEST(DensityRatio, RefusesWhatItCannotLearnFrom) {
  auto events = simulate_plane(plane_design(), 100, 22);
  auto config = quick_density();
  config.members = 6;
  EXPECT_THROW(DensityRatio(events, plane_design(), config), ArgumentError);  // 20 events a member
  config.members = 2;
  auto negative = events;
  negative.weights.assign(100, 1.0);
  negative.weights[7] = -1.0;
  EXPECT_THROW(DensityRatio(negative, plane_design(), config), ArgumentError);
  auto without = events;
  without.theta = Matrix();
  EXPECT_THROW(DensityRatio(without, plane_design(), config), ArgumentError);
  config.of = DensityRatio::Of::parameters;
  EXPECT_THROW(DensityRatio(events, empirical_design(events, plane), config), ArgumentError);
}

}  // namespace
}  // namespace neyman
