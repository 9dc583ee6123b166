#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/random.hpp"
#include "neyman/data/feature_columns.hpp"
#include "neyman/diagnostics/data_range.hpp"
#include "neyman/diagnostics/ratio_diagnostics.hpp"
#include "neyman/diagnostics/repetition.hpp"
#include "neyman/reports/symbol.hpp"
#include "neyman/simulators/command.hpp"
#include "neyman/simulators/files.hpp"
#include "pipeline/next_step.hpp"
#include "pipeline/stages.hpp"

namespace neyman {

namespace {

/// The checks of a ratio between two θ with events of both.
std::vector<Diagnostic> diagnose_between(const Study& study, const Ratio& ratio, const Samples& x0,
                                         const Samples& x1, const std::vector<double>& numerator,
                                         const std::vector<double>& denominator) {
  const auto which = pipeline::ratio_checks(study);
  if (which.empty() || numerator == denominator || x0.size() == 0 || x1.size() == 0) return {};
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
    out.push_back(diagnose_events(name, events, derive_seed(study.diagnostics.seed, name)));
    progress.advance();
  }
  for (auto& diagnostic : out)
    diagnostic.explanation += fmt::format(" Checked between {} and {}.",
                                          reports::point_words(study.parameters, numerator, 4),
                                          reports::point_words(study.parameters, denominator, 4));
  return out;
}

/// Events at a point; of files, those that were kept for this at the nearest θ that has some, which
/// `point` is then.
Samples draw_at(const Study& study, std::vector<double>& point, std::size_t count,
                std::uint64_t stream, Tasks* tasks) {
  if (const auto* files = dynamic_cast<const Files*>(study.simulator.get())) {
    auto kept = files->held_out_near(point);
    if (kept.size() > 0) point.assign(kept.theta.row(0).begin(), kept.theta.row(0).end());
    return kept;
  }
  return pipeline::make_samples(
      sample(*study.simulator, point, count, derive_seed(study.diagnostics.seed, "events", stream),
             "diagnostics", nullptr, tasks),
      pipeline::feature_names_of(*study.simulator));
}

}  // namespace

std::vector<Diagnostic> diagnose(const Study& study, const Ratio& ratio,
                                 const std::vector<double>& wanted_numerator,
                                 const std::vector<double>& wanted_denominator, Tasks* tasks) {
  if (study.simulator == nullptr)
    fail_argument("diagnose", "study.simulator", "null", "a distribution");
  if (pipeline::ratio_checks(study).empty()) return {};
  auto numerator = wanted_numerator, denominator = wanted_denominator;
  const auto x0 = draw_at(study, numerator, study.diagnostics.events, 0, tasks);
  const auto x1 = draw_at(study, denominator, study.diagnostics.events, 1, tasks);
  auto out = diagnose_between(study, ratio, x0, x1, numerator, denominator);
  judge(out);
  return out;
}

