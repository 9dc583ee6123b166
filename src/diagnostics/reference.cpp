#include "neyman/diagnostics/reference.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "neyman/core/check.hpp"
#include "neyman/core/random.hpp"
#include "neyman/inference/statistics.hpp"

namespace neyman {

namespace {

using Eigen::Index;
using Curves = std::span<const ReferenceCurve>;

constexpr std::size_t least_replicas = 20;

void check_curves(const char* function, Curves curves, MatrixView grid) {
  check_at_least(function, "curves", curves.size(), 2);
  check_at_least(function, "grid", grid.rows(), 1);
  for (const auto& curve : curves) {
    check_same_size(function, "statistic", curve.statistic.size(), grid.rows(), "one a grid point");
    check_same_size(function, "deviation", curve.deviation.size(), grid.rows(), "one a grid point");
    check_finite(function, "statistic", curve.statistic);
    check_non_negative(function, "deviation", curve.deviation);
    if (!curve.replicas.empty())
      check_same_size(function, "replicas", curve.replicas.cols(), grid.rows(), "one a grid point");
    check_same_size(function, "estimate", curve.estimate.size(), curves[0].estimate.size(),
                    "as of the first curve");
    if (!curve.estimate.empty()) {
      check_finite(function, "estimate", curve.estimate);
      check_same_size(function, "estimate_covariance", curve.estimate_covariance.rows(),
                      curve.estimate.size(), "rows, one a parameter");
      check_same_size(function, "estimate_covariance", curve.estimate_covariance.cols(),
                      curve.estimate.size(), "columns, one a parameter");
    }
  }
}

/// 1/σ² of each curve at each point, the tolerance included.
std::vector<std::vector<double>> precisions(Curves curves, double tolerance) {
  std::vector<std::vector<double>> out;
  for (const auto& curve : curves) {
    auto& row = out.emplace_back();
    for (const double deviation : curve.deviation)
      row.push_back(1.0 / (deviation * deviation + tolerance * tolerance + 1e-18));
  }
  return out;
}

/// Mean over the grid of Σ_k ((c_k − weighted mean) / σ_k)².
template <class Value>
double mean_square(const std::vector<std::vector<double>>& precision, Value&& value) {
  const std::size_t points = precision[0].size();
  double sum = 0.0;
  for (std::size_t g = 0; g < points; ++g) {
    double weight = 0.0, mean = 0.0;
    for (std::size_t k = 0; k < precision.size(); ++k) {
      weight += precision[k][g];
      mean += precision[k][g] * value(k, g);
    }
    mean /= weight;
    for (std::size_t k = 0; k < precision.size(); ++k) {
      const double off = value(k, g) - mean;
      sum += precision[k][g] * off * off;
    }
  }
  return sum / static_cast<double>(points);
}

/// The p-value of a mean square from replicas; nullopt where there are too few.
std::optional<double> replica_p_value(Curves curves,
                                      const std::vector<std::vector<double>>& precision,
                                      double observed, const ReferenceConfig& config) {
  std::vector<Matrix> centred;
  for (const auto& curve : curves) {
    if (curve.replicas.rows() < least_replicas) return std::nullopt;
    Matrix fluctuation = curve.replicas;
    const auto rows = static_cast<double>(fluctuation.rows());
    for (std::size_t g = 0; g < fluctuation.cols(); ++g) {
      double average = 0.0;
      for (std::size_t b = 0; b < fluctuation.rows(); ++b) average += fluctuation(b, g) / rows;
      for (std::size_t b = 0; b < fluctuation.rows(); ++b) fluctuation(b, g) -= average;
    }
    centred.push_back(std::move(fluctuation));
  }
  RandomStream random(config.seed, "reference-draws");
  std::size_t beyond = 0;
  std::vector<std::size_t> row(curves.size());
  std::vector<double> offset(curves.size());
  for (std::size_t draw = 0; draw < config.draws; ++draw) {
    for (std::size_t k = 0; k < curves.size(); ++k) {
      row[k] = random.below(centred[k].rows());
      offset[k] = config.tolerance * random.normal();
    }
    const double value = mean_square(
        precision, [&](std::size_t k, std::size_t g) { return centred[k](row[k], g) + offset[k]; });
    beyond += value >= observed;
  }
  return (1.0 + static_cast<double>(beyond)) / (1.0 + static_cast<double>(config.draws));
}

struct EstimateTest {
  double chi2 = 0.0, degrees = 0.0, p_value = 1.0;
};

/// χ² of the estimates about their mean, each with its own covariance.
EstimateTest test_estimates(Curves curves) {
  const auto n = static_cast<Index>(curves[0].estimate.size());
  Eigen::MatrixXd total = Eigen::MatrixXd::Zero(n, n);
  Eigen::VectorXd weighted = Eigen::VectorXd::Zero(n);
  std::vector<Eigen::MatrixXd> information;
  for (const auto& curve : curves) {
    Eigen::MatrixXd covariance(n, n);
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j)
        covariance(i, j) =
            curve.estimate_covariance(static_cast<std::size_t>(i), static_cast<std::size_t>(j));
    // Parameters without any uncertainty (fixed, at a bound) are not compared.
    const double floor = 1e-12 * std::max(covariance.diagonal().maxCoeff(), 1e-300);
    Eigen::VectorXd scale = covariance.diagonal().cwiseMax(floor).cwiseSqrt();
    const Eigen::MatrixXd correlation =
        (scale.cwiseInverse().asDiagonal() * covariance * scale.cwiseInverse().asDiagonal());
    information.push_back(scale.cwiseInverse().asDiagonal() *
                          correlation.completeOrthogonalDecomposition().pseudoInverse() *
                          scale.cwiseInverse().asDiagonal());
    total += information.back();
    weighted += information.back() * Eigen::Map<const Eigen::VectorXd>(curve.estimate.data(), n);
  }
  const Eigen::VectorXd mean = total.completeOrthogonalDecomposition().solve(weighted);
  EstimateTest out;
  for (std::size_t k = 0; k < curves.size(); ++k) {
    const Eigen::VectorXd off =
        Eigen::Map<const Eigen::VectorXd>(curves[k].estimate.data(), n) - mean;
    out.chi2 += off.dot(information[k] * off);
  }
  Index compared = 0;
  for (Index i = 0; i < n; ++i) {
    bool uncertain = true;
    for (const auto& curve : curves)
      uncertain &=
          curve.estimate_covariance(static_cast<std::size_t>(i), static_cast<std::size_t>(i)) > 0.0;
    compared += uncertain;
  }
  out.degrees = static_cast<double>(compared) * static_cast<double>(curves.size() - 1);
  if (out.degrees > 0.0) out.p_value = chi2_tail(out.chi2, out.degrees);
  return out;
}

/// −2 log Λ about the top of a parabola.
struct Parabola {
  std::vector<double> statistic;
  double estimate = 0.0;

