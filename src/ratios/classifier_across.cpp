#include "neyman/ratios/classifier_across.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <utility>

#include "neyman/calibration/on_demand.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "neyman/data/sample_stream.hpp"
#include "neyman/data/splits.hpp"
#include "neyman/distributed/tasks.hpp"

namespace neyman {

namespace {

constexpr std::size_t default_companions = 4;
constexpr std::size_t most_calibration_rows = 2'000'000;
/// Denominator events for each numerator event at a node of held-out events.
constexpr std::size_t node_denominators = 10;
/// Events that are simulated and scored at once for a calibration.
constexpr std::size_t scored_block = 2048;
constexpr std::size_t least_events_a_fold = 20;
constexpr const char* across_names[] = {"none", "on-demand", "interpolate", "smooth"};
constexpr const char* denominator_names[] = {"marginal", "point", "parameterized"};

/// The ranges that a calibration sees: those of θ, or of θ0 and θ1.
ParameterSpace calibrated_space(const ParameterSpace& parameters, bool both) {
  std::vector<Parameter> out(parameters.begin(), parameters.end());
  if (both)
    for (auto parameter : parameters) {
      parameter.name += "_1";
      out.push_back(parameter);
    }
  return ParameterSpace(std::move(out));
}

std::vector<std::size_t> shuffled(std::size_t count, RandomStream& random) {
  std::vector<std::size_t> out(count);
  std::iota(out.begin(), out.end(), std::size_t{0});
  for (std::size_t i = count; i > 1; --i) std::swap(out[i - 1], out[random.below(i)]);
  return out;
}

Partition cut(const Samples& events, bool streamed, std::size_t folds, std::uint64_t seed) {
  if (streamed) return hashed_k_fold(events.groups, folds, seed);
  if (folds == 1) {
    Partition all(1);
    all[0].resize(events.size());
    std::iota(all[0].begin(), all[0].end(), std::size_t{0});
    return all;
  }
  return events.groups.empty() ? k_fold(events.size(), folds, seed)
                               : group_k_fold(events.groups, folds, seed);
}

/// Events of both sides; `denominator` may be empty: its events are those of the numerator.
struct Sides {
  Samples numerator, denominator;
};

Sides simulate_sides(const Distribution& simulator, const Design& design,
                     const ParameterizedClassifierRatio::Config& config, std::size_t tops,
                     std::size_t bottoms, std::uint64_t seed, Tasks* tasks = nullptr) {
  const auto draw = [&](const Design& from, std::size_t count, const char* purpose) {
    return simulate(simulator, design.parameters(), from, count, seed, purpose, tasks);
  };
  Sides out{draw(design, tops, "train"), {}};
  if (bottoms == 0) return out;
  const bool point = config.denominator == ParameterizedClassifierRatio::Denominator::point;
  out.denominator = draw(point ? Design::fixed(design.parameters(), config.reference)
                               : config.denominator_design.value_or(design),
                         bottoms, "train/denominator");
  return out;
}

/// All that a configuration asks for.
Sides simulate_all(const DistributionPtr& simulator, const Design& design,
                   const ParameterizedClassifierRatio::Config& config, Tasks* tasks) {
  const char* function = "ParameterizedClassifierRatio";
  if (simulator == nullptr) fail_argument(function, "simulator", "empty", "a distribution");
  check_at_least(function, "folds", config.folds, 1);
  const std::size_t n = config.samples * (config.fresh ? config.folds : 1);
  const bool apart = config.denominator == ParameterizedClassifierRatio::Denominator::point ||
                     config.denominator_design;
  const std::size_t half = apart ? n / 2 : 0;
  return simulate_sides(*simulator, design, config, n - half, half, config.seed, tasks);
}

}  // namespace

/// Trains and calibrates a ratio; forgotten afterwards.
class ParameterizedClassifierRatio::Learner {
 public:
  Learner(ParameterizedClassifierRatio& ratio, const Given& events, const Design& design,
          const Config& config, DistributionPtr simulator, Tasks* tasks)
      : ratio_(ratio),
        numerator_(events.numerator),
        shared_(events.denominator.size() == 0),
        denominator_(shared_ ? events.numerator : events.denominator),
        stream_(events.stream),
        design_(design),
        config_(config),
        simulator_(std::move(simulator)),
        tasks_(tasks) {
    check();
    numerator_folds_ =
        cut(numerator_, stream_ != nullptr, config_.folds, derive_seed(config_.seed, "folds"));
    denominator_folds_ = shared_ ? numerator_folds_
                                 : cut(denominator_, false, config_.folds,
                                       derive_seed(config_.seed, "denominator-folds"));
  }

  struct Trained {
    std::unique_ptr<Classifier> classifier;
    std::size_t simulated = 0;  // in epochs after the first
  };

  void train(Progress* progress) {
    const Archived fields{[](const Trained& made, Archive& to) {
                            save_classifier(*made.classifier, to.child("classifier"));
                            to.set("simulated", made.simulated);
                          },
                          [](const Archive& from) {
                            return Trained{load_classifier(from.child("classifier")),
                                           static_cast<std::size_t>(from.integer("simulated"))};
                          }};
    // Ranks would simulate the same fresh events.
    const std::size_t shares = config_.fresh ? 1 : config_.classifier->shares();
    auto* const ranks = together(tasks_, config_.folds, shares);
    const auto one = [&](std::size_t fold) {
      Progress part(progress, Progress::fine);
      return train(fold, &part, ranks);
    };
    std::vector<Trained> trained;
    if (ranks == nullptr)
      trained = spread<Trained>(tasks_, config_.folds, one, fields);
    else
      for (std::size_t fold = 0; fold < config_.folds; ++fold) trained.push_back(one(fold));
    for (auto& fold : trained) {
      ratio_.classifiers_.push_back(std::move(fold.classifier));
      ratio_.simulated_ += fold.simulated;
    }
  }

