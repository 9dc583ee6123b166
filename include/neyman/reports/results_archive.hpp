#pragma once

#include "neyman/core/archive.hpp"
#include "neyman/reports/results.hpp"

namespace neyman {

/// Puts results into a tree, from which they come back with the same bits: what a run keeps
/// between its stages.
void save_results(const Results& results, Archive& archive);
/// @throw FileError where an entry is absent or of another type.
Results load_results(const Archive& archive);

}  // namespace neyman
