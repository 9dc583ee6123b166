#include "neyman/core/memory.hpp"

#include <gtest/gtest.h>

#include <vector>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace neyman {
namespace {

#if defined(__GLIBC__)
TEST(Memory, BlocksOfSomeMegabytesComeFromTheHeap) {
  keep_freed_memory();
  const auto mapped = mallinfo2().hblkhd;         // bytes that came from the system one by one
  const std::vector<double> block(2 << 17, 1.0);  // 2 MiB
  EXPECT_EQ(block.back(), 1.0);
  EXPECT_EQ(mallinfo2().hblkhd, mapped);
}
#endif

}  // namespace
}  // namespace neyman
