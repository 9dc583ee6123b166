#include "neyman/inference/likelihood.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/instruction_set.hpp"
#include "inference/mixture_kernels.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman {

namespace {

// Large enough that the likelihood of some thousand events is one block on one thread.
constexpr std::size_t likelihood_block = 16384;
constexpr std::size_t simulation_events = 50000;

const mixture::Kernels& kernels() {
  static const mixture::Kernels& chosen =
      detail::choose("MixtureLikelihood", detail::supported(mixture::all_kernels));
  return chosen;
}

}  // namespace

std::optional<double> Likelihood::second_derivatives(std::span<const double>, std::span<double>,
                                                     Matrix&) const {
  return std::nullopt;
}

std::vector<double> Likelihood::at(MatrixView points) const {
  const auto& space = parameters();
  check_same_size("Likelihood::at", "a row of points", points.cols(), space.size(),
                  "one for each parameter");
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < points.rows(); ++i) {
    bool in = true;
    for (std::size_t p = 0; p < space.size(); ++p)
      in = in &&
           (space[p].periodic || (points(i, p) >= space[p].low && points(i, p) <= space[p].high));
    if (in) rows.push_back(i);
  }
  std::vector<double> out(points.rows(), forbidden);
  Matrix some(rows.size(), space.size());
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const auto point = space.wrapped(points.row(rows[k]));
    std::copy(point.begin(), point.end(), some.row(k).begin());
  }
  const auto values = at_allowed(some);
  for (std::size_t k = 0; k < rows.size(); ++k) out[rows[k]] = values[k];
  return out;
}

std::vector<double> Likelihood::at_allowed(MatrixView points) const {
  std::vector<double> out(points.rows());
  parallel_tasks(points.rows(), [&](std::size_t i) { out[i] = (*this)(points.row(i)); });
  return out;
}

MixtureLikelihood::MixtureLikelihood(ParameterSpace parameters, const MixtureRatio& ratio,
                                     MatrixView x, std::vector<double> event_weights)
    : MixtureLikelihood(std::move(parameters), ratio.weights(), ratio.component_ratios(x),
                        ratio.normalisation(), std::move(event_weights)) {}

MixtureLikelihood::MixtureLikelihood(ParameterSpace parameters, MixtureWeights weights,
                                     const Matrix& ratios, std::vector<double> normalisation,
                                     std::vector<double> event_weights)
    : parameters_(std::move(parameters)),
      weights_(std::move(weights)),
      ratios_(ratios.cols(), ratios.rows()),
      normalisation_(std::move(normalisation)),
      event_weights_(std::move(event_weights)) {
  check_same_size("MixtureLikelihood", "ratios", ratios.cols(), weights_.size(),
                  "one column a component");
  check_same_size("MixtureLikelihood", "normalisation", normalisation_.size(), weights_.size(),
                  "one a component");
  if (!event_weights_.empty()) {
    check_same_size("MixtureLikelihood", "event_weights", event_weights_.size(), ratios.rows(),
                    "one an event");
    check_finite("MixtureLikelihood", "event_weights", event_weights_);
  }
  const double least = std::numeric_limits<double>::min();  // below are no normal numbers
  const double most = std::numeric_limits<double>::max();
  bool usable = true;
  constexpr std::size_t together = 64;  // rows that stay in the cache while columns are made
  for (std::size_t begin = 0; begin < ratios.rows(); begin += together) {
    const std::size_t end = std::min(ratios.rows(), begin + together);
    for (std::size_t c = 0; c < ratios.cols(); ++c)
      for (std::size_t i = begin; i < end; ++i) {
        const double value = ratios(i, c);
        usable &= value >= least && value <= most;
        ratios_(c, i) = value;
      }
  }
  for (std::size_t i = 0; !usable && i < ratios.rows(); ++i)
    for (const double value : ratios.row(i))
      if (!(value >= least && value <= most))
        fail_argument("MixtureLikelihood", "ratios[" + std::to_string(i) + "]",
                      std::to_string(value), "positive and finite");
  total_weight_ = static_cast<double>(ratios.rows());
  if (!event_weights_.empty()) {
    total_weight_ = 0.0;
    for (const double weight : event_weights_) total_weight_ += weight;
  }
}

