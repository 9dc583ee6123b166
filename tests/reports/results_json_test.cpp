#include "neyman/reports/results_json.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "not_finite.hpp"
#include "reports/example_results.hpp"
#include "reports/golden.hpp"

namespace neyman::reports {
namespace {

using Json = nlohmann::json;

Json parsed(const Results& results) { return Json::parse(results_json(results).text); }

/// Every path with the type of its value: what readers of results.json rely on.
void list_keys(const nlohmann::ordered_json& value, const std::string& path, std::string& out) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, member] : value.items())
      list_keys(member, path.empty() ? key : path + " > " + key, out);
  } else if (value.is_array() && !value.empty()) {
    list_keys(value.front(), path + " []", out);
  } else {
    out += path + ": " + value.type_name() + '\n';
  }
}

TEST(ResultsJson, KeysAreStable) {
  std::string keys;
  list_keys(nlohmann::ordered_json::parse(results_json(example::results()).text), "", keys);
  example::expect_golden("results_keys.txt", keys);
}

TEST(ResultsJson, KnownValues) {
  const auto json = parsed(example::results());
  EXPECT_EQ(json["schema"], "neyman.results/1");
  const auto& gamma = json["fit"]["parameters"]["gamma"];
  EXPECT_EQ(json["fit"]["status"], "converged");
  EXPECT_EQ(gamma["estimate"], 0.0461);
  EXPECT_DOUBLE_EQ(gamma["error"].get<double>(), std::hypot(0.00662, 0.0011));
  EXPECT_EQ(gamma["interval"]["0.683"].size(), 2u);
  EXPECT_LT(gamma["interval"]["0.683"][0], gamma["statistical_interval"]["0.683"][0]);
  EXPECT_FALSE(gamma.contains("at_bound"));
  EXPECT_EQ(json["exact_fit"]["parameters"]["gamma"]["simulation_error"], 0.0);
  EXPECT_EQ(json["ensemble"]["approximate"]["coverage_with_simulation"]["0.95"], 0.951);
  EXPECT_EQ(json["ensemble"]["approximate"]["estimates"]["gamma"].size(), 1000u);
  EXPECT_EQ(json["ensemble"]["at"]["gamma"], 0.05);
  EXPECT_EQ(json["diagnostics"][1]["verdict"], "pass");
  EXPECT_EQ(json["budget"]["simulated"], 200000);
  EXPECT_EQ(json["warnings"], Json::array());
}

TEST(ResultsJson, PiecesAndMaxima) {
  auto results = example::results();
  auto& interval = results.fit.intervals[0][1];
  interval.pieces = {{interval.low, 0.04}, {0.05, interval.high}};
  auto& fit = results.fit.fit;
  fit.maxima = {{fit.point, fit.log_likelihood}, {{0.055}, fit.log_likelihood - 0.75}};
  const auto json = parsed(results);
  const auto& gamma = json["fit"]["parameters"]["gamma"];
  EXPECT_EQ(gamma["interval"]["0.95"], Json({interval.low, interval.high}));
  EXPECT_EQ(gamma["interval_pieces"]["0.95"],
            Json({Json({interval.low, 0.04}), Json({0.05, interval.high})}));
  EXPECT_EQ(gamma["interval_pieces"]["0.683"], Json({gamma["interval"]["0.683"]}));
  ASSERT_EQ(json["fit"]["maxima"].size(), 2U);
  EXPECT_EQ(json["fit"]["maxima"][0]["parameters"]["gamma"], gamma["estimate"]);
  EXPECT_EQ(json["fit"]["maxima"][0]["statistic"], 0.0);
  EXPECT_DOUBLE_EQ(json["fit"]["maxima"][1]["statistic"].get<double>(), 1.5);
}

TEST(ResultsJson, WhatWasNotComputedIsNull) {
  auto results = example::results();
  results.fit.fit.simulation_known = false;
  auto json = parsed(results);
  const auto& gamma = json["fit"]["parameters"]["gamma"];
  EXPECT_TRUE(gamma["simulation_error"].is_null());
  EXPECT_EQ(gamma["statistical_error"], 0.00662);
  EXPECT_TRUE(json["fit"]["simulation_covariance"].is_null());
  EXPECT_TRUE(results_json(results).not_finite.empty());
  // At a bound where the likelihood bends upwards, nothing is known.
  results.fit.fit.at_bound = {true};
  results.fit.fit.covariance = Matrix(1, 1);
  EXPECT_TRUE(parsed(results)["fit"]["parameters"]["gamma"]["error"].is_null());
}