  void calibrate() {
    ratio_.calibrations_.clear();
    switch (config_.calibration) {
      case Across::none:
        break;
      case Across::on_demand:
        calibrate_on_demand();
        break;
      case Across::interpolate:
        config_.calibration_events == 0 ? interpolate_held_out() : interpolate_simulated();
        break;
      case Across::smooth:
        calibrate_smoothly();
        break;
    }
  }

 private:
  using Scores = InterpolatedCalibration::Scores;

  bool both() const { return config_.denominator == Denominator::parameterized; }
  std::size_t parameters() const { return ratio_.parameters_.size(); }
  std::size_t inputs() const { return ratio_.features_ + parameters() * (both() ? 2 : 1); }

  void check() const {
    const char* function = "ParameterizedClassifierRatio";
    if (config_.classifier == nullptr)
      fail_argument(function, "classifier", "empty", "a classifier");
    if (design_.single())
      fail_argument(function, "design", "a single point", "a distribution of θ");
    check_at_least(function, "folds", config_.folds, 1);
    if (config_.folds == 1 && config_.calibration == Across::smooth)
      fail_argument(function, "folds", "1", "at least 2 for a smooth calibration");
    if (config_.fresh && simulator_ == nullptr)
      fail_argument(function, "fresh", "true", "false without a simulator");
    if (stream_ != nullptr && (!shared_ || config_.fresh))
      fail_argument(function, "stream", "there", "absent with further events");
    if (stream_ != nullptr)
      check_same_size(function, "groups", numerator_.groups.size(), numerator_.size(),
                      "one an event, as in the stream");
    numerator_.check(function);
    denominator_.check(function);
    check_theta(numerator_, "numerator");
    check_same_size(function, "a row of the denominator", denominator_.features(),
                    numerator_.features(), "features, as the numerator");
    if (config_.denominator == Denominator::point && shared_)
      throw ArgumentError(fmt::format(
          "{}: denominator has no events, but must have some of the fixed point", function));
    if (both()) check_theta(denominator_, "denominator");
    for (const auto* events : {&numerator_, &denominator_})
      check_at_least(function, "number of events", events->size(),
                     least_events_a_fold * config_.folds);
    check_calibration(function);
  }

  void check_theta(const Samples& events, const char* side) const {
    if (events.parameter_names != ratio_.parameters_.names())
      fail_argument("ParameterizedClassifierRatio", fmt::format("θ of the {}", side),
                    events.parameter_names.empty() ? "absent" : "of other parameters",
                    "there for each parameter of the design, in their order");
  }

  void check_calibration(const char* function) const {
    const bool simulates =
        config_.calibration == Across::on_demand ||
        (config_.calibration == Across::interpolate && config_.calibration_events > 0);
    if (simulates && simulator_ == nullptr)
      fail_argument(function, "calibration", across_names[static_cast<int>(config_.calibration)],
                    "none, smooth, or interpolate with calibration_events = 0 without a simulator");
    if (config_.calibration == Across::on_demand && config_.calibration_events == 0)
      fail_argument(function, "calibration_events", "0", "at least 1 for on-demand");
    if (config_.calibration == Across::interpolate && !simulates &&
        (design_.rows().empty() || config_.folds == 1 || both()))
      fail_argument(function, "calibration_events", "0",
                    "at least 1, unless the design is a grid or a table, the folds are two or more "
                    "and θ1 is no input");
  }

  /// θ that numerator events of a fold have, in random order: denominators of the same fold then
  /// have the same θ as the numerators, and θ alone tells nothing.
  class Companions {
   public:
    Companions(const Samples& events, const std::vector<std::size_t>& fold, RandomStream random)
        : events_(events), fold_(fold), order_(shuffled(fold.size(), random)) {}
    std::span<const double> operator()(std::size_t i) const {
      return events_.theta.row(fold_[order_[i % order_.size()]]);
    }

   private:
    const Samples& events_;
    const std::vector<std::size_t>& fold_;
    std::vector<std::size_t> order_;
  };

  RandomStream stream(const char* purpose, std::size_t fold, std::size_t turn) const {
    return {config_.seed, fmt::format("{}/{}", purpose, turn), fold};
  }

  /// (x, θ0[, θ1]).
  void fill(std::span<double> row, std::span<const double> x, std::span<const double> theta,
            std::span<const double> other) const {
    auto at = std::copy(x.begin(), x.end(), row.begin());
    at = std::copy(theta.begin(), theta.end(), at);
    if (both()) std::copy(other.begin(), other.end(), at);
  }

  std::vector<std::size_t> training_folds(std::size_t fold) const {
    if (config_.fresh || config_.folds == 1) return {fold};
    std::vector<std::size_t> out;
    for (std::size_t k = 0; k < config_.folds; ++k)
      if (k != fold) out.push_back(k);
    return out;
  }

  /// The fold whose events the classifier of a fold has not seen.
  std::size_t held_out(std::size_t fold) const {
    return config_.fresh ? (fold + 1) % config_.folds : fold;
  }

