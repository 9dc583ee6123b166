#include "neyman/simulators/files.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "neyman/data/settings_file.hpp"
#include "neyman/data/writer.hpp"
#include "neyman/simulators/design.hpp"
#include "neyman/simulators/mixture.hpp"
#include "simulators/reference.hpp"

namespace neyman {
namespace {

namespace fs = std::filesystem;

const ParameterSpace files_space({{"alpha", -3, 3, {}}, {"gamma", 0, 1, {}}});

class FilesTest : public testing::Test {
 protected:
  void SetUp() override {
    folder = fs::temp_directory_path() / ("neyman files " + std::to_string(getpid()));
    fs::remove_all(folder);
    fs::create_directories(folder);
  }
  void TearDown() override { fs::remove_all(folder); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder / name) << text;
  }
  DistributionPtr make(const std::string& toml) {
    auto settings = parse_settings("kind = \"files\"\n" + toml, "study.toml");
    auto made = make_distribution(settings, files_space, folder.string());
    settings.refuse_unread();
    problems.clear();
    for (const auto& problem : settings.problems()) problems += to_string(problem) + "\n";
    return made;
  }

  fs::path folder;
  std::string problems;
};

TEST_F(FilesTest, OneTableWithColumnsOfTheta) {
  write("all.csv", "mass,gamma,w,alpha,id\n1,0.1,2,-1,7\n2,0.1,1,-1,7\n3,0.2,1,2,8\n");
  const auto made = make("file = \"all.csv\"\nweights = \"w\"\ngroup = \"id\"");
  ASSERT_NE(made, nullptr) << problems;
  const auto& events = *made->stored();
  EXPECT_EQ(events.feature_names, (std::vector<std::string>{"mass"}));
  EXPECT_EQ(events.theta, Matrix(3, 2, {-1, 0.1, -1, 0.1, 2, 0.2}));
  EXPECT_EQ(events.weights, (std::vector<double>{2, 1, 1}));
  EXPECT_EQ(events.groups, (std::vector<std::int64_t>{7, 7, 8}));
  EXPECT_EQ(made->depends_on(0), true);
  EXPECT_FALSE(can_simulate(*made));
  // All of them, whatever is asked for.
  EXPECT_EQ(simulate(*made, files_space, Design(files_space), 10, 1, "training"), events);
  RandomStream random(1, "test");
  Matrix x(2, 1);
  EXPECT_THROW(made->sample(std::vector<double>{0, 0}, random, x), SimulatorError);
}

TEST_F(FilesTest, OneTableForEachTheta) {
  write("a.csv", "mass,time\n1,2\n3,4\n");
  write("b.csv", "time,mass\n6,5\n");
  const std::string tables =
      "tables = [{ file = \"a.csv\", point = { alpha = 0, gamma = 0 } },\n"
      "{ file = \"b.csv\", point = { alpha = 1, gamma = 0.5 } }]\n";
  // By their names, in the order of the first file.
  const auto by_name = make(tables);
  ASSERT_NE(by_name, nullptr) << problems;
  EXPECT_EQ(by_name->feature_names(), (std::vector<std::string>{"mass", "time"}));
  EXPECT_EQ(by_name->stored()->x, Matrix(3, 2, {1, 2, 3, 4, 5, 6}));
  const auto made = make(tables + "columns = [\"time\", \"mass\"]");
  ASSERT_NE(made, nullptr) << problems;
  EXPECT_EQ(made->stored()->x, Matrix(3, 2, {2, 1, 4, 3, 6, 5}));
  EXPECT_EQ(made->stored()->theta, Matrix(3, 2, {0, 0, 0, 0, 1, 0.5}));
}

TEST_F(FilesTest, NamesForFilesWithout) {
  Samples samples;
  samples.feature_names = {"a", "b", "c"};
  samples.x = Matrix(2, 3, {0.5, 1, 7, 0.25, -1, 8});
  write_samples((folder / "events.npy").string(), samples);
  const auto made = make("file = \"events.npy\"\nnames = [\"gamma\", \"alpha\", \"mass\"]");
  ASSERT_NE(made, nullptr) << problems;
  EXPECT_EQ(made->stored()->x, Matrix(2, 1, {7, 8}));
  EXPECT_EQ(made->stored()->theta, Matrix(2, 2, {1, 0.5, -1, 0.25}));
}

TEST_F(FilesTest, ComponentsOfAMixture) {
  write("b.csv", "mass\n1\n2\n");
  write("s.csv", "mass\n3\n");
  auto settings = parse_settings(R"(kind = "mixture"
weights = ["1 - gamma", "gamma"]
components = [{ name = "b", kind = "files", file = "b.csv" },
              { name = "s", kind = "files", file = "s.csv" }])",
                                 "study.toml");
  const auto made = make_distribution(settings, files_space, folder.string());
  settings.throw_if_problems();
  EXPECT_FALSE(can_simulate(*made));
  EXPECT_EQ(made->depends_on(0), false);
  EXPECT_EQ(made->depends_on(1), true);
  EXPECT_EQ(made->feature_names(), (std::vector<std::string>{"mass"}));
}

