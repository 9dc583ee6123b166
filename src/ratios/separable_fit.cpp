#include "ratios/separable_fit.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/cholesky.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "ratios/adam.hpp"

namespace neyman::separable {

namespace {

using Eigen::Index;

/// Integrals of different batches use different shifts of the lattice.
constexpr std::size_t node_sets = 64;
/// Groups of events whose influence on the result is kept.
constexpr std::size_t influence_groups = 50;
/// Events from which second derivatives are taken.
constexpr std::size_t hessian_events = 20000;

/// Blocks of events, enough of them to make groups of.
std::size_t block_size(std::size_t events) {
  return std::clamp<std::size_t>(round_up(events / 100, 8), 8, 4096);
}

double sum(const std::vector<double>& values) {
  double total = 0.0;
  for (const double value : values) total += value;
  return total;
}

}  // namespace

EventRows EventRows::first(std::size_t count) const {
  EventRows out = *this;
  out.theta = theta.rows(0, count);
  out.weights.resize(count);
  if (!own_weights.empty()) out.own_weights.resize(count);
  return out;
}

EventRows EventRows::with_own_weights() const {
  EventRows out = *this;
  if (!own_weights.empty()) out.weights = own_weights;
  return out;
}

NodeSets::NodeSets(const Design& design, const PolynomialBasis& basis, Integral integral,
                   std::size_t count, std::uint64_t seed)
    : integral_(!design.rows().empty() && design.rows().rows() <= count ? Integral::exact
                                                                        : integral) {
  const std::size_t terms = basis.size(), stride = round_up(terms, 8);
  std::vector<double> values(terms);
  const bool contrast = integral_ == Integral::contrast;
  auto sets = std::make_shared<std::vector<Terms>>();
  for (std::size_t s = 0; s < (integral_ == Integral::exact ? 1 : node_sets); ++s) {
    Matrix theta = contrast ? design.draw(count, derive_seed(seed, "contrast", s), "nodes")
                            : design.nodes(count, seed, s);
    columns_ = round_up(std::max(count, theta.rows()), 16);
    Terms set{
        {}, mlp::Buffer(columns_ * stride), mlp::Buffer(terms * columns_), mlp::Buffer(columns_)};
    for (std::size_t j = 0; j < columns_; ++j) {
      set.bias[j] = j < theta.rows() ? 0.0f : -1e30f;
      if (j >= theta.rows()) continue;
      basis.values(theta.row(j), values);
      for (std::size_t k = 0; k < terms; ++k) {
        set.by_node[j * stride + k] = static_cast<float>(values[k]);
        set.by_term[k * columns_ + j] = static_cast<float>(values[k]);
      }
    }
    set.theta = std::move(theta);
    sets->push_back(std::move(set));
  }
  sets_ = std::move(sets);
}

NodeSets::Set NodeSets::operator[](std::size_t block) const {
  const Terms& terms = (*sets_)[block % sets_->size()];
  return {integral_ == Integral::contrast, terms.theta.rows(), terms.by_node, terms.by_term,
          terms.bias};
}

TilePass::TilePass(const Features& the_features, const PolynomialBasis& the_basis,
                   std::size_t the_columns)
    : features(the_features),
      basis(the_basis),
      columns(the_columns),
      term_stride(round_up(the_basis.size(), 8)),
      work(the_features.workspace()),
      x(tile * the_features.input_stride()),
      phi(tile * the_features.stride()),
      f(tile * term_stride),
      posterior(tile * columns),
      own(tile * term_stride),
      own_posterior(tile),
      mean(tile * term_stride),
      residual(tile * term_stride),
      log_integrals(tile),
      weights(tile) {}

double TilePass::run(const EventRows& events, std::size_t begin, std::size_t count,
                     const Coefficients& coefficients, const NodeSets::Set& nodes,
                     bool derivatives) {
  const auto& kernels = mlp::kernels();
  const std::size_t terms = basis.size();
  rows = round_up(count, 8);
  std::copy_n(events.x + begin * events.x_stride, count * events.x_stride, x.data());
  std::fill(x.data() + count * events.x_stride, x.data() + rows * events.x_stride, 0.0f);
  features.forward(x.data(), rows, phi.data(), work, derivatives);
  kernels.multiply({phi.data(), features.stride()}, features.size(),
                   {coefficients.data(), term_stride}, nullptr, {f.data(), term_stride}, rows,
                   term_stride);
  kernels.multiply({f.data(), term_stride}, terms, {nodes.by_term.data(), columns},
                   nodes.bias.data(), {posterior.data(), columns}, rows, columns);
  kernels.softmax({posterior.data(), columns}, rows, columns, log_integrals.data());
  kernels.multiply({posterior.data(), columns}, columns, {nodes.by_node.data(), term_stride},
                   nullptr, {mean.data(), term_stride}, rows, term_stride);
  const double log_nodes = std::log(static_cast<double>(nodes.nodes + (nodes.with_own ? 1 : 0)));
  double loss = 0.0;
  std::vector<double> values(terms);
  for (std::size_t r = 0; r < rows; ++r) {
    float* out = residual.data() + r * term_stride;
    if (r >= count) {
      log_integrals[r] -= static_cast<float>(log_nodes);
      weights[r] = own_posterior[r] = 0.0f;
      std::fill(out, out + term_stride, 0.0f);
      continue;
    }
    const double w = events.weights[begin + r];
    weights[r] = static_cast<float>(w);
    basis.values(events.theta.row(begin + r), values);
    double h = 0.0;
    for (std::size_t k = 0; k < terms; ++k) {
      own[r * term_stride + k] = static_cast<float>(values[k]);
      h += values[k] * static_cast<double>(f[r * term_stride + k]);
    }
    double log_sum = static_cast<double>(log_integrals[r]);
    own_posterior[r] = 0.0f;
    if (nodes.with_own) log_sum = include_own(r, h, log_sum);
    for (std::size_t k = 0; k < terms; ++k)
      out[k] = weights[r] * (mean[r * term_stride + k] - own[r * term_stride + k]);
    std::fill(out + terms, out + term_stride, 0.0f);
    log_integrals[r] = static_cast<float>(log_sum - log_nodes);
    loss += w * (log_sum - log_nodes - h);
  }
  return loss;
}

double TilePass::include_own(std::size_t r, double h, double log_sum) {
  const double most = std::max(h, log_sum);
  const double both = most + std::log(std::exp(h - most) + std::exp(log_sum - most));
  const auto mine = static_cast<float>(std::exp(h - both));
  const auto others = static_cast<float>(std::exp(log_sum - both));
  own_posterior[r] = mine;
  for (std::size_t j = 0; j < columns; ++j) posterior[r * columns + j] *= others;
  for (std::size_t k = 0; k < basis.size(); ++k) {
    float& to = mean[r * term_stride + k];
    to = others * to + mine * own[r * term_stride + k];
  }
  return both;
}

double TilePass::resolution() const {
  double total = 0.0;
  for (std::size_t r = 0; r < rows; ++r) {
    const float* p = posterior.data() + r * columns;
    float sums[8] = {own_posterior[r] * own_posterior[r]};  // side by side: columns are 16 n
    for (std::size_t j = 0; j < columns; j += 8)
      for (std::size_t i = 0; i < 8; ++i) sums[i] += p[j + i] * p[j + i];
    const float squares = std::accumulate(sums, sums + 8, 0.0f);
    total += static_cast<double>(weights[r] / squares);
  }
  return total;
}

// --- step 1 -------------------------------------------------------------------------------------

namespace {

/// ∂loss/∂φ of the hidden part, from the residuals and A.
void hidden_gradient(TilePass& pass, const Coefficients& coefficients, float* transposed) {
  const std::size_t hidden = pass.features.hidden(), terms = pass.basis.size();
  for (std::size_t j = 0; j < hidden; ++j)
    for (std::size_t k = 0; k < terms; ++k)
      transposed[k * hidden + j] = coefficients[j * pass.term_stride + k];
  mlp::kernels().multiply({pass.residual.data(), pass.term_stride}, terms, {transposed, hidden},
                          nullptr, {pass.work.above.data(), hidden}, pass.rows, hidden);
}

}  // namespace

bool train(Features& features, Coefficients& coefficients, const PolynomialBasis& basis,
           const EventRows& events, const NodeSets& nodes, const TrainingOptions& options) {
  const std::size_t n = events.size(), batch = std::min(options.batch_size, n);
  const std::size_t batches = n / batch, steps = options.epochs * batches;
  TilePass pass(features, basis, nodes.columns());
  const std::size_t inputs = features.input_stride(), stride = pass.term_stride;
  Moments weight_moments(features.parameters()), coefficient_moments(coefficients.size());
  std::vector<float> weight_gradient(features.parameters(), 0.0f);
  std::vector<float> coefficient_gradient(coefficients.size(), 0.0f);
  mlp::Buffer transposed(round_up(basis.size() * features.hidden(), 16));
  // A tile's events, gathered from anywhere.
  std::vector<float> x(tile * inputs);
  Matrix theta(tile, events.theta.cols());
  EventRows gathered{x.data(), inputs, theta, std::vector<double>(tile)};
  const double scale = static_cast<double>(n) / sum(events.weights) / static_cast<double>(batch);
  std::vector<std::uint32_t> order(n);
  std::size_t step = 0;
  for (std::size_t epoch = 0; epoch < options.epochs; ++epoch) {
    mlp::random_order(order, options.seed, epoch);
    double loss = 0.0, resolution = 0.0;
    for (std::size_t b = 0; b < batches; ++b, ++step) {
      for (std::size_t begin = 0; begin < batch; begin += tile) {
        const std::size_t count = std::min(tile, batch - begin);
        for (std::size_t r = 0; r < count; ++r) {
          const std::size_t i = order[b * batch + begin + r];
          std::copy_n(events.x + i * events.x_stride, inputs, x.data() + r * inputs);
          std::copy_n(events.theta.row(i).data(), theta.cols(), theta.row(r).data());
          gathered.weights[r] = events.weights[i] * scale;
        }
        loss += pass.run(gathered, 0, count, coefficients, nodes[step], true);
        resolution += pass.resolution();
        mlp::kernels().add_outer({pass.phi.data(), features.stride()}, features.size(),
                                 {pass.residual.data(), stride},
                                 {coefficient_gradient.data(), stride}, pass.rows, stride);
        hidden_gradient(pass, coefficients, transposed.data());
        features.backward(pass.x.data(), pass.rows, pass.work, weight_gradient.data());
      }
      const double rate =
          options.learning_rate * scheduled(static_cast<double>(step) / static_cast<double>(steps));
      weight_moments.step(features.weights(), weight_gradient, rate, step + 1);
      coefficient_moments.step(coefficients.data(), coefficient_gradient, rate, step + 1);
    }
    check_stop();
    // Each batch weighs one.
    if (too_coarse(nodes, resolution / static_cast<double>(batches))) return false;
    if (options.progress == nullptr) continue;
    options.progress->merit("loss", loss / static_cast<double>(batches));
    options.progress->reach(static_cast<double>(epoch + 1) / static_cast<double>(options.epochs));
  }
  return true;
}

// --- step 2 -------------------------------------------------------------------------------------

namespace {

constexpr int most_iterations = 30;
/// After these the priors stay, so that the fit can converge.
constexpr int evidence_iterations = 3;
/// Coefficients: of more than these, traces are estimated.
constexpr std::size_t many = 1500;

/// Loss and gradient over all events, by groups.
struct Slope {
  double loss = 0.0;
  Eigen::MatrixXd by_group;  // coefficients × groups
  Eigen::VectorXd total() const { return by_group.rowwise().sum(); }
};

/// The fit of A by Newton's method. Coefficients are numbered j · terms + k.
class Newton {
 public:
  Newton(const Features& features, const PolynomialBasis& basis, const EventRows& events,
         const NodeSets& nodes, bool evidence)
      : features_(features),
        basis_(basis),
        events_(events),
        nodes_(nodes),
        evidence_(evidence),
        size_(features.size() * basis.size()),
        stride_(round_up(basis.size(), 8)),
        precision_(groups(), 1e-3) {}

