#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parameters.hpp"
#include "neyman/core/settings.hpp"

namespace neyman::python {

/// A dict as the tree that a study file becomes. Entries that are None are left out.
/// @throw ArgumentError that names the entry which is no number, text, list or mapping.
SettingValue::Table to_settings(py::handle mapping, const char* function);
/// The reverse.
py::dict to_dict(const SettingValue::Table& table);

/// Parameters as Python's entries of them (neyman.core); the ends of their ranges may be anything.
std::vector<Parameter> parameters_from(const std::vector<py::dict>& entries);

/// Makes something from settings that a call gave: problems with them are problems of arguments,
/// "Mlp: hidden[0] is -3, but must be positive".
template <class Make>
auto from_arguments(const std::string& function, Settings settings, Make&& make) {
  auto made = make(settings);
  settings.refuse_unread();
  if (!settings.problems().empty()) {
    std::string text = function + ": ";
    for (const auto& problem : settings.problems()) {
      if (&problem != &settings.problems().front()) text += "; ";
      text += problem.key + (problem.key.empty() ? "" : " ") + problem.message;
    }
    throw ArgumentError(text);
  }
  return made;
}

}  // namespace neyman::python
