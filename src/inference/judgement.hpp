#pragma once

#include <Eigen/Core>
#include <optional>
#include <string>
#include <vector>

#include "free_problem.hpp"

namespace neyman {

/// What the fit knows at its best point.
struct Judgement {
  bool arrived = false;
  bool peaked = false;  // second derivatives are those of a maximum
  std::vector<bool> at_bound;
  std::vector<std::size_t> inside;
  EigenMatrix inverse;   // of the second derivatives inside, in the unit scale
  Eigen::VectorXd step;  // Newton's, for the parameters inside
  // The same with the parameters at a bound along which ℓ bends downwards, as if the box went on.
  std::vector<std::size_t> bent;
  EigenMatrix covariance;
  double distance = 0.0, roughness = 0.0, fluctuation = 0.0;
  std::string message;
};

/// Judges the best point, and moves it by Newton steps inside the box as long as they bring the
/// fit nearer.
Judgement judge_and_step(FreeProblem& problem, const FitOptions& options, bool gradients);

/// BFGS inside the box, in units of the scale, where the second derivatives are near one: a
/// handful of gradients from a good start. Nothing where it does not arrive.
std::optional<Judgement> follow_gradient(FreeProblem& problem);

/// Where the best point lies beside the forbidden region: the maximum along its edge. One
/// parameter is pushed to the edge, by bisection, for each value of the others. Nothing where no
/// edge is beside.
std::optional<Judgement> follow_edge(FreeProblem& problem, const FitOptions& options,
                                     bool gradients);

}  // namespace neyman