  /// Where the precisions of the priors are known from fewer events.
  void start_from(std::vector<double> precision) { precision_ = std::move(precision); }
  const std::vector<double>& precision() const { return precision_; }

  CoefficientFit fit(const Coefficients& start, Progress* progress) {
    constexpr double usual_iterations = 10.0;
    Eigen::VectorXd w = to_vector(start);
    Slope slope = gradient(w, events_);
    CoefficientFit result;
    bool stuck = false;
    for (int iteration = 0; iteration < most_iterations; ++iteration) {
      if (progress != nullptr) {
        progress->merit(evidence_ ? "held-out loss" : "loss", slope.loss / sum(events_.weights));
        progress->reach(iteration / usual_iterations);
      }
      if (stuck || iteration == 2 || iteration % 10 == 0) {
        look_anew(w);
        if (iteration > 0 && too_coarse(nodes_, resolution_)) break;  // and only becomes more so
        if (evidence_ && iteration < evidence_iterations) choose_precisions(w, slope.total());
        factorise();
      }
      const Eigen::VectorXd g = slope.total() + prior().cwiseProduct(w);
      Eigen::VectorXd step = -newton_step(g);
      const double expected = -0.5 * g.dot(step);
      // Half a unit of log-likelihood is one standard deviation of one coefficient.
      if (iteration >= (evidence_ ? evidence_iterations : 2) && expected < 0.02) {
        result.converged = true;
        break;
      }
      const double before = objective(slope, w);
      bool lower = false;
      for (int halving = 0; halving < 8 && !lower; ++halving, step *= 0.5) {
        const Eigen::VectorXd next = w + step;
        Slope there = gradient(next, events_);
        // To the precision of the sums.
        if (objective(there, next) > before + 1e-7 * std::abs(before)) continue;
        remember(step, there.total() + prior().cwiseProduct(next) - g);
        w = next;
        slope = std::move(there);
        lower = true;
      }
      // What the steps taught may be wrong by now.
      stuck = !lower;
      if (stuck && steps_.empty()) break;
    }
    if (moved_since_hessian(w) > 0.1) look_anew(w);
    factorise();
    result.coefficients = to_coefficients(w);
    result.resolution = resolution_;
    result.effective = effective();
    if (events_.own_weights.empty()) {
      result.influence = influence(events_, slope);
    } else {
      const EventRows own = events_.with_own_weights();
      result.influence = influence(own, gradient(w, own));
    }
    return result;
  }

