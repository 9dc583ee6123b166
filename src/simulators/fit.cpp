#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlopt.hpp>
#include <utility>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/simulators/distribution.hpp"
#include "simulators/events.hpp"
#include "simulators/infinity.hpp"

namespace neyman {

namespace {

constexpr int restarts = 12;
constexpr int evaluations_a_parameter = 400;  // of one restart

/// log L(θ) = Σ wᵢ log p(xᵢ|θ) of the free parameters, each scaled to [0, 1].
class Likelihood {
 public:
  Likelihood(const Distribution& distribution, const ParameterSpace& parameters, MatrixView x,
             std::span<const double> weights, std::vector<double> start,
             const std::vector<bool>& fixed)
      : distribution_(distribution),
        parameters_(parameters),
        x_(x),
        weights_(weights),
        point_(std::move(start)) {
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (!fixed[i]) free_.push_back(i);
    best_ = start_ = scaled(point_);
    best_value_ = log_likelihood(point_);  // an error at the start is the caller's
    evaluations_ = 1;
    worst_ = std::isfinite(best_value_) ? best_value_ : 0.0;
  }

  std::size_t size() const { return free_.size(); }
  const std::vector<double>& start() const { return start_; }
  const std::vector<double>& best() const { return best_; }
  double best_value() const { return best_value_; }
  int evaluations() const { return evaluations_; }

  std::vector<double> unscaled(const std::vector<double>& u) const {
    auto point = point_;
    for (std::size_t k = 0; k < free_.size(); ++k) {
      const auto& p = parameters_[free_[k]];
      // The ends exactly: a value beyond by rounding would be outside the range.
      point[free_[k]] = u[k] <= 0.0   ? p.low
                        : u[k] >= 1.0 ? p.high
                                      : std::clamp(p.low + u[k] * (p.high - p.low), p.low, p.high);
    }
    return point;
  }

  /// −∞ where an event is impossible or the distribution is not defined.
  double operator()(const std::vector<double>& u) {
    ++evaluations_;
    double value = -infinity;
    try {
      value = log_likelihood(unscaled(u));
    } catch (const ArgumentError&) {  // a θ that is not allowed
    }
    if (value > best_value_) {
      best_value_ = value;
      best_ = u;
    }
    if (std::isfinite(value)) worst_ = std::min(worst_, value);
    return value;
  }

  /// What the optimiser minimises: finite everywhere, as its models need.
  double cost(const std::vector<double>& u) {
    const double value = (*this)(u);
    return std::isfinite(value) ? -value : -worst_ + 1.0 + std::abs(worst_);
  }

 private:
  std::vector<double> scaled(const std::vector<double>& point) const {
    std::vector<double> u;
    for (const std::size_t i : free_)
      u.push_back((point[i] - parameters_[i].low) / (parameters_[i].high - parameters_[i].low));
    return u;
  }

  double log_likelihood(const std::vector<double>& point) const {
    return sum_blocks(x_.rows(), [&](Block block) {
      std::vector<double> out(block.size());
      distribution_.log_density(point, x_.rows(block.begin, block.end), out);
      double sum = 0.0;
      for (std::size_t i = 0; i < out.size(); ++i) {
        const double weight = weights_.empty() ? 1.0 : weights_[block.begin + i];
        if (weight > 0.0) sum += weight * out[i];
      }
      return sum;
    });
  }

