#include "neyman/core/progress.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>

#include "neyman/core/error.hpp"

namespace neyman {

namespace {

std::mutex sink_mutex;
ProgressSink sink;
std::atomic<bool> has_sink{false};
std::atomic<bool> stop{false};
constexpr double report_interval = 0.05;  // seconds between two calls of the sink

}  // namespace

void set_progress_sink(ProgressSink new_sink) {
  const std::lock_guard lock(sink_mutex);
  sink = std::move(new_sink);
  has_sink = static_cast<bool>(sink);
}

void request_stop() noexcept { stop.store(true, std::memory_order_relaxed); }
void clear_stop() noexcept { stop.store(false, std::memory_order_relaxed); }
bool stop_requested() noexcept { return stop.load(std::memory_order_relaxed); }
void check_stop() {
  if (stop_requested()) throw Interrupted();
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Progress::Progress(std::string task, std::size_t total)
    : task_(std::move(task)), total_(total), start_(seconds_now()), last_(start_) {}

Progress::~Progress() { report(done_, true); }

void Progress::advance(std::size_t steps) {
  const std::size_t done = done_ += steps;
  if (!has_sink) return;
  const double now = seconds_now();
  double last = last_;
  // Only the thread that moves the clock on reports.
  if (now - last >= report_interval && last_.compare_exchange_strong(last, now))
    report(done, false);
}

void Progress::report(std::size_t done, bool finished) {
  if (!has_sink) return;
  const double elapsed = seconds_now() - start_;
  const double remaining = done > 0
                               ? elapsed * static_cast<double>(total_ - std::min(done, total_)) /
                                     static_cast<double>(done)
                               : -1.0;
  const std::lock_guard lock(sink_mutex);
  if (sink) sink({task_, done, total_, elapsed, remaining, finished});
}

}  // namespace neyman
