#pragma once

#include <string>
#include <vector>

// Other programs, run without a shell.
namespace neyman::detail {

/// The file that a command's first word names: as it is with a slash in it (relative to `folder`),
/// else the first of that name on PATH.
/// @throw FileError where there is none, or it may not be executed.
std::string find_program(const std::string& name, const std::string& folder);

/// The words as they would be typed in a shell, for messages.
std::string shell_words(const std::vector<std::string>& arguments);

struct ProcessOptions {
  std::string program;                 ///< path of the executable file
  std::vector<std::string> arguments;  ///< the program's name first
  std::string folder;                  ///< where it runs
  std::string output;                  ///< file for what it prints; empty: kept with the errors
  double timeout = 0.0;                ///< seconds; 0: none
};

struct ProcessResult {
  enum class End { exited, signalled, timed_out, not_started };
  End end = End::exited;
  int status = 0;        ///< exit status, signal, or errno where it could not be started
  std::string messages;  ///< the end of what it wrote to stderr (and stdout, without `output`)
  bool ok() const { return end == End::exited && status == 0; }
  std::string words() const;  ///< "exit status 3", "killed by signal 11 (Segmentation fault)", …
};

/// Runs a program in a process group of its own and waits for it. On a time limit, and on a
/// requested stop, the whole group is killed. What it leaves running in its group is killed when
/// it ends, and it is killed should this program die.
/// @throw Interrupted on a requested stop.
ProcessResult run_process(const ProcessOptions& options);

}  // namespace neyman::detail
