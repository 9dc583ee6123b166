#include "neyman/reports/terminal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "neyman/core/check.hpp"
#include "reports/utf8.hpp"

namespace neyman::reports {

namespace {

constexpr std::string_view minus = "−";
constexpr std::string_view narrow_space = "\u202f";

/// The decimal exponent of a positive value after rounding to so many digits: 0.0996 with two
/// digits is 0.10, so −1.
int rounded_exponent(double value, int digits) {
  const std::string text = fmt::format("{:.{}e}", value, digits - 1);
  return std::atoi(text.c_str() + text.find('e') + 1);
}

/// Fixed notation; negative decimals round before the point. Never "−0".
std::string fixed(double value, int decimals) {
  if (decimals < 0) {
    const double unit = std::pow(10.0, -decimals);
    value = std::round(value / unit) * unit;
    decimals = 0;
  }
  std::string text = fmt::format("{:.{}f}", std::abs(value), decimals);
  const bool zero = text.find_first_not_of("0.") == std::string::npos;
  if (value < 0.0 && !zero) text.insert(0, minus);
  return text;
}

/// The power of ten to take out of numbers of this size, 0 for none.
int taken_out(double largest) {
  if (largest == 0.0) return 0;
  const int exponent = static_cast<int>(std::floor(std::log10(largest)));
  return exponent >= 6 || exponent < -4 ? exponent : 0;
}

/// value / 10^power, without the overflow of 10^power itself at the ends of the range.
double scaled(double value, int power) {
  const int half = power / 2;
  return value / std::pow(10.0, half) / std::pow(10.0, power - half);
}

void check_error(std::string_view name, double error) {
  check_finite("format_measurement", name, error);
  if (error < 0.0)
    fail_argument("format_measurement", name, fmt::format("{}", error), "not negative");
}

std::string pad(std::string_view text, std::size_t width, bool right) {
  const std::size_t have = display_width(text);
  const std::string blanks(width > have ? width - have : 0, ' ');
  return right ? blanks + std::string(text) : std::string(text) + blanks;
}

std::string repeat(std::string_view text, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += text;
  return out;
}

/// "12 k events/s", "3.4 fits/s"
std::string per_second(double rate, const std::string& unit) {
  static constexpr std::array<std::string_view, 5> powers = {"", " k", " M", " G", " T"};
  std::size_t power = 0;
  for (; rate >= 999.5 && power + 1 < powers.size(); ++power) rate /= 1000.0;
  const int decimals = rate < 0.995 ? 2 : rate < 9.95 ? 1 : 0;
  return fmt::format("{:.{}f}{} {}/s", rate, decimals, powers[power], unit);
}

/// The first `width` columns of a text.
std::string cut(std::string_view text, std::size_t width) {
  std::string out;
  std::size_t columns = 0;
  while (!text.empty()) {
    const Utf8Character character = decode_utf8(text);
    columns += takes_no_column(character.code) ? 0 : 1;
    if (columns > width) break;
    out += text.substr(0, character.bytes);
    text.remove_prefix(character.bytes);
  }
  return out;
}

}  // namespace

std::string format_measurement(double value, double error) {
  check_finite("format_measurement", "value", value);
  check_error("error", error);
  if (error == 0.0) return format_number(value, 6) + " ± 0";
  const int power = taken_out(std::max(std::abs(value), error));
  const double v = scaled(value, power), e = scaled(error, power);
  const int decimals = 1 - rounded_exponent(e, 2);
  std::string text = fixed(v, decimals) + " ± " + fixed(e, decimals);
  return power == 0 ? text : fmt::format("({}) × {}", text, power_of_ten(power));
}

std::string format_measurement(double value, double error_low, double error_high) {
  check_finite("format_measurement", "value", value);
  check_error("error_low", error_low);
  check_error("error_high", error_high);
  const double larger = std::max(error_low, error_high);
  if (larger == 0.0) return format_measurement(value, 0.0);
  const double smaller =
      std::min(error_low, error_high) > 0.0 ? std::min(error_low, error_high) : larger;
  const int power = taken_out(std::max(std::abs(value), larger));
  const double v = scaled(value, power);
  const int decimals = 1 - rounded_exponent(scaled(smaller, power), 2);
  const std::string low = fixed(scaled(error_low, power), decimals);
  const std::string high = fixed(scaled(error_high, power), decimals);
  std::string text = fixed(v, decimals);
  text += low == high ? " ± " + low : fmt::format(" +{} {}{}", high, minus, low);
  return power == 0 ? text : fmt::format("({}) × {}", text, power_of_ten(power));
}

std::string format_interval(double low, double high) {
  check_finite("format_interval", "low", low);
  check_finite("format_interval", "high", high);
  if (low > high)
    fail_argument("format_interval", "low", fmt::format("{}", low),
                  fmt::format("at most high ({})", high));
  if (low == high) return fmt::format("[{0}, {0}]", format_number(low, 6));
  const int power = taken_out(std::max(std::abs(low), std::abs(high)));
  const double a = scaled(low, power), b = scaled(high, power);
  const int decimals = 1 - rounded_exponent(0.5 * (b - a), 2);
  std::string text = fmt::format("[{}, {}]", fixed(a, decimals), fixed(b, decimals));
  return power == 0 ? text : fmt::format("{} × {}", text, power_of_ten(power));
}

std::string format_number(double value, int digits) {
  check_finite("format_number", "value", value);
  check_in_range("format_number", "digits", digits, 1, 17);
  if (value == 0.0) return "0";
  const int exponent = rounded_exponent(std::abs(value), digits);
  const int power = exponent >= 6 || exponent < -4 ? exponent : 0;
  std::string text = fixed(scaled(value, power), digits - 1 - (exponent - power));
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return power == 0 ? text : fmt::format("{} × {}", text, power_of_ten(power));
}

std::string power_of_ten(int exponent) {
  static constexpr std::array<std::string_view, 10> digits = {"⁰", "¹", "²", "³", "⁴",
                                                              "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "10⁻" : "10";
  for (const char c : std::to_string(std::abs(exponent)))
    text += digits[static_cast<std::size_t>(c - '0')];
  return text;
}

std::string format_p_value(double p) {
  check_in_range("format_p_value", "p", p, 0.0, 1.0);
  if (p < 1e-4) return "< 0.0001";
  return fixed(p, std::max(2, 1 - rounded_exponent(p, 2)));
}

std::string format_percent(double fraction, int decimals) {
  check_finite("format_percent", "fraction", fraction);
  check_in_range("format_percent", "decimals", decimals, 0, 15);
  return fixed(100.0 * fraction, decimals) + "\u00a0%";
}

std::string format_count(std::uint64_t count) {
  const std::string digits = std::to_string(count);
  if (digits.size() <= 4) return digits;
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += narrow_space;
    text += digits[i];
  }
  return text;
}

std::string format_duration(double seconds) {
  check_finite("format_duration", "seconds", seconds);
  if (seconds < 0.0)
    fail_argument("format_duration", "seconds", fmt::format("{}", seconds), "not negative");
  if (seconds == 0.0) return "0 s";
  if (seconds < 0.00995) return fmt::format("{:.1f} ms", 1e3 * seconds);
  if (seconds < 0.9995) return fmt::format("{:.0f} ms", 1e3 * seconds);
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  if (seconds < 59.5) return fmt::format("{:.0f} s", seconds);
  const double rounded = std::round(seconds);
  if (rounded < 3600.0)
    return fmt::format("{:.0f} min {:.0f} s", std::floor(rounded / 60.0), std::fmod(rounded, 60.0));
  const double minutes = std::round(seconds / 60.0);
  if (minutes < 1440.0)
    return fmt::format("{:.0f} h {:.0f} min", std::floor(minutes / 60.0), std::fmod(minutes, 60.0));
  const double hours = std::round(seconds / 3600.0);
  return fmt::format("{:.0f} d {:.0f} h", std::floor(hours / 24.0), std::fmod(hours, 24.0));
}

std::string format_bytes(std::uint64_t bytes) {
  static constexpr std::array<std::string_view, 7> units = {"B",  "kB", "MB", "GB",
                                                            "TB", "PB", "EB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.5) {
    value /= 1000.0;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, value < 9.95 ? 1 : 0, units[unit]);
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Utf8Character character = decode_utf8(text);
    if (!takes_no_column(character.code)) ++width;
    text.remove_prefix(character.bytes);
  }
  return width;
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  width = std::max<std::size_t>(width, 1);
  std::vector<std::string> lines = {""};
  while (!text.empty()) {
    const std::size_t space = text.find_first_of(" \n");
    std::string_view word = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    if (word.empty()) continue;
    const std::size_t taken = display_width(lines.back());
    if (taken > 0 && taken + 1 + display_width(word) > width) lines.emplace_back();
    if (!lines.back().empty()) lines.back() += ' ';
    while (display_width(word) > width) {
      const auto part = cut(word, width);
      lines.back() = part;
      lines.emplace_back();
      word.remove_prefix(part.size());
    }
    lines.back() += word;
  }
  return lines;
}

