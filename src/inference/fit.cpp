#include "neyman/inference/fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "free_problem.hpp"
#include "judgement.hpp"
#include "newton.hpp"
#include "neyman/core/check.hpp"

namespace neyman {

std::string to_string(FitStatus status) {
  switch (status) {
    case FitStatus::converged:
      return "converged";
    case FitStatus::at_bound:
      return "at bound";
    case FitStatus::failed:
      return "failed";
  }
  return "failed";
}

double Fit::statistical_error(std::size_t p) const {
  return covariance.empty() ? 0.0 : std::sqrt(std::max(0.0, covariance(p, p)));
}

double Fit::simulation_error(std::size_t p) const {
  return simulation_covariance.empty() ? 0.0
                                       : std::sqrt(std::max(0.0, simulation_covariance(p, p)));
}

double Fit::error(std::size_t p) const {
  return std::hypot(statistical_error(p), simulation_error(p));
}

namespace {

constexpr std::size_t most_followed_starts = 3;  // by default

/// The i-th point of the additive recurrence with the generalised golden ratio (Roberts 2018): a
/// low-discrepancy sequence that begins in the middle.
std::vector<double> spread_point(std::size_t i, std::size_t dimension) {
  double phi = 2.0;  // the positive root of φ^(d+1) = φ + 1
  for (int k = 0; k < 40; ++k) phi = std::pow(1.0 + phi, 1.0 / static_cast<double>(dimension + 1));
  std::vector<double> out(dimension);
  for (std::size_t d = 0; d < dimension; ++d) {
    const double value =
        0.5 + static_cast<double>(i) * std::pow(1.0 / phi, static_cast<double>(d + 1));
    out[d] = value - std::floor(value);
  }
  return out;
}

/// Where to begin: the best of the points over the box that lie apart, best first.
std::vector<std::vector<double>> choose_starts(FreeProblem& problem, const FitOptions& options) {
  struct Candidate {
    std::vector<double> unit;
    double value;
  };
  std::vector<Candidate> candidates;
  const auto add = [&](std::vector<double> unit) {
    const double value = problem(unit);
    candidates.push_back({std::move(unit), value});
  };
  if (!options.start.empty()) {
    check_same_size("fit", "start", options.start.size(), problem.dimension(), "one a parameter");
    check_finite("fit", "start", options.start);
    add(problem.to_unit(options.start));
  }
  const std::size_t n = problem.size();
  const bool usable = !candidates.empty() && candidates[0].value < forbidden_value;
  if (options.starts > 0) {
    for (std::size_t i = 0; i < options.starts; ++i) add(spread_point(i, n));
  } else if (!usable) {
    if (n == 1)
      for (const double u : {0.02, 0.1, 0.3, 0.5, 0.7, 0.9}) add({u});
    else
      for (std::size_t i = 0; i < 1 + 10 * n; ++i) add(spread_point(i, n));
  }
  const std::size_t most = std::max(most_followed_starts, options.starts / 4);
  const double apart =
      0.7 * std::pow(static_cast<double>(candidates.size()), -1.0 / static_cast<double>(n));
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.value < b.value; });
  std::vector<std::vector<double>> chosen;
  for (const auto& candidate : candidates) {
    if (chosen.size() == most) break;
    if (!chosen.empty() && candidate.value >= forbidden_value) break;
    const bool near = std::any_of(chosen.begin(), chosen.end(), [&](const auto& other) {
      double square = 0.0;
      for (std::size_t i = 0; i < n; ++i)
        square += (candidate.unit[i] - other[i]) * (candidate.unit[i] - other[i]);
      return square < apart * apart;
    });
    if (!near) chosen.push_back(candidate.unit);
  }
  return chosen;
}

/// The fit of a profile, without second derivatives. Nothing where it does not arrive.
std::optional<Judgement> search_quickly(FreeProblem& problem, bool gradients) {
  if (!gradients) {
    Judgement out;
    out.arrived = minimise_values(problem, 0.5, 1e-6);
    const auto unit = snap_to_bounds(problem, 1e-6);
    for (const double u : unit) out.at_bound.push_back(u == 0.0 || u == 1.0);
    if (!out.arrived) out.message = "the search ran out of evaluations";
    return out;
  }
  return follow_gradient(problem);
}

