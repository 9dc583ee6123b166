#include "neyman/inference/likelihood.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "ratios/two_components.hpp"

namespace neyman {
namespace {

Matrix random_ratios(std::size_t events, std::size_t components, double spread) {
  RandomStream random(7, "ratios");
  Matrix out(events, components);
  for (double& value : out.values()) value = std::exp(spread * random.normal());
  return out;
}

MixtureWeights three_weights() {
  const auto space = testing::gamma_space();
  return MixtureWeights({Expression("(1 - gamma)^2", space), Expression("gamma^2", space)}, 3);
}

double plain_sum(const MixtureWeights& weights, const Matrix& ratios,
                 const std::vector<double>& means, const std::vector<double>& event_weights,
                 double gamma) {
  const auto w = weights(std::vector{gamma});
  double sum = 0.0, norm = 0.0;
  for (std::size_t c = 0; c < w.size(); ++c) norm += w[c] * means[c];
  for (std::size_t i = 0; i < ratios.rows(); ++i) {
    double mixture = 0.0;
    for (std::size_t c = 0; c < w.size(); ++c) mixture += w[c] * ratios(i, c);
    sum += (event_weights.empty() ? 1.0 : event_weights[i]) * std::log(mixture / norm);
  }
  return sum;
}

TEST(MixtureLikelihood, EqualsThePlainSum) {
  // Sizes around the unrolled loops, and ratios over hundreds of orders of magnitude.
  for (const std::size_t events : {1, 2, 7, 8, 9, 511, 512, 513, 1024, 1031, 40000})
    for (const double spread : {0.5, 100.0}) {
      const auto ratios = random_ratios(events, 3, spread);
      const std::vector<double> means{1.1, 0.9, 1.3};
      const MixtureLikelihood likelihood(testing::gamma_space(), three_weights(), ratios, means);
      const double point[] = {0.37};
      const double expected = plain_sum(three_weights(), ratios, means, {}, 0.37);
      EXPECT_NEAR(likelihood(point), expected, 1e-12 * std::abs(expected) + 1e-11)
          << events << " events";
    }
}

TEST(MixtureLikelihood, GradientEqualsDifferences) {
  const auto ratios = random_ratios(1000, 3, 1.0);
  std::vector<double> event_weights;
  RandomStream random(1, "weights");
  for (int i = 0; i < 1000; ++i) event_weights.push_back(random.uniform());
  for (const bool weighted : {false, true}) {
    const MixtureLikelihood likelihood(testing::gamma_space(), three_weights(), ratios,
                                       {1.0, 1.2, 0.8},
                                       weighted ? event_weights : std::vector<double>{});
    for (const double at : {0.1, 0.5, 0.8}) {
      double gradient[1], low[1] = {at - 1e-5}, high[1] = {at + 1e-5}, point[1] = {at};
      likelihood(point, gradient);
      EXPECT_NEAR(gradient[0], (likelihood(high) - likelihood(low)) / 2e-5,
                  1e-5 * (1 + std::abs(gradient[0])));
    }
  }
}

TEST(MixtureLikelihood, WeightsEqualRepetition) {
  const auto ratios = random_ratios(50, 3, 1.0);
  Matrix repeated(0, 3);
  std::vector<double> weights;
  for (std::size_t i = 0; i < 50; ++i) {
    weights.push_back(static_cast<double>(i % 4));
    for (std::size_t k = 0; k < i % 4; ++k) repeated.append(ratios.rows(i, i + 1));
  }
  const std::vector<double> means{1.1, 0.9, 1.0};
  const MixtureLikelihood a(testing::gamma_space(), three_weights(), ratios, means, weights);
  const MixtureLikelihood b(testing::gamma_space(), three_weights(), repeated, means);
  const double point[] = {0.42};
  EXPECT_NEAR(a(point), b(point), 1e-11);
}

TEST(MixtureLikelihood, SameBitsForAnyNumberOfThreads) {
  const MixtureLikelihood likelihood(testing::gamma_space(), three_weights(),
                                     random_ratios(100000, 3, 2.0), {1, 1, 1});
  const double point[] = {0.3};
  double one[1], two[1];
  set_threads(1);
  const double a = likelihood(point, one);
  set_threads(2);
  const double b = likelihood(point, two);
  set_threads(0);
  EXPECT_EQ(a, b);
  EXPECT_EQ(one[0], two[0]);
}

TEST(MixtureLikelihood, ForbiddenPointsAndBadRatios) {
  const auto space = testing::gamma_space();
  const MixtureWeights weights({Expression("2*gamma", space)}, 2);
  const MixtureLikelihood likelihood(space, weights, random_ratios(5, 2, 1.0), {1, 1});
  const double point[] = {0.8};
  double gradient[1] = {3.0};
  EXPECT_EQ(likelihood(point, gradient), Likelihood::forbidden);
  EXPECT_EQ(gradient[0], 0.0);
  EXPECT_THROW(MixtureLikelihood(space, weights, Matrix(1, 2, {1.0, 0.0}), {1, 1}), ArgumentError);
  EXPECT_THROW(MixtureLikelihood(space, weights, Matrix(1, 2, {1.0, NAN}), {1, 1}), ArgumentError);
  EXPECT_THROW(MixtureLikelihood(space, weights, Matrix(1, 3), {1, 1}), ArgumentError);
}

}  // namespace
}  // namespace neyman
