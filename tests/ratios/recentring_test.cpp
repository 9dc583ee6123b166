#include "ratios/recentring.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "neyman/core/error.hpp"
#include "neyman/core/random.hpp"

namespace neyman::across {
namespace {

const ParameterSpace width({{"t", -2.0, 2.0, {}}});

/// Events x ~ N(t, 1), and the scores of the density N(t + shift(t), 1).
struct Scored {
  Matrix theta, scores;
  template <class Shift>
  Scored(std::size_t n, std::uint64_t seed, Shift&& shift) : theta(n, 1), scores(n, 1) {
    RandomStream random(seed, "scored");
    for (std::size_t i = 0; i < n; ++i) {
      theta(i, 0) = 4.0 * random.uniform() - 2.0;
      scores(i, 0) = random.normal() - shift(theta(i, 0));
    }
  }
  Recentring recentring(std::span<const double> weights = {}) const {
    return {width, theta, scores, weights};
  }
};

double moved(const Recentring& by, double t) { return by(std::vector{t})[0] - t; }

// ε(t) = −shift(t), up to the noise of a smooth function of some 10 numbers from 20 000 events of
// information one: √(10 / 20 000) = 0.022.
TEST(Recentring, FindsAShift) {
  const auto shift = [](double t) { return 0.2 * std::sin(2.0 * t); };
  const auto by = Scored(20000, 1, shift).recentring();
  double square = 0.0, predicted = 0.0;
  for (int k = 0; k <= 40; ++k) {
    const double t = -2.0 + 0.1 * k;
    square += std::pow(moved(by, t) + shift(t), 2) / 41.0;
    predicted += by.covariance(std::vector{t})(0, 0) / 41.0;
  }
  EXPECT_LT(std::sqrt(square), 0.04);
  EXPECT_LT(std::sqrt(predicted), 0.05);
  EXPECT_GT(std::sqrt(predicted), 0.01);
}

// Where there is none, most of the noise of 25 numbers, √(25 / 20 000) = 0.035, is shrunk away. Of
// a degree alone (1 − 1/z²)₊² z² has a mean of 0.4, of several together less.
TEST(Recentring, LeavesWhatIsRight) {
  double square = 0.0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto by = Scored(20000, seed, [](double) { return 0.0; }).recentring();
    for (int k = 0; k <= 40; ++k) square += std::pow(moved(by, -2.0 + 0.1 * k), 2) / (41.0 * 20.0);
  }
  EXPECT_LT(square, 0.4 * 25.0 / 20000.0);
}

// What would make two maxima of one is left out, whatever the events say.
TEST(Recentring, TurnsBackNowhere) {
  const auto by = Scored(4000, 1, [](double t) { return 0.3 * std::sin(9.0 * t); }).recentring();
  Matrix jacobian;
  for (int k = 0; k <= 400; ++k) {
    by(std::vector{-2.0 + 0.01 * k}, &jacobian);
    EXPECT_GE(jacobian(0, 0), 0.05);
  }
}

TEST(Recentring, SlopesAgreeWithDifferences) {
  const ParameterSpace plane({{"a", -1, 3, {}}, {"b", 0, 10, {}}});
  const std::size_t n = 5000;
  Matrix theta(n, 2), scores(n, 2);
  RandomStream random(3, "plane");
  for (std::size_t i = 0; i < n; ++i) {
    theta(i, 0) = 4.0 * random.uniform() - 1.0;
    theta(i, 1) = 10.0 * random.uniform();
    scores(i, 0) = random.normal() + 0.3 * theta(i, 0);
    scores(i, 1) = 0.5 * random.normal() - 0.02 * theta(i, 1) * theta(i, 0);
  }
  const Recentring by(plane, theta, scores, {});
  ASSERT_FALSE(by.empty());
  const std::vector<double> point{0.7, 4.0};
  Matrix jacobian;
  EXPECT_EQ(by(point, &jacobian), by(point));
  for (std::size_t q = 0; q < 2; ++q) {
    auto up = point, down = point;
    up[q] += 1e-5;
    down[q] -= 1e-5;
    for (std::size_t p = 0; p < 2; ++p)
      EXPECT_NEAR(jacobian(p, q), (by(up)[p] - by(down)[p]) / 2e-5, 1e-6);
  }
}

// Three events of a weight of one are as one of a weight of three: only ratios matter, and what
// events count for is their effective number.
TEST(Recentring, OnlyRatiosOfWeightsMatter) {
  const Scored events(4000, 5, [](double t) { return 0.3 * t; });
  const auto plain = events.recentring();
  const auto same = events.recentring(std::vector<double>(4000, 0.25));
  for (const double t : {-1.5, 0.0, 1.0}) EXPECT_NEAR(moved(plain, t), moved(same, t), 1e-12);
}

TEST(Recentring, FewEventsMoveNothing) {
  EXPECT_TRUE(Scored(10, 1, [](double) { return 1.0; }).recentring().empty());
  const Recentring none;
  EXPECT_EQ(none(std::vector{0.5}), std::vector{0.5});
}

TEST(Recentring, SavesAndLoads) {
  const auto by = Scored(4000, 7, [](double t) { return 0.2 * t; }).recentring();
  Archive archive;
  by.save(archive);
  const auto loaded = Recentring::load(archive, width);
  for (const double t : {-1.5, 0.0, 1.0}) {
    EXPECT_EQ(moved(loaded, t), moved(by, t));
    EXPECT_EQ(loaded.covariance(std::vector{t}), by.covariance(std::vector{t}));
  }
  Archive broken = archive;
  broken.set("degree", std::int64_t{500});
  EXPECT_THROW(Recentring::load(broken, width), FileError);
  broken = archive;
  broken.set("coefficients", Matrix(3, 1));
  EXPECT_THROW(Recentring::load(broken, width), FileError);
  Archive none;
  Recentring().save(none);
  EXPECT_TRUE(Recentring::load(none, width).empty());
}

}  // namespace
}  // namespace neyman::across
