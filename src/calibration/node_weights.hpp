#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "neyman/core/matrix.hpp"

// How much each node of a set of parameter points counts at a point between them.
namespace neyman::calibration {

/// Weights of the nodes that count at a point. At a node that node has weight 1, all others 0.
struct NodeWeights {
  std::vector<std::size_t> nodes;
  std::vector<double> smooth;    ///< one a node; sum 1; may be negative
  std::vector<double> positive;  ///< one a node; sum 1; none negative
  // Derivatives with respect to the point, nodes × parameters; empty unless asked for.
  Matrix smooth_slopes, positive_slopes;

  std::size_t size() const { return nodes.size(); }
};

/// Σ_k weights[k] rows[nodes[k]], a row.
std::vector<double> weighted_sum(const Matrix& rows, const std::vector<std::size_t>& nodes,
                                 std::span<const double> weights);

/// Where the nodes are. A rectangular grid (every combination of the values of each parameter,
/// once, in any order) is recognised; any other set of distinct points is scattered.
///
/// On a grid `positive` are the multilinear weights of the corners of the cell. `smooth` are the
/// same or, when `cubic`, the product over the parameters of the weights of a cubic Hermite piece
/// whose slope at a value is that of the parabola through it and its neighbours: continuous with
/// its derivative, exact for what is quadratic in each parameter, at most four values a parameter.
/// A parameter with two values is interpolated linearly, one with a single value is ignored.
///
/// For scattered nodes `smooth` are those of radial basis functions |θ − θ_k|³ with a linear
/// polynomial, in units of each parameter's range, exact for what is linear; `positive` is their
/// positive part, normalised.
///
/// Outside of the smallest box that holds the nodes, a point counts as the nearest of the box.
class NodeLayout {
 public:
  NodeLayout() = default;
  /// @throw ArgumentError without nodes or parameters, on values that are not finite, and on two
  /// nodes at the same place.
  NodeLayout(MatrixView nodes, bool cubic);

  std::size_t parameters() const { return low_.size(); }
  bool is_grid() const { return basis_.empty(); }
  NodeWeights at(std::span<const double> point, bool with_slopes = false) const;

 private:
  NodeWeights on_grid(std::span<const double> point, bool with_slopes) const;
  NodeWeights scattered(std::span<const double> point, bool with_slopes) const;
  bool find_grid(MatrixView nodes);
  void find_basis(MatrixView nodes);

  bool cubic_ = true;
  std::vector<double> low_, high_;         // the box
  std::vector<std::vector<double>> axes_;  // values of each parameter
  std::vector<std::size_t> node_of_;       // node at each place of the grid, last parameter fastest
  Matrix scaled_;                          // scattered nodes in units of the box
  Matrix basis_;                           // their weights from basis functions and polynomial
};

}  // namespace neyman::calibration
