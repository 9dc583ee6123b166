#include "profile.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <array>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <optional>

#include "neyman/core/check.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/distributed/tasks.hpp"
#include "neyman/inference/statistics.hpp"

namespace neyman {

Profile::Profile(const Likelihood& likelihood, const Fit& best, std::vector<std::size_t> held)
    : likelihood_(likelihood), best_(best), held_(std::move(held)) {
  const auto& space = likelihood.parameters();
  const std::size_t n = space.size(), h = held_.size();
  scale_.resize(n);
  for (std::size_t p = 0; p < n; ++p) {
    const double error = best.statistical_error(p);
    scale_[p] = error > 0.0 ? error : 0.1 * (space[p].high - space[p].low);
  }
  set_conditional_scale();
  regression_ = Matrix(n, h);
  Eigen::MatrixXd held_covariance(h, h), cross(n, h);
  for (std::size_t j = 0; j < h; ++j) {
    const auto col = static_cast<Eigen::Index>(j);
    if (best.statistical_error(held_[j]) <= 0.0) return;  // at a bound: nothing is predicted
    for (std::size_t p = 0; p < n; ++p)
      cross(static_cast<Eigen::Index>(p), col) = best.covariance(p, held_[j]);
    for (std::size_t i = 0; i < h; ++i)
      held_covariance(static_cast<Eigen::Index>(i), col) = best.covariance(held_[i], held_[j]);
  }
  const Eigen::LDLT<Eigen::MatrixXd> factor(held_covariance);
  if (factor.info() != Eigen::Success || !factor.isPositive()) return;
  const Eigen::MatrixXd regression = factor.solve(cross.transpose()).transpose();
  if (!regression.allFinite()) return;
  for (std::size_t p = 0; p < n; ++p)
    for (std::size_t j = 0; j < h; ++j)
      regression_(p, j) = regression(static_cast<Eigen::Index>(p), static_cast<Eigen::Index>(j));
}

void Profile::set_conditional_scale() {
  std::vector<std::size_t> inside;
  for (std::size_t p = 0; p < scale_.size(); ++p)
    if (best_.statistical_error(p) > 0.0) inside.push_back(p);
  const auto n = static_cast<Eigen::Index>(inside.size());
  Eigen::MatrixXd covariance(n, n);
  for (Eigen::Index i = 0; i < n; ++i)
    for (Eigen::Index j = 0; j < n; ++j)
      covariance(i, j) = best_.covariance(inside[static_cast<std::size_t>(i)],
                                          inside[static_cast<std::size_t>(j)]);
  const Eigen::LDLT<Eigen::MatrixXd> factor(covariance);
  if (factor.info() != Eigen::Success || !factor.isPositive()) return;
  const Eigen::MatrixXd precision = factor.solve(Eigen::MatrixXd::Identity(n, n));
  for (Eigen::Index i = 0; i < n; ++i)
    if (std::isfinite(precision(i, i)) && precision(i, i) > 0.0)
      scale_[inside[static_cast<std::size_t>(i)]] = 1.0 / std::sqrt(precision(i, i));
}

std::vector<double> Profile::predict(std::span<const double> values) const {
  const auto& space = likelihood_.parameters();
  auto point = best_.point;
  for (std::size_t p = 0; p < point.size(); ++p) {
    for (std::size_t j = 0; j < held_.size(); ++j)
      point[p] += regression_(p, j) * (values[j] - best_.point[held_[j]]);
    point[p] = std::clamp(point[p], space[p].low, space[p].high);
  }
  for (std::size_t j = 0; j < held_.size(); ++j) point[held_[j]] = values[j];
  return point;
}

namespace {

struct Top {
  double at, value;
};

/// The highest value of a function of one variable, by parabolas through three points that enclose
/// it; nothing where they do not come to one inside the range. A few values are enough where
/// gradients are differences of values themselves.
template <class Function>
std::optional<Top> enclosed_top(Function&& function, double start, double step, double low,
                                double high) {
  constexpr int most_values = 12;
  constexpr double negligible = 1e-9;  // of what another value could gain
  if (!(start - step > low && start + step < high)) return std::nullopt;
  std::array<Top, 3> p = {Top{start - step, 0.0}, {start, 0.0}, {start + step, 0.0}};
  for (auto& point : p) point.value = function(point.at);
  for (int values = 3; values < most_values; ++values) {
    if (!(std::min({p[0].value, p[1].value, p[2].value}) > 0.5 * Likelihood::forbidden))
      return std::nullopt;
    if (p[1].value < std::max(p[0].value, p[2].value)) {  // not enclosed: one step further up
      const bool up = p[2].value > p[0].value;
      const double next = up ? 2.0 * p[2].at - p[1].at : 2.0 * p[0].at - p[1].at;
      if (!(next > low && next < high)) return std::nullopt;
      const Top found{next, function(next)};
      p = up ? std::array<Top, 3>{p[1], p[2], found} : std::array<Top, 3>{found, p[0], p[1]};
      continue;
    }
    const double left = (p[1].value - p[0].value) / (p[1].at - p[0].at);
    const double right = (p[2].value - p[1].value) / (p[2].at - p[1].at);
    const double bend = (right - left) / (p[2].at - p[0].at);
    if (!(bend < 0.0)) return std::nullopt;
    const double at = 0.5 * (p[0].at + p[1].at - left / bend);
    if (-bend * std::pow(at - p[1].at, 2) < negligible) return p[1];
    const Top found{at, function(at)};
    const bool above = at > p[1].at;
    if (found.value >= p[1].value)
      p = above ? std::array<Top, 3>{p[1], found, p[2]} : std::array<Top, 3>{p[0], found, p[1]};
    else
      p[above ? 2 : 0] = found;
  }
  return std::nullopt;
}

}  // namespace

bool Profile::find_top(std::size_t free, Value& out) const {
  const auto& parameter = likelihood_.parameters()[free];
  auto point = out.point;
  const auto along = [&](double value) {
    check_stop();
    point[free] = value;
    return likelihood_(point);
  };
  const auto top =
      enclosed_top(along, out.point[free], 0.5 * scale_[free], parameter.low, parameter.high);
  if (!top) return false;
  out.point[free] = top->at;
  out.log_likelihood = top->value;
  return true;
}

Profile::Value Profile::operator()(std::span<const double> values, const Value* neighbour) const {
  Value out;
  out.point = predict(values);
  if (held_.size() == out.point.size()) {
    out.log_likelihood = likelihood_(out.point);
  } else {
    FitOptions options;
    options.start = out.point;
    if (neighbour != nullptr) {
      auto other = neighbour->point;
      for (std::size_t j = 0; j < held_.size(); ++j) other[held_[j]] = values[j];
      if (likelihood_(other) > likelihood_(options.start)) options.start = std::move(other);
    }
    out.point = options.start;
    options.fixed.assign(out.point.size(), std::nullopt);
    for (std::size_t j = 0; j < held_.size(); ++j) options.fixed[held_[j]] = values[j];
    const auto free = static_cast<std::size_t>(
        std::find(options.fixed.begin(), options.fixed.end(), std::nullopt) -
        options.fixed.begin());
    const bool one = held_.size() + 1 == out.point.size() && likelihood_.differentiable();
    if (!one || !find_top(free, out)) {
      options.covariance = false;
      options.scale = scale_;
      auto found = fit(likelihood_, options);
      out.ok = found.ok();
      out.log_likelihood = found.log_likelihood;
      out.point = std::move(found.point);
    }
  }
  // A forbidden point is no failure of the profile: the statistic is as large as can be.
  if (!(out.log_likelihood > 0.5 * Likelihood::forbidden)) {
    out.log_likelihood = Likelihood::forbidden;
    out.ok = true;
  }
  out.statistic = std::clamp(2.0 * (best_.log_likelihood - out.log_likelihood), 0.0, most);
  return out;
}

namespace {

void check_parameter(const char* function, const Likelihood& likelihood, std::size_t parameter) {
  if (parameter >= likelihood.parameters().size())
    fail_argument(function, "parameter", std::to_string(parameter),
                  fmt::format("below {}", likelihood.parameters().size()));
}

/// One side of an interval: the crossing between the estimate and the end of the range.
class SideSearch {
 public:
  SideSearch(const Profile& profile, const Fit& best, std::size_t parameter, double threshold)
      : profile_(profile), best_(best), parameter_(parameter), threshold_(threshold) {}

