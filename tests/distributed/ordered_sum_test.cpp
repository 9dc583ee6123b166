#include "neyman/distributed/ordered_sum.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "distributed/thread_ranks.hpp"
#include "neyman/core/random.hpp"

namespace neyman {
namespace {

using testing::ThreadRanks;

/// Numbers of very different sizes, so that the order of a sum shows.
std::vector<float> block_of(std::size_t b, std::size_t values) {
  RandomStream random(1, "block", b);
  std::vector<float> out(values);
  for (float& value : out)
    value = static_cast<float>(random.normal() * std::exp(10.0 * random.normal()));
  return out;
}

TEST(OrderedSum, HasTheBitsOfOneLoopForAnyNumberOfRanks) {
  for (const std::size_t values : {1U, 5U, 100U})
    for (const std::size_t blocks : {1U, 2U, 7U, 16U}) {
      std::vector<float> expected = block_of(0, values);
      for (std::size_t b = 1; b < blocks; ++b) {
        const auto more = block_of(b, values);
        for (std::size_t i = 0; i < values; ++i) expected[i] += more[i];
      }
      for (const std::size_t size : {1U, 2U, 3U, 4U, 7U})
        ThreadRanks::run(size, [&](Communicator& ranks) {
          OrderedSum sum(ranks, values);
          for (int again = 0; again < 2; ++again) {
            std::vector<std::vector<float>> mine(blocks);
            std::vector<double> notes(blocks, -1.0);
            std::size_t made = 0;
            for (std::size_t b = 0; b < blocks; ++b)
              if (sum.is_mine(b)) {
                mine[b] = block_of(b, values);
                notes[b] = 0.5 + static_cast<double>(b);
                ++made;
              }
            EXPECT_LE(made, blocks / size + 1);
            std::vector<float> total(values);
            sum([&](std::size_t b) { return mine[b].data(); }, notes, total.data());
            for (std::size_t i = 0; i < values; ++i)
              ASSERT_EQ(std::bit_cast<std::uint32_t>(total[i]),
                        std::bit_cast<std::uint32_t>(expected[i]))
                  << size << ' ' << blocks;
            for (std::size_t b = 0; b < blocks; ++b)
              EXPECT_EQ(notes[b], 0.5 + static_cast<double>(b));
          }
        });
    }
}

TEST(OrderedSum, MayBeWrittenOverABlock) {
  ThreadRanks::run(2, [](Communicator& ranks) {
    OrderedSum sum(ranks, 3);
    std::vector<float> block = {1, 2, 3};
    std::vector<double> notes(2);
    sum([&](std::size_t) { return block.data(); }, notes, block.data());
    EXPECT_EQ(block, (std::vector<float>{2, 4, 6}));
  });
}

}  // namespace
}  // namespace neyman
