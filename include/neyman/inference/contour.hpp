#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "neyman/inference/fit.hpp"

namespace neyman {

class Tasks;

/// Vertices joined by straight lines. A closed one joins its last vertex to the first, which is
/// not repeated.
struct Polyline {
  std::vector<double> x, y;
  bool closed = false;
};

/// The lines on which −2 log Λ of two parameters, the others profiled, has one value.
struct Contour {
  double level = 0.683;
  double threshold = 0.0;  ///< of −2 log Λ
  std::vector<Polyline> lines;
  /// The region reaches the parameters' range or the window's: its lines end there, open, and it
  /// may have none at all.
  bool touches_bound = false;
  bool touches_edge =
      false;  ///< ends where θ beyond are not allowed, as where a design has no events
  std::size_t failed = 0;  ///< profile fits that did not converge on the way
  /// Where ℓ is higher than at the fit: the lines are then those of the higher maximum. Else empty.
  std::string message = {};
  std::vector<double> higher = {};  ///< the point; or empty
};

struct ContourConfig {
  std::vector<double> levels = {0.683, 0.95};
  /// One a level: values of −2 log Λ of one's own, for example from simulated data or widened by
  /// finite simulation. Empty: χ² quantiles with two degrees of freedom.
  std::vector<double> thresholds = {};
  /// Cells along each side of the window, a multiple of 16 (others are rounded), from which the
  /// lines are traced. For a region that is fewer than four cells wide, up to sixteen times as
  /// many.
  std::size_t cells = 32;
  /// Where to look. Empty: just around the region of the largest threshold.
  std::optional<FitRange> x = {}, y = {};
};

/// Contours of the first parameter (x) and the second (y).
///
/// Marching squares on a fine grid of which only the cells along the lines are evaluated; every
/// vertex lies on a grid edge and is found there by root finding, to 1e-4 of the edge. Where the
/// middle of a chord is off by more than 4e-3 of the threshold, vertices are put between.
///
/// The lines are found from a coarse grid of 16 × 16 cells that has the fit's maxima among its
/// nodes: every part of a disconnected or non-convex region that is as large as a coarse cell, and
/// always those around the maxima. The default window holds all pieces of the profile intervals of
/// `likelihood_interval`.
///
/// Rows of the coarse grid, and then levels, run in parallel, and each level traces on its own with
/// warm starts from the nodes beside it: the same numbers for any number of threads. Both are
/// `tasks` where others share them.
///
/// @throw ArgumentError where the parameters are the same or out of range, a level is not inside
///   (0, 1), a threshold is not positive, there are other than as many thresholds as levels, fewer
///   than 4 cells, or a window is empty or outside the parameter's range.
std::vector<Contour> contours(const Likelihood& likelihood, const Fit& best, std::size_t first,
                              std::size_t second, const ContourConfig& config = {},
                              Tasks* tasks = nullptr);

}  // namespace neyman
