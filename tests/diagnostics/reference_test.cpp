#include "neyman/diagnostics/reference.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "neyman/core/error.hpp"
#include "neyman/core/random.hpp"
#include "neyman/inference/statistics.hpp"

namespace neyman {
namespace {

constexpr std::size_t points = 21;

Matrix make_grid() {
  Matrix grid(points, 1);
  for (std::size_t g = 0; g < points; ++g) grid(g, 0) = -2.0 + 0.2 * static_cast<double>(g);
  return grid;
}

/// −2 log Λ = (t − t̂)² of three references whose estimates fluctuate by `spread`, as do their
/// replicas; the last reference is wrong by `shift`.
std::vector<ReferenceCurve> make_curves(std::uint64_t seed, double spread, double shift,
                                        bool replicas) {
  RandomStream random(seed, "reference-test");
  const auto grid = make_grid();
  std::vector<ReferenceCurve> curves;
  for (int k = 0; k < 3; ++k) {
    ReferenceCurve curve;
    curve.name = "reference " + std::to_string(k);
    const double estimate = spread * random.normal() + (k == 2 ? shift : 0.0);
    const std::size_t count = 50;
    Matrix fluctuating(count, points);
    for (std::size_t b = 0; b < count; ++b) {
      const double moved = estimate + spread * random.normal();
      for (std::size_t g = 0; g < points; ++g) fluctuating(b, g) = std::pow(grid(g, 0) - moved, 2);
    }
    for (std::size_t g = 0; g < points; ++g) {
      curve.statistic.push_back(std::pow(grid(g, 0) - estimate, 2));
      curve.deviation.push_back(standard_deviation(fluctuating.column(g)));
    }
    if (replicas) curve.replicas = fluctuating;
    curve.estimate = {estimate};
    curve.estimate_covariance = Matrix(1, 1, {spread * spread});
    curves.push_back(std::move(curve));
  }
  return curves;
}

TEST(Reference, FalseAlarmsAreAsStated) {
  // 400 repetitions at a level of 5 %: 20 ± 4.4 would be exact; two tests of the same
  // fluctuation, doubled, give about half of it. More than 34 has a probability below 10⁻³.
  for (const bool replicas : {false, true}) {
    std::size_t five = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
      ReferenceConfig config;
      config.tolerance = 1e-3;
      config.draws = 199;
      config.seed = seed;
      five +=
          *diagnose_reference(make_curves(seed, 0.05, 0.0, replicas), make_grid(), config).p_value <
          0.05;
    }
    EXPECT_LE(five, 34u) << replicas;
    EXPECT_GE(five, 2u) << replicas;
  }
}

TEST(Reference, ADependenceFails) {
  for (const bool replicas : {false, true}) {
    const auto found = diagnose_reference(make_curves(1, 0.05, 0.6, replicas), make_grid());
    EXPECT_EQ(found.verdict, Diagnostic::Verdict::fail);
    EXPECT_LT(*found.number("p_value_curves"), 0.01);
    EXPECT_LT(*found.number("p_value_estimates"), 1e-6);
    EXPECT_GT(*found.number("largest_difference"), 1.0);
    EXPECT_EQ(found.panels[0].series.size(), 3u);
  }
}

TEST(Reference, EstimatesAloneCanFail) {
  // Equal curves, estimates 1 and 2 with errors 0.1: χ² = 0.5/0.01 for one degree of freedom.
  ReferenceCurve curve;
  curve.statistic.assign(points, 3.0);
  curve.deviation.assign(points, 0.1);
  curve.estimate = {1.0};
  curve.estimate_covariance = Matrix(1, 1, {0.01});
  std::vector<ReferenceCurve> curves(2, curve);
  EXPECT_EQ(diagnose_reference(curves, make_grid()).verdict, Diagnostic::Verdict::pass);
  curves[1].estimate = {2.0};
  const auto found = diagnose_reference(curves, make_grid());
  EXPECT_NEAR(*found.number("chi2_estimates"), 50.0, 1e-9);
  EXPECT_NEAR(*found.p_value, 2.0 * chi2_tail(50.0, 1.0), 1e-15);
  EXPECT_EQ(found.verdict, Diagnostic::Verdict::fail);
}

TEST(Reference, KnownMeanSquare) {
  // Two curves that differ by 1 everywhere, each with deviation 0.5: Σ ((±0.5)/0.5)² = 2.
  ReferenceCurve curve;
  curve.statistic.assign(points, 3.0);
  curve.deviation.assign(points, 0.5);
  std::vector<ReferenceCurve> curves(2, curve);
  curves[1].statistic.assign(points, 4.0);
  ReferenceConfig config;
  config.tolerance = 0.0;
  const auto found = diagnose_reference(curves, make_grid(), config);
  EXPECT_NEAR(found.statistic, 2.0, 1e-9);
  EXPECT_NEAR(*found.p_value, chi2_tail(2.0, 1.0), 1e-9);
  // Nothing fluctuates, and they differ by less than the tolerance.
  for (auto& c : curves) c.deviation.assign(points, 0.0);
  curves[1].statistic.assign(points, 3.05);
  EXPECT_EQ(diagnose_reference(curves, make_grid()).verdict, Diagnostic::Verdict::pass);
  curves[1].statistic.assign(points, 4.0);
  EXPECT_EQ(diagnose_reference(curves, make_grid()).verdict, Diagnostic::Verdict::fail);
}

TEST(Reference, SaysWhatIsWrong) {
  auto curves = make_curves(1, 0.05, 0.0, true);
  EXPECT_THROW(diagnose_reference(std::span(curves).first(1), make_grid()), ArgumentError);
  curves[1].deviation.pop_back();
  EXPECT_THROW(diagnose_reference(curves, make_grid()), ArgumentError);
}

TEST(ReferenceCurve, FindsTheTopOfAParabola) {
  std::vector<double> grid, values;
  for (int g = 0; g < 13; ++g) {
    grid.push_back(0.1 * g);
    values.push_back(7.0 - 30.0 * std::pow(grid.back() - 0.44, 2));
  }
  Matrix replicas(40, grid.size());
  RandomStream random(3, "reference-curve");
  for (std::size_t b = 0; b < replicas.rows(); ++b) {
    const double slope = random.normal();
    for (std::size_t g = 0; g < grid.size(); ++g) replicas(b, g) = values[g] + slope * grid[g];
  }
  const auto found = reference_curve("θ1", grid, values, replicas, 0.0, 2.0);
  EXPECT_NEAR(found.estimate[0], 0.44, 1e-12);
  for (std::size_t g = 0; g < grid.size(); ++g)
    EXPECT_NEAR(found.statistic[g], 60.0 * std::pow(grid[g] - 0.44, 2), 1e-11);
  // The top moves by slope / 60; the standard deviation of 40 values is known to 11 %.
  EXPECT_NEAR(std::sqrt(found.estimate_covariance(0, 0)) * 60.0, 1.0, 0.4);
  EXPECT_EQ(found.replicas.rows(), 40u);
  // A constant of each replica does not matter.
  for (std::size_t b = 0; b < replicas.rows(); ++b)
    for (double& value : replicas.row(b)) value += static_cast<double>(b);
  const auto moved = reference_curve("θ1", grid, values, replicas, 0.0, 2.0);
  for (std::size_t g = 0; g < grid.size(); ++g)
    EXPECT_NEAR(moved.deviation[g], found.deviation[g], 1e-9);
  // Without replicas nothing is known of the deviation.
  const auto plain = reference_curve("exact", grid, values, {}, 0.0, 2.0);
  EXPECT_EQ(plain.statistic, found.statistic);
  EXPECT_EQ(plain.estimate, found.estimate);
  EXPECT_EQ(plain.estimate_covariance(0, 0), 0.0);
}

TEST(ReferenceCurve, WithoutATopInTheRangesTakesTheNearerEnd) {
  const std::vector<double> grid = {0.0, 0.5, 1.0}, rising = {0.0, 1.0, 2.0},
                            hollow = {3.0, 0.0, 1.0};
  const Matrix replica(2, 3, {0.0, 1.0, 2.0, 0.0, 1.0, 2.0});
  EXPECT_EQ(reference_curve("", grid, rising, replica, -1.0, 4.0).estimate[0], 4.0);
  EXPECT_EQ(reference_curve("", grid, hollow, replica, -1.0, 4.0).estimate[0], -1.0);
  EXPECT_EQ(reference_curve("", grid, hollow, {}, -1.0, 4.0).statistic,
            (std::vector<double>{0.0, 6.0, 4.0}));
  EXPECT_THROW(reference_curve("", grid, {}, {}, 0.0, 1.0), ArgumentError);
}

}  // namespace
}  // namespace neyman
