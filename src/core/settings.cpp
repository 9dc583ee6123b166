#include "neyman/core/settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "neyman/core/check.hpp"

namespace neyman {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

std::optional<double> as_number(const SettingValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value.data))
    return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value.data)) return *real;
  return std::nullopt;
}

using Type = KeyDescription::Type;

/// A list as TOML; "" where it is empty, which stands for none.
template <class Values, class Format>
std::string list_of(const Values& values, Format&& format) {
  std::string out;
  for (const auto& value : values)
    out += fmt::format("{}{}", out.empty() ? "[" : ", ", format(value));
  return out.empty() ? out : fmt::format("{}]", out);
}
const auto plain = [](const auto& value) { return fmt::format("{}", value); };
std::string quoted(std::string_view text) {
  return text.empty() ? std::string() : fmt::format("\"{}\"", text);
}

Limits whole_limits(std::int64_t low, std::int64_t high) {
  const bool open = high >= (std::int64_t{1} << 53);
  return {static_cast<double>(low), open ? infinity : static_cast<double>(high), false, open};
}

std::string join_path(const std::string& path, std::string_view key) {
  if (path.empty() || key.empty()) return path + std::string(key);
  return fmt::format("{}.{}", path, key);
}

}  // namespace

std::string describe(const SettingValue& value) {
  return std::visit(
      Overloaded{[](bool v) -> std::string { return v ? "true" : "false"; },
                 [](std::int64_t v) { return fmt::format("{}", v); },
                 [](double v) { return fmt::format("{}", v); },
                 [](const std::string& v) { return fmt::format("\"{}\"", v); },
                 [](const SettingValue::Array&) -> std::string { return "a list"; },
                 [](const SettingValue::Table&) -> std::string { return "a table"; },
                 [](const SettingValue::Object&) -> std::string { return "an object"; }},
      value.data);
}

/// What all tables of one tree share.
struct Settings::Shared {
  SettingValue root;
  std::string file;
  std::set<const SettingValue*> read;                          // values somebody asked for
  std::map<const SettingValue*, std::set<std::string>> asked;  // keys asked for, by table
  std::vector<Problem> problems;
  Description* description = nullptr;  // in describing mode
};

Settings::Settings() : Settings(SettingValue::Table{}) {}

Settings::Settings(SettingValue::Table table, std::string file)
    : shared_(std::make_shared<Shared>()) {
  shared_->root.data = std::move(table);
  shared_->file = std::move(file);
  value_ = &shared_->root;
}

Settings::Settings(std::shared_ptr<Shared> shared, const SettingValue* value, std::string path)
    : shared_(std::move(shared)), value_(value), path_(std::move(path)) {}

Settings Settings::describing(Description& description) {
  Settings out;
  out.shared_->description = &description;
  out.described_ = &description.root;
  return out;
}

KeyDescription* Settings::note(const Key& key, KeyDescription::Shape shape, std::string fallback) {
  if (!describing()) return nullptr;
  problem(key.name, "is being described");
  auto& keys = described_->keys;
  auto at = std::find_if(keys.begin(), keys.end(),
                         [&](const KeyDescription& known) { return known.name == key.name; });
  if (at == keys.end()) {
    at = keys.emplace(at);
    at->name = key.name;
  }
  if (at->meaning.empty()) at->meaning = key.meaning;
  if (shape.type == Type::table && at->table == nullptr)
    at->table = std::make_shared<TableDescription>();
  if (key.name == any_name) {
    shape.limits = Limits::any();  // they follow from what the user writes elsewhere
  } else {
    at->required = at->required || key.is_required;
    if (at->fallback.empty()) at->fallback = std::move(fallback);
  }
  const auto same = std::find_if(at->shapes.begin(), at->shapes.end(), [&](const auto& known) {
    return known.type == shape.type && known.lists == shape.lists;
  });
  if (same == at->shapes.end()) {
    at->shapes.push_back(std::move(shape));
  } else {
    for (auto& choice : shape.choices)
      if (std::find(same->choices.begin(), same->choices.end(), choice) == same->choices.end())
        same->choices.push_back(std::move(choice));
  }
  return &*at;
}

