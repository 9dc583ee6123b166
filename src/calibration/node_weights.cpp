#include "calibration/node_weights.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>

#include "neyman/core/check.hpp"

namespace neyman::calibration {

namespace {

// Weights of neighbouring values of one parameter, and their derivatives.
struct AxisWeights {
  std::size_t first = 0, count = 1;
  std::array<double, 4> smooth{1.0}, smooth_slopes{}, positive{1.0}, positive_slopes{};
};

// Adds `factor` times the derivative at value i of the parabola through it and its neighbours (at
// an end, through the three outermost) to weights of the values from `first` on.
void add_parabola_slope(const std::vector<double>& x, std::size_t i, double factor,
                        std::size_t first, std::array<double, 4>& weights) {
  const std::size_t middle = std::clamp<std::size_t>(i, 1, x.size() - 2);
  const std::array<double, 3> p{x[middle - 1], x[middle], x[middle + 1]};
  for (std::size_t a = 0; a < 3; ++a) {
    const double b = p[(a + 1) % 3], c = p[(a + 2) % 3];
    weights[middle - 1 + a - first] +=
        factor * ((x[i] - b) + (x[i] - c)) / ((p[a] - b) * (p[a] - c));
  }
}

AxisWeights axis_weights(const std::vector<double>& x, double at, bool cubic) {
  AxisWeights result;
  if (x.size() == 1) return result;
  const auto next = std::upper_bound(x.begin() + 1, x.end() - 1, at);
  const std::size_t cell = static_cast<std::size_t>(next - x.begin()) - 1;
  const double h = x[cell + 1] - x[cell], t = (at - x[cell]) / h, s = 1.0 - t;
  cubic = cubic && x.size() > 2;
  result.first = cubic && cell > 0 ? cell - 1 : cell;
  result.count = std::min(x.size(), cubic ? cell + 3 : cell + 2) - result.first;
  const std::size_t left = cell - result.first;
  result.positive = {};
  result.positive[left] = s;
  result.positive[left + 1] = t;
  result.positive_slopes[left] = -1.0 / h;
  result.positive_slopes[left + 1] = 1.0 / h;
  result.smooth = result.positive;
  result.smooth_slopes = result.positive_slopes;
  if (!cubic) return result;
  result.smooth[left] = s * s * (1.0 + 2.0 * t);
  result.smooth[left + 1] = t * t * (1.0 + 2.0 * s);
  result.smooth_slopes[left] = -6.0 * s * t / h;
  result.smooth_slopes[left + 1] = 6.0 * s * t / h;
  add_parabola_slope(x, cell, h * t * s * s, result.first, result.smooth);
  add_parabola_slope(x, cell + 1, -h * t * t * s, result.first, result.smooth);
  add_parabola_slope(x, cell, s * (s - 2.0 * t), result.first, result.smooth_slopes);
  add_parabola_slope(x, cell + 1, -t * (2.0 * s - t), result.first, result.smooth_slopes);
  return result;
}

double cubed_distance(std::span<const double> a, std::span<const double> b) {
  double square = 0.0;
  for (std::size_t p = 0; p < a.size(); ++p) square += (a[p] - b[p]) * (a[p] - b[p]);
  return square * std::sqrt(square);
}

}  // namespace

std::vector<double> weighted_sum(const Matrix& rows, const std::vector<std::size_t>& nodes,
                                 std::span<const double> weights) {
  std::vector<double> sum(rows.cols(), 0.0);
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    const double w = weights[k];
    if (w == 0.0) continue;
    const double* row = rows.row(nodes[k]).data();
    for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += w * row[j];
  }
  return sum;
}

