#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/matrix.hpp"
#include "neyman/inference/fit.hpp"
#include "neyman/measurements/statistical_model.hpp"

// What was counted beside what the model expects, before and after the fit.
namespace neyman {

/// What a model expects in each bin, with a standard deviation that comes from its parameters.
struct ExpectedCounts {
  Matrix parts;               ///< samples × bins
  std::vector<double> total;  ///< one a bin
  std::vector<double> error;  ///< of the total; without the fluctuation of the counts themselves
};

/// A histogram of one channel.
struct ChannelHistogram {
  std::string channel;
  std::string feature = {};  ///< what the edges are values of; empty: numbers of bins, from 0
  std::vector<double> edges;
  std::vector<std::string> samples;
  std::vector<double> observed;  ///< one a bin
  ExpectedCounts before, after;  ///< the fit
};

/// What is expected at a point, as samples × bins.
using ExpectedParts = std::function<Matrix(std::span<const double> point)>;

/// At the auxiliary observations of constrained parameters and the start values of the others,
/// with the uncertainty of the constraints: σ_b² = Σ_k δ_kb², where δ_kb is half the difference of
/// the totals with the parameter a standard deviation up and down. Parameters without a constraint
/// add nothing.
ExpectedCounts expected_before_fit(const StatisticalModel& model, const MeasurementData& data,
                                   const ExpectedParts& parts);
/// At the best fit, with its covariance: σ_b² = Σ_kl δ_kb ρ_kl δ_lb, where the standard deviations
/// and the correlations ρ are those of the fit. Parameters that are held or at a bound add nothing.
/// @throw ArgumentError where the fit failed.
ExpectedCounts expected_after_fit(const StatisticalModel& model, const Fit& best,
                                  const ExpectedParts& parts);

/// One for each channel with bins, with the samples that it has.
/// @throw ArgumentError as expected_after_fit, or where the data do not fit the model.
std::vector<ChannelHistogram> channel_histograms(const StatisticalModel& model,
                                                 const MeasurementData& data, const Fit& best);

/// A feature of the events of a channel without bins, for a histogram of it.
struct FeatureEvents {
  std::string channel;  ///< as the model calls it
  std::string feature;
  std::vector<double> edges;            ///< rising; events outside are left out
  std::vector<double> observed;         ///< values of the feature
  std::vector<double> weights = {};     ///< of the observed events; empty: all 1
  std::vector<double> simulated;        ///< the same of the channel's simulated events
  std::vector<std::string> components;  ///< names of the rows of `expected`; empty: the sum alone
  /// How often each simulated event is expected at a point, as components × events. Empty: the
  /// weights of the model's Asimov data set.
  ExpectedParts expected = {};
};

/// The simulated events weighted by the model, beside those observed.
/// @throw ArgumentError where the channel is unknown, sizes disagree, edges do not rise, a value is
///   not finite, or as expected_after_fit.
ChannelHistogram feature_histogram(const StatisticalModel& model, const MeasurementData& data,
                                   const Fit& best, const FeatureEvents& events);

/// All features of the events of a channel without bins, a column each.
struct FeatureTable {
  std::string channel;  ///< as the model calls it
  std::vector<std::string> names;
  MatrixView observed;                   ///< events × features
  std::span<const double> weights = {};  ///< of the observed events; empty: all 1
  MatrixView simulated;                  ///< of the channel's simulated events
};

/// The same of up to `most` features at once, component by component, in equal bins over where
/// 99 % of the events are expected, or observed where that is far beyond, or in one bin a value
/// where there are at most 30 values. Where there are more features, those that tell the components
/// apart best, with the largest ½ Σ_b (p_b − q_b)² / (p_b + q_b) between two components at the
/// start, in their order.
/// @throw ArgumentError as feature_histogram.
std::vector<ChannelHistogram> feature_histograms(const StatisticalModel& model,
                                                 const MeasurementData& data, const Fit& best,
                                                 const FeatureTable& features,
                                                 std::size_t most = 10);

}  // namespace neyman
