#include "terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "neyman/core/progress.hpp"
#include "neyman/core/text.hpp"
#include "neyman/reports/terminal.hpp"

namespace neyman::cli {

namespace {

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col - 1;
  return 79;
}

/// Whether it is a terminal that understands control characters.
bool controllable(int descriptor) {
  const char* kind = std::getenv("TERM");
  return isatty(descriptor) != 0 && (kind == nullptr || std::strcmp(kind, "dumb") != 0);
}

void write(std::FILE* file, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), file);
}

/// The length of one of the summary's own colours at the front of a text; 0: none.
std::size_t colour_length(std::string_view text) {
  constexpr std::string_view begin = "\033[";
  if (!text.starts_with(begin)) return 0;
  std::size_t at = begin.size();
  while (at < text.size() && at < begin.size() + 2 && text[at] >= '0' && text[at] <= '9') ++at;
  return at > begin.size() && at < text.size() && text[at] == 'm' ? at + 1 : 0;
}

void on_interrupt(int) {
  if (stop_requested()) _exit(130);
  request_stop();
}

}  // namespace

void write_out(std::string_view text) { write(stdout, printable(text)); }
void write_error(std::string_view text) { write(stderr, printable(text)); }

void say_coloured(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t colour = colour_length(text);
    const std::size_t next = colour > 0 ? colour : std::min(text.find('\033', 1), text.size());
    out += colour > 0 ? std::string(text.substr(0, colour)) : printable(text.substr(0, next));
    text.remove_prefix(next);
  }
  write(stdout, out);
}

bool colour_output() {
  const char* no_colour = std::getenv("NO_COLOR");
  return controllable(STDOUT_FILENO) && (no_colour == nullptr || *no_colour == '\0');
}

ProgressBar::ProgressBar(bool quiet) {
  if (quiet) return;
  set_progress_sink([this, draws = controllable(STDERR_FILENO)](const ProgressState& state) {
    if (state.finished && state.elapsed > longest_) {
      longest_ = state.elapsed;
      merit_ = reports::merit_words(state);
    }
    constexpr double shown_after = 0.5;  // seconds
    if (!draws || state.elapsed < shown_after) return;
    const auto line =
        state.finished ? std::string() : reports::progress_line(state, terminal_width());
    write(stderr, "\r\033[K" + printable(line));
    std::fflush(stderr);
  });
}

std::string ProgressBar::take_merit() {
  longest_ = -1.0;
  return std::exchange(merit_, {});
}

ProgressBar::~ProgressBar() { set_progress_sink({}); }

std::string shell_word(const std::string& word) {
  constexpr const char* plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=:,@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

void stop_on_interrupt() { std::signal(SIGINT, on_interrupt); }

}  // namespace neyman::cli
