#include "measurements/minimiser.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "neyman/core/random.hpp"

namespace neyman::detail {

namespace {

using Order = Evaluator::Order;

constexpr int most_steps = 200;
constexpr int most_shortenings = 25;
constexpr double enough = 1e-4;  // of the rise that the slope promises
constexpr double least_damping = 1e-4, most_damping = 1e10;
constexpr double singular = 1e-13;  // of a pivot, relative to its diagonal
// Of the tolerance: what the terms of third order may be where a fit ends by their estimate.
constexpr double third_order = 0.02;

// Below this a change of −ℓ is rounding.
double noise(double value) { return 1e-13 * (1.0 + std::abs(value)); }

}  // namespace

Minimiser::Minimiser(const CompiledModel& model, double tolerance, bool tables)
    : model_(model),
      tolerance_(tolerance),
      size_(model.parameters.size()),
      evaluate_(model, tables),
      low_(size_),
      high_(size_),
      x_(model.start),
      trial_(size_),
      step_(size_),
      to_bound_(size_),
      matrix_(size_, size_),
      right_(size_) {
  free_.reserve(size_);
  for (std::size_t p = 0; p < size_; ++p) release(p);
}

void Minimiser::set_range(std::size_t parameter, double low, double high) {
  low_[parameter] = low;
  high_[parameter] = high;
}

void Minimiser::release(std::size_t parameter) {
  if (model_.fixed[parameter])
    hold(parameter, model_.start[parameter]);
  else
    set_range(parameter, model_.parameters[parameter].low, model_.parameters[parameter].high);
}

Evaluator& Minimiser::evaluate_there(const MeasurementData& data) {
  evaluate_(x_, data, Order::hessian);
  return evaluate_;
}

bool Minimiser::at_bound(std::size_t p) const {
  if (held(p)) return false;
  const double gradient = evaluate_.gradient()[p];
  return (x_[p] <= low_[p] && gradient > 0.0) || (x_[p] >= high_[p] && gradient < 0.0);
}

/// Away from a start where nothing is expected but something was counted, or the yield is negative.
bool Minimiser::move_into_sight(const MeasurementData& data, Outcome& out) {
  trial_ = x_;
  for (const double share : {0.0, 1e-3, 0.03, 0.2, 0.5}) {
    for (std::size_t p = 0; p < size_; ++p)
      x_[p] = trial_[p] + share * (0.5 * (low_[p] + high_[p]) - trial_[p]);
    out.value = evaluate_(x_, data, Order::hessian);
    ++out.evaluations;
    if (std::isfinite(out.value)) return true;
  }
  return false;
}

bool Minimiser::solve(double damping, std::span<const double> gradient) {
  const auto& hessian = evaluate_.hessian();
  const auto m = static_cast<Eigen::Index>(free_.size());
  for (Eigen::Index j = 0; j < m; ++j) {
    const std::size_t q = free_[static_cast<std::size_t>(j)];
    for (Eigen::Index i = j; i < m; ++i)
      matrix_(i, j) = hessian[free_[static_cast<std::size_t>(i)] * size_ + q];
    matrix_(j, j) += damping * std::max(std::abs(matrix_(j, j)), 1e-8);
    // What was fixed at a bound pulls at the others.
    double pull = gradient[q];
    for (std::size_t p = 0; p < size_; ++p)
      if (to_bound_[p] != 0 && step_[p] != 0.0)
        pull += hessian[std::max(p, q) * size_ + std::min(p, q)] * step_[p];
    right_(j) = -pull;
  }
  Eigen::Ref<Eigen::MatrixXd> block(matrix_.topLeftCorner(m, m));
  const Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>> cholesky(block);
  if (cholesky.info() != Eigen::Success) return false;
  for (Eigen::Index j = 0; j < m; ++j) {
    const std::size_t q = free_[static_cast<std::size_t>(j)];
    const double pivot = matrix_(j, j) * matrix_(j, j);
    if (!(pivot > singular * std::abs(hessian[q * size_ + q]))) return false;
  }
  auto head = right_.head(m);
  cholesky.solveInPlace(head);
  for (Eigen::Index j = 0; j < m; ++j) step_[free_[static_cast<std::size_t>(j)]] = head(j);
  return true;
}

bool Minimiser::find_step(double damping) {
  const auto gradient = evaluate_.gradient();
  free_.clear();
  for (std::size_t p = 0; p < size_; ++p) {
    step_[p] = 0.0;
    to_bound_[p] = held(p) || at_bound(p);
    if (to_bound_[p] == 0) free_.push_back(p);
  }
  for (;;) {
    if (free_.empty()) return true;
    if (!solve(damping, gradient)) return false;
    const std::size_t before = free_.size();
    for (const std::size_t p : free_) {
      const double to = x_[p] + step_[p];
      if (to >= low_[p] && to <= high_[p]) continue;
      to_bound_[p] = 1;
      step_[p] = (to < low_[p] ? low_[p] : high_[p]) - x_[p];
    }
    std::erase_if(free_, [&](std::size_t p) { return to_bound_[p] != 0; });
    if (free_.size() == before) return true;
  }
}

void Minimiser::follow(std::size_t parameter, double value) {
  free_.clear();
  for (std::size_t p = 0; p < size_; ++p) {
    step_[p] = 0.0;
    to_bound_[p] = p == parameter || held(p) || at_bound(p);
    if (to_bound_[p] == 0) free_.push_back(p);
  }
  step_[parameter] = value - x_[parameter];
  std::fill(trial_.begin(), trial_.end(), 0.0);  // the gradient at the point
  if (!free_.empty() && !solve(0.0, trial_))
    for (const std::size_t p : free_) step_[p] = 0.0;
  for (std::size_t p = 0; p < size_; ++p) x_[p] = std::clamp(x_[p] + step_[p], low_[p], high_[p]);
  x_[parameter] = value;
  led_by_ = 0.5 * curvature();
}

double Minimiser::curvature() const {
  const auto& hessian = evaluate_.hessian();
  double sum = 0.0;
  for (std::size_t p = 0; p < size_; ++p) {
    double row = 0.5 * hessian[p * size_ + p] * step_[p];
    for (std::size_t q = 0; q < p; ++q) row += hessian[p * size_ + q] * step_[q];
    sum += 2.0 * step_[p] * row;
  }
  return sum;
}

void Minimiser::set_trial(double length) {
  for (std::size_t p = 0; p < size_; ++p) {
    trial_[p] = std::clamp(x_[p] + length * step_[p], low_[p], high_[p]);
    if (length == 1.0 && to_bound_[p] != 0 && step_[p] != 0.0)
      trial_[p] = step_[p] < 0.0 ? low_[p] : high_[p];
  }
}

double Minimiser::search_line(const MeasurementData& data, Outcome& out, double slope) {
  const auto rises = [&](double value, double length) {
    return value <= out.value + enough * length * slope ||
           (-slope < 1e3 * noise(out.value) && value <= out.value + noise(out.value));
  };
  set_trial(1.0);
  double value = evaluate_(trial_, data, Order::hessian);
  ++out.evaluations;
  double length = 1.0;
  for (int k = 0; !rises(value, length); ++k) {
    if (k == most_shortenings) {
      evaluate_(x_, data, Order::hessian);
      ++out.evaluations;
      return 0.0;
    }
    const double excess = value - out.value - length * slope;
    const double best = std::isfinite(excess) ? -slope * length / (2.0 * excess) : 0.25;
    length *= std::clamp(best, 0.1, 0.5);
    set_trial(length);
    value = evaluate_(trial_, data, Order::value);
    ++out.evaluations;
    if (rises(value, length)) {
      evaluate_(trial_, data, Order::hessian);
      ++out.evaluations;
    }
  }
  std::swap(x_, trial_);
  out.value = value;
  return length;
}

Minimiser::Outcome Minimiser::operator()(const MeasurementData& data,
                                         std::span<const double> start) {
  Outcome out;
  // What the step that led here promised; zero where it was not a full one.
  double before = start.data() == x_.data() ? led_by_ : 0.0;
  led_by_ = 0.0;
  for (std::size_t p = 0; p < size_; ++p) x_[p] = std::clamp(start[p], low_[p], high_[p]);
  if (!move_into_sight(data, out)) return out;
  double damping = 0.0;
  const auto raise = [&] { damping = std::max(10.0 * damping, least_damping); };
  for (int k = 0; k < most_steps && damping < most_damping;) {
    if (!find_step(damping)) {
      raise();
      continue;
    }
    ++k;
    double slope = 0.0;
    for (std::size_t p = 0; p < size_; ++p) slope += evaluate_.gradient()[p] * step_[p];
    out.distance = -0.5 * slope;
    // A full step of length e before and one of e' now, with ½ e² the distance, leave terms of
    // third order of e'⁴ / e².
    const bool last = std::abs(out.distance) <= tolerance_ ||
                      (damping == 0.0 && out.distance >= 0.0 && out.distance < 0.1 * before &&
                       2.0 * out.distance * out.distance <= third_order * tolerance_ * before);
    if (slope > 0.0 && !last) {
      raise();
      continue;
    }
    if (last) {
      // The last step makes the remaining distance a second-order one. It is worth neither a search
      // nor an evaluation: what −ℓ falls by is known to third order.
      const double change = slope + 0.5 * curvature();
      if (change < 0.0) {
        set_trial(1.0);
        std::swap(x_, trial_);
        out.value += change;
      }
      out.ok = true;
      out.flat = damping > 0.0;
      return out;
    }
    const double distance = out.distance;
    const double length = search_line(data, out, slope);
    before = length == 1.0 && damping == 0.0 ? distance : 0.0;
    if (length > 0.0)
      damping = damping > least_damping ? 0.1 * damping : 0.0;
    else
      raise();
  }
  return out;
}

void Minimiser::try_start(const MeasurementData& data, std::span<const double> start, Outcome& best,
                          std::vector<double>& best_point) {
  const auto next = (*this)(data, start);
  const int evaluations = best.evaluations + next.evaluations;
  if (next.ok && (!best.ok || next.value < best.value - noise(best.value))) {
    best = next;
    best_point = x_;
  }
  best.evaluations = evaluations;
}

Minimiser::Outcome Minimiser::search(const MeasurementData& data, std::span<const double> start,
                                     std::size_t points) {
  return search(data, start, points, model_.interfering);
}

Minimiser::Outcome Minimiser::search(const MeasurementData& data, std::span<const double> start,
                                     std::size_t points, std::span<const std::size_t> explored) {
  auto best = (*this)(data, start);
  if (points == 0 ||
      std::all_of(explored.begin(), explored.end(), [&](std::size_t p) { return held(p); }))
    return best;
  constexpr double margin = 0.01;  // at the ends themselves a root has no derivative
  auto best_point = x_;
  std::vector<double> from(start.begin(), start.end());
  const auto place = [&](std::size_t p, double share) {
    if (!held(p)) from[p] = low_[p] + share * (high_[p] - low_[p]);
  };
  for (const std::size_t p : explored) {
    if (held(p)) continue;
    for (const double share : {margin, 1.0 - margin}) {
      from.assign(start.begin(), start.end());
      place(p, share);
      try_start(data, from, best, best_point);
    }
  }
  RandomStream random(0, "starts of a fit");
  for (std::size_t k = 0; k < points; ++k) {
    from.assign(start.begin(), start.end());
    for (const std::size_t p : explored) place(p, random.uniform());
    try_start(data, from, best, best_point);
  }
  x_ = best_point;
  return best;
}

}  // namespace neyman::detail
