#include "neyman/simulators/uniform.hpp"

#include <limits>

#include "simulators/reference.hpp"

namespace neyman {
namespace {

const ParameterSpace width_space({{"w", 0, 5, {}}});
const std::vector<double> width_point{4.0};

TEST(Uniform, HasAFlatDensityBetweenItsEnds) {
  const Uniform uniform(-1.0, {"w - 1", width_space});
  for (const double x : {-1.0, 0.0, 3.0})
    EXPECT_DOUBLE_EQ(reference::log_density_at(uniform, width_point, {x}), -std::log(4.0));
  for (const double x : {-1.0000001, 3.0000001})
    EXPECT_EQ(reference::log_density_at(uniform, width_point, {x}),
              -std::numeric_limits<double>::infinity());
  EXPECT_DOUBLE_EQ(uniform.cdf(width_point, 0.0), 0.25);
  EXPECT_EQ(uniform.cdf(width_point, -9.0), 0.0);
  EXPECT_EQ(uniform.cdf(width_point, 9.0), 1.0);
  EXPECT_DOUBLE_EQ(uniform.quantile(width_point, 0.75), 2.0);
}

// False alarm 1e-6 (Kolmogorov–Smirnov).
TEST(Uniform, SamplesFollowTheCdf) {
  const Uniform uniform(-1.0, {"w - 1", width_space});
  const auto x = sample(uniform, width_point, 50000, 3, "test");
  EXPECT_GT(
      reference::ks_p_value(x.column(0), [&](double v) { return uniform.cdf(width_point, v); }),
      reference::false_alarm);
}

TEST(Uniform, RefusesEndsInTheWrongOrder) {
  EXPECT_EQ(reference::error_of([] { Uniform(2.0, 1.0); }),
            "uniform: high is 1, but must be above low, which is 2, by a finite width");
  EXPECT_THROW(Uniform(0.0, {"w", width_space}).cdf(std::vector<double>{0.0}, 1.0), ArgumentError);
  EXPECT_THROW(Uniform(-1.7e308, 1.7e308), ArgumentError);
}

}  // namespace
}  // namespace neyman
