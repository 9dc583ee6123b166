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
  // What is learned may know nothing of turns.
  if (parameters().periodic()) return (*sum_)(parameters().wrapped(point), gradient);
  return (*sum_)(point, gradient);
}

Matrix ParameterizedLikelihood::simulation_gradient_covariance(
    std::span<const double> point) const {
  return sum_->simulation_gradient_covariance(point);
}

Matrix ParameterizedLikelihood::simulation_replicas(MatrixView points, std::size_t count,
                                                    std::uint64_t seed) const {
  return sum_->simulation_replicas(points, count, seed);
}

void add_simulation(Fit& fit, const ParameterizedLikelihood& likelihood) {
  constexpr std::size_t replicas = 200;
  if (!fit.ok() || !likelihood.differentiable()) return;
  add_simulation_covariance(fit, likelihood.simulation_gradient_covariance(fit.point));
  for (std::size_t m = 1; m < fit.maxima.size(); ++m) {
    auto& other = fit.maxima[m];
    Matrix points(2, fit.point.size());
    std::copy(fit.point.begin(), fit.point.end(), points.row(0).begin());
    std::copy(other.point.begin(), other.point.end(), points.row(1).begin());
    const Matrix made = likelihood.simulation_replicas(points, replicas, 0);
    double mean = 0.0, squares = 0.0;
    for (std::size_t b = 0; b < made.rows(); ++b) mean += made(b, 0) - made(b, 1);
    mean /= static_cast<double>(std::max<std::size_t>(made.rows(), 1));
    for (std::size_t b = 0; b < made.rows(); ++b)
      squares += std::pow(made(b, 0) - made(b, 1) - mean, 2);
    other.simulation_error =
        made.rows() > 1 ? std::sqrt(squares / static_cast<double>(made.rows() - 1)) : 0.0;
  }
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
    log_densities = log_density(*distribution_, parameters_.wrapped(point), x_);
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
    const double high =
        parameter.periodic ? point[p] + step : std::min(parameter.high, point[p] + step);
    const double low =
        parameter.periodic ? point[p] - step : std::max(parameter.low, point[p] - step);
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
