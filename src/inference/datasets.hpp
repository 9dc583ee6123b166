#pragma once

#include <exception>
#include <optional>
#include <span>
#include <vector>

#include "neyman/core/error.hpp"
#include "neyman/distributed/tasks.hpp"
#include "neyman/inference/ensemble.hpp"

// Simulated datasets, each of which may fail without ending the others.
namespace neyman {

/// A T that `fill` fills; an error of the library ends there and is kept in its field `error`.
template <class T, class Fill>
T attempt(Fill&& fill) {
  T out;
  try {
    fill(out);
  } catch (const Interrupted&) {
    throw;
  } catch (const Error&) {
    out.error = std::current_exception();
  }
  return out;
}

/// Throws the first error where not one attempt is without.
template <class T>
void throw_where_all_failed(std::span<const T> attempts) {
  for (const auto& one : attempts)
    if (!one.error) return;
  if (!attempts.empty()) std::rethrow_exception(attempts.front().error);
}

/// The statistic of a test of one dataset.
struct ToyStatistic {
  std::optional<double> statistic;  // empty where it could not be simulated or a fit failed
  std::exception_ptr error;

  static constexpr auto fields = [](auto& bytes, auto& toy) { bytes(toy.statistic, toy.error); };
};

/// What the fit of one dataset gave.
struct DatasetFit {
  bool ok = false;
  std::vector<double> point;     // θ̂
  double statistic = 0.0;        // −2 log Λ at the simulated θ
  std::vector<double> profiles;  // one for each parameter of interest
  std::exception_ptr error;      // why there is none

  static constexpr auto fields = [](auto& bytes, auto& fit) {
    bytes(fit.ok, fit.point, fit.statistic, fit.profiles, fit.error);
  };
};

/// Fits a dataset that was simulated at the ensemble's θ; `best` may be null.
DatasetFit fit_dataset(const EnsembleConfig& config, const Likelihood& likelihood,
                       Fit* best = nullptr);
/// The same with dataset number d of an experiment.
DatasetFit fit_dataset(const EnsembleConfig& config, const Experiment& experiment, std::size_t d);

EnsembleSide summarise(const EnsembleConfig& config, std::span<const DatasetFit> fits);

/// @throw ArgumentError as `run_ensemble`.
void check_ensemble(const EnsembleConfig& config, const ParameterSpace& parameters);

}  // namespace neyman
