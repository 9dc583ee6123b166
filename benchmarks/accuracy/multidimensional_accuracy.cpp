// The second example over many seeds: the error of −2 log Λ inside the exact 3σ contour and of
// the estimate, for one model of all θ and for the calibrations across θ of a classifier.
//
//   multidimensional_accuracy [study.toml] [first seed] [last seed] [events] [way]
//
// The way is "learned" (the default: models that held-out events choose from), "separable" or
// "density", or the calibration of a network with θ as input: "none", "smooth", "interpolate" or
// "on-demand". Events are those simulated in all: with "interpolate" and "on-demand", half of them
// train and half calibrate, shared out over the nodes or over the θ that the grid and the fit ask
// for (about 300).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "neyman/classifiers/mlp.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/random.hpp"
#include "neyman/data/reader.hpp"
#include "neyman/inference/fit.hpp"
#include "neyman/inference/parameterized_likelihood.hpp"
#include "neyman/inference/statistics.hpp"
#include "neyman/pipeline/study.hpp"

namespace {

using namespace neyman;
using Across = ParameterizedClassifierRatio::Across;

std::shared_ptr<const ParameterizedRatio> learn(const Study& study, const std::string& way) {
  const auto& design = *study.parameterized.design;
  const auto& models = study.parameterized;
  if (way == "learned" || way == "separable" || way == "density") {
    const auto events = simulate(*study.simulator, study.parameters, design, study.training_samples,
                                 derive_seed(study.seed, "training"), "training");
    if (way == "separable")
      return std::make_shared<SeparableRatio>(events, design, models.separable);
    if (way == "density") return std::make_shared<DensityRatio>(events, design, models.density);
    auto config = models.learned;
    config.one_event = false;
    return std::make_shared<LearnedRatio>(events, design, config);
  }
  auto config = study.parameterized.classifier;
  Mlp::Config network;
  network.hidden = {64, 64};
  network.batch_size = 1024;
  network.epochs = 15;
  network.learning_rate = 3e-3;
  network.weight_decay = 0.0;
  config.classifier = std::make_shared<Mlp>(network);
  config.calibration = way == "none"          ? Across::none
                       : way == "smooth"      ? Across::smooth
                       : way == "interpolate" ? Across::interpolate
                                              : Across::on_demand;
  config.samples = study.training_samples;
  if (way == "interpolate" || way == "on-demand") {
    config.samples /= 2;
    config.calibration_events = config.samples / (2 * (way == "interpolate" ? 49 : 300));
  }
  return std::make_shared<ParameterizedClassifierRatio>(study.simulator, design, config);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "examples/02_multidimensional/study.toml";
  const long first = argc > 2 ? std::atol(argv[2]) : 1;
  const long last = argc > 3 ? std::atol(argv[3]) : 10;
  const double samples = argc > 4 ? std::atof(argv[4]) : 1e6;
  const std::string way = argc > 5 ? argv[5] : "learned";

  auto study = read_study(path);
  study.training_samples = static_cast<std::size_t>(samples);
  const auto data =
      read_samples(study.data.files.at(0).name, study.data.files.at(0).options).samples;
  const DensityLikelihood exact(study.parameters, study.simulator, data.x);
  const auto exact_fit = fit(exact);
  std::printf("exact (%.5f, %.5f), standard errors (%.4f, %.4f)\n", exact_fit.point[0],
              exact_fit.point[1], exact_fit.error(0), exact_fit.error(1));
  // 15 × 15 over the box around the exact 3σ contour, of which those inside.
  const double threshold = chi2_quantile(level_of_sigmas(3.0), 2.0);
  std::vector<std::vector<double>> points;
  std::vector<double> exact_statistic;
  for (int i = -7; i <= 7; ++i)
    for (int j = -7; j <= 7; ++j) {
      const std::vector<double> point{
          exact_fit.point[0] + i / 7.0 * std::sqrt(threshold) * exact_fit.error(0),
          exact_fit.point[1] + j / 7.0 * std::sqrt(threshold) * exact_fit.error(1)};
      const double statistic = test_statistic(exact, exact_fit, point);
      if (statistic > threshold) continue;
      points.push_back(point);
      exact_statistic.push_back(statistic);
    }

  std::printf("%5s %8s %10s %10s %10s %10s %8s\n", "seed", "RMS", "pull", "pull", "predicted",
              "predicted", "s");
  double rms_sum = 0.0, rms_worst = 0.0, squares[2] = {0.0, 0.0}, predicted[2] = {0.0, 0.0};
  for (long seed = first; seed <= last; ++seed) {
    reseed(study, static_cast<std::uint64_t>(seed));
    const double start = seconds_now();
    const auto ratio = learn(study, way);
    const ParameterizedLikelihood learned(*ratio, data.x);
    auto best = fit(learned);
    if (learned.differentiable())
      add_simulation_covariance(best, learned.simulation_gradient_covariance(best.point));
    double sum = 0.0;
    for (std::size_t i = 0; i < points.size(); ++i)
      sum += std::pow(test_statistic(learned, best, points[i]) - exact_statistic[i], 2);
    const double rms = std::sqrt(sum / static_cast<double>(points.size()));
    double pull[2], own[2];
    for (std::size_t p = 0; p < 2; ++p) {
      pull[p] = (best.point[p] - exact_fit.point[p]) / exact_fit.error(p);
      own[p] = learned.differentiable() ? best.simulation_error(p) / exact_fit.error(p) : 0.0;
      squares[p] += pull[p] * pull[p];
      predicted[p] += own[p] * own[p];
    }
    rms_sum += rms;
    rms_worst = std::max(rms_worst, rms);
    std::printf("%5ld %8.3f %10.3f %10.3f %10.3f %10.3f %8.1f%s\n", seed, rms, pull[0], pull[1],
                own[0], own[1], seconds_now() - start, best.ok() ? "" : "  not converged");
    std::fflush(stdout);
  }
  const auto seeds = static_cast<double>(last - first + 1);
  std::printf("mean  %8.3f %10.3f %10.3f %10.3f %10.3f   (RMS of pulls and predictions)\n",
              rms_sum / seeds, std::sqrt(squares[0] / seeds), std::sqrt(squares[1] / seeds),
              std::sqrt(predicted[0] / seeds), std::sqrt(predicted[1] / seeds));
  std::printf("worst %8.3f\n", rms_worst);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "multidimensional_accuracy: %s\n", error.what());
  return 1;
}
