#include "neyman/reports/study_report.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "neyman/core/version.hpp"
#include "not_finite.hpp"
#include "reports/example_results.hpp"
#include "reports/xml_check.hpp"

namespace neyman::reports {
namespace {

/// Where words stand in a page; fails if they do not.
std::size_t position(const std::string& page, const std::string& words) {
  const auto at = page.find(words);
  EXPECT_NE(at, std::string::npos) << words;
  return at;
}

DrawnFigure drawn(const std::string& name) {
  DrawnFigure figure;
  figure.name = name;
  figure.title = "Title of " + name;
  figure.caption = "Caption of " + name + ".";
  figure.panels = {"<svg role=\"img\"></svg>"};
  return figure;
}

TEST(StudyReport, AnswerComesFirst) {
  const auto page = study_report(example::results());
  testing::parse_xml(page);
  const auto answer = position(page,
                               "γ = 0.0461 ± 0.0067, 68.3\u00a0% interval [0.0395, 0.0529], "
                               "from 5000 events.");
  const auto checks = position(page, "All 2 checks pass.");
  position(page, "normalisation <small>p = 0.63</small>");
  position(page,
           "The learned fit converged after 9 evaluations of the likelihood; its log-likelihood"
           " is estimated to be less than 10⁻⁶");
  const auto learned = position(page, "With the learned likelihood");
  const auto exact = position(page, "With the exact likelihood");
  const auto first_section = position(page, "<h2");
  EXPECT_LT(answer, checks);
  EXPECT_LT(checks, learned);
  EXPECT_LT(learned, exact);
  EXPECT_LT(exact, first_section);
}

TEST(StudyReport, SaysWhatWasFound) {
  const auto page = study_report(example::results());
  position(page,
           "Testing γ\u00a0=\u00a00.05 against γ\u00a0=\u00a00: p = 0.25, so at a size of "
           "5\u00a0% the data do not reject γ\u00a0=\u00a00.05.");
  position(page, "The estimate of γ is biased by 0.12 standard deviations against the exact fit.");
  position(page, "68.9\u00a0±\u00a01.5\u00a0%");  // √(0.689 · 0.311 / 1000) = 1.46 %
  position(page, "the learned estimate is 0.034 statistical errors higher");
  position(page, "neyman run study.toml");
  position(page, "200\u202f000");
  EXPECT_EQ(page.find("gamma"), std::string::npos);
  EXPECT_EQ(page.find("nan"), std::string::npos);
}

TEST(StudyReport, TheLeastPValueIsCalledSo) {
  auto results = example::results();
  results.test->p_value = 1.0 / 1001.0;
  const auto page = study_report(results);
  position(page,
           "p = 0.0010 (the least that 1000 datasets can give), so at a size of 5\u00a0% the "
           "data reject γ");
}

TEST(StudyReport, TroubleComesBeforeTheNumbers) {
  auto results = example::results();
  results.warnings = {"3 of 5000 events lie outside <the> calibrated range"};
  results.next_steps = {{"Simulate more events", {"training.samples"}, {"40000"}, "few < many"}};
  results.fit.fit.status = FitStatus::failed;
  results.diagnostics[1].verdict = Diagnostic::Verdict::fail;
  const auto page = study_report(results);
  testing::parse_xml(page);
  const auto numbers = position(page, "With the learned likelihood");
  EXPECT_LT(position(page, "The fit did not converge. The best point found is γ"), numbers);
  EXPECT_LT(position(page, "outside &lt;the&gt; calibrated range"), numbers);
  const auto check = position(page, "Check wilks (p = 0.65)");
  EXPECT_LT(check, numbers);
  EXPECT_LT(position(page, "Simulate more events, training.samples = 40000: few &lt; many."),
            check);
  EXPECT_EQ(page.find("All 2 checks pass"), std::string::npos);
}

TEST(StudyReport, LongAndManyWarningsAreShortAtTheTopAndWholeBelow) {
  auto results = example::results();
  const std::string end = "and this is the end of it";
  results.warnings = {"a long story. " + std::string(200, 'x') + " y", "short"};
  results.warnings[0] =
      "the simulator failed at 3 of 200 values of θ, which were left out of the "
      "training; its last words were many and are not repeated here in the lead, "
      "only below, " +
      end;
  auto page = study_report(results);
  testing::parse_xml(page);
  EXPECT_LT(position(page, "2 warnings, in full below:"), position(page, "With the learned"));
  EXPECT_GT(position(page, end), position(page, ">Warnings</h2>"));
  for (int i = 0; i < 8; ++i) results.warnings.push_back(fmt::format("number {}", i));
  page = study_report(results);
  EXPECT_LT(position(page, "… and 4 more"), position(page, ">Warnings</h2>"));
  EXPECT_GT(position(page, "Number 7."), position(page, ">Warnings</h2>"));
  results.warnings = {"short"};
  EXPECT_EQ(study_report(results).find(">Warnings</h2>"), page.npos);
}

TEST(StudyReport, SaysWhatTheSimulatorIs) {
  auto results = example::results();
  results.simulator = "command: python3 simulate.py {gamma}";
  position(study_report(results), "command <code>python3 simulate.py {gamma}</code>");
  results.simulator = "mixture of a (files: a.csv) and b (normal)";
  position(study_report(results), "mixture of a (files: a.csv) and b (normal)");
}

TEST(StudyReport, VersionsAndBudget) {
  auto results = example::results();
  results.budget["simulated"] = 123456;
  const auto page = study_report(results);
  position(page, built_with());
  EXPECT_LT(position(page, ">What was asked</h2>"), position(page, "123\u202f456 events"));
}

TEST(StudyReport, FiguresStandInTheirSections) {
  const auto page =
      study_report(example::results(), {drawn("data"), drawn("likelihood"), drawn("mine"),
                                        drawn("test"), drawn("ensemble"), drawn("ratio")});
  const auto at = [&](const std::string& words) { return position(page, words); };
  EXPECT_LT(at(">Result</h2>"), at("Caption of likelihood."));
  EXPECT_LT(at("Caption of likelihood."), at(">Test</h2>"));
  EXPECT_LT(at(">Test</h2>"), at("Caption of test."));
  EXPECT_LT(at("Caption of test."), at(">Ensemble</h2>"));
  EXPECT_LT(at("Caption of ensemble."), at("Caption of data."));
  EXPECT_LT(at("Caption of data."), at("Caption of ratio."));
  EXPECT_LT(at(">Further figures</h2>"), at("Caption of mine."));
}

TEST(StudyReport, WithTheFitAlone) {
  auto results = example::results();
  results.exact_fit.reset();
  results.test.reset();
  results.ensemble.reset();
  results.comparisons.clear();
  results.diagnostics.clear();
  results.budget.clear();
  results.timing.clear();
  results.command.clear();
  results.title.clear();
  const auto page = study_report(results);
  testing::parse_xml(page);
  position(page, "<h1>mixture</h1>");
  for (const char* heading : {">Test</h2>", ">Ensemble</h2>", ">Checks</h2>", ">What it took</h2>",
                              ">To repeat</h2>", ">Data and learned ratio</h2>"})
    EXPECT_EQ(page.find(heading), std::string::npos) << heading;
}

TEST(StudyReport, AtABound) {
  auto results = example::results();
  results.fit.fit.status = FitStatus::at_bound;
  results.fit.fit.point = {0.0};
  results.fit.fit.covariance = Matrix(1, 1);
  results.fit.fit.simulation_covariance = Matrix(1, 1);
  results.fit.intervals[0][0] = {0.683, 0.0, 0.0031, true, false};
  results.fit.intervals[0][1] = {0.95, 0.0, 0.0089, true, false};
  const auto page = study_report(results);
  position(page,
           "γ = 0 (the lower end of its range), 68.3\u00a0% interval [0.0000, 0.0031], "
           "from 5000 events.");
  position(page, "+0.0031");
}

TEST(StudyReport, ResultsThatAreNotFiniteAreStillReported) {
  auto results = example::results();
  results.fit.fit.point = {nan};
  results.fit.fit.covariance(0, 0) = nan;
  results.fit.intervals[0][0].low = nan;
  results.test->p_value = nan;
  results.ensemble->bias = {nan};
  results.ensemble->approximate.spreads = {nan};
  results.ensemble->coverage_with_simulation = {nan, 1.0};
  results.diagnostics[0].statistic = nan;
  results.diagnostics[0].p_value = nan;
  results.comparisons[0].calibrated_error = nan;
  results.timing[0].second = nan;
  std::string page;
  ASSERT_NO_THROW(page = study_report(results));
  testing::parse_xml(page);
  EXPECT_EQ(page.find("nan"), std::string::npos);
}

TEST(StudyReport, NamesAreEscaped) {
  auto results = example::results();
  results.title = "<script>alert(1)</script>";
  results.feature_names = {"p<T>"};
  results.data_source = "a&b.csv";
  const auto page = study_report(results);
  testing::parse_xml(page);
  EXPECT_EQ(page.find("<script>"), std::string::npos);
}

TEST(StudyReport, ParameterisedStudy) {
  std::vector<DrawnFigure> figures;
  for (const char* name :
       {"data", "likelihood", "surface-alpha-beta", "contours-alpha-beta", "coverage",
        "diagnostic-closure", "diagnostic-reference", "diagnostic-reweighting"})
    figures.push_back(drawn(name));
  const auto page = study_report(example::two_parameters(), figures);
  testing::parse_xml(page);
  const auto at = [&](const std::string& words) { return position(page, words); };
  EXPECT_LT(at("Check reference (p = 0.0040)"), at("With the learned likelihood"));
  EXPECT_LT(at(">Likelihood surface</h2>"), at("Caption of surface-alpha-beta."));
  EXPECT_LT(at("Caption of surface-alpha-beta."), at("Caption of contours-alpha-beta."));
  EXPECT_LT(at("Caption of contours-alpha-beta."), at(">Tests</h2>"));
  at("Testing α\u00a0=\u00a01 and β\u00a0=\u00a0−1: −2 log Λ = 0.62, p = 0.73 from χ² with 2 "
     "degrees of freedom, p = 0.74 from 999 simulated datasets.");
  EXPECT_LT(at(">Coverage</h2>"), at("Caption of coverage."));
  EXPECT_LT(at(">Checks</h2>"), at("Caption of diagnostic-reweighting."));
  at("Deviations up to 0.01 are not counted.");
  EXPECT_EQ(page.find(">Further figures</h2>"), page.npos);
  EXPECT_EQ(page.find("nan"), page.npos);
}

TEST(StudyReport, NuisanceParametersComeLast) {
  auto results = example::six_parameters();
  std::vector<Parameter> parameters(results.parameters.begin(), results.parameters.end());
  parameters[0].nuisance = true;
  results.parameters = ParameterSpace(parameters);
  const auto page = study_report(results);
  testing::parse_xml(page);
  EXPECT_LT(position(page, "<th scope=\"row\" role=\"rowheader\">B</th>"),
            position(page, "<th scope=\"row\" role=\"rowheader\">A (nuisance)</th>"));
  EXPECT_EQ(page.find("A = 1"), page.npos);  // neither headline nor answer
}

TEST(StudyReport, ManyParametersAreATable) {
  auto results = example::with_parameters(4, 3);
  results.exact_fit.reset();
  for (const auto& parameter : results.parameters) EXPECT_FALSE(parameter.nuisance);
  const auto page = study_report(results);
  testing::parse_xml(page);
  position(page, "<p class=\"subtitle\">4 parameters from ");
  EXPECT_EQ(page.find("class=\"headline\""), page.npos);
  const auto table =
      position(page, "<th scope=\"col\" class=\"n\" role=\"columnheader\">Estimate</th>");
  EXPECT_LT(table, position(page, ">Result</h2>"));
  results.fit.fit.status = FitStatus::failed;
  position(study_report(results), "The fit of 4 parameters to ");
  // Two have cards, and a sentence.
  const auto two = study_report(example::with_parameters(2, 3));
  position(two, "class=\"headline\"");
}

TEST(StudyReport, ErrorsHaveTheDigitsOfTheirSum) {
  auto results = example::results();
  results.exact_fit.reset();
  results.fit.fit.point = {0.298};
  results.fit.fit.covariance(0, 0) = 0.0912 * 0.0912;
  results.fit.fit.simulation_covariance(0, 0) = 0.0033 * 0.0033;
  results.fit.intervals = {{{0.683, 0.2041, 0.3921}, {0.95, 0.11, 0.4811}}};
  const auto page = study_report(results);
  position(page, "γ = 0.298 ± 0.091");
  position(page, "statistical error 0.091, finite simulation 0.003");
  position(page, "<span>68.3\u00a0% [0.204, 0.392]</span>");
  position(page, "<span>95\u00a0% [0.110, 0.481]</span>");
}

// One check beside a fit of five parameters is not "the check".
TEST(StudyReport, SaysWhatWasNotChecked) {
  auto results = example::results();
  results.diagnostics.resize(1);
  results.diagnostics[0].name = "sub-ratios";
  results.diagnostics[0].verdict = Diagnostic::Verdict::pass;
  results.ensemble.reset();
  results.coverage.reset();
  position(study_report(results),
           "The only check passes: sub-ratios. Not checked: whether the learned ratio agrees with "
           "simulated events and how often the interval contains the true value.");
  results.diagnostics[0].name = "reweighting";
  position(study_report(results),
           "The only check passes: reweighting. Not checked: how often the interval contains the "
           "true value.");
  EXPECT_EQ(study_report(example::results()).find("Not checked"), std::string::npos);
}

TEST(StudyReport, VerdictsLeadToTheirFigures) {
  auto results = example::results();
  results.diagnostics[0].name = "closure:wide";
  position(study_report(results, {drawn("diagnostic-closure_wide")}),
           "<a href=\"#figure:diagnostic-closure_wide\">");
}

TEST(StudyReport, HypothesesInWords) {
  auto results = example::two_parameters();
  auto& test = results.composite_tests[0];
  test.config.null.fixed.clear();
  test.config.null.ranges = {FitRange{0.0, 0.9}, FitRange{-1.5, 0.0}};
  test.mixed = true;
  test.degrees = 1.0;
  test.best.status = FitStatus::failed;
  const auto page = study_report(results);
  position(page, "Testing α at most 0.9 and β at least −1.5:");
  position(page, "from half χ² with 1 degree of freedom");
  position(page, "the test cannot be trusted.");
}

TEST(StudyReport, AnyNumberOfParameters) {
  for (std::size_t parameters = 1; parameters <= 6; ++parameters) {
    const auto page = study_report(example::with_parameters(parameters, 3));
    testing::parse_xml(page);
    EXPECT_EQ(page.find("(nuisance)") != page.npos, parameters > 4);
  }
}

}  // namespace
}  // namespace neyman::reports
