#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "neyman/core/archive.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/simulators/design.hpp"

namespace neyman {

/// Where a design has events: elsewhere what was learned from them is extrapolated, and polynomials
/// and networks may do anything.
///
/// All of the ranges, for a design that fills them (uniform, sobol, latin-hypercube, grid, or a
/// normal that has all corners within three standard deviations). Of all others it is learned from
/// the θ that events were simulated at: a θ belongs to it where it is near one of these, nearer
/// than 1.5 times the distance from that one to its tenth nearest other (of fewer than 100, to the
/// tenth part of their number). Distances are those of coordinates in which the covariance of the θ
/// is one (of log θ on a log scale). So it reaches to the corners of a box that is full (at most
/// 0.1 % of a uniform one is left out, in up to ten dimensions), to about five standard deviations
/// of a normal in up to three dimensions, follows bends, and may have holes and several pieces.
///
/// Known weaknesses: of many dimensions it is larger than where events are dense; of a few tens of
/// θ a gap between them may be left out.
///
/// Cheap to copy; safe to use from several threads. A lookup takes about 0.1 µs where θ is inside.
class DesignRegion {
 public:
  /// Everywhere.
  DesignRegion() = default;
  /// Of a design and the θ of its events, one a row; at most 4096 different ones are kept, chosen
  /// at random.
  /// @throw ArgumentError where the rows have other columns than there are parameters.
  DesignRegion(const Design& design, MatrixView theta);

  /// Whether all θ of the ranges belong to it.
  bool everywhere() const { return tree_ == nullptr; }
  bool holds(std::span<const double> point) const;
  /// The nearest θ of the design that it knows; empty where it is everywhere.
  std::span<const double> nearest(std::span<const double> point) const;

  /// The θ of the design that it knows, one a row; empty where it is everywhere.
  MatrixView known() const;

  void save(Archive& archive) const;
  /// @throw FileError where its parts do not belong together.
  static DesignRegion load(const Archive& archive, std::size_t parameters);

 private:
  struct Tree;
  std::shared_ptr<const Tree> tree_;
};

}  // namespace neyman
