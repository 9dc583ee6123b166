#include "neyman/classifiers/mlp.hpp"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "classifiers/mlp_network.hpp"
#include "classifiers/problems.hpp"
#include "distributed/thread_ranks.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"

namespace neyman {
namespace {

using Eigen::ArrayXXd;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

// ---- The network in plain Eigen, in double: the reference for the fused kernels.

struct ReferenceLayer {
  MatrixXd weights;  // outputs x inputs
  VectorXd biases;
};

struct Reference {
  std::vector<ReferenceLayer> layers;
  mlp::Activation activation;

  Reference(const std::vector<std::size_t>& widths, mlp::Activation activation_,
            const std::vector<float>& plain)
      : activation(activation_) {
    std::size_t at = 0;
    for (std::size_t l = 0; l < widths.size(); ++l) {
      const auto in = Eigen::Index(widths[l]);
      const auto out = Eigen::Index(l + 1 < widths.size() ? widths[l + 1] : 1);
      ReferenceLayer layer{MatrixXd(out, in), VectorXd(out)};
      for (Eigen::Index j = 0; j < out; ++j)
        for (Eigen::Index i = 0; i < in; ++i) layer.weights(j, i) = plain[at++];
      for (Eigen::Index j = 0; j < out; ++j) layer.biases(j) = plain[at++];
      layers.push_back(layer);
    }
  }

  MatrixXd apply(const MatrixXd& z) const {
    switch (activation) {
      case mlp::Activation::relu:
        return z.cwiseMax(0.0);
      case mlp::Activation::tanh:
        return z.array().tanh();
      case mlp::Activation::silu:
        return z.array() / (1.0 + (-z.array()).exp());
    }
    return z;
  }
  MatrixXd derivative(const MatrixXd& z) const {
    switch (activation) {
      case mlp::Activation::relu:
        return (z.array() > 0.0).cast<double>();
      case mlp::Activation::tanh:
        return 1.0 - z.array().tanh().square();
      case mlp::Activation::silu: {
        const ArrayXXd s = 1.0 / (1.0 + (-z.array()).exp());
        return s + z.array() * s * (1.0 - s);
      }
    }
    return z;
  }

  /// z of each layer; inputs and activations have a column an event.
  std::vector<MatrixXd> forward(const MatrixXd& x, std::vector<MatrixXd>& values) const {
    std::vector<MatrixXd> z;
    values = {x};
    for (const ReferenceLayer& layer : layers) {
      z.push_back((layer.weights * values.back()).colwise() + layer.biases);
      values.push_back(apply(z.back()));
    }
    return z;
  }

  struct Gradients {
    double loss = 0.0;
    std::vector<double> plain;
    MatrixXd inputs;
  };

  /// Gradients of Σ w·loss, or with `unit_factors` of Σ z.
  Gradients gradients(const MatrixXd& x, const VectorXd& y, const VectorXd& w, mlp::Loss loss,
                      bool unit_factors = false) const {
    std::vector<MatrixXd> values;
    const auto z = forward(x, values);
    const VectorXd out = z.back().row(0).transpose();
    const ArrayXXd s = 1.0 / (1.0 + (-out.array()).exp());
    Gradients result;
    VectorXd factor = VectorXd::Ones(out.size());
    if (!unit_factors && loss == mlp::Loss::cross_entropy) {
      factor = w.array() * (s - y.array());
      result.loss = (w.array() * ((1.0 + out.array().exp()).log() - y.array() * out.array())).sum();
    } else if (!unit_factors) {
      factor = w.array() * 2.0 * (s - y.array()) * s * (1.0 - s);
      result.loss = (w.array() * (s - y.array()).square()).sum();
    }
    std::vector<ReferenceLayer> grads(layers.size());
    MatrixXd delta = factor.transpose();
    for (std::size_t l = layers.size(); l-- > 0;) {
      grads[l] = {delta * values[l].transpose(), delta.rowwise().sum()};
      MatrixXd below = layers[l].weights.transpose() * delta;
      delta = l > 0 ? MatrixXd(below.cwiseProduct(derivative(z[l - 1]))) : below;
    }
    for (const ReferenceLayer& layer : grads) {
      for (Eigen::Index j = 0; j < layer.weights.rows(); ++j)
        for (Eigen::Index i = 0; i < layer.weights.cols(); ++i)
          result.plain.push_back(layer.weights(j, i));
      for (Eigen::Index j = 0; j < layer.biases.size(); ++j)
        result.plain.push_back(layer.biases(j));
    }
    result.inputs = delta;
    return result;
  }
};

/// ‖a − b‖ / ‖b‖.
template <class A, class B>
double relative_difference(const A& a, const B& b) {
  double difference = 0.0, size = 0.0;
  for (std::size_t i = 0; i < std::size_t(b.size()); ++i) {
    difference += (double(a[i]) - double(b[i])) * (double(a[i]) - double(b[i]));
    size += double(b[i]) * double(b[i]);
  }
  return std::sqrt(difference / (size > 0.0 ? size : 1.0));
}

constexpr double kernel_tolerance = 1e-5;

/// A network with random parameters and rows for it.
struct Problem {
  Problem(std::vector<std::size_t> widths_, mlp::Activation activation, std::size_t rows)
      : widths(std::move(widths_)),
        network(widths, activation),
        plain(network.plain_size()),
        parameters(network.shape().parameters),
        transposed(network.shape().transposed),
        x(Eigen::Index(widths[0]), Eigen::Index(rows)),
        y(Eigen::Index(rows)),
        w(Eigen::Index(rows)),
        order(rows) {
    RandomStream random(7, "mlp-test", widths.size() + rows);
    std::size_t at = 0;
    for (std::size_t l = 0; l < widths.size(); ++l) {
      const std::size_t out = l + 1 < widths.size() ? widths[l + 1] : 1;
      const double sd = 1.4 / std::sqrt(double(widths[l]));
      for (std::size_t i = 0; i < widths[l] * out; ++i) plain[at++] = float(sd * random.normal());
      for (std::size_t i = 0; i < out; ++i) plain[at++] = float(0.3 * random.normal());
    }
    network.pack(plain, parameters.data());
    stride = (widths[0] + 1 + 7) / 8 * 8;
    data = mlp::Buffer(rows * stride);
    for (std::size_t r = 0; r < rows; ++r) {
      const auto row = Eigen::Index(r);
      for (std::size_t c = 0; c < widths[0]; ++c) {
        const auto value = float(random.normal());
        data[r * stride + c] = value;
        x(Eigen::Index(c), row) = value;
      }
      y(row) = double(random.below(2));
      w(row) = r % 5 == 3 ? 0.0 : double(float(2.0 * random.uniform()));
      data[r * stride + stride - 1] = float(y(row) > 0.5 ? -w(row) : w(row));
    }
    std::iota(order.begin(), order.end(), 0u);
    std::reverse(order.begin(), order.end());
  }

