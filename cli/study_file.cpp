#include "study_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "answer.hpp"
#include "neyman/core/check.hpp"

namespace neyman::cli {

namespace {

namespace fs = std::filesystem;

/// The studies in a folder.
std::vector<std::string> studies_in(const fs::path& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".toml") out.push_back(at->path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

std::string advice_for(const std::string& path) {
  constexpr const char* start = "To begin with a ready study: neyman example mixture my-study";
  std::error_code error;
  const bool folder = fs::is_directory(path, error);
  if (!folder && fs::exists(path, error)) return "";
  const auto place = folder ? fs::path(path) : fs::path(path).parent_path();
  const auto studies = studies_in(place.empty() ? "." : place);
  if (studies.empty()) return start;
  return fmt::format("Studies in {}: {}", place.empty() ? "this folder" : place.string(),
                     folder ? candidates_for("", studies)
                            : candidates_for(fs::path(path).filename().string(), studies));
}

}  // namespace

Study open_study(const std::string& path) {
  return advised(advice_for(path), [&] { return read_study(path); });
}

}  // namespace neyman::cli