 private:
  std::size_t terms() const { return basis_.size(); }
  /// A prior's width is shared by the terms of one degree and one kind of φ.
  std::size_t groups() const { return 2 * basis_.degree(); }
  std::size_t group(std::size_t coefficient) const {
    const std::size_t j = coefficient / terms(), k = coefficient % terms();
    return (j < features_.hidden() ? basis_.degree() : 0) + basis_.degree(k) - 1;
  }
  Eigen::VectorXd prior() const {
    Eigen::VectorXd out(static_cast<Index>(size_));
    for (std::size_t i = 0; i < size_; ++i) out[static_cast<Index>(i)] = precision_[group(i)];
    return out;
  }
  double objective(const Slope& slope, const Eigen::VectorXd& w) const {
    return slope.loss + 0.5 * prior().dot(w.cwiseProduct(w));
  }

  Eigen::VectorXd to_vector(const Coefficients& a) const {
    Eigen::VectorXd w(static_cast<Index>(size_));
    for (std::size_t i = 0; i < size_; ++i)
      w[static_cast<Index>(i)] = static_cast<double>(a[i / terms() * stride_ + i % terms()]);
    return w;
  }
  Coefficients to_coefficients(const Eigen::VectorXd& w) const {
    Coefficients a(features_.size() * stride_, 0.0f);
    for (std::size_t i = 0; i < size_; ++i)
      a[i / terms() * stride_ + i % terms()] = static_cast<float>(w[static_cast<Index>(i)]);
    return a;
  }