  Trained train(std::size_t fold, Progress* progress, Communicator* ranks) const {
    auto classifier = config_.classifier->fresh();
    std::atomic<std::size_t> simulated{0};
    const auto seed = derive_seed(config_.seed, "train", fold);
    const auto first = [&] {
      return rows(numerator_, numerator_folds_, denominator_, denominator_folds_,
                  training_folds(fold), config_.seed);
    };
    if (config_.fresh) {
      classifier->fit_epochs(
          [&](std::size_t epoch) {
            return epoch == 0 ? first() : fresh_rows(fold, epoch, simulated);
          },
          seed, progress);
    } else if (stream_ != nullptr) {
      auto stream = training_stream(fold);
      stream.seed = seed;
      stream.progress = progress;
      stream.ranks = ranks;
      classifier->fit_stream(stream);
    } else {
      const auto table = first();
      classifier->fit({table.x, table.denominator, table.weights, seed, progress, ranks});
    }
    return {std::move(classifier), simulated};
  }

  /// The rows that train a fold, as they are read: an event's θ as denominator is that of another
  /// in the same window.
  TrainingStream training_stream(std::size_t fold) const {
    TrainingStream out;
    out.rows = 2 * stream_->rows();
    out.windows = TrainingStream::windows_for(out.rows, inputs());
    out.read = [this, fold, windows = out.windows](std::size_t epoch, std::size_t window) {
      const auto all =
          stream_->window({derive_seed(config_.seed, "windows", fold), epoch, window, windows});
      const auto seed = derive_seed(config_.seed, "folds");
      Partition chosen(1);
      for (std::size_t i = 0; i < all.size(); ++i)
        if (config_.folds == 1 || hashed_fold(all.groups[i], config_.folds, seed) != fold)
          chosen[0].push_back(i);
      if (chosen[0].empty()) return TrainingRows{};
      return rows(all, chosen, all, chosen, {0},
                  derive_seed(config_.seed, fmt::format("window/{}/{}", fold, epoch), window));
    };
    return out;
  }

  /// As many events as the fold has, simulated anew.
  TrainingRows fresh_rows(std::size_t fold, std::size_t epoch,
                          std::atomic<std::size_t>& simulated) const {
    const auto seed = derive_seed(config_.seed, fmt::format("epoch/{}", fold), epoch);
    const auto events = simulate_sides(*simulator_, design_, config_, numerator_folds_[fold].size(),
                                       shared_ ? 0 : denominator_folds_[fold].size(), seed);
    simulated += events.numerator.size() + events.denominator.size();
    const auto& bottom = shared_ ? events.numerator : events.denominator;
    return rows(events.numerator, cut(events.numerator, false, 1, seed), bottom,
                cut(bottom, false, 1, seed), {0}, seed);
  }

  /// Rows of both sides from the events of some folds.
  TrainingRows rows(const Samples& numerator, const Partition& tops, const Samples& denominator,
                    const Partition& bottoms, const std::vector<std::size_t>& folds,
                    std::uint64_t seed) const {
    std::size_t count = 0;
    for (const auto k : folds) count += tops[k].size() + bottoms[k].size();
    TrainingRows out{
        Matrix(count, inputs()), std::vector<std::uint8_t>(count),
        std::vector<double>(numerator.weighted() || denominator.weighted() ? count : 0)};
    std::size_t at = 0;
    const auto add = [&](const Samples& events, std::size_t event, std::uint8_t side,
                         std::span<const double> theta, std::span<const double> other) {
      fill(out.x.row(at), events.x.row(event), theta, other);
      out.denominator[at] = side;
      if (!out.weights.empty()) out.weights[at] = events.weight(event);
      if (stream_ != nullptr) out.groups.push_back(events.groups[event]);
      ++at;
    };
    for (const auto k : folds) {
      // The other θ of numerators (θ1) and of denominators (θ0).
      const Companions bottom(denominator, bottoms[k], RandomStream(seed, "theta1/0", k));
      const Companions top(numerator, tops[k], RandomStream(seed, "theta0/0", k));
      for (std::size_t i = 0; i < tops[k].size(); ++i) {
        const std::size_t event = tops[k][i];
        add(numerator, event, 0, numerator.theta.row(event),
            both() ? bottom(i) : std::span<const double>());
      }
      for (std::size_t i = 0; i < bottoms[k].size(); ++i) {
        const std::size_t event = bottoms[k][i];
        add(denominator, event, 1, top(i),
            both() ? denominator.theta.row(event) : std::span<const double>());
      }
    }
    return out;
  }

  std::size_t companions(std::size_t events) const {
    if (config_.companions > 0) return config_.companions;
    return std::clamp<std::size_t>(most_calibration_rows / std::max<std::size_t>(events, 1), 1,
                                   default_companions);
  }

  void calibrate_smoothly() {
    using Made = std::shared_ptr<SmoothAcross>;
    Progress progress("calibrate", numerator_.size() + denominator_.size(), "events");
    const auto make = [&] {
      return std::make_shared<SmoothAcross>(calibrated_space(ratio_.parameters_, both()),
                                            config_.smooth);
    };
    const auto one = [&](std::size_t fold) {
      auto made = make();
      fit_smoothly(*made, fold);
      const std::size_t k = held_out(fold);
      progress.advance(numerator_folds_[k].size() + denominator_folds_[k].size());
      return made;
    };
    const Archived fields{[](const Made& made, Archive& to) { made->save(to); },
                          [&](const Archive& from) {
                            auto made = make();
                            made->load(from);
                            return made;
                          }};
    const auto all = spread<Made>(tasks_, config_.folds, one, fields);
    ratio_.calibrations_.assign(all.begin(), all.end());
  }

