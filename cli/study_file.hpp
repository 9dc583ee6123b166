#pragma once

#include <string>

#include "neyman/pipeline/study.hpp"

namespace neyman::cli {

/// Reads a study.
/// @throw AdvisedError, with what to do next, where there is none.
Study open_study(const std::string& path);

}  // namespace neyman::cli