  Slope gradient(const Eigen::VectorXd& w, const EventRows& events) const {
    const Coefficients a = to_coefficients(w);
    const std::size_t n = events.size(), block = block_size(n);
    struct Part {
      double loss = 0.0;
      std::vector<float> gradient;
    };
    std::vector<Part> parts((n + block - 1) / block);
    parallel_blocks(n, block, [&](Block at) {
      TilePass pass(features_, basis_, nodes_.columns());
      Part& part = parts[at.index];
      part.gradient.assign(features_.size() * stride_, 0.0f);
      for (std::size_t begin = at.begin; begin < at.end; begin += tile) {
        part.loss +=
            pass.run(events, begin, std::min(tile, at.end - begin), a, nodes_[at.index], false);
        mlp::kernels().add_outer({pass.phi.data(), features_.stride()}, features_.size(),
                                 {pass.residual.data(), stride_}, {part.gradient.data(), stride_},
                                 pass.rows, stride_);
      }
    });
    Slope slope;
    slope.by_group = Eigen::MatrixXd::Zero(static_cast<Index>(size_), influence_groups);
    for (std::size_t b = 0; b < parts.size(); ++b) {
      slope.loss += parts[b].loss;
      slope.by_group.col(static_cast<Index>(b % influence_groups)) += to_vector(parts[b].gradient);
    }
    return slope;
  }

  /// Σ_i w_i φφᵀ ⊗ Cov_i(P), from some of the events, scaled to all.
  Eigen::MatrixXd hessian(const Eigen::VectorXd& w) {
    const Coefficients a = to_coefficients(w);
    const std::size_t n = events_.size();
    const std::size_t t = terms(), pairs = t * (t + 1) / 2;
    const std::size_t phis = features_.size(), width = round_up(phis * (phis + 1) / 2, 8);
    // Each event tells of all pairs of terms: of many terms, few events tell enough.
    constexpr std::size_t many_pairs = 700;
    const std::size_t used =
        std::min(n, pairs > many_pairs ? 200 * phis : std::max(hessian_events, 20 * size_));
    constexpr std::size_t chunk = 8 * tile, columns = mlp::panel_units * mlp::unit;
    // Both factors are symmetric: sums over events of pairs of terms times pairs of φ.
    mlp::Buffer covariance(chunk * pairs), products(chunk * width), sums(pairs * width);
    double weight = 0.0, effective_nodes = 0.0;
    for (std::size_t begin = 0; begin < used; begin += chunk) {
      const std::size_t count = std::min(chunk, used - begin), rows = round_up(count, tile);
      std::vector<double> part((count + tile - 1) / tile, 0.0), part_nodes = part;
      parallel_blocks(count, tile, [&](Block at) {
        TilePass pass(features_, basis_, nodes_.columns());
        const auto& nodes = nodes_[(begin + at.begin) / tile];
        pass.run(events_, begin + at.begin, at.size(), a, nodes, false);
        posterior_covariance(pass, nodes, covariance.data() + at.begin * pairs);
        multiply_pairs(pass, products.data() + at.begin * width, width);
        for (std::size_t r = 0; r < at.size(); ++r)
          part[at.index] += events_.weights[begin + at.begin + r];
        part_nodes[at.index] = pass.resolution();
        // What fills the chunk up weighs nothing.
        std::fill(covariance.data() + (at.begin + at.size()) * pairs,
                  covariance.data() + (at.begin + tile) * pairs, 0.0f);
      });
      weight += sum(part);
      effective_nodes += sum(part_nodes);
      // Few rows at a time, which stay in the cache from one panel of columns to the next.
      for (std::size_t row = 0; row < rows; row += 2 * tile) {
        parallel_tasks((width + columns - 1) / columns, [&](std::size_t task) {
          const std::size_t first = task * columns;
          mlp::kernels().add_outer({covariance.data() + row * pairs, pairs}, pairs,
                                   {products.data() + row * width + first, width},
                                   {sums.data() + first, width}, std::min(2 * tile, rows - row),
                                   std::min(columns, width - first));
        });
      }
    }
    resolution_ = effective_nodes / weight;
    return assemble(sums, width, sum(events_.weights) / weight);
  }

  /// φ_i φ_j of each event of a tile; i ≤ j.
  static void multiply_pairs(const TilePass& pass, float* out, std::size_t stride) {
    const std::size_t phis = pass.features.size();
    for (std::size_t r = 0; r < pass.rows; ++r) {
      const float* phi = pass.phi.data() + r * pass.features.stride();
      float* to = out + r * stride;
      for (std::size_t i = 0; i < phis; ++i)
        for (std::size_t j = i; j < phis; ++j) *to++ = phi[i] * phi[j];
    }
  }

