#include <cmath>
#include <map>

#include "neyman/core/parallel.hpp"
#include "neyman/data/settings_file.hpp"
#include "neyman/simulators/command.hpp"
#include "neyman/simulators/empirical.hpp"
#include "neyman/simulators/g_and_k.hpp"
#include "neyman/simulators/histogram.hpp"
#include "neyman/simulators/kde.hpp"
#include "neyman/simulators/multivariate_normal.hpp"
#include "neyman/simulators/plugin.hpp"
#include "neyman/simulators/ricker.hpp"
#include "neyman/simulators/uniform.hpp"
#include "simulators/examples.hpp"
#include "simulators/reference.hpp"

// One suite for every distribution in the room's list: each kind has a case below, written as a
// study writes it and in C++.
namespace neyman {
namespace {

const ParameterSpace list_space({{"alpha", -3, 3, 1.0}, {"gamma", 0, 1, {}}});
const std::vector<double> list_point{0.7, 0.3};

struct Case {
  std::string toml;
  DistributionPtr same;      ///< the same distribution written in C++
  double low = 0, high = 0;  ///< where a one-dimensional density is integrated
};

Matrix small_file(std::vector<double>& weights) {  // the content of data/weighted.csv
  weights = {1.0, 2.0, 0.5, 0.0, 4.0};
  return Matrix(5, 2, {0.0, 1.0, 1.5, -1.0, 2.0, 0.5, 9.0, 9.0, -1.0, 2.0});
}

Matrix first_column(const Matrix& x) { return Matrix(x.rows(), 1, x.column(0)); }

std::map<std::string, Case> cases() {
  std::vector<double> weights;
  const auto events = small_file(weights);
  std::map<std::string, Case> all;
  all["normal"] = {
      R"(kind = "normal"
mean = "alpha"
sigma = "1 + gamma")",
      std::make_shared<Normal>(Expression("alpha", list_space),
                               Expression("1 + gamma", list_space)),
      -12, 14};
  all["multivariate-normal"] = {
      R"(kind = "multivariate-normal"
mean = ["alpha", 2]
covariance = [[1, "gamma"], ["gamma", 2.5]])",
      std::make_shared<MultivariateNormal>(
          std::vector<Expression>{{"alpha", list_space}, 2.0},
          std::vector<std::vector<Expression>>{{1.0, {"gamma", list_space}},
                                               {{"gamma", list_space}, 2.5}})};
  all["exponential"] = {R"(kind = "exponential"
rate = "gamma + 1"
location = -1)",
                        std::make_shared<Exponential>(Expression("gamma + 1", list_space), -1.0),
                        -1, 25};
  all["uniform"] = {R"(kind = "uniform"
low = "alpha - 4"
high = 2)",
                    std::make_shared<Uniform>(Expression("alpha - 4", list_space), 2.0), -3.3, 2};
  all["mixture"] = {
      R"(kind = "mixture"
weights = ["1 - gamma"]
components = [{kind = "normal", mean = "alpha", sigma = 0.5, name = "peak"},
              {kind = "uniform", low = -1, high = 3}])",
      std::make_shared<Mixture>(
          std::vector<DistributionPtr>{
              std::make_shared<Normal>(Expression("alpha", list_space), 0.5),
              std::make_shared<Uniform>(-1.0, 3.0)},
          std::vector<Expression>{{"1 - gamma", list_space}},
          std::vector<std::string>{"peak", "c1"}),
      -1, 3};
  // All but 3e-4 of it, below −1 where the uniform begins: see the tolerance of the test.
  all["join"] = {
      R"(kind = "join"
parts = [{kind = "exponential", rate = 2}, {kind = "normal", mean = "alpha", sigma = 1}])",
      std::make_shared<Join>(std::vector<DistributionPtr>{
          std::make_shared<Exponential>(2.0),
          std::make_shared<Normal>(Expression("alpha", list_space), 1.0)})};
  all["linear-transform"] = {
      R"(kind = "linear-transform"
of = {kind = "normal", mean = "alpha", sigma = 1}
matrix = [["-2 - gamma"]]
offset = [5])",
      std::make_shared<LinearTransform>(
          std::make_shared<Normal>(Expression("alpha", list_space), 1.0),
          std::vector<std::vector<Expression>>{{{"-2 - gamma", list_space}}},
          std::vector<Expression>{5.0}),
      -20, 26};
  all["histogram"] = {
      R"(kind = "histogram"
edges = [[0, 1, 3], [0.0, 0.5, 1.0, 2.0]]
counts = [1, 2, 3, 4, 0, 6])",
      std::make_shared<Histogram>(std::vector<std::vector<double>>{{0, 1, 3}, {0, 0.5, 1, 2}},
                                  std::vector<double>{1, 2, 3, 4, 0, 6})};
  all["kde"] = {
      R"(kind = "kde"
file = "weighted.csv"
columns = ["a"]
weights = "w"
bandwidth = 0.5)",
      std::make_shared<Kde>(first_column(events), weights, Kde::Config{Kde::Rule::scott, {0.5}}),
      -6, 8};
  all["empirical"] = {R"(kind = "empirical"
file = "weighted.csv"
columns = ["a", "b"]
weights = "w")",
                      std::make_shared<Empirical>(events, weights)};
  all["g-and-k"] = {
      R"(kind = "g-and-k"
A = "alpha"
B = 1.5
g = 2
k = "gamma")",
      std::make_shared<GAndK>(Expression("alpha", list_space), 1.5, 2.0,
                              Expression("gamma", list_space)),
      -40, 150};
  all["ricker"] = {
      R"(kind = "ricker"
log_r = "3 + alpha"
phi = 10
sigma_e = "gamma"
observations = 12
burn_in = 5)",
      std::make_shared<Ricker>(Expression("3 + alpha", list_space), 10.0,
                               Expression("gamma", list_space), Ricker::Config{12, 5})};
  const std::string library = std::string(NEYMAN_TEST_PLUGINS) + "/GOOD.so";
  all["plugin"] = {"kind = \"plugin\"\nlibrary = \"" + library + "\"",
                   std::make_shared<Plugin>(Plugin::Config{library}, list_space)};
  Command::Config command;
  command.command = {"./simulate", "csv", "{alpha}", "{gamma}", "{n}", "{seed}", "{output}"};
  command.folder = NEYMAN_TEST_PLUGINS;
  command.events_per_run = 5000;
  all["command"] = {"kind = \"command\"\nevents_per_run = 5000\ncommand = [\"" +
                        std::string(NEYMAN_TEST_PLUGINS) +
                        "/simulate\", \"csv\", \"{alpha}\", \"{gamma}\", \"{n}\", \"{seed}\", "
                        "\"{output}\"]",
                    std::make_shared<Command>(command, list_space)};
  return all;
}

