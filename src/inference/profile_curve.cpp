#include "profile_curve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/tools/minima.hpp>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <utility>

#include "free_problem.hpp"
#include "neyman/core/check.hpp"
#include "neyman/inference/statistics.hpp"

namespace neyman {

namespace {

constexpr std::size_t most_valleys = 8;
constexpr int valley_bits = 12, barrier_bits = 8;  // of the place of a minimum
constexpr std::uintmax_t most_valley_values = 24, most_barrier_values = 10;
constexpr int most_redone = 3;  // times of beginning again from a higher maximum

/// Cells of the grid over the range. With other parameters each node is a fit; without
/// gradients a value may be dear.
std::size_t grid_cells(const Likelihood& likelihood) {
  const bool alone = likelihood.parameters().size() == 1;
  if (!likelihood.differentiable()) return alone ? 32 : 16;
  if (likelihood.events() > cheap_events) return alone ? 50 : 24;
  return alone ? 100 : 32;
}

void check_parameter_of(const char* function, const Likelihood& likelihood, std::size_t parameter) {
  if (parameter >= likelihood.parameters().size())
    fail_argument(function, "parameter", std::to_string(parameter),
                  fmt::format("below {}", likelihood.parameters().size()));
}

}  // namespace

ProfileCurve::ProfileCurve(const Likelihood& likelihood, const Fit& best, std::size_t parameter,
                           double most)
    : likelihood_(likelihood),
      best_(best),
      parameter_(parameter),
      most_(most),
      range_(likelihood.parameters()[parameter]),
      profile_(likelihood, best, {parameter}, 4.0 * most + 10.0) {
  if (range_.periodic) {
    const double half = 0.5 * range_.range();
    range_.low = best.point[parameter] - half;
    range_.high = best.point[parameter] + half;
  }
  sloping_ = best.simulation_known && !best.gradient_covariance.empty() &&
             !best.statistical_error_known(parameter);
  for (std::size_t m = 1; m < best.maxima.size(); ++m)
    uncertain_heights_ |= best.maxima[m].simulation_error > 0.0;
  known_[best.point[parameter]] = {0.0, best.log_likelihood, best.point, true};
  for (std::size_t m = 1; m < best.maxima.size(); ++m) {
    const auto& other = best.maxima[m];
    auto& value = known_[place_of(other)];
    if (!value.point.empty() && value.log_likelihood >= other.log_likelihood) continue;
    value = {std::max(0.0, 2.0 * (best.log_likelihood - other.log_likelihood)),
             other.log_likelihood, other.point, true};
  }
}

double ProfileCurve::placed(double value) const { return range_.wrapped(value); }

const Profile::Value& ProfileCurve::at(double asked) {
  const double value = placed(asked);
  const auto above = known_.lower_bound(value);
  if (above != known_.end() && above->first == value) return above->second;
  const Value* right = above == known_.end() ? nullptr : &above->second;
  const Value* left = above == known_.begin() ? nullptr : &std::prev(above)->second;
  const double values[] = {value};
  return known_.emplace_hint(above, value, profile_(values, left, right))->second;
}

double ProfileCurve::raised(double threshold, const Value& at) const {
  if (!raise_) return threshold;
  const double base = sloping_ ? raised_at_slope(threshold, at) : threshold;
  return uncertain_heights_ ? base + raised_around_maxima(threshold, at) : base;
}

/// What belongs to another maximum than the first is raised with that one: by as many standard
/// deviations of its height as the threshold has, but not above the first.
double ProfileCurve::raised_around_maxima(double threshold, const Value& at) const {
  const Maximum* nearest = nullptr;
  double least = 0.0;
  for (const auto& maximum : best_.maxima) {
    double distance = 0.0;
    for (std::size_t p = 0; p < maximum.point.size(); ++p) {
      const auto& parameter = likelihood_.parameters()[p];
      distance += std::pow(
          parameter.difference(at.point[p], maximum.point[p]) / (parameter.high - parameter.low),
          2);
    }
    if (nearest != nullptr && distance >= least) continue;
    least = distance;
    nearest = &maximum;
  }
  if (nearest == nullptr) return 0.0;
  const double lower = 2.0 * (best_.log_likelihood - nearest->log_likelihood);
  return std::min(std::max(0.0, lower), 2.0 * std::sqrt(threshold) * nearest->simulation_error);
}

double ProfileCurve::raised_at_slope(double threshold, const Value& at) const {
  const auto& covariance = best_.gradient_covariance;
  const auto away = [&](std::size_t p) {
    return likelihood_.parameters()[p].difference(at.point[p], best_.point[p]);
  };
  double variance = 0.0;
  for (std::size_t p = 0; p < covariance.rows(); ++p)
    for (std::size_t q = 0; q < covariance.cols(); ++q)
      variance += covariance(p, q) * away(p) * away(q);
  return threshold + 2.0 * std::sqrt(threshold * std::max(0.0, variance));
}

double ProfileCurve::excess(double value, double threshold) {
  const Value& found = at(value);
  const double limit = raised(threshold, found);
  return std::min(found.statistic, 100.0 * (1.0 + limit)) - limit;
}

void ProfileCurve::improve(Known::iterator known, const Value& neighbour) {
  const double values[] = {known->first};
  known->second = profile_.improve(values, std::move(known->second), neighbour);
}

/// Branches that were found further out may be the lower ones further in.
void ProfileCurve::follow_inwards() {
  const auto centre = known_.find(best_.point[parameter_]);
  for (auto i = std::prev(known_.end()); i != centre; --i)
    if (std::prev(i) != centre) improve(std::prev(i), i->second);
  for (auto i = known_.begin(); i != centre; ++i)
    if (std::next(i) != centre) improve(std::next(i), i->second);
}

void ProfileCurve::explore() {
  if (explored_) return;
  explored_ = true;
  raise_ = sloping_ || uncertain_heights_;
  std::vector<double> hills;
  for (const auto& [value, profile] : known_)
    if (inside(profile, most_)) hills.push_back(value);
  for (const double hill : hills)
    for (const double end : {range_.low, range_.high}) walk(hill, end);
  const std::size_t cells = grid_cells(likelihood_);
  std::vector<double> nodes;
  for (std::size_t i = 0; i <= cells; ++i)
    nodes.push_back(i == cells ? range_.high
                               : range_.low + (range_.high - range_.low) * static_cast<double>(i) /
                                                  static_cast<double>(cells));
  // From the estimate outwards.
  const auto middle = std::partition_point(nodes.begin(), nodes.end(),
                                           [&](double v) { return v < best_.point[parameter_]; });
  for (auto i = middle; i != nodes.end(); ++i) at(*i);
  for (auto i = middle; i != nodes.begin(); --i) at(*std::prev(i));
  follow_inwards();
  search_valleys();
}

/// In steps of about a standard error until the statistic is above the largest threshold.
void ProfileCurve::walk(double from, double end) {
  if (from == end) return;
  const double error = best_.statistical_error(parameter_);
  const double direction = end < from ? -1.0 : 1.0;
  double step = error > 0.0 ? error : 0.05 * std::abs(end - from);
  for (double value = from; value != end; step *= 1.5) {
    value += direction * step;
    if ((value - end) * direction >= 0.0) value = end;
    if (!inside(at(value), most_)) return;
  }
}

/// Values that are lower than those on both sides may have a maximum of ℓ beside them that lies
/// within the threshold.
void ProfileCurve::search_valleys() {
  struct Valley {
    double low, middle, high, statistic;
  };
  std::vector<Valley> valleys;
  const auto is_maximum = [&](double value) {
    return std::any_of(best_.maxima.begin(), best_.maxima.end(),
                       [&](const Maximum& m) { return place_of(m) == value; });
  };
  for (auto i = known_.begin(); i != known_.end(); ++i) {
    bool first = i == known_.begin(), last = std::next(i) == known_.end();
    if (range_.periodic && last && !first) continue;  // it is the first one
    // Of a circle, the value before the first lies at its other end.
    const bool over_cut = range_.periodic && first && known_.size() > 2;
    const auto before = over_cut ? std::prev(known_.end(), 2) : first ? i : std::prev(i);
    const double low = over_cut ? before->first - range_.range() : before->first;
    first = first && !over_cut;
    if ((first && last) || i->first == best_.point[parameter_] || is_maximum(i->first)) continue;
    const double here = i->second.statistic;
    // What a flat stretch and rounding leave is no valley.
    const double depth = 1e-3 + 10.0 * best_.roughness;
    if (!first && before->second.statistic < here + (last ? depth : 1e-9)) continue;
    if (!last && std::next(i)->second.statistic < here + (first ? depth : 1e-9)) continue;
    valleys.push_back({low, i->first, last ? i->first : std::next(i)->first, here});
  }
  std::stable_sort(valleys.begin(), valleys.end(),
                   [](const Valley& a, const Valley& b) { return a.statistic < b.statistic; });
  if (valleys.size() > most_valleys) valleys.resize(most_valleys);
  for (const auto& valley : valleys) {
    double lowest = valley.middle;
    if (valley.low < valley.middle && valley.middle < valley.high) {
      std::uintmax_t values = most_valley_values;
      const auto found = boost::math::tools::brent_find_minima(
          [&](double value) {
            const double statistic = at(value).statistic;
            if (statistic < known_.at(lowest).statistic) lowest = placed(value);
            return statistic;
          },
          valley.low, valley.high, valley_bits, values);
      static_cast<void>(found);
    }
    const Value& top = known_.at(lowest);
    if (!inside(top, most_)) continue;
    met_.push_back({top.point, top.log_likelihood});
    for (const double end : {range_.low, range_.high}) walk(lowest, end);
  }
}

/// Values within a threshold that are higher than those on both sides may hide a barrier.
void ProfileCurve::search_barriers(double threshold) {
  std::vector<std::pair<double, double>> cells;
  for (auto i = known_.begin(); i != known_.end(); ++i) {
    if (i == known_.begin() || std::next(i) == known_.end()) continue;
    const double here = i->second.statistic;
    const bool peak =
        here > std::prev(i)->second.statistic && here > std::next(i)->second.statistic;
    if (peak && here <= threshold && here > 0.6 * threshold)
      cells.emplace_back(std::prev(i)->first, std::next(i)->first);
  }
  for (const auto& [low, high] : cells) {
    std::uintmax_t values = most_barrier_values;
    boost::math::tools::brent_find_minima([&](double value) { return -at(value).statistic; }, low,
                                          high, barrier_bits, values);
  }
}

double ProfileCurve::crossing(double a, double b, double threshold) {
  const double excess_a = excess(a, threshold), excess_b = excess(b, threshold);
  if (excess_a == 0.0) return a;
  if (excess_b == 0.0) return b;
  const double centre = best_.point[parameter_];
  const double tolerance = 1e-7 * std::max(std::max(std::abs(a - centre), std::abs(b - centre)),
                                           1e-3 * std::max(std::abs(a), std::abs(b)));
  std::uintmax_t most = 60;
  const auto [low, high] = boost::math::tools::toms748_solve(
      [&](double value) { return excess(value, threshold); }, a, b, excess_a, excess_b,
      [&](double l, double h) { return h - l <= tolerance; }, most);
  return 0.5 * (low + high);
}

/// Whether the set ends at a value because those beyond it are not allowed, or because the others
/// cannot go where they would.
bool ProfileCurve::at_edge(double end, double threshold) const {
  constexpr double clearly = 0.98;  // of the threshold
  const auto above = known_.upper_bound(end);
  if (above == known_.begin() || above == known_.end()) return false;
  const Value *a = &std::prev(above)->second, *b = &above->second;
  if (a->statistic > b->statistic) std::swap(a, b);
  const bool wall = !(b->log_likelihood > 0.5 * Likelihood::forbidden);
  return (wall && a->statistic < clearly * raised(threshold, *a)) || beside_edge(a->point);
}

bool ProfileCurve::beside_edge(const std::vector<double>& point) const {
  constexpr double beside = 0.05;  // of the statistical error
  const auto* region = likelihood_.region();
  if (region == nullptr) return false;
  for (std::size_t p = 0; p < point.size(); ++p)
    for (const double side : {-1.0, 1.0}) {
      const auto& range = likelihood_.parameters()[p];
      auto other = point;
      other[p] =
          std::clamp(point[p] + side * beside * best_.statistical_error(p), range.low, range.high);
      if (!region->holds(other)) return true;
    }
  return false;
}

Interval ProfileCurve::of_parabola(double level, double threshold) const {
  const double centre = best_.point[parameter_];
  const double half = best_.statistical_error(parameter_) * std::sqrt(threshold);
  Interval interval;
  interval.level = level;
  if (range_.periodic) {
    interval.pieces =
        on_circle({{std::max(range_.low, centre - half), std::min(range_.high, centre + half)}});
    interval.low = interval.pieces.front().low;
    interval.high = interval.pieces.back().high;
    interval.ok = best_.ok();
    if (!interval.ok) interval.message = "the fit failed";
    return interval;
  }
  interval.low_at_bound = centre - half <= range_.low;
  interval.high_at_bound = centre + half >= range_.high;
  interval.low = std::max(range_.low, centre - half);
  interval.high = std::min(range_.high, centre + half);
  interval.pieces = {{interval.low, interval.high}};
  interval.ok = best_.ok();
  if (!interval.ok) interval.message = "the fit failed";
  return interval;
}

std::string ProfileCurve::doubt(double threshold) const {
  if (!best_.ok()) return "the fit failed";
  if (const auto above = higher()) return higher_words(likelihood_, best_, *above);
  // Far above the threshold a profile may be as wrong as it likes.
  const auto failed = std::count_if(known_.begin(), known_.end(), [&](const auto& entry) {
    return !entry.second.ok && entry.second.statistic <= 2.0 * threshold + 2.0;
  });
  return failed > 0 ? fmt::format("{} fits of the profile did not converge", failed) : "";
}

Interval ProfileCurve::interval(double level, double threshold, bool with_simulation) {
  if (best_.rough() && best_.statistical_error(parameter_) > 0.0)
    return of_parabola(level, threshold);
  explore();
  raise_ = with_simulation && (sloping_ || uncertain_heights_);
  search_barriers(threshold);
  std::vector<std::pair<double, bool>> held;
  for (const auto& [value, profile] : known_) held.emplace_back(value, inside(profile, threshold));
  std::vector<FitRange> pieces;
  double begin = range_.low;
  for (std::size_t i = 1; i < held.size(); ++i) {
    if (held[i].second == held[i - 1].second) continue;
    const double end = crossing(held[i - 1].first, held[i].first, threshold);
    if (held[i].second)
      begin = end;
    else
      pieces.push_back({begin, end});
  }
  if (held.back().second) pieces.push_back({begin, range_.high});

  // Where ℓ fluctuates, so do its crossings: a gap must stand out.
  const double noise = 1e-6 + 10.0 * best_.roughness;
  Interval out;
  out.level = level;
  for (const auto& piece : pieces) {
    double barrier = 0.0;
    if (!out.pieces.empty())
      for (auto i = known_.lower_bound(out.pieces.back().high);
           i != known_.end() && i->first <= piece.low; ++i)
        barrier = std::max(barrier, i->second.statistic - raised(threshold, i->second));
    if (!out.pieces.empty() && barrier < noise)
      out.pieces.back().high = piece.high;
    else
      out.pieces.push_back(piece);
  }
  if (range_.periodic) out.pieces = on_circle(std::move(out.pieces));
  out.low = out.pieces.front().low;
  out.high = out.pieces.back().high;
  out.low_at_bound = !range_.periodic && out.low == range_.low;
  out.high_at_bound = !range_.periodic && out.high == range_.high;
  out.low_at_edge = !range_.periodic && !out.low_at_bound && at_edge(out.low, threshold);
  out.high_at_edge = !range_.periodic && !out.high_at_bound && at_edge(out.high, threshold);
  out.message = doubt(threshold);
  out.ok = out.message.empty();
  return out;
}

std::vector<FitRange> ProfileCurve::on_circle(std::vector<FitRange> pieces) const {
  const auto& parameter = likelihood_.parameters()[parameter_];
  const double period = parameter.range(), centre = best_.point[parameter_];
  const bool over_cut = pieces.front().low == range_.low && pieces.back().high == range_.high;
  if (over_cut && pieces.size() == 1) return {{parameter.low, parameter.high}};
  if (over_cut) {
    const FitRange last = pieces.back();
    pieces.pop_back();
    if (pieces.front().high >= centre)
      pieces.front().low = last.low - period;
    else
      pieces.front() = {last.low, pieces.front().high + period};
  }
  for (auto& piece : pieces) {
    if (piece.low <= centre && centre <= piece.high) continue;
    const double middle = 0.5 * (piece.low + piece.high);
    const double shift = parameter.wrapped(middle) - middle;
    piece.low += shift;
    piece.high += shift;
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const FitRange& a, const FitRange& b) { return a.low < b.low; });
  return pieces;
}

