#pragma once

#include <string>

namespace neyman::cli {

/// Where the results of a study go: out/ beside study.toml, out-notebook/ beside notebook.toml, so
/// that several studies share a folder; a quick run's end in -quick.
std::string default_output_folder(const std::string& study, bool quick);

/// Makes the folder and refuses one in which results.json could not be written: a run should not
/// end with results that have no place.
/// @throw FileError
void prepare_output_folder(const std::string& folder);

}  // namespace neyman::cli