  /// Cov(P_k, P_l) over the posterior of each event of a tile, times its weight; k ≤ l.
  static void posterior_covariance(const TilePass& pass, const NodeSets::Set& nodes, float* out) {
    const std::size_t t = pass.basis.size(), pairs = t * (t + 1) / 2;
    // As many pairs at a time as the products of all nodes stay in the cache for.
    constexpr std::size_t some = mlp::panel_units * mlp::unit;
    mlp::Buffer products(pass.columns * some), means(tile * some);
    struct Run {
      std::size_t k, l, count;  // the pairs (k, l), (k, l + 1), …
    };
    std::size_t k = 0, l = 0;
    for (std::size_t begin = 0; begin < pairs; begin += some) {
      std::vector<Run> runs;
      const std::size_t size = std::min(some, pairs - begin);
      for (std::size_t left = size; left > 0; left -= runs.back().count) {
        runs.push_back({k, l, std::min(left, t - l)});
        l += runs.back().count;
        if (l == t) l = ++k;
      }
      for (std::size_t j = 0; j < pass.columns; ++j) {
        const float* p = nodes.by_node.data() + j * pass.term_stride;
        float* to = products.data() + j * some;
        for (const Run& run : runs)
          for (std::size_t i = 0; i < run.count; ++i) *to++ = p[run.k] * p[run.l + i];
      }
      mlp::kernels().multiply({pass.posterior.data(), pass.columns}, pass.columns,
                              {products.data(), some}, nullptr, {means.data(), some}, pass.rows,
                              round_up(size, mlp::unit));
      for (std::size_t r = 0; r < pass.rows; ++r) {
        const float* mean = pass.mean.data() + r * pass.term_stride;
        const float* from = means.data() + r * some;
        const float* own = pass.own.data() + r * pass.term_stride;
        const float mine = pass.own_posterior[r];
        float* to = out + r * pairs + begin;
        for (const Run& run : runs)
          for (std::size_t i = run.l; i < run.l + run.count; ++i)
            *to++ =
                pass.weights[r] * (*from++ + mine * own[run.k] * own[i] - mean[run.k] * mean[i]);
      }
    }
  }

  /// All coefficients of one pair of φ lie together, so that memory is written in order.
  Eigen::MatrixXd assemble(const mlp::Buffer& sums, std::size_t width, double scale) const {
    Eigen::MatrixXd out(static_cast<Index>(size_), static_cast<Index>(size_));
    const auto t = static_cast<Index>(terms()), count = static_cast<Index>(features_.size());
    std::size_t pair = 0;
    for (Index i = 0; i < count; ++i)
      for (Index j = i; j < count; ++j, ++pair) {
        const float* from = sums.data() + pair;
        for (Index k = 0; k < t; ++k)
          for (Index l = k; l < t; ++l, from += width)
            out(i * t + k, j * t + l) = out(i * t + l, j * t + k) = out(j * t + k, i * t + l) =
                out(j * t + l, i * t + k) = scale * static_cast<double>(*from);
      }
    return out;
  }

  /// Second derivatives at w.
  void look_anew(const Eigen::VectorXd& w) {
    hessian_ = hessian(w);
    hessian_at_ = w;
    factored_ = false;
  }
  /// How far w is from where the second derivatives were taken, in standard deviations: the root
  /// of the mean square over the coefficients.
  double moved_since_hessian(const Eigen::VectorXd& w) const {
    const Eigen::VectorXd by = w - hessian_at_;
    return std::sqrt(by.dot(hessian_ * by) / static_cast<double>(size_));
  }

  void factorise() {
    if (std::exchange(factored_, true)) return;
    steps_.clear();
    const double largest = hessian_.diagonal().maxCoeff();
    // Single precision inside: what it cannot resolve is not determined.
    for (double part = 1e-7; part < 1.0; part *= 10.0) {
      factor_ = hessian_;
      factor_.diagonal() += prior();
      factor_.diagonal().array() += part * largest;
      if (cholesky(factor_.data(), size_)) return;
    }
  }

  /// What a step taught: s, by which it moved, and y, by which that changed the gradient.
  struct Step {
    Eigen::VectorXd s, y;
    double curvature;
  };
  void remember(const Eigen::VectorXd& s, const Eigen::VectorXd& y) {
    const double curvature = s.dot(y);
    if (curvature > 1e-8 * s.norm() * y.norm()) steps_.push_back({s, y, curvature});
  }
  /// H⁻¹ g, with H the second derivatives as the steps since have corrected them (Nocedal 1980):
  /// they are dear, and gradients are not.
  Eigen::VectorXd newton_step(Eigen::VectorXd g) const {
    std::vector<double> along(steps_.size());
    for (std::size_t i = steps_.size(); i-- > 0;) {
      along[i] = steps_[i].s.dot(g) / steps_[i].curvature;
      g -= along[i] * steps_[i].y;
    }
    g = solve(std::move(g));
    for (std::size_t i = 0; i < steps_.size(); ++i)
      g += (along[i] - steps_[i].y.dot(g) / steps_[i].curvature) * steps_[i].s;
    return g;
  }

  /// H⁻¹ times a vector, or times several.
  template <class Right>
  Right solve(Right right) const {
    factor_.triangularView<Eigen::Lower>().solveInPlace(right);
    factor_.triangularView<Eigen::Lower>().transpose().solveInPlace(right);
    return right;
  }

  /// The diagonal of the inverse, (LLᵀ)⁻¹: squares of the columns of L⁻¹, which are zero above
  /// the diagonal.
  Eigen::VectorXd variances() const {
    constexpr Index columns = 64;
    const auto n = static_cast<Index>(size_);
    Eigen::VectorXd out(n);
    for (Index begin = 0; begin < n; begin += columns) {
      const Index rows = n - begin, count = std::min(columns, rows);
      Eigen::MatrixXd inverse = Eigen::MatrixXd::Identity(rows, count);
      factor_.bottomRightCorner(rows, rows).triangularView<Eigen::Lower>().solveInPlace(inverse);
      out.segment(begin, count) = inverse.colwise().squaredNorm();
    }
    return out;
  }

