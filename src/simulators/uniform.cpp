#include "neyman/simulators/uniform.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "neyman/core/check.hpp"
#include "simulators/reading.hpp"
#include "simulators/shapes.hpp"

namespace neyman {

Uniform::Uniform(Expression low, Expression high) : low_(std::move(low)), high_(std::move(high)) {
  if (low_.constant() && high_.constant()) range({});
}

DistributionPtr Uniform::make(Settings settings, const ParameterSpace& parameters,
                              const std::string&) {
  auto low = detail::read_expression(settings, {"low", "lower end"}, parameters, Limits::any());
  auto high = detail::read_expression(settings, {"high", "upper end, above low"}, parameters,
                                      Limits::any());
  if (!settings.has("low") || !settings.has("high")) return nullptr;
  for (const auto& point : detail::trial_points(parameters)) {
    if (low(point) < high(point)) continue;
    settings.problem("high", fmt::format("is \"{}\", which is {}, but must be above low, which "
                                         "is {}",
                                         high.text(), high(point), low(point)));
    return nullptr;
  }
  return std::make_shared<Uniform>(std::move(low), std::move(high));
}

Uniform::Range Uniform::range(std::span<const double> point) const {
  return checked({low_(point), high_(point)});
}

Uniform::Range Uniform::checked(Range range) {
  if (!(range.low < range.high) || !std::isfinite(range.high - range.low))
    fail_argument("uniform", "high", fmt::format("{}", range.high),
                  fmt::format("above low, which is {}, by a finite width", range.low));
  return range;
}

void Uniform::sample(std::span<const double> point, RandomStream& random, Matrix& out) const {
  detail::check_shape(*this, out);
  const auto [low, high] = range(point);
  random.fill_uniform(out.values());
  for (double& value : out.values()) value = low + (high - low) * value;
}

void Uniform::sample_each(MatrixView points, RandomStream& random, Matrix& out) const {
  detail::check_shape(*this, points, out);
  std::vector<double> low(out.rows()), high(out.rows());
  low_.each(points, low);
  high_.each(points, high);
  random.fill_uniform(out.values());
  for (std::size_t i = 0; i < out.rows(); ++i) {
    const auto range = checked({low[i], high[i]});
    out(i, 0) = range.low + (range.high - range.low) * out(i, 0);
  }
}

void Uniform::log_density(std::span<const double> point, MatrixView x,
                          std::span<double> out) const {
  detail::check_shape(*this, x, out);
  const auto [low, high] = range(point);
  const double inside = -std::log(high - low);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = x(i, 0) >= low && x(i, 0) <= high ? inside : -std::numeric_limits<double>::infinity();
}

double Uniform::cdf(std::span<const double> point, double x) const {
  const auto [low, high] = range(point);
  return std::clamp((x - low) / (high - low), 0.0, 1.0);
}

double Uniform::quantile(std::span<const double> point, double probability) const {
  detail::check_probability(*this, probability);
  const auto [low, high] = range(point);
  return probability == 1.0 ? high : low + (high - low) * probability;
}

}  // namespace neyman
