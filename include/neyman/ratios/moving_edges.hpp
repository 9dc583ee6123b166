#pragma once

#include <cstddef>
#include <vector>

#include "neyman/data/samples.hpp"

namespace neyman {

/// A feature whose largest or smallest values end at an edge that moves with a parameter, and where
/// the density jumps: no smooth density follows it.
struct MovingEdge {
  std::size_t feature, parameter;
  bool upper;
};
/// What shows among events in narrow windows of one parameter at a time; an edge that moves with
/// two of them may be missed. Where the extremes of 200 events are near an edge, they scatter by a
/// tenth of what lies between the first and the eleventh; where tails end them, by four tenths.
std::vector<MovingEdge> moving_edges(const Samples& events);
/// Whether a feature ends at an edge, moving or not, where the density jumps.
bool ends_sharply(const Samples& events, std::size_t feature, bool upper);

}  // namespace neyman
