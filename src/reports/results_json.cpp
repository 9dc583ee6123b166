#include "neyman/reports/results_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "neyman/reports/terminal.hpp"
#include "reports/words.hpp"

namespace neyman::reports {

namespace {

using Json = nlohmann::ordered_json;

// The key of a level: 0.683 gives "0.683", the shortest digits that name this double.
std::string level_key(double level) { return fmt::format("{}", level); }

template <class Map>
Json by_parameter(const ParameterSpace& parameters, Map&& value) {
  Json out = Json::object();
  for (std::size_t p = 0; p < parameters.size(); ++p) out[parameters[p].name] = value(p);
  return out;
}

/// Values in the order of the parameters, by name; what is missing is left out.
Json by_parameter(const ParameterSpace& parameters, const std::vector<double>& values) {
  Json out = Json::object();
  for (std::size_t p = 0; p < std::min(parameters.size(), values.size()); ++p)
    out[parameters[p].name] = values[p];
  return out;
}

Json by_level(const std::vector<double>& levels, const std::vector<double>& values) {
  Json out = Json::object();
  for (std::size_t l = 0; l < std::min(levels.size(), values.size()); ++l)
    out[level_key(levels[l])] = values[l];
  return out;
}

Json matrix(const Matrix& values) {
  Json out = Json::array();
  for (std::size_t i = 0; i < values.rows(); ++i) {
    const auto row = values.row(i);
    out.push_back(std::vector<double>(row.begin(), row.end()));
  }
  return out;
}

// ------------------------------------------------------------------------------- the parts

Json study_part(const Results& r) {
  Json out = {
      {"name", r.name},
      {"title", r.title},
      {"seed", r.seed},
      {"parameters", by_parameter(r.parameters,
                                  [&](std::size_t p) {
                                    const auto& parameter = r.parameters[p];
                                    Json entry = {{"range", {parameter.low, parameter.high}}};
                                    if (parameter.truth) entry["truth"] = *parameter.truth;
                                    if (parameter.nuisance) entry["role"] = "nuisance";
                                    if (parameter.periodic) entry["periodic"] = true;
                                    return entry;
                                  })},
      {"reference", by_parameter(r.parameters, r.reference)},
      {"features", r.feature_names},
      {"components", r.component_names},
      {"simulator", r.simulator},
      {"ratio", r.ratio},
      {"classifier", r.classifier},
      {"calibration", r.calibration},
      {"levels", r.levels},
      {"data", r.data_source},
      {"events", r.events}};
  if (!r.data_note.empty()) out["data_note"] = r.data_note;
  if (r.quick) out["quick"] = true;
  return out;
}

Json intervals_part(const std::vector<Interval>& intervals) {
  Json out = Json::object();
  for (const auto& interval : intervals)
    out[level_key(interval.level)] = {interval.low, interval.high};
  return out;
}

Json pieces_part(const std::vector<Interval>& intervals) {
  Json out = Json::object();
  for (const auto& interval : intervals) {
    Json pieces = Json::array();
    for (const auto& piece : pieces_of(interval)) pieces.push_back({piece.low, piece.high});
    out[level_key(interval.level)] = std::move(pieces);
  }
  return out;
}

/// A number that is known, or null.
Json if_known(bool known, double value) { return known ? Json(value) : Json(); }

/// Which ends of which intervals are those of the parameter's range.
Json ends_at_bound(const std::vector<Interval>& intervals) {
  Json out = Json::object();
  for (const auto& interval : intervals) {
    Json ends = Json::array();
    if (interval.low_at_bound) ends.push_back("low");
    if (interval.high_at_bound) ends.push_back("high");
    if (!ends.empty()) out[level_key(interval.level)] = ends;
  }
  return out;
}

/// Of which levels a piece goes over the ends of the period.
Json levels_over_seam(const std::vector<Interval>& intervals, const Parameter& parameter) {
  Json out = Json::array();
  for (const auto& interval : intervals)
    if (over_seam(interval, parameter)) out.push_back(level_key(interval.level));
  return out;
}

/// Which ends of which intervals are where θ are no longer allowed.
Json ends_at_edge(const std::vector<Interval>& intervals) {
  Json out = Json::object();
  for (const auto& interval : intervals) {
    Json ends = Json::array();
    if (interval.low_at_edge) ends.push_back("low");
    if (interval.high_at_edge) ends.push_back("high");
    if (!ends.empty()) out[level_key(interval.level)] = ends;
  }
  return out;
}

/// Why intervals are not to be trusted, by level.
Json doubtful(const std::vector<Interval>& intervals) {
  Json out = Json::object();
  for (const auto& interval : intervals)
    if (!interval.ok) out[level_key(interval.level)] = interval.message;
  return out;
}

Json fitted_parameter(const Results& r, const FitReport& report, std::size_t p) {
  const auto& fit = report.fit;
  const bool bent = fit.statistical_error_known(p);
  Json out = {
      {"estimate", fit.point[p]},
      {"error", if_known(bent, fit.error(p))},
      {"statistical_error", if_known(bent, fit.statistical_error(p))},
      {"simulation_error", if_known(fit.simulation_error_known(p), fit.simulation_error(p))}};
  if (p < report.intervals.size()) {
    out["interval"] = intervals_part(report.intervals[p]);
    out["interval_pieces"] = pieces_part(report.intervals[p]);
  }
  if (p < report.statistical_intervals.size()) {
    out["statistical_interval"] = intervals_part(report.statistical_intervals[p]);
    out["statistical_interval_pieces"] = pieces_part(report.statistical_intervals[p]);
  }
  if (const auto end = at_bound(r, report, p)) out["at_bound"] = *end == End::low ? "low" : "high";
  if (p < report.intervals.size())
    if (Json ends = ends_at_bound(report.intervals[p]); !ends.empty())
      out["interval_at_bound"] = ends;
  if (p < report.intervals.size())
    if (Json levels = levels_over_seam(report.intervals[p], r.parameters[p]); !levels.empty())
      out["interval_over_seam"] = levels;
  if (p < report.intervals.size())
    if (Json ends = ends_at_edge(report.intervals[p]); !ends.empty())
      out["interval_at_edge"] = ends;
  if (p < report.intervals.size())
    if (Json trouble = doubtful(report.intervals[p]); !trouble.empty())
      out["interval_doubtful"] = trouble;
  return out;
}

/// All maxima, θ̂ first, with −2 log Λ and what finite simulation makes of it.
Json maxima_part(const Results& r, const Fit& fit) {
  Json out = Json::array();
  for (const auto& maximum : fit.maxima)
    out.push_back(
        {{"parameters", by_parameter(r.parameters, maximum.point)},
         {"statistic", std::max(0.0, 2.0 * (fit.log_likelihood - maximum.log_likelihood))},
         {"simulation_error", 2.0 * maximum.simulation_error}});
  return out;
}

Json fit_part(const Results& r, const FitReport& report) {
  Json scans = Json::object();
  for (const auto& scan : report.scans)
    scans[r.parameters[scan.parameter].name] = {{"values", scan.values},
                                                {"statistic", scan.statistic}};
  Json out = {
      {"status", to_string(report.fit.status)},
      {"log_likelihood", report.fit.log_likelihood},
      {"evaluations", report.fit.evaluations},
      {"distance", report.fit.distance},
      {"parameters",
       by_parameter(r.parameters, [&](std::size_t p) { return fitted_parameter(r, report, p); })},
      {"covariance", matrix(report.fit.covariance)},
      {"simulation_covariance",
       report.fit.simulation_known ? matrix(report.fit.simulation_covariance) : Json()},
      {"correlation", matrix(correlation_of(report.fit))},
      {"scan", scans},
      {"maxima", maxima_part(r, report.fit)}};
  if (!report.fit.message.empty()) out["message"] = report.fit.message;
  return out;
}

Json lines_part(const std::vector<Polyline>& lines) {
  Json out = Json::array();
  for (const auto& line : lines)
    out.push_back({{"closed", line.closed}, {"x", line.x}, {"y", line.y}});
  return out;
}

Json surface_part(const Results& r, const SurfaceReport& report) {
  const auto& surface = report.surface;
  Json contours = Json::array();
  for (const auto& contour : report.contours)
    contours.push_back({{"level", contour.level},
                        {"threshold", contour.threshold},
                        {"touches_bound", contour.touches_bound},
                        {"touches_edge", contour.touches_edge},
                        {"failed", contour.failed},
                        {"lines", lines_part(contour.lines)}});
  Json out = {
      {"label", report.label},
      {"parameters", {r.parameters[surface.first].name, r.parameters[surface.second].name}}};
  if (!report.minimum.empty()) out["minimum"] = by_parameter(r.parameters, report.minimum);
  out["x"] = surface.x;
  out["y"] = surface.y;
  out["statistic"] = matrix(surface.statistic);
  if (!report.deviation.empty()) out["deviation"] = matrix(report.deviation);
  out["failed"] = surface.failed;
  out["contours"] = contours;
  if (report.evaluated.cols() == r.parameters.size() && !report.evaluated.empty())
    out["evaluated"] =
        by_parameter(r.parameters, [&](std::size_t p) { return report.evaluated.column(p); });
  return out;
}

Json surfaces_part(const Results& r) {
  Json out = Json::array();
  for (const auto& report : r.surfaces)
    if (std::max(report.surface.first, report.surface.second) < r.parameters.size())
      out.push_back(surface_part(r, report));
  return out;
}

/// By parameter, what the hypothesis says of it; free ones are left out.
Json hypothesis_part(const Results& r, const CompositeHypothesis& hypothesis) {
  Json out = Json::object();
  for (std::size_t p = 0; p < r.parameters.size(); ++p) {
    const std::string& name = r.parameters[p].name;
    if (p < hypothesis.fixed.size() && hypothesis.fixed[p])
      out[name] = {{"fixed", *hypothesis.fixed[p]}};
    if (p < hypothesis.ranges.size() && hypothesis.ranges[p])
      out[name] = {{"range", {hypothesis.ranges[p]->low, hypothesis.ranges[p]->high}}};
  }
  return out;
}

Json composite_test_part(const Results& r, const CompositeTest& test) {
  Json out = {{"null", hypothesis_part(r, test.config.null)},
              {"status", test.ok() ? "ok" : "failed"},
              {"estimate", by_parameter(r.parameters, test.null_fit.point)},
              {"statistic", test.statistic},
              {"degrees", test.degrees},
              {"mixed", test.mixed},
              {"p_value", test.p_value}};
  if (test.simulated_p_value) {
    out["simulated_p_value"] = *test.simulated_p_value;
    out["datasets"] = test.config.datasets;
    out["failed"] = test.failed;
    out["null_statistics"] = test.null_statistics;
  }
  return out;
}

Json tests_part(const Results& r) {
  Json out = Json::array();
  for (const auto& test : r.composite_tests) out.push_back(composite_test_part(r, test));
  return out;
}

// -------------------------------------------------------------------------------- coverage

Json critical_part(const std::vector<CriticalValue>& values) {
  Json out = Json::object();
  for (const auto& value : values)
    out[level_key(value.level)] = {{"asymptotic", value.asymptotic},
                                   {"simulated", value.toys},
                                   {"low", value.low},
                                   {"high", value.high},
                                   {"enough", value.enough}};
  return out;
}

/// Of one parameter, the others profiled.
Json coverage_profile(const CoveragePoint& point, std::size_t i,
                      const std::vector<double>& levels) {
  Json out = {{"coverage", by_level(levels, point.ensemble.profiles[i].coverage)}};
  if (i < point.profile_critical.size() && i < point.profile_coverage_critical.size()) {
    out["thresholds"] = critical_part(point.profile_critical[i]);
    out["coverage_simulated"] = by_level(levels, point.profile_coverage_critical[i]);
  }
  return out;
}

Json coverage_point(const Results& r, const CoveragePoint& point) {
  const auto& levels = r.coverage->config.levels;
  Json out = {
      {"at", by_parameter(r.parameters, point.point)},
      {"fitted", point.ensemble.statistic.size()},
      {"failed", point.ensemble.failed},
      {"coverage", by_level(levels, point.ensemble.coverage)},
      {"coverage_error", by_level(levels, point.coverage_error)},
      {"wilks",
       {{"statistic", point.ensemble.wilks.statistic}, {"p_value", point.ensemble.wilks.p_value}}}};
  if (!point.critical.empty()) {
    out["thresholds"] = critical_part(point.critical);
    out["coverage_simulated"] = by_level(levels, point.coverage_critical);
    out["critical_failed"] = point.critical_failed;
  }
  Json profiles = Json::object();
  for (std::size_t i = 0; i < point.ensemble.profiles.size(); ++i)
    if (const auto p = point.ensemble.profiles[i].parameter; p < r.parameters.size())
      profiles[r.parameters[p].name] = coverage_profile(point, i, levels);
  if (!profiles.empty()) out["profiles"] = profiles;
  return out;
}

Json coverage_part(const Results& r) {
  Json points = Json::array();
  for (const auto& point : r.coverage->points) points.push_back(coverage_point(r, point));
  return {{"datasets", r.coverage->config.datasets},
          {"critical_datasets", r.coverage->config.critical_datasets},
          {"levels", r.coverage->config.levels},
          {"points", points}};
}

Json test_part(const Results& r, const SimpleTest& test) {
  return {{"null", by_parameter(r.parameters, test.config.null)},
          {"alternative", by_parameter(r.parameters, test.config.alternative)},
          {"datasets", test.config.datasets},
          {"statistic", test.statistic},
          {"p_value", test.p_value},
          {"size", test.config.size},
          {"power", test.power},
          {"failed", test.failed},
          {"null_statistics", test.null_statistics},
          {"alternative_statistics", test.alternative_statistics}};
}

Json ensemble_side(const Results& r, const EnsembleSide& side,
                   const std::vector<double>* coverage_with_simulation) {
  const auto& levels = r.ensemble->config.levels;
  Json out = {{"mean", by_parameter(r.parameters, side.means)},
              {"spread", by_parameter(r.parameters, side.spreads)},
              {"coverage", by_level(levels, side.coverage)}};
  if (coverage_with_simulation != nullptr)
    out["coverage_with_simulation"] = by_level(levels, *coverage_with_simulation);
  out["failed"] = side.failed;
  out["wilks"] = {{"statistic", side.wilks.statistic}, {"p_value", side.wilks.p_value}};
  Json profiles = Json::object();
  for (const auto& profile : side.profiles)
    if (profile.parameter < r.parameters.size())
      profiles[r.parameters[profile.parameter].name] = {
          {"coverage", by_level(levels, profile.coverage)},
          {"wilks", {{"statistic", profile.wilks.statistic}, {"p_value", profile.wilks.p_value}}}};
  if (!profiles.empty()) out["profiles"] = profiles;
  out["estimates"] =
      by_parameter(r.parameters, [&](std::size_t p) { return side.estimates.column(p); });
  out["statistics"] = side.statistic;
  return out;
}

Json ensemble_part(const Results& r) {
  const auto& ensemble = *r.ensemble;
  Json out = {
      {"datasets", ensemble.config.datasets},
      {"events", ensemble.config.events},
      {"at", by_parameter(r.parameters, ensemble.config.point)},
      {"bias", by_parameter(r.parameters, ensemble.bias)},
      {"simulation_share", by_parameter(r.parameters, ensemble.simulation_share)},
      {"approximate", ensemble_side(r, ensemble.approximate, &ensemble.coverage_with_simulation)}};
  if (ensemble.exact) out["exact"] = ensemble_side(r, *ensemble.exact, nullptr);
  return out;
}

Json comparison_part(const Results& r) {
  Json out = Json::array();
  for (const auto& comparison : r.comparisons) {
    Json entry = {{"classifier", comparison.classifier}};
    const auto add = [&](const char* key, const std::optional<double>& error) {
      if (error) entry[key] = *error;
    };
    add("uncalibrated_error", comparison.uncalibrated_error);
    add("calibrated_error", comparison.calibrated_error);
    add("decomposed_error", comparison.decomposed_error);
    out.push_back(std::move(entry));
  }
  return out;
}

Json diagnostics_part(const Results& r) {
  Json out = Json::array();
  for (const auto& check : r.diagnostics) {
    Json entry = {{"name", check.name}, {"statistic", check.statistic}};
    if (check.p_value) entry["p_value"] = *check.p_value;
    if (check.tolerance) entry["tolerance"] = *check.tolerance;
    entry["verdict"] = to_string(check.verdict);
    entry["description"] = check.explanation;
    if (!check.note.empty()) entry["note"] = check.note;
    if (!check.numbers.empty()) {
      Json numbers = Json::object();
      for (const auto& [name, value] : check.numbers) numbers[name] = value;
      entry["numbers"] = std::move(numbers);
    }
    out.push_back(std::move(entry));
  }
  return out;
}

Json timing_part(const Results& r) {
  Json out = Json::object();
  for (const auto& [stage, seconds] : r.timing)  // a stage that ran twice took both times
    out[stage] = out.value(stage, 0.0) + seconds;
  for (const auto& model : r.models)
    if (model.seconds > 0.0) out["train: " + model.name] = model.seconds;
  return out;
}

Json models_part(const Results& r) {
  Json out = Json::array();
  for (const auto& model : r.models) {
    Json one = {{"name", model.name}, {"trained", model.trained}, {"chosen", model.chosen}};
    // Without a score it could not be tried.
    if (model.seconds > 0.0) {
      one["score"] = model.score;
      one["behind"] = model.behind;
      one["behind_error"] = model.behind_error;
      one["share"] = model.share;
    }
    if (!model.note.empty()) one["note"] = model.note;
    out.push_back(std::move(one));
  }
  return out;
}

Json next_steps_part(const Results& r) {
  Json out = Json::array();
  for (const auto& step : r.next_steps) {
    Json set = Json::object();
    for (std::size_t i = 0; i < step.keys.size(); ++i)
      set[step.keys[i]] = step.values[i].empty() ? Json() : Json::parse(step.values[i]);
    out.push_back({{"what", step.what}, {"set", std::move(set)}, {"reason", step.reason}});
  }
  return out;
}

Json all(const Results& r) {
  Json out = {{"schema", "neyman.results/1"},
              {"version", r.version},
              {"command", r.command},
              {"study", study_part(r)},
              {"fit", fit_part(r, r.fit)}};
  if (r.exact_fit) out["exact_fit"] = fit_part(r, *r.exact_fit);
  if (!r.models.empty()) out["models"] = models_part(r);
  if (!r.unused_features.empty()) out["unused_features"] = r.unused_features;
  if (!r.measurement.empty()) out["measurement"] = Json::parse(r.measurement);
  if (!r.surfaces.empty()) out["surfaces"] = surfaces_part(r);
  if (r.test) out["test"] = test_part(r, *r.test);
  if (!r.composite_tests.empty()) out["tests"] = tests_part(r);
  if (r.ensemble) out["ensemble"] = ensemble_part(r);
  if (r.coverage) out["coverage"] = coverage_part(r);
  if (!r.comparisons.empty()) {
    out["compared_at"] = by_parameter(r.parameters, r.compared_point);
    out["comparison"] = comparison_part(r);
  }
  out["diagnostics"] = diagnostics_part(r);
  out["outside"] = r.outside;
  out["budget"] = r.budget;
  out["timing"] = timing_part(r);
  out["threads"] = r.threads;
  out["warnings"] = r.warnings;
  if (!r.next_steps.empty()) out["next_steps"] = next_steps_part(r);
  return out;
}

// ------------------------------------------------------------------------------- the text

void replace_not_finite(Json& value, const std::string& path, std::vector<std::string>& found) {
  if (value.is_number_float()) {
    if (std::isfinite(value.get<double>())) return;
    value = nullptr;
    found.push_back(path);
  } else if (value.is_array()) {
    const std::size_t before = found.size();
    for (std::size_t i = 0; i < value.size(); ++i)
      replace_not_finite(value[i], value[i].is_structured() ? fmt::format("{}[{}]", path, i) : path,
                         found);
    // A list of plain values is named once, not once for each of its thousands of values.
    found.erase(std::unique(found.begin() + static_cast<std::ptrdiff_t>(before), found.end()),
                found.end());
  } else if (value.is_object()) {
    for (auto& [key, member] : value.items())
      replace_not_finite(member, path.empty() ? key : path + '.' + key, found);
  }
}

// A name in another encoding must not cost the results: its bytes are replaced.
std::string scalar(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Like dump(2), but lists of plain values run along the line, as long as 100 columns allow:
/// an ensemble has thousands of numbers.
void print(const Json& value, std::size_t indent, std::string& out) {
  if (!value.is_structured() || value.empty()) {
    out += scalar(value);
    return;
  }
  const std::string inner(indent + 2, ' ');
  const bool plain =
      value.is_array() &&
      std::none_of(value.begin(), value.end(), [](const Json& v) { return v.is_structured(); });
  if (plain) {
    std::string line;
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string item = scalar(value[i]) + (i + 1 < value.size() ? "," : "");
      if (!line.empty() && inner.size() + line.size() + 1 + display_width(item) > 100) {
        lines.push_back(std::move(line));
        line.clear();
      }
      line += (line.empty() ? "" : " ") + item;
    }
    if (lines.empty()) {
      out += '[' + line + ']';
      return;
    }
    lines.push_back(std::move(line));
    out += "[\n";
    for (const auto& l : lines) out += inner + l + '\n';
    out += std::string(indent, ' ') + ']';
    return;
  }
  out += value.is_array() ? "[\n" : "{\n";
  bool first = true;
  for (const auto& [key, member] : value.items()) {
    if (!first) out += ",\n";
    first = false;
    out += inner;
    if (value.is_object()) out += scalar(key) + ": ";
    print(member, indent + 2, out);
  }
  out += '\n' + std::string(indent, ' ') + (value.is_array() ? ']' : '}');
}

}  // namespace

std::string not_finite_warning(const std::string& path) {
  return fmt::format("{} is not a finite number; results.json has null in its place", path);
}

ResultsJson results_json(const Results& results) {
  Json json = all(results);
  ResultsJson out;
  replace_not_finite(json, "", out.not_finite);
  for (const auto& path : out.not_finite) json["warnings"].push_back(not_finite_warning(path));
  print(json, 0, out.text);
  out.text += '\n';
  return out;
}

}  // namespace neyman::reports
