#include "neyman/ratios/ratio.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "neyman/core/error.hpp"
#include "neyman/ratios/classifier_ratio.hpp"
#include "neyman/ratios/mixture_ratio.hpp"
#include "neyman/simulators/uniform.hpp"
#include "ratios/two_components.hpp"

namespace neyman {
namespace {

using testing::grid;

double normal_density(double x, double mean) {
  return std::exp(-0.5 * (x - mean) * (x - mean)) / std::sqrt(2.0 * M_PI);
}

TEST(ExactRatio, IsTheRatioOfTheDensities) {
  const auto mixture = testing::normals({0.0, 1.0});
  const ExactRatio exact(mixture);
  const auto x = grid(-5, 5, 21);
  const std::vector<double> top{0.3}, bottom{0.1};
  const auto found = exact.log_ratios(x, top, bottom);
  for (std::size_t i = 0; i < x.rows(); ++i) {
    const double p0 = normal_density(x(i, 0), 0), p1 = normal_density(x(i, 0), 1);
    EXPECT_NEAR(found[i], std::log((0.7 * p0 + 0.3 * p1) / (0.9 * p0 + 0.1 * p1)), 1e-12);
  }
}

TEST(ExactRatio, StaysFiniteWhereADensityIsZero) {
  const ParameterSpace space({{"a", 0.0, 1.0, {}}});
  const ExactRatio exact(
      std::make_shared<Uniform>(Expression("a", space), Expression("a + 1", space)));
  const Matrix x(3, 1, {0.25, 1.25, 9.0});
  const auto found = exact.log_ratios(x, std::vector{0.0}, std::vector{0.5});
  EXPECT_EQ(found[0], log_ratio_limit);   // impossible under the denominator
  EXPECT_EQ(found[1], -log_ratio_limit);  // impossible under the numerator
  EXPECT_EQ(found[2], 0.0);               // impossible under both
}

TEST(InverseRatio, SwapsThePointsAndTheSign) {
  const auto exact = std::make_shared<ExactRatio>(testing::normals({0.0, 1.0}));
  const InverseRatio inverse(exact);
  const auto x = grid(-3, 3, 7);
  const std::vector<double> a{0.2}, b{0.7};
  // 1 / r(x; b, a) = r(x; a, b).
  const auto direct = exact->log_ratios(x, a, b), twice = inverse.log_ratios(x, a, b);
  for (std::size_t i = 0; i < x.rows(); ++i) EXPECT_DOUBLE_EQ(direct[i], twice[i]);
  EXPECT_NE(direct[0], 0.0);
}

TEST(ExactMixtureRatio, AgreesWithTheExactRatio) {
  const auto mixture = testing::normals({0.0, 1.0, 2.5});
  const ExactRatio whole(mixture);
  const ExactMixtureRatio parts(mixture, {0.4});
  const auto x = grid(-4, 6, 31);
  const std::vector<double> top{0.9}, bottom{0.05};
  const auto a = whole.log_ratios(x, top, bottom), b = parts.log_ratios(x, top, bottom);
  for (std::size_t i = 0; i < x.rows(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12);
}

// At the reference all events are below 1: one at 2.5 has no density there, and bounded ratios.
TEST(ExactMixtureRatio, EventsThatAreImpossibleUnderTheReference) {
  const auto space = testing::gamma_space();
  const auto mixture =
      std::make_shared<Mixture>(std::vector<DistributionPtr>{std::make_shared<Uniform>(0.0, 1.0),
                                                             std::make_shared<Uniform>(2.0, 3.0)},
                                std::vector<Expression>{{"1 - gamma", space}, {"gamma", space}});
  const ExactMixtureRatio ratio(mixture, {0.0});
  const auto found = ratio.component_ratios(grid(0.5, 2.5, 2));
  EXPECT_DOUBLE_EQ(found(0, 0), 1.0);
  EXPECT_DOUBLE_EQ(found(0, 1), std::exp(-log_ratio_limit));
  EXPECT_DOUBLE_EQ(found(1, 1), std::exp(log_ratio_limit));
  for (const double value : found.values()) {
    EXPECT_GT(value, 0.0);
    EXPECT_LE(value, std::exp(log_ratio_limit));
  }
}

TEST(MixtureWeights, MayLeaveTheLastImplied) {
  const auto space = testing::gamma_space();
  const MixtureWeights weights({Expression("1 - gamma", space), Expression("gamma/4", space)}, 3);
  const auto w = weights(std::vector{0.4});
  EXPECT_DOUBLE_EQ(w[0], 0.6);
  EXPECT_DOUBLE_EQ(w[1], 0.1);
  EXPECT_DOUBLE_EQ(w[2], 0.3);
  EXPECT_THROW(MixtureWeights({Expression(0.5)}, 3), ArgumentError);
  const MixtureWeights wrong({Expression("gamma", space), Expression("gamma", space)}, 2);
  EXPECT_THROW(wrong(std::vector{0.4}), ArgumentError);  // sum 0.8
  const MixtureWeights negative({Expression("2*gamma", space)}, 2);
  EXPECT_THROW(negative(std::vector{0.7}), ArgumentError);
}

TEST(ClassifierRatio, LearnsALinearLogRatio) {
  const auto mixture = testing::normals({0.0, 1.0});
  const auto config = testing::logistic_config();
  const auto samples = testing::draw_all(*mixture, 20000, config);
  const std::vector<double> first{0.0}, second{1.0};
  const ClassifierRatio ratio(samples[0], samples[1], first, second, config);
  const auto x = grid(-1.5, 2.5, 17);
  const auto found = ratio.log_ratios(x, first, second);
  // log N(0,1)/N(1,1) = 1/2 − x. The slope has a standard error of about 0.012 here, the offset
  // 0.009; the tolerance is over five times that at the ends: false alarm below 1e-6.
  for (std::size_t i = 0; i < x.rows(); ++i) EXPECT_NEAR(found[i], 0.5 - x(i, 0), 0.12);
  const auto inverse = ratio.log_ratios(x, second, first);
  for (std::size_t i = 0; i < x.rows(); ++i) EXPECT_EQ(found[i], -inverse[i]);
  EXPECT_THROW(ratio.log_ratios(x, first, std::vector{0.5}), ArgumentError);
}

TEST(ClassifierRatio, HasMeanOneOverTheDenominator) {
  const auto mixture = testing::normals({0.0, 1.0});
  auto config = testing::logistic_config();
  const auto samples = testing::draw_all(*mixture, 5000, config);
  const ClassifierRatio ratio(samples[0], samples[1], {0.0}, {1.0}, config);
  const auto& pair = ratio.cross_fit();
  // All held-out events, each weighted from the pooled sample to the denominator.
  double weighted = 0.0;
  for (const auto& sample : samples)
    for (const double value : pair.held_out(sample, pair.held_out_scores(sample)))
      weighted += std::exp(value) / (0.5 * std::exp(value) + 0.5) / 10000.0;
  EXPECT_NEAR(weighted, std::exp(ratio.log_normalisation()), 1e-12);
  // The plain mean over events of the denominator: r has variance e − 1 there, so that its
  // standard error is 0.019; five of these.
  double sum = 0.0;
  for (const double value : pair.held_out(samples[1], pair.held_out_scores(samples[1])))
    sum += std::exp(value - ratio.log_normalisation()) / 5000.0;
  EXPECT_NEAR(sum, 1.0, 5 * 0.019);
}

TEST(ClassifierRatio, NormalisesARatioWithAHeavyTail) {
  // N(3, 1) over N(0, 1): r has variance e⁹ over the denominator, where a plain mean is off by
  // factors. The bridge's standard error is about 0.01 with 1000 events a side; five of these.
  const auto mixture = testing::normals({3.0, 0.0});
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const auto config = testing::logistic_config(seed);
    const auto samples = testing::draw_all(*mixture, 1000, config);
    const ClassifierRatio ratio(samples[0], samples[1], {0.0}, {1.0}, config);
    EXPECT_NEAR(ratio.log_normalisation(), 0.0, 0.05);
  }
}

TEST(ClassifierRatio, SavesAndLoadsExactly) {
  const auto mixture = testing::normals({0.0, 1.0});
  const auto config = testing::logistic_config();
  const auto samples = testing::draw_all(*mixture, 500, config);
  const ClassifierRatio ratio(samples[0], samples[1], {0.0}, {1.0}, config);
  Archive archive;
  ratio.save(archive);
  const ClassifierRatio loaded(archive);
  const auto x = grid(-6, 6, 50);
  EXPECT_EQ(ratio.log_ratios(x, std::vector{0.0}, std::vector{1.0}),
            loaded.log_ratios(x, std::vector{0.0}, std::vector{1.0}));
}

}  // namespace
}  // namespace neyman
