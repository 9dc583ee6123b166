#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// Texts that come from outside, in messages.
namespace neyman {

struct Utf8Character {
  char32_t code;
  std::size_t bytes;  ///< at least 1
  bool valid;
};

/// The character at the start of a text that is not empty. A byte that begins none (also of an
/// overlong form or a surrogate) is a character of its own that is not valid.
Utf8Character decode_utf8(std::string_view text);

/// A text as a terminal may show it: control characters, with which a name could move the cursor,
/// hide lines or change the title, and bytes that are not UTF-8 are written as \x1b. Line ends and
/// tabs stay.
std::string printable(std::string_view text);

/// Whether a name holds a character that `printable` would write otherwise, or a line end or a tab.
bool has_control_characters(std::string_view name);

/// A text of at most so many bytes, cut between characters and with "…" where something was left
/// out.
std::string shortened(std::string_view text, std::size_t most = 60);

/// Names for a message, at most ten of them and each shortened: "x0, x1, … and 990 others".
std::string list_names(const std::vector<std::string>& names, std::string_view separator = ", ");

}  // namespace neyman
