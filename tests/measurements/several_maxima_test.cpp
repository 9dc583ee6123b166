#include <gtest/gtest.h>

#include <cmath>

#include "known_models.hpp"
#include "neyman/measurements/asymptotics.hpp"
#include "neyman/measurements/measurement_summary.hpp"
#include "neyman/measurements/model_fit.hpp"
#include "neyman/measurements/toys.hpp"

// Likelihoods with several maxima, and hypotheses under which the data are impossible.
namespace neyman::several_maxima_test {
namespace {

/// Events of two kinds, A and B, each half of the reference. The signal k² S, the interference −k I
/// and the background expect (108 − 80 k + 22 k²) / 2 of A and (132 − 80 k + 18 k²) / 2 of B, that
/// is 25 and 35 at k = 1, and 33 and 27 at k = 3: the total is 60 at both, and 40 at k = 2.
StatisticalModel interfering(std::size_t of_a, std::size_t of_b, double start) {
  auto events = std::make_shared<UnbinnedEvents>();
  events->ratios = Matrix(3, of_a + of_b);
  for (std::size_t i = 0; i < of_a + of_b; ++i) {
    const bool a = i < of_a;
    events->ratios(0, i) = a ? 1.1 : 0.9;
    events->ratios(1, i) = 1.0;
    events->ratios(2, i) = a ? 0.9 : 1.1;
  }
  UnbinnedChannel channel;
  channel.name = "events";
  channel.components = {{"signal", 20.0}, {"interference", 80.0}, {"background", 120.0}};
  channel.components[0].coefficient.terms = {{1.0, {{"k", 2.0}}}};
  channel.components[1].coefficient.terms = {{-1.0, {{"k", 1.0}}}};
  channel.observed = events;
  Workspace workspace;
  workspace.measurements = {{"measurement", "k", {{"k", {start}, {{0.0, 4.0}}}}}};
  return StatisticalModel(workspace, {channel});
}

TEST(SeveralMaxima, TheHighestIsFoundFromAnyStart) {
  for (const double start : {0.05, 0.4, 0.9, 1.9, 2.1, 2.5, 3.9}) {
    const auto at_three = interfering(33, 27, start);
    const auto best = fit_model(at_three);
    ASSERT_TRUE(best.ok()) << best.message;
    EXPECT_NEAR(best.point[0], 3.0, 1e-6) << start;
    const auto at_one = interfering(25, 35, start);
    EXPECT_NEAR(fit_model(at_one).point[0], 1.0, 1e-6) << start;
  }
}

TEST(SeveralMaxima, OneStartFindsOneOfThem) {
  // What the further starts are for: the maximum near 1 is lower by two units of ℓ.
  const auto model = interfering(33, 27, 0.4);
  ModelFitOptions alone;
  alone.starts = 0;
  const auto near = fit_model(model, alone);
  ASSERT_TRUE(near.ok());
  EXPECT_LT(near.point[0], 1.5);
  EXPECT_LT(near.log_likelihood + 1.0, fit_model(model).log_likelihood);
}

TEST(SeveralMaxima, TestsTakeTheHighest) {
  const auto model = interfering(33, 27, 0.4);
  const auto found = test_statistic(model, model.observed(), TestStatistic::t_tilde, 1.0);
  ASSERT_TRUE(found.ok);
  EXPECT_NEAR(found.estimate, 3.0, 1e-6);
  // −2 log Λ of k = 1 against k = 3: totals are equal, so only the shares of A and B count.
  EXPECT_NEAR(found.value, 2.0 * (33.0 * std::log(33.0 / 25.0) + 27.0 * std::log(27.0 / 35.0)),
              1e-6);
}

TEST(SeveralMaxima, BinnedModelsTakeStartsWhereTheyAreAskedFor) {
  const auto model = testing::reference_model("control");
  ModelFitOptions options;
  options.starts = 5;
  const auto one = fit_model(model), many = fit_model(model, options);
  ASSERT_TRUE(many.ok());
  EXPECT_GT(many.evaluations, 3 * one.evaluations);
  for (std::size_t p = 0; p < model.size(); ++p) EXPECT_NEAR(many.point[p], one.point[p], 1e-6);
}

TEST(Discovery, OfEventsWhereNoneAreExpected) {
  // The second bin has no background.
  const Workspace workspace = {
      {{"bins",
        {{"signal", {3.0, 2.0}, {Modifier::norm_factor("mu")}},
         {"background", {10.0, 0.0}, {Modifier::norm_sys("size", 0.9, 1.1)}}},
        {11.0, 1.0}}},
      {{"measurement", "mu", {{"mu", {1.0}, {{0.0, 20.0}}}}}}};
  const StatisticalModel model(workspace);
  const auto seen = discovery(model, model.observed());
  EXPECT_TRUE(seen.ok);
  EXPECT_TRUE(seen.impossible);
  EXPECT_EQ(seen.significance, std::numeric_limits<double>::infinity());
  EXPECT_EQ(seen.p_value, 0.0);
  EXPECT_GT(seen.estimate, 0.0);
  EXPECT_FALSE(std::isnan(seen.expected_significance));
  auto nothing = model.observed();
  nothing.counts[1] = 0.0;
  const auto none = discovery(model, nothing);
  EXPECT_FALSE(none.impossible);
  EXPECT_TRUE(std::isfinite(none.significance));

  const auto summary = summarise(model, model.observed());
  EXPECT_NE(summary_text(summary).find("the data are impossible with mu = 0"), std::string::npos);
  const auto json = summary_json(summary);
  EXPECT_NE(json.find("\"impossible\": true"), std::string::npos);
  EXPECT_EQ(json.find("nan"), std::string::npos);
}

}  // namespace
}  // namespace neyman::several_maxima_test
