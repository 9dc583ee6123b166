#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neyman::calibration {

/// Finds places among increasing numbers, for many queries: a table of equal cells says where to
/// begin, so that a query costs a few comparisons where the numbers are spread over their range,
/// and a binary search at worst. The numbers must outlive it.
class Lookup {
 public:
  /// The table costs less than a quarter of that many queries.
  Lookup(const std::vector<double>& x, std::size_t queries)
      : x_(x), begins_(std::clamp<std::size_t>(queries / 4, 1, 4096) + 1) {
    const std::size_t cells = begins_.size() - 1;
    if (!x.empty() && x.back() > x.front()) {
      low_ = x.front();
      scale_ = static_cast<double>(cells) / (x.back() - x.front());
    }
    last_ = static_cast<double>(cells - 1);
    // Cells rise with the numbers, so those of a cell lie between the begins of it and the next.
    std::size_t next = 0;
    for (std::size_t cell = 0; cell < cells; ++cell) {
      begins_[cell] = static_cast<std::uint32_t>(next);
      while (next < x.size() && find_cell(x[next]) == cell) ++next;
    }
    begins_[cells] = static_cast<std::uint32_t>(x.size());
  }

  /// How many are below a number.
  std::size_t count_below(double at) const {
    return search(at, [](double x, double value) { return x < value; });
  }
  /// How many are not above a number.
  std::size_t count_up_to(double at) const {
    return search(at, [](double x, double value) { return x <= value; });
  }

 private:
  static constexpr std::size_t few = 8;

  std::size_t find_cell(double at) const {
    return static_cast<std::size_t>(std::clamp((at - low_) * scale_, 0.0, last_));
  }
  template <class Before>
  std::size_t search(double at, Before before) const {
    const std::size_t cell = find_cell(at);
    std::size_t found = begins_[cell];
    const std::size_t end = begins_[cell + 1];
    if (end - found > few) {
      const auto first = x_.begin() + static_cast<std::ptrdiff_t>(found);
      const auto last = x_.begin() + static_cast<std::ptrdiff_t>(end);
      return static_cast<std::size_t>(
          std::partition_point(first, last, [&](double x) { return before(x, at); }) - x_.begin());
    }
    while (found < end && before(x_[found], at)) ++found;
    return found;
  }

  const std::vector<double>& x_;
  std::vector<std::uint32_t> begins_;  // of the numbers in each cell
  double low_ = 0.0, scale_ = 0.0, last_ = 0.0;
};

}  // namespace neyman::calibration
