#include "measurements/compiled_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"

namespace neyman::detail {

namespace {

constexpr const char* function = "StatisticalModel";
constexpr double infinite = std::numeric_limits<double>::infinity();
using Kind = Modifier::Kind;

[[noreturn]] void refuse(const std::string& name, const std::string& value,
                         const std::string& condition) {
  fail_argument(function, name, value, condition);
}

/// Where something stands: "channel 'signal region', sample 'background', normsys 'scale'".
std::string place(const BinnedChannel& channel) {
  return fmt::format("channel '{}'", channel.name);
}
std::string place(const BinnedChannel& channel, const BinnedSample& sample) {
  return fmt::format("{}, sample '{}'", place(channel), sample.name);
}
std::string place(const BinnedChannel& channel, const BinnedSample& sample,
                  const Modifier& modifier) {
  return fmt::format("{}, {} '{}'", place(channel, sample), to_string(modifier.kind),
                     modifier.name);
}

template <class Items>
void check_names(const Items& items, const std::string& what) {
  std::set<std::string> seen;
  for (const auto& item : items)
    if (!seen.insert(item.name).second)
      refuse(what, fmt::format("'{}' twice", item.name), "different names");
}

void check_bins(const std::string& what, const std::vector<double>& values, std::size_t bins) {
  check_same_size(function, what, values.size(), bins, "one a bin of the channel");
  check_finite(function, what, values);
}

double sum(const std::vector<double>& values) {
  double out = 0.0;
  for (const double value : values) out += value;
  return out;
}

/// A variation of a sample that has events must have some too: an empty one is a mistake of the
/// files it was made from.
void check_variation(const std::string& what, const std::vector<double>& variation,
                     const BinnedSample& sample, std::size_t bins) {
  check_bins(what, variation, bins);
  const auto empty = [](const auto& values) {
    return std::all_of(values.begin(), values.end(), [](double v) { return v == 0.0; });
  };
  if (empty(variation) && !empty(sample.yields))
    refuse(what, "without events",
           fmt::format("a variation of the {:g} of the sample", sum(sample.yields)));
}

void check_factors(const std::string& where, const Modifier& modifier) {
  check_same_size(function, where + ", low", modifier.low.size(), 1, "a factor");
  check_same_size(function, where + ", high", modifier.high.size(), 1, "a factor");
  check_positive(function, where + ", low", modifier.low[0]);
  check_positive(function, where + ", high", modifier.high[0]);
}

void check_modifier(const BinnedChannel& channel, const BinnedSample& sample,
                    const Modifier& modifier, std::size_t bins) {
  const auto where = place(channel, sample, modifier);
  switch (modifier.kind) {
    case Kind::norm_sys:
      check_factors(where, modifier);
      break;
    case Kind::histo_sys:
      check_variation(where + ", low", modifier.low, sample, bins);
      check_variation(where + ", high", modifier.high, sample, bins);
      break;
    case Kind::shape_sys:
    case Kind::stat_error:
      check_bins(where, modifier.uncertainty, bins);
      check_non_negative(function, where, modifier.uncertainty);
      break;
    case Kind::norm_factor:
    case Kind::shape_factor:
    case Kind::lumi:
      break;
  }
}

void check_channel(const BinnedChannel& channel) {
  const auto where = place(channel);
  if (channel.samples.empty()) refuse(where, "without samples", "made of at least one");
  check_names(channel.samples, where + ", samples");
  const std::size_t bins = channel.samples[0].yields.size();
  if (bins == 0) refuse(where, "without bins", "made of at least one");
  check_bins(where + ", observed", channel.observed, bins);
  check_non_negative(function, where + ", observed", channel.observed);
  for (const auto& sample : channel.samples) {
    check_bins(place(channel, sample), sample.yields, bins);
    for (std::size_t m = 0; m < sample.modifiers.size(); ++m) {
      const auto& modifier = sample.modifiers[m];
      check_modifier(channel, sample, modifier, bins);
      for (std::size_t other = 0; other < m; ++other)
        if (sample.modifiers[other].kind == modifier.kind &&
            sample.modifiers[other].name == modifier.name)
          refuse(place(channel, sample, modifier), "there twice", "there once");
    }
  }
}

/// The parameters of one name, before they have indices.
struct ParameterSet {
  enum class Family { factor, alpha, lumi, bins_free, bins_poisson, bins_gaussian };
  Family family = Family::factor;
  std::string where;    // of the first modifier
  std::string channel;  // for parameters of one channel's bins
  std::size_t size = 1;
  // Of the shapes that have it: where they are all known, and the value of the nominal events.
  std::optional<std::array<double, 2>> known = {};
  double nominal = 0.0;
  // stat_error: Σ yields and Σ uncertainty²; shape_sys: the yields and uncertainty².
  std::vector<double> yields, variances;
  std::vector<std::size_t> indices = {};  // no_parameter where a bin has none

