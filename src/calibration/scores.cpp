#include "calibration/scores.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

#include "calibration/score_kernels.hpp"
#include "core/large_vector.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman::calibration {

namespace {

// A number of events outside of this is no count, whatever the caller says.
constexpr double least_counts = 1e-6, most_counts = 1e12;
constexpr double tail_fraction = 1.0 / 8;  // of the events further out, in a cell of the tail
constexpr double central_tail = 0.01;      // of a side, on both sides of the central range
constexpr double widest_cell = 1.0 / 256;  // of the central 98 % range
constexpr std::size_t radix_threshold = 2048;
constexpr double many_events = 65536.0;  // of both sides, to be counted
// Numbers of cells to try in turn; a cell's number has 16 bits.
constexpr std::size_t fine_cells = std::size_t{1} << 14, most_fine_cells = std::size_t{1} << 16;
constexpr double narrowest_range = 1e-9;     // of scores that are counted, relative to their size
constexpr std::size_t cells_at_once = 4096;  // that are found before they are counted

constexpr std::string_view fit_function = "Calibrator::fit";

std::string name_of(std::string_view side, std::string_view what) {
  return std::string(side) + std::string(what);
}

score_kernels::Extent find_extent(std::span<const double> values) {
  return score_kernels::kernels().find_extent(values.data(), values.size());
}

// Checks as check_finite does, which is slower but knows the place.
score_kernels::Extent find_finite_extent(std::string_view function, std::string_view name,
                                         std::span<const double> values) {
  const auto extent = find_extent(values);
  if (!extent.finite) check_finite(function, name, values);
  return extent;
}

// Bits that sort as unsigned integers in the order of the doubles.
std::uint64_t to_key(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value + 0.0);  // −0 becomes 0
  return (bits >> 63) ? ~bits : bits | (std::uint64_t{1} << 63);
}

double from_key(std::uint64_t key) {
  return std::bit_cast<double>((key >> 63) ? key & ~(std::uint64_t{1} << 63) : ~key);
}

template <class Key>
struct KeyWithWeight {
  Key key;
  double weight;
};

template <class Key>
Key key_of(Key key) {
  return key;
}
template <class Key>
Key key_of(const KeyWithWeight<Key>& item) {
  return item.key;
}

constexpr int digit_bits = 11, most_digits = 3;
constexpr std::size_t radix = std::size_t{1} << digit_bits;
constexpr std::size_t moves_an_item = 8;  // more, and sorting by all bits is faster

/// Stable, by the bits [shift, shift + digits · 11) of the keys.
template <class Item>
void sort_by_bits(LargeVector<Item>& items, int shift, int digits) {
  const auto digit = [&](const Item& item, int d) {
    return static_cast<std::size_t>(key_of(item) >> (shift + d * digit_bits)) & (radix - 1);
  };
  std::vector<std::array<std::uint32_t, radix>> counts(static_cast<std::size_t>(digits));
  for (const Item& item : items)
    for (int d = 0; d < digits; ++d) ++counts[static_cast<std::size_t>(d)][digit(item, d)];
  // touched in order first: new pages cost more where they are come upon in any order
  LargeVector<Item> other(items.size(), Item{});
  for (int d = 0; d < digits; ++d) {
    auto& count = counts[static_cast<std::size_t>(d)];
    // A digit that all keys share moves nothing.
    if (count[digit(items[0], d)] == items.size()) continue;
    std::uint32_t start = 0;
    for (auto& c : count) start += std::exchange(c, start);
    for (const Item& item : items) other[count[digit(item, d)]++] = item;
    items.swap(other);
  }
}

/// Sorts what is nearly sorted. False where that took too many moves; the items are then in some
/// order.
template <class Item>
bool insert_nearby(LargeVector<Item>& items) {
  std::size_t moves = moves_an_item * items.size();
  for (std::size_t i = 1; i < items.size(); ++i) {
    const Item item = items[i];
    std::size_t at = i;
    for (; at > 0 && key_of(items[at - 1]) > key_of(item); --at) {
      items[at] = items[at - 1];
      if (--moves == 0) {
        items[at - 1] = item;
        return false;
      }
    }
    items[at] = item;
  }
  return true;
}

/// By the first 33 of the bits in which the keys differ, after which few neighbours are in the
/// wrong order; by all bits where many are.
template <class Item>
void radix_sort(LargeVector<Item>& items) {
  auto differs = key_of(items[0]) ^ key_of(items[0]);
  for (const Item& item : items) differs |= key_of(item) ^ key_of(items[0]);
  const int bits = std::bit_width(differs);
  const int shift = std::max(0, bits - most_digits * digit_bits);
  sort_by_bits(items, shift, (bits - shift + digit_bits - 1) / digit_bits);
  if (shift > 0 && !insert_nearby(items))
    sort_by_bits(items, 0, (bits + digit_bits - 1) / digit_bits);
}

