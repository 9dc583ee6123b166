#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "neyman/calibration/calibrator.hpp"
#include "neyman/core/random.hpp"

// Problems with a known answer: numerator N(0, 1), denominator N(distance, 1), and a score that
// is a monotone function of the exact logit t = distance (x − distance/2), so that the
// calibrated log-ratio of the score is −t.
namespace neyman::testing {

struct Scores {
  std::vector<double> numerator, denominator;
  CalibrationSet set() const { return {numerator, denominator}; }
};

using Distortion = std::function<double(double)>;

inline double identity(double t) { return t; }

inline Scores draw_scores(std::uint64_t seed, std::size_t n, double distance,
                          const Distortion& distort = identity) {
  RandomStream random(seed, "calibration-test");
  Scores scores;
  for (std::size_t i = 0; i < n; ++i) {
    const double x = random.normal(), y = random.normal() + distance;
    scores.numerator.push_back(distort(distance * (x - 0.5 * distance)));
    scores.denominator.push_back(distort(distance * (y - 0.5 * distance)));
  }
  return scores;
}

/// Exact logits on a grid that holds all but some 1e-3 of both sides.
inline std::vector<double> logit_grid(double distance, std::size_t points = 41) {
  std::vector<double> grid;
  const double reach = 0.5 * distance * distance + 2.0 * distance;
  for (std::size_t i = 0; i < points; ++i) {
    grid.push_back(-reach + 2.0 * reach * static_cast<double>(i) / static_cast<double>(points - 1));
  }
  return grid;
}

inline Logits distorted(const std::vector<double>& t, const Distortion& distort) {
  Logits z(t.size());
  for (std::size_t i = 0; i < t.size(); ++i) z[i] = distort(t[i]);
  return z;
}

/// The largest and the mean |log r̂ + t| over exact logits t.
struct Deviation {
  double largest = 0.0, mean = 0.0;
};

inline Deviation deviation(const Calibrator& calibrator, const std::vector<double>& t,
                           const Distortion& distort = identity) {
  const LogRatios log_r = calibrator.log_ratios(distorted(t, distort));
  Deviation result;
  for (std::size_t i = 0; i < t.size(); ++i) {
    const double d = std::abs(log_r[i] + t[i]);
    result.largest = std::max(result.largest, d);
    result.mean += d / static_cast<double>(t.size());
  }
  return result;
}

/// Spread and share within one error of (log r̂ + t) / error over repeated samples and points.
struct Pulls {
  double sd = 0.0, within_one = 0.0;
};

inline Pulls measure_pulls(const Calibrator& prototype, std::size_t repeats, std::size_t n,
                           double distance, const std::vector<double>& t,
                           const Distortion& distort = identity) {
  Pulls pulls;
  const double count = static_cast<double>(repeats * t.size());
  for (std::size_t repeat = 0; repeat < repeats; ++repeat) {
    const Scores scores = draw_scores(1000 + repeat, n, distance, distort);
    const auto calibrator = prototype.fresh();
    calibrator->fit(scores.set());
    const Logits z = distorted(t, distort);
    const LogRatios log_r = calibrator->log_ratios(z);
    const std::vector<double> errors = calibrator->errors(z);
    for (std::size_t i = 0; i < t.size(); ++i) {
      const double pull = (log_r[i] + t[i]) / errors[i];
      pulls.sd += pull * pull / count;
      pulls.within_one += std::abs(pull) < 1.0 ? 1.0 / count : 0.0;
    }
  }
  pulls.sd = std::sqrt(pulls.sd);
  return pulls;
}

}  // namespace neyman::testing
