#include "neyman/measurements/test_statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "known_models.hpp"
#include "neyman/core/error.hpp"

namespace neyman {
namespace {

using testing::counting_workspace;
using testing::reference_answers;
using testing::reference_model;
using testing::reference_names;

// −2 log of the likelihood ratio of two Poisson means for a count.
double ratio(double n, double nu, double best) {
  return 2.0 * (nu - best - (n > 0.0 ? n * std::log(nu / best) : 0.0));
}

double value(TestStatistic statistic, double observed, double tested) {
  const StatisticalModel model(counting_workspace(3.0, 8.0, observed, -2.5));
  const auto out = test_statistic(model, model.observed(), statistic, tested);
  EXPECT_TRUE(out.ok);
  EXPECT_EQ(out.at_tested[0], tested);
  EXPECT_EQ(out.estimate, out.best[0]);
  return out.value;
}

TEST(TestStatistic, KnownAnswersOfACount) {
  // n ~ Poisson(3 μ + 8): μ̂ = (n − 8) / 3.
  EXPECT_NEAR(value(TestStatistic::t, 14.0, 1.0), ratio(14, 11, 14), 1e-9);
  EXPECT_NEAR(value(TestStatistic::t, 5.0, 1.0), ratio(5, 11, 5), 1e-9);
  EXPECT_NEAR(value(TestStatistic::t_tilde, 5.0, 1.0), ratio(5, 11, 8), 1e-9);
  EXPECT_NEAR(value(TestStatistic::t_tilde, 14.0, 1.0), ratio(14, 11, 14), 1e-9);
  EXPECT_NEAR(value(TestStatistic::q0, 14.0, 0.0), ratio(14, 8, 14), 1e-9);
  EXPECT_EQ(value(TestStatistic::q0, 5.0, 0.0), 0.0);
  EXPECT_NEAR(value(TestStatistic::q, 5.0, 1.0), ratio(5, 11, 5), 1e-9);
  EXPECT_EQ(value(TestStatistic::q, 14.0, 1.0), 0.0);
  EXPECT_NEAR(value(TestStatistic::q_tilde, 5.0, 1.0), ratio(5, 11, 8), 1e-9);
  EXPECT_NEAR(value(TestStatistic::q_tilde, 10.0, 1.0), ratio(10, 11, 10), 1e-9);
  EXPECT_EQ(value(TestStatistic::q_tilde, 14.0, 1.0), 0.0);
  EXPECT_NEAR(value(TestStatistic::q_tilde, 0.0, 2.0), 12.0, 1e-9);
}

TEST(TestStatistic, AgreesWithPyhf) {
  for (const auto* name : reference_names) {
    const auto model = reference_model(name);
    const auto answers = reference_answers(name);
    for (const auto& test : answers["tests"]) {
      const double tested = test["mu"], expected = test["statistic"];
      const auto found = test_statistic(model, model.observed(), TestStatistic::q_tilde, tested);
      EXPECT_TRUE(found.ok);
      EXPECT_NEAR(found.value, expected, 1e-4 * (1.0 + expected)) << name << " " << tested;
    }
  }
}

TEST(TestStatistic, HasNames) {
  for (const auto* name : {"t", "t-tilde", "q0", "q", "q-tilde"})
    EXPECT_EQ(to_string(test_statistic_named(name)), name);
  EXPECT_THROW(test_statistic_named("q1"), ArgumentError);
}

std::string message(TestStatistic statistic, double tested, double lowest) {
  const StatisticalModel model(counting_workspace(3.0, 8.0, 9.0, lowest));
  try {
    test_statistic(model, model.observed(), statistic, tested);
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(TestStatistic, RefusesWhatItCannotTest) {
  EXPECT_EQ(
      message(TestStatistic::q, 1.0, 0.0),
      "test_statistic: the range of mu is [0, 30], but must be below 0 too for q; with it q is "
      "q-tilde");
  EXPECT_EQ(message(TestStatistic::q0, 1.0, -1.0),
            "test_statistic: mu is 1, but must be 0, which q0 tests");
  EXPECT_EQ(message(TestStatistic::q_tilde, -0.5, -1.0),
            "test_statistic: mu is -0.5, but must be at least 0 for q-tilde");
  EXPECT_NE(message(TestStatistic::q_tilde, 31.0, -1.0), "nothing was thrown");
}

}  // namespace
}  // namespace neyman
