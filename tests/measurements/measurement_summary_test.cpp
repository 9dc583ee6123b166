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
