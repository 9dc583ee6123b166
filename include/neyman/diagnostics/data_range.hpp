#pragma once

#include <string>
#include <vector>

#include "neyman/core/matrix.hpp"
#include "neyman/diagnostics/diagnostic.hpp"

namespace neyman {

struct DataRangeConfig {
  /// The share of the data outside that fails, and does not only warn.
  double harmful = 0.05;
  std::vector<std::string> names = {};  ///< of the features; empty: x0, x1, …
};

/// Do the data lie where events were simulated? For each feature, how many events of the data are
/// below the least or above the largest of N simulated ones. If both have the same distribution,
/// whatever it is, that number among n is beta-binomial, with a mean of 2 n / (N + 1); the p-value
/// is the smallest over the features, corrected for their number (Šidák). Ties count as inside:
/// features with few values raise fewer false alarms than the level says. What the data have inside
/// the range and the simulation has not, it does not see.
/// @throw ArgumentError where there are no data, fewer than two simulated events, or other columns.
Diagnostic diagnose_data_range(MatrixView data, MatrixView simulated,
                               const DataRangeConfig& config = {});

}  // namespace neyman
