#include "pipeline/inputs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "neyman/core/error.hpp"
#include "neyman/data/checksum.hpp"
#include "neyman/data/file_format.hpp"

namespace neyman::pipeline {

namespace {

namespace fs = std::filesystem;

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The content of the files that a text names.
std::string named_files(const std::string& text, const std::string& folder) {
  std::vector<std::string> words = {text};
  std::istringstream stream(text);
  for (std::string word; stream >> word;)
    if (word != text) words.push_back(word);
  std::string out;
  const auto add = [&](const std::string& path) {
    std::error_code error;
    if (fs::is_regular_file(path, error)) out += fmt::format("<{:016x}>", file_checksum(path));
  };
  for (const auto& word : words) add(table_name((fs::path(folder) / word).string()).file);
  // A text as a whole may be a pattern; a word such as * is rather a part of a formula.
  if (words.size() > 1 || !out.empty()) return out;
  try {
    for (const auto& found : matching_files((fs::path(folder) / text).string()))
      add(table_name(found).file);
  } catch (const FileError&) {  // it only looked like one
  }
  return out;
}

std::string normalised(const SettingValue& value, const std::string& folder,
                       const std::vector<std::string>& except = {}) {
  const auto one = [&](const auto& content) -> std::string {
    using T = std::decay_t<decltype(content)>;
    if constexpr (std::is_same_v<T, std::string>) {
      return fmt::format("{}'{}'{}", content.size(), content, named_files(content, folder));
    } else if constexpr (std::is_same_v<T, SettingValue::Array>) {
      std::string out = "[";
      for (const auto& element : content) out += normalised(element, folder) + ",";
      return out + "]";
    } else if constexpr (std::is_same_v<T, SettingValue::Table>) {
      std::vector<std::string> entries;
      for (const auto& [key, entry] : content)
        if (!holds(except, key))
          entries.push_back(fmt::format("{}'{}'={}", key.size(), key, normalised(entry, folder)));
      std::sort(entries.begin(), entries.end());
      return fmt::format("{{{}}}", fmt::join(entries, ","));
    } else if constexpr (std::is_same_v<T, SettingValue::Object>) {
      return "object";  // beside it stands a text that tells one from another
    } else {
      return fmt::format("{}", content);
    }
  };
  return std::visit(one, value.data);
}

const SettingValue* find(const SettingValue::Table& table, const std::string& path) {
  const auto dot = path.find('.');
  for (const auto& [key, value] : table) {
    if (key != path.substr(0, dot)) continue;
    if (dot == std::string::npos) return &value;
    const auto* inner = std::get_if<SettingValue::Table>(&value.data);
    return inner == nullptr ? nullptr : find(*inner, path.substr(dot + 1));
  }
  return nullptr;
}

}  // namespace

Inputs& Inputs::setting(const std::string& path, const std::vector<std::string>& except) {
  const auto* found = find(study_.settings, path);
  return value(path, found == nullptr ? "" : normalised(*found, study_.folder, except));
}

Inputs& Inputs::all_but(const std::vector<std::string>& tables) {
  std::vector<std::string> others;
  for (const auto& entry : study_.settings)
    if (!holds(tables, entry.first)) others.push_back(entry.first);
  std::sort(others.begin(), others.end());
  for (const auto& name : others) setting(name);
  return *this;
}

Inputs& Inputs::value(std::string_view name, std::string_view text) {
  text_ += fmt::format("{} = {}\n", name, text);
  return *this;
}

Inputs& Inputs::value(std::string_view name, const std::vector<double>& numbers) {
  return value(name, fmt::format("{}", numbers));
}

}  // namespace neyman::pipeline
