// Which columns of the data are the features of a study.

#include <gtest/gtest.h>

#include "data/support.hpp"
#include "neyman/data/writer.hpp"
#include "neyman/pipeline/pipeline.hpp"
#include "pipeline/small_study.hpp"

namespace neyman {
namespace {

using test::parse;
using test::problems_of;
using Strings = std::vector<std::string>;

/// Two features without names of their own, of which the first alone knows mu.
const std::string two_features = R"([study]
name = "two"
seed = 5

[parameters]
mu = { range = [-3, 3], truth = 0 }

[simulator]
kind = "multivariate-normal"
mean = ["mu", 0]
covariance = [[1, 0], [0, 0.01]]

[training]
samples = 4000

[classifier]
hidden = []
degree = 2

[diagnostics]
which = []

[report]
figures = false

[data]
)";

/// Data whose first feature is 1 ± 0.1 about and whose second is small.
Samples observed(const Strings& names) {
  Samples out;
  out.feature_names = names;
  out.x = Matrix(400, 2);
  RandomStream random(7, "observed");
  for (std::size_t i = 0; i < out.size(); ++i) {
    out.x(i, 0) = 1.0 + random.normal();
    out.x(i, 1) = 0.1 * random.normal();
  }
  return out;
}

/// The same with its columns the other way round, names included.
Samples reversed(Samples events) {
  for (std::size_t i = 0; i < events.size(); ++i) std::swap(events.x(i, 0), events.x(i, 1));
  std::swap(events.feature_names[0], events.feature_names[1]);
  return events;
}

double estimate(const std::string& data, const std::string& folder) {
  const auto done = run(parse(two_features + data, folder));
  return done.results.fit.fit.point[0];
}

TEST(ObservedData, ARunTakesColumnsByTheirNames) {
  const test::TemporaryFolder folder;
  write_samples(folder.path("straight.csv"), observed({"x0", "x1"}));
  write_samples(folder.path("reversed.csv"), reversed(observed({"x0", "x1"})));
  const double straight = estimate("file = \"straight.csv\"", folder.path(""));
  EXPECT_NEAR(straight, 1.0, 0.25);  // 5 standard errors
  EXPECT_EQ(estimate("file = \"reversed.csv\"", folder.path("")), straight);
  // A list and a pattern of files are one after the other, each by its own names.
  const auto both =
      run(parse(two_features + "file = [\"straight.csv\", \"reversed.csv\"]", folder.path("")));
  EXPECT_EQ(both.results.events, 800u);
  EXPECT_NEAR(both.results.fit.fit.point[0], straight, 0.01);
  EXPECT_CONTAINS(both.results.data_source, "straight.csv and 1 more file");
  EXPECT_EQ(run(parse(two_features + "file = \"*.csv\"", folder.path(""))).results.events, 800u);
}

TEST(ObservedData, OtherNamesAreRefusedUnlessTheStudySaysSo) {
  const test::TemporaryFolder folder;
  write_samples(folder.path("yz.csv"), observed({"y", "z"}));
  EXPECT_EQ(
      problems_of(two_features + "file = \"yz.csv\"", folder.path("")),
      Strings{
          "study.toml:27: data.file has the columns y, z, but the features of the simulator are "
          "x0, x1; say which are these, in this order, with columns = [\"y\", \"z\"]"});
  const auto done =
      run(parse(two_features + "file = \"yz.csv\"\ncolumns = [\"y\", \"z\"]", folder.path("")));
  EXPECT_NEAR(done.results.fit.fit.point[0], 1.0, 0.25);
  EXPECT_EQ(done.model.feature_names, (Strings{"y", "z"}));
  EXPECT_EQ(done.results.data_note, "");
  // The model knows these names from then on.
  std::string note;
  const auto again = fit_data(done.model, reversed(observed({"y", "z"})), "again");
  EXPECT_EQ(again.fit.fit.point, done.results.fit.fit.point);
  EXPECT_CONTAINS(test::message_of<ArgumentError>([&] {
                    fit_data(done.model, observed({"a", "b"}), "other");
                  }),
                  "has the columns a, b, but must have y, z");
  EXPECT_EQ(
      problems_of(two_features + "file = \"yz.csv\"\ncolumns = [\"y\"]", folder.path("")),
      Strings{"study.toml:28: data.columns names y, but must name a column for each feature of the "
              "simulator: x0, x1"});
}

TEST(ObservedData, WithoutNamesTheOrderCountsAndThatIsSaid) {
  const test::TemporaryFolder folder;
  write_samples(folder.path("bare.npy"), observed({"a", "b"}));
  const auto study = parse(two_features + "file = \"bare.npy\"", folder.path(""));
  EXPECT_EQ(study.data.note,
            "the columns of bare.npy have no names: they are taken in their order as x0, x1");
  const auto done = run(study);
  EXPECT_EQ(done.results.data_note, study.data.note);
  EXPECT_NEAR(done.results.fit.fit.point[0], 1.0, 0.25);
  // By their default names in another order, because the study says so.
  EXPECT_GT(std::abs(estimate("file = \"bare.npy\"\ncolumns = [\"x1\", \"x0\"]", folder.path("")) -
                     done.results.fit.fit.point[0]),
            0.5);
}

TEST(ObservedData, NamesOfTheSimulatorItselfLeaveOtherColumnsOut) {
  const test::TemporaryFolder folder;
  std::string rows = "pt,mass,mu\n", data = "id,mass,pt\n";
  RandomStream random(3, "rows");
  for (int i = 0; i < 400; ++i) {
    const double mu = i % 2 == 0 ? -1.0 : 1.0;
    rows += std::to_string(random.normal()) + ',' + std::to_string(mu + random.normal()) + ',' +
            std::to_string(mu) + '\n';
    data += std::to_string(i) + ",0.5," + std::to_string(random.normal()) + '\n';
  }
  folder.file("simulated.csv", rows);
  folder.file("observed.csv", data);
  folder.file("other.csv", "mass\n1\n");
  const std::string text =
      "[parameters]\nmu = { range = [-1, 1] }\n[simulator]\nkind = \"files\"\nfile = "
      "\"simulated.csv\"\n[data]\n";
  const auto study = parse(text + "file = \"observed.csv\"", folder.path(""));
  EXPECT_EQ(study.data.files.at(0).options.features, (Strings{"pt", "mass"}));
  EXPECT_EQ(study.data.note, "of observed.csv, id is no feature of the model and left out");
  EXPECT_EQ(problems_of(text + "file = \"other.csv\"", folder.path("")).size(), 1u);
  EXPECT_EQ(
      problems_of(text + "file = \"observed.csv\"\ncolumns = [\"mass\", \"pt\"]", folder.path("")),
      Strings{"study.toml:8: data.columns[0] is \"mass\", but the simulator's feature there is pt: "
              "its features are pt, mass, which are found by their names without columns"});
}

TEST(ObservedData, EventsThatAProgramHoldsAreTheData) {
  const auto settings = parse(two_features + "events = 100").settings;
  const auto study = make_study(settings, "a dict", ".",
                                std::make_shared<Samples>(reversed(observed({"x0", "x1"}))));
  const auto done = run(study);
  EXPECT_EQ(done.results.events, 400u);
  EXPECT_EQ(done.results.data_source, "an array");
  EXPECT_NEAR(done.results.fit.fit.point[0], 1.0, 0.25);
  EXPECT_THROW(make_study(settings, "a dict", ".", std::make_shared<Samples>(observed({"y", "z"}))),
               StudyError);
  auto broken = observed({"x0", "x1"});
  broken.x(3, 1) = std::nan("");
  EXPECT_THROW(make_study(settings, "a dict", ".", std::make_shared<Samples>(broken)), StudyError);
}

TEST(ObservedData, TablesInsideOfHdf5FilesAndFormatsAreNamed) {
  const test::TemporaryFolder folder;
  write_samples(folder.path("data.h5"), observed({"x0", "x1"}));
  EXPECT_EQ(run(parse(two_features + "file = \"data.h5\"", folder.path(""))).results.events, 400u);
  EXPECT_EQ(problems_of(two_features + "file = \"data.h5:nothing\"", folder.path("")).size(), 1u);
  write_samples(folder.path("events.csv"), observed({"x0", "x1"}));
  std::filesystem::rename(folder.path("events.csv"), folder.path("events.dat"));
  EXPECT_CONTAINS(problems_of(two_features + "file = \"events.dat\"", folder.path("")).at(0),
                  "format = \"csv\" in a study");
  EXPECT_EQ(problems_of(two_features + "file = \"events.dat\"\nformat = \"csv\"", folder.path("")),
            Strings{});
}

}  // namespace
}  // namespace neyman