  /// Coefficients of each group that the events determine: Σ 1 − precision · variance.
  std::vector<double> determined() const {
    std::vector<double> count(groups(), 0.0), variance = summed_variances();
    for (std::size_t i = 0; i < size_; ++i) count[group(i)] += 1.0;
    for (std::size_t g = 0; g < groups(); ++g)
      count[g] = std::clamp(count[g] - precision_[g] * variance[g], 0.0, count[g]);
    return count;
  }
  /// The variances of each group's coefficients, summed; of many coefficients by random signs s,
  /// whose mean of s_i (H⁻¹ s)_i is the variance of i (Hutchinson 1990).
  std::vector<double> summed_variances() const {
    constexpr std::size_t repetitions = 64;
    std::vector<double> out(groups(), 0.0);
    if (size_ <= many) {
      const Eigen::VectorXd variance = variances();
      for (std::size_t i = 0; i < size_; ++i) out[group(i)] += variance[static_cast<Index>(i)];
      return out;
    }
    RandomStream random(0, "signs of the trace");
    Eigen::MatrixXd signs(static_cast<Index>(size_), static_cast<Index>(repetitions));
    for (double& sign : signs.reshaped()) sign = random.uniform() < 0.5 ? -1.0 : 1.0;
    const Eigen::MatrixXd products = signs.cwiseProduct(solve(signs));
    for (std::size_t i = 0; i < size_; ++i)
      out[group(i)] += products.row(static_cast<Index>(i)).mean();
    return out;
  }
  double effective() const { return sum(determined()); }

  /// MacKay's updates, precision = determined / Σ w², each with the w that the quadratic
  /// approximation gives for the last. Where a group is not determined they go on for long, by
  /// steps that shrink slowly: the last one goes where the steps lead (Aitken).
  void choose_precisions(const Eigen::VectorXd& w, const Eigen::VectorXd& gradient) {
    constexpr int updates = 3;
    constexpr double slowest = 0.8;
    std::vector<double> steps(groups(), 0.0);  // of the logarithms
    for (int update = 0; update < updates; ++update) {
      factorise();
      const Eigen::VectorXd slope = gradient + prior().cwiseProduct(w), next = w - solve(slope);
      const auto known = determined();
      std::vector<double> squares(groups(), 0.0);
      for (std::size_t i = 0; i < size_; ++i)
        squares[group(i)] += next[static_cast<Index>(i)] * next[static_cast<Index>(i)];
      for (std::size_t g = 0; g < groups(); ++g) {
        if (!(squares[g] > 0.0)) continue;
        double step = std::log(std::max(known[g], 0.01) / squares[g] / precision_[g]);
        const double shrinks = update + 1 < updates ? 0.0 : step / steps[g];
        if (shrinks > 0.0) step /= 1.0 - std::min(shrinks, slowest);
        precision_[g] = std::clamp(precision_[g] * std::exp(step), 1e-8, 1e12);
        steps[g] = step;
      }
      factored_ = false;
    }
  }

  /// To first order, a group moves A by −H⁻¹ times its gradient, less its share of the whole.
  Matrix influence(const EventRows& events, const Slope& slope) const {
    const std::size_t n = events.size(), block = block_size(n);
    std::vector<double> weight(influence_groups, 0.0);
    for (std::size_t i = 0; i < n; ++i) weight[i / block % influence_groups] += events.weights[i];
    const double total = sum(weight);
    const Eigen::VectorXd whole = slope.total();
    Eigen::MatrixXd apart = slope.by_group;
    for (std::size_t g = 0; g < influence_groups; ++g)
      apart.col(static_cast<Index>(g)) -= weight[g] / total * whole;
    const Eigen::MatrixXd moved = -solve(std::move(apart));
    Matrix out(influence_groups, size_);
    for (std::size_t g = 0; g < influence_groups; ++g)
      for (std::size_t i = 0; i < size_; ++i)
        out(g, i) = moved(static_cast<Index>(i), static_cast<Index>(g));
    return out;
  }

