#include "neyman/inference/parameterized_likelihood.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman {

namespace {
constexpr std::size_t points_together = 1024;
}

ParameterizedLikelihood::ParameterizedLikelihood(const ParameterizedRatio& ratio, MatrixView x,
                                                 std::span<const double> event_weights)
    : ratio_(ratio), events_(x.rows()), sum_(ratio.over(x, event_weights)) {}

double ParameterizedLikelihood::operator()(std::span<const double> point,
                                           std::span<double> gradient) const {
  // What is learned may know nothing of turns.
  if (parameters().periodic()) {
    const auto wrapped = parameters().wrapped(point);
    if (ratio_.region().holds(wrapped)) return (*sum_)(wrapped, gradient);
  } else if (ratio_.region().holds(point)) {
    return (*sum_)(point, gradient);
  }
  std::fill(gradient.begin(), gradient.end(), 0.0);
  return forbidden;
}

std::vector<double> ParameterizedLikelihood::at_allowed(MatrixView points) const {
  const auto& region = ratio_.region();
  // Of one event, all θ of a block go through the networks side by side.
  const auto all_of = [&](MatrixView of) {
    std::vector<double> out(of.rows());
    parallel_blocks(of.rows(), points_together, [&](Block block) {
      const auto values = sum_->at(of.rows(block.begin, block.end));
      std::copy(values.begin(), values.end(),
                out.begin() + static_cast<std::ptrdiff_t>(block.begin));
    });
    return out;
  };
  if (region.everywhere()) return all_of(points);
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < points.rows(); ++i)
    if (region.holds(points.row(i))) rows.push_back(i);
  Matrix some(rows.size(), points.cols());
  for (std::size_t k = 0; k < rows.size(); ++k)
    std::copy(points.row(rows[k]).begin(), points.row(rows[k]).end(), some.row(k).begin());
  std::vector<double> out(points.rows(), forbidden);
  const auto values = all_of(some);
  for (std::size_t k = 0; k < rows.size(); ++k) out[rows[k]] = values[k];
  return out;
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
