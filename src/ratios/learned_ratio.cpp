#include "neyman/ratios/learned_ratio.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "neyman/data/splits.hpp"
#include "ratios/designed_events.hpp"
#include "ratios/network_ratio.hpp"
#include "ratios/telling_features.hpp"

namespace neyman {

namespace {

/// A density takes one network for each of them. Of more features a network of x and θ is tried; of
/// fewer, held-out events found it no better, and it takes its time.
constexpr std::size_t most_factors = 24;
/// θ that each held-out event's own is told from, and the share of them that the design draws.
constexpr std::size_t contrasts = 64;
constexpr double from_design = 0.25;
/// Densities are tried with one member, this part of the passes, and so many rows in all.
constexpr std::size_t tried_share = 3, tried_rows = 1000000;
/// Members lack no more of the events than one of so many parts.
constexpr std::size_t least_parts = 5;
/// What full training may gain at most: in standard errors of what the trial is behind, and in
/// parts of what the best model knows.
constexpr double most_gain_in_errors = 5.0, most_gain_in_parts = 0.01;
/// A model with a smaller share in the mean is left out.
constexpr double least_share = 0.05;
/// So many held-out events tell the shares of a mean well enough.
constexpr std::size_t enough_for_shares = 4000;
/// Differences of scores count where they are so many of their errors.
constexpr double significant = 2.0;
/// Features are left out where they are at least one of so many.
constexpr std::size_t least_left_out = 4;
/// Where a model has no idea, its log r counts as this at most.
constexpr double largest = 1e4;
constexpr const char* only_tried = "tried, but not trained in full";

std::size_t held_out_events(std::size_t events) {
  return std::min<std::size_t>(events / 8, std::clamp<std::size_t>(events / 50, 4000, 10000));
}

MatrixView columns(MatrixView x, std::span<const std::size_t> which, Matrix& own) {
  own = Matrix(x.rows(), which.size());
  for (std::size_t i = 0; i < x.rows(); ++i)
    for (std::size_t f = 0; f < which.size(); ++f) own(i, f) = x(i, which[f]);
  return own;
}

/// How much more a density of the parameters knows of θ than another one, each of its own features
/// of the same events: the mean difference of log q(θ|x) in units of its standard error.
double knows_more(const DensityRatio& one, const Samples& of_one, const DensityRatio& other,
                  const Samples& of_other) {
  std::vector<double> difference(of_one.size());
  parallel_blocks(of_one.size(), 64, [&](Block block) {
    for (std::size_t i = block.begin; i < block.end; ++i) {
      const MatrixView own(of_one.theta.row(i).data(), 1, of_one.theta.cols());
      difference[i] = of_one.weight(i) * (one.log_weights(of_one.x.row(i), own)[0] -
                                          other.log_weights(of_other.x.row(i), own)[0]);
    }
  });
  double sum = 0.0, square = 0.0;
  for (const double value : difference) {
    sum += value;
    square += value * value;
  }
  return square > 0.0 ? sum / std::sqrt(square) : 0.0;
}

double log_sum(const double* values, std::size_t count) {
  const double most = *std::max_element(values, values + count);
  double sum = 0.0;
  for (std::size_t j = 0; j < count; ++j) sum += std::exp(values[j] - most);
  return most + std::log(sum);
}

}  // namespace

/// The held-out events, each with the θ that its own is told from.
class LearnedRatio::Choice {
 public:
  /// `proposal`: a density of the parameters, or null, where the design alone draws them.
  Choice(const Samples& events, const DensityRatio* proposal, std::uint64_t seed)
      : events_(events), log_weights_(events.size(), contrasts + 1) {
    const std::size_t n = events.size(), d = events.theta.cols();
    points_.resize(n);
    parallel_blocks(n, 16, [&](Block block) {
      for (std::size_t i = block.begin; i < block.end; ++i) {
        RandomStream random(seed, "contrasts", i);
        Matrix& points = points_[i] = Matrix(contrasts + 1, d);
        Matrix drawn;
        if (proposal != nullptr)
          drawn = proposal->draw(events.x.row(i), contrasts, derive_seed(seed, "proposals", i));
        for (std::size_t j = 0; j <= contrasts; ++j) {
          const bool designed = proposal == nullptr || random.uniform() < from_design;
          const auto from = j == 0     ? events.theta.row(i)
                            : designed ? events.theta.row(random.below(n))
                                       : drawn.row(j - 1);
          std::copy(from.begin(), from.end(), points.row(j).begin());
        }
        if (proposal == nullptr) continue;
        const auto log_density = proposal->log_weights(events.x.row(i), points);
        for (std::size_t j = 0; j <= contrasts; ++j)
          log_weights_(i, j) =
              -std::log((1.0 - from_design) * std::exp(log_density[j]) + from_design);
      }
    });
    total_ = events.weighted() ? events.total_weight() : static_cast<double>(n);
  }