TEST_F(FilesTest, ComponentsHaveTheSameFeaturesInTheSameOrder) {
  write("b.csv", "mass,time\n1,2\n2,3\n");
  write("s.csv", "time,mass\n3,4\n");
  const auto mixture = [&](const std::string& keys) {
    auto settings = parse_settings(R"(kind = "mixture"
weights = ["1 - gamma", "gamma"]
components = [{ kind = "files", file = "b.csv" },
              { kind = "files", file = "s.csv")" +
                                       keys + "}]",
                                   "study.toml");
    const auto made = make_distribution(settings, files_space, folder.string());
    problems.clear();
    for (const auto& problem : settings.problems()) problems += to_string(problem) + "\n";
    return made;
  };
  EXPECT_EQ(mixture(""), nullptr);
  EXPECT_TRUE(reference::contains(
      problems,
      "components[1] has the features time, mass, but must have mass, time in this order"))
      << problems;
  EXPECT_NE(mixture(", columns = [\"mass\", \"time\"]"), nullptr) << problems;
}

TEST_F(FilesTest, ListsPatternsAndTablesInsideOfFiles) {
  write("run1.csv", "mass,alpha,gamma\n1,0,0\n");
  write("run2.csv", "gamma,mass,alpha\n0.5,2,1\n");
  const Matrix both(2, 1, {1, 2}), theta(2, 2, {0, 0, 1, 0.5});
  for (const std::string file : {"[\"run1.csv\", \"run2.csv\"]", "\"run*.csv\""}) {
    const auto made = make("file = " + file);
    ASSERT_NE(made, nullptr) << problems;
    EXPECT_EQ(made->stored()->x, both);
    EXPECT_EQ(made->stored()->theta, theta);
  }
  EXPECT_EQ(make("file = \"other*.csv\""), nullptr);
  EXPECT_TRUE(reference::contains(problems, "no file matches this pattern")) << problems;
  Samples samples;
  samples.feature_names = {"mass", "alpha", "gamma"};
  samples.x = Matrix(1, 3, {7, 0, 0});
  write_samples((folder / "sims.h5").string(), samples);
  ASSERT_NE(make("file = \"sims.h5:/\""), nullptr) << problems;
  EXPECT_EQ(make("file = \"sims.h5:run7\""), nullptr);
  EXPECT_TRUE(reference::contains(problems, "has no dataset or group 'run7'")) << problems;
}

TEST_F(FilesTest, DistributionsOfFilesHaveTheirNames) {
  write("named.csv", "mass\n1\n2\n4\n");
  write("bare.csv", "1\n2\n4\n");
  for (const std::string kind : {"kde", "empirical", "histogram"}) {
    const auto of = [&](const std::string& file) {
      auto settings = parse_settings("kind = \"" + kind + "\"\nfile = " + file, "study.toml");
      const auto made = make_distribution(settings, files_space, folder.string());
      settings.throw_if_problems();
      return made->feature_names();
    };
    EXPECT_EQ(of("\"named.csv\""), std::vector<std::string>{"mass"});
    EXPECT_EQ(of("[\"named.csv\", \"named.csv\"]"), std::vector<std::string>{"mass"});
    EXPECT_TRUE(of("\"bare.csv\"").empty());
  }
}

TEST_F(FilesTest, AFeatureMayHaveTheNameOfAParameter) {
  write("events.csv", "mass,gamma\n1,5\n2,6\n");
  const auto made = make("file = \"events.csv\"\ncolumns = [\"mass\", \"gamma\"]");
  ASSERT_NE(made, nullptr) << problems;
  EXPECT_EQ(made->stored()->x, Matrix(2, 2, {1, 5, 2, 6}));
  EXPECT_TRUE(made->stored()->theta.empty());
  EXPECT_EQ(make("file = \"events.csv\""), nullptr);
  EXPECT_TRUE(reference::contains(problems,
                                  "if gamma is a feature with a parameter's name, name "
                                  "the features in columns"))
      << problems;
}

TEST_F(FilesTest, Problems) {
  const auto expect = [&](const std::string& toml, const std::string& text) {
    EXPECT_EQ(make(toml), nullptr);
    EXPECT_TRUE(reference::contains(problems, text)) << problems;
  };
  write("part.csv", "mass,alpha\n1,0\n");
  write("outside.csv", "mass,alpha,gamma\n1,0,0\n1,4,0\n");
  write("nan.csv", "mass,alpha,gamma\n1,0,nan\n");
  expect("", "file is missing, but must name a table of events");
  expect("file = \"absent.csv\"", "study.toml:2: file cannot be used: ");
  expect("file = \"part.csv\"", "has a column for the parameter alpha, but none for gamma");
  expect("file = \"outside.csv\"", "row 2");
  expect("file = \"nan.csv\"", "gamma");
  expect("tables = [{ file = \"part.csv\", point = { alpha = 9, gamma = 0 } }]",
         "point.alpha is 9, but must be between -3 and 3");
  expect("tables = [{ file = \"part.csv\", point = { alpha = 1 } }]", "gamma is missing");
}

// A tenth of each θ is kept for checks, where that is at least a hundred at two θ.
TEST_F(FilesTest, HoldsEventsOutForChecks) {
  std::string text = "mass,alpha,gamma\n";
  for (int i = 0; i < 2200; ++i)
    text += std::to_string(i) + (i < 1000 ? ",0,0\n" : i < 2000 ? ",1,0.5\n" : ",2,0.5\n");
  write("events.csv", text);
  const auto made = make("file = \"events.csv\"");
  ASSERT_NE(made, nullptr) << problems;
  const auto& files = dynamic_cast<const Files&>(*made);
  EXPECT_EQ(files.stored()->size(), 1980u);
  EXPECT_EQ(files.held_out().size(), 220u);
  EXPECT_EQ(files.held_out_near(std::vector<double>{-1, 0}).theta(0, 0), 0.0);
  // (2, 0.5) has too few.
  const auto near = files.held_out_near(std::vector<double>{2, 0.5});
  EXPECT_EQ(near.theta(0, 0), 1.0);
  EXPECT_EQ(near.size(), 100u);
  EXPECT_EQ(
      dynamic_cast<const Files&>(*make("file = \"events.csv\"\nheld_out = 0")).held_out().size(),
      0u);
}

// Design of the events that there are.

TEST(EmpiricalDesign, HasEachThetaOnceWhereAllAreAsOften) {
  Samples events;
  events.x = Matrix(6, 1);
  events.theta = Matrix(6, 2, {0, 0, 1, 0.5, 0, 0, -1, 1, 1, 0.5, -1, 1});
  const auto design = empirical_design(events, files_space);
  ASSERT_EQ(design.rows().rows(), 3u);
  double alpha = 0.0;
  for (std::size_t i = 0; i < 3; ++i) alpha += design.rows()(i, 0);
  EXPECT_EQ(alpha, 0.0);
}

// Means over nodes are means over the events, weighted: exact to the size of one stratum.
TEST(EmpiricalDesign, IntegratesLikeTheWeightedEvents) {
  Samples events;
  const std::size_t n = 3000;
  events.x = Matrix(n, 1);
  events.theta = Design(files_space).draw(n, 1, "test");
  RandomStream random(2, "test");
  double sum = 0.0, exact = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    events.weights.push_back(random.uniform() * (events.theta(i, 0) > 0 ? 3.0 : 1.0));
    sum += events.weights.back();
    exact += events.weights.back() * std::exp(0.5 * events.theta(i, 0) + events.theta(i, 1));
  }
  const auto design = empirical_design(events, files_space);
  double mean = 0.0;
  for (std::size_t block = 0; block < 50; ++block) {
    const auto nodes = design.nodes(96, 7, block);
    for (std::size_t i = 0; i < nodes.rows(); ++i)
      mean += std::exp(0.5 * nodes(i, 0) + nodes(i, 1)) / static_cast<double>(50 * nodes.rows());
  }
  EXPECT_NEAR(mean, exact / sum, 0.01 * exact / sum);
  for (std::size_t i = 0; i < n; i += 3) events.weights[i] *= -1.0;
  EXPECT_EQ(empirical_design(events, files_space).rows(), design.rows());
}

