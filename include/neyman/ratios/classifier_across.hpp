#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "neyman/calibration/calibration_across.hpp"
#include "neyman/calibration/calibrator.hpp"
#include "neyman/calibration/interpolated.hpp"
#include "neyman/calibration/smooth_across.hpp"
#include "neyman/classifiers/classifier.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/settings.hpp"
#include "neyman/data/samples.hpp"
#include "neyman/ratios/parameterized_ratio.hpp"
#include "neyman/simulators/design.hpp"

namespace neyman {

class SampleStream;

/// A parameterised ratio from any classifier with θ among its inputs (algorithm 1 of Cranmer,
/// Pavez and Louppe 2015): z(x; θ) tells events of p(x|θ), θ ~ π0 (the design), from those of the
/// denominator, which carry a θ that is independent of them. log r(x; θ) = −z, then calibrated
/// across θ.
///
/// The denominator is one of
/// - `marginal`: ∫ p(x|θ) π1(θ) dθ. Where π1 = π0, every event serves both sides: with its own θ
///   as numerator, with another event's as denominator.
/// - `point`: p(x|θ1) at a fixed θ1. Half of the events are simulated there.
/// - `parameterized`: p(x|θ1) with θ1 ~ π1, given to the classifier as well: rows (x, θ0, θ1).
///
/// Cross-fitting: the events are cut into `folds`; each fold's classifier is trained on the others
/// and, with `smooth`, calibrated on its own; log r is the mean over the folds. Calibrations that
/// simulate events of their own calibrate the mean of the logits once.
///
/// With `fresh`, every one of the K classifiers has events of its own (`samples` each) instead of
/// sharing them, simulated anew for each epoch by classifiers that learn by epochs (`mlp`, and an
/// `ensemble` of it), and is calibrated on the first ones of the next: more simulation where it is
/// cheap. No event is then trained on twice, so that nothing is learned by heart.
///
/// Known weaknesses: a fit of log r at one θ tells about neighbouring θ only as far as the
/// classifier makes it; where it does not, the contours are as rough as the classifier.
class ParameterizedClassifierRatio final : public ParameterizedRatio {
 public:
  enum class Denominator { marginal, point, parameterized };
  enum class Across { none, on_demand, interpolate, smooth };

  struct Config {
    std::shared_ptr<const Classifier> classifier;  ///< unfitted; copies of it are trained
    Denominator denominator = Denominator::marginal;
    /// θ1 of `point`; of the likelihoods of `parameterized`, where empty means the middle.
    std::vector<double> reference = {};
    /// π1 of `marginal` and `parameterized`. Absent: that of the numerator.
    std::optional<Design> denominator_design = std::nullopt;
    std::size_t samples = 200000;  ///< events simulated in all (`fresh`: in each epoch of each)
    std::size_t folds = 2;         ///< 1: one classifier with all events, not for `smooth`
    bool fresh = false;            ///< each classifier has its own events, new in each epoch
    Across calibration = Across::smooth;
    SmoothAcross::Config smooth = {};                    ///< of calibration = smooth
    InterpolatedCalibration::Config interpolation = {};  ///< of calibration = interpolate
    /// on-demand, interpolate: copies of it are fitted at each θ. Null: "smooth".
    std::shared_ptr<const Calibrator> calibrator = nullptr;
    /// on-demand, interpolate: events of each side simulated at each θ. 0, with interpolate and a
    /// grid or table as design: the held-out events of its rows.
    std::size_t calibration_events = 100000;
    /// interpolate: values of each parameter, on a grid. Empty: 7 of each, 5 for more than two
    /// parameters, 3 for more than three. Not used with calibration_events = 0.
    std::vector<std::size_t> nodes = {};
    /// smooth: θ at which each denominator event is scored, to reduce the noise. 0: 4, fewer where
    /// the rows would exceed two million.
    std::size_t companions = 0;
    std::size_t cache = 1000;  ///< on-demand: calibrators kept
    std::uint64_t seed = 0;
  };

