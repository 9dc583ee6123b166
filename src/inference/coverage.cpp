#include "neyman/inference/coverage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>

#include "inference/datasets.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/random.hpp"
#include "share.hpp"

namespace neyman {

namespace {

constexpr double interval_level = 0.683;

CriticalValue critical_value(const std::vector<double>& sorted, double level, double degrees) {
  const std::size_t n = sorted.size();
  CriticalValue out;
  out.level = level;
  out.asymptotic = chi2_quantile(level, degrees);
  const auto number = [](std::size_t value) { return static_cast<double>(value); };
  // A hair less, so that 0.95 · 100 is 95 and not 95.00000000000001.
  const auto k = static_cast<std::size_t>(std::ceil(level * number(n + 1) - 1e-9));
  out.enough = k <= n;
  out.toys = sorted[std::clamp<std::size_t>(k, 1, n) - 1];

  // P(X_(l) ≤ q < X_(u)) = P(l ≤ B ≤ u − 1), with B the number of datasets below the quantile q.
  const boost::math::binomial below(number(n), level);
  const double tail = 0.5 * (1.0 - interval_level);
  std::size_t l = 0, u = n + 1;
  while (l + 1 <= n && boost::math::cdf(below, number(l)) <= tail) ++l;
  while (u > 1 && boost::math::cdf(boost::math::complement(below, number(u - 2))) <= tail) --u;
  out.low = l == 0 ? 0.0 : sorted[l - 1];
  if (u > n) out.enough = false;
  out.high = sorted[std::min(u, n) - 1];
  return out;
}

}  // namespace

std::vector<CriticalValue> critical_values(std::span<const double> statistics,
                                           std::span<const double> levels, double degrees) {
  check_at_least("critical_values", "statistics", statistics.size(), 1);
  std::vector<double> sorted(statistics.begin(), statistics.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<CriticalValue> out;
  for (std::size_t k = 0; k < levels.size(); ++k) {
    check_in_range("critical_values", fmt::format("levels[{}]", k), levels[k], 1e-6, 1.0 - 1e-12);
    out.push_back(critical_value(sorted, levels[k], degrees));
  }
  return out;
}

std::vector<CoveragePoint> run_coverage(const CoverageConfig& config,
                                        const ParameterSpace& parameters,
                                        const Experiment& experiment, Tasks* tasks) {
  if (!experiment) fail_argument("run_coverage", "experiment", "empty", "a function");
  check_same_size("run_coverage", "points", config.points.cols(), parameters.size(),
                  "one column a parameter");
  const std::size_t points = config.points.rows();
  for (std::size_t i = 0; i < points; ++i)
    parameters.check_inside("run_coverage", config.points.row(i));

  // At each θ the datasets whose regions are asked for it, then those of the critical values.
  std::vector<EnsembleConfig> regions, critical;
  for (std::size_t i = 0; i < points; ++i) {
    auto& ensemble = regions.emplace_back();
    ensemble.datasets = config.datasets;
    ensemble.point.assign(config.points.row(i).begin(), config.points.row(i).end());
    ensemble.levels = config.levels;
    ensemble.interest = config.interest;
    ensemble.starts = config.starts;
    ensemble.seed = derive_seed(config.seed, "coverage", i);
    check_ensemble(ensemble, parameters);
    critical.push_back(ensemble);
    critical.back().datasets = config.critical_datasets;
    critical.back().seed = derive_seed(config.seed, "critical values", i);
  }
  const std::size_t each = config.datasets + config.critical_datasets;
  Progress progress("coverage", points * each, "fits");
  const auto one = [&](std::size_t task) {
    const std::size_t i = task / each, d = task % each;
    auto out = d < config.datasets ? fit_dataset(regions[i], experiment, d)
                                   : fit_dataset(critical[i], experiment, d - config.datasets);
    progress.advance();
    return out;
  };
  // All θ in one list: the more tasks, the less is waited at its end.
  const auto fits = spread<DatasetFit>(tasks, points * each, one, DatasetFit::fields);
  const auto side_of = [&](const EnsembleConfig& ensemble, std::size_t begin) {
    const auto part = std::span(fits).subspan(begin, ensemble.datasets);
    throw_where_all_failed(part);
    return summarise(ensemble, part);
  };
  const auto shares = [&](const std::vector<double>& statistics,
                          const std::vector<CriticalValue>& values) {
    std::vector<double> out;
    for (const auto& value : values) out.push_back(share_at_most(statistics, value.toys));
    return out;
  };

  std::vector<CoveragePoint> out;
  for (std::size_t i = 0; i < points; ++i) {
    CoveragePoint found;
    found.point = regions[i].point;
    found.ensemble = side_of(regions[i], i * each);
    const auto& side = found.ensemble;
    for (const double share : side.coverage)
      found.coverage_error.push_back(
          std::sqrt(share * (1.0 - share) /
                    static_cast<double>(std::max<std::size_t>(1, side.statistic.size()))));
    const auto toys = side_of(critical[i], i * each + config.datasets);
    found.critical_failed = toys.failed;
    if (!toys.statistic.empty()) {
      found.critical =
          critical_values(toys.statistic, config.levels, static_cast<double>(parameters.size()));
      found.coverage_critical = shares(side.statistic, found.critical);
      for (std::size_t k = 0; k < config.interest.size(); ++k) {
        found.profile_critical.push_back(
            critical_values(toys.profiles[k].statistic, config.levels, 1.0));
        found.profile_coverage_critical.push_back(
            shares(side.profiles[k].statistic, found.profile_critical.back()));
      }
    }
    out.push_back(std::move(found));
  }
  return out;
}

}  // namespace neyman
