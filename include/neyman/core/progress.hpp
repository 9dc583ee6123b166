#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

// The library never prints. Long work tells a sink how far it is and how well it goes; the command
// line draws a bar with the time left, Python its own, and without a sink nothing happens.
namespace neyman {

struct ProgressState {
  std::string task;      ///< "train", "simulate", …
  std::size_t done = 0;  ///< of `total`
  std::size_t total = 0;
  double elapsed = 0.0;    ///< seconds since the task began
  double remaining = 0.0;  ///< estimate, seconds; negative while unknown
  bool finished = false;
  std::string unit = {};     ///< what is counted, "events"; empty where that says nothing
  std::string merit = {};    ///< what else tells how well it goes, "loss"; empty: nothing
  double merit_value = 0.0;  ///< as it was told last
};

using ProgressSink = std::function<void(const ProgressState&)>;

/// Installs the sink (empty: none). It is called from one thread at a time, at most some tens
/// of times a second, and once with `finished`. Of tasks that run inside each other it hears of the
/// outermost alone.
void set_progress_sink(ProgressSink sink);

/// Asks running work to stop at the next safe place, where it throws Interrupted.
/// Safe to call from a signal handler.
void request_stop() noexcept;
void clear_stop() noexcept;
bool stop_requested() noexcept;
/// Throws Interrupted if a stop was requested.
void check_stop();

/// Counts one task's progress; may be told from any thread.
class Progress {
 public:
  /// Steps of a part that tells how far it is by `reach`.
  static constexpr std::size_t fine = 1000;

  /// `unit` is what the steps are; their number a second is then a figure of merit.
  Progress(std::string task, std::size_t total, std::string unit = {});
  /// So many steps of another one, which hears of all that this one is told; those that are left
  /// when it ends are done. `whole` may be null: then nobody hears of it.
  Progress(Progress* whole, std::size_t steps);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(std::size_t steps = 1);
  /// Advances to a share of the total, never back.
  void reach(double share);
  /// The figure of merit as it is now, such as "loss" (a name that outlives the task).
  void merit(const char* name, double value);

 private:
  void tick();
  void report(std::size_t done, bool finished);
  Progress* whole_ = nullptr;
  bool shown_ = false;  // outermost of all that run, and with a sink
  std::string task_, unit_;
  std::size_t total_;
  double start_;
  std::atomic<std::size_t> done_{0};
  std::atomic<double> last_;
  std::atomic<const char*> merit_{nullptr};
  std::atomic<double> merit_value_{0.0};
};

/// Seconds of a steady clock, for timing.
double seconds_now();

}  // namespace neyman
