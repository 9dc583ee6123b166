#include "neyman/inference/fit.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "known_likelihoods.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/random.hpp"
#include "neyman/inference/statistics.hpp"
#include "neyman/simulators/normal.hpp"
#include "ratios/two_components.hpp"

namespace neyman {
namespace {

using testing::FunctionLikelihood;
using testing::Parabola;

TEST(Fit, FindsTheTopOfAParabola) {
  const Parabola likelihood(ParameterSpace({{"a", -10, 10, {}}, {"b", -1, 5, {}}}), {1.5, 2.0},
                            Matrix(2, 2, {4.0, 1.0, 1.0, 9.0}));
  const auto found = fit(likelihood);
  EXPECT_EQ(found.status, FitStatus::converged);
  EXPECT_NEAR(found.point[0], 1.5, 1e-6);
  EXPECT_NEAR(found.point[1], 2.0, 1e-6);
  // The inverse of [[4, 1], [1, 9]].
  EXPECT_NEAR(found.covariance(0, 0), 9.0 / 35.0, 1e-6);
  EXPECT_NEAR(found.covariance(0, 1), -1.0 / 35.0, 1e-6);
  EXPECT_NEAR(found.covariance(1, 1), 4.0 / 35.0, 1e-6);
  EXPECT_LT(found.distance, 1e-6);
}

TEST(Fit, SaysWhenItEndsAtABound) {
  const Parabola likelihood(ParameterSpace({{"a", 2, 10, {}}, {"b", -1, 5, {}}}), {1.0, 2.0},
                            Matrix(2, 2, {4.0, 1.0, 1.0, 9.0}));
  const auto found = fit(likelihood);
  EXPECT_EQ(found.status, FitStatus::at_bound);
  EXPECT_EQ(found.point[0], 2.0);
  EXPECT_NEAR(found.point[1], 2.0 - 1.0 / 9.0, 1e-6);  // b given a = 2
  // The covariance is that of the parabola, as if the range went on.
  EXPECT_NEAR(found.covariance(0, 0), 9.0 / 35.0, 1e-6);
  EXPECT_NEAR(found.covariance(1, 1), 4.0 / 35.0, 1e-6);
}

TEST(Fit, KeepsFixedParameters) {
  const Parabola likelihood(ParameterSpace({{"a", -10, 10, {}}, {"b", -1, 5, {}}}), {1.5, 2.0},
                            Matrix(2, 2, {4.0, 1.0, 1.0, 9.0}));
  FitOptions options;
  options.fixed = {0.5, std::nullopt};
  const auto found = fit(likelihood, options);
  EXPECT_EQ(found.point[0], 0.5);
  EXPECT_NEAR(found.point[1], 2.0 + 1.0 / 9.0, 1e-6);
  options.fixed = {0.5, 1.0};
  EXPECT_EQ(fit(likelihood, options).status, FitStatus::converged);
}

/// A likelihood with no maximum: flat.
class Flat final : public Likelihood {
 public:
  const ParameterSpace& parameters() const override { return space_; }
  std::size_t events() const override { return 1; }
  double operator()(std::span<const double>, std::span<double> gradient) const override {
    for (double& value : gradient) value = 0.0;
    return 0.0;
  }

