#include "neyman/data/settings_file.hpp"

#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 64
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "neyman/core/error.hpp"
#include "neyman/data/atomic_file.hpp"
#include "neyman/data/file_format.hpp"

namespace neyman {

namespace {

/// Turns toml++'s tree into ours and notes what has no place in it.
class Converter {
 public:
  explicit Converter(const std::string& file) : file_(file) {}

  SettingValue::Table table(const toml::table& from, const std::string& path) {
    // toml++ sorts by key; the source has the order of the file.
    std::vector<std::pair<const toml::key*, const toml::node*>> entries;
    for (const auto& [key, node] : from) entries.emplace_back(&key, &node);
    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      return a.first->source().begin < b.first->source().begin;
    });
    SettingValue::Table result;
    for (const auto& [key, node] : entries) {
      const std::string name(key->str());
      const int line = static_cast<int>(key->source().begin.line);
      result.emplace_back(name, value(*node, path.empty() ? name : path + "." + name, line));
    }
    return result;
  }

  const std::vector<Problem>& problems() const { return problems_; }

 private:
  /// `line`: that of the key, which a value in an array does not have.
  SettingValue value(const toml::node& node, const std::string& path, int line) {
    SettingValue result;
    result.line = line;
    if (const auto* nested = node.as_table()) {
      result.data = table(*nested, path);
    } else if (const auto* array = node.as_array()) {
      SettingValue::Array elements;
      for (std::size_t i = 0; i < array->size(); ++i) {
        const toml::node& element = *array->get(i);
        const int element_line = static_cast<int>(element.source().begin.line);
        elements.push_back(value(element, fmt::format("{}[{}]", path, i), element_line));
      }
      result.data = std::move(elements);
    } else if (const auto* flag = node.as_boolean()) {
      result.data = flag->get();
    } else if (const auto* integer = node.as_integer()) {
      result.data = integer->get();
    } else if (const auto* number = node.as_floating_point()) {
      result.data = number->get();
    } else if (const auto* text = node.as_string()) {
      result.data = text->get();
    } else {
      problems_.push_back({{file_, line},
                           path,
                           "is a date or a time, but must be a number, a text in quotes, true, "
                           "false, a list or a table"});
    }
    return result;
  }

  std::string file_;
  std::vector<Problem> problems_;
};

/// toml++ bounds how deeply values are nested, but not how many parts a key has, each of which is a
/// table in a table: a key of 100 000 parts overflows the stack.
class KeyLengths {
 public:
  KeyLengths(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  void check() {
    constexpr int most_parts = 64;
    int parts = 0;
    bool joined = false;  // a dot stands before what comes
    while (!text_.empty()) {
      const char c = text_.front();
      if (c == '"' || c == '\'') {
        skip_text(c);
      } else if (is_part(c)) {
        while (!text_.empty() && is_part(text_.front())) text_.remove_prefix(1);
      } else {
        if (c == '.') {
          joined = true;
        } else if (c != ' ' && c != '\t') {
          joined = false;
          parts = 0;
        }
        if (c == '#')
          text_.remove_prefix(std::min(text_.find('\n'), text_.size()));
        else
          step();
        continue;
      }
      parts = joined ? parts + 1 : 1;
      joined = false;
      if (parts > most_parts)
        throw StudyError(
            {{{file_, line_},
              "",
              fmt::format("is not valid TOML: a key has more than {} parts", most_parts)}});
    }
  }

 private:
  static bool is_part(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' ||
           (static_cast<unsigned char>(c) & 0x80u) != 0;
  }
  void step() {
    if (text_.front() == '\n') ++line_;
    text_.remove_prefix(1);
  }
  /// A text in quotes, in three of them over several lines; one that does not end is toml++'s to
  /// tell.
  void skip_text(char quote) {
    const std::string three(3, quote);
    const bool of_three = text_.starts_with(three);
    text_.remove_prefix(of_three ? 3 : 1);
    while (!text_.empty()) {
      if (of_three ? text_.starts_with(three) : text_.front() == quote || text_.front() == '\n')
        break;
      if (quote == '"' && text_.front() == '\\' && text_.size() > 1) step();
      step();
    }
    if (!text_.empty() && text_.front() == quote) text_.remove_prefix(of_three ? 3 : 1);
  }

  std::string_view text_;
  const std::string& file_;
  int line_ = 1;
};

}  // namespace

Settings parse_settings(std::string_view text, const std::string& name) {
  KeyLengths(text, name).check();
  toml::table root;
  try {
    root = toml::parse(text, std::string_view(name));
  } catch (const toml::parse_error& error) {
    const Where where{name, static_cast<int>(error.source().begin.line)};
    std::string reason(error.description());
    if (reason.find("could not determine value type") != std::string::npos)
      reason += "; a text stands in quotes";
    throw StudyError({{where, "", "is not valid TOML: " + reason}});
  }
  Converter converter(name);
  SettingValue::Table table = converter.table(root, "");
  if (!converter.problems().empty()) throw StudyError(converter.problems());
  return Settings(std::move(table), name);
}

std::vector<std::string> read_file_names(Settings& settings, Key key, const std::string& folder) {
  std::vector<std::string> names;
  if (settings.describing() || (settings.has(key.name) && !settings.is_list(key.name)))
    names = {settings.text(key, "")};
  if (settings.describing() || settings.is_list(key.name)) names = settings.texts(key, {});
  if (settings.describing()) return {};
  std::vector<std::string> out;
  for (const auto& name : names) {
    try {
      const auto path = std::filesystem::path(folder) / name;  // an absolute name stays
      for (auto& found : matching_files(path.lexically_normal().string()))
        out.push_back(std::move(found));
    } catch (const FileError& error) {
      settings.problem(key.name, fmt::format("cannot be used: {}", error.what()));
    }
  }
  return out;
}

Settings read_settings(const std::string& path) { return parse_settings(read_file(path), path); }

}  // namespace neyman
