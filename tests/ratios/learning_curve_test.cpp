#include "neyman/ratios/learning_curve.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "neyman/simulators/design.hpp"

namespace neyman {
namespace {

const ParameterSpace mean({{"mu", -2, 2, {}}});

/// x ~ N(μ, 1), and a second feature that tells nothing.
Samples simulate_mean(std::size_t n, std::uint64_t seed) {
  Samples events;
  events.feature_names = {"x", "idle"};
  events.parameter_names = {"mu"};
  events.theta = Design(mean).draw(n, seed, "theta");
  events.x = Matrix(n, 2);
  RandomStream random(seed, "events");
  for (std::size_t i = 0; i < n; ++i) {
    events.x(i, 0) = events.theta(i, 0) + random.normal();
    events.x(i, 1) = random.normal();
  }
  return events;
}

/// The exact ratio of N(slope μ, 1): that of the events where the slope is 1.
class Sloped final : public ParameterizedRatio {
 public:
  explicit Sloped(double slope) : ParameterizedRatio(mean), slope_(slope) {}
  std::string kind() const override { return "sloped"; }
  std::size_t features() const override { return 2; }
  LogRatios log_ratios(MatrixView x, std::span<const double> numerator,
                       std::span<const double> denominator) const override {
    LogRatios out(x.rows());
    for (std::size_t i = 0; i < x.rows(); ++i)
      out[i] = at(x(i, 0), numerator[0]) - at(x(i, 0), denominator[0]);
    return out;
  }
  std::unique_ptr<SummedRatio> over(MatrixView x, std::span<const double>) const override {
    struct Sum final : SummedRatio {
      double x, slope;
      double operator()(std::span<const double> point, std::span<double>) const override {
        return slope * point[0] * (x - 0.5 * slope * point[0]);
      }
      bool differentiable() const override { return false; }
      Matrix simulation_gradient_covariance(std::span<const double>) const override { return {}; }
    };
    auto sum = std::make_unique<Sum>();
    sum->x = x(0, 0);
    sum->slope = slope_;
    return sum;
  }
  std::size_t count_outside(MatrixView) const override { return 0; }
  void save(Archive&) const override {}

