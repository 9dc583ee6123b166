#include "neyman/distributed/communicator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/distributed/tasks.hpp"

namespace neyman {
namespace {

TEST(Communicator, IsAloneWithoutALauncher) {
  const auto ranks = alone();
  EXPECT_EQ(ranks->rank(), 0U);
  EXPECT_EQ(ranks->size(), 1U);
  EXPECT_TRUE(ranks->first());
  EXPECT_EQ(ranks->gather("mine"), std::vector<std::string>{"mine"});
  EXPECT_EQ(ranks->broadcast("mine"), "mine");
  std::vector<std::string> from(1, "....");
  ranks->exchange({"mine"}, from);
  EXPECT_EQ(from, std::vector<std::string>{"mine"});
  ranks->restart();
  EXPECT_EQ(ranks->take(3), 0U);
  EXPECT_EQ(ranks->take(1), 3U);
  ranks->restart();
  EXPECT_EQ(ranks->take(1), 0U);
  EXPECT_TRUE(ranks->meet(0.0));
  EXPECT_EQ(threads_for(*ranks), threads());
}

/// Under mpirun, which tests/distributed/CMakeLists.txt calls.
TEST(MpiRanks, TalkToEachOther) {
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) GTEST_SKIP() << "not under mpirun";
  const auto ranks = connect();
  const auto size = static_cast<std::size_t>(std::atoi(std::getenv("OMPI_COMM_WORLD_SIZE")));
  ASSERT_EQ(ranks->size(), size);
  EXPECT_EQ(ranks->rank(),
            static_cast<std::size_t>(std::atoi(std::getenv("OMPI_COMM_WORLD_RANK"))));
  EXPECT_EQ(ranks->neighbours(), size);
  EXPECT_GE(threads_for(*ranks), 1U);
  EXPECT_LE(threads_for(*ranks) * size, std::max<std::size_t>(size, threads() * size));

  // Of different lengths, some empty.
  const auto all =
      ranks->gather(std::string(ranks->rank() * 1000, static_cast<char>('a' + ranks->rank())));
  ASSERT_EQ(all.size(), size);
  for (std::size_t r = 0; r < size; ++r)
    EXPECT_EQ(all[r], std::string(r * 1000, static_cast<char>('a' + r)));
  EXPECT_EQ(ranks->gather(""), std::vector<std::string>(size));
  EXPECT_EQ(ranks->broadcast("from " + std::to_string(ranks->rank())), "from 0");

  // From rank r to rank s, some megabytes, or nothing to oneself.
  const auto letter = [](std::size_t from, std::size_t to) {
    return std::string(from == to ? 0 : (1 + from) << 20, static_cast<char>('a' + from * 8 + to));
  };
  std::vector<std::string> to(size), from(size);
  for (std::size_t r = 0; r < size; ++r) {
    to[r] = letter(ranks->rank(), r);
    from[r].resize(letter(r, ranks->rank()).size());
  }
  ranks->exchange(to, from);
  for (std::size_t r = 0; r < size; ++r) EXPECT_EQ(from[r], letter(r, ranks->rank()));

  for (int again = 0; again < 3; ++again) {
    RankTasks tasks(*ranks);
    const auto found = tasks.run(500, 0, [](std::size_t i) { return std::to_string(i); });
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], std::to_string(i));
    EXPECT_THROW(tasks.run(50, 0,
                           [](std::size_t i) -> std::string {
                             if (i == 7) throw FileError("no file");
                             return "x";
                           }),
                 FileError);
  }
  EXPECT_TRUE(ranks->meet(30.0));
}

}  // namespace
}  // namespace neyman
