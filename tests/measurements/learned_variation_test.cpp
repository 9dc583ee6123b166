#include "neyman/measurements/learned_variation.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "measurements/held_out_evidence.hpp"
#include "neyman/classifiers/classifier.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/random.hpp"
#include "neyman/inference/statistics.hpp"
#include "neyman/measurements/learned_channel.hpp"

namespace neyman {
namespace {

using Events = LearnedVariation::Events;

/// Unit normals, the first at `place`. With signs, a part of the events has weight −1, more of them
/// where the first feature is large.
Samples normals(double place, std::size_t count, RandomStream& random, bool with_signs = false,
                std::size_t features = 2) {
  Samples out;
  for (std::size_t j = 0; j < features; ++j) out.feature_names.push_back(fmt::format("x{}", j));
  out.x = Matrix(count, features);
  out.weights.assign(count, 1.0);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < features; ++j) out.x(i, j) = random.normal();
    if (with_signs && random.uniform() < 0.3 / (1.0 + std::exp(-2.0 * out.x(i, 0))))
      out.weights[i] = -1.0;
    out.x(i, 0) += place;
  }
  return out;
}

/// The same events with other weights.
Samples reweighted(const Samples& events, const std::function<double(std::size_t)>& factor) {
  auto out = events;
  for (std::size_t i = 0; i < out.size(); ++i) out.weights[i] *= factor(i);
  return out;
}

LearnedChannel learn(Samples nominal, Samples low, Samples high, const char* classifier,
                     std::uint64_t seed = 7, std::size_t replicas = 0) {
  ComponentSamples component{"events", std::move(nominal)};
  component.variations.push_back({"a", std::move(low), std::move(high)});
  LearnedChannel::Config config;
  config.ratios.classifier = make_classifier(classifier);
  config.ratios.replicas = replicas;
  config.reference = "events";
  config.seed = seed;
  return {{component}, config};
}

Matrix some_normals(std::size_t features = 2) {
  RandomStream random(99, "some");
  return normals(0.0, 2000, random, false, features).x;
}

/// The slope of a learned function against the exact one, and their correlation.
struct Agreement {
  double slope, correlation;
  Agreement(std::span<const double> learned, const std::function<double(std::size_t)>& exact) {
    std::vector<double> truth;
    for (std::size_t i = 0; i < learned.size(); ++i) truth.push_back(exact(i));
    const double a = mean(truth), b = mean(learned);
    double ab = 0.0, aa = 0.0, bb = 0.0;
    for (std::size_t i = 0; i < learned.size(); ++i) {
      ab += (truth[i] - a) * (learned[i] - b);
      aa += (truth[i] - a) * (truth[i] - a);
      bb += (learned[i] - b) * (learned[i] - b);
    }
    slope = ab / aa;
    correlation = ab / std::sqrt(aa * bb);
  }
};

void expect_no_shape(const LearnedChannel& channel) {
  const auto events = channel.describe(some_normals(channel.feature_names().size()));
  for (const double value : events.functions.values()) ASSERT_EQ(value, 0.0);
  for (const double value : channel.simulated()->functions.values()) ASSERT_EQ(value, 0.0);
}

TEST(LearnedVariation, TheNominalEventsThemselvesHaveExactlyNoShape) {
  RandomStream random(1, "same");
  for (const bool with_signs : {false, true}) {
    const auto nominal = normals(0.0, 1000, random, with_signs);
    // The unit of weights plays no role.
    const auto channel =
        learn(nominal, nominal, reweighted(nominal, [](auto) { return 3.0; }), "logistic", 7, 2);
    const auto found = channel.variations();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].component, "events");
    EXPECT_EQ(found[0].parameter, "a");
    EXPECT_EQ(found[0].events, Events::nominal);
    EXPECT_TRUE(found[0].parts.empty());
    EXPECT_FALSE(found[0].kept());
    expect_no_shape(channel);
    const auto replica =
        channel.channel("events", {{"events", 100.0}}, some_normals(), std::size_t{1});
    for (const double value : replica.observed->functions.values()) ASSERT_EQ(value, 0.0);
  }
}

