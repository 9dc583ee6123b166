#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "data/support.hpp"
#include "neyman/data/archive_file.hpp"
#include "neyman/data/atomic_file.hpp"
#include "neyman/measurements/measurement_summary.hpp"
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

/// The same with less of everything, where numbers do not matter.
Study smaller_study() {
  return parse(edited(edited(edited(small_measurement, "samples = 40000", "samples = 8000"),
                             "simulated = 20000", "simulated = 4000"),
                      "replicas = 10", "replicas = 0"));
}

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
  // Of a design of all parameters, a component has the part that moves it.
  const auto correlated = measurement_components(parse(
      edited(small_measurement, "folds = 2",
             "folds = 2\ndesign = { kind = \"normal\", mean = [1, 0.5, 0], sigma = [1, 2, 0.1], "
             "correlation = [[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]], log = [\"size\"] }")));
  const auto& part = correlated[1].across->design.config();
  EXPECT_EQ(part.mean, std::vector{0.5});
  EXPECT_EQ(part.sigma, std::vector{2.0});
  EXPECT_EQ(part.correlation, Matrix(1, 1, {1.0}));
  EXPECT_EQ(part.log, std::vector<bool>{false});
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

TEST(Measurement, ATruthWithoutSignalHasAModelOfTheSignal) {
  const auto results = run(parse(edited(small_measurement, "mu = { range = [0, 3], truth = 1 }",
                                        "mu = { range = [0, 3], truth = 0 }")))
                           .results;
  ASSERT_TRUE(results.exact_fit);
  const auto &fit = results.fit.fit, &exact = results.exact_fit->fit;
  ASSERT_TRUE(fit.ok()) << fit.message;
  ASSERT_TRUE(exact.ok()) << exact.message;
  EXPECT_NEAR(fit.point[0], exact.point[0], 0.5 * exact.error(0));
  EXPECT_NEAR(fit.error(0), exact.error(0), 0.1 * exact.error(0));
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

/// The data of a run, as new events.
Samples data_of(const Results& results) {
  Samples out;
  out.feature_names = results.feature_names;
  out.x = results.data;
  return out;
}

TEST(Measurement, ASavedModelFitsTheDataOfItsRunWithTheSameBits) {
  const test::TemporaryFolder folder;
  const auto done = run(parse(edited(small_measurement, "interest = \"mu\"",
                                     "interest = \"mu\"\ntoys = 100\nscan = 4\nlevel = 0.9")));
  const auto path = folder.path("model.h5");
  save_model(done.model, path);
  const auto model = load_model(path);
  ASSERT_NE(model.measurement, nullptr);
  const auto again = fit_data(model, data_of(done.results), "again");
  const auto& first = done.results;
  EXPECT_EQ(again.fit.fit.point, first.fit.fit.point);
  EXPECT_EQ(again.fit.fit.covariance, first.fit.fit.covariance);
  EXPECT_EQ(again.fit.fit.simulation_covariance, first.fit.fit.simulation_covariance);
  for (std::size_t p = 0; p < 3; ++p) {
    EXPECT_EQ(again.fit.scans[p].statistic, first.fit.scans[p].statistic) << p;
    for (std::size_t l = 0; l < first.levels.size(); ++l) {
      EXPECT_EQ(again.fit.intervals[p][l].low, first.fit.intervals[p][l].low) << p;
      EXPECT_EQ(again.fit.intervals[p][l].high, first.fit.intervals[p][l].high) << p;
    }
  }
  EXPECT_EQ(again.measurement, first.measurement);
  EXPECT_EQ(again.measurement_words, first.measurement_words);
  EXPECT_EQ(again.outside, first.outside);
  const auto json = nlohmann::json::parse(again.measurement);
  EXPECT_EQ(json["limit"]["level"], 0.9);
  EXPECT_EQ(json["toy_limit"]["toys"], 100);
  ASSERT_NE(again.measurement_summary, nullptr);

  // A second trip changes nothing, and the model has not changed by being used.
  save_model(model, folder.path("again.h5"));
  EXPECT_EQ(read_file(folder.path("again.h5")), read_file(path));
}

TEST(Measurement, FilesAcrossParametersMayHaveNegativeWeights) {
  // The background of the small measurement, with as many events of weight −1/2 as of weight 3/2.
  const test::TemporaryFolder folder;
  RandomStream random(6, "background");
  const auto table = [&](std::size_t count, bool across) {
    std::string out = across ? "x,w,shift\n" : "x,w\n";
    for (std::size_t i = 0; i < count; ++i) {
      const double shift = across ? 6.0 * random.uniform() - 3.0 : 0.0;
      out += fmt::format("{},{}", 0.1 * shift + random.normal(), i % 2 == 0 ? 1.5 : -0.5);
      out += across ? fmt::format(",{}\n", shift) : "\n";
    }
    return out;
  };
  folder.file("nominal.csv", table(20000, false));
  folder.file("across.csv", table(20000, true));
  std::string signal = "x\n", data = "x\n";
  for (int i = 0; i < 20000; ++i) signal += fmt::format("{}\n", 2.0 + random.normal());
  for (int i = 0; i < 800; ++i)
    data += fmt::format("{}\n", (i < 200 ? 2.0 : 0.0) + random.normal());
  folder.file("signal.csv", signal);
  folder.file("data.csv", data);
  auto text = edited(small_measurement, R"(kind = "normal", mean = 2, sigma = 1)",
                     R"(kind = "files", file = "signal.csv")");
  text = edited(text, R"(kind = "normal", mean = "0.1*shift", sigma = 1)",
                R"(kind = "files", file = "nominal.csv", across = "across.csv", )"
                R"(weights = "w", negative = true)");
  text = edited(text, "samples = 40000\n", "");
  text = edited(text, "[inference]\n", "[data]\nfile = \"data.csv\"\n\n[inference]\n");
  const auto study = parse(text, folder.path(""));
  const auto done = run(study);
  const auto& fit = done.results.fit.fit;
  ASSERT_TRUE(fit.ok()) << fit.message;
  // Within 4.5 errors of the truth: false alarm 2e-5 for the three.
  const std::vector<double> truth{1.0, 0.0, 1.0};
  for (std::size_t p = 0; p < 3; ++p) EXPECT_NEAR(fit.point[p], truth[p], 4.5 * fit.error(p)) << p;
  EXPECT_GT(fit.simulation_error(1), 0.0);
  const auto path = folder.path("model.h5");
  save_model(done.model, path);
  const auto again = fit_data(load_model(path), data_of(done.results), "again");
  EXPECT_EQ(again.fit.fit.point, fit.point);
  EXPECT_EQ(again.fit.fit.simulation_covariance, fit.simulation_covariance);
}

TEST(Measurement, VariationsThatDoNothingDoNotConstrainAndThoseThatDoAreSeen) {
  // Of weights of both signs; shift does nothing, by the same file, by other events, or it moves
  // the background by 0.2 of its width, as weights of the same events.
  const test::TemporaryFolder folder;
  RandomStream random(8, "variations");
  const auto table = [&](double slope, std::uint64_t seed) {
    RandomStream events(seed, "events");
    std::string out = "x,w\n";
    for (int i = 0; i < 10000; ++i) {
      const double x = events.normal();
      out += fmt::format("{},{}\n", x, (i % 5 == 0 ? -1.0 : 1.0) * std::exp(slope * x));
    }
    return out;
  };
  folder.file("nominal.csv", table(0.0, 1));
  folder.file("other.csv", table(0.0, 2));
  folder.file("another.csv", table(0.0, 3));
  folder.file("down.csv", table(-0.2, 1));
  folder.file("up.csv", table(0.2, 1));
  std::string signal = "x\n", data = "x\n";
  for (int i = 0; i < 10000; ++i) signal += fmt::format("{}\n", 2.0 + random.normal());
  for (int i = 0; i < 800; ++i)
    data += fmt::format("{}\n", (i < 200 ? 2.0 : 0.0) + random.normal());
  folder.file("signal.csv", signal);
  folder.file("data.csv", data);
  const auto run_with = [&](const std::string& low, const std::string& high) {
    auto text = edited(small_measurement, R"(kind = "normal", mean = 2, sigma = 1)",
                       R"(kind = "files", file = "signal.csv")");
    text = edited(text, R"(kind = "normal", mean = "0.1*shift", sigma = 1)",
                  fmt::format(R"(kind = "files", file = "nominal.csv", weights = "w", )"
                              R"(negative = true, variations = {{ shift = ["{}", "{}"] }})",
                              low, high));
    text = edited(text, "samples = 40000\n", "");
    text = edited(text, "[inference]\n", "[data]\nfile = \"data.csv\"\n\n[inference]\n");
    return run(parse(text, folder.path("")));
  };
  struct Case {
    const char *low, *high, *events;
    bool kept;
  };
  for (const auto& [low, high, events, kept] :
       {Case{"nominal.csv", "nominal.csv", "nominal", false},
        Case{"other.csv", "another.csv", "own", false},  // false alarm 2e-3
        Case{"down.csv", "up.csv", "weighted", true}}) {
    const auto done = run_with(low, high);
    const auto& fit = done.results.fit.fit;
    ASSERT_TRUE(fit.ok()) << fit.message;
    const auto json = nlohmann::json::parse(done.results.measurement);
    ASSERT_EQ(json["variations"].size(), 1u);
    const auto& told = json["variations"][0];
    EXPECT_EQ(told["parameter"], "shift");
    EXPECT_EQ(told["component"], "background");
    EXPECT_EQ(told["events"], events);
    EXPECT_EQ(told["kept"], kept);
    const auto& words = done.results.measurement_words.back();
    if (kept) {
      // 600 events of which a shift by 0.2 is known to 0.2 without the signal: 1 / √(1 + 24).
      EXPECT_LT(fit.error(1), 0.35);
      EXPECT_GT(fit.error(1), 0.19);
      EXPECT_GT(told["parts"]["difference"]["significance"], 10.0);
      EXPECT_NE(words.find("see the shape of shift of background"), std::string::npos) << words;
    } else {
      EXPECT_NEAR(fit.point[1], 0.0, 1e-6);
      EXPECT_NEAR(fit.error(1), 1.0, 1e-6);
      EXPECT_NE(words.find("see no shape of shift of background"), std::string::npos) << words;
    }
    const auto path = folder.path("model.h5");
    save_model(done.model, path);
    const auto again = fit_data(load_model(path), data_of(done.results), "again");
    EXPECT_EQ(again.fit.fit.point, fit.point);
    EXPECT_EQ(again.measurement, done.results.measurement);
  }
}

TEST(Measurement, WeightsOfDataCount) {
  const auto done = run(smaller_study());
  auto data = data_of(done.results);
  const auto twice_data = [&] {
    auto out = data;
    out.append(data);
    return out;
  }();
  auto weighted = data;
  weighted.weights.assign(data.size(), 2.0);
  const auto twice = fit_data(done.model, twice_data, ""),
             heavy = fit_data(done.model, weighted, "");
  for (std::size_t p = 0; p < 3; ++p)
    EXPECT_NEAR(heavy.fit.fit.point[p], twice.fit.fit.point[p], 1e-6 * twice.fit.fit.error(p)) << p;
}

TEST(Measurement, AModelThatDoesNotGoTogetherIsRefused) {
  const test::TemporaryFolder folder;
  const auto path = folder.path("model.h5");
  save_model(run(smaller_study()).model, path);
  const auto whole = read_archive(path, "neyman.model", 1).tree;
  const auto refused = [&](const auto& change, const std::string& words) {
    auto changed = whole;
    change(changed.child("measurement"));
    write_archive(path, changed, "neyman.model", 1);
    const auto message = test::message_of<FileError>([&] { load_model(path); });
    EXPECT_NE(message.find("model.h5: is not a whole model"), std::string::npos) << message;
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  refused([](Archive& a) { a.set("yields", Strings{"200*mu", "600*sise"}); }, "sise");
  refused([](Archive& a) { a.set("yields", Strings{"200*mu"}); }, "sizes that do not agree");
  refused([](Archive& a) { a.set("nominal", std::vector{1.0}); }, "sizes that do not agree");
  refused([](Archive& a) { a.set("interest", std::size_t{3}); }, "sizes that do not agree");
  refused([](Archive& a) { a.set("statistic", "z"); }, "z");
  refused([](Archive& a) { a.child("channel").set("pool", Matrix(3, 1)); }, "do not agree");
}

TEST(Measurement, SubRatiosThatDisagreeAreToldOf) {
  const Strings names{"signal", "first", "second", "third"};
  // An error of a single log r of 19 % and of 21 % of its size.
  const auto cycle = [](std::array<std::size_t, 3> of, double part) {
    return LearnedChannel::Cycle{of, 0.01, part * std::sqrt(3.0) * 2.5, 2.5};
  };
  auto found = diagnose_sub_ratios({cycle({0, 1, 2}, 0.05), cycle({0, 1, 3}, 0.19)}, names);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "sub-ratios");
  EXPECT_EQ(found->verdict, Diagnostic::Verdict::pass);
  EXPECT_NEAR(found->statistic, 0.19, 1e-12);
  EXPECT_EQ(found->tolerance, 0.2);
  EXPECT_NEAR(*found->number("signal, first, second"), 0.05, 1e-12);
  EXPECT_NE(found->explanation.find("the worst is that of signal, first, third"),
            std::string::npos);
  EXPECT_TRUE(found->note.empty());
  found = diagnose_sub_ratios({cycle({0, 1, 2}, 0.21), cycle({1, 2, 3}, 0.1)}, names);
  EXPECT_EQ(found->verdict, Diagnostic::Verdict::warn);
  EXPECT_NE(found->note.find("training.samples"), std::string::npos);
  // The same components have no ratio to be wrong about; two have no cycle.
  EXPECT_EQ(diagnose_sub_ratios({{{0, 1, 2}, 0.0, 0.0, 0.0}}, names)->statistic, 0.0);
  EXPECT_FALSE(diagnose_sub_ratios({}, names));
}

TEST(Measurement, ARunChecksItsSubRatios) {
  const std::string three =
      edited(edited(small_measurement, "yields = [\"200*mu\", \"600*size\"]",
                    "yields = [\"200*mu\", \"600*size\", 100]"),
             "mean = \"0.1*shift\", sigma = 1 },",
             "mean = \"0.1*shift\", sigma = 1 },\n"
             "  { name = \"other\", kind = \"normal\", mean = -1, sigma = 1 },");
  const auto results = run(parse(edited(edited(three, "samples = 40000", "samples = 9000"),
                                        "replicas = 10", "replicas = 0")))
                           .results;
  // Ratios of normal distributions are of the form that is learned: an error of a few per cent.
  ASSERT_EQ(results.diagnostics.size(), 2u);
  EXPECT_EQ(results.diagnostics[1].verdict, Diagnostic::Verdict::pass);
  EXPECT_GT(results.diagnostics[1].statistic, 0.0);
  EXPECT_LT(results.diagnostics[1].statistic, 0.1);
  // With scores that are not calibrated and hardly learned they disagree.
  const auto poor =
      run(parse(edited(edited(edited(three, "samples = 40000", "samples = 600"),
                              "kind = \"logistic\"", "kind = \"random-forest\"\ntrees = 3"),
                       "kind = \"sigmoid\"\nreplicas = 10", "kind = \"histogram\"\nreplicas = 0")))
          .results;
  ASSERT_EQ(poor.diagnostics.size(), 2u);
  EXPECT_EQ(poor.diagnostics[1].verdict, Diagnostic::Verdict::warn);
}

TEST(Measurement, FeaturesAreShownBeforeAndAfterTheFit) {
  const auto done = run(smaller_study());
  ASSERT_NE(done.results.measurement_summary, nullptr);
  const auto& summary = *done.results.measurement_summary;
  EXPECT_EQ(summary.features, 1u);
  ASSERT_EQ(summary.histograms.size(), 1u);
  const auto& found = summary.histograms[0];
  EXPECT_EQ(found.feature, "x");
  EXPECT_EQ(found.samples, (Strings{"signal", "background"}));
  const auto sum = [](const auto& values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
  };
  // 99 % of the events are expected inside: 8 ± 2.8 are not, false alarm of four standard
  // deviations 1e-4. Before the fit there are those that the yields say at the nominal parameters.
  const double events = static_cast<double>(done.results.events);
  EXPECT_NEAR(sum(found.observed), 0.99 * events, 11.4);
  EXPECT_NEAR(sum(found.before.parts.row(0)), 200.0, 4.0);
  EXPECT_NEAR(sum(found.before.parts.row(1)), 600.0, 8.0);
  EXPECT_NEAR(sum(found.after.total), sum(found.observed), 0.03 * events);
  for (std::size_t b = 0; b < found.observed.size(); ++b) {
    // The size of the background is known to 10 %, its place to 0.1; the fit knows better.
    EXPECT_GT(found.before.error[b], 0.05 * found.before.parts(1, b)) << b;
    EXPECT_LT(found.after.error[b], found.before.error[b] + 0.2 * found.before.total[b]) << b;
  }
}

TEST(Measurement, ItsModelHasNoRatioToBeChecked) {
  const auto study = smaller_study();
  EXPECT_NE(test::message_of<ArgumentError>([&] {
              diagnose_model(study, run(study).model);
            }).find("a measurement has no ratio"),
            std::string::npos);
}

}  // namespace
}  // namespace neyman
