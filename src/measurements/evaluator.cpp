#include "measurements/evaluator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace neyman::detail {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// A factor of zero would hide the derivatives with respect to the others behind 0 / 0. With this in
// its place F · (1 / f) is right to the last bit, for two such factors too, and F still counts as
// 0.
constexpr double tiny_factor = 1e-150;
double without_zero(double factor) { return std::abs(factor) < tiny_factor ? tiny_factor : factor; }
constexpr double no_yield = 1e-100;
// What is below zero by rounding alone, in events.
constexpr double rounding = 1e-10;

}  // namespace

Evaluator::Evaluator(const CompiledModel& model, bool tables)
    : model_(model), size_(model.parameters.size()), gradient_(size_), hessian_(size_ * size_) {
  std::size_t bins = 0, cells = 0, factors = 0, shifts = 0, slots = 0, entries = 0;
  for (const auto& channel : model.channels) {
    std::size_t own_factors = 0, own_shifts = 0;
    for (const auto& sample : channel.samples) {
      own_factors += sample.factors.size();
      own_shifts += sample.shifts.size();
    }
    bins = std::max(bins, channel.bins);
    cells = std::max(cells, channel.bins * channel.samples.size());
    factors = std::max(factors, own_factors);
    shifts = std::max(shifts, own_shifts);
    slots = std::max(slots, channel.shared.size() * channel.bins);
    entries = std::max(entries, channel.bin_parameters.size());
  }
  total_.resize(bins);
  slope_.resize(bins);
  curve_.resize(bins);
  parts_.resize(cells);
  levers_.resize(cells);
  factors_.resize(factors);
  shifts_.assign(shifts, ShiftInterpolation(0.0));
  jacobian_.resize(slots);
  bin_jacobian_.resize(entries);
  for (const auto& channel : model.unbinned) unbinned_.emplace_back(channel, size_, tables);
}

double Evaluator::operator()(std::span<const double> point, const MeasurementData& data,
                             Order order) {
  if (order != Order::value) std::fill(gradient_.begin(), gradient_.end(), 0.0);
  if (order == Order::hessian) std::fill(hessian_.begin(), hessian_.end(), 0.0);
  forbidden_bin_ = no_parameter;
  double out = constraints(point, data.auxiliary, order);
  if (out == infinity) return out;
  for (const auto& channel : model_.channels) {
    expect(channel, point);
    out += poisson(channel, std::span(data.counts).subspan(channel.first_bin, channel.bins));
    if (out == infinity) return out;
    if (order == Order::value) continue;
    add_first(channel, point);
    if (order == Order::gradient) continue;
    add_products(channel);
    add_second(channel, point);
  }
  for (std::size_t u = 0; u < unbinned_.size() && out != infinity; ++u)
    out += unbinned_[u].add(point, *data.events[u], order, gradient_, hessian_);
  return out;
}

void Evaluator::expected_events(std::span<const double> point, std::span<double> out) {
  for (std::size_t u = 0; u < unbinned_.size(); ++u) out[u] = unbinned_[u].expected(point);
}

void Evaluator::densities(std::span<const double> point, std::size_t channel,
                          const UnbinnedEvents& events, std::span<double> out) {
  unbinned_[channel].densities(point, events, out);
}

void Evaluator::parts(std::span<const double> point, std::size_t channel,
                      const UnbinnedEvents& events, Matrix& out) {
  unbinned_[channel].parts(point, events, out);
}

void Evaluator::expected(std::span<const double> point, std::span<double> out, Matrix* parts) {
  for (const auto& channel : model_.channels) {
    expect(channel, point);
    std::copy_n(total_.begin(), channel.bins,
                out.begin() + static_cast<std::ptrdiff_t>(channel.first_bin));
    if (parts == nullptr) continue;
    for (std::size_t s = 0; s < channel.samples.size(); ++s)
      for (std::size_t b = 0; b < channel.bins; ++b)
        (*parts)(channel.samples[s].name, channel.first_bin + b) = parts_[s * channel.bins + b];
  }
}

double Evaluator::constraints(std::span<const double> point, std::span<const double> auxiliary,
                              Order order) {
  double sum = 0.0;
  for (std::size_t k = 0; k < model_.constraints.size(); ++k) {
    const auto constraint = model_.constraints[k].with_observed(auxiliary[k]);
    const std::size_t p = constraint.parameter();
    const double term = constraint.log_density(point[p]);
    if (term <= Likelihood::forbidden) return infinity;
    sum -= term;
    if (order != Order::value) gradient_[p] -= constraint.derivative(point[p]);
    if (order == Order::hessian) hessian_[p * size_ + p] -= constraint.second_derivative(point[p]);
  }
  return sum;
}