std::optional<std::string> Settings::kind_of(const Kinds& kinds) {
  std::vector<std::string> names;
  for (const auto& [name, meaning] : kinds.names) names.push_back(name);
  const Key key("kind", kinds.meaning);
  if (!kinds.fallback.empty()) return choice(key, kinds.fallback, names);
  if (!has(key.name)) {
    missing(key.name, fmt::format("one of {}", fmt::join(names, ", ")));
    return std::nullopt;
  }
  const auto before = shared_->problems.size();
  const auto found = is_text(key.name) ? choice(key, {}, names) : text(key, {});
  return shared_->problems.size() > before ? std::nullopt : std::optional(found);
}

void Settings::describe_kinds(const Kinds& kinds,
                              const std::function<void(const std::string& kind, Settings)>& read) {
  std::vector<std::string> names;
  for (const auto& [name, meaning] : kinds.names) names.push_back(name);
  const auto presence = kinds.fallback.empty() ? Key::required : Key::optional;
  note({"kind", kinds.meaning, presence}, {Type::choice, 0, Limits::any(), names},
       quoted(kinds.fallback));
  auto& of = described_->kinds;
  if (std::none_of(of.begin(), of.end(), [&](const auto& l) { return l.topic == kinds.topic; }))
    of.push_back({kinds.topic, kinds.fallback});
  auto& lists = shared_->description->kinds;
  if (!lists.try_emplace(kinds.topic).second) return;  // the members of a mixture are mixtures
  for (const auto& [name, meaning] : kinds.names) {
    TableDescription own;
    Settings table = *this;
    table.described_ = &own;
    read(name, table);
    lists[kinds.topic].push_back({name, meaning, std::move(own)});
  }
}

const SettingValue* Settings::find(std::string_view key) const {
  for (const auto& [name, value] : std::get<SettingValue::Table>(value_->data))
    if (name == key) return &value;
  return nullptr;
}

const SettingValue* Settings::read(std::string_view key) {
  shared_->asked[value_].insert(std::string(key));
  const auto* value = find(key);
  if (value != nullptr) shared_->read.insert(value);
  return value;
}

bool Settings::has(std::string_view key) const {
  shared_->asked[value_].insert(std::string(key));
  return describing() || find(key) != nullptr;
}

std::vector<std::string> Settings::keys() const {
  if (describing()) return {any_name};
  std::vector<std::string> out;
  for (const auto& entry : std::get<SettingValue::Table>(value_->data)) out.push_back(entry.first);
  return out;
}

Where Settings::where(std::string_view key) const {
  const auto* value = find(key);
  const auto bracket = key.find('[');
  if (value == nullptr && bracket != std::string_view::npos) {
    value = find(key.substr(0, bracket));
    const auto index = static_cast<std::size_t>(std::atoi(key.data() + bracket + 1));
    const auto* array = value != nullptr ? std::get_if<SettingValue::Array>(&value->data) : nullptr;
    if (array != nullptr && index < array->size()) value = &(*array)[index];
  }
  return {shared_->file, value != nullptr ? value->line : value_->line};
}

void Settings::problem(std::string_view key, std::string message) {
  shared_->problems.push_back({where(key), join_path(path_, key), std::move(message)});
}

void Settings::missing(std::string_view key, std::string_view expected) {
  problem(key, fmt::format("is missing, but must be {}", expected));
}

double Settings::number(Key key, double fallback, Limits limits) {
  note(key, {Type::number, 0, limits}, fmt::format("{}", fallback));
  const auto* value = read(key.name);
  if (value == nullptr) return fallback;
  const auto found = as_number(*value);
  if (!found || !std::isfinite(*found) || !limits.contains(*found)) {
    problem(key.name, fmt::format("is {}, but must be {}", describe(*value),
                                  found ? limits.words() : "a number"));
    return fallback;
  }
  return *found;
}