class EveryDistribution : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto all = cases();
    ASSERT_TRUE(all.count(GetParam()) == 1) << "no conformance case for " << GetParam();
    the_case = all.at(GetParam());
    auto settings = parse_settings(the_case.toml, "case.toml");
    distribution = make_distribution(settings, list_space, NEYMAN_TEST_DATA);
    settings.refuse_unread();
    settings.throw_if_problems();
    ASSERT_NE(distribution, nullptr);
  }
  Case the_case;
  DistributionPtr distribution;
};

TEST_P(EveryDistribution, IsWhatTheStudyNames) { EXPECT_EQ(distribution->kind(), GetParam()); }

TEST_P(EveryDistribution, SamplesFiniteRowsOfItsDimension) {
  const auto x = sample(*distribution, list_point, 5000, 1, "test");
  EXPECT_EQ(x.rows(), 5000u);
  EXPECT_EQ(x.cols(), distribution->dimension());
  for (const double value : x.values()) ASSERT_TRUE(std::isfinite(value));
  EXPECT_EQ(sample(*distribution, list_point, 0, 1, "test").rows(), 0u);
  EXPECT_EQ(sample(*distribution, list_point, 1, 1, "test").rows(), 1u);
}

TEST_P(EveryDistribution, SamplesDependOnSeedAndPurposeAlone) {
  const auto x = sample(*distribution, list_point, 5000, 1, "test");
  EXPECT_EQ(sample(*distribution, list_point, 5000, 1, "test"), x);
  Matrix again(5000, distribution->dimension());
  sample_into(*distribution, list_point, 1, "test", again);
  EXPECT_EQ(again, x);
  EXPECT_NE(sample(*distribution, list_point, 5000, 2, "test"), x);
  EXPECT_NE(sample(*distribution, list_point, 5000, 1, "other"), x);
}

