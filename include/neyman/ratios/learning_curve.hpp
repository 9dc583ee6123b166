#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "neyman/data/samples.hpp"
#include "neyman/ratios/parameterized_ratio.hpp"

namespace neyman {

/// What a model knows of θ when it is trained on an eighth, a quarter and a half of the events, and
/// so what more of them would add.
///
/// The other half trains nothing. Of it, 5000 events at most (x_i, θ_i) tell their own θ from those
/// of 64 others:
///
///   score = mean_i log [r(x_i; θ_i) / mean_j r(x_i; θ_j)],
///
/// in nats, at most log 65, and highest for the true ratio (van den Oord et al. 2018). Scores are
/// extrapolated as a − b n^(−c) with c = 0.7: what densities lack of the exact ratio fell so over
/// 500 to 64 000 events of seven problems, with c from 0.36 to 0.75 and 0.68 in the median. All
/// errors are those of the held-out events, which are the same for all trainings; how trainings
/// scatter is not in them.
class LearningCurve {
 public:
  using Train = std::function<std::shared_ptr<const ParameterizedRatio>(const Samples& events)>;
  /// A mean over the held-out events with its standard error, in nats per event.
  struct Estimate {
    double value = 0.0, error = 0.0;
    bool significant() const { return value > 2.0 * error; }
  };
  static constexpr double exponent = 0.7;

  /// Trains three times, on 7/8 of the events in all. Groups stay together; weights count in the
  /// score.
  /// @throw ArgumentError where there are fewer than `least_events`, groups that are too few to be
  ///   parted, or no θ.
  LearningCurve(const Samples& events, const Train& train, std::uint64_t seed);
  static constexpr std::size_t least_events = 800;

  /// How many events trained, fewest first, and what was then known.
  const std::array<std::size_t, 3>& events() const { return events_; }
  const std::array<double, 3>& scores() const { return means_; }
  /// The last of these scores.
  Estimate known() const { return known_; }
  /// By how much the score is higher with a half of the events than with an eighth.
  Estimate rise() const { return rise_; }
  /// What the model lacks with all events, beside what it would know with any number of them.
  Estimate missing() const { return missing_; }
  /// Whether scores differ by little because the held-out events tell no more: the own θ of most
  /// is found already.
  bool saturated() const;
  /// How much more another model knows when both are trained on a half of the events; than this
  /// one, or than `than`.
  Estimate advantage_of(const Train& other, const Train& than = {}) const;

 private:
  std::vector<double> scores_of(const ParameterizedRatio& ratio) const;
  Estimate estimate(const std::vector<double>& values) const;

  std::uint64_t seed_;
  Samples half_, held_out_;
  std::vector<double> at_half_;  // scores of the held-out events
  std::array<std::size_t, 3> events_{};
  std::array<double, 3> means_{};
  Estimate known_, rise_, missing_;
};

}  // namespace neyman
