#include "neyman/inference/bayesian_optimisation.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "neyman/core/error.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/random.hpp"

namespace neyman {
namespace {

/// ℓ of 500 events z0 ~ N(α, 1), z1 ~ N(β, 3), relative to θ = 0, with noise of its own. The
/// estimates are the means, with standard errors 1/√500 and 3/√500.
class TwoMeans final : public Likelihood {
 public:
  explicit TwoMeans(std::uint64_t seed, double noise = 0.0)
      : noise_(noise), random_(std::make_unique<RandomStream>(seed, "evaluation-noise")) {
    RandomStream random(seed, "two-means");
    for (int i = 0; i < 500; ++i) {
      mean_[0] += (1.0 + random.normal()) / 500.0;
      mean_[1] += (-1.0 + 3.0 * random.normal()) / 500.0;
    }
  }
  const ParameterSpace& parameters() const override { return space_; }
  std::size_t events() const override { return 500; }
  double operator()(std::span<const double> point, std::span<double>) const override {
    const double a = point[0] - mean_[0], b = point[1] - mean_[1];
    return -250.0 * (a * a - mean_[0] * mean_[0]) - 250.0 / 9.0 * (b * b - mean_[1] * mean_[1]) +
           noise_ * random_->normal();
  }
  double pull(const std::vector<double>& point, std::size_t p) const {
    return (point[p] - mean_[p]) / error(p);
  }
  static double error(std::size_t p) { return (p == 0 ? 1.0 : 3.0) / std::sqrt(500.0); }

 private:
  ParameterSpace space_ = ParameterSpace({{"alpha", -3, 3, {}}, {"beta", -3, 3, {}}});
  double mean_[2] = {0.0, 0.0};
  double noise_;
  std::unique_ptr<RandomStream> random_;
};

TEST(BayesianFit, FindsTheEstimateOfAnExactLikelihood) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const TwoMeans likelihood(seed);
    BayesianConfig config;
    config.seed = seed;
    const auto found = bayesian_fit(likelihood, config);
    EXPECT_EQ(found.status, FitStatus::converged);
    EXPECT_LT(std::abs(likelihood.pull(found.point, 0)), 0.02);
    EXPECT_LT(std::abs(likelihood.pull(found.point, 1)), 0.02);
    EXPECT_EQ(found.values.size(), 50u);
    EXPECT_EQ(found.points.rows(), 50u);
    EXPECT_EQ(found.surrogate.observations(), 50u);
    EXPECT_NEAR(std::sqrt(found.covariance(0, 0)), TwoMeans::error(0), 0.02 * TwoMeans::error(0));
    EXPECT_NEAR(std::sqrt(found.covariance(1, 1)), TwoMeans::error(1), 0.02 * TwoMeans::error(1));
    // The posterior mean is the likelihood over the region of interest.
    for (const double a : {-2.0, 0.0, 2.0})
      for (const double b : {-2.0, 0.0, 2.0}) {
        const double point[] = {found.point[0] + a * TwoMeans::error(0),
                                found.point[1] + b * TwoMeans::error(1)};
        EXPECT_NEAR(found.surrogate.predict(point).mean, likelihood(point, {}), 0.05);
      }
  }
}

TEST(BayesianFit, NoisyEvaluations) {
  // Noise of 1 on ℓ. Over 60 seeds the error of an estimate was 0.05 of its standard error in RMS,
  // and 0.23 at most.
  double square = 0.0;
  const int runs = 8;
  for (std::uint64_t seed = 0; seed < runs; ++seed) {
    const TwoMeans likelihood(100 + seed, 1.0);
    BayesianConfig config;
    config.seed = seed;
    const auto found = bayesian_fit(likelihood, config);
    for (std::size_t p = 0; p < 2; ++p) {
      const double pull = likelihood.pull(found.point, p);
      EXPECT_LT(std::abs(pull), 0.5) << "seed " << seed << " parameter " << p;
      square += pull * pull / (2.0 * runs);
    }
    EXPECT_GT(found.surrogate.hyperparameters().noise, 0.3);
    EXPECT_LT(found.surrogate.hyperparameters().noise, 3.0);
  }
  EXPECT_LT(std::sqrt(square), 0.15);
}

