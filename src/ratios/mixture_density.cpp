#include "ratios/mixture_density.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"
#include "ratios/adam.hpp"

namespace neyman::separable {

namespace {

/// Logarithms of the diagonal of L, in units of whitened features: neither wider than the ranges
/// nor so narrow that a single event makes a component of its own.
constexpr float least_log_diagonal = -4.0f, most_log_diagonal = 7.0f;
/// A batch's gradient is made no longer than this.
constexpr double longest_gradient = 5.0;
/// Adam's: shorter than usual, because responsibilities of components change quickly.
constexpr double memory_of_squares = 0.99;
/// Looks at the events that choose when to stop.
constexpr std::size_t looks = 25;

/// Events that tell how well the last layer is known.
constexpr std::size_t information_events = 20000;

Eigen::MatrixXd zeros(std::size_t n) {
  return Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(n), static_cast<Eigen::Index>(n));
}

/// Of a matrix whose lower triangle is given; directions that nothing is known of are damped.
Matrix inverse(const Eigen::MatrixXd& lower) {
  constexpr double damping = 1e-4;  // of the mean eigenvalue
  const Eigen::Index n = lower.rows();
  Eigen::MatrixXd whole = lower.selfadjointView<Eigen::Lower>();
  whole.diagonal().array() += damping * whole.trace() / static_cast<double>(n) + 1e-30;
  const Eigen::MatrixXd inverted = whole.llt().solve(Eigen::MatrixXd::Identity(n, n));
  Matrix out(static_cast<std::size_t>(n), static_cast<std::size_t>(n));
  for (Eigen::Index i = 0; i < n; ++i)
    for (Eigen::Index j = 0; j < n; ++j)
      out(static_cast<std::size_t>(i), static_cast<std::size_t>(j)) = inverted(i, j);
  return out;
}

/// aᵀ M b.
double product(std::span<const double> a, const Matrix& m, std::span<const double> b) {
  double out = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    double row = 0.0;
    for (std::size_t j = 0; j < b.size(); ++j) row += m(i, j) * b[j];
    out += a[i] * row;
  }
  return out;
}

/// One component's outputs of the network, or its part of a mixture.
template <class Number>
struct Component {
  Number* at;
  std::size_t d;
  Number& weight() const { return at[0]; }
  Number* mean() const { return at + 1; }
  Number* diagonal() const { return at + 1 + d; }
  Number* below() const { return at + 1 + 2 * d; }
};

/// Outputs become a mixture: logits become logarithms of weights times |L|, and the diagonal's
/// logarithms become itself.
template <class Number>
void make_mixture(Number* outputs, std::size_t components, std::size_t d, std::size_t each) {
  Number most = outputs[0];
  for (std::size_t c = 1; c < components; ++c) most = std::max(most, outputs[c * each]);
  Number total = 0;
  for (std::size_t c = 0; c < components; ++c) total += std::exp(outputs[c * each] - most);
  const Number log_total = most + std::log(total);
  for (std::size_t c = 0; c < components; ++c) {
    const Component<Number> part{outputs + c * each, d};
    part.weight() -= log_total;
    for (std::size_t i = 0; i < d; ++i) {
      const Number log_diagonal =
          std::clamp(part.diagonal()[i], static_cast<Number>(least_log_diagonal),
                     static_cast<Number>(most_log_diagonal));
      part.weight() += log_diagonal;
      part.diagonal()[i] = std::exp(log_diagonal);
    }
  }
}

