#include "neyman/core/parallel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <thread>
#include <vector>

#include "neyman/core/error.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/random.hpp"

namespace neyman {
namespace {

double noisy_sum(std::size_t count, std::size_t block_size) {
  return sum_blocks(
      count,
      [](Block block) {
        RandomStream random(1, "sum", block.index);
        double sum = 0.0;
        for (std::size_t i = block.begin; i < block.end; ++i)
          sum += random.normal() * std::exp(10.0 * random.normal());
        return sum;
      },
      block_size);
}

TEST(Parallel, SameBitsForAnyNumberOfThreads) {
  set_threads(1);
  const double one = noisy_sum(100003, 100);
  for (const std::size_t count : {2, 3, 8}) {
    set_threads(count);
    EXPECT_EQ(one, noisy_sum(100003, 100)) << count << " threads";
  }
  set_threads(0);
}

TEST(Parallel, CoversEachItemOnce) {
  for (const std::size_t count : {0, 1, 9, 10, 11, 1000}) {
    std::vector<int> seen(count, 0);
    parallel_blocks(count, 10, [&](Block block) {
      for (std::size_t i = block.begin; i < block.end; ++i) ++seen[i];
    });
    for (const int times : seen) EXPECT_EQ(times, 1);
  }
}

TEST(Parallel, ExceptionsReachTheCaller) {
  EXPECT_THROW(parallel_tasks(100,
                              [](std::size_t i) {
                                if (i == 57) throw ArgumentError("57");
                              }),
               ArgumentError);
}

TEST(Parallel, StopsWhenAsked) {
  request_stop();
  EXPECT_THROW(parallel_tasks(4, [](std::size_t) {}), Interrupted);
  clear_stop();
  EXPECT_NO_THROW(parallel_tasks(4, [](std::size_t) {}));
}

TEST(Progress, TellsTheSinkOnceMoreAtTheEnd) {
  std::vector<ProgressState> states;
  set_progress_sink([&](const ProgressState& state) { states.push_back(state); });
  {
    Progress progress("work", 10);
    for (int i = 0; i < 10; ++i) progress.advance();
  }
  set_progress_sink({});
  ASSERT_FALSE(states.empty());
  EXPECT_TRUE(states.back().finished);
  EXPECT_EQ(states.back().done, 10U);
  EXPECT_EQ(states.back().total, 10U);
  EXPECT_EQ(states.back().task, "work");
}

TEST(Progress, TellsUnitAndFigureOfMerit) {
  std::vector<ProgressState> states;
  set_progress_sink([&](const ProgressState& state) { states.push_back(state); });
  {
    Progress progress("train", 2 * Progress::fine, "rows");
    {
      Progress part(&progress, Progress::fine);
      part.reach(0.25);
      part.reach(0.1);  // never back
      part.merit("loss", 0.5);
      Progress nested(&part, 100);
      nested.advance(40);
    }                                 // what is left of both is done
    Progress inside("simulate", 10);  // of which nobody hears
    inside.advance(10);
    Progress other(&progress, Progress::fine);
    other.reach(2.0);
  }
  { Progress next("fit", 1); }
  set_progress_sink({});
  ASSERT_GE(states.size(), 2U);
  const auto& train = states[states.size() - 2];
  EXPECT_EQ(train.task, "train");
  EXPECT_TRUE(train.finished);
  EXPECT_EQ(train.done, 2 * Progress::fine);
  EXPECT_EQ(train.unit, "rows");
  EXPECT_EQ(train.merit, "loss");
  EXPECT_DOUBLE_EQ(train.merit_value, 0.5);
  EXPECT_EQ(states.back().task, "fit");
  EXPECT_EQ(states.back().merit, "");
  for (const auto& state : states) EXPECT_NE(state.task, "simulate");
}

TEST(Progress, PartsOfNothingAreAllowed) {
  Progress part(nullptr, 10);
  part.advance();
  part.reach(0.5);
  part.merit("loss", 1.0);
}

TEST(Progress, CountsEveryStepOfManyThreads) {
  std::size_t done = 0;
  set_progress_sink([&](const ProgressState& state) { done = state.done; });
  set_threads(4);
  {
    Progress progress("work", 8 * Progress::fine);
    parallel_tasks(8, [&](std::size_t) {
      Progress part(&progress, Progress::fine);
      parallel_tasks(100, [&](std::size_t i) { part.reach(static_cast<double>(i) / 100.0); });
    });
  }
  set_threads(0);
  set_progress_sink({});
  EXPECT_EQ(done, 8 * Progress::fine);
}

TEST(ParallelBlocks, ALoopInsideOneThatFailedDoesNotGoOnWithPartOfItsWork) {
  set_threads(4);
  std::atomic<int> incomplete{0};
  for (int repetition = 0; repetition < 200; ++repetition)
    EXPECT_THROW(parallel_tasks(8,
                                [&](std::size_t outer) {
                                  if (outer == 5) throw ArgumentError("outer");
                                  std::vector<int> filled(64, 0);
                                  parallel_tasks(64, [&](std::size_t i) { filled[i] = 1; });
                                  for (const int value : filled) incomplete += value == 0 ? 1 : 0;
                                }),
                 ArgumentError);
  set_threads(0);
  EXPECT_EQ(incomplete, 0);
}

TEST(WaitingBlocks, CallsEachBlockOnceWithSoManyAtOnce) {
  set_threads(1);  // which does not matter to work that waits
  std::vector<std::atomic<int>> called(10);
  std::atomic<int> inside{0}, most{0};
  waiting_blocks(10, 1, 4, [&](Block block) {
    const int now = ++inside;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ++called[block.index];
    --inside;
  });
  set_threads(0);
  for (const auto& count : called) EXPECT_EQ(count, 1);
  EXPECT_GT(most, 1);
  EXPECT_LE(most, 4);
  std::atomic<std::size_t> sum{0};
  waiting_blocks(10, 4, 3, [&](Block block) { sum += block.size() * (block.index + 1); });
  EXPECT_EQ(sum, 4 + 2 * 4 + 3 * 2u);
  waiting_blocks(0, 4, 3, [](Block) { FAIL(); });
}

TEST(WaitingBlocks, StopAtTheFirstExceptionAndOnRequest) {
  std::atomic<int> calls{0};
  const auto fail = [&](Block block) {
    ++calls;
    if (block.index == 0) throw ArgumentError("the first");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  EXPECT_THROW(waiting_blocks(1000, 1, 2, fail), ArgumentError);
  EXPECT_LT(calls, 100);
  request_stop();
  EXPECT_THROW(waiting_blocks(3, 1, 2, [](Block) {}), Interrupted);
  clear_stop();
}

}  // namespace
}  // namespace neyman
