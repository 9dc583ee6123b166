#include "neyman/calibration/smooth_across.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"

namespace neyman {
namespace {

// x ~ N(θ, 1) against N(0, 1): log r = θ x − θ²/2, so that what a score should be is known.
const ParameterSpace space({{"theta", -2, 2, {}}});

using Score = std::function<double(double log_r, double theta)>;

struct Table {
  std::vector<double> logits, weights;
  Matrix points;
  std::vector<std::uint8_t> denominator;
  std::vector<std::uint32_t> events;
  SmoothAcross::Rows rows() const { return {logits, points, denominator, weights, events}; }
};

/// n events a side; each denominator event is scored at `companions` θ.
Table simulate(std::size_t n, const Score& score, std::uint64_t seed, std::size_t companions = 4) {
  RandomStream random(seed, "test");
  Table out;
  std::vector<double> points;
  const auto add = [&](double x, double theta, std::uint8_t side, double weight,
                       std::uint32_t event) {
    out.logits.push_back(score(theta * x - 0.5 * theta * theta, theta));
    points.push_back(theta);
    out.denominator.push_back(side);
    out.weights.push_back(weight);
    out.events.push_back(event);
  };
  const auto draw = [&] { return -2.0 + 4.0 * random.uniform(); };
  for (std::size_t i = 0; i < n; ++i) {
    const double theta = draw();
    add(theta + random.normal(), theta, 0, 1.0, static_cast<std::uint32_t>(2 * i));
    const double x = random.normal();
    for (std::size_t k = 0; k < companions; ++k)
      add(x, draw(), 1, 1.0 / static_cast<double>(companions),
          static_cast<std::uint32_t>(2 * i + 1));
  }
  out.points = Matrix(points.size(), 1, points);
  return out;
}

double right(double log_r, double) { return -log_r; }
/// Offset and slope that vary with θ.
double skewed(double log_r, double theta) {
  return (-log_r - 0.3 + 0.2 * theta) / (1.5 + 0.2 * theta);
}
/// Also bent: steep in the middle, flat outside.
double bent_across(double log_r, double theta) {
  return 2.0 * std::asinh(0.5 * (-log_r + 0.1 * theta * theta));
}

/// RMS of the calibrated log r about the truth over events at several θ.
double error(const SmoothAcross& calibration, const Score& score) {
  double sum = 0.0;
  int count = 0;
  for (double theta = -1.9; theta < 2.0; theta += 0.4)
    for (double x = theta - 2.0; x <= theta + 2.0; x += 0.25, ++count) {
      const double log_r = theta * x - 0.5 * theta * theta;
      const double found =
          calibration.log_ratios(Logits{score(log_r, theta)}, std::vector<double>{theta})[0];
      sum += (found - log_r) * (found - log_r);
    }
  return std::sqrt(sum / count);
}

TEST(SmoothAcross, LeavesAScoreAloneThatIsRight) {
  // What noise of n events could do to one coefficient is 2/√n = 0.014: the evidence keeps all but
  // few of them at zero.
  for (const std::uint64_t seed : {1, 2, 3}) {
    SmoothAcross calibration(space);
    calibration.fit(simulate(20000, right, seed).rows());
    EXPECT_LT(error(calibration, right), 0.03) << seed;
    EXPECT_LT(calibration.complexity(), 6.0);
    EXPECT_GT(calibration.coefficients(), 12U);
    EXPECT_EQ(calibration.shrinkage(), 1.0);
  }
}

TEST(SmoothAcross, CorrectsOffsetSlopeAndBendAcrossTheta) {
  for (const auto& [score, before, after] :
       {std::tuple<Score, double, double>{skewed, 0.5, 0.03}, {bent_across, 0.4, 0.15}}) {
    SmoothAcross calibration(space);
    calibration.fit(simulate(40000, score, 4).rows());
    SmoothAcross untouched(space, {.knots = 0});
    untouched.fit(simulate(40000, right, 4).rows());
    EXPECT_GT(error(untouched, score), before);
    EXPECT_LT(error(calibration, score), after);
  }
}

TEST(SmoothAcross, ErrorsAreThoseOfRepetition) {
  // Standard deviations over 40 repetitions against the mean of what is stated; the former are
  // known to 11 %, and the posterior may be wider by what the prior adds. The last is the gradient
  // of a sum over events whose scores move with θ.
  const std::vector<double> point{1.2}, weights{1.0, 2.0, 0.5};
  const Logits logits{-1.0, 0.0, 1.0};
  const Matrix moves(3, 1, {0.7, -0.3, 0.2});
  double sum[4] = {}, squares[4] = {}, stated[4] = {};
  constexpr int repetitions = 40;
  for (int r = 0; r < repetitions; ++r) {
    SmoothAcross calibration(space);
    calibration.fit(simulate(3000, skewed, 100 + static_cast<std::uint64_t>(r)).rows());
    const auto d = calibration.derivatives(logits, point);
    const auto errors = calibration.errors(logits, point);
    double found[4] = {d.value[0], d.value[1], d.value[2], 0.0};
    for (std::size_t i = 0; i < 3; ++i) {
      found[3] += weights[i] * (d.by_logit[i] * moves(i, 0) + d.by_point(i, 0));
      stated[i] += errors[i] / repetitions;
    }
    stated[3] += std::sqrt(calibration.gradient_covariance(logits, point, moves, weights)(0, 0)) /
                 repetitions;
    for (std::size_t i = 0; i < 4; ++i) {
      sum[i] += found[i];
      squares[i] += found[i] * found[i];
    }
  }
  for (std::size_t i = 0; i < 4; ++i) {
    const double mean = sum[i] / repetitions;
    const double spread =
        std::sqrt((squares[i] / repetitions - mean * mean) * repetitions / (repetitions - 1));
    EXPECT_GT(stated[i], 0.6 * spread) << i;
    EXPECT_LT(stated[i], 1.8 * spread) << i;
  }
}

TEST(SmoothAcross, DerivativesAreThoseOfItsValues) {
  SmoothAcross calibration(space);
  calibration.fit(simulate(10000, bent_across, 5).rows());
  const double h = 1e-5;
  for (const double theta : {-1.5, 0.3, 1.9}) {
    const Logits logits{-30.0, -2.0, -0.1, 1.0, 3.0};
    const auto found = calibration.derivatives(logits, std::vector<double>{theta});
    const auto above = calibration.log_ratios(logits, std::vector<double>{theta + h});
    const auto below = calibration.log_ratios(logits, std::vector<double>{theta - h});
    EXPECT_EQ(found.value, calibration.log_ratios(logits, std::vector<double>{theta}));
    for (std::size_t i = 0; i < logits.size(); ++i) {
      EXPECT_NEAR(found.by_point(i, 0), (above[i] - below[i]) / (2 * h), 1e-6);
      const auto sides =
          calibration.log_ratios(Logits{logits[i] - h, logits[i] + h}, std::vector<double>{theta});
      EXPECT_NEAR(found.by_logit[i], (sides[1] - sides[0]) / (2 * h), 1e-6);
    }
    EXPECT_EQ(found.by_logit[0], 0.0);  // far beyond the scores log r stays
  }
}

TEST(SmoothAcross, FallsWithTheLogitWhateverTheScores) {
  // A score that is upside down for negative θ.
  const Score foolish = [](double log_r, double theta) { return theta < 0.0 ? log_r : -log_r; };
  SmoothAcross calibration(space);
  calibration.fit(simulate(5000, foolish, 6).rows());
  EXPECT_LT(calibration.shrinkage(), 1.0);
  for (double theta = -2.0; theta <= 2.0; theta += 0.5) {
    Logits logits(101);
    for (std::size_t i = 0; i < 101; ++i) logits[i] = -6.0 + 0.12 * static_cast<double>(i);
    const auto found = calibration.log_ratios(logits, std::vector<double>{theta});
    for (std::size_t i = 1; i < 101; ++i) EXPECT_LE(found[i], found[i - 1]);
  }
}

TEST(SmoothAcross, WorksInTwoDimensions) {
  const ParameterSpace two({{"a", -1, 1, {}}, {"b", -1, 1, {}}});
  RandomStream random(7, "test");
  std::vector<double> logits, points;
  std::vector<std::uint8_t> denominator;
  const auto truth = [](double x, double y, double a, double b) {
    return a * x + b * y - 0.5 * (a * a + b * b);
  };
  const auto score = [&](double x, double y, double a, double b) {
    return (-truth(x, y, a, b) + 0.3 * a * b - 0.2) / (1.3 + 0.3 * b);
  };
  for (int i = 0; i < 60000; ++i) {
    const double a = 2.0 * random.uniform() - 1.0, b = 2.0 * random.uniform() - 1.0;
    const bool bottom = i % 2 == 1;
    const double x = random.normal() + (bottom ? 0.0 : a), y = random.normal() + (bottom ? 0.0 : b);
    logits.push_back(score(x, y, a, b));
    points.insert(points.end(), {a, b});
    denominator.push_back(bottom ? 1 : 0);
  }
  SmoothAcross calibration(two);
  const Matrix theta(logits.size(), 2, points);
  calibration.fit({logits, theta, denominator});
  double squares = 0.0, before = 0.0;
  for (const double a : {-0.8, 0.0, 0.7})
    for (const double b : {-0.9, 0.1, 0.8})
      for (const double x : {-1.0, 0.5}) {
        const double z = score(x, 0.3, a, b);
        const double found = calibration.log_ratios(Logits{z}, std::vector<double>{a, b})[0];
        squares += std::pow(found - truth(x, 0.3, a, b), 2) / 18;
        before += std::pow(-z - truth(x, 0.3, a, b), 2) / 18;
      }
  EXPECT_GT(std::sqrt(before), 0.15);
  EXPECT_LT(std::sqrt(squares), 0.04);
}

TEST(SmoothAcross, MakesTheRowsLikelierWithManyParametersAndFewEventsToo) {
  // θ ~ N(0, 0.1) and x ~ N(θ, 0.1) in ten dimensions, far inside the ranges, with the marginal as
  // denominator and a score with twice the slope and noise: most rows are saturated, so that a
  // Newton step from zero leads far away.
  constexpr std::size_t dimensions = 10, companions = 4;
  const double sigma = std::sqrt(0.1);
  std::vector<Parameter> parameters;
  for (std::size_t d = 0; d < dimensions; ++d)
    parameters.push_back({"t" + std::to_string(d), -6.0 * sigma, 6.0 * sigma, {}});
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    RandomStream random(seed, "test");
    Table table;
    std::vector<double> points;
    const auto add = [&](const std::vector<double>& x, const std::vector<double>& theta,
                         std::uint8_t side, std::uint32_t event) {
      double log_r = 0.0;
      for (std::size_t d = 0; d < dimensions; ++d)
        log_r += 0.5 * (std::log(2.0) + x[d] * x[d] / 0.2 - std::pow(x[d] - theta[d], 2) / 0.1);
      table.logits.push_back(-2.0 * log_r + 3.0 * random.normal());
      points.insert(points.end(), theta.begin(), theta.end());
      table.denominator.push_back(side);
      table.weights.push_back(side == 0 ? 1.0 : 1.0 / companions);
      table.events.push_back(event);
    };
    std::vector<std::vector<double>> x(2500, std::vector<double>(dimensions)), theta = x;
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t d = 0; d < dimensions; ++d) {
        theta[i][d] = sigma * random.normal();
        x[i][d] = theta[i][d] + sigma * random.normal();
      }
    for (std::size_t i = 0; i < x.size(); ++i) {
      add(x[i], theta[i], 0, static_cast<std::uint32_t>(2 * i));
      for (std::size_t k = 1; k <= companions; ++k)
        add(x[i], theta[(i + 7 * k) % x.size()], 1, static_cast<std::uint32_t>(2 * i + 1));
    }
    table.points = Matrix(table.logits.size(), dimensions, points);
    SmoothAcross calibration{ParameterSpace(parameters)};
    calibration.fit(table.rows());
    // The rows' log-likelihood, with both sides of equal weight.
    const auto likelihood = [&](const auto& log_ratio) {
      double sum = 0.0;
      for (std::size_t i = 0; i < table.logits.size(); ++i) {
        const double odds = table.denominator[i] == 0 ? -log_ratio(i) : log_ratio(i);
        sum -= table.weights[i] * (std::max(odds, 0.0) + std::log1p(std::exp(-std::abs(odds))));
      }
      return sum;
    };
    const double before = likelihood([&](std::size_t i) { return -table.logits[i]; });
    const double after = likelihood([&](std::size_t i) {
      return calibration.log_ratios(Logits{table.logits[i]}, table.points.row(i))[0];
    });
    // Half the slope everywhere makes it 0.65 to 0.69 of what it was.
    EXPECT_GT(after, 0.72 * before) << seed;
  }
}

