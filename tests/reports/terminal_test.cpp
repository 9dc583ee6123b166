#include "neyman/reports/terminal.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "neyman/core/error.hpp"
#include "not_finite.hpp"

namespace neyman::reports {
namespace {

TEST(FormatMeasurement, RoundsToTwoDigitsOfTheError) {
  EXPECT_EQ(format_measurement(0.04588, 0.0067), "0.0459 ± 0.0067");
  EXPECT_EQ(format_measurement(1.0, 0.5), "1.00 ± 0.50");
  EXPECT_EQ(format_measurement(-3.14159, 0.0271), "−3.142 ± 0.027");
  EXPECT_EQ(format_measurement(91187.6, 2.1), "91187.6 ± 2.1");
  EXPECT_EQ(format_measurement(1234.5, 250.0), "1230 ± 250");
  EXPECT_EQ(format_measurement(12345.0, 2500.0), "12300 ± 2500");
}

TEST(FormatMeasurement, ErrorThatRoundsUpToTheNextDecade) {
  EXPECT_EQ(format_measurement(1.2345, 0.0996), "1.23 ± 0.10");
  EXPECT_EQ(format_measurement(5.0, 0.997), "5.0 ± 1.0");
}

TEST(FormatMeasurement, ZeroErrorAndZeroValue) {
  EXPECT_EQ(format_measurement(0.04588, 0.0), "0.04588 ± 0");
  EXPECT_EQ(format_measurement(0.0, 0.0), "0 ± 0");
  EXPECT_EQ(format_measurement(0.0, 0.012), "0.000 ± 0.012");
}

TEST(FormatMeasurement, NeverShowsANegativeZero) {
  EXPECT_EQ(format_measurement(-0.001, 1.2), "0.0 ± 1.2");
  EXPECT_EQ(format_measurement(-4.0, 250.0), "0 ± 250");
}

TEST(FormatMeasurement, HugeAndSmallTakeAPowerOfTenOut) {
  EXPECT_EQ(format_measurement(1.2341e7, 5.6e5), "(1.234 ± 0.056) × 10⁷");
  EXPECT_EQ(format_measurement(-1.5e-7, 2e-8), "(−1.50 ± 0.20) × 10⁻⁷");
  EXPECT_EQ(format_measurement(1e300, 1e299), "(1.00 ± 0.10) × 10³⁰⁰");
  EXPECT_EQ(format_measurement(3e-310, 1e-310), "(3.0 ± 1.0) × 10⁻³¹⁰");
  EXPECT_EQ(format_measurement(1.0, 1e6), "(0.0 ± 1.0) × 10⁶");
}

TEST(FormatMeasurement, AsymmetricErrors) {
  EXPECT_EQ(format_measurement(0.04588, 0.0065, 0.0067), "0.0459 +0.0067 −0.0065");
  EXPECT_EQ(format_measurement(0.04588, 0.00672, 0.00669), "0.0459 ± 0.0067");
  EXPECT_EQ(format_measurement(0.5, 0.0, 0.12), "0.50 +0.12 −0.00");
  EXPECT_EQ(format_measurement(0.5, 0.0, 0.0), "0.5 ± 0");
  EXPECT_EQ(format_measurement(2e9, 1e8, 3e8), "(2.00 +0.30 −0.10) × 10⁹");
}

TEST(FormatMeasurement, RefusesWhatIsNotAMeasurement) {
  EXPECT_THROW(format_measurement(nan, 1.0), ArgumentError);
  EXPECT_THROW(format_measurement(1.0, nan), ArgumentError);
  EXPECT_THROW(format_measurement(infinity, 1.0), ArgumentError);
  EXPECT_THROW(format_measurement(1.0, infinity), ArgumentError);
  EXPECT_THROW(format_measurement(1.0, 0.1, nan), ArgumentError);
  try {
    format_measurement(1.0, -0.5);
    FAIL() << "a negative error passed";
  } catch (const ArgumentError& error) {
    EXPECT_STREQ(error.what(), "format_measurement: error is -0.5, but must be not negative");
  }
}

TEST(FormatInterval, RoundsBothEndsTheSame) {
  EXPECT_EQ(format_interval(0.03927, 0.05268), "[0.0393, 0.0527]");
  EXPECT_EQ(format_interval(-1.0, 2.0), "[−1.0, 2.0]");
  EXPECT_EQ(format_interval(0.25, 0.25), "[0.25, 0.25]");
  EXPECT_EQ(format_interval(1e8, 3e8), "[1.0, 3.0] × 10⁸");
  EXPECT_THROW(format_interval(2.0, 1.0), ArgumentError);
  EXPECT_THROW(format_interval(nan, 1.0), ArgumentError);
}

TEST(FormatNumber, KnownAnswers) {
  EXPECT_EQ(format_number(0.0123457, 3), "0.0123");
  EXPECT_EQ(format_number(0.5), "0.5");
  EXPECT_EQ(format_number(-12.0), "−12");
  EXPECT_EQ(format_number(0.0), "0");
  EXPECT_EQ(format_number(-0.0), "0");
  EXPECT_EQ(format_number(123456.0, 3), "123000");
  EXPECT_EQ(format_number(100.0, 4), "100");
  EXPECT_EQ(format_number(9.9999, 3), "10");
  EXPECT_EQ(format_number(1.23e-7, 3), "1.23 × 10⁻⁷");
  EXPECT_EQ(format_number(-2.5e12, 3), "−2.5 × 10¹²");
  EXPECT_THROW(format_number(nan), ArgumentError);
  EXPECT_THROW(format_number(1.0, 0), ArgumentError);
}

TEST(FormatPValue, KeepsSmallOnesApartFromZero) {
  EXPECT_EQ(format_p_value(0.414), "0.41");
  EXPECT_EQ(format_p_value(0.00321), "0.0032");
  EXPECT_EQ(format_p_value(1.0), "1.00");
  EXPECT_EQ(format_p_value(0.0), "< 0.0001");
  EXPECT_EQ(format_p_value(3e-12), "< 0.0001");
  EXPECT_THROW(format_p_value(nan), ArgumentError);
  EXPECT_THROW(format_p_value(1.1), ArgumentError);
}

TEST(FormatCount, GroupsOfThreeFromFiveDigits) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(5000), "5000");
  EXPECT_EQ(format_count(12345), "12\u202f345");
  EXPECT_EQ(format_count(200000), "200\u202f000");
  EXPECT_EQ(format_count(18446744073709551615u),
            "18\u202f446\u202f744\u202f073\u202f709\u202f551\u202f615");
}

