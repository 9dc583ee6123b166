#pragma once

#include <string>

namespace neyman::cli {

/// Whether standard output shows colours: a terminal, and NO_COLOR not set.
bool colour_output();

/// Listens to the progress while it lives. Where standard error is a terminal and `quiet` is not
/// set, it draws a line there, which a finished task takes away again; nothing is drawn for tasks
/// of less than half a second.
class ProgressBar {
 public:
  explicit ProgressBar(bool quiet);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// The figures of merit of the longest task that has ended since the last call; or empty.
  std::string take_merit();

 private:
  double longest_ = -1.0;  // seconds
  std::string merit_;
};

/// A word of a command line as a shell takes it.
std::string shell_word(const std::string& word);

/// Ctrl-C asks the library to stop at the next safe place; a second one ends at once.
void stop_on_interrupt();

}  // namespace neyman::cli
