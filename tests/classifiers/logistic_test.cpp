#include "neyman/classifiers/logistic.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "classifiers/problems.hpp"
#include "neyman/core/error.hpp"

namespace neyman {
namespace {

using problems::Labelled;

// One binary feature: the fit reproduces the log odds of the 2 × 2 table,
// z(1) = log(30/70 · 60/40 …) with each side's shares: p1(1) = 0.6, p0(1) = 0.3.
TEST(Logistic, SolvesTheTwoByTwoTable) {
  Labelled data{Matrix(4, 1, std::vector<double>{0, 1, 0, 1}), {0, 0, 1, 1}, {70, 30, 40, 60}};
  Logistic logistic(Logistic::Config{.l2 = 0.0});
  logistic.fit(data.set());
  EXPECT_TRUE(logistic.converged());
  const Logits z = logistic.logits(Matrix(2, 1, std::vector<double>{0, 1}));
  EXPECT_NEAR(z[0], std::log(0.4 / 0.7), 1e-9);
  EXPECT_NEAR(z[1], std::log(0.6 / 0.3), 1e-9);
  EXPECT_NEAR(logistic.intercept(), z[0], 1e-12);
  EXPECT_NEAR(logistic.coefficients()[0], z[1] - z[0], 1e-12);
}

// At the minimum the penalised gradient vanishes, checked by brute force in units of the data.
TEST(Logistic, PenalisedGradientVanishes) {
  const Labelled data = problems::two_normals(300, 700, 3);
  const double l2 = 0.3;
  Logistic logistic(Logistic::Config{.l2 = l2});
  logistic.fit(data.set());
  const std::vector<double> weights = detail::balanced_weights("test", data.set());
  const Logits z = logistic.logits(data.x);
  for (std::size_t j = 0; j < 3; ++j) {
    double mean = 0.0, square = 0.0, gradient = 0.0;
    for (std::size_t i = 0; i < 1000; ++i) mean += weights[i] * data.x(i, j) / 1000.0;
    for (std::size_t i = 0; i < 1000; ++i)
      square += weights[i] * std::pow(data.x(i, j) - mean, 2) / 1000.0;
    const double scale = std::sqrt(square);
    for (std::size_t i = 0; i < 1000; ++i) {
      const double p = 1.0 / (1.0 + std::exp(-z[i]));
      gradient += weights[i] / 1000.0 * (p - data.denominator[i]) * (data.x(i, j) - mean) / scale;
    }
    EXPECT_NEAR(gradient + l2 * logistic.coefficients()[j] * scale, 0.0, 1e-12);
  }
}

// z has the same value whatever units the features are in.
TEST(Logistic, UnitsAreIrrelevant) {
  const Labelled data = problems::two_normals(500, 500, 2);
  Labelled scaled = data;
  for (std::size_t i = 0; i < 1000; ++i) {
    scaled.x(i, 0) = 1e9 * data.x(i, 0) + 1e9;
    scaled.x(i, 1) = 1e-200 * data.x(i, 1);
  }
  Logistic a, b;
  a.fit(data.set());
  b.fit(scaled.set());
  const Logits za = a.logits(data.x), zb = b.logits(scaled.x);
  for (std::size_t i = 0; i < 1000; ++i) EXPECT_NEAR(za[i], zb[i], 1e-9);
}

TEST(Logistic, CollinearFeaturesShareTheirCoefficient) {
  const Labelled one = problems::two_normals(500, 500);
  Labelled two{Matrix(1000, 2), one.denominator};
  for (std::size_t i = 0; i < 1000; ++i) two.x(i, 0) = two.x(i, 1) = one.x(i, 0);
  Logistic single(Logistic::Config{.l2 = 0.0}), both(Logistic::Config{.l2 = 0.0});
  single.fit(one.set());
  both.fit(two.set());
  EXPECT_LT(problems::mean_difference(single.logits(one.x), both.logits(two.x)), 1e-6);
}

TEST(Logistic, SeparatedSidesConverge) {
  Labelled data{Matrix(4, 1, std::vector<double>{-2, -1, 1, 2}), {0, 0, 1, 1}};
  Logistic logistic;
  logistic.fit(data.set());
  EXPECT_TRUE(logistic.converged());
  EXPECT_GT(logistic.logits(data.x)[3], 5.0);
}

TEST(Logistic, SaysThatItDidNotConverge) {
  Logistic logistic(Logistic::Config{.max_iterations = 1});
  logistic.fit(problems::two_normals(50, 50).set());
  EXPECT_FALSE(logistic.converged());
}

TEST(Logistic, RefusesBadConfiguration) {
  EXPECT_THROW(Logistic(Logistic::Config{.l2 = -1.0}), ArgumentError);
  EXPECT_THROW(Logistic(Logistic::Config{.max_iterations = 0}), ArgumentError);
}

TEST(Logistic, RefusesAnArchiveOfOtherShape) {
  Logistic logistic;
  logistic.fit(problems::two_normals(50, 50).set());
  Archive archive;
  logistic.save(archive);
  archive.set("beta", std::vector<double>{1.0});
  EXPECT_THROW(Logistic().load(archive), Error);
}

}  // namespace
}  // namespace neyman