TEST_F(FilesTest, StreamKeepsSomeInMemory) {
  Samples samples;
  samples.feature_names = {"alpha", "gamma", "mass"};
  samples.x = Matrix(20000, 3);
  for (std::size_t i = 0; i < 20000; ++i) {
    samples.x(i, 0) = i % 4 == 0 ? 1.0 : 2.0;
    samples.x(i, 1) = 0.5;
    samples.x(i, 2) = static_cast<double>(i);
  }
  write_samples((folder / "events.h5").string(), samples);
  const std::string file = "file = \"events.h5\"\n";
  const auto made = make(file + "stream = true\nin_memory = 10000");
  ASSERT_NE(made, nullptr) << problems;
  EXPECT_EQ(problems, "");
  const auto stream = made->stream();
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(stream->rows(), 20000U);
  const auto& kept = *made->stored();
  const auto& checks = dynamic_cast<const Files&>(*made).held_out();
  // Half of the events, of which a tenth is for checks: binomial, six standard deviations.
  EXPECT_NEAR(static_cast<double>(kept.size()), 9000, 6 * 70);
  EXPECT_NEAR(static_cast<double>(checks.size()), 1000, 6 * 31);
  // Events that check never train.
  std::set<std::int64_t> trained;
  const auto all = stream->read(0, 20000);
  trained.insert(all.groups.begin(), all.groups.end());
  EXPECT_EQ(trained.size() + checks.size(), 20000U);
  for (const auto group : checks.groups) EXPECT_FALSE(trained.contains(group));
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_TRUE(trained.contains(kept.groups[i]));
    EXPECT_EQ(kept.x(i, 0), static_cast<double>(kept.groups[i]));
    EXPECT_EQ(kept.theta(i, 0), kept.groups[i] % 4 == 0 ? 1.0 : 2.0);
  }
  EXPECT_EQ(make(file)->stream(), nullptr);
}

