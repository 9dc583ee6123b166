#pragma once

#include <cstddef>
#include <span>
#include <vector>

// Edges of histogram bins from values. All give rising edges whose first is at or below the
// smallest value and whose last is at or above the largest, also for ties, for one value and for
// a constant (whose bin then reaches 0.5, or more where that is lost in rounding, to each side).
// Weights: one a value, not negative and not all zero, or empty.
// All throw ArgumentError where there is no value or one is not finite.
namespace neyman {

/// `bins` bins of equal width.
std::vector<double> uniform_edges(std::span<const double> values, std::size_t bins);

/// Bins of equal probability: about `bins`, fewer where ties leave no room for an edge between.
/// Edges lie midway between neighbouring values.
std::vector<double> equal_probability_edges(std::span<const double> values,
                                            std::span<const double> weights, std::size_t bins);

/// Bayesian blocks (Scargle et al. 2013): the piecewise constant density that maximises
/// Σ N (log N − log T) − blocks · prior over all partitions, with N events in a width T and the
/// prior 4 − log(73.53 p₀ N^−0.478). `false_alarm` is p₀, the rate of edges that noise makes.
/// Weighted events count as their effective number (Σw)² / Σw². Values beyond some thousand are
/// first put into cells of equal probability: O(cells²), not O(n²).
std::vector<double> bayesian_blocks_edges(std::span<const double> values,
                                          std::span<const double> weights,
                                          double false_alarm = 0.05);

}  // namespace neyman
