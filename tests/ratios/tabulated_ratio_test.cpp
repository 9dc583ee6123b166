#include "neyman/ratios/tabulated_ratio.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/ratios/decomposed_ratio.hpp"
#include "ratios/two_components.hpp"

namespace neyman {
namespace {

using testing::grid;

/// Component ratios 1 and f(x), and a count of the events it was asked for.
class Written final : public MixtureRatio {
 public:
  explicit Written(std::function<double(double)> f)
      : MixtureRatio(MixtureWeights(testing::normals({0.0, 1.0})->weight_expressions(), 2), {0.3}),
        f_(std::move(f)) {}
  std::string kind() const override { return "written"; }
  Matrix component_ratios(MatrixView x) const override {
    asked += x.rows();
    Matrix out(x.rows(), 2);
    for (std::size_t i = 0; i < x.rows(); ++i) {
      out(i, 0) = 1.0;
      out(i, 1) = f_(x(i, 0));
    }
    return out;
  }
  std::vector<double> normalisation() const override { return {1.0, 0.9}; }
  mutable std::size_t asked = 0;

 private:
  std::function<double(double)> f_;
};

TEST(TabulatedRatio, IsWithinItsToleranceOfTheRatioItself) {
  const auto mixture = testing::normals({0.0, 1.0, 2.0});
  const ExactMixtureRatio exact(mixture, {0.3});
  const TabulatedRatio table(exact, -8.0, 8.0);
  EXPECT_EQ(table.direct_share(), 0.0);
  const auto x = grid(-9.0, 9.0, 30011);  // no multiple of the cells, and beyond the table
  const auto found = table.component_ratios(x), truth = exact.component_ratios(x);
  for (std::size_t i = 0; i < x.rows(); ++i)
    for (std::size_t c = 0; c < 3; ++c)
      ASSERT_NEAR(found(i, c) / truth(i, c), 1.0, 1e-5) << x(i, 0);
  EXPECT_EQ(table.weights().size(), 3U);
  EXPECT_EQ(table.kind(), "exact");
}

TEST(TabulatedRatio, ReproducesCubicsExactly) {
  const Written cubic([](double x) { return 40.0 + x * (1.0 + x * (0.5 - 0.25 * x)); });
  const TabulatedRatio table(cubic, -4.0, 5.0, {3, 1e-12});
  EXPECT_EQ(table.direct_share(), 0.0);
  const auto x = grid(-4.0, 5.0, 101);
  const auto found = table.component_ratios(x), truth = cubic.component_ratios(x);
  for (std::size_t i = 0; i < x.rows(); ++i) EXPECT_NEAR(found(i, 1), truth(i, 1), 1e-12);
}

TEST(TabulatedRatio, AsksTheRatioItselfAtStepsAndKinks) {
  // A step at 0.3 and a kink at 0.7: two of ten cells.
  const Written rough([](double x) { return (x < 0.3001 ? 1.0 : 2.0) + std::abs(x - 0.7001); });
  const TabulatedRatio table(rough, 0.0, 1.0, {10, 1e-6});
  EXPECT_DOUBLE_EQ(table.direct_share(), 0.2);
  const auto x = grid(0.0005, 0.9995, 1000);
  rough.asked = 0;
  const auto found = table.component_ratios(x);
  EXPECT_EQ(rough.asked, 200U);
  const auto truth = rough.component_ratios(x);
  for (std::size_t i = 0; i < x.rows(); ++i) EXPECT_NEAR(found(i, 1), truth(i, 1), 1e-12);
}

TEST(TabulatedRatio, AsksTheRatioItselfOutsideTheTable) {
  const Written curve([](double x) { return std::exp(0.1 * x); });
  const TabulatedRatio table(curve, -1.0, 1.0);
  const Matrix x(6, 1, {-1e300, -1.5, -1.0000001, 1.0, 7.0, 1e300});
  curve.asked = 0;
  EXPECT_EQ(table.component_ratios(x), curve.component_ratios(x));
  EXPECT_EQ(curve.asked, 12U);
  EXPECT_EQ(table.component_ratios(Matrix(0, 1)).rows(), 0U);
}

TEST(TabulatedRatio, KeepsTheRestOfTheRatio) {
  const auto mixture = testing::normals({0.0, 1.0, 2.0});
  const auto config = testing::logistic_config();
  const DecomposedRatio ratio(testing::draw_all(*mixture, 1000, config),
                              MixtureWeights(mixture->weight_expressions(), 3), {0.3}, config);
  const TabulatedRatio table(ratio, -3.0, 5.0);
  const auto x = grid(-3.5, 5.5, 40);
  EXPECT_EQ(table.normalisation(), ratio.normalisation());
  EXPECT_EQ(table.replicas(), 10U);
  EXPECT_EQ(table.replica_ratios(table.score(x), 3), ratio.replica_ratios(ratio.score(x), 3));
  EXPECT_EQ(table.replica_normalisation(3), ratio.replica_normalisation(3));
  EXPECT_EQ(table.count_outside(grid(50.0, 60.0, 3)), 3U);
  const auto found = table.log_ratios(x, std::vector{0.8}, std::vector{0.1});
  const auto truth = ratio.log_ratios(x, std::vector{0.8}, std::vector{0.1});
  for (std::size_t i = 0; i < x.rows(); ++i) EXPECT_NEAR(found[i], truth[i], 4e-5);
}

TEST(TabulatedRatio, SameBitsForAnyNumberOfThreads) {
  const ExactMixtureRatio exact(testing::normals({0.0, 1.0}), {0.3});
  const auto x = grid(-5.0, 5.0, 20000);
  std::vector<Matrix> found;
  for (const std::size_t count : {1, 2}) {
    set_threads(count);
    found.push_back(TabulatedRatio(exact, -4.0, 4.0).component_ratios(x));
  }
  set_threads(0);
  EXPECT_EQ(found[0], found[1]);
}

TEST(TabulatedRatio, RefusesWhatCannotBeATable) {
  const Written one([](double) { return 1.0; });
  EXPECT_THROW(TabulatedRatio(one, 1.0, 1.0), ArgumentError);
  EXPECT_THROW(TabulatedRatio(one, 0.0, std::numeric_limits<double>::infinity()), ArgumentError);
  EXPECT_THROW(TabulatedRatio(one, 0.0, 1.0, {0, 1e-5}), ArgumentError);
  EXPECT_THROW(TabulatedRatio(one, 0.0, 1.0, {8, 0.0}), ArgumentError);
  EXPECT_THROW(TabulatedRatio(one, 0.0, 1.0).component_ratios(Matrix(3, 2)), ArgumentError);
}

}  // namespace
}  // namespace neyman
