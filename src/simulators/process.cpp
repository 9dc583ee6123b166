#include "simulators/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "neyman/core/error.hpp"
#include "neyman/core/progress.hpp"

namespace neyman::detail {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kept_messages = 8192;  // characters

/// A file descriptor that is closed.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }
  void close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

[[noreturn]] void fail(const char* what) {
  throw FileError(fmt::format("a process cannot be made: {}: {}", what, std::strerror(errno)));
}

/// In the new process: async-signal-safe calls alone, since other threads may have held locks.
[[noreturn]] void become(const char* program, char* const* arguments, const char* folder,
                         int output, int messages, int null, int report, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (::dup2(null, 0) >= 0 && ::dup2(output, 1) >= 0 && ::dup2(messages, 2) >= 0 &&
      ::chdir(folder) == 0)
    ::execv(program, arguments);
  const int error = errno;
  [[maybe_unused]] const auto written = ::write(report, &error, sizeof error);
  ::_exit(127);
}

/// Adds what can be read now; false at the end of the pipe.
bool drain(int descriptor, std::string& text) {
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count == 0) return false;
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > 4 * kept_messages) text.erase(0, text.size() - kept_messages);
  }
}

/// Whether a child has ended; it stays to be waited for.
bool has_ended(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == child;
}

/// Ends the group and its leader, whatever happens.
class Child {
 public:
  explicit Child(pid_t id) : id_(id) {}
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t id() const { return id_; }
  /// The leader is not yet waited for, so that its number cannot be another's.
  int end() {
    if (id_ < 0) return 0;
    ::kill(-id_, SIGKILL);
    int status = 0;
    while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
    id_ = -1;
    return status;
  }

 private:
  pid_t id_;
};

/// Until the child ends or its time is over; true where it ended.
bool wait_for(const Child& child, int pipe, double timeout, std::string& messages) {
  const double start = seconds_now();
  bool open = true;
  for (int pause = 1;; pause = std::min(20, 2 * pause)) {
    check_stop();
    if (open) open = drain(pipe, messages);
    if (has_ended(child.id())) return true;
    if (timeout > 0.0 && seconds_now() - start > timeout) return false;
    pollfd waiting{pipe, POLLIN, 0};
    if (open)
      ::poll(&waiting, 1, pause);
    else
      ::poll(nullptr, 0, pause);
  }
}

}  // namespace

std::string find_program(const std::string& name, const std::string& folder) {
  if (name.empty()) throw FileError("the command's first word is empty; name a program");
  const auto usable = [](const fs::path& path) {
    std::error_code ignored;
    return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) {
    const auto path = fs::absolute(fs::path(folder) / name).lexically_normal();
    if (usable(path)) return path.string();
    std::error_code ignored;
    if (fs::is_directory(path, ignored))
      throw FileError(fmt::format("{}: is a folder, but must be a program", path.string()));
    if (fs::exists(path, ignored))
      throw FileError(
          fmt::format("{0}: may not be executed; run chmod +x '{0}', or name its interpreter "
                      "first, such as \"python3\"",
                      path.string()));
    throw FileError(
        fmt::format("{}: there is no such file; names are relative to the study", path.string()));
  }
  const char* path = std::getenv("PATH");
  std::string rest = path == nullptr ? "/usr/bin:/bin" : path;
  for (std::size_t begin = 0; begin <= rest.size();) {
    const auto end = std::min(rest.find(':', begin), rest.size());
    const auto found = fs::path(rest.substr(begin, end - begin)) / name;
    if (end > begin && usable(found)) return found.string();
    begin = end + 1;
  }
  throw FileError(fmt::format(
      "{}: no program of this name is on PATH; install it, or give its path with a slash{}", name,
      fs::exists(fs::path(folder) / name) ? fmt::format(", here \"./{}\"", name) : ""));
}

std::string shell_words(const std::vector<std::string>& arguments) {
  std::string out;
  for (const auto& argument : arguments) {
    if (!out.empty()) out += ' ';
    const bool plain =
        !argument.empty() && argument.find_first_not_of(
                                 "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                 "_-+=./:,@%") == std::string::npos;
    if (plain) {
      out += argument;
      continue;
    }
    out += '\'';
    for (const char c : argument) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    out += '\'';
  }
  return out;
}

std::string ProcessResult::words() const {
  switch (end) {
    case End::exited:
      return fmt::format("exit status {}", status);
    case End::signalled:
      return fmt::format("killed by signal {} ({})", status, strsignal(status));
    case End::timed_out:
      return "took longer than its time limit";
    case End::not_started:
      return fmt::format("could not be started: {}", std::strerror(status));
  }
  return {};
}

ProcessResult run_process(const ProcessOptions& options) {
  int ends[2], reports[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail("pipe");
  const Descriptor reading(ends[0]);
  Descriptor writing(ends[1]);
  if (::pipe2(reports, O_CLOEXEC) != 0) fail("pipe");
  const Descriptor report(reports[0]);
  Descriptor reporting(reports[1]);
  const Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (null.get() < 0) fail("/dev/null");
  Descriptor output(
      options.output.empty()
          ? -1
          : ::open(options.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!options.output.empty() && output.get() < 0) fail(options.output.c_str());
  std::vector<char*> arguments;
  for (const auto& argument : options.arguments)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();

  const pid_t id = ::fork();
  if (id < 0) fail("fork");
  if (id == 0)
    become(options.program.c_str(), arguments.data(), options.folder.c_str(),
           output.get() >= 0 ? output.get() : writing.get(), writing.get(), null.get(),
           reporting.get(), parent);
  ::setpgid(id, id);  // here too: a stop may come before the child has done it
  Child child(id);
  writing.close();
  reporting.close();
  output.close();
  ProcessResult out;
  int error = 0;
  if (::read(report.get(), &error, sizeof error) == sizeof error) {
    out.end = ProcessResult::End::not_started;
    out.status = error;
    return out;
  }
  ::fcntl(reading.get(), F_SETFL, O_NONBLOCK);
  const bool ended = wait_for(child, reading.get(), options.timeout, out.messages);
  const int status = child.end();
  drain(reading.get(), out.messages);
  if (out.messages.size() > kept_messages)
    out.messages.erase(0, out.messages.size() - kept_messages);
  if (!ended) {
    out.end = ProcessResult::End::timed_out;
  } else if (WIFSIGNALED(status)) {
    out.end = ProcessResult::End::signalled;
    out.status = WTERMSIG(status);
  } else {
    out.status = WEXITSTATUS(status);
  }
  return out;
}

}  // namespace neyman::detail
