#include "calibration/lookup.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "neyman/core/random.hpp"

namespace neyman::calibration {
namespace {

std::size_t plain_below(const std::vector<double>& x, double at) {
  return static_cast<std::size_t>(std::lower_bound(x.begin(), x.end(), at) - x.begin());
}
std::size_t plain_up_to(const std::vector<double>& x, double at) {
  return static_cast<std::size_t>(std::upper_bound(x.begin(), x.end(), at) - x.begin());
}

TEST(Lookup, EqualsBinarySearch) {
  RandomStream random(1, "lookup");
  for (const std::size_t size : {0, 1, 2, 3, 50, 5000})
    for (const int shape : {0, 1, 2, 3}) {
      std::vector<double> x(size);
      for (double& value : x) {
        value = random.normal();
        if (shape == 1) value = 0.1 * static_cast<double>(random.below(10));  // ties
        if (shape == 2) value *= random.uniform() < 0.01 ? 1e6 : 1e-3;  // nearly all in a cell
        if (shape == 3) value = 1.0;
      }
      std::sort(x.begin(), x.end());
      for (const std::size_t queries : {1, 100, 100000}) {
        const Lookup lookup(x, queries);
        const auto check = [&](double at) {
          ASSERT_EQ(lookup.count_below(at), plain_below(x, at)) << at;
          ASSERT_EQ(lookup.count_up_to(at), plain_up_to(x, at)) << at;
        };
        for (int i = 0; i < 300; ++i) check(2.0 * random.normal());
        for (std::size_t i = 0; i < size; i += 1 + size / 100) check(x[i]);
        for (const double far : {-1e300, -1e6, 0.0, 1e6, 1e300}) check(far);
      }
    }
}

}  // namespace
}  // namespace neyman::calibration