/// log Σ_c exp(weight_c − ½ |z_c|²) of one event, its derivatives by the network's outputs times
/// `factor` added to `slopes` unless null. `z` has room for d numbers per component.
template <class Number>
Number log_density(const float* x, const Number* mixture, const Number* outputs,
                   std::size_t components, std::size_t d, std::size_t each, Number factor,
                   Number* z, Number* share, Number* slopes) {
  Number most = -std::numeric_limits<Number>::infinity();
  for (std::size_t c = 0; c < components; ++c) {
    const Component<const Number> part{mixture + c * each, d};
    const Number* below = part.below();
    Number square = 0;
    for (std::size_t i = 0; i < d; ++i) {
      Number sum = part.diagonal()[i] * (static_cast<Number>(x[i]) - part.mean()[i]);
      for (std::size_t k = 0; k < i; ++k)
        sum += *below++ * (static_cast<Number>(x[k]) - part.mean()[k]);
      z[c * d + i] = sum;
      square += sum * sum;
    }
    share[c] = part.weight() - Number(0.5) * square;
    most = std::max(most, share[c]);
  }
  Number total = 0;
  for (std::size_t c = 0; c < components; ++c) total += share[c] = std::exp(share[c] - most);
  if (slopes == nullptr) return most + std::log(total);
  for (std::size_t c = 0; c < components; ++c) {
    const Component<const Number> part{mixture + c * each, d};
    const Component<Number> to{slopes + c * each, d};
    const Number mine = factor * share[c] / total;
    // The weight itself without |L|: softmax of the logits.
    Number log_diagonals = 0;
    for (std::size_t i = 0; i < d; ++i) log_diagonals += std::log(part.diagonal()[i]);
    to.weight() += mine - factor * std::exp(part.weight() - log_diagonals);
    const Number* below = part.below();
    Number* to_below = to.below();
    for (std::size_t i = 0; i < d; ++i) {
      const Number zi = mine * z[c * d + i];
      to.mean()[i] += zi * part.diagonal()[i];
      // Beyond its bounds a logarithm of the diagonal does not matter.
      const Number log_diagonal = outputs[c * each + 1 + d + i];
      if (log_diagonal > Number(least_log_diagonal) && log_diagonal < Number(most_log_diagonal))
        to.diagonal()[i] +=
            mine - zi * part.diagonal()[i] * (static_cast<Number>(x[i]) - part.mean()[i]);
      for (std::size_t k = 0; k < i; ++k) {
        to.mean()[k] += zi * *below++;
        *to_below++ -= zi * (static_cast<Number>(x[k]) - part.mean()[k]);
      }
    }
  }
  return most + std::log(total);
}

}  // namespace

/// One training: batches through network and mixture, and back.
class MixtureDensity::Training {
 public:
  Training(MixtureDensity& of, const float* x, std::size_t stride, MatrixView theta,
           std::span<const double> weights)
      : of_(of),
        x_(x),
        stride_(stride),
        weights_(weights),
        theta_stride_(round_up(theta.cols(), 8)),
        theta_(theta.rows() * theta_stride_),
        work_(of.layers_.workspace()),
        inputs_(tile * theta_stride_),
        outputs_(tile * of.columns()),
        slopes_(tile * of.columns()),
        transposed_(of.columns() * of.layers_.outputs()),
        mixture_(of.size()),
        z_(of.components_ * of.features_),
        share_(of.components_) {
    of.standardise(theta, theta_.data());
  }

  /// Σ φφᵀ and Σ δδᵀ of these events, with φ the values of the last hidden layer and a 1, and δ the
  /// derivatives of log q by the outputs.
  void add_information(std::span<const std::uint32_t> events, Eigen::MatrixXd& inputs,
                       Eigen::MatrixXd& outputs) {
    run(events, 1.0, nullptr, nullptr);
    const auto width = static_cast<Eigen::Index>(of_.layers_.outputs());
    Eigen::VectorXd phi(width + 1), delta(static_cast<Eigen::Index>(of_.size()));
    for (std::size_t r = 0; r < events.size(); ++r) {
      const double w = weights_.empty() ? 1.0 : weights_[events[r]];
      if (!(w > 0.0)) continue;
      for (Eigen::Index j = 0; j < width; ++j)
        phi[j] =
            static_cast<double>(values_.data[r * values_.stride + static_cast<std::size_t>(j)]);
      phi[width] = 1.0;
      for (Eigen::Index k = 0; k < delta.size(); ++k)
        delta[k] =
            static_cast<double>(slopes_[r * of_.columns() + static_cast<std::size_t>(k)]) / w;
      inputs.selfadjointView<Eigen::Lower>().rankUpdate(phi, w);
      outputs.selfadjointView<Eigen::Lower>().rankUpdate(delta, w);
    }
  }

