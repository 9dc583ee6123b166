#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "data/support.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/data/archive_file.hpp"
#include "neyman/pipeline/pipeline.hpp"
#include "neyman/reports/results_json.hpp"
#include "neyman/reports/study_report.hpp"
#include "neyman/simulators/distribution.hpp"
#include "pipeline/small_study.hpp"

// Studies with one model for all θ.
namespace neyman {
namespace {

using test::edited;
using test::message_of;
using test::parse;

/// A normal whose log ratio is a polynomial of degree two in its mean: no hidden layer is needed.
const std::string normal_study = R"([study]
name = "normal"
seed = 5

[parameters]
mu = { range = [-1, 1], truth = 0.2 }

[simulator]
kind = "normal"
mean = "mu"
sigma = 1

[training]
samples = 6000

[classifier]
kind = "separable"
hidden = []
degree = 2
epochs = 2

[data]
events = 300

[diagnostics]
events = 1000
which = ["normalisation", "reliability", "closure"]
)";

/// Mean of interest and width: "mu" and "sigma".
std::string two_parameters(const std::string& of_sigma = "") {
  auto text = edited(normal_study, "truth = 0.2 }",
                     "truth = 0.2 }\nwidth = { range = [0.8, 1.25], truth = 1" + of_sigma + " }");
  text = edited(text, "sigma = 1\n", "sigma = \"width\"\n");
  return edited(text, "hidden = []\ndegree = 2\nepochs = 2", "hidden = [16]\nepochs = 10");
}

Samples events_of(const Study& study, std::vector<double> point, std::size_t count) {
  Samples out;
  out.x = sample(*study.simulator, point, count, 77, "test");
  out.feature_names = default_feature_names(out.x.cols());
  return out;
}

TEST(ParameterizedRun, AgreesWithTheExactFit) {
  const auto study = parse(normal_study);
  EXPECT_FALSE(study.mixture);
  const auto done = run(study);
  const auto& results = done.results;
  EXPECT_EQ(results.ratio, "separable");
  EXPECT_EQ(results.events, 300u);
  EXPECT_EQ(results.budget.at("simulated"), 6000u);
  // At the estimate, on both sides of it, and at the middle of the range.
  EXPECT_EQ(results.budget.at("diagnostics"), 4000u);
  EXPECT_TRUE(results.reference.empty());
  EXPECT_TRUE(results.component_names.empty());
  // The exact fit is the mean of the data, with an error of 1/√n.
  double mean = 0.0;
  for (std::size_t i = 0; i < results.data.rows(); ++i) mean += results.data(i, 0) / 300.0;
  ASSERT_TRUE(results.exact_fit);
  EXPECT_NEAR(results.exact_fit->fit.point[0], mean, 1e-5);
  EXPECT_NEAR(results.exact_fit->fit.statistical_error(0), 1.0 / std::sqrt(300.0), 1e-4);
  // The learned one differs by finite simulation: within five of the errors that it reports (a
  // false alarm in two million seeds; the seed is fixed).
  const auto& fit = results.fit.fit;
  EXPECT_TRUE(fit.ok());
  EXPECT_GT(fit.simulation_error(0), 0.0);
  EXPECT_LT(std::abs(fit.point[0] - mean), 5.0 * fit.simulation_error(0));
  EXPECT_NEAR(fit.statistical_error(0), 1.0 / std::sqrt(300.0), 0.01);
  ASSERT_EQ(results.diagnostics.size(), 6u);
  for (const auto& check : results.diagnostics)
    EXPECT_NE(check.explanation.find("Checked between "), std::string::npos);
}

TEST(ParameterizedRun, IsTheSameOnOneAndTwoThreads) {
  const auto study = parse(two_parameters() + "\n[ensemble]\ndatasets = 6\nevents = 50\n");
  set_threads(1);
  const auto one = run(study).results;
  set_threads(2);
  const auto two = run(study).results;
  set_threads(0);
  EXPECT_EQ(one.fit.fit.point, two.fit.fit.point);
  EXPECT_EQ(one.fit.fit.simulation_covariance, two.fit.fit.simulation_covariance);
  EXPECT_EQ(one.exact_fit->fit.point, two.exact_fit->fit.point);
  EXPECT_EQ(one.surfaces[0].surface.statistic, two.surfaces[0].surface.statistic);
  EXPECT_EQ(one.ensemble->approximate.estimates, two.ensemble->approximate.estimates);
  ASSERT_EQ(one.diagnostics.size(), two.diagnostics.size());
  for (std::size_t i = 0; i < one.diagnostics.size(); ++i)
    EXPECT_EQ(one.diagnostics[i].statistic, two.diagnostics[i].statistic);
}

// The data are at six, the design ends at about five: no extrapolation without a word.
TEST(ParameterizedRun, SaysWhatEndsWhereTheDesignDoes) {
  const auto wide = edited(
      edited(normal_study, "range = [-1, 1], truth = 0.2", "range = [-20, 20], truth = 6"),
      "samples = 6000", "samples = 6000\ndesign = { kind = \"normal\", mean = [0], sigma = [1] }");
  const auto results = run(parse(wide)).results;
  EXPECT_EQ(results.fit.fit.status, FitStatus::at_bound);
  EXPECT_TRUE(results.fit.intervals[0][0].high_at_edge);
  const auto count = std::count_if(
      results.warnings.begin(), results.warnings.end(), [](const std::string& warning) {
        return warning.find(
                   "the estimate and the 68.3 % and 95 % intervals of mu end where the "
                   "design has no events") == 0 &&
               warning.find("training.design") != std::string::npos;
      });
  EXPECT_EQ(count, 1) << results.warnings.front();
  const auto json = reports::results_json(results).text;
  EXPECT_NE(json.find("\"interval_at_edge\""), std::string::npos);
  EXPECT_NE(reports::study_report(results).find("ends at the edge of where the design has events"),
            std::string::npos);
  // A model that was saved knows it too.
  const auto inside = run(parse(edited(wide, "truth = 6", "truth = 0.2")));
  EXPECT_EQ(inside.results.fit.fit.status, FitStatus::converged);
  for (const auto& warning : inside.results.warnings)
    EXPECT_EQ(warning.find("design"), std::string::npos) << warning;
  for (const auto& check : inside.results.diagnostics)
    EXPECT_NE(check.verdict, Diagnostic::Verdict::fail) << check.name;
  const auto path = testing::TempDir() + "neyman_region_model.h5";
  save_model(inside.model, path);
  const auto loaded = load_model(path);
  std::remove(path.c_str());
  EXPECT_FALSE(loaded.parameterized->region().holds(std::vector<double>{10.0}));
}

TEST(ParameterizedRun, RangesWithoutAnEndAreThoseOfTheDesign) {
  const auto open =
      edited(edited(normal_study, "range = [-1, 1], truth = 0.2", "range = [-inf, inf], truth = 1"),
             "samples = 6000",
             "samples = 6000\ndesign = { kind = \"normal\", mean = [1], sigma = [0.5] }");
  const auto study = parse(open);
  EXPECT_EQ(study.parameters[0].low, -1.0);
  EXPECT_EQ(study.parameters[0].high, 3.0);
  const auto results = run(study).results;
  EXPECT_EQ(results.fit.fit.status, FitStatus::converged);
  EXPECT_LT(std::abs(results.fit.fit.point[0] - results.exact_fit->fit.point[0]),
            5.0 * results.fit.fit.simulation_error(0));
  const auto refused = [&](const std::string& design) {
    return message_of<StudyError>([&] {
      parse(edited(
          edited(normal_study, "range = [-1, 1], truth = 0.2", "range = [0, inf], truth = 0.2"),
          "samples = 6000", "samples = 6000" + design));
    });
  };
  EXPECT_NE(refused("").find("parameters.mu.range has an end that is not finite"),
            std::string::npos);
  EXPECT_NE(refused("\ndesign = \"sobol\"").find("parameters.mu.range is not known"),
            std::string::npos);
  // An end that is given stays.
  const auto half =
      parse(edited(edited(open, "[-inf, inf]", "[0, inf]"), "truth = 1", "truth = 2"));
  EXPECT_EQ(half.parameters[0].low, 0.0);
  EXPECT_EQ(half.parameters[0].high, 3.0);
  EXPECT_NE(message_of<StudyError>([&] {
              parse(edited(open, "truth = 1", "truth = 9"));
            }).find("parameters.mu.truth is 9, but must be between -1 and 3"),
            std::string::npos);
}

// The default trains several models and says which one held-out events chose, and why.
TEST(ParameterizedRun, SaysWhichModelWasChosen) {
  const auto text =
      edited(normal_study, "kind = \"separable\"\nhidden = []\ndegree = 2\nepochs = 2",
             "effort = \"quick\"");
  const auto done = run(parse(text));
  const auto& models = done.results.models;
  EXPECT_EQ(done.results.ratio, "learned");
  ASSERT_EQ(models.size(), 4u);
  EXPECT_EQ(std::count_if(models.begin(), models.end(), [](const auto& m) { return m.chosen; }), 1);
  for (const auto& model : models)
    if (model.chosen) {
      EXPECT_LE(model.behind, 3.0 * model.behind_error);
    }
  const auto json = reports::results_json(done.results).text;
  EXPECT_NE(json.find("\"behind_error\""), std::string::npos);
  // What differs from run to run is in the timing alone.
  EXPECT_NE(json.find("\"train: features\""), std::string::npos);
  EXPECT_EQ(json.find("\"seconds\""), std::string::npos);
  const auto page = reports::study_report(done.results);
  EXPECT_NE(page.find("Which model of the ratio"), std::string::npos);
  EXPECT_NE(page.find("density of the features"), std::string::npos);
}

// Formally the simulator depends on the parameter, but no event tells of it.
TEST(ParameterizedRun, SaysWhereTheFeaturesDoNotTellOfAParameter) {
  const auto learned =
      edited(normal_study, "kind = \"separable\"\nhidden = []\ndegree = 2\nepochs = 2",
             "effort = \"quick\"");
  const auto told = [](const std::string& study) {
    const auto warnings = run(parse(study)).results.warnings;
    return std::any_of(warnings.begin(), warnings.end(), [](const std::string& warning) {
      return warning.find("do not show that the features depend on mu") != std::string::npos;
    });
  };
  EXPECT_TRUE(told(edited(learned, "mean = \"mu\"", "mean = \"1e-9*mu\"")));
  EXPECT_FALSE(told(learned));
}

class SavedModel : public testing::TestWithParam<const char*> {};

TEST_P(SavedModel, GivesTheRunsFit) {
  const test::TemporaryFolder folder;
  const auto study = parse(edited(
      edited(normal_study, "kind = \"separable\"\nhidden = []\ndegree = 2\nepochs = 2", GetParam()),
      "truth = 0.2 }",
      "truth = 0.2, role = \"nuisance\", constraint = { kind = \"gaussian\", mean = 0, "
      "sigma = 0.05 } }"));
  const auto done = run(study);
  save_model(done.model, folder.path("model.h5"));
  const auto loaded = load_model(folder.path("model.h5"));
  EXPECT_FALSE(loaded.ratio);
  EXPECT_EQ(loaded.parameterized->kind(), done.model.parameterized->kind());
  EXPECT_TRUE(loaded.parameters[0].nuisance);
  ASSERT_EQ(loaded.constraints.size(), 1u);
  EXPECT_EQ(loaded.constraints[0].kind(), Constraint::Kind::gaussian);
  EXPECT_EQ(loaded.constraints[0].width(), 0.05);
  Samples data;
  data.x = done.results.data;
  data.feature_names = done.results.feature_names;
  const auto again = fit_data(loaded, data, "again");
  EXPECT_EQ(again.fit.fit.point, done.results.fit.fit.point);
  EXPECT_EQ(again.fit.fit.covariance, done.results.fit.fit.covariance);
  EXPECT_EQ(again.fit.fit.log_likelihood, done.results.fit.fit.log_likelihood);
  EXPECT_EQ(again.ratio, done.results.ratio);
}

INSTANTIATE_TEST_SUITE_P(
    OfEachKind, SavedModel,
    testing::Values("kind = \"separable\"\nhidden = []\ndegree = 2\nepochs = 2",
                    "effort = \"quick\"",
                    "kind = \"density\"\nmembers = 2\nhidden = [16]\nepochs = 5",
                    "kind = \"mlp\"\nhidden = [8]\nepochs = 3",
                    "kind = \"mlp\"\nhidden = [8]\nepochs = 3\n[calibration]\nacross = \"none\""));

TEST(SavedModel, OfAnUnknownKindIsRefused) {
  const test::TemporaryFolder folder;
  const auto path = folder.path("model.h5");
  save_model(run(parse(normal_study)).model, path);
  auto archive = read_archive(path, "neyman.model", 1).tree;
  archive.set("ratio_kind", std::string("quantum"));
  write_archive(path, archive, "neyman.model", 1);
  EXPECT_NE(message_of<FileError>([&] { load_model(path); }).find("quantum"), std::string::npos);
}

TEST(SavedModel, WithoutAKindIsAMixtures) {
  const test::TemporaryFolder folder;
  const auto path = folder.path("model.h5");
  const auto done = run(parse(test::small_study));
  save_model(done.model, path);
  // As models were written before there were others.
  const auto now = read_archive(path, "neyman.model", 1).tree;
  Archive old;
  for (const char* key : {"name", "classifier", "calibration"}) old.set(key, now.text(key));
  for (const char* key : {"feature_names", "component_names", "parameters"})
    old.set(key, now.get<std::vector<std::string>>(key));
  for (const char* key : {"seed", "scan_points"}) old.set(key, now.integer(key));
  old.set("levels", now.numbers("levels"));
  const auto& ranges = now.get<Matrix>("ranges");
  Matrix two_columns(1, 2);
  two_columns(0, 0) = ranges(0, 0);
  two_columns(0, 1) = ranges(0, 1);
  old.set("ranges", two_columns);
  old.child("ratio") = now.child("ratio");
  write_archive(path, old, "neyman.model", 1);
  const auto loaded = load_model(path);
  ASSERT_TRUE(loaded.ratio);
  EXPECT_FALSE(loaded.parameters[0].nuisance);
  const auto data = events_of(parse(test::small_study), {0.3}, 100);
  EXPECT_EQ(loaded.ratio->component_ratios(data.x), done.model.ratio->component_ratios(data.x));
}

TEST(ParameterizedRun, OnDemandNeedsTheSimulatorAndIsNotSaved) {
  const auto done = run(parse(
      edited(normal_study, "kind = \"separable\"\nhidden = []\ndegree = 2\nepochs = 2",
             "kind = \"logistic\"\n[calibration]\nacross = \"on-demand\"\nevents = 500\nkind = "
             "\"histogram\"")));
  EXPECT_FALSE(done.model.complete);
  EXPECT_NE(done.results.warnings.back().find("no model.h5"), std::string::npos);
}

TEST(ParameterizedRun, AConstraintIsUsed) {
  const auto plain = run(parse(normal_study)).results;
  const auto constrained =
      run(parse(edited(normal_study, "truth = 0.2 }",
                       "truth = 0.2, constraint = { kind = \"gaussian\", mean = -0.5, sigma = "
                       "0.05 } }")))
          .results;
  // Two normal measurements of one mean: weights are inverse squares of the errors.
  const double a = plain.exact_fit->fit.point[0], sa = 1.0 / std::sqrt(300.0), sb = 0.05;
  const double expected = (a / (sa * sa) - 0.5 / (sb * sb)) / (1.0 / (sa * sa) + 1.0 / (sb * sb));
  EXPECT_NEAR(constrained.exact_fit->fit.point[0], expected, 1e-4);
  EXPECT_NEAR(constrained.fit.fit.point[0], expected, 0.02);
  EXPECT_LT(constrained.fit.fit.statistical_error(0), 0.8 * plain.fit.fit.statistical_error(0));
}

TEST(ParameterizedRun, SaysWhatToDoWhereSimulationIsShort) {
  const auto told = [](const std::string& study) {
    // Ranges are proposed where the estimate was found again alone.
    const auto results =
        run(parse(edited(study, "which = [\"normalisation\", \"reliability\", \"closure\"]",
                         "which = [\"recovery\"]")))
            .results;
    const double part = results.fit.fit.simulation_error(0) / results.fit.fit.statistical_error(0);
    for (const auto& warning : results.warnings)
      if (warning.find("finite simulation adds") != std::string::npos) {
        EXPECT_GT(part, 0.25);
        const auto& steps = results.next_steps;
        EXPECT_EQ(steps.size(), 2u);
        if (steps.size() != 2) return true;
        const auto simulated = static_cast<double>(results.budget.at("simulated"));
        const auto expect_samples = [&](const NextStep& step, double needed) {
          EXPECT_EQ(step.keys.back(), "training.samples");
          EXPECT_GE(std::stod(step.values.back()), 0.999 * needed);
          EXPECT_LE(std::stod(step.values.back()), 1.11 * needed);
        };
        // An error that falls like the root of the number of events.
        const double more = std::min(20.0, std::pow(part / 0.25, 2));
        expect_samples(steps[0], simulated * more);
        // In narrower ranges somewhat fewer do.
        EXPECT_EQ(steps[1].keys.front(), "parameters.mu.range");
        double low = 0.0, high = 0.0;
        EXPECT_EQ(std::sscanf(steps[1].values.front().c_str(), "[%lf, %lf]", &low, &high), 2);
        const double kept = (high - low) / 2.0;
        const double left = std::pow(part / 0.25, 2) * std::pow(kept, 0.25);
        EXPECT_EQ(steps[1].keys.size(), left > 1.0 ? 2u : 1u);
        if (left > 1.0) expect_samples(steps[1], simulated * std::min(20.0, left));
        return true;
      }
    EXPECT_TRUE(results.next_steps.empty());
    EXPECT_LT(part, 0.25);
    return false;
  };
  // As many observed events as simulated ones tell more than the simulation does; the ranges are
  // then a hundred errors wide.
  EXPECT_TRUE(told(edited(normal_study, "events = 300", "events = 20000")));
  EXPECT_FALSE(told(edited(normal_study, "samples = 6000", "samples = 60000")));
}

TEST(ParameterizedRun, ANuisanceParameterIsProfiled) {
  const auto results =
      run(parse(two_parameters(", role = \"nuisance\"") +
                "\n[coverage]\ndatasets = 20\ncritical_datasets = 10\npoints = [{ mu = -0.5 }]\n"
                "\n[inference]\nhypotheses = [{ fixed = { mu = 0.2 }, datasets = 20 }]\n"))
          .results;
  EXPECT_TRUE(results.surfaces.empty());  // one parameter of interest has no pair
  ASSERT_TRUE(results.coverage);
  ASSERT_EQ(results.coverage->points.size(), 1u);
  const auto& point = results.coverage->points[0];
  EXPECT_EQ(point.point, (std::vector{-0.5, 1.0}));
  ASSERT_EQ(point.ensemble.profiles.size(), 1u);  // of mu alone
  EXPECT_EQ(point.ensemble.profiles[0].parameter, 0u);
  EXPECT_EQ(point.ensemble.profiles[0].statistic.size() + point.ensemble.failed, 20u);
  EXPECT_EQ(results.budget.at("coverage"), 30u * 300u);
  ASSERT_EQ(results.composite_tests.size(), 1u);
  const auto& test = results.composite_tests[0];
  EXPECT_TRUE(test.ok());
  EXPECT_EQ(test.degrees, 1.0);
  EXPECT_EQ(test.null_fit.point[0], 0.2);
  ASSERT_TRUE(test.simulated_p_value);
  const auto& check = results.diagnostics.back();
  EXPECT_EQ(check.name, "coverage");
  EXPECT_TRUE(check.number("coverage:0.683"));
  EXPECT_TRUE(check.number("coverage:mu:0.95"));
}

/// Two features, of which the second has another mean; a classifier with θ as input, a fixed θ1.
std::string referenced(const std::string& classifier, const std::string& calibration = "",
                       const std::string& second = "-mu") {
  auto text = edited(normal_study, "kind = \"normal\"\nmean = \"mu\"\nsigma = 1\n",
                     "kind = \"join\"\nparts = [{ kind = \"normal\", mean = \"mu\", sigma = 1 }, "
                     "{ kind = \"normal\", mean = \"" +
                         second + "\", sigma = 2 }]\n");
  text = edited(text, "kind = \"separable\"\nhidden = []\ndegree = 2\nepochs = 2\n", classifier);
  text = edited(text, "[\"normalisation\", \"reliability\", \"closure\"]", "[\"reference\"]");
  return text + "\n[reference]\nmu = -0.5\n" + calibration;
}

const std::string on_demand =
    "[calibration]\nacross = \"on-demand\"\nkind = \"histogram\"\nbins = 10\nevents = 5000\n"
    "[inference]\nlevels = [0.683]\nscan = 3\n";

/// A network with θ as input, on demand where the calibration needs it.
std::string with_reference(const std::string& reference) {
  const auto text =
      edited(normal_study, "kind = \"separable\"\nhidden = []\ndegree = 2\nepochs = 2\n",
             "kind = \"mlp\"\nhidden = [16]\nepochs = 8\n");
  return edited(text, "[\"normalisation\", \"reliability\", \"closure\"]", "[\"closure\"]") +
         "\n[reference]\n" + reference;
}

TEST(References, AreAPointADesignOrToldToTheClassifier) {
  using Denominator = ParameterizedClassifierRatio::Denominator;
  const auto denominator = [](const std::string& reference) {
    return parse(with_reference(reference)).parameterized.classifier;
  };
  const auto point = denominator("mu = 0.25\n");
  EXPECT_EQ(point.denominator, Denominator::point);
  EXPECT_EQ(point.reference, std::vector{0.25});
  const auto marginal = denominator("design = \"sobol\"\n");
  EXPECT_EQ(marginal.denominator, Denominator::marginal);
  ASSERT_TRUE(marginal.denominator_design);
  EXPECT_EQ(marginal.denominator_design->config().kind, Design::Kind::sobol);
  EXPECT_TRUE(marginal.reference.empty());
  const auto told = denominator("parameterized = true\nmu = 0.25\n");
  EXPECT_EQ(told.denominator, Denominator::parameterized);
  EXPECT_FALSE(told.denominator_design);
  EXPECT_EQ(told.reference, std::vector{0.25});
  EXPECT_TRUE(denominator("parameterized = true\ndesign = \"sobol\"\n").denominator_design);
}

TEST(References, OfEveryKindGiveTheSameEstimate) {
  // 300 events of N(μ, 1): the exact estimate is their mean, with an error of 1 / √300. A network
  // of 16 neurons and 6000 events is off by a fraction of it; three errors would be a wrong ratio.
  const auto exact = run(parse(with_reference("mu = 0\n"))).results.exact_fit->fit.point[0];
  for (const auto* reference :
       {"mu = 0\n", "design = \"sobol\"\n", "parameterized = true\n",
        "parameterized = true\nmu = 0.5\ndesign = { kind = \"grid\", points = [20] }\n"}) {
    const auto results = run(parse(with_reference(reference))).results;
    EXPECT_TRUE(results.fit.fit.ok()) << reference;
    EXPECT_NEAR(results.fit.fit.point[0], exact, 3.0 / std::sqrt(300.0)) << reference;
  }
}

TEST(References, ThatContradictThemselvesAreRefused) {
  const auto says = [](const std::string& text, const char* what) {
    const auto message = message_of<StudyError>([&] { parse(text); });
    return message.find(what) != std::string::npos ? "" : message;
  };
  EXPECT_EQ(
      says(with_reference("mu = 0\ndesign = \"sobol\"\n"), "gives one θ1 beside a design of them"),
      "");
  EXPECT_EQ(says(normal_study + "\n[reference]\nparameterized = true\n",
                 "on which this likelihood does not depend"),
            "");
}

TEST(References, ARightRatioDoesNotDependOnThem) {
  // log r is linear in one combination of the features, whatever θ: logistic regression finds it,
  // and the calibration the rest.
  const auto results = run(parse(referenced("kind = \"logistic\"\n", on_demand))).results;
  ASSERT_EQ(results.diagnostics.size(), 1u);
  const auto& check = results.diagnostics[0];
  EXPECT_EQ(check.name, "reference");
  EXPECT_EQ(check.verdict, Diagnostic::Verdict::pass) << *check.p_value;
  // Three θ1, and the exact curve.
  const auto& panel = check.panels.at(0);
  ASSERT_EQ(panel.series.size(), 4u);
  EXPECT_EQ(panel.series[0].name, "θ1 = -0.5");
  EXPECT_EQ(panel.series[3].name, "exact");
  EXPECT_EQ(panel.x_label, "μ");
  // The exact −2 log Λ along μ is a parabola: 300 events of 1 + 1/4 each. About three standard
  // errors of it on each side are looked at.
  const auto& exact = panel.series[3];
  const double half = 0.5 * (exact.x.back() - exact.x.front()), error = 1.0 / std::sqrt(375.0);
  EXPECT_NEAR(exact.y.front() + exact.y.back() - 2.0 * exact.y[6], 2.0 * 375.0 * half * half, 1e-6);
  EXPECT_GT(half, 2.0 * error);
  EXPECT_LT(half, 6.0 * error);
  // Two more trainings, and what they simulate at each θ; the first at each θ of the fit too.
  EXPECT_GT(results.budget.at("diagnostics"), 2 * (6000u + 13u * 5000u));
  EXPECT_GT(results.budget.at("simulated"), 6000u + 50u * 5000u);
}

TEST(References, APoorRatioDoes) {
  // The best combination of the features depends on θ, which logistic regression cannot follow:
  // what it finds depends on θ1.
  const auto results =
      run(parse(referenced("kind = \"logistic\"\n", on_demand, "4 * mu^2"))).results;
  EXPECT_EQ(results.diagnostics.at(0).verdict, Diagnostic::Verdict::fail)
      << *results.diagnostics[0].p_value;
}

TEST(References, ASmoothCalibrationKnowsItsFluctuation) {
  const auto study = parse(edited(referenced("kind = \"mlp\"\nhidden = [16]\nepochs = 8\n"),
                                  "samples = 6000", "samples = 20000"));
  const auto results = run(study).results;
  const auto& check = results.diagnostics.at(0);
  EXPECT_NE(check.verdict, Diagnostic::Verdict::fail) << *check.p_value;
  EXPECT_GT(check.panels.at(0).series.at(0).high[0], check.panels[0].series[0].y[0]);
  EXPECT_EQ(results.budget.at("diagnostics"), 40000u);
  EXPECT_EQ(results.budget.at("simulated"), 20000u);
}

TEST(References, AreCheckedWhereTheyCanMatter) {
  const auto has = [](const Study& study) {
    const auto& which = study.diagnostics.which;
    return std::find(which.begin(), which.end(), "reference") != which.end();
  };
  const std::string listed = "which = [\"reference\"]\n";
  const auto all = [&](const std::string& text) { return parse(edited(text, listed, "")); };
  const auto network = referenced("kind = \"mlp\"\n");
  EXPECT_TRUE(has(all(network)));
  EXPECT_TRUE(has(all(referenced("kind = \"boosted-trees\"\n", on_demand))));
  EXPECT_FALSE(has(all(referenced("kind = \"boosted-trees\"\n"))));  // no gradient
  EXPECT_FALSE(has(all(referenced("kind = \"separable\"\n"))));
  EXPECT_FALSE(has(all(edited(network, "[reference]\nmu = -0.5\n", ""))));
  const auto chosen =
      parse(edited(network, listed, "references = [{ mu = 0.25 }, { mu = 0 }, { mu = 1 }]\n"));
  EXPECT_EQ(chosen.diagnostics.references,
            (std::vector<std::vector<double>>{{0.25}, {0.0}, {1.0}}));
  for (const auto& key : {listed, std::string("references = [{ mu = 0 }]\n")}) {
    EXPECT_NE(message_of<StudyError>([&] {
                parse(edited(referenced("kind = \"separable\"\n"), listed, key));
              }).find("the likelihood of one model of all θ does not depend on the reference"),
              std::string::npos);
  }
}

TEST(Diagnose, AWrongModelFails) {
  const auto study = parse(normal_study);
  const auto good = run(study).model;
  const auto wrong = run(parse(edited(normal_study, "sigma = 1\n", "sigma = 0.7\n"))).model;
  const std::vector<double> at = {0.6};
  const auto worst = [&](const Model& model) {
    auto verdict = Diagnostic::Verdict::pass;
    for (const auto& check : diagnose_model(study, model, at).diagnostics)
      verdict = std::max(verdict, check.verdict);
    return verdict;
  };
  EXPECT_NE(worst(good), Diagnostic::Verdict::fail);
  EXPECT_EQ(worst(wrong), Diagnostic::Verdict::fail);  // log r is off by a factor of two
}

TEST(Diagnose, RefusesAModelOfAnotherStudy) {
  const auto model = run(parse(normal_study)).model;
  const auto other = parse(edited(normal_study, "range = [-1, 1]", "range = [-2, 1]"));
  EXPECT_NE(message_of<ArgumentError>([&] { diagnose_model(other, model); }).find("mu in [-2, 1]"),
            std::string::npos);
}

TEST(Diagnose, AnEstimateAtTheReferenceLeavesTheNearChecks) {
  // The data are simulated at the truth; the reference is put where the estimate falls.
  auto study = parse(normal_study);
  const auto done = run(study);
  study.reference = done.results.fit.fit.point;
  const auto checked = diagnose_model(study, done.model);
  ASSERT_EQ(checked.diagnostics.size(), 3u);
  for (const auto& check : checked.diagnostics)
    EXPECT_EQ(check.name.find(":wide"), std::string::npos) << check.name;
}

TEST(Diagnose, WorksForMixtures) {
  const auto study = parse(test::small_study);
  const auto done = run(study);
  ASSERT_EQ(done.results.diagnostics.size(), 10u);
  const auto again = diagnose_model(study, done.model);
  ASSERT_EQ(again.diagnostics.size(), 10u);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(again.diagnostics[i].name, done.results.diagnostics[i].name);
    EXPECT_EQ(again.diagnostics[i].statistic, done.results.diagnostics[i].statistic);
  }
}

}  // namespace
}  // namespace neyman
