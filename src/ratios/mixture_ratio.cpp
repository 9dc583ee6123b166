#include "neyman/ratios/mixture_ratio.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/vector_math.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/simulators/design.hpp"

namespace neyman {

MixtureRatio::MixtureRatio(MixtureWeights weights, std::vector<double> reference)
    : weights_(std::move(weights)), reference_(std::move(reference)) {
  weights_(reference_);  // throws where the reference is not allowed
}

std::vector<double> MixtureRatio::normalisation() const {
  return std::vector<double>(components(), 1.0);
}

MixtureRatio::Scores MixtureRatio::score(MatrixView) const {
  throw ArgumentError(fmt::format("score: a ratio of kind '{}' has no replicas", kind()));
}

Matrix MixtureRatio::replica_ratios(const Scores&, std::size_t) const {
  throw ArgumentError(fmt::format("replica_ratios: a ratio of kind '{}' has none", kind()));
}

std::vector<double> MixtureRatio::replica_normalisation(std::size_t) const {
  throw ArgumentError(fmt::format("replica_normalisation: a ratio of kind '{}' has none", kind()));
}

LogRatios MixtureRatio::log_ratios(MatrixView x, std::span<const double> numerator,
                                   std::span<const double> denominator) const {
  // r(θ0, θ1) = r(θ0, ref) / r(θ1, ref), whatever the reference.
  const auto top = weights_(numerator);
  const auto bottom = weights_(denominator);
  const auto ratios = component_ratios(x);
  const auto means = normalisation();
  double top_mean = 0.0, bottom_mean = 0.0;
  for (std::size_t c = 0; c < components(); ++c) {
    top_mean += top[c] * means[c];
    bottom_mean += bottom[c] * means[c];
  }
  const double offset = std::log(top_mean / bottom_mean);
  LogRatios out(x.rows());
  for (std::size_t i = 0; i < x.rows(); ++i) {
    double above = 0.0, below = 0.0;
    for (std::size_t c = 0; c < components(); ++c) {
      above += top[c] * ratios(i, c);
      below += bottom[c] * ratios(i, c);
    }
    out[i] =
        std::clamp(std::log(above) - std::log(below) - offset, -log_ratio_limit, log_ratio_limit);
  }
  return out;
}

std::vector<double> default_reference(const ParameterSpace& parameters,
                                      const MixtureWeights& weights) {
  const auto positive = [&](std::span<const double> point) {
    try {
      const auto shares = weights(point);
      return std::all_of(shares.begin(), shares.end(), [](double w) { return w > 0.0; });
    } catch (const ArgumentError&) {
      return false;
    }
  };
  std::vector<double> middle;
  for (const auto& p : parameters) middle.push_back(0.5 * (p.low + p.high));
  if (positive(middle)) return middle;
  constexpr std::size_t trials = 4096;
  const Matrix points =
      Design(parameters, {.kind = Design::Kind::sobol}).draw(trials, 0, "reference");
  std::vector<double> sum(parameters.size(), 0.0);
  std::size_t count = 0;
  for (std::size_t i = 0; i < trials; ++i) {
    if (!positive(points.row(i))) continue;
    ++count;
    for (std::size_t p = 0; p < sum.size(); ++p) sum[p] += points(i, p);
  }
  for (double& value : sum) value /= static_cast<double>(std::max<std::size_t>(count, 1));
  if (count == 0 || !positive(sum))
    throw ArgumentError(
        "reference: is missing, and no point of the ranges is found at which every component has a "
        "share; give one");
  return sum;
}

namespace {

MixtureWeights weights_of(const std::shared_ptr<const Mixture>& mixture) {
  if (mixture == nullptr) fail_argument("ExactMixtureRatio", "mixture", "null", "a mixture");
  return {mixture->weight_expressions(), mixture->components().size()};
}

}  // namespace

ExactMixtureRatio::ExactMixtureRatio(std::shared_ptr<const Mixture> mixture,
                                     std::vector<double> reference)
    : MixtureRatio(weights_of(mixture), std::move(reference)), mixture_(std::move(mixture)) {
  for (std::size_t c = 0; c < mixture_->components().size(); ++c)
    if (!mixture_->components()[c]->has_density())
      fail_argument("ExactMixtureRatio", fmt::format("component '{}'", mixture_->names()[c]),
                    mixture_->components()[c]->kind(), "one that knows its density");
}

Matrix ExactMixtureRatio::component_ratios(MatrixView x) const {
  const auto reference = weights_(reference_);
  const std::size_t count = components();
  const double highest = std::exp(log_ratio_limit), lowest = std::exp(-log_ratio_limit);
  Matrix out(x.rows(), count);
  // Few rows at a time: their logarithms stay in the cache.
  parallel_blocks(x.rows(), 512, [&](Block block) {
    const auto rows = x.rows(block.begin, block.end);
    Matrix logs(count, block.size());
    for (std::size_t c = 0; c < count; ++c)
      mixture_->components()[c]->log_density(reference_, rows, logs.row(c));
    // Relative to the largest under the reference; 0 where it is impossible there.
    std::vector<double> peaks(block.size(), -std::numeric_limits<double>::infinity());
    for (std::size_t c = 0; c < count; ++c)
      if (reference[c] > 0.0)
        for (std::size_t i = 0; i < block.size(); ++i) peaks[i] = std::max(peaks[i], logs(c, i));
    for (double& peak : peaks)
      if (peak == -std::numeric_limits<double>::infinity()) peak = 0.0;
    for (std::size_t c = 0; c < count; ++c)
      for (std::size_t i = 0; i < block.size(); ++i)
        logs(c, i) = std::min(logs(c, i) - peaks[i], log_ratio_limit);
    vector_math::kernels().exponentiate(logs.data(), count * block.size());
    std::vector<double> sums(block.size(), 0.0);
    for (std::size_t c = 0; c < count; ++c)
      for (std::size_t i = 0; i < block.size(); ++i) sums[i] += reference[c] * logs(c, i);
    for (double& sum : sums) sum = 1.0 / sum;
    for (std::size_t c = 0; c < count; ++c)
      for (std::size_t i = 0; i < block.size(); ++i)
        logs(c, i) = std::min(std::max(logs(c, i) * sums[i], lowest), highest);
    for (std::size_t i = 0; i < block.size(); ++i)
      for (std::size_t c = 0; c < count; ++c) out(block.begin + i, c) = logs(c, i);
  });
  return out;
}

}  // namespace neyman
