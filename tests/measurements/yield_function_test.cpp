#include <gtest/gtest.h>

#include <cmath>

#include "neyman/core/error.hpp"
#include "neyman/measurements/model_fit.hpp"

namespace neyman {
namespace {

std::shared_ptr<UnbinnedEvents> some_events() {
  RandomStream random(11, "test");
  auto out = std::make_shared<UnbinnedEvents>();
  const std::size_t n = 300;
  out->ratios = Matrix(2, n);
  for (std::size_t i = 0; i < n; ++i) {
    const double x = i < 60 ? 1.5 + 0.5 * random.normal() : 2.0 * random.normal();
    out->ratios(0, i) = 4.0 * std::exp(-0.5 * std::pow((x - 1.5) / 0.5, 2) + x * x / 8.0);
    out->ratios(1, i) = 1.0;
  }
  return out;
}

UnbinnedChannel channel_of(UnbinnedComponent signal, UnbinnedComponent background) {
  UnbinnedChannel out;
  out.name = "events";
  out.components = {std::move(signal), std::move(background)};
  out.observed = some_events();
  out.normalise = false;
  return out;
}

YieldFunction yield_of(Parameter parameter, double nominal,
                       std::function<double(double)> function) {
  YieldFunction out;
  out.parameters = ParameterSpace({std::move(parameter)});
  out.nominal = {nominal};
  out.value = [function](std::span<const double> p) { return function(p[0]); };
  return out;
}

UnbinnedComponent component(const char* name, YieldFunction function) {
  UnbinnedComponent out;
  out.name = name;
  out.yield = 1.0;
  out.function = std::move(function);
  return out;
}

const auto moved_signal = [](double mu) { return 50.0 * mu; };
const auto moved_background = [](double size) { return 240.0 * size; };

StatisticalModel model_of(ParameterSettings size) {
  Workspace workspace;
  workspace.measurements = {{"search", "mu", {std::move(size)}}};
  return {workspace,
          {channel_of(component("signal", yield_of({"mu", 0.0, 5.0, {}}, 1.0, moved_signal)),
                      component("background",
                                yield_of({"size", 0.2, 3.0, {}, true}, 1.0, moved_background)))}};
}

ParameterSettings size_settings() {
  ParameterSettings out;
  out.name = "size";
  out.auxiliary = {1.1};
  return out;
}

TEST(YieldFunction, ALineIsANormfactor) {
  auto size = size_settings();
  size.sigma = {0.1};
  const auto model = model_of(size);
  // The same by modifiers; a luminosity is a factor with a Gaussian constraint of any width.
  Workspace workspace;
  ParameterSettings lumi = size;
  lumi.range = {{0.2, 3.0}};
  workspace.measurements = {{"search", "mu", {lumi}}};
  const StatisticalModel same(workspace,
                              {channel_of({"signal", 50.0, {Modifier::norm_factor("mu")}},
                                          {"background", 240.0, {Modifier::lumi("size")}})});
  const auto fit = fit_model(model), reference = fit_model(same);
  ASSERT_TRUE(fit.ok() && reference.ok());
  EXPECT_NEAR(fit.log_likelihood, reference.log_likelihood, 1e-9);
  for (std::size_t p = 0; p < 2; ++p) {
    EXPECT_NEAR(fit.point[p], reference.point[p], 1e-7);
    EXPECT_NEAR(fit.error(p), reference.error(p), 1e-7);
  }
}

TEST(YieldFunction, DerivativesOfTheLikelihood) {
  Workspace workspace;
  workspace.measurements = {{"search", "mu"}};
  YieldFunction both;  // of two parameters, one of which the signal has too
  both.parameters = ParameterSpace({{"mu", 0.0, 5.0, {}}, {"size", 0.2, 3.0, {}, true}});
  both.nominal = {1.0, 1.0};
  both.value = [](std::span<const double> p) {
    return 240.0 * std::sqrt(p[1]) * (1.0 + 0.1 * p[0]);
  };
  const StatisticalModel model(
      workspace,
      {channel_of(component("signal", yield_of({"mu", 0.0, 5.0, {}}, 1.0,
                                               [](double mu) { return 50.0 * mu * mu; })),
                  component("background", both))});
  const ModelLikelihood likelihood(model, model.observed());
  const std::vector<double> point = {1.2, 0.9};
  std::vector<double> gradient(2), up(2), down(2);
  likelihood(point, gradient);
  const auto information = likelihood.information(point);
  for (std::size_t p = 0; p < 2; ++p) {
    auto high = point, low = point;
    high[p] += 1e-4, low[p] -= 1e-4;
    EXPECT_NEAR(gradient[p], (likelihood(high, up) - likelihood(low, down)) / 2e-4, 1e-4);
    for (std::size_t q = 0; q < 2; ++q)
      EXPECT_NEAR(-information(p, q), (up[q] - down[q]) / 2e-4, 1e-3 * std::abs(information(p, p)));
  }
}

TEST(YieldFunction, ConstraintsOfEveryKind) {
  auto log_normal = size_settings();
  log_normal.kappa = {std::exp(0.1)};
  const auto a = model_of(log_normal);
  ASSERT_EQ(a.constraints().size(), 1u);
  EXPECT_EQ(a.constraints()[0].kind(), Constraint::Kind::log_normal);
  EXPECT_NEAR(a.constraints()[0].width(), 0.1, 1e-12);
  EXPECT_EQ(a.constraints()[0].observed(), 1.1);
  auto poisson = size_settings();
  poisson.auxiliary = {110.0};
  poisson.tau = {100.0};
  EXPECT_EQ(model_of(poisson).constraints()[0].kind(), Constraint::Kind::poisson);
  EXPECT_TRUE(fit_model(a).ok());
  EXPECT_TRUE(fit_model(model_of(poisson)).ok());
  poisson.sigma = {0.1};
  EXPECT_THROW(model_of(poisson), ArgumentError);
  Workspace workspace;
  workspace.measurements = {{"search", "mu", {log_normal}}};
  EXPECT_THROW(workspace_json(workspace), ArgumentError);  // pyhf has no such constraint
}

TEST(YieldFunction, RefusesWhatIsNotOne) {
  Workspace workspace;
  workspace.measurements = {{"search", "mu"}};
  const auto with = [&](YieldFunction function) {
    return StatisticalModel(
        workspace, {channel_of(component("signal", std::move(function)), {"background", 240.0})});
  };
  const Parameter mu{"mu", 0.0, 5.0, {}};
  EXPECT_NO_THROW(with(yield_of(mu, 1.0, moved_signal)));
  auto without = yield_of(mu, 1.0, moved_signal);
  without.value = {};
  EXPECT_THROW(with(without), ArgumentError);
  auto sizes = yield_of(mu, 1.0, moved_signal);
  sizes.nominal = {1.0, 2.0};
  EXPECT_THROW(with(sizes), ArgumentError);
  EXPECT_THROW(with(yield_of(mu, 1.0, [](double) { return std::nan(""); })), ArgumentError);
}

}  // namespace
}  // namespace neyman
