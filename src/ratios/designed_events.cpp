#include "ratios/designed_events.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"

namespace neyman::across {

namespace {

/// θ that are not those of a design that fills the ranges: what is learned over it would be wrong,
/// and would not know where there are no events.
void check_filled(const char* function, const Samples& events, const Design& design) {
  constexpr std::size_t enough = 200, looked_at = 10000;
  const std::size_t step = events.size() / looked_at + 1;
  constexpr double far = 0.3;  // of uniform θ, 200 of them: one in 10^15
  const auto kind = design.config().kind;
  const bool fills = kind == Design::Kind::uniform || kind == Design::Kind::sobol ||
                     kind == Design::Kind::latin_hypercube;
  if (!fills || events.weighted()) return;
  for (std::size_t p = 0; p < design.parameters().size(); ++p) {
    const auto& range = design.parameters()[p];
    const auto place = [&](double theta) {
      return design.on_log_scale(p) ? std::log(theta / range.low) / std::log(range.high / range.low)
                                    : (theta - range.low) / (range.high - range.low);
    };
    std::vector<double> values;
    for (std::size_t i = 0; i < events.size(); i += step) values.push_back(events.theta(i, p));
    std::sort(values.begin(), values.end());
    const auto n = static_cast<double>(values.size());
    double distance = 0.0;  // Kolmogorov's
    std::size_t different = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      different += i == 0 || values[i] != values[i - 1] ? 1 : 0;
      distance = std::max(distance, std::abs(place(values[i]) - static_cast<double>(i) / n));
    }
    if (different < enough || distance < far) continue;
    fail_argument(function, "events.theta",
                  "far from uniform in " + range.name + ", of a design that is " + design.kind(),
                  "drawn from the design; a table of the θ themselves is one, too");
  }
}

}  // namespace

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
  check_filled(function, events, design);
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
