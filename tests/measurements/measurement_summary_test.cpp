#include "neyman/measurements/measurement_summary.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "known_models.hpp"

namespace neyman {
namespace {

using testing::counting_workspace;
using testing::reference_model;
using testing::reference_names;

/// Characters of a line of UTF-8.
std::size_t width(const std::string& line) {
  std::size_t count = 0;
  for (const unsigned char byte : line) count += (byte & 0xC0) != 0x80;
  return count;
}

TEST(MeasurementSummary, HoldsWhatItsPartsSay) {
  for (const auto* name : reference_names) {
    const auto model = reference_model(name);
    const auto summary = summarise(model, model.observed());
    EXPECT_TRUE(summary.problems.empty()) << name << ": " << summary.problems[0];
    const auto json = nlohmann::json::parse(summary_json(summary));
    EXPECT_EQ(json["schema"], "neyman.measurement/1");
    EXPECT_EQ(json["interest"], "mu");
    const auto best = fit_model(model);
    const auto& mu = json["fit"]["parameters"]["mu"];
    EXPECT_EQ(mu["estimate"].get<double>(), best.point[0]);
    EXPECT_EQ(mu["error"].get<double>(), best.error(0));
    EXPECT_EQ(mu.contains("at_bound"), best.at_bound[0]);
    EXPECT_LT(mu["interval"][0].get<double>(), mu["interval"][1].get<double>());
    EXPECT_EQ(json["fit"]["correlations"]["matrix"].size(), model.size());
    const auto limit = upper_limit(model, model.observed());
    EXPECT_EQ(json["limit"]["observed"].get<double>(), limit.observed);
    EXPECT_EQ(json["limit"]["expected"]["-1"].get<double>(), limit.expected[1]);
    EXPECT_EQ(json["discovery"]["significance"].get<double>(),
              discovery(model, model.observed()).significance);
    std::istringstream lines(summary_text(summary));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(width(line), 80u) << line;
  }
}

TEST(MeasurementSummary, FixedParametersHaveNoErrorAndNoImpact) {
  const auto model = reference_model("nothing_seen");
  const auto json = nlohmann::json::parse(summary_json(summarise(model, model.observed())));
  const auto& theory = json["fit"]["parameters"]["theory"];
  EXPECT_EQ(theory["estimate"], 0.0);
  EXPECT_EQ(theory["error"], 0.0);
  EXPECT_FALSE(theory.contains("interval"));
  EXPECT_FALSE(theory.contains("impact"));
}

TEST(MeasurementSummary, HasTheCurvesThatFiguresShow) {
  for (const auto* name : reference_names) {
    const auto model = reference_model(name);
    const auto summary = summarise(model, model.observed());
    const std::size_t interest = model.interest();
    ASSERT_TRUE(summary.profile) << name;
    const auto& scan = *summary.profile;
    EXPECT_EQ(scan.failed, 0u);
    double lowest = 1.0;
    for (std::size_t i = 0; i < scan.values.size(); ++i) {
      // Parameters that may move fit at least as well as those that are held.
      EXPECT_LE(scan.statistic[i], scan.held_statistic[i] + 1e-7) << name;
      EXPECT_TRUE(i == 0 || scan.values[i - 1] < scan.values[i]);
      if (scan.values[i] == summary.fit.point[interest]) lowest = scan.statistic[i];
    }
    EXPECT_NEAR(lowest, 0.0, 1e-8) << name;
    // −2 log Λ is 1 at the ends of the interval.
    const auto& interval = summary.intervals[interest];
    const auto ends =
        profile_scan(model, model.observed(), summary.fit, interest, {interval.low, interval.high});
    EXPECT_TRUE(interval.low_at_bound || std::abs(ends.statistic[0] - 1.0) < 1e-4) << name;
    EXPECT_TRUE(interval.high_at_bound || std::abs(ends.statistic[1] - 1.0) < 1e-4) << name;
    ASSERT_EQ(summary.cl_s.size(), 41u);
    EXPECT_EQ(summary.cl_s.front().tested, 0.0);
    EXPECT_EQ(summary.cl_s.front().cl_s, 1.0);
    EXPECT_GT(summary.cl_s.back().tested, summary.limit->observed);
    const auto& middle = summary.cl_s[20];
    const auto alone = asymptotic_test(model, model.observed(), middle.tested);
    EXPECT_NEAR(middle.cl_s, alone.cl_s, 1e-6) << name;
    EXPECT_NEAR(middle.expected_cl_s[1], alone.expected_cl_s[1], 1e-6);
    const auto json = nlohmann::json::parse(summary_json(summary));
    EXPECT_EQ(json["profile"]["values"].size(), scan.values.size());
    EXPECT_EQ(json["cl_s"]["expected"]["2"].size(), 41u);
    EXPECT_EQ(json["histograms"].size(), summary.histograms.size());
    EXPECT_EQ(json["histograms"][0]["after"]["total"].size(),
              summary.histograms[0].observed.size());
  }
}

TEST(MeasurementSummary, PartsOfTheErrorAddUpToIt) {
  const auto model = reference_model("counting");
  MeasurementOptions options;
  const auto plain = summarise(model, model.observed(), options);
  ASSERT_EQ(plain.error_parts.size(), 2u);
  EXPECT_EQ(plain.error_parts[0].group, "systematic");
  const std::size_t own = model.constraints()[0].parameter();
  options.groups = {{"mine", {model.parameters()[own].name}}};
  options.curve_points = 0;
  const auto grouped = summarise(model, model.observed(), options);
  EXPECT_FALSE(grouped.profile);
  EXPECT_TRUE(grouped.cl_s.empty());
  ASSERT_EQ(grouped.error_parts.size(), 3u);
  EXPECT_EQ(grouped.error_parts[0].group, "mine");
  for (const auto* summary : {&plain, &grouped}) {
    double squares = 0.0;
    for (const auto& part : summary->error_parts) squares += part.error * part.error;
    const double error = summary->fit.error(model.interest());
    EXPECT_NEAR(squares, error * error, 1e-9 * error * error);
  }
  const auto json = nlohmann::json::parse(summary_json(grouped));
  EXPECT_EQ(json["error_parts"]["mine"].get<double>(), grouped.error_parts[0].error);
  options.groups = {{"mine", {"nobody"}}};
  const auto wrong = summarise(model, model.observed(), options);
  ASSERT_EQ(wrong.problems.size(), 1u);
  EXPECT_NE(wrong.problems[0].find("'nobody' is not a parameter"), std::string::npos);
}

TEST(MeasurementSummary, ToysAreAsked) {
  const auto model = reference_model("counting");
  MeasurementOptions options;
  options.toys = 400;
  options.seed = 3;
  const auto summary = summarise(model, model.observed(), options);
  ASSERT_TRUE(summary.toy_limit) << summary.problems[0];
  // CL_s of 0.05 ± 0.015; 6 standard errors.
  EXPECT_NEAR(summary.toy_limit->observed, summary.limit->observed, 0.4 * summary.limit->observed);
  const auto json = nlohmann::json::parse(summary_json(summary));
  EXPECT_EQ(json["toy_limit"]["tests"].size(), 10u);
  EXPECT_EQ(json["toy_limit"]["toys"], 400);
}

TEST(MeasurementSummary, TellsWhatCannotBeHad) {
  // A range that ends before the limits do.
  const StatisticalModel narrow(counting_workspace(3.0, 8.0, 20.0, 0.0, 4.5));
  const auto limited = summarise(narrow, narrow.observed());
  ASSERT_EQ(limited.problems.size(), 1u);
  EXPECT_NE(limited.problems[0].find("CL_s of the observed limit at mu = 4.5"), std::string::npos);
  EXPECT_FALSE(limited.limit);
  EXPECT_TRUE(limited.discovery);
  EXPECT_NE(summary_text(limited).find("Problem: CL_s"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(summary_json(limited))["problems"].size(), 1u);
  // A fit that fails.
  auto workspace = counting_workspace(3.0, 2.0, 14.0);
  workspace.channels[0].samples[0].modifiers.push_back(Modifier::norm_factor("nu"));
  const StatisticalModel flat(workspace);
  const auto failed = summarise(flat, flat.observed());
  ASSERT_EQ(failed.problems.size(), 1u);
  EXPECT_EQ(failed.problems[0], "the fit failed: the data do not determine mu, nu");
  EXPECT_EQ(nlohmann::json::parse(summary_json(failed))["fit"]["status"], "failed");
}

}  // namespace
}  // namespace neyman
