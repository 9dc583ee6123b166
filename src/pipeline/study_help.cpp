#include "neyman/pipeline/study_help.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/pipeline/study.hpp"

namespace neyman {

namespace {

using Json = nlohmann::ordered_json;
using Type = KeyDescription::Type;

/// A table of values by parameter, such as a point: its own line says all.
bool is_point(const TableDescription& table) {
  const auto* any = table.find(Settings::any_name);
  return any != nullptr && any->table == nullptr;
}

/// Whether the values of such a table are ranges.
bool of_ranges(const TableDescription& table) {
  const auto& shapes = table.find(Settings::any_name)->shapes;
  return shapes.size() == 1 && shapes[0].type == Type::number && shapes[0].lists == 1 &&
         shapes[0].size == 2;
}

/// Tables whose only keys are those of their kind are all alike.
bool only_a_kind(const TableDescription& table) {
  return table.kinds.size() == 1 && table.keys.size() == 1;
}

struct Topic : StudyTopic {
  const TableDescription* table;
};

/// The description of the study file by topics.
class Topics {
 public:
  Topics() : study_(describe_study_file()) {
    for (const auto& section : study_.root.keys) {
      const auto* entry = section.table->find(Settings::any_name);  // [parameters]
      add(section.name, section.meaning,
          entry != nullptr && entry->table != nullptr ? *entry->table : *section.table);
    }
  }

  const std::vector<Topic>& all() const { return topics_; }
  const Description& study() const { return study_; }

  /// The topics that a name, or the end of one, stands for.
  std::vector<Topic> find(const std::string& name) const {
    std::vector<Topic> out;
    std::vector<std::string> near;  // where nothing is found: in the same section, or ends of names
    const auto section = name.substr(0, name.find('.'));
    for (const auto& topic : topics_) {
      if (topic.name == name) return {topic};
      const auto end = topic.name.substr(topic.name.rfind('.') + 1);
      if (end == name) out.push_back(topic);
      if (section != name && !topic.name.starts_with(section + ".")) continue;
      const auto& candidate = section != name ? topic.name : end;
      if (std::find(near.begin(), near.end(), candidate) == near.end()) near.push_back(candidate);
    }
    if (out.empty()) throw ArgumentError("help: " + unknown_name(name, "a topic", near));
    return out;
  }

  /// The names of the kinds that are told about at a topic.
  std::vector<std::string> kinds_at(const Topic& topic) const {
    std::vector<std::string> out;
    for (const auto& of : topic.table->kinds)
      if (place_of_kinds_.at(of.topic) == topic.name)
        for (const auto& kind : study_.kinds.at(of.topic)) out.push_back(kind.name);
    return out;
  }

  /// Where a table is told about; empty where its own line says all.
  std::string place_of(const TableDescription& table) const {
    for (const auto& topic : topics_)
      if (topic.table == &table) return topic.name;
    return table.kinds.empty() ? std::string() : place_of_kinds(table.kinds.front().topic);
  }
  const std::string& place_of_kinds(const std::string& topic) const {
    return place_of_kinds_.at(topic);
  }

 private:
  void add(const std::string& name, const std::string& meaning, const TableDescription& table,
           bool is_kind = false) {
    const bool nested = name.find('.') != name.npos;
    if (nested && is_point(table)) return;
    if (only_a_kind(table) && place_of_kinds_.contains(table.kinds.front().topic)) return;
    topics_.push_back({{name, meaning, is_kind}, &table});
    for (const auto& of : table.kinds)
      if (place_of_kinds_.emplace(of.topic, name).second)
        for (const auto& kind : study_.kinds.at(of.topic))
          add(fmt::format("{}.{}", name, kind.name), kind.meaning, kind.table, true);
    for (const auto& key : table.keys)
      if (key.table != nullptr) add(fmt::format("{}.{}", name, key.name), key.meaning, *key.table);
  }

