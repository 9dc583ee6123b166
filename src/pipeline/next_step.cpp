#include "pipeline/next_step.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "neyman/core/error.hpp"
#include "neyman/core/random.hpp"

namespace neyman::pipeline {

namespace {

using Verdict = Diagnostic::Verdict;

/// Of the statistical error: adds 3 % to the error, but the estimate may be off by it.
constexpr double enough_simulation = 0.25;
/// Further than so many times the events nothing is extrapolated, and so many are the least to
/// propose where a check has failed: a bias then falls to a half.
constexpr double furthest_events = 20.0, least_events = 4.0;
/// A curve is flat where what is missing is certainly less than this part of what is known.
constexpr double little_missing = 0.03;

bool warned(const Diagnostic& check) {
  return check.verdict == Verdict::warn || check.verdict == Verdict::fail;
}

/// The checks that compare the learned ratio with simulated events.
bool of_ratio(const Diagnostic& check) {
  static constexpr std::array names = {"recovery", "reweighting", "normalisation", "reliability",
                                       "closure",  "reference",   "coverage",      "sub-ratios"};
  return std::any_of(names.begin(), names.end(),
                     [&](const char* name) { return check.name.starts_with(name); });
}

bool ratio_fails(const Results& results) {
  return std::any_of(results.diagnostics.begin(), results.diagnostics.end(),
                     [](const Diagnostic& check) { return warned(check) && of_ratio(check); });
}

/// Whether the checks that look at the result itself have seen it, and none found anything.
bool checks_pass(const std::vector<Diagnostic>& diagnostics) {
  bool recovered = false;
  for (const auto& check : diagnostics) {
    if (warned(check)) return false;
    recovered |= check.name == "recovery" && check.verdict == Verdict::pass;
  }
  return recovered;
}

/// The parameter that finite simulation adds most to, in statistical errors.
struct Simulation {
  std::size_t worst = 0;
  double part = 0.0;      ///< as reported: a bias that `recovery` found is in it
  double reported = 0.0;  ///< without that
};

Simulation simulation_of(const Results& results) {
  Simulation out;
  // Of ratios between components it is told with the estimate; ranges do not matter to them.
  if (results.ratio == "decomposed") return out;
  const auto& fit = results.fit.fit;
  const auto recovery = std::find_if(results.diagnostics.begin(), results.diagnostics.end(),
                                     [](const auto& check) { return check.name == "recovery"; });
  for (std::size_t p = 0; p < results.parameters.size(); ++p) {
    const double statistical = fit.statistical_error(p);
    const double part = statistical > 0.0 ? fit.simulation_error(p) / statistical : 0.0;
    if (part > out.part) {
      out.part = part;
      out.worst = p;
    }
    double reported = part;
    if (recovery != results.diagnostics.end() && warned(*recovery))
      reported = recovery->number("simulation:" + results.parameters[p].name).value_or(part);
    out.reported = std::max(out.reported, reported);
  }
  return out;
}

/// So many times the events of the run, to two digits upwards; empty where they were not counted.
std::string events_text(const Results& results, double times) {
  const auto known = results.budget.find("simulated");
  if (known == results.budget.end() || known->second == 0) return {};
  const double value = times * static_cast<double>(known->second);
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 1.0);
  return fmt::format("{:.0f}", unit * std::ceil(value / unit - 1e-9));
}

/// The region with a margin, to a round tenth of a standard error, of each parameter of which that
/// is much narrower than the range. Nothing where an end of it is not known.
NextStep narrower_ranges(const Results& results, const Evidence& evidence,
                         const Simulation& simulation) {
  constexpr double margin = 6.0, beyond = 3.0;  // standard errors from the estimate, and the ends
  constexpr double much = 0.7;
  const auto& parameters = results.parameters;
  const auto& fit = results.fit.fit;
  double kept = 1.0;  // of the ranges' volume
  std::size_t narrowed = 0;
  NextStep out{"Narrow the ranges", {}, {}, {}};
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const double error = fit.error(p);
    if (!(error > 0.0) || parameters[p].periodic) continue;  // a part of a period is none
    double low = fit.point[p] - margin * error, high = fit.point[p] + margin * error;
    bool known = true;
    for (const auto& interval : results.fit.intervals[p]) {
      known &= interval.ok;
      low = std::min(low, interval.low - beyond * error);
      high = std::max(high, interval.high + beyond * error);
    }
    if (!known) continue;
    const double unit = std::pow(10.0, std::floor(std::log10(error)));
    low = std::max(parameters[p].low, unit * std::floor(low / unit));
    high = std::min(parameters[p].high, unit * std::ceil(high / unit));
    if (high - low < much * (parameters[p].high - parameters[p].low)) {
      out.keys.push_back(fmt::format("parameters.{}.range", parameters[p].name));
      out.values.push_back(fmt::format("[{:.6g}, {:.6g}]", low, high));
      ++narrowed;
      kept *= (high - low) / (parameters[p].high - parameters[p].low);
    }
  }
  if (out.keys.empty()) return out;
  // What is left outside would have told of the density within, and a difference between θ that are
  // near to each other is harder to learn: in six runs of five problems with 3000 to 10 000 events,
  // and ranges of 0.08 to 0.26 of what they were, the error fell by a third in the mean.
  const double narrower = std::pow(kept, 1.0 / static_cast<double>(narrowed));
  const double left = std::pow(simulation.part / enough_simulation, 2) * std::pow(narrower, 0.25);
  out.reason = fmt::format(
      "the checks of the result pass, and the data leave {:.2g} of what the ranges hold: where "
      "events "
      "are dear, those there say more",
      kept);
  if (left > 1.0 && !evidence.files) {
    out.keys.push_back("training.samples");
    out.values.push_back(events_text(results, std::min(left, furthest_events)));
  }
  return out;
}

