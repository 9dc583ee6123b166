#pragma once

#include <span>

namespace neyman {

/// The value that a χ² variable with `degrees` degrees of freedom exceeds with probability
/// 1 − `level`: the threshold of −2 log Λ for an interval or contour of that level.
double chi2_quantile(double level, double degrees = 1.0);
/// P(χ² > value).
double chi2_tail(double value, double degrees = 1.0);
/// The level of a two-sided interval of ±sigmas of a normal: 1 gives 0.6827.
double level_of_sigmas(double sigmas);

struct KolmogorovSmirnov {
  double statistic = 0.0;  ///< largest distance of the empirical from the expected cdf
  double p_value = 1.0;    ///< asymptotic, with Stephens' correction for small samples
};
/// Tests `values` against a χ² distribution.
KolmogorovSmirnov ks_test_chi2(std::span<const double> values, double degrees = 1.0);

double mean(std::span<const double> values);
/// Standard deviation with n − 1; 0 for fewer than two values.
double standard_deviation(std::span<const double> values);

}  // namespace neyman
