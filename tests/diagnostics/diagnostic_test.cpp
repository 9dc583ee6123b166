#include "neyman/diagnostics/diagnostic.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "diagnostics/problems.hpp"
#include "neyman/classifiers/mlp.hpp"
#include "neyman/core/error.hpp"
#include "neyman/diagnostics/closure.hpp"
#include "neyman/diagnostics/normalisation.hpp"
#include "neyman/diagnostics/ratio_diagnostics.hpp"
#include "neyman/diagnostics/reliability.hpp"
#include "neyman/diagnostics/reweighting.hpp"

namespace neyman {
namespace {

using Verdict = Diagnostic::Verdict;
using testing::ShiftedNormals;

Diagnostic with_p_value(std::optional<double> p_value) {
  Diagnostic out;
  out.p_value = p_value;
  return out;
}

TEST(Judge, HolmsCorrection) {
  // Of three p-values 1e-4, 4e-3 and 0.5, the corrected are 3e-4, 8e-3 and 0.5.
  std::vector<Diagnostic> set = {with_p_value(4e-3), with_p_value(0.5), with_p_value(1e-4),
                                 with_p_value(std::nullopt)};
  const auto found = judge(set);
  EXPECT_EQ(set[0].verdict, Verdict::warn);
  EXPECT_EQ(set[1].verdict, Verdict::pass);
  EXPECT_EQ(set[2].verdict, Verdict::fail);
  EXPECT_EQ(set[3].verdict, Verdict::pass);
  EXPECT_EQ(found.verdict, Verdict::fail);
  EXPECT_NEAR(found.p_value, 3e-4, 1e-15);
  EXPECT_EQ(found.warned, 1u);
  EXPECT_EQ(found.failed, 1u);
  EXPECT_EQ(judge({}).verdict, Verdict::pass);
}

TEST(Judge, KeepsWarningsThatHaveAReason) {
  auto limited = with_p_value(0.5);
  limited.verdict = Verdict::warn;
  limited.note = "has no power here";
  auto without = with_p_value(std::nullopt);
  without.verdict = Verdict::fail;
  std::vector<Diagnostic> set = {limited, without};
  EXPECT_EQ(judge(set).failed, 1u);
  EXPECT_EQ(set[0].verdict, Verdict::warn);
  // A warning from a p-value alone is judged again among the others.
  auto chance = with_p_value(5e-3);
  chance.verdict = Verdict::warn;
  std::vector<Diagnostic> many(10, with_p_value(0.4));
  many.push_back(chance);
  EXPECT_EQ(judge(many).verdict, Verdict::pass);
}

TEST(Judge, FalseAlarmsOfASet) {
  // Sets of eight true hypotheses: 1 % warn. Of 20 000, 200 ± 14; ± 5 standard deviations.
  RandomStream random(1, "judge-test");
  std::size_t warned = 0, failed = 0;
  for (int set = 0; set < 20000; ++set) {
    std::vector<Diagnostic> diagnostics;
    for (int i = 0; i < 8; ++i) diagnostics.push_back(with_p_value(random.uniform()));
    const auto found = judge(diagnostics);
    warned += found.verdict != Verdict::pass;
    failed += found.verdict == Verdict::fail;
  }
  EXPECT_GT(warned, 130u);
  EXPECT_LT(warned, 270u);
  EXPECT_LT(failed, 45u);
}

std::vector<Diagnostic> diagnose(const ShiftedNormals& problem, std::uint64_t seed) {
  const auto events = problem.events();
  return {diagnose_reweighting(events, testing::quick_reweighting(seed)),
          diagnose_normalisation(events), diagnose_reliability(events), diagnose_closure(events)};
}

TEST(Judge, GoodRatiosPassAndPoorOnesFail) {
  // Good: exact, or off by a hundredth, as a well-trained network is. A set warns in 1 % of the
  // runs, so that 20 pass but for one with a probability of 98 %, and this seed is fixed.
  std::size_t good = 0, flat = 0, slanted = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    ShiftedNormals problem(100 + seed, 10000, 1.0);
    problem.learn([](std::span<const double> x, double log_ratio) {
      return log_ratio + 0.01 * std::sin(3.0 * x[0]) * x[1];
    });
    auto set = diagnose(problem, seed);
    good += judge(set).verdict == Verdict::pass;
    problem.learn_slope(0.85);
    set = diagnose(problem, seed);
    flat += judge(set).verdict == Verdict::fail;
    problem.learn(
        [](std::span<const double> x, double log_ratio) { return log_ratio + 0.15 * x[1]; });
    set = diagnose(problem, seed);
    slanted += judge(set).verdict == Verdict::fail;
  }
  EXPECT_GE(good, 19u);
  EXPECT_EQ(flat, 20u);
  EXPECT_EQ(slanted, 20u);
}

TEST(Diagnostic, WordsAndNumbers) {
  EXPECT_EQ(to_string(Verdict::pass), "pass");
  EXPECT_EQ(to_string(Verdict::no_power), "no power");
  EXPECT_EQ(to_string(Verdict::warn), "warn");
  EXPECT_EQ(to_string(Verdict::fail), "fail");
  EXPECT_EQ(verdict_of(0.5), Verdict::pass);
  EXPECT_EQ(verdict_of(5e-3), Verdict::warn);
  EXPECT_EQ(verdict_of(5e-4), Verdict::fail);
  Diagnostic diagnostic;
  diagnostic.numbers = {{"area", 0.5}};
  EXPECT_EQ(diagnostic.number("area"), 0.5);
  EXPECT_FALSE(diagnostic.number("volume").has_value());
}

TEST(RatioDiagnostics, EveryNameRunsTheDiagnosticOfThatName) {
  const ShiftedNormals problem(1, 500, 0.5);
  for (const auto& name : ratio_diagnostics())
    EXPECT_EQ(diagnose_events(name, problem.events(), 1).name, name);
  EXPECT_THROW(diagnose_events("closures", problem.events(), 1), ArgumentError);
}

TEST(Judge, WhatHasNoPowerIsNotCounted) {
  const auto of = [](Verdict verdict, std::optional<double> p_value = {}) {
    Diagnostic out;
    out.verdict = verdict;
    out.p_value = p_value;
    return out;
  };
  // Its p-value says nothing: neither for itself nor in the number of tests.
  std::vector<Diagnostic> set = {of(Verdict::no_power, 1e-9), of(Verdict::pass, 0.006)};
  auto found = judge(set);
  EXPECT_EQ(set[0].verdict, Verdict::no_power);
  EXPECT_EQ(set[1].verdict, Verdict::warn);
  EXPECT_EQ(found.verdict, Verdict::warn);
  EXPECT_EQ(found.p_value, 0.006);
  set = {of(Verdict::no_power), of(Verdict::pass, 0.5)};
  EXPECT_EQ(judge(set).verdict, Verdict::pass);
  set = {of(Verdict::no_power), of(Verdict::no_power)};
  EXPECT_EQ(judge(set).verdict, Verdict::no_power);
  EXPECT_EQ(worst_of({}), Verdict::pass);
}

TEST(Judge, WhatIsSureButSmallIsNoFailure) {
  std::vector<Diagnostic> set(1);
  set[0].p_value = 1e-9;
  set[0].worst = Verdict::warn;
  EXPECT_EQ(judge(set).verdict, Verdict::warn);
}

}  // namespace
}  // namespace neyman
