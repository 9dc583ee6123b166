#include "reports/utf8.hpp"

namespace neyman::reports {

Utf8Character decode_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t bytes = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (lead < 0xc2 || lead > 0xf4 || bytes > text.size()) return {lead, 1, false};
  char32_t code = lead & (0xffu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0u) != 0x80u) return {lead, 1, false};
    code = (code << 6) | (byte(i) & 0x3fu);
  }
  const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (overlong || surrogate || code > 0x10ffff) return {lead, 1, false};
  return {code, bytes, true};
}

bool takes_no_column(char32_t code) {
  return (code >= 0x300 && code <= 0x36f) || (code >= 0x20d0 && code <= 0x20ff) ||
         (code >= 0x200b && code <= 0x200f) || code == 0xfeff;
}

}  // namespace neyman::reports
