#include "ratios/network_ratio.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/polynomial_basis.hpp"
#include "neyman/core/random.hpp"
#include "neyman/data/splits.hpp"
#include "ratios/designed_events.hpp"
#include "ratios/feature_scale.hpp"
#include "ratios/pair_network.hpp"
#include "ratios/recentring.hpp"
#include "ratios/scatter_of_members.hpp"

namespace neyman {

using namespace across;

namespace {

using Side = PairNetwork::Side;
using Embedded = PairNetwork::Embedded;

/// What the network sees of a feature: its place on its scale, and, of values that many events
/// share, which of them it is.
std::size_t columns_of(const FeatureScale& scale) {
  if (scale.kind() == FeatureScale::Kind::constant) return 0;
  const bool yes_or_no = scale.kind() == FeatureScale::Kind::categories && scale.atoms() == 2;
  return 1 + (yes_or_no ? 0 : scale.atoms());
}

/// So many events tell of networks of twice the width.
constexpr std::size_t many = 30000;
/// How much the weights that see x are held back: little where θ is told precisely, and much where
/// few of many features tell.
constexpr std::array<double, 2> decays = {0.1, 1.5};

/// θ over the design that an event's posterior is taken at, to normalise a network.
constexpr std::size_t norm_nodes = 1024;
/// Below so many of them in a posterior they tell nothing.
constexpr double least_nodes = 8.0;
/// The log of a norm is a sum of at most so many polynomials, with so many events for each.
constexpr std::size_t most_polynomials = 150, events_a_polynomial = 10;
constexpr std::size_t highest_degree = 16;
/// Of a member's fold so many events serve at most.
constexpr std::size_t norm_events = 8000;

std::size_t default_batch(std::size_t events) {
  return std::clamp<std::size_t>(events / 100 / 32 * 32, 32, 256);
}

}  // namespace

struct NetworkRatio::Learned {
  FeatureRanges ranges;
  std::vector<FeatureScale> features, parameters;
  std::vector<PairNetwork> members;
  std::size_t parts = 0;  // of the events, of which each member lacks one
  Recentring recentring;
  double decay = 0.0;
  // What each member's log norm is of polynomials in θ; of degree 0: it is not known.
  PolynomialBasis basis = {};
  Matrix norms = {};

  std::size_t columns() const {
    std::size_t out = 0;
    for (const auto& scale : features) out += columns_of(scale);
    return std::max<std::size_t>(1, out);  // where all features are constant
  }

  Side side_of_events(MatrixView x) const {
    Side out{{}, x.rows(), columns()};
    out.z.assign(out.rows * out.columns, 0.0f);
    parallel_blocks(out.rows, default_block, [&](Block block) {
      for (std::size_t i = block.begin; i < block.end; ++i) {
        float* to = out.z.data() + i * out.columns;
        for (std::size_t f = 0; f < features.size(); ++f) {
          const std::size_t count = columns_of(features[f]);
          if (count == 0) continue;
          to[0] = features[f](x(i, f));
          if (count > 1)
            if (const auto atom = features[f].place(x(i, f)).atom; atom >= 0)
              to[1 + static_cast<std::size_t>(atom)] = 1.0f;
          to += count;
        }
      }
    });
    return out;
  }

  /// θ + ε(θ), where the networks are taken.
  Matrix moved(MatrixView points) const {
    Matrix out(points.rows(), points.cols());
    for (std::size_t j = 0; j < out.rows(); ++j) {
      const auto to = recentring(points.row(j));
      std::copy(to.begin(), to.end(), out.row(j).begin());
    }
    return out;
  }

  Side side_of_points(const Matrix& to) const {
    Side out{{}, to.rows(), parameters.size()};
    out.z.resize(out.rows * out.columns);
    for (std::size_t j = 0; j < out.rows; ++j)
      for (std::size_t p = 0; p < out.columns; ++p)
        out.z[j * out.columns + p] = parameters[p](to(j, p));
    return out;
  }

