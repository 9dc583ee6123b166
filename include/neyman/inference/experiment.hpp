#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "neyman/core/matrix.hpp"
#include "neyman/core/random.hpp"
#include "neyman/inference/constraint.hpp"
#include "neyman/inference/likelihood.hpp"
#include "neyman/simulators/distribution.hpp"

namespace neyman {

/// The likelihood of a dataset, exact or learned. The events are handed over, so that a likelihood
/// that needs them later can keep them. Called from several threads at once.
using LikelihoodFactory = std::function<std::unique_ptr<Likelihood>(Matrix x)>;

/// A pseudo-experiment: simulates data at θ, from this stream alone, and gives their likelihood.
/// Called from several threads at once.
using Experiment =
    std::function<std::unique_ptr<Likelihood>(std::span<const double> point, RandomStream& random)>;

/// Experiments of `events` independent events each. Where there are constraints, their auxiliary
/// measurements are drawn at θ after the events, and the likelihood is the constrained one.
/// The simulator must outlive the experiment.
/// @throw ArgumentError where there are no events or no likelihood.
Experiment make_experiment(const Distribution& simulator, std::size_t events,
                           LikelihoodFactory likelihood, std::vector<Constraint> constraints = {});

}  // namespace neyman
