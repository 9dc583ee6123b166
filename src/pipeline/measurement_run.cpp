#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "neyman/data/samples_archive.hpp"
#include "neyman/measurements/extended_likelihood.hpp"
#include "neyman/measurements/measurement_summary.hpp"
#include "neyman/measurements/model_fit.hpp"
#include "neyman/pipeline/measurement_study.hpp"
#include "neyman/reports/symbol.hpp"
#include "pipeline/stages.hpp"

namespace neyman::pipeline {

namespace {

/// The likelihood of a model with the parameters in the study's order.
class StudyLikelihood final : public Likelihood {
 public:
  StudyLikelihood(const StatisticalModel& model, const MeasurementData& data,
                  const ParameterSpace& parameters)
      : of_(model, data), parameters_(parameters) {
    for (const auto& parameter : parameters)
      places_.push_back(*model.parameters().find(parameter.name));
  }

  const ParameterSpace& parameters() const override { return parameters_; }
  std::size_t events() const override { return of_.events(); }
  double operator()(std::span<const double> point, std::span<double> gradient = {}) const override {
    std::vector<double> inner(gradient.size());
    const double value = of_(moved(point), inner);
    for (std::size_t p = 0; p < gradient.size(); ++p) gradient[p] = inner[places_[p]];
    return value;
  }

  /// A fit of the model, in the study's order.
  Fit reordered(const Fit& fit) const {
    Fit out = fit;
    out.simulation_covariance = Matrix(places_.size(), places_.size());
    for (std::size_t p = 0; p < places_.size(); ++p) {
      out.point[p] = fit.point[places_[p]];
      if (!fit.at_bound.empty()) out.at_bound[p] = fit.at_bound[places_[p]];
      for (std::size_t q = 0; q < places_.size(); ++q) {
        out.covariance(p, q) = fit.covariance(places_[p], places_[q]);
        if (fit.simulation_covariance.rows() > 0)
          out.simulation_covariance(p, q) = fit.simulation_covariance(places_[p], places_[q]);
      }
    }
    return out;
  }

 private:
  std::vector<double> moved(std::span<const double> point) const {
    std::vector<double> out(point.size());
    for (std::size_t p = 0; p < point.size(); ++p) out[places_[p]] = point[p];
    return out;
  }

