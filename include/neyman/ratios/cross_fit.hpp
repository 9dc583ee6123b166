#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "neyman/calibration/calibrator.hpp"
#include "neyman/classifiers/classifier.hpp"
#include "neyman/core/archive.hpp"
#include "neyman/core/matrix.hpp"
#include "neyman/core/progress.hpp"
#include "neyman/core/scales.hpp"
#include "neyman/data/samples.hpp"

namespace neyman {

class SampleStream;
class Tasks;

/// How a ratio is learned from samples.
struct RatioConfig {
  /// Unfitted; copies of it are trained. Null: "mlp".
  std::shared_ptr<const Classifier> classifier = nullptr;
  /// Unfitted; copies of it are fitted. Null: "smooth".
  std::shared_ptr<const Calibrator> calibrator = nullptr;
  std::size_t folds = 5;      ///< each event trains in all folds but one, which it calibrates
  std::size_t replicas = 40;  ///< bootstrap replicas of calibration and normalisation
  bool normalise = true;      ///< make the mean of r̂ over the denominator one
  std::uint64_t seed = 0;
};

/// One sample with what cross-fitting adds: the fold in which each event is held out, and its
/// Poisson bootstrap counts. The same sample serves every pair that it belongs to, with the
/// same folds and counts.
class FoldedSample {
 public:
  /// Rows of one group share a fold. Where `all` is there, the samples are some of its events, with
  /// their groups: they calibrate, all train, and folds are those of `hashed_fold`.
  /// @throw ArgumentError with fewer events than folds.
  FoldedSample(Samples samples, const RatioConfig& config, std::uint64_t stream,
               std::shared_ptr<const SampleStream> all = nullptr);

  /// Some events of another sample, with the folds and the counts that they have there, and weights
  /// of their own, one a chosen event.
  FoldedSample(const FoldedSample& whole, std::span<const std::size_t> chosen,
               std::vector<double> weights);

  const Samples& samples() const { return samples_; }
  std::size_t size() const { return samples_.size(); }
  std::size_t fold(std::size_t event) const { return fold_[event]; }
  const std::vector<std::size_t>& fold_events(std::size_t fold) const { return events_[fold]; }
  /// How often each event of a fold occurs in a replica: Poisson with mean 1, in the order of
  /// `fold_events`.
  void replica_counts(std::size_t replica, std::size_t fold, std::span<double> counts) const;
  /// Whether the events that train stay on the disk, and about how many they are.
  bool streamed() const { return all_ != nullptr; }
  std::size_t training_events() const;
  /// Those that train the classifier of a fold, cut into `windows` that are dealt anew in every
  /// epoch: one of these, with groups.
  Samples training_window(std::size_t fold, std::size_t epoch, std::size_t window,
                          std::size_t windows) const;
  /// The events' weights, and those of a replica: weight times count.
  std::vector<double> weights() const;
  std::vector<double> replica_weights(std::size_t replica) const;

 private:
  Samples samples_;
  std::vector<std::uint16_t> fold_;
  std::vector<std::vector<std::size_t>> events_;
  std::uint64_t seed_;
  std::shared_ptr<const SampleStream> all_;
  /// Of a part, for each fold: how many events the whole has there, and which of them are its own.
  struct Chosen {
    std::size_t of = 0;
    std::vector<std::size_t> places = {};
  };
  std::vector<Chosen> chosen_;  // empty: all
};

/// A calibrated ratio between two fixed samples, by cross-fitting: K classifiers, each trained
/// on all folds but its own and calibrated on its own, so that every simulated event serves
/// training and calibration and none calibrates a classifier that has seen it.
///
///   log r̂(x) = 1/K Σ_k log r̂_k(z_k(x))
///
/// Replica b repeats the calibrations with bootstrap counts for the events: its spread is the
/// uncertainty from finite simulation, as far as calibration and normalisation carry it. What
/// training adds beyond (level sets that differ from those of r) is not in it.
class CrossFit {
 public:
  CrossFit() = default;

  /// Two samples, and a number that no other pair has.
  struct Pair {
    const FoldedSample& numerator;
    const FoldedSample& denominator;
    std::uint64_t number;
  };
  /// Trains and calibrates one pair.
  void fit(const FoldedSample& numerator, const FoldedSample& denominator,
           const RatioConfig& config, std::uint64_t pair, Tasks* tasks = nullptr);
  /// Trains the classifiers of many pairs, each fold a task, in parallel; `progress` advances by
  /// `Progress::fine` for each.
  static std::vector<CrossFit> train(const std::vector<Pair>& pairs, const RatioConfig& config,
                                     Progress* progress = nullptr, Tasks* tasks = nullptr);
  /// Calibrates what was trained, with the same samples, each fold of each pair a task;
  /// `progress` advances by one for each event.
  static void calibrate(std::vector<CrossFit>& trained, const std::vector<Pair>& pairs,
                        const RatioConfig& config, Progress* progress = nullptr,
                        Tasks* tasks = nullptr);

  std::size_t folds() const { return classifiers_.size(); }
  std::size_t replicas() const { return replica_calibrators_.size(); }

  /// z_k(x): one row an event, one column a fold.
  Matrix scores(MatrixView x) const;
  /// z of each event by the classifier that has not seen it.
  Logits held_out_scores(const FoldedSample& sample) const;

  LogRatios log_ratios(const Matrix& scores) const;
  LogRatios log_ratios(const Matrix& scores, std::size_t replica) const;
  /// −z averaged over the folds: the classifier's own word, not calibrated.
  LogRatios uncalibrated(const Matrix& scores) const;
  /// log r̂ of each event of a sample by the one fold that has not seen it.
  LogRatios held_out(const FoldedSample& sample, const Logits& scores) const;
  LogRatios held_out(const FoldedSample& sample, const Logits& scores, std::size_t replica) const;
  /// The same score through the calibrations of all other folds, their mean: neither classifier nor
  /// calibration has met the event as one that was held out.
  LogRatios held_out_by_others(const FoldedSample& sample, const Logits& scores) const;
  /// Whether an event's scores (a row of `scores`) are outside the calibrated range of every
  /// fold.
  bool outside(std::span<const double> scores) const;

  const Classifier& classifier(std::size_t fold) const { return *classifiers_[fold]; }
  const Calibrator& calibrator(std::size_t fold) const { return *calibrators_[fold]; }

  /// Also of what is trained and not yet calibrated.
  void save(Archive& archive) const;
  /// @param may_be_uncalibrated reads one that was saved before its calibration, too.
  void load(const Archive& archive, bool may_be_uncalibrated = false);

 private:
  using Calibrators = std::vector<std::unique_ptr<Calibrator>>;  // [fold]
  /// The calibrator of a fold, then its replicas.
  Calibrators calibrate_fold(const Pair& pair, const RatioConfig& config, std::size_t fold) const;
  LogRatios average(const Matrix& scores, const Calibrators& calibrators) const;

  std::vector<std::unique_ptr<Classifier>> classifiers_;
  Calibrators calibrators_;
  std::vector<Calibrators> replica_calibrators_;  // [replica]
};

}  // namespace neyman
