#include "core/vector_math.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/instruction_set.hpp"
#include "neyman/core/random.hpp"

namespace neyman::vector_math {
namespace {

TEST(VectorMath, ExponentialIsThatOfTheLibraryOnEverySet) {
  RandomStream random(1, "exponential");
  std::vector<double> x{0.0, -0.0, 1.0, -1.0, 1e-300, 707.9, -707.9, 0.34657359, -0.34657359};
  for (int i = 0; i < 20000; ++i)
    x.push_back((i % 2 ? 700.0 : 2.0) * (2.0 * random.uniform() - 1.0));
  std::vector<double> first;
  for (const auto* one : detail::supported(all_kernels)) {
    auto values = x;
    one->exponentiate(values.data(), values.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(values[i] / std::exp(x[i]), 1.0, 5e-16) << x[i] << ", " << one->name;
    if (first.empty()) first = values;
    EXPECT_EQ(values, first) << one->name;
  }
}

TEST(VectorMath, ExponentialIsBounded) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto* one : detail::supported(all_kernels)) {
    std::vector<double> values{infinity, 1e10, 708.5, -708.5, -1e10, -infinity};
    one->exponentiate(values.data(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(values[i] / std::exp(i < 3 ? 708.0 : -708.0), 1.0, 1e-15) << one->name;
  }
}

TEST(VectorMath, AnyNumberOfValues) {
  for (std::size_t count = 0; count < 20; ++count) {
    std::vector<double> values(count + 1, 2.0);
    kernels().exponentiate(values.data(), count);
    for (std::size_t i = 0; i < count; ++i) EXPECT_NEAR(values[i], std::exp(2.0), 1e-14);
    EXPECT_EQ(values[count], 2.0);  // beyond the end
  }
}

TEST(VectorMath, MomentsAreSumsInTheOrderOfTheRowsOnEverySet) {
  RandomStream random(2, "moments");
  for (std::size_t columns = 1; columns < 20; ++columns) {
    for (const std::size_t rows : {0, 1, 2, 3, 7, 100}) {
      const std::size_t stride = columns + rows % 3;
      // not one value more than the table has
      std::vector<double> x(rows == 0 ? 0 : (rows - 1) * stride + columns), weights(rows);
      std::vector<double> centre(columns), first(columns, 0.25), second(columns, 0.5);
      for (auto* values : {&x, &weights, &centre}) random.fill_normal(*values);
      const auto start = first, start_second = second;
      for (std::size_t c = 0; c < columns; ++c) {
        double sum = 0.0, squares = 0.0;
        for (std::size_t i = 0; i < rows; ++i) {
          const double d = x[i * stride + c] - centre[c];
          sum += weights[i] * d;
          squares += weights[i] * d * d;
        }
        first[c] += sum;
        second[c] += squares;
      }
      for (const auto* one : detail::supported(all_kernels)) {
        auto found = start, found_second = start_second;
        one->add_moments({x.data(), rows, columns, stride}, weights.data(), centre.data(),
                         found.data(), found_second.data());
        EXPECT_EQ(found, first) << one->name << ", " << rows << " x " << columns;
        EXPECT_EQ(found_second, second) << one->name << ", " << rows << " x " << columns;
      }
    }
  }
}

}  // namespace
}  // namespace neyman::vector_math