  const Distribution& distribution_;
  const ParameterSpace& parameters_;
  MatrixView x_;
  std::span<const double> weights_;
  std::vector<double> point_, start_, best_;
  std::vector<std::size_t> free_;
  double best_value_ = -infinity, worst_ = 0.0;
  int evaluations_ = 0;
};

/// Point i of Halton's sequence: spread evenly, the same every time.
std::vector<double> halton(std::size_t i, std::size_t dimensions) {
  constexpr std::size_t primes[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
  std::vector<double> out;
  for (std::size_t k = 0; k < dimensions; ++k) {
    const std::size_t base = primes[k % std::size(primes)];
    double value = 0.0, digit = 1.0;
    for (std::size_t n = i + 1 + k / std::size(primes); n > 0; n /= base) {
      digit /= static_cast<double>(base);
      value += digit * static_cast<double>(n % base);
    }
    out.push_back(value);
  }
  return out;
}

double evaluate_cost(const std::vector<double>& u, std::vector<double>&, void* likelihood) {
  return static_cast<Likelihood*>(likelihood)->cost(u);
}

/// Where a climb ended.
struct Summit {
  std::vector<double> u;
  double value = -infinity;
  bool done = false;  // the optimiser stopped because nothing was left to gain
};

/// One run of the optimiser.
Summit run(Likelihood& likelihood, std::vector<double> u, double step) {
  const auto n = static_cast<unsigned>(likelihood.size());
  nlopt::opt optimiser(n > 1 ? nlopt::LN_BOBYQA : nlopt::LN_SBPLX, n);  // BOBYQA needs two
  optimiser.set_min_objective(evaluate_cost, &likelihood);
  optimiser.set_lower_bounds(0.0);
  optimiser.set_upper_bounds(1.0);
  optimiser.set_initial_step(step);
  optimiser.set_xtol_abs(1e-9);
  optimiser.set_maxeval(evaluations_a_parameter * static_cast<int>(n));
  double cost = 0.0;
  bool done = true;
  try {
    done = optimiser.optimize(u, cost) != nlopt::MAXEVAL_REACHED;
  } catch (const nlopt::roundoff_limited&) {  // nothing finer can be told apart
  }
  return {u, likelihood(u), done};
}

/// A gain that counts: above the rounding of a sum of logarithms.
double tolerance(double log_likelihood) { return 1e-11 * (1.0 + std::abs(log_likelihood)); }

/// Climbs from u until a restart gains nothing.
Summit climb(Likelihood& likelihood, const std::vector<double>& u) {
  double step = 0.1;
  Summit summit = run(likelihood, u, step);
  for (int i = 0; i < restarts; ++i) {
    step = std::max(step / 4.0, 1e-4);
    const Summit next = run(likelihood, summit.u, step);
    const bool gained = next.value > summit.value + tolerance(summit.value);
    if (next.value >= summit.value) summit = next;
    if (next.done && !gained) return summit;
  }
  summit.done = false;
  return summit;
}

/// Whether the best point is a maximum along each axis, and one that is not flat.
bool is_maximum(Likelihood& likelihood) {
  const auto best = likelihood.best();
  const double top = likelihood.best_value();
  for (std::size_t k = 0; k < best.size(); ++k) {
    bool falls = false;
    for (const double step : {-5e-2, -1e-4, 1e-4, 5e-2}) {
      auto u = best;
      u[k] = std::clamp(u[k] + step, 0.0, 1.0);
      if (u[k] == best[k]) continue;
      const double value = likelihood(u);
      // A hundred times the tolerance: the top is flat, its place uncertain by the square root.
      if (value > top + 100.0 * tolerance(top)) return false;
      falls = falls || value < top - tolerance(top);
    }
    if (!falls) return false;
  }
  return true;
}

}  // namespace

DistributionFit fit(const Distribution& distribution, const ParameterSpace& parameters,
                    MatrixView x, std::span<const double> weights, std::vector<double> start,
                    std::vector<bool> fixed) {
  if (!distribution.has_density())
    fail_argument("fit", "distribution", distribution.kind(), "one with a density");
  check_same_size("fit", "a row of x", x.cols(), distribution.dimension(), "the dimension");
  detail::check_events("fit", x, weights);
  if (start.empty())
    for (const auto& p : parameters) start.push_back(p.low + 0.5 * (p.high - p.low));
  parameters.check_inside("fit", start);
  if (fixed.empty()) fixed.assign(parameters.size(), false);
  check_same_size("fit", "fixed", fixed.size(), parameters.size(), "one for each parameter");

  Likelihood likelihood(distribution, parameters, x, weights, std::move(start), fixed);
  DistributionFit out;
  out.converged = true;
  if (likelihood.size() > 0) {
    Summit summit = climb(likelihood, likelihood.start());
    // Other hills: the best of points spread over the ranges.
    Summit spread;
    for (std::size_t i = 0; i < 8 * likelihood.size(); ++i) {
      const auto u = halton(i, likelihood.size());
      const double value = likelihood(u);
      if (value > spread.value) spread = {u, value, false};
    }
    if (!spread.u.empty()) {
      spread = climb(likelihood, spread.u);
      if (spread.value > summit.value) summit = spread;
    }
    out.converged = summit.done && is_maximum(likelihood);
    for (int i = 0; i < 3 && !out.converged; ++i)
      out.converged = climb(likelihood, likelihood.best()).done && is_maximum(likelihood);
  }
  out.point = likelihood.unscaled(likelihood.best());
  out.log_likelihood = likelihood.best_value();
  out.converged = out.converged && std::isfinite(out.log_likelihood);
  out.evaluations = likelihood.evaluations();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const double reach = 1e-7 * (parameters[i].high - parameters[i].low);
    out.at_limit.push_back(!fixed[i] && (out.point[i] - parameters[i].low <= reach ||
                                         parameters[i].high - out.point[i] <= reach));
  }
  return out;
}

}  // namespace neyman