  bool of_bins() const { return family >= Family::bins_free; }
  bool constrained() const { return family != Family::factor && family != Family::bins_free; }
};

ParameterSet::Family family_of(Kind kind) {
  switch (kind) {
    case Kind::norm_factor:
      return ParameterSet::Family::factor;
    case Kind::norm_sys:
    case Kind::histo_sys:
      return ParameterSet::Family::alpha;
    case Kind::lumi:
      return ParameterSet::Family::lumi;
    case Kind::shape_factor:
      return ParameterSet::Family::bins_free;
    case Kind::shape_sys:
      return ParameterSet::Family::bins_poisson;
    case Kind::stat_error:
      return ParameterSet::Family::bins_gaussian;
  }
  return ParameterSet::Family::factor;
}

std::string place(const UnbinnedChannel& channel) {
  return fmt::format("channel '{}'", channel.name);
}
std::string place(const UnbinnedChannel& channel, const UnbinnedComponent& component) {
  return fmt::format("{}, component '{}'", place(channel), component.name);
}

std::size_t functions_of(const UnbinnedChannel& channel) {
  std::size_t count = 0;
  for (const auto& component : channel.components)
    for (const auto& shape : component.shapes) count += shape->functions();
  return count;
}

void check_matrix(const std::string& what, const Matrix& matrix, std::size_t rows,
                  std::size_t events, const char* meaning) {
  check_same_size(function, what + ", rows", matrix.rows(), rows, meaning);
  check_same_size(function, what + ", columns", rows == 0 ? events : matrix.cols(), events,
                  "one an event");
  check_finite(function, what, matrix.values());
}

void check_events(const std::string& what, const UnbinnedChannel& channel,
                  const UnbinnedEvents& events) {
  check_matrix(what + ", ratios", events.ratios, channel.components.size(), events.size(),
               "one a component");
  check_matrix(what + ", functions", events.functions, functions_of(channel), events.size(),
               "one a function of a shape");
  if (events.weights.empty()) return;
  check_same_size(function, what + ", weights", events.weights.size(), events.size(),
                  "one an event");
  check_finite(function, what + ", weights", events.weights);
}

void check_component(const std::string& where, const UnbinnedComponent& component) {
  check_finite(function, where + ", yield", component.yield);
  for (const auto& modifier : component.modifiers) {
    const auto what = fmt::format("{}, {} '{}'", where, to_string(modifier.kind), modifier.name);
    if (modifier.kind == Kind::norm_sys)
      check_factors(what, modifier);
    else if (modifier.kind != Kind::norm_factor && modifier.kind != Kind::lumi)
      refuse(what, "of bins", "normfactor, normsys or lumi where there are no bins");
  }
  if (const auto& function_of = component.function) {
    check_same_size(function, where + ", nominal values of the yield", function_of->nominal.size(),
                    function_of->parameters.size(), "one a parameter");
    if (!function_of->value) refuse(where + ", yield", "without a function", "given");
    check_finite(function, where + ", yield at the nominal values",
                 function_of->value(function_of->nominal));
  }
  std::set<std::string> moving;
  for (const auto& shape : component.shapes) {
    if (shape == nullptr) refuse(where + ", shapes", "missing", "given");
    for (const auto& parameter : shape->parameters())
      if (!moving.insert(parameter.name).second)
        refuse(where + ", shapes", fmt::format("'{}' twice", parameter.name), "different names");
  }
  for (const auto& term : component.coefficient.terms) {
    check_finite(function, where + ", coefficient", term.value);
    for (const auto& power : term.powers)
      check_finite(function, where + ", power of " + power.first, power.second);
  }
}

void check_channel(const UnbinnedChannel& channel) {
  const auto where = place(channel);
  if (channel.components.empty()) refuse(where, "without components", "made of at least one");
  check_names(channel.components, where + ", components");
  for (const auto& component : channel.components)
    check_component(place(channel, component), component);
  if (channel.observed == nullptr) refuse(where + ", observed", "missing", "events");
  check_events(where + ", observed", channel, *channel.observed);
  if (channel.simulated == nullptr) {
    if (functions_of(channel) > 0)
      refuse(where + ", simulated", "missing", "events, which normalise the shapes");
    return;
  }
  check_events(where + ", simulated", channel, *channel.simulated);
  check_at_least(function, where + ", simulated events", channel.simulated->size(), 1);
  check_non_negative(function, where + ", simulated, weights", channel.simulated->weights);
}

class Compiler {
 public:
  Compiler(const Workspace& workspace, const std::vector<UnbinnedChannel>& unbinned,
           const MeasurementSettings& measurement)
      : workspace_(workspace), unbinned_(unbinned), measurement_(measurement) {}