  /// Simulates the events, trains and calibrates. Runs of the simulator, folds and nodes of the
  /// calibration are `tasks` where others share them.
  /// @throw ArgumentError where the configuration contradicts itself, or the simulator is not
  ///   defined at a θ of the designs.
  ParameterizedClassifierRatio(DistributionPtr simulator, const Design& design, Config config,
                               Progress* progress = nullptr, Tasks* tasks = nullptr);
  /// Trains on events that exist, with θ from the design. `denominator` may be empty (its events
  /// are then those of the numerator): not for `point`. Without a simulator the calibration must
  /// be none, smooth, or interpolate with calibration_events = 0.
  /// @throw ArgumentError as above, and where the events have no θ or other parameters.
  ParameterizedClassifierRatio(const Samples& numerator, const Samples& denominator,
                               const Design& design, Config config,
                               DistributionPtr simulator = nullptr, Progress* progress = nullptr);
  /// The events that a configuration asks for; `denominator` is empty where those of the numerator
  /// serve both sides.
  struct Events {
    Samples numerator, denominator;
    /// All events of the numerator, where they stay on the disk: they train, as they are read,
    /// while `numerator` has some of them, with their groups, to calibrate.
    std::shared_ptr<const SampleStream> stream = nullptr;
    std::size_t size() const;
  };
  static Events simulate_events(const DistributionPtr& simulator, const Design& design,
                                const Config& config, Tasks* tasks = nullptr);
  /// Simulating, training and calibrating one after the other: what is only trained can be saved,
  /// with calibration = on-demand too, and loaded; its ratios are not calibrated.
  static std::shared_ptr<ParameterizedClassifierRatio> trained(
      const Events& events, const Design& design, const Config& config, DistributionPtr simulator,
      Progress* progress = nullptr, Tasks* tasks = nullptr);
  /// Calibrates what was trained, with the same arguments.
  void calibrate(const Events& events, const Design& design, const Config& config,
                 DistributionPtr simulator, Tasks* tasks = nullptr);
  /// What `save` wrote.
  /// @throw FileError where entries are absent or do not belong together.
  ParameterizedClassifierRatio(const Archive& archive, ParameterSpace parameters);
  ~ParameterizedClassifierRatio() override;
  ParameterizedClassifierRatio(const ParameterizedClassifierRatio&) = delete;
  ParameterizedClassifierRatio& operator=(const ParameterizedClassifierRatio&) = delete;

  std::string kind() const override { return "classifier"; }
  std::size_t features() const override { return features_; }
  /// With θ1 as input, or as the point of the denominator, the learned ratio itself; else the
  /// difference of two.
  /// @throw ArgumentError where a point is outside the ranges or x has other columns.
  LogRatios log_ratios(MatrixView x, std::span<const double> numerator,
                       std::span<const double> denominator) const override;
  /// −z, as the classifiers themselves say.
  LogRatios uncalibrated(MatrixView x, std::span<const double> numerator,
                         std::span<const double> denominator) const;
  /// Differentiable where classifier and calibration are (not on-demand). The covariance from
  /// finite simulation is that of the smooth calibration plus, for two folds and more, the
  /// scatter of the folds, which holds the noise of the calibration once more: it errs on the
  /// large side.
  std::unique_ptr<SummedRatio> over(MatrixView x,
                                    std::span<const double> event_weights = {}) const override;
  /// Rows whose score at the middle of the ranges lies outside the calibrated range there.
  std::size_t count_outside(MatrixView x) const override;
  /// @throw ArgumentError where it is calibrated on demand, which needs the simulator.
  void save(Archive& archive) const override;

  std::size_t folds() const { return classifiers_.size(); }
  const Classifier& classifier(std::size_t fold) const { return *classifiers_[fold]; }
  Across calibration() const { return across_; }
  Denominator denominator() const { return denominator_; }
  /// θ1; empty where the denominator is marginal.
  const std::vector<double>& reference() const { return reference_; }
  /// The calibrations: one for each fold, one for the mean of their logits, or none.
  const std::vector<std::shared_ptr<const CalibrationAcross>>& calibrations() const {
    return calibrations_;
  }
  /// How many events have been simulated so far, those of calibrations included.
  std::size_t simulated() const;
  /// Calibrations that were made on demand are made again where they are asked for again.
  void forget_calibrations() const;

 private:
  class Learner;
  class Sum;
  struct Evaluation;

  explicit ParameterizedClassifierRatio(ParameterSpace parameters)
      : ParameterizedRatio(std::move(parameters)) {}
  /// Events as in `Events`, where they are.
  struct Given {
    const Samples& numerator;
    const Samples& denominator;
    const SampleStream* stream = nullptr;
  };
  void train(const Given& events, const Design& design, const Config& config,
             DistributionPtr simulator, Progress* progress, Tasks* tasks);
  void calibrate(const Given& events, const Design& design, const Config& config,
                 DistributionPtr simulator, Tasks* tasks);
  bool differentiable() const;
  /// (x, θ) or (x, θ0, θ1) as rows.
  Matrix inputs(MatrixView x, std::span<const double> point) const;
  /// θ, or θ and θ1, as classifier and calibration take it.
  std::vector<double> full_point(std::span<const double> numerator,
                                 std::span<const double> denominator) const;
  Logits mean_logits(MatrixView inputs) const;
  LogRatios evaluate(MatrixView x, std::span<const double> point, bool calibrated) const;
  LogRatios between(MatrixView x, std::span<const double> numerator,
                    std::span<const double> denominator, bool calibrated) const;
  Evaluation derivatives(MatrixView x, std::span<const double> point,
                         std::span<const double> weights, bool covariance) const;

  Denominator denominator_ = Denominator::marginal;
  Across across_ = Across::none;
  std::vector<double> reference_;
  std::size_t features_ = 0;
  std::vector<std::unique_ptr<Classifier>> classifiers_;
  std::vector<std::shared_ptr<const CalibrationAcross>> calibrations_;
  std::size_t simulated_ = 0;
  std::size_t simulated_at_each_ = 0;  // θ on demand
};

}  // namespace neyman
