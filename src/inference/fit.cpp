#include "neyman/inference/fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "free_problem.hpp"
#include "judgement.hpp"
#include "newton.hpp"
#include "neyman/core/check.hpp"
#include "profile_curve.hpp"

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

bool Fit::statistical_error_known(std::size_t p) const {
  return statistical_error(p) > 0.0 || p >= at_bound.size() || !at_bound[p];
}

bool Fit::simulation_error_known(std::size_t p) const {
  return simulation_known && statistical_error_known(p);
}

double Fit::error(std::size_t p) const {
  return std::hypot(statistical_error(p), simulation_error(p));
}

namespace {

constexpr std::size_t least_followed_starts = 3;
// By default, where a value is cheap and where it is not.
constexpr std::size_t most_followed_starts = 16, most_followed_dear = 6;

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

/// Points of the unit box to begin at: the first at any rate, the others as long as one of the last
/// few has led to a new maximum.
struct Starts {
  std::vector<std::vector<double>> points;
  std::size_t at_any_rate = 0;
};

/// Where to begin: the points over the box that are higher than all near them, then those that lie
/// a little apart, each kind from the highest on.
Starts choose_starts(FreeProblem& problem, const FitOptions& options) {
  struct Candidate {
    std::vector<double> unit;
    double value;
  };
  std::vector<Candidate> candidates;
  const auto add = [&](std::vector<double> unit) {
    unit = problem.near_design(std::move(unit));
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
  std::size_t most = std::max(least_followed_starts, options.starts / 4);
  if (options.starts > 0) {
    for (std::size_t i = 0; i < options.starts; ++i) add(spread_point(i, n));
  } else if (!usable) {
    const bool cheap = problem.events() <= cheap_events;
    const std::size_t count = n == 1 ? (cheap ? 20 : 10) : (cheap ? 10 + 20 * n : 1 + 10 * n);
    for (std::size_t i = 0; i < count; ++i) {
      if (n == 1)
        add({(static_cast<double>(i) + 0.5) / static_cast<double>(count)});
      else
        add(spread_point(i, n));
    }
    most = cheap ? most_followed_starts : most_followed_dear;
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.value < b.value; });
  const auto distance = [&](const std::vector<double>& a, const std::vector<double>& b) {
    double square = 0.0;
    for (std::size_t i = 0; i < n; ++i) square += std::pow(problem.apart(i, a[i], b[i]), 2);
    return std::sqrt(square);
  };
  const double spacing =
      std::pow(static_cast<double>(candidates.size()), -1.0 / static_cast<double>(n));
  Starts out;
  const auto choose = [&](double apart, bool from_all) {
    for (std::size_t c = 0; c < candidates.size() && out.points.size() < most; ++c) {
      const auto& unit = candidates[c].unit;
      if (!out.points.empty() && candidates[c].value >= forbidden_value) return;
      const auto near = [&](const std::vector<double>& other) {
        return distance(unit, other) < apart;
      };
      const bool taken =
          from_all
              ? std::any_of(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(c),
                            [&](const Candidate& other) { return near(other.unit); })
              : std::any_of(out.points.begin(), out.points.end(), near);
      if (!taken) out.points.push_back(unit);
    }
  };
  choose(1.2 * spacing, true);
  out.at_any_rate = options.starts > 0 ? most : std::max(out.points.size(), least_followed_starts);
  choose(0.7 * spacing, false);
  return out;
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

/// The place where a search has ended.
struct Ended {
  std::vector<double> place;
  double value;
};

bool same_place(const FreeProblem& problem, const Ended& a, const Ended& b) {
  for (std::size_t i = 0; i < a.place.size(); ++i)
    if (std::abs(problem.apart(i, a.place[i], b.place[i])) > 1e-3) return false;
  return true;
}

/// From the problem's best point to a maximum; over where the box is cut, if it leads there.
void climb(FreeProblem& problem, bool gradients) {
  constexpr int most_turns = 4;
  for (int turn = 0;; ++turn) {
    if (!gradients)
      minimise_values(problem, 0.1, 1e-9);
    else if (!follow_newton(problem))
      minimise(problem, {nlopt::LD_SLSQP, 200, problem.scale(), 0.0, 1e-9, 1e-10});
    if (!problem.at_cut() || turn == most_turns) return;
    problem.turn(problem.to_place(problem.best()));
  }
}

/// Follows starts to their maxima, leaves the highest as the problem's best and returns all.
std::vector<Ended> follow_starts(FreeProblem& problem, const Starts& starts, bool gradients) {
  constexpr std::size_t patience = 4;  // starts that lead to nothing new
  std::vector<Ended> ends;
  std::vector<double> best;
  double best_value = std::numeric_limits<double>::infinity();
  std::size_t in_vain = 0;
  for (std::size_t s = 0; s < starts.points.size(); ++s) {
    if (s >= starts.at_any_rate && in_vain >= patience) break;
    problem.restart();
    problem(problem.turn(starts.points[s]));
    climb(problem, gradients);
    const Ended end{problem.to_place(problem.best()), problem.best_value()};
    // The same maximum once more differs by rounding; the first stays.
    if (best.empty() || end.value < best_value - 1e-8 * (1.0 + std::abs(best_value))) {
      best = end.place;
      best_value = end.value;
    }
    const bool known = std::any_of(ends.begin(), ends.end(), [&](const Ended& other) {
      return same_place(problem, end, other);
    });
    in_vain = known ? in_vain + 1 : 0;
    if (!known) ends.push_back(end);
  }
  problem.set_best(problem.turn(best), best_value);
  return ends;
}

/// The maxima among the ends of searches that count beside the best point: each followed to its
/// top, each hill once, the highest first.
std::vector<Maximum> maxima_among(const std::vector<Ended>& ends, FreeProblem& problem,
                                  const Likelihood& likelihood, bool gradients) {
  const Ended best{problem.to_place(problem.best()), problem.best_value()};
  std::vector<Maximum> out = {{problem.to_point(problem.best()), -best.value}};
  auto sorted = ends;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Ended& a, const Ended& b) { return a.value < b.value; });
  for (const auto& end : sorted) {
    if (2.0 * (end.value - best.value) > Fit::far || same_place(problem, end, best)) continue;
    problem.set_best(problem.turn(end.place), end.value);
    if (gradients && !follow_gradient(problem)) continue;  // no maximum
    const Maximum top{problem.to_point(problem.best()), -problem.best_value()};
    const bool known = std::any_of(out.begin(), out.end(), [&](const Maximum& other) {
      return on_one_hill(likelihood, top, other);
    });
    if (!known) out.push_back(top);
  }
  problem.set_best(problem.turn(best.place), best.value);
  std::stable_sort(out.begin() + 1, out.end(), [](const Maximum& a, const Maximum& b) {
    return a.log_likelihood > b.log_likelihood;
  });
  return out;
}

