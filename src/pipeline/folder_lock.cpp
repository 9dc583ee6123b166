#include "pipeline/folder_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "neyman/core/error.hpp"

namespace neyman::pipeline {

FolderLock::FolderLock(const std::string& folder)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0)
    throw FileError(fmt::format("{}: cannot be opened: {}", folder, std::strerror(errno)));
  int status = 0;
  do {
    status = ::flock(descriptor_, LOCK_EX | LOCK_NB);
  } while (status != 0 && errno == EINTR);
  if (status == 0 || errno != EWOULDBLOCK) return;
  ::close(descriptor_);
  throw FileError(
      folder +
      ": another run is at work in this folder; wait for its end, or choose another folder");
}

FolderLock::~FolderLock() { ::close(descriptor_); }

}  // namespace neyman::pipeline