std::string names_of(const Results& results, const std::vector<std::size_t>& which) {
  std::vector<std::string> out;
  for (const std::size_t p : which) out.push_back(results.parameters[p].name);
  return fmt::format("{}", fmt::join(out, ", "));
}

/// What the held-out events say of more events.
enum class Trend { unknown, rises, flat };

Trend trend_of(const std::optional<LearningCurve>& curve) {
  if (!curve || curve->saturated()) return Trend::unknown;
  if (curve->rise().significant()) return Trend::rises;
  const auto missing = curve->missing();
  // What knows nothing yet may still begin to.
  const bool flat = curve->known().significant() &&
                    missing.value + 2.0 * missing.error < little_missing * curve->known().value;
  return flat ? Trend::flat : Trend::unknown;
}

std::string curve_words(const LearningCurve& curve) {
  return fmt::format(
      "from {} to {} events what the model knows of the parameters from a held-out "
      "event rises by {:.2g} ± {:.2g} to {:.3g} nats",
      curve.events()[0], curve.events()[2], curve.rise().value, curve.rise().error,
      curve.known().value);
}

/// More events, and how many.
NextStep more_events(const Results& results, const Evidence& evidence, const Simulation& simulation,
                     bool wrong, Trend trend) {
  NextStep out{"Simulate more events", {}, {}, {}};
  const bool large = simulation.part >= enough_simulation;
  double factor = wrong || !evidence.untold.empty() ? least_events : 1.0;
  if (large) factor = std::max(factor, std::pow(simulation.part / enough_simulation, 2));
  const double times = std::min(factor, furthest_events);
  std::vector<std::string> reasons;
  if (large)
    reasons.push_back(fmt::format(
        "what finite simulation adds falls like the root of their number, to about {:.2g} of the "
        "statistical error of {}",
        simulation.part / std::sqrt(times), results.parameters[simulation.worst].name));
  if (trend == Trend::rises) {
    const auto missing = evidence.curve->missing();
    reasons.push_back(curve_words(*evidence.curve));
    if (missing.significant())
      reasons.back() +=
          fmt::format(", and by extrapolation from {:.2g} below its limit now to {:.2g}",
                      missing.value, missing.value * std::pow(times, -LearningCurve::exponent));
  }
  if (!evidence.untold.empty())
    reasons.push_back(fmt::format("they show whether the features tell of {} at all",
                                  names_of(results, evidence.untold)));
  if (factor > furthest_events)
    reasons.push_back("it may take more still: from so few events nothing further is extrapolated");
  const auto total = events_text(results, times);
  if (evidence.files) {
    out.what =
        "Add events to the files" + (total.empty() ? total : fmt::format(", to {} in all", total));
  } else {
    out.keys = {"training.samples"};
    out.values = {total};
  }
  if (total.empty()) reasons.push_back(fmt::format("{:.2g} times as many as now", times));
  out.reason = fmt::format("{}", fmt::join(reasons, "; "));
  return out;
}

}  // namespace

