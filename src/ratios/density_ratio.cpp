#include "neyman/ratios/density_ratio.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "neyman/data/splits.hpp"
#include "ratios/conditional_density.hpp"
#include "ratios/designed_events.hpp"
#include "ratios/fitted_edges.hpp"
#include "ratios/periodic_columns.hpp"
#include "ratios/recentring.hpp"
#include "ratios/scatter_of_members.hpp"

namespace neyman {

using namespace across;

namespace {

std::size_t default_batch(std::size_t events) {
  return std::clamp<std::size_t>(events / 200 / 32 * 32, 32, 512);
}

std::vector<FeatureScale> scales_of(const ParameterSpace& parameters) {
  std::vector<FeatureScale> out;
  for (const auto& parameter : parameters)
    out.push_back(parameter.periodic ? FeatureScale::of_circle(parameter.low, parameter.high)
                                     : FeatureScale::of_range(parameter.low, parameter.high));
  return out;
}

}  // namespace

struct DensityRatio::Learned {
  Design design;
  FeatureRanges ranges;
  std::vector<FeatureScale> features, parameters;
  std::vector<ConditionalDensity> members;
  std::size_t parts = 0;  // of the events, of which each member lacks one
  // Of a density of the features:
  FittedEdges edges = {};
  Recentring recentring = {};
  // Of a density of the parameters: that of θ alone, where the design does not know it.
  std::optional<ConditionalDensity> prior = {};

  /// What a density of θ alone is given: nothing.
  static ConditionalDensity::Side nothing(std::size_t rows) {
    return {std::vector<float>(rows), std::vector<Place>(rows), rows, 1};
  }
  static std::vector<FeatureScale> of_nothing() { return std::vector<FeatureScale>(1); }

  /// log π(θ), of θ in units of the ranges.
  double log_prior(std::span<const double> point, std::span<double> gradient = {}) const {
    if (!prior) return design.log_density(point, gradient);
    constexpr double one = 1.0;
    const double value = prior->sum(
        nothing(1), ConditionalDensity::side(parameters, MatrixView(point.data(), 1, point.size())),
        {&one, 1}, {}, gradient);
    for (std::size_t p = 0; p < gradient.size(); ++p) gradient[p] *= parameters[p].slope();
    return value;
  }

  /// The same of one θ per row.
  std::vector<double> log_priors(MatrixView points) const {
    std::vector<double> out(points.rows());
    if (prior) {
      prior->values(nothing(1), ConditionalDensity::side(parameters, points), out.data());
    } else {
      for (std::size_t j = 0; j < out.size(); ++j) out[j] = design.log_density(points.row(j));
    }
    return out;
  }

  /// The features at θ, of which there is one for all rows or one per row; what the density of x
  /// has beside that of the features as they are told goes to `log_jacobians`, unless that is null.
  ConditionalDensity::Side features_at(MatrixView x, MatrixView points,
                                       std::vector<double>* log_jacobians) const {
    if (edges.empty()) return ConditionalDensity::side(features, x);
    Matrix told;
    told.append(x);
    if (log_jacobians != nullptr) log_jacobians->assign(x.rows(), 0.0);
    edges.tell(told, points, log_jacobians == nullptr ? nullptr : log_jacobians->data());
    return ConditionalDensity::side(features, told);
  }

  /// θ as the density takes it.
  ConditionalDensity::Side side_of(MatrixView points) const {
    if (recentring.empty()) return ConditionalDensity::side(parameters, points);
    Matrix moved(points.rows(), points.cols());
    for (std::size_t j = 0; j < points.rows(); ++j) {
      const auto to = recentring(points.row(j));
      std::copy(to.begin(), to.end(), moved.row(j).begin());
    }
    return ConditionalDensity::side(parameters, moved);
  }