template <class Item>
void sort_items(LargeVector<Item>& items) {
  if (items.size() < radix_threshold) {
    std::stable_sort(items.begin(), items.end(),
                     [](const Item& a, const Item& b) { return key_of(a) < key_of(b); });
  } else {
    radix_sort(items);
  }
}

// Sorts keys of scores with the weights, where there are any, which it puts in the same order.
template <class Key>
void sort_keys(LargeVector<Key>& keys, std::vector<double>& weights) {
  if (weights.empty()) {
    sort_items(keys);
    return;
  }
  const std::size_t n = keys.size();
  LargeVector<KeyWithWeight<Key>> items(n);
  for (std::size_t i = 0; i < n; ++i) items[i] = {keys[i], weights[i]};
  sort_items(items);
  for (std::size_t i = 0; i < n; ++i) {
    keys[i] = items[i].key;
    weights[i] = items[i].weight;
  }
}

// Weights of scores that were checked.
SideWeights scale_checked(std::string_view side, std::span<const double> scores,
                          std::span<const double> weights, WeightMeaning meaning) {
  SideWeights result;
  if (weights.empty()) {
    check_at_least(fit_function, name_of(side, ".size()"), scores.size(), 1);
    result.total = static_cast<double>(scores.size());
    return result;
  }
  const std::string name = name_of(side, "_weights");
  check_same_size(fit_function, name, weights.size(), scores.size(), "one for each score");
  check_finite(fit_function, name, weights);
  check_non_negative(fit_function, name, weights);
  const double largest = weights.empty() ? 0.0 : *std::max_element(weights.begin(), weights.end());
  if (!(largest > 0.0)) {
    fail_argument(fit_function, name_of(name, " total"), "0", "positive");
  }

  // Relative to the largest weight neither the sum nor the squares overflow.
  double sum = 0.0, squares = 0.0;
  bool whole = true;
  for (const double w : weights) {
    const double share = w / largest;
    sum += share;
    squares += share * share;
    whole = whole && w == std::floor(w);
  }
  const bool believable =
      sum < most_counts / largest && largest < most_counts && sum * largest > least_counts;
  const bool counts = believable && (meaning == WeightMeaning::counts ||
                                     (meaning == WeightMeaning::automatic && whole));
  result.values.assign(weights.begin(), weights.end());
  if (counts) {
    result.total = std::accumulate(weights.begin(), weights.end(), 0.0);
  } else {
    for (double& w : result.values) w = w / largest * (sum / squares);
    result.total = sum * (sum / squares);
  }
  return result;
}

CheckedSide check_side(std::string_view side, std::span<const double> scores,
                       std::span<const double> weights, WeightMeaning meaning) {
  auto extent = find_finite_extent(fit_function, side, scores);
  SideWeights scaled = scale_checked(side, scores, weights, meaning);
  CheckedSide result;
  result.given = scores;
  result.total = scaled.total;
  const bool beyond = extent.low < -largest_logit || extent.high > largest_logit;
  if (!scaled.values.empty()) {
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (scaled.values[i] <= 0.0) continue;
      result.changed.push_back(clamp_logit(scores[i]));
      result.weights.push_back(scaled.values[i]);
    }
  } else if (beyond) {
    result.changed.resize(scores.size());
    std::transform(scores.begin(), scores.end(), result.changed.begin(), clamp_logit);
  }
  if (!result.changed.empty()) extent = find_extent(result.changed);
  result.low = extent.low;
  result.high = extent.high;
  return result;
}

SortedSide sort_side(CheckedSide side) {
  SortedSide result;
  result.total = side.total;
  result.weights = std::move(side.weights);
  result.scores = sort_with_weights(side.scores(), result.weights);
  return result;
}

// How many events of a side are in each cell. Cells are found from the highest scores down, which
// closes them at their upper ends.
std::vector<double> count_equal_cells(const CheckedSide& side, double top, double scale,
                                      std::size_t cells) {
  const std::span<const double> scores = side.scores();
  std::array<std::uint16_t, cells_at_once> found;
  const auto last = static_cast<std::uint16_t>(cells - 1);
  const auto in_parts = [&](auto&& count) {
    for (std::size_t begin = 0; begin < scores.size(); begin += found.size()) {
      const std::size_t size = std::min(found.size(), scores.size() - begin);
      score_kernels::kernels().find_cells(scores.data() + begin, size, top, scale, last,
                                          found.data());
      for (std::size_t i = 0; i < size; ++i) count(found[i], begin + i);
    }
  };
  if (!side.weights.empty()) {
    std::vector<double> sums(cells, 0.0);
    in_parts([&](std::size_t cell, std::size_t i) { sums[cell] += side.weights[i]; });
    return {sums.rbegin(), sums.rend()};
  }
  std::vector<std::uint32_t> counts(cells, 0);
  in_parts([&](std::size_t cell, std::size_t) { ++counts[cell]; });
  return {counts.rbegin(), counts.rend()};
}

