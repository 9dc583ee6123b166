// Morphing of exact densities: no sample, so that errors are those of the interpolation alone.
#include "calibration/morphing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

namespace neyman::calibration {
namespace {

struct Normal {
  double mean, width;
  double log_density(double z) const {
    const double y = (z - mean) / width;
    return -0.5 * y * y - std::log(width) - 0.5 * std::log(2.0 * std::numbers::pi);
  }
};

using LogDensity = std::function<double(double)>;

ScoreDensity tabulated(const LogDensity& f, double centre, double scale) {
  const ScoreGrid grid =
      ScoreGrid::over(centre - 9.0 * scale, centre + 9.0 * scale, centre, scale, 0.0, 1024);
  std::vector<double> values;
  for (std::size_t i = 0; i < grid.size(); ++i) values.push_back(f(grid.logit(i)));
  return {grid, values};
}

ScoreDensity tabulated(const Normal& normal) {
  return tabulated([&](double z) { return normal.log_density(z); }, normal.mean, normal.width);
}

// A family of normal densities for both sides, in any number of parameters.
struct Family {
  std::function<Normal(std::span<const double>)> numerator, denominator;
  double log_ratio(double z, std::span<const double> point) const {
    return numerator(point).log_density(z) - denominator(point).log_density(z);
  }
};

MorphNodes nodes_of(const Family& family, const Matrix& places) {
  MorphNodes nodes;
  nodes.ranges = Matrix(places.rows(), 2);
  double low = 1e9, high = -1e9;
  for (std::size_t k = 0; k < places.rows(); ++k) {
    const Normal a = family.numerator(places.row(k)), b = family.denominator(places.row(k));
    nodes.numerator.push_back(tabulated(a));
    nodes.denominator.push_back(tabulated(b));
    nodes.numerator_moments.push_back({a.mean, a.width});
    nodes.denominator_moments.push_back({b.mean, b.width});
    nodes.ranges(k, 0) = std::min(a.mean - 5.0 * a.width, b.mean - 5.0 * b.width);
    nodes.ranges(k, 1) = std::max(a.mean + 5.0 * a.width, b.mean + 5.0 * b.width);
    low = std::min(low, nodes.ranges(k, 0));
    high = std::max(high, nodes.ranges(k, 1));
  }
  nodes.grid = ScoreGrid::over(low, high, 0.0, 1.0, 0.1, 512);
  nodes.log_ratios = [family, places](std::size_t k, std::vector<double> logits) {
    for (double& z : logits) z = family.log_ratio(z, places.row(k));
    return logits;
  };
  return nodes;
}

std::unique_ptr<Morph> make(const std::string& method, const MorphNodes& nodes) {
  if (method == "vertical") return make_vertical_morph(nodes);
  return method == "horizontal" ? make_horizontal_morph(nodes) : make_moment_morph(nodes);
}

const std::vector<std::string> methods = {"vertical", "horizontal", "moment"};

// The largest error of log r within three widths of both sides.
double error_at(const Morph& morph, const NodeLayout& layout, const Family& family,
                std::span<const double> point) {
  const auto ratio = morph.at(layout.at(point));
  const Normal a = family.numerator(point), b = family.denominator(point);
  const double low = std::max(a.mean - 3.0 * a.width, b.mean - 3.0 * b.width);
  const double high = std::min(a.mean + 3.0 * a.width, b.mean + 3.0 * b.width);
  double worst = 0.0;
  for (int i = 0; i <= 60; ++i) {
    const double z = low + (high - low) * i / 60.0;
    worst = std::max(worst, std::abs(ratio->log_ratio(z) - family.log_ratio(z, point)));
  }
  return worst;
}

Matrix line(std::size_t count, double low, double high) {
  Matrix places(count, 1);
  for (std::size_t k = 0; k < count; ++k) {
    places(k, 0) = low + (high - low) * static_cast<double>(k) / static_cast<double>(count - 1);
  }
  return places;
}

Matrix square(std::size_t count, double low, double high) {
  const Matrix side = line(count, low, high);
  Matrix places(count * count, 2);
  for (std::size_t k = 0; k < places.rows(); ++k) {
    places(k, 0) = side(k / count, 0);
    places(k, 1) = side(k % count, 0);
  }
  return places;
}

const Family linear_family = {[](std::span<const double> x) {
                                return Normal{-1.0 - 2.0 * x[0], 1.0 + 0.5 * x[0]};
                              },
                              [](std::span<const double> x) {
                                return Normal{1.0 + x[0], 1.5 - 0.3 * x[0]};
                              }};

TEST(ScoreDensity, IsNormalisedAndHasTheQuantiles) {
  const ScoreDensity density = tabulated(Normal{2.0, 0.5});
  // The given density is normalised but for the rule that adds it up.
  EXPECT_NEAR(density.log_norm(), 0.0, 1e-5);
  const ScoreDensity scaled(ScoreGrid::over(-5.0, 5.0, 0.0, 1.0, 0.0, 1024),
                            std::vector<double>(1024, 700.0));
  EXPECT_LT(scaled.log_density(0.0), 0.0);
  std::vector<double> v, z(13), slopes(13);
  for (int i = -6; i <= 6; ++i) v.push_back(i);
  density.quantiles(v, z, slopes);
  for (std::size_t j = 0; j < v.size(); ++j) {
    EXPECT_NEAR(z[j], 2.0 + 0.5 * v[j], 5e-4) << v[j];
    EXPECT_NEAR(slopes[j], 0.5, 2e-3) << v[j];
  }
}

TEST(ScoreDensity, FallsBeyondItsGrid) {
  const ScoreDensity density = tabulated(Normal{0.0, 1.0});
  const double edge = density.log_density(9.0), far = density.log_density(900.0);
  EXPECT_NEAR(edge - far, 2.0 * (std::asinh(900.0) - std::asinh(9.0)), 1e-9);
  EXPECT_TRUE(std::isfinite(density.log_density(1e6)));
}

// Location and width linear in θ: moved exactly by horizontal and moment morphing, while
// the sum of two densities has neither the location's nor the width's shape.
TEST(Morphing, LocationAndWidthAreMovedExactly) {
  const Matrix places = line(2, 0.0, 1.0);
  const MorphNodes nodes = nodes_of(linear_family, places);
  const NodeLayout layout(places, false);
  for (const double theta : {0.0, 0.2, 0.5, 0.9, 1.0}) {
    const std::vector<double> point{theta};
    EXPECT_LT(error_at(*make("horizontal", nodes), layout, linear_family, point), 2e-3) << theta;
    EXPECT_LT(error_at(*make("moment", nodes), layout, linear_family, point), 2e-3) << theta;
    const double vertical = error_at(*make("vertical", nodes), layout, linear_family, point);
    if (theta == 0.0 || theta == 1.0) {
      EXPECT_LT(vertical, 2e-3);
    } else {
      EXPECT_GT(vertical, 0.2);
    }
  }
}

TEST(Morphing, VerticalIsTheSum) {
  const Matrix places = line(2, 0.0, 1.0);
  const auto morph = make("vertical", nodes_of(linear_family, places));
  const auto ratio = morph->at(NodeLayout(places, false).at(std::vector<double>{0.3}));
  const std::vector<double> zero{0.0}, one{1.0};
  for (const double z : {-4.0, -1.0, 0.0, 2.5}) {
    const auto mix = [&](const auto& side) {
      return 0.7 * std::exp(side(zero).log_density(z)) + 0.3 * std::exp(side(one).log_density(z));
    };
    const double exact =
        std::log(mix(linear_family.numerator)) - std::log(mix(linear_family.denominator));
    EXPECT_NEAR(ratio->log_ratio(z), exact, 1e-4);
    EXPECT_NEAR(ratio->log_densities(std::vector<double>{z}, true)[0],
                std::log(mix(linear_family.numerator)), 1e-4);
  }
}

// A score whose ratio is the same function of z at every node, as that of a classifier
// that is right: N(∓δ²/2, δ) have log r = −z whatever δ. Sums keep it, with weights of either
// order.
TEST(Morphing, VerticalKeepsARatioThatAllNodesShare) {
  const Family right = {[](std::span<const double> x) {
                          return Normal{-0.5 * x[0] * x[0], x[0]};
                        },
                        [](std::span<const double> x) {
                          return Normal{0.5 * x[0] * x[0], x[0]};
                        }};
  const Matrix places = line(5, 0.4, 2.0);
  const auto morph = make("vertical", nodes_of(right, places));
  for (const bool cubic : {false, true}) {
    const NodeLayout layout(places, cubic);
    for (const double theta : {0.5, 0.97, 1.7}) {
      EXPECT_LT(error_at(*morph, layout, right, std::vector<double>{theta}), 1e-3);
    }
  }
  const auto horizontal = make("horizontal", nodes_of(right, places));
  EXPECT_GT(error_at(*horizontal, NodeLayout(places, false), right, std::vector<double>{0.6}),
            0.01);
}

// Integral morphing as it is defined: invert both cumulative functions by bisection at each
// probability, average the scores, and take the density as the slope of probability.
struct ReadReference {
  LogDensity first, second;
  double share;  // of the second

