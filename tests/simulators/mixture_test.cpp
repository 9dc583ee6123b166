#include "neyman/simulators/mixture.hpp"

#include "neyman/data/settings_file.hpp"
#include "neyman/simulators/exponential.hpp"
#include "neyman/simulators/normal.hpp"
#include "neyman/simulators/ricker.hpp"
#include "neyman/simulators/uniform.hpp"
#include "not_finite.hpp"
#include "simulators/reference.hpp"

namespace neyman {
namespace {

const ParameterSpace weight_space({{"gamma", 0, 1, {}}});

template <class T, class... Args>
DistributionPtr make(Args... args) {
  return std::make_shared<T>(args...);
}

/// The paper's first example.
Mixture three_normals() {
  return Mixture(
      {make<Normal>(-2.0, 0.25), make<Normal>(0.0, 2.0), make<Normal>(1.0, 0.5)},
      {{"(1-gamma)/2", weight_space}, {"(1-gamma)/2", weight_space}, {"gamma", weight_space}});
}

TEST(Mixture, IsTheWeightedSumOfItsComponents) {
  const auto mixture = three_normals();
  for (const double gamma : {0.0, 0.05, 0.9, 1.0}) {
    const std::vector<double> point{gamma};
    for (const double x : {-4.0, -2.0, 0.3, 1.0, 6.0}) {
      double sum = 0.0;
      const std::vector<double> weight{(1 - gamma) / 2, (1 - gamma) / 2, gamma};
      for (std::size_t k = 0; k < 3; ++k)
        sum +=
            weight[k] * std::exp(reference::log_density_at(*mixture.components()[k], point, {x}));
      EXPECT_NEAR(reference::log_density_at(mixture, point, {x}), std::log(sum), 1e-12);
    }
    EXPECT_NEAR(reference::integral(mixture, point, -20, 20), 1.0, 1e-9);
  }
}

TEST(Mixture, LogDensityIsFiniteWhereEveryDensityUnderflows) {
  // The wide component alone counts at 1000: log of ½ N(1000; 0, 2).
  const double expected = std::log(0.5) + reference::log_density_at(Normal(0.0, 2.0), {}, {1000.0});
  EXPECT_NEAR(reference::log_density_at(three_normals(), std::vector{0.0}, {1000.0}), expected,
              1e-9);
}

TEST(Mixture, TheLastWeightMayBeImplied) {
  const auto full = three_normals();
  const Mixture implied(full.components(),
                        {{"(1-gamma)/2", weight_space}, {"(1-gamma)/2", weight_space}});
  const auto weights = implied.weights(std::vector{0.3});
  ASSERT_EQ(weights.size(), 3u);
  EXPECT_NEAR(weights[2], 0.3, 1e-15);
  for (const double x : {-2.0, 0.0, 1.0})
    EXPECT_NEAR(reference::log_density_at(implied, std::vector{0.3}, {x}),
                reference::log_density_at(full, std::vector{0.3}, {x}), 1e-14);
}

TEST(Mixture, SkipsComponentsOfWeightZero) {
  // The second component is not allowed at gamma = 0, but does not occur there either.
  const Mixture mixture(
      {make<Normal>(0.0, 1.0), make<Normal>(Expression(5.0), Expression("gamma", weight_space))},
      {{"1 - gamma", weight_space}, {"gamma", weight_space}});
  const std::vector<double> zero{0.0};
  EXPECT_EQ(reference::log_density_at(mixture, zero, {0.7}),
            reference::log_density_at(Normal(0.0, 1.0), {}, {0.7}));
  const auto x = sample(mixture, zero, 5000, 1, "test");
  EXPECT_LT(*std::max_element(x.values().begin(), x.values().end()), 6.0);
  EXPECT_NEAR(mixture.quantile(zero, 0.5), 0.0, 1e-12);
}

TEST(Mixture, IsImpossibleOnlyWhereAllComponentsAre) {
  const Mixture mixture({make<Uniform>(0.0, 1.0), make<Exponential>(1.0, 2.0)}, {0.5, 0.5});
  EXPECT_EQ(reference::log_density_at(mixture, {}, {1.5}), -infinity);
  EXPECT_DOUBLE_EQ(reference::log_density_at(mixture, {}, {0.5}), std::log(0.5));
  EXPECT_EQ(mixture.quantile({}, 0.0), 0.0);
}

TEST(Mixture, RefusesWeightsThatAreNone) {
  const auto parts = three_normals().components();
  EXPECT_THROW(Mixture(parts, {0.5, 0.6, -0.1}), ArgumentError);
  EXPECT_TRUE(reference::contains(reference::error_of([&] {
                                    Mixture(parts, {0.5, 0.4, 0.2});
                                  }),
                                  "mixture: the sum of weights is 1.1, but must be 1"));
  EXPECT_THROW(Mixture(parts, {0.9, 0.2}), ArgumentError);  // −0.1 implied
  EXPECT_THROW(Mixture(parts, {1.0}), ArgumentError);
  EXPECT_THROW(Mixture({}, {}), ArgumentError);
  EXPECT_THROW(Mixture(parts, {0.2, 0.3, 0.5}, {"a", "b", "a"}), ArgumentError);
  EXPECT_NO_THROW(Mixture(parts, {0.1, 0.2, 0.7}));  // sums to 1 within rounding
  const auto message =
      reference::error_of([] { three_normals().weights(std::vector<double>{1.25}); });
  EXPECT_TRUE(reference::contains(message, "weights[0] is -0.125")) << message;
}

TEST(Mixture, OfOneComponentIsThatComponent) {
  const Mixture mixture({make<Normal>(1.0, 2.0)}, {});
  EXPECT_EQ(mixture.weights({}), (std::vector<double>{1.0}));
  EXPECT_DOUBLE_EQ(reference::log_density_at(mixture, {}, {3.0}),
                   reference::log_density_at(Normal(1.0, 2.0), {}, {3.0}));
}

TEST(Mixture, HasADensityOnlyIfAllComponentsDo) {
  Ricker::Config config;
  config.observations = 1;
  const Mixture mixture({make<Normal>(0.0, 1.0), std::make_shared<Ricker>(3.8, 10.0, 0.3, config)},
                        {0.5, 0.5});
  EXPECT_FALSE(mixture.has_density());
  EXPECT_THROW(log_density(mixture, {}, Matrix(1, 1)), ArgumentError);
  EXPECT_THROW(Mixture({make<Normal>(0.0, 1.0), make<Ricker>(3.8, 10.0, 0.3)}, {0.5, 0.5}),
               ArgumentError);  // dimensions 1 and 50
}

TEST(Mixture, QuantileInvertsTheCdf) {
  const auto mixture = three_normals();
  const std::vector<double> point{0.05};
  for (const double p : {1e-9, 0.01, 0.4, 0.5, 0.77, 1 - 1e-9})
    EXPECT_NEAR(mixture.cdf(point, mixture.quantile(point, p)), p, 1e-13);
}

// False alarm 1e-6 (Kolmogorov–Smirnov).
TEST(Mixture, SamplesFollowTheCdf) {
  const auto mixture = three_normals();
  const std::vector<double> point{0.3};
  const auto x = sample(mixture, point, 50000, 5, "test");
  EXPECT_GT(reference::ks_p_value(x.column(0), [&](double v) { return mixture.cdf(point, v); }),
            reference::false_alarm);
}

// Rows are independent in their order: neighbours are as often of one component as chance says.
// False alarm below 1e-6 (five standard errors).
TEST(Mixture, RowsAreIndependent) {
  const Mixture mixture({make<Normal>(-100.0, 1.0), make<Normal>(100.0, 1.0)}, {0.3});
  const std::size_t n = 100000;
  const auto x = sample(mixture, {}, n, 6, "test");
  double same = 0.0;
  for (std::size_t i = 1; i < n; ++i) same += x(i, 0) * x(i - 1, 0) > 0.0 ? 1.0 : 0.0;
  // P(same) = 0.3² + 0.7² = 0.58; neighbouring pairs share an event, which widens the spread.
  EXPECT_NEAR(same / (n - 1), 0.58, 5.0 * std::sqrt(0.58 * 0.42 * 2.0 / n));
  double first = 0.0;
  for (std::size_t i = 0; i < n; ++i) first += x(i, 0) < 0.0 ? 1.0 : 0.0;
  EXPECT_NEAR(first / n, 0.3, 5.0 * std::sqrt(0.21 / n));
}

const ParameterSpace yield_space({{"mu", 0, 3, 1.0}, {"size", 0.5, 1.5, 1.0}});

TEST(Mixture, YieldsAreSharesOfTheirSum) {
  const auto mixture = Mixture::of_yields(
      {make<Normal>(0.0, 1.0), make<Normal>(1.0, 1.0), make<Normal>(2.0, 1.0)},
      {Expression("20*mu", yield_space), Expression("size > 1 ? 50*size : 50", yield_space), 30.0},
      yield_space, {"signal", "first", "second"});
  ASSERT_EQ(mixture->yields().size(), 3u);
  const std::vector<double> point = {2.0, 1.2};
  EXPECT_EQ(mixture->yields()[1](point), 60.0);
  const auto weights = mixture->weights(point);
  EXPECT_NEAR(weights[0], 40.0 / 130.0, 1e-15);
  EXPECT_NEAR(weights[1], 60.0 / 130.0, 1e-15);
  EXPECT_NEAR(weights[2], 30.0 / 130.0, 1e-15);
  EXPECT_EQ(mixture->depends_on(0), true);
  EXPECT_EQ(mixture->depends_on(1), true);
  EXPECT_TRUE(three_normals().yields().empty());
  EXPECT_THROW(Mixture::of_yields({make<Normal>(0.0, 1.0)}, {1.0, 2.0}, yield_space),
               ArgumentError);
}

/// The problems of a mixture's table.
std::vector<std::string> mixture_problems(const std::string& keys) {
  auto settings = parse_settings("kind = \"mixture\"\n" + keys +
                                     "\ncomponents = [{ kind = \"normal\", mean = 0, sigma = 1 },\n"
                                     "  { kind = \"normal\", mean = 1, sigma = 1 }]\n",
                                 "study.toml");
  const auto made = make_distribution(settings, yield_space);
  std::vector<std::string> out;
  for (const auto& problem : settings.problems()) out.push_back(to_string(problem));
  EXPECT_EQ(made == nullptr, !out.empty());
  return out;
}

TEST(Mixture, YieldsAreCheckedOverTheRanges) {
  using Problems = std::vector<std::string>;
  EXPECT_EQ(mixture_problems("yields = [\"20*mu\", \"50*size\"]"), Problems{});
  EXPECT_EQ(
      mixture_problems("yields = [\"20*mu\", \"50 - 20*mu\"]"),
      Problems{"study.toml:2: yields[1] is \"50 - 20*mu\", which is -10 at mu = 3, but must not "
               "be negative anywhere in the ranges"});
  EXPECT_EQ(mixture_problems("yields = [\"20*mu*(size - 1)\", 5]").size(), 1u);
  EXPECT_EQ(mixture_problems("yields = [-1, 5]"),
            Problems{"study.toml:2: yields[0] is -1, but must not be negative"});
  EXPECT_EQ(mixture_problems("yields = [1, 2, 3]"),
            Problems{"study.toml:2: yields has 3 values, but must have 2, one for each component"});
  EXPECT_EQ(
      mixture_problems("weights = [0.5]\nyields = [1, 2]"),
      Problems{"study.toml:3: yields stands beside weights, but only one of them can be given"});
  EXPECT_EQ(mixture_problems("yields = [\"1/mu\", 2]").size(), 1u);
}

TEST(MixtureWeights, DerivativesOfFormulas) {
  const ParameterSpace space({{"a", 0.0, 1.0, {}}, {"b", -1.0, 1.0, {}}, {"c", 0.0, 1.0, {}}});
  const MixtureWeights weights(
      {Expression("a^2 / 2", space), Expression("(1 - a) * (1 + b) / 4", space)}, 3);
  // The last: at the end of a range, where differences are one-sided.
  for (const auto& point :
       {std::vector{0.3, 0.2, 0.5}, std::vector{0.6, -0.4, 0.0}, std::vector{0.0, 1.0, 1.0}}) {
    const double a = point[0], b = point[1];
    const auto first = weights.derivatives(point, space);
    EXPECT_NEAR(first(0, 0), a, 1e-5);
    EXPECT_NEAR(first(1, 0), -(1 + b) / 4, 1e-8);
    EXPECT_NEAR(first(1, 1), (1 - a) / 4, 1e-8);
    EXPECT_EQ(first(0, 1), 0.0);
    for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(first(c, 2), 0.0);
    for (std::size_t p = 0; p < 3; ++p) EXPECT_NEAR(first(2, p), -first(0, p) - first(1, p), 1e-9);
    Matrix second[3] = {Matrix(3, 3), Matrix(3, 3), Matrix(3, 3)};
    for (const auto& term : weights.second_derivatives(point, space)) {
      EXPECT_LE(term.first, term.second);
      second[term.component](term.first, term.second) += term.value;
    }
    EXPECT_NEAR(second[0](0, 0), 1.0, 1e-6);
    EXPECT_NEAR(second[1](0, 1), -0.25, 1e-6);
    EXPECT_NEAR(second[2](0, 0), -1.0, 1e-6);
    EXPECT_NEAR(second[2](0, 1), 0.25, 1e-6);
    for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(second[c](1, 1), 0.0, 1e-6);
  }
}

TEST(MixtureWeights, DerivativesAtTheEdgeOfWhatIsAllowed) {
  // a + b = 1: the third weight is nothing, and a step in a or b would make it negative.
  const ParameterSpace space({{"a", 0.0, 1.0, {}}, {"b", 0.0, 1.0, {}}});
  for (const bool all : {false, true}) {
    std::vector<Expression> formulas = {Expression("a", space), Expression("b", space)};
    if (all) formulas.push_back(Expression("1 - a - b", space));
    const MixtureWeights weights(formulas, 3);
    for (const auto& point :
         {std::vector{0.6, 0.4}, std::vector{1.0, 0.0}, std::vector{0.0, 1.0}}) {
      const auto slopes = weights.derivatives(point, space);
      const double expected[3][2] = {{1, 0}, {0, 1}, {-1, -1}};
      for (std::size_t c = 0; c < 3; ++c)
        for (std::size_t p = 0; p < 2; ++p) EXPECT_NEAR(slopes(c, p), expected[c][p], 1e-9);
    }
    EXPECT_THROW(weights.derivatives(std::vector{0.7, 0.4}, space), ArgumentError);
  }
  // A formula that is finite on one side alone.
  const MixtureWeights root({Expression("sqrt(a - 0.25)", space)}, 2);
  EXPECT_NEAR(root.derivatives(std::vector{0.5, 0.0}, space)(0, 0), 1.0, 1e-8);
  EXPECT_TRUE(std::isfinite(root.derivatives(std::vector{0.25, 0.0}, space)(0, 0)));
}

}  // namespace
}  // namespace neyman
