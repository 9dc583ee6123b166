#include "neyman/calibration/isotonic.hpp"

#include <algorithm>
#include <string>

#include "calibration/counts.hpp"
#include "calibration/line.hpp"
#include "calibration/monotone_cubic.hpp"
#include "calibration/scores.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman {

using namespace calibration;

namespace {

struct PooledBlock {
  double numerator = 0.0, denominator = 0.0;
  double numerator_moment = 0.0, denominator_moment = 0.0;  // Σ w z
  double first = 0.0, last = 0.0;

  void add(const PooledBlock& next) {
    numerator += next.numerator;
    denominator += next.denominator;
    numerator_moment += next.numerator_moment;
    denominator_moment += next.denominator_moment;
    last = next.last;
  }
};

// The share of the denominator must rise from block to block; without divisions.
bool violates(const PooledBlock& a, const PooledBlock& b) {
  return a.denominator * b.numerator >= b.denominator * a.numerator;
}

void push(std::vector<PooledBlock>& blocks, PooledBlock next) {
  while (!blocks.empty() && violates(blocks.back(), next)) {
    PooledBlock pooled = blocks.back();
    blocks.pop_back();
    pooled.add(next);
    next = pooled;
  }
  blocks.push_back(next);
}

// A run of denominators and the run of numerators after it always end in one block, so they are
// pooled before they are pushed. Equal scores are visited denominators first, so they share a
// block from the start.
std::vector<PooledBlock> pool(const SortedScores& scores) {
  std::vector<PooledBlock> blocks;
  PooledBlock run;
  std::size_t before = numerator_side;
  visit_in_order(scores, [&](double z, std::size_t side, double weight) {
    if (side > before) {
      if (run.numerator + run.denominator > 0.0) push(blocks, run);
      run = PooledBlock();
    }
    before = side;
    const double n0 = weight * to_numerator[side], n1 = weight * to_denominator[side];
    if (run.numerator + run.denominator == 0.0) run.first = z;
    run.numerator += n0;
    run.denominator += n1;
    run.numerator_moment += n0 * z;
    run.denominator_moment += n1 * z;
    run.last = z;
  });
  push(blocks, run);
  return blocks;
}

}  // namespace

IsotonicCalibrator::Config IsotonicCalibrator::Config::from(Settings& settings) {
  Config config;
  config.interpolate =
      settings.flag({"interpolate", "between the steps; false: steps"}, config.interpolate);
  return config;
}

IsotonicCalibrator::IsotonicCalibrator(Config config) : config_(config) {}

std::unique_ptr<Calibrator> IsotonicCalibrator::fresh() const {
  return std::make_unique<IsotonicCalibrator>(config_);
}

void IsotonicCalibrator::fit(const CalibrationSet& data) {
  const SortedScores scores = sort_scores(data);
  const double n0 = scores.numerator.total, n1 = scores.denominator.total;
  const Line line = fit_line(make_cells(scores));
  const std::vector<PooledBlock> blocks = pool(scores);
  steps_.clear();
  centres_.clear();
  values_.clear();
  errors_.clear();
  for (std::size_t k = 0; k < blocks.size(); ++k) {
    const PooledBlock& block = blocks[k];
    const double share = block.numerator / n0 + block.denominator / n1;
    const double moment = block.numerator_moment / n0 + block.denominator_moment / n1;
    const double centre = std::clamp(moment / share, block.first, block.last);
    const Estimate estimate =
        estimate_from_counts(block.numerator, block.denominator, n0, n1, line, centre);
    centres_.push_back(centre);
    // The prior may turn the order of small blocks; the curve stays monotone.
    values_.push_back(values_.empty() ? estimate.log_ratio
                                      : std::min(values_.back(), estimate.log_ratio));
    errors_.push_back(estimate.error);
    if (k > 0) steps_.push_back(blocks[k - 1].last + 0.5 * (block.first - blocks[k - 1].last));
  }
  low_ = scores.low();
  high_ = scores.high();
  prepare();
}

void IsotonicCalibrator::prepare() { slopes_ = monotone_slopes(centres_, values_); }

std::size_t IsotonicCalibrator::find_block(double logit) const {
  const auto at = std::lower_bound(steps_.begin(), steps_.end(), logit);
  return static_cast<std::size_t>(at - steps_.begin());
}

LogRatios IsotonicCalibrator::log_ratios(const Logits& logits) const {
  check_evaluation(*this, "IsotonicCalibrator::log_ratios", logits);
  LogRatios result(logits.size());
  const Lookup lookup(config_.interpolate ? centres_ : steps_, logits.size());
  parallel_blocks(logits.size(), default_block, [&](Block block) {
    for (std::size_t i = block.begin; i < block.end; ++i) {
      const double inside = std::clamp(logits[i], centres_.front(), centres_.back());
      result[i] = config_.interpolate
                      ? evaluate_monotone_cubic(centres_, values_, slopes_, lookup, inside)
                      : values_[lookup.count_below(logits[i])];
    }
  });
  return result;
}

std::vector<double> IsotonicCalibrator::errors(const Logits& logits) const {
  check_evaluation(*this, "IsotonicCalibrator::errors", logits);
  std::vector<double> result(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    result[i] = config_.interpolate ? interpolate_errors(centres_, errors_, logits[i])
                                    : errors_[find_block(logits[i])];
  }
  return result;
}

void IsotonicCalibrator::save(Archive& archive) const {
  archive.set("interpolate", config_.interpolate);
  archive.set("low", low_);
  archive.set("high", high_);
  archive.set("steps", steps_);
  archive.set("centres", centres_);
  archive.set("values", values_);
  archive.set("errors", errors_);
}

void IsotonicCalibrator::load(const Archive& archive) {
  config_.interpolate = archive.flag("interpolate");
  low_ = archive.number("low");
  high_ = archive.number("high");
  steps_ = archive.numbers("steps");
  centres_ = archive.numbers("centres");
  values_ = archive.numbers("values");
  errors_ = archive.numbers("errors");
  const std::size_t blocks = values_.size();
  const bool consistent = centres_.size() == blocks && errors_.size() == blocks &&
                          (blocks == 0 ? steps_.empty() : steps_.size() == blocks - 1);
  if (!consistent) {
    throw FileError("calibrator: steps, centres, values and errors do not belong together");
  }
  prepare();
}

}  // namespace neyman
