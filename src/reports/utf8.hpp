#pragma once

#include "neyman/core/text.hpp"

namespace neyman::reports {

/// Combining marks and characters that take no room.
bool takes_no_column(char32_t code);

}  // namespace neyman::reports
