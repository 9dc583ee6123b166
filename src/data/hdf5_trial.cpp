#include "data/hdf5_trial.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <hdf5.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <set>
#include <tuple>

#include "data/hdf5.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/progress.hpp"

namespace neyman::hdf5 {

namespace {

constexpr rlim_t most_seconds = 60;  // of computing; a slow disk does not count
constexpr int reported = 3;          // exit status of a process that has told what HDF5 says

/// A version of a file.
using Identity = std::tuple<dev_t, ino_t, off_t, time_t, long>;

herr_t visit(hid_t file, const char* name, const H5O_info_t* info, void*) {
  if (info->type == H5O_TYPE_GROUP) {
    const hid_t group = H5Gopen2(file, name, H5P_DEFAULT);
    H5G_info_t members;
    if (group >= 0 && H5Gget_info(group, &members) >= 0 && members.nlinks > 0)
      H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, members.nlinks - 1, nullptr, 0,
                         H5P_DEFAULT);
    if (group >= 0) H5Gclose(group);
  }
  if (info->type != H5O_TYPE_DATASET) return 0;
  const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
  if (dataset < 0) return -1;
  // Of a dataset in chunks this goes through their index.
  H5Dget_storage_size(dataset);
  H5Dclose(dataset);
  return 0;
}

/// In the new process, which has this thread alone; HDF5 is not at work in another, since a session
/// keeps it. Nothing of the parent's is cleaned up.
[[noreturn]] void go_through(const char* path, int report) {
  const rlimit none{0, 0}, computing{most_seconds, most_seconds};
  ::setrlimit(RLIMIT_CORE, &none);
  ::setrlimit(RLIMIT_CPU, &computing);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU, SIGTERM, SIGINT})
    ::signal(signal, SIG_DFL);
  const int null = ::open("/dev/null", O_WRONLY);
  if (null >= 0) ::dup2(null, 2);
  const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
#if H5_VERSION_GE(1, 12, 0)
  const bool good = file >= 0 && H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_NATIVE, visit, nullptr,
                                           H5O_INFO_BASIC) >= 0;
#else
  const bool good = file >= 0 && H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_NATIVE, visit, nullptr,
                                           H5O_INFO_BASIC) >= 0;
#endif
  if (good) ::_exit(0);
  const auto reason = last_error();
  ::_exit(::write(report, reason.data(), reason.size()) < 0 ? reported + 1 : reported);
}

/// Ends with its scope.
struct Trial {
  pid_t id;
  ~Trial() {
    if (id < 0) return;
    ::kill(id, SIGKILL);
    while (::waitpid(id, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
};

}  // namespace

void try_structure(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  const Identity identity{status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
                          status.st_mtim.tv_nsec};
  static std::mutex mutex;
  static std::set<Identity> survived;
  {
    const std::lock_guard lock(mutex);
    if (survived.count(identity) > 0) return;
  }
  // The end of this pipe tells of the end of the process.
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
  Trial trial{::fork()};
  if (trial.id == 0) go_through(path.c_str(), ends[1]);
  ::close(ends[1]);
  try {
    constexpr int patience = 50;  // milliseconds
    pollfd waiting{ends[0], POLLIN, 0};
    while (trial.id > 0 && ::poll(&waiting, 1, patience) <= 0) check_stop();
  } catch (...) {
    ::close(ends[0]);
    throw;
  }
  std::string reason(200, '\0');
  const auto size = trial.id < 0 ? 0 : ::read(ends[0], reason.data(), reason.size());
  reason.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  ::close(ends[0]);
  if (trial.id < 0) return;  // no process can be had; HDF5 is on its own
  int ended = 0;
  while (::waitpid(trial.id, &ended, 0) < 0 && errno == EINTR) {
  }
  trial.id = -1;
  if (WIFEXITED(ended) && WEXITSTATUS(ended) == reported)
    throw FileError(fmt::format("{}: is a damaged HDF5 file (HDF5: {})", path, reason));
  if (!WIFEXITED(ended) || WEXITSTATUS(ended) != 0)
    throw FileError(path + ": is a damaged HDF5 file: HDF5 does not survive reading it");
  const std::lock_guard lock(mutex);
  survived.insert(identity);
}

}  // namespace neyman::hdf5
