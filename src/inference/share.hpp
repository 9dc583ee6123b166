#pragma once

#include <algorithm>
#include <vector>

namespace neyman {

/// The share of values that are at most this; 0 of none.
inline double share_at_most(const std::vector<double>& values, double most) {
  if (values.empty()) return 0.0;
  const auto inside =
      std::count_if(values.begin(), values.end(), [&](double value) { return value <= most; });
  return static_cast<double>(inside) / static_cast<double>(values.size());
}

}  // namespace neyman
