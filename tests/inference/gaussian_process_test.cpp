#include "neyman/inference/gaussian_process.hpp"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"

namespace neyman {
namespace {

using Kernel = GaussianProcess::Kernel;
using Mean = GaussianProcess::Mean;
using Hyperparameters = GaussianProcess::Hyperparameters;
using Real = long double;
using RealMatrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic>;
using RealVector = Eigen::Matrix<Real, Eigen::Dynamic, 1>;

ParameterSpace box(std::size_t dimensions) {
  std::vector<Parameter> parameters;
  for (std::size_t d = 0; d < dimensions; ++d)
    parameters.push_back(
        {"t" + std::to_string(d), -1.0 - static_cast<double>(d), 2.0 + static_cast<double>(d), {}});
  return ParameterSpace(parameters);
}

Matrix draw_points(const ParameterSpace& space, std::size_t n, RandomStream& random) {
  Matrix x(n, space.size());
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t d = 0; d < space.size(); ++d)
      x(i, d) = space[d].low + (space[d].high - space[d].low) * random.uniform();
  return x;
}

/// The textbook: the process written as one dense covariance, inverted in long double. The prior
/// of the mean is that of the values `scaled_by` (of y itself where empty).
class Reference {
 public:
  Reference(ParameterSpace space, GaussianProcess::Config config, Matrix x, std::vector<double> y,
            std::vector<double> variances, Hyperparameters hyperparameters,
            const std::vector<double>& scaled_by = {})
      : space_(std::move(space)), config_(config), x_(std::move(x)), hyper_(hyperparameters) {
    const auto n = static_cast<Eigen::Index>(y.size());
    const auto& all = scaled_by.empty() ? y : scaled_by;
    for (const double value : all) centre_ += value / static_cast<Real>(all.size());
    Real sum = 0.0;
    for (const double value : all) sum += (value - centre_) * (value - centre_);
    coefficient_variance_ =
        config.mean_scale * config.mean_scale * sum / static_cast<Real>(all.size());
    y_.resize(n);
    RealMatrix covariance(n, n);
    for (Eigen::Index i = 0; i < n; ++i) {
      y_[i] = y[static_cast<std::size_t>(i)] - centre_;
      for (Eigen::Index j = 0; j < n; ++j) covariance(i, j) = prior(row(i), row(j));
      // The jitter that the implementation documents in its source.
      covariance(i, i) += hyper_.noise * hyper_.noise +
                          1e-10L * hyper_.amplitude * hyper_.amplitude +
                          (variances.empty() ? 0.0 : variances[static_cast<std::size_t>(i)]);
    }
    Eigen::FullPivLU<RealMatrix> lu(covariance);
    inverse_ = lu.inverse();
    Real log_determinant = 0.0;
    for (Eigen::Index i = 0; i < n; ++i) log_determinant += std::log(std::abs(lu.matrixLU()(i, i)));
    log_likelihood = -0.5L * (y_.transpose() * inverse_ * y_)(0, 0) - 0.5L * log_determinant -
                     0.5L * static_cast<Real>(n) * std::log(2.0L * std::numbers::pi_v<Real>);
  }

  GaussianProcess::Prediction predict(std::span<const double> point) const {
    RealVector k(y_.size());
    for (Eigen::Index i = 0; i < y_.size(); ++i) k[i] = prior(row(i), point);
    const Real mean = centre_ + (k.transpose() * inverse_ * y_)(0, 0);
    const Real variance = prior(point, point) - (k.transpose() * inverse_ * k)(0, 0);
    return {static_cast<double>(mean), static_cast<double>(std::sqrt(variance))};
  }

  Real log_likelihood = 0.0;

 private:
  std::span<const double> row(Eigen::Index i) const { return x_.row(static_cast<std::size_t>(i)); }
  Real prior(std::span<const double> a, std::span<const double> b) const {
    Real r2 = 0.0;
    std::vector<Real> s, t;
    for (std::size_t d = 0; d < a.size(); ++d) {
      const Real difference = (static_cast<Real>(a[d]) - b[d]) / hyper_.lengths[d];
      r2 += difference * difference;
      const Real range = space_[d].high - space_[d].low;
      s.push_back(2.0L * (a[d] - space_[d].low) / range - 1.0L);
      t.push_back(2.0L * (b[d] - space_[d].low) / range - 1.0L);
    }
    const Real r = std::sqrt(5.0L * r2);
    const Real kernel = config_.kernel == Kernel::matern52
                            ? (1.0L + r + r * r / 3.0L) * std::exp(-r)
                            : std::exp(-0.5L * r2);
    Real terms = 1.0;
    for (std::size_t d = 0; d < s.size() && config_.mean != Mean::constant; ++d) {
      terms += s[d] * t[d];
      for (std::size_t e = d; e < s.size() && config_.mean == Mean::quadratic; ++e)
        terms += s[d] * s[e] * t[d] * t[e];
    }
    return hyper_.amplitude * hyper_.amplitude * kernel + coefficient_variance_ * terms;
  }

