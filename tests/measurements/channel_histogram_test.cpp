#include "neyman/measurements/channel_histogram.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "known_models.hpp"
#include "neyman/core/error.hpp"
#include "neyman/measurements/model_fit.hpp"

namespace neyman {
namespace {

using testing::counting_workspace;
using testing::reference_model;
using testing::reference_names;

TEST(ChannelHistograms, ACountIsItsOwnEstimateWithItsPoissonError) {
  // μ̂ s + b = n, and the error of μ̂ s is √n.
  const StatisticalModel model(counting_workspace(4.0, 10.0, 25.0));
  const auto found = channel_histograms(model, model.observed(), fit_model(model));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].channel, "bin");
  EXPECT_EQ(found[0].samples, (std::vector<std::string>{"signal", "background"}));
  EXPECT_EQ(found[0].edges, (std::vector<double>{0.0, 1.0}));
  EXPECT_EQ(found[0].observed, (std::vector<double>{25.0}));
  EXPECT_NEAR(found[0].after.total[0], 25.0, 1e-6);
  EXPECT_NEAR(found[0].after.error[0], 5.0, 1e-6);
  EXPECT_NEAR(found[0].after.parts(0, 0), 15.0, 1e-6);
  // Before the fit μ is 1, and a free parameter has no error.
  EXPECT_EQ(found[0].before.total[0], 14.0);
  EXPECT_EQ(found[0].before.error[0], 0.0);
}

TEST(ChannelHistograms, CorrelationsCancelWhatTwoFreeSizesCannotKnowApart) {
  // Two samples of free size in two bins fit any two counts: the sum of both is known as well as
  // the counts are, though each size is known much worse.
  Workspace workspace;
  workspace.channels = {{"two",
                         {{"a", {10.0, 9.0}, {Modifier::norm_factor("mu")}},
                          {"b", {9.0, 10.0}, {Modifier::norm_factor("kappa")}}},
                         {100.0, 105.0}}};
  workspace.measurements = {
      {"m", "mu", {{"mu", {1.0}, {{-50.0, 50.0}}}, {"kappa", {1.0}, {{-50.0, 50.0}}}}}};
  const StatisticalModel model(workspace);
  const auto best = fit_model(model);
  const auto found = channel_histograms(model, model.observed(), best);
  EXPECT_NEAR(found[0].after.total[0], 100.0, 1e-5);
  EXPECT_NEAR(found[0].after.error[0], 10.0, 1e-5);
  EXPECT_NEAR(found[0].after.error[1], std::sqrt(105.0), 1e-5);
  EXPECT_GT(10.0 * best.error(0), 40.0);
}

TEST(ChannelHistograms, ConstraintsAddInQuadratureBeforeTheFit) {
  Workspace workspace = counting_workspace(4.0, 100.0, 108.0);
  workspace.channels[0].samples[1].modifiers = {Modifier::norm_sys("size", 0.85, 1.2),
                                                Modifier::histo_sys("shape", {92.0}, {104.0}),
                                                Modifier::shape_sys("gamma", {5.0})};
  const StatisticalModel model(workspace);
  auto data = model.observed();
  const auto before = channel_histograms(model, data, fit_model(model))[0].before;
  EXPECT_EQ(before.total[0], 104.0);
  // Half of what ±1σ changes: 17.5, 6, and 5 events.
  EXPECT_NEAR(before.error[0], std::sqrt(17.5 * 17.5 + 36.0 + 25.0), 1e-9);
  // Another auxiliary observation moves the expectation: size = 1 means × 1.2.
  for (std::size_t k = 0; k < model.constraints().size(); ++k)
    if (model.parameters()[model.constraints()[k].parameter()].name == "size")
      data.auxiliary[k] = 1.0;
  EXPECT_NEAR(channel_histograms(model, data, fit_model(model, data))[0].before.total[0], 124.0,
              1e-9);
}

