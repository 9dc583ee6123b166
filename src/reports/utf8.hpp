#pragma once

#include <cstddef>
#include <string_view>

namespace neyman::reports {

struct Utf8Character {
  char32_t code;
  std::size_t bytes;  ///< at least 1
  bool valid;
};

/// The character at the start of a text that is not empty. A byte that begins none (also of an
/// overlong form or a surrogate) is a character of its own that is not valid.
Utf8Character decode_utf8(std::string_view text);

/// Combining marks and characters that take no room.
bool takes_no_column(char32_t code);

}  // namespace neyman::reports
