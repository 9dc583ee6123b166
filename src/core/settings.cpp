#include "neyman/core/settings.hpp"

#include <fmt/format.h>

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

std::string join_path(const std::string& path, std::string_view key) {
  if (path.empty() || key.empty()) return path + std::string(key);
  return fmt::format("{}.{}", path, key);
}

}  // namespace

std::string describe(const SettingValue& value) {
  return std::visit(Overloaded{[](bool v) -> std::string { return v ? "true" : "false"; },
                               [](std::int64_t v) { return fmt::format("{}", v); },
                               [](double v) { return fmt::format("{}", v); },
                               [](const std::string& v) { return fmt::format("\"{}\"", v); },
                               [](const SettingValue::Array&) -> std::string { return "a list"; },
                               [](const SettingValue::Table&) -> std::string { return "a table"; }},
                    value.data);
}

Limits Limits::any() { return {-infinity, infinity, true, true}; }
Limits Limits::positive() { return {0.0, infinity, true, true}; }
Limits Limits::non_negative() { return {0.0, infinity, false, true}; }
Limits Limits::between(double low, double high) { return {low, high, false, false}; }
Limits Limits::inside(double low, double high) { return {low, high, true, true}; }

bool Limits::contains(double value) const {
  return (low_open ? value > low : value >= low) && (high_open ? value < high : value <= high);
}

std::string Limits::words() const {
  if (low == -infinity && high == infinity) return "a finite number";
  if (high == infinity && low == 0.0) return low_open ? "positive" : "not negative";
  if (high == infinity) return fmt::format("{} {}", low_open ? "above" : "at least", low);
  if (low == -infinity) return fmt::format("{} {}", high_open ? "below" : "at most", high);
  if (low_open && high_open) return fmt::format("strictly between {} and {}", low, high);
  if (low_open) return fmt::format("above {} and at most {}", low, high);
  if (high_open) return fmt::format("at least {} and below {}", low, high);
  return fmt::format("between {} and {}", low, high);
}

/// What all tables of one tree share.
struct Settings::Shared {
  SettingValue root;
  std::string file;
  std::set<const SettingValue*> read;                          // values somebody asked for
  std::map<const SettingValue*, std::set<std::string>> asked;  // keys asked for, by table
  std::vector<Problem> problems;
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
  return find(key) != nullptr;
}

std::vector<std::string> Settings::keys() const {
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

double Settings::number(std::string_view key, double fallback, Limits limits) {
  const auto* value = read(key);
  if (value == nullptr) return fallback;
  const auto found = as_number(*value);
  if (!found || !std::isfinite(*found) || !limits.contains(*found)) {
    problem(key, fmt::format("is {}, but must be {}", describe(*value),
                             found ? limits.words() : "a number"));
    return fallback;
  }
  return *found;
}

double Settings::number(std::string_view key, Limits limits) {
  if (read(key) == nullptr) {
    missing(key, limits.words() == "a finite number" ? "a number" : limits.words());
    return 0.0;
  }
  return number(key, 0.0, limits);
}

std::int64_t Settings::integer(std::string_view key, std::int64_t fallback, std::int64_t low,
                               std::int64_t high) {
  const auto* value = read(key);
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
    problem(key, fmt::format("is {}, but must be {}", describe(*value), range));
    return fallback;
  }
  return whole;
}

bool Settings::flag(std::string_view key, bool fallback) {
  const auto* value = read(key);
  if (value == nullptr) return fallback;
  if (const auto* found = std::get_if<bool>(&value->data)) return *found;
  problem(key, fmt::format("is {}, but must be true or false", describe(*value)));
  return fallback;
}

std::string Settings::text(std::string_view key, std::string_view fallback) {
  const auto* value = read(key);
  if (value == nullptr) return std::string(fallback);
  if (const auto* found = std::get_if<std::string>(&value->data)) return *found;
  problem(key, fmt::format("is {}, but must be a text in quotes", describe(*value)));
  return std::string(fallback);
}

std::string Settings::text(std::string_view key) {
  if (read(key) == nullptr) {
    missing(key, "a text in quotes");
    return {};
  }
  return text(key, "");
}

std::string Settings::choice(std::string_view key, std::string_view fallback,
                             const std::vector<std::string>& choices) {
  const std::string found = text(key, fallback);
  if (std::find(choices.begin(), choices.end(), found) != choices.end()) return found;
  problem(key,
          fmt::format("is \"{}\", but must be one of {}", found, candidates_for(found, choices)));
  return std::string(fallback);
}

std::vector<double> Settings::numbers(std::string_view key, std::vector<double> fallback,
                                      Limits limits) {
  const auto* value = read(key);
  if (value == nullptr) return fallback;
  const auto* array = std::get_if<SettingValue::Array>(&value->data);
  if (array == nullptr) {
    problem(key, fmt::format("is {}, but must be a list of numbers", describe(*value)));
    return fallback;
  }
  std::vector<double> out;
  for (std::size_t i = 0; i < array->size(); ++i) {
    const auto found = as_number((*array)[i]);
    if (!found || !std::isfinite(*found) || !limits.contains(*found)) {
      problem(fmt::format("{}[{}]", key, i),
              fmt::format("is {}, but must be {}", describe((*array)[i]),
                          found ? limits.words() : "a number"));
      return fallback;
    }
    out.push_back(*found);
  }
  return out;
}