namespace pipeline {

namespace {

using Verdict = Diagnostic::Verdict;

/// Where the design of a ratio across θ has events; null of all others.
const DesignRegion* region_of(const Ratio& ratio) {
  const auto* across = dynamic_cast<const ParameterizedRatio*>(&ratio);
  return across == nullptr ? nullptr : &across->region();
}

/// Whether two points are so close, in errors of the fit, that their ratio says nothing.
bool close(const std::vector<double>& a, const std::vector<double>& b, const Fit& fit) {
  constexpr double part = 0.1;
  for (std::size_t p = 0; p < a.size(); ++p)
    if (std::abs(a[p] - b[p]) > part * fit.error(p)) return false;
  return true;
}

/// Whether the data determine any of the parameters: else nothing tells how near a point is.
bool any_determined(const Fit& fit) {
  for (std::size_t p = 0; p < fit.covariance.rows(); ++p)
    if (fit.covariance(p, p) > 0.0) return true;
  return false;
}

/// How far the points near the estimate are from it, in statistical errors of the data: some, and
/// as many as events of that number can tell.
double reach_of(std::size_t data_events, std::size_t events) {
  constexpr double some = 2.0, told = 15.0;
  return std::max(some, told * std::sqrt(static_cast<double>(data_events) /
                                         static_cast<double>(std::max<std::size_t>(events, 1))));
}

/// Points on both sides of the estimate. With several parameters, on two diagonals of the region,
/// so that each parameter is moved: its error times the lower triangle of the covariance's root.
std::vector<std::vector<double>> points_near(const Study& study, const Fit& fit, double reach,
                                             std::size_t most) {
  std::vector<std::size_t> free;
  for (std::size_t p = 0; p < fit.point.size(); ++p)
    if (fit.covariance(p, p) > 0.0) free.push_back(p);
  const std::size_t n = free.size();
  // Cholesky's root of the covariance of the parameters that are determined.
  Matrix root(n, n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = fit.covariance(free[i], free[j]);
      for (std::size_t k = 0; k < j; ++k) sum -= root(i, k) * root(j, k);
      if (i == j)
        root(i, i) = std::sqrt(std::max(sum, 1e-6 * fit.covariance(free[i], free[i])));
      else
        root(i, j) = sum / root(j, j);
    }
  std::vector<std::vector<double>> out;
  const auto scale = reach / std::sqrt(static_cast<double>(std::max<std::size_t>(n, 1)));
  for (std::size_t diagonal = 0; diagonal < std::min<std::size_t>(n, 2); ++diagonal)
    for (const double side : {1.0, -1.0}) {
      auto point = fit.point;
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j <= i; ++j) {
          const double sign = diagonal == 1 && j % 2 == 1 ? -1.0 : 1.0;
          point[free[i]] += side * sign * scale * root(i, j);
        }
      for (std::size_t p = 0; p < point.size(); ++p)
        point[p] = std::clamp(point[p], study.parameters[p].low, study.parameters[p].high);
      if (out.size() < most && !close(point, fit.point, fit)) out.push_back(std::move(point));
    }
  return out;
}

/// log of r / (share r + 1 − share): the ratio of a numerator to a denominator of which so many
/// events are the numerator's own. It is bounded, so that no event carries all the weight, and
/// where one of the two θ has no events, as beyond a sharp edge, the pool has some.
double pooled(double log_ratio, double share) {
  constexpr double most = 600.0;
  const double bounded = std::clamp(log_ratio, -most, most);
  return bounded - std::log(share * std::exp(bounded) + 1.0 - share);
}

/// The checks of a ratio between the estimate and a point near it. `here` and `there` have equally
/// many events.
std::vector<Diagnostic> diagnose_pooled(const Study& study, const Ratio& ratio,
                                        const std::vector<std::string>& which, MatrixView here,
                                        MatrixView there, const std::vector<double>& estimate,
                                        const std::vector<double>& point, std::uint64_t seed) {
  constexpr double share = 0.25;
  const std::size_t rows = here.rows();
  const auto lent = static_cast<std::size_t>(share * static_cast<double>(rows));
  const std::size_t kept = rows - lent;
  Matrix numerator(kept, there.cols()), pool(kept, there.cols());
  for (std::size_t i = 0; i < kept; ++i) {
    std::copy_n(there.row(i).begin(), there.cols(), numerator.row(i).begin());
    std::copy_n(here.row(i).begin(), here.cols(), pool.row(i).begin());
  }
  pool.append(there.rows(kept, rows));
  const double part = static_cast<double>(lent) / static_cast<double>(rows);
  const auto log_ratios = [&](const Ratio& of, MatrixView x) {
    auto values = of.log_ratios(x, point, estimate);
    std::vector<double> out;
    for (std::size_t i = 0; i < x.rows(); ++i) out.push_back(pooled(values[i], part));
    return out;
  };
  const auto r0 = log_ratios(ratio, numerator), r1 = log_ratios(ratio, pool);
  RatioEvents events;
  events.numerator = numerator;
  events.denominator = pool;
  events.numerator_log_ratios = r0;
  events.denominator_log_ratios = r1;
  events.feature_names = feature_names_of(*study.simulator);
  std::vector<Diagnostic> out;
  for (const auto& name : which)
    out.push_back(diagnose_events(name, events, derive_seed(seed, name)));
  return out;
}

/// What a check found at one of several points.
struct AtPoint {
  Diagnostic found;
  std::string words;
};

/// One check at several points: the worst of those that have power, corrected for their number
/// (Šidák).
Diagnostic worst_point(std::vector<AtPoint> all) {
  const auto p_value = [](const AtPoint& one) { return one.found.p_value.value_or(1.0); };
  std::size_t worst = 0, tested = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].found.verdict == Verdict::no_power) continue;
    if (tested++ == 0 || p_value(all[i]) < p_value(all[worst])) worst = i;
  }
  auto out = std::move(all[worst].found);
  out.explanation += all[worst].words;
  out.explanation +=
      all.size() > 1 ? fmt::format(", the worst of {} such points.", all.size()) : ".";
  if (tested > 1 && out.p_value) {
    out.numbers.emplace_back("p_value_of_point", *out.p_value);
    const double bounded = std::min(*out.p_value, 1.0 - 1e-16);
    out.p_value = -std::expm1(static_cast<double>(tested) * std::log1p(-bounded));
    out.verdict = verdict_of(*out.p_value);
  }
  return out;
}