  void fit_smoothly(SmoothAcross& calibration, std::size_t fold) const {
    const std::size_t k = held_out(fold);
    const auto& tops = numerator_folds_[k];
    const auto& bottoms = denominator_folds_[k];
    const std::size_t copies = companions(bottoms.size());
    std::vector<Companions> top, bottom;
    for (std::size_t turn = 0; turn < copies; ++turn) {
      top.emplace_back(numerator_, tops, stream("calibrate0", k, turn));
      bottom.emplace_back(denominator_, bottoms, stream("calibrate1", k, turn));
    }
    const std::size_t rows = tops.size() + copies * bottoms.size();
    const std::size_t d = ratio_.features_, p = inputs() - d;
    std::vector<double> weights(rows);
    std::vector<std::uint8_t> sides(rows);
    std::vector<std::uint32_t> numbers(rows);
    Matrix table(rows, inputs());
    std::size_t at = 0;
    const auto add = [&](const Samples& events, std::size_t event, std::uint8_t side, double weight,
                         std::size_t number, std::span<const double> theta,
                         std::span<const double> other) {
      fill(table.row(at), events.x.row(event), theta, other);
      weights[at] = weight * events.weight(event);
      sides[at] = side;
      numbers[at++] = static_cast<std::uint32_t>(number);
    };
    const auto add_top = [&](std::size_t i) {
      add(numerator_, tops[i], 0, 1.0, i, numerator_.theta.row(tops[i]),
          both() ? bottom[0](i) : std::span<const double>());
    };
    if (!shared_)
      for (std::size_t i = 0; i < tops.size(); ++i) add_top(i);
    for (std::size_t i = 0; i < bottoms.size(); ++i) {
      if (shared_) add_top(i);  // the rows of an event stand together
      for (std::size_t turn = 0; turn < copies; ++turn)
        add(denominator_, bottoms[i], 1, 1.0 / static_cast<double>(copies),
            shared_ ? i : tops.size() + i, top[turn](i),
            both() ? denominator_.theta.row(bottoms[i]) : std::span<const double>());
    }
    const auto logits = ratio_.classifiers_[fold]->logits(table);
    calibration.fit({logits.values(), MatrixView(table.data() + d, rows, p, inputs()), sides,
                     weights, numbers});
  }

  /// Events of the denominator to calibrate against, the same for every θ; with θ1 as an input
  /// they are simulated with θ.
  Matrix simulate_denominator() const {
    const auto n = config_.calibration_events;
    if (config_.denominator == Denominator::point)
      return sample(*simulator_, ratio_.reference_, n, config_.seed, "calibrate/denominator");
    return simulate(*simulator_, ratio_.parameters_, config_.denominator_design.value_or(design_),
                    n, config_.seed, "calibrate/denominator")
        .x;
  }

  /// Simulates and scores events at θ, with the same random numbers for every θ.
  OnDemandCalibration::Simulate score_at(bool parameterized) const {
    auto bottom = std::make_shared<const Matrix>(parameterized ? Matrix() : simulate_denominator());
    const auto* ratio = &ratio_;
    return [ratio, bottom, parameterized, simulator = simulator_, n = config_.calibration_events,
            seed = config_.seed](std::span<const double> point) {
      const std::size_t p = ratio->parameters_.size();
      // In blocks: new memory for all events at once would cost as much as the network.
      const auto score = [&](const auto& events_of) {
        std::vector<double> out(n);
        parallel_blocks(n, scored_block, [&](Block block) {
          const auto logits = ratio->mean_logits(ratio->inputs(events_of(block), point));
          std::copy(logits.values().begin(), logits.values().end(),
                    out.begin() + static_cast<std::ptrdiff_t>(block.begin));
        });
        return out;
      };
      const auto drawn = [&](std::span<const double> at, const char* purpose) {
        return score([&, purpose, at](Block block) {
          Matrix x(block.size(), ratio->features_);
          RandomStream random(seed, purpose, block.index);
          simulator->sample(at, random, x);
          return x;
        });
      };
      Scores out;
      out.numerator = drawn(point.first(p), "calibrate/numerator");
      out.denominator =
          parameterized ? drawn(point.subspan(p), "calibrate/denominator")
                        : score([&](Block block) { return bottom->rows(block.begin, block.end); });
      return out;
    };
  }

  void calibrate_on_demand() {
    const std::size_t sides = both() ? 2 : 1;
    ratio_.calibrations_ = {std::make_shared<OnDemandCalibration>(
        parameters() * sides, score_at(both()),
        OnDemandCalibration::Config{config_.calibrator, config_.cache})};
    ratio_.simulated_at_each_ = sides * config_.calibration_events;
    if (!both()) ratio_.simulated_ += config_.calibration_events;
  }

  InterpolatedCalibration make_interpolated() const {
    return config_.calibrator == nullptr
               ? InterpolatedCalibration(config_.interpolation)
               : InterpolatedCalibration(config_.interpolation, *config_.calibrator);
  }

