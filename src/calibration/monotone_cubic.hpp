#pragma once

#include <vector>

#include "calibration/lookup.hpp"

// Interpolation through points (x, y) by cubics that neither overshoot nor, where the points do
// not, turn (Fritsch and Butland 1984). Outside of the points it goes straight on.
namespace neyman::calibration {

std::vector<double> monotone_slopes(const std::vector<double>& x, const std::vector<double>& y);

/// `lookup` is of x.
double evaluate_monotone_cubic(const std::vector<double>& x, const std::vector<double>& y,
                               const std::vector<double>& slopes, const Lookup& lookup, double at);

/// Standard deviation of the straight line between points with independent errors; outside
/// of the points that of the nearest.
double interpolate_errors(const std::vector<double>& x, const std::vector<double>& errors,
                          double at);

}  // namespace neyman::calibration