  Description study_;
  std::vector<Topic> topics_;
  std::map<std::string, std::string> place_of_kinds_;  // by the topic of their list
};

std::string type_of(const KeyDescription& key, const Topics& topics) {
  std::string out, place;
  for (const auto& shape : key.shapes) {
    const bool point = shape.type == Type::table && is_point(*key.table);
    out += fmt::format("{}{}{}", out.empty() ? "" : ", or ", shape.words(),
                       !point                  ? ""
                       : of_ranges(*key.table) ? " of ranges"
                                               : " of parameter values");
    if (shape.type == Type::table && !point) place = topics.place_of(*key.table);
  }
  return place.empty() ? out : fmt::format("{}: see {}", out, place);
}

std::size_t columns_of(const std::string& text) {  // of UTF-8
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/// Words in lines of at most 80 columns, all but the first indented.
std::string wrapped(const std::string& text, std::size_t indent) {
  constexpr std::size_t width = 80;
  std::string out;
  std::size_t column = indent;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(' ', at), text.size());
    const auto word = text.substr(at, end - at);
    const bool first = column == indent;
    if (!first && column + 1 + columns_of(word) > width) {
      out += fmt::format("\n{:{}}", "", indent);
      column = indent;
    } else if (!first) {
      out += " ";
      ++column;
    }
    out += word;
    column += columns_of(word);
    at = end + 1;
  }
  return out + "\n";
}

std::string topic_text(const Topic& topic, const Topics& topics) {
  constexpr std::size_t indent = 21;
  std::string out = wrapped(fmt::format("{}: {}", topic.name, topic.meaning), 0);
  for (const auto& key : topic.table->keys) {
    auto type = type_of(key, topics);
    if (key.required)
      type += "; required";
    else if (!key.fallback.empty())
      type += "; default " + key.fallback;
    out += fmt::format("\n  {:<{}}{}", key.name, indent - 2, wrapped(type, indent));
    out += fmt::format("{:{}}{}", "", indent, wrapped(key.meaning, indent));
  }
  if (topic.table->keys.empty()) out += "\nIt has no keys of its own.\n";
  if (!topic.table->kinds.empty()) {
    const auto& of = topic.table->kinds.back();
    out += fmt::format("\nEach kind has keys of its own: neyman help {}.{}\n",
                       topics.place_of_kinds(of.topic),
                       topics.study().kinds.at(of.topic).front().name);
  }
  return out;
}

std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

/// The anchor of a heading with a topic's name, as GitHub makes it.
std::string anchor_of(std::string name) {
  std::erase(name, '.');
  return name;
}

std::string topic_markdown(const Topic& topic, const Topics& topics) {
  auto meaning = topic.meaning;
  meaning[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(meaning[0])));
  std::string out =
      fmt::format("\n{} `{}`\n\n{}.\n", topic.is_kind ? "###" : "##", topic.name, meaning);
  if (!topic.table->keys.empty())
    out += "\n| key | type | default | |\n| --- | --- | --- | --- |\n";
  for (const auto& key : topic.table->keys) {
    auto type = cell(type_of(key, topics));
    if (const auto at = type.find(": see "); at != type.npos) {
      const auto place = type.substr(at + 6);
      type = fmt::format("{}: see [`{}`](#{})", type.substr(0, at), place, anchor_of(place));
    }
    out += fmt::format("| `{}` | {} | {} | {} |\n", key.name, type,
                       key.required           ? "required"
                       : key.fallback.empty() ? ""
                                              : fmt::format("`{}`", cell(key.fallback)),
                       cell(key.meaning));
  }
  return out;
}

/// JSON Schema: draft 7 closes a table only as a whole, so that there is one alternative with all
/// keys for each kind.
class Schema {
 public:
  explicit Schema(const Topics& topics) : topics_(topics) {}

