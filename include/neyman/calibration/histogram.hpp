#pragma once

#include <vector>

#include "neyman/calibration/calibrator.hpp"

namespace neyman {

/// Ratios of histograms of the logit, with the same edges for both sides.
///
/// In a bin with n0 of the N0 and n1 of the N1 events, log r = log((n0 + k π0) / (n1 + k π1)) +
/// log(N1/N0), where k = 2 events are split as the sigmoid calibration has it at the bin's centre
/// (π0 + π1 = 1): an empty bin takes the sigmoid's value, a full one does not notice.
/// The error, of the counts alone and without the bias of a bin's width, is √(1/(n0+½) + 1/(n1+½) −
/// 1/N0 − 1/N1). Outside the range of the scores log r is held.
///
/// Edges: `equal-probability` in the sample in which both sides count the same; `uniform` between
/// the extreme scores; `bayesian-blocks`, the segmentation of highest posterior for a ratio
/// that is constant in each block (Scargle et al. 2013, with the likelihood of the sides given the
/// scores), which chooses its number of blocks. For the others the number of bins
/// is, unless given, the one of least information criterion (log-likelihood of the sides
/// less one for each bin). Of more than 65 536 events, edges of equal probability lie between cells
/// of equal width of which none holds more than 1/2048 of the sample; an event within rounding of
/// an edge may count on either side of it.
///
/// Interpolated, log r runs through the bins' values at their mean scores, as a cubic without
/// overshoots (Fritsch and Butland 1984), straight on from the outermost mean scores to the ends
/// of the range. Known weakness: as steps, the error within a bin is that of a
/// constant; uniform bins saturate where one side has no events.
class HistogramCalibrator : public Calibrator {
 public:
  enum class Edges { equal_probability, uniform, bayesian_blocks };

  struct Config {
    Edges edges = Edges::equal_probability;  ///< "equal-probability", "uniform", "bayesian-blocks"
    std::size_t bins = 0;                    ///< 0: chosen by the data; not used by Bayesian blocks
    bool interpolate = true;                 ///< false: piecewise constant
    static Config from(Settings& settings);
  };

  /// @throw ArgumentError unless bins <= 10000.
  explicit HistogramCalibrator(Config config);
  HistogramCalibrator() : HistogramCalibrator(Config{}) {}

  std::string kind() const override { return "histogram"; }
  std::unique_ptr<Calibrator> fresh() const override;
  void fit(const CalibrationSet& data) override;
  bool fitted() const override { return !edges_.empty(); }
  LogRatios log_ratios(const Logits& logits) const override;
  std::vector<double> errors(const Logits& logits) const override;
  void save(Archive& archive) const override;
  void load(const Archive& archive) override;

  /// Edges of the bins; bin i holds edges[i] < z <= edges[i+1], the first also its lower edge.
  const std::vector<double>& edges() const { return edges_; }
  /// log r of each bin.
  const std::vector<double>& values() const { return values_; }

 private:
  void prepare();

  Config config_;
  std::vector<double> edges_, centres_, values_, errors_;
  std::vector<double> slopes_;  // at the centres, made by prepare()
};

}  // namespace neyman