  /// log of the mean of the members' q: normalised as each of them is, which a mean of their logs
  /// would not be. `logs` gets those of each member, one after the other.
  std::vector<double> log_mean(const ConditionalDensity::Side& v, const ConditionalDensity::Side& u,
                               std::vector<double>& logs) const {
    const std::size_t rows = ConditionalDensity::rows(v, u), count = members.size();
    logs.resize(count * rows);
    for (std::size_t k = 0; k < count; ++k) members[k].values(v, u, logs.data() + k * rows);
    std::vector<double> out(rows);
    for (std::size_t i = 0; i < rows; ++i) {
      double most = logs[i], sum = 0.0;
      for (std::size_t k = 1; k < count; ++k) most = std::max(most, logs[k * rows + i]);
      for (std::size_t k = 0; k < count; ++k) sum += std::exp(logs[k * rows + i] - most);
      out[i] = most + std::log(sum / static_cast<double>(count));
    }
    return out;
  }

  const std::vector<FeatureScale>& given(Of of) const {
    return of == Of::features ? parameters : features;
  }
  const std::vector<FeatureScale>& target(Of of) const {
    return of == Of::features ? features : parameters;
  }
};

DensityRatio::Config DensityRatio::Config::from(Settings settings) {
  Config config;
  if (settings.choice({"of",
                       "of what the density is: the features given θ, or the parameters given x, "
                       "for datasets of one event"},
                      "features", {"features", "parameters"}) == "parameters")
    config.of = Of::parameters;
  config.components =
      settings.count({"components", "normal densities in each mixture"}, config.components, 1, 64);
  config.hidden = settings.whole_numbers(
      {"hidden",
       "width of each hidden layer, rounded up to multiples of 16; []: [32, 32] below 30 000 "
       "events, [64, 64, 64] above"},
      config.hidden, Limits::between(1, 4096));
  config.members =
      settings.count({"members", "densities that are trained, each without a part of the events"},
                     config.members, 1, 100);
  config.epochs = settings.count({"epochs", "passes over the data; 0: by their number, 4 to 200"},
                                 config.epochs, 0, 100000);
  config.batch_size = settings.count({"batch_size", "rows a step; 0: by their number, 32 to 512"},
                                     config.batch_size, 0, 1 << 24);
  config.learning_rate =
      settings.number({"learning_rate", "the highest of a cosine with a short rise"},
                      config.learning_rate, Limits::positive());
  config.periodic = read_periodic_features(settings);
  return config;
}

DensityRatio::DensityRatio(const Samples& events, const Design& design, const Config& config,
                           Progress* progress, Tasks* tasks)
    : ParameterizedRatio(design.parameters()), of_(config.of) {
  constexpr const char* function = "DensityRatio";
  check_designed_events(function, events, design);
  if (events.weighted()) check_non_negative(function, "events.weights", events.weights);
  check_at_least(function, "config.members", config.members, 1);
  check_at_least(function, "config.components", config.components, 1);
  check_at_least(function, "events.size()", events.size(), 20 * config.members);
  if (of_ == Of::parameters)
    if (const auto why = no_prior(design, events.theta); !why.empty())
      fail_argument(function, "config.of", "parameters, and " + why, "features there");
  region_ = DesignRegion(design, events.theta);
  learned_.reset(new Learned{design, FeatureRanges(events.x), {}, scales_of(parameters_), {}, 0});
  const PeriodicColumns angles(function, config.periodic, events.feature_names);
  for (const auto& angle : angles) learned_->ranges.go_round(angle.column);
  Matrix told = events.x;
  if (of_ == Of::features) learned_->edges = FittedEdges(events, parameters_, angles);
  if (!learned_->edges.empty()) learned_->edges.tell(told, events.theta);
  for (std::size_t f = 0; f < events.features(); ++f) {
    const auto* angle = angles.find(f);
    learned_->features.push_back(
        angle != nullptr ? FeatureScale::of_circle(angle->low, angle->high, told.column(f))
        : learned_->edges.tells(f) ? FeatureScale::of_range(0.0, 1.0)
                                   : FeatureScale(told.column(f)));
  }
  const std::size_t parts = parts_for(config.parts, config.members);
  learned_->parts = parts;
  const std::size_t n = events.size();
  const auto x = ConditionalDensity::side(learned_->features, told);
  const auto theta = ConditionalDensity::side(learned_->parameters, events.theta);
  const std::uint64_t split = derive_seed(config.seed, "folds");
  const auto partition =
      events.groups.empty() ? k_fold(n, parts, split) : group_k_fold(events.groups, parts, split);
  const auto options_of = [&](std::size_t k) {
    MixtureFactor::Options options;
    options.components = config.components;
    options.hidden = config.hidden.empty() ? default_hidden(n) : config.hidden;
    options.epochs = config.epochs > 0 ? config.epochs : default_epochs(n);
    options.batch_size = config.batch_size > 0 ? config.batch_size : default_batch(n);
    options.learning_rate = config.learning_rate;
    options.seed = derive_seed(config.seed, "member", k);
    return options;
  };
  const auto learn = [&](std::size_t k) {
    Progress part(progress, Progress::fine);
    const auto others = all_but(partition, k);
    const std::vector<std::uint32_t> train(others.begin(), others.end()),
        held_out(partition[k].begin(), partition[k].end());
    const auto options = options_of(k);
    const bool forward = of_ == Of::features;
    return ConditionalDensity(forward ? theta : x, forward ? x : theta, learned_->given(of_),
                              learned_->target(of_), events.weights, train, held_out, options,
                              &part);
  };
  const Archived fields{[](const ConditionalDensity& made, Archive& to) { made.save(to); },
                        [&](const Archive& from) {
                          return ConditionalDensity::load(from, learned_->given(of_),
                                                          learned_->target(of_));
                        }};
  learned_->members = spread<ConditionalDensity>(tasks, config.members, learn, fields);
  if (of_ == Of::features) recentre(events, partition);
  if (of_ == Of::features || design.has_density()) return;
  const auto others = all_but(partition, 0);
  const std::vector<std::uint32_t> train(others.begin(), others.end()),
      held_out(partition[0].begin(), partition[0].end());
  learned_->prior.emplace(Learned::nothing(n), theta, Learned::of_nothing(), learned_->parameters,
                          events.weights, train, held_out, options_of(members()), nullptr);
}

std::string DensityRatio::no_prior(const Design& design, MatrixView theta) {
  constexpr std::size_t least = 500;
  if (design.has_density()) return {};
  for (std::size_t p = 0; p < theta.cols(); ++p) {
    std::vector<double> values(theta.rows());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = theta(i, p);
    std::sort(values.begin(), values.end());
    const auto different =
        static_cast<std::size_t>(std::unique(values.begin(), values.end()) - values.begin());
    if (different < least)
      return fmt::format("the events have {} values of {}, of which no density can be learned",
                         different, design.parameters()[p].name);
  }
  return {};
}

void DensityRatio::recentre(const Samples& events, const Partition& partition) {
  // Each member's scores at events that it has not learned from.
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < members(); ++k)
    order.insert(order.end(), partition[k].begin(), partition[k].end());
  Matrix scores(order.size(), parameters_.size());
  std::size_t at = 0;
  for (std::size_t k = 0; k < members(); ++k) {
    const Samples part = events.take(partition[k]);
    const Matrix slopes =
        learned_->members[k].slopes(ConditionalDensity::side(learned_->parameters, part.theta),
                                    learned_->features_at(part.x, part.theta, nullptr));
    for (std::size_t i = 0; i < part.size(); ++i, ++at)
      for (std::size_t p = 0; p < parameters_.size(); ++p)
        scores(at, p) = slopes(i, p) * learned_->parameters[p].slope() * FeatureScale::per_place;
  }
  const Samples used = events.take(order);
  learned_->recentring = Recentring(parameters_, used.theta, scores, used.weights);
}