  std::vector<std::size_t> widths;
  mlp::Network network;
  std::vector<float> plain;
  mlp::Buffer parameters, transposed, data;
  std::size_t stride = 0;
  MatrixXd x;
  VectorXd y, w;
  std::vector<std::uint32_t> order;
};

const std::vector<std::vector<std::size_t>> shapes{
    {1, 1},       {3},           {7, 40, 40},         {8, 17, 3},     {1, 256},
    {16, 100, 1}, {5, 3, 17, 9}, {30, 100, 100, 100}, {28, 256, 256}, {13, 49, 24, 56}};

TEST(MlpKernels, ParametersSurvivePacking) {
  for (const auto& widths : shapes) {
    const Problem problem(widths, mlp::Activation::relu, 1);
    EXPECT_EQ(problem.network.unpack(problem.parameters.data()), problem.plain);
  }
}

TEST(MlpKernels, GradientsMatchTheReference) {
  for (const mlp::Kernels* kernels : mlp::supported_kernels()) {
    for (const auto activation :
         {mlp::Activation::relu, mlp::Activation::tanh, mlp::Activation::silu}) {
      for (const auto loss : {mlp::Loss::cross_entropy, mlp::Loss::squared_error}) {
        for (const auto& widths : shapes) {
          for (const std::size_t rows : {1, 8, 37, 128, 300}) {
            SCOPED_TRACE(std::string(kernels->name) + " activation " +
                         std::to_string(int(activation)) + " loss " + std::to_string(int(loss)) +
                         " layers " + std::to_string(widths.size()) + " inputs " +
                         std::to_string(widths[0]) + " rows " + std::to_string(rows));
            Problem p(widths, activation, rows);
            // What was there before must not count anywhere.
            mlp::Buffer gradient(p.network.shape().parameters);
            std::fill_n(gradient.data(), gradient.size(), not_a_number);
            auto scratch = p.network.scratch();
            std::fill(scratch.begin(), scratch.end(), not_a_number);
            kernels->transpose(p.network.shape(), p.parameters.data(), p.transposed.data());
            const float scale = 0.5f;
            const double sum = kernels->accumulate(
                p.network.shape(), loss, p.parameters.data(), p.transposed.data(),
                {p.data.data(), p.stride, p.order.data(), rows, 0}, scale, gradient.data(),
                scratch.data());

            mlp::Buffer apart(gradient.size()), sums(gradient.size());
            std::fill_n(sums.data(), sums.size(), not_a_number);
            mlp::Rows summed_apart{p.data.data(), p.stride, p.order.data(), rows};
            summed_apart.sums = sums.data();
            EXPECT_EQ(sum, kernels->accumulate(p.network.shape(), loss, p.parameters.data(),
                                               p.transposed.data(), summed_apart, scale,
                                               apart.data(), scratch.data()));
            EXPECT_TRUE(
                std::equal(gradient.data(), gradient.data() + gradient.size(), apart.data()));

            const Reference reference(p.widths, activation, p.plain);
            auto expected = reference.gradients(p.x, p.y, p.w, loss);
            for (double& value : expected.plain) value *= scale;
            EXPECT_NEAR(sum, expected.loss, kernel_tolerance * (expected.loss + 1e-3));
            EXPECT_LT(relative_difference(p.network.unpack(gradient.data()), expected.plain),
                      kernel_tolerance);
            // what lies in the padding must stay zero, or it would grow into the network
            mlp::Buffer again(p.network.shape().parameters);
            p.network.pack(p.network.unpack(gradient.data()), again.data());
            EXPECT_TRUE(std::equal(again.data(), again.data() + again.size(), gradient.data()));
          }
        }
      }
    }
  }
}

TEST(MlpKernels, LogitsAndInputGradientsMatchTheReference) {
  for (const mlp::Kernels* kernels : mlp::supported_kernels()) {
    for (const auto activation :
         {mlp::Activation::relu, mlp::Activation::tanh, mlp::Activation::silu}) {
      for (const auto& widths : shapes) {
        for (const std::size_t rows : {1, 45}) {
          SCOPED_TRACE(std::string(kernels->name) + " activation " +
                       std::to_string(int(activation)) + " layers " +
                       std::to_string(widths.size()) + " inputs " + std::to_string(widths[0]));
          Problem p(widths, activation, rows);
          auto scratch = p.network.scratch();
          std::fill(scratch.begin(), scratch.end(), not_a_number);
          kernels->transpose(p.network.shape(), p.parameters.data(), p.transposed.data());
          const std::size_t in = widths[0], padding = p.network.shape().layers[0].in_pad;
          std::vector<double> mean(padding), inverse(padding), raw(rows * in);
          for (std::size_t c = 0; c < in; ++c) {
            mean[c] = 10.0 * double(c) - 3.0;
            inverse[c] = 0.25 * double(c + 1);
            for (std::size_t r = 0; r < rows; ++r)
              raw[r * in + c] = p.x(Eigen::Index(c), Eigen::Index(r)) / inverse[c] + mean[c];
          }
          const mlp::Inputs inputs{raw.data(), in, rows, mean.data(), inverse.data()};
          std::vector<double> logits(rows), gradient(rows * in);
          EXPECT_TRUE(kernels->score(p.network.shape(), p.parameters.data(), inputs, logits.data(),
                                     scratch.data()));
          EXPECT_TRUE(kernels->input_gradient(p.network.shape(), p.parameters.data(),
                                              p.transposed.data(), inputs, gradient.data(),
                                              scratch.data()));
          const Reference reference(p.widths, activation, p.plain);
          std::vector<MatrixXd> values;
          const MatrixXd z = reference.forward(p.x, values).back();
          EXPECT_LT(relative_difference(logits, VectorXd(z.row(0).transpose())), kernel_tolerance);
          const auto expected = reference.gradients(p.x, p.y, p.w, mlp::Loss::cross_entropy, true);
          std::vector<double> slopes;
          for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t c = 0; c < in; ++c)
              slopes.push_back(expected.inputs(Eigen::Index(c), Eigen::Index(r)) * inverse[c]);
          EXPECT_LT(relative_difference(gradient, slopes), kernel_tolerance);
        }
      }
    }
  }
}

TEST(MlpKernels, TanhAndExpAreAccurate) {
  const std::size_t count = 1 << 20;
  std::vector<float> x(count), y(count);
  for (const mlp::Kernels* kernels : mlp::supported_kernels()) {
    for (std::size_t i = 0; i < count; ++i) x[i] = float(-12.0 + 24.0 * double(i) / count);
    x[0] = -1e30f, x[1] = 1e30f, x[2] = 1e-20f, x[3] = -1e-6f, x[4] = 0.0f;
    kernels->tanh(x.data(), y.data(), count);
    double worst = 0.0;
    for (std::size_t i = 0; i < count; ++i) {
      const double exact = std::tanh(double(x[i]));
      worst = std::max(worst, exact == 0.0 ? std::abs(y[i]) : std::abs(y[i] / exact - 1.0));
    }
    EXPECT_LT(worst, 1e-6) << kernels->name;

    for (std::size_t i = 0; i < count; ++i) x[i] = float(-87.0 + 174.0 * double(i) / count);
    kernels->exp(x.data(), y.data(), count);
    worst = 0.0;
    for (std::size_t i = 0; i < count; ++i)
      worst = std::max(worst, std::abs(y[i] / std::exp(double(x[i])) - 1.0));
    EXPECT_LT(worst, 1e-6) << kernels->name;
  }
}

TEST(MlpKernels, AdamMatchesItsFormula) {
  for (const mlp::Kernels* kernels : mlp::supported_kernels()) {
    Problem p({7, 40, 17}, mlp::Activation::relu, 4);
    const std::size_t size = p.network.shape().parameters;
    std::array<mlp::Buffer, 3> parts{mlp::Buffer(size), mlp::Buffer(size), mlp::Buffer(size)};
    const float* const gradients[] = {parts[0].data(), parts[1].data(), parts[2].data()};
    mlp::Buffer first(size), second(size);
    RandomStream random(3, "adam");
    std::vector<double> value(p.plain.begin(), p.plain.end()), m(value.size()), v(value.size());
    // which of the plain parameters are weights
    std::vector<bool> weight;
    for (const auto& [in, out] : {std::pair{7, 40}, {40, 17}, {17, 1}}) {
      weight.insert(weight.end(), std::size_t(in * out), true);
      weight.insert(weight.end(), std::size_t(out), false);
    }
    ASSERT_EQ(weight.size(), value.size());
    const double rate = 1e-2, beta1 = 0.9, beta2 = 0.99, decay = 0.1, l2 = 0.05;
    for (int t = 1; t <= 5; ++t) {
      std::vector<float> slopes(value.size());
      for (auto& part : parts) {
        std::vector<float> own(value.size());
        for (float& slope : own) slope = float(random.normal());
        p.network.pack(own, part.data());
        for (std::size_t i = 0; i < own.size(); ++i) slopes[i] += own[i];
      }
      kernels->adam(
          p.network.shape(),
          {float(rate / (1.0 - std::pow(beta1, t))), float(beta1), float(beta2),
           float(1.0 / (1.0 - std::pow(beta2, t))), 1e-8f, float(rate * decay), float(l2)},
          p.parameters.data(), p.transposed.data(), {gradients, 3}, first.data(), second.data());
      for (std::size_t i = 0; i < value.size(); ++i) {
        const double g = slopes[i] + (weight[i] ? l2 * value[i] : 0.0);
        m[i] = beta1 * m[i] + (1.0 - beta1) * g;
        v[i] = beta2 * v[i] + (1.0 - beta2) * g * g;
        value[i] -= rate * (m[i] / (1.0 - std::pow(beta1, t)) /
                                (std::sqrt(v[i] / (1.0 - std::pow(beta2, t))) + 1e-8) +
                            (weight[i] ? decay * value[i] : 0.0));
      }
    }
    EXPECT_LT(relative_difference(p.network.unpack(p.parameters.data()), value), 1e-5);
  }
}

TEST(MlpOrder, GivesEveryRowOnceAndNoPreferredPlace) {
  for (const std::size_t n : {3000u, 4097u, 70000u}) {
    std::vector<std::uint32_t> order(n), before(n), place(n);
    double places = 0.0, neighbours = 0.0, epochs = 0.0, batches = 0.0;
    const double mean = 0.5 * double(n - 1), variance = (double(n) * double(n) - 1.0) / 12.0;
    const std::size_t count = 20, batch = 100;
    for (std::uint64_t epoch = 0; epoch < count; ++epoch) {
      before = order;
      mlp::random_order(order, 11, epoch);
      auto sorted = order;
      std::sort(sorted.begin(), sorted.end());
      for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(sorted[i], i);
      for (std::size_t i = 0; i < n; ++i) {
        places += (order[i] - mean) * (double(i) - mean) / variance;
        neighbours += (order[i] - mean) * (order[(i + 1) % n] - mean) / variance;
        if (epoch > 0) epochs += (order[i] - mean) * (before[i] - mean) / variance;
      }
      // rows that share a batch, and shared one an epoch before
      if (epoch > 0) {
        for (std::size_t i = 0; i < n; ++i) place[before[i]] = std::uint32_t(i / batch);
        for (std::size_t i = 0; i + 1 < n; ++i)
          if (place[order[i]] == place[order[i + 1]]) batches += 1.0;
      }
    }
    // Correlations of a row with its place, the next row and the epoch before: sums of 20 n terms
    // of variance 1. Five sigma: false alarm 1e-6 each.
    const double limit = 5.0 * std::sqrt(double(count * n));
    EXPECT_LT(std::abs(places), limit) << n;
    EXPECT_LT(std::abs(neighbours), limit) << n;
    EXPECT_LT(std::abs(epochs), limit) << n;
    // Poisson: each of n − 1 pairs with probability (batch − 1)/(n − 1)
    const double expected = double(count - 1) * double(batch - 1);
    EXPECT_NEAR(batches, expected, 5.0 * std::sqrt(expected)) << n;
  }
}

TEST(MlpOrder, EveryPairOfPlacesIsAsLikely) {
  // where rows 0 and 1 go, over many epochs, in an 8 x 8 grid: χ² with 63 degrees of freedom
  const std::size_t n = 5000, epochs = 4000;
  std::vector<std::uint32_t> order(n);
  std::vector<double> cells(64);
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    mlp::random_order(order, 5, epoch);
    const auto first = std::find(order.begin(), order.end(), 0u) - order.begin();
    const auto second = std::find(order.begin(), order.end(), 1u) - order.begin();
    cells[std::size_t(first * 8 / std::ptrdiff_t(n) * 8 + second * 8 / std::ptrdiff_t(n))] += 1.0;
  }
  double chi_square = 0.0;
  for (const double cell : cells) chi_square += (cell - epochs / 64.0) * (cell - epochs / 64.0);
  chi_square /= epochs / 64.0;
  EXPECT_LT(chi_square, 132.0);  // false alarm 1e-6
  EXPECT_GT(chi_square, 22.0);   // false alarm 1e-6
}

