#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "data/support.hpp"
#include "neyman/measurements/model_fit.hpp"
#include "neyman/pipeline/measurement_study.hpp"
#include "neyman/pipeline/pipeline.hpp"
#include "neyman/reports/results_json.hpp"
#include "pipeline/small_study.hpp"

namespace neyman {
namespace {

using test::edited;
using test::parse;
using test::problems_of;
using Strings = std::vector<std::string>;

/// A signal N(2, 1) over a background N(0, 1) that a nuisance parameter moves: all ratios are of
/// the form that a logistic classifier and a shape without hidden layers learn.
const std::string small_measurement = R"([study]
name = "small"
seed = 5

[parameters]
mu = { range = [0, 3], truth = 1 }
shift = { range = [-3, 3], truth = 0, role = "nuisance", constraint = { kind = "gaussian", mean = 0, sigma = 1 } }
size = { range = [0.5, 1.5], truth = 1, role = "nuisance", constraint = { kind = "log-normal", mean = 1, kappa = 1.1 } }

[simulator]
kind = "mixture"
yields = ["200*mu", "600*size"]
components = [
  { name = "signal", kind = "normal", mean = 2, sigma = 1 },
  { name = "background", kind = "normal", mean = "0.1*shift", sigma = 1 },
]

[training]
samples = 40000
folds = 2

[classifier]
kind = "logistic"

[calibration]
kind = "sigmoid"
replicas = 10

[shapes]
hidden = []
degree = 2

[measurement]
interest = "mu"
simulated = 20000

[inference]
scan = 5

[report]
figures = false
)";

TEST(Measurement, IsReadFromAStudy) {
  const auto study = parse(small_measurement);
  ASSERT_TRUE(study.measurement);
  EXPECT_EQ(study.mixture, nullptr);
  EXPECT_EQ(study.measurement->interest, 0u);
  EXPECT_EQ(study.measurement->nominal, (std::vector{1.0, 0.0, 1.0}));
  EXPECT_EQ(study.measurement->learning.simulated, 20000u);
  EXPECT_EQ(study.measurement->learning.shape.degree, 2u);
  EXPECT_EQ(study.measurement->options.toys, 0u);
  EXPECT_EQ(
      parse(edited(small_measurement, "replicas = 10\n", "")).measurement->learning.ratios.replicas,
      10u);
  const auto components = measurement_components(study);
  ASSERT_EQ(components.size(), 2u);
  EXPECT_FALSE(components[0].across);
  ASSERT_TRUE(components[1].across);
  EXPECT_EQ(components[1].across->design.parameters().names(), Strings{"shift"});
  EXPECT_EQ(components[1].share, 600.0);
}

TEST(Measurement, ProblemsAreToldBeforeAnythingIsTrained) {
  const auto expect = [](const std::string& from, const std::string& to, const std::string& words) {
    const auto problems = problems_of(edited(small_measurement, from, to));
    const auto told = [&](const std::string& problem) {
      return problem.find(words) != std::string::npos && problem.rfind("study.toml:", 0) == 0;
    };
    EXPECT_TRUE(std::any_of(problems.begin(), problems.end(), told))
        << words << ", but: " << (problems.empty() ? "nothing" : problems[0]);
  };
  expect("\"200*mu\"", "\"200*(mu - 1)\"", "which is -200 at mu = 0");
  expect("[0.5, 1.5]", "[-0.5, 1.5]", "must not be negative anywhere in the ranges");
  expect("interest = \"mu\"", "interest = \"nu\"", "'nu' is not a parameter");
  expect("[inference]\n", "[ensemble]\ndatasets = 3\n\n[inference]\n",
         "is not for a simulator with yields");
  // A constraint on a parameter that nothing depends on.
  expect(
      "size = {",
      "other = { range = [-3, 3], truth = 0, constraint = { kind = \"gaussian\", mean = 0, sigma = "
      "1 } }\nsize = {",
      "does not depend on parameter 'other'");
  // Without yields there is nothing to measure.
  expect("yields = [\"200*mu\", \"600*size\"]", "weights = [\"mu/(mu + size)\"]",
         "is for a simulator of kind \"mixture\" with yields");
}

TEST(Measurement, FilesOfComponentsMustGoTogether) {
  const test::TemporaryFolder folder;
  const auto events = [](const std::string& name) {
    std::string out = name + "\n";
    for (int i = 0; i < 100; ++i) out += std::to_string(0.03 * (i % 71)) + "\n";
    return out;
  };
  folder.file("signal.csv", events("x"));
  folder.file("background.csv", events("x"));
  folder.file("none.csv", "x\n");
  folder.file("two.csv", events("y"));
  folder.file("data.csv", "x\n0\n");
  const std::string text = edited(
      edited(
          edited(small_measurement, R"(kind = "normal", mean = 2, sigma = 1)",
                 R"(kind = "files", file = "signal.csv")"),
          R"(kind = "normal", mean = "0.1*shift", sigma = 1)",
          R"(kind = "files", file = "background.csv", variations = { shift = ["background.csv", "signal.csv"] })"),
      "[training]\nsamples = 40000\nfolds = 2\n", "[data]\nfile = \"data.csv\"\n");
  const auto problem = [&](const std::string& from, const std::string& to) {
    const auto problems = problems_of(edited(text, from, to), folder.path(""));
    return problems.empty() ? std::string() : problems[0];
  };
  const auto holds = [](const std::string& found, const std::string& words) {
    return found.find(words) != std::string::npos && found.rfind("study.toml:", 0) == 0;
  };
  EXPECT_EQ(problem("name = \"small\"", "name = \"files\""), "");
  EXPECT_PRED2(holds, problem("[\"background.csv\",", "[\"none.csv\","), "none.csv");
  EXPECT_PRED2(holds, problem("[\"background.csv\",", "[\"two.csv\","),
               "two.csv: has the features y");
  EXPECT_PRED2(holds, problem("file = \"signal.csv\"", "file = \"two.csv\""),
               "has the features x, but must have y");
  EXPECT_PRED2(holds, problem("{ shift = [", "{ shft = ["), "shft");
}

TEST(Measurement, DataHaveAPoissonNumberOfEvents) {
  const auto study = parse(small_measurement);
  double sum = 0.0, squares = 0.0;
  const std::size_t repetitions = 400;
  for (std::size_t i = 0; i < repetitions; ++i) {
    const double n =
        static_cast<double>(simulate_data(study, std::vector{1.0, 0.0, 1.0}, i).rows());
    sum += n - 800.0;
    squares += (n - 800.0) * (n - 800.0);
  }
  // Mean 800 and variance 800; five standard errors, false alarm below 1e-5.
  EXPECT_NEAR(sum / repetitions, 0.0, 5.0 * std::sqrt(800.0 / repetitions));
  EXPECT_NEAR(squares / repetitions / 800.0, 1.0, 5.0 * std::sqrt(2.0 / repetitions));
}

TEST(Measurement, ARunComesCloseToTheExactResult) {
  const auto results = run(parse(small_measurement)).results;
  ASSERT_TRUE(results.fit.fit.ok());
  ASSERT_TRUE(results.exact_fit);
  // Finite simulation moves the estimate by less than a fifth of its error.
  for (std::size_t p = 0; p < 3; ++p) {
    const double error = results.exact_fit->fit.error(p);
    EXPECT_NEAR(results.fit.fit.point[p], results.exact_fit->fit.point[p], 0.2 * error) << p;
    EXPECT_NEAR(results.fit.fit.statistical_error(p), error, 0.05 * error) << p;
    EXPECT_GT(results.fit.fit.simulation_error(p), 0.0) << p;
    EXPECT_LT(results.fit.fit.simulation_error(p), 0.3 * error) << p;
  }
  const auto json = nlohmann::json::parse(reports::results_json(results).text);
  EXPECT_EQ(json["measurement"]["schema"], "neyman.measurement/1");
  EXPECT_GE(results.measurement_words.size(), 2u);
  EXPECT_EQ(results.budget.at("simulated"), 60000u);
}

TEST(Measurement, AStagedRunGoesOnWithTheSameBits) {
  const test::TemporaryFolder folder;
  const auto study = parse(small_measurement);
  RunOptions options;
  options.folder = folder.path("out");
  options.until = "train";
  EXPECT_FALSE(run(study, options).finished);
  options.until.clear();
  const auto second = run(study, options);
  EXPECT_TRUE(second.finished);
  const auto whole = run(study).results;
  EXPECT_EQ(second.results.fit.fit.point, whole.fit.fit.point);
  EXPECT_EQ(second.results.measurement, whole.measurement);
}

}  // namespace
}  // namespace neyman
