#include <cmath>

#include "neyman/core/parallel.hpp"
#include "neyman/data/reader.hpp"
#include "neyman/simulators/exponential.hpp"
#include "neyman/simulators/g_and_k.hpp"
#include "neyman/simulators/mixture.hpp"
#include "neyman/simulators/normal.hpp"
#include "neyman/simulators/ricker.hpp"
#include "neyman/simulators/uniform.hpp"
#include "simulators/examples.hpp"
#include "simulators/reference.hpp"

namespace neyman {
namespace {

const ParameterSpace normal_space({{"mu", -10, 10, {}}, {"sigma", 0, 10, {}}});

Normal free_normal() { return Normal({"mu", normal_space}, {"sigma", normal_space}); }

Matrix observed(const std::string& name) {
  return read_samples(std::string(NEYMAN_TEST_DATA) + "/" + name).samples.x;
}

TEST(Fit, OfANormalIsTheMeanAndTheSpread) {
  const auto x = sample(Normal(1.25, 3.0), {}, 2000, 1, "test");
  const auto [mean, variance] = reference::moments(x.column(0));
  const auto result = fit(free_normal(), normal_space, x);
  EXPECT_TRUE(result.converged);
  EXPECT_NEAR(result.point[0], mean, 1e-6);
  EXPECT_NEAR(result.point[1], std::sqrt(variance * 1999.0 / 2000.0), 1e-6);
  EXPECT_GT(result.evaluations, 10);
  double sum = 0.0;
  for (const double value : log_density(free_normal(), result.point, x)) sum += value;
  EXPECT_NEAR(result.log_likelihood, sum, 1e-9);
}

TEST(Fit, WeightsEqualRepetition) {
  const Matrix once(3, 1, {0.0, 2.0, 7.0}), repeated(6, 1, {0.0, 2.0, 2.0, 7.0, 7.0, 7.0});
  const auto a = fit(free_normal(), normal_space, once, std::vector{1.0, 2.0, 3.0});
  const auto b = fit(free_normal(), normal_space, repeated);
  EXPECT_TRUE(a.converged);
  EXPECT_NEAR(a.point[0], 25.0 / 6.0, 1e-6);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(a.point[i], b.point[i], 1e-6);
  EXPECT_NEAR(a.log_likelihood, b.log_likelihood, 1e-9);
}

TEST(Fit, AnEventOfWeightZeroIsNotThere) {
  const ParameterSpace space({{"rate", 0.1, 10, {}}});
  const Matrix x(3, 1, {0.5, 1.5, -4.0});  // the last is impossible
  const auto result = fit(Exponential({"rate", space}), space, x, std::vector{1.0, 1.0, 0.0});
  EXPECT_TRUE(result.converged);
  EXPECT_NEAR(result.point[0], 1.0, 1e-6);
}

TEST(Fit, FixedParametersStay) {
  const auto x = sample(Normal(1.25, 3.0), {}, 500, 2, "test");
  double square = 0.0;
  for (const double v : x.values()) square += (v - 4.0) * (v - 4.0) / 500.0;
  const auto result = fit(free_normal(), normal_space, x, {}, {4.0, 1.0}, {true, false});
  EXPECT_TRUE(result.converged);
  EXPECT_EQ(result.point[0], 4.0);
  EXPECT_NEAR(result.point[1], std::sqrt(square), 1e-6);
  const auto none = fit(free_normal(), normal_space, x, {}, {4.0, 1.0}, {true, true});
  EXPECT_TRUE(none.converged);
  EXPECT_EQ(none.point, (std::vector{4.0, 1.0}));
  EXPECT_EQ(none.evaluations, 1);
}

TEST(Fit, StopsAtTheEndOfARange) {
  const ParameterSpace space({{"mu", -2, 0.5, {}}, {"sigma", 0.1, 5, {}}});
  const Normal normal({"mu", space}, {"sigma", space});
  const auto x = sample(Normal(1.25, 1.0), {}, 500, 3, "test");
  double square = 0.0;
  for (const double v : x.values()) square += (v - 0.5) * (v - 0.5) / 500.0;
  const auto result = fit(normal, space, x);
  EXPECT_TRUE(result.converged);
  EXPECT_EQ(result.at_limit, (std::vector<bool>{true, false}));
  EXPECT_NEAR(result.point[0], 0.5, 1e-6);
  EXPECT_LE(result.point[0], 0.5);
  EXPECT_NEAR(result.point[1], std::sqrt(square), 1e-5);
}

TEST(Fit, SaysWhenTheDataDoNotDecide) {
  const ParameterSpace space({{"mu", -2, 2, {}}, {"unused", 0, 1, {}}});
  const auto x = sample(Normal(0.3, 1.0), {}, 200, 4, "test");
  const auto result = fit(Normal({"mu", space}, 1.0), space, x);
  EXPECT_FALSE(result.converged);
  EXPECT_NEAR(result.point[0], reference::moments(x.column(0)).mean, 1e-5);
}

TEST(Fit, SaysWhenEveryEventIsImpossible) {
  const ParameterSpace space({{"w", 1, 2, {}}});
  const auto result = fit(Uniform(0.0, {"w", space}), space, Matrix(1, 1, {50.0}));
  EXPECT_FALSE(result.converged);
}

TEST(Fit, FindsAMaximumBesideImpossibleRegions) {
  // The MLE of the end of a uniform is the largest event, at the edge of the impossible.
  const ParameterSpace space({{"w", 1, 20, {}}});
  const auto x = sample(Uniform(0.0, 7.0), {}, 300, 5, "test");
  const double largest = *std::max_element(x.values().begin(), x.values().end());
  const auto result = fit(Uniform(0.0, {"w", space}), space, x);
  EXPECT_NEAR(result.point[0], largest, 1e-4);
  EXPECT_GE(result.point[0], largest);
}

TEST(Fit, FindsTheHigherOfTwoHills) {
  // Two peaks at mu and mu + 6 of 0.2 and 0.8: starting at 6 is a hill of its own.
  const ParameterSpace space({{"mu", -10, 10, {}}});
  const Mixture peaks({std::make_shared<Normal>(Expression("mu", space), 0.5),
                       std::make_shared<Normal>(Expression("mu + 6", space), 0.5)},
                      {0.2, 0.8});
  const auto x = sample(peaks, std::vector{0.0}, 500, 6, "test");
  const auto result = fit(peaks, space, x, {}, {6.0});
  EXPECT_TRUE(result.converged);
  EXPECT_NEAR(result.point[0], 0.0, 0.15);
}

TEST(Fit, OfGAndKFindsTheTruthWithinItsErrors) {
  const ParameterSpace space(
      {{"a", 0, 6, {}}, {"b", 0.5, 4, {}}, {"g", 0, 5, {}}, {"k", 0, 2, {}}});
  const GAndK model({"a", space}, {"b", space}, {"g", space}, {"k", space});
  const auto x = sample(model, std::vector{3.0, 1.5, 2.0, 0.5}, 2000, 7, "test");
  const auto result = fit(model, space, x);
  EXPECT_TRUE(result.converged);
  // Asymptotic errors at 2000 events are about 0.03, 0.06, 0.10, 0.04; five of them.
  EXPECT_NEAR(result.point[0], 3.0, 0.2);
  EXPECT_NEAR(result.point[1], 1.5, 0.35);
  EXPECT_NEAR(result.point[2], 2.0, 0.6);
  EXPECT_NEAR(result.point[3], 0.5, 0.25);
}

TEST(Fit, IsTheSameOnAnyNumberOfThreads) {
  const auto x = sample(Normal(1.0, 2.0), {}, 20000, 8, "test");
  set_threads(1);
  const auto one = fit(free_normal(), normal_space, x);
  set_threads(3);
  const auto three = fit(free_normal(), normal_space, x);
  set_threads(0);
  EXPECT_EQ(one.point, three.point);
  EXPECT_EQ(one.log_likelihood, three.log_likelihood);
}

TEST(Fit, RefusesWhatItCannotFit) {
  const Matrix x(2, 1, {0.0, 1.0});
  EXPECT_THROW(fit(Ricker(3.8, 10.0, 0.3), normal_space, Matrix(1, 50)), ArgumentError);
  EXPECT_THROW(fit(free_normal(), normal_space, Matrix(0, 1)), ArgumentError);
  EXPECT_THROW(fit(free_normal(), normal_space, Matrix(2, 2)), ArgumentError);
  EXPECT_THROW(fit(free_normal(), normal_space, x, std::vector{1.0}), ArgumentError);
  EXPECT_THROW(fit(free_normal(), normal_space, x, std::vector{1.0, -1.0}), ArgumentError);
  EXPECT_THROW(fit(free_normal(), normal_space, x, {}, {20.0, 1.0}), ArgumentError);
  EXPECT_THROW(fit(free_normal(), normal_space, x, {}, {0.0, 0.0}), ArgumentError);  // sigma 0
  EXPECT_THROW(fit(free_normal(), normal_space, x, {}, {}, {true}), ArgumentError);
  EXPECT_THROW(fit(free_normal(), normal_space, Matrix(1, 1, {std::nan("")})), ArgumentError);
}

// The estimates that the paper and its notebooks print for their observed data.
TEST(Fit, ReproducesTheFirstExample) {
  const auto text =
      fit(examples::first(0.25), examples::first_space, observed("example1_observed.csv"));
  EXPECT_TRUE(text.converged);
  EXPECT_NEAR(text.point[0], 0.0458759, 1e-6);
  const auto notebook =
      fit(examples::first(0.75), examples::first_space, observed("example1_notebook_observed.csv"));
  EXPECT_TRUE(notebook.converged);
  EXPECT_NEAR(notebook.point[0], 0.0451602, 1e-6);
}

TEST(Fit, ReproducesTheSecondExample) {
  const auto result =
      fit(*examples::second(), examples::second_space, observed("example2_observed.csv"));
  EXPECT_TRUE(result.converged);
  EXPECT_NEAR(result.point[0], 1.01185, 1e-4);
  EXPECT_NEAR(result.point[1], -0.92213, 1e-4);
}

}  // namespace
}  // namespace neyman