  /// Σ −w log q of these events, at most a tile; its gradient is added unless null.
  double run(std::span<const std::uint32_t> events, double scale, float* layers, float* last) {
    const auto& kernels = mlp::kernels();
    const std::size_t rows = round_up(events.size(), 8), width = of_.layers_.outputs();
    const std::size_t columns = of_.columns(), size = of_.size();
    for (std::size_t r = 0; r < rows; ++r) {
      const std::size_t i = events[std::min(r, events.size() - 1)];
      std::copy_n(theta_.data() + i * theta_stride_, theta_stride_,
                  inputs_.data() + r * theta_stride_);
    }
    const mlp::Dense input{inputs_.data(), theta_stride_};
    const auto values = of_.layers_.forward(input, rows, work_, layers != nullptr);
    kernels.multiply(values, width, {of_.last_.data(), columns}, of_.last_.data() + width * columns,
                     {outputs_.data(), columns}, rows, columns);
    std::fill(slopes_.data(), slopes_.data() + rows * columns, 0.0f);
    double loss = 0.0;
    for (std::size_t r = 0; r < events.size(); ++r) {
      const float* outputs = outputs_.data() + r * columns;
      std::copy_n(outputs, size, mixture_.data());
      const std::size_t each = outputs_each(of_.features_);
      make_mixture(mixture_.data(), of_.components_, of_.features_, each);
      const double w = (weights_.empty() ? 1.0 : weights_[events[r]]) * scale;
      loss -= w * static_cast<double>(log_density<float>(
                      x_ + events[r] * stride_, mixture_.data(), outputs, of_.components_,
                      of_.features_, each, static_cast<float>(-w), z_.data(), share_.data(),
                      slopes_.data() + r * columns));
    }
    values_ = values;
    if (layers == nullptr) return loss;
    kernels.add_outer(values, width, {slopes_.data(), columns}, {last, columns}, rows, columns);
    for (std::size_t r = 0; r < events.size(); ++r)
      for (std::size_t k = 0; k < columns; ++k)
        last[width * columns + k] += slopes_[r * columns + k];
    for (std::size_t j = 0; j < width; ++j)
      for (std::size_t k = 0; k < columns; ++k)
        transposed_[k * width + j] = of_.last_[j * columns + k];
    kernels.multiply({slopes_.data(), columns}, columns, {transposed_.data(), width}, nullptr,
                     {work_.above.data(), width}, rows, width);
    of_.layers_.backward(input, rows, work_, layers);
    return loss;
  }

 private:
  MixtureDensity& of_;
  const float* x_;
  const std::size_t stride_;
  std::span<const double> weights_;
  const std::size_t theta_stride_;
  mlp::Buffer theta_;
  DenseLayers::Workspace work_;
  mlp::Buffer inputs_, outputs_, slopes_, transposed_;
  std::vector<float> mixture_, z_, share_;
  mlp::Dense values_{nullptr, 0};  // of the last hidden layer
};

