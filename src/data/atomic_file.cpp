#include "neyman/data/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "data/input_file.hpp"
#include "neyman/core/error.hpp"

namespace neyman {

namespace fs = std::filesystem;

namespace {

std::string resolve_links(const std::string& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error)) return path;
  const fs::path resolved = fs::weakly_canonical(path, error);
  return error ? path : resolved.string();
}

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(resolve_links(path)) {
  std::error_code error;
  const fs::file_status status = fs::status(target_, error);
  if (fs::is_directory(status)) throw FileError(path + ": cannot be written: it is a folder");
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw FileError(path + ": cannot be written: it is not a regular file");
  }
  const std::string folder = folder_of(target_);
  if (!fs::exists(folder, error)) {
    throw FileError(
        fmt::format("{}: cannot be written: the folder '{}' does not exist", path, folder));
  }
  // The process id keeps processes apart, the counter files of one process.
  for (int counter = 0; descriptor_ < 0; ++counter) {
    temporary_ = fmt::format("{}.{}-{}.tmp", target_, ::getpid(), counter);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno != EEXIST) fail(errno);
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::fail(int error) const {
  throw FileError(fmt::format("{}: cannot be written: {}", path_, std::strerror(error)));
}

void AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) fail(errno);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
  ::close(descriptor_);
  descriptor_ = -1;
  // The rename itself lasts once the folder is on disk; some file systems cannot be asked.
  const int folder = ::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw FileError(path + ": the folder cannot be made: " + error.message());
}

std::string read_file(const std::string& path) {
  InputFile file(path);
  std::string bytes;
  constexpr std::size_t step = 1 << 20;
  for (std::size_t size = 0;;) {
    bytes.resize(size + step);
    const std::size_t got = file.read(bytes.data() + size, step);
    size += got;
    if (got < step) {
      bytes.resize(size);
      return bytes;
    }
  }
}

}  // namespace neyman
