#include "neyman/diagnostics/recovery.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/support.hpp"
#include "neyman/core/random.hpp"

namespace neyman {
namespace {

using test::message_of;
using Verdict = Diagnostic::Verdict;

/// Σ log r of events N(θ_0, 1) × N(θ_1, 1), as a ratio that has learned them wrongly gives it: the
/// means are off by `bias`, and the curvature by a factor.
class NormalLikelihood final : public Likelihood {
 public:
  NormalLikelihood(Matrix x, std::vector<double> bias, double slope = 1.0, bool gradients = true)
      : x_(std::move(x)), bias_(std::move(bias)), slope_(slope), gradients_(gradients) {
    std::vector<Parameter> parameters;
    for (std::size_t p = 0; p < x_.cols(); ++p)
      parameters.push_back({"m" + std::to_string(p), -2.0, 2.0, {}});
    parameters_ = ParameterSpace(std::move(parameters));
  }
  const ParameterSpace& parameters() const override { return parameters_; }
  std::size_t events() const override { return x_.rows(); }
  bool differentiable() const override { return gradients_; }
  double operator()(std::span<const double> point, std::span<double> gradient = {}) const override {
    double sum = 0.0;
    std::fill(gradient.begin(), gradient.end(), 0.0);
    for (std::size_t i = 0; i < x_.rows(); ++i)
      for (std::size_t p = 0; p < x_.cols(); ++p) {
        const double away = x_(i, p) - point[p] + bias_[p];
        sum -= 0.5 * slope_ * away * away;
        if (!gradient.empty()) gradient[p] += slope_ * away;
      }
    return sum;
  }

 private:
  Matrix x_;
  std::vector<double> bias_;
  double slope_;
  bool gradients_;
  ParameterSpace parameters_;
};

struct Problem {
  std::size_t parameters = 2, data = 400, events = 10000, parts = 40;
  std::vector<double> bias = {0.0, 0.0};
  double slope = 1.0, simulation = 0.0;  ///< error of the estimate
  bool gradients = true;

