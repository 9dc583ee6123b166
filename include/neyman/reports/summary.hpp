#pragma once

#include <string>

#include "neyman/reports/results.hpp"

namespace neyman::reports {

/// The results in some fifteen lines for a terminal, none wider than 80 columns, with ANSI colours
/// if wanted.
std::string summary(const Results& results, bool colour);

/// The diagnostics alone, with their notes, and the warnings; as wide at most.
std::string checks_table(const Results& results);

}  // namespace neyman::reports
