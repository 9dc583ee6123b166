#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "neyman/calibration/calibration_across.hpp"
#include "neyman/calibration/calibrator.hpp"
#include "neyman/calibration/interpolated.hpp"

namespace neyman {

/// Calibrated at each θ that is asked for, with events simulated there.
///
/// The simulation must use the same random numbers for each θ (streams of the same name do), so
/// that its fluctuations move with θ instead of jumping: the log-ratio is then as smooth in θ as
/// the simulator and the calibrator allow. A calibrator that chooses its complexity (such as
/// "smooth") may still jump where the choice changes.
///
/// Fitted calibrators are kept by θ, the oldest dropped first. Safe to use from several threads.
/// Derivatives are not told. What is kept is nothing without the simulator: `save` and `load`
/// throw ArgumentError.
class OnDemandCalibration final : public CalibrationAcross {
 public:
  using Scores = InterpolatedCalibration::Scores;
  /// Simulates and scores events of both sides at θ; called from several threads at once.
  using Simulate = std::function<Scores(std::span<const double> point)>;

  struct Config {
    std::shared_ptr<const Calibrator> calibrator;  ///< fitted copies of it; null: "smooth"
    std::size_t cache = 1000;                      ///< calibrators kept, at least 1
  };

  /// @throw ArgumentError without a simulation or with a cache of 0.
  OnDemandCalibration(std::size_t parameters, Simulate simulate, Config config);

  std::string kind() const override { return "on-demand"; }
  LogRatios log_ratios(const Logits& logits, std::span<const double> point) const override;
  std::size_t count_outside(const Logits& logits, std::span<const double> point) const override;
  void save(Archive& archive) const override;
  void load(const Archive& archive) override;

  /// The calibrator at θ, made where it is not kept.
  std::shared_ptr<const Calibrator> at(std::span<const double> point) const;
  /// Calibrators at θ as other events would have made them: a bootstrap of the scores, with the
  /// same multiplicities (Poisson) at every θ, as the events are the same but for θ. Scores
  /// are first gathered in 2000 cells of equal numbers, whose means take their place.
  std::vector<std::unique_ptr<Calibrator>> replicas(std::span<const double> point,
                                                    std::size_t count, std::uint64_t seed) const;
  /// At how many θ events have been simulated so far.
  std::size_t fits() const { return fits_; }
  /// Keeps none of those that were fitted so far.
  void forget() const;

 private:
  std::size_t parameters_;
  Simulate simulate_;
  Config config_;
  mutable std::mutex mutex_;
  mutable std::map<std::vector<double>, std::shared_ptr<const Calibrator>> kept_;
  mutable std::deque<std::vector<double>> order_;  // oldest first
  mutable std::atomic<std::size_t> fits_{0};
};

}  // namespace neyman