  void interpolate_simulated() {
    const auto space = calibrated_space(ratio_.parameters_, both());
    Design::Config grid{.kind = Design::Kind::grid, .points = config_.nodes};
    if (grid.points.empty())
      grid.points.assign(space.size(), space.size() <= 2 ? 7 : space.size() == 3 ? 5 : 3);
    const Design nodes(space, std::move(grid));
    auto made = make_interpolated();
    const auto score = score_at(both());
    Progress progress("calibrate", nodes.rows().rows() * config_.calibration_events, "events");
    const auto one = [&](std::size_t k) {
      auto scored = score(nodes.rows().row(k));
      progress.advance(config_.calibration_events);
      return scored;
    };
    if (tasks_ == nullptr) {
      made.fit(nodes.rows(), one);
    } else {
      auto all = spread<Scores>(tasks_, nodes.rows().rows(), one, [](auto& bytes, auto& scored) {
        bytes(scored.numerator, scored.denominator);
      });
      made.fit(nodes.rows(), [&](std::size_t k) { return std::move(all[k]); });
    }
    ratio_.calibrations_ = {std::make_shared<InterpolatedCalibration>(std::move(made))};
    ratio_.simulated_ +=
        config_.calibration_events * (nodes.rows().rows() * (both() ? 2 : 1) + (both() ? 0 : 1));
  }

  /// At the rows of the design, with the events that each fold holds out.
  void interpolate_held_out() {
    Progress progress("calibrate", numerator_.size(), "events");
    for (std::size_t fold = 0; fold < config_.folds; ++fold) {
      const std::size_t k = held_out(fold);
      std::vector<std::vector<std::size_t>> at_node(design_.rows().rows());
      for (const auto event : numerator_folds_[k]) at_node[find_node(event)].push_back(event);
      auto made = make_interpolated();
      made.fit(design_.rows(), [&](std::size_t node) {
        auto scored = score_node(fold, node, at_node[node]);
        progress.advance(at_node[node].size());
        return scored;
      });
      ratio_.calibrations_.push_back(std::make_shared<InterpolatedCalibration>(std::move(made)));
    }
  }

  std::size_t find_node(std::size_t event) const {
    const auto theta = numerator_.theta.row(event);
    const auto& rows = design_.rows();
    for (std::size_t node = 0; node < rows.rows(); ++node)
      if (std::equal(theta.begin(), theta.end(), rows.row(node).begin())) return node;
    fail_argument("ParameterizedClassifierRatio", fmt::format("θ of event {}", event),
                  "not in the design", "one of its rows");
  }

  Scores score_node(std::size_t fold, std::size_t node,
                    const std::vector<std::size_t>& events) const {
    const auto point = design_.rows().row(node);
    const auto score = [&](const Samples& from, std::span<const std::size_t> chosen) {
      return ratio_.classifiers_[fold]->logits(ratio_.inputs(from.x.take(chosen), point)).release();
    };
    const auto weigh = [](const Samples& from, std::span<const std::size_t> chosen) {
      std::vector<double> out;
      if (from.weighted())
        for (const auto event : chosen) out.push_back(from.weights[event]);
      return out;
    };
    // Denominators in random order, as many as are worth their scoring.
    const auto& all = denominator_folds_[held_out(fold)];
    auto random = stream("node", fold, node);
    auto bottom = shuffled(all.size(), random);
    bottom.resize(
        std::min(all.size(), std::max<std::size_t>(1, node_denominators * events.size())));
    for (auto& event : bottom) event = all[event];
    return {score(numerator_, events), score(denominator_, bottom), weigh(numerator_, events),
            weigh(denominator_, bottom)};
  }

