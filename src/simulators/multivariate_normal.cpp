#include "neyman/simulators/multivariate_normal.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "simulators/reading.hpp"
#include "simulators/shapes.hpp"

namespace neyman {

namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Standard normals become μ + L z, in place.
void correlate(std::span<double> row, std::span<const double> mu, const Matrix& l) {
  // From the last column up, so that the normals still needed are not overwritten.
  for (std::size_t j = row.size(); j-- > 0;) {
    double sum = mu[j];
    for (std::size_t k = 0; k <= j; ++k) sum += l(j, k) * row[k];
    row[j] = sum;
  }
}

}  // namespace

MultivariateNormal::MultivariateNormal(std::vector<Expression> mean,
                                       std::vector<std::vector<Expression>> covariance)
    : mean_(std::move(mean)) {
  check_at_least("multivariate-normal", "size of mean", mean_.size(), 1);
  check_same_size("multivariate-normal", "covariance", covariance.size(), mean_.size(),
                  "a row for each mean");
  for (const auto& row : covariance) {
    check_same_size("multivariate-normal", "a row of covariance", row.size(), mean_.size(),
                    "one for each mean");
    covariance_.insert(covariance_.end(), row.begin(), row.end());
  }
  if (constant_covariance()) cholesky({});
}

bool MultivariateNormal::constant_covariance() const {
  return std::all_of(covariance_.begin(), covariance_.end(),
                     [](const auto& e) { return e.constant(); });
}

DistributionPtr MultivariateNormal::make(Settings settings, const ParameterSpace& parameters,
                                         const std::string&) {
  const std::size_t before = settings.problems().size();
  auto mean =
      detail::read_expressions(settings, {"mean", "of each feature", Key::required}, parameters);
  auto covariance = detail::read_expression_rows(
      settings, {"covariance", "their covariance matrix, row by row", Key::required}, parameters);
  for (const auto* key : {"mean", "covariance"})
    if (!settings.has(key)) settings.problem(key, "is missing, but must be a list");
  if (settings.problems().size() > before) return nullptr;
  try {
    auto made = std::make_shared<MultivariateNormal>(std::move(mean), std::move(covariance));
    for (const auto& point : detail::trial_points(parameters)) made->cholesky(point);
    return made;
  } catch (const ArgumentError& error) {
    settings.problem("covariance", fmt::format("does not hold: {}", error.reason()));
    return nullptr;
  }
}

std::vector<double> MultivariateNormal::mean(std::span<const double> point) const {
  std::vector<double> out;
  for (const auto& expression : mean_) out.push_back(expression(point));
  return out;
}

Matrix MultivariateNormal::cholesky(std::span<const double> point) const {
  const std::size_t d = dimension();
  Matrix covariance(d, d);
  for (std::size_t i = 0; i < d * d; ++i) covariance.data()[i] = covariance_[i](point);
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double a = covariance(i, j), b = covariance(j, i);
      // Formulas for the two halves may differ by rounding.
      if (!(std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b))))
        fail_argument("multivariate-normal", fmt::format("covariance[{}][{}]", i, j),
                      fmt::format("{}", a), fmt::format("equal to [{}][{}], which is {}", j, i, b));
    }
  }
  const Eigen::LLT<RowMajor> llt(Eigen::Map<const RowMajor>(
      covariance.data(), static_cast<Eigen::Index>(d), static_cast<Eigen::Index>(d)));
  Matrix out(d, d);
  Eigen::Map<RowMajor>(out.data(), static_cast<Eigen::Index>(d), static_cast<Eigen::Index>(d)) =
      llt.matrixL();
  bool definite = llt.info() == Eigen::Success;
  for (std::size_t i = 0; i < d; ++i) definite = definite && out(i, i) > 0.0;
  if (!definite) fail_argument("multivariate-normal", "covariance", "not", "positive definite");
  return out;
}

void MultivariateNormal::sample(std::span<const double> point, RandomStream& random,
                                Matrix& out) const {
  detail::check_shape(*this, out);
  const auto mu = mean(point);
  const auto l = cholesky(point);
  random.fill_normal(out.values());
  for (std::size_t i = 0; i < out.rows(); ++i) correlate(out.row(i), mu, l);
}

void MultivariateNormal::sample_each(MatrixView points, RandomStream& random, Matrix& out) const {
  detail::check_shape(*this, points, out);
  const std::size_t rows = out.rows(), d = dimension();
  Matrix columns(d, rows);
  for (std::size_t j = 0; j < d; ++j) mean_[j].each(points, columns.row(j));
  const bool constant = constant_covariance();
  Matrix l = constant ? cholesky({}) : Matrix();
  std::vector<double> mu(d);
  random.fill_normal(out.values());
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < d; ++j) mu[j] = columns(j, i);
    if (!constant) l = cholesky(points.row(i));
    correlate(out.row(i), mu, l);
  }
}

void MultivariateNormal::log_density(std::span<const double> point, MatrixView x,
                                     std::span<double> out) const {
  detail::check_shape(*this, x, out);
  const auto mu = mean(point);
  const auto l = cholesky(point);
  const std::size_t d = dimension();
  double norm = -0.5 * static_cast<double>(d) * std::log(2.0 * std::numbers::pi);
  for (std::size_t j = 0; j < d; ++j) norm -= std::log(l(j, j));
  std::vector<double> y(d);
  for (std::size_t i = 0; i < out.size(); ++i) {
    double square = 0.0;
    for (std::size_t j = 0; j < d; ++j) {
      double sum = x(i, j) - mu[j];
      for (std::size_t k = 0; k < j; ++k) sum -= l(j, k) * y[k];
      y[j] = sum / l(j, j);
      square += y[j] * y[j];
    }
    out[i] = norm - 0.5 * square;
  }
}

}  // namespace neyman
