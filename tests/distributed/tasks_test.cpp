#include "neyman/distributed/tasks.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "distributed/thread_ranks.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/random.hpp"

namespace neyman {
namespace {

using testing::ThreadRanks;

struct Toy {
  double mean = -1.0;
  std::vector<double> values = {};
  bool operator==(const Toy&) const = default;
};

const auto fields = [](auto& bytes, auto& toy) { bytes(toy.mean, toy.values); };

Toy simulate(std::size_t i) {
  Toy out{0.0, std::vector<double>(1 + i % 5)};
  RandomStream random(3, "toy", i);
  for (double& value : out.values) out.mean += value = random.normal();
  return out;
}

TEST(Spread, GivesTheSameBitsForAnyNumberOfRanks) {
  const auto expected = spread<Toy>(nullptr, 203, simulate, fields);
  for (const std::size_t size : {1, 2, 3, 4, 7})
    ThreadRanks::run(size, [&](Communicator& ranks) {
      RankTasks tasks(ranks);
      for (const std::size_t at_once : {0, 3})
        EXPECT_EQ(spread<Toy>(&tasks, 203, simulate, fields, at_once), expected) << size;
    });
}

TEST(Spread, DoesEachTaskOnce) {
  std::vector<std::atomic<int>> done(1000);
  ThreadRanks::run(4, [&](Communicator& ranks) {
    RankTasks tasks(ranks);
    tasks.run(1000, 0, [&](std::size_t i) {
      ++done[i];
      return std::string("x");
    });
  });
  for (const auto& count : done) EXPECT_EQ(count, 1);
}

TEST(Spread, HandsOutTasksAsRanksGetThrough) {
  // One task takes as long as all others together: who has it does little else.
  std::vector<std::size_t> done(2, 0);
  ThreadRanks::run(2, [&](Communicator& ranks) {
    RankTasks tasks(ranks);
    tasks.run(32, 1, [&](std::size_t i) {
      ++done[ranks.rank()];
      std::this_thread::sleep_for(std::chrono::milliseconds(i == 0 ? 200 : 2));
      return std::string("x");
    });
  });
  EXPECT_GT(std::max(done[0], done[1]), 24U);
}

TEST(Spread, TakesNoTasksAndOneTask) {
  ThreadRanks::run(3, [&](Communicator& ranks) {
    RankTasks tasks(ranks);
    EXPECT_TRUE(spread<Toy>(&tasks, 0, simulate, fields).empty());
    EXPECT_EQ(spread<Toy>(&tasks, 1, simulate, fields), std::vector<Toy>{simulate(0)});
  });
}

TEST(Spread, ThrowsOnEveryRankWhatATaskThrows) {
  for (const std::size_t size : {1, 2, 4}) {
    std::atomic<int> told{0}, done{0};
    ThreadRanks::run(size, [&](Communicator& ranks) {
      RankTasks tasks(ranks);
      const auto work = [&](std::size_t i) -> Toy {
        ++done;
        if (i == 5) throw SimulatorError("the simulator failed at 5");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return {};
      };
      try {
        spread<Toy>(&tasks, 4000, work, fields);
      } catch (const SimulatorError& error) {
        EXPECT_STREQ(error.what(), "the simulator failed at 5");
        ++told;
      }
      // The ranks are still together.
      EXPECT_EQ(ranks.gather(std::to_string(ranks.rank())).size(), size);
    });
    EXPECT_EQ(told, static_cast<int>(size));
    EXPECT_LT(done, 3000);  // the others stop too
  }
}

TEST(Spread, LeavesTasksAloneThatNobodyHereIsAskedFor) {
  struct Even final : Tasks {
    std::vector<std::string> run(std::size_t count, std::size_t,
                                 const std::function<std::string(std::size_t)>& work) override {
      std::vector<std::string> out(count);
      for (std::size_t i = 0; i < count; i += 2) out[i] = work(i);
      return out;
    }
  } even;
  const auto found = spread<Toy>(&even, 3, simulate, fields);
  EXPECT_EQ(found, (std::vector<Toy>{simulate(0), Toy{}, simulate(2)}));
}

TEST(Together, RanksShareATaskWhereMoreOfThemThenHaveWork) {
  EXPECT_EQ(together(nullptr, 1, 16), nullptr);
  ThreadRanks::run(4, [](Communicator& ranks) {
    RankTasks tasks(ranks);
    EXPECT_EQ(together(&tasks, 3, 16), &ranks);
    EXPECT_EQ(together(&tasks, 4, 16), nullptr);  // each has one
    EXPECT_EQ(together(&tasks, 1, 2), &ranks);
    EXPECT_EQ(together(&tasks, 2, 2), nullptr);  // two at a time either way
    EXPECT_EQ(together(&tasks, 1, 1), nullptr);
  });
}

}  // namespace
}  // namespace neyman