NodeLayout::NodeLayout(MatrixView nodes, bool cubic) : cubic_(cubic) {
  check_at_least("NodeLayout", "number of nodes", nodes.rows(), 1);
  check_at_least("NodeLayout", "number of parameters", nodes.cols(), 1);
  for (std::size_t k = 0; k < nodes.rows(); ++k) {
    check_finite("NodeLayout", "nodes[" + std::to_string(k) + "]", nodes.row(k));
    for (std::size_t other = 0; other < k; ++other) {
      if (std::equal(nodes.row(k).begin(), nodes.row(k).end(), nodes.row(other).begin())) {
        fail_argument("NodeLayout", "nodes[" + std::to_string(k) + "]",
                      "the same as nodes[" + std::to_string(other) + "]", "at a place of its own");
      }
    }
  }
  for (std::size_t p = 0; p < nodes.cols(); ++p) {
    std::vector<double> values;
    for (std::size_t k = 0; k < nodes.rows(); ++k) values.push_back(nodes(k, p));
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    low_.push_back(values.front());
    high_.push_back(values.back());
    axes_.push_back(std::move(values));
  }
  if (!find_grid(nodes)) find_basis(nodes);
}

// Distinct nodes are a grid where there are as many as places; then each place has one.
bool NodeLayout::find_grid(MatrixView nodes) {
  std::size_t places = 1;
  for (const auto& axis : axes_) {
    places *= axis.size();
    if (places > nodes.rows()) return false;
  }
  node_of_.resize(places);
  for (std::size_t k = 0; k < nodes.rows(); ++k) {
    std::size_t place = 0;
    for (std::size_t p = 0; p < axes_.size(); ++p) {
      const auto at = std::lower_bound(axes_[p].begin(), axes_[p].end(), nodes(k, p));
      place = place * axes_[p].size() + static_cast<std::size_t>(at - axes_[p].begin());
    }
    node_of_[place] = k;
  }
  return true;
}

void NodeLayout::find_basis(MatrixView nodes) {
  const std::size_t n = nodes.rows(), parameters = low_.size(), size = n + 1 + parameters;
  scaled_ = Matrix(n, parameters);
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t p = 0; p < parameters; ++p) {
      const double range = high_[p] - low_[p];
      scaled_(k, p) = range > 0.0 ? (nodes(k, p) - low_[p]) / range : 0.0;
    }
  }
  const auto rows = static_cast<Eigen::Index>(size), count = static_cast<Eigen::Index>(n);
  Eigen::MatrixXd system = Eigen::MatrixXd::Zero(rows, rows);
  for (std::size_t k = 0; k < n; ++k) {
    const auto row = static_cast<Eigen::Index>(k);
    for (std::size_t other = 0; other < n; ++other) {
      system(row, static_cast<Eigen::Index>(other)) =
          cubed_distance(scaled_.row(k), scaled_.row(other));
    }
    system(row, count) = system(count, row) = 1.0;
    for (std::size_t p = 0; p < parameters; ++p) {
      const auto column = static_cast<Eigen::Index>(n + 1 + p);
      system(row, column) = system(column, row) = scaled_(k, p);
    }
  }
  // Nodes on a line or a plane leave the polynomial undetermined; the pseudo-inverse does not mind.
  const Eigen::MatrixXd inverse = system.completeOrthogonalDecomposition().pseudoInverse();
  basis_ = Matrix(n, size);
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t j = 0; j < size; ++j) {
      basis_(k, j) = inverse(static_cast<Eigen::Index>(k), static_cast<Eigen::Index>(j));
    }
  }
}

NodeWeights NodeLayout::at(std::span<const double> point, bool with_slopes) const {
  check_same_size("NodeLayout::at", "point", point.size(), parameters(), "one for each parameter");
  check_finite("NodeLayout::at", "point", point);
  std::vector<double> inside(point.begin(), point.end());
  for (std::size_t p = 0; p < inside.size(); ++p) {
    inside[p] = std::clamp(inside[p], low_[p], high_[p]);
  }
  NodeWeights weights = is_grid() ? on_grid(inside, with_slopes) : scattered(inside, with_slopes);
  for (std::size_t p = 0; with_slopes && p < inside.size(); ++p) {
    if (inside[p] == point[p]) continue;
    for (std::size_t k = 0; k < weights.size(); ++k) {
      weights.smooth_slopes(k, p) = weights.positive_slopes(k, p) = 0.0;
    }
  }
  return weights;
}

