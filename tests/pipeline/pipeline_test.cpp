#include "neyman/pipeline/pipeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "data/support.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/simulators/distribution.hpp"
#include "pipeline/small_study.hpp"

namespace neyman {
namespace {

using test::parse;
using test::small_study;
using test::with;

const std::string with_everything = small_study + R"(
[inference.test]
null = { gamma = 0.1 }
alternative = { gamma = 0.3 }
datasets = 20

[ensemble]
datasets = 20
events = 100

[compare]
classifiers = [{ kind = "logistic" }]
events = 200
)";

/// Events of the small study's simulator as a file, each line followed by `behind`.
std::string events_file(const test::TemporaryFolder& folder, const std::string& header,
                        const std::string& behind = "") {
  const auto study = parse(small_study);
  std::string text = header + "\n";
  const auto x = sample(*study.simulator, std::vector{0.3}, 400, 11, "test");
  for (std::size_t i = 0; i < x.rows(); ++i) text += std::to_string(x(i, 0)) + behind + "\n";
  return folder.file("events.csv", text);
}

void expect_same(const FitReport& a, const FitReport& b) {
  EXPECT_EQ(a.fit.point, b.fit.point);
  EXPECT_EQ(a.fit.log_likelihood, b.fit.log_likelihood);
  EXPECT_EQ(a.fit.covariance, b.fit.covariance);
  EXPECT_EQ(a.fit.simulation_covariance, b.fit.simulation_covariance);
  ASSERT_EQ(a.intervals.size(), b.intervals.size());
  for (std::size_t p = 0; p < a.intervals.size(); ++p)
    for (std::size_t l = 0; l < a.intervals[p].size(); ++l) {
      EXPECT_EQ(a.intervals[p][l].low, b.intervals[p][l].low);
      EXPECT_EQ(a.intervals[p][l].high, b.intervals[p][l].high);
    }
  EXPECT_EQ(a.scans[0].statistic, b.scans[0].statistic);
}

TEST(Run, ProgressIsNamedAfterItsStage) {
  std::vector<std::string> tasks;
  set_progress_sink([&](const ProgressState& state) {
    if (tasks.empty() || tasks.back() != state.task) tasks.push_back(state.task);
  });
  run(parse(with_everything));
  set_progress_sink({});
  const auto at = [&](const char* task) {
    return std::find(tasks.begin(), tasks.end(), task) - tasks.begin();
  };
  const auto end = static_cast<std::ptrdiff_t>(tasks.size());
  ASSERT_LT(at("train"), end);
  ASSERT_LT(at("compare"), end);
  // What the comparison trains is not the training.
  EXPECT_EQ(std::count(tasks.begin(), tasks.end(), "train"), 1);
  EXPECT_LT(at("train"), at("compare"));
}

TEST(Run, CountsWhatItSimulates) {
  const auto results = run(parse(with_everything)).results;
  EXPECT_EQ(results.budget.at("simulated"), 4001u);  // odd: nothing is lost in the division
  EXPECT_EQ(results.budget.at("test"), 2u * 20u * 500u);
  EXPECT_EQ(results.budget.at("ensemble"), 20u * 100u);
  EXPECT_EQ(results.budget.at("compare"), 4000u);
  EXPECT_EQ(results.events, 500u);
  EXPECT_EQ(results.data_source, "simulated at the truth");
}

TEST(Run, AgreesWithTheExactRatio) {
  // Linear log ratios, learned by a logistic classifier from 4001 events: the estimate is within
  // the uncertainty that the run itself reports for finite simulation, five times over (a false
  // alarm in two million seeds; the seed is fixed).
  const auto results = run(parse(small_study)).results;
  ASSERT_TRUE(results.exact_fit);
  EXPECT_TRUE(results.fit.fit.ok());
  const double simulation = results.fit.fit.simulation_error(0);
  EXPECT_GT(simulation, 0.0);
  EXPECT_EQ(results.exact_fit->fit.simulation_error(0), 0.0);
  EXPECT_LT(std::abs(results.fit.fit.point[0] - results.exact_fit->fit.point[0]), 5.0 * simulation);
  for (std::size_t l = 0; l < results.levels.size(); ++l) {
    EXPECT_LT(results.fit.intervals[0][l].low, results.fit.statistical_intervals[0][l].low);
    EXPECT_GT(results.fit.intervals[0][l].high, results.fit.statistical_intervals[0][l].high);
  }
}

TEST(Run, IsTheSameOnOneAndTwoThreads) {
  const auto study = parse(with_everything);
  set_threads(1);
  const auto one = run(study).results;
  set_threads(2);
  const auto two = run(study).results;
  set_threads(0);
  expect_same(one.fit, two.fit);
  expect_same(*one.exact_fit, *two.exact_fit);
  EXPECT_EQ(one.test->null_statistics, two.test->null_statistics);
  EXPECT_EQ(one.test->p_value, two.test->p_value);
  EXPECT_EQ(one.ensemble->approximate.estimates, two.ensemble->approximate.estimates);
  EXPECT_EQ(one.ensemble->exact->statistic, two.ensemble->exact->statistic);
  EXPECT_EQ(one.log_ratios, two.log_ratios);
  EXPECT_EQ(one.comparisons[0].calibrated, two.comparisons[0].calibrated);
  EXPECT_EQ(one.pair_scores[0].calibrated, two.pair_scores[0].calibrated);
}

TEST(Run, AnotherSeedGivesOtherEvents) {
  auto study = parse(small_study);
  const auto first = run(study).results;
  reseed(study, 4);
  const auto second = run(study).results;
  EXPECT_NE(first.data, second.data);
  EXPECT_NE(first.fit.fit.point, second.fit.fit.point);
}

TEST(Run, StopsWhereAsked) {
  const auto study = parse(small_study);
  request_stop();
  EXPECT_THROW(run(study), Interrupted);
  clear_stop();
}

TEST(FitData, GivesTheRunsFitOnTheRunsData) {
  const test::TemporaryFolder folder;
  events_file(folder, "x");
  const auto done = run(parse(with("events = 500", "file = \"events.csv\""), folder.path("")));
  const auto data = read_samples(folder.path("events.csv")).samples;
  const auto again = fit_data(done.model, data, "events.csv");
  expect_same(done.results.fit, again.fit);
  EXPECT_EQ(again.events, 400u);
  EXPECT_EQ(again.outside, done.results.outside);
  // Without the simulator two checks are left: of the ratio, and of where the data lie.
  ASSERT_EQ(again.diagnostics.size(), 2u);
  EXPECT_NE(again.diagnostics[0].name == "normalisation",
            again.diagnostics[1].name == "normalisation");
  EXPECT_FALSE(again.exact_fit || again.test || again.ensemble);
  EXPECT_TRUE(again.budget.empty());
}

TEST(FitData, RefusesDataOfAnotherShape) {
  const auto done = run(parse(small_study));
  Samples data;
  data.x = Matrix(3, 2);
  EXPECT_THROW(fit_data(done.model, data, "wide"), ArgumentError);
}

TEST(Data, WeightsEqualRepetition) {
  const test::TemporaryFolder folder;
  events_file(folder, "x,w", ",2");
  const auto weighted =
      run(parse(with("events = 500", "file = \"events.csv\"\nweights = \"w\""), folder.path("")));
  ReadOptions only_x;
  only_x.features = {"x"};
  Samples twice = read_samples(folder.path("events.csv"), only_x).samples;
  const auto once = fit_data(weighted.model, twice, "once");
  twice.append(Samples(twice));
  const auto repeated = fit_data(weighted.model, twice, "twice");
  const auto& fit = weighted.results.fit.fit;
  EXPECT_NEAR(fit.point[0], repeated.fit.fit.point[0], 1e-6);
  EXPECT_NEAR(fit.statistical_error(0), repeated.fit.fit.statistical_error(0), 1e-8);
  EXPECT_NEAR(fit.log_likelihood, repeated.fit.fit.log_likelihood,
              1e-9 * std::abs(fit.log_likelihood));
  // The estimate is that of the data once; the error is not.
  EXPECT_NEAR(once.fit.fit.statistical_error(0), std::sqrt(2.0) * fit.statistical_error(0), 1e-6);
}

TEST(Data, DroppedRowsAreAWarning) {
  const test::TemporaryFolder folder;
  const auto path = events_file(folder, "x");
  const auto clean = run(parse(with("events = 500", "file = \"events.csv\""), folder.path("")));
  std::ofstream(path, std::ios::app) << "nan\n\"\"\n";
  const auto dropped = run(
      parse(with("events = 500", "file = \"events.csv\"\ninvalid = \"drop\""), folder.path("")));
  EXPECT_EQ(dropped.results.events, 400u);
  expect_same(clean.results.fit, dropped.results.fit);
  ASSERT_EQ(dropped.results.warnings.size(), clean.results.warnings.size() + 1);
  EXPECT_EQ(dropped.results.warnings[0],
            "2 of 402 rows of the data were dropped: a value is missing or not finite");
}

TEST(Data, OneEventIsEnough) {
  const auto results = run(parse(with("events = 500", "events = 1"))).results;
  EXPECT_TRUE(results.fit.fit.ok());
  for (const auto& interval : results.fit.intervals[0]) {
    EXPECT_TRUE(std::isfinite(interval.low) && std::isfinite(interval.high));
    EXPECT_GE(interval.low, 0.0);
    EXPECT_LE(interval.high, 1.0);
  }
}

}  // namespace
}  // namespace neyman
