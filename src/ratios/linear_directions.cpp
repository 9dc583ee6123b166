#include "ratios/linear_directions.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <vector>

#include "neyman/core/parallel.hpp"

namespace neyman::separable {

namespace {

using FloatRows =
    Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, 0,
               Eigen::OuterStride<>>;

/// Events of one tile: features, one column for each thing to be told, and weights.
struct TileRows {
  FloatRows x;
  Eigen::MatrixXf y;
  Eigen::VectorXf weights;
};

/// Calls `use(part, tile)` for all events, and sums the parts; `told(x, begin)` makes the y.
template <class Part, class Told, class Use>
Part sum_tiles(const EventRows& events, std::size_t features, const Part& none, const Told& told,
               const Use& use) {
  const auto stride = static_cast<Eigen::Index>(events.x_stride);
  return reduce_blocks(
      events.size(), 8192, none,
      [&](Block block) {
        Part part = none;
        for (std::size_t begin = block.begin; begin < block.end; begin += tile) {
          const auto rows = static_cast<Eigen::Index>(std::min(tile, block.end - begin));
          const FloatRows x(events.x + begin * events.x_stride, rows,
                            static_cast<Eigen::Index>(features), Eigen::OuterStride<>(stride));
          TileRows at{x, told(x, begin), Eigen::VectorXf(rows)};
          for (Eigen::Index r = 0; r < rows; ++r)
            at.weights[r] = static_cast<float>(events.weights[begin + static_cast<std::size_t>(r)]);
          use(part, at);
        }
        return part;
      },
      [](Part a, const Part& b) {
        a += b;
        return a;
      });
}

/// What covariances of the features with some y are made of.
struct Products {
  double weight = 0.0;
  Eigen::VectorXd x, y, squares;  // Σ w x, Σ w y, Σ w y²
  Eigen::MatrixXd together;       // Σ w x yᵀ

  Products(Eigen::Index features, Eigen::Index count)
      : x(Eigen::VectorXd::Zero(features)),
        y(Eigen::VectorXd::Zero(count)),
        squares(Eigen::VectorXd::Zero(count)),
        together(Eigen::MatrixXd::Zero(features, count)) {}

  void add(const TileRows& at) {
    const Eigen::MatrixXf weighted = at.weights.asDiagonal() * at.y;
    weight += at.weights.cast<double>().sum();
    x += (at.x.transpose() * at.weights).cast<double>();
    y += weighted.colwise().sum().transpose().cast<double>();
    squares += weighted.cwiseProduct(at.y).colwise().sum().transpose().cast<double>();
    together += (at.x.transpose() * weighted).cast<double>();
  }
  Products& operator+=(const Products& other) {
    weight += other.weight;
    x += other.x;
    y += other.y;
    squares += other.squares;
    together += other.together;
    return *this;
  }
  /// One over the standard deviation of a y; 0 where it has none.
  double scale(Eigen::Index k) const {
    const double mean = y[k] / weight, variance = squares[k] / weight - mean * mean;
    return variance > 1e-12 * (1.0 + mean * mean) ? 1.0 / std::sqrt(variance) : 0.0;
  }
  Eigen::VectorXd scales() const {
    Eigen::VectorXd out(y.size());
    for (Eigen::Index k = 0; k < y.size(); ++k) out[k] = scale(k);
    return out;
  }
  /// In units of the standard deviations of y.
  Eigen::MatrixXd covariance() const {
    const Eigen::MatrixXd out = together / weight - x * y.transpose() / (weight * weight);
    return out * scales().asDiagonal();
  }
};

/// P_k at the θ of each event.
auto terms_of(const EventRows& events, const PolynomialBasis& basis) {
  return [&events, &basis](const FloatRows& x, std::size_t begin) {
    Eigen::MatrixXf y(x.rows(), static_cast<Eigen::Index>(basis.size()));
    std::vector<double> values(basis.size());
    for (Eigen::Index r = 0; r < x.rows(); ++r) {
      basis.values(events.theta.row(begin + static_cast<std::size_t>(r)), values);
      for (std::size_t k = 0; k < values.size(); ++k)
        y(r, static_cast<Eigen::Index>(k)) = static_cast<float>(values[k]);
    }
    return y;
  };
}

/// Directions, and the terms as a linear function of the projections on them.
struct Regression {
  Eigen::MatrixXd directions;  // features × directions: projections have variance 1
  Eigen::VectorXd means;       // of the projections
  Eigen::MatrixXd slopes;      // directions × terms, of terms in units of their spreads
  Eigen::VectorXd term_means, term_scales;

