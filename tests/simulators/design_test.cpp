#include "neyman/simulators/design.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>

#include "neyman/core/parallel.hpp"
#include "neyman/data/settings_file.hpp"
#include "neyman/simulators/uniform.hpp"
#include "simulators/examples.hpp"
#include "simulators/reference.hpp"

namespace neyman {
namespace {

using reference::contains;
using reference::error_of;

const ParameterSpace design_space({{"alpha", -3, 3, 1.0}, {"beta", 0, 10, {}}});
const ParameterSpace unit_space({{"a", 0, 1, {}}, {"b", 0, 1, {}}});

Design make(const ParameterSpace& parameters, Design::Kind kind) {
  Design::Config config;
  config.kind = kind;
  config.points = {4, 3};
  config.mean = {0.3, 0.6};
  config.sigma = {0.4, 2.0};
  config.rows = Matrix(kind == Design::Kind::fixed ? 1 : 2, 2);
  for (std::size_t i = 0; i < config.rows.rows(); ++i)
    for (std::size_t j = 0; j < 2; ++j)
      config.rows(i, j) = parameters[j].low + (0.2 + 0.5 * static_cast<double>(i)) *
                                                  (parameters[j].high - parameters[j].low);
  return {parameters, config};
}

constexpr Design::Kind all_kinds[] = {
    Design::Kind::uniform, Design::Kind::sobol,  Design::Kind::latin_hypercube,
    Design::Kind::grid,    Design::Kind::normal, Design::Kind::table,
    Design::Kind::fixed};

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

TEST(Design, EveryKindDrawsInsideTheRangesRepeatablyOnAnyThreads) {
  for (const auto kind : all_kinds) {
    const auto design = make(design_space, kind);
    set_threads(1);
    const auto one = design.draw(70001, 5, "train");
    set_threads(2);
    EXPECT_EQ(one, design.draw(70001, 5, "train")) << design.kind();
    set_threads(0);
    EXPECT_EQ(one.rows(), 70001U);
    for (std::size_t i = 0; i < one.rows(); ++i)
      ASSERT_NO_THROW(design_space.check_inside("test", one.row(i))) << design.kind();
    if (design.single()) continue;
    EXPECT_NE(one, design.draw(70001, 6, "train")) << design.kind();
    EXPECT_NE(one, design.draw(70001, 5, "other")) << design.kind();
    EXPECT_TRUE(design.draw(0, 5, "train").empty());
  }
}

TEST(Design, UniformKindsAreUniform) {
  // Three kinds and two parameters: false alarms 6e-6. Sobol and Latin hypercubes lie closer to
  // the distribution than random draws, so their distance is bounded as well.
  for (const auto kind :
       {Design::Kind::uniform, Design::Kind::sobol, Design::Kind::latin_hypercube}) {
    const auto theta = make(design_space, kind).draw(4096, 3, "train");
    for (std::size_t p = 0; p < 2; ++p) {
      auto values = theta.column(p);
      const auto cdf = [&](double v) {
        return (v - design_space[p].low) / (design_space[p].high - design_space[p].low);
      };
      EXPECT_GT(reference::ks_p_value(values, cdf), reference::false_alarm);
      if (kind == Design::Kind::uniform) continue;
      // One value in each of 4096 equal parts.
      std::set<int> parts;
      for (const double v : values) parts.insert(static_cast<int>(4096.0 * cdf(v)));
      EXPECT_EQ(parts.size(), 4096U) << "parameter " << p;
    }
  }
}

TEST(Design, SobolFillsSquaresEvenlyAcrossBlocks) {
  // A digital shift keeps the net: 2^16 points, 2^4 in each of the elementary boxes of the first
  // two dimensions; the blocks of the parallel loop must join without a gap.
  const auto theta = make(unit_space, Design::Kind::sobol).draw(1 << 16, 8, "train");
  for (int split = 0; split <= 12; split += 4) {
    std::map<std::pair<int, int>, int> count;
    for (std::size_t i = 0; i < theta.rows(); ++i)
      ++count[{static_cast<int>(std::ldexp(theta(i, 0), split)),
               static_cast<int>(std::ldexp(theta(i, 1), 12 - split))}];
    EXPECT_EQ(count.size(), 4096U);
    for (const auto& [box, n] : count) ASSERT_EQ(n, 16);
  }
}

TEST(Design, NormalIsTruncatedNormal) {
  const auto check = [](double low, double high, double mean, double sigma) {
    const ParameterSpace one({{"mu", low, high, {}}});
    const Design design(one, {.kind = Design::Kind::normal, .mean = {mean}, .sigma = {sigma}});
    // Far from the mean the distribution is written with the complement.
    const auto sign = low > mean ? -1.0 : 1.0;
    const double below = normal_cdf(sign * (low - mean) / sigma);
    const double width = normal_cdf(sign * (high - mean) / sigma) - below;
    EXPECT_GT(
        reference::ks_p_value(
            design.draw(20000, 4, "train").column(0),
            [&](double v) { return (normal_cdf(sign * (v - mean) / sigma) - below) / width; }),
        reference::false_alarm);
    for (const double v : design.nodes(101, 1, 1).column(0)) {
      EXPECT_GE(v, low);
      EXPECT_LE(v, high);
    }
  };
  check(-1.0, 3.0, 0.5, 1.0);
  check(-1.0, 3.0, 0.5, 100.0);
  check(2.0, 9.0, -10.0, 1.0);  // 12 to 19 sigma above the mean
  check(-9.0, -2.0, 10.0, 1.0);
  check(-100.0, 100.0, 0.0, 1.0);
}

TEST(Design, GridHasBothEndsAndEveryRowEquallyOften) {
  const auto design = make(design_space, Design::Kind::grid);
  ASSERT_EQ(design.rows().rows(), 12U);
  EXPECT_EQ(design.rows().column(0),
            (std::vector<double>{-3, -3, -3, -1, -1, -1, 1, 1, 1, 3, 3, 3}));
  EXPECT_EQ(design.rows().column(1), (std::vector<double>{0, 5, 10, 0, 5, 10, 0, 5, 10, 0, 5, 10}));
  std::map<std::pair<double, double>, int> count;
  const auto theta = design.draw(12 * 100 + 5, 1, "train");
  for (std::size_t i = 0; i < theta.rows(); ++i) ++count[{theta(i, 0), theta(i, 1)}];
  ASSERT_EQ(count.size(), 12U);
  int more = 0;
  for (const auto& [row, n] : count) {
    EXPECT_TRUE(n == 100 || n == 101);
    more += n - 100;
  }
  EXPECT_EQ(more, 5);
  // In random order: the first twelve are not the rows (chance of that: below 1e-4).
  std::set<std::pair<double, double>> first;
  for (std::size_t i = 0; i < 12; ++i) first.insert({theta(i, 0), theta(i, 1)});
  EXPECT_LT(first.size(), 12U);
  const Design one(design_space, {.kind = Design::Kind::grid, .points = {1, 1}});
  EXPECT_TRUE(one.single());
  EXPECT_EQ(one.draw(2, 1, ""), Matrix(2, 2, {0, 5, 0, 5}));
}

TEST(Design, NodesOfFiniteSets) {
  const auto grid = make(design_space, Design::Kind::grid);
  EXPECT_EQ(grid.nodes(12, 1, 0), grid.rows());
  EXPECT_EQ(grid.nodes(1000, 1, 0), grid.rows());
  EXPECT_EQ(make(design_space, Design::Kind::fixed).nodes(10, 1, 0).rows(), 1U);
  Matrix rows(100, 1);
  for (std::size_t i = 0; i < 100; ++i) rows(i, 0) = static_cast<double>(i) / 100.0;
  const Design table(ParameterSpace({{"a", 0, 1, {}}}),
                     {.kind = Design::Kind::table, .rows = rows});
  const Design fine(ParameterSpace({{"a", 0, 0.99, {}}}),
                    {.kind = Design::Kind::grid, .points = {100}});
  // Subsets: every row equally often over many blocks, and one in each part of the set. Counts
  // have mean 300 and a standard deviation of at most 17: 7 sigma, 200 times, is 1e-9.
  for (const auto& design : {table, fine}) {
    std::map<double, int> count;
    for (std::size_t block = 0; block < 1000; ++block) {
      const auto some = design.nodes(30, 9, block).column(0);
      ASSERT_EQ(some.size(), 30U);
      for (const double v : some) ++count[v];
    }
    for (std::size_t i = 0; i < 100; ++i) EXPECT_NEAR(count[design.rows()(i, 0)], 300, 7 * 17) << i;
  }
  auto some = table.nodes(10, 9, 3).column(0);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_GE(some[i], 0.1 * static_cast<double>(i) - 1e-9);
    EXPECT_LT(some[i], 0.1 * static_cast<double>(i + 1));
  }
}

/// Mean of f over rows.
template <class F>
double mean_over(const Matrix& theta, F&& f) {
  double sum = 0.0;
  for (std::size_t i = 0; i < theta.rows(); ++i) sum += f(theta(i, 0), theta(i, 1));
  return sum / static_cast<double>(theta.rows());
}

/// Root mean square of nodes(count) and draw(count) about the truth, and the mean of the former.
struct Quadrature {
  double nodes = 0.0, random = 0.0, mean = 0.0;
};
template <class F>
Quadrature quadrature(const Design& design, std::size_t count, double truth, F&& f) {
  Quadrature out;
  constexpr std::size_t blocks = 400;
  for (std::size_t block = 0; block < blocks; ++block) {
    const double by_nodes = mean_over(design.nodes(count, 7, block), f);
    const double by_draws = mean_over(design.draw(count, block, "q"), f);
    out.nodes += (by_nodes - truth) * (by_nodes - truth) / blocks;
    out.random += (by_draws - truth) * (by_draws - truth) / blocks;
    out.mean += by_nodes / blocks;
  }
  out.nodes = std::sqrt(out.nodes);
  out.random = std::sqrt(out.random);
  return out;
}

TEST(Design, NodesIntegrateSmoothFunctionsWithLittleNoise) {
  // exp of a quadratic, as a likelihood is: products of error functions.
  const auto f = [](double a, double b) {
    return std::exp(-0.5 * (std::pow((a - 0.3) / 0.3, 2) + std::pow((b - 0.6) / 0.2, 2)));
  };
  const auto gauss = [](double mean, double sigma) {
    return sigma * std::sqrt(2.0 * M_PI) *
           (normal_cdf((1.0 - mean) / sigma) - normal_cdf(-mean / sigma));
  };
  const double truth = gauss(0.3, 0.3) * gauss(0.6, 0.2);
  const Design uniform(unit_space);
  for (const std::size_t count : {144UL, 128UL, 150UL, 1024UL}) {
    const auto q = quadrature(uniform, count, truth, f);
    EXPECT_LT(10.0 * q.nodes, q.random) << count;
    // Unbiased: within 5 standard errors of the mean over blocks (6e-7).
    EXPECT_NEAR(q.mean, truth, 5.0 * q.nodes / std::sqrt(400.0)) << count;
  }
  EXPECT_LT(50.0 * quadrature(uniform, 144, truth, f).nodes,
            quadrature(uniform, 144, truth, f).random);
  // The same seen from a normal design: ∫ f N(0.4, 0.25) in each, truncated.
  const Design normal(unit_space,
                      {.kind = Design::Kind::normal, .mean = {0.4, 0.5}, .sigma = {0.25, 0.25}});
  const auto product = [&](double mean, double sigma, double m, double s) {
    const double v = 1.0 / (1.0 / (sigma * sigma) + 1.0 / (s * s));
    const double centre = v * (mean / (sigma * sigma) + m / (s * s));
    const double peak = std::exp(-0.5 * (mean - m) * (mean - m) / (sigma * sigma + s * s));
    return peak * gauss(centre, std::sqrt(v)) / gauss(m, s);
  };
  const double expected = product(0.3, 0.3, 0.4, 0.25) * product(0.6, 0.2, 0.5, 0.25);
  const auto q = quadrature(normal, 144, expected, f);
  EXPECT_LT(10.0 * q.nodes, q.random);
  EXPECT_NEAR(q.mean, expected, 5.0 * q.nodes / std::sqrt(400.0));
}

TEST(Design, NodesInFiveDimensionsBeatRandom) {
  std::vector<Parameter> parameters;
  for (const char* name : {"a", "b", "c", "d", "e"}) parameters.push_back({name, 0, 1, {}});
  const Design design{ParameterSpace(parameters)};
  double nodes = 0.0, random = 0.0;
  const auto error = [](const Matrix& theta) {
    double sum = 0.0;
    for (std::size_t i = 0; i < theta.rows(); ++i) {
      double value = 1.0;
      for (const double v : theta.row(i)) value *= std::exp(v) / (std::exp(1.0) - 1.0);
      sum += value;
    }
    return sum / static_cast<double>(theta.rows()) - 1.0;
  };
  for (std::size_t block = 0; block < 100; ++block) {
    nodes += std::pow(error(design.nodes(500, 1, block)), 2);
    random += std::pow(error(design.draw(500, block, "q")), 2);
  }
  EXPECT_LT(10.0 * std::sqrt(nodes), std::sqrt(random));
}

TEST(Design, NodesDifferFromBlockToBlock) {
  const Design design(unit_space);
  EXPECT_EQ(design.nodes(144, 3, 1), design.nodes(144, 3, 1));
  EXPECT_NE(design.nodes(144, 3, 1), design.nodes(144, 3, 2));
  EXPECT_NE(design.nodes(144, 3, 1), design.nodes(144, 4, 1));
  EXPECT_EQ(design.nodes(1, 3, 1).rows(), 1U);
}

TEST(Design, SavesAndLoads) {
  for (const auto kind : all_kinds) {
    const auto design = make(design_space, kind);
    Archive archive;
    design.save(archive);
    const Design loaded(archive, design_space);
    EXPECT_EQ(loaded.kind(), design.kind());
    EXPECT_EQ(loaded.draw(100, 1, "x"), design.draw(100, 1, "x"));
  }
  Archive archive;
  make(design_space, Design::Kind::grid).save(archive);
  archive.set("kind", "girl");
  EXPECT_TRUE(contains(error_of([&] { Design(archive, design_space); }), "'girl' is not a design"));
}

Design read(const std::string& toml, std::string& problems, const std::string& folder = ".") {
  auto settings = parse_settings(toml, "study.toml");
  auto design = Design::from(settings, "design", design_space, folder);
  settings.refuse_unread();
  problems.clear();
  for (const auto& problem : settings.problems()) problems += to_string(problem) + "\n";
  return design;
}

TEST(Design, IsReadFromAStudy) {
  std::string problems;
  EXPECT_EQ(read("", problems).kind(), "uniform");
  EXPECT_EQ(read("design = \"sobol\"", problems).kind(), "sobol");
  EXPECT_EQ(read("design = {kind = \"latin-hypercube\"}", problems).kind(), "latin-hypercube");
  EXPECT_EQ(read("design = {kind = \"grid\", points = [15, 2]}", problems).rows().rows(), 30U);
  EXPECT_EQ(
      read("design = {kind = \"grid\", points = {beta = 2, alpha = 15}}", problems).config().points,
      (std::vector<std::size_t>{15, 2}));
  const auto normal = read("design = {kind = \"normal\", sigma = [1, 2]}", problems);
  EXPECT_EQ(normal.config().mean, (std::vector<double>{0, 5}));
  EXPECT_EQ(read("design = {kind = \"table\", rows = [[0, 1], [1, 2], [2, 3]]}", problems).rows(),
            Matrix(3, 2, {0, 1, 1, 2, 2, 3}));
  const auto fixed = read("design = {kind = \"fixed\", point = {alpha = 1, beta = 2}}", problems);
  EXPECT_TRUE(fixed.single());
  EXPECT_EQ(fixed.rows(), Matrix(1, 2, {1, 2}));
  EXPECT_EQ(problems, "");
  const auto folder = std::filesystem::temp_directory_path();
  std::ofstream(folder / "neyman_design_test.csv") << "beta,other,alpha\n4,9,1\n5,9,2\n";
  EXPECT_EQ(read("design = {kind = \"table\", file = \"neyman_design_test.csv\"}", problems,
                 folder.string())
                .rows(),
            Matrix(2, 2, {1, 4, 2, 5}));
  EXPECT_EQ(problems, "");
  std::filesystem::remove(folder / "neyman_design_test.csv");
}

TEST(Design, NamesProblemsOfAStudy) {
  const auto problem = [](const std::string& toml) {
    std::string problems;
    EXPECT_EQ(read(toml, problems).kind(), "uniform");
    return problems;
  };
  EXPECT_TRUE(contains(problem("design = \"sobel\""), "sobol"));
  EXPECT_TRUE(contains(problem("design = 3"), "study.toml:1: design is 3, but must be a table"));
  EXPECT_TRUE(contains(problem("design = \"grid\""), "must be a table with points too"));
  EXPECT_TRUE(contains(problem("design = \"table\""), "must be a table with rows too"));
  EXPECT_TRUE(contains(problem("design = {kind = \"grid\", points = [3]}"),
                       "design.points has 1 values, but must have 2, one for each parameter"));
  EXPECT_TRUE(
      contains(problem("design = {kind = \"grid\", points = [10000, 10000]}"), "at most 10000000"));
  EXPECT_TRUE(contains(problem("design = {kind = \"grid\", points = [2.5, 3]}"),
                       "design.points has 2.5, but must have whole numbers"));
  EXPECT_TRUE(contains(problem("design = {kind = \"grid\", points = {alpha = 3}}"),
                       "design.points.beta is missing"));
  EXPECT_TRUE(contains(problem("design = {kind = \"normal\", sigma = [1, 0]}"),
                       "design.sigma[1] is 0, but must be positive"));
  EXPECT_EQ(problem("design = {kind = \"normal\", sigma = [1, -1]}"),
            "study.toml:1: design.sigma[1] is -1, but must be positive\n");
  EXPECT_TRUE(contains(problem("design = {kind = \"normal\", mean = [0, 99], sigma = [1, 1]}"),
                       "within 37 sigma of the range [0, 10] of beta"));
  EXPECT_TRUE(contains(problem("design = {kind = \"table\"}"), "either rows or a file"));
  EXPECT_TRUE(contains(problem("design = {kind = \"table\", rows = [[1]]}"), "must have 2"));
  EXPECT_TRUE(contains(problem("design = {kind = \"table\", rows = [[0, 1], [0, 11]]}"), "row 1"));
  EXPECT_TRUE(contains(problem("design = {kind = \"table\", file = \"none.csv\"}"), "none.csv"));
  EXPECT_TRUE(contains(problem("design = {kind = \"fixed\", point = [9, 1]}"), "alpha"));
  std::string problems;
  read("design = {kind = \"uniform\", points = [3, 3]}", problems);
  EXPECT_TRUE(contains(problems, "points"));
}

TEST(Design, RefusesWhatDoesNotFit) {
  EXPECT_TRUE(contains(error_of([] { Design(ParameterSpace{}); }), "number of parameters"));
  EXPECT_TRUE(contains(error_of([] { Design(design_space).nodes(0, 1, 1); }), "count"));
  EXPECT_TRUE(contains(error_of([] { Design(design_space, {.kind = Design::Kind::table}); }),
                       "number of rows"));
  EXPECT_TRUE(
      contains(error_of([] { Design::fixed(design_space, {1.0}); }), "one for each parameter"));
}

TEST(Simulate, EventsFollowTheirOwnTheta) {
  const auto second = examples::second();
  const Design design(examples::second_space);
  set_threads(1);
  const auto samples = simulate(*second, examples::second_space, design, 20001, 3, "train");
  set_threads(2);
  EXPECT_EQ(samples, simulate(*second, examples::second_space, design, 20001, 3, "train"));
  set_threads(0);
  EXPECT_NO_THROW(samples.check("test"));
  EXPECT_EQ(samples.parameter_names, (std::vector<std::string>{"alpha", "beta"}));
  EXPECT_EQ(samples.feature_names.size(), 5U);
  // Back through the matrix: z0 − α and z1 − β are normal, with widths 1 and 3 (2e-6).
  const auto& transform = dynamic_cast<const LinearTransform&>(*second);
  const auto& join = dynamic_cast<const Join&>(*transform.of());
  ASSERT_EQ(join.parts().size(), 5U);
  Matrix z(samples.size(), 5);
  // Solve R z = x by Gaussian elimination of the 5 × 5 system, row by row.
  for (std::size_t i = 0; i < samples.size(); ++i) {
    double a[5][6];
    for (std::size_t r = 0; r < 5; ++r) {
      for (std::size_t c = 0; c < 5; ++c) a[r][c] = examples::second_matrix[r][c]({});
      a[r][5] = samples.x(i, r);
    }
    for (std::size_t c = 0; c < 5; ++c)
      for (std::size_t r = 0; r < 5; ++r) {
        if (r == c) continue;
        const double factor = a[r][c] / a[c][c];
        for (std::size_t k = c; k < 6; ++k) a[r][k] -= factor * a[c][k];
      }
    for (std::size_t r = 0; r < 5; ++r) z(i, r) = a[r][5] / a[r][r];
  }
  std::vector<double> first, other;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    first.push_back(z(i, 0) - samples.theta(i, 0));
    other.push_back((z(i, 1) - samples.theta(i, 1)) / 3.0);
  }
  EXPECT_GT(reference::ks_p_value(first, normal_cdf), reference::false_alarm);
  EXPECT_GT(reference::ks_p_value(other, normal_cdf), reference::false_alarm);
}