  static double cumulative(const LogDensity& f, double z) {
    const int steps = 4000;
    const double low = -25.0, h = (z - low) / steps;
    double sum = 0.0;
    for (int i = 0; i < steps; ++i) sum += h * std::exp(f(low + (i + 0.5) * h));
    return sum;
  }
  static double inverse(const LogDensity& f, double probability) {
    double low = -25.0, high = 25.0;
    for (int i = 0; i < 45; ++i) {
      const double middle = 0.5 * (low + high);
      (cumulative(f, middle) < probability ? low : high) = middle;
    }
    return 0.5 * (low + high);
  }
  // The score at a probability and the density there.
  std::pair<double, double> at(double probability) const {
    const double z0 = inverse(first, probability), z1 = inverse(second, probability);
    const double density =
        1.0 / ((1.0 - share) * std::exp(-first(z0)) + share * std::exp(-second(z1)));
    return {(1.0 - share) * z0 + share * z1, density};
  }
};

TEST(Morphing, HorizontalEqualsTheDefinition) {
  // A skew density with two bumps, and a normal one.
  const LogDensity bumps = [](double z) {
    return std::log(0.7 * std::exp(Normal{-1.0, 0.6}.log_density(z)) +
                    0.3 * std::exp(Normal{1.5, 0.9}.log_density(z)));
  };
  const LogDensity plain = [](double z) { return Normal{3.0, 1.2}.log_density(z); };
  MorphNodes nodes;
  nodes.numerator = {tabulated(bumps, 0.0, 1.0), tabulated(plain, 3.0, 1.2)};
  nodes.denominator = nodes.numerator;
  nodes.ranges = Matrix(2, 2, {-4.0, 5.0, -2.0, 8.0});
  nodes.grid = ScoreGrid::over(-5.0, 9.0, 0.0, 1.0, 0.1, 512);
  nodes.log_ratios = [](std::size_t, const std::vector<double>& z) {
    return std::vector<double>(z.size(), 0.0);
  };
  const auto morph = make("horizontal", nodes);
  const Matrix places = line(2, 0.0, 1.0);
  const ReadReference reference{bumps, plain, 0.35};
  const auto ratio = morph->at(NodeLayout(places, false).at(std::vector<double>{0.35}));
  for (const double probability : {0.001, 0.05, 0.3, 0.6, 0.72, 0.9, 0.995}) {
    const auto [z, density] = reference.at(probability);
    EXPECT_NEAR(ratio->log_densities(std::vector<double>{z}, true)[0], std::log(density), 3e-3)
        << probability;
  }
}

// Location and width that are neither linear nor quadratic.
Normal bent_normal(double sign, double x) { return {sign * std::sin(x), std::exp(0.3 * sign * x)}; }

TEST(Morphing, ErrorFallsWithTheSpacingInOneDimension) {
  const Family family = {[](std::span<const double> x) { return bent_normal(1.0, x[0]); },
                         [](std::span<const double> x) { return bent_normal(-1.0, x[0]); }};
  for (const auto& method : {"horizontal", "moment"}) {
    for (const bool cubic : {false, true}) {
      std::vector<double> errors;
      for (const std::size_t count : {4u, 7u, 13u}) {
        const Matrix places = line(count, 0.0, 3.0);
        const auto morph = make(method, nodes_of(family, places));
        const NodeLayout layout(places, cubic);
        double worst = 0.0;
        for (int i = 0; i <= 24; ++i) {
          worst = std::max(
              worst, error_at(*morph, layout, family, std::vector<double>{0.3 + 2.4 * i / 24.0}));
        }
        errors.push_back(worst);
      }
      // Halving the spacing divides the error by 4 (linear) and 8 (cubic), or more.
      const double least = cubic ? 5.0 : 3.0;
      EXPECT_GT(errors[0] / errors[1], least) << method << cubic;
      EXPECT_GT(errors[1] / errors[2], least) << method << cubic;
      EXPECT_LT(errors[2], cubic ? 0.02 : 0.12) << method << cubic;
    }
  }
}

TEST(Morphing, ErrorFallsWithTheSpacingInTwoDimensions) {
  const Family family = {[](std::span<const double> x) {
                           return Normal{std::sin(x[0]) * x[1], std::exp(0.3 * x[1])};
                         },
                         [](std::span<const double> x) {
                           return Normal{-x[0] * x[0], std::exp(-0.2 * x[0] * x[1])};
                         }};
  for (const auto& method : {"horizontal", "moment"}) {
    std::vector<double> errors;
    for (const std::size_t count : {4u, 7u}) {
      const Matrix places = square(count, 0.0, 1.5);
      const auto morph = make(method, nodes_of(family, places));
      const NodeLayout layout(places, true);
      double worst = 0.0;
      for (int i = 0; i < 6; ++i) {
        for (int j = 0; j < 6; ++j) {
          const std::vector<double> point{0.1 + 0.25 * i, 0.12 + 0.25 * j};
          worst = std::max(worst, error_at(*morph, layout, family, point));
        }
      }
      errors.push_back(worst);
    }
    EXPECT_GT(errors[0] / errors[1], 4.0) << method;
    EXPECT_LT(errors[1], 0.02) << method;
  }
}

TEST(Morphing, IsNormalisedEverywhere) {
  const Matrix places = square(3, 0.0, 1.5);
  const Family family = {[](std::span<const double> x) {
                           return Normal{2.0 * x[0] * x[1], 1.0 + x[0] * x[0]};
                         },
                         [](std::span<const double> x) {
                           return Normal{-x[0], 0.5 + 0.5 * x[1]};
                         }};
  const MorphNodes nodes = nodes_of(family, places);
  std::vector<double> z;
  const double h = 0.01;
  for (double at = -30.0; at < 40.0; at += h) z.push_back(at);
  for (const auto& method : methods) {
    const auto morph = make(method, nodes);
    // Templates that cubic weights make small are raised, so only linear ones conserve exactly.
    const NodeLayout layout(places, method != "moment");
    for (const auto& point : {std::vector<double>{0.2, 1.3}, {0.75, 0.4}, {1.4, 1.4}, {0.0, 0.0}}) {
      const auto ratio = morph->at(layout.at(point));
      for (const bool numerator : {true, false}) {
        double sum = 0.0;
        for (const double value : ratio->log_densities(z, numerator)) sum += h * std::exp(value);
        EXPECT_NEAR(sum, 1.0, 2e-3) << method << " at " << point[0] << ", " << point[1];
      }
    }
  }
}

TEST(Morphing, DerivativesAreThose) {
  const Matrix places = square(4, 0.0, 1.5);
  const Family family = {[](std::span<const double> x) {
                           return Normal{x[0] * x[1] - 0.5, 1.0 + 0.2 * x[0] * x[0]};
                         },
                         [](std::span<const double> x) {
                           return Normal{-x[0], 1.0 + 0.3 * std::sin(x[1])};
                         }};
  const MorphNodes nodes = nodes_of(family, places);
  for (const auto& method : methods) {
    const auto morph = make(method, nodes);
    const NodeLayout layout(places, true);
    std::vector<double> point{0.63, 0.81}, by_point(2);
    const auto ratio = morph->at(layout.at(point, true));
    for (const double z : {-3.1, -1.23, 0.017, 0.8, 2.4}) {
      double by_logit = 0.0;
      EXPECT_EQ(ratio->derivatives(z, by_logit, by_point), ratio->log_ratio(z));
      const double h = 1e-6;
      EXPECT_NEAR(by_logit, (ratio->log_ratio(z + h) - ratio->log_ratio(z - h)) / (2.0 * h), 1e-5)
          << method << z;
      for (std::size_t p = 0; p < 2; ++p) {
        auto up = point, down = point;
        up[p] += h;
        down[p] -= h;
        const double difference =
            morph->at(layout.at(up))->log_ratio(z) - morph->at(layout.at(down))->log_ratio(z);
        EXPECT_NEAR(by_point[p], difference / (2.0 * h), 1e-5) << method << z;
      }
    }
  }
}

// Neighbours that differ a lot, so that cubic weights alone would give negative densities and
// falling quantile functions.
TEST(Morphing, StaysFiniteBetweenNodesThatHaveNothingInCommon) {
  const Family wild = {
      [](std::span<const double> x) {
        return x[0] < 0.5 ? Normal{-300.0, 0.01} : Normal{40.0 * x[0], x[0] > 2.5 ? 500.0 : 0.1};
      },
      [](std::span<const double> x) {
        return Normal{10.0 * x[0] * x[0], x[0] > 1.5 ? 0.02 : 30.0};
      }};
  const Matrix places = line(4, 0.0, 3.0);
  const MorphNodes nodes = nodes_of(wild, places);
  for (const auto& method : methods) {
    const auto morph = make(method, nodes);
    for (int i = 0; i <= 30; ++i) {
      const std::vector<double> point{0.1 * i};
      const auto ratio = morph->at(NodeLayout(places, true).at(point, true));
      std::vector<double> by_point(1);
      double by_logit = 0.0;
      for (const double z : {-1e6, -2500.0, -300.0, -3.0, 0.0, 7.0, 80.0, 2500.0, 1e6}) {
        ASSERT_TRUE(std::isfinite(ratio->derivatives(z, by_logit, by_point))) << method << z;
        ASSERT_TRUE(std::isfinite(by_logit) && std::isfinite(by_point[0])) << method << z;
      }
    }
  }
}

}  // namespace
}  // namespace neyman::calibration
