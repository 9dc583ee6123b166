#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/error.hpp"
#include "neyman/simulators/distribution.hpp"

// What the tests of distributions compare with.
namespace neyman::reference {

/// Random tests fail by chance at most this often, each.
inline constexpr double false_alarm = 1e-6;

/// P(a larger Kolmogorov–Smirnov distance) of values against a cdf; asymptotic, for many values.
inline double ks_p_value(std::vector<double> values, const std::function<double(double)>& cdf) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double distance = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double f = cdf(values[i]);
    distance =
        std::max({distance, f - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - f});
  }
  const double t = distance * (std::sqrt(n) + 0.12 + 0.11 / std::sqrt(n));
  double p = 0.0;
  for (int k = 1; k <= 100; ++k) p += (k % 2 == 1 ? 2.0 : -2.0) * std::exp(-2.0 * k * k * t * t);
  return t < 0.2 ? 1.0 : std::clamp(p, 0.0, 1.0);
}

/// ∫ p(x) dx over [low, high] by Simpson's rule.
inline double integral(const Distribution& distribution, std::span<const double> point, double low,
                       double high, std::size_t steps = 20000) {
  Matrix x(2 * steps + 1, 1);
  const double h = (high - low) / static_cast<double>(2 * steps);
  for (std::size_t i = 0; i < x.rows(); ++i) x(i, 0) = low + h * static_cast<double>(i);
  const auto log_p = log_density(distribution, point, x);
  double sum = 0.0;
  for (std::size_t i = 0; i < log_p.size(); ++i)
    sum += std::exp(log_p[i]) * (i == 0 || i + 1 == log_p.size() ? 1.0 : i % 2 == 1 ? 4.0 : 2.0);
  return sum * h / 3.0;
}

inline double log_density_at(const Distribution& distribution, std::span<const double> point,
                             std::vector<double> x) {
  const std::size_t d = x.size();
  return log_density(distribution, point, Matrix(1, d, std::move(x))).front();
}

/// The message of what `action` throws; empty where it throws nothing.
inline std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Moments {
  double mean, variance;
};
inline Moments moments(const std::vector<double>& values) {
  double mean = 0.0, variance = 0.0;
  for (const double v : values) mean += v / static_cast<double>(values.size());
  for (const double v : values)
    variance += (v - mean) * (v - mean) / static_cast<double>(values.size() - 1);
  return {mean, variance};
}

}  // namespace neyman::reference
