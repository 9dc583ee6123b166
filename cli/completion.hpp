#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace neyman::cli {

/// The word with which the scripts of `neyman completion` ask what may come next.
inline constexpr const char* completion_word = "__complete";

/// Prints what the last word may become, after the words before it: lines of a kind, a value and,
/// after tabs, what it is. All is taken from CLI11's description of the commands.
///   word <tab> --seed <tab> Use this seed instead of the study's
///   files <tab> *.toml        names of such files, and folders
///   folders
void print_candidates(const CLI::App& app, std::vector<std::string> words);

}  // namespace neyman::cli
