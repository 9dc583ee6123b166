#include "neyman/simulators/exponential.hpp"

#include <boost/math/distributions/exponential.hpp>

#include "not_finite.hpp"
#include "simulators/reference.hpp"

namespace neyman {
namespace {

const ParameterSpace rate_space({{"rate", 0.1, 5, {}}});
const std::vector<double> rate_point{3.0};

TEST(Exponential, MatchesBoost) {
  const Exponential exponential({"rate", rate_space});
  const boost::math::exponential_distribution<double> exact(3.0);
  for (const double x : {0.0, 1e-12, 0.4, 3.0, 100.0}) {
    EXPECT_NEAR(reference::log_density_at(exponential, rate_point, {x}), std::log(3.0) - 3.0 * x,
                1e-12);
    EXPECT_NEAR(exponential.cdf(rate_point, x), boost::math::cdf(exact, x), 1e-15);
  }
  for (const double p : {0.0, 1e-12, 0.5, 0.999})
    EXPECT_NEAR(exponential.quantile(rate_point, p), boost::math::quantile(exact, p), 1e-13);
  EXPECT_NEAR(reference::integral(exponential, rate_point, 0, 15), 1.0, 1e-10);
}

TEST(Exponential, IsImpossibleBelowItsLocation) {
  const Exponential plain(0.5), shifted(0.5, 2.0);
  EXPECT_EQ(reference::log_density_at(plain, {}, {-1e-300}), -infinity);
  EXPECT_EQ(reference::log_density_at(plain, {}, {-5.0}), -infinity);
  EXPECT_EQ(plain.cdf({}, -5.0), 0.0);
  EXPECT_EQ(reference::log_density_at(shifted, {}, {1.999}), -infinity);
  EXPECT_DOUBLE_EQ(reference::log_density_at(shifted, {}, {2.0}), std::log(0.5));
  EXPECT_DOUBLE_EQ(shifted.quantile({}, 0.0), 2.0);
}

// False alarm 1e-6 (Kolmogorov–Smirnov).
TEST(Exponential, SamplesFollowTheCdf) {
  const Exponential exponential({"rate", rate_space}, -1.0);
  const auto x = sample(exponential, rate_point, 50000, 2, "test");
  EXPECT_GT(
      reference::ks_p_value(x.column(0), [&](double v) { return exponential.cdf(rate_point, v); }),
      reference::false_alarm);
}

TEST(Exponential, RefusesARateThatIsNotPositive) {
  EXPECT_THROW(Exponential(-1.0), ArgumentError);
  EXPECT_THROW(Exponential({"rate - 3", rate_space}).cdf(rate_point, 1.0), ArgumentError);
}

}  // namespace
}  // namespace neyman
