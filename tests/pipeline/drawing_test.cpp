#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "data/support.hpp"
#include "neyman/data/atomic_file.hpp"
#include "neyman/pipeline/pipeline.hpp"
#include "reports/example_results.hpp"

namespace neyman {
namespace {

namespace fs = std::filesystem;

nlohmann::json json_of(const test::TemporaryFolder& folder) {
  return nlohmann::json::parse(read_file(folder.path("results.json")));
}

/// Programs cannot be found while this lives.
class NoPrograms {
 public:
  NoPrograms() : path_(std::getenv("PATH")) { setenv("PATH", "/nonexistent", 1); }
  ~NoPrograms() { setenv("PATH", path_.c_str(), 1); }

 private:
  std::string path_;
};

TEST(DrawOutputs, FiguresStandInTheReportAndBesideIt) {
  const test::TemporaryFolder folder;
  auto results = example::results();
  results.pair_scores.clear();  // fewer figures to draw
  results.comparisons.clear();
  write_outputs(results, nullptr, folder.path(""), true);
  EXPECT_TRUE(results.warnings.empty());
  EXPECT_TRUE(json_of(folder)["timing"].contains("figures"));
  for (const char* ending : {"svg", "pdf", "gp", "dat"})
    EXPECT_TRUE(fs::exists(folder.path(std::string("figures/likelihood.") + ending))) << ending;
  EXPECT_NE(read_file(folder.path("report.html")).find("figure:likelihood"), std::string::npos);
}

TEST(DrawOutputs, WithoutGnuplotTheReportIsWrittenAllTheSame) {
  const test::TemporaryFolder folder;
  auto results = example::results();
  {
    const NoPrograms none;
    write_outputs(results, nullptr, folder.path(""), true);
  }
  ASSERT_EQ(results.warnings.size(), 1u);  // told once, not for each of seven figures
  EXPECT_NE(results.warnings[0].find("could not be drawn"), std::string::npos);
  EXPECT_NE(results.warnings[0].find("gnuplot"), std::string::npos);
  EXPECT_EQ(json_of(folder)["warnings"].size(), 1u);
  const auto page = read_file(folder.path("report.html"));
  EXPECT_NE(page.find("could not be drawn"), std::string::npos);
  EXPECT_EQ(page.find("<figure"), std::string::npos);
}

TEST(DrawOutputs, AFigureThatCannotBeDrawnCostsNoOther) {
  const test::TemporaryFolder folder;
  auto results = example::results();
  results.pair_scores.clear();
  results.comparisons.clear();
  results.fit.scans[0].statistic[3] = std::numeric_limits<double>::quiet_NaN();
  write_outputs(results, nullptr, folder.path(""), true);
  ASSERT_EQ(results.warnings.size(), 2u);
  EXPECT_NE(results.warnings[0].find("the figure 'likelihood' could not be drawn"),
            std::string::npos);
  EXPECT_NE(results.warnings[1].find("fit.scan.gamma.statistic is not a finite number"),
            std::string::npos);
  EXPECT_EQ(json_of(folder)["warnings"].size(), 2u);
  const auto page = read_file(folder.path("report.html"));
  EXPECT_NE(page.find("figure:ensemble"), std::string::npos);
  EXPECT_EQ(page.find("figure:likelihood"), std::string::npos);
  EXPECT_NE(page.find("is not a finite number"), std::string::npos);
}

}  // namespace
}  // namespace neyman