  /// The log norm of a member at a θ that is moved, and its slopes unless they are null.
  double log_norm(std::size_t member, std::span<const double> to, double* slopes) const {
    const std::size_t terms = basis.size(), d = parameters.size();
    if (slopes != nullptr) std::fill_n(slopes, d, 0.0);
    if (terms == 0) return 0.0;
    std::vector<double> values(terms), derivatives(slopes == nullptr ? 0 : terms * d);
    if (slopes == nullptr)
      basis.values(to, values);
    else
      basis.values(to, values, derivatives);
    double out = 0.0;
    for (std::size_t k = 0; k < terms; ++k) {
      out += norms(member, k) * values[k];
      for (std::size_t p = 0; slopes != nullptr && p < d; ++p)
        slopes[p] += norms(member, k) * derivatives[k * d + p];
    }
    return out;
  }

  /// Of what the network sees of a parameter, by the parameter.
  double slope(std::size_t p) const { return parameters[p].slope() * FeatureScale::per_place; }
};

NetworkRatio::NetworkRatio(const Samples& events, const Design& design, const Config& config,
                           Progress* progress, Tasks* tasks)
    : ParameterizedRatio(design.parameters()) {
  constexpr const char* function = "NetworkRatio";
  check_designed_events(function, events, design);
  if (events.weighted()) check_non_negative(function, "events.weights", events.weights);
  check_at_least(function, "config.members", config.members, 1);
  check_at_least(function, "events.size()", events.size(),
                 20 * std::max<std::size_t>(2, config.members));
  learned_.reset(new Learned{FeatureRanges(events.x), {}, {}, {}, 0, {}, 0.0});
  for (std::size_t f = 0; f < events.features(); ++f)
    learned_->features.emplace_back(events.x.column(f));
  for (const auto& parameter : parameters_)
    learned_->parameters.push_back(FeatureScale::of_range(parameter.low, parameter.high));
  learned_->parts = parts_for(config.parts, config.members);
  const std::size_t n = events.size(), parts = learned_->parts;
  const auto x = learned_->side_of_events(events.x), theta = learned_->side_of_points(events.theta);
  const std::uint64_t split = derive_seed(config.seed, "folds");
  const auto partition =
      events.groups.empty() ? k_fold(n, parts, split) : group_k_fold(events.groups, parts, split);
  const auto learn = [&](std::size_t k, double decay, std::size_t fine) {
    Progress part(progress, fine);
    const auto others = all_but(partition, k);
    const std::vector<std::uint32_t> train(others.begin(), others.end()),
        held_out(partition[k].begin(), partition[k].end());
    PairNetwork::Options options;
    options.width = config.width > 0 ? config.width : n < many ? 32 : 64;
    options.hidden = options.pair = {options.width};
    options.decay = decay;
    options.contrasts = config.contrasts;
    options.epochs = config.epochs > 0 ? config.epochs : default_epochs(n);
    options.batch_size = config.batch_size > 0 ? config.batch_size : default_batch(n);
    options.learning_rate = config.learning_rate;
    options.seed = derive_seed(config.seed, "member", k);
    return PairNetwork(x, theta, events.weights, train, held_out, options, &part);
  };
  const Archived fields{
      [](const PairNetwork& made, Archive& to) { made.save(to); },
      [&](const Archive& from) { return PairNetwork::load(from, x.columns, parameters_.size()); }};
  // The first member tries how much it is to be held back, unless that is given.
  const std::size_t tries = config.decay < 0.0 ? decays.size() : 1;
  auto first = spread<PairNetwork>(
      tasks, tries,
      [&](std::size_t i) {
        return learn(0, config.decay < 0.0 ? decays[i] : config.decay, Progress::fine / tries);
      },
      fields);
  std::size_t best = 0;
  for (std::size_t i = 1; i < tries; ++i)
    if (first[i].held_out() > first[best].held_out()) best = i;
  learned_->decay = config.decay < 0.0 ? decays[best] : config.decay;
  learned_->members.push_back(std::move(first[best]));
  for (auto& member : spread<PairNetwork>(
           tasks, config.members - 1,
           [&](std::size_t k) { return learn(k + 1, learned_->decay, Progress::fine); }, fields))
    learned_->members.push_back(std::move(member));
  normalise(events, design, partition, derive_seed(config.seed, "norm"));
  recentre(events, partition);
}

// Over all events, the posteriors add up to the prior. What a member's posteriors of events that it
// has not learned from add up to tells its norm at every θ, with the noise of all events, not of
// those near to that θ alone.
void NetworkRatio::normalise(const Samples& events, const Design& design,
                             const Partition& partition, std::uint64_t seed) {
  const std::size_t d = parameters_.size();
  std::size_t fewest = events.size();
  for (std::size_t k = 0; k < members(); ++k) fewest = std::min(fewest, partition[k].size());
  const std::size_t most = std::min(most_polynomials, fewest / events_a_polynomial);
  std::size_t degree = 0;
  while (degree < highest_degree && PolynomialBasis::count(d, degree + 1) <= most) ++degree;
  if (degree == 0) return;
  const Matrix nodes = design.nodes(norm_nodes, seed, 0);
  const std::size_t count = nodes.rows();
  const PolynomialBasis basis(parameters_, degree);
  const auto size = static_cast<Eigen::Index>(basis.size() + 1);
  Eigen::MatrixXd values(static_cast<Eigen::Index>(count), size);
  std::vector<double> row(basis.size());
  for (std::size_t j = 0; j < count; ++j) {
    basis.values(nodes.row(j), row);
    values(static_cast<Eigen::Index>(j), 0) = 1.0;
    for (std::size_t k = 0; k < row.size(); ++k)
      values(static_cast<Eigen::Index>(j), static_cast<Eigen::Index>(k + 1)) = row[k];
  }
  const Eigen::ColPivHouseholderQR<Eigen::MatrixXd> solved(values);
  Matrix norms(members(), basis.size());
  double repeated = 0.0;  // the chance that two draws from a posterior are the same node
  for (std::size_t k = 0; k < members(); ++k) {
    const auto& member = learned_->members[k];
    const std::size_t used = std::min(partition[k].size(), norm_events);
    std::vector<std::size_t> rows(used);
    for (std::size_t i = 0; i < used; ++i) rows[i] = partition[k][i * partition[k].size() / used];
    const Samples part = events.take(rows);
    const auto x = member.events(learned_->side_of_events(part.x));
    const std::size_t width = used > 0 ? x.values.size() / used : 0;
    const auto points = member.points(learned_->side_of_points(nodes));
    struct Sums {
      std::vector<double> posterior;
      double weight = 0.0, repeated = 0.0;
    };
    const Sums none{std::vector<double>(count, 0.0)};
    const auto sums = reduce_blocks(
        used, 64, none,
        [&](Block block) {
          Sums out = none;
          for (std::size_t i = block.begin; i < block.end; ++i) {
            const auto begin = x.values.begin() + static_cast<std::ptrdiff_t>(i * width);
            auto h = member.values(
                {std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(width)), 1}, points);
            const double highest = *std::max_element(h.begin(), h.end());
            double sum = 0.0, squares = 0.0;
            for (double& value : h) sum += value = std::exp(value - highest);
            const double weight = part.weight(i);
            for (std::size_t j = 0; j < count; ++j) {
              const double share = h[j] / sum;
              out.posterior[j] += weight * share;
              squares += share * share;
            }
            out.weight += weight;
            out.repeated += weight * squares;
          }
          return out;
        },
        [](Sums a, const Sums& b) {
          for (std::size_t j = 0; j < a.posterior.size(); ++j) a.posterior[j] += b.posterior[j];
          a.weight += b.weight;
          a.repeated += b.repeated;
          return a;
        });
    if (!(sums.weight > 0.0)) return;
    repeated += sums.repeated / sums.weight / static_cast<double>(members());
    Eigen::VectorXd logs(static_cast<Eigen::Index>(count));
    for (std::size_t j = 0; j < count; ++j) {
      const double share = sums.posterior[j] / sums.weight * static_cast<double>(count);
      if (!(share > 0.0)) return;
      logs(static_cast<Eigen::Index>(j)) = std::log(share);
    }
    const Eigen::VectorXd fitted = solved.solve(logs);
    for (std::size_t t = 0; t < basis.size(); ++t)
      norms(k, t) = fitted(static_cast<Eigen::Index>(t + 1));
  }
  if (repeated * least_nodes > 1.0) return;
  learned_->basis = basis;
  learned_->norms = std::move(norms);
}

