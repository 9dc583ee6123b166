#include "neyman/inference/hypothesis_test.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "neyman/core/error.hpp"
#include "neyman/simulators/normal.hpp"
#include "ratios/two_components.hpp"

namespace neyman {
namespace {

/// N(a, 1): the test statistic Σ log r(x; 0, 1) = n/2 − Σ x has a known distribution.
struct NormalMean {
  ParameterSpace space{{{"a", -5, 5, {}}}};
  std::shared_ptr<const Normal> simulator =
      std::make_shared<Normal>(Expression("a", space), Expression(1.0));
  ExactRatio ratio{simulator};
};

TEST(SimpleTest, PValueAndPowerOfANormalMean) {
  const NormalMean problem;
  SimpleTestConfig config;
  config.null = {0.0};
  config.alternative = {0.5};
  config.datasets = 4000;
  config.seed = 3;
  // 16 events with mean 0.4: Σx/4 = 1.6 standard deviations above the null.
  const Matrix data(16, 1, std::vector<double>(16, 0.4));
  const auto test = simple_test(config, *problem.simulator, problem.ratio, data);
  const double expected_p = 0.5 * std::erfc(1.6 / std::sqrt(2.0));
  // Power: Φ(2 − 1.645), the shift 0.5·4 = 2 minus the quantile.
  const double expected_power = 0.5 * std::erfc(-(2.0 - 1.6448536) / std::sqrt(2.0));
  // Binomial errors of 4000 datasets: 0.0036 and 0.0076 (and the threshold's own); 5.5 of them.
  EXPECT_NEAR(test.p_value, expected_p, 5.5 * 0.0036);
  EXPECT_NEAR(test.power, expected_power, 5.5 * 0.016);
  EXPECT_EQ(test.null_statistics.size(), 4000U);
}

TEST(SimpleTest, PValuesUnderTheNullAreValid) {
  const NormalMean problem;
  SimpleTestConfig config;
  config.null = {0.0};
  config.alternative = {1.0};
  config.datasets = 99;
  int rejected = 0;
  constexpr int repetitions = 400;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    config.seed = static_cast<std::uint64_t>(repetition);
    const auto data = sample(*problem.simulator, config.null, 5, config.seed + 10000, "data");
    rejected += simple_test(config, *problem.simulator, problem.ratio, data).p_value <= 0.1 ? 1 : 0;
  }
  // With 99 datasets the size is exactly 0.1: 40 ± 6 of 400; 5.5 standard deviations.
  EXPECT_NEAR(rejected, 40, 33);
}

TEST(SimpleTest, IsNeverZero) {
  const NormalMean problem;
  SimpleTestConfig config;
  config.null = {0.0};
  config.alternative = {1.0};
  config.datasets = 10;
  const Matrix data(1, 1, {50.0});
  EXPECT_DOUBLE_EQ(simple_test(config, *problem.simulator, problem.ratio, data).p_value, 1.0 / 11);
  EXPECT_THROW(simple_test(config, *problem.simulator, problem.ratio, Matrix(0, 1)), ArgumentError);
}

/// N(a, 1) from a program that fails for a tenth of the datasets at a = 0, or always.
class Failing final : public Distribution {
 public:
  explicit Failing(double share) : share_(share) {}
  std::string kind() const override { return "failing"; }
  std::size_t dimension() const override { return 1; }
  void sample(std::span<const double> point, RandomStream& random, Matrix& out) const override {
    if (point[0] == 0.0 && random.uniform() < share_) throw SimulatorError("it crashed");
    for (std::size_t i = 0; i < out.rows(); ++i) out(i, 0) = point[0] + random.normal();
  }

 private:
  double share_;
};

TEST(SimpleTest, DatasetsThatFailAreCountedAgainstTheResult) {
  const NormalMean problem;
  SimpleTestConfig config;
  config.null = {0.0};
  config.alternative = {1.0};
  config.datasets = 200;
  config.seed = 5;
  const Matrix far(1, 1, {50.0});  // no dataset of the null reaches it
  const auto test = simple_test(config, Failing(0.1), problem.ratio, far);
  // 20 ± 4.2 of 200: 5.5 standard deviations.
  EXPECT_GT(test.failed, 0U);
  EXPECT_LT(test.failed, 44U);
  EXPECT_EQ(test.null_statistics.size(), 200 - test.failed);
  EXPECT_EQ(test.alternative_statistics.size(), 200U);
  EXPECT_DOUBLE_EQ(test.p_value, (1.0 + static_cast<double>(test.failed)) / 201.0);
  // Failed datasets of the null make it harder to reject.
  EXPECT_LE(test.power, simple_test(config, *problem.simulator, problem.ratio, far).power);
}

TEST(SimpleTest, WhereAllDatasetsFailTheReasonIsThrown) {
  const NormalMean problem;
  SimpleTestConfig config;
  config.null = {0.0};
  config.alternative = {1.0};
  config.datasets = 10;
  EXPECT_THROW(simple_test(config, Failing(1.0), problem.ratio, Matrix(1, 1, {0.5})),
               SimulatorError);
}

}  // namespace
}  // namespace neyman
