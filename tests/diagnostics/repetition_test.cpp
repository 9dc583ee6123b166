#include "neyman/diagnostics/repetition.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "neyman/core/error.hpp"
#include "neyman/core/random.hpp"

namespace neyman {
namespace {

TEST(Coverage, ExactBinomialPValue) {
  // 8 of 10 at a level of one half: P(X >= 8) = 56/1024, twice.
  const CoverageCount count[] = {{0.5, 8, 10}};
  const auto found = diagnose_coverage(count, {.tolerance = 0.0});
  EXPECT_NEAR(*found.p_value, 112.0 / 1024.0, 1e-12);
  EXPECT_NEAR(found.statistic, 0.3, 1e-12);
  EXPECT_EQ(found.verdict, Diagnostic::Verdict::pass);
  // All and none inside.
  const CoverageCount all[] = {{0.5, 10, 10}}, none[] = {{0.5, 0, 10}};
  EXPECT_NEAR(*diagnose_coverage(all, {.tolerance = 0.0}).p_value, 2.0 / 1024.0, 1e-12);
  EXPECT_NEAR(*diagnose_coverage(none, {.tolerance = 0.0}).p_value, 2.0 / 1024.0, 1e-12);
}

TEST(Coverage, ToleranceAndSeveralLevels) {
  // 61 % instead of 68.3 % over 500 datasets is 3.5 standard deviations; 66 % is 1.1.
  const CoverageCount poor[] = {{0.683, 305, 500}, {0.95, 475, 500}};
  const CoverageCount good[] = {{0.683, 330, 500}, {0.95, 472, 500}};
  const auto failed = diagnose_coverage(poor, {.tolerance = 0.0});
  EXPECT_LT(*failed.p_value, 2e-3);
  EXPECT_NE(failed.verdict, Diagnostic::Verdict::pass);
  EXPECT_EQ(diagnose_coverage(good).verdict, Diagnostic::Verdict::pass);
  EXPECT_EQ(diagnose_coverage(poor, {.tolerance = 0.08}).verdict, Diagnostic::Verdict::pass);
  EXPECT_NEAR(*failed.number("coverage:0.683"), 0.61, 1e-12);
  EXPECT_EQ(failed.panels[0].series[1].x.size(), 2u);
}

TEST(Coverage, NamesEveryCountDifferently) {
  const CoverageCount counts[] = {
      {0.683, 60, 100}, {0.95, 94, 100}, {0.683, 70, 100, "alpha"}, {0.683, 71, 100, "alpha"}};
  const auto found = diagnose_coverage(counts);
  EXPECT_EQ(*found.number("coverage:0.683"), 0.60);
  EXPECT_EQ(*found.number("coverage:0.95"), 0.94);
  EXPECT_EQ(*found.number("coverage:alpha:0.683"), 0.70);
  EXPECT_EQ(*found.number("coverage:alpha:0.683#2"), 0.71);
  std::set<std::string> names;
  for (const auto& [name, value] : found.numbers) EXPECT_TRUE(names.insert(name).second) << name;
}

TEST(Coverage, SaysWhatIsWrong) {
  const CoverageCount more[] = {{0.5, 11, 10}}, level[] = {{1.0, 1, 10}};
  EXPECT_THROW(diagnose_coverage(more), ArgumentError);
  EXPECT_THROW(diagnose_coverage(level), ArgumentError);
  EXPECT_THROW(diagnose_coverage({}), ArgumentError);
}

TEST(Wilks, ChiSquaredPassesAndOtherScalesFail) {
  for (const int degrees : {1, 2}) {
    RandomStream random(11, "wilks-test", static_cast<std::uint64_t>(degrees));
    std::vector<double> values, wide;
    for (int i = 0; i < 1000; ++i) {
      double sum = 0.0;
      for (int d = 0; d < degrees; ++d) sum += std::pow(random.normal(), 2);
      values.push_back(sum);
      wide.push_back(1.5 * sum);
    }
    const auto found = diagnose_wilks(values, degrees);
    EXPECT_GT(*found.p_value, 1e-3);  // false with a probability of 10⁻³
    EXPECT_EQ(diagnose_wilks(wide, degrees).verdict, Diagnostic::Verdict::fail);
    const auto& points = found.panels[0].series[1];
    ASSERT_EQ(points.x.size(), 1000u);
    EXPECT_NEAR(points.y[500], points.x[500], 0.3);
    EXPECT_TRUE(std::is_sorted(points.y.begin(), points.y.end()));
  }
  EXPECT_THROW(diagnose_wilks({}, 1.0), ArgumentError);
  const double negative[] = {-1.0};
  EXPECT_THROW(diagnose_wilks(negative, 1.0), ArgumentError);
}

}  // namespace
}  // namespace neyman