TEST_P(EveryDistribution, IsTheSameOnAnyNumberOfThreads) {
  set_threads(1);
  const auto x = sample(*distribution, list_point, 20000, 3, "test");
  const auto p = distribution->has_density() ? log_density(*distribution, list_point, x)
                                             : std::vector<double>{};
  for (const std::size_t count : {2u, 5u}) {
    set_threads(count);
    EXPECT_EQ(sample(*distribution, list_point, 20000, 3, "test"), x);
    if (!p.empty()) {
      EXPECT_EQ(log_density(*distribution, list_point, x), p);
    }
  }
  set_threads(0);
}

TEST_P(EveryDistribution, SamplesAtTheSamePointInAllRowsAreSamplesAtThatPoint) {
  Matrix points(700, 2);
  for (std::size_t i = 0; i < points.rows(); ++i)
    std::copy(list_point.begin(), list_point.end(), points.row(i).begin());
  Matrix together(700, distribution->dimension()), each = together;
  RandomStream one(9, "test"), other(9, "test");
  distribution->sample(list_point, one, together);
  distribution->sample_each(points, other, each);
  for (std::size_t i = 0; i < together.values().size(); ++i)
    ASSERT_NEAR(together.values()[i], each.values()[i],
                1e-14 * (1.0 + std::abs(together.values()[i])));
  EXPECT_EQ(one.bits(), other.bits());
  Matrix fewer(3, distribution->dimension());
  EXPECT_THROW(distribution->sample_each(points, other, fewer), ArgumentError);
}

// The events at each of two θ in turn follow that θ: false alarm 2e-6.
TEST_P(EveryDistribution, SamplesAtManyPointsFollowTheirOwn) {
  if (!distribution->has_cdf()) return;
  const std::vector<double> theta[] = {{0.7, 0.3}, {-0.4, 0.9}};
  Matrix points(6000, 2), x(6000, 1);
  for (std::size_t i = 0; i < points.rows(); ++i)
    std::copy(theta[i % 2].begin(), theta[i % 2].end(), points.row(i).begin());
  RandomStream random(10, "test");
  distribution->sample_each(points, random, x);
  for (std::size_t k = 0; k < 2; ++k) {
    std::vector<double> own;
    for (std::size_t i = k; i < x.rows(); i += 2) own.push_back(x(i, 0));
    const auto cdf = [&](double v) { return distribution->cdf(theta[k], v); };
    EXPECT_GT(reference::ks_p_value(own, cdf), reference::false_alarm) << k;
  }
}

TEST_P(EveryDistribution, GivesItsOwnSamplesADensity) {
  const auto x = sample(*distribution, list_point, 5000, 4, "test");
  if (!distribution->has_density()) {
    EXPECT_THROW(log_density(*distribution, list_point, x), ArgumentError);
    return;
  }
  for (const double value : log_density(*distribution, list_point, x))
    ASSERT_TRUE(std::isfinite(value));
}

TEST_P(EveryDistribution, DensityOfARowDoesNotDependOnTheOthers) {
  if (!distribution->has_density()) return;
  const auto x = sample(*distribution, list_point, 50, 5, "test");
  const auto all = log_density(*distribution, list_point, x);
  for (std::size_t i = 0; i < x.rows(); ++i)
    EXPECT_EQ(log_density(*distribution, list_point, x.rows(i, i + 1)).front(), all[i]);
}

TEST_P(EveryDistribution, DensityIntegratesToOne) {
  if (!distribution->has_density() || distribution->dimension() != 1) return;
  const auto& [toml, same, low, high] = the_case;
  // The mixture's normal reaches beyond −1 by Φ(−3.4) and 3 by Φ(−4.6), of 0.7.
  const double missing = distribution->has_cdf() ? distribution->cdf(list_point, low) + 1.0 -
                                                       distribution->cdf(list_point, high)
                                                 : 0.0;
  EXPECT_NEAR(reference::integral(*distribution, list_point, low, high) + missing, 1.0, 1e-6);
  EXPECT_LT(missing, 1e-3);
}