  /// log r of each event at its θ: one row an event.
  Matrix logs(const ParameterizedRatio& of) const {
    Matrix out(events_.size(), contrasts + 1);
    parallel_blocks(events_.size(), 16, [&](Block block) {
      for (std::size_t i = block.begin; i < block.end; ++i) {
        const auto values =
            of.over(MatrixView(events_.x.row(i).data(), 1, events_.x.cols()))->at(points_[i]);
        for (std::size_t j = 0; j < values.size(); ++j)
          out(i, j) = std::isnan(values[j]) ? -largest : std::clamp(values[j], -largest, largest);
      }
    });
    return out;
  }

  /// What a mean of models knows of θ from each event, in nats, times the event's weight.
  /// Of one event in `every`: evenly among all, because files may be sorted.
  std::vector<double> scores(std::span<const Matrix> logs, std::span<const double> shares,
                             std::size_t every = 1) const {
    std::vector<double> out((events_.size() + every - 1) / every);
    parallel_blocks(out.size(), 256, [&](Block block) {
      std::array<double, contrasts + 1> a;
      for (std::size_t k = block.begin; k < block.end; ++k) {
        const std::size_t i = k * every;
        for (std::size_t j = 0; j < a.size(); ++j) {
          a[j] = log_weights_(i, j);
          for (std::size_t m = 0; m < logs.size(); ++m) a[j] += shares[m] * logs[m](i, j);
        }
        out[k] = events_.weight(i) * (a[0] - log_weights_(i, 0) - log_sum(a.data(), a.size()) +
                                      std::log(static_cast<double>(a.size())));
      }
    });
    return out;
  }
  std::vector<double> scores(const Matrix& logs) const {
    constexpr double whole = 1.0;
    return scores({&logs, 1}, {&whole, 1});
  }

  /// What a model knows of one parameter from each event where the others are known: as `scores`,
  /// but the contrasts differ from the event's own θ in this parameter alone.
  std::vector<double> scores(const ParameterizedRatio& of, std::size_t parameter,
                             std::uint64_t seed) const {
    std::vector<double> out(events_.size());
    parallel_blocks(out.size(), 16, [&](Block block) {
      Matrix points(contrasts / 4, events_.theta.cols());
      for (std::size_t i = block.begin; i < block.end; ++i) {
        RandomStream random(seed, "one parameter", i);
        for (std::size_t j = 0; j < points.rows(); ++j) {
          std::copy_n(events_.theta.row(i).data(), points.cols(), points.row(j).data());
          if (j > 0) points(j, parameter) = events_.theta(random.below(out.size()), parameter);
        }
        const auto logs =
            of.over(MatrixView(events_.x.row(i).data(), 1, events_.x.cols()))->at(points);
        const double value = logs[0] - log_sum(logs.data(), logs.size()) +
                             std::log(static_cast<double>(logs.size()));
        out[i] = std::isfinite(value) ? events_.weight(i) * value : 0.0;
      }
    });
    return out;
  }

  double mean(std::span<const double> scores) const {
    double sum = 0.0;
    for (const double score : scores) sum += score;
    return sum / total_;
  }
  /// The standard error of the difference of two means.
  double error(std::span<const double> a, std::span<const double> b) const {
    const double difference = mean(a) - mean(b);
    double square = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i)
      square += std::pow(a[i] - b[i] - events_.weight(i) * difference, 2);
    return std::sqrt(square) / total_;
  }

