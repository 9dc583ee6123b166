#include "neyman/simulators/linear_transform.hpp"

#include "core/instruction_set.hpp"
#include "neyman/simulators/exponential.hpp"
#include "neyman/simulators/join.hpp"
#include "neyman/simulators/multivariate_normal.hpp"
#include "neyman/simulators/normal.hpp"
#include "simulators/linear_kernels.hpp"
#include "simulators/reference.hpp"

namespace neyman {
namespace {

const ParameterSpace scale_space({{"a", -5, 5, {}}});
const auto standard_pair = std::make_shared<Join>(std::vector<DistributionPtr>{
    std::make_shared<Normal>(0.0, 1.0), std::make_shared<Normal>(0.0, 1.0)});

TEST(LinearTransform, OfNormalsIsTheMultivariateNormal) {
  // x = A z + b has mean b and covariance A Aᵀ.
  const LinearTransform transform(standard_pair, {{2.0, 0.5}, {-1.0, 3.0}}, {1.0, -4.0});
  const MultivariateNormal exact({1.0, -4.0}, {{4.25, -0.5}, {-0.5, 10.0}});
  for (const auto& x : {std::vector{0.0, 0.0}, {1.0, -4.0}, {9.0, -20.0}})
    EXPECT_NEAR(reference::log_density_at(transform, {}, x),
                reference::log_density_at(exact, {}, x), 1e-12);
}

TEST(LinearTransform, DensityCarriesTheJacobian) {
  const auto decay = std::make_shared<Exponential>(2.0);
  for (const double a : {-3.0, 0.1, 4.0}) {
    const LinearTransform scaled(decay, {{{"a", scale_space}}}, {1.0});
    const std::vector<double> point{a};
    EXPECT_NEAR(reference::log_density_at(scaled, point, {a * 0.7 + 1.0}),
                std::log(2.0) - 1.4 - std::log(std::abs(a)), 1e-12);
    const double low = a > 0.0 ? 1.0 : 1.0 + 20.0 * a, high = a > 0.0 ? 1.0 + 20.0 * a : 1.0;
    EXPECT_NEAR(reference::integral(scaled, point, low, high), 1.0, 1e-6);
    // p = 0.3 of x is p = 0.7 of z where the sign turns.
    EXPECT_NEAR(scaled.quantile(point, 0.3), 1.0 + a * decay->quantile({}, a > 0.0 ? 0.3 : 0.7),
                1e-12);
    EXPECT_NEAR(scaled.cdf(point, scaled.quantile(point, 0.3)), 0.3, 1e-12);
  }
}

TEST(LinearTransform, LogDeterminantNeitherOverflowsNorDependsOnUnits) {
  // det A = 10^-400 is 0 in double.
  const LinearTransform tiny(standard_pair, {{1e-200, 0.0}, {0.0, 1e-200}});
  ASSERT_TRUE(tiny.has_density());
  EXPECT_NEAR(reference::log_density_at(tiny, {}, {0.0, 0.0}),
              reference::log_density_at(*standard_pair, {}, {0.0, 0.0}) + 400.0 * std::log(10.0),
              1e-9);
  EXPECT_TRUE(LinearTransform(standard_pair, {{1e12, 0.0}, {0.0, 1e-12}}).has_density());
}

// False alarm below 1e-6 (five standard errors for each moment).
TEST(LinearTransform, SamplesAreTransformed) {
  const LinearTransform transform(standard_pair, {{2.0, 0.5}, {-1.0, 3.0}}, {1.0, -4.0});
  const std::size_t n = 100000;
  const auto x = sample(transform, {}, n, 8, "test");
  const double unit = 5.0 / std::sqrt(static_cast<double>(n));
  const auto first = reference::moments(x.column(0));
  double cross = 0.0;
  for (std::size_t i = 0; i < n; ++i) cross += (x(i, 0) - 1.0) * (x(i, 1) + 4.0) / n;
  EXPECT_NEAR(first.mean, 1.0, std::sqrt(4.25) * unit);
  EXPECT_NEAR(first.variance, 4.25, 4.25 * std::sqrt(2.0) * unit);
  EXPECT_NEAR(cross, -0.5, std::sqrt(4.25 * 10.0 + 0.25) * unit);
}

TEST(LinearTransform, EveryInstructionSetGivesThePlainProduct) {
  constexpr std::size_t most = linear_kernels::most_outputs;
  RandomStream random(4, "linear");
  for (const std::size_t rows : {1u, 2u, 7u, 100u})
    for (const std::size_t inputs : {1u, 2u, 5u, 7u})
      for (std::size_t outputs = 1; outputs <= most; ++outputs) {
        std::vector<double> z(rows * inputs), columns(inputs * most, 0.0), offset(most, 0.0);
        random.fill_normal(z);
        for (std::size_t j = 0; j < outputs; ++j) {
          for (std::size_t k = 0; k < inputs; ++k) columns[k * most + j] = random.normal();
          offset[j] = random.normal();
        }
        std::vector<double> expected(rows * outputs + 1);
        for (std::size_t i = 0; i < rows; ++i)
          for (std::size_t j = 0; j < outputs; ++j) {
            double sum = columns[j] * z[i * inputs];
            for (std::size_t k = 1; k < inputs; ++k)
              sum += columns[k * most + j] * z[i * inputs + k];
            expected[i * outputs + j] = sum + offset[j];
          }
        expected.back() = 77.0;  // what comes after the rows stays
        std::vector<linear_kernels::Input> given;
        for (std::size_t k = 0; k < inputs; ++k) given.push_back({z.data() + k, inputs});
        std::vector<double> first;
        for (const auto* kernels : detail::supported(linear_kernels::all_kernels)) {
          std::vector<double> x(expected.size(), 77.0);
          kernels->transform(given.data(), inputs, rows, columns.data(), offset.data(), outputs,
                             x.data());
          for (std::size_t i = 0; i < x.size(); ++i)
            ASSERT_NEAR(x[i], expected[i], 1e-13)
                << kernels->name << ", " << rows << " rows of " << inputs;
          if (first.empty()) first = x;
          ASSERT_EQ(x, first) << kernels->name << ", " << rows << " rows of " << inputs;
        }
      }
}

TEST(LinearTransform, OfAJoinIsThatOfItsRows) {
  // Ten of each are beyond what the kernels take.
  for (const std::size_t d : {1u, 2u, 5u, 10u}) {
    // One part of two columns, the others of one.
    std::vector<DistributionPtr> parts(d > 1 ? d - 2 : d, std::make_shared<Normal>(1.0, 2.0));
    if (d > 1) parts.push_back(standard_pair);
    const auto z = std::make_shared<Join>(parts);
    std::vector<std::vector<Expression>> matrix(d, std::vector<Expression>(d, 0.5));
    Matrix drawn(50, d), x(50, d);
    RandomStream first(5, "linear"), second(5, "linear");
    z->sample({}, first, drawn);
    LinearTransform(z, matrix, std::vector<Expression>(d, 3.0)).sample({}, second, x);
    for (std::size_t i = 0; i < 50; ++i) {
      double sum = 3.0;
      for (const double value : drawn.row(i)) sum += 0.5 * value;
      for (std::size_t j = 0; j < d; ++j) EXPECT_NEAR(x(i, j), sum, 1e-12) << d;
    }
  }
}

TEST(LinearTransform, SamplesAndInverseAgreeRowByRow) {
  // The z of each row, found again from x, are those that the inner distribution drew.
  const LinearTransform transform(standard_pair, {{2.0, 0.5}, {-1.0, 3.0}}, {1.0, -4.0});
  RandomStream first(1, "test"), second(1, "test");
  Matrix x(100, 2), z(100, 2);
  transform.sample({}, first, x);
  standard_pair->sample({}, second, z);
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_NEAR(x(i, 0), 2.0 * z(i, 0) + 0.5 * z(i, 1) + 1.0, 1e-13);
    EXPECT_NEAR(x(i, 1), -z(i, 0) + 3.0 * z(i, 1) - 4.0, 1e-13);
  }
}

TEST(LinearTransform, WithoutAnInverseOnlySamples) {
  const LinearTransform singular(standard_pair, {{1.0, 2.0}, {2.0, 4.0}});
  EXPECT_FALSE(singular.has_density());
  EXPECT_THROW(log_density(singular, {}, Matrix(1, 2)), ArgumentError);
  const auto x = sample(singular, {}, 10, 1, "test");
  for (std::size_t i = 0; i < 10; ++i) EXPECT_NEAR(x(i, 1), 2.0 * x(i, 0), 1e-13);

  const LinearTransform sum(standard_pair, {{1.0, 1.0}});
  EXPECT_EQ(sum.dimension(), 1u);
  EXPECT_FALSE(sum.has_density());
  EXPECT_EQ(sample(sum, {}, 10, 1, "test").cols(), 1u);

  const LinearTransform sometimes(standard_pair, {{{"a", scale_space}, 0.0}, {0.0, 1.0}});
  EXPECT_TRUE(sometimes.has_density());
  EXPECT_EQ(reference::error_of([&] { log_density(sometimes, std::vector{0.0}, Matrix(1, 2)); }),
            "linear-transform: matrix is singular, but must be invertible to have a density");
}

TEST(LinearTransform, RefusesOtherSizes) {
  EXPECT_THROW(LinearTransform(standard_pair, {{1.0}}), ArgumentError);
  EXPECT_THROW(LinearTransform(standard_pair, {}), ArgumentError);
  EXPECT_THROW(LinearTransform(standard_pair, {{1.0, 0.0}, {0.0, 1.0}}, {1.0}), ArgumentError);
  EXPECT_THROW(LinearTransform(nullptr, {{1.0}}), ArgumentError);
}

}  // namespace
}  // namespace neyman
