#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "neyman/measurements/asymptotics.hpp"
#include "neyman/measurements/channel_histogram.hpp"
#include "neyman/measurements/learned_variation.hpp"
#include "neyman/measurements/model_fit.hpp"
#include "neyman/measurements/statistical_model.hpp"
#include "neyman/measurements/toys.hpp"

namespace neyman {

struct MeasurementOptions {
  double level = 0.95;  ///< of the upper limit
  TestStatistic statistic = TestStatistic::q_tilde;
  /// Toys of each hypothesis at each value of a scan for the limit; 0: asymptotic formulae alone.
  std::size_t toys = 0;
  std::size_t scan_points = 10;  ///< of that scan, around the limits by asymptotic formulae
  std::uint64_t seed = 0;
  Tasks* tasks = nullptr;   ///< who makes the toys, as ToyOptions has it
  bool toys_alone = false;  ///< make toys, as a part of the tasks, but no limit from them
  /// Points of the curves of −2 log Λ and CL_s, which figures show; 0: none.
  std::size_t curve_points = 41;
  /// Groups of constraints for the parts of the error, as error_breakdown takes them.
  std::vector<std::pair<std::string, std::vector<std::string>>> groups = {};
};

/// Everything that one asks of a measurement: what `neyman limit` prints.
struct MeasurementSummary {
  StatisticalModel model;
  MeasurementData data;
  MeasurementOptions options;
  Fit fit;
  std::vector<Interval> intervals;  ///< of each parameter at 68.3 %; not ok where it is held
  std::vector<Pull> pulls;
  std::vector<Impact> impacts;  ///< ranked
  /// The error of the parameter of interest: by groups, then "other" ("systematic" where there are
  /// no groups) and "statistical". Empty where it has no error, at the end of its range.
  std::vector<ErrorPart> error_parts;
  std::optional<ProfileScan> profile;  ///< of the parameter of interest, about three errors wide
  std::vector<SignalTest> cl_s;        ///< at rising values, from 0 to beyond the limits
  std::optional<Discovery> discovery;
  std::optional<UpperLimit> limit;
  std::optional<ToyLimit> toy_limit;
  /// Of the channels with bins; those of features of other channels may be added.
  std::vector<ChannelHistogram> histograms;
  /// Features that events of a channel without bins have, where histograms show some; else 0.
  std::size_t features = 0;
  /// What could not be had, and why: a failed fit, a limit that is not bracketed, …
  std::vector<std::string> problems;
  /// Of a channel that was learned: what held-out events say about the shapes of its variations.
  /// Filled in by those who know.
  std::vector<LearnedVariation> variations;
};

/// Fits, then tests. What fails is told in `problems`, and the rest is there nevertheless.
/// @throw ArgumentError where the data do not fit the model, or it has no parameter of interest.
MeasurementSummary summarise(const StatisticalModel& model, const MeasurementData& data,
                             const MeasurementOptions& options = {});

/// Adds the limit by toys to a summary that was made without, as its options ask for.
void add_toy_limit(MeasurementSummary& summary);

/// For people: at most 80 columns.
std::string summary_text(const MeasurementSummary& summary);
/// For programs: schema "neyman.measurement/1".
std::string summary_json(const MeasurementSummary& summary);

}  // namespace neyman