  /// The convex weights of the highest score: share is moved between two models at a time.
  std::vector<double> best_shares(std::span<const Matrix> logs) const {
    constexpr int sweeps = 4, halvings = 18;
    constexpr double golden = 0.6180339887498949;
    if (logs.size() < 2) return {1.0};
    const std::size_t every = std::max<std::size_t>(1, events_.size() / enough_for_shares);
    std::vector<double> shares(logs.size(), 1.0 / static_cast<double>(logs.size()));
    for (int sweep = 0; sweep < (logs.size() == 2 ? 1 : sweeps); ++sweep)
      for (std::size_t a = 0; a < logs.size(); ++a)
        for (std::size_t b = a + 1; b < logs.size(); ++b) {
          const double both = shares[a] + shares[b];
          const auto at = [&](double share) {
            shares[a] = share;
            shares[b] = both - share;
            return mean(scores(logs, shares, every));
          };
          double low = 0.0, high = both;
          double left = high - golden * (high - low), right = low + golden * (high - low);
          double at_left = at(left), at_right = at(right);
          for (int i = 0; i < halvings; ++i) {
            if (at_left < at_right) {
              low = left;
              left = right;
              at_left = at_right;
              at_right = at(right = low + golden * (high - low));
            } else {
              high = right;
              right = left;
              at_right = at_left;
              at_left = at(left = high - golden * (high - low));
            }
          }
          const double middle = 0.5 * (low + high), inside = at(middle);
          double best = middle, score = inside;
          for (const double end : {0.0, both})
            if (const double value = at(end); value >= score) {
              best = end;
              score = value;
            }
          at(best);
        }
    return shares;
  }

 private:
  const Samples& events_;
  std::vector<Matrix> points_;  // of each event: its own θ, then those it is told from
  Matrix log_weights_;
  double total_ = 0.0;
};

/// The mean of several models' log r, for one event.
struct LearnedRatio::Mean final : SummedRatio {
  std::vector<std::unique_ptr<SummedRatio>> parts;
  std::vector<double> shares;
  bool smooth = true;

  double operator()(std::span<const double> point, std::span<double> gradient) const override {
    double value = 0.0;
    std::vector<double> slopes(gradient.size());
    std::fill(gradient.begin(), gradient.end(), 0.0);
    for (std::size_t m = 0; m < parts.size(); ++m) {
      value += shares[m] * (*parts[m])(point, slopes);
      for (std::size_t p = 0; p < slopes.size(); ++p) gradient[p] += shares[m] * slopes[p];
    }
    return value;
  }
  std::vector<double> at(MatrixView points) const override {
    std::vector<double> out(points.rows(), 0.0);
    for (std::size_t m = 0; m < parts.size(); ++m) {
      const auto values = parts[m]->at(points);
      for (std::size_t g = 0; g < out.size(); ++g) out[g] += shares[m] * values[g];
    }
    return out;
  }
  bool differentiable() const override { return smooth; }
  /// As if the parts fluctuated together: they have the same events.
  Matrix simulation_gradient_covariance(std::span<const double> point) const override {
    Matrix out(point.size(), point.size());
    for (std::size_t m = 0; m < parts.size(); ++m) {
      const auto part = parts[m]->simulation_gradient_covariance(point);
      for (std::size_t p = 0; p < point.size(); ++p)
        for (std::size_t q = 0; q < point.size(); ++q) out(p, q) += shares[m] * part(p, q);
    }
    return out;
  }
  Matrix simulation_replicas(MatrixView points, std::size_t count,
                             std::uint64_t seed) const override {
    Matrix out(count, points.rows());
    for (std::size_t m = 0; m < parts.size(); ++m) {
      const auto part = parts[m]->simulation_replicas(points, count, seed);
      if (part.empty()) return {};
      for (std::size_t b = 0; b < count; ++b)
        for (std::size_t g = 0; g < points.rows(); ++g) out(b, g) += shares[m] * part(b, g);
    }
    return out;
  }
};

