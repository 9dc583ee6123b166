#include "neyman/core/text.hpp"

#include <gtest/gtest.h>

#include "neyman/core/check.hpp"

namespace neyman {
namespace {

TEST(Text, ControlCharactersAreWrittenOut) {
  EXPECT_EQ(printable("m_γγ [GeV]\tE\nline"), "m_γγ [GeV]\tE\nline");
  EXPECT_EQ(printable("\033[2J\033]0;title\a"), "\\x1b[2J\\x1b]0;title\\x07");
  EXPECT_EQ(printable("a\rb\x7f"), "a\\x0db\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  // CSI of Latin-1, as one byte and in UTF-8; bytes that are not UTF-8.
  EXPECT_EQ(printable("\x9b"
                      "2J"),
            "\\x9b2J");
  EXPECT_EQ(printable("\u009b2J"), "\\x9b2J");
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
}

TEST(Text, NamesWithControlCharactersAreTold) {
  EXPECT_FALSE(has_control_characters("m_γγ [GeV]"));
  EXPECT_FALSE(has_control_characters(""));
  for (const char* name : {"\033[2J", "a\nb", "a\tb", "\x7f", "\u009b", "\xff"})
    EXPECT_TRUE(has_control_characters(name)) << printable(name);
}

TEST(Text, LongTextsAreCutBetweenCharacters) {
  EXPECT_EQ(shortened("short"), "short");
  EXPECT_EQ(shortened(std::string(60, 'x')), std::string(60, 'x'));
  EXPECT_EQ(shortened(std::string(61, 'x')), std::string(60, 'x') + "…");
  EXPECT_EQ(shortened("xxγγγ", 3), "xx…");
  EXPECT_EQ(shortened("\x80\x80\x80", 2), "…");
}

TEST(Text, AtMostTenNames) {
  EXPECT_EQ(list_names({}), "");
  EXPECT_EQ(list_names({"a", "b"}), "a, b");
  std::vector<std::string> names;
  for (int i = 0; i < 11; ++i) names.push_back("x" + std::to_string(i));
  EXPECT_EQ(list_names(names), "x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, … and 1 other");
  names.resize(100'000, std::string(100, 'y'));
  EXPECT_EQ(list_names(names, "', '"),
            "x0', 'x1', 'x2', 'x3', 'x4', 'x5', 'x6', 'x7', 'x8', 'x9', '… and 99990 others");
  EXPECT_LT(list_names(std::vector<std::string>(100, std::string(10'000, 'y'))).size(), 800u);
}

TEST(Text, CandidatesAreCappedAndTheNearestIsNamed) {
  std::vector<std::string> names;
  for (int i = 0; i < 100'000; ++i) names.push_back("column" + std::to_string(i));
  const auto text = unknown_name("colmn99999", "a column", names);
  EXPECT_LT(text.size(), 300u);
  EXPECT_NE(text.find("(did you mean 'column99999'?)"), std::string::npos);
}

}  // namespace
}  // namespace neyman
