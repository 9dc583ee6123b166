#include "measurements/unbinned_terms.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>

namespace neyman::detail {

namespace {

using Order = EvaluationOrder;

constexpr double unbinned_infinity = std::numeric_limits<double>::infinity();
// In place of zero, as in the evaluator of binned channels; larger, for products of relative
// derivatives.
constexpr double least_factor = 1e-100;
constexpr double least_root = 1e-12;  // of a parameter with a power that is not whole

double nonzero(double factor) { return std::abs(factor) < least_factor ? least_factor : factor; }

/// x^power with two derivatives.
Jet power_of(double x, double power) {
  if (power == 1.0) return {x, 1.0, 0.0};
  if (power != std::floor(power) || power < 0.0) x = std::max(x, least_root);
  return {std::pow(x, power), power == 0.0 ? 0.0 : power * std::pow(x, power - 1.0),
          power == 0.0 || power == 1.0 ? 0.0 : power * (power - 1.0) * std::pow(x, power - 2.0)};
}

// Loops over events are Eigen's: vectors, in sums and in exponentials too.
using Values = Eigen::Map<const Eigen::ArrayXd>;
using Target = Eigen::Map<Eigen::ArrayXd>;

Values values_of(const Matrix& matrix, std::size_t row, std::size_t begin, std::size_t count) {
  return {matrix.row(row).data() + begin, static_cast<Eigen::Index>(count)};
}
Values values_of(const std::vector<double>& from, std::size_t begin, std::size_t count) {
  return {from.data() + begin, static_cast<Eigen::Index>(count)};
}
Target target_in(std::vector<double>& in, std::size_t begin, std::size_t count) {
  return {in.data() + begin, static_cast<Eigen::Index>(count)};
}

}  // namespace

void UnbinnedTerms::Relative::reset(std::size_t size) {
  value = 1.0;
  first.assign(size, 0.0);
  second.assign(size * size, 0.0);
}

void UnbinnedTerms::Relative::multiply(std::span<const double> other_first,
                                       std::span<const double> other_second) {
  const std::size_t n = first.size();
  for (std::size_t p = 0; p < n; ++p)
    for (std::size_t q = 0; q < n; ++q)
      second[p * n + q] +=
          first[p] * other_first[q] + other_first[p] * first[q] + other_second[p * n + q];
  for (std::size_t p = 0; p < n; ++p) first[p] += other_first[p];
}

UnbinnedTerms::UnbinnedTerms(const CompiledUnbinned& channel, std::size_t parameters)
    : channel_(channel), parameters_(parameters), components_(channel.components.size()) {
  std::size_t shapes = 0, local = 0;
  for (std::size_t c = 0; c < components_.size(); ++c) {
    const auto& component = channel.components[c];
    const std::size_t n = component.local.size(), k = component.shapes.size();
    components_[c].yield.reset(n);
    components_[c].scale.reset(n);
    components_[c].shifts.assign(k, ShiftInterpolation(0.0));
    components_[c].sum_first.resize(k);
    components_[c].sum_second.resize(k * k);
    shapes += k;
    local = std::max(local, n);
  }
  lambda_.resize(block_size);
  curves_.resize(block_size);
  pulls_.resize(block_size);
  parts_.resize(components_.size() * block_size);
  jacobian_.resize(channel.shared.size() * block_size);
  slopes_.resize(std::max<std::size_t>(shapes, 1) * block_size);
  factor_first_.resize(local);
  factor_second_.resize(local * local);
}

void UnbinnedTerms::set_yield(const CompiledComponent& component, Component& out,
                              std::span<const double> point) {
  const std::size_t n = component.local.size();
  out.yield.reset(n);
  const std::span<double> first(factor_first_.data(), n), second(factor_second_.data(), n * n);
  const auto clear = [&] {
    std::fill(first.begin(), first.end(), 0.0);
    std::fill(second.begin(), second.end(), 0.0);
  };
  out.yield.value = component.yield;
  for (const auto& factor : component.factors) {
    const double x = point[component.local[factor.place]];
    const auto jet = factor.interpolation ? (*factor.interpolation)(x) : Jet{x, 1.0, 0.0};
    const double value = nonzero(jet.value);
    clear();
    first[factor.place] = jet.first / value;
    second[factor.place * n + factor.place] = jet.second / value;
    out.yield.multiply(first, second);
    out.yield.value *= value;
  }
  if (component.polynomial.empty()) return;
  clear();
  double sum = 0.0;
  for (const auto& term : component.polynomial) {
    // The derivatives of a product without divisions: its factors may be zero.
    double value = term.value;
    for (const auto& [place, power] : term.powers)
      value *= power_of(point[component.local[place]], power).value;
    sum += value;
    for (std::size_t a = 0; a < term.powers.size(); ++a)
      for (std::size_t b = 0; b < term.powers.size(); ++b) {
        double once = term.value, twice = term.value;
        for (std::size_t f = 0; f < term.powers.size(); ++f) {
          const auto jet =
              power_of(point[component.local[term.powers[f].first]], term.powers[f].second);
          once *= f == a ? jet.first : jet.value;
          twice *= a == b ? (f == a ? jet.second : jet.value)
                          : (f == a || f == b ? jet.first : jet.value);
        }
        if (a == b) first[term.powers[a].first] += once;
        second[term.powers[a].first * n + term.powers[b].first] += twice;
      }
  }
  sum = nonzero(sum);
  for (auto& value : first) value /= sum;
  for (auto& value : second) value /= sum;
  out.yield.multiply(first, second);
  out.yield.value *= sum;
}

void UnbinnedTerms::normalise(const CompiledComponent& component, Component& out, Order order) {
  out.scale = out.yield;
  out.scale.value /= component.normalisation;
  const std::size_t k = component.shapes.size(), n = component.local.size();
  if (k == 0) return;
  const auto& simulated = *channel_.simulated;
  double sum = 0.0;
  std::fill(out.sum_first.begin(), out.sum_first.end(), 0.0);
  std::fill(out.sum_second.begin(), out.sum_second.end(), 0.0);
  for (std::size_t begin = 0; begin < simulated.size(); begin += block_size) {
    const std::size_t count = std::min(block_size, simulated.size() - begin);
    auto part = target_in(parts_, 0, count);
    set_exponents(component, out, simulated, begin, count, part.data());
    part = values_of(component.simulated_weights, begin, count) * part.exp();
    sum += part.sum();
    if (order == Order::value) continue;
    add_shape_sums(component, out, simulated, begin, count, 0, part.data(), order);
  }
  out.scale.value /= sum;
  if (order == Order::value) return;
  // 1 / Z relative to itself: −Z_s / Z, and 2 Z_s Z_t / Z² − Z_st / Z.
  const std::span<double> first(factor_first_.data(), n), second(factor_second_.data(), n * n);
  std::fill(first.begin(), first.end(), 0.0);
  std::fill(second.begin(), second.end(), 0.0);
  for (std::size_t s = 0; s < k; ++s) {
    const std::size_t p = component.shapes[s].place;
    first[p] = -out.sum_first[s] / sum;
    for (std::size_t t = 0; t <= s; ++t) {
      const std::size_t q = component.shapes[t].place;
      second[p * n + q] = second[q * n + p] =
          2.0 * out.sum_first[s] * out.sum_first[t] / (sum * sum) - out.sum_second[s * k + t] / sum;
    }
  }
  out.scale.multiply(first, second);
}

void UnbinnedTerms::prepare(std::span<const double> point, Order order) {
  for (std::size_t c = 0; c < components_.size(); ++c) {
    const auto& component = channel_.components[c];
    auto& out = components_[c];
    for (std::size_t s = 0; s < component.shapes.size(); ++s)
      out.shifts[s] = ShiftInterpolation(point[component.local[component.shapes[s].place]]);
    set_yield(component, out, point);
    normalise(component, out, order);
    out.sum = 0.0;
    std::fill(out.sum_first.begin(), out.sum_first.end(), 0.0);
    std::fill(out.sum_second.begin(), out.sum_second.end(), 0.0);
  }
}

double UnbinnedTerms::expected(std::span<const double> point) {
  double sum = 0.0;
  for (std::size_t c = 0; c < components_.size(); ++c) {
    set_yield(channel_.components[c], components_[c], point);
    sum += components_[c].yield.value;
  }
  return sum;
}

void UnbinnedTerms::densities(std::span<const double> point, const UnbinnedEvents& events,
                              std::span<double> out) {
  prepare(point, Order::value);
  for (std::size_t begin = 0; begin < events.size(); begin += block_size) {
    const std::size_t count = std::min(block_size, events.size() - begin);
    fill_block(events, begin, count);
    std::copy_n(lambda_.begin(), count, out.begin() + static_cast<std::ptrdiff_t>(begin));
  }
}

void UnbinnedTerms::set_exponents(const CompiledComponent& component, const Component& at,
                                  const UnbinnedEvents& events, std::size_t begin,
                                  std::size_t count, double* out) const {
  Target exponent(out, static_cast<Eigen::Index>(count));
  exponent.setZero();
  for (std::size_t s = 0; s < component.shapes.size(); ++s) {
    const std::size_t row = component.shapes[s].row;
    exponent += at.shifts[s].up.value * values_of(events.log_high, row, begin, count) -
                at.shifts[s].down.value * values_of(events.log_low, row, begin, count);
  }
}

void UnbinnedTerms::add_shape_sums(const CompiledComponent& component, Component& at,
                                   const UnbinnedEvents& events, std::size_t begin,
                                   std::size_t count, std::size_t first_slope,
                                   const double* weights, Order order) {
  const Values weight(weights, static_cast<Eigen::Index>(count));
  const std::size_t k = component.shapes.size();
  for (std::size_t s = 0; s < k; ++s) {
    const std::size_t row = component.shapes[s].row;
    const auto low = values_of(events.log_low, row, begin, count);
    const auto high = values_of(events.log_high, row, begin, count);
    auto slope = target_in(slopes_, (first_slope + s) * block_size, count);
    slope = at.shifts[s].up.first * high - at.shifts[s].down.first * low;
    at.sum_first[s] += (weight * slope).sum();
    if (order != Order::hessian) continue;
    at.sum_second[s * k + s] +=
        (weight * (at.shifts[s].up.second * high - at.shifts[s].down.second * low)).sum();
    for (std::size_t t = 0; t <= s; ++t)
      at.sum_second[s * k + t] +=
          (weight * slope * target_in(slopes_, (first_slope + t) * block_size, count)).sum();
  }
}

void UnbinnedTerms::fill_block(const UnbinnedEvents& events, std::size_t begin, std::size_t count) {
  auto lambda = target_in(lambda_, 0, count);
  lambda.setZero();
  for (std::size_t c = 0; c < components_.size(); ++c) {
    const auto& component = channel_.components[c];
    const auto& at = components_[c];
    auto part = target_in(parts_, c * block_size, count);
    const auto ratio = values_of(events.ratios, c, begin, count);
    if (component.shapes.empty()) {
      part = at.scale.value * ratio;
    } else {
      set_exponents(component, at, events, begin, count, part.data());
      part = at.scale.value * ratio * part.exp();
    }
    lambda += part;
  }
}

void UnbinnedTerms::add_block(const UnbinnedEvents& events, std::size_t begin, std::size_t count,
                              Order order, std::span<double> gradient, std::span<double> hessian) {
  // From here λ is the weight of the event over it.
  auto inverse = target_in(lambda_, 0, count);
  auto curve = target_in(curves_, 0, count);
  curve = inverse.inverse();
  inverse = curve;
  if (!events.weights.empty()) inverse *= values_of(events.weights, begin, count);
  curve *= inverse;
  std::fill(jacobian_.begin(), jacobian_.end(), 0.0);
  std::size_t first_slope = 0;
  for (std::size_t c = 0; c < components_.size(); ++c) {
    const auto& component = channel_.components[c];
    auto& at = components_[c];
    const auto part = target_in(parts_, c * block_size, count);
    auto pull = target_in(pulls_, 0, count);
    pull = -inverse * part;
    at.sum += pull.sum();
    add_shape_sums(component, at, events, begin, count, first_slope, pull.data(), order);
    for (std::size_t p = 0; p < component.local.size(); ++p)
      target_in(jacobian_, component.slots[p] * block_size, count) += part * at.scale.first[p];
    for (std::size_t s = 0; s < component.shapes.size(); ++s)
      target_in(jacobian_, component.slots[component.shapes[s].place] * block_size, count) +=
          part * target_in(slopes_, (first_slope + s) * block_size, count);
    first_slope += component.shapes.size();
  }
  const auto& shared = channel_.shared;
  for (std::size_t a = 0; a < shared.size(); ++a) {
    const auto row = target_in(jacobian_, a * block_size, count);
    gradient[shared[a]] -= (inverse * row).sum();
    if (order != Order::hessian) continue;
    for (std::size_t b = 0; b <= a; ++b)
      hessian[std::max(shared[a], shared[b]) * parameters_ + std::min(shared[a], shared[b])] +=
          (curve * row * target_in(jacobian_, b * block_size, count)).sum();
  }
}

void UnbinnedTerms::add_sums(std::span<double> gradient, std::span<double> hessian, Order order) {
  for (std::size_t c = 0; c < components_.size(); ++c) {
    const auto& component = channel_.components[c];
    const auto& at = components_[c];
    const std::size_t n = component.local.size(), k = component.shapes.size();
    for (std::size_t p = 0; p < n; ++p)
      gradient[component.local[p]] += at.yield.value * at.yield.first[p];
    if (order != Order::hessian) continue;
    const auto add = [&](std::size_t p, std::size_t q, double value) {
      if (component.local[p] >= component.local[q])
        hessian[component.local[p] * parameters_ + component.local[q]] += value;
    };
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t q = 0; q < n; ++q)
        add(p, q,
            at.yield.value * at.yield.second[p * n + q] + at.sum * at.scale.second[p * n + q]);
    for (std::size_t s = 0; s < k; ++s) {
      const std::size_t shape = component.shapes[s].place;
      for (std::size_t p = 0; p < n; ++p) {
        add(shape, p, at.sum_first[s] * at.scale.first[p]);
        add(p, shape, at.sum_first[s] * at.scale.first[p]);
      }
      for (std::size_t t = 0; t < k; ++t)
        add(shape, component.shapes[t].place, at.sum_second[std::max(s, t) * k + std::min(s, t)]);
    }
  }
}

double UnbinnedTerms::add(std::span<const double> point, const UnbinnedEvents& events, Order order,
                          std::span<double> gradient, std::span<double> hessian) {
  prepare(point, order);
  double expected = 0.0, total = 0.0, sum = 0.0;
  for (const auto& component : components_) expected += component.yield.value;
  for (std::size_t begin = 0; begin < events.size(); begin += block_size) {
    const std::size_t count = std::min(block_size, events.size() - begin);
    fill_block(events, begin, count);
    const auto lambda = target_in(lambda_, 0, count);
    if (!(lambda > 0.0).all()) return unbinned_infinity;
    if (events.weights.empty()) {
      sum += lambda.log().sum();
      total += static_cast<double>(count);
    } else {
      const auto weight = values_of(events.weights, begin, count);
      sum += (weight * lambda.log()).sum();
      total += weight.sum();
    }
    if (order != Order::value) add_block(events, begin, count, order, gradient, hessian);
  }
  if (!(expected >= 0.0)) return unbinned_infinity;
  if (order != Order::value) add_sums(gradient, hessian, order);
  const double offset = total > 0.0 ? total * std::log(total) : 0.0;
  return expected - total - (sum - offset);
}

}  // namespace neyman::detail