  ParameterSpace space_;
  GaussianProcess::Config config_;
  Matrix x_;
  Hyperparameters hyper_;
  Real centre_ = 0.0, coefficient_variance_ = 0.0;
  RealVector y_;
  RealMatrix inverse_;
};

struct Case {
  Kernel kernel;
  Mean mean;
  std::size_t dimensions;
  bool variances;
};

class GaussianProcessCases : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    config.kernel = GetParam().kernel;
    config.mean = GetParam().mean;
    config.mean_scale = 3.0;  // a wide prior would cost the dense reference its digits
    space = box(GetParam().dimensions);
    RandomStream random(7, "gaussian-process-test");
    x = draw_points(space, 14, random);
    for (std::size_t i = 0; i < x.rows(); ++i) {
      y.push_back(40.0 + 3.0 * std::sin(2.0 * x(i, 0)) + x(i, x.cols() - 1) +
                  0.1 * random.normal());
      if (GetParam().variances) variances.push_back(0.3 * random.uniform());
    }
    for (std::size_t d = 0; d < space.size(); ++d)
      hyper.lengths.push_back(0.8 + 0.5 * static_cast<double>(d));
    hyper.amplitude = 1.7;
    hyper.noise = 0.2;
  }
  GaussianProcess::Config config;
  ParameterSpace space;
  Matrix x;
  std::vector<double> y, variances;
  Hyperparameters hyper;
};

TEST_P(GaussianProcessCases, PosteriorIsTheTextbooks) {
  GaussianProcess process(space, config);
  process.condition({x, y, variances}, hyper);
  ASSERT_EQ(process.mean_used(), config.mean);
  const Reference reference(space, config, x, y, variances, hyper);
  RandomStream random(8, "gaussian-process-test");
  const auto points = draw_points(space, 20, random);
  const auto many = process.predict(points);
  for (std::size_t i = 0; i < points.rows(); ++i) {
    const auto expected = reference.predict(points.row(i));
    const auto found = process.predict(points.row(i));
    EXPECT_NEAR(found.mean, expected.mean, 1e-7);
    EXPECT_NEAR(found.deviation, expected.deviation, 1e-7);
    EXPECT_NEAR(many.means[i], expected.mean, 1e-7);
    EXPECT_NEAR(many.deviations[i], expected.deviation, 1e-7);
  }
  EXPECT_NEAR(process.log_marginal_likelihood(), static_cast<double>(reference.log_likelihood),
              1e-7);
}

TEST_P(GaussianProcessCases, GradientOfTheMarginalLikelihood) {
  GaussianProcess process(space, config);
  process.condition({x, y, variances}, hyper);
  std::vector<double> gradient(space.size() + 2);
  process.log_marginal_likelihood(hyper, gradient);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const auto moved = [&](double by) {
      auto other = hyper;
      double& value =
          i < space.size() ? other.lengths[i] : (i == space.size() ? other.amplitude : other.noise);
      value *= std::exp(by);
      return process.log_marginal_likelihood(other);
    };
    EXPECT_NEAR(gradient[i], (moved(1e-5) - moved(-1e-5)) / 2e-5, 1e-5) << i;
  }
}

TEST_P(GaussianProcessCases, GradientOfThePosterior) {
  GaussianProcess process(space, config);
  process.condition({x, y, variances}, hyper);
  RandomStream random(9, "gaussian-process-test");
  const auto points = draw_points(space, 5, random);
  for (std::size_t i = 0; i < points.rows(); ++i) {
    std::vector<double> of_mean(space.size()), of_deviation(space.size());
    process.predict(points.row(i), of_mean, of_deviation);
    for (std::size_t d = 0; d < space.size(); ++d) {
      const auto moved = [&](double by) {
        std::vector<double> point(points.row(i).begin(), points.row(i).end());
        point[d] += by;
        return process.predict(point);
      };
      const auto up = moved(1e-5), down = moved(-1e-5);
      EXPECT_NEAR(of_mean[d], (up.mean - down.mean) / 2e-5, 1e-5);
      EXPECT_NEAR(of_deviation[d], (up.deviation - down.deviation) / 2e-5, 1e-5);
    }
  }
}

