#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "neyman/data/samples_archive.hpp"
#include "neyman/measurements/extended_likelihood.hpp"
#include "neyman/measurements/measurement_summary.hpp"
#include "neyman/measurements/model_fit.hpp"
#include "neyman/pipeline/measurement_study.hpp"
#include "neyman/reports/symbol.hpp"
#include "neyman/reports/terminal.hpp"
#include "pipeline/next_step.hpp"
#include "pipeline/stages.hpp"
#include "reports/words.hpp"

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
        if (!fit.gradient_covariance.empty())
          out.gradient_covariance(p, q) = fit.gradient_covariance(places_[p], places_[q]);
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
  if (study.data.observed()) return observe(study);
  std::vector<double> truth;
  for (const auto& parameter : study.parameters) truth.push_back(*parameter.truth);
  return {make_samples(simulate_data(study, truth, derive_seed(study.seed, "data")),
                       feature_names_of(*study.simulator)),
          "simulated at the truth"};
}

/// What held-out events say about the shapes of variations; empty where there are none.
std::string variation_words(const std::vector<LearnedVariation>& variations) {
  constexpr std::size_t most = 6;
  std::vector<std::string> kept, pruned;
  for (const auto& variation : variations) {
    auto words = fmt::format("{} of {}", reports::symbol(variation.parameter), variation.component);
    double significance = -std::numeric_limits<double>::infinity();
    for (const auto& part : variation.parts)
      if (!(part.significance <= significance)) significance = part.significance;
    if (std::isfinite(significance)) words += fmt::format(" ({:.1f}σ)", significance);
    (variation.kept() ? kept : pruned).push_back(std::move(words));
  }
  const auto listed = [most](std::vector<std::string> names) {
    const std::size_t all = names.size();
    names.resize(std::min(all, most));
    return fmt::format("{}{}", fmt::join(names, ", "),
                       all > most ? fmt::format(" and {} more", all - most) : std::string());
  };
  std::string text;
  if (!kept.empty()) text = "Held-out events see the shape of " + listed(kept);
  if (!pruned.empty())
    text += (kept.empty() ? "Held-out events see no shape of " : "; none, as the fit has it, of ") +
            listed(pruned);
  return text;
}

void note_summary(const MeasurementSummary& summary, Results& results) {
  results.measurement = summary_json(summary);
  auto& words = results.measurement_words;
  words.clear();
  const auto name = reports::symbol(summary.model.parameters()[summary.model.interest()].name);
  if (const auto& found = summary.discovery; found && found->impossible)
    words.push_back(fmt::format("The data are impossible with {} = 0", name));
  else if (found && found->ok)
    words.push_back(
        fmt::format("Against {} = 0: {:.2f} standard deviations (p = {}); {:.2f} "
                    "expected with {} = 1",
                    name, found->significance, reports::format_number(found->p_value, 2),
                    found->expected_significance, name));
  const auto add_limit = [&](const auto& limit, const char* how) {
    words.push_back(fmt::format("{} < {} at {} by CLs ({}); {} expected with {} = 0", name,
                                reports::rounded_limit(limit.observed, limit),
                                reports::level_words(limit.level), how,
                                reports::rounded_limit(limit.expected[2], limit), name));
  };
  if (const auto& limit = summary.limit) add_limit(*limit, "asymptotic formulae");
  if (const auto& limit = summary.toy_limit) add_limit(*limit, "toys");
  if (auto shapes = variation_words(summary.variations); !shapes.empty())
    words.push_back(std::move(shapes));
}

/// The fit of a model to data, with intervals and curves, and what is told of it.
void note_measured(const Model& model, const Samples& data, const MeasurementSummary& summary,
                   const FitPlan& plan, Results& results) {
  const auto& channel = model.measurement->channel;
  results.outside = channel.count_outside(data.x);
  warn_outside(results);
  const StudyLikelihood likelihood(summary.model, summary.data, model.parameters);
  auto best = summary.fit;
  if (best.ok() && channel.replicas() > 1)
    add_simulation_covariance(best, summary.model, channel.replicas(), [&](std::size_t replica) {
      return measurement_model(model, data.x, data.weights, replica);
    });
  results.fit = report_fit(likelihood, likelihood.reordered(best), plan);
  note_fit(results.fit, model.parameters, "", results);
  note_summary(summary, results);
  for (const auto& problem : summary.problems) results.warnings.push_back(problem);
}

/// Whether the data lie where the model has seen events; and sub-ratios, over the data that may be
/// of any of three components.
void check_measured(const Model& model, const Samples& data, Results& results) {
  constexpr double least = 1e-3;
  check_outside(results);
  const auto& channel = model.measurement->channel;
  if (auto found = diagnose_sub_ratios(channel.consistency(data.x, least), channel.components()))
    results.diagnostics.push_back(std::move(*found));
}

/// The features of the events before and after the fit.
void add_features(const Model& model, const Samples& data, MeasurementSummary& summary) {
  if (!summary.fit.ok()) return;
  const auto& channel = model.measurement->channel;
  summary.features = model.feature_names.size();
  summary.histograms = feature_histograms(
      summary.model, summary.data, summary.fit,
      {"events", model.feature_names, data.x, data.weights, channel.simulated_features()});
}

MeasurementSummary summarise_events(const Model& model, const Samples& data) {
  const auto of = measurement_model(model, data.x, data.weights);
  auto options = model.measurement->options;
  options.toys = 0;
  auto out = summarise(of, of.observed(), options);
  out.variations = model.measurement->channel.variations();
  add_features(model, data, out);
  return out;
}

