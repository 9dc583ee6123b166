#include "neyman/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace neyman {

namespace {

constexpr std::size_t most_names = 10;

/// Those of ASCII and of Latin-1, some of which terminals take for escape sequences.
bool is_control(const Utf8Character& c) {
  return !c.valid || c.code < 0x20 || (c.code >= 0x7f && c.code < 0xa0);
}

}  // namespace

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

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto c = decode_utf8(text);
    if (is_control(c) && c.code != '\n' && c.code != '\t')
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c.code));
    else
      out += text.substr(0, c.bytes);
    text.remove_prefix(c.bytes);
  }
  return out;
}

bool has_control_characters(std::string_view name) {
  while (!name.empty()) {
    const auto c = decode_utf8(name);
    if (is_control(c)) return true;
    name.remove_prefix(c.bytes);
  }
  return false;
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t length = most;
  // The bytes of a character but the first are 10xxxxxx.
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0u) == 0x80u) --length;
  return std::string(text.substr(0, length)) + "…";
}

std::string list_names(const std::vector<std::string>& names, std::string_view separator) {
  std::string out;
  const std::size_t shown = std::min(names.size(), most_names);
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) out += separator;
    out += shortened(names[i]);
  }
  if (shown < names.size()) {
    const std::size_t others = names.size() - shown;
    out += fmt::format("{}… and {} other{}", separator, others, others == 1 ? "" : "s");
  }
  return out;
}

}  // namespace neyman