  ParameterizedClassifierRatio& ratio_;
  const Samples& numerator_;
  bool shared_;  // every event serves both sides
  const Samples& denominator_;
  const SampleStream* stream_;  // all events that train, or null
  const Design& design_;
  const Config& config_;
  DistributionPtr simulator_;
  Tasks* tasks_;
  Partition numerator_folds_, denominator_folds_;
};

std::size_t ParameterizedClassifierRatio::Events::size() const {
  return (stream ? stream->rows() : numerator.size()) + denominator.size();
}

ParameterizedClassifierRatio::Events ParameterizedClassifierRatio::simulate_events(
    const DistributionPtr& simulator, const Design& design, const Config& config, Tasks* tasks) {
  auto sides = simulate_all(simulator, design, config, tasks);
  return {std::move(sides.numerator), std::move(sides.denominator), nullptr};
}

ParameterizedClassifierRatio::ParameterizedClassifierRatio(DistributionPtr simulator,
                                                           const Design& design, Config config,
                                                           Progress* progress, Tasks* tasks)
    : ParameterizedRatio(design.parameters()) {
  const auto events = simulate_events(simulator, design, config, tasks);
  const Given given{events.numerator, events.denominator};
  train(given, design, config, simulator, progress, tasks);
  calibrate(given, design, config, std::move(simulator), tasks);
  simulated_ += events.size();
}

ParameterizedClassifierRatio::ParameterizedClassifierRatio(const Samples& numerator,
                                                           const Samples& denominator,
                                                           const Design& design, Config config,
                                                           DistributionPtr simulator,
                                                           Progress* progress)
    : ParameterizedRatio(design.parameters()) {
  const Given given{numerator, denominator};
  train(given, design, config, simulator, progress, nullptr);
  calibrate(given, design, config, std::move(simulator), nullptr);
}

std::shared_ptr<ParameterizedClassifierRatio> ParameterizedClassifierRatio::trained(
    const Events& events, const Design& design, const Config& config, DistributionPtr simulator,
    Progress* progress, Tasks* tasks) {
  std::shared_ptr<ParameterizedClassifierRatio> out(
      new ParameterizedClassifierRatio(design.parameters()));
  out->train({events.numerator, events.denominator, events.stream.get()}, design, config,
             std::move(simulator), progress, tasks);
  out->simulated_ += events.size();
  return out;
}

void ParameterizedClassifierRatio::calibrate(const Events& events, const Design& design,
                                             const Config& config, DistributionPtr simulator,
                                             Tasks* tasks) {
  calibrate(Given{events.numerator, events.denominator, events.stream.get()}, design, config,
            std::move(simulator), tasks);
}

ParameterizedClassifierRatio::~ParameterizedClassifierRatio() = default;

void ParameterizedClassifierRatio::train(const Given& events, const Design& design,
                                         const Config& config, DistributionPtr simulator,
                                         Progress* progress, Tasks* tasks) {
  denominator_ = config.denominator;
  across_ = Across::none;  // so far
  features_ = events.numerator.features();
  reference_ = config.reference;
  if (events.numerator.theta.cols() == parameters_.size())
    region_ = DesignRegion(design, events.numerator.theta);
  if (reference_.empty() && denominator_ == Denominator::parameterized) {
    reference_ = parameters_.middle();
    if (!region_.holds(reference_)) {
      const auto nearest = region_.nearest(reference_);
      reference_.assign(nearest.begin(), nearest.end());
    }
  }
  if (denominator_ == Denominator::marginal)
    reference_.clear();
  else
    parameters_.check_inside("ParameterizedClassifierRatio: reference", reference_);
  Learner(*this, events, design, config, std::move(simulator), tasks).train(progress);
}

void ParameterizedClassifierRatio::calibrate(const Given& events, const Design& design,
                                             const Config& config, DistributionPtr simulator,
                                             Tasks* tasks) {
  across_ = config.calibration;
  Learner(*this, events, design, config, std::move(simulator), tasks).calibrate();
}

Matrix ParameterizedClassifierRatio::inputs(MatrixView x, std::span<const double> point) const {
  Matrix out(x.rows(), x.cols() + point.size());
  for (std::size_t i = 0; i < x.rows(); ++i) {
    const auto from = x.row(i);
    std::copy(point.begin(), point.end(), std::copy(from.begin(), from.end(), out.row(i).begin()));
  }
  return out;
}

std::vector<double> ParameterizedClassifierRatio::full_point(
    std::span<const double> numerator, std::span<const double> denominator) const {
  std::vector<double> out(numerator.begin(), numerator.end());
  if (denominator_ == Denominator::parameterized)
    out.insert(out.end(), denominator.begin(), denominator.end());
  return out;
}

Logits ParameterizedClassifierRatio::mean_logits(MatrixView rows) const {
  Logits out(rows.rows());
  for (const auto& classifier : classifiers_) {
    const auto own = classifier->logits(rows);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += own[i] / static_cast<double>(folds());
  }
  return out;
}

LogRatios ParameterizedClassifierRatio::evaluate(MatrixView x, std::span<const double> point,
                                                 bool calibrated) const {
  const auto rows = inputs(x, point);
  LogRatios out(x.rows());
  if (calibrated && calibrations_.size() == folds()) {
    for (std::size_t k = 0; k < folds(); ++k) {
      const auto own = calibrations_[k]->log_ratios(classifiers_[k]->logits(rows), point);
      for (std::size_t i = 0; i < out.size(); ++i) out[i] += own[i] / static_cast<double>(folds());
    }
    return out;
  }
  const auto logits = mean_logits(rows);
  if (calibrated && !calibrations_.empty()) return calibrations_.front()->log_ratios(logits, point);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = -logits[i];
  return out;
}

LogRatios ParameterizedClassifierRatio::between(MatrixView x, std::span<const double> numerator,
                                                std::span<const double> denominator,
                                                bool calibrated) const {
  const char* function = "ParameterizedClassifierRatio::log_ratios";
  check_same_size(function, "a row of x", x.cols(), features_, "features, as in the training");
  parameters_.check_inside(function, numerator);
  parameters_.check_inside(function, denominator);
  const auto top = parameters_.wrapped(numerator), bottom_point = parameters_.wrapped(denominator);
  auto out = evaluate(x, full_point(top, bottom_point), calibrated);
  const bool known =
      denominator_ == Denominator::parameterized ||
      (denominator_ == Denominator::point &&
       std::equal(bottom_point.begin(), bottom_point.end(), reference_.begin(), reference_.end()));
  if (known) return out;
  const auto bottom = evaluate(x, bottom_point, calibrated);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] -= bottom[i];
  return out;
}

LogRatios ParameterizedClassifierRatio::log_ratios(MatrixView x, std::span<const double> numerator,
                                                   std::span<const double> denominator) const {
  return between(x, numerator, denominator, true);
}

LogRatios ParameterizedClassifierRatio::uncalibrated(MatrixView x,
                                                     std::span<const double> numerator,
                                                     std::span<const double> denominator) const {
  return between(x, numerator, denominator, false);
}

bool ParameterizedClassifierRatio::differentiable() const {
  return std::all_of(classifiers_.begin(), classifiers_.end(),
                     [](const auto& c) { return c->differentiable(); }) &&
         std::all_of(calibrations_.begin(), calibrations_.end(),
                     [](const auto& c) { return c->differentiable(); });
}

/// ℓ with its gradient, by folds: ℓ is their mean.
struct ParameterizedClassifierRatio::Evaluation {
  double sum = 0.0;
  Matrix gradients;   // folds × parameters
  Matrix covariance;  // of the gradient, from the calibrations; empty where not asked for
};