  void append(const Eigen::VectorXd& direction, double mean, const Eigen::RowVectorXd& slope) {
    const Eigen::Index count = directions.cols();
    directions.conservativeResize(Eigen::NoChange, count + 1);
    directions.col(count) = direction;
    means.conservativeResize(count + 1);
    means[count] = mean;
    slopes.conservativeResize(count + 1, Eigen::NoChange);
    slopes.row(count) = slope;
  }
};

Regression regress(const EventRows& events, std::size_t features, const PolynomialBasis& basis,
                   std::size_t most) {
  const auto n = static_cast<Eigen::Index>(features),
             terms = static_cast<Eigen::Index>(basis.size());
  const auto add = [](Products& part, const TileRows& at) { part.add(at); };
  const Products sums =
      sum_tiles(events, features, Products(n, terms), terms_of(events, basis), add);
  const Eigen::MatrixXd whole = sums.covariance();
  Eigen::MatrixXd left = whole, loadings(n, 0);
  Regression out{Eigen::MatrixXd(n, 0), Eigen::VectorXd(0), Eigen::MatrixXd(0, terms),
                 sums.y / sums.weight, sums.scales()};
  while (static_cast<std::size_t>(loadings.cols()) < std::min(most, features)) {
    // The largest covariance with any combination of the terms.
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(
        Eigen::MatrixXd(left.transpose() * left));
    Eigen::VectorXd direction = left * solver.eigenvectors().rightCols(1);
    // What single precision cannot tell from nothing.
    if (!(direction.norm() > 1e-6 * whole.norm())) break;
    direction.normalize();
    const Eigen::VectorXf along = direction.cast<float>();
    const Products with = sum_tiles(
        events, features, Products(n, 1),
        [&](const FloatRows& x, std::size_t) { return Eigen::MatrixXf(x * along); }, add);
    direction *= with.scale(0);
    Eigen::VectorXd loading = with.covariance();
    for (int pass = 0; pass < 2; ++pass) loading -= loadings * (loadings.transpose() * loading);
    if (!(loading.norm() > 0.0)) break;
    loading.normalize();
    left -= loading * (loading.transpose() * left);
    out.append(direction, with.y[0] / with.weight * with.scale(0), direction.transpose() * whole);
    loadings.conservativeResize(Eigen::NoChange, loadings.cols() + 1);
    loadings.rightCols(1) = loading;
  }
  return out;
}

/// How well terms of events are told after none, one, two, … directions, the less the better: the
/// logarithm of the mean squares that are left, summed over the terms, as normal residuals of
/// unknown spreads have it.
Eigen::VectorXd held_out(const Regression& regression, const EventRows& events,
                         const PolynomialBasis& basis) {
  const Eigen::MatrixXf along = regression.directions.cast<float>();
  const Eigen::MatrixXd none = Eigen::MatrixXd::Zero(along.cols() + 1, regression.slopes.cols());
  const Eigen::MatrixXd squares = sum_tiles(
      events, static_cast<std::size_t>(along.rows()), none, terms_of(events, basis),
      [&](Eigen::MatrixXd& part, const TileRows& at) {
        const Eigen::VectorXd weights = at.weights.cast<double>();
        Eigen::MatrixXd left = (at.y.cast<double>().rowwise() - regression.term_means.transpose()) *
                               regression.term_scales.asDiagonal();
        const Eigen::MatrixXd projections =
            (at.x * along).cast<double>().rowwise() - regression.means.transpose();
        for (Eigen::Index k = 0; k < part.rows(); ++k) {
          if (k > 0) left -= projections.col(k - 1) * regression.slopes.row(k - 1);
          part.row(k) += weights.transpose() * left.cwiseAbs2();
        }
      });
  return (squares.array() + 1e-300).log().rowwise().sum();
}

}  // namespace

Matrix linear_directions(const EventRows& events, std::size_t features,
                         const PolynomialBasis& basis, std::size_t most) {
  // As many as serve events that they were not found from.
  const std::size_t test = events.size() / 5, training = events.size() - test;
  const EventRows others{
      events.x + training * events.x_stride,
      events.x_stride,
      events.theta.rows(training, events.size()),
      {events.weights.begin() + static_cast<std::ptrdiff_t>(training), events.weights.end()}};
  const Regression trial = regress(events.first(training), features, basis, most);
  Eigen::Index best = 0;
  held_out(trial, others, basis).minCoeff(&best);
  const auto count = std::max<std::size_t>(static_cast<std::size_t>(best), 1);
  const Eigen::MatrixXd found = regress(events, features, basis, count).directions;
  // Features that tell nothing at all leave one function, which is 0.
  Matrix out(features, std::max<std::size_t>(static_cast<std::size_t>(found.cols()), 1));
  for (std::size_t f = 0; f < features; ++f)
    for (Eigen::Index k = 0; k < found.cols(); ++k)
      out(f, static_cast<std::size_t>(k)) = found(static_cast<Eigen::Index>(f), k);
  return out;
}

}  // namespace neyman::separable