bool Interval::holds(double value, const Parameter& parameter) const {
  return std::any_of(pieces.begin(), pieces.end(), [&](const FitRange& piece) {
    double at = value;
    if (parameter.periodic)
      at -= parameter.range() * std::floor((value - piece.low) / parameter.range());
    return piece.low <= at && at <= piece.high;
  });
}

Scan ProfileCurve::scan(double low, double high, std::size_t points) {
  Scan out;
  out.parameter = parameter_;
  for (std::size_t i = 0; i < points; ++i)
    out.values.push_back(low +
                         (high - low) * static_cast<double>(i) / static_cast<double>(points - 1));
  std::vector<double> order = out.values;
  const double centre = best_.point[parameter_];
  std::stable_sort(order.begin(), order.end(), [&](double a, double b) {
    return std::pair(a < centre, std::abs(a - centre)) <
           std::pair(b < centre, std::abs(b - centre));
  });
  for (const double value : order) at(value);
  follow_inwards();
  for (const double value : out.values) {
    out.statistic.push_back(at(value).statistic);
    out.failed += at(value).ok ? 0 : 1;
  }
  return out;
}

std::optional<Maximum> ProfileCurve::higher() const {
  const auto top = std::max_element(known_.begin(), known_.end(), [](const auto& a, const auto& b) {
    return a.second.log_likelihood < b.second.log_likelihood;
  });
  const auto& highest = top->second;
  if (highest.log_likelihood <= best_.log_likelihood + Profile::allowance(likelihood_, best_))
    return std::nullopt;
  return Maximum{highest.point, highest.log_likelihood};
}

