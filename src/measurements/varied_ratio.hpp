#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measurements/mean_sign.hpp"
#include "neyman/core/archive.hpp"
#include "neyman/data/samples.hpp"
#include "neyman/ratios/cross_fit.hpp"

// The density of varied events over that of nominal ones, p(x | ±1) / p(x | 0).
namespace neyman::detail {

/// log r of some events, by a classifier and its calibration, in whatever way these events ask for.
using LogsOf = std::function<LogRatios(const CrossFit&)>;  /// N' p' / N p of the events of one
                                                           /// sign, over the ratio of all sums of
                                                           /// weights; without a classifier
/// it is the same everywhere.
///
/// Of events that have two weights, w and w', it is E[w' / w | x]. With δ = w' / (c w) − 1, of mean
/// zero, a classifier tells the events with weights w (1 + a δ) from the same events with weights w
/// (1 − b δ), a and b as large as they can be: r = (1 + a E[δ | x]) / (1 − b E[δ | x]). Whatever
/// happens to the events happens to both sides, so that only the scatter of w' / w at x is noise.
/// Other events have a = 1 and b = 0: r itself.
struct ClassRatio {
  std::optional<CrossFit> fit = {};  ///< none: the same everywhere
  double up = 1.0, down = 0.0;       ///< a, b
  double mean = 1.0;                 ///< of the ratio

  std::vector<double> values(const LogsOf& logs, std::size_t events) const;
  void save(Archive& archive) const;
  static ClassRatio load(const Archive& archive);
};

/// Whether samples have the same rows of features (and groups), in the same order.
bool same_rows(const Samples& a, const Samples& b);
/// Whether, of samples with the same rows, w' / w is the same for all events.
bool same_weights(const Samples& varied, const Samples& nominal);
/// Whether samples of equal size are of the same simulated events row by row, such as shifted ones:
/// rows are nearer to their counterparts than to the counterparts' neighbours.
bool matched_rows(const Samples& a,
                  const Samples& b);  /// One side of a variation. With R± the ratios of the events
                                      /// of either sign and s the mean sign of
/// nominal events at x, p(x | ±1) / p(x | 0) = (R₊ + R₋) / 2 + (R₊ − R₋) / (2 s): the sign is
/// shared, so that no noise of it makes a shape.
struct VariedRatio {
  /// As older models have it: the ratio of |w|, and a mean sign of its own.
  std::optional<CrossFit> fit = {};
  std::optional<SignRatio> sign = {};
  /// Without the second, of all events.
  std::optional<ClassRatio> positive = {}, negative = {};

  /// The nominal events themselves: no shape.
  bool none() const { return !fit && !positive; }
  /// log p(x | ±1) / p(x | 0) up to a constant. `signs`: of the nominal events, as
  /// SignRatio::values has it, or 1; `mean_sign`: of the nominal sample.
  std::vector<double> log_ratios(const LogsOf& logs, std::span<const double> signs,
                                 double mean_sign) const;
  void save(Archive& archive) const;
  static VariedRatio load(const Archive& archive);
};

/// Low and high of a variation from low and high as they were learned, row by row: what a part of
/// this name (LearnedVariation) and strength adds to them.
std::array<double, 4> part_of_sides(const std::string& part, double strength);

/// What teaches a ClassRatio of events that have two weights: the events twice.
struct WeightParts {
  std::unique_ptr<FoldedSample> more = {}, less = {};  ///< none: w' / w is the same for all
  ClassRatio ratio = {};                               ///< its `fit` is to be trained

  /// Of the events with a positive (or negative) nominal weight, or all; `folded` are the nominal
  /// events with weights |w|. Nothing where w' is not positive on the whole.
  static std::optional<WeightParts> of(const Samples& varied, const Samples& nominal,
                                       const FoldedSample& folded, std::optional<bool> negative);
};

}  // namespace neyman::detail
