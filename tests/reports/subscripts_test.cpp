#include "reports/subscripts.hpp"

#include <gtest/gtest.h>

#include <string>

namespace neyman::reports {
namespace {

/// With indices between < and >.
std::string marked(std::string_view text) {
  std::string out;
  for (const auto& piece : text_pieces(text))
    out += piece.low ? '<' + piece.text + '>' : piece.text;
  return out;
}

TEST(Subscripts, FollowALetter) {
  EXPECT_EQ(marked("by CL_s with"), "by CL<s> with");
  EXPECT_EQ(marked("(θ\u0302 − θ_a) / σ"), "(θ\u0302 − θ<a>) / σ");
  EXPECT_EQ(marked("−2 log Λ(μ_jet_scale)"), "−2 log Λ(μ<jet scale>)");
  EXPECT_EQ(marked("x_1 and m_top, p_T."), "x<1> and m<top>, p<T>.");
  EXPECT_EQ(marked("β_s = 1"), "β<s> = 1");
  EXPECT_EQ(marked("by CLs (toys), CLs"), "by CL<s> (toys), CL<s>");
}

TEST(Subscripts, NamesStay) {
  for (const char* text : {"", "plain", "top_norm", "a_long_name", "jet_energy_scale", "x_0.csv",
                           "out/x_1", "x_1/data", "_", "x_", "x__1", "__init__", "f_(", "α", "_s",
                           "αβ_s", "not_x_1", "3_a", "top-x_1"})
    EXPECT_EQ(marked(text), text);
}

TEST(Subscripts, BrokenBytesAreKept) { EXPECT_EQ(marked("\xff_s \xce"), "\xff_s \xce"); }

}  // namespace
}  // namespace neyman::reports