TEST(Simulate, OneFixedPointIsASample) {
  const auto second = examples::second();
  const std::vector<double> point{1.0, -1.0};
  const auto samples = simulate(*second, examples::second_space,
                                Design::fixed(examples::second_space, point), 5000, 3, "fixed");
  EXPECT_EQ(samples.x, sample(*second, point, 5000, 3, "fixed"));
}

TEST(Simulate, NamesTheThetaWhereASimulatorIsNotDefined) {
  const ParameterSpace one({{"s", -1, 1, {}}});
  const Normal narrow(0.0, Expression("s", one));
  const auto message = error_of([&] { simulate(narrow, one, Design(one), 10, 1, "train"); });
  EXPECT_TRUE(contains(message, "sigma is -0.")) << message;
  EXPECT_TRUE(contains(message, "(at s = -0.")) << message;
  EXPECT_TRUE(
      contains(error_of([&] { simulate(narrow, one, Design(design_space), 1, 1, "train"); }),
               "of other parameters"));
}

/// Counts how many events each call is asked for.
class Counting final : public Distribution {
 public:
  explicit Counting(Runs runs) : runs_(runs) {}
  std::string kind() const override { return "counting"; }
  std::size_t dimension() const override { return 1; }
  Runs runs() const override { return runs_; }
  void sample(std::span<const double>, RandomStream&, Matrix& out) const override {
    const std::lock_guard lock(mutex_);
    sizes_.insert(out.rows());
  }
  void sample_each(MatrixView points, RandomStream&, Matrix& out) const override {
    const std::lock_guard lock(mutex_);
    sizes_.insert(points.rows());
    for (std::size_t i = 0; i < out.rows(); ++i) out(i, 0) = points(i, 0);
  }
  std::multiset<std::size_t> sizes() const { return sizes_; }

