#include "neyman/diagnostics/recovery.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "diagnostics/tails.hpp"
#include "neyman/core/check.hpp"

namespace neyman {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int most_steps = 12;
constexpr double enough = 0.02;         // of a standard error of the data: the last step
constexpr std::size_t least_parts = 4;  // for a scatter

/// An estimate whose covariance is that with the parameters at a bound held there: what simulated
/// events can be fitted to.
Fit held_at_bounds(Fit fit) {
  auto& c = fit.covariance;
  for (std::size_t b = 0; b < std::min(fit.at_bound.size(), c.rows()); ++b) {
    if (!fit.at_bound[b] || !(c(b, b) > 0.0)) continue;
    const auto column = c.column(b);
    for (std::size_t p = 0; p < c.rows(); ++p)
      for (std::size_t q = 0; q < c.cols(); ++q)
        c(p, q) = p == b || q == b ? 0.0 : c(p, q) - column[p] * column[q] / column[b];
  }
  return fit;
}

/// The parameters that an estimate determines.
std::vector<std::size_t> determined(const Matrix& covariance) {
  std::vector<std::size_t> out;
  for (std::size_t p = 0; p < covariance.rows(); ++p)
    if (covariance(p, p) > 0.0) out.push_back(p);
  return out;
}

MatrixXd part_of(const Matrix& matrix, const std::vector<std::size_t>& which) {
  const auto n = static_cast<Index>(which.size());
  MatrixXd out = MatrixXd::Zero(n, n);
  if (matrix.empty()) return out;
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j)
      out(i, j) = matrix(which[static_cast<std::size_t>(i)], which[static_cast<std::size_t>(j)]);
  return out;
}

Matrix whole_of(const MatrixXd& matrix, const std::vector<std::size_t>& which, std::size_t size) {
  Matrix out(size, size);
  for (std::size_t i = 0; i < which.size(); ++i)
    for (std::size_t j = 0; j < which.size(); ++j)
      out(which[i], which[j]) = matrix(static_cast<Index>(i), static_cast<Index>(j));
  return out;
}

/// Gradients at θ: a column a part, of the parameters that are determined.
class Gradients {
 public:
  Gradients(const Fit& estimate, std::span<const std::unique_ptr<const Likelihood>> parts,
            const std::vector<std::size_t>& which)
      : estimate_(estimate), parts_(parts), which_(which) {}

  bool exact() const { return parts_[0]->differentiable(); }

  /// Nothing where θ is not allowed.
  std::optional<MatrixXd> at(const std::vector<double>& point) const {
    MatrixXd out(static_cast<Index>(which_.size()), static_cast<Index>(parts_.size()));
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      if (!exact()) {
        if (!differences(point, k, out)) return std::nullopt;
        continue;
      }
      std::vector<double> gradient(point.size());
      if ((*parts_[k])(point, gradient) <= 0.5 * Likelihood::forbidden) return std::nullopt;
      for (std::size_t i = 0; i < which_.size(); ++i)
        out(static_cast<Index>(i), static_cast<Index>(k)) = gradient[which_[i]];
    }
    return out;
  }

 private:
  /// Over a standard error on both sides, as far as the range goes: what is rough next to θ̂ says
  /// little.
  bool differences(const std::vector<double>& point, std::size_t k, MatrixXd& out) const {
    const auto& parameters = parts_[k]->parameters();
    for (std::size_t i = 0; i < which_.size(); ++i) {
      const std::size_t p = which_[i];
      const double step = std::sqrt(estimate_.covariance(p, p));
      auto low = point, high = point;
      // The same way on both sides, so that the skewness of a likelihood cancels to first order.
      const double reach =
          parameters[p].periodic
              ? std::min(step, 0.25 * parameters[p].range())
              : std::min({step, point[p] - parameters[p].low, parameters[p].high - point[p]});
      if (!(reach > 0.0)) return false;
      low[p] -= reach;
      high[p] += reach;
      const double below = (*parts_[k])(low), above = (*parts_[k])(high);
      if (std::min(below, above) <= 0.5 * Likelihood::forbidden) return false;
      out(static_cast<Index>(i), static_cast<Index>(k)) = 0.5 * (above - below) / reach;
    }
    return true;
  }

  const Fit& estimate_;
  std::span<const std::unique_ptr<const Likelihood>> parts_;
  const std::vector<std::size_t>& which_;
};

}  // namespace