/// Follows each start to its maximum and leaves the highest as the problem's best.
void follow_starts(FreeProblem& problem, const std::vector<std::vector<double>>& starts,
                   bool gradients) {
  std::vector<double> best;
  double best_value = std::numeric_limits<double>::infinity();
  for (const auto& start : starts) {
    problem.restart();
    problem(start);
    if (!gradients)
      minimise_values(problem, 0.1, 1e-9);
    else if (!follow_newton(problem))
      minimise(problem, {nlopt::LD_SLSQP, 200, problem.scale(), 0.0, 1e-9, 1e-10});
    // The same maximum once more differs by rounding; the first stays.
    if (best.empty() || problem.best_value() < best_value - 1e-8 * (1.0 + std::abs(best_value))) {
      best = problem.best();
      best_value = problem.best_value();
    }
  }
  problem.set_best(best, best_value);
}

Judgement search(FreeProblem& problem, const FitOptions& options, bool gradients) {
  auto starts = choose_starts(problem, options);
  if (!options.covariance && starts.size() == 1) {
    if (auto quick = search_quickly(problem, gradients)) return std::move(*quick);
    starts = {problem.best()};
  }
  follow_starts(problem, starts, gradients);
  auto out = judge_and_step(problem, options, gradients);
  if (problem.best_value() >= forbidden_value) return out;
  if (out.arrived && gradients) return out;
  if (gradients) {
    minimise_values(problem, 0.1, 1e-10);
    minimise(problem, {nlopt::LD_SLSQP, 200, problem.scale(), 0.0, 1e-9, 1e-10});
    out = judge_and_step(problem, options, true);
    if (out.arrived) return out;
  }
  if (auto edge = follow_edge(problem, options)) return std::move(*edge);
  return out;
}

}  // namespace

Fit fit(const Likelihood& likelihood, const FitOptions& options) {
  const std::size_t dimension = likelihood.parameters().size();
  FreeProblem problem(likelihood, options);
  Fit result;
  result.covariance = Matrix(dimension, dimension);
  result.simulation_covariance = Matrix(dimension, dimension);
  result.at_bound.assign(dimension, false);
  Judgement judgement;
  if (problem.size() == 0) {
    problem(std::vector<double>{});
    judgement.arrived = true;
  } else {
    const bool gradients = options.method == FitMethod::gradient && likelihood.differentiable();
    judgement = search(problem, options, gradients);
  }
  result.point = problem.to_point(problem.best());
  result.log_likelihood = -problem.best_value();
  result.evaluations = problem.evaluations();
  result.distance = judgement.distance;
  result.roughness = judgement.roughness;
  result.message = judgement.message;
  bool bound = false;
  for (std::size_t i = 0; i < judgement.at_bound.size(); ++i) {
    result.at_bound[problem.free()[i]] = judgement.at_bound[i];
    bound = bound || judgement.at_bound[i];
  }
  if (judgement.peaked && options.covariance)
    for (std::size_t i = 0; i < judgement.inside.size(); ++i)
      for (std::size_t j = 0; j < judgement.inside.size(); ++j) {
        const std::size_t a = judgement.inside[i], b = judgement.inside[j];
        result.covariance(problem.free()[a], problem.free()[b]) =
            judgement.inverse(index(i), index(j)) * problem.range(a) * problem.range(b);
      }
  if (problem.best_value() >= forbidden_value) {
    result.log_likelihood = Likelihood::forbidden;
    result.message = "the likelihood is forbidden at every point that was tried";
    judgement.arrived = false;
  }
  result.status =
      !judgement.arrived ? FitStatus::failed : (bound ? FitStatus::at_bound : FitStatus::converged);
  return result;
}

void add_simulation_covariance(Fit& best, const Matrix& gradients) {
  // A change of the gradient by g moves the estimate by C g, to first order.
  const std::size_t n = best.point.size();
  check_same_size("add_simulation_covariance", "gradient_covariance", gradients.rows(), n,
                  "one row a parameter");
  check_same_size("add_simulation_covariance", "gradient_covariance", gradients.cols(), n,
                  "one column a parameter");
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0.0;
      for (std::size_t a = 0; a < n; ++a)
        for (std::size_t b = 0; b < n; ++b)
          sum += best.covariance(i, a) * gradients(a, b) * best.covariance(b, j);
      best.simulation_covariance(i, j) = sum;
    }
}

void add_simulation_covariance(Fit& best, const ParameterSpace& parameters,
                               const MixtureRatio& ratio, MatrixView x,
                               std::span<const double> event_weights) {
  add_simulation_covariance(
      best, simulation_gradient_covariance(parameters, ratio, x, event_weights, best.point));
}

double test_statistic(const Likelihood& likelihood, const Fit& best,
                      std::span<const double> point) {
  return std::max(0.0, 2.0 * (best.log_likelihood - likelihood(point)));
}

}  // namespace neyman
