#include "terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "neyman/core/progress.hpp"
#include "neyman/reports/terminal.hpp"

namespace neyman::cli {

namespace {

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col - 1;
  return 79;
}

void on_interrupt(int) {
  if (stop_requested()) _exit(130);
  request_stop();
}

}  // namespace

bool colour_output() { return isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr; }

ProgressBar::ProgressBar(bool quiet) {
  if (quiet || isatty(STDERR_FILENO) == 0) return;
  set_progress_sink([](const ProgressState& state) {
    constexpr double shown_after = 0.5;  // seconds
    if (state.elapsed < shown_after) return;
    std::fprintf(stderr, "\r\033[K%s%s", reports::progress_line(state, terminal_width()).c_str(),
                 state.finished ? "\n" : "");
    std::fflush(stderr);
  });
}

ProgressBar::~ProgressBar() { set_progress_sink({}); }

void stop_on_interrupt() { std::signal(SIGINT, on_interrupt); }

}  // namespace neyman::cli