  CompiledModel run() {
    check();
    collect();
    check_settings();
    make_parameters();
    for (const auto& channel : workspace_.channels) add_channel(channel);
    for (const auto& channel : unbinned_) add_channel(channel);
    return std::move(out_);
  }

 private:
  void check() const {
    if (workspace_.channels.empty() && unbinned_.empty())
      refuse("channels", "empty", "at least one");
    check_names(workspace_.channels, "channels");
    check_names(unbinned_, "unbinned channels");
    for (const auto& channel : workspace_.channels) check_channel(channel);
    for (const auto& channel : unbinned_) check_channel(channel);
    check_names(measurement_.parameters, "parameters of the measurement");
  }

  void collect() {
    for (const auto& channel : workspace_.channels)
      for (const auto& sample : channel.samples)
        for (const auto& modifier : sample.modifiers)
          collect(place(channel, sample, modifier), channel.name, sample.yields, modifier);
    for (const auto& channel : unbinned_)
      for (const auto& component : channel.components) collect(channel, component);
    if (sets_.empty()) refuse("modifiers", "none", "at least one: there is nothing to fit");
  }

  void collect(const UnbinnedChannel& channel, const UnbinnedComponent& component) {
    const auto where = place(channel, component);
    for (const auto& modifier : component.modifiers)
      collect(fmt::format("{}, {} '{}'", where, to_string(modifier.kind), modifier.name),
              channel.name, {}, modifier);
    if (const auto& yield = component.function)
      for (std::size_t p = 0; p < yield->parameters.size(); ++p)
        collect(fmt::format("{}, yield", where), channel.name, yield->parameters[p],
                yield->nominal[p]);
    for (const auto& shape : component.shapes)
      for (std::size_t p = 0; p < shape->parameters().size(); ++p)
        collect(fmt::format("{}, shape '{}'", where, shape->parameters()[p].name), channel.name,
                shape->parameters()[p], shape->nominal()[p]);
    for (const auto& term : component.coefficient.terms)
      for (const auto& power : term.powers)
        collect(fmt::format("{}, coefficient", where), channel.name, {},
                Modifier::norm_factor(power.first));
  }

  /// A parameter of a shape or of a yield.
  void collect(const std::string& where, const std::string& channel, const Parameter& parameter,
               double nominal) {
    collect(where, channel, {},
            Modifier{parameter.nuisance ? Kind::histo_sys : Kind::norm_factor, parameter.name});
    auto& set = sets_[parameter.name];
    if (!set.known) set.known = {-infinite, infinite}, set.nominal = nominal;
    if (set.nominal != nominal)
      refuse(where + ", nominal value", fmt::format("{:g}", nominal),
             fmt::format("{:g}, as of other shapes with this parameter", set.nominal));
    auto& [low, high] = *set.known;
    low = std::max(low, parameter.low);
    high = std::min(high, parameter.high);
    if (!(low < high))
      refuse(where, fmt::format("known in [{:g}, {:g}]", parameter.low, parameter.high),
             "known in a range that it shares with other shapes of this parameter");
  }

