#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/archive.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/core/parameters.hpp"
#include "neyman/diagnostics/diagnostic.hpp"
#include "neyman/measurements/learned_channel.hpp"
#include "neyman/measurements/measurement_summary.hpp"
#include "neyman/measurements/statistical_model.hpp"
#include "neyman/simulators/expression.hpp"

namespace neyman {

/// A measurement that waits for data: what was learned of its components, how many events of each
/// are expected, and what is asked of them. A Model has its parameters and constraints.
struct LearnedMeasurement {
  LearnedChannel channel;
  /// Expected events as formulas of the model's parameters, in the order of the channel.
  std::vector<Expression> yields;
  std::vector<double> nominal;  ///< θ of the events that tell components apart, where fits begin
  std::size_t interest = 0;     ///< a parameter
  MeasurementOptions options;   ///< but `tasks` and `toys_alone`, which are not saved

  /// Formulas are saved as texts.
  void save(Archive& archive) const;
  /// What `save` wrote. @throw FileError where entries are absent or do not belong together, or a
  ///   formula is none of these parameters.
  static LearnedMeasurement load(const Archive& archive, const ParameterSpace& parameters);
};

struct Model;

/// Whether ratios between components that were learned apart agree, r_ij r_jk r_ki = 1: the
/// diagnostic "sub-ratios". The statistic is the worst of all cycles' rms(log r_ij r_jk r_ki) / √3,
/// the error of a single log r where the three err independently, over the rms of log r itself. It
/// warns above `tolerance`: independent errors of a fifth of log r cost about 0.2² of the
/// information, so that errors of the parameters become 2 % larger. Errors that all three share,
/// such as a common lack of training, are not seen. Null without cycles.
std::optional<Diagnostic> diagnose_sub_ratios(const std::vector<LearnedChannel::Cycle>& cycles,
                                              const std::vector<std::string>& components,
                                              double tolerance = 0.2);

/// The statistical model of observed events with a model of a measurement: one channel, "events".
/// Parameters have their names; the one of interest is the first. Weights: one an event, or empty:
/// all 1. With a replica, as that one of the simulation makes it (LearnedChannel).
/// @throw ArgumentError where the model is not of a measurement, or the events do not have its
///   features.
StatisticalModel measurement_model(const Model& model, MatrixView observed,
                                   std::span<const double> weights = {},
                                   std::optional<std::size_t> replica = {});

}  // namespace neyman