TEST_F(FilesTest, StreamProblems) {
  const auto expect = [&](const std::string& toml, const std::string& text) {
    EXPECT_EQ(make(toml), nullptr);
    EXPECT_TRUE(reference::contains(problems, text)) << problems;
  };
  write("all.csv", "mass,gamma,alpha\n1,0.1,-1\n");
  expect("file = \"all.csv\"\nstream = true", "is a CSV file, which is read from the top");
  expect("file = \"all.csv\"\nin_memory = 5000", "all events are in memory without stream = true");
  Samples samples;
  samples.feature_names = {"alpha", "gamma", "mass"};
  samples.x = Matrix(3, 3, {0, 0, 1, 4, 0, 1, 0, 0, 1});
  write_samples((folder / "outside.npy").string(), samples);
  expect("file = \"outside.npy\"\nstream = true\nnames = [\"alpha\", \"gamma\", \"mass\"]",
         "row 2");
}

TEST_F(FilesTest, VariationsAndEventsAcrossParameters) {
  write("nominal.csv", "x,y,w\n1,2,1\n3,4,-0.5\n");
  write("down.csv", "x,y,w\n0,2,1\n");
  write("up.csv", "x,y,w\n2,2,1\n2,3,-0.25\n");
  write("across.csv", "x,y,w,alpha\n1,2,1,-3\n5,6,-0.75,2.5\n");
  const auto made = make(
      "file = \"nominal.csv\"\nweights = \"w\"\nnegative = true\nacross = \"across.csv\"\n"
      "variations = { gamma = [\"down.csv\", \"up.csv\"] }");
  ASSERT_NE(made, nullptr) << problems;
  const auto& files = dynamic_cast<const Files&>(*made);
  EXPECT_EQ(files.stored()->weights, (std::vector<double>{1, -0.5}));
  ASSERT_EQ(files.variations().size(), 1u);
  EXPECT_EQ(files.variations()[0].parameter, "gamma");
  EXPECT_EQ(files.variations()[0].low.x, Matrix(1, 2, {0, 2}));
  EXPECT_EQ(files.variations()[0].high.x, Matrix(2, 2, {2, 2, 2, 3}));
  EXPECT_EQ(files.across().parameter_names, (std::vector<std::string>{"alpha"}));
  EXPECT_EQ(files.across().theta, Matrix(2, 1, {-3, 2.5}));
  EXPECT_EQ(files.variations()[0].high.weights, (std::vector<double>{1, -0.25}));
  EXPECT_EQ(files.across().weights, (std::vector<double>{1, -0.75}));
  EXPECT_EQ(files.across().feature_names, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(made->depends_on(0), true);
  EXPECT_EQ(made->depends_on(1), true);
}

TEST_F(FilesTest, RefusesVariationsThatDoNotFit) {
  write("nominal.csv", "x,y\n1,2\n3,4\n");
  write("up.csv", "x,y\n2,2\n");
  write("empty.csv", "x,y\n");
  write("other.csv", "x,z\n1,1\n");
  write("outside.csv", "x,y,alpha\n1,1,7\n");
  const auto expect = [&](const std::string& keys, const std::string& words) {
    EXPECT_EQ(make("file = \"nominal.csv\"\n" + keys), nullptr);
    EXPECT_NE(problems.find(words), std::string::npos) << problems;
  };
  expect("variations = { gama = [\"up.csv\", \"up.csv\"] }", "study.toml:3: variations.gama");
  expect("variations = { gamma = [\"up.csv\"] }", "must have two");
  expect("variations = { gamma = [\"empty.csv\", \"up.csv\"] }", "empty.csv");
  expect("variations = { gamma = [\"other.csv\", \"up.csv\"] }",
         "other.csv: has the features x, z");
  expect("across = \"up.csv\"", "has no column for any of");
  expect("across = \"outside.csv\"", "outside.csv: row 1, alpha");
}

TEST_F(FilesTest, NegativeWeightsMustBeAskedFor) {
  write("nominal.csv", "x,w\n1,1\n3,1\n");
  write("moved.csv", "x,w\n1,1\n2,-0.5\n");
  write("across.csv", "x,w,alpha\n1,1,0\n2,-0.5,1\n");
  for (const std::string shape :
       {"across = \"across.csv\"", "variations = { gamma = [\"moved.csv\", \"moved.csv\"] }"}) {
    const auto keys = "file = \"nominal.csv\"\nweights = \"w\"\n" + shape;
    EXPECT_EQ(make(keys), nullptr);
    EXPECT_NE(problems.find("is -0.5, but must be not negative; a component of a measurement, "
                            "whose mixture has yields, may have such weights with negative = true"),
              std::string::npos)
        << problems;
    EXPECT_NE(make(keys + "\nnegative = true"), nullptr) << problems;
  }
}

}  // namespace
}  // namespace neyman
