#include "neyman/inference/fit.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <limits>
#include <nlopt.hpp>
#include <numeric>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/progress.hpp"

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

constexpr double bound_tolerance = 1e-9;         // of the range: closer than this is at the bound
constexpr double forbidden_value = 0.5e300;      // of −ℓ: at or above is forbidden
constexpr std::size_t most_followed_starts = 3;  // by default

using EigenMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic>;
using Objective = std::function<double(const std::vector<double>&)>;

Eigen::Index index(std::size_t i) { return static_cast<Eigen::Index>(i); }

/// −ℓ over the free parameters alone, each scaled to [0, 1] of its range.
class FreeProblem {
 public:
  FreeProblem(const Likelihood& likelihood, const FitOptions& options) : likelihood_(likelihood) {
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
        scale_.push_back(options.scale.empty() || !(options.scale[p] > 0.0)
                             ? 1.0
                             : std::min(1.0, options.scale[p] / (range.high - range.low)));
      }
    }
  }

  std::size_t size() const { return free_.size(); }
  std::size_t dimension() const { return point_.size(); }
  const std::vector<std::size_t>& free() const { return free_; }
  const std::string& name(std::size_t i) const { return likelihood_.parameters()[free_[i]].name; }
  int evaluations() const { return evaluations_; }
  double range(std::size_t i) const { return ranges_[i].high - ranges_[i].low; }
  const std::vector<double>& scale() const { return scale_; }

  std::vector<double> to_point(const std::vector<double>& unit) const {
    auto point = point_;
    for (std::size_t i = 0; i < size(); ++i)
      point[free_[i]] =
          std::clamp(ranges_[i].low + unit[i] * range(i), ranges_[i].low, ranges_[i].high);
    return point;
  }
  std::vector<double> to_unit(std::span<const double> point) const {
    std::vector<double> unit;
    for (std::size_t i = 0; i < size(); ++i)
      unit.push_back(std::clamp((point[free_[i]] - ranges_[i].low) / range(i), 0.0, 1.0));
    return unit;
  }

  double operator()(const std::vector<double>& unit) {
    ++evaluations_;
    check_stop();
    return note(unit, -likelihood_(to_point(unit)));
  }
  /// With the gradient in the unit scale.
  double operator()(const std::vector<double>& unit, std::vector<double>& gradient) {
    if (gradient.empty()) return (*this)(unit);
    ++evaluations_;
    check_stop();
    full_.assign(point_.size(), 0.0);
    const double value = -likelihood_(to_point(unit), full_);
    for (std::size_t i = 0; i < size(); ++i) gradient[i] = -full_[free_[i]] * range(i);
    return note(unit, value);
  }
  Objective objective() {
    return [this](const std::vector<double>& unit) { return (*this)(unit); };
  }

  /// Takes a point as the best where its value is not worse by more than `slack` and rounding.
  bool prefer(const std::vector<double>& unit, double slack = 0.0) {
    if (unit == best_) return true;
    const double before = best_value_;
    const double value = (*this)(unit);
    if (value > before + slack + 1e-9 * (1.0 + std::abs(before))) return false;
    best_ = unit;
    best_value_ = value;
    return true;
  }
  /// Forgets the best point: the next evaluation is the best.
  void restart() {
    best_.clear();
    best_value_ = std::numeric_limits<double>::infinity();
  }
  void set_best(const std::vector<double>& unit, double value) {
    best_ = unit;
    best_value_ = value;
  }

  double best_value() const { return best_value_; }
  const std::vector<double>& best() const { return best_; }

 private:
  double note(const std::vector<double>& unit, double value) {
    if (!(value < forbidden_value)) value = -Likelihood::forbidden;  // NaN too
    if (best_.empty() || value < best_value_) {
      best_value_ = value;
      best_ = unit;
    }
    return value;
  }

  const Likelihood& likelihood_;
  std::vector<std::size_t> free_;
  std::vector<FitRange> ranges_;
  std::vector<double> scale_;  // of the free parameters, in the unit scale
  std::vector<double> point_, full_;
  std::vector<double> best_;
  double best_value_ = std::numeric_limits<double>::infinity();
  int evaluations_ = 0;
};

