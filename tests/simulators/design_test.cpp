#include "neyman/simulators/design.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <set>

#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
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

Matrix matrix_of(std::size_t d, std::vector<double> values) { return {d, d, std::move(values)}; }

TEST(Design, NormalsMayBeCorrelatedAndCutOff) {
  // In wide ranges the moments are those that were asked for: 5 standard errors, 4 times 6e-7.
  const ParameterSpace wide({{"a", -50, 50, {}}, {"b", -50, 50, {}}});
  const Design design(wide, {.kind = Design::Kind::normal,
                             .mean = {1.0, -2.0},
                             .sigma = {2.0, 3.0},
                             .correlation = matrix_of(2, {1.0, -0.8, -0.8, 1.0})});
  constexpr std::size_t n = 100000;
  const auto moments = [](const Matrix& theta) {
    double product = 0.0, square = 0.0, mean = 0.0;
    for (std::size_t i = 0; i < theta.rows(); ++i) {
      product += (theta(i, 0) - 1.0) * (theta(i, 1) + 2.0);
      square += std::pow(theta(i, 0) - 1.0, 2);
      mean += theta(i, 1);
    }
    const auto count = static_cast<double>(theta.rows());
    return std::array{mean / count, square / count, product / count / 6.0};
  };
  const auto drawn = moments(design.draw(n, 3, "train"));
  EXPECT_NEAR(drawn[0], -2.0, 5.0 * 3.0 / std::sqrt(n));
  EXPECT_NEAR(drawn[1], 4.0, 5.0 * 4.0 * std::sqrt(2.0 / n));
  EXPECT_NEAR(drawn[2], -0.8, 5.0 * std::sqrt(1.64 / n));
  // A lattice of few nodes is nearer than as many draws would be (0.04 for the correlation).
  const auto nodes = moments(design.nodes(1000, 1, 1));
  EXPECT_NEAR(nodes[0], -2.0, 0.02);
  EXPECT_NEAR(nodes[2], -0.8, 0.02);
  // Cut off at narrow ranges: of draws and of nodes the mean is ∫ θ π over a fine grid.
  const ParameterSpace narrow({{"a", 0.0, 4.0, {}}, {"b", -3.0, 3.0, {}}});
  const Design cut(narrow, design.config());
  double total = 0.0, mean = 0.0;
  constexpr int steps = 400;
  for (int i = 0; i < steps; ++i)
    for (int j = 0; j < steps; ++j) {
      const std::vector<double> at = {4.0 * (i + 0.5) / steps, -3.0 + 6.0 * (j + 0.5) / steps};
      const double density = std::exp(cut.log_density(at)) / (steps * steps);
      total += density;
      mean += density * at[1];
    }
  EXPECT_NEAR(total, 1.0, 0.03);  // its norm comes from 20 000 normals, of which 40 % are inside
  mean /= total;
  double by_draws = 0.0, by_nodes = 0.0;
  const auto theta = cut.draw(n, 4, "train");
  for (const double b : theta.column(1)) by_draws += b / n;
  for (std::size_t i = 0; i < n; ++i) ASSERT_NO_THROW(narrow.check_inside("test", theta.row(i)));
  EXPECT_NEAR(by_draws, mean, 5.0 * 1.5 / std::sqrt(n));
  constexpr std::size_t blocks = 40;
  for (std::size_t block = 0; block < blocks; ++block) {
    const auto some = cut.nodes(200, 5, block).column(1);
    EXPECT_GT(some.size(), 150U);
    EXPECT_LE(some.size(), 200U);
    for (const double b : some) by_nodes += b / static_cast<double>(some.size() * blocks);
  }
  EXPECT_NEAR(by_nodes, mean, 0.02);
  set_threads(1);
  EXPECT_EQ(theta, cut.draw(n, 4, "train"));
  set_threads(0);
}