  double operator()(double end, double first_step, bool& at_bound) {
    const double centre = best_.point[parameter_];
    visited_.clear();
    at_bound = false;
    if (end == centre) {
      at_bound = true;
      return end;
    }
    // Step outwards from where a parabola would cross, so that the bracket is short.
    const double direction = end < centre ? -1.0 : 1.0;
    double inner = centre, inner_excess = -threshold_;
    for (double step = first_step;; step *= 1.5) {
      double outer = inner + direction * step;
      if ((outer - end) * direction >= 0.0) outer = end;
      const double outer_excess = excess(outer);
      if (outer_excess >= 0.0) return crossing(inner, inner_excess, outer, outer_excess);
      if (outer == end) {
        at_bound = true;
        return end;
      }
      inner = outer;
      inner_excess = outer_excess;
    }
  }

  std::size_t failed = 0;  // profile fits
  double gain = 0.0;       // by how much ℓ was above that of the fit
  double gain_at = 0.0;    // at which value

 private:
  struct Visited {
    double value;
    Profile::Value profile;
  };

  double excess(double value) {
    const Visited* nearest = nullptr;
    for (const auto& visited : visited_)
      if (nearest == nullptr || std::abs(visited.value - value) < std::abs(nearest->value - value))
        nearest = &visited;
    const double values[] = {value};
    auto found = profile_(values, nearest != nullptr ? &nearest->profile : nullptr);
    if (!found.ok) ++failed;
    if (found.log_likelihood - best_.log_likelihood > gain) {
      gain = found.log_likelihood - best_.log_likelihood;
      gain_at = value;
    }
    // Walls are cut, so that the root search does not have to divide by them.
    const double out = std::min(found.statistic, 100.0 * (1.0 + threshold_)) - threshold_;
    visited_.push_back({value, std::move(found)});
    return out;
  }

