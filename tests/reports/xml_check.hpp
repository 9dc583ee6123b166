#pragma once

#include <cctype>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace neyman::reports::testing {

struct Element {
  std::string name, text;
  std::map<std::string, std::string> attributes;
};

/// The elements of a well-formed XML text in the order of their start tags, each with the text
/// directly inside it. Throws on tags that do not match, attributes without quotes or given
/// twice, bare & and <, and anything after the root element.
inline std::vector<Element> parse_xml(std::string_view xml) {
  std::vector<Element> elements;
  std::vector<std::size_t> open;
  bool root_closed = false;
  const auto fail = [&](std::string_view what, std::size_t at) {
    throw std::runtime_error(std::string(what) + " near: " + std::string(xml.substr(at, 60)));
  };
  const auto check_references = [&](std::string_view text, std::size_t at) {
    for (std::size_t i = text.find('&'); i != text.npos; i = text.find('&', i + 1)) {
      const std::string_view name = text.substr(i + 1, text.find(';', i) - i - 1);
      if (name != "amp" && name != "lt" && name != "gt" && name != "quot" && name != "#39")
        fail("bad reference", at);
    }
  };
  std::size_t at = 0;
  if (xml.starts_with("<!DOCTYPE html>")) at = 15;
  while (at < xml.size()) {
    if (xml[at] != '<') {
      const std::size_t end = std::min(xml.find('<', at), xml.size());
      const std::string_view text = xml.substr(at, end - at);
      check_references(text, at);
      if (open.empty() && text.find_first_not_of(" \n\t") != text.npos) fail("text outside", at);
      if (!open.empty()) elements[open.back()].text += text;
      at = end;
      continue;
    }
    // A quoted value may contain '>'.
    std::size_t end = at;
    for (char quote = 0; end < xml.size() && (quote != 0 || xml[end] != '>'); ++end) {
      if (quote == 0 && (xml[end] == '"' || xml[end] == '\''))
        quote = xml[end];
      else if (xml[end] == quote)
        quote = 0;
    }
    if (end >= xml.size()) fail("tag not closed", at);
    std::string_view inside = xml.substr(at + 1, end - at - 1);
    if (inside.starts_with('/')) {
      if (open.empty() || elements[open.back()].name != inside.substr(1)) fail("wrong end tag", at);
      open.pop_back();
      root_closed = open.empty();
      at = end + 1;
      continue;
    }
    if (root_closed) fail("second root", at);
    const bool empty = inside.ends_with('/');
    if (empty) inside.remove_suffix(1);
    Element element;
    std::size_t i = 0;
    while (i < inside.size() && !std::isspace(static_cast<unsigned char>(inside[i])))
      element.name += inside[i++];
    if (element.name.empty()) fail("tag without name", at);
    for (;;) {
      while (i < inside.size() && std::isspace(static_cast<unsigned char>(inside[i]))) ++i;
      if (i >= inside.size()) break;
      const std::size_t equals = inside.find('=', i);
      if (equals == inside.npos || equals + 1 >= inside.size()) fail("attribute without value", at);
      const std::string name(inside.substr(i, equals - i));
      const char quote = inside[equals + 1];
      if (quote != '"' && quote != '\'') fail("value without quotes", at);
      const std::size_t shut = inside.find(quote, equals + 2);
      if (shut == inside.npos) fail("quote not closed", at);
      const std::string_view value = inside.substr(equals + 2, shut - equals - 2);
      check_references(value, at);
      if (value.find('<') != value.npos) fail("bare <", at);
      if (!element.attributes.emplace(name, value).second) fail("attribute twice", at);
      i = shut + 1;
    }
    elements.push_back(std::move(element));
    if (!empty) open.push_back(elements.size() - 1);
    if (empty && open.empty()) root_closed = true;
    at = end + 1;
  }
  if (!open.empty()) throw std::runtime_error("element not closed: " + elements[open.back()].name);
  if (elements.empty()) throw std::runtime_error("no element");
  return elements;
}

inline std::size_t count(const std::vector<Element>& elements, std::string_view name) {
  std::size_t found = 0;
  for (const auto& element : elements) found += element.name == name ? 1 : 0;
  return found;
}

inline std::vector<std::string> ids(const std::vector<Element>& elements) {
  std::vector<std::string> out;
  for (const auto& element : elements)
    if (const auto found = element.attributes.find("id"); found != element.attributes.end())
      out.push_back(found->second);
  return out;
}

}  // namespace neyman::reports::testing
