#include "neyman/classifiers/logistic.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman {

namespace {

// Keeps the Hessian positive definite for collinear features; far below any useful penalty.
constexpr double smallest_ridge = 1e-12;
// A feature whose spread is below this part of its size is constant but for rounding.
constexpr double constant_spread = 1e-13;
// Standardised features are held inside ±this, so that z is finite for every finite x.
constexpr double largest_standardised = 1e100;

double log1p_exp(double z) { return std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z))); }

/// Loss, gradient and Hessian (lower triangle) summed over some rows.
struct Sums {
  double loss = 0.0;
  std::vector<double> gradient, hessian;

  explicit Sums(std::size_t n) : gradient(n), hessian(n * n) {}
};

Sums add(Sums a, const Sums& b) {
  a.loss += b.loss;
  for (std::size_t j = 0; j < a.gradient.size(); ++j) a.gradient[j] += b.gradient[j];
  for (std::size_t j = 0; j < a.hessian.size(); ++j) a.hessian[j] += b.hessian[j];
  return a;
}

}  // namespace

Logistic::Config Logistic::Config::from(Settings settings) {
  Config config;
  config.l2 =
      settings.number({"l2", "penalty on the coefficients, against the mean loss of one event"},
                      config.l2, Limits::non_negative());
  config.max_iterations =
      settings.count({"max_iterations", "Newton steps, at most"}, config.max_iterations, 1);
  return config;
}

Logistic::Logistic(const Config& config) : config_(config) {
  check_non_negative("logistic", "l2", std::span(&config.l2, 1));
  check_at_least("logistic", "max_iterations", config.max_iterations, 1);
}

std::unique_ptr<Classifier> Logistic::fresh() const { return std::make_unique<Logistic>(config_); }

void Logistic::fit(const TrainingSet& data) {
  const std::vector<double> weights = detail::balanced_weights("logistic.fit", data);
  Logistic fitted_one(config_);
  fitted_one.standardise(data.x, weights);
  fitted_one.converged_ = fitted_one.newton(data, weights);
  *this = std::move(fitted_one);
}

void Logistic::standardise(MatrixView x, std::span<const double> weights) {
  const std::size_t n = x.cols();
  center_.assign(n, 0.0);
  inverse_scale_.assign(n, 0.0);
  const double total = static_cast<double>(x.rows());  // what balanced weights sum to
  parallel_tasks(n, [&](std::size_t j) {
    double size = 0.0;
    for (std::size_t i = 0; i < x.rows(); ++i) size = std::max(size, std::abs(x(i, j)));
    if (size == 0.0) return;
    // In units of the largest value, so that squares do not overflow.
    double mean = 0.0, square = 0.0;
    for (std::size_t i = 0; i < x.rows(); ++i) mean += weights[i] / total * (x(i, j) / size);
    for (std::size_t i = 0; i < x.rows(); ++i) {
      const double difference = x(i, j) / size - mean;
      square += weights[i] / total * difference * difference;
    }
    const double spread = std::sqrt(square);
    center_[j] = mean * size;
    if (spread > constant_spread) inverse_scale_[j] = 1.0 / (spread * size);
  });
}

double Logistic::standardised(std::span<const double> row, std::size_t j) const {
  if (inverse_scale_[j] == 0.0) return 0.0;
  return std::clamp((row[j] - center_[j]) * inverse_scale_[j], -largest_standardised,
                    largest_standardised);
}

double Logistic::logit(std::span<const double> row) const {
  double z = beta_.back();
  for (std::size_t j = 0; j < row.size(); ++j) z += beta_[j] * standardised(row, j);
  return z;
}

