#pragma once

#include <string>

#include "neyman/reports/results.hpp"

namespace neyman::reports {

/// The results in some fifteen lines for a terminal, with ANSI colours if wanted.
std::string summary(const Results& results, bool colour);

}  // namespace neyman::reports
