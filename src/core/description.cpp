#include "neyman/core/description.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace neyman {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::string type_words(const KeyDescription::Shape& shape) {
  using Type = KeyDescription::Type;
  const bool one = shape.lists == 0;
  switch (shape.type) {
    case Type::number:
      return one ? "a number" : "numbers";
    case Type::whole:
      return one ? "a whole number" : "whole numbers";
    case Type::flag:
      return "true or false";
    case Type::text:
      return one ? "a text" : "texts";
    case Type::choice:
      return fmt::format("{}\"{}\"",
                         shape.choices.size() == 1 ? ""
                         : one                     ? "one of "
                                                   : "any of ",
                         fmt::join(shape.choices, "\", \""));
    case Type::formula:
      return one ? "a number or formula" : "numbers or formulas";
    case Type::table:
      return one ? "a table" : "tables";
  }
  return {};
}

}  // namespace

Limits Limits::any() { return {-infinity, infinity, true, true}; }
Limits Limits::positive() { return {0.0, infinity, true, true}; }
Limits Limits::non_negative() { return {0.0, infinity, false, true}; }
Limits Limits::above(double low) { return {low, infinity, true, true}; }
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

std::string KeyDescription::Shape::words() const {
  std::string out = type_words(*this);
  if (lists > 0) {
    if (size > 0) out = fmt::format("{} {}", size, out);
    out = (lists == 1 ? "a list of " : "a list of lists of ") + out;
  }
  if (limits.low > -infinity || limits.high < infinity) out += ", " + limits.words();
  return out;
}

const KeyDescription* TableDescription::find(std::string_view name) const {
  const auto at =
      std::find_if(keys.begin(), keys.end(), [&](const auto& key) { return key.name == name; });
  return at == keys.end() ? nullptr : &*at;
}

}  // namespace neyman
