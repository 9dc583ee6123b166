#include "neyman/measurements/learned_channel.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <set>

#include "measurements/held_out_evidence.hpp"
#include "measurements/mean_sign.hpp"
#include "measurements/varied_ratio.hpp"
#include "neyman/classifiers/mlp.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parameters_archive.hpp"
#include "neyman/core/random.hpp"
#include "neyman/distributed/tasks.hpp"
#include "neyman/ratios/decomposed_ratio.hpp"

namespace neyman {

namespace {

using detail::Comparison;
using detail::least_sign;
using detail::log_limit;
using detail::LogsOf;
using detail::magnitudes;
using detail::SignParts;
using detail::SignRatio;
using detail::VariedRatio;
using detail::WeightParts;

constexpr const char* learned = "LearnedChannel";
constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// Of one parameter: low and high, and what is left of their shapes.
struct Variation {
  std::array<VariedRatio, 2> sides = {};
  LearnedVariation evidence = {};

  void save(std::size_t number, Archive& to) const {
    sides[0].save(to.child(fmt::format("low{}", number)));
    sides[1].save(to.child(fmt::format("high{}", number)));
    std::vector<std::string> names;
    std::vector<double> significances, strengths, held_out;
    for (const auto& part : evidence.parts) {
      names.push_back(part.name);
      significances.push_back(part.significance);
      strengths.push_back(part.strength);
      held_out.push_back(part.held_out);
    }
    to.set(fmt::format("events{}", number), to_string(evidence.events));
    to.set(fmt::format("parts{}", number), names);
    to.set(fmt::format("significances{}", number), significances);
    to.set(fmt::format("strengths{}", number), strengths);
    to.set(fmt::format("held_out{}", number), held_out);
  }
  static Variation load(std::size_t number, const Archive& from) {
    Variation out;
    out.sides = {VariedRatio::load(from.child(fmt::format("low{}", number))),
                 VariedRatio::load(from.child(fmt::format("high{}", number)))};
    const auto key = [&](const char* name) { return fmt::format("{}{}", name, number); };
    if (!from.has(key("parts"))) {
      // An older model: all that was learned is kept, and nobody asked how significant it is.
      out.evidence.parts = {{"low", unknown, 1.0, 1.0}, {"high", unknown, 1.0, 1.0}};
      return out;
    }
    for (const auto events : {LearnedVariation::Events::nominal, LearnedVariation::Events::weighted,
                              LearnedVariation::Events::own})
      if (from.text(key("events")) == to_string(events)) out.evidence.events = events;
    const auto& names = from.get<std::vector<std::string>>(key("parts"));
    const auto& significances = from.numbers(key("significances"));
    const auto& strengths = from.numbers(key("strengths"));
    const auto& held_out = from.numbers(key("held_out"));
    if (significances.size() != names.size() || strengths.size() != names.size() ||
        held_out.size() != names.size())
      throw FileError("the parts of a variation have sizes that do not agree");
    for (std::size_t p = 0; p < names.size(); ++p)
      out.evidence.parts.push_back({names[p], significances[p], strengths[p], held_out[p]});
    return out;
  }

  /// What the functions of both sides become, of what was learned.
  void weaken(std::span<double> low, std::span<double> high, bool held_out) const {
    for (std::size_t i = 0; i < low.size(); ++i) {
      const double from[] = {low[i], high[i]};
      low[i] = high[i] = 0.0;
      for (const auto& part : evidence.parts) {
        const auto rows =
            detail::part_of_sides(part.name, held_out ? part.held_out : part.strength);
        low[i] += rows[0] * from[0] + rows[1] * from[1];
        high[i] += rows[2] * from[0] + rows[3] * from[1];
      }
    }
  }
};

struct LearnedComponent {
  std::string name;
  std::optional<SignRatio> sign = {};
  std::vector<Variation> variations = {};
  std::vector<std::shared_ptr<const SeparableRatio>> members = {};
  std::vector<double> nominal = {};
  std::vector<ShapePtr> shapes = {};

  /// Of the nominal events.
  double mean_sign() const { return sign ? sign->mean : 1.0; }
  void set_shapes() {
    for (const auto& varied : variations) shapes.push_back(variation(varied.evidence.parameter));
    if (!members.empty()) shapes.push_back(separable_shape(*members[0], nominal));
  }
};

/// Scores of events that no classifier has learned from, so that replicas need not score again.
class Scored {
 public:
  explicit Scored(MatrixView x) : x_(x) {}

  MatrixView x() const { return x_; }
  LogRatios logs(const CrossFit& fit, std::optional<std::size_t> replica) {
    const auto [found, fresh] = of_fit_.try_emplace(&fit);
    if (fresh) found->second = fit.scores(x_);
    return replica ? fit.log_ratios(found->second, *replica) : fit.log_ratios(found->second);
  }
  Matrix ratios(const DecomposedRatio& pairs, std::optional<std::size_t> replica) {
    if (!replica) return pairs.component_ratios(x_);
    if (!of_pairs_) of_pairs_ = pairs.score(x_);
    return pairs.replica_ratios(*of_pairs_, *replica);
  }

 private:
  MatrixView x_;
  std::map<const CrossFit*, Matrix> of_fit_;
  std::optional<MixtureRatio::Scores> of_pairs_;
};

}  // namespace

struct LearnedChannel::State {
  std::vector<std::string> features;
  std::vector<LearnedComponent> components;
  std::optional<DecomposedRatio> pairs;
  std::vector<std::optional<CrossFit>> to_reference;  // none: it is the reference itself
  std::size_t replicas = 0;
  Matrix pool;  // features of the simulated events
  std::shared_ptr<const UnbinnedEvents> simulated;
  // Of the pool by the mean over all folds, once a replica is asked for.
  mutable std::mutex pool_mutex;
  mutable std::optional<Scored> pool_scores;
  mutable UnbinnedEvents pool_mean;

