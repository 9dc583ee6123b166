#include "neyman/measurements/learned_channel.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "known_models.hpp"
#include "neyman/classifiers/classifier.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/inference/statistics.hpp"
#include "neyman/measurements/model_fit.hpp"

namespace neyman {
namespace {

using testing::normal_density;

/// Features (x, y), unit normals around a place of each component: logarithms of ratios are linear,
/// which the classifier `logistic` learns exactly.
struct Place {
  double x, y;
  double density(double a, double b) const {
    return normal_density(a, x, 1.0) * normal_density(b, y, 1.0);
  }
};
constexpr Place signal_place{1.5, 0.5}, first_place{0.0, 0.0}, second_place{-0.5, 1.0};

Samples draw_at(const Place& place, std::size_t count, RandomStream& random) {
  Samples out;
  out.feature_names = {"x", "y"};
  out.x = Matrix(count, 2);
  for (std::size_t i = 0; i < count; ++i) {
    out.x(i, 0) = place.x + random.normal();
    out.x(i, 1) = place.y + random.normal();
  }
  return out;
}

/// The first background moves by ∓0.3 in x with `shift`, and the signal's x with `mass`.
std::vector<ComponentSamples> training_samples(std::size_t count, bool shapes = true) {
  RandomStream random(3, "training");
  std::vector<ComponentSamples> out;
  out.push_back({"signal", draw_at(signal_place, count, random), 1.0});
  out.push_back({"first", draw_at(first_place, count, random), 3.0});
  out.push_back({"second", draw_at(second_place, count, random), 2.0});
  if (!shapes) return out;
  out[1].variations.push_back(
      {"shift", draw_at({-0.3, 0.0}, count, random), draw_at({0.3, 0.0}, count, random)});
  const Design design(ParameterSpace({{"mass", -1.0, 1.0, {}}}));
  auto across = draw_at(signal_place, count, random);
  across.parameter_names = {"mass"};
  across.theta = design.draw(count, 5, "mass");
  for (std::size_t i = 0; i < count; ++i) across.x(i, 0) += across.theta(i, 0);
  out[0].across = ComponentSamples::Across{std::move(across), design, {0.0}};
  return out;
}

LearnedChannel::Config fast(std::size_t replicas = 0) {
  LearnedChannel::Config config;
  config.ratios.classifier = make_classifier("logistic");
  config.ratios.folds = 2;
  config.ratios.replicas = replicas;
  config.shape.hidden = {};
  config.shape.degree = 2;
  config.simulated = 15000;
  config.seed = 7;
  return config;
}

std::vector<UnbinnedComponent> yields() {
  return {{"second", 200.0, {Modifier::norm_factor("other")}},
          {"signal", 100.0, {Modifier::norm_factor("mu")}},
          {"first", 300.0}};
}

Workspace mu_workspace() { return {{}, {{"measurement", "mu", {{"mu", {1.0}, {{-3.0, 10.0}}}}}}}; }

double reference_density(double a, double b) {
  return (signal_place.density(a, b) + 3.0 * first_place.density(a, b) +
          2.0 * second_place.density(a, b)) /
         6.0;
}

Matrix some_events(std::size_t count = 500) {
  RandomStream random(11, "events");
  return draw_at(first_place, count, random).x;
}

/// The root mean square of log r̂ − log r, its mean taken out.
double deviation(std::span<const double> logs, const std::function<double(std::size_t)>& exact) {
  std::vector<double> differences;
  for (std::size_t i = 0; i < logs.size(); ++i) differences.push_back(logs[i] - exact(i));
  return standard_deviation(differences);
}

std::vector<double> logs_of(std::span<const double> ratios) {
  std::vector<double> out;
  for (const double ratio : ratios) out.push_back(std::log(ratio));
  return out;
}

TEST(LearnedChannel, RatiosAndShapesAreNearTheExactOnes) {
  const LearnedChannel channel(training_samples(15000), fast());
  EXPECT_EQ(channel.components(), (std::vector<std::string>{"signal", "first", "second"}));
  EXPECT_EQ(channel.feature_names(), (std::vector<std::string>{"x", "y"}));
  const auto x = some_events();
  const auto events = channel.describe(x);
  const Place places[] = {signal_place, first_place, second_place};
  for (std::size_t c = 0; c < 3; ++c)
    EXPECT_LT(deviation(logs_of(events.ratios.row(c)),
                        [&](std::size_t i) {
                          return std::log(places[c].density(x(i, 0), x(i, 1)) /
                                          reference_density(x(i, 0), x(i, 1)));
                        }),
              0.05)
        << c;
  // The functions of mass (2), then low and high of shift.
  ASSERT_EQ(events.functions.rows(), 4u);
  ASSERT_EQ(channel.shapes(0).size(), 1u);
  std::vector<double> b(2), moved(x.rows());
  for (const double mass : {-0.8, 0.5}) {
    channel.shapes(0)[0]->evaluate(std::vector<double>{mass}, b, {}, {});
    for (std::size_t i = 0; i < x.rows(); ++i)
      moved[i] = b[0] * events.functions(0, i) + b[1] * events.functions(1, i);
    EXPECT_LT(deviation(moved, [&](std::size_t i) { return mass * (x(i, 0) - 1.5); }), 0.05);
  }
  for (const std::size_t side : {0, 1})
    EXPECT_LT(deviation(events.functions.row(2 + side),
                        [&](std::size_t i) { return (side == 0 ? -0.3 : 0.3) * x(i, 0); }),
              0.05);
  EXPECT_LT(channel.count_outside(x), 50u);
  EXPECT_EQ(channel.count_outside(Matrix(1, 2, {100.0, 100.0})), 1u);
}

TEST(LearnedChannel, SimulatedEventsAreOfTheReference) {
  const LearnedChannel channel(training_samples(6000), fast());
  const auto& events = *channel.simulated();
  EXPECT_EQ(events.size(), 15000u);
  // Each component is a sixth, a half and a third of the weights, and its mean ratio is one.
  double total = 0.0;
  std::vector<double> parts(3), means(3);
  for (std::size_t j = 0; j < events.size(); ++j) {
    total += events.weights[j];
    parts[j / 5000] += events.weights[j];
    for (std::size_t c = 0; c < 3; ++c) means[c] += events.weights[j] * events.ratios(c, j);
  }
  EXPECT_NEAR(parts[0] / total, 1.0 / 6.0, 1e-12);
  EXPECT_NEAR(parts[1] / total, 1.0 / 2.0, 1e-12);
  for (const double mean_ratio : means) EXPECT_NEAR(mean_ratio / total, 1.0, 0.05);
}

TEST(LearnedChannel, OneReferenceInPlaceOfPairs) {
  auto config = fast();
  config.reference = "first";
  const auto x = some_events();
  const auto exact = [&](std::size_t i) {
    return std::log(signal_place.density(x(i, 0), x(i, 1)) / first_place.density(x(i, 0), x(i, 1)));
  };
  const LearnedChannel channel(training_samples(15000), config);
  const auto events = channel.describe(x);
  EXPECT_LT(deviation(logs_of(events.ratios.row(0)), exact), 0.05);
  for (const double ratio : events.ratios.row(1)) EXPECT_EQ(ratio, 1.0);
  EXPECT_EQ(channel.simulated()->size(), 15000u);
  EXPECT_TRUE(channel.consistency(x).empty());
  config.reference.clear();
  RandomStream random(4, "reference");
  config.reference_sample = draw_at(first_place, 15000, random);
  const LearnedChannel other(training_samples(15000, false), config);
  const auto beside = other.describe(x);
  EXPECT_LT(deviation(logs_of(beside.ratios.row(0)), exact), 0.05);
  EXPECT_LT(deviation(logs_of(beside.ratios.row(1)), [](std::size_t) { return 0.0; }), 0.05);
}

TEST(LearnedChannel, PairsAgreeWithEachOther) {
  const LearnedChannel channel(training_samples(15000, false), fast());
  const auto cycles = channel.consistency(some_events());
  ASSERT_EQ(cycles.size(), 1u);
  EXPECT_EQ(cycles[0].components, (std::array<std::size_t, 3>{0, 1, 2}));
  EXPECT_GT(cycles[0].scale, 0.5);
  EXPECT_LT(cycles[0].rms, 0.1);
  EXPECT_LE(std::abs(cycles[0].mean), cycles[0].rms);
}

TEST(LearnedChannel, FitsAreThoseOfTheExactDensities) {
  const LearnedChannel channel(training_samples(15000), fast());
  RandomStream random(8, "data");
  auto x = draw_at({signal_place.x + 0.4, signal_place.y}, 100, random).x;
  x.append(draw_at(first_place, 300, random).x);
  x.append(draw_at(second_place, 200, random).x);
  const StatisticalModel model(mu_workspace(), {channel.channel("events", yields(), x)});
  EXPECT_EQ(model.parameters().names(), (std::vector<std::string>{"mu", "mass", "shift", "other"}));
  const auto best = fit_model(model);
  ASSERT_TRUE(best.ok()) << best.message;
  // Within three errors of the truth (false alarm 1 % for the four), and with the exact ℓ near its
  // own maximum there: one error away it is lower by a half.
  const std::vector<double> truth{1.0, 0.4, 0.0, 1.0};
  for (std::size_t p = 0; p < 4; ++p) EXPECT_NEAR(best.point[p], truth[p], 3.0 * best.error(p));
  const auto exact = [&](const std::vector<double>& at) {
    double sum = -100.0 * at[0] - 300.0 - 200.0 * at[3] - 0.5 * at[2] * at[2];
    for (std::size_t i = 0; i < x.rows(); ++i)
      sum += std::log(100.0 * at[0] * Place{1.5 + at[1], 0.5}.density(x(i, 0), x(i, 1)) +
                      300.0 * Place{0.3 * at[2], 0.0}.density(x(i, 0), x(i, 1)) +
                      200.0 * at[3] * second_place.density(x(i, 0), x(i, 1)));
    return sum;
  };
  for (std::size_t p = 0; p < 4; ++p) {
    // The exact slope at the learned maximum, in units of the error: half of it is half an error.
    const double step = 0.05 * best.error(p);
    auto up = best.point, down = best.point;
    up[p] += step;
    down[p] -= step;
    EXPECT_NEAR((exact(up) - exact(down)) / 0.1, 0.0, 0.5) << p;
  }
}

/// (1 + κ) N(0, 1) − κ N(0, 0.6) from events with weights of both signs, beside N(0, 2.5). Features
/// x and x², so that ratios are functions of a linear score.
struct Signed {
  static constexpr double kappa = 0.4;
  static Samples with_square(const std::vector<double>& x) {
    Samples out;
    out.feature_names = {"x", "square"};
    out.x = Matrix(x.size(), 2);
    for (std::size_t i = 0; i < x.size(); ++i) out.x(i, 0) = x[i], out.x(i, 1) = x[i] * x[i];
    return out;
  }
  static std::vector<double> draw(double sigma, std::size_t count, RandomStream& random) {
    std::vector<double> out(count);
    for (auto& x : out) x = sigma * random.normal();
    return out;
  }
  static double density(double x) {
    return (1.0 + kappa) * normal_density(x, 0.0, 1.0) - kappa * normal_density(x, 0.0, 0.6);
  }
  static std::vector<ComponentSamples> training(std::size_t count) {
    RandomStream random(31, "signed");
    auto x = draw(1.0, count, random);
    const auto negative = draw(
        0.6, static_cast<std::size_t>(kappa / (1.0 + kappa) * static_cast<double>(count)), random);
    x.insert(x.end(), negative.begin(), negative.end());
    std::vector<ComponentSamples> out;
    out.push_back({"hole", with_square(x)});
    out[0].nominal.weights.assign(x.size(), 1.0);
    std::fill(out[0].nominal.weights.begin() + static_cast<std::ptrdiff_t>(count),
              out[0].nominal.weights.end(), -1.0);
    out.push_back({"wide", with_square(draw(2.5, count, random))});
    return out;
  }
  static Matrix data(RandomStream& random) {
    std::vector<double> x;
    const std::size_t count = random.poisson(400.0);
    while (x.size() < count) {
      const double event = random.normal();
      if (random.uniform() * (1.0 + kappa) < density(event) / normal_density(event, 0.0, 1.0))
        x.push_back(event);
    }
    const auto more = draw(2.5, random.poisson(400.0), random);
    x.insert(x.end(), more.begin(), more.end());
    return with_square(x).x;
  }
};

TEST(LearnedChannel, NegativeWeightsAreNeitherDroppedNorClipped) {
  const LearnedChannel channel(Signed::training(40000), fast());
  Matrix x(41, 2);
  for (std::size_t i = 0; i < 41; ++i) {
    x(i, 0) = 0.1 * (static_cast<double>(i) - 20.0);
    x(i, 1) = x(i, 0) * x(i, 0);
  }
  const auto events = channel.describe(x);
  for (std::size_t i = 0; i < 41; ++i) {
    const double wide = normal_density(x(i, 0), 0.0, 2.5);
    // At the centre p is a third of the density of the positive events alone.
    EXPECT_NEAR(events.ratios(0, i) / events.ratios(1, i), Signed::density(x(i, 0)) / wide,
                0.1 * Signed::density(x(i, 0)) / wide + 0.05)
        << x(i, 0);
  }
  for (const double weight : channel.simulated()->weights) EXPECT_GE(weight, 0.0);
  // 60 datasets of the exact densities: the mean pull within 4.5 standard errors (false alarm
  // 7e-6) and 0.25 for what 40 000 simulated events leave.
  std::vector<double> pull(60);
  parallel_tasks(pull.size(), [&](std::size_t i) {
    RandomStream random(33, "repetition", i);
    const StatisticalModel model(
        mu_workspace(), {channel.channel("events",
                                         {{"hole", 400.0, {Modifier::norm_factor("mu")}},
                                          {"wide", 400.0, {Modifier::norm_factor("size")}}},
                                         Signed::data(random))});
    const auto best = fit_model(model);
    ASSERT_TRUE(best.ok()) << best.message;
    pull[i] = (best.point[0] - 1.0) / best.error(0);
  });
  EXPECT_NEAR(mean(pull), 0.0, 4.5 / std::sqrt(60.0) + 0.25);
  EXPECT_NEAR(standard_deviation(pull), 1.0, 4.5 / std::sqrt(120.0));
}

/// A difference of two exponential densities that moves with φ in [−1, 1],
///
///   p(x | φ) ∝ N₊ p₊ − N₋ p₋ ∝ exp(−λ₊ x) (1 − q exp(−x)),   λ₊ = 1 + φ/5, λ₋ = λ₊ + 1,
///
/// with q = exp(−φ/2)/2, from events of p₊ with positive and of p₋ with negative weights. That of a
/// positive event is exp(φ/2), so that the sums of both kinds vary with φ. log N₊ p₊ / N₋ p₋ = x −
/// log q is linear in x and φ, which the classifier `logistic` learns exactly, and log p nearly in
/// the features x, exp(−x) and exp(−2x).
struct SignedAcross {
  static double rate(double phi) { return 1.0 + 0.2 * phi; }
  static double hole(double phi) { return 0.5 * std::exp(-0.5 * phi); }
  /// Without what depends on φ alone.
  static double log_density(double x, double phi) {
    return -rate(phi) * x + std::log1p(-hole(phi) * std::exp(-x));
  }
  static Samples with_features(const std::vector<double>& x) {
    Samples out;
    out.feature_names = {"x", "u", "square"};
    out.x = Matrix(x.size(), 3);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double u = std::exp(-x[i]);
      out.x(i, 0) = x[i], out.x(i, 1) = u, out.x(i, 2) = u * u;
    }
    return out;
  }
  /// Events of p(x | φ), by rejection of those of p₊.
  static Samples draw(double phi, std::size_t count, RandomStream& random) {
    std::vector<double> x;
    while (x.size() < count) {
      const double event = random.exponential() / rate(phi);
      if (random.uniform() < 1.0 - hole(phi) * std::exp(-event)) x.push_back(event);
    }
    return with_features(x);
  }
  /// `count` events of p₊, and a third as many of p₋, with φ of the design.
  static Samples draw_signed(std::size_t count, const Design& design, RandomStream& random) {
    const std::size_t all = count + count / 3;
    const Matrix phi = design.draw(all, random.bits(), "phi");
    std::vector<double> x, weights;
    for (std::size_t i = 0; i < all; ++i) {
      const double lower = rate(phi(i, 0)), scale = std::exp(0.5 * phi(i, 0));
      const bool positive = i % 4 != 3;
      x.push_back(random.exponential() / (positive ? lower : lower + 1.0));
      weights.push_back(positive ? scale : -3.0 * scale * hole(phi(i, 0)) * lower / (lower + 1.0));
    }
    auto out = with_features(x);
    out.weights = weights;
    out.parameter_names = {"phi"};
    out.theta = phi;
    return out;
  }
  static std::vector<ComponentSamples> training(std::size_t count, std::uint64_t seed,
                                                std::size_t nominal) {
    RandomStream random(seed, "signed across");
    const Design design(ParameterSpace({{"phi", -1.0, 1.0, {}}}));
    std::vector<ComponentSamples> out{{"hole", draw(0.0, nominal, random)}};
    out[0].across = ComponentSamples::Across{draw_signed(count, design, random), design, {0.0}};
    return out;
  }
  /// The nominal events are the reference, so that the shape is all that is learned.
  static LearnedChannel::Config config(std::size_t replicas = 0) {
    auto out = fast(replicas);
    out.reference = "hole";
    out.shape.degree = 3;
    out.simulated = 1000000;
    return out;
  }
  static std::vector<UnbinnedComponent> components(double yield) {
    return {{"hole", yield, {Modifier::norm_factor("mu")}}};
  }
  static StatisticalModel model(UnbinnedChannel channel) {
    return {Workspace{{}, {{"measurement", "phi", {{"phi", {0.0}, {{-1.0, 1.0}}}}}}},
            {std::move(channel)}};
  }
};

TEST(LearnedChannel, NegativeWeightsAcrossParametersAreNeitherDroppedNorClipped) {
  const LearnedChannel channel(SignedAcross::training(60000, 41, 1000), SignedAcross::config());
  RandomStream random(42, "events");
  const auto x = SignedAcross::draw(0.0, 2000, random).x;
  const auto functions = channel.describe(x).functions;
  std::vector<double> b(functions.rows());
  for (const double phi : {-0.8, -0.4, 0.5, 0.9}) {
    channel.shapes(0)[0]->evaluate(std::vector<double>{phi}, b, {}, {});
    std::vector<double> moved(x.rows(), 0.0);
    for (std::size_t k = 0; k < b.size(); ++k)
      for (std::size_t i = 0; i < x.rows(); ++i) moved[i] += b[k] * functions(k, i);
    const auto exact = [&](std::size_t i) {
      return SignedAcross::log_density(x(i, 0), phi) - SignedAcross::log_density(x(i, 0), 0.0);
    };
    // Of the spread of log r itself. The largest of 40 simulations at the four φ was 0.23; without
    // the negative events it is 0.32 to 0.56, with weights |w| 0.45 to 0.68.
    const double whole = deviation(std::vector<double>(x.rows(), 0.0), exact);
    EXPECT_LT(deviation(moved, exact), 0.3 * whole) << phi;
  }
}

TEST(LearnedChannel, FitsWithNegativeWeightsAcrossParametersAreUnbiased) {
  // Away from the nominal φ, each time with another simulation and other data: pulls are normal if
  // the error, two thirds of which are the data's, is right.
  constexpr std::size_t simulations = 12, replicas = 10;
  constexpr double events = 5000.0, truth = 0.5;
  std::vector<double> pull;
  double squares = 0.0;
  for (std::size_t s = 0; s < simulations; ++s) {
    const LearnedChannel channel(SignedAcross::training(30000, 50 + s, 40000),
                                 SignedAcross::config(replicas));
    RandomStream random(51, "data", s);
    const auto x = SignedAcross::draw(truth, random.poisson(events), random).x;
    const auto components = SignedAcross::components(events);
    const auto model = SignedAcross::model(channel.channel("events", components, x));
    auto best = fit_model(model);
    ASSERT_TRUE(best.ok()) << best.message;
    EXPECT_EQ(add_simulation_covariance(best, model, replicas,
                                        [&](std::size_t b) {
                                          return SignedAcross::model(
                                              channel.channel("events", components, x, b));
                                        }),
              0u);
    pull.push_back((best.point[0] - truth) / best.error(0));
    squares += pull.back() * pull.back();
  }
  // The mean within 4.5 standard errors, and 0.5 for what a separable ratio leaves here (events of
  // weight 1 leave 0.4); without the negative events it is 2.7. The sum of squares between the
  // quantiles 10⁻⁴ and 1 − 10⁻⁴ of χ², wider by a fifth: 10 replicas know an error to a quarter.
  // False alarm below 3e-4.
  EXPECT_NEAR(mean(pull), 0.0, 4.5 / std::sqrt(12.0) + 0.5);
  EXPECT_GT(squares, 1.4 / 1.2);
  EXPECT_LT(squares, 39.1 * 1.2);
}

TEST(LearnedChannel, FewNegativeWeightsAcrossParametersAreTheSameEverywhere) {
  auto samples = training_samples(2000);
  auto& weights = samples[0].across->events.weights;
  weights.assign(2000, 1.0);
  for (std::size_t i = 0; i < 19; ++i) weights[100 * i] = -1.0;
  auto positive = samples;
  positive[0].across->events.weights.assign(2000, 1.0);
  const auto x = some_events(50);
  const auto few = LearnedChannel(samples, fast()).describe(x).functions,
             none = LearnedChannel(positive, fast()).describe(x).functions;
  for (std::size_t k = 0; k < few.rows(); ++k)
    EXPECT_LT(deviation(few.row(k), [&](std::size_t i) { return none(k, i); }), 0.01) << k;
}

TEST(LearnedChannel, SavedAndLoadedItIsTheSame) {
  auto samples = training_samples(1500);
  samples[1].nominal.weights.assign(1500, 1.0);
  samples[0].across->events.weights = samples[1].nominal.weights;
  for (std::size_t i = 0; i < 1500; i += 5)
    samples[1].nominal.weights[i] = samples[0].across->events.weights[i] = -0.2;
  for (const auto* reference : {"", "second"}) {
    auto config = fast(2);
    config.reference = reference;
    config.members = 2;
    const LearnedChannel channel(samples, config);
    Archive archive;
    channel.save(archive);
    const LearnedChannel loaded(archive);
    const auto x = some_events(50);
    const auto before = channel.describe(x), after = loaded.describe(x);
    EXPECT_EQ(before.ratios, after.ratios);
    EXPECT_EQ(before.functions, after.functions);
    EXPECT_EQ(channel.simulated()->ratios, loaded.simulated()->ratios);
    EXPECT_EQ(loaded.components(), channel.components());
    EXPECT_EQ(loaded.channel("events", yields(), x, 1).observed->ratios,
              channel.channel("events", yields(), x, 1).observed->ratios);
    EXPECT_EQ(loaded.channel("events", yields(), x, 1).observed->functions,
              channel.channel("events", yields(), x, 1).observed->functions);
    archive.set("weights", std::vector<double>{1.0});
    EXPECT_THROW(LearnedChannel{archive}, FileError);
  }
}

TEST(LearnedChannel, FiniteSimulationIsPartOfTheError) {
  RandomStream random(8, "data");
  auto x = draw_at(signal_place, 1000, random).x;
  x.append(draw_at(first_place, 3000, random).x);
  x.append(draw_at(second_place, 2000, random).x);
  auto components = yields();
  for (auto& component : components) component.yield *= 10.0;
  const std::size_t replicas = 15;
  double errors[2];
  for (const std::size_t size : {0, 1}) {
    const LearnedChannel channel(training_samples(size == 0 ? 1000 : 10000, false), fast(replicas));
    EXPECT_EQ(channel.replicas(), replicas);
    const StatisticalModel model(mu_workspace(), {channel.channel("events", components, x)});
    auto best = fit_model(model);
    ASSERT_TRUE(best.ok()) << best.message;
    const auto narrow = profile_interval(model, model.observed(), best, 0);
    const auto failed = add_simulation_covariance(best, model, replicas, [&](std::size_t b) {
      return StatisticalModel(mu_workspace(), {channel.channel("events", components, x, b)});
    });
    EXPECT_EQ(failed, 0u);
    errors[size] = best.simulation_error(0);
    EXPECT_GT(best.error(0), best.statistical_error(0));
    const auto wide = profile_interval(model, model.observed(), best, 0, narrow.level, true);
    EXPECT_NEAR((wide.high - wide.low) / (narrow.high - narrow.low),
                best.error(0) / best.statistical_error(0), 0.02);
    EXPECT_EQ(profile_interval(model, model.observed(), best, 0).low, narrow.low);
  }
  // It falls as the root of the number of simulated events, √10 here; 15 replicas know each error
  // to 19 %.
  EXPECT_GT(errors[0] / errors[1], 1.5);
  EXPECT_LT(errors[0] / errors[1], 7.0);
}

std::string refused(
    const std::function<void(std::vector<ComponentSamples>&, LearnedChannel::Config&)>& change) {
  auto samples = training_samples(60);
  auto config = fast();
  // Training would throw: everything is refused before.
  config.ratios.classifier = nullptr;
  change(samples, config);
  try {
    LearnedChannel(samples, config);
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(LearnedChannel, WrongInputsAreRefusedBeforeTraining) {
  EXPECT_EQ(refused([](auto& samples, auto&) { samples.clear(); }),
            "LearnedChannel: components is empty, but must be at least one");
  EXPECT_EQ(refused([](auto& samples, auto&) { samples[1].name = "signal"; }),
            "LearnedChannel: components is 'signal' twice, but must be different names");
  EXPECT_EQ(refused([](auto& samples, auto&) { samples[1].variations[0].high = Samples{}; }),
            "LearnedChannel: component 'first', 'shift' high is without events, but must be "
            "simulated events");
  EXPECT_EQ(refused([](auto& samples, auto&) { samples[2].nominal.feature_names[1] = "z"; }),
            "LearnedChannel: component 'second', nominal events, features is x, z, but must be x, "
            "y, as of the first component");
  EXPECT_EQ(refused([](auto& samples, auto&) { samples[0].share = 0.0; }).substr(0, 54),
            "LearnedChannel: component 'signal', share is 0, but mu");
  EXPECT_EQ(
      refused([](auto& samples, auto&) { samples[0].across->events.parameter_names = {"width"}; }),
      "LearnedChannel: component 'signal', events across parameters, parameters is width, "
      "but must be mass, as of the design");
  EXPECT_EQ(
      refused([](auto& samples, auto&) { samples[0].across->events.weights.assign(60, -1.0); }),
      "LearnedChannel: component 'signal', events across parameters, sum of weights is -60, but "
      "must be positive");
  EXPECT_EQ(refused([](auto& samples, auto&) {
              samples[0].variations.push_back({"mass", samples[0].nominal, samples[0].nominal});
            }),
            "LearnedChannel: component 'signal', shapes is 'mass' twice, but must be a parameter "
            "each");
  EXPECT_EQ(refused([](auto& samples, auto&) { samples[1].nominal.weights.assign(60, -1.0); }),
            "LearnedChannel: component 'first', nominal events, sum of weights is -60, but must be "
            "positive");
  EXPECT_EQ(refused([](auto&, auto& config) { config.reference = "third"; }),
            "LearnedChannel: config.reference: 'third' is not a component; candidates are signal, "
            "first, second");
}

TEST(LearnedChannel, ChannelsNeedTheComponentsThatWereTrained) {
  auto config = fast();
  const LearnedChannel channel(training_samples(200, false), config);
  const auto message = [&](std::vector<UnbinnedComponent> components, std::size_t columns = 2) {
    try {
      channel.channel("events", std::move(components), Matrix(3, columns));
    } catch (const ArgumentError& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_EQ(message(yields()), "nothing was thrown");
  auto fewer = yields();
  fewer.pop_back();
  EXPECT_EQ(message(fewer),
            "LearnedChannel::channel: component 'first' is missing, but must be given, with its "
            "yield");
  fewer.push_back({"third", 1.0});
  EXPECT_EQ(message(fewer),
            "LearnedChannel::channel: 'third' is not a trained component; candidates are signal, "
            "first, second");
  EXPECT_EQ(message(yields(), 3),
            "LearnedChannel::describe: x has 3 values, but must have 2 (one column for each "
            "feature)");
}

}  // namespace
}  // namespace neyman