double Settings::number(Key key, Limits limits) {
  key.is_required = true;
  note(key, {Type::number, 0, limits});
  if (read(key.name) == nullptr) {
    missing(key.name, limits.words() == "a finite number" ? "a number" : limits.words());
    return 0.0;
  }
  return number(key, 0.0, limits);
}

std::optional<double> Settings::optional_number(Key key, Limits limits, double instead) {
  note(key, {Type::number, 0, limits});
  if (describing() || !has(key.name)) return std::nullopt;
  return number(key, instead, limits);
}

std::optional<std::int64_t> Settings::optional_integer(Key key, std::int64_t low,
                                                       std::int64_t high) {
  note(key, {Type::whole, 0, whole_limits(low, high)});
  if (describing() || !has(key.name)) return std::nullopt;
  return integer(key, 0, low, high);
}

std::int64_t Settings::integer(Key key, std::int64_t fallback, std::int64_t low,
                               std::int64_t high) {
  note(key, {Type::whole, 0, whole_limits(low, high)}, fmt::format("{}", fallback));
  const auto* value = read(key.name);
  if (value == nullptr) return fallback;
  const auto* found = std::get_if<std::int64_t>(&value->data);
  std::int64_t whole = found != nullptr ? *found : 0;
  bool fits = found != nullptr;
  if (const auto* real = std::get_if<double>(&value->data);
      real != nullptr && std::abs(*real) < 0x1.0p53 && std::floor(*real) == *real) {
    whole = static_cast<std::int64_t>(*real);  // 1e6 is a whole number to a person
    fits = true;
  }
  if (!fits || whole < low || whole > high) {
    const auto range = high >= (std::int64_t{1} << 53)
                           ? fmt::format("a whole number of at least {}", low)
                           : fmt::format("a whole number between {} and {}", low, high);
    problem(key.name, fmt::format("is {}, but must be {}", describe(*value), range));
    return fallback;
  }
  return whole;
}

std::size_t Settings::count(Key key, std::size_t fallback, std::int64_t low, std::int64_t high) {
  return static_cast<std::size_t>(integer(key, static_cast<std::int64_t>(fallback), low, high));
}

bool Settings::flag(Key key, bool fallback) {
  note(key, {Type::flag}, fallback ? "true" : "false");
  const auto* value = read(key.name);
  if (value == nullptr) return fallback;
  if (const auto* found = std::get_if<bool>(&value->data)) return *found;
  problem(key.name, fmt::format("is {}, but must be true or false", describe(*value)));
  return fallback;
}

std::string Settings::text(Key key, std::string_view fallback) {
  note(key, {Type::text}, quoted(fallback));
  const auto* value = read(key.name);
  if (value == nullptr) return std::string(fallback);
  if (const auto* found = std::get_if<std::string>(&value->data)) return *found;
  problem(key.name, fmt::format("is {}, but must be a text in quotes", describe(*value)));
  return std::string(fallback);
}

std::string Settings::text(Key key) {
  key.is_required = true;
  note(key, {Type::text});
  if (read(key.name) == nullptr) {
    missing(key.name, "a text in quotes");
    return {};
  }
  return text(key, "");
}

std::string Settings::choice(Key key, std::string_view fallback,
                             const std::vector<std::string>& choices) {
  if (note(key, {Type::choice, 0, Limits::any(), choices}, quoted(fallback)) != nullptr)
    return std::string(fallback);
  const std::string found = text(key, fallback);
  if (std::find(choices.begin(), choices.end(), found) != choices.end()) return found;
  problem(key.name,
          fmt::format("is \"{}\", but must be one of {}", found, candidates_for(found, choices)));
  return std::string(fallback);
}