TEST(ResultsJson, NumbersKeepTheirBits) {
  auto results = example::results();
  const std::vector<double> hard = {
      0.1 + 0.2, 1.0 / 3.0, 5e-324, std::numeric_limits<double>::max(),
      -2.5e-300, 0.05,      -0.0,   1e22};
  results.fit.scans[0].values = hard;
  results.fit.scans[0].statistic = hard;
  results.seed = std::numeric_limits<std::uint64_t>::max();
  const auto json = parsed(results);
  const auto read = json["fit"]["scan"]["gamma"]["values"].get<std::vector<double>>();
  ASSERT_EQ(read.size(), hard.size());
  for (std::size_t i = 0; i < hard.size(); ++i) {
    EXPECT_EQ(read[i], hard[i]) << i;
    EXPECT_EQ(std::signbit(read[i]), std::signbit(hard[i])) << i;
  }
  EXPECT_EQ(json["study"]["seed"].get<std::uint64_t>(), results.seed);
}

TEST(ResultsJson, NotFiniteBecomesNullWithAWarning) {
  auto results = example::results();
  results.fit.fit.log_likelihood = nan;
  results.fit.fit.simulation_covariance(0, 0) = infinity;
  results.ensemble->approximate.statistic[3] = infinity;
  results.ensemble->approximate.statistic[5] = nan;
  results.warnings = {"an earlier one"};
  const auto out = results_json(results);
  const std::vector<std::string> expected = {
      "fit.log_likelihood", "fit.parameters.gamma.error", "fit.parameters.gamma.simulation_error",
      "fit.simulation_covariance[0]", "ensemble.approximate.statistics"};
  EXPECT_EQ(out.not_finite, expected);
  const auto json = Json::parse(out.text);
  EXPECT_TRUE(json["fit"]["log_likelihood"].is_null());
  EXPECT_TRUE(json["ensemble"]["approximate"]["statistics"][3].is_null());
  EXPECT_TRUE(json["ensemble"]["approximate"]["statistics"][4].is_number());
  ASSERT_EQ(json["warnings"].size(), 6u);
  EXPECT_EQ(json["warnings"][0], "an earlier one");
  EXPECT_EQ(json["warnings"][1],
            "fit.log_likelihood is not a finite number; results.json has null in its place");
}

TEST(ResultsJson, VolatileValuesStandApart) {
  auto first = example::results(), second = example::results();
  second.timing = {{"train", 99.0}};
  second.threads = 64;
  second.command = "neyman run elsewhere/study.toml --threads 64";
  auto a = parsed(first), b = parsed(second);
  EXPECT_NE(a, b);
  for (const char* key : {"timing", "threads", "command"}) {
    a.erase(key);
    b.erase(key);
  }
  EXPECT_EQ(a, b);
}

TEST(ResultsJson, WhatIsNotThereIsLeftOut) {
  auto results = example::results();
  results.exact_fit.reset();
  results.test.reset();
  results.ensemble.reset();
  results.comparisons.clear();
  results.diagnostics = {example::diagnostic("closure", "Without a p-value.", 1.5, std::nullopt,
                                             Diagnostic::Verdict::warn)};
  results.parameters = ParameterSpace({{"gamma", 0.0, 1.0, std::nullopt}});
  const auto json = parsed(results);
  for (const char* key : {"exact_fit", "test", "ensemble", "comparison", "compared_at"})
    EXPECT_FALSE(json.contains(key)) << key;
  EXPECT_FALSE(json["diagnostics"][0].contains("p_value"));
  EXPECT_EQ(json["diagnostics"][0]["verdict"], "warn");
  EXPECT_FALSE(json["study"]["parameters"]["gamma"].contains("truth"));
}

