#include "neyman/simulators/ricker.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "neyman/core/check.hpp"
#include "simulators/reading.hpp"
#include "simulators/shapes.hpp"

namespace neyman {

namespace {

constexpr double largest_mean = 1e6;  // counts beyond are no population that anyone counts

void check_parameter(std::string_view name, double value) {
  if (!(value >= 0.0)) fail_argument("ricker", name, fmt::format("{}", value), "not negative");
}

}  // namespace

Ricker::Ricker(Expression log_r, Expression phi, Expression sigma_e, Config config)
    : log_r_(std::move(log_r)),
      phi_(std::move(phi)),
      sigma_e_(std::move(sigma_e)),
      config_(config) {
  check_at_least("ricker", "observations", config_.observations, 1);
  if (phi_.constant()) check_parameter("phi", phi_({}));
  if (sigma_e_.constant()) check_parameter("sigma_e", sigma_e_({}));
}

Ricker::Ricker(Expression log_r, Expression phi, Expression sigma_e)
    : Ricker(std::move(log_r), std::move(phi), std::move(sigma_e), Config{}) {}

DistributionPtr Ricker::make(Settings settings, const ParameterSpace& parameters,
                             const std::string&) {
  auto log_r =
      detail::read_expression(settings, {"log_r", "logarithm of the growth rate"}, parameters);
  auto phi = detail::read_expression(settings, {"phi", "events counted for each individual"},
                                     parameters, Limits::non_negative());
  auto sigma_e = detail::read_expression(
      settings, {"sigma_e", "standard deviation of the noise of the growth"}, parameters,
      Limits::non_negative());
  Config config;
  config.observations = settings.count({"observations", "counts of one event, its features"},
                                       config.observations, 1, 1'000'000);
  config.burn_in = settings.count({"burn_in", "steps before the first observation"}, config.burn_in,
                                  0, 1'000'000);
  return std::make_shared<Ricker>(std::move(log_r), std::move(phi), std::move(sigma_e), config);
}

void Ricker::sample(std::span<const double> point, RandomStream& random, Matrix& out) const {
  detail::check_shape(*this, out);
  const double log_r = log_r_(point), phi = phi_(point), sigma_e = sigma_e_(point);
  check_parameter("phi", phi);
  check_parameter("sigma_e", sigma_e);
  for (std::size_t i = 0; i < out.rows(); ++i) {
    // In logarithms: N falls below the smallest double after a large peak, and recovers.
    double log_n = 0.0;
    const auto step = [&] { log_n += log_r - std::exp(log_n) + sigma_e * random.normal(); };
    for (std::size_t t = 0; t < config_.burn_in; ++t) step();
    for (double& count : out.row(i)) {
      step();
      const double mean = phi * std::exp(log_n);
      if (!(mean <= largest_mean))
        fail_argument("ricker", "the expected count", fmt::format("{}", mean),
                      fmt::format("at most {}", largest_mean));
      count = static_cast<double>(random.poisson(mean));
    }
  }
}

}  // namespace neyman
