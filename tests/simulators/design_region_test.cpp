#include "neyman/simulators/design_region.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "simulators/reference.hpp"

namespace neyman {
namespace {

ParameterSpace box(std::size_t dimension, double half) {
  std::vector<Parameter> parameters;
  for (std::size_t p = 0; p < dimension; ++p)
    parameters.push_back({"p" + std::to_string(p), -half, half, {}});
  return ParameterSpace(std::move(parameters));
}

/// The share of θ of a box that a region leaves out.
double left_out(const DesignRegion& region, const ParameterSpace& parameters,
                std::size_t trials = 20000) {
  const Matrix points = Design(parameters).draw(trials, 99, "look");
  std::size_t out = 0;
  for (std::size_t i = 0; i < trials; ++i) out += region.holds(points.row(i)) ? 0 : 1;
  return static_cast<double>(out) / static_cast<double>(trials);
}

Matrix corners(const ParameterSpace& parameters) {
  return Design(parameters, {.kind = Design::Kind::grid,
                             .points = std::vector<std::size_t>(parameters.size(), 2)})
      .rows();
}

TEST(DesignRegion, DesignsThatFillTheRangesLoseNothing) {
  for (const std::size_t n : {std::size_t{20}, std::size_t{200}, std::size_t{5000}})
    for (const auto kind : {Design::Kind::uniform, Design::Kind::sobol,
                            Design::Kind::latin_hypercube, Design::Kind::grid}) {
      const auto parameters = box(3, 2.0);
      Design::Config config{.kind = kind};
      if (kind == Design::Kind::grid) config.points = {3, 3, 3};
      const Design design(parameters, config);
      const DesignRegion region(design, design.draw(n, 1, "train"));
      EXPECT_TRUE(region.everywhere());
      EXPECT_EQ(left_out(region, parameters), 0.0);
      EXPECT_TRUE(region.nearest(parameters.middle()).empty());
    }
  EXPECT_TRUE(DesignRegion().everywhere());
  // A normal that is as good as uniform, and one that is not.
  const auto parameters = box(2, 2.0);
  const auto everywhere = [&](double sigma) {
    const Design design(parameters, {.kind = Design::Kind::normal, .sigma = {sigma, sigma}});
    return DesignRegion(design, design.draw(500, 1, "train")).everywhere();
  };
  EXPECT_TRUE(everywhere(1.0));
  EXPECT_FALSE(everywhere(0.5));
}

TEST(DesignRegion, OfATableThatFillsABoxLeavesOutNextToNothing) {
  // Three tables each: of 20 000 θ at most 20 may be left out.
  for (const std::size_t d : {1, 2, 3, 5, 10})
    for (const std::size_t n : {std::size_t{200}, std::size_t{1000}, std::size_t{10000}})
      for (std::uint64_t seed = 1; seed <= (n == 10000 ? 1 : 3); ++seed) {
        const auto parameters = box(d, 1.0);
        const Matrix theta = Design(parameters).draw(n, seed, "train");
        const DesignRegion region(Design(parameters, {.kind = Design::Kind::table, .rows = theta}),
                                  theta);
        EXPECT_FALSE(region.everywhere());
        EXPECT_LE(left_out(region, parameters), 1e-3) << d << " " << n;
        const Matrix ends = corners(parameters);
        std::size_t missed = 0;
        for (std::size_t i = 0; i < ends.rows(); ++i) missed += region.holds(ends.row(i)) ? 0 : 1;
        EXPECT_LE(static_cast<double>(missed), 0.05 * static_cast<double>(ends.rows()))
            << d << " " << n;
      }
}

TEST(DesignRegion, OfANormalEndsAboutFiveSigmaFromItsMean) {
  for (const std::size_t d : {1, 2, 3, 5}) {
    const auto parameters = box(d, 20.0);
    const Design design(parameters, {.kind = Design::Kind::normal,
                                     .mean = std::vector<double>(d, 0.0),
                                     .sigma = std::vector<double>(d, 1.0)});
    const DesignRegion region(design, design.draw(100000, 4, "train"));
    const Matrix inside = design.draw(50000, 5, "other");
    std::size_t missed = 0;
    for (std::size_t i = 0; i < inside.rows(); ++i) missed += region.holds(inside.row(i)) ? 0 : 1;
    EXPECT_LE(missed, 25U) << d;
    // In random directions: all at three sigma, none at seven; in more dimensions θ are sparser.
    RandomStream random(7, "directions");
    for (int k = 0; k < 200; ++k) {
      std::vector<double> direction(d);
      double square = 0.0;
      for (double& value : direction) {
        value = random.normal();
        square += value * value;
      }
      const auto at = [&](double radius) {
        auto point = direction;
        for (double& value : point) value *= radius / std::sqrt(square);
        return region.holds(point);
      };
      EXPECT_TRUE(at(3.0)) << d;
      EXPECT_FALSE(at(d < 3 ? 7.0 : 10.0)) << d;
    }
  }
}

TEST(DesignRegion, FollowsCorrelationsAndScales) {
  // Two parameters with a correlation of 0.999, in units that differ by 10^12.
  const ParameterSpace parameters({{"a", -10e6, 10e6, {}}, {"b", -10e-6, 10e-6, {}}});
  const Design design(parameters, {.kind = Design::Kind::normal,
                                   .mean = {0.0, 0.0},
                                   .sigma = {1e6, 1e-6},
                                   .correlation = Matrix(2, 2, {1.0, 0.999, 0.999, 1.0})});
  const DesignRegion region(design, design.draw(20000, 1, "train"));
  EXPECT_TRUE(region.holds(std::vector<double>{3e6, 3e-6}));
  EXPECT_TRUE(region.holds(std::vector<double>{-2e6, -2.05e-6}));
  // Across, sigma is 0.032 of 1/√2.
  EXPECT_FALSE(region.holds(std::vector<double>{1e6, 0.6e-6}));
  EXPECT_FALSE(region.holds(std::vector<double>{-1e6, 1e-6}));
}

TEST(DesignRegion, IsOnALogScaleWhereTheDesignIs) {
  const ParameterSpace parameters({{"tau", 1e-6, 1e6, {}}});
  const Design design(parameters,
                      {.kind = Design::Kind::normal, .mean = {0.0}, .sigma = {1.0}, .log = {true}});
  const DesignRegion region(design, design.draw(20000, 1, "train"));
  for (const double z : {-3.0, 0.0, 3.0})
    EXPECT_TRUE(region.holds(std::vector<double>{std::exp(z)})) << z;
  for (const double z : {-7.0, 7.0})
    EXPECT_FALSE(region.holds(std::vector<double>{std::exp(z)})) << z;
}

TEST(DesignRegion, HasHolesAndPieces) {
  // A ring of radius one and width 0.05, and a far away blob.
  const auto parameters = box(2, 10.0);
  Matrix theta(6000, 2);
  RandomStream random(3, "ring");
  for (std::size_t i = 0; i < theta.rows(); ++i) {
    const double angle = 2.0 * std::numbers::pi * random.uniform();
    const double radius = 1.0 + 0.05 * random.uniform();
    const double shift = i % 3 == 0 ? 8.0 : 0.0;
    theta(i, 0) = shift + (shift > 0.0 ? 0.1 * random.uniform() : radius * std::cos(angle));
    theta(i, 1) = shift > 0.0 ? 0.1 * random.uniform() : radius * std::sin(angle);
  }
  const DesignRegion region(Design(parameters, {.kind = Design::Kind::table, .rows = theta}),
                            theta);
  EXPECT_TRUE(region.holds(std::vector<double>{0.0, -1.02}));
  EXPECT_TRUE(region.holds(std::vector<double>{8.05, 0.05}));
  EXPECT_FALSE(region.holds(std::vector<double>{0.0, 0.0}));
  EXPECT_FALSE(region.holds(std::vector<double>{4.0, 0.0}));
  const auto nearest = region.nearest(std::vector<double>{9.5, 0.0});
  EXPECT_NEAR(nearest[0], 8.05, 0.06);
}

TEST(DesignRegion, OfFewThetaReachesFromOneToTheNext) {
  const ParameterSpace parameters({{"a", 0.0, 10.0, {}}});
  const Matrix theta(4, 1, {1.0, 2.0, 3.0, 4.0});
  const DesignRegion region(Design(parameters, {.kind = Design::Kind::table, .rows = theta}),
                            theta);
  for (const double a : {1.0, 1.5, 2.5, 3.7, 4.0, 5.0})
    EXPECT_TRUE(region.holds(std::vector<double>{a})) << a;
  for (const double a : {6.0, 9.0}) EXPECT_FALSE(region.holds(std::vector<double>{a})) << a;
}

TEST(DesignRegion, DoesNotDependOnRepetitionsOrThreads) {
  const auto parameters = box(2, 5.0);
  const Design design(parameters, {.kind = Design::Kind::normal, .sigma = {1.0, 1.0}});
  const Matrix theta = design.draw(2000, 1, "train");
  Matrix twice = theta;
  twice.append(theta);
  set_threads(1);
  const DesignRegion one(design, theta);
  set_threads(2);
  const DesignRegion two(design, twice);
  set_threads(0);
  const Matrix looked = Design(parameters).draw(5000, 2, "look");
  for (std::size_t i = 0; i < looked.rows(); ++i)
    ASSERT_EQ(one.holds(looked.row(i)), two.holds(looked.row(i)));
}

TEST(DesignRegion, ParametersThatDoNotMoveAllowNoOthers) {
  const ParameterSpace parameters({{"a", 0.0, 1.0, {}}, {"b", 0.0, 1.0, {}}});
  Matrix theta(200, 2);
  for (std::size_t i = 0; i < theta.rows(); ++i) {
    theta(i, 0) = (static_cast<double>(i) + 0.5) / 200.0;
    theta(i, 1) = 0.5;
  }
  const DesignRegion region(Design(parameters, {.kind = Design::Kind::table, .rows = theta}),
                            theta);
  EXPECT_TRUE(region.holds(std::vector<double>{0.3, 0.5}));
  EXPECT_FALSE(region.holds(std::vector<double>{0.3, 0.6}));
}

TEST(DesignRegion, SavingAndLoadingKeepsEveryAnswer) {
  const auto parameters = box(3, 6.0);
  const Design design(parameters, {.kind = Design::Kind::normal, .sigma = {1.0, 0.5, 2.0}});
  const DesignRegion region(design, design.draw(3000, 1, "train"));
  Archive archive;
  region.save(archive);
  const auto loaded = DesignRegion::load(archive, 3);
  const Matrix looked = Design(parameters).draw(5000, 2, "look");
  for (std::size_t i = 0; i < looked.rows(); ++i)
    ASSERT_EQ(region.holds(looked.row(i)), loaded.holds(looked.row(i)));
  EXPECT_THROW(DesignRegion::load(archive, 2), FileError);
  archive.set("reach", std::vector<double>{1.0});
  EXPECT_THROW(DesignRegion::load(archive, 3), FileError);
  const Archive empty;
  EXPECT_TRUE(DesignRegion::load(empty, 3).everywhere());
}

TEST(DesignRegion, RefusesThetaOfOtherParameters) {
  const auto parameters = box(2, 5.0);
  const Design design(parameters, {.kind = Design::Kind::normal, .sigma = {1.0, 1.0}});
  EXPECT_EQ(reference::error_of([&] { DesignRegion(design, Matrix(10, 3)); }),
            "DesignRegion: a row of theta has 3 values, but must have 2 (one for each parameter)");
}

}  // namespace
}  // namespace neyman
