#include "data/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "neyman/core/error.hpp"

namespace neyman {

namespace {

[[noreturn]] void fail(const std::string& path, int error) {
  throw FileError(error == ENOENT
                      ? path + ": does not exist"
                      : fmt::format("{}: cannot be read: {}", path, std::strerror(error)));
}

}  // namespace

InputFile::InputFile(const std::string& path)
    : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor_ < 0) fail(path, errno);
  struct stat status {};
  if (::fstat(descriptor_, &status) == 0 && S_ISDIR(status.st_mode)) {
    ::close(descriptor_);
    throw FileError(path + ": cannot be read: it is a folder");
  }
}

InputFile::~InputFile() { ::close(descriptor_); }

std::uint64_t InputFile::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail(path_, errno);
  return static_cast<std::uint64_t>(status.st_size);
}

std::size_t InputFile::read(char* out, std::size_t count) {
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got = ::read(descriptor_, out + done, count - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path_, errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void InputFile::read_at(std::uint64_t offset, char* out, std::size_t count) const {
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got =
        ::pread(descriptor_, out + done, count - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path_, errno);
    if (got == 0) throw FileError(path_ + ": is truncated");
    done += static_cast<std::size_t>(got);
  }
}

}  // namespace neyman