LearnedRatio::Config LearnedRatio::Config::from(Settings settings) {
  Config config;
  config.separable = SeparableRatio::Config::from(settings);
  const auto effort = settings.choice(
      {"effort",
       "of training: quick tries models and trains none in full; thorough takes ten members of a "
       "density, not five, and three times the steps"},
      "normal", {"quick", "normal", "thorough"});
  config.effort = effort == "quick"      ? Effort::quick
                  : effort == "thorough" ? Effort::thorough
                                         : Effort::normal;
  return config;
}

/// Trains candidates: on some of the events to try them, on all of them in full.
class LearnedRatio::Training {
 public:
  using Model = std::shared_ptr<ParameterizedRatio>;

  Training(Samples train, Samples held_out, const Design& design, const Config& config,
           Progress* progress, Tasks* tasks)
      : train_(std::move(train)),
        held_out_(std::move(held_out)),
        design_(design),
        config_(config),
        all_(progress, Progress::fine),
        tasks_(tasks),
        members_(config.effort == Effort::thorough ? 10 : 5),
        longer_(config.effort == Effort::thorough ? 3 : 1),
        epochs_(DensityRatio::default_epochs(train_.size())),
        steps_(Progress::fine / (2 * config.separable.folds + 3 + 3 * members_)) {
    const std::size_t tried =
        std::min(train_.size(), tried_rows / std::max<std::size_t>(2, epochs_ / tried_share));
    // Evenly among all, because files may be sorted.
    std::vector<std::size_t> evenly(tried);
    for (std::size_t i = 0; i < tried; ++i) evenly[i] = i * train_.size() / tried;
    some_ = train_.take(evenly);
  }

  const Samples& held_out() const { return held_out_; }
  std::vector<Candidate> candidates() const {
    return {separable, of_features, of_parameters, of_both};
  }

  /// What draws contrasts: a density of the parameters as it is tried, or null where there is none.
  std::shared_ptr<DensityRatio> try_parameters() {
    if (const auto why = DensityRatio::no_prior(design_, train_.theta); !why.empty())
      of_parameters.note = why;
    else if (train_.theta.cols() > most_factors)
      of_parameters.note = fmt::format("of more than {} parameters", most_factors);
    else
      backward_ = density(DensityRatio::Of::parameters, of_parameters, some_, false);
    return backward_;
  }

  /// Takes the columns of the events that `of` gives where a density of the parameters is as good
  /// of them alone. Returns whether it has.
  template <class Columns>
  bool narrow(const Columns& of) {
    Samples few = of(some_), asked = of(held_out_);
    auto without = density(DensityRatio::Of::parameters, of_parameters, few, false);
    if (knows_more(*backward_, held_out_, *without, asked) > significant) return false;
    backward_ = std::move(without);
    train_ = of(train_);
    held_out_ = std::move(asked);
    some_ = std::move(few);
    return true;
  }

  /// All candidates as they are tried; null where one is not.
  Model separable_sums() {
    auto own = config_.separable;
    own.seed = derive_seed(config_.seed, separable.name);
    std::shared_ptr<SeparableRatio> made;
    timed(separable, [&] {
      Progress part(&all_, 2 * own.folds * steps_);
      made = std::make_shared<SeparableRatio>(train_, design_, own, &part, tasks_);
    });
    return made;
  }
  Model try_features() {
    if (!many_features()) return density(DensityRatio::Of::features, of_features, some_, false);
    of_features.note = fmt::format("of more than {} features", most_factors);
    return nullptr;
  }
  Model tried_parameters() const { return backward_; }
  Model try_both() {
    if (many_features()) return network(false);
    of_both.note = fmt::format("of at most {} features", most_factors);
    return nullptr;
  }

  Model whole_features() { return density(DensityRatio::Of::features, of_features, train_, true); }
  Model whole_parameters() {
    return density(DensityRatio::Of::parameters, of_parameters, train_, true);
  }
  Model whole_both() { return network(true); }

  const Samples& train() const { return train_; }

