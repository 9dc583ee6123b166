#include "neyman/reports/results_archive.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "data/support.hpp"
#include "neyman/data/archive_file.hpp"
#include "neyman/reports/results_json.hpp"
#include "neyman/reports/study_report.hpp"
#include "not_finite.hpp"
#include "reports/example_results.hpp"

namespace neyman {
namespace {

/// Through a tree and a file.
Results stored(const Results& results) {
  const test::TemporaryFolder folder;
  Archive archive;
  save_results(results, archive);
  write_archive(folder.path("results.h5"), archive, "test", 1, 0);
  return load_results(read_archive(folder.path("results.h5"), "test", 1).tree);
}

void expect_same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_EQ(std::bit_cast<std::uint64_t>(a[i]), std::bit_cast<std::uint64_t>(b[i])) << i;
}

TEST(ResultsArchive, WhatIsMadeOfResultsIsTheSameAfterwards) {
  for (const auto& results :
       {example::results(), example::two_parameters(), example::six_parameters(), Results()}) {
    const auto again = stored(results);
    if (!results.parameters.empty()) {
      EXPECT_EQ(reports::results_json(again).text, reports::results_json(results).text);
      EXPECT_EQ(reports::study_report(again), reports::study_report(results));
    }
    Archive first, second;
    save_results(results, first);
    save_results(again, second);
    EXPECT_EQ(first, second);
  }
}

TEST(ResultsArchive, NotFiniteNumbersKeepTheirBits) {
  auto results = example::results();
  const std::vector<double> hard = {nan,       -nan,      infinity,
                                    -infinity, 0.1 + 0.2, 5e-324,
                                    -0.0,      1e22,      std::numeric_limits<double>::max()};
  results.log_ratios = hard;
  results.data = Matrix(3, 3, hard);
  results.fit.fit.log_likelihood = -nan;
  results.diagnostics[0].p_value = nan;
  results.timing = {{"fit", infinity}};
  const auto again = stored(results);
  expect_same_bits(again.log_ratios, hard);
  expect_same_bits({again.data.values().begin(), again.data.values().end()}, hard);
  expect_same_bits({again.fit.fit.log_likelihood}, {-nan});
  expect_same_bits({again.diagnostics[0].p_value.value()}, {nan});
  EXPECT_EQ(again.timing[0].second, infinity);
}

TEST(ResultsArchive, AbsentAndEmptyStayApart) {
  Results results;
  results.seed = std::numeric_limits<std::uint64_t>::max();
  results.parameters = ParameterSpace({{"a", -1.0, 1.0, {}, true}, {"b", 0.0, 2.0, 0.5}});
  results.data = Matrix(0, 4);
  results.warnings = {"", "two\nlines, θ"};
  results.next_steps = {{"Narrow", {"a.range", "b.range"}, {"[0, 1]", ""}, "because"}, {}};
  results.fit.fit.at_bound = {true, false, true};
  results.fit.intervals.resize(2);  // of two parameters, at no level
  results.exact_fit.emplace();
  results.budget = {{"simulated", 0}};
  results.composite_tests.emplace_back();
  results.composite_tests[0].config.null.fixed = {{}, 0.0};
  results.composite_tests[0].config.null.ranges = {FitRange{-1.0, 0.0}, {}};
  const auto again = stored(results);
  EXPECT_EQ(again.seed, results.seed);
  EXPECT_EQ(again.parameters, results.parameters);
  EXPECT_EQ(again.data.cols(), 4u);
  EXPECT_EQ(again.warnings, results.warnings);
  ASSERT_EQ(again.next_steps.size(), 2u);
  EXPECT_EQ(again.next_steps[0].keys, results.next_steps[0].keys);
  EXPECT_EQ(again.next_steps[0].values, results.next_steps[0].values);
  EXPECT_EQ(again.next_steps[0].what + again.next_steps[0].reason, "Narrowbecause");
  EXPECT_TRUE(again.next_steps[1].keys.empty());
  EXPECT_EQ(again.fit.fit.at_bound, results.fit.fit.at_bound);
  EXPECT_EQ(again.fit.intervals.size(), 2u);
  EXPECT_TRUE(again.exact_fit);
  EXPECT_FALSE(again.test || again.ensemble || again.coverage);
  EXPECT_EQ(again.budget, results.budget);
  const auto& null = again.composite_tests.at(0).config.null;
  EXPECT_EQ(null.fixed, results.composite_tests[0].config.null.fixed);
  ASSERT_EQ(null.ranges.size(), 2u);
  EXPECT_EQ(null.ranges[0]->low, -1.0);
  EXPECT_FALSE(null.ranges[1]);
}

TEST(ResultsArchive, NamesWhatIsMissing) {
  EXPECT_NE(test::message_of<FileError>([] { load_results(Archive()); }).find("name"),
            std::string::npos);
}

}  // namespace
}  // namespace neyman
