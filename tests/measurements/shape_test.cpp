#include "neyman/measurements/shape.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "known_models.hpp"
#include "measurements/evaluator.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/inference/statistics.hpp"
#include "neyman/measurements/model_fit.hpp"
#include "neyman/ratios/ratio.hpp"
#include "neyman/ratios/separable_ratio.hpp"
#include "neyman/simulators/join.hpp"
#include "neyman/simulators/normal.hpp"

namespace neyman {
namespace {

void expect_shape_derivatives(const Shape& shape, const std::vector<double>& point) {
  const std::size_t n = point.size(), count = shape.functions();
  const double step = 1e-5;
  std::vector<double> values(count), first(count * n), second(count * n * n);
  std::vector<double> up(count), down(count), first_up(count * n), first_down(count * n);
  shape.evaluate(point, values, first, second);
  for (std::size_t p = 0; p < n; ++p) {
    auto above = point, below = point;
    above[p] += step;
    below[p] -= step;
    shape.evaluate(above, up, first_up, {});
    shape.evaluate(below, down, first_down, {});
    for (std::size_t k = 0; k < count; ++k) {
      EXPECT_NEAR(first[k * n + p], (up[k] - down[k]) / (2.0 * step), 1e-6) << k << " " << p;
      for (std::size_t q = 0; q < n; ++q)
        EXPECT_NEAR(second[(k * n + p) * n + q],
                    (first_up[k * n + q] - first_down[k * n + q]) / (2.0 * step), 2e-5)
            << k << " " << p << " " << q;
    }
  }
}

void expect_zero(const Shape& shape) {
  std::vector<double> values(shape.functions());
  shape.evaluate(shape.nominal(), values, {}, {});
  for (const double value : values) EXPECT_NEAR(value, 0.0, 1e-12);
}

/// The mass of a signal and a scale that moves it: x0 ~ N(mass · scale, 0.3), x1 ~ N(scale, 0.5).
ParameterSpace mass_and_scale() {
  return ParameterSpace({{"mass", 4.0, 6.0, {}}, {"scale", 0.9, 1.1, {}, true}});
}
DistributionPtr moving_signal() {
  const auto parameters = mass_and_scale();
  return std::make_shared<Join>(std::vector<DistributionPtr>{
      std::make_shared<Normal>(Expression("mass * scale", parameters), 0.3),
      std::make_shared<Normal>(Expression("scale", parameters), 0.5)});
}
const std::vector<double> nominal_point{5.0, 1.0};

Matrix draw(const Distribution& from, std::span<const double> point, std::size_t count,
            RandomStream& random) {
  Matrix out(count, from.dimension());
  from.sample(point, random, out);
  return out;
}

TEST(Shape, VariationsGoThroughTheirEnds) {
  const auto shape = variation("alpha");
  EXPECT_EQ(shape->parameters().names(), (std::vector<std::string>{"alpha"}));
  EXPECT_TRUE(shape->parameters()[0].nuisance);
  EXPECT_EQ(shape->breaks(0), (std::vector<double>{-1.0, 1.0}));
  std::vector<double> b(2);
  for (const auto& [alpha, low, high] : std::vector<std::array<double, 3>>{
           {-1.0, 1.0, 0.0}, {1.0, 0.0, 1.0}, {2.5, 0.0, 2.5}, {-3.0, 3.0, 0.0}}) {
    shape->evaluate(std::vector<double>{alpha}, b, {}, {});
    EXPECT_NEAR(b[0], low, 1e-12) << alpha;
    EXPECT_NEAR(b[1], high, 1e-12) << alpha;
  }
  expect_zero(*shape);
  for (const double alpha : {-2.0, -0.3, 0.0, 0.8, 1.7}) expect_shape_derivatives(*shape, {alpha});
}

TEST(Shape, LatticesReproduceExactRatios) {
  // log r is a polynomial of second degree in the mass and of second in the scale, times each
  // other: a lattice of these degrees is exact between its nodes.
  const LatticeShape shape(mass_and_scale(), nominal_point, {2, 2});
  EXPECT_EQ(shape.functions(), 9u);
  expect_zero(shape);
  expect_shape_derivatives(shape, {4.3, 1.04});
  const auto signal = moving_signal();
  const ExactRatio exact(signal);
  RandomStream random(1, "events");
  const auto x = draw(*signal, nominal_point, 20, random);
  const auto f = shape.describe(exact, x);
  std::vector<double> b(9);
  for (const auto& point : std::vector<std::vector<double>>{{4.0, 0.9}, {5.7, 1.02}, {4.4, 1.1}}) {
    shape.evaluate(point, b, {}, {});
    const auto logs = exact.log_ratios(x, point, nominal_point);
    for (std::size_t i = 0; i < x.rows(); ++i) {
      double sum = 0.0;
      for (std::size_t k = 0; k < 9; ++k) sum += b[k] * f(k, i);
      EXPECT_NEAR(sum, logs[i], 1e-9 * (1.0 + std::abs(logs[i])));
    }
  }
}

TEST(Shape, LatticesRefuseWhatTheyCannotBe) {
  const auto message = [](std::vector<double> nominal, std::vector<std::size_t> degrees) {
    try {
      LatticeShape(mass_and_scale(), std::move(nominal), std::move(degrees));
    } catch (const ArgumentError& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_EQ(message({5.0, 1.0}, {2}),
            "LatticeShape: degrees has 1 values, but must have 2 (one for each parameter)");
  EXPECT_NE(message({5.0, 2.0}, {2, 2}), "nothing was thrown");
  EXPECT_NE(message({5.0, 1.0}, {2, 0}), "nothing was thrown");
}

TEST(Shape, SeparableRatiosAreTheirFunctions) {
  const ParameterSpace parameters({{"shift", -1.0, 1.0, {}}});
  const Design design(parameters);
  const Normal normal(Expression("shift", parameters), 1.0);
  SeparableRatio::Config config;
  config.hidden = {16};
  config.degree = 3;
  config.epochs = 2;
  config.recentre = false;
  const SeparableRatio ratio(simulate(normal, parameters, design, 4000, 3, "across"), design,
                             config);
  const auto shape = separable_shape(ratio, {0.2});
  expect_zero(*shape);
  expect_shape_derivatives(*shape, {-0.4});
  EXPECT_FALSE(shape->parameters()[0].nuisance);
  // log r − Σ b f is −c(θ) + c(θ1): the same for all events.
  const Matrix x(4, 1, {-2.0, 0.1, 0.9, 3.0});
  const auto f = ratio.functions(x);
  ASSERT_EQ(f.rows(), shape->functions());
  std::vector<double> b(f.rows());
  for (const double theta : {-0.9, 0.0, 0.7}) {
    shape->evaluate(std::vector<double>{theta}, b, {}, {});
    const auto logs = ratio.log_ratios(x, std::vector{theta}, std::vector{0.2});
    std::vector<double> rest(x.rows());
    for (std::size_t i = 0; i < x.rows(); ++i) {
      rest[i] = logs[i];
      for (std::size_t k = 0; k < b.size(); ++k) rest[i] -= b[k] * f(k, i);
      EXPECT_NEAR(rest[i], rest[0], 1e-6) << theta;
    }
  }
  // Replicas differ from it and from each other, by little.
  const auto one = ratio.functions(x, 1), two = ratio.functions(x, 2);
  EXPECT_NE(one, f);
  EXPECT_NE(one, two);
  EXPECT_EQ(one, ratio.functions(x, 1));
  EXPECT_NEAR(one(0, 1), f(0, 1), 0.5);
}

/// A signal of unknown mass over a flat-ish background N((5, 1), (2, 1)); the reference is the
/// background. `scale` is known to 2 %, and `mass` is free.
struct MassModel {
  double signal = 100.0, background = 900.0;
  DistributionPtr moving = moving_signal();
  DistributionPtr still = std::make_shared<Join>(std::vector<DistributionPtr>{
      std::make_shared<Normal>(5.0, 2.0), std::make_shared<Normal>(1.0, 1.0)});
  std::shared_ptr<const LatticeShape> shape = std::make_shared<LatticeShape>(
      mass_and_scale(), nominal_point, std::vector<std::size_t>{2, 2});

  std::shared_ptr<const UnbinnedEvents> events(const Matrix& x) const {
    auto out = std::make_shared<UnbinnedEvents>();
    std::vector<double> top(x.rows()), bottom(x.rows());
    moving->log_density(nominal_point, x, top);
    still->log_density({}, x, bottom);
    out->ratios = Matrix(2, x.rows());
    for (std::size_t i = 0; i < x.rows(); ++i) {
      out->ratios(0, i) = std::exp(top[i] - bottom[i]);
      out->ratios(1, i) = 1.0;
    }
    out->functions = shape->describe(ExactRatio(moving), x);
    return out;
  }
  Matrix data(double mu, double mass, double scale, RandomStream& random) const {
    auto out = draw(*moving, std::vector<double>{mass, scale}, random.poisson(mu * signal), random);
    out.append(draw(*still, {}, random.poisson(background), random));
    return out;
  }
  UnbinnedChannel channel(const Matrix& x, std::size_t simulated = 40000) const {
    // Half of the simulated events are where the signal may be, with weights to the background.
    RandomStream random(1, "simulated");
    auto pool = draw(*still, {}, simulated / 2, random);
    const Normal near(5.0, 0.9), far(1.0, 0.6);
    const Join spread({std::make_shared<Normal>(near), std::make_shared<Normal>(far)});
    pool.append(draw(spread, {}, simulated / 2, random));
    std::vector<double> bottom(pool.rows()), beside(pool.rows());
    still->log_density({}, pool, bottom);
    spread.log_density({}, pool, beside);
    auto described = std::make_shared<UnbinnedEvents>(*events(pool));
    for (std::size_t j = 0; j < pool.rows(); ++j)
      described->weights.push_back(2.0 / (1.0 + std::exp(beside[j] - bottom[j])));
    return {"events",
            {{"signal", signal, {Modifier::norm_factor("mu")}, {shape}},
             {"background", background, {Modifier::norm_sys("size", 0.9, 1.1)}}},
            events(x),
            described};
  }
  static Workspace workspace() {
    ParameterSettings mu{"mu", {1.0}, {{-1.0, 10.0}}};
    ParameterSettings scale{"scale"};
    scale.sigma = {0.02};
    return {{}, {{"measurement", "mu", {mu, scale}}}};
  }
};

Matrix some_masses(double mass = 5.3) {
  RandomStream random(4, "data");
  return MassModel().data(1.0, mass, 1.0, random);
}

TEST(Shape, ParametersAreFreeOrConstrainedAsTheShapeSays) {
  const MassModel exact;
  const StatisticalModel model(MassModel::workspace(), {exact.channel(some_masses(), 2000)});
  EXPECT_EQ(model.parameters().names(), (std::vector<std::string>{"mu", "mass", "scale", "size"}));
  EXPECT_EQ(model.start(), (std::vector<double>{1.0, 5.0, 1.0, 0.0}));
  EXPECT_EQ(model.parameters()[1].low, 4.0);
  EXPECT_EQ(model.parameters()[1].high, 6.0);
  EXPECT_FALSE(model.constraint_of(1));
  ASSERT_TRUE(model.constraint_of(2));
  const auto& constraint = model.constraints()[*model.constraint_of(2)];
  EXPECT_EQ(constraint.observed(), 1.0);
  EXPECT_EQ(constraint.width(), 0.02);
  EXPECT_NEAR(model.parameters()[2].low, 0.9, 1e-12);  // five sigma, and the end of the range
}

TEST(Shape, LikelihoodIsThatOfTheExactDensities) {
  const MassModel exact;
  const auto x = some_masses();
  const StatisticalModel model(MassModel::workspace(), {exact.channel(x)});
  const ModelLikelihood likelihood(model, model.observed());
  std::vector<double> top(x.rows()), bottom(x.rows());
  exact.still->log_density({}, x, bottom);
  const auto formula = [&](double mu, double mass, double scale, double size) {
    exact.moving->log_density(std::vector<double>{mass, scale}, x, top);
    const double s = mu * exact.signal, b = std::pow(1.1, size) * exact.background;
    double sum = -s - b - 0.5 * size * size - 0.5 * std::pow((scale - 1.0) / 0.02, 2);
    for (std::size_t i = 0; i < x.rows(); ++i)
      sum += std::log(s * std::exp(top[i]) + b * std::exp(bottom[i]));
    return sum;
  };
  const double base = likelihood(std::vector{1.0, 5.0, 1.0, 0.0}) - formula(1.0, 5.0, 1.0, 0.0);
  // Z is a mean over 40 000 events, good to half a percent; there are 100 events of signal.
  for (const auto& point : std::vector<std::vector<double>>{
           {1.0, 5.3, 1.0, 0.0}, {1.4, 4.6, 1.03, 1.0}, {0.7, 5.6, 0.97, -1.0}})
    EXPECT_NEAR(likelihood(point) - formula(point[0], point[1], point[2], point[3]), base, 1.0);
  const auto best = fit_model(model);
  ASSERT_TRUE(best.ok()) << best.message;
  // The exact maximum is nearby: its likelihood has hardly a slope there, in units of its
  // curvature.
  const auto information = likelihood.information(best.point);
  for (std::size_t p = 0; p < 2; ++p) {
    auto up = best.point, down = best.point;
    const double step = 0.05 / std::sqrt(information(p, p));
    up[p] += step;
    down[p] -= step;
    EXPECT_NEAR(
        (formula(up[0], up[1], up[2], up[3]) - formula(down[0], down[1], down[2], down[3])) / 0.1,
        0.0, 0.25)
        << p;
  }
}

TEST(Shape, DerivativesEqualDifferences) {
  const MassModel exact;
  const StatisticalModel model(MassModel::workspace(), {exact.channel(some_masses(), 2000)});
  for (const auto& point : std::vector<std::vector<double>>{
           {1.0, 5.0, 1.0, 0.0}, {0.4, 4.5, 1.04, 0.7}, {0.0, 5.7, 0.95, -1.2}})
    testing::expect_derivatives(model, point);
}

TEST(Shape, TablesOfZEqualItsSum) {
  const MassModel exact;
  auto channel = exact.channel(some_masses(), 3000);
  // A second shape of the background, with breaks in its derivatives.
  const auto with_variation = [](const UnbinnedEvents& events) {
    auto out = std::make_shared<UnbinnedEvents>(events);
    out->functions = Matrix(11, events.size());
    for (std::size_t k = 0; k < 9; ++k)
      for (std::size_t i = 0; i < events.size(); ++i) out->functions(k, i) = events.functions(k, i);
    for (std::size_t i = 0; i < events.size(); ++i) {
      out->functions(9, i) = -0.2 + 0.01 * std::sin(static_cast<double>(i));
      out->functions(10, i) = 0.3 * std::cos(0.1 * static_cast<double>(i));
    }
    return out;
  };
  channel.components[1].shapes = {variation("tilt")};
  channel.observed = with_variation(*channel.observed);
  channel.simulated = with_variation(*channel.simulated);
  const StatisticalModel model(MassModel::workspace(), {channel});
  for (const auto& component : model.compiled().unbinned[0].components)
    ASSERT_NE(component.table->get(), nullptr);
  detail::Evaluator by_table(model.compiled(), true), by_sum(model.compiled());
  for (const auto& point : std::vector<std::vector<double>>{
           {1.0, 5.0, 1.0, 0.0, 0.0}, {2.0, 4.1, 0.92, 0.3, 4.0}, {0.3, 5.9, 1.08, 1.0, -0.6}}) {
    const double value = by_table(point, model.observed(), detail::EvaluationOrder::hessian);
    EXPECT_NEAR(value, by_sum(point, model.observed(), detail::EvaluationOrder::hessian), 1e-4);
    for (std::size_t p = 0; p < model.size(); ++p)
      EXPECT_NEAR(by_table.gradient()[p], by_sum.gradient()[p],
                  1e-4 * (1.0 + std::abs(by_sum.gradient()[p])));
    for (std::size_t k = 0; k < by_sum.hessian().size(); ++k)
      EXPECT_NEAR(by_table.hessian()[k], by_sum.hessian()[k],
                  1e-3 * (1.0 + std::abs(by_sum.hessian()[k])));
  }
}

TEST(Shape, MassAndStrengthAreMeasuredWithoutBias) {
  // 100 datasets; the means of the pulls within 4.5 standard errors (false alarm 7e-6 each) and
  // what the finite number of simulated events moves them by.
  const MassModel exact;
  const StatisticalModel model(MassModel::workspace(), {exact.channel(some_masses())});
  const std::size_t count = 100;
  std::vector<double> strength(count), mass(count);
  parallel_tasks(count, [&](std::size_t i) {
    RandomStream random(9, "repetition", i);
    auto data = model.observed();
    data.events = {exact.events(exact.data(1.0, 5.4, 1.0, random))};
    data.auxiliary = {1.0 + 0.02 * random.normal(), random.normal()};
    const auto best = fit_model(model, data);
    ASSERT_TRUE(best.ok()) << best.message;
    strength[i] = (best.point[0] - 1.0) / best.error(0);
    mass[i] = (best.point[1] - 5.4) / best.error(1);
  });
  for (const auto* pull : {&strength, &mass}) {
    EXPECT_NEAR(mean(*pull), 0.0, 4.5 / std::sqrt(static_cast<double>(count)) + 0.15);
    EXPECT_NEAR(standard_deviation(*pull), 1.0, 4.5 / std::sqrt(2.0 * static_cast<double>(count)));
  }
}

std::string refusal(const std::function<void(UnbinnedChannel&, Workspace&)>& change) {
  auto channel = MassModel().channel(some_masses(), 200);
  auto workspace = MassModel::workspace();
  change(channel, workspace);
  return testing::refusal_of(workspace, channel);
}

TEST(Shape, WrongInputsAreRefused) {
  EXPECT_EQ(refusal([](auto&, auto&) {}), "nothing was thrown");
  EXPECT_EQ(refusal([](auto&, auto& workspace) {
              workspace.measurements[0].parameters.push_back({"mass", {}, {{3.0, 5.5}}});
            }),
            "StatisticalModel: settings of 'mass': range is [3, 5.5], but must be inside of [4, "
            "6], where its shapes are known");
  EXPECT_EQ(refusal([](auto& channel, auto&) { channel.components[0].shapes = {nullptr}; }),
            "StatisticalModel: channel 'events', component 'signal', shapes is missing, but must "
            "be given");
  EXPECT_EQ(refusal([](auto& channel, auto&) {
              channel.components[0].shapes.push_back(variation("scale"));
            }),
            "StatisticalModel: channel 'events', component 'signal', shapes is 'scale' twice, but "
            "must be different names");
  EXPECT_EQ(refusal([](auto& channel, auto&) {
              channel.components[1].shapes.push_back(variation("scale"));
              auto wider = *channel.observed;
              wider.functions = Matrix(11, wider.size());
              channel.observed = channel.simulated = std::make_shared<UnbinnedEvents>(wider);
            }),
            "StatisticalModel: channel 'events', component 'background', shape 'scale', nominal "
            "value is 0, but must be 1, as of other shapes with this parameter");
  EXPECT_EQ(refusal([](auto& channel, auto&) { channel.components[0].shapes.clear(); }),
            "StatisticalModel: channel 'events', observed, functions, rows has 9 values, but must "
            "have 0 (one a function of a shape)");
}

}  // namespace
}  // namespace neyman