  void collect(const std::string& where, const std::string& channel,
               const std::vector<double>& yields, const Modifier& modifier) {
    const auto family = family_of(modifier.kind);
    const std::size_t bins = yields.size();
    auto [found, fresh] = sets_.try_emplace(modifier.name);
    auto& set = found->second;
    if (fresh) {
      order_.push_back(modifier.name);
      set.family = family;
      set.where = where;
      set.channel = channel;
      set.size = set.of_bins() ? bins : 1;
      set.yields.assign(set.size, 0.0);
      set.variances.assign(set.size, 0.0);
    } else {
      const auto shared = [&](const std::string& condition) {
        refuse(where, fmt::format("a parameter of {} too", set.where), condition);
      };
      if (set.family != family)
        shared("named differently: modifiers of these two kinds share no parameter");
      if (family == ParameterSet::Family::bins_poisson)
        shared("named differently: each shapesys has parameters of its own");
      if (family == ParameterSet::Family::bins_gaussian && set.channel != channel)
        shared("named differently: a staterror is of one channel");
      if (set.size != (set.of_bins() ? bins : 1))
        shared("named differently: the channels have not the same number of bins");
    }
    if (modifier.uncertainty.empty()) return;
    for (std::size_t b = 0; b < bins; ++b) {
      set.yields[b] += yields[b];
      set.variances[b] += modifier.uncertainty[b] * modifier.uncertainty[b];
    }
  }

  const ParameterSettings* settings_of(const std::string& name) const {
    for (const auto& settings : measurement_.parameters)
      if (settings.name == name) return &settings;
    return nullptr;
  }

  void check_settings() const {
    for (const auto& settings : measurement_.parameters) {
      const auto found = sets_.find(settings.name);
      if (found == sets_.end()) {
        if (settings.name == "lumi") continue;  // exporters write it whether it is used or not
        throw ArgumentError(fmt::format("{}: settings of the measurement: {}", function,
                                        unknown_name(settings.name, "a parameter", order_)));
      }
      const auto& set = found->second;
      const auto where = fmt::format("settings of '{}'", settings.name);
      const auto check_list = [&](const char* what, const auto& values, bool allowed,
                                  const char* reason) {
        if (values.empty()) return;
        if (!allowed) refuse(fmt::format("{}: {}", where, what), "given", reason);
        check_same_size(function, fmt::format("{}: {}", where, what), values.size(), set.size,
                        "one a parameter");
      };
      using Family = ParameterSet::Family;
      check_list("start", settings.start, true, "");
      check_list("range", settings.range, true, "");
      const bool general = set.family == Family::alpha && set.known;
      check_list("kappa", settings.kappa,
                 set.family == Family::factor || set.family == Family::bins_free ||
                     set.family == Family::lumi || general,
                 "left out: the parameter has a constraint of another kind");
      check_list("auxiliary", settings.auxiliary, set.constrained() || !settings.kappa.empty(),
                 "left out: the parameter has no constraint");
      check_list("sigma", settings.sigma,
                 set.family == Family::lumi || set.family == Family::bins_gaussian || general,
                 "left out: the parameter has no Gaussian constraint of its own width");
      check_list("tau", settings.tau, set.family == Family::bins_poisson || general,
                 "left out: the parameter has no Poisson constraint");
      if (general && settings.sigma.size() + settings.tau.size() + settings.kappa.size() > 1)
        refuse(where, "of several constraints", "of one: sigma, tau or kappa");
      check_finite(function, where + ": start", settings.start);
      check_finite(function, where + ": auxiliary", settings.auxiliary);
      for (const double sigma : settings.sigma) check_positive(function, where + ": sigma", sigma);
      for (const double tau : settings.tau) check_positive(function, where + ": tau", tau);
      if (settings.kappa.empty()) continue;
      if (!settings.sigma.empty())
        refuse(where + ": sigma", "given", "left out where kappa is given");
      for (const double kappa : settings.kappa)
        if (!(kappa > 1.0 && std::isfinite(kappa)))
          refuse(where + ": kappa", fmt::format("{:g}", kappa), "finite and above 1");
      for (const double median : settings.auxiliary)
        check_positive(function, where + ": auxiliary", median);
    }
    // Each of them: an analysis of several years has several luminosities.
    for (const auto& [name, set] : sets_) {
      if (set.family != ParameterSet::Family::lumi) continue;
      const auto* settings = settings_of(name);
      if (settings == nullptr || (settings->sigma.empty() && settings->kappa.empty()) ||
          settings->auxiliary.empty())
        refuse(fmt::format("settings of '{}'", name), "without sigma and auxiliary",
               "given: a luminosity has no uncertainty by default");
    }
  }

