#include "judgement.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

#include "local_shape.hpp"
#include "newton.hpp"

namespace neyman {

namespace {

/// Names of the parameters that make up most of a direction.
std::string names_along(const FreeProblem& problem, const std::vector<std::size_t>& inside,
                        const Eigen::VectorXd& direction) {
  std::string out;
  for (std::size_t i = 0; i < inside.size(); ++i)
    if (std::abs(direction(index(i))) > 0.3)
      out += (out.empty() ? "" : " and ") + problem.name(inside[i]);
  return out;
}

void judge_inside(const FreeProblem& problem, const Eigen::VectorXd& gradient,
                  const EigenMatrix& full, double tolerance, Judgement& out) {
  const auto size = index(out.inside.size());
  EigenMatrix free(size, size);
  Eigen::VectorXd slope(size);
  for (Eigen::Index i = 0; i < size; ++i) {
    const auto row = index(out.inside[static_cast<std::size_t>(i)]);
    slope(i) = gradient(row);
    for (Eigen::Index j = 0; j < size; ++j)
      free(i, j) = full(row, index(out.inside[static_cast<std::size_t>(j)]));
  }
  if (!free.allFinite() || !slope.allFinite()) {
    out.message = "the derivatives of the likelihood are not finite at the best point";
    return;
  }
  // Over the whole range a curvature of λ changes ℓ by λ / 8.
  const Eigen::SelfAdjointEigenSolver<EigenMatrix> eigen(free);
  if (eigen.eigenvalues()(0) <= 8.0 * tolerance) {
    const bool flat = std::abs(eigen.eigenvalues()(0)) <=
                      std::max(8.0 * tolerance, 1e-9 * eigen.eigenvalues()(size - 1));
    out.message = fmt::format("the likelihood {} along {}",
                              flat ? "is flat" : "does not fall off on both sides",
                              names_along(problem, out.inside, eigen.eigenvectors().col(0)));
    return;
  }
  const Eigen::LDLT<EigenMatrix> factor(free);
  out.inverse = factor.solve(EigenMatrix::Identity(size, size));
  out.step = -out.inverse * slope;
  out.distance = -0.5 * slope.dot(out.step);
  out.peaked = std::isfinite(out.distance) && out.distance >= 0.0;
  const double allowance = tolerance + 5.0 * out.roughness;
  out.arrived = out.peaked && out.distance <= allowance;
  if (!out.arrived)
    out.message = fmt::format("the estimated distance to the maximum, {:.3g}, is above {:.3g}",
                              out.distance, allowance);
}

/// The covariance of all that can be told from the second derivatives, as if the box went on: of
/// the parameters inside, then of each other one that leaves ℓ a hill.
void add_covariance(const EigenMatrix& full, double tolerance, Judgement& out) {
  const auto block = [&](const std::vector<std::size_t>& parameters) {
    EigenMatrix some(index(parameters.size()), index(parameters.size()));
    for (std::size_t i = 0; i < parameters.size(); ++i)
      for (std::size_t j = 0; j < parameters.size(); ++j)
        some(index(i), index(j)) = full(index(parameters[i]), index(parameters[j]));
    return some;
  };
  if (!full.allFinite() || (!out.peaked && !out.inside.empty())) return;
  out.bent = out.inside;
  for (std::size_t p = 0; p < out.at_bound.size(); ++p) {
    if (std::find(out.bent.begin(), out.bent.end(), p) != out.bent.end()) continue;
    auto more = out.bent;
    more.push_back(p);
    const Eigen::SelfAdjointEigenSolver<EigenMatrix> eigen(block(more), Eigen::EigenvaluesOnly);
    if (eigen.eigenvalues()(0) > 8.0 * tolerance) out.bent = std::move(more);
  }
  if (out.bent.empty()) return;
  out.covariance =
      Eigen::LDLT<EigenMatrix>(block(out.bent))
          .solve(EigenMatrix::Identity(index(out.bent.size()), index(out.bent.size())));
}

Judgement judge(FreeProblem& problem, const FitOptions& options, bool gradients) {
  Judgement out;
  const auto unit = snap_to_bounds(problem, gradients ? bound_tolerance : 1e-6);
  const double value = problem.best_value();
  const std::size_t n = problem.size();
  Eigen::VectorXd slope(index(n));
  EigenMatrix curvature;
  if (gradients) {
    std::vector<double> gradient(n);
    if (const auto* known = problem.derivatives(unit)) {
      Eigen::Map<Eigen::VectorXd>(gradient.data(), index(n)) = known->gradient;
    } else if (!value_and_gradient(problem, unit, gradient)) {
      out.at_bound.assign(n, false);
      out.message = "the likelihood is forbidden at the best point or beside it";
      return out;
    }
    for (std::size_t i = 0; i < n; ++i) slope(index(i)) = gradient[i];
  } else {
    auto shape = shape_of_values(problem.objective(), unit);
    slope = shape.gradient;
    curvature = std::move(shape.hessian);
    out.roughness = shape.roughness;
    out.fluctuation = shape.fluctuation;
  }
  for (std::size_t i = 0; i < n; ++i) {
    out.at_bound.push_back(rises_outwards(unit[i], slope(index(i))));
    if (!out.at_bound[i]) out.inside.push_back(i);
  }
  if (out.inside.empty()) {
    // ℓ that is flat rises nowhere.
    out.arrived = slope.cwiseAbs().maxCoeff() > 0.0;
    if (!out.arrived) out.message = "the likelihood is flat";
    if (!out.arrived || !options.covariance) return out;
    if (gradients) curvature = hessian(problem, unit);
    if (problem.best_value() > value - problem.rounding()) problem.set_best(unit, value);
    add_covariance(curvature, options.tolerance, out);
    return out;
  }
  if (gradients) curvature = hessian(problem, unit);
  // The point that was judged stays, unless one beside it is clearly better.
  if (problem.best_value() > value - problem.rounding()) problem.set_best(unit, value);
  judge_inside(problem, slope, curvature, options.tolerance, out);
  add_covariance(curvature, options.tolerance, out);
  return out;
}

/// A free parameter along which −ℓ falls until the likelihood is forbidden.
struct Edge {
  std::size_t parameter;
  double direction;
};
std::optional<Edge> find_edge(FreeProblem& problem) {
  const auto unit = problem.best();
  const double value = problem.best_value();
  std::optional<Edge> edge;
  double steepest = 0.0;
  for (std::size_t k = 0; k < problem.size(); ++k)
    for (const double direction : {-1.0, 1.0}) {
      constexpr double step = 1e-4;
      auto ahead = unit, behind = unit;
      ahead[k] += direction * step;
      behind[k] -= direction * step;
      if (ahead[k] < 0.0 || ahead[k] > 1.0 || problem(ahead) < forbidden_value) continue;
      // In a corner with a bound there is no way back, and no slope to know; any edge may do.
      const bool corner = behind[k] < 0.0 || behind[k] > 1.0;
      const double rise = corner ? 1e-300 : problem(behind) - value;
      if (rise < forbidden_value && rise > steepest) {
        steepest = rise;
        edge = Edge{k, direction};
      }
    }
  return edge;
}

/// Whether ℓ is higher a scale beside the best point, in one of the parameters.
bool step_aside(FreeProblem& problem) {
  const auto unit = problem.best();
  const double value = problem.best_value();
  for (std::size_t i = 0; i < problem.size(); ++i) {
    auto beside = unit;
    // Half a turn away there may be another hill.
    const double step = problem.round(i) ? std::min(0.1, problem.scale()[i]) : problem.scale()[i];
    beside[i] = unit[i] + step <= 1.0 ? unit[i] + step : std::max(0.0, unit[i] - step);
    if (problem(beside) < value - problem.rounding()) return true;
  }
  return false;
}

}  // namespace

// What counts is the distance, which comes from derivatives: values may fluctuate by rounding
// where ℓ is computed in single precision.
Judgement judge_and_step(FreeProblem& problem, const FitOptions& options, bool gradients) {
  auto out = judge(problem, options, gradients);
  for (int round = 0; round < 6 && !out.arrived && out.peaked; ++round) {
    const auto before = problem.best();
    const double value_before = problem.best_value();
    auto unit = before;
    for (std::size_t i = 0; i < out.inside.size(); ++i)
      unit[out.inside[i]] = std::clamp(unit[out.inside[i]] + out.step(index(i)), 0.0, 1.0);
    if (!problem.prefer(unit, problem.rounding())) break;
    auto next = judge(problem, options, gradients);
    if (!next.arrived && !(next.peaked && next.distance < 0.5 * out.distance)) {
      problem.set_best(before, value_before);
      break;
    }
    out = std::move(next);
  }
  return out;
}

std::optional<Judgement> follow_gradient(FreeProblem& problem) {
  constexpr double small = 1e-8;  // expected distance
  if (auto out = follow_newton(problem)) return out;
  const std::size_t n = problem.size();
  const auto& scale = problem.scale();
  auto unit = problem.best();
  std::vector<double> gradient(n);
  const auto first = value_and_gradient(problem, unit, gradient);
  if (!first) return std::nullopt;
  double value = *first;
  EigenMatrix inverse = EigenMatrix::Identity(index(n), index(n));
  std::vector<bool> held(n, false);
  for (int round = 0; round < 40; ++round) {
    std::vector<bool> now(n);
    Eigen::VectorXd slope(index(n));
    for (std::size_t i = 0; i < n; ++i) {
      now[i] = rises_outwards(unit[i], gradient[i]);
      slope(index(i)) = now[i] ? 0.0 : gradient[i] * scale[i];
    }
    if (now != held) inverse.setIdentity();
    held = now;
    Eigen::VectorXd step = -inverse * slope;
    for (std::size_t i = 0; i < n; ++i)
      if (held[i]) step(index(i)) = 0.0;
    const double distance = -0.5 * slope.dot(step);
    if (distance >= 0.0 && distance <= small) {
      problem.set_best(unit, value);
      // A start with no slope may be a saddle between two hills.
      if (round == 0 && step_aside(problem)) return std::nullopt;
      Judgement out;
      out.arrived = true;
      out.at_bound = held;
      out.distance = distance;
      return out;
    }
    if (!(distance > 0.0)) return std::nullopt;

    bool moved = false;
    for (double length = 1.0; length > 1e-4 && !moved; length *= 0.3) {
      auto next = unit;
      Eigen::VectorXd taken(index(n));
      for (std::size_t i = 0; i < n; ++i) {
        next[i] = std::clamp(unit[i] + length * step(index(i)) * scale[i], 0.0, 1.0);
        taken(index(i)) = (next[i] - unit[i]) / scale[i];
      }
      std::vector<double> next_gradient(n);
      const double next_value = problem(next, next_gradient);
      double next_square = 0.0;
      for (std::size_t i = 0; i < n; ++i)
        if (!rises_outwards(next[i], next_gradient[i]))
          next_square += std::pow(next_gradient[i] * scale[i], 2);
      // A step that makes the slope smaller may be hidden by rounding.
      const bool lower = next_value <= value + 1e-4 * slope.dot(taken);
      const bool flatter =
          next_value <= value + problem.rounding() && next_square < 0.5 * slope.squaredNorm();
      if (!lower && !flatter) continue;
      Eigen::VectorXd change(index(n));
      for (std::size_t i = 0; i < n; ++i)
        change(index(i)) = held[i] ? 0.0 : (next_gradient[i] - gradient[i]) * scale[i];
      const double curvature = change.dot(taken);
      if (curvature > 1e-12 * change.norm() * taken.norm()) {
        if (round == 0) inverse *= curvature / change.squaredNorm();
        const EigenMatrix left =
            EigenMatrix::Identity(index(n), index(n)) - taken * change.transpose() / curvature;
        inverse = left * inverse * left.transpose() + taken * taken.transpose() / curvature;
      }
      unit = std::move(next);
      gradient = std::move(next_gradient);
      value = next_value;
      moved = true;
    }
    if (!moved) return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Judgement> follow_edge(FreeProblem& problem, const FitOptions& options,
                                     bool gradients) {
  const auto found = find_edge(problem);
  if (!found) return std::nullopt;
  const Edge edge = *found;
  const std::size_t k = edge.parameter, n = problem.size();
  std::vector<double> others;
  double near = problem.best()[k];
  for (std::size_t i = 0; i < n; ++i)
    if (i != k) others.push_back(problem.best()[i]);
  const auto whole = [&](const std::vector<double>& v, double at) {
    auto unit = v;
    unit.insert(unit.begin() + static_cast<std::ptrdiff_t>(k), at);
    return unit;
  };
  const Objective on_edge = [&](const std::vector<double>& v) {
    const auto allowed = [&](double at) { return problem(whole(v, at)) < forbidden_value; };
    double step = 1e-4, inner = near, outer = near;
    const double ahead = edge.direction > 0.0 ? 1.0 : 0.0, behind = 1.0 - ahead;
    if (allowed(near)) {
      for (; outer != ahead; step *= 4.0) {
        inner = outer;
        outer = std::clamp(outer + edge.direction * step, 0.0, 1.0);
        if (!allowed(outer)) break;
      }
      if (allowed(outer)) return problem(whole(v, outer));
    } else {
      for (; inner != behind; step *= 4.0) {
        outer = inner;
        inner = std::clamp(inner - edge.direction * step, 0.0, 1.0);
        if (allowed(inner)) break;
      }
      if (!allowed(inner)) return -Likelihood::forbidden;
    }
    while (std::abs(outer - inner) > 1e-13) {
      const double middle = 0.5 * (inner + outer);
      if (middle == inner || middle == outer) break;
      (allowed(middle) ? inner : outer) = middle;
    }
    near = inner;
    return problem(whole(v, inner));
  };

  Judgement out;
  out.at_bound.assign(n, false);
  if (others.empty()) {
    on_edge(others);
    out.arrived = true;
  } else {
    auto best = others;
    double best_value = on_edge(others);
    const Function noting = [&](const std::vector<double>& v, std::vector<double>&) {
      const double value = on_edge(v);
      if (value < best_value) {
        best_value = value;
        best = v;
      }
      return value;
    };
    for (const double first_step : {0.05, 0.005})
      minimise(noting, best,
               {others.size() > 1 ? nlopt::LN_BOBYQA : nlopt::LN_SBPLX, 300, {}, first_step, 1e-8});
    const auto shape = shape_of_values(on_edge, best);
    out.roughness = shape.roughness;
    out.fluctuation = shape.fluctuation;
    for (std::size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const std::size_t j = i < k ? i : i - 1;
      out.at_bound[i] = rises_outwards(best[j], shape.gradient(index(j)));
      if (!out.at_bound[i]) out.inside.push_back(i);
    }
    out.arrived = out.inside.empty();
    if (!out.inside.empty()) {
      Eigen::VectorXd slope = Eigen::VectorXd::Zero(index(n));
      EigenMatrix curvature = EigenMatrix::Zero(index(n), index(n));
      for (std::size_t i = 0; i < n; ++i) {
        if (i == k) continue;
        const auto a = index(i < k ? i : i - 1);
        slope(index(i)) = shape.gradient(a);
        for (std::size_t j = 0; j < n; ++j)
          if (j != k) curvature(index(i), index(j)) = shape.hessian(a, index(j < k ? j : j - 1));
      }
      judge_inside(problem, slope, curvature, options.tolerance, out);
      add_covariance(curvature, options.tolerance, out);
    }
  }
  // Where the derivatives are known at the edge itself, they tell how ℓ would go on.
  std::vector<double> gradient(n);
  if (out.arrived && gradients && options.covariance) {
    const auto unit = problem.best();
    const double value = problem.best_value();
    if (problem.derivatives(unit) != nullptr || value_and_gradient(problem, unit, gradient)) {
      Judgement all = out;
      all.peaked = true;
      all.inside.clear();
      add_covariance(hessian(problem, unit), options.tolerance, all);
      if (all.bent.size() >= out.bent.size()) {
        out.bent = all.bent;
        out.covariance = all.covariance;
      }
    }
    problem.set_best(unit, value);
  }
  out.at_bound[k] = true;
  auto beyond = problem.best();
  beyond[k] = std::clamp(beyond[k] + edge.direction * 1e-9, 0.0, 1.0);
  const bool of_design = problem.beyond_design(beyond);
  // The edge of where θ happen to lie is no smooth line: how ℓ goes on along it says little.
  out.arrived = out.arrived || of_design;
  if (out.arrived)
    out.message = fmt::format("{} ends at the edge of where the {}", problem.name(k),
                              of_design ? "design has events" : "likelihood is allowed");
  return out;
}

}  // namespace neyman
