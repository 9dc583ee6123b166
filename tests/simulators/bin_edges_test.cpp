#include "neyman/simulators/bin_edges.hpp"

#include "neyman/simulators/mixture.hpp"
#include "neyman/simulators/normal.hpp"
#include "neyman/simulators/uniform.hpp"
#include "simulators/reference.hpp"

namespace neyman {
namespace {

void expect_cover(const std::vector<double>& edges, const std::vector<double>& values) {
  ASSERT_GE(edges.size(), 2u);
  for (std::size_t i = 1; i < edges.size(); ++i) ASSERT_LT(edges[i - 1], edges[i]);
  EXPECT_LE(edges.front(), *std::min_element(values.begin(), values.end()));
  EXPECT_GE(edges.back(), *std::max_element(values.begin(), values.end()));
}

/// The fitness that Bayesian blocks maximise, of given edges.
double fitness(const std::vector<double>& edges, const std::vector<double>& values, double p0) {
  const auto n = static_cast<double>(values.size());
  double sum = 0.0;
  for (std::size_t b = 0; b + 1 < edges.size(); ++b) {
    double inside = 0.0;
    for (const double v : values)
      inside += v >= edges[b] && (v < edges[b + 1] || b + 2 == edges.size()) ? 1.0 : 0.0;
    sum += inside * std::log(inside / (edges[b + 1] - edges[b])) -
           (4.0 - std::log(73.53 * p0 * std::pow(n, -0.478)));
  }
  return sum;
}

TEST(BinEdges, UniformBinsHaveEqualWidths) {
  const auto edges = uniform_edges(std::vector{3.0, 1.0, 2.5}, 4);
  ASSERT_EQ(edges.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_DOUBLE_EQ(edges[i], 1.0 + 0.5 * i);
}

TEST(BinEdges, EqualProbabilityBinsHoldEqualShares) {
  const auto values = sample(Normal(0.0, 1.0), {}, 1000, 1, "test").column(0);
  const auto edges = equal_probability_edges(values, {}, 10);
  ASSERT_EQ(edges.size(), 11u);
  expect_cover(edges, values);
  for (std::size_t b = 0; b < 10; ++b) {
    const auto inside = std::count_if(values.begin(), values.end(), [&](double v) {
      return v >= edges[b] && (v < edges[b + 1] || b == 9);
    });
    EXPECT_EQ(inside, 100) << b;
  }
}

TEST(BinEdges, EqualProbabilityFollowsTheWeights) {
  const std::vector<double> values{1, 2, 3, 4}, weights{3, 1, 1, 1};
  EXPECT_EQ(equal_probability_edges(values, weights, 2), (std::vector<double>{1.0, 1.5, 4.0}));
}

TEST(BinEdges, TiesAndConstantsLeaveFewerBins) {
  std::vector<double> ties(90, 5.0);
  for (int i = 0; i < 10; ++i) ties.push_back(6.0 + i);
  for (const auto& edges : {equal_probability_edges(ties, {}, 20), uniform_edges(ties, 20),
                            bayesian_blocks_edges(ties, {})})
    expect_cover(edges, ties);
  for (const double value : {0.0, 7.0, -1e20}) {
    const std::vector<double> constant(5, value);
    for (const auto& edges : {equal_probability_edges(constant, {}, 3), uniform_edges(constant, 3),
                              bayesian_blocks_edges(constant, {})}) {
      expect_cover(edges, constant);
      EXPECT_LT(edges.front(), value);
    }
  }
  // Neighbouring doubles leave no room between them.
  const std::vector<double> close{1.0, std::nextafter(1.0, 2.0)};
  expect_cover(equal_probability_edges(close, {}, 5), close);
  expect_cover(uniform_edges(close, 5), close);
  expect_cover(bayesian_blocks_edges(close, {}), close);
}

TEST(BinEdges, BayesianBlocksFindTheStep) {
  // Density 0.8 on [0, 1) and 0.2 on [1, 2).
  const Mixture step({std::make_shared<Uniform>(0.0, 1.0), std::make_shared<Uniform>(1.0, 2.0)},
                     {0.8, 0.2});
  const auto values = sample(step, {}, 1500, 2, "test").column(0);
  const auto edges = bayesian_blocks_edges(values, {});
  ASSERT_EQ(edges.size(), 3u);
  EXPECT_NEAR(edges[1], 1.0, 0.02);
}

TEST(BinEdges, BayesianBlocksLeaveAFlatDensityWhole) {
  const auto values = sample(Uniform(0.0, 1.0), {}, 1000, 3, "test").column(0);
  EXPECT_EQ(bayesian_blocks_edges(values, {}).size(), 2u);
}

TEST(BinEdges, BayesianBlocksAreTheBestOfAllPartitions) {
  const std::vector<double> values{0.0, 0.1, 0.15, 0.2, 0.22, 0.25, 0.3, 2.0, 5.0, 9.0, 9.1, 9.2};
  const auto edges = bayesian_blocks_edges(values, {}, 0.5);
  std::vector<double> all{values.front()};
  for (std::size_t i = 0; i + 1 < values.size(); ++i)
    all.push_back(0.5 * values[i] + 0.5 * values[i + 1]);
  all.push_back(values.back());
  double best = -1e300;
  for (unsigned mask = 0; mask < 1u << 11; ++mask) {  // every choice of inner edges
    std::vector<double> chosen{all.front()};
    for (std::size_t i = 0; i < 11; ++i)
      if ((mask >> i & 1u) != 0) chosen.push_back(all[i + 1]);
    chosen.push_back(all.back());
    best = std::max(best, fitness(chosen, values, 0.5));
  }
  EXPECT_NEAR(fitness(edges, values, 0.5), best, 1e-9);
  EXPECT_GT(edges.size(), 2u);
}

TEST(BinEdges, BayesianBlocksOfManyValuesAreFastAndCover) {
  const auto values = sample(Normal(0.0, 1.0), {}, 200000, 4, "test").column(0);
  const auto edges = bayesian_blocks_edges(values, {});
  expect_cover(edges, values);
  EXPECT_GT(edges.size(), 15u);
  EXPECT_LT(edges.size(), 200u);
}

TEST(BinEdges, RefusesWhatIsNotThere) {
  EXPECT_THROW(uniform_edges({}, 3), ArgumentError);
  EXPECT_THROW(uniform_edges(std::vector{1.0, std::nan("")}, 3), ArgumentError);
  EXPECT_THROW(equal_probability_edges(std::vector{1.0}, {}, 0), ArgumentError);
  EXPECT_THROW(bayesian_blocks_edges(std::vector{1.0, 2.0}, {}, 0.0), ArgumentError);
  EXPECT_THROW(bayesian_blocks_edges(std::vector{1.0, 2.0}, std::vector{1.0}), ArgumentError);
}

}  // namespace
}  // namespace neyman
