#include "neyman/inference/statistics.hpp"

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>
#include <vector>

#include "neyman/core/check.hpp"

namespace neyman {

double chi2_quantile(double level, double degrees) {
  check_in_range("chi2_quantile", "level", level, 0.0, 1.0 - 1e-15);
  return boost::math::quantile(boost::math::chi_squared(degrees), level);
}

double chi2_tail(double value, double degrees) {
  if (value <= 0.0) return 1.0;
  return boost::math::cdf(boost::math::complement(boost::math::chi_squared(degrees), value));
}

double level_of_sigmas(double sigmas) { return std::erf(sigmas / std::sqrt(2.0)); }

KolmogorovSmirnov ks_test_chi2(std::span<const double> values, double degrees) {
  if (values.empty()) return {};
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const auto n = static_cast<double>(sorted.size());
  double distance = 0.0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double expected = 1.0 - chi2_tail(sorted[i], degrees);
    distance = std::max({distance, expected - static_cast<double>(i) / n,
                         static_cast<double>(i + 1) / n - expected});
  }
  // Kolmogorov's distribution, 2 Σ (−1)^(k−1) e^(−2 k² λ²).
  const double lambda = (std::sqrt(n) + 0.12 + 0.11 / std::sqrt(n)) * distance;
  double p_value = 0.0;
  for (int k = 1; k <= 100; ++k)
    p_value += (k % 2 == 1 ? 2.0 : -2.0) * std::exp(-2.0 * k * k * lambda * lambda);
  // The series alternates without end where λ is small and p is 1.
  return {distance, lambda < 0.2 ? 1.0 : std::clamp(p_value, 0.0, 1.0)};
}

double mean(std::span<const double> values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return values.empty() ? 0.0 : sum / static_cast<double>(values.size());
}

double standard_deviation(std::span<const double> values) {
  if (values.size() < 2) return 0.0;
  const double centre = mean(values);
  double sum = 0.0;
  for (const double value : values) sum += (value - centre) * (value - centre);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

}  // namespace neyman
