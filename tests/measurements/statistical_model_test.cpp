#include "neyman/measurements/statistical_model.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "known_models.hpp"
#include "neyman/core/error.hpp"

namespace neyman {
namespace {

using testing::by_parameter;
using testing::counting_workspace;
using testing::on_off_workspace;
using testing::reference_answers;
using testing::reference_model;
using testing::reference_names;

template <class Change>
std::string message(Workspace workspace, Change&& change) {
  change(workspace);
  try {
    StatisticalModel model(workspace);
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// Two bins with everything that changes a sample.
Workspace small_workspace() {
  return {{{"region",
            {{"signal", {8.0, 14.0}, {Modifier::norm_factor("mu")}},
             {"background",
              {60.0, 48.0},
              {Modifier::norm_sys("size", 0.9, 1.2),
               Modifier::histo_sys("shape", {56.0, 50.0}, {63.0, 44.0}),
               Modifier::shape_sys("bins", {6.0, 0.0})}}},
            {74.0, 77.0}}},
          {{"measurement", "mu"}}};
}

TEST(StatisticalModel, ParametersComeFromModifiers) {
  const StatisticalModel model(small_workspace());
  EXPECT_EQ(model.parameters().names(),
            (std::vector<std::string>{"mu", "size", "shape", "bins[0]"}));
  EXPECT_EQ(model.interest(), 0u);
  EXPECT_FALSE(model.parameters()[0].nuisance);
  EXPECT_TRUE(model.parameters()[1].nuisance);
  EXPECT_EQ(model.start(), (std::vector<double>{1.0, 0.0, 0.0, 1.0}));
  EXPECT_EQ(model.parameters()[1].low, -5.0);
  ASSERT_EQ(model.constraints().size(), 3u);
  EXPECT_EQ(model.constraint_of(0), std::nullopt);
  EXPECT_EQ(model.constraint_of(3), 2u);
  EXPECT_EQ(model.constraints()[2].kind(), Constraint::Kind::poisson);
  EXPECT_NEAR(model.constraints()[2].width(), 100.0, 1e-12);
  EXPECT_NEAR(model.observed().auxiliary[2], 100.0, 1e-12);
  EXPECT_EQ(model.bin_name(1).channel, "region");
  EXPECT_EQ(model.bin_name(1).bin, 1u);
}

TEST(StatisticalModel, YieldsFollowTheirFormulas) {
  const StatisticalModel model(small_workspace());
  const std::vector<double> point{0.5, -1.7, 1.4, 0.8};
  const auto yields = model.expected(point);
  const double size = std::pow(0.9, 1.7);
  EXPECT_NEAR(yields[0], 0.5 * 8.0 + size * 0.8 * (60.0 + 1.4 * 3.0), 1e-12);
  EXPECT_NEAR(yields[1], 0.5 * 14.0 + size * (48.0 - 1.4 * 4.0), 1e-12);
  const auto parts = model.expected_by_sample(point);
  EXPECT_EQ(model.sample_names(), (std::vector<std::string>{"signal", "background"}));
  EXPECT_NEAR(parts(0, 1), 7.0, 1e-14);
  EXPECT_NEAR(parts(0, 0) + parts(1, 0), yields[0], 1e-12);
}

TEST(StatisticalModel, StatErrorsAddTheSamplesOfAChannel) {
  const auto model = reference_model("finite_simulation");
  const auto index = model.parameters().index("mc_tagged[1]");
  const auto& constraint = model.constraints()[*model.constraint_of(index)];
  EXPECT_NEAR(constraint.width(), std::hypot(0.9, 2.2) / 35.0, 1e-14);
  EXPECT_EQ(constraint.observed(), 1.0);
  // The shape of the multijets is one for both channels.
  EXPECT_TRUE(model.parameters().find("multijet_shape[2]"));
  EXPECT_FALSE(model.parameters().find("multijet_shape[3]"));
}

TEST(StatisticalModel, LikelihoodDiffersAsThatOfPyhf) {
  for (const auto* name : reference_names) {
    const auto model = reference_model(name);
    const auto answers = reference_answers(name);
    const ModelLikelihood likelihood(model, model.observed());
    const auto best = by_parameter(model, answers["fit"]["values"]);
    const auto other = by_parameter(model, answers["twice_nll_at"]["point"]);
    const double expected =
        answers["twice_nll_at"]["value"].get<double>() - answers["twice_nll"].get<double>();
    EXPECT_NEAR(2.0 * (likelihood(best) - likelihood(other)), expected, 1e-8) << name;
  }
}

TEST(StatisticalModel, AsimovDataAreBestAtTheirPoint) {
  for (const auto* name : reference_names) {
    const auto model = reference_model(name);
    auto point = model.start();
    for (std::size_t p = 0; p < point.size(); ++p)
      if (!model.fixed()[p]) point[p] += 0.1;
    const ModelLikelihood likelihood(model, model.asimov(point));
    std::vector<double> gradient(model.size());
    EXPECT_NEAR(likelihood(point, gradient), 0.0, 1e-10) << name;
    for (const double slope : gradient) EXPECT_NEAR(slope, 0.0, 1e-9) << name;
  }
}

TEST(StatisticalModel, SampledDataFluctuateWithTheirAuxiliaryObservations) {
  // Means over 4000 datasets, each within 5 standard errors: false alarm 6e-7 for each of 5
  // numbers.
  const StatisticalModel model(small_workspace());
  const std::vector<double> point{0.5, 0.7, -0.4, 1.1};
  const auto expected = model.asimov(point);
  const std::size_t count = 4000;
  std::vector<double> sums(5, 0.0), squares(5, 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    RandomStream random(3, "test", i);
    const auto data = model.sampled(point, random);
    for (std::size_t k = 0; k < 5; ++k) {
      const double value = k < 2 ? data.counts[k] : data.auxiliary[k - 2];
      sums[k] += value / count;
      squares[k] += value * value / count;
    }
  }
  for (std::size_t k = 0; k < 5; ++k) {
    const double mean = k < 2 ? expected.counts[k] : expected.auxiliary[k - 2];
    const double variance = k < 2 || k == 4 ? mean : 1.0;  // Poisson, or unit Gaussian
    EXPECT_NEAR(sums[k], mean, 5.0 * std::sqrt(variance / count)) << k;
    EXPECT_NEAR((squares[k] - sums[k] * sums[k]) / variance, 1.0, 0.12) << k;
  }
}

TEST(StatisticalModel, WrongNumbersAreRefusedWithTheirPlace) {
  EXPECT_EQ(message(small_workspace(), [](auto& w) { w.channels[0].observed.pop_back(); }),
            "StatisticalModel: channel 'region', observed has 1 values, but must have 2 (one a bin "
            "of the channel)");
  EXPECT_EQ(message(small_workspace(), [](auto& w) { w.channels[0].samples[1].yields = {60.0}; }),
            "StatisticalModel: channel 'region', sample 'background' has 1 values, but must have 2 "
            "(one a bin of the channel)");
  EXPECT_EQ(message(small_workspace(),
                    [](auto& w) { w.channels[0].samples[1].modifiers[1].high.push_back(1.0); }),
            "StatisticalModel: channel 'region', sample 'background', histosys 'shape', high has 3 "
            "values, but must have 2 (one a bin of the channel)");
  EXPECT_EQ(message(small_workspace(),
                    [](auto& w) {
                      w.channels[0].samples[1].modifiers[1].high = {0.0, 0.0};
                    }),
            "StatisticalModel: channel 'region', sample 'background', histosys 'shape', high is "
            "without events, but must be a variation of the 108 of the sample");
  EXPECT_EQ(
      message(small_workspace(),
              [](auto& w) { w.channels[0].samples[1].modifiers[0].low = {0.0}; }),
      "StatisticalModel: channel 'region', sample 'background', normsys 'size', low is 0, but "
      "must be positive and finite");
  EXPECT_EQ(
      message(small_workspace(), [](auto& w) { w.channels[0].observed[1] = -1.0; }),
      "StatisticalModel: channel 'region', observed[1] is -1, but must be finite and not negative");
}

TEST(StatisticalModel, NegativeYieldsAreRefused) {
  EXPECT_EQ(
      message(small_workspace(), [](auto& w) { w.channels[0].samples[1].yields[0] = -60.0; }),
      "StatisticalModel: the expected yield of channel 'region', bin 0, at the start values is "
      "-52, but must be not negative");
  EXPECT_EQ(
      message(small_workspace(),
              [](auto& w) { w.channels[0].samples[1].modifiers[1].high[1] = -20.0; }),
      "StatisticalModel: the expected yield of channel 'region', bin 1, with shape = 1 is -6, "
      "but must be not negative");
  // Events with negative weights may leave a sample negative in a bin, not their sum.
  EXPECT_EQ(message(small_workspace(), [](auto& w) { w.channels[0].samples[0].yields[0] = -2.0; }),
            "nothing was thrown");
}

TEST(StatisticalModel, NamesAreChecked) {
  EXPECT_EQ(message(small_workspace(), [](auto& w) { w.measurements[0].interest = "nu"; }),
            "StatisticalModel: parameter of interest: 'nu' is not a parameter; candidates are mu, "
            "size, shape, bins (did you mean 'mu'?)");
  EXPECT_EQ(
      message(small_workspace(), [](auto& w) { w.measurements[0].interest = "bins"; }),
      "StatisticalModel: parameter of interest is 'bins', but must be one of whole samples, not "
      "of bins");
  // A constraint of a parameter that no modifier has.
  EXPECT_EQ(message(small_workspace(),
                    [](auto& w) {
                      w.measurements[0].parameters = {{"shade", {}, {}, {0.5}}};
                    }),
            "StatisticalModel: settings of the measurement: 'shade' is not a parameter; candidates "
            "are mu, size, shape, bins (did you mean 'shape'?)");
  EXPECT_EQ(message(small_workspace(),
                    [](auto& w) {
                      w.measurements[0].parameters = {{"mu", {}, {}, {0.5}}};
                    }),
            "StatisticalModel: settings of 'mu': auxiliary is given, but must be left out: the "
            "parameter has no constraint");
  EXPECT_EQ(message(small_workspace(),
                    [](auto& w) {
                      w.measurements[0].parameters = {{"bins", {1.0}}};
                    }),
            "StatisticalModel: settings of 'bins': start has 1 values, but must have 2 (one a "
            "parameter)");
  EXPECT_EQ(
      message(small_workspace(),
              [](auto& w) {
                w.channels[0].samples[0].modifiers.push_back(Modifier::norm_factor("size"));
              }),
      "StatisticalModel: channel 'region', sample 'background', normsys 'size' is a parameter "
      "of channel 'region', sample 'signal', normfactor 'size' too, but must be named "
      "differently: modifiers of these two kinds share no parameter");
  EXPECT_EQ(
      message(small_workspace(),
              [](auto& w) { w.channels[0].samples[0].modifiers = {Modifier::lumi()}; }),
      "StatisticalModel: settings of 'lumi' is without sigma and auxiliary, but must be given: "
      "a luminosity has no uncertainty by default");
  EXPECT_EQ(message(small_workspace(), [](auto& w) { w.channels[0].samples[1].name = "signal"; }),
            "StatisticalModel: channel 'region', samples is 'signal' twice, but must be different "
            "names");
  EXPECT_EQ(message(small_workspace(), [](auto& w) { w.measurements.clear(); }),
            "StatisticalModel: measurements is empty, but must be at least one");
  EXPECT_THROW(StatisticalModel(small_workspace(), "another"), ArgumentError);
  auto unused = small_workspace();
  unused.measurements[0].parameters = {{"lumi", {1.0}, {}, {1.0}, {0.1}}};
  EXPECT_NO_THROW(StatisticalModel{unused});
}

TEST(StatisticalModel, DataAreChecked) {
  const StatisticalModel model(on_off_workspace(10.0, 50.0, 7.0, 60.0));
  auto data = model.observed();
  data.auxiliary[0] = -1.0;
  EXPECT_THROW(ModelLikelihood(model, data), ArgumentError);
  data = model.observed();
  data.counts.push_back(1.0);
  EXPECT_THROW(ModelLikelihood(model, data), ArgumentError);
  data = model.observed();
  data.counts[0] = NAN;
  EXPECT_THROW(ModelLikelihood(model, data), ArgumentError);
  EXPECT_THROW(model.expected(std::vector<double>{1.0}), ArgumentError);
}

}  // namespace
}  // namespace neyman