  ModelLikelihood of_;
  ParameterSpace parameters_;
  std::vector<std::size_t> places_;  // of the study's parameters in the model
};

using MeasuredSamples = std::vector<ComponentSamples>;

/// All but those of files.
void save_component_samples(const Mixture& mixture, const MeasuredSamples& made, Archive& archive) {
  for (std::size_t c = 0; c < made.size(); ++c) {
    if (mixture.components()[c]->stored() != nullptr) continue;
    auto& child = archive.child(fmt::format("component{}", c));
    save_samples(made[c].nominal, child.child("nominal"));
    if (made[c].across) save_samples(made[c].across->events, child.child("across"));
  }
}

Observed observe_measurement(const Study& study) {
  if (study.data.file) return observe(study);
  std::vector<double> truth;
  for (const auto& parameter : study.parameters) truth.push_back(*parameter.truth);
  const auto names = study.simulator->feature_names();
  return {make_samples(simulate_data(study, truth, derive_seed(study.seed, "data")),
                       names.empty() ? default_feature_names(study.simulator->dimension()) : names),
          "simulated at the truth"};
}

void note_summary(const MeasurementSummary& summary, Results& results) {
  results.measurement = summary_json(summary);
  auto& words = results.measurement_words;
  words.clear();
  const auto name = reports::symbol(summary.model.parameters()[summary.model.interest()].name);
  if (const auto& found = summary.discovery; found && found->ok)
    words.push_back(
        fmt::format("Against {} = 0: {:.2f} standard deviations (p = {:.2g}); {:.2f} "
                    "expected with {} = 1",
                    name, found->significance, found->p_value, found->expected_significance, name));
  const auto add_limit = [&](double level, double observed, double expected, const char* how) {
    words.push_back(fmt::format("{} < {:.4g} at {:.6g} % by CLs ({}); {:.4g} expected with {} = 0",
                                name, observed, 100.0 * level, how, expected, name));
  };
  if (const auto& limit = summary.limit)
    add_limit(limit->level, limit->observed, limit->expected[2], "asymptotic formulae");
  if (const auto& limit = summary.toy_limit)
    add_limit(limit->level, limit->observed, limit->expected[2], "toys");
}

}  // namespace

Lazy<Model> run_measurement(const Study& study, Chain& chain) {
  const auto& measurement = *study.measurement;
  const auto samples = chain.step<MeasuredSamples>(
      step_of(study, "simulate"),
      [&](Results& results) {
        auto made = simulate_measurement(study, chain.tasks());
        for (const auto& component : made)
          results.budget["simulated"] +=
              component.nominal.size() + (component.across ? component.across->events.size() : 0);
        return made;
      },
      [&](const MeasuredSamples& made, Archive& archive) {
        save_component_samples(*measurement.mixture, made, archive);
      },
      [&study](const Archive& archive) {
        auto out = measurement_components(study);
        for (std::size_t c = 0; c < out.size(); ++c) {
          if (study.measurement->mixture->components()[c]->stored() != nullptr) continue;
          const auto& child = archive.child(fmt::format("component{}", c));
          out[c].nominal = load_samples(child.child("nominal"));
          if (out[c].across) out[c].across->events = load_samples(child.child("across"));
        }
        return out;
      });
  const auto channel = chain.step<LearnedChannel>(
      step_of(study, "train"),
      [&](Results&) {
        Progress progress("train", 1);
        return LearnedChannel(*samples, measurement.learning, &progress, chain.tasks());
      },
      [](const LearnedChannel& made, Archive& archive) { made.save(archive); },
      [](const Archive& archive) { return LearnedChannel(archive); });
  chain.skip("calibrate", "done with the training");

  const Lazy<Observed> data([&study] { return observe_measurement(study); });
  const Lazy<StatisticalModel> model(
      [&study, channel, data] { return measurement_model(study, *channel, data->events.x); });
  const Lazy<MeasurementSummary> summary([&measurement, model] {
    auto options = measurement.options;
    options.toys = 0;
    return summarise(*model, model->observed(), options);
  });
  chain.step(step_of(study, "fit"), [&](Results& results) {
    note_data(*data, results);
    results.outside = channel->count_outside(data->events.x);
    const bool exact = study.simulator->has_density();
    FitPlan plan{study.levels, study.scan_points};
    Progress progress("fit", plan.steps(study.parameters) * (exact ? 2 : 1));
    plan.progress = &progress;
    const StudyLikelihood likelihood(*model, model->observed(), study.parameters);
    auto best = fit_model(*model);
    if (best.ok() && channel->replicas() > 1)
      add_simulation_covariance(best, *model, channel->replicas(), [&](std::size_t replica) {
        return measurement_model(study, *channel, data->events.x, replica);
      });
    results.fit = report_fit(likelihood, likelihood.reordered(best), plan);
    note_fit(results.fit, study.parameters, "", results);
    note_summary(*summary, results);
    for (const auto& problem : summary->problems) results.warnings.push_back(problem);
    if (!exact) return;
    const ConstrainedLikelihood known(
        std::make_shared<ExtendedLikelihood>(study.parameters, *measurement.mixture, data->events.x,
                                             data->events.weights),
        study.constraints);
    FitOptions near;
    near.start = results.fit.fit.point;
    results.exact_fit = report_fit(known, fit(known, near), plan);
    note_fit(*results.exact_fit, study.parameters, "exact ", results);
  });
  if (measurement.options.toys == 0)
    chain.skip("toys", "none asked for");
  else
    chain.step(step_of(study, "toys", "measurement"), [&](Results& results) {
      note_summary(summarise(*model, model->observed(), measurement.options), results);
    });
  chain.skip("diagnose", "not for measurements");

  return Lazy<Model>([&study, &chain, summary] {
    Model out = start_model(study, chain.results());
    out.measurement = std::make_shared<const MeasurementSummary>(*summary);
    out.complete = false;
    return out;
  });
}

}  // namespace neyman::pipeline
