// neyman's side of the second example, complete: simulate, train, grid, optimise, contours. Method
// "on-demand" does the peer's work, "smooth" has one model for all θ that needs no further events.
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../second_example.hpp"
#include "../worker.hpp"
#include "neyman/calibration/histogram.hpp"
#include "neyman/classifiers/mlp.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/data/reader.hpp"
#include "neyman/inference/bayesian_optimisation.hpp"
#include "neyman/inference/contour.hpp"
#include "neyman/inference/parameterized_likelihood.hpp"
#include "neyman/ratios/classifier_across.hpp"
#include "neyman/ratios/separable_ratio.hpp"

namespace {

using namespace neyman;
using peers::Json;

const ParameterSpace space({{"alpha", -3.0, 3.0, 1.0}, {"beta", -3.0, 3.0, -1.0}});

Json values_at(const Likelihood& likelihood, const Json& points) {
  Json out = Json::array();
  for (const auto& point : points) out.push_back(likelihood(point.get<std::vector<double>>()));
  return out;
}

class Contender {
 public:
  Json answer(const Json& request) {
    const auto task = request.at("task").get<std::string>();
    if (task == "load") return load(request);
    if (task == "exact") return exact(request);
    if (task == "simulate") return simulate_events(request);
    if (task == "train") return train(request);
    if (task == "grid") return grid(request);
    if (task == "optimise") return optimise(request);
    if (task == "contours") return trace(request);
    if (task == "memory") return {{"peak", peers::peak_memory()}};
    throw std::runtime_error("unknown task " + task);
  }

 private:
  Json load(const Json& request) {
    observed_ = read_samples(request.at("observed").get<std::string>()).samples.x;
    seed_ = request.at("seed");
    smooth_ = request.at("method") == "smooth";
    return Json::object();
  }

  /// What both sides are compared with.
  Json exact(const Json& request) const {
    const DensityLikelihood likelihood(space, simulator_, observed_);
    const auto best = fit(likelihood);
    return {{"point", best.point},
            {"errors", {best.error(0), best.error(1)}},
            {"maximum", best.log_likelihood},
            {"values", values_at(likelihood, request.at("points"))}};
  }

  Json simulate_events(const Json& request) {
    const auto samples = request.at("samples").get<std::size_t>();
    return peers::timed([&] {
      const auto half = smooth_ ? 0 : samples / 2;
      numerator_ = simulate(*simulator_, space, design_, samples - half, seed_, "numerator");
      if (half > 0)
        denominator_ = simulate(*simulator_, space, Design::fixed(space, reference_), half, seed_,
                                "denominator");
    });
  }

  Json train(const Json& request) {
    Json out = peers::timed([&] {
      if (smooth_) {
        SeparableRatio::Config config;
        config.seed = seed_;
        ratio_ = std::make_unique<SeparableRatio>(numerator_, design_, config);
      } else {
        ratio_ = train_classifier(request.at("events"));
      }
    });
    numerator_ = denominator_ = {};
    return out;
  }

  /// One network of the peer's shape.
  std::unique_ptr<ParameterizedRatio> train_classifier(std::size_t events) const {
    Mlp::Config network;
    network.activation = Mlp::Activation::relu;
    network.batch_size = 1024;
    network.epochs = 15;
    HistogramCalibrator::Config histogram;
    histogram.bins = 50;
    ParameterizedClassifierRatio::Config config;
    config.classifier = std::make_shared<Mlp>(network);
    config.denominator = ParameterizedClassifierRatio::Denominator::point;
    config.reference = reference_;
    config.folds = 1;
    config.calibration = ParameterizedClassifierRatio::Across::on_demand;
    config.calibrator = std::make_shared<HistogramCalibrator>(histogram);
    config.calibration_events = events;
    config.seed = seed_;
    return std::make_unique<ParameterizedClassifierRatio>(numerator_, denominator_, design_, config,
                                                          simulator_);
  }

  Json grid(const Json& request) {
    Json values;
    Json out = peers::timed([&] {
      likelihood_.emplace(*ratio_, observed_);
      values = values_at(*likelihood_, request.at("points"));
    });
    out["values"] = values;
    return out;
  }

  /// By Bayesian optimisation; a smooth likelihood can be climbed instead.
  Json optimise(const Json& request) {
    Json out = peers::timed([&] {
      if (smooth_) {
        best_ = fit(*likelihood_);
        return;
      }
      BayesianConfig config;
      config.evaluations = request.at("evaluations");
      config.seed = seed_;
      const auto found = bayesian_fit(*likelihood_, config);
      best_.status = found.status;
      best_.point = found.point;
      best_.log_likelihood = found.value;
      best_.covariance = found.covariance;
      surrogate_ = found.surrogate;
    });
    out["point"] = best_.point;
    out["maximum"] = best_.log_likelihood;
    out["status"] = to_string(best_.status);
    out["values"] = values_at(surface(), request.at("points"));
    return out;
  }

  Json trace(const Json& request) {
    ContourConfig config;
    config.thresholds = request.at("thresholds").get<std::vector<double>>();
    config.levels = request.at("levels").get<std::vector<double>>();
    const auto window = request.at("window").get<std::vector<std::vector<double>>>();
    config.x = {window[0][0], window[0][1]};
    config.y = {window[1][0], window[1][1]};
    std::vector<Contour> found;
    Json out = peers::timed([&] { found = contours(surface(), best_, 0, 1, config); });
    for (const auto& contour : found) out["lines"].push_back(contour.lines.size());
    return out;
  }

  const Likelihood& surface() {
    if (smooth_) return *likelihood_;
    return surface_.emplace(surrogate_, observed_.rows());
  }

  const DistributionPtr simulator_ = benchmarks::second_example(space);
  const Design design_{space};
  const std::vector<double> reference_{0.0, 0.0};
  bool smooth_ = false;
  std::uint64_t seed_ = 0;
  Matrix observed_;
  Samples numerator_, denominator_;
  std::unique_ptr<ParameterizedRatio> ratio_;
  std::optional<ParameterizedLikelihood> likelihood_;
  Fit best_;
  GaussianProcess surrogate_;
  std::optional<SurrogateLikelihood> surface_;
};

}  // namespace

int main() {
  set_threads(1);
  Contender contender;
  return peers::serve([&](const Json& request) { return contender.answer(request); });
}
