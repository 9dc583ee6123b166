#include "neyman/ratios/separable_ratio.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "neyman/data/splits.hpp"
#include "neyman/distributed/tasks.hpp"
#include "ratios/designed_events.hpp"
#include "ratios/linear_directions.hpp"
#include "ratios/periodic_columns.hpp"
#include "ratios/recentring.hpp"
#include "ratios/separable_features.hpp"
#include "ratios/separable_fit.hpp"

namespace neyman {

using namespace separable;

/// What one fold's training and calibration gave.
struct SeparableRatio::Fold {
  Whitening whitening;
  Features features;
  Coefficients coefficients;
  Matrix influence;                   // groups × (features · terms)
  std::vector<double> normalisation;  // coefficients of c(θ)
  Matrix normalisation_influence;     // groups × coefficients
  double effective = 0.0, resolution = 0.0;
  bool converged = true, contrast = false;

  void save(Archive& archive) const {
    whitening.save(archive.child("whitening"));
    features.save(archive.child("features"));
    archive.set("coefficients", coefficients);
    archive.set("influence", influence);
    archive.set("normalisation", normalisation);
    archive.set("normalisation_influence", normalisation_influence);
    archive.set("effective", effective);
    archive.set("resolution", resolution);
    archive.set("converged", converged);
    archive.set("contrast", contrast);
  }
  static Fold load(const Archive& archive) {
    Fold out;
    out.whitening.load(archive.child("whitening"));
    out.features.load(archive.child("features"));
    out.coefficients = archive.get<std::vector<float>>("coefficients");
    out.influence = archive.get<Matrix>("influence");
    out.normalisation = archive.numbers("normalisation");
    out.normalisation_influence = archive.get<Matrix>("normalisation_influence");
    out.effective = archive.number("effective");
    out.resolution = archive.number("resolution");
    out.converged = !archive.has("converged") || archive.flag("converged");  // older ones: not said
    out.contrast = archive.has("contrast") && archive.flag("contrast");
    return out;
  }

  /// Rows of whitened inputs, as many as fill whole groups of eight.
  std::vector<float> whitened(MatrixView x) const {
    std::vector<float> white(round_up(x.rows(), 8) * features.input_stride(), 0.0f);
    whitening.apply(x, white.data());
    return white;
  }

  /// φ of each event, handed over tile by tile.
  template <class Use>
  void each_tile(MatrixView x, Use&& use) const {
    const auto white = whitened(x);
    auto work = features.workspace();
    mlp::Buffer phi(tile * features.stride());
    for (std::size_t begin = 0; begin < x.rows(); begin += tile) {
      const std::size_t count = std::min(tile, x.rows() - begin);
      features.forward(white.data() + begin * features.input_stride(), round_up(count, 8),
                       phi.data(), work, false);
      use(begin, count, phi);
    }
  }
};

namespace {

std::size_t default_degree(std::size_t parameters) {
  return parameters <= 2 ? 4 : (parameters <= 4 ? 3 : 2);
}

/// c(θ) is a logarithm of a mean of exponentials of polynomials: it needs a higher degree.
std::size_t normaliser_degree(std::size_t parameters) {
  constexpr std::size_t degrees[] = {12, 8, 6, 5, 4};
  return parameters <= 5 ? degrees[parameters - 1] : 3;
}

/// Random θ say less than those of a lattice, but what they say has no bias.
std::size_t contrast_nodes(std::size_t lattice_nodes) { return 10 * lattice_nodes; }

void check_weights(const char* function, const Samples& events,
                   std::span<const double> mean_signs) {
  if (mean_signs.empty()) {
    if (events.weighted()) check_non_negative(function, "events.weights", events.weights);
    return;
  }
  check_same_size(function, "mean_signs", mean_signs.size(), events.size(), "one for each event");
  for (const double sign : mean_signs) check_positive(function, "a mean sign", sign);
  check_positive(function, "the sum of events.weights", events.total_weight());
}

/// w, or |w| times the mean sign, with the same sum.
std::vector<double> expected_weights(const Samples& events, std::span<const double> mean_signs) {
  std::vector<double> out(events.size());
  double total = 0.0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = events.weight(i);
    if (!mean_signs.empty()) out[i] = std::abs(out[i]) * mean_signs[i];
    total += out[i];
  }
  if (mean_signs.empty()) return out;
  const double scale = events.total_weight() / total;
  for (double& weight : out) weight *= scale;
  return out;
}

}  // namespace

