#include "calibration/node_weights.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "neyman/core/error.hpp"
#include "neyman/core/random.hpp"

namespace neyman::calibration {
namespace {

using Function = std::function<double(std::span<const double>)>;

Matrix grid_nodes(const std::vector<std::vector<double>>& axes) {
  Matrix nodes;
  std::vector<std::size_t> at(axes.size(), 0);
  while (true) {
    std::vector<double> row;
    for (std::size_t p = 0; p < axes.size(); ++p) row.push_back(axes[p][at[p]]);
    nodes.append(MatrixView(row.data(), 1, row.size()));
    std::size_t p = axes.size();
    while (p > 0 && ++at[p - 1] == axes[p - 1].size()) at[--p] = 0;
    if (p == 0) return nodes;
  }
}

double interpolate(const Matrix& nodes, const NodeWeights& weights, const Function& f,
                   bool smooth) {
  double sum = 0.0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    sum += (smooth ? weights.smooth : weights.positive)[k] * f(nodes.row(weights.nodes[k]));
  }
  return sum;
}

const std::vector<double> uneven = {-1.0, -0.8, 0.1, 0.5, 2.0};

TEST(NodeWeights, CubicIsExactForQuadraticsInEachParameter) {
  const Matrix nodes = grid_nodes({uneven, {0.0, 1.0, 1.5, 3.0}});
  const Function f = [](std::span<const double> x) {
    return (1.0 - x[0] + 3.0 * x[0] * x[0]) * (2.0 + x[1] - 0.5 * x[1] * x[1]);
  };
  const NodeLayout layout(nodes, true);
  EXPECT_TRUE(layout.is_grid());
  RandomStream random(1, "node-weights");
  for (int i = 0; i < 50; ++i) {
    const std::vector<double> at{-1.0 + 3.0 * random.uniform(), 3.0 * random.uniform()};
    const NodeWeights weights = layout.at(at);
    EXPECT_LE(weights.size(), 16u);
    EXPECT_NEAR(interpolate(nodes, weights, f, true), f(at), 1e-12 * 100.0);
  }
}

TEST(NodeWeights, PositiveIsMultilinear) {
  const Matrix nodes = grid_nodes({uneven, {0.0, 1.0, 1.5}, {5.0, 7.0}});
  const Function f = [](std::span<const double> x) {
    return (1.0 + 2.0 * x[0]) * (x[1] - 3.0) * (x[2] + 1.0);
  };
  for (const bool cubic : {false, true}) {
    const NodeLayout layout(nodes, cubic);
    const std::vector<double> at{0.3, 1.2, 5.5};
    const NodeWeights weights = layout.at(at);
    EXPECT_NEAR(interpolate(nodes, weights, f, false), f(at), 1e-11);
    for (const double w : weights.positive) EXPECT_GE(w, 0.0);
    if (!cubic) {
      EXPECT_EQ(weights.smooth, weights.positive);
      EXPECT_EQ(weights.size(), 8u);
    }
  }
}

void expect_own_weight(const Matrix& nodes, const NodeLayout& layout, double tolerance) {
  for (std::size_t k = 0; k < nodes.rows(); ++k) {
    const NodeWeights weights = layout.at(nodes.row(k));
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double expected = weights.nodes[i] == k ? 1.0 : 0.0;
      EXPECT_NEAR(weights.smooth[i], expected, tolerance);
      EXPECT_NEAR(weights.positive[i], expected, tolerance);
    }
  }
}

Matrix scattered_nodes(std::size_t count) {
  RandomStream random(2, "scattered");
  Matrix nodes(count, 2);
  for (std::size_t k = 0; k < count; ++k) {
    nodes(k, 0) = random.uniform();
    nodes(k, 1) = 100.0 * random.uniform();
  }
  return nodes;
}

TEST(NodeWeights, ANodeHasAllTheWeightAtItsPlace) {
  const Matrix grid = grid_nodes({uneven, {0.0, 1.0, 1.5}});
  expect_own_weight(grid, NodeLayout(grid, true), 0.0);
  expect_own_weight(grid, NodeLayout(grid, false), 0.0);
  const Matrix scattered = scattered_nodes(20);
  expect_own_weight(scattered, NodeLayout(scattered, true), 1e-9);
}

TEST(NodeWeights, OrderOfTheNodesIsIrrelevant) {
  const Matrix nodes = grid_nodes({uneven, {0.0, 1.0, 1.5}});
  std::vector<std::size_t> order(nodes.rows());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::swap(order[0], order[7]);
  std::swap(order[3], order[14]);
  const Matrix shuffled = nodes.take(order);
  const NodeLayout layout(shuffled, true);
  EXPECT_TRUE(layout.is_grid());
  const Function f = [](std::span<const double> x) { return x[0] * x[0] - x[0] * x[1]; };
  const std::vector<double> at{0.3, 0.2};
  EXPECT_NEAR(interpolate(shuffled, layout.at(at), f, true), f(at), 1e-13);
}

