#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "neyman/core/matrix.hpp"
#include "neyman/core/parameters.hpp"
#include "neyman/core/scales.hpp"
#include "neyman/simulators/distribution.hpp"

namespace neyman {

/// A likelihood ratio of one event, r(x; θ0, θ1) = p(x|θ0) / p(x|θ1), exact or learned.
class Ratio {
 public:
  virtual ~Ratio() = default;
  virtual std::string kind() const = 0;

  /// log r of each row of x; always finite.
  /// @throw ArgumentError where the ratio is not known at these points, or x has other columns.
  virtual LogRatios log_ratios(MatrixView x, std::span<const double> numerator,
                               std::span<const double> denominator) const = 0;

  /// How many rows of x lie where the calibration has seen no event; their log r is the
  /// bounded extrapolation that the calibrator documents.
  virtual std::size_t count_outside(MatrixView x) const;
};

using RatioPtr = std::shared_ptr<const Ratio>;

/// The same ratio upside down: 1 / r(x; θ1, θ0), which equals r(x; θ0, θ1). Both the points and
/// the sign are swapped.
class InverseRatio final : public Ratio {
 public:
  explicit InverseRatio(RatioPtr of);
  std::string kind() const override { return "inverse"; }
  LogRatios log_ratios(MatrixView x, std::span<const double> numerator,
                       std::span<const double> denominator) const override;
  std::size_t count_outside(MatrixView x) const override { return of_->count_outside(x); }

 private:
  RatioPtr of_;
};

/// Largest |log r| that the exact ratio returns where a density is zero: e^±700 still are
/// doubles, so sums and products of ratios stay finite.
inline constexpr double log_ratio_limit = 700.0;

/// The exact ratio of a distribution that knows its density.
class ExactRatio final : public Ratio {
 public:
  /// @throw ArgumentError where the distribution does not know its density.
  explicit ExactRatio(DistributionPtr distribution);
  std::string kind() const override { return "exact"; }
  LogRatios log_ratios(MatrixView x, std::span<const double> numerator,
                       std::span<const double> denominator) const override;

 private:
  DistributionPtr distribution_;
};

}  // namespace neyman