TEST(LearnedVariation, WeightsOfTheSameEventsAreLearnedWithoutTheirNoise) {
  // Of 3000 events, a slope that events of their own would not show: 0.02 is 0.8 standard errors.
  RandomStream random(2, "weights");
  const auto x = some_normals();
  for (const bool with_signs : {false, true}) {
    const auto nominal = normals(0.0, 3000, random, with_signs);
    const auto change = [&](double by) {
      return reweighted(nominal, [&, by](std::size_t i) { return std::exp(by * nominal.x(i, 0)); });
    };
    const auto channel = learn(nominal, change(-0.02), change(0.02), "logistic");
    const auto found = channel.variations()[0];
    EXPECT_EQ(found.events, Events::weighted);
    ASSERT_EQ(found.parts.size(), 2u);
    EXPECT_EQ(found.parts[0].name, "difference");
    EXPECT_GT(found.parts[0].significance, 8.0);
    EXPECT_NEAR(found.parts[0].strength, 1.0, 0.02);
    const auto functions = channel.describe(x).functions;
    for (const std::size_t side : {0, 1}) {
      const Agreement with(functions.row(side),
                           [&](std::size_t i) { return (side == 0 ? -0.02 : 0.02) * x(i, 0); });
      EXPECT_NEAR(with.slope, 1.0, 0.03);
      EXPECT_GT(with.correlation, 0.995);
    }
  }
}

TEST(LearnedVariation, WeightsOfOneSignAlone) {
  // Only events of negative weight change, by exp(0.1 x): p is N₊ p₊ − N₋ p₋ exp(0.1 x) over its
  // integral, and the share of negative events 0.3 / (1 + exp(−2 x)) at x.
  RandomStream random(3, "one sign");
  const auto nominal = normals(0.0, 20000, random, true);
  const auto high = reweighted(nominal, [&](std::size_t i) {
    return nominal.weight(i) < 0.0 ? std::exp(0.1 * nominal.x(i, 0)) : 1.0;
  });
  const auto channel = learn(nominal, nominal, high, "mlp");
  const auto found = channel.variations()[0];
  ASSERT_EQ(found.parts.size(), 1u);
  EXPECT_EQ(found.parts[0].name, "high");
  EXPECT_GT(found.parts[0].significance, 10.0);
  const auto x = some_normals();
  const auto functions = channel.describe(x).functions;
  for (const double value : functions.row(0)) ASSERT_EQ(value, 0.0);
  const Agreement with(functions.row(1), [&](std::size_t i) {
    const double negative = 0.3 / (1.0 + std::exp(-2.0 * x(i, 0)));
    return std::log((1.0 - negative - negative * std::exp(0.1 * x(i, 0))) / (1.0 - 2.0 * negative));
  });
  // As good as the mean sign, by which the change is divided, is learned at large x.
  EXPECT_NEAR(with.slope, 1.0, 0.2);
  EXPECT_GT(with.correlation, 0.98);
}

TEST(LearnedVariation, WeightsThatScatterAloneHaveNoShape) {
  RandomStream random(4, "scatter");
  const auto nominal = normals(0.0, 3000, random);
  const auto scattered = [&] {
    return reweighted(nominal, [&](std::size_t) { return std::exp(0.5 * random.normal()); });
  };
  const auto low = scattered(), high = scattered();
  const auto channel = learn(nominal, low, high, "mlp");
  EXPECT_EQ(channel.variations()[0].events, Events::weighted);
  EXPECT_FALSE(channel.variations()[0].kept());  // false alarm 2e-3
  expect_no_shape(channel);
}

TEST(LearnedVariation, FalseAlarmsAreRareAndSignificancesAreInStandardDeviations) {
  // Samples of their own that do nothing. Each part is kept by chance at most once in 1000: three
  // or more of 240 with a probability below 2e-3.
  std::vector<double> significances;
  std::size_t kept = 0;
  for (std::size_t s = 0; s < 120; ++s) {
    RandomStream random(5, "null", s);
    const bool with_signs = s % 2 == 1;
    const auto draw = [&] { return normals(0.0, 600, random, with_signs); };
    const auto nominal = draw(), low = draw(), high = draw();
    const auto channel = learn(nominal, low, high, "logistic", s);
    const auto found = channel.variations()[0];
    EXPECT_EQ(found.events, Events::own);
    for (const auto& part : found.parts) {
      significances.push_back(part.significance);
      kept += part.strength > 0.0 ? 1 : 0;
    }
    if (!found.kept()) expect_no_shape(channel);
  }
  EXPECT_LE(kept, 2u);
  // The mean and the spread within 4.5 standard errors (false alarm 1e-5): the √2 is right.
  EXPECT_LT(mean(significances), 4.5 / std::sqrt(240.0));
  EXPECT_GT(mean(significances), -1.0);
  EXPECT_LT(standard_deviation(significances), 1.0 + 4.5 / std::sqrt(480.0));
}

