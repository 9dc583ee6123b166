// SeparableRatio with base = density.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "neyman/ratios/onnx_export.hpp"
#include "neyman/ratios/separable_ratio.hpp"

namespace neyman {
namespace {

const ParameterSpace positions({{"position", 1, 9, {}}});

/// A fifth of the events in a peak of width 0.3, over a flat background from 0 to 10.
double of_peak(double position, RandomStream& random) {
  const bool signal = random.uniform() < 0.2;
  return signal ? position + 0.3 * random.normal() : 10.0 * random.uniform();
}
double log_of_peak(double x, double position) {
  const double z = (x - position) / 0.3;
  const double background = x >= 0.0 && x <= 10.0 ? 0.08 : 0.0;
  return std::log(background + 0.2 / (0.3 * std::sqrt(2.0 * M_PI)) * std::exp(-0.5 * z * z));
}

Samples simulate_peaks(std::size_t n, std::uint64_t seed) {
  Samples events;
  events.feature_names = {"x"};
  events.parameter_names = {"position"};
  events.theta = Design(positions).draw(n, seed, "theta");
  events.x = Matrix(n, 1);
  RandomStream random(seed, "peaks");
  for (std::size_t i = 0; i < n; ++i) events.x(i, 0) = of_peak(events.theta(i, 0), random);
  return events;
}

Matrix peak_at(double position, std::size_t n, std::uint64_t seed) {
  Matrix x(n, 1);
  RandomStream random(seed, "data");
  for (std::size_t i = 0; i < n; ++i) x(i, 0) = of_peak(position, random);
  return x;
}

SeparableRatio::Config above_density(std::uint64_t seed = 1) {
  SeparableRatio::Config config;
  config.base = SeparableRatio::Base::density;
  config.hidden = {16};
  config.epochs = 2;
  config.folds = 3;
  config.seed = seed;
  return config;
}

const SeparableRatio& trained_above_density() {
  static const SeparableRatio ratio(simulate_peaks(20000, 1), Design(positions), above_density());
  return ratio;
}

/// RMS of log r̂ − log r between two positions, over the events of one of them.
double rms_of_peak(const SeparableRatio& ratio) {
  const Matrix x = peak_at(4.0, 4000, 2);
  const auto learned = ratio.log_ratios(x, std::vector{4.0}, std::vector{5.5});
  double squares = 0.0;
  for (std::size_t i = 0; i < x.rows(); ++i)
    squares += std::pow(learned[i] - log_of_peak(x(i, 0), 4.0) + log_of_peak(x(i, 0), 5.5), 2);
  return std::sqrt(squares / 4000.0);
}

// A polynomial in the position cannot follow the peak, and a density does. log r has a spread of 1.
TEST(DensityBelow, FollowsWhatPolynomialsCannot) {
  const double with = rms_of_peak(trained_above_density());
  auto config = above_density();
  config.base = SeparableRatio::Base::none;
  const double without =
      rms_of_peak(SeparableRatio(simulate_peaks(20000, 1), Design(positions), config));
  EXPECT_LT(with, 0.25);
  EXPECT_LT(with, 0.5 * without);
}

TEST(DensityBelow, SumsAndGradientsAreThoseOfTheEvents) {
  const Matrix x = peak_at(4.0, 300, 3);
  std::vector<double> weights(300);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = 0.5 + static_cast<double>(i % 3);
  const auto sum = trained_above_density().over(x, weights);
  const auto ratios = trained_above_density().log_ratios(x, std::vector{4.1}, std::vector{7.0});
  double expected = 0.0;
  for (std::size_t i = 0; i < x.rows(); ++i) expected += weights[i] * ratios[i];
  EXPECT_NEAR((*sum)(std::vector{4.1}, {}) - (*sum)(std::vector{7.0}, {}), expected,
              1e-4 * std::abs(expected));
  std::vector<double> gradient(1);
  (*sum)(std::vector{4.1}, gradient);
  const double difference =
      ((*sum)(std::vector{4.1 + 1e-5}, {}) - (*sum)(std::vector{4.1 - 1e-5}, {})) / 2e-5;
  EXPECT_NEAR(gradient[0], difference, 1e-5 * std::abs(difference) + 1e-3);
}

TEST(DensityBelow, SavesAndLoads) {
  Archive archive;
  trained_above_density().save(archive);
  const SeparableRatio loaded(archive, positions);
  const Matrix x = peak_at(4.0, 50, 4);
  const std::vector<double> theta0{4.0}, theta1{6.0};
  EXPECT_EQ(loaded.log_ratios(x, theta0, theta1),
            trained_above_density().log_ratios(x, theta0, theta1));
  EXPECT_EQ(loaded.over(x)->simulation_gradient_covariance(theta0),
            trained_above_density().over(x)->simulation_gradient_covariance(theta0));
  Archive broken = archive;
  broken.child("fold1").child("density").set("components", std::int64_t{9});
  EXPECT_THROW(SeparableRatio(broken, positions), FileError);
}

TEST(DensityBelow, SameBitsOnAnyNumberOfThreads) {
  const auto events = simulate_peaks(2000, 5);
  const Matrix x = peak_at(4.0, 50, 6);
  const std::vector<double> theta0{4.0}, theta1{6.0};
  const auto logs = [&] {
    return SeparableRatio(events, Design(positions), above_density()).log_ratios(x, theta0, theta1);
  };
  set_threads(1);
  const auto one = logs();
  set_threads(4);
  const auto four = logs();
  set_threads(0);
  EXPECT_EQ(one, four);
}

// ∂ℓ/∂θ of one dataset over twelve trainings on other events: its variance agrees with the
// prediction within a factor of 4 either way, beyond which the χ² of 11 degrees of freedom alone
// lies with probability 10⁻⁴. Only the last layer of the densities is in the prediction, and what
// the corrections mend is in it twice.
TEST(DensityBelow, PredictsItsOwnUncertainty) {
  const Matrix x = peak_at(4.0, 1000, 7);
  const std::vector<double> point{4.0};
  std::vector<double> slopes;
  double predicted = 0.0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const SeparableRatio ratio(simulate_peaks(6000, 100 + seed), Design(positions),
                               above_density(seed));
    const auto sum = ratio.over(x);
    std::vector<double> gradient(1);
    (*sum)(point, gradient);
    slopes.push_back(gradient[0]);
    predicted += sum->simulation_gradient_covariance(point)(0, 0) / 12.0;
  }
  double mean = 0.0, squares = 0.0;
  for (const double slope : slopes) mean += slope / 12.0;
  for (const double slope : slopes) squares += std::pow(slope - mean, 2) / 11.0;
  EXPECT_LT(squares, 4.0 * predicted);
  EXPECT_GT(squares, predicted / 4.0);
}

TEST(DensityBelow, RefusesWhatItCannotDo) {
  const Matrix x = peak_at(4.0, 5, 8);
  EXPECT_THROW(trained_above_density().functions(x), ArgumentError);
  EXPECT_THROW(export_onnx(trained_above_density(), {}), ArgumentError);
  Samples wide;
  wide.feature_names = default_feature_names(60);
  wide.parameter_names = {"position"};
  wide.theta = Design(positions).draw(200, 1, "theta");
  wide.x = Matrix(200, 60);
  RandomStream random(1, "wide");
  for (double& value : wide.x.values()) value = random.normal();
  try {
    SeparableRatio(wide, Design(positions), above_density());
    FAIL();
  } catch (const ArgumentError& error) {
    EXPECT_NE(std::string(error.what()).find("60 features"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace neyman