std::vector<double> Settings::numbers(Key key, std::vector<double> fallback, Limits limits) {
  note(key, {Type::number, 1, limits}, list_of(fallback, plain));
  const auto* value = read(key.name);
  if (value == nullptr) return fallback;
  const auto* array = std::get_if<SettingValue::Array>(&value->data);
  if (array == nullptr) {
    problem(key.name, fmt::format("is {}, but must be a list of numbers", describe(*value)));
    return fallback;
  }
  std::vector<double> out;
  for (std::size_t i = 0; i < array->size(); ++i) {
    const auto found = as_number((*array)[i]);
    if (!found || !std::isfinite(*found) || !limits.contains(*found)) {
      problem(fmt::format("{}[{}]", key.name, i),
              fmt::format("is {}, but must be {}", describe((*array)[i]),
                          found ? limits.words() : "a number"));
      return fallback;
    }
    out.push_back(*found);
  }
  return out;
}

std::vector<std::size_t> Settings::whole_numbers(Key key, std::vector<std::size_t> fallback,
                                                 Limits limits) {
  if (note(key, {Type::whole, 1, limits}, list_of(fallback, plain)) != nullptr) return fallback;
  const auto values = numbers(key, {fallback.begin(), fallback.end()}, limits);
  std::vector<std::size_t> out;
  for (const double value : values) {
    if (value != std::floor(value))
      problem(fmt::format("{}[{}]", key.name, out.size()),
              fmt::format("is {}, but must be a whole number", value));
    out.push_back(static_cast<std::size_t>(value));
  }
  return out;
}

std::vector<std::string> Settings::texts(Key key, std::vector<std::string> fallback) {
  note(key, {Type::text, 1}, list_of(fallback, quoted));
  const auto* value = read(key.name);
  if (value == nullptr) return fallback;
  const auto* array = std::get_if<SettingValue::Array>(&value->data);
  if (array == nullptr) {
    problem(key.name, fmt::format("is {}, but must be a list of texts", describe(*value)));
    return fallback;
  }
  std::vector<std::string> out;
  for (const auto& element : *array) {
    const auto* found = std::get_if<std::string>(&element.data);
    if (found == nullptr) {
      problem(key.name, fmt::format("contains {}, but must be a list of texts", describe(element)));
      return fallback;
    }
    out.push_back(*found);
  }
  return out;
}

std::vector<std::string> Settings::choices(Key key, std::vector<std::string> fallback,
                                           const std::vector<std::string>& choices,
                                           std::string_view noun) {
  if (note(key, {Type::choice, 1, Limits::any(), choices}, list_of(fallback, quoted)) != nullptr)
    return fallback;
  const auto found = texts(key, std::move(fallback));
  for (std::size_t i = 0; i < found.size(); ++i)
    if (std::find(choices.begin(), choices.end(), found[i]) == choices.end())
      problem(fmt::format("{}[{}]", key.name, i), unknown_name(found[i], noun, choices));
  return found;
}

std::optional<std::pair<double, double>> Settings::range(Key key) {
  constexpr const char* expected = "[lowest, highest]";
  key.is_required = true;
  note(key, {.type = Type::number, .lists = 1, .size = 2});
  if (!has(key.name)) {
    missing(key.name, expected);
    return std::nullopt;
  }
  const auto before = shared_->problems.size();
  const auto found = numbers(key, {});
  if (shared_->problems.size() > before) return std::nullopt;
  if (found.size() == 2 && found[0] < found[1]) return std::pair(found[0], found[1]);
  problem(key.name, found.size() == 2
                        ? fmt::format("is [{}, {}], but must be {}", found[0], found[1], expected)
                        : fmt::format("has {} values, but must be {}", found.size(), expected));
  return std::nullopt;
}