TEST(ChannelHistograms, AreThoseOfTheModelChannelByChannel) {
  for (const auto* name : reference_names) {
    const auto model = reference_model(name);
    const auto best = fit_model(model);
    const auto expected = model.expected(best.point);
    std::size_t bin = 0;
    for (const auto& histogram : channel_histograms(model, model.observed(), best)) {
      ASSERT_EQ(histogram.after.parts.rows(), histogram.samples.size());
      for (std::size_t b = 0; b < histogram.observed.size(); ++b, ++bin) {
        EXPECT_EQ(model.bin_name(bin).channel, histogram.channel) << name;
        EXPECT_EQ(histogram.observed[b], model.observed().counts[bin]);
        EXPECT_NEAR(histogram.after.total[b], expected[bin], 1e-12 * expected[bin]);
        // What the data have constrained is known about as well as the counts say, or better.
        EXPECT_GE(histogram.after.error[b], 0.0);
        EXPECT_LT(histogram.after.error[b], 1.5 * std::sqrt(expected[bin] + 1.0));
      }
    }
    EXPECT_EQ(bin, model.bins());
  }
}

TEST(ChannelHistograms, RefuseAFitThatFailed) {
  const StatisticalModel model(counting_workspace(4.0, 10.0, 25.0));
  Fit failed = fit_model(model);
  failed.status = FitStatus::failed;
  EXPECT_THROW(channel_histograms(model, model.observed(), failed), ArgumentError);
}

/// Events of a signal at 1 and a background at 0, in one feature with two values.
struct TwoValues {
  std::vector<double> observed, simulated;
  StatisticalModel model;
  Fit best;

  static std::shared_ptr<UnbinnedEvents> describe(const std::vector<double>& x) {
    auto out = std::make_shared<UnbinnedEvents>();
    out->ratios = Matrix(2, x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      out->ratios(0, i) = x[i] == 1.0 ? 1.6 : 0.4;  // against half and half
      out->ratios(1, i) = x[i] == 1.0 ? 0.5 : 1.5;
    }
    return out;
  }
  static StatisticalModel make(const std::vector<double>& observed,
                               const std::vector<double>& simulated) {
    UnbinnedChannel channel;
    channel.name = "events";
    channel.components = {{"signal", 40.0, {Modifier::norm_factor("mu")}},
                          {"background", 100.0, {Modifier::norm_sys("size", 0.9, 1.1)}}};
    channel.observed = describe(observed);
    channel.simulated = describe(simulated);
    return StatisticalModel({{}, {{"m", "mu"}}}, {channel});
  }
  TwoValues()
      : observed(130, 0.0),
        simulated(2000, 0.0),
        model(make(set(observed, 60), set(simulated, 1000))),
        best(fit_model(model)) {}
  static const std::vector<double>& set(std::vector<double>& x, std::size_t ones) {
    std::fill_n(x.begin(), ones, 1.0);
    return x;
  }
  FeatureEvents events() const {
    FeatureEvents out;
    out.channel = "events";
    out.feature = "x";
    out.edges = {-0.5, 0.5, 1.5};
    out.observed = observed;
    out.simulated = simulated;
    return out;
  }
};

TEST(FeatureHistogram, WeighsSimulatedEventsByTheModel) {
  const TwoValues two;
  ASSERT_TRUE(two.best.ok());
  const auto found = feature_histogram(two.model, two.model.observed(), two.best, two.events());
  EXPECT_EQ(found.feature, "x");
  EXPECT_EQ(found.observed, (std::vector<double>{70.0, 60.0}));
  // Before: 40 signal events, of which 0.8 at 1, and 100 of the background, of which 0.25.
  EXPECT_NEAR(found.before.total[0], 40.0 * 0.2 + 100.0 * 0.75, 1e-9);
  EXPECT_NEAR(found.before.total[1], 40.0 * 0.8 + 100.0 * 0.25, 1e-9);
  // ± 10 % of the background.
  EXPECT_NEAR(found.before.error[0], 7.5, 1e-9);
  const double mu = two.best.point[0];
  const auto sum = two.model.expected_events(two.best.point)[0];
  EXPECT_NEAR(found.after.total[0] + found.after.total[1], sum, 1e-9 * sum);
  EXPECT_GT(found.after.total[1], mu * 32.0);
}