  Candidate separable{.name = "separable", .trained = true}, of_features{.name = "features"},
      of_parameters{.name = "parameters"}, of_both{.name = "network"};

 private:
  bool many_features() const { return train_.features() > most_factors; }

  template <class Work>
  void timed(Candidate& candidate, Work&& work) {
    const double begin = seconds_now();
    work();
    candidate.seconds += seconds_now() - begin;
  }

  std::shared_ptr<DensityRatio> density(DensityRatio::Of of, Candidate& candidate,
                                        const Samples& with, bool whole) {
    DensityRatio::Config own;
    own.of = of;
    own.members = whole ? members_ : 1;
    own.parts = std::max(own.members, least_parts);
    own.epochs = whole ? epochs_ * longer_ : std::max<std::size_t>(2, epochs_ / tried_share);
    own.seed = derive_seed(config_.seed, candidate.name, whole ? 1 : 0);
    own.periodic = config_.separable.periodic;
    std::shared_ptr<DensityRatio> made;
    timed(candidate, [&] {
      Progress part(&all_, own.members * steps_);
      made = std::make_shared<DensityRatio>(with, design_, own, &part, tasks_);
    });
    return made;
  }

  std::shared_ptr<NetworkRatio> network(bool whole) {
    NetworkRatio::Config own;
    own.members = whole ? members_ : 1;
    own.parts = std::max(own.members, least_parts);
    // With fewer passes it does not show what it can do.
    own.epochs = NetworkRatio::default_epochs(train_.size()) * (whole ? longer_ : 1);
    if (whole) own.decay = decay_;
    own.seed = derive_seed(config_.seed, of_both.name, whole ? 1 : 0);
    std::shared_ptr<NetworkRatio> made;
    timed(of_both, [&] {
      Progress part(&all_, own.members * steps_);
      made = std::make_shared<NetworkRatio>(whole ? train_ : some_, design_, own, &part, tasks_);
    });
    decay_ = made->decay();
    return made;
  }

  Samples train_, held_out_, some_;
  const Design& design_;
  const Config& config_;
  Progress all_;
  Tasks* tasks_;
  std::size_t members_, longer_, epochs_, steps_;
  std::shared_ptr<DensityRatio> backward_;
  double decay_ = -1.0;
};

/// A candidate with its model, and what the held-out events say of it.
struct LearnedRatio::Tried {
  Candidate* candidate;
  Training::Model model;
  bool normalised;                                // in x, at every θ
  std::function<Training::Model()> in_full = {};  // of what was only tried
  Matrix logs = {};
  std::vector<double> scores = {};

  void judge(const Choice& choice) {
    logs = choice.logs(*model);
    scores = choice.scores(logs);
    candidate->score = choice.mean(scores);
  }
  /// Whether it may serve several events.
  bool several() const {
    const auto* of_pairs = dynamic_cast<const NetworkRatio*>(model.get());
    return of_pairs != nullptr ? of_pairs->normalised() : normalised;
  }
  bool density() const { return dynamic_cast<const DensityRatio*>(model.get()) != nullptr; }
};

namespace {

template <class Tried, class Counts>
const Tried* best_of(const std::vector<Tried>& tried, Counts&& counts) {
  const Tried* best = nullptr;
  for (const auto& one : tried)
    if (counts(one) && (best == nullptr || one.candidate->score > best->candidate->score))
      best = &one;
  return best;
}

template <class Tried>
std::vector<Matrix> all_logs(const std::vector<Tried>& tried) {
  std::vector<Matrix> out;
  for (const auto& one : tried) out.push_back(one.logs);
  return out;
}

}  // namespace