  Fit estimate() const {
    Fit out;
    out.status = FitStatus::converged;
    out.point = {0.3, -0.4};
    out.point.resize(parameters, 0.1);
    out.covariance = out.simulation_covariance = Matrix(parameters, parameters);
    for (std::size_t p = 0; p < parameters; ++p) {
      out.covariance(p, p) = 1.0 / (slope * static_cast<double>(data));
      out.simulation_covariance(p, p) = simulation * simulation;
    }
    return out;
  }
  std::vector<std::unique_ptr<const Likelihood>> simulated(std::uint64_t seed) const {
    const auto at = estimate().point;
    RandomStream random(seed, "recovery-test");
    // The learned means are as far off as finite simulation says they may be.
    auto off = bias;
    for (auto& one : off) one += simulation * random.normal();
    std::vector<std::unique_ptr<const Likelihood>> out;
    for (std::size_t k = 0; k < parts; ++k) {
      Matrix x(events * (k + 1) / parts - events * k / parts, parameters);
      for (std::size_t i = 0; i < x.rows(); ++i)
        for (std::size_t p = 0; p < parameters; ++p) x(i, p) = at[p] + random.normal();
      out.push_back(std::make_unique<NormalLikelihood>(std::move(x), off, slope, gradients));
    }
    return out;
  }
  Recovery recovered(std::uint64_t seed, std::span<const Constraint> constraints = {}) const {
    // The covariance of the gradient that goes with such an error of the estimate.
    Matrix covariance(parameters, parameters);
    for (std::size_t p = 0; p < parameters; ++p)
      covariance(p, p) = std::pow(static_cast<double>(events) * slope * simulation, 2);
    return recover(estimate(), static_cast<double>(data), simulated(seed), covariance, constraints);
  }
};

TEST(Recovery, FindsTheMeanOfTheEvents) {
  Problem problem;
  problem.bias = {0.05, 0.0};
  const auto found = problem.recovered(3);
  const auto parts = problem.simulated(3);
  std::vector<double> gradient(2), sum(2);
  for (const auto& part : parts) {
    (*part)(problem.estimate().point, gradient);
    for (std::size_t p = 0; p < 2; ++p) sum[p] += gradient[p];
  }
  for (std::size_t p = 0; p < 2; ++p) {
    EXPECT_NEAR(found.shift[p], sum[p] / 10000.0, 1e-9);  // the likelihood is a parabola
    EXPECT_NEAR(std::sqrt(found.noise(p, p)), 0.01, 0.003);
    EXPECT_NEAR(found.spread[p], 1.0, 0.35);  // of 40 parts: 11 %
  }
  EXPECT_NEAR(found.shift[0], 0.05, 0.05);
  EXPECT_EQ(found.events, 10000.0);
}

TEST(Recovery, PValuesAreUniformWhereTheRatioIsRight) {
  // 400 seeds at 10 % and 1 %: outside of these bounds once in 10 000 for a right level; with a
  // reported simulation error that is as large as the noise, too.
  for (const double simulation : {0.0, 0.01}) {
    Problem problem;
    problem.events = 2000;
    problem.simulation = simulation;
    RecoveryConfig config;
    config.tolerance = 0.0;
    std::size_t tenth = 0, hundredth = 0;
    double sum = 0.0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
      const double p = *diagnose_recovery(problem.recovered(seed), config).p_value;
      tenth += p < 0.1;
      hundredth += p < 0.01;
      sum += p / 400.0;
    }
    EXPECT_GT(tenth, 18u);
    EXPECT_LT(tenth, 66u);
    EXPECT_LT(hundredth, 14u);
    EXPECT_NEAR(sum, 0.5, 0.06);
  }
}

TEST(Recovery, TheShiftDecidesHowBadItIs) {
  // 400 events: a statistical error of 0.05. Noise of a tenth of it.
  const auto verdict = [](double bias, double simulation, std::size_t events = 40000) {
    Problem problem;
    problem.bias = {bias, 0.0};
    problem.simulation = simulation;
    problem.events = events;
    auto recovery = problem.recovered(5);
    std::vector<Diagnostic> all = {diagnose_recovery(recovery)};
    judge(all);
    return all[0].verdict;
  };
  EXPECT_EQ(verdict(0.0, 0.0), Verdict::pass);
  EXPECT_EQ(verdict(0.03, 0.0), Verdict::warn);  // 0.6 standard errors: sure, but below one
  EXPECT_EQ(verdict(0.10, 0.0), Verdict::fail);
  EXPECT_EQ(verdict(0.0, 0.1), Verdict::pass);  // reported: not an error of its own
  EXPECT_EQ(verdict(0.0, 0.0, 200), Verdict::no_power);
  EXPECT_EQ(verdict(0.003, 0.0, 1000000), Verdict::pass);  // sure, and does no harm
}

TEST(Recovery, HoldsForALikelihoodThatIsTooSteep) {
  // The curvature promises half the error that the events scatter with: the noise is that of the
  // events.
  Problem problem;
  problem.slope = 4.0;
  const auto found = problem.recovered(11);
  EXPECT_NEAR(std::sqrt(found.noise(0, 0)), 0.01, 0.003);
  EXPECT_NEAR(found.spread[0], 2.0, 0.6);
}

TEST(Recovery, WithoutGradientsStepsOverAStandardError) {
  Problem problem;
  problem.bias = {0.05, 0.0};
  const auto smooth = problem.recovered(7);
  problem.gradients = false;
  const auto rough = problem.recovered(7);
  for (std::size_t p = 0; p < 2; ++p) EXPECT_NEAR(rough.shift[p], smooth.shift[p], 1e-9);
}

TEST(Recovery, ConstraintsHoldAParameterAsTheyDoInTheData) {
  // A constraint as strong as the data: half the shift, and its own observation does not matter.
  Problem problem;
  problem.bias = {0.1, 0.0};
  const auto estimate = [&] {
    auto fit = problem.estimate();
    fit.covariance(0, 0) *= 0.5;
    return fit;
  }();
  const std::vector<Constraint> constraints = {Constraint::gaussian(0, 1.7, 0.05)};
  const auto found = recover(estimate, 400.0, problem.simulated(1), Matrix(), constraints);
  const auto free = problem.recovered(1);
  EXPECT_NEAR(found.shift[0], 0.5 * free.shift[0], 1e-9);
  EXPECT_NEAR(found.shift[1], free.shift[1], 1e-9);
}

TEST(Recovery, ParametersAtABoundStay) {
  Problem problem;
  auto estimate = problem.estimate();
  estimate.covariance(1, 1) = 0.0;
  const auto found = recover(estimate, 400.0, problem.simulated(1), Matrix());
  EXPECT_EQ(found.shift[1], 0.0);
  EXPECT_EQ(found.noise(1, 1), 0.0);
  EXPECT_NE(found.shift[0], 0.0);
  EXPECT_FALSE(diagnose_recovery(found).number("shift:θ1"));
}

TEST(Recovery, EnlargesTheSimulationErrorWhereItIsTooSmall) {
  Problem problem;
  problem.bias = {0.1, 0.0};
  auto fit = problem.estimate();
  const auto found = problem.recovered(2);
  EXPECT_TRUE(add_recovered_shift(fit, found, diagnose_recovery(found)));
  EXPECT_NEAR(fit.simulation_error(0), std::abs(found.shift[0]), 1e-12);
  problem.bias = {0.0, 0.0};
  auto other = problem.estimate();
  const auto right = problem.recovered(2);
  EXPECT_FALSE(add_recovered_shift(other, right, diagnose_recovery(right)));
  EXPECT_EQ(other.simulation_error(0), 0.0);
}

TEST(Recovery, RefusesWhatItCannotUse) {
  Problem problem;
  problem.parts = 3;
  EXPECT_NE(message_of<ArgumentError>([&] { problem.recovered(1); }).find("number of parts is 3"),
            std::string::npos);
  problem.parts = 40;
  auto estimate = problem.estimate();
  estimate.covariance = Matrix(2, 2);
  EXPECT_NE(message_of<ArgumentError>([&] {
              recover(estimate, 400.0, problem.simulated(1), Matrix());
            }).find("number of parameters that the estimate determines is 0"),
            std::string::npos);
  EXPECT_THROW(recover(problem.estimate(), 0.0, problem.simulated(1), Matrix()), ArgumentError);
  std::vector<std::unique_ptr<const Likelihood>> none(40);
  EXPECT_THROW(recover(problem.estimate(), 400.0, none, Matrix()), ArgumentError);
}

}  // namespace
}  // namespace neyman
