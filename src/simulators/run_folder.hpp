#pragma once

#include <filesystem>
#include <string>

namespace neyman::detail {

/// A folder of its own for a run of a program, removed with all it holds. Nobody else can have made
/// it before or write into it, and while it lives it is locked, which tells it from what a killed
/// neyman has left.
class RunFolder {
 public:
  /// In `parent`, or, where that is empty or cannot be written, among the temporary files.
  /// @throw FileError where it cannot be made there either.
  explicit RunFolder(const std::string& parent);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  bool make(const std::filesystem::path& parent);
  bool lock();

  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// Removes the folders that this user's runs have left in `parent` (empty: among the temporary
/// files) because they were killed with their neyman. A folder of another machine, whose lock
/// cannot be seen from here, must be a week old.
void remove_left_folders(const std::string& parent);

}  // namespace neyman::detail
