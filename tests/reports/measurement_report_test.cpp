#include "neyman/reports/measurement_report.hpp"

#include <gtest/gtest.h>

#include "neyman/reports/measurement_figures.hpp"
#include "reports/example_measurement.hpp"
#include "reports/xml_check.hpp"

namespace neyman::reports {
namespace {

DrawnFigure undrawn(const Figure& figure) {
  DrawnFigure out;
  out.name = figure.name;
  out.title = figure.title;
  out.caption = figure.caption;
  out.panels = {"<svg role=\"img\"></svg>"};
  return out;
}

std::string page_of(const MeasurementSummary& summary, const MeasurementOrigin& origin) {
  std::vector<DrawnFigure> figures;
  for (const auto& figure : measurement_figures(summary)) figures.push_back(undrawn(figure));
  return measurement_report(summary, origin, figures);
}

/// Where words stand; fails if they do not.
std::size_t place_in(const std::string& page, const std::string& words) {
  const auto at = page.find(words);
  EXPECT_NE(at, std::string::npos) << words;
  return at;
}

TEST(MeasurementReport, TheResultThenItsParts) {
  MeasurementOptions options;
  options.groups = {{"jets", {"alpha_0", "alpha_1"}}};
  const auto summary = example::measured(example::search(4, 3), options);
  const auto page =
      page_of(summary, {"A search", "workspace.json", "", "neyman limit workspace.json", {}});
  testing::parse_xml(page);
  std::size_t last = 0;
  for (const auto* words :
       {"A search", "(error: jets ", "The background alone is disfavoured by", ">Measurement</h2>",
        "χ² of the saturated model", ">Upper limit</h2>", "asymptotic formulae",
        ">Nuisance parameters</h2>", "Constraint", ">Before and after the fit</h2>",
        ">What was asked</h2>", "signal_region (4 bins) and control (4 bins)", ">To repeat</h2>",
        "neyman limit workspace.json"}) {
    const auto at = page.find(words, last);
    EXPECT_NE(at, std::string::npos) << words;
    last = at == std::string::npos ? last : at;
  }
  for (const auto& figure : measurement_figures(summary)) place_in(page, figure.name);
}

TEST(MeasurementReport, ShapesOfVariationsAreTold) {
  auto summary = example::measured(example::search(4, 3));
  EXPECT_EQ(page_of(summary, {"A search"}).find("Shapes of variations"), std::string::npos);
  summary.variations = {
      {"first", "alpha_0", LearnedVariation::Events::own, {{"difference", 12.34, 0.97, 0.95}}},
      {"second", "alpha_1", LearnedVariation::Events::weighted, {{"mean", -0.42, 0.0, 0.0}}},
      {"third", "alpha_2", LearnedVariation::Events::nominal, {}}};
  const auto page = page_of(summary, {"A search"});
  testing::parse_xml(page);
  for (const auto* words : {"Shapes of variations", "12.3σ", "97 %", "−0.4σ", "their own",
                            "nominal, other weights", "those of the nominal sample"})
    place_in(page, words);
}

// Numbers that stand side by side have the same decimals.
TEST(MeasurementReport, LimitsAndImpactsAreRoundedAlike) {
  auto summary = example::measured(example::search(4, 3));
  ASSERT_TRUE(summary.limit);
  summary.toy_limit.reset();
  summary.limit->observed = 1.8807;
  summary.limit->expected = {0.6503, 0.8749, 1.2266, 1.7495, 2.4402};
  ASSERT_EQ(summary.impacts.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const double part = i == 0 ? 1.0 : 0.1;
    summary.impacts[i].ok = true;
    summary.impacts[i].up = -0.2996 * part;
    summary.impacts[i].down = 0.2503 * part;
  }
  const auto page = page_of(summary, {"t"});
  place_in(page,
           "μ &lt; 1.88 at 95\u00a0% by CL<sub>s</sub> with q-tilde; expected without signal "
           "1.23 (±1σ: 0.87 to 1.75).");
  for (const char* cell : {">1.88</td>", ">1.23</td>", ">0.87 to 1.75</td>", ">0.65 to 2.44</td>",
                           ">−0.300</td>", ">+0.250</td>", ">−0.030</td>", ">+0.025</td>"})
    place_in(page, cell);
}

TEST(MeasurementReport, SaysWhereItDoesNotShowAllFeatures) {
  auto summary = example::measured(example::search(2, 1));
  for (auto& histogram : summary.histograms) histogram.feature = "mass";
  summary.features = summary.histograms.size();
  EXPECT_EQ(page_of(summary, {"A search"}).find("Shown are"), std::string::npos);
  summary.features = 23;
  place_in(page_of(summary, {"A search"}), "Shown are 2 of 23 features");
}

TEST(MeasurementReport, TroubleIsTold) {
  auto workspace = example::search(2, 1);
  workspace.measurements[0].parameters[0].range = {{0.0, 0.2}};
  workspace.measurements[0].parameters[0].start = {0.1};
  const auto summary = example::measured(workspace);
  ASSERT_FALSE(summary.problems.empty());
  const auto page = page_of(summary, {"t", "", "", "", {"gnuplot is missing"}});
  testing::parse_xml(page);
  place_in(page, "What could not be had:");
  place_in(page, "CL<sub>s</sub> of the observed limit at mu = 0.2");
  place_in(page, "gnuplot is missing");
}

TEST(MeasurementReport, AFailedFitAndNamesOfAnyKind) {
  auto workspace = example::search(2, 0);
  for (auto& channel : workspace.channels)
    channel.samples[0].modifiers.push_back(Modifier::norm_factor("<twin> & 'co'"));
  const auto page = page_of(example::measured(workspace), {"<t>", "a & b.json", "", "", {}});
  testing::parse_xml(page);
  place_in(page, "The fit did not converge.");
  place_in(page, "&lt;twin&gt;");
}

}  // namespace
}  // namespace neyman::reports