TEST_P(GaussianProcessCases, LeaveOneOutIsWhatTheOthersSay) {
  GaussianProcess process(space, config);
  process.condition({x, y, variances}, hyper);
  const auto found = process.leave_one_out();
  for (std::size_t left = 0; left < y.size(); ++left) {
    std::vector<double> other_y, other_variances;
    std::vector<std::size_t> rows;
    for (std::size_t i = 0; i < y.size(); ++i)
      if (i != left) {
        rows.push_back(i);
        other_y.push_back(y[i]);
        if (!variances.empty()) other_variances.push_back(variances[i]);
      }
    const Reference reference(space, config, x.take(rows), other_y, other_variances, hyper, y);
    const auto expected = reference.predict(x.row(left));
    EXPECT_NEAR(found.residuals[left], y[left] - expected.mean, 1e-6);
    const double known = variances.empty() ? 0.0 : variances[left];
    EXPECT_NEAR(
        found.deviations[left],
        std::sqrt(expected.deviation * expected.deviation + hyper.noise * hyper.noise + known),
        1e-6);
  }
}

TEST_P(GaussianProcessCases, SaveAndLoadGiveTheSameBits) {
  config.noise = 0.25;
  config.seed = 5;
  GaussianProcess process(space, config);
  process.fit({x, y, variances});
  Archive archive;
  process.save(archive);
  GaussianProcess loaded;
  loaded.load(archive);
  EXPECT_EQ(loaded.config(), process.config());
  EXPECT_EQ(loaded.box(), process.box());
  EXPECT_EQ(loaded.hyperparameters(), process.hyperparameters());
  EXPECT_EQ(loaded.predict(x).means, process.predict(x).means);
  EXPECT_EQ(loaded.predict(x).deviations, process.predict(x).deviations);
}

INSTANTIATE_TEST_SUITE_P(
    All, GaussianProcessCases,
    ::testing::Values(Case{Kernel::matern52, Mean::constant, 1, false},
                      Case{Kernel::squared_exponential, Mean::constant, 2, true},
                      Case{Kernel::matern52, Mean::linear, 3, true},
                      Case{Kernel::squared_exponential, Mean::linear, 2, false},
                      Case{Kernel::matern52, Mean::quadratic, 2, true},
                      Case{Kernel::squared_exponential, Mean::quadratic, 1, false}));

TEST(GaussianProcess, InterpolatesWithoutNoise) {
  const auto space = box(2);
  RandomStream random(1, "gaussian-process-test");
  const auto x = draw_points(space, 60, random);
  std::vector<double> y;
  const auto f = [](std::span<const double> p) { return std::exp(-p[0]) * std::cos(p[1]); };
  for (std::size_t i = 0; i < x.rows(); ++i) y.push_back(f(x.row(i)));
  for (const auto kernel : {Kernel::matern52, Kernel::squared_exponential}) {
    GaussianProcess::Config config;
    config.kernel = kernel;
    config.noise = 0.0;
    GaussianProcess process(space, config);
    process.fit({x, y});
    const auto at = process.predict(x);
    for (std::size_t i = 0; i < y.size(); ++i) {
      EXPECT_NEAR(at.means[i], y[i], 1e-4);
      EXPECT_LT(at.deviations[i], 1e-2);
    }
    double inside = 0.0;
    const auto between = draw_points(space, 200, random);
    const auto predicted = process.predict(between);
    for (std::size_t i = 0; i < between.rows(); ++i) {
      const double error = predicted.means[i] - f(between.row(i));
      EXPECT_LT(std::abs(error), 0.6);
      inside += std::abs(error) < 3.0 * predicted.deviations[i] + 1e-4;
    }
    EXPECT_GT(inside, 180.0);
  }
}

