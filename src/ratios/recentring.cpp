#include "ratios/recentring.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/simulators/design.hpp"

namespace neyman::across {

namespace {

/// More numbers than these are no smooth function, and take time.
constexpr std::size_t most_numbers = 100;
constexpr std::size_t highest_degree = 24;
/// So many events at least for each number.
constexpr std::size_t events_a_number = 20;
/// ε is small: that much of a range, where the events say nothing of it.
constexpr double usual = 0.05;
/// θ + ε(θ) rises with θ by this part at least: else one maximum would become two.
constexpr double least_rise = 0.1;
constexpr std::size_t places_looked_at = 2000;

std::size_t degree_for(const ParameterSpace& parameters, std::size_t events) {
  const std::size_t most = events / events_a_number;
  const auto numbers = [&](std::size_t degree) {
    return (PolynomialBasis::count(parameters, degree) + 1) * parameters.size();
  };
  if (numbers(1) > most) return 0;
  std::size_t degree = 1;
  while (degree < highest_degree && numbers(degree + 1) <= std::min(most_numbers, most)) ++degree;
  return degree;
}

}  // namespace

Recentring::Recentring(const ParameterSpace& parameters, MatrixView theta, MatrixView scores,
                       std::span<const double> weights) {
  const std::size_t n = theta.rows(), d = parameters.size();
  const std::size_t degree = degree_for(parameters, n);
  if (degree == 0) return;
  for (const auto& parameter : parameters) {
    low_.push_back(parameter.low);
    high_.push_back(parameter.high);
  }
  basis_ = PolynomialBasis(parameters, degree);
  const std::size_t polynomials = basis_.size() + 1, m = polynomials * d;
  // Weights as counts of events: Σ w = Σ w².
  double scale = 1.0;
  if (!weights.empty()) {
    double sum = 0.0, square = 0.0;
    for (const double weight : weights) {
      sum += weight;
      square += weight * weight;
    }
    scale = square > 0.0 ? sum / square : 0.0;
  }
  struct Sums {
    Eigen::VectorXd b;
    Eigen::MatrixXd g;
  };
  const auto size = static_cast<Eigen::Index>(m);
  const Sums none{Eigen::VectorXd::Zero(size), Eigen::MatrixXd::Zero(size, size)};
  constexpr std::size_t strip = 64;
  const Sums sums = reduce_blocks(
      n, default_block, none,
      [&](Block block) {
        Sums part = none;
        Eigen::MatrixXd rows(size, static_cast<Eigen::Index>(strip));
        for (std::size_t begin = block.begin; begin < block.end; begin += strip) {
          rows.setZero();
          for (std::size_t i = begin; i < std::min(begin + strip, block.end); ++i) {
            const double weight = weights.empty() ? 1.0 : scale * weights[i];
            const auto values = this->polynomials(theta.row(i), nullptr);
            const auto column = static_cast<Eigen::Index>(i - begin);
            for (std::size_t k = 0; k < polynomials; ++k)
              for (std::size_t p = 0; p < d; ++p) {
                const double value = values[k] * scores(i, p) * (high_[p] - low_[p]);
                const auto row = static_cast<Eigen::Index>(k * d + p);
                rows(row, column) = std::sqrt(weight) * value;
                part.b(row) += weight * value;
              }
          }
          part.g.selfadjointView<Eigen::Lower>().rankUpdate(rows);
        }
        return part;
      },
      [](Sums a, const Sums& b) {
        a.b += b.b;
        a.g += b.g;
        return a;
      });
  Eigen::MatrixXd g = sums.g.selfadjointView<Eigen::Lower>();
  if (!g.allFinite() || !sums.b.allFinite()) return;
  g.diagonal().array() += 1.0 / (usual * usual);
  const Eigen::LLT<Eigen::MatrixXd> cholesky(g);
  if (cholesky.info() != Eigen::Success) return;
  Eigen::VectorXd z = cholesky.matrixL().solve(sums.b);
  Eigen::VectorXd kept = Eigen::VectorXd::Zero(size);
  // A band of degrees together: the more of them, the surer what is noise. Bands grow with the
  // degree, because high ones are of one parameter alone.
  std::vector<Eigen::Index> bands;  // where they begin
  // That there is nothing beyond noise is known as well as all bands together are many, and no
  // better.
  const double doubt = std::sqrt(2.0 / static_cast<double>(m));
  for (std::size_t first = 0; first < polynomials;) {
    std::size_t last = first;
    bands.push_back(static_cast<Eigen::Index>(first * d));
    const std::size_t begin = first == 0 ? 0 : basis_.degree(first - 1);
    const std::size_t end = begin + begin / 3;
    while (last < polynomials && (last == 0 ? 0 : basis_.degree(last - 1)) <= end) ++last;
    const auto at = static_cast<Eigen::Index>(first * d),
               count = static_cast<Eigen::Index>((last - first) * d);
    const double square = z.segment(at, count).squaredNorm();
    const double share = std::max(0.0, 1.0 - static_cast<double>(count) / square);
    z.segment(at, count) *= share;
    kept.segment(at, count).setConstant(std::max(share, doubt / (1.0 + doubt)));
    first = last;
  }
  // Polynomials of a high degree are steep at the ends of a range. Bands are left out from the
  // highest on, until θ + ε(θ) turns back nowhere.
  const Matrix places = Design(parameters).nodes(places_looked_at, 0, 0);
  for (;; bands.pop_back()) {
    const Eigen::VectorXd beta = cholesky.matrixU().solve(z);
    coefficients_ = Matrix(polynomials, d);
    for (std::size_t k = 0; k < polynomials; ++k)
      for (std::size_t p = 0; p < d; ++p)
        coefficients_(k, p) = beta(static_cast<Eigen::Index>(k * d + p));
    if (bands.size() <= 1 || !turns_back(places)) break;
    z.tail(size - bands.back()).setZero();
    kept.tail(size - bands.back()).setZero();
  }
  const Eigen::MatrixXd factor =
      cholesky.matrixU().solve(Eigen::MatrixXd(kept.cwiseSqrt().asDiagonal()));
  factor_ = Matrix(m, m);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < m; ++j)
      factor_(i, j) = factor(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j));
}