// ---- The classifier.

struct Events {
  Matrix x;
  std::vector<std::uint8_t> denominator;
  std::vector<double> weights;
  TrainingSet set(std::uint64_t seed = 1) const { return {x, denominator, weights, seed}; }
};

/// Numerator N(0.5, 1) and denominator N(-0.5, 1) in the first column, where log r = x; the
/// further columns are noise with large offsets and scales.
Events two_gaussians(std::size_t rows, std::size_t columns, std::uint64_t seed) {
  Events events{Matrix(rows, columns), std::vector<std::uint8_t>(rows), {}};
  RandomStream random(seed, "two-gaussians");
  for (std::size_t i = 0; i < rows; ++i) {
    events.denominator[i] = i % 2;
    events.x(i, 0) = random.normal() + (i % 2 ? -0.5 : 0.5);
    for (std::size_t c = 1; c < columns; ++c)
      events.x(i, c) = 1000.0 * double(c) + 50.0 * random.normal();
  }
  return events;
}

Mlp::Config quick() {
  Mlp::Config config;
  config.hidden = {16, 16};
  config.epochs = 10;
  return config;
}

TEST(Mlp, LearnsTheRatioOfTwoGaussians) {
  const Events events = two_gaussians(60000, 2, 1);
  Matrix grid(81, 2);
  for (std::size_t i = 0; i < 81; ++i) {
    grid(i, 0) = -2.0 + 0.05 * double(i);
    grid(i, 1) = 1000.0;
  }
  for (const auto activation :
       {Mlp::Activation::relu, Mlp::Activation::tanh, Mlp::Activation::silu}) {
    for (const auto loss : {Mlp::Loss::cross_entropy, Mlp::Loss::squared_error}) {
      Mlp::Config config = quick();
      config.activation = activation;
      config.loss = loss;
      Mlp mlp(config);
      mlp.fit(events.set());
      const Logits z = mlp.logits(grid);
      double error = 0.0;
      for (std::size_t i = 0; i < 81; ++i) error += std::abs(-z[i] - grid(i, 0)) / 81.0;
      // the statistical error of a linear fit to these events is about 0.01
      EXPECT_LT(error, 0.06) << int(activation) << int(loss);
    }
  }
}

