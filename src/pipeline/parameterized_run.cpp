#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "neyman/inference/parameterized_likelihood.hpp"
#include "neyman/inference/statistics.hpp"
#include "pipeline/stages.hpp"

namespace neyman::pipeline {

namespace {

using LikelihoodPtr = std::shared_ptr<const Likelihood>;

/// Start points of a fit, beside the best of a few: a likelihood may have several maxima.
constexpr std::size_t fit_starts = 6;

std::shared_ptr<const ParameterizedRatio> learn(const Study& study, Results& results) {
  const auto& learned = study.parameterized;
  if (!learned.separable) {
    results.ratio = "classifier";
    results.classifier = learned.classifier.classifier->kind();
    constexpr const char* names[] = {"none", "on-demand", "interpolate", "smooth"};
    results.calibration =
        fmt::format("{} across θ", names[static_cast<int>(learned.classifier.calibration)]);
    Progress progress("train", learned.classifier.folds);
    const auto* stored = study.simulator->stored();
    auto ratio = timed(results, "train", [&] {
      if (stored != nullptr)
        return std::make_shared<ParameterizedClassifierRatio>(
            *stored, Samples{}, *learned.design, learned.classifier, nullptr, &progress);
      return std::make_shared<ParameterizedClassifierRatio>(study.simulator, *learned.design,
                                                            learned.classifier, &progress);
    });
    if (stored != nullptr) results.budget["simulated"] += stored->size();
    note_simulator(study, "training", results);
    return ratio;
  }
  results.ratio = results.classifier = "separable";
  results.calibration = "smooth across θ";
  const auto events = timed(results, "simulate", [&] {
    return simulate(*study.simulator, study.parameters, *learned.design, study.training_samples,
                    derive_seed(study.seed, "training"), "training");
  });
  results.budget["simulated"] += events.size();
  note_simulator(study, "training", results);
  // Where several events have one θ, the θ that there are count, not the ones that could be.
  const bool repeated = study.simulator->stored() != nullptr || study.simulator->runs().events > 1;
  const Design design = repeated ? empirical_design(events, study.parameters) : *learned.design;
  Progress progress("train", 2 * learned.network.folds);
  auto ratio = timed(results, "train", [&] {
    return std::make_shared<SeparableRatio>(events, design, learned.network, &progress);
  });
  if (ratio->resolution() < 5.0)
    results.warnings.push_back(fmt::format(
        "single events tell the parameters to {:.1f} of {} lattice nodes: narrow the ranges, or "
        "raise classifier.nodes",
        ratio->resolution(), learned.network.nodes));
  if (!ratio->converged())
    results.warnings.push_back(
        "the calibration of the separable ratio did not converge: raise training.samples, or lower "
        "classifier.degree or classifier.hidden");
  return ratio;
}

LikelihoodPtr constrained(LikelihoodPtr likelihood, const std::vector<Constraint>& constraints) {
  if (constraints.empty()) return likelihood;
  return std::make_shared<ConstrainedLikelihood>(std::move(likelihood), constraints);
}

/// The learned likelihood of the data and its fit, finite simulation included.
struct LearnedFit {
  LikelihoodPtr likelihood;
  FitReport report;
};

LearnedFit fit_learned(const ParameterizedRatio& ratio, const Samples& data,
                       const std::vector<Constraint>& constraints,
                       const std::vector<double>& levels, std::size_t scan_points) {
  const auto plain = std::make_shared<ParameterizedLikelihood>(ratio, data.x, data.weights);
  LearnedFit out{constrained(plain, constraints), {}};
  FitOptions options;
  options.starts = fit_starts;
  auto best = fit(*out.likelihood, options);
  if (best.ok() && plain->differentiable())
    add_simulation_covariance(best, plain->simulation_gradient_covariance(best.point));
  out.report = report_fit(*out.likelihood, std::move(best), levels, scan_points);
  return out;
}

/// How much finite simulation widens a region of two parameters.
double widening(const Fit& fit, std::size_t first, std::size_t second) {
  double sum = 0.0;
  for (const std::size_t p : {first, second})
    if (fit.statistical_error(p) > 0.0)
      sum += std::pow(fit.simulation_error(p) / fit.statistical_error(p), 2);
  return 1.0 + 0.5 * sum;
}

std::vector<double> evenly(double low, double high, std::size_t count) {
  std::vector<double> out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = low + (high - low) * static_cast<double>(i) / static_cast<double>(count - 1);
  return out;
}

/// The part of a parameter's range that the contours reach, and a sixth more.
FitRange window(const std::vector<Contour>& contours, const Parameter& parameter, bool first) {
  double low = parameter.high, high = parameter.low;
  bool open = contours.empty();
  for (const auto& contour : contours) {
    open |= contour.touches_bound;
    for (const auto& line : contour.lines)
      for (const double value : first ? line.x : line.y) {
        low = std::min(low, value);
        high = std::max(high, value);
      }
  }
  if (open || !(low < high)) return {parameter.low, parameter.high};
  const double margin = (high - low) / 6.0;
  return {std::max(parameter.low, low - margin), std::min(parameter.high, high + margin)};
}

ContourConfig contour_config(const Study& study, double widen) {
  ContourConfig config;
  config.levels = study.levels;
  std::sort(config.levels.begin(), config.levels.end());
  for (const double level : config.levels)
    config.thresholds.push_back(widen * chi2_quantile(level, 2.0));
  return config;
}

/// −2 log Λ and its contours for every pair that is asked for.
void surfaces(const Study& study, const Likelihood& learned, const Likelihood* exact,
              Results& results) {
  std::optional<BayesianFit> bayesian;
  if (study.bayesian) {
    bayesian = bayesian_fit(learned, *study.bayesian);
    if (bayesian->status == FitStatus::failed)
      results.warnings.push_back(fmt::format(
          "Bayesian optimisation has not converged: one more evaluation promises {:.3g}",
          bayesian->expected_improvement));
  }
  for (const auto& [first, second] : study.contours) {
    const auto draw = [&](const char* label, const Likelihood& likelihood, const Fit& best,
                          double widen, const std::vector<double>* x,
                          const std::vector<double>* y) -> SurfaceReport& {
      SurfaceReport report;
      report.label = label;
      report.contours = contours(likelihood, best, first, second, contour_config(study, widen));
      const auto wide = window(report.contours, study.parameters[first], true);
      const auto high = window(report.contours, study.parameters[second], false);
      report.surface =
          scan_surface(likelihood, best, first, second,
                       x != nullptr ? *x : evenly(wide.low, wide.high, study.surface_points),
                       y != nullptr ? *y : evenly(high.low, high.high, study.surface_points));
      report.minimum = best.point;
      return results.surfaces.emplace_back(std::move(report));
    };
    const auto& best = results.fit.fit;
    if (!best.ok()) return;
    const auto shown =
        draw("learned", learned, best, widening(best, first, second), nullptr, nullptr);
    const auto& x = shown.surface.x;
    const auto& y = shown.surface.y;
    if (exact != nullptr && results.exact_fit && results.exact_fit->fit.ok())
      draw("exact", *exact, results.exact_fit->fit, 1.0, &x, &y);
    if (bayesian && bayesian->surrogate.fitted() && study.parameters.size() == 2) {
      const SurrogateLikelihood surrogate(bayesian->surrogate, results.events);
      FitOptions options;
      options.start = bayesian->point;
      const auto peak = fit(surrogate, options);
      if (!peak.ok()) continue;
      auto& report = draw("Gaussian process", surrogate, peak, 1.0, &x, &y);
      report.evaluated = bayesian->points;
      report.deviation = Matrix(y.size(), x.size());
      for (std::size_t r = 0; r < y.size(); ++r)
        for (std::size_t c = 0; c < x.size(); ++c) {
          std::vector<double> point(2);
          point[first] = x[c];
          point[second] = y[r];
          report.deviation(r, c) = 2.0 * bayesian->surrogate.predict(point).deviation;
        }
    }
  }
}

/// Pseudo-experiments: tests of hypotheses, an ensemble, coverage.
void repeat(const Study& study, const ParameterizedRatio& ratio, const Likelihood& learned,
            Results& results) {
  const LikelihoodFactory factory = [&ratio](Matrix x) {
    return std::make_unique<ParameterizedLikelihood>(ratio, x);
  };
  std::vector<std::size_t> interest;  // with one parameter alone nothing is profiled
  if (study.parameters.size() > 1) interest = study.parameters.of_interest();
  const auto experiment =
      make_experiment(*study.simulator, results.events, factory, study.constraints);
  if (!study.hypotheses.empty())
    timed(results, "test", [&] {
      for (const auto& config : study.hypotheses) {
        results.composite_tests.push_back(composite_test(config, learned, experiment));
        results.budget["test"] += config.datasets * results.events;
      }
    });
  if (study.test)
    timed(results, "test", [&] {
      results.test = simple_test(*study.test, *study.simulator, ratio, results.data);
      results.budget["test"] += 2 * study.test->datasets * results.events;
    });
  if (study.ensemble)
    timed(results, "ensemble", [&] {
      auto config = *study.ensemble;
      config.interest = interest;
      EnsembleModel model{factory, [&ratio](MatrixView x, const Fit& fit) {
                            return ratio.over(x)->simulation_gradient_covariance(fit.point);
                          }};
      LikelihoodFactory exact;
      if (study.simulator->has_density())
        exact = [&study](Matrix x) {
          return std::make_unique<DensityLikelihood>(study.parameters, study.simulator,
                                                     std::move(x));
        };
      results.ensemble =
          run_ensemble(config, study.parameters, *study.simulator, model, exact, study.constraints);
      results.budget["ensemble"] = config.datasets * config.events;
    });
  if (study.coverage)
    timed(results, "coverage", [&] {
      auto config = *study.coverage;
      config.interest = interest;
      results.coverage = CoverageReport{config, run_coverage(config, study.parameters, experiment)};
      results.budget["coverage"] =
          config.points.rows() * (config.datasets + config.critical_datasets) * results.events;
    });
}

}  // namespace

Run run_parameterized(const Study& study) {
  Results results = start_results(study);
  const auto data = load_data(study, results);
  const auto ratio = learn(study, results);

  LikelihoodPtr learned, exact;
  timed(results, "fit", [&] {
    auto fitted = fit_learned(*ratio, data, study.constraints, study.levels, study.scan_points);
    learned = std::move(fitted.likelihood);
    results.fit = std::move(fitted.report);
    note_fit(results.fit, study.parameters, "", results);
    note_outside(*ratio, data, results);
    if (!study.simulator->has_density()) return;
    exact = constrained(std::make_shared<DensityLikelihood>(study.parameters, study.simulator,
                                                            data.x, data.weights),
                        study.constraints);
    FitOptions options;
    options.starts = fit_starts;
    results.exact_fit = report_fit(*exact, fit(*exact, options), study.levels, study.scan_points);
    note_fit(*results.exact_fit, study.parameters, "exact ", results);
  });
  if (!study.contours.empty())
    timed(results, "contours", [&] { surfaces(study, *learned, exact.get(), results); });
  repeat(study, *ratio, *learned, results);
  timed(results, "diagnose", [&] {
    diagnose_ratio(study, *ratio, results);
    diagnose_references(study, *ratio, data, results);
    diagnose_repetition(results);
    judge(results.diagnostics);
  });

  // Those that were simulated at each θ that was asked for, too.
  const auto* made = dynamic_cast<const ParameterizedClassifierRatio*>(ratio.get());
  if (made != nullptr && study.simulator->stored() == nullptr)
    results.budget["simulated"] += made->simulated();

  Model model = start_model(study, results);
  model.parameterized = ratio;
  model.constraints = study.constraints;
  model.complete =
      study.parameterized.separable ||
      study.parameterized.classifier.calibration != ParameterizedClassifierRatio::Across::on_demand;
  if (!model.complete)
    results.warnings.push_back(
        "no model.h5 was written: with calibration on demand it would need the simulator");
  return {std::move(model), std::move(results)};
}

void fit_parameterized(const Model& model, const Samples& data, Results& results) {
  results.ratio = model.parameterized->kind();
  timed(results, "fit", [&] {
    results.fit =
        fit_learned(*model.parameterized, data, model.constraints, model.levels, model.scan_points)
            .report;
    note_fit(results.fit, model.parameters, "", results);
    note_outside(*model.parameterized, data, results);
  });
}

}  // namespace neyman::pipeline
