#include "measurements/unbinned_terms.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/vector_math.hpp"
#include "measurements/yield_jet.hpp"

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

UnbinnedTerms::UnbinnedTerms(const CompiledUnbinned& channel, std::size_t parameters, bool tables)
    : channel_(channel),
      parameters_(parameters),
      by_functions_(channel.functions <= channel.moving.size()),
      components_(channel.components.size()),
      view_(components_.size()),
      rows_(channel.functions) {
  std::size_t slopes = 0, own = 0, local = 0;
  for (std::size_t c = 0; c < components_.size(); ++c) {
    const auto& component = channel.components[c];
    const std::size_t n = component.local.size(), functions = component.shape.functions(),
                      k = by_functions_ ? functions : component.moving.size();
    components_[c].yield.reset(n);
    components_[c].scale.reset(n);
    components_[c].moved.resize(component.moving.size());
    for (std::size_t f = 0; f < functions; ++f)
      components_[c].places.push_back(component.first_row + f);
    if (tables && component.table != nullptr) components_[c].table = component.table->get();
    slopes += k;
    own += k * k;
    local = std::max(local, n);
  }
  const std::size_t width = components_.size() + directions();
  room_.resize(unbinned::room_for(components_.size(), channel.functions, slopes, directions()));
  shares_.resize(components_.size());
  moments_.resize(channel.functions);
  own_.resize(own);
  gram_.resize(width * width);
  jacobian_.resize(width * channel.shared.size());
  product_.resize(jacobian_.size());
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
  if (component.function) {
    const auto& places = component.arguments;
    const std::size_t k = places.size();
    std::vector<double> at(k), once(k), twice(k * k);
    for (std::size_t a = 0; a < k; ++a) at[a] = point[component.local[places[a]]];
    const double value = nonzero(yield_jet(*component.function, at, once, twice));
    clear();
    for (std::size_t a = 0; a < k; ++a) {
      first[places[a]] = once[a] / value;
      for (std::size_t b = 0; b < k; ++b)
        second[places[a] * n + places[b]] = twice[a * k + b] / value;
    }
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

void UnbinnedTerms::normalise(const CompiledComponent& component, Component& out,
                              std::span<const double> point, Order order) {
  out.scale = out.yield;
  out.scale.value /= component.normalisation;
  const std::size_t k = component.moving.size(), n = component.local.size();
  if (k == 0) return;
  out.point.resize(k);
  for (std::size_t s = 0; s < k; ++s) out.point[s] = point[component.local[component.moving[s]]];
  component.shape.evaluate(out.point, order, out.shape);
  auto& log = out.normaliser;
  if (out.table == nullptr || !out.table->evaluate(out.point, out.shape, order, log))
    component.direct->evaluate(out.shape, order, log);
  out.scale.value *= std::exp(-log.value);
  if (order == Order::value) return;
  // 1 / Z relative to itself: with L = log Z, −L_s, and L_s L_t − L_st.
  const std::span<double> first(factor_first_.data(), n), second(factor_second_.data(), n * n);
  std::fill(first.begin(), first.end(), 0.0);
  std::fill(second.begin(), second.end(), 0.0);
  for (std::size_t s = 0; s < k; ++s) {
    const std::size_t p = component.moving[s];
    first[p] = -log.first[s];
    for (std::size_t t = 0; t < k && order == Order::hessian; ++t)
      second[p * n + component.moving[t]] = log.first[s] * log.first[t] - log.second[s * k + t];
  }
  out.scale.multiply(first, second);
}

void UnbinnedTerms::prepare(std::span<const double> point, Order order) {
  for (std::size_t c = 0; c < components_.size(); ++c) {
    set_yield(channel_.components[c], components_[c], point);
    normalise(channel_.components[c], components_[c], point, order);
  }
}

unbinned::Events UnbinnedTerms::view(const UnbinnedEvents& events) {
  std::size_t row = 0;
  for (std::size_t c = 0; c < components_.size(); ++c) {
    const auto& component = channel_.components[c];
    const std::size_t functions = component.shape.functions();
    for (std::size_t k = 0; k < functions; ++k)
      rows_[row + k] = events.functions.row(component.first_row + k).data();
    const auto& at = components_[c];
    view_[c] = {events.ratios.row(c).data(),
                at.scale.value,
                {rows_.data() + row, functions, at.shape.values.data(),
                 by_functions_ ? functions : component.moving.size(),
                 by_functions_ ? nullptr : at.shape.first.data()},
                by_functions_ ? at.places.data() : component.columns.data()};
    row += functions;
  }
  return {view_.data(), view_.size(), directions(),
          events.weights.empty() ? nullptr : events.weights.data(), events.size()};
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
  unbinned::kernels().densities(view(events), vector_math::kernels().exponentiate, room_.data(),
                                out.data());
}

void UnbinnedTerms::parts(std::span<const double> point, const UnbinnedEvents& events,
                          Matrix& out) {
  prepare(point, Order::value);
  auto all = view(events);
  all.count = 1;
  for (std::size_t c = 0; c < components_.size(); ++c) {
    all.components = view_.data() + c;
    unbinned::kernels().densities(all, vector_math::kernels().exponentiate, room_.data(),
                                  out.row(c).data());
  }
}

/// Of ν − Σ w log λ, where ∂λ = Σ_c part_c (scale_first + e): of the sums over events.
void UnbinnedTerms::add_gradient(std::span<double> gradient) const {
  for (std::size_t c = 0; c < components_.size(); ++c) {
    const auto& component = channel_.components[c];
    const auto& at = components_[c];
    for (std::size_t p = 0; p < component.local.size(); ++p)
      gradient[component.local[p]] +=
          at.yield.value * at.yield.first[p] - shares_[c] * at.scale.first[p];
    for (std::size_t s = 0; s < component.moving.size(); ++s)
      gradient[component.local[component.moving[s]]] -= at.moved[s];
  }
}

void UnbinnedTerms::add_hessian(std::span<double> hessian) {
  const auto& shared = channel_.shared;
  const std::size_t count = components_.size(), width = count + directions(),
                    columns = shared.size();
  // ∂λ / λ = jacobianᵀ y, and Σ w y y' is known.
  std::fill(jacobian_.begin(), jacobian_.end(), 0.0);
  const double* moments = moments_.data();
  const double* own = own_.data();
  for (std::size_t c = 0; c < count; ++c) {
    const auto& component = channel_.components[c];
    const auto& at = components_[c];
    const std::size_t n = component.local.size(), k = component.moving.size(),
                      functions = component.shape.functions();
    const auto add = [&](std::size_t p, std::size_t q, double value) {
      if (component.local[p] >= component.local[q])
        hessian[component.local[p] * parameters_ + component.local[q]] += value;
    };
    for (std::size_t p = 0; p < n; ++p) {
      jacobian_[c * columns + component.slots[p]] = at.scale.first[p];
      for (std::size_t q = 0; q < n; ++q)
        add(p, q,
            at.yield.value * at.yield.second[p * n + q] - shares_[c] * at.scale.second[p * n + q]);
    }
    for (std::size_t s = 0; s < k; ++s) {
      const std::size_t p = component.moving[s];
      const double* slope = at.shape.first.data() + s * functions;
      if (by_functions_)
        for (std::size_t f = 0; f < functions; ++f)
          jacobian_[(count + at.places[f]) * columns + component.slots[p]] = slope[f];
      else
        jacobian_[(count + component.columns[s]) * columns + component.slots[p]] = 1.0;
      for (std::size_t q = 0; q < n; ++q) {
        add(p, q, -at.moved[s] * at.scale.first[q]);
        add(q, p, -at.moved[s] * at.scale.first[q]);
      }
      for (std::size_t t = 0; t < k; ++t) {
        double curve = 0.0;
        if (by_functions_) {
          const double* other = at.shape.first.data() + t * functions;
          for (std::size_t f = 0; f < functions; ++f)
            for (std::size_t g = 0; g < functions; ++g)
              curve += slope[f] * other[g] * own[std::max(f, g) * functions + std::min(f, g)];
        } else {
          curve = own[std::max(s, t) * k + std::min(s, t)];
        }
        const double* second = at.shape.second.data() + (s * k + t) * functions;
        for (std::size_t f = 0; f < functions; ++f) curve += second[f] * moments[f];
        add(p, component.moving[t], -curve);
      }
    }
    moments += functions;
    own += by_functions_ ? functions * functions : k * k;
  }
  for (std::size_t r = 0; r < width; ++r)
    for (std::size_t a = 0; a < columns; ++a) {
      double sum = 0.0;
      for (std::size_t i = 0; i < width; ++i)
        sum += gram_[std::max(r, i) * width + std::min(r, i)] * jacobian_[i * columns + a];
      product_[r * columns + a] = sum;
    }
  for (std::size_t a = 0; a < columns; ++a)
    for (std::size_t b = 0; b <= a; ++b) {
      double sum = 0.0;
      for (std::size_t r = 0; r < width; ++r)
        sum += jacobian_[r * columns + a] * product_[r * columns + b];
      hessian[std::max(shared[a], shared[b]) * parameters_ + std::min(shared[a], shared[b])] += sum;
    }
}

double UnbinnedTerms::add(std::span<const double> point, const UnbinnedEvents& events, Order order,
                          std::span<double> gradient, std::span<double> hessian) {
  prepare(point, order);
  double expected = 0.0, total = static_cast<double>(events.size());
  for (const auto& component : components_) expected += component.yield.value;
  if (!(expected >= 0.0)) return unbinned_infinity;
  if (!events.weights.empty()) {
    total = 0.0;
    for (const double weight : events.weights) total += weight;
  }
  unbinned::Sums sums{0.0, nullptr, nullptr, nullptr, nullptr};
  if (order != Order::value) {
    std::fill(shares_.begin(), shares_.end(), 0.0);
    std::fill(moments_.begin(), moments_.end(), 0.0);
    sums.shares = shares_.data();
    sums.moments = moments_.data();
  }
  if (order == Order::hessian) {
    std::fill(own_.begin(), own_.end(), 0.0);
    std::fill(gram_.begin(), gram_.end(), 0.0);
    sums.own = own_.data();
    sums.gram = gram_.data();
  }
  if (!unbinned::kernels().add(view(events), vector_math::kernels().exponentiate, room_.data(),
                               sums))
    return unbinned_infinity;
  if (order != Order::value) {
    const double* moments = moments_.data();
    for (std::size_t c = 0; c < components_.size(); ++c) {
      auto& at = components_[c];
      const std::size_t functions = channel_.components[c].shape.functions();
      for (std::size_t s = 0; s < at.moved.size(); ++s) {
        at.moved[s] = 0.0;
        for (std::size_t k = 0; k < functions; ++k)
          at.moved[s] += at.shape.first[s * functions + k] * moments[k];
      }
      moments += functions;
    }
    add_gradient(gradient);
    if (order == Order::hessian) add_hessian(hessian);
  }
  const double offset = total > 0.0 ? total * std::log(total) : 0.0;
  return expected - total - (sums.logs - offset);
}

}  // namespace neyman::detail
