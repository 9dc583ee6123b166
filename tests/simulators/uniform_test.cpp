#include "neyman/simulators/uniform.hpp"

#include <limits>

#include "simulators/reference.hpp"

namespace neyman {
namespace {

const ParameterSpace space({{"w", 0, 5, {}}});
const std::vector<double> point{4.0};

TEST(Uniform, HasAFlatDensityBetweenItsEnds) {
  const Uniform uniform(-1.0, {"w - 1", space});
  for (const double x : {-1.0, 0.0, 3.0})
    EXPECT_DOUBLE_EQ(reference::log_density_at(uniform, point, {x}), -std::log(4.0));
  for (const double x : {-1.0000001, 3.0000001})
    EXPECT_EQ(reference::log_density_at(uniform, point, {x}),
              -std::numeric_limits<double>::infinity());
  EXPECT_DOUBLE_EQ(uniform.cdf(point, 0.0), 0.25);
  EXPECT_EQ(uniform.cdf(point, -9.0), 0.0);
  EXPECT_EQ(uniform.cdf(point, 9.0), 1.0);
  EXPECT_DOUBLE_EQ(uniform.quantile(point, 0.75), 2.0);
}

// False alarm 1e-6 (Kolmogorov–Smirnov).
TEST(Uniform, SamplesFollowTheCdf) {
  const Uniform uniform(-1.0, {"w - 1", space});
  const auto x = sample(uniform, point, 50000, 3, "test");
  EXPECT_GT(reference::ks_p_value(x.column(0), [&](double v) { return uniform.cdf(point, v); }),
            reference::false_alarm);
}

TEST(Uniform, RefusesEndsInTheWrongOrder) {
  EXPECT_EQ(reference::error_of([] { Uniform(2.0, 1.0); }),
            "uniform: high is 1, but must be above low, which is 2, by a finite width");
  EXPECT_THROW(Uniform(0.0, {"w", space}).cdf(std::vector<double>{0.0}, 1.0), ArgumentError);
  EXPECT_THROW(Uniform(-1.7e308, 1.7e308), ArgumentError);
}

}  // namespace
}  // namespace neyman