TEST(Mlp, SidesOfUnequalSizeAndWeightAreBalanced) {
  // three times as many denominator events at a third of the weight, and a common factor
  Events events = two_gaussians(40000, 1, 2);
  Events heavy{Matrix(0, 1), {}, {}};
  std::vector<double> rows;
  for (std::size_t i = 0; i < 40000; ++i) {
    for (int copy = 0; copy < (events.denominator[i] ? 3 : 1); ++copy) {
      rows.push_back(events.x(i, 0));
      heavy.denominator.push_back(events.denominator[i]);
      heavy.weights.push_back(events.denominator[i] ? 5.0 : 17.0);
    }
  }
  const std::size_t count = rows.size();
  heavy.x = Matrix(count, 1, std::move(rows));
  Mlp mlp(quick());
  mlp.fit(heavy.set());
  Matrix centre(1, 1);
  EXPECT_NEAR(mlp.logits(centre)[0], 0.0, 0.05);
}

TEST(Mlp, RowsOfWeightZeroDoNotCount) {
  Events events = two_gaussians(4000, 2, 3);
  events.weights.assign(4000, 1.0);
  Mlp::Config config = quick();
  config.epochs = 2;
  Mlp plain(config), with_ballast(config);
  plain.fit(events.set());
  Events more = events;
  const Matrix ballast(500, 2, std::vector<double>(1000, 1e9));
  more.x.append(ballast);
  more.denominator.insert(more.denominator.end(), 500, 1);
  more.weights.insert(more.weights.end(), 500, 0.0);
  with_ballast.fit(more.set());
  // the same but for the rounding of the balanced weights and moments
  const auto a = plain.parameters(), b = with_ballast.parameters();
  EXPECT_LT(relative_difference(a, b), 1e-3);
}

