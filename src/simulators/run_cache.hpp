#pragma once

#include <optional>
#include <string>
#include <vector>

#include "neyman/core/matrix.hpp"

namespace neyman::detail {

/// What a run of a simulator gave, and how it failed before it succeeded.
struct CachedRun {
  Matrix x;
  std::vector<std::string> failures;
};

/// Runs of a simulator in a folder, each in a file that is named by its content's key. Files are
/// written whole or not at all, so that several programs may share a folder.
class RunCache {
 public:
  explicit RunCache(std::string folder) : folder_(std::move(folder)) {}

  /// The run with this key; nullopt where there is none. A file that is damaged, or of another key
  /// with the same name, counts as none; `damaged` then tells.
  std::optional<CachedRun> find(const std::string& key, bool& damaged) const;
  /// @throw FileError where it cannot be written.
  void keep(const std::string& key, const CachedRun& run) const;
  /// The file of a key.
  std::string file_of(const std::string& key) const;

 private:
  std::string folder_;
};

/// A short name for any content: 16 hexadecimal digits.
std::string content_hash(std::string_view content);

}  // namespace neyman::detail