TEST(SmoothAcross, UsesPartsOfLargeSamplesWithoutLoss) {
  // Above 200 000 rows the curvature is that of a part; all rows count for the estimate.
  SmoothAcross small(space), large(space);
  const auto table = simulate(60000, skewed, 8, 4);  // 300 000 rows
  set_threads(1);
  large.fit(table.rows());
  set_threads(3);
  SmoothAcross again(space);
  again.fit(table.rows());
  set_threads(0);
  EXPECT_LT(error(large, skewed), 0.02);
  Archive one, other;
  large.save(one);
  again.save(other);
  EXPECT_EQ(one, other);
}

TEST(SmoothAcross, SurvivesPoorScores) {
  const std::vector<double> point{0.5};
  for (const auto& score : {Score([](double, double) { return 0.7; }),               // constant
                            Score([](double r, double) { return r > 0 ? -1 : 1; }),  // two values
                            Score([](double r, double) { return -1e5 * r; }),
                            Score([](double r, double) { return -1e-5 * r; })}) {
    SmoothAcross calibration(space);
    calibration.fit(simulate(500, score, 9).rows());
    for (const double z : {-1e300, -5.0, 0.0, 0.7, 5.0, 1e300})
      EXPECT_TRUE(std::isfinite(calibration.log_ratios(Logits{z}, point)[0]));
  }
  SmoothAcross tiny(space);
  tiny.fit(simulate(2, right, 10).rows());
  EXPECT_TRUE(std::isfinite(tiny.log_ratios(Logits{1.0}, point)[0]));
  EXPECT_EQ(tiny.count_outside(Logits{-1e3, 1e3}, point), 2U);
  SmoothAcross separated(space);  // a score that knows the side
  const std::vector<double> logits{-3, -2, -1, 1, 2, 3};
  const std::vector<std::uint8_t> sides{0, 0, 0, 1, 1, 1};
  separated.fit({logits, Matrix(6, 1, {0, 1, -1, 0, 1, -1}), sides});
  EXPECT_TRUE(std::isfinite(separated.log_ratios(Logits{-3.0}, point)[0]));
}