  const Features& features_;
  const PolynomialBasis& basis_;
  const EventRows& events_;
  const NodeSets& nodes_;
  const bool evidence_;
  const std::size_t size_, stride_;
  std::vector<double> precision_;
  double resolution_ = 0.0;
  Eigen::MatrixXd hessian_;
  Eigen::VectorXd hessian_at_;
  Eigen::MatrixXd factor_;  // of the second derivatives with the prior's; in its lower triangle
  bool factored_ = false;
  std::vector<Step> steps_;  // since then
};

}  // namespace

CoefficientFit fit_coefficients(const Features& features, const Coefficients& start,
                                const PolynomialBasis& basis, const EventRows& events,
                                const NodeSets& nodes, bool evidence, Progress* progress) {
  // Most of the way with some of the events.
  constexpr std::size_t some = 60000;
  Newton all(features, basis, events, nodes, evidence);
  if (events.size() < 2 * some) return all.fit(start, progress);
  const EventRows part = events.first(some);
  Newton first(features, basis, part, nodes, evidence);
  const auto near = first.fit(start, nullptr);
  all.start_from(first.precision());
  return all.fit(near.coefficients, progress);
}

Coefficients held_out_start(const Features& features, const Coefficients& trained,
                            const PolynomialBasis& basis, const EventRows& events,
                            const NodeSets& nodes) {
  const EventRows some = events.first(std::min(events.size(), hessian_events));
  const std::size_t split = features.hidden() * round_up(basis.size(), 8);
  const auto loss = [&](const Coefficients& coefficients) {
    return reduce_blocks(
        some.size(), block_size(some.size()), 0.0,
        [&](Block at) {
          TilePass pass(features, basis, nodes.columns());
          double part = 0.0;
          for (std::size_t begin = at.begin; begin < at.end; begin += tile)
            part += pass.run(some, begin, std::min(tile, at.end - begin), coefficients,
                             nodes[at.index], false);
          return part;
        },
        [](double left, double right) { return left + right; });
  };
  Coefficients best = trained;
  double least = loss(trained);
  for (const float hidden : {1.0f, 0.0f})
    for (const float linear : {1.0f, 0.5f, 0.25f, 0.0f}) {
      Coefficients shares = trained;
      for (std::size_t i = 0; i < shares.size(); ++i) shares[i] *= i < split ? hidden : linear;
      const double value = loss(shares);
      if (!(value < least)) continue;
      least = value;
      best = std::move(shares);
    }
  return best;
}

// --- step 3 -------------------------------------------------------------------------------------

namespace {

/// P at the points where c(θ) is found, by terms and by points.
struct Points {
  Matrix theta;
  std::size_t columns;  // points, filled up to a multiple of 16
  mlp::Buffer by_term;  // terms × columns
};

/// Points all over the ranges, as far as there are events: elsewhere c(θ) would be that of an
/// extrapolation, and the polynomial through all of them wrong everywhere.
Matrix places_of(const ParameterSpace& parameters, const DesignRegion& region, std::size_t count,
                 std::uint64_t seed) {
  constexpr std::size_t trials = 8;
  if (region.everywhere()) return Design(parameters).nodes(count, seed, 0);
  const Matrix all = Design(parameters).nodes(trials * count, seed, 0);
  Matrix out(count, parameters.size());
  std::size_t found = 0;
  for (std::size_t i = 0; i < all.rows(); ++i) found += region.holds(all.row(i)) ? 1 : 0;
  const std::size_t wanted = std::min(found, count);
  // Evenly among those inside; the lattice is in order.
  for (std::size_t i = 0, seen = 0, taken = 0; i < all.rows() && taken < wanted; ++i) {
    if (!region.holds(all.row(i)) || seen++ * wanted < taken * found) continue;
    std::copy(all.row(i).begin(), all.row(i).end(), out.row(taken++).begin());
  }
  const MatrixView known = region.known();
  for (std::size_t k = wanted; k < count; ++k) {
    const auto from = known.row((k - wanted) * known.rows() / (count - wanted));
    std::copy(from.begin(), from.end(), out.row(k).begin());
  }
  return out;
}

Points make_points(const ParameterSpace& parameters, const DesignRegion& region,
                   const PolynomialBasis& basis, std::size_t count, std::uint64_t seed) {
  Points points{places_of(parameters, region, count, seed), 0, {}};
  points.columns = round_up(points.theta.rows(), 16);
  points.by_term = mlp::Buffer(basis.size() * points.columns);
  std::vector<double> values(basis.size());
  for (std::size_t j = 0; j < points.theta.rows(); ++j) {
    basis.values(points.theta.row(j), values);
    for (std::size_t k = 0; k < basis.size(); ++k)
      points.by_term[k * points.columns + j] = static_cast<float>(values[k]);
  }
  return points;
}

/// r(x_i, θ_j) = exp h / ∫ π exp h, times the event's weight: rows × columns. Where h is a poor
/// extrapolation (an event far from all of p(x|θ)) r can be anything; its mean over events is one,
/// so `cap` = √events bounds what a single event can do (Ionides, Truncated importance sampling,
/// 2008).
void weighted_ratios(const TilePass& pass, const Points& points, float cap, float* out) {
  const auto& kernels = mlp::kernels();
  kernels.multiply({pass.f.data(), pass.term_stride}, pass.basis.size(),
                   {points.by_term.data(), points.columns}, nullptr, {out, points.columns},
                   pass.rows, points.columns);
  for (std::size_t r = 0; r < pass.rows; ++r) {
    float* row = out + r * points.columns;
    for (std::size_t j = 0; j < points.columns; ++j) row[j] -= pass.log_integrals[r];
    kernels.exp(row, row, points.columns);
    for (std::size_t j = 0; j < points.columns; ++j)
      row[j] = std::min(row[j], cap) * pass.weights[r];
  }
}

/// Σ w r at each of the points, of each group of events.
struct RatioSums {
  Matrix sums;                  // groups × points
  std::vector<double> weights;  // Σ w of each group

