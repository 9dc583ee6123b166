#include "neyman/ratios/classifier_ratio.hpp"

#include <algorithm>
#include <cmath>

#include "neyman/core/error.hpp"

namespace neyman {

namespace {

/// The part of Z = E[r | denominator] = E_m[2r / (1 + r)], m = (p0 + p1)/2, that the held-out
/// events of one side give: each event is weighted from the pooled sample to the denominator,
/// so that no term is above 2 however heavy the tail of r.
double bridge_mean(const CrossFit& pair, const FoldedSample& side) {
  const auto logs = pair.held_out(side, pair.held_out_scores(side));
  const auto weights = side.weights();
  double sum = 0.0, total = 0.0;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    sum += weights[i] * 2.0 / (1.0 + std::exp(-logs[i]));
    total += weights[i];
  }
  return sum / total;
}

bool same(std::span<const double> a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace

ClassifierRatio::ClassifierRatio(const FoldedSample& numerator, const FoldedSample& denominator,
                                 std::vector<double> numerator_point,
                                 std::vector<double> denominator_point, const RatioConfig& config,
                                 Tasks* tasks)
    : numerator_(std::move(numerator_point)), denominator_(std::move(denominator_point)) {
  pair_.fit(numerator, denominator, config, 0, tasks);
  if (config.normalise)
    log_normalisation_ =
        std::log(0.5 * (bridge_mean(pair_, numerator) + bridge_mean(pair_, denominator)));
}

ClassifierRatio::ClassifierRatio(const Archive& archive)
    : numerator_(archive.numbers("numerator")),
      denominator_(archive.numbers("denominator")),
      log_normalisation_(archive.number("log_normalisation")) {
  pair_.load(archive.child("pair"));
}

LogRatios ClassifierRatio::log_ratios(MatrixView x, std::span<const double> numerator,
                                      std::span<const double> denominator) const {
  const bool forward = same(numerator, numerator_) && same(denominator, denominator_);
  const bool inverse = same(numerator, denominator_) && same(denominator, numerator_);
  if (!forward && !inverse)
    throw ArgumentError(
        "ClassifierRatio::log_ratios: numerator and denominator are not the two points the "
        "classifier was trained at, but must be (a ratio at other points needs a decomposed "
        "ratio, or its own training)");
  auto out = pair_.log_ratios(pair_.scores(x));
  for (double& value : out.values()) {
    value = std::clamp(value - log_normalisation_, -log_ratio_limit, log_ratio_limit);
    if (inverse) value = -value;
  }
  return out;
}

LogRatios ClassifierRatio::uncalibrated(MatrixView x) const {
  return pair_.uncalibrated(pair_.scores(x));
}

std::size_t ClassifierRatio::count_outside(MatrixView x) const {
  const auto scores = pair_.scores(x);
  std::size_t count = 0;
  for (std::size_t i = 0; i < scores.rows(); ++i) count += pair_.outside(scores.row(i)) ? 1 : 0;
  return count;
}

void ClassifierRatio::save(Archive& archive) const {
  archive.set("kind", kind());
  archive.set("numerator", numerator_);
  archive.set("denominator", denominator_);
  archive.set("log_normalisation", log_normalisation_);
  pair_.save(archive.child("pair"));
}

}  // namespace neyman
