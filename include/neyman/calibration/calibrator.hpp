#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/archive.hpp"
#include "neyman/core/scales.hpp"
#include "neyman/core/settings.hpp"

namespace neyman {

/// What the weights of events mean for the size of the sample.
enum class WeightMeaning {
  automatic,  ///< counts where all weights of the side are whole numbers, else relative
  counts,     ///< an event of weight 3 is three events; the sample has Σw events
  relative    ///< only ratios of weights matter; the sample has (Σw)²/Σw² events
};

/// Scores of simulated events of both sides, what a calibrator learns from.
///
/// Weights are one a score, or empty: all 1. Each side is normalised by itself. Events of
/// weight zero are as if absent. With `automatic`, whole numbers (up to 10^12 on a side)
/// are counts, so that a weight equals a repetition in the log-ratio, in the chosen complexity
/// and in the errors, and others, such as a generator's importance weights, are scaled to the
/// effective size of the sample, so that their unit plays no role.
struct CalibrationSet {
  std::span<const double> numerator;    ///< logits of events from p(x|θ0)
  std::span<const double> denominator;  ///< logits of events from p(x|θ1)
  std::span<const double> numerator_weights = {};
  std::span<const double> denominator_weights = {};
  WeightMeaning weight_meaning = WeightMeaning::automatic;
};

/// Fills the multiplicities of one bootstrap replica: one number for each event of each side,
/// for example Poisson(1). Called from several threads at once, each replica once.
using ReplicaWeights = std::function<void(std::size_t replica, std::span<double> numerator,
                                          std::span<double> denominator)>;

/// Turns the score into the likelihood ratio of the score, log p(z|θ0)/p(z|θ1), at one fixed
/// pair (θ0, θ1).
///
/// Whatever the scores (ties, one value, ten events, extreme weights), the log-ratio is finite.
/// Outside the calibrated range it is held or extended boundedly as each kind documents.
/// Logits beyond ±10^6 count as ±10^6.
class Calibrator {
 public:
  virtual ~Calibrator() = default;

  virtual std::string kind() const = 0;
  /// An unfitted copy with the same configuration.
  virtual std::unique_ptr<Calibrator> fresh() const = 0;

  /// @throw ArgumentError on NaN, infinite scores, sizes that disagree, negative weights, or a
  /// side without weight.
  virtual void fit(const CalibrationSet& data) = 0;
  virtual bool fitted() const = 0;

  /// Calibrators of this configuration fitted to `count` bootstrap replicas of the data: the
  /// weight of each event is its own times the multiplicity that `fill` gives. A replica that
  /// leaves a side without weight is fitted to the data themselves. Kinds that can prepare
  /// the data once for all replicas do. Replicas run in parallel.
  virtual std::vector<std::unique_ptr<Calibrator>> fit_replicas(const CalibrationSet& data,
                                                                std::size_t count,
                                                                const ReplicaWeights& fill) const;

  /// @throw ArgumentError before `fit`, and on NaN or infinite logits.
  virtual LogRatios log_ratios(const Logits& logits) const = 0;
  /// Standard deviation of each log-ratio from the finite calibration sample.
  /// @throw ArgumentError as for `log_ratios`.
  virtual std::vector<double> errors(const Logits& logits) const = 0;

  /// The range of logits in which the calibration has seen events of either side.
  double low() const { return low_; }
  double high() const { return high_; }
  /// How many logits lie outside [low, high].
  std::size_t count_outside(const Logits& logits) const;

  virtual void save(Archive& archive) const = 0;
  virtual void load(const Archive& archive) = 0;

 protected:
  double low_ = 0.0, high_ = 0.0;
};

/// The calibrator that a [calibration] table describes: key `kind` (default "smooth") and the
/// keys of that kind's Config. Problems are noted in the settings.
std::unique_ptr<Calibrator> make_calibrator(Settings settings);
/// A calibrator of a kind with its default configuration.
/// @throw ArgumentError on an unknown kind, with the candidates.
std::unique_ptr<Calibrator> make_calibrator(const std::string& kind);
std::unique_ptr<Calibrator> load_calibrator(const Archive& archive);
void save_calibrator(const Calibrator& calibrator, Archive& archive);
/// The names of all kinds.
std::vector<std::string> calibrator_kinds();

}  // namespace neyman
