#include "neyman/simulators/normal.hpp"

#include <boost/math/distributions/normal.hpp>
#include <limits>

#include "simulators/reference.hpp"

namespace neyman {
namespace {

const ParameterSpace mu_s_space({{"mu", -5, 5, {}}, {"s", -1, 3, {}}});
const std::vector<double> normal_point{1.5, 0.75};

TEST(Normal, MatchesBoost) {
  const Normal normal({"mu", mu_s_space}, {"2*s", mu_s_space});
  const boost::math::normal_distribution<double> exact(1.5, 1.5);
  for (const double x : {-40.0, -3.0, 0.0, 1.5, 2.25, 7.0}) {
    EXPECT_NEAR(reference::log_density_at(normal, normal_point, {x}),
                std::log(boost::math::pdf(exact, x)), 1e-12 * (1 + x * x));
    EXPECT_NEAR(normal.cdf(normal_point, x), boost::math::cdf(exact, x), 1e-14);
  }
  EXPECT_NEAR(normal.cdf(normal_point, -40.0) / boost::math::cdf(exact, -40.0), 1.0, 1e-10);
  for (const double p : {1e-200, 1e-9, 0.3, 0.5, 0.99})
    EXPECT_NEAR(normal.quantile(normal_point, p), boost::math::quantile(exact, p), 1e-10);
  EXPECT_EQ(normal.quantile(normal_point, 0.0), -std::numeric_limits<double>::infinity());
  EXPECT_NEAR(reference::integral(normal, normal_point, -15, 20), 1.0, 1e-9);
}

TEST(Normal, LogDensityIsFiniteFarOut) {
  EXPECT_NEAR(reference::log_density_at(Normal(0.0, 1.0), {}, {1e6}), -5e11, 1.0);
}

// False alarm 1e-6 (Kolmogorov–Smirnov).
TEST(Normal, SamplesFollowTheCdf) {
  const Normal normal({"mu", mu_s_space}, {"s", mu_s_space});
  const auto x = sample(normal, normal_point, 50000, 1, "test");
  EXPECT_GT(
      reference::ks_p_value(x.column(0), [&](double v) { return normal.cdf(normal_point, v); }),
      reference::false_alarm);
}

TEST(Normal, RefusesASigmaThatIsNotPositive) {
  EXPECT_EQ(reference::error_of([] { Normal(0.0, 0.0); }),
            "normal: sigma is 0, but must be positive and finite");
  const Normal normal(0.0, {"s", mu_s_space});
  EXPECT_EQ(reference::error_of([&] {
              sample(normal, std::vector<double>{0.0, -1.0}, 5, 1, "t");
            }),
            "normal: sigma is -1, but must be positive and finite");
}

TEST(Normal, RefusesOtherShapesAndValues) {
  const Normal normal(0.0, 1.0);
  EXPECT_THROW(log_density(normal, {}, Matrix(3, 2)), ArgumentError);
  EXPECT_EQ(reference::error_of([&] {
              log_density(normal, {}, Matrix(2, 1, {0.0, std::nan("")}));
            }),
            "log_density: x[1][0] is nan, but must be finite");
  RandomStream random(1, "test");
  Matrix wide(3, 2);
  EXPECT_THROW(normal.sample({}, random, wide), ArgumentError);
  EXPECT_THROW(normal.quantile({}, 1.5), ArgumentError);
  EXPECT_TRUE(log_density(normal, {}, Matrix(0, 1)).empty());
}

}  // namespace
}  // namespace neyman
