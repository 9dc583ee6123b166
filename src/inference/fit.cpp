#include "neyman/inference/fit.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <limits>
#include <nlopt.hpp>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/random.hpp"
#include "neyman/inference/statistics.hpp"

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

constexpr double bound_tolerance = 1e-9;  // of the range: closer than this is at the bound

/// The likelihood over the free parameters alone, each scaled to [0, 1] of its range.
class FreeProblem {
 public:
  FreeProblem(const Likelihood& likelihood, const std::vector<std::optional<double>>& fixed)
      : likelihood_(likelihood) {
    const auto& space = likelihood.parameters();
    if (!fixed.empty())
      check_same_size("fit", "fixed", fixed.size(), space.size(), "one a parameter");
    point_.resize(space.size());
    for (std::size_t p = 0; p < space.size(); ++p) {
      point_[p] = 0.5 * (space[p].low + space[p].high);
      if (!fixed.empty() && fixed[p])
        point_[p] = *fixed[p];
      else
        free_.push_back(p);
    }
  }

  std::size_t size() const { return free_.size(); }
  const std::vector<std::size_t>& free() const { return free_; }
  int evaluations() const { return evaluations_; }
  double range(std::size_t i) const {
    const auto& parameter = likelihood_.parameters()[free_[i]];
    return parameter.high - parameter.low;
  }

  std::vector<double> to_point(const std::vector<double>& unit) const {
    auto point = point_;
    for (std::size_t i = 0; i < size(); ++i) {
      const auto& parameter = likelihood_.parameters()[free_[i]];
      point[free_[i]] =
          std::clamp(parameter.low + unit[i] * range(i), parameter.low, parameter.high);
    }
    return point;
  }
  std::vector<double> to_unit(std::span<const double> point) const {
    std::vector<double> unit;
    for (std::size_t i = 0; i < size(); ++i)
      unit.push_back(std::clamp(
          (point[free_[i]] - likelihood_.parameters()[free_[i]].low) / range(i), 0.0, 1.0));
    return unit;
  }

  /// −ℓ and its gradient in the unit scale.
  double operator()(const std::vector<double>& unit, std::vector<double>& gradient) {
    ++evaluations_;
    const auto point = to_point(unit);
    if (gradient.empty()) return note(unit, -likelihood_(point));
    full_.assign(point.size(), 0.0);
    const double value = -likelihood_(point, full_);
    for (std::size_t i = 0; i < size(); ++i) gradient[i] = -full_[free_[i]] * range(i);
    return note(unit, value);
  }

  /// Takes a point as the best where its value differs only by rounding.
  void prefer(const std::vector<double>& unit) {
    if (unit == best_) return;
    std::vector<double> none;
    const double value = (*this)(unit, none);
    if (value <= best_value_ + 1e-9 * (1.0 + std::abs(best_value_))) {
      best_ = unit;
      best_value_ = value;
    }
  }

  double best_value() const { return best_value_; }
  const std::vector<double>& best() const { return best_; }

 private:
  double note(const std::vector<double>& unit, double value) {
    if (best_.empty() || value < best_value_) {
      best_value_ = value;
      best_ = unit;
    }
    return value;
  }

  const Likelihood& likelihood_;
  std::vector<std::size_t> free_;
  std::vector<double> point_, full_;
  std::vector<double> best_;
  double best_value_ = std::numeric_limits<double>::infinity();
  int evaluations_ = 0;
};

void minimise(FreeProblem& problem, nlopt::algorithm algorithm, const std::vector<double>& start,
              int most_evaluations) {
  nlopt::opt optimiser(algorithm, static_cast<unsigned>(problem.size()));
  optimiser.set_lower_bounds(0.0);
  optimiser.set_upper_bounds(1.0);
  optimiser.set_min_objective(
      [](const std::vector<double>& x, std::vector<double>& gradient, void* data) {
        return (*static_cast<FreeProblem*>(data))(x, gradient);
      },
      &problem);
  optimiser.set_xtol_abs(1e-9);
  optimiser.set_ftol_abs(1e-10);
  optimiser.set_maxeval(most_evaluations);
  auto x = start;
  double value = 0.0;
  try {
    optimiser.optimize(x, value);
  } catch (const std::exception&) {
    // Round-off at the minimum or a failed line search: the best point so far was noted, and
    // the gradient there decides whether the fit converged.
  }
}

/// Where to begin: a few points over the box, of which the best is taken.
void try_starts(FreeProblem& problem) {
  std::vector<double> none;
  if (problem.size() == 1) {
    for (const double u : {0.02, 0.1, 0.3, 0.5, 0.7, 0.9}) problem({u}, none);
    return;
  }
  RandomStream random(0, "fit starts");
  problem(std::vector<double>(problem.size(), 0.5), none);
  for (std::size_t i = 0; i < 10 * problem.size(); ++i) {
    std::vector<double> unit(problem.size());
    random.fill_uniform(unit);
    problem(unit, none);
  }
}

using EigenMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic>;

/// Second derivatives of −ℓ in the unit scale, from differences of gradients inside the box.
EigenMatrix hessian(FreeProblem& problem, const std::vector<double>& unit) {
  const auto n = static_cast<Eigen::Index>(problem.size());
  EigenMatrix out(n, n);
  std::vector<double> above(problem.size()), below(problem.size());
  // Two passes: the second with a step of a tenth of the error that the first one gave, small
  // against the curvature's change and large against rounding.
  std::vector<double> step(problem.size(), 1e-4);
  for (int pass = 0; pass < 2; ++pass) {
    for (Eigen::Index i = 0; i < n; ++i) {
      const auto k = static_cast<std::size_t>(i);
      auto moved = unit;
      const double high = std::min(1.0, unit[k] + step[k]);
      const double low = std::max(0.0, unit[k] - step[k]);
      moved[k] = high;
      problem(moved, above);
      moved[k] = low;
      problem(moved, below);
      for (Eigen::Index j = 0; j < n; ++j)
        out(i, j) = (above[static_cast<std::size_t>(j)] - below[static_cast<std::size_t>(j)]) /
                    (high - low);
    }
    for (Eigen::Index i = 0; i < n; ++i)
      if (out(i, i) > 0.0)
        step[static_cast<std::size_t>(i)] = std::clamp(0.1 / std::sqrt(out(i, i)), 1e-8, 1e-2);
  }
  return 0.5 * (out + out.transpose());
}

}  // namespace

Fit fit(const Likelihood& likelihood, const FitOptions& options) {
  const std::size_t dimension = likelihood.parameters().size();
  FreeProblem problem(likelihood, options.fixed);
  Fit result;
  result.covariance = Matrix(dimension, dimension);
  result.simulation_covariance = Matrix(dimension, dimension);
  if (problem.size() == 0) {
    std::vector<double> none;
    result.log_likelihood = -problem({}, none);
    result.point = problem.to_point({});
    result.status = FitStatus::converged;
    result.evaluations = 1;
    return result;
  }

  if (options.start.empty()) {
    try_starts(problem);
  } else {
    check_same_size("fit", "start", options.start.size(), dimension, "one a parameter");
    std::vector<double> none;
    problem(problem.to_unit(options.start), none);
  }

  // The part of the gradient that could still improve ℓ inside the box.
  std::vector<bool> at_bound(problem.size());
  std::vector<double> gradient(problem.size());
  const auto assess = [&] {
    auto unit = problem.best();
    // A hair from a bound is the bound, where that is not worse.
    for (double& u : unit) u = u < bound_tolerance ? 0.0 : (u > 1.0 - bound_tolerance ? 1.0 : u);
    problem(unit, gradient);
    problem.prefer(unit);
    std::vector<std::size_t> inside;
    for (std::size_t i = 0; i < problem.size(); ++i) {
      at_bound[i] = (unit[i] < bound_tolerance && gradient[i] >= 0.0) ||
                    (unit[i] > 1.0 - bound_tolerance && gradient[i] <= 0.0);
      if (!at_bound[i]) inside.push_back(i);
    }
    result.distance = 0.0;
    std::fill(result.covariance.values().begin(), result.covariance.values().end(), 0.0);
    if (inside.empty()) return true;
    const auto full = hessian(problem, unit);
    EigenMatrix free(inside.size(), inside.size());
    Eigen::VectorXd slope(inside.size());
    for (std::size_t i = 0; i < inside.size(); ++i) {
      slope(static_cast<Eigen::Index>(i)) = gradient[inside[i]];
      for (std::size_t j = 0; j < inside.size(); ++j)
        free(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) =
            full(static_cast<Eigen::Index>(inside[i]), static_cast<Eigen::Index>(inside[j]));
    }
    const Eigen::LDLT<EigenMatrix> factor(free);
    if (factor.info() != Eigen::Success || !factor.isPositive() ||
        factor.vectorD().minCoeff() <= 0.0)
      return false;  // not a maximum
    const EigenMatrix inverse = factor.solve(EigenMatrix::Identity(free.rows(), free.cols()));
    result.distance = 0.5 * slope.dot(inverse * slope);
    for (std::size_t i = 0; i < inside.size(); ++i)
      for (std::size_t j = 0; j < inside.size(); ++j)
        result.covariance(problem.free()[inside[i]], problem.free()[inside[j]]) =
            inverse(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) *
            problem.range(inside[i]) * problem.range(inside[j]);
    return std::isfinite(result.distance) && result.distance <= options.tolerance;
  };

  minimise(problem, nlopt::LD_SLSQP, problem.best(), 200);
  bool arrived = assess();
  if (!arrived) {
    minimise(problem, nlopt::LN_SBPLX, problem.best(), 500 * static_cast<int>(problem.size()));
    minimise(problem, nlopt::LD_SLSQP, problem.best(), 200);
    arrived = assess();
  }
  result.point = problem.to_point(problem.best());
  result.log_likelihood = -problem.best_value();
  result.evaluations = problem.evaluations();
  const bool bound = std::find(at_bound.begin(), at_bound.end(), true) != at_bound.end();
  result.status = !arrived || result.log_likelihood <= Likelihood::forbidden
                      ? FitStatus::failed
                      : (bound ? FitStatus::at_bound : FitStatus::converged);
  return result;
}

