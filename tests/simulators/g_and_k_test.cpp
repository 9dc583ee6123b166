#include "neyman/simulators/g_and_k.hpp"

#include <limits>
#include <numbers>

#include "neyman/simulators/normal.hpp"
#include "simulators/reference.hpp"

namespace neyman {
namespace {

const ParameterSpace shape_space({{"g", -9, 9, {}}, {"k", -0.4, 2, {}}});

GAndK shaped() { return GAndK(3.0, 1.5, {"g", shape_space}, {"k", shape_space}); }

double quantile_at(double z, double g, double k) {
  return 3.0 + 1.5 * (1.0 + 0.8 * std::tanh(0.5 * g * z)) * std::pow(1.0 + z * z, k) * z;
}

TEST(GAndK, WithoutSkewAndTailsIsANormal) {
  const GAndK plain(1.0, 2.0, 0.0, 0.0);
  const Normal normal(1.0, 2.0);
  for (const double x : {-60.0, -1.0, 1.0, 1.0000001, 5.5, 40.0}) {
    EXPECT_NEAR(reference::log_density_at(plain, {}, {x}),
                reference::log_density_at(normal, {}, {x}), 1e-11);
    EXPECT_NEAR(plain.cdf({}, x), normal.cdf({}, x), 1e-14);
  }
}

TEST(GAndK, DensityIsTheSlopeOfTheInverse) {
  // log p = log φ(z) − log Q'(z), with Q' by a central difference of the formula.
  for (const auto& [g, k] : {std::pair{2.0, 0.5}, {-1.0, 0.1}, {0.0, 1.5}, {5.0, -0.2}}) {
    const std::vector<double> point{g, k};
    for (const double z : {-6.0, -1.3, -0.01, 0.0, 0.4, 2.0, 8.0}) {
      const double h = 1e-5;
      const double slope = (quantile_at(z + h, g, k) - quantile_at(z - h, g, k)) / (2 * h);
      const double exact = -0.5 * z * z - 0.5 * std::log(2 * std::numbers::pi) - std::log(slope);
      EXPECT_NEAR(reference::log_density_at(shaped(), point, {quantile_at(z, g, k)}), exact, 1e-7)
          << g << " " << k << " " << z;
    }
  }
}

TEST(GAndK, InvertsItsQuantileFarIntoTheTails) {
  for (const auto& [g, k] : {std::pair{2.0, 0.5}, {-4.0, 1.0}, {0.0, -0.3}}) {
    const std::vector<double> point{g, k};
    for (const double z : {-35.0, -8.0, -1e-9, 1e-3, 3.0, 8.0}) {
      const double p = 0.5 * std::erfc(-z / std::numbers::sqrt2);
      EXPECT_NEAR(shaped().cdf(point, quantile_at(z, g, k)) / p, 1.0, 1e-10) << z;
    }
    for (const double p : {1e-100, 0.01, 0.5, 0.9})
      EXPECT_NEAR(shaped().cdf(point, shaped().quantile(point, p)) / p, 1.0, 1e-9);
    EXPECT_EQ(shaped().quantile(point, 0.5), 3.0);
    EXPECT_EQ(shaped().quantile(point, 1.0), std::numeric_limits<double>::infinity());
  }
}

TEST(GAndK, ManyEventsHaveTheDensityOfEach) {
  // Many are solved from nodes; few, each on its own.
  for (const auto& [g, k] : {std::pair{2.0, 0.5}, {-9.0, 2.0}, {0.0, 0.0}, {0.0, -0.3}}) {
    const std::vector<double> point{g, k};
    Matrix x(3001, 1);
    for (std::size_t i = 0; i < x.rows(); ++i)
      x(i, 0) = quantile_at((static_cast<double>(i) - 1500.0) / 180.0, g, k);
    std::vector<double> many(x.rows());
    shaped().log_density(point, x, many);
    for (std::size_t i = 0; i < x.rows(); ++i)
      ASSERT_NEAR(many[i], reference::log_density_at(shaped(), point, {x(i, 0)}),
                  1e-13 * std::max(1.0, std::abs(many[i])))
          << g << " " << k << " " << x(i, 0);
  }
}

TEST(GAndK, LogDensityOfExtremeValuesIsNeverNan) {
  for (const double k : {-0.4, 0.0, 0.5, 2.0})
    for (const double x : {-1e300, -1e50, -1e10, 1e-300, 1e10, 1e300}) {
      const double value =
          reference::log_density_at(shaped(), std::vector{k < 0.0 ? 0.0 : 2.0, k}, {x});
      EXPECT_FALSE(std::isnan(value)) << k << " " << x;
      EXPECT_LT(value, 1.0);
    }
  // k = 1/2: x ≈ 1.5 · 1.8 z², so log p ≈ −x / 5.4 in the far tail.
  EXPECT_NEAR(reference::log_density_at(shaped(), std::vector{2.0, 0.5}, {1e12}) / (-1e12 / 5.4),
              1.0, 1e-6);
}

TEST(GAndK, DensityIntegratesToOne) {
  EXPECT_NEAR(reference::integral(shaped(), std::vector{2.0, 0.5}, -40, 200), 1.0, 1e-8);
  EXPECT_NEAR(reference::integral(shaped(), std::vector{5.0, -0.2}, 1.5, 14), 1.0, 1e-8);
}

// False alarm 1e-6 (Kolmogorov–Smirnov).
TEST(GAndK, SamplesFollowTheCdf) {
  const std::vector<double> point{2.0, 0.5};
  const auto x = sample(shaped(), point, 20000, 5, "test");
  EXPECT_GT(reference::ks_p_value(x.column(0), [&](double v) { return shaped().cdf(point, v); }),
            reference::false_alarm);
}

TEST(GAndK, RefusesShapesThatAreNone) {
  EXPECT_THROW(GAndK(0.0, 0.0, 1.0, 1.0), ArgumentError);
  EXPECT_THROW(GAndK(0.0, 1.0, 1.0, -0.5), ArgumentError);
  EXPECT_THROW(GAndK(0.0, 1.0, 1.0, 0.0, 1.0), ArgumentError);
  // Q rises for k = −0.2 with a strong skew, but falls near z = −15 with a weak one.
  EXPECT_NO_THROW(reference::log_density_at(shaped(), std::vector{5.0, -0.2}, {1.0}));
  EXPECT_LT(quantile_at(-15.0, 0.15, -0.2), quantile_at(-18.0, 0.15, -0.2));
  EXPECT_THROW(reference::log_density_at(shaped(), std::vector{0.15, -0.2}, {1.0}), ArgumentError);
}

}  // namespace
}  // namespace neyman
