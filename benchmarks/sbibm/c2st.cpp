// The network of the benchmark's classifier two-sample test, as scikit-learn's MLPClassifier trains
// it by default: two hidden layers of relu, Adam with its usual constants, batches of 200, weights
// penalised by 10⁻⁴, and no epoch after ten in a row that lowered the training loss by less than
// 10⁻⁴. Here in single precision too, with other random numbers, and many times faster.

#include <immintrin.h>

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace {

using Matrix = Eigen::MatrixXf;  // one column a row of the data
using Vector = Eigen::VectorXf;
using Index = Eigen::Index;

constexpr float alpha = 1e-4f, rate = 1e-3f, beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
constexpr double tolerance = 1e-4;
constexpr int patience = 10;
constexpr std::size_t batch_size = 200;
constexpr std::size_t layers = 3;

class Network {
 public:
  Network(Index features, std::mt19937_64& random) {
    const std::array<Index, layers + 1> widths{features, 10 * features, 10 * features, 1};
    for (std::size_t l = 0; l < layers; ++l) {
      const auto bound = std::sqrt(6.0f / static_cast<float>(widths[l] + widths[l + 1]));
      std::uniform_real_distribution<float> uniform(-bound, bound);
      const auto draw = [&] { return uniform(random); };
      weights_[l].reset(Matrix::NullaryExpr(widths[l + 1], widths[l], draw));
      biases_[l].reset(Matrix::NullaryExpr(widths[l + 1], 1, draw));
    }
  }

  /// The logit of each column of x.
  const Matrix& forward(const Matrix& x) {
    for (std::size_t l = 0; l < layers; ++l) {
      const Matrix& in = l == 0 ? x : outputs_[l - 1];
      outputs_[l].noalias() = weights_[l].value * in;
      outputs_[l].colwise() += Vector(biases_[l].value);
      if (l + 1 < layers) outputs_[l] = outputs_[l].cwiseMax(0.0f);
    }
    return outputs_.back();
  }

  /// One step of Adam; the loss before it, the penalty included.
  double step(const Matrix& x, const Matrix& labels) {
    const auto n = static_cast<float>(x.cols());
    const Matrix& z = forward(x);
    double loss = 0;
    for (Index i = 0; i < z.cols(); ++i) {
      const double t = labels(0, i) > 0.5f ? -z(0, i) : z(0, i);
      loss += std::max(t, 0.0) + std::log1p(std::exp(-std::abs(t)));
    }
    for (const auto& weights : weights_) loss += 0.5 * alpha * weights.value.squaredNorm();

    ++steps_;
    const auto t = static_cast<double>(steps_);
    const auto size = static_cast<float>(rate * std::sqrt(1 - std::pow(double(beta2), t)) /
                                         (1 - std::pow(double(beta1), t)));
    Matrix delta = (1.0f / (1.0f + (-z.array()).exp())).matrix() - labels;
    for (std::size_t l = layers; l-- > 0;) {
      const Matrix& in = l == 0 ? x : outputs_[l - 1];
      gradient_.noalias() = delta * in.transpose();
      gradient_ = (gradient_ + alpha * weights_[l].value) / n;
      const Matrix of_biases = delta.rowwise().sum() / n;
      if (l > 0) {
        below_.noalias() = weights_[l].value.transpose() * delta;
        delta = (in.array() > 0.0f).select(below_, 0.0f);
      }
      weights_[l].move(gradient_, size);
      biases_[l].move(of_biases, size);
    }
    return loss / n;
  }

 private:
  struct Parameters {
    Matrix value, mean, square;

    void reset(Matrix initial) {
      value = std::move(initial);
      mean = square = Matrix::Zero(value.rows(), value.cols());
    }
    void move(const Matrix& gradient, float size) {
      mean = beta1 * mean + (1 - beta1) * gradient;
      square = beta2 * square + (1 - beta2) * gradient.cwiseAbs2();
      value.array() -= size * mean.array() / (square.array().sqrt() + epsilon);
    }
  };

  std::array<Parameters, layers> weights_, biases_;
  std::array<Matrix, layers> outputs_;
  Matrix gradient_, below_;
  std::size_t steps_ = 0;
};

/// The share of the test columns that a network tells right which learned from the others.
double accuracy(const Matrix& data, const std::vector<Index>& train, const std::vector<Index>& test,
                Index first_of_second, int most_epochs, std::mt19937_64& random) {
  const auto label = [&](Index column) { return column >= first_of_second ? 1.0f : 0.0f; };
  Network network(data.rows(), random);
  std::vector<Index> order = train;
  Matrix x, labels;
  double best = 1e300;
  for (int epoch = 0, idle = 0; epoch < most_epochs && idle <= patience; ++epoch) {
    std::shuffle(order.begin(), order.end(), random);
    double loss = 0;
    for (std::size_t begin = 0; begin < order.size(); begin += batch_size) {
      const auto size = static_cast<Index>(std::min(batch_size, order.size() - begin));
      x.resize(data.rows(), size);
      labels.resize(1, size);
      for (Index i = 0; i < size; ++i) {
        const Index column = order[begin + static_cast<std::size_t>(i)];
        x.col(i) = data.col(column);
        labels(0, i) = label(column);
      }
      loss += network.step(x, labels) * static_cast<double>(size);
    }
    loss /= static_cast<double>(order.size());
    idle = loss > best - tolerance ? idle + 1 : 0;
    best = std::min(best, loss);
  }
  x.resize(data.rows(), static_cast<Index>(test.size()));
  for (std::size_t i = 0; i < test.size(); ++i) x.col(static_cast<Index>(i)) = data.col(test[i]);
  const Matrix& z = network.forward(x);
  std::size_t right = 0;
  for (std::size_t i = 0; i < test.size(); ++i)
    right += (z(0, static_cast<Index>(i)) > 0) == (label(test[i]) > 0.5f);
  return static_cast<double>(right) / static_cast<double>(test.size());
}

}  // namespace

/// The mean accuracy over so many folds of networks that tell the first n rows from the m after
/// them, each of `features` numbers that are standardised already.
extern "C" double classifier_accuracy(const float* rows, std::size_t n, std::size_t m,
                                      std::size_t features, std::size_t folds,
                                      std::size_t most_epochs, std::uint64_t seed) {
  const Matrix data =
      Eigen::Map<const Matrix>(rows, static_cast<Index>(features), static_cast<Index>(n + m));
  // What Adam remembers of a unit that is never on fades to numbers that are slow to compute with.
  const unsigned before = _mm_getcsr();
  _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
  std::mt19937_64 random(seed);
  std::vector<Index> order(n + m);
  std::iota(order.begin(), order.end(), Index{0});
  std::shuffle(order.begin(), order.end(), random);
  double sum = 0;
  for (std::size_t fold = 0; fold < folds; ++fold) {
    std::vector<Index> train, test;
    for (std::size_t i = 0; i < order.size(); ++i)
      (i * folds / order.size() == fold ? test : train).push_back(order[i]);
    sum +=
        accuracy(data, train, test, static_cast<Index>(n), static_cast<int>(most_epochs), random);
  }
  _mm_setcsr(before);
  return sum / static_cast<double>(folds);
}