MixtureDensity::MixtureDensity(const float* x, std::size_t stride, std::size_t features,
                               MatrixView theta, std::span<const double> weights,
                               const Options& options, Progress* progress)
    : features_(features), layers_(theta.cols(), options.hidden) {
  const std::size_t n = theta.rows(), each = outputs_each(features);
  components_ = std::clamp<std::size_t>(most_outputs / each, 1, options.components);
  for (std::size_t p = 0; p < theta.cols(); ++p) {
    double mean = 0.0, square = 0.0;
    for (std::size_t i = 0; i < n; ++i) mean += theta.row(i)[p] / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i)
      square += std::pow(theta.row(i)[p] - mean, 2) / static_cast<double>(n);
    centre_.push_back(mean);
    scale_.push_back(square > 0.0 ? 1.0 / std::sqrt(square) : 0.0);
  }
  layers_.initialise(options.seed, "density weights");
  RandomStream random(options.seed, "density mixture");
  const std::size_t width = layers_.outputs();
  last_.assign((width + 1) * columns(), 0.0f);
  const double spread = 0.1 / std::sqrt(static_cast<double>(width));
  for (std::size_t j = 0; j < width; ++j)
    for (std::size_t k = 0; k < size(); ++k)
      last_[j * columns() + k] = static_cast<float>(spread * random.normal());
  float* biases = last_.data() + width * columns();
  for (std::size_t c = 0; c < components_; ++c)
    for (std::size_t i = 0; i < features; ++i) {
      biases[c * each + 1 + i] = components_ > 1 ? static_cast<float>(0.7 * random.normal()) : 0.0f;
      biases[c * each + 1 + features + i] = components_ > 1 ? 0.3f : 0.0f;
    }

  // Of many events each is seen some thirty times; of few, so often that it takes 500 steps.
  const std::size_t held = std::min<std::size_t>(n / 10, 5000), used = n - held;
  const std::size_t batch = std::min<std::size_t>(used, n > 20000 ? 512 : 128);
  const std::size_t batches = used / batch;
  const std::size_t steps = std::clamp<std::size_t>(30 * batches, 500, 3000);
  std::vector<std::uint32_t> all(n), order(used);
  mlp::random_order(all, options.seed, 0);
  const auto held_out = std::span(all).subspan(used);
  double total = 0.0;
  for (std::size_t i = 0; i < n; ++i) total += weights.empty() ? 1.0 : weights[i];
  const double unit = static_cast<double>(n) / total;

  Training training(*this, x, stride, theta, weights);
  std::vector<float> layer_gradient(layers_.parameters(), 0.0f), last_gradient(last_.size(), 0.0f);
  Moments layer_moments(layer_gradient.size(), memory_of_squares),
      last_moments(last_gradient.size(), memory_of_squares);
  double best = std::numeric_limits<double>::infinity();
  std::vector<float> best_layers, best_last;
  for (std::size_t step = 0; step < steps; ++step) {
    if (step % batches == 0) {
      mlp::random_order(order, options.seed, 1 + step / batches);
      for (auto& i : order) i = all[i];
    }
    for (std::size_t begin = 0; begin < batch; begin += tile)
      training.run(
          std::span(order).subspan(step % batches * batch + begin, std::min(tile, batch - begin)),
          unit / static_cast<double>(batch), layer_gradient.data(), last_gradient.data());
    double square = 0.0;
    for (const auto* gradient : {&layer_gradient, &last_gradient})
      for (const float g : *gradient) square += static_cast<double>(g) * static_cast<double>(g);
    if (square > longest_gradient * longest_gradient) {
      const auto factor = static_cast<float>(longest_gradient / std::sqrt(square));
      for (auto* gradient : {&layer_gradient, &last_gradient})
        for (float& g : *gradient) g *= factor;
    }
    const double rate =
        options.learning_rate * scheduled(static_cast<double>(step) / static_cast<double>(steps));
    layer_moments.step(layers_.weights(), layer_gradient, rate, step + 1);
    last_moments.step(last_.data(), last_gradient, rate, step + 1);
    const bool look = (step + 1) * looks / steps != step * looks / steps;
    if (!look) continue;
    check_stop();
    double loss = 0.0;
    for (std::size_t begin = 0; begin < held; begin += tile)
      loss += training.run(held_out.subspan(begin, std::min(tile, held - begin)), unit, nullptr,
                           nullptr);
    if (loss < best || best_last.empty()) {
      best = loss;
      best_layers.assign(layers_.weights(), layers_.weights() + layers_.parameters());
      best_last = last_;
    }
    if (progress != nullptr) {
      progress->merit("held-out loss", loss / static_cast<double>(std::max<std::size_t>(held, 1)));
      progress->reach(static_cast<double>(step + 1) / static_cast<double>(steps));
    }
  }
  std::copy(best_layers.begin(), best_layers.end(), layers_.weights());
  last_ = std::move(best_last);

  const std::size_t some = std::min(n, information_events);
  auto inputs = zeros(width + 1), outputs = zeros(size());
  double information = 0.0;
  for (std::size_t begin = 0; begin < some; begin += tile) {
    const auto events = std::span(all).subspan(begin, std::min(tile, some - begin));
    training.add_information(events, inputs, outputs);
    for (const auto i : events) information += weights.empty() ? 1.0 : weights[i];
  }
  // n A ⊗ B, with means A and B.
  input_covariance_ = inverse(inputs / information);
  output_covariance_ = inverse(outputs / information * total);
}