  std::size_t functions() const {
    std::size_t count = 0;
    for (const auto& component : components)
      for (const auto& shape : component.shapes) count += shape->functions();
    return count;
  }

  Matrix nominal_ratios(Scored& events, std::optional<std::size_t> replica) const {
    if (pairs) return events.ratios(*pairs, replica);
    Matrix out(events.x().rows(), components.size());
    for (std::size_t c = 0; c < components.size(); ++c) {
      LogRatios logs(out.rows());
      if (to_reference[c]) logs = events.logs(*to_reference[c], replica);
      for (std::size_t i = 0; i < out.rows(); ++i)
        out(i, c) = std::exp(std::clamp(logs[i], -log_limit, log_limit));
    }
    return out;
  }

  /// Events from the ratios of their magnitudes. `logs`: log r of each event by a classifier of a
  /// component's nominal events or their variations, held out for those of component `own`.
  template <class LogsOfComponent>
  UnbinnedEvents assemble(Scored& events, const Matrix& magnitudes,
                          std::optional<std::size_t> replica, LogsOfComponent&& logs,
                          std::optional<std::size_t> own = {}) const {
    const MatrixView x = events.x();
    UnbinnedEvents out;
    out.ratios = Matrix(components.size(), x.rows());
    out.functions = Matrix(functions(), x.rows());
    std::size_t row = 0;
    for (std::size_t c = 0; c < components.size(); ++c) {
      const auto& component = components[c];
      const LogsOf own_logs = [&](const CrossFit& fit) { return logs(fit, c); };
      std::vector<double> sign(x.rows(), 1.0);
      if (component.sign) sign = component.sign->values(own_logs(component.sign->fit));
      for (std::size_t i = 0; i < x.rows(); ++i) out.ratios(c, i) = magnitudes(i, c) * sign[i];
      for (const auto& variation : component.variations) {
        for (const auto& side : variation.sides) {
          const auto varied = side.log_ratios(own_logs, sign, component.mean_sign());
          std::copy(varied.begin(), varied.end(), out.functions.row(row++).begin());
        }
        variation.weaken(out.functions.row(row - 2), out.functions.row(row - 1), c == own);
      }
      for (std::size_t m = 0; m < component.members.size(); ++m) {
        const auto& member = *component.members[m];
        const auto learned_functions =
            replica ? member.functions(x, *replica) : member.functions(x);
        const double share = 1.0 / static_cast<double>(component.members.size());
        for (std::size_t k = 0; k < learned_functions.rows(); ++k)
          for (std::size_t i = 0; i < x.rows(); ++i)
            out.functions(row + k, i) += share * learned_functions(k, i);
        if (m + 1 == component.members.size()) row += learned_functions.rows();
      }
    }
    return out;
  }

  UnbinnedEvents describe(Scored& events, std::optional<std::size_t> replica) const {
    return assemble(events, nominal_ratios(events, replica), replica,
                    [&](const CrossFit& fit, std::size_t) { return events.logs(fit, replica); });
  }

