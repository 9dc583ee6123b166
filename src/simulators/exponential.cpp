#include "neyman/simulators/exponential.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "neyman/core/check.hpp"
#include "simulators/reading.hpp"
#include "simulators/shapes.hpp"

namespace neyman {

Exponential::Exponential(Expression rate, Expression location)
    : rate_(std::move(rate)), location_(std::move(location)) {
  if (rate_.constant()) check_positive("exponential", "rate", rate_({}));
}

DistributionPtr Exponential::make(Settings settings, const ParameterSpace& parameters,
                                  const std::string&) {
  auto rate = detail::read_expression(settings, {"rate", "one over the mean above location"},
                                      parameters, Limits::positive());
  auto location = detail::read_expression(settings, {"location", "where it begins"}, parameters,
                                          Limits::any(), 0.0);
  return std::make_shared<Exponential>(std::move(rate), std::move(location));
}

double Exponential::rate(std::span<const double> point) const {
  const double rate = rate_(point);
  check_positive("exponential", "rate", rate);
  return rate;
}

void Exponential::sample(std::span<const double> point, RandomStream& random, Matrix& out) const {
  detail::check_shape(*this, out);
  const double location = location_(point), scale = 1.0 / rate(point);
  random.fill_exponential(out.values());
  for (double& value : out.values()) value = location + scale * value;
}

void Exponential::sample_each(MatrixView points, RandomStream& random, Matrix& out) const {
  detail::check_shape(*this, points, out);
  std::vector<double> location(out.rows()), rate(out.rows());
  location_.each(points, location);
  rate_.each(points, rate);
  random.fill_exponential(out.values());
  for (std::size_t i = 0; i < out.rows(); ++i) {
    check_positive("exponential", "rate", rate[i]);
    out(i, 0) = location[i] + 1.0 / rate[i] * out(i, 0);
  }
}

void Exponential::log_density(std::span<const double> point, MatrixView x,
                              std::span<double> out) const {
  detail::check_shape(*this, x, out);
  const double location = location_(point), lambda = rate(point), log_rate = std::log(lambda);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double distance = x(i, 0) - location;
    out[i] =
        distance < 0.0 ? -std::numeric_limits<double>::infinity() : log_rate - lambda * distance;
  }
}

double Exponential::cdf(std::span<const double> point, double x) const {
  const double distance = x - location_(point);
  return distance <= 0.0 ? 0.0 : -std::expm1(-rate(point) * distance);
}

double Exponential::quantile(std::span<const double> point, double probability) const {
  detail::check_probability(*this, probability);
  return location_(point) - std::log1p(-probability) / rate(point);
}

}  // namespace neyman