DensityRatio::~DensityRatio() = default;

std::size_t DensityRatio::default_epochs(std::size_t events) {
  // Some 4000 steps: few events are seen often, many seldom.
  return std::clamp<std::size_t>(2500000 / std::max<std::size_t>(events, 1), 4, 200);
}

std::vector<std::size_t> DensityRatio::default_hidden(std::size_t events) {
  constexpr std::size_t many = 30000;
  if (events < many) return {32, 32};
  return {64, 64, 64};
}

std::size_t DensityRatio::members() const { return learned_->members.size(); }

std::size_t DensityRatio::features() const { return learned_->ranges.size(); }

Matrix DensityRatio::draw(std::span<const double> x, std::size_t count, std::uint64_t seed) const {
  check_proposal("DensityRatio::draw", x.size());
  RandomStream random(seed, "points of a density");
  Matrix out = learned_->members[0].draw(
      ConditionalDensity::side(learned_->features, MatrixView(x.data(), 1, x.size())), count,
      random);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      const auto& range = parameters_[p];
      out(i, p) =
          std::clamp(range.low + out(i, p) * (range.high - range.low), range.low, range.high);
    }
  return out;
}

std::vector<double> DensityRatio::log_weights(std::span<const double> x, MatrixView points) const {
  check_proposal("DensityRatio::log_weights", x.size());
  std::vector<double> out(points.rows());
  learned_->members[0].values(
      ConditionalDensity::side(learned_->features, MatrixView(x.data(), 1, x.size())),
      ConditionalDensity::side(learned_->parameters, points), out.data());
  const auto priors = learned_->log_priors(points);
  for (std::size_t j = 0; j < out.size(); ++j) out[j] -= priors[j];
  return out;
}

