#include "core/large_vector.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>

namespace neyman {
namespace {

constexpr std::size_t huge_page = std::size_t{1} << 21;

bool starts_at_multiple_of(const void* memory, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(memory) % alignment == 0;
}

TEST(LargeVector, StartsAtCacheLinesWhereAskedForAndAtHugePagesWhereLarge) {
  for (const std::size_t size : {1u, 3u, 1000u, 100'000u}) {
    const LargeVector<float, 64> small(size);
    EXPECT_TRUE(starts_at_multiple_of(small.data(), 64)) << size;
  }
  for (const std::size_t size : {8 * huge_page, 8 * huge_page + 1}) {
    const LargeVector<char> large(size);
    EXPECT_TRUE(starts_at_multiple_of(large.data(), huge_page)) << size;
  }
}

TEST(LargeVector, HoldsWhatItIsGiven) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{10}, std::size_t{5'000'000}}) {
    LargeVector<double> values(size);
    std::iota(values.begin(), values.end(), 1.0);
    values.push_back(0.5);  // moves them to a new place
    ASSERT_EQ(values.size(), size + 1);
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(values[i], static_cast<double>(i + 1));
    EXPECT_EQ(values.back(), 0.5);
    const LargeVector<double> copy = values;
    EXPECT_EQ(copy, values);
    const LargeVector<double> moved = std::move(values);
    EXPECT_EQ(moved, copy);
  }
  const LargeVector<float> zeros(5'000'000, 0.0f);
  EXPECT_EQ(std::count(zeros.begin(), zeros.end(), 0.0f), 5'000'000);
}

}  // namespace
}  // namespace neyman