/// Checks near the estimate; `here` are events at it.
void diagnose_near(const Study& study, const Ratio& ratio, MatrixView here, const CheckEvents& plan,
                   Tasks* tasks, Results& results) {
  const auto which = ratio_checks(study);
  const auto& fit = results.fit.fit;
  const double reach = reach_of(results.events, plan.each);
  const auto points = points_near(study, fit, reach, plan.points);
  std::vector<std::vector<AtPoint>> found(which.size());
  Progress progress("diagnose", points.size(), "points");
  for (std::size_t k = 0; k < points.size(); ++k) {
    if (const auto* region = region_of(ratio); region != nullptr && !region->holds(points[k]))
      continue;
    Matrix there;
    try {
      there = sample(*study.simulator, points[k], plan.each,
                     derive_seed(study.diagnostics.seed, "near", k), "diagnostics", nullptr, tasks);
    } catch (const ArgumentError&) {
      continue;  // where θ is not allowed, such as shares below zero
    }
    results.budget["diagnostics"] += plan.each;
    // Networks are trained for one side of each diagonal alone.
    auto here_asked = which;
    if (points.size() == 4 && (k == 1 || k == 2)) std::erase(here_asked, "reweighting");
    auto checks = diagnose_pooled(study, ratio, here_asked, here, there, fit.point, points[k],
                                  derive_seed(study.diagnostics.seed, "near-checks", k));
    const auto words =
        fmt::format(" Checked between the estimate and {}, {:.2g} statistical errors from it",
                    reports::point_words(study.parameters, points[k], 4), reach);
    for (std::size_t i = 0; i < checks.size(); ++i) {
      const auto of = std::find(which.begin(), which.end(), here_asked[i]) - which.begin();
      found[static_cast<std::size_t>(of)].push_back({std::move(checks[i]), words});
    }
    progress.advance();
  }
  for (auto& checks : found)
    if (!checks.empty()) results.diagnostics.push_back(worst_point(std::move(checks)));
}

/// The range of the data against that of simulated events.
void diagnose_range(const Study& study, MatrixView here, Results& results) {
  if (!asks_for(study, "range") || results.data.rows() == 0) return;
  Matrix stored;
  const auto add = [&](const Distribution& of) {
    if (const auto* events = of.stored(); events != nullptr && events->size() > 0) {
      if (stored.empty())
        stored = events->x;
      else
        stored.append(events->x);
    }
  };
  add(*study.simulator);
  for (const auto& part : study.simulator->parts()) add(*part);
  const MatrixView simulated = here.empty() ? MatrixView(stored) : here;
  if (simulated.rows() < 2) return;
  DataRangeConfig config;
  config.names = results.feature_names;
  results.diagnostics.push_back(diagnose_data_range(results.data, simulated, config));
}

}  // namespace

std::vector<std::string> ratio_checks(const Study& study) {
  const auto known = ratio_diagnostics();
  auto out = study.diagnostics.which;
  std::erase_if(out, [&](const auto& name) {
    return std::find(known.begin(), known.end(), name) == known.end();
  });
  return out;
}

bool asks_for(const Study& study, const char* check) {
  const auto& which = study.diagnostics.which;
  return std::find(which.begin(), which.end(), check) != which.end();
}

CheckEvents events_of_checks(const Study& study, std::size_t data_events) {
  // Of a budget, a third is for the estimate, whatever the other checks are.
  constexpr std::size_t many = 20000, points = 4, few_points = 2, least = 40;
  constexpr double share = 0.15;  // of the training
  CheckEvents out;
  const auto& config = study.diagnostics;
  if (!can_simulate(*study.simulator)) return out;
  const bool near = !ratio_checks(study).empty(), here = near || asks_for(study, "range");
  const bool recovery = asks_for(study, "recovery");
  const std::size_t sides = study.parameters.size() == 1 ? 2 : points;
  const std::size_t wanted = std::max(config.times * data_events, many);
  if (!study.simulator->trial() && !config.budget) {
    // As many as are cheap beside the training, but enough to see what the data could.
    out.recovery = std::min(wanted, std::max({study.training_samples, 4 * data_events, many}));
    out.wide = near;
    out.points = near ? sides : 0;
    out.each = config.events;
  } else {
    const std::size_t budget = config.budget.value_or(
        static_cast<std::size_t>(share * static_cast<double>(study.training_samples)));
    out.recovery = std::min(wanted, budget / 3);
    const std::size_t left = budget - (recovery ? out.recovery : 0);
    // One θ more for the estimate itself, and one far from it where there is enough for all.
    out.wide = near && (config.events_given || left / (sides + 2) >= config.events);
    out.points = near ? (out.wide && !study.simulator->trial() ? sides : few_points) : 0;
    out.each = config.events_given
                   ? config.events
                   : std::min(config.events, left / (out.points + 1 + (out.wide ? 1 : 0)));
    if (out.each < least) out.points = 0;
  }
  if (!recovery) out.recovery = 0;
  if (!here) out.each = 0;
  return out;
}