void NetworkRatio::recentre(const Samples& events, const Partition& partition) {
  // Each member's scores at events that it has not learned from.
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < members(); ++k)
    order.insert(order.end(), partition[k].begin(), partition[k].end());
  Matrix scores(order.size(), parameters_.size());
  std::size_t at = 0;
  for (std::size_t k = 0; k < members(); ++k) {
    const Samples part = events.take(partition[k]);
    const auto& member = learned_->members[k];
    const Matrix slopes = member.slopes(member.events(learned_->side_of_events(part.x)),
                                        learned_->side_of_points(part.theta));
    std::vector<double> of_norm(parameters_.size());
    for (std::size_t i = 0; i < part.size(); ++i, ++at) {
      learned_->log_norm(k, part.theta.row(i), of_norm.data());
      for (std::size_t p = 0; p < parameters_.size(); ++p)
        scores(at, p) = slopes(i, p) * learned_->slope(p) - of_norm[p];
    }
  }
  const Samples used = events.take(order);
  learned_->recentring = Recentring(parameters_, used.theta, scores, used.weights);
}

NetworkRatio::~NetworkRatio() = default;

std::size_t NetworkRatio::default_epochs(std::size_t events) {
  return std::clamp<std::size_t>(1250000 / std::max<std::size_t>(events, 1), 2, 100);
}

