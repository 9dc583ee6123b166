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

constexpr int digit_bits = 11;
constexpr std::size_t radix = std::size_t{1} << digit_bits;

template <class Key>
std::size_t digit(Key key, int index) {
  return (key >> (index * digit_bits)) & (radix - 1);
}

template <class Item>
void radix_sort(std::vector<Item>& items) {
  constexpr int digits = (8 * sizeof(items[0].key) + digit_bits - 1) / digit_bits;
  std::vector<std::array<std::uint32_t, radix>> counts(digits);
  for (const Item& item : items) {
    for (int d = 0; d < digits; ++d) ++counts[d][digit(item.key, d)];
  }
  std::vector<Item> other(items.size());
  for (int d = 0; d < digits; ++d) {
    auto& count = counts[d];
    // A digit that all keys share moves nothing.
    if (count[digit(items[0].key, d)] == items.size()) continue;
    std::uint32_t start = 0;
    for (auto& c : count) start += std::exchange(c, start);
    for (const Item& item : items) other[count[digit(item.key, d)]++] = item;
    items.swap(other);
  }
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

  double below = 0.0;  // share of the sample in closed cells
  std::size_t i = 0, j = 0;
  while (i < num.size() || j < den.size()) {
    const double target =
        std::min(cell_share, tail_fraction * std::max(0.0, std::min(below, 1.0 - below)));
    double first = 0.0, last = 0.0, share = 0.0, moment = 0.0, n0 = 0.0, n1 = 0.0;
    bool open = false;
    while (i < num.size() || j < den.size()) {
      const double next = i == num.size()   ? den.scores[j]
                          : j == den.size() ? num.scores[i]
                                            : std::min(num.scores[i], den.scores[j]);
      if (open && next != last) {
        const bool central = next > central_low && next < central_high;
        if (share >= target || (central && next - first > widest)) break;
      }
      if (!open) first = next;
      open = true;
      last = next;
      double here0 = 0.0, here1 = 0.0;
      for (; i < num.size() && num.scores[i] == next; ++i) here0 += num.weight(i);
      for (; j < den.size() && den.scores[j] == next; ++j) here1 += den.weight(j);
      const double here = 0.5 * (here0 / num.total + here1 / den.total);
      share += here;
      moment += here * (next - first);
      n0 += here0;
      n1 += here1;
    }
    const double mean = share > 0.0 ? first + moment / share : first;
    cells.score.push_back(std::clamp(mean, first, last));
    cells.upper.push_back(last);
    cells.numerator.push_back(n0);
    cells.denominator.push_back(n1);
    below += share;
  }
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
