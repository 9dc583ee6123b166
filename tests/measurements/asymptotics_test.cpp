#include "neyman/measurements/asymptotics.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "known_models.hpp"
#include "neyman/core/error.hpp"

namespace neyman {
namespace {

using testing::counting_workspace;
using testing::on_off_workspace;
using testing::reference_answers;
using testing::reference_model;
using testing::reference_names;

TEST(Asymptotics, TestsAgreeWithPyhf) {
  for (const auto* name : reference_names) {
    const auto model = reference_model(name);
    for (const auto& test : reference_answers(name)["tests"]) {
      const double tested = test["mu"], observed = test["cls"];
      const auto found = asymptotic_test(model, model.observed(), tested);
      ASSERT_TRUE(found.ok);
      EXPECT_NEAR(found.cl_s, observed, 1e-3 * observed) << name << " " << tested;
      for (std::size_t i = 0; i < 5; ++i) {
        const double expected = test["expected_cls"][i];
        EXPECT_NEAR(found.expected_cl_s[i], expected, 1e-3 * expected) << name << " " << tested;
      }
    }
  }
}

TEST(Asymptotics, LimitsAgreeWithPyhf) {
  for (const auto* name : reference_names) {
    const auto model = reference_model(name);
    const auto answers = reference_answers(name)["limit"];
    UpperLimitOptions options;
    options.highest = model.parameters()[0].high;
    const auto found = upper_limit(model, model.observed(), options);
    const double observed = answers["observed"];
    EXPECT_NEAR(found.observed, observed, 1e-3 * observed) << name;
    for (std::size_t i = 0; i < 5; ++i) {
      const double expected = answers["expected"][i];
      EXPECT_NEAR(found.expected[i], expected, 1e-3 * expected) << name << " " << i;
    }
    // The limit is where its own test says.
    EXPECT_NEAR(asymptotic_test(model, model.observed(), found.observed).cl_s, 0.05, 1e-6);
    EXPECT_NEAR(asymptotic_test(model, model.observed(), found.expected[3]).expected_cl_s[3], 0.05,
                1e-6);
  }
}

TEST(Asymptotics, DiscoveryAgreesWithPyhf) {
  for (const auto* name : reference_names) {
    const auto model = reference_model(name);
    const auto answers = reference_answers(name)["discovery"];
    const auto found = discovery(model, model.observed());
    ASSERT_TRUE(found.ok);
    EXPECT_NEAR(found.statistic, answers["statistic"].get<double>(), 1e-4) << name;
    EXPECT_NEAR(found.p_value, answers["p_value"].get<double>(), 1e-4) << name;
    EXPECT_NEAR(0.5 * std::erfc(found.expected_significance / std::sqrt(2.0)),
                answers["expected_p_value"].get<double>(), 1e-4)
        << name;
  }
}

TEST(Asymptotics, DiscoveryOfACountIsItsFormula) {
  // Z = √(2 (n log(n / b) − (n − b))), and the same for the expected n = s + b.
  const StatisticalModel model(counting_workspace(15.0, 40.0, 62.0));
  const auto found = discovery(model, model.observed());
  EXPECT_NEAR(found.significance, std::sqrt(2.0 * (62.0 * std::log(62.0 / 40.0) - 22.0)), 1e-9);
  EXPECT_NEAR(found.expected_significance, std::sqrt(2.0 * (55.0 * std::log(55.0 / 40.0) - 15.0)),
              1e-9);
  EXPECT_NEAR(found.estimate, 22.0 / 15.0, 1e-9);
  // Fewer than the background: no sign of a signal, whether μ may be negative or not.
  for (const double lowest : {0.0, -2.0}) {
    const StatisticalModel fewer(counting_workspace(15.0, 40.0, 30.0, lowest));
    const auto none = discovery(fewer, fewer.observed());
    EXPECT_NEAR(none.significance, 0.0, 1e-9);
    EXPECT_NEAR(none.p_value, 0.5, 1e-9);
  }
}

TEST(Asymptotics, LimitOfManyEventsIsGaussian) {
  // n = b exactly with 10⁶ events: μ̂ = 0, σ = √b / s; the limit is 1.96 σ, for CL_s too.
  const StatisticalModel model(counting_workspace(1e3, 1e6, 1e6, -5.0, 20.0));
  const auto found = upper_limit(model, model.observed());
  EXPECT_NEAR(found.observed, 1.95996, 2e-3);
  EXPECT_NEAR(found.expected[2], 1.95996, 2e-3);
  // Known ratios of the band to σ: Φ⁻¹(1 − α Φ(N)) + N.
  EXPECT_NEAR(found.expected[4], 4.0 - 0.3515, 0.1);
  EXPECT_LT(found.expected[0], found.expected[1]);
  EXPECT_LT(found.expected[1], found.expected[2]);
}

TEST(Asymptotics, WithQTheEstimateMayBeNegative) {
  const StatisticalModel model(on_off_workspace(10.0, 50.0, 5.0, 40.0, -3.0));
  UpperLimitOptions options;
  options.statistic = TestStatistic::q;
  const auto q = upper_limit(model, model.observed(), options);
  const auto tilde = upper_limit(model, model.observed());
  EXPECT_NEAR(q.estimate, -1.0, 1e-7);
  EXPECT_NEAR(tilde.estimate, 0.0, 1e-12);
  EXPECT_NEAR(q.observed, tilde.observed, 0.1 * tilde.observed);  // the same in the Wald limit
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(q.expected[i], tilde.expected[i], 1e-5);
}

TEST(Asymptotics, ALimitThatIsNotBracketedIsRefused) {
  const auto message = [](double observed, double highest) -> std::string {
    const StatisticalModel model(counting_workspace(3.0, 8.0, observed));
    UpperLimitOptions options;
    options.highest = highest;
    try {
      upper_limit(model, model.observed(), options);
    } catch (const ArgumentError& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(message(20.0, 20.0), "nothing was thrown");
  EXPECT_EQ(
      message(20.0, 5.0),
      "upper_limit: CL_s of the observed limit at mu = 5 is 0.261, but must be below 0.05 for the "
      "limit to lie inside; widen the range of mu");
  EXPECT_EQ(message(4.0, 3.5).substr(0, 49), "upper_limit: CL_s of the expected +2σ limit at m");
  EXPECT_NE(message(20.0, 40.0), "nothing was thrown");  // beyond the parameter's range
}

TEST(Asymptotics, RefusesOtherStatistics) {
  const StatisticalModel model(counting_workspace(3.0, 8.0, 20.0));
  EXPECT_THROW(asymptotic_test(model, model.observed(), 1.0, TestStatistic::t_tilde),
               ArgumentError);
  UpperLimitOptions options;
  options.statistic = TestStatistic::q0;
  EXPECT_THROW(upper_limit(model, model.observed(), options), ArgumentError);
  options = {};
  options.level = 1.0;
  EXPECT_THROW(upper_limit(model, model.observed(), options), ArgumentError);
}

}  // namespace
}  // namespace neyman