std::vector<std::vector<double>> Settings::rows(Key key) {
  note(key, {Type::number, 2});
  const auto* value = read(key.name);
  if (value == nullptr) {
    missing(key.name, "a list of rows of numbers");
    return {};
  }
  const auto* array = std::get_if<SettingValue::Array>(&value->data);
  std::vector<std::vector<double>> out;
  bool fits = array != nullptr && !array->empty();
  for (std::size_t i = 0; fits && i < array->size(); ++i) {
    const auto* row = std::get_if<SettingValue::Array>(&(*array)[i].data);
    fits = row != nullptr;
    if (!fits) break;
    std::vector<double> numbers;
    for (const auto& element : *row) {
      const auto found = as_number(element);
      fits = fits && found && std::isfinite(*found);
      numbers.push_back(found.value_or(0.0));
    }
    out.push_back(std::move(numbers));
    if (fits && out.back().size() != out.front().size()) {
      problem(key.name, fmt::format("has {} values in row {}, but {} in the first",
                                    out.back().size(), i, out.front().size()));
      return {};
    }
  }
  if (fits) return out;
  problem(key.name,
          fmt::format("is {}, but must be a list of rows of finite numbers", describe(*value)));
  return {};
}

std::optional<std::variant<double, std::string>> Settings::number_or_text(
    Key key, Limits limits, std::optional<double> fallback) {
  key.is_required = key.is_required || !fallback;
  note(key, {Type::formula, 0, limits}, fallback ? fmt::format("{}", *fallback) : "");
  const auto* value = read(key.name);
  if (value == nullptr) return std::nullopt;
  if (const auto found = as_number(*value); found && std::isfinite(*found)) return *found;
  if (const auto* found = std::get_if<std::string>(&value->data)) return *found;
  problem(key.name, fmt::format("is {}, but must be a finite number or a formula in quotes",
                                describe(*value)));
  return std::nullopt;
}

std::vector<std::variant<double, std::string>> Settings::numbers_or_texts(Key key, Limits limits) {
  note(key, {Type::formula, 1, limits});
  const auto* value = read(key.name);
  if (value == nullptr) return {};
  const auto* array = std::get_if<SettingValue::Array>(&value->data);
  if (array == nullptr) {
    problem(key.name,
            fmt::format("is {}, but must be a list of numbers or formulas", describe(*value)));
    return {};
  }
  std::vector<std::variant<double, std::string>> out;
  for (const auto& element : *array) {
    if (const auto found = as_number(element); found && std::isfinite(*found)) {
      out.emplace_back(*found);
    } else if (const auto* formula = std::get_if<std::string>(&element.data)) {
      out.emplace_back(*formula);
    } else {
      problem(key.name, fmt::format("contains {}, but must be a list of numbers or formulas",
                                    describe(element)));
      return {};
    }
  }
  return out;
}

std::vector<std::vector<std::variant<double, std::string>>> Settings::lists_of_numbers_or_texts(
    Key key, KeyDescription::Shape described) {
  note(key, std::move(described));
  const auto* value = read(key.name);
  if (value == nullptr) return {};
  const auto* array = std::get_if<SettingValue::Array>(&value->data);
  if (array == nullptr) {
    problem(key.name, fmt::format("is {}, but must be a list of lists", describe(*value)));
    return {};
  }
  std::vector<std::vector<std::variant<double, std::string>>> out;
  for (std::size_t i = 0; i < array->size(); ++i) {
    const auto* row = std::get_if<SettingValue::Array>(&(*array)[i].data);
    if (row == nullptr) {
      problem(key.name,
              fmt::format("contains {}, but must be a list of lists", describe((*array)[i])));
      return {};
    }
    out.emplace_back();
    for (const auto& element : *row) {
      if (const auto found = as_number(element); found && std::isfinite(*found)) {
        out.back().emplace_back(*found);
      } else if (const auto* formula = std::get_if<std::string>(&element.data)) {
        out.back().emplace_back(*formula);
      } else {
        problem(key.name,
                fmt::format("contains {} in list {}, but must be lists of numbers or formulas",
                            describe(element), i));
        return {};
      }
    }
  }
  return out;
}