std::size_t NetworkRatio::members() const { return learned_->members.size(); }

double NetworkRatio::decay() const { return learned_->decay; }

bool NetworkRatio::normalised() const { return learned_->basis.size() > 0; }

std::size_t NetworkRatio::features() const { return learned_->ranges.size(); }

Matrix NetworkRatio::table(MatrixView x, MatrixView points) const {
  check_same_size("NetworkRatio::table", "x", x.cols(), features(), "one column for each feature");
  check_same_size("NetworkRatio::table", "points", points.cols(), parameters_.size(),
                  "one column for each parameter");
  const Matrix moved = learned_->moved(points);
  const auto events = learned_->side_of_events(x), theta = learned_->side_of_points(moved);
  Matrix out(x.rows(), points.rows());
  for (std::size_t k = 0; k < members(); ++k) {
    const auto& member = learned_->members[k];
    const auto of_events = member.events(events), of_points = member.points(theta);
    const std::size_t width = points.rows() > 0 ? of_points.values.size() / points.rows() : 0;
    parallel_tasks(points.rows(), [&](std::size_t j) {
      const auto begin = of_points.values.begin() + static_cast<std::ptrdiff_t>(j * width);
      const auto values = member.values(
          of_events, {std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(width)), 1});
      const double log_norm = learned_->log_norm(k, moved.row(j), nullptr);
      for (std::size_t i = 0; i < x.rows(); ++i)
        out(i, j) += (values[i] - log_norm) / static_cast<double>(members());
    });
  }
  return out;
}

LogRatios NetworkRatio::log_ratios(MatrixView x, std::span<const double> numerator,
                                   std::span<const double> denominator) const {
  return from_table("NetworkRatio::log_ratios", x, numerator, denominator);
}

/// ℓ(θ) = Σ u_i h(x_i, θ): what each member makes of the events is computed once.
class NetworkRatio::Sum final : public SummedRatio {
 public:
  Sum(const NetworkRatio& of, MatrixView x, std::span<const double> weights)
      : learned_(*of.learned_), rows_(x.rows()) {
    const auto events = learned_.side_of_events(x);
    for (const auto& member : learned_.members) events_.push_back(member.events(events));
    weights_.assign(weights.begin(), weights.end());
    if (weights.empty()) weights_.assign(x.rows(), 1.0);
    for (const double weight : weights_) total_ += weight;
  }

