#include "neyman/ratios/parameterized_ratio.hpp"

#include <Eigen/Dense>
#include <algorithm>

#include "neyman/core/check.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/random.hpp"

namespace neyman {

std::vector<double> SummedRatio::at(MatrixView points) const {
  std::vector<double> out(points.rows());
  parallel_tasks(points.rows(), [&](std::size_t g) { out[g] = (*this)(points.row(g), {}); });
  return out;
}

void ParameterizedRatio::save_region(Archive& archive) const {
  if (!region_.everywhere()) region_.save(archive.child("region"));
}

void ParameterizedRatio::load_region(const Archive& archive) {
  if (archive.has_child("region"))
    region_ = DesignRegion::load(archive.child("region"), parameters_.size());
}

Matrix ParameterizedRatio::table(MatrixView x, MatrixView points) const {
  Matrix out(x.rows(), points.rows());
  for (std::size_t j = 1; j < points.rows(); ++j) {
    const auto column = log_ratios(x, points.row(j), points.row(0));
    for (std::size_t i = 0; i < x.rows(); ++i) out(i, j) = column[i];
  }
  return out;
}

LogRatios ParameterizedRatio::from_table(const char* function, MatrixView x,
                                         std::span<const double> numerator,
                                         std::span<const double> denominator) const {
  parameters_.check_inside(function, numerator);
  parameters_.check_inside(function, denominator);
  Matrix points(2, numerator.size());
  std::copy(numerator.begin(), numerator.end(), points.row(0).begin());
  std::copy(denominator.begin(), denominator.end(), points.row(1).begin());
  const Matrix both = table(x, points);
  LogRatios out(x.rows());
  for (std::size_t i = 0; i < x.rows(); ++i)
    out[i] = std::clamp(both(i, 0) - both(i, 1), -log_ratio_limit, log_ratio_limit);
  return out;
}

Matrix SummedRatio::simulation_replicas(MatrixView points, std::size_t count,
                                        std::uint64_t seed) const {
  check_at_least("simulation_replicas", "points", points.rows(), 1);
  if (!differentiable()) return {};
  const std::size_t p = points.cols();
  std::vector<double> middle(p, 0.0);
  for (std::size_t g = 0; g < points.rows(); ++g)
    for (std::size_t a = 0; a < p; ++a)
      middle[a] += points(g, a) / static_cast<double>(points.rows());
  const auto covariance = simulation_gradient_covariance(middle);
  Eigen::MatrixXd c(p, p);
  for (std::size_t a = 0; a < p; ++a)
    for (std::size_t b = 0; b < p; ++b) c(Eigen::Index(a), Eigen::Index(b)) = covariance(a, b);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solved(c);
  const Eigen::VectorXd lengths = solved.eigenvalues().cwiseMax(0.0).cwiseSqrt();
  if (!(lengths.maxCoeff() > 0.0)) return {};  // not known

  std::vector<double> values;
  for (std::size_t g = 0; g < points.rows(); ++g) values.push_back((*this)(points.row(g), {}));
  Matrix out(count, points.rows());
  for (std::size_t b = 0; b < count; ++b) {
    RandomStream random(seed, "simulation-replicas", b);
    Eigen::VectorXd gradient = lengths;
    for (Eigen::Index a = 0; a < gradient.size(); ++a) gradient[a] *= random.normal();
    gradient = solved.eigenvectors() * gradient;
    for (std::size_t g = 0; g < points.rows(); ++g) {
      out(b, g) = values[g];
      for (std::size_t a = 0; a < p; ++a)
        out(b, g) += gradient[Eigen::Index(a)] * (points(g, a) - middle[a]);
    }
  }
  return out;
}

Matrix SummedRatio::replicas_of(std::span<const double> values, const Matrix& deviations,
                                std::size_t count, std::uint64_t seed) {
  Matrix out(count, values.size());
  for (std::size_t b = 0; b < count; ++b) {
    RandomStream random(seed, "simulation-replicas", b);
    std::copy(values.begin(), values.end(), out.row(b).begin());
    for (std::size_t k = 0; k < deviations.rows(); ++k) {
      const double much = random.normal();
      for (std::size_t g = 0; g < values.size(); ++g) out(b, g) += much * deviations(k, g);
    }
  }
  return out;
}

}  // namespace neyman
