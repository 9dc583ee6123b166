#include "neyman/inference/composite_test.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "inference/datasets.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/inference/statistics.hpp"

namespace neyman {

namespace {

/// How the asymptotic distribution counts the null's parameters.
struct Degrees {
  std::size_t total = 0;
  bool mixed = false;
};

Degrees count_degrees(const CompositeHypothesis& null, const ParameterSpace& space) {
  const std::size_t n = space.size();
  if (!null.fixed.empty())
    check_same_size("composite_test", "fixed", null.fixed.size(), n, "one a parameter");
  if (!null.ranges.empty())
    check_same_size("composite_test", "ranges", null.ranges.size(), n, "one a parameter");
  Degrees out;
  std::size_t one_sided = 0, two_sided = 0;
  for (std::size_t p = 0; p < n; ++p) {
    const bool is_fixed = !null.fixed.empty() && null.fixed[p];
    const bool confined = !null.ranges.empty() && null.ranges[p];
    const auto& range = space[p];
    if (is_fixed && confined)
      fail_argument("composite_test", "null." + range.name, "fixed and confined", "one of the two");
    if (is_fixed) {
      const double value = *null.fixed[p];
      check_in_range("composite_test", "fixed[" + range.name + "]", value, range.low, range.high);
      ++out.total;
      one_sided += !range.periodic && (value == range.low || value == range.high) ? 1 : 0;
    }
    if (confined) {
      const auto [low, high] = *null.ranges[p];
      check_in_range("composite_test", "ranges[" + range.name + "].low", low, range.low,
                     range.high);
      check_in_range("composite_test", "ranges[" + range.name + "].high", high, low, range.high);
      const bool below = low > range.low, above = high < range.high;
      if (!below && !above) continue;  // the whole range confines nothing
      ++out.total;
      (below && above ? two_sided : one_sided) += 1;
    }
  }
  if (out.total == 0)
    fail_argument("composite_test", "null", "free in every parameter",
                  "a hypothesis that fixes or confines one");
  out.mixed = one_sided == 1 && two_sided == 0;
  return out;
}

double asymptotic_p_value(double statistic, const Degrees& degrees) {
  const auto total = static_cast<double>(degrees.total);
  if (!degrees.mixed) return chi2_tail(statistic, total);
  // χ² with no degree of freedom is zero.
  const double less =
      degrees.total > 1 ? chi2_tail(statistic, total - 1.0) : (statistic <= 0.0 ? 1.0 : 0.0);
  return 0.5 * less + 0.5 * chi2_tail(statistic, total);
}

struct Pair {
  Fit best, null;
  double statistic = 0.0;
};

/// Fits with and without the null; from `start`, or from points over the ranges.
Pair fit_both(const Likelihood& likelihood, const CompositeTestConfig& config,
              const std::vector<double>& start, bool covariance) {
  FitOptions options;
  options.starts = config.starts;
  options.start = start;
  options.covariance = covariance;
  Pair out;
  auto null_options = options;
  null_options.fixed = config.null.fixed;
  null_options.ranges = config.null.ranges;
  out.null = fit(likelihood, null_options);
  out.best = fit(likelihood, options);
  // The whole contains the null: a lower maximum was the wrong one.
  if (out.best.log_likelihood < out.null.log_likelihood) {
    options.start = out.null.point;
    options.starts = 0;
    auto again = fit(likelihood, options);
    if (again.log_likelihood > out.best.log_likelihood) out.best = std::move(again);
  }
  out.statistic = std::max(0.0, 2.0 * (out.best.log_likelihood - out.null.log_likelihood));
  return out;
}

}  // namespace

CompositeTest composite_test(const CompositeTestConfig& config, const Likelihood& likelihood,
                             const Experiment& experiment, Tasks* tasks) {
  const auto degrees = count_degrees(config.null, likelihood.parameters());
  if (config.datasets > 0 && !experiment)
    fail_argument("composite_test", "experiment", "empty", "given where datasets are simulated");
  CompositeTest out;
  out.config = config;
  auto fits = fit_both(likelihood, config, {}, true);
  out.best = std::move(fits.best);
  out.null_fit = std::move(fits.null);
  out.statistic = fits.statistic;
  out.degrees = static_cast<double>(degrees.total);
  out.mixed = degrees.mixed;
  out.p_value = asymptotic_p_value(out.statistic, degrees);
  if (config.datasets == 0) return out;

  Progress progress("test", config.datasets, "fits");
  const auto one = [&](std::size_t d) {
    auto toy = attempt<ToyStatistic>([&](ToyStatistic& into) {
      RandomStream random(config.seed, "composite test", d);
      const auto simulated = experiment(out.null_fit.point, random);
      if (simulated == nullptr)
        fail_argument("composite_test", "what experiment returns", "null", "a likelihood");
      const auto pair = fit_both(*simulated, config, out.null_fit.point, false);
      if (pair.best.ok() && pair.null.ok()) into.statistic = pair.statistic;
    });
    progress.advance();
    return toy;
  };
  const auto toys = spread<ToyStatistic>(tasks, config.datasets, one, ToyStatistic::fields);
  for (const auto& toy : toys) {
    if (toy.statistic)
      out.null_statistics.push_back(*toy.statistic);
    else
      ++out.failed;
  }
  // Where not one dataset worked, the reason is worth more than the count.
  if (out.failed == config.datasets)
    for (const auto& toy : toys)
      if (toy.error) std::rethrow_exception(toy.error);
  std::sort(out.null_statistics.begin(), out.null_statistics.end());
  const auto above =
      out.null_statistics.end() -
      std::lower_bound(out.null_statistics.begin(), out.null_statistics.end(), out.statistic);
  out.simulated_p_value = (1.0 + static_cast<double>(above) + static_cast<double>(out.failed)) /
                          (1.0 + static_cast<double>(config.datasets));
  return out;
}

}  // namespace neyman
