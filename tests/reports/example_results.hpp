#pragma once

#include <algorithm>
#include <array>
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
  fit.simulation_known = true;
  fit.maxima = {{fit.point, fit.log_likelihood}};
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

// ----------------------------------------------------------------------------- two parameters
//
// The shape of a parameterised study: α and β with correlated errors, five features, no
// components, and no reference among the θ.

/// −2 log Λ of a normal likelihood with a little skewness, around (a, b).
inline double paraboloid(double x, double y, double a, double b) {
  constexpr double rho = 0.35;
  const double u = (x - a) / 0.0447, v = (y - b) / 0.134;
  const double q = (u * u - 2 * rho * u * v + v * v) / (1 - rho * rho);
  return q * (1.0 + 0.03 * std::tanh(v));
}

/// An ellipse where the paraboloid without skewness has the value `threshold`.
inline Contour ellipse(double level, double a, double b) {
  Contour out;
  out.level = level;
  out.threshold = chi2_quantile(level, 2.0);
  Polyline line;
  line.closed = true;
  for (int i = 0; i < 90; ++i) {
    const double t = 2.0 * std::acos(-1.0) * i / 90.0, r = std::sqrt(out.threshold);
    const double u = r * std::cos(t), w = r * std::sin(t);
    line.x.push_back(a + 0.0447 * u);
    line.y.push_back(b + 0.134 * (0.35 * u + std::sqrt(1.0 - 0.35 * 0.35) * w));
  }
  out.lines = {line};
  return out;
}

inline SurfaceReport surface(std::string label, double a, double b, std::size_t cells) {
  SurfaceReport out;
  out.label = std::move(label);
  out.minimum = {a, b};
  out.surface.x = line(0.8, 1.2, cells);
  out.surface.y = line(-1.5, -0.3, cells);
  out.surface.statistic = Matrix(cells, cells);
  for (std::size_t i = 0; i < cells; ++i)
    for (std::size_t j = 0; j < cells; ++j)
      out.surface.statistic(i, j) = paraboloid(out.surface.x[j], out.surface.y[i], a, b);
  for (const double sigmas : {1.0, 2.0, 3.0})
    out.contours.push_back(ellipse(level_of_sigmas(sigmas), a, b));
  return out;
}

/// A fit of several parameters with these estimates and errors, all with the same correlation.
inline FitReport several_fit(const std::vector<double>& estimates,
                             const std::vector<double>& errors, double correlation,
                             double simulation_share) {
  FitReport report;
  const std::size_t n = estimates.size();
  auto& fit = report.fit;
  fit.status = FitStatus::converged;
  fit.point = estimates;
  fit.log_likelihood = 512.7;
  fit.covariance = fit.simulation_covariance = Matrix(n, n);
  fit.simulation_known = true;
  fit.maxima = {{fit.point, fit.log_likelihood}};
  fit.evaluations = 31;
  for (std::size_t p = 0; p < n; ++p) {
    for (std::size_t q = 0; q < n; ++q)
      fit.covariance(p, q) = (p == q ? 1.0 : correlation) * errors[p] * errors[q];
    fit.simulation_covariance(p, p) = simulation_share * simulation_share * errors[p] * errors[p];
  }
  for (std::size_t p = 0; p < n; ++p) {
    auto& with = report.intervals.emplace_back();
    auto& without = report.statistical_intervals.emplace_back();
    for (const double level : {0.683, 0.95}) {
      const double k = std::sqrt(chi2_quantile(level));
      const auto ends = [&](double error) {
        return Interval{level, estimates[p] - 0.95 * k * error, estimates[p] + 1.05 * k * error};
      };
      with.push_back(ends(fit.error(p)));
      without.push_back(ends(errors[p]));
    }
    Scan scan;
    scan.parameter = p;
    scan.values = line(estimates[p] - 4 * errors[p], estimates[p] + 4 * errors[p], 61);
    for (const double value : scan.values)
      scan.statistic.push_back(std::pow((value - estimates[p]) / errors[p], 2));
    report.scans.push_back(scan);
  }
  return report;
}

