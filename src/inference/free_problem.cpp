#include "free_problem.hpp"

#include <exception>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"

namespace neyman {

FreeProblem::FreeProblem(const Likelihood& likelihood, const FitOptions& options)
    : likelihood_(likelihood) {
  const auto& space = likelihood.parameters();
  if (!options.fixed.empty())
    check_same_size("fit", "fixed", options.fixed.size(), space.size(), "one a parameter");
  if (!options.ranges.empty())
    check_same_size("fit", "ranges", options.ranges.size(), space.size(), "one a parameter");
  if (!options.scale.empty())
    check_same_size("fit", "scale", options.scale.size(), space.size(), "one a parameter");
  point_.resize(space.size());
  for (std::size_t p = 0; p < space.size(); ++p) {
    FitRange range{space[p].low, space[p].high};
    const bool whole = options.ranges.empty() || !options.ranges[p];
    if (!options.ranges.empty() && options.ranges[p]) {
      range = *options.ranges[p];
      check_in_range("fit", "ranges[" + space[p].name + "].low", range.low, space[p].low,
                     space[p].high);
      check_in_range("fit", "ranges[" + space[p].name + "].high", range.high, range.low,
                     space[p].high);
    }
    if (!options.fixed.empty() && options.fixed[p]) {
      check_finite("fit", "fixed[" + space[p].name + "]", *options.fixed[p]);
      point_[p] = *options.fixed[p];
    } else if (range.low == range.high) {
      point_[p] = range.low;
    } else {
      free_.push_back(p);
      ranges_.push_back(range);
      round_.push_back(space[p].periodic && whole);
      turns_.push_back(0.0);
      scale_.push_back(options.scale.empty() || !(options.scale[p] > 0.0)
                           ? 1.0
                           : std::min(1.0, options.scale[p] / (range.high - range.low)));
    }
  }
}

std::vector<double> FreeProblem::turn(std::vector<double> place) {
  const auto best = to_place(best_.empty() ? std::vector<double>(size(), 0.5) : best_);
  for (std::size_t i = 0; i < size(); ++i) {
    if (!round_[i]) continue;
    turns_[i] = place[i] - 0.5;
    place[i] = 0.5;
    if (!best_.empty()) best_[i] = turned(best[i], -turns_[i]);
    derivatives_.unit.clear();
  }
  return place;
}

bool FreeProblem::at_cut() const {
  constexpr double hair = 1e-6;
  for (std::size_t i = 0; i < size(); ++i)
    if (round_[i] && (best_[i] < hair || best_[i] > 1.0 - hair)) return true;
  return false;
}

const FreeProblem::Derivatives* FreeProblem::derivatives(const std::vector<double>& unit) {
  if (derivatives_.unit == unit) return &derivatives_;
  full_.assign(point_.size(), 0.0);
  Matrix full;
  const auto value = likelihood_.second_derivatives(to_point(unit), full_, full);
  if (!value) return nullptr;
  ++evaluations_;
  check_stop();
  derivatives_.unit = unit;
  derivatives_.value = note(unit, -*value);
  derivatives_.gradient.resize(index(size()));
  derivatives_.hessian.resize(index(size()), index(size()));
  for (std::size_t i = 0; i < size(); ++i) {
    derivatives_.gradient(index(i)) = -full_[free_[i]] * range(i);
    for (std::size_t j = 0; j < size(); ++j)
      derivatives_.hessian(index(i), index(j)) = -full(free_[i], free_[j]) * range(i) * range(j);
  }
  return &derivatives_;
}

bool minimise(const Function& function, std::vector<double> start, const Search& search) {
  const std::size_t n = start.size();
  const auto scale = search.scale.empty() ? std::vector<double>(n, 1.0) : search.scale;
  struct Call {
    const Function* function;
    const std::vector<double>* scale;
    std::vector<double> unit;
    double worst = -std::numeric_limits<double>::infinity();
    std::exception_ptr error;
  } call{&function, &scale, start, -std::numeric_limits<double>::infinity(), nullptr};

  nlopt::opt optimiser(search.algorithm, static_cast<unsigned>(n));
  std::vector<double> upper(n);
  for (std::size_t i = 0; i < n; ++i) upper[i] = 1.0 / scale[i];
  optimiser.set_lower_bounds(0.0);
  optimiser.set_upper_bounds(upper);
  optimiser.set_min_objective(
      [](const std::vector<double>& x, std::vector<double>& gradient, void* data) {
        auto& c = *static_cast<Call*>(data);
        try {
          for (std::size_t i = 0; i < x.size(); ++i)
            c.unit[i] = std::clamp(x[i] * (*c.scale)[i], 0.0, 1.0);
          const double value = (*c.function)(c.unit, gradient);
          for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] *= (*c.scale)[i];
          // A wall that the searches can calculate with, in place of 1e300.
          if (value >= forbidden_value)
            return std::isfinite(c.worst) ? c.worst + 1e3 * (1.0 + std::abs(c.worst)) : 1e30;
          c.worst = std::max(c.worst, value);
          return value;
        } catch (...) {
          c.error = std::current_exception();
          throw nlopt::forced_stop();
        }
      },
      &call);
  optimiser.set_xtol_abs(search.x_tolerance);
  optimiser.set_ftol_abs(search.value_tolerance);
  optimiser.set_maxeval(search.most_evaluations);
  auto x = std::move(start);
  for (std::size_t i = 0; i < n; ++i) x[i] = std::min(upper[i], x[i] / scale[i]);
  if (search.first_step > 0.0) {
    std::vector<double> steps(n);
    for (std::size_t i = 0; i < n; ++i) steps[i] = std::min(search.first_step, 0.5 * upper[i]);
    optimiser.set_initial_step(steps);
  }
  bool ended = false;
  try {
    double value = 0.0;
    const auto result = optimiser.optimize(x, value);
    ended = result != nlopt::MAXEVAL_REACHED;
  } catch (const std::exception&) {
    // Round-off at the minimum or a failed line search: the best point so far was noted, and
    // the gradient there decides whether the fit converged.
  }
  if (call.error) std::rethrow_exception(call.error);
  return ended;
}

