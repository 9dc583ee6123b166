#include "neyman/inference/likelihood.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman {

namespace {

// Large enough that the likelihood of some thousand events is one block on one thread.
constexpr std::size_t likelihood_block = 16384;
// Events of which the mixture's ratio is held at once.
constexpr std::size_t chunk = 512;
constexpr std::size_t simulation_events = 50000;

/// Σ log v of positive normal numbers, with one logarithm for up to 128 of them: mantissas in
/// [1, 2) are multiplied and exponents added, so that nothing overflows.
double sum_logs(const double* v, std::size_t count) {
  constexpr std::uint64_t mantissa = 0x000fffffffffffffULL, one = 0x3ff0000000000000ULL;
  constexpr std::size_t lanes = 8, run = 128 * lanes;
  double sum = 0.0;
  std::size_t i = 0;
  for (; i + lanes <= count;) {
    const std::size_t end = std::min(count - (count - i) % lanes, i + run);
    double product[lanes];
    std::uint64_t exponents[lanes];
    std::fill_n(product, lanes, 1.0);
    std::fill_n(exponents, lanes, 0);
    const std::size_t steps = (end - i) / lanes;
    for (std::size_t step = 0; step < steps; ++step, i += lanes)
      for (std::size_t l = 0; l < lanes; ++l) {
        const auto bits = std::bit_cast<std::uint64_t>(v[i + l]);
        product[l] *= std::bit_cast<double>((bits & mantissa) | one);
        exponents[l] += bits >> 52;
      }
    for (std::size_t l = 0; l < lanes; ++l)
      sum += std::log(product[l]) +
             (static_cast<double>(exponents[l]) - 1023.0 * static_cast<double>(steps)) *
                 0.693147180559945309417;
  }
  for (; i < count; ++i) sum += std::log(v[i]);
  return sum;
}

/// Sums over a block of events.
struct Sums {
  double logs = 0.0;
  std::vector<double> shares;  // Σ u q_c / Σ_c' w_c' q_c', by component
};

}  // namespace

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
  for (std::size_t i = 0; i < ratios.rows(); ++i)
    for (std::size_t c = 0; c < ratios.cols(); ++c) {
      const double value = ratios(i, c);
      if (!std::isnormal(value) || value < 0.0)
        fail_argument("MixtureLikelihood", "ratios[" + std::to_string(i) + "]",
                      std::to_string(value), "positive and finite");
      ratios_(c, i) = value;
    }
  total_weight_ = static_cast<double>(ratios.rows());
  if (!event_weights_.empty()) {
    total_weight_ = 0.0;
    for (const double weight : event_weights_) total_weight_ += weight;
  }
}

Matrix weight_derivatives(const MixtureWeights& weights, const ParameterSpace& parameters,
                          std::span<const double> point) {
  Matrix out(weights.size(), parameters.size());
  std::vector<double> moved(point.begin(), point.end());
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const double step = 1e-5 * (parameters[p].high - parameters[p].low);
    const double high = std::min(parameters[p].high, point[p] + step);
    const double low = std::max(parameters[p].low, point[p] - step);
    moved[p] = high;
    const auto above = weights(moved);
    moved[p] = low;
    const auto below = weights(moved);
    moved[p] = point[p];
    for (std::size_t c = 0; c < weights.size(); ++c)
      out(c, p) = (above[c] - below[c]) / (high - low);
  }
  return out;
}

double MixtureLikelihood::operator()(std::span<const double> point,
                                     std::span<double> gradient) const {
  std::fill(gradient.begin(), gradient.end(), 0.0);
  std::vector<double> weights;
  Matrix derivatives;
  try {
    weights = weights_(point);
    if (!gradient.empty()) derivatives = weight_derivatives(weights_, parameters_, point);
  } catch (const ArgumentError&) {
    return forbidden;  // outside the weights' domain, which a box of parameters may contain
  }
  const std::size_t components = weights_.size();
  const bool want_gradient = !gradient.empty();

  const auto block_sums = [&](Block block) {
    Sums sums;
    sums.shares.assign(components, 0.0);
    double mixture[chunk];
    for (std::size_t begin = block.begin; begin < block.end; begin += chunk) {
      const std::size_t count = std::min(chunk, block.end - begin);
      std::fill_n(mixture, count, 0.0);
      for (std::size_t c = 0; c < components; ++c) {
        const double* q = ratios_.row(c).data() + begin;
        const double weight = weights[c];
        for (std::size_t i = 0; i < count; ++i) mixture[i] += weight * q[i];
      }
      if (event_weights_.empty()) {
        sums.logs += sum_logs(mixture, count);
      } else {
        const double* u = event_weights_.data() + begin;
        for (std::size_t i = 0; i < count; ++i) sums.logs += u[i] * std::log(mixture[i]);
      }
      if (!want_gradient) continue;
      for (std::size_t i = 0; i < count; ++i)
        mixture[i] = (event_weights_.empty() ? 1.0 : event_weights_[begin + i]) / mixture[i];
      for (std::size_t c = 0; c < components; ++c) {
        const double* q = ratios_.row(c).data() + begin;
        double share[8] = {};
        std::size_t i = 0;
        for (; i + 8 <= count; i += 8)
          for (std::size_t l = 0; l < 8; ++l) share[l] += q[i + l] * mixture[i + l];
        for (; i < count; ++i) share[0] += q[i] * mixture[i];
        for (const double part : share) sums.shares[c] += part;
      }
    }
    return sums;
  };
  const auto sums =
      reduce_blocks(events(), likelihood_block, Sums{0.0, std::vector(components, 0.0)}, block_sums,
                    [](Sums total, const Sums& part) {
                      total.logs += part.logs;
                      for (std::size_t c = 0; c < part.shares.size(); ++c)
                        total.shares[c] += part.shares[c];
                      return total;
                    });
  double norm = 0.0;
  for (std::size_t c = 0; c < components; ++c) norm += weights[c] * normalisation_[c];
  if (want_gradient)
    for (std::size_t p = 0; p < parameters_.size(); ++p)
      for (std::size_t c = 0; c < components; ++c)
        gradient[p] +=
            derivatives(c, p) * (sums.shares[c] - total_weight_ * normalisation_[c] / norm);
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
  const auto derivatives = weight_derivatives(ratio.weights(), parameters, point);
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
