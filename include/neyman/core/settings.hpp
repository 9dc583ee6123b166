#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "neyman/core/description.hpp"
#include "neyman/core/error.hpp"

// What a user wrote, as a tree of values that know their place in the file. A study (TOML) and
// a Python dict become the same tree; each room reads its own table with defaults and leaves
// behind a problem, with file and line, for every value that does not fit, so that all
// problems of a study are listed at once.
namespace neyman {

class Settings;

/// What no file can hold, such as a simulator that the calling program made: rooms that take such
/// objects derive their own.
struct SettingObject {
  virtual ~SettingObject() = default;
};

/// One value of the tree.
struct SettingValue {
  using Array = std::vector<SettingValue>;
  /// Tables keep the order of the file.
  using Table = std::vector<std::pair<std::string, SettingValue>>;
  using Object = std::shared_ptr<const SettingObject>;
  std::variant<bool, std::int64_t, double, std::string, Array, Table, Object> data = false;
  int line = 0;
};

/// A table of the tree, being read. Copies are cheap and share what was read and the problems.
class Settings {
 public:
  Settings();
  /// The root of a tree; `file` is what problems name.
  explicit Settings(SettingValue::Table table, std::string file = {});

  /// Stands for names that users choose, such as those of parameters.
  static constexpr const char* any_name = "NAME";
  /// Describing mode: the reading calls are the one definition of what a tree may hold, and here
  /// they note it in `description` in place of reading. Every key seems to be there in every form
  /// (`find` knows none), readers give their fallback, and each call leaves a problem behind, so
  /// that nothing is made of what is only described. `description` must outlive what is made here.
  static Settings describing(Description& description);
  bool describing() const { return described_ != nullptr; }

  bool has(std::string_view key) const;
  std::vector<std::string> keys() const;
  std::string path() const { return path_; }  ///< dotted path of this table
  Where where(std::string_view key) const;

  // Readers: the value, or `fallback` where the key is absent or does not fit (a problem is
  // then noted). Those without a fallback note a problem where the key is absent.
  double number(Key key, double fallback, Limits limits = Limits::any());
  double number(Key key, Limits limits = Limits::any());
  std::int64_t integer(Key key, std::int64_t fallback, std::int64_t low = 0,
                       std::int64_t high = std::int64_t{1} << 53);
  /// The same of what is counted.
  std::size_t count(Key key, std::size_t fallback, std::int64_t low = 0,
                    std::int64_t high = std::int64_t{1} << 53);
  bool flag(Key key, bool fallback);
  std::string text(Key key, std::string_view fallback);
  std::string text(Key key);
  /// A text that must be one of `choices`.
  std::string choice(Key key, std::string_view fallback, const std::vector<std::string>& choices);
  std::vector<double> numbers(Key key, std::vector<double> fallback, Limits limits = Limits::any());
  /// The same of whole numbers, such as the widths of layers.
  std::vector<std::size_t> whole_numbers(Key key, std::vector<std::size_t> fallback, Limits limits);
  std::vector<std::string> texts(Key key, std::vector<std::string> fallback);
  /// Texts that must each be one of `choices`, which are `noun`s ("a diagnostic").
  std::vector<std::string> choices(Key key, std::vector<std::string> fallback,
                                   const std::vector<std::string>& choices, std::string_view noun);
  /// [lowest, highest]; nullopt where a problem was noted, also where the key is absent.
  std::optional<std::pair<double, double>> range(Key key);
  /// Rows of equal length, for example a matrix.
  std::vector<std::vector<double>> rows(Key key);
  // nullopt where the key is absent; `instead` (zero) where it does not fit.
  std::optional<double> optional_number(Key key, Limits limits = Limits::any(),
                                        double instead = 0.0);
  std::optional<std::int64_t> optional_integer(Key key, std::int64_t low = 0,
                                               std::int64_t high = std::int64_t{1} << 53);
  // Numbers or texts, which are formulas. Whoever evaluates them checks the limits and takes the
  // fallback; both are noted here for the description.
  /// nullopt where absent or of another type.
  std::optional<std::variant<double, std::string>> number_or_text(
      Key key, Limits limits = Limits::any(), std::optional<double> fallback = {});
  /// The elements of an array that may each be a number or a text.
  std::vector<std::variant<double, std::string>> numbers_or_texts(Key key,
                                                                  Limits limits = Limits::any());
  /// Lists, of any lengths, whose elements may each be a number or a text; empty where absent or
  /// where a problem was noted. `described` is what the caller makes of them.
  std::vector<std::vector<std::variant<double, std::string>>> lists_of_numbers_or_texts(
      Key key, KeyDescription::Shape described = {KeyDescription::Type::formula, 2});
  /// An empty table where absent.
  Settings table(Key key);
  /// An array of tables; empty where absent.
  std::vector<Settings> tables(Key key);
  /// What `make` makes of a kind and of this table, whose key "kind" names it. An unknown kind is
  /// a problem; the fallback takes its place, or where there is none, the result is empty.
  template <class Make>
  auto by_kind(const Kinds& kinds, Make&& make) {
    using Made = decltype(make(std::string(), *this));
    if (describing()) {
      describe_kinds(kinds, [&](const std::string& kind, Settings table) { make(kind, table); });
      return Made{};
    }
    const auto kind = kind_of(kinds);
    return kind ? make(*kind, *this) : Made{};
  }
  /// An object that the calling program made; null where there is none of this type.
  template <class T>
  std::shared_ptr<const T> object(std::string_view key) {
    const auto* found = find(key);
    const auto* held = found == nullptr ? nullptr : std::get_if<SettingValue::Object>(&found->data);
    auto made = held == nullptr ? nullptr : std::dynamic_pointer_cast<const T>(*held);
    if (made != nullptr) skip(key);
    return made;
  }
  /// Counts a key as read, whatever it holds: for one that is refused for another reason.
  void skip(std::string_view key) { read(key); }
  bool is_table(std::string_view key) const;
  bool is_text(std::string_view key) const;
  bool is_list(std::string_view key) const;

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
  KeyDescription* note(const Key& key, KeyDescription::Shape shape, std::string fallback = {});
  std::optional<std::string> kind_of(const Kinds& kinds);
  void describe_kinds(const Kinds& kinds,
                      const std::function<void(const std::string& kind, Settings)>& read);

  std::shared_ptr<Shared> shared_;
  const SettingValue* value_;  // always a table
  std::string path_;
  TableDescription* described_ = nullptr;  // in describing mode
};

/// A value in words, for messages: "\"abc\"", "3", "a table".
std::string describe(const SettingValue& value);

}  // namespace neyman