TEST(Mlp, TheSameBitsOnAnyNumberOfThreads) {
  const Events events = two_gaussians(20000, 3, 4);
  Mlp::Config config = quick();
  config.epochs = 2;
  config.held_out = 0.2;
  // Two, three and four groups of a batch, five of which the last is not full, and batches whose
  // last one has more groups than the others.
  for (const std::size_t batch : {100, 180, 256, 5000, 3000}) {
    config.batch_size = batch;
    std::vector<std::vector<float>> parameters;
    std::vector<Logits> logits;
    std::vector<double> losses;
    const std::size_t before = threads();
    for (const std::size_t count : {1, 2, 3, 5}) {
      set_threads(count);
      Mlp mlp(config);
      mlp.fit(events.set());
      parameters.push_back(mlp.parameters());
      logits.push_back(mlp.logits(events.x));
      losses.push_back(mlp.history().back().training);
    }
    set_threads(before);
    for (std::size_t i = 1; i < parameters.size(); ++i) {
      EXPECT_EQ(parameters[0], parameters[i]) << "batches of " << batch;
      EXPECT_EQ(logits[0], logits[i]) << "batches of " << batch;
      EXPECT_EQ(losses[0], losses[i]) << "batches of " << batch;
    }
  }
}

TEST(Mlp, TheSeedDecides) {
  const Events events = two_gaussians(3000, 1, 5);
  Mlp::Config config = quick();
  config.epochs = 1;
  Mlp first(config), second(config), other(config);
  first.fit(events.set(1));
  second.fit(events.set(1));
  other.fit(events.set(2));
  EXPECT_EQ(first.parameters(), second.parameters());
  EXPECT_NE(first.parameters(), other.parameters());
}

TEST(Mlp, SaveAndLoadAreExact) {
  const Events events = two_gaussians(3000, 3, 6);
  Mlp::Config config = quick();
  config.hidden = {9, 5, 3};
  config.activation = Mlp::Activation::tanh;
  config.schedule = Mlp::Schedule::step;
  config.epochs = 2;
  config.held_out = 0.25;
  config.weight_decay = 0.02;
  Mlp mlp(config);
  mlp.fit(events.set());
  Archive archive;
  mlp.save(archive);
  Mlp loaded;
  loaded.load(archive);
  EXPECT_EQ(loaded.config(), mlp.config());
  EXPECT_EQ(loaded.features(), 3u);
  EXPECT_EQ(loaded.parameters(), mlp.parameters());
  EXPECT_EQ(loaded.history(), mlp.history());
  EXPECT_EQ(loaded.logits(events.x), mlp.logits(events.x));
  EXPECT_EQ(loaded.gradient(events.x), mlp.gradient(events.x));
  Archive again;
  loaded.save(again);
  EXPECT_EQ(again, archive);
}

TEST(Mlp, LoadRefusesParametersThatDoNotFit) {
  const Events events = two_gaussians(100, 1, 6);
  Mlp::Config config = quick();
  config.epochs = 1;
  Mlp mlp(config);
  mlp.fit(events.set());
  Archive archive;
  mlp.save(archive);
  archive.set("hidden", std::vector<std::int64_t>{5});
  EXPECT_THROW(mlp.load(archive), Error);
  archive.set("hidden", std::vector<std::int64_t>{0});
  EXPECT_THROW(mlp.load(archive), Error);
}

TEST(Mlp, GradientIsTheSlopeOfTheLogit) {
  const Events events = two_gaussians(20000, 2, 7);
  Mlp::Config config = quick();
  config.activation = Mlp::Activation::tanh;
  Mlp mlp(config);
  mlp.fit(events.set());
  Matrix at(1, 2);
  at(0, 0) = 0.3;
  at(0, 1) = 980.0;
  const Matrix slope = mlp.gradient(at);
  for (const auto& [column, step] : {std::pair{0u, 0.05}, {1u, 2.5}}) {
    Matrix high = at, low = at;
    high(0, column) += step;
    low(0, column) -= step;
    const double difference = (mlp.logits(high)[0] - mlp.logits(low)[0]) / (2.0 * step);
    // float32 logits and the cubic term of the difference
    EXPECT_NEAR(slope(0, column), difference, 2e-3 * std::abs(slope(0, 0)) / (column ? 50 : 1));
  }
  EXPECT_NEAR(slope(0, 0), -1.0, 0.4);
}

TEST(Mlp, AConstantFeatureIsHarmless) {
  Events events = two_gaussians(20000, 2, 8);
  for (std::size_t i = 0; i < events.x.rows(); ++i) events.x(i, 1) = 1e9;
  Mlp mlp(quick());
  mlp.fit(events.set());
  Matrix at(2, 2, std::vector<double>(4, 1e9));
  at(0, 0) = 1.0;
  at(1, 0) = -1.0;
  const Logits z = mlp.logits(at);
  EXPECT_NEAR(z[0], -1.0, 0.1);
  EXPECT_NEAR(z[1], 1.0, 0.1);
}

TEST(Mlp, OneRowASideIsEnough) {
  Events events{Matrix(2, 1), {0, 1}, {}};
  events.x(0, 0) = 1.0;
  events.x(1, 0) = -1.0;
  for (const double held_out : {0.0, 0.5}) {
    Mlp::Config config = quick();
    config.epochs = 200;
    config.held_out = held_out;
    Mlp mlp(config);
    mlp.fit(events.set());
    const Logits z = mlp.logits(events.x);
    EXPECT_LT(z[0], z[1]);
    EXPECT_TRUE(std::isfinite(z[0]) && std::isfinite(z[1]));
  }
}

TEST(Mlp, ExtremeInputsGiveFiniteLogits) {
  const Events events = two_gaussians(3000, 2, 9);
  const double huge = std::numeric_limits<double>::max();
  for (const auto activation :
       {Mlp::Activation::relu, Mlp::Activation::tanh, Mlp::Activation::silu}) {
    Mlp::Config config = quick();
    config.activation = activation;
    config.epochs = 2;
    Mlp mlp(config);
    mlp.fit(events.set());
    Matrix at(4, 2, {1e6, -1e6, -1e6, 1e6, huge, -huge, -huge, huge});
    for (const double z : mlp.logits(at)) EXPECT_TRUE(std::isfinite(z));
    const Matrix slopes = mlp.gradient(at);
    for (const double slope : slopes.values()) EXPECT_TRUE(std::isfinite(slope));
  }
}

