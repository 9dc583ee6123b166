#include "core/team.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace neyman {
namespace {

int seen(int& count) { return std::atomic_ref<int>(count).load(std::memory_order_relaxed); }

TEST(Team, DoesEveryTaskOfEveryRoundOnce) {
  for (const std::size_t members : {1u, 2u, 3u, 8u}) {
    Team team(members);
    EXPECT_EQ(team.members(), members);
    std::vector<int> counts(17);
    for (std::size_t run = 1; run <= 1000; ++run) {
      const std::size_t tasks = run % counts.size() + 1, rounds = run % 7 + 1;
      std::fill(counts.begin(), counts.end(), 0);
      std::atomic<int> too_early{0};
      team.run(rounds, tasks, [&](std::size_t round, std::size_t task, std::size_t) {
        // what others did in the round before is visible without any lock
        for (std::size_t i = 0; i < tasks; ++i)
          if (i != task && round > 0 && seen(counts[i]) < static_cast<int>(round)) ++too_early;
        std::atomic_ref<int>(counts[task]).fetch_add(1, std::memory_order_relaxed);
      });
      ASSERT_EQ(too_early, 0) << members << " members, run " << run;
      for (std::size_t i = 0; i < counts.size(); ++i)
        ASSERT_EQ(counts[i], i < tasks ? static_cast<int>(rounds) : 0)
            << members << " members, run " << run;
    }
  }
}

TEST(Team, SharesTasks) {
  Team team(2);
  // Each task waits for the other of its round, so that no thread can do both.
  std::vector<std::atomic<int>> begun(5);
  std::vector<std::vector<std::thread::id>> who(5, std::vector<std::thread::id>(2));
  team.run(5, 2, [&](std::size_t round, std::size_t task, std::size_t) {
    who[round][task] = std::this_thread::get_id();
    ++begun[round];
    while (begun[round] < 2) std::this_thread::yield();
  });
  for (const auto& ids : who) {
    EXPECT_NE(ids[0], ids[1]);
    EXPECT_EQ(ids, who[0]);  // a member keeps its tasks
  }
}

TEST(Team, TheCallerIsMemberZero) {
  Team team(3);
  const auto caller = std::this_thread::get_id();
  for (std::size_t run = 0; run < 100; ++run)
    team.run(2, 6, [&](std::size_t, std::size_t, std::size_t member) {
      EXPECT_LT(member, 3u);
      EXPECT_EQ(member == 0, std::this_thread::get_id() == caller);
    });
}

TEST(Team, OthersDoTheTasksOfAMemberThatIsPutAside) {
  Team team(2);
  constexpr std::size_t rounds = 50;
  std::vector<std::array<std::size_t, 4>> who(rounds);
  std::atomic<bool> caller_is_held{false};
  // In the first round the caller holds one of its two tasks until the helper, which begins then,
  // has done its own and, after some time, the other one too.
  std::atomic<int> done{0};
  team.run(rounds, 4, [&](std::size_t round, std::size_t task, std::size_t member) {
    who[round][task] = member;
    if (round > 0) return;
    if (member == 0 && !caller_is_held.exchange(true))
      while (done < 3) std::this_thread::yield();
    while (!caller_is_held) std::this_thread::yield();
    ++done;
  });
  EXPECT_EQ(who[0], (std::array<std::size_t, 4>{0, 1, 1, 1}));
}

TEST(Team, AMemberHasATaskOnlyAfterOneInTheRoundBefore) {
  // More threads than this machine may have cores, so that some are put aside now and then.
  Team team(8);
  constexpr std::size_t rounds = 200, tasks = 8;
  for (int run = 0; run < 20; ++run) {
    std::vector<std::array<std::size_t, tasks>> who(rounds);
    team.run(rounds, tasks, [&](std::size_t round, std::size_t task, std::size_t member) {
      who[round][task] = member;
    });
    for (std::size_t round = 1; round < rounds; ++round)
      for (const std::size_t member : who[round])
        ASSERT_NE(std::find(who[round - 1].begin(), who[round - 1].end(), member),
                  who[round - 1].end());
  }
}

TEST(Team, WakesUpAfterAPause) {
  Team team(3);
  for (int run = 0; run < 3; ++run) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // helpers sleep by now
    std::atomic<int> sum{0}, begun{0};
    team.run(1, 3, [&](std::size_t, std::size_t task, std::size_t) {
      ++begun;
      while (begun < 3) std::this_thread::yield();
      sum += static_cast<int>(task) + 1;
    });
    EXPECT_EQ(sum, 6);
  }
}

TEST(Team, DoesEveryTaskOnceWhereSharingIsTriedAndGivenUp) {
  Team team(2);
  std::vector<int> counts(5);
  for (std::size_t run = 1; run <= 3 * Pace::runs_between_trials; ++run) {
    team.run(2, counts.size(), [&](std::size_t, std::size_t task, std::size_t) { ++counts[task]; });
    for (const int count : counts) ASSERT_EQ(count, static_cast<int>(2 * run));
  }
}

TEST(Team, DoesNothingWithoutTasksOrRounds) {
  Team team(2);
  const auto work = [](std::size_t, std::size_t, std::size_t) { FAIL(); };
  team.run(3, 0, work);
  team.run(0, 3, work);
}

/// Whether runs are shared after a trial of each way, and how long the trials were.
struct Decision {
  bool shared;
  std::size_t together = 0, alone = 0;
};
Decision decide(Pace& pace, double together, double alone, double disturbed = 0.0) {
  Decision out{};
  for (std::size_t i = 0; i < 2 * Pace::trial; ++i) {
    const bool shared = pace.shared();
    ++(shared ? out.together : out.alone);
    pace.add(i % 3 == 0 && disturbed > 0.0 ? disturbed : shared ? together : alone);
  }
  out.shared = pace.shared();
  return out;
}

TEST(Pace, TakesTheFasterWay) {
  for (const double disturbed : {0.0, 1.0, 1e-9}) {
    Pace close, far;
    EXPECT_TRUE(decide(close, 5e-6, 7e-6, disturbed).shared);
    const Decision apart = decide(far, 8e-6, 7e-6, disturbed);
    EXPECT_FALSE(apart.shared);
    EXPECT_EQ(apart.together, Pace::trial);
    EXPECT_EQ(apart.alone, Pace::trial);
  }
}

TEST(Pace, TriesAgainLater) {
  Pace pace;
  EXPECT_FALSE(decide(pace, 8e-6, 7e-6).shared);
  for (std::size_t i = 0; i < Pace::runs_between_trials; ++i) {
    EXPECT_FALSE(pace.shared());
    pace.add(7e-6);
  }
  EXPECT_TRUE(decide(pace, 5e-6, 7e-6).shared);
  for (std::size_t i = 0; i < Pace::runs_between_trials; ++i) {
    EXPECT_TRUE(pace.shared());
    pace.add(5e-6);
  }
  EXPECT_FALSE(decide(pace, 8e-6, 7e-6).shared);
}

TEST(Pace, NeverDoesLongTasksAlone) {
  Pace pace;
  for (std::size_t i = 0; i < 3 * Pace::runs_between_trials; ++i) {
    EXPECT_TRUE(pace.shared());
    pace.add(2.0 * Pace::long_task);
  }
}

}  // namespace
}  // namespace neyman
