#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace neyman {

/// Decides by trial whether loops are shared: between cores that are far apart, what one has
/// written takes as long to reach the other as a small loop takes. Every now and then some loops
/// are shared and some are not, and the faster way is taken for the next ones.
class Pace {
 public:
  static constexpr std::size_t trial = 33, loops_between_trials = 4096;
  static constexpr double long_loop = 1e-4;  ///< seconds; such loops are always shared

  bool shared() const { return stage_ != Stage::alone && (stage_ != Stage::decided || share_); }
  /// What the last loop took, with all that came before it.
  void add(double seconds);

 private:
  enum class Stage { together, alone, decided };

  Stage stage_ = Stage::together;
  bool share_ = true;
  double together_ = 0.0;
  std::size_t loops_ = 0;
  std::array<double, trial> times_{};
};

/// Threads for many short loops one after the other, each of some microseconds, for which waking
/// threads would take longer than the work. Between loops the helpers stay awake for a while.
///
/// Each member has its share of the tasks, the same in every loop of as many: what it works with
/// stays in its cache, and nobody else writes where it notes what it has claimed. Who is through
/// and waits takes tasks of others that are not claimed yet: a helper that the system has put aside
/// costs little as long as it holds no task.
class Team {
 public:
  /// The caller of `run` is one of the members.
  explicit Team(std::size_t members);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  std::size_t members() const { return helpers_.size() + 1; }

  /// Calls work(task, member) for the tasks 0 … tasks − 1, in no fixed order, and returns when all
  /// are done; the caller is member 0. For one caller at a time. The work must not throw, and no
  /// task may wait for another: one member may do all of them.
  template <class Work>
  void run(std::size_t tasks, const Work& work) {
    run(
        tasks, [] {}, work);
  }
  /// The same, where the caller has something to do itself that the others need not wait for.
  template <class First, class Work>
  void run(std::size_t tasks, const First& first, const Work& work) {
    const bool several = !helpers_.empty() && tasks > 1;
    if (several && pace_.shared()) {
      begin(
          tasks,
          [](const void* context, std::size_t i, std::size_t member) {
            (*static_cast<const Work*>(context))(i, member);
          },
          &work);
      first();
      finish();
    } else {
      first();
      for (std::size_t i = 0; i < tasks; ++i) work(i, std::size_t{0});
    }
    if (several) keep_pace();
  }

 private:
  using Call = void (*)(const void* context, std::size_t task, std::size_t member);

  void begin(std::size_t tasks, Call call, const void* context);
  void finish();
  /// Does what is left of a share of this loop, if it is still the current one.
  void work_on(std::uint64_t loop, std::size_t share, std::size_t member);
  void work_on_any(std::uint64_t loop, std::size_t member);
  void help(std::size_t member);
  bool all_done() const;
  void keep_pace();

  // The current loop, in one cache line that only the caller writes: its number and, in the lower
  // bits, how many tasks it has. `call_` and `context_` are written before, and read by who holds a
  // task.
  alignas(64) std::atomic<std::uint64_t> loop_{0};
  std::atomic<bool> stop_{false};
  Call call_ = nullptr;
  const void* context_ = nullptr;

  struct Share {
    // The number of a loop and, in the lower bits, how many tasks of the share were claimed in it.
    alignas(64) std::atomic<std::uint64_t> claimed{0};
    alignas(64) std::atomic<std::uint64_t> done{0};  // of all loops together
    alignas(64) std::uint64_t expected = 0;          // of `done`, at the end of the current loop
  };
  std::vector<Share> shares_;
  Pace pace_;
  std::chrono::steady_clock::time_point last_end_ = std::chrono::steady_clock::now();
  alignas(64) std::atomic<std::uint32_t> asleep_{0};
  std::vector<std::thread> helpers_;
};

}  // namespace neyman
