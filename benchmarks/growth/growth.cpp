// One piece of work of one size on one thread: its CPU seconds and the memory of the process, as
// JSON. `run` asks for many sizes, each in a process of its own.
//
//   growth <work> <size>
#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../peers/worker.hpp"
#include "../search_example.hpp"
#include "../second_example.hpp"
#include "neyman/calibration/histogram.hpp"
#include "neyman/calibration/isotonic.hpp"
#include "neyman/classifiers/mlp.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "neyman/inference/ensemble.hpp"
#include "neyman/inference/fit.hpp"
#include "neyman/inference/parameterized_likelihood.hpp"
#include "neyman/ratios/classifier_across.hpp"
#include "neyman/ratios/separable_ratio.hpp"

namespace {

using namespace neyman;
using peers::Json;

/// The shortest of three repetitions, and of more of what is short. (The first one may get memory
/// that the system has to find and to clear.)
Json measure(const std::function<void()>& work) {
  Json best = peers::timed(work);
  double spent = best["wall"];
  for (int repeat = 1; repeat < 3 || (repeat < 20 && spent < 0.3); ++repeat) {
    const Json next = peers::timed(work);
    spent += next["wall"].get<double>();
    if (next["cpu"] < best["cpu"]) best = next;
  }
  return best;
}

/// The whole of a separable ratio from 2000 events, in each of whose features there is a little of
/// two parameters.
Json learn_features(std::size_t features) {
  constexpr std::size_t events = 2000;
  const Design design(ParameterSpace({{"alpha", -3.0, 3.0, {}}, {"beta", -3.0, 3.0, {}}}));
  Samples samples;
  samples.feature_names = default_feature_names(features);
  samples.parameter_names = design.parameters().names();
  samples.theta = design.draw(events, 1, "growth");
  samples.x = Matrix(events, features);
  RandomStream random(1, "growth");
  random.fill_normal(samples.x.values());
  const double slope = 1.0 / std::sqrt(static_cast<double>(features));
  for (std::size_t i = 0; i < events; ++i)
    for (std::size_t f = 0; f < features; ++f) samples.x(i, f) += slope * samples.theta(i, f % 2);
  return peers::timed([&] { SeparableRatio(samples, design, {}); });
}

/// Two normal samples, half of the rows each.
struct Rows {
  Matrix x;
  std::vector<std::uint8_t> denominator;

