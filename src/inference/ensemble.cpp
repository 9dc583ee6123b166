#include "neyman/inference/ensemble.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "inference/datasets.hpp"
#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/random.hpp"
#include "neyman/ratios/tabulated_ratio.hpp"
#include "share.hpp"

namespace neyman {

namespace {

/// Datasets from which the share of finite simulation is estimated.
constexpr std::size_t simulation_datasets = 4;
/// Events from which the range of a table is taken.
constexpr std::size_t range_events = 20000;

/// What one dataset gave for both likelihoods.
struct BothFits {
  DatasetFit learned, known;
  std::vector<double> share;  // of finite simulation, where it was asked for
  std::exception_ptr error;

  static constexpr auto fields = [](auto& bytes, auto& both) {
    DatasetFit::fields(bytes, both.learned);
    DatasetFit::fields(bytes, both.known);
    bytes(both.share, both.error);
  };
};

/// σ²_simulation / σ²_statistical by parameter at one dataset.
std::vector<double> simulation_variance_share(Fit fit, const Matrix& gradient_covariance) {
  add_simulation_covariance(fit, gradient_covariance);
  std::vector<double> out;
  for (std::size_t p = 0; p < fit.point.size(); ++p) {
    const double statistical = fit.statistical_error(p);
    const double simulation = fit.simulation_error(p);
    out.push_back(statistical > 0.0 ? simulation * simulation / (statistical * statistical) : 0.0);
  }
  return out;
}

}  // namespace

DatasetFit fit_dataset(const EnsembleConfig& config, const Likelihood& likelihood, Fit* best) {
  DatasetFit out;
  FitOptions options;
  options.start = config.point;
  options.starts = config.starts;
  auto found = fit(likelihood, options);
  out.ok = found.ok();
  out.point = found.point;
  for (std::size_t p = 0; p < out.point.size(); ++p)
    if (const auto& parameter = likelihood.parameters()[p]; parameter.periodic)
      out.point[p] = config.point[p] + parameter.difference(found.point[p], config.point[p]);
  out.statistic = test_statistic(likelihood, found, config.point);
  for (const std::size_t parameter : config.interest) {
    std::vector<std::optional<double>> fixed(config.point.size());
    fixed[parameter] = config.point[parameter];
    // −2 log Λ of one parameter is at most that of all: θ itself is one of the profiled points.
    out.profiles.push_back(std::min(out.statistic, profile_statistic(likelihood, found, fixed)));
  }
  if (best != nullptr) *best = std::move(found);
  return out;
}

DatasetFit fit_dataset(const EnsembleConfig& config, const Experiment& experiment, std::size_t d) {
  return attempt<DatasetFit>([&](DatasetFit& out) {
    RandomStream random(config.seed, "ensemble", d);
    const auto likelihood = experiment(config.point, random);
    if (likelihood == nullptr)
      fail_argument("run_ensemble", "what experiment returns", "null", "a likelihood");
    out = fit_dataset(config, *likelihood);
  });
}

EnsembleSide summarise(const EnsembleConfig& config, std::span<const DatasetFit> fits) {
  const std::size_t dimension = config.point.size();
  EnsembleSide side;
  side.estimates = Matrix(0, dimension);
  for (const std::size_t parameter : config.interest) {
    side.profiles.emplace_back();
    side.profiles.back().parameter = parameter;
  }
  for (const auto& found : fits) {
    if (!found.ok) {
      ++side.failed;
      continue;
    }
    side.estimates.append(MatrixView(found.point.data(), 1, dimension));
    side.statistic.push_back(found.statistic);
    for (std::size_t k = 0; k < side.profiles.size(); ++k)
      side.profiles[k].statistic.push_back(found.profiles[k]);
  }
  for (std::size_t p = 0; p < dimension; ++p) {
    const auto column = side.estimates.column(p);
    side.means.push_back(mean(column));
    side.spreads.push_back(standard_deviation(column));
  }
  const auto degrees = static_cast<double>(dimension);
  side.wilks = ks_test_chi2(side.statistic, degrees);
  for (auto& profile : side.profiles) profile.wilks = ks_test_chi2(profile.statistic);
  for (const double level : config.levels) {
    side.coverage.push_back(share_at_most(side.statistic, chi2_quantile(level, degrees)));
    for (auto& profile : side.profiles)
      profile.coverage.push_back(share_at_most(profile.statistic, chi2_quantile(level)));
  }
  return side;
}

void check_ensemble(const EnsembleConfig& config, const ParameterSpace& parameters) {
  check_at_least("run_ensemble", "datasets", config.datasets, 1);
  parameters.check_inside("run_ensemble", config.point);
  for (std::size_t k = 0; k < config.interest.size(); ++k)
    if (config.interest[k] >= parameters.size())
      fail_argument("run_ensemble", fmt::format("interest[{}]", k),
                    std::to_string(config.interest[k]), fmt::format("below {}", parameters.size()));
}

EnsembleSide run_ensemble(const EnsembleConfig& config, const ParameterSpace& parameters,
                          const Experiment& experiment, Progress* whole, Tasks* tasks) {
  check_ensemble(config, parameters);
  if (!experiment) fail_argument("run_ensemble", "experiment", "empty", "a function");
  std::optional<Progress> own;
  if (whole == nullptr) own.emplace("ensemble", config.datasets, "fits");
  Progress& progress = whole != nullptr ? *whole : *own;
  const auto one = [&](std::size_t d) {
    auto out = fit_dataset(config, experiment, d);
    progress.advance();
    return out;
  };
  const auto fits = spread<DatasetFit>(tasks, config.datasets, one, DatasetFit::fields);
  throw_where_all_failed<DatasetFit>(fits);
  return summarise(config, fits);
}

EnsembleResult run_ensemble(const EnsembleConfig& config, const ParameterSpace& parameters,
                            const Distribution& simulator, const EnsembleModel& approximate,
                            const LikelihoodFactory& exact,
                            const std::vector<Constraint>& constraints, Tasks* tasks) {
  check_ensemble(config, parameters);
  check_at_least("run_ensemble", "events", config.events, 1);
  if (!approximate.likelihood) fail_argument("run_ensemble", "likelihood", "empty", "a function");
  const std::size_t dimension = parameters.size();
  const auto simulate_and_fit = [&](std::size_t d, BothFits& out) {
    RandomStream random(config.seed, "ensemble", d);
    Matrix x(config.events, simulator.dimension());
    simulator.sample(config.point, random, x);
    std::vector<Constraint> drawn;
    for (const auto& constraint : constraints)
      drawn.push_back(constraint.sampled(config.point[constraint.parameter()], random));
    Fit best;
    const auto fit_with = [&](const LikelihoodFactory& factory, Matrix events) {
      std::shared_ptr<const Likelihood> likelihood = factory(std::move(events));
      if (likelihood == nullptr)
        fail_argument("run_ensemble", "what likelihood returns", "null", "a likelihood");
      if (!drawn.empty()) likelihood = std::make_shared<ConstrainedLikelihood>(likelihood, drawn);
      return fit_dataset(config, *likelihood, &best);
    };
    const bool share = d < simulation_datasets && approximate.simulation_gradient_covariance;
    if (exact) out.known = fit_with(exact, x);
    out.learned = fit_with(approximate.likelihood, share ? x : std::move(x));
    if (share && out.learned.ok)
      out.share =
          simulation_variance_share(best, approximate.simulation_gradient_covariance(x, best));
  };
  Progress progress("ensemble", config.datasets, "fits");
  const auto one = [&](std::size_t d) {
    auto fits = attempt<BothFits>([&](BothFits& into) { simulate_and_fit(d, into); });
    progress.advance();
    return fits;
  };
  auto both = spread<BothFits>(tasks, config.datasets, one, BothFits::fields);
  throw_where_all_failed<BothFits>(both);
  std::vector<DatasetFit> learned, known;
  for (auto& fits : both) {
    learned.push_back(std::move(fits.learned));
    if (exact) known.push_back(std::move(fits.known));
  }

  EnsembleResult out;
  out.config = config;
  out.approximate = summarise(config, learned);
  if (exact) out.exact = summarise(config, known);
  out.simulation_share.assign(dimension, 0.0);
  double used = 0.0;
  for (const auto& fits : both) {
    const auto& share = fits.share;
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
  for (const double level : config.levels)
    out.coverage_with_simulation.push_back(
        share_at_most(out.approximate.statistic,
                      chi2_quantile(level, static_cast<double>(dimension)) * widening));
  for (std::size_t p = 0; p < dimension; ++p) {
    const auto& base = out.exact ? *out.exact : out.approximate;
    const double centre = out.exact ? out.exact->means[p] : config.point[p];
    out.bias.push_back(base.spreads[p] > 0.0 ? (out.approximate.means[p] - centre) / base.spreads[p]
                                             : 0.0);
  }
  return out;
}

EnsembleResult run_ensemble(const EnsembleConfig& config, const ParameterSpace& parameters,
                            const Distribution& simulator, const MixtureRatio& approximate,
                            const MixtureRatio* exact, Tasks* tasks) {
  check_ensemble(config, parameters);
  Matrix typical(simulator.dimension() == 1 ? range_events : 0, simulator.dimension());
  try {
    RandomStream range_random(config.seed, "ensemble range");
    simulator.sample(config.point, range_random, typical);
  } catch (const SimulatorError&) {
    typical = Matrix(0, simulator.dimension());  // then there is no table
  }
  const auto table = tabulate(approximate, typical, config.datasets * config.events);
  const MixtureRatio& ratio = table ? static_cast<const MixtureRatio&>(*table) : approximate;
  const auto factory = [&parameters](const MixtureRatio& of) -> LikelihoodFactory {
    return [&parameters, &of](Matrix x) {
      return std::make_unique<MixtureLikelihood>(parameters, of, x);
    };
  };
  EnsembleModel model{factory(ratio), {}};
  if (approximate.replicas() > 0)
    model.simulation_gradient_covariance = [&](MatrixView x, const Fit& best) {
      return simulation_gradient_covariance(parameters, approximate, x, {}, best.point);
    };
  return run_ensemble(config, parameters, simulator, model,
                      exact != nullptr ? factory(*exact) : LikelihoodFactory{}, {}, tasks);
}

}  // namespace neyman
