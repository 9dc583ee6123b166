#include "ratios/feature_scale.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "neyman/core/error.hpp"
#include "neyman/core/random.hpp"

namespace neyman::across {
namespace {

using Kind = FeatureScale::Kind;

std::vector<double> drawn(std::size_t n, const std::function<double(RandomStream&)>& value) {
  RandomStream random(1, "values");
  std::vector<double> out(n);
  for (double& x : out) x = value(random);
  return out;
}

FeatureScale saved_and_loaded(const FeatureScale& scale) {
  Archive archive;
  scale.save(archive);
  return FeatureScale::load(archive);
}

// A value at the quantile p goes to Φ⁻¹(p). With 10⁵ values the error of a quantile near z = 2 is
// 0.008.
TEST(FeatureScale, HeavyTailsBecomeNormalScores) {
  const FeatureScale scale(
      drawn(100000, [](RandomStream& random) { return std::exp(3.0 * random.normal()); }));
  EXPECT_EQ(scale.kind(), Kind::continuous);
  EXPECT_EQ(scale.atoms(), 0u);
  for (const double z : {-2.0, -1.0, 0.0, 0.5, 2.0}) EXPECT_NEAR(scale(std::exp(3.0 * z)), z, 0.04);
  EXPECT_LE(scale(1e300), 12.0f);
  EXPECT_GE(scale(-1e300), -12.0f);
}

TEST(FeatureScale, UnitsDoNotMatter) {
  const auto values = drawn(5000, [](RandomStream& random) { return random.normal(); });
  const FeatureScale plain(values);
  for (const double unit : {1e-200, 1e-12, 1e12, 1e200}) {
    auto scaled = values;
    for (double& x : scaled) x *= unit;
    const FeatureScale other(scaled);
    for (const double x : {-4.0, -1.0, 0.1, 3.0}) EXPECT_NEAR(other(x * unit), plain(x), 1e-3);
  }
}

TEST(FeatureScale, IsMonotone) {
  const FeatureScale scale(drawn(3000, [](RandomStream& random) {
    return random.uniform() < 0.5 ? random.normal() : 100.0 + 0.01 * random.normal();
  }));
  double before = -1e9;
  for (double x = -5.0; x < 105.0; x += 0.003) {
    const auto now = static_cast<double>(scale(x));
    EXPECT_GE(now, before - 1e-6);
    before = now;
  }
}

// Counts are places with half a step to each side, which meet.
TEST(FeatureScale, CountsComeInSteps) {
  const FeatureScale scale(
      drawn(20000, [](RandomStream& random) { return std::floor(30.0 * random.exponential()); }));
  ASSERT_EQ(scale.kind(), Kind::steps);
  for (int k = 0; k < 50; ++k) {
    const auto here = scale.place(k), next = scale.place(k + 1);
    EXPECT_LT(here.low, here.high);
    EXPECT_FLOAT_EQ(here.high, next.low);
    EXPECT_EQ(here.atom, -1);
  }
  const auto far = scale.place(1e9);
  EXPECT_LT(far.low, far.high);
}

TEST(FeatureScale, AFewValuesAreCategories) {
  const FeatureScale scale(
      drawn(1000, [](RandomStream& random) { return static_cast<double>(random.below(3)) - 1.0; }));
  ASSERT_EQ(scale.kind(), Kind::categories);
  EXPECT_EQ(scale.atoms(), 3u);
  EXPECT_EQ(scale.place(-1.0).atom, 0);
  EXPECT_EQ(scale.place(1.0).atom, 2);
  EXPECT_EQ(scale.place(0.6).atom, 2);  // no value of the training's: the nearest
  EXPECT_EQ(scale.place(50.0).atom, 2);
}

TEST(FeatureScale, AValueThatManyEventsShareIsAnAtom) {
  const FeatureScale scale(drawn(10000, [](RandomStream& random) {
    return random.uniform() < 0.3 ? 0.0 : random.exponential();
  }));
  ASSERT_EQ(scale.kind(), Kind::continuous);
  EXPECT_EQ(scale.atoms(), 1u);
  EXPECT_EQ(scale.place(0.0).atom, 0);
  EXPECT_EQ(scale.place(1e-9).atom, -1);
}

TEST(FeatureScale, AConstantSaysNothing) {
  const FeatureScale scale(std::vector<double>(100, 7.0));
  EXPECT_EQ(scale.kind(), Kind::constant);
  EXPECT_EQ(scale(7.0), 0.0f);
  EXPECT_EQ(scale(1e12), 0.0f);
}

// 60 of 64 events are equal: few knots are left of the map, which stays finite.
TEST(FeatureScale, FewEventsAreEnough) {
  for (const std::size_t n : {2u, 3u, 5u, 64u}) {
    std::vector<double> values(n, 1.0);
    for (std::size_t i = 0; i < std::min<std::size_t>(n, 4); ++i)
      values[i] = static_cast<double>(i) + 0.5;
    const FeatureScale scale(values);
    for (const double x : {-1e3, 0.5, 1.0, 1.7, 1e3}) {
      EXPECT_TRUE(std::isfinite(scale(x)));
      EXPECT_TRUE(std::isfinite(scale.place(x).at));
    }
  }
}

TEST(FeatureScale, ARangeGoesToTheUnitInterval) {
  const auto scale = FeatureScale::of_range(-2.0, 6.0);
  EXPECT_TRUE(scale.bounded());
  EXPECT_FLOAT_EQ(scale.place(0.0).at, 0.25f);
  EXPECT_DOUBLE_EQ(scale.slope(), 0.125);
  // What a network sees has a variance of one over the range.
  EXPECT_NEAR(scale(6.0), 0.5 * FeatureScale::per_place, 1e-6);
}

TEST(FeatureScale, SavesAndLoads) {
  const std::vector<FeatureScale> scales = {
      FeatureScale(drawn(1000, [](RandomStream& random) { return random.normal(); })),
      FeatureScale(drawn(1000, [](RandomStream& r) { return std::floor(40 * r.uniform()); })),
      FeatureScale(drawn(1000, [](RandomStream& random) { return random.uniform() < 0.5; })),
      FeatureScale(std::vector<double>(10, 2.0)), FeatureScale::of_range(0.0, 3.0)};
  for (const auto& scale : scales) {
    const auto loaded = saved_and_loaded(scale);
    EXPECT_EQ(loaded.kind(), scale.kind());
    for (const double x : {-3.0, 0.0, 1.0, 2.5, 77.0}) {
      EXPECT_EQ(loaded(x), scale(x));
      EXPECT_EQ(loaded.place(x).atom, scale.place(x).atom);
      EXPECT_EQ(loaded.place(x).low, scale.place(x).low);
    }
  }
}

TEST(FeatureScale, RefusesAFileThatIsNoScale) {
  Archive good;
  FeatureScale(drawn(100, [](RandomStream& random) { return random.normal(); })).save(good);
  const auto refused = [&](const char* key, Archive::Value value) {
    Archive bad = good;
    bad.set(key, std::move(value));
    EXPECT_THROW(FeatureScale::load(bad), FileError) << key;
  };
  refused("kind", std::int64_t{9});
  refused("x", std::vector<double>{1.0, 2.0});
  auto falling = good.numbers("x");
  std::swap(falling[0], falling[1]);
  refused("x", falling);
  refused("atoms", std::vector<double>{2.0, 1.0});
  refused("kind", std::int64_t{3});  // categories without any
}

}  // namespace
}  // namespace neyman::across