// False alarm 1e-6 (Kolmogorov–Smirnov); a step function only makes the test milder.
TEST_P(EveryDistribution, SamplesFollowTheCdfAndQuantileInvertsIt) {
  if (!distribution->has_cdf()) {
    EXPECT_THROW(distribution->cdf(list_point, 0.0), ArgumentError);
    EXPECT_THROW(distribution->quantile(list_point, 0.5), ArgumentError);
    return;
  }
  const auto x = sample(*distribution, list_point, 5000, 6, "test");
  EXPECT_GT(reference::ks_p_value(x.column(0),
                                  [&](double v) { return distribution->cdf(list_point, v); }),
            reference::false_alarm);
  for (const double p : {0.01, 0.3, 0.5, 0.95})
    EXPECT_NEAR(distribution->cdf(list_point, distribution->quantile(list_point, p)), p, 1e-9);
  EXPECT_THROW(distribution->quantile(list_point, -0.1), ArgumentError);
}

TEST_P(EveryDistribution, IsTheSameFromTomlAndFromCpp) {
  const auto& same = *the_case.same;
  EXPECT_EQ(same.kind(), distribution->kind());
  EXPECT_EQ(same.has_density(), distribution->has_density());
  const auto x = sample(*distribution, list_point, 3000, 7, "test");
  EXPECT_EQ(sample(same, list_point, 3000, 7, "test"), x);
  if (same.has_density()) {
    EXPECT_EQ(log_density(same, list_point, x), log_density(*distribution, list_point, x));
  }
}

/// Files cannot be sampled: files_test.cpp has what they can.
std::vector<std::string> kinds_that_sample() {
  auto out = distribution_kinds();
  std::erase(out, "files");
  return out;
}

