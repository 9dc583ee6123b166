#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <span>
#include <vector>

#include "measurements/evaluator.hpp"

namespace neyman::detail {

/// Minimises −ℓ of a model inside a box by Newton's method with exact second derivatives.
///
/// Each step minimises the quadratic form of gradient and Hessian over the box, by fixing what
/// would leave it and solving again for the others, and is shortened where ℓ does not rise enough.
/// The last step is not followed by an evaluation: it is taken where what is left of ℓ to rise is
/// below the tolerance, or the terms of third order, judged by the steps before, are far below it.
/// Where the Hessian is not positive, its diagonal is raised. The model must outlive it; one a
/// thread, and a fit allocates nothing.
class Minimiser {
 public:
  struct Outcome {
    bool ok = false;
    double value = 0.0;     // −ℓ at the point
    double distance = 0.0;  // what the last step was expected to gain
    int evaluations = 0;
    bool flat = false;  // the Hessian was not positive where it ended
  };

  /// `tables`: see UnbinnedTerms.
  explicit Minimiser(const CompiledModel& model, double tolerance = 1e-9, bool tables = false);

  /// The range of a parameter; equal ends hold it there.
  void set_range(std::size_t parameter, double low, double high);
  void hold(std::size_t parameter, double value) { set_range(parameter, value, value); }
  /// Back to the range of the model, or to its start where the model fixes it.
  void release(std::size_t parameter);

  /// From `start`, moved into the box.
  Outcome operator()(const MeasurementData& data, std::span<const double> start);
  /// The best of fits from `start` and, where ℓ may have several maxima, from further places: near
  /// both ends of the range of each parameter that makes them, and at `points` points that are
  /// drawn in these ranges, always the same.
  Outcome search(const MeasurementData& data, std::span<const double> start,
                 std::size_t points = default_points);
  /// The same with the ranges of these parameters, whatever the model.
  Outcome search(const MeasurementData& data, std::span<const double> start, std::size_t points,
                 std::span<const std::size_t> explored);
  static constexpr std::size_t default_points = 4;
  std::span<const double> point() const { return x_; }
  /// After a fit: its point moved to where −ℓ is least with a parameter at another value, by the
  /// quadratic form of the last evaluation. Where to begin with the parameter held there: a fit
  /// from `point()` that comes next knows how large this step was.
  void follow(std::size_t parameter, double value);

  /// After a fit: evaluates at its point with all derivatives.
  Evaluator& evaluate_there(const MeasurementData& data);
  bool held(std::size_t p) const { return low_[p] == high_[p]; }
  /// At an end of its range, and ℓ still rises outwards; by the derivatives of the last evaluation.
  bool at_bound(std::size_t p) const;

 private:
  /// Begins at a further place; where the fit there is better, it is kept.
  void try_start(const MeasurementData& data, std::span<const double> start, Outcome& best,
                 std::vector<double>& best_point);
  bool move_into_sight(const MeasurementData& data, Outcome& out);
  bool find_step(double damping);
  /// Of the quadratic form over `free_`, with what is fixed at its steps.
  bool solve(double damping, std::span<const double> gradient);
  void set_trial(double length);
  /// stepᵀ H step.
  double curvature() const;
  /// Moves along the step as far as ℓ rises enough; how far, or zero where it does not.
  double search_line(const MeasurementData& data, Outcome& out, double slope);

  const CompiledModel& model_;
  double tolerance_;
  std::size_t size_;
  Evaluator evaluate_;
  std::vector<double> low_, high_;
  std::vector<double> x_, trial_, step_;
  double led_by_ = 0.0;            // what the step of `follow` changed −ℓ by
  std::vector<char> to_bound_;     // by parameter: the full step ends at a bound
  std::vector<std::size_t> free_;  // in the quadratic form that is solved
  Eigen::MatrixXd matrix_;
  Eigen::VectorXd right_;
};

}  // namespace neyman::detail
