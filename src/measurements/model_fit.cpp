#include "neyman/measurements/model_fit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <optional>

#include "measurements/auxiliary_value.hpp"
#include "measurements/minimiser.hpp"
#include "measurements/profile_root.hpp"
#include "measurements/toy_source.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/inference/statistics.hpp"

namespace neyman {

namespace {

using detail::Minimiser;

void set_box(Minimiser& minimise, const StatisticalModel& model, const ModelFitOptions& options) {
  const auto& parameters = model.parameters();
  const std::size_t n = parameters.size();
  const auto sized = [&](const char* name, std::size_t size) {
    if (size != 0) check_same_size("fit_model", name, size, n, "one a parameter");
  };
  sized("start", options.start.size());
  sized("fixed", options.fixed.size());
  sized("ranges", options.ranges.size());
  check_finite("fit_model", "start", options.start);
  check_positive("fit_model", "tolerance", options.tolerance);
  for (std::size_t p = 0; p < n; ++p) {
    if (!options.ranges.empty() && options.ranges[p] && !model.fixed()[p]) {
      const auto [low, high] = *options.ranges[p];
      check_finite("fit_model", parameters[p].name + " from", low);
      check_finite("fit_model", parameters[p].name + " to", high);
      if (!(low < high))
        fail_argument("fit_model", "the range of " + parameters[p].name,
                      fmt::format("[{:g}, {:g}]", low, high), "a lower and a higher value");
      minimise.set_range(p, low, high);
    }
    if (!options.fixed.empty() && options.fixed[p]) {
      check_finite("fit_model", parameters[p].name, *options.fixed[p]);
      minimise.hold(p, *options.fixed[p]);
    }
  }
}

/// The parameters whose values the data leave open: the largest parts of the direction of least
/// information.
std::string undetermined(const StatisticalModel& model, const std::vector<std::size_t>& inside,
                         const Eigen::MatrixXd& information) {
  const Eigen::VectorXd scale =
      information.diagonal().cwiseAbs().cwiseMax(1e-300).cwiseSqrt().cwiseInverse();
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(scale.asDiagonal() * information *
                                                              scale.asDiagonal());
  const Eigen::VectorXd direction = solver.eigenvectors().col(0).cwiseAbs();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < inside.size(); ++i)
    if (direction(static_cast<Eigen::Index>(i)) > 0.5 * direction.maxCoeff())
      names.push_back(model.parameters()[inside[i]].name);
  return fmt::format("the data do not determine {}", fmt::join(names, ", "));
}

/// The information over some of the parameters.
Eigen::MatrixXd information_over(const std::vector<std::size_t>& some, std::size_t size,
                                 const detail::Evaluator& there) {
  const auto m = static_cast<Eigen::Index>(some.size());
  Eigen::MatrixXd out(m, m);
  for (Eigen::Index i = 0; i < m; ++i)
    for (Eigen::Index j = 0; j <= i; ++j) {
      const auto [low, high] =
          std::minmax(some[static_cast<std::size_t>(i)], some[static_cast<std::size_t>(j)]);
      out(i, j) = out(j, i) = there.hessian()[high * size + low];
    }
  return out;
}

/// The Cholesky factor of what is positive, with pivots above rounding.
std::optional<Eigen::LLT<Eigen::MatrixXd>> positive_factor(const Eigen::MatrixXd& information) {
  const Eigen::LLT<Eigen::MatrixXd> cholesky(information);
  const Eigen::VectorXd pivots = Eigen::MatrixXd(cholesky.matrixL()).diagonal().cwiseAbs2();
  if (cholesky.info() != Eigen::Success ||
      (pivots.array() <= 1e-12 * information.diagonal().array()).any())
    return std::nullopt;
  return cholesky;
}

/// Counts and auxiliary observations as expected at a point, and events where a channel can tell.
MeasurementData expected_at(const StatisticalModel& model, const MeasurementData& data,
                            std::span<const double> point) {
  try {
    return model.asimov(point);
  } catch (const ArgumentError&) {
    auto out = detail::expected_counts(model, point);
    out.events = data.events;
    return out;
  }
}

void set_inverse(const std::vector<std::size_t>& some,
                 const Eigen::LLT<Eigen::MatrixXd>& information, Matrix& out) {
  const auto m = static_cast<Eigen::Index>(some.size());
  const Eigen::MatrixXd inverse = information.solve(Eigen::MatrixXd::Identity(m, m));
  for (Eigen::Index i = 0; i < m; ++i)
    for (Eigen::Index j = 0; j < m; ++j)
      out(some[static_cast<std::size_t>(i)], some[static_cast<std::size_t>(j)]) =
          0.5 * (inverse(i, j) + inverse(j, i));
}

/// The inverse of the information over what lies inside. A message where there is none.
std::string set_covariance(const StatisticalModel& model, const Minimiser& minimise,
                           const detail::Evaluator& there, Fit& out) {
  std::vector<std::size_t> inside;
  for (std::size_t p = 0; p < model.size(); ++p)
    if (!minimise.held(p) && !out.at_bound[p]) inside.push_back(p);
  if (inside.empty()) return {};
  const auto information = information_over(inside, model.size(), there);
  const auto factor = positive_factor(information);
  if (!factor) return undetermined(model, inside, information);
  set_inverse(inside, *factor, out.covariance);
  return {};
}

/// The same as if the ranges went on, with each parameter at a bound of which the data tell. What
/// is observed would not do: ℓ still rises there, so that its second derivatives depend on the
/// parameterisation, and an efficiency of a signal of zero had 1.4 times its constraint's width.
void set_covariance_across_bounds(const StatisticalModel& model, Minimiser& minimise,
                                  const MeasurementData& data, double tolerance, Fit& out) {
  const std::size_t n = model.size();
  std::vector<std::size_t> known;
  for (std::size_t p = 0; p < n; ++p)
    if (!minimise.held(p) && !out.at_bound[p]) known.push_back(p);
  const auto& there = minimise.evaluate_there(expected_at(model, data, out.point));
  std::optional<Eigen::LLT<Eigen::MatrixXd>> factor;
  if (!known.empty()) {
    factor = positive_factor(information_over(known, n, there));
    if (!factor) return;
  }
  for (std::size_t p = 0; p < n; ++p) {
    if (!out.at_bound[p]) continue;
    auto more = known;
    more.push_back(p);
    auto next = positive_factor(information_over(more, n, there));
    if (!next) continue;
    // Over the whole range a curvature of λ changes ℓ by λ / 8.
    const auto last = static_cast<Eigen::Index>(known.size());
    const double range = model.parameters()[p].high - model.parameters()[p].low;
    const double pivot = next->matrixLLT()(last, last) * range;
    if (!(pivot * pivot > 8.0 * tolerance)) continue;
    known = std::move(more);
    factor = std::move(next);
  }
  if (factor) set_inverse(known, *factor, out.covariance);
}

std::string why_failed(const StatisticalModel& model, const Minimiser::Outcome& outcome,
                       const detail::Evaluator& there) {
  if (std::isfinite(outcome.value))
    return fmt::format("the fit did not arrive: ℓ may still rise by {:.2g}", outcome.distance);
  if (there.forbidden_bin() == detail::no_parameter)
    return "a constraint forbids the point where the fit starts";
  const auto bin = model.bin_name(there.forbidden_bin());
  return fmt::format("no event can be expected in channel '{}', bin {}, where the fit starts",
                     bin.channel, bin.bin);
}

void check_usable(std::string_view function, const StatisticalModel& model, const Fit& best) {
  check_same_size(function, "fit", best.point.size(), model.size(), "one a parameter");
  if (!best.ok())
    fail_argument(function, "fit", fmt::format("failed ({})", best.message), "converged");
}

/// What the fluctuation of the auxiliary observation adds to the variance of the gradient.
double information_of(const Constraint& constraint, double value) {
  if (constraint.kind() == Constraint::Kind::log_normal)
    return 1.0 / std::pow(constraint.width() * value, 2);  // the second derivative may be positive
  return -constraint.second_derivative(value);
}

/// A constraint with its auxiliary observation moved by a standard deviation at θ̂.
double moved(const Constraint& constraint, double value, double sign) {
  switch (constraint.kind()) {
    case Constraint::Kind::gaussian:
      return constraint.observed() + sign * constraint.width();
    case Constraint::Kind::log_normal:
      return constraint.observed() * std::exp(sign * constraint.width());
    case Constraint::Kind::poisson:
      return std::max(
          0.0, constraint.observed() + sign * std::sqrt(std::max(constraint.expected(value), 0.0)));
  }
  return constraint.observed();
}

/// The parameters in whose ranges a fit begins at several places.
std::vector<std::size_t> explored(const StatisticalModel& model) {
  if (!model.compiled().interfering.empty()) return model.compiled().interfering;
  std::vector<std::size_t> out;
  for (std::size_t p = 0; p < model.size(); ++p)
    if (!model.constraint_of(p)) out.push_back(p);
  return out;
}

/// The covariance of rows that are drawn alike.
Matrix covariance_of_rows(const Matrix& rows) {
  const std::size_t n = rows.cols();
  const auto count = static_cast<double>(rows.rows());
  std::vector<double> means(n, 0.0);
  for (std::size_t b = 0; b < rows.rows(); ++b)
    for (std::size_t p = 0; p < n; ++p) means[p] += rows(b, p) / count;
  Matrix out(n, n);
  for (std::size_t b = 0; b < rows.rows(); ++b)
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t q = 0; q < n; ++q)
        out(p, q) += (rows(b, p) - means[p]) * (rows(b, q) - means[q]) / (count - 1.0);
  return out;
}

