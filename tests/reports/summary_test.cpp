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

void expect_narrow(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(display_width(line), 80u) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
  }
  EXPECT_EQ(text.find('\033'), std::string::npos);
}

TEST(Summary, FitsATerminal) {
  const auto text = summary(example::results(), false);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 18);
  expect_narrow(text);
  expect_narrow(summary(example::two_parameters(), false));
  expect_narrow(summary(example::six_parameters(), false));
}

/// Names, titles, files, levels, numbers and warnings of any length.
TEST(Summary, IsNeverWiderThanATerminal) {
  const std::string long_name(120, 'q');
  for (auto results : {example::results(), example::two_parameters(), example::six_parameters()}) {
    for (const auto& name : {std::string("amplitude_of_the_signal"), long_name}) {
      std::vector<Parameter> parameters(results.parameters.begin(), results.parameters.end());
      parameters.back().name = name;
      results.parameters = ParameterSpace(parameters);
      results.title = "What is the " + name + "? " + std::string(60, 'w') + " and so on";
      results.data_source = "folder/" + name + ".csv";
      results.quick = true;
      results.warnings = {
          "a warning that is longer than one line of a terminal: raise samples, or "
          "narrow the ranges, for example to " +
              name,
          "two\n  lines"};
      results.next_steps = {{"Narrow the ranges",
                             {"parameters." + name + ".range", "training.samples"},
                             {"[0.125, 0.375]", "1200000"},
                             "the data leave a small part of the range of " + name}};
      if (!results.diagnostics.empty()) {
        results.diagnostics.back().name = "reference:" + name;
        results.diagnostics.back().verdict = Diagnostic::Verdict::fail;
        results.diagnostics.back().note =
            "A note on " + name + " which is longer than a line of it";
      }
      const auto text = summary(results, false);
      expect_narrow(text);
      expect_narrow(checks_table(results));
      EXPECT_NE(text.find("a quick run"), std::string::npos);
      EXPECT_NE(text.find("To do better"), std::string::npos);
      // What a check has to say that is no pass.
      if (!results.diagnostics.empty()) {
        EXPECT_NE(text.find("A note on"), std::string::npos);
      }
      EXPECT_EQ(std::regex_replace(summary(results, true), std::regex("\033\\[[0-9]+m"), ""), text);
    }
    // Five levels, and numbers with powers of ten.
    results.levels = {0.5, 0.683, 0.9, 0.95, 0.997};
    for (auto& intervals : results.fit.intervals) {
      intervals.resize(5, {});
      for (auto& interval : intervals) {
        interval.low = -1.23456e-9;
        interval.high = 2.34567e12;
      }
    }
    expect_narrow(summary(results, false));
    for (auto& intervals : results.fit.intervals)
      for (auto& interval : intervals)
        interval.pieces = {{-1.23456e-9, 0.1}, {0.25, 0.5}, {1.5e3, 1.6e6}, {1e9, 2.34567e12}};
    expect_narrow(summary(results, false));
  }
}

TEST(Summary, AnIntervalOfSeveralPieces) {
  auto results = example::results();
  auto& interval = results.fit.intervals[0][1];
  interval.pieces = {{interval.low, 0.04}, {0.05, interval.high}};
  EXPECT_NE(summary(results, false).find("0.0400] ∪ [0.0500, "), std::string::npos)
      << summary(results, false);
  results.fit.fit.simulation_known = false;
  results.fit.fit.simulation_covariance = Matrix(1, 1);
  EXPECT_NE(summary(results, false).find("simulation error not computed"), std::string::npos);
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
  EXPECT_EQ(summary(results, false).find("To do better"), std::string::npos);
  results.next_steps = {{"Simulate more events", {"training.samples"}, {"40000"}, "few"},
                        {"Widen the range of a", {"parameters.a.range"}, {""}, "it ends there"}};
  results.ensemble->approximate.failed = 3;
  const auto text = summary(results, false);
  EXPECT_NE(text.find("✗ the fit did not converge"), std::string::npos);
  EXPECT_NE(text.find("! 2 of 5000 events are outside\n"), std::string::npos);
  EXPECT_NE(text.find("3 fits failed"), std::string::npos);
  const auto steps = text.find(
      "To do better, first things first:\n"
      "  1 Simulate more events, training.samples = 40000: few\n"
      "  2 Widen the range of a, parameters.a.range: it ends there\n");
  ASSERT_NE(steps, std::string::npos) << text;
  EXPECT_LT(steps, text.find("68.3"));  // before the numbers
  EXPECT_NE(checks_table(results).find("  1 Simulate more events"), std::string::npos);
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
      "  γ        0.0461 ± 0.0067   68.3\u00a0% [0.0395, 0.0529]   95\u00a0% [0.0332, 0.0595]\n"
      "           0.0066 statistical, 0.0011 simulation · truth 0.05\n");
}

TEST(Summary, AtABoundAndNotFinite) {
  auto results = example::results();
  results.fit.fit.point = {1.0};
  results.exact_fit->fit.point = {std::numeric_limits<double>::quiet_NaN()};
  results.ensemble->bias = {std::numeric_limits<double>::infinity()};
  const auto text = summary(results, false);
  EXPECT_NE(text.find("1 at bound"), std::string::npos);
  EXPECT_NE(text.find("bias —σ"), std::string::npos);
  EXPECT_EQ(text.find("nan"), std::string::npos);
}

TEST(Summary, SeveralParametersGolden) {
  example::expect_golden("summary_two_parameters.txt", summary(example::two_parameters(), false));
  std::istringstream lines(summary(example::two_parameters(), false));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(display_width(line), 80u) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
  }
}

TEST(Summary, SixParametersOneAtABound) {
  const auto text = summary(example::six_parameters(), false);
  EXPECT_NE(text.find("σ₁       0 at bound"), std::string::npos) << text;
  EXPECT_NE(text.find("B        2.000 +0.105 −0.095   [1.90, 2.11]"), std::string::npos) << text;
  EXPECT_EQ(std::regex_replace(summary(example::six_parameters(), true),
                               std::regex("\033\\[[0-9]+m"), ""),
            text);
}

TEST(Summary, VerdictIsTheWorst) {
  auto results = example::two_parameters();
  EXPECT_NE(summary(results, false).find("verdict  ! warn  2 of 3 checks pass; reference warns"),
            std::string::npos);
  results.diagnostics[0].verdict = Diagnostic::Verdict::fail;
  EXPECT_NE(summary(results, false)
                .find("verdict  ✗ fail  1 of 3 checks pass; closure fails; reference warns"),
            std::string::npos);
}

}  // namespace
}  // namespace neyman::reports
