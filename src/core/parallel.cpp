#include "neyman/core/parallel.hpp"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/thread_share.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/progress.hpp"

namespace neyman {

namespace {

std::mutex control_mutex;
std::unique_ptr<tbb::global_control> control;
std::atomic<std::size_t> thread_count{0};

// Of the task that this thread is at, among the tasks of all loops around it.
thread_local std::size_t loop_tasks = 1;

class TaskOf {
 public:
  TaskOf(std::size_t tasks, std::size_t around) : before_(loop_tasks) {
    loop_tasks = around * tasks;
  }
  ~TaskOf() { loop_tasks = before_; }
  TaskOf(const TaskOf&) = delete;
  TaskOf& operator=(const TaskOf&) = delete;

 private:
  std::size_t before_;
};

}  // namespace

void set_threads(std::size_t count) {
  const std::lock_guard lock(control_mutex);
  thread_count = count;
  control.reset();
  if (count > 0)
    control =
        std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism, count);
}

std::size_t threads() {
  const std::size_t count = thread_count;
  return count > 0 ? count : static_cast<std::size_t>(tbb::info::default_concurrency());
}

std::size_t thread_share() { return std::max<std::size_t>(1, threads() / loop_tasks); }

void parallel_blocks(std::size_t count, std::size_t block_size,
                     const std::function<void(Block)>& work) {
  if (count == 0 || block_size == 0) return;
  const std::size_t blocks = (count + block_size - 1) / block_size;
  const auto run = [&, around = loop_tasks](std::size_t i) {
    check_stop();
    const TaskOf mark(std::min(blocks, threads()), around);
    work({i, i * block_size, std::min(count, (i + 1) * block_size)});
  };
  if (blocks == 1 || threads() == 1) {
    for (std::size_t i = 0; i < blocks; ++i) run(i);
    return;
  }
#ifdef __SANITIZE_THREAD__
  // oneTBB is not compiled with the sanitizer, which takes what it hands from thread to thread for
  // races.
  waiting_blocks(blocks, 1, threads(), [&](Block block) { run(block.index); });
#else
  tbb::task_group_context context;
  tbb::parallel_for(std::size_t{0}, blocks, run, context);
  // Where a loop around this one has failed elsewhere, this one is cut short without an exception
  // of its own, and what it was to fill is not whole. The first exception is the one that is told.
  if (context.is_group_execution_cancelled()) throw Interrupted();
#endif
}

void waiting_blocks(std::size_t count, std::size_t block_size, std::size_t at_once,
                    const std::function<void(Block)>& work) {
  if (count == 0 || block_size == 0) return;
  const std::size_t blocks = (count + block_size - 1) / block_size;
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::exception_ptr first;
  const auto run = [&] {
    for (std::size_t i = next++; i < blocks && !failed; i = next++) {
      try {
        check_stop();
        work({i, i * block_size, std::min(count, (i + 1) * block_size)});
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
        failed = true;
      }
    }
  };
  std::vector<std::thread> helpers;
  for (std::size_t t = 1; t < std::min(at_once, blocks); ++t) helpers.emplace_back(run);
  run();
  for (auto& helper : helpers) helper.join();
  if (first) std::rethrow_exception(first);
}

double sum_blocks(std::size_t count, const std::function<double(Block)>& block_sum,
                  std::size_t block_size) {
  return reduce_blocks(count, block_size, 0.0, block_sum, [](double a, double b) { return a + b; });
}

}  // namespace neyman