/// Sums over the events, see mixture::Sums; both halves of the gram matrix.
struct MixtureLikelihood::Sums {
  double logs = 0.0;
  std::vector<double> shares;
  Matrix gram;
};

MixtureLikelihood::Sums MixtureLikelihood::sum_events(std::span<const double> weights,
                                                      Want want) const {
  const std::size_t components = weights_.size();
  Sums none;
  if (want != Want::value) none.shares.assign(components, 0.0);
  if (want == Want::hessian) none.gram = Matrix(components, components);
  const auto block_sums = [&](Block block) {
    Sums sums = none;
    std::vector<const double*> ratios(components);
    for (std::size_t c = 0; c < components; ++c) ratios[c] = ratios_.row(c).data() + block.begin;
    std::vector<double> room(want == Want::value ? 0 : mixture::chunk * components);
    mixture::Sums into{0.0, sums.shares.empty() ? nullptr : sums.shares.data(),
                       sums.gram.empty() ? nullptr : sums.gram.data()};
    kernels().add(
        {ratios.data(), event_weights_.empty() ? nullptr : event_weights_.data() + block.begin,
         components, block.size()},
        weights.data(), room.data(), into);
    sums.logs = into.logs;
    return sums;
  };
  auto sums =
      reduce_blocks(events(), likelihood_block, none, block_sums, [](Sums total, const Sums& part) {
        total.logs += part.logs;
        for (std::size_t c = 0; c < part.shares.size(); ++c) total.shares[c] += part.shares[c];
        for (std::size_t k = 0; k < part.gram.values().size(); ++k)
          total.gram.values()[k] += part.gram.values()[k];
        return total;
      });
  for (std::size_t c = 0; c < sums.gram.rows(); ++c)
    for (std::size_t d = 0; d < c; ++d) sums.gram(d, c) = sums.gram(c, d);
  return sums;
}

