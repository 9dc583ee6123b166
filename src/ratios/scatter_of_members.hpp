#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "neyman/core/matrix.hpp"

namespace neyman::across {

/// Where there is one member alone, so large a part of the events tells when to stop.
inline constexpr std::size_t parts_of_one = 10;

/// Of how many parts of the events each member lacks one.
inline std::size_t parts_for(std::size_t parts, std::size_t members) {
  return std::max(parts, members > 1 ? members : parts_of_one);
}

/// Of the sum of the squares of what the members differ by, as much as the square of what their
/// mean is off by. They differ by the chances of training, of which the mean keeps one part of
/// their number, and by the fold that each lacks, of which the jackknife makes what all events
/// together are off by: (parts − 1)²/parts times as much (Efron and Stein 1981). Which of the two
/// it is cannot be told: half is taken for each.
inline double scatter_factor(std::size_t members, std::size_t all_parts) {
  const auto count = static_cast<double>(members), parts = static_cast<double>(all_parts);
  const double of_chance = 1.0 / count, of_events = (parts - 1.0) * (parts - 1.0) / parts;
  return 0.5 * (of_chance + of_events) / (count - 1.0);
}

/// From numbers of each member (rows) to how far each is from their mean, times the root of the
/// factor: a row per thing that fluctuates. Of fewer than two members nothing is known: zero.
inline Matrix deviations_of_members(Matrix of, std::size_t parts) {
  const std::size_t members = of.rows();
  const double factor = members < 2 ? 0.0 : std::sqrt(scatter_factor(members, parts));
  for (std::size_t g = 0; g < of.cols(); ++g) {
    double mean = 0.0;
    for (std::size_t k = 0; k < members; ++k) mean += of(k, g) / static_cast<double>(members);
    for (std::size_t k = 0; k < members; ++k) of(k, g) = factor * (of(k, g) - mean);
  }
  return of;
}

/// Σ w r rᵀ over rows r; `weights`: one per row, or empty: all 1.
inline Matrix sum_of_squares(const Matrix& rows, std::span<const double> weights = {}) {
  Matrix out(rows.cols(), rows.cols());
  for (std::size_t i = 0; i < rows.rows(); ++i)
    for (std::size_t p = 0; p < rows.cols(); ++p)
      for (std::size_t q = 0; q < rows.cols(); ++q)
        out(p, q) += (weights.empty() ? 1.0 : weights[i]) * rows(i, p) * rows(i, q);
  return out;
}

}  // namespace neyman::across