void DensityRatio::check_proposal(const char* function, std::size_t features_given) const {
  check_same_size(function, "x", features_given, features(), "one value for each feature");
  if (of_ != Of::parameters)
    fail_argument(function, "the ratio", "one of a density of the features",
                  "one of a density of the parameters");
}

Matrix DensityRatio::table(MatrixView x, MatrixView points) const {
  check_same_size("DensityRatio::table", "x", x.cols(), features(), "one column for each feature");
  check_same_size("DensityRatio::table", "points", points.cols(), parameters_.size(),
                  "one column for each parameter");
  const bool forward = of_ == Of::features, common = learned_->edges.empty();
  const auto events =
      common ? ConditionalDensity::side(learned_->features, x) : ConditionalDensity::Side();
  const auto theta = learned_->side_of(points);
  const auto row_of = [](const ConditionalDensity::Side& side, std::size_t i) {
    ConditionalDensity::Side out;
    out.rows = 1;
    out.columns = side.columns;
    const auto begin = static_cast<std::ptrdiff_t>(i * side.columns),
               end = begin + static_cast<std::ptrdiff_t>(side.columns);
    out.z.assign(side.z.begin() + begin, side.z.begin() + end);
    out.places.assign(side.places.begin() + begin, side.places.begin() + end);
    return out;
  };
  Matrix out(x.rows(), points.rows());
  // What the density is given is the same for a whole row or column.
  parallel_tasks(forward ? points.rows() : x.rows(), [&](std::size_t k) {
    std::vector<double> logs, log_jacobians(x.rows(), 0.0);
    const auto own =
        common ? ConditionalDensity::Side()
               : learned_->features_at(x, MatrixView(points.row(k).data(), 1, points.cols()),
                                       &log_jacobians);
    const auto values = learned_->log_mean(row_of(forward ? theta : events, k),
                                           !common   ? own
                                           : forward ? events
                                                     : theta,
                                           logs);
    for (std::size_t m = 0; m < values.size(); ++m)
      (forward ? out(m, k) : out(k, m)) = values[m] + (common ? 0.0 : log_jacobians[m]);
  });
  const auto priors = forward ? std::vector<double>() : learned_->log_priors(points);
  if (!forward)
    for (std::size_t j = 0; j < points.rows(); ++j) {
      const double prior = priors[j];
      for (std::size_t i = 0; i < x.rows(); ++i) out(i, j) -= prior;
    }
  return out;
}