bool looks_numeric(std::string_view text) {
  static constexpr std::u32string_view allowed =
      U"+-−±×.,()[]<>=%eE∞⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹ \u00a0\u202f\u2009";
  bool digit = false;
  while (!text.empty()) {
    const Utf8Character character = decode_utf8(text);
    if (character.code >= U'0' && character.code <= U'9')
      digit = true;
    else if (allowed.find(character.code) == std::u32string_view::npos)
      return false;
    text.remove_prefix(character.bytes);
  }
  return digit;
}

std::string format_table(const std::vector<std::string>& columns,
                         const std::vector<std::vector<std::string>>& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    check_same_size("format_table", fmt::format("rows[{}]", i), rows[i].size(), columns.size(),
                    "one for each column");
  std::vector<std::size_t> widths;
  std::vector<bool> right;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    widths.push_back(display_width(columns[c]));
    bool numeric = !rows.empty();
    for (const auto& row : rows) {
      widths[c] = std::max(widths[c], display_width(row[c]));
      numeric = numeric && (row[c].empty() || looks_numeric(row[c]));
    }
    right.push_back(numeric);
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t c = 0; c < cells.size(); ++c)
      text += (c == 0 ? "" : "  ") + pad(cells[c], widths[c], right[c]);
    text.erase(text.find_last_not_of(' ') + 1);
    return text + '\n';
  };
  std::string text = line(columns);
  for (std::size_t c = 0; c < columns.size(); ++c)
    text += (c == 0 ? "" : "  ") + repeat("─", widths[c]);
  text += '\n';
  for (const auto& row : rows) text += line(row);
  return text;
}

