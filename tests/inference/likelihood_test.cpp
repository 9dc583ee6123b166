#include "neyman/inference/likelihood.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/instruction_set.hpp"
#include "inference/mixture_kernels.hpp"
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

/// Three shares that are not linear in two parameters; the last is what the others leave.
ParameterSpace two_parameters() {
  return ParameterSpace({{"a", 0.05, 0.9, {}}, {"b", -1.0, 1.0, {}}});
}
MixtureWeights curved_weights() {
  const auto space = two_parameters();
  return MixtureWeights({Expression("a^2 * (1 + 0.3 * b)", space),
                         Expression("(1 - a)^2 * exp(-0.2 - 0.2 * b^2)", space)},
                        3);
}

TEST(MixtureLikelihood, SecondDerivativesEqualDifferencesOfTheGradient) {
  std::vector<double> event_weights;
  RandomStream random(1, "weights");
  for (int i = 0; i < 700; ++i) event_weights.push_back(random.uniform() - 0.1);
  for (const std::size_t events : {1, 9, 256, 700})
    for (const bool weighted : {false, true}) {
      event_weights.resize(events);
      const MixtureLikelihood likelihood(two_parameters(), curved_weights(),
                                         random_ratios(events, 3, 1.0), {1.0, 1.2, 0.8},
                                         weighted ? event_weights : std::vector<double>{});
      // At an end of the ranges differences are one-sided.
      for (const auto& point : {std::vector{0.4, 0.3}, std::vector{0.8, -0.6}}) {
        std::vector<double> gradient(2), known(2), above(2), below(2);
        Matrix hessian;
        const auto value = likelihood.second_derivatives(point, gradient, hessian);
        ASSERT_TRUE(value);
        EXPECT_NEAR(*value, likelihood(point, known), 1e-11 * (1.0 + std::abs(*value)));
        for (std::size_t p = 0; p < 2; ++p) {
          EXPECT_NEAR(gradient[p], known[p], 1e-9 * (1.0 + std::abs(known[p])));
          auto moved = point;
          moved[p] = point[p] + 1e-4;
          likelihood(moved, above);
          moved[p] = point[p] - 1e-4;
          likelihood(moved, below);
          for (std::size_t q = 0; q < 2; ++q)
            EXPECT_NEAR(hessian(p, q), (above[q] - below[q]) / 2e-4,
                        1e-5 * static_cast<double>(events) + 1e-4)
                << events << " events, " << p << ", " << q;
        }
      }
    }
}

TEST(MixtureLikelihood, SecondDerivativesAreNotGivenWhereThetaIsForbidden) {
  const ParameterSpace space({{"a", -1.0, 2.0, {}}});
  const MixtureLikelihood likelihood(space, MixtureWeights({Expression("a", space)}, 2),
                                     random_ratios(10, 2, 1.0), {1.0, 1.0});
  std::vector<double> gradient(1);
  Matrix hessian;
  EXPECT_FALSE(likelihood.second_derivatives(std::vector{-0.5}, gradient, hessian));
  EXPECT_TRUE(likelihood.second_derivatives(std::vector{0.5}, gradient, hessian));
}

TEST(MixtureKernels, EveryInstructionSetGivesTheSameBits) {
  RandomStream random(3, "weights");
  for (const std::size_t events : {1, 8, 255, 256, 1000})
    for (const bool weighted : {false, true}) {
      const auto ratios = random_ratios(4, events, 2.0);
      std::vector<double> u(events);
      random.fill_uniform(u);
      const double* rows[] = {ratios.row(0).data(), ratios.row(1).data(), ratios.row(2).data(),
                              ratios.row(3).data()};
      const double weights[] = {0.1, 0.2, 0.3, 0.4};
      std::vector<std::vector<double>> found;
      for (const auto* kernels : detail::supported(mixture::all_kernels)) {
        std::vector<double> out(21, 0.0), room(4 * mixture::chunk);
        mixture::Sums sums{0.0, out.data() + 1, out.data() + 5};
        kernels->add({rows, weighted ? u.data() : nullptr, 4, events}, weights, room.data(), sums);
        out[0] = sums.logs;
        found.push_back(out);
      }
      for (const auto& other : found) EXPECT_EQ(other, found.front());
      // Σ_c w_c q_c / m = 1 for each event.
      double sum = 0.0, count = 0.0;
      for (std::size_t c = 0; c < 4; ++c) sum += weights[c] * found[0][1 + c];
      for (const double one : u) count += weighted ? one : 1.0;
      EXPECT_NEAR(sum, count, 1e-10 * count);
    }
}

}  // namespace
}  // namespace neyman