std::size_t MixtureDensity::most_features() {
  std::size_t out = 1;
  while (possible(out + 1)) ++out;
  return out;
}

void MixtureDensity::standardise(MatrixView theta, float* out) const {
  const std::size_t stride = round_up(centre_.size(), 8);
  for (std::size_t i = 0; i < theta.rows(); ++i)
    for (std::size_t p = 0; p < centre_.size(); ++p)
      out[i * stride + p] = static_cast<float>((theta.row(i)[p] - centre_[p]) * scale_[p]);
}

void MixtureDensity::describe(MatrixView theta, float* mixtures) const {
  const auto& kernels = mlp::kernels();
  const std::size_t stride = round_up(centre_.size(), 8), width = layers_.outputs();
  auto work = layers_.workspace();
  mlp::Buffer inputs(tile * stride), outputs(tile * columns());
  for (std::size_t begin = 0; begin < theta.rows(); begin += tile) {
    const std::size_t count = std::min(tile, theta.rows() - begin), rows = round_up(count, 8);
    standardise(theta.rows(begin, begin + count), inputs.data());
    const auto values = layers_.forward({inputs.data(), stride}, rows, work, false);
    kernels.multiply(values, width, {last_.data(), columns()}, last_.data() + width * columns(),
                     {outputs.data(), columns()}, rows, columns());
    for (std::size_t r = 0; r < count; ++r) {
      float* to = mixtures + (begin + r) * size();
      std::copy_n(outputs.data() + r * columns(), size(), to);
      make_mixture(to, components_, features_, outputs_each(features_));
    }
  }
}

void MixtureDensity::add(const float* x, std::size_t stride, std::size_t rows,
                         const float* mixtures, std::size_t count, float* h,
                         std::size_t h_stride) const {
  const auto& kernels = mlp::kernels();
  const std::size_t d = features_, each = outputs_each(d);
  // By columns, so that all rows of a tile are done side by side.
  std::vector<std::array<float, tile>> columns(d), away(d), exponents(components_);
  for (std::size_t i = 0; i < d; ++i) {
    columns[i].fill(0.0f);
    for (std::size_t r = 0; r < rows; ++r) columns[i][r] = x[r * stride + i];
  }
  std::array<float, tile> sum, most, total;
  for (std::size_t j = 0; j < count; ++j) {
    most.fill(-std::numeric_limits<float>::infinity());
    for (std::size_t c = 0; c < components_; ++c) {
      const Component<const float> part{mixtures + (j * components_ + c) * each, d};
      const float* below = part.below();
      auto& exponent = exponents[c];
      exponent.fill(part.weight());
      for (std::size_t i = 0; i < d; ++i) {
        const float mean = part.mean()[i], diagonal = part.diagonal()[i];
        for (std::size_t r = 0; r < tile; ++r) away[i][r] = columns[i][r] - mean;
        for (std::size_t r = 0; r < tile; ++r) sum[r] = diagonal * away[i][r];
        for (std::size_t k = 0; k < i; ++k) {
          const float factor = *below++;
          for (std::size_t r = 0; r < tile; ++r) sum[r] += factor * away[k][r];
        }
        for (std::size_t r = 0; r < tile; ++r) exponent[r] -= 0.5f * sum[r] * sum[r];
      }
      for (std::size_t r = 0; r < tile; ++r) most[r] = std::max(most[r], exponent[r]);
    }
    total.fill(0.0f);
    for (auto& exponent : exponents) {
      for (std::size_t r = 0; r < tile; ++r) exponent[r] -= most[r];
      kernels.exp(exponent.data(), exponent.data(), tile);
      for (std::size_t r = 0; r < tile; ++r) total[r] += exponent[r];
    }
    for (std::size_t r = 0; r < rows; ++r) h[r * h_stride + j] += most[r] + std::log(total[r]);
  }
}