namespace {

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

double MixtureLikelihood::operator()(std::span<const double> point,
                                     std::span<double> gradient) const {
  std::fill(gradient.begin(), gradient.end(), 0.0);
  std::vector<double> weights;
  Matrix derivatives;
  try {
    weights = weights_(point);
    if (!gradient.empty()) derivatives = weights_.derivatives(point, parameters_);
  } catch (const ArgumentError&) {
    return forbidden;  // outside the weights' domain, which a box of parameters may contain
  }
  const auto sums = sum_events(weights, gradient.empty() ? Want::value : Want::gradient);
  const double norm = dot(weights, normalisation_);
  for (std::size_t p = 0; p < gradient.size(); ++p)
    for (std::size_t c = 0; c < weights.size(); ++c)
      gradient[p] +=
          derivatives(c, p) * (sums.shares[c] - total_weight_ * normalisation_[c] / norm);
  return sums.logs - total_weight_ * std::log(norm);
}

std::optional<double> MixtureLikelihood::second_derivatives(std::span<const double> point,
                                                            std::span<double> gradient,
                                                            Matrix& hessian) const {
  const std::size_t size = parameters_.size(), components = weights_.size();
  std::vector<double> weights;
  Matrix first;
  std::vector<MixtureWeights::SecondDerivative> second;
  try {
    weights = weights_(point);
    first = weights_.derivatives(point, parameters_);
    second = weights_.second_derivatives(point, parameters_);
  } catch (const ArgumentError&) {
    return std::nullopt;
  }
  const auto sums = sum_events(weights, Want::hessian);
  const double norm = dot(weights, normalisation_);
  std::vector<double> slopes(components);  // ∂ℓ/∂w
  for (std::size_t c = 0; c < components; ++c)
    slopes[c] = sums.shares[c] - total_weight_ * normalisation_[c] / norm;
  // ∂²ℓ/∂w∂w', times ∂w'/∂θ'
  Matrix half(components, size);
  for (std::size_t c = 0; c < components; ++c)
    for (std::size_t d = 0; d < components; ++d) {
      const double curvature =
          total_weight_ * normalisation_[c] * normalisation_[d] / (norm * norm) - sums.gram(c, d);
      for (std::size_t p = 0; p < size; ++p) half(c, p) += curvature * first(d, p);
    }
  hessian = Matrix(size, size);
  for (std::size_t p = 0; p < size; ++p) {
    gradient[p] = 0.0;
    for (std::size_t c = 0; c < components; ++c) {
      gradient[p] += first(c, p) * slopes[c];
      for (std::size_t q = 0; q < size; ++q) hessian(p, q) += first(c, p) * half(c, q);
    }
  }
  for (const auto& term : second) {
    const double value = slopes[term.component] * term.value;
    hessian(term.first, term.second) += value;
    if (term.first != term.second) hessian(term.second, term.first) += value;
  }
  return sums.logs - total_weight_ * std::log(norm);
}

Matrix simulation_gradient_covariance(const ParameterSpace& parameters, const MixtureRatio& ratio,
                                      MatrixView x, std::span<const double> event_weights,
                                      std::span<const double> point) {
  const std::size_t dimension = parameters.size(), replicas = ratio.replicas();
  Matrix out(dimension, dimension);
  if (replicas < 2 || x.rows() == 0) return out;

  // Every k-th event is as good as all for a spread over replicas.
  const std::size_t stride = (x.rows() + simulation_events - 1) / simulation_events;
  Matrix some(0, x.cols());
  std::vector<double> some_weights;
  double total = 0.0, used = 0.0;
  for (std::size_t i = 0; i < x.rows(); ++i) {
    const double weight = event_weights.empty() ? 1.0 : event_weights[i];
    total += weight;
    if (i % stride != 0) continue;
    some.append(x.rows(i, i + 1));
    some_weights.push_back(weight);
    used += weight;
  }
  const auto scores = ratio.score(some);
  const auto weights = ratio.weights()(point);
  const auto derivatives = ratio.weights().derivatives(point, parameters);
  Matrix gradients(replicas, dimension);
  parallel_tasks(replicas, [&](std::size_t b) {
    const auto ratios = ratio.replica_ratios(scores, b);
    const auto means = ratio.replica_normalisation(b);
    double norm = 0.0;
    for (std::size_t c = 0; c < weights.size(); ++c) norm += weights[c] * means[c];
    std::vector<double> share(weights.size(), 0.0);
    for (std::size_t i = 0; i < some.rows(); ++i) {
      double mixture = 0.0;
      for (std::size_t c = 0; c < weights.size(); ++c) mixture += weights[c] * ratios(i, c);
      for (std::size_t c = 0; c < weights.size(); ++c)
        share[c] += some_weights[i] * ratios(i, c) / mixture;
    }
    for (std::size_t p = 0; p < dimension; ++p)
      for (std::size_t c = 0; c < weights.size(); ++c)
        gradients(b, p) += derivatives(c, p) * (share[c] - used * means[c] / norm);
  });
  const double scale = used > 0.0 ? total / used : 0.0;
  std::vector<double> centre(dimension, 0.0);
  for (std::size_t b = 0; b < replicas; ++b)
    for (std::size_t p = 0; p < dimension; ++p)
      centre[p] += gradients(b, p) / static_cast<double>(replicas);
  for (std::size_t b = 0; b < replicas; ++b)
    for (std::size_t p = 0; p < dimension; ++p)
      for (std::size_t q = 0; q < dimension; ++q)
        out(p, q) += scale * scale * (gradients(b, p) - centre[p]) * (gradients(b, q) - centre[q]) /
                     static_cast<double>(replicas - 1);
  return out;
}

}  // namespace neyman
