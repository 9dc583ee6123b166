#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "neyman/core/random.hpp"
#include "neyman/inference/statistics.hpp"
#include "neyman/reports/results.hpp"

// Invented results with the shapes of a real run: a mixture of three normals, γ the share of the
// third. Every number is fixed: the tests know them.
namespace neyman::example {

inline double normal_density(double x, double mean, double sigma) {
  const double z = (x - mean) / sigma;
  return std::exp(-0.5 * z * z) / (sigma * std::sqrt(2.0 * std::acos(-1.0)));
}

inline double density(double x, double gamma) {
  return 0.5 * (1.0 - gamma) * (normal_density(x, -2.0, 0.25) + normal_density(x, 0.0, 2.0)) +
         gamma * normal_density(x, 1.0, 0.5);
}

inline double log_ratio(double x) { return std::log(density(x, 0.05) / density(x, 0.0)); }

inline std::vector<double> draw(double gamma, std::size_t count, RandomStream random) {
  std::vector<double> out;
  for (std::size_t i = 0; i < count; ++i) {
    const double u = random.uniform(), z = random.normal();
    out.push_back(u < gamma                       ? 1.0 + 0.5 * z
                  : u < gamma + 0.5 * (1 - gamma) ? -2.0 + 0.25 * z
                                                  : 2.0 * z);
  }
  return out;
}

inline std::vector<double> line(double low, double high, std::size_t count) {
  std::vector<double> out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(low + (high - low) * static_cast<double>(i) / static_cast<double>(count - 1));
  return out;
}

/// A fit of one parameter with a slightly skewed likelihood around its estimate.
inline FitReport fit_report(double estimate, double statistical, double simulation) {
  FitReport report;
  auto& fit = report.fit;
  fit.status = FitStatus::converged;
  fit.point = {estimate};
  fit.log_likelihood = 27.46;
  fit.covariance = Matrix(1, 1, {statistical * statistical});
  fit.simulation_covariance = Matrix(1, 1, {simulation * simulation});
  fit.distance = 2.5e-12;
  fit.evaluations = 9;
  const auto statistic = [&](double value) {
    const double z = (value - estimate) / statistical;
    return z * z * (1.0 - 0.02 * z);
  };
  auto& with = report.intervals.emplace_back();
  auto& without = report.statistical_intervals.emplace_back();
  for (const double level : {0.683, 0.95}) {
    const double n = std::sqrt(chi2_quantile(level));
    const auto ends = [&](double error) {
      return Interval{level, estimate - n * error * (1 - 0.01 * n),
                      estimate + n * error * (1 + 0.01 * n), false, false};
    };
    with.push_back(ends(fit.error(0)));
    without.push_back(ends(statistical));
  }
  Scan scan;
  scan.values = line(estimate - 4 * statistical, estimate + 4 * statistical, 101);
  for (const double value : scan.values) scan.statistic.push_back(statistic(value));
  report.scans.push_back(scan);
  return report;
}

inline PairScores pair_scores(std::string numerator, std::string denominator, double mean0,
                              double sigma0, double mean1, double sigma1) {
  PairScores out{std::move(numerator), std::move(denominator), line(0, 1, 51), {}, {}, {}, {}};
  const auto score = [&](double x) {
    const double p0 = normal_density(x, mean0, sigma0), p1 = normal_density(x, mean1, sigma1);
    return p1 / (p0 + p1);
  };
  const auto histogram = [&](double mean, double sigma, std::uint64_t block) {
    RandomStream random(7, "scores", block);
    std::vector<double> counts(50, 0.0);
    for (int i = 0; i < 20000; ++i) {
      const double s = score(mean + sigma * random.normal());
      counts[std::min<std::size_t>(49, static_cast<std::size_t>(50.0 * s))] += 50.0 / 20000.0;
    }
    return counts;
  };
  out.numerator_density = histogram(mean0, sigma0, 0);
  out.denominator_density = histogram(mean1, sigma1, 1);
  out.scores = line(0.0025, 0.9975, 399);
  for (const double s : out.scores)
    out.calibrated.push_back(s + 0.05 * s * (1 - s) * std::sin(7.0 * s));
  return out;
}

inline RatioComparison comparison(std::string classifier, double wave, bool steps) {
  RatioComparison out;
  out.classifier = std::move(classifier);
  out.uncalibrated_error = 0.4 * wave;
  out.calibrated_error = 0.15 * wave;
  out.decomposed_error = 0.03 * wave;
  out.x = line(-6.5, 6.5, 401);
  RandomStream random(3, "steps", steps ? 1 : 0);
  double jump = 0.0;
  for (std::size_t i = 0; i < out.x.size(); ++i) {
    if (steps && i % 6 == 0) jump = random.normal();
    const double exact = log_ratio(out.x[i]);
    const double error = steps ? jump : std::sin(3.0 * out.x[i]) + 0.4 * out.x[i];
    out.exact.push_back(exact);
    out.uncalibrated.push_back(exact + wave * error);
    out.calibrated.push_back(exact + 0.35 * wave * error);
    out.decomposed.push_back(exact + 0.07 * wave * error);
  }
  return out;
}

inline EnsembleSide ensemble_side(double shift) {
  EnsembleSide side;
  const std::size_t n = 1000;
  side.estimates = Matrix(n, 1);
  RandomStream random(11, "ensemble");
  for (std::size_t d = 0; d < n; ++d) {
    const double z = random.normal();
    const double own = shift == 0.0 ? 0.0 : 0.05 * std::sin(1000.0 * z);
    side.estimates(d, 0) = 0.05 + 0.0067 * (z + shift + own);
    side.statistic.push_back((z + shift + own) * (z + shift + own));
  }
  const auto column = side.estimates.column(0);
  side.means = {mean(column)};
  side.spreads = {standard_deviation(column)};
  for (const double level : {0.683, 0.95})
    side.coverage.push_back(
        static_cast<double>(std::count_if(side.statistic.begin(), side.statistic.end(),
                                          [&](double t) { return t <= chi2_quantile(level); })) /
        static_cast<double>(n));
  side.wilks = ks_test_chi2(side.statistic);
  return side;
}

inline Diagnostic diagnostic(std::string name, std::string explanation, double statistic,
                             std::optional<double> p_value,
                             Diagnostic::Verdict verdict = Diagnostic::Verdict::pass) {
  Diagnostic out;
  out.name = std::move(name);
  out.explanation = std::move(explanation);
  out.statistic = statistic;
  out.p_value = p_value;
  out.verdict = verdict;
  return out;
}

inline Results results() {
  Results r;
  r.name = "mixture";
  r.title = "Share of a narrow signal in a mixture of normals";
  r.version = "0.1.0";
  r.command = "neyman run study.toml";
  r.seed = 1;
  r.parameters = ParameterSpace({{"gamma", 0.0, 1.0, 0.05}});
  r.reference = {0.0};
  r.feature_names = {"x"};
  r.component_names = {"narrow", "wide", "signal"};
  r.classifier = "mlp";
  r.calibration = "smooth";
  r.data_source = "observed.csv";
  r.events = 5000;
  r.levels = {0.683, 0.95};

  r.fit = fit_report(0.0461, 0.00662, 0.0011);
  r.exact_fit = fit_report(0.0458759, 0.00660, 0.0);

  SimpleTest test;
  test.config = {{0.05}, {0.0}, 1000, 0.05, 1};
  test.statistic = 27.1;
  test.p_value = 0.2547;
  test.power = 0.998;
  RandomStream random(5, "test");
  for (int i = 0; i < 1000; ++i) {
    test.null_statistics.push_back(31.0 + 6.0 * random.normal());
    test.alternative_statistics.push_back(-24.0 + 5.0 * random.normal());
  }
  std::sort(test.null_statistics.begin(), test.null_statistics.end());
  std::sort(test.alternative_statistics.begin(), test.alternative_statistics.end());
  r.test = test;

  EnsembleResult ensemble;
  ensemble.config.datasets = 1000;
  ensemble.config.events = 5000;
  ensemble.config.point = {0.05};
  ensemble.approximate = ensemble_side(0.12);
  ensemble.exact = ensemble_side(0.0);
  ensemble.bias = {0.12};
  ensemble.simulation_share = {0.166};
  ensemble.coverage_with_simulation = {0.689, 0.951};
  r.ensemble = ensemble;

  r.diagnostics = {
      diagnostic(
          "normalisation",
          "The mean of r̂ over held-out events of the denominator is 1.00012 before it is set "
          "to one; the statistic is its deviation in standard errors.",
          0.48, 0.63),
      diagnostic(
          "wilks",
          "Over the ensemble, −2 log Λ at the simulated point should follow χ²; the statistic "
          "is the Kolmogorov–Smirnov distance.",
          0.0231, 0.65)};

  r.compared_point = {0.05};
  r.data = Matrix(5000, 1, draw(0.05, 5000, RandomStream(1, "data")));
  r.pair_scores = {pair_scores("narrow", "wide", -2.0, 0.25, 0.0, 2.0),
                   pair_scores("narrow", "signal", -2.0, 0.25, 1.0, 0.5),
                   pair_scores("wide", "signal", 0.0, 2.0, 1.0, 0.5)};
  r.comparisons = {comparison("mlp", 0.05, false), comparison("random-forest", 0.2, true)};
  r.density_x = line(-6.5, 6.5, 401);
  for (const double x : r.density_x) {
    r.numerator_density.push_back(density(x, 0.05));
    r.denominator_density.push_back(density(x, 0.0));
  }
  RandomStream noise(2, "noise");
  for (const double x : draw(0.05, 20000, RandomStream(1, "evaluation"))) {
    r.exact_log_ratios.push_back(log_ratio(x));
    r.log_ratios.push_back(r.exact_log_ratios.back() + 0.002 * noise.normal());
  }

  r.budget = {
      {"simulated", 200000}, {"compare", 200000}, {"ensemble", 5000000}, {"test", 10000000}};
  r.timing = {{"simulate", 0.021}, {"train", 8.4},    {"fit", 0.31},
              {"test", 3.2},       {"ensemble", 6.1}, {"compare", 12.9}};
  r.threads = 2;
  return r;
}

}  // namespace neyman::example
