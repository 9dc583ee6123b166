#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "neyman/core/settings.hpp"

namespace neyman {

/// Reads a TOML file into a tree of settings that know their lines. Keys keep the file's order.
/// @throw FileError where the file cannot be read.
/// @throw StudyError, with the line, where it is not valid TOML or holds a date or a time, for
///   which no setting has a use.
Settings read_settings(const std::string& path);

/// The same from text; problems name it `name`.
Settings parse_settings(std::string_view text, const std::string& name);

/// The files that a key names, with a text or a list of texts, relative to `folder`: patterns are
/// expanded (see `matching_files`). Empty where the key is absent; what cannot be is a problem.
std::vector<std::string> read_file_names(Settings& settings, Key key, const std::string& folder);

}  // namespace neyman