bool Settings::is_table(std::string_view key) const {
  const auto* value = find(key);
  return describing() ||
         (value != nullptr && std::holds_alternative<SettingValue::Table>(value->data));
}

bool Settings::is_text(std::string_view key) const {
  const auto* value = find(key);
  return describing() || (value != nullptr && std::holds_alternative<std::string>(value->data));
}

bool Settings::is_list(std::string_view key) const {
  const auto* value = find(key);
  return describing() ||
         (value != nullptr && std::holds_alternative<SettingValue::Array>(value->data));
}

Settings Settings::table(Key key) {
  static const SettingValue empty{SettingValue::Table{}, 0};
  if (const auto* noted = note(key, {Type::table})) {
    Settings out(shared_, &empty, join_path(path_, key.name));
    out.described_ = noted->table.get();
    return out;
  }
  const auto* value = read(key.name);
  if (value != nullptr && !std::holds_alternative<SettingValue::Table>(value->data)) {
    problem(key.name,
            fmt::format("is {}, but must be a table such as {{ key = value }}", describe(*value)));
    value = nullptr;
  }
  return {shared_, value != nullptr ? value : &empty, join_path(path_, key.name)};
}

std::vector<Settings> Settings::tables(Key key) {
  if (const auto* noted = note(key, {Type::table, 1})) {
    Settings one(shared_, value_, join_path(path_, key.name));
    one.described_ = noted->table.get();
    return {one};
  }
  const auto* value = read(key.name);
  if (value == nullptr) return {};
  const auto* array = std::get_if<SettingValue::Array>(&value->data);
  std::vector<Settings> out;
  bool fits = array != nullptr;
  for (std::size_t i = 0; fits && i < array->size(); ++i) {
    const auto& element = (*array)[i];
    fits = std::holds_alternative<SettingValue::Table>(element.data);
    shared_->read.insert(&element);
    out.push_back({shared_, &element, fmt::format("{}[{}]", join_path(path_, key.name), i)});
  }
  if (fits) return out;
  problem(key.name, fmt::format("is {}, but must be a list of tables", describe(*value)));
  return {};
}

void Settings::refuse_unread() {
  // Which keys belong here follows from the kind; where that is wrong, nobody can tell.
  const bool knows_its_keys = std::none_of(
      shared_->problems.begin(), shared_->problems.end(),
      [&, kind = join_path(path_, "kind")](const auto& found) { return found.key == kind; });
  for (const auto& [name, value] : std::get<SettingValue::Table>(value_->data)) {
    if (shared_->read.count(&value) == 0) {
      const auto& known = shared_->asked[value_];
      if (knows_its_keys)
        problem(name, fmt::format("is not a known key; candidates are {}",
                                  candidates_for(name, {known.begin(), known.end()})));
      continue;
    }
    // A table that was read as a whole is checked below; one that nobody opened was refused.
    if (std::holds_alternative<SettingValue::Table>(value.data)) {
      if (shared_->asked.count(&value) > 0)
        Settings(shared_, &value, join_path(path_, name)).refuse_unread();
    } else if (const auto* array = std::get_if<SettingValue::Array>(&value.data)) {
      for (std::size_t i = 0; i < array->size(); ++i)
        if (shared_->asked.count(&(*array)[i]) > 0)
          Settings(shared_, &(*array)[i], fmt::format("{}[{}]", join_path(path_, name), i))
              .refuse_unread();
    }
  }
}

const std::vector<Problem>& Settings::problems() const { return shared_->problems; }

void Settings::throw_if_problems() const {
  if (shared_->problems.empty()) return;
  auto problems = shared_->problems;
  std::stable_sort(problems.begin(), problems.end(),
                   [](const auto& a, const auto& b) { return a.where.line < b.where.line; });
  throw StudyError(std::move(problems));
}

}  // namespace neyman
