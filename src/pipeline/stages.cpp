#include "pipeline/stages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "neyman/core/check.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "neyman/data/checksum.hpp"
#include "neyman/data/sample_stream.hpp"
#include "neyman/simulators/command.hpp"
#include "neyman/simulators/describe.hpp"

namespace neyman::pipeline {

Samples make_samples(Matrix x, const std::vector<std::string>& names) {
  Samples samples;
  samples.feature_names = names;
  samples.x = std::move(x);
  return samples;
}

std::string describe_point(const ParameterSpace& parameters, const std::vector<double>& point) {
  std::vector<std::string> values;
  for (std::size_t p = 0; p < point.size(); ++p)
    values.push_back(fmt::format("{} = {:.6g}", parameters[p].name, point[p]));
  return fmt::format("{}", fmt::join(values, ", "));
}

namespace {

/// Tells events that a program gave from others.
std::string describe_events(const Samples& events) {
  const auto sum = [](std::span<const double> values) {
    return checksum({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  };
  return fmt::format("{} {:016x} {:016x}", fmt::join(events.feature_names, ","),
                     sum(events.x.values()), sum(events.weights));
}

}  // namespace

Step step_of(const Study& study, const std::string& stage, const std::string& part) {
  Inputs inputs(study);
  const auto& name = part.empty() ? stage : part;
  const bool one_model =
      !study.mixture && !study.measurement && !study.parameterized.by_classifier();
  if (name == "simulate") {
    if (study.quick) inputs.value("quick", "yes");
    inputs.value("kind", study.measurement ? "measurement"
                         : study.mixture   ? "decomposed"
                         : one_model       ? "across"
                                           : "classifier");
    if (study.measurement) inputs.value("nominal", study.measurement->nominal);
    for (const auto& p : study.parameters)
      inputs.value("parameter", fmt::format("{} in [{}, {}]{}", p.name, p.low, p.high,
                                            p.periodic ? ", periodic" : ""));
    inputs.value("reference", study.reference);
    // Whatever no later step names may change what is simulated.
    inputs.all_but({"study", "parameters", "classifier", "calibration", "data", "inference",
                    "ensemble", "coverage", "compare", "diagnostics", "report", "measurement",
                    "shapes"});
  } else if (name == "train") {
    inputs.setting("classifier");
    if (one_model || study.measurement) inputs.setting("calibration");
    if (one_model) inputs.value("one event", study.data.events == 1 ? "yes" : "no");
    if (study.measurement) inputs.setting("shapes").setting("measurement.simulated");
  } else if (name == "calibrate") {
    inputs.setting("calibration");
  } else if (name == "fit") {
    inputs.setting("parameters").setting("data");
    if (study.data.given) inputs.value("given", describe_events(*study.data.given));
    inputs.setting("inference", {"contours", "surface", "bayesian", "test", "hypotheses"});
    if (study.measurement) inputs.setting("measurement", {"toys", "scan", "simulated"});
  } else if (name == "recovery") {
    // Not all of [diagnostics]: pseudo-experiments come after it, and are not to be done again.
    inputs.value("recovery", asks_for(study, "recovery") ? "yes" : "no");
    inputs.setting("diagnostics.times").setting("diagnostics.budget");
  } else if (name == "contours") {
    for (const char* key : {"contours", "surface", "bayesian"})
      inputs.setting(std::string("inference.") + key);
  } else if (name == "test") {
    inputs.setting("inference.test").setting("inference.hypotheses");
  } else if (name == "diagnose") {
    inputs.setting("diagnostics");
  } else if (name == "report") {
    inputs.setting("study.name").setting("report");
  } else {
    inputs.setting(name);  // ensemble, coverage, compare
  }
  const bool parted =
      !calibrates_on_demand(study) && (name == "contours" || name == "test" || name == "ensemble" ||
                                       name == "coverage" || name == "measurement");
  return {stage, part, std::move(inputs), parted};
}

void check_whole(const char* function, const Study& study) {
  const auto check = [&](const char* name, bool there, const char* what) {
    if (!there) fail_argument(function, std::string("study.") + name, "null", what);
  };
  check("simulator", study.simulator != nullptr, "a distribution");
  if (study.parameters.size() == 0)
    throw ArgumentError(std::string(function) + ": the study has no parameters");
  if (study.measurement)
    check("measurement.mixture", study.measurement->mixture != nullptr, "a mixture");
  if (study.mixture || study.measurement) {
    check("learning.classifier", study.learning.classifier != nullptr, "a classifier");
    check("learning.calibrator", study.learning.calibrator != nullptr, "a calibrator");
  } else {
    check("parameterized.design", study.parameterized.design != nullptr, "a design");
    check("parameterized.classifier.classifier",
          !study.parameterized.by_classifier() ||
              study.parameterized.classifier.classifier != nullptr,
          "a classifier");
  }
  if (study.compare)
    for (const auto& classifier : study.compare->classifiers)
      check("compare.classifiers", classifier != nullptr, "classifiers");
  if (!study.data.observed())
    for (const auto& parameter : study.parameters)
      if (!parameter.truth)
        fail_argument(function, parameter.name + ".truth", "absent",
                      "given where there are no observed events");
}

void check_whole(const char* function, const Model& model) {
  if (!model.ratio && !model.parameterized && !model.measurement)
    throw ArgumentError(std::string(function) +
                        ": the model has no ratio, but must have been trained or loaded");
}

void describe_study(const Study& study, Results& results) {
  results.name = study.name;
  results.title = study.title;
  results.seed = study.seed;
  results.parameters = study.parameters;
  results.simulator = describe(*study.simulator);
  results.reference = study.reference;
  results.levels = study.levels;
  results.threads = threads();
  results.quick = study.quick;
  for (const auto& note : study.notes)
    if (std::find(results.warnings.begin(), results.warnings.end(), note) == results.warnings.end())
      results.warnings.push_back(note);
  if (study.measurement) {
    results.component_names = study.measurement->mixture->names();
    results.ratio = "measurement";
    results.classifier = study.learning.classifier->kind();
    results.calibration = study.learning.calibrator->kind();
  } else if (study.mixture) {
    results.component_names = study.mixture->names();
    results.ratio = "decomposed";
    results.classifier = study.learning.classifier->kind();
    results.calibration = study.learning.calibrator->kind();
  } else if (!study.parameterized.by_classifier()) {
    constexpr const char* models[] = {"learned", "separable", "density"};
    results.ratio = results.classifier = models[static_cast<int>(study.parameterized.model)];
    results.calibration = "smooth across θ";
  } else {
    const auto& learned = study.parameterized.classifier;
    constexpr const char* across[] = {"none", "on-demand", "interpolate", "smooth"};
    results.ratio = "classifier";
    results.classifier = learned.classifier->kind();
    results.calibration = fmt::format("{} across θ", across[static_cast<int>(learned.calibration)]);
  }
}

std::vector<std::string> feature_names_of(const Distribution& simulator) {
  auto names = simulator.feature_names();
  return names.empty() ? default_feature_names(simulator.dimension()) : names;
}

Samples training_events(const Study& study, const Distribution& of, std::uint64_t which) {
  const auto& stored = *of.stored();
  if (study.stored_share >= 1.0) return stored;
  // With `stream` some of all events are in memory already, chosen at random.
  const auto stream = of.stream();
  const double all = static_cast<double>(stream ? stream->rows() : stored.size());
  const double share = study.stored_share * all / static_cast<double>(stored.size());
  if (share >= 1.0) return stored;
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    // A group stays together.
    const auto unit = stored.groups.empty() ? i : static_cast<std::uint64_t>(stored.groups[i]);
    if (RandomStream(derive_seed(study.seed, "quick", which), "event", unit).uniform() < share)
      kept.push_back(i);
  }
  return stored.take(kept);
}

std::shared_ptr<const SampleStream> training_stream(const Study& study, const Distribution& of) {
  return study.stored_share < 1.0 ? nullptr : of.stream();
}

Observed observe(const Study& study) {
  const auto& data = study.data;
  if (data.given) return {*data.given, "an array", data.given->size(), 0, data.note};
  if (data.observed()) {
    Observed out;
    out.note = data.note;
    out.source = data.files[0].name;
    if (data.files.size() > 1)
      out.source += fmt::format(" and {} more file{}", data.files.size() - 1,
                                data.files.size() == 2 ? "" : "s");
    for (const auto& file : data.files) {
      auto read = read_samples(file.name, file.options);
      out.events.append(read.samples);
      out.rows += read.rows;
      out.dropped += read.dropped;
    }
    return out;
  }
  std::vector<double> truth;
  for (const auto& parameter : study.parameters) truth.push_back(*parameter.truth);
  auto events = make_samples(
      sample(*study.simulator, truth, study.data.events, derive_seed(study.seed, "data"), "data"),
      feature_names_of(*study.simulator));
  return {std::move(events), "simulated at the truth"};
}

void note_data(const Observed& observed, Results& results) {
  if (observed.dropped > 0)
    results.warnings.push_back(
        fmt::format("{} of {} rows of the data were dropped: a value is missing or not finite",
                    observed.dropped, observed.rows));
  results.data_source = observed.source;
  results.data_note = observed.note;
  results.feature_names = observed.events.feature_names;
  results.events = observed.events.size();
  results.data = observed.events.x;
}

void note_tally(const SimulatorTally& tally, const ParameterSpace& parameters, const char* purpose,
                Results& results) {
  for (const auto& warning : tally.warnings(parameters))
    results.warnings.push_back(fmt::format("{}: {}", purpose, warning));
  results.simulator_log.insert(results.simulator_log.end(), tally.log.begin(), tally.log.end());
}

bool calibrates_on_demand(const Study& study) {
  return !study.mixture && !study.measurement && study.parameterized.by_classifier() &&
         study.parameterized.classifier.calibration ==
             ParameterizedClassifierRatio::Across::on_demand;
}

Model start_model(const Study& study, const Results& results) {
  Model model;
  model.name = study.name;
  model.seed = study.seed;
  model.parameters = study.parameters;
  model.feature_names = results.feature_names;
  model.component_names = results.component_names;
  model.classifier = results.classifier;
  model.calibration = results.calibration;
  model.levels = study.levels;
  model.scan_points = study.scan_points;
  return model;
}

void set_intervals(const Likelihood& likelihood, const std::vector<double>& levels,
                   FitReport& report, Progress* progress) {
  RegionsPlan plan{levels, 0, {}, {}};
  plan.add_simulation = [known = report.fit](Fit& best) {
    best.simulation_covariance = known.simulation_covariance;
    best.simulation_known = known.simulation_known;
  };
  plan.advance = [&](std::size_t steps) {
    if (progress != nullptr) progress->advance(steps);
  };
  auto found = find_regions(likelihood, report.fit, plan);
  report.fit = std::move(found.fit);
  report.intervals = std::move(found.intervals);
  report.statistical_intervals = std::move(found.statistical_intervals);
}

FitReport report_fit(const Likelihood& likelihood, Fit best, const FitPlan& plan,
                     const std::function<void(Fit&)>& add_simulation) {
  RegionsPlan regions{plan.levels, plan.scan_points, add_simulation, {}};
  regions.advance = [&](std::size_t steps) {
    if (plan.progress != nullptr) plan.progress->advance(steps);
  };
  regions.advance(1);
  if (add_simulation) add_simulation(best);
  return find_regions(likelihood, std::move(best), regions);
}

namespace {

/// A likelihood that is simulated anew at every θ is as rough as its simulations are few.
void note_roughness(const Fit& fit, const char* which, Results& results) {
  if (!fit.rough()) return;
  results.warnings.push_back(fmt::format(
      "the likelihood of the {}fit fluctuates by {:.2g} (−2 log Λ) from one θ to the next, and the "
      "estimate with it; the intervals are those of its averaged curvature: raise "
      "calibration.events, or calibrate smoothly across θ (across = \"smooth\")",
      which, 2.0 * fit.roughness));
}

}  // namespace

namespace {

/// What else the data may come from: maxima within the widest intervals of all parameters, and
/// those that come close.
void note_maxima(const FitReport& report, const ParameterSpace& parameters, const char* which,
                 Results& results) {
  constexpr double close = 9.0;  // three standard errors
  const auto& fit = report.fit;
  for (std::size_t m = 1; m < fit.maxima.size(); ++m) {
    const auto& point = fit.maxima[m].point;
    bool within = true;
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      bool inside = false;
      for (const auto& interval : report.intervals[p])
        inside = inside || interval.holds(point[p], parameters[p]);
      within = within && inside;
    }
    const double statistic = 2.0 * (fit.log_likelihood - fit.maxima[m].log_likelihood);
    if (!within && statistic > close) continue;
    results.warnings.push_back(fmt::format(
        "the {}fit has another maximum at {}, where −2 log Λ is {:.2g}{}", which,
        describe_point(parameters, point), std::max(0.0, statistic),
        within ? ": it belongs to the intervals" : ": outside the intervals, but close"));
  }
}

}  // namespace

namespace {

/// What ends where the design has no events, in one warning with what to do.
void note_edge_of_design(const FitReport& report, const ParameterSpace& parameters,
                         const DesignRegion& region, Results& results) {
  constexpr double a_little = 0.01;  // of the range
  std::vector<std::string> what;
  bool at_edge = false;
  for (std::size_t p = 0; p < parameters.size() && report.fit.ok(); ++p) {
    if (p >= report.fit.at_bound.size() || !report.fit.at_bound[p]) continue;
    for (const double side : {-1.0, 1.0}) {
      auto beyond = report.fit.point;
      beyond[p] = std::clamp(beyond[p] + side * a_little * (parameters[p].high - parameters[p].low),
                             parameters[p].low, parameters[p].high);
      at_edge = at_edge || !region.holds(beyond);
    }
  }
  if (at_edge) what.emplace_back("the estimate");
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    std::vector<std::string> levels;
    for (const auto& interval : report.intervals[p])
      if (interval.low_at_edge || interval.high_at_edge)
        levels.push_back(fmt::format("{:.6g} %", 100.0 * interval.level));
    if (!levels.empty())
      what.push_back(fmt::format("the {} interval{} of {}", fmt::join(levels, " and "),
                                 levels.size() > 1 ? "s" : "", parameters[p].name));
  }
  if (what.empty()) return;
  const bool several = what.size() > 1 || what[0].find("intervals") != std::string::npos;
  results.warnings.push_back(fmt::format(
      "{} end{} where the design has no events, beyond which the ratio knows nothing: "
      "simulate at θ further out (training.design, or more files), or read it as a limit "
      "of the design",
      fmt::join(what, " and "), several ? "" : "s"));
}

}  // namespace