  /// Simulated events as a replica has them: moved by as much as it moves the mean over the folds,
  /// so that they stay free of what the networks have learned by heart.
  std::shared_ptr<const UnbinnedEvents> replicated(std::size_t replica) const {
    const std::lock_guard lock(pool_mutex);
    if (!pool_scores) {
      pool_scores.emplace(pool);
      pool_mean = describe(*pool_scores, std::nullopt);
    }
    const auto& before = pool_mean;
    const auto after = describe(*pool_scores, replica);
    auto out = std::make_shared<UnbinnedEvents>(*simulated);
    for (std::size_t k = 0; k < out->ratios.values().size(); ++k) {
      const double base = before.ratios.values()[k];
      if (base != 0.0) out->ratios.values()[k] *= after.ratios.values()[k] / base;
    }
    for (std::size_t k = 0; k < out->functions.values().size(); ++k)
      out->functions.values()[k] += after.functions.values()[k] - before.functions.values()[k];
    return out;
  }
};

namespace {

std::string place(const ComponentSamples& component, const std::string& what) {
  return fmt::format("component '{}', {}", component.name, what);
}

void check_sample(const std::string& where, const Samples& samples,
                  const std::vector<std::string>& features, std::size_t folds) {
  if (samples.size() == 0) fail_argument(learned, where, "without events", "simulated events");
  samples.check(learned);
  if (samples.feature_names != features)
    fail_argument(learned, where + ", features",
                  fmt::format("{}", fmt::join(samples.feature_names, ", ")),
                  fmt::format("{}, as of the first component", fmt::join(features, ", ")));
  check_at_least(learned, where + ", events", samples.size(), folds);
  if (!(samples.total_weight() > 0.0))
    fail_argument(learned, where + ", sum of weights", fmt::format("{:g}", samples.total_weight()),
                  "positive");
}

void check_across(const ComponentSamples& component, const std::vector<std::string>& features,
                  std::size_t folds) {
  const auto& across = *component.across;
  const auto where = place(component, "events across parameters");
  check_sample(where, across.events, features, folds);
  const auto names = across.design.parameters().names();
  if (across.events.parameter_names != names || across.events.theta.rows() != across.events.size())
    fail_argument(learned, where + ", parameters",
                  fmt::format("{}", fmt::join(across.events.parameter_names, ", ")),
                  fmt::format("{}, as of the design", fmt::join(names, ", ")));
  check_at_least(learned, where + ", events", across.events.size(), 40);
  across.design.parameters().check_inside(place(component, "nominal parameters"), across.nominal);
}

void check_component(const ComponentSamples& component, const std::vector<std::string>& features,
                     const LearnedChannel::Config& config, std::size_t folds) {
  check_positive(learned, place(component, "share"), component.share);
  check_sample(place(component, "nominal events"), component.nominal, features, folds);
  std::set<std::string> moving;
  const auto once = [&](const std::string& parameter) {
    if (!moving.insert(parameter).second)
      fail_argument(learned, place(component, "shapes"), fmt::format("'{}' twice", parameter),
                    "a parameter each");
  };
  for (const auto& variation : component.variations) {
    if (variation.parameter.empty())
      fail_argument(learned, place(component, "parameter of a variation"), "empty", "a name");
    once(variation.parameter);
    check_sample(place(component, fmt::format("'{}' low", variation.parameter)), variation.low,
                 features, folds);
    check_sample(place(component, fmt::format("'{}' high", variation.parameter)), variation.high,
                 features, folds);
  }
  if (!component.across) return;
  for (const auto& name : component.across->design.parameters().names()) once(name);
  check_across(component, features, std::max<std::size_t>(config.shape.folds, 2));
}

void check_components(const std::vector<ComponentSamples>& components,
                      const LearnedChannel::Config& config, std::size_t folds) {
  if (components.empty()) fail_argument(learned, "components", "empty", "at least one");
  const auto& features = components[0].nominal.feature_names;
  std::vector<std::string> names;
  for (const auto& component : components) {
    if (std::count(names.begin(), names.end(), component.name) > 0)
      fail_argument(learned, "components", fmt::format("'{}' twice", component.name),
                    "different names");
    names.push_back(component.name);
    check_component(component, features, config, folds);
  }
  check_at_least(learned, "config.members", config.members, 1);
  check_at_least(learned, "config.simulated", config.simulated, 1);
  if (config.reference_sample) {
    if (!config.reference.empty())
      fail_argument(learned, "config.reference", fmt::format("'{}'", config.reference),
                    "empty where there is a sample of the reference");
    check_sample("the sample of the reference", *config.reference_sample, features, folds);
  } else if (!config.reference.empty() &&
             std::count(names.begin(), names.end(), config.reference) == 0) {
    throw ArgumentError(fmt::format("{}: config.reference: {}", learned,
                                    unknown_name(config.reference, "a component", names)));
  }
}

/// Every so many of n events, `most` of them at most.
std::vector<std::size_t> evenly(std::size_t n, std::size_t most) {
  std::vector<std::size_t> out(std::min(n, most));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::size_t>(static_cast<double>(i) * static_cast<double>(n) /
                                      static_cast<double>(out.size()));
  return out;
}

/// Learns what a State holds; keeps the samples that this needs.
class Learner {
 public:
  Learner(const std::vector<ComponentSamples>& components, const LearnedChannel::Config& config,
          Progress* progress, Tasks* tasks)
      : samples_(components),
        config_(config),
        ratios_(config.ratios),
        tasks_(tasks),
        progress_(progress, Progress::fine) {
    if (ratios_.classifier == nullptr) ratios_.classifier = make_classifier("mlp");
    if (ratios_.calibrator == nullptr) ratios_.calibrator = make_calibrator("smooth");
    ratios_.seed = derive_seed(config.seed, "ratios");
    ratios_.normalise = false;  // the model does it, by the simulated events
    check_components(components, config, ratios_.folds);
    candidates_ = {ratios_};
    if (ratios_.classifier->kind() == "logistic") return;
    // A weak shape drowns in the noise of a network that is large enough for strong ones.
    Mlp::Config small;
    small.hidden = {8};
    small.epochs = 5;
    candidates_.push_back(ratios_);
    candidates_.back().classifier = std::make_shared<const Mlp>(small);
  }

  template <class State>
  void run(State& out) {
    out.features = samples_[0].nominal.feature_names;
    out.replicas = ratios_.replicas;
    for (const auto& component : samples_) {
      out.components.push_back({component.name});
      streams_.push_back(stream_);
      nominal_.emplace_back(magnitudes(component.nominal), ratios_, stream_++);
      signs_.emplace_back(component.nominal, nominal_.back(), ratios_.folds);
    }
    across_ratios_.resize(samples_.size());
    across_.resize(samples_.size());
    across_signs_.resize(samples_.size());
    for (std::size_t c = 0; c < samples_.size(); ++c) {
      if (!samples_[c].across || !detail::has_negative(samples_[c].across->events)) continue;
      const auto events = detail::with_parameters(samples_[c].across->events);
      across_[c].emplace(magnitudes(events), ratios_, stream_++);
      across_signs_[c].emplace(events, *across_[c], ratios_.folds);
    }
    if (config_.reference_sample)
      reference_.emplace(magnitudes(*config_.reference_sample), ratios_, stream_++);
    learn_ratios(out);
    progress_.reach(0.4);
    learn_others(out);
    progress_.reach(0.7);
    learn_across(out);
    for (auto& component : out.components) component.set_shapes();
    progress_.reach(0.95);
    if (out.pairs)
      keep_mixture(out);
    else
      keep_reference(out);
  }

 private:
  bool with_pairs() const { return config_.reference.empty() && !config_.reference_sample; }

  template <class State>
  void learn_ratios(State& out) {
    if (!with_pairs()) return;
    double total = 0.0;
    for (const auto& component : samples_) total += component.share;
    // As texts of all digits, from which a saved ratio is made again; the last is what they leave.
    std::vector<Expression> weights;
    for (std::size_t c = 0; c + 1 < samples_.size(); ++c)
      weights.emplace_back(fmt::format("{:.17g}", samples_[c].share / total), ParameterSpace());
    out.pairs.emplace(nominal_, MixtureWeights(std::move(weights), samples_.size()),
                      std::vector<double>{}, ratios_, tasks_);
  }

  /// Trains classifiers of many pairs of samples at once.
  struct Plan {
    const RatioConfig& config;
    std::uint64_t first;  // number of a pair
    std::vector<CrossFit::Pair> pairs = {};
    std::vector<CrossFit*> places = {};

