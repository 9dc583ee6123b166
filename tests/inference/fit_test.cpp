#include "neyman/inference/fit.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "neyman/core/error.hpp"
#include "neyman/inference/statistics.hpp"
#include "neyman/simulators/normal.hpp"
#include "ratios/two_components.hpp"

namespace neyman {
namespace {

/// ℓ = −½ (θ − c)ᵀ A (θ − c): the estimate, covariance and intervals are known.
class Parabola final : public Likelihood {
 public:
  Parabola(ParameterSpace space, std::vector<double> centre, Matrix a)
      : space_(std::move(space)), centre_(std::move(centre)), a_(std::move(a)) {}
  const ParameterSpace& parameters() const override { return space_; }
  std::size_t events() const override { return 1; }
  double operator()(std::span<const double> point, std::span<double> gradient) const override {
    double value = 0.0;
    for (std::size_t i = 0; i < centre_.size(); ++i) {
      double product = 0.0;
      for (std::size_t j = 0; j < centre_.size(); ++j)
        product += a_(i, j) * (point[j] - centre_[j]);
      value -= 0.5 * (point[i] - centre_[i]) * product;
      if (!gradient.empty()) gradient[i] = -product;
    }
    return value;
  }

 private:
  ParameterSpace space_;
  std::vector<double> centre_;
  Matrix a_;
};

TEST(Fit, FindsTheTopOfAParabola) {
  const Parabola likelihood(ParameterSpace({{"a", -10, 10, {}}, {"b", -1, 5, {}}}), {1.5, 2.0},
                            Matrix(2, 2, {4.0, 1.0, 1.0, 9.0}));
  const auto found = fit(likelihood);
  EXPECT_EQ(found.status, FitStatus::converged);
  EXPECT_NEAR(found.point[0], 1.5, 1e-6);
  EXPECT_NEAR(found.point[1], 2.0, 1e-6);
  // The inverse of [[4, 1], [1, 9]].
  EXPECT_NEAR(found.covariance(0, 0), 9.0 / 35.0, 1e-6);
  EXPECT_NEAR(found.covariance(0, 1), -1.0 / 35.0, 1e-6);
  EXPECT_NEAR(found.covariance(1, 1), 4.0 / 35.0, 1e-6);
  EXPECT_LT(found.distance, 1e-6);
}

TEST(Fit, SaysWhenItEndsAtABound) {
  const Parabola likelihood(ParameterSpace({{"a", 2, 10, {}}, {"b", -1, 5, {}}}), {1.0, 2.0},
                            Matrix(2, 2, {4.0, 1.0, 1.0, 9.0}));
  const auto found = fit(likelihood);
  EXPECT_EQ(found.status, FitStatus::at_bound);
  EXPECT_EQ(found.point[0], 2.0);
  EXPECT_NEAR(found.point[1], 2.0 - 1.0 / 9.0, 1e-6);  // b given a = 2
  EXPECT_EQ(found.covariance(0, 0), 0.0);
  EXPECT_NEAR(found.covariance(1, 1), 1.0 / 9.0, 1e-6);
}

TEST(Fit, KeepsFixedParameters) {
  const Parabola likelihood(ParameterSpace({{"a", -10, 10, {}}, {"b", -1, 5, {}}}), {1.5, 2.0},
                            Matrix(2, 2, {4.0, 1.0, 1.0, 9.0}));
  FitOptions options;
  options.fixed = {0.5, std::nullopt};
  const auto found = fit(likelihood, options);
  EXPECT_EQ(found.point[0], 0.5);
  EXPECT_NEAR(found.point[1], 2.0 + 1.0 / 9.0, 1e-6);
  options.fixed = {0.5, 1.0};
  EXPECT_EQ(fit(likelihood, options).status, FitStatus::converged);
}

/// A likelihood with no maximum: flat.
class Flat final : public Likelihood {
 public:
  const ParameterSpace& parameters() const override { return space_; }
  std::size_t events() const override { return 1; }
  double operator()(std::span<const double>, std::span<double> gradient) const override {
    for (double& value : gradient) value = 0.0;
    return 0.0;
  }