std::vector<float> MixtureDensity::own(const float* x, std::size_t stride, MatrixView theta) const {
  std::vector<float> out(theta.rows());
  parallel_blocks(theta.rows(), 4096, [&](Block block) {
    std::vector<float> mixtures(tile * size()), z(components_ * features_), share(components_);
    for (std::size_t begin = block.begin; begin < block.end; begin += tile) {
      const std::size_t count = std::min(tile, block.end - begin);
      describe(theta.rows(begin, begin + count), mixtures.data());
      for (std::size_t r = 0; r < count; ++r)
        out[begin + r] = log_density<float>(
            x + (begin + r) * stride, mixtures.data() + r * size(), nullptr, components_, features_,
            outputs_each(features_), 1.0f, z.data(), share.data(), nullptr);
    }
  });
  return out;
}

std::vector<double> MixtureDensity::outputs(const DenseLayers::Trace& trace) const {
  const std::size_t width = layers_.outputs();
  const auto& values = trace.values.back();
  std::vector<double> out(size());
  for (std::size_t k = 0; k < size(); ++k)
    out[k] = static_cast<double>(last_[width * columns() + k]);
  for (std::size_t j = 0; j < width; ++j)
    for (std::size_t k = 0; k < size(); ++k)
      out[k] += values[j] * static_cast<double>(last_[j * columns() + k]);
  return out;
}

DenseLayers::Trace MixtureDensity::trace(std::span<const double> theta) const {
  std::vector<double> input(theta.size());
  for (std::size_t p = 0; p < theta.size(); ++p) input[p] = (theta[p] - centre_[p]) * scale_[p];
  return layers_.trace(std::move(input));
}

MixtureDensity::Sums MixtureDensity::sums(const float* x, std::size_t stride,
                                          std::span<const double> weights,
                                          const std::vector<double>& outputs,
                                          bool derivatives) const {
  const std::size_t each = outputs_each(features_);
  auto mixture = outputs;
  make_mixture(mixture.data(), components_, features_, each);
  const Sums none{0.0, std::vector<double>(derivatives ? size() : 0, 0.0)};
  return reduce_blocks(
      weights.size(), 1024, none,
      [&](Block block) {
        Sums part = none;
        std::vector<double> z(components_ * features_), share(components_);
        for (std::size_t i = block.begin; i < block.end; ++i)
          part.value += weights[i] * log_density<double>(
                                         x + i * stride, mixture.data(), outputs.data(),
                                         components_, features_, each, weights[i], z.data(),
                                         share.data(), derivatives ? part.slopes.data() : nullptr);
        return part;
      },
      [](Sums a, const Sums& b) {
        a.value += b.value;
        for (std::size_t k = 0; k < a.slopes.size(); ++k) a.slopes[k] += b.slopes[k];
        return a;
      });
}

double MixtureDensity::sum(const float* x, std::size_t stride, std::span<const double> weights,
                           std::span<const double> theta, std::span<double> gradient) const {
  const auto way = trace(theta);
  const Sums total = sums(x, stride, weights, outputs(way), !gradient.empty());
  if (gradient.empty()) return total.value;
  std::vector<double> above(layers_.outputs(), 0.0);
  for (std::size_t j = 0; j < above.size(); ++j)
    for (std::size_t k = 0; k < size(); ++k)
      above[j] += total.slopes[k] * static_cast<double>(last_[j * columns() + k]);
  const auto below = layers_.input_gradient(way, std::move(above));
  for (std::size_t p = 0; p < theta.size(); ++p) gradient[p] += below[p] * scale_[p];
  return total.value;
}