TEST(Mlp, EarlyStoppingKeepsTheBestWeights) {
  // pure noise of ten features and few rows: what is learnt is overfitting
  Events events{Matrix(400, 10), std::vector<std::uint8_t>(400), {}};
  RandomStream random(10, "noise");
  for (std::size_t i = 0; i < 400; ++i) {
    events.denominator[i] = i % 2;
    for (double& value : events.x.row(i)) value = random.normal();
  }
  Mlp::Config config;
  config.epochs = 300;
  config.batch_size = 32;
  config.schedule = Mlp::Schedule::constant;
  config.warm_up = 0.0;  // the rate must not depend on the number of epochs
  config.held_out = 0.5;
  config.patience = 5;
  Mlp mlp(config);
  mlp.fit(events.set());
  const auto& history = mlp.history();
  EXPECT_LT(history.size(), 100u);
  std::size_t best = 0;
  for (std::size_t i = 0; i < history.size(); ++i)
    if (history[i].held_out < history[best].held_out) best = i;
  EXPECT_EQ(history.size(), best + 1 + config.patience);
  EXPECT_LT(history.back().training, history[best].training);

  // training for as many epochs as the best had gives the kept weights
  config.epochs = best + 1;
  Mlp shorter(config);
  shorter.fit(events.set());
  EXPECT_EQ(shorter.parameters(), mlp.parameters());
}

TEST(Mlp, EveryScheduleAndPenaltyTrains) {
  const Events events = two_gaussians(20000, 1, 12);
  Matrix at(2, 1, {1.0, -1.0});
  for (const auto schedule : {Mlp::Schedule::constant, Mlp::Schedule::cosine, Mlp::Schedule::step,
                              Mlp::Schedule::exponential}) {
    Mlp::Config config = quick();
    config.schedule = schedule;
    config.decay_epochs = 3;
    config.weight_decay = 1e-3;
    Mlp mlp(config);
    mlp.fit(events.set());
    const Logits z = mlp.logits(at);
    EXPECT_NEAR(z[0], -1.0, 0.15) << int(schedule);
    EXPECT_NEAR(z[1], 1.0, 0.15) << int(schedule);
  }
  // a strong penalty holds the logit near 0
  for (const bool decoupled : {false, true}) {
    Mlp::Config config = quick();
    if (decoupled) {
      config.weight_decay = 100.0;
    } else {
      config.l2 = 10.0;
    }
    Mlp mlp(config);
    mlp.fit(events.set());
    EXPECT_LT(std::abs(mlp.logits(at)[0]), 0.1) << decoupled;
  }
}

TEST(Mlp, DivergenceIsAnError) {
  const Events events = two_gaussians(3000, 1, 13);
  Mlp::Config config = quick();
  config.learning_rate = 1e30;
  Mlp mlp(config);
  EXPECT_THROW(mlp.fit(events.set()), Error);
  EXPECT_FALSE(mlp.fitted());
}

template <class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Mlp, RefusesWhatItCannotUse) {
  Events events = two_gaussians(100, 2, 14);
  Mlp::Config config = quick();
  config.epochs = 1;
  Mlp mlp(config);
  EXPECT_EQ(message_of([&] { mlp.logits(events.x); }),
            "Mlp::logits: the classifier is not fitted, but must be fitted before");
  EXPECT_THROW(mlp.history(), ArgumentError);
  Events bad = events;
  bad.x(3, 1) = std::nan("");
  EXPECT_NE(message_of([&] { mlp.fit(bad.set()); }).find("row 3, column 1"), std::string::npos);
  EXPECT_FALSE(mlp.fitted());

  mlp.fit(events.set());
  EXPECT_NE(message_of([&] { mlp.logits(bad.x); }).find("row 3, column 1"), std::string::npos);
  bad.x(3, 1) = -std::numeric_limits<double>::infinity();
  EXPECT_NE(message_of([&] { mlp.gradient(bad.x); }).find("row 3, column 1"), std::string::npos);
  EXPECT_THROW(mlp.logits(Matrix(4, 3)), ArgumentError);
  EXPECT_EQ(mlp.logits(Matrix(0, 2)).size(), 0u);

  config.learning_rate = -1.0;
  EXPECT_EQ(message_of([&] { Mlp{config}; }),
            "Mlp: learning_rate is -1, but must be positive and finite");
  config = quick();
  config.hidden = {4, 0};
  EXPECT_THROW(Mlp{config}, ArgumentError);
}

TEST(Mlp, ConfigIsReadFromAStudy) {
  using Array = SettingValue::Array;
  const auto value = [](auto data, int line) {
    SettingValue result;
    result.data = data;
    result.line = line;
    return result;
  };
  Settings good(SettingValue::Table{
      {"hidden", value(Array{value(std::int64_t{8}, 1), value(std::int64_t{4}, 1)}, 1)},
      {"activation", value(std::string("tanh"), 2)},
      {"loss", value(std::string("squared-error"), 3)},
      {"schedule", value(std::string("exponential"), 4)},
      {"learning_rate", value(0.01, 5)},
      {"batch_size", value(std::int64_t{64}, 6)}});
  const auto config = Mlp::Config::from(good);
  good.throw_if_problems();
  EXPECT_EQ(config.hidden, (std::vector<std::size_t>{8, 4}));
  EXPECT_EQ(config.activation, Mlp::Activation::tanh);
  EXPECT_EQ(config.loss, Mlp::Loss::squared_error);
  EXPECT_EQ(config.schedule, Mlp::Schedule::exponential);
  EXPECT_EQ(config.learning_rate, 0.01);
  EXPECT_EQ(config.batch_size, 64u);
  EXPECT_EQ(config.epochs, Mlp::Config{}.epochs);

  Settings bad(SettingValue::Table{{"hidden", value(Array{value(2.5, 1)}, 1)},
                                   {"activation", value(std::string("gelu"), 2)},
                                   {"learning_rate", value(-1.0, 3)},
                                   {"epochs", value(std::int64_t{0}, 4)}});
  Mlp::Config::from(bad);
  std::vector<int> lines;
  for (const auto& problem : bad.problems()) lines.push_back(problem.where.line);
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, (std::vector<int>{1, 2, 3, 4}));
}