 private:
  double at(double x, double mu) const { return slope_ * mu * (x - 0.5 * slope_ * mu); }
  double slope_;
};

LearningCurve::Train sloped(std::function<double(std::size_t)> slope) {
  return [slope](const Samples& events) { return std::make_shared<Sloped>(slope(events.size())); };
}
const auto exact = sloped([](std::size_t) { return 1.0; });

// The exact ratio knows the mutual information of x and θ, nothing more is missing, and every other
// model knows less.
TEST(LearningCurve, OfTheExactRatioIsFlat) {
  const LearningCurve curve(simulate_mean(8000, 1), exact, 3);
  EXPECT_EQ(curve.events(), (std::array<std::size_t, 3>{1000, 2000, 4000}));
  EXPECT_EQ(curve.scores()[0], curve.scores()[2]);
  EXPECT_EQ(curve.rise().value, 0.0);
  EXPECT_FALSE(curve.rise().significant());
  EXPECT_NEAR(curve.missing().value, 0.0, 1e-12);
  EXPECT_FALSE(curve.saturated());
  EXPECT_EQ(curve.known().value, curve.scores()[2]);
  // log p(x|μ) / p(x) by quadrature over μ and x: 0.4187 nats. The error of 4000 events is 0.01; 64
  // others in the place of an integral cost less than 0.01. False alarm: 10⁻⁴.
  EXPECT_NEAR(curve.scores()[0], 0.4187, 0.045);
  const auto worse = curve.advantage_of(sloped([](std::size_t) { return 0.5; }));
  EXPECT_LT(worse.value, -3.0 * worse.error);
  EXPECT_EQ(curve.advantage_of(exact).value, 0.0);
  const auto again = curve.advantage_of(exact, sloped([](std::size_t) { return 0.5; }));
  EXPECT_DOUBLE_EQ(again.value, -worse.value);
  EXPECT_TRUE(again.significant());
}

// What is missing falls like n^(−0.7) where the square of the slope's error does: from three sizes
// it is told for all events.
TEST(LearningCurve, IsExtrapolatedToAllEvents) {
  constexpr std::size_t all = 16000;
  const auto error = [](std::size_t n) {
    return 0.3 * std::pow(static_cast<double>(n) / 2000.0, -0.5 * LearningCurve::exponent);
  };
  const auto events = simulate_mean(all, 2);
  const LearningCurve curve(events, sloped([&](std::size_t n) { return 1.0 - error(n); }), 4);
  EXPECT_TRUE(curve.rise().significant());
  const LearningCurve whole(events, exact, 4);  // the same events are held out
  const auto now = whole.advantage_of(exact, sloped([&](std::size_t) { return 1.0 - error(all); }));
  EXPECT_NEAR(curve.missing().value, now.value, 0.2 * now.value);
  EXPECT_GT(curve.missing().error, 0.0);
}

TEST(LearningCurve, KeepsGroupsTogetherCountsWeightsAndIgnoresThreads) {
  auto events = simulate_mean(4000, 5);
  const LearningCurve plain(events, exact, 1);
  // Twice the weight of all is the same.
  auto weighted = events;
  weighted.weights.assign(events.size(), 2.0);
  EXPECT_DOUBLE_EQ(LearningCurve(weighted, exact, 1).scores()[0], plain.scores()[0]);
  // Only events of high x count: they know more of μ than the others do.
  for (std::size_t i = 0; i < events.size(); ++i)
    weighted.weights[i] = std::abs(events.x(i, 0)) > 2.0 ? 1.0 : 1e-9;
  EXPECT_GT(LearningCurve(weighted, exact, 1).scores()[0], plain.scores()[0] + 0.2);
  // Copies of an event train together.
  auto grouped = events;
  for (std::size_t i = 0; i < events.size(); ++i)
    grouped.groups.push_back(static_cast<std::int64_t>(i / 4));
  const auto whole_groups = [](const Samples& some) {
    std::vector<std::size_t> count(1000);
    for (const auto group : some.groups) ++count[static_cast<std::size_t>(group)];
    for (const auto members : count) EXPECT_TRUE(members == 0 || members == 4);
    return std::make_shared<Sloped>(1.0);
  };
  const LearningCurve of_groups(grouped, whole_groups, 1);
  EXPECT_GT(of_groups.events()[2], 1500u);
  set_threads(3);
  EXPECT_EQ(LearningCurve(events, exact, 1).scores(), plain.scores());
  set_threads(0);
}

TEST(LearningCurve, SaturatesWhereEveryEventIsFound) {
  auto events = simulate_mean(2000, 6);
  for (std::size_t i = 0; i < events.size(); ++i) events.x(i, 0) = 1000.0 * events.theta(i, 0);
  const LearningCurve curve(events, sloped([](std::size_t) { return 1000.0; }), 1);
  EXPECT_TRUE(curve.saturated());
  EXPECT_NEAR(curve.scores()[2], std::log(65.0), 0.3);
}

TEST(LearningCurve, RefusesTooFewEvents) {
  try {
    const LearningCurve curve(simulate_mean(700, 1), exact, 1);
    FAIL();
  } catch (const ArgumentError& error) {
    EXPECT_NE(std::string(error.what()).find("events.size() is 700, but must be at least 800"),
              std::string::npos)
        << error.what();
  }
  auto few_groups = simulate_mean(1000, 1);
  for (std::size_t i = 0; i < few_groups.size(); ++i)
    few_groups.groups.push_back(static_cast<std::int64_t>(i % 2));
  EXPECT_THROW(LearningCurve(few_groups, exact, 1), ArgumentError);
}

}  // namespace
}  // namespace neyman