/// What toys add to a summary.
struct MadeToys {
  std::optional<ToyLimit> limit = {};
  std::vector<std::string> problems = {};
};

MadeToys make_toys(MeasurementSummary summary, const MeasurementOptions& options) {
  summary.options = options;
  summary.problems.clear();
  add_toy_limit(summary);
  return {std::move(summary.toy_limit), std::move(summary.problems)};
}

void add_toys(const MadeToys& made, const MeasurementOptions& options,
              MeasurementSummary& summary) {
  summary.options = options;
  summary.toy_limit = made.limit;
  summary.problems.insert(summary.problems.end(), made.problems.begin(), made.problems.end());
}

void save_toys(const MadeToys& made, Archive& archive) {
  archive.set("problems", made.problems);
  if (!made.limit) return;
  const auto& limit = *made.limit;
  archive.set("level", limit.level);
  archive.set("observed", limit.observed);
  archive.set("expected", std::vector<double>(limit.expected.begin(), limit.expected.end()));
  Matrix tests(limit.tests.size(), 15);
  for (std::size_t i = 0; i < tests.rows(); ++i) {
    const auto& test = limit.tests[i];
    std::vector<double> row = {test.tested,      test.statistic,
                               test.estimate,    test.cl_sb.value,
                               test.cl_sb.error, test.cl_b.value,
                               test.cl_b.error,  test.cl_s.value,
                               test.cl_s.error,  static_cast<double>(test.failed)};
    row.insert(row.end(), test.expected_cl_s.begin(), test.expected_cl_s.end());
    std::copy(row.begin(), row.end(), tests.row(i).begin());
  }
  archive.set("tests", tests);
}

MadeToys load_toys(const Archive& archive) {
  MadeToys out;
  out.problems = archive.get<std::vector<std::string>>("problems");
  if (!archive.has("tests")) return out;
  auto& limit = out.limit.emplace();
  limit.level = archive.number("level");
  limit.observed = archive.number("observed");
  const auto& expected = archive.numbers("expected");
  std::copy_n(expected.begin(), limit.expected.size(), limit.expected.begin());
  const auto& tests = archive.get<Matrix>("tests");
  for (std::size_t i = 0; i < tests.rows(); ++i) {
    const auto row = tests.row(i);
    ToyTest test;
    test.tested = row[0];
    test.statistic = row[1];
    test.estimate = row[2];
    test.cl_sb = {row[3], row[4]};
    test.cl_b = {row[5], row[6]};
    test.cl_s = {row[7], row[8]};
    test.failed = static_cast<std::size_t>(row[9]);
    std::copy_n(row.begin() + 10, test.expected_cl_s.size(), test.expected_cl_s.begin());
    limit.tests.push_back(test);
  }
  return out;
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

  const Lazy<Model> model([&study, channel] { return learned_model(study, *channel); });
  const Lazy<Observed> data([&study] { return observe_measurement(study); });
  const Lazy<MeasurementSummary> summary(
      [model, data] { return summarise_events(*model, data->events); });
  chain.step(step_of(study, "fit"), [&](Results& results) {
    note_data(*data, results);
    const bool exact = study.simulator->has_density();
    FitPlan plan{study.levels, study.scan_points};
    Progress progress("fit", plan.steps(study.parameters) * (exact ? 2 : 1));
    plan.progress = &progress;
    note_measured(*model, data->events, *summary, plan, results);
    if (!exact) return;
    const ConstrainedLikelihood known(
        std::make_shared<ExtendedLikelihood>(study.parameters, *measurement.mixture, data->events.x,
                                             data->events.weights),
        study.constraints);
    FitOptions near;
    near.start = results.fit.fit.point;
    results.exact_fit = report_fit(known, fit(known, near), plan, without_simulation);
    note_fit(*results.exact_fit, study.parameters, "exact ", results);
  });
  std::optional<Lazy<MadeToys>> toys;
  if (measurement.options.toys == 0)
    chain.skip("toys", "none asked for");
  else
    toys = chain.step<MadeToys>(
        step_of(study, "toys", "measurement"),
        [&](Results& results) {
          auto options = measurement.options;
          options.tasks = chain.parted_tasks();
          options.toys_alone = chain.in_part();
          auto made = make_toys(*summary, options);
          auto with = *summary;
          add_toys(made, measurement.options, with);
          note_summary(with, results);
          results.warnings.insert(results.warnings.end(), made.problems.begin(),
                                  made.problems.end());
          return made;
        },
        save_toys, load_toys);
  chain.step(step_of(study, "diagnose"), [&](Results& results) {
    check_measured(*model, data->events, results);
    note_next_steps(results);
  });

  return Lazy<Model>([&study, &chain, model, summary, toys] {
    // The figures and the report need it, and it is not kept with the results.
    auto whole = *summary;
    if (toys) add_toys(**toys, study.measurement->options, whole);
    chain.results().measurement_summary =
        std::make_shared<const MeasurementSummary>(std::move(whole));
    return *model;
  });
}

void fit_measurement(const Model& model, const Samples& data, Results& results) {
  results.ratio = "measurement";
  timed(results, "fit", [&] {
    FitPlan plan{model.levels, model.scan_points};
    Progress progress("fit", plan.steps(model.parameters));
    plan.progress = &progress;
    const auto& options = model.measurement->options;
    auto summary = summarise_events(model, data);
    if (options.toys > 0) add_toys(make_toys(summary, options), options, summary);
    note_measured(model, data, summary, plan, results);
    results.measurement_summary = std::make_shared<const MeasurementSummary>(std::move(summary));
    check_measured(model, data, results);
    note_next_steps(results);
  });
}

}  // namespace neyman::pipeline
