#include "neyman/simulators/join.hpp"

#include <limits>

#include "neyman/simulators/exponential.hpp"
#include "neyman/simulators/multivariate_normal.hpp"
#include "neyman/simulators/normal.hpp"
#include "neyman/simulators/ricker.hpp"
#include "simulators/reference.hpp"

namespace neyman {
namespace {

const auto normal = std::make_shared<Normal>(1.0, 2.0);
const auto pair = std::make_shared<MultivariateNormal>(
    std::vector<Expression>{0.0, 5.0},
    std::vector<std::vector<Expression>>{{1.0, 0.5}, {0.5, 1.0}});
const auto decay = std::make_shared<Exponential>(0.5);

TEST(Join, DensityIsTheProductOverTheColumnsOfEachPart) {
  const Join join({normal, pair, decay});
  ASSERT_EQ(join.dimension(), 4u);
  const double expected = reference::log_density_at(*normal, {}, {0.3}) +
                          reference::log_density_at(*pair, {}, {-1.0, 4.0}) +
                          reference::log_density_at(*decay, {}, {2.0});
  EXPECT_NEAR(reference::log_density_at(join, {}, {0.3, -1.0, 4.0, 2.0}), expected, 1e-13);
  EXPECT_EQ(reference::log_density_at(join, {}, {0.3, -1.0, 4.0, -2.0}),
            -std::numeric_limits<double>::infinity());
}

// False alarm below 1e-6: five standard errors and Kolmogorov–Smirnov.
TEST(Join, ColumnsAreThePartsAndIndependent) {
  const Join join({normal, pair, decay});
  const std::size_t n = 50000;
  const auto x = sample(join, {}, n, 7, "test");
  EXPECT_GT(reference::ks_p_value(x.column(0), [](double v) { return normal->cdf({}, v); }),
            reference::false_alarm);
  EXPECT_GT(reference::ks_p_value(x.column(3), [](double v) { return decay->cdf({}, v); }),
            reference::false_alarm);
  double with_pair = 0.0, within_pair = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    with_pair += (x(i, 0) - 1.0) / 2.0 * x(i, 1) / n;
    within_pair += x(i, 1) * (x(i, 2) - 5.0) / n;
  }
  const double unit = 5.0 / std::sqrt(static_cast<double>(n));
  EXPECT_NEAR(with_pair, 0.0, unit);
  EXPECT_NEAR(within_pair, 0.5, std::sqrt(1.25) * unit);
}

TEST(Join, HasWhatAllItsPartsHave) {
  EXPECT_FALSE(Join({normal, std::make_shared<Ricker>(3.8, 10.0, 0.3)}).has_density());
  EXPECT_FALSE(Join({normal, decay}).has_cdf());
  EXPECT_THROW(Join({normal, decay}).cdf({}, 0.0), ArgumentError);
  const Join alone({normal});
  EXPECT_TRUE(alone.has_cdf());
  EXPECT_EQ(alone.cdf({}, 0.2), normal->cdf({}, 0.2));
  EXPECT_EQ(alone.quantile({}, 0.2), normal->quantile({}, 0.2));
  EXPECT_THROW(Join({}), ArgumentError);
}

TEST(Join, SamplesLargerThanCachesAreTheSame) {
  // Three columns of whole blocks and one row: written past the caches, at any alignment.
  const auto z = std::make_shared<Normal>(1.0, 2.0);
  const Join three({z, z, z});
  constexpr std::size_t rows = 700 * 2048 + 1, few = 3 * 2048;
  const auto many = sample(three, {}, rows, 5, "large");
  const auto first = sample(three, {}, few, 5, "large");
  for (std::size_t i = 0; i < few; ++i)
    for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(many(i, c), first(i, c)) << i;
  Matrix last(1, 3);
  RandomStream random(5, "large", rows / 2048);
  three.sample({}, random, last);
  for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(many(rows - 1, c), last(0, c));
}

}  // namespace
}  // namespace neyman