TEST(SmoothAcross, SavesAndLoadsExactly) {
  SmoothAcross calibration(space);
  calibration.fit(simulate(3000, bent_across, 11).rows());
  Archive archive;
  calibration.save(archive);
  SmoothAcross loaded;
  loaded.load(archive);
  const Logits logits{-3.0, 0.2, 4.0};
  const std::vector<double> point{-1.1};
  EXPECT_EQ(loaded.log_ratios(logits, point), calibration.log_ratios(logits, point));
  EXPECT_EQ(loaded.errors(logits, point), calibration.errors(logits, point));
  EXPECT_EQ(loaded.complexity(), calibration.complexity());
  archive.set("coefficients", std::vector<double>{1.0});
  EXPECT_THROW(SmoothAcross().load(archive), FileError);
}

std::string message(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& failure) {
    return failure.what();
  }
  return {};
}

TEST(SmoothAcross, RefusesWhatDoesNotFit) {
  const std::vector<double> point{0.5};
  EXPECT_EQ(message([&] { SmoothAcross(space).log_ratios(Logits{1.0}, point); }),
            "SmoothAcross::log_ratios: not fitted yet");
  auto table = simulate(50, right, 12);
  SmoothAcross calibration(space);
  calibration.fit(table.rows());
  EXPECT_NE(message([&] {
              calibration.log_ratios(Logits{1.0}, std::vector<double>{1, 2});
            }).find("point has 2 values, but must have 1"),
            std::string::npos);
  EXPECT_NE(message([&] { calibration.log_ratios(Logits{NAN}, point); }).find("finite"),
            std::string::npos);
  table.logits[3] = NAN;
  EXPECT_NE(message([&] { calibration.fit(table.rows()); }).find("logits[3] is nan"),
            std::string::npos);
  table.logits[3] = 0.0;
  table.weights[2] = -1.0;
  EXPECT_NE(message([&] { calibration.fit(table.rows()); }).find("weights[2]"), std::string::npos);
  table.weights[2] = 1.0;
  table.denominator.assign(table.denominator.size(), 1);
  EXPECT_NE(message([&] { calibration.fit(table.rows()); }).find("numerator has no weight"),
            std::string::npos);
  EXPECT_NE(message([] { SmoothAcross(space, {.knots = 2}); }).find("0 or at least 3"),
            std::string::npos);
  EXPECT_NE(message([] { SmoothAcross(space, {.slope_degree = 9}); }).find("slope_degree is 9"),
            std::string::npos);
}

}  // namespace
}  // namespace neyman
