#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/matrix.hpp"
#include "neyman/diagnostics/diagnostic.hpp"

namespace neyman {

/// −2 log Λ of one dataset as found with one reference θ1, on a grid of θ that all share.
struct ReferenceCurve {
  std::string name;               ///< "θ1 = (0, 1)"
  std::vector<double> statistic;  ///< −2 log Λ at each point of the grid
  std::vector<double> deviation;  ///< its standard deviation from finite simulation, at each point
  Matrix replicas;                ///< the same curve in bootstrap replicas (rows), or empty
  std::vector<double> estimate;   ///< θ̂, or empty
  Matrix estimate_covariance;     ///< of θ̂, from finite simulation alone
};

/// The curve of one reference from ℓ on an even grid of one parameter: −2 log Λ is measured from
/// the top of the parabola that fits ℓ best, as a calibration makes single points rough, and that
/// top is the estimate. Where the parabola has none inside [low, high], the nearer end is.
/// @param replicas of ℓ (rows), from which the deviations come; empty: they are 0.
/// @throw ArgumentError with fewer than three points, or where sizes disagree.
ReferenceCurve reference_curve(std::string name, std::span<const double> grid,
                               std::span<const double> log_likelihood, MatrixView replicas,
                               double low, double high);

struct ReferenceConfig {
  double tolerance = 0.1;    ///< of −2 log Λ
  std::size_t draws = 4999;  ///< of replicas
  std::uint64_t seed = 0;
};

/// Does the result depend on the reference, which it must not? Two tests, of which the smaller
/// p-value counts, doubled: the mean square of the curves' differences from their mean in
/// standard deviations, and χ² of the estimates about their mean.
///
/// Where every curve has replicas (at least 20), the distribution of the first comes from
/// drawing one at random for each curve. Otherwise the points of a curve are taken to move
/// together, χ² with one degree less than there are curves, which is exact for curves that move
/// as a whole and cautious for others.
/// @param grid the points, one row each; with one column the curves are drawn against it, else
/// against their number.
/// @throw ArgumentError with fewer than two curves or where sizes disagree.
Diagnostic diagnose_reference(std::span<const ReferenceCurve> curves, MatrixView grid,
                              const ReferenceConfig& config = {});

}  // namespace neyman
