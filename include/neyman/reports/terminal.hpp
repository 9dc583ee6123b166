#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "neyman/core/progress.hpp"

// Numbers, tables and progress as text, for the command line and for reports. Nothing here
// prints. Texts are UTF-8 with a true minus sign (−), for people: programs read results.json.
namespace neyman::reports {

/// A value with its error, both rounded to the second significant digit of the error:
/// 0.04588, 0.0067 gives "0.0459 ± 0.0067"; 1234.5, 250 gives "1230 ± 250". Where the digits
/// would run far from the point, a power of ten is taken out: "(1.234 ± 0.056) × 10⁷".
/// An error of 0 leaves the value at six significant digits: "0.04588 ± 0".
/// @throw ArgumentError for a value or error that is not finite, or a negative error.
std::string format_measurement(double value, double error);
/// The same with two errors, both given as positive distances: "0.0459 +0.0067 −0.0065". The
/// smaller of the two that is not zero decides the rounding. Where both round to the same
/// digits, the symmetric form is used.
std::string format_measurement(double value, double error_low, double error_high);
/// An interval, rounded to the second digit of half its width: "[0.0393, 0.0527]".
std::string format_interval(double low, double high);

/// A number with so many significant digits, without trailing zeros: 0.0123457 with 3 digits
/// gives "0.0123"; very large and very small ones as "1.23 × 10⁻⁷".
std::string format_number(double value, int digits = 4);
/// −3 gives "10⁻³".
std::string power_of_ten(int exponent);
/// A p-value: "0.41", "0.0032", "< 0.0001".
std::string format_p_value(double p);
/// 0.683 gives "68.3 %".
std::string format_percent(double fraction, int decimals = 1);
/// 200000 gives "200 000", with narrow no-break spaces; four digits stay together.
std::string format_count(std::uint64_t count);
/// "0.4 ms", "120 ms", "1.2 s", "45 s", "3 min 4 s", "2 h 5 min", "3 d 4 h".
std::string format_duration(double seconds);
/// "512 B", "1.5 kB", "23 MB".
std::string format_bytes(std::uint64_t bytes);

/// How many columns of a terminal a UTF-8 text takes; combining marks take none.
std::size_t display_width(std::string_view text);

/// A text in lines of at most `width` columns (at least one), broken between words, and inside a
/// word only where it is longer than a line.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

/// Lines of aligned columns, two spaces apart, below a heading and a rule. Columns whose cells
/// all look like numbers are flush right. Rows must be as long as `columns`.
std::string format_table(const std::vector<std::string>& columns,
                         const std::vector<std::vector<std::string>>& rows);
/// Whether a text looks like a number, with or without error, unit of percent or parentheses.
bool looks_numeric(std::string_view text);

/// The figures of merit of a task: "12 k events/s", "loss 0.4123"; empty where it has none.
std::string merit_words(const ProgressState& state);

/// One line of at most `width` columns, without line end:
///   train      ━━━━━━━━━━╸                 42 %   3.1 s left   loss 0.4123
/// and once finished, how long it took.
std::string progress_line(const ProgressState& state, std::size_t width = 80);

}  // namespace neyman::reports
