#include "core/cholesky.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <limits>

#include "core/cholesky_kernels.hpp"
#include "core/instruction_set.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"

namespace neyman {
namespace {

/// Positive definite, with a condition number of some 1e6.
Eigen::MatrixXd positive(Eigen::Index size, std::uint64_t seed) {
  Eigen::MatrixXd from(size, size);
  RandomStream random(seed, "cholesky");
  for (double& value : from.reshaped()) value = random.normal();
  Eigen::MatrixXd out = from * from.transpose() / static_cast<double>(size);
  out.diagonal().array() += 1e-6;
  return out;
}

class CholeskyOfSize : public testing::TestWithParam<Eigen::Index> {};

TEST_P(CholeskyOfSize, GivesTheMatrixBackAsEigenDoes) {
  const Eigen::Index n = GetParam();
  const Eigen::MatrixXd matrix = positive(n, 3);
  Eigen::MatrixXd factor = matrix;
  factor.triangularView<Eigen::StrictlyUpper>().setConstant(
      std::numeric_limits<double>::quiet_NaN());  // not read
  ASSERT_TRUE(cholesky(factor.data(), static_cast<std::size_t>(n)));
  const Eigen::MatrixXd lower = factor.triangularView<Eigen::Lower>();
  const Eigen::MatrixXd expected = matrix.llt().matrixL();
  EXPECT_LT((lower * lower.transpose() - matrix).cwiseAbs().maxCoeff(), 1e-13);
  EXPECT_LT((lower - expected).cwiseAbs().maxCoeff(), 1e-8);
}

INSTANTIATE_TEST_SUITE_P(Sizes, CholeskyOfSize,
                         testing::Values(1, 2, 7, 24, 95, 96, 97, 191, 192, 193, 300, 700));

TEST(Cholesky, RefusesMatricesThatAreNotPositiveDefinite) {
  const auto refused = [](Eigen::MatrixXd matrix) {
    return !cholesky(matrix.data(), static_cast<std::size_t>(matrix.rows()));
  };
  for (const Eigen::Index n : {1, 50, 150}) {
    Eigen::MatrixXd matrix = positive(n, 4);
    EXPECT_FALSE(refused(matrix));
    matrix(n - 1, n - 1) = -1.0;
    EXPECT_TRUE(refused(matrix));
    matrix(n - 1, n - 1) = std::numeric_limits<double>::quiet_NaN();
    EXPECT_TRUE(refused(matrix));
    matrix(n - 1, n - 1) = std::numeric_limits<double>::infinity();
    EXPECT_TRUE(refused(matrix));
    EXPECT_TRUE(refused(Eigen::MatrixXd::Zero(n, n)));
  }
  EXPECT_TRUE(cholesky(nullptr, 0));
}

TEST(Cholesky, HasTheSameBitsForAnyNumberOfThreads) {
  const Eigen::MatrixXd matrix = positive(900, 5);
  std::vector<Eigen::MatrixXd> found;
  for (const std::size_t count : {1U, 2U, 5U}) {
    set_threads(count);
    found.push_back(matrix);
    ASSERT_TRUE(cholesky(found.back().data(), 900));
  }
  set_threads(0);
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(found[0], found[2]);
}

TEST(CholeskyKernels, SubtractTheProductOfStrips) {
  for (const auto* kernels : detail::supported(cholesky_kernels::all_kernels)) {
    const std::size_t rows = kernels->rows, columns = kernels->columns, depth = 5, stride = 31;
    ASSERT_EQ(columns % rows, 0U);
    std::vector<double> a(depth * rows), b(depth * columns), c(rows * stride, 0.5);
    RandomStream random(6, "strips");
    for (auto* values : {&a, &b})
      for (double& value : *values) value = random.normal();
    kernels->subtract(a.data(), b.data(), depth, c.data(), stride);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t j = 0; j < stride; ++j) {
        double expected = 0.5;
        for (std::size_t k = 0; k < depth && j < columns; ++k)
          expected -= a[k * rows + r] * b[k * columns + j];
        EXPECT_NEAR(c[r * stride + j], expected, 1e-14) << kernels->name;
      }
  }
}

}  // namespace
}  // namespace neyman
