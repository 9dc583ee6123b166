#include "neyman/simulators/kde.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "neyman/core/check.hpp"
#include "simulators/alias_table.hpp"
#include "simulators/events.hpp"
#include "simulators/infinity.hpp"
#include "simulators/invert_cdf.hpp"
#include "simulators/reading.hpp"
#include "simulators/shapes.hpp"

namespace neyman {

namespace {

/// What is left out of a sum must be below e^−37 of it: less than the rounding of double.
constexpr double negligible = 37.0;

std::vector<double> rule_bandwidth(const Matrix& events, std::span<const double> weights,
                                   Kde::Rule rule) {
  const std::size_t d = events.cols();
  double squares = 0.0;
  for (const double w : weights) squares += w * w;  // weights sum to 1
  const double effective = 1.0 / squares, power = -1.0 / (static_cast<double>(d) + 4.0);
  const double factor = rule == Kde::Rule::scott
                            ? std::pow(effective, power)
                            : std::pow(effective * (static_cast<double>(d) + 2.0) / 4.0, power);
  std::vector<double> out;
  for (std::size_t j = 0; j < d; ++j) {
    double mean = 0.0, variance = 0.0;
    for (std::size_t i = 0; i < events.rows(); ++i) mean += weights[i] * events(i, j);
    for (std::size_t i = 0; i < events.rows(); ++i)
      variance += weights[i] * (events(i, j) - mean) * (events(i, j) - mean);
    variance /= 1.0 - squares;
    const auto [low, high] = [&] {
      double lowest = events(0, j), highest = lowest;
      for (std::size_t i = 1; i < events.rows(); ++i) {
        lowest = std::min(lowest, events(i, j));
        highest = std::max(highest, events(i, j));
      }
      return std::pair(lowest, highest);
    }();
    if (!(low < high) || !(variance > 0.0))
      fail_argument("kde", fmt::format("column {}", j), "constant",
                    "spread, or the bandwidth given");
    out.push_back(factor * std::sqrt(variance));
  }
  return out;
}

}  // namespace

Kde::Kde(const Matrix& events, std::vector<double> weights)
    : Kde(events, std::move(weights), Config{}) {}

Kde::Kde(const Matrix& events, std::vector<double> weights, Config config) {
  detail::check_events("kde", events, weights);
  if (weights.empty()) weights.assign(events.rows(), 1.0);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < events.rows(); ++i)
    if (weights[i] > 0.0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return events(a, 0) < events(b, 0); });
  events_ = events.take(order);
  for (const std::size_t i : order) weights_.push_back(weights[i]);
  const double total = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  for (double& w : weights_) {
    w /= total;
    log_weights_.push_back(std::log(w));
  }
  table_ = std::make_shared<const detail::AliasTable>(weights_);

  const std::size_t d = dimension();
  bandwidth_ = std::move(config.bandwidth);
  if (bandwidth_.size() == 1) bandwidth_.assign(d, bandwidth_.front());
  if (bandwidth_.empty()) bandwidth_ = rule_bandwidth(events_, weights_, config.rule);
  check_same_size("kde", "bandwidth", bandwidth_.size(), d, "one for each column");
  for (const double h : bandwidth_) {
    check_positive("kde", "bandwidth", h);
    log_norm_ -= std::log(h) + 0.5 * std::log(2.0 * std::numbers::pi);
  }
}

DistributionPtr Kde::make(Settings settings, const ParameterSpace&, const std::string& folder) {
  Config config;
  const std::size_t before = settings.problems().size();
  const Key bandwidth("bandwidth", "a rule, the width of all kernels, or one for each column");
  if (settings.is_text("bandwidth")) {
    const auto rule = settings.choice(bandwidth, "scott", {"scott", "silverman"});
    config.rule = rule == "scott" ? Rule::scott : Rule::silverman;
  }
  if (settings.is_list("bandwidth"))
    config.bandwidth = settings.numbers(bandwidth, {}, Limits::positive());
  if (settings.describing() || !(settings.is_text("bandwidth") || settings.is_list("bandwidth"))) {
    if (const auto width = settings.optional_number(bandwidth, Limits::positive()))
      config.bandwidth = {*width};
  }
  auto events = detail::read_events(settings, folder);
  if (!events || settings.problems().size() > before) return nullptr;
  auto made = std::make_shared<Kde>(events->x, std::move(events->weights), config);
  made->names_ = std::move(events->names);
  return made;
}

void Kde::sample(std::span<const double>, RandomStream& random, Matrix& out) const {
  detail::check_shape(*this, out);
  random.fill_normal(out.values());
  for (std::size_t i = 0; i < out.rows(); ++i) {
    const auto centre = events_.row(table_->draw(random));
    const auto row = out.row(i);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = centre[j] + bandwidth_[j] * row[j];
  }
}

void Kde::sample_each(MatrixView points, RandomStream& random, Matrix& out) const {
  detail::check_shape(*this, points, out);
  sample({}, random, out);
}

void Kde::log_density(std::span<const double>, MatrixView x, std::span<double> out) const {
  detail::check_shape(*this, x, out);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = log_density(x.row(i));
}

double Kde::log_density(std::span<const double> x) const {
  const std::size_t n = events_.rows(), d = dimension();
  const auto term = [&](std::size_t i) {
    double square = 0.0;
    for (std::size_t j = 0; j < d; ++j) {
      const double z = (x[j] - events_(i, j)) / bandwidth_[j];
      square += z * z;
    }
    return log_weights_[i] - 0.5 * square;
  };
  const auto first_from = [&](double value) {  // the first event at or above, in column 0
    std::size_t low = 0, high = n;
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (events_(middle, 0) < value)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  // Events further than `reach` bandwidths add up to at most exp(−reach² / 2).
  for (const double reach : {9.0, 14.0}) {
    const std::size_t begin = first_from(x[0] - reach * bandwidth_[0]);
    const std::size_t end = first_from(x[0] + reach * bandwidth_[0]);
    double sum = 0.0;
    for (std::size_t i = begin; i < end; ++i) sum += std::exp(term(i));
    if (sum > 0.0 && std::log(sum) > negligible - 0.5 * reach * reach)
      return log_norm_ + std::log(sum);
  }
  double largest = -infinity, sum = 0.0;
  for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, term(i));
  if (largest == -infinity) return -infinity;
  for (std::size_t i = 0; i < n; ++i) sum += std::exp(term(i) - largest);
  return log_norm_ + largest + std::log(sum);
}

double Kde::cdf(std::span<const double> point, double x) const {
  if (!has_cdf()) return Distribution::cdf(point, x);
  double sum = 0.0;
  for (std::size_t i = 0; i < events_.rows(); ++i)
    sum +=
        weights_[i] * 0.5 * std::erfc(-(x - events_(i, 0)) / (bandwidth_[0] * std::numbers::sqrt2));
  return std::min(sum, 1.0);
}

double Kde::quantile(std::span<const double> point, double probability) const {
  if (!has_cdf()) return Distribution::quantile(point, probability);
  detail::check_probability(*this, probability);
  if (probability == 0.0) return -infinity;
  if (probability == 1.0) return infinity;
  const double reach = 40.0 * bandwidth_[0];  // where the kernel's cdf underflows
  return detail::invert_cdf([&](double x) { return cdf(point, x); }, events_(0, 0) - reach,
                            events_(events_.rows() - 1, 0) + reach, probability);
}

}  // namespace neyman