TEST(ResultsJson, SaysWhatIsAtABound) {
  auto results = example::results();
  results.fit.fit.status = FitStatus::at_bound;
  results.fit.fit.point = {0.0};
  results.fit.intervals[0][0].low_at_bound = true;
  results.fit.intervals[0][1].low_at_bound = results.fit.intervals[0][1].high_at_bound = true;
  const auto json = parsed(results);
  EXPECT_EQ(json["fit"]["status"], "at bound");
  const auto& gamma = json["fit"]["parameters"]["gamma"];
  EXPECT_EQ(gamma["at_bound"], "low");
  EXPECT_EQ(gamma["interval_at_bound"]["0.683"], Json({"low"}));
  EXPECT_EQ(gamma["interval_at_bound"]["0.95"], Json({"low", "high"}));
}

TEST(ResultsJson, TimesOfAStageThatRanTwiceAddUp) {
  auto results = example::results();
  results.timing = {{"fit", 1.0}, {"train", 2.0}, {"fit", 0.5}};
  EXPECT_EQ(parsed(results)["timing"]["fit"], 1.5);
}

TEST(ResultsJson, AnyNameGivesValidJson) {
  auto results = example::results();
  results.name = "a \"quoted\" \\ name\n with \x01 and \xff bytes";
  results.parameters = ParameterSpace({{"μ of \"x\"", 0.0, 1.0, std::nullopt}});
  const auto json = parsed(results);
  EXPECT_TRUE(json["fit"]["parameters"].contains("μ of \"x\""));
}

TEST(ResultsJson, NextStepsHoldValuesAsTheyAreSet) {
  auto results = example::results();
  EXPECT_FALSE(parsed(results).contains("next_steps"));
  results.next_steps = {
      {"Narrow", {"parameters.gamma.range", "training.samples"}, {"[0, 0.5]", "40000"}, "because"},
      {"Let", {"classifier.kind", "training.samples"}, {"\"learned\"", ""}, "it knows more"}};
  const auto steps = parsed(results)["next_steps"];
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0]["what"], "Narrow");
  EXPECT_EQ(steps[0]["set"]["parameters.gamma.range"], Json::parse("[0, 0.5]"));
  EXPECT_EQ(steps[0]["set"]["training.samples"], 40000);
  EXPECT_EQ(steps[1]["set"]["classifier.kind"], "learned");
  EXPECT_TRUE(steps[1]["set"]["training.samples"].is_null());
  EXPECT_EQ(steps[1]["reason"], "it knows more");
}

TEST(ResultsJson, LinesAreForPeople) {
  auto results = example::results();
  results.warnings = {"one", "two"};
  std::istringstream text(results_json(results).text);
  std::size_t lines = 0;
  for (std::string line; std::getline(text, line); ++lines) {
    const bool numbers = line.find_first_not_of("0123456789.,-+e ") == std::string::npos;
    EXPECT_LE(numbers ? line.size() : 0, 100u) << line;
  }
  // dump(2) would take a line for each of more than 6000 numbers.
  EXPECT_LT(lines, 2000u);
}

TEST(ResultsJson, KeysOfAParameterisedStudyAreStable) {
  std::string keys;
  list_keys(nlohmann::ordered_json::parse(results_json(example::two_parameters()).text), "", keys);
  example::expect_golden("results_keys_two_parameters.txt", keys);
}

TEST(ResultsJson, SurfacesAndContours) {
  const auto results = example::two_parameters();
  const auto json = parsed(results);
  ASSERT_EQ(json["surfaces"].size(), 3u);
  const auto& process = json["surfaces"][2];
  EXPECT_EQ(process["label"], "Gaussian process");
  EXPECT_EQ(process["parameters"], Json({"alpha", "beta"}));
  EXPECT_EQ(process["minimum"]["beta"], -0.93);
  // A row for each y, a column for each x.
  EXPECT_EQ(process["statistic"][3][7], results.surfaces[2].surface.statistic(3, 7));
  EXPECT_EQ(process["evaluated"]["alpha"].size(), 50u);
  EXPECT_FALSE(json["surfaces"][0].contains("evaluated"));
  const auto& contour = process["contours"][1];
  EXPECT_NEAR(contour["level"].get<double>(), 0.9545, 1e-4);
  EXPECT_NEAR(contour["threshold"].get<double>(), 6.18, 0.01);
  EXPECT_EQ(contour["lines"][0]["closed"], true);
  EXPECT_EQ(contour["lines"][0]["x"].size(), 90u);
}

