#pragma once

#include <string>

namespace neyman::cli {

/// Whether standard output shows colours: a terminal, and NO_COLOR not set.
bool colour_output();

/// Draws progress on standard error while it lives, where that is a terminal and `quiet` is not
/// set. Nothing is drawn for tasks of less than half a second.
class ProgressBar {
 public:
  explicit ProgressBar(bool quiet);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
};

/// Ctrl-C asks the library to stop at the next safe place; a second one ends at once.
void stop_on_interrupt();

}  // namespace neyman::cli