ParameterizedClassifierRatio::Evaluation ParameterizedClassifierRatio::derivatives(
    MatrixView x, std::span<const double> point, std::span<const double> weights,
    bool covariance) const {
  const auto rows = inputs(x, point);
  const std::size_t p = parameters_.size(), all = point.size(), events = x.rows();
  const auto count = static_cast<double>(folds());
  Evaluation out{0.0, Matrix(folds(), p), covariance ? Matrix(p, p) : Matrix()};
  const bool by_fold = calibrations_.size() == folds();
  // One calibration for all folds is asked at the mean of their logits.
  CalibrationAcross::Derivatives curve;
  if (!by_fold && !calibrations_.empty())
    curve = calibrations_.front()->derivatives(mean_logits(rows), point);
  for (std::size_t k = 0; k < folds(); ++k) {
    const auto logits = classifiers_[k]->logits(rows);
    const auto slopes = classifiers_[k]->gradient(rows);
    if (by_fold) curve = calibrations_[k]->derivatives(logits, point);
    for (std::size_t i = 0; i < events; ++i) {
      const double u = weights.empty() ? 1.0 : weights[i];
      const bool plain = calibrations_.empty();
      out.sum += u * (plain ? -logits[i] : curve.value[i]) / count;
      const double by_logit = plain ? -1.0 : curve.by_logit[i];
      for (std::size_t a = 0; a < p; ++a)
        out.gradients(k, a) +=
            u * (by_logit * slopes(i, features_ + a) + (plain ? 0.0 : curve.by_point(i, a)));
    }
    const auto* smooth =
        by_fold ? dynamic_cast<const SmoothAcross*>(calibrations_[k].get()) : nullptr;
    if (!covariance || smooth == nullptr) continue;
    const auto own = smooth->gradient_covariance(
        logits, point, MatrixView(slopes.data() + features_, events, all, slopes.cols()), weights);
    for (std::size_t a = 0; a < p; ++a)
      for (std::size_t b = 0; b < p; ++b) out.covariance(a, b) += own(a, b) / (count * count);
  }
  return out;
}

class ParameterizedClassifierRatio::Sum final : public SummedRatio {
 public:
  Sum(const ParameterizedClassifierRatio& ratio, MatrixView x, std::span<const double> weights)
      : ratio_(ratio), x_(0, x.cols()), weights_(weights.begin(), weights.end()) {
    x_.append(x);
  }

  double operator()(std::span<const double> point, std::span<double> gradient) const override {
    const auto full = check(point);
    if (gradient.empty()) {
      const auto values = ratio_.evaluate(x_, full, true);
      double sum = 0.0;
      for (std::size_t i = 0; i < values.size(); ++i)
        sum += (weights_.empty() ? 1.0 : weights_[i]) * values[i];
      return sum;
    }
    check_same_size("SummedRatio", "gradient", gradient.size(), point.size(),
                    "one for each parameter");
    if (!differentiable()) throw ArgumentError("SummedRatio: its gradient is not known");
    const auto found = ratio_.derivatives(x_, full, weights_, false);
    const auto mean = mean_gradient(found);
    std::copy(mean.begin(), mean.end(), gradient.begin());
    return found.sum;
  }

  bool differentiable() const override { return ratio_.differentiable(); }

  Matrix simulation_gradient_covariance(std::span<const double> point) const override {
    const auto full = check(point);
    const std::size_t p = point.size(), folds = ratio_.folds();
    if (!differentiable()) return Matrix(p, p);
    auto found = ratio_.derivatives(x_, full, weights_, true);
    if (folds < 2) return found.covariance;
    const auto mean = mean_gradient(found);
    for (std::size_t k = 0; k < folds; ++k)
      for (std::size_t a = 0; a < p; ++a)
        for (std::size_t b = 0; b < p; ++b)
          found.covariance(a, b) += (found.gradients(k, a) - mean[a]) *
                                    (found.gradients(k, b) - mean[b]) /
                                    static_cast<double>(folds * (folds - 1));
    return found.covariance;
  }

  /// On demand: a bootstrap of the events that calibrate.
  Matrix simulation_replicas(MatrixView points, std::size_t count,
                             std::uint64_t seed) const override {
    if (ratio_.across_ != Across::on_demand)
      return SummedRatio::simulation_replicas(points, count, seed);
    const auto& calibration =
        dynamic_cast<const OnDemandCalibration&>(*ratio_.calibrations_.front());
    Matrix out(count, points.rows());
    for (std::size_t g = 0; g < points.rows(); ++g) {
      const auto full = check(points.row(g));
      const auto logits = ratio_.mean_logits(ratio_.inputs(x_, full));
      const auto replicas = calibration.replicas(full, count, seed);
      for (std::size_t b = 0; b < count; ++b) {
        const auto values = replicas[b]->log_ratios(logits);
        for (std::size_t i = 0; i < values.size(); ++i)
          out(b, g) += (weights_.empty() ? 1.0 : weights_[i]) * values[i];
      }
    }
    return out;
  }

 private:
  std::vector<double> check(std::span<const double> point) const {
    check_same_size("SummedRatio", "point", point.size(), ratio_.parameters_.size(),
                    "one for each parameter");
    check_finite("SummedRatio", "point", point);
    return ratio_.full_point(point, ratio_.reference_);
  }