/// Holds what the fit held: the parameters without variance that are not at a bound.
bool was_held(const StatisticalModel& model, const Fit& best, std::size_t p) {
  return model.fixed()[p] || (best.covariance(p, p) == 0.0 && !best.at_bound[p]);
}

}  // namespace

Fit fit_model(const StatisticalModel& model, const MeasurementData& data,
              const ModelFitOptions& options) {
  model.check_data("fit_model", data);
  const std::size_t n = model.size();
  Minimiser minimise(model.compiled(), options.tolerance);
  set_box(minimise, model, options);
  const auto search = [&](const std::vector<double>& start) {
    if (!options.starts) return minimise.search(data, start);
    return minimise.search(data, start, *options.starts, explored(model));
  };
  auto outcome = search(options.start.empty() ? model.start() : options.start);
  if (!outcome.ok && !options.start.empty()) outcome = search(model.start());
  const auto& there = minimise.evaluate_there(data);
  Fit out;
  out.point.assign(minimise.point().begin(), minimise.point().end());
  out.covariance = Matrix(n, n);
  out.simulation_covariance = Matrix(n, n);
  out.evaluations = outcome.evaluations;
  out.distance = outcome.distance;
  out.at_bound.assign(n, false);
  out.log_likelihood = std::isfinite(outcome.value) ? -outcome.value : Likelihood::forbidden;
  if (!outcome.ok) {
    out.message = why_failed(model, outcome, there);
    return out;
  }
  bool bound = false;
  for (std::size_t p = 0; p < n; ++p) {
    out.at_bound[p] = minimise.at_bound(p);
    bound = bound || out.at_bound[p];
  }
  if (options.covariance) {
    out.message = set_covariance(model, minimise, there, out);
    if (bound && out.message.empty())
      set_covariance_across_bounds(model, minimise, data, options.tolerance, out);
  }
  out.status = !out.message.empty() ? FitStatus::failed
               : bound              ? FitStatus::at_bound
                                    : FitStatus::converged;
  return out;
}

