#include <gtest/gtest.h>

#include <cmath>

#include "known_models.hpp"
#include "neyman/core/error.hpp"
#include "neyman/measurements/asymptotics.hpp"
#include "neyman/measurements/model_fit.hpp"
#include "neyman/measurements/toys.hpp"

// Log-normal constraints in measurements, against closed forms.
namespace neyman::log_normal_test {
namespace {

constexpr double s = 20.0, b = 50.0, n = 83.0, median = 1.2, kappa = 1.3;
const double width = std::log(kappa);

/// n ~ Poisson(μ s + θ b) with a measurement of θ to a factor κ: μ̂ = (n − a b) / s, θ̂ = a.
Workspace scaled_workspace() {
  return {{{"bin",
            {{"signal", {s}, {Modifier::norm_factor("mu")}},
             {"background", {b}, {Modifier::norm_factor("size")}}},
            {n}}},
          {{"measurement",
            "mu",
            {{"mu", {1.0}, {{-10.0, 30.0}}},
             {.name = "size", .auxiliary = {median}, .kappa = {kappa}}}}}};
}

TEST(LogNormal, FitOfACountIsItsFormula) {
  const StatisticalModel model(scaled_workspace());
  ASSERT_EQ(model.constraints().size(), 1u);
  EXPECT_EQ(model.constraints()[0].kind(), Constraint::Kind::log_normal);
  EXPECT_EQ(model.start()[1], median);
  EXPECT_EQ(model.observed().auxiliary, std::vector<double>{median});
  const auto best = fit_model(model);
  ASSERT_TRUE(best.ok()) << best.message;
  EXPECT_NEAR(best.point[0], (n - median * b) / s, 1e-8);
  EXPECT_NEAR(best.point[1], median, 1e-8);
  EXPECT_NEAR(best.error(1), median * width, 1e-8);
  EXPECT_NEAR(best.error(0), std::sqrt(n + std::pow(b * median * width, 2)) / s, 1e-8);
  EXPECT_NEAR(best.log_likelihood, 0.0, 1e-10);

  const auto found = pulls(model, model.observed(), best);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR(found[0].pull, 0.0, 1e-8);
  EXPECT_NEAR(found[0].constraint, 1.0, 1e-8);

  const auto moves = impacts(model, model.observed(), best);
  ASSERT_EQ(moves.size(), 1u);
  EXPECT_NEAR(moves[0].up, -b * median * (kappa - 1.0) / s, 1e-7);
  EXPECT_NEAR(moves[0].down, -b * median * (1.0 / kappa - 1.0) / s, 1e-7);

  const auto parts = error_breakdown(model, model.observed(), best, {{"background", {"size"}}});
  EXPECT_NEAR(parts[0].error, b * median * width / s, 1e-7);
  EXPECT_NEAR(parts[1].error, 0.0, 1e-12);
  EXPECT_NEAR(parts[2].error, std::sqrt(n) / s, 1e-7);
}

TEST(LogNormal, PullIsInUnitsOfTheLogarithm) {
  // μ held: n log θ b − θ b − ½ (log(a/θ) / w)² is largest where n − θ b + log(a/θ) / w² = 0, with
  // the information n/θ² + (1 + log(a/θ)) / (w θ)².
  const StatisticalModel model(scaled_workspace());
  ModelFitOptions options;
  options.fixed = {0.0, std::nullopt};
  const auto best = fit_model(model, options);
  ASSERT_TRUE(best.ok()) << best.message;
  const double theta = best.point[1], pulled = std::log(median / theta);
  EXPECT_NEAR(n - theta * b + pulled / (width * width), 0.0, 1e-6);
  const double information = n / (theta * theta) + (1.0 + pulled) / std::pow(width * theta, 2);
  EXPECT_NEAR(best.error(1), 1.0 / std::sqrt(information), 1e-8);
  const auto found = pulls(model, model.observed(), best);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR(found[0].pull, -pulled / width, 1e-9);
  EXPECT_NEAR(found[0].constraint, best.error(1) / (theta * width), 1e-9);
}

TEST(LogNormal, DerivativesAreThoseOfTheLikelihood) {
  const StatisticalModel model(scaled_workspace());
  const ModelLikelihood likelihood(model, model.observed());
  const std::vector<double> point{0.7, 0.8};
  const auto value = [&](double mu, double size) {
    const double nu = mu * s + size * b;
    return n * std::log(nu / n) - (nu - n) - 0.5 * std::pow(std::log(median / size) / width, 2);
  };
  std::vector<double> gradient(2);
  EXPECT_NEAR(likelihood(point, gradient), value(0.7, 0.8), 1e-10);
  const double h = 1e-5;
  EXPECT_NEAR(gradient[0], (value(0.7 + h, 0.8) - value(0.7 - h, 0.8)) / (2 * h), 1e-5);
  EXPECT_NEAR(gradient[1], (value(0.7, 0.8 + h) - value(0.7, 0.8 - h)) / (2 * h), 1e-5);
  const auto information = likelihood.information(point);
  const double H = 1e-3;
  EXPECT_NEAR(information(1, 1),
              -(value(0.7, 0.8 + H) - 2 * value(0.7, 0.8) + value(0.7, 0.8 - H)) / (H * H),
              1e-3 * std::abs(information(1, 1)));
}

TEST(LogNormal, ToysAndAsimovData) {
  const StatisticalModel model(scaled_workspace());
  const std::vector<double> point{1.0, 0.9};
  EXPECT_EQ(model.asimov(point).auxiliary, std::vector<double>{0.9});
  const auto best = fit_model(model, model.asimov(point));
  EXPECT_NEAR(best.point[0], 1.0, 1e-7);
  EXPECT_NEAR(best.point[1], 0.9, 1e-7);
  // log a ~ N(log θ, log² κ): 4000 draws, 5 standard errors, false alarm 6e-7 each.
  constexpr int draws = 4000;
  double sum = 0.0, squares = 0.0;
  for (int i = 0; i < draws; ++i) {
    RandomStream random(3, "log-normal", static_cast<std::uint64_t>(i));
    const double z = std::log(model.sampled(point, random).auxiliary[0] / 0.9) / width;
    sum += z;
    squares += z * z;
  }
  EXPECT_NEAR(sum / draws, 0.0, 5.0 / std::sqrt(draws));
  EXPECT_NEAR(squares / draws, 1.0, 5.0 * std::sqrt(2.0 / draws));
  const auto toys = toy_statistics(model, point, TestStatistic::t, 1.0, {.toys = 300, .seed = 2});
  EXPECT_EQ(toys.failed, 0u);
  EXPECT_EQ(toys.statistics.size(), 300u);
}

TEST(LogNormal, LuminosityAndFactorsOfBins) {
  Workspace workspace = {
      {{"bins",
        {{"signal", {10.0, 5.0}, {Modifier::norm_factor("mu"), Modifier::lumi("lumi")}},
         {"background", {30.0, 40.0}, {Modifier::shape_factor("shape")}}},
        {42.0, 44.0}}},
      {{"measurement",
        "mu",
        {{.name = "lumi", .auxiliary = {2.0}, .kappa = {1.02}},
         {.name = "shape", .kappa = {1.1, 1.2}}}}}};
  const StatisticalModel model(workspace);
  ASSERT_EQ(model.constraints().size(), 3u);
  EXPECT_EQ(model.start()[model.parameters().index("lumi")], 2.0);
  const auto best = fit_model(model);
  ASSERT_TRUE(best.ok()) << best.message;
  // The gradient of Σ log p vanishes: (n/ν − 1) yield + log(a/θ) / (w² θ) for each bin's factor.
  const auto expected = model.expected(best.point);
  for (std::size_t bin = 0; bin < 2; ++bin) {
    const double theta = best.point[model.parameters().index("shape[" + std::to_string(bin) + "]")];
    const double w = std::log(bin == 0 ? 1.1 : 1.2), yield = bin == 0 ? 30.0 : 40.0;
    const double count = bin == 0 ? 42.0 : 44.0;
    EXPECT_NEAR((count / expected[bin] - 1.0) * yield - std::log(theta) / (w * w * theta), 0.0,
                1e-5);
  }
}

std::string message_of_argument_error(const std::function<void()>& work) {
  try {
    work();
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "no error";
}

TEST(LogNormal, IsRefusedWhereItDoesNotFit) {
  const auto refused = [](const ParameterSettings& settings) {
    auto workspace = scaled_workspace();
    workspace.channels[0].samples[1].modifiers.push_back(Modifier::norm_sys("alpha", 0.9, 1.1));
    workspace.measurements[0].parameters[1] = settings;
    return message_of_argument_error([&] { StatisticalModel model(workspace); });
  };
  EXPECT_NE(refused({.name = "size", .kappa = {1.0}}).find("kappa is 1, but must be finite and"),
            std::string::npos);
  EXPECT_NE(refused({.name = "size", .kappa = {1.1, 1.2}}).find("kappa has 2 values"),
            std::string::npos);
  EXPECT_NE(refused({.name = "size", .auxiliary = {-1.0}, .kappa = {1.1}}).find("auxiliary"),
            std::string::npos);
  EXPECT_NE(refused({.name = "alpha", .kappa = {1.1}}).find("constraint of another kind"),
            std::string::npos);
  EXPECT_NE(refused({.name = "size", .auxiliary = {1.0}}).find("has no constraint"),
            std::string::npos);
  EXPECT_EQ(message_of_argument_error([] { workspace_json(scaled_workspace()); }),
            "workspace_json: the constraint of 'size' is log-normal, but must be Gaussian or "
            "Poisson: pyhf has no other");
}

}  // namespace
}  // namespace neyman::log_normal_test