TEST(LearnedVariation, NoShapeOfANetworkOnSamplesOfTheirOwn) {
  RandomStream random(6, "null of a network");
  const auto nominal = normals(0.0, 5000, random, true, 4),
             low = normals(0.0, 5000, random, true, 4), high = normals(0.0, 5000, random, true, 4);
  const auto channel = learn(nominal, low, high, "mlp");
  EXPECT_FALSE(channel.variations()[0].kept());  // false alarm 2e-3
}

TEST(LearnedVariation, ShapesThatAreThereAreKeptWithTheirStrength) {
  // Shifts by 0.1 and 0.3 of twelve features' first. Samples of 15 000 know the slope to 0.058 and
  // 0.019; the tolerances are 3.5 of that (false alarm 1e-3 together) and 0.05 for the shape.
  const auto x = some_normals(12);
  for (const double shift : {0.1, 0.3}) {
    RandomStream random(7, "real");
    const auto draw = [&](double place) { return normals(place, 15000, random, false, 12); };
    const auto nominal = draw(0.0), low = draw(-shift), high = draw(shift);
    const auto channel = learn(nominal, low, high, "mlp");
    const auto found = channel.variations()[0];
    EXPECT_GT(found.parts[0].significance, shift < 0.2 ? 8.0 : 25.0);
    EXPECT_EQ(found.parts[1].strength, 0.0);  // both sides are equally far: false alarm 1e-3
    const auto functions = channel.describe(x).functions;
    const double error = 1.0 / (shift * std::sqrt(2.0 * 15000.0));
    for (const std::size_t side : {0, 1}) {
      const Agreement with(functions.row(side),
                           [&](std::size_t i) { return (side == 0 ? -shift : shift) * x(i, 0); });
      EXPECT_NEAR(with.slope, 1.0, 3.5 * error + 0.05) << shift;
      EXPECT_GT(with.correlation, 0.96) << shift;
    }
    // Simulated events, which one fold describes, move as much as those of data, which all do.
    const auto& pool = channel.simulated()->functions;
    EXPECT_NEAR(standard_deviation(pool.row(1)) / standard_deviation(functions.row(1)), 1.0, 0.06);
  }
}

TEST(LearnedVariation, ShiftedEventsAreRecognisedRowByRow) {
  // Samples of their own would need 100 times as many events to show this.
  RandomStream random(8, "shifted");
  const auto nominal = normals(0.0, 3000, random);
  auto low = nominal, high = nominal;
  for (std::size_t i = 0; i < nominal.size(); ++i) low.x(i, 0) -= 0.01, high.x(i, 0) += 0.01;
  const auto channel = learn(nominal, low, high, "logistic");
  EXPECT_GT(channel.variations()[0].parts[0].significance, 10.0);
  const auto x = some_normals();
  EXPECT_GT(
      Agreement(channel.describe(x).functions.row(1), [&](std::size_t i) { return 0.01 * x(i, 0); })
          .correlation,
      0.9);
}

TEST(LearnedVariation, SortedSamplesOfTheirOwnAreNotTakenForTheSameEvents) {
  std::size_t kept = 0;
  for (std::size_t s = 0; s < 10; ++s) {
    RandomStream random(9, "sorted", s);
    const auto draw = [&] {
      auto out = normals(0.0, 500, random, false, 1);
      std::sort(out.x.values().begin(), out.x.values().end());
      return out;
    };
    const auto nominal = draw(), low = draw(), high = draw();
    kept += learn(nominal, low, high, "logistic", s).variations()[0].kept() ? 1 : 0;
  }
  EXPECT_LE(kept, 1u);  // two or more with a probability below 2e-4
}

TEST(LearnedVariation, ReplicasCarryWhatIsLeft) {
  RandomStream random(10, "replicas");
  const auto draw = [&](double place) { return normals(place, 2000, random); };
  const auto nominal = draw(0.0), low = draw(-0.3), high = draw(0.3);
  const auto channel = learn(nominal, low, high, "logistic", 7, 5);
  const auto x = some_normals();
  const auto mean_functions = channel.describe(x).functions;
  for (std::size_t b = 0; b < 5; ++b) {
    const auto replica = channel.channel("events", {{"events", 100.0}}, x, b);
    const auto& functions = replica.observed->functions;
    EXPECT_NE(functions, mean_functions);
    // Both sides are one part, and stay so.
    for (std::size_t i = 0; i < x.rows(); ++i)
      ASSERT_NEAR(functions(0, i), -functions(1, i), 1e-12);
    EXPECT_NEAR(
        Agreement(functions.row(1), [&](std::size_t i) { return mean_functions(1, i); }).slope, 1.0,
        0.5);
  }
}

