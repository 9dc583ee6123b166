#include "neyman/inference/parameterized_likelihood.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"

namespace neyman {

ParameterizedLikelihood::ParameterizedLikelihood(const ParameterizedRatio& ratio, MatrixView x,
                                                 std::span<const double> event_weights)
    : ratio_(ratio), events_(x.rows()), sum_(ratio.over(x, event_weights)) {}

double ParameterizedLikelihood::operator()(std::span<const double> point,
                                           std::span<double> gradient) const {
  return (*sum_)(point, gradient);
}

Matrix ParameterizedLikelihood::simulation_gradient_covariance(
    std::span<const double> point) const {
  return sum_->simulation_gradient_covariance(point);
}

DensityLikelihood::DensityLikelihood(ParameterSpace parameters, DistributionPtr distribution,
                                     Matrix x, std::vector<double> event_weights)
    : parameters_(std::move(parameters)),
      distribution_(std::move(distribution)),
      x_(std::move(x)),
      weights_(std::move(event_weights)) {
  if (distribution_ == nullptr)
    fail_argument("DensityLikelihood", "distribution", "null", "a distribution");
  if (!distribution_->has_density())
    fail_argument("DensityLikelihood", "distribution", distribution_->kind(),
                  "one that knows its density");
  if (!weights_.empty())
    check_same_size("DensityLikelihood", "event_weights", weights_.size(), x_.rows(),
                    "one for each event");
}

double DensityLikelihood::value(std::span<const double> point) const {
  std::vector<double> log_densities;
  try {
    log_densities = log_density(*distribution_, point, x_);
  } catch (const ArgumentError&) {
    return forbidden;  // a sigma that is not positive at this θ, for example
  }
  double sum = 0.0;
  for (std::size_t i = 0; i < log_densities.size(); ++i)
    sum += (weights_.empty() ? 1.0 : weights_[i]) * log_densities[i];
  return std::isfinite(sum) ? sum : forbidden;
}

double DensityLikelihood::operator()(std::span<const double> point,
                                     std::span<double> gradient) const {
  const double here = value(point);
  if (gradient.empty()) return here;
  std::fill(gradient.begin(), gradient.end(), 0.0);
  if (here == forbidden) return here;
  std::vector<double> moved(point.begin(), point.end());
  for (std::size_t p = 0; p < moved.size(); ++p) {
    const auto& parameter = parameters_[p];
    const double step = 1e-5 * (parameter.high - parameter.low);
    const double high = std::min(parameter.high, point[p] + step);
    const double low = std::max(parameter.low, point[p] - step);
    moved[p] = high;
    const double above = value(moved);
    moved[p] = low;
    const double below = value(moved);
    moved[p] = point[p];
    if (above != forbidden && below != forbidden)
      gradient[p] = (above - below) / (high - low);
    else if (above != forbidden)
      gradient[p] = (above - here) / (high - point[p]);
    else if (below != forbidden)
      gradient[p] = (here - below) / (point[p] - low);
  }
  return here;
}

}  // namespace neyman