    void add(const FoldedSample& numerator, const FoldedSample& denominator, CrossFit& to) {
      pairs.push_back({numerator, denominator, first + pairs.size()});
      places.push_back(&to);
    }
    void add(const SignParts& sample, std::optional<SignRatio>& to) {
      if (!sample.known()) return;
      to = sample.untrained();
      add(*sample.positive, *sample.negative, to->fit);
    }
    void train(Tasks* tasks) {
      auto trained = CrossFit::train(pairs, config, nullptr, tasks);
      CrossFit::calibrate(trained, pairs, config, nullptr, tasks);
      for (std::size_t p = 0; p < places.size(); ++p) *places[p] = std::move(trained[p]);
    }
  };

  /// Ratios to one reference, signs and variations: all of them at once.
  template <class State>
  void learn_others(State& out) {
    // Numbers beyond those of the pairs of components.
    Plan others{ratios_, 1000000};
    if (!with_pairs()) {
      out.to_reference.resize(samples_.size());
      for (std::size_t c = 0; c < samples_.size(); ++c)
        if (samples_[c].name != config_.reference)
          others.add(nominal_[c], reference(), out.to_reference[c].emplace());
    }
    for (std::size_t c = 0; c < samples_.size(); ++c) {
      auto& component = out.components[c];
      others.add(signs_[c], component.sign);
      if (across_signs_[c]) others.add(*across_signs_[c], across_ratios_[c]);
      component.variations.resize(samples_[c].variations.size());
      for (std::size_t v = 0; v < component.variations.size(); ++v) {
        component.variations[v].evidence.component = component.name;
        component.variations[v].evidence.parameter = samples_[c].variations[v].parameter;
        varied_.push_back(std::make_unique<Varied>(*this, c, v));
      }
    }
    others.train(tasks_);
    for (std::size_t k = 0; k < candidates_.size(); ++k) {
      Plan plan{candidates_[k], 2000000 + 1000000 * k};
      for (auto& varied : varied_)
        for (const std::size_t side : {0, 1}) {
          auto& to = varied->candidates.at(k)[side];
          for (const auto& part : varied->sides[side].classes) {
            auto& ratio = (to.positive ? to.negative : to.positive).emplace();
            ratio.up = part.up;
            ratio.down = part.down;
            ratio.mean = part.mean;
            if (part.numerator != nullptr)
              plan.add(*part.numerator, *part.denominator, ratio.fit.emplace());
          }
        }
      plan.train(tasks_);
    }
    for (auto& varied : varied_) choose(out.components[varied->c], *varied);
    varied_.clear();
  }

  using Sides = std::array<VariedRatio, 2>;

  /// The events of a variation beside the nominal ones.
  struct Varied {
    /// Events of one sign, or all.
    struct Class {
      const FoldedSample *numerator = nullptr, *denominator = nullptr;  // none: the same everywhere
      double up = 1.0, down = 0.0, mean = 1.0;                          // of the ClassRatio
    };
    struct Side {
      const Samples* samples = nullptr;
      std::size_t rows = 0;    // the same number: the same events row by row
      bool nominal = false;    // features and weights are those of the nominal events
      bool same_rows = false;  // features are, weights are others
      std::vector<Class> classes = {};
      // What these point to.
      std::optional<FoldedSample> all = {};
      std::optional<SignParts> signs = {};
      std::vector<WeightParts> weighted = {};
    };

    Varied(Learner& learner, std::size_t component, std::size_t number)
        : c(component), v(number), candidates(learner.candidates_.size()) {
      for (const std::size_t side : {0, 1}) {
        sides[side].samples = side == 0 ? &learner.samples_[c].variations[v].low
                                        : &learner.samples_[c].variations[v].high;
        take(learner, side);
      }
    }

    void take(Learner& learner, std::size_t which) {
      auto& side = sides[which];
      const auto& nominal = learner.samples_[c].nominal;
      const auto& signs = learner.signs_[c];
      if (detail::same_rows(*side.samples, nominal)) {
        side.nominal = detail::same_weights(*side.samples, nominal);
        if (side.nominal || take_weights(learner, side)) return;
      }
      // The same folds and counts for the same rows: of shifted events, none is learned from where
      // its counterpart is held out.
      const auto as = [&](const Samples& other) {
        return side.samples->size() == other.size() && side.samples->groups == other.groups;
      };
      if (as(nominal))
        stream[which] = learner.streams_[c];
      else if (which == 1 && sides[0].all && as(*sides[0].samples))
        stream[which] = stream[0];
      else
        stream[which] = learner.stream_++;
      const auto matched = [&](const Samples& other) {
        return detail::same_rows(*side.samples, other) ||
               detail::matched_rows(*side.samples, other);
      };
      side.rows = matched(nominal)                           ? 0
                  : which == 1 && matched(*sides[0].samples) ? sides[0].rows
                                                             : which + 1;
      side.all.emplace(magnitudes(*side.samples), learner.ratios_, stream[which]);
      side.signs.emplace(*side.samples, *side.all, learner.ratios_.folds);
      if (!signs.known() || !side.signs->known()) {
        side.classes = {{&*side.all, &learner.nominal_[c]}};
        return;
      }
      const double scale = nominal.total_weight() / side.samples->total_weight();
      side.classes = {{&*side.signs->positive, &*signs.positive},
                      {&*side.signs->negative, &*signs.negative}};
      side.classes[0].mean = scale * side.signs->positive_sum / signs.positive_sum;
      side.classes[1].mean = scale * side.signs->negative_sum / signs.negative_sum;
    }

    /// Of nominal events with other weights; false where some have a weight but no nominal one.
    bool take_weights(const Learner& learner, Side& side) const {
      const bool of_both = learner.signs_[c].known();
      for (const bool negative : {false, true}) {
        if (negative && !of_both) continue;
        auto parts =
            WeightParts::of(*side.samples, learner.samples_[c].nominal, learner.nominal_[c],
                            of_both ? std::optional(negative) : std::nullopt);
        if (!parts) {
          side.weighted.clear();
          return false;
        }
        side.weighted.push_back(std::move(*parts));
      }
      for (const auto& parts : side.weighted)
        side.classes.push_back({parts.more.get(), parts.less.get(), parts.ratio.up,
                                parts.ratio.down, parts.ratio.mean});
      side.same_rows = true;
      return true;
    }

