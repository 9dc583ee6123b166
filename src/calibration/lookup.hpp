#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace neyman::calibration {

/// Finds places among increasing numbers, for many queries: a table of equal cells says where to
/// begin, so that a query costs one comparison where no two numbers share a cell, a few where they
/// are spread over their range, and a binary search at worst.
class Lookup {
 public:
  /// The table costs less than a quarter of that many queries.
  Lookup(const std::vector<double>& x, std::size_t queries)
      : x_(x),
        begins_(std::clamp<std::size_t>(std::min(queries / 4, cells_a_number * x.size()), 1,
                                        most_cells) +
                1) {
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
      most_ = std::max(most_, next - begins_[cell]);
    }
    begins_[cells] = static_cast<std::uint32_t>(x.size());
    x_.push_back(std::numeric_limits<double>::infinity());
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
  static constexpr std::size_t few = 8, cells_a_number = 64, most_cells = 16384;

  std::size_t find_cell(double at) const {
    const double place = std::min(std::max((at - low_) * scale_, 0.0), last_);
    return static_cast<std::size_t>(static_cast<std::int32_t>(place));
  }
  template <class Before>
  std::size_t search(double at, Before before) const {
    const std::size_t cell = find_cell(at);
    std::size_t found = begins_[cell];
    // Those of later cells are above. Whether a cell has one cannot be predicted, so nothing
    // branches on it.
    if (most_ <= 1) return found + (before(x_[found], at) ? 1 : 0);
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

  std::vector<double> x_;              // and one above all
  std::vector<std::uint32_t> begins_;  // of the numbers in each cell
  std::size_t most_ = 0;               // numbers in a cell
  double low_ = 0.0, scale_ = 0.0, last_ = 0.0;
};

}  // namespace neyman::calibration