TEST(Design, ParametersMayBeOnALogScale) {
  const ParameterSpace one({{"tau", 0.01, 1000.0, {}}});
  const double low = std::log(0.01), high = std::log(1000.0);
  const auto uniform = [&](double v) { return (std::log(v) - low) / (high - low); };
  for (const auto kind :
       {Design::Kind::uniform, Design::Kind::sobol, Design::Kind::latin_hypercube}) {
    const Design design(one, {.kind = kind, .log = {true}});
    EXPECT_GT(reference::ks_p_value(design.draw(4096, 1, "train").column(0), uniform),
              reference::false_alarm);
  }
  const Design grid(one, {.kind = Design::Kind::grid, .points = {6}, .log = {true}});
  for (std::size_t k = 0; k < 6; ++k)
    EXPECT_NEAR(grid.rows()(k, 0) / std::pow(10.0, static_cast<double>(k) - 2.0), 1.0, 1e-12);
  EXPECT_EQ(grid.rows()(0, 0), 0.01);
  EXPECT_EQ(grid.rows()(5, 0), 1000.0);
  const Design normal(
      one, {.kind = Design::Kind::normal, .mean = {std::log(2.0)}, .sigma = {0.5}, .log = {true}});
  EXPECT_GT(reference::ks_p_value(
                normal.draw(20000, 2, "train").column(0),
                [](double v) { return normal_cdf((std::log(v) - std::log(2.0)) / 0.5); }),
            reference::false_alarm);
  EXPECT_EQ(error_of([] {
              Design(ParameterSpace({{"tau", 0.0, 1.0, {}}}), {.log = {true}});
            }),
            "Design: the range of tau is [0, 1], but must be positive on a log scale");
}

TEST(Design, KnowsItsDensity) {
  const ParameterSpace space({{"a", 0.5, 4.0, {}}, {"b", -2.0, 3.0, {}}});
  const std::vector<Design::Config> all = {
      {},
      {.kind = Design::Kind::sobol, .log = {true, false}},
      {.kind = Design::Kind::normal, .mean = {1.0, 0.5}, .sigma = {2.0, 0.7}},
      {.kind = Design::Kind::normal, .mean = {0.2, 0.5}, .sigma = {0.6, 0.7}, .log = {true, false}},
      {.kind = Design::Kind::normal,
       .mean = {0.5, 0.5},
       .sigma = {0.3, 0.5},
       .correlation = matrix_of(2, {1.0, 0.6, 0.6, 1.0}),
       .log = {true, false}}};
  for (const auto& config : all) {
    const Design design(space, config);
    // One over the ranges, by the midpoint rule.
    double total = 0.0;
    constexpr int steps = 400;
    for (int i = 0; i < steps; ++i)
      for (int j = 0; j < steps; ++j)
        total += std::exp(design.log_density(std::vector<double>{0.5 + 3.5 * (i + 0.5) / steps,
                                                                 -2.0 + 5.0 * (j + 0.5) / steps})) /
                 (steps * steps);
    EXPECT_NEAR(total, 1.0, config.correlation.empty() ? 1e-4 : 0.02);
    std::vector<double> point = {1.3, 0.2}, gradient(2);
    design.log_density(point, gradient);
    for (std::size_t p = 0; p < 2; ++p) {
      auto beside = point;
      beside[p] += 1e-6;
      const double above = design.log_density(beside);
      beside[p] -= 2e-6;
      EXPECT_NEAR(gradient[p], (above - design.log_density(beside)) / 2e-6, 1e-6);
    }
    Archive archive;
    design.save(archive);
    EXPECT_EQ(Design(archive, space).log_density(point), design.log_density(point));
  }
  const auto table = make(design_space, Design::Kind::table);
  EXPECT_FALSE(table.has_density());
  EXPECT_EQ(error_of([&] {
              table.log_density(std::vector<double>{0.0, 1.0});
            }),
            "Design::log_density: kind is table, but must be one whose density is known");
}

TEST(Design, TablesMayBeResampled) {
  Matrix rows(50, 1);
  for (std::size_t i = 0; i < 50; ++i) rows(i, 0) = static_cast<double>(i);
  const ParameterSpace space({{"a", 0, 50, {}}});
  const Design design(space, {.kind = Design::Kind::table, .rows = rows, .resample = true});
  std::map<double, int> count;
  const auto theta = design.draw(5000, 1, "train").column(0);
  for (const double v : theta) ++count[v];
  // Poisson of mean 100: all 50 within 6 sigma (1e-7), and not all equal (0.04^50).
  int least = 5000, most = 0;
  for (const auto& [v, n] : count) {
    EXPECT_NEAR(n, 100, 60);
    least = std::min(least, n);
    most = std::max(most, n);
  }
  EXPECT_GT(most - least, 10);
  EXPECT_EQ(theta, design.draw(5000, 1, "train").column(0));
  Archive archive;
  design.save(archive);
  EXPECT_EQ(theta, Design(archive, space).draw(5000, 1, "train").column(0));
}

