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
std::atomic<bool> busy{false};  // a task that the sink hears of is at work
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

Progress::Progress(std::string task, std::size_t total, std::string unit)
    : shown_(has_sink && !busy.exchange(true)),
      task_(std::move(task)),
      unit_(std::move(unit)),
      total_(total),
      start_(seconds_now()),
      last_(start_) {}

Progress::Progress(Progress* whole, std::size_t steps)
    : whole_(whole), total_(steps), start_(0.0), last_(0.0) {}

Progress::~Progress() {
  const std::size_t done = done_;
  if (whole_ != nullptr && done < total_) whole_->advance(total_ - done);
  if (!shown_) return;
  report(done, true);
  busy = false;
}

void Progress::advance(std::size_t steps) {
  done_ += steps;
  if (whole_ != nullptr) whole_->advance(steps);
  tick();
}

void Progress::tick() {
  if (!shown_) return;
  const double now = seconds_now();
  double last = last_;
  // Only the thread that moves the clock on reports.
  if (now - last >= report_interval && last_.compare_exchange_strong(last, now))
    report(done_, false);
}

void Progress::reach(double share) {
  const auto wanted =
      static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(total_));
  std::size_t done = done_;
  while (wanted > done && !done_.compare_exchange_weak(done, wanted)) {
  }
  if (wanted <= done) return;
  if (whole_ != nullptr) whole_->advance(wanted - done);
  tick();
}

void Progress::merit(const char* name, double value) {
  merit_value_ = value;
  merit_ = name;
  if (whole_ != nullptr) whole_->merit(name, value);
  tick();
}

void Progress::report(std::size_t done, bool finished) {
  const double elapsed = seconds_now() - start_;
  const double remaining = done > 0 && total_ > 0
                               ? elapsed * static_cast<double>(total_ - std::min(done, total_)) /
                                     static_cast<double>(done)
                               : -1.0;
  const char* merit = merit_;
  const std::lock_guard lock(sink_mutex);
  if (sink)
    sink({task_, done, total_, elapsed, remaining, finished, unit_, merit == nullptr ? "" : merit,
          merit_value_});
}

}  // namespace neyman
