#include "measurements/minimiser.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "known_models.hpp"

namespace neyman {
namespace {

using detail::Minimiser;
using testing::counting_workspace;
using testing::reference_model;
using testing::reference_names;

TEST(Minimiser, ArrivesFromAnywhereInTheRanges) {
  for (const auto* name : reference_names) {
    const auto model = reference_model(name);
    Minimiser minimise(model.compiled());
    const auto outcome = minimise(model.observed(), model.start());
    ASSERT_TRUE(outcome.ok) << name;
    EXPECT_LT(outcome.evaluations, 15) << name;
    const std::vector<double> best(minimise.point().begin(), minimise.point().end());
    for (std::uint64_t i = 0; i < 30; ++i) {
      RandomStream random(5, "starts", i);
      std::vector<double> start(model.size());
      for (std::size_t p = 0; p < start.size(); ++p) {
        const auto& parameter = model.parameters()[p];
        start[p] = parameter.low + random.uniform() * (parameter.high - parameter.low);
      }
      const auto other = minimise(model.observed(), start);
      ASSERT_TRUE(other.ok) << name << " " << i;
      EXPECT_NEAR(other.value, outcome.value, 1e-9) << name << " " << i;
      for (std::size_t p = 0; p < best.size(); ++p)
        EXPECT_NEAR(minimise.point()[p], best[p], 1e-5) << name << " " << i;
    }
  }
}

TEST(Minimiser, StaysInTheBoxAndOnWhatIsHeld) {
  const auto model = reference_model("correlated");
  Minimiser minimise(model.compiled());
  minimise(model.observed(), model.start());
  const std::vector<double> best(minimise.point().begin(), minimise.point().end());
  const std::size_t scale = model.parameters().index("scale");
  minimise.set_range(0, -5.0, best[0] - 0.3);
  minimise.hold(scale, best[scale] + 0.2);
  ASSERT_TRUE(minimise(model.observed(), model.start()).ok);
  EXPECT_EQ(minimise.point()[0], best[0] - 0.3);
  EXPECT_EQ(minimise.point()[scale], best[scale] + 0.2);
  minimise.evaluate_there(model.observed());
  EXPECT_TRUE(minimise.at_bound(0));
  EXPECT_FALSE(minimise.at_bound(scale));
  minimise.release(0);
  minimise.release(scale);
  ASSERT_TRUE(minimise(model.observed(), minimise.point()).ok);
  for (std::size_t p = 0; p < best.size(); ++p) EXPECT_NEAR(minimise.point()[p], best[p], 1e-6);
}

TEST(Minimiser, FollowsAParameterThatIsMoved) {
  for (const auto* name : reference_names) {
    const auto model = reference_model(name);
    Minimiser minimise(model.compiled()), other(model.compiled());
    const auto best = minimise(model.observed(), model.start());
    ASSERT_TRUE(best.ok) << name;
    const double value = minimise.point()[0] + 0.4;
    minimise.follow(0, value);
    EXPECT_EQ(minimise.point()[0], value);
    minimise.hold(0, value);
    other.hold(0, value);
    // What it was moved to is nearer to the minimum than the start of the model is.
    const auto followed = minimise(model.observed(), minimise.point()),
               from_start = other(model.observed(), model.start());
    ASSERT_TRUE(followed.ok && from_start.ok) << name;
    EXPECT_GT(followed.value, best.value) << name;
    EXPECT_NEAR(followed.value, from_start.value, 1e-9) << name;
    EXPECT_LE(followed.evaluations, from_start.evaluations) << name;
    for (std::size_t p = 0; p < model.size(); ++p)
      EXPECT_NEAR(minimise.point()[p], other.point()[p], 1e-6) << name;
  }
}

TEST(Minimiser, LeavesAStartWhereNothingIsExpected) {
  const StatisticalModel model(counting_workspace(3.0, 0.0, 5.0));
  Minimiser minimise(model.compiled());
  ASSERT_TRUE(minimise(model.observed(), std::vector<double>{0.0}).ok);
  EXPECT_NEAR(minimise.point()[0], 5.0 / 3.0, 1e-7);
}

TEST(Minimiser, SaysWhereItCannotArrive) {
  // Three events where none can be expected.
  auto workspace = counting_workspace(3.0, 0.0, 5.0);
  workspace.channels.push_back({"empty", {{"background", {0.0}}}, {3.0}});
  const StatisticalModel model(workspace);
  Minimiser minimise(model.compiled());
  const auto outcome = minimise(model.observed(), model.start());
  EXPECT_FALSE(outcome.ok);
  EXPECT_EQ(minimise.evaluate_there(model.observed()).forbidden_bin(), 1u);
}

TEST(Minimiser, FollowsAFlatDirectionNowhere) {
  // Only the product of two factors is known: every minimum has the same value.
  auto workspace = counting_workspace(3.0, 2.0, 14.0);
  workspace.channels[0].samples[0].modifiers.push_back(Modifier::norm_factor("nu"));
  const StatisticalModel model(workspace);
  Minimiser minimise(model.compiled());
  const auto outcome = minimise(model.observed(), model.start());
  ASSERT_TRUE(outcome.ok);
  EXPECT_NEAR(minimise.point()[0] * minimise.point()[1], 4.0, 1e-4);
  EXPECT_NEAR(outcome.value, 0.0, 1e-9);
}

}  // namespace
}  // namespace neyman