LogRatios DensityRatio::log_ratios(MatrixView x, std::span<const double> numerator,
                                   std::span<const double> denominator) const {
  return from_table("DensityRatio::log_ratios", x, numerator, denominator);
}

/// ℓ(θ) = Σ u_i log q: the events on their scales.
class DensityRatio::Sum final : public SummedRatio {
 public:
  Sum(const DensityRatio& of, MatrixView x, std::span<const double> weights)
      : of_(of), learned_(*of.learned_), rows_(x.rows()) {
    if (learned_.edges.empty())
      x_ = ConditionalDensity::side(learned_.features, x);
    else
      events_.append(x);
    weights_.assign(weights.begin(), weights.end());
    if (weights.empty()) weights_.assign(x.rows(), 1.0);
    for (const double weight : weights_) total_ += weight;
  }

  /// Where an event comes to lie on an edge, the likelihood has a kink.
  bool differentiable() const override { return learned_.edges.empty(); }

  double operator()(std::span<const double> point, std::span<double> gradient) const override {
    const auto theta = of_point(point);
    std::vector<double> logs;
    if (!learned_.edges.empty()) return between_edges(point, theta);
    const auto values = learned_.log_mean(given(theta), target(theta), logs);
    double value = -total_ * log_prior_at(point);
    for (std::size_t i = 0; i < values.size(); ++i) value += weights_[i] * values[i];
    if (gradient.empty()) return value;
    std::fill(gradient.begin(), gradient.end(), 0.0);
    const std::size_t rows = values.size(), count = learned_.members.size();
    std::vector<double> mine(rows), slopes(gradient.size());
    for (std::size_t k = 0; k < count; ++k) {
      for (std::size_t i = 0; i < rows; ++i)
        mine[i] =
            weights_[i] * std::exp(logs[k * rows + i] - values[i]) / static_cast<double>(count);
      slopes_of(learned_.members[k], theta, mine, slopes);
      for (std::size_t p = 0; p < slopes.size(); ++p) gradient[p] += slopes[p];
    }
    learned_.recentring.differentiate(point, gradient);
    if (of_.of_ == Of::parameters) {
      learned_.log_prior(point, slopes);
      for (std::size_t p = 0; p < gradient.size(); ++p) gradient[p] -= total_ * slopes[p];
    }
    return value;
  }

  std::vector<double> at(MatrixView points) const override {
    // Of one event all θ go through the networks side by side.
    if (rows_ != 1) return SummedRatio::at(points);
    const auto theta = learned_.side_of(points);
    std::vector<double> logs;
    if (!learned_.edges.empty()) return between_edges(points, theta);
    auto out = learned_.log_mean(given(theta), target(theta), logs);
    const auto priors =
        of_.of_ == Of::features ? std::vector<double>(out.size()) : learned_.log_priors(points);
    for (std::size_t g = 0; g < out.size(); ++g) out[g] = weights_[0] * (out[g] - priors[g]);
    return out;
  }

  /// What recentring leaves, the noise of the events that it was found with, and the members'
  /// scatter, by which they are off for these data beyond what they are in the mean.
  Matrix simulation_gradient_covariance(std::span<const double> point) const override {
    const std::size_t d = point.size();
    if (!learned_.edges.empty()) {
      // The features as they are told at this θ.
      Sum here(*this);
      here.x_ = learned_.features_at(events_, MatrixView(point.data(), 1, d), nullptr);
      return here.covariance(point);
    }
    return covariance(point);
  }