Fit fit_model(const StatisticalModel& model, const ModelFitOptions& options) {
  return fit_model(model, model.observed(), options);
}

Matrix correlations(const Fit& fit) {
  const std::size_t n = fit.covariance.rows();
  Matrix out(n, n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      const double scale = std::sqrt(fit.covariance(i, i) * fit.covariance(j, j));
      out(i, j) = i == j ? 1.0 : (scale > 0.0 ? fit.covariance(i, j) / scale : 0.0);
    }
  return out;
}

Interval profile_interval(const StatisticalModel& model, const MeasurementData& data,
                          const Fit& best, std::size_t parameter, double level,
                          bool include_simulation) {
  constexpr const char* function = "profile_interval";
  model.check_data(function, data);
  check_usable(function, model, best);
  check_in_range(function, "parameter", static_cast<double>(parameter), 0.0,
                 static_cast<double>(model.size() - 1));
  check_in_range(function, "level", level, 1e-6, 1.0 - 1e-12);
  if (was_held(model, best, parameter))
    fail_argument(function, model.parameters()[parameter].name, "held in the fit", "free");
  Minimiser minimise(model.compiled());
  for (std::size_t p = 0; p < model.size(); ++p)
    if (was_held(model, best, p)) minimise.hold(p, best.point[p]);
  detail::ProfileRoot profile(minimise, data, best.point, -best.log_likelihood, parameter);
  const auto& range = model.parameters()[parameter];
  const double error = best.statistical_error(parameter);
  const double wider = include_simulation && error > 0.0 ? best.error(parameter) / error : 1.0;
  const double target = std::sqrt(chi2_quantile(level)) * wider;
  const double step = (error > 0.0 ? error : 0.1 * (range.high - range.low)) * target;
  Interval out;
  out.level = level;
  const auto low = profile.crossing(target, -step, range.low);
  const auto high = profile.crossing(target, step, range.high);
  out.low = low.value_or(range.low);
  out.high = high.value_or(range.high);
  out.low_at_bound = !low;
  out.high_at_bound = !high;
  out.pieces = {{out.low, out.high}};
  if (profile.failed() > 0) {
    out.ok = false;
    out.message = fmt::format("{} fits of the profile failed", profile.failed());
  } else if (profile.lowest() < -best.log_likelihood - 1e-6) {
    out.ok = false;
    out.message = fmt::format("the profile found a maximum that is higher by {:.2g}",
                              -best.log_likelihood - profile.lowest());
  }
  return out;
}