  double crossing(double inner, double inner_excess, double outer, double outer_excess) {
    if (outer_excess == 0.0) return outer;
    const bool swap = inner > outer;
    const double tolerance =
        1e-7 * std::max(std::abs(outer - best_.point[parameter_]), 1e-3 * std::abs(outer));
    std::uintmax_t most = 60;
    const auto [a, b] = boost::math::tools::toms748_solve(
        [&](double value) { return excess(value); }, swap ? outer : inner, swap ? inner : outer,
        swap ? outer_excess : inner_excess, swap ? inner_excess : outer_excess,
        [&](double low, double high) { return high - low <= tolerance; }, most);
    return 0.5 * (a + b);
  }

  const Profile& profile_;
  const Fit& best_;
  std::size_t parameter_;
  double threshold_;
  std::vector<Visited> visited_;
};

/// Indices of sorted or unsorted values from the nearest to `centre` outwards: first those not
/// below it in rising order, then the others in falling order.
std::vector<std::size_t> outwards(const std::vector<double>& values, double centre,
                                  std::size_t& first_below) {
  std::vector<std::size_t> above, below;
  for (std::size_t i = 0; i < values.size(); ++i)
    (values[i] >= centre ? above : below).push_back(i);
  std::sort(above.begin(), above.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::sort(below.begin(), below.end(),
            [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  first_below = above.size();
  above.insert(above.end(), below.begin(), below.end());
  return above;
}

}  // namespace

double profile_statistic(const Likelihood& likelihood, const Fit& best,
                         const std::vector<std::optional<double>>& fixed) {
  check_same_size("profile_statistic", "fixed", fixed.size(), best.point.size(), "one a parameter");
  std::vector<std::size_t> held;
  std::vector<double> values;
  for (std::size_t p = 0; p < fixed.size(); ++p)
    if (fixed[p]) {
      held.push_back(p);
      values.push_back(*fixed[p]);
    }
  return Profile(likelihood, best, held)(values, nullptr).statistic;
}

Interval likelihood_interval(const Likelihood& likelihood, const Fit& best, std::size_t parameter,
                             double level, double threshold) {
  check_parameter("likelihood_interval", likelihood, parameter);
  check_positive("likelihood_interval", "threshold", threshold);
  const auto& range = likelihood.parameters()[parameter];
  const Profile profile(likelihood, best, {parameter});
  SideSearch side(profile, best, parameter, threshold);
  const double centre = best.point[parameter];
  const double error = best.statistical_error(parameter);
  const auto first_step = [&](double end) {
    return error > 0.0 ? error * std::sqrt(threshold) : 0.1 * std::abs(end - centre);
  };
  Interval interval;
  interval.level = level;
  if (best.rough() && error > 0.0) {
    const double half = error * std::sqrt(threshold);
    interval.low_at_bound = centre - half <= range.low;
    interval.high_at_bound = centre + half >= range.high;
    interval.low = std::max(range.low, centre - half);
    interval.high = std::min(range.high, centre + half);
    interval.ok = best.ok();
    if (!interval.ok) interval.message = "the fit failed";
    return interval;
  }
  interval.low = side(range.low, first_step(range.low), interval.low_at_bound);
  interval.high = side(range.high, first_step(range.high), interval.high_at_bound);

  const double allowance = 1e-3 + 5.0 * best.roughness;
  if (!best.ok())
    interval.message = "the fit failed";
  else if (side.gain > allowance)
    interval.message =
        fmt::format("the likelihood is higher than that of the fit by {:.3g} at {} = {:.6g}",
                    side.gain, range.name, side.gain_at);
  else if (side.failed > 0)
    interval.message = fmt::format("{} fits of the profile did not converge", side.failed);
  interval.ok = interval.message.empty();
  return interval;
}

Interval likelihood_interval(const Likelihood& likelihood, const Fit& best, std::size_t parameter,
                             double level, bool include_simulation) {
  check_in_range("likelihood_interval", "level", level, 1e-6, 1.0 - 1e-12);
  check_parameter("likelihood_interval", likelihood, parameter);
  double threshold = chi2_quantile(level);
  const double statistical = best.statistical_error(parameter);
  if (include_simulation && statistical > 0.0) {
    const double share = best.simulation_error(parameter) / statistical;
    threshold *= 1.0 + share * share;
  }
  return likelihood_interval(likelihood, best, parameter, level, threshold);
}

Scan scan(const Likelihood& likelihood, const Fit& best, std::size_t parameter, double low,
          double high, std::size_t points) {
  check_at_least("scan", "points", points, 2);
  check_parameter("scan", likelihood, parameter);
  Scan out;
  out.parameter = parameter;
  for (std::size_t i = 0; i < points; ++i)
    out.values.push_back(low +
                         (high - low) * static_cast<double>(i) / static_cast<double>(points - 1));
  out.statistic.resize(points);
  const Profile profile(likelihood, best, {parameter});
  std::size_t first_below = 0, position = 0;
  Profile::Value last;
  for (const std::size_t i : outwards(out.values, best.point[parameter], first_below)) {
    const bool fresh = position == 0 || position == first_below;
    const double values[] = {out.values[i]};
    last = profile(values, fresh ? nullptr : &last);
    out.statistic[i] = last.statistic;
    out.failed += last.ok ? 0 : 1;
    ++position;
  }
  return out;
}

Surface scan_surface(const Likelihood& likelihood, const Fit& best, std::size_t first,
                     std::size_t second, std::vector<double> x, std::vector<double> y,
                     Tasks* tasks) {
  check_parameter("scan_surface", likelihood, first);
  check_parameter("scan_surface", likelihood, second);
  if (first == second)
    fail_argument("scan_surface", "second", std::to_string(second),
                  "another parameter than the first");
  check_at_least("scan_surface", "x", x.size(), 1);
  check_at_least("scan_surface", "y", y.size(), 1);
  const auto check_values = [&](const char* name, std::size_t parameter,
                                const std::vector<double>& values) {
    const auto& range = likelihood.parameters()[parameter];
    for (std::size_t i = 0; i < values.size(); ++i)
      check_in_range("scan_surface", fmt::format("{}[{}]", name, i), values[i], range.low,
                     range.high);
  };
  check_values("x", first, x);
  check_values("y", second, y);

  Surface out;
  out.first = first;
  out.second = second;
  out.x = std::move(x);
  out.y = std::move(y);
  out.statistic = Matrix(out.y.size(), out.x.size());
  const Profile profile(likelihood, best, {first, second});
  std::size_t first_below = 0;
  const auto order = outwards(out.x, best.point[first], first_below);
  struct Row {
    std::vector<double> statistic;
    std::size_t failed = 0;
  };
  const auto scan_row = [&](std::size_t r) {
    Row row{std::vector<double>(order.size())};
    Profile::Value last, middle;
    for (std::size_t position = 0; position < order.size(); ++position) {
      const double values[] = {out.x[order[position]], out.y[r]};
      // The way down begins beside the first point of the way up.
      const Profile::Value* neighbour = position == 0 ? nullptr : &last;
      if (position == first_below && position > 0) neighbour = &middle;
      last = profile(values, neighbour);
      if (position == 0) middle = last;
      row.statistic[order[position]] = last.statistic;
      row.failed += last.ok ? 0 : 1;
    }
    return row;
  };
  const auto rows = spread<Row>(tasks, out.y.size(), scan_row,
                                [](auto& bytes, auto& row) { bytes(row.statistic, row.failed); });
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::copy(rows[r].statistic.begin(), rows[r].statistic.end(), out.statistic.row(r).begin());
    out.failed += rows[r].failed;
  }
  return out;
}

}  // namespace neyman