  static std::vector<double> mean_gradient(const Evaluation& found) {
    std::vector<double> out(found.gradients.cols(), 0.0);
    for (std::size_t k = 0; k < found.gradients.rows(); ++k)
      for (std::size_t a = 0; a < out.size(); ++a)
        out[a] += found.gradients(k, a) / static_cast<double>(found.gradients.rows());
    return out;
  }

  const ParameterizedClassifierRatio& ratio_;
  Matrix x_;
  std::vector<double> weights_;
};

std::unique_ptr<SummedRatio> ParameterizedClassifierRatio::over(
    MatrixView x, std::span<const double> event_weights) const {
  const char* function = "ParameterizedClassifierRatio::over";
  check_same_size(function, "a row of x", x.cols(), features_, "features, as in the training");
  if (!event_weights.empty()) {
    check_same_size(function, "event_weights", event_weights.size(), x.rows(), "one an event");
    check_finite(function, "event_weights", event_weights);
  }
  for (std::size_t i = 0; i < x.rows(); ++i) check_finite(function, "x", x.row(i));
  return std::make_unique<Sum>(*this, x, event_weights);
}

std::size_t ParameterizedClassifierRatio::count_outside(MatrixView x) const {
  if (calibrations_.empty()) return 0;
  check_same_size("ParameterizedClassifierRatio::count_outside", "a row of x", x.cols(), features_,
                  "features, as in the training");
  const auto middle = parameters_.middle();
  const auto point = full_point(middle, reference_);
  const auto rows = inputs(x, point);
  if (calibrations_.size() != folds())
    return calibrations_.front()->count_outside(mean_logits(rows), point);
  // Outside for every fold.
  std::size_t count = x.rows();
  for (std::size_t k = 0; k < folds(); ++k)
    count = std::min(count, calibrations_[k]->count_outside(classifiers_[k]->logits(rows), point));
  return count;
}

void ParameterizedClassifierRatio::forget_calibrations() const {
  for (const auto& calibration : calibrations_)
    if (const auto* asked = dynamic_cast<const OnDemandCalibration*>(calibration.get()))
      asked->forget();
}

std::size_t ParameterizedClassifierRatio::simulated() const {
  std::size_t out = simulated_;
  for (const auto& calibration : calibrations_)
    if (const auto* asked = dynamic_cast<const OnDemandCalibration*>(calibration.get()))
      out += simulated_at_each_ * asked->fits();
  return out;
}

void ParameterizedClassifierRatio::save(Archive& archive) const {
  archive.set("kind", kind());
  archive.set("denominator", denominator_names[static_cast<int>(denominator_)]);
  archive.set("calibration", across_names[static_cast<int>(across_)]);
  archive.set("parameters", parameters_.names());
  save_region(archive);
  archive.set("reference", reference_);
  archive.set("features", features_);
  archive.set("simulated", simulated());
  archive.set("folds", folds());
  archive.set("calibrations", calibrations_.size());
  for (std::size_t k = 0; k < folds(); ++k)
    save_classifier(*classifiers_[k], archive.child(fmt::format("classifier{}", k)));
  for (std::size_t k = 0; k < calibrations_.size(); ++k)
    calibrations_[k]->save(archive.child(fmt::format("calibration{}", k)));
}

ParameterizedClassifierRatio::ParameterizedClassifierRatio(const Archive& archive,
                                                           ParameterSpace parameters)
    : ParameterizedRatio(std::move(parameters)) {
  const auto find = [&](const char* key, const auto& names) {
    const auto at = std::find(std::begin(names), std::end(names), archive.text(key));
    if (at == std::end(names))
      throw FileError(
          fmt::format("classifier ratio: {} is '{}', which is not known", key, archive.text(key)));
    return at - std::begin(names);
  };
  const auto size = [&](const char* key) {
    const auto value = archive.integer(key);
    if (value < 0) throw FileError(fmt::format("classifier ratio: {} is negative", key));
    return static_cast<std::size_t>(value);
  };
  load_region(archive);
  denominator_ = static_cast<Denominator>(find("denominator", denominator_names));
  across_ = static_cast<Across>(find("calibration", across_names));
  reference_ = archive.numbers("reference");
  features_ = size("features");
  simulated_ = size("simulated");
  if (archive.get<std::vector<std::string>>("parameters") != parameters_.names())
    throw FileError("classifier ratio: it is of other parameters");
  const std::size_t points = denominator_ == Denominator::parameterized ? 2 : 1;
  for (std::size_t k = 0; k < size("folds"); ++k) {
    classifiers_.push_back(load_classifier(archive.child(fmt::format("classifier{}", k))));
    if (classifiers_.back()->features() != features_ + points * parameters_.size())
      throw FileError("classifier ratio: a classifier has another number of inputs");
  }
  for (std::size_t k = 0; k < size("calibrations"); ++k) {
    std::shared_ptr<CalibrationAcross> made;
    if (across_ == Across::smooth)
      made = std::make_shared<SmoothAcross>();
    else
      made = std::make_shared<InterpolatedCalibration>();
    made->load(archive.child(fmt::format("calibration{}", k)));
    calibrations_.push_back(std::move(made));
  }
  const bool fits =
      folds() > 0 && (calibrations_.empty() == (across_ == Across::none)) &&
      (calibrations_.size() <= 1 || calibrations_.size() == folds()) &&
      reference_.size() == (denominator_ == Denominator::marginal ? 0 : parameters_.size()) &&
      across_ != Across::on_demand;
  if (!fits) throw FileError("classifier ratio: its entries do not belong together");
}

}  // namespace neyman