Judgement search(FreeProblem& problem, const FitOptions& options, bool gradients,
                 std::vector<Ended>& ends) {
  auto starts = choose_starts(problem, options);
  if (!options.covariance && starts.points.size() == 1) {
    problem.turn(starts.points[0]);
    if (auto quick = search_quickly(problem, gradients)) return std::move(*quick);
    if (-problem.best_value() < options.least) {
      minimise(problem, {nlopt::LD_SLSQP, 100, problem.scale(), 0.0, 1e-9, 1e-10});
      if (-problem.best_value() < options.least) {
        Judgement out;
        out.message = "the search was given up far from the maximum";
        return out;
      }
    }
    starts.points = {problem.to_place(problem.best())};
  }
  ends = follow_starts(problem, starts, gradients);
  auto out = judge_and_step(problem, options, gradients);
  if (problem.best_value() >= forbidden_value) return out;
  if (out.arrived && gradients) return out;
  if (gradients) {
    minimise_values(problem, 0.1, 1e-10);
    minimise(problem, {nlopt::LD_SLSQP, 200, problem.scale(), 0.0, 1e-9, 1e-10});
    out = judge_and_step(problem, options, true);
    if (out.arrived) return out;
  }
  if (auto edge = follow_edge(problem, options, gradients)) return std::move(*edge);
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
    std::vector<Ended> ends;
    judgement = search(problem, options, gradients, ends);
    // Nearer than what rounding hides of ℓ no search can come, and 0.001 of it are 0.04 standard
    // errors: a likelihood in single precision, of many events, is as good as it gets.
    if (!judgement.arrived && judgement.peaked && gradients &&
        judgement.distance <= problem.rounding()) {
      judgement.arrived = true;
      judgement.message.clear();
    }
    if (ends.size() > 1) result.maxima = maxima_among(ends, problem, likelihood, gradients);
  }
  result.point = problem.to_point(problem.best());
  result.log_likelihood = -problem.best_value();
  result.evaluations = problem.evaluations();
  result.distance = judgement.distance;
  result.roughness = judgement.fluctuation;
  result.message = judgement.message;
  bool bound = false;
  for (std::size_t i = 0; i < judgement.at_bound.size(); ++i) {
    result.at_bound[problem.free()[i]] = judgement.at_bound[i];
    bound = bound || judgement.at_bound[i];
  }
  if (options.covariance)
    for (std::size_t i = 0; i < judgement.bent.size(); ++i)
      for (std::size_t j = 0; j < judgement.bent.size(); ++j) {
        const std::size_t a = judgement.bent[i], b = judgement.bent[j];
        result.covariance(problem.free()[a], problem.free()[b]) =
            judgement.covariance(index(i), index(j)) * problem.range(a) * problem.range(b);
      }
  if (result.maxima.empty()) result.maxima = {{result.point, result.log_likelihood}};
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
  best.simulation_known = true;
  best.gradient_covariance = gradients;
}

Fit refit(const Likelihood& likelihood, const Fit& best, const Maximum& higher) {
  FitOptions options;
  options.start = higher.point;
  auto out = fit(likelihood, options);
  out.evaluations += best.evaluations;
  std::vector<Maximum> others = best.maxima;
  others.push_back({best.point, best.log_likelihood});
  for (const auto& other : others) {
    if (2.0 * (out.log_likelihood - other.log_likelihood) > Fit::far) continue;
    const bool known = std::any_of(out.maxima.begin(), out.maxima.end(), [&](const Maximum& one) {
      return on_one_hill(likelihood, other, one);
    });
    if (!known) out.maxima.push_back(other);
  }
  std::stable_sort(
      out.maxima.begin() + 1, out.maxima.end(),
      [](const Maximum& a, const Maximum& b) { return a.log_likelihood > b.log_likelihood; });
  return out;
}

void add_simulation_covariance(Fit& best, const ParameterSpace& parameters,
                               const MixtureRatio& ratio, MatrixView x,
                               std::span<const double> event_weights) {
  if (ratio.replicas() < 2) {
    // Nothing is simulated of what is exact; of all others, it is not known.
    best.simulation_known = dynamic_cast<const ExactMixtureRatio*>(&ratio) != nullptr;
    return;
  }
  add_simulation_covariance(
      best, simulation_gradient_covariance(parameters, ratio, x, event_weights, best.point));
}

double test_statistic(const Likelihood& likelihood, const Fit& best,
                      std::span<const double> point) {
  return std::max(0.0, 2.0 * (best.log_likelihood - likelihood(point)));
}

}  // namespace neyman