 private:
  ParameterSpace space_{{{"a", 0, 1, {}}}};
};

TEST(Fit, AFlatLikelihoodIsAFailedFit) { EXPECT_EQ(fit(Flat()).status, FitStatus::failed); }

TEST(Fit, RandomParabolasInSeveralDimensions) {
  // A = L Lᵀ with widths over four orders of magnitude; the estimate and covariance are exact.
  RandomStream random(3, "parabolas");
  for (const std::size_t n : {1, 2, 3, 5, 8})
    for (const auto method : {FitMethod::gradient, FitMethod::derivative_free}) {
      std::vector<Parameter> parameters;
      std::vector<double> centre, width;
      for (std::size_t p = 0; p < n; ++p) {
        parameters.push_back({"p" + std::to_string(p), -1.0, 1.0, {}});
        centre.push_back(random.uniform() - 0.5);
        width.push_back(std::pow(10.0, -3.0 * random.uniform()));
      }
      Matrix a(n, n);
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j)
          a(i, j) = (i == j ? 1.0 : 0.3 / static_cast<double>(n)) / (width[i] * width[j]);
      const auto found = fit(Parabola(ParameterSpace(parameters), centre, a), {.method = method});
      ASSERT_EQ(found.status, FitStatus::converged) << n << " parameters: " << found.message;
      EXPECT_LT(found.distance, 1e-6);
      for (std::size_t i = 0; i < n; ++i) {
        EXPECT_NEAR(found.point[i], centre[i], 2e-3 * width[i]);
        // C A = 1.
        for (std::size_t j = 0; j < n; ++j) {
          double product = 0.0;
          for (std::size_t k = 0; k < n; ++k) product += found.covariance(i, k) * a(k, j);
          EXPECT_NEAR(product * width[j] / width[i], i == j ? 1.0 : 0.0, 1e-4);
        }
      }
    }
}

/// Two hills in the plane, the higher one narrow.
double two_hills(std::span<const double> t) {
  const double high =
      6.0 - 0.5 * (std::pow((t[0] - 3.0) / 0.4, 2) + std::pow((t[1] + 2.0) / 0.4, 2));
  const double low =
      3.0 - 0.5 * (std::pow((t[0] + 2.0) / 1.5, 2) + std::pow((t[1] - 2.0) / 1.5, 2));
  return std::log(std::exp(high) + std::exp(low));
}

TEST(Fit, SeveralStartsFindTheHigherHill) {
  const ParameterSpace space({{"a", -5, 5, {}}, {"b", -5, 5, {}}});
  for (const bool gradients : {true, false}) {
    FitOptions options;
    options.start = {-2.0, 2.0};  // on the lower hill
    const FunctionLikelihood likelihood(space, two_hills, gradients);
    EXPECT_NEAR(fit(likelihood, options).point[0], -2.0, 0.01);
    options.starts = 60;
    const auto found = fit(likelihood, options);
    EXPECT_EQ(found.status, FitStatus::converged) << found.message;
    EXPECT_NEAR(found.point[0], 3.0, 1e-3);
    EXPECT_NEAR(found.point[1], -2.0, 1e-3);
    EXPECT_NEAR(found.statistical_error(0), 0.4, 1e-3);
  }
}

TEST(Fit, WithoutAGradientNeverAsksForOne) {
  const FunctionLikelihood likelihood(
      ParameterSpace({{"a", -5, 5, {}}, {"b", 0, 5, {}}}),
      [](std::span<const double> t) {
        return -0.5 * std::pow((t[0] - 1.0) / 0.2, 2) - 0.5 * std::pow((t[1] + 1.0) / 0.5, 2);
      },
      false);
  const auto found = fit(likelihood);
  EXPECT_EQ(likelihood.gradients_asked, 0);
  EXPECT_EQ(found.status, FitStatus::at_bound);
  EXPECT_NEAR(found.point[0], 1.0, 1e-4);
  EXPECT_EQ(found.point[1], 0.0);
  EXPECT_FALSE(found.at_bound[0]);
  EXPECT_TRUE(found.at_bound[1]);
  EXPECT_NEAR(found.statistical_error(0), 0.2, 1e-4);
  EXPECT_NEAR(found.statistical_error(1), 0.5, 1e-4);
}

TEST(Fit, SecondDerivativesWithoutGradientsAreExactWhereTheLikelihoodIsSmooth) {
  // ℓ = n log λ − n λ / rate: the error of λ̂ is λ̂ / √n.
  const auto smooth =
      testing::exponential_likelihood(20, 0.7, ParameterSpace({{"rate", 0.0, 10.0, {}}}));
  for (const auto method : {FitMethod::gradient, FitMethod::derivative_free}) {
    const auto found = fit(smooth, {.method = method});
    EXPECT_EQ(found.status, FitStatus::converged) << found.message;
    EXPECT_NEAR(found.point[0], 0.7, 1e-4);
    EXPECT_NEAR(found.statistical_error(0), 0.7 / std::sqrt(20.0), 2e-4);
  }
}

TEST(Fit, ARoughLikelihoodGivesTheErrorsOfTheSmoothOne) {
  // Uniform noise of ± 0.1 (RMS 0.058), twenty realisations: the maximum of noise and parabola
  // lies within √(2 · 0.2) standard errors, and the curvature over a standard error is that of
  // the parabola to some 15 %.
  for (int realisation = 0; realisation < 20; ++realisation) {
    const FunctionLikelihood likelihood(
        ParameterSpace({{"a", -5, 5, {}}, {"b", -5, 5, {}}}),
        [=](std::span<const double> t) {
          const double u = (t[0] - 1.0) / 0.3, v = (t[1] + 0.5) / 0.8;
          return -0.5 * (u * u - 1.2 * u * v + v * v) / (1.0 - 0.36) +
                 0.1 * testing::rough(t, realisation);
        },
        false);
    const auto found = fit(likelihood, {.starts = 30});
    EXPECT_EQ(found.status, FitStatus::converged) << found.message;
    EXPECT_NEAR(found.point[0], 1.0, 0.3 * std::sqrt(0.4));
    EXPECT_NEAR(found.point[1], -0.5, 0.8 * std::sqrt(0.4));
    EXPECT_GT(found.roughness, 0.02);
    EXPECT_LT(found.roughness, 0.15);
    EXPECT_NEAR(found.statistical_error(0) / 0.3, 1.0, 0.4);
    EXPECT_NEAR(found.statistical_error(1) / 0.8, 1.0, 0.4);
  }
}

// −2 log Λ of n events of U(0, t), the largest at 1: it rises by 2n (t − 1) on one side and at once
// on the other. That is no fluctuation, and crossings count: [1, exp(1/2n)].
TEST(Fit, AnEdgeIsNoFluctuation) {
  for (const double n : {20.0, 100.0, 1000.0}) {
    const FunctionLikelihood likelihood(
        ParameterSpace({{"t", 0.5, 3, {}}}),
        [=](std::span<const double> t) {
          return -n * std::log(t[0]) - (t[0] < 1.0 ? 1e5 * n * (1.0 - t[0]) : 0.0);
        },
        false);
    const auto found = fit(likelihood);
    EXPECT_NEAR(found.point[0], 1.0, 0.05 / n);
    EXPECT_FALSE(found.rough());
    const auto interval = likelihood_interval(likelihood, found, 0, 0.6826894921, false);
    EXPECT_NEAR(interval.low, 1.0, 0.05 / n);
    EXPECT_NEAR(interval.high, std::exp(0.5 / n), 0.05 / n);
  }
}

TEST(Fit, APeakOfAVeryRoughLikelihoodIsNotTakenForItsCurvature) {
  // Uniform noise of ± 1 and ± 3 (RMS 0.58 and 1.7) over a standard error in which ℓ changes by
  // 0.5: the best point is a peak of the noise. Over the length at which ℓ stands out from the
  // noise, nine points give the error to some 15 %. A peak is still taken for the curvature now
  // and then: in one of 1600 errors with other realisations; here are 80.
  for (const double amplitude : {1.0, 3.0})
    for (int realisation = 0; realisation < 20; ++realisation) {
      const FunctionLikelihood likelihood(
          ParameterSpace({{"a", -5, 5, {}}, {"b", -5, 5, {}}}),
          [=](std::span<const double> t) {
            const double u = (t[0] - 1.0) / 0.3, v = (t[1] + 0.5) / 0.4;
            return -0.5 * (u * u + v * v) + amplitude * testing::rough(t, realisation);
          },
          false);
      const auto found = fit(likelihood, {.starts = 30});
      EXPECT_NEAR(found.point[0], 1.0, 0.3 * std::sqrt(4.0 * amplitude));
      EXPECT_GT(found.roughness, 0.3 * amplitude);
      EXPECT_LT(found.roughness, 1.5 * amplitude);
      EXPECT_GT(found.statistical_error(0), 0.5 * 0.3) << amplitude << ' ' << realisation;
      EXPECT_LT(found.statistical_error(0), 2.0 * 0.3) << amplitude << ' ' << realisation;
      EXPECT_GT(found.statistical_error(1), 0.5 * 0.4) << amplitude << ' ' << realisation;
      EXPECT_LT(found.statistical_error(1), 2.0 * 0.4) << amplitude << ' ' << realisation;
      // The crossings nearest to a peak of the noise would be much closer to it.
      ASSERT_TRUE(found.rough());
      const auto interval = likelihood_interval(likelihood, found, 0, 0.683, false);
      const double half = found.statistical_error(0) * std::sqrt(chi2_quantile(0.683));
      EXPECT_DOUBLE_EQ(interval.low, found.point[0] - half);
      EXPECT_DOUBLE_EQ(interval.high, found.point[0] + half);
      EXPECT_TRUE(interval.ok && !interval.low_at_bound && !interval.high_at_bound);
    }
}

TEST(Fit, AKinkIsNoObstacleWithoutGradients) {
  const FunctionLikelihood likelihood(
      ParameterSpace({{"a", -5, 5, {}}, {"b", -5, 5, {}}}),
      [](std::span<const double> t) {
        return -10.0 * std::abs(t[0] - 0.3) - 3.0 * std::abs(t[1] - 2.0 * t[0]);
      },
      false);
  const auto found = fit(likelihood);
  EXPECT_NEAR(found.point[0], 0.3, 1e-3);
  EXPECT_NEAR(found.point[1], 0.6, 1e-3);
}

TEST(Fit, NamesTheDirectionThatIsFlat) {
  // Only a + b is measured; c is.
  const FunctionLikelihood likelihood(
      ParameterSpace({{"a", -5, 5, {}}, {"b", -5, 5, {}}, {"c", -5, 5, {}}}),
      [](std::span<const double> t) {
        return -0.5 * std::pow(t[0] + t[1] - 1.0, 2) - 0.5 * std::pow(t[2] - 1.0, 2);
      });
  for (const auto method : {FitMethod::gradient, FitMethod::derivative_free}) {
    const auto found = fit(likelihood, {.method = method});
    EXPECT_EQ(found.status, FitStatus::failed);
    EXPECT_EQ(found.message, "the likelihood is flat along a and b");
    EXPECT_NEAR(found.log_likelihood, 0.0, 1e-4);
  }
}

TEST(Fit, ForbiddenRegions) {
  // Allowed below a + b = 1, a slanted edge that no bound describes.
  const auto allowed = [](double a0, double b0) {
    return [=](std::span<const double> t) {
      if (t[0] + t[1] > 1.0) return Likelihood::forbidden;
      return -0.5 * std::pow((t[0] - a0) / 0.1, 2) - 0.5 * std::pow((t[1] - b0) / 0.2, 2);
    };
  };
  const ParameterSpace space({{"a", 0, 1, {}}, {"b", 0, 1, {}}});
  const auto inside = fit(FunctionLikelihood(space, allowed(0.3, 0.3)));
  EXPECT_EQ(inside.status, FitStatus::converged) << inside.message;
  EXPECT_NEAR(inside.point[0], 0.3, 1e-5);
  // The maximum on the edge is where the gradient is along (1, 1):
  // (a − 0.6) / 0.01 = (b − 0.8) / 0.04, a + b = 1.
  for (const bool gradients : {true, false}) {
    const auto edge = fit(FunctionLikelihood(space, allowed(0.6, 0.8), gradients));
    EXPECT_EQ(edge.status, FitStatus::at_bound) << edge.message;
    EXPECT_NE(edge.message.find("edge"), std::string::npos) << edge.message;
    EXPECT_NEAR(edge.point[0], 0.6 - 0.4 * 0.2, 1e-3);
    EXPECT_NEAR(edge.point[1], 0.8 - 0.4 * 0.8, 1e-3);
  }
  const auto nowhere =
      fit(FunctionLikelihood(space, [](std::span<const double>) { return Likelihood::forbidden; }));
  EXPECT_EQ(nowhere.status, FitStatus::failed);
  EXPECT_NE(nowhere.message.find("forbidden"), std::string::npos);
  const auto none = fit(FunctionLikelihood(space, [](std::span<const double>) { return NAN; }));
  EXPECT_EQ(none.status, FitStatus::failed);
  EXPECT_EQ(none.log_likelihood, Likelihood::forbidden);
}

TEST(Fit, MixtureFractionsOnTheSimplex) {
  // Three components of which the third has what a and b leave: the maximum lies inside, on a
  // bound, on the slanted edge or in a corner of both. Against all points of a fine grid.
  for (std::uint64_t k = 0; k < 60; ++k) {
    RandomStream random(k, "simplex");
    const double a = 0.5 * random.uniform();
    const double b = k % 3 == 0 ? 1.0 - a : (1.0 - a) * random.uniform();
    std::vector<std::vector<double>> densities;
    for (int i = 0; i < 100; ++i) {
      const double u = random.uniform(), x = random.normal() + (u < a       ? 0.0
                                                                : u < a + b ? 1.5
                                                                            : 3.0);
      densities.push_back({std::exp(-0.5 * x * x), std::exp(-0.5 * (x - 1.5) * (x - 1.5)),
                           std::exp(-0.5 * (x - 3.0) * (x - 3.0))});
    }
    const auto value = [&](std::span<const double> t) {
      if (t[0] + t[1] > 1.0) return Likelihood::forbidden;
      double sum = 0.0;
      for (const auto& d : densities)
        sum += std::log(t[0] * d[0] + t[1] * d[1] + (1.0 - t[0] - t[1]) * d[2]);
      return sum;
    };
    double highest = Likelihood::forbidden;
    for (int i = 0; i <= 100; ++i)
      for (int j = 0; i + j <= 100; ++j)
        highest =
            std::max(highest, value(std::vector{0.01 * i, std::min(0.01 * j, 1.0 - 0.01 * i)}));
    const auto found = fit(
        FunctionLikelihood(ParameterSpace({{"a", 0, 1, {}}, {"b", 0, 1, {}}}), value, k % 2 == 0));
    EXPECT_TRUE(found.ok()) << k << ": " << found.message;
    EXPECT_GT(found.log_likelihood, highest - 1e-5) << k;
  }
}

/// The normal likelihood of μ and log σ with each event's term in single precision, as a network
/// would compute it.
class SinglePrecision final : public Likelihood {
 public:
  SinglePrecision(std::size_t events, std::uint64_t seed) {
    RandomStream random(seed, "single");
    for (std::size_t i = 0; i < events; ++i)
      x_.push_back(static_cast<float>(1.3 + 0.7 * random.normal()));
  }
  const ParameterSpace& parameters() const override { return space_; }
  std::size_t events() const override { return x_.size(); }
  double operator()(std::span<const double> t, std::span<double> gradient) const override {
    const auto mu = static_cast<float>(t[0]), log_sigma = static_cast<float>(t[1]);
    const float precision = std::exp(-log_sigma);
    double sum = 0.0, slope[2] = {0.0, 0.0};
    for (const float x : x_) {
      const float z = (x - mu) * precision;
      sum += -0.5F * z * z - log_sigma;
      slope[0] += z * precision;
      slope[1] += z * z - 1.0F;
    }
    std::copy_n(slope, gradient.size(), gradient.begin());
    return sum;
  }
  double mean() const {
    double sum = 0.0;
    for (const float x : x_) sum += static_cast<double>(x);
    return sum / static_cast<double>(x_.size());
  }

