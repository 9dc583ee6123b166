#include "data/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "neyman/core/error.hpp"
#include "neyman/core/progress.hpp"

namespace neyman {

namespace {

/// Bytes between two looks at the stop flag.
constexpr std::size_t most_at_once = std::size_t{1} << 24;

[[noreturn]] void fail(const std::string& path, int error) {
  throw FileError(error == ENOENT
                      ? path + ": does not exist"
                      : fmt::format("{}: cannot be read: {}", path, std::strerror(error)));
}

}  // namespace

// A pipe without a writer would keep `open` waiting, and a stop with it.
InputFile::InputFile(const std::string& path)
    : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (descriptor_ < 0) fail(path, errno);
  struct stat status {};
  const bool known = ::fstat(descriptor_, &status) == 0;
  if (known && S_ISDIR(status.st_mode)) {
    ::close(descriptor_);
    throw FileError(path + ": cannot be read: it is a folder");
  }
  regular_ = known && S_ISREG(status.st_mode);
}

InputFile::~InputFile() { ::close(descriptor_); }

std::uint64_t InputFile::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail(path_, errno);
  return static_cast<std::uint64_t>(status.st_size);
}

/// Until there is something to read, or the writers of a pipe are gone.
void InputFile::wait() const {
  constexpr int patience = 50;  // milliseconds between two looks at the stop flag
  pollfd waiting{descriptor_, POLLIN, 0};
  for (;;) {
    check_stop();
    if (regular_) return;
    const int ready = ::poll(&waiting, 1, patience);
    // After an interruption a pipe without a writer would pass for one at its end.
    if (ready > 0 || (ready < 0 && errno != EINTR)) return;
  }
}

std::size_t InputFile::read(char* out, std::size_t count) {
  std::size_t done = 0;
  while (done < count) {
    wait();
    const ssize_t got = ::read(descriptor_, out + done, std::min(count - done, most_at_once));
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) fail(path_, errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void InputFile::read_at(std::uint64_t offset, char* out, std::size_t count) const {
  std::size_t done = 0;
  while (done < count) {
    check_stop();
    const ssize_t got = ::pread(descriptor_, out + done, std::min(count - done, most_at_once),
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path_, errno);
    if (got == 0) throw FileError(path_ + ": is truncated");
    done += static_cast<std::size_t>(got);
  }
}

}  // namespace neyman