void add_trials(const Samples& events, const LearningCurve::Train& model,
                std::span<const OtherModel> others, std::uint64_t seed, Evidence& evidence) {
  if (events.size() < LearningCurve::least_events) return;
  try {
    evidence.curve.emplace(events, model, derive_seed(seed, "learning curve"));
    for (const auto& other : others) {
      if (other.than && trend_of(evidence.curve) == Trend::rises) continue;
      const auto advantage = evidence.curve->advantage_of(other.train, other.than);
      if (advantage.significant()) evidence.better.push_back({other.step, advantage});
    }
  } catch (const ArgumentError&) {
    // An eighth is too few for the model: groups that are few, or folds that are many.
  }
  std::stable_sort(
      evidence.better.begin(), evidence.better.end(),
      [](const auto& a, const auto& b) { return a.advantage.value > b.advantage.value; });
}

std::vector<NextStep> next_steps(const Results& results, const Evidence& evidence) {
  const auto& fit = results.fit.fit;
  const auto& checks = results.diagnostics;
  const auto simulation = simulation_of(results);
  const bool wrong = ratio_fails(results);
  const bool large = simulation.part >= enough_simulation;
  const auto trend = trend_of(evidence.curve);
  std::vector<NextStep> out;

  for (const auto& check : checks)
    if (check.name == "range" && warned(check))
      out.push_back({"Compare the data with the simulation", {}, {}, check.note});
  out.insert(out.end(), results.next_steps.begin(), results.next_steps.end());

  const bool no_help = wrong && trend == Trend::flat;
  const auto flat_words = [&] {
    return fmt::format("more events would not help: {}", curve_words(*evidence.curve));
  };
  // One that follows a moving edge is better whatever the others know.
  const bool model_named = std::any_of(out.begin(), out.end(), [](const NextStep& step) {
    return std::find(step.keys.begin(), step.keys.end(), "classifier.kind") != step.keys.end();
  });
  if (!evidence.better.empty() && !model_named) {
    auto step = evidence.better.front().step;
    step.reason = fmt::format(
        "trained on the same {} events it knows {:.2g} ± {:.2g} nats more of the parameters from a "
        "held-out event{}",
        evidence.curve->events()[2], evidence.better.front().advantage.value,
        evidence.better.front().advantage.error, no_help ? "; " + flat_words() : std::string());
    out.push_back(std::move(step));
  } else if (no_help && !model_named) {
    out.push_back({"Give the parameters other features",
                   {},
                   {},
                   flat_words() + ", and no other model that was tried knows more"});
  }
  for (const auto& check : checks)
    if (check.name == "wilks" && warned(check) && !wrong)
      out.push_back({"Take thresholds from simulated datasets",
                     {"coverage.critical_datasets"},
                     {"500"},
                     "−2 log Λ does not follow χ² here, and no check finds fault with the ratio"});

  // What a model misses that another one knows, more events do not teach it.
  const bool other_model = wrong && (model_named || !evidence.better.empty());
  if (!evidence.untold.empty() && trend == Trend::flat)
    out.push_back({fmt::format("Find a feature that tells of {}, or leave it out",
                               names_of(results, evidence.untold)),
                   {},
                   {},
                   flat_words()});
  else if (!other_model && ((wrong && !no_help) || simulation.reported >= enough_simulation ||
                            !evidence.untold.empty()))
    out.push_back(more_events(results, evidence, simulation, wrong, trend));
  if (large && checks_pass(checks))
    if (auto step = narrower_ranges(results, evidence, simulation); !step.keys.empty())
      out.push_back(std::move(step));
  // More often than not it is a poor ratio that drives an estimate there.
  for (std::size_t p = 0;
       (wrong || large) && p < std::min(fit.at_bound.size(), results.parameters.size()); ++p)
    if (fit.at_bound[p])
      out.push_back({fmt::format("Widen the range of {}", results.parameters[p].name),
                     {fmt::format("parameters.{}.range", results.parameters[p].name)},
                     {""},
                     "the estimate is at an end of it: values beyond, where they are possible, may "
                     "fit better"});
  return out;
}

void note_next_steps(Results& results, Evidence evidence,
                     const std::function<void(Evidence&)>& try_more) {
  if (!results.fit.fit.ok()) return;
  const auto simulation = simulation_of(results);
  if (simulation.part >= enough_simulation)
    results.warnings.push_back(
        fmt::format("finite simulation adds {:.2f} of the statistical error to {}", simulation.part,
                    results.parameters[simulation.worst].name));
  if (results.quick) return;
  if (try_more &&
      (ratio_fails(results) || simulation.part >= enough_simulation || !evidence.untold.empty()))
    try_more(evidence);
  results.next_steps = next_steps(results, evidence);
}

}  // namespace neyman::pipeline
