#pragma once

#include <Eigen/Core>

// Tail probabilities that the diagnostics share.
namespace neyman {

/// P(T > t) of Student's distribution; of the normal one for many degrees of freedom.
double student_tail(double t, double degrees);
/// P(|T| > |t|).
double student_two_sided(double t, double degrees);

/// Hall's transformation of a mean in standard errors, t, whose parts have third moments that sum
/// to `skewness` error³: closer to Student's distribution than t, and monotone in it.
double without_skewness(double t, double skewness);

struct QuadraticForm {
  double value = 0.0;    ///< dᵀ V⁻¹ d
  double degrees = 0.0;  ///< rank of V
  double p_value = 1.0;
};
/// Tests that deviations d have mean zero, with their covariance V estimated from so many
/// (effective) events: Hotelling's distribution, χ² for many events. Directions in which V vanishes
/// are left out.
QuadraticForm test_deviations(const Eigen::VectorXd& deviations, const Eigen::MatrixXd& covariance,
                              double events);

}  // namespace neyman
