#include "pipeline/stages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "neyman/simulators/command.hpp"

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

Results start_results(const Study& study) {
  Results results;
  results.name = study.name;
  results.title = study.title;
  results.seed = study.seed;
  results.parameters = study.parameters;
  results.reference = study.reference;
  results.levels = study.levels;
  results.threads = threads();
  return results;
}

namespace {

Samples read_or_simulate(const Study& study, Results& results) {
  if (study.data.file) {
    auto read = read_samples(*study.data.file, study.data.options);
    if (read.dropped > 0)
      results.warnings.push_back(
          fmt::format("{} of {} rows of the data were dropped: a value "
                      "is missing or not finite",
                      read.dropped, read.rows));
    results.data_source = *study.data.file;
    return std::move(read.samples);
  }
  std::vector<double> truth;
  for (const auto& parameter : study.parameters) truth.push_back(*parameter.truth);
  results.data_source = "simulated at the truth";
  auto names = study.simulator->feature_names();
  if (names.empty()) names = default_feature_names(study.simulator->dimension());
  return make_samples(
      sample(*study.simulator, truth, study.data.events, derive_seed(study.seed, "data"), "data"),
      names);
}

}  // namespace

Samples load_data(const Study& study, Results& results) {
  auto data = read_or_simulate(study, results);
  results.feature_names = data.feature_names;
  results.events = data.size();
  results.data = data.x;
  note_simulator(study, "data", results);
  return data;
}

void note_simulator(const Study& study, const char* purpose, Results& results) {
  const auto tally = take_tally(*study.simulator);
  for (const auto& warning : tally.warnings(study.parameters))
    results.warnings.push_back(fmt::format("{}: {}", purpose, warning));
  results.simulator_log.insert(results.simulator_log.end(), tally.log.begin(), tally.log.end());
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

FitReport report_fit(const Likelihood& likelihood, Fit best, const std::vector<double>& levels,
                     std::size_t scan_points) {
  FitReport report;
  const auto& parameters = likelihood.parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    auto& with = report.intervals.emplace_back();
    auto& without = report.statistical_intervals.emplace_back();
    double reach = 0.0;
    for (const double level : levels) {
      with.push_back(likelihood_interval(likelihood, best, p, level, true));
      without.push_back(likelihood_interval(likelihood, best, p, level, false));
      reach = std::max(reach, with.back().high - with.back().low);
    }
    const double low = std::max(parameters[p].low, best.point[p] - reach);
    const double high = std::min(parameters[p].high, best.point[p] + reach);
    report.scans.push_back(scan(likelihood, best, p, low, high, scan_points));
  }
  report.fit = std::move(best);
  return report;
}

void note_fit(const FitReport& report, const ParameterSpace& parameters, const char* which,
              Results& results) {
  if (!report.fit.ok())
    results.warnings.push_back(
        fmt::format("the {}fit did not converge (estimated distance to the maximum {:.3g})", which,
                    report.fit.distance));
  for (std::size_t p = 0; p < parameters.size(); ++p)
    for (const auto& interval : report.intervals[p])
      if (interval.low_at_bound || interval.high_at_bound)
        results.warnings.push_back(
            fmt::format("the {} interval of {} of the {}fit ends at the parameter's range",
                        interval.level, parameters[p].name, which));
}

void note_outside(const Ratio& ratio, const Samples& data, Results& results) {
  results.outside = ratio.count_outside(data.x);
  if (results.outside > 0)
    results.warnings.push_back(
        fmt::format("{} of {} events of the data lie outside the calibrated range; their ratio "
                    "is extrapolated",
                    results.outside, data.size()));
}

}  // namespace neyman::pipeline