NodeWeights NodeLayout::on_grid(std::span<const double> point, bool with_slopes) const {
  const std::size_t parameters = axes_.size();
  std::vector<AxisWeights> axes;
  std::size_t count = 1;
  for (std::size_t p = 0; p < parameters; ++p) {
    axes.push_back(axis_weights(axes_[p], point[p], cubic_));
    count *= axes.back().count;
  }
  NodeWeights weights;
  if (with_slopes) weights.smooth_slopes = weights.positive_slopes = Matrix(count, parameters);
  std::vector<std::size_t> offset(parameters, 0);
  for (std::size_t k = 0; k < count; ++k) {
    std::size_t place = 0;
    double smooth = 1.0, positive = 1.0;
    for (std::size_t p = 0; p < parameters; ++p) {
      place = place * axes_[p].size() + axes[p].first + offset[p];
      smooth *= axes[p].smooth[offset[p]];
      positive *= axes[p].positive[offset[p]];
    }
    weights.nodes.push_back(node_of_[place]);
    weights.smooth.push_back(smooth);
    weights.positive.push_back(positive);
    for (std::size_t p = 0; with_slopes && p < parameters; ++p) {
      double smooth_slope = axes[p].smooth_slopes[offset[p]];
      double positive_slope = axes[p].positive_slopes[offset[p]];
      for (std::size_t q = 0; q < parameters; ++q) {
        if (q == p) continue;
        smooth_slope *= axes[q].smooth[offset[q]];
        positive_slope *= axes[q].positive[offset[q]];
      }
      weights.smooth_slopes(k, p) = smooth_slope;
      weights.positive_slopes(k, p) = positive_slope;
    }
    for (std::size_t p = parameters; p-- > 0;) {
      if (++offset[p] < axes[p].count) break;
      offset[p] = 0;
    }
  }
  return weights;
}

NodeWeights NodeLayout::scattered(std::span<const double> point, bool with_slopes) const {
  const std::size_t n = scaled_.rows(), parameters = low_.size();
  std::vector<double> at(parameters), unit(parameters, 0.0);
  for (std::size_t p = 0; p < parameters; ++p) {
    const double range = high_[p] - low_[p];
    if (range > 0.0) unit[p] = 1.0 / range;
    at[p] = (point[p] - low_[p]) * unit[p];
  }
  // The functions of the basis and of the polynomial at the point, then their derivatives.
  Matrix functions(1 + (with_slopes ? parameters : 0), n + 1 + parameters);
  for (std::size_t k = 0; k < n; ++k) {
    functions(0, k) = cubed_distance(at, scaled_.row(k));
    const double distance = std::cbrt(functions(0, k));
    for (std::size_t p = 0; with_slopes && p < parameters; ++p) {
      functions(1 + p, k) = 3.0 * distance * (at[p] - scaled_(k, p)) * unit[p];
    }
  }
  functions(0, n) = 1.0;
  for (std::size_t p = 0; p < parameters; ++p) {
    functions(0, n + 1 + p) = at[p];
    if (with_slopes) functions(1 + p, n + 1 + p) = unit[p];
  }
  const auto combine = [&](std::size_t k, std::size_t function) {
    const std::span<const double> row = basis_.row(k), values = functions.row(function);
    return std::inner_product(row.begin(), row.end(), values.begin(), 0.0);
  };

  NodeWeights weights;
  weights.nodes.resize(n);
  std::iota(weights.nodes.begin(), weights.nodes.end(), std::size_t{0});
  double total = 0.0;
  for (std::size_t k = 0; k < n; ++k) {
    weights.smooth.push_back(combine(k, 0));
    total += std::max(weights.smooth[k], 0.0);
  }
  for (const double w : weights.smooth) weights.positive.push_back(std::max(w, 0.0) / total);
  if (!with_slopes) return weights;
  weights.smooth_slopes = weights.positive_slopes = Matrix(n, parameters);
  for (std::size_t p = 0; p < parameters; ++p) {
    double total_slope = 0.0;
    for (std::size_t k = 0; k < n; ++k) {
      weights.smooth_slopes(k, p) = combine(k, 1 + p);
      if (weights.smooth[k] > 0.0) total_slope += weights.smooth_slopes(k, p);
    }
    for (std::size_t k = 0; k < n; ++k) {
      const double own = weights.smooth[k] > 0.0 ? weights.smooth_slopes(k, p) : 0.0;
      weights.positive_slopes(k, p) = (own - weights.positive[k] * total_slope) / total;
    }
  }
  return weights;
}

}  // namespace neyman::calibration