TEST(Mlp, TheInstructionSetCanBePinned) {
  const char* before = std::getenv("NEYMAN_ISA");
  const std::string saved = before ? before : "";
  for (const mlp::Kernels* kernels : mlp::supported_kernels()) {
    setenv("NEYMAN_ISA", kernels->name, 1);
    EXPECT_STREQ(mlp::kernels().name, kernels->name);
  }
  setenv("NEYMAN_ISA", "v9", 1);
  EXPECT_NE(message_of([] { mlp::kernels(); }).find("NEYMAN_ISA is v9"), std::string::npos);
  setenv("NEYMAN_ISA", saved.c_str(), 1);
}

// ---- Rows made anew for each epoch.

TrainingRows noisy_rows(std::size_t rows, std::uint64_t seed, std::size_t columns = 2) {
  RandomStream random(seed, "epochs");
  TrainingRows out{Matrix(rows, columns), std::vector<std::uint8_t>(rows), {}};
  for (std::size_t i = 0; i < rows; ++i) {
    out.denominator[i] = i % 2 == 1;
    for (std::size_t c = 0; c < columns; ++c)
      out.x(i, c) = random.normal() + (out.denominator[i] != 0 && c == 0 ? 1.0 : 0.0);
  }
  return out;
}

Mlp::Config epochs_config() {
  Mlp::Config config;
  config.hidden = {8};
  config.epochs = 4;
  config.batch_size = 32;
  config.weight_decay = 1e-3;
  return config;
}

TEST(MlpEpochs, TheSameRowsInEachEpochAreOneSample) {
  const auto rows = noisy_rows(300, 1);
  Mlp fixed(epochs_config()), renewed(epochs_config());
  fixed.fit({rows.x, rows.denominator, {}, 5});
  std::vector<std::size_t> asked;
  renewed.fit_epochs(
      [&](std::size_t epoch) {
        asked.push_back(epoch);
        return rows;
      },
      5);
  EXPECT_EQ(asked, (std::vector<std::size_t>{0, 1, 2, 3}));
  EXPECT_EQ(fixed.parameters(), renewed.parameters());
  EXPECT_EQ(fixed.history(), renewed.history());
}

TEST(MlpEpochs, OtherRowsAreOtherwiseLearned) {
  const auto epochs = [](std::size_t epoch) { return noisy_rows(300, 1 + epoch); };
  const auto rows = noisy_rows(300, 1);
  Mlp fixed(epochs_config()), renewed(epochs_config());
  fixed.fit({rows.x, rows.denominator, {}, 5});
  renewed.fit_epochs(epochs, 5);
  EXPECT_EQ(fixed.history()[0], renewed.history()[0]);
  EXPECT_NE(fixed.history()[1], renewed.history()[1]);
}

TEST(MlpEpochs, LearnsNothingByHeart) {
  // 200 rows and 100 epochs of a wide network: one sample is learned by heart, new ones are not.
  Mlp::Config config;
  config.hidden = {64, 64};
  config.epochs = 100;
  config.weight_decay = 0.0;
  const auto rows = noisy_rows(200, 1), test = noisy_rows(4000, 77);
  Mlp fixed(config), renewed(config);
  fixed.fit({rows.x, rows.denominator, {}, 5});
  renewed.fit_epochs([](std::size_t epoch) { return noisy_rows(200, 1 + epoch); }, 5);
  const auto error = [&](const Mlp& network) {  // z* = x0 − ½
    const auto z = network.logits(test.x);
    double sum = 0.0;
    for (std::size_t i = 0; i < z.size(); ++i) sum += std::pow(z[i] - (test.x(i, 0) - 0.5), 2);
    return std::sqrt(sum / static_cast<double>(z.size()));
  };
  EXPECT_LT(error(renewed), 0.3);
  EXPECT_GT(error(fixed), 3.0 * error(renewed));
}

TEST(MlpEpochs, SaysWhatDoesNotFit) {
  const auto message = [](const Mlp::Config& config, const TrainingEpochs& epochs) -> std::string {
    try {
      Mlp(config).fit_epochs(epochs, 1);
    } catch (const ArgumentError& error) {
      return error.what();
    }
    return {};
  };
  auto held = epochs_config();
  held.held_out = 0.1;
  EXPECT_NE(message(held, [](std::size_t) { return noisy_rows(100, 1); })
                .find("held_out is 0.1, but must be 0 where every epoch has events of its own"),
            std::string::npos);
  // Simulations may fail: a few rows more or less are no reason to.
  EXPECT_EQ(message(epochs_config(), [](std::size_t e) { return noisy_rows(100 + 3 * e, 1); }), "");
  EXPECT_EQ(message(epochs_config(), [](std::size_t e) { return noisy_rows(100 - 3 * e, 1); }), "");
  EXPECT_NE(message(epochs_config(), [](std::size_t e) { return noisy_rows(100, 1, 2 + e); })
                .find("as in the first"),
            std::string::npos);
}

// ---- Rows that are read window by window.

TEST(MlpStream, OneWindowIsTrainedOnAsRowsInMemory) {
  auto rows = noisy_rows(301, 1);  // sides of different sizes, with an offset and weights
  for (std::size_t i = 0; i < 301; ++i) {
    rows.x(i, 1) = 1e4 + 0.1 * rows.x(i, 1);
    rows.weights.push_back(0.5 + static_cast<double>(i % 3));
  }
  Mlp in_memory(epochs_config()), streamed(epochs_config());
  in_memory.fit({rows.x, rows.denominator, rows.weights, 5});
  streamed.fit_stream(problems::stream_of(rows, 1));
  Archive a, b;
  in_memory.save(a);
  streamed.save(b);
  for (const char* key : {"mean", "scale"})
    for (std::size_t c = 0; c < 2; ++c)
      EXPECT_NEAR(b.numbers(key)[c], a.numbers(key)[c], 1e-9 * std::abs(a.numbers(key)[c]));
  // Rows stand in another order (side by side in memory), so that batches differ: the loss is as
  // low, not the same.
  EXPECT_NEAR(streamed.history().back().training, in_memory.history().back().training, 0.02);
}