// The scores below and above which a small share of the side lies.
double lower_quantile(const SortedSide& side, double share) {
  double left = share * side.total;
  std::size_t i = 0;
  while (i + 1 < side.size() && (left -= side.weight(i)) > 0.0) ++i;
  return side.scores[i];
}

double upper_quantile(const SortedSide& side, double share) {
  double left = share * side.total;
  std::size_t i = side.size() - 1;
  while (i > 0 && (left -= side.weight(i)) > 0.0) --i;
  return side.scores[i];
}

}  // namespace

double clamp_logit(double logit) { return std::clamp(logit, -largest_logit, largest_logit); }

SideWeights scale_weights(std::string_view side, std::span<const double> scores,
                          std::span<const double> weights, WeightMeaning meaning) {
  find_finite_extent(fit_function, side, scores);
  return scale_checked(side, scores, weights, meaning);
}

std::vector<double> sort_with_weights(std::span<const double> scores,
                                      std::vector<double>& weights) {
  const std::size_t n = scores.size();
  std::vector<double> sorted(n);
  LargeVector<std::uint32_t> float_keys(n);
  if (score_kernels::kernels().to_float_keys(scores.data(), n, float_keys.data())) {
    sort_keys(float_keys, weights);
    score_kernels::kernels().from_float_keys(float_keys.data(), n, sorted.data());
    return sorted;
  }
  LargeVector<std::uint64_t> keys(n);
  std::transform(scores.begin(), scores.end(), keys.begin(), to_key);
  sort_keys(keys, weights);
  std::transform(keys.begin(), keys.end(), sorted.begin(), from_key);
  return sorted;
}

double SortedScores::low() const {
  return std::min(numerator.scores.front(), denominator.scores.front());
}

double SortedScores::high() const {
  return std::max(numerator.scores.back(), denominator.scores.back());
}

CheckedScores check_scores(const CalibrationSet& data) {
  CheckedScores result;
  parallel_tasks(2, [&](std::size_t side) {
    if (side == numerator_side) {
      result.numerator =
          check_side("numerator", data.numerator, data.numerator_weights, data.weight_meaning);
    } else {
      result.denominator = check_side("denominator", data.denominator, data.denominator_weights,
                                      data.weight_meaning);
    }
  });
  return result;
}

SortedScores sort_scores(CheckedScores scores) {
  SortedScores result;
  parallel_tasks(2, [&](std::size_t side) {
    auto& from = side == numerator_side ? scores.numerator : scores.denominator;
    auto& to = side == numerator_side ? result.numerator : result.denominator;
    to = sort_side(std::move(from));
  });
  return result;
}

SortedScores sort_scores(const CalibrationSet& data) { return sort_scores(check_scores(data)); }

namespace {

// Fills cells with scores that come in increasing order.
class CellMaker {
 public:
  CellMaker(const Cells& empty, double cell_share, double central_low, double central_high)
      : cells_(empty),
        unit0_(0.5 / empty.numerator_total),
        unit1_(0.5 / empty.denominator_total),
        cell_share_(cell_share),
        central_low_(central_low),
        central_high_(central_high),
        widest_(widest_cell * (central_high - central_low)) {}

  // n0 and n1 events at a score, which stands for scores up to `upper`. Those are left to the next
  // cell with which this one would miss its target by more than it does without.
  void add(double z, double upper, double n0, double n1) {
    if (z != last_ && n0_ + n1_ > 0.0) {
      const bool central = z > central_low_ && z < central_high_;
      const double next = upper > z ? 0.5 * (n0 * unit0_ + n1 * unit1_) : 0.0;
      if (share() + next >= target_ || (central && z - first_ > widest_)) close();
    }
    if (n0_ + n1_ == 0.0) first_ = z;
    last_ = z;
    upper_ = upper;
    moment_ += (n0 * unit0_ + n1 * unit1_) * (z - first_);
    n0_ += n0;
    n1_ += n1;
  }

  Cells finish() {
    close();
    return std::move(cells_);
  }

 private:
  // From the counts, which are exact where a weight stands for as many events.
  double share() const { return n0_ * unit0_ + n1_ * unit1_; }

  void close() {
    const double mean = share() > 0.0 ? first_ + moment_ / share() : first_;
    cells_.score.push_back(std::clamp(mean, first_, last_));
    cells_.upper.push_back(upper_);
    cells_.numerator.push_back(n0_);
    cells_.denominator.push_back(n1_);
    below_ += share();
    target_ = std::min(cell_share_, tail_fraction * std::max(0.0, std::min(below_, 1.0 - below_)));
    moment_ = n0_ = n1_ = 0.0;
  }

