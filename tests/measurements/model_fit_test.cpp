#include "neyman/measurements/model_fit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "known_models.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman {
namespace {

using testing::counting_workspace;
using testing::on_off_workspace;
using testing::reference_answers;
using testing::reference_model;
using testing::reference_names;

TEST(ModelFit, AgreesWithIminuit) {
  for (const auto* name : reference_names) {
    const auto model = reference_model(name);
    const auto answers = reference_answers(name)["fit"];
    const auto best = fit_model(model);
    ASSERT_TRUE(best.ok()) << name << ": " << best.message;
    for (std::size_t p = 0; p < model.size(); ++p) {
      const auto& parameter = model.parameters()[p].name;
      const auto& bounds = answers["at_bound"];
      EXPECT_EQ(best.at_bound[p],
                std::find(bounds.begin(), bounds.end(), parameter) != bounds.end())
          << name << " " << parameter;
      const double error = answers["errors"][parameter];
      const double value = answers["values"][parameter];
      EXPECT_NEAR(best.point[p], value, 1e-4 * error) << name << " " << parameter;
      if (!bounds.empty()) continue;  // iminuit holds parameters at their bounds
      EXPECT_NEAR(best.error(p), error, 1e-5 * error) << name << " " << parameter;
      const double hesse = answers["hesse"][parameter];
      EXPECT_NEAR(best.error(p), hesse, 5e-3 * hesse) << name << " " << parameter;
    }
    EXPECT_EQ(best.status,
              answers["at_bound"].empty() ? FitStatus::converged : FitStatus::at_bound);
    if (!answers.contains("correlation")) continue;
    const auto correlation = correlations(best);
    for (std::size_t p = 1; p < model.size(); ++p)
      if (best.error(p) > 0.0) {
        EXPECT_NEAR(correlation(0, p), answers["correlation"][model.parameters()[p].name], 1e-5)
            << name << " " << model.parameters()[p].name;
      }
    EXPECT_EQ(correlation(0, 0), 1.0);
  }
}

TEST(ModelFit, AsymmetricErrorsAgreeWithMinos) {
  for (const auto* name : reference_names) {
    const auto answers = reference_answers(name)["fit"];
    if (!answers.contains("minos")) continue;
    const auto model = reference_model(name);
    const auto best = fit_model(model);
    const auto interval = profile_interval(model, model.observed(), best, 0);
    ASSERT_TRUE(interval.ok) << interval.message;
    const double value = answers["values"]["mu"], low = value + answers["minos"][0].get<double>();
    const auto& range = model.parameters()[0];
    const double error = best.error(0);
    EXPECT_NEAR(interval.high, value + answers["minos"][1].get<double>(), 1e-3 * error) << name;
    EXPECT_EQ(interval.low_at_bound, low < range.low) << name;
    EXPECT_NEAR(interval.low, std::max(low, range.low), 1e-3 * error) << name;
  }
}

TEST(ModelFit, KnownAnswerOfTheOnOffProblem) {
  // n = 60 on, background 50 ± 7 from m = 2601/50 off-counts: μ̂ s + b̂ = n, b̂ = 50.
  const StatisticalModel model(on_off_workspace(10.0, 50.0, 7.0, 63.0, -10.0));
  const auto best = fit_model(model);
  ASSERT_EQ(best.status, FitStatus::converged);
  EXPECT_NEAR(best.point[0], 1.3, 1e-9);
  EXPECT_NEAR(best.point[1], 1.0, 1e-9);
  EXPECT_NEAR(best.log_likelihood, 0.0, 1e-12);
  // Var μ̂ = (n + 7²) / s².
  EXPECT_NEAR(best.error(0), std::sqrt(63.0 + 49.0) / 10.0, 1e-9);
  EXPECT_NEAR(correlations(best)(0, 1), -7.0 / std::sqrt(63.0 + 49.0), 1e-9);
}

TEST(ModelFit, ProfileIntervalOfACountIsExact) {
  // −2 log Λ of a Poisson mean ν = 3 μ + 8 with n = 20 is 2 (ν − n − n log(ν / n)).
  const StatisticalModel model(counting_workspace(3.0, 8.0, 20.0, -2.0));
  const auto best = fit_model(model);
  for (const double level : {0.68, 0.95}) {
    const auto interval = profile_interval(model, model.observed(), best, 0, level);
    const double quantile = level == 0.68 ? 0.98894 : 3.84146;
    for (const double end : {interval.low, interval.high}) {
      const double nu = 3.0 * end + 8.0;
      EXPECT_NEAR(2.0 * (nu - 20.0 - 20.0 * std::log(nu / 20.0)), quantile, 1e-5);
    }
    EXPECT_LT(interval.low, best.point[0]);
    EXPECT_GT(interval.high, best.point[0]);
  }
}

TEST(ModelFit, IntervalsEndAtTheRange) {
  const StatisticalModel model(counting_workspace(3.0, 8.0, 6.0));
  const auto best = fit_model(model);
  EXPECT_EQ(best.status, FitStatus::at_bound);
  EXPECT_EQ(best.point[0], 0.0);
  // As if the range went on: of a count where b is expected.
  EXPECT_NEAR(best.error(0), std::sqrt(8.0) / 3.0, 1e-9);
  const auto interval = profile_interval(model, model.observed(), best, 0, 0.95);
  EXPECT_TRUE(interval.ok);
  EXPECT_TRUE(interval.low_at_bound);
  EXPECT_EQ(interval.low, 0.0);
  EXPECT_FALSE(interval.high_at_bound);
  const double nu = 3.0 * interval.high + 8.0;
  EXPECT_NEAR(2.0 * ((nu - 6.0 * std::log(nu)) - (8.0 - 6.0 * std::log(8.0))), 3.84146, 1e-5);
}

TEST(ModelFit, ErrorsAtABoundAreThoseAsIfTheRangeWentOn) {
  // The size of the background is then known from its own count of τ alone.
  const StatisticalModel model(on_off_workspace(10.0, 50.0, 7.0, 44.0));
  const auto best = fit_model(model);
  ASSERT_EQ(best.status, FitStatus::at_bound);
  ASSERT_EQ(best.point[0], 0.0);
  const double tau = 50.0 * 50.0 / 49.0, size = (44.0 + tau) / (50.0 + tau);
  EXPECT_NEAR(best.point[1], size, 1e-8);
  EXPECT_NEAR(best.covariance(1, 1), size / tau, 1e-8);
  EXPECT_NEAR(best.covariance(0, 0), (50.0 * size + 2500.0 * size / tau) / 100.0, 1e-7);
  EXPECT_NEAR(best.covariance(0, 1), -5.0 * size / tau, 1e-8);
  // Where nothing is observed the likelihood rises steeply outwards; a parameter that multiplies
  // the signal of zero is known from its constraint, as in answers of Minuit.
  const auto nothing = reference_model("nothing_seen");
  const auto seen = fit_model(nothing);
  EXPECT_EQ(seen.status, FitStatus::at_bound);
  EXPECT_NEAR(seen.error(*nothing.parameters().find("efficiency")), 1.0, 1e-6);
  // Where nothing is expected, nothing tells of it.
  const StatisticalModel empty(counting_workspace(3.0, 0.0, 0.0));
  const auto flat = fit_model(empty);
  EXPECT_EQ(flat.status, FitStatus::at_bound);
  EXPECT_FALSE(flat.statistical_error_known(0));
  EXPECT_EQ(flat.error(0), 0.0);
}

TEST(ModelFit, FiniteSimulationMovesEstimatesAtABoundToo) {
  // The background is known to ± 0.5. If the range went on, b = 8.5 + 0.5 z would move the estimate
  // by −z / 6, but nearly all replicas end at the bound.
  const std::vector<double> z = {-1.6, -1.0, -0.6, -0.2, 0.2, 0.6, 1.0, 1.6};
  const StatisticalModel model(counting_workspace(3.0, 8.5, 8.0));
  auto best = fit_model(model);
  ASSERT_EQ(best.status, FitStatus::at_bound);
  add_simulation_covariance(best, model, z.size(), [&](std::size_t b) {
    return StatisticalModel(counting_workspace(3.0, 8.5 + 0.5 * z[b], 8.0));
  });
  EXPECT_TRUE(best.simulation_error_known(0));
  double square = 0.0;
  for (const double value : z) square += value * value / 36.0 / static_cast<double>(z.size() - 1);
  EXPECT_NEAR(best.simulation_error(0), std::sqrt(square), 0.1 * std::sqrt(square));
  const auto plain = profile_interval(model, model.observed(), best, 0, 0.95);
  const auto wider = profile_interval(model, model.observed(), best, 0, 0.95, true);
  EXPECT_GT(wider.high, plain.high * 1.005);
}

TEST(ModelFit, HoldsAndRanges) {
  const auto model = reference_model("correlated");
  ModelFitOptions options;
  options.fixed.resize(model.size());
  options.fixed[0] = 0.25;
  const auto held = fit_model(model, options);
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(held.point[0], 0.25);
  EXPECT_EQ(held.error(0), 0.0);
  EXPECT_EQ(held.status, FitStatus::converged);
  options.fixed[0].reset();
  options.ranges.resize(model.size());
  options.ranges[0] = FitRange{2.5, 4.0};
  const auto bounded = fit_model(model, options);
  EXPECT_EQ(bounded.status, FitStatus::at_bound);
  EXPECT_EQ(bounded.point[0], 2.5);
  options.ranges[0] = FitRange{4.0, 2.0};
  EXPECT_THROW(fit_model(model, options), ArgumentError);
  options.ranges.pop_back();
  EXPECT_THROW(fit_model(model, options), ArgumentError);
  EXPECT_THROW(profile_interval(model, model.observed(), held, 0), ArgumentError);
  EXPECT_THROW(profile_interval(model, model.observed(), held, model.size()), ArgumentError);
}

TEST(ModelFit, FailuresHaveAReason) {
  auto workspace = counting_workspace(3.0, 2.0, 14.0);
  workspace.channels[0].samples[0].modifiers.push_back(Modifier::norm_factor("nu"));
  const auto flat = fit_model(StatisticalModel(workspace));
  EXPECT_EQ(flat.status, FitStatus::failed);
  EXPECT_EQ(flat.message, "the data do not determine mu, nu");
  workspace = counting_workspace(3.0, 2.0, 14.0);
  workspace.channels.push_back({"empty", {{"background", {0.0}}}, {3.0}});
  const auto impossible = fit_model(StatisticalModel(workspace));
  EXPECT_EQ(impossible.status, FitStatus::failed);
  EXPECT_EQ(impossible.message,
            "no event can be expected in channel 'empty', bin 0, where the fit starts");
}

TEST(ModelFit, PullsAreInUnitsOfTheConstraint) {
  const auto model = reference_model("correlated");
  const auto best = fit_model(model);
  const auto found = pulls(model, model.observed(), best);
  ASSERT_EQ(found.size(), 3u);
  for (const auto& pull : found) {
    EXPECT_NEAR(pull.pull, best.point[pull.parameter], 1e-12);  // N(0, 1)
    EXPECT_NEAR(pull.constraint, best.error(pull.parameter), 1e-12);
    EXPECT_LT(pull.constraint, 1.0 + 1e-9);
  }
  // A Poisson constraint: 50 ± 7, pulled by 64 events where there is no signal.
  const StatisticalModel on_off(on_off_workspace(10.0, 50.0, 7.0, 64.0));
  ModelFitOptions options;
  options.fixed = {0.0, std::nullopt};
  const auto background = fit_model(on_off, options);
  const double tau = 2500.0 / 49.0;
  EXPECT_NEAR(background.point[1], (64.0 + tau) / (50.0 + tau), 1e-9);
  const auto pull = pulls(on_off, on_off.observed(), background);
  ASSERT_EQ(pull.size(), 1u);
  EXPECT_NEAR(pull[0].pull, (background.point[1] - 1.0) / 0.14, 1e-9);
}

TEST(ModelFit, ImpactsOfALinearModelAreExact) {
  // One bin: μ̂ = (n − b γ_a) / s, where γ_a is what the auxiliary observation says.
  const StatisticalModel model(on_off_workspace(10.0, 50.0, 7.0, 63.0, -10.0));
  const auto best = fit_model(model);
  const auto found = impacts(model, model.observed(), best);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].ok);
  EXPECT_NEAR(found[0].up, -0.7, 1e-7);
  EXPECT_NEAR(found[0].down, 0.7, 1e-7);
}

