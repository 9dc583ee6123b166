#pragma once

#include <string>
#include <vector>

#include "neyman/ratios/cross_fit.hpp"
#include "neyman/ratios/ratio.hpp"

namespace neyman {

/// A learned ratio between two fixed points: one calibrated classifier, cross-fitted.
class ClassifierRatio final : public Ratio {
 public:
  /// Learns from events of p(x|θ0) and of p(x|θ1). Folds are `tasks` where others share them.
  ClassifierRatio(const FoldedSample& numerator, const FoldedSample& denominator,
                  std::vector<double> numerator_point, std::vector<double> denominator_point,
                  const RatioConfig& config, Tasks* tasks = nullptr);
  explicit ClassifierRatio(const Archive& archive);

  std::string kind() const override { return "classifier"; }
  /// @throw ArgumentError unless the points are the two it was trained at, in either order.
  LogRatios log_ratios(MatrixView x, std::span<const double> numerator,
                       std::span<const double> denominator) const override;
  /// −z, as the classifier itself says.
  LogRatios uncalibrated(MatrixView x) const;
  std::size_t count_outside(MatrixView x) const override;
  const CrossFit& cross_fit() const { return pair_; }
  /// log of the mean of r̂ over the denominator, before normalisation: from the held-out events
  /// of both sides, each weighted to the denominator.
  double log_normalisation() const { return log_normalisation_; }
  void save(Archive& archive) const;

 private:
  CrossFit pair_;
  std::vector<double> numerator_, denominator_;
  double log_normalisation_ = 0.0;
};

}  // namespace neyman
