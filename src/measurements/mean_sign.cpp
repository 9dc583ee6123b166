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

SignParts::SignParts(const Samples& samples, const RatioConfig& config, std::uint64_t& stream) {
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double weight = samples.weight(i);
    (weight < 0.0 ? negative_events : positive_events).push_back(i);
    (weight < 0.0 ? negative_sum : positive_sum) += std::abs(weight);
  }
  if (negative_events.size() < least_negative * config.folds) return;
  positive.emplace(samples.take(positive_events), config, stream++);
  negative.emplace(magnitudes(samples.take(negative_events)), config, stream++);
}

SignRatio SignParts::untrained() const {
  SignRatio out;
  out.odds = positive_sum / negative_sum;
  out.mean = (positive_sum - negative_sum) / (positive_sum + negative_sum);
  return out;
}

LogRatios SignParts::held_out(const SignRatio& sign) const {
  LogRatios out(positive_events.size() + negative_events.size());
  const auto put = [&](const FoldedSample& part, const std::vector<std::size_t>& events) {
    const auto logs = sign.fit.held_out(part, sign.fit.held_out_scores(part));
    for (std::size_t i = 0; i < events.size(); ++i) out[events[i]] = logs[i];
  };
  put(*positive, positive_events);
  put(*negative, negative_events);
  return out;
}

}  // namespace neyman::detail