void note_fit(const FitReport& report, const ParameterSpace& parameters, const char* which,
              Results& results, const DesignRegion* region) {
  if (!report.fit.ok())
    results.warnings.push_back(fmt::format(
        "the {}fit did not converge{}", which,
        report.fit.message.empty()
            ? fmt::format(" (estimated distance to the maximum {:.3g})", report.fit.distance)
            : ": " + report.fit.message));
  note_maxima(report, parameters, which, results);
  for (std::size_t p = 0; p < parameters.size(); ++p)
    for (const auto& interval : report.intervals[p]) {
      const bool round = parameters[p].periodic && interval.low == parameters[p].low &&
                         interval.high == parameters[p].high;
      if (interval.pieces.size() == 1 &&
          (round || (interval.low_at_bound && interval.high_at_bound)))
        results.warnings.push_back(
            fmt::format("the {:.6g} % interval of {} from the {}fit is its whole range: the data "
                        "do not tell it",
                        100.0 * interval.level, parameters[p].name, which));
      else if (interval.low_at_bound || interval.high_at_bound)
        results.warnings.push_back(
            fmt::format("the {:.6g} % interval of {} from the {}fit ends at the parameter's range",
                        100.0 * interval.level, parameters[p].name, which));
      if ((interval.low_at_edge || interval.high_at_edge) && region == nullptr)
        results.warnings.push_back(fmt::format(
            "the {:.6g} % interval of {} from the {}fit ends where the likelihood is not allowed",
            100.0 * interval.level, parameters[p].name, which));
    }
  if (region != nullptr) note_edge_of_design(report, parameters, *region, results);
  note_roughness(report.fit, which, results);
}

