#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "neyman/data/samples_archive.hpp"
#include "neyman/inference/parameterized_likelihood.hpp"
#include "neyman/inference/statistics.hpp"
#include "neyman/ratios/moving_edges.hpp"
#include "pipeline/next_step.hpp"
#include "pipeline/stages.hpp"

namespace neyman::pipeline {

namespace {

using LikelihoodPtr = std::shared_ptr<const Likelihood>;

using Events = ParameterizedClassifierRatio::Events;
using Learned = std::shared_ptr<ParameterizedRatio>;
using Across = ParameterizedClassifierRatio::Across;

Events simulate_training(const Study& study, Tasks* tasks, Results& results) {
  const auto& learned = study.parameterized;
  Events events;
  if (!learned.by_classifier() && study.simulator->stored() != nullptr)
    events.numerator = training_events(study, *study.simulator);
  else if (!learned.by_classifier())
    events.numerator =
        simulate(*study.simulator, study.parameters, *learned.design, study.training_samples,
                 derive_seed(study.seed, "training"), "training", tasks);
  else if (study.simulator->stored() != nullptr)
    events = {
        training_events(study, *study.simulator), {}, training_stream(study, *study.simulator)};
  else
    events = ParameterizedClassifierRatio::simulate_events(study.simulator, *learned.design,
                                                           learned.classifier, tasks);
  results.budget["simulated"] += events.size();
  return events;
}

/// A density of the features is told them from the edges of their support.
bool follows_edges(const ParameterizedRatio& ratio) {
  const auto* density = dynamic_cast<const DensityRatio*>(&ratio);
  return density != nullptr && density->of() == DensityRatio::Of::features;
}

/// Where the support of a feature moves with a parameter.
void note_edges(const Study& study, const Samples& events, bool followed, Results& results) {
  for (const auto& edge : moving_edges(events)) {
    const auto& names = events.feature_names;
    const auto& parameter = study.parameters[edge.parameter].name;
    const char* const side = edge.upper ? "largest" : "smallest";
    const auto feature =
        edge.feature < names.size() ? names[edge.feature] : std::to_string(edge.feature + 1);
    results.warnings.push_back(fmt::format(
        "the {} values of {} end at a sharp edge that moves with {}: {}", side, feature, parameter,
        followed ? "the ratio follows the edge, as a polynomial of the parameters, but "
                   "Wilks' theorem does not hold, and intervals need not cover"
                 : "this ratio smooths it, so that the estimate may be off by more than "
                   "its error, intervals are too wide, and Wilks' theorem does not hold"));
    if (!followed && results.next_steps.empty())
      results.next_steps.push_back(
          {"Let a density follow the moving edge",
           {"classifier.kind"},
           {"\"density\""},
           fmt::format("this ratio smooths it; where nothing but the edge tells {}, the {} value "
                       "itself does better",
                       parameter, side)});
  }
}

/// Where several events have one θ, or some failed, the θ that there are count, not the ones that
/// could be.
Design design_of(const Study& study, const Samples& events) {
  const auto& design = *study.parameterized.design;
  const bool stored = study.simulator->stored() != nullptr;
  const bool failed = !stored && events.size() < study.training_samples;
  const bool repeated = stored || failed || study.simulator->runs().events > 1;
  return repeated ? empirical_design(events, study.parameters,
                                     !stored && !failed && design.fills_ranges())
                  : design;
}

Learned train(const Study& study, const Events& events, Tasks* tasks, Results& results) {
  const auto& learned = study.parameterized;
  if (learned.by_classifier()) {
    Progress progress("train", learned.classifier.folds * Progress::fine);
    const bool stored = study.simulator->stored() != nullptr;
    auto ratio =
        ParameterizedClassifierRatio::trained(events, *learned.design, learned.classifier,
                                              stored ? nullptr : study.simulator, &progress, tasks);
    results.budget["simulated"] += ratio->simulated() - events.size();
    return ratio;
  }
  const Design design = design_of(study, events.numerator);
  using Model = Study::Parameterized::Model;
  if (learned.model == Model::learned) {
    Progress progress("train", Progress::fine);
    auto config = learned.learned;
    config.one_event = study.data.events == 1;
    auto chosen =
        std::make_shared<LearnedRatio>(events.numerator, design, config, &progress, tasks);
    results.models = chosen->candidates();
    results.unused_features = chosen->unused();
    note_edges(study, events.numerator, follows_edges(chosen->several()), results);
    for (const std::size_t p : chosen->untold())
      results.warnings.push_back(
          fmt::format("held-out events do not show that the features depend on {0}: if they do "
                      "not, the estimate "
                      "and the interval of {0} are noise; if its effect is small, more simulated "
                      "events show it",
                      study.parameters[p].name));
    return chosen;
  }
  if (learned.model == Model::density) {
    Progress progress("train", learned.density.members * Progress::fine);
    auto ratio =
        std::make_shared<DensityRatio>(events.numerator, design, learned.density, &progress, tasks);
    note_edges(study, events.numerator, follows_edges(*ratio), results);
    return ratio;
  }
  Progress progress("train", 2 * learned.separable.folds * Progress::fine);
  auto ratio = std::make_shared<SeparableRatio>(events.numerator, design, learned.separable,
                                                &progress, tasks);
  note_edges(study, events.numerator, false, results);
  if (ratio->by_contrast() && ratio->resolution() < 2.0)
    results.warnings.push_back(fmt::format(
        "single events tell the parameters to a tiny part of their ranges (an event's own θ is one "
        "of {:.1f} that could be meant): narrow the ranges, or raise classifier.nodes",
        ratio->resolution()));
  if (!ratio->converged())
    results.warnings.push_back(
        "the calibration of the separable ratio did not converge: raise training.samples, or lower "
        "classifier.degree or classifier.hidden");
  return ratio;
}

// Models as they are tried, to see what more events or another model would add: with a third of the
// passes, and densities with one member.

constexpr std::size_t passes = 3;

LearningCurve::Train trial_of(DensityRatio::Config config, const Design& design) {
  return [config, design](const Samples& events) {
    auto own = config;
    const auto epochs = own.epochs > 0 ? own.epochs : DensityRatio::default_epochs(events.size());
    own.members = 1;
    own.parts = 5;
    own.epochs = std::max<std::size_t>(2, epochs / passes);
    return std::make_shared<DensityRatio>(events, design, own);
  };
}

LearningCurve::Train trial_of(SeparableRatio::Config config, const Design& design) {
  return [config, design](const Samples& events) {
    auto own = config;
    const auto epochs = own.epochs > 0 ? own.epochs : SeparableRatio::default_epochs(events.size());
    own.epochs = std::max<std::size_t>(2, epochs / passes);
    return std::make_shared<SeparableRatio>(events, design, own);
  };
}

LearningCurve::Train trial_of(ParameterizedClassifierRatio::Config config, const Design& design) {
  config.fresh = false;
  if (config.calibration != Across::smooth || config.folds < 2) config.calibration = Across::none;
  return [config, design](const Samples& events) {
    return std::make_shared<ParameterizedClassifierRatio>(events, Samples(), design, config);
  };
}

/// What else the events may be learned with, and what is tried of the model that was used.
void try_more(const Study& study, const ParameterizedRatio& ratio, const Events& events,
              Evidence& evidence) {
  using Model = Study::Parameterized::Model;
  const auto& learned = study.parameterized;
  // Of more events than fit into memory, and of sides with events of their own, no parts are taken.
  if (events.stream || events.denominator.size() > 0) return;
  const Samples& all = events.numerator;
  const Design design = design_of(study, all);
  const std::uint64_t seed = derive_seed(study.seed, "next step");
  constexpr std::size_t most_features = 24;  // of a density that is tried
  SeparableRatio::Config separable;
  DensityRatio::Config density;
  separable.seed = density.seed = seed;
  std::vector<OtherModel> others;
  const auto other = [&](const char* what, const char* key, std::string value, auto config) {
    others.push_back({{what, {key}, {std::move(value)}, {}}, trial_of(std::move(config), design)});
  };
  const auto choose_by_evidence = [&](bool tries_separable) {
    const char* const what = "Let held-out events choose the model";
    const char* const key = "classifier.kind";
    if (tries_separable) other(what, key, "\"learned\"", separable);
    if (all.features() <= most_features) other(what, key, "\"learned\"", density);
  };
  const auto higher_degree = [&](SeparableRatio::Config config, std::size_t degree) {
    constexpr std::size_t more = 2, most = 8;
    config.degree = degree + more;
    if (config.degree <= most)
      other("Raise the degree", "classifier.degree", std::to_string(config.degree), config);
  };
  LearningCurve::Train model;
  if (learned.model == Model::classifier) {
    auto config = learned.classifier;
    config.seed = seed;
    model = trial_of(config, design);
    choose_by_evidence(true);
  } else if (learned.model == Model::density) {
    auto config = learned.density;
    config.seed = seed;
    model = trial_of(config, design);
    if (config.of == DensityRatio::Of::features) choose_by_evidence(true);
  } else if (learned.model == Model::separable) {
    auto config = learned.separable;
    config.seed = seed;
    model = trial_of(config, design);
    choose_by_evidence(false);
    higher_degree(config, dynamic_cast<const SeparableRatio&>(ratio).basis().degree());
  } else {
    const auto& several = dynamic_cast<const LearnedRatio&>(ratio).several();
    auto config = learned.learned.separable;
    config.seed = seed;
    if (const auto* sums = dynamic_cast<const SeparableRatio*>(&several)) {
      model = trial_of(config, design);
      higher_degree(config, sums->basis().degree());
    } else {
      model = trial_of(density, design);
      if (learned.learned.effort != LearnedRatio::Effort::thorough) {
        auto whole = density, longer = density;
        whole.epochs = passes * DensityRatio::default_epochs(all.size() / 2);
        longer.epochs = 3 * whole.epochs;
        other("Train more thoroughly", "classifier.effort", "\"thorough\"", longer);
        others.back().than = trial_of(whole, design);
      }
    }
  }
  add_trials(all, model, others, seed, evidence);
}

/// How many events a ratio has simulated so far.
std::size_t simulated(const Learned& ratio) {
  const auto* made = dynamic_cast<const ParameterizedClassifierRatio*>(ratio.get());
  return made == nullptr ? 0 : made->simulated();
}

void calibrate(const Study& study, const Events& events, const Learned& trained, Tasks* tasks) {
  const auto& learned = study.parameterized;
  dynamic_cast<ParameterizedClassifierRatio&>(*trained).calibrate(
      events, *learned.design, learned.classifier,
      study.simulator->stored() != nullptr ? nullptr : study.simulator, tasks);
}

/// A step with what calibrations on demand simulate in it. It begins without any, as a run that
/// goes on here does: the budget is the same for both.
std::function<void(Results&)> counted(const Lazy<Learned>& ratio,
                                      std::function<void(Results&)> work) {
  return [ratio, work = std::move(work)](Results& results) {
    const auto* made = dynamic_cast<const ParameterizedClassifierRatio*>(ratio->get());
    if (made != nullptr) made->forget_calibrations();
    const std::size_t before = simulated(*ratio);
    work(results);
    if (simulated(*ratio) > before) results.budget["simulated"] += simulated(*ratio) - before;
  };
}

Learned load_learned(const Study& study, const Archive& archive) {
  switch (study.parameterized.model) {
    case Study::Parameterized::Model::learned:
      return std::make_shared<LearnedRatio>(archive, study.parameters);
    case Study::Parameterized::Model::separable:
      return std::make_shared<SeparableRatio>(archive, study.parameters);
    case Study::Parameterized::Model::density:
      return std::make_shared<DensityRatio>(archive, study.parameters);
    case Study::Parameterized::Model::classifier:
      break;
  }
  return std::make_shared<ParameterizedClassifierRatio>(archive, study.parameters);
}

/// What is learned, and from which events.
struct Learning {
  Lazy<Events> events;
  Lazy<Learned> ratio;
};

/// The steps that learn the ratio.
Learning learn(const Study& study, Chain& chain) {
  const auto events = chain.step<Events>(
      step_of(study, "simulate"),
      [&](Results& results) { return simulate_training(study, chain.tasks(), results); },
      [](const Events& made, Archive& archive) {
        save_samples(made.numerator, archive.child("numerator"));
        save_samples(made.denominator, archive.child("denominator"));
      },
      [&study](const Archive& archive) {
        return Events{load_samples(archive.child("numerator")),
                      load_samples(archive.child("denominator")),
                      training_stream(study, *study.simulator)};
      });
  const auto trained = chain.step<Learned>(
      step_of(study, "train"),
      [&](Results& results) { return train(study, *events, chain.tasks(), results); },
      [](const Learned& made, Archive& archive) { made->save(archive); },
      [&study](const Archive& archive) { return load_learned(study, archive); });
  if (!study.parameterized.by_classifier()) {
    chain.skip("calibrate", "part of the training");
    return {events, trained};
  }
  // On demand there is nothing to keep: calibrations are made at each θ that is asked for.
  const bool on_demand = study.parameterized.classifier.calibration == Across::on_demand;
  const auto calibrated = chain.step<Learned>(
      step_of(study, "calibrate"),
      [&](Results& results) {
        const std::size_t before = simulated(*trained);
        calibrate(study, *events, *trained, chain.tasks());
        results.budget["simulated"] += simulated(*trained) - before;
        return *trained;
      },
      [on_demand](const Learned& made, Archive& archive) {
        if (!on_demand) made->save(archive);
      },
      [&study, on_demand, events, trained](const Archive& archive) {
        if (!on_demand) return load_learned(study, archive);
        // Perhaps by the first rank alone, to write a report.
        calibrate(study, *events, *trained, nullptr);
        return *trained;
      });
  return {events, calibrated};
}

/// Whether the model can be used without the simulator.
bool complete(const Study& study) {
  return !study.parameterized.by_classifier() ||
         study.parameterized.classifier.calibration != Across::on_demand;
}

LikelihoodPtr constrained(LikelihoodPtr likelihood, const std::vector<Constraint>& constraints) {
  if (constraints.empty()) return likelihood;
  return std::make_shared<ConstrainedLikelihood>(std::move(likelihood), constraints);
}

/// The likelihoods of the data, with constraints.
struct Likelihoods {
  std::shared_ptr<const ParameterizedLikelihood> plain;  ///< learned, without constraints
  LikelihoodPtr learned, exact;                          ///< exact: null where it is not known
};

Likelihoods learned_likelihood(const ParameterizedRatio& ratio, const Samples& data,
                               const std::vector<Constraint>& constraints) {
  Likelihoods out;
  out.plain = std::make_shared<ParameterizedLikelihood>(ratio, data.x, data.weights);
  out.learned = constrained(out.plain, constraints);
  return out;
}

/// Adds what finite simulation does to a fit of the learned likelihood. The likelihoods must
/// outlive it.
std::function<void(Fit&)> simulation_of(const Likelihoods& of) {
  return [&of](Fit& best) { add_simulation(best, *of.plain); };
}

/// The fit of the learned likelihood, finite simulation included.
FitReport fit_learned(const Likelihoods& of, const FitPlan& plan) {
  const CountedLikelihood learned(*of.learned, plan.progress);
  return report_fit(learned, fit(learned), plan, simulation_of(of));
}

/// Where a contour or a surface came upon a higher likelihood than the fit, all begins again there.
void fit_again(const Likelihoods& of, const SurfaceReport& report, const Study& study,
               Results& results) {
  std::vector<double> higher = report.surface.higher;
  for (const auto& contour : report.contours)
    if (!contour.higher.empty()) higher = contour.higher;
  if (higher.empty()) return;
  const Likelihood& learned = *of.learned;
  const Maximum from{higher, learned(higher)};
  results.fit = report_fit(learned, refit(learned, results.fit.fit, from),
                           {study.levels, study.scan_points}, simulation_of(of));
  results.warnings.push_back(fmt::format(
      "the contours came upon a higher likelihood than the first fit, and the fit was done again "
      "from there, at {}: there may be others",
      describe_point(study.parameters, results.fit.fit.point)));
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
  out.back() = high;  // to the last bit
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
  if (parameter.periodic) {  // over the seam, but not further than once round
    const double half = std::min(0.5 * parameter.range(), 0.5 * (high - low) + margin);
    return {0.5 * (low + high) - half, 0.5 * (low + high) + half};
  }
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

/// Who shares the tasks of fits (see Chain).
struct Sharing {
  Tasks* ranks;
  Tasks* parts;  ///< or ranks
};
Sharing sharing_of(const Study& study, Chain& chain) {
  if (calibrates_on_demand(study)) return {nullptr, nullptr};
  return {chain.tasks(), chain.parted_tasks()};
}

/// −2 log Λ and its contours for every pair that is asked for.
void surfaces(const Study& study, const Likelihoods& of, Sharing sharing, Results& results) {
  const Likelihood& learned = *of.learned;
  const Likelihood* const exact = of.exact.get();
  std::optional<BayesianFit> bayesian;
  if (study.bayesian) {
    bayesian = bayesian_fit(learned, *study.bayesian);
    if (bayesian->status == FitStatus::failed)
      results.warnings.push_back(fmt::format(
          "Bayesian optimisation has not converged: one more evaluation promises {:.3g}",
          bayesian->expected_improvement));
  }
  // Contours and surface of the learned likelihood, of the exact one and of the surrogate.
  Progress progress("contours",
                    study.contours.size() * 2 * (1 + (exact != nullptr) + bayesian.has_value()));
  for (const auto& [first, second] : study.contours) {
    const auto draw = [&](const char* label, const Likelihood& plain, const Fit& best, double widen,
                          const std::vector<double>* x,
                          const std::vector<double>* y) -> SurfaceReport& {
      const CountedLikelihood likelihood(plain, &progress);
      SurfaceReport report;
      report.label = label;
      report.contours =
          contours(likelihood, best, first, second, contour_config(study, widen), sharing.ranks);
      progress.advance();
      const auto wide = window(report.contours, study.parameters[first], true);
      const auto high = window(report.contours, study.parameters[second], false);
      report.surface = scan_surface(
          likelihood, best, first, second,
          x != nullptr ? *x : evenly(wide.low, wide.high, study.surface_points),
          y != nullptr ? *y : evenly(high.low, high.high, study.surface_points), sharing.parts);
      progress.advance();
      report.minimum = best.point;
      return results.surfaces.emplace_back(std::move(report));
    };
    const auto& best = results.fit.fit;
    if (!best.ok()) return;
    const auto shown =
        draw("learned", learned, best, widening(best, first, second), nullptr, nullptr);
    fit_again(of, shown, study, results);
    results.surfaces.back().minimum = best.point;
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
void repeat(const Study& study, const Lazy<Learned>& ratio, const Lazy<Likelihoods>& likelihoods,
            Chain& chain) {
  const auto factory = [&ratio]() -> LikelihoodFactory {
    return [&model = **ratio](Matrix x) {
      return std::make_unique<ParameterizedLikelihood>(model, x);
    };
  };
  const auto experiment = [&](const Results& results) {
    return make_experiment(*study.simulator, results.events, factory(), study.constraints);
  };
  Tasks* const tasks = sharing_of(study, chain).parts;
  std::vector<std::size_t> interest;  // with one parameter alone nothing is profiled
  if (study.parameters.size() > 1) interest = study.parameters.of_interest();
  const bool tests = study.test || !study.hypotheses.empty();
  if (tests)
    chain.step(step_of(study, "toys", "test"), counted(ratio, [&](Results& results) {
                 for (const auto& config : study.hypotheses) {
                   results.composite_tests.push_back(
                       composite_test(config, *likelihoods->learned, experiment(results), tasks));
                   results.budget["test"] += config.datasets * results.events;
                 }
                 if (!study.test) return;
                 results.test =
                     simple_test(*study.test, *study.simulator, **ratio, results.data, tasks);
                 note_test(results);
                 results.budget["test"] += 2 * study.test->datasets * results.events;
               }));
  if (study.ensemble)
    chain.step(step_of(study, "toys", "ensemble"), counted(ratio, [&](Results& results) {
                 auto config = *study.ensemble;
                 config.interest = interest;
                 EnsembleModel model{
                     factory(), [&learned = **ratio](MatrixView x, const Fit& fit) {
                       return learned.over(x)->simulation_gradient_covariance(fit.point);
                     }};
                 LikelihoodFactory exact;
                 if (study.simulator->has_density())
                   exact = [&study](Matrix x) {
                     return std::make_unique<DensityLikelihood>(study.parameters, study.simulator,
                                                                std::move(x));
                   };
                 results.ensemble = run_ensemble(config, study.parameters, *study.simulator, model,
                                                 exact, study.constraints, tasks);
                 results.budget["ensemble"] = config.datasets * config.events;
               }));
  if (study.coverage)
    chain.step(step_of(study, "toys", "coverage"), counted(ratio, [&](Results& results) {
                 auto config = *study.coverage;
                 config.interest = interest;
                 results.coverage = CoverageReport{
                     config, run_coverage(config, study.parameters, experiment(results), tasks)};
                 results.budget["coverage"] = config.points.rows() *
                                              (config.datasets + config.critical_datasets) *
                                              results.events;
               }));
  if (!tests && !study.ensemble && !study.coverage) chain.skip("toys", "none asked for");
}

}  // namespace

RecoveryOf recovery_of(const ParameterizedRatio& ratio) {
  return {[&ratio](MatrixView x, std::span<const double> weights) {
            return std::make_unique<ParameterizedLikelihood>(ratio, x, weights);
          },
          [&ratio](MatrixView x, const std::vector<double>& point) {
            const ParameterizedLikelihood likelihood(ratio, x);
            return likelihood.differentiable() ? likelihood.simulation_gradient_covariance(point)
                                               : Matrix();
          }};
}

Lazy<Model> run_parameterized(const Study& study, Chain& chain) {
  const auto learning = learn(study, chain);
  const auto& ratio = learning.ratio;
  const Lazy<Observed> data([&study] { return observe(study); });
  const Lazy<Likelihoods> likelihoods([&study, data, ratio] {
    const auto& events = data->events;
    auto out = learned_likelihood(**ratio, events, study.constraints);
    if (study.simulator->has_density())
      out.exact = constrained(std::make_shared<DensityLikelihood>(study.parameters, study.simulator,
                                                                  events.x, events.weights),
                              study.constraints);
    return out;
  });

  chain.step(step_of(study, "fit"), counted(ratio, [&](Results& results) {
               note_data(*data, results);
               FitPlan plan{study.levels, study.scan_points};
               Progress progress("fit",
                                 plan.steps(study.parameters) * (likelihoods->exact ? 2 : 1));
               plan.progress = &progress;
               results.fit = fit_learned(*likelihoods, plan);
               note_fit(results.fit, study.parameters, "", results, likelihoods->learned->region());
               note_outside(**ratio, data->events, results);
               if (!likelihoods->exact) return;
               const CountedLikelihood exact(*likelihoods->exact, &progress);
               results.exact_fit = report_fit(exact, fit(exact), plan, without_simulation);
               note_fit(*results.exact_fit, study.parameters, "exact ", results);
             }));
  if (asks_for(study, "recovery"))
    chain.step(step_of(study, "fit", "recovery"), counted(ratio, [&](Results& results) {
                 check_recovery(study, recovery_of(**ratio), data->events, *likelihoods->learned,
                                chain.tasks(), results);
               }));
  if (!study.contours.empty())
    chain.step(step_of(study, "fit", "contours"), counted(ratio, [&](Results& results) {
                 surfaces(study, *likelihoods, sharing_of(study, chain), results);
               }));
  repeat(study, ratio, likelihoods, chain);
  chain.step(
      step_of(study, "diagnose"), counted(ratio, [&](Results& results) {
        diagnose_ratio(study, **ratio, chain.tasks(), results);
        diagnose_references(study, **ratio, data->events, chain.tasks(), results);
        diagnose_repetition(results);
        judge(results.diagnostics);
        Evidence evidence;
        evidence.files = study.simulator->stored() != nullptr;
        if (const auto* chosen = dynamic_cast<const LearnedRatio*>(ratio->get()))
          evidence.untold = chosen->untold();
        note_next_steps(results, evidence,
                        [&](Evidence& more) { try_more(study, **ratio, *learning.events, more); });
        if (!complete(study))
          results.warnings.push_back(
              "no model.h5 was written: with calibration on demand it would need the simulator");
      }));

  return Lazy<Model>([&study, &chain, ratio = learning.ratio] {
    Model model = start_model(study, chain.results());
    model.parameterized = *ratio;
    model.constraints = study.constraints;
    model.complete = complete(study);
    return model;
  });
}

void fit_parameterized(const Model& model, const Samples& data, Results& results) {
  results.ratio = model.parameterized->kind();
  timed(results, "fit", [&] {
    const auto likelihood = learned_likelihood(*model.parameterized, data, model.constraints);
    FitPlan plan{model.levels, model.scan_points};
    Progress progress("fit", plan.steps(model.parameters));
    plan.progress = &progress;
    results.fit = fit_learned(likelihood, plan);
    note_fit(results.fit, model.parameters, "", results, likelihood.learned->region());
    note_outside(*model.parameterized, data, results);
  });
  note_next_steps(results);
}

}  // namespace neyman::pipeline
