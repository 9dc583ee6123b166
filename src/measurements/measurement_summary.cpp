#include "neyman/measurements/measurement_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"

namespace neyman {

namespace {

using Json = nlohmann::ordered_json;

/// Runs one part; where it is refused the reason is a problem, and the others go on.
template <class Part>
void attempt(MeasurementSummary& out, Part&& part) {
  try {
    part();
  } catch (const ArgumentError& error) {
    out.problems.push_back(error.reason());
  }
}

std::vector<double> equally_spaced(double low, double high, std::size_t points) {
  std::vector<double> out;
  for (std::size_t i = 0; i < points; ++i)
    out.push_back(low + (high - low) * static_cast<double>(i) / static_cast<double>(points - 1));
  out.back() = high;
  return out;
}

/// Values around the limits that the asymptotic formulae give.
std::vector<double> scan_values(const UpperLimit& limit, std::size_t points, double highest) {
  const auto [least, most] = std::minmax_element(limit.expected.begin(), limit.expected.end());
  const double low = 0.4 * std::min(*least, limit.observed);
  const double high = std::min(highest, 1.4 * std::max(*most, limit.observed));
  return equally_spaced(low, high, points);
}

/// −2 log Λ to about ten on both sides, the estimate among its values.
void add_profile(MeasurementSummary& out) {
  constexpr double errors = 3.2;
  const std::size_t interest = out.model.interest();
  const auto& range = out.model.parameters()[interest];
  const auto& interval = out.intervals[interest];
  const double estimate = out.fit.point[interest];
  const double above = std::max(interval.high - estimate, 0.0),
               below = std::max(estimate - interval.low, 0.0);
  const double low = std::max(range.low, estimate - errors * (below > 0.0 ? below : above));
  const double high = std::min(range.high, estimate + errors * (above > 0.0 ? above : below));
  if (!interval.ok || !(high > low)) return;
  auto values = equally_spaced(low, high, out.options.curve_points);
  const auto after = std::upper_bound(values.begin(), values.end(), estimate);
  if (after != values.begin() && *(after - 1) != estimate) values.insert(after, estimate);
  out.profile = profile_scan(out.model, out.data, out.fit, interest, std::move(values));
}

void add_cl_s(MeasurementSummary& out) {
  const double highest = out.model.parameters()[out.model.interest()].high;
  double high = highest;
  if (out.limit)
    high = std::min(highest, 1.4 * std::max(out.limit->observed, out.limit->expected[4]));
  if (!(high > 0.0)) return;
  try {
    out.cl_s =
        asymptotic_scan(out.model, out.data, equally_spaced(0.0, high, out.options.curve_points),
                        out.options.statistic);
  } catch (const ArgumentError& error) {
    // Where nothing can be tested, the limit has said so.
    if (out.limit) out.problems.push_back(error.reason());
  }
  std::erase_if(out.cl_s, [](const SignalTest& test) { return !test.ok; });
}

void add_error_parts(MeasurementSummary& out) {
  if (!(out.fit.error(out.model.interest()) > 0.0)) return;
  out.error_parts = error_breakdown(out.model, out.data, out.fit, out.options.groups);
  if (out.options.groups.empty()) out.error_parts[0].group = "systematic";
}

/// Four digits of the error's worth, or as many of the value.
std::string number(double value) { return fmt::format("{:.4g}", value); }

std::string signed_number(double value) { return fmt::format("{:+.3g}", value); }

const Impact* impact_of(const MeasurementSummary& summary, std::size_t parameter) {
  for (const auto& impact : summary.impacts)
    if (impact.parameter == parameter) return &impact;
  return nullptr;
}

std::string parameter_line(const MeasurementSummary& summary, std::size_t p) {
  const auto& name = summary.model.parameters()[p].name;
  const double value = summary.fit.point[p];
  const auto& interval = summary.intervals[p];
  std::string range;
  if (interval.ok)
    range = fmt::format("{:>10}{:>10}{}", signed_number(interval.high - value),
                        signed_number(interval.low - value),
                        interval.low_at_bound || interval.high_at_bound ? "  at bound" : "");
  return fmt::format("  {:<28}{:>12}{}\n", name, number(value), range);
}

std::string parts_lines(const MeasurementSummary& summary) {
  std::string out;
  for (const auto& part : summary.error_parts)
    out += fmt::format("    {:<36}{:>12}\n", part.group + " part of the error",
                       "±" + fmt::format("{:.3g}", part.error));
  return out;
}

std::string nuisance_table(const MeasurementSummary& summary) {
  if (summary.pulls.empty()) return {};
  std::string out = fmt::format("\n  {:<28}{:>10}{:>12}{:>24}\n", "nuisance parameter", "pull",
                                "constraint", "impact of ±1σ");
  // By impact; those without one last.
  std::vector<std::size_t> order;
  for (const auto& impact : summary.impacts) order.push_back(impact.parameter);
  for (const auto& pull : summary.pulls)
    if (impact_of(summary, pull.parameter) == nullptr) order.push_back(pull.parameter);
  for (const std::size_t p : order) {
    const auto pull = std::find_if(summary.pulls.begin(), summary.pulls.end(),
                                   [&](const Pull& candidate) { return candidate.parameter == p; });
    if (pull == summary.pulls.end()) continue;
    const auto* impact = impact_of(summary, p);
    const auto moves = impact == nullptr || !impact->ok
                           ? std::string("unknown")
                           : signed_number(impact->up) + " " + signed_number(impact->down);
    out += fmt::format("  {:<28}{:>10}{:>12}{:>23}\n", summary.model.parameters()[p].name,
                       fmt::format("{:+.2f}", pull->pull), fmt::format("{:.2f}", pull->constraint),
                       moves);
  }
  return out;
}

template <class Limit>
std::string limit_lines(const Limit& limit, const std::string& how) {
  return fmt::format("  {:<22}observed {:>9}   expected {:>9}\n{:24}±1σ {}–{}, ±2σ {}–{}\n", how,
                     number(limit.observed), number(limit.expected[2]), "",
                     number(limit.expected[1]), number(limit.expected[3]),
                     number(limit.expected[0]), number(limit.expected[4]));
}

template <class Value>
Json band_json(const std::array<Value, 5>& limits) {
  return {
      {"-2", limits[0]}, {"-1", limits[1]}, {"0", limits[2]}, {"1", limits[3]}, {"2", limits[4]}};
}

Json curve_json(const std::vector<SignalTest>& tests) {
  std::vector<double> values, observed;
  std::array<std::vector<double>, 5> expected;
  for (const auto& test : tests) {
    values.push_back(test.tested);
    observed.push_back(test.cl_s);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i].push_back(test.expected_cl_s[i]);
  }
  return {{"values", values}, {"observed", observed}, {"expected", band_json(expected)}};
}

Json histogram_json(const ChannelHistogram& histogram) {
  const auto expected = [&](const ExpectedCounts& counts) {
    Json parts = Json::object();
    for (std::size_t s = 0; s < histogram.samples.size(); ++s)
      parts[histogram.samples[s]] =
          std::vector<double>(counts.parts.row(s).begin(), counts.parts.row(s).end());
    return Json{{"total", counts.total}, {"error", counts.error}, {"samples", parts}};
  };
  Json out = {{"channel", histogram.channel}};
  if (!histogram.feature.empty()) out["feature"] = histogram.feature;
  out["edges"] = histogram.edges;
  out["observed"] = histogram.observed;
  out["before"] = expected(histogram.before);
  out["after"] = expected(histogram.after);
  return out;
}

Json variation_json(const LearnedVariation& variation) {
  Json parts = Json::object();
  for (const auto& part : variation.parts) {
    auto& to = parts[part.name] = Json{{"strength", part.strength}};
    if (std::isfinite(part.significance)) to["significance"] = part.significance;
  }
  return {{"parameter", variation.parameter},
          {"component", variation.component},
          {"events", to_string(variation.events)},
          {"kept", variation.kept()},
          {"parts", parts}};
}

Json fit_json(const MeasurementSummary& summary) {
  const auto& fit = summary.fit;
  const auto& parameters = summary.model.parameters();
  Json entries = Json::object();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    Json entry = {{"estimate", fit.point[p]}, {"error", fit.error(p)}};
    if (!fit.statistical_error_known(p)) entry["error"] = nullptr;
    if (summary.intervals[p].ok)
      entry["interval"] = {summary.intervals[p].low, summary.intervals[p].high};
    if (fit.at_bound[p]) entry["at_bound"] = true;
    entries[parameters[p].name] = entry;
  }
  for (const auto& pull : summary.pulls) {
    auto& entry = entries[parameters[pull.parameter].name];
    entry["pull"] = pull.pull;
    entry["constraint"] = pull.constraint;
  }
  for (const auto& impact : summary.impacts)
    if (impact.ok) entries[parameters[impact.parameter].name]["impact"] = {impact.up, impact.down};
  Json matrix = Json::array();
  const auto correlation = correlations(fit);
  for (std::size_t i = 0; i < correlation.rows(); ++i)
    matrix.push_back(std::vector<double>(correlation.row(i).begin(), correlation.row(i).end()));
  Json out = {{"status", to_string(fit.status)},
              {"chi2_saturated", -2.0 * fit.log_likelihood},
              {"bins", summary.model.bins()},
              {"evaluations", fit.evaluations},
              {"parameters", entries},
              {"correlations", {{"parameters", parameters.names()}, {"matrix", matrix}}}};
  if (!fit.message.empty()) out["message"] = fit.message;
  return out;
}

}  // namespace

