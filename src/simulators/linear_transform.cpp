#include "neyman/simulators/linear_transform.hpp"

#include <Eigen/Core>
#include <Eigen/LU>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/simulators/join.hpp"
#include "simulators/linear_kernels.hpp"
#include "simulators/reading.hpp"
#include "simulators/shapes.hpp"

namespace neyman {

namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMap = Eigen::Map<const RowMajor>;

ConstMap map(const Matrix& matrix) {
  return {matrix.data(), static_cast<Eigen::Index>(matrix.rows()),
          static_cast<Eigen::Index>(matrix.cols())};
}

bool all_constant(const std::vector<Expression>& expressions) {
  return std::all_of(expressions.begin(), expressions.end(),
                     [](const auto& e) { return e.constant(); });
}

/// Less work than what a general product does around it.
bool is_small(const Matrix& matrix) {
  return matrix.rows() <= linear_kernels::most_outputs &&
         matrix.cols() <= linear_kernels::most_inputs;
}

/// The parts have the columns of z.
void apply_small(std::span<const Matrix> parts, const Matrix& matrix,
                 std::span<const double> offset, Matrix& out) {
  constexpr std::size_t most = linear_kernels::most_outputs;
  std::array<linear_kernels::Input, linear_kernels::most_inputs> z{};
  std::size_t inputs = 0;
  for (const Matrix& part : parts)
    for (std::size_t j = 0; j < part.cols(); ++j) z[inputs++] = {part.data() + j, part.cols()};
  std::array<double, linear_kernels::most_inputs * most> columns{};
  std::array<double, most> end{};
  for (std::size_t j = 0; j < matrix.rows(); ++j) {
    for (std::size_t k = 0; k < inputs; ++k) columns[k * most + j] = matrix(j, k);
    end[j] = offset[j];
  }
  linear_kernels::kernels().transform(z.data(), inputs, out.rows(), columns.data(), end.data(),
                                      matrix.rows(), out.data());
}

}  // namespace

LinearTransform::LinearTransform(DistributionPtr of, std::vector<std::vector<Expression>> matrix,
                                 std::vector<Expression> offset)
    : of_(std::move(of)), offset_(std::move(offset)), rows_(matrix.size()) {
  if (of_ == nullptr) fail_argument("linear-transform", "of", "null", "a distribution");
  cols_ = of_->dimension();
  check_at_least("linear-transform", "rows of matrix", rows_, 1);
  for (const auto& row : matrix) {
    check_same_size("linear-transform", "a row of matrix", row.size(), cols_,
                    "one for each column of z");
    matrix_.insert(matrix_.end(), row.begin(), row.end());
  }
  if (offset_.empty()) offset_.assign(rows_, Expression(0.0));
  check_same_size("linear-transform", "offset", offset_.size(), rows_, "one for each row");
  has_density_ = rows_ == cols_ && of_->has_density();
  if (has_density_ && all_constant(matrix_)) {
    const auto inverse = std::make_shared<const Inverse>(invert(this->matrix({})));
    has_density_ = !inverse->matrix.empty();
    if (has_density_) constant_inverse_ = inverse;
  }
}

DistributionPtr LinearTransform::make(Settings settings, const ParameterSpace& parameters,
                                      const std::string& folder) {
  if (!settings.is_table("of")) {
    settings.problem("of", "is missing, but must be the table of a distribution");
    return nullptr;
  }
  const std::size_t before = settings.problems().size();
  const auto of = make_distribution(settings.table({"of", "the distribution of z", Key::required}),
                                    parameters, folder);
  auto matrix = detail::read_expression_rows(settings, {"matrix", "A, row by row", Key::required},
                                             parameters);
  auto offset = detail::read_expressions(settings, {"offset", "b; absent: zero"}, parameters);
  if (settings.problems().size() > before) return nullptr;
  const auto fail = [&](std::string_view key, const char* what, std::size_t size,
                        std::size_t expected) {
    settings.problem(key, "has " + std::to_string(size) + " " + what + ", but must have " +
                              std::to_string(expected));
  };
  if (matrix.empty()) {
    settings.problem("matrix", "is missing, but must be a list of rows of numbers or formulas");
  } else if (matrix.front().size() != of->dimension()) {
    fail("matrix", "columns", matrix.front().size(), of->dimension());
  } else if (!offset.empty() && offset.size() != matrix.size()) {
    fail("offset", "values", offset.size(), matrix.size());
  } else {
    return std::make_shared<LinearTransform>(of, std::move(matrix), std::move(offset));
  }
  return nullptr;
}

Matrix LinearTransform::matrix(std::span<const double> point) const {
  Matrix out(rows_, cols_);
  for (std::size_t i = 0; i < matrix_.size(); ++i) out.data()[i] = matrix_[i](point);
  return out;
}

std::vector<double> LinearTransform::offset(std::span<const double> point) const {
  std::vector<double> out;
  for (const auto& expression : offset_) out.push_back(expression(point));
  return out;
}