/// A function drawn from the process, at points drawn over the box.
std::vector<double> draw_function(const ParameterSpace& space, const Matrix& x,
                                  const Hyperparameters& hyper, RandomStream& random) {
  const auto n = static_cast<Eigen::Index>(x.rows());
  Eigen::MatrixXd covariance(n, n);
  for (Eigen::Index i = 0; i < n; ++i)
    for (Eigen::Index j = 0; j < n; ++j) {
      double r2 = 0.0;
      for (std::size_t d = 0; d < space.size(); ++d) {
        const double difference =
            x(static_cast<std::size_t>(i), d) - x(static_cast<std::size_t>(j), d);
        r2 += difference * difference / (hyper.lengths[d] * hyper.lengths[d]);
      }
      const double r = std::sqrt(5.0 * r2);
      covariance(i, j) = hyper.amplitude * hyper.amplitude * (1.0 + r + r * r / 3.0) * std::exp(-r);
      if (i == j) covariance(i, j) += hyper.noise * hyper.noise;
    }
  Eigen::VectorXd z(n);
  for (Eigen::Index i = 0; i < n; ++i) z[i] = random.normal();
  const Eigen::VectorXd y = covariance.llt().matrixL() * z;
  return {y.data(), y.data() + n};
}

TEST(GaussianProcess, RecoversTheHyperparametersOfDrawnFunctions) {
  const auto space = box(2);  // ranges 3 and 5
  const Hyperparameters truth{{0.5, 2.0}, 4.0, 0.3};
  // Over 8 draws of 150 points the logarithms scatter by about 0.15, 0.2, 0.25 and 0.15, so that
  // their means scatter by less than 0.1: a deviation of 0.4 is beyond 4 standard deviations.
  std::vector<double> mean(4, 0.0);
  const int draws = 8;
  for (int draw = 0; draw < draws; ++draw) {
    RandomStream random(static_cast<std::uint64_t>(draw), "gaussian-process-draw");
    const auto x = draw_points(space, 150, random);
    const auto y = draw_function(space, x, truth, random);
    GaussianProcess::Config config;
    config.starts = 2;
    GaussianProcess process(space, config);
    process.fit({x, y});
    const auto& found = process.hyperparameters();
    mean[0] += std::log(found.lengths[0] / truth.lengths[0]) / draws;
    mean[1] += std::log(found.lengths[1] / truth.lengths[1]) / draws;
    mean[2] += std::log(found.amplitude / truth.amplitude) / draws;
    mean[3] += std::log(found.noise / truth.noise) / draws;
    // Their leave-one-out residuals are standard normal: the mean square of 150 is 1 ± 0.12, and
    // within 0.5 of it but for one in 10^4.
    const auto left = process.leave_one_out();
    double square = 0.0;
    for (std::size_t i = 0; i < y.size(); ++i)
      square += std::pow(left.residuals[i] / left.deviations[i], 2) / static_cast<double>(y.size());
    EXPECT_NEAR(square, 1.0, 0.5);
  }
  for (const double deviation : mean) EXPECT_NEAR(deviation, 0.0, 0.4);
}

TEST(GaussianProcess, TellsNoiseFromTheFunction) {
  const auto space = box(1);
  RandomStream random(3, "gaussian-process-test");
  const auto x = draw_points(space, 200, random);
  std::vector<double> y;
  for (std::size_t i = 0; i < x.rows(); ++i)
    y.push_back(std::sin(3.0 * x(i, 0)) + 0.2 * random.normal());
  GaussianProcess process(space);
  process.fit({x, y});
  // The estimate of σ from 200 values has an error of 5 %; 20 % is 4 standard deviations.
  EXPECT_NEAR(process.hyperparameters().noise, 0.2, 0.04);
  const double point[] = {0.5};
  EXPECT_NEAR(process.predict(point).mean, std::sin(1.5), 0.2);
  EXPECT_LT(process.predict(point).deviation, 0.1);
}

TEST(GaussianProcess, KnownVariancesCarryTheirWeight) {
  // Twenty good values of a line, and twenty poor ones that are 5 too high.
  const auto space = box(1);
  Matrix x(40, 1);
  std::vector<double> y, variances;
  for (std::size_t i = 0; i < 40; ++i) {
    x(i, 0) = -1.0 + 3.0 * (static_cast<double>(i) + 0.5) / 40.0;
    y.push_back(x(i, 0) + (i % 2 == 0 ? 0.0 : 5.0));
    variances.push_back(i % 2 == 0 ? 1e-6 : 100.0);
  }
  GaussianProcess process(space);
  process.fit({x, y, variances});
  for (const double at : {-0.5, 0.3, 1.5}) {
    const double point[] = {at};
    EXPECT_NEAR(process.predict(point).mean, at, 0.1);
  }
}