  /// Least squares on an even grid: orthogonal polynomials of t = 2 (α − middle)/width.
  Parabola(std::span<const double> grid, std::span<const double> values, double lowest,
           double largest) {
    const auto n = static_cast<double>(grid.size());
    const double middle = 0.5 * (grid.front() + grid.back()), half = grid.back() - middle;
    double t2 = 0.0, t4 = 0.0, y0 = 0.0, y1 = 0.0, y2 = 0.0;
    for (std::size_t g = 0; g < grid.size(); ++g) {
      const double t = (grid[g] - middle) / half;
      t2 += t * t / n;
      t4 += t * t * t * t / n;
      y0 += values[g] / n;
      y1 += values[g] * t / n;
      y2 += values[g] * t * t / n;
    }
    const double c1 = y1 / t2, c2 = (y2 - y0 * t2) / (t4 - t2 * t2), c0 = y0 - c2 * t2;
    const double first = (lowest - middle) / half, last = (largest - middle) / half;
    const double top = c2 < 0.0 ? std::clamp(-0.5 * c1 / c2, first, last) : c1 > 0.0 ? last : first;
    const double highest =
        c2 < 0.0 ? c0 + c1 * top + c2 * top * top : *std::max_element(values.begin(), values.end());
    estimate = middle + half * top;
    for (const double value : values) statistic.push_back(2.0 * (highest - value));
  }
};

}  // namespace