 private:
  ParameterSpace space_{{{"mu", -5, 5, {}}, {"log_sigma", -3, 3, {}}}};
  std::vector<float> x_;
};

TEST(Fit, SinglePrecisionConverges) {
  // Rounding of ℓ is far above the tolerance; that of the gradient does not matter.
  for (const std::size_t events : {100, 5000, 50000})
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const SinglePrecision likelihood(events, seed);
      const auto found = fit(likelihood);
      EXPECT_EQ(found.status, FitStatus::converged) << events << ": " << found.message;
      const double error = found.statistical_error(0);
      EXPECT_NEAR(error * std::sqrt(static_cast<double>(events)), std::exp(found.point[1]), 1e-3);
      EXPECT_NEAR(found.point[0], likelihood.mean(), 5e-3 * error);
      const auto interval = likelihood_interval(likelihood, found, 0, 0.683, false);
      EXPECT_TRUE(interval.ok) << events << ": " << interval.message;
    }
}

TEST(Fit, RangesConfine) {
  const Parabola likelihood(ParameterSpace({{"a", -10, 10, {}}, {"b", -1, 5, {}}}), {1.5, 2.0},
                            Matrix(2, 2, {4.0, 1.0, 1.0, 9.0}));
  FitOptions options;
  options.ranges = {FitRange{-10.0, 0.5}, std::nullopt};
  const auto found = fit(likelihood, options);
  EXPECT_EQ(found.status, FitStatus::at_bound);
  EXPECT_EQ(found.point[0], 0.5);
  EXPECT_NEAR(found.point[1], 2.0 + 1.0 / 9.0, 1e-6);
  EXPECT_TRUE(found.at_bound[0]);
  options.ranges = {FitRange{-20.0, 0.5}, std::nullopt};
  EXPECT_THROW(fit(likelihood, options), ArgumentError);
  options.ranges = {FitRange{0.5, 0.4}, std::nullopt};
  EXPECT_THROW(fit(likelihood, options), ArgumentError);
  options = {};
  options.start = {1.0};
  EXPECT_THROW(fit(likelihood, options), ArgumentError);
}

