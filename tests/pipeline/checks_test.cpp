#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "data/support.hpp"
#include "neyman/core/random.hpp"
#include "neyman/pipeline/pipeline.hpp"
#include "neyman/simulators/distribution.hpp"
#include "pipeline/small_study.hpp"

// Where checks look, what they cost, and what follows from them.
namespace neyman {
namespace {

using test::edited;
using test::message_of;
using test::parse;
using Verdict = Diagnostic::Verdict;

const std::string checked_study = R"([study]
name = "checked"
seed = 5

[parameters]
mu = { range = [-1, 1], truth = 0.2 }

[simulator]
kind = "normal"
mean = "mu"
sigma = 1

[training]
samples = 6000

[classifier]
kind = "separable"
hidden = []
degree = 2
epochs = 2

[data]
events = 300

[diagnostics]
events = 2000
)";

const Diagnostic* find(const Results& results, const std::string& name) {
  for (const auto& check : results.diagnostics)
    if (check.name == name) return &check;
  return nullptr;
}

bool warns(const Results& results, const std::string& of) {
  return std::any_of(results.warnings.begin(), results.warnings.end(),
                     [&](const auto& warning) { return warning.find(of) != std::string::npos; });
}

/// Whose words begin so.
const NextStep* step(const Results& results, const std::string& what) {
  for (const auto& one : results.next_steps)
    if (one.what.starts_with(what)) return &one;
  return nullptr;
}

Verdict worst(const Results& results) { return worst_of(results.diagnostics); }

TEST(Checks, LookAtTheEstimateNearItAndFarFromIt) {
  const auto results = run(parse(checked_study)).results;
  std::vector<std::string> names;
  for (const auto& check : results.diagnostics) names.push_back(check.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"recovery", "range", "reweighting", "normalisation",
                                      "reliability", "closure", "reweighting:wide",
                                      "normalisation:wide", "reliability:wide", "closure:wide"}));
  EXPECT_LT(worst(results), Verdict::fail);
  const auto& recovery = results.diagnostics[0];
  EXPECT_EQ(recovery.verdict, Verdict::pass);
  // 20 000 events against 300: an eighth of the statistical error.
  EXPECT_NEAR(*recovery.number("noise:mu"), std::sqrt(300.0 / 20000.0), 0.05);
  EXPECT_NE(find(results, "closure")->explanation.find("the worst of 2 such points"),
            std::string::npos);
  // At the estimate, its two neighbours and the middle of the range.
  EXPECT_EQ(results.budget.at("diagnostics"), 20000u + 4u * 2000u);
  const auto plan = plan_simulation(parse(checked_study));
  EXPECT_EQ(plan.total(), 6000u + 300u + 28000u);
}

TEST(Checks, AShiftedRatioIsFoundAndItsShiftIsInTheError) {
  // The model was trained with a mean that is 0.2 too small, 3.5 statistical errors of 300 events.
  const auto study = parse(checked_study);
  const auto wrong =
      run(parse(edited(checked_study, "mean = \"mu\"", "mean = \"mu - 0.2\""))).model;
  const auto results = diagnose_model(study, wrong);
  const auto* recovery = find(results, "recovery");
  ASSERT_NE(recovery, nullptr);
  EXPECT_EQ(recovery->verdict, Verdict::fail);
  EXPECT_NEAR(*recovery->number("shift:mu"), 0.2 * std::sqrt(300.0), 0.6);
  EXPECT_NEAR(results.fit.fit.simulation_error(0), 0.2, 0.04);
  EXPECT_TRUE(warns(results, "fitted elsewhere"));
  // The interval holds it, and so the truth.
  EXPECT_LT(results.fit.intervals[0][1].low, 0.2);
  EXPECT_GT(results.fit.intervals[0][1].high, 0.2);
  EXPECT_GT(results.fit.intervals[0][1].high - results.fit.intervals[0][1].low, 0.7);
}

TEST(Checks, ASharpEdgeIsNoFailure) {
  // The exact ratio of x = m + an exponential is infinite or zero between two edges. A mixture
  // whose components are such exponentials has one, too: two of its edges, at 0 and 1.
  const auto results =
      run(parse(edited(edited(edited(test::small_study, "kind = \"normal\", mean = 0, sigma = 1",
                                     "kind = \"uniform\", low = 0, high = 2"),
                              "kind = \"normal\", mean = 2, sigma = 1",
                              "kind = \"uniform\", low = 1, high = 3"),
                       "kind = \"logistic\"", "kind = \"boosted-trees\"")))
          .results;
  EXPECT_LT(worst(results), Verdict::fail);
}

TEST(Checks, ABudgetHoldsForAll) {
  const auto results =
      run(parse(edited(checked_study, "events = 2000\n", "budget = 900\n"))).results;
  EXPECT_LE(results.budget.at("diagnostics"), 900u);
  EXPECT_GT(results.budget.at("diagnostics"), 700u);
  EXPECT_NE(find(results, "recovery"), nullptr);
  EXPECT_EQ(find(results, "closure:wide"), nullptr);
  const auto none = run(parse(edited(checked_study, "events = 2000\n", "budget = 0\n"))).results;
  EXPECT_EQ(none.budget.count("diagnostics"), 0u);
  EXPECT_TRUE(warns(none, "the checks have no events"));
}