MeasurementSummary summarise(const StatisticalModel& model, const MeasurementData& data,
                             const MeasurementOptions& options) {
  check_at_least("summarise", "scan_points", options.scan_points, 2);
  model.interest();  // there must be one
  if (options.curve_points > 0)
    check_at_least("summarise", "curve_points", options.curve_points, 3);
  MeasurementSummary out{
      model, data, options, fit_model(model, data), {}, {}, {}, {}, {}, {}, {}, {}, {}, {},
      0,     {},   {}};
  Interval none;
  none.ok = false;
  out.intervals.assign(model.size(), none);
  if (!out.fit.ok()) {
    out.problems.push_back("the fit failed: " + out.fit.message);
    return out;
  }
  for (std::size_t p = 0; p < model.size(); ++p)
    if (out.fit.at_bound[p] || out.fit.error(p) > 0.0) {
      out.intervals[p] = profile_interval(model, data, out.fit, p);
      if (!out.intervals[p].ok)
        out.problems.push_back(fmt::format("the interval of {}: {}", model.parameters()[p].name,
                                           out.intervals[p].message));
    }
  out.pulls = pulls(model, data, out.fit);
  out.impacts = impacts(model, data, out.fit);
  attempt(out, [&] { add_error_parts(out); });
  out.histograms = channel_histograms(model, data, out.fit);
  if (options.curve_points > 0) add_profile(out);
  attempt(out, [&] { out.discovery = discovery(model, data); });
  attempt(out, [&] {
    UpperLimitOptions limit;
    limit.level = options.level;
    limit.statistic = options.statistic;
    out.limit = upper_limit(model, data, limit);
  });
  if (options.curve_points > 0) add_cl_s(out);
  add_toy_limit(out);
  return out;
}

