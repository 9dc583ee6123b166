#include "feature_bins.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman::detail {

namespace {

struct Value {
  double value, weight;
};

/// The distinct values in rising order, with the summed weight of each.
std::vector<Value> distinct_values(MatrixView x, std::size_t column,
                                   std::span<const double> weights) {
  std::vector<Value> values;
  values.reserve(x.rows());
  for (std::size_t i = 0; i < x.rows(); ++i)
    if (weights[i] > 0.0) values.push_back({x(i, column), weights[i]});
  // Weights order ties, so that sums do not depend on the order of the rows.
  std::sort(values.begin(), values.end(), [](const Value& a, const Value& b) {
    return a.value < b.value || (a.value == b.value && a.weight < b.weight);
  });
  std::size_t last = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i].value == values[last].value)
      values[last].weight += values[i].weight;
    else
      values[++last] = values[i];
  }
  values.resize(values.empty() ? 0 : last + 1);
  return values;
}

/// A cut between two neighbours, above the lower one even where they differ by one bit.
double between(double low, double high) {
  const double middle = 0.5 * low + 0.5 * high;
  return middle > low && middle <= high ? middle : high;
}

std::vector<double> find_cuts(const std::vector<Value>& values, std::size_t bins) {
  double total = 0.0;
  for (const Value& value : values) total += value.weight;
  const double share = total / static_cast<double>(bins);
  const bool each = values.size() <= bins;
  std::vector<double> cuts;
  double sum = 0.0;
  std::size_t next = 1;
  for (std::size_t i = 0; i + 1 < values.size() && cuts.size() + 1 < bins; ++i) {
    sum += values[i].weight;
    // Slightly below the share, so that rounding does not decide where equal weights tie.
    if (!each && sum < share * static_cast<double>(next) * (1.0 - 1e-9)) continue;
    cuts.push_back(between(values[i].value, values[i + 1].value));
    while (next < bins && sum >= share * static_cast<double>(next) * (1.0 - 1e-9)) ++next;
  }
  return cuts;
}

}  // namespace

FeatureBins::FeatureBins(MatrixView x, std::span<const double> weights, std::size_t bins)
    : cuts_(x.cols()) {
  parallel_tasks(
      x.cols(), [&](std::size_t j) { cuts_[j] = find_cuts(distinct_values(x, j, weights), bins); });
  find_used();
}

void FeatureBins::find_used() {
  used_.clear();
  for (std::size_t j = 0; j < cuts_.size(); ++j)
    if (!cuts_[j].empty()) used_.push_back(j);
  if (used_.empty() && !cuts_.empty()) used_.push_back(0);
}

std::vector<float> FeatureBins::codes(MatrixView x) const {
  std::vector<float> codes(x.rows() * columns());
  parallel_blocks(x.rows(), default_block, [&](Block block) {
    for (std::size_t i = block.begin; i < block.end; ++i)
      for (std::size_t k = 0; k < columns(); ++k) {
        const auto& cuts = cuts_[used_[k]];
        const auto bin = std::upper_bound(cuts.begin(), cuts.end(), x(i, used_[k])) - cuts.begin();
        codes[i * columns() + k] = static_cast<float>(bin);
      }
  });
  return codes;
}

void FeatureBins::save(Archive& archive) const {
  std::vector<std::int64_t> counts;
  std::vector<double> all;
  for (const auto& cuts : cuts_) {
    counts.push_back(static_cast<std::int64_t>(cuts.size()));
    all.insert(all.end(), cuts.begin(), cuts.end());
  }
  archive.set("counts", counts);
  archive.set("cuts", all);
}

void FeatureBins::load(const Archive& archive) {
  const auto& counts = archive.get<std::vector<std::int64_t>>("counts");
  const auto& all = archive.numbers("cuts");
  std::vector<std::vector<double>> cuts;
  std::size_t begin = 0;
  for (const std::int64_t count : counts) {
    if (count < 0 || static_cast<std::size_t>(count) > all.size() - begin)
      throw FileError("bins: counts do not fit the cuts");
    const std::size_t end = begin + static_cast<std::size_t>(count);
    cuts.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(begin),
                      all.begin() + static_cast<std::ptrdiff_t>(end));
    if (!std::is_sorted(cuts.back().begin(), cuts.back().end()))
      throw FileError("bins: cuts are not in rising order");
    begin = end;
  }
  cuts_ = std::move(cuts);
  find_used();
}

}  // namespace neyman::detail