TEST(Fit, ErrorsOfTheLikelihoodReachTheCaller) {
  const FunctionLikelihood likelihood(
      ParameterSpace({{"a", 0, 1, {}}}),
      [](std::span<const double>) -> double { throw ArgumentError("no ratio here"); });
  EXPECT_THROW(fit(likelihood), ArgumentError);
}

TEST(Fit, EdgesOfAMixture) {
  // Data of one component alone: the weight of the other ends at its bound.
  const auto mixture = testing::normals({0.0, 6.0});
  const ExactMixtureRatio ratio(mixture, {0.5});
  const auto pure = sample(*mixture->components()[0], std::vector{0.0}, 200, 1, "pure");
  const auto low = fit(MixtureLikelihood(testing::gamma_space(), ratio, pure));
  EXPECT_EQ(low.status, FitStatus::at_bound);
  EXPECT_EQ(low.point[0], 0.0);
  // One event is enough for a fit, at a bound.
  const auto single = fit(MixtureLikelihood(testing::gamma_space(), ratio, Matrix(1, 1, {6.0})));
  EXPECT_EQ(single.point[0], 1.0);
}

/// A likelihood without its second derivatives.
class WithoutSecond final : public Likelihood {
 public:
  explicit WithoutSecond(const Likelihood& of) : of_(of) {}
  const ParameterSpace& parameters() const override { return of_.parameters(); }
  std::size_t events() const override { return of_.events(); }
  double operator()(std::span<const double> point, std::span<double> gradient) const override {
    return of_(point, gradient);
  }

