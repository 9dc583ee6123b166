#include "neyman/measurements/onnx_channel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "measurements/evaluator.hpp"
#include "neyman/classifiers/classifier.hpp"
#include "neyman/classifiers/mlp.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/random.hpp"
#include "neyman/measurements/statistical_model.hpp"
#include "ratios/onnx_case.hpp"

namespace neyman::onnx_channel_test {
namespace {

// What rounding leaves of log r: networks and features across parameters are floats inside.
constexpr double float_tolerance = 1e-5, double_tolerance = 1e-10;

using Point = std::map<std::string, double>;

/// Two features around a place.
Samples draw(double x, double y, std::size_t count, std::uint64_t seed) {
  RandomStream random(seed, "events");
  Samples out;
  out.feature_names = {"x0", "x1"};
  out.x = Matrix(count, 2);
  for (std::size_t i = 0; i < count; ++i) {
    out.x(i, 0) = x + random.normal();
    out.x(i, 1) = 50.0 + 4.0 * (y + random.normal());
  }
  return out;
}

/// Variations of two components by the same parameter and one of another, which is called as values
/// inside of graphs are; and the signal across two parameters.
std::vector<ComponentSamples> all_shapes(std::size_t count) {
  std::vector<ComponentSamples> out;
  out.push_back({"signal", draw(1.5, 0.5, count, 1), 1.0});
  out.push_back({"first", draw(0.0, 0.0, count, 2), 3.0});
  out.push_back({"second", draw(-0.5, 1.0, count, 3), 2.0});
  out[0].variations.push_back({"shift", draw(1.3, 0.5, count, 4), draw(1.8, 0.5, count, 5)});
  out[1].variations.push_back({"shift", draw(-0.3, 0.0, count, 6), draw(0.2, 0.1, count, 7)});
  out[1].variations.push_back({"t1", draw(0.0, -0.3, count, 8), draw(0.0, 0.3, count, 9)});
  const Design design(ParameterSpace({{"mass", 100.0, 120.0, {}}, {"tilt", -1.0, 2.0, {}}}));
  auto across = draw(1.5, 0.5, count, 10);
  across.parameter_names = {"mass", "tilt"};
  across.theta = design.draw(count, 11, "theta");
  for (std::size_t i = 0; i < count; ++i) {
    across.x(i, 0) += 0.1 * (across.theta(i, 0) - 112.0);
    across.x(i, 1) += across.theta(i, 1);
  }
  out[0].across = ComponentSamples::Across{std::move(across), design, {112.0, 0.0}};
  return out;
}

LearnedChannel::Config small() {
  LearnedChannel::Config config;
  config.ratios.classifier = make_classifier("logistic");
  config.ratios.folds = 2;
  config.ratios.replicas = 0;
  config.shape.hidden = {};
  config.shape.degree = 2;
  config.simulated = 3000;
  config.seed = 7;
  return config;
}

/// Typical events, and some that are far from all of them.
Matrix events_to_compare(std::size_t count = 60) {
  auto x = draw(0.5, 0.5, count, 77).x;
  const std::vector<double> far = {-9.0, 50.0, 12.0, 90.0, 0.0, -40.0};
  x.append(MatrixView(far.data(), 3, 2));
  return x;
}

/// What a fit evaluates: p_c(x; φ) / p_ref(x), components × events.
Matrix own_ratios(const LearnedChannel& channel, const Matrix& x, const Point& at) {
  std::vector<UnbinnedComponent> components;
  for (const auto& name : channel.components()) components.push_back({name, 1.0});
  components.back().yield = 100.0;  // the total of each event must be positive
  components.back().modifiers = {Modifier::norm_factor("size")};
  const Workspace workspace{{}, {{"measurement", "size", {}}}};
  const StatisticalModel model(workspace, {channel.channel("events", components, x)});
  auto point = model.start();
  for (const auto& [name, value] : at) point[model.parameters().index(name)] = value;
  point[model.parameters().index("size")] = 0.01;
  Matrix out(components.size(), x.rows());
  detail::Evaluator(model.compiled()).parts(point, 0, *model.observed().events[0], out);
  return out;
}

/// The graph of a channel gives what a fit evaluates. Returns how many densities are negative.
std::size_t expect_the_same(const LearnedChannel& channel, const Matrix& x, const Point& at,
                            double tolerance) {
  const auto ratios = own_ratios(channel, x, at);
  Matrix logs(x.rows(), ratios.rows()), signs(x.rows(), ratios.rows());
  std::size_t negative = 0;
  for (std::size_t i = 0; i < x.rows(); ++i)
    for (std::size_t c = 0; c < ratios.rows(); ++c) {
      logs(i, c) = std::log(std::abs(ratios(c, i)));
      signs(i, c) = ratios(c, i) < 0.0 ? -1.0 : 1.0;
      negative += ratios(c, i) < 0.0 ? 1 : 0;
    }
  testing::GraphCase of;
  of.inputs["x"] = testing::json_of(x);
  for (const auto& [name, value] : at) of.inputs[name] = testing::json_of(std::vector{value});
  of.outputs = {{"log_r", testing::json_of(logs)}, {"sign", testing::json_of(signs)}};
  testing::expect_graph(export_onnx(channel), of, tolerance);
  return negative;
}

TEST(ExportChannel, AllShapes) {
  // Enough events for held-out ones to see every shape.
  const LearnedChannel channel(all_shapes(4000), small());
  for (const auto& variation : channel.variations()) EXPECT_TRUE(variation.kept());
  const auto x = events_to_compare();
  // Nominal, random, and beyond ±1, where variations go on as lines.
  RandomStream random(5, "points");
  const Point points[] = {
      {{"shift", 0.0}, {"t1", 0.0}, {"mass", 112.0}, {"tilt", 0.0}},
      {{"shift", 2.0 * random.uniform() - 1.0},
       {"t1", 2.0 * random.uniform() - 1.0},
       {"mass", 100.0 + 20.0 * random.uniform()},
       {"tilt", 3.0 * random.uniform() - 1.0}},
      {{"shift", -1.7}, {"t1", 2.4}, {"mass", 119.0}, {"tilt", -0.9}},
  };
  for (const auto& point : points) expect_the_same(channel, x, point, float_tolerance);
  // They do move: the comparison can fail.
  const auto nominal = own_ratios(channel, x, points[0]), moved = own_ratios(channel, x, points[2]);
  for (const std::size_t c : {0, 1}) {
    double most = 0.0;
    for (std::size_t i = 0; i < x.rows(); ++i)
      most = std::max(most, std::abs(std::log(moved(c, i) / nominal(c, i))));
    EXPECT_GT(most, 0.5);
  }
}

TEST(ExportChannel, NetworksWithSeveralMembersAndFolds) {
  Mlp::Config network;
  network.hidden = {8};
  network.epochs = 3;
  auto config = small();
  config.ratios.classifier = std::make_shared<Mlp>(network);
  config.ratios.folds = 3;
  config.shape.hidden = {16};
  config.shape.folds = 3;
  config.shape.epochs = 2;
  config.members = 2;
  const LearnedChannel channel(all_shapes(800), config);
  expect_the_same(channel, events_to_compare(),
                  {{"shift", 0.4}, {"t1", -1.2}, {"mass", 104.0}, {"tilt", 1.5}}, float_tolerance);
}

TEST(ExportChannel, RatiosToOneReference) {
  auto components = all_shapes(600);
  for (auto& component : components) component.across.reset();
  auto config = small();
  config.reference = "first";
  const Point point{{"shift", 0.6}, {"t1", 1.3}};
  expect_the_same(LearnedChannel(components, config), events_to_compare(), point, double_tolerance);
  config.reference.clear();
  config.reference_sample = draw(0.2, 0.2, 600, 12);
  expect_the_same(LearnedChannel(components, config), events_to_compare(), point, double_tolerance);
}

TEST(ExportChannel, OneComponentWithAndWithoutShapes) {
  std::vector<ComponentSamples> alone{all_shapes(400)[1]};
  expect_the_same(LearnedChannel(alone, small()), events_to_compare(),
                  {{"shift", -0.8}, {"t1", 0.3}}, double_tolerance);
  alone[0].variations.clear();
  expect_the_same(LearnedChannel(alone, small()), events_to_compare(), {}, double_tolerance);
}

/// Adds events of negative weight to those of weight 1.
void subtract(Samples& samples, const Samples& taken, double weight) {
  samples.weights.assign(samples.size(), 1.0);
  samples.x.append(taken.x);
  samples.weights.resize(samples.x.rows(), -weight);
}

TEST(ExportChannel, NegativeWeights) {
  auto components = all_shapes(4000);
  components[0].across.reset();
  subtract(components[1].nominal, draw(0.3, 0.0, 2000, 13), 0.4);
  subtract(components[1].variations[0].high, draw(0.3, 0.0, 2000, 14), 0.5);
  subtract(components[1].variations[1].low, draw(0.3, 0.0, 2000, 15), 0.6);
  expect_the_same(LearnedChannel(components, small()), events_to_compare(),
                  {{"shift", 0.7}, {"t1", -0.5}}, double_tolerance);
}

TEST(ExportChannel, VariationsOfNominalEvents) {
  for (const bool with_signs : {false, true}) {
    auto components = all_shapes(3000);
    components[0].across.reset();
    if (with_signs) subtract(components[1].nominal, draw(0.3, 0.0, 1500, 13), 0.4);
    auto& events = components[1].nominal;
    if (!with_signs) events.weights.assign(events.size(), 1.0);
    // The nominal events below, others of them above, and other weights of both.
    components[1].variations[0].low = events;
    auto down = events, up = events;
    for (std::size_t i = 0; i < events.size(); ++i) {
      down.weights[i] *= events.weight(i) < 0.0 ? 1.1 : 1.0 - 0.2 * std::tanh(events.x(i, 0));
      up.weights[i] *= 1.0 + 0.2 * std::tanh(events.x(i, 0));
    }
    components[1].variations[1].low = down;
    components[1].variations[1].high = up;
    const LearnedChannel channel(components, small());
    EXPECT_EQ(channel.variations()[2].events, LearnedVariation::Events::weighted);
    EXPECT_TRUE(channel.variations()[2].kept());
    expect_the_same(channel, events_to_compare(), {{"shift", 0.7}, {"t1", -0.5}}, double_tolerance);
  }
}

TEST(ExportChannel, DensitiesThatAreNegative) {
  auto components = all_shapes(1000);
  components.erase(components.begin());
  components[0].variations.clear();
  subtract(components[0].nominal, draw(2.0, 0.0, 500, 13), 0.9);
  // Around x0 = 2 more is taken away than there is; some of the events are there.
  const auto negative = expect_the_same(LearnedChannel(components, small()), events_to_compare(),
                                        {}, double_tolerance);
  EXPECT_GT(negative, 0u);
  EXPECT_LT(negative, 60u);
}

TEST(ExportChannel, RefusesWhatHasNoGraph) {
  auto components = all_shapes(100);
  components.erase(components.begin());
  components[0].variations[0].parameter = "log_r";
  EXPECT_EQ(testing::message_of([&] { export_onnx(LearnedChannel(components, small())); }),
            "export_onnx: a parameter is 'log_r', but must be of another name than x, log_r and "
            "sign, which the graph has");
  components[0].variations.clear();
  const LearnedChannel channel(components, small());
  EXPECT_EQ(testing::message_of([&] { export_onnx(channel, {"10*mu"}); }),
            "export_onnx: yields has 1 values, but must have 2 (one a component)");
  auto config = small();
  config.ratios.classifier = std::make_shared<testing::Foreign>();
  EXPECT_EQ(testing::message_of([&] { export_onnx(LearnedChannel(components, config)); }),
            "export_onnx: 'foreign' is not a classifier that can be exported; candidates are mlp, "
            "logistic, ensemble, boosted-trees, random-forest");
}

}  // namespace
}  // namespace neyman::onnx_channel_test
