#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace neyman::cli {

// All that is printed goes through these. Control characters in names and texts from files are
// written out, so that none of them reaches a terminal. A text that cannot be written ends no
// program: what a full disk took from the standard output is told at the end.

void write_out(std::string_view text);
void write_error(std::string_view text);
/// The same with our own colours.
void say_coloured(std::string_view text);

template <class... Values>
void say(fmt::format_string<Values...> format, Values&&... values) {
  write_out(fmt::format(format, std::forward<Values>(values)...));
}
template <class... Values>
void complain(fmt::format_string<Values...> format, Values&&... values) {
  write_error(fmt::format(format, std::forward<Values>(values)...));
}

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
