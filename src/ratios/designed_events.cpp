#include "ratios/designed_events.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"

namespace neyman::across {

void check_designed_events(const char* function, const Samples& events, const Design& design) {
  events.check(function);
  const std::size_t parameters = design.parameters().size();
  if (events.theta.rows() != events.size() || events.theta.cols() != parameters)
    fail_argument(function, "events.theta",
                  std::to_string(events.theta.rows()) + " × " + std::to_string(events.theta.cols()),
                  std::to_string(events.size()) + " × " + std::to_string(parameters) +
                      ": the θ that each event was simulated at");
  if (design.single())
    fail_argument(function, "design", "one point", "a distribution over several θ");
}

FeatureRanges::FeatureRanges(MatrixView x) {
  if (x.rows() == 0) return;
  low_.assign(x.row(0).begin(), x.row(0).end());
  high_ = low_;
  for (std::size_t i = 1; i < x.rows(); ++i)
    for (std::size_t f = 0; f < x.cols(); ++f) {
      low_[f] = std::min(low_[f], x(i, f));
      high_[f] = std::max(high_[f], x(i, f));
    }
}

void FeatureRanges::go_round(std::size_t feature) {
  low_[feature] = std::numeric_limits<double>::lowest();
  high_[feature] = std::numeric_limits<double>::max();
}

std::size_t FeatureRanges::count_outside(MatrixView x) const {
  std::size_t outside = 0;
  for (std::size_t i = 0; i < x.rows(); ++i) {
    bool out = false;
    for (std::size_t f = 0; f < x.cols(); ++f) out |= x(i, f) < low_[f] || x(i, f) > high_[f];
    outside += out ? 1 : 0;
  }
  return outside;
}

void FeatureRanges::save(Archive& archive) const {
  archive.set("low", low_);
  archive.set("high", high_);
}

FeatureRanges FeatureRanges::load(const Archive& archive) {
  FeatureRanges out;
  out.low_ = archive.numbers("low");
  out.high_ = archive.numbers("high");
  if (out.low_.empty() || out.low_.size() != out.high_.size() || out.low_.size() > 1000000)
    throw FileError("the ranges of the features have sizes that do not agree");
  return out;
}

}  // namespace neyman::across