std::string higher_words(const Likelihood& likelihood, const Fit& best, const Maximum& higher) {
  std::string at;
  for (std::size_t p = 0; p < higher.point.size(); ++p)
    at += fmt::format("{}{} = {:.6g}", p == 0 ? "" : ", ", likelihood.parameters()[p].name,
                      higher.point[p]);
  return fmt::format("the likelihood is higher than that of the fit by {:.3g} at {}",
                     higher.log_likelihood - best.log_likelihood, at);
}

double interval_threshold(const Fit& best, std::size_t parameter, double level,
                          bool include_simulation) {
  check_in_range("likelihood_interval", "level", level, 1e-6, 1.0 - 1e-12);
  double threshold = chi2_quantile(level);
  const double statistical = best.statistical_error(parameter);
  if (include_simulation && statistical > 0.0) {
    const double share = best.simulation_error(parameter) / statistical;
    threshold *= 1.0 + share * share;
  }
  return threshold;
}

bool on_one_hill(const Likelihood& likelihood, const Maximum& a, const Maximum& b) {
  const double least = std::min(a.log_likelihood, b.log_likelihood) -
                       std::min(0.05, 1e-3 + 1e-7 * static_cast<double>(likelihood.events()));
  for (const double part : {0.5, 0.25, 0.75}) {
    auto between = a.point;
    for (std::size_t p = 0; p < between.size(); ++p)
      between[p] += part * likelihood.parameters()[p].difference(b.point[p], a.point[p]);
    between = likelihood.parameters().wrapped(between);
    if (!(likelihood(between) >= least)) return false;
  }
  return true;
}