std::size_t CheckEvents::total() const { return recovery + each * (1 + points + (wide ? 1 : 0)); }

void diagnose_ratio(const Study& study, const Ratio& ratio, Tasks* tasks, Results& results,
                    std::optional<std::vector<double>> at) {
  const auto checks = ratio_checks(study);
  const auto& fit = results.fit.fit;
  if (checks.empty() && !asks_for(study, "range")) return;
  auto denominator = study.diagnostics.against;
  if (denominator.empty()) denominator = study.reference;
  const auto* region = region_of(ratio);
  if (denominator.empty()) {
    denominator = study.parameters.middle();
    // Where the design has no events there is nothing to check.
    if (region != nullptr && !region->holds(denominator)) {
      const auto nearest = region->nearest(denominator);
      denominator.assign(nearest.begin(), nearest.end());
    }
  }
  const bool simulates = can_simulate(*study.simulator);
  const std::size_t before = results.diagnostics.size();
  const auto add = [&](std::vector<Diagnostic> found, const char* suffix) {
    for (auto& one : found) {
      one.name += suffix;
      results.diagnostics.push_back(std::move(one));
    }
  };
  const auto check_pair = [&](const std::vector<double>& numerator, const char* suffix) {
    add(diagnose(study, ratio, numerator, denominator, tasks), suffix);
    if (simulates) results.budget["diagnostics"] += 2 * study.diagnostics.events;
  };
  try {
    if (at) {
      check_pair(*at, "");
    } else if (!fit.ok()) {
      return;
    } else if (!simulates) {
      diagnose_range(study, {}, results);
      if (study.simulator->stored() != nullptr) check_pair(fit.point, ":wide");
    } else {
      const auto plan = events_of_checks(study, results.events);
      auto estimate = fit.point;
      Samples here;
      if (plan.each > 1) {
        here = draw_at(study, estimate, plan.each, 0, tasks);
        results.budget["diagnostics"] += plan.each;
      }
      diagnose_range(study, here.x, results);
      // Near an estimate without an error, as at a bound beyond which the likelihood rises, there
      // is nothing to compare it with.
      const bool near = plan.points > 0 && any_determined(fit);
      if (near) diagnose_near(study, ratio, here.x, plan, tasks, results);
      if ((plan.wide || (plan.points > 0 && !near)) && !close(fit.point, denominator, fit)) {
        const auto far = draw_at(study, denominator, plan.each, 1, tasks);
        results.budget["diagnostics"] += plan.each;
        add(diagnose_between(study, ratio, here, far, estimate, denominator), ":wide");
      }
    }
  } catch (const SimulatorError& error) {
    results.warnings.push_back(
        fmt::format("the ratio was not checked: the simulator failed: {}", error.what()));
    return;
  }
  const bool looked =
      std::any_of(results.diagnostics.begin() + static_cast<std::ptrdiff_t>(before),
                  results.diagnostics.end(), [](const auto& one) { return one.name != "range"; });
  if (!looked && !checks.empty())
    results.warnings.push_back(
        simulates ? "the ratio was not checked: the checks have no events; raise diagnostics.budget"
                  : "the ratio was not checked: that needs a simulator, or files with a thousand "
                    "events at each of two θ, near the estimate and diagnostics.against");
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
    if (!at) pipeline::recheck_recovery(study, model, data.events, results);
    pipeline::diagnose_ratio(study, ratio, nullptr, results, at);
    pipeline::diagnose_references(study, ratio, data.events, nullptr, results);
    judge(results.diagnostics);
    results.next_steps.clear();  // those of the fit alone
    results.next_steps = pipeline::next_steps(results);
  });
  pipeline::note_tally(take_tally(*study.simulator), study.parameters, "checks", results);
  return results;
}

}  // namespace neyman
