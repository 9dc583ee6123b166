#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace neyman {

/// A file open for reading. Every failure is a FileError that names it; a requested stop ends the
/// reading, also where a pipe gives nothing, with Interrupted.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t size() const;
  /// Reads on; fewer than `count` bytes only at the end of the file.
  std::size_t read(char* out, std::size_t count);
  /// Reads at a position, all of `count` bytes.
  void read_at(std::uint64_t offset, char* out, std::size_t count) const;

 private:
  void wait() const;

  std::string path_;
  int descriptor_;
  bool regular_ = false;
};

}  // namespace neyman
