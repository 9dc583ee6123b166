#include "core/team.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

namespace neyman {
namespace {

TEST(Team, DoesEveryTaskOfEveryLoopOnce) {
  for (const std::size_t members : {1u, 2u, 3u, 8u}) {
    Team team(members);
    EXPECT_EQ(team.members(), members);
    std::vector<int> counts(17);
    for (int loop = 1; loop <= 2000; ++loop) {
      const std::size_t tasks = static_cast<std::size_t>(loop) % counts.size() + 1;
      std::fill(counts.begin(), counts.end(), 0);
      team.run(tasks, [&](std::size_t i, std::size_t) { ++counts[i]; });
      // Visible to the caller without any lock of its own.
      for (std::size_t i = 0; i < counts.size(); ++i)
        ASSERT_EQ(counts[i], i < tasks ? 1 : 0) << members << " members, loop " << loop;
    }
  }
}

TEST(Team, SharesTasks) {
  Team team(2);
  // Each task waits for the other, so that no thread can do both.
  std::atomic<int> begun{0};
  std::vector<std::thread::id> who(2);
  team.run(2, [&](std::size_t i, std::size_t) {
    who[i] = std::this_thread::get_id();
    ++begun;
    while (begun < 2) std::this_thread::yield();
  });
  EXPECT_NE(who[0], who[1]);
}

TEST(Team, WakesUpAfterAPause) {
  Team team(3);
  for (int loop = 0; loop < 3; ++loop) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // helpers sleep by now
    std::atomic<int> sum{0}, begun{0};
    team.run(3, [&](std::size_t i, std::size_t) {
      ++begun;
      while (begun < 3) std::this_thread::yield();
      sum += static_cast<int>(i) + 1;
    });
    EXPECT_EQ(sum, 6);
  }
}

TEST(Team, DoesEveryTaskOnceWhereSharingIsTriedAndGivenUp) {
  Team team(2);
  std::vector<int> counts(5);
  for (std::size_t loop = 1; loop <= 3 * Pace::loops_between_trials; ++loop) {
    team.run(counts.size(), [&](std::size_t i, std::size_t) { ++counts[i]; });
    for (const int count : counts) ASSERT_EQ(count, static_cast<int>(loop));
  }
}

/// Whether loops are shared after a trial of each way, and how long the trials were.
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
  for (std::size_t i = 0; i < Pace::loops_between_trials; ++i) {
    EXPECT_FALSE(pace.shared());
    pace.add(7e-6);
  }
  EXPECT_TRUE(decide(pace, 5e-6, 7e-6).shared);
  for (std::size_t i = 0; i < Pace::loops_between_trials; ++i) {
    EXPECT_TRUE(pace.shared());
    pace.add(5e-6);
  }
  EXPECT_FALSE(decide(pace, 8e-6, 7e-6).shared);
}

TEST(Pace, NeverDoesLongLoopsAlone) {
  Pace pace;
  for (std::size_t i = 0; i < 3 * Pace::loops_between_trials; ++i) {
    EXPECT_TRUE(pace.shared());
    pace.add(2.0 * Pace::long_loop);
  }
}

TEST(Team, DoesNothingWithoutTasks) {
  Team team(2);
  team.run(0, [](std::size_t, std::size_t) { FAIL(); });
}

TEST(Team, OthersBeginWhileTheCallerDoesSomethingElseFirst) {
  Team team(2);
  const auto caller = std::this_thread::get_id();
  // As many as are shared whatever the pace is: here one waits for the other.
  for (std::size_t loop = 0; loop < Pace::trial; ++loop) {
    std::atomic<bool> begun{false};
    bool first_done = false;
    team.run(
        2,
        [&] {
          while (!begun) std::this_thread::yield();
          first_done = true;
        },
        [&](std::size_t, std::size_t member) {
          EXPECT_EQ(member == 0, std::this_thread::get_id() == caller);
          if (member == 0) {
            EXPECT_TRUE(first_done);
          }
          begun = true;
        });
    EXPECT_TRUE(first_done);
  }
  // Alone, it is done first too.
  bool first_done = false;
  Team(1).run(
      1, [&] { first_done = true; }, [&](std::size_t, std::size_t) { EXPECT_TRUE(first_done); });
}

}  // namespace
}  // namespace neyman
