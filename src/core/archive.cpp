#include "neyman/core/archive.hpp"

#include <fmt/format.h>

#include "neyman/core/error.hpp"

namespace neyman {

void Archive::set(std::string_view key, Value value) {
  values_.insert_or_assign(std::string(key), std::move(value));
}

bool Archive::has(std::string_view key) const { return values_.find(key) != values_.end(); }

const Archive::Value& Archive::at(std::string_view key) const {
  const auto found = values_.find(key);
  if (found == values_.end())
    throw FileError(fmt::format("archive: entry {}/{} is missing", path_, key));
  return found->second;
}

void Archive::wrong_type(std::string_view key) const {
  throw FileError(fmt::format("archive: entry {}/{} has the wrong type", path_, key));
}

Archive& Archive::child(std::string_view name) {
  const auto found = children_.find(name);
  if (found != children_.end()) return found->second;
  Archive& made = children_[std::string(name)];
  made.path_ = path_ + "/" + std::string(name);
  return made;
}

const Archive& Archive::child(std::string_view name) const {
  const auto found = children_.find(name);
  if (found == children_.end())
    throw FileError(fmt::format("archive: group {}/{} is missing", path_, name));
  return found->second;
}

bool Archive::has_child(std::string_view name) const {
  return children_.find(name) != children_.end();
}

}  // namespace neyman
