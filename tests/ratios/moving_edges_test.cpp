#include "neyman/ratios/moving_edges.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "ratios/with_edges.hpp"

namespace neyman {
namespace {

using test::with_edges;

TEST(MovingEdges, OfSharpSupportsAreFound) {
  const auto uniform =
      moving_edges(with_edges([](double t, RandomStream& r) { return t * r.uniform(); }));
  ASSERT_EQ(uniform.size(), 1u);
  EXPECT_TRUE(uniform[0].upper);
  const auto shifted = moving_edges(
      with_edges([](double t, RandomStream& r) { return 1e6 * (t + 0.3 * r.exponential()); }));
  ASSERT_EQ(shifted.size(), 1u);
  EXPECT_FALSE(shifted[0].upper);
}

// Tails, edges that stay, counts, point masses, soft edges, and too few events: of a hundred
// simulations each none says otherwise.
TEST(MovingEdges, OfOthersAreNot) {
  const std::vector<std::function<double(double, RandomStream&)>> others = {
      [](double t, RandomStream& r) { return t + 0.1 * r.normal(); },
      [](double t, RandomStream& r) { return t * r.normal(); },
      [](double t, RandomStream& r) { return t * r.exponential(); },
      [](double t, RandomStream& r) { return std::pow(r.uniform(), t); },
      [](double t, RandomStream& r) { return std::floor(20.0 * t * r.uniform()); },
      [](double t, RandomStream& r) { return std::max(0.0, r.normal() - t); },
      [](double t, RandomStream& r) {
        return r.uniform() < 0.2 ? t + 0.02 * r.normal() : 3.0 * r.uniform();
      },
      [](double t, RandomStream& r) {
        return t + r.uniform() + r.uniform() + r.uniform() + r.uniform() + r.uniform();
      },
      [](double, RandomStream&) { return 1.0; }};
  for (const auto& other : others)
    for (std::uint64_t seed = 1; seed <= 100; ++seed)
      EXPECT_TRUE(moving_edges(with_edges(other, 10000, seed)).empty());
  EXPECT_TRUE(
      moving_edges(with_edges([](double t, RandomStream& r) { return t * r.uniform(); }, 5000))
          .empty());
}

}  // namespace
}  // namespace neyman
