#pragma once

#include "calibration/line.hpp"

namespace neyman::calibration {

/// A log-ratio and its standard deviation.
struct Estimate {
  double log_ratio = 0.0, error = 0.0;
};

/// The log-ratio of counts of both sides, with two events of prior split as the sigmoid
/// calibration has it at `logit`, and the error of a ratio of counts.
Estimate estimate_from_counts(double numerator, double denominator, double numerator_total,
                              double denominator_total, const Line& line, double logit);

/// Log-likelihood of the sides of n0 and n1 events at a log-ratio, given the totals' log-odds.
double side_log_likelihood(double numerator, double denominator, double log_ratio,
                           double prior_odds);

}  // namespace neyman::calibration