bool minimise(FreeProblem& problem, const Search& search) {
  return minimise(
      [&](const std::vector<double>& x, std::vector<double>& g) { return problem(x, g); },
      problem.best(), search);
}

bool minimise_values(FreeProblem& problem, double first_step, double value_tolerance) {
  const int n = static_cast<int>(problem.size());
  bool ended = false;
  for (int round = 0; round < 4; ++round) {
    const double before = problem.best_value();
    // BOBYQA's quadratic models need two parameters; Sbplx does not mind kinks.
    const bool models = round % 2 == 1 && n > 1;
    ended =
        minimise(problem, {models ? nlopt::LN_BOBYQA : nlopt::LN_SBPLX, 400 * n, problem.scale(),
                           round == 0 ? first_step : 0.3 * first_step, 1e-9, value_tolerance});
    if (round > 0 && before - problem.best_value() <= std::max(1e-9, 10.0 * value_tolerance)) break;
  }
  return ended;
}

bool rises_outwards(double unit, double slope) {
  return (unit < bound_tolerance && slope >= 0.0) || (unit > 1.0 - bound_tolerance && slope <= 0.0);
}

std::vector<double> snap_to_bounds(FreeProblem& problem, double hair) {
  auto unit = problem.best();
  for (double& u : unit) u = u < hair ? 0.0 : (u > 1.0 - hair ? 1.0 : u);
  problem.prefer(unit);
  return problem.best();
}

std::optional<double> value_and_gradient(FreeProblem& problem, const std::vector<double>& unit,
                                         std::vector<double>& gradient) {
  const double value = problem(unit, gradient);
  const bool usable =
      value < forbidden_value &&
      std::all_of(gradient.begin(), gradient.end(), [](double g) { return std::abs(g) < 1e100; });
  return usable ? std::optional(value) : std::nullopt;
}

}  // namespace neyman