LearnedRatio::LearnedRatio(const Samples& events, const Design& design, const Config& config,
                           Progress* progress, Tasks* tasks)
    : ParameterizedRatio(design.parameters()) {
  constexpr const char* function = "LearnedRatio";
  across::check_designed_events(function, events, design);
  if (events.weighted()) check_non_negative(function, "events.weights", events.weights);
  const std::size_t n = events.size();
  check_at_least(function, "events.size()", n, 200);
  region_ = DesignRegion(design, events.theta);
  const auto share = static_cast<double>(held_out_events(n)) / static_cast<double>(n);
  const std::array<double, 2> fractions = {1.0 - share, share};
  const std::uint64_t split = derive_seed(config.seed, "choice");
  const auto parts = events.groups.empty() ? random_split(n, fractions, split)
                                           : group_split(events.groups, fractions, split);
  features_ = events.features();
  use_all();

  Training training(events.take(parts[0]), events.take(parts[1]), design, config, progress, tasks);
  if (training.try_parameters()) leave_out(training, events, config);
  const auto features = training.try_features();
  const auto sums = training.separable_sums();
  const auto both = training.try_both();
  const auto parameters = training.tried_parameters();
  const Choice choice(training.held_out(), dynamic_cast<const DensityRatio*>(parameters.get()),
                      derive_seed(config.seed, "contrast"));
  std::vector<Tried> tried;
  for (auto& one :
       {Tried{&training.separable, sums, true},
        Tried{&training.of_features, features, true, [&] { return training.whole_features(); }},
        Tried{&training.of_parameters, parameters, false,
              [&] { return training.whole_parameters(); }},
        Tried{&training.of_both, both, false, [&] { return training.whole_both(); }}})
    if (one.model) {
      tried.push_back(one);
      tried.back().judge(choice);
    }
  train_in_full(tried, choice, config);
  choose(tried, choice);
  candidates_ = training.candidates();
  const std::vector<double> ignorant(training.held_out().size(), 0.0);
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    const auto known = choice.scores(several(), p, derive_seed(config.seed, "told", p));
    if (!(choice.mean(known) > significant * choice.error(known, ignorant))) untold_.push_back(p);
  }
}

void LearnedRatio::leave_out(Training& training, const Samples& events, const Config& config) {
  if (features_ < 2) return;
  const auto& names = events.feature_names;
  auto ranges = std::make_shared<across::FeatureRanges>(events.x);
  auto telling = across::telling_features(training.train(), parameters_);
  // Moments of normal scores say little of angles: these stay.
  for (std::size_t f = 0; f < names.size(); ++f)
    if (std::any_of(config.separable.periodic.begin(), config.separable.periodic.end(),
                    [&](const auto& angle) { return angle.name == names[f]; })) {
      telling.push_back(f);
      ranges->go_round(f);
    }
  std::sort(telling.begin(), telling.end());
  telling.erase(std::unique(telling.begin(), telling.end()), telling.end());
  if (telling.empty() || (features_ - telling.size()) * least_left_out < features_) return;
  used_ = telling;
  if (!training.narrow([&](const Samples& some) { return used(some); })) return use_all();
  ranges_ = std::move(ranges);
  for (std::size_t f = 0; f < names.size(); ++f)
    if (!std::binary_search(used_.begin(), used_.end(), f)) unused_.push_back(names[f]);
}

void LearnedRatio::train_in_full(std::vector<Tried>& tried, const Choice& choice,
                                 const Config& config) {
  if (config.effort != Effort::quick) {
    const auto shares = choice.best_shares(all_logs(tried));
    const Tried& rival = *best_of(tried, [](const Tried& one) { return one.several(); });
    const double best = rival.candidate->score;
    const auto rival_scores = rival.scores;
    for (std::size_t m = 0; m < tried.size(); ++m) {
      auto& one = tried[m];
      if (!one.in_full) continue;
      const double gain = std::max(most_gain_in_errors * choice.error(one.scores, rival_scores),
                                   most_gain_in_parts * best);
      const bool has_share = config.one_event && shares[m] > least_share;
      if (!has_share && !(one.several() && one.candidate->score + gain >= best)) {
        one.candidate->note = only_tried;
        continue;
      }
      one.model = one.in_full();
      one.judge(choice);
    }
  }
  for (auto& one : tried) {
    if (one.in_full && config.effort == Effort::quick) one.candidate->note = only_tried;
    if (one.candidate->note.empty()) one.candidate->trained = true;
  }
}

