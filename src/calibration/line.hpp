#pragma once

#include <vector>

#include "calibration/scores.hpp"

namespace neyman::calibration {

/// log r = −(offset + slope (z − centre) / scale), the two-parameter calibration, with the
/// covariance of offset and slope. What every other calibrator falls back on where it has no
/// events.
struct Line {
  double centre = 0.0, scale = 1.0;
  double offset = 0.0, slope = 0.0;
  double variance_offset = 0.0, covariance = 0.0, variance_slope = 0.0;

  double log_ratio(double logit) const { return -(offset + slope * (logit - centre) / scale); }
  double error(double logit) const;

  std::vector<double> values() const;
  static Line from(const std::vector<double>& values);
};

/// Mean and standard deviation of the scores of the sample in which both sides count the same;
/// the deviation is 1 where there is only one score.
struct Spread {
  double centre = 0.0, scale = 1.0;
};
Spread spread(const Cells& cells);

/// Platt's fit by Newton's method; finite whatever the cells.
Line fit_line(const Cells& cells);

/// The most that a log-ratio changes outside the range of the calibration.
inline constexpr double largest_extension = 10.0;

}  // namespace neyman::calibration