struct Search {
  nlopt::algorithm algorithm = nlopt::LD_SLSQP;
  int most_evaluations = 200;
  std::vector<double> scale;  // of the unit parameters; empty: ones
  double first_step = 0.0;    // in units of the scale; 0: NLopt's own choice
  double x_tolerance = 1e-9, value_tolerance = 1e-10;
};

/// A function with the gradient where that is not empty.
using Function = std::function<double(const std::vector<double>&, std::vector<double>&)>;

/// Minimises over the unit box; the function itself remembers its best point. Whether the search
/// ended by its own tolerances.
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

/// Searches without gradients until a restart gains nothing. Whether the last one ended by its
/// tolerances.
bool minimise_values(FreeProblem& problem, double first_step, const std::vector<double>& scale,
                     double value_tolerance) {
  const int n = static_cast<int>(problem.size());
  bool ended = false;
  for (int round = 0; round < 4; ++round) {
    const double before = problem.best_value();
    // BOBYQA's quadratic models need two parameters; Sbplx does not mind kinks.
    const bool models = round % 2 == 1 && n > 1;
    ended = minimise(problem, {models ? nlopt::LN_BOBYQA : nlopt::LN_SBPLX, 400 * n, scale,
                               round == 0 ? first_step : 0.3 * first_step, 1e-9, value_tolerance});
    if (round > 0 && before - problem.best_value() <= std::max(1e-9, 10.0 * value_tolerance)) break;
  }
  return ended;
}

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

/// Second derivatives of −ℓ in the unit scale, from differences of gradients inside the box.
EigenMatrix hessian(FreeProblem& problem, const std::vector<double>& unit) {
  const auto n = index(problem.size());
  EigenMatrix out(n, n);
  std::vector<double> above(problem.size()), below(problem.size());
  // Two passes: the second with a step of a tenth of the error that the first one gave, small
  // against the curvature's change and large against rounding.
  std::vector<double> step(problem.size(), 1e-4);
  for (int pass = 0; pass < 2; ++pass) {
    for (Eigen::Index i = 0; i < n; ++i) {
      const auto k = static_cast<std::size_t>(i);
      auto moved = unit;
      moved[k] = std::min(1.0, unit[k] + step[k]);
      double high = moved[k];
      if (problem(moved, above) >= forbidden_value) {
        high = unit[k];
        problem(unit, above);
      }
      moved[k] = std::max(0.0, unit[k] - step[k]);
      double low = moved[k];
      if (problem(moved, below) >= forbidden_value) {
        low = unit[k];
        problem(unit, below);
      }
      for (std::size_t j = 0; j < problem.size(); ++j)
        out(i, index(j)) = high > low ? (above[j] - below[j]) / (high - low) : 0.0;
    }
    for (std::size_t k = 0; k < problem.size(); ++k) {
      const double curvature = out(index(k), index(k));
      step[k] = curvature > 0.0 ? std::clamp(0.1 / std::sqrt(curvature), 1e-8, 1e-2) : 1e-2;
    }
  }
  return 0.5 * (out + out.transpose());
}

/// What values alone tell of a function near a point of the unit box.
struct Shape {
  Eigen::VectorXd gradient;
  EigenMatrix hessian;
  double roughness = 0.0;
};

/// The distance along axis k at which the function has risen by a half, one standard error; at
/// most the box.
double rise_length(const Objective& function, const std::vector<double>& unit, std::size_t k,
                   double value) {
  double length = 0.05;
  for (int round = 0; round < 12; ++round) {
    double rise = 0.0;
    int sides = 0;
    for (const double direction : {-1.0, 1.0}) {
      auto moved = unit;
      moved[k] = std::clamp(unit[k] + direction * length, 0.0, 1.0);
      if (std::abs(moved[k] - unit[k]) < 0.5 * length) continue;
      const double there = function(moved);
      // A forbidden neighbour: the length is too long.
      rise += there >= forbidden_value ? 1e3 : std::max(0.0, there - value);
      ++sides;
    }
    if (sides == 0) return std::min(1.0, length);
    rise /= sides;
    if (rise > 0.25 && rise < 1.0) return length;
    const double factor = rise > 0.0 ? std::sqrt(0.5 / rise) : 8.0;
    const double next = std::clamp(length * std::clamp(factor, 0.05, 8.0), 1e-9, 1.0);
    if (next == length) return length;
    length = next;
  }
  return length;
}