TEST(LearnedVariation, IsSavedAndOlderModelsKeepAllThatTheyLearned) {
  RandomStream random(11, "saved");
  const auto nominal = normals(0.0, 2000, random, true);
  const auto weighted =
      reweighted(nominal, [&](std::size_t i) { return std::exp(0.1 * nominal.x(i, 1)); });
  const auto channel = learn(nominal, weighted, normals(0.4, 2000, random, true), "logistic", 7, 2);
  Archive archive;
  channel.save(archive);
  const LearnedChannel loaded(archive);
  EXPECT_EQ(loaded.variations(), channel.variations());
  const auto x = some_normals();
  EXPECT_EQ(loaded.describe(x).functions, channel.describe(x).functions);
  EXPECT_EQ(loaded.channel("events", {{"events", 1.0}}, x, 1).observed->functions,
            channel.channel("events", {{"events", 1.0}}, x, 1).observed->functions);

  // An older model has the ratio of |w| of each side, a sign of its own, and no evidence.
  const auto& fit = archive.child("component0").child("high0").child("positive").child("fit");
  CrossFit ratio;
  ratio.load(fit);
  Archive old;
  old.set("features", std::vector<std::string>{"x0", "x1"});
  old.set("components", std::vector<std::string>{"events"});
  old.set("replicas", std::size_t{2});
  for (const char* key : {"pool", "ratios", "functions"}) old.set(key, archive.get<Matrix>(key));
  old.set("weights", archive.numbers("weights"));
  auto& component = old.child("component0");
  component.set("varied", std::vector<std::string>{"a"});
  component.set("members", std::size_t{0});
  ratio.save(component.child("low0").child("fit"));
  ratio.save(component.child("high0").child("fit"));
  const LearnedChannel older(old);
  const auto found = older.variations()[0];
  EXPECT_TRUE(found.kept());
  for (const auto& part : found.parts) EXPECT_TRUE(std::isnan(part.significance));
  const auto expected = ratio.log_ratios(ratio.scores(x));
  const auto functions = older.describe(x).functions;
  for (std::size_t i = 0; i < x.rows(); ++i) {
    ASSERT_DOUBLE_EQ(functions(0, i), expected[i]);
    ASSERT_DOUBLE_EQ(functions(1, i), expected[i]);
  }
  component.set("parts0", std::vector<std::string>{"low", "high"});
  component.set("events0", "own");
  for (const char* key : {"significances0", "strengths0", "held_out0"})
    component.set(key, std::vector<double>{1.0});
  EXPECT_THROW(LearnedChannel{old}, FileError);
}

TEST(HeldOutEvidence, FindsTheStrengthThatIsRight) {
  // N(0.5, 1) against N(−0.5, 1): log r = x.
  RandomStream random(12, "strength");
  constexpr std::size_t count = 40000;
  for (const double factor : {0.5, 1.0, 2.0}) {
    detail::Comparison comparison;
    comparison.denominator.rows = 1;
    for (auto* side : {&comparison.numerator, &comparison.denominator}) {
      const double place = side == &comparison.numerator ? 0.5 : -0.5;
      side->weights.assign(count, 1.0);
      for (std::size_t i = 0; i < count; ++i)
        side->direction.push_back((place + random.normal()) / factor);
    }
    // Known to 0.0078; 4.5 standard errors, false alarm 7e-6.
    EXPECT_NEAR(detail::best_strength({comparison}), factor, 0.036 * factor);
    EXPECT_GT(detail::significance({comparison}), 50.0);
    EXPECT_GT(detail::gain({comparison}, factor), detail::gain({comparison}, 0.7 * factor));
    for (auto* side : {&comparison.numerator, &comparison.denominator})
      for (double& value : side->direction) value = -value;
    EXPECT_EQ(detail::best_strength({comparison}), 0.0);
    EXPECT_LT(detail::significance({comparison}), -50.0);
  }
}

TEST(HeldOutEvidence, WhatCancelsRowByRowIsNoEvidence) {
  RandomStream random(13, "cancels");
  detail::Comparison comparison;
  for (auto* side : {&comparison.numerator, &comparison.denominator})
    side->weights.assign(100, 1.0);
  for (std::size_t i = 0; i < 100; ++i) comparison.numerator.direction.push_back(random.normal());
  comparison.denominator.direction = comparison.numerator.direction;
  EXPECT_EQ(detail::significance({comparison}), 0.0);
}

}  // namespace
}  // namespace neyman
