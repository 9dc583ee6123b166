#pragma once

#include <string>

namespace neyman::pipeline {

/// Keeps a second run out of a folder while it lives; the kernel lets go of it when the process
/// ends, however it ends. On file systems without locks it does nothing.
class FolderLock {
 public:
  /// @throw FileError where another process holds it, or the folder cannot be opened.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace neyman::pipeline