Matrix MixtureDensity::gradient_covariance(const float* x, std::size_t stride,
                                           std::span<const double> weights,
                                           std::span<const double> theta) const {
  // A change ΔW of the layer moves the sum by u(θ)ᵀ ΔWᵀ φ(θ), u its derivatives by the outputs.
  struct Slope {
    std::vector<double> values, by_output;
  };
  const auto slope_at = [&](std::span<const double> point) {
    const auto way = trace(point);
    Slope out{way.values.back(), sums(x, stride, weights, outputs(way), true).slopes};
    out.values.push_back(1.0);
    return out;
  };
  const std::size_t d = theta.size();
  const Slope here = slope_at(theta);
  std::vector<Slope> along;
  for (std::size_t p = 0; p < d; ++p) {
    constexpr double part = 1e-3;  // of the parameter's spread in the training events
    const double step = scale_[p] > 0.0 ? part / scale_[p] : 1.0;
    std::vector<double> point(theta.begin(), theta.end());
    point[p] = theta[p] + step;
    Slope up = slope_at(point);
    point[p] = theta[p] - step;
    const Slope down = slope_at(point);
    for (std::size_t k = 0; k < up.values.size(); ++k)
      up.values[k] = (up.values[k] - down.values[k]) / (2.0 * step);
    for (std::size_t k = 0; k < up.by_output.size(); ++k)
      up.by_output[k] = (up.by_output[k] - down.by_output[k]) / (2.0 * step);
    along.push_back(std::move(up));
  }
  Matrix out(d, d);
  const auto covariance = [&](const std::vector<double>& u, const std::vector<double>& phi,
                              const std::vector<double>& v, const std::vector<double>& psi) {
    return product(phi, input_covariance_, psi) * product(u, output_covariance_, v);
  };
  for (std::size_t p = 0; p < d; ++p)
    for (std::size_t q = 0; q < d; ++q)
      out(p, q) = covariance(along[p].by_output, here.values, along[q].by_output, here.values) +
                  covariance(along[p].by_output, here.values, here.by_output, along[q].values) +
                  covariance(here.by_output, along[p].values, along[q].by_output, here.values) +
                  covariance(here.by_output, along[p].values, here.by_output, along[q].values);
  return out;
}

void MixtureDensity::save(Archive& archive) const {
  archive.set("features", features_);
  archive.set("components", components_);
  archive.set("centre", centre_);
  archive.set("scale", scale_);
  layers_.save(archive.child("layers"));
  archive.set("last", last_);
  archive.set("input_covariance", input_covariance_);
  archive.set("output_covariance", output_covariance_);
}

MixtureDensity MixtureDensity::load(const Archive& archive) {
  MixtureDensity out;
  const auto features = archive.integer("features"), components = archive.integer("components");
  if (features < 1 || features > 100000 || !possible(static_cast<std::size_t>(features)) ||
      components < 1 || components > 4096)
    throw FileError("the density of a ratio has numbers of features or components not allowed");
  out.features_ = static_cast<std::size_t>(features);
  out.components_ = static_cast<std::size_t>(components);
  out.centre_ = archive.numbers("centre");
  out.scale_ = archive.numbers("scale");
  out.layers_ = DenseLayers::load(archive.child("layers"));
  out.last_ = archive.get<std::vector<float>>("last");
  out.input_covariance_ = archive.get<Matrix>("input_covariance");
  out.output_covariance_ = archive.get<Matrix>("output_covariance");
  const auto square = [](const Matrix& m, std::size_t n) { return m.rows() == n && m.cols() == n; };
  if (out.centre_.size() != out.layers_.inputs() || out.scale_.size() != out.centre_.size() ||
      out.last_.size() != (out.layers_.outputs() + 1) * out.columns() ||
      !square(out.input_covariance_, out.layers_.outputs() + 1) ||
      !square(out.output_covariance_, out.size()))
    throw FileError("the parts of the density of a ratio have sizes that do not agree");
  return out;
}

}  // namespace neyman::separable
