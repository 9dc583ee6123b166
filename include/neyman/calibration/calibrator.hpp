#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/archive.hpp"
#include "neyman/core/scales.hpp"
#include "neyman/core/settings.hpp"

namespace neyman {

/// Scores of simulated events of both sides, what a calibrator learns from.
/// Weights are one a score, or empty: all 1. Each side is normalised by itself.
struct CalibrationSet {
  std::span<const double> numerator;            ///< logits of events from p(x|θ0)
  std::span<const double> denominator;          ///< logits of events from p(x|θ1)
  std::span<const double> numerator_weights = {};
  std::span<const double> denominator_weights = {};
};

/// Turns the score into the likelihood ratio of the score, log p(z|θ0)/p(z|θ1), at one fixed
/// pair (θ0, θ1).
///
/// Whatever the scores (ties, one value, ten events, extreme weights), the log-ratio is finite.
/// Outside the calibrated range it is held or extended boundedly as each kind documents.
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

  virtual LogRatios log_ratios(const Logits& logits) const = 0;
  /// Standard deviation of each log-ratio from the finite calibration sample.
  virtual std::vector<double> errors(const Logits& logits) const = 0;

  /// The range of logits in which the calibration has seen events of either side.
  double low() const { return low_; }
  double high() const { return high_; }
  std::size_t count_outside(const Logits& logits) const;

  virtual void save(Archive& archive) const = 0;
  virtual void load(const Archive& archive) = 0;

 protected:
  double low_ = 0.0, high_ = 0.0;
};

std::unique_ptr<Calibrator> make_calibrator(Settings settings);
std::unique_ptr<Calibrator> make_calibrator(const std::string& kind);
std::unique_ptr<Calibrator> load_calibrator(const Archive& archive);
void save_calibrator(const Calibrator& calibrator, Archive& archive);
std::vector<std::string> calibrator_kinds();

}  // namespace neyman
