#pragma once

#include <vector>

#include "neyman/calibration/calibrator.hpp"

namespace neyman {

/// The best non-increasing log r against the logit, by pooling adjacent violators.
///
/// Sorted by score, neighbouring blocks whose ratio n0/n1 would rise are pooled until none does; a
/// block's log r is that of its counts, log((n0 + k π0) / (n1 + k π1)) + log(N1/N0), where
/// k = 2 events split as the sigmoid calibration has it keep the blocks at the ends, which hold
/// events of one side only, finite.
///
/// Interpolated, the curve runs through the blocks' values at their mean scores as a monotone
/// cubic: no steps. As steps, it changes half way between the last score of a block and the first
/// of the next. Outside the outermost mean scores (steps: the range of the scores) it is held.
///
/// The errors are those of the counts in the blocks. The blocks are chosen by the same events, so
/// they are a guide, not a standard deviation: well inside the range, pulls have a spread of about
/// 0.7 interpolated (neighbouring blocks average) and 1 as steps; at the ends they are asymmetric.
///
/// O(n) after sorting. Ayer et al., An empirical distribution function for sampling with incomplete
/// information (1955); Oron and Flournoy, Centered isotonic regression (2017).
class IsotonicCalibrator : public Calibrator {
 public:
  struct Config {
    bool interpolate = true;  ///< false: steps
    static Config from(Settings& settings);
  };

  explicit IsotonicCalibrator(Config config);
  IsotonicCalibrator() : IsotonicCalibrator(Config{}) {}

  std::string kind() const override { return "isotonic"; }
  std::unique_ptr<Calibrator> fresh() const override;
  void fit(const CalibrationSet& data) override;
  bool fitted() const override { return !values_.empty(); }
  LogRatios log_ratios(const Logits& logits) const override;
  std::vector<double> errors(const Logits& logits) const override;
  void save(Archive& archive) const override;
  void load(const Archive& archive) override;

  /// log r of the blocks, in the order of rising scores.
  const std::vector<double>& values() const { return values_; }
  /// Mean scores of the blocks.
  const std::vector<double>& centres() const { return centres_; }

 private:
  void prepare();
  std::size_t find_block(double logit) const;

  Config config_;
  std::vector<double> steps_;  // between the blocks
  std::vector<double> centres_, values_, errors_;
  std::vector<double> slopes_;  // at the centres, made by prepare()
};

}  // namespace neyman
