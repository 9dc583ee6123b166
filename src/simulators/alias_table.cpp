#include "simulators/alias_table.hpp"

#include <algorithm>
#include <numeric>

namespace neyman::detail {

AliasTable::AliasTable(std::span<const double> weights)
    : accept_(weights.size(), 1.0), alias_(weights.size()) {
  const std::size_t n = weights.size();
  // Relative to the largest first: the sum of weights near the top of double's range is finite.
  const double largest = *std::max_element(weights.begin(), weights.end());
  double total = 0.0;
  for (const double w : weights) total += w / largest;
  std::vector<double> scaled(n);
  std::vector<std::size_t> small, large;
  for (std::size_t i = 0; i < n; ++i) {
    scaled[i] = weights[i] / largest / total * static_cast<double>(n);
    (scaled[i] < 1.0 ? small : large).push_back(i);
  }
  std::iota(alias_.begin(), alias_.end(), std::size_t{0});
  while (!small.empty() && !large.empty()) {
    const std::size_t s = small.back(), l = large.back();
    small.pop_back();
    accept_[s] = scaled[s];
    alias_[s] = l;
    scaled[l] -= 1.0 - scaled[s];
    if (scaled[l] < 1.0) {
      large.pop_back();
      small.push_back(l);
    }
  }
  // What rounding leaves behind is a full cell, except that a weight of 0 stays impossible.
  const auto heaviest =
      static_cast<std::size_t>(std::max_element(weights.begin(), weights.end()) - weights.begin());
  for (const std::size_t s : small) {
    if (weights[s] > 0.0) continue;
    accept_[s] = 0.0;
    alias_[s] = heaviest;
  }
}

}  // namespace neyman::detail