  Cells cells_;
  double unit0_, unit1_, cell_share_, central_low_, central_high_, widest_;
  double below_ = 0.0, target_ = 0.0;  // share of the sample in closed cells, and of the next
  double first_ = 0.0, last_ = 0.0, upper_ = 0.0, moment_ = 0.0, n0_ = 0.0, n1_ = 0.0;
};

// The cells below and above which a small share of one side lies.
std::size_t lower_quantile(const std::vector<double>& counts, double total, double share) {
  double left = share * total;
  std::size_t i = 0;
  while (i + 1 < counts.size() && (left -= counts[i]) > 0.0) ++i;
  return i;
}

std::size_t upper_quantile(const std::vector<double>& counts, double total, double share) {
  double left = share * total;
  std::size_t i = counts.size() - 1;
  while (i > 0 && (left -= counts[i]) > 0.0) --i;
  return i;
}

}  // namespace

Cells make_cells(const SortedScores& scores, double cell_share) {
  const SortedSide& num = scores.numerator;
  const SortedSide& den = scores.denominator;
  Cells empty;
  empty.numerator_total = num.total;
  empty.denominator_total = den.total;
  empty.low = scores.low();
  empty.high = scores.high();
  CellMaker maker(empty, cell_share,
                  std::min(lower_quantile(num, central_tail), lower_quantile(den, central_tail)),
                  std::max(upper_quantile(num, central_tail), upper_quantile(den, central_tail)));
  visit_in_order(scores, [&](double z, std::size_t side, double weight) {
    maker.add(z, z, weight * to_numerator[side], weight * to_denominator[side]);
  });
  return maker.finish();
}

std::optional<FineCounts> count_finely(const CheckedScores& scores, double cell_share,
                                       std::size_t multiple) {
  const CheckedSide &num = scores.numerator, &den = scores.denominator;
  FineCounts result;
  result.numerator_total = num.total;
  result.denominator_total = den.total;
  result.low = std::min(num.low, den.low);
  result.high = std::max(num.high, den.high);
  const double size = std::max(std::abs(result.low), std::abs(result.high));
  if (num.total + den.total < many_events) return {};
  if (!(result.high - result.low > narrowest_range * size)) return {};
  const double unit0 = 0.5 / num.total, unit1 = 0.5 / den.total;
  for (const std::size_t about : {fine_cells, most_fine_cells}) {
    const std::size_t cells = about / multiple * multiple;
    const double scale = static_cast<double>(cells) / (result.high - result.low);
    result.width = (result.high - result.low) / static_cast<double>(cells);
    parallel_tasks(2, [&](std::size_t side) {
      auto& counts = side == numerator_side ? result.numerator : result.denominator;
      counts = count_equal_cells(side == numerator_side ? num : den, result.high, scale, cells);
    });
    double largest = 0.0;
    for (std::size_t i = 0; i < cells; ++i)
      largest = std::max(largest, unit0 * result.numerator[i] + unit1 * result.denominator[i]);
    if (largest <= 0.5 * cell_share) return result;
  }
  return {};
}

Cells make_cells(const FineCounts& counts, double cell_share) {
  const auto &num = counts.numerator, &den = counts.denominator;
  const double n0 = counts.numerator_total, n1 = counts.denominator_total;
  Cells empty;
  empty.numerator_total = n0;
  empty.denominator_total = n1;
  empty.low = counts.low;
  empty.high = counts.high;
  CellMaker maker(empty, cell_share,
                  counts.middle(std::min(lower_quantile(num, n0, central_tail),
                                         lower_quantile(den, n1, central_tail))),
                  counts.middle(std::max(upper_quantile(num, n0, central_tail),
                                         upper_quantile(den, n1, central_tail))));
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (num[i] + den[i] > 0.0) maker.add(counts.middle(i), counts.upper(i), num[i], den[i]);
  return maker.finish();
}

Cells make_cells(const CheckedScores& scores, double cell_share) {
  const auto counts = count_finely(scores, cell_share);
  return counts ? make_cells(*counts, cell_share) : make_cells(sort_scores(scores), cell_share);
}

std::size_t Cells::find(double logit) const {
  const auto at = std::lower_bound(upper.begin(), upper.end(), logit);
  return std::min(static_cast<std::size_t>(at - upper.begin()), size() - 1);
}

void check_evaluation(const Calibrator& calibrator, std::string_view function,
                      const Logits& logits) {
  if (!calibrator.fitted()) {
    fail_argument(function, calibrator.kind() + " calibrator", "not fitted",
                  "fitted before it is used");
  }
  find_finite_extent(function, "logits", logits.values());
}

}  // namespace neyman::calibration
