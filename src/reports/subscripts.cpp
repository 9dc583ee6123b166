#include "reports/subscripts.hpp"

#include <algorithm>

#include "reports/utf8.hpp"

namespace neyman::reports {

namespace {

bool is_letter_or_digit(char32_t code) {
  return (code >= U'0' && code <= U'9') || (code >= U'A' && code <= U'Z') ||
         (code >= U'a' && code <= U'z') || (code >= U'Α' && code <= U'ω');
}

/// A letter that takes an index, or CL; how many bytes. Hats and bars belong to their letter.
std::size_t head_at(std::string_view text) {
  if (text.starts_with("CL_")) return 2;
  const Utf8Character first = decode_utf8(text);
  if (!is_letter_or_digit(first.code) || (first.code >= U'0' && first.code <= U'9')) return 0;
  std::size_t bytes = first.bytes;
  while (bytes < text.size()) {
    const Utf8Character next = decode_utf8(text.substr(bytes));
    if (next.code < 0x300 || next.code > 0x36f) break;
    bytes += next.bytes;
  }
  return bytes;
}

/// The length of "_jet_scale" at the start of a text, 0 where there is no index. After a Latin
/// letter it is short: "x_1" and "m_top", but not "a_long_name".
std::size_t index_at(std::string_view text, bool latin) {
  constexpr std::size_t longest = 5;
  const auto plain = [&](std::size_t at) {
    return at < text.size() && static_cast<unsigned char>(text[at]) < 0x80 &&
           is_letter_or_digit(static_cast<char32_t>(text[at]));
  };
  std::size_t end = 0;
  while (end < text.size() && text[end] == '_' && plain(end + 1))
    for (++end; plain(end); ++end) {
    }
  // "x_0.csv", "a_b/c", "f_(": names of another kind.
  if (end < text.size() && (text[end] == '/' || text[end] == '_' || text[end] == '(')) return 0;
  if (end + 1 < text.size() && text[end] == '.' && plain(end + 1)) return 0;
  if (latin && end > 0 && (end > longest || text.substr(0, end).rfind('_') > 0)) return 0;
  return end;
}

}  // namespace

std::vector<TextPiece> text_pieces(std::string_view text) {
  std::vector<TextPiece> out;
  const auto add = [&](std::string_view part, bool low) {
    if (out.empty() || out.back().low != low || low) out.push_back({"", low});
    out.back().text += part;
  };
  bool inside = false;  // a word, a path
  while (!text.empty()) {
    const std::size_t head = inside ? 0 : head_at(text);
    const bool latin = head == 1;
    const std::size_t index = head > 0 ? index_at(text.substr(head), latin) : 0;
    // As it is written where nothing can stand below the line.
    if (!inside && text.starts_with("CLs") &&
        (text.size() == 3 || !is_letter_or_digit(decode_utf8(text.substr(3)).code))) {
      add("CL", false);
      add("s", true);
      text.remove_prefix(3);
      inside = true;
      continue;
    }
    if (index > 0) {
      std::string low(text.substr(head + 1, index - 1));
      std::replace(low.begin(), low.end(), '_', ' ');
      add(text.substr(0, head), false);
      add(low, true);
      text.remove_prefix(head + index);
      inside = true;
      continue;
    }
    const Utf8Character next = decode_utf8(text);
    inside = is_letter_or_digit(next.code) || next.code == U'_' || next.code == U'/' ||
             next.code == U'.' || next.code == U'-';
    add(text.substr(0, next.bytes), false);
    text.remove_prefix(next.bytes);
  }
  return out;
}

}  // namespace neyman::reports