 private:
  const Likelihood& of_;
};

TEST(Fit, WithSecondDerivativesIsTheSameFitInFewerEvaluations) {
  // Three shares; with few events some end at zero, or at the edge of what the third leaves.
  const ParameterSpace space({{"a", 0.0, 1.0, {}}, {"b", 0.0, 1.0, {}}});
  const MixtureWeights weights({Expression("a", space), Expression("b * (1 - a)", space)}, 3);
  int at_bound = 0, evaluations = 0, known_evaluations = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RandomStream random(seed, "fit");
    const std::size_t events = seed % 3 == 0 ? 20 : 2000;
    Matrix ratios(events, 3);
    for (std::size_t i = 0; i < events; ++i) {
      const double x = 2.0 * static_cast<double>(random.below(3)) * (seed % 2) + random.normal();
      for (std::size_t c = 0; c < 3; ++c)
        ratios(i, c) = std::exp(-0.5 * std::pow(x - 2.0 * static_cast<double>(c), 2) + 2.0);
    }
    const MixtureLikelihood likelihood(space, weights, ratios, {1.0, 1.0, 1.0});
    const auto found = fit(likelihood), known = fit(WithoutSecond(likelihood));
    ASSERT_EQ(found.status, known.status) << seed;
    at_bound += found.status == FitStatus::at_bound ? 1 : 0;
    EXPECT_NEAR(found.log_likelihood, known.log_likelihood, 2e-6) << seed;
    evaluations += found.evaluations;
    known_evaluations += known.evaluations;
    for (std::size_t p = 0; p < 2; ++p) {
      EXPECT_EQ(found.at_bound[p], known.at_bound[p]) << seed;
      // Both are within a distance of 1e-6 of the maximum: a thousandth of an error.
      const double error = known.statistical_error(p);
      EXPECT_NEAR(found.point[p], known.point[p], 3e-3 * error + 1e-6) << seed;
      // At a bound and at the edge, differences of gradients see one side alone, and in a corner
      // the curvature changes within their steps: the exact ones are judged by `Regions`.
      if (found.status == FitStatus::converged) {
        EXPECT_NEAR(found.statistical_error(p), error, 5e-3 * error) << seed;
      }
    }
  }
  EXPECT_GT(at_bound, 5);
  EXPECT_LT(evaluations, known_evaluations);
}

}  // namespace
}  // namespace neyman