  bool differentiable() const override { return true; }

  double operator()(std::span<const double> point, std::span<double> gradient) const override {
    const Matrix to = learned_.moved(MatrixView(point.data(), 1, point.size()));
    double value = 0.0;
    std::vector<double> slopes(gradient.size());
    std::fill(gradient.begin(), gradient.end(), 0.0);
    for (std::size_t k = 0; k < events_.size(); ++k) {
      value += of_member(k, to, slopes) / count();
      for (std::size_t p = 0; p < slopes.size(); ++p) gradient[p] += slopes[p] / count();
    }
    if (!gradient.empty()) learned_.recentring.differentiate(point, gradient);
    return value;
  }

  std::vector<double> at(MatrixView points) const override {
    // Of one event all θ go through the networks side by side.
    if (rows_ != 1) return SummedRatio::at(points);
    const Matrix to = learned_.moved(points);
    const auto theta = learned_.side_of_points(to);
    std::vector<double> out(points.rows(), 0.0);
    for (std::size_t k = 0; k < events_.size(); ++k) {
      const auto& member = learned_.members[k];
      const auto values = member.values(events_[k], member.points(theta));
      for (std::size_t g = 0; g < out.size(); ++g)
        out[g] += weights_[0] * (values[g] - learned_.log_norm(k, to.row(g), nullptr)) / count();
    }
    return out;
  }

  /// What recentring leaves, the noise of the events that it was found with, and the members'
  /// scatter, by which they are off for these data beyond what they are in the mean.
  Matrix simulation_gradient_covariance(std::span<const double> point) const override {
    Matrix out = scatter(point);
    if (!learned_.recentring.empty())
      learned_.recentring.add_gradient_covariance(point, fisher(point), out);
    return out;
  }

  /// By what the members say, at any distance.
  Matrix simulation_replicas(MatrixView points, std::size_t replicas,
                             std::uint64_t seed) const override {
    check_at_least("simulation_replicas", "points", points.rows(), 1);
    const std::size_t members = events_.size();
    if (members < 2) return {};
    Matrix of_members(members, points.rows());
    std::vector<double> values(points.rows());
    for (std::size_t g = 0; g < points.rows(); ++g) {
      const Matrix to = learned_.moved(MatrixView(points.row(g).data(), 1, points.cols()));
      for (std::size_t k = 0; k < members; ++k) {
        of_members(k, g) = of_member(k, to, {});
        values[g] += of_members(k, g) / count();
      }
    }
    return replicas_of(values, deviations_of_members(std::move(of_members), learned_.parts),
                       replicas, seed);
  }

 private:
  double count() const { return static_cast<double>(events_.size()); }
  /// ℓ by one member at a θ that is moved, and its slopes unless they are empty.
  double of_member(std::size_t k, const Matrix& to, std::span<double> slopes) const {
    double out = learned_.members[k].sum(events_[k], learned_.side_of_points(to), weights_, slopes);
    std::vector<double> of_norm(slopes.size());
    out -= total_ * learned_.log_norm(k, to.row(0), slopes.empty() ? nullptr : of_norm.data());
    for (std::size_t p = 0; p < slopes.size(); ++p)
      slopes[p] = slopes[p] * learned_.slope(p) - total_ * of_norm[p];
    return out;
  }

  Matrix scatter(std::span<const double> point) const {
    Matrix slopes(events_.size(), point.size());
    const Matrix to = learned_.moved(MatrixView(point.data(), 1, point.size()));
    for (std::size_t k = 0; k < slopes.rows(); ++k) of_member(k, to, slopes.row(k));
    return sum_of_squares(deviations_of_members(std::move(slopes), learned_.parts));
  }

