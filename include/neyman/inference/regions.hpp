#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "neyman/inference/fit.hpp"

namespace neyman {

/// A fit with the intervals and the curve of each parameter.
struct Regions {
  Fit fit;
  std::vector<std::vector<Interval>> intervals;              ///< [parameter][level]
  std::vector<std::vector<Interval>> statistical_intervals;  ///< without finite simulation
  std::vector<Scan> scans;  ///< one a parameter, over its widest interval and beside it
};

struct RegionsPlan {
  std::vector<double> levels = {0.683, 0.95};
  std::size_t scan_points = 101;  ///< 0: no scans
  /// Adds what finite simulation does to a fit; empty: nothing.
  std::function<void(Fit&)> add_simulation = {};
  std::function<void(std::size_t steps)> advance = {};  ///< one for each level and each scan point
};

/// Intervals and scans that agree with each other and with the fit: where one of them comes upon a
/// higher maximum, the fit begins again from there, and where it comes upon another maximum within
/// the largest level, that one is added to the fit's `maxima`; all is then done again with what is
/// known. `best` has what finite simulation adds already.
Regions find_regions(const Likelihood& likelihood, Fit best, const RegionsPlan& plan);

}  // namespace neyman
