#pragma once

#include <string>

namespace neyman::cli {

/// Makes the folder and refuses one in which results.json could not be written: a run should not
/// end with results that have no place.
/// @throw FileError
void prepare_output_folder(const std::string& folder);

}  // namespace neyman::cli