  void make_parameters() {
    std::vector<Parameter> parameters;
    if (!measurement_.interest.empty()) {
      const auto found = sets_.find(measurement_.interest);
      if (found == sets_.end())
        throw ArgumentError(
            fmt::format("{}: parameter of interest: {}", function,
                        unknown_name(measurement_.interest, "a parameter", order_)));
      if (found->second.of_bins())
        refuse("parameter of interest", fmt::format("'{}'", measurement_.interest),
               "one of whole samples, not of bins");
      add_set(measurement_.interest, parameters);
      parameters.back().nuisance = false;
      out_.interest = 0;
    }
    for (const bool of_bins : {false, true})
      for (const auto& name : order_)
        if (sets_[name].of_bins() == of_bins && sets_[name].indices.empty())
          add_set(name, parameters);
    out_.parameters = ParameterSpace(std::move(parameters));
    for (std::size_t p = 0; p < out_.start.size(); ++p)
      check_in_range(function, out_.parameters[p].name + " at its start", out_.start[p],
                     out_.parameters[p].low, out_.parameters[p].high);
  }

  void add_set(const std::string& name, std::vector<Parameter>& parameters) {
    using Family = ParameterSet::Family;
    auto& set = sets_[name];
    const ParameterSettings none;
    const auto* found = settings_of(name);
    const auto& settings = found == nullptr ? none : *found;
    const auto given = [](const std::vector<double>& values, std::size_t i, double otherwise) {
      return values.empty() ? otherwise : values[i];
    };
    for (std::size_t i = 0; i < set.size; ++i) {
      const double relative = set.yields[i] > 0.0 ? std::sqrt(set.variances[i]) / set.yields[i] : 0;
      const bool varies = set.family == Family::bins_poisson || set.family == Family::bins_gaussian;
      if (varies && !(relative > 0.0)) {
        set.indices.push_back(no_parameter);
        continue;
      }
      const std::size_t index = parameters.size();
      double start = 1.0, low = 0.0, high = 10.0;
      std::optional<Constraint> constraint;
      switch (set.family) {
        case Family::factor:
          if (set.known) start = set.nominal, low = (*set.known)[0], high = (*set.known)[1];
          break;
        case Family::bins_free:
          break;
        case Family::alpha: {
          const double sigma = given(settings.sigma, i, 1.0);
          start = set.nominal, low = start - 5.0 * sigma, high = start + 5.0 * sigma;
          if (set.known)
            low = std::max(low, (*set.known)[0]), high = std::min(high, (*set.known)[1]);
          constraint = Constraint::gaussian(index, given(settings.auxiliary, i, start), sigma);
          if (!settings.tau.empty())
            constraint = Constraint::poisson(
                index, given(settings.auxiliary, i, settings.tau[i] * start), settings.tau[i]);
          break;
        }
        case Family::lumi:
          start = settings.auxiliary[i], high = 10.0 * start;
          if (settings.kappa.empty())
            constraint = Constraint::gaussian(index, start, settings.sigma[i]);
          break;
        case Family::bins_poisson: {
          low = 1e-10;
          const double tau = given(settings.tau, i, 1.0 / (relative * relative));
          constraint = Constraint::poisson(index, given(settings.auxiliary, i, tau), tau);
          break;
        }
        case Family::bins_gaussian:
          low = 1e-10;
          constraint = Constraint::gaussian(index, given(settings.auxiliary, i, 1.0),
                                            given(settings.sigma, i, relative));
          break;
      }
      if (!settings.kappa.empty()) {
        const double median = given(settings.auxiliary, i, start);
        constraint = Constraint::log_normal(index, median, settings.kappa[i]);
        low = std::max(low, 1e-10);
        if (!set.known) start = median, high = 10.0 * start;
      }
      if (!settings.range.empty()) low = settings.range[i][0], high = settings.range[i][1];
      if (set.known && !(low >= (*set.known)[0] && high <= (*set.known)[1]))
        refuse(fmt::format("settings of '{}': range", name), fmt::format("[{:g}, {:g}]", low, high),
               fmt::format("inside of [{:g}, {:g}], where its shapes are known", (*set.known)[0],
                           (*set.known)[1]));
      parameters.push_back(
          {set.of_bins() ? fmt::format("{}[{}]", name, i) : name, low, high, std::nullopt, true});
      set.indices.push_back(index);
      out_.start.push_back(given(settings.start, i, start));
      out_.fixed.push_back(settings.fixed.value_or(false));
      out_.constraint_of.push_back(constraint ? out_.constraints.size() : no_parameter);
      if (!constraint) continue;
      out_.observed.auxiliary.push_back(constraint->observed());
      out_.constraints.push_back(*constraint);
    }
  }