void Evaluator::expect(const CompiledChannel& channel, std::span<const double> point) {
  const std::size_t bins = channel.bins;
  std::fill_n(total_.begin(), bins, 0.0);
  std::size_t factor = 0, shift = 0;
  for (std::size_t s = 0; s < channel.samples.size(); ++s) {
    const auto& sample = channel.samples[s];
    double* part = parts_.data() + s * bins;
    double* lever = levers_.data() + s * bins;
    double scale = 1.0;
    for (const auto& term : sample.factors) {
      const double x = point[term.parameter];
      auto jet = term.interpolation ? (*term.interpolation)(x) : Jet{x, 1.0, 0.0};
      jet.value = without_zero(jet.value);
      factors_[factor++] = {jet.first / jet.value, jet.second / jet.value};
      scale *= jet.value;
    }
    std::fill_n(lever, bins, scale);
    for (const auto& term : sample.bin_factors)
      for (std::size_t b = 0; b < bins; ++b)
        if (term.parameters[b] != no_parameter) lever[b] *= without_zero(point[term.parameters[b]]);
    std::copy_n(sample.yields.begin(), bins, part);
    for (const auto& term : sample.shifts) {
      const ShiftInterpolation at(point[term.parameter]);
      shifts_[shift++] = at;
      for (std::size_t b = 0; b < bins; ++b)
        part[b] += at.up.value * term.up[b] + at.down.value * term.down[b];
    }
    for (std::size_t b = 0; b < bins; ++b) {
      part[b] *= lever[b];
      total_[b] += part[b];
    }
  }
}

double Evaluator::poisson(const CompiledChannel& channel, std::span<const double> counts) {
  double sum = 0.0;
  for (std::size_t b = 0; b < channel.bins; ++b) {
    const double n = counts[b], nu = total_[b];
    if (!(nu >= -rounding) || (n > 0.0 && nu < no_yield)) {
      forbidden_bin_ = channel.first_bin + b;
      return infinity;
    }
    if (n > 0.0) {
      sum += n * std::log(n / nu) + (nu - n);
      slope_[b] = 1.0 - n / nu;
      curve_[b] = n / (nu * nu);
    } else {
      sum += nu;
      slope_[b] = 1.0;
      curve_[b] = 0.0;
    }
  }
  return sum;
}

void Evaluator::add_first(const CompiledChannel& channel, std::span<const double> point) {
  const std::size_t bins = channel.bins;
  std::fill_n(jacobian_.begin(), channel.shared.size() * bins, 0.0);
  std::fill_n(bin_jacobian_.begin(), channel.bin_parameters.size(), 0.0);
  std::size_t factor = 0, shift = 0;
  for (std::size_t s = 0; s < channel.samples.size(); ++s) {
    const auto& sample = channel.samples[s];
    const double* part = parts_.data() + s * bins;
    const double* lever = levers_.data() + s * bins;
    for (const auto& term : sample.factors) {
      double* row = jacobian_.data() + term.slot * bins;
      const double rate = factors_[factor++].first;
      for (std::size_t b = 0; b < bins; ++b) row[b] += part[b] * rate;
    }
    for (const auto& term : sample.shifts) {
      double* row = jacobian_.data() + term.slot * bins;
      const auto& at = shifts_[shift++];
      for (std::size_t b = 0; b < bins; ++b)
        row[b] += lever[b] * (at.up.first * term.up[b] + at.down.first * term.down[b]);
    }
    for (const auto& term : sample.bin_factors)
      for (std::size_t b = 0; b < bins; ++b)
        if (term.parameters[b] != no_parameter)
          bin_jacobian_[term.entries[b]] += part[b] / without_zero(point[term.parameters[b]]);
  }
  for (std::size_t i = 0; i < channel.shared.size(); ++i) {
    const double* row = jacobian_.data() + i * bins;
    double sum = 0.0;
    for (std::size_t b = 0; b < bins; ++b) sum += slope_[b] * row[b];
    gradient_[channel.shared[i]] += sum;
  }
  for (std::size_t b = 0; b < bins; ++b)
    for (std::size_t e = channel.bin_begin[b]; e < channel.bin_begin[b + 1]; ++e)
      gradient_[channel.bin_parameters[e]] += slope_[b] * bin_jacobian_[e];
}

