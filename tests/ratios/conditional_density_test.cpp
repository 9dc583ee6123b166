#include "ratios/conditional_density.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "neyman/core/error.hpp"

namespace neyman::across {
namespace {

/// Rows of one parameter v in (−1, 1) and of some numbers u that come of it.
struct Problem {
  std::size_t columns;
  std::function<void(double v, RandomStream&, std::span<double> u)> draw;
  std::function<double(double v, std::span<const double> u)> log_density;
};

struct Rows {
  Matrix v, u;
  Rows(const Problem& problem, std::size_t n, std::uint64_t seed) : v(n, 1), u(n, problem.columns) {
    RandomStream random(seed, "rows");
    for (std::size_t i = 0; i < n; ++i) {
      v(i, 0) = 2.0 * random.uniform() - 1.0;
      problem.draw(v(i, 0), random, u.row(i));
    }
  }
};

struct Fitted {
  std::vector<FeatureScale> given{FeatureScale::of_range(-1.0, 1.0)}, target;
  ConditionalDensity density;

  Fitted(const Problem& problem, std::size_t n, std::size_t components = 8) {
    const Rows rows(problem, n, 1);
    for (std::size_t c = 0; c < problem.columns; ++c) target.emplace_back(rows.u.column(c));
    std::vector<std::uint32_t> all(n);
    std::iota(all.begin(), all.end(), 0u);
    MixtureFactor::Options options;
    options.components = components;
    options.hidden = {32, 32};
    options.batch_size = 128;
    options.epochs = std::max<std::size_t>(2, 400000 / n);
    const std::span<const std::uint32_t> order(all);
    density = ConditionalDensity(side(given, rows.v), side(target, rows.u), given, target, {},
                                 order.subspan(n / 10), order.subspan(0, n / 10), options, nullptr);
  }

