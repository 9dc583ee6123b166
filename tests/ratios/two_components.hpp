#pragma once

#include <memory>
#include <vector>

#include "neyman/calibration/calibrator.hpp"
#include "neyman/classifiers/logistic.hpp"
#include "neyman/ratios/cross_fit.hpp"
#include "neyman/simulators/mixture.hpp"
#include "neyman/simulators/normal.hpp"

// Mixtures of unit normals: the log-ratio of any pair is linear in x, so that logistic
// regression is the right model and the truth is known.
namespace neyman::testing {

inline ParameterSpace gamma_space() { return ParameterSpace({{"gamma", 0.0, 1.0, 0.3}}); }

/// (1 − γ) N(0, 1) + γ N(1, 1), or with a third component N(2, 1) that shares γ.
inline std::shared_ptr<const Mixture> normals(const std::vector<double>& means) {
  const auto space = gamma_space();
  std::vector<DistributionPtr> components;
  for (const double mean : means) components.push_back(std::make_shared<Normal>(mean, 1.0));
  std::vector<Expression> weights;
  weights.emplace_back("1 - gamma", space);
  for (std::size_t c = 1; c + 1 < means.size(); ++c)
    weights.emplace_back("gamma / " + std::to_string(means.size() - 1), space);
  return std::make_shared<Mixture>(std::move(components), std::move(weights));
}

inline RatioConfig logistic_config(std::uint64_t seed = 1) {
  RatioConfig config;
  config.classifier = std::make_shared<Logistic>();
  config.calibrator = make_calibrator("sigmoid");
  config.folds = 3;
  config.replicas = 10;
  config.seed = seed;
  return config;
}

inline FoldedSample draw(const Mixture& mixture, std::size_t component, std::size_t events,
                         const RatioConfig& config) {
  Samples samples;
  samples.feature_names = {"x"};
  samples.x = sample(*mixture.components()[component], std::vector<double>{0.3}, events,
                     derive_seed(config.seed, "draw", component), "test");
  return FoldedSample(std::move(samples), config, component);
}

inline std::vector<FoldedSample> draw_all(const Mixture& mixture, std::size_t events,
                                          const RatioConfig& config) {
  std::vector<FoldedSample> out;
  for (std::size_t c = 0; c < mixture.components().size(); ++c)
    out.push_back(draw(mixture, c, events, config));
  return out;
}

inline Matrix grid(double low, double high, std::size_t count) {
  Matrix x(count, 1);
  for (std::size_t i = 0; i < count; ++i)
    x(i, 0) = low + (high - low) * static_cast<double>(i) / static_cast<double>(count - 1);
  return x;
}

}  // namespace neyman::testing
