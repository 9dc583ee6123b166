#include "ratios/fitted_edges.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "neyman/core/error.hpp"
#include "ratios/with_edges.hpp"

namespace neyman::across {
namespace {

const ParameterSpace space({{"t", 0.5, 1.5, {}}});

using test::with_edges;

/// What x becomes at t, and the log of the Jacobian.
std::pair<double, double> told(const FittedEdges& edges, double x, double t) {
  const double log_jacobian = edges.tell(std::span(&x, 1), std::vector{t});
  return {x, log_jacobian};
}

// U(0, t): the part of the way to t.
TEST(FittedEdges, BetweenTwoEdgesAFeatureIsAPartOfTheWay) {
  const FittedEdges edges(with_edges([](double t, RandomStream& r) { return t * r.uniform(); }),
                          space);
  ASSERT_FALSE(edges.empty());
  for (const double t : {0.52, 0.7, 1.0, 1.3, 1.48})
    for (const double part : {0.1, 0.5, 0.9}) {
      const auto [x, log_jacobian] = told(edges, part * t, t);
      EXPECT_NEAR(x, part, 2e-3) << t;
      EXPECT_NEAR(log_jacobian, -std::log(t), 2e-3) << t;
    }
}

// t² + Exp: by the distance from t².
TEST(FittedEdges, BeyondOneEdgeAFeatureIsTheDistance) {
  const FittedEdges edges(
      with_edges([](double t, RandomStream& r) { return t * t + r.exponential(); }), space);
  ASSERT_FALSE(edges.empty());
  for (const double t : {0.52, 0.7, 1.0, 1.3, 1.48}) {
    const double m = std::log(2.0), d = 2.0;
    const auto [x, log_jacobian] = told(edges, t * t + d, t);
    EXPECT_NEAR(x, d / (d + m), 5e-3) << t;
    EXPECT_NEAR(log_jacobian, std::log(m / ((d + m) * (d + m))), 2e-2) << t;
  }
}

// Of 20 000 uniform events and seven coefficients the edge is known to 7/20000.
TEST(FittedEdges, BeyondAnEdgeEventsAreForbiddenAsFarAsItIsKnown) {
  const FittedEdges edges(with_edges([](double t, RandomStream& r) { return t * r.uniform(); }),
                          space);
  const auto [x, log_jacobian] = told(edges, 1.01, 1.0);
  EXPECT_EQ(x, 1.0);
  EXPECT_NEAR(log_jacobian, -0.01 * 20000 / 7, 10.0);
}

TEST(FittedEdges, SmoothFeaturesHaveNone) {
  EXPECT_TRUE(
      FittedEdges(with_edges([](double t, RandomStream& r) { return t + r.normal(); }), space)
          .empty());
}

TEST(FittedEdges, SavesAndLoads) {
  const FittedEdges edges(with_edges([](double t, RandomStream& r) { return t * r.uniform(); }),
                          space);
  Archive archive;
  edges.save(archive);
  const auto loaded = FittedEdges::load(archive, space, 1);
  EXPECT_EQ(told(loaded, 0.7, 1.1), told(edges, 0.7, 1.1));
  for (const std::int64_t column : {-1, 1}) {
    archive.child("feature0").set("column", column);
    EXPECT_THROW(FittedEdges::load(archive, space, 1), FileError);
  }
}

}  // namespace
}  // namespace neyman::across
