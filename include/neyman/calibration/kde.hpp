#pragma once

#include <span>
#include <vector>

#include "neyman/calibration/calibrator.hpp"

namespace neyman {

/// The ratio of two Gaussian kernel density estimates, on one grid and with one bandwidth.
///
/// The densities are estimated in t = asinh((z − c)/s), with c and s the mean and standard
/// deviation of the scores: the ratio does not depend on the coordinate, and in this one
/// the kernels widen in the tails and a far score costs no resolution. Events are put on a grid of
/// 1024 points by linear binning (more than 65 536 of them from cells that are several times
/// narrower than its steps) and smoothed there, so the cost beyond two passes does not grow with
/// the sample. Kernels are reflected at the extreme scores, so that no probability leaks out of the
/// range.
///
/// Bandwidth: `silverman` is 0.9 min(sd, IQR/1.34) n^(−1/5) of the narrower side, in t;
/// `likelihood` maximises, between 0.5 and 4.7 times that, the leave-one-out likelihood of the
/// sides given the scores, which is about the ratio and not about the densities.
///
/// With n_i = N_i f_i · 2√π h the number of events that a kernel sees, log r = log((n0 + k π0) /
/// (n1 + k π1)) + log(N1/N0), where k = 2 events split as the sigmoid calibration has it take
/// over where there are no events. The error is that of these counts,
/// √(1/(n0+½) + 1/(n1+½) − 1/N0 − 1/N1); it says nothing about the bias of smoothing. Outside the
/// range log r is held.
class KdeCalibrator : public Calibrator {
 public:
  enum class Bandwidth { silverman, likelihood };

  struct Config {
    Bandwidth bandwidth = Bandwidth::silverman;  ///< "silverman" or "likelihood"
    double adjust = 1.0;                         ///< the bandwidth is multiplied by this
    static Config from(Settings& settings);
  };

  /// @throw ArgumentError unless adjust is between 0.01 and 100.
  explicit KdeCalibrator(Config config);
  KdeCalibrator() : KdeCalibrator(Config{}) {}

  std::string kind() const override { return "kde"; }
  std::unique_ptr<Calibrator> fresh() const override;
  void fit(const CalibrationSet& data) override;
  bool fitted() const override { return !values_.empty(); }
  LogRatios log_ratios(const Logits& logits) const override;
  std::vector<double> errors(const Logits& logits) const override;
  void save(Archive& archive) const override;
  void load(const Archive& archive) override;

  /// In units of t.
  double bandwidth() const { return width_; }

 private:
  void prepare();
  void interpolate(const std::vector<double>& table, const Logits& logits,
                   std::span<double> out) const;

  Config config_;
  double centre_ = 0.0, scale_ = 1.0;  // of the scores
  double first_ = 0.0, step_ = 0.0;    // of the grid in t
  double width_ = 0.0;
  std::vector<double> values_, errors_;  // on the grid
  std::vector<double> nodes_;            // logits of the grid, made by prepare()
};

}  // namespace neyman
