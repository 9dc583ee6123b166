#include "neyman/reports/summary.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <regex>

#include "neyman/reports/terminal.hpp"
#include "reports/example_results.hpp"
#include "reports/golden.hpp"

namespace neyman::reports {
namespace {

TEST(Summary, Golden) { example::expect_golden("summary.txt", summary(example::results(), false)); }

TEST(Summary, FitsATerminal) {
  const auto text = summary(example::results(), false);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 18);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 90u) << line;
  EXPECT_EQ(text.find('\033'), std::string::npos);
}

TEST(Summary, ColoursAddNothingElse) {
  auto results = example::results();
  results.warnings = {"careful"};
  results.diagnostics[0].verdict = Diagnostic::Verdict::warn;
  results.diagnostics[1].verdict = Diagnostic::Verdict::fail;
  const auto coloured = summary(results, true);
  for (const char* code : {"\033[1m", "\033[33m! warn", "\033[31m✗ fail"})
    EXPECT_NE(coloured.find(code), std::string::npos) << code;
  EXPECT_EQ(std::regex_replace(coloured, std::regex("\033\\[[0-9]+m"), ""),
            summary(results, false));
}

TEST(Summary, TroubleIsSaid) {
  auto results = example::results();
  results.fit.fit.status = FitStatus::failed;
  results.warnings = {"2 of 5000 events are outside"};
  results.ensemble->approximate.failed = 3;
  const auto text = summary(results, false);
  EXPECT_NE(text.find("✗ the fit did not converge"), std::string::npos);
  EXPECT_NE(text.find("! 2 of 5000 events are outside\n"), std::string::npos);
  EXPECT_NE(text.find("3 fits failed"), std::string::npos);
}

TEST(Summary, WithTheFitAlone) {
  auto results = example::results();
  results.exact_fit.reset();
  results.test.reset();
  results.ensemble.reset();
  results.comparisons.clear();
  results.diagnostics.clear();
  results.title.clear();
  results.data_source = "simulated at the truth";
  EXPECT_EQ(
      summary(results, false),
      "mixture\n"
      "5000 events simulated at the truth · mlp · seed 1\n"
      "\n"
      "  γ          0.0461 ± 0.0067   68.3\u00a0% [0.0395, 0.0529]   95\u00a0% [0.0332, 0.0595]\n"
      "             0.0066 statistical, 0.0011 simulation · truth 0.05\n");
}

TEST(Summary, AtABoundAndNotFinite) {
  auto results = example::results();
  results.fit.fit.point = {1.0};
  results.exact_fit->fit.point = {std::numeric_limits<double>::quiet_NaN()};
  results.ensemble->bias = {std::numeric_limits<double>::infinity()};
  const auto text = summary(results, false);
  EXPECT_NE(text.find("1 at bound"), std::string::npos);
  EXPECT_NE(text.find("bias of γ — σ"), std::string::npos);
  EXPECT_EQ(text.find("nan"), std::string::npos);
}

TEST(Summary, SeveralParametersGolden) {
  example::expect_golden("summary_two_parameters.txt", summary(example::two_parameters(), false));
  std::istringstream lines(summary(example::two_parameters(), false));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(display_width(line), 100u) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
  }
}

TEST(Summary, SixParametersOneAtABound) {
  const auto text = summary(example::six_parameters(), false);
  EXPECT_NE(text.find("σ₁         0 at bound"), std::string::npos) << text;
  EXPECT_NE(text.find("B          2.000 +0.105 −0.095   [1.90, 2.11]"), std::string::npos) << text;
  EXPECT_EQ(std::regex_replace(summary(example::six_parameters(), true),
                               std::regex("\033\\[[0-9]+m"), ""),
            text);
}

TEST(Summary, VerdictIsTheWorst) {
  auto results = example::two_parameters();
  EXPECT_NE(summary(results, false).find("verdict    ! warn  2 of 3 checks pass; reference warns"),
            std::string::npos);
  results.diagnostics[0].verdict = Diagnostic::Verdict::fail;
  EXPECT_NE(summary(results, false)
                .find("verdict    ✗ fail  1 of 3 checks pass; closure fails; reference warns"),
            std::string::npos);
}

}  // namespace
}  // namespace neyman::reports
