#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace neyman {

/// Threads for many short loops one after the other, each of some microseconds, for which waking
/// threads would take longer than the work. Between loops the helpers stay awake for a while. Tasks
/// are claimed one by one by whoever is free: a helper that the system has put aside costs nothing
/// as long as it holds no task.
class Team {
 public:
  /// The caller of `run` is one of the members.
  explicit Team(std::size_t members);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  std::size_t members() const { return helpers_.size() + 1; }

  /// Calls work(0) … work(tasks − 1), in no fixed order, and returns when all are done. For one
  /// caller at a time. The work must not throw.
  template <class Work>
  void run(std::size_t tasks, const Work& work) {
    if (helpers_.empty() || tasks < 2) {
      for (std::size_t i = 0; i < tasks; ++i) work(i);
      return;
    }
    run_shared(
        tasks, [](const void* context, std::size_t i) { (*static_cast<const Work*>(context))(i); },
        &work);
  }

 private:
  using Call = void (*)(const void* context, std::size_t task);

  void run_shared(std::size_t tasks, Call call, const void* context);
  /// Does one task of the current loop, if one is left.
  bool claim_and_work();
  void help();

  // Written by the caller before `left_` rises, and read after a task was claimed from it.
  Call call_ = nullptr;
  const void* context_ = nullptr;
  // Each in a cache line of its own: helpers look at the first all the time.
  alignas(64) std::atomic<std::uint32_t> left_{0};  // tasks that nobody has claimed
  alignas(64) std::atomic<std::uint32_t> done_{0};
  std::atomic<std::uint32_t> asleep_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> helpers_;
};

}  // namespace neyman