TEST(Checks, DataOutsideTheSimulatedRangeAreFound) {
  const test::TemporaryFolder folder;
  std::string rows = "x\n";
  for (int i = 0; i < 300; ++i)
    rows += std::to_string(i % 3 == 0 ? 9.0 + 0.001 * i : std::sin(1.7 * i)) + "\n";
  const auto file = folder.file("observed.csv", rows);
  const auto results =
      run(parse(edited(checked_study, "events = 300", "file = \"" + file + "\""))).results;
  ASSERT_NE(find(results, "range"), nullptr);
  EXPECT_EQ(find(results, "range")->verdict, Verdict::fail);
  EXPECT_EQ(find(results, "range")->number("outside:x"), 100.0);
}

TEST(Checks, NarrowerRangesAreProposedWhereTheyPassAlone) {
  // Few events to learn from: finite simulation adds much.
  auto text = edited(checked_study, "samples = 6000", "samples = 600");
  text = edited(text, "range = [-1, 1]", "range = [-3, 3]");
  const auto study = parse(text);
  const auto done = run(study);
  ASSERT_TRUE(warns(done.results, "finite simulation adds"));
  ASSERT_LT(worst(done.results), Verdict::warn);
  const auto& fit = done.results.fit;
  const auto* narrower = step(done.results, "Narrow the ranges");
  ASSERT_NE(narrower, nullptr);
  EXPECT_EQ(narrower->keys.at(0), "parameters.mu.range");
  double low = 0.0, high = 0.0;
  ASSERT_EQ(std::sscanf(narrower->values.at(0).c_str(), "[%lf, %lf]", &low, &high), 2);
  EXPECT_LE(low, std::max(-3.0, fit.fit.point[0] - 5.0 * fit.fit.error(0)));
  EXPECT_GE(high, std::min(3.0, fit.fit.point[0] + 5.0 * fit.fit.error(0)));
  // The same model for a simulator that is another one: nothing is proposed.
  const auto other = parse(edited(text, "mean = \"mu\"", "mean = \"mu + 0.7\""));
  const auto results = diagnose_model(other, done.model);
  EXPECT_GE(worst(results), Verdict::warn);
  EXPECT_EQ(step(results, "Narrow the ranges"), nullptr);
}

TEST(Checks, ARefusalNeedsProof) {
  // A parameter that moves a hundredth of the events, in a formula: it is not refused, and where it
  // is found to do something, nothing is said.
  const auto rare =
      parse(edited(edited(checked_study, "mu = { range = [-1, 1], truth = 0.2 }",
                          "f = { range = [0, 0.01], truth = 0.005 }\n"
                          "mu = { range = [0, 10], truth = 4 }"),
                   "kind = \"normal\"\nmean = \"mu\"\nsigma = 1\n",
                   "kind = \"mixture\"\nweights = [\"1 - f\", \"f\"]\ncomponents = [{ "
                   "kind = \"uniform\", low = 0, high = 10 }, { kind = \"normal\", "
                   "mean = \"mu\", sigma = 0.3 }]\n"));
  EXPECT_TRUE(rare.notes.empty());
  // One that a formula names and that does nothing is accepted with a note; one that nothing names
  // is refused.
  const auto idle =
      edited(checked_study, "mu = { range = [-1, 1], truth = 0.2 }",
             "mu = { range = [-1, 1], truth = 0.2 }\nnu = { range = [0, 1], truth = 0.5 }");
  const auto named = parse(edited(idle, "mean = \"mu\"", "mean = \"mu + 0 * nu\""));
  ASSERT_EQ(named.notes.size(), 1u);
  EXPECT_NE(named.notes[0].find("different values of nu"), std::string::npos);
  EXPECT_NE(message_of<StudyError>([&] { parse(idle); }).find("does not depend on parameter 'nu'"),
            std::string::npos);
  EXPECT_NE(message_of<StudyError>([&] {
              parse(edited(idle, "mean = \"mu\"", "mean = \"mu + 0 * sin(mu)\""));
            }).find("'nu'"),
            std::string::npos);
}

TEST(Checks, AQuickRunOfFilesTakesATenthOfThem) {
  const test::TemporaryFolder folder;
  std::string rows = "x0,mu\n";
  const std::size_t count = 40000;
  RandomStream random(1, "quick");
  for (std::size_t i = 0; i < count; ++i) {
    const double mu = static_cast<double>(i % 5) / 2.0 - 1.0;
    rows += std::to_string(mu + random.normal()) + "," + std::to_string(mu) + "\n";
  }
  const auto events = folder.file("events.csv", rows);
  const auto observed = folder.file("observed.csv", "x0\n0.1\n0.4\n-0.2\n");
  auto text = edited(checked_study, "kind = \"normal\"\nmean = \"mu\"\nsigma = 1\n",
                     "kind = \"files\"\nfile = \"" + events + "\"\n");
  text = edited(text, "[training]\nsamples = 6000\n", "");
  text = edited(text, "events = 300", "file = \"" + observed + "\"");
  text = edited(text, ", truth = 0.2", "");
  auto study = parse(text);
  const std::size_t all = study.training_samples;
  EXPECT_EQ(all, 36000u);  // a tenth is kept for checks
  quicken(study);
  const auto results = run(study).results;
  // At least 10 000.
  EXPECT_NEAR(static_cast<double>(results.budget.at("simulated")), 10000.0, 500.0);
  ASSERT_NE(find(results, "recovery"), nullptr);  // events kept at the nearest θ
  EXPECT_NE(find(results, "recovery")->explanation.find("kept of the files at the nearest"),
            std::string::npos);
}

}  // namespace
}  // namespace neyman