void add_simulation_covariance(Fit& best, const ParameterSpace& parameters,
                               const MixtureRatio& ratio, MatrixView x,
                               std::span<const double> event_weights) {
  const auto gradients =
      simulation_gradient_covariance(parameters, ratio, x, event_weights, best.point);
  // A change of the gradient by g moves the estimate by C g, to first order.
  const std::size_t n = parameters.size();
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0.0;
      for (std::size_t a = 0; a < n; ++a)
        for (std::size_t b = 0; b < n; ++b)
          sum += best.covariance(i, a) * gradients(a, b) * best.covariance(b, j);
      best.simulation_covariance(i, j) = sum;
    }
}

double test_statistic(const Likelihood& likelihood, const Fit& best,
                      std::span<const double> point) {
  return std::max(0.0, 2.0 * (best.log_likelihood - likelihood(point)));
}

namespace {

/// −2 log Λ with one parameter fixed and the others profiled.
double profile_statistic(const Likelihood& likelihood, const Fit& best, std::size_t parameter,
                         double value) {
  if (likelihood.parameters().size() == 1) {
    const double point[] = {value};
    return test_statistic(likelihood, best, point);
  }
  FitOptions options;
  options.start = best.point;
  options.start[parameter] = value;
  options.fixed.assign(best.point.size(), std::nullopt);
  options.fixed[parameter] = value;
  return std::max(0.0, 2.0 * (best.log_likelihood - fit(likelihood, options).log_likelihood));
}

}  // namespace

Interval likelihood_interval(const Likelihood& likelihood, const Fit& best, std::size_t parameter,
                             double level, bool include_simulation) {
  check_in_range("likelihood_interval", "level", level, 1e-6, 1.0 - 1e-12);
  const auto& range = likelihood.parameters()[parameter];
  double threshold = chi2_quantile(level);
  const double statistical = best.statistical_error(parameter);
  if (include_simulation && statistical > 0.0) {
    const double share = best.simulation_error(parameter) / statistical;
    threshold *= 1.0 + share * share;
  }
  const double centre = best.point[parameter];
  const auto excess = [&](double value) {
    return profile_statistic(likelihood, best, parameter, value) - threshold;
  };
  /// The crossing between the estimate and `end`; the end itself where there is none.
  const auto side = [&](double end, bool& at_bound) {
    at_bound = false;
    const double direction = end < centre ? -1.0 : 1.0;
    if (end == centre) {
      at_bound = true;
      return end;
    }
    // Step outwards from where a parabola would cross, so that the bracket is short.
    double inner = centre;
    double step =
        statistical > 0.0 ? statistical * std::sqrt(threshold) : 0.1 * std::abs(end - centre);
    for (;;) {
      double outer = inner + direction * step;
      if ((outer - end) * direction >= 0.0) outer = end;
      const double value = excess(outer);
      if (value >= 0.0) {
        std::uintmax_t most = 100;
        const auto [a, b] = boost::math::tools::toms748_solve(
            excess, std::min(inner, outer), std::max(inner, outer),
            boost::math::tools::eps_tolerance<double>(34), most);
        return 0.5 * (a + b);
      }
      if (outer == end) {
        at_bound = true;
        return end;
      }
      inner = outer;
      step *= 1.5;
    }
  };
  Interval interval;
  interval.level = level;
  interval.low = side(range.low, interval.low_at_bound);
  interval.high = side(range.high, interval.high_at_bound);
  return interval;
}

Scan scan(const Likelihood& likelihood, const Fit& best, std::size_t parameter, double low,
          double high, std::size_t points) {
  check_at_least("scan", "points", points, 2);
  Scan out;
  out.parameter = parameter;
  for (std::size_t i = 0; i < points; ++i) {
    out.values.push_back(low +
                         (high - low) * static_cast<double>(i) / static_cast<double>(points - 1));
    out.statistic.push_back(profile_statistic(likelihood, best, parameter, out.values.back()));
  }
  return out;
}

}  // namespace neyman