namespace {

/// What a curve tells, from the highest maximum that it comes upon.
template <class Result, class Ask>
Result from_highest(const Likelihood& likelihood, const Fit& best, std::size_t parameter,
                    double most, Ask&& ask) {
  Fit better = best;
  bool met = false;
  for (int round = 0;; ++round) {
    ProfileCurve curve(likelihood, better, parameter, most);
    Result result = ask(curve);
    const auto higher = curve.higher();
    if (higher && round < most_redone) {
      met = true;
      better = refit(likelihood, better, *higher);
      continue;
    }
    if (met) {
      result.message = higher_words(likelihood, best, {better.point, better.log_likelihood});
      result.higher = better.point;
    }
    return result;
  }
}

}  // namespace

namespace {

Interval interval_of(const Likelihood& likelihood, const Fit& best, std::size_t parameter,
                     double level, double threshold, bool with_simulation) {
  auto interval = from_highest<Interval>(
      likelihood, best, parameter, threshold,
      [&](ProfileCurve& curve) { return curve.interval(level, threshold, with_simulation); });
  interval.ok = interval.ok && interval.message.empty();
  return interval;
}

}  // namespace

Interval likelihood_interval(const Likelihood& likelihood, const Fit& best, std::size_t parameter,
                             double level, double threshold) {
  check_parameter_of("likelihood_interval", likelihood, parameter);
  check_positive("likelihood_interval", "threshold", threshold);
  return interval_of(likelihood, best, parameter, level, threshold, false);
}

Interval likelihood_interval(const Likelihood& likelihood, const Fit& best, std::size_t parameter,
                             double level, bool include_simulation) {
  check_parameter_of("likelihood_interval", likelihood, parameter);
  return interval_of(likelihood, best, parameter, level,
                     interval_threshold(best, parameter, level, include_simulation),
                     include_simulation);
}

Scan scan(const Likelihood& likelihood, const Fit& best, std::size_t parameter, double low,
          double high, std::size_t points) {
  check_at_least("scan", "points", points, 2);
  check_parameter_of("scan", likelihood, parameter);
  return from_highest<Scan>(likelihood, best, parameter, Profile::most,
                            [&](ProfileCurve& curve) { return curve.scan(low, high, points); });
}

}  // namespace neyman