    std::size_t c, v;
    std::array<Side, 2> sides;
    std::array<std::uint64_t, 2> stream = {};
    std::vector<Sides> candidates;  // learned by different classifiers
  };

  /// log p(x | ∓1) / p(x | 0) of events, low and high.
  using Functions = std::array<std::vector<double>, 2>;

  static Functions functions_of(const LearnedComponent& component, const Sides& sides,
                                std::size_t events, const LogsOf& logs) {
    std::vector<double> sign(events, 1.0);
    if (component.sign) sign = component.sign->values(logs(component.sign->fit));
    return {sides[0].log_ratios(logs, sign, component.mean_sign()),
            sides[1].log_ratios(logs, sign, component.mean_sign())};
  }

  /// Of a sample, each event by the fold that has not seen it.
  struct HeldOutFunctions {
    Functions own;     // in the classifiers' own words, which no calibration has seen
    Functions others;  // by the calibrations of other folds

    HeldOutFunctions(const LearnedComponent& component, const Sides& sides,
                     const FoldedSample& sample) {
      std::map<const CrossFit*, Logits> scores;
      const auto scores_of = [&](const CrossFit& fit) -> const Logits& {
        const auto [found, fresh] = scores.try_emplace(&fit);
        if (fresh) found->second = fit.held_out_scores(sample);
        return found->second;
      };
      own = functions_of(component, sides, sample.size(), [&](const CrossFit& fit) {
        const auto& from = scores_of(fit);
        LogRatios to(from.size());
        for (std::size_t i = 0; i < to.size(); ++i) to[i] = -from[i];
        return to;
      });
      others = functions_of(component, sides, sample.size(), [&](const CrossFit& fit) {
        return fit.held_out_by_others(sample, scores_of(fit));
      });
    }
  };

  /// Parts of a variation as they are judged: how much of low and of high each is.
  struct Combination {
    const char* name;
    double low, high;
  };

  /// What held-out events say of one candidate.
  struct Judgement {
    std::vector<LearnedVariation::Part> parts;
    double gain = 0.0;
  };

  Judgement judge(const LearnedComponent& component, const Varied& varied,
                  const Sides& candidate) const {
    const auto& sample = nominal_[varied.c];
    const HeldOutFunctions nominal(component, candidate, sample);
    std::vector<std::optional<HeldOutFunctions>> moved(2);
    for (const std::size_t side : {0, 1})
      if (varied.sides[side].all)
        moved[side].emplace(component, candidate, *varied.sides[side].all);
    // By all folds at once, as events of data are described, and by the one that pools have.
    const auto mean = functions_of(component, candidate, sample.size(), [&](const CrossFit& fit) {
      return fit.log_ratios(fit.scores(sample.samples().x));
    });
    const auto pool = functions_of(component, candidate, sample.size(), [&](const CrossFit& fit) {
      return fit.held_out(sample, fit.held_out_scores(sample));
    });

    using Kind = Functions HeldOutFunctions::*;
    constexpr std::size_t of_nominal = 2;
    const auto combined = [](const Functions& from, double low, double high) {
      std::vector<double> to(from[0].size());
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = low * from[0][i] + high * from[1][i];
      return to;
    };
    const auto functions = [&](std::size_t side, Kind kind) -> const Functions& {
      return (side == of_nominal || !moved[side] ? nominal : *moved[side]).*kind;
    };
    const auto side_of = [&](std::size_t side, Kind kind, const Combination& direction,
                             const Combination& offset) {
      const auto& samples =
          side == of_nominal ? samples_[varied.c].nominal : *varied.sides[side].samples;
      Comparison::Side to;
      to.rows = side == of_nominal ? 0 : varied.sides[side].rows;
      to.weights = samples.weights;
      if (!samples.weighted()) to.weights.assign(samples.size(), 1.0);
      to.direction = combined(functions(side, kind), direction.low, direction.high);
      if (offset.low != 0.0 || offset.high != 0.0)
        to.offset = combined(functions(side, &HeldOutFunctions::others), offset.low, offset.high);
      return to;
    };

    Judgement out;
    const auto add = [&](const Combination& of, const auto& comparisons) {
      LearnedVariation::Part part{of.name};
      part.significance = detail::significance(comparisons(&HeldOutFunctions::own));
      if (part.significance >= detail::least_significance) {
        const auto events = comparisons(&HeldOutFunctions::others);
        const double strength = detail::best_strength(events);
        out.gain += detail::gain(events, strength);
        // The mean over the folds has less noise than each, and asks for less shrinkage: as much as
        // makes the covariance with the truth its own variance. Held-out events then move as much.
        const double of_mean = variance(combined(mean, of.low, of.high), sample),
                     of_one = variance(combined(pool, of.low, of.high), sample);
        const double less = of_mean > 0.0 ? std::max(of_one / of_mean, 1.0) : 1.0;
        part.strength = strength * less;
        part.held_out = strength * std::sqrt(less);
      }
      out.parts.push_back(part);
      return part.strength > 0.0;
    };
    const Combination nothing{"", 0.0, 0.0};
    const bool none[] = {varied.sides[0].nominal, varied.sides[1].nominal};
    if (none[0] || none[1] || varied.sides[0].same_rows != varied.sides[1].same_rows) {
      for (const std::size_t side : {0, 1}) {
        if (none[side]) continue;
        const auto alone = side == 0 ? Combination{"low", 1.0, 0.0} : Combination{"high", 0.0, 1.0};
        add(alone, [&](Kind kind) {
          return std::vector<Comparison>{
              {side_of(side, kind, alone, nothing), side_of(of_nominal, kind, alone, nothing)}};
        });
      }
      return out;
    }
    // log p(x | 1) / p(x | −1), which is twice the part of either side.
    const Combination difference{"difference", -1.0, 1.0};
    const bool kept = add(difference, [&](Kind kind) {
      return std::vector<Comparison>{
          {side_of(1, kind, difference, nothing), side_of(0, kind, difference, nothing)}};
    });
    // Beside the difference, half of which is in each side.
    const double half = kept ? 0.5 * out.parts[0].strength : 0.0;
    const Combination both{"mean", 0.5, 0.5};
    add(both, [&](Kind kind) {
      std::vector<Comparison> to;
      for (const std::size_t side : {0, 1}) {
        const double by = side == 0 ? half : -half;
        const Combination offset{"", by, -by};
        to.push_back({side_of(side, kind, both, offset), side_of(of_nominal, kind, both, offset)});
      }
      return to;
    });
    return out;
  }