  void add_channel(const BinnedChannel& channel) {
    CompiledChannel made;
    made.name = channel.name;
    made.first_bin = out_.bins;
    made.bins = channel.observed.size();
    std::vector<std::vector<std::size_t>> of_bin(made.bins);
    for (const auto& sample : channel.samples)
      made.samples.push_back(add_sample(sample, made, of_bin));
    made.bin_begin.assign(1, 0);
    for (const auto& parameters : of_bin) {
      made.bin_parameters.insert(made.bin_parameters.end(), parameters.begin(), parameters.end());
      made.bin_begin.push_back(made.bin_parameters.size());
    }
    // An entry counts inside its bin until all bins are known.
    for (auto& sample : made.samples)
      for (auto& term : sample.bin_factors)
        for (std::size_t b = 0; b < made.bins; ++b)
          if (term.parameters[b] != no_parameter) term.entries[b] += made.bin_begin[b];
    out_.bins += made.bins;
    out_.observed.counts.insert(out_.observed.counts.end(), channel.observed.begin(),
                                channel.observed.end());
    out_.channels.push_back(std::move(made));
  }

  void add_channel(const UnbinnedChannel& channel) {
    CompiledUnbinned made;
    made.name = channel.name;
    made.simulated = channel.simulated;
    std::size_t row = 0;
    for (std::size_t c = 0; c < channel.components.size(); ++c) {
      auto component = add_component(channel.components[c]);
      component.first_row = row;
      row += component.shape.functions();
      for (const std::size_t parameter : component.local)
        component.slots.push_back(position(made.shared, parameter));
      for (const std::size_t place : component.moving)
        component.columns.push_back(position(made.moving, component.local[place]));
      if (channel.simulated != nullptr) set_normalisation(channel, c, component);
      made.components.push_back(std::move(component));
    }
    made.functions = row;
    note_interference(channel);
    out_.observed.events.push_back(channel.observed);
    out_.unbinned.push_back(std::move(made));
  }

  void note_interference(const UnbinnedChannel& channel) {
    bool below = false, above = false;
    std::vector<std::size_t> parameters;
    for (const auto& component : channel.components)
      for (const auto& term : component.coefficient.terms) {
        below = below || term.value * component.yield < 0.0;
        above = above || term.value * component.yield > 0.0;
        for (const auto& power : term.powers) position(parameters, sets_[power.first].indices[0]);
      }
    if (!below || !above) return;
    for (const std::size_t parameter : parameters) position(out_.interfering, parameter);
  }

  CompiledComponent add_component(const UnbinnedComponent& component) {
    CompiledComponent made;
    made.name = component.name;
    made.yield = component.yield;
    const auto local = [&](const std::string& name) {
      return position(made.local, sets_[name].indices[0]);
    };
    for (const auto& modifier : component.modifiers) {
      CompiledComponent::Factor factor{local(modifier.name)};
      if (modifier.kind == Kind::norm_sys)
        factor.interpolation.emplace(modifier.low[0], modifier.high[0]);
      made.factors.push_back(factor);
    }
    for (const auto& term : component.coefficient.terms) {
      PolynomialTerm compiled{term.value, {}};
      for (const auto& [name, power] : term.powers)
        compiled.powers.emplace_back(local(name), power);
      made.polynomial.push_back(std::move(compiled));
    }
    made.function = component.function;
    if (made.function)
      for (const auto& parameter : made.function->parameters)
        made.arguments.push_back(local(parameter.name));
    std::vector<std::vector<std::size_t>> places;
    for (const auto& shape : component.shapes) {
      places.emplace_back();
      for (const auto& parameter : shape->parameters())
        places.back().push_back(position(made.moving, local(parameter.name)));
    }
    made.shape = ComponentShape(component.shapes, std::move(places), made.moving.size());
    return made;
  }