/// θ on a circle, one in ten outside of the ranges.
Matrix on_a_circle(std::size_t n, std::uint64_t seed) {
  RandomStream random(seed, "circle");
  Matrix out(n, 2);
  for (std::size_t i = 0; i < n; ++i) {
    const double angle = 2.0 * M_PI * random.uniform();
    const double radius = random.uniform() < 0.1 ? 30.0 : 2.0;
    out(i, 0) = radius * std::cos(angle);
    out(i, 1) = 5.0 + radius * std::sin(angle);
  }
  return out;
}

TEST(Design, FunctionsDrawWhatLiesInsideOfTheRanges) {
  const Design design(design_space, {.kind = Design::Kind::function, .function = on_a_circle});
  EXPECT_EQ(design.kind(), "function");
  EXPECT_FALSE(design.has_density());
  EXPECT_FALSE(design.single());
  EXPECT_TRUE(design.rows().empty());
  const auto theta = design.draw(10000, 1, "train");
  EXPECT_EQ(theta.rows(), 10000U);
  EXPECT_EQ(theta, design.draw(10000, 1, "train"));
  EXPECT_NE(theta, design.draw(10000, 2, "train"));
  const auto radius = [](const Matrix& points, std::size_t i) {
    return std::hypot(points(i, 0), points(i, 1) - 5.0);
  };
  for (std::size_t i = 0; i < theta.rows(); ++i) ASSERT_NEAR(radius(theta, i), 2.0, 1e-9);
  // Nodes fill the circle evenly: each of 40 has its own fortieth of it, or nearly so.
  const auto nodes = design.nodes(40, 1, 3);
  ASSERT_EQ(nodes.rows(), 40U);
  double mean = 0.0;
  for (std::size_t i = 0; i < 40; ++i) mean += nodes(i, 0) / 40.0;
  EXPECT_NEAR(mean, 0.0, 0.15);  // of draws, 0.22 would be one standard error
  // A file has points of it.
  Archive archive;
  design.save(archive);
  const Design loaded(archive, design_space);
  EXPECT_EQ(loaded.kind(), "table");
  EXPECT_NEAR(radius(loaded.rows(), 17), 2.0, 1e-9);
  const auto refused = [](Design::Function function) {
    return error_of([&] {
      Design(design_space, {.kind = Design::Kind::function, .function = std::move(function)});
    });
  };
  EXPECT_EQ(refused([](std::size_t n, std::uint64_t) { return Matrix(n, 3); }),
            "Design: a row that the function draws has 3 values, but must have 2 (one for each "
            "parameter)");
  EXPECT_EQ(refused([](std::size_t, std::uint64_t) { return Matrix(7, 2); }),
            "Design: what the function draws has 7 values, but must have 65536 (one row for each "
            "θ)");
  EXPECT_TRUE(contains(refused([](std::size_t n, std::uint64_t) {
                         Matrix out(n, 2);
                         out(5, 1) = std::nan("");
                         return out;
                       }),
                       "but must be finite"));
  EXPECT_EQ(refused([](std::size_t n, std::uint64_t) {
              Matrix out(n, 2);
              for (double& value : out.values()) value = 100.0;
              return out;
            }),
            "Design: 0 of 65536 θ that the function drew lie inside of the ranges, but all must; "
            "widen the ranges, or draw others");
}

