#include "neyman/simulators/empirical.hpp"

#include <map>

#include "simulators/reference.hpp"

namespace neyman {
namespace {

// False alarm below 1e-6 for each: five standard errors for each of four events.
void expect_frequencies(const Empirical& empirical, const std::vector<double>& probabilities) {
  const std::size_t n = 100000;
  const auto x = sample(empirical, {}, n, 1, "test");
  std::map<double, double> count;
  for (std::size_t i = 0; i < n; ++i) {
    ASSERT_EQ(x(i, 1), 10.0 * x(i, 0));  // rows stay whole
    count[x(i, 0)] += 1.0 / n;
  }
  for (std::size_t k = 0; k < 4; ++k) {
    const double p = probabilities[k];
    EXPECT_NEAR(count[static_cast<double>(k)], p, 5.0 * std::sqrt(p * (1 - p) / n));
  }
}

TEST(Empirical, DrawsRowsInProportionToTheirWeight) {
  const Matrix rows(4, 2, {0, 0, 1, 10, 2, 20, 3, 30});
  expect_frequencies(Empirical(rows), {0.25, 0.25, 0.25, 0.25});
  expect_frequencies(Empirical(rows, {1.0, 0.0, 6.0, 3.0}), {0.1, 0.0, 0.6, 0.3});
  // Extreme weights, whose sum is beyond double's range.
  expect_frequencies(Empirical(rows, {1e308, 1e308, 1e308, 1.0}), {1. / 3, 1. / 3, 1. / 3, 0.0});
}

TEST(Empirical, OfOneRowGivesThatRow) {
  const auto x = sample(Empirical(Matrix(1, 3, {1, 2, 3})), {}, 5, 1, "test");
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(x(i, 2), 3.0);
}

TEST(Empirical, CdfIsTheStepFunction) {
  const Empirical empirical(Matrix(4, 1, {3.0, 1.0, 2.0, 1.0}), {1.0, 1.0, 0.0, 2.0});
  EXPECT_EQ(empirical.cdf({}, 0.999), 0.0);
  EXPECT_DOUBLE_EQ(empirical.cdf({}, 1.0), 0.75);
  EXPECT_DOUBLE_EQ(empirical.cdf({}, 2.5), 0.75);
  EXPECT_DOUBLE_EQ(empirical.cdf({}, 3.0), 1.0);
  EXPECT_EQ(empirical.quantile({}, 0.75), 1.0);
  EXPECT_EQ(empirical.quantile({}, 0.7501), 3.0);
  EXPECT_EQ(empirical.quantile({}, 0.0), 1.0);
  EXPECT_EQ(empirical.quantile({}, 1.0), 3.0);
}

TEST(Empirical, HasNoDensity) {
  const Empirical empirical(Matrix(2, 2));
  EXPECT_FALSE(empirical.has_density());
  EXPECT_EQ(reference::error_of([&] { log_density(empirical, {}, Matrix(1, 2)); }),
            "empirical: its density is not known");
  EXPECT_THROW(empirical.cdf({}, 1.0), ArgumentError);
}

TEST(Empirical, RefusesWhatIsNone) {
  EXPECT_THROW(Empirical(Matrix(0, 2)), ArgumentError);
  EXPECT_THROW(Empirical(Matrix(2, 1), {1.0}), ArgumentError);
  EXPECT_THROW(Empirical(Matrix(2, 1), {1.0, -1.0}), ArgumentError);
  EXPECT_THROW(Empirical(Matrix(2, 1), {0.0, 0.0}), ArgumentError);
}

}  // namespace
}  // namespace neyman
