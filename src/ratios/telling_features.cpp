#include "ratios/telling_features.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <utility>

#include "neyman/core/parallel.hpp"
#include "neyman/core/polynomial_basis.hpp"
#include "ratios/feature_scale.hpp"

namespace neyman::across {

namespace {

/// How often any of the tests may call a feature telling that does not tell.
constexpr double false_alarms = 0.01;
/// Of the polynomials of θ; with many parameters each of them alone.
constexpr std::size_t degree = 2, many_parameters = 12;
/// So many multiplications in all, of features alone and of pairs. A weak feature shows in many
/// events.
constexpr double most_work_alone = 2e9, most_work_paired = 1e10;
constexpr std::size_t most_alone = 200000, most_paired = 50000, fewest = 2000;
/// Pairs are looked at of so many features at most.
constexpr std::size_t most_features_paired = 512;

using Table = Eigen::MatrixXd;  // events × columns

/// Of each column a of A and b of B: what Σ w a b is in units of its standard error, where a and b
/// are independent and b has the mean zero.
Table significance(const Table& a, const Table& b) {
  const Table sums = a.transpose() * b;
  const Table squares = a.cwiseAbs2().transpose() * b.cwiseAbs2();
  return sums.cwiseAbs().cwiseQuotient(squares.cwiseSqrt().cwiseMax(1e-300));
}

void centre(Table& columns, const Eigen::VectorXd& weights) {
  const Eigen::RowVectorXd means = (weights.transpose() * columns) / weights.sum();
  columns.rowwise() -= means;
}

std::vector<std::size_t> told(const std::vector<char>& tells) {
  std::vector<std::size_t> out;
  for (std::size_t f = 0; f < tells.size(); ++f)
    if (tells[f] != 0) out.push_back(f);
  return out;
}

Eigen::Index index(std::size_t i) { return static_cast<Eigen::Index>(i); }

/// Some of the events, evenly among all, because files may be sorted.
struct Looked {
  Table z, of_theta;  // both with the mean zero
  Eigen::VectorXd weights;

  Looked(const Samples& events, const std::vector<FeatureScale>& scales,
         const PolynomialBasis& basis, std::size_t used)
      : z(index(used), index(scales.size())),
        of_theta(index(used), index(basis.size())),
        weights(index(used)) {
    parallel_blocks(used, default_block, [&](Block block) {
      std::vector<double> terms(basis.size());
      for (std::size_t i = block.begin; i < block.end; ++i) {
        const std::size_t row = i * events.size() / used;
        weights[index(i)] = events.weight(row);
        for (std::size_t f = 0; f < scales.size(); ++f)
          z(index(i), index(f)) = static_cast<double>(scales[f](events.x(row, f)));
        basis.values(events.theta.row(row), terms);
        for (std::size_t k = 0; k < terms.size(); ++k) of_theta(index(i), index(k)) = terms[k];
      }
    });
    centre(of_theta, weights);
    centre(z, weights);
  }
};

std::size_t affordable(std::size_t events, double most_work, double work, std::size_t most) {
  const auto all = static_cast<std::size_t>(std::min(most_work / work, 1e9));
  return std::min(events, std::clamp(all, fewest, most));
}

}  // namespace

std::vector<std::size_t> telling_features(const Samples& events, const ParameterSpace& parameters) {
  const std::size_t d = events.features(), n = events.size();
  const PolynomialBasis basis(parameters, parameters.size() > many_parameters ? 1 : degree);
  std::vector<FeatureScale> scales(d);
  parallel_tasks(d, [&](std::size_t f) { scales[f] = FeatureScale(events.x.column(f)); });
  const std::size_t pairs = d <= most_features_paired ? d * (d - 1) / 2 : 0;
  const auto terms = static_cast<double>(basis.size()), count = static_cast<double>(d);
  const double tests =
      (2.0 * count + static_cast<double>(pairs)) * terms + static_cast<double>(pairs);
  const double limit = std::sqrt(2.0) * boost::math::erfc_inv(std::min(1.0, false_alarms / tests));

  std::vector<char> tells(d, 0);
  {
    const Looked at(events, scales, basis,
                    affordable(n, most_work_alone, 2.0 * count * terms, most_alone));
    parallel_tasks(d, [&](std::size_t f) {
      Table own(at.z.rows(), 2);
      own.col(0) = at.z.col(index(f));
      own.col(1) = at.z.col(index(f)).cwiseAbs2();
      centre(own, at.weights);
      tells[f] = significance(at.weights.asDiagonal() * own, at.of_theta).maxCoeff() > limit;
    });
  }
  if (pairs == 0) return told(tells);

  // Rows by i, columns by j < i: whether the product tells, and whether z_i and z_j depend.
  const Looked at(events, scales, basis,
                  affordable(n, most_work_paired, static_cast<double>(pairs) * terms, most_paired));
  Eigen::MatrixXi product = Eigen::MatrixXi::Zero(index(d), index(d)), dependent = product;
  parallel_tasks(d, [&](std::size_t f) {
    const auto i = index(f);
    if (i == 0) return;
    const Table weighted = at.weights.asDiagonal() * at.z.col(i);
    Table products = weighted.col(0).asDiagonal() * at.z.leftCols(i);
    const Table of_product = significance(products, at.of_theta);
    for (Eigen::Index j = 0; j < i; ++j) product(i, j) = of_product.row(j).maxCoeff() > limit;
    const Table of_pair = significance(weighted, at.z.leftCols(i));
    for (Eigen::Index j = 0; j < i; ++j) dependent(i, j) = of_pair(0, j) > limit;
  });
  for (Eigen::Index i = 0; i < index(d); ++i)
    for (Eigen::Index j = 0; j < i; ++j)
      if (product(i, j) != 0)
        tells[static_cast<std::size_t>(i)] = tells[static_cast<std::size_t>(j)] = 1;
  // What a feature that tells depends on may sharpen what it tells.
  for (bool grew = true; std::exchange(grew, false);)
    for (Eigen::Index i = 0; i < index(d); ++i)
      for (Eigen::Index j = 0; j < i; ++j) {
        char &one = tells[static_cast<std::size_t>(i)], &other = tells[static_cast<std::size_t>(j)];
        if (one == other || dependent(i, j) == 0) continue;
        one = other = 1;
        grew = true;
      }
  return told(tells);
}

}  // namespace neyman::across
