#pragma once

#include <string>
#include <string_view>

namespace neyman {

/// A file that is written whole or not at all.
///
/// The bytes go into a temporary file in the same folder; `commit` puts them on disk (fsync) and
/// renames the file into place. Readers see the old content or the new, never a part, even after
/// a crash. Without a commit the destructor removes the temporary file and an existing file stays
/// as it was. A symbolic link is followed: its target is replaced, not the link.
///
/// Every failure is a FileError that names the file and the reason: the folder does not exist,
/// it may not be written, the disk is full, …
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  void commit();

 private:
  [[noreturn]] void fail(int error) const;

  std::string path_;    // as given, for messages
  std::string target_;  // with symbolic links resolved
  std::string temporary_;
  int descriptor_ = -1;
};

/// Writes `bytes` into a file, whole or not at all (see AtomicFile).
void write_file_atomically(const std::string& path, std::string_view bytes);

/// Makes a folder, and those that it is in, unless they are there.
/// @throw FileError where it cannot be made.
void make_folder(const std::string& path);

/// The whole content of a file. @throw FileError where it cannot be read.
std::string read_file(const std::string& path);

}  // namespace neyman
