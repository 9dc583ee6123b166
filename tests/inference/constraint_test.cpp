#include "neyman/inference/constraint.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "known_likelihoods.hpp"
#include "neyman/core/error.hpp"
#include "neyman/inference/fit.hpp"

namespace neyman {
namespace {

using testing::FunctionLikelihood;

std::vector<Constraint> all_kinds() {
  return {Constraint::gaussian(0, 2.0, 0.5), Constraint::log_normal(0, 2.0, 1.3),
          Constraint::log_normal_relative(0, 2.0, 0.4), Constraint::poisson(0, 7.0, 3.0),
          Constraint::poisson(0, 0.0, 3.0)};
}

TEST(Constraint, FormulasAndTheirLargestValue) {
  EXPECT_NEAR(Constraint::gaussian(0, 2.0, 0.5).log_density(3.0), -2.0, 1e-14);
  EXPECT_NEAR(Constraint::log_normal(0, 2.0, 1.5).log_density(2.0 * 1.5 * 1.5), -2.0, 1e-12);
  // log Poisson(7 | 3·1.5) − log Poisson(7 | 7).
  EXPECT_NEAR(Constraint::poisson(0, 7.0, 3.0).log_density(1.5),
              7.0 * std::log(4.5 / 7.0) - (4.5 - 7.0), 1e-13);
  EXPECT_EQ(Constraint::poisson(0, 0.0, 3.0).log_density(1.5), -4.5);
  EXPECT_EQ(Constraint::gaussian(0, 2.0, 0.5).log_density(2.0), 0.0);
  EXPECT_EQ(Constraint::log_normal(0, 2.0, 1.5).log_density(2.0), 0.0);
  EXPECT_NEAR(Constraint::poisson(0, 6.0, 3.0).log_density(2.0), 0.0, 1e-15);
}

TEST(Constraint, DerivativesEqualDifferences) {
  for (const auto& constraint : all_kinds())
    for (const double at : {0.3, 1.0, 2.0, 9.0}) {
      const double h = 1e-6;
      const double difference =
          (constraint.log_density(at + h) - constraint.log_density(at - h)) / (2.0 * h);
      EXPECT_NEAR(constraint.derivative(at), difference, 1e-6 * (1.0 + std::abs(difference)))
          << to_string(constraint.kind()) << " at " << at;
      const double second =
          (constraint.derivative(at + h) - constraint.derivative(at - h)) / (2.0 * h);
      EXPECT_NEAR(constraint.second_derivative(at), second, 1e-6 * (1.0 + std::abs(second)))
          << to_string(constraint.kind()) << " at " << at;
    }
}

TEST(Constraint, SecondDerivativesEqualDifferences) {
  for (const auto& constraint : all_kinds())
    for (const double at : {0.3, 1.0, 2.0, 9.0}) {
      const double h = 1e-6;
      const double difference =
          (constraint.derivative(at + h) - constraint.derivative(at - h)) / (2.0 * h);
      EXPECT_NEAR(constraint.second_derivative(at), difference, 1e-6 * (1.0 + std::abs(difference)))
          << to_string(constraint.kind()) << " at " << at;
    }
  EXPECT_EQ(Constraint::log_normal(0, 2.0, 1.5).second_derivative(-1.0), 0.0);
  EXPECT_EQ(Constraint::poisson(0, 2.0).second_derivative(0.0), 0.0);
}

TEST(Constraint, IsLargestWithTheExpectedMeasurement) {
  for (const auto& constraint : all_kinds()) {
    const auto asimov = constraint.with_observed(constraint.expected(1.7));
    EXPECT_NEAR(asimov.log_density(1.7), 0.0, 1e-15);
    EXPECT_NEAR(asimov.derivative(1.7), 0.0, 1e-14);
    EXPECT_EQ(asimov.kind(), constraint.kind());
    EXPECT_EQ(asimov.width(), constraint.width());
  }
}

TEST(Constraint, ForbiddenValues) {
  EXPECT_EQ(Constraint::log_normal(0, 2.0, 1.5).log_density(0.0), Likelihood::forbidden);
  EXPECT_EQ(Constraint::log_normal(0, 2.0, 1.5).derivative(-1.0), 0.0);
  EXPECT_EQ(Constraint::log_normal(0, 2.0, 1.5).second_derivative(-1.0), 0.0);
  EXPECT_EQ(Constraint::poisson(0, 2.0).second_derivative(0.0), 0.0);
  EXPECT_EQ(Constraint::poisson(0, 2.0).log_density(0.0), Likelihood::forbidden);
  EXPECT_EQ(Constraint::poisson(0, 0.0).log_density(0.0), 0.0);
  EXPECT_EQ(Constraint::poisson(0, 0.0).log_density(-1.0), Likelihood::forbidden);
  EXPECT_THROW(Constraint::gaussian(0, 1.0, 0.0), ArgumentError);
  EXPECT_THROW(Constraint::gaussian(0, NAN, 1.0), ArgumentError);
  EXPECT_THROW(Constraint::log_normal(0, 1.0, 1.0), ArgumentError);
  EXPECT_THROW(Constraint::log_normal(0, -1.0, 1.5), ArgumentError);
  EXPECT_THROW(Constraint::poisson(0, -1.0), ArgumentError);
}

TEST(Constraint, AuxiliaryMeasurementsHaveTheirDistribution) {
  // Mean and standard deviation over 20 000 draws; 5.5 standard errors, false alarm 4e-8 each.
  struct Expected {
    Constraint constraint;
    double mean, spread;
  };
  const double log_kappa = std::log(1.3), value = 1.7;
  const double log_mean = value * std::exp(0.5 * log_kappa * log_kappa);
  const Expected cases[] = {
      {Constraint::gaussian(0, 2.0, 0.5), value, 0.5},
      {Constraint::log_normal(0, 2.0, 1.3), log_mean,
       log_mean * std::sqrt(std::expm1(log_kappa * log_kappa))},
      {Constraint::poisson(0, 7.0, 3.0), 3.0 * value, std::sqrt(3.0 * value)}};
  for (const auto& [constraint, mean, spread] : cases) {
    RandomStream random(1, "constraint");
    double sum = 0.0, squares = 0.0;
    constexpr int draws = 20000;
    for (int i = 0; i < draws; ++i) {
      const auto drawn = constraint.sampled(value, random);
      EXPECT_EQ(drawn.width(), constraint.width());
      sum += drawn.observed();
      squares += std::pow(drawn.observed() - mean, 2);
    }
    EXPECT_NEAR(sum / draws, mean, 5.5 * spread / std::sqrt(draws)) << to_string(constraint.kind());
    EXPECT_NEAR(std::sqrt(squares / draws) / spread, 1.0, 5.5 * 1.2 / std::sqrt(2.0 * draws));
  }
}

TEST(ConstrainedLikelihood, AddsTermsAndGradients) {
  const ParameterSpace space({{"a", 0.1, 10, {}}, {"b", 0.1, 10, {}}});
  const auto base = std::make_shared<FunctionLikelihood>(
      space, [](std::span<const double> t) { return -t[0] * t[1]; });
  std::vector<Constraint> constraints = all_kinds();
  constraints.push_back(Constraint::gaussian(1, 3.0, 0.7));
  const ConstrainedLikelihood likelihood(base, constraints);
  const double point[] = {1.4, 2.2};
  double expected = -1.4 * 2.2;
  for (const auto& constraint : constraints)
    expected += constraint.log_density(point[constraint.parameter()]);
  double gradient[2];
  EXPECT_NEAR(likelihood(point, gradient), expected, 1e-12);
  for (std::size_t p = 0; p < 2; ++p) {
    double above[] = {1.4, 2.2}, below[] = {1.4, 2.2};
    above[p] += 1e-5;
    below[p] -= 1e-5;
    EXPECT_NEAR(gradient[p], (likelihood(above) - likelihood(below)) / 2e-5, 1e-5);
  }
  const double zero[] = {0.0, 1.0};
  EXPECT_EQ(likelihood(zero, gradient), Likelihood::forbidden);
  EXPECT_EQ(gradient[1], 0.0);
  EXPECT_THROW(ConstrainedLikelihood(nullptr, {}), ArgumentError);
  EXPECT_THROW(ConstrainedLikelihood(base, {Constraint::gaussian(2, 0.0, 1.0)}), ArgumentError);
}

TEST(ConstrainedLikelihood, AGaussianConstraintAddsInformation) {
  // Two independent measurements of b of widths 0.5 and 0.3, and one of a + b of width 0.4.
  const auto base = std::make_shared<FunctionLikelihood>(
      ParameterSpace({{"a", -20, 20, {}}, {"b", -20, 20, {}}}), [](std::span<const double> t) {
        return -0.5 * std::pow((t[0] + t[1] - 5.0) / 0.4, 2) -
               0.5 * std::pow((t[1] - 1.0) / 0.5, 2);
      });
  const auto found = fit(ConstrainedLikelihood(base, {Constraint::gaussian(1, 2.0, 0.3)}));
  const double information = 1.0 / 0.25 + 1.0 / 0.09;
  const double b = (1.0 / 0.25 + 2.0 / 0.09) / information;
  EXPECT_NEAR(found.point[1], b, 1e-5);
  EXPECT_NEAR(found.point[0], 5.0 - b, 1e-5);
  EXPECT_NEAR(found.covariance(1, 1), 1.0 / information, 1e-6);
  EXPECT_NEAR(found.covariance(0, 0), 0.16 + 1.0 / information, 1e-6);
}

/// A table of one constraint.
Settings table(SettingValue::Table values) { return Settings(std::move(values), "study.toml"); }
SettingValue text(const char* value) { return {std::string(value), 3}; }
SettingValue number(double value) { return {value, 3}; }

TEST(MakeConstraint, ReadsEachKind) {
  auto gaussian = make_constraint(
      table({{"kind", text("gaussian")}, {"mean", number(2.0)}, {"sigma", number(0.1)}}), 4);
  ASSERT_TRUE(gaussian);
  EXPECT_EQ(gaussian->parameter(), 4U);
  EXPECT_EQ(gaussian->kind(), Constraint::Kind::gaussian);
  EXPECT_EQ(gaussian->width(), 0.1);
  auto log_normal = make_constraint(
      table({{"kind", text("log-normal")}, {"mean", number(2.0)}, {"kappa", number(1.1)}}), 0);
  ASSERT_TRUE(log_normal);
  EXPECT_NEAR(log_normal->width(), std::log(1.1), 1e-15);
  auto relative = make_constraint(
      table({{"kind", text("log-normal")}, {"mean", number(2.0)}, {"relative", number(0.1)}}), 0);
  ASSERT_TRUE(relative);
  EXPECT_NEAR(relative->width(), std::sqrt(std::log(1.01)), 1e-15);
  auto poisson = make_constraint(table({{"kind", text("poisson")}, {"count", number(12)}}), 0);
  ASSERT_TRUE(poisson);
  EXPECT_EQ(poisson->observed(), 12.0);
  EXPECT_EQ(poisson->width(), 1.0);
}

TEST(MakeConstraint, NotesWhatIsWrong) {
  const auto problem_of = [](SettingValue::Table values) {
    auto settings = table(std::move(values));
    EXPECT_FALSE(make_constraint(settings, 0));
    EXPECT_EQ(settings.problems().size(), 1U);
    return settings.problems().empty() ? std::string() : to_string(settings.problems()[0]);
  };
  EXPECT_NE(problem_of({{"mean", number(1)}}).find("kind is missing"), std::string::npos);
  EXPECT_NE(problem_of({{"kind", text("gausian")}}).find("gaussian"), std::string::npos);
  EXPECT_NE(problem_of({{"kind", text("gaussian")}, {"mean", number(1)}, {"sigma", number(-1)}})
                .find("study.toml:3: sigma is -1"),
            std::string::npos);
  EXPECT_NE(problem_of({{"kind", text("gaussian")}, {"mean", number(1)}}).find("sigma"),
            std::string::npos);
  EXPECT_NE(problem_of({{"kind", text("log-normal")}, {"mean", number(1)}}).find("relative"),
            std::string::npos);
  EXPECT_NE(problem_of({{"kind", text("log-normal")}, {"mean", number(1)}, {"kappa", number(0.9)}})
                .find("kappa is 0.9, but must be above 1"),
            std::string::npos);
  EXPECT_NE(problem_of({{"kind", text("poisson")}, {"count", number(-2)}}).find("count"),
            std::string::npos);
}

}  // namespace
}  // namespace neyman
