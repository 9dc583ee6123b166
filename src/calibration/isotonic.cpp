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
#include "core/large_vector.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman {

using namespace calibration;

namespace {

/// A place in the order of scores: so many of each side are below.
struct Rank {
  std::uint32_t numerator, denominator;
  bool operator==(const Rank&) const = default;
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
        at_(pack(from)),
        to_(to),
        cuts_((to.numerator + to.denominator - from.numerator - from.denominator) / 2 + 1) {}

  bool both_left() const {
    const Rank at = unpack(at_);
    return at.numerator < to_.numerator && at.denominator < to_.denominator;
  }
  /// Which side is next cannot be predicted, so nothing branches on it.
  void step() {
    const Rank at = unpack(at_);
    const std::uint32_t side = den_[at.denominator] <= num_[at.numerator] ? 1 : 0;
    cuts_[size_] = at_;
    size_ += side & (1 - before_);
    before_ = side;
    at_ += one_more[side];
  }
  std::size_t size() const { return size_; }
  /// Once one side is through: calls visit(place) for the cuts in increasing order.
  template <class Visit>
  void finish(Visit&& visit) {
    if (unpack(at_).denominator < to_.denominator && before_ == 0) cuts_[size_++] = at_;
    for (std::size_t i = 0; i < size_; ++i) visit(unpack(cuts_[i]));
  }

 private:
  // A place as one number, which is read and written at once.
  static constexpr int denominator_shift = 32;
  static constexpr std::uint64_t one_more[2] = {1, std::uint64_t{1} << denominator_shift};
  static std::uint64_t pack(Rank rank) {
    return rank.numerator | std::uint64_t{rank.denominator} << denominator_shift;
  }
  static Rank unpack(std::uint64_t packed) {
    return {static_cast<std::uint32_t>(packed),
            static_cast<std::uint32_t>(packed >> denominator_shift)};
  }

  const double *num_, *den_;
  std::uint64_t at_;
  Rank to_;
  LargeVector<std::uint64_t> cuts_;
  std::size_t size_ = 0;
  std::uint32_t before_ = 1;  // side of the last event
};

/// Places in increasing order, up to the end: between two of them there are denominators and then
/// numerators, which always end in one block. Equal scores have their denominators first, so they
/// share a block too.
LargeVector<Rank> find_runs(const SortedScores& scores) {
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
  const std::array<Cutter*, parts> cutters{&a, &b, &c, &d};
  std::size_t most = 2 * parts;  // at the end of each part
  for (Cutter* cutter : cutters) {
    while (cutter->both_left()) cutter->step();
    most += cutter->size();
  }
  LargeVector<Rank> runs;
  runs.reserve(most);
  Rank last{0, 0};
  const auto visit = [&](Rank end) {
    if (end != last) runs.push_back(last = end);
  };
  for (std::size_t p = 0; p < parts; ++p) {
    cutters[p]->finish(visit);
    visit(ends[p + 1]);
  }
  return runs;
}

/// The weights of both sides up to a place.
struct Sums {
  double numerator = 0.0, denominator = 0.0;
};
Sums operator-(const Sums& a, const Sums& b) {
  return {a.numerator - b.numerator, a.denominator - b.denominator};
}

class CumulativeWeights {
 public:
  explicit CumulativeWeights(const SortedScores& scores)
      : numerator_(accumulate(scores.numerator)), denominator_(accumulate(scores.denominator)) {}

  Sums operator()(Rank rank) const {
    return {numerator_.empty() ? rank.numerator : numerator_[rank.numerator],
            denominator_.empty() ? rank.denominator : denominator_[rank.denominator]};
  }

 private:
  static std::vector<double> accumulate(const SortedSide& side) {
    if (side.weights.empty()) return {};
    std::vector<double> sums{0.0};
    for (const double weight : side.weights) sums.push_back(sums.back() + weight);
    return sums;
  }

  std::vector<double> numerator_, denominator_;
};

/// Whether the share of the denominator does not rise from block a to block b; without divisions.
bool violates(const Sums& a, const Sums& b) {
  return a.denominator * b.numerator >= b.denominator * a.numerator;
}

struct Place {
  Rank rank;
  Sums below;
};

/// Adds the next place of a convex curve from (0, 0), the last place of each block: the blocks
/// before it that violate the order become one with it.
void push(std::vector<Place>& curve, const Place& next) {
  while (!curve.empty()) {
    const Sums last = curve.back().below;
    const Sums before = curve.size() > 1 ? curve[curve.size() - 2].below : Sums{};
    if (!violates(last - before, next.below - last)) break;
    curve.pop_back();
  }
  curve.push_back(next);
}

/// The last places of the blocks: the corners of the highest convex curve that no run is below.
std::vector<Place> pool(const SortedScores& scores) {
  LargeVector<Rank> runs = find_runs(scores);
  const CumulativeWeights sums(scores);
  // How many blocks a run becomes one with cannot be predicted. The curve of a few of the runs
  // tells without branches which others can be corners: those below it.
  constexpr std::size_t stride = 16;
  std::vector<Place> curve;
  for (std::size_t i = (runs.size() - 1) % stride; i < runs.size(); i += stride)
    push(curve, {runs[i], sums(runs[i])});
  std::size_t kept = 0, run = 0;
  Sums start;
  for (const Place& corner : curve) {
    const Sums chord = corner.below - start;
    for (; runs[run] != corner.rank; ++run) {
      runs[kept] = runs[run];
      kept += violates(sums(runs[run]) - start, chord) ? 0 : 1;
    }
    runs[kept++] = runs[run++];
    start = corner.below;
  }
  curve.clear();
  for (std::size_t i = 0; i < kept; ++i) push(curve, {runs[i], sums(runs[i])});
  return curve;
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
  steps_.clear();
  centres_.clear();
  values_.clear();
  errors_.clear();
  Place begin{{0, 0}, {}};
  double before = 0.0;  // last score of the block before
  for (const Place& end : pool(scores)) {
    const Stretch num = summarise(scores.numerator, begin.rank.numerator, end.rank.numerator);
    const Stretch den = summarise(scores.denominator, begin.rank.denominator, end.rank.denominator);
    const Sums block = end.below - begin.below;
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
    begin = end;
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