inline CoverageReport coverage_report() {
  CoverageReport out;
  out.config.datasets = 500;
  out.config.critical_datasets = 1000;
  out.config.interest = {0, 1};
  RandomStream random(13, "coverage");
  for (int i = 0; i < 5; ++i) {
    CoveragePoint point;
    point.point = {0.6 + 0.2 * i, -1.4 + 0.2 * i};
    point.ensemble.statistic.assign(499, 1.0);
    point.ensemble.failed = 1;
    point.ensemble.coverage = {0.66 + 0.02 * random.normal(), 0.94 + 0.008 * random.normal()};
    point.coverage_critical = {0.683 + 0.02 * random.normal(), 0.95 + 0.008 * random.normal()};
    point.coverage_error = {0.021, 0.010};
    point.ensemble.wilks = {0.03, 0.4};
    point.critical = {{0.683, 2.30, 2.41, 2.33, 2.50, true}, {0.95, 5.99, 6.21, 6.0, 6.6, true}};
    for (std::size_t p = 0; p < 2; ++p) {
      ProfileSide profile;
      profile.parameter = p;
      profile.coverage = {0.67, 0.945};
      point.ensemble.profiles.push_back(profile);
      point.profile_critical.push_back(
          {{0.683, 1.0, 1.05, 1.0, 1.1, true}, {0.95, 3.84, 3.9, 3.8, 4.1, true}});
      point.profile_coverage_critical.push_back({0.681, 0.949});
    }
    out.points.push_back(point);
  }
  return out;
}

/// A diagnostic with every style of series.
inline Diagnostic closure() {
  auto out = diagnostic("closure",
                        "Each feature's histogram of the denominator, weighted by r̂, must be that "
                        "of the numerator; the statistic is the largest χ² per degree of freedom.",
                        1.31, 0.18);
  out.tolerance = 0.01;
  out.numbers = {{"p_value:x0", 0.18}, {"p_value:x1", 0.5}};
  using Style = Diagnostic::Series::Style;
  for (int f = 0; f < 2; ++f) {
    Diagnostic::Panel panel{"x" + std::to_string(f), "x" + std::to_string(f), "density", {}};
    Diagnostic::Series bins{"numerator", Style::steps, line(-3, 3, 13), {}, {}, {}};
    Diagnostic::Series points{"reweighted denominator", Style::points, {}, {}, {}, {}};
    for (std::size_t b = 0; b < 12; ++b) {
      const double x = 0.5 * (bins.x[b] + bins.x[b + 1]);
      bins.y.push_back(normal_density(x, 0.0, 1.0));
      points.x.push_back(x);
      points.y.push_back(bins.y.back() + 0.01 * std::sin(5.0 * x));
      points.low.push_back(points.y.back() - 0.015);
      points.high.push_back(points.y.back() + 0.015);
    }
    panel.series = {bins, points};
    out.panels.push_back(panel);
  }
  return out;
}

inline Diagnostic reference_curves() {
  auto out = diagnostic("reference",
                        "−2 log Λ and the estimate must not depend on the reference θ1. The "
                        "statistic is the mean square difference between 3 references.",
                        2.9, 0.004, Diagnostic::Verdict::warn);
  out.note = "One reference is far from the data.";
  Diagnostic::Panel panel{"Independence of the reference", "α", "−2 log Λ", {}};
  for (int k = 0; k < 3; ++k) {
    Diagnostic::Series curve;
    curve.name = "θ1 = " + std::to_string(k);
    for (const double x : line(0.85, 1.15, 31)) {
      curve.x.push_back(x);
      curve.y.push_back(std::pow((x - 1.0 - 0.004 * k) / 0.045, 2));
      curve.low.push_back(curve.y.back() - 0.4);
      curve.high.push_back(curve.y.back() + 0.4);
    }
    panel.series.push_back(curve);
  }
  out.panels = {panel};
  return out;
}

inline Diagnostic reweighting() {
  auto out = diagnostic("reweighting",
                        "A boosted-trees classifier tries to tell p(x|θ0) from p(x|θ1) weighted "
                        "by r̂. Its area under the ROC curve is 0.5012 ± 0.0016, and must be one "
                        "half; without weights it is 0.6920.",
                        0.5012, 0.27);
  Diagnostic::Panel panel{"ROC curves", "share of the numerator", "share of the denominator", {}};
  panel.series.push_back(
      {"no separation", Diagnostic::Series::Style::line, {0, 1}, {0, 1}, {}, {}});
  for (const auto& [name, power] : {std::pair{"weighted by r̂", 1.01}, {"without weights", 0.45}}) {
    Diagnostic::Series roc;
    roc.name = name;
    for (const double x : line(0, 1, 101)) {
      roc.x.push_back(x);
      roc.y.push_back(std::pow(x, power));
    }
    panel.series.push_back(roc);
  }
  out.panels = {panel};
  return out;
}