SeparableRatio::Config SeparableRatio::Config::from(Settings settings) {
  Config config;
  config.hidden = settings.whole_numbers(
      {"hidden", "width of each hidden layer, rounded up to multiples of 16; []: none"},
      config.hidden, Limits::between(1, 4096));
  config.degree = settings.count(
      {"degree", "of the polynomial in θ; 0: 4 for one or two parameters, 3 to four, else 2"},
      config.degree, 0, 12);
  config.nodes = settings.count({"nodes", "of the lattice over θ"}, config.nodes, 16, 65536);
  config.epochs =
      settings.count({"epochs", "passes over the data; 0: a million events in all, 2 to 60 passes"},
                     config.epochs, 0, 100000);
  config.batch_size =
      settings.count({"batch_size", "rows a step; 0: 1/200 of the events, between 64 and 1024"},
                     config.batch_size, 0, 1 << 24);
  config.learning_rate =
      settings.number({"learning_rate", "the highest of a cosine with a short rise"},
                      config.learning_rate, Limits::positive());
  config.periodic = across::read_periodic_features(settings);
  return config;
}

SeparableRatio::SeparableRatio(const Samples& given, const Design& design, const Config& config,
                               Progress* progress, Tasks* tasks, std::span<const double> mean_signs)
    : ParameterizedRatio(design.parameters()) {
  constexpr const char* function = "SeparableRatio";
  across::check_designed_events(function, given, design);
  angles_ =
      std::make_unique<across::PeriodicColumns>(function, config.periodic, given.feature_names);
  ranges_ = std::make_unique<across::FeatureRanges>(given.x);
  for (const auto& angle : *angles_) ranges_->go_round(angle.column);
  Samples with_angles_told;
  if (!angles_->empty()) {
    with_angles_told = given;
    angles_->told(given.x, with_angles_told.x);
    with_angles_told.feature_names = default_feature_names(with_angles_told.x.cols());
  }
  const Samples& events = angles_->empty() ? given : with_angles_told;
  check_weights(function, events, mean_signs);
  check_at_least(function, "config.folds", config.folds, 2);
  check_at_least(function, "events.size()", events.size(), 20 * config.folds);
  region_ = DesignRegion(design, events.theta);
  const std::size_t d = parameters_.size(), n = events.size();
  basis_ = PolynomialBasis(parameters_, config.degree > 0 ? config.degree : default_degree(d));
  normaliser_ = PolynomialBasis(parameters_, normaliser_degree(d));

  const auto partition =
      events.groups.empty()
          ? k_fold(n, config.folds, derive_seed(config.seed, "folds"))
          : group_k_fold(events.groups, config.folds, derive_seed(config.seed, "folds"));
  // Only ratios of weights matter: the events count as their effective size, (Σw)²/Σw².
  const double unit = events.weighted() ? events.effective_size() / events.total_weight() : 1.0;
  const auto expected = expected_weights(events, mean_signs);
  const NodeSets lattice(design, basis_, Integral::lattice, config.nodes,
                         derive_seed(config.seed, "nodes"));
  const NodeSets contrast(design, basis_, Integral::contrast, contrast_nodes(config.nodes),
                          derive_seed(config.seed, "nodes"));

  // Files may have their events sorted, but the first and every block of them stand for all.
  std::vector<double> place(n);
  for (std::size_t i = 0; i < n; ++i)
    place[i] = hashed(events.groups.empty() ? static_cast<std::int64_t>(i) : events.groups[i],
                      config.seed);
  const auto rows_of = [&](std::vector<std::size_t> indices, const Whitening& whitening,
                           std::vector<float>& x, Matrix& theta) {
    std::stable_sort(indices.begin(), indices.end(),
                     [&](std::size_t a, std::size_t b) { return place[a] < place[b]; });
    const Matrix raw = events.x.take(indices);
    const std::size_t stride = round_up(raw.cols(), 8);
    x.assign(raw.rows() * stride, 0.0f);
    whitening.apply(raw, x.data());
    theta = events.theta.take(indices);
    EventRows rows{x.data(), stride, theta, std::vector<double>(indices.size())};
    for (std::size_t i = 0; i < indices.size(); ++i) rows.weights[i] = unit * expected[indices[i]];
    if (!mean_signs.empty())
      for (const std::size_t i : indices) rows.own_weights.push_back(unit * events.weight(i));
    return rows;
  };

  // What training gives; nothing where a lattice turns out to be too coarse.
  const auto train_fold = [&](std::size_t k, const NodeSets& nodes) -> std::unique_ptr<Fold> {
    auto made = std::make_unique<Fold>();
    Fold& fold = *made;
    const std::size_t stride = round_up(basis_.size(), 8);
    Progress part(progress, Progress::fine);
    const auto others = all_but(partition, k);
    std::vector<double> weights;
    if (events.weighted())
      for (const std::size_t i : others) weights.push_back(expected[i]);
    fold.whitening = Whitening(events.x.take(others), weights);
    std::vector<float> x;
    Matrix theta;
    EventRows rows = rows_of(others, fold.whitening, x, theta);
    const std::uint64_t seed = derive_seed(config.seed, "fold", k);

    // The linear part first: it is a convex problem, and a good place to start from.
    const EventRows some = rows.first(std::min<std::size_t>(rows.size(), 100000));
    Matrix directions;
    if (events.features() > most_linear)
      directions = linear_directions(some, events.features(), basis_, most_linear);
    const Features linear(events.features(), {}, seed, directions);
    const auto start = [&] {
      Progress first(&part, Progress::fine / 4);
      return fit_coefficients(linear, Coefficients(linear.size() * stride, 0.0f), basis_, some,
                              nodes, false, &first);
    }();
    if (too_coarse(nodes, start.resolution)) return nullptr;
    fold.features = Features(events.features(), config.hidden, seed, std::move(directions));
    const std::size_t hidden = fold.features.hidden();
    fold.coefficients.assign(fold.features.size() * stride, 0.0f);
    std::copy(start.coefficients.begin(), start.coefficients.end(),
              fold.coefficients.begin() + static_cast<std::ptrdiff_t>(hidden * stride));
    if (hidden > 0) {
      RandomStream random(seed, "separable coefficients");
      const double spread = 0.05 / std::sqrt(static_cast<double>(hidden));
      for (std::size_t i = 0; i < hidden * stride; ++i)
        if (i % stride < basis_.size())
          fold.coefficients[i] = static_cast<float>(spread * random.normal());
      const std::size_t batch = config.batch_size > 0
                                    ? config.batch_size
                                    : std::clamp<std::size_t>(rows.size() / 200, 64, 1024);
      const std::size_t epochs = config.epochs > 0 ? config.epochs : default_epochs(rows.size());
      Progress rest(&part, Progress::fine * 3 / 4);
      if (!train(fold.features, fold.coefficients, basis_, rows, nodes,
                 {epochs, batch, config.learning_rate, seed, &rest}))
        return nullptr;
    }
    const std::size_t typical = std::min<std::size_t>(rows.size(), 20000);
    fold.features.condition(x.data(), std::span(rows.weights).first(typical), fold.coefficients,
                            stride);
    return made;
  };
  const auto calibrate_fold = [&](std::size_t k, const NodeSets& nodes, Fold& fold) {
    Progress part(progress, Progress::fine);
    std::vector<float> x;
    Matrix theta;
    EventRows rows = rows_of(partition[k], fold.whitening, x, theta);
    const bool many = fold.features.linear() < fold.features.inputs();
    const Coefficients start =
        many ? held_out_start(fold.features, fold.coefficients, basis_, rows, nodes)
             : fold.coefficients;
    auto fit = fit_coefficients(fold.features, start, basis_, rows, nodes, true, &part);
    if (too_coarse(nodes, fit.resolution)) return false;
    Normalisation norm{std::vector<double>(normaliser_.size(), 0.0),
                       Matrix(fit.influence.rows(), normaliser_.size())};
    // With so few nodes in an event's region, ∫ π exp h is too uncertain to divide by: then the
    // terms of θ alone, which are among those of step 2, must do.
    if (config.normalise && nodes.integral() != Integral::contrast)
      norm = normalise(fold.features, fit, basis_, normaliser_, parameters_, region_, rows, nodes,
                       derive_seed(config.seed, "normaliser"));
    fold.coefficients = std::move(fit.coefficients);
    fold.influence = std::move(fit.influence);
    fold.effective = fit.effective;
    fold.resolution = fit.resolution;
    fold.converged = fit.converged;
    fold.contrast = nodes.integral() == Integral::contrast;
    fold.normalisation = std::move(norm.coefficients);
    fold.normalisation_influence = std::move(norm.influence);
    return true;
  };
  const auto learn = [&](std::size_t k) {
    auto made = train_fold(k, lattice);
    if (made && calibrate_fold(k, lattice, *made)) return made;
    made = train_fold(k, contrast);
    calibrate_fold(k, contrast, *made);
    return made;
  };
  const Archived fields{
      [](const std::unique_ptr<Fold>& made, Archive& to) { made->save(to); },
      [](const Archive& from) { return std::make_unique<Fold>(Fold::load(from)); }};
  folds_ = spread<std::unique_ptr<Fold>>(tasks, config.folds, learn, fields);
  recentring_ = std::make_unique<across::Recentring>();
  if (config.recentre && mean_signs.empty()) recentre(events, partition);
}