/// Whether θ + ε(θ) turns back, or nearly so, anywhere: at places inside of the ranges, and the
/// same with each parameter at its ends.
bool Recentring::turns_back(const Matrix& places) const {
  const std::size_t d = low_.size();
  Matrix jacobian;
  const auto turns_at = [&](std::span<const double> point) {
    (*this)(point, &jacobian);
    for (std::size_t p = 0; p < d; ++p)
      if (jacobian(p, p) < least_rise) return true;
    return false;
  };
  for (std::size_t i = 0; i < places.rows(); ++i) {
    std::vector<double> point(places.row(i).begin(), places.row(i).end());
    if (turns_at(point)) return true;
    const std::size_t p = i % d;
    point[p] = i / d % 2 == 0 ? low_[p] : high_[p];
    if (turns_at(point)) return true;
  }
  return false;
}

/// The constant, then the others.
std::vector<double> Recentring::polynomials(std::span<const double> point, Matrix* slopes) const {
  const std::size_t d = point.size();
  std::vector<double> out(basis_.size() + 1, 1.0);
  if (slopes == nullptr) {
    basis_.values(point, std::span(out).subspan(1));
    return out;
  }
  *slopes = Matrix(out.size(), d);
  basis_.values(point, std::span(out).subspan(1), std::span(slopes->values()).subspan(d));
  return out;
}

std::vector<double> Recentring::operator()(std::span<const double> point, Matrix* jacobian) const {
  const std::size_t d = point.size();
  std::vector<double> out(point.begin(), point.end());
  if (jacobian != nullptr) {
    *jacobian = Matrix(d, d);
    for (std::size_t p = 0; p < d; ++p) (*jacobian)(p, p) = 1.0;
  }
  if (empty()) return out;
  Matrix slopes;
  const auto values = polynomials(point, jacobian == nullptr ? nullptr : &slopes);
  for (std::size_t p = 0; p < d; ++p) {
    const double range = high_[p] - low_[p];
    for (std::size_t k = 0; k < values.size(); ++k) {
      out[p] += range * coefficients_(k, p) * values[k];
      if (jacobian == nullptr) continue;
      for (std::size_t q = 0; q < d; ++q)
        (*jacobian)(p, q) += range * coefficients_(k, p) * slopes(k, q);
    }
  }
  return out;
}

Matrix Recentring::covariance(std::span<const double> point) const {
  const std::size_t d = point.size(), m = factor_.cols();
  Matrix out(d, d);
  if (empty()) return out;
  const auto values = polynomials(point, nullptr);
  Matrix rows(d, m);
  for (std::size_t k = 0; k < values.size(); ++k)
    for (std::size_t p = 0; p < d; ++p)
      for (std::size_t j = 0; j < m; ++j)
        rows(p, j) += (high_[p] - low_[p]) * values[k] * factor_(k * d + p, j);
  for (std::size_t p = 0; p < d; ++p)
    for (std::size_t q = 0; q < d; ++q)
      for (std::size_t j = 0; j < m; ++j) out(p, q) += rows(p, j) * rows(q, j);
  return out;
}

void Recentring::differentiate(std::span<const double> point, std::span<double> gradient) const {
  if (empty()) return;
  Matrix jacobian;
  (*this)(point, &jacobian);
  const std::vector<double> moved(gradient.begin(), gradient.end());
  for (std::size_t q = 0; q < gradient.size(); ++q) {
    gradient[q] = 0.0;
    for (std::size_t p = 0; p < moved.size(); ++p) gradient[q] += moved[p] * jacobian(p, q);
  }
}

void Recentring::add_gradient_covariance(std::span<const double> point, const Matrix& information,
                                         Matrix& to) const {
  const Matrix shift = covariance(point);
  const std::size_t d = point.size();
  for (std::size_t p = 0; p < d; ++p)
    for (std::size_t q = 0; q < d; ++q)
      for (std::size_t i = 0; i < d; ++i)
        for (std::size_t j = 0; j < d; ++j)
          to(p, q) += information(p, i) * shift(i, j) * information(j, q);
}

void Recentring::save(Archive& archive) const {
  archive.set("degree", empty() ? std::size_t{0} : basis_.degree());
  archive.set("coefficients", coefficients_);
  archive.set("factor", factor_);
}

Recentring Recentring::load(const Archive& archive, const ParameterSpace& parameters) {
  Recentring out;
  const auto degree = archive.integer("degree");
  if (degree == 0) return out;
  if (degree < 0 || degree > static_cast<std::int64_t>(highest_degree))
    throw FileError("the recentring of a density has a degree that is not allowed");
  for (const auto& parameter : parameters) {
    out.low_.push_back(parameter.low);
    out.high_.push_back(parameter.high);
  }
  out.basis_ = PolynomialBasis(parameters, static_cast<std::size_t>(degree));
  out.coefficients_ = archive.get<Matrix>("coefficients");
  out.factor_ = archive.get<Matrix>("factor");
  const std::size_t numbers = (out.basis_.size() + 1) * parameters.size();
  if (out.coefficients_.rows() != out.basis_.size() + 1 ||
      out.coefficients_.cols() != parameters.size() || out.factor_.rows() != numbers ||
      out.factor_.cols() != numbers)
    throw FileError("the recentring of a density has sizes that do not agree");
  return out;
}

}  // namespace neyman::across
