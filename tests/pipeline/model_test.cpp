#include "neyman/pipeline/model.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "data/support.hpp"
#include "neyman/data/archive_file.hpp"
#include "neyman/pipeline/pipeline.hpp"
#include "neyman/simulators/distribution.hpp"
#include "pipeline/small_study.hpp"

namespace neyman {
namespace {

using test::message_of;
using test::parse;
using test::small_study;

Matrix new_events() {
  return sample(*parse(small_study).simulator, std::vector{0.5}, 200, 5, "test");
}

class ModelOfEachKind : public testing::TestWithParam<const char*> {};

TEST_P(ModelOfEachKind, ComesBackFromDisk) {
  const test::TemporaryFolder folder;
  const auto study = parse(test::with("kind = \"logistic\"", GetParam()));
  const auto model = run(study).model;
  const auto path = folder.path("model.h5");
  save_model(model, path);
  const auto loaded = load_model(path);

  EXPECT_EQ(loaded.name, "small");
  EXPECT_EQ(loaded.seed, 3u);
  EXPECT_EQ(loaded.parameters.names(), model.parameters.names());
  EXPECT_EQ(loaded.parameters[0].low, 0.0);
  EXPECT_EQ(loaded.parameters[0].high, 1.0);
  EXPECT_EQ(loaded.feature_names, std::vector<std::string>{"x"});
  EXPECT_EQ(loaded.component_names, (std::vector<std::string>{"background", "signal"}));
  EXPECT_EQ(loaded.classifier, study.learning.classifier->kind());
  EXPECT_EQ(loaded.calibration, "sigmoid");
  EXPECT_EQ(loaded.levels, model.levels);
  EXPECT_EQ(loaded.scan_points, model.scan_points);
  EXPECT_EQ(loaded.ratio->reference(), std::vector{0.1});

  // The same bits, in the ratios and in all that follows.
  const auto x = new_events();
  EXPECT_EQ(model.ratio->component_ratios(x), loaded.ratio->component_ratios(x));
  EXPECT_EQ(model.ratio->normalisation(), loaded.ratio->normalisation());
  Samples data;
  data.feature_names = {"x"};
  data.x = x;
  const auto before = fit_data(model, data, ""), after = fit_data(loaded, data, "");
  EXPECT_EQ(before.fit.fit.point, after.fit.fit.point);
  EXPECT_EQ(before.fit.fit.simulation_covariance, after.fit.fit.simulation_covariance);

  // A second trip changes nothing.
  save_model(loaded, folder.path("again.h5"));
  EXPECT_EQ(load_model(folder.path("again.h5")).ratio->component_ratios(x),
            model.ratio->component_ratios(x));
  EXPECT_EQ(folder.count(), 2u);  // nothing temporary is left
}

INSTANTIATE_TEST_SUITE_P(Model, ModelOfEachKind,
                         testing::Values("kind = \"logistic\"",
                                         "kind = \"mlp\"\nhidden = [4]\nepochs = 2",
                                         "kind = \"random-forest\"\ntrees = 5"));

TEST(Model, ChecksWhetherNewDataLieWhereItHasSeenEvents) {
  auto study = parse(test::with("kind = \"logistic\"", "kind = \"mlp\"\nhidden = [4]\nepochs = 2"));
  const auto model = run(study).model;
  const auto check = [&](std::size_t far) {
    Samples data;
    data.feature_names = {"x"};
    data.x = new_events();
    for (std::size_t i = 0; i < far; ++i) data.x(i, 0) = 40.0;
    const auto results = fit_data(model, data, "new");
    const auto found = std::find_if(results.diagnostics.begin(), results.diagnostics.end(),
                                    [](const auto& one) { return one.name == "range"; });
    EXPECT_NE(found, results.diagnostics.end());
    EXPECT_EQ(found->statistic,
              static_cast<double>(results.outside) / static_cast<double>(results.events));
    return *found;
  };
  const std::size_t events = new_events().rows();
  EXPECT_EQ(check(0).verdict, Diagnostic::Verdict::pass);
  EXPECT_EQ(check(events / 33).verdict, Diagnostic::Verdict::warn);
  EXPECT_EQ(check(events / 3).verdict, Diagnostic::Verdict::fail);
  EXPECT_CONTAINS(check(events / 3).note, "unlike all simulated events");
}

TEST(Model, RefusesOtherFiles) {
  const test::TemporaryFolder folder;
  EXPECT_THROW(load_model(folder.path("absent.h5")), FileError);
  EXPECT_THROW(load_model(folder.file("text.h5", "not a model")), FileError);

  Archive archive;
  archive.set("name", std::string("x"));
  const auto path = folder.path("other.h5");
  write_archive(path, archive, "another.schema", 1);
  EXPECT_THROW(load_model(path), FileError);
  write_archive(path, archive, "neyman.model", 2);  // of a newer version
  EXPECT_THROW(load_model(path), FileError);
  EXPECT_NE(message_of<FileError>([&] { load_model(path); }).find("other.h5"), std::string::npos);
  write_archive(path, archive, "neyman.model", 1);  // it lacks all but the name
  EXPECT_NE(message_of<FileError>([&] { load_model(path); }).find("other.h5"), std::string::npos);
}

}  // namespace
}  // namespace neyman