void LearnedRatio::choose(const std::vector<Tried>& tried, const Choice& choice) {
  const auto shares = choice.best_shares(all_logs(tried));
  const Tried* best = best_of(tried, [](const Tried&) { return true; });
  // What a sum of polynomials is off by in structure adds up over the events of a dataset before it
  // shows in one of them: between equals the density is taken.
  const Tried* chosen = best_of(tried, [](const Tried& one) { return one.normalised; });
  for (const auto& one : tried)
    if (one.normalised && one.candidate->trained && one.density() &&
        one.candidate->score + significant * choice.error(one.scores, chosen->scores) >=
            chosen->candidate->score)
      chosen = &one;
  // A network is normalised as well as polynomials tell: it has to be better for sure.
  for (const auto& one : tried)
    if (!one.normalised && one.several() &&
        one.candidate->score - significant * choice.error(one.scores, chosen->scores) >
            chosen->candidate->score)
      chosen = &one;
  chosen->candidate->chosen = true;
  double kept = 0.0;
  for (const double value : shares) kept += value > least_share ? value : 0.0;
  for (std::size_t m = 0; m < tried.size(); ++m) {
    const auto& one = tried[m];
    one.candidate->behind = best->candidate->score - one.candidate->score;
    one.candidate->behind_error = choice.error(one.scores, best->scores);
    if (shares[m] > least_share) one.candidate->share = shares[m] / kept;
    if (!(one.candidate->share > 0.0) && !one.candidate->chosen) continue;
    if (one.candidate->chosen) chosen_ = models_.size();
    models_.push_back(one.model);
    shares_.push_back(one.candidate->share);
  }
}

void LearnedRatio::use_all() {
  used_.resize(features_);
  std::iota(used_.begin(), used_.end(), std::size_t{0});
}

MatrixView LearnedRatio::used(MatrixView x, Matrix& own) const {
  check_same_size("LearnedRatio", "x", x.cols(), features_, "one column for each feature");
  return uses_all() ? x : columns(x, used_, own);
}

Samples LearnedRatio::used(const Samples& events) const {
  Samples out = events;
  Matrix own;
  columns(events.x, used_, own);
  out.x = std::move(own);
  out.feature_names.clear();
  for (const std::size_t f : used_)
    if (f < events.feature_names.size()) out.feature_names.push_back(events.feature_names[f]);
  return out;
}

std::size_t LearnedRatio::count_outside(MatrixView x) const {
  return uses_all() ? several().count_outside(x) : ranges_->count_outside(x);
}

std::unique_ptr<SummedRatio> LearnedRatio::over(MatrixView all,
                                                std::span<const double> event_weights) const {
  Matrix own;
  const MatrixView x = used(all, own);
  if (x.rows() != 1) return several().over(x, event_weights);
  auto out = std::make_unique<Mean>();
  for (std::size_t m = 0; m < models_.size(); ++m) {
    if (!(shares_[m] > 0.0)) continue;
    out->parts.push_back(models_[m]->over(x, event_weights));
    out->shares.push_back(shares_[m]);
    out->smooth = out->smooth && out->parts.back()->differentiable();
  }
  return out;
}

LogRatios LearnedRatio::log_ratios(MatrixView all, std::span<const double> numerator,
                                   std::span<const double> denominator) const {
  Matrix own;
  const MatrixView x = used(all, own);
  if (x.rows() != 1) return several().log_ratios(x, numerator, denominator);
  LogRatios out(1);
  for (std::size_t m = 0; m < models_.size(); ++m)
    if (shares_[m] > 0.0)
      out[0] += shares_[m] * models_[m]->log_ratios(x, numerator, denominator)[0];
  return out;
}

Matrix LearnedRatio::table(MatrixView x, MatrixView points) const {
  Matrix own;
  if (x.rows() != 1) return several().table(used(x, own), points);
  const auto values = over(x)->at(points);
  Matrix out(1, values.size());
  std::copy(values.begin(), values.end(), out.row(0).begin());
  return out;
}