void Evaluator::add_pair(std::size_t a, std::size_t b, double value) {
  if (a == b)
    hessian_[a * size_ + a] += 2.0 * value;
  else
    hessian_[std::max(a, b) * size_ + std::min(a, b)] += value;
}

void Evaluator::add_products(const CompiledChannel& channel) {
  const std::size_t bins = channel.bins;
  const auto& shared = channel.shared;
  for (std::size_t i = 0; i < shared.size(); ++i) {
    const double* row = jacobian_.data() + i * bins;
    for (std::size_t j = 0; j <= i; ++j) {
      const double* other = jacobian_.data() + j * bins;
      double sum = 0.0;
      for (std::size_t b = 0; b < bins; ++b) sum += curve_[b] * row[b] * other[b];
      hessian_[std::max(shared[i], shared[j]) * size_ + std::min(shared[i], shared[j])] += sum;
    }
  }
  for (std::size_t b = 0; b < bins; ++b)
    for (std::size_t e = channel.bin_begin[b]; e < channel.bin_begin[b + 1]; ++e) {
      const double weight = curve_[b] * bin_jacobian_[e];
      double* row = hessian_.data() + channel.bin_parameters[e] * size_;
      for (std::size_t i = 0; i < shared.size(); ++i)  // these have lower indices
        row[shared[i]] += weight * jacobian_[i * bins + b];
      row[channel.bin_parameters[e]] += weight * bin_jacobian_[e];
      for (std::size_t other = channel.bin_begin[b]; other < e; ++other)
        add_pair(channel.bin_parameters[e], channel.bin_parameters[other],
                 weight * bin_jacobian_[other]);
    }
}

void Evaluator::add_second(const CompiledChannel& channel, std::span<const double> point) {
  const std::size_t bins = channel.bins;
  std::size_t first_factor = 0, first_shift = 0;
  for (std::size_t s = 0; s < channel.samples.size(); ++s) {
    const auto& sample = channel.samples[s];
    const double* part = parts_.data() + s * bins;
    const double* lever = levers_.data() + s * bins;
    const Log* factors = factors_.data() + first_factor;
    const ShiftInterpolation* shifts = shifts_.data() + first_shift;
    first_factor += sample.factors.size();
    first_shift += sample.shifts.size();

    double weighted = 0.0;
    for (std::size_t b = 0; b < bins; ++b) weighted += slope_[b] * part[b];
    for (std::size_t k = 0; k < sample.factors.size(); ++k) {
      const std::size_t p = sample.factors[k].parameter;
      hessian_[p * size_ + p] += weighted * factors[k].second;
      for (std::size_t l = 0; l < k; ++l)
        add_pair(p, sample.factors[l].parameter, weighted * factors[k].first * factors[l].first);
    }
    for (std::size_t h = 0; h < sample.shifts.size(); ++h) {
      const auto& term = sample.shifts[h];
      const auto& at = shifts[h];
      double first = 0.0, second = 0.0;
      for (std::size_t b = 0; b < bins; ++b) {
        const double weight = slope_[b] * lever[b];
        first += weight * (at.up.first * term.up[b] + at.down.first * term.down[b]);
        second += weight * (at.up.second * term.up[b] + at.down.second * term.down[b]);
      }
      hessian_[term.parameter * size_ + term.parameter] += second;
      for (std::size_t k = 0; k < sample.factors.size(); ++k)
        add_pair(term.parameter, sample.factors[k].parameter, first * factors[k].first);
    }
    for (std::size_t m = 0; m < sample.bin_factors.size(); ++m) {
      const auto& term = sample.bin_factors[m];
      for (std::size_t b = 0; b < bins; ++b) {
        const std::size_t p = term.parameters[b];
        if (p == no_parameter) continue;
        const double rate = slope_[b] / without_zero(point[p]);
        for (std::size_t k = 0; k < sample.factors.size(); ++k)
          add_pair(p, sample.factors[k].parameter, rate * part[b] * factors[k].first);
        for (std::size_t h = 0; h < sample.shifts.size(); ++h) {
          const auto& shift = sample.shifts[h];
          add_pair(p, shift.parameter,
                   rate * lever[b] *
                       (shifts[h].up.first * shift.up[b] + shifts[h].down.first * shift.down[b]));
        }
        for (std::size_t other = 0; other < m; ++other) {
          const std::size_t q = sample.bin_factors[other].parameters[b];
          if (q != no_parameter) add_pair(p, q, rate * part[b] / without_zero(point[q]));
        }
      }
    }
  }
}

}  // namespace neyman::detail
