// Every public function checks what it is given: nothing that may be null ends in a crash.

#include <gtest/gtest.h>

#include "data/support.hpp"
#include "neyman/calibration/calibrator.hpp"
#include "neyman/calibration/interpolated.hpp"
#include "neyman/calibration/on_demand.hpp"
#include "neyman/classifiers/classifier.hpp"
#include "neyman/classifiers/ensemble.hpp"
#include "neyman/inference/bayesian_optimisation.hpp"
#include "neyman/inference/composite_test.hpp"
#include "neyman/inference/constraint.hpp"
#include "neyman/inference/coverage.hpp"
#include "neyman/inference/ensemble.hpp"
#include "neyman/inference/parameterized_likelihood.hpp"
#include "neyman/pipeline/measurement_study.hpp"
#include "neyman/pipeline/pipeline.hpp"
#include "neyman/ratios/classifier_across.hpp"
#include "neyman/ratios/classifier_ratio.hpp"
#include "neyman/ratios/mixture_ratio.hpp"
#include "neyman/simulators/join.hpp"
#include "neyman/simulators/linear_transform.hpp"
#include "neyman/simulators/mixture.hpp"
#include "neyman/simulators/normal.hpp"
#include "pipeline/small_study.hpp"

namespace neyman {
namespace {

const ParameterSpace space({{.name = "mu", .low = -1.0, .high = 1.0, .truth = 0.0}});

DistributionPtr normal() { return std::make_shared<Normal>(Expression("mu", space), 1.0); }

Samples drawn(double mean, const char* purpose) {
  Samples out;
  out.feature_names = {"x"};
  out.x = sample(*normal(), std::vector{mean}, 2000, 1, purpose);
  return out;
}

template <class Work>
void expect_refused(const char* names, Work&& work) {
  EXPECT_CONTAINS(test::message_of<ArgumentError>(work), names);
}

TEST(Null, ARatioWithoutClassifierAndCalibratorHasTheDefaultOnes) {
  RatioConfig bare;
  bare.folds = 2;
  bare.replicas = 2;
  RatioConfig named = bare;
  named.classifier = make_classifier("mlp");
  named.calibrator = make_calibrator("smooth");
  const auto learned = [&](const RatioConfig& config) {
    const FoldedSample top(drawn(-0.5, "top"), config, 0), bottom(drawn(0.5, "bottom"), config, 1);
    const ClassifierRatio ratio(top, bottom, {-0.5}, {0.5}, config);
    const auto found =
        ratio.log_ratios(Matrix(3, 1, {-1, 0, 1}), std::vector{-0.5}, std::vector{0.5});
    return std::vector<double>(found.values().begin(), found.values().end());
  };
  EXPECT_EQ(learned(bare), learned(named));
}

TEST(Null, SimulatorsAreThere) {
  expect_refused("mixture: a component is null", [] {
    Mixture({nullptr, normal()}, {Expression(0.5), Expression(0.5)});
  });
  expect_refused("join: a part is null", [] { Join({nullptr}); });
  expect_refused("linear-transform: of is null", [] { LinearTransform(nullptr, {}, {}); });
  expect_refused("ExactRatio: distribution is empty", [] { ExactRatio ratio(nullptr); });
  expect_refused("InverseRatio: of is empty", [] { InverseRatio ratio(nullptr); });
  expect_refused("ExactMixtureRatio: mixture is null", [] { ExactMixtureRatio(nullptr, {0.5}); });
  expect_refused("DensityLikelihood: distribution is null",
                 [] { DensityLikelihood(space, nullptr, Matrix(1, 1)); });
  ParameterizedClassifierRatio::Config config;
  expect_refused("simulator is empty",
                 [&] { ParameterizedClassifierRatio(nullptr, Design(space), config); });
  config.samples = 1000;
  expect_refused("classifier is empty",
                 [&] { ParameterizedClassifierRatio(normal(), Design(space), config); });
}

TEST(Null, ObjectsOfProgramsAreThere) {
  const auto settings = [](SettingValue::Object object) {
    return Settings({{"kind", {std::string("python")}}, {"object", {std::move(object)}}});
  };
  auto classifier = settings(std::make_shared<ClassifierObject>(nullptr));
  EXPECT_EQ(make_classifier(classifier), nullptr);
  EXPECT_EQ(classifier.problems().size(), 1u);
  auto nothing = settings(std::make_shared<DistributionObject>(DistributionObject::Make()));
  EXPECT_EQ(make_distribution(nothing, space), nullptr);
  EXPECT_EQ(nothing.problems().size(), 1u);
  auto null =
      settings(std::make_shared<DistributionObject>([](const ParameterSpace&) { return nullptr; }));
  EXPECT_EQ(make_distribution(null, space), nullptr);
  EXPECT_EQ(null.problems().size(), 1u);
  Ensemble::Config of;
  of.of = {nullptr};
  expect_refused("ensemble: of is empty", [&] { Ensemble made(of); });
}

TEST(Null, FunctionsAreThereAndWhatTheyReturnIs) {
  expect_refused("maximise_bayesian: function is empty",
                 [] { maximise_bayesian({}, space, BayesianConfig()); });
  expect_refused("ConstrainedLikelihood: of is null", [] { ConstrainedLikelihood(nullptr, {}); });
  expect_refused("make_experiment: likelihood is empty",
                 [] { make_experiment(*normal(), 10, LikelihoodFactory()); });
  InterpolatedCalibration interpolated;
  expect_refused("InterpolatedCalibration::fit: scores is empty", [&] {
    interpolated.fit(Matrix(2, 1, {0, 1}),
                     std::function<InterpolatedCalibration::Scores(std::size_t)>());
  });
  expect_refused("OnDemandCalibration: simulate is empty",
                 [] { OnDemandCalibration(1, {}, OnDemandCalibration::Config()); });

  EnsembleConfig ensemble;
  ensemble.datasets = 2;
  ensemble.events = 10;
  ensemble.point = {0.0};
  expect_refused("run_ensemble: experiment is empty",
                 [&] { run_ensemble(ensemble, space, Experiment()); });
  expect_refused("run_ensemble: likelihood is empty",
                 [&] { run_ensemble(ensemble, space, *normal(), EnsembleModel()); });
  const Experiment nothing = [](std::span<const double>, RandomStream&) { return nullptr; };
  expect_refused("what experiment returns is null",
                 [&] { run_ensemble(ensemble, space, nothing); });
  CoverageConfig coverage;
  coverage.points = Matrix(1, 1, {0.0});
  expect_refused("run_coverage: experiment is empty",
                 [&] { run_coverage(coverage, space, Experiment()); });
}

TEST(Null, StudiesAndModelsThatAProgramPutTogetherAreWhole) {
  const Study empty;
  expect_refused("run: study.simulator is null", [&] { run(empty); });
  expect_refused("run: study.simulator is null", [&] { run(empty, RunOptions()); });
  expect_refused("diagnose: study.simulator is null", [&] { diagnose_model(empty, Model()); });
  expect_refused("simulate_measurement: study is without yields",
                 [&] { simulate_measurement(empty); });
  Study quick;
  expect_refused("quicken: study.simulator is null", [&] { quicken(quick); });
  auto study = test::parse(test::small_study);
  study.learning.classifier = nullptr;
  expect_refused("run: study.learning.classifier is null", [&] { run(study); });
  const Model model;
  expect_refused("fit: the model has no ratio", [&] { fit_data(model, drawn(0, "x"), "none"); });
  expect_refused("save_model: the model has no ratio", [&] { save_model(model, "/nowhere/m.h5"); });
  expect_refused("export_onnx: the model has no ratio", [&] { export_onnx(model, {}); });
}

}  // namespace
}  // namespace neyman