  static double variance(const std::vector<double>& values, const FoldedSample& sample) {
    double total = 0.0, sum = 0.0, squares = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double weight = sample.samples().weight(i);
      total += weight;
      sum += weight * values[i];
      squares += weight * values[i] * values[i];
    }
    return total > 0.0 ? std::max(squares / total - sum * sum / (total * total), 0.0) : 0.0;
  }

  /// Keeps the better candidate, and of it what held-out events ask for.
  void choose(LearnedComponent& component, Varied& varied) const {
    auto& variation = component.variations[varied.v];
    const auto& sides = varied.sides;
    variation.evidence.events = sides[0].nominal && sides[1].nominal
                                    ? LearnedVariation::Events::nominal
                                : sides[0].all || sides[1].all ? LearnedVariation::Events::own
                                                               : LearnedVariation::Events::weighted;
    if (variation.evidence.events == LearnedVariation::Events::nominal) return;
    std::optional<Judgement> best;
    for (auto& candidate : varied.candidates) {
      auto found = judge(component, varied, candidate);
      if (best && !(found.gain > best->gain)) continue;
      best = std::move(found);
      variation.sides = std::move(candidate);
    }
    variation.evidence.parts = best->parts;
    if (!variation.evidence.kept()) variation.sides = {};
  }

  /// Of the events across parameters of a component, by classifiers that have not seen them; none
  /// where no weight is negative.
  std::vector<double> mean_signs(std::size_t c) const {
    const auto& events = samples_[c].across->events;
    if (!detail::has_negative(events)) return {};
    if (!across_ratios_[c]) return std::vector<double>(events.size(), 1.0);
    const auto& fit = across_ratios_[c]->fit;
    auto out =
        across_ratios_[c]->values(fit.held_out(*across_[c], fit.held_out_scores(*across_[c])));
    for (double& sign : out) sign = std::max(sign, least_sign);
    return out;
  }

  template <class State>
  void learn_across(State& out) {
    for (std::size_t c = 0; c < samples_.size(); ++c) {
      if (!samples_[c].across) continue;
      const auto& across = *samples_[c].across;
      const auto signs = mean_signs(c);
      for (std::size_t m = 0; m < config_.members; ++m) {
        auto config = config_.shape;
        config.seed = derive_seed(config_.seed, "shape", c * config_.members + m);
        config.recentre = false;  // which its functions do not have
        out.components[c].members.push_back(std::make_shared<const SeparableRatio>(
            across.events, across.design, config, nullptr, tasks_, signs));
      }
      out.components[c].nominal = across.nominal;
    }
  }

  const FoldedSample& reference() const {
    if (reference_) return *reference_;
    for (std::size_t c = 0; c < samples_.size(); ++c)
      if (samples_[c].name == config_.reference) return nominal_[c];
    return nominal_[0];
  }

  /// Some events of a sample, as networks that have not seen them say; `own` is the component whose
  /// nominal events they are, if any.
  template <class State>
  void keep(State& out, const FoldedSample& sample, const Matrix& held_out_ratios,
            std::optional<std::size_t> own, double share, UnbinnedEvents& events) {
    const auto chosen =
        evenly(sample.size(),
               std::max<std::size_t>(config_.simulated / (with_pairs() ? samples_.size() : 1), 1));
    const Matrix x = sample.samples().x.take(chosen), ratios = held_out_ratios.take(chosen);
    Scored new_events(x);
    const auto logs = [&](const CrossFit& fit, std::size_t c) {
      if (c != own) return new_events.logs(fit, std::nullopt);
      const auto all = fit.held_out(sample, fit.held_out_scores(sample));
      LogRatios some(chosen.size());
      for (std::size_t i = 0; i < chosen.size(); ++i) some[i] = all[chosen[i]];
      return some;
    };
    auto made = out.assemble(new_events, ratios, std::nullopt, logs, own);
    double total = 0.0;
    for (const std::size_t event : chosen) total += sample.samples().weight(event);
    for (const std::size_t event : chosen)
      made.weights.push_back(share * sample.samples().weight(event) / total);
    append(events.ratios, made.ratios);
    append(events.functions, made.functions);
    events.weights.insert(events.weights.end(), made.weights.begin(), made.weights.end());
    if (out.pool.empty())
      out.pool = x;
    else
      out.pool.append(x);
  }

  /// Columns of events to the right of others.
  static void append(Matrix& to, const Matrix& more) {
    if (to.rows() == 0) {
      to = more;
      return;
    }
    Matrix both(to.rows(), to.cols() + more.cols());
    for (std::size_t r = 0; r < to.rows(); ++r) {
      std::copy(to.row(r).begin(), to.row(r).end(), both.row(r).begin());
      std::copy(more.row(r).begin(), more.row(r).end(),
                both.row(r).begin() + static_cast<std::ptrdiff_t>(to.cols()));
    }
    to = std::move(both);
  }