  void set_normalisation(const UnbinnedChannel& channel, std::size_t c,
                         CompiledComponent& out) const {
    const auto& events = *channel.simulated;
    ComponentWeights of(events, c);
    if (!(of.sum > 0.0))
      refuse(place(channel, channel.components[c]) + ", sum over the simulated events",
             fmt::format("{:g}", of.sum), "positive, for the component to be normalised");
    if (channel.normalise) out.normalisation = of.mean_ratio;
    if (out.moving.empty()) return;
    out.direct = std::make_shared<const DirectNormaliser>(out.shape, events.functions,
                                                          out.first_row, std::move(of.weights));
    tabulate(out);
  }

  /// Z over the ranges of its parameters, where that can be done.
  void tabulate(CompiledComponent& out) const {
    std::vector<NormaliserTable::Axis> axes;
    for (std::size_t m = 0; m < out.moving.size(); ++m) {
      const std::size_t p = out.local[out.moving[m]];
      const auto& parameter = out_.parameters[p];
      axes.push_back({parameter.low, parameter.high, out_.start[p], out.shape.breaks(m)});
    }
    out.table = std::make_shared<const TableOnDemand>(std::move(axes), out.direct);
  }

  static std::size_t position(std::vector<std::size_t>& list, std::size_t value) {
    const auto found = std::find(list.begin(), list.end(), value);
    if (found != list.end()) return static_cast<std::size_t>(found - list.begin());
    list.push_back(value);
    return list.size() - 1;
  }

  CompiledSample add_sample(const BinnedSample& sample, CompiledChannel& channel,
                            std::vector<std::vector<std::size_t>>& of_bin) {
    CompiledSample made;
    auto& names = out_.sample_names;
    const auto named = std::find(names.begin(), names.end(), sample.name);
    made.name = static_cast<std::size_t>(named - names.begin());
    if (named == names.end()) names.push_back(sample.name);
    made.yields = sample.yields;
    for (const auto& modifier : sample.modifiers) {
      const auto& set = sets_[modifier.name];
      if (set.of_bins()) {
        BinFactorTerm term{set.indices, std::vector<std::size_t>(channel.bins, 0)};
        for (std::size_t b = 0; b < channel.bins; ++b)
          if (term.parameters[b] != no_parameter)
            term.entries[b] = position(of_bin[b], term.parameters[b]);
        made.bin_factors.push_back(std::move(term));
        continue;
      }
      const std::size_t parameter = set.indices[0];
      const std::size_t slot = position(channel.shared, parameter);
      if (modifier.kind == Kind::histo_sys) {
        ShiftTerm term{parameter, slot, modifier.high, sample.yields};
        for (std::size_t b = 0; b < channel.bins; ++b) {
          term.up[b] -= sample.yields[b];
          term.down[b] -= modifier.low[b];
        }
        made.shifts.push_back(std::move(term));
      } else {
        FactorTerm term{parameter, slot};
        if (modifier.kind == Kind::norm_sys)
          term.interpolation.emplace(modifier.low[0], modifier.high[0]);
        made.factors.push_back(std::move(term));
      }
    }
    return made;
  }

  const Workspace& workspace_;
  const std::vector<UnbinnedChannel>& unbinned_;
  const MeasurementSettings& measurement_;
  std::map<std::string, ParameterSet> sets_;
  std::vector<std::string> order_;  // of their first modifiers
  CompiledModel out_;
};

}  // namespace

CompiledModel compile(const Workspace& workspace, const std::vector<UnbinnedChannel>& unbinned,
                      const MeasurementSettings& measurement) {
  return Compiler(workspace, unbinned, measurement).run();
}

}  // namespace neyman::detail