std::size_t add_simulation_covariance(Fit& best, const StatisticalModel& model,
                                      std::size_t replicas,
                                      const std::function<StatisticalModel(std::size_t)>& replica) {
  constexpr const char* function = "add_simulation_covariance";
  if (!replica) fail_argument(function, "replica", "empty", "a function");
  check_usable(function, model, best);
  const std::size_t n = model.size();
  ModelFitOptions options;
  options.start = best.point;
  options.covariance = false;
  options.fixed.resize(n);
  for (std::size_t p = 0; p < n; ++p)
    if (was_held(model, best, p)) options.fixed[p] = best.point[p];
  Matrix points(0, n), slopes(0, n);
  bool ended = false;
  for (std::size_t b = 0; b < replicas; ++b) {
    const auto other = replica(b);
    if (other.parameters().names() != model.parameters().names())
      fail_argument(function, fmt::format("replica {}", b), "of other parameters",
                    "of those of the model");
    const auto moved_fit = fit_model(other, options);
    if (!moved_fit.ok()) continue;
    points.append({moved_fit.point.data(), 1, n});
    ended = ended || moved_fit.status == FitStatus::at_bound;
    std::vector<double> slope(n);
    const double value = ModelLikelihood(other, other.observed())(best.point, slope);
    if (value > Likelihood::forbidden) slopes.append({slope.data(), 1, n});
  }
  check_at_least(function, "fits of replicas that converged", points.rows(), 2);
  // Estimates that end at a bound do not scatter: there, how far they would go on is told by the
  // slopes.
  if (ended && slopes.rows() >= 2) {
    for (std::size_t b = 0; b < slopes.rows(); ++b)
      for (std::size_t p = 0; p < n; ++p)
        if (was_held(model, best, p)) slopes(b, p) = 0.0;
    add_simulation_covariance(best, covariance_of_rows(slopes));
  } else {
    best.simulation_covariance = covariance_of_rows(points);
    best.simulation_known = true;
  }
  return replicas - points.rows();
}

ProfileScan profile_scan(const StatisticalModel& model, const MeasurementData& data,
                         const Fit& best, std::size_t parameter, std::vector<double> values) {
  constexpr const char* function = "profile_scan";
  model.check_data(function, data);
  check_usable(function, model, best);
  check_in_range(function, "parameter", static_cast<double>(parameter), 0.0,
                 static_cast<double>(model.size() - 1));
  check_at_least(function, "values.size", values.size(), 1);
  const auto& range = model.parameters()[parameter];
  for (const double value : values)
    check_in_range(function, "values", value, range.low, range.high);
  const ModelLikelihood likelihood(model, data);
  ProfileScan out;
  out.parameter = parameter;
  out.statistic.resize(values.size());
  out.held_statistic.resize(values.size());
  std::vector<char> failed(values.size(), 0);
  parallel_tasks(values.size(), [&](std::size_t i) {
    Minimiser minimise(model.compiled());
    for (std::size_t p = 0; p < model.size(); ++p)
      if (was_held(model, best, p)) minimise.hold(p, best.point[p]);
    minimise.hold(parameter, values[i]);
    auto point = best.point;
    point[parameter] = values[i];
    const auto outcome = minimise(data, point);
    const double held = likelihood(point);
    // What is forbidden has no statistic: the drawing and the reader want a number.
    constexpr double most = 1e6;
    out.held_statistic[i] = std::clamp(2.0 * (best.log_likelihood - held), 0.0, most);
    failed[i] = !outcome.ok;
    out.statistic[i] = std::isfinite(outcome.value)
                           ? std::clamp(2.0 * (outcome.value + best.log_likelihood), 0.0, most)
                           : most;
  });
  out.failed = static_cast<std::size_t>(std::count(failed.begin(), failed.end(), 1));
  out.values = std::move(values);
  return out;
}