TEST(FormatDuration, UnitsAndTheirBorders) {
  EXPECT_EQ(format_duration(0.0), "0 s");
  EXPECT_EQ(format_duration(0.0004), "0.4 ms");
  EXPECT_EQ(format_duration(0.12), "120 ms");
  EXPECT_EQ(format_duration(0.9996), "1.0 s");
  EXPECT_EQ(format_duration(1.23), "1.2 s");
  EXPECT_EQ(format_duration(9.96), "10 s");
  EXPECT_EQ(format_duration(59.4), "59 s");
  EXPECT_EQ(format_duration(59.6), "1 min 0 s");
  EXPECT_EQ(format_duration(184.0), "3 min 4 s");
  EXPECT_EQ(format_duration(3599.7), "1 h 0 min");
  EXPECT_EQ(format_duration(7500.0), "2 h 5 min");
  EXPECT_EQ(format_duration(86390.0), "1 d 0 h");
  EXPECT_EQ(format_duration(3 * 86400.0 + 4 * 3600.0), "3 d 4 h");
  EXPECT_THROW(format_duration(-1.0), ArgumentError);
  EXPECT_THROW(format_duration(nan), ArgumentError);
}

TEST(FormatBytes, DecimalUnits) {
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1500), "1.5 kB");
  EXPECT_EQ(format_bytes(23'400'000), "23 MB");
  EXPECT_EQ(format_bytes(999'700), "1.0 MB");
}

TEST(DisplayWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(display_width("log r"), 5u);
  EXPECT_EQ(display_width("log r\u0302"), 5u);  // a combining hat
  EXPECT_EQ(display_width("−2 log Λ"), 8u);
  EXPECT_EQ(display_width("\xff"), 1u);  // not UTF-8
  EXPECT_EQ(display_width(""), 0u);
}

TEST(FormatTable, AlignsNumbersRightAndWordsLeft) {
  EXPECT_EQ(format_table({"ratio", "γ\u0302"}, {{"exact", "0.0465 ± 0.0066"}, {"r\u0302", "−0.1"}}),
            "ratio                γ\u0302\n"
            "─────  ───────────────\n"
            "exact  0.0465 ± 0.0066\n"
            "r\u0302                 −0.1\n");
  EXPECT_EQ(format_table({"a", "b"}, {}), "a  b\n─  ─\n");
  EXPECT_THROW(format_table({"a", "b"}, {{"1"}}), ArgumentError);
}

TEST(LooksNumeric, TellsNumbersFromWords) {
  for (const char* text : {"1", "−0.5", "0.1 ± 0.2", "68.3\u00a0%", "< 0.0001", "1.2 × 10⁻⁷",
                           "[0.1, 0.2]", "200\u202f000"})
    EXPECT_TRUE(looks_numeric(text)) << text;
  for (const char* text : {"", "exact", "3 s", "—", "e"}) EXPECT_FALSE(looks_numeric(text)) << text;
}

TEST(ProgressLine, ShowsBarPercentAndTimeLeft) {
  const ProgressState state{"train", 50, 100, 3.0, 4.2, false};
  const std::string line = progress_line(state, 80);
  EXPECT_LE(display_width(line), 80u);
  EXPECT_TRUE(line.starts_with("train        ━"));
  EXPECT_NE(line.find(" 50 %"), std::string::npos);
  EXPECT_TRUE(line.ends_with("4.2 s left"));
}

TEST(ProgressLine, ShowsTheFigureOfMerit) {
  ProgressState state{"train", 50, 100, 3.0, 4.2, false, "", "held-out loss", 0.41234};
  EXPECT_TRUE(progress_line(state, 79).ends_with("4.2 s left      held-out loss 0.4123"))
      << progress_line(state, 79);
  EXPECT_NE(progress_line(state, 79).find("━"), std::string::npos);
  state = {"simulate", 1'500'000, 10'000'000, 3.0, 17.0, false, "events"};
  EXPECT_TRUE(progress_line(state, 79).ends_with("17 s left       500 k events/s"))
      << progress_line(state, 79);
  for (std::size_t width = 0; width < 120; ++width)
    EXPECT_LE(display_width(progress_line(state, width)), width);
}

TEST(MeritWords, RatesAndValues) {
  const auto words = [](std::size_t done, double elapsed, const char* unit, const char* merit,
                        double value) {
    return merit_words({"", done, 0, elapsed, 0.0, true, unit, merit, value});
  };
  EXPECT_EQ(words(10, 4.0, "fits", "", 0.0), "2.5 fits/s");
  EXPECT_EQ(words(1, 8.0, "fits", "", 0.0), "0.12 fits/s");
  EXPECT_EQ(words(123'456, 1.0, "events", "", 0.0), "123 k events/s");
  EXPECT_EQ(words(999'600, 1.0, "events", "", 0.0), "1.0 M events/s");
  EXPECT_EQ(words(5, 1.0, "", "loss", -0.5), "loss −0.5000");
  EXPECT_EQ(words(5, 1.0, "", "evaluations", 12345.0), "evaluations 12\u202f345");
  EXPECT_EQ(words(5, 1.0, "fits", "loss", 0.25), "5.0 fits/s, loss 0.2500");
  EXPECT_EQ(words(0, 0.0, "events", "", 0.0), "");
  EXPECT_EQ(words(5, 1.0, "", "loss", std::numeric_limits<double>::quiet_NaN()), "");
}

TEST(Wrap, BreaksBetweenWords) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrap("one two three", 7), (Lines{"one two", "three"}));
  EXPECT_EQ(wrap("one\n  two", 80), (Lines{"one two"}));
  EXPECT_EQ(wrap("", 10), (Lines{""}));
  EXPECT_EQ(wrap("abcdefgh ij", 3), (Lines{"abc", "def", "gh", "ij"}));
  EXPECT_EQ(wrap("γγγγ γ", 2), (Lines{"γγ", "γγ", "γ"}));
  EXPECT_EQ(wrap("68.3\u00a0% of all", 7), (Lines{"68.3\u00a0%", "of all"}));
}

TEST(ProgressLine, KeepsWithinAnyWidth) {
  const ProgressState state{"a task with a long name", 99, 100, 1e5, 1e5, false};
  for (std::size_t width = 0; width < 120; ++width)
    EXPECT_LE(display_width(progress_line(state, width)), width);
}

TEST(ProgressLine, NeverSaysAHundredPercentTooEarly) {
  const ProgressState state{"toys", 999'999, 1'000'000, 1.0, 0.1, false};
  EXPECT_NE(progress_line(state, 80).find(" 99 %"), std::string::npos);
}

TEST(ProgressLine, FinishedShowsTheTimeTaken) {
  const ProgressState state{"train", 100, 100, 3.04, 0.0, true};
  EXPECT_TRUE(progress_line(state, 80).ends_with("100 %  3.0 s"));
}

TEST(ProgressLine, UnknownTotalAndUnknownTimeLeft) {
  const ProgressState state{"read", 1234567, 0, 3.0, -1.0, false};
  EXPECT_NE(progress_line(state, 80).find("1\u202f234\u202f567"), std::string::npos);
  EXPECT_EQ(progress_line(state, 80).find("left"), std::string::npos);
}

}  // namespace
}  // namespace neyman::reports
