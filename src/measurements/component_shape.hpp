#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "measurements/cumulant_table.hpp"
#include "measurements/evaluation_order.hpp"
#include "measurements/normaliser_table.hpp"
#include "measurements/unbinned_kernels.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/measurements/shape.hpp"
#include "neyman/measurements/unbinned_channel.hpp"

namespace neyman::detail {

/// All shapes of a component as one, over all their parameters φ ("moving"), each once.
class ComponentShape {
 public:
  /// `places[s]` are those of the parameters of shapes[s] among the moving ones.
  ComponentShape(std::vector<ShapePtr> shapes, std::vector<std::vector<std::size_t>> places,
                 std::size_t moving);
  ComponentShape() = default;

  std::size_t functions() const { return functions_; }
  std::size_t moving() const { return moving_; }

  /// b_k(φ) and its derivatives at one point.
  struct Values {
    std::vector<double> values;                        // functions
    std::vector<double> first;                         // moving × functions
    std::vector<double> second;                        // moving × moving × functions
    std::vector<double> point, own_first, own_second;  // memory of one shape
  };
  void evaluate(std::span<const double> point, EvaluationOrder order, Values& out) const;
  /// Where higher derivatives by a moving parameter jump, ascending, each once.
  std::vector<double> breaks(std::size_t moving) const;

 private:
  std::vector<ShapePtr> shapes_;
  std::vector<std::vector<std::size_t>> places_;
  std::size_t functions_ = 0, moving_ = 0;
};

/// Simulated events of the reference as those of a component.
struct ComponentWeights {
  ComponentWeights(const UnbinnedEvents& events, std::size_t component);

  std::vector<double> weights;  ///< w_j r_c(x_j), over their sum
  double sum = 0.0;             ///< where it is not positive, the component cannot be normalised
  double mean_ratio = 1.0;      ///< of r_c over the reference
};

/// Z(φ) = Σ_j w_j exp(Σ_k b_k(φ) f_k(x_j)) over simulated events with weights of sum one, event by
/// event.
class DirectNormaliser {
 public:
  /// The events must outlive it.
  DirectNormaliser(ComponentShape shape, const Matrix& functions, std::size_t first_row,
                   std::vector<double> weights);

  /// log Z with its derivatives, for b(φ) that are given.
  void evaluate(const ComponentShape::Values& at, EvaluationOrder order, LogNormaliser& out) const;
  /// log Z(φ) at many φ, one a row.
  std::vector<double> each(const Matrix& points) const;
  /// The same of many b; of `some` events alone, as if there were no more.
  std::vector<double> of_coefficients(const Matrix& coefficients, bool some = false) const;
  /// log Z at b = centre + Σ_i u_i step_i, each u_i at all `nodes` (symmetric), the last one
  /// fastest.
  std::vector<double> on_lattice(std::span<const double> centre, const Matrix& steps,
                                 std::span<const double> nodes, bool some = false) const;
  /// Whether there are many events, so that some of them say how smooth log Z is.
  bool has_some() const;
  /// Of the functions over the events.
  Matrix covariance() const;
  const ComponentShape& shape() const { return shape_; }

 private:
  /// How many of the first events are meant.
  std::size_t count(bool some) const { return some ? weights_.size() / 16 : weights_.size(); }

  ComponentShape shape_;
  std::vector<const double*> rows_;
  std::vector<double> weights_;
};

/// A table of log Z that is made when it is first asked for: it pays for the fits of many datasets.
class TableOnDemand {
 public:
  TableOnDemand(std::vector<NormaliserTable::Axis> axes,
                std::shared_ptr<const DirectNormaliser> direct)
      : axes_(std::move(axes)), direct_(std::move(direct)) {}
  /// This, made; null where no table is good. To be called before the first evaluation.
  const TableOnDemand* get() const;
  /// log Z(φ) with its derivatives, for b(φ) that are given; false where the table does not know
  /// it.
  bool evaluate(std::span<const double> point, const ComponentShape::Values& at,
                EvaluationOrder order, LogNormaliser& out) const;

 private:
  /// Over the coefficients, where there are few and not more of them than parameters.
  std::unique_ptr<const CumulantTable> by_coefficients() const;

  std::vector<NormaliserTable::Axis> axes_;
  std::shared_ptr<const DirectNormaliser> direct_;
  mutable std::once_flag once_;
  mutable std::unique_ptr<const CumulantTable> cumulants_;
  mutable std::shared_ptr<const NormaliserTable> table_;
};

}  // namespace neyman::detail
