#include "ratios/fitted_edges.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/ratios/moving_edges.hpp"

namespace neyman::across {

namespace {

/// Of the polynomials, by the number of parameters.
std::size_t degree_of(std::size_t parameters) {
  return parameters == 1 ? 6 : parameters == 2 ? 4 : parameters <= 5 ? 2 : 1;
}

/// The β with the least c·β among those with rows · β >= values, where c is the mean of the rows.
///
/// The dual simplex method: `k` rows hold with equality at first, those of a box that is too large
/// to matter; the row that is violated most then takes the place of the one whose multiplier
/// vanishes first, until none is violated.
std::vector<double> envelope(const Eigen::MatrixXd& rows, const Eigen::VectorXd& values) {
  const Eigen::Index k = rows.cols();
  const double largest = values.cwiseAbs().maxCoeff();
  const double box = 1e4 * (largest > 0.0 ? largest : 1.0), tolerance = 1e-12 * box;
  const Eigen::VectorXd mean = rows.colwise().mean();
  Eigen::MatrixXd basis = Eigen::MatrixXd::Zero(k, k);
  Eigen::VectorXd bounds(k), beta = Eigen::VectorXd::Zero(k);
  for (Eigen::Index j = 0; j < k; ++j) {
    basis(j, j) = mean(j) < 0.0 ? -1.0 : 1.0;
    bounds(j) = -box;
  }
  const Eigen::Index most_steps = 100 * k;
  for (Eigen::Index step = 0; step < most_steps; ++step) {
    const Eigen::PartialPivLU<Eigen::MatrixXd> solver(basis);
    beta = solver.solve(bounds);
    Eigen::Index worst = 0;
    if ((values - rows * beta).maxCoeff(&worst) <= tolerance) break;
    const Eigen::VectorXd multipliers = solver.transpose().solve(mean),
                          entering = solver.transpose().solve(rows.row(worst).transpose());
    Eigen::Index leaves = -1;
    double least = std::numeric_limits<double>::infinity();
    for (Eigen::Index j = 0; j < k; ++j)
      if (entering(j) > 1e-12 && multipliers(j) / entering(j) < least) {
        least = multipliers(j) / entering(j);
        leaves = j;
      }
    if (leaves < 0) break;
    basis.row(leaves) = rows.row(worst);
    bounds(leaves) = values(worst);
  }
  // Rounding leaves events beyond by a last bit.
  beta(0) += std::max(0.0, (values - rows * beta).maxCoeff());
  return {beta.data(), beta.data() + k};
}

}  // namespace

FittedEdges::FittedEdges(const Samples& events, const ParameterSpace& parameters,
                         const PeriodicColumns& angles) {
  struct Sides {
    bool lower = false, upper = false;
  };
  std::map<std::size_t, Sides> moving;
  for (const auto& edge : moving_edges(events))
    if (angles.find(edge.feature) == nullptr)
      (edge.upper ? moving[edge.feature].upper : moving[edge.feature].lower) = true;
  if (moving.empty()) return;
  basis_ = PolynomialBasis(parameters, degree_of(parameters.size()));
  const auto n = static_cast<Eigen::Index>(events.size());
  const auto k = static_cast<Eigen::Index>(basis_.size() + 1);
  Eigen::MatrixXd rows(n, k);
  for (Eigen::Index i = 0; i < n; ++i) {
    const auto values = polynomials(events.theta.row(static_cast<std::size_t>(i)));
    for (Eigen::Index j = 0; j < k; ++j) rows(i, j) = values[static_cast<std::size_t>(j)];
  }
  for (const auto& [column, sides] : moving) {
    Feature feature{column, {}, {}, 0.0};
    const auto values = events.x.column(column);
    const Eigen::Map<const Eigen::VectorXd> x(values.data(), n);
    const auto fitted = [&](bool upper) {
      auto out = envelope(rows, upper ? Eigen::VectorXd(x) : Eigen::VectorXd(-x));
      if (!upper)
        for (double& value : out) value = -value;
      return Edge{std::move(out), 0.0};
    };
    if (sides.lower) feature.lower = fitted(false);
    if (sides.upper) feature.upper = fitted(true);
    // The other side may be an edge that stands still.
    const auto stands = [&](bool upper) {
      return Edge{std::vector<double>(1, upper ? x.maxCoeff() : x.minCoeff()), 0.0};
    };
    if (sides.lower != sides.upper && ends_sharply(events, column, !sides.upper))
      (sides.upper ? feature.lower : feature.upper) = stands(!sides.upper);
    std::vector<double> places(values.size());
    const auto tell_all = [&] {
      for (std::size_t i = 0; i < places.size(); ++i) {
        places[i] = values[i];
        tell(places[i], feature, polynomials(events.theta.row(i)));
      }
    };
    tell_all();
    if (feature.lower.coefficients.empty() || feature.upper.coefficients.empty()) {
      const auto middle = places.begin() + static_cast<std::ptrdiff_t>(places.size() / 2);
      std::nth_element(places.begin(), middle, places.end());
      feature.median = *middle;
      tell_all();
    }
    // An edge may be off by as much as its polynomial has numbers: so many events would lie beyond.
    const bool both = feature.median == 0.0;
    for (const bool upper : {false, true}) {
      Edge& edge = upper ? feature.upper : feature.lower;
      if (edge.coefficients.empty()) continue;
      const bool from_one = both && upper;
      const auto part = static_cast<std::ptrdiff_t>(
          std::clamp<std::size_t>(places.size() / 100, 1, places.size() - 1));
      for (double& place : places) place = from_one ? 1.0 - place : place;
      std::nth_element(places.begin(), places.begin() + part, places.end());
      edge.blur = std::max(1e-12, places[static_cast<std::size_t>(part)]) /
                  static_cast<double>(part) * static_cast<double>(edge.coefficients.size());
    }
    features_.push_back(std::move(feature));
  }
}

std::vector<double> FittedEdges::polynomials(std::span<const double> point) const {
  std::vector<double> out(basis_.size() + 1, 1.0);
  basis_.values(point, std::span(out).subspan(1));
  return out;
}

double FittedEdges::at(const Edge& edge, std::span<const double> polynomials) {
  double sum = 0.0;
  for (std::size_t j = 0; j < edge.coefficients.size(); ++j)
    sum += edge.coefficients[j] * polynomials[j];
  return sum;
}

bool FittedEdges::tells(std::size_t feature) const {
  return std::any_of(features_.begin(), features_.end(),
                     [&](const Feature& one) { return one.column == feature; });
}

double FittedEdges::tell(double& x, const Feature& feature, std::span<const double> polynomials) {
  const auto& [column, lower, upper, median] = feature;
  const bool below = !lower.coefficients.empty(), above = !upper.coefficients.empty();
  const double low = below ? at(lower, polynomials) : 0.0,
               high = above ? at(upper, polynomials) : 0.0;
  if (below && above) {
    // Where the polynomials meet, no event is.
    const double way = std::max(high - low, 1e-12 * (std::abs(high) + std::abs(low)));
    const double part = (x - low) / way;
    x = std::clamp(part, 0.0, 1.0);
    const double beyond = part < 0.0   ? -part / lower.blur
                          : part > 1.0 ? (part - 1.0) / upper.blur
                                       : 0.0;
    return -std::log(way) - beyond;
  }
  const double distance = below ? x - low : high - x;
  if (!(median > 0.0)) {  // not known yet
    x = distance;
    return 0.0;
  }
  const double beyond = std::max(0.0, -distance) / median / (below ? lower : upper).blur;
  const double inside = std::max(0.0, distance);
  x = inside / (inside + median);
  return std::log(median) - 2.0 * std::log(inside + median) - beyond;
}

double FittedEdges::tell(std::span<double> x, std::span<const double> point) const {
  const auto values = polynomials(point);
  double out = 0.0;
  for (const auto& feature : features_) out += tell(x[feature.column], feature, values);
  return out;
}

void FittedEdges::tell(Matrix& x, MatrixView points, double* log_jacobians) const {
  const auto common = polynomials(points.row(0));
  parallel_blocks(x.rows(), 256, [&](Block block) {
    for (std::size_t i = block.begin; i < block.end; ++i) {
      const auto own = points.rows() == 1 ? std::vector<double>() : polynomials(points.row(i));
      double sum = 0.0;
      for (const auto& feature : features_)
        sum += tell(x(i, feature.column), feature, own.empty() ? common : own);
      if (log_jacobians != nullptr) log_jacobians[i] += sum;
    }
  });
}

void FittedEdges::save(Archive& archive) const {
  archive.set("features", features_.size());
  archive.set("degree", basis_.degree());
  for (std::size_t f = 0; f < features_.size(); ++f) {
    auto& to = archive.child("feature" + std::to_string(f));
    to.set("column", features_[f].column);
    to.set("lower", features_[f].lower.coefficients);
    to.set("lower_blur", features_[f].lower.blur);
    to.set("upper", features_[f].upper.coefficients);
    to.set("upper_blur", features_[f].upper.blur);
    to.set("median", features_[f].median);
  }
}

FittedEdges FittedEdges::load(const Archive& archive, const ParameterSpace& parameters,
                              std::size_t features) {
  FittedEdges out;
  const auto count = archive.integer("features"), degree = archive.integer("degree");
  if (count < 0 || count > 1000000 || degree < 0 || degree > 30)
    throw FileError("the edges of a density have sizes that are not allowed");
  if (count == 0) return out;
  out.basis_ = PolynomialBasis(parameters, static_cast<std::size_t>(degree));
  for (std::int64_t f = 0; f < count; ++f) {
    const auto& from = archive.child("feature" + std::to_string(f));
    const auto column = from.integer("column");
    Feature feature{static_cast<std::size_t>(column),
                    {from.numbers("lower"), from.number("lower_blur")},
                    {from.numbers("upper"), from.number("upper_blur")},
                    from.number("median")};
    const std::size_t most = out.basis_.size() + 1;
    if (column < 0 || feature.column >= features || feature.lower.coefficients.size() > most ||
        feature.upper.coefficients.size() > most ||
        feature.lower.coefficients.size() + feature.upper.coefficients.size() == 0 ||
        !(feature.lower.blur >= 0.0) || !(feature.upper.blur >= 0.0) || !(feature.median >= 0.0))
      throw FileError("the edges of a density do not fit its parameters");
    out.features_.push_back(std::move(feature));
  }
  return out;
}

}  // namespace neyman::across
