#include "neyman/ratios/onnx_export.hpp"

#include <gtest/gtest.h>

#include <map>

#include "neyman/calibration/histogram.hpp"
#include "neyman/calibration/isotonic.hpp"
#include "neyman/classifiers/boosted_trees.hpp"
#include "neyman/classifiers/ensemble.hpp"
#include "neyman/classifiers/mlp.hpp"
#include "neyman/classifiers/random_forest.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/random.hpp"
#include "neyman/ratios/classifier_across.hpp"
#include "neyman/ratios/classifier_ratio.hpp"
#include "neyman/ratios/decomposed_ratio.hpp"
#include "neyman/ratios/learned_ratio.hpp"
#include "neyman/ratios/separable_ratio.hpp"
#include "neyman/simulators/join.hpp"
#include "ratios/onnx_case.hpp"
#include "ratios/two_components.hpp"
#include "ratios/two_means.hpp"

namespace neyman::onnx_test {
namespace {

// What rounding leaves: of double precision, and of the float inside networks and trees.
constexpr double double_tolerance = 1e-11, float_tolerance = 2e-5;

using Tables = std::map<std::string, Matrix>;

/// Evaluates a graph outside of neyman and compares.
void expect_equal(const std::string& graph, const Tables& inputs, const LogRatios& expected,
                  double tolerance) {
  testing::GraphCase of;
  for (const auto& [name, table] : inputs) of.inputs[name] = testing::json_of(table);
  of.outputs["log_r"] = testing::json_of(expected.values());
  testing::expect_graph(graph, of, tolerance);
}

/// Two features: one that tells, far from zero, and one of noise with an outlier now and then.
Matrix draw_features(double mean, std::size_t events, std::uint64_t seed) {
  RandomStream random(seed, "features");
  Matrix x(events, 2);
  for (std::size_t i = 0; i < events; ++i) {
    x(i, 0) = 1000.0 + 3.0 * (mean + random.normal());
    x(i, 1) = random.normal() / (0.1 + random.uniform());
  }
  return x;
}

/// Events to compare at: typical ones, and some far outside of what was trained on.
Matrix to_compare() {
  auto x = draw_features(0.5, 150, 77);
  const std::vector<double> far = {980.0, 0.0, 1030.0, 1.0, 1000.0, -400.0, 1e9, 1e7, -1e9, -1e7};
  x.append(MatrixView(far.data(), far.size() / 2, 2));
  return x;
}

RatioConfig config_of(std::shared_ptr<const Classifier> classifier,
                      std::shared_ptr<const Calibrator> calibrator) {
  RatioConfig config;
  config.classifier = std::move(classifier);
  config.calibrator = std::move(calibrator);
  config.folds = 2;
  config.replicas = 0;
  config.seed = 5;
  return config;
}

const std::vector<double> first = {0.0}, second = {1.0};

ClassifierRatio train(std::shared_ptr<const Classifier> classifier,
                      std::shared_ptr<const Calibrator> calibrator) {
  const auto config = config_of(std::move(classifier), std::move(calibrator));
  const auto side = [&](double mean, std::uint64_t number) {
    Samples samples;
    samples.feature_names = {"a", "b"};
    samples.x = draw_features(mean, 1500, number);
    return FoldedSample(std::move(samples), config, number);
  };
  return ClassifierRatio(side(1.0, 0), side(0.0, 1), first, second, config);
}

void expect_exported(const ClassifierRatio& ratio, double tolerance) {
  const auto x = to_compare();
  expect_equal(export_onnx(ratio, {.feature_names = {"a", "b"}}), {{"x", x}},
               ratio.log_ratios(x, first, second), tolerance);
}

std::shared_ptr<const Classifier> small_network(Mlp::Activation activation) {
  Mlp::Config config;
  config.hidden = {12, 7};
  config.activation = activation;
  config.epochs = 4;
  return std::make_shared<Mlp>(config);
}

TEST(ExportOnnx, EveryCalibrator) {
  for (const auto& kind : calibrator_kinds()) {
    SCOPED_TRACE(kind);
    expect_exported(train(std::make_shared<Logistic>(), make_calibrator(kind)), double_tolerance);
  }
}

TEST(ExportOnnx, CalibratorsWithSteps) {
  HistogramCalibrator::Config bins;
  bins.interpolate = false;
  expect_exported(train(std::make_shared<Logistic>(), std::make_shared<HistogramCalibrator>(bins)),
                  double_tolerance);
  bins.bins = 1;
  expect_exported(train(std::make_shared<Logistic>(), std::make_shared<HistogramCalibrator>(bins)),
                  double_tolerance);
  IsotonicCalibrator::Config steps;
  steps.interpolate = false;
  expect_exported(train(std::make_shared<Logistic>(), std::make_shared<IsotonicCalibrator>(steps)),
                  double_tolerance);
}

TEST(ExportOnnx, NetworksOfEveryActivation) {
  for (const auto activation :
       {Mlp::Activation::relu, Mlp::Activation::tanh, Mlp::Activation::silu}) {
    SCOPED_TRACE(static_cast<int>(activation));
    expect_exported(train(small_network(activation), make_calibrator("smooth")), float_tolerance);
  }
}

TEST(ExportOnnx, EnsemblesAreTheirMean) {
  Ensemble::Config config;
  config.members = 3;
  config.of = {small_network(Mlp::Activation::tanh), std::make_shared<Logistic>()};
  expect_exported(train(std::make_shared<Ensemble>(config), make_calibrator("sigmoid")),
                  float_tolerance);
}

TEST(ExportOnnx, Trees) {
  BoostedTrees::Config boosted;
  boosted.rounds = 30;
  boosted.bins = 32;
  expect_exported(train(std::make_shared<BoostedTrees>(boosted), make_calibrator("smooth")),
                  float_tolerance);
  RandomForest::Config forest;
  forest.trees = 15;
  forest.depth = 4;
  expect_exported(train(std::make_shared<RandomForest>(forest), make_calibrator("smooth")),
                  float_tolerance);
}

TEST(ExportOnnx, TreesThatSplitBetweenNeighbouringDoubles) {
  // Values that a float does not tell apart, and data on the cuts themselves.
  Samples numerator, denominator;
  numerator.feature_names = denominator.feature_names = {"a", "b"};
  const auto config = config_of(
      [] {
        BoostedTrees::Config c;
        c.rounds = 8;
        c.min_leaf = 1.0;
        return std::make_shared<BoostedTrees>(c);
      }(),
      make_calibrator("none"));
  const double unit = 1e-9;
  Matrix x(400, 2), y(400, 2);
  for (std::size_t i = 0; i < 400; ++i) {
    x(i, 0) = 1.0 + unit * static_cast<double>(i % 7);
    y(i, 0) = 1.0 + unit * static_cast<double>(3 + i % 11);
  }
  numerator.x = x;
  denominator.x = y;
  const ClassifierRatio ratio(FoldedSample(numerator, config, 0),
                              FoldedSample(denominator, config, 1), first, second, config);
  Matrix at(60, 2);
  for (std::size_t i = 0; i < 60; ++i) at(i, 0) = 1.0 + 0.25 * unit * static_cast<double>(i);
  const auto expected = ratio.log_ratios(at, first, second);
  ASSERT_GT(std::abs(expected[0] - expected[59]), 1.0);
  expect_equal(export_onnx(ratio), {{"x", at}}, expected, float_tolerance);
}

DecomposedRatio train_decomposed(const std::vector<double>& reference) {
  const auto mixture = testing::normals({0.0, 1.0, 2.0});
  auto config = testing::logistic_config();
  config.replicas = 0;
  config.calibrator = make_calibrator("smooth");
  return DecomposedRatio(testing::draw_all(*mixture, 1500, config),
                         MixtureWeights(mixture->weight_expressions(), 3), reference, config);
}

TEST(ExportOnnx, MixturesWithWeightsAsInputs) {
  const auto ratio = train_decomposed({0.4});
  const auto x = testing::grid(-8.0, 11.0, 101);
  const std::vector<double> top = {0.2}, bottom = {0.0};
  const Tables inputs = {{"x", x},
                         {"numerator_weights", Matrix(1, 3, ratio.weights()(top))},
                         {"denominator_weights", Matrix(1, 3, ratio.weights()(bottom))}};
  expect_equal(export_onnx(ratio), inputs, ratio.log_ratios(x, top, bottom), double_tolerance);
}

TEST(ExportOnnx, MixturesAtFixedPoints) {
  const auto x = testing::grid(-8.0, 11.0, 101);
  const std::vector<double> top = {1.0}, bottom = {0.3};
  // A reference of one component alone: not every pair counts.
  for (const auto& reference : {std::vector<double>{0.4}, std::vector<double>{0.0}}) {
    const auto ratio = train_decomposed(reference);
    const auto expected = ratio.log_ratios(x, top, bottom);
    expect_equal(export_onnx(ratio, {.numerator = top, .denominator = bottom}), {{"x", x}},
                 expected, double_tolerance);
    expect_equal(export_onnx(ratio, {.denominator = bottom}),
                 {{"x", x}, {"numerator_weights", Matrix(1, 3, ratio.weights()(top))}}, expected,
                 double_tolerance);
  }
}

using Across = ParameterizedClassifierRatio::Across;
using Denominator = ParameterizedClassifierRatio::Denominator;

const ParameterSpace two_parameters({{"alpha", -1.5, 1.5, {}}, {"beta", -2, 2, {}}});

ParameterizedClassifierRatio::Config across_config(std::shared_ptr<const Classifier> classifier,
                                                   Denominator denominator, Across across) {
  ParameterizedClassifierRatio::Config config;
  config.classifier = std::move(classifier);
  config.denominator = denominator;
  if (denominator == Denominator::point) config.reference = {0.0, 0.5};
  config.calibration = across;
  config.samples = 3000;
  config.seed = 7;
  return config;
}

DistributionPtr two_normals() {
  return std::make_shared<Join>(std::vector<DistributionPtr>{
      std::make_shared<Normal>(Expression("alpha", two_parameters), 1.0),
      std::make_shared<Normal>(Expression("beta", two_parameters), 2.0)});
}

ParameterizedClassifierRatio train_across(std::shared_ptr<const Classifier> classifier,
                                          Denominator denominator, Across across) {
  return ParameterizedClassifierRatio(two_normals(), Design(two_parameters),
                                      across_config(std::move(classifier), denominator, across));
}

Matrix row_of(const std::vector<double>& values) { return Matrix(1, values.size(), values); }

const std::vector<double> some_top = {0.7, -1.1}, some_bottom = {-0.4, 0.9};

Matrix across_data() {
  auto x = sample(*two_normals(), some_top, 80, 3, "test");
  const std::vector<double> far = {30.0, -50.0, -1e6, 1e6};
  x.append(MatrixView(far.data(), 2, 2));
  return x;
}

TEST(ExportOnnx, ParameterizedClassifiersOfEveryDenominator) {
  const auto x = across_data();
  for (const auto denominator :
       {Denominator::marginal, Denominator::point, Denominator::parameterized}) {
    SCOPED_TRACE(static_cast<int>(denominator));
    const auto ratio =
        train_across(small_network(Mlp::Activation::silu), denominator, Across::smooth);
    if (denominator == Denominator::point)
      expect_equal(export_onnx(ratio), {{"x", x}, {"numerator", row_of(some_top)}},
                   ratio.log_ratios(x, some_top, ratio.reference()), float_tolerance);
    else
      expect_equal(
          export_onnx(ratio),
          {{"x", x}, {"numerator", row_of(some_top)}, {"denominator", row_of(some_bottom)}},
          ratio.log_ratios(x, some_top, some_bottom), float_tolerance);
    expect_equal(export_onnx(ratio, {.numerator = some_top, .denominator = some_bottom}),
                 {{"x", x}}, ratio.log_ratios(x, some_top, some_bottom), float_tolerance);
  }
}

/// A θ for each event.
Matrix spread_points(std::size_t count, const std::vector<double>& from,
                     const std::vector<double>& to) {
  Matrix out(count, 2);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t p = 0; p < 2; ++p)
      out(i, p) = from[p] + (to[p] - from[p]) * static_cast<double>(i) / static_cast<double>(count);
  return out;
}

TEST(ExportOnnx, PointsOfTheirOwnForEveryEvent) {
  const auto x = across_data();
  const auto tops = spread_points(x.rows(), {1.5, 0.2}, {-1.5, 1.2});
  const auto bottoms = spread_points(x.rows(), {0.0, -2.0}, {1.0, 1.0});
  LogRatios expected(x.rows());
  const auto both = train_across(small_network(Mlp::Activation::tanh), Denominator::parameterized,
                                 Across::smooth);
  for (std::size_t i = 0; i < x.rows(); ++i)
    expected[i] = both.log_ratios(x.view().rows(i, i + 1), tops.row(i), bottoms.row(i))[0];
  expect_equal(export_onnx(both), {{"x", x}, {"numerator", tops}, {"denominator", bottoms}},
               expected, float_tolerance);

  const auto point = train_across(std::make_shared<Logistic>(), Denominator::point, Across::smooth);
  for (std::size_t i = 0; i < x.rows(); ++i)
    expected[i] = point.log_ratios(x.view().rows(i, i + 1), tops.row(i), point.reference())[0];
  ASSERT_GT(std::abs(expected[0] - expected[x.rows() - 3]), 0.05);
  expect_equal(export_onnx(point), {{"x", x}, {"numerator", tops}}, expected, double_tolerance);
}

TEST(ExportOnnx, CalibrationsAcrossWithFewShapes) {
  const auto x = across_data();
  for (const std::size_t knots : {std::size_t{0}, std::size_t{3}}) {
    SCOPED_TRACE(knots);
    auto config = across_config(std::make_shared<Logistic>(), Denominator::point, Across::smooth);
    config.smooth.knots = knots;
    config.smooth.offset_degree = 1;
    config.smooth.slope_degree = 0;
    config.smooth.bend_degree = 0;
    const ParameterizedClassifierRatio ratio(two_normals(), Design(two_parameters), config);
    expect_equal(export_onnx(ratio), {{"x", x}, {"numerator", row_of(some_top)}},
                 ratio.log_ratios(x, some_top, ratio.reference()), double_tolerance);
  }
}

TEST(ExportOnnx, ParameterizedClassifiersWithoutCalibration) {
  const auto ratio =
      train_across(small_network(Mlp::Activation::silu), Denominator::marginal, Across::none);
  const auto x = sample(*two_normals(), some_top, 80, 3, "test");
  expect_equal(export_onnx(ratio, {.denominator = some_bottom}),
               {{"x", x}, {"numerator", row_of(some_top)}},
               ratio.log_ratios(x, some_top, some_bottom), float_tolerance);
}

TEST(ExportOnnx, SeparableRatios) {
  const Design design(two_parameters);
  Samples events;
  events.feature_names = default_feature_names(3);
  events.parameter_names = two_parameters.names();
  events.theta = design.draw(2000, 1, "theta");
  events.x = Matrix(2000, 3);
  RandomStream random(1, "events");
  for (std::size_t i = 0; i < 2000; ++i) {
    events.x(i, 0) = events.theta(i, 0) + random.normal();
    events.x(i, 1) = 500.0 + events.theta(i, 1) + 2.0 * random.normal();
    events.x(i, 2) = random.normal() / random.normal();  // heavy tails: compressed
  }
  Matrix x(0, 3);
  x.append(events.x.view().rows(0, 100));
  const std::vector<double> far = {-40.0, 700.0, 1e8};
  x.append(MatrixView(far.data(), 1, 3));
  for (const auto& hidden : {std::vector<std::size_t>{16, 32}, std::vector<std::size_t>{}}) {
    SCOPED_TRACE(hidden.size());
    SeparableRatio::Config config;
    config.hidden = hidden;
    config.epochs = 3;
    const SeparableRatio ratio(events, design, config);
    const auto expected = ratio.log_ratios(x, some_top, some_bottom);
    expect_equal(export_onnx(ratio),
                 {{"x", x}, {"numerator", row_of(some_top)}, {"denominator", row_of(some_bottom)}},
                 expected, float_tolerance);
    expect_equal(export_onnx(ratio, {.numerator = some_top, .denominator = some_bottom}),
                 {{"x", x}}, expected, float_tolerance);
  }
}

TEST(ExportOnnx, SeparableRatiosOfPhasesAndAngles) {
  const ParameterSpace parameters({{"a", -1, 2, {}}, {"phase", -3, 3, {}, false, true}});
  const Design design(parameters);
  Samples events;
  events.feature_names = default_feature_names(2);
  events.parameter_names = parameters.names();
  events.theta = design.draw(2000, 1, "theta");
  events.x = Matrix(2000, 2);
  RandomStream random(1, "events");
  for (std::size_t i = 0; i < 2000; ++i) {
    events.x(i, 0) = events.theta(i, 0) + random.normal();
    events.x(i, 1) = events.theta(i, 1) + random.normal();
  }
  SeparableRatio::Config config;
  config.hidden = {16};
  config.epochs = 3;
  config.periodic = {{"x1", -3, 3}};
  const SeparableRatio ratio(events, design, config);
  const Matrix x = events.x.take(std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  const std::vector<double> top{0.5, 2.9}, bottom{-0.5, -2.8};
  expect_equal(export_onnx(ratio),
               {{"x", x}, {"numerator", row_of(top)}, {"denominator", row_of(bottom)}},
               ratio.log_ratios(x, top, bottom), float_tolerance);
}

TEST(ExportOnnx, SeparableRatiosOfManyFeatures) {
  constexpr std::size_t features = 70;
  const Design design(two_parameters);
  Samples events;
  events.feature_names = default_feature_names(features);
  events.parameter_names = two_parameters.names();
  events.theta = design.draw(1000, 1, "theta");
  events.x = Matrix(1000, features);
  RandomStream random(1, "events");
  for (std::size_t i = 0; i < 1000; ++i)
    for (std::size_t f = 0; f < features; ++f)
      events.x(i, f) = 0.3 * events.theta(i, f % 2) + random.normal();
  Matrix x(0, features);
  x.append(events.x.view().rows(0, 50));
  SeparableRatio::Config config;
  config.hidden = {16};
  config.epochs = 3;
  const SeparableRatio ratio(events, design, config);
  expect_equal(export_onnx(ratio),
               {{"x", x}, {"numerator", row_of(some_top)}, {"denominator", row_of(some_bottom)}},
               ratio.log_ratios(x, some_top, some_bottom), float_tolerance);
}

// The model of several events, of the features that it uses.
TEST(ExportOnnx, LearnedRatios) {
  const Samples events = test::simulate_plane(test::plane_design(), 4000, 1);
  LearnedRatio::Config config;
  config.effort = LearnedRatio::Effort::quick;
  config.separable.hidden = {16};
  const LearnedRatio ratio(events, test::plane_design(), config);
  ASSERT_EQ(ratio.several().kind(), "separable");
  ASSERT_EQ(ratio.used(), (std::vector<std::size_t>{0, 1}));
  Matrix x(0, 3);
  x.append(events.x.view().rows(0, 50));
  const std::vector<double> top{0.5, -1.0}, bottom{-0.5, 0.3};
  expect_equal(export_onnx(ratio),
               {{"x", x}, {"numerator", row_of(top)}, {"denominator", row_of(bottom)}},
               ratio.log_ratios(x, top, bottom), float_tolerance);
}

TEST(ExportOnnx, RefusesWhatHasNoGraph) {
  const ExactRatio exact(std::make_shared<Normal>(0.0, 1.0));
  EXPECT_EQ(testing::message_of([&] { export_onnx(exact); }),
            "export_onnx: ratio is exact, but must be a learned one, not tabulated or inverse");

  const auto foreign = train(std::make_shared<testing::Foreign>(), make_calibrator("sigmoid"));
  EXPECT_EQ(testing::message_of([&] { export_onnx(foreign); }),
            "export_onnx: 'foreign' is not a classifier that can be exported; candidates are mlp, "
            "logistic, ensemble, boosted-trees, random-forest");

  auto config = across_config(std::make_shared<Logistic>(), Denominator::point, Across::on_demand);
  config.calibration_events = 500;
  const ParameterizedClassifierRatio on_demand(two_normals(), Design(two_parameters), config);
  EXPECT_EQ(testing::message_of([&] { export_onnx(on_demand); }),
            "export_onnx: calibration is on-demand, but must be smooth or none: others are no "
            "formula of the score and θ");

  const auto mixture = testing::normals({0.0, 1.0});
  const auto untold = testing::logistic_config();
  const auto trained =
      DecomposedRatio::trained(testing::draw_all(*mixture, 200, untold),
                               MixtureWeights(mixture->weight_expressions(), 2), {0.5}, untold);
  EXPECT_EQ(testing::message_of([&] { export_onnx(trained); }),
            "export_onnx: the ratio is trained, but must be calibrated too");
}

TEST(ExportOnnx, RefusesPointsThatDoNotFit) {
  const auto pair = train(std::make_shared<Logistic>(), make_calibrator("none"));
  EXPECT_NE(
      testing::message_of([&] { export_onnx(pair, {.numerator = first}); }).find("must be absent"),
      std::string::npos);
  const auto ratio =
      train_across(std::make_shared<Logistic>(), Denominator::marginal, Across::none);
  EXPECT_NE(testing::message_of([&] {
              export_onnx(ratio, {.numerator = std::vector<double>{9.0, 0.0}});
            }).find("export_onnx: alpha is 9"),
            std::string::npos);
}

}  // namespace
}  // namespace neyman::onnx_test