 private:
  Runs runs_;
  mutable std::mutex mutex_;
  mutable std::multiset<std::size_t> sizes_;
};

TEST(Simulate, CutsTheEventsAsTheSimulatorLikesThem) {
  const ParameterSpace line({{"alpha", -1, 1, {}}});
  for (const std::size_t at_once : {0, 3}) {
    const Counting simulator({.at_once = at_once, .block = 40});
    const auto events = simulate(simulator, line, Design(line), 100, 1, "test");
    EXPECT_EQ(simulator.sizes(), (std::multiset<std::size_t>{20, 40, 40}));
    EXPECT_EQ(events.x, events.theta);

    const Counting at_one({.at_once = at_once, .block = 40});
    sample(at_one, std::vector{0.0}, 100, 1, "test");
    EXPECT_EQ(at_one.sizes(), (std::multiset<std::size_t>{20, 40, 40}));
  }
}

TEST(MakeDistribution, TakesOneThatTheProgramMade) {
  const ParameterSpace line({{"alpha", -1, 1, {}}});
  const DistributionPtr made = std::make_shared<Counting>(Distribution::Runs{});
  const auto make = [&](const ParameterSpace& parameters) {
    if (parameters.size() != 1) throw ArgumentError("mine: needs one parameter");
    return made;
  };
  const SettingValue object{SettingValue::Object(std::make_shared<DistributionObject>(make))};
  const SettingValue::Table table{
      {"kind", {std::string("mine")}}, {"object", object}, {"fingerprint", {std::string("1")}}};
  Settings settings(table);
  EXPECT_EQ(make_distribution(settings, line), made);
  settings.refuse_unread();
  EXPECT_TRUE(settings.problems().empty());

  Settings of_none(table);
  EXPECT_EQ(make_distribution(of_none, ParameterSpace()), nullptr);
  ASSERT_EQ(of_none.problems().size(), 1u);
  EXPECT_EQ(of_none.problems()[0].message, "needs one parameter");
}

}  // namespace
}  // namespace neyman
