#include "simulators/run_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>
#include <utility>

#include "neyman/core/error.hpp"

namespace neyman::detail {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view folder_prefix = "neyman-run-";
constexpr std::size_t random_letters = 6;  // that mkdtemp puts at the end
constexpr std::time_t one_week = 7 * 24 * 3600;

/// Other machines may share the parent.
std::string machine_prefix() {
  char machine[256] = {};
  ::gethostname(machine, sizeof machine - 1);
  std::string out = std::string(folder_prefix) + machine + '-';
  std::replace(out.begin(), out.end(), '/', '_');
  return out;
}

fs::path temporary_files() {
  std::error_code error;
  const auto out = fs::temp_directory_path(error);
  if (error)
    throw FileError(
        fmt::format("{}: there is no such folder for temporary files; set TMPDIR to one",
                    out.empty() ? "TMPDIR" : out.string()));
  return out;
}

int open_folder(const fs::path& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int lock_folder(int descriptor, int how) {
  int status = 0;
  do {
    status = ::flock(descriptor, how);
  } while (status != 0 && errno == EINTR);
  return status;
}

/// Whether a path names the folder that is open.
bool is_at(const fs::path& path, int descriptor) {
  struct stat named {
  }, opened{};
  return ::lstat(path.c_str(), &named) == 0 && ::fstat(descriptor, &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

/// Whether a folder was left by a run that is no longer there; then it stays locked while it is
/// open.
bool is_left(int descriptor, bool of_this_machine) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || status.st_uid != ::geteuid()) return false;
  if (!of_this_machine && std::time(nullptr) - status.st_mtime < one_week) return false;
  return lock_folder(descriptor, LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

RunFolder::RunFolder(const std::string& parent) {
  std::error_code ignored;
  if (!parent.empty()) fs::create_directories(parent, ignored);
  if (!parent.empty() && make(parent)) return;
  const auto folder = temporary_files();
  if (make(folder)) return;
  throw FileError(fmt::format("{}: the folder of a run cannot be made there: {}", folder.string(),
                              std::strerror(errno)));
}

RunFolder::~RunFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool RunFolder::make(const fs::path& parent) {
  // Once more where another neyman took it for left between its making and its lock.
  constexpr int attempts = 10;
  for (int k = 0; k < attempts; ++k) {
    auto name = (parent / (machine_prefix() + std::string(random_letters, 'X'))).string();
    if (::mkdtemp(name.data()) == nullptr) return false;
    path_ = name;
    if (lock()) return true;
  }
  errno = ENOENT;
  return false;
}

/// Where a file system has no locks, nobody can lock it, and it is never taken for left.
bool RunFolder::lock() {
  descriptor_ = open_folder(path_);
  if (descriptor_ < 0) return false;
  lock_folder(descriptor_, LOCK_EX);
  if (is_at(path_, descriptor_)) return true;
  ::close(std::exchange(descriptor_, -1));
  return false;
}

void remove_left_folders(const std::string& parent) {
  std::error_code error;
  const auto mine = machine_prefix();
  const auto folder = parent.empty() ? temporary_files() : fs::path(parent);
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const auto name = at->path().filename().string();
    if (!name.starts_with(folder_prefix)) continue;
    const bool of_this_machine = name.starts_with(mine) &&
                                 name.size() == mine.size() + random_letters &&
                                 name.find('-', mine.size()) == std::string::npos;
    const int descriptor = open_folder(at->path());
    if (descriptor < 0) continue;
    std::error_code ignored;
    if (is_left(descriptor, of_this_machine) && is_at(at->path(), descriptor))
      fs::remove_all(at->path(), ignored);
    ::close(descriptor);
  }
}

}  // namespace neyman::detail