  /// By what the members say, at any distance.
  Matrix simulation_replicas(MatrixView points, std::size_t count,
                             std::uint64_t seed) const override {
    check_at_least("simulation_replicas", "points", points.rows(), 1);
    const std::size_t members = learned_.members.size();
    if (members < 2 || !differentiable()) return {};
    const auto values = at(points);
    Matrix of_members(members, points.rows());
    std::vector<double> logs;
    for (std::size_t g = 0; g < points.rows(); ++g) {
      const auto theta = of_point(points.row(g));
      learned_.log_mean(given(theta), target(theta), logs);
      for (std::size_t k = 0; k < members; ++k)
        for (std::size_t i = 0; i < rows_; ++i)
          of_members(k, g) += weights_[i] * logs[k * rows_ + i];
    }
    return replicas_of(values, deviations_of_members(std::move(of_members), learned_.parts), count,
                       seed);
  }

 private:
  Matrix covariance(std::span<const double> point) const {
    Matrix out = scatter(point);
    if (!learned_.recentring.empty())
      learned_.recentring.add_gradient_covariance(point, fisher(point), out);
    return out;
  }

  double between_edges(std::span<const double> point, const ConditionalDensity::Side& theta) const {
    std::vector<double> logs, log_jacobians;
    const auto told =
        learned_.features_at(events_, MatrixView(point.data(), 1, point.size()), &log_jacobians);
    const auto values = learned_.log_mean(theta, told, logs);
    double value = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i)
      value += weights_[i] * (values[i] + log_jacobians[i]);
    return value;
  }

  /// Of one event: it lies elsewhere between the edges of each θ.
  std::vector<double> between_edges(MatrixView points,
                                    const ConditionalDensity::Side& theta) const {
    Matrix same(points.rows(), events_.cols());
    for (std::size_t g = 0; g < same.rows(); ++g)
      std::copy_n(events_.data(), events_.cols(), same.row(g).data());
    std::vector<double> logs, log_jacobians;
    const auto told = learned_.features_at(same, points, &log_jacobians);
    auto out = learned_.log_mean(theta, told, logs);
    for (std::size_t g = 0; g < out.size(); ++g) out[g] = weights_[0] * (out[g] + log_jacobians[g]);
    return out;
  }

  Matrix scatter(std::span<const double> point) const {
    Matrix slopes(learned_.members.size(), point.size());
    const auto theta = of_point(point);
    for (std::size_t k = 0; k < slopes.rows(); ++k)
      slopes_of(learned_.members[k], theta, weights_, slopes.row(k));
    return sum_of_squares(deviations_of_members(std::move(slopes), learned_.parts));
  }

  /// Σ u s sᵀ over the events, of the members' mean score s at θ.
  Matrix fisher(std::span<const double> point) const {
    const std::size_t n = x_.rows, d = point.size();
    Matrix same(n, d);
    for (std::size_t i = 0; i < n; ++i) std::copy(point.begin(), point.end(), same.row(i).begin());
    const auto theta = learned_.side_of(same);
    Matrix scores(n, d);
    for (const auto& member : learned_.members) {
      const Matrix slopes = member.slopes(theta, x_);
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t p = 0; p < d; ++p)
          scores(i, p) += slopes(i, p) * learned_.parameters[p].slope() * FeatureScale::per_place /
                          static_cast<double>(learned_.members.size());
    }
    return sum_of_squares(scores, weights_);
  }

  using Side = ConditionalDensity::Side;
  Side of_point(std::span<const double> point) const {
    return learned_.side_of(MatrixView(point.data(), 1, point.size()));
  }
  const Side& given(const Side& theta) const { return of_.of_ == Of::features ? theta : x_; }
  const Side& target(const Side& theta) const { return of_.of_ == Of::features ? x_ : theta; }
  double log_prior_at(std::span<const double> point) const {
    return of_.of_ == Of::features ? 0.0 : learned_.log_prior(point);
  }

  /// ∂/∂θ Σ u_i log q of one member.
  void slopes_of(const ConditionalDensity& member, const Side& theta,
                 std::span<const double> weights, std::span<double> slopes) const {
    const bool forward = of_.of_ == Of::features;
    member.sum(given(theta), target(theta), weights, forward ? slopes : std::span<double>(),
               forward ? std::span<double>() : slopes);
    for (std::size_t p = 0; p < slopes.size(); ++p)
      slopes[p] *= learned_.parameters[p].slope() * (forward ? FeatureScale::per_place : 1.0);
  }

  const DensityRatio& of_;
  const Learned& learned_;
  std::size_t rows_ = 0;
  ConditionalDensity::Side x_;  // where no edge moves
  Matrix events_;               // where one does
  std::vector<double> weights_;
  double total_ = 0.0;
};

