#pragma once

#include <Eigen/Core>
#include <vector>

#include "free_problem.hpp"

namespace neyman {

/// Second derivatives of −ℓ in the unit scale: the likelihood's own, or from differences of
/// gradients inside the box.
EigenMatrix hessian(FreeProblem& problem, const std::vector<double>& unit);

/// What values alone tell of a function near a point of the unit box.
struct Shape {
  Eigen::VectorXd gradient;
  EigenMatrix hessian;
  double roughness = 0.0;    ///< RMS of what the polynomials leave
  double fluctuation = 0.0;  ///< the same without axes along which the function has one valley
};

/// From polynomials fitted to values over about one standard error, the length at which the
/// function has risen by a half: fluctuations of the function are averaged.
Shape shape_of_values(const Objective& function, const std::vector<double>& unit);

}  // namespace neyman
