#include "neyman/reports/symbol.hpp"

#include <gtest/gtest.h>

#include "neyman/core/error.hpp"

namespace neyman::reports {
namespace {

TEST(Symbol, GreekLetters) {
  EXPECT_EQ(symbol("gamma"), "γ");
  EXPECT_EQ(symbol("Gamma"), "Γ");
  EXPECT_EQ(symbol("omega"), "ω");
  EXPECT_EQ(symbol("mu_1"), "μ₁");
  EXPECT_EQ(symbol("theta20"), "θ₂₀");
  EXPECT_EQ(symbol("mu_signal"), "μ_signal");
  EXPECT_EQ(symbol("mu_"), "μ_");
}

TEST(Symbol, OtherNamesStay) {
  for (const char* name : {"alphabet", "mass", "m_1", "x2", "_mu", "MU", "γ", ""})
    EXPECT_EQ(symbol(name), name);
}

TEST(PointWords, KnownForms) {
  const ParameterSpace one({{"gamma", 0, 1, {}}});
  const ParameterSpace two({{"alpha", -3, 3, {}}, {"b", -3, 3, {}}});
  EXPECT_EQ(point_words(one, std::vector{0.05}), "γ\u00a0=\u00a00.05");
  EXPECT_EQ(point_words(two, std::vector{1.0, -0.5}), "α\u00a0=\u00a01, b\u00a0=\u00a0−0.5");
  EXPECT_THROW(point_words(two, std::vector{1.0}), ArgumentError);
}

}  // namespace
}  // namespace neyman::reports