/// Value, slope and curvature at t = 0 of a polynomial fitted to (t, f), with t of order one, and
/// the RMS of what it leaves.
struct PolynomialFit {
  double slope = 0.0, curvature = 0.0, residual = 0.0;
};
PolynomialFit fit_polynomial(const Eigen::VectorXd& t, const Eigen::VectorXd& f, int degree) {
  EigenMatrix design(t.size(), degree + 1);
  for (Eigen::Index i = 0; i < t.size(); ++i) {
    double power = 1.0;
    for (int d = 0; d <= degree; ++d, power *= t(i)) design(i, d) = power;
  }
  const Eigen::VectorXd c = design.colPivHouseholderQr().solve(f);
  const auto spare = static_cast<double>(std::max<Eigen::Index>(1, t.size() - degree - 1));
  return {c(1), 2.0 * c(2), (f - design * c).norm() / std::sqrt(spare)};
}

/// Slope and curvature along axis k over ± length, shifted to stay in the box. A quartic where
/// the function is smooth, a parabola, which averages more, where it is rough.
PolynomialFit axis_shape(const Objective& function, const std::vector<double>& unit, std::size_t k,
                         double value, double length) {
  constexpr Eigen::Index points = 9;
  const double low = std::max(0.0, unit[k] - length), high = std::min(1.0, unit[k] + length);
  std::vector<double> ts, fs;
  for (Eigen::Index i = 0; i < points; ++i) {
    auto moved = unit;
    moved[k] = low + (high - low) * static_cast<double>(i) / static_cast<double>(points - 1);
    const double there = function(moved);
    if (there >= forbidden_value) continue;
    ts.push_back((moved[k] - unit[k]) / length);
    fs.push_back(there - value);
  }
  if (ts.size() < 7) return {};
  const auto t = Eigen::Map<Eigen::VectorXd>(ts.data(), index(ts.size()));
  const auto f = Eigen::Map<Eigen::VectorXd>(fs.data(), index(fs.size()));
  const auto parabola = fit_polynomial(t, f, 2), quartic = fit_polynomial(t, f, 4);
  auto out = quartic.residual < 0.3 * parabola.residual ? quartic : parabola;
  out.slope /= length;
  out.curvature /= length * length;
  return out;
}

Shape shape_of_values(const Objective& function, const std::vector<double>& unit) {
  constexpr double smooth = 1e-5;  // roughness below which a shorter length is more exact
  const std::size_t n = unit.size();
  const double value = function(unit);
  Shape out{Eigen::VectorXd::Zero(index(n)), EigenMatrix::Zero(index(n), index(n)), 0.0};
  std::vector<double> lengths(n);
  for (std::size_t k = 0; k < n; ++k) {
    lengths[k] = rise_length(function, unit, k, value);
    auto axis = axis_shape(function, unit, k, value, lengths[k]);
    if (axis.residual < smooth) {
      const double rough = axis.residual;
      lengths[k] *= 0.2;
      axis = axis_shape(function, unit, k, value, lengths[k]);
      axis.residual = std::max(axis.residual, rough);
    }
    out.gradient(index(k)) = axis.slope;
    out.hessian(index(k), index(k)) = axis.curvature;
    out.roughness = std::max(out.roughness, axis.residual);
  }
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = 0; b < a; ++b) {
      const auto ends = [&](std::size_t k) {
        return std::pair(std::max(0.0, unit[k] - 0.7 * lengths[k]),
                         std::min(1.0, unit[k] + 0.7 * lengths[k]));
      };
      const auto [a_low, a_high] = ends(a);
      const auto [b_low, b_high] = ends(b);
      double sum = 0.0;
      bool allowed = true;
      for (const bool up_a : {false, true})
        for (const bool up_b : {false, true}) {
          auto moved = unit;
          moved[a] = up_a ? a_high : a_low;
          moved[b] = up_b ? b_high : b_low;
          const double there = function(moved);
          allowed = allowed && there < forbidden_value;
          sum += (up_a == up_b ? 1.0 : -1.0) * there;
        }
      const double mixed = allowed ? sum / ((a_high - a_low) * (b_high - b_low)) : 0.0;
      out.hessian(index(a), index(b)) = out.hessian(index(b), index(a)) = mixed;
    }
  return out;
}

