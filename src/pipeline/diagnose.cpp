#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/random.hpp"
#include "neyman/data/feature_columns.hpp"
#include "neyman/diagnostics/ratio_diagnostics.hpp"
#include "neyman/diagnostics/repetition.hpp"
#include "neyman/reports/symbol.hpp"
#include "neyman/simulators/command.hpp"
#include "neyman/simulators/files.hpp"
#include "pipeline/stages.hpp"

namespace neyman {

std::vector<Diagnostic> diagnose(const Study& study, const Ratio& ratio,
                                 const std::vector<double>& wanted_numerator,
                                 const std::vector<double>& wanted_denominator, Tasks* tasks) {
  if (study.simulator == nullptr)
    fail_argument("diagnose", "study.simulator", "null", "a distribution");
  const auto& config = study.diagnostics;
  auto numerator = wanted_numerator, denominator = wanted_denominator;
  // Of files, the events that were kept for this, at the nearest θ that has some.
  const auto* files = dynamic_cast<const Files*>(study.simulator.get());
  const auto draw = [&](std::vector<double>& point, std::uint64_t stream) {
    if (files != nullptr) {
      auto kept = files->held_out_near(point);
      if (kept.size() > 0) point.assign(kept.theta.row(0).begin(), kept.theta.row(0).end());
      return kept;
    }
    return pipeline::make_samples(
        sample(*study.simulator, point, config.events, derive_seed(config.seed, "events", stream),
               "diagnostics", nullptr, tasks),
        pipeline::feature_names_of(*study.simulator));
  };
  auto which = config.which;
  std::erase(which, "reference");  // looks at the data, not at events of two θ
  if (which.empty()) return {};
  const auto x0 = draw(numerator, 0), x1 = draw(denominator, 1);
  if (numerator == denominator || x0.size() == 0 || x1.size() == 0) return {};
  const auto r0 = ratio.log_ratios(x0.x, numerator, denominator);
  const auto r1 = ratio.log_ratios(x1.x, numerator, denominator);
  auto events = ratio_events(x0, x1, r0.values(), r1.values());
  LogRatios exact;
  if (study.simulator->has_density()) {
    exact = ExactRatio(study.simulator).log_ratios(x1.x, numerator, denominator);
    events.exact_log_ratios = exact.values();
  }
  std::vector<Diagnostic> out;
  Progress progress("diagnose", which.size(), "checks");
  for (const auto& name : which) {
    out.push_back(diagnose_events(name, events, derive_seed(config.seed, name)));
    progress.advance();
  }
  for (auto& diagnostic : out)
    diagnostic.explanation += fmt::format(" Checked between {} and {}.",
                                          reports::point_words(study.parameters, numerator, 4),
                                          reports::point_words(study.parameters, denominator, 4));
  judge(out);
  return out;
}

namespace pipeline {

namespace {

/// Whether two points are so close, in errors of the fit, that their ratio says nothing.
bool close(const std::vector<double>& a, const std::vector<double>& b, const Fit& fit) {
  constexpr double part = 0.1;
  for (std::size_t p = 0; p < a.size(); ++p)
    if (std::abs(a[p] - b[p]) > part * fit.error(p)) return false;
  return true;
}

/// The points of a study beside the estimate that the data make interesting.
std::vector<std::vector<double>> other_points(const Study& study) {
  std::vector<std::vector<double>> out;
  if (study.compare) out.push_back(study.compare->point);
  if (study.test) out.insert(out.end(), {study.test->alternative, study.test->null});
  if (study.ensemble) out.push_back(study.ensemble->point);
  std::vector<double> truth;
  for (const auto& parameter : study.parameters)
    if (parameter.truth) truth.push_back(*parameter.truth);
  if (truth.size() == study.parameters.size()) out.push_back(std::move(truth));
  return out;
}

}  // namespace

void diagnose_ratio(const Study& study, const Ratio& ratio, Tasks* tasks, Results& results,
                    std::optional<std::vector<double>> at) {
  const auto& which = study.diagnostics.which;
  if (std::all_of(which.begin(), which.end(), [](const auto& w) { return w == "reference"; }))
    return;
  const auto& fit = results.fit.fit;
  auto denominator = study.diagnostics.against;
  if (denominator.empty()) denominator = study.reference;
  if (denominator.empty()) denominator = study.parameters.middle();
  if (!at) {
    if (!fit.ok()) return;
    std::vector<std::vector<double>> candidates = {fit.point};
    for (auto& point : other_points(study)) candidates.push_back(std::move(point));
    for (auto& point : candidates)
      if (!at && !close(point, denominator, fit)) at = std::move(point);
    if (!at) {
      results.warnings.push_back(
          "the ratio was not checked: the estimate is its denominator; choose another with "
          "diagnostics.against");
      return;
    }
  }
  std::vector<Diagnostic> found;
  try {
    if (can_simulate(*study.simulator) || study.simulator->stored() != nullptr)
      found = diagnose(study, ratio, *at, denominator, tasks);
  } catch (const SimulatorError& error) {
    results.warnings.push_back(
        fmt::format("the ratio was not checked: the simulator failed: {}", error.what()));
    return;
  }
  if (found.empty())
    results.warnings.push_back(
        "the ratio was not checked: that needs a simulator, or files with a thousand events at "
        "each of two θ, near the estimate and diagnostics.against");
  if (can_simulate(*study.simulator)) results.budget["diagnostics"] += 2 * study.diagnostics.events;
  results.diagnostics.insert(results.diagnostics.end(), found.begin(), found.end());
}

void diagnose_repetition(Results& results) {
  const auto degrees = static_cast<double>(results.parameters.size());
  if (results.ensemble) {
    const auto& side = results.ensemble->approximate;
    if (!side.statistic.empty())
      results.diagnostics.push_back(diagnose_wilks(side.statistic, degrees));
    if (side.failed > 0)
      results.warnings.push_back(fmt::format("{} of {} fits of the ensemble did not converge",
                                             side.failed, results.ensemble->config.datasets));
  }
  if (!results.coverage) return;
  std::vector<CoverageCount> counts;
  const auto count = [&](const std::vector<double>& shares, std::size_t datasets,
                         const std::string& of) {
    for (std::size_t l = 0; l < shares.size() && datasets > 0; ++l)
      counts.push_back(
          {results.coverage->config.levels[l],
           static_cast<std::size_t>(std::llround(shares[l] * static_cast<double>(datasets))),
           datasets, of});
  };
  const auto& covered = results.coverage->points;
  const auto name = [&](std::size_t point, const std::string& parameter) {
    if (covered.size() == 1) return parameter;
    return fmt::format("point {}{}{}", point + 1, parameter.empty() ? "" : ":", parameter);
  };
  // Regions of all parameters may cover where the interval of one, the others profiled, does not.
  for (std::size_t at = 0; at < covered.size(); ++at) {
    const auto& point = covered[at];
    const bool simulated = !point.coverage_critical.empty();
    count(simulated ? point.coverage_critical : point.ensemble.coverage,
          point.ensemble.statistic.size(), name(at, ""));
    for (std::size_t i = 0; i < point.ensemble.profiles.size(); ++i)
      count(simulated ? point.profile_coverage_critical[i] : point.ensemble.profiles[i].coverage,
            point.ensemble.profiles[i].statistic.size(),
            name(at, results.parameters[results.coverage->config.interest[i]].name));
  }
  if (!counts.empty()) results.diagnostics.push_back(diagnose_coverage(counts));
}

}  // namespace pipeline

Results diagnose_model(const Study& study, const Model& model,
                       const std::optional<std::vector<double>>& at) {
  pipeline::check_whole("diagnose", study);
  pipeline::check_whole("diagnose", model);
  if (study.measurement || model.measurement)
    throw ArgumentError(
        "diagnose: a measurement has no ratio between two θ to be checked; `neyman run` and "
        "`neyman fit` check its sub-ratios");
  const auto range = [](const ParameterSpace& parameters) {
    std::vector<std::string> out;
    for (const auto& p : parameters)
      out.push_back(fmt::format("{} in [{}, {}]", p.name, p.low, p.high));
    return fmt::format("{}", fmt::join(out, ", "));
  };
  if (range(study.parameters) != range(model.parameters))
    throw ArgumentError(fmt::format(
        "diagnose: the model has the parameters {}, but the study {}; it was trained by another "
        "study",
        range(model.parameters), range(study.parameters)));
  Results noted;
  const auto data = pipeline::observe(study);
  if (data.events.feature_names != model.feature_names)
    throw ArgumentError(
        fmt::format("diagnose: the model has the features {}, but the study {}; it was trained by "
                    "another study",
                    some_names(model.feature_names), some_names(data.events.feature_names)));
  pipeline::note_data(data, noted);
  pipeline::note_tally(take_tally(*study.simulator), study.parameters, "data", noted);
  auto results = fit_data(model, data.events, data.source);
  results.title = study.title;
  results.reference = study.reference;
  results.parameters = study.parameters;
  results.diagnostics.clear();
  results.warnings.insert(results.warnings.begin(), noted.warnings.begin(), noted.warnings.end());
  const Ratio& ratio = model.ratio ? static_cast<const Ratio&>(*model.ratio)
                                   : static_cast<const Ratio&>(*model.parameterized);
  pipeline::timed(results, "diagnose", [&] {
    pipeline::diagnose_ratio(study, ratio, nullptr, results, at);
    pipeline::diagnose_references(study, ratio, data.events, nullptr, results);
    judge(results.diagnostics);
  });
  pipeline::note_tally(take_tally(*study.simulator), study.parameters, "checks", results);
  return results;
}

}  // namespace neyman