bool Logistic::newton(const TrainingSet& data, std::span<const double> weights) {
  const std::size_t n = data.x.cols() + 1;
  const double total = static_cast<double>(data.size());
  const double ridge = std::max(config_.l2, smallest_ridge);
  beta_.assign(n, 0.0);

  const auto loss_of_row = [&](std::size_t i, double z) {
    return weights[i] / total * log1p_exp(data.denominator[i] != 0 ? -z : z);
  };
  const auto penalty = [&] {
    double sum = 0.0;
    for (std::size_t j = 0; j + 1 < n; ++j) sum += beta_[j] * beta_[j];
    return 0.5 * ridge * sum;
  };
  const auto objective = [&] {
    return penalty() + sum_blocks(data.size(), [&](Block block) {
             double sum = 0.0;
             for (std::size_t i = block.begin; i < block.end; ++i)
               sum += loss_of_row(i, logit(data.x.row(i)));
             return sum;
           });
  };
  const auto block_sums = [&](Block block) {
    Sums sums(n);
    std::vector<double> features(n, 1.0);
    for (std::size_t i = block.begin; i < block.end; ++i) {
      for (std::size_t j = 0; j + 1 < n; ++j) features[j] = standardised(data.x.row(i), j);
      const double z = logit(data.x.row(i));
      const double p = 1.0 / (1.0 + std::exp(-z));
      const double residual = weights[i] / total * (p - (data.denominator[i] != 0 ? 1.0 : 0.0));
      const double curvature = weights[i] / total * p * (1.0 - p);
      sums.loss += loss_of_row(i, z);
      for (std::size_t j = 0; j < n; ++j) {
        sums.gradient[j] += residual * features[j];
        for (std::size_t k = 0; k <= j; ++k)
          sums.hessian[j * n + k] += curvature * features[j] * features[k];
      }
    }
    return sums;
  };

  for (std::size_t iteration = 0; iteration < config_.max_iterations; ++iteration) {
    Sums sums = reduce_blocks(data.size(), default_block, Sums(n), block_sums, add);
    const double start = sums.loss + penalty();
    for (std::size_t j = 0; j < n; ++j) {
      const bool intercept = j + 1 == n;
      sums.hessian[j * n + j] += intercept ? smallest_ridge : ridge;
      if (!intercept) sums.gradient[j] += ridge * beta_[j];
    }
    const auto size = static_cast<Eigen::Index>(n);
    using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const Eigen::Map<const RowMajor> hessian(sums.hessian.data(), size, size);
    const Eigen::Map<const Eigen::VectorXd> gradient(sums.gradient.data(), size);
    const Eigen::VectorXd step = hessian.selfadjointView<Eigen::Lower>().ldlt().solve(gradient);
    const double decrement = gradient.dot(step);
    detail::tell(data.progress,
                 static_cast<double>(iteration) / static_cast<double>(config_.max_iterations),
                 "loss", sums.loss);
    if (!(decrement > 1e-24)) return true;

    const std::vector<double> before = beta_;
    double length = 1.0;
    const auto move = [&] {
      for (std::size_t j = 0; j < n; ++j)
        beta_[j] = before[j] - length * step[static_cast<Eigen::Index>(j)];
    };
    move();
    while (length > 1e-6 && !(objective() <= start)) {
      length *= 0.5;
      move();
    }
    // Below rounding the objective no longer tells steps apart, and a full Newton step is right.
    if (decrement < 1e-12) {
      length = 1.0;
      move();
    }
  }
  return false;
}

Logits Logistic::logits(MatrixView x) const {
  detail::check_input("logistic.logits", *this, x);
  Logits z(x.rows());
  parallel_blocks(x.rows(), default_block, [&](Block block) {
    for (std::size_t i = block.begin; i < block.end; ++i) z[i] = logit(x.row(i));
  });
  return z;
}

Matrix Logistic::gradient(MatrixView x) const {
  detail::check_input("logistic.gradient", *this, x);
  Matrix result(x.rows(), x.cols());
  for (std::size_t i = 0; i < x.rows(); ++i)
    for (std::size_t j = 0; j < x.cols(); ++j) result(i, j) = beta_[j] * inverse_scale_[j];
  return result;
}

double Logistic::intercept() const {
  double value = beta_.empty() ? 0.0 : beta_.back();
  for (std::size_t j = 0; j < center_.size(); ++j)
    value -= beta_[j] * center_[j] * inverse_scale_[j];
  return value;
}

std::vector<double> Logistic::coefficients() const {
  std::vector<double> values(center_.size());
  for (std::size_t j = 0; j < values.size(); ++j) values[j] = beta_[j] * inverse_scale_[j];
  return values;
}

void Logistic::save(Archive& archive) const {
  archive.set("l2", config_.l2);
  archive.set("max_iterations", config_.max_iterations);
  archive.set("center", center_);
  archive.set("inverse_scale", inverse_scale_);
  archive.set("beta", beta_);
  archive.set("converged", converged_);
}

void Logistic::load(const Archive& archive) {
  Logistic loaded(
      Config{.l2 = archive.number("l2"),
             .max_iterations = static_cast<std::size_t>(archive.integer("max_iterations"))});
  loaded.center_ = archive.numbers("center");
  loaded.inverse_scale_ = archive.numbers("inverse_scale");
  loaded.beta_ = archive.numbers("beta");
  loaded.converged_ = archive.flag("converged");
  const std::size_t n = loaded.features();
  check_same_size("logistic.load", "inverse_scale", loaded.inverse_scale_.size(), n,
                  "one for each feature");
  check_same_size("logistic.load", "beta", loaded.beta_.size(), n == 0 ? 0 : n + 1,
                  "one for each feature and the intercept");
  *this = std::move(loaded);
}

}  // namespace neyman