void LearnedRatio::Candidate::save(Archive& archive) const {
  archive.set("name", name);
  archive.set("trained", trained);
  archive.set("score", score);
  archive.set("behind", behind);
  archive.set("behind_error", behind_error);
  archive.set("share", share);
  archive.set("chosen", chosen);
  archive.set("note", note);
}

LearnedRatio::Candidate LearnedRatio::Candidate::load(const Archive& archive) {
  Candidate out;
  out.name = archive.text("name");
  out.trained = archive.flag("trained");
  out.score = archive.number("score");
  out.behind = archive.number("behind");
  out.behind_error = archive.number("behind_error");
  out.share = archive.number("share");
  out.chosen = archive.flag("chosen");
  out.note = archive.text("note");
  return out;
}

void LearnedRatio::save(Archive& archive) const {
  archive.set("kind", kind());
  save_region(archive);
  archive.set("candidates", candidates_.size());
  for (std::size_t c = 0; c < candidates_.size(); ++c)
    candidates_[c].save(archive.child("candidate" + std::to_string(c)));
  archive.set("shares", shares_);
  archive.set("chosen", chosen_);
  if (!uses_all()) {
    archive.set("features", features_);
    archive.set("used", std::vector<std::int64_t>(used_.begin(), used_.end()));
    archive.set("unused", unused_);
    ranges_->save(archive.child("ranges"));
  }
  archive.set("untold", std::vector<std::int64_t>(untold_.begin(), untold_.end()));
  for (std::size_t m = 0; m < models_.size(); ++m)
    models_[m]->save(archive.child("model" + std::to_string(m)));
}

LearnedRatio::LearnedRatio(const Archive& archive, ParameterSpace parameters)
    : ParameterizedRatio(std::move(parameters)) {
  load_region(archive);
  const auto candidates = archive.integer("candidates"), chosen = archive.integer("chosen");
  shares_ = archive.numbers("shares");
  if (candidates < 0 || candidates > 100 || shares_.empty() || shares_.size() > 100 || chosen < 0 ||
      static_cast<std::size_t>(chosen) >= shares_.size())
    throw FileError("the learned ratio has parts that do not belong together");
  chosen_ = static_cast<std::size_t>(chosen);
  if (archive.has("untold"))
    for (const auto p : archive.get<std::vector<std::int64_t>>("untold")) {
      if (p < 0 || static_cast<std::size_t>(p) >= parameters_.size())
        throw FileError("the learned ratio tells of a parameter that it has not");
      untold_.push_back(static_cast<std::size_t>(p));
    }
  for (std::int64_t c = 0; c < candidates; ++c)
    candidates_.push_back(Candidate::load(archive.child("candidate" + std::to_string(c))));
  for (std::size_t m = 0; m < shares_.size(); ++m) {
    const auto& model = archive.child("model" + std::to_string(m));
    if (model.text("kind") == "density")
      models_.push_back(std::make_shared<DensityRatio>(model, parameters_));
    else if (model.text("kind") == "network")
      models_.push_back(std::make_shared<NetworkRatio>(model, parameters_));
    else
      models_.push_back(std::make_shared<SeparableRatio>(model, parameters_));
    if (models_.back()->features() != models_.front()->features())
      throw FileError("the models of the learned ratio have different features");
  }
  features_ = several().features();
  use_all();
  if (!archive.has("used")) return;
  const auto features = archive.integer("features");
  const auto used = archive.get<std::vector<std::int64_t>>("used");
  used_.assign(used.begin(), used.end());
  features_ = static_cast<std::size_t>(features);
  if (used_.size() != several().features() || used_.size() >= features_ ||
      !std::is_sorted(used.begin(), used.end(), std::less_equal<>()) || used.front() < 0 ||
      used.back() >= features)
    throw FileError("the learned ratio uses features that it has not");
  unused_ = archive.get<std::vector<std::string>>("unused");
  const auto ranges = across::FeatureRanges::load(archive.child("ranges"));
  if (ranges.size() != features_) throw FileError("the learned ratio has ranges of other features");
  ranges_ = std::make_shared<across::FeatureRanges>(ranges);
}

}  // namespace neyman