TEST(ResultsJson, CorrelationsOfTheEstimates) {
  const auto json = parsed(example::two_parameters());
  const double rho = 0.35 / 1.01;  // the simulation error adds a hundredth to the variances
  EXPECT_NEAR(json["fit"]["correlation"][0][1].get<double>(), rho, 1e-12);
  EXPECT_EQ(json["fit"]["correlation"][1][1], 1.0);
}

TEST(ResultsJson, CompositeTests) {
  auto results = example::two_parameters();
  auto& null = results.composite_tests[0].config.null;
  null.fixed = {std::nullopt, -1.0};
  null.ranges = {FitRange{0.0, 1.0}, std::nullopt};
  const auto json = parsed(results)["tests"][0];
  EXPECT_EQ(json["null"], Json({{"alpha", {{"range", {0.0, 1.0}}}}, {"beta", {{"fixed", -1.0}}}}));
  EXPECT_EQ(json["simulated_p_value"], 0.741);
  EXPECT_EQ(json["estimate"]["beta"], -1.0);
  results.composite_tests[0].simulated_p_value.reset();
  EXPECT_FALSE(parsed(results)["tests"][0].contains("datasets"));
}

TEST(ResultsJson, Coverage) {
  const auto results = example::two_parameters();
  const auto json = parsed(results)["coverage"];
  EXPECT_EQ(json["datasets"], 500);
  const auto& point = json["points"][4];
  EXPECT_EQ(point["fitted"], 499);
  EXPECT_EQ(point["coverage"]["0.95"], results.coverage->points[4].ensemble.coverage[1]);
  EXPECT_EQ(point["thresholds"]["0.95"]["simulated"], 6.21);
  EXPECT_EQ(point["profiles"]["beta"]["coverage_simulated"]["0.683"], 0.681);
}

TEST(ResultsJson, NuisanceParametersAndDoubtfulIntervals) {
  auto results = example::six_parameters();
  results.fit.intervals[0][1].ok = false;
  results.fit.intervals[0][1].message = "a profile fit failed";
  const auto json = parsed(results);
  EXPECT_EQ(json["study"]["parameters"]["g"]["role"], "nuisance");
  EXPECT_FALSE(json["study"]["parameters"]["A"].contains("role"));
  EXPECT_EQ(json["fit"]["parameters"]["A"]["interval_doubtful"],
            Json({{"0.95", "a profile fit failed"}}));
  EXPECT_EQ(json["study"]["reference"], Json::object());
  EXPECT_EQ(json["study"]["components"], Json::array());
}

TEST(ResultsJson, APeriodicParameterHasASeamAndNoBounds) {
  auto results = example::six_parameters();
  std::vector<Parameter> parameters(results.parameters.begin(), results.parameters.end());
  parameters[0].periodic = true;
  const auto& range = parameters[0];
  const auto plain = parsed(results);
  results.parameters = ParameterSpace(parameters);
  results.fit.fit.point[0] = range.high;
  auto& interval = results.fit.intervals[0][1];
  interval.low = range.high - 0.1;
  interval.high = range.high + 0.2;
  interval.pieces = {{interval.low, interval.high}};
  const auto json = parsed(results);
  EXPECT_EQ(json["study"]["parameters"]["A"]["periodic"], true);
  EXPECT_FALSE(plain["study"]["parameters"]["A"].contains("periodic"));
  EXPECT_EQ(json["fit"]["parameters"]["A"]["interval_over_seam"], Json({"0.95"}));
  EXPECT_FALSE(plain["fit"]["parameters"]["A"].contains("interval_over_seam"));
  EXPECT_FALSE(json["fit"]["parameters"]["A"].contains("at_bound"));
}

TEST(ResultsJson, DiagnosticsWithTheirNumbers) {
  const auto json = parsed(example::two_parameters())["diagnostics"];
  EXPECT_EQ(json[0]["numbers"]["p_value:x0"], 0.18);
  EXPECT_EQ(json[0]["tolerance"], 0.01);
  EXPECT_EQ(json[1]["verdict"], "warn");
  EXPECT_EQ(json[1]["note"], "One reference is far from the data.");
  EXPECT_FALSE(json[2].contains("note"));
}

}  // namespace
}  // namespace neyman::reports
