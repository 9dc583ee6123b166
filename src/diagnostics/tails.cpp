#include "diagnostics/tails.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "neyman/inference/statistics.hpp"

namespace neyman {

namespace {
constexpr double many = 1e6;  // degrees of freedom beyond which the limit is taken
}

double student_tail(double t, double degrees) {
  if (degrees > many) return 0.5 * std::erfc(t / std::sqrt(2.0));
  const boost::math::students_t student(std::max(1.0, degrees));
  return boost::math::cdf(boost::math::complement(student, t));
}

double student_two_sided(double t, double degrees) {
  return std::min(1.0, 2.0 * student_tail(std::abs(t), degrees));
}

double without_skewness(double t, double skewness) {
  const double g = skewness;
  return t + g * t * t / 3.0 + g * g * t * t * t / 27.0 + g / 6.0;
}

QuadraticForm test_deviations(const Eigen::VectorXd& deviations, const Eigen::MatrixXd& covariance,
                              double events) {
  QuadraticForm out;
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(covariance);
  const double largest = solver.eigenvalues().maxCoeff();
  if (!(largest > 0.0)) return out;
  const Eigen::VectorXd rotated = solver.eigenvectors().transpose() * deviations;
  for (Eigen::Index i = 0; i < rotated.size(); ++i) {
    const double variance = solver.eigenvalues()[i];
    if (variance <= 1e-10 * largest) continue;
    out.value += rotated[i] * rotated[i] / variance;
    out.degrees += 1.0;
  }
  const double rest = events - out.degrees;
  if (rest > many) {
    out.p_value = chi2_tail(out.value, out.degrees);
  } else if (rest >= 1.0) {
    const double f = out.value * rest / ((events - 1.0) * out.degrees);
    out.p_value = boost::math::cdf(
        boost::math::complement(boost::math::fisher_f(out.degrees, rest), std::max(0.0, f)));
  }
  return out;
}

}  // namespace neyman
