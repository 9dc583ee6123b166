#include "neyman/measurements/extended_likelihood.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "known_models.hpp"
#include "neyman/inference/fit.hpp"
#include "neyman/simulators/exponential.hpp"
#include "neyman/simulators/join.hpp"
#include "neyman/simulators/normal.hpp"

namespace neyman {
namespace {

/// A signal N(m, exp(s / 10)) beside a feature that does not matter, over an exponential.
struct Known {
  ParameterSpace parameters{{{"mu", 0.0, 3.0, 1.0}, {"m", 1.0, 3.0, 2.0}, {"s", -3.0, 3.0, 0.0}}};
  std::shared_ptr<const Mixture> mixture = Mixture::of_yields(
      {std::make_shared<Join>(std::vector<DistributionPtr>{
           std::make_shared<Normal>(Expression("m", parameters),
                                    Expression("0.3*exp(0.1*s)", parameters)),
           std::make_shared<Normal>(0.5, 1.0)}),
       std::make_shared<Join>(std::vector<DistributionPtr>{std::make_shared<Exponential>(0.5),
                                                           std::make_shared<Normal>(0.0, 1.0)})},
      {Expression("40*mu^2", parameters), 100.0}, parameters, {"signal", "background"});
  Matrix x = sample(*mixture, std::vector<double>{1.0, 2.0, 0.0}, 140, 7, "test");
};

using testing::normal_density;

TEST(ExtendedLikelihood, IsTheSumOverEventsLessTheExpectation) {
  const Known known;
  const ExtendedLikelihood likelihood(known.parameters, *known.mixture, known.x);
  const std::vector<double> point = {1.2, 1.9, 0.4};
  double sum = -40.0 * 1.44 - 100.0;
  for (std::size_t i = 0; i < known.x.rows(); ++i) {
    const double a = known.x(i, 0), b = known.x(i, 1);
    sum += std::log(
        40.0 * 1.44 * normal_density(a, 1.9, 0.3 * std::exp(0.04)) * normal_density(b, 0.5, 1.0) +
        100.0 * 0.5 * std::exp(-0.5 * a) * (a >= 0.0 ? 1.0 : 0.0) * normal_density(b, 0.0, 1.0));
  }
  EXPECT_NEAR(likelihood(point), sum, 1e-9 * std::abs(sum));
}

TEST(ExtendedLikelihood, WeightsCountEventsSeveralTimes) {
  const Known known;
  Matrix twice(2, 2);
  for (std::size_t i = 0; i < 2; ++i) twice(i, 0) = 1.7, twice(i, 1) = 0.2;
  Matrix once(1, 2);
  once(0, 0) = 1.7, once(0, 1) = 0.2;
  const std::vector<double> point = {0.8, 2.1, -1.0};
  const ExtendedLikelihood a(known.parameters, *known.mixture, twice);
  const ExtendedLikelihood b(known.parameters, *known.mixture, once, {2.0});
  std::vector<double> gradient_a(3), gradient_b(3);
  EXPECT_NEAR(a(point, gradient_a), b(point, gradient_b), 1e-12);
  for (std::size_t p = 0; p < 3; ++p) EXPECT_NEAR(gradient_a[p], gradient_b[p], 1e-9);
}

TEST(ExtendedLikelihood, DerivativesAreThoseOfItsValues) {
  const Known known;
  const ExtendedLikelihood likelihood(known.parameters, *known.mixture, known.x);
  const std::vector<double> point = {1.1, 2.05, -0.3};
  std::vector<double> gradient(3), again(3), up(3), down(3);
  Matrix hessian;
  const auto value = likelihood.second_derivatives(point, gradient, hessian);
  ASSERT_TRUE(value);
  EXPECT_NEAR(*value, likelihood(point, again), 1e-10 * std::abs(*value));
  for (std::size_t p = 0; p < 3; ++p) {
    EXPECT_NEAR(gradient[p], again[p], 1e-9);
    auto high = point, low = point;
    const double h = 1e-4;
    high[p] += h, low[p] -= h;
    const double slope = (likelihood(high, up) - likelihood(low, down)) / (2.0 * h);
    EXPECT_NEAR(gradient[p], slope, 1e-4 * (1.0 + std::abs(slope))) << p;
    for (std::size_t q = 0; q < 3; ++q) {
      const double curve = (up[q] - down[q]) / (2.0 * h);
      EXPECT_NEAR(hessian(p, q), curve, 1e-3 * (1.0 + std::abs(curve))) << p << ' ' << q;
    }
  }
}

TEST(ExtendedLikelihood, NoSignalIsAllowedAndDifferentiable) {
  const Known known;
  const ExtendedLikelihood likelihood(known.parameters, *known.mixture, known.x);
  std::vector<double> gradient(3);
  const std::vector<double> none = {0.0, 2.0, 0.0};
  EXPECT_TRUE(std::isfinite(likelihood(none, gradient)));
  EXPECT_GT(likelihood(none), Likelihood::forbidden);
  EXPECT_NEAR(gradient[1], 0.0, 1e-9);  // without a signal its place does not matter
}

TEST(ExtendedLikelihood, FitFindsTheExpectedNumberOfEvents) {
  // At the maximum of an extended likelihood whose yields are free, Σ ν is the number of events.
  const ParameterSpace parameters({{"s", 1.0, 200.0, 50.0}, {"b", 1.0, 300.0, 100.0}});
  const auto mixture =
      Mixture::of_yields({std::make_shared<Normal>(2.0, 0.3), std::make_shared<Normal>(0.0, 2.0)},
                         {Expression("s", parameters), Expression("b", parameters)}, parameters);
  const auto x = sample(*mixture, std::vector<double>{50.0, 100.0}, 150, 3, "test");
  const ExtendedLikelihood likelihood(parameters, *mixture, x);
  FitOptions options;
  options.start = {50.0, 100.0};
  const auto found = fit(likelihood, options);
  ASSERT_TRUE(found.ok());
  EXPECT_NEAR(found.point[0] + found.point[1], 150.0, 1e-3);
}

TEST(ExtendedLikelihood, RefusesWhatItCannotUse) {
  const Known known;
  const Mixture shares({std::make_shared<Normal>(0.0, 1.0), std::make_shared<Normal>(1.0, 1.0)},
                       {0.5, 0.5});
  Matrix one(1, 1);
  EXPECT_THROW(ExtendedLikelihood(known.parameters, shares, one), ArgumentError);
  EXPECT_THROW(ExtendedLikelihood(known.parameters, *known.mixture, one), ArgumentError);
  EXPECT_THROW(ExtendedLikelihood(known.parameters, *known.mixture, known.x, {1.0}), ArgumentError);
  Matrix bad = known.x;
  bad(3, 1) = std::nan("");
  EXPECT_THROW(ExtendedLikelihood(known.parameters, *known.mixture, bad), ArgumentError);
}

}  // namespace
}  // namespace neyman