TEST(FeatureHistogram, TakesComponentsWhereTheyAreGiven) {
  const TwoValues two;
  auto events = two.events();
  events.components = {"signal", "background"};
  events.expected = [&](std::span<const double> point) {
    Matrix out(2, two.simulated.size());
    for (std::size_t i = 0; i < two.simulated.size(); ++i) {
      out(0, i) = point[0] * 40.0 * (two.simulated[i] == 1.0 ? 0.8 : 0.2) / 1000.0;
      out(1, i) = 100.0 * (two.simulated[i] == 1.0 ? 0.25 : 0.75) / 1000.0;
    }
    return out;
  };
  const auto found = feature_histogram(two.model, two.model.observed(), two.best, events);
  EXPECT_EQ(found.samples, events.components);
  EXPECT_NEAR(found.before.parts(0, 1), 32.0, 1e-9);
  EXPECT_NEAR(found.after.parts(0, 0), two.best.point[0] * 8.0, 1e-9);
}

TEST(FeatureHistogram, EventsOutsideOfTheEdgesAreLeftOutAndWeightsCount) {
  const TwoValues two;
  auto events = two.events();
  events.edges = {0.5, 1.0};  // the last edge belongs to the last bin
  events.weights.assign(events.observed.size(), 0.5);
  const auto found = feature_histogram(two.model, two.model.observed(), two.best, events);
  EXPECT_EQ(found.observed, (std::vector<double>{30.0}));
  EXPECT_NEAR(found.before.total[0], 57.0, 1e-9);
}

TEST(FeatureHistogram, RefusesWhatDoesNotFit) {
  const TwoValues two;
  const auto fails = [&](auto change, const std::string& words) {
    auto events = two.events();
    change(events);
    try {
      feature_histogram(two.model, two.model.observed(), two.best, events);
      ADD_FAILURE() << words;
    } catch (const ArgumentError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  fails([](auto& e) { e.channel = "other"; }, "'other' is not a channel without bins");
  fails([](auto& e) { e.simulated.pop_back(); }, "simulated");
  fails([](auto& e) { e.edges = {0.0, 1.0, 1.0}; }, "edges[2] is 1, but must be above");
  fails([](auto& e) { e.observed[3] = NAN; }, "observed");
  fails([](auto& e) { e.weights = {1.0}; }, "weights");
  fails([](auto& e) { e.expected = [](auto) { return Matrix(1, 3); }; }, "rows of expected");
}

/// Columns as a table.
Matrix table_of(const std::vector<std::vector<double>>& columns) {
  Matrix out(columns[0].size(), columns.size());
  for (std::size_t c = 0; c < columns.size(); ++c)
    for (std::size_t i = 0; i < out.rows(); ++i) out(i, c) = columns[c][i];
  return out;
}

/// A feature that says nothing: the events spread evenly over [0, 100), whatever they are.
std::vector<double> spread_evenly(std::size_t count) {
  std::vector<double> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = std::fmod(61.803398875 * double(i), 100.0);
  return out;
}

TEST(FeatureHistograms, AreThoseOfEachComponent) {
  const TwoValues two;
  const auto other = spread_evenly(two.observed.size());
  const Matrix observed = table_of({two.observed, other}),
               simulated = table_of({two.simulated, spread_evenly(two.simulated.size())});
  const std::vector<double> weights(observed.rows(), 0.5);
  const auto found = feature_histograms(two.model, two.model.observed(), two.best,
                                        {"events", {"x", "y"}, observed, weights, simulated});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].feature, "x");
  EXPECT_EQ(found[0].samples, (std::vector<std::string>{"signal", "background"}));
  // Two values: a bin each.
  EXPECT_EQ(found[0].edges, (std::vector<double>{-0.5, 0.5, 1.5}));
  EXPECT_EQ(found[0].observed, (std::vector<double>{35.0, 30.0}));
  EXPECT_NEAR(found[0].before.parts(0, 1), 32.0, 1e-9);
  EXPECT_NEAR(found[0].before.parts(1, 1), 25.0, 1e-9);
  EXPECT_NEAR(found[0].before.error[0], 7.5, 1e-9);
  // The totals and bands are those of the model's own weights.
  const auto sums = feature_histogram(two.model, two.model.observed(), two.best, two.events());
  for (const std::size_t b : {0, 1}) {
    EXPECT_NEAR(found[0].after.total[b], sums.after.total[b], 1e-9);
    EXPECT_NEAR(found[0].after.error[b], sums.after.error[b], 1e-9);
  }
  // Many values: equal bins over 99 % of them.
  EXPECT_EQ(found[1].edges.size(), 11u);
  EXPECT_NEAR(found[1].edges.front(), 0.5, 0.3);
  EXPECT_NEAR(found[1].edges.back(), 99.5, 0.3);
  double inside = 0.0;
  for (const double total : found[1].before.total) inside += total;
  EXPECT_NEAR(inside, 0.99 * 140.0, 0.5);
}