void SeparableRatio::recentre(const Samples& events,
                              const std::vector<std::vector<std::size_t>>& partition) {
  const std::size_t d = parameters_.size(), terms = basis_.size(), stride = round_up(terms, 8);
  // Each fold's scores at its own events, s = φ A ∂P/∂θ − ∂c/∂θ.
  std::vector<std::size_t> order;
  Matrix scores(events.size(), d);
  for (std::size_t k = 0; k < folds_.size(); ++k) {
    const Fold& fold = *folds_[k];
    const std::size_t first = order.size();
    order.insert(order.end(), partition[k].begin(), partition[k].end());
    const Matrix x = events.x.take(partition[k]), theta = events.theta.take(partition[k]);
    fold.each_tile(x, [&](std::size_t begin, std::size_t count, const mlp::Buffer& phi) {
      parallel_blocks(count, 16, [&](Block block) {
        std::vector<double> p(terms), q(normaliser_.size()), dp(terms * d), dq(q.size() * d);
        for (std::size_t r = block.begin; r < block.end; ++r) {
          basis_.values(theta.row(begin + r), p, dp);
          normaliser_.values(theta.row(begin + r), q, dq);
          const auto score = scores.row(first + begin + r);
          for (std::size_t t = 0; t < terms; ++t) {
            double f = 0.0;
            for (std::size_t j = 0; j < fold.features.size(); ++j)
              f += static_cast<double>(phi[r * fold.features.stride() + j]) *
                   static_cast<double>(fold.coefficients[j * stride + t]);
            for (std::size_t i = 0; i < d; ++i) score[i] += f * dp[t * d + i];
          }
          for (std::size_t t = 0; t < q.size(); ++t)
            for (std::size_t i = 0; i < d; ++i) score[i] -= fold.normalisation[t] * dq[t * d + i];
        }
      });
    });
  }
  const Samples used = events.take(order);
  *recentring_ = across::Recentring(parameters_, used.theta, scores, used.weights);
}

