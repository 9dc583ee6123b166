#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace neyman {

/// Decides by trial whether runs are shared: between cores that are far apart, what one has
/// written takes as long to reach the other as a small task takes. Every now and then some runs
/// are shared and some are not, and the faster way is taken for the next ones.
class Pace {
 public:
  static constexpr std::size_t trial = 5, runs_between_trials = 256;
  static constexpr double long_task = 25e-6;  ///< seconds; runs of such tasks are always shared

  bool shared() const { return stage_ != Stage::alone && (stage_ != Stage::decided || share_); }
  /// What the last run took, with all that came before it, by the number of its tasks.
  void add(double seconds_a_task);

 private:
  enum class Stage { together, alone, decided };

  Stage stage_ = Stage::together;
  bool share_ = true;
  double together_ = 0.0;
  std::size_t runs_ = 0;
  std::array<double, trial> times_{};
};

/// Threads for rounds of tasks of some microseconds, for which waking threads would take longer
/// than the work. All go through the rounds of a run by themselves: at the end of a round each
/// tells the others that it is through, and nobody waits to be told what comes next. Between runs
/// the helpers stay awake for a while.
///
/// Each member has its share of the tasks, the same in every round: what it works with stays in
/// its cache, and nobody else writes where it notes what it has claimed. Who is through and waits
/// takes tasks of others that are not claimed yet: a member that the system has put aside costs
/// little as long as it holds no task.
class Team {
 public:
  static constexpr std::size_t most_rounds = 4095, most_tasks = 4095;

  /// The caller of `run` is one of the members.
  explicit Team(std::size_t members);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  std::size_t members() const { return helpers_.size() + 1; }

  /// Whether the next run of as many tasks is to be shared.
  bool shares(std::size_t tasks) const { return !helpers_.empty() && tasks > 1 && pace_.shared(); }

  struct Tasks {
    std::size_t begin, end;
    std::size_t size() const { return end - begin; }
  };
  /// The share of a member in the next run of as many tasks, or in the current one.
  Tasks share_of(std::size_t member, std::size_t tasks) const;

  /// Calls work(round, task, member) for the tasks 0 … tasks − 1 of round 0, when all are done for
  /// those of round 1, and so on; the tasks of a round in no fixed order. The caller is member 0. A
  /// member has a task of a round only if it had one of the round before, too. For one caller at a
  /// time. The work must not throw, and no task may wait for another: one member may do all.
  template <class Work>
  void run(std::size_t rounds, std::size_t tasks, const Work& work) {
    if (rounds == 0 || tasks == 0) return;
    if (shares(tasks)) {
      share({rounds, tasks,
             [](const void* context, std::size_t round, std::size_t task, std::size_t member) {
               (*static_cast<const Work*>(context))(round, task, member);
             },
             &work});
    } else {
      for (std::size_t round = 0; round < rounds; ++round)
        for (std::size_t task = 0; task < tasks; ++task) work(round, task, std::size_t{0});
    }
    if (!helpers_.empty() && tasks > 1) keep_pace(rounds * tasks);
  }

 private:
  struct Run {
    std::size_t rounds = 0, tasks = 0;
    void (*work)(const void*, std::size_t round, std::size_t task, std::size_t member) = nullptr;
    const void* context = nullptr;
  };

  void share(const Run& run);
  /// Until the end of the run, or of a round that had no task left for this member.
  void take_part(std::uint64_t run, std::size_t member);
  /// Does what is left of a share of this round, if the run is still the current one; whether
  /// there was any.
  bool work_on(std::uint64_t run, std::size_t round, std::size_t share, std::size_t member);
  bool all_done(std::uint64_t run, std::size_t round) const;
  void help(std::size_t member);
  void keep_pace(std::size_t tasks);

  // The current run, in one cache line that only the caller writes, before it begins: its number
  // and, in the lower bits, how many rounds it has and how many tasks a round.
  alignas(64) std::atomic<std::uint64_t> now_{0};
  std::atomic<bool> stop_{false};
  Run run_;  // read only by who holds a task, without which a run does not end

  struct Share {
    // The number of a run, then the round of which tasks were claimed last, then how many of it.
    alignas(64) std::atomic<std::uint64_t> claimed{0};
    // The number of a run, then how many tasks were done in it.
    alignas(64) std::atomic<std::uint64_t> done{0};
  };
  std::vector<Share> shares_;
  Pace pace_;
  std::chrono::steady_clock::time_point last_end_ = std::chrono::steady_clock::now();
  alignas(64) std::atomic<std::uint32_t> asleep_{0};
  std::vector<std::thread> helpers_;
};

}  // namespace neyman
