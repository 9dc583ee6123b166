#include "neyman/inference/regions.hpp"

#include <algorithm>

#include "profile_curve.hpp"

namespace neyman {

namespace {

constexpr int most_rounds_of_regions = 5;

/// Adds a maximum that was met to those of the fit; a higher one is returned instead.
std::optional<Maximum> take_up(const Likelihood& likelihood, const Maximum& met, Fit& best,
                               bool& added) {
  FitOptions options;
  options.start = met.point;
  options.covariance = false;
  const auto found = fit(likelihood, options);
  const Maximum top{found.point, found.log_likelihood};
  if (top.log_likelihood > best.log_likelihood + Profile::allowance(likelihood, best)) return top;
  const bool known = 2.0 * (best.log_likelihood - top.log_likelihood) > Fit::far ||
                     std::any_of(best.maxima.begin(), best.maxima.end(), [&](const Maximum& other) {
                       return on_one_hill(likelihood, top, other);
                     });
  if (known) return std::nullopt;
  best.maxima.push_back(top);
  added = true;
  return std::nullopt;
}

}  // namespace

Regions find_regions(const Likelihood& likelihood, Fit best, const RegionsPlan& plan) {
  const auto& parameters = likelihood.parameters();
  if (best.maxima.empty()) best.maxima = {{best.point, best.log_likelihood}};
  for (int round = 0;; ++round) {
    const bool last = round + 1 == most_rounds_of_regions;
    const auto advance = [&](std::size_t steps) {
      if (round == 0 && plan.advance) plan.advance(steps);
    };
    Regions out;
    std::optional<Maximum> higher;
    bool added = false;
    for (std::size_t p = 0; p < parameters.size() && !higher; ++p) {
      double most = 0.0;
      for (const double level : plan.levels)
        most = std::max(most, interval_threshold(best, p, level, true));
      ProfileCurve curve(likelihood, best, p, most);
      auto& with = out.intervals.emplace_back();
      auto& without = out.statistical_intervals.emplace_back();
      double reach = 0.0, low = best.point[p], high = best.point[p];
      for (const double level : plan.levels) {
        with.push_back(curve.interval(level, interval_threshold(best, p, level, true), true));
        without.push_back(curve.interval(level, interval_threshold(best, p, level, false)));
        reach = std::max(reach, with.back().high - with.back().low);
        low = std::min(low, with.back().low);
        high = std::max(high, with.back().high);
        advance(1);
      }
      if (plan.scan_points > 1) {
        low = std::min(best.point[p] - reach, low - 0.25 * reach);
        high = std::max(best.point[p] + reach, high + 0.25 * reach);
        // A scan of a periodic parameter goes over the seam, but not further than once round.
        const double half = 0.5 * parameters[p].range();
        const bool periodic = parameters[p].periodic;
        out.scans.push_back(
            curve.scan(std::max(periodic ? best.point[p] - half : parameters[p].low, low),
                       std::min(periodic ? best.point[p] + half : parameters[p].high, high),
                       plan.scan_points));
        advance(plan.scan_points);
      }
      higher = curve.higher();
      for (const auto& met : curve.met())
        if (!higher) higher = take_up(likelihood, met, best, added);
    }
    if (higher && !last) {
      best = refit(likelihood, best, *higher);
      if (plan.add_simulation) plan.add_simulation(best);
      continue;
    }
    // With one parameter the curve itself went on from what it met.
    if (added && plan.add_simulation) plan.add_simulation(best);
    if (added && !last && parameters.size() > 1) continue;
    std::sort(best.maxima.begin() + 1, best.maxima.end(), [](const Maximum& a, const Maximum& b) {
      return a.log_likelihood > b.log_likelihood;
    });
    if (higher) {
      best.status = FitStatus::failed;
      best.message = higher_words(likelihood, best, *higher);
    }
    out.fit = std::move(best);
    return out;
  }
}

}  // namespace neyman
