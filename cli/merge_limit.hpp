#pragma once

#include <optional>
#include <string>
#include <vector>

#include "commands.hpp"

namespace neyman::cli {

/// Finishes `neyman limit --part`: takes the toys from the files of all parts (empty: those beside
/// the workspace). Returns the exit status.
int merge_limit(const std::string& workspace, std::vector<std::string> parts,
                const std::optional<std::string>& out, const Talk& talk);

}  // namespace neyman::cli
