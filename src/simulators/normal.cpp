#include "neyman/simulators/normal.hpp"

#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "neyman/core/check.hpp"
#include "simulators/reading.hpp"
#include "simulators/shapes.hpp"

namespace neyman {

Normal::Normal(Expression mean, Expression sigma)
    : mean_(std::move(mean)), sigma_(std::move(sigma)) {
  if (sigma_.constant()) check_positive("normal", "sigma", sigma_({}));
}

DistributionPtr Normal::make(Settings settings, const ParameterSpace& parameters,
                             const std::string&) {
  auto mean = detail::read_expression(settings, {"mean", "mean"}, parameters);
  auto sigma = detail::read_expression(settings, {"sigma", "standard deviation"}, parameters,
                                       Limits::positive());
  return std::make_shared<Normal>(std::move(mean), std::move(sigma));
}

double Normal::sigma(std::span<const double> point) const {
  const double sigma = sigma_(point);
  check_positive("normal", "sigma", sigma);
  return sigma;
}

void Normal::sample(std::span<const double> point, RandomStream& random, Matrix& out) const {
  detail::check_shape(*this, out);
  const double mu = mean_(point), s = sigma(point);
  random.fill_normal(out.values());
  for (double& value : out.values()) value = mu + s * value;
}

void Normal::sample_each(MatrixView points, RandomStream& random, Matrix& out) const {
  detail::check_shape(*this, points, out);
  std::vector<double> mu(out.rows()), s(out.rows());
  mean_.each(points, mu);
  sigma_.each(points, s);
  random.fill_normal(out.values());
  for (std::size_t i = 0; i < out.rows(); ++i) {
    check_positive("normal", "sigma", s[i]);
    out(i, 0) = mu[i] + s[i] * out(i, 0);
  }
}

void Normal::log_density(std::span<const double> point, MatrixView x, std::span<double> out) const {
  detail::check_shape(*this, x, out);
  const double mu = mean_(point), s = sigma(point);
  const double norm = -std::log(s) - 0.5 * std::log(2.0 * std::numbers::pi);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double z = (x(i, 0) - mu) / s;
    out[i] = norm - 0.5 * z * z;
  }
}

double Normal::cdf(std::span<const double> point, double x) const {
  return 0.5 * std::erfc(-(x - mean_(point)) / (sigma(point) * std::numbers::sqrt2));
}

double Normal::quantile(std::span<const double> point, double probability) const {
  detail::check_probability(*this, probability);
  if (probability == 0.0) return -std::numeric_limits<double>::infinity();
  if (probability == 1.0) return std::numeric_limits<double>::infinity();
  return mean_(point) -
         sigma(point) * std::numbers::sqrt2 * boost::math::erfc_inv(2.0 * probability);
}

}  // namespace neyman