SeparableRatio::~SeparableRatio() = default;

std::size_t SeparableRatio::features() const { return ranges_->size(); }

std::size_t SeparableRatio::default_epochs(std::size_t events) {
  return std::clamp<std::size_t>(1000000 / std::max<std::size_t>(events, 1), 2, 60);
}

double SeparableRatio::resolution() const {
  double total = 0.0;
  for (const auto& fold : folds_) total += fold->resolution;
  return total / static_cast<double>(folds_.size());
}

bool SeparableRatio::by_contrast() const {
  return std::any_of(folds_.begin(), folds_.end(), [](const auto& f) { return f->contrast; });
}

bool SeparableRatio::converged() const {
  return std::all_of(folds_.begin(), folds_.end(), [](const auto& f) { return f->converged; });
}

double SeparableRatio::effective_coefficients() const {
  double total = 0.0;
  for (const auto& fold : folds_) total += fold->effective;
  return total;
}

std::size_t SeparableRatio::coefficients() const {
  std::size_t total = 0;
  for (const auto& fold : folds_) total += fold->features.size() * basis_.size();
  return total;
}

LogRatios SeparableRatio::log_ratios(MatrixView x, std::span<const double> numerator,
                                     std::span<const double> denominator) const {
  parameters_.check_inside("SeparableRatio::log_ratios", numerator);
  parameters_.check_inside("SeparableRatio::log_ratios", denominator);
  check_same_size("SeparableRatio::log_ratios", "x", x.cols(), features(),
                  "one column for each feature");
  const std::size_t terms = basis_.size(), stride = round_up(terms, 8);
  std::vector<double> p0(terms), p1(terms), c0(normaliser_.size()), c1(normaliser_.size());
  const auto above = (*recentring_)(numerator), below = (*recentring_)(denominator);
  basis_.values(above, p0);
  basis_.values(below, p1);
  normaliser_.values(above, c0);
  normaliser_.values(below, c1);
  Matrix room;
  const MatrixView told = angles_->told(x, room);
  LogRatios out(x.rows());
  const double share = 1.0 / static_cast<double>(folds_.size());
  for (const auto& fold : folds_) {
    double offset = 0.0;
    for (std::size_t k = 0; k < c0.size(); ++k) offset += fold->normalisation[k] * (c0[k] - c1[k]);
    // φ A (P0 − P1) = φ · v.
    std::vector<double> v(fold->features.size(), 0.0);
    for (std::size_t j = 0; j < v.size(); ++j)
      for (std::size_t k = 0; k < terms; ++k)
        v[j] += static_cast<double>(fold->coefficients[j * stride + k]) * (p0[k] - p1[k]);
    fold->each_tile(told, [&](std::size_t begin, std::size_t count, const mlp::Buffer& phi) {
      for (std::size_t r = 0; r < count; ++r) {
        double sum = -offset;
        const float* row = phi.data() + r * fold->features.stride();
        for (std::size_t j = 0; j < v.size(); ++j) sum += static_cast<double>(row[j]) * v[j];
        out[begin + r] += share * std::clamp(sum, -log_ratio_limit, log_ratio_limit);
      }
    });
  }
  return out;
}

