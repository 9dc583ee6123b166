#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "neyman/core/archive.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/core/parameters.hpp"
#include "neyman/core/polynomial_basis.hpp"
#include "neyman/data/samples.hpp"
#include "ratios/periodic_columns.hpp"

namespace neyman::across {

/// Where features end at edges that move with θ (see moving_edges.hpp), and the features as they
/// are told from there: the support of what is left does not move, so that a smooth density
/// describes it.
///
/// An edge e(θ) is the polynomial with the least mean over the events of those that no event lies
/// beyond. That is what maximises the likelihood of events that are uniform up to the edge, and it
/// misses the edge by no more than the next event does. A feature becomes a number in [0, 1]:
/// between two edges, of which one may stand still, the part of the way; beyond one edge d / (d +
/// m) with d the distance from it and m the median distance.
class FittedEdges {
 public:
  FittedEdges() = default;
  /// Finds the edges of events with θ. Their weights do not matter; angles have none.
  FittedEdges(const Samples& events, const ParameterSpace& parameters,
              const PeriodicColumns& angles = {});

  bool empty() const { return features_.empty(); }
  /// Whether this feature is told from edges, and lies in [0, 1] then.
  bool tells(std::size_t feature) const;
  /// Tells the features of one event from the edges at θ.
  /// @return the log of the Jacobian. An event beyond an edge comes to lie on it, and is forbidden
  /// as
  ///   far as the edge is known: by its distance in units of what the edge may be off by.
  double tell(std::span<double> x, std::span<const double> point) const;
  /// The same of all rows at one θ, or each at its own where there are as many; Jacobians are added
  /// to `log_jacobians`, unless it is null.
  void tell(Matrix& x, MatrixView points, double* log_jacobians = nullptr) const;

  void save(Archive& archive) const;
  /// @throw FileError where its parts do not belong together.
  static FittedEdges load(const Archive& archive, const ParameterSpace& parameters,
                          std::size_t features);

 private:
  /// One side of a feature.
  struct Edge {
    std::vector<double> coefficients = {};  ///< of e(θ), the constant first; none: no edge
    double blur = 0.0;                      ///< what it may be off by, in units of what is told
  };
  struct Feature {
    std::size_t column = 0;
    Edge lower, upper;
    double median = 0.0;  ///< distance, where there is one edge
  };
  static double at(const Edge& edge, std::span<const double> polynomials);
  static double tell(double& x, const Feature& feature, std::span<const double> polynomials);
  std::vector<double> polynomials(std::span<const double> point) const;

  PolynomialBasis basis_;
  std::vector<Feature> features_;
};

}  // namespace neyman::across