/// ℓ(μ, σ) of 300 normal events: far from quadratic over the box, from 0 to below −20 000.
class MeanAndWidth final : public Likelihood {
 public:
  const ParameterSpace& parameters() const override { return space_; }
  std::size_t events() const override { return 300; }
  double operator()(std::span<const double> point, std::span<double>) const override {
    const double off = point[0] - mean, sigma = point[1];
    return -300.0 * (std::log(sigma) + (width * width + off * off) / (2.0 * sigma * sigma));
  }
  static constexpr double mean = 0.7, width = 1.3;  // the estimates

 private:
  ParameterSpace space_ = ParameterSpace({{"mu", -3, 3, {}}, {"sigma", 0.3, 5, {}}});
};

TEST(BayesianFit, ALikelihoodThatIsNotQuadratic) {
  const MeanAndWidth likelihood;
  const double errors[] = {MeanAndWidth::width / std::sqrt(300.0),
                           MeanAndWidth::width / std::sqrt(600.0)};
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    BayesianConfig config;
    config.seed = seed;
    const auto found = bayesian_fit(likelihood, config);
    EXPECT_NEAR(found.point[0], MeanAndWidth::mean, 0.2 * errors[0]) << seed;
    EXPECT_NEAR(found.point[1], MeanAndWidth::width, 0.2 * errors[1]) << seed;
    EXPECT_EQ(found.status, FitStatus::converged) << seed;
  }
}

TEST(BayesianFit, OneToSixParameters) {
  for (std::size_t dimensions = 1; dimensions <= 6; ++dimensions) {
    std::vector<Parameter> parameters;
    for (std::size_t d = 0; d < dimensions; ++d)
      parameters.push_back({"t" + std::to_string(d), -2.0, 2.0, {}});
    const ParameterSpace space(parameters);
    // The top at 0.1, 0.2, …; correlated, skewed, standard errors of about 0.1.
    const auto function = [](std::span<const double> point) {
      double value = 0.0;
      for (std::size_t d = 0; d < point.size(); ++d) {
        const double off = point[d] - 0.1 * static_cast<double>(d + 1);
        value -= 50.0 * (std::exp(off) - 1.0 - off);
        if (d > 0) value -= 10.0 * off * (point[d - 1] - 0.1 * static_cast<double>(d));
      }
      return value;
    };
    BayesianConfig config;
    config.evaluations = 30 + 15 * dimensions;
    config.top = 15.0;
    const auto found = maximise_bayesian(function, space, config);
    for (std::size_t d = 0; d < dimensions; ++d)
      EXPECT_NEAR(found.point[d], 0.1 * static_cast<double>(d + 1), 0.02 + 0.01 * dimensions)
          << dimensions << " " << d;
  }
}

TEST(MaximiseBayesian, FindsTheHighestOfSeveralHills) {
  // Branin's function: three equal minima of 0.397887; not quadratic at all.
  const ParameterSpace space({{"x", -5, 10, {}}, {"y", 0, 15, {}}});
  const auto function = [](std::span<const double> p) {
    const double pi = 3.14159265358979323846;
    const double a = p[1] - 5.1 / (4.0 * pi * pi) * p[0] * p[0] + 5.0 / pi * p[0] - 6.0;
    return -(a * a + 10.0 * (1.0 - 1.0 / (8.0 * pi)) * std::cos(p[0]) + 10.0);
  };
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    BayesianConfig config;
    config.mean = GaussianProcess::Mean::constant;
    config.evaluations = 45;
    config.seed = seed;
    const auto found = maximise_bayesian(function, space, config);
    EXPECT_NEAR(found.best_value, -0.397887, 5e-3);
    EXPECT_NEAR(function(found.point), -0.397887, 5e-3);
  }
}