  Json whole() {
    Json out = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                {"title", "A study of neyman"}};
    out.update(of_table(topics_.study().root));
    out["definitions"] = definitions_;
    return out;
  }

 private:
  Json of_shape(const KeyDescription& key, const KeyDescription::Shape& shape) {
    Json out;
    switch (shape.type) {
      case Type::number:
        out["type"] = "number";
        break;
      case Type::whole:
        out["type"] = "integer";  // 1e6 is one
        break;
      case Type::flag:
        out["type"] = "boolean";
        break;
      case Type::text:
        out["type"] = "string";
        break;
      case Type::choice:
        out["enum"] = shape.choices;
        break;
      case Type::formula:
        out["type"] = {"number", "string"};
        break;
      case Type::table:
        out = of_table(*key.table);
        if (key.required && key.table->find(Settings::any_name) != nullptr && !is_point(*key.table))
          out["minProperties"] = 1;
        break;
    }
    const auto& [low, high, low_open, high_open] = shape.limits;
    if (std::isfinite(low)) out[low_open ? "exclusiveMinimum" : "minimum"] = low;
    if (std::isfinite(high)) out[high_open ? "exclusiveMaximum" : "maximum"] = high;
    for (int list = 0; list < shape.lists; ++list) {
      out = {{"type", "array"}, {"items", out}};
      if (list == 0 && shape.size > 0) out["minItems"] = out["maxItems"] = shape.size;
    }
    if (shape.lists > 0 && key.required && !out.contains("minItems")) out["minItems"] = 1;
    return out;
  }

  Json of_key(const KeyDescription& key) {
    Json out;
    if (key.shapes.size() == 1)
      out = of_shape(key, key.shapes.front());
    else
      for (const auto& shape : key.shapes) out["anyOf"].push_back(of_shape(key, shape));
    if (out.contains("$ref"))
      out = {{"allOf", Json::array({out})}};  // what is beside it is ignored
    out["description"] = key.meaning;
    if (!key.fallback.empty()) out["default"] = Json::parse(key.fallback);
    return out;
  }

  void add_keys(const TableDescription& table, Json& out) {
    for (const auto& key : table.keys) {
      if (key.name == Settings::any_name) {
        out["additionalProperties"] = of_key(key);
        continue;
      }
      out["properties"][key.name] = of_key(key);
      if (key.required) out["required"].push_back(key.name);
    }
  }

  Json of_table(const TableDescription& table) {
    if (table.kinds.empty()) {
      Json out = {{"type", "object"}, {"additionalProperties", false}};
      add_keys(table, out);
      return out;
    }
    const auto name =
        only_a_kind(table) ? "any-" + table.kinds.front().topic : topics_.place_of(table);
    if (!definitions_.contains(name)) {
      definitions_[name] = nullptr;  // mixtures of mixtures
      definitions_[name] = by_kind(table);
    }
    return {{"$ref", "#/definitions/" + name}};
  }

  Json by_kind(const TableDescription& table) {
    Json out;
    for (const auto& of : table.kinds)
      for (const auto& kind : topics_.study().kinds.at(of.topic)) {
        Json one = {{"type", "object"}, {"additionalProperties", false}};
        add_keys(table, one);
        add_keys(kind.table, one);
        one["title"] = kind.meaning;
        one["properties"]["kind"] = {{"const", kind.name}, {"description", kind.meaning}};
        auto& required = one["required"];
        if (kind.name != of.fallback &&
            std::find(required.begin(), required.end(), "kind") == required.end())
          required.push_back("kind");
        if (required.is_null()) one.erase("required");
        out["anyOf"].push_back(std::move(one));
      }
    return out;
  }

  const Topics& topics_;
  Json definitions_ = Json::object();
};

}  // namespace

std::vector<StudyTopic> study_topics() {
  const Topics topics;
  return {topics.all().begin(), topics.all().end()};
}

std::string study_overview() {
  constexpr std::size_t indent = 32;
  const Topics topics;
  std::string out;
  for (const auto& topic : topics.all()) {
    if (topic.is_kind) continue;
    out += fmt::format("  {:<{}}{}", topic.name, indent - 2, wrapped(topic.meaning, indent));
    if (const auto kinds = topics.kinds_at(topic); !kinds.empty())
      out += "    " + wrapped(fmt::format("{}", fmt::join(kinds, ", ")), 4);
  }
  return out;
}

std::string study_help(const std::string& name) {
  const Topics topics;
  std::string out;
  for (const auto& topic : topics.find(name))
    out += fmt::format("{}{}", out.empty() ? "" : "\n", topic_text(topic, topics));
  return out;
}

std::string study_reference() {
  const Topics topics;
  std::string out =
      "# All keys of the study file\n\n"
      "Made by `neyman help --reference` from the calls that read the keys, and not to be edited.\n"
      "[The study file](study.md) tells how they go together.\n";
  for (const auto& topic : topics.all()) out += topic_markdown(topic, topics);
  return out;
}

std::string study_schema() { return Schema(Topics()).whole().dump(2) + "\n"; }

}  // namespace neyman
