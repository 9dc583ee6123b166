#include "measurements/unbinned_terms.hpp"

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

double slope_of(const ShiftInterpolation& at, double low, double high) {
  return at.up.first * high - at.down.first * low;
}
double curve_of(const ShiftInterpolation& at, double low, double high) {
  return at.up.second * high - at.down.second * low;
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
  std::vector<double>& slope = slopes_;  // of one event: the blocks come later
  for (std::size_t j = 0; j < component.simulated_weights.size(); ++j) {
    const double weight = component.simulated_weights[j];
    if (weight == 0.0) continue;
    double exponent = 0.0;
    for (std::size_t s = 0; s < k; ++s) {
      const std::size_t row = component.shapes[s].row;
      exponent += out.shifts[s].up.value * simulated.log_high(row, j) -
                  out.shifts[s].down.value * simulated.log_low(row, j);
    }
    const double value = weight * std::exp(exponent);
    sum += value;
    if (order == Order::value) continue;
    for (std::size_t s = 0; s < k; ++s) {
      const std::size_t row = component.shapes[s].row;
      const double low = simulated.log_low(row, j), high = simulated.log_high(row, j);
      slope[s] = slope_of(out.shifts[s], low, high);
      out.sum_first[s] += value * slope[s];
      if (order == Order::gradient) continue;
      out.sum_second[s * k + s] += value * curve_of(out.shifts[s], low, high);
      for (std::size_t t = 0; t <= s; ++t) out.sum_second[s * k + t] += value * slope[s] * slope[t];
    }
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

void UnbinnedTerms::fill_block(const UnbinnedEvents& events, std::size_t begin, std::size_t count) {
  std::fill_n(lambda_.begin(), count, 0.0);
  for (std::size_t c = 0; c < components_.size(); ++c) {
    const auto& component = channel_.components[c];
    const auto& at = components_[c];
    double* part = parts_.data() + c * block_size;
    const double* ratio = events.ratios.row(c).data() + begin;
    if (component.shapes.empty()) {
      for (std::size_t i = 0; i < count; ++i) part[i] = at.scale.value * ratio[i];
    } else {
      std::fill_n(part, count, 0.0);
      for (std::size_t s = 0; s < component.shapes.size(); ++s) {
        const double* low = events.log_low.row(component.shapes[s].row).data() + begin;
        const double* high = events.log_high.row(component.shapes[s].row).data() + begin;
        const double up = at.shifts[s].up.value, down = at.shifts[s].down.value;
        for (std::size_t i = 0; i < count; ++i) part[i] += up * high[i] - down * low[i];
      }
      for (std::size_t i = 0; i < count; ++i)
        part[i] = at.scale.value * ratio[i] * std::exp(part[i]);
    }
    for (std::size_t i = 0; i < count; ++i) lambda_[i] += part[i];
  }
}

void UnbinnedTerms::add_block(const UnbinnedEvents& events, std::size_t begin, std::size_t count,
                              Order order, std::span<double> gradient, std::span<double> hessian) {
  const auto weight = [&](std::size_t i) {
    return events.weights.empty() ? 1.0 : events.weights[begin + i];
  };
  std::fill(jacobian_.begin(), jacobian_.end(), 0.0);
  std::size_t first_shape = 0;
  for (std::size_t c = 0; c < components_.size(); ++c) {
    const auto& component = channel_.components[c];
    const auto& at = components_[c];
    const double* part = parts_.data() + c * block_size;
    for (std::size_t p = 0; p < component.local.size(); ++p) {
      double* row = jacobian_.data() + component.slots[p] * block_size;
      const double rate = at.scale.first[p];
      for (std::size_t i = 0; i < count; ++i) row[i] += part[i] * rate;
    }
    for (std::size_t s = 0; s < component.shapes.size(); ++s) {
      const auto& shape = component.shapes[s];
      double* slope = slopes_.data() + (first_shape + s) * block_size;
      double* row = jacobian_.data() + component.slots[shape.place] * block_size;
      const double* low = events.log_low.row(shape.row).data() + begin;
      const double* high = events.log_high.row(shape.row).data() + begin;
      for (std::size_t i = 0; i < count; ++i) {
        slope[i] = slope_of(at.shifts[s], low[i], high[i]);
        row[i] += part[i] * slope[i];
      }
    }
    first_shape += component.shapes.size();
  }
  const auto& shared = channel_.shared;
  // From here λ is the weight over it.
  for (std::size_t i = 0; i < count; ++i) lambda_[i] = weight(i) / lambda_[i];
  for (std::size_t a = 0; a < shared.size(); ++a) {
    const double* row = jacobian_.data() + a * block_size;
    double sum = 0.0;
    for (std::size_t i = 0; i < count; ++i) sum += lambda_[i] * row[i];
    gradient[shared[a]] -= sum;
  }
  if (order != Order::hessian) return;
  for (std::size_t a = 0; a < shared.size(); ++a)
    for (std::size_t b = 0; b <= a; ++b) {
      const double* row = jacobian_.data() + a * block_size;
      const double* other = jacobian_.data() + b * block_size;
      double sum = 0.0;
      for (std::size_t i = 0; i < count; ++i) {
        const double w = weight(i);
        if (w != 0.0) sum += lambda_[i] * lambda_[i] / w * row[i] * other[i];
      }
      hessian[std::max(shared[a], shared[b]) * parameters_ + std::min(shared[a], shared[b])] += sum;
    }
  first_shape = 0;
  for (std::size_t c = 0; c < components_.size(); ++c) {
    const auto& component = channel_.components[c];
    auto& at = components_[c];
    const double* part = parts_.data() + c * block_size;
    const std::size_t k = component.shapes.size();
    for (std::size_t i = 0; i < count; ++i) {
      const double q = -lambda_[i] * part[i];
      at.sum += q;
      for (std::size_t s = 0; s < k; ++s) {
        const std::size_t row = component.shapes[s].row;
        const double slope = slopes_[(first_shape + s) * block_size + i];
        at.sum_first[s] += q * slope;
        at.sum_second[s * k + s] += q * curve_of(at.shifts[s], events.log_low(row, begin + i),
                                                 events.log_high(row, begin + i));
        for (std::size_t t = 0; t <= s; ++t)
          at.sum_second[s * k + t] += q * slope * slopes_[(first_shape + t) * block_size + i];
      }
    }
    first_shape += k;
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
    for (std::size_t i = 0; i < count; ++i) {
      const double weight = events.weights.empty() ? 1.0 : events.weights[begin + i];
      if (!(lambda_[i] > 0.0)) return unbinned_infinity;
      sum += weight * std::log(lambda_[i]);
      total += weight;
    }
    if (order != Order::value) add_block(events, begin, count, order, gradient, hessian);
  }
  if (!(expected >= 0.0)) return unbinned_infinity;
  if (order != Order::value) add_sums(gradient, hessian, order);
  const double offset = total > 0.0 ? total * std::log(total) : 0.0;
  return expected - total - (sum - offset);
}

}  // namespace neyman::detail