TEST(MaximiseBayesian, SaysWhenItEndsAtABound) {
  const ParameterSpace space({{"x", 0, 1, {}}, {"y", 0, 1, {}}});
  const auto found = maximise_bayesian(
      [](std::span<const double> p) { return p[0] - (p[1] - 0.4) * (p[1] - 0.4); }, space,
      {.evaluations = 25, .first = {}, .noise = {}, .top = {}, .tolerance = {}});
  EXPECT_EQ(found.status, FitStatus::at_bound);
  EXPECT_NEAR(found.point[0], 1.0, 1e-6);
  EXPECT_NEAR(found.point[1], 0.4, 1e-3);
}

TEST(MaximiseBayesian, TheSeedDecidesEverything) {
  const ParameterSpace space({{"x", -1, 1, {}}});
  const auto function = [](std::span<const double> p) {
    return std::cos(5.0 * p[0]) - p[0] * p[0];
  };
  BayesianConfig config;
  config.evaluations = 15;
  const auto first = maximise_bayesian(function, space, config);
  const auto again = maximise_bayesian(function, space, config);
  EXPECT_EQ(first.points, again.points);
  EXPECT_EQ(first.point, again.point);
  config.seed = 1;
  EXPECT_NE(maximise_bayesian(function, space, config).points, first.points);
}

TEST(MaximiseBayesian, ValuesThatAreNotFinite) {
  const ParameterSpace space({{"x", -1, 1, {}}, {"y", -1, 1, {}}});
  const auto function = [](std::span<const double> p) {
    if (p[0] < -0.3) return std::numeric_limits<double>::quiet_NaN();
    if (p[1] > 0.6) return Likelihood::forbidden;
    return -(p[0] - 0.2) * (p[0] - 0.2) - (p[1] - 0.1) * (p[1] - 0.1);
  };
  BayesianConfig config;
  config.evaluations = 40;
  const auto found = maximise_bayesian(function, space, config);
  EXPECT_GT(found.refused, 0u);
  EXPECT_LT(found.refused, 25u);
  EXPECT_NEAR(found.point[0], 0.2, 0.05);
  EXPECT_NEAR(found.point[1], 0.1, 0.05);

  const auto never = maximise_bayesian(
      [](std::span<const double>) { return std::numeric_limits<double>::infinity(); }, space,
      config);
  EXPECT_EQ(never.status, FitStatus::failed);
  EXPECT_EQ(never.refused, 40u);
  EXPECT_FALSE(never.surrogate.fitted());
}

TEST(MaximiseBayesian, ConstantFunctionAndFirstPoints) {
  const ParameterSpace space({{"x", -1, 1, {}}});
  BayesianConfig config;
  config.evaluations = 10;
  config.first = Matrix(2, 1, {0.25, -0.75});
  const auto flat = maximise_bayesian([](std::span<const double>) { return 3.0; }, space, config);
  EXPECT_NEAR(flat.value, 3.0, 1e-6);
  EXPECT_DOUBLE_EQ(flat.points(0, 0), 0.25);
  EXPECT_DOUBLE_EQ(flat.points(1, 0), -0.75);
}

TEST(MaximiseBayesian, SaysWhatIsWrong) {
  const ParameterSpace space({{"x", -1, 1, {}}});
  const auto function = [](std::span<const double>) { return 0.0; };
  BayesianConfig config;
  config.evaluations = 1;
  EXPECT_THROW(maximise_bayesian(function, space, config), ArgumentError);
  config = {};
  config.first = Matrix(1, 1, {2.0});
  EXPECT_THROW(maximise_bayesian(function, space, config), ArgumentError);
  config = {};
  config.noise = -1.0;
  EXPECT_THROW(maximise_bayesian(function, space, config), ArgumentError);
  EXPECT_THROW(maximise_bayesian(function, ParameterSpace{}, {}), ArgumentError);
}

TEST(MaximiseBayesian, FiftyStepsAreQuick) {
  // Without the function, on one core: measured at some 0.06 s; the rest is for busy machines and
  // builds with checks.
  const TwoMeans likelihood(1);
  const double start = seconds_now();
  bayesian_fit(likelihood);
  RecordProperty("seconds", std::to_string(seconds_now() - start));
  EXPECT_LT(seconds_now() - start, 3.0);
}

}  // namespace
}  // namespace neyman