/// An empty matrix where A is singular to working precision.
LinearTransform::Inverse LinearTransform::invert(const Matrix& matrix) {
  // Rows are scaled by their largest element first, so that the units of an output do not decide
  // what counts as singular.
  RowMajor scaled = map(matrix);
  Eigen::VectorXd scale = scaled.cwiseAbs().rowwise().maxCoeff();
  if (!(scale.minCoeff() > 0.0)) return {};
  scaled = scale.cwiseInverse().asDiagonal() * scaled;
  const Eigen::FullPivLU<RowMajor> lu(scaled);
  if (!lu.isInvertible()) return {};
  Inverse out;
  out.matrix = Matrix(matrix.rows(), matrix.rows());
  Eigen::Map<RowMajor>(out.matrix.data(), scaled.rows(), scaled.rows()) =
      lu.inverse() * scale.cwiseInverse().asDiagonal();
  // The logarithm of each pivot: the product itself overflows for many dimensions.
  out.log_determinant =
      lu.matrixLU().diagonal().cwiseAbs().array().log().sum() + scale.array().log().sum();
  return out;
}

void LinearTransform::sample(std::span<const double> point, RandomStream& random,
                             Matrix& out) const {
  detail::check_shape(*this, out);
  const auto a = matrix(point);
  const auto b = offset(point);
  // What a join draws is in columns, which the product takes as they are.
  if (const auto* join = dynamic_cast<const Join*>(of_.get()); join != nullptr && is_small(a)) {
    apply_small(join->sample_parts(point, random, out.rows()), a, b, out);
    return;
  }
  Matrix z(out.rows(), cols_);
  of_->sample(point, random, z);
  apply(z, a, b, out);
}

void LinearTransform::apply(const Matrix& z, const Matrix& matrix, std::span<const double> offset,
                            Matrix& out) {
  if (is_small(matrix)) {
    apply_small({&z, 1}, matrix, offset, out);
    return;
  }
  Eigen::Map<RowMajor> x(out.data(), static_cast<Eigen::Index>(out.rows()),
                         static_cast<Eigen::Index>(out.cols()));
  x.noalias() = map(z) * map(matrix).transpose();
  x.rowwise() +=
      Eigen::Map<const Eigen::RowVectorXd>(offset.data(), static_cast<Eigen::Index>(offset.size()));
}

void LinearTransform::sample_each(MatrixView points, RandomStream& random, Matrix& out) const {
  detail::check_shape(*this, points, out);
  Matrix z(out.rows(), cols_);
  of_->sample_each(points, random, z);
  if (all_constant(matrix_) && all_constant(offset_)) {
    apply(z, matrix({}), offset({}), out);
    return;
  }
  Matrix one(1, cols_), image(1, rows_);
  for (std::size_t i = 0; i < out.rows(); ++i) {
    std::copy_n(z.row(i).begin(), cols_, one.data());
    apply(one, matrix(points.row(i)), offset(points.row(i)), image);
    std::copy_n(image.data(), rows_, out.row(i).begin());
  }
}

void LinearTransform::log_density(std::span<const double> point, MatrixView x,
                                  std::span<double> out) const {
  if (rows_ != cols_) Distribution::log_density(point, x, out);  // throws
  detail::check_shape(*this, x, out);
  const auto inverse = constant_inverse_ != nullptr
                           ? constant_inverse_
                           : std::make_shared<const Inverse>(invert(matrix(point)));
  if (inverse->matrix.empty())
    fail_argument("linear-transform", "matrix", "singular", "invertible to have a density");
  const auto b = offset(point);
  Matrix z(x.rows(), cols_);
  for (std::size_t i = 0; i < x.rows(); ++i) {
    for (std::size_t j = 0; j < cols_; ++j) {
      double sum = 0.0;
      for (std::size_t k = 0; k < cols_; ++k) sum += inverse->matrix(j, k) * (x(i, k) - b[k]);
      z(i, j) = sum;
    }
  }
  of_->log_density(point, z, out);
  for (double& value : out) value -= inverse->log_determinant;
}

bool LinearTransform::has_cdf() const { return rows_ == 1 && cols_ == 1 && of_->has_cdf(); }

double LinearTransform::cdf(std::span<const double> point, double x) const {
  if (!has_cdf()) return Distribution::cdf(point, x);
  const double a = matrix_.front()(point), b = offset_.front()(point);
  if (a == 0.0) return x >= b ? 1.0 : 0.0;
  const double below = of_->cdf(point, (x - b) / a);
  return a > 0.0 ? below : 1.0 - below;
}

double LinearTransform::quantile(std::span<const double> point, double probability) const {
  if (!has_cdf()) return Distribution::quantile(point, probability);
  detail::check_probability(*this, probability);
  const double a = matrix_.front()(point), b = offset_.front()(point);
  if (a == 0.0) return b;
  return a * of_->quantile(point, a > 0.0 ? probability : 1.0 - probability) + b;
}

}  // namespace neyman