  /// Σ u s sᵀ over the events, of the members' mean score s at θ.
  Matrix fisher(std::span<const double> point) const {
    const std::size_t d = point.size();
    const Matrix to = learned_.moved(MatrixView(point.data(), 1, d));
    const auto theta = learned_.side_of_points(to);
    Matrix scores(rows_, d);
    std::vector<double> of_norm(d);
    for (std::size_t k = 0; k < events_.size(); ++k) {
      const Matrix slopes = learned_.members[k].slopes(events_[k], theta);
      learned_.log_norm(k, to.row(0), of_norm.data());
      for (std::size_t i = 0; i < rows_; ++i)
        for (std::size_t p = 0; p < d; ++p)
          scores(i, p) += (slopes(i, p) * learned_.slope(p) - of_norm[p]) / count();
    }
    return sum_of_squares(scores, weights_);
  }

  const Learned& learned_;
  std::size_t rows_ = 0;
  std::vector<Embedded> events_;  // of each member
  std::vector<double> weights_;
  double total_ = 0.0;
};

std::unique_ptr<SummedRatio> NetworkRatio::over(MatrixView x,
                                                std::span<const double> event_weights) const {
  check_same_size("NetworkRatio::over", "x", x.cols(), features(), "one column for each feature");
  if (!event_weights.empty())
    check_same_size("NetworkRatio::over", "event_weights", event_weights.size(), x.rows(),
                    "one for each event");
  return std::make_unique<Sum>(*this, x, event_weights);
}

std::size_t NetworkRatio::count_outside(MatrixView x) const {
  return learned_->ranges.count_outside(x);
}

void NetworkRatio::save(Archive& archive) const {
  archive.set("kind", kind());
  learned_->ranges.save(archive);
  archive.set("members", learned_->members.size());
  archive.set("parts", learned_->parts);
  archive.set("decay", learned_->decay);
  archive.set("degree", learned_->basis.size() > 0 ? learned_->basis.degree() : std::size_t{0});
  archive.set("norms", learned_->norms);
  learned_->recentring.save(archive.child("recentring"));
  for (std::size_t f = 0; f < learned_->features.size(); ++f)
    learned_->features[f].save(archive.child("feature" + std::to_string(f)));
  for (std::size_t k = 0; k < learned_->members.size(); ++k)
    learned_->members[k].save(archive.child("member" + std::to_string(k)));
}

NetworkRatio::NetworkRatio(const Archive& archive, ParameterSpace parameters)
    : ParameterizedRatio(std::move(parameters)) {
  const auto members = archive.integer("members"), parts = archive.integer("parts");
  if (members < 1 || members > 1000)
    throw FileError("the network ratio has a number of members that is not allowed");
  if (parts < members || parts > 1000)
    throw FileError("the network ratio has a number of parts that is not allowed");
  learned_.reset(new Learned{FeatureRanges::load(archive),
                             {},
                             {},
                             {},
                             static_cast<std::size_t>(parts),
                             Recentring::load(archive.child("recentring"), parameters_),
                             archive.number("decay")});
  const auto degree = archive.integer("degree");
  if (degree < 0 || degree > static_cast<std::int64_t>(highest_degree))
    throw FileError("the norms of the network ratio have a degree that is not allowed");
  if (degree > 0) {
    learned_->basis = PolynomialBasis(parameters_, static_cast<std::size_t>(degree));
    learned_->norms = archive.get<Matrix>("norms");
    if (learned_->norms.rows() != static_cast<std::size_t>(members) ||
        learned_->norms.cols() != learned_->basis.size())
      throw FileError("the norms of the network ratio have sizes that do not agree");
  }
  for (std::size_t f = 0; f < features(); ++f)
    learned_->features.push_back(FeatureScale::load(archive.child("feature" + std::to_string(f))));
  for (const auto& parameter : parameters_)
    learned_->parameters.push_back(FeatureScale::of_range(parameter.low, parameter.high));
  for (std::size_t k = 0; k < static_cast<std::size_t>(members); ++k)
    learned_->members.push_back(PairNetwork::load(archive.child("member" + std::to_string(k)),
                                                  learned_->columns(), parameters_.size()));
}

}  // namespace neyman