/// What the fit knows at its best point.
struct Judgement {
  bool arrived = false;
  bool peaked = false;  // second derivatives are those of a maximum
  std::vector<bool> at_bound;
  std::vector<std::size_t> inside;
  EigenMatrix inverse;   // of the second derivatives inside, in the unit scale
  Eigen::VectorXd step;  // Newton's, for the parameters inside
  double distance = 0.0, roughness = 0.0;
  std::string message;
};

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

/// Whether ℓ still rises outwards at the end of a range.
bool rises_outwards(double unit, double slope) {
  return (unit < bound_tolerance && slope >= 0.0) || (unit > 1.0 - bound_tolerance && slope <= 0.0);
}

/// Moves the best point to a bound that is a hair away, where that is not worse.
std::vector<double> snap_to_bounds(FreeProblem& problem, double hair, double slack) {
  auto unit = problem.best();
  for (double& u : unit) u = u < hair ? 0.0 : (u > 1.0 - hair ? 1.0 : u);
  problem.prefer(unit, slack);
  return problem.best();
}

Judgement judge(FreeProblem& problem, const FitOptions& options, bool gradients) {
  Judgement out;
  const auto unit = snap_to_bounds(problem, gradients ? bound_tolerance : 1e-6, 0.0);
  const std::size_t n = problem.size();
  Eigen::VectorXd slope(index(n));
  EigenMatrix curvature;
  if (gradients) {
    std::vector<double> gradient(n);
    if (problem(unit, gradient) >= forbidden_value) {
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
  }
  for (std::size_t i = 0; i < n; ++i) {
    out.at_bound.push_back(rises_outwards(unit[i], slope(index(i))));
    if (!out.at_bound[i]) out.inside.push_back(i);
  }
  if (out.inside.empty()) {
    // ℓ that is flat rises nowhere.
    out.arrived = slope.cwiseAbs().maxCoeff() > 0.0;
    if (!out.arrived) out.message = "the likelihood is flat";
    return out;
  }
  if (gradients) curvature = hessian(problem, unit);
  judge_inside(problem, slope, curvature, options.tolerance, out);
  return out;
}

/// Newton steps inside the box, as long as they bring the fit nearer.
Judgement judge_and_step(FreeProblem& problem, const FitOptions& options, bool gradients) {
  auto out = judge(problem, options, gradients);
  for (int round = 0; round < 5 && !out.arrived && out.peaked; ++round) {
    auto unit = problem.best();
    for (std::size_t i = 0; i < out.inside.size(); ++i)
      unit[out.inside[i]] = std::clamp(unit[out.inside[i]] + out.step(index(i)), 0.0, 1.0);
    if (!problem.prefer(unit)) break;
    auto next = judge(problem, options, gradients);
    const bool nearer = next.arrived || next.distance < 0.5 * out.distance;
    out = std::move(next);
    if (!nearer) break;
  }
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
      if (ahead[k] < 0.0 || ahead[k] > 1.0 || behind[k] < 0.0 || behind[k] > 1.0) continue;
      if (problem(ahead) < forbidden_value) continue;
      const double rise = problem(behind) - value;
      if (rise < forbidden_value && rise > steepest) {
        steepest = rise;
        edge = Edge{k, direction};
      }
    }
  return edge;
}

