#include "neyman/inference/ensemble.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "neyman/core/check.hpp"
#include "neyman/core/parallel.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/random.hpp"
#include "neyman/ratios/tabulated_ratio.hpp"

namespace neyman {

namespace {

/// Datasets from which the share of finite simulation is estimated.
constexpr std::size_t simulation_datasets = 4;
/// Events from which the range of a table is taken.
constexpr std::size_t range_events = 20000;

struct Outcome {
  bool ok = false;
  std::vector<double> estimate;
  double statistic = 0.0;
  Fit fit;
};

Outcome fit_dataset(const ParameterSpace& parameters, const MixtureRatio& ratio, MatrixView x,
                    const std::vector<double>& point) {
  const MixtureLikelihood likelihood(parameters, ratio, x);
  Outcome out;
  FitOptions options;
  options.start = point;
  out.fit = fit(likelihood, options);
  out.ok = out.fit.ok();
  out.estimate = out.fit.point;
  out.statistic = test_statistic(likelihood, out.fit, point);
  return out;
}

EnsembleSide summarise(const EnsembleConfig& config, const std::vector<Outcome>& outcomes) {
  const std::size_t dimension = config.point.size();
  EnsembleSide side;
  side.estimates = Matrix(0, dimension);
  for (const auto& outcome : outcomes) {
    if (!outcome.ok) {
      ++side.failed;
      continue;
    }
    side.estimates.append(MatrixView(outcome.estimate.data(), 1, dimension));
    side.statistic.push_back(outcome.statistic);
  }
  for (std::size_t p = 0; p < dimension; ++p) {
    const auto column = side.estimates.column(p);
    side.means.push_back(mean(column));
    side.spreads.push_back(standard_deviation(column));
  }
  side.wilks = ks_test_chi2(side.statistic, static_cast<double>(dimension));
  return side;
}

double covered(const std::vector<double>& statistic, double threshold) {
  if (statistic.empty()) return 0.0;
  const auto inside = std::count_if(statistic.begin(), statistic.end(),
                                    [&](double value) { return value <= threshold; });
  return static_cast<double>(inside) / static_cast<double>(statistic.size());
}

/// σ²_simulation / σ²_statistical by parameter at one dataset.
std::vector<double> simulation_variance_share(const ParameterSpace& parameters,
                                              const MixtureRatio& ratio, MatrixView x, Fit fit) {
  add_simulation_covariance(fit, parameters, ratio, x, {});
  std::vector<double> out;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const double statistical = fit.statistical_error(p);
    const double simulation = fit.simulation_error(p);
    out.push_back(statistical > 0.0 ? simulation * simulation / (statistical * statistical) : 0.0);
  }
  return out;
}

}  // namespace

EnsembleResult run_ensemble(const EnsembleConfig& config, const ParameterSpace& parameters,
                            const Distribution& simulator, const MixtureRatio& approximate,
                            const MixtureRatio* exact) {
  check_at_least("run_ensemble", "datasets", config.datasets, 1);
  check_at_least("run_ensemble", "events", config.events, 1);
  parameters.check_inside("run_ensemble", config.point);
  const std::size_t dimension = parameters.size();

  Matrix typical(simulator.dimension() == 1 ? range_events : 0, simulator.dimension());
  RandomStream range_random(config.seed, "ensemble range");
  simulator.sample(config.point, range_random, typical);
  const auto table = tabulate(approximate, typical, config.datasets * config.events);
  const MixtureRatio& ratio = table ? static_cast<const MixtureRatio&>(*table) : approximate;
  std::vector<Outcome> learned(config.datasets), known(exact != nullptr ? config.datasets : 0);
  std::vector<std::vector<double>> shares(config.datasets);
  Progress progress("ensemble", config.datasets);
  parallel_tasks(config.datasets, [&](std::size_t d) {
    Matrix x(config.events, simulator.dimension());
    RandomStream random(config.seed, "ensemble", d);
    simulator.sample(config.point, random, x);
    learned[d] = fit_dataset(parameters, ratio, x, config.point);
    if (exact != nullptr) known[d] = fit_dataset(parameters, *exact, x, config.point);
    if (d < simulation_datasets && approximate.replicas() > 0 && learned[d].ok)
      shares[d] = simulation_variance_share(parameters, approximate, x, learned[d].fit);
    progress.advance();
  });

  EnsembleResult out;
  out.config = config;
  out.approximate = summarise(config, learned);
  if (exact != nullptr) out.exact = summarise(config, known);

  out.simulation_share.assign(dimension, 0.0);
  double used = 0.0;
  for (const auto& share : shares) {
    if (share.empty()) continue;
    used += 1.0;
    for (std::size_t p = 0; p < dimension; ++p) out.simulation_share[p] += share[p];
  }
  double widening = 1.0;
  for (double& share : out.simulation_share) {
    share = used > 0.0 ? share / used : 0.0;
    widening += share / static_cast<double>(dimension);
    share = std::sqrt(share);
  }
  for (const double level : config.levels) {
    const double threshold = chi2_quantile(level, static_cast<double>(dimension));
    out.approximate.coverage.push_back(covered(out.approximate.statistic, threshold));
    out.coverage_with_simulation.push_back(
        covered(out.approximate.statistic, threshold * widening));
    if (out.exact) out.exact->coverage.push_back(covered(out.exact->statistic, threshold));
  }
  for (std::size_t p = 0; p < dimension; ++p) {
    const auto& base = out.exact ? *out.exact : out.approximate;
    const double centre = out.exact ? out.exact->means[p] : config.point[p];
    out.bias.push_back(base.spreads[p] > 0.0 ? (out.approximate.means[p] - centre) / base.spreads[p]
                                             : 0.0);
  }
  return out;
}

}  // namespace neyman
