#include "neyman/inference/ensemble.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>
#include <optional>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"
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

struct Outcome {
  bool ok = false;
  Fit fit;
  double statistic = 0.0;
  std::vector<double> profiles;  // one for each parameter of interest
};

Outcome fit_dataset(const EnsembleConfig& config, const Likelihood& likelihood) {
  Outcome out;
  FitOptions options;
  options.start = config.point;
  options.starts = config.starts;
  out.fit = fit(likelihood, options);
  out.ok = out.fit.ok();
  out.statistic = test_statistic(likelihood, out.fit, config.point);
  for (const std::size_t parameter : config.interest) {
    std::vector<std::optional<double>> fixed(config.point.size());
    fixed[parameter] = config.point[parameter];
    // −2 log Λ of one parameter is at most that of all: θ itself is one of the profiled points.
    out.profiles.push_back(std::min(out.statistic, profile_statistic(likelihood, out.fit, fixed)));
  }
  return out;
}

EnsembleSide summarise(const EnsembleConfig& config, const std::vector<Outcome>& outcomes) {
  const std::size_t dimension = config.point.size();
  EnsembleSide side;
  side.estimates = Matrix(0, dimension);
  for (const std::size_t parameter : config.interest) {
    side.profiles.emplace_back();
    side.profiles.back().parameter = parameter;
  }
  for (const auto& outcome : outcomes) {
    if (!outcome.ok) {
      ++side.failed;
      continue;
    }
    side.estimates.append(MatrixView(outcome.fit.point.data(), 1, dimension));
    side.statistic.push_back(outcome.statistic);
    for (std::size_t k = 0; k < side.profiles.size(); ++k)
      side.profiles[k].statistic.push_back(outcome.profiles[k]);
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

void check_config(const EnsembleConfig& config, const ParameterSpace& parameters) {
  check_at_least("run_ensemble", "datasets", config.datasets, 1);
  parameters.check_inside("run_ensemble", config.point);
  for (std::size_t k = 0; k < config.interest.size(); ++k)
    if (config.interest[k] >= parameters.size())
      fail_argument("run_ensemble", fmt::format("interest[{}]", k),
                    std::to_string(config.interest[k]), fmt::format("below {}", parameters.size()));
}

/// Calls the work for each dataset, in parallel, and tells `whole` or, where that is null, a task
/// of its own. One that throws leaves a failed outcome behind; where all throw, so does this.
void for_each_dataset(const EnsembleConfig& config,
                      const std::function<void(std::size_t, RandomStream&)>& work,
                      Progress* whole = nullptr) {
  std::vector<std::exception_ptr> errors(config.datasets);
  std::optional<Progress> own;
  if (whole == nullptr) own.emplace("ensemble", config.datasets, "fits");
  Progress& progress = whole != nullptr ? *whole : *own;
  parallel_tasks(config.datasets, [&](std::size_t d) {
    try {
      RandomStream random(config.seed, "ensemble", d);
      work(d, random);
    } catch (const Interrupted&) {
      throw;
    } catch (const Error&) {
      errors[d] = std::current_exception();
    }
    progress.advance();
  });
  if (std::all_of(errors.begin(), errors.end(), [](const auto& error) { return error != nullptr; }))
    std::rethrow_exception(errors.front());
}

}  // namespace

EnsembleSide run_ensemble(const EnsembleConfig& config, const ParameterSpace& parameters,
                          const Experiment& experiment, Progress* progress) {
  check_config(config, parameters);
  std::vector<Outcome> outcomes(config.datasets);
  const auto work = [&](std::size_t d, RandomStream& random) {
    outcomes[d] = fit_dataset(config, *experiment(config.point, random));
  };
  for_each_dataset(config, work, progress);
  return summarise(config, outcomes);
}

EnsembleResult run_ensemble(const EnsembleConfig& config, const ParameterSpace& parameters,
                            const Distribution& simulator, const EnsembleModel& approximate,
                            const LikelihoodFactory& exact,
                            const std::vector<Constraint>& constraints) {
  check_config(config, parameters);
  check_at_least("run_ensemble", "events", config.events, 1);
  const std::size_t dimension = parameters.size();
  std::vector<Outcome> learned(config.datasets), known(exact ? config.datasets : 0);
  std::vector<std::vector<double>> shares(config.datasets);
  for_each_dataset(config, [&](std::size_t d, RandomStream& random) {
    Matrix x(config.events, simulator.dimension());
    simulator.sample(config.point, random, x);
    std::vector<Constraint> drawn;
    for (const auto& constraint : constraints)
      drawn.push_back(constraint.sampled(config.point[constraint.parameter()], random));
    const auto fit_with = [&](const LikelihoodFactory& factory, Matrix events) {
      std::shared_ptr<const Likelihood> likelihood = factory(std::move(events));
      if (!drawn.empty()) likelihood = std::make_shared<ConstrainedLikelihood>(likelihood, drawn);
      return fit_dataset(config, *likelihood);
    };
    const bool share = d < simulation_datasets && approximate.simulation_gradient_covariance;
    if (exact) known[d] = fit_with(exact, x);
    learned[d] = fit_with(approximate.likelihood, share ? x : std::move(x));
    if (share && learned[d].ok)
      shares[d] = simulation_variance_share(
          learned[d].fit, approximate.simulation_gradient_covariance(x, learned[d].fit));
  });

  EnsembleResult out;
  out.config = config;
  out.approximate = summarise(config, learned);
  if (exact) out.exact = summarise(config, known);
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
                            const MixtureRatio* exact) {
  check_config(config, parameters);
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
                      exact != nullptr ? factory(*exact) : LikelihoodFactory{});
}

}  // namespace neyman