TEST(NodeWeights, ScatteredIsExactForLinear) {
  const Matrix nodes = scattered_nodes(25);
  const NodeLayout layout(nodes, true);
  EXPECT_FALSE(layout.is_grid());
  const Function linear = [](std::span<const double> x) { return 3.0 - x[0] + 0.02 * x[1]; };
  const Function curved = [](std::span<const double> x) {
    return std::sin(2.0 * x[0] + x[1] / 50);
  };
  const std::vector<double> at{0.45, 52.0};
  const NodeWeights weights = layout.at(at);
  EXPECT_NEAR(interpolate(nodes, weights, linear, true), linear(at), 1e-9);
  EXPECT_NEAR(interpolate(nodes, weights, curved, true), curved(at), 0.02);
  EXPECT_NEAR(std::accumulate(weights.positive.begin(), weights.positive.end(), 0.0), 1.0, 1e-12);
}

TEST(NodeWeights, NodesOnALineAreNoTrouble) {
  // A diagonal of a plane: no grid, and the polynomial is not determined.
  const Matrix nodes(3, 2, {0.0, 0.0, 1.0, 1.0, 2.0, 2.0});
  const NodeLayout layout(nodes, true);
  const Function f = [](std::span<const double> x) { return x[0] + x[1]; };
  EXPECT_NEAR(interpolate(nodes, layout.at(std::vector<double>{0.5, 0.5}), f, true), 1.0, 1e-9);
  expect_own_weight(nodes, layout, 1e-9);
}

TEST(NodeWeights, SlopesAreDerivatives) {
  const Matrix grid = grid_nodes({uneven, {0.0, 1.0, 1.5, 3.0}});
  const Matrix scattered = scattered_nodes(12);
  const auto check = [](const NodeLayout& layout, std::vector<double> at, double unit) {
    const NodeWeights weights = layout.at(at, true);
    for (std::size_t p = 0; p < 2; ++p) {
      const double h = 1e-6 * (p == 0 ? 1.0 : unit), centre = at[p];
      at[p] = centre + h;
      const NodeWeights up = layout.at(at);
      at[p] = centre - h;
      const NodeWeights down = layout.at(at);
      at[p] = centre;
      for (std::size_t k = 0; k < weights.size(); ++k) {
        EXPECT_NEAR(weights.smooth_slopes(k, p) * h, 0.5 * (up.smooth[k] - down.smooth[k]), 1e-12);
        EXPECT_NEAR(weights.positive_slopes(k, p) * h, 0.5 * (up.positive[k] - down.positive[k]),
                    1e-12);
      }
    }
  };
  check(NodeLayout(grid, true), {0.3, 0.7}, 1.0);
  check(NodeLayout(grid, true), {-0.95, 2.2}, 1.0);
  check(NodeLayout(grid, false), {0.3, 0.7}, 1.0);
  check(NodeLayout(scattered, true), {0.41, 33.0}, 100.0);
}

TEST(NodeWeights, OutsideCountsAsTheNearestPointOfTheBox) {
  const Matrix nodes = grid_nodes({uneven, {0.0, 1.0, 1.5}});
  const NodeLayout layout(nodes, true);
  const NodeWeights outside = layout.at(std::vector<double>{9.0, 0.7}, true);
  const NodeWeights edge = layout.at(std::vector<double>{2.0, 0.7}, true);
  EXPECT_EQ(outside.smooth, edge.smooth);
  for (std::size_t k = 0; k < outside.size(); ++k) {
    EXPECT_EQ(outside.smooth_slopes(k, 0), 0.0);
    EXPECT_EQ(outside.smooth_slopes(k, 1), edge.smooth_slopes(k, 1));
  }
}

TEST(NodeWeights, OneNodeCountsEverywhere) {
  const NodeLayout layout(Matrix(1, 2, {3.0, 4.0}), true);
  const NodeWeights weights = layout.at(std::vector<double>{-100.0, 5.0}, true);
  EXPECT_EQ(weights.smooth, std::vector<double>{1.0});
  EXPECT_EQ(weights.smooth_slopes(0, 1), 0.0);
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "no error";
}

TEST(NodeWeights, RefusesBadNodesAndPoints) {
  EXPECT_THROW(NodeLayout(Matrix(), true), ArgumentError);
  EXPECT_NE(message_of([] {
              NodeLayout(Matrix(3, 1, {1.0, 2.0, 1.0}), true);
            }).find("nodes[2] is the same as nodes[0], but must be at a place of its own"),
            std::string::npos);
  EXPECT_THROW(NodeLayout(Matrix(1, 1, {NAN}), true), ArgumentError);
  const NodeLayout layout(Matrix(2, 1, {0.0, 1.0}), true);
  EXPECT_THROW(layout.at(std::vector<double>{0.5, 0.5}), ArgumentError);
  EXPECT_THROW(layout.at(std::vector<double>{NAN}), ArgumentError);
}

}  // namespace
}  // namespace neyman::calibration