void add_toy_limit(MeasurementSummary& summary) {
  const auto& options = summary.options;
  if (options.toys == 0 || !summary.limit) return;
  attempt(summary, [&] {
    const auto& model = summary.model;
    ToyOptions toys;
    toys.toys = options.toys;
    toys.seed = options.seed;
    toys.tasks = options.tasks;
    const auto values =
        scan_values(*summary.limit, options.scan_points, model.parameters()[model.interest()].high);
    if (options.toys_alone)
      simulate_limit_toys(model, summary.data, values, options.statistic, toys);
    else
      summary.toy_limit =
          toy_upper_limit(model, summary.data, values, options.level, options.statistic, toys);
  });
}

std::string summary_text(const MeasurementSummary& summary) {
  const auto& model = summary.model;
  const auto& interest = model.parameters()[model.interest()].name;
  std::string out = fmt::format("Fit of {} bins with {} parameters: {}\n", model.bins(),
                                model.size(), to_string(summary.fit.status));
  if (summary.fit.ok()) {
    out +=
        fmt::format("χ² of the saturated model: {}\n\n", number(-2.0 * summary.fit.log_likelihood));
    for (std::size_t p = 0; p < model.size(); ++p)
      if (p == model.interest())
        out += parameter_line(summary, p) + parts_lines(summary);
      else if (!model.constraint_of(p))
        out += parameter_line(summary, p);
    out += nuisance_table(summary);
  }
  if (summary.discovery && summary.discovery->impossible)
    out += fmt::format("\nDiscovery: the data are impossible with {} = 0\n", interest);
  else if (summary.discovery)
    out += fmt::format("\nDiscovery: {:.2f}σ (p = {:.3g}); expected for {} = 1: {:.2f}σ\n",
                       summary.discovery->significance, summary.discovery->p_value, interest,
                       summary.discovery->expected_significance);
  if (summary.limit) {
    out += fmt::format("\nUpper limit on {} at {:g} % by CL_s with {}\n", interest,
                       100.0 * summary.options.level, to_string(summary.options.statistic));
    out += limit_lines(*summary.limit, "asymptotic");
  }
  if (summary.toy_limit) {
    std::size_t failed = 0;
    for (const auto& test : summary.toy_limit->tests) failed += test.failed;
    out += limit_lines(*summary.toy_limit, fmt::format("{} toys", summary.options.toys));
    if (failed > 0) out += fmt::format("  {} fits of toys failed\n", failed);
  }
  for (const auto& problem : summary.problems) out += "\nProblem: " + problem + "\n";
  return out;
}

