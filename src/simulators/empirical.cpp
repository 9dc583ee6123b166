#include "neyman/simulators/empirical.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "neyman/core/check.hpp"
#include "simulators/alias_table.hpp"
#include "simulators/events.hpp"
#include "simulators/reading.hpp"
#include "simulators/shapes.hpp"

namespace neyman {

Empirical::Empirical(Matrix events, std::vector<double> weights) : events_(std::move(events)) {
  detail::check_events("empirical", events_, weights);
  if (!weights.empty()) table_ = std::make_shared<const detail::AliasTable>(weights);
  if (dimension() != 1) return;
  std::vector<std::size_t> order(events_.rows());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return events_(a, 0) < events_(b, 0); });
  double sum = 0.0;
  for (const std::size_t i : order) {
    const double weight = weights.empty() ? 1.0 : weights[i];
    if (weight == 0.0) continue;
    sorted_.push_back(events_(i, 0));
    cumulative_.push_back(sum += weight);
  }
  for (double& value : cumulative_) value /= sum;
}

DistributionPtr Empirical::make(Settings settings, const ParameterSpace&,
                                const std::string& folder) {
  auto events = detail::read_events(settings, folder);
  if (!events) return nullptr;
  auto made = std::make_shared<Empirical>(std::move(events->x), std::move(events->weights));
  made->names_ = std::move(events->names);
  return made;
}

void Empirical::sample(std::span<const double>, RandomStream& random, Matrix& out) const {
  detail::check_shape(*this, out);
  for (std::size_t i = 0; i < out.rows(); ++i) {
    const std::size_t chosen = table_ != nullptr
                                   ? table_->draw(random)
                                   : static_cast<std::size_t>(random.below(events_.rows()));
    const auto row = events_.row(chosen);
    std::copy(row.begin(), row.end(), out.row(i).begin());
  }
}

void Empirical::sample_each(MatrixView points, RandomStream& random, Matrix& out) const {
  detail::check_shape(*this, points, out);
  sample({}, random, out);
}

double Empirical::cdf(std::span<const double> point, double x) const {
  if (!has_cdf()) return Distribution::cdf(point, x);
  const auto above = std::upper_bound(sorted_.begin(), sorted_.end(), x) - sorted_.begin();
  return above == 0 ? 0.0 : cumulative_[static_cast<std::size_t>(above) - 1];
}

double Empirical::quantile(std::span<const double> point, double probability) const {
  if (!has_cdf()) return Distribution::quantile(point, probability);
  detail::check_probability(*this, probability);
  const auto reached = std::lower_bound(cumulative_.begin(), cumulative_.end(), probability);
  const auto i = static_cast<std::size_t>(reached - cumulative_.begin());
  return sorted_[std::min(i, sorted_.size() - 1)];
}

}  // namespace neyman