TEST(GaussianProcess, TheSamePointTwice) {
  const auto space = box(1);
  for (const double noise : {0.0, 0.5}) {
    GaussianProcess::Config config;
    config.noise = noise;
    GaussianProcess process(space, config);
    const Matrix x(5, 1, {0.0, 0.0, 0.0, 1.0, 1.0});
    const std::vector<double> y = {1.0, 1.2, 0.8, 3.0, 3.0};
    process.fit({x, y});
    const double point[] = {0.0};
    const auto found = process.predict(point);
    EXPECT_NEAR(found.mean, 1.0, noise == 0.0 ? 1e-3 : 0.5);
    EXPECT_TRUE(std::isfinite(found.deviation));
    for (const double value : process.leave_one_out().residuals) EXPECT_TRUE(std::isfinite(value));
  }
}

TEST(GaussianProcess, ConstantData) {
  const auto space = box(2);
  RandomStream random(5, "gaussian-process-test");
  const auto x = draw_points(space, 20, random);
  for (const double constant : {0.0, 1.0, -3e5}) {
    for (const auto mean : {Mean::constant, Mean::quadratic}) {
      GaussianProcess::Config config;
      config.mean = mean;
      GaussianProcess process(space, config);
      process.fit({x, std::vector<double>(20, constant)});
      const double point[] = {0.3, 0.4};
      const auto found = process.predict(point);
      const double unit = constant == 0.0 ? 1.0 : std::abs(constant);
      EXPECT_NEAR(found.mean, constant, 1e-6 * unit);
      EXPECT_LT(found.deviation, 0.05 * unit);
    }
  }
}

TEST(GaussianProcess, OnePoint) {
  for (const auto mean : {Mean::constant, Mean::linear, Mean::quadratic}) {
    GaussianProcess::Config config;
    config.mean = mean;
    GaussianProcess process(box(2), config);
    const std::vector<double> y = {5.0};
    process.fit({Matrix(1, 2, {0.0, 0.0}), y});
    EXPECT_EQ(process.mean_used(), Mean::constant);
    const double here[] = {0.0, 0.0}, there[] = {1.5, -1.5};
    EXPECT_NEAR(process.predict(here).mean, 5.0, 0.01);
    EXPECT_NEAR(process.predict(there).mean, 5.0, 0.01);
    EXPECT_GT(process.predict(there).deviation, 10.0 * process.predict(here).deviation);
  }
}

TEST(GaussianProcess, FivePointsDoNotBlowUp) {
  const auto space = box(2);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    RandomStream random(seed, "gaussian-process-few");
    const auto x = draw_points(space, 5, random);
    std::vector<double> y;
    for (std::size_t i = 0; i < 5; ++i) y.push_back(random.normal());
    for (const auto mean : {Mean::constant, Mean::quadratic}) {
      GaussianProcess::Config config;
      config.mean = mean;
      GaussianProcess process(space, config);
      process.fit({x, y});
      const auto& hyper = process.hyperparameters();
      EXPECT_GT(hyper.lengths[0], 0.03);
      EXPECT_LT(hyper.lengths[0], 60.0);
      EXPECT_LT(hyper.amplitude, 20.0);
      EXPECT_LT(hyper.noise, 5.0);
      for (const auto& corner : {std::array{-1.0, -2.0}, std::array{2.0, 3.0}}) {
        const auto found = process.predict(corner);
        EXPECT_LT(std::abs(found.mean), 20.0);
        EXPECT_GT(found.deviation, 1e-3);
      }
    }
  }
}

TEST(GaussianProcess, AnswersDoNotDependOnUnits) {
  RandomStream random(6, "gaussian-process-test");
  const auto space = box(2);
  const auto x = draw_points(space, 30, random);
  std::vector<double> y;
  for (std::size_t i = 0; i < x.rows(); ++i)
    y.push_back(std::sin(2.0 * x(i, 0)) * x(i, 1) + 0.05 * random.normal());
  GaussianProcess process(space);
  process.fit({x, y});
  const double point[] = {0.7, 0.9};
  const auto expected = process.predict(point);
  for (const double unit : {1e-200, 1e-8, 1e8, 1e200}) {
    const double input_unit = unit < 1.0 ? 1e-12 : 1e12;
    std::vector<Parameter> parameters;
    for (const auto& p : space)
      parameters.push_back({p.name, p.low * input_unit, p.high * input_unit, {}});
    Matrix scaled_x = x;
    for (double& value : scaled_x.values()) value *= input_unit;
    std::vector<double> scaled_y;
    for (const double value : y) scaled_y.push_back(value * unit);
    GaussianProcess scaled{ParameterSpace(parameters)};
    scaled.fit({scaled_x, scaled_y});
    const double scaled_point[] = {0.7 * input_unit, 0.9 * input_unit};
    const auto found = scaled.predict(scaled_point);
    EXPECT_NEAR(found.mean / unit, expected.mean, 1e-3);
    EXPECT_NEAR(found.deviation / unit, expected.deviation, 1e-3);
  }
}

