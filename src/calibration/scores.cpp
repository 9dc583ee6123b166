#include "calibration/scores.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman::calibration {

namespace {

// A number of events outside of this is no count, whatever the caller says.
constexpr double least_counts = 1e-6, most_counts = 1e12;
constexpr double tail_fraction = 1.0 / 8;  // of the events further out, in a cell of the tail
constexpr double widest_cell = 1.0 / 256;  // of the central 98 % range
constexpr std::size_t radix_threshold = 2048;

std::string name_of(std::string_view side, std::string_view what) {
  return std::string(side) + std::string(what);
}

// Bits that sort as unsigned integers in the order of the doubles.
std::uint64_t to_key(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value + 0.0);  // −0 becomes 0
  return (bits >> 63) ? ~bits : bits | (std::uint64_t{1} << 63);
}

double from_key(std::uint64_t key) {
  return std::bit_cast<double>((key >> 63) ? key & ~(std::uint64_t{1} << 63) : ~key);
}

// The same for a score that is a float, as many classifiers give: half the bits to sort.
std::uint32_t to_float_key(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value) + 0.0f);
  return (bits >> 31) ? ~bits : bits | (std::uint32_t{1} << 31);
}

double from_key(std::uint32_t key) {
  return std::bit_cast<float>((key >> 31) ? key & ~(std::uint32_t{1} << 31) : ~key);
}

bool all_floats(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) {
    return static_cast<double>(static_cast<float>(value)) == value;
  });
}

template <class Key>
struct KeyOnly {
  Key key;
};

template <class Key>
struct KeyWithWeight {
  Key key;
  double weight;
};

constexpr int digit_bits = 11, most_digits = 3;
constexpr std::size_t radix = std::size_t{1} << digit_bits;
constexpr std::size_t moves_an_item = 8;  // more, and sorting by all bits is faster

