#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlopt.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/progress.hpp"
#include "neyman/inference/fit.hpp"

namespace neyman {

inline constexpr double bound_tolerance = 1e-9;     // of the range: closer is at the bound
inline constexpr std::size_t cheap_events = 20000;  // up to so many, a value of ℓ is cheap
inline constexpr double forbidden_value = 0.5e300;  // of −ℓ: at or above is forbidden

using EigenMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic>;
inline Eigen::Index index(std::size_t i) { return static_cast<Eigen::Index>(i); }

/// A function over the unit box.
using Objective = std::function<double(const std::vector<double>&)>;
/// The same, with the gradient where that is not empty.
using Function = std::function<double(const std::vector<double>&, std::vector<double>&)>;

/// −ℓ over the free parameters alone, each scaled to [0, 1] of its range. Periodic parameters have
/// no ends: the unit box is cut where `turn` says, and a point that was turned to is in its middle.
/// What outlives a turn is kept as places: points of the box that is cut at the ends of the ranges.
class FreeProblem {
 public:
  FreeProblem(const Likelihood& likelihood, const FitOptions& options);

  std::size_t size() const { return free_.size(); }
  std::size_t dimension() const { return point_.size(); }
  const std::vector<std::size_t>& free() const { return free_; }
  const std::string& name(std::size_t i) const { return likelihood_.parameters()[free_[i]].name; }
  int evaluations() const { return evaluations_; }
  std::size_t events() const { return likelihood_.events(); }
  double range(std::size_t i) const { return ranges_[i].high - ranges_[i].low; }
  const std::vector<double>& scale() const { return scale_; }
  /// What rounding may hide of ℓ, far below ½: in single precision, 1e-7 an event.
  double rounding() const {
    return std::min(0.05, 1e-3 + 1e-7 * static_cast<double>(likelihood_.events()));
  }

  std::vector<double> to_point(const std::vector<double>& unit) const {
    auto point = point_;
    const auto place = to_place(unit);
    for (std::size_t i = 0; i < size(); ++i)
      point[free_[i]] =
          std::clamp(ranges_[i].low + place[i] * range(i), ranges_[i].low, ranges_[i].high);
    return point;
  }
  /// The place of the nearest θ of the design, where the likelihood is one of a learned ratio that
  /// has no events at this place; else the same.
  std::vector<double> near_design(std::vector<double> unit) const {
    const auto* region = likelihood_.region();
    if (region == nullptr) return unit;
    const auto point = to_point(unit);
    return region->holds(point) ? unit : to_unit(region->nearest(point));
  }
  /// Whether the design has no events at a place.
  bool beyond_design(const std::vector<double>& unit) const {
    const auto* region = likelihood_.region();
    return region != nullptr && !region->holds(to_point(unit));
  }
  std::vector<double> to_unit(std::span<const double> point) const {
    std::vector<double> unit;
    for (std::size_t i = 0; i < size(); ++i) {
      const double u = (point[free_[i]] - ranges_[i].low) / range(i);
      unit.push_back(round_[i] ? turned(u, -turns_[i]) : std::clamp(u, 0.0, 1.0));
    }
    return unit;
  }
  std::vector<double> to_place(std::vector<double> unit) const {
    for (std::size_t i = 0; i < size(); ++i)
      if (round_[i]) unit[i] = turned(unit[i], turns_[i]);
    return unit;
  }
  /// Turns the box so that a place comes to its middle, as far as parameters are periodic, and
  /// gives the place as a point of the box. The best point goes with it.
  std::vector<double> turn(std::vector<double> place);
  /// Whether the best point lies where the box is cut.
  bool at_cut() const;
  /// Whether a parameter has no ends here.
  bool round(std::size_t i) const { return round_[i]; }
  /// From b to a in one parameter, the shorter way round.
  double apart(std::size_t i, double a, double b) const {
    const double d = a - b;
    return round_[i] ? d - std::round(d) : d;
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
  /// −ℓ with its first and second derivatives in the unit scale; nothing where the likelihood does
  /// not know the second, or the point is forbidden. At the point that was asked for last it costs
  /// nothing.
  struct Derivatives {
    std::vector<double> unit;
    double value = 0.0;
    Eigen::VectorXd gradient;
    EigenMatrix hessian;
  };
  const Derivatives* derivatives(const std::vector<double>& unit);
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
  static double turned(double u, double by) {
    const double v = u + by;
    return v - std::floor(v);
  }
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
  std::vector<bool> round_;    // periodic, and free over all of the period
  std::vector<double> turns_;  // from a point of the box to its place
  std::vector<double> scale_;  // of the free parameters, in the unit scale
  std::vector<double> point_, full_;
  Derivatives derivatives_;  // of the last point
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

/// Minimises over the unit box; the function itself remembers its best point. Whether the search
/// ended by its own tolerances.
bool minimise(const Function& function, std::vector<double> start, const Search& search);
/// The same from the problem's best point.
bool minimise(FreeProblem& problem, const Search& search);
/// Searches without gradients until a restart gains nothing. Whether the last one ended by its
/// tolerances.
bool minimise_values(FreeProblem& problem, double first_step, double value_tolerance);

/// Whether ℓ still rises outwards at the end of a range.
bool rises_outwards(double unit, double slope);
/// Moves the best point to a bound that is a hair away, where that is not worse.
std::vector<double> snap_to_bounds(FreeProblem& problem, double hair);
/// −ℓ and its gradient; nothing where the point is forbidden, or its neighbours are, which
/// gradients from differences show by a value out of all proportion.
std::optional<double> value_and_gradient(FreeProblem& problem, const std::vector<double>& unit,
                                         std::vector<double>& gradient);

}  // namespace neyman