/// Follows the edge of the forbidden region: one parameter is pushed to the edge, by bisection,
/// for each value of the others.
Judgement follow_edge(FreeProblem& problem, const FitOptions& options, const Edge& edge) {
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
    if (allowed(near)) {
      for (; outer > 0.0 && outer < 1.0; step *= 4.0) {
        inner = outer;
        outer = std::clamp(outer + edge.direction * step, 0.0, 1.0);
        if (!allowed(outer)) break;
      }
      if (allowed(outer)) return problem(whole(v, outer));
    } else {
      for (; inner > 0.0 && inner < 1.0; step *= 4.0) {
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
    }
  }
  out.at_bound[k] = true;
  if (out.arrived)
    out.message =
        fmt::format("{} ends at the edge of where the likelihood is allowed", problem.name(k));
  return out;
}

/// The fit of a profile: a search from the start and the size of the gradient, in units of the
/// scale, where it ends. Nothing where that does not say that the search has arrived.
std::optional<Judgement> search_quickly(FreeProblem& problem, bool gradients) {
  constexpr double small = 1e-8;
  const std::size_t n = problem.size();
  if (!gradients) {
    Judgement out;
    out.arrived = minimise_values(problem, 0.5, problem.scale(), 1e-6);
    const auto unit = snap_to_bounds(problem, 1e-6, 0.0);
    for (const double u : unit) out.at_bound.push_back(u == 0.0 || u == 1.0);
    if (!out.arrived) out.message = "the search ran out of evaluations";
    return out;
  }
  minimise(problem, {nlopt::LD_SLSQP, 200, problem.scale(), 0.0, 1e-8, 1e-10});
  const auto unit = snap_to_bounds(problem, bound_tolerance, 0.0);
  std::vector<double> gradient(n);
  if (problem(unit, gradient) >= forbidden_value) return std::nullopt;
  Judgement out;
  for (std::size_t i = 0; i < n; ++i) {
    out.at_bound.push_back(rises_outwards(unit[i], gradient[i]));
    if (!out.at_bound[i]) out.distance += 0.5 * std::pow(gradient[i] * problem.scale()[i], 2);
  }
  out.arrived = out.distance <= small;
  if (!out.arrived) return std::nullopt;
  return out;
}

/// Follows each start to its maximum and leaves the highest as the problem's best.
void follow_starts(FreeProblem& problem, const std::vector<std::vector<double>>& starts,
                   bool gradients) {
  std::vector<double> best;
  double best_value = std::numeric_limits<double>::infinity();
  for (const auto& start : starts) {
    problem.restart();
    problem(start);
    if (gradients)
      minimise(problem, {nlopt::LD_SLSQP, 200, problem.scale(), 0.0, 1e-9, 1e-10});
    else
      minimise_values(problem, 0.1, problem.scale(), 1e-9);
    // The same maximum once more differs by rounding; the first stays.
    if (best.empty() || problem.best_value() < best_value - 1e-8 * (1.0 + std::abs(best_value))) {
      best = problem.best();
      best_value = problem.best_value();
    }
  }
  problem.set_best(best, best_value);
}

Judgement search(FreeProblem& problem, const FitOptions& options, bool gradients) {
  const auto starts = choose_starts(problem, options);
  if (!options.covariance && starts.size() == 1) {
    if (auto quick = search_quickly(problem, gradients)) return std::move(*quick);
  }
  follow_starts(problem, starts, gradients);
  auto out = judge_and_step(problem, options, gradients);
  if (out.arrived || problem.best_value() >= forbidden_value) return out;
  if (gradients) {
    minimise_values(problem, 0.1, problem.scale(), 1e-10);
    minimise(problem, {nlopt::LD_SLSQP, 200, problem.scale(), 0.0, 1e-9, 1e-10});
    out = judge_and_step(problem, options, true);
    if (out.arrived) return out;
  }
  if (const auto edge = find_edge(problem)) return follow_edge(problem, options, *edge);
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
