#include "neyman/inference/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "neyman/core/error.hpp"
#include "neyman/core/random.hpp"

namespace neyman {
namespace {

TEST(Chi2, KnownValues) {
  EXPECT_NEAR(chi2_quantile(level_of_sigmas(1.0)), 1.0, 1e-12);
  EXPECT_NEAR(chi2_quantile(level_of_sigmas(2.0)), 4.0, 1e-11);
  EXPECT_NEAR(chi2_quantile(0.683, 2.0), -2.0 * std::log(1.0 - 0.683), 1e-12);
  EXPECT_NEAR(chi2_tail(3.841458820694124), 0.05, 1e-12);
  EXPECT_EQ(chi2_tail(0.0), 1.0);
  EXPECT_THROW(chi2_quantile(1.5), ArgumentError);
}

TEST(KolmogorovSmirnov, HasUniformPValuesUnderTheNull) {
  // 400 tests of 200 values: the number of p-values below 0.1 is binomial(400, 0.1), 40 ± 6;
  // bounds of ±33 are a false alarm in 4e-8 of seeds.
  RandomStream random(1, "ks");
  int low = 0;
  for (int repetition = 0; repetition < 400; ++repetition) {
    std::vector<double> values(200);
    for (double& value : values) value = std::pow(random.normal(), 2);
    low += ks_test_chi2(values).p_value < 0.1 ? 1 : 0;
  }
  EXPECT_GT(low, 40 - 33);
  EXPECT_LT(low, 40 + 33);
}

TEST(KolmogorovSmirnov, SeesAWrongScale) {
  RandomStream random(1, "ks wrong");
  std::vector<double> values(1000);
  for (double& value : values) value = 1.5 * std::pow(random.normal(), 2);
  EXPECT_LT(ks_test_chi2(values).p_value, 1e-4);
  EXPECT_EQ(ks_test_chi2({}).p_value, 1.0);
}

TEST(Moments, OfFewValues) {
  EXPECT_EQ(mean(std::vector{1.0, 2.0, 6.0}), 3.0);
  EXPECT_NEAR(standard_deviation(std::vector{1.0, 2.0, 6.0}), std::sqrt(7.0), 1e-15);
  EXPECT_EQ(standard_deviation(std::vector{1.0}), 0.0);
}

}  // namespace
}  // namespace neyman
