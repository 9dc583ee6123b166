#pragma once

#include <algorithm>
#include <cstddef>

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

}  // namespace neyman::across
