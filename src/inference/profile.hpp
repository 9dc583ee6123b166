#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "neyman/inference/fit.hpp"

namespace neyman {

/// −2 log Λ with some parameters held and the others profiled. Keeps no state, so that rows of a
/// grid can run in parallel; the caller hands over the neighbour to start from.
class Profile {
 public:
  struct Value {
    double statistic = 0.0;     // never negative, never above `most`
    double log_likelihood = 0;  // of the profiled point
    std::vector<double> point;
    bool ok = true;
  };
  /// What the statistic is capped at, so that a forbidden point does not spoil a root search.
  static constexpr double most = 1e12;

  /// `reach`: a search that does not arrive at once is given up where the statistic is above.
  Profile(const Likelihood& likelihood, const Fit& best, std::vector<std::size_t> held,
          double reach = most);

  /// At these values of the held parameters, of which periodic ones may be anywhere on the line.
  /// The search starts from the highest of: the points of the neighbours (null: none), each of the
  /// fit's maxima, and the point that its covariance predicts. A neighbour that lies on another
  /// branch than where it arrives is followed, too, and the higher branch is taken.
  Value operator()(std::span<const double> values, const Value* neighbour,
                   const Value* other = nullptr) const;
  /// The higher of a value that is known here and what following a neighbour leads to.
  Value improve(std::span<const double> values, Value known, const Value& neighbour) const;
  /// By how much ℓ must be above that of the fit to be called higher.
  static double allowance(const Likelihood& likelihood, const Fit& best);

 private:
  /// Errors of each parameter with all others fixed, the natural unit of a search.
  void set_conditional_scale();
  std::vector<double> predict(std::span<const double> values) const;
  std::vector<double> in_periods(std::span<const double> values) const;
  /// A point with the held parameters at these values.
  std::vector<double> held_at(std::span<const double> values, std::vector<double> point) const;
  /// Whether a neighbour's branch is another than the one of a point.
  bool another_branch(std::span<const double> values, const Value& neighbour,
                      const std::vector<double>& point) const;
  /// The maximum over the other parameters that a start leads to.
  Value follow(std::span<const double> values, std::vector<double> start) const;
  /// The highest ℓ along one free parameter, from `out.point`; false where that takes a fit.
  bool find_top(std::size_t free, Value& out) const;

  const Likelihood& likelihood_;
  const Fit& best_;
  std::vector<std::size_t> held_;
  double reach_;
  std::vector<double> scale_;
  Matrix regression_;  // parameters × held: C_ph C_hh⁻¹
};

}  // namespace neyman
