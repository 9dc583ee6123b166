#include "newton.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <vector>

namespace neyman {

namespace {

constexpr double small_distance = 1e-10;
constexpr int most_rounds = 40;

/// The parameters that are not held by a bound, and what is known of ℓ along them.
struct Inside {
  std::vector<std::size_t> parameters;
  Eigen::VectorXd slope;
  EigenMatrix curvature;

  explicit Inside(const FreeProblem::Derivatives& at) {
    for (std::size_t i = 0; i < at.unit.size(); ++i)
      if (!rises_outwards(at.unit[i], at.gradient(index(i)))) parameters.push_back(i);
    const auto size = index(parameters.size());
    slope.resize(size);
    curvature.resize(size, size);
    for (Eigen::Index i = 0; i < size; ++i) {
      const auto row = index(parameters[static_cast<std::size_t>(i)]);
      slope(i) = at.gradient(row);
      for (Eigen::Index j = 0; j < size; ++j)
        curvature(i, j) = at.hessian(row, index(parameters[static_cast<std::size_t>(j)]));
    }
  }
};

Judgement arrived(const FreeProblem::Derivatives& at, double distance) {
  Judgement out;
  out.arrived = true;
  out.distance = distance;
  for (std::size_t i = 0; i < at.unit.size(); ++i)
    out.at_bound.push_back(rises_outwards(at.unit[i], at.gradient(index(i))));
  return out;
}

}  // namespace

std::optional<Judgement> follow_newton(FreeProblem& problem) {
  const auto* known = problem.derivatives(problem.best());
  if (known == nullptr) return std::nullopt;
  auto now = *known;
  for (int round = 0; round < most_rounds; ++round) {
    if (!now.gradient.allFinite() || !now.hessian.allFinite()) return std::nullopt;
    const Inside inside(now);
    problem.set_best(now.unit, now.value);
    if (inside.parameters.empty()) return arrived(now, 0.0);
    const Eigen::LLT<EigenMatrix> factor(inside.curvature);
    if (factor.info() != Eigen::Success) return std::nullopt;  // no hill here
    const Eigen::VectorXd step = -factor.solve(inside.slope);
    const double distance = -0.5 * inside.slope.dot(step);
    if (distance <= small_distance) return arrived(now, distance);

    bool moved = false;
    for (double length = 1.0; length > 1e-3 && !moved; length *= 0.3) {
      auto next = now.unit;
      double promise = 0.0;
      for (std::size_t i = 0; i < inside.parameters.size(); ++i) {
        double& u = next[inside.parameters[i]];
        const double from = u;
        u = std::clamp(u + length * step(index(i)), 0.0, 1.0);
        promise += inside.slope(index(i)) * (u - from);
      }
      const auto* there = problem.derivatives(next);
      // Near the top, what a step gains is less than rounding.
      if (there == nullptr ||
          there->value > now.value + 1e-4 * promise + 1e-13 * (1.0 + std::abs(now.value)))
        continue;
      now = *there;
      moved = true;
    }
    if (!moved) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace neyman
