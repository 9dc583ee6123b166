#include "neyman/diagnostics/data_range.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "data/support.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/random.hpp"

namespace neyman {
namespace {

using test::message_of;
using Verdict = Diagnostic::Verdict;

Matrix cauchy(std::uint64_t seed, std::size_t events, std::size_t features, double shift = 0.0) {
  RandomStream random(seed, "data-range");
  Matrix out(events, features);
  for (std::size_t i = 0; i < events; ++i)
    for (std::size_t j = 0; j < features; ++j)
      out(i, j) = std::tan(3.14159265358979 * (random.uniform() - 0.5)) + (j == 0 ? shift : 0.0);
  return out;
}

TEST(DataRange, ATailProbabilityThatIsKnown) {
  // Two simulated events, one of data: it lies outside in two of three cases.
  const Matrix simulated(2, 1, {0.0, 1.0});
  EXPECT_NEAR(*diagnose_data_range(Matrix(1, 1, {2.0}), simulated).p_value, 2.0 / 3.0, 1e-9);
  EXPECT_EQ(*diagnose_data_range(Matrix(1, 1, {0.5}), simulated).p_value, 1.0);
  EXPECT_EQ(*diagnose_data_range(Matrix(1, 1, {1.0}), simulated).p_value, 1.0);  // a tie
  // Of two, both: one half (each order of the four events is as likely).
  EXPECT_NEAR(*diagnose_data_range(Matrix(2, 1, {2.0, 3.0}), simulated).p_value, 0.5, 1e-9);
}

TEST(DataRange, FalseAlarmsAreAsRareAsTheLevelSays) {
  // Heavy tails, three features: 2000 seeds at 5 %. The count is discrete, so fewer are found; more
  // than 130 would happen once in 1000.
  std::size_t alarms = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed)
    alarms +=
        *diagnose_data_range(cauchy(2 * seed, 300, 3), cauchy(2 * seed + 1, 200, 3)).p_value < 0.05;
  EXPECT_LT(alarms, 130u);
  EXPECT_GT(alarms, 15u);
}

TEST(DataRange, AThirdOutsideFailsAndAFewWarn) {
  Matrix simulated(5000, 2), data(600, 2);
  RandomStream random(1, "data-range-uniform");
  for (double& value : simulated.values()) value = random.uniform();
  for (double& value : data.values()) value = 0.001 + 0.998 * random.uniform();
  EXPECT_EQ(diagnose_data_range(data, simulated).verdict, Verdict::pass);
  for (std::size_t i = 0; i < 12; ++i) data(i, 1) = 1.3;
  DataRangeConfig config;
  config.names = {"mass", "energy"};
  auto few = diagnose_data_range(data, simulated, config);
  EXPECT_EQ(few.verdict, Verdict::warn);
  EXPECT_EQ(few.number("outside:energy"), 12.0);
  EXPECT_NE(few.explanation.find("12 of 600 events"), std::string::npos) << few.explanation;
  for (std::size_t i = 0; i < 200; ++i) data(i, 0) = -2.0;
  EXPECT_EQ(diagnose_data_range(data, simulated).verdict, Verdict::fail);
}

TEST(DataRange, RefusesWhatItCannotUse) {
  EXPECT_NE(message_of<ArgumentError>([] {
              diagnose_data_range(Matrix(3, 2), Matrix(5, 1));
            }).find("simulated"),
            std::string::npos);
  EXPECT_THROW(diagnose_data_range(Matrix(0, 1), Matrix(5, 1)), ArgumentError);
  EXPECT_THROW(diagnose_data_range(Matrix(3, 1), Matrix(1, 1)), ArgumentError);
}

}  // namespace
}  // namespace neyman