TEST(ModelFit, ImpactsAddToTheBreakdown) {
  const auto model = reference_model("control");
  const auto best = fit_model(model);
  const auto ranked = impacts(model, model.observed(), best);
  for (std::size_t i = 1; i < ranked.size(); ++i)
    EXPECT_GE(std::max(std::abs(ranked[i - 1].up), std::abs(ranked[i - 1].down)),
              std::max(std::abs(ranked[i].up), std::abs(ranked[i].down)));
  const auto parts = error_breakdown(
      model, model.observed(), best,
      {{"top", {"top_shape", "top_control", "transfer"}}, {"signal", {"efficiency"}}});
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[2].group, "other");
  EXPECT_EQ(parts[3].group, "statistical");
  double sum = 0.0;
  for (const auto& part : parts) sum += part.error * part.error;
  EXPECT_NEAR(std::sqrt(sum), best.error(0), 1e-12);
  // The same by shifted observations, but for what is not linear.
  double top = 0.0;
  for (const auto& impact : ranked)
    if (model.parameters()[impact.parameter].name.starts_with("t"))
      top += 0.25 * (impact.up - impact.down) * (impact.up - impact.down);
  EXPECT_NEAR(std::sqrt(top), parts[0].error, 0.03 * parts[0].error);
  // Without the systematic uncertainties the statistical one is left, if all is fixed.
  EXPECT_THROW(error_breakdown(model, model.observed(), best, {{"a", {"mu"}}}), ArgumentError);
  EXPECT_THROW(error_breakdown(model, model.observed(), best, {{"a", {"nothing"}}}), ArgumentError);
  EXPECT_THROW(error_breakdown(model, model.observed(), best,
                               {{"a", {"efficiency"}}, {"b", {"efficiency"}}}),
               ArgumentError);
}

}  // namespace
}  // namespace neyman
