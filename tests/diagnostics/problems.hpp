#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "neyman/classifiers/mlp.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/core/random.hpp"
#include "neyman/diagnostics/ratio_events.hpp"
#include "neyman/diagnostics/reweighting.hpp"

// Events with a known ratio: two features, of which the first is N(0, 1) under the numerator and
// N(distance, 1) under the denominator, the second N(0, 1) under both, so that
// log r = −distance · x + distance²/2.
namespace neyman::testing {

struct ShiftedNormals {
  double distance;
  Matrix numerator, denominator;
  std::vector<double> numerator_exact, denominator_exact;      // log r
  std::vector<double> numerator_learned, denominator_learned;  // log r̂

  ShiftedNormals(std::uint64_t seed, std::size_t n, double d)
      : distance(d), numerator(n, 2), denominator(n, 2) {
    RandomStream random(seed, "shifted-normals");
    for (std::size_t i = 0; i < n; ++i) {
      numerator(i, 0) = random.normal();
      numerator(i, 1) = random.normal();
      denominator(i, 0) = distance + random.normal();
      denominator(i, 1) = random.normal();
    }
    const auto exact = [&](std::span<const double> x) {
      return -distance * x[0] + 0.5 * distance * distance;
    };
    for (std::size_t i = 0; i < n; ++i) {
      numerator_exact.push_back(exact(numerator.row(i)));
      denominator_exact.push_back(exact(denominator.row(i)));
    }
    numerator_learned = numerator_exact;
    denominator_learned = denominator_exact;
  }

  /// Replaces log r̂ by a function of x and log r.
  void learn(const std::function<double(std::span<const double>, double)>& learned) {
    for (std::size_t i = 0; i < numerator.rows(); ++i) {
      numerator_learned[i] = learned(numerator.row(i), numerator_exact[i]);
      denominator_learned[i] = learned(denominator.row(i), denominator_exact[i]);
    }
  }
  /// r^slope, normalised: log r̂ = slope · log r + slope (1 − slope) distance²/2, whose
  /// denominator reweighted is N((1 − slope) distance, 1).
  void learn_slope(double slope) {
    learn([&](std::span<const double>, double log_ratio) {
      return slope * log_ratio + 0.5 * slope * (1.0 - slope) * distance * distance;
    });
  }

  RatioEvents events() const {
    RatioEvents out;
    out.numerator = numerator;
    out.denominator = denominator;
    out.numerator_log_ratios = numerator_learned;
    out.denominator_log_ratios = denominator_learned;
    return out;
  }
};

/// A network that is quick and good enough for two features.
inline ReweightingConfig quick_reweighting(std::uint64_t seed) {
  Mlp::Config network;
  network.hidden = {8};
  network.batch_size = 64;
  network.epochs = 12;
  ReweightingConfig config;
  config.classifier = std::make_shared<Mlp>(network);
  config.seed = seed;
  return config;
}

}  // namespace neyman::testing