std::unique_ptr<SummedRatio> DensityRatio::over(MatrixView x,
                                                std::span<const double> event_weights) const {
  check_same_size("DensityRatio::over", "x", x.cols(), features(), "one column for each feature");
  if (!event_weights.empty())
    check_same_size("DensityRatio::over", "event_weights", event_weights.size(), x.rows(),
                    "one for each event");
  return std::make_unique<Sum>(*this, x, event_weights);
}

std::size_t DensityRatio::count_outside(MatrixView x) const {
  return learned_->ranges.count_outside(x);
}

void DensityRatio::save(Archive& archive) const {
  archive.set("kind", kind());
  archive.set("of", of_ == Of::features ? "features" : "parameters");
  learned_->ranges.save(archive);
  save_region(archive);
  learned_->design.save(archive.child("design"));
  archive.set("members", learned_->members.size());
  archive.set("parts", learned_->parts);
  learned_->edges.save(archive.child("edges"));
  learned_->recentring.save(archive.child("recentring"));
  for (std::size_t f = 0; f < learned_->features.size(); ++f)
    learned_->features[f].save(archive.child("feature" + std::to_string(f)));
  for (std::size_t k = 0; k < learned_->members.size(); ++k)
    learned_->members[k].save(archive.child("member" + std::to_string(k)));
  if (learned_->prior) learned_->prior->save(archive.child("prior"));
}

DensityRatio::DensityRatio(const Archive& archive, ParameterSpace parameters)
    : ParameterizedRatio(std::move(parameters)) {
  load_region(archive);
  const auto& of = archive.text("of");
  if (of != "features" && of != "parameters")
    throw FileError("the density ratio is of something that does not exist: " + of);
  of_ = of == "features" ? Of::features : Of::parameters;
  const auto members = archive.integer("members");
  if (members < 1 || members > 1000)
    throw FileError("the density ratio has a number of members that is not allowed");
  const auto parts = archive.has("parts") ? archive.integer("parts") : members;  // older: not said
  if (parts < members || parts > 1000)
    throw FileError("the density ratio has a number of parts that is not allowed");
  const auto ranges = FeatureRanges::load(archive);
  learned_.reset(
      new Learned{Design(archive.child("design"), parameters_),
                  ranges,
                  {},
                  scales_of(parameters_),
                  {},
                  static_cast<std::size_t>(parts),
                  archive.has_child("edges")
                      ? FittedEdges::load(archive.child("edges"), parameters_, ranges.size())
                      : FittedEdges(),
                  Recentring::load(archive.child("recentring"), parameters_)});
  for (std::size_t f = 0; f < features(); ++f)
    learned_->features.push_back(FeatureScale::load(archive.child("feature" + std::to_string(f))));
  for (std::size_t k = 0; k < static_cast<std::size_t>(members); ++k)
    learned_->members.push_back(ConditionalDensity::load(
        archive.child("member" + std::to_string(k)), learned_->given(of_), learned_->target(of_)));
  if (archive.has_child("prior"))
    learned_->prior = ConditionalDensity::load(archive.child("prior"), Learned::of_nothing(),
                                               learned_->parameters);
  if (of_ == Of::parameters && !learned_->prior && !learned_->design.has_density())
    throw FileError("the density ratio of the parameters has no density of the design");
}

}  // namespace neyman