INSTANTIATE_TEST_SUITE_P(List, EveryDistribution, testing::ValuesIn(kinds_that_sample()),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Problems of studies.

std::vector<std::string> problems_of(const std::string& toml) {
  auto settings = parse_settings(toml, "study.toml");
  const auto made = make_distribution(settings, list_space, NEYMAN_TEST_DATA);
  std::vector<std::string> out;
  for (const auto& problem : settings.problems()) out.push_back(to_string(problem));
  EXPECT_EQ(made == nullptr, !out.empty());
  return out;
}

struct Broken {
  std::string toml, problem;
};

class BrokenStudy : public testing::TestWithParam<Broken> {};

TEST_P(BrokenStudy, GivesFileLineKeyAndReason) {
  const auto problems = problems_of(GetParam().toml);
  ASSERT_EQ(problems.size(), 1u) << testing::PrintToString(problems);
  EXPECT_TRUE(reference::contains(problems[0], GetParam().problem)) << problems[0];
}

INSTANTIATE_TEST_SUITE_P(
    List, BrokenStudy,
    testing::Values(
        Broken{"mean = 1", "study.toml: kind is missing, but must be one of normal"},
        Broken{"\nkind = \"nromal\"",
               "study.toml:2: kind is \"nromal\", but must be one of normal"},
        Broken{"kind = \"normal\"\nmean = 0", "sigma is missing"},
        Broken{"kind = \"normal\"\nmean = 0\nsigma = -2",
               "study.toml:3: sigma is -2, but must be positive"},
        Broken{"kind = \"normal\"\nmean = 0\nsigma = \"gamma - 1\"",
               "study.toml:3: sigma is \"gamma - 1\", which is -0.5 at gamma = 0.5, but must be "
               "positive"},
        Broken{"kind = \"normal\"\nmean = \"beta\"\nsigma = 1",
               "position 1: 'beta' is not a "
               "parameter"},
        Broken{"kind = \"normal\"\nmean = true\nsigma = 1", "study.toml:2: mean is true"},
        Broken{"kind = \"exponential\"\nrate = 0", "rate is 0, but must be positive"},
        Broken{"kind = \"uniform\"\nlow = 2\nhigh = 1", "study.toml:3: high is"},
        Broken{"kind = \"multivariate-normal\"\nmean = [0, 0]\ncovariance = [[1, 2], [2, 1]]",
               "study.toml:3: covariance does not hold"},
        Broken{"kind = \"multivariate-normal\"\nmean = [0, 0]\ncovariance = [[1, 2], [2]]",
               "has 1 values in row 1, but 2 in the first"},
        Broken{"kind = \"mixture\"\nweights = [0.5, 0.5]", "components is missing"},
        Broken{"kind = \"mixture\"\nweights = [0.5, 0.6]\ncomponents = [{kind = \"normal\", mean = "
               "0, sigma = 1}, {kind = \"normal\", mean = 1, sigma = 1}]",
               "the sum of weights is 1.1"},
        Broken{"kind = \"mixture\"\nweights = [\"2*gamma\"]\ncomponents = [{kind = \"normal\", "
               "mean = 0, sigma = 1}, {kind = \"normal\", mean = 1, sigma = 1}]",
               "study.toml:2: weights are not allowed"},
        Broken{"kind = \"mixture\"\nweights = [1]\ncomponents = [{kind = \"normal\", mean = 0, "
               "sigma = 1},\n {kind = \"normal\", mean = 1, sigma = 0}]",
               "study.toml:4: components[1].sigma is 0, but must be positive"},
        Broken{"kind = \"join\"\nparts = []", "parts is missing or empty"},
        Broken{"kind = \"linear-transform\"\nmatrix = [[1]]", "of is missing"},
        Broken{"kind = \"linear-transform\"\nof = {kind = \"normal\", mean = 0, sigma = "
               "1}\nmatrix = [[1, 2]]",
               "study.toml:3: matrix has 2 columns, but must have 1"},
        Broken{"kind = \"histogram\"\nedges = [0, 1]\ncounts = [1, 2]", "contents has 2 values"},
        Broken{"kind = \"histogram\"\nedges = [0, 1]", "counts is missing"},
        Broken{"kind = \"kde\"\nfile = \"absent.csv\"", "study.toml:2: file cannot be used"},
        Broken{"kind = \"empirical\"\nfile = \"weighted.csv\"\ncolumns = [\"z\"]",
               "study.toml:2: file cannot be used"},
        Broken{"kind = \"g-and-k\"\nA = 0\nB = 1\ng = 1\nk = -0.7", "k is -0.7, but must be"},
        Broken{"kind = \"ricker\"\nlog_r = 1\nphi = 10\nsigma_e = 0.1\nobservations = 0",
               "study.toml:5: observations is 0"}));

TEST(MakeDistribution, ListsAllProblems) {
  EXPECT_EQ(problems_of("kind = \"mixture\"\nweights = [\"gama\"]\ncomponents = [{kind = "
                        "\"normal\", sigma = -1}, {kind = \"nomral\"}]")
                .size(),
            4u);
}

TEST(MakeDistribution, ReadsBinnedFiles) {
  for (const auto* binning : {"uniform", "equal-probability", "bayesian-blocks"}) {
    auto settings =
        parse_settings(std::string("kind = \"histogram\"\nfile = "
                                   "\"example1_observed.csv\"\nbins = 20\nbinning = \"") +
                           binning + "\"",
                       "study.toml");
    const auto made = make_distribution(settings, list_space, NEYMAN_TEST_DATA);
    settings.throw_if_problems();
    const auto& histogram = dynamic_cast<const Histogram&>(*made);
    double total = 0.0;
    for (const double content : histogram.contents()) total += content;
    EXPECT_EQ(total, 5000.0);
  }
}

TEST(MakeDistribution, OfTheSecondExampleIsTheCompositionInCpp) {
  auto settings = parse_settings(R"(
kind = "linear-transform"
matrix = [[ 1.31229955,  0.10499961,  0.48310515, -0.3249938 , -0.26387927],
          [ 0.10499961,  1.15833058, -0.55865473,  0.25275522, -0.39790775],
          [ 0.48310515, -0.55865473,  2.25874579, -0.52087938, -0.39271231],
          [-0.3249938 ,  0.25275522, -0.52087938,  1.4034925 , -0.63521059],
          [-0.26387927, -0.39790775, -0.39271231, -0.63521059,  1.0        ]]
[of]
kind = "join"
[[of.parts]]
kind = "normal"
mean = "alpha"
sigma = 1
[[of.parts]]
kind = "normal"
mean = "beta"
sigma = 3
[[of.parts]]
kind = "mixture"
weights = [0.5, 0.5]
components = [{kind = "normal", mean = -2, sigma = 1}, {kind = "normal", mean = 2, sigma = 0.5}]
[[of.parts]]
kind = "exponential"
rate = 3
[[of.parts]]
kind = "exponential"
rate = 0.5
)",
                                 "study.toml");
  const auto made = make_distribution(settings, examples::second_space);
  settings.refuse_unread();
  settings.throw_if_problems();
  const std::vector<double> theta{1.0, -1.0};
  const auto x = sample(*made, theta, 3000, 1, "test");
  EXPECT_EQ(sample(*examples::second(), theta, 3000, 1, "test"), x);
  EXPECT_EQ(log_density(*examples::second(), theta, x), log_density(*made, theta, x));
}

}  // namespace
}  // namespace neyman
