#include "neyman/measurements/kept_tasks.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/data/atomic_file.hpp"
#include "neyman/data/checksum.hpp"

namespace neyman {

namespace {

constexpr const char* task_schema = "neyman.tasks/1";

using Results = std::map<std::pair<std::size_t, std::size_t>, std::string>;  // by loop and task

/// Bytes with their checksum.
std::string sealed(std::string bytes) {
  Packer seal;
  seal(checksum(bytes));
  return bytes + seal.take();
}

std::string heading(const std::string& about, KeptTasks::Part part) {
  Packer bytes;
  bytes(std::string(task_schema), part.number, part.of, about);
  Packer framed;
  framed(sealed(bytes.take()));
  return framed.take();
}

std::string record(std::size_t loop, std::size_t task, const std::string& result) {
  Packer bytes;
  bytes(loop, task, result);
  Packer framed;
  framed(sealed(bytes.take()));
  return framed.take();
}

/// What a seal holds, or nothing where it does not fit.
bool open_seal(const std::string& all, std::string& bytes) {
  if (all.size() < sizeof(std::uint64_t)) return false;
  bytes = all.substr(0, all.size() - sizeof(std::uint64_t));
  std::uint64_t seal = 0;
  std::memcpy(&seal, all.data() + bytes.size(), sizeof seal);
  return seal == checksum(bytes);
}

struct ReadTasks {
  KeptTasks::Part part;
  std::string about;
  Results results;
  std::size_t whole = 0;  // bytes up to the last record that is whole
};

/// Everything up to the first record that is not whole.
ReadTasks read_tasks(const std::string& path) {
  const auto content = read_file(path);
  ReadTasks out;
  Unpacker from(content);
  bool known = false;
  std::string all, bytes;
  try {
    while (!from.empty()) {
      from(all);
      if (!open_seal(all, bytes)) break;
      Unpacker fields(bytes);
      if (!known) {
        std::string schema;
        fields(schema);
        if (schema != task_schema) break;
        fields(out.part.number, out.part.of, out.about);
        known = true;
      } else {
        std::size_t loop = 0, task = 0;
        std::string result;
        fields(loop, task, result);
        out.results[{loop, task}] = std::move(result);
      }
      out.whole += sizeof(std::size_t) + all.size();
    }
  } catch (const FileError&) {
    // The end is missing.
  }
  if (!known) throw FileError(path + ": holds no tasks that neyman has kept");
  return out;
}

}  // namespace

struct KeptTasks::File {
  std::string path;
  int descriptor = -1;
  Results results;

  [[noreturn]] void fail() const { throw FileError(path + ": " + std::strerror(errno)); }
  void append(const std::string& bytes) const {
    for (std::size_t at = 0; at < bytes.size();) {
      const auto written = ::write(descriptor, bytes.data() + at, bytes.size() - at);
      if (written < 0 && errno != EINTR) fail();
      if (written > 0) at += static_cast<std::size_t>(written);
    }
  }
  ~File() {
    if (descriptor < 0) return;
    ::fsync(descriptor);
    ::close(descriptor);
  }
};

KeptTasks::KeptTasks(std::string path, std::string about, Part part)
    : file_(std::make_unique<File>()), part_(part) {
  if (part.number < 1 || part.number > part.of)
    throw ArgumentError(
        fmt::format("KeptTasks: part is {} of {}, but must be one of them", part.number, part.of));
  auto& file = *file_;
  file.path = std::move(path);
  file.descriptor = ::open(file.path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file.descriptor < 0) file.fail();
  if (::flock(file.descriptor, LOCK_EX | LOCK_NB) != 0)
    throw FileError(file.path + ": another process is at work with it");
  if (std::filesystem::file_size(file.path) == 0) {
    file.append(heading(about, part));
    return;
  }
  auto found = read_tasks(file.path);
  if (found.about != about)
    throw FileError(file.path +
                    ": holds toys of another workspace, other options or another neyman; remove "
                    "it to begin anew");
  if (found.part.number != part.number || found.part.of != part.of)
    throw FileError(fmt::format("{}: is part {} of {}, but must be part {} of {}", file.path,
                                found.part.number, found.part.of, part.number, part.of));
  if (::ftruncate(file.descriptor, static_cast<off_t>(found.whole)) != 0) file.fail();
  file.results = std::move(found.results);
}

KeptTasks::~KeptTasks() = default;

std::size_t KeptTasks::left(std::size_t count) const {
  std::size_t out = 0;
  const std::lock_guard lock(mutex_);
  for (std::size_t task = part_.number - 1; task < count; task += part_.of)
    out += file_->results.contains({loops_, task}) ? 0 : 1;
  return out;
}

std::vector<std::string> KeptTasks::run(std::size_t count, std::size_t at_once,
                                        const std::function<std::string(std::size_t)>& work) {
  std::vector<std::string> out(count);
  std::vector<std::size_t> missing;
  for (std::size_t task = part_.number - 1; task < count; task += part_.of) {
    const auto found = file_->results.find({loops_, task});
    if (found == file_->results.end())
      missing.push_back(task);
    else
      out[task] = found->second;
  }
  const auto one = [&](Block block) {
    check_stop();
    const std::size_t task = missing[block.index];
    out[task] = work(task);
    const auto bytes = record(loops_, task, out[task]);
    const std::lock_guard lock(mutex_);
    file_->append(bytes);
  };
  at_once > 0 ? waiting_blocks(missing.size(), 1, at_once, one)
              : parallel_blocks(missing.size(), 1, one);
  const std::lock_guard lock(mutex_);
  for (const std::size_t task : missing) file_->results[{loops_, task}] = out[task];
  ++loops_;
  return out;
}

struct MergedKeptTasks::Content {
  std::string path;
  Results results;
};

MergedKeptTasks::MergedKeptTasks(const std::vector<std::string>& paths) {
  if (paths.empty()) throw FileError("merge: no parts were given");
  for (const auto& path : paths) {
    auto found = read_tasks(path);
    if (parts_.empty()) {
      about_ = found.about;
      parts_.resize(found.part.of);
    }
    if (found.about != about_)
      throw FileError(
          fmt::format("{}: holds toys of another workspace, other options or another "
                      "neyman than {}",
                      path, paths.front()));
    if (found.part.of != parts_.size())
      throw FileError(fmt::format("{}: is part {} of {}, but {} is one of {}", path,
                                  found.part.number, found.part.of, paths.front(), parts_.size()));
    auto& place = parts_.at(found.part.number - 1);
    if (!place.path.empty())
      throw FileError(
          fmt::format("{}: is part {}, and so is {}", path, found.part.number, place.path));
    place = {path, std::move(found.results)};
  }
  std::vector<std::size_t> missing;
  for (std::size_t k = 0; k < parts_.size(); ++k)
    if (parts_[k].path.empty()) missing.push_back(k + 1);
  if (!missing.empty())
    throw FileError(fmt::format("merge: of {} parts these are missing: {}", parts_.size(),
                                fmt::join(missing, ", ")));
}

MergedKeptTasks::~MergedKeptTasks() = default;

std::vector<std::string> MergedKeptTasks::run(std::size_t count, std::size_t,
                                              const std::function<std::string(std::size_t)>&) {
  std::vector<std::string> out(count);
  for (std::size_t task = 0; task < count; ++task) {
    const auto& part = parts_[task % parts_.size()];
    const auto found = part.results.find({loops_, task});
    if (found == part.results.end())
      throw FileError(fmt::format("{}: is not finished; its job must go on", part.path));
    out[task] = found->second;
  }
  ++loops_;
  return out;
}

}  // namespace neyman