namespace {

/// Of two covariances the larger in each direction: in coordinates in which a is one and b
/// diagonal, one or what b has.
Matrix larger_of(const Matrix& a, const Matrix& b) {
  const std::size_t d = a.rows();
  Eigen::MatrixXd first(d, d), second(d, d);
  for (std::size_t i = 0; i < d; ++i)
    for (std::size_t j = 0; j < d; ++j) {
      const auto row = static_cast<Eigen::Index>(i), column = static_cast<Eigen::Index>(j);
      first(row, column) = a(i, j);
      second(row, column) = b(i, j);
    }
  constexpr double least = 1e-9;  // of the other: what has no noise at all has a little
  first.diagonal() += least * (first.diagonal() + second.diagonal()).cwiseAbs();
  const Eigen::LLT<Eigen::MatrixXd> cholesky(first);
  if (cholesky.info() != Eigen::Success) return b;
  const Eigen::MatrixXd whitened = cholesky.matrixL().solve(second);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solved(
      cholesky.matrixL().solve(Eigen::MatrixXd(whitened.transpose())));
  const Eigen::MatrixXd root =
      cholesky.matrixL() *
      (solved.eigenvectors() * solved.eigenvalues().cwiseMax(1.0).cwiseSqrt().asDiagonal()).eval();
  const Eigen::MatrixXd larger = root * root.transpose();
  Matrix out(d, d);
  for (std::size_t i = 0; i < d; ++i)
    for (std::size_t j = 0; j < d; ++j)
      out(i, j) = larger(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j));
  return out;
}

/// ℓ(θ) = s · P(t) − n c(t) at t = θ + ε(θ), with s = Σ u f(x): no event is kept.
class SeparableSum final : public SummedRatio {
 public:
  SeparableSum(const PolynomialBasis& basis, const PolynomialBasis& normaliser,
               const across::Recentring& recentring)
      : basis_(basis),
        normaliser_(normaliser),
        recentring_(recentring),
        sums(basis.size()),
        c(normaliser.size()) {}

