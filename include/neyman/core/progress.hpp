#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

// The library never prints. Long work tells a sink how far it is; the command line draws a bar
// with the time left, Python its own, and without a sink nothing happens.
namespace neyman {

struct ProgressState {
  std::string task;      ///< "train", "simulate", …
  std::size_t done = 0;  ///< of `total`
  std::size_t total = 0;
  double elapsed = 0.0;    ///< seconds since the task began
  double remaining = 0.0;  ///< estimate, seconds; negative while unknown
  bool finished = false;
};

using ProgressSink = std::function<void(const ProgressState&)>;

/// Installs the sink (empty: none). It is called from one thread at a time, at most some tens
/// of times a second, and once with `finished`.
void set_progress_sink(ProgressSink sink);

/// Asks running work to stop at the next safe place, where it throws Interrupted.
/// Safe to call from a signal handler.
void request_stop() noexcept;
void clear_stop() noexcept;
bool stop_requested() noexcept;
/// Throws Interrupted if a stop was requested.
void check_stop();

/// Counts one task's progress; `advance` may be called from any thread.
class Progress {
 public:
  Progress(std::string task, std::size_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void advance(std::size_t steps = 1);

 private:
  void report(std::size_t done, bool finished);
  std::string task_;
  std::size_t total_;
  double start_;
  std::atomic<std::size_t> done_{0};
  std::atomic<double> last_;
};

/// Seconds of a steady clock, for timing.
double seconds_now();

}  // namespace neyman