  template <class State>
  void keep_mixture(State& out) {
    UnbinnedEvents events;
    for (std::size_t c = 0; c < samples_.size(); ++c)
      keep(out, nominal_[c], out.pairs->held_out_ratios(nominal_[c]), c, samples_[c].share, events);
    out.simulated = std::make_shared<const UnbinnedEvents>(std::move(events));
  }

  template <class State>
  void keep_reference(State& out) {
    const auto& sample = reference();
    std::optional<std::size_t> own;
    Matrix ratios(sample.size(), samples_.size());
    for (std::size_t c = 0; c < samples_.size(); ++c) {
      LogRatios logs(sample.size());
      if (out.to_reference[c])
        logs = out.to_reference[c]->held_out(sample, out.to_reference[c]->held_out_scores(sample));
      else
        own = c;
      for (std::size_t i = 0; i < sample.size(); ++i)
        ratios(i, c) = std::exp(std::clamp(logs[i], -log_limit, log_limit));
    }
    UnbinnedEvents events;
    keep(out, sample, ratios, own, 1.0, events);
    out.simulated = std::make_shared<const UnbinnedEvents>(std::move(events));
  }

  const std::vector<ComponentSamples>& samples_;
  const LearnedChannel::Config& config_;
  RatioConfig ratios_;
  Tasks* tasks_;
  Progress progress_;
  std::uint64_t stream_ = 0;
  // Of each component, with weights |w|; events across parameters with x and θ, where some weights
  // are negative.
  std::vector<FoldedSample> nominal_;
  std::vector<std::uint64_t> streams_;  // of these
  std::vector<SignParts> signs_;
  std::vector<std::optional<FoldedSample>> across_;
  std::vector<std::optional<SignParts>> across_signs_;
  std::vector<std::optional<SignRatio>> across_ratios_;
  std::vector<std::unique_ptr<Varied>> varied_;
  std::vector<RatioConfig> candidates_;  // of classifiers for variations
  std::optional<FoldedSample> reference_;
};

}  // namespace

LearnedChannel::LearnedChannel(const std::vector<ComponentSamples>& components,
                               const Config& config, Progress* progress, Tasks* tasks) {
  auto state = std::make_shared<State>();
  Learner(components, config, progress, tasks).run(*state);
  state_ = std::move(state);
}

std::vector<std::string> LearnedChannel::components() const {
  std::vector<std::string> out;
  for (const auto& component : state_->components) out.push_back(component.name);
  return out;
}

const std::vector<std::string>& LearnedChannel::feature_names() const { return state_->features; }

const std::vector<ShapePtr>& LearnedChannel::shapes(std::size_t component) const {
  check_at_least("LearnedChannel::shapes", "components", state_->components.size(), component + 1);
  return state_->components[component].shapes;
}

const std::shared_ptr<const UnbinnedEvents>& LearnedChannel::simulated() const {
  return state_->simulated;
}

const Matrix& LearnedChannel::simulated_features() const { return state_->pool; }

std::size_t LearnedChannel::replicas() const { return state_->replicas; }

std::vector<LearnedVariation> LearnedChannel::variations() const {
  std::vector<LearnedVariation> out;
  for (const auto& component : state_->components)
    for (const auto& variation : component.variations) out.push_back(variation.evidence);
  return out;
}

UnbinnedEvents LearnedChannel::describe(MatrixView x, std::span<const double> weights) const {
  check_same_size("LearnedChannel::describe", "x", x.cols(), state_->features.size(),
                  "one column for each feature");
  if (!weights.empty())
    check_same_size("LearnedChannel::describe", "weights", weights.size(), x.rows(),
                    "one an event");
  Scored events(x);
  auto out = state_->describe(events, std::nullopt);
  out.weights.assign(weights.begin(), weights.end());
  return out;
}

std::size_t LearnedChannel::count_outside(MatrixView x) const {
  if (state_->pairs) return state_->pairs->count_outside(x);
  std::size_t count = 0;
  std::vector<Matrix> scores;
  for (const auto& fit : state_->to_reference)
    if (fit) scores.push_back(fit->scores(x));
  for (std::size_t i = 0; i < x.rows() && !scores.empty(); ++i) {
    bool outside = true;
    std::size_t next = 0;
    for (const auto& fit : state_->to_reference)
      if (fit) outside = fit->outside(scores[next++].row(i)) && outside;
    count += outside ? 1 : 0;
  }
  return count;
}

namespace {

/// What was trained in the order of the channel, with the components in theirs.
template <class Components>
void fill_components(const Components& trained, std::vector<UnbinnedComponent>& components) {
  constexpr const char* function = "LearnedChannel::channel";
  std::vector<std::string> names;
  for (const auto& component : trained) names.push_back(component.name);
  std::vector<UnbinnedComponent> ordered(trained.size());
  std::vector<bool> found(trained.size(), false);
  for (auto& component : components) {
    const auto at = std::find(names.begin(), names.end(), component.name);
    if (at == names.end())
      throw ArgumentError(fmt::format("{}: {}", function,
                                      unknown_name(component.name, "a trained component", names)));
    const auto c = static_cast<std::size_t>(at - names.begin());
    if (found[c])
      fail_argument(function, "components", fmt::format("'{}' twice", component.name),
                    "different names");
    if (!component.shapes.empty())
      fail_argument(function, fmt::format("component '{}', shapes", component.name), "given",
                    "empty: those that were learned are filled in");
    found[c] = true;
    ordered[c] = std::move(component);
    ordered[c].shapes = trained[c].shapes;
  }
  for (std::size_t c = 0; c < names.size(); ++c)
    if (!found[c])
      fail_argument(function, fmt::format("component '{}'", names[c]), "missing",
                    "given, with its yield");
  components = std::move(ordered);
}

}  // namespace

UnbinnedChannel LearnedChannel::channel(std::string name, std::vector<UnbinnedComponent> components,
                                        MatrixView observed) const {
  fill_components(state_->components, components);
  return {std::move(name), std::move(components),
          std::make_shared<const UnbinnedEvents>(describe(observed)), state_->simulated, true};
}