std::string summary_json(const MeasurementSummary& summary) {
  const auto& model = summary.model;
  Json out = {{"schema", "neyman.measurement/1"},
              {"interest", model.parameters()[model.interest()].name},
              {"fit", fit_json(summary)}};
  for (const auto& part : summary.error_parts) out["error_parts"][part.group] = part.error;
  if (summary.profile)
    out["profile"] = {{"values", summary.profile->values},
                      {"statistic", summary.profile->statistic},
                      {"held_statistic", summary.profile->held_statistic},
                      {"failed", summary.profile->failed}};
  if (summary.discovery)
    out["discovery"] = {{"q0", summary.discovery->statistic},
                        {"p_value", summary.discovery->p_value},
                        {"significance", summary.discovery->significance},
                        {"expected_significance", summary.discovery->expected_significance}};
  if (summary.discovery && summary.discovery->impossible) out["discovery"]["impossible"] = true;
  const auto limit = [&](const auto& found) -> Json {
    return {{"level", found.level},
            {"statistic", to_string(summary.options.statistic)},
            {"observed", found.observed},
            {"expected", band_json(found.expected)}};
  };
  if (summary.limit) out["limit"] = limit(*summary.limit);
  if (!summary.cl_s.empty()) out["cl_s"] = curve_json(summary.cl_s);
  if (summary.toy_limit) {
    out["toy_limit"] = limit(*summary.toy_limit);
    out["toy_limit"]["toys"] = summary.options.toys;
    out["toy_limit"]["seed"] = summary.options.seed;
    for (const auto& test : summary.toy_limit->tests)
      out["toy_limit"]["tests"].push_back({{"tested", test.tested},
                                           {"statistic", test.statistic},
                                           {"cl_sb", test.cl_sb.value},
                                           {"cl_b", test.cl_b.value},
                                           {"cl_s", test.cl_s.value},
                                           {"cl_s_error", test.cl_s.error},
                                           {"expected_cl_s", band_json(test.expected_cl_s)},
                                           {"failed", test.failed}});
  }
  for (const auto& histogram : summary.histograms)
    out["histograms"].push_back(histogram_json(histogram));
  for (const auto& variation : summary.variations)
    out["variations"].push_back(variation_json(variation));
  out["problems"] = summary.problems;
  return out.dump(2) + "\n";
}

}  // namespace neyman
