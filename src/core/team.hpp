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

  /// Calls work(task, member) for the tasks 0 … tasks − 1, in no fixed order, and returns when all
  /// are done; the caller is member 0. For one caller at a time. The work must not throw.
  template <class Work>
  void run(std::size_t tasks, const Work& work) {
    run(
        tasks, [] {}, work);
  }
  /// The same, where the caller has something to do itself that the others need not wait for.
  template <class First, class Work>
  void run(std::size_t tasks, const First& first, const Work& work) {
    if (helpers_.empty() || tasks < 2) {
      first();
      for (std::size_t i = 0; i < tasks; ++i) work(i, std::size_t{0});
      return;
    }
    begin(
        tasks,
        [](const void* context, std::size_t i, std::size_t member) {
          (*static_cast<const Work*>(context))(i, member);
        },
        &work);
    first();
    finish();
  }

 private:
  using Call = void (*)(const void* context, std::size_t task, std::size_t member);

  void begin(std::size_t tasks, Call call, const void* context);
  void finish();
  /// Does one task of the current loop, if one is left.
  bool claim_and_work(std::size_t member);
  void help(std::size_t member);

  // What a helper needs to begin, in one cache line: it travels once. `call_` and `context_` are
  // written before `left_` rises, and read after a task was claimed from it.
  alignas(64) std::atomic<std::uint32_t> left_{0};  // tasks that nobody has claimed
  std::atomic<bool> stop_{false};
  Call call_ = nullptr;
  const void* context_ = nullptr;
  alignas(64) std::atomic<std::uint64_t> done_{0};  // of all loops together
  alignas(64) std::atomic<std::uint32_t> asleep_{0};
  std::uint64_t expected_ = 0;  // of `done_`, at the end of the current loop
  std::vector<std::thread> helpers_;
};

}  // namespace neyman