  double operator()(std::span<const double> point, std::span<double> gradient) const override {
    const std::size_t d = point.size();
    Matrix jacobian;
    const auto at = recentring_(point, gradient.empty() ? nullptr : &jacobian);
    const Terms terms(*this, at, gradient.empty() ? 0 : 1);
    const double value = terms.value(sums, c);
    if (gradient.empty()) return value;
    const auto slopes = terms.slopes(sums, c);
    for (std::size_t i = 0; i < d; ++i) {
      gradient[i] = 0.0;
      for (std::size_t j = 0; j < d; ++j) gradient[i] += slopes[j] * jacobian(j, i);
    }
    return value;
  }

  bool differentiable() const override { return true; }

  /// What each group of simulated events moves by way of A and c, or what it moves by way of ε(θ):
  /// that is the noise of the same events, and the larger counts.
  Matrix simulation_gradient_covariance(std::span<const double> point) const override {
    const std::size_t d = point.size();
    const auto at = recentring_(point);
    const Terms terms(*this, at, 2);
    Matrix out(d, d);
    for (std::size_t g = 0; g < group_sums.rows(); ++g) {
      const auto moved = terms.slopes(group_sums.row(g), group_c.row(g));
      for (std::size_t i = 0; i < d; ++i)
        for (std::size_t j = 0; j < d; ++j) out(i, j) += moved[i] * moved[j];
    }
    if (recentring_.empty()) return out;
    Matrix moved(d, d);
    recentring_.add_gradient_covariance(point, terms.information(), moved);
    return larger_of(out, moved);
  }

  /// What each group moves, at any distance.
  Matrix simulation_replicas(MatrixView points, std::size_t count,
                             std::uint64_t seed) const override {
    check_at_least("simulation_replicas", "points", points.rows(), 1);
    std::vector<double> values(points.rows());
    Matrix deviations(group_sums.rows(), points.rows());
    for (std::size_t g = 0; g < points.rows(); ++g) {
      values[g] = (*this)(points.row(g), {});
      const Terms terms(*this, recentring_(points.row(g)), 0);
      for (std::size_t k = 0; k < deviations.rows(); ++k)
        deviations(k, g) = terms.value(group_sums.row(k), group_c.row(k));
    }
    return replicas_of(values, deviations, count, seed);
  }

 private:
  /// Both families of polynomials at a point, with their derivatives of up to an order.
  struct Terms {
    Terms(const SeparableSum& sum, std::span<const double> point, int order)
        : of(sum), d(point.size()), p(sum.sums.size()), q(sum.c.size()) {
      if (order > 0) {
        dp.resize(p.size() * d);
        dq.resize(q.size() * d);
      }
      if (order > 1) {
        ddp.resize(dp.size() * d);
        ddq.resize(dq.size() * d);
      }
      sum.basis_.values(point, p, dp, ddp);
      sum.normaliser_.values(point, q, dq, ddq);
    }

    double value(std::span<const double> of_p, std::span<const double> of_q) const {
      double out = 0.0;
      for (std::size_t k = 0; k < p.size(); ++k) out += of_p[k] * p[k];
      for (std::size_t k = 0; k < q.size(); ++k) out -= of.events * of_q[k] * q[k];
      return out;
    }

    std::vector<double> slopes(std::span<const double> of_p, std::span<const double> of_q) const {
      std::vector<double> out(d, 0.0);
      for (std::size_t k = 0; k < p.size(); ++k)
        for (std::size_t i = 0; i < d; ++i) out[i] += of_p[k] * dp[k * d + i];
      for (std::size_t k = 0; k < q.size(); ++k)
        for (std::size_t i = 0; i < d; ++i) out[i] -= of.events * of_q[k] * dq[k * d + i];
      return out;
    }

    /// −∂²ℓ.
    Matrix information() const {
      Matrix out(d, d);
      for (std::size_t i = 0; i < d * d; ++i) {
        double sum = 0.0;
        for (std::size_t k = 0; k < p.size(); ++k) sum -= of.sums[k] * ddp[k * d * d + i];
        for (std::size_t k = 0; k < q.size(); ++k) sum += of.events * of.c[k] * ddq[k * d * d + i];
        out(i / d, i % d) = sum;
      }
      return out;
    }