/// Results of a study without components: α and β from five features.
inline Results two_parameters() {
  Results r;
  r.name = "multidimensional";
  r.title = "Two parameters from five correlated features";
  r.version = "0.1.0";
  r.command = "neyman run study.toml";
  r.seed = 1;
  r.parameters = ParameterSpace({{"alpha", 0.0, 2.0, 1.0}, {"beta", -2.0, 0.0, -1.0}});
  r.feature_names = {"x0", "x1", "x2", "x3", "x4"};
  r.ratio = "separable";
  r.classifier = "mlp";
  r.calibration = "smooth";
  r.data_source = "observed.csv";
  r.events = 500;
  r.levels = {0.683, 0.95};
  r.fit = several_fit({1.0146, -0.9083}, {0.0447, 0.134}, 0.35, 0.1);
  r.exact_fit = several_fit({1.01185, -0.92213}, {0.0447, 0.134}, 0.35, 0.0);
  r.surfaces = {surface("exact", 1.01185, -0.92213, 25), surface("learned", 1.0146, -0.9083, 25),
                surface("Gaussian process", 1.009, -0.93, 25)};
  auto& process = r.surfaces[2];
  RandomStream random(17, "evaluated");
  process.evaluated = Matrix(50, 2);
  for (std::size_t i = 0; i < 50; ++i) {
    process.evaluated(i, 0) = 0.8 + 0.4 * random.uniform();
    process.evaluated(i, 1) = -1.5 + 1.2 * random.uniform();
  }
  CompositeTest test;
  test.config.null.fixed = {1.0, -1.0};
  test.config.datasets = 999;
  test.best = r.fit.fit;
  test.null_fit = r.fit.fit;
  test.null_fit.point = {1.0, -1.0};
  test.statistic = 0.62;
  test.degrees = 2.0;
  test.p_value = 0.733;
  test.simulated_p_value = 0.741;
  test.null_statistics = {0.1, 0.5, 2.0};
  r.composite_tests = {test};
  r.coverage = coverage_report();
  r.diagnostics = {closure(), reference_curves(), reweighting()};
  r.data = Matrix(500, 5);
  RandomStream events(19, "events");
  for (std::size_t i = 0; i < 500; ++i) {
    const double z = events.normal();
    for (std::size_t f = 0; f < 5; ++f)
      r.data(i, f) = (f < 2 ? 1.0 : 0.4) * z + static_cast<double>(f) + events.normal();
  }
  r.budget = {{"simulated", 1000000}};
  r.timing = {{"simulate", 0.4}, {"train", 6.2}, {"fit", 0.1}};
  r.threads = 2;
  return r;
}

/// Results with so many parameters and features, and nothing else: those after the fourth are
/// nuisance parameters, and the fourth is at a bound.
inline Results with_parameters(std::size_t count, std::size_t features) {
  static constexpr std::array names = {"A", "B", "mu_1", "sigma_1", "g", "k"};
  Results r = two_parameters();
  std::vector<Parameter> parameters;
  std::vector<double> estimates, errors;
  for (std::size_t p = 0; p < count; ++p) {
    const double next = 1.0 + static_cast<double>(p);
    parameters.push_back({names[p], 0.0, 10.0, std::nullopt, p > 3});
    estimates.push_back(p == 3 ? 0.0 : next);
    errors.push_back(0.05 * next);
  }
  r.parameters = ParameterSpace(parameters);
  r.fit = several_fit(estimates, errors, -0.15, 0.0);
  if (count > 3) {
    r.fit.fit.status = FitStatus::at_bound;
    for (std::size_t p = 0; p < count; ++p)
      r.fit.fit.covariance(3, p) = r.fit.fit.covariance(p, 3) = 0.0;
  }
  r.exact_fit.reset();
  r.surfaces.clear();
  r.composite_tests.clear();
  r.coverage.reset();
  r.feature_names.clear();
  r.data = Matrix(500, features);
  RandomStream events(23, "features");
  for (double& value : r.data.values()) value = events.normal();
  for (std::size_t f = 0; f < features; ++f) r.feature_names.push_back("x" + std::to_string(f));
  return r;
}
inline Results six_parameters() { return with_parameters(6, 1); }

}  // namespace neyman::example
