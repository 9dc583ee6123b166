#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/data/samples_archive.hpp"
#include "neyman/inference/statistics.hpp"
#include "neyman/ratios/classifier_ratio.hpp"
#include "neyman/ratios/tabulated_ratio.hpp"
#include "pipeline/next_step.hpp"
#include "pipeline/stages.hpp"

namespace neyman::pipeline {

namespace {

constexpr std::size_t curve_points = 401;

/// One sample of each component, of equal size, that together use the budget.
std::vector<FoldedSample> simulate_components(const Study& study, Tasks* tasks, Results& results) {
  const auto& mixture = *study.mixture;
  const std::size_t count = mixture.components().size();
  std::vector<FoldedSample> samples;
  Progress progress("simulate", study.training_samples, "events");
  for (std::size_t c = 0; c < count; ++c) {
    const auto& component = *mixture.components()[c];
    if (component.stored() != nullptr) {
      samples.emplace_back(training_events(study, component, c), study.learning, c,
                           training_stream(study, component));
      results.budget["simulated"] += samples.back().training_events();
      continue;
    }
    // What does not divide evenly goes to the first components.
    const std::size_t events =
        study.training_samples / count + (c < study.training_samples % count ? 1 : 0);
    auto x = sample(component, study.reference, events, derive_seed(study.seed, "component", c),
                    "training", &progress, tasks);
    samples.emplace_back(make_samples(std::move(x), default_feature_names(mixture.dimension())),
                         study.learning, c);
    results.budget["simulated"] += events;
  }
  return samples;
}

FitReport fit_learned(const ParameterSpace& parameters, const MixtureRatio& ratio,
                      const Samples& data, const FitPlan& plan) {
  const MixtureLikelihood of_data(parameters, ratio, data.x, data.weights);
  const CountedLikelihood likelihood(of_data, plan.progress);
  return report_fit(likelihood, fit(likelihood), plan, [&](Fit& best) {
    if (best.ok()) add_simulation_covariance(best, parameters, ratio, data.x, data.weights);
  });
}

/// Densities of the held-out scores of each pair, and the calibrated curve.
std::vector<PairScores> pair_scores(const DecomposedRatio& ratio,
                                    const std::vector<FoldedSample>& samples,
                                    const std::vector<std::string>& names) {
  constexpr std::size_t bins = 50;
  std::vector<PairScores> out;
  for (std::size_t c = 0; c < samples.size(); ++c)
    for (std::size_t d = c + 1; d < samples.size(); ++d) {
      const auto& pair = ratio.pair(c, d);
      PairScores scores{names[c], names[d], {}, {}, {}, {}, {}};
      for (std::size_t b = 0; b <= bins; ++b) scores.edges.push_back(static_cast<double>(b) / bins);
      const auto density = [&](const FoldedSample& sample) {
        std::vector<double> counts(bins, 0.0);
        for (const double z : pair.held_out_scores(sample)) {
          const double s = 1.0 / (1.0 + std::exp(-z));
          counts[std::min(bins - 1, static_cast<std::size_t>(s * bins))] +=
              static_cast<double>(bins) / static_cast<double>(sample.size());
        }
        return counts;
      };
      scores.numerator_density = density(samples[c]);
      scores.denominator_density = density(samples[d]);
      Logits grid;
      {
        std::vector<double> z;
        for (std::size_t i = 1; i < curve_points; ++i) {
          const double s = static_cast<double>(i) / curve_points;
          scores.scores.push_back(s);
          z.push_back(std::log(s / (1.0 - s)));
        }
        grid = Logits(std::move(z));
      }
      for (const double log_ratio : pair.calibrator(0).log_ratios(grid))
        scores.calibrated.push_back(1.0 / (1.0 + std::exp(log_ratio)));
      out.push_back(std::move(scores));
    }
  return out;
}

double mean_error(const LogRatios& found, const LogRatios& exact) {
  double sum = 0.0;
  for (std::size_t i = 0; i < found.size(); ++i) sum += std::abs(found[i] - exact[i]);
  return sum / static_cast<double>(found.size());
}

std::vector<double> to_vector(LogRatios ratios) { return std::move(ratios).release(); }

/// A grid over the range of the data, for curves over one feature.
Matrix feature_grid(const Matrix& data) {
  const auto values = data.column(0);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double margin = 0.02 * (*high - *low);
  Matrix grid(curve_points, 1);
  for (std::size_t i = 0; i < curve_points; ++i)
    grid(i, 0) = *low - margin +
                 (*high - *low + 2 * margin) * static_cast<double>(i) /
                     static_cast<double>(curve_points - 1);
  return grid;
}

/// Ratios between the compared point and the reference, by several classifiers.
void compare(const Study& study, const std::vector<FoldedSample>& components,
             const DecomposedRatio& main, const MixtureRatio* exact, Tasks* tasks,
             Results& results) {
  const auto& point = study.compare->point;
  const auto& reference = study.reference;
  const std::size_t half = study.training_samples / 2;
  // What is simulated and trained below belongs to this.
  Progress progress("compare", 2 * (1 + study.compare->classifiers.size()), "steps");
  const auto draw = [&](const std::vector<double>& theta, std::uint64_t stream) {
    auto x = sample(*study.simulator, theta, half, derive_seed(study.seed, "compare", stream),
                    "training", nullptr, tasks);
    results.budget["compare"] += half;
    return FoldedSample(make_samples(std::move(x), results.feature_names), study.learning,
                        1000 + stream);
  };
  const auto numerator = draw(point, 0), denominator = draw(reference, 1);
  const auto evaluation =
      sample(*study.simulator, point, study.compare->evaluation_events,
             derive_seed(study.seed, "compare", 2), "evaluation", nullptr, tasks);
  results.compared_point = point;
  const bool one_feature = evaluation.cols() == 1;
  const Matrix grid = one_feature ? feature_grid(results.data) : Matrix();

  const auto exact_ratios = [&](MatrixView x) { return exact->log_ratios(x, point, reference); };
  if (exact != nullptr) {
    results.exact_log_ratios = to_vector(exact_ratios(evaluation));
    if (one_feature) {
      results.density_x.assign(grid.values().begin(), grid.values().end());
      for (auto [theta, density] : {std::pair{&point, &results.numerator_density},
                                    std::pair{&reference, &results.denominator_density}}) {
        *density = log_density(*study.simulator, *theta, grid);
        for (double& value : *density) value = std::exp(value);
      }
    }
  }
  results.log_ratios = to_vector(main.log_ratios(evaluation, point, reference));
  progress.advance(2);

  for (const auto& classifier : study.compare->classifiers) {
    RatioConfig config = study.learning;
    config.replicas = 0;
    config.classifier = classifier;
    const ClassifierRatio direct(numerator, denominator, point, reference, config, tasks);
    progress.advance();
    // The study's own classifier is trained already.
    const bool same = classifier == study.learning.classifier;
    std::unique_ptr<DecomposedRatio> trained;
    if (!same)
      trained =
          std::make_unique<DecomposedRatio>(components, main.weights(), reference, config, tasks);
    const DecomposedRatio& decomposed = same ? main : *trained;

    RatioComparison entry;
    entry.classifier = classifier->kind();
    if (exact != nullptr) {
      const LogRatios truth(results.exact_log_ratios);
      entry.uncalibrated_error = mean_error(direct.uncalibrated(evaluation), truth);
      entry.calibrated_error = mean_error(direct.log_ratios(evaluation, point, reference), truth);
      entry.decomposed_error =
          mean_error(decomposed.log_ratios(evaluation, point, reference), truth);
    }
    if (one_feature) {
      entry.x.assign(grid.values().begin(), grid.values().end());
      if (exact != nullptr) entry.exact = to_vector(exact_ratios(grid));
      entry.uncalibrated = to_vector(direct.uncalibrated(grid));
      entry.calibrated = to_vector(direct.log_ratios(grid, point, reference));
      entry.decomposed = to_vector(decomposed.log_ratios(grid, point, reference));
    }
    results.comparisons.push_back(std::move(entry));
    progress.advance();
  }
}

/// A check of a model without its simulator: is the mean of r̂ over the denominator, before it is
/// set to one, compatible with one?
void check_normalisation(const MixtureRatio& ratio, Results& results) {
  if (ratio.replicas() < 10) return;
  const auto weights = ratio.weights()(results.fit.fit.point);
  const auto mean_ratio = [&](const std::vector<double>& means) {
    double sum = 0.0;
    for (std::size_t c = 0; c < means.size(); ++c) sum += weights[c] * means[c];
    return sum;
  };
  std::vector<double> replicas;
  for (std::size_t b = 0; b < ratio.replicas(); ++b)
    replicas.push_back(mean_ratio(ratio.replica_normalisation(b)));
  // A thousandth is no harm, and keeps rounding from looking like a deviation.
  const double spread = std::hypot(standard_deviation(replicas), 1e-3);
  const double deviation = mean_ratio(ratio.normalisation()) - 1.0;
  const double pull = deviation / spread;
  Diagnostic out;
  out.name = "normalisation";
  out.explanation = fmt::format(
      "The mean of r̂ over the denominator, from held-out events, is {:.5f} before it is set to "
      "one; the statistic is its deviation in standard errors.",
      1.0 + deviation);
  out.statistic = pull;
  out.p_value = std::erfc(std::abs(pull) / std::sqrt(2.0));
  out.verdict = verdict_of(*out.p_value);
  results.diagnostics.push_back(std::move(out));
}

}  // namespace

RecoveryOf recovery_of(const ParameterSpace& parameters, const MixtureRatio& ratio) {
  return {[&](MatrixView x, std::span<const double> weights) {
            return std::make_unique<MixtureLikelihood>(
                parameters, ratio, x, std::vector<double>(weights.begin(), weights.end()));
          },
          [&](MatrixView x, const std::vector<double>& point) {
            return simulation_gradient_covariance(parameters, ratio, x, {}, point);
          }};
}

Lazy<Model> run_decomposed(const Study& study, Chain& chain) {
  using Components = std::vector<FoldedSample>;
  const auto samples = chain.step<Components>(
      step_of(study, "simulate"),
      [&](Results& results) { return simulate_components(study, chain.tasks(), results); },
      [&](const Components& made, Archive& archive) {
        for (std::size_t c = 0; c < made.size(); ++c)
          if (study.mixture->components()[c]->stored() == nullptr)
            save_samples(made[c].samples(), archive.child(fmt::format("component{}", c)));
      },
      [&study](const Archive& archive) {
        Components out;
        for (std::size_t c = 0; c < study.mixture->components().size(); ++c) {
          const auto& component = *study.mixture->components()[c];
          out.emplace_back(component.stored() != nullptr
                               ? training_events(study, component, c)
                               : load_samples(archive.child(fmt::format("component{}", c))),
                           study.learning, c, training_stream(study, component));
        }
        return out;
      });

  using Learned = std::shared_ptr<DecomposedRatio>;
  const auto save = [](const Learned& made, Archive& archive) { made->save(archive); };
  const auto load = [&study](const Archive& archive) {
    return std::make_shared<DecomposedRatio>(archive, study.parameters);
  };
  const auto trained = chain.step<Learned>(
      step_of(study, "train"),
      [&](Results&) {
        const MixtureWeights weights(study.mixture->weight_expressions(),
                                     study.mixture->components().size());
        return std::make_shared<DecomposedRatio>(DecomposedRatio::trained(
            *samples, weights, study.reference, study.learning, chain.tasks()));
      },
      save, load);
  const auto ratio = chain.step<Learned>(
      step_of(study, "calibrate"),
      [&](Results&) {
        (*trained)->calibrate(*samples, study.learning, chain.tasks());
        return *trained;
      },
      save, load);

  const Lazy<Observed> data([&study] { return observe(study); });
  std::unique_ptr<ExactMixtureRatio> exact;
  if (study.simulator->has_density())
    exact = std::make_unique<ExactMixtureRatio>(study.mixture, study.reference);
  chain.step(step_of(study, "fit"), [&](Results& results) {
    const auto& events = data->events;
    note_data(*data, results);
    FitPlan plan{study.levels, study.scan_points};
    Progress progress("fit", plan.steps(study.parameters) * (exact ? 2 : 1));
    plan.progress = &progress;
    results.fit = fit_learned(study.parameters, **ratio, events, plan);
    note_fit(results.fit, study.parameters, "", results);
    note_outside(**ratio, events, results);
    if (exact) {
      results.exact_fit = fit_learned(study.parameters, *exact, events, plan);
      note_fit(*results.exact_fit, study.parameters, "exact ", results);
    }
    results.pair_scores = pair_scores(**ratio, *samples, results.component_names);
  });

  if (asks_for(study, "recovery"))
    chain.step(step_of(study, "fit", "recovery"), [&](Results& results) {
      const auto& events = data->events;
      const MixtureLikelihood likelihood(study.parameters, **ratio, events.x, events.weights);
      check_recovery(study, recovery_of(study.parameters, **ratio), events, likelihood,
                     chain.tasks(), results);
    });
  if (study.test)
    chain.step(step_of(study, "toys", "test"), [&](Results& results) {
      const std::size_t events = 2 * study.test->datasets * results.events;
      const auto table = tabulate(**ratio, results.data, events);
      const Ratio& used = table ? static_cast<const Ratio&>(*table) : **ratio;
      results.test =
          simple_test(*study.test, *study.simulator, used, results.data, chain.parted_tasks());
      note_test(results);
      results.budget["test"] = events;
    });
  if (study.ensemble)
    chain.step(step_of(study, "toys", "ensemble"), [&](Results& results) {
      results.ensemble = run_ensemble(*study.ensemble, study.parameters, *study.simulator, **ratio,
                                      exact.get(), chain.parted_tasks());
      results.budget["ensemble"] = study.ensemble->datasets * study.ensemble->events;
    });
  if (study.compare)
    chain.step(step_of(study, "toys", "compare"), [&](Results& results) {
      try {
        compare(study, *samples, **ratio, exact.get(), chain.tasks(), results);
      } catch (const SimulatorError& error) {
        results.warnings.push_back(
            fmt::format("ratios were not compared: the simulator failed: {}", error.what()));
      }
    });
  if (!study.test && !study.ensemble && !study.compare) chain.skip("toys", "none asked for");

  chain.step(step_of(study, "diagnose"), [&](Results& results) {
    diagnose_ratio(study, **ratio, chain.tasks(), results);
    diagnose_repetition(results);
    judge(results.diagnostics);
    note_next_steps(results);
  });

  return Lazy<Model>([&study, &chain, ratio] {
    Model model = start_model(study, chain.results());
    model.ratio = *ratio;
    return model;
  });
}

void fit_decomposed(const Model& model, const Samples& data, Results& results) {
  results.reference = model.ratio->reference();
  timed(results, "fit", [&] {
    FitPlan plan{model.levels, model.scan_points};
    Progress progress("fit", plan.steps(model.parameters));
    plan.progress = &progress;
    results.fit = fit_learned(model.parameters, *model.ratio, data, plan);
    note_fit(results.fit, model.parameters, "", results);
    note_outside(*model.ratio, data, results);
  });
  check_normalisation(*model.ratio, results);
}

}  // namespace neyman::pipeline
