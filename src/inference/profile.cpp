#include "profile.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "neyman/core/check.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/distributed/tasks.hpp"
#include "neyman/inference/statistics.hpp"
#include "profile_curve.hpp"

namespace neyman {

Profile::Profile(const Likelihood& likelihood, const Fit& best, std::vector<std::size_t> held,
                 double reach)
    : likelihood_(likelihood), best_(best), held_(std::move(held)), reach_(reach) {
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
      point[p] += regression_(p, j) * space[held_[j]].difference(values[j], best_.point[held_[j]]);
    point[p] = space[p].periodic ? space[p].wrapped(point[p])
                                 : std::clamp(point[p], space[p].low, space[p].high);
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
  const double half = 0.5 * parameter.range(), from = out.point[free];
  const auto top = enclosed_top(along, from, 0.5 * scale_[free],
                                parameter.periodic ? from - half : parameter.low,
                                parameter.periodic ? from + half : parameter.high);
  if (!top) return false;
  out.point[free] = parameter.wrapped(top->at);
  out.log_likelihood = top->value;
  return true;
}

double Profile::allowance(const Likelihood& likelihood, const Fit& best) {
  // In single precision rounding hides 1e-7 an event.
  const double rounding = std::min(0.05, 1e-7 * static_cast<double>(likelihood.events()));
  return 1e-3 + rounding + 5.0 * best.roughness;
}

std::vector<double> Profile::held_at(std::span<const double> values,
                                     std::vector<double> point) const {
  for (std::size_t j = 0; j < held_.size(); ++j) point[held_[j]] = values[j];
  return point;
}

bool Profile::another_branch(std::span<const double> values, const Value& neighbour,
                             const std::vector<double>& point) const {
  constexpr double near = 3.0;  // conditional errors
  const auto& space = likelihood_.parameters();
  bool as_it_is = false, shifted = false;  // whether these are far from the point
  for (std::size_t p = 0; p < point.size(); ++p) {
    if (std::find(held_.begin(), held_.end(), p) != held_.end()) continue;
    double shift = 0.0;
    for (std::size_t j = 0; j < held_.size(); ++j)
      shift += regression_(p, j) * space[held_[j]].difference(values[j], neighbour.point[held_[j]]);
    const double away = space[p].difference(point[p], neighbour.point[p]);
    as_it_is |= std::abs(away) > near * scale_[p];
    shifted |= std::abs(space[p].difference(away, shift)) > near * scale_[p];
  }
  return as_it_is && shifted;
}

Profile::Value Profile::follow(std::span<const double> values, std::vector<double> start) const {
  Value out;
  out.point = std::move(start);
  FitOptions options;
  options.start = out.point;
  options.fixed.assign(out.point.size(), std::nullopt);
  for (std::size_t j = 0; j < held_.size(); ++j) options.fixed[held_[j]] = values[j];
  const auto free = static_cast<std::size_t>(
      std::find(options.fixed.begin(), options.fixed.end(), std::nullopt) - options.fixed.begin());
  const bool one = held_.size() + 1 == out.point.size() && likelihood_.differentiable();
  if (!one || !find_top(free, out)) {
    options.covariance = false;
    options.scale = scale_;
    options.least = best_.log_likelihood - 0.5 * reach_;
    auto found = fit(likelihood_, options);
    out.log_likelihood = found.log_likelihood;
    out.point = std::move(found.point);
    out.ok = found.ok() || out.log_likelihood < options.least;
  }
  return out;
}

std::vector<double> Profile::in_periods(std::span<const double> values) const {
  std::vector<double> out(values.begin(), values.end());
  for (std::size_t j = 0; j < held_.size(); ++j)
    out[j] = likelihood_.parameters()[held_[j]].wrapped(out[j]);
  return out;
}

Profile::Value Profile::operator()(std::span<const double> at, const Value* neighbour,
                                   const Value* other) const {
  const auto values = in_periods(at);
  Value out;
  out.point = predict(values);
  if (held_.size() == out.point.size()) {
    out.log_likelihood = likelihood_(out.point);
  } else {
    auto start = out.point;
    double highest = likelihood_(start);
    const auto consider = [&](const std::vector<double>& point) {
      auto candidate = held_at(values, point);
      const double value = likelihood_(candidate);
      if (value > highest) {
        highest = value;
        start = std::move(candidate);
      }
    };
    for (const Value* side : {neighbour, other})
      if (side != nullptr) consider(side->point);
    for (std::size_t m = 1; m < best_.maxima.size(); ++m) consider(best_.maxima[m].point);
    out = follow(values, std::move(start));
    for (const Value* side : {neighbour, other})
      if (side != nullptr && another_branch(values, *side, out.point)) {
        auto again = follow(values, held_at(values, side->point));
        if (again.log_likelihood > out.log_likelihood) out = std::move(again);
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

Profile::Value Profile::improve(std::span<const double> at, Value known,
                                const Value& neighbour) const {
  const auto values = in_periods(at);
  if (held_.size() == known.point.size() || !another_branch(values, neighbour, known.point))
    return known;
  auto again = follow(values, held_at(values, neighbour.point));
  if (!(again.log_likelihood > known.log_likelihood)) return known;
  again.statistic = std::clamp(2.0 * (best_.log_likelihood - again.log_likelihood), 0.0, most);
  return again;
}

namespace {

void check_parameter(const char* function, const Likelihood& likelihood, std::size_t parameter) {
  if (parameter >= likelihood.parameters().size())
    fail_argument(function, "parameter", std::to_string(parameter),
                  fmt::format("below {}", likelihood.parameters().size()));
}

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

namespace {

constexpr int most_rounds_of_a_surface = 3;  // of beginning again from a higher maximum

/// Fills the grid; the highest point where ℓ is higher than at the fit.
std::optional<Maximum> fill_surface(const Likelihood& likelihood, const Fit& best, Surface& out,
                                    Tasks* tasks) {
  out.failed = 0;
  out.statistic = Matrix(out.y.size(), out.x.size());
  const Profile profile(likelihood, best, {out.first, out.second});
  std::size_t first_below = 0;
  const auto order = outwards(out.x, best.point[out.first], first_below);
  struct Row {
    std::vector<double> statistic;
    std::size_t failed = 0;
    Maximum highest{{}, Likelihood::forbidden};
  };
  const auto scan_row = [&](std::size_t r) {
    std::vector<Profile::Value> found(order.size());
    const auto at = [&](std::size_t position) {
      return std::array{out.x[order[position]], out.y[r]};
    };
    for (std::size_t position = 0; position < order.size(); ++position) {
      // The way down begins beside the first point of the way up.
      const Profile::Value* neighbour = position == 0 ? nullptr : &found[position - 1];
      if (position == first_below && position > 0) neighbour = &found[0];
      found[position] = profile(at(position), neighbour);
    }
    // And back: what was found further out may be higher further in.
    for (std::size_t position = order.size(); position-- > 1;) {
      const std::size_t inner = position == first_below ? 0 : position - 1;
      found[inner] = profile.improve(at(inner), std::move(found[inner]), found[position]);
    }
    Row row;
    row.statistic.resize(order.size());
    for (std::size_t position = 0; position < order.size(); ++position) {
      auto& value = found[position];
      row.statistic[order[position]] = value.statistic;
      row.failed += value.ok ? 0 : 1;
      if (value.log_likelihood > row.highest.log_likelihood)
        row.highest = {std::move(value.point), value.log_likelihood};
    }
    return row;
  };
  const auto rows = spread<Row>(tasks, out.y.size(), scan_row, [](auto& bytes, auto& row) {
    bytes(row.statistic, row.failed, row.highest.point, row.highest.log_likelihood);
  });
  std::optional<Maximum> higher;
  double highest = best.log_likelihood + Profile::allowance(likelihood, best);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::copy(rows[r].statistic.begin(), rows[r].statistic.end(), out.statistic.row(r).begin());
    out.failed += rows[r].failed;
    if (rows[r].highest.log_likelihood <= highest) continue;
    highest = rows[r].highest.log_likelihood;
    higher = rows[r].highest;
  }
  return higher;
}

}  // namespace

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
      if (range.periodic)
        check_finite("scan_surface", fmt::format("{}[{}]", name, i), values[i]);
      else
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
  Fit better = best;
  for (int round = 0;; ++round) {
    const auto higher = fill_surface(likelihood, better, out, tasks);
    if (!higher || round == most_rounds_of_a_surface) return out;
    out.message = higher_words(likelihood, best, *higher);
    better = refit(likelihood, better, *higher);
    out.higher = better.point;
  }
}

}  // namespace neyman