ReferenceCurve reference_curve(std::string name, std::span<const double> grid,
                               std::span<const double> log_likelihood, MatrixView replicas,
                               double low, double high) {
  const char* function = "reference_curve";
  check_at_least(function, "grid", grid.size(), 3);
  check_same_size(function, "log_likelihood", log_likelihood.size(), grid.size(),
                  "one a grid point");
  check_finite(function, "log_likelihood", log_likelihood);
  const Parabola found(grid, log_likelihood, low, high);
  ReferenceCurve out;
  out.name = std::move(name);
  out.statistic = found.statistic;
  out.deviation.assign(grid.size(), 0.0);
  out.estimate = {found.estimate};
  out.estimate_covariance = Matrix(1, 1, {0.0});
  if (replicas.rows() == 0) return out;
  check_same_size(function, "a row of replicas", replicas.cols(), grid.size(), "one a grid point");
  out.replicas = Matrix(replicas.rows(), grid.size());
  std::vector<double> estimates;
  for (std::size_t b = 0; b < replicas.rows(); ++b) {
    const Parabola other(grid, replicas.row(b), low, high);
    std::copy(other.statistic.begin(), other.statistic.end(), out.replicas.row(b).begin());
    estimates.push_back(other.estimate);
  }
  for (std::size_t g = 0; g < grid.size(); ++g)
    out.deviation[g] = standard_deviation(out.replicas.column(g));
  out.estimate_covariance(0, 0) = std::pow(standard_deviation(estimates), 2);
  return out;
}

Diagnostic diagnose_reference(std::span<const ReferenceCurve> curves, MatrixView grid,
                              const ReferenceConfig& config) {
  const char* function = "diagnose_reference";
  check_curves(function, curves, grid);
  check_in_range(function, "tolerance", config.tolerance, 0.0, 1e6);
  check_at_least(function, "draws", config.draws, 99);
  const auto precision = precisions(curves, config.tolerance);
  const auto value = [&](std::size_t k, std::size_t g) { return curves[k].statistic[g]; };
  const double square = mean_square(precision, value);
  const auto from_replicas = replica_p_value(curves, precision, square, config);
  const double p_curves =
      from_replicas ? *from_replicas : chi2_tail(square, static_cast<double>(curves.size() - 1));

  Diagnostic out;
  out.name = "reference";
  out.explanation = fmt::format(
      "−2 log Λ and the estimate must not depend on the reference θ1. The statistic is the mean "
      "square difference between {} references, in standard deviations of what finite simulation "
      "lets each fluctuate.",
      curves.size());
  out.statistic = square / static_cast<double>(curves.size() - 1);
  out.tolerance = config.tolerance;
  double largest = 0.0;
  for (std::size_t g = 0; g < grid.rows(); ++g) {
    double low = curves[0].statistic[g], high = low;
    for (const auto& curve : curves) {
      low = std::min(low, curve.statistic[g]);
      high = std::max(high, curve.statistic[g]);
    }
    largest = std::max(largest, high - low);
  }
  out.numbers = {{"largest_difference", largest}, {"p_value_curves", p_curves}};
  double p_value = p_curves;
  if (!curves[0].estimate.empty()) {
    const auto estimates = test_estimates(curves);
    if (estimates.degrees > 0.0) {
      out.numbers.emplace_back("chi2_estimates", estimates.chi2);
      out.numbers.emplace_back("p_value_estimates", estimates.p_value);
      p_value = std::min(1.0, 2.0 * std::min(p_curves, estimates.p_value));
    }
  }
  out.p_value = p_value;
  out.verdict = verdict_of(p_value);

  Diagnostic::Panel panel{"Independence of the reference",
                          grid.cols() == 1 ? "parameter" : "point of the grid",
                          "−2 log Λ",
                          {}};
  for (const auto& curve : curves) {
    Diagnostic::Series series{curve.name, Diagnostic::Series::Style::line, {}, {}, {}, {}};
    for (std::size_t g = 0; g < grid.rows(); ++g) {
      series.x.push_back(grid.cols() == 1 ? grid(g, 0) : static_cast<double>(g));
      series.y.push_back(curve.statistic[g]);
      series.low.push_back(curve.statistic[g] - curve.deviation[g]);
      series.high.push_back(curve.statistic[g] + curve.deviation[g]);
    }
    panel.series.push_back(std::move(series));
  }
  out.panels.push_back(std::move(panel));
  return out;
}

}  // namespace neyman