    const SeparableSum& of;
    const std::size_t d;
    std::vector<double> p, q, dp, dq, ddp, ddq;
  };

  const PolynomialBasis& basis_;
  const PolynomialBasis& normaliser_;
  const across::Recentring& recentring_;

 public:
  double events = 0.0;         // Σ u
  std::vector<double> sums;    // Σ u f, averaged over folds
  std::vector<double> c;       // averaged over folds
  Matrix group_sums, group_c;  // what each group of simulated events adds to them
};

}  // namespace

std::unique_ptr<SummedRatio> SeparableRatio::over(MatrixView x,
                                                  std::span<const double> event_weights) const {
  check_same_size("SeparableRatio::over", "x", x.cols(), features(), "one column for each feature");
  if (!event_weights.empty())
    check_same_size("SeparableRatio::over", "event_weights", event_weights.size(), x.rows(),
                    "one for each event");
  const std::size_t terms = basis_.size(), stride = round_up(terms, 8);
  auto out = std::make_unique<SeparableSum>(basis_, normaliser_, *recentring_);
  for (std::size_t i = 0; i < x.rows(); ++i)
    out->events += event_weights.empty() ? 1.0 : event_weights[i];
  Matrix room;
  const MatrixView told = angles_->told(x, room);
  const double share = 1.0 / static_cast<double>(folds_.size());
  const std::size_t groups = folds_[0]->influence.rows();
  out->group_sums = Matrix(groups * folds_.size(), terms);
  out->group_c = Matrix(groups * folds_.size(), normaliser_.size());
  for (std::size_t f = 0; f < folds_.size(); ++f) {
    const Fold& fold = *folds_[f];
    std::vector<double> phi_sum(fold.features.size(), 0.0);
    fold.each_tile(told, [&](std::size_t begin, std::size_t count, const mlp::Buffer& phi) {
      for (std::size_t r = 0; r < count; ++r) {
        const double u = event_weights.empty() ? 1.0 : event_weights[begin + r];
        const float* row = phi.data() + r * fold.features.stride();
        for (std::size_t j = 0; j < phi_sum.size(); ++j)
          phi_sum[j] += u * static_cast<double>(row[j]);
      }
    });
    for (std::size_t j = 0; j < phi_sum.size(); ++j)
      for (std::size_t k = 0; k < terms; ++k) {
        const auto a = static_cast<double>(fold.coefficients[j * stride + k]);
        out->sums[k] += share * phi_sum[j] * a;
        for (std::size_t g = 0; g < groups; ++g)
          out->group_sums(f * groups + g, k) +=
              share * phi_sum[j] * fold.influence(g, j * terms + k);
      }
    for (std::size_t k = 0; k < normaliser_.size(); ++k) {
      out->c[k] += share * fold.normalisation[k];
      for (std::size_t g = 0; g < groups; ++g)
        out->group_c(f * groups + g, k) = share * fold.normalisation_influence(g, k);
    }
  }
  return out;
}

Matrix SeparableRatio::functions(MatrixView x) const {
  const std::size_t terms = basis_.size(), stride = round_up(terms, 8);
  std::vector<std::vector<double>> coefficients;
  for (const auto& fold : folds_) {
    coefficients.emplace_back();
    for (std::size_t j = 0; j < fold->features.size(); ++j)
      for (std::size_t k = 0; k < terms; ++k)
        coefficients.back().push_back(static_cast<double>(fold->coefficients[j * stride + k]));
  }
  return functions_of(x, coefficients);
}

Matrix SeparableRatio::functions(MatrixView x, std::uint64_t replica) const {
  const std::size_t terms = basis_.size(), stride = round_up(terms, 8);
  std::vector<std::vector<double>> coefficients;
  for (std::size_t f = 0; f < folds_.size(); ++f) {
    const Fold& fold = *folds_[f];
    RandomStream random(replica, "separable replica", f);
    std::vector<double> fluctuation(fold.influence.rows());
    for (double& value : fluctuation) value = random.normal();
    coefficients.emplace_back();
    for (std::size_t j = 0; j < fold.features.size(); ++j)
      for (std::size_t k = 0; k < terms; ++k) {
        double sum = static_cast<double>(fold.coefficients[j * stride + k]);
        for (std::size_t g = 0; g < fluctuation.size(); ++g)
          sum += fluctuation[g] * fold.influence(g, j * terms + k);
        coefficients.back().push_back(sum);
      }
  }
  return functions_of(x, coefficients);
}