TEST(MlpStream, ReachesTheLossOfRowsInMemory) {
  // z* = x0 − ½. Ten windows of each 400 rows, sorted by side within the table.
  auto rows = noisy_rows(4000, 1);
  Mlp::Config config;
  config.hidden = {16};
  config.epochs = 10;
  const auto test = noisy_rows(20000, 77);
  const auto loss = [&](const Mlp& network) {
    const auto z = network.logits(test.x);
    double sum = 0.0;
    for (std::size_t i = 0; i < z.size(); ++i)
      sum += std::log1p(std::exp(test.denominator[i] != 0 ? -z[i] : z[i]));
    return sum / static_cast<double>(z.size());
  };
  Mlp in_memory(config), streamed(config);
  in_memory.fit({rows.x, rows.denominator, {}, 5});
  streamed.fit_stream(problems::stream_of(rows, 10));
  double best = 0.0;
  for (std::size_t i = 0; i < test.x.rows(); ++i) {
    const double z = test.x(i, 0) - 0.5;
    best += std::log1p(std::exp(test.denominator[i] != 0 ? -z : z)) / 20000;
  }
  // Both are within a few parameters/rows of the exact ratio's loss.
  EXPECT_LT(loss(in_memory), best + 0.01);
  EXPECT_LT(loss(streamed), best + 0.01);
  EXPECT_NEAR(loss(streamed), loss(in_memory), 0.005);
}

TEST(MlpStream, HasTheSameBitsForAnyNumberOfThreads) {
  const auto rows = noisy_rows(9000, 1);
  auto config = epochs_config();
  config.batch_size = 4096;
  config.held_out = 0.2;
  std::vector<std::vector<float>> found;
  for (const std::size_t count : {1U, 2U, 5U}) {
    set_threads(count);
    Mlp network(config);
    network.fit_stream(problems::stream_of(rows, 2));
    found.push_back(network.parameters());
  }
  set_threads(0);
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(found[0], found[2]);
}

TEST(MlpStream, HoldsOutGroupsAndStopsEarly) {
  // Sides that x does not tell apart, and a wide network: what it learns is noise, and the held-out
  // loss rises after the first epochs.
  auto rows = noisy_rows(600, 3);
  for (std::size_t i = 0; i < 600; ++i) rows.x(i, 0) -= rows.denominator[i];
  Mlp::Config config;
  config.hidden = {64, 64};
  config.epochs = 200;
  config.weight_decay = 0.0;
  config.held_out = 0.3;
  config.patience = 5;
  Mlp network(config);
  network.fit_stream(problems::stream_of(rows, 3));
  EXPECT_LT(network.history().size(), 100U);
  double lowest = 1.0;
  for (const auto& epoch : network.history()) lowest = std::min(lowest, epoch.held_out);
  EXPECT_GT(lowest, 0.6);  // log 2 where nothing is known; a row that was trained on has less
  EXPECT_EQ(network.history()[network.history().size() - 6].held_out, lowest);
}

TEST(MlpStream, SaysWhatDoesNotFit) {
  const auto rows = noisy_rows(100, 1);
  const auto message = [](TrainingStream stream) -> std::string {
    try {
      Mlp(epochs_config()).fit_stream(stream);
    } catch (const ArgumentError& error) {
      return error.what();
    }
    return {};
  };
  const auto changed = [&](auto&& change) {
    auto stream = problems::stream_of(rows, 2);
    stream.read = [read = stream.read, change](std::size_t epoch, std::size_t window) {
      auto out = read(epoch, window);
      change(out, epoch, window);
      return out;
    };
    return message(stream);
  };
  const auto contains = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  contains(changed([](TrainingRows& out, std::size_t, std::size_t) {
             std::fill(out.denominator.begin(), out.denominator.end(), 0);
           }),
           "the denominator's weight is 0");
  contains(changed([](TrainingRows& out, std::size_t, std::size_t) { out.groups.pop_back(); }),
           "groups");
  contains(changed([](TrainingRows& out, std::size_t, std::size_t window) {
             if (window == 1) out.x(0, 1) = std::nan("");
           }),
           "x[row 0, column 1] is nan, but must be finite");
  // What the reader throws, from the thread that reads ahead.
  contains(changed([](TrainingRows&, std::size_t epoch, std::size_t) {
             if (epoch == 2) throw ArgumentError("the disk is gone");
           }),
           "the disk is gone");
}

// ---- One training by several ranks.

TEST(MlpRanks, GiveTheBitsOfOneProcess) {
  // Batches of 5000 rows have five groups, the last one of an epoch fewer; those of 300 have one,
  // which all ranks do alike.
  const auto rows = noisy_rows(18001, 1, 5);
  for (const std::size_t batch : {5000U, 16384U, 300U}) {
    auto config = epochs_config();
    config.batch_size = batch;
    config.epochs = 2;
    config.held_out = 0.1;
    Mlp alone(config);
    alone.fit({rows.x, rows.denominator, {}, 5});
    for (const std::size_t size : {1U, 2U, 3U, 4U, 7U})
      testing::ThreadRanks::run(size, [&](Communicator& ranks) {
        Mlp network(config);
        TrainingSet data{rows.x, rows.denominator, {}, 5};
        data.ranks = &ranks;
        network.fit(data);
        EXPECT_EQ(network.parameters(), alone.parameters()) << size;
        EXPECT_EQ(network.history(), alone.history()) << size;
      });
  }
}

TEST(MlpRanks, ReadAStreamTogether) {
  const auto rows = noisy_rows(12000, 1);
  auto config = epochs_config();
  config.batch_size = 4096;
  Mlp alone(config);
  alone.fit_stream(problems::stream_of(rows, 2));
  testing::ThreadRanks::run(3, [&](Communicator& ranks) {
    Mlp network(config);
    auto stream = problems::stream_of(rows, 2);
    stream.ranks = &ranks;
    network.fit_stream(stream);
    EXPECT_EQ(network.parameters(), alone.parameters());
  });
}

TEST(MlpRanks, SharesAreGroupsOfABatch) {
  const auto shares = [](std::size_t batch) {
    Mlp::Config config;
    config.batch_size = batch;
    return Mlp(config).shares();
  };
  EXPECT_EQ(shares(128), 1U);
  EXPECT_EQ(shares(1024), 1U);
  EXPECT_EQ(shares(4096), 4U);
  EXPECT_EQ(shares(1 << 20), 16U);
}

}  // namespace
}  // namespace neyman
