#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "neyman/core/matrix.hpp"

namespace neyman {

/// A tree of named values in memory: what every fitted object saves itself into and loads
/// itself from. `write_archive` in data/archive_file.hpp puts a tree into an HDF5 file.
///
/// Loading never executes anything and refuses a missing or wrongly typed entry with an error
/// that names its path.
class Archive {
 public:
  using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<double>,
                             std::vector<float>, std::vector<std::int64_t>,
                             std::vector<std::uint8_t>, std::vector<std::string>, Matrix>;

  void set(std::string_view key, Value value);
  void set(std::string_view key, const char* text) { set(key, Value(std::string(text))); }
  /// A size; a template so that a double or a bool does not turn into one.
  template <std::same_as<std::size_t> Size>
  void set(std::string_view key, Size value) {
    set(key, Value(static_cast<std::int64_t>(value)));
  }
  bool has(std::string_view key) const;
  const std::map<std::string, Value, std::less<>>& values() const { return values_; }

  /// The value of a key; throws FileError when it is absent or of another type.
  template <class T>
  const T& get(std::string_view key) const {
    const Value& value = at(key);
    if (const T* found = std::get_if<T>(&value)) return *found;
    wrong_type(key);
  }
  bool flag(std::string_view key) const { return get<bool>(key); }
  std::int64_t integer(std::string_view key) const { return get<std::int64_t>(key); }
  double number(std::string_view key) const { return get<double>(key); }
  const std::string& text(std::string_view key) const { return get<std::string>(key); }
  const std::vector<double>& numbers(std::string_view key) const {
    return get<std::vector<double>>(key);
  }

  /// The child tree of a name, made where it is absent.
  Archive& child(std::string_view name);
  /// The child tree of a name; throws FileError where it is absent.
  const Archive& child(std::string_view name) const;
  bool has_child(std::string_view name) const;
  const std::map<std::string, Archive, std::less<>>& children() const { return children_; }

  bool operator==(const Archive&) const = default;

 private:
  const Value& at(std::string_view key) const;
  [[noreturn]] void wrong_type(std::string_view key) const;
  std::map<std::string, Value, std::less<>> values_;
  std::map<std::string, Archive, std::less<>> children_;
  std::string path_;
};

}  // namespace neyman
