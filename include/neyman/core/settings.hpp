#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "neyman/core/error.hpp"

// What a user wrote, as a tree of values that know their place in the file. A study (TOML) and
// a Python dict become the same tree; each room reads its own table with defaults and leaves
// behind a problem, with file and line, for every value that does not fit, so that all
// problems of a study are listed at once.
namespace neyman {

class Settings;

/// One value of the tree.
struct SettingValue {
  using Array = std::vector<SettingValue>;
  /// Tables keep the order of the file.
  using Table = std::vector<std::pair<std::string, SettingValue>>;
  std::variant<bool, std::int64_t, double, std::string, Array, Table> data = false;
  int line = 0;
};

/// Inclusive or exclusive limits of a number, with the words that an error message uses.
struct Limits {
  double low, high;
  bool low_open = false, high_open = false;
  static Limits any();
  static Limits positive();
  static Limits non_negative();
  static Limits between(double low, double high);  ///< both ends allowed
  static Limits inside(double low, double high);   ///< both ends excluded
  bool contains(double value) const;
  std::string words() const;  ///< "positive", "between 0 and 1", …
};

/// A table of the tree, being read. Copies are cheap and share what was read and the problems.
class Settings {
 public:
  Settings();
  /// The root of a tree; `file` is what problems name.
  explicit Settings(SettingValue::Table table, std::string file = {});

  bool has(std::string_view key) const;
  std::vector<std::string> keys() const;
  std::string path() const { return path_; }  ///< dotted path of this table
  Where where(std::string_view key) const;

  // Readers: the value, or `fallback` where the key is absent or does not fit (a problem is
  // then noted). Those without a fallback note a problem where the key is absent.
  double number(std::string_view key, double fallback, Limits limits = Limits::any());
  double number(std::string_view key, Limits limits = Limits::any());
  std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t low = 0,
                       std::int64_t high = std::int64_t{1} << 53);
  bool flag(std::string_view key, bool fallback);
  std::string text(std::string_view key, std::string_view fallback);
  std::string text(std::string_view key);
  /// A text that must be one of `choices`.
  std::string choice(std::string_view key, std::string_view fallback,
                     const std::vector<std::string>& choices);
  std::vector<double> numbers(std::string_view key, std::vector<double> fallback,
                              Limits limits = Limits::any());
  /// The same of whole numbers, such as the widths of layers.
  std::vector<std::size_t> whole_numbers(std::string_view key, std::vector<std::size_t> fallback,
                                         Limits limits);
  std::vector<std::string> texts(std::string_view key, std::vector<std::string> fallback);
  /// Rows of equal length, for example a matrix.
  std::vector<std::vector<double>> rows(std::string_view key);
  /// A number or a text (an expression); nullopt where absent or of another type.
  std::optional<std::variant<double, std::string>> number_or_text(std::string_view key);
  /// The elements of an array that may each be a number or a text.
  std::vector<std::variant<double, std::string>> numbers_or_texts(std::string_view key);
  /// Lists, of any lengths, whose elements may each be a number or a text; empty where absent or
  /// where a problem was noted.
  std::vector<std::vector<std::variant<double, std::string>>> lists_of_numbers_or_texts(
      std::string_view key);
  /// An empty table where absent.
  Settings table(std::string_view key);
  /// An array of tables; empty where absent.
  std::vector<Settings> tables(std::string_view key);
  /// Counts a key as read, whatever it holds: for one that is refused for another reason.
  void skip(std::string_view key) { read(key); }
  bool is_table(std::string_view key) const;
  bool is_text(std::string_view key) const;

  /// Notes a problem with a key of this table: "study.toml:12: parameters.alpha <message>".
  /// An empty key is the table itself; "weights[1]" is an element of a list.
  void problem(std::string_view key, std::string message);
  /// Notes a problem for every key of this table and below that nobody has read, with the
  /// nearest known key: an unknown key is a mistake, not a comment.
  void refuse_unread();
  const std::vector<Problem>& problems() const;
  /// Throws StudyError if problems were noted anywhere in the tree.
  void throw_if_problems() const;

  const SettingValue* find(std::string_view key) const;  ///< without marking it as read

 private:
  struct Shared;
  Settings(std::shared_ptr<Shared> shared, const SettingValue* value, std::string path);
  const SettingValue* read(std::string_view key);
  void missing(std::string_view key, std::string_view expected);

  std::shared_ptr<Shared> shared_;
  const SettingValue* value_;  // always a table
  std::string path_;
};

/// A value in words, for messages: "\"abc\"", "3", "a table".
std::string describe(const SettingValue& value);

}  // namespace neyman
