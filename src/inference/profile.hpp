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

  Profile(const Likelihood& likelihood, const Fit& best, std::vector<std::size_t> held);

  /// At these values of the held parameters. The search starts from the higher of the
  /// neighbour's point (null: none) and the point that the fit's covariance predicts.
  Value operator()(std::span<const double> values, const Value* neighbour) const;

 private:
  /// Errors of each parameter with all others fixed, the natural unit of a search.
  void set_conditional_scale();
  std::vector<double> predict(std::span<const double> values) const;
  /// The highest ℓ along one free parameter, from `out.point`; false where that takes a fit.
  bool find_top(std::size_t free, Value& out) const;

  const Likelihood& likelihood_;
  const Fit& best_;
  std::vector<std::size_t> held_;
  std::vector<double> scale_;
  Matrix regression_;  // parameters × held: C_ph C_hh⁻¹
};

}  // namespace neyman
