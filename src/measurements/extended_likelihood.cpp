#include "neyman/measurements/extended_likelihood.hpp"

#include <algorithm>
#include <cmath>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/simulators/join.hpp"

namespace neyman {

namespace {

constexpr const char* extended = "ExtendedLikelihood";

std::size_t pair_index(std::size_t a, std::size_t b) {
  return a >= b ? a * (a + 1) / 2 + b : pair_index(b, a);
}

Matrix columns_of(MatrixView x, std::size_t first, std::size_t count) {
  Matrix out(x.rows(), count);
  for (std::size_t i = 0; i < x.rows(); ++i)
    std::copy_n(x.row(i).begin() + static_cast<std::ptrdiff_t>(first), count, out.row(i).begin());
  return out;
}

}  // namespace

/// log p_c of each event and ν_c with derivatives. Those of log p_c are by the component's own
/// parameters, second ones as a lower triangle; those of ν_c by all parameters.
struct ExtendedLikelihood::Jet {
  std::vector<double> value;
  std::vector<std::vector<double>> first, second;
  double yield = 0.0;
  std::vector<double> yield_first, yield_second;
};

ExtendedLikelihood::ExtendedLikelihood(ParameterSpace parameters, const Mixture& mixture,
                                       MatrixView x, std::vector<double> weights)
    : parameters_(std::move(parameters)), weights_(std::move(weights)), events_(x.rows()) {
  if (mixture.yields().empty())
    fail_argument(extended, "mixture", "without yields", "one with expected events");
  if (!mixture.has_density())
    fail_argument(extended, "mixture", "without a density", "made of distributions that have one");
  check_same_size(extended, "x, columns", x.cols(), mixture.dimension(), "one a feature");
  if (!weights_.empty()) {
    check_same_size(extended, "weights", weights_.size(), events_, "one an event");
    check_finite(extended, "weights", weights_);
  }
  for (std::size_t i = 0; i < x.rows(); ++i) check_finite(extended, "x", x.row(i));
  for (std::size_t c = 0; c < mixture.components().size(); ++c) {
    Component component;
    component.yield = mixture.yields()[c];
    component.fixed.assign(events_, 0.0);
    add_parts(mixture.components()[c], x, component);
    for (const auto& part : component.parts)
      for (const std::size_t p : part.uses)
        if (std::find(component.uses.begin(), component.uses.end(), p) == component.uses.end())
          component.uses.push_back(p);
    components_.push_back(std::move(component));
  }
}

void ExtendedLikelihood::add_parts(const DistributionPtr& density, MatrixView x,
                                   Component& to) const {
  if (const auto* join = dynamic_cast<const Join*>(density.get())) {
    std::size_t first = 0;
    for (const auto& part : join->parts()) {
      add_parts(part, columns_of(x, first, part->dimension()), to);
      first += part->dimension();
    }
    return;
  }
  Part part{density, columns_of(x, 0, x.cols()), {}};
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    if (depends_on(*density, parameters_, p)) part.uses.push_back(p);
  if (!part.uses.empty()) {
    to.parts.push_back(std::move(part));
    return;
  }
  std::vector<double> anywhere;
  for (const auto& parameter : parameters_)
    anywhere.push_back(0.5 * (parameter.low + parameter.high));
  std::vector<double> out(events_);
  density->log_density(anywhere, part.x, out);
  for (std::size_t i = 0; i < events_; ++i) to.fixed[i] += out[i];
}

double ExtendedLikelihood::step(std::size_t parameter) const {
  return 1e-3 * (parameters_[parameter].high - parameters_[parameter].low);
}

ExtendedLikelihood::Jet ExtendedLikelihood::jet_of(const Component& component,
                                                   std::span<const double> point, int order) const {
  const std::size_t k = component.uses.size(), n = parameters_.size();
  Jet out;
  out.value = component.fixed;
  if (order > 0) out.first.assign(k, std::vector<double>(events_, 0.0));
  if (order > 1) out.second.assign(k * (k + 1) / 2, std::vector<double>(events_, 0.0));
  // Differences stay inside of the ranges.
  std::vector<double> centre(point.begin(), point.end()), at;
  for (std::size_t p = 0; p < n; ++p)
    centre[p] = std::clamp(centre[p], parameters_[p].low + step(p), parameters_[p].high - step(p));
  std::vector<double> logs(events_);
  const auto moved = [&](std::size_t p, double steps) { at[p] += steps * step(p); };
  for (const auto& part : component.parts) {
    const auto add = [&](double factor, std::vector<double>& to) {
      part.density->log_density(at, part.x, logs);
      for (std::size_t i = 0; i < events_; ++i) to[i] += factor * logs[i];
    };
    at.assign(point.begin(), point.end());
    add(1.0, out.value);
    if (order == 0) continue;
    const auto place = [&](std::size_t p) {
      return static_cast<std::size_t>(std::find(component.uses.begin(), component.uses.end(), p) -
                                      component.uses.begin());
    };
    for (const std::size_t p : part.uses) {
      const std::size_t a = place(p);
      auto* second = order > 1 ? &out.second[pair_index(a, a)] : nullptr;
      const double h = step(p);
      for (const double side : {1.0, -1.0}) {
        at = centre;
        moved(p, side);
        part.density->log_density(at, part.x, logs);
        for (std::size_t i = 0; i < events_; ++i) out.first[a][i] += side * logs[i] / (2.0 * h);
        if (second != nullptr)
          for (std::size_t i = 0; i < events_; ++i) (*second)[i] += logs[i] / (h * h);
      }
      if (second == nullptr) continue;
      at = centre;
      add(-2.0 / (h * h), *second);
      for (const std::size_t q : part.uses) {
        if (q >= p) continue;
        for (const double side : {1.0, -1.0})
          for (const double other : {1.0, -1.0}) {
            at = centre;
            moved(p, side);
            moved(q, other);
            add(side * other / (4.0 * h * step(q)), out.second[pair_index(a, place(q))]);
          }
      }
    }
  }
  out.yield = component.yield(point);
  out.yield_first.assign(n, 0.0);
  out.yield_second.assign(n * (n + 1) / 2, 0.0);
  if (order == 0) return out;
  const auto yield_at = [&](std::size_t p, double side, std::size_t q, double other) {
    at = centre;
    moved(p, side);
    moved(q, other);
    return component.yield(at);
  };
  for (const std::size_t p : component.yield.uses())
    for (const std::size_t q : component.yield.uses()) {
      if (q > p) continue;
      const double h = step(p), g = step(q);
      auto& second = out.yield_second[pair_index(p, q)];
      if (p != q) {
        second = (yield_at(p, 1, q, 1) - yield_at(p, 1, q, -1) - yield_at(p, -1, q, 1) +
                  yield_at(p, -1, q, -1)) /
                 (4.0 * h * g);
        continue;
      }
      const double up = yield_at(p, 1, p, 0), down = yield_at(p, -1, p, 0);
      out.yield_first[p] = (up - down) / (2.0 * h);
      second = (up - 2.0 * yield_at(p, 0, p, 0) + down) / (h * h);
    }
  return out;
}

double ExtendedLikelihood::evaluate(std::span<const double> point, int order,
                                    std::span<double> gradient, Matrix* hessian) const {
  const std::size_t n = parameters_.size(), count = components_.size();
  std::fill(gradient.begin(), gradient.end(), 0.0);
  if (hessian != nullptr) *hessian = Matrix(n, n);
  std::vector<Jet> jets;
  double sum = 0.0;
  try {
    for (const auto& component : components_) {
      jets.push_back(jet_of(component, point, order));
      if (jets.back().yield < 0.0) return forbidden;
      sum -= jets.back().yield;
    }
  } catch (const ArgumentError&) {
    return forbidden;
  }
  std::vector<double> share(count), mean(n);
  for (std::size_t i = 0; i < events_; ++i) {
    double largest = jets[0].value[i];
    for (const auto& jet : jets) largest = std::max(largest, jet.value[i]);
    double total = 0.0;
    for (std::size_t c = 0; c < count; ++c) {
      share[c] = std::exp(jets[c].value[i] - largest);
      total += jets[c].yield * share[c];
    }
    if (!(total > 0.0)) {
      std::fill(gradient.begin(), gradient.end(), 0.0);
      return forbidden;
    }
    const double weight = weights_.empty() ? 1.0 : weights_[i];
    sum += weight * (std::log(total) + largest);
    if (order == 0) continue;
    std::fill(mean.begin(), mean.end(), 0.0);
    for (std::size_t c = 0; c < count; ++c) {
      const auto& jet = jets[c];
      const auto& uses = components_[c].uses;
      share[c] /= total;  // p_c / λ
      for (const std::size_t p : components_[c].yield.uses())
        mean[p] += share[c] * jet.yield_first[p];
      for (std::size_t a = 0; a < uses.size(); ++a)
        mean[uses[a]] += share[c] * jet.yield * jet.first[a][i];
      if (order == 1) continue;
      for (const std::size_t p : components_[c].yield.uses())
        for (std::size_t a = 0; a < uses.size(); ++a) {
          const double value = weight * share[c] * jet.yield_first[p] * jet.first[a][i];
          (*hessian)(p, uses[a]) += value;
          (*hessian)(uses[a], p) += value;
        }
      for (const std::size_t p : components_[c].yield.uses())
        for (const std::size_t q : components_[c].yield.uses())
          (*hessian)(p, q) += weight * share[c] * jet.yield_second[pair_index(p, q)];
      for (std::size_t a = 0; a < uses.size(); ++a)
        for (std::size_t b = 0; b < uses.size(); ++b)
          (*hessian)(uses[a], uses[b]) +=
              weight * share[c] * jet.yield *
              (jet.second[pair_index(a, b)][i] + jet.first[a][i] * jet.first[b][i]);
    }
    for (std::size_t p = 0; p < n; ++p) gradient[p] += weight * mean[p];
    if (order == 1) continue;
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t q = 0; q < n; ++q) (*hessian)(p, q) -= weight * mean[p] * mean[q];
  }
  if (order == 0) return sum;
  for (const auto& jet : jets)
    for (std::size_t p = 0; p < n; ++p) {
      gradient[p] -= jet.yield_first[p];
      if (hessian == nullptr) continue;
      for (std::size_t q = 0; q < n; ++q) (*hessian)(p, q) -= jet.yield_second[pair_index(p, q)];
    }
  return sum;
}

double ExtendedLikelihood::operator()(std::span<const double> point,
                                      std::span<double> gradient) const {
  return evaluate(point, gradient.empty() ? 0 : 1, gradient, nullptr);
}

std::optional<double> ExtendedLikelihood::second_derivatives(std::span<const double> point,
                                                             std::span<double> gradient,
                                                             Matrix& hessian) const {
  const double value = evaluate(point, 2, gradient, &hessian);
  if (value == forbidden) return {};
  return value;
}

}  // namespace neyman
