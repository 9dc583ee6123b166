#include "neyman/pipeline/learned_measurement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/pipeline/model.hpp"

namespace neyman {

namespace {

ParameterSettings settings_of(const Model& model, std::size_t parameter) {
  const auto& of = model.parameters[parameter];
  ParameterSettings out;
  out.name = of.name;
  out.start = {model.measurement->nominal[parameter]};
  out.range = {{of.low, of.high}};
  for (const auto& constraint : model.constraints) {
    if (constraint.parameter() != parameter) continue;
    out.auxiliary = {constraint.observed()};
    switch (constraint.kind()) {
      case Constraint::Kind::gaussian:
        out.sigma = {constraint.width()};
        break;
      case Constraint::Kind::log_normal:
        out.kappa = {std::exp(constraint.width())};
        break;
      case Constraint::Kind::poisson:
        out.tau = {constraint.width()};
        break;
    }
  }
  return out;
}

/// A yield as a function of the parameters that it names; those with a constraint are nuisances.
YieldFunction yield_function(const Model& model, const Expression& yield) {
  const auto& nominal = model.measurement->nominal;
  const auto uses = yield.uses();
  std::vector<Parameter> named;
  YieldFunction out;
  for (const std::size_t p : uses) {
    named.push_back(model.parameters[p]);
    named.back().nuisance = std::any_of(model.constraints.begin(), model.constraints.end(),
                                        [&](const Constraint& c) { return c.parameter() == p; });
    out.nominal.push_back(nominal[p]);
  }
  out.parameters = ParameterSpace(std::move(named));
  out.value = [yield, uses, nominal](std::span<const double> values) {
    auto point = nominal;
    for (std::size_t k = 0; k < uses.size(); ++k) point[uses[k]] = values[k];
    return yield(point);
  };
  return out;
}

}  // namespace

void LearnedMeasurement::save(Archive& archive) const {
  channel.save(archive.child("channel"));
  std::vector<std::string> formulas;
  for (const auto& yield : yields) formulas.push_back(yield.text());
  archive.set("yields", formulas);
  archive.set("nominal", nominal);
  archive.set("interest", interest);
  archive.set("level", options.level);
  archive.set("statistic", to_string(options.statistic));
  archive.set("toys", options.toys);
  archive.set("scan_points", options.scan_points);
  archive.set("curve_points", options.curve_points);
  archive.set("seed", static_cast<std::int64_t>(options.seed));
  for (const auto& [group, names] : options.groups) archive.child("groups").set(group, names);
}

LearnedMeasurement LearnedMeasurement::load(const Archive& archive,
                                            const ParameterSpace& parameters) {
  LearnedMeasurement out{LearnedChannel(archive.child("channel")), {}, {}, 0, {}};
  const auto size = [&](const char* key) { return static_cast<std::size_t>(archive.integer(key)); };
  out.nominal = archive.numbers("nominal");
  out.interest = size("interest");
  out.options.level = archive.number("level");
  out.options.toys = size("toys");
  out.options.scan_points = size("scan_points");
  out.options.curve_points = size("curve_points");
  out.options.seed = static_cast<std::uint64_t>(archive.integer("seed"));
  try {
    for (const auto& formula : archive.get<std::vector<std::string>>("yields"))
      out.yields.emplace_back(formula, parameters);
    out.options.statistic = test_statistic_named(archive.text("statistic"));
  } catch (const ArgumentError& error) {
    throw FileError(error.what());
  }
  if (archive.has_child("groups"))
    for (const auto& [group, names] : archive.child("groups").values())
      out.options.groups.emplace_back(group, std::get<std::vector<std::string>>(names));
  if (out.yields.size() != out.channel.components().size() ||
      out.nominal.size() != parameters.size() || out.interest >= parameters.size())
    throw FileError("the parts of the measurement have sizes that do not agree");
  return out;
}

std::optional<Diagnostic> diagnose_sub_ratios(const std::vector<LearnedChannel::Cycle>& cycles,
                                              const std::vector<std::string>& components,
                                              double tolerance) {
  if (cycles.empty()) return std::nullopt;
  Diagnostic out;
  out.name = "sub-ratios";
  out.tolerance = tolerance;
  std::string worst;
  const LearnedChannel::Cycle* at = nullptr;
  for (const auto& cycle : cycles) {
    const auto [i, j, k] = cycle.components;
    const double error = cycle.rms / std::sqrt(3.0);
    // Components that are the same have no ratio to be wrong about.
    const double part = cycle.scale > 0.0 ? error / cycle.scale : 0.0;
    const auto name =
        fmt::format("{}, {}, {}", components.at(i), components.at(j), components.at(k));
    out.numbers.emplace_back(name, part);
    if (at != nullptr && part <= out.statistic) continue;
    at = &cycle;
    worst = name;
    out.statistic = part;
  }
  out.verdict = out.statistic > tolerance ? Diagnostic::Verdict::warn : Diagnostic::Verdict::pass;
  out.explanation = fmt::format(
      "The ratios of pairs of components, learned apart, must agree: r_ij r_jk r_ki = 1. {} {}, "
      "the logarithm of that product is about {:.3g} over the data that may be of any of them "
      "(rms), and log r itself about {:.3g}: a single log r has an error of {:.2g} %.",
      cycles.size() == 1 ? "Of"
                         : fmt::format("Of {} such cycles the worst is that of", cycles.size()),
      worst, at->rms, at->scale, 100.0 * out.statistic);
  if (out.verdict != Diagnostic::Verdict::pass)
    out.note =
        "The result is less precise than it could be, and may be biased: raise training.samples, "
        "or train a larger classifier for longer.";
  return out;
}

StatisticalModel measurement_model(const Model& model, MatrixView observed,
                                   std::span<const double> weights,
                                   std::optional<std::size_t> replica) {
  if (!model.measurement)
    fail_argument("measurement_model", "model", "one of ratios alone", "of a measurement");
  const auto& learned = *model.measurement;
  const auto names = learned.channel.components();
  std::vector<UnbinnedComponent> components;
  for (std::size_t c = 0; c < names.size(); ++c) {
    UnbinnedComponent component;
    component.name = names[c];
    const auto& yield = learned.yields[c];
    component.yield = yield(learned.nominal);
    if (!yield.constant()) {
      component.yield = 1.0;
      component.function = yield_function(model, yield);
    }
    components.push_back(std::move(component));
  }
  constexpr const char* name = "events";
  auto channel = replica ? learned.channel.channel(name, std::move(components), observed, *replica)
                         : learned.channel.channel(name, std::move(components), observed);
  if (!weights.empty()) {
    auto weighted = *channel.observed;
    weighted.weights.assign(weights.begin(), weights.end());
    channel.observed = std::make_shared<const UnbinnedEvents>(std::move(weighted));
  }
  Workspace workspace;
  MeasurementSettings settings{model.name, model.parameters[learned.interest].name, {}};
  for (std::size_t p = 0; p < model.parameters.size(); ++p)
    settings.parameters.push_back(settings_of(model, p));
  workspace.measurements = {std::move(settings)};
  return {workspace, {std::move(channel)}};
}

}  // namespace neyman