UnbinnedChannel LearnedChannel::channel(std::string name, std::vector<UnbinnedComponent> components,
                                        MatrixView observed, std::size_t replica) const {
  check_at_least("LearnedChannel::channel", "replicas", replicas(), replica + 1);
  fill_components(state_->components, components);
  check_same_size("LearnedChannel::channel", "observed", observed.cols(), state_->features.size(),
                  "one column for each feature");
  Scored events(observed);
  return {std::move(name), std::move(components),
          std::make_shared<const UnbinnedEvents>(state_->describe(events, replica)),
          state_->replicated(replica), true};
}

std::vector<LearnedChannel::Cycle> LearnedChannel::consistency(MatrixView x, double least) const {
  std::vector<Cycle> out;
  if (!state_->pairs || x.rows() == 0) return out;
  const std::size_t count = state_->components.size();
  const Matrix ratios = least > 0.0 ? describe(x).ratios : Matrix();
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = i + 1; j < count; ++j)
      for (std::size_t k = j + 1; k < count; ++k) {
        const LogRatios logs[] = {state_->pairs->pair_log_ratios(x, i, j),
                                  state_->pairs->pair_log_ratios(x, j, k),
                                  state_->pairs->pair_log_ratios(x, k, i)};
        Cycle cycle{{i, j, k}};
        double squares = 0.0, scales = 0.0;
        std::size_t events = 0;
        for (std::size_t e = 0; e < x.rows(); ++e) {
          if (least > 0.0) {
            const auto [low, high] = std::minmax({ratios(i, e), ratios(j, e), ratios(k, e)});
            if (low < least * high) continue;
          }
          ++events;
          double sum = 0.0;
          for (const auto& log : logs) {
            sum += log[e];
            scales += log[e] * log[e];
          }
          cycle.mean += sum;
          squares += sum * sum;
        }
        if (events == 0) continue;
        const auto n = static_cast<double>(events);
        cycle.mean /= n;
        cycle.rms = std::sqrt(squares / n);
        cycle.scale = std::sqrt(scales / (3.0 * n));
        out.push_back(cycle);
      }
  return out;
}

void LearnedChannel::save(Archive& archive) const {
  archive.set("features", state_->features);
  archive.set("components", components());
  archive.set("replicas", state_->replicas);
  if (state_->pairs) state_->pairs->save(archive.child("pairs"));
  for (std::size_t c = 0; c < state_->to_reference.size(); ++c)
    if (state_->to_reference[c])
      state_->to_reference[c]->save(archive.child(fmt::format("to_reference{}", c)));
  for (std::size_t c = 0; c < state_->components.size(); ++c) {
    const auto& component = state_->components[c];
    auto& to = archive.child(fmt::format("component{}", c));
    std::vector<std::string> varied;
    for (const auto& variation : component.variations)
      varied.push_back(variation.evidence.parameter);
    to.set("varied", varied);
    if (component.sign) component.sign->save(to.child("sign"));
    for (std::size_t v = 0; v < varied.size(); ++v) component.variations[v].save(v, to);
    to.set("members", component.members.size());
    if (component.members.empty()) continue;
    to.set("nominal", component.nominal);
    save_parameters(component.members[0]->parameters(), to.child("parameters"));
    for (std::size_t m = 0; m < component.members.size(); ++m)
      component.members[m]->save(to.child(fmt::format("member{}", m)));
  }
  archive.set("pool", state_->pool);
  archive.set("ratios", state_->simulated->ratios);
  archive.set("functions", state_->simulated->functions);
  archive.set("weights", state_->simulated->weights);
}

LearnedChannel::LearnedChannel(const Archive& archive) {
  auto state = std::make_shared<State>();
  state->features = archive.get<std::vector<std::string>>("features");
  state->replicas = static_cast<std::size_t>(archive.integer("replicas"));
  const auto& names = archive.get<std::vector<std::string>>("components");
  if (archive.has_child("pairs"))
    state->pairs.emplace(archive.child("pairs"), ParameterSpace());
  else
    state->to_reference.resize(names.size());
  for (std::size_t c = 0; c < names.size(); ++c) {
    const auto reference = fmt::format("to_reference{}", c);
    if (archive.has_child(reference))
      state->to_reference[c].emplace().load(archive.child(reference));
    const auto& from = archive.child(fmt::format("component{}", c));
    LearnedComponent component{names[c]};
    if (from.has_child("sign")) component.sign = SignRatio::load(from.child("sign"));
    const auto& varied = from.get<std::vector<std::string>>("varied");
    for (std::size_t v = 0; v < varied.size(); ++v) {
      component.variations.push_back(Variation::load(v, from));
      component.variations.back().evidence.component = names[c];
      component.variations.back().evidence.parameter = varied[v];
    }
    const auto members = static_cast<std::size_t>(from.integer("members"));
    if (members > 0) component.nominal = from.numbers("nominal");
    for (std::size_t m = 0; m < members; ++m)
      component.members.push_back(std::make_shared<const SeparableRatio>(
          from.child(fmt::format("member{}", m)), load_parameters(from.child("parameters"))));
    component.set_shapes();
    state->components.push_back(std::move(component));
  }
  state->pool = archive.get<Matrix>("pool");
  UnbinnedEvents events;
  events.ratios = archive.get<Matrix>("ratios");
  events.functions = archive.get<Matrix>("functions");
  events.weights = archive.numbers("weights");
  if (events.ratios.rows() != names.size() || events.ratios.cols() != state->pool.rows() ||
      events.functions.rows() != state->functions() ||
      events.weights.size() != state->pool.rows() || state->pool.cols() != state->features.size())
    throw FileError("the parts of the learned channel have sizes that do not agree");
  state->simulated = std::make_shared<const UnbinnedEvents>(std::move(events));
  state_ = std::move(state);
}

}  // namespace neyman
