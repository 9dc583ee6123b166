#include "neyman/simulators/multivariate_normal.hpp"

#include <numbers>

#include "neyman/simulators/normal.hpp"
#include "simulators/reference.hpp"

namespace neyman {
namespace {

const ParameterSpace correlation_space({{"rho", -1, 1, {}}});

MultivariateNormal correlated() {
  return MultivariateNormal(
      {1.0, -2.0}, {{4.0, {"6*rho", correlation_space}}, {{"6*rho", correlation_space}, 9.0}});
}

TEST(MultivariateNormal, MatchesTheBivariateFormula) {
  const auto normal = correlated();
  for (const double rho : {-0.9, 0.0, 0.3, 0.999}) {
    for (const auto& x : {std::vector{0.0, 0.0}, {1.0, -2.0}, {7.0, 5.0}, {-30.0, 4.0}}) {
      const double u = (x[0] - 1.0) / 2.0, v = (x[1] + 2.0) / 3.0, c = 1.0 - rho * rho;
      const double exact = -(u * u - 2 * rho * u * v + v * v) / (2 * c) -
                           std::log(2 * std::numbers::pi * 6.0 * std::sqrt(c));
      EXPECT_NEAR(reference::log_density_at(normal, std::vector{rho}, x), exact,
                  1e-11 * (1.0 + std::abs(exact)) / c);
    }
  }
}

TEST(MultivariateNormal, OfOneDimensionIsANormal) {
  const MultivariateNormal one({0.5}, {{4.0}});
  const Normal normal(0.5, 2.0);
  for (const double x : {-3.0, 0.5, 11.0})
    EXPECT_NEAR(reference::log_density_at(one, {}, {x}), reference::log_density_at(normal, {}, {x}),
                1e-13);
}

// False alarm below 1e-6: five standard errors for each of five moments.
TEST(MultivariateNormal, SamplesHaveTheMoments) {
  const std::size_t n = 200000;
  const std::vector<double> point{0.6};
  const auto x = sample(correlated(), point, n, 4, "test");
  const auto first = reference::moments(x.column(0)), second = reference::moments(x.column(1));
  double cross = 0.0;
  for (std::size_t i = 0; i < n; ++i) cross += (x(i, 0) - 1.0) * (x(i, 1) + 2.0) / n;
  const double unit = 5.0 / std::sqrt(static_cast<double>(n));
  EXPECT_NEAR(first.mean, 1.0, 2.0 * unit);
  EXPECT_NEAR(second.mean, -2.0, 3.0 * unit);
  EXPECT_NEAR(first.variance, 4.0, 4.0 * std::sqrt(2.0) * unit);
  EXPECT_NEAR(second.variance, 9.0, 9.0 * std::sqrt(2.0) * unit);
  EXPECT_NEAR(cross, 3.6, 6.0 * std::sqrt(1.36) * unit);
}

TEST(MultivariateNormal, RefusesACovarianceThatIsNone) {
  EXPECT_EQ(reference::error_of([] {
              MultivariateNormal({0.0, 0.0}, {{1.0, 0.5}, {0.4, 1.0}});
            }),
            "multivariate-normal: covariance[1][0] is 0.4, but must be equal to [0][1], which is "
            "0.5");
  EXPECT_THROW(MultivariateNormal({0.0, 0.0}, {{1.0, 2.0}, {2.0, 1.0}}), ArgumentError);
  EXPECT_THROW(MultivariateNormal({0.0, 0.0}, {{1.0, 1.0}, {1.0, 1.0}}), ArgumentError);
  EXPECT_THROW(MultivariateNormal({0.0, 0.0}, {{1.0, 0.0}}), ArgumentError);
  EXPECT_THROW(MultivariateNormal({}, {}), ArgumentError);
  EXPECT_THROW(sample(correlated(), std::vector{1.0}, 3, 1, "t"), ArgumentError);
}

}  // namespace
}  // namespace neyman
