#include "neyman/measurements/unbinned_channel.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>

#include "known_models.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/inference/statistics.hpp"
#include "neyman/measurements/asymptotics.hpp"
#include "neyman/measurements/model_fit.hpp"
#include "neyman/measurements/toys.hpp"

namespace neyman {
namespace {

double gauss(double x, double mean, double sigma) {
  const double z = (x - mean) / sigma;
  return std::exp(-0.5 * z * z) / (sigma * std::sqrt(2.0 * M_PI));
}

using Draw = std::vector<double>;

Draw draw_gauss(std::size_t count, double mean, double sigma, RandomStream& random) {
  Draw out(count);
  for (auto& x : out) x = mean + sigma * random.normal();
  return out;
}

/// A signal N(1, 0.4) over a background N(α/2, 1.5), whose mean is known by an auxiliary
/// measurement of α; the reference is N(0, 2). The exact densities are known for every α, and their
/// variations at ±1 give the model.
constexpr double signal_yield = 40.0, background_yield = 300.0;
double signal(double x) { return gauss(x, 1.0, 0.4); }
double background(double x, double alpha) { return gauss(x, 0.5 * alpha, 1.5); }
double reference(double x) { return gauss(x, 0.0, 2.0); }

std::shared_ptr<const UnbinnedEvents> shifted_events(const Draw& x) {
  auto out = std::make_shared<UnbinnedEvents>();
  out->ratios = Matrix(2, x.size());
  out->functions = Matrix(2, x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    out->ratios(0, i) = signal(x[i]) / reference(x[i]);
    out->ratios(1, i) = background(x[i], 0.0) / reference(x[i]);
    out->functions(0, i) = std::log(background(x[i], -1.0) / background(x[i], 0.0));
    out->functions(1, i) = std::log(background(x[i], 1.0) / background(x[i], 0.0));
  }
  return out;
}

Draw draw_shifted(double mu, double alpha, RandomStream& random) {
  auto x = draw_gauss(random.poisson(mu * signal_yield), 1.0, 0.4, random);
  const auto more = draw_gauss(random.poisson(background_yield), 0.5 * alpha, 1.5, random);
  x.insert(x.end(), more.begin(), more.end());
  return x;
}

UnbinnedChannel shifted_channel(const Draw& observed, std::size_t simulated,
                                bool normalise = true) {
  RandomStream random(1, "simulated");
  return {"events",
          {{"signal", signal_yield, {Modifier::norm_factor("mu")}},
           {"background",
            background_yield,
            {Modifier::norm_sys("size", 0.9, 1.1)},
            {variation("shift")}}},
          shifted_events(observed),
          shifted_events(draw_gauss(simulated, 0.0, 2.0, random)),
          normalise};
}

Workspace without_bins() { return {{}, {{"measurement", "mu", {{"mu", {1.0}, {{-3.0, 10.0}}}}}}}; }

StatisticalModel shifted_model(const Draw& observed, std::size_t simulated = 4000) {
  return StatisticalModel(without_bins(), {shifted_channel(observed, simulated)});
}

Draw some_data() {
  RandomStream random(2, "data");
  return draw_shifted(1.0, 0.0, random);
}

TEST(UnbinnedChannel, LikelihoodIsItsFormula) {
  const auto data = some_data();
  const auto model = shifted_model(data);
  const ModelLikelihood likelihood(model, model.observed());
  EXPECT_EQ(model.parameters().names(), (std::vector<std::string>{"mu", "size", "shift"}));
  EXPECT_EQ(likelihood.events(), data.size());
  // Σ log λ − ν, up to what does not depend on θ. For |α| ≥ 1 the shape is the variation at ±1
  // times |α|, and Z its mean over the simulated events.
  RandomStream random(1, "simulated");
  const auto simulated = shifted_events(draw_gauss(4000, 0.0, 2.0, random));
  const auto events = shifted_events(data);
  const auto shape = [](const UnbinnedEvents& of, std::size_t i, double alpha) {
    return of.ratios(1, i) *
           std::exp(alpha * (alpha > 0.0 ? of.functions(1, i) : -of.functions(0, i)));
  };
  const auto formula = [&](double mu, double size, double alpha) {
    double varied = 0.0, nominal = 0.0;  // the mean ratios: exact ones have 1
    for (std::size_t j = 0; j < simulated->size(); ++j) {
      varied += shape(*simulated, j, alpha) / 4000.0;
      nominal += simulated->ratios(0, j) / 4000.0;
    }
    const double s = mu * signal_yield, b = std::pow(1.1, size) * background_yield;
    double sum = -s - b - 0.5 * (size * size + alpha * alpha);
    for (std::size_t i = 0; i < data.size(); ++i)
      sum += std::log(s * events->ratios(0, i) / nominal + b * shape(*events, i, alpha) / varied);
    return sum;
  };
  const double base = likelihood(std::vector<double>{0.5, 0.0, 0.0}) - formula(0.5, 0.0, 0.0);
  for (const auto& [mu, size, alpha] : std::vector<std::array<double, 3>>{
           {1.5, 1.0, 0.0}, {0.0, 2.0, 0.0}, {0.5, 0.0, 1.0}, {0.7, 1.3, 2.2}, {0.7, 1.0, -1.4}})
    EXPECT_NEAR(likelihood(std::vector<double>{mu, size, alpha}) - formula(mu, size, alpha), base,
                1e-8);
  EXPECT_NEAR(model.expected_events(std::vector<double>{0.5, 1.0, 0.7})[0],
              0.5 * signal_yield + 1.1 * background_yield, 1e-9);
}

TEST(UnbinnedChannel, DerivativesEqualDifferences) {
  const auto model = shifted_model(some_data(), 500);
  for (const auto& point : std::vector<std::vector<double>>{
           {1.0, 0.0, 0.0}, {0.4, -0.7, 0.6}, {2.0, 1.5, -1.8}, {0.0, 0.3, 0.2}})
    testing::expect_derivatives(model, point);
}

TEST(UnbinnedChannel, ShapesStayNormalisedAndPositive) {
  const auto model = shifted_model(some_data());
  // Background alone: the weights of the Asimov data add up to the same at every α.
  const auto total = [&](double alpha) {
    const auto data = model.asimov(std::vector<double>{0.0, 0.0, alpha});
    for (const double weight : data.events[0]->weights) EXPECT_GT(weight, 0.0);
    return std::accumulate(data.events[0]->weights.begin(), data.events[0]->weights.end(), 0.0);
  };
  const double nominal = total(0.0);
  EXPECT_NEAR(nominal, background_yield, 1e-9 * background_yield);
  for (const double alpha : {-3.0, -1.0, -0.4, 0.7, 1.0, 2.5})
    EXPECT_NEAR(total(alpha), nominal, 1e-9 * nominal) << alpha;
}

TEST(UnbinnedChannel, FitsOfTheExactModelAreUnbiased) {
  // 200 datasets of the exact densities, with α drawn too: the mean of the pulls within 4.5
  // standard errors (false alarm 7e-6), and their spread within 4.5 of its own.
  const std::size_t count = 200;
  std::vector<double> pull(count);
  const StatisticalModel model(without_bins(), {shifted_channel(some_data(), 20000, false)});
  parallel_tasks(count, [&](std::size_t i) {
    RandomStream random(8, "repetition", i);
    auto data = model.observed();
    data.events = {shifted_events(draw_shifted(1.0, 0.0, random))};
    for (auto& auxiliary : data.auxiliary) auxiliary = random.normal();
    const auto best = fit_model(model, data);
    ASSERT_TRUE(best.ok()) << best.message;
    pull[i] = (best.point[0] - 1.0) / best.error(0);
  });
  EXPECT_NEAR(mean(pull), 0.0, 4.5 / std::sqrt(count));
  EXPECT_NEAR(standard_deviation(pull), 1.0, 4.5 / std::sqrt(2.0 * count));
}

TEST(UnbinnedChannel, IsMorePreciseThanTheSameEventsCounted) {
  const auto data = some_data();
  const auto unbinned = fit_model(shifted_model(data));
  ASSERT_TRUE(unbinned.ok());
  // One bin knows only the total: the error is that of the background's size, 30 of 40.
  auto workspace = testing::counting_workspace(signal_yield, background_yield,
                                               static_cast<double>(data.size()), -3.0);
  workspace.channels[0].samples[1].modifiers = {Modifier::norm_sys("size", 0.9, 1.1)};
  const auto counted = fit_model(StatisticalModel(workspace));
  EXPECT_LT(unbinned.error(0), 0.5 * counted.error(0));
}

TEST(UnbinnedChannel, IsFittedTogetherWithBins) {
  // A control region of 40 000 background events fixes the size of the background.
  auto workspace = without_bins();
  workspace.channels = {
      {"control", {{"background", {40000.0}, {Modifier::norm_sys("size", 0.9, 1.1)}}}, {40400.0}}};
  const auto channel = shifted_channel(some_data(), 2000);
  const StatisticalModel together(workspace, {channel}), alone(without_bins(), {channel});
  EXPECT_EQ(together.size(), alone.size());
  const auto both = fit_model(together), one = fit_model(alone);
  ASSERT_TRUE(both.ok() && one.ok());
  EXPECT_NEAR(std::pow(1.1, both.point[1]), 1.01, 0.02);
  EXPECT_LT(both.error(1), 0.1 * one.error(1));
  EXPECT_LT(both.error(0), one.error(0));
  // ℓ is the sum of both but for the constraints, which are there once.
  const ModelLikelihood sum(together, together.observed()), part(alone, alone.observed());
  const std::vector<double> point{0.8, 0.1, -0.3};
  const double nu = together.expected(point)[0];
  EXPECT_NEAR(sum(point), part(point) + 40400.0 * std::log(nu / 40400.0) - (nu - 40400.0), 1e-8);
}

TEST(UnbinnedChannel, ToysAndTheAsimovDataSetAgree) {
  const auto model = shifted_model(some_data(), 20000);
  const std::vector<double> truth{1.0, 0.0, 0.0};
  const auto asimov = fit_model(model, model.asimov(truth));
  ASSERT_TRUE(asimov.ok());
  for (std::size_t p = 0; p < 3; ++p) EXPECT_NEAR(asimov.point[p], truth[p], 1e-6);
  ToyOptions options;
  options.toys = 300;
  options.seed = 5;
  const auto draw = [&] { return toy_statistics(model, truth, TestStatistic::t, 1.0, options); };
  const auto toys = draw();
  EXPECT_EQ(toys.failed, 0u);
  // The spread of 300 toys within 5 standard errors, false alarm 6e-7.
  EXPECT_NEAR(standard_deviation(toys.estimates), asimov.error(0),
              5.0 * asimov.error(0) / std::sqrt(600.0));
  set_threads(1);
  EXPECT_EQ(draw().statistics, toys.statistics);
  set_threads(0);
  const auto limit = upper_limit(model, model.observed());
  EXPECT_GT(limit.observed, 0.0);
  EXPECT_NEAR(limit.expected[2], 1.96 * asimov.error(0), 0.35 * asimov.error(0));
}

/// |√μ S + B|² with S = a √φ_s and B = −b √φ_b, which interfere destructively. The components are
/// the signal, the sum of all at μ = 1, and the background.
struct Interference {
  double a = 8.0, b = 25.0;  // so that the amplitude has no zero
  static double phi_s(double x) { return gauss(x, 0.5, 0.8); }
  static double phi_b(double x) { return gauss(x, 0.0, 1.5); }
  double density(double x, double mu) const {
    const double amplitude = std::sqrt(mu * phi_s(x)) * a - b * std::sqrt(phi_b(x));
    return amplitude * amplitude;
  }
  double yield(double mu) const {
    // ∫√(φ_s φ_b) of two normal densities.
    const double variance = 0.8 * 0.8 + 1.5 * 1.5;
    const double overlap =
        std::sqrt(2.0 * 0.8 * 1.5 / variance) * std::exp(-0.25 * 0.25 / variance);
    return mu * a * a + b * b - 2.0 * std::sqrt(mu) * a * b * overlap;
  }
  std::shared_ptr<const UnbinnedEvents> events(const Draw& x) const {
    auto out = std::make_shared<UnbinnedEvents>();
    out->ratios = Matrix(3, x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      out->ratios(0, i) = phi_s(x[i]) / phi_b(x[i]);
      out->ratios(1, i) = density(x[i], 1.0) / yield(1.0) / phi_b(x[i]);
      out->ratios(2, i) = 1.0;
    }
    return out;
  }
  StatisticalModel model(const Draw& x) const {
    const Coefficient signal{{{1.0, {{"mu", 1.0}}}, {-1.0, {{"mu", 0.5}}}}};
    const Coefficient all{{{1.0, {{"mu", 0.5}}}}};
    const Coefficient none{{{1.0, {}}, {-1.0, {{"mu", 0.5}}}}};
    const Workspace workspace{{}, {{"measurement", "mu", {{"mu", {1.0}, {{0.01, 10.0}}}}}}};
    return StatisticalModel(workspace, {{"events",
                                         {{"signal", a * a, {}, {}, signal},
                                          {"all", yield(1.0), {}, {}, all},
                                          {"background", b * b, {}, {}, none}},
                                         events(x),
                                         nullptr}});
  }
  Draw draw(double mu, RandomStream& random) const {
    // By rejection from N(0, 1.5): the ratio of densities is at most (√μ a √(φ_s/φ_b) + b)².
    const double most = std::pow(std::sqrt(mu) * a * 1.5 + b, 2);
    Draw out;
    const std::size_t count = random.poisson(yield(mu));
    while (out.size() < count) {
      const double x = 1.5 * random.normal();
      if (random.uniform() * most < density(x, mu) / phi_b(x)) out.push_back(x);
    }
    return out;
  }
};

TEST(UnbinnedChannel, InterferenceIsItsAmplitudeSquared) {
  const Interference exact;
  const Draw x{-2.0, -0.5, 0.1, 0.9, 2.2};
  const auto model = exact.model(x);
  const ModelLikelihood likelihood(model, model.observed());
  const auto formula = [&](double mu) {
    double sum = -exact.yield(mu);
    for (const double event : x) sum += std::log(exact.density(event, mu));
    return sum;
  };
  for (const double mu : {0.05, 0.5, 2.0, 6.0}) {
    EXPECT_NEAR(model.expected_events(std::vector<double>{mu})[0], exact.yield(mu), 1e-9);
    EXPECT_NEAR(likelihood(std::vector<double>{mu}) - likelihood(std::vector<double>{1.0}),
                formula(mu) - formula(1.0), 1e-9)
        << mu;
    testing::expect_derivatives(model, {mu});
  }
}

TEST(UnbinnedChannel, FitsWithInterferenceAreUnbiased) {
  // 200 datasets; the mean of the pulls within 4.5 standard errors, false alarm 7e-6, and a tenth
  // for the curvature of √μ.
  const Interference exact;
  const double truth = 3.0;
  std::vector<double> pull(200);
  for (std::size_t i = 0; i < pull.size(); ++i) {
    RandomStream random(12, "repetition", i);
    const auto best = fit_model(exact.model(exact.draw(truth, random)));
    ASSERT_TRUE(best.ok()) << best.message;
    pull[i] = (best.point[0] - truth) / best.error(0);
  }
  EXPECT_NEAR(mean(pull), 0.0, 4.5 / std::sqrt(200.0) + 0.1);
  EXPECT_NEAR(standard_deviation(pull), 1.0, 4.5 / std::sqrt(400.0) + 0.1);
}

TEST(UnbinnedChannel, ComponentsMayHaveNegativeWeights) {
  // (1 + κ) N(0, 1) − κ N(0, 0.6), positive for κ = 0.4 everywhere. 200 datasets of 1500 events:
  // the mean of κ̂ within 4.5 standard errors of it, false alarm 7e-6.
  const double truth = 0.4;
  const auto events = [](const Draw& x) {
    auto out = std::make_shared<UnbinnedEvents>();
    out->ratios = Matrix(2, x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      out->ratios(0, i) = 1.0;
      out->ratios(1, i) = gauss(x[i], 0.0, 0.6) / gauss(x[i], 0.0, 1.0);
    }
    return out;
  };
  const Workspace workspace{{}, {{"measurement", "kappa", {{"kappa", {0.1}, {{-1.0, 3.0}}}}}}};
  std::vector<double> estimates, pull;
  for (std::size_t repetition = 0; repetition < 200; ++repetition) {
    RandomStream random(21, "negative", repetition);
    Draw x;
    const std::size_t count = random.poisson(1500.0);
    while (x.size() < count) {
      const double event = random.normal();
      const double weight = 1.0 + truth - truth * gauss(event, 0.0, 0.6) / gauss(event, 0.0, 1.0);
      if (random.uniform() * (1.0 + truth) < weight) x.push_back(event);
    }
    const Coefficient more{{{1.0, {}}, {1.0, {{"kappa", 1.0}}}}}, less{{{-1.0, {{"kappa", 1.0}}}}};
    const StatisticalModel model(
        workspace, {{"events",
                     {{"wide", 1500.0, {}, {}, more}, {"narrow", 1500.0, {}, {}, less}},
                     events(x),
                     nullptr}});
    const auto best = fit_model(model);
    ASSERT_TRUE(best.ok()) << best.message;
    estimates.push_back(best.point[0]);
    pull.push_back((best.point[0] - truth) / best.error(0));
  }
  EXPECT_NEAR(mean(estimates), truth, 4.5 * standard_deviation(estimates) / std::sqrt(200.0));
  EXPECT_NEAR(standard_deviation(pull), 1.0, 4.5 / std::sqrt(400.0));
}

std::string message(const std::function<void(UnbinnedChannel&, Workspace&)>& change) {
  auto channel = shifted_channel({1.0, 0.2, 0.3}, 10);
  auto workspace = without_bins();
  change(channel, workspace);
  return testing::refusal_of(workspace, channel);
}

TEST(UnbinnedChannel, WrongInputsAreRefused) {
  EXPECT_EQ(message([](auto&, auto&) {}), "nothing was thrown");
  EXPECT_EQ(message([](auto& channel, auto&) { channel.observed = nullptr; }),
            "StatisticalModel: channel 'events', observed is missing, but must be events");
  EXPECT_EQ(message([](auto& channel, auto&) { channel.simulated = nullptr; }),
            "StatisticalModel: channel 'events', simulated is missing, but must be events, which "
            "normalise the shapes");
  EXPECT_EQ(
      message([](auto& channel, auto&) { channel.components.pop_back(); }),
      "StatisticalModel: channel 'events', observed, ratios, rows has 2 values, but must have "
      "1 (one a component)");
  EXPECT_EQ(
      message([](auto& channel, auto&) {
        auto events = *channel.observed;
        events.functions = Matrix(2, 2);
        channel.observed = std::make_shared<UnbinnedEvents>(events);
      }),
      "StatisticalModel: channel 'events', observed, functions, columns has 2 values, but must "
      "have 3 (one an event)");
  EXPECT_EQ(message([](auto& channel, auto&) {
              auto events = *channel.observed;
              events.ratios(1, 2) = NAN;
              channel.observed = std::make_shared<UnbinnedEvents>(events);
            }).substr(0, 60),
            "StatisticalModel: channel 'events', observed, ratios[5] is n");
  EXPECT_EQ(message([](auto& channel, auto&) { channel.components[1].yield = -50.0; }),
            "StatisticalModel: the expected yield of channel 'events', at the start values is -10, "
            "but must be not negative");
  EXPECT_EQ(
      message([](auto& channel, auto&) {
        channel.components[0].modifiers = {Modifier::shape_factor("free")};
      }),
      "StatisticalModel: channel 'events', component 'signal', shapefactor 'free' is of bins, "
      "but must be normfactor, normsys or lumi where there are no bins");
  EXPECT_EQ(message([](auto&, auto& workspace) {
              workspace.measurements[0].parameters.push_back({"shade"});
            }),
            "StatisticalModel: settings of the measurement: 'shade' is not a parameter; candidates "
            "are mu, size, shift");
  // A total density that is negative for an event: wrong coefficients of components that interfere.
  EXPECT_EQ(
      message([](auto& channel, auto&) { channel.components[0].yield = -200.0; }).substr(0, 83),
      "StatisticalModel: the density of channel 'events', event 0, at the start values is ");
  const auto model = shifted_model({0.1, 0.2});
  auto data = model.observed();
  data.events.clear();
  EXPECT_THROW(fit_model(model, data), ArgumentError);
}

TEST(UnbinnedChannel, DataCannotBeMadeWithoutSimulatedEvents) {
  const Interference exact;
  const auto model = exact.model({0.1, 0.2});
  EXPECT_THROW(model.asimov(model.start()), ArgumentError);
  RandomStream random(1, "toy");
  EXPECT_THROW(model.sampled(model.start(), random), ArgumentError);
}

}  // namespace
}  // namespace neyman