std::string merit_words(const ProgressState& state) {
  std::string out;
  if (!state.unit.empty() && state.done > 0 && state.elapsed > 0.0)
    out = per_second(static_cast<double>(state.done) / state.elapsed, state.unit);
  if (state.merit.empty() || !std::isfinite(state.merit_value)) return out;
  if (!out.empty()) out += ", ";
  const bool count = state.merit_value >= 1.0 && state.merit_value == std::round(state.merit_value);
  return out + state.merit + ' ' +
         (count ? format_count(static_cast<std::uint64_t>(state.merit_value))
                : fixed(state.merit_value, 4));
}

std::string progress_line(const ProgressState& state, std::size_t width) {
  const double fraction =
      state.total == 0
          ? 0.0
          : std::clamp(static_cast<double>(state.done) / static_cast<double>(state.total), 0.0,
                       1.0);
  const std::string percent = state.total == 0
                                  ? format_count(state.done)
                                  : fmt::format("{:3.0f} %", std::floor(100.0 * fraction));
  std::string time;
  if (state.finished)
    time = format_duration(std::max(state.elapsed, 0.0));
  else if (state.remaining >= 0.0 && std::isfinite(state.remaining))
    time = format_duration(std::max(state.remaining, 1.0)) + " left";
  const std::string merit = merit_words(state);
  const std::string head = pad(state.task, 12, false);
  std::string tail = "  " + percent + "  " + pad(time, 14, false);
  // The bar gives way to the figure of merit, but that to the bar where the line is short.
  if (!merit.empty() && display_width(head + tail + merit) + 11 <= width) tail += "  " + merit;
  const std::size_t used = display_width(head) + 1 + display_width(tail);
  if (used + 8 > width)
    return cut(state.task + " " + percent + " " + time + (merit.empty() ? "" : "  ") + merit,
               width);

  // As long whatever the figures beside it.
  const std::size_t room = std::min<std::size_t>(width - used, merit.empty() ? 40 : 20);
  const auto halves = static_cast<std::size_t>(2.0 * fraction * static_cast<double>(room));
  std::string bar = repeat("━", halves / 2);
  if (halves % 2 == 1) bar += "╸";
  bar += repeat("─", room - (halves + 1) / 2);
  std::string line = head + ' ' + bar + tail;
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace neyman::reports
