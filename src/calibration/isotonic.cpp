#include "neyman/calibration/isotonic.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "calibration/counts.hpp"
#include "calibration/line.hpp"
#include "calibration/monotone_cubic.hpp"
#include "calibration/scores.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman {

using namespace calibration;

namespace {

/// A place in the order of scores: so many of each side are below.
struct Rank {
  std::uint32_t numerator, denominator;
};

/// The place with `below` events below it; among equal scores the denominator's come first.
Rank find_rank(const SortedScores& scores, std::size_t below) {
  const auto &num = scores.numerator.scores, &den = scores.denominator.scores;
  std::size_t low = below > den.size() ? below - den.size() : 0;
  std::size_t high = std::min(below, num.size());
  while (low < high) {
    const std::size_t i = (low + high) / 2, j = below - i;
    // Numerator i comes before denominator j − 1: more numerators are below.
    if (num[i] < den[j - 1]) {
      low = i + 1;
    } else {
      high = i;
    }
  }
  return {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(below - low)};
}

/// Finds where a numerator is followed by a denominator, from one place to another.
class Cutter {
 public:
  Cutter(const SortedScores& scores, Rank from, Rank to)
      : num_(scores.numerator.scores.data()),
        den_(scores.denominator.scores.data()),
        at_(from),
        to_(to),
        cuts_(std::make_unique_for_overwrite<Rank[]>(
            (to.numerator + to.denominator - from.numerator - from.denominator) / 2 + 1)) {}

  bool both_left() const {
    return at_.numerator < to_.numerator && at_.denominator < to_.denominator;
  }
  /// Which side is next cannot be predicted, so nothing branches on it.
  void step() {
    const std::uint32_t side = den_[at_.denominator] <= num_[at_.numerator] ? 1 : 0;
    cuts_[size_] = at_;
    size_ += side & (1 - before_);
    before_ = side;
    at_.numerator += 1 - side;
    at_.denominator += side;
  }
  /// Once one side is through; the cuts in increasing order.
  std::span<const Rank> finish() {
    if (at_.denominator < to_.denominator && before_ == 0) cuts_[size_++] = at_;
    return {cuts_.get(), size_};
  }

 private:
  const double *num_, *den_;
  Rank at_, to_;
  std::unique_ptr<Rank[]> cuts_;
  std::size_t size_ = 0;
  std::uint32_t before_ = 1;  // side of the last event
};

/// Calls visit(place) for places in increasing order, up to the end: between two of them there are
/// denominators and then numerators, which always end in one block. Equal scores have their
/// denominators first, so they share a block too.
template <class Visit>
void visit_runs(const SortedScores& scores, Visit&& visit) {
  // What is next depends on the comparison before, so several parts go on side by side.
  constexpr std::size_t parts = 4;
  const std::size_t size = scores.numerator.size() + scores.denominator.size();
  std::array<Rank, parts + 1> ends;
  for (std::size_t p = 0; p <= parts; ++p) ends[p] = find_rank(scores, size * p / parts);
  Cutter a(scores, ends[0], ends[1]), b(scores, ends[1], ends[2]), c(scores, ends[2], ends[3]),
      d(scores, ends[3], ends[4]);
  while (a.both_left() && b.both_left() && c.both_left() && d.both_left()) {
    a.step();
    b.step();
    c.step();
    d.step();
  }
  std::size_t part = 0;
  for (Cutter* cutter : {&a, &b, &c, &d}) {
    while (cutter->both_left()) cutter->step();
    for (const Rank& cut : cutter->finish()) visit(cut);
    visit(ends[++part]);
  }
}

struct PooledBlock {
  double numerator = 0.0, denominator = 0.0;
  Rank end{0, 0};
};

// The share of the denominator must rise from block to block; without divisions.
bool violates(const PooledBlock& a, const PooledBlock& b) {
  return a.denominator * b.numerator >= b.denominator * a.numerator;
}

inline void push(std::vector<PooledBlock>& blocks, PooledBlock next) {
  while (!blocks.empty() && violates(blocks.back(), next)) {
    next.numerator += blocks.back().numerator;
    next.denominator += blocks.back().denominator;
    blocks.pop_back();
  }
  blocks.push_back(next);
}

double sum_weights(const SortedSide& side, std::size_t begin, std::size_t end) {
  if (side.weights.empty()) return static_cast<double>(end - begin);
  double sum = 0.0;
  for (std::size_t i = begin; i < end; ++i) sum += side.weights[i];
  return sum;
}

std::vector<PooledBlock> pool(const SortedScores& scores) {
  std::vector<PooledBlock> blocks;
  Rank begin{0, 0};
  visit_runs(scores, [&](Rank end) {
    if (end.numerator == begin.numerator && end.denominator == begin.denominator) return;
    push(blocks, {sum_weights(scores.numerator, begin.numerator, end.numerator),
                  sum_weights(scores.denominator, begin.denominator, end.denominator), end});
    begin = end;
  });
  return blocks;
}

// Scores of one side's part of a block.
struct Stretch {
  double moment = 0.0;  // Σ w z
  double first = std::numeric_limits<double>::infinity(), last = -first;
};

Stretch summarise(const SortedSide& side, std::size_t begin, std::size_t end) {
  Stretch result;
  if (begin == end) return result;
  // Several sums at once: each addition waits for the one before.
  constexpr std::size_t sums = 8;
  std::array<double, sums> moments{};
  std::size_t i = begin;
  for (; i + sums <= end; i += sums)
    for (std::size_t l = 0; l < sums; ++l) moments[l] += side.weight(i + l) * side.scores[i + l];
  for (; i < end; ++i) moments[0] += side.weight(i) * side.scores[i];
  for (const double moment : moments) result.moment += moment;
  result.first = side.scores[begin];
  result.last = side.scores[end - 1];
  return result;
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
  CheckedScores checked = check_scores(data);
  const auto counts = count_finely(checked);
  const SortedScores scores = sort_scores(std::move(checked));
  const double n0 = scores.numerator.total, n1 = scores.denominator.total;
  const Line line = fit_line(counts ? make_cells(*counts) : make_cells(scores));
  const std::vector<PooledBlock> blocks = pool(scores);
  steps_.clear();
  centres_.clear();
  values_.clear();
  errors_.clear();
  Rank begin{0, 0};
  double before = 0.0;  // last score of the block before
  for (const PooledBlock& block : blocks) {
    const Stretch num = summarise(scores.numerator, begin.numerator, block.end.numerator);
    const Stretch den = summarise(scores.denominator, begin.denominator, block.end.denominator);
    const double first = std::min(num.first, den.first), last = std::max(num.last, den.last);
    const double share = block.numerator / n0 + block.denominator / n1;
    const double centre = std::clamp((num.moment / n0 + den.moment / n1) / share, first, last);
    const Estimate estimate =
        estimate_from_counts(block.numerator, block.denominator, n0, n1, line, centre);
    if (!values_.empty()) steps_.push_back(before + 0.5 * (first - before));
    centres_.push_back(centre);
    // The prior may turn the order of small blocks; the curve stays monotone.
    values_.push_back(values_.empty() ? estimate.log_ratio
                                      : std::min(values_.back(), estimate.log_ratio));
    errors_.push_back(estimate.error);
    begin = block.end;
    before = last;
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