TEST(FeatureHistograms, ReachAsFarAsTheData) {
  const TwoValues two;
  auto far = spread_evenly(two.observed.size());
  for (std::size_t i = 0; i < 20; ++i) far[i] = 150.0 + static_cast<double>(i);
  const Matrix observed = table_of({far}),
               simulated = table_of({spread_evenly(two.simulated.size())});
  const auto found = feature_histograms(two.model, two.model.observed(), two.best,
                                        {"events", {"y"}, observed, {}, simulated});
  EXPECT_EQ(found[0].edges.back(), 169.0);
  EXPECT_EQ(found[0].observed.back(), 17.0);  // from 152.2 on
  EXPECT_EQ(found[0].after.total.back(), 0.0);
}

TEST(FeatureHistograms, FeaturesThatSeparateBestAreTakenInTheirOrder) {
  const TwoValues two;
  auto blurred = [](const std::vector<double>& x) {
    auto out = spread_evenly(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) out[i] += 40.0 * x[i];
    return out;
  };
  const std::vector<double> same(two.observed.size(), 3.0), always(two.simulated.size(), 3.0);
  const Matrix observed = table_of(
                   {same, blurred(two.observed), spread_evenly(two.observed.size()), two.observed}),
               simulated = table_of({always, blurred(two.simulated),
                                     spread_evenly(two.simulated.size()), two.simulated});
  const FeatureTable table{"events", {"same", "blurred", "even", "x"}, observed, {}, simulated};
  const auto some = feature_histograms(two.model, two.model.observed(), two.best, table, 2);
  ASSERT_EQ(some.size(), 2u);
  EXPECT_EQ(some[0].feature, "blurred");
  EXPECT_EQ(some[1].feature, "x");
  // The same numbers whichever others are shown.
  const auto all = feature_histograms(two.model, two.model.observed(), two.best, table);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].edges, (std::vector<double>{2.5, 3.5}));
  EXPECT_EQ(all[1].after.parts, some[0].after.parts);
  EXPECT_EQ(all[3].after.error, some[1].after.error);
}

TEST(FeatureHistograms, RefuseWhatDoesNotFit) {
  const TwoValues two;
  const Matrix observed = table_of({two.observed}), simulated = table_of({two.simulated});
  const auto fails = [&](auto change, const std::string& words) {
    FeatureTable table{"events", {"x"}, observed, {}, simulated};
    change(table);
    try {
      feature_histograms(two.model, two.model.observed(), two.best, table);
      ADD_FAILURE() << words;
    } catch (const ArgumentError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  Matrix unknown = observed;
  unknown(2, 0) = NAN;
  const std::vector<double> one{1.0};
  fails([](auto& t) { t.channel = "other"; }, "'other' is not a channel without bins");
  fails([](auto& t) { t.names = {"x", "y"}; }, "columns of simulated");
  fails([&](auto& t) { t.simulated = observed; }, "rows of simulated");
  fails([&](auto& t) { t.observed = unknown; }, "observed");
  fails([&](auto& t) { t.weights = one; }, "weights");
}

}  // namespace
}  // namespace neyman
