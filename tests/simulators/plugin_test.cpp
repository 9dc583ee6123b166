#include "neyman/simulators/plugin.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "neyman/core/parallel.hpp"
#include "neyman/data/settings_file.hpp"
#include "neyman/simulators/design.hpp"
#include "simulators/reference.hpp"

// The plugin: mass ~ N(α, 1 + γ), time ~ N(0, 1); it names γ first.
namespace neyman {
namespace {

const ParameterSpace plugin_space({{"alpha", -3, 3, 1.0}, {"gamma", 0, 1, {}}});

std::string path_of(const std::string& variant) {
  return std::string(NEYMAN_TEST_PLUGINS) + "/" + variant + ".so";
}

Plugin load(const std::string& variant, std::size_t events_per_run = 1) {
  return Plugin({path_of(variant), events_per_run}, plugin_space);
}

/// What a study with this library has for problems.
std::string problem_of(const std::string& library,
                       const ParameterSpace& parameters = plugin_space) {
  auto settings = parse_settings("kind = \"plugin\"\nlibrary = \"" + library + "\"", "study.toml");
  const auto made = make_distribution(settings, parameters, NEYMAN_TEST_PLUGINS);
  EXPECT_EQ(made, nullptr);
  return settings.problems().empty() ? "" : to_string(settings.problems().front());
}

TEST(Plugin, KnowsItsFeatures) {
  const auto plugin = load("GOOD");
  EXPECT_EQ(plugin.dimension(), 2u);
  EXPECT_EQ(plugin.feature_names(), (std::vector<std::string>{"mass", "time"}));
  EXPECT_TRUE(plugin.thread_safe());
  EXPECT_FALSE(load("UNSAFE").thread_safe());
}

// Parameters are matched by name, not by place: mean α and width 1 + γ. Means of 20000 events lie
// within 5 standard errors: false alarm 1e-6.
TEST(Plugin, GetsTheParametersInItsOwnOrder) {
  const auto x = sample(load("GOOD"), std::vector<double>{2.0, 0.5}, 20000, 1, "test");
  double mean = 0.0, square = 0.0, other = 0.0;
  for (std::size_t i = 0; i < x.rows(); ++i) {
    mean += x(i, 0) / 20000;
    square += std::pow(x(i, 0) - 2.0, 2) / 20000;
    other += x(i, 1) / 20000;
  }
  EXPECT_NEAR(mean, 2.0, 5 * 1.5 / std::sqrt(20000.0));
  EXPECT_NEAR(square, 2.25, 5 * 2.25 * std::sqrt(2.0 / 20000.0));
  EXPECT_NEAR(other, 0.0, 5 / std::sqrt(20000.0));
}

TEST(Plugin, IsCalledByOneThreadAtATimeWhereItMustBe) {
  set_threads(4);
  EXPECT_NO_THROW(sample(load("UNSAFE"), std::vector<double>{0.0, 0.5}, 20 * 2048, 1, "test"));
  set_threads(0);
}

TEST(Plugin, ErrorsNameTheLibraryAndSayWhatToDo) {
  const auto expect = [](const std::string& variant, const std::string& text) {
    const auto problem = problem_of(variant + ".so");
    EXPECT_TRUE(reference::contains(problem, text)) << problem;
    EXPECT_TRUE(reference::contains(problem, "study.toml:2: library ")) << problem;
    EXPECT_TRUE(reference::contains(problem, variant + ".so")) << problem;
  };
  expect("absent", "there is no such file; compile the plugin");
  expect("BROKEN_NO_ABI", "has no function neyman_plugin_abi; it must define it");
  expect("BROKEN_NO_SAMPLE", "has no function neyman_plugin_sample");
  expect("BROKEN_ABI", "is for version 2 of the plugin interface, but must be for version 1");
  expect("BROKEN_FEATURES", "neyman_plugin_features() returns 0, but must return between 1");
  expect("BROKEN_NAMES", "neyman_plugin_feature_name(1) is \"mass\"");
  expect("BROKEN_PARAMETERS", "has the parameters gamma, alpha, delta, but the study has alpha, ");
  expect("BROKEN_ONE_OF_TWO", "but must have both or none");
  // At the truth of α; γ has none.
  expect("BROKEN_STATUS",
         "neyman_plugin_sample returned 7: alpha 1 is too large at alpha = 1, gamma = 0.5, n = 3");
  expect("BROKEN_NAN", "feature 1 of event 2 is nan, but must be finite at alpha = 1");
  expect("BROKEN_THROW", "threw an exception (no table) at alpha = 1");
}

TEST(Plugin, AFileThatIsNoLibrary) {
  const auto path = std::filesystem::temp_directory_path() / "neyman-no-library.so";
  std::ofstream(path) << "text";
  EXPECT_TRUE(reference::contains(problem_of(path.string()), "cannot be loaded: "));
  std::filesystem::remove(path);
}

TEST(Plugin, WrongShapesAreRefused) {
  const auto plugin = load("GOOD");
  RandomStream random(1, "test");
  Matrix x(3, 3);
  EXPECT_THROW(plugin.sample(std::vector<double>{0.0, 0.5}, random, x), ArgumentError);
  Matrix y(3, 2);
  EXPECT_THROW(plugin.sample(std::vector<double>{0.0}, random, y), ArgumentError);
}

// Training events: by default each with a θ of its own; in runs, k with the same.
TEST(Plugin, SimulatesInRunsWhereItIsAskedTo) {
  const Design design(plugin_space);
  const auto each = simulate(load("GOOD"), plugin_space, design, 1000, 3, "training");
  EXPECT_EQ(each.feature_names, (std::vector<std::string>{"mass", "time"}));
  EXPECT_NE(each.theta(0, 0), each.theta(1, 0));
  const auto plugin = load("GOOD", 300);
  const auto runs = simulate(plugin, plugin_space, design, 1000, 3, "training");
  ASSERT_EQ(runs.size(), 1000u);
  // 1000 events in runs of at most 300: four of 250.
  for (std::size_t i = 0; i < 1000; ++i) EXPECT_EQ(runs.theta(i, 0), runs.theta(i - i % 250, 0));
  EXPECT_NE(runs.theta(0, 0), runs.theta(250, 0));
  set_threads(1);
  EXPECT_EQ(simulate(plugin, plugin_space, design, 1000, 3, "training"), runs);
  set_threads(0);
}

TEST(Plugin, AFailingParameterPointIsNamedAndNotTolerated) {
  const auto plugin = load("FAILS_SOMEWHERE", 100);
  try {
    simulate(plugin, plugin_space, Design(plugin_space), 5000, 3, "training");
    FAIL();
  } catch (const SimulatorError& error) {
    EXPECT_TRUE(reference::contains(error.what(), "neyman_plugin_sample returned 3 at alpha = 2."));
    EXPECT_TRUE(reference::contains(error.what(), "raise simulator.tolerate"));
  }
}

}  // namespace
}  // namespace neyman