Recovery recover(const Fit& fit, double data_events,
                 std::span<const std::unique_ptr<const Likelihood>> parts,
                 const Matrix& gradient_covariance, std::span<const Constraint> constraints) {
  const char* function = "recover";
  const Fit estimate = held_at_bounds(fit);
  const std::size_t size = estimate.point.size();
  check_same_size(function, "a row of the estimate's covariance", estimate.covariance.cols(), size,
                  "one for each parameter");
  check_positive(function, "data_events", data_events);
  const auto which = determined(estimate.covariance);
  check_at_least(function, "the number of parameters that the estimate determines", which.size(),
                 1);
  check_at_least(function, "the number of parts", parts.size(),
                 std::max(least_parts, which.size() + 2));
  if (!gradient_covariance.empty())
    check_same_size(function, "gradient_covariance", gradient_covariance.rows(), size,
                    "rows, one for each parameter");
  Recovery out;
  out.from = estimate.point;
  out.shift.assign(size, 0.0);
  out.spread.assign(size, 0.0);
  out.parts = static_cast<double>(parts.size());
  for (const auto& part : parts) {
    if (part == nullptr) fail_argument(function, "a part", "null", "a likelihood");
    check_same_size(function, "the parameters of a part", part->parameters().size(), size,
                    "as the estimate has");
    out.events += static_cast<double>(part->events());
  }
  check_positive(function, "the number of events", out.events);
  const double scale = out.events / data_events;
  const Gradients gradients(estimate, parts, which);
  const auto& parameters = parts[0]->parameters();

  // The data's inverse curvature, for as many events.
  const MatrixXd of_data = part_of(estimate.covariance, which);
  const MatrixXd inverse = of_data / scale;
  const auto constraint_gradient = [&](const std::vector<double>& point) {
    VectorXd sum = VectorXd::Zero(static_cast<Index>(which.size()));
    for (const auto& constraint : constraints) {
      const std::size_t p = constraint.parameter();
      const auto at = std::find(which.begin(), which.end(), p);
      if (at == which.end()) continue;
      const auto expected = constraint.with_observed(constraint.expected(estimate.point[p]));
      sum[at - which.begin()] += scale * expected.derivative(point[p]);
    }
    return sum;
  };
  const auto total = [&](const std::vector<double>& point) -> std::optional<VectorXd> {
    const auto each = gradients.at(point);
    if (!each) return std::nullopt;
    return VectorXd(each->rowwise().sum() + constraint_gradient(point));
  };

  const auto at_estimate = gradients.at(estimate.point);
  if (!at_estimate)
    fail_argument(function, "the likelihood at the estimate", "forbidden", "allowed");
  const VectorXd mean = at_estimate->rowwise().mean();
  const MatrixXd centred = at_estimate->colwise() - mean;
  const MatrixXd scatter = centred * centred.transpose() * (out.parts / (out.parts - 1.0));

  // Steps until they are small beside the errors of the data.
  const auto length = [&](const VectorXd& step) {
    double most = 0.0;
    for (Index i = 0; i < step.size(); ++i)
      most = std::max(most, std::abs(step[i]) / std::sqrt(of_data(i, i)));
    return most;
  };
  VectorXd gradient = at_estimate->rowwise().sum();
  VectorXd shift = VectorXd::Zero(static_cast<Index>(which.size()));
  const auto moved = [&](const VectorXd& by) {
    auto point = estimate.point;
    for (std::size_t i = 0; i < which.size(); ++i) {
      const std::size_t p = which[i];
      const double to = point[p] + by[static_cast<Index>(i)];
      point[p] = parameters[p].periodic ? parameters[p].wrapped(to)
                                        : std::clamp(to, parameters[p].low, parameters[p].high);
    }
    return point;
  };
  double pace = 1.0;
  for (int k = 0; k < most_steps; ++k) {
    const VectorXd step = pace * inverse * gradient;
    const double way = length(step);
    if (!gradients.exact() || way < enough) {
      shift += step;  // to where the gradient vanishes, to first order
      break;
    }
    const auto next = total(moved(shift + step));
    // A step that goes too far meets a gradient that is as large.
    if (!next || (inverse * *next).dot(*next) > 0.8 * (inverse * gradient).dot(gradient)) {
      pace *= 0.5;
      if (pace < 1e-2) {
        shift += step;
        break;
      }
      continue;
    }
    shift += step;
    gradient = *next;
  }

  const MatrixXd known = part_of(gradient_covariance, which);
  out.noise = whole_of(inverse * scatter * inverse, which, size);
  out.simulation = whole_of(inverse * known * inverse, which, size);
  out.statistical = estimate.covariance;
  for (std::size_t i = 0; i < which.size(); ++i) {
    const std::size_t p = which[i];
    out.shift[p] = shift[static_cast<Index>(i)];
    out.spread[p] =
        std::sqrt(out.noise(p, p) / inverse(static_cast<Index>(i), static_cast<Index>(i)));
  }
  return out;
}