/// Stable, by the bits [shift, shift + digits · 11) of the keys.
template <class Item>
void sort_by_bits(std::vector<Item>& items, int shift, int digits) {
  const auto digit = [&](const Item& item, int d) {
    return static_cast<std::size_t>(item.key >> (shift + d * digit_bits)) & (radix - 1);
  };
  std::vector<std::array<std::uint32_t, radix>> counts(static_cast<std::size_t>(digits));
  for (const Item& item : items)
    for (int d = 0; d < digits; ++d) ++counts[static_cast<std::size_t>(d)][digit(item, d)];
  std::vector<Item> other(items.size());
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
bool insert_nearby(std::vector<Item>& items) {
  std::size_t moves = moves_an_item * items.size();
  for (std::size_t i = 1; i < items.size(); ++i) {
    const Item item = items[i];
    std::size_t at = i;
    for (; at > 0 && items[at - 1].key > item.key; --at) {
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
void radix_sort(std::vector<Item>& items) {
  auto differs = decltype(items[0].key){0};
  for (const Item& item : items) differs |= item.key ^ items[0].key;
  const int bits = std::bit_width(differs);
  const int shift = std::max(0, bits - most_digits * digit_bits);
  sort_by_bits(items, shift, (bits - shift + digit_bits - 1) / digit_bits);
  if (shift > 0 && !insert_nearby(items))
    sort_by_bits(items, 0, (bits + digit_bits - 1) / digit_bits);
}

template <class Item>
void sort_items(std::vector<Item>& items) {
  if (items.size() < radix_threshold) {
    std::stable_sort(items.begin(), items.end(),
                     [](const Item& a, const Item& b) { return a.key < b.key; });
  } else {
    radix_sort(items);
  }
}

template <class Key, class ToKey>
void sort_by(ToKey to, std::vector<double>& scores, std::vector<double>& weights) {
  const std::size_t n = scores.size();
  if (weights.empty()) {
    std::vector<KeyOnly<Key>> items(n);
    for (std::size_t i = 0; i < n; ++i) items[i].key = to(scores[i]);
    sort_items(items);
    for (std::size_t i = 0; i < n; ++i) scores[i] = from_key(items[i].key);
    return;
  }
  std::vector<KeyWithWeight<Key>> items(n);
  for (std::size_t i = 0; i < n; ++i) items[i] = {to(scores[i]), weights[i]};
  sort_items(items);
  for (std::size_t i = 0; i < n; ++i) {
    scores[i] = from_key(items[i].key);
    weights[i] = items[i].weight;
  }
}

SortedSide sort_side(std::string_view side, std::span<const double> scores,
                     std::span<const double> weights, WeightMeaning meaning) {
  SideWeights scaled = scale_weights(side, scores, weights, meaning);
  SortedSide result;
  result.total = scaled.total;
  if (scaled.values.empty()) {
    result.scores.resize(scores.size());
    std::transform(scores.begin(), scores.end(), result.scores.begin(), clamp_logit);
  } else {
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (scaled.values[i] <= 0.0) continue;
      result.scores.push_back(clamp_logit(scores[i]));
      result.weights.push_back(scaled.values[i]);
    }
  }
  sort_with_weights(result.scores, result.weights);
  return result;
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
  constexpr std::string_view function = "Calibrator::fit";
  check_finite(function, side, scores);
  SideWeights result;
  if (weights.empty()) {
    check_at_least(function, name_of(side, ".size()"), scores.size(), 1);
    result.total = static_cast<double>(scores.size());
    return result;
  }
  const std::string name = name_of(side, "_weights");
  check_same_size(function, name, weights.size(), scores.size(), "one for each score");
  check_finite(function, name, weights);
  check_non_negative(function, name, weights);
  const double largest = weights.empty() ? 0.0 : *std::max_element(weights.begin(), weights.end());
  if (!(largest > 0.0)) {
    fail_argument(function, name_of(name, " total"), "0", "positive");
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

void sort_with_weights(std::vector<double>& scores, std::vector<double>& weights) {
  if (all_floats(scores)) {
    sort_by<std::uint32_t>(to_float_key, scores, weights);
  } else {
    sort_by<std::uint64_t>(to_key, scores, weights);
  }
}

double SortedScores::low() const {
  return std::min(numerator.scores.front(), denominator.scores.front());
}

double SortedScores::high() const {
  return std::max(numerator.scores.back(), denominator.scores.back());
}

SortedScores sort_scores(const CalibrationSet& data) {
  SortedScores result;
  parallel_tasks(2, [&](std::size_t side) {
    if (side == 0) {
      result.numerator =
          sort_side("numerator", data.numerator, data.numerator_weights, data.weight_meaning);
    } else {
      result.denominator =
          sort_side("denominator", data.denominator, data.denominator_weights, data.weight_meaning);
    }
  });
  return result;
}

Cells make_cells(const SortedScores& scores, double cell_share) {
  const SortedSide& num = scores.numerator;
  const SortedSide& den = scores.denominator;
  Cells cells;
  cells.numerator_total = num.total;
  cells.denominator_total = den.total;
  cells.low = scores.low();
  cells.high = scores.high();
  const double central_low = std::min(lower_quantile(num, 0.01), lower_quantile(den, 0.01));
  const double central_high = std::max(upper_quantile(num, 0.01), upper_quantile(den, 0.01));
  const double widest = widest_cell * (central_high - central_low);

  const double unit[2] = {0.5 / num.total, 0.5 / den.total};
  double below = 0.0, target = 0.0;  // share of the sample in closed cells, and wanted in the next
  double first = 0.0, last = 0.0, moment = 0.0, n0 = 0.0, n1 = 0.0;
  // From the counts, which are exact where a weight stands for as many events.
  const auto share = [&] { return n0 * unit[numerator_side] + n1 * unit[denominator_side]; };
  const auto close = [&] {
    const double mean = share() > 0.0 ? first + moment / share() : first;
    cells.score.push_back(std::clamp(mean, first, last));
    cells.upper.push_back(last);
    cells.numerator.push_back(n0);
    cells.denominator.push_back(n1);
    below += share();
    target = std::min(cell_share, tail_fraction * std::max(0.0, std::min(below, 1.0 - below)));
    moment = n0 = n1 = 0.0;
  };
  visit_in_order(scores, [&](double z, std::size_t side, double weight) {
    if (z != last && n0 + n1 > 0.0) {
      const bool central = z > central_low && z < central_high;
      if (share() >= target || (central && z - first > widest)) close();
    }
    if (n0 + n1 == 0.0) first = z;
    last = z;
    moment += weight * unit[side] * (z - first);
    n0 += weight * to_numerator[side];
    n1 += weight * to_denominator[side];
  });
  close();
  return cells;
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
  check_finite(function, "logits", logits.values());
}

}  // namespace neyman::calibration