  explicit Rows(std::size_t count) : x(count, 7), denominator(count) {
    RandomStream random(1, "growth");
    random.fill_normal(x.values());
    for (std::size_t i = 0; i < count; ++i) {
      denominator[i] = i % 2;
      x(i, 0) += i % 2 ? 0.5 : -0.5;
    }
  }
};

/// One epoch of a network with two hidden layers of this width.
Json train(std::size_t rows, std::size_t width) {
  const Rows data(rows);
  Mlp::Config config;
  config.hidden = {width, width};
  config.epochs = 1;
  return measure([&] { Mlp(config).fit({data.x, data.denominator, {}, 1}); });
}

Json calibrate(std::size_t scores) {
  std::vector<double> numerator(scores / 2), denominator(scores / 2);
  RandomStream random(1, "growth");
  random.fill_normal(numerator);
  random.fill_normal(denominator);
  for (double& z : numerator) z -= 1.0;
  for (double& z : denominator) z += 1.0;
  return measure([&] { IsotonicCalibrator().fit({numerator, denominator}); });
}

Json draw(std::size_t events) {
  const ParameterSpace space({{"alpha", -3.0, 3.0, {}}, {"beta", -3.0, 3.0, {}}});
  const auto simulator = benchmarks::second_example(space);
  Matrix x(events, 5);
  return measure([&] { sample_into(*simulator, std::vector<double>{1.0, -1.0}, 1, "growth", x); });
}

Json fit_events(std::size_t events) {
  const benchmarks::SearchExample model;
  FitOptions options;
  options.start = benchmarks::search_truth();
  const auto likelihood = model.likelihood(
      sample(*model.mixture, options.start, events, 1, "growth"), {0.1, -0.2, 0.3, -0.4, 0.5});
  return measure([&] { fit(*likelihood, options); });
}

/// As many shares of normals side by side, 20 000 events.
Json fit_parameters(std::size_t count) {
  std::vector<Parameter> all;
  const double share = 1.0 / static_cast<double>(count + 1);
  for (std::size_t p = 0; p < count; ++p)
    all.push_back({std::string("w").append(std::to_string(p)), 0.0, 2.0 * share, share});
  const ParameterSpace parameters(all);
  std::vector<DistributionPtr> components;
  std::vector<Expression> weights;
  for (std::size_t c = 0; c <= count; ++c) {
    components.push_back(std::make_shared<Normal>(2.0 * static_cast<double>(c), 1.0));
    if (c < count) weights.emplace_back(all[c].name, parameters);
  }
  const auto mixture = std::make_shared<Mixture>(std::move(components), std::move(weights));
  FitOptions options;
  options.start.assign(count, share);
  const ExactMixtureRatio ratio(mixture, options.start);
  const MixtureLikelihood likelihood(parameters, ratio,
                                     sample(*mixture, options.start, 20'000, 1, "growth"));
  return measure([&] { fit(likelihood, options); });
}

/// −2 log Λ of 500 events at as many θ, each calibrated with 20 000 events a side.
Json scan_points(std::size_t count) {
  const ParameterSpace space({{"alpha", -3.0, 3.0, {}}, {"beta", -3.0, 3.0, {}}});
  const auto simulator = benchmarks::second_example(space);
  Mlp::Config network;
  network.epochs = 1;
  ParameterizedClassifierRatio::Config config;
  config.classifier = std::make_shared<Mlp>(network);
  config.denominator = ParameterizedClassifierRatio::Denominator::point;
  config.reference = {0.0, 0.0};
  config.samples = 20'000;
  config.folds = 1;
  config.calibration = ParameterizedClassifierRatio::Across::on_demand;
  config.calibrator = std::make_shared<HistogramCalibrator>();
  config.calibration_events = 20'000;
  const ParameterizedClassifierRatio ratio(simulator, Design(space), config);
  const ParameterizedLikelihood likelihood(
      ratio, sample(*simulator, std::vector<double>{1.0, -1.0}, 500, 1, "growth"));
  const Matrix points = Design(space).draw(count, 1, "growth");
  return peers::timed([&] {
    for (std::size_t i = 0; i < count; ++i) likelihood(points.row(i));
  });
}

Json toys(std::size_t count) {
  const benchmarks::SearchExample model;
  EnsembleConfig config;
  config.datasets = count;
  config.point = benchmarks::search_truth();
  config.interest = {0};
  return measure([&] { run_ensemble(config, model.parameters, model.experiment(1000)); });
}

const std::map<std::string, std::function<Json(std::size_t)>> works{
    {"train-events", [](std::size_t size) { return train(size, 40); }},
    {"train-width",
     [](std::size_t width) {
       Json out = train(20'000, width);
       out["size"] = (7 + 1) * width + (width + 1) * width + width + 1;  // weights
       return out;
     }},
    {"train-features", learn_features},
    {"calibrate-events", calibrate},
    {"simulate-events", draw},
    {"fit-events", fit_events},
    {"fit-parameters", fit_parameters},
    {"scan-points", scan_points},
    {"toys", toys},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || works.count(argv[1]) == 0) {
    std::cerr << "growth <work> <size>, where <work> is one of";
    for (const auto& [name, work] : works) std::cerr << ' ' << name;
    std::cerr << '\n';
    return 2;
  }
  set_threads(1);
  keep_freed_memory();
  const std::size_t before = peers::peak_memory();
  Json out = works.at(argv[1])(std::stoul(argv[2]));
  out["memory"] = peers::peak_memory();
  out["program"] = before;
  std::cout << out.dump() << '\n';
}