TEST(GaussianProcess, AnExactQuadraticIsAllMean) {
  // A function of a range of 10^4 that the mean describes: exact everywhere, as far as doubles go.
  const auto space = box(2);
  RandomStream random(10, "gaussian-process-test");
  const auto x = draw_points(space, 15, random);
  const auto f = [](std::span<const double> p) {
    return -1e4 * (p[0] - 0.3) * (p[0] - 0.3) - 50.0 * (p[1] + 0.2) * (p[1] + 0.2) +
           3.0 * p[0] * p[1];
  };
  std::vector<double> y;
  for (std::size_t i = 0; i < x.rows(); ++i) y.push_back(f(x.row(i)));
  GaussianProcess::Config config;
  config.mean = Mean::quadratic;
  GaussianProcess process(space, config);
  process.fit({x, y});
  const auto points = draw_points(space, 50, random);
  for (std::size_t i = 0; i < points.rows(); ++i)
    EXPECT_NEAR(process.predict(points.row(i)).mean, f(points.row(i)), 1e-3);
}

TEST(GaussianProcess, ThousandsOfPointsOnAnyNumberOfThreads) {
  const auto space = box(2);
  RandomStream random(11, "gaussian-process-test");
  const auto x = draw_points(space, 1500, random);
  std::vector<double> y;
  for (std::size_t i = 0; i < x.rows(); ++i)
    y.push_back(std::sin(2.0 * x(i, 0)) * std::cos(x(i, 1)) + 0.1 * random.normal());
  GaussianProcess::Config config;
  config.starts = 1;
  config.evaluations = 20;
  config.search_points = 200;
  std::vector<std::vector<double>> means;
  const auto points = draw_points(space, 300, random);
  for (const std::size_t count : {1, 2}) {
    set_threads(count);
    GaussianProcess process(space, config);
    process.fit({x, y});
    means.push_back(process.predict(points).means);
  }
  set_threads(0);
  EXPECT_EQ(means[0], means[1]);
  double worst = 0.0;
  for (std::size_t i = 0; i < points.rows(); ++i)
    worst = std::max(worst,
                     std::abs(means[0][i] - std::sin(2.0 * points(i, 0)) * std::cos(points(i, 1))));
  EXPECT_LT(worst, 0.1);
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(GaussianProcess, SaysWhatIsWrong) {
  GaussianProcess process(box(1));
  const std::vector<double> two = {1.0, 2.0}, one = {1.0}, bad = {1.0, NAN};
  const Matrix x(2, 1, {0.0, 1.0});
  const double point[] = {0.0}, wide[] = {0.0, 0.0};
  EXPECT_EQ(message_of([&] { process.predict(point); }),
            "GaussianProcess::predict: process is without observations, but must be fitted first");
  EXPECT_NE(message_of([&] { process.fit({x, one}); }).find("y has 1 values"), std::string::npos);
  EXPECT_NE(message_of([&] { process.fit({x, bad}); }).find("y[1] is nan"), std::string::npos);
  EXPECT_NE(message_of([&] {
              process.fit({Matrix(0, 1), {}});
            }).find("observations is 0"),
            std::string::npos);
  const std::vector<double> negative = {1.0, -1.0};
  EXPECT_NE(message_of([&] {
              process.fit({x, two, negative});
            }).find("variances[1] is -1"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              process.condition({x, two}, {{-1.0}, 1.0, 0.0});
            }).find("length"),
            std::string::npos);
  process.fit({x, two});
  EXPECT_NE(message_of([&] { process.predict(wide); }).find("point has 2 values"),
            std::string::npos);
  EXPECT_THROW(GaussianProcess(ParameterSpace{}), ArgumentError);
  Archive archive;
  process.save(archive);
  archive.set("kernel", "cubic");
  EXPECT_THROW(GaussianProcess().load(archive), FileError);
}

}  // namespace
}  // namespace neyman
