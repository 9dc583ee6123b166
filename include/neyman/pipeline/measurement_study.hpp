#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "neyman/data/samples.hpp"
#include "neyman/measurements/learned_channel.hpp"
#include "neyman/measurements/statistical_model.hpp"
#include "neyman/pipeline/learned_measurement.hpp"
#include "neyman/pipeline/model.hpp"
#include "neyman/pipeline/study.hpp"

// A measurement that a study describes, in its steps: events, a learned channel, a model.
namespace neyman {

class Tasks;

/// The components of a measurement, without events but those of files.
/// @throw ArgumentError where the study is not a measurement.
std::vector<ComponentSamples> measurement_components(const Study& study);

/// The events from which a channel is learned, by component: `training_samples` in all at the
/// nominal parameters, and as many again across the ranges of the parameters that the component's
/// shape depends on. Those of files are what the files hold.
/// @throw ArgumentError where the study is not a measurement.
std::vector<ComponentSamples> simulate_measurement(const Study& study, Tasks* tasks = nullptr);

/// A dataset of the study's simulator at θ: each component has a Poisson number of events. Rows are
/// in the order of the components.
Matrix simulate_data(const Study& study, std::span<const double> point, std::uint64_t seed);

/// What a run saves: the channel with the yields, constraints and questions of the study.
/// @throw ArgumentError where the study is not a measurement.
Model learned_model(const Study& study, LearnedChannel channel);

/// The same at once: the statistical model of observed events (learned_measurement.hpp).
StatisticalModel measurement_model(const Study& study, const LearnedChannel& channel,
                                   MatrixView observed, std::optional<std::size_t> replica = {});

}  // namespace neyman
