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
  Samples train = events.take(parts[0]), held_out = events.take(parts[1]);
  features_ = events.features();
  use_all();

  // Evenly among all, because files may be sorted.
  const std::size_t tried = std::min(
      train.size(), tried_rows / std::max<std::size_t>(
                                     2, DensityRatio::default_epochs(train.size()) / tried_share));
  std::vector<std::size_t> evenly(tried);
  for (std::size_t i = 0; i < tried; ++i) evenly[i] = i * train.size() / tried;
  Samples some = train.take(evenly);

  const std::size_t members = config.effort == Effort::thorough ? 10 : 5;
  const std::size_t folds = config.separable.folds;
  Progress all(progress, Progress::fine);
  const std::size_t steps = Progress::fine / (2 * folds + 3 + 3 * members);
  const auto timed = [&](Candidate& candidate, auto&& work) {
    const double begin = seconds_now();
    work();
    candidate.seconds += seconds_now() - begin;
  };

  const auto density = [&](DensityRatio::Of of, Candidate& candidate, const Samples& with,
                           bool whole) {
    DensityRatio::Config own;
    own.of = of;
    own.members = whole ? members : 1;
    own.parts = std::max(own.members, least_parts);
    const std::size_t epochs = DensityRatio::default_epochs(train.size());
    own.epochs = whole ? epochs * (config.effort == Effort::thorough ? 3 : 1)
                       : std::max<std::size_t>(2, epochs / tried_share);
    own.seed = derive_seed(config.seed, candidate.name, whole ? 1 : 0);
    own.periodic = config.separable.periodic;
    std::shared_ptr<DensityRatio> made;
    timed(candidate, [&] {
      Progress part(&all, own.members * steps);
      made = std::make_shared<DensityRatio>(with, design, own, &part, tasks);
    });
    return made;
  };
  Candidate of_features{.name = "features"}, of_parameters{.name = "parameters"};
  std::shared_ptr<DensityRatio> forward, backward;
  if (const auto why = DensityRatio::no_prior(design, train.theta); !why.empty())
    of_parameters.note = why;
  else if (parameters_.size() > most_factors)
    of_parameters.note = fmt::format("of more than {} parameters", most_factors);
  else
    backward = density(DensityRatio::Of::parameters, of_parameters, some, false);
  if (backward) {
    auto telling = across::telling_features(train, parameters_);
    // Moments of normal scores say little of angles: these stay.
    for (const auto& angle : config.separable.periodic)
      for (std::size_t f = 0; f < events.feature_names.size(); ++f)
        if (events.feature_names[f] == angle.name) telling.push_back(f);
    std::sort(telling.begin(), telling.end());
    telling.erase(std::unique(telling.begin(), telling.end()), telling.end());
    if (!telling.empty() && (features_ - telling.size()) * least_left_out >= features_) {
      used_ = telling;
      Samples few = used(some), asked = used(held_out);
      auto without = density(DensityRatio::Of::parameters, of_parameters, few, false);
      if (knows_more(*backward, held_out, *without, asked) > significant) {
        use_all();
      } else {
        backward = std::move(without);
        unused_ = events.feature_names;
        std::erase_if(unused_, [&](const std::string& name) {
          return std::find(few.feature_names.begin(), few.feature_names.end(), name) !=
                 few.feature_names.end();
        });
        train = used(train);
        held_out = std::move(asked);
        some = std::move(few);
      }
    }
  }
  if (train.features() > most_factors)
    of_features.note = fmt::format("of more than {} features", most_factors);
  else
    forward = density(DensityRatio::Of::features, of_features, some, false);

  Candidate separable{.name = "separable", .trained = true};
  std::shared_ptr<SeparableRatio> sums;
  timed(separable, [&] {
    auto own = config.separable;
    own.seed = derive_seed(config.seed, "separable");
    Progress part(&all, 2 * folds * steps);
    sums = std::make_shared<SeparableRatio>(train, design, own, &part, tasks);
  });

  Candidate of_both{.name = "network"};
  std::shared_ptr<NetworkRatio> pairs;
  const auto network = [&](bool whole) {
    NetworkRatio::Config own;
    own.members = whole ? members : 1;
    own.parts = std::max(own.members, least_parts);
    // With fewer passes it does not show what it can do.
    own.epochs = NetworkRatio::default_epochs(train.size());
    if (whole && config.effort == Effort::thorough) own.epochs *= 3;
    if (whole) own.decay = pairs->decay();
    own.seed = derive_seed(config.seed, of_both.name, whole ? 1 : 0);
    timed(of_both, [&] {
      Progress part(&all, own.members * steps);
      pairs = std::make_shared<NetworkRatio>(whole ? train : some, design, own, &part, tasks);
    });
    return pairs;
  };
  if (train.features() > most_factors)
    network(false);
  else
    of_both.note = fmt::format("of at most {} features", most_factors);

  const Choice choice(held_out, backward.get(), derive_seed(config.seed, "contrast"));
  struct Tried {
    Candidate* candidate;
    std::shared_ptr<ParameterizedRatio> model;
    Matrix logs;
    std::vector<double> scores;
    bool normalised;                                                    // in x, at every θ
    std::function<std::shared_ptr<ParameterizedRatio>()> in_full = {};  // of what was only tried
    /// Whether it may serve several events.
    bool several() const {
      const auto* of_pairs = dynamic_cast<const NetworkRatio*>(model.get());
      return of_pairs != nullptr ? of_pairs->normalised() : normalised;
    }
  };
  std::vector<Tried> models_tried;
  const auto judge = [&](Tried& one) {
    one.logs = choice.logs(*one.model);
    one.scores = choice.scores(one.logs);
    one.candidate->score = choice.mean(one.scores);
  };
  for (auto& one :
       {Tried{&separable, sums, {}, {}, true},
        Tried{&of_features,
              forward,
              {},
              {},
              true,
              [&] { return density(DensityRatio::Of::features, of_features, train, true); }},
        Tried{&of_parameters,
              backward,
              {},
              {},
              false,
              [&] { return density(DensityRatio::Of::parameters, of_parameters, train, true); }},
        Tried{&of_both, pairs, {}, {}, false, [&] { return network(true); }}})
    if (one.model) {
      models_tried.push_back(one);
      judge(models_tried.back());
    }
  const auto all_logs = [&] {
    std::vector<Matrix> out;
    for (const auto& one : models_tried) out.push_back(one.logs);
    return out;
  };
  const auto best_of = [&](auto&& counts) {
    const Tried* best = nullptr;
    for (const auto& one : models_tried)
      if (counts(one) && (best == nullptr || one.candidate->score > best->candidate->score))
        best = &one;
    return best;
  };

  // What may win is trained in full.
  if (config.effort != Effort::quick) {
    const auto first_shares = choice.best_shares(all_logs());
    const Tried& rival = *best_of([](const Tried& one) { return one.several(); });
    const double best = rival.candidate->score;
    const auto rival_scores = rival.scores;
    for (std::size_t m = 0; m < models_tried.size(); ++m) {
      auto& one = models_tried[m];
      if (!one.in_full) continue;
      const double gain = std::max(most_gain_in_errors * choice.error(one.scores, rival_scores),
                                   most_gain_in_parts * best);
      const bool shares = config.one_event && first_shares[m] > least_share;
      if (!shares && !(one.several() && one.candidate->score + gain >= best)) {
        one.candidate->note = only_tried;
        continue;
      }
      one.model = one.in_full();
      judge(one);
    }
  }
  for (auto& one : models_tried) {
    if (one.in_full && config.effort == Effort::quick) one.candidate->note = only_tried;
    if (one.candidate->note.empty()) one.candidate->trained = true;
  }

  const auto shares = choice.best_shares(all_logs());
  const Tried* best = best_of([](const Tried&) { return true; });
  // What a sum of polynomials is off by in structure adds up over the events of a dataset before it
  // shows in one of them: between equals the density is taken.
  const Tried* chosen = best_of([](const Tried& one) { return one.normalised; });
  for (const auto& one : models_tried)
    if (one.normalised && one.candidate->trained &&
        std::dynamic_pointer_cast<DensityRatio>(one.model) != nullptr &&
        one.candidate->score + significant * choice.error(one.scores, chosen->scores) >=
            chosen->candidate->score)
      chosen = &one;
  // A network is normalised as well as polynomials tell: it has to be better for sure.
  for (const auto& one : models_tried)
    if (!one.normalised && one.several() &&
        one.candidate->score - significant * choice.error(one.scores, chosen->scores) >
            chosen->candidate->score)
      chosen = &one;
  chosen->candidate->chosen = true;
  double kept = 0.0;
  for (const double value : shares) kept += value > least_share ? value : 0.0;
  for (std::size_t m = 0; m < models_tried.size(); ++m) {
    const auto& one = models_tried[m];
    one.candidate->behind = best->candidate->score - one.candidate->score;
    one.candidate->behind_error = choice.error(one.scores, best->scores);
    if (shares[m] > least_share) one.candidate->share = shares[m] / kept;
    if (!(one.candidate->share > 0.0) && !one.candidate->chosen) continue;
    if (one.candidate->chosen) chosen_ = models_.size();
    models_.push_back(one.model);
    shares_.push_back(one.candidate->share);
  }
  candidates_ = {separable, of_features, of_parameters, of_both};
  const std::vector<double> ignorant(held_out.size(), 0.0);
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    const auto known = choice.scores(several(), p, derive_seed(config.seed, "told", p));
    if (!(choice.mean(known) > significant * choice.error(known, ignorant))) untold_.push_back(p);
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
  Matrix own;
  return several().count_outside(used(x, own));
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
}

}  // namespace neyman
