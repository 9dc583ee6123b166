#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// What a tree of settings may hold: every key with its type, limits, default and meaning. Nobody
// writes a description: Settings notes one from the calls that read the keys.
namespace neyman {

/// Inclusive or exclusive limits of a number, with the words that an error message uses.
struct Limits {
  double low, high;
  bool low_open = false, high_open = false;
  static Limits any();
  static Limits positive();
  static Limits non_negative();
  static Limits above(double low);
  static Limits between(double low, double high);  ///< both ends allowed
  static Limits inside(double low, double high);   ///< both ends excluded
  bool contains(double value) const;
  std::string words() const;  ///< "positive", "between 0 and 1", …
};

/// A key at the call that reads it: its name and what it means.
struct Key {
  enum Presence { optional, required };
  /// @param presence required: for the description; the reader says what is wrong without it.
  constexpr Key(std::string_view key, std::string_view words, Presence presence = optional)
      : name(key), meaning(words), is_required(presence == required) {}
  // Without a meaning: a key that is read again.
  Key(const char* key) : name(key) {}         // NOLINT: implicit
  Key(const std::string& key) : name(key) {}  // NOLINT: implicit
  std::string_view name, meaning;
  bool is_required = false;
};

/// The kinds that a table may be of, told apart by its key "kind".
struct Kinds {
  std::string topic;     ///< name of the list, such as "classifier"
  std::string meaning;   ///< of the key
  std::string fallback;  ///< the kind where none is named; empty: one must be named
  std::vector<std::pair<std::string, std::string>> names;  ///< with their meanings
};

struct TableDescription;

/// What a key may hold.
struct KeyDescription {
  /// `formula` is a number, or a formula of the parameters in quotes.
  enum class Type { number, whole, flag, text, choice, formula, table };
  /// One form of the value; a key may have several, such as a name or a table.
  struct Shape {
    Type type = Type::text;
    int lists = 0;  ///< 0: a value; 1: a list of them; 2: a list of lists
    Limits limits = Limits::any();
    std::vector<std::string> choices = {};
    std::size_t size = 0;       ///< of the (innermost) list; 0: any
    std::string words() const;  ///< "a whole number, at least 1", "a list of texts", …
  };
  std::string name;  ///< Settings::any_name: every name that the user chooses
  std::string meaning;
  std::vector<Shape> shapes;
  std::string fallback;  ///< as TOML; empty where there is none
  bool required = false;
  std::shared_ptr<TableDescription> table;  ///< of tables
};

/// What a table may hold: its keys, and where it has kinds, the keys of its kind.
struct TableDescription {
  struct KindsOf {
    std::string topic, fallback;  ///< see Kinds
  };
  std::vector<KeyDescription> keys;
  std::vector<KindsOf> kinds;
  const KeyDescription* find(std::string_view name) const;
};

/// A whole tree.
struct Description {
  struct Kind {
    std::string name, meaning;
    TableDescription table;  ///< its own keys
  };
  TableDescription root;
  std::map<std::string, std::vector<Kind>> kinds;  ///< by topic; each list is described once
};

}  // namespace neyman