  double whole(std::size_t point) const {
    double out = 0.0;
    for (std::size_t g = 0; g < sums.rows(); ++g) out += sums(g, point);
    return out;
  }
  double mean(std::size_t point) const { return whole(point) / sum(weights); }
  /// What a group adds to the logarithm of the mean.
  double deviation(std::size_t group, std::size_t point) const {
    return sums(group, point) / whole(point) - weights[group] / sum(weights);
  }
};

RatioSums ratio_sums(const Features& features, const Coefficients& coefficients,
                     const PolynomialBasis& basis, const Points& points, const EventRows& events,
                     const NodeSets& nodes, float cap) {
  const std::size_t count = points.theta.rows(), n = events.size(), block = block_size(n);
  RatioSums out{Matrix(influence_groups, count), std::vector<double>(influence_groups, 0.0)};
  std::vector<std::vector<double>> block_sums((n + block - 1) / block);
  parallel_blocks(n, block, [&](Block at) {
    TilePass pass(features, basis, nodes.columns());
    mlp::Buffer ratios(tile * points.columns);
    auto& own = block_sums[at.index];
    own.assign(count, 0.0);
    for (std::size_t begin = at.begin; begin < at.end; begin += tile) {
      pass.run(events, begin, std::min(tile, at.end - begin), coefficients, nodes[at.index], false);
      weighted_ratios(pass, points, cap, ratios.data());
      for (std::size_t r = 0; r < pass.rows; ++r)
        for (std::size_t j = 0; j < count; ++j)
          own[j] += static_cast<double>(ratios[r * points.columns + j]);
    }
  });
  for (std::size_t b = 0; b < block_sums.size(); ++b)
    for (std::size_t j = 0; j < count; ++j) out.sums(b % influence_groups, j) += block_sums[b][j];
  for (std::size_t i = 0; i < n; ++i)
    out.weights[i / block % influence_groups] += events.weights[i];
  return out;
}

}  // namespace

Normalisation normalise(const Features& features, const CoefficientFit& fit,
                        const PolynomialBasis& basis, const PolynomialBasis& normaliser,
                        const ParameterSpace& parameters, const DesignRegion& region,
                        const EventRows& events, const NodeSets& nodes, std::uint64_t seed) {
  const Points points = make_points(parameters, region, basis, 3 * normaliser.size() + 10, seed);
  const std::size_t count = points.theta.rows(), n = events.size();
  const std::size_t terms = basis.size(), size = features.size() * terms;
  const std::size_t wide = round_up(size, 8);
  const auto cap = static_cast<float>(std::sqrt(static_cast<double>(n)));

  const auto sums_with = [&](const EventRows& weighted) {
    return ratio_sums(features, fit.coefficients, basis, points, weighted, nodes, cap);
  };
  const RatioSums expected = sums_with(events);
  const RatioSums own =
      events.own_weights.empty() ? expected : sums_with(events.with_own_weights());

  // The r-weighted mean of φ ⊗ (P(θ) − P̄(x)) = ∂c/∂A, from some events.
  const std::size_t used = std::min<std::size_t>(n, hessian_events);
  mlp::Buffer slopes(points.columns * wide), first(points.columns * features.stride());
  {
    TilePass pass(features, basis, nodes.columns());
    mlp::Buffer ratios(tile * points.columns), products(tile * wide);
    for (std::size_t begin = 0; begin < used; begin += tile) {
      pass.run(events, begin, std::min(tile, used - begin), fit.coefficients, nodes[begin / tile],
               false);
      weighted_ratios(pass, points, cap, ratios.data());
      for (std::size_t r = 0; r < pass.rows; ++r)
        for (std::size_t i = 0; i < size; ++i)
          products[r * wide + i] = pass.phi[r * features.stride() + i / terms] *
                                   pass.mean[r * pass.term_stride + i % terms];
      mlp::kernels().add_outer({ratios.data(), points.columns}, points.columns,
                               {products.data(), wide}, {slopes.data(), wide}, pass.rows, wide);
      mlp::kernels().add_outer({ratios.data(), points.columns}, points.columns,
                               {pass.phi.data(), features.stride()},
                               {first.data(), features.stride()}, pass.rows, features.stride());
    }
  }

  // c and what each group adds to it, at the points; then as polynomials.
  const auto rows = static_cast<Index>(count);
  Eigen::MatrixXd values(rows, static_cast<Index>(influence_groups + 1));
  Eigen::MatrixXd design(rows, static_cast<Index>(normaliser.size() + 1));
  std::vector<double> polynomial(normaliser.size());
  const std::size_t constant = features.hidden() + features.linear();
  for (std::size_t j = 0; j < count; ++j) {
    const auto row = static_cast<Index>(j);
    values(row, 0) = std::log(expected.mean(j));
    const auto norm = static_cast<double>(first[j * features.stride() + constant]);
    for (std::size_t g = 0; g < influence_groups; ++g) {
      double moved = own.deviation(g, j);
      for (std::size_t i = 0; i < size; ++i) {
        const double mean_phi = static_cast<double>(first[j * features.stride() + i / terms]);
        const double p = static_cast<double>(points.by_term.data()[i % terms * points.columns + j]);
        moved +=
            fit.influence(g, i) * (mean_phi * p - static_cast<double>(slopes[j * wide + i])) / norm;
      }
      values(row, static_cast<Index>(g + 1)) = moved;
    }
    normaliser.values(points.theta.row(j), polynomial);
    design(row, 0) = 1.0;
    for (std::size_t k = 0; k < polynomial.size(); ++k)
      design(row, static_cast<Index>(k + 1)) = polynomial[k];
  }
  Eigen::MatrixXd solution;
  if (region.everywhere()) {
    solution = design.householderQr().solve(values);
  } else {
    // θ of a small part of the ranges tell polynomials hardly apart, and few θ not at all: what
    // they do not tell is left at zero.
    constexpr double told = 1e-4;
    Eigen::CompleteOrthogonalDecomposition<Eigen::MatrixXd> decomposition;
    decomposition.setThreshold(told);
    solution = decomposition.compute(design).solve(values);
  }
  Normalisation out{std::vector<double>(normaliser.size()),
                    Matrix(influence_groups, normaliser.size())};
  for (std::size_t k = 0; k < normaliser.size(); ++k) {
    const auto row = static_cast<Index>(k + 1);
    out.coefficients[k] = solution(row, 0);
    for (std::size_t g = 0; g < influence_groups; ++g)
      out.influence(g, k) = solution(row, static_cast<Index>(g + 1));
  }
  return out;
}

}  // namespace neyman::separable
