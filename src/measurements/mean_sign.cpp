#include "measurements/mean_sign.hpp"

#include <algorithm>
#include <cmath>

namespace neyman::detail {

namespace {

// With fewer negative events for each fold, how their share varies with x cannot be learned.
constexpr std::size_t least_negative = 10;

}  // namespace

bool has_negative(const Samples& samples) {
  return std::any_of(samples.weights.begin(), samples.weights.end(),
                     [](double weight) { return weight < 0.0; });
}

Samples magnitudes(const Samples& samples) {
  auto out = samples;
  for (double& weight : out.weights) weight = std::abs(weight);
  return out;
}

Samples with_parameters(const Samples& samples) {
  auto out = samples;
  out.feature_names.insert(out.feature_names.end(), samples.parameter_names.begin(),
                           samples.parameter_names.end());
  out.x = Matrix(samples.size(), samples.x.cols() + samples.theta.cols());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto x = samples.x.row(i), theta = samples.theta.row(i);
    std::copy(theta.begin(), theta.end(), std::copy(x.begin(), x.end(), out.x.row(i).begin()));
  }
  return out;
}

std::vector<double> SignRatio::values(const LogRatios& logs) const {
  std::vector<double> out(logs.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = std::tanh(0.5 * (std::log(odds) + std::clamp(logs[i], -log_limit, log_limit))) / mean;
  return out;
}

void SignRatio::save(Archive& archive) const {
  archive.set("odds", odds);
  archive.set("mean", mean);
  fit.save(archive.child("fit"));
}

SignRatio SignRatio::load(const Archive& archive) {
  SignRatio out;
  out.odds = archive.number("odds");
  out.mean = archive.number("mean");
  out.fit.load(archive.child("fit"));
  return out;
}

SignParts::SignParts(const Samples& samples, const FoldedSample& all, std::size_t folds) {
  std::vector<std::size_t> events[2];
  std::vector<double> weights[2];
  std::vector<std::size_t> of_fold[2];
  for (auto& count : of_fold) count.resize(folds);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double weight = samples.weight(i);
    const std::size_t side = weight < 0.0 ? 1 : 0;
    (side == 1 ? negative_sum : positive_sum) += std::abs(weight);
    events[side].push_back(i);
    weights[side].push_back(std::abs(weight));
    if (weight != 0.0) ++of_fold[side][all.fold(i)];
  }
  const auto in_each = [](const std::vector<std::size_t>& counts) {
    return std::all_of(counts.begin(), counts.end(), [](std::size_t count) { return count > 0; });
  };
  if (events[1].size() < least_negative * folds || !in_each(of_fold[0]) || !in_each(of_fold[1]))
    return;
  positive.emplace(all, events[0], std::move(weights[0]));
  negative.emplace(all, events[1], std::move(weights[1]));
}

SignRatio SignParts::untrained() const {
  SignRatio out;
  out.odds = positive_sum / negative_sum;
  out.mean = (positive_sum - negative_sum) / (positive_sum + negative_sum);
  return out;
}

}  // namespace neyman::detail