/// Σ_j φ_j(x) A_jk, averaged over the folds; A is features × terms.
Matrix SeparableRatio::functions_of(MatrixView x,
                                    const std::vector<std::vector<double>>& coefficients) const {
  check_same_size("SeparableRatio::functions", "x", x.cols(), features(),
                  "one column for each feature");
  const std::size_t terms = basis_.size();
  Matrix room;
  const MatrixView told = angles_->told(x, room);
  Matrix out(terms, x.rows());
  const double share = 1.0 / static_cast<double>(folds_.size());
  for (std::size_t f = 0; f < folds_.size(); ++f) {
    const Fold& fold = *folds_[f];
    std::vector<double> sums(terms);
    fold.each_tile(told, [&](std::size_t begin, std::size_t count, const mlp::Buffer& phi) {
      for (std::size_t r = 0; r < count; ++r) {
        const float* row = phi.data() + r * fold.features.stride();
        std::fill(sums.begin(), sums.end(), 0.0);
        for (std::size_t j = 0; j < fold.features.size(); ++j)
          for (std::size_t k = 0; k < terms; ++k)
            sums[k] += static_cast<double>(row[j]) * coefficients[f][j * terms + k];
        for (std::size_t k = 0; k < terms; ++k) out(k, begin + r) += share * sums[k];
      }
    });
  }
  return out;
}

std::size_t SeparableRatio::count_outside(MatrixView x) const { return ranges_->count_outside(x); }

void SeparableRatio::save(Archive& archive) const {
  archive.set("kind", kind());
  archive.set("degree", basis_.degree());
  archive.set("normaliser_degree", normaliser_.degree());
  save_region(archive);
  ranges_->save(archive);
  angles_->save(archive);
  recentring_->save(archive.child("recentring"));
  archive.set("folds", folds_.size());
  for (std::size_t k = 0; k < folds_.size(); ++k)
    folds_[k]->save(archive.child("fold" + std::to_string(k)));
}

SeparableRatio::SeparableRatio(const Archive& archive, ParameterSpace parameters)
    : ParameterizedRatio(std::move(parameters)) {
  load_region(archive);
  const auto degree = archive.integer("degree"), of_c = archive.integer("normaliser_degree");
  const auto folds = archive.integer("folds");
  if (degree < 1 || degree > 30 || of_c < 1 || of_c > 30 || folds < 1 || folds > 1000)
    throw FileError("the separable ratio has a degree or a number of folds that is not allowed");
  basis_ = PolynomialBasis(parameters_, static_cast<std::size_t>(degree));
  normaliser_ = PolynomialBasis(parameters_, static_cast<std::size_t>(of_c));
  ranges_ = std::make_unique<across::FeatureRanges>(across::FeatureRanges::load(archive));
  angles_ =
      std::make_unique<across::PeriodicColumns>(across::PeriodicColumns::load(archive, features()));
  const std::size_t inputs = features() + angles_->size();
  recentring_ = std::make_unique<across::Recentring>(
      archive.has_child("recentring")  // older ones: none
          ? across::Recentring::load(archive.child("recentring"), parameters_)
          : across::Recentring());
  for (std::size_t k = 0; k < static_cast<std::size_t>(folds); ++k) {
    auto fold = std::make_unique<Fold>(Fold::load(archive.child("fold" + std::to_string(k))));
    const std::size_t size = fold->features.size(), groups = fold->influence.rows();
    if (fold->whitening.features() != inputs || fold->features.inputs() != inputs ||
        fold->coefficients.size() != size * round_up(basis_.size(), 8) ||
        fold->influence.cols() != size * basis_.size() ||
        fold->normalisation.size() != normaliser_.size() ||
        fold->normalisation_influence.rows() != groups ||
        fold->normalisation_influence.cols() != normaliser_.size())
      throw FileError("the parts of the separable ratio have sizes that do not agree");
    folds_.push_back(std::move(fold));
  }
}

}  // namespace neyman