 private:
  ParameterSpace space_{{{"a", 0, 1, {}}}};
};

TEST(Fit, AFlatLikelihoodIsAFailedFit) { EXPECT_EQ(fit(Flat()).status, FitStatus::failed); }

TEST(Interval, OfAParabolaProfilesTheOthers) {
  const Parabola likelihood(ParameterSpace({{"a", -10, 10, {}}, {"b", -10, 10, {}}}), {1.5, 2.0},
                            Matrix(2, 2, {4.0, 1.0, 1.0, 9.0}));
  const auto best = fit(likelihood);
  const auto interval = likelihood_interval(likelihood, best, 0, level_of_sigmas(2.0), false);
  const double sigma = std::sqrt(9.0 / 35.0);
  EXPECT_NEAR(interval.low, 1.5 - 2 * sigma, 1e-5);
  EXPECT_NEAR(interval.high, 1.5 + 2 * sigma, 1e-5);
  EXPECT_FALSE(interval.low_at_bound);
}

TEST(Interval, WidensByFiniteSimulation) {
  const Parabola likelihood(ParameterSpace({{"a", -10, 10, {}}}), {1.0}, Matrix(1, 1, {4.0}));
  auto best = fit(likelihood);
  best.simulation_covariance(0, 0) = 0.25 * 0.75;  // statistical variance 0.25
  const auto interval = likelihood_interval(likelihood, best, 0, level_of_sigmas(1.0), true);
  const double sigma = std::sqrt(0.25 * 1.75);
  EXPECT_NEAR(interval.low, 1.0 - sigma, 1e-6);
  EXPECT_NEAR(interval.high, 1.0 + sigma, 1e-6);
  EXPECT_NEAR(best.error(0), sigma, 1e-6);
}

TEST(Interval, EndsAtTheRangeAndSaysSo) {
  const Parabola likelihood(ParameterSpace({{"a", 0.9, 10, {}}}), {1.0}, Matrix(1, 1, {4.0}));
  const auto best = fit(likelihood);
  const auto interval = likelihood_interval(likelihood, best, 0, 0.683, false);
  EXPECT_EQ(interval.low, 0.9);
  EXPECT_TRUE(interval.low_at_bound);
  EXPECT_FALSE(interval.high_at_bound);
}

TEST(Scan, IsZeroAtTheEstimateAndNeverNegative) {
  const Parabola likelihood(ParameterSpace({{"a", -10, 10, {}}}), {1.0}, Matrix(1, 1, {4.0}));
  const auto best = fit(likelihood);
  const auto curve = scan(likelihood, best, 0, 0.0, 2.0, 21);
  EXPECT_NEAR(curve.statistic[10], 0.0, 1e-9);
  EXPECT_NEAR(curve.statistic[0], 4.0, 1e-6);
  for (const double value : curve.statistic) EXPECT_GE(value, 0.0);
  EXPECT_THROW(scan(likelihood, best, 0, 0, 1, 1), ArgumentError);
}

TEST(Fit, EdgesOfAMixture) {
  // Data of one component alone: the weight of the other ends at its bound.
  const auto mixture = testing::normals({0.0, 6.0});
  const ExactMixtureRatio ratio(mixture, {0.5});
  const auto pure = sample(*mixture->components()[0], std::vector{0.0}, 200, 1, "pure");
  const auto low = fit(MixtureLikelihood(testing::gamma_space(), ratio, pure));
  EXPECT_EQ(low.status, FitStatus::at_bound);
  EXPECT_EQ(low.point[0], 0.0);
  // One event is enough for a fit, at a bound.
  const auto single = fit(MixtureLikelihood(testing::gamma_space(), ratio, Matrix(1, 1, {6.0})));
  EXPECT_EQ(single.point[0], 1.0);
}

}  // namespace
}  // namespace neyman
