#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "known_models.hpp"
#include "neyman/inference/fit.hpp"
#include "neyman/measurements/model_fit.hpp"
#include "neyman/measurements/statistical_model.hpp"

namespace neyman {
namespace {

using testing::counting_workspace;
using testing::reference_model;
using testing::reference_names;

/// Points over the ranges, near the start as fits see them, and one with factors at zero.
std::vector<std::vector<double>> points_of(const StatisticalModel& model) {
  std::vector<std::vector<double>> out;
  for (std::uint64_t i = 0; i < 4; ++i) {
    RandomStream random(11, "points", i);
    auto point = model.start();
    for (std::size_t p = 0; p < point.size(); ++p)
      point[p] = std::clamp(point[p] + 0.4 * random.normal(), model.parameters()[p].low + 0.05,
                            model.parameters()[p].high - 0.05);
    out.push_back(point);
  }
  out.push_back(model.start());
  out.back()[0] = 0.0;
  return out;
}

TEST(ModelLikelihood, DerivativesEqualDifferences) {
  for (const auto* name : reference_names) {
    const auto model = reference_model(name);
    for (const auto& point : points_of(model)) testing::expect_derivatives(model, point, name);
  }
}

TEST(ModelLikelihood, DerivativesWithTwoFactorsAtZero) {
  // ν = μ ν₀ s + b: at μ = ν₀ = 0 only the mixed second derivative is left, s (1 − n / b).
  auto workspace = counting_workspace(3.0, 8.0, 5.0);
  workspace.channels[0].samples[0].modifiers.push_back(Modifier::norm_factor("nu"));
  const StatisticalModel model(workspace);
  const ModelLikelihood likelihood(model, model.observed());
  const std::vector<double> zero{0.0, 0.0};
  std::vector<double> gradient(2);
  EXPECT_NEAR(likelihood(zero, gradient), 5.0 * std::log(8.0 / 5.0) - 3.0, 1e-12);
  EXPECT_NEAR(gradient[0], 0.0, 1e-12);
  EXPECT_NEAR(gradient[1], 0.0, 1e-12);
  const auto information = likelihood.information(zero);
  EXPECT_NEAR(information(0, 0), 0.0, 1e-12);
  EXPECT_NEAR(information(0, 1), 3.0 * (1.0 - 5.0 / 8.0), 1e-12);
}

TEST(ModelLikelihood, IsForbiddenWhereYieldsAreNegativeOrMissing) {
  const StatisticalModel model(counting_workspace(3.0, 8.0, 5.0, -10.0));
  const ModelLikelihood likelihood(model, model.observed());
  EXPECT_EQ(likelihood(std::vector<double>{-3.0}), Likelihood::forbidden);
  const StatisticalModel only_signal(counting_workspace(3.0, 0.0, 5.0));
  const ModelLikelihood other(only_signal, only_signal.observed());
  EXPECT_EQ(other(std::vector<double>{0.0}), Likelihood::forbidden);
  EXPECT_NEAR(other(std::vector<double>{5.0 / 3.0}), 0.0, 1e-12);
}

TEST(ModelLikelihood, IsFittedByWhatTakesAnyLikelihood) {
  for (const auto* name : {"correlated", "control"}) {
    const auto model = reference_model(name);
    const auto best = fit_model(model);
    FitOptions options;
    options.start = model.start();
    const auto other = fit(ModelLikelihood(model, model.observed()), options);
    ASSERT_TRUE(other.ok()) << other.message;
    EXPECT_NEAR(other.point[0], best.point[0], 1e-3 * best.error(0)) << name;
    EXPECT_NEAR(other.error(0), best.error(0), 1e-3 * best.error(0)) << name;
    EXPECT_NEAR(other.log_likelihood, best.log_likelihood, 1e-6) << name;
  }
}

}  // namespace
}  // namespace neyman