std::vector<Pull> pulls(const StatisticalModel& model, const MeasurementData& data,
                        const Fit& best) {
  model.check_data("pulls", data);
  check_usable("pulls", model, best);
  std::vector<Pull> out;
  for (std::size_t k = 0; k < model.constraints().size(); ++k) {
    const auto constraint = model.constraints()[k].with_observed(data.auxiliary[k]);
    const std::size_t p = constraint.parameter();
    if (was_held(model, best, p)) continue;
    const double value = best.point[p], error = best.statistical_error(p);
    if (constraint.kind() == Constraint::Kind::log_normal) {
      const double width = constraint.width();
      out.push_back({p, std::log(value / constraint.observed()) / width, error / (value * width)});
      continue;
    }
    const auto known = detail::auxiliary_value(constraint);
    out.push_back({p, (value - known.value) / known.error, error / known.error});
  }
  return out;
}

std::vector<Impact> impacts(const StatisticalModel& model, const MeasurementData& data,
                            const Fit& best) {
  model.check_data("impacts", data);
  check_usable("impacts", model, best);
  const std::size_t interest = model.interest();
  std::vector<std::size_t> shifted;
  for (std::size_t k = 0; k < model.constraints().size(); ++k)
    if (!was_held(model, best, model.constraints()[k].parameter())) shifted.push_back(k);
  std::vector<Impact> out(shifted.size());
  parallel_tasks(shifted.size(), [&](std::size_t i) {
    const std::size_t k = shifted[i];
    const auto constraint = model.constraints()[k].with_observed(data.auxiliary[k]);
    Minimiser minimise(model.compiled());
    for (std::size_t p = 0; p < model.size(); ++p)
      if (was_held(model, best, p)) minimise.hold(p, best.point[p]);
    auto other = data;
    out[i].parameter = constraint.parameter();
    const auto change = [&](double sign) {
      other.auxiliary[k] = moved(constraint, best.point[constraint.parameter()], sign);
      const bool ok = minimise(other, best.point).ok;
      out[i].ok = out[i].ok && ok;
      return ok ? minimise.point()[interest] - best.point[interest] : 0.0;
    };
    out[i].up = change(1.0);
    out[i].down = change(-1.0);
  });
  std::stable_sort(out.begin(), out.end(), [](const Impact& a, const Impact& b) {
    return std::max(std::abs(a.up), std::abs(a.down)) > std::max(std::abs(b.up), std::abs(b.down));
  });
  return out;
}

std::vector<ErrorPart> error_breakdown(
    const StatisticalModel& model, const MeasurementData& data, const Fit& best,
    const std::vector<std::pair<std::string, std::vector<std::string>>>& groups) {
  constexpr const char* function = "error_breakdown";
  model.check_data(function, data);
  check_usable(function, model, best);
  const std::size_t interest = model.interest(), n = model.size();
  const double variance = best.covariance(interest, interest);
  check_positive(function, "the variance of the parameter of interest", variance);
  std::vector<std::size_t> group_of(n, groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const auto& name : groups[g].second) {
      bool found = false;
      for (std::size_t p = 0; p < n; ++p) {
        const auto& own = model.parameters()[p].name;
        if (own != name && !own.starts_with(name + "[")) continue;
        found = true;
        if (!model.constraint_of(p))
          fail_argument(function, own, "without a constraint", "constrained, to be in a group");
        if (group_of[p] != groups.size())
          fail_argument(function, own,
                        fmt::format("in {} and {}", groups[group_of[p]].first, groups[g].first),
                        "in one group");
        group_of[p] = g;
      }
      if (!found)
        throw ArgumentError(fmt::format(
            "{}: {}", function, unknown_name(name, "a parameter", model.parameters().names())));
    }
  std::vector<double> squares(groups.size() + 1, 0.0);
  double rest = variance;
  for (std::size_t k = 0; k < model.constraints().size(); ++k) {
    const auto constraint = model.constraints()[k].with_observed(data.auxiliary[k]);
    const std::size_t p = constraint.parameter();
    const double part = best.covariance(interest, p) * best.covariance(interest, p) *
                        information_of(constraint, best.point[p]);
    squares[group_of[p]] += part;
    rest -= part;
  }
  std::vector<ErrorPart> out;
  for (std::size_t g = 0; g < groups.size(); ++g)
    out.push_back({groups[g].first, std::sqrt(std::max(squares[g], 0.0))});
  out.push_back({"other", std::sqrt(std::max(squares.back(), 0.0))});
  out.push_back({"statistical", std::sqrt(std::max(rest, 0.0))});
  return out;
}

}  // namespace neyman