  static ConditionalDensity::Side side(const std::vector<FeatureScale>& scales, MatrixView of) {
    return ConditionalDensity::side(scales, of);
  }
  std::vector<double> values(MatrixView v, MatrixView u) const {
    const auto given_side = side(given, v), target_side = side(target, u);
    std::vector<double> out(ConditionalDensity::rows(given_side, target_side));
    density.values(given_side, target_side, out.data());
    return out;
  }
};

/// The spread of log q − log p between fresh events: both are of x alone up to an error.
/// E[log p(u|v) − log p(u|v′)] − the same of q: what is lost in telling v from another v′.
double loss(const Fitted& fitted, const Problem& problem, std::size_t n = 20000) {
  const Rows rows(problem, n, 2);
  Matrix other(n, 1);
  for (std::size_t i = 0; i < n; ++i) other(i, 0) = rows.v((i + 1) % n, 0);
  const auto own = fitted.values(rows.v, rows.u), others = fitted.values(other, rows.u);
  double out = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto softplus = [](double t) {
      return std::log1p(std::exp(-std::abs(t))) + std::max(t, 0.0);
    };
    const double exact = problem.log_density(rows.v(i, 0), rows.u.row(i)) -
                         problem.log_density(other(i, 0), rows.u.row(i));
    out += softplus(-(own[i] - others[i])) - softplus(-exact);
  }
  return out / static_cast<double>(n);
}

double normal_log(double x, double mean, double sigma) {
  return -0.5 * std::pow((x - mean) / sigma, 2) - std::log(sigma) - 0.9189385332046727;
}

const Problem correlated{2,
                         [](double v, RandomStream& random, std::span<double> u) {
                           u[0] = random.normal();
                           u[1] = 0.9 * v * u[0] + std::sqrt(1.0 - 0.81 * v * v) * random.normal();
                         },
                         [](double v, std::span<const double> u) {
                           return normal_log(u[1], 0.9 * v * u[0], std::sqrt(1.0 - 0.81 * v * v));
                         }};

/// A fifth in a peak of width 0.05 at v, over a flat background.
const Problem peak{1,
                   [](double v, RandomStream& random, std::span<double> u) {
                     u[0] = random.uniform() < 0.2 ? v + 0.05 * random.normal()
                                                   : 3.0 * (random.uniform() - 0.5);
                   },
                   [](double v, std::span<const double> u) {
                     return std::log((std::abs(u[0]) < 1.5 ? 0.8 / 3.0 : 0.0) +
                                     0.2 * std::exp(normal_log(u[0], v, 0.05)));
                   }};

/// Counts around 6 exp(v), in units of 0.5.
const Problem counts{
    1,
    [](double v, RandomStream& random, std::span<double> u) {
      double left = 6.0 * std::exp(v);
      int n = 0;
      while ((left -= random.exponential()) > 0.0) ++n;
      u[0] = 0.5 * n;
    },
    [](double v, std::span<const double> u) { return 2.0 * u[0] * v - 6.0 * std::exp(v); }};

/// Zero with a probability of v, else a normal around v; and one of two categories.
const Problem mixed{
    2,
    [](double v, RandomStream& random, std::span<double> u) {
      u[0] = random.uniform() < 0.5 + 0.4 * v ? 0.0 : v + 0.5 * random.normal();
      const double p = u[0] == 0.0 ? 0.5 - 0.4 * v : 0.3;
      u[1] = random.uniform() < p ? 1.0 : -1.0;
    },
    [](double v, std::span<const double> u) {
      const bool zero = u[0] == 0.0;
      const double p = zero ? 0.5 - 0.4 * v : 0.3;
      return (zero ? std::log(0.5 + 0.4 * v) : std::log(0.5 - 0.4 * v) + normal_log(u[0], v, 0.5)) +
             std::log(u[1] > 0.0 ? p : 1.0 - p);
    }};

// The mean cross-entropy of telling v from another, above the exact one's, in nats. That one is
// the lowest there is: the loss is positive, but for the events' noise of some 0.0005.
TEST(ConditionalDensity, IsNearTheExactOne) {
  const auto near = [](const Problem& problem, double most) {
    const double lost = loss(Fitted(problem, 20000), problem);
    EXPECT_LT(lost, most);
    EXPECT_GT(lost, -0.002);
  };
  near(correlated, 0.004);
  near(peak, 0.006);
  near(counts, 0.003);
  near(mixed, 0.004);
}

TEST(ConditionalDensity, ProbabilitiesOfStepsSumToOne) {
  const Fitted fitted(counts, 4000);
  Matrix values(200, 1);
  for (std::size_t k = 0; k < 200; ++k) values(k, 0) = 0.5 * static_cast<double>(k);
  for (const double v : {-0.9, 0.0, 0.8}) {
    double sum = 0.0;
    for (const double log_q : fitted.values(Matrix(1, 1, {v}), values)) sum += std::exp(log_q);
    EXPECT_NEAR(sum, 1.0, 0.01);
  }
}

TEST(ConditionalDensity, ProbabilitiesOfCategoriesSumToOne) {
  const Fitted fitted(mixed, 4000);
  for (const double x : {0.0, 0.7}) {
    const Matrix both(2, 2, {x, -1.0, x, 1.0}), first(1, 1, {x});
    const auto logs = fitted.values(Matrix(1, 1, {0.3}), both);
    // What both share is the density of the first number.
    const auto one = fitted.values(Matrix(1, 1, {0.9}), both);
    EXPECT_TRUE(std::isfinite(one[0]));
    EXPECT_LT(std::abs(std::exp(logs[0] - logs[1]) - (x == 0.0 ? 0.62 / 0.38 : 0.7 / 0.3)), 0.7);
  }
}

TEST(ConditionalDensity, DerivativesAgreeWithDifferences) {
  for (const auto* problem : {&correlated, &counts, &mixed}) {
    const Fitted fitted(*problem, 2000, 3);
    const Rows rows(*problem, 60, 5);
    const auto u = Fitted::side(fitted.target, rows.u);
    std::vector<double> weights(60);
    for (std::size_t i = 0; i < 60; ++i) weights[i] = 0.5 + static_cast<double>(i % 3);
    const auto sum_at = [&](double v, std::span<double> slope) {
      return fitted.density.sum(Fitted::side(fitted.given, Matrix(1, 1, {v})), u, weights, slope,
                                {});
    };
    std::vector<double> slope(1);
    const double value = sum_at(0.3, slope), step = 1e-3;
    // Per unit of what the network sees.
    const double per_v = fitted.given[0].slope() * FeatureScale::per_place;
    const double difference = (sum_at(0.3 + step, {}) - sum_at(0.3 - step, {})) / (2.0 * step);
    EXPECT_NEAR(slope[0] * per_v, difference, 0.01 * std::abs(difference) + 0.05);
    const auto logs = fitted.values(Matrix(1, 1, {0.3}), rows.u);
    double expected = 0.0;
    for (std::size_t i = 0; i < 60; ++i) expected += weights[i] * logs[i];
    EXPECT_NEAR(value, expected, 1e-4 * std::abs(expected) + 1e-3);
  }
}

/// Of a parameter in (0, 1), given a feature: its density and its draws.
TEST(ConditionalDensity, OfAParameterStaysInItsRange) {
  const std::size_t n = 20000;
  RandomStream random(7, "parameter");
  Matrix theta(n, 1), x(n, 1);
  for (std::size_t i = 0; i < n; ++i) {
    theta(i, 0) = random.uniform();
    x(i, 0) = theta(i, 0) + 0.2 * random.normal();
  }
  const std::vector<FeatureScale> given{FeatureScale(x.column(0))},
      target{FeatureScale::of_range(0.0, 1.0)};
  std::vector<std::uint32_t> all(n);
  std::iota(all.begin(), all.end(), 0u);
  MixtureFactor::Options options;
  options.hidden = {32};
  options.epochs = 15;
  options.batch_size = 128;
  const std::span<const std::uint32_t> order(all);
  const ConditionalDensity density(ConditionalDensity::side(given, x),
                                   ConditionalDensity::side(target, theta), given, target, {},
                                   order.subspan(2000), order.subspan(0, 2000), options, nullptr);
  Matrix grid(1001, 1);
  for (std::size_t g = 0; g <= 1000; ++g) grid(g, 0) = static_cast<double>(g) / 1000.0;
  for (const double at : {-0.2, 0.1, 0.5}) {
    const auto v = ConditionalDensity::side(given, Matrix(1, 1, {at}));
    std::vector<double> logs(1001);
    density.values(v, ConditionalDensity::side(target, grid), logs.data());
    double whole = 0.0, mean = 0.0, exact = 0.0, exact_mean = 0.0;
    for (std::size_t g = 0; g <= 1000; ++g) {
      const double part = (g == 0 || g == 1000 ? 0.5 : 1.0) / 1000.0, t = grid(g, 0);
      whole += part * std::exp(logs[g]);
      mean += part * t * std::exp(logs[g]);
      exact += part * std::exp(normal_log(at, t, 0.2));
      exact_mean += part * t * std::exp(normal_log(at, t, 0.2));
    }
    EXPECT_NEAR(whole, 1.0, 1e-3);
    EXPECT_NEAR(mean, exact_mean / exact, 0.03);
    RandomStream draws(8, "draws");
    const Matrix drawn = density.draw(v, 4000, draws);
    double sum = 0.0;
    for (std::size_t i = 0; i < 4000; ++i) {
      ASSERT_GE(drawn(i, 0), 0.0);
      ASSERT_LE(drawn(i, 0), 1.0);
      sum += drawn(i, 0);
    }
    EXPECT_NEAR(sum / 4000.0, mean, 5.0 * 0.2 / std::sqrt(4000.0));
    // By u, per unit of the range.
    std::vector<double> slope(1);
    const std::vector<double> weight(1, 1.0);
    const auto value = [&](double t) {
      return density.sum(v, ConditionalDensity::side(target, Matrix(1, 1, {t})), weight, {}, slope);
    };
    const double difference = (value(0.401) - value(0.399)) / 0.002;
    value(0.4);
    EXPECT_NEAR(slope[0], difference, 0.02 * std::abs(difference) + 0.05);
  }
}

TEST(ConditionalDensity, SavesAndLoads) {
  const Fitted fitted(mixed, 2000, 3);
  Archive archive;
  fitted.density.save(archive);
  const auto& one_given = fitted.given;
  const std::vector<FeatureScale> two_given(2, fitted.given[0]);
  const auto loaded = ConditionalDensity::load(archive, one_given, fitted.target);
  const Rows rows(mixed, 50, 9);
  const auto v = Fitted::side(fitted.given, rows.v), u = Fitted::side(fitted.target, rows.u);
  std::vector<double> one(50), other(50);
  fitted.density.values(v, u, one.data());
  loaded.values(v, u, other.data());
  EXPECT_EQ(one, other);
  EXPECT_EQ(loaded.held_out(), fitted.density.held_out());
  EXPECT_THROW(ConditionalDensity::load(archive, two_given, fitted.target), FileError);
  EXPECT_THROW(ConditionalDensity::load(archive, one_given, {fitted.target[0]}), FileError);
  Archive broken = archive;
  broken.child("factor0").set("last", std::vector<float>{1.0f});
  EXPECT_THROW(ConditionalDensity::load(broken, one_given, fitted.target), FileError);
  broken = archive;
  broken.child("factor0").set("components", std::int64_t{100000});
  EXPECT_THROW(ConditionalDensity::load(broken, one_given, fitted.target), FileError);
}

}  // namespace
}  // namespace neyman::across