std::vector<std::size_t> Settings::whole_numbers(std::string_view key,
                                                 std::vector<std::size_t> fallback, Limits limits) {
  const auto values = numbers(key, {fallback.begin(), fallback.end()}, limits);
  std::vector<std::size_t> out;
  for (const double value : values) {
    if (value != std::floor(value))
      problem(fmt::format("{}[{}]", key, out.size()),
              fmt::format("is {}, but must be a whole number", value));
    out.push_back(static_cast<std::size_t>(value));
  }
  return out;
}

std::vector<std::string> Settings::texts(std::string_view key, std::vector<std::string> fallback) {
  const auto* value = read(key);
  if (value == nullptr) return fallback;
  const auto* array = std::get_if<SettingValue::Array>(&value->data);
  if (array == nullptr) {
    problem(key, fmt::format("is {}, but must be a list of texts", describe(*value)));
    return fallback;
  }
  std::vector<std::string> out;
  for (const auto& element : *array) {
    const auto* found = std::get_if<std::string>(&element.data);
    if (found == nullptr) {
      problem(key, fmt::format("contains {}, but must be a list of texts", describe(element)));
      return fallback;
    }
    out.push_back(*found);
  }
  return out;
}

std::vector<std::vector<double>> Settings::rows(std::string_view key) {
  const auto* value = read(key);
  if (value == nullptr) {
    missing(key, "a list of rows of numbers");
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
      problem(key, fmt::format("has {} values in row {}, but {} in the first", out.back().size(), i,
                               out.front().size()));
      return {};
    }
  }
  if (fits) return out;
  problem(key,
          fmt::format("is {}, but must be a list of rows of finite numbers", describe(*value)));
  return {};
}

std::optional<std::variant<double, std::string>> Settings::number_or_text(std::string_view key) {
  const auto* value = read(key);
  if (value == nullptr) return std::nullopt;
  if (const auto found = as_number(*value); found && std::isfinite(*found)) return *found;
  if (const auto* found = std::get_if<std::string>(&value->data)) return *found;
  problem(key, fmt::format("is {}, but must be a finite number or a formula in quotes",
                           describe(*value)));
  return std::nullopt;
}

std::vector<std::variant<double, std::string>> Settings::numbers_or_texts(std::string_view key) {
  const auto* value = read(key);
  if (value == nullptr) return {};
  const auto* array = std::get_if<SettingValue::Array>(&value->data);
  if (array == nullptr) {
    problem(key, fmt::format("is {}, but must be a list of numbers or formulas", describe(*value)));
    return {};
  }
  std::vector<std::variant<double, std::string>> out;
  for (const auto& element : *array) {
    if (const auto found = as_number(element); found && std::isfinite(*found)) {
      out.emplace_back(*found);
    } else if (const auto* formula = std::get_if<std::string>(&element.data)) {
      out.emplace_back(*formula);
    } else {
      problem(key, fmt::format("contains {}, but must be a list of numbers or formulas",
                               describe(element)));
      return {};
    }
  }
  return out;
}

std::vector<std::vector<std::variant<double, std::string>>> Settings::lists_of_numbers_or_texts(
    std::string_view key) {
  const auto* value = read(key);
  if (value == nullptr) return {};
  const auto* array = std::get_if<SettingValue::Array>(&value->data);
  if (array == nullptr) {
    problem(key, fmt::format("is {}, but must be a list of lists", describe(*value)));
    return {};
  }
  std::vector<std::vector<std::variant<double, std::string>>> out;
  for (std::size_t i = 0; i < array->size(); ++i) {
    const auto* row = std::get_if<SettingValue::Array>(&(*array)[i].data);
    if (row == nullptr) {
      problem(key, fmt::format("contains {}, but must be a list of lists", describe((*array)[i])));
      return {};
    }
    out.emplace_back();
    for (const auto& element : *row) {
      if (const auto found = as_number(element); found && std::isfinite(*found)) {
        out.back().emplace_back(*found);
      } else if (const auto* formula = std::get_if<std::string>(&element.data)) {
        out.back().emplace_back(*formula);
      } else {
        problem(key, fmt::format("contains {} in list {}, but must be lists of numbers or formulas",
                                 describe(element), i));
        return {};
      }
    }
  }
  return out;
}

bool Settings::is_table(std::string_view key) const {
  const auto* value = find(key);
  return value != nullptr && std::holds_alternative<SettingValue::Table>(value->data);
}

bool Settings::is_text(std::string_view key) const {
  const auto* value = find(key);
  return value != nullptr && std::holds_alternative<std::string>(value->data);
}

Settings Settings::table(std::string_view key) {
  static const SettingValue empty{SettingValue::Table{}, 0};
  const auto* value = read(key);
  if (value != nullptr && !std::holds_alternative<SettingValue::Table>(value->data)) {
    problem(key,
            fmt::format("is {}, but must be a table such as {{ key = value }}", describe(*value)));
    value = nullptr;
  }
  return {shared_, value != nullptr ? value : &empty, join_path(path_, key)};
}

std::vector<Settings> Settings::tables(std::string_view key) {
  const auto* value = read(key);
  if (value == nullptr) return {};
  const auto* array = std::get_if<SettingValue::Array>(&value->data);
  std::vector<Settings> out;
  bool fits = array != nullptr;
  for (std::size_t i = 0; fits && i < array->size(); ++i) {
    const auto& element = (*array)[i];
    fits = std::holds_alternative<SettingValue::Table>(element.data);
    shared_->read.insert(&element);
    out.push_back({shared_, &element, fmt::format("{}[{}]", join_path(path_, key), i)});
  }
  if (fits) return out;
  problem(key, fmt::format("is {}, but must be a list of tables", describe(*value)));
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