void note_test(Results& results) {
  const auto& test = *results.test;
  if (test.failed > 0)
    results.warnings.push_back(
        fmt::format("{} of {} datasets of the test could not be simulated; they count against the "
                    "result, in p-value and power",
                    test.failed, 2 * test.config.datasets));
}

void warn_outside(Results& results) {
  if (results.outside > 0)
    results.warnings.push_back(
        fmt::format("{} of {} events of the data lie outside the calibrated range; their ratio "
                    "is extrapolated",
                    results.outside, results.events));
}

void note_outside(const Ratio& ratio, const Samples& data, Results& results) {
  results.outside = ratio.count_outside(data.x);
  warn_outside(results);
}

void check_outside(Results& results) {
  constexpr double some = 0.01, harmful = 0.05;
  if (results.events == 0) return;
  const double share = static_cast<double>(results.outside) / static_cast<double>(results.events);
  Diagnostic out;
  out.name = "range";
  out.statistic = share;
  out.explanation = fmt::format(
      "{} of {} events of the data lie outside of what the model has seen in its simulation. The "
      "statistic is their share; above {} % it warns, above {} % it fails: the ratio of such "
      "events "
      "is extrapolated.",
      results.outside, results.events, 100.0 * some, 100.0 * harmful);
  out.verdict = share > harmful ? Diagnostic::Verdict::fail
                : share > some  ? Diagnostic::Verdict::warn
                                : Diagnostic::Verdict::pass;
  if (out.verdict != Diagnostic::Verdict::pass)
    out.note = fmt::format("{:.2g} % of the data are unlike all simulated events.", 100.0 * share);
  results.diagnostics.insert(results.diagnostics.begin(), std::move(out));
}

}  // namespace neyman::pipeline