Diagnostic diagnose_recovery(const Recovery& recovery, const RecoveryConfig& config) {
  const char* function = "diagnose_recovery";
  const std::size_t size = recovery.shift.size();
  check_in_range(function, "tolerance", config.tolerance, 0.0, 1e6);
  check_positive(function, "harmful", config.harmful);
  check_positive(function, "power", config.power);
  check_finite(function, "shift", recovery.shift);
  for (const auto* matrix : {&recovery.noise, &recovery.simulation, &recovery.statistical}) {
    check_same_size(function, "a covariance", matrix->rows(), size, "rows, one for each parameter");
    check_same_size(function, "a covariance", matrix->cols(), size,
                    "columns, one for each parameter");
  }
  const auto which = determined(recovery.statistical);
  check_at_least(function, "the number of parameters that are determined", which.size(), 1);
  const auto name = [&](std::size_t p) {
    return p < config.names.size() ? config.names[p] : fmt::format("θ{}", p);
  };

  Diagnostic out;
  out.name = "recovery";
  out.tolerance = config.tolerance;
  Diagnostic::Panel panel{"Shift of the estimate", "parameter", "shift / statistical error", {}};
  Diagnostic::Series found{"found again", Diagnostic::Series::Style::points, {}, {}, {}, {}};
  Diagnostic::Series reported{
      "simulation error", Diagnostic::Series::Style::points, {}, {}, {}, {}};
  double largest = 0.0, least_noise = 1e300;
  std::size_t worst = which[0];
  for (std::size_t i = 0; i < which.size(); ++i) {
    const std::size_t p = which[i];
    const double error = std::sqrt(recovery.statistical(p, p));
    const double shift = recovery.shift[p] / error;
    const double noise = std::sqrt(recovery.noise(p, p)) / error;
    const double simulation = std::sqrt(std::max(0.0, recovery.simulation(p, p))) / error;
    const double at = static_cast<double>(i + 1);
    if (std::abs(shift) > largest) {
      largest = std::abs(shift);
      worst = p;
    }
    least_noise = std::min(least_noise, noise);
    out.numbers.emplace_back("shift:" + name(p), shift);
    out.numbers.emplace_back("noise:" + name(p), noise);
    out.numbers.emplace_back("simulation:" + name(p), simulation);
    found.x.push_back(at);
    found.y.push_back(shift);
    found.low.push_back(shift - noise);
    found.high.push_back(shift + noise);
    reported.x.push_back(at + 0.1);
    reported.y.push_back(0.0);
    reported.low.push_back(-simulation);
    reported.high.push_back(simulation);
  }
  // What the tolerance allows is not counted.
  Eigen::VectorXd counted(static_cast<Index>(which.size()));
  const double part = largest > 0.0 ? std::max(0.0, 1.0 - config.tolerance / largest) : 0.0;
  for (std::size_t i = 0; i < which.size(); ++i)
    counted[static_cast<Index>(i)] = part * recovery.shift[which[i]];
  // In errors of the data: covariances of parameters of any units.
  Eigen::VectorXd unit(counted.size());
  for (std::size_t i = 0; i < which.size(); ++i)
    unit[static_cast<Index>(i)] = 1.0 / std::sqrt(recovery.statistical(which[i], which[i]));
  const MatrixXd covariance =
      unit.asDiagonal() * (part_of(recovery.noise, which) + part_of(recovery.simulation, which)) *
      unit.asDiagonal();
  const auto test = test_deviations(unit.asDiagonal() * counted, covariance, recovery.parts);
  out.statistic = test.value;
  out.p_value = test.degrees > 0.0 ? test.p_value : (part > 0.0 ? 0.0 : 1.0);
  out.worst = largest < config.harmful ? Diagnostic::Verdict::warn : Diagnostic::Verdict::fail;
  out.verdict = std::min(verdict_of(*out.p_value), out.worst);
  const double of_worst = std::sqrt(recovery.statistical(worst, worst));
  out.explanation = fmt::format(
      "{:.0f} events were simulated at the estimate and fitted as the data are. The largest shift "
      "is that of {}: {:+.2f} ± {:.2f} of the statistical error of the data, where finite "
      "simulation "
      "is reported to add {:.2f}.",
      recovery.events, name(worst), recovery.shift[worst] / of_worst,
      std::sqrt(recovery.noise(worst, worst)) / of_worst,
      std::sqrt(std::max(0.0, recovery.simulation(worst, worst))) / of_worst);
  if (least_noise > config.power && out.verdict == Diagnostic::Verdict::pass) {
    out.verdict = Diagnostic::Verdict::no_power;
    out.note = fmt::format(
        "A shift is known to {:.1f} of that error at best: more events at the estimate would be "
        "needed to see a bias that matters.",
        least_noise);
  }
  panel.series = {std::move(found), std::move(reported)};
  out.panels.push_back(std::move(panel));
  return out;
}

bool add_recovered_shift(Fit& fit, const Recovery& recovery, const Diagnostic& judged) {
  if (!judged.p_value || verdict_of(*judged.p_value) == Diagnostic::Verdict::pass) return false;
  const std::size_t size = fit.point.size();
  check_same_size("add_recovered_shift", "shift", recovery.shift.size(), size,
                  "one for each parameter");
  if (fit.simulation_covariance.empty()) fit.simulation_covariance = Matrix(size, size);
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t j = 0; j < size; ++j)
      fit.simulation_covariance(i, j) += recovery.shift[i] * recovery.shift[j];
  fit.simulation_known = true;
  return true;
}

}  // namespace neyman
