#include "neyman/simulators/describe.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "neyman/data/settings_file.hpp"
#include "neyman/simulators/distribution.hpp"

namespace neyman {
namespace {

namespace fs = std::filesystem;

class DescribeTest : public testing::Test {
 protected:
  void SetUp() override {
    folder = fs::temp_directory_path() / ("neyman describe " + std::to_string(getpid()));
    fs::create_directories(folder);
    for (const char* name : {"a.csv", "b.csv", "c.csv", "d.csv"})
      std::ofstream(folder / name) << "x\n1\n2\n";
  }
  void TearDown() override { fs::remove_all(folder); }
  std::string words(const std::string& toml,
                    const ParameterSpace& space = ParameterSpace({{"alpha", 0, 1, {}}})) const {
    auto settings = parse_settings(toml, "study.toml");
    const auto made = make_distribution(settings, space, folder.string());
    std::string problems;
    for (const auto& problem : settings.problems()) problems += to_string(problem) + "\n";
    EXPECT_NE(made, nullptr) << problems;
    return made ? describe(*made) : problems;
  }

  fs::path folder;
};

TEST_F(DescribeTest, SimulatorsThatAreNotOurs) {
  EXPECT_EQ(words("kind = 'command'\ncommand = ['true', '{alpha}', '{n}', '{seed}', '{output}']\n"
                  "columns = ['x']\ntrial = 0"),
            "command: true {alpha} {n} {seed} {output}");
  EXPECT_EQ(words("kind = 'plugin'\nlibrary = '" NEYMAN_TEST_PLUGINS "/GOOD.so'",
                  ParameterSpace({{"alpha", -3, 3, {}}, {"gamma", 0, 1, {}}})),
            "plugin: GOOD.so");
  EXPECT_EQ(words("kind = 'files'\nfile = 'a.csv'"), "files: a.csv");
  EXPECT_EQ(words("kind = 'files'\ntables = [{ file = 'a.csv', point = { alpha = 0 } },"
                  "{ file = 'b.csv', point = { alpha = 0.2 } },"
                  "{ file = 'c.csv', point = { alpha = 0.4 } },"
                  "{ file = 'd.csv', point = { alpha = 1 } }]"),
            "files: a.csv, b.csv, c.csv and 1 more");
}

TEST_F(DescribeTest, Compositions) {
  EXPECT_EQ(words("kind = 'normal'\nmean = 'alpha'\nsigma = 1"), "normal");
  EXPECT_EQ(words("kind = 'join'\nparts = [{ kind = 'normal', mean = 0, sigma = 1 },"
                  "{ kind = 'exponential', rate = 1 }]"),
            "join (normal, exponential)");
  EXPECT_EQ(words("kind = 'mixture'\nweights = ['1 - alpha', 'alpha']\ncomponents = ["
                  "{ name = 'background', kind = 'files', file = 'a.csv' },"
                  "{ name = 'signal', kind = 'normal', mean = 0, sigma = 1 }]"),
            "mixture of background (files: a.csv) and signal (normal)");
}

}  // namespace
}  // namespace neyman