TEST(Design, SaysWhereRangesThatAreOpenEnd) {
  constexpr double open = std::numeric_limits<double>::infinity();
  const std::vector<Parameter> parameters = {
      {"a", -open, open, {}}, {"b", 0.0, open, {}}, {"c", -1.0, 1.0, {}}};
  const auto ends = [&](const Design::Config& config) {
    std::vector<double> out;
    for (const auto& p : Design::bounded(parameters, config)) {
      out.push_back(p.low);
      out.push_back(p.high);
    }
    return out;
  };
  EXPECT_EQ(ends({.kind = Design::Kind::normal, .mean = {1, 2, 0}, .sigma = {0.5, 3, 1}}),
            (std::vector<double>{-1, 3, 0, 14, -1, 1}));
  const auto log_normal = ends({.kind = Design::Kind::normal,
                                .mean = {1, 2, 0},
                                .sigma = {0.5, 0.5, 1},
                                .log = {false, true, false}});
  EXPECT_NEAR(log_normal[3], std::exp(4.0), 1e-9);
  EXPECT_NEAR(log_normal[2], 1.0, 1e-9);  // zero has no logarithm
  EXPECT_EQ(ends({.kind = Design::Kind::table, .rows = Matrix(2, 3, {-10, 1, 0, 10, 5, 0})}),
            (std::vector<double>{-11, 11, 0, 5.2, -1, 1}));
  const auto drawn =
      ends({.kind = Design::Kind::function, .function = [](std::size_t n, std::uint64_t seed) {
              RandomStream random(seed, "three");
              Matrix out(n, 3);
              for (double& value : out.values()) value = random.uniform();
              return out;
            }});
  EXPECT_NEAR(drawn[0], 0.0, 0.001);  // all are positive
  EXPECT_NEAR(drawn[1], 1.05, 0.001);
  EXPECT_EQ(error_of([&] { ends({}); }),
            "Design::bounded: the range of a, b has an end that is not finite, but must have two "
            "numbers, or a design that says where θ are: a normal, a table or a function");
  EXPECT_TRUE(contains(error_of([&] {
                         ends({.kind = Design::Kind::normal, .sigma = {1, 1, 1}});
                       }),
                       "mean is absent, but must be one for each parameter where a has no range"));
}

TEST(Design, RefusesNormalsThatAreNone) {
  const auto refused = [](std::vector<double> correlation, std::vector<double> mean = {0, 5}) {
    return error_of([&] {
      Design(design_space, {.kind = Design::Kind::normal,
                            .mean = mean,
                            .sigma = {1.0, 1.0},
                            .correlation = matrix_of(2, std::move(correlation))});
    });
  };
  EXPECT_EQ(refused({2.0, 0.0, 0.0, 1.0}), "Design: correlation[0][0] is 2, but must be 1");
  EXPECT_TRUE(contains(refused({1.0, 1.5, 1.5, 1.0}), "between -1 and 1"));
  EXPECT_TRUE(contains(refused({1.0, 0.5, 0.4, 1.0}), "the same in row and column"));
  EXPECT_TRUE(contains(refused({1.0, 0.5, 0.5, 1.0}, {-8.0, 5.0}), "must hold at least 0.001"));
  const ParameterSpace three({{"a", -9, 9, {}}, {"b", -9, 9, {}}, {"c", -9, 9, {}}});
  EXPECT_TRUE(contains(
      error_of([&] {
        Design(three, {.kind = Design::Kind::normal,
                       .sigma = {1, 1, 1},
                       .correlation = matrix_of(3, {1, 0.9, -0.9, 0.9, 1, 0.9, -0.9, 0.9, 1})});
      }),
      "not positive definite"));
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
  const auto correlated = read(
      "design = {kind = \"normal\", covariance = [[4, 1], [1, 1]], mean = {alpha = 0, beta = 3}}",
      problems);
  EXPECT_EQ(correlated.config().sigma, (std::vector<double>{2, 1}));
  EXPECT_EQ(correlated.config().correlation, Matrix(2, 2, {1, 0.5, 0.5, 1}));
  EXPECT_EQ(read("design = {kind = \"normal\", sigma = [2, 1], correlation = [[1, 0.5], [0.5, 1]], "
                 "mean = [0, 3]}",
                 problems)
                .draw(100, 1, "x"),
            correlated.draw(100, 1, "x"));
  EXPECT_TRUE(
      read("design = {kind = \"table\", rows = [[0, 1], [1, 2]], resample = true}", problems)
          .config()
          .resample);
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
  EXPECT_TRUE(contains(problem("design = {kind = \"normal\", covariance = [[1, 2], [0, 1]]}"),
                       "design.covariance must be symmetric, with 2 rows and 2 columns"));
  EXPECT_TRUE(contains(problem("design = {kind = \"normal\", covariance = [[-1, 0], [0, 1]]}"),
                       "design.covariance has -1 on its diagonal, but must be positive there"));
  EXPECT_TRUE(contains(
      problem("design = {kind = \"normal\", sigma = [1, 1], covariance = [[1, 0], [0, 1]]}"),
      "design.sigma stands beside covariance, which says it too"));
  EXPECT_TRUE(contains(problem("design = {kind = \"sobol\", log = [\"gamma\"]}"),
                       "design.log 'gamma' is not a parameter"));
  EXPECT_TRUE(contains(problem("design = {kind = \"sobol\", log = [\"alpha\"]}"),
                       "the range of alpha is [-3, 3], but must be positive on a log scale"));
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
